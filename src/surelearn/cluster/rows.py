"""What k-means needs of one row, dense or sparse, compiled into the same loops.

Compiled loops take rows as an array, (n, d), or as the three parts of a CSR matrix, and call the
functions below; which of the two implementations is meant is settled by the type when a loop is
compiled, so that the choice costs nothing.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import overload

Matrix = npt.NDArray[Any]
Parts = tuple[Matrix, Matrix, Matrix]  # data, indices and indptr of a CSR matrix
Layout = Matrix | Parts

FAST = {"reassoc", "contract", "nsz", "arcp", "nnan", "ninf"}
HUGE = 1e300  # compiled code assumes that nothing is infinite
EPS = float(np.finfo(float).eps)
# a later center must be nearer by more than rounding: texts of unit length tie by the thousand
NEARER = 1 - 1e-12
CANCELS = 1e-4  # below this part of ‖x‖² + ‖c‖², the expanded square has lost too many digits


def squared_distance(rows: Layout, i: int, c: Matrix) -> float:
    """‖x − c‖² of row i from the coordinates, all of them."""
    return (_dense_distance if isinstance(rows, np.ndarray) else _sparse_distance)(rows, i, c)


def quick_distance(rows: Layout, i: int, norm: float, c: Matrix, square: float) -> float:
    """‖x − c‖² of row i at the price of its entries; ``norm`` is ‖x‖² and ``square`` is ‖c‖²."""
    return (_dense_quick if isinstance(rows, np.ndarray) else _sparse_quick)(
        rows, i, norm, c, square
    )


def distance_at_most(
    rows: Layout, i: int, norm: float, c: Matrix, square: float, longest: float
) -> float:
    """An upper bound on ‖x − c‖ of row i with its rounding, at the price of its entries;
    ``longest`` is at least ‖c‖.
    """
    bound = _bound_dense(rows.dtype.type) if isinstance(rows, np.ndarray) else _bound_sparse
    return bound(rows, i, norm, c, square, longest)


def add_row(rows: Layout, i: int, weight: float, into: Matrix) -> None:
    """Add ``weight`` times row i to a vector."""
    (_dense_add if isinstance(rows, np.ndarray) else _sparse_add)(rows, i, weight, into)


# Dense rows: an array.


def _dense_distance(rows: Any, i: int, c: Matrix) -> float:  # pragma: no cover - compiled
    total = 0.0
    for j in range(c.size):
        gap = rows[i, j] - c[j]
        total += gap * gap
    return total


def _dense_quick(
    rows: Any,
    i: int,
    norm: float,  # noqa: ARG001
    c: Matrix,
    square: float,  # noqa: ARG001
) -> float:  # pragma: no cover - compiled
    total = 0.0
    for j in range(c.size):
        gap = rows[i, j] - c[j]
        total += gap * gap
    return total


def _bound_dense(number: Any) -> Any:
    """For 4- or 8-byte rows, roundoff u: a distance is off by at most u·((d + 4)·distance +
    2(‖x‖ + ‖c‖)).
    """
    zero, roundoff = number(0), float(np.finfo(number).eps)

    def bound(  # pragma: no cover - compiled
        rows: Any,
        i: int,
        norm: float,
        c: Matrix,
        square: float,  # noqa: ARG001
        longest: float,
    ) -> float:
        total = zero
        for j in range(c.size):
            gap = rows[i, j] - c[j]
            total += gap * gap
        distance = np.sqrt(np.float64(total))
        return distance + roundoff * ((c.size + 4) * distance + 2 * (np.sqrt(norm) + longest))

    return bound


def _dense_add(
    rows: Any, i: int, weight: float, into: Matrix
) -> None:  # pragma: no cover - compiled
    for j in range(into.size):
        into[j] += weight * rows[i, j]


# Sparse rows: data, indices and indptr of a CSR matrix.


def _sparse_distance(rows: Any, i: int, c: Matrix) -> float:  # pragma: no cover - compiled
    data, indices, indptr = rows
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


def _sparse_quick(
    rows: Any, i: int, norm: float, c: Matrix, square: float
) -> float:  # pragma: no cover - compiled
    data, indices, indptr = rows
    product = 0.0
    for p in range(indptr[i], indptr[i + 1]):
        product += data[p] * c[indices[p]]
    scale = norm + square
    gap = scale - 2 * product
    return gap if gap >= CANCELS * scale else squared_distance(rows, i, c)


def _bound_sparse(
    rows: Any, i: int, norm: float, c: Matrix, square: float, longest: float
) -> float:  # pragma: no cover - compiled
    data, indices, indptr = rows
    product = 0.0
    for p in range(indptr[i], indptr[i + 1]):
        product += data[p] * c[indices[p]]
    error = EPS * (
        (indptr[i + 1] - indptr[i] + 3) * 2 * np.sqrt(norm) * longest + 32 * longest * longest
    )
    return np.sqrt(max(0.0, norm + square - 2 * product + error + 4 * EPS * norm))


def _sparse_add(
    rows: Any, i: int, weight: float, into: Matrix
) -> None:  # pragma: no cover - compiled
    data, indices, indptr = rows
    for p in range(indptr[i], indptr[i + 1]):
        into[indices[p]] += weight * data[p]


# Which implementation a compiled loop gets.


@overload(squared_distance, jit_options={"fastmath": FAST})
def _compile_distance(rows: Any, i: int, c: Matrix) -> Any:  # noqa: ARG001
    return _dense_distance if isinstance(rows, types.Array) else _sparse_distance


@overload(quick_distance, jit_options={"fastmath": FAST})
def _compile_quick(rows: Any, i: int, norm: float, c: Matrix, square: float) -> Any:  # noqa: ARG001
    return _dense_quick if isinstance(rows, types.Array) else _sparse_quick


@overload(distance_at_most, jit_options={"fastmath": FAST})
def _compile_bound(rows: Any, i: int, norm: float, c: Matrix, square: float, longest: float) -> Any:  # noqa: ARG001
    if isinstance(rows, types.Array):
        return _bound_dense(np.dtype(rows.dtype.name).type)
    return _bound_sparse


@overload(add_row)
def _compile_add(rows: Any, i: int, weight: float, into: Matrix) -> Any:  # noqa: ARG001
    return _dense_add if isinstance(rows, types.Array) else _sparse_add


# Loops that both kinds of rows share.


@numba.njit(cache=True, fastmath=FAST)
def settle(  # pragma: no cover - compiled
    scores: Matrix,
    best: float,
    second: float,
    place: int,
    error: float,
    rows: Layout,
    i: int,
    norm: float,
    centers: Matrix,
    upper: Matrix,
    lower: Matrix,
) -> int:
    """Row i's nearest center, and bounds on the distances to it and to all others, from scores ‖c‖²
    − 2⟨x, c⟩.

    Scores are off by at most ``error``; ``best``, at ``place``, and ``second`` are the two
    smallest. Centers within twice the error of the best are compared by their distances, the first
    of equals winning.
    """
    upper[i] = np.sqrt(max(0.0, best + norm + error))
    lower[i] = np.sqrt(max(0.0, second + norm - error))
    if second - best > 2 * error:
        return place
    nearest = HUGE
    for c in range(centers.shape[0]):
        if scores[c] <= best + 2 * error:
            gap = squared_distance(rows, i, centers[c])
            if gap < nearest * NEARER:
                nearest = gap
                place = c
    upper[i] = np.sqrt(nearest)
    lower[i] = np.sqrt(max(0.0, best + norm - error))
    return place


@numba.njit(cache=True, fastmath=FAST)
def own_squares(
    rows: Layout, norms: Matrix, centers: Matrix, lengths: Matrix, labels: Matrix
) -> Matrix:  # pragma: no cover - compiled
    """‖x − c‖² of each row and its own center; ``lengths`` are ‖c‖²."""
    squares = np.empty(labels.size)
    for i in range(labels.size):
        c: int = labels[i]
        squares[i] = quick_distance(rows, i, norms[i], centers[c], lengths[c])
    return squares


@numba.njit(cache=True, fastmath=FAST)
def few_distances(
    rows: Layout, chosen: Matrix, norms: Matrix, centers: Matrix, lengths: Matrix
) -> Matrix:  # pragma: no cover - compiled
    """‖x − c‖² of a few rows and every center, without another copy of the centers."""
    squares = np.empty((chosen.size, lengths.size))
    for r in range(chosen.size):
        i: int = chosen[r]
        for c in range(lengths.size):
            squares[r, c] = quick_distance(rows, i, norms[i], centers[c], lengths[c])
    return squares
