"""Naive Bayes, a linear classifier in disguise: log odds are the prior's plus one contribution
a feature.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from surelearn.base import Learner
from surelearn.lacking import Lacking
from surelearn.linear._regressor import require_positive
from surelearn.record import Record, Writer
from surelearn.subject import Closed, Parts
from surelearn.subject.sklearn_others import normals
from surelearn.types import RowsLike

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class NaiveBayesRecord(Record):
    """A fit of naive Bayes; nothing is claimed of it.

    Attributes
    ----------
    classes, categorical_features : how many
    smoothing : α, as stated
    """

    key: ClassVar[str] = "naive-bayes/1"

    classes: int
    categorical_features: int
    smoothing: float

    def write(self, writer: Writer) -> None:
        """Why nothing is claimed."""
        reason = (
            "no theorem applies: independence of the features within a class is a model, not a"
            " fact; use certify()"
        )
        writer.lacks("risk", reason)
        writer.lacks(
            "calibration",
            "the probabilities are those of the model, which counts related features twice",
        )


class NaiveBayes(ClassifierMixin, Learner):
    """P(y | x) ∝ P(y)·∏_j P(x_j | y): categories by smoothed counts, numbers by a Gaussian for each
    class.

    The logarithm of the odds is a sum, so each feature's share in a prediction is exact (course,
    Example 20.2): see `contributions`. A missing value (also empty text), or a category that no
    training row had, says nothing: it contributes 0.

    Parameters
    ----------
    categorical : "auto" (columns of text, booleans or categories, and indicators: numbers that are
        all 0 or 1), "all", or a list of column names or positions
    smoothing : α > 0 added to the count of each category (Laplace's is 1): P(v | y) = (N_vy +
        α)/(N_y + α·#categories)
    variance_floor : > 0, the part of a column's variance below which a class's variance is not let
    delta : failure probability of claims (none is made)

    Attributes
    ----------
    classes_ : the labels
    prior_ : array (K,), log P(class) − log P(first class)
    kinds_ : "categorical" or "number" for each feature
    categories_ : for each feature, its categories as text (none for a number)
    tables_ : for each categorical feature log P(category | class), (#categories, K); for a number
        mean and variance, (2, K)

    Examples
    --------
    >>> X = [["3rd", "female"], ["3rd", "male"], ["1st", "female"], ["3rd", "male"]]
    >>> model = NaiveBayes().fit(X, ["lived", "died", "lived", "died"])
    >>> model.predict([["3rd", "female"]]).tolist()
    ['lived']
    >>> model.classes_.tolist(), model.contributions([["3rd", "female"]]).round(3).tolist()
    (['died', 'lived'], [[-0.405, 1.099]])
    """

    Record = NaiveBayesRecord
    saved_as = "naive-bayes/1"

    def __init__(
        self,
        *,
        categorical: str | Sequence[str | int] = "auto",
        smoothing: float = 1.0,
        variance_floor: float = 0.01,
        delta: float = 0.05,
    ) -> None:
        self.categorical = categorical
        self.smoothing = smoothing
        self.variance_floor = variance_floor
        self.delta = delta

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """Numbers, and categories."""
        yield cls()
        yield cls(categorical="all")

    def fit(
        self, X: RowsLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> NaiveBayes:
        """Count; weights count rows."""
        require_positive(smoothing=self.smoothing, variance_floor=self.variance_floor)
        columns, labels = self._columns(X, y)
        check_classification_targets(labels)
        weights = _check_sample_weight(
            sample_weight, np.empty((len(labels), 1)), dtype=np.float64, ensure_non_negative=True
        )
        rows, counted = len(labels), weights > 0
        columns, weights = [column[counted] for column in columns], weights[counted]
        self.classes_, codes = np.unique(labels[counted], return_inverse=True)
        shares = np.eye(len(self.classes_))[codes] * weights[:, None]  # (n, K)
        totals = shares.sum(axis=0)
        self.prior_ = np.log(totals / totals[0])
        chosen = self._chosen(columns)
        self.kinds_, self.categories_, self.tables_ = [], [], []
        for column, is_category in zip(columns, chosen, strict=True):
            self.kinds_.append("categorical" if is_category else "number")
            categories, table = (
                _count(_as_text(column), shares, float(self.smoothing))
                if is_category
                else ([], _moments(_as_numbers(column), shares, float(self.variance_floor)))
            )
            self.categories_.append(categories)
            self.tables_.append(table)
        self.facts_ = {
            "n": rows,
            "d": len(columns),
            "classes": len(self.classes_),
            "categorical_features": int(sum(chosen)),
            "smoothing": float(self.smoothing),
        }
        return self

    def measure_again(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> dict[str, Any]:
        """The record's fields, by counting again; a `ValueError` where the rows give other
        tables than the model's.
        """
        again = clone(self)
        # as the fit decided
        again.categorical = [j for j, kind in enumerate(self.kinds_) if kind == "categorical"]
        again.fit(X, y, sample_weight=sample_weight)
        pairs = [(self.prior_, again.prior_), *zip(self.tables_, again.tables_, strict=False)]
        same = np.array_equal(self.classes_, again.classes_) and len(self.tables_) == len(
            again.tables_
        )
        if not same or not all(
            a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in pairs
        ):
            raise ValueError("counting them gives other tables than the model's")
        return again.facts_

    def contributions(self, X: RowsLike) -> Array:
        """What each feature adds to the log odds: log P(x_j | y) − log P(x_j | first class).

        For two classes, shape (n, d), of the second class against the first: ``prior_[1]`` plus a
        row's sum is its log odds, ``decision_function``. For several, shape (n, d, K), of each
        class against the first.
        """
        check_is_fitted(self)
        columns, _ = self._columns(X)
        parts = [
            (
                _category_scores(_as_text(column), categories, table)
                if kind == "categorical"
                else _number_scores(_as_numbers(column), table)
            )
            for column, kind, categories, table in zip(
                columns, self.kinds_, self.categories_, self.tables_, strict=True
            )
        ]
        against = np.stack([part - part[:, :1] for part in parts], axis=1)
        return against[:, :, 1] if len(self.classes_) == 2 else against

    def decision_function(self, X: RowsLike) -> Array:
        """Log odds against the first class: (n,) for two classes, (n, K) for several."""
        check_is_fitted(self)
        prior = self.prior_[1] if len(self.classes_) == 2 else self.prior_
        return prior + self.contributions(X).sum(axis=1)

    def predict_proba(self, X: RowsLike) -> Array:
        """P(class | x), if features are independent within each class."""
        odds = self.decision_function(X)
        return (
            np.column_stack([expit(-odds), expit(odds)])
            if odds.ndim == 1
            else softmax(odds, axis=1)
        )

    def predict(self, X: RowsLike) -> npt.NDArray[Any]:
        """The likeliest class."""
        odds = self.decision_function(X)
        return self.classes_[(odds > 0).astype(int) if odds.ndim == 1 else odds.argmax(axis=1)]

    def _describe(self) -> Parts:
        check_is_fitted(self)
        return Parts(self._form)

    def _form(self) -> Closed | Lacking:
        if "categorical" in self.kinds_:
            why = "its columns of categories have no gradient: no category lies between two others"
            return Lacking("closed form", why)
        means, variances = np.stack(self.tables_).transpose(1, 2, 0)  # (2, classes, d)
        return normals(means, variances, self.prior_)

    def _columns(
        self, X: Any, y: npt.ArrayLike | None = None
    ) -> tuple[list[npt.NDArray[Any]], Any]:
        """The columns of a table or array, each as an array; targets are checked on the way."""
        reset = y is not None
        given = (X,) if y is None else (X, y)
        if hasattr(X, "columns") and hasattr(X, "shape"):
            if len(set(X.columns)) < len(X.columns):
                raise ValueError("X has two columns of the same name: rename one")
            read = validate_data(self, *given, reset=reset, skip_check_array=True)
            columns = [np.asarray(X[name]) for name in X.columns]
            _require_rows(X, columns)
            if reset:
                y = _check_y(read[1], multi_output=False)
                check_consistent_length(X, y)
            return columns, y
        if isinstance(X, list) and _mixed(X):
            X = np.array(X, dtype=object)
            given = (X, *given[1:])
        read = validate_data(self, *given, reset=reset, dtype=None, ensure_all_finite="allow-nan")
        array, y = read if reset else (read, None)
        return list(array.T), y

    def _chosen(self, columns: list[npt.NDArray[Any]]) -> list[bool]:
        """Which columns are categorical."""
        if isinstance(self.categorical, str):
            if self.categorical not in ("auto", "all"):
                raise ValueError(
                    "categorical must be 'auto', 'all' or a list of columns, not"
                    f" {self.categorical!r}"
                )
            return [
                self.categorical == "all" or not _is_numeric(column) or _is_indicator(column)
                for column in columns
            ]
        names = list(getattr(self, "feature_names_in_", ()))
        chosen = [False] * len(columns)
        for entry in self.categorical:
            position = names.index(entry) if entry in names else entry
            if isinstance(position, str) or not 0 <= position < len(columns):
                raise ValueError(f"categorical names a column that X does not have: {entry!r}")
            chosen[int(position)] = True
        return chosen

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags


def _count(values: npt.NDArray[Any], shares: Array, smoothing: float) -> tuple[list[str], Array]:
    """Categories, and log P(category | class) by smoothed counts over the rows that have a
    value.
    """
    known = values != ""
    categories, codes = np.unique(values[known].astype(str), return_inverse=True)
    counts = np.zeros((len(categories), shares.shape[1]))
    np.add.at(counts, codes, shares[known])
    if not len(categories):
        return [], counts
    return categories.tolist(), np.log(counts + smoothing) - np.log(
        counts.sum(axis=0) + smoothing * len(categories)
    )


def _category_scores(values: npt.NDArray[Any], categories: list[str], table: Array) -> Array:
    """Log P(x_j | class) for each row, 0 for what is missing or new."""
    scores = np.zeros((len(values), table.shape[1]))
    if categories:
        ordered, text = np.array(categories), values.astype(str)
        position = np.minimum(np.searchsorted(ordered, text), len(ordered) - 1)
        known = ordered[position] == text
        scores[known] = table[position[known]]
    return scores


def _moments(values: Array, shares: Array, floor: float) -> Array:
    """Mean and variance of a number in each class, (2, K); those of all rows for a class
    without values.
    """
    known = ~np.isnan(values)
    values, shares = values[known], shares[known]
    everything = shares.sum(axis=1)
    if not everything.sum() > 0:
        return np.tile([[0.0], [1.0]], shares.shape[1])
    # weighted moments of each class; a class without a known value has those of all rows
    overall = np.average(values, weights=everything)
    spread = float(np.average((values - overall) ** 2, weights=everything)) or 1.0
    totals = shares.sum(axis=0)
    seen = totals > 0
    safe = np.where(seen, totals, 1.0)
    means = np.where(seen, shares.T @ values / safe, overall)
    variances = np.where(seen, (shares * (values[:, None] - means) ** 2).sum(axis=0) / safe, spread)
    return np.stack([means, np.maximum(variances, max(floor * spread, np.finfo(float).tiny))])


def _number_scores(values: Array, table: Array) -> Array:
    """Log density of each row in each class, 0 for what is missing."""
    means, variances = table
    scores = -0.5 * (np.log(2 * np.pi * variances) + (values[:, None] - means) ** 2 / variances)
    return np.where(np.isnan(values)[:, None], 0.0, scores)


def _as_numbers(column: npt.NDArray[Any]) -> Array:
    """Numbers, NaN where missing."""
    try:
        values = (
            column.astype(np.float64)
            if column.dtype.kind in "biuf"
            else np.array(
                [np.nan if _is_missing(v) else v for v in column.tolist()], dtype=np.float64
            )
        )
    except (TypeError, ValueError):
        raise ValueError(
            "a column of numbers holds something else: name it in categorical=, or mend it"
        ) from None
    if np.isinf(values).any():
        raise ValueError("X must not hold infinite numbers")
    return values


def _as_text(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values as text, "" where missing; whole numbers look alike, however they are stored (3,
    3.0).
    """
    return np.array([_text(value) for value in column.tolist()], dtype=object)


def _text(value: object) -> str:
    if _is_missing(value):
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _is_missing(value: object) -> bool:
    return (
        value is None
        or value is np.ma.masked
        or type(value).__name__ in ("NAType", "NaTType")
        or value != value
    )


def _is_numeric(column: npt.NDArray[Any]) -> bool:
    """Whether a column holds numbers only: booleans and text do not count as such."""
    if column.dtype != object:
        return column.dtype.kind in "iuf"
    return all(
        _is_missing(v) or (isinstance(v, Real) and not isinstance(v, (bool, np.bool_)))
        for v in column.tolist()
    )


def _is_indicator(column: npt.NDArray[Any]) -> bool:
    """Whether a column of numbers is 0 or 1 wherever it is known, and both occur: a Gaussian of
    such is no model of it.
    """
    values = _as_numbers(column)
    known = values[~np.isnan(values)]
    return bool(np.isin(known, (0.0, 1.0)).all()) and 0.0 in known and 1.0 in known


def _mixed(X: list[Any]) -> bool:
    """Whether nested lists hold text beside other things, which NumPy would turn into text."""
    return any(
        isinstance(value, str) for row in X if isinstance(row, (list, tuple)) for value in row
    )


def _require_rows(X: Any, columns: list[npt.NDArray[Any]]) -> None:
    if _num_samples(X) < 1 or not columns:
        raise ValueError(
            f"Found array with {_num_samples(X)} sample(s) and {len(columns)} feature(s) while 1 is"
            " required."
        )
