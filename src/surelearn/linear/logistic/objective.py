"""The objective of logistic regression: its value, its gradient, and a finish by scikit-learn.

    F(W) = (1/n)·Σ s_i·loss_i + λ‖W‖²,    loss = ln(1 + e^{−y⟨w, x⟩}) for two classes, −ln softmax(Wx)_y for several,

with weights s_i of mean 1. W holds the bias in its last row (a padded feature 1), one column for
two classes, else one a class. Derivations are in the docstrings.
"""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError

from surelearn.linear.logistic.compiled import gaps, logistic_loss, logistic_slope
from surelearn.linear.logistic.newton import Softmax, minimize
from surelearn.linear.logistic.sgd import FREE_BIAS, NO_BIAS, PENALIZED_BIAS, Array, CompressedRows

MOST_WEIGHTS_OF_A_MATRIX = 1000
_ANY_ORDER = {"reassoc", "contract"}  # which `_rounding` allows


@dataclass(frozen=True)
class Measured:
    """F at some weights: mean loss, objective, a bound on the norm of its gradient (rounding
    included), and error rate.
    """

    loss: float
    objective: float
    gradient_norm: float
    error: float
    rounding: float


@numba.njit(cache=True, fastmath=_ANY_ORDER)
def _binary_sums(both, data, indices, indptr, targets, weights):
    """Sums of losses, of errors and of squared values; ``both`` (d + 1, 2) holds weights, and
    sums their gradients.
    """
    last = both.shape[0] - 1
    loss = errors = squares = slopes = 0.0
    b = both[last, 0]
    for i in range(indptr.size - 1):
        index, x = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        z, square = b, 0.0
        for k in range(index.size):
            value = float(x[k])
            z += both[index[k], 0] * value
            square += value * value
        squares += square
        s = weights[i] if weights.size > 0 else 1.0
        y = targets[i]
        m = y * z
        loss += s * logistic_loss(m)
        errors += s * ((z > 0) != (y > 0))
        g = s * y * logistic_slope(m)
        slopes += g
        for k in range(index.size):
            both[index[k], 1] += g * x[k]
    both[last, 1] += slopes
    return loss, errors, squares


@numba.njit(cache=True)
def _softmax_sums(both, data, indices, indptr, targets, weights):
    """As `_binary_sums`, for K classes: ``both`` (d + 1, 2K) holds weights, then gradients."""
    last, classes = both.shape[0] - 1, both.shape[1] // 2
    z = np.empty(classes)
    loss = errors = squares = 0.0
    for i in range(indptr.size - 1):
        z[:] = both[last, :classes]
        for p in range(indptr[i], indptr[i + 1]):
            squares += float(data[p]) * data[p]
            for k in range(classes):
                z[k] += both[indices[p], k] * data[p]
        s = weights[i] if weights.size > 0 else 1.0
        y = targets[i]
        errors += s * (np.argmax(z) != y)
        loss += s * gaps(z, y)
        for k in range(classes):
            z[k] *= s
            both[last, classes + k] += z[k]
        for p in range(indptr[i], indptr[i + 1]):
            for k in range(classes):
                both[indices[p], classes + k] += z[k] * data[p]
    return loss, errors, squares


@numba.njit(cache=True)
def _beside_zeros(weights, both):
    """Weights, and zeros for their gradients, in one sweep."""
    classes = weights.shape[1]
    for j in range(weights.shape[0]):
        for k in range(classes):
            both[j, k] = weights[j, k]
            both[j, classes + k] = 0.0


@numba.njit(cache=True, fastmath=_ANY_ORDER)
def _squared_norms(both, n, regularization):
    """‖g‖² and ‖w‖² without the last row, where g is the mean of the gradients plus 2λw."""
    classes = both.shape[1] // 2
    part, decay = 1.0 / n, 2.0 * regularization
    gradients = squares = 0.0
    for j in range(both.shape[0] - 1):
        for k in range(classes):
            w = both[j, k]
            g = both[j, classes + k] * part + decay * w
            gradients += g * g
            squares += w * w
    return gradients, squares


