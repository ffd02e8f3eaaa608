"""The two-layer network of the course (Section 9), with its gradients by hand. A teaching form.

θ = U·relu(Wx + b₁) + b₂ and J = ½‖θ − y‖². By the chain rule, each gradient having the shape of
what it is taken by,

    ∂J/∂θ = θ − y            ∂J/∂U = (θ − y)hᵀ        ∂J/∂b₂ = θ − y
    ∂J/∂h = Uᵀ(θ − y)        ∂J/∂z = Uᵀ(θ − y) ⊙ relu′(z)
    ∂J/∂W = (∂J/∂z)xᵀ        ∂J/∂b₁ = ∂J/∂z
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelearn.neural.activations import relu, relu_slope
from surelearn.types import Array


@dataclass(frozen=True, eq=False)
class Gradients:
    """The seven derivatives of J, each with the shape of what it is taken by."""

    theta: Array
    U: Array
    b2: Array
    h: Array
    z: Array
    W: Array
    b1: Array


@dataclass(frozen=True, eq=False)
class TwoLayer:
    """θ = U·relu(Wx + b₁) + b₂ for W (k, d), b₁ (k,), U (c, k) and b₂ (c,).

    Any continuous function on a compact set is approached by such networks as k grows
    (course, Theorem 9.4, which omits "compact").

    Examples
    --------
    >>> net = TwoLayer(W=np.eye(2), b1=np.zeros(2), U=np.array([[1.0, -1.0]]), b2=np.zeros(1))
    >>> net([3.0, 1.0]).tolist(), net.loss([3.0, 1.0], [0.0])
    ([2.0], 2.0)
    """

    W: Array
    b1: Array
    U: Array
    b2: Array

    def __call__(self, x: npt.ArrayLike) -> Array:
        """θ for a vector (d,), or for rows (n, d)."""
        return relu(np.asarray(x, dtype=float) @ self.W.T + self.b1) @ self.U.T + self.b2

    def loss(self, x: npt.ArrayLike, y: npt.ArrayLike) -> float:
        """J = ½‖θ − y‖²."""
        return 0.5 * float(np.sum((self(x) - np.asarray(y, dtype=float)) ** 2))

    def gradients(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Gradients:
        """Forward, then backward, for one vector x (d,) and its target y (c,)."""
        x = np.asarray(x, dtype=float)
        z = self.W @ x + self.b1
        h = relu(z)
        by_theta = self.U @ h + self.b2 - np.asarray(y, dtype=float)
        by_h = self.U.T @ by_theta
        by_z = by_h * relu_slope(z)
        return Gradients(
            theta=by_theta,
            U=np.outer(by_theta, h),
            b2=by_theta,
            h=by_h,
            z=by_z,
            W=np.outer(by_z, x),
            b1=by_z,
        )


XOR = TwoLayer(
    W=np.array([[1.0, 1.0], [1.0, 1.0]]),
    b1=np.array([0.0, -1.0]),
    U=np.array([[2.0, -4.0]]),
    b2=np.array([-1.0]),
)
"""The course's Example 9.1: its sign is XOR of two bits, which no linear classifier computes."""


def collapsed(layers: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]]) -> tuple[Array, Array]:
    """A stack of linear layers x ↦ A_l·x + c_l without anything between them, as the one layer that
    it is (course, Remark 9.2): A = A_L⋯A_1, c = Σ_l A_L⋯A_{l+1}·c_l.

    Examples
    --------
    >>> A, c = collapsed([([[1.0, 2.0]], [1.0]), ([[3.0]], [0.5])])
    >>> A.tolist(), c.tolist()
    ([[3.0, 6.0]], [3.5])
    """
    A, c = (np.asarray(part, dtype=float) for part in layers[0])
    for matrix, shift in layers[1:]:
        A, c = np.asarray(matrix) @ A, np.asarray(matrix) @ c + np.asarray(shift)
    return A, c
