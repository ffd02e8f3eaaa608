"""Delimited text as compressed sparse rows, its columns hashed to a table of 2^k weights; compiled.

A cell that is a number is the value of the feature with its column's name; any other is the feature
``name=cell`` with value 1; a missing one is nothing. So the rows do not depend on what else is in
the file. Cells are cut, trimmed and unquoted, numbers and missing values known as
`surelearn.data.delimited` and `surelearn.data.schema` have it. Reference: K. Weinberger et al.
(2009), "Feature hashing for large scale multitask learning", without their signs.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import numba
import numpy as np

from surelearn.data.columns import LARGEST, MISSING, shown
from surelearn.data.decimals import count_of, number
from surelearn.data.dialect import Dialect, ragged
from surelearn.data.libsvm import LABELS, code_of
from surelearn.data.pieces import Array, BadLineError, SparseRows, table_bits

_ANY, _CATEGORY, _TARGET = 0, 1, 2
_WIDTH, _OPEN_QUOTE, _TOO_LARGE, _NO_LABEL, _MANY_LABELS, _INFINITE = -1, -2, -3, -4, -5, -6

_OFFSET, _PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)  # FNV-1a, 64 bits
_GOLDEN = np.uint64(11400714819323198485)  # 2⁶⁴/φ
_LARGEST = LARGEST

_MISSING = tuple(np.frombuffer(word.encode(), dtype=np.uint8) for word in MISSING if word)
_LONGEST_MISSING = max(map(len, MISSING))
# by the first letter
_MAY_BE_MISSING = np.isin(np.arange(256), [ord(word[0]) for word in MISSING if word])
_MAY_BE_NUMBER = np.isin(np.arange(256), list(b"0123456789+-.,nNiI"))
_NOT_A_NUMBER = (np.frombuffer(b"nan", dtype=np.uint8),)
_ENDLESS = tuple(np.frombuffer(word, dtype=np.uint8) for word in (b"inf", b"infinity"))


@numba.njit(cache=True)
def _is_one_of(text, begin, end, words, folded):
    """Whether some bytes are one of the words; with ``folded`` in letters of either case."""
    for word in words:
        if end - begin != word.size:
            continue
        same = True
        for k in range(word.size):
            letter = text[begin + k]
            same = same and (letter + 32 if folded and 65 <= letter <= 90 else letter) == word[k]
        if same:
            return True
    return False


@numba.njit(cache=True)
def _hashed(text, p, stop, state):
    """FNV-1a of some bytes, going on from ``state``; a NUL stands for a line break."""
    while p < stop:
        state = (state ^ np.uint64(text[p] if text[p] else 10)) * _PRIME
        p += 1
    return state


@numba.njit(cache=True)
def _cell_end(text, p, separator, quote):
    """Where the cell at p ends, and 1 where it has quotes; below 0 where a quote is not closed."""
    quoted = 0
    if quote and text[p] == quote:
        quoted, p = 1, p + 1
        while text[p] != quote or text[p + 1] == quote:
            if text[p] == 10:
                return -1, 1
            p += 2 if text[p] == quote else 1
        p += 1
    while text[p] != separator and text[p] != 10 and text[p] != 13:
        p += 1
    return p, quoted


@numba.njit(cache=True)
def _unquoted(text, begin, end, quote):
    """The bytes of a cell that begins with a quote, without those that enclose, a line break
    after them.
    """
    made, size, p, inside = np.empty(end - begin + 1, dtype=np.uint8), 0, begin + 1, True
    while p < end:
        if inside and text[p] == quote:
            if p + 1 < end and text[p + 1] == quote:
                p += 1
            else:
                inside, p = False, p + 1
                continue
        made[size] = text[p]
        size, p = size + 1, p + 1
    made[size] = 10
    return made, size


@numba.njit(cache=True)
def _trimmed(text, begin, end):
    """Where the text of a cell begins and ends without blanks around it."""
    while begin < end and (
        text[begin] <= 32 or (text[begin] == 194 and begin + 1 < end and text[begin + 1] == 160)
    ):
        begin += 2 if text[begin] == 194 else 1
    while end > begin and (
        text[end - 1] <= 32 or (text[end - 1] == 160 and end - 2 >= begin and text[end - 2] == 194)
    ):
        end -= 2 if text[end - 1] == 160 else 1
    return begin, end


@numba.njit(cache=True)
def _without_backslashes(text, begin, end):
    """The text within single quotes; a backslash before a quote is not part of it."""
    made, size, p = np.empty(end - begin + 1, dtype=np.uint8), 0, begin
    while p < end:
        p += text[p] == 92 and p + 1 < end and text[p + 1] == 39
        made[size] = text[p]
        size, p = size + 1, p + 1
    made[size] = 10
    return made, size


@numba.njit(cache=True)
def _with_commas(text, begin, end, decimal):
    """The number of a cell that has commas, for the decimal point or between thousands, and
    whether it is one.
    """
    commas = False
    for k in range(begin, end):
        commas = commas or text[k] == 44
    if not commas:
        return 0.0, False
    made, size, since, seen, fraction = (
        np.empty(end - begin + 1, dtype=np.uint8),
        0,
        0,
        False,
        False,
    )
    for k in range(begin, end):
        c = text[k]
        if decimal != 44 and not (
            48 <= c <= 57 or c == 44 or c == 46 or (k == begin and (c == 43 or c == 45))
        ):
            return 0.0, False
        if c == 44 and decimal != 44:
            if fraction or since == 0 or since > 3 or (seen and since != 3):
                return 0.0, False
            seen, since = True, 0
            continue
        if decimal != 44:
            if c == 46:
                if since != 3 or fraction or k == end - 1:
                    return 0.0, False
                fraction = True
            since += 48 <= c <= 57
        made[size] = 46 if c == 44 else c
        size += 1
    if decimal != 44 and not fraction and since != 3:
        return 0.0, False
    made[size] = 10
    value, q = number(made, 0)
    return value, q == size


@numba.njit(cache=True)
def _is_blank(text, p):
    """Whether there are only blanks up to the end of the line."""
    while text[p] != 10 and text[p] != 13:
        if text[p] > 32:
            return False
        p += 1
    return True


@numba.njit(cache=True)
def _parse(
    text,
    separator,
    quote,
    decimal,
    states,
    kinds,
    wrapped,
    shift,
    names,
    spans,
    codes,
    data,
    indices,
    indptr,
):
    """Rows and labels read, and 0; or where the first bad line begins, which column is wrong,
    and why, below 0.
    """
    p = rows = entries = count = 0
    last = kinds.size - 1
    while p < text.size:
        if text[p] == 10 or text[p] == 13:
            p += 1
            continue
        start, complete = p, True
        for column in range(last + 1):
            first, kind = p, kinds[column]
            if kind == _ANY:  # most cells are plain numbers, which need no more than a look
                while text[p] == 32:
                    p += 1
                value, p = number(text, p)
                if p > first and text[p] == (separator if column < last else 10):
                    p += 1
                    if value != 0.0:
                        if not abs(value) <= _LARGEST:
                            return start, column, _TOO_LARGE
                        indices[entries], data[entries] = (states[column] * _GOLDEN) >> shift, value
                        entries += 1
                    continue
            p, quoted = _cell_end(text, first, separator, quote)
            if p < 0:
                return start, column, _OPEN_QUOTE
            if (column < last) != (text[p] == separator):
                if not _is_blank(text, start):
                    return start, column, _WIDTH
                complete = False
                while text[p] != 10 and text[p] != 13:
                    p += 1
                break
            cell, begin, end = text, first, p
            if quoted:
                if text[p - 1] == quote and not _has(text, first + 1, p - 1, quote):
                    begin, end = first + 1, p - 1
                else:
                    cell, end = _unquoted(text, first, p, quote)
                    begin = 0
            p += 1
            begin, end = _trimmed(cell, begin, end)
            if wrapped[column] and end - begin > 1 and cell[begin] == 39 and cell[end - 1] == 39:
                cell, end = _without_backslashes(cell, begin + 1, end - 1)
                begin = 0
            if begin == end or (
                end - begin <= _LONGEST_MISSING
                and _MAY_BE_MISSING[cell[begin]]
                and _is_one_of(cell, begin, end, _MISSING, False)
            ):
                if kind == _TARGET:
                    return start, column, _NO_LABEL
                continue
            if kind == _TARGET:
                label = _hashed(cell, begin, end, _OFFSET)
                code = code_of(label, names, count)
                if code == count:
                    if count == names.size:
                        return start, column, _MANY_LABELS
                    names[code] = label
                    spans[code, 0], spans[code, 1] = first, p - 1
                    count += 1
                codes[rows] = code
                continue
            state, value, is_number = states[column], 1.0, False
            if kind != _CATEGORY and _MAY_BE_NUMBER[cell[begin]]:
                value, q = number(cell, begin)
                is_number = q == end
                if not is_number:
                    signed = begin + (cell[begin] == 45 or cell[begin] == 43)
                    if _is_one_of(cell, signed, end, _NOT_A_NUMBER, True):
                        continue
                    if _is_one_of(cell, signed, end, _ENDLESS, True):
                        return start, column, _INFINITE
                    value, is_number = _with_commas(cell, begin, end, decimal)
            if not is_number:
                state = _hashed(cell, begin, end, (state ^ np.uint64(61)) * _PRIME)
                value = 1.0
            elif value == 0.0:
                continue
            elif not abs(value) <= _LARGEST:
                return start, column, _TOO_LARGE
            indices[entries], data[entries] = (state * _GOLDEN) >> shift, value
            entries += 1
        if complete:
            rows += 1
            indptr[rows] = entries
    return rows, count, 0


@numba.njit(cache=True)
def _has(text, begin, end, byte):
    found = False
    for k in range(begin, end):
        found = found or text[k] == byte
    return found


@numba.njit(cache=True)
def odd_quotes(text, odd, quote):
    """Whether a line has an odd number of quotes, without which no quote encloses a break; and
    the last line so far.
    """
    for p in range(text.size):
        if text[p] == quote:
            odd = not odd
        elif text[p] == 10 and odd:
            return True, odd
    return False, odd


AT_START, IN_CELL, IN_QUOTES, AFTER_QUOTE = 0, 1, 2, 3


@numba.njit(cache=True)
def protect(text, state, separator, quote, changed):
    """Follow quotes through text, from a state to the next, and whether a quoted value holds a line
    break.

    With ``changed``, line breaks within quotes become NUL, and lone carriage returns outside of
    them line breaks.
    """
    found = False
    for p in range(text.size):
        c = text[p]
        if state == IN_QUOTES:
            if c == quote:
                state = AFTER_QUOTE
            elif c == 10:
                found = True
                if changed:
                    text[p] = 0
            continue
        if (state == AFTER_QUOTE and c == quote) or (state == AT_START and c == quote):
            state = IN_QUOTES
        elif c == separator or c == 10 or c == 13:
            state = AT_START
            if changed and c == 13 and p + 1 < text.size and text[p + 1] != 10:
                text[p] = 10
        else:
            state = IN_CELL
    return state, found


class HashedCells:
    """How lines of delimited text become sparse rows.

    Parameters
    ----------
    dialect, columns : of the file
    width : the size of the table, a power of two
    target : the name of the column that holds the labels
    categorical : names of columns whose values are names even where they look like numbers
    """

    def __init__(
        self,
        dialect: Dialect,
        columns: Sequence[str],
        width: int,
        dtype: str,
        target: str,
        categorical: Sequence[str],
    ) -> None:
        self.dialect, self.columns, self.dtype = dialect, list(columns), dtype
        # what the compiled loop needs for each column: its kind, where its hashes start, its quotes
        kind = {**dict.fromkeys(categorical, _CATEGORY), target: _TARGET}
        self._target = self.columns.index(target)
        kinds = np.array([kind.get(label, _ANY) for label in self.columns], dtype=np.int64)
        states = np.array([_hash_of(label) for label in self.columns], dtype=np.uint64)
        wrapped = np.array([i in dialect.wrapped for i in range(len(self.columns))])
        quote = 0 if dialect.quote is False else ord(dialect.quote)
        shift = np.uint64(64 - table_bits(width))
        self._how = (
            ord(dialect.delimiter),
            quote,
            ord(dialect.decimal),
            states,
            kinds,
            wrapped,
            shift,
        )

    def parse(self, text: Array) -> SparseRows:
        """Rows of whole lines."""
        lines = count_of(text, 10) + count_of(text, 13)
        entries = count_of(text, self._how[0]) + lines
        names, spans = np.empty(LABELS, dtype=np.uint64), np.empty((LABELS, 2), dtype=np.int64)
        data, indices = np.empty(entries, dtype=self.dtype), np.empty(entries, dtype=np.uint32)
        codes, indptr = np.empty(lines, dtype=np.int64), np.zeros(lines + 1, dtype=np.int64)
        rows, count, wrong = _parse(text, *self._how, names, spans, codes, data, indices, indptr)
        if wrong:
            raise BadLineError(rows, self._reason(wrong, text[rows:], count))
        used = indptr[rows]
        labels = np.array([self._label(text[begin:end]) for begin, end in spans[:count]], dtype=str)
        return SparseRows(labels, codes[:rows], data[:used], indices[:used], indptr[: rows + 1])

    def _values(self, text: Array) -> list[str]:
        """The cells of the first row."""
        line = text.tobytes().replace(b"\0", b"\n").decode("utf-8", "replace")
        quoting = csv.QUOTE_NONE if self.dialect.quote is False else csv.QUOTE_MINIMAL
        reader = csv.reader(
            io.StringIO(line, newline=""),
            delimiter=self.dialect.delimiter,
            quotechar=self.dialect.quote or '"',
            quoting=quoting,
        )
        try:
            return next(reader, [])
        except csv.Error:  # a cell past csv's limit
            return []

    def _label(self, span: Array) -> str:
        text = next(iter(self._values(span)), "").strip()
        if self._target in self.dialect.wrapped and len(text) > 1 and text[0] == text[-1] == "'":
            text = text[1:-1].replace("\\'", "'")
        return text

    def _reason(self, wrong: int, text: Array, column: int) -> str:
        """What is wrong with the row that begins here, to stand after the name and the line."""
        stop = int(np.argmax((text == 10) | (text == 13)))
        values = self._values(text[:stop])
        if wrong == _WIDTH:
            return ragged("", 0, len(values), self.dialect.width).split("line 0", 1)[1]
        if wrong == _OPEN_QUOTE:
            return ": a quote is opened and never closed; close it or double it."
        if wrong == _NO_LABEL:
            return (
                f" has no label in column {shown(self.columns[column])}: fill it, or remove such"
                " rows."
            )
        if wrong == _MANY_LABELS:
            return f" has label number {LABELS + 1:,}: a classifier needs rows of a few classes."
        said = (
            "an infinite number"
            if wrong == _INFINITE
            else f"{values[column].strip()}, too large to compute with"
        )
        return f", column {shown(self.columns[column])} holds {said}: correct it."


def _hash_of(name: str) -> int:
    state = int(_OFFSET)
    for byte in name.encode():
        state = (state ^ byte) * int(_PRIME) % 2**64
    return state
