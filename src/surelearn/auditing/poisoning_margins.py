"""Which rows a support vector machine would miss most, by one step of its dual problem.

Without row i its coefficient β_i goes to 0, and those of the rows on the margin move so that these stay on it: one linear
system for all rows (O. Chapelle, V. Vapnik and others, Machine Learning 46, 2002; G. Cauwenberghs and T. Poggio, NIPS 2000).
The step is exact while no other row reaches the margin or leaves it. A row that is no support vector changes nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
_MOST_VECTORS = 2000  # the system has the square of these as entries
_NEAR = 1e-6  # of the largest coefficient: that far from 0 and from it a row is on the margin


@dataclass(frozen=True, eq=False)
class Machine:
    """f(z) = Σ β_i·κ(x_i, z) + b for one pair of classes.

    Attributes
    ----------
    pair : the two classes, f is above 0 for the second
    rows : its support vectors, among all rows
    beta, most : signed coefficients, and the largest size that each may have
    bias : b
    free : whether b is free, so that Σ β_i = 0
    """

    pair: tuple[int, int]
    rows: Any
    beta: Array
    most: Array
    bias: float
    free: bool


def same_kernel(learner: Any) -> Any:
    """The learner with its kernel's width as it is, where a refit would take another from its rows."""
    from sklearn.svm import SVC

    if type(learner) is not SVC or not isinstance(learner.gamma, str) or callable(learner.kernel):
        return learner
    return copy.copy(learner).set_params(gamma=float(learner._gamma) or "scale")


def missed_most(learner: Any, Z: Any, points: Any, truth: Any) -> tuple[Any, Array] | None:
    """Support vectors, and by how much the hinge loss on new points rises without each; None for other learners."""
    found = _sklearn(learner) or _own(learner)
    if found is None:
        return None
    machines, kernel = found
    if not machines or sum(one.rows.size for one in machines) > _MOST_VECTORS:
        return None
    Z, points = (part if hasattr(part, "tocsr") else np.asarray(part, dtype=float) for part in (Z, points))
    codes = (np.asarray(truth)[:, None] == learner.classes_).argmax(axis=1)
    rise = np.zeros(Z.shape[0])
    for one in machines:
        own = (codes == one.pair[0]) | (codes == one.pair[1])
        if not own.any():
            continue
        sign = np.where(codes[own] == one.pair[1], 1.0, -1.0)[:, None]
        there, inside = kernel(points[own], Z[one.rows]), kernel(Z[one.rows], Z[one.rows])
        full = (there @ one.beta + one.bias)[:, None]
        moved = full + steps(one, inside, there)
        rise[one.rows] += (np.maximum(1 - sign * moved, 0) - np.maximum(1 - sign * full, 0)).sum(axis=0) / len(truth)
    rows = np.unique(np.concatenate([one.rows for one in machines]))
    return rows, rise[rows]


def steps(one: Machine, inside: Array, there: Array) -> Array:
    """The change of f at points without each support vector, (points, vectors).

    Parameters
    ----------
    inside, there : κ among the support vectors, and of points with them
    """
    size = np.abs(one.beta)
    at = np.flatnonzero((size > _NEAR * one.most) & (size < (1 - _NEAR) * one.most))
    system, sent = inside[np.ix_(at, at)], inside[at] * one.beta
    reach = there[:, at]
    if one.free:
        system = np.block([[system, np.ones((at.size, 1))], [np.ones((1, at.size)), np.zeros((1, 1))]])
        sent, reach = np.vstack([sent, one.beta]), np.column_stack([reach, np.ones(len(there))])
    inverse = np.linalg.pinv(system, rcond=1e-10, hermitian=True) if len(system) else system
    change = reach @ (inverse @ sent) - there * one.beta
    diagonal = inverse.diagonal()[: at.size]
    kept = np.where(diagonal > 0, diagonal, np.inf)
    change[:, at] = -(reach @ inverse)[:, : at.size] * (one.beta[at] / kept)
    return change


def _sklearn(learner: Any) -> tuple[list[Machine], Callable[[Any, Any], Array]] | None:
    """The machines of scikit-learn's SVC; those of several classes count the first of a pair as positive."""
    from sklearn.metrics.pairwise import pairwise_kernels
    from sklearn.svm import SVC

    if type(learner) is not SVC or learner.kernel == "precomputed" or not isinstance(learner.kernel, str):
        return None
    whose = np.repeat(np.arange(len(learner.classes_)), learner.n_support_)
    most = learner.C * learner.class_weight_[whose]
    machines = []
    for k, (i, j) in enumerate(combinations(range(len(learner.classes_)), 2)):
        beta = np.where(whose == i, learner.dual_coef_[j - 1], 0.0) + np.where(whose == j, learner.dual_coef_[i], 0.0)
        turn = 1.0 if len(learner.classes_) == 2 else -1.0
        held = np.flatnonzero(beta)
        bias = float(turn * learner.intercept_[k])
        machines.append(Machine((i, j), learner.support_[held], turn * beta[held], most[held], bias, True))
    options = {"gamma": learner._gamma, "degree": learner.degree, "coef0": learner.coef0}
    return machines, lambda A, B: pairwise_kernels(A, B, metric=learner.kernel, filter_params=True, **options)


def _own(learner: Any) -> tuple[list[Machine], Callable[[Any, Any], Array]] | None:
    """The machines of `SupportVectorMachine`; a penalized b is a column of ones."""
    from surelearn.kernel.functions import kernel
    from surelearn.linear import SupportVectorMachine
    from surelearn.linear.svm.votes import class_pairs

    if type(learner) is not SupportVectorMachine or learner.margin != "soft" or learner.kernel == "precomputed":
        return None
    if not learner.facts_["uniform_weights"] or learner.intercept not in ("free", "regularized", "none"):
        return None
    made, padded = kernel(learner.kernel, degree=learner.degree, sigma=learner.sigma), learner.intercept == "regularized"
    machines = []
    for k, pair in enumerate(class_pairs(len(learner.classes_))):
        beta = learner.dual_coef_[k]
        held = np.flatnonzero(beta)
        most, bias = np.full(held.size, learner.facts_["C"]), 0.0 if padded else float(learner.intercept_[k])
        free = learner.intercept == "free"
        machines.append(Machine((pair[0], pair[1]), learner.support_[held], beta[held], most, bias, free))
    return machines, lambda A, B: np.asarray(made(A, B)) + float(padded)
