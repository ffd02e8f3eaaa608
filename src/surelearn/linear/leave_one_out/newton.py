"""Logistic regression without each row in turn: Newton's method for all rows at once.

Write H for the full fit's Hessian, z = H^{−1/2}x and u for the step in those coordinates. Without
row i the step solves

    (I − v_i z_i z_iᵀ)u = g_i z_i − Σ_{j≠i} z_j ρ_j(⟨z_j, u⟩),    ρ_j(δ) = σ(m_j + δ) − σ(m_j) − v_j δ,

where m are the full fit's scores, v = σ'(m), and g_i the slope of the row's loss. Solving for u
with the last u on the right is Newton's method with the Hessian of the start, and costs two matrix
products for all rows. ρ is of second order, so single precision loses nothing that matters at the
usual tolerance.

Since |σ'(m + δ)/σ'(m) − 1| ≤ e^{|δ|} − 1, this is a contraction by q = e^R − 1 in the norm of the
downdated Hessian as long as |δ| ≤ R, and after a step s the solution is within q/(1 − q)·‖s‖
(Banach): a proven bound, up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve, cholesky, eigvalsh, solve_triangular

from surelearn.linear.ridge.spectrum import Array
from surelearn.losses import LOGISTIC

Indices = npt.NDArray[np.intp]
_ITERATIONS = 12  # with the shared Hessian, before rows get their own
_ENTRIES = 1 << 18  # scores held at once: small enough for the cache
# of scores, below which a Newton step needs no check: the next is at most e^0.1 − 1 times as long
_SURE_STEP = 0.1
_LARGEST_STEP = 0.4  # of scores, up to which the shared Hessian is used: q < 1/2


def newton(X: Array, signs: Array, total: float, iterations: int = 100) -> Array:
    """The minimizer of Σ ln(1 + e^{−s_j⟨w, x_j⟩}) + total·‖w‖², to rounding, by Newton's method
    with halved steps.
    """
    w = np.zeros(X.shape[1])
    scores = X @ w
    for _ in range(iterations):
        p = -LOGISTIC.derivative(signs * scores)  # and p(1 − p) is its second derivative
        gradient = 2 * total * w - X.T @ (signs * p)
        step = cho_solve(cho_factor(_hessian(X, p * (1 - p), total)), gradient)
        moved, length = X @ step, 1.0
        largest = float(np.abs(moved).max())
        if largest > _SURE_STEP:
            value = _value(signs * scores, w, total)
            while (
                length > 1e-9
                and _value(signs * (scores - length * moved), w - length * step, total) > value
            ):
                length /= 2
        w = w - length * step
        scores = X @ w
        if largest < 1e-9:  # the next step would be its square
            break
    return w


def leave_out(
    X: Array, signs: Array, total: float, full: Array, rows: Indices, tol: float
) -> tuple[Array, Array]:
    """Minimizers without each of ``rows``, (k, d), and bounds on their distances from the exact
    ones, (k,).
    """
    p = -LOGISTIC.derivative(signs * (X @ full))
    H = _hessian(X, p * (1 - p), total)
    L = cholesky(H, lower=True)
    problem = _Problem(
        Z=solve_triangular(L, X.T, lower=True).T,
        p=-LOGISTIC.derivative(-(X @ full)),
        slopes=-signs * p,
        # 0 but for rounding
        pull=solve_triangular(L, X.T @ (signs * p) - 2 * total * full, lower=True),
        smallest=float(eigvalsh(H, subset_by_index=(0, 0))[0]),
    )
    u, errors = problem.first_steps(rows), np.full(len(rows), np.inf)
    for dtype in (np.float32, np.float64)[tol < 1e-7 :]:
        if len(left := np.flatnonzero(errors > tol)):
            u[left], errors[left] = problem.iterate(u[left], rows[left], tol, dtype)
    weights = full + solve_triangular(L, u.T, lower=True, trans=1).T
    if len(left := np.flatnonzero(errors > tol)):
        weights[left], errors[left] = _own_newton(X, signs, total, full, rows[left], tol)
    return weights, errors + _rounding(
        X, total, weights, problem.smallest * problem.downdated(u, rows)[1]
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    """The rows in coordinates where the full fit's Hessian is I."""

    Z: Array  # (n, d)
    p: Array  # (n,), σ of the full fit's scores
    slopes: Array  # (n,), of the rows' losses
    pull: Array  # (d,), minus the gradient of the full fit
    smallest: float  # eigenvalue of the Hessian

    @property
    def v(self) -> Array:
        return self.p * (1 - self.p)

    def downdated(self, b: Array, rows: Indices) -> tuple[Array, Array]:
        """(I − v z zᵀ)⁻¹b for each row, by Sherman–Morrison, and 1 − v‖z‖², the smallest
        eigenvalue of what is inverted.
        """
        z, v = self.Z[rows], self.v[rows]
        keep = 1 - v * np.einsum("ij,ij->i", z, z)
        return b + (v * np.einsum("ij,ij->i", z, b) / keep)[:, None] * z, keep

    def pulls(self, rows: Indices) -> Array:
        return self.slopes[rows, None] * self.Z[rows] + self.pull

    def first_steps(self, rows: Indices) -> Array:
        """One Newton step from the full fit."""
        return self.downdated(self.pulls(rows), rows)[0]

    def iterate(
        self, u: Array, rows: Indices, tol: float, dtype: npt.DTypeLike
    ) -> tuple[Array, Array]:
        """Correct the steps ``u`` until each is within ``tol``; rows that move too far, or not
        surely enough, are not.
        """
        sums = _Sums(self.Z, self.p, self.v, dtype)
        u, errors, active = u.copy(), np.full(len(u), np.inf), np.arange(len(u))
        reach = np.sqrt(float(np.einsum("ij,ij->i", self.Z, self.Z).max()))
        for _ in range(_ITERATIONS):
            bent, R = sums.remainder(u[active], rows[active])
            new, keep = self.downdated(self.pulls(rows[active]) - bent, rows[active])
            # at least ‖s‖ in either norm
            moved = np.linalg.norm(new - u[active], axis=1) / np.sqrt(keep)
            # |δ| on the ball of radius ‖s‖ around the new step
            q = np.expm1(np.minimum(R + 2 * reach * moved, 1.0))
            rounding = 64 * sums.eps * q * np.linalg.norm(new, axis=1) / keep
            bound = np.where(q < 0.5, q / np.maximum(1 - q, 0.5) * moved + rounding, np.inf)
            u[active], errors[active] = new, bound / np.sqrt(self.smallest)
            stuck = (R > _LARGEST_STEP) | (rounding > tol * np.sqrt(self.smallest))
            active = active[(errors[active] > tol) & ~stuck]
            if not len(active):
                break
        return u, errors


