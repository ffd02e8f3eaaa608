"""Sparse rows for k-means: the steps of dense ones at the price of the entries, without ever filling a row in.

Rows stay where they are, as moving them about their mean would fill them. ‖x − c‖² is ‖x‖² + ‖c‖² − 2⟨x, c⟩ in 8 bytes, and
from the coordinates where that cancels or could decide between two centres.

This module compiles with numba and is imported when sparse rows are clustered.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from surelearn.cluster.lloyd import FAST, HUGE, NEARER, SLACK, Lloyd, halfway

Matrix = npt.NDArray[Any]

CANCELS = 1e-4  # below this part of ‖x‖² + ‖c‖², the expanded square has lost too many digits
EPS = float(np.finfo(float).eps)


class SparseRows:
    """CSR rows that can be counted and picked like those of an array; what is picked is dense."""

    def __init__(self, X: Any) -> None:
        self.csr = X if X.has_canonical_format else X.copy()
        self.csr.sum_duplicates()
        self.parts: tuple[Matrix, Matrix, Matrix] = (self.csr.data, self.csr.indices, self.csr.indptr)
        self.shape: tuple[int, int] = self.csr.shape
        self.norms: Matrix = _norms(*self.parts)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Matrix:
        picked = self.csr[np.atleast_1d(rows)].toarray()
        return picked if np.ndim(rows) else picked[0]


@numba.njit(cache=True)
def _norms(data: Matrix, indices: Matrix, indptr: Matrix) -> Matrix:  # noqa: ARG001  # pragma: no cover - compiled
    norms = np.zeros(indptr.size - 1)
    for i in range(norms.size):
        for p in range(indptr[i], indptr[i + 1]):
            norms[i] += data[p] * data[p]
    return norms


@numba.njit(cache=True, fastmath=FAST)
def _distance(data: Matrix, indices: Matrix, indptr: Matrix, i: int, c: Matrix) -> float:  # pragma: no cover - compiled
    """‖x − c‖² from the coordinates, all of them."""
    total, column = 0.0, 0
    for p in range(indptr[i], indptr[i + 1]):
        j = indices[p]
        for between in range(column, j):
            total += c[between] * c[between]
        gap = data[p] - c[j]
        total += gap * gap
        column = j + 1
    for between in range(column, c.size):
        total += c[between] * c[between]
    return total


@numba.njit(cache=True, fastmath=FAST)
def _squared_distances(  # pragma: no cover - compiled
    data: Matrix, indices: Matrix, indptr: Matrix, norms: Matrix, centers: Matrix, columns: Matrix, start: int, out: Matrix
) -> None:
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
            products[c] = gap if gap >= CANCELS * scale else _distance(data, indices, indptr, i, centers[c])


@numba.njit(cache=True, fastmath=FAST)
def _decide(  # pragma: no cover - compiled
    data: Matrix,
    indices: Matrix,
    indptr: Matrix,
    rows: Matrix,
    norms: Matrix,
    factors: Matrix,
    squares: Matrix,
    longest: float,
    centers: Matrix,
    found: Matrix,
    upper: Matrix,
    lower: Matrix,
) -> None:
    """Find the nearest centres of ``rows``, the first of equals, and bounds on the distances to them and to all others.

    Scores are off by at most e = ε·((entries + 3)‖x‖·max‖c‖ + 32·max‖c‖²); centres within 2e of the best are compared by
    their distances.
    """
    k = squares.size
    scores = np.empty(k)
    for r in range(rows.size):
        i = rows[r]
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
        error = EPS * ((indptr[i + 1] - indptr[i] + 3) * np.sqrt(norms[i]) * longest + 32 * longest * longest)
        upper[i] = np.sqrt(max(0.0, best + norms[i] + error))
        lower[i] = np.sqrt(max(0.0, second + norms[i] - error))
        found[r] = place
        if second - best > 2 * error:
            continue
        nearest = HUGE
        for c in range(k):
            if scores[c] <= best + 2 * error:
                gap = _distance(data, indices, indptr, i, centers[c])
                if gap < nearest * NEARER:
                    nearest = gap
                    found[r] = c
        upper[i] = np.sqrt(nearest)
        lower[i] = np.sqrt(max(0.0, best + norms[i] - error))


@numba.njit(cache=True, fastmath=FAST)
def _select(  # pragma: no cover - compiled
    data: Matrix,
    indices: Matrix,
    indptr: Matrix,
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
    """Move the bounds with the centres and collect the rows whose centre may no longer be the nearest."""
    count = 0
    for i in range(norms.size):
        own = labels[i]
        lower[i] -= others[own]
        upper[i] += moved[own]
        safe = max(lower[i], halfway[own])
        if upper[i] * SLACK < safe:
            continue
        if tighten:
            product = 0.0
            for p in range(indptr[i], indptr[i + 1]):
                product += data[p] * centers[own, indices[p]]
            error = EPS * ((indptr[i + 1] - indptr[i] + 3) * 2 * np.sqrt(norms[i]) * longest + 32 * longest * longest)
            upper[i] = np.sqrt(max(0.0, norms[i] + squares[own] - 2 * product + error + 4 * EPS * norms[i]))
            if upper[i] * SLACK < safe:
                continue
        chosen[count] = i
        count += 1
    return count


@numba.njit(cache=True)
def _move(  # pragma: no cover - compiled
    data: Matrix,
    indices: Matrix,
    indptr: Matrix,
    weights: Matrix,
    rows: Matrix,
    found: Matrix,
    labels: Matrix,
    sums: Matrix,
    mass: Matrix,
    sizes: Matrix,
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
        for p in range(indptr[i], indptr[i + 1]):
            part = w * data[p]
            sums[new, indices[p]] += part
            if old >= 0:
                sums[old, indices[p]] -= part
        mass[new] += w
        sizes[new] += w > 0
        if old >= 0:
            mass[old] -= w
            sizes[old] -= w > 0
    return changes


@numba.njit(cache=True)
def _own(  # pragma: no cover - compiled
    data: Matrix, indices: Matrix, indptr: Matrix, norms: Matrix, centers: Matrix, squares: Matrix, labels: Matrix
) -> Matrix:
    """‖x − c‖² of each row and its own centre."""
    own = np.empty(norms.size)
    for i in range(norms.size):
        c, product = labels[i], 0.0
        for p in range(indptr[i], indptr[i + 1]):
            product += data[p] * centers[c, indices[p]]
        scale = norms[i] + squares[c]
        own[i] = scale - 2 * product
        if own[i] < CANCELS * scale:
            own[i] = _distance(data, indices, indptr, i, centers[c])
    return own


class SparseLloyd(Lloyd):
    """Lloyd's iterations on sparse rows."""

    X: SparseRows

    def __init__(self, X: SparseRows, weights: Matrix) -> None:
        self.X, self.weights = X, weights

    def _assign(self, centers: Matrix, count: int) -> int:
        rows = self.chosen[:count]
        found = decide(self.X, rows, centers, self.upper, self.lower)
        return self._put(rows, found)

    def _put(self, rows: Matrix, found: Matrix) -> int:
        return _move(*self.X.parts, self.weights, rows, found, self.labels, self.sums, self.mass, self.sizes)

    def _costs(self, centers: Matrix) -> Matrix:
        own = _own(*self.X.parts, self.X.norms, centers, np.square(centers).sum(axis=1), self.labels)
        return self.weights * own

    def _unsettled(self, centers: Matrix, moved: Matrix, others: Matrix, tighten: bool) -> int:
        squares = np.square(centers).sum(axis=1)
        pays = centers.size <= self.X.csr.nnz  # wide centres have dearer distances than rows
        return _select(
            *self.X.parts, self.X.norms, centers, squares, float(np.sqrt(squares.max())), self.labels, self.upper,
            self.lower, moved, others, halfway(centers) if pays else np.zeros(len(centers)), tighten, self.chosen,
        )  # fmt: skip


