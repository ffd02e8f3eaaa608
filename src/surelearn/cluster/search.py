"""A better start than a seeding: swaps of centers on a small weighted sample of the rows.

A seeding of k centers misses some clusters and puts two centers into others, which Lloyd's
iterations cannot mend. Local search can (S. Lattanzi and C. Sohler, "A better k-means++ algorithm
via local search", ICML 2019): a row drawn by w·D² replaces the center that is missed least, where
that lowers the cost. It runs on a coreset, rows drawn partly by weight and partly by their share of
the seeding's cost (O. Bachem, M. Lucic and A. Krause, "Scalable k-means clustering via lightweight
coresets", KDD 2018), so that its price does not grow with the number of rows and far rows are not
lost. Nothing is claimed of the result: the certificate's seedings are plain ones, drawn before.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from surelearn.cluster.lloyd import Lloyd, Rows
from surelearn.cluster.rows import FAST, few_distances
from surelearn.cluster.seeding import Seedings

Matrix = npt.NDArray[Any]

PER_CENTER, FEWEST = 50, 1000  # draws of the coreset, per center and at least
CANDIDATES = 8  # rows tried per swap
PATIENCE = 4  # rounds without a swap after which the search ends
ITERATIONS = 20  # of Lloyd on the coreset


def better_start(
    X: Rows, weights: Matrix, seedings: Seedings, tol: float, random: np.random.RandomState
) -> Matrix:
    """Centers to start Lloyd's iterations from, (k, d): the cheapest seeding after swaps and
    iterations on a coreset.
    """
    k = seedings.rows.shape[1]
    rows, masses = coreset(weights, seedings.squares, max(PER_CENTER * k, FEWEST), random)
    some = X.take(rows)
    centers = swaps(some, masses, X[seedings.cheapest], random)
    return Lloyd(some, masses).run(centers, ITERATIONS, tol).centers


def coreset(
    weights: Matrix, squares: Matrix, draws: int, random: np.random.RandomState
) -> tuple[npt.NDArray[np.int64], Matrix]:
    """Positions and weights of rows whose weighted cost is, for all centers, about that of all
    rows.

    Row i has the share q = (w/Σw + w·D²/Σw·D²)/2 of the draws, which lie evenly along the running
    sum of q, and weighs w/q per draw: a row of weight 2 is drawn as a row given twice.
    """
    shares = weights / weights.sum()
    costs = weights * squares
    if (total := costs.sum()) > 0:
        shares = (shares + costs / total) / 2
    ends = np.cumsum(shares)
    places = np.searchsorted(
        ends, (np.arange(draws) + random.random_sample()) * (ends[-1] / draws), side="right"
    )
    rows, counts = np.unique(np.minimum(places, np.flatnonzero(shares)[-1]), return_counts=True)
    return rows, counts * weights[rows] / (draws * shares[rows])


@numba.njit(cache=True, fastmath=FAST)
def _gains(
    tried: Matrix, weights: Matrix, first: Matrix, second: Matrix, labels: Matrix, k: int
) -> tuple[Matrix, Matrix]:  # pragma: no cover - compiled
    """For each candidate, (candidates, n) squared distances, the best center to replace and how
    much the cost falls then.

    Rows that stay with a center lose their distance to it for the second nearest, or the
    candidate's, where it is replaced.
    """
    gains, places = np.empty(tried.shape[0]), np.empty(tried.shape[0], dtype=np.int64)
    for c in range(tried.shape[0]):
        gain, losses = 0.0, np.zeros(k)
        for i in range(weights.size):
            new = tried[c, i]
            if new < first[i]:
                gain += weights[i] * (first[i] - new)
            else:
                losses[labels[i]] += weights[i] * (min(second[i], new) - first[i])
        places[c] = np.argmin(losses)
        gains[c] = gain - losses[places[c]]
    return gains, places


def swaps(X: Rows, weights: Matrix, centers: Matrix, random: np.random.RandomState) -> Matrix:
    """Replace centers by rows as long as that lowers the cost, at most k times."""
    centers, k = centers.copy(), len(centers)
    lengths = np.einsum("ij,ij->i", centers, centers)
    labels, seconds, first, second = _two_nearest(X.squared_distances(centers))
    failures = 0
    for _ in range(k):
        ends = np.cumsum(weights * first)
        if ends[-1] <= 0 or k == 1:
            break
        places = np.searchsorted(ends, random.random_sample(CANDIDATES) * ends[-1], side="right")
        candidates = X[np.minimum(places, len(X) - 1)]
        tried = X.near_squares(candidates)  # (candidates, n)
        gains, replaced = _gains(tried, weights, first, second, labels, k)
        best = int(np.argmax(gains))
        if gains[best] <= 1e-9 * ends[-1]:
            failures += 1
            if failures == PATIENCE:
                break
            continue
        # the best candidate takes the center's place; a row's two nearest centers are looked for again
        # only where that center was one of them
        failures, place, new = 0, int(replaced[best]), tried[best]
        centers[place], lengths[place] = candidates[best], candidates[best] @ candidates[best]
        lost = np.flatnonzero((labels == place) | (seconds == place))
        nearer, between = new < first, (new >= first) & (new < second)
        seconds = np.where(nearer, labels, np.where(between, place, seconds))
        second = np.where(nearer, first, np.where(between, new, second))
        labels, first = np.where(nearer, place, labels), np.where(nearer, new, first)
        again = few_distances(X.layout, lost, X.norms, centers, lengths)
        labels[lost], seconds[lost], first[lost], second[lost] = _two_nearest(again)
    return centers


def _two_nearest(squares: Matrix) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """The nearest and the second nearest center of each row, and the squared distances to them."""
    order = np.arange(len(squares))
    labels = squares.argmin(axis=1)
    first = squares[order, labels]
    squares[order, labels] = np.inf
    seconds = squares.argmin(axis=1)
    return labels, seconds, first, squares[order, seconds]
