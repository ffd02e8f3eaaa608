"""The spectrum of a kernel's operator, estimated from a subsample, and what it says about gradient descent.

The operator f ↦ (1/n)·Σ f(x_i)·k(x_i, ·) has the eigenvalues of K/n; those of K_S/s for a random subsample S of s rows
estimate them (Nyström). Always by a dense `eigh`: iterative solvers are far slower for hundreds of directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from surelearn.kernel.functions import Kernel

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues λ₁ ≥ λ₂ ≥ … ≥ 0 of K_S/s, and β = max k(x, x).

    Attributes
    ----------
    eigenvalues : (s,), descending
    beta : β(K), the largest k(x, x) of the rows
    """

    eigenvalues: npt.NDArray[np.float64]
    beta: float

    def critical_batch_size(self, q: int = 0) -> float:
        """m* = β/λ_{q+1}: up to it, doubling the batch halves the iterations (Ma, Bassily and Belkin 2018)."""
        top = self.eigenvalues[q] if q < len(self.eigenvalues) else 0.0
        return float(self.beta / top) if top > 0 else float("inf")

    def step_size(self, batch_size: int, q: int = 0) -> float:
        """η = m/(β + (m − 1)·λ_{q+1}), for α_B ← α_B − (η/m)·(residual on B)."""
        top = float(self.eigenvalues[q]) if q < len(self.eigenvalues) else 0.0
        return batch_size / (self.beta + (batch_size - 1) * top) if self.beta > 0 else 1.0

    def acceleration(self, q: int) -> float:
        """λ₁/λ_{q+1}: how many times fewer full-batch iterations q flattened directions need."""
        top = self.eigenvalues[q] if q < len(self.eigenvalues) else 0.0
        return float(self.eigenvalues[0] / top) if top > 0 else float("inf")

    def effective_dimension(self, regularization: float) -> float:
        """Σ λ_i/(λ_i + λ)."""
        values = self.eigenvalues[self.eigenvalues > 0]
        return float((values / (values + regularization)).sum())

    def computational_reach(self, iterations: int, epsilon: float) -> int:
        """How many directions T gradient steps with η = 1/λ₁ fit to a share ε: (1 − λ_i/λ₁)^T ≤ ε (the exponent is T).

        Examples
        --------
        >>> Spectrum(np.array([1.0, 0.5, 1e-6]), 1.0).computational_reach(100, 0.01)
        2
        """
        top = self.eigenvalues[0]
        if not top > 0:
            return 0
        return int(((1.0 - self.eigenvalues / top) ** iterations <= epsilon).sum())


def kernel_spectrum(kernel: Kernel, X: Any, size: int = 2000, random_state: Any = None) -> Spectrum:
    """The spectrum of ``kernel`` on at most ``size`` random rows of X, in NumPy.

    Examples
    --------
    >>> from surelearn.kernel.functions import Linear
    >>> kernel_spectrum(Linear(), np.array([[1.0], [1.0]])).eigenvalues
    array([1., 0.])
    """
    from sklearn.utils import check_random_state

    X = np.asarray(X, dtype=float)
    rows = check_random_state(random_state).permutation(len(X))[:size]
    values = np.asarray(np.linalg.eigvalsh(kernel(X[rows], X[rows]) / len(rows))[::-1], dtype=np.float64)
    return Spectrum(clean(values), float(kernel.diagonal(X).max()))


def clean(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Eigenvalues with what is rounding made 0."""
    floor = len(values) * np.finfo(float).eps * max(float(values[0]), 0.0)
    return np.where(values > floor, values, 0.0)


def eigensystem(gram: torch.Tensor) -> tuple[npt.NDArray[np.float64], torch.Tensor]:
    """Eigenvalues of K_S, descending, and its eigenvectors as columns, both from float64."""
    import torch

    values, vectors = torch.linalg.eigh(gram.double())
    return clean(values.flip(0).cpu().numpy()), vectors.flip(1)
