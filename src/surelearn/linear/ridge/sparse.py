"""Ridge regression on sparse rows that are too many to make dense: LSQR, which never forms XᵀX."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsqr

from surelearn.linear.intercept import Intercept
from surelearn.linear.ridge.spectrum import Array

TOLERANCE = 1e-14


def operator_of(X: Any, shares: Array, x_mean: Array, intercept: Intercept) -> LinearOperator:
    """The design √share·(x, 1) or √share·(x − mean) of sparse rows, as products only."""
    n, d = X.shape
    roots = np.sqrt(shares)
    Xt = X.T.tocsr()
    if intercept == "regularized":

        def forward(w: Array) -> Array:
            return roots * (X @ w[:-1] + w[-1])

        def back(r: Array) -> Array:
            r = roots * r
            return np.append(Xt @ r, r.sum())

        return LinearOperator((n, d + 1), matvec=forward, rmatvec=back, dtype=float)  # pyright: ignore[reportCallIssue]
    return LinearOperator(  # pyright: ignore[reportCallIssue]
        (n, d),
        matvec=lambda w: roots * (X @ w - x_mean @ w),
        rmatvec=lambda r: Xt @ (roots * r) - x_mean * (roots @ r),
        dtype=float,
    )


def solve_sparse(
    X: Any, Y: Array, shares: Array, regularization: float, intercept: Intercept
) -> tuple[Array, Array, float]:
    """Weights (d, t), intercept (t,) and ‖∇‖/2 at them, by LSQR (C. Paige and M. Saunders, 1982)
    with √λ as its damping.

    LSQR starts at 0 and so gives the solution of smallest norm where λ = 0.
    """
    x_mean, y_mean = np.zeros(X.shape[1]), np.zeros(Y.shape[1])
    if intercept == "free":
        x_mean, y_mean = np.asarray(X.T @ shares).ravel(), shares @ Y
    A = operator_of(X, shares, x_mean, intercept)
    B = np.sqrt(shares)[:, None] * (Y - y_mean)
    damp = float(np.sqrt(regularization))
    limit = 20 * min(A.shape) + 1000
    W = np.empty((A.shape[1], Y.shape[1]))
    slope = 0.0
    for j, b in enumerate(B.T):
        w = lsqr(A, b, damp=damp, atol=TOLERANCE, btol=TOLERANCE, conlim=0, iter_lim=limit)[0]
        # once more on what is left: LSQR's stopping rule is relative to the size of w, the
        # residual's is not
        left, pull = b - A.matvec(w), A.rmatvec(b - A.matvec(w)) - regularization * w
        if float(np.linalg.norm(pull)) > TOLERANCE * float(np.linalg.norm(A.rmatvec(b))):
            step = _refine(A, left, w, damp, limit)
            again = A.rmatvec(b - A.matvec(w + step)) - regularization * (w + step)
            if float(np.linalg.norm(again)) < float(np.linalg.norm(pull)):
                w, pull = w + step, again
        W[:, j] = w
        slope += float(pull @ pull)
    if intercept == "regularized":
        return W[:-1], W[-1], float(np.sqrt(slope))
    return W, y_mean - x_mean @ W, float(np.sqrt(slope))


def sparse_slope(
    X: Any,
    Y: Array,
    shares: Array,
    regularization: float,
    intercept: Intercept,
    coef: Array,
    bias: Array,
) -> tuple[float, float]:
    """‖∇‖/2 at weights (d, t) and intercept (t,), and the size of the terms that it is the
    difference of.
    """
    x_mean, y_mean = np.zeros(X.shape[1]), np.zeros(Y.shape[1])
    if intercept == "free":
        x_mean, y_mean = np.asarray(X.T @ shares).ravel(), shares @ Y
    A = operator_of(X, shares, x_mean, intercept)
    B = np.sqrt(shares)[:, None] * (Y - y_mean)
    W = np.vstack([coef, bias]) if intercept == "regularized" else coef
    pulls = [A.rmatvec(b - A.matvec(w)) - regularization * w for w, b in zip(W.T, B.T, strict=True)]
    return float(np.linalg.norm(pulls)), float(np.linalg.norm([A.rmatvec(b) for b in B.T]))


def _refine(A: LinearOperator, left: Array, w: Array, damp: float, limit: int) -> Array:
    """The step that minimizes ‖A step − left‖² + λ‖step + w‖², as one augmented system."""
    n, d = A.shape
    both = LinearOperator(  # pyright: ignore[reportCallIssue]
        (n + d, d),
        matvec=lambda v: np.concatenate([A.matvec(v), damp * v]),
        rmatvec=lambda r: A.rmatvec(r[:n]) + damp * r[n:],
        dtype=float,
    )
    target = np.concatenate([left, -damp * w])
    return lsqr(both, target, atol=TOLERANCE, btol=TOLERANCE, conlim=0, iter_lim=limit)[0]
