"""What separates and encloses the values of delimited text, decided by a file's first 256 kB."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from surelearn.data.columns import DataError, in_single_quotes, without_single_quotes
from surelearn.data.raw import check_width

_DELIMITERS = ",;\t|"
_QUOTES = "\"'"
SPACES = " "  # one or more, or tabs

Quote = str | Literal[False]


@dataclass(frozen=True)
class Dialect:
    """How lines of text are cut into values.

    Attributes
    ----------
    delimiter : one character; a tab for ``spaced`` text, whose runs of spaces and tabs are made
        tabs first
    width : how many values the first row has
    quote : what encloses values: a double or a single quote, or nothing
    spaced : whether runs of spaces and tabs separate values
    wrapped : columns in which every value stands in single quotes, which are taken off
    """

    delimiter: str
    width: int
    quote: Quote
    spaced: bool = False
    wrapped: tuple[int, ...] = ()

    @property
    def decimal(self) -> str:
        """What the decimal point may be, beside a point."""
        return "," if self.delimiter == ";" else "."

    @property
    def written(self) -> str:
        """The delimiter to write the same table with."""
        return "," if self.spaced else self.delimiter

    def plain(self, text: bytes) -> bytes:
        """Whole lines as ``delimiter`` cuts them."""
        return spaces_to_tabs(text) if self.spaced else text


def dialect_of(name: str, head: bytes, *, whole: bool) -> Dialect:
    """The dialect of text from its first lines in UTF-8; ``whole`` if there are no others."""
    delimiter, width = sniff(head)
    check_width(name, width)
    spaced = delimiter == SPACES
    if spaced:
        head, delimiter = spaces_to_tabs(head), "\t"
    head = head if whole else _closed(head)
    quote = _quote_of(head, delimiter, width)
    table = cut(head, delimiter, width, quote=quote) if b"'" in head else None
    wrapped: tuple[int, ...] = ()
    if table is not None:
        rows = [column.slice(1) if table.num_rows > 1 else column for column in table.columns]
        wrapped = tuple(i for i, column in enumerate(rows) if in_single_quotes(column))
    return Dialect(delimiter, width, quote, spaced, wrapped)


def names_in(table: pa.Table) -> list[str]:
    """The names in the first row, without spaces and single quotes around them; "column 3" for
    one that is empty.
    """
    firsts = [str(without_single_quotes(column.slice(0, 1))[0]).strip() for column in table.columns]
    return [first or f"column {i}" for i, first in enumerate(firsts, start=1)]


def sniff(text: bytes) -> tuple[str, int]:
    """The delimiter that cuts the first hundred rows most evenly, and into how many values.

    `SPACES` stands for runs of spaces and tabs; they must cut all these rows evenly, where a single
    character does not, or where rows that tabs cut have runs of spaces too.
    """
    sample = text[: 1 << 18]
    whole = sample if len(sample) == len(text) else sample[: sample.rfind(b"\n") + 1] or sample
    lines = whole.decode("utf-8", "replace")
    best, chosen = (0.0, 0), (",", 1)
    for delimiter, quote in [(delimiter, quote) for quote in _QUOTES for delimiter in _DELIMITERS]:
        # only where other quotes do not cut evenly
        if quote == "'" and (best[0] == 1.0 or "'" not in lines):
            break
        widths = [len(row) for row in _rows(lines, delimiter, 100, quote) if row]
        if not widths:
            continue
        common = max(set(widths), key=lambda width: (widths.count(width), width))
        score = (widths.count(common) / len(widths), common)
        if common > 1 and score > best:
            best, chosen = score, (delimiter, widths[0])
    if best[0] == 1.0 and not (chosen[0] == "\t" and "  " in lines):
        return chosen
    values = [
        line.count(b"\t") + 1 for line in spaces_to_tabs(whole).split(b"\n")[:100] if line.strip()
    ]
    even = len(set(values)) == 1 and values[0] > max(1, chosen[1] if best[0] == 1.0 else 1)
    return (SPACES, values[0]) if even else chosen


def _rows(lines: str, delimiter: str, most: int, quote: str) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(lines, newline=""), delimiter=delimiter, quotechar=quote)
    try:
        for row, _ in zip(reader, range(most), strict=False):
            yield row
    except csv.Error:  # a value past csv's limit: what was read so far decides
        return


_AROUND = re.compile(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)")
_BETWEEN = re.compile(rb'(?<![^\s])"[^"\n]*"|[ \t]+')


def spaces_to_tabs(text: bytes) -> bytes:
    """Lines whose values are separated by runs of spaces and tabs, with one tab instead; quoted
    values keep their spaces.
    """
    return _BETWEEN.sub(
        lambda found: found[0] if found[0][:1] == b'"' else b"\t", _AROUND.sub(b"", text)
    )


def cut(text: bytes, delimiter: str, width: int, *, quote: Quote = '"') -> Any:
    """Rows of values as text by pyarrow, in parallel; None if they are not all of one width."""
    from pyarrow import csv as arrow

    try:
        return arrow.read_csv(
            pa.BufferReader(text),
            read_options=arrow.ReadOptions(autogenerate_column_names=True, block_size=1 << 24),
            parse_options=arrow.ParseOptions(
                delimiter=delimiter,
                quote_char=quote,
                newlines_in_values=quote == '"',
                invalid_row_handler=lambda row: "error" if row.text.strip() else "skip",
            ),
            convert_options=arrow.ConvertOptions(
                column_types={f"f{i}": pa.large_string() for i in range(width)}
            ),
        )
    except pa.ArrowInvalid:
        return None


def _closed(head: bytes) -> bytes:
    """First lines without the last ones, where these end within a quoted value."""
    for _ in range(100):
        if not head.count(b'"') % 2:
            break
        head = head[: head.rstrip(b"\r\n").rfind(b"\n") + 1]
    return head


def _quote_of(head: bytes, delimiter: str, width: int) -> Quote:
    """What encloses values: in tab-separated text often nothing, where that makes more rows,
    all of them complete.
    """
    tabs = delimiter == "\t" and b'"' in head
    if not tabs and b"'" not in head:
        return '"'
    table = cut(head, delimiter, width)
    plain = cut(head, delimiter, width, quote=False) if tabs else None
    if plain is not None and (table is None or plain.num_rows > table.num_rows):
        return False
    return "'" if table is None and cut(head, delimiter, width, quote="'") is not None else '"'


# --------------------------------------------------------------------------------------------------


def ragged(name: str, line: int, values: int, width: int, *, what: str = "line") -> str:
    """The sentence for a row whose number of values differs from the first row's."""
    return (
        f"{name}, {what} {line} has {values} value{'s' * (values != 1)} where the first row has"
        f" {width}: correct the line, or quote values that hold a delimiter or a line break."
    )


