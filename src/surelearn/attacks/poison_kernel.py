"""Kernel ridge regression as the learner that a bilevel attack faces: poison moves the fit and
is one of its centers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.spatial.distance import cdist

from surelearn import profiles
from surelearn.attacks.poison_allowed import Array
from surelearn.earlier import EarlierNames, reads_earlier_names


@reads_earlier_names
@dataclass(frozen=True, kw_only=True)
class KernelRidgeObjective(EarlierNames):
    """(1/n)·Σ(f(x_i) − y_i)² + λ‖f‖² in the RKHS of exp(−‖x − z‖²/(2h²)), solved exactly: f = Σ
    α_i·k(x_i, ·), (K + nλI)α = y.

    Attributes
    ----------
    bandwidth : h, the length of the Gaussian kernel
    regularization : λ > 0

    Examples
    --------
    >>> learner = KernelRidgeObjective(bandwidth=1.0, regularization=0.5)
    >>> X, y = np.array([[0.0], [9.0]]), np.array([1.0, -1.0])
    >>> round(learner.risk(learner.fit(X, y), X, y), 6)
    0.25
    """

    bandwidth: float
    regularization: float
    earlier = {"sigma": profiles.bandwidth_of_gaussian}  # noqa: RUF012 - read only

    def __post_init__(self) -> None:
        for name in ("bandwidth", "regularization"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ValueError(f"{name} must be a number above 0, not {getattr(self, name)!r}")

    def fit(self, X: Array, y: np.ndarray, start: object = None) -> tuple[Array, Array]:  # noqa: ARG002 - solved exactly
        """Centers and α."""
        K = self._kernel(X, X)
        return X, linalg.solve(
            K + len(X) * self.regularization * np.eye(len(X)),
            np.asarray(y, dtype=float),
            assume_a="pos",
        )

    def decision(self, state: tuple[Array, Array], X: Array) -> Array:
        """F at rows X."""
        return self._kernel(X, state[0]) @ state[1]

    def risk(self, state: tuple[Array, Array], X: Array, y: np.ndarray) -> float:
        """The mean squared loss."""
        return float(((self.decision(state, X) - y) ** 2).mean())

    def total_gradient(
        self,
        state: tuple[Array, Array],
        X: Array,
        y: np.ndarray,  # noqa: ARG002 - it is in α
        count: int,
        X_outer: Array,
        y_outer: np.ndarray,
    ) -> Array:
        """How the risk on outer rows changes with the last ``count`` rows.

        With u = ∂L/∂f at the outer rows T and b = (K + nλI)⁻¹K_XT·u: dL = uᵀ(dK_TX)α − bᵀ(dK)α, and
        ∂k(x, z)/∂x = −(x − z)k(x, z)/h².
        """
        alpha, poison = state[1], slice(len(X) - count, len(X))
        K, across = self._kernel(X, X), self._kernel(X_outer, X)
        u = 2 * (across @ alpha - y_outer) / len(X_outer)
        b: Array = linalg.solve(
            K + len(X) * self.regularization * np.eye(len(X)), across.T @ u, assume_a="pos"
        )  # pyright: ignore[reportAssignmentType]
        from_outer = across[:, poison].T * np.outer(alpha[poison], u)  # (count, m)
        # (count, n)
        inside = -K[poison] * (np.outer(b[poison], alpha) + np.outer(alpha[poison], b))
        return self._moved(X[poison], X_outer, from_outer) + self._moved(X[poison], X, inside)

    def _moved(self, X: Array, Z: Array, weights: Array) -> Array:
        """−Σ_j weights_ij(x_i − z_j)/h²."""
        return -1 / self.bandwidth**2 * (weights.sum(1)[:, None] * X - weights @ Z)

    def _kernel(self, X: Array, Z: Array) -> Array:
        return profiles.gaussian(
            np.asarray(cdist(X, Z, "sqeuclidean"), dtype=float), self.bandwidth
        )
