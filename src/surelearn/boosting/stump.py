"""One decision stump (thesis, Definition 3.2), with its certificate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from surelearn.base import Learner
from surelearn.boosting.columns import number_columns
from surelearn.boosting.record import StumpRecord
from surelearn.boosting.rows import Rows, count_thresholds, fit_rows, predict_rows, shared_facts
from surelearn.subject import Parts
from surelearn.subject.sklearn_trees import of_trees
from surelearn.types import RowsLike

Array = npt.NDArray[Any]


class DecisionStump(ClassifierMixin, Learner):
    """One class where x_j ≤ b and one where x_j > b, or the same everywhere: what errs least on the
    weighted rows.

    Parameters
    ----------
    method, thresholds, delta : as of `AdaBoostClassifier`

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn
    feature_, threshold_ : j and b; a constant has b = ∞
    below_, above_ : index in ``classes_`` of the answer where x_j ≤ b, and where not
    error_ : its weighted error on the rows

    Notes
    -----
    Ties are broken as `AdaBoostClassifier` breaks them: first feature, lowest threshold.

    Examples
    --------
    >>> model = DecisionStump().fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"])
    >>> model.threshold_, model.predict([[1.4], [1.6]]).tolist()
    (1.5, ['low', 'high'])
    """

    Record = StumpRecord

    classes_: Array
    n_features_in_: int
    saved_as = "decision-stump/1"

    def __init__(
        self,
        *,
        method: Literal["auto", "exact", "binned"] = "auto",
        thresholds: Any = None,
        delta: float = 0.05,
    ) -> None:
        self.method = method
        self.thresholds = thresholds
        self.delta = delta

    def __sklearn_tags__(self) -> Any:
        """It answers two classes at most."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Cuts found on the rows, and stated beforehand."""
        yield cls()
        yield cls(thresholds=[-0.5, 0.0, 0.5], delta=0.1)

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """Both searches; stated cuts go the way of AdaBoost's."""
        yield cls()
        yield cls(method="binned")

    def fit(
        self, X: RowsLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> DecisionStump:
        """Find the best stump on rows X (n, d) with labels y (n,)."""
        from surelearn.boosting.search import run

        rows = fit_rows(self, X, y, sample_weight)
        columns = number_columns(rows.X, self.method, self.thresholds)
        made = run(columns, rows.labels, rows.classes.size, rows.weights, 1)
        self.classes_ = rows.classes
        self.feature_, self.below_, self.above_ = (
            int(made.features[0]),
            int(made.below[0]),
            int(made.above[0]),
        )
        self.threshold_ = columns.threshold(self.feature_, int(made.cuts[0]))
        self.error_ = float(made.errors[0])
        self.facts_ = {**shared_facts(self, rows), "training_errors": self._training_errors(rows)}
        return self

    def measure_again(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> dict[str, Any]:
        """The record's fields that the fitted model and the rows it was fitted on tell,
        measured again.
        """
        rows = fit_rows(self, X, y, sample_weight, reset=False)
        return {**shared_facts(self, rows), "training_errors": self._training_errors(rows)}

    def _training_errors(self, rows: Rows) -> int:
        return int((self._side(rows.X) != rows.labels).sum())

    @property
    def record_(self) -> StumpRecord:
        """What happened in the fit; models of version 0.2 kept the number of stumps, not of
        thresholds.
        """
        check_is_fitted(self, "facts_")
        return StumpRecord.read(
            {"thresholds": count_thresholds(self.thresholds), **self.facts_}, strict=False
        )

    def decision_function(self, X: RowsLike) -> Array:
        """1 for the second of two classes and −1 for the first (n,); else 1 for the class
        answered, and 0 (n, K).
        """
        answers = self._answer(X)
        if self.classes_.size == 2:
            return 2.0 * answers - 1.0
        return np.eye(self.classes_.size)[answers]

    def predict(self, X: RowsLike) -> Array:
        """The class of the side that each row is on."""
        answers = self._answer(X)
        return self.classes_[answers]

    def _answer(self, X: Any) -> Array:
        return self._side(predict_rows(self, X))

    def _side(self, X: Array) -> Array:
        return np.where(X[:, self.feature_] <= self.threshold_, self.below_, self.above_)

    def _describe(self) -> Parts:
        return of_trees(self)
