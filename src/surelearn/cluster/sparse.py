"""Sparse rows for k-means: the steps of dense ones at the price of the entries, without ever
filling a row in.

Rows stay where they are, as moving them about their mean would fill them. ‖x − c‖² is ‖x‖² + ‖c‖² −
2⟨x, c⟩ in 8 bytes, and from the coordinates where that cancels or could decide between two centers.

This module compiles with numba and is imported when something is clustered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from scipy import sparse

from surelearn.cluster.rows import (
    CANCELS,
    EPS,
    FAST,
    HUGE,
    Parts,
    own_squares,
    settle,
    squared_distance,
)
from surelearn.types import Ints

Matrix = npt.NDArray[Any]

BLOCK = 1024
PIECE = 64  # columns of the centers that are worked on at a time


class CSRRows:
    """CSR rows that can be counted and picked like those of an array; what is picked is dense."""

    def __init__(self, X: sparse.csr_array) -> None:
        self.csr = X if X.has_canonical_format else X.copy()
        self.csr.sum_duplicates()
        self.layout: Parts = (self.csr.data, self.csr.indices, self.csr.indptr)
        self.shape: tuple[int, int] = self.csr.shape
        self.norms: Matrix = _norms(*self.layout)
        self._factors: Matrix | None = None  # kept from one assignment to the next

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Ints | Sequence[int] | int) -> Matrix:
        chosen = np.atleast_1d(rows)
        picked = np.zeros((len(chosen), self.shape[1]))
        _fill(self.layout, chosen, picked)
        return picked if np.ndim(rows) else picked[0]

    @property
    def quick_layout(self) -> Parts:
        """What compiled loops read where bounds allow for rounding: the same, as 8 bytes are
        exact enough.
        """
        return self.layout

    def take(self, rows: Matrix) -> CSRRows:
        """Some of the rows."""
        return CSRRows(self.csr[rows])

    def decide(
        self, chosen: Matrix, centers: Matrix, upper: Matrix, lower: Matrix
    ) -> npt.NDArray[np.int32]:
        """The nearest centers of the ``chosen`` rows, the first of equals; bounds on all
        distances are written.
        """
        k, d = centers.shape
        found, squares = np.empty(len(chosen), dtype=np.int32), np.empty(k)
        if self._factors is None or self._factors.shape != (d, k):
            self._factors = np.empty((d, k))
        factors = self._factors
        _prepare(centers, factors, squares)
        longest = float(np.sqrt(squares.max()))
        _decide(
            self.layout, chosen, self.norms, factors, squares, longest, centers, found, upper, lower
        )
        return found

    def lower(self, centers: Matrix, squares: Matrix) -> None:
        """Lower ‖x − c‖² of each row and set of centers, (sets, n), by new centers, (sets, b,
        d).
        """
        sets, b, d = centers.shape
        flat = centers.reshape(sets * b, d)
        columns = np.ascontiguousarray(flat.T)
        for start in range(0, len(self), BLOCK):
            part = squares[:, start : start + BLOCK]
            found = self._block(flat, columns, start, part.shape[1]).reshape(part.shape[1], sets, b)
            np.minimum(part, found.min(axis=2).T, out=part)

    def squared_distances(self, centers: Matrix) -> Matrix:
        """‖x − c‖² of every row and center."""
        return self._block(centers, np.ascontiguousarray(centers.T), 0, len(self))

    def near_squares(self, centers: Matrix) -> Matrix:
        """‖x − c‖² of every center and row, (centers, n)."""
        return np.ascontiguousarray(self.squared_distances(centers).T)

    def _block(self, centers: Matrix, columns: Matrix, start: int, count: int) -> Matrix:
        out = np.empty((count, len(centers)))
        _squared_distances(self.layout, self.norms, centers, columns, start, out)
        return out


@numba.njit(cache=True)
def _fill(rows: Parts, chosen: Matrix, into: Matrix) -> None:  # pragma: no cover - compiled
    """Write the entries of some rows into zeros."""
    data, indices, indptr = rows
    for r in range(chosen.size):
        for p in range(indptr[chosen[r]], indptr[chosen[r] + 1]):
            into[r, indices[p]] = data[p]


@numba.njit(cache=True)
def _norms(data: Matrix, indices: Matrix, indptr: Matrix) -> Matrix:  # noqa: ARG001  # pragma: no cover - compiled
    norms = np.zeros(indptr.size - 1)
    for i in range(norms.size):
        for p in range(indptr[i], indptr[i + 1]):
            norms[i] += data[p] * data[p]
    return norms


@numba.njit(cache=True, fastmath=FAST)
def _squared_distances(  # pragma: no cover - compiled
    rows: Parts, norms: Matrix, centers: Matrix, columns: Matrix, start: int, out: Matrix
) -> None:
    data, indices, indptr = rows
    k = centers.shape[0]
    lengths = np.zeros(k)
    for c in range(k):
        for j in range(centers.shape[1]):
            lengths[c] += centers[c, j] * centers[c, j]
    for r in range(out.shape[0]):
        i = start + r
        products = out[r]
        products[:] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            value, line = data[p], columns[indices[p]]
            for c in range(k):
                products[c] += value * line[c]
        for c in range(k):
            scale = norms[i] + lengths[c]
            gap = scale - 2 * products[c]
            products[c] = gap if gap >= CANCELS * scale else squared_distance(rows, i, centers[c])


@numba.njit(cache=True, fastmath=FAST)
def _prepare(
    centers: Matrix, factors: Matrix, squares: Matrix
) -> None:  # pragma: no cover - compiled
    """Write −2·centers, (d, k), and ‖c‖², (k,), some columns at a time, which stay in the cache."""
    k, d = centers.shape
    squares[:] = 0.0
    for start in range(0, d, PIECE):
        end = min(d, start + PIECE)
        for c in range(k):
            part = 0.0
            for j in range(start, end):
                value = centers[c, j]
                part += value * value
                factors[j, c] = -2 * value
            squares[c] += part


@numba.njit(cache=True, fastmath=FAST)
def _decide(  # pragma: no cover - compiled
    rows: Parts,
    chosen: Matrix,
    norms: Matrix,
    factors: Matrix,
    squares: Matrix,
    longest: float,
    centers: Matrix,
    found: Matrix,
    upper: Matrix,
    lower: Matrix,
) -> None:
    """Find the nearest centers of the ``chosen`` rows.

    Scores are off by at most e = ε·((entries + 3)‖x‖·max‖c‖ + s·max‖c‖²), where s = 64 + d/64
    counts the roundings of a squared norm.
    """
    data, indices, indptr = rows
    k = squares.size
    scores = np.empty(k)
    for r in range(chosen.size):
        i: int = chosen[r]
        scores[:] = squares
        for p in range(indptr[i], indptr[i + 1]):
            value, line = data[p], factors[indices[p]]
            for c in range(k):
                scores[c] += value * line[c]
        best, second, place = scores[0], HUGE, 0
        for c in range(1, k):
            if scores[c] < best:
                best, second, place = scores[c], best, c
            elif scores[c] < second:
                second = scores[c]
        error: float = EPS * (
            (indptr[i + 1] - indptr[i] + 3) * np.sqrt(norms[i]) * longest
            + (PIECE + centers.shape[1] / PIECE) * longest * longest
        )
        found[r] = settle(
            scores, best, second, place, error, rows, i, norms[i], centers, upper, lower
        )


def nearest(X: CSRRows, centers: Matrix) -> tuple[npt.NDArray[np.int32], Matrix]:
    """Each row's nearest center, the first of equals, and the squared distance to it.

    Examples
    --------
    >>> from scipy import sparse
    >>> rows = CSRRows(sparse.csr_array(np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 5.0]])))
    >>> labels, squares = nearest(rows, np.array([[0.0, 0.0], [0.0, 4.0]]))
    >>> labels.tolist(), squares.tolist()
    ([0, 0, 1], [0.0, 4.0, 1.0])
    """
    labels = X.decide(np.arange(len(X)), centers, np.empty(len(X)), np.empty(len(X)))
    return labels, own_squares(X.layout, X.norms, centers, np.square(centers).sum(axis=1), labels)


def centered_gram(X: CSRRows, weights: Matrix) -> tuple[Matrix, float]:
    """Inner products of the columns (or rows, if fewer) of √w·(x − mean), and how far its
    eigenvalues can be off.
    """
    n, d = X.shape
    roots, mean = np.sqrt(weights), np.asarray(X.csr.T @ (weights / weights.sum()))
    scaled = X.csr.multiply(roots[:, None]).tocsr()
    if d <= n:
        gram = (scaled.T @ scaled).toarray() - weights.sum() * np.outer(mean, mean)
    else:
        shift = np.asarray(scaled @ mean).ravel() - roots * (mean @ mean) / 2
        gram = (scaled @ scaled.T).toarray()
        gram -= np.outer(shift, roots)
        gram -= np.outer(roots, shift)
    return gram, 4 * (n + d) * EPS * float(weights @ X.norms)