class _Sums:
    """Sums of z_j ρ_j over the rows, for many steps at once."""

    def __init__(self, Z: Array, probability: Array, v: Array, dtype: npt.DTypeLike) -> None:
        self.eps = float(np.finfo(dtype).eps)
        self.Zt = np.ascontiguousarray(Z.T, dtype=dtype)  # (d, n)
        self.weighted = np.ascontiguousarray(v[:, None] * Z, dtype=dtype)  # (n, d)
        self.p = probability.astype(dtype)
        self.buffers = np.empty((3, 0, len(Z)), dtype=dtype)

    def remainder(self, u: Array, rows: Indices) -> tuple[Array, Array]:
        """Σ_{j≠i} z_j ρ_j(⟨z_j, u_i⟩), (k, d), and max_{j≠i}|⟨z_j, u_i⟩|, (k,), in pieces that
        stay in the cache.
        """
        n = self.Zt.shape[1]
        size = max(1, min(len(u), _ENTRIES // n))
        if self.buffers.shape[1] < size:
            self.buffers = np.empty((3, size, n), dtype=self.Zt.dtype)
        bent, R = np.empty(u.shape), np.empty(len(u))
        narrow = u.astype(self.Zt.dtype)
        for at in range(0, len(u), size):
            piece = narrow[at : at + size]
            # how far the step moves the score of every row but its own, and what is not linear in that
            delta, phi, other = (buffer[: len(piece)] for buffer in self.buffers)
            np.matmul(piece, self.Zt, out=delta)
            delta[np.arange(len(piece)), rows[at : at + size]] = 0
            R[at : at + size] = np.maximum(delta.max(1), -delta.min(1))
            _bend(delta, self.p, phi, other, float(R[at : at + size].max()))
            bent[at : at + size] = delta @ self.weighted
        return bent, R


def _bend(delta: Array, p: Array, phi: Array, other: Array, largest: float) -> None:
    """Turn δ into ρ/v in place, without cancellation.

    With E = e^δ − 1 = δ(1 + δφ), φ = (E − δ)/δ²: σ(m + δ) − σ(m) = vE/(1 + pE), so ρ/v = δ²(φ − p(1
    + δφ))/(1 + pδ(1 + δφ)). φ is a polynomial, as long as δ is small; rows where it is not are done
    otherwise.
    """
    terms = _terms(min(largest, _LARGEST_STEP), float(np.finfo(delta.dtype).eps))
    phi.fill(terms[-1])
    for term in terms[-2::-1]:
        np.multiply(phi, delta, out=phi)
        np.add(phi, delta.dtype.type(term), out=phi)
    np.multiply(phi, delta, out=other)
    other += 1
    other *= p  # p(1 + δφ)
    phi -= other
    other *= delta
    other += 1
    phi /= other
    np.multiply(delta, delta, out=delta)
    delta *= phi


def _terms(largest: float, eps: float) -> list[float]:
    """1/2, 1/6, 1/24, …: the coefficients of φ that matter for |δ| ≤ largest."""
    terms, k = [0.5], 2
    while terms[-1] * largest ** (k - 2) > eps and k < 24:
        k += 1
        terms.append(terms[-1] / k)
    return terms


def _own_newton(
    X: Array, signs: Array, total: float, full: Array, rows: Indices, tol: float
) -> tuple[Array, Array]:
    """Newton's method for each of ``rows``, in batches: their own Hessians, halved steps, the
    same kind of error bound.
    """
    n, d = X.shape
    weights, errors = np.empty((len(rows), d)), np.full(len(rows), np.inf)
    size = max(1, (1 << 22) // (n * d))
    for at in range(0, len(rows), size):
        piece = slice(at, at + size)
        weights[piece], errors[piece] = _batch(X, signs, total, full, rows[piece], tol)
    return weights, errors


def _batch(
    X: Array, signs: Array, total: float, full: Array, rows: Indices, tol: float
) -> tuple[Array, Array]:
    W = np.repeat(full[None], len(rows), axis=0)  # (k, d)
    errors = np.full(len(rows), np.inf)
    present = np.ones((len(rows), len(X)))
    present[np.arange(len(rows)), rows] = 0

    def values(W: Array) -> Array:
        return (present * LOGISTIC.of_scores(W @ X.T, signs)).sum(1) + total * (W**2).sum(1)

    for _ in range(100):
        p = -LOGISTIC.derivative(signs * (W @ X.T)) * present
        v = p * (1 - p)
        H = np.matmul(X.T * v[:, None, :], X)
        H[:, np.arange(X.shape[1]), np.arange(X.shape[1])] += 2 * total
        gradients = 2 * total * W - (signs * p) @ X
        steps = np.linalg.solve(H, gradients[:, :, None])[:, :, 0]
        decrement = np.sqrt(np.maximum((gradients * steps).sum(1), 0))
        eigenvalues = np.linalg.eigvalsh(H)[:, 0]
        reach = np.sqrt((X**2).sum(1).max() / eigenvalues)  # at least ‖x_j‖ in the norm of H⁻¹
        q = np.expm1(np.minimum(2 * reach * decrement, 1.0))
        errors = np.where(q < 0.5, decrement / np.maximum(1 - q, 0.5), np.inf) / np.sqrt(
            eigenvalues
        )
        if (errors <= tol).all():
            break
        length = np.ones(len(rows))
        unsure = np.abs(steps @ X.T).max(1) > _SURE_STEP
        before = values(W)
        while (
            worse := unsure & (length > 1e-9) & (values(W - length[:, None] * steps) > before)
        ).any():
            length[worse] /= 2
        W = W - length[:, None] * steps
    return W, errors


def _rounding(X: Array, total: float, weights: Array, smallest: Array) -> Array:
    """What rounding of the gradient, eps·(Σ‖x_j‖ + 2·total·‖w‖), can do to the minimizer, (k,)."""
    size = np.linalg.norm(X, axis=1).sum() + 2 * total * np.linalg.norm(weights, axis=1)
    return np.finfo(float).eps * size / np.maximum(smallest, 2 * total)


def _hessian(X: Array, v: Array, total: float) -> Array:
    H = (X * v[:, None]).T @ X
    H.flat[:: len(H) + 1] += 2 * total
    return H


def _value(margins: Array, w: Array, total: float) -> float:
    return float(LOGISTIC.value(margins).sum() + total * (w @ w))
