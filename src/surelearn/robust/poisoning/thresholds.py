"""Thresholds of poison for any model whose objective is known, each with what the model would
answer at its target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logit

from surelearn.claim import Claim
from surelearn.lacking import Lacking
from surelearn.robust.poisoning.classification import classification_claims
from surelearn.robust.poisoning.fit import Fit, fit_of
from surelearn.robust.poisoning.regression import mirrored
from surelearn.subject import subject_of
from surelearn.subject.registry import DecisionThreshold
from surelearn.types import AnyArray, Model, TableRows


@dataclass(frozen=True, eq=False)
class Threshold:
    """So much poison, or more, is needed to reach a target.

    Attributes
    ----------
    claim : the claim; its label names the target
    predict : rows to what the model would answer at −w, or mirrored
    """

    claim: Claim
    predict: Callable[[Any], Any]


def poisoning_thresholds(
    model: Model, X: TableRows, y: AnyArray, *, cut: DecisionThreshold | None = None
) -> tuple[Threshold, ...] | Lacking:
    """How many poisoned rows per clean row a fit withstands: what is proved of the minimizer of a
    convex loss.

    For linear classifiers, poison within the range of the columns: to flip every answer, to turn
    the weights round, to move them by half their length. For machines with a kernel and several
    classes: to reach exactly −w, one target. For regressions: to mirror every prediction, with
    targets in the range seen.

    Parameters
    ----------
    model : a fitted model, pipeline or `Subject` whose ``objective`` is known
    X, y : the rows that it was fitted to, each with the weight of one, as the model takes them
    cut : a decision threshold in place of the model's own, for what it would answer at the target

    Returns
    -------
    the thresholds, or `Lacking` with the reason why no theorem applies

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> (found,) = poisoning_thresholds(SVC().fit(X, y), X, y)
    >>> print(found.claim.label)
    poisoned rows per clean row to exactly the weights −w (one target)
    >>> round(found.claim.value, 2), float((found.predict(X) == y).mean())
    (1.25, 0.0)
    >>> from sklearn.naive_bayes import GaussianNB
    >>> print(poisoning_thresholds(GaussianNB().fit(X, y), X, y).reason[:57])
    no threshold is proved for GaussianNB with 3 classes: it
    """
    subject = subject_of(model)
    fit = fit_of(subject, X, y)
    if isinstance(fit, Lacking):
        return fit
    if subject.learner.classes is None:
        found = mirrored(fit, y)
        return found if isinstance(found, Lacking) else (Threshold(*found),)
    labels = np.asarray(subject.learner.classes)
    claims = classification_claims(fit, np.searchsorted(labels, y))
    if isinstance(claims, Lacking):
        return claims
    turned = reversed_answers(fit, labels, subject.cut if cut is None else cut)
    return tuple(Threshold(claim, turned) for claim in claims)


def reversed_answers(
    fit: Fit, labels: np.ndarray, cut: DecisionThreshold | None
) -> Callable[[Any], np.ndarray]:
    """What the model answers with −w in the place of w."""

    def predict(new: TableRows) -> np.ndarray:
        return labels[
            chosen(fit, -1.0 * fit.machines.values(fit.subject.prepared(new)), labels, cut)
        ]

    return predict


def chosen(
    fit: Fit, values: np.ndarray, labels: np.ndarray, cut: DecisionThreshold | None
) -> np.ndarray:
    """Positions of the classes that values of the machines choose, at a decision threshold if
    there is one.
    """
    if cut is None or len(labels) != 2:
        return fit.machines.choose(values)
    level = float(
        cut.threshold
        if cut.response == "decision_function"
        else logit(np.clip(cut.threshold, 0.0, 1.0))
    )
    return (values[:, 0] > (level if cut.positive == labels[1] else -level)).astype(int)
