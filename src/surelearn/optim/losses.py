"""Objectives of linear predictors and what theorems ask of them: smoothness L, strong convexity m,
the Lipschitz constant ρ. The losses are those of `surelearn.losses`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from surelearn.losses import LOSSES, ConvexLoss, find_loss, huber
from surelearn.types import AnyArray, Array, RowsLike

__all__ = [
    "LOSSES",
    "ConvexLoss",
    "Function",
    "RegularizedRisk",
    "eigenvalue_range",
    "find_loss",
    "huber",
]

EXACT = 2000  # up to so many columns (or rows) eigenvalues are computed, beyond them bounded


@dataclass(frozen=True)
class Function:
    """A differentiable function with the constants that theorems ask for.

    ``smoothness`` is L, ``strong_convexity`` m (0: merely convex); ``lower`` is a number that f
    never falls below.
    """

    value: Callable[[Array], float]
    gradient: Callable[[Array], Array]
    smoothness: float
    strong_convexity: float = 0.0
    convex: bool = True
    lower: float = -math.inf


class RegularizedRisk:
    """f(w) = (1/n) Σ ℓ(⟨w, x_i⟩, y_i) + λ‖w‖², with its L and m: H = (1/n) Xᵀdiag(ℓ″)X + 2λI.

    L = sup ℓ″·λ_max(XᵀX)/n + 2λ and m = inf ℓ″·λ_min(XᵀX)/n + 2λ, rounded outward; for more than
    2,000 rows and columns λ_max is bounded by ‖X‖_F² and λ_min by 0, so that steps are smaller than
    they could be, never too large.

    Parameters
    ----------
    X : (n, d), dense or CSR; append a column of ones for a bias
    y : labels −1 and 1 for a loss of the margin, numbers for one of the residual
    loss : "squared", "huber", "logistic", "hinge", … or a `ConvexLoss`
    regularization : λ ≥ 0

    Examples
    --------
    >>> f = RegularizedRisk(np.eye(2), [1.0, -1.0], "logistic", 0.1)
    >>> round(f.smoothness, 6), f.strong_convexity
    (0.325, 0.2)
    """

    convex = True
    lower = 0.0

    def __init__(
        self, X: RowsLike, y: npt.ArrayLike, loss: str | ConvexLoss, regularization: float = 0.0
    ) -> None:
        rows: Any = X  # SciPy has no types
        self.X: Any = rows.tocsr() if sparse.issparse(rows) else np.asarray(rows, dtype=float)
        self.y = np.asarray(y, dtype=float)
        self.loss = find_loss(loss)
        self.regularization = float(regularization)
        if self.X.ndim != 2 or self.y.shape != (self.X.shape[0],) or not len(self.y):
            raise ValueError(
                f"X must be (n, d) and y (n,) with n ≥ 1, not {self.X.shape} and {self.y.shape}"
            )
        if not 0 <= self.regularization < math.inf:
            raise ValueError(
                f"regularization must be a number of at least 0, not {regularization!r}"
            )
        if self.loss.of == "margin" and not np.isin(self.y, (-1.0, 1.0)).all():
            raise ValueError(
                f"y must be −1 and 1 for the {self.loss.name} loss: write 2*y - 1 for labels 0"
                " and 1"
            )
        low, high = eigenvalue_range(self.X)
        n, ridge = len(self.y), 2 * self.regularization
        self.smoothness = self.loss.curvature * high / n + ridge if high > 0 else ridge
        self.strong_convexity = self.loss.least_curvature * low / n + ridge

    @property
    def dimension(self) -> int:
        """How many weights there are."""
        return self.X.shape[1]

    def value(self, w: Array) -> float:
        """f(w)."""
        losses = self.loss.of_scores(self.X @ w, self.y)
        return float(np.mean(losses) + self.regularization * (w @ w))

    def gradient(self, w: Array) -> Array:
        """∇f(w), or a subgradient where the loss has a kink."""
        slopes = self.loss.slope_of_scores(self.X @ w, self.y)
        return self.X.T @ slopes / len(self.y) + 2 * self.regularization * w

    def value_of_row(self, i: int, w: Array) -> float:
        """ℓ(⟨w, x_i⟩, y_i) + λ‖w‖²."""
        loss = self.loss.of_scores(self._row(i) @ w, self.y[i])
        return float(loss + self.regularization * (w @ w))

    def gradient_of_row(self, i: int, w: Array) -> Array:
        """Its (sub)gradient: an unbiased estimate of ∇f for a random row."""
        x = self._row(i)
        slope = self.loss.slope_of_scores(x @ w, self.y[i])
        return float(slope) * x + 2 * self.regularization * w

    def lipschitz(self, radius: float) -> float:
        """The largest gradient of a single row's loss over ‖w‖ ≤ radius: max_i |ℓ′|·‖x_i‖ +
        2λ·radius.
        """
        squares = (
            self.X.multiply(self.X).sum(axis=1)
            if sparse.issparse(self.X)
            else np.square(self.X).sum(axis=1)
        )
        norms = np.sqrt(np.asarray(squares, dtype=float).ravel())
        slopes: Any = self.loss.lipschitz
        if math.isinf(slopes):  # convex: |ℓ′| is largest at the ends of the range of t
            reach = norms * radius
            ends = (
                (-reach, reach) if self.loss.of == "margin" else (-reach - self.y, reach - self.y)
            )
            slopes = np.maximum(*(np.abs(self.loss.derivative(end)) for end in ends))
        return float(np.max(slopes * norms) + 2 * self.regularization * radius)

    def _row(self, i: int) -> Array:
        return self.X[i].toarray().ravel() if sparse.issparse(self.X) else self.X[i]


def eigenvalue_range(X: AnyArray | sparse.csr_array) -> tuple[float, float]:
    """Numbers below the smallest and above the largest eigenvalue of XᵀX."""
    n, d = X.shape
    if min(n, d) > EXACT:
        return 0.0, float((np.square(X) if isinstance(X, np.ndarray) else X.multiply(X)).sum())
    gram = X.T @ X if d <= n else X @ X.T
    values = np.linalg.eigvalsh(gram if isinstance(gram, np.ndarray) else gram.toarray())
    rounding = float((n + d) * np.finfo(float).eps * values.sum())
    return max(0.0, float(values[0]) - rounding) if d <= n else 0.0, max(
        0.0, float(values[-1]) + rounding
    )
