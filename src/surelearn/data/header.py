"""Whether the first line of a text table holds the names of its columns, or is a row like the
others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from surelearn.data.columns import MISSING, DataError, type_text

pc: Any = pyarrow.compute
LOOKED_AT = 2_000  # rows that the first line is compared with
_MONOTONE = 6  # so many numbers in a row rise or fall by chance in one line of 360
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def check_header(name: str, table: pa.Table, decimal: str) -> None:
    """Refuse a table of text whose first line looks like data, so that ``--header`` or
    ``--no-header`` must decide.

    Each column votes. A column of numbers or truth values says "names" if a word stands above it,
    and "data" if one of its own kind does; a column of words says "data" if its first word stands
    in a later row again (of another content), and is heard if at least half of the columns of words
    say so. Numbers that count or rise, such as years, pixels and wave lengths, are names. A line
    without any value holds none.
    """
    firsts = [str(column[0]).strip() for column in table.columns] if table.num_rows > 1 else []
    for_data, for_names = _votes(firsts, table.slice(1, LOOKED_AT), decimal)
    if for_data > for_names or (firsts and set(firsts) <= set(MISSING)):
        raise DataError(
            f"{name}: its first line looks like data, not like the names of its columns. "
            "Pass --no-header if it is data, or --header if it holds the names."
        )


def looks_like_names(table: pa.Table, decimal: str) -> list[int]:
    """The columns of numbers above which a word stands: where there are some, the first line
    looks like names.
    """
    rest = table.slice(1, LOOKED_AT)
    if rest.num_rows == 0:
        return []
    firsts = [str(column[0]).strip() for column in table.columns]
    return [
        i
        for i, first in enumerate(firsts)
        if first not in MISSING
        and not _is_number(first, decimal)
        and type_text(rest.column(i), decimal=decimal).dtype.kind in "iuf"
    ]


def _votes(firsts: Sequence[str], rest: pa.Table, decimal: str) -> tuple[int, int]:
    """How many columns say that the first line is data, and how many that it holds names."""
    data, names, words, numbers = 0, 0, [], []
    for i, first in enumerate(firsts):
        if first in MISSING:
            continue
        values = type_text(rest.column(i), decimal=decimal)
        if values.dtype.kind in "iuf":
            if np.isnan(values.astype(float)).all():
                continue
            if _is_number(first, decimal):
                numbers.append(float(first.replace(",", "." if decimal == "," else "")))
            else:
                names += 1
        elif values.dtype.kind == "b":
            data, names = (
                (data + 1, names) if first.lower() in ("true", "false") else (data, names + 1)
            )
        else:
            words.append(i)
    if not _name_columns(numbers):
        data += len(numbers)
    again = _stand_again(firsts, rest, words)
    return data + (again if 2 * again >= len(words) else 0), names


def _is_number(word: str, decimal: str) -> bool:
    return _NUMBER.fullmatch(word.replace(",", "." if decimal == "," else "")) is not None


def _name_columns(numbers: Sequence[float]) -> bool:
    """Whether numbers can be names: a year alone, a count by equal whole steps, or many that
    all rise or all fall.
    """
    if len(numbers) < 2:
        return all(_is_year(number) for number in numbers)
    steps = [b - a for a, b in pairwise(numbers)]
    if not (min(steps) > 0 or max(steps) < 0):
        return False
    if len(numbers) >= _MONOTONE:
        return True
    counted = len(set(steps)) == 1 and all(number == int(number) for number in numbers)
    return counted and (len(numbers) > 2 or abs(steps[0]) == 1 or all(map(_is_year, numbers)))


def _is_year(number: float) -> bool:
    return number == int(number) and 1800 <= number <= 2100


def _stand_again(firsts: Sequence[str], rest: pa.Table, columns: Sequence[int]) -> int:
    """In how many of the columns the first word stands again, in a row that is no copy of the whole
    first line.

    Files that were glued together repeat their line of names, which makes it no data.
    """
    if not columns or rest.num_rows == 0:
        return 0
    same = [
        pc.equal(pc.utf8_trim_whitespace(rest.column(i)), first).fill_null(False).to_numpy()
        for i, first in enumerate(firsts)
    ]
    others = ~np.logical_and.reduce(same)
    return sum(bool(np.any(same[i] & others)) for i in columns)
