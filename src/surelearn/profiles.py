"""Kernels as functions of ‖x − z‖² or ⟨x, z⟩, one definition each: learners, subjects and attacks
evaluate these.

Values come with slopes, dk/d‖x − z‖² or dk/d⟨x, z⟩, for whoever moves rows. Arrays are NumPy's;
`surelearn.kernel.functions` makes kernels of them, `surelearn.kernel.torch_functions` is the same
on other devices, held to these by tests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from surelearn.types import Array


def gaussian(squared: Array, bandwidth: float) -> Array:
    """e^{−s/(2h²)} at s = ‖x − z‖², h the bandwidth."""
    values = squared / -(2.0 * bandwidth**2)
    return np.exp(values, out=values)


def gaussian_slope(values: Array, squared: Array, bandwidth: float) -> Array:  # noqa: ARG001 - the value says it all
    """−k/(2h²)."""
    return values / -(2.0 * bandwidth**2)


def laplace(squared: Array, bandwidth: float) -> Array:
    """e^{−√s/h}."""
    values = np.sqrt(squared)
    values /= -bandwidth
    return np.exp(values, out=values)


def laplace_slope(values: Array, squared: Array, bandwidth: float) -> Array:
    """−k/(2h√s); 0 at s = 0, where there is none."""
    apart = np.sqrt(squared)
    return np.where(apart > 0, values / (-2.0 * bandwidth * np.maximum(apart, 1e-300)), 0.0)


def matern(squared: Array, bandwidth: float, nu: float) -> Array:
    """p(t)·e^{−t} at t = √(2νs)/h, with p = 1 + t for ν = 3/2 and 1 + t + t²/3 for ν = 5/2."""
    t = _matern_length(squared, bandwidth, nu)
    return _matern_factor(t, nu) * np.exp(-t)


def matern_slope(values: Array, squared: Array, bandwidth: float, nu: float) -> Array:
    """−(3/2)·e^{−t}/h² for ν = 3/2, −(5/6)·(1 + t)·e^{−t}/h² for ν = 5/2."""
    t = _matern_length(squared, bandwidth, nu)
    decay = values / _matern_factor(t, nu)
    steep = bandwidth**2
    return decay * (-1.5 / steep) if nu == 1.5 else (1.0 + t) * decay * (-5.0 / (6.0 * steep))


def gaussian_bandwidth(sigma: float) -> float:
    """The length h of the Gaussian e^{−s/σ} of earlier versions, σ = 2h²; what is no positive
    number stays as it is, to be refused where a bandwidth is.

    Examples
    --------
    >>> gaussian_bandwidth(8.0)
    2.0
    """
    is_number = isinstance(sigma, (int, float, np.number)) and not isinstance(sigma, bool)
    return math.sqrt(float(sigma) / 2.0) if is_number and sigma > 0 else sigma


def bandwidth_of_gaussian(sigma: float, given: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG001
    """Give bandwidth=h, the kernel's length, with sigma = 2h²."""
    return {"bandwidth": gaussian_bandwidth(sigma)}


def bandwidth_of_sigma(sigma: float, given: Mapping[str, Any]) -> dict[str, Any]:
    """Give bandwidth=h, the kernel's length: sigma = 2h² for a Gaussian kernel, h for others."""
    which = given.get("kernel", given.get("features"))
    name = getattr(which, "name", which)
    is_gaussian = isinstance(name, str) and name == "gaussian"
    return {"bandwidth": gaussian_bandwidth(sigma) if is_gaussian else sigma}


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


def _matern_length(squared: Array, bandwidth: float, nu: float) -> Array:
    t = np.sqrt(squared)
    t *= np.sqrt(2.0 * nu) / bandwidth
    return t


def _matern_factor(t: Array, nu: float) -> Array:
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
