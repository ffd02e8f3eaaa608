"""What the bounds ask of their inputs; every refusal names the argument and says what it must
be.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Value = Any  # a float for scalar inputs, an array otherwise
MOST = 1e15  # whole numbers, which floats still tell apart
MOST_TERMS = 1e7


def number(name: str, value: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """A finite or infinite number, never NaN."""
    try:
        array = np.asarray(value, dtype=float)
    except OverflowError:
        raise ValueError(f"{name} must be a number below 1e308") from None
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, not {value!r:.60}") from None
    if _anywhere(np.isnan(array)):
        raise ValueError(f"{name} must be a number, not NaN")
    return array


def between(name: str, value: npt.ArrayLike, low: float, high: float) -> npt.NDArray[np.float64]:
    """A number in [low, high]."""
    array = number(name, value)
    if _anywhere(array < low) or _anywhere(array > high):
        raise ValueError(f"{name} must lie in [{low:g}, {high:g}], not {_worst(array, low):g}")
    return array


def rate(name: str, value: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """A number in [0, 1]."""
    return between(name, value, 0.0, 1.0)


def confidence(value: npt.ArrayLike, name: str = "delta") -> npt.NDArray[np.float64]:
    """A failure probability in (0, 1), and not so small that 1/δ overflows."""
    array = number(name, value)
    if _anywhere((array > 0) & (array < 1e-305)):
        raise ValueError(f"{name} must be at least 1e-305, not {array[array > 0].min():g}")
    if _anywhere(array <= 0) or _anywhere(array >= 1):
        raise ValueError(
            f"{name} must lie strictly between 0 and 1, not"
            f" {array.flat[np.argmax(abs(array - 0.5))]:g}"
        )
    return array


def positive(name: str, value: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """A finite number above 0."""
    array = number(name, value)
    if _anywhere(strange := (array <= 0) | np.isinf(array)):
        raise ValueError(f"{name} must be positive and finite, not {array[strange].flat[0]:g}")
    return array


def nonnegative(name: str, value: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """A number of at least 0."""
    array = number(name, value)
    if _anywhere(array < 0):
        raise ValueError(f"{name} must not be negative, not {array.min():g}")
    return array


def count(name: str, value: npt.ArrayLike, least: int = 0) -> npt.NDArray[np.float64]:
    """A whole number of at least ``least``, kept as a float so that formulas cannot overflow."""
    array = number(name, value)
    if _anywhere(strange := ~np.isfinite(array) | (array != np.floor(array))):
        raise ValueError(f"{name} must be a whole number, not {array[strange].flat[0]:g}")
    if _anywhere(array < least):
        raise ValueError(f"{name} must be at least {least}, not {array.min():g}")
    if _anywhere(array > MOST):
        raise ValueError(f"{name} must be at most {MOST:g}, not {array.max():g}")
    return array


def terms(size: float) -> None:
    """Refuse a sum that would take all memory."""
    if size > MOST_TERMS:
        raise ValueError(
            f"this takes a sum of {size:g} terms, and more than {MOST_TERMS:g} are not added"
        )


def sample(
    name: str, value: npt.ArrayLike, low: float = 0.0, high: float = 1.0, least: int = 1
) -> npt.NDArray[np.float64]:
    """A one-dimensional sample of at least ``least`` numbers in [low, high]."""
    array = between(name, value, low, high)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, not {array.ndim}-dimensional")
    if array.size < least:
        raise ValueError(
            f"{name} must hold at least {least} number{'s' * (least != 1)}, not {array.size}"
        )
    return array


def require(condition: npt.ArrayLike, message: str) -> None:
    """Refuse with ``message`` unless ``condition`` holds everywhere."""
    if not np.all(condition):
        raise ValueError(message)


def _anywhere(condition: Any) -> bool:
    """Whether it holds for some element; of a single number it is one, and `any` takes longer."""
    return bool(condition if condition.ndim == 0 else condition.any())


def plain(value: npt.ArrayLike) -> Value:
    """A Python float for a zero-dimensional result, the array otherwise."""
    array = np.asarray(value)
    return array.item() if array.ndim == 0 else array


def _worst(array: npt.NDArray[np.float64], low: float) -> float:
    return float(array.min() if (array < low).any() else array.max())
