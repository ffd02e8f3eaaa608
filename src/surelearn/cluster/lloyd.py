"""Lloyd's iterations, exact and with little arithmetic, on dense and on sparse rows.

Two savings, neither of which changes the result. A row is visited only where its center may have
changed: an upper bound on the distance to its center and a lower bound on the distance to all
others move with the centers (G. Hamerly, SDM 2010). Sums of clusters change by the rows that moved.
How the rows' own classes find nearest centers is in `dense` and `sparse`.

This module compiles with numba and is imported when something is fitted or predicted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from surelearn.cluster.dense import DenseRows
from surelearn.cluster.rows import (
    FAST,
    HUGE,
    NEARER,
    Layout,
    add_row,
    distance_at_most,
    own_squares,
)
from surelearn.cluster.sparse import CSRRows
from surelearn.optim.stopping import Stopper

Matrix = npt.NDArray[Any]
Rows = DenseRows | CSRRows

REFRESH = 16  # iterations after which the clusters' sums are computed afresh, against rounding
PIECE = 64  # squares are summed by so many
SUMS = {"reassoc", "contract", "nsz"}  # sums in any order; divisions are divisions
SLACK = 1 + 1e-9  # rounding in the 8-byte bounds


@numba.njit(cache=True, fastmath=FAST)
def _select(  # pragma: no cover - compiled
    rows: Layout,
    norms: Matrix,
    centers: Matrix,
    squares: Matrix,
    longest: float,
    labels: Matrix,
    upper: Matrix,
    lower: Matrix,
    moved: Matrix,
    others: Matrix,
    halfway: Matrix,
    tighten: bool,
    chosen: Matrix,
) -> int:
    """Move the bounds with the centers and collect the rows whose center may no longer be the
    nearest.
    """
    count = 0
    for i in range(labels.size):
        own: int = labels[i]
        lower[i] -= others[own]
        upper[i] += moved[own]
        safe = max(lower[i], halfway[own])
        if upper[i] * SLACK < safe:
            continue
        if tighten:
            upper[i] = distance_at_most(rows, i, norms[i], centers[own], squares[own], longest)
            if upper[i] * SLACK < safe:
                continue
        chosen[count] = i
        count += 1
    return count


@numba.njit(cache=True)
def _move(  # pragma: no cover - compiled
    rows: Layout,
    weights: Matrix,
    chosen: Matrix,
    found: Matrix,
    labels: Matrix,
    sums: Matrix,
    mass: Matrix,
    sizes: Matrix,
) -> int:
    """Take rows out of their old clusters and put them into the new ones; how many changed."""
    changes = 0
    for r in range(chosen.size):
        i: int = chosen[r]
        old, new, w = labels[i], found[r], weights[i]
        if old == new:
            continue
        changes += 1
        labels[i] = new
        add_row(rows, i, w, sums[new])
        mass[new] += w
        sizes[new] += w > 0
        if old >= 0:
            add_row(rows, i, -w, sums[old])
            mass[old] -= w
            sizes[old] -= w > 0
    return changes


@numba.njit(cache=True, fastmath=SUMS)
def _update(  # pragma: no cover - compiled
    sums: Matrix,
    mass: Matrix,
    sizes: Matrix,
    centers: Matrix,
    means: Matrix,
    moved: Matrix,
    squares: Matrix,
) -> None:
    """Write the clusters' means, (k, d), an empty one's old center, how far each has moved, and its
    squared norm.

    Squares are added in pieces of `PIECE`, which keeps their rounding small in many dimensions.
    """
    k, d = centers.shape
    for c in range(k):
        gap, length = 0.0, 0.0
        for start in range(0, d, PIECE):
            end, some_gap, some_length = min(d, start + PIECE), 0.0, 0.0
            if sizes[c] > 0:
                for j in range(start, end):
                    mean = sums[c, j] / mass[c]
                    step = mean - centers[c, j]
                    some_gap += step * step
                    some_length += mean * mean
                    means[c, j] = mean
            else:
                for j in range(start, end):
                    means[c, j] = centers[c, j]
                    some_length += centers[c, j] * centers[c, j]
            gap += some_gap
            length += some_length
        moved[c], squares[c] = np.sqrt(gap), length


@dataclass(frozen=True)
class Result:
    """Where Lloyd's iterations ended: centers, iterations, and why they stopped."""

    centers: Matrix
    iterations: int
    reason: str


