"""Dense rows for k-means: nearest centers by 4-byte matrix products, as exact as in 8 bytes.

Where the rounding of a 4-byte product could decide between two centers, or could hide that a center
is nearer, distances are computed again in 8 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from surelearn.cluster.rows import FAST, own_squares, settle, squared_distance
from surelearn.types import Ints

Matrix = npt.NDArray[Any]

SCORES = 51_200  # per product: in 4 bytes they stay in the second-level cache
FEWEST, MOST = 256, 8192  # rows per product
CANCELS = 1e-3  # below this part of ‖x‖² + ‖c‖², a 4-byte product has lost too many digits
CLOSE = 0.1  # part of the rows from which on 4 bytes are not worth their close calls


class DenseRows:
    """Rows of an array, (n, d), with their squared norms and a 4-byte copy to score them by."""

    def __init__(self, X: Matrix) -> None:
        self.X, self.shape = X, X.shape
        self.norms: Matrix = np.einsum("ij,ij->i", X, X)
        self._low: Matrix | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Ints | Sequence[int] | int) -> Matrix:
        return self.X[rows]

    @property
    def layout(self) -> Matrix:
        """What compiled loops read."""
        return self.X

    @property
    def low(self) -> Matrix:
        """The rows in 4 bytes, or in 8 where 4 do not hold them or cannot tell the centers
        apart.
        """
        if self._low is None:
            self._low = self.X.astype(np.float32) if fits_four_bytes(self.norms) else self.X
        return self._low

    @property
    def quick_layout(self) -> Matrix:
        """What compiled loops read where bounds allow for rounding."""
        return self.low

    def take(self, rows: Matrix) -> DenseRows:
        """Some of the rows."""
        return DenseRows(self.X[rows])

    def decide(
        self, chosen: Matrix, centers: Matrix, upper: Matrix, lower: Matrix
    ) -> npt.NDArray[np.int32]:
        """The nearest centers of the ``chosen`` rows, the first of equals; bounds on all
        distances are written.
        """
        low = self.low
        ready = Centers(centers, low.dtype)
        size = ready.rows
        buffer = np.empty((min(size, len(chosen)), self.shape[1]), dtype=low.dtype)
        found = np.empty(len(chosen), dtype=np.int32)
        close = 0
        for start in range(0, len(chosen), size):
            rows = chosen[start : start + size]
            block = buffer[: len(rows)]
            _gather(low, rows, block)
            close += ready.decide(
                block, rows, self.norms, self.X, found[start : start + size], upper, lower
            )
        if close > CLOSE * len(chosen):
            self._low = self.X
        return found

    def lower(self, centers: Matrix, squares: Matrix) -> None:
        """Lower ‖x − c‖² of each row and set of centers, (sets, n), by new centers, (sets, b,
        d).
        """
        sets, b, d = centers.shape
        rows, dtype = self.low, self.low.dtype
        flat = centers.reshape(sets * b, d)
        lengths = np.einsum("ij,ij->i", flat, flat)
        factors, rounding = (
            np.ascontiguousarray((-2 * flat.T).astype(dtype)),
            1.01 * float(np.finfo(dtype).eps),
        )
        low, longest = lengths.astype(dtype), float(np.sqrt(lengths.max()))
        size = rows_per_product(sets * b)
        scores = np.empty((min(size, len(self)), sets * b), dtype=dtype)
        for start in range(0, len(self), size):
            block = rows[start : start + size]
            part = scores[: len(block)]
            np.dot(block, factors, out=part)
            _lower(part, low, self.norms, self.X, centers, rounding, longest, start, squares)

    def near_squares(self, centers: Matrix) -> Matrix:
        """‖x − c‖² of every center and row, (centers, n), for a search: from 4-byte products, or
        from the coordinates where these cancel.
        """
        products = centers.astype(self.low.dtype) @ self.low.T
        out = np.empty(products.shape)
        _complete(
            products, self.norms, np.einsum("ij,ij->i", centers, centers), self.X, centers, out
        )
        return out

    def squared_distances(self, centers: Matrix) -> Matrix:
        """‖x − c‖² of every row and center; where the expanded square cancels, from the
        coordinates.
        """
        scale = self.norms[:, None] + np.einsum("ij,ij->i", centers, centers)
        squares = scale - self.X @ (2 * centers).T
        i, j = np.nonzero(squares < 1e-6 * scale)
        squares[i, j] = np.square(self.X[i] - centers[j]).sum(axis=1)
        return squares


@numba.njit(cache=True, fastmath=FAST)
def _complete(
    products: Matrix, norms: Matrix, lengths: Matrix, X: Matrix, centers: Matrix, out: Matrix
) -> None:  # pragma: no cover - compiled
    """Squared distances from products ⟨c, x⟩, (centers, n), and squared norms."""
    for c in range(lengths.size):
        for i in range(norms.size):
            scale = norms[i] + lengths[c]
            gap = scale - 2 * products[c, i]
            out[c, i] = gap if gap >= CANCELS * scale else squared_distance(X, i, centers[c])


@numba.njit(cache=True, fastmath=FAST)
def _lower(  # pragma: no cover - compiled
    scores: Matrix,
    lengths: Matrix,
    norms: Matrix,
    X: Matrix,
    centers: Matrix,
    rounding: float,
    longest: float,
    start: int,
    squares: Matrix,
) -> None:
    """Lower the squares of a block by the centers whose scores −2⟨x, c⟩, off by rounding, do
    not rule them out.
    """
    sets, b, d = centers.shape
    for r in range(scores.shape[0]):
        i = start + r
        error = rounding * ((d + 3) * np.sqrt(norms[i]) * longest + longest * longest)
        for s in range(sets):
            line, length = scores[r, s * b : s * b + b], lengths[s * b : s * b + b]
            best = line[0] + length[0]
            for j in range(b):
                line[j] += length[j]
                best = line[j] if line[j] < best else best
            if best + norms[i] - error >= squares[s, i]:
                continue
            first = 0
            while first < b - 1 and line[first] != best:
                first += 1
            squares[s, i] = min(squares[s, i], squared_distance(X, i, centers[s, first]))
            for j in range(b):
                if j != first and line[j] + norms[i] - error < squares[s, i]:
                    squares[s, i] = min(squares[s, i], squared_distance(X, i, centers[s, j]))


@numba.njit(cache=True, fastmath=FAST)
def _scan(
    scores: Matrix, squares: Matrix, best: Matrix, second: Matrix, found: Matrix
) -> None:  # pragma: no cover - compiled
    """Add ‖c‖² to the scores −2⟨x, c⟩ of a block, (k, rows), and find each row's smallest and
    second smallest.
    """
    for r in range(best.size):
        best[r] = scores[0, r] + squares[0]
        scores[0, r] = best[r]
        found[r] = 0
    second[:] = np.finfo(second.dtype).max
    for c in range(1, squares.size):
        square, place = squares[c], np.int32(c)
        # as wide as the machine's registers: neighboring rows are neighbors in memory
        for r in range(best.size):
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

    Scores are off by at most e = rounding·((d + 3)‖x‖·max‖c‖ + max‖c‖²).
    """
    close = 0
    for r in range(rows.size):
        i: int = rows[r]
        error = rounding * ((X.shape[1] + 3) * np.sqrt(norms[i]) * longest + longest * longest)
        close += second[r] - best[r] <= 2 * error
        found[r] = settle(
            scores[:, r], best[r], second[r], found[r], error, X, i, norms[i], centers, upper, lower
        )  # fmt: skip
    return close


