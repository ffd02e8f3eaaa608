"""JSON lines: one object per line, whose names are the columns; .jsonl and .ndjson."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from surelearn.data.columns import DataError, shown
from surelearn.data.raw import check_width
from surelearn.documents import parse_json

LONGEST_LINE = 1 << 20  # bytes; one line is one row


def read_json_lines(name: str, text: bytes) -> pd.DataFrame:
    """The rows of JSON lines in UTF-8; a name that a line does not have is missing there.

    Lines are strict JSON within the limits of `surelearn.documents`, and hold plain values only.
    """
    columns: dict[str, list[Any]] = {}
    rows = 0
    for number, line in enumerate(text.split(b"\n"), start=1):
        if not line.strip():
            continue
        for label, value in _row(f"{name}, line {number}", line).items():
            if label not in columns:
                check_width(name, len(columns) + 1)
                columns[label] = [None] * rows
            columns[label].append(value)
        rows += 1
        for values in columns.values():
            if len(values) < rows:
                values.append(None)
    return pd.DataFrame({label: column_of(values) for label, values in columns.items()})


def column_of(values: Sequence[Any]) -> pd.Series:
    """A column of plain values, typed as `read_json_lines` types it."""
    return pd.Series(values, dtype=_kind(values))


def first_lines(path: Path, rows: int) -> bytes:
    """The first lines of a file, without their byte order mark."""
    with path.open("rb") as file:
        return b"".join(islice(_lines(file), rows))


def coded_pieces(path: Path, names: Sequence[str], rows: int) -> Iterator[dict[str, list[Any]]]:
    """Some columns, so many rows at a time: each value as the JSON text of its own, which tells 1, 1.0,
    true and "1" apart; None where there is none.
    """
    with path.open("rb") as file:
        numbered = enumerate(_lines(file), start=1)
        while lines := list(islice(numbered, rows)):
            piece: dict[str, list[Any]] = {name: [] for name in names}
            for number, line in lines:
                if not line.strip():
                    continue
                row = _row(f"{path.name}, line {number}", line.removesuffix(b"\n"))
                for name, column in piece.items():
                    value = row.get(name)
                    column.append(None if value is None else json.dumps(value))
            yield piece


def decoded(texts: Sequence[str | None]) -> list[Any]:
    """The values that `coded_pieces` wrote."""
    return [None if text is None else json.loads(text) for text in texts]


def _lines(file: Any) -> Iterator[bytes]:
    """Lines of bounded length: of a longer one as much as shows that it is too long."""
    first = True
    while line := file.readline(LONGEST_LINE + 2):
        yield line.removeprefix(b"\xef\xbb\xbf") if first else line
        first = False


def looks_like_json_lines(start: bytes) -> bool:
    """Whether the first line of a file is an object by itself; the first line of other JSON is
    not.
    """
    first = start.lstrip()[:LONGEST_LINE].split(b"\n", 1)[0].rstrip()
    return first.startswith(b"{") and first.endswith(b"}") and b":" in first


def _row(where: str, line: bytes) -> dict[str, Any]:
    if len(line) > LONGEST_LINE:
        raise DataError(f"{where} is longer than {LONGEST_LINE:,} bytes: one line must be one row.")
    try:
        row = parse_json(line, where)
    except ValueError as error:
        raise DataError(f"{error}; each line must be one object of names and values.") from None
    if not isinstance(row, dict):
        raise DataError(
            f"{where} is not an object: each line must be one object of names and values."
        )
    for label, value in row.items():
        if isinstance(value, (dict, list)):
            said = "an object" if isinstance(value, dict) else "a list"
            raise DataError(
                f"{where}, {shown(label)} holds {said}: write plain values, one name per value."
            )
    return row


def _kind(values: Sequence[Any]) -> Any:
    """Numbers beside missing ones become floats by themselves; anything mixed stays as it is,
    to be read like text.
    """
    kinds = {type(value) for value in values if value is not None}
    small = all(abs(value) < 2**53 for value in values if type(value) is int)
    return None if kinds and kinds <= {int, float} and small else object
