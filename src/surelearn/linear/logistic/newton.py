"""Newton's method to the minimizer of regularized logistic regression, where dK weights fit a matrix.

    F(W) = (1/n)·Σ s_i·loss_i(W) + λ‖W‖²,  ∇²F = (1/n)·Σ s_i·(diag(p_i) − p_i p_iᵀ) ⊗ x_i x_iᵀ + 2λI

for K classes with probabilities p_i, and (1/n)·Σ s_i·p_i(1 − p_i)·x_i x_iᵀ + 2λI for two. A factor of
the matrix is expensive beside a product with it, and serves several steps: the equations of a step
are solved by conjugate gradients with the last factor as their preconditioner, in a few iterations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse
from scipy.linalg import blas

from surelearn.losses import LOGISTIC
from surelearn.types import Array, Ints

MOST_STEPS = 100
_SMALL = 1e-12  # norm of the gradient at which to stop
_STALE = 8  # iterations of conjugate gradients from which a new factor is cheaper
_PIECE = 2**22  # numbers in a piece of the rows' contributions to the matrix: 32 MB
_DENSE = 0.25  # share of values that are not zero, from which rows are made dense


@dataclass(frozen=True, eq=False)
class Softmax:
    """F for rows and labels; two classes have one column of weights.

    Attributes
    ----------
    rows : (n, d), dense or compressed sparse rows, padded where there is an intercept
    labels : (n,) the number of each row's class, 0 or 1 for two
    weights : (n,) s_i of mean 1, or empty for equal ones
    classes : K columns of weights; 1 for two classes
    regularization : λ
    """

    rows: Array | sparse.csr_matrix
    labels: Ints
    weights: Array
    classes: int
    regularization: float

    @classmethod
    def of(
        cls,
        X: sparse.csr_matrix,
        labels: Ints,
        weights: Array,
        classes: int,
        regularization: float,
    ) -> Softmax:
        """Rows with few zeros are made dense, whose products are faster."""
        few = X.nnz >= _DENSE * X.shape[0] * X.shape[1]
        return cls(X.toarray() if few else X, labels, weights, classes, regularization)

    def at(self, W: Array) -> tuple[float, Array]:
        """F at W (d, K), and the probabilities (n, K) of the classes (of the second of two)."""
        scores = np.asarray(self.rows @ W)  # (n, K)
        # the losses of `surelearn.losses`, with the probabilities that their slopes need
        if self.classes == 1:
            z = np.where(self.labels == 1, scores[:, 0], -scores[:, 0])
            losses = LOGISTIC.value(z)
            P = 1.0 / (1.0 + np.exp(-np.clip(scores, -700.0, 700.0)))
        else:
            scores -= scores.max(axis=1, keepdims=True)
            own = scores[np.arange(len(scores)), self.labels]
            P = np.exp(scores, out=scores)
            total = P.sum(axis=1)
            losses = np.log(total) - own
            P /= total[:, None]
        loss = losses.mean() if not self.weights.size else self.weights @ losses / len(losses)
        return float(loss + self.regularization * np.vdot(W, W)), P

    def gradient(self, W: Array, P: Array) -> Array:
        """∇F at W (d, K), where the classes have the probabilities P."""
        gaps = P.copy()
        if self.classes == 1:
            gaps[:, 0] -= self.labels
        else:
            gaps[np.arange(len(gaps)), self.labels] -= 1.0
        return self._pulled(gaps) + 2 * self.regularization * W

    def curved(self, P: Array, V: Array) -> Array:
        """∇²F times V (d, K)."""
        U = np.asarray(self.rows @ V)  # (n, K)
        if self.classes == 1:
            U *= P * (1.0 - P)
        else:
            U *= P
            U -= P * U.sum(axis=1, keepdims=True)
        return self._pulled(U) + 2 * self.regularization * V

    def matrix(self, P: Array) -> Array:
        """∇²F, (dK, dK) with the classes' blocks one after another; its lower half."""
        n, d = self.rows.shape
        K = self.classes
        H = np.zeros((d * K, d * K), order="F")
        for rows in _pieces(n, max(1, _PIECE // (d * K))):
            part = self.rows[rows]
            A = part if isinstance(part, np.ndarray) else part.toarray()  # (m, d)
            Q, s = P[rows], self.weights[rows] if self.weights.size else 1.0
            if K == 1:
                spread = np.sqrt(s * (Q[:, 0] * (1.0 - Q[:, 0])))[:, None] * A
                H = blas.dsyrk(1.0, spread.T, beta=1.0, c=H, overwrite_c=1, lower=1)
                continue
            # −Σ (p ⊗ x)(p ⊗ x)ᵀ in one product, and Σ p_k·x xᵀ beside the diagonal
            root = np.sqrt(s)[:, None] * Q if self.weights.size else Q
            spread = (root[:, :, None] * A[:, None, :]).reshape(len(A), -1)  # (m, K·d)
            H = blas.dsyrk(-1.0, spread.T, beta=1.0, c=H, overwrite_c=1, lower=1)
            for k in range(K):
                block = slice(k * d, (k + 1) * d)
                H[block, block] += A.T @ ((s * Q[:, k])[:, None] * A)
        H /= n
        H[np.diag_indices(d * K)] += 2 * self.regularization
        return H

    def _pulled(self, G: Array) -> Array:
        """(1/n)·Σ s_i·x_i g_iᵀ, (d, K)."""
        G = self.weights[:, None] * G if self.weights.size else G
        return np.asarray(self.rows.T @ G) / self.rows.shape[0]


def minimize(problem: Softmax, W: Array) -> Array:
    """The minimizer, from W (d, K) on, until the gradient is rounding.

    Raises
    ------
    scipy.linalg.LinAlgError
        if rounding leaves no positive definite matrix: columns of very different sizes
    """
    (value, P), factor = problem.at(W), None
    G = problem.gradient(W, P)
    for _ in range(MOST_STEPS):
        if (length := float(np.linalg.norm(G))) <= _SMALL:
            break
        if factor is None:
            factor = _inverse(problem.matrix(P), G.shape)
            step, iterations = -factor(G), 0
        else:
            precision = max(1e-10, min(0.1, length))
            step, iterations = _conjugate(problem, P, factor, -G, precision)
        slope, share = float(np.vdot(G, step)), 1.0
        new, after = problem.at(W + step)
        # Armijo's rule, up to rounding
        while not new <= value + 1e-4 * share * slope + 1e-14 * abs(value) and share > 1e-8:
            share /= 2
            new, after = problem.at(W + share * step)
        beyond = problem.gradient(W + share * step, after)
        if not new <= value + 1e-14 * abs(value) or (
            new >= value and np.linalg.norm(beyond) >= length
        ):
            break
        W, value, P, G = W + share * step, new, after, beyond
        if iterations > _STALE or share < 1.0:
            factor = None
    return W


def _inverse(H: Array, shape: tuple[int, ...]) -> Callable[[Array], Array]:
    """H⁻¹ of (d, K) matrices, from the lower half of H."""
    made = linalg.cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
    return lambda R: linalg.cho_solve(made, R.T.ravel(), check_finite=False).reshape(shape[::-1]).T


def _conjugate(
    problem: Softmax,
    P: Array,
    inverse: Callable[[Array], Array],
    right: Array,
    precision: float,
) -> tuple[Array, int]:
    """∇²F⁻¹ times ``right`` by preconditioned conjugate gradients, and their iterations."""
    x, r, goal = np.zeros_like(right), right.copy(), precision * float(np.linalg.norm(right))
    z = inverse(r)
    p, size = z, float(np.vdot(r, z))
    for count in range(1, 4 * _STALE + 1):
        curved = problem.curved(P, p)
        share = size / float(np.vdot(p, curved))
        x, r = x + share * p, r - share * curved
        if float(np.linalg.norm(r)) <= goal:
            return x, count
        z = inverse(r)
        before, size = size, float(np.vdot(r, z))
        p = z + (size / before) * p
    return x, 4 * _STALE


def _pieces(n: int, length: int) -> list[slice]:
    return [slice(k * length, (k + 1) * length) for k in range(math.ceil(n / length))]
