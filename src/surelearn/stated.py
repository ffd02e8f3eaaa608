"""Numbers that people state, checked by name: every refusal says which argument, and what it
must be.
"""

from __future__ import annotations

import math
import numbers
from typing import TypeGuard


def fraction(name: str, value: object) -> float:
    """A number strictly between 0 and 1.

    Examples
    --------
    >>> fraction("delta", 0.05)
    0.05
    """
    if not is_number(value) or not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, not {value!r:.60}")
    return float(value)


def positive(name: str, value: object) -> float:
    """A finite number above 0."""
    if not is_number(value) or not 0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, not {value!r:.60}")
    return float(value)


def whole(name: str, value: object, least: int = 1) -> int:
    """A whole number of at least ``least``; True and False are none."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r:.60}")
    return int(value)


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a real number; True and False are none."""
    return not isinstance(value, bool) and isinstance(value, numbers.Real)
