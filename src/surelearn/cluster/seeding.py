"""Starting centres: k-means++ as its theorem has it, several seedings at once, and greedy k-means++ without a claim.

All arithmetic is in 8 bytes, and distances that cancel are computed again from the coordinates: the theorem is about
probabilities proportional to the squared distance.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from surelearn.cluster.lloyd import FAST, squared_distance
from surelearn.cluster.sparse import CANCELS, SparseRows, squared_distances

Matrix = npt.NDArray[Any]

BLOCK = 1024


@numba.njit(cache=True, fastmath=FAST)
def _relax(  # pragma: no cover - compiled
    products: Matrix, X: Matrix, norms: Matrix, weights: Matrix, centers: Matrix, squares: Matrix, costs: Matrix, start: int
) -> Matrix:
    """Lower the costs w·D² of a block by the new centres, one a column; the block's total of each column."""
    totals = np.zeros(costs.shape[1])
    for r in range(products.shape[0]):
        i = start + r
        for s in range(costs.shape[1]):
            gap = norms[i] + squares[s] - 2 * products[r, s]
            if gap < CANCELS * (norms[i] + squares[s]):
                gap = squared_distance(X[i], centers[s])
            cost = weights[i] * gap
            if cost < costs[i, s]:
                costs[i, s] = cost
            totals[s] += costs[i, s]
    return totals


def norms_of(X: Matrix | SparseRows) -> Matrix:
    """‖x‖² of every row."""
    return X.norms if isinstance(X, SparseRows) else np.einsum("ij,ij->i", X, X)


def relax(X: Matrix | SparseRows, norms: Matrix, weights: Matrix, centers: Matrix, costs: Matrix) -> Matrix:
    """Lower each column of ``costs`` by its new centre; totals by block and column."""
    squares = np.einsum("ij,ij->i", centers, centers)
    totals = np.empty((-(-len(X) // BLOCK), len(centers)))
    for b, start in enumerate(range(0, len(X), BLOCK)):
        if isinstance(X, SparseRows):
            block = slice(start, start + BLOCK)
            costs[block] = np.minimum(costs[block], weights[block, None] * squared_distances(X, centers, block))
            totals[b] = costs[block].sum(axis=0)
            continue
        products = np.dot(X[start : start + BLOCK], centers.T)
        totals[b] = _relax(products, X, norms, weights, centers, squares, costs, start)
    return totals


def draw(costs: Matrix, totals: Matrix, weights: Matrix, uniform: Matrix) -> npt.NDArray[np.int64]:
    """For each column, a row with probability proportional to its cost; by weight where nothing costs anything."""
    rows = np.empty(len(uniform), dtype=np.int64)
    for s, u in enumerate(uniform):
        ends = np.cumsum(totals[:, s])
        if ends[-1] <= 0:
            rows[s] = pick(weights, u)
            continue
        block = min(int(np.searchsorted(ends, u * ends[-1], side="right")), len(ends) - 1)
        while totals[block, s] <= 0:  # u so near 1 that rounding ran past the last row that costs something
            block -= 1
        start = block * BLOCK
        before = ends[block - 1] if block else 0.0
        part = costs[start : start + BLOCK, s]
        rows[s] = start + pick(part, max(0.0, u * ends[-1] - before) / part.sum())
    return rows


def pick(masses: Matrix, u: float) -> int:
    """The position at which the running sum of ``masses`` first exceeds u times its end."""
    ends = np.cumsum(masses)
    place = int(np.searchsorted(ends, u * ends[-1], side="right"))
    return min(place, int(np.flatnonzero(masses)[-1]))


def plain(
    X: Matrix | SparseRows, weights: Matrix, k: int, runs: int, random: np.random.RandomState
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Rows and costs of ``runs`` independent k-means++ seedings: Algorithm 8.3.2 of the stability notes.

    The first centre is drawn by weight, every further one with probability proportional to w·D², D the distance to the
    nearest centre so far. All runs walk over the rows together, so that eight cost little more than one.

    Returns
    -------
    rows : (runs, k), the positions of the centres in X
    costs : (runs,), Σ w·D² of the finished seedings
    """
    norms = norms_of(X)
    costs = np.full((len(X), runs), np.finfo(float).max)
    rows = np.empty((runs, k), dtype=np.int64)
    rows[:, 0] = [pick(weights, u) for u in random.random_sample(runs)]
    totals = relax(X, norms, weights, X[rows[:, 0]], costs)
    for step in range(1, k):
        rows[:, step] = draw(costs, totals, weights, random.random_sample(runs))
        totals = relax(X, norms, weights, X[rows[:, step]], costs)
    return rows, totals.sum(axis=0)


def greedy(X: Matrix | SparseRows, weights: Matrix, k: int, random: np.random.RandomState) -> npt.NDArray[np.int64]:
    """Rows of a greedy k-means++ seeding: of 2 + ⌊ln k⌋ candidates a step the one that lowers the cost most.

    It is what scikit-learn calls k-means++. The bound 8(ln k + 2) does not hold for it: A. Bhattacharya, J. Eube, H. Röglin
    and M. Schmidt (ESA 2020) give an example with ratio Ω(ℓ·log k) for ℓ candidates.
    """
    norms, candidates = norms_of(X), 2 + int(math.log(k))
    costs = np.full((len(X), 1), np.finfo(float).max)
    rows = np.empty(k, dtype=np.int64)
    rows[0] = pick(weights, random.random_sample())
    totals = relax(X, norms, weights, X[rows[:1]], costs)
    for step in range(1, k):
        tried = draw(
            np.broadcast_to(costs, (len(X), candidates)),
            np.broadcast_to(totals, (len(totals), candidates)),
            weights,
            random.random_sample(candidates),
        )
        lowered = np.repeat(costs, candidates, axis=1)
        after = relax(X, norms, weights, X[tried], lowered)
        best = int(np.argmin(after.sum(axis=0)))
        rows[step], costs, totals = tried[best], lowered[:, best : best + 1].copy(), after[:, best : best + 1].copy()
    return rows


def uniform(X: Matrix | SparseRows, weights: Matrix, k: int, random: np.random.RandomState) -> npt.NDArray[np.int64]:
    """Different rows drawn by weight, as long as there are such; equal rows are neighbours in X."""
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
