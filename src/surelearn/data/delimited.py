"""Delimited text: encoding, delimiter, quotes, and the line number of what is wrong."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from surelearn.claim import Finding
from surelearn.data.columns import DataError, in_single_quotes, type_text, without_single_quotes
from surelearn.data.header import check_header, looks_like_names
from surelearn.data.raw import Raw, check_names, check_width, make_frame

_DELIMITERS = ",;\t|"
_QUOTES = "\"'"
SPACES = " "  # one or more, or tabs


def as_utf8(name: str, content: bytes, *, lines: bool = False) -> bytes:
    """The text of a file as UTF-8 bytes, from UTF-8, UTF-16 or UTF-32 with a mark, or the Latin-1 of Windows.

    Web pages are refused, and JSON unless it is ``lines``.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-32" if content.startswith(b"\xff\xfe\0\0") else "utf-16"
        content = _recode(name, content, encoding)
    content = content.removeprefix(b"\xef\xbb\xbf")
    if b"\0" in content:
        raise DataError(f"{name} has NUL bytes: it is not a text table, or UTF-16 without its mark; save it as UTF-8.")
    sample = content[:65536]
    if sum(sample.count(bytes([code])) for code in range(32) if chr(code) not in "\t\n\r\f") > 0.005 * len(sample):
        raise DataError(f"{name} is binary, not a table: text, Parquet, Feather, Excel, LIBSVM and npz are read.")
    if not content.isascii():
        try:
            content.decode("utf-8")
        except UnicodeDecodeError:
            content = _recode(name, content, "cp1252")
    start = content[:200].lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise DataError(f"{name} is a web page or XML, not a table: download the data file itself.")
    if not lines and start.startswith((b"{", b"[{", b"[[", b"[\n")):
        raise DataError(f"{name} is JSON, not a table: save it as JSON lines, CSV or Parquet.")
    return content


def _recode(name: str, content: bytes, encoding: str) -> bytes:
    try:
        return content.decode(encoding).encode()
    except UnicodeError:
        raise DataError(f"{name} is in an encoding other than UTF-8, UTF-16 and Latin-1: save it as UTF-8.") from None


# ------------------------------------------------------------------------------------------------------- delimited text


def read_delimited(path: Path, text: bytes, header: bool | None) -> Raw:
    """A table from delimited text in UTF-8."""
    name = path.name
    delimiter, width = sniff(text)
    if width < 2:
        raise DataError(f"{name} has one column: values must be separated by a comma, semicolon, tab, bar or spaces.")
    check_width(name, width)
    if delimiter == SPACES:
        text, delimiter = spaces_to_tabs(text), "\t"
    return from_text(name, path, _parse(name, text, delimiter, width), header, decimal="," if delimiter == ";" else ".")


def from_text(name: str, path: Path, table: pa.Table, header: bool | None, *, decimal: str = ".") -> Raw:
    """A table from cells of text; a first line that looks like data is refused unless ``header`` says what it is."""
    wrapped = [in_single_quotes(column.slice(1)) for column in table.columns]
    columns = [without_single_quotes(c) if quoted else c for c, quoted in zip(table.columns, wrapped, strict=True)]
    table = pa.table(columns, names=table.column_names)
    if header is None:
        check_header(name, table, decimal)
    names, findings = [f"column {i}" for i in range(1, table.num_columns + 1)], ()
    if header is not False:
        names = names_in(table)
        table = table.slice(1)
    elif above := looks_like_names(table, decimal):
        text = "The first line looks like the names of columns: if it is, do not pass --no-header."
        findings = (
            Finding(code="SL114", text=text, severity="warning", numbers={"columns": [names[i] for i in above[:20]]}),
        )
    check_names(name, names)
    if table.num_rows == 0:
        raise DataError(f"{name} has a header and no rows: add rows{'' if header is False else ', or pass --no-header'}.")
    columns = [type_text(column, decimal=decimal) for column in table.columns]
    return Raw(name, path, make_frame(names, columns), findings=findings)


def names_in(table: pa.Table) -> list[str]:
    """The names in the first row, without spaces and single quotes around them; "column 3" for one that is empty."""
    firsts = [str(without_single_quotes(column.slice(0, 1))[0]).strip() for column in table.columns]
    return [first or f"column {i}" for i, first in enumerate(firsts, start=1)]


