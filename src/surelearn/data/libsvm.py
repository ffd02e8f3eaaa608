"""LIBSVM text: whole as a table, and lines as compressed sparse rows.

A line is ``label index:value index:value …``, in any order, ``qid:number`` may follow the label,
``#`` begins a comment. Indices are what they are, never shifted: a table calls them "feature 1",
"feature 2", …, and "feature 0" where a line has it; of an index that stands twice in a line the
values are added. Every number is finite.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numba
import numpy as np
import pandas as pd

from surelearn.data.columns import LARGEST, DataError, shown
from surelearn.data.decimals import count_of, number
from surelearn.data.opening import empty
from surelearn.data.pieces import Array, BadLineError, SparseRows, TextFile, table_bits, visits
from surelearn.data.raw import Raw, check_width
from surelearn.unpacking import memory

LABELS = 4096  # different ones in a piece at most
_AS_WRITTEN = -1  # in the place of a number of features
_NOT_LIBSVM, _OUT_OF_RANGE, _MANY_LABELS, _TOO_LARGE = -1, -2, -3, -4
_NO_QUERY = -(2**62)
_LARGEST = LARGEST


@numba.njit(cache=True)
def code_of(label, names, count):
    """The number of a label among the ``count`` first names, or ``count`` where it is new."""
    for k in range(count):
        if names[k] == label:
            return k
    return count


@numba.njit(cache=True)
def _parse(text, width, shift, names, codes, labels, queries, data, indices, indptr):
    """Rows and names read, and 0; or where the first line that is no LIBSVM text is wrong, and
    why, below 0.
    """
    p = rows = entries = count = 0
    stop = text.size
    while p < stop:
        if text[p] == 10 or text[p] == 13 or text[p] == 32 or text[p] == 9:
            p += 1
            continue
        if text[p] == 35:
            while text[p] != 10:
                p += 1
            continue
        label, q = number(text, p)
        if q == p or text[q] > 32:
            return p, 0, _NOT_LIBSVM
        if not abs(label) <= _LARGEST:
            return p, 0, _TOO_LARGE
        if names.size:
            code = code_of(label, names, count)
            if code == count:
                if count == names.size:
                    return p, 0, _MANY_LABELS
                names[code] = label
                count += 1
            codes[rows] = code
        else:
            labels[rows], queries[rows] = label, _NO_QUERY
        p = q
        while text[p] != 10:
            if text[p] == 32 or text[p] == 9 or text[p] == 13:
                p += 1
                continue
            if text[p] == 35:
                while text[p] != 10:
                    p += 1
                break
            j, q = 0, p
            c = int(text[q]) - 48
            while 0 <= c <= 9:
                j = j * 10 + c
                q += 1
                c = int(text[q]) - 48
            if q == p or c != 10 or q - p > 17:  # a colon
                query, q = _query(text, p)
                if q == p or entries > indptr[rows]:  # it stands before the features
                    return p, 0, _NOT_LIBSVM
                if not names.size:
                    queries[rows] = query
                p = q
                continue
            value, end = number(text, q + 1)
            if end == q + 1 or text[end] > 32:
                return p, 0, _NOT_LIBSVM
            if not abs(value) <= _LARGEST:
                return p, 0, _TOO_LARGE
            if shift > 0:  # Fibonacci hashing: the high bits of a product with 2³²/φ
                j = (((j ^ (j >> 32)) & 0xFFFFFFFF) * 2654435769 & 0xFFFFFFFF) >> shift
            elif width >= 0:
                j -= 1
                if j < 0 or j >= width:
                    return p, 0, _OUT_OF_RANGE
            elif j >= 0xFFFFFFFF:
                return p, 0, _OUT_OF_RANGE
            indices[entries], data[entries] = j, value
            entries += 1
            p = end
        rows += 1
        indptr[rows] = entries
    return rows, count, 0


@numba.njit(cache=True)
def _query(text, p):
    """The number of ``qid:number`` at p, and where it ends; at p where there is none."""
    if text[p] != 113 or text[p + 1] != 105 or text[p + 2] != 100 or text[p + 3] != 58:
        return 0, p
    value, q = 0, p + 4
    while 48 <= text[q] <= 57:
        value = value * 10 + (text[q] - 48)
        q += 1
    return (value, q) if p + 4 < q <= p + 21 and text[q] <= 32 else (0, p)


@dataclass(frozen=True)
class _Parsed:
    """Lines of LIBSVM text: rows, labels and queries (empty where labels have codes),
    compressed sparse rows.
    """

    rows: int
    labels: Array
    queries: Array
    names: Array
    codes: Array
    data: Array
    indices: Array
    indptr: Array


def _parsed(text: Array, width: int, shift: int, dtype: str, *, coded: bool) -> _Parsed:
    # line ends and colons bound how many rows and entries there can be
    lines, entries = count_of(text, 10), count_of(text, 58)
    names, codes = np.empty(LABELS if coded else 0), np.empty(lines if coded else 0, dtype=np.int64)
    labels, queries = (
        np.empty(0 if coded else lines),
        np.empty(0 if coded else lines, dtype=np.int64),
    )
    data, indices = np.empty(entries, dtype=dtype), np.empty(entries, dtype=np.uint32)
    indptr = np.zeros(lines + 1, dtype=np.int64)
    rows, count, wrong = _parse(
        text, width, shift, names, codes, labels, queries, data, indices, indptr
    )
    if wrong:
        raise BadLineError(rows, _reason(wrong, text, rows, width))
    used = indptr[rows]
    return _Parsed(
        rows,
        labels[:rows],
        queries[:rows],
        names[:count],
        codes[:rows],
        data[:used],
        indices[:used],
        indptr[: rows + 1],
    )


def _reason(wrong: int, text: Array, position: int, width: int) -> str:
    """What is wrong with the token at a position, to stand after the name and the line."""
    token = (text[position : position + 200].tobytes().split() or [b""])[0].decode(
        "utf-8", "replace"
    )
    if wrong == _OUT_OF_RANGE and width >= 0:
        return (
            f": {shown(token)} is a feature outside of 1 to features={width}; raise features= or"
            " set hashed=True."
        )
    if wrong == _OUT_OF_RANGE:
        return f": {shown(token)} is a feature beyond 2³² − 2, which is too large."
    if wrong == _MANY_LABELS:
        return f" has label number {LABELS + 1:,}: a classifier needs rows of a few classes."
    if wrong == _TOO_LARGE:
        return f": {shown(token)} is too large to compute with; correct it."
    return f": {shown(token)} is not LIBSVM; a line is a number, then index:value pairs."


class LibsvmLines:
    """How lines of LIBSVM text become sparse rows.

    Parameters
    ----------
    width : number of features, counted from 1; with ``hashed`` a power of two up to 2³¹, the size
        of a table that they share
    """

    def __init__(self, width: int, hashed: bool, dtype: str) -> None:
        self.width, self.dtype = width, dtype
        self._shift = 32 - table_bits(width) if hashed else 0

    def parse(self, text: Array) -> SparseRows:
        """Rows of whole lines."""
        read = _parsed(text, self.width, self._shift, self.dtype, coded=True)
        return SparseRows(read.names, read.codes, read.data, read.indices, read.indptr)


# --------------------------------------------------------------------------------------------------


def read_libsvm(path: Path, text: bytes) -> Raw:
    """A table from LIBSVM text: columns "label", "qid" where lines have one, and "feature 1", …"""
    name = path.name
    array = np.frombuffer(bytearray(text if text.endswith(b"\n") else text + b"\n"), dtype=np.uint8)
    try:
        read = _parsed(array, _AS_WRITTEN, 0, "float64", coded=False)
    except BadLineError as bad:
        line = 1 + text[: bad.position].count(b"\n")
        raise DataError(f"{name}, line {line}{bad.reason}") from None
    if read.rows == 0:
        raise DataError(empty(name))
    shape = LibsvmShape.of(read)
    shape.check(name)
    if 8 * read.rows * shape.width > memory() // 2:
        said = (
            f"{read.rows:,} rows of {shape.width:,} features, which memory does not hold as a table"
        )
        raise DataError(
            f"{name} has {said}: take fewer rows, or fit it with LogisticRegression.fit_file."
        )
    return Raw(name, path, _frame(read, shape), target="label")


@dataclass(frozen=True)
class LibsvmShape:
    """Which columns the lines of a file have: the least and the largest index, and whether
    none, some or all have a qid.
    """

    least: int
    most: int
    rows: int
    queries: int

    @classmethod
    def of(cls, read: _Parsed) -> LibsvmShape:
        """The shape of some lines."""
        some = read.indices.size > 0
        least, most = (int(read.indices.min()), int(read.indices.max())) if some else (1, 0)
        return cls(least, most, read.rows, int(np.sum(read.queries != _NO_QUERY)))

    def joined(self, other: LibsvmShape) -> LibsvmShape:
        """The shape of these lines and others."""
        least, most = min(self.least, other.least), max(self.most, other.most)
        return LibsvmShape(least, most, self.rows + other.rows, self.queries + other.queries)

    @property
    def first(self) -> int:
        """The index of the first column."""
        return min(1, self.least)

    @property
    def width(self) -> int:
        """How many columns of features there are."""
        return self.most + 1 - self.first

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return [
            "label",
            *["qid"] * (self.queries > 0),
            *(f"feature {j}" for j in range(self.first, self.most + 1)),
        ]

    def check(self, name: str) -> None:
        """Refuse files that are too wide, or whose lines have a qid now and then."""
        check_width(name, self.width)
        if self.queries not in (0, self.rows):
            raise DataError(f"{name} has qid: on some lines only: give every line one, or none.")


def _frame(read: _Parsed, shape: LibsvmShape) -> pd.DataFrame:
    X = np.zeros((read.rows, shape.width))
    row = np.repeat(np.arange(read.rows), np.diff(read.indptr))
    np.add.at(X, (row, read.indices.astype(np.int64) - shape.first), read.data)
    frame = pd.DataFrame(X, columns=shape.names[1 + (shape.queries > 0) :])
    if shape.queries:
        frame.insert(0, "qid", read.queries)
    frame.insert(0, "label", read.labels)
    return frame


class LibsvmPieces:
    """The rows of a LIBSVM file as tables, a few at a time; it is read once before, to know its
    columns.

    Parameters
    ----------
    file : its lines
    most, size : how many rows, and about how many bytes, a table has at most
    """

    def __init__(self, file: TextFile, most: int, size: int = 64 * 2**20) -> None:
        self._file, self._shape, self._most, self._size = file, LibsvmShape(1, 0, 0, 0), most, size
        for read in self._read():
            self._shape = self._shape.joined(LibsvmShape.of(read))
        if self._shape.rows == 0:
            raise DataError(empty(file.name))
        self._shape.check(file.name)
        self.columns = tuple(self._shape.names)

    def frames(self) -> Iterator[pd.DataFrame]:
        """All rows, in the order of the file."""
        step = max(1, min(self._most, self._size // (8 * max(1, self._shape.width))))
        for read in self._read():
            for start in range(0, read.rows, step):
                yield _frame(_some(read, start, min(start + step, read.rows)), self._shape)

    def _read(self) -> Iterator[_Parsed]:
        for chosen in visits(self._file.count):
            lines = self._file.read(chosen)
            try:
                yield _parsed(lines.text, _AS_WRITTEN, 0, "float64", coded=False)
            except BadLineError as bad:
                raise self._file.refused(lines, bad) from None


def _some(read: _Parsed, start: int, stop: int) -> _Parsed:
    begin, end = read.indptr[start], read.indptr[stop]
    labels, queries = read.labels[start:stop], read.queries[start:stop]
    indptr = read.indptr[start : stop + 1] - begin
    return _Parsed(
        stop - start,
        labels,
        queries,
        read.names,
        read.codes,
        read.data[begin:end],
        read.indices[begin:end],
        indptr,
    )
