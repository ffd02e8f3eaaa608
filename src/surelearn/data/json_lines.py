"""JSON lines: one object per line, whose names are the columns; .jsonl and .ndjson."""

from __future__ import annotations

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
    return pd.DataFrame(
        {label: pd.Series(values, dtype=_kind(values)) for label, values in columns.items()}
    )


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


def _kind(values: list[Any]) -> Any:
    """Numbers beside missing ones become floats by themselves; anything mixed stays as it is,
    to be read like text.
    """
    kinds = {type(value) for value in values if value is not None}
    small = all(abs(value) < 2**53 for value in values if type(value) is int)
    return None if kinds and kinds <= {int, float} and small else object
