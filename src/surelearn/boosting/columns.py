"""Where stumps may cut: every column as whole numbers whose order is that of its values.

A *cut* c of column j is the stump x_j ≤ thresholds[j][c], which holds exactly where the column's
number is at most c. *Exact*: one number per distinct value, cuts half-way between neighbors.
*Binned*: at most 255 numbers per column, so that a row's column is one byte; where a column has
more distinct values, the bins hold about equally many rows. Bins chosen from the rows still are
stumps: what holds for every stump holds for them. *Given*: thresholds that were stated beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

BINS = 255
EXACT_ROWS = 5000  # up to so many rows "auto" tries every cut
SAMPLE = 50_000  # about so many rows, every k-th, say where bins of many values end


@dataclass(frozen=True)
class Columns:
    """Columns as numbers.

    Attributes
    ----------
    numbers : (d, n), uint8 where binned, int32 where exact
    thresholds : of every column, ascending
    binned : whether a column has few numbers
    """

    numbers: Array
    thresholds: list[Array]
    binned: bool

    def threshold(self, feature: int, cut: int) -> float:
        """Where cut ``cut`` of a column lies; no cut, −1, lies at infinity."""
        return float(self.thresholds[feature][cut]) if cut >= 0 else np.inf


def is_binned(n: int, method: str, thresholds: Any) -> bool:
    """Whether columns of n rows are binned."""
    return thresholds is not None or method == "binned" or (method == "auto" and n > EXACT_ROWS)


def number_columns(X: Array, method: str, thresholds: Any = None) -> Columns:
    """Number the columns of X (n, d); ``method`` is "exact", "binned" or "auto".

    "auto" tries every cut of at most 5,000 rows, and bins more. Columns of at most 255 distinct
    values lose nothing by it.
    """
    n, d = X.shape
    if thresholds is not None:
        return _binned(
            X,
            [
                np.unique(given)
                for given in np.broadcast_to(thresholds, (d, np.shape(thresholds)[-1]))
            ],
        )
    if is_binned(n, method, thresholds):
        return _binned(X, [_edges(column) for column in X.T])
    numbers, edges = np.empty((d, n), dtype=np.int32), []
    for j in range(d):
        values, numbers[j] = np.unique(X[:, j], return_inverse=True)
        edges.append(_half_way(values[:-1], values[1:]))
    return Columns(numbers, edges, binned=False)


def _binned(X: Array, edges: list[Array]) -> Columns:
    from surelearn.boosting.search import find_bins

    padded = np.full((len(edges), BINS), np.inf)
    for j, ends in enumerate(edges):
        padded[j, : ends.size] = ends
    return Columns(np.ascontiguousarray(find_bins(X, padded).T), edges, binned=True)


def _edges(column: Array) -> Array:
    """At most 254 cuts of a column: all there are, or those nearest equal shares of the rows."""
    ordered = np.sort(column[:: max(1, column.size // SAMPLE)])
    ends = np.flatnonzero(ordered[1:] > ordered[:-1])
    if ends.size < BINS:
        values = np.unique(column)
        if values.size <= BINS:
            return _half_way(values[:-1], values[1:])
        ordered = np.sort(column)
        ends = np.flatnonzero(ordered[1:] > ordered[:-1])
    shares = np.arange(1, BINS) * ordered.size // BINS - 1
    ends = np.unique(ends[np.minimum(np.searchsorted(ends, shares), ends.size - 1)])
    return _half_way(ordered[ends], ordered[ends + 1])


def _half_way(low: Array, high: Array) -> Array:
    """Half-way between neighbors, and below the upper one also where no float lies between."""
    middle = low / 2 + high / 2
    return np.where((low <= middle) & (middle < high), middle, low)
