"""Ridge regression from one singular value decomposition: weights, residuals and leave-one-out
residuals for every λ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.linear.intercept import INTERCEPTS, Intercept

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Design:
    """Rows as the solver sees them: scaled by √(weight / total), padded with 1 or centered.

    The objective (1/Σs)·Σ s_i‖x_i W + b − y_i‖² + λ‖W‖² is ‖A W − B‖² + λ‖W‖² for these.
    """

    rows: Array  # (n, d), or (n, d + 1) if padded
    targets: Array  # (n, t)
    shares: Array  # (n,), each row's share of the total weight
    x_mean: Array  # (d,), zero unless centered
    y_mean: Array  # (t,)
    intercept: Intercept

    @classmethod
    def of(cls, X: Array, Y: Array, weights: Array | None, intercept: Intercept) -> Design:
        """Scale, then pad or center, dense ``X`` (n, d) and ``Y`` (n, t)."""
        n = len(X)
        shares = np.full(n, 1 / n) if weights is None else weights / weights.sum()
        x_mean, y_mean = np.zeros(X.shape[1]), np.zeros(Y.shape[1])
        if intercept == "regularized":
            X = np.hstack([X, np.ones((n, 1))])
        elif intercept == "free":
            x_mean, y_mean = shares @ X, shares @ Y
            X, Y = X - x_mean, Y - y_mean
        roots = np.sqrt(shares)[:, None]
        return cls(
            rows=roots * X,
            targets=roots * Y,
            shares=shares,
            x_mean=x_mean,
            y_mean=y_mean,
            intercept=intercept,
        )

    def split(self, W: Array) -> tuple[Array, Array]:
        """Weights (d, t) and intercept (t,) from the solver's weights."""
        if self.intercept == "regularized":
            return W[:-1], W[-1]
        return W, self.y_mean - self.x_mean @ W


@dataclass(frozen=True, eq=False)
class Spectrum:
    """``U diag(s) Vt`` of a `Design`, and what every λ reads off it."""

    design: Design
    U: Array  # (n, r)
    s: Array  # (r,), positive
    Vt: Array  # (r, d)
    smallest: float  # the smallest singular value, 0 where columns are dependent
    outside: Array  # (n,), 1 − ‖U_i‖² − share if centered: what of a row no weights can reach
    unreachable: Array  # (n, t), targets less their projection on the columns
    left_out: int = 0  # singular values above rounding that count as 0

    @classmethod
    def of(cls, design: Design, tol: float = 0.0) -> Spectrum:
        """Decompose; singular values below rounding, or ``tol`` of the largest, are zero."""
        U, s, Vt = np.linalg.svd(design.rows, full_matrices=False)
        largest = s[0] if s.size else 0.0
        noise = max(design.rows.shape) * np.finfo(float).eps * largest
        kept = s > max(noise, tol * largest)
        left_out = int((s > noise).sum() - kept.sum())
        smallest = float(s[-1]) if s.size and kept.all() and len(s) == design.rows.shape[1] else 0.0
        U, s, Vt = U[:, kept], s[kept], Vt[kept]
        outside = 1 - np.einsum("ij,ij->i", U, U)
        if design.intercept == "free":
            outside = outside - design.shares
        outside[outside < 1e-14 * max(design.rows.shape)] = 0.0
        unreachable = design.targets - U @ (U.T @ design.targets)
        unreachable[outside == 0] = 0.0
        return cls(design, U, s, Vt, smallest, outside, unreachable, left_out)

    @property
    def rank(self) -> int:
        """The number of independent columns."""
        return len(self.s)

    def condition(self, regularization: float) -> float:
        """σ_max/σ_min of the design augmented by √λ·I (notes, Remark 3.6); infinite for
        dependent columns and λ = 0.
        """
        largest = float(self.s[0]) if self.rank else 0.0
        low = float(np.hypot(self.smallest, np.sqrt(regularization)))
        return float(np.hypot(largest, np.sqrt(regularization))) / low if low > 0 else float("inf")

    def weights(self, regularization: float) -> Array:
        """V diag(s/(s² + λ)) Uᵀ B, shape (d, t); for λ = 0 the solution of smallest norm."""
        filtered = self.s / (self.s**2 + regularization)
        return self.Vt.T @ (filtered[:, None] * (self.U.T @ self.design.targets))

    def complements(self, regularization: float) -> Array:
        """1 − h_i, h the diagonal of the hat matrix, without the cancellation of subtracting it
        from 1.
        """
        return self.outside + self.U**2 @ (regularization / (self.s**2 + regularization))

    def residuals(self, regularization: float) -> Array:
        """Targets less predictions, shape (n, t), in the rows' own scale."""
        shrunk = (regularization / (self.s**2 + regularization))[:, None] * (
            self.U.T @ self.design.targets
        )
        return (self.unreachable + self.U @ shrunk) / np.sqrt(self.design.shares)[:, None]

    def leave_one_out(self, regularization: float) -> Array | None:
        """y_i − ŷ_i of the fit without row i, all rows, the total penalty Σs·λ held fixed: e_i/(1 −
        h_i).

        None if some row determines its own prediction (h_i = 1), so that the fit without it is not
        determined, or if combinations of columns above rounding were left out: without a row,
        others would be.
        """
        if self.left_out:
            return None
        keep = self.complements(regularization)
        if not (keep > 0).all():
            return None
        return self.residuals(regularization) / keep[:, None]

    def leave_one_out_error(self, regularization: float) -> float:
        """Σ s_i‖y_i − ŷ_i‖²/Σs of the leave-one-out predictions; infinite where they are not
        determined.
        """
        left = self.leave_one_out(regularization)
        return float("inf") if left is None else float(self.design.shares @ (left**2).sum(1))

    def generalized_cross_validation(self, regularization: float) -> float:
        """Mean squared residual / (mean of 1 − h_i)²."""
        keep = float(self.complements(regularization).mean())
        error = float(self.design.shares @ (self.residuals(regularization) ** 2).sum(1))
        return error / keep**2 if keep > 0 else float("inf")


