"""Lloyd's iterations, exact and with little arithmetic.

Three savings, none of which changes the result. Products of rows and centres are 4-byte matrix products; where rounding
could decide between two centres, the distances are computed again in 8 bytes. A row is visited only where its centre may
have changed: an upper bound on the distance to its centre and a lower bound on the distance to all others move with the
centres (G. Hamerly, SDM 2010). Sums of clusters change by the rows that moved.

This module compiles with numba and is imported when something is fitted or predicted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from surelearn.optim.stopping import Stopper

Matrix = npt.NDArray[Any]

BLOCK = 512  # rows a product: (512, k) 4-byte scores stay in the second-level cache
REFRESH = 16  # iterations after which the clusters' sums are computed afresh, against rounding
SLACK = 1 + 1e-9  # rounding in the 8-byte bounds
NEARER = 1 - 1e-12  # a later centre must be nearer by more than rounding: texts of unit length tie by the thousand
HUGE = 1e300  # compiled code assumes that nothing is infinite
FAST = {"reassoc", "contract", "nsz", "arcp", "nnan", "ninf"}


@numba.njit(cache=True, fastmath=FAST)
def squared_distance(x: Matrix, c: Matrix) -> float:  # pragma: no cover - compiled
    """‖x − c‖²."""
    total = 0.0
    for j in range(x.size):
        gap = x[j] - c[j]
        total += gap * gap
    return total


@numba.njit(cache=True, fastmath=FAST)
def _scan(
    scores: Matrix, squares: Matrix, best: Matrix, second: Matrix, found: Matrix
) -> None:  # pragma: no cover - compiled
    """Add ‖c‖² to the scores −2⟨x, c⟩ of a block, (k, rows), and find each row's smallest and second smallest."""
    for r in range(best.size):
        best[r] = scores[0, r] + squares[0]
        scores[0, r] = best[r]
        found[r] = 0
    second[:] = np.finfo(second.dtype).max
    for c in range(1, squares.size):
        square, place = squares[c], np.int32(c)
        for r in range(best.size):  # as wide as the machine's registers: neighbouring rows are neighbours in memory
            value = scores[c, r] + square
            scores[c, r] = value
            lead, runner = best[r], second[r]
            wins = value < lead
            loser = lead if wins else value
            second[r] = loser if loser < runner else runner
            best[r] = value if wins else lead
            found[r] = place if wins else found[r]


@numba.njit(cache=True, fastmath=FAST)
def _settle(  # pragma: no cover - compiled
    scores: Matrix,
    best: Matrix,
    second: Matrix,
    found: Matrix,
    rows: Matrix,
    norms: Matrix,
    rounding: float,
    longest: float,
    X: Matrix,
    centers: Matrix,
    upper: Matrix,
    lower: Matrix,
) -> int:
    """Decide close calls in 8 bytes and write the bounds; how many calls were close.

    Scores are off by at most e = rounding·((d + 3)‖x‖·max‖c‖ + max‖c‖²). Centres within 2e of the best are compared by their
    distances in 8 bytes, the first of equals winning.
    """
    close = 0
    for r in range(rows.size):
        i = rows[r]
        error = rounding * ((X.shape[1] + 3) * np.sqrt(norms[i]) * longest + longest * longest)
        upper[i] = np.sqrt(max(0.0, best[r] + norms[i] + error))
        lower[i] = np.sqrt(max(0.0, second[r] + norms[i] - error))
        if second[r] - best[r] > 2 * error:
            continue
        close += 1
        nearest = HUGE
        for c in range(centers.shape[0]):
            if scores[c, r] <= best[r] + 2 * error:
                gap = squared_distance(X[i], centers[c])
                if gap < nearest * NEARER:
                    nearest = gap
                    found[r] = c
        upper[i] = np.sqrt(nearest)
        lower[i] = np.sqrt(max(0.0, best[r] + norms[i] - error))
    return close


