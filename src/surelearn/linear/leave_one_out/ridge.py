"""Ridge regression without each row in turn, by Sherman–Morrison from one factorization."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, lapack

from surelearn.linear.ridge.spectrum import Array, Design, Intercept, Spectrum

# XᵀX + nλI up to this condition number loses at most six of sixteen digits; beyond, the SVD
CHOLESKY_CONDITION = 1e6


@dataclass(frozen=True, eq=False)
class RidgeWithout:
    """The fits without one row, from w, (XᵀX + nλI)⁻¹x_i and e_i/(1 − h_i)."""

    W: Array  # (d, t), or (d + 1, t) if padded
    left: Array  # (n, r), and
    right: Array  # (r, d): their product holds (XᵀX + nλI)⁻¹x_i for every row
    missed: Array  # (n, t), e_i/(1 − h_i): target less the prediction of the fit without the row
    targets: Array  # (n, t)
    x_mean: Array  # (d,), zero unless centered
    y_mean: Array  # (t,)
    intercept: Intercept
    flat: bool

    def _drop(self, values: Array) -> Array:
        return values[..., 0] if self.flat else values

    def _all(self) -> Array:
        # (n, d, t)
        return self.W[None] - (self.left @ self.right)[:, :, None] * self.missed[:, None, :]

    def weights(self) -> Array:
        """(n, d), or (n, d, t)."""
        every = self._all()
        return self._drop(every[:, :-1] if self.intercept == "regularized" else every)

    def intercepts(self) -> Array:
        """(n,), or (n, t). A free one: the column of ones is orthogonal to the centered rows
        and has (1ᵀ1)⁻¹ = 1/n.
        """
        if self.intercept == "none":
            return self._drop(np.zeros_like(self.missed))
        if self.intercept == "regularized":
            return self._drop(self.W[-1] - (self.left @ self.right[:, -1])[:, None] * self.missed)
        along = (
            self.x_mean @ self.W - (self.left @ (self.right @ self.x_mean))[:, None] * self.missed
        )
        return self._drop(self.y_mean - self.missed / len(self.missed) - along)

    @property
    def scores(self) -> Array:
        """Each row's prediction by the fit without it."""
        return self._drop(self.targets - self.missed)

    @property
    def full_weights(self) -> Array:
        """The fit to all rows."""
        return self._drop(self.W[:-1] if self.intercept == "regularized" else self.W)

    @property
    def full_intercept(self) -> Array:
        """Its intercept."""
        return self._drop(
            self.W[-1] if self.intercept == "regularized" else self.y_mean - self.x_mean @ self.W
        )


def ridge_without(X: Array, y: Array, total: float, intercept: Intercept) -> RidgeWithout:
    """Minimizers of Σ_{j≠i}‖x_j W − y_j‖² + total·‖W‖² for every i."""
    flat, n = y.ndim == 1, len(X)
    Y = targets = y[:, None] if flat else y
    x_mean, y_mean = np.zeros(X.shape[1]), np.zeros(Y.shape[1])
    if intercept == "regularized":
        X, x_mean = np.hstack([X, np.ones((n, 1))]), np.zeros(X.shape[1] + 1)
    elif intercept == "free":
        x_mean, y_mean = X.mean(0), Y.mean(0)
        X, Y = X - x_mean, Y - y_mean
    centered = intercept == "free"
    solution = _cholesky(X, Y, total, centered) or _decomposed(X, Y, total, centered)
    return RidgeWithout(*solution, targets, x_mean, y_mean, intercept, flat)


def _cholesky(
    X: Array, Y: Array, total: float, centered: bool
) -> tuple[Array, Array, Array, Array] | None:
    """Weights, the two factors of (XᵀX + nλI)⁻¹x_i, and e_i/(1 − h_i); None where digits would be
    lost.

    With XᵀX + nλI = RᵀR, h_i = ‖R⁻ᵀx_i‖²: a product with a triangular matrix, half the work of one
    with the inverse.
    """
    G = X.T @ X
    G.flat[:: len(G) + 1] += total
    size = float(np.abs(G).sum(0).max())
    R, info = lapack.dpotrf(G)
    if info != 0 or lapack.dpocon(R, size)[0] * CHOLESKY_CONDITION < 1:
        return None
    inverse, _ = lapack.dtrtri(R)
    whitened = blas.dtrmm(1.0, inverse, X.T, side=0, trans_a=1).T  # (n, d), rows R⁻ᵀx_i
    keep = 1 - np.einsum("ij,ij->i", whitened, whitened) - (1 / len(X) if centered else 0.0)
    if keep.min() < 1e-4:
        return None
    W = inverse @ (inverse.T @ (X.T @ Y))
    return W, whitened, inverse.T, (Y - X @ W) / keep[:, None]


def _decomposed(
    X: Array, Y: Array, total: float, centered: bool
) -> tuple[Array, Array, Array, Array]:
    """Weights and left-out residuals from the singular value decomposition, whatever the
    condition number.
    """
    n = len(X)
    root, lam = np.sqrt(1 / n), total / n
    design = Design(
        rows=root * X,
        targets=root * Y,
        shares=np.full(n, 1 / n),
        x_mean=np.zeros(X.shape[1]),
        y_mean=np.zeros(Y.shape[1]),
        intercept="free" if centered else "none",  # padded already
    )
    spectrum = Spectrum.of(design)
    missed = spectrum.leave_one_out(lam)
    if missed is None:
        raise ValueError(
            "a row determines its own prediction even with this regularization: make regularization"
            " larger"
        )
    return (
        spectrum.weights(lam),
        root * spectrum.U * (spectrum.s / (spectrum.s**2 + lam)),
        spectrum.Vt,
        missed,
    )
