"""One decision stump (thesis, Definition 3.2), with its certificate."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from surelearn import bounds
from surelearn.base import Learner, Writer
from surelearn.boosting.claims import write_stump_claims
from surelearn.boosting.columns import number_columns
from surelearn.boosting.rows import class_size, fit_rows, predict_rows

Array = npt.NDArray[Any]


class DecisionStump(ClassifierMixin, Learner):
    """One class where x_j ≤ b and one where x_j > b, or the same everywhere: what errs least on the weighted rows.

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

    classes_: Array
    n_features_in_: int

    def __init__(
        self, *, method: Literal["auto", "exact", "binned"] = "auto", thresholds: Any = None, delta: float = 0.05
    ) -> None:
        self.method = method
        self.thresholds = thresholds
        self.delta = delta

    def __sklearn_tags__(self) -> Any:
        """It answers two classes at most."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DecisionStump:
        """Find the best stump on rows X (n, d) with labels y (n,)."""
        from surelearn.boosting.search import run

        rows = fit_rows(self, X, y, sample_weight)
        columns = number_columns(rows.X, self.method, self.thresholds)
        made = run(columns, rows.labels, rows.classes.size, rows.weights, 1)
        self.classes_ = rows.classes
        self.feature_, self.below_, self.above_ = int(made.features[0]), int(made.below[0]), int(made.above[0])
        self.threshold_ = columns.threshold(self.feature_, int(made.cuts[0]))
        self.error_ = float(made.errors[0])
        self.facts_ = {
            "n": rows.X.shape[0],
            "d": rows.X.shape[1],
            "classes": int(rows.classes.size),
            "uniform": rows.uniform,
            "method": "binned" if columns.binned else "exact",
            "training_errors": int(made.wrong[0]),
            "training_error": float(made.wrong[0] / rows.X.shape[0]),
            "vc_dimension": int(bounds.vc_dimension_of_stumps(rows.X.shape[1])),
        }
        if self.thresholds is not None:
            self.facts_["class_size"] = class_size(self.thresholds, rows.X.shape[1])
        return self

    def decision_function(self, X: Any) -> Array:
        """1 for the second of two classes and −1 for the first (n,); else 1 for the class answered, and 0 (n, K)."""
        answers = self._answer(X)
        if self.classes_.size == 2:
            return 2.0 * answers - 1.0
        return np.eye(self.classes_.size)[answers]

    def predict(self, X: Any) -> Array:
        """The class of the side that each row is on."""
        answers = self._answer(X)
        return self.classes_[answers]

    def _answer(self, X: Any) -> Array:
        X = predict_rows(self, X)
        return np.where(X[:, self.feature_] <= self.threshold_, self.below_, self.above_)

    def _claim(self, writer: Writer) -> None:
        write_stump_claims(writer, self.facts_)