@numba.njit(cache=True, fastmath=FAST)
def _select(  # pragma: no cover - compiled
    X: Matrix,
    norms: Matrix,
    centers: Matrix,
    roundoff: Any,
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
    """Move the bounds with the centres and collect the rows whose centre may no longer be the nearest.

    X and centres may be in 4 bytes: a distance is then off by at most u·((d + 4)·distance + 2(‖x‖ + ‖c‖)), u the roundoff.
    """
    count, d = 0, X.shape[1]
    for i in range(X.shape[0]):
        own = labels[i]
        lower[i] -= others[own]
        upper[i] += moved[own]
        safe = max(lower[i], halfway[own])
        if upper[i] * SLACK < safe:
            continue
        if tighten:
            total = roundoff * 0
            for j in range(d):
                gap = X[i, j] - centers[own, j]
                total += gap * gap
            distance = np.sqrt(np.float64(total))
            upper[i] = distance + roundoff * ((d + 4) * distance + 2 * (np.sqrt(norms[i]) + longest))
            if upper[i] * SLACK < safe:
                continue
        chosen[count] = i
        count += 1
    return count


@numba.njit(cache=True)
def _gather(X: Matrix, rows: Matrix, into: Matrix) -> None:  # pragma: no cover - compiled
    for r in range(rows.size):
        i = rows[r]
        for j in range(X.shape[1]):
            into[r, j] = X[i, j]


@numba.njit(cache=True)
def _move(  # pragma: no cover - compiled
    X: Matrix, weights: Matrix, rows: Matrix, found: Matrix, labels: Matrix, sums: Matrix, mass: Matrix, sizes: Matrix
) -> int:
    """Take rows out of their old clusters and put them into the new ones."""
    changes = 0
    for r in range(rows.size):
        i = rows[r]
        old, new, w = labels[i], found[r], weights[i]
        if old == new:
            continue
        changes += 1
        labels[i] = new
        for j in range(X.shape[1]):
            part = w * X[i, j]
            sums[new, j] += part
            if old >= 0:
                sums[old, j] -= part
        mass[new] += w
        sizes[new] += w > 0
        if old >= 0:
            mass[old] -= w
            sizes[old] -= w > 0
    return changes


@numba.njit(cache=True)
def _own_costs(X: Matrix, weights: Matrix, centers: Matrix, labels: Matrix) -> Matrix:  # pragma: no cover - compiled
    costs = np.empty(X.shape[0])
    for i in range(X.shape[0]):
        costs[i] = weights[i] * squared_distance(X[i], centers[labels[i]])
    return costs


class Centers:
    """Centres made ready for scoring blocks of rows, in 4 or in 8 bytes."""

    def __init__(self, centers: Matrix, dtype: Any) -> None:
        k, squares = len(centers), np.einsum("ij,ij->i", centers, centers)
        self.centers = centers
        self.factors = (-2 * centers).astype(dtype)
        self.squares = squares.astype(dtype)
        self.longest = float(np.sqrt(squares.max()))
        self.rounding = 1.01 * float(np.finfo(dtype).eps)  # twice the unit roundoff: scores carry the factor 2
        self.scores = np.empty(k * BLOCK, dtype=dtype)
        self.best, self.second = np.empty(BLOCK, dtype=dtype), np.empty(BLOCK, dtype=dtype)

    def decide(
        self, block: Matrix, rows: Matrix, norms: Matrix, X: Matrix, found: Matrix, upper: Matrix, lower: Matrix
    ) -> int:
        """Find the nearest centres of the rows ``rows`` of X, whose coordinates ``block`` holds; count the close calls."""
        m, k = len(rows), len(self.squares)
        scores = self.scores[: k * m].reshape(k, m)
        best, second = self.best[:m], self.second[:m]
        np.dot(self.factors, block.T, out=scores)
        _scan(scores, self.squares, best, second, found)
        return _settle(
            scores, best, second, found, rows, norms, self.rounding, self.longest, X, self.centers, upper, lower
        )  # fmt: skip


@dataclass(frozen=True)
class Result:
    """Where Lloyd's iterations ended: centres, iterations, and why they stopped."""

    centers: Matrix
    iterations: int
    reason: str


class Lloyd:
    """Lloyd's iterations on rows whose (weighted) mean is zero."""

    X: Any

    def __init__(self, X: Matrix, weights: Matrix) -> None:
        self.X = X
        self.weights = weights
        self.norms = np.einsum("ij,ij->i", X, X)
        self.low = X.astype(np.float32) if fits_four_bytes(self.norms) else X

    def run(self, centers: Matrix, max_iter: int, tol: float) -> Result:
        """Iterate from ``centers`` until no row moves, the squared moves add up to at most ``tol``, or ``max_iter``."""
        n, d = self.X.shape
        k = len(centers)
        self.labels = np.full(n, -1, dtype=np.int32)
        self.sums, self.mass, self.sizes = np.zeros((k, d)), np.zeros(k), np.zeros(k, dtype=np.int64)
        self.upper, self.lower = np.zeros(n), np.zeros(n)
        self.chosen = np.arange(n)
        count, stopper = n, Stopper(passes=max_iter)
        while not stopper.reason:
            changes = self._assign(centers, count)
            relocated = self._fill_empty(centers)
            final = changes == 0 and not relocated
            if final or stopper.done % REFRESH == REFRESH - 1:
                self._refresh()
            means = self._means(centers)
            moved = np.sqrt(np.einsum("ij,ij->i", means - centers, means - centers))
            centers = means
            if not stopper.after(converged=final or (not relocated and float(moved @ moved) <= tol)):
                count = n if relocated else self._select(centers, moved, tighten=count < 0.9 * n)
                if relocated:
                    self.chosen = np.arange(n)
        return Result(centers, stopper.done, stopper.reason)

    def _assign(self, centers: Matrix, count: int) -> int:
        """Assign the first ``count`` chosen rows to their nearest centres; how many changed cluster."""
        ready = Centers(centers, self.low.dtype)
        buffer = np.empty((BLOCK, self.X.shape[1]), dtype=self.low.dtype)
        found = np.empty(BLOCK, dtype=np.int32)
        changes = close = 0
        for start in range(0, count, BLOCK):
            rows = self.chosen[start : min(start + BLOCK, count)]
            block = buffer[: len(rows)]
            _gather(self.low, rows, block)
            close += ready.decide(block, rows, self.norms, self.X, found[: len(rows)], self.upper, self.lower)
            changes += self._put(rows, found)
        if close > 0.1 * count:  # 4 bytes cannot tell the centres apart
            self.low = self.X
        return changes

    def _put(self, rows: Matrix, found: Matrix) -> int:
        """Put rows into the clusters ``found``; how many were elsewhere."""
        return _move(self.X, self.weights, rows, found, self.labels, self.sums, self.mass, self.sizes)

    def _costs(self, centers: Matrix) -> Matrix:
        return _own_costs(self.X, self.weights, centers, self.labels)

    def _select(self, centers: Matrix, moved: Matrix, tighten: bool) -> int:
        order = np.argsort(moved)
        others = np.full(len(centers), moved[order[-1]])
        others[order[-1]] = moved[order[-2]] if len(centers) > 1 else 0.0
        return self._unsettled(centers, moved, others, tighten)

    def _unsettled(self, centers: Matrix, moved: Matrix, others: Matrix, tighten: bool) -> int:
        """Choose the rows whose centre may have changed; how many."""
        low = self.low.dtype.type
        longest = float(np.sqrt(np.einsum("ij,ij->i", centers, centers).max()))
        return _select(
            self.low, self.norms, centers.astype(low), low(np.finfo(low).eps), longest, self.labels, self.upper, self.lower,
            moved, others, halfway(centers), tighten, self.chosen,
        )  # fmt: skip

    def _fill_empty(self, centers: Matrix) -> bool:
        """Give each empty cluster the row that costs most where it is; whether any row was moved."""
        empty = np.flatnonzero(self.sizes == 0)
        if not len(empty):
            return False
        costs = self._costs(centers)
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

    def _means(self, centers: Matrix) -> Matrix:
        filled = (self.sizes > 0)[:, None]
        return np.where(filled, self.sums / np.where(filled, self.mass[:, None], 1.0), centers)


def halfway(centers: Matrix) -> Matrix:
    """Half of each centre's distance to the nearest other one, less its rounding: nearer rows belong to it."""
    squares = np.einsum("ij,ij->i", centers, centers)
    gaps = squares[:, None] + squares - 2 * centers @ centers.T
    gaps -= 4 * (centers.shape[1] + 3) * np.finfo(float).eps * squares.max()
    np.fill_diagonal(gaps, HUGE)
    return np.sqrt(np.maximum(gaps.min(axis=1), 0.0)) / 2


def fits_four_bytes(norms: Matrix) -> bool:
    """Whether squares of such rows neither overflow nor vanish in 4-byte numbers."""
    return bool(len(norms) and 1e-20 < norms.max() < 1e30)


def nearest(X: Matrix, centers: Matrix) -> tuple[npt.NDArray[np.int32], Matrix]:
    """Each row's nearest centre, the first of equals, and the squared distance to it, as in 8-byte arithmetic.

    Examples
    --------
    >>> labels, squares = nearest(np.array([[0.0], [2.0], [5.0]]), np.array([[0.0], [4.0]]))
    >>> labels.tolist(), squares.tolist()
    ([0, 0, 1], [0.0, 4.0, 1.0])
    """
    origin = centers.mean(axis=0)
    around = centers - origin
    exact = Centers(around, np.float64)
    quick = Centers(around, np.float32) if fits_four_bytes(exact.squares) else None
    labels = np.empty(len(X), dtype=np.int32)
    squares = np.empty(len(X))
    for start in range(0, len(X), BLOCK):
        block = np.ascontiguousarray(X[start : start + BLOCK] - origin)
        rows, norms = np.arange(len(block)), np.einsum("ij,ij->i", block, block)
        found, upper, lower = np.empty(len(block), dtype=np.int32), np.empty(len(block)), np.empty(len(block))
        close = len(block)
        if quick and fits_four_bytes(norms):
            close = quick.decide(block.astype(np.float32), rows, norms, block, found, upper, lower)
        if close > len(block) / 2:
            exact.decide(block, rows, norms, block, found, upper, lower)
        labels[start : start + BLOCK] = found
        squares[start : start + BLOCK] = _own_costs(block, np.ones(len(block)), around, found)
    return labels, squares
