"""Delimited text as tables of text, by one `Dialect`: whole, and in pieces that fit in memory.

Text stays text: columns get types in `surelearn.data.columns` where a table is whole, and by a
`Schema` where it comes in pieces.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from surelearn.claim import Finding
from surelearn.data import opening
from surelearn.data.columns import DataError, type_text, without_single_quotes
from surelearn.data.dialect import (
    Dialect,
    cut,
    dialect_of,
    names_in,
    ragged,
    sniff,
    spaces_to_tabs,
    unclosed_quote,
    what_is_wrong,
)
from surelearn.data.header import check_header, looks_like_names
from surelearn.data.raw import Raw, check_names, make_frame

__all__ = [
    "DelimitedPieces",
    "check_two",
    "from_text",
    "no_rows",
    "read_delimited",
    "sniff",
    "unwrapped",
]


# --------------------------------------------------------------------------------------------------


def read_delimited(path: Path, text: bytes, header: bool | None) -> Raw:
    """A table from delimited text in UTF-8."""
    name = path.name
    dialect = dialect_of(name, opening.first_lines(text), whole=len(text) <= opening.HEAD)
    check_two(name, dialect)
    table = _parse(name, dialect.plain(text), dialect)
    return from_text(name, path, unwrapped(table, dialect.wrapped), header, decimal=dialect.decimal)


def unwrapped(table: pa.Table, columns: Sequence[int]) -> pa.Table:
    """A table of text without the single quotes around the values of some columns."""
    for i in columns:
        table = table.set_column(i, table.column_names[i], without_single_quotes(table.column(i)))
    return table


def check_two(name: str, dialect: Dialect) -> None:
    """Refuse a table of one column: a target and a feature are needed."""
    if dialect.width < 2:
        raise DataError(
            f"{name} has one column: values must be separated by a comma, semicolon, tab, bar or"
            " spaces."
        )


def from_text(
    name: str, path: Path, table: pa.Table, header: bool | None, *, decimal: str = "."
) -> Raw:
    """A table from cells of text; a first line that looks like data is refused unless
    ``header`` says what it is.
    """
    if header is None:
        check_header(name, table, decimal)
    names, findings = [f"column {i}" for i in range(1, table.num_columns + 1)], ()
    if header is not False:
        names = names_in(table)
        table = table.slice(1)
    elif above := looks_like_names(table, decimal):
        text = "The first line looks like the names of columns: if it is, do not pass --no-header."
        findings = (
            Finding(
                code="SL114",
                text=text,
                severity="warning",
                numbers={"columns": [names[i] for i in above[:20]]},
            ),
        )
    check_names(name, names)
    if table.num_rows == 0:
        raise DataError(no_rows(name, header is not False))
    columns = [type_text(column, decimal=decimal) for column in table.columns]
    return Raw(name, path, make_frame(names, columns), findings=findings)


def no_rows(name: str, header: bool) -> str:
    """The sentence for a table that ends after its names."""
    return f"{name} has a header and no rows: add rows{', or pass --no-header' if header else ''}."


def _parse(name: str, text: bytes, dialect: Dialect) -> Any:
    """All values as text, the header being the first row.

    Whole text is tried with its quotes as characters, or as single ones, where the first lines did
    not tell.
    """

    def lines() -> Iterable[str]:
        return io.StringIO(text.decode(), newline="")

    plain = (
        cut(text, dialect.delimiter, dialect.width, quote=False)
        if dialect.delimiter == "\t" and b'"' in text
        else None
    )
    if text.count(b'"') % 2 and plain is None:
        unclosed_quote(name, lines(), replace(dialect, quote='"'))
    table = cut(text, dialect.delimiter, dialect.width)
    if plain is not None and (table is None or plain.num_rows > table.num_rows):
        return plain
    if table is None and b"'" in text:
        table = cut(text, dialect.delimiter, dialect.width, quote="'")
    if table is None:
        raise DataError(what_is_wrong(name, lines, replace(dialect, quote='"')))
    return table


# --------------------------------------------------------------------------------------------------


class DelimitedPieces:
    """The rows of delimited text, block by block, as tables of text.

    Parameters
    ----------
    name : how sentences name it
    stream : text in UTF-8, whole lines at a time
    dialect : how its lines are cut
    again : the text once more from its beginning, to name the line that is wrong; None where it
        cannot be read again
    """

    def __init__(
        self, name: str, stream: opening.Readable, dialect: Dialect, again: Callable[[], Any] | None
    ) -> None:
        self.name, self.dialect, self._again = name, dialect, again
        self._stream = _Watched(stream, dialect)
        self._rows, self._bad = 0, None

    def named(
        self, header: bool, names: tuple[str, ...] | None
    ) -> tuple[tuple[str, ...], Iterator[pa.Table]]:
        """The names of the columns, from the first row or as given, and the rows."""
        tables = self.tables()
        first = next(tables, None)
        found = names or tuple(f"column {i}" for i in range(1, self.dialect.width + 1))
        if header and first is not None:
            found, first = tuple(names_in(first)), first.slice(1)
        check_names(self.name, list(found))
        if first is None or (first.num_rows == 0 and (first := next(tables, None)) is None):
            raise DataError(no_rows(self.name, header))
        return found, (
            unwrapped(table, self.dialect.wrapped).rename_columns(list(found))
            for table in chain([first], tables)
        )

    def tables(self) -> Iterator[pa.Table]:
        """All rows as text, the header being the first."""
        from pyarrow import csv

        dialect = self.dialect
        try:
            reader = csv.open_csv(
                pa.PythonFile(self._stream, "r"),
                read_options=csv.ReadOptions(
                    autogenerate_column_names=True, block_size=opening.BLOCK, use_threads=False
                ),
                parse_options=csv.ParseOptions(
                    delimiter=dialect.delimiter,
                    quote_char=dialect.quote,
                    newlines_in_values=dialect.quote == '"',
                    invalid_row_handler=self._invalid,
                ),
                convert_options=csv.ConvertOptions(
                    column_types={f"f{i}": pa.large_string() for i in range(dialect.width)}
                ),
            )
            for batch in reader:
                self._rows += batch.num_rows
                yield pa.Table.from_batches([batch])
        except pa.ArrowInvalid as error:
            raise DataError(self._said(error)) from None
        if self._stream.quotes % 2 and self._again is not None:
            unclosed_quote(self.name, self._lines(), dialect)

    def _lines(self) -> Iterable[str]:
        if self._again is None:
            return ()
        return io.TextIOWrapper(_Watched(self._again(), self.dialect), encoding="utf-8", newline="")  # type: ignore[arg-type]

    def _invalid(self, row: pa.csv.InvalidRow) -> str:
        if not row.text.strip():
            return "skip"
        self._bad = self._bad or row
        return "error"

    def _said(self, error: pa.ArrowInvalid) -> str:
        if self._again is not None:
            return what_is_wrong(self.name, self._lines, self.dialect)
        if self._bad is None:
            where = f"after row {self._rows:,}" if self._rows else "at its beginning"
            return (
                f"{self.name} cannot be cut into columns {where}: check its quotes and delimiters"
                f" ({error})."
            )
        number = self._bad.number if self._bad.number is not None else self._rows + 1
        return ragged(self.name, number, self._bad.actual_columns, self.dialect.width, what="row")


class _Watched(io.RawIOBase):
    """Lines of text on their way to a reader: runs of spaces made tabs where they separate
    values, and quotes counted.
    """

    def __init__(self, stream: opening.Readable, dialect: Dialect) -> None:
        self._stream, self._spaced, self._quote = (
            stream,
            dialect.spaced,
            (dialect.quote or '"').encode(),
        )
        self.quotes = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:  # noqa: ARG002 - a piece at a time, however much is asked for
        text = self._stream.read()
        self.quotes += text.count(self._quote)
        return spaces_to_tabs(text) if self._spaced else text
