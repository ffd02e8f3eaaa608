"""LIBSVM text from disk, a piece at a time: for data larger than memory.

A line is ``label index:value index:value …``, indices from 1, ``#`` begins a comment; gzip-compressed where the name ends in
``.gz``. Indices are used as they are, or hashed to a table of 2^k weights, where features that meet share a weight.
"""

from __future__ import annotations

import gzip
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numba
import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from surelearn.linear.logistic.rows import EQUAL, check_norms, step_sizes
from surelearn.linear.logistic.sgd import Array, Rows, block_order

PIECE = 1 << 23  # bytes of text that are read at once

_OUT_OF_RANGE = -2
_POWERS = 10.0 ** np.arange(23)  # exact in 8 bytes


@dataclass(frozen=True)
class Piece:
    """Some rows of a file, and the part of the file that was read up to their end."""

    labels: Array
    data: Array
    indices: Array
    indptr: Array
    fraction: float


@numba.njit(cache=True)
def _number(text, p, stop):
    """The decimal number that begins at p, and where it ends; at p where there is none."""
    begin, negative = p, False
    if p < stop and (text[p] == 45 or text[p] == 43):
        negative = text[p] == 45
        p += 1
    whole, digits, power, first = 0, 0, 0, p  # digits are counted from the first that is not zero
    while p < stop and 48 <= text[p] <= 57:
        if digits < 18:
            whole = whole * 10 + (text[p] - 48)
        else:
            power += 1
        digits += digits > 0 or text[p] > 48
        p += 1
    found = p > first
    if p < stop and text[p] == 46:
        p += 1
        first = p
        while p < stop and 48 <= text[p] <= 57:
            if digits < 18:
                whole = whole * 10 + (text[p] - 48)
                power -= 1
            digits += digits > 0 or text[p] > 48
            p += 1
        found = found or p > first
    if not found:
        return 0.0, begin
    if p + 1 < stop and (text[p] == 101 or text[p] == 69):
        q, sign, exponent = p + 1, 1, 0
        if text[q] == 45 or text[q] == 43:
            sign = -1 if text[q] == 45 else 1
            q += 1
        if not (q < stop and 48 <= text[q] <= 57):
            return 0.0, begin
        while q < stop and 48 <= text[q] <= 57:
            exponent = min(exponent * 10 + (text[q] - 48), 9999)
            q += 1
        p, power = q, power + sign * exponent
    value = float(whole)
    if 0 < power < 23:
        value *= _POWERS[power]
    elif -23 < power < 0:
        value /= _POWERS[-power]
    elif power != 0:
        value *= math.pow(10.0, float(power))
    return -value if negative else value, p


@numba.njit(cache=True)
def _parse(text, stop, width, shift, labels, data, indices, indptr):
    """Rows and entries read, and 0; or where the first line that is no LIBSVM text is wrong, and why, below 0."""
    p = rows = entries = 0
    while p < stop:
        if text[p] == 10 or text[p] == 13 or text[p] == 32 or text[p] == 9:
            p += 1
            continue
        if text[p] == 35:
            while p < stop and text[p] != 10:
                p += 1
            continue
        labels[rows], q = _number(text, p, stop)
        if q == p or (q < stop and text[q] > 32):
            return p, 0, -1
        p = q
        while p < stop and text[p] != 10:
            if text[p] == 32 or text[p] == 9 or text[p] == 13:
                p += 1
                continue
            if text[p] == 35:
                while p < stop and text[p] != 10:
                    p += 1
                break
            j, q = 0, p
            while q < stop and 48 <= text[q] <= 57 and q - p < 18:
                j = j * 10 + (text[q] - 48)
                q += 1
            if q == p or q >= stop or text[q] != 58:
                return p, 0, -1
            value, end = _number(text, q + 1, stop)
            if end == q + 1 or (end < stop and text[end] > 32) or not math.isfinite(value):
                return p, 0, -1
            if shift > 0:  # Fibonacci hashing: the high bits of a product with 2³²/φ
                j = (((j ^ (j >> 32)) & 0xFFFFFFFF) * 2654435769 & 0xFFFFFFFF) >> shift
            else:
                j -= 1
                if j < 0 or j >= width:
                    return p, 0, -2
            indices[entries], data[entries] = j, value
            entries += 1
            p = end
        rows += 1
        indptr[rows] = entries
    return rows, entries, 0


