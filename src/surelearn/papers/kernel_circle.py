"""Gradient descent on the circle, exactly: the periodic Gaussian kernel is diagonal in the Fourier
basis.

K(x, z) = Σ_j exp(−(x − z + 2πj)²/(2h²)) acts on functions on (0, 2π) with the uniform distribution. Its
eigenfunctions are 1, cos kx and sin kx; unfolding the sum, λ_k = (1/2π)·∫ exp(−u²/(2h²)) cos(ku) du =
h/√(2π)·exp(−h²k²/2), once for k = 0, twice for k ≥ 1. With the step η = s/λ₁(H) of eq. (5), t
iterations leave (1 − s·λ_k/λ_0)^t of frequency k. EigenPro's preconditioner lowers the first q
eigenvalues to λ_{q+1} and divides by that instead: (1 − s·min(1, λ_k/λ_{q+1}))^t.

The step function g, 1 on (0, π) and −1 on (π, 2π), is Σ (4/πk)·sin kx over odd k, and ‖g‖² = Σ
8/(πk)² = 1.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from surelearn.kernel.functions import Gaussian
from surelearn.types import Array

_NOTHING = -45.0  # e^{-45} of a frequency is less than rounding


def eigenvalues(bandwidth: float, k: npt.ArrayLike) -> Array:
    """λ_k = h/√(2π)·exp(−h²k²/2), h the bandwidth.

    Examples
    --------
    >>> eigenvalues(1.0, [0, 1, 2]).round(4)
    array([0.3989, 0.242 , 0.054 ])
    """
    return (
        bandwidth
        / math.sqrt(2 * math.pi)
        * np.exp(-(bandwidth**2) * np.asarray(k, dtype=float) ** 2 / 2)
    )


def periodic_matrix(bandwidth: float, x: Array) -> Array:
    """K(x_i, x_j), the sum over all images of a point that are near enough to matter."""
    images = 2 + math.ceil(math.sqrt(80) * bandwidth / (2 * math.pi))
    k = Gaussian(bandwidth=bandwidth)
    return np.sum(
        [k(x[:, None], x[:, None] + 2 * math.pi * j) for j in range(-images, images + 1)], axis=0
    )


def last_frequency(directions: int) -> int:
    """The frequency of λ_{q+1}: eigenvalues in order belong to the frequencies 0, 1, 1, 2, 2, …"""
    return (directions + 1) // 2


def log_rate(bandwidth: float, k: Array, step: float, directions: int = 0) -> Array:
    """ln(−ln(1 − s·min(1, λ_k/λ_{q+1}))): frequency k falls as exp(−t·e^this); infinite where
    one step is enough.
    """
    log_ratio = math.log(step) + np.minimum(
        -(bandwidth**2) * (k**2 - last_frequency(directions) ** 2) / 2, 0.0
    )
    with np.errstate(divide="ignore"):
        exact = np.log(-np.log1p(-np.exp(log_ratio)))
    return np.where(log_ratio < -30, log_ratio, exact)


def learned(bandwidth: float, k: Array, log_t: float, step: float, directions: int = 0) -> Array:
    """1 − (1 − s·min(1, λ_k/λ_{q+1}))^t, the share of frequency k that t iterations have
    learned; ``log_t`` is ln t.
    """
    return -np.expm1(-np.exp(np.minimum(log_t + log_rate(bandwidth, k, step, directions), 700.0)))


def odd_frequencies(bandwidth: float, log_t: float, directions: int = 0) -> Array:
    """The odd frequencies of which t iterations learn anything."""
    last = math.sqrt(
        last_frequency(directions) ** 2 + 2 * max(log_t - _NOTHING, 0.0) / bandwidth**2
    )
    return np.arange(1.0, max(last, 1.0) + 2.0, 2.0)


def squared_error(bandwidth: float, log_t: float, step: float = 1.0, directions: int = 0) -> float:
    """‖g − f_t‖² = 1 − Σ 8/(πk)²·(1 − r_k²) over odd k, r_k what is left of frequency k.

    Examples
    --------
    >>> round(squared_error(1.0, math.log(1e-9)), 6)
    1.0
    """
    k = odd_frequencies(bandwidth, log_t, directions)
    share = learned(bandwidth, k, log_t, step, directions)
    return float(1 - np.sum(8 / (math.pi * k) ** 2 * share * (2 - share)))


def approximation(
    x: Array, bandwidth: float, log_t: float, step: float = 1.0, directions: int = 0
) -> Array:
    """f_t(x) = Σ (4/πk)·(1 − r_k)·sin kx over odd k."""
    k = odd_frequencies(bandwidth, log_t, directions)
    return np.sin(np.multiply.outer(x, k)) @ (
        4 / (math.pi * k) * learned(bandwidth, k, log_t, step, directions)
    )


def log_iterations_to(
    error: float, bandwidth: float, step: float = 1.0, directions: int = 0
) -> float:
    """Ln of the iterations after which ‖g − f_t‖² ≤ ``error``, by bisection; 0 if the first is
    enough.
    """
    low, high = 0.0, 1.0
    if squared_error(bandwidth, low, step, directions) <= error:
        return 0.0
    while squared_error(bandwidth, high, step, directions) > error:
        low, high = high, 2 * high
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if squared_error(bandwidth, middle, step, directions) > error
            else (low, middle)
        )
    return high


def discretised(bandwidth: float, points: int) -> tuple[Array, Array, Array]:
    """Equispaced points, and eigenvalues (falling) and eigenvectors of K/n on them: the
    operator without its formula.
    """
    x = 2 * math.pi * (np.arange(points) + 0.5) / points
    values, vectors = np.linalg.eigh(periodic_matrix(bandwidth, x) / points)
    return x, values[::-1], vectors[:, ::-1]


def discretised_descent(
    values: Array, vectors: Array, g: Array, t: int, step: float, directions: int = 0
) -> Array:
    """T iterations on the points themselves, with the computed eigenvectors and all the
    rounding in their eigenvalues.
    """
    rates = step * np.minimum(values / values[directions], 1.0)
    return vectors @ ((1 - (1 - rates) ** t) * (vectors.T @ g))