@numba.njit(cache=True)
def _gather(X: Matrix, rows: Matrix, into: Matrix) -> None:  # pragma: no cover - compiled
    for r in range(rows.size):
        i = rows[r]
        for j in range(X.shape[1]):
            into[r, j] = X[i, j]


class Centers:
    """Centers made ready for scoring blocks of rows, in 4 or in 8 bytes."""

    def __init__(self, centers: Matrix, dtype: npt.DTypeLike) -> None:
        k, squares = len(centers), np.einsum("ij,ij->i", centers, centers)
        self.centers = centers
        self.factors = (-2 * centers).astype(dtype)
        self.squares = squares.astype(dtype)
        self.longest = float(np.sqrt(squares.max()))
        # twice the unit roundoff: scores carry the factor 2
        self.rounding = 1.01 * float(np.finfo(dtype).eps)
        self.rows = rows_per_product(k)
        self.scores = np.empty(k * self.rows, dtype=dtype)
        self.best, self.second = np.empty(self.rows, dtype=dtype), np.empty(self.rows, dtype=dtype)

    def decide(
        self,
        block: Matrix,
        rows: Matrix,
        norms: Matrix,
        X: Matrix,
        found: Matrix,
        upper: Matrix,
        lower: Matrix,
    ) -> int:
        """Find the nearest centers of the rows ``rows`` of X, whose coordinates ``block``
        holds; count the close calls.
        """
        m, k = len(rows), len(self.squares)
        scores = self.scores[: k * m].reshape(k, m)
        best, second = self.best[:m], self.second[:m]
        np.dot(self.factors, block.T, out=scores)
        _scan(scores, self.squares, best, second, found)
        return _settle(
            scores, best, second, found, rows, norms, self.rounding, self.longest, X, self.centers, upper, lower
        )  # fmt: skip


def rows_per_product(columns: int) -> int:
    """How many rows to multiply at a time by so many columns."""
    return min(MOST, max(FEWEST, SCORES // columns))


def fits_four_bytes(norms: Matrix) -> bool:
    """Whether squares of such rows neither overflow nor vanish in 4-byte numbers."""
    return bool(len(norms) and 1e-20 < norms.max() < 1e30)


def nearest(X: Matrix, centers: Matrix) -> tuple[npt.NDArray[np.int32], Matrix]:
    """Each row's nearest center, the first of equals, and the squared distance to it, as in 8-byte
    arithmetic.

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
    size = exact.rows
    for start in range(0, len(X), size):
        block = np.ascontiguousarray(X[start : start + size] - origin)
        rows, norms = np.arange(len(block)), np.einsum("ij,ij->i", block, block)
        found, upper, lower = (
            np.empty(len(block), dtype=np.int32),
            np.empty(len(block)),
            np.empty(len(block)),
        )
        close = len(block)
        if quick and fits_four_bytes(norms):
            close = quick.decide(block.astype(np.float32), rows, norms, block, found, upper, lower)
        if close > len(block) / 2:
            exact.decide(block, rows, norms, block, found, upper, lower)
        labels[start : start + size] = found
        squares[start : start + size] = own_squares(block, norms, around, exact.squares, found)
    return labels, squares
