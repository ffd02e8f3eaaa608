"""LIBSVM text as compressed sparse rows.

A line is ``label index:value index:value …``, indices from 1, ``#`` begins a comment. Indices are used as they are, or
hashed to a table of 2^k weights, where features that meet share a weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np

from surelearn.linear.logistic.sgd import Array

LABELS = 4096  # different ones in a piece at most
NO_TEXT, OUT_OF_RANGE, MANY_LABELS = -1, -2, -3

_POWERS = 10.0 ** np.arange(23)  # exact in 8 bytes


@dataclass(frozen=True)
class Piece:
    """Some rows of a file: the label of row i is ``names[codes[i]]``, the rest are compressed sparse rows."""

    names: Array
    codes: Array
    data: Array
    indices: Array
    indptr: Array

    @property
    def labels(self) -> Array:
        """The label of each row."""
        return self.names[self.codes]


class BadLineError(ValueError):
    """A line that cannot be read: where it is wrong, in bytes, and why."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position, self.reason = position, reason


@numba.njit(cache=True)
def _long_number(text, p):
    """As `number`, with an exponent or more digits than 8 bytes hold."""
    begin, negative = p, text[p] == 45
    if text[p] == 45 or text[p] == 43:
        p += 1
    whole, digits, power, found = 0, 0, 0, False  # digits are counted from the first that is not zero
    while 48 <= text[p] <= 57:
        if digits < 18:
            whole = whole * 10 + (text[p] - 48)
        else:
            power += 1
        digits += digits > 0 or text[p] > 48
        found = True
        p += 1
    if text[p] == 46:
        p += 1
        while 48 <= text[p] <= 57:
            if digits < 18:
                whole = whole * 10 + (text[p] - 48)
                power -= 1
            digits += digits > 0 or text[p] > 48
            found = True
            p += 1
    if not found:
        return 0.0, begin
    if text[p] == 101 or text[p] == 69:
        q, sign, exponent = p + 1, 1, 0
        if text[q] == 45 or text[q] == 43:
            sign = -1 if text[q] == 45 else 1
            q += 1
        if not 48 <= text[q] <= 57:
            return 0.0, begin
        while 48 <= text[q] <= 57:
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
def number(text, p):
    """The decimal number that begins at p, and where it ends; at p where there is none. The text ends in a line break."""
    begin, negative = p, text[p] == 45
    if text[p] == 45 or text[p] == 43:
        p += 1
    whole, first = 0, p
    c = int(text[p]) - 48
    while 0 <= c <= 9:
        whole = whole * 10 + c
        p += 1
        c = int(text[p]) - 48
    digits, power = p - first, 0
    if c == -2:  # a point
        p += 1
        first = p
        c = int(text[p]) - 48
        while 0 <= c <= 9:
            whole = whole * 10 + c
            p += 1
            c = int(text[p]) - 48
        power = p - first
        digits += power
    if digits == 0:
        return 0.0, begin
    if digits > 18 or c == 53 or c == 21:  # e or E
        return _long_number(text, begin)
    value = float(whole)
    if power:
        value /= _POWERS[power]
    return -value if negative else value, p


@numba.njit(cache=True)
def code_of(label, names, count):
    """The number of a label among the ``count`` first names, or ``count`` where it is new."""
    for k in range(count):
        if names[k] == label:
            return k
    return count


@numba.njit(cache=True)
def _parse(text, width, shift, names, codes, data, indices, indptr):
    """Rows and names read, and 0; or where the first line that is no LIBSVM text is wrong, and why, below 0."""
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
            return p, 0, NO_TEXT
        code = code_of(label, names, count)
        if code == count:
            if count == names.size:
                return p, 0, MANY_LABELS
            names[code] = label
            count += 1
        codes[rows] = code
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
                return p, 0, NO_TEXT
            value, end = number(text, q + 1)
            if end == q + 1 or text[end] > 32 or not math.isfinite(value):
                return p, 0, NO_TEXT
            if shift > 0:  # Fibonacci hashing: the high bits of a product with 2³²/φ
                j = (((j ^ (j >> 32)) & 0xFFFFFFFF) * 2654435769 & 0xFFFFFFFF) >> shift
            else:
                j -= 1
                if j < 0 or j >= width:
                    return p, 0, OUT_OF_RANGE
            indices[entries], data[entries] = j, value
            entries += 1
            p = end
        rows += 1
        indptr[rows] = entries
    return rows, count, 0


class Libsvm:
    """How lines of LIBSVM text become rows.

    Parameters
    ----------
    width : number of features; with ``hashed`` a power of two up to 2³¹
    """

    begin = 0  # the byte that rows begin at

    def __init__(self, width: int, hashed: bool, dtype: str) -> None:
        self.width, self.dtype = width, dtype
        self.shift = 32 - table_bits(width) if hashed else 0

    def parse(self, text: Array) -> Piece:
        """Rows of whole lines."""
        lines = int(np.count_nonzero(text == 10))
        entries = int(np.count_nonzero(text == 58))
        names, codes = np.empty(LABELS), np.empty(lines, dtype=np.int64)
        data, indices = np.empty(entries, dtype=self.dtype), np.empty(entries, dtype=np.uint32)
        indptr = np.zeros(lines + 1, dtype=np.int64)
        rows, count, wrong = _parse(text, self.width, self.shift, names, codes, data, indices, indptr)
        if wrong:
            raise BadLineError(rows, self._reason(wrong))
        used = indptr[rows]
        return Piece(names[:count], codes[:rows], data[:used], indices[:used], indptr[: rows + 1])

    def _reason(self, wrong: int) -> str:
        if wrong == OUT_OF_RANGE:
            return f"has a feature outside of 1 to features={self.width}; raise features= or set hashed=True"
        if wrong == MANY_LABELS:
            return f"is label number {LABELS + 1:,}: a classifier needs rows of a few classes"
        return "is no LIBSVM text (label index:value …)"


def table_bits(width: int) -> int:
    """K of a table of 2^k weights.

    Examples
    --------
    >>> table_bits(1024)
    10
    """
    if width & (width - 1) or not 2 <= width <= 2**31:
        raise ValueError(f"features must be a power of two from 2 to 2³¹ where they are hashed, not {width}")
    return width.bit_length() - 1