class Lloyd:
    """Lloyd's iterations on dense rows about their (weighted) mean, or on sparse rows where
    they are.
    """

    def __init__(self, rows: Rows, weights: Matrix) -> None:
        self.rows, self.weights = rows, weights

    def run(self, centers: Matrix, max_iter: int, tol: float) -> Result:
        """Iterate from ``centers`` until no row moves, the squared moves add up to at most
        ``tol``, or ``max_iter``.
        """
        n, d = self.rows.shape
        k = len(centers)
        self.labels = np.full(n, -1, dtype=np.int32)
        self.sums, self.mass, self.sizes = (
            np.zeros((k, d)),
            np.zeros(k),
            np.zeros(k, dtype=np.int64),
        )
        self.upper, self.lower = np.zeros(n), np.zeros(n)
        self.chosen = np.arange(n)
        # Two arrays of centers take turns; the one that was given stays as it is.
        spare, moved, squares = np.empty((k, d)), np.empty(k), np.empty(k)
        count, stopper = n, Stopper(passes=max_iter)
        while not stopper.reason:
            changes = self._assign(centers, count)
            relocated = self._fill_empty(centers)
            final = changes == 0 and not relocated
            if final or stopper.done % REFRESH == REFRESH - 1:
                self._refresh()
            means, spare = spare, np.empty((k, d)) if stopper.done == 0 else centers
            _update(self.sums, self.mass, self.sizes, centers, means, moved, squares)
            centers = means
            if not stopper.after(
                converged=final or (not relocated and float(moved @ moved) <= tol)
            ):
                tighten = count < 0.9 * n
                count = n if relocated else self._select(centers, squares, moved, tighten=tighten)
                if relocated:
                    self.chosen = np.arange(n)
        return Result(centers, stopper.done, stopper.reason)

    def _assign(self, centers: Matrix, count: int) -> int:
        """Assign the first ``count`` chosen rows to their nearest centers; how many changed
        cluster.
        """
        chosen = self.chosen[:count]
        return self._put(chosen, self.rows.decide(chosen, centers, self.upper, self.lower))

    def _put(self, chosen: Matrix, found: Matrix) -> int:
        """Put rows into the clusters ``found``; how many were elsewhere."""
        return _move(
            self.rows.layout,
            self.weights,
            chosen,
            found,
            self.labels,
            self.sums,
            self.mass,
            self.sizes,
        )

    def _select(self, centers: Matrix, squares: Matrix, moved: Matrix, tighten: bool) -> int:
        """Choose the rows whose center may have changed; how many. ``squares`` are ‖c‖²."""
        rows, order = self.rows, np.argsort(moved)
        others = np.full(len(centers), moved[order[-1]])
        others[order[-1]] = moved[order[-2]] if len(centers) > 1 else 0.0
        # Wide centers have dearer distances than sparse rows.
        pays = isinstance(rows, DenseRows) or centers.size <= rows.csr.nnz
        half = halfway(centers) if pays else np.zeros(len(centers))
        near = centers.astype(rows.low.dtype) if isinstance(rows, DenseRows) else centers
        return _select(
            rows.quick_layout, rows.norms, near, squares, float(np.sqrt(squares.max())), self.labels, self.upper,
            self.lower, moved, others, half, tighten, self.chosen,
        )  # fmt: skip

    def _fill_empty(self, centers: Matrix) -> bool:
        """Give each empty cluster the row that costs most where it is; whether any row was
        moved.
        """
        empty = np.flatnonzero(self.sizes == 0)
        if not len(empty):
            return False
        lengths = np.einsum("ij,ij->i", centers, centers)
        costs = self.weights * own_squares(
            self.rows.layout, self.rows.norms, centers, lengths, self.labels
        )
        relocated = False
        for cluster in empty:
            costs[self.sizes[self.labels] <= 1] = 0.0
            row = int(np.argmax(costs >= costs.max() * NEARER))
            if costs[row] <= 0:  # fewer distinct rows than clusters
                break
            self._put(np.array([row]), np.array([cluster], dtype=np.int32))
            costs[row], relocated = 0.0, True
        return relocated

    def _refresh(self) -> None:
        labels = self.labels.copy()
        self.labels[:] = -1
        self.sums[:], self.mass[:], self.sizes[:] = 0.0, 0.0, 0
        self._put(np.arange(len(labels)), labels)


def halfway(centers: Matrix) -> Matrix:
    """Half of each center's distance to the nearest other one, less its rounding: nearer rows
    belong to it.
    """
    squares = np.einsum("ij,ij->i", centers, centers)
    gaps = squares[:, None] + squares - 2 * centers @ centers.T
    gaps -= 4 * (centers.shape[1] + 3) * np.finfo(float).eps * squares.max()
    np.fill_diagonal(gaps, HUGE)
    return np.sqrt(np.maximum(gaps.min(axis=1), 0.0)) / 2