def sniff(text: bytes) -> tuple[str, int]:
    """The delimiter that cuts the first hundred rows most evenly, and into how many values.

    `SPACES` stands for runs of spaces and tabs; they must cut all these rows evenly, where a single character does not, or
    where rows that tabs cut have runs of spaces too.
    """
    sample = text[: 1 << 18]
    whole = sample if len(sample) == len(text) else sample[: sample.rfind(b"\n") + 1] or sample
    lines = whole.decode("utf-8", "replace")
    best, chosen = (0.0, 0), (",", 1)
    for delimiter, quote in [(delimiter, quote) for quote in _QUOTES for delimiter in _DELIMITERS]:
        if quote == "'" and (best[0] == 1.0 or "'" not in lines):  # only where other quotes do not cut evenly
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
    cut = [line.count(b"\t") + 1 for line in spaces_to_tabs(whole).split(b"\n")[:100] if line.strip()]
    even = len(set(cut)) == 1 and cut[0] > max(1, chosen[1] if best[0] == 1.0 else 1)
    return (SPACES, cut[0]) if even else chosen


_AROUND = re.compile(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)")
_BETWEEN = re.compile(rb'(?<![^\s])"[^"\n]*"|[ \t]+')


def spaces_to_tabs(text: bytes) -> bytes:
    """Lines whose values are separated by runs of spaces and tabs, with one tab instead; quoted values keep their spaces."""
    return _BETWEEN.sub(lambda found: found[0] if found[0][:1] == b'"' else b"\t", _AROUND.sub(b"", text))


def _rows(lines: str, delimiter: str, most: int, quote: str) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(lines, newline=""), delimiter=delimiter, quotechar=quote)
    try:
        for row, _ in zip(reader, range(most), strict=False):
            yield row
    except csv.Error:  # a value past csv's limit: what was read so far decides
        return


def _parse(name: str, text: bytes, delimiter: str, width: int) -> Any:
    """All values as text, the header being the first row.

    In tab-separated text a quote is often just a character: it is one where that makes more rows, all of them complete.
    """
    plain = _cut(text, delimiter, width, quote=False) if delimiter == "\t" and b'"' in text else None
    if text.count(b'"') % 2 and plain is None and (line := _unclosed_quote(text, delimiter)):
        raise DataError(f"{name}, line {line}: a quote is opened and never closed; close it or double it.")
    table = _cut(text, delimiter, width)
    if plain is not None and (table is None or plain.num_rows > table.num_rows):
        return plain
    if table is None and b"'" in text:
        table = _cut(text, delimiter, width, quote="'")
    if table is None:
        raise DataError(_ragged(name, text, delimiter))
    return table


def _cut(text: bytes, delimiter: str, width: int, *, quote: str | Literal[False] = '"') -> Any:
    """Rows of values by pyarrow, in parallel; None if they are not all of one width."""
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
            convert_options=arrow.ConvertOptions(column_types={f"f{i}": pa.large_string() for i in range(width)}),
        )
    except pa.ArrowInvalid:
        return None


def quote_of(head: bytes, delimiter: str, width: int) -> str | Literal[False]:
    """What encloses values, or False, judged by the first rows as `_parse` judges by all."""
    tabs = delimiter == "\t" and b'"' in head
    if not tabs and b"'" not in head:
        return '"'
    table = _cut(head, delimiter, width)
    plain = _cut(head, delimiter, width, quote=False) if tabs else None
    if plain is not None and (table is None or plain.num_rows > table.num_rows):
        return False
    return "'" if table is None and _cut(head, delimiter, width, quote="'") is not None else '"'


def _unclosed_quote(text: bytes, delimiter: str) -> int:
    """The line where the value starts that swallows the rest of the file, or 0."""
    reader = csv.reader(io.StringIO(text.decode(), newline=""), delimiter=delimiter, strict=True)
    start = 1
    try:
        for _ in reader:
            start = reader.line_num + 1
    except csv.Error as error:
        return start if "unexpected end" in str(error) else 0
    return 0


def _ragged(name: str, text: bytes, delimiter: str) -> str:
    """The sentence for the first row whose number of values differs from the first row's."""
    reader = csv.reader(io.StringIO(text.decode(), newline=""), delimiter=delimiter)
    width, line = 0, 1
    try:
        for row in reader:
            width = width or len(row)
            if len(row) != width and "".join(row).strip():
                return (
                    f"{name}, line {line} has {len(row)} value{'s' * (len(row) != 1)} where the first row has {width}: "
                    "correct the line, or quote values that hold a delimiter or a line break."
                )
            line = reader.line_num + 1
    except csv.Error:
        pass
    return f"{name}, near line {line}, cannot be cut into columns: check its quotes and delimiters."
