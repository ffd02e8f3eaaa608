"""Boosted trees of other libraries as candidates need them: any labels, the first columns as
categories, and answers after several numbers of rounds from one fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils import assert_all_finite, check_consistent_length
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from surelearn.lacking import Lacking
from surelearn.selection.stages import at_sizes
from surelearn.subject.registry import Parts, described, describes, made
from surelearn.subject.sklearn_trees import of_trees
from surelearn.subject.trees import Prepared, Trees
from surelearn.types import AnyArray, Array, Model, RowsLike

Said = Literal["predict", "predict_proba"]


class _Booster(BaseEstimator):
    """What both kinds share: rows of numbers, NaN where missing, fitted and read by rounds."""

    estimator: Model
    categories: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _checked(self, X: RowsLike, y: npt.ArrayLike) -> tuple[Array, AnyArray]:
        """Rows of numbers, and the target."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        rows = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        target = column_or_1d(y, warn=True)
        check_consistent_length(rows, target)
        return rows, target

    def _fit_inside(self, rows: Array, target: AnyArray) -> None:
        model = clone(self.estimator)
        if self.categories:
            if not hasattr(model, "categorical_features"):
                raise ValueError(
                    f"categories={self.categories} needs a model with categorical_features, as"
                    f" scikit-learn's HistGradientBoosting: {type(model).__name__} has none"
                )
            model.set_params(categorical_features=list(range(self.categories)))
        self.estimator_ = _without_functions(model.fit(rows, target))

    def _rows(self, X: RowsLike) -> Array:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan")

    def _answers(self, method: Said, X: RowsLike) -> Array:
        rows = self._rows(X)
        return np.asarray(getattr(self.estimator_, method)(rows))

    def _at_rounds(self, method: Said, X: RowsLike, sizes: Sequence[int]) -> list[Array]:
        """What the model said after so many rounds each, `sizes` increasing."""
        rows, model = self._rows(X), self.estimator_
        ask = getattr(model, method)
        if hasattr(model, f"staged_{method}"):
            return at_sizes(getattr(model, f"staged_{method}")(rows), sizes)
        if hasattr(model, "booster_"):
            return [np.asarray(ask(rows, num_iteration=size)) for size in sizes]
        return [np.asarray(ask(rows, iteration_range=(0, size))) for size in sizes]


class BoosterClassifier(ClassifierMixin, _Booster):
    """A boosted classifier that may ask for labels 0, 1, … (XGBoost's) or keep a function in its
    model beside categories (scikit-learn's), for any labels and without the function.

    Parameters
    ----------
    estimator : unfitted: HistGradientBoostingClassifier, LGBMClassifier or XGBClassifier
    categories : so many of the first columns are codes 0, 1, … of categories, NaN where missing or
        unknown, and are split by sets of them; the other columns are numbers

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> X = np.column_stack([np.arange(60) % 3, np.arange(60)])
    >>> y = np.where(X[:, 0] == 1, "odd one", "other")
    >>> model = BoosterClassifier(HistGradientBoostingClassifier(max_iter=5), categories=1)
    >>> model.fit(X, y).predict([[1, 7], [2, 7]]).tolist()
    ['odd one', 'other']
    """

    saved_as = "booster-classifier/1"

    def __init__(self, estimator: Model, categories: int = 0) -> None:
        self.estimator = estimator
        self.categories = categories

    def fit(self, X: RowsLike, y: npt.ArrayLike) -> BoosterClassifier:
        """Fit the model to the labels' positions."""
        rows, labels = self._checked(X, y)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(f"there is one class only, {self.classes_[0]!r}")
        self._fit_inside(rows, codes)
        return self

    def predict_proba(self, X: RowsLike) -> Array:
        """(n, classes)."""
        return self._answers("predict_proba", X).astype(np.float64)

    def predict(self, X: RowsLike) -> AnyArray:
        """The most probable class of each row."""
        check_is_fitted(self)
        chances = self.predict_proba(X)
        return self.classes_[chances.argmax(axis=1)]

    @available_if(lambda model: hasattr(getattr(model, "estimator_", None), "decision_function"))
    def decision_function(self, X: RowsLike) -> Array:
        """The score of the second of two classes, (n,), or of every class, (n, classes)."""
        return np.asarray(self.estimator_.decision_function(self._rows(X)), dtype=np.float64)

    def predict_proba_at(self, X: RowsLike, sizes: Sequence[int]) -> list[Array]:
        """`predict_proba` after each of these numbers of rounds, from small to large."""
        return [one.astype(np.float64) for one in self._at_rounds("predict_proba", X, sizes)]

    def predict_at(self, X: RowsLike, sizes: Sequence[int]) -> list[AnyArray]:
        """`predict` after each of these numbers of rounds, from small to large."""
        found = self.predict_proba_at(X, sizes)
        return [self.classes_[one.argmax(axis=1)] for one in found]


class BoosterRegressor(RegressorMixin, _Booster):
    """A boosted regressor with categories, without a function in its model.

    Parameters
    ----------
    estimator : unfitted: HistGradientBoostingRegressor, LGBMRegressor or XGBRegressor
    categories : as in `BoosterClassifier`

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> X = np.column_stack([np.arange(60) % 3, np.arange(60)])
    >>> made = BoosterRegressor(HistGradientBoostingRegressor(max_iter=50), categories=1)
    >>> [len(one) for one in made.fit(X, 1.0 * (X[:, 0] == 1)).predict_at(X, [10, 50])]
    [60, 60]
    """

    saved_as = "booster-regressor/1"

    def __init__(self, estimator: Model, categories: int = 0) -> None:
        self.estimator = estimator
        self.categories = categories

    def fit(self, X: RowsLike, y: npt.ArrayLike) -> BoosterRegressor:
        """Fit the model."""
        rows, target = self._checked(X, y)
        if np.iscomplexobj(target):
            raise ValueError("Complex data not supported")
        assert_all_finite(target, input_name="y")
        self._fit_inside(rows, target.astype(np.float64))
        return self

    def predict(self, X: RowsLike) -> Array:
        """(n,)."""
        return self._answers("predict", X).astype(np.float64)

    def predict_at(self, X: RowsLike, sizes: Sequence[int]) -> list[Array]:
        """`predict` after each of these numbers of rounds, from small to large."""
        return [one.astype(np.float64) for one in self._at_rounds("predict", X, sizes)]


def _without_functions(model: Model) -> Model:
    """A fitted HistGradientBoosting whose own preparation passes numbers on as they are, in the
    place of a function that checks them: they are checked here, and no file keeps a function.
    """
    from sklearn.preprocessing import FunctionTransformer

    preparation = getattr(model, "_preprocessor", None)
    if preparation is not None:
        for _, step, _ in [*preparation.transformers, *preparation.transformers_]:
            if isinstance(step, FunctionTransformer):
                step.func = None
    return model


@describes(BoosterClassifier, BoosterRegressor)
def _described(model: BoosterClassifier | BoosterRegressor) -> Parts:
    """Of trees, which are those of the model inside; its labels are positions, so that nothing
    else of what is inside is said of it.
    """
    inside = getattr(model, "estimator_", None)
    found = None if inside is None else described(inside)
    if not isinstance(found, Parts):
        return of_trees(model if inside is None else inside)
    scores = found.decisions

    def trees() -> Trees | Lacking:
        own = made(found.trees)
        if isinstance(own, Lacking):
            return own
        return replace(own, decisions=Prepared(own.decisions, model._rows))

    return replace(
        of_trees(inside, trees),
        decisions=None if scores is None else lambda X: scores(model._rows(X)),
    )
