"""Which rows a support vector machine would miss most, by one step of its dual problem.

Without row i its coefficient β_i goes to 0, and those of the rows on the margin move so that these
stay on it: one linear system for all rows (O. Chapelle, V. Vapnik and others, Machine Learning 46,
2002; G. Cauwenberghs and T. Poggio, NIPS 2000). The step is exact while no other row reaches the
margin or leaves it. A row that is no support vector changes nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.attacks.influence import Influence
from surelearn.lacking import Lacking
from surelearn.losses import HINGE
from surelearn.subject import subject_of
from surelearn.subject.machines import DualMachine
from surelearn.types import Array, Model, RowsLike

_MOST_VECTORS = 2000  # the system has the square of these as entries
_NEAR = 1e-6  # of the largest coefficient: that far from 0 and from it a row is on the margin


def dual_influence(
    model: Model, X: RowsLike, X_outer: RowsLike, y_outer: npt.ArrayLike
) -> Influence | Lacking:
    """By how much the hinge loss on other rows rises without each support vector, by one step of
    the dual problem.

    Parameters
    ----------
    model : a fitted support vector machine, scikit-learn's or ours, also at the end of a pipeline
    X : the rows that it was fitted to
    X_outer, y_outer : rows on which the loss is looked at

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> X, y = np.array([[0.0], [1.0], [1.6], [3.0], [4.0], [1.4]]), np.array([0, 0, 0, 1, 1, 1])
    >>> found = dual_influence(SVC(kernel="linear").fit(X, y), X, X[:5], y[:5])
    >>> found.method, found.rows.tolist(), int(found.top(1)[0])
    ('dual step', [1, 2, 3, 5], 1)
    """
    subject = subject_of(model)
    dual, classes = subject.dual, subject.learner.classes
    if isinstance(dual, Lacking):
        return dual
    machines, kernel = dual.machines, dual.kernel
    if not machines or classes is None or sum(one.rows.size for one in machines) > _MOST_VECTORS:
        return Lacking("influence", f"it has no support vectors, or more than {_MOST_VECTORS:,}")
    Z, points = (_rows(subject.prepared(part)) for part in (X, X_outer))
    codes = (np.asarray(y_outer)[:, None] == np.asarray(classes)).argmax(axis=1)
    rise = np.zeros(Z.shape[0])
    for one in machines:
        own = (codes == one.pair[0]) | (codes == one.pair[1])
        if not own.any():
            continue
        sign = np.where(codes[own] == one.pair[1], 1.0, -1.0)[:, None]
        there, inside = kernel(points[own], Z[one.rows]), kernel(Z[one.rows], Z[one.rows])
        full = (there @ one.beta + one.bias)[:, None]
        moved = full + steps(one, inside, there)
        rises = HINGE.of_scores(moved, sign) - HINGE.of_scores(full, sign)
        rise[one.rows] += rises.sum(axis=0) / len(codes)
    rows = np.unique(np.concatenate([one.rows for one in machines]))
    return Influence(rows, rise[rows], np.full(len(rows), np.nan), "dual step")


def _rows(Z: RowsLike) -> Any:
    return Z if hasattr(Z, "tocsr") else np.asarray(Z, dtype=float)


def steps(one: DualMachine, inside: Array, there: Array) -> Array:
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
        system = np.block(
            [[system, np.ones((at.size, 1))], [np.ones((1, at.size)), np.zeros((1, 1))]]
        )
        sent, reach = np.vstack([sent, one.beta]), np.column_stack([reach, np.ones(len(there))])
    inverse = np.linalg.pinv(system, rcond=1e-10, hermitian=True) if len(system) else system
    change = reach @ (inverse @ sent) - there * one.beta
    diagonal = inverse.diagonal()[: at.size]
    kept = np.where(diagonal > 0, diagonal, np.inf)
    change[:, at] = -(reach @ inverse)[:, : at.size] * (one.beta[at] / kept)
    return change
