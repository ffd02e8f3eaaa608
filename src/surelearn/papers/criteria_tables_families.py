"""Families to choose from: rounds of AdaBoost, principal components of a logistic regression,
the audit's candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

from surelearn.losses import LOGISTIC
from surelearn.selection import NestedFamily
from surelearn.types import AnyArray, Model

ROUNDS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
COMPONENTS = (1, 2, 4, 8, 16, 32)
_STEPS, _ENOUGH = 25, 1e-8


@dataclass(frozen=True, kw_only=True)
class Family:
    """What is chosen among.

    Attributes
    ----------
    prepare : from a table's numbers to what candidates are fitted on; it sees no labels
    candidates : for d columns and n rows
    reference : the criterion that others are compared with
    only_resampled : why no criterion but resampling is asked, where it is so
    """

    prepare: Callable[[AnyArray], Any]
    candidates: Callable[[int, int], Any]
    reference: str = "10-fold CV"
    only_resampled: str = ""


def components(X: AnyArray) -> AnyArray:
    """Rows in the coordinates of the first 32 principal components of all rows, each scaled to
    spread 1.

    Examples
    --------
    >>> components(np.array([[1.0, 1.0], [-1.0, -1.0], [2.0, 2.0], [-2.0, -2.0]])).shape
    (4, 1)
    """
    centered = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(centered.T @ centered / len(X))
    order = [i for i in np.argsort(-values)[: COMPONENTS[-1]] if values[i] > 1e-10 * values.max()]
    return centered @ vectors[:, order] / np.sqrt(values[order])


class Leading(TransformerMixin, BaseEstimator):
    """The first columns only.

    Parameters
    ----------
    columns : how many
    """

    def __init__(self, columns: int = 1) -> None:
        self.columns = columns

    def fit(self, X: AnyArray, y: AnyArray | None = None) -> Leading:  # noqa: ARG002
        """Learn nothing."""
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: AnyArray) -> AnyArray:
        """The first columns."""
        return X[:, : self.columns]


class MaximumLikelihood(ClassifierMixin, BaseEstimator):
    """Logistic regression without a penalty, by Newton's method with halved steps; labels 0 and 1.

    Where classes can be separated there is no maximum: it ends after 25 steps, with probabilities
    near 0 and 1.
    """

    fit_intercept = True

    def fit(self, X: AnyArray, y: AnyArray) -> MaximumLikelihood:
        """Maximize Σ ln p(y|x) from the weights 0."""
        design = np.column_stack([X, np.ones(len(X))])
        weights, value = np.zeros(design.shape[1]), len(y) * np.log(2)
        for _ in range(_STEPS):
            p = _sigmoid(design @ weights)
            slope = design.T @ (y - p)
            curvature = (design * (p * (1 - p))[:, None]).T @ design
            step = np.linalg.solve(curvature + 1e-10 * np.eye(len(weights)), slope)
            if slope @ step < _ENOUGH:
                break
            weights, value = _halved(design, y, weights, step, value)
        self.classes_ = np.array([0, 1])
        self.coef_, self.intercept_ = weights[None, :-1], weights[-1:]
        return self

    def predict_proba(self, X: AnyArray) -> AnyArray:
        """The probabilities of 0 and 1."""
        scores = X @ self.coef_[0] + self.intercept_
        return np.column_stack([_sigmoid(-scores), _sigmoid(scores)])

    def predict(self, X: AnyArray) -> AnyArray:
        """The likelier class."""
        return (X @ self.coef_[0] + self.intercept_ > 0).astype(int)


def _sigmoid(scores: AnyArray) -> AnyArray:
    return 1 / (1 + np.exp(-np.clip(scores, -500, 500)))


def _halved(
    design: AnyArray, y: AnyArray, weights: AnyArray, step: AnyArray, value: float
) -> tuple[AnyArray, float]:
    """The first of the step, its half, its quarter, … that lowers Σ ln(1 + exp(−±score))."""
    signs = 2 * y - 1
    for _ in range(30):
        found = float(LOGISTIC.of_scores(design @ (weights + step), signs).sum())
        if found <= value:
            return weights + step, found
        step = step / 2
    return weights, value


def _rounds(d: int, n: int) -> Any:  # noqa: ARG001
    from surelearn.boosting import AdaBoostClassifier

    return NestedFamily(AdaBoostClassifier(ROUNDS[-1]), ROUNDS)


def _components(d: int, n: int) -> Any:
    """Halfspaces in the first k of d coordinates, fewer than n; their VC dimension is k + 1."""
    from sklearn.pipeline import make_pipeline

    sizes = [k for k in COMPONENTS if k <= d and k < n / 2]
    return NestedFamily(
        make_pipeline(Leading(), MaximumLikelihood()),
        sizes,
        "leading__columns",
        capacity=_halfspaces,
    )


def _halfspaces(model: Model, d: int, n: int) -> float:  # noqa: ARG001
    return float(model[0].columns + 1)


def _audit(d: int, n: int) -> Any:
    """What an audit of version 0.2 compared, from simple to complex."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.pipeline import make_pipeline

    from surelearn.boosting import AdaBoostClassifier
    from surelearn.jobs import seed_for
    from surelearn.linear import LogisticRegression
    from surelearn.selection.candidates import Candidate
    from surelearn.selection.catalogue import named_candidates
    from surelearn.selection.preparation import preparation

    kinds = dict.fromkeys(_names(d), "number")
    trees = {"early_stopping": False, "random_state": seed_for("candidate/boosted trees", 0)}
    seed = seed_for("candidate/random forest", 0)
    own = {
        "logistic regression": LogisticRegression(
            regularization=1 / (2 * n), epochs=0, finish="newton"
        ),
        "boosted stumps": AdaBoostClassifier(n_rounds=100),
        "boosted trees": HistGradientBoostingClassifier(max_iter=100, **trees),
        "random forest": RandomForestClassifier(200, random_state=seed),
    }
    order = (
        "majority", "naive Bayes", "logistic regression", "boosted stumps", "nearest neighbors", "kernel SVM",
        "kernel machine", "boosted trees", "random forest",
    )  # fmt: skip
    return [
        Candidate(name=name, model=make_pipeline(preparation(kinds), own[name]))
        if name in own
        else Candidate(
            name=name, model=named_candidates([name], "classification", kinds, n)[0].model
        )
        for name in order
    ]


def _framed(X: AnyArray) -> Any:
    import pandas as pd

    return pd.DataFrame(X, columns=_names(X.shape[1]))


def _names(d: int) -> list[str]:
    return [f"x{i}" for i in range(d)]


FAMILIES = {
    "rounds of AdaBoost": Family(prepare=lambda X: X, candidates=_rounds),
    "components of a logistic regression": Family(prepare=components, candidates=_components),
    "the audit's candidates": Family(
        prepare=_framed,
        candidates=_audit,
        reference="audit's folds, best",
        only_resampled="their capacity and likelihood are not known",
    ),
}