def decide(X: SparseRows, rows: Matrix, centers: Matrix, upper: Matrix, lower: Matrix) -> npt.NDArray[np.int32]:
    """The nearest centres of some rows; their bounds are written."""
    squares = np.square(centers).sum(axis=1)
    found = np.empty(len(rows), dtype=np.int32)
    factors, longest = np.ascontiguousarray(-2 * centers.T), float(np.sqrt(squares.max()))
    _decide(*X.parts, rows, X.norms, factors, squares, longest, centers, found, upper, lower)
    return found


def nearest(X: SparseRows, centers: Matrix) -> tuple[npt.NDArray[np.int32], Matrix]:
    """Each row's nearest centre, the first of equals, and the squared distance to it.

    Examples
    --------
    >>> from scipy import sparse
    >>> rows = SparseRows(sparse.csr_array(np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 5.0]])))
    >>> labels, squares = nearest(rows, np.array([[0.0, 0.0], [0.0, 4.0]]))
    >>> labels.tolist(), squares.tolist()
    ([0, 0, 1], [0.0, 4.0, 1.0])
    """
    labels = decide(X, np.arange(len(X)), centers, np.empty(len(X)), np.empty(len(X)))
    return labels, _own(*X.parts, X.norms, centers, np.square(centers).sum(axis=1), labels)


def squared_distances(X: SparseRows, centers: Matrix, rows: slice) -> Matrix:
    """‖x − c‖² for consecutive rows and every centre."""
    start, stop, _ = rows.indices(len(X))
    out = np.empty((stop - start, len(centers)))
    _squared_distances(*X.parts, X.norms, centers, np.ascontiguousarray(centers.T), start, out)
    return out


def centred_gram(X: SparseRows, weights: Matrix) -> tuple[Matrix, float]:
    """Inner products of the columns (or rows, if fewer) of √w·(x − mean), and how far its eigenvalues can be off."""
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