def read_pieces(
    path: str | os.PathLike[str], width: int, hashed: bool, dtype: str, piece: int | None = None
) -> Iterator[Piece]:
    """The rows of a file in order, about ``piece`` (by default `PIECE`) bytes of text at a time.

    Parameters
    ----------
    width : number of features; with ``hashed`` a power of two up to 2³¹
    """
    path = Path(path)
    shift = 32 - (width.bit_length() - 1) if hashed else 0
    if hashed and (width & (width - 1) or not 2 <= width <= 2**31):
        raise ValueError(f"features must be a power of two from 2 to 2³¹ where indices are hashed, not {width}")
    size, lines = max(1, path.stat().st_size), 0
    with path.open("rb") as raw:
        file: IO[bytes] = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw  # type: ignore[assignment]
        rest = b""
        while True:
            block = file.read(piece or PIECE)
            text = rest + block
            stop = len(text) if not block else text.rfind(b"\n") + 1
            rest = text[stop:]
            if stop:
                made = _piece(np.frombuffer(text, dtype=np.uint8), stop, (width, shift), dtype, (path, lines))
                lines += text.count(b"\n", 0, stop)
                if made[0].size:
                    yield Piece(*made, fraction=min(1.0, raw.tell() / size))
            if not block:
                return


def _piece(text: Array, stop: int, table: tuple[int, int], dtype: str, where: tuple[Path, int]) -> tuple[Array, ...]:
    labels = np.empty(int(np.count_nonzero(text[:stop] == 10)) + 1)
    entries = int(np.count_nonzero(text[:stop] == 58))
    data, indices = np.empty(entries, dtype=dtype), np.empty(entries, dtype=np.uint32)
    indptr = np.zeros(labels.size + 1, dtype=np.int64)
    rows, used, wrong = _parse(text, stop, *table, labels, data, indices, indptr)
    if wrong:
        path, before = where
        line = before + 1 + int(np.count_nonzero(text[:rows] == 10))
        shown = bytes(text[rows : rows + 40]).split(b"\n")[0].decode("utf-8", "replace")
        if wrong == _OUT_OF_RANGE:
            reason = f"has a feature outside of 1 to features={table[0]}; raise features= or set hashed=True"
        else:
            reason = "is no LIBSVM text (label index:value …)"
        raise ValueError(f"line {line} of {path} {reason}: {shown!r}")
    return labels[:rows], data[:used], indices[:used], indptr[: rows + 1]


def fit_pieces(learner: Any, path: Any, features: int, hashed: bool, classes: Any) -> None:
    """Fit a `LogisticRegression` to a file, the rows of one piece in memory at a time."""
    _check(learner, features)
    generator = check_random_state(learner.random_state)

    def pieces() -> Iterator[Piece]:
        return read_pieces(path, features, hashed, learner.dtype)

    learner.n_features_in_ = int(features)
    learner.classes_ = _classes(pieces(), path, classes)
    descent, n = None, 0
    for number in range(learner.passes):
        done = 0
        for piece in pieces():
            rows = _rows(learner, piece, path)
            if descent is None:
                learner._begin(rows, expected=len(rows) / piece.fraction)
                descent = learner._descent(first=True)
            steps = step_sizes(learner.schedule, learner.step_, learner.step_decay_, learner.t_, len(rows), number)
            descent.run(rows, block_order(len(rows), generator), steps)
            learner.t_ += len(rows)
            done += len(rows)
        if descent is None:
            raise ValueError(f"{path} holds no rows")
        n = done
        learner.passes_ += 1
    if descent is None:
        raise ValueError(f"passes must be at least 1, not {learner.passes}")
    learner.stopped_ = "passes"
    learner._store(descent.average() if learner.average else descent.weights(), descent)
    learner.facts_ = learner._facts(n, True, streamed=True, rounds=learner.passes_)


def _check(learner: Any, features: int) -> None:
    if learner.engine == "lazy" or learner.l1_regularization > 0:
        raise ValueError('a file is fitted by the scaled engine: set engine="auto" and l1_regularization=0')
    if learner.finish in ("newton", "lbfgs") or learner.early_stopping is not None:
        raise ValueError("a file is not kept in memory: set finish=None and early_stopping=None")
    if not 1 <= features < 2**32 - 1:
        raise ValueError(f"features must lie between 1 and 2³² − 2, not {features}")


def _classes(pieces: Iterator[Piece], path: Any, classes: Any) -> Array:
    """The labels that were named, or those of the first piece."""
    if classes is None:
        piece = next(pieces, None)
        classes = [] if piece is None else piece.labels
    found = np.unique(np.asarray(classes, dtype=np.float64))
    if found.size < 2:
        raise ValueError(f"{path} begins with rows of one class, or has none: name all labels with classes=")
    return found


def _rows(learner: Any, piece: Piece, path: Any) -> Rows:
    codes = np.minimum(np.searchsorted(learner.classes_, piece.labels), learner.classes_.size - 1)
    if (strange := piece.labels[learner.classes_[codes] != piece.labels]).size:
        raise ValueError(f"{path} holds the label {strange[0]:g}, which the first rows do not: name all with classes=")
    targets = codes * 2.0 - 1.0 if learner.classes_.size == 2 else codes
    if learner.x_bound is not None:
        X = sparse.csr_matrix(
            (piece.data, piece.indices.astype(np.int64), piece.indptr), (codes.size, learner.n_features_in_)
        )
        X.sum_duplicates()
        check_norms(X, learner.x_bound)
    return Rows(piece.data, piece.indices, piece.indptr, targets, EQUAL)
