"""A canary: one row with a wrong label, and how well models fitted with it know it, beside models
fitted without it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelearn.attacks.membership_evidence import membership_evidence
from surelearn.lacking import Lacking
from surelearn.subject import subject_of
from surelearn.subject.refitting import fit_quietly, take
from surelearn.types import AnyArray, Array, Ints, Model, RowsLike


@dataclass(frozen=True, eq=False, kw_only=True)
class CanaryScores:
    """How well refits know the canary's wrong label, for `epsilon_from_retrainings`.

    Attributes
    ----------
    inside, outside : (refits,) evidence of models fitted with the canary, and without it
    epsilon, dp_delta : what the certificate of a refit claims
    """

    inside: Array
    outside: Array
    epsilon: float
    dp_delta: float


def canary_scores(
    model: Model,
    unfitted: Model,
    X: RowsLike,
    y: AnyArray,
    *,
    tried: npt.NDArray[np.intp],
    seeds: Ints,
) -> CanaryScores | Lacking:
    """Refit a private classifier with and without one row whose label is wrong, noise drawn anew in
    each.

    The row is the one of those ``tried`` that the model is surest about, so that a wrong label
    pulls hardest.

    Parameters
    ----------
    model : fitted, to choose the row by
    unfitted : the classifier to fit; its certificate claims ε
    X, y : training rows and their classes
    tried : positions among which the row is chosen
    seeds : (refits, 2), for fits with the row and without it

    Examples
    --------
    >>> from surelearn.linear import DPLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2)); y = (X[:, 0] > 0).astype(int)
    >>> private = DPLogisticRegression(epsilon=1.0, random_state=0)
    >>> seeds = np.arange(6).reshape(3, 2)
    >>> found = canary_scores(private.fit(X, y), private, X, y, tried=np.arange(60), seeds=seeds)
    >>> found.inside.shape, found.outside.shape, found.epsilon <= 1.0
    ((3,), (3,), True)
    """
    sure = membership_evidence(model, take(X, tried), y[tried], task="classification")
    if isinstance(sure, Lacking):
        return sure
    row = tried[int(np.argmax(sure.evidence))]
    marked = y.copy()
    marked[row] = np.unique(y[y != y[row]])[0]
    sets = (np.arange(len(y)), np.delete(np.arange(len(y)), row))
    scores, fitted = np.empty(seeds.shape), model
    for i, j in np.ndindex(scores.shape):
        fitted = fit_quietly(seeded(unfitted, int(seeds[i, j])), take(X, sets[j]), marked[sets[j]])
        told = membership_evidence(fitted, take(X, [row]), marked[[row]], task="classification")
        if isinstance(told, Lacking):
            return told
        scores[i, j] = told.evidence[0]
    certificate = subject_of(fitted).certificate
    if isinstance(certificate, Lacking):
        return certificate
    claim = certificate["epsilon"]
    return CanaryScores(
        inside=scores[:, 0],
        outside=scores[:, 1],
        epsilon=claim.value,
        dp_delta=claim.inputs["dp_delta"],
    )


def seeded(model: Model, seed: int) -> Model:
    """A copy whose every ``random_state`` is the seed: noise must be drawn anew."""
    from sklearn.base import clone

    copied = clone(model)
    names = [name for name in copied.get_params() if name.rpartition("__")[2] == "random_state"]
    return copied.set_params(**dict.fromkeys(names, seed))
