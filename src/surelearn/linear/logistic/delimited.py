"""CSV text as compressed sparse rows, its columns hashed to a table of 2^k weights.

The first line names the columns. A cell that is a number is the value of the feature with its column's name; any other is
the feature ``name=cell`` with value 1; an empty cell is nothing. So the rows do not depend on what else is in the file.
Reference: K. Weinberger et al. (2009), "Feature hashing for large scale multitask learning", without their signs.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numba
import numpy as np

from surelearn.linear.logistic.libsvm import LABELS, BadLineError, Piece, code_of, number, table_bits
from surelearn.linear.logistic.sgd import Array

_ANY, _CATEGORY, _TARGET = 0, 1, 2
_TOO_FEW, _TOO_MANY, _OPEN_QUOTE, _TOO_LARGE, _NO_LABEL, _MANY_LABELS, _INFINITE = -1, -2, -3, -4, -5, -6, -7
_REASONS = {
    _TOO_FEW: "has fewer values than the first line has names",
    _TOO_MANY: "has more values than the first line has names",
    _OPEN_QUOTE: "has a quote that is not closed on it: a value may not hold a line break",
    _TOO_LARGE: "has a number that is too large",
    _NO_LABEL: "has no label",
    _INFINITE: "has an infinite number",
    _MANY_LABELS: f"is label number {LABELS + 1:,}: a classifier needs rows of a few classes",
}

_OFFSET, _PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)  # FNV-1a, 64 bits
_GOLDEN = np.uint64(11400714819323198485)  # 2⁶⁴/φ


_MISSING = tuple(np.frombuffer(word, dtype=np.uint8) for word in (b"?", b"na", b"n/a", b"nan", b"null", b"none"))
_ENDLESS = tuple(np.frombuffer(word, dtype=np.uint8) for word in (b"inf", b"infinity"))


@numba.njit(cache=True)
def _is_one_of(text, begin, end, words):
    """Whether some bytes are one of the words, in letters of either case."""
    for word in words:
        if end - begin != word.size:
            continue
        same = True
        for k in range(word.size):
            letter = text[begin + k]
            same = same and (letter + 32 if 65 <= letter <= 90 else letter) == word[k]
        if same:
            return True
    return False


@numba.njit(cache=True)
def _hashed(text, p, stop, state):
    """FNV-1a of some bytes, going on from ``state``; of two quotes in a row, one counts."""
    while p < stop:
        if text[p] == 34 and p + 1 < stop and text[p + 1] == 34:
            p += 1
        state = (state ^ np.uint64(text[p])) * _PRIME
        p += 1
    return state


@numba.njit(cache=True)
def _cell(text, p, separator):
    """Where the text of the cell at p begins and ends, without quotes and blanks around it, and where the cell ends."""
    while text[p] == 32 or (text[p] == 9 and separator != 9):
        p += 1
    begin = p
    if text[p] == 34:
        begin = p = p + 1
        while text[p] != 10 and (text[p] != 34 or text[p + 1] == 34):
            p += 2 if text[p] == 34 else 1
        end = p
        p += text[p] == 34
        while text[p] != 10 and text[p] != separator and text[p] <= 32:
            p += 1
        closed = p > end and (text[p] == 10 or text[p] == separator)
        return begin, end, p if closed else -1
    while text[p] != 10 and text[p] != separator:
        p += 1
    end = p
    while end > begin and text[end - 1] <= 32:
        end -= 1
    return begin, end, p


@numba.njit(cache=True)
def _parse(text, separator, states, kinds, shift, names, spans, codes, data, indices, indptr):
    """Rows and labels read, and 0; or where the first bad line begins, and why, below 0."""
    p = rows = entries = count = 0
    last = kinds.size - 1
    while p < text.size:
        if text[p] == 10 or (text[p] == 13 and text[p + 1] == 10):
            p += 1
            continue
        start = p
        for column in range(last + 1):
            begin, end, p = _cell(text, p, separator)
            if p < 0:
                return start, 0, _OPEN_QUOTE
            if column < last and text[p] == 10:
                return start, 0, _TOO_FEW
            if column == last and text[p] != 10:
                return start, 0, _TOO_MANY
            p += 1
            if begin == end:
                if kinds[column] == _TARGET:
                    return start, 0, _NO_LABEL
                continue
            if kinds[column] == _TARGET:
                label = _hashed(text, begin, end, _OFFSET)
                code = code_of(label, names, count)
                if code == count:
                    if count == names.size:
                        return start, 0, _MANY_LABELS
                    names[code] = label
                    spans[code, 0], spans[code, 1] = begin, end
                    count += 1
                codes[rows] = code
                continue
            value, q = number(text, begin)
            state = states[column]
            if q != end and end - begin <= 9:
                if _is_one_of(text, begin, end, _MISSING):
                    continue
                signed = begin + (text[begin] == 45 or text[begin] == 43)
                if kinds[column] != _CATEGORY and _is_one_of(text, signed, end, _ENDLESS):
                    return start, 0, _INFINITE
            if q != end or kinds[column] == _CATEGORY:
                state = _hashed(text, begin, end, (state ^ np.uint64(61)) * _PRIME)
                value = 1.0
            elif value == 0.0:
                continue
            elif not math.isfinite(value):
                return start, 0, _TOO_LARGE
            indices[entries], data[entries] = (state * _GOLDEN) >> shift, value
            entries += 1
        rows += 1
        indptr[rows] = entries
    return rows, count, 0


class Delimited:
    """How lines of CSV text (tabs where the name is ``….tsv``) become rows.

    Parameters
    ----------
    path : the file, not compressed
    width : the size of the table, a power of two
    target : the name of the column that holds the labels
    categorical : names of columns whose values are names even where they look like numbers
    """

    def __init__(self, path: Path, width: int, dtype: str, target: str, categorical: Sequence[str] = ()) -> None:
        self.dtype = dtype
        self.separator = 9 if path.suffix == ".tsv" else 44
        with path.open("rb") as file:
            first = file.readline()
        self.begin = len(first)
        self.columns = _names(first, chr(self.separator), path)
        if unknown := [name for name in (target, *categorical) if name not in self.columns]:
            raise ValueError(f"{path.name} has no column {unknown[0]!r}: its first line names {self.columns[:5]}")
        kind = {**dict.fromkeys(categorical, _CATEGORY), target: _TARGET}
        self._kinds = np.array([kind.get(name, _ANY) for name in self.columns], dtype=np.int64)
        self._states = np.array([_hash_of(name) for name in self.columns], dtype=np.uint64)
        self._shift = np.uint64(64 - table_bits(width))

    def parse(self, text: Array) -> Piece:
        """Rows of whole lines."""
        lines = int(np.count_nonzero(text == 10))
        entries = int(np.count_nonzero(text == self.separator)) + lines
        names, spans = np.empty(LABELS, dtype=np.uint64), np.empty((LABELS, 2), dtype=np.int64)
        data, indices = np.empty(entries, dtype=self.dtype), np.empty(entries, dtype=np.uint32)
        codes, indptr = np.empty(lines, dtype=np.int64), np.zeros(lines + 1, dtype=np.int64)
        how = (self.separator, self._states, self._kinds, self._shift)
        rows, count, wrong = _parse(text, *how, names, spans, codes, data, indices, indptr)
        if wrong:
            raise BadLineError(rows, _REASONS[wrong])
        used = indptr[rows]
        labels = np.array([_text(text[begin:end]) for begin, end in spans[:count]], dtype=str)
        return Piece(labels, codes[:rows], data[:used], indices[:used], indptr[: rows + 1])


def _names(line: bytes, separator: str, path: Path) -> list[str]:
    text = line.decode("utf-8-sig", "replace").strip("\r\n")
    try:
        names = [name.strip() for name in next(csv.reader([text], delimiter=separator), [])]
    except csv.Error as error:
        raise ValueError(f"the first line of {path.name} cannot be read as column names: {error}") from None
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{path.name} names the column {min(twice)!r} twice: give every column a name of its own")
    return names


def _text(span: Array) -> str:
    return span.tobytes().decode("utf-8", "replace").replace('""', '"')


def _hash_of(name: str) -> int:
    state = int(_OFFSET)
    for byte in name.encode():
        state = (state ^ byte) * int(_PRIME) % 2**64
    return state
