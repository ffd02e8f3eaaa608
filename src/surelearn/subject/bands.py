"""Bands: where a regressor expects the truth of each row, in units of a width of the row's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from surelearn.lacking import Lacking
from surelearn.types import Array, Model, RowsLike

# a few roundings of a difference, a quotient and a product, each at most half of epsilon
_SLACK = 8 * float(np.finfo(float).eps)
NO_BAND = "it gives numbers, and no width of each row's own"

Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Band:
    """Where the truth of n rows is expected, before anything is guaranteed of it.

    Attributes
    ----------
    low, high, scale : (n,), low ≤ high, scale > 0
    target_range : what the target can be, as stated: intervals are clipped to it, and a target
        outside is a miss; None where nothing is stated

    Examples
    --------
    >>> band = Band(np.array([1.0, 1.0]), np.array([2.0, 2.0]), np.array([1.0, 4.0]), (0.0, 9.0))
    >>> band.scores(np.array([4.0, 0.0])).tolist(), band.scores(np.array([9.5, 1.5])).tolist()
    ([2.0, 0.25], [inf, -0.125])
    >>> [end.round(6).tolist() for end in band.interval(2.0)]
    [[0.0, 0.0], [4.0, 9.0]]
    """

    low: Array
    high: Array
    scale: Array
    target_range: Range | None = None

    def scores(self, y: Array) -> Array:
        """(n,): max(low − y, y − high)/scale, by how many widths the truth lies outside (inside, if
        negative); ∞ outside the stated range.
        """
        found = np.maximum(self.low - y, y - self.high) / self.scale
        return np.where(outside(y, self.target_range), np.inf, found)

    def interval(self, score: float) -> tuple[Array, Array]:
        """(n,), (n,): the ends of {y : score of y ≤ ``score``}, rounded outward; where that is empty,
        its middle.
        """
        if np.isinf(score):
            everything = np.full(self.low.shape, np.inf)
            return clipped(-everything, everything, self.target_range)
        low, high = self.low - score * self.scale, self.high + score * self.scale
        middle = (low + high) / 2
        low, high = np.minimum(low, middle), np.maximum(high, middle)
        size = np.maximum(np.abs(self.low), np.abs(self.high)) + abs(score) * self.scale
        return clipped(low - _SLACK * size, high + _SLACK * size, self.target_range)


def within_distance(
    said: Array, distance: float, target_range: Range | None
) -> tuple[Array, Array]:
    """(n,), (n,): the ends of the intervals of all y with |said − y| ≤ ``distance``, rounded outward:
    of 1350.2 − (1350.2 − 208.15) = 208.1500000000001 the truth 208.15 would lie outside.

    Examples
    --------
    >>> low, high = within_distance(np.array([1350.2]), 1350.2 - 208.15, None)
    >>> bool(low[0] <= 208.15), high.round(6).tolist()
    (True, [2492.25])
    """
    return Band(said, said, np.ones_like(said), target_range).interval(distance)


def outside(y: Array, target_range: Range | None) -> npt.NDArray[np.bool_]:
    """Which targets lie outside the stated range."""
    if target_range is None:
        return np.zeros(np.shape(y), dtype=bool)
    return (y < target_range[0]) | (y > target_range[1])


def clipped(low: Array, high: Array, target_range: Range | None) -> tuple[Array, Array]:
    """Ends of intervals within the stated range."""
    if target_range is None:
        return low, high
    return np.clip(low, *target_range), np.clip(high, *target_range)


def range_of(model: Model) -> Range | None:
    """What the model's targets can be, where its user stated it."""
    found = getattr(model, "target_range", None)
    return None if found is None else (float(found[0]), float(found[1]))


def band_of(model: Model, X: RowsLike, target_range: Range | None) -> Band | Lacking:
    """The band that a model gives rows by ``predict_band``, which returns low, high and scale, one of
    each per row; `Lacking` where it has none. ``target_range`` is what the target can be, as stated.
    """
    give = getattr(model, "predict_band", None)
    if not callable(give):
        return Lacking("band", NO_BAND)
    found = cast("tuple[Array, Array, Array]", give(X))
    low, high, scale = (np.asarray(part, dtype=float) for part in found)
    if low.ndim != 1 or not low.shape == high.shape == scale.shape:
        raise ValueError("predict_band must give low, high and scale, one number of each per row")
    if not all(np.isfinite(part).all() for part in (low, high, scale)):
        raise ValueError("predict_band gives numbers that are not finite")
    if (low > high).any() or (scale <= 0).any():
        raise ValueError("predict_band must give low ≤ high, and a scale above 0")
    return Band(low, high, scale, target_range)
