"""Kernels as functions of ‖x − z‖² or ⟨x, z⟩, one definition each: learners, subjects and attacks
evaluate these.

Values come with slopes, dk/d‖x − z‖² or dk/d⟨x, z⟩, for whoever moves rows. Arrays are NumPy's;
`surelearn.kernel.functions` makes kernels of them, `surelearn.kernel.torch_functions` is the same
on other devices, held to these by tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def gaussian(squared: Array, sigma: float) -> Array:
    """e^{−s/σ} at s = ‖x − z‖²."""
    values = squared / -sigma
    return np.exp(values, out=values)


def gaussian_slope(values: Array, squared: Array, sigma: float) -> Array:  # noqa: ARG001 - the value says it all
    """−k/σ."""
    return values / -sigma


def laplace(squared: Array, sigma: float) -> Array:
    """e^{−√s/σ}."""
    values = np.sqrt(squared)
    values /= -sigma
    return np.exp(values, out=values)


def laplace_slope(values: Array, squared: Array, sigma: float) -> Array:
    """−k/(2σ√s); 0 at s = 0, where there is none."""
    apart = np.sqrt(squared)
    return np.where(apart > 0, values / (-2.0 * sigma * np.maximum(apart, 1e-300)), 0.0)


def matern(squared: Array, sigma: float, nu: float) -> Array:
    """p(t)·e^{−t} at t = √(2νs)/σ, with p = 1 + t for ν = 3/2 and 1 + t + t²/3 for ν = 5/2."""
    t = _matern_length(squared, sigma, nu)
    return _matern_factor(t, nu) * np.exp(-t)


def matern_slope(values: Array, squared: Array, sigma: float, nu: float) -> Array:
    """−(3/2)·e^{−t}/σ² for ν = 3/2, −(5/6)·(1 + t)·e^{−t}/σ² for ν = 5/2."""
    t = _matern_length(squared, sigma, nu)
    decay = values / _matern_factor(t, nu)
    return decay * (-1.5 / sigma**2) if nu == 1.5 else (1.0 + t) * decay * (-5.0 / (6.0 * sigma**2))


def polynomial(inner: Array, degree: float, gamma: float = 1.0, offset: float = 1.0) -> Array:
    """(γ⟨x, z⟩ + c)^p.

    Examples
    --------
    >>> polynomial(np.array([1.0, 3.0]), 3)
    array([ 8., 64.])
    """
    return _power(gamma * inner + offset, degree)


def polynomial_slope(
    values: Array,  # noqa: ARG001 - slopes of all take values and what they were computed from
    inner: Array,
    degree: float,
    gamma: float = 1.0,
    offset: float = 1.0,
) -> Array:
    """pγ·(γ⟨x, z⟩ + c)^{p − 1}."""
    return _power(gamma * inner + offset, degree - 1) * (degree * gamma)


def _matern_length(squared: Array, sigma: float, nu: float) -> Array:
    t = np.sqrt(squared)
    t *= np.sqrt(2.0 * nu) / sigma
    return t


def _matern_factor(t: Array, nu: float) -> Any:
    return 1.0 + t if nu == 1.5 else 1.0 + t + t**2 / 3.0


def _power(base: Array, degree: float) -> Array:
    """Base^degree; a whole degree by squaring, many times faster than by logarithms."""
    if degree != int(degree) or degree < 1:
        return base**degree
    left, result = int(degree), None
    while True:
        if left % 2:
            result = base if result is None else result * base
        left //= 2
        if left == 0:
            return base if result is None else result
        base = base * base