def unclosed_quote(name: str, lines: Iterable[str], dialect: Dialect) -> None:
    """Refuse text in which a value swallows the rest of the file, by the line where it starts."""
    if dialect.quote is False:
        return
    reader = csv.reader(lines, delimiter=dialect.delimiter, quotechar=dialect.quote, strict=True)
    start = 1
    try:
        for _ in reader:
            start = reader.line_num + 1
    except csv.Error as error:
        if "unexpected end" in str(error):
            raise DataError(
                f"{name}, line {start}: a quote is opened and never closed; close it or double it."
            ) from None


def what_is_wrong(name: str, lines: Callable[[], Iterable[str]], dialect: Dialect) -> str:
    """The sentence for text that cannot be cut into rows of one width, from a second look at
    its lines.
    """
    unclosed_quote(name, lines(), dialect)
    quoting: Any = csv.QUOTE_NONE if dialect.quote is False else csv.QUOTE_MINIMAL
    reader = csv.reader(
        lines(), delimiter=dialect.delimiter, quotechar=dialect.quote or '"', quoting=quoting
    )
    width, line = 0, 1
    try:
        for row in reader:
            width = width or len(row)
            if len(row) != width and "".join(row).strip():
                return ragged(name, line, len(row), width)
            line = reader.line_num + 1
    except csv.Error:
        pass
    return f"{name}, near line {line}, cannot be cut into columns: check its quotes and delimiters."
