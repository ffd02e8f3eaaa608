"""ARFF, the format of WEKA and OpenML: attributes with their types, then rows of values with commas
between them.

Dense files of numeric, nominal, string and date attributes are read. A nominal attribute is a
category even where its values are numbers. Described in I. H. Witten, E. Frank, M. A. Hall and C.
J. Pal, Data Mining (4th ed., 2017), Section 2.4.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from surelearn.data.columns import DataError, listed, shown, type_text
from surelearn.data.raw import Raw, check_names, check_width, make_frame

_ATTRIBUTE = re.compile(
    r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s'"]+)\s*(\{.*|\S.*)""", re.IGNORECASE
)
_NUMBERS = ("numeric", "real", "integer")
_QUOTE = re.compile(r"(?:^|,)\s*(['\"])", re.MULTILINE)


def looks_like_arff(start: bytes) -> bool:
    """Whether a file begins with ``@relation``, after comments."""
    lines = (line.strip().lower() for line in start.splitlines())
    first = next((line for line in lines if line and not line.startswith(b"%")), b"")
    return first.startswith((b"@relation", b"@attribute"))


def read_arff(path: Path, text: bytes) -> Raw:
    """A table from ARFF in UTF-8."""
    name, lines = path.name, text.decode().split("\n")
    start = next((i for i, line in enumerate(lines) if line.strip().lower() == "@data"), None)
    if start is None:
        raise DataError(f"{name} is an ARFF file without a line @data: rows must follow it.")
    attributes = list(_attributes(name, lines[:start]))
    names = [label for label, _ in attributes]
    check_names(name, names)
    check_width(name, len(names))
    rows = list(_rows(name, lines[start + 1 :], start + 2, len(names)))
    if not rows:
        raise DataError(f"{name} has attributes and no rows: add rows after @data.")
    columns = [
        type_text(pa.array(values, pa.large_string()), words=kind not in _NUMBERS)
        for values, (_, kind) in zip(zip(*rows, strict=True), attributes, strict=True)
    ]
    return Raw(name, path, make_frame(names, columns))


def _attributes(name: str, lines: list[str]) -> Iterator[tuple[str, str]]:
    """Names and types: "numeric", "{…}", "string" or "date"."""
    for number, line in enumerate(lines, start=1):
        if not line.strip().lower().startswith("@attribute"):
            continue
        found = _ATTRIBUTE.fullmatch(line.strip())
        if found is None:
            raise DataError(
                f"{name}, line {number}: {shown(line.strip())} is no attribute; it needs a name and"
                " a type."
            )
        label, kind = found[1], found[2].split()[0].lower()
        if label[0] in "'\"":
            label = re.sub(r"\\(.)", r"\1", label[1:-1])
        if kind not in (*_NUMBERS, "string", "date") and not kind.startswith("{"):
            known = listed(["numeric", "{a,b}", "string", "date"])
            raise DataError(
                f"{name}, attribute {shown(label)} is of type {shown(kind)}: only {known} are read."
            )
        yield label, kind


def _rows(name: str, lines: list[str], first: int, width: int) -> Iterator[list[str]]:
    kept = [(number, line.strip()) for number, line in enumerate(lines, start=first)]
    kept = [(number, line) for number, line in kept if line and not line.startswith("%")]
    if kept and kept[0][1].startswith("{"):
        raise DataError(f"{name} is a sparse ARFF file: save it dense, or as LIBSVM or CSV.")
    quote = _QUOTE.search("\n".join(line for _, line in kept[:1000]))
    reader = csv.reader(
        (line for _, line in kept),
        quotechar=quote[1] if quote else "'",
        escapechar="\\",
        doublequote=False,
        skipinitialspace=True,
    )
    try:
        for (number, _), row in zip(kept, reader, strict=True):
            if len(row) != width:
                said = f"{len(row)} value{'s' * (len(row) != 1)} where there are {width} attributes"
                raise DataError(
                    f"{name}, line {number} has {said}: correct the line, or quote values that hold"
                    " a comma."
                )
            yield row
    except (csv.Error, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{name} has a row that cannot be cut into values: check its quotes ({error})."
        ) from None