def measure(rows: CompressedRows, weights: Array, regularization: float, bias: int) -> Measured:
    """F and its gradient at ``weights`` (d + 1, K), in one pass over the rows; the penalty is
    λ‖W‖², no L1.

    A weight and its gradient stand side by side: a feature costs one place in memory.
    """
    n, (d, classes) = len(rows), weights.shape
    both = np.empty((d, 2 * classes))
    _beside_zeros(weights, both)
    sums = _binary_sums if classes == 1 else _softmax_sums
    loss, errors, squares = sums(
        both, rows.data, rows.indices, rows.indptr, rows.targets, rows.weights
    )
    gradients, penalty = _squared_norms(both, n, regularization)
    intercept = both[-1, :classes]
    of_intercept = float(intercept @ intercept)
    slope = both[-1, classes:] / n + 2 * regularization * intercept * (bias == PENALIZED_BIAS)
    slope *= bias != NO_BIAS
    rounding = _rounding(rows, squares / n, math.sqrt(penalty + of_intercept), regularization)
    gradient_norm = math.sqrt(gradients + float(slope @ slope)) + rounding
    objective = loss / n + regularization * (penalty + of_intercept * (bias == PENALIZED_BIAS))
    return Measured(loss / n, objective, gradient_norm, errors / n, rounding)


def _rounding(rows: CompressedRows, squared: float, norm: float, regularization: float) -> float:
    """How far the computed gradient is from the true one at most, in norm; N. Higham (2002), (3.5),
    first order.

    A score of m products is off by (m + 2)u·‖W‖‖x‖, and so is the derivative of the loss; a sum of
    n gradients by n·u times the sum of their norms. Twice that, for the few roundings that are not
    counted. ``squared`` is the mean of ‖x‖².
    """
    n = len(rows)
    unit = float(np.finfo(np.float64).eps)
    heaviest = float(rows.weights.max()) if rows.weights.size else 1.0
    longest = int(np.diff(rows.indptr).max()) + 10
    of_sums = math.sqrt(2.0) * (n + 10) * math.sqrt(squared + 1.0)
    return (
        2
        * unit
        * (heaviest * (of_sums + longest * norm * (squared + 1.0)) + 8 * regularization * norm)
    )


def finish(
    rows: CompressedRows, weights: Array, regularization: float, bias: int, how: str
) -> Array:
    """Go on from ``weights`` to the minimizer of F, by `newton.minimize` where F is strongly convex
    and the weights are few, else by scikit-learn's solvers, C = 1/(2nλ).

    Parameters
    ----------
    how : "newton" (a Hessian of (dK)², or conjugate gradients where that is large) or "lbfgs"
    """
    n, (d, classes) = len(rows), weights.shape
    data = rows.data.astype(np.float64)
    X = sparse.csr_matrix(
        (data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32)), shape=(n, d - 1)
    )
    if bias == PENALIZED_BIAS:
        X = sparse.hstack([X, np.ones((n, 1))], format="csr")
    few = d * classes <= MOST_WEIGHTS_OF_A_MATRIX
    if how == "newton" and few and regularization > 0 and bias != FREE_BIAS:
        with suppress(LinAlgError):
            return _newton(rows, X, weights, regularization)
    return _by_scikit_learn(rows, X, weights, regularization, bias, how)


def _newton(
    rows: CompressedRows, X: sparse.csr_matrix, weights: Array, regularization: float
) -> Array:
    """By `newton.minimize`; without an intercept the last row of the weights is 0."""
    width, classes = X.shape[1], weights.shape[1]
    labels = (rows.targets > 0).astype(np.int64) if classes == 1 else rows.targets
    problem = Softmax.of(X, labels, rows.weights, classes, regularization)
    found = np.zeros((weights.shape[0], classes))
    found[:width] = minimize(problem, np.asarray(weights[:width], dtype=np.float64))
    return found


def _by_scikit_learn(
    rows: CompressedRows,
    X: sparse.csr_matrix,
    weights: Array,
    regularization: float,
    bias: int,
    how: str,
) -> Array:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression as Peer

    n, (d, classes) = len(rows), weights.shape
    solver = (
        "lbfgs"
        if how == "lbfgs"
        else "newton-cholesky"
        if d * classes <= MOST_WEIGHTS_OF_A_MATRIX
        else "newton-cg"
    )
    # the same objective in scikit-learn's terms: C = 1/(2nλ), a penalized bias as one more column
    free = bias == FREE_BIAS
    C = 1 / (2 * n * regularization) if regularization > 0 else np.inf
    tol = 1e-8 if how == "lbfgs" else 1e-10
    peer: Any = Peer(
        C=C, solver=solver, fit_intercept=free, tol=tol, max_iter=1000, warm_start=True
    )
    start = np.ascontiguousarray(weights, dtype=np.float64)
    peer.coef_ = np.ascontiguousarray((start if bias == PENALIZED_BIAS else start[:-1]).T)
    peer.intercept_ = start[-1].copy() if free else np.zeros(classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # how far it is, is measured afterwards
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        peer.fit(X, rows.targets, sample_weight=rows.weights if rows.weights.size else None)
    found = np.zeros((d, classes))
    found[: peer.coef_.shape[1]] = peer.coef_.T
    if free:
        found[-1] = peer.intercept_
    return found
