"""From the columns of a table to numbers: filling, scaling, one-hot, terms of text, parts of dates.

Everything is learned inside ``fit``, on fit rows only, as part of the candidate's pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from surelearn.selection.text import TextTerms, TextTopics
from surelearn.subject.forms import Affine
from surelearn.subject.registry import Preparation, describes
from surelearn.types import AnyArray, Array

# what prepares columns without the target, and the same rows the same way whenever it is asked
_OF_COLUMNS = (SimpleImputer, StandardScaler, OneHotEncoder, OrdinalEncoder)
MOST_CODES = 200  # of a column's categories; the rarest share one
Reader: TypeAlias = Literal["few", "many", "trees", "native"]


class HashedWords(TransformerMixin, BaseEstimator):
    """Bag of words of text columns, hashed to a fixed number of columns each; missing text has no
    words.

    Parameters
    ----------
    n_features : columns a text column becomes
    """

    saved_as = "hashed-words/1"

    def __init__(self, n_features: int = 128) -> None:
        self.n_features = n_features

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> HashedWords:  # noqa: ARG002
        """Remember how many columns there are; hashing learns nothing."""
        self.n_columns_ = np.asarray(X, dtype=object).shape[1]
        return self

    def transform(self, X: npt.ArrayLike) -> Array:
        """One block of word counts, normalized, a column."""
        check_is_fitted(self)
        texts = np.asarray(X, dtype=object)
        hasher = HashingVectorizer(n_features=self.n_features, alternate_sign=False)
        blocks = [
            hasher.transform(
                ["" if text is None or text != text else str(text) for text in texts[:, i]]
            ).toarray()
            for i in range(self.n_columns_)
        ]
        return np.hstack(blocks)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> AnyArray:
        """Names such as ``Name#17``."""
        names = (
            input_features
            if input_features is not None
            else [f"x{i}" for i in range(self.n_columns_)]
        )
        return np.array(
            [f"{name}#{i}" for name in names for i in range(self.n_features)], dtype=object
        )


class DateParts(TransformerMixin, BaseEstimator):
    """Days since 1970, month and day of the week of date columns; a missing date has none."""

    saved_as = "date-parts/1"

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> DateParts:  # noqa: ARG002
        """Remember how many columns there are."""
        self.n_columns_ = np.asarray(X).shape[1]
        return self

    def transform(self, X: npt.ArrayLike) -> Array:
        """Three numbers a date."""
        check_is_fitted(self)
        dates = np.asarray(X).astype("datetime64[s]")
        days = dates.astype("datetime64[D]").astype(np.int64).astype(float)
        month = (dates.astype("datetime64[M]").astype(np.int64) % 12).astype(float)
        parts = np.stack([days, month, (days + 3) % 7], axis=-1)
        parts[np.isnat(dates)] = np.nan
        return parts.reshape(len(dates), -1)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> AnyArray:
        """Names such as ``born day``."""
        names = (
            input_features
            if input_features is not None
            else [f"x{i}" for i in range(self.n_columns_)]
        )
        return np.array(
            [f"{name} {part}" for name in names for part in ("day", "month", "weekday")],
            dtype=object,
        )


class PixelScaler(TransformerMixin, BaseEstimator):
    """(pixel − mean)/spread, with one mean and one spread for all pixels of a channel: a pixel of an
    edge that is nearly always black counts no more than it shows.

    Parameters
    ----------
    channels : numbers of a pixel, which lie side by side
    """

    saved_as = "pixel-scaler/1"

    def __init__(self, channels: int = 1) -> None:
        self.channels = channels

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> PixelScaler:  # noqa: ARG002
        """Learn means and spreads of images (n, pixels)."""
        pixels = np.asarray(X, dtype=float)
        self.n_features_in_ = pixels.shape[1]
        parted = pixels.reshape(-1, self.channels)
        spread = parted.std(axis=0)
        self.mean_, self.scale_ = parted.mean(axis=0), np.where(spread > 0, spread, 1.0)
        return self

    def transform(self, X: npt.ArrayLike) -> Array:
        """Scaled images (n, pixels)."""
        check_is_fitted(self)
        each = self.n_features_in_ // self.channels
        mean, scale = (np.tile(one, each) for one in (self.mean_, self.scale_))
        return (np.asarray(X, dtype=float) - mean) / scale


@describes(PixelScaler)
def _scaled_pixels(step: PixelScaler) -> Preparation:
    def made() -> Affine:
        each = step.n_features_in_ // step.channels
        scale = np.tile(step.scale_, each)
        return Affine(1.0 / scale, -np.tile(step.mean_, each) / scale)

    return Preparation(made, columnwise=True)


def preparation(kinds: Mapping[Any, str], reader: Reader = "few") -> ColumnTransformer:
    """The transformer for columns of the given kinds: "number", "category", "text", "date".

    Numbers are filled with the median, with a column that says so, and scaled; categories become
    one column each, rare and unseen ones share one; text becomes `TextTopics`; dates become numbers.

    Parameters
    ----------
    reader : what learner it is for. "few": one that needs few columns. "many": a linear model, which
        takes all terms of text, sparse. "trees": boosted trees, which take missing values as such
        and need no scaling. "native": boosted trees that split by sets of categories, whose codes
        are the first columns; missing and unseen ones are NaN
    """
    of_kind = {
        kind: [name for name, k in kinds.items() if k == kind]
        for kind in ("number", "category", "text", "date")
    }
    trees = reader in ("trees", "native")
    fill = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    steps: list[tuple[str, Any, list[Any]]] = []
    if of_kind["category"] and reader == "native":
        codes = OrdinalEncoder(
            handle_unknown="use_encoded_value",
            unknown_value=np.nan,
            encoded_missing_value=np.nan,
            min_frequency=5,
            max_categories=MOST_CODES,
        )
        steps.append(("category", codes, of_kind["category"]))
    if of_kind["number"]:
        numbers = "passthrough" if trees else make_pipeline(fill, StandardScaler())
        steps.append(("number", numbers, of_kind["number"]))
    if of_kind["category"] and reader != "native":
        encoder = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            min_frequency=5,
            max_categories=30,
            sparse_output=False,
        )
        steps.append(("category", encoder, of_kind["category"]))
    if of_kind["text"]:
        text = TextTerms() if reader == "many" else TextTopics()
        steps.append(("text", text, of_kind["text"]))
    if of_kind["date"]:
        date = DateParts() if trees else make_pipeline(DateParts(), fill, StandardScaler())
        steps.append(("date", date, of_kind["date"]))
    sparse = 1.0 if reader == "many" and of_kind["text"] else 0.0
    return ColumnTransformer(steps, sparse_threshold=sparse, verbose_feature_names_out=False)


def reads_columns_alone(step: Any) -> bool:
    """Whether an unfitted step is such a `preparation`: what it makes of rows depends on no target
    and no chance, so that all candidates that begin with it can share it.

    Examples
    --------
    >>> from sklearn.preprocessing import TargetEncoder
    >>> reads_columns_alone(preparation({"age": "number", "name": "text"}))
    True
    >>> reads_columns_alone(ColumnTransformer([("of the target", TargetEncoder(), ["town"])]))
    False
    """
    own = (*_OF_COLUMNS, TextTerms, TextTopics, HashedWords, DateParts, PixelScaler)
    if type(step) is ColumnTransformer:
        return all(reads_columns_alone(part) for _, part, _ in step.transformers)
    if type(step) is Pipeline:
        return all(reads_columns_alone(part) for _, part in step.steps)
    return step == "passthrough" if isinstance(step, str) else type(step) in own
