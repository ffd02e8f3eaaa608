"""The objective of logistic regression: its value, its gradient, its constants, and a finish by scikit-learn.

    F(W) = (1/n)·Σ s_i·loss_i + λ‖W‖²,    loss = ln(1 + e^{−y⟨w, x⟩}) for two classes, −ln softmax(Wx)_y for several,

with weights s_i of mean 1. W holds the bias in its last row (a padded feature 1), one column for two classes, else one a
class. Derivations are in the docstrings.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from scipy import sparse

from surelearn.linear.logistic.sgd import FREE_BIAS, NO_BIAS, PENALIZED_BIAS, Array, Rows


@dataclass(frozen=True)
class Measured:
    """F at some weights: mean loss, objective, gradient (d + 1, K), its rounding error at most, and the error rate."""

    loss: float
    objective: float
    gradient: Array
    rounding: float
    error: float


@numba.njit(cache=True)
def _sums(w, gradient, data, indices, indptr, targets, weights):
    """Sums of losses and of errors, and the sum of the gradients of the losses, in 8-byte numbers."""
    last, classes = w.shape[0] - 1, w.shape[1]
    z = np.empty(classes)
    loss = errors = 0.0
    for i in range(indptr.size - 1):
        for k in range(classes):
            z[k] = w[last, k]
        for p in range(indptr[i], indptr[i + 1]):
            for k in range(classes):
                z[k] += w[indices[p], k] * data[p]
        s = weights[i] if weights.size > 0 else 1.0
        if classes == 1:
            m = targets[i] * z[0]
            loss += s * (math.log1p(math.exp(-abs(m))) + max(-m, 0.0))
            positive = z[0] > 0
            errors += s * (positive != (targets[i] > 0))
            z[0] = -s * targets[i] / (1.0 + math.exp(m))
        else:
            y, best = int(targets[i]), 0
            for k in range(1, classes):
                if z[k] > z[best]:
                    best = k
            errors += s * (best != y)
            top, total = z[best], 0.0
            loss -= s * (z[y] - top)
            for k in range(classes):
                z[k] = math.exp(z[k] - top)
                total += z[k]
            loss += s * math.log(total)
            for k in range(classes):
                z[k] *= s / total
            z[y] -= s
        for p in range(indptr[i], indptr[i + 1]):
            for k in range(classes):
                gradient[indices[p], k] += z[k] * data[p]
        for k in range(classes):
            gradient[last, k] += z[k]
    return loss, errors


def measure(rows: Rows, weights: Array, regularization: float, bias: int) -> Measured:
    """F and its gradient at ``weights`` (d + 1, K), in one pass over the rows; the penalty is λ‖W‖², no L1."""
    w = np.ascontiguousarray(weights, dtype=np.float64)
    gradient = np.zeros_like(w)
    loss, errors = _sums(w, gradient, rows.data, rows.indices, rows.indptr, rows.targets, rows.weights)
    n = len(rows)
    gradient /= n
    gradient[:-1] += 2 * regularization * w[:-1]
    penalty = float(np.vdot(w[:-1], w[:-1]))
    if bias == PENALIZED_BIAS:
        gradient[-1] += 2 * regularization * w[-1]
        penalty += float(np.vdot(w[-1], w[-1]))
    elif bias == NO_BIAS:
        gradient[-1] = 0.0
    rounding = _rounding(rows, math.sqrt(penalty + float(np.vdot(w[-1], w[-1]))), regularization)
    return Measured(loss / n, loss / n + regularization * penalty, gradient, rounding, errors / n)


def _rounding(rows: Rows, norm: float, regularization: float) -> float:
    """How far the computed gradient is from the true one at most, in norm; N. Higham (2002), (3.5), first order.

    A score of m products is off by (m + 2)u·‖W‖‖x‖, and so is the derivative of the loss; a sum of n gradients by n·u times
    the sum of their norms. Twice that, for the few roundings that are not counted.
    """
    n = len(rows)
    unit = float(np.finfo(np.float64).eps)
    heaviest = float(rows.weights.max()) if rows.weights.size else 1.0
    longest = int(np.diff(rows.indptr).max()) + 10
    squared = float(np.square(rows.data, dtype=np.float64).sum()) / n + 1.0  # mean ‖(x, 1)‖²
    of_sums = math.sqrt(2.0) * (n + 10) * math.sqrt(squared)
    return 2 * unit * (heaviest * (of_sums + longest * norm * squared) + 8 * regularization * norm)


def lipschitz_constant(x_bound: float, classes: int) -> float:
    """ρ of the loss in W for ‖x‖ ≤ X (padded): X for two classes, √2·X for several.

    The gradient is (p − e_y)xᵀ and ‖p − e_y‖² = Σ_{k≠y} p_k² + (1 − p_y)² ≤ 2(1 − p_y)²; for two classes it is one number
    below 1 times x.

    Examples
    --------
    >>> lipschitz_constant(2.0, 2)
    2.0
    """
    return x_bound * (1.0 if classes == 2 else math.sqrt(2.0))


def minimizer_loss_bound(x_bound: float, classes: int, regularization: float) -> float:
    """The largest loss of the minimizer on any row with ‖x‖ ≤ X (padded), whatever the sample.

    W = 0 costs ln K, so λ‖W*‖² ≤ ln K. Two classes: |⟨w, x⟩| ≤ X√(ln 2/λ). Several: scores of two classes differ by at most
    √2·X·‖W‖, and the loss is at most ln(1 + (K − 1)·e^{that}).

    Examples
    --------
    >>> round(minimizer_loss_bound(1.0, 2, 0.1), 4)
    2.7022
    """
    margin = lipschitz_constant(x_bound, classes) * math.sqrt(math.log(classes) / regularization)
    return float(np.logaddexp(0.0, math.log(classes - 1) + margin))


def finish(rows: Rows, weights: Array, regularization: float, bias: int, how: str) -> Array:
    """Go on from ``weights`` to the minimizer of F by scikit-learn's solvers, C = 1/(2nλ).

    Parameters
    ----------
    how : "newton" (a Hessian of (dK)², or conjugate gradients where that is large) or "lbfgs"
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression as Peer

    n, (d, classes) = len(rows), weights.shape
    data = rows.data.astype(np.float64)
    X = sparse.csr_matrix((data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32)), shape=(n, d - 1))
    if bias == PENALIZED_BIAS:
        X = sparse.hstack([X, np.ones((n, 1))], format="csr")
    solver = "lbfgs" if how == "lbfgs" else "newton-cholesky" if d * classes <= 1000 else "newton-cg"
    free = bias == FREE_BIAS
    C = 1 / (2 * n * regularization) if regularization > 0 else np.inf
    tol = 1e-8 if how == "lbfgs" else 1e-10
    peer: Any = Peer(C=C, solver=solver, fit_intercept=free, tol=tol, max_iter=1000, warm_start=True)
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
