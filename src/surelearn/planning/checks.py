"""Checks of what is asked, and numbers for people."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surelearn import stated
from surelearn.types import Array

MOST_ROWS = 10**9


def check_rate(name: str, value: object, low: float = 0.0) -> float:
    """A number between ``low`` and 1."""
    if not isinstance(value, (int, float, np.number)) or not low <= value <= 1:
        raise ValueError(f"{name} must lie between {low:g} and 1, not {value!r}")
    return float(value)


def check_counts(value: npt.ArrayLike, least: int = 0, name: str = "n") -> Array:
    """Whole numbers of rows."""
    array = np.asarray(value)
    whole = array.dtype.kind in "iuf" and (array >= least) & (array == np.floor(array)) & (
        array <= MOST_ROWS
    )
    if not np.all(whole):
        bad = value if whole is False else array[~np.asarray(whole)].tolist()[0]
        raise ValueError(
            f"{name} must be a whole number from {least} to {MOST_ROWS:,}, not {bad!r}"
        )
    return array.astype(float)


def check_level(delta: float, candidates: int = 1, share: float = 1.0) -> float:
    """The δ of one claim."""
    stated.fraction("delta", delta)
    stated.whole("candidates", candidates)
    if not 0 < share <= 1:
        raise ValueError(f"share must be above 0 and at most 1, not {share!r}")
    return float(delta * share / candidates)


def not_above(name: str, value: float, other: str, limit: float) -> str:
    """The sentence for an expectation that no number of rows can certify."""
    side, sense = ("below", "less") if other == "max_risk" else ("above", "more")
    return (
        f"{name} must be {side} {other} {limit:g}, not {value:g}: no number of rows certifies"
        f" {sense} than the truth"
    )


def in_percent(part: float) -> str:
    """A part as people say it."""
    return f"{100 * part:.6g}%"


def in_errors(gain: float) -> str:
    """A gain per hundred rows as people say it."""
    return f"{100 * gain:.6g} fewer" if gain >= 0 else f"{-100 * gain:.6g} more"
