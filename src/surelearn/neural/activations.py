"""The course's activation functions (Remark 9.2) with their derivatives, in NumPy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelearn.types import Array


def relu(t: npt.ArrayLike) -> Array:
    """max(t, 0).

    >>> relu([-2.0, 0.5]).tolist()
    [0.0, 0.5]
    """
    return np.maximum(np.asarray(t, dtype=float), 0.0)


def relu_slope(t: npt.ArrayLike) -> Array:
    """1 where t > 0, else 0; at the kink 0, as autograd takes it.

    >>> relu_slope([-2.0, 0.0, 0.5]).tolist()
    [0.0, 0.0, 1.0]
    """
    return (np.asarray(t, dtype=float) > 0).astype(float)


def elu(t: npt.ArrayLike) -> Array:
    """T where t ≥ 0, else eᵗ − 1. (The course prints t₊ + t₋(eᵗ − 1), which multiplies by t₋; an
    indicator of t < 0 is meant.)

    >>> elu([-1.0, 2.0]).round(4).tolist()
    [-0.6321, 2.0]
    """
    t = np.asarray(t, dtype=float)
    return np.where(t >= 0, t, np.expm1(np.minimum(t, 0.0)))


def elu_slope(t: npt.ArrayLike) -> Array:
    """1 where t ≥ 0, else eᵗ.

    >>> elu_slope([-1.0, 2.0]).round(4).tolist()
    [0.3679, 1.0]
    """
    return np.exp(np.minimum(np.asarray(t, dtype=float), 0.0))


def sigmoid(t: npt.ArrayLike) -> Array:
    """1/(1 + e⁻ᵗ), without overflow.

    >>> sigmoid([0.0, -800.0]).tolist()
    [0.5, 0.0]
    """
    return expit(np.asarray(t, dtype=float))


def sigmoid_slope(t: npt.ArrayLike) -> Array:
    """σ(t)(1 − σ(t)) = σ(t)·σ(−t).

    >>> sigmoid_slope([0.0]).tolist()
    [0.25]
    """
    return sigmoid(t) * sigmoid(-np.asarray(t, dtype=float))


def tanh(t: npt.ArrayLike) -> Array:
    """tanh(t) = 1 − 2·sigmoid(−2t). (The course prints sigmoid(−t).)

    >>> float(tanh(1.0)) == float(np.tanh(1.0)), bool(abs(tanh(1.0) - 1 + 2 * sigmoid(-2.0)) < 1e-15)
    (True, True)
    """
    return np.tanh(np.asarray(t, dtype=float))


def tanh_slope(t: npt.ArrayLike) -> Array:
    """1 − tanh(t)².

    >>> tanh_slope([0.0]).tolist()
    [1.0]
    """
    return 1 - tanh(t) ** 2