def ridge_path(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    grid: npt.ArrayLike,
    *,
    intercept: Intercept = "free",
    sample_weight: npt.ArrayLike | None = None,
) -> dict[str, Any]:
    """Ridge regression for every λ of a grid, from one singular value decomposition.

    Parameters
    ----------
    X : dense rows, shape (n, d)
    y : targets, shape (n,) or (n, t)
    grid : values of λ beside the mean squared loss, at least 0
    intercept, sample_weight : as for `surelearn.linear.Ridge`

    Returns
    -------
    dict with ``grid`` (k,), ``coef`` (k, d) or (k, t, d), ``intercept`` (k,) or (k, t), and
    ``leave_one_out`` and ``gcv`` (k,), the two estimates of the mean squared error

    Examples
    --------
    >>> path = ridge_path([[1.0], [2.0]], [1.0, 2.0], [0.0, 2.5], intercept="none")
    >>> path["coef"].round(6).tolist()
    [[1.0], [0.5]]
    """
    X, Y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    grid = np.asarray(grid, dtype=float)
    if intercept not in INTERCEPTS:
        raise ValueError(f"intercept must be one of {', '.join(INTERCEPTS)}, not {intercept!r}")
    if grid.ndim != 1 or not grid.size or not (np.isfinite(grid) & (grid >= 0)).all():
        raise ValueError("grid must be a list of finite numbers of at least 0")
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weights is not None and not ((weights > 0).all() and np.isfinite(weights).all()):
        raise ValueError("sample_weight must be positive: leave out the rows whose weight is 0")
    design = Design.of(X, Y if Y.ndim == 2 else Y[:, None], weights, intercept)
    spectrum = Spectrum.of(design)
    fits = [design.split(spectrum.weights(lam)) for lam in grid]
    flat = (lambda a: a) if Y.ndim == 2 else (lambda a: a[:, 0])
    return {
        "grid": grid,
        "coef": flat(np.array([W.T for W, _ in fits])),
        "intercept": flat(np.array([b for _, b in fits])),
        "leave_one_out": np.array([spectrum.leave_one_out_error(lam) for lam in grid]),
        "gcv": np.array([spectrum.generalized_cross_validation(lam) for lam in grid]),
    }
