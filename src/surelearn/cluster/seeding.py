"""Starting centers: k-means++ as its theorem has it, several seedings at once, and greedy k-means++
without a claim.

Squared distances are kept in 8 bytes, and those that cancel are computed from the coordinates: the
theorem is about probabilities proportional to the squared distance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from surelearn.cluster.lloyd import Rows
from surelearn.cluster.rows import FAST, HUGE, Layout, quick_distance

Matrix = npt.NDArray[Any]

BLOCK = 1024


@dataclass(frozen=True)
class Seedings:
    """Independent k-means++ seedings.

    Attributes
    ----------
    rows : (runs, k), the positions of the centers
    costs : (runs,), Σ w·D² of the finished seedings
    squares : (n,), D² of the cheapest seeding
    """

    rows: npt.NDArray[np.int64]
    costs: Matrix
    squares: Matrix

    @property
    def cheapest(self) -> npt.NDArray[np.int64]:
        """The positions of the centers of the cheapest seeding."""
        return self.rows[np.argmin(self.costs)]


@numba.njit(cache=True)
def _totals(squares: Matrix, weights: Matrix) -> Matrix:  # pragma: no cover - compiled
    """Σ w·D² by seeding and block of rows."""
    totals = np.zeros((squares.shape[0], -(-weights.size // BLOCK)))
    for s in range(squares.shape[0]):
        for i in range(weights.size):
            totals[s, i // BLOCK] += weights[i] * squares[s, i]
    return totals


@numba.njit(cache=True)
def _propose(
    squares: Matrix, weights: Matrix, totals: Matrix, u: float
) -> int:  # pragma: no cover - compiled
    """A row with probability proportional to w·D², from u uniform on [0, 1); -1 where nothing
    costs anything.
    """
    target, block = u * totals.sum(), -1
    for b in range(totals.size):
        if totals[b] <= 0:
            continue
        block = b
        if target < totals[b]:
            break
        target -= totals[b]
    row = -1
    if block < 0:
        return row
    for i in range(block * BLOCK, min(weights.size, (block + 1) * BLOCK)):
        mass = weights[i] * squares[i]
        if mass <= 0:
            continue
        row = i
        if target < mass:
            break
        target -= mass
    return row


@numba.njit(cache=True, fastmath=FAST)
def _to_nearest(
    rows: Layout, i: int, norm: float, centers: Matrix, lengths: Matrix
) -> float:  # pragma: no cover - compiled
    """Row i's squared distance to the nearest of some centers."""
    nearest = HUGE
    for c in range(centers.shape[0]):
        nearest = min(nearest, quick_distance(rows, i, norm, centers[c], lengths[c]))
    return nearest


def pick(masses: Matrix, u: float) -> int:
    """The position at which the running sum of ``masses`` first exceeds u times its end."""
    ends = np.cumsum(masses)
    place = int(np.searchsorted(ends, u * ends[-1], side="right"))
    return min(place, int(np.flatnonzero(masses)[-1]))


def plain(
    X: Rows, weights: Matrix, k: int, runs: int, random: np.random.RandomState, *, most: int
) -> Seedings:
    """Draw ``runs`` independent k-means++ seedings: Algorithm 8.3.2 of the stability notes.

    The first center is drawn by weight, every further one with probability proportional to w·D², D
    the distance to the nearest center so far. D² is brought up to date for up to ``most`` centers
    of every seeding in one walk over the rows. In between, a row is proposed by its old D² and
    taken with probability D² / old D². As D² only falls, this draws from the same distribution. A
    seeding waits for the next walk after as many rejections as it may take centers: only rejected
    rows decide that, so that it changes nothing about those that are taken.
    """
    taken = [[pick(weights, u)] for u in random.random_sample(runs)]
    squares, done = np.full((runs, len(X)), HUGE), [0] * runs
    while True:
        longest = max(len(rows) - before for rows, before in zip(taken, done, strict=True))
        # A seeding that took fewer centers than another repeats its last one, which lowers nothing.
        last = [
            (rows[before:] + [rows[-1]] * longest)[:longest]
            for rows, before in zip(taken, done, strict=True)
        ]
        X.lower(X[np.ravel(last)].reshape(runs, longest, -1), squares)
        totals = _totals(squares, weights)
        done = [len(rows) for rows in taken]
        if min(done) == k:
            break
        for s, rows in enumerate(taken):
            rows += _take(
                X, weights, squares[s], totals[s], min(most, len(rows), k - len(rows)), random
            )
    costs = totals.sum(axis=1)
    return Seedings(np.array(taken), costs, squares[np.argmin(costs)])


def _take(
    X: Rows,
    weights: Matrix,
    squares: Matrix,
    totals: Matrix,
    most: int,
    random: np.random.RandomState,
) -> list[int]:
    """Up to ``most`` further centers of a seeding, one after the other, from D² to the centers
    before them.
    """
    taken: list[int] = []
    centers, lengths, rejected = np.empty((most, X.shape[1])), np.empty(most), 0
    while len(taken) < most and rejected <= most:
        count, u = len(taken), random.random_sample()
        row = int(_propose(squares, weights, totals, u))
        if row < 0:
            row = pick(weights, u)
        elif count:
            square = _to_nearest(X.layout, row, X.norms[row], centers[:count], lengths[:count])
            if random.random_sample() * squares[row] >= square:
                rejected += 1
                continue
        taken.append(row)
        centers[count] = X[row]
        lengths[count] = centers[count] @ centers[count]
    return taken


def greedy(
    X: Rows, weights: Matrix, k: int, random: np.random.RandomState
) -> npt.NDArray[np.int64]:
    """Rows of a greedy k-means++ seeding: of 2 + ⌊ln k⌋ candidates per step the one that lowers the
    cost most.

    It is what scikit-learn calls k-means++. The bound 8(ln k + 2) does not hold for it: A.
    Bhattacharya, J. Eube, H. Röglin and M. Schmidt (ESA 2020) give an example with ratio Ω(ℓ·log k)
    for ℓ candidates.
    """
    candidates = 2 + int(math.log(k))
    rows = [pick(weights, random.random_sample())]
    squares = np.full((1, len(X)), HUGE)
    X.lower(X[rows][None], squares)
    totals = _totals(squares, weights)[0]
    while len(rows) < k:
        draws = random.random_sample(candidates)
        tried = np.array([_propose(squares[0], weights, totals, u) for u in draws])
        if tried[0] < 0:
            tried = np.array([pick(weights, u) for u in draws])
        lowered = np.repeat(squares, candidates, axis=0)
        X.lower(X[tried][:, None], lowered)
        after = _totals(lowered, weights)
        best = int(np.argmin(after.sum(axis=1)))
        rows.append(int(tried[best]))
        squares, totals = lowered[best : best + 1].copy(), after[best]
    return np.array(rows)


def uniform(
    X: Rows, weights: Matrix, k: int, random: np.random.RandomState
) -> npt.NDArray[np.int64]:
    """Different rows drawn by weight, as long as there are such; equal rows are neighbors in X."""
    left = weights.copy()
    rows = np.empty(k, dtype=np.int64)
    for step in range(k):
        rows[step] = row = pick(left if left.any() else weights, random.random_sample())
        first, last = row, row
        while first > 0 and np.array_equal(X[first - 1], X[row]):
            first -= 1
        while last + 1 < len(X) and np.array_equal(X[last + 1], X[row]):
            last += 1
        left[first : last + 1] = 0.0
    return rows
