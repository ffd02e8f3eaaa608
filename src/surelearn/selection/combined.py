"""Several models as one: averaged, or stacked by a linear model of their log-probabilities; with a
single model, its probabilities calibrated.

Weights come from answers for rows that the models were not fitted on, so that no model is fitted
once more: Caruana, Niculescu-Mizil, Crew and Ksikes (2004), Ensemble selection from libraries of
models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from surelearn.lacking import Lacking
from surelearn.losses import log_loss_slopes, log_losses
from surelearn.selection.metrics import CLIP
from surelearn.subject.registry import Around, DecisionThreshold, Parts, describes
from surelearn.types import AnyArray, Array, Model, RowsLike

Members: TypeAlias = Sequence[tuple[str, Model]]
ROUNDS = 20  # of greedy weighting: weights are multiples of 1/20 or more
MOST = 4  # members of an ensemble


class _Combined(BaseEstimator):
    """What both kinds share: every member is fitted on the same rows."""

    estimators: Members
    weights: npt.ArrayLike

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inside = [get_tags(model).input_tags for _, model in self.estimators]
        tags.input_tags.sparse = all(one.sparse for one in inside)
        tags.input_tags.allow_nan = all(one.allow_nan for one in inside)
        return tags

    def _fit_members(self, X: RowsLike, y: npt.ArrayLike) -> AnyArray:
        """Fit every member; the labels or numbers, checked."""
        target = column_or_1d(y, warn=True)
        if np.iscomplexobj(target):
            raise ValueError("Complex data not supported")
        assert_all_finite(target, input_name="y")
        weights = np.asarray(self.weights, dtype=float)
        if weights.shape != (len(self.estimators),) or not np.isfinite(weights).all():
            raise ValueError(
                f"weights must be {len(self.estimators)} numbers, one for each estimator"
            )
        validate_data(self, X, skip_check_array=True)
        self.weights_ = weights
        self.estimators_ = [clone(model).fit(X, target) for _, model in self.estimators]
        return target


class CombinedClassifier(ClassifierMixin, _Combined):
    """A weighted mean of probabilities, or a stacked linear model of log-probabilities.

    Parameters
    ----------
    estimators : pairs of a name and an unfitted classifier with probabilities or scores
    weights : one for each
    offsets : what is added to each class's score, for "logarithmic"; None: nothing
    pool : "linear": Σ w_k p_k; "logarithmic": softmax of Σ w_k ln p_k + offsets. With one estimator
        that is Platt's (1999) and Guo, Pleiss, Sun and Weinberger's (2017) calibration

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> two = [("linear", LogisticRegression(max_iter=500)), ("Bayes", GaussianNB())]
    >>> CombinedClassifier(two, [0.7, 0.3]).fit(X, y).predict_proba(X[:1]).round(2)
    array([[0.99, 0.01, 0.  ]])
    """

    saved_as = "combined-classifier/1"

    def __init__(
        self,
        estimators: Members,
        weights: npt.ArrayLike,
        offsets: npt.ArrayLike | None = None,
        pool: Literal["linear", "logarithmic"] = "linear",
    ) -> None:
        self.estimators = estimators
        self.weights = weights
        self.offsets = offsets
        self.pool = pool

    def fit(self, X: RowsLike, y: npt.ArrayLike) -> CombinedClassifier:
        """Fit every estimator; weights and offsets stay as they were given."""
        if self.pool not in ("linear", "logarithmic"):
            raise ValueError(f"pool must be 'linear' or 'logarithmic', not {self.pool!r}")
        labels = self._fit_members(X, y)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        offsets = np.zeros(self.classes_.size) if self.offsets is None else self.offsets
        self.offsets_ = np.asarray(offsets, dtype=float)
        if self.offsets_.shape != (self.classes_.size,):
            raise ValueError(f"offsets must be {self.classes_.size} numbers, one for each class")
        return self

    def predict_proba(self, X: RowsLike) -> Array:
        """(n, classes)."""
        check_is_fitted(self)
        logs = [log_probabilities(model, X) for model in self.estimators_]
        return pooled(logs, self.weights_, self.offsets_ if self.pool == "logarithmic" else None)

    def predict(self, X: RowsLike) -> AnyArray:
        """The most probable class of each row."""
        chances = self.predict_proba(X)
        return self.classes_[chances.argmax(axis=1)]


class CombinedRegressor(RegressorMixin, _Combined):
    """A weighted sum of predictions.

    Parameters
    ----------
    estimators : pairs of a name and an unfitted regressor
    weights : one for each
    """

    saved_as = "combined-regressor/1"

    def __init__(self, estimators: Members, weights: npt.ArrayLike) -> None:
        self.estimators = estimators
        self.weights = weights

    def fit(self, X: RowsLike, y: npt.ArrayLike) -> CombinedRegressor:
        """Fit every estimator; weights stay as they were given."""
        self._fit_members(X, y)
        return self

    def predict(self, X: RowsLike) -> Array:
        """Σ w_k f_k(x)."""
        check_is_fitted(self)
        found = [np.asarray(model.predict(X), dtype=float) for model in self.estimators_]
        return np.tensordot(self.weights_, np.stack(found), axes=1)


def log_probabilities(model: Model, X: RowsLike) -> Array:
    """(n, classes): logarithms of a classifier's probabilities, at least `CLIP`; of one that gives
    only scores, of their softmax.
    """
    if hasattr(model, "predict_proba"):
        return np.log(np.clip(np.asarray(model.predict_proba(X), dtype=float), CLIP, 1.0))
    return of_scores(model.decision_function(X))


def of_scores(scores: npt.ArrayLike) -> Array:
    """Log-probabilities (n, classes) of scores (n,) of the second of two classes, or (n, classes).

    Examples
    --------
    >>> np.exp(of_scores([0.0, 2.0])).round(2).tolist()
    [[0.5, 0.5], [0.12, 0.88]]
    """
    found = np.asarray(scores, dtype=float)
    found = np.stack([np.zeros_like(found), found], axis=1) if found.ndim == 1 else found
    return np.log(np.clip(softmax(found, axis=1), CLIP, 1.0))


def pooled(logs: Sequence[Array], weights: Array, offsets: Array | None) -> Array:
    """Probabilities (n, classes) of members' log-probabilities: their weighted mean or, with
    offsets, the stacked model's.
    """
    if offsets is None:
        shares = weights / weights.sum()
        return sum((w * np.exp(one) for w, one in zip(shares, logs, strict=True)), start=0.0)  # type: ignore[return-value]
    scores = np.tensordot(weights, np.stack(list(logs)), axes=1) + offsets
    return softmax(scores, axis=1)


def greedy_weights(
    answers: Sequence[Array], loss: Callable[[Array], Array], rounds: int = ROUNDS, most: int = MOST
) -> Array:
    """Weights that sum to 1: from the best one on, add what lowers the mean loss most, again and
    again.

    Parameters
    ----------
    answers : one array of the same shape for each model, whose weighted mean is judged
    loss : from such a mean to the loss of each row
    rounds : additions at most; the same model may be added several times
    most : models with a weight

    Examples
    --------
    >>> truth = np.array([1.0, 2.0, 3.0])
    >>> greedy_weights([truth + 1, truth - 1, truth + 9], lambda mean: np.abs(mean - truth)).tolist()
    [0.5, 0.5, 0.0]
    """
    counts = np.zeros(len(answers), dtype=int)
    kept, least = counts.copy(), np.inf
    total: Any = 0.0
    for k in range(1, rounds + 1):  # the best of all rounds: a small weight needs several
        full = np.count_nonzero(counts) >= most
        values = [
            np.inf if full and not counts[i] else float(loss((total + one) / k).mean())
            for i, one in enumerate(answers)
        ]
        best = int(np.argmin(values))
        counts[best] += 1
        total = total + answers[best]
        if values[best] < least:
            kept, least = counts.copy(), values[best]
    return kept / max(1, kept.sum())


def stacked_weights(
    logs: Sequence[Array], codes: AnyArray, penalty: float = 1.0
) -> tuple[Array, Array]:
    """Weights of at least 0 and offsets of the stacked model with the least log loss.

    Parameters
    ----------
    logs : (n, classes) of each model, log-probabilities of rows not fitted on
    codes : (n,), the right class's position
    penalty : (penalty/n)·(‖weights − 1/K‖² + ‖offsets‖²) is added to the mean loss

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> codes = (rng.random(4000) < p).astype(int)
    >>> sure = of_scores(3 * np.log(p / (1 - p)))  # three times too sure
    >>> stacked_weights([sure], codes)[0].round(1).tolist()
    [0.3]
    """
    stack = np.stack(list(logs))
    k, n, classes = stack.shape
    center = np.concatenate([np.full(k, 1.0 / k), np.zeros(classes)])

    def objective(theta: Array) -> tuple[float, Array]:
        scores = np.tensordot(theta[:k], stack, axes=1) + theta[k:]
        slopes = log_loss_slopes(scores, codes)
        away = theta - center
        value = log_losses(scores, codes).mean() + penalty / n * (away @ away)
        by_weights = np.tensordot(stack, slopes, axes=([1, 2], [0, 1]))
        gradient = np.concatenate([by_weights, slopes.sum(axis=0)]) / n
        return float(value), gradient + 2 * penalty / n * away

    bounds = [(0.0, None)] * k + [(None, None)] * classes
    found = minimize(objective, center, jac=True, method="L-BFGS-B", bounds=bounds)
    return found.x[:k], found.x[k:]


@describes(CombinedClassifier)
def _described(model: CombinedClassifier) -> Around | Parts:
    """A single member of two classes without probabilities of its own (an SVM) answers as its
    scores say, from a threshold on; any other combination is seen from outside.
    """
    alone = getattr(model, "estimators_", ())
    members = _members(model)
    if len(alone) != 1 or model.pool != "logarithmic" or model.classes_.size != 2:
        why = Lacking("closed form", "it combines the answers of others")
        return Parts(form=why, members=members)
    (inside,), weight = alone, float(model.weights_[0])
    if hasattr(inside, "predict_proba") or not weight > 0:
        why = Lacking("closed form", "it changes the probabilities of another")
        return Parts(form=why, members=members)
    threshold = float(model.offsets_[0] - model.offsets_[1]) / weight
    cut = DecisionThreshold(model.classes_[1], threshold, "decision_function")
    return Around(inside, cut=cut)


@describes(CombinedRegressor)
def _weighted(model: CombinedRegressor) -> Parts:
    """Its predictions are the members' weighted sum, and so are their Shapley values."""
    pairs = zip(model.weights_.tolist(), model.estimators_, strict=True)
    why = Lacking("closed form", "it combines the answers of others")
    return Parts(form=why, weighted=tuple(pairs), members=_members(model))


def _members(model: _Combined) -> tuple[tuple[str, float, Model], ...]:
    """The fitted members with their names and weights."""
    fitted = getattr(model, "estimators_", ())
    return (
        tuple(
            (name, float(weight), one)
            for (name, _), weight, one in zip(model.estimators, model.weights_, fitted, strict=True)
        )
        if fitted
        else ()
    )
