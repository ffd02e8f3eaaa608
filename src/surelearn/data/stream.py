"""Reading a table in pieces, so that a file larger than memory can be predicted: delimited text (gzipped or not), Parquet,
Feather. Other formats are read whole.

Text stays text: a `Schema` says what it means. What a piece cannot show is decided by the file's first 256 kB.
"""

from __future__ import annotations

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal

import pyarrow as pa

from surelearn import files
from surelearn.data.columns import DataError, in_single_quotes, shown, without_single_quotes
from surelearn.data.delimited import SPACES, as_utf8, names_in, quote_of, sniff, spaces_to_tabs
from surelearn.data.formats import BUILT_IN, arrow_file, check_columns, from_bytes, kind_of, load, not_found, open_feather
from surelearn.data.raw import Raw, check_names, check_width

HEAD = 1 << 18
BLOCK = 1 << 22
ROWS = 20_000  # a piece

NamesFor = Callable[[int, str], tuple[str, ...]]


@dataclass(frozen=True)
class Stream:
    """A table in pieces.

    ``tables`` gives each piece once, as text or typed columns; ``delimiter`` and ``decimal`` are those of the text it came
    from, "," and "." for other formats.
    """

    name: str
    columns: tuple[str, ...]
    tables: Iterator[pa.Table]
    delimiter: str = ","
    decimal: str = "."
    sparse: bool = False
    close: Callable[[], None] = lambda: None

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_stream(source: Any, *, header: bool = True, names_for: NamesFor | None = None) -> Stream:
    """Read a file, standard input ("-"), a built-in set or a data frame in pieces; to be used as a context.

    Parameters
    ----------
    source : as in `read_table`
    header : whether a text table names its columns; if not, ``names_for`` gives names for so many columns
    """
    if isinstance(source, (str, Path)) and (str(source) == "-" or Path(source).is_file() or str(source) not in BUILT_IN):
        return _file(Path(source), header, names_for)
    raw = load(source, header=header)
    return _typed(raw.name, pa.Table.from_pandas(raw.frame, preserve_index=False))


def _file(path: Path, header: bool, names_for: NamesFor | None) -> Stream:
    name = "standard input" if str(path) == "-" else path.name
    with ExitStack() as stack:
        stream = _opened(path, stack)
        head = _read(stream, name, HEAD)
        if not head.strip():
            raise DataError(f"{name} is empty: a table with a header and rows is needed.")
        kind = kind_of(name, head)
        if kind == "parquet":
            return _parquet(path, name, head)
        if kind == "feather" and str(path) != "-" and isinstance(stream, io.BufferedReader):
            return _feather(path, name, head)
        if kind != "text":
            raw = _whole(path, name, head, header)
            if kind == "excel" and not header and names_for is not None:
                raw = replace(raw, frame=raw.frame.set_axis(list(names_for(raw.frame.shape[1], name)), axis=1))
            return _typed(raw.name, pa.Table.from_pandas(raw.frame, preserve_index=False), sparse=kind == "libsvm")
        text = _Utf8(stream, name, head)
        made = _delimited(name, text, as_utf8(name, _whole_lines(head)), header, names_for)
        return replace(made, close=stack.pop_all().close)


def _whole(path: Path, name: str, head: bytes, header: bool) -> Raw:
    if str(path) != "-":
        return load(path, header=header, labelled=False)
    return from_bytes(Path(name), head + sys.stdin.buffer.read(), header, labelled=False)


def _opened(path: Path, stack: ExitStack) -> BinaryIO:
    if str(path) == "-":
        return sys.stdin.buffer
    try:
        files.check_regular(path, path.name)
        stream = stack.enter_context(open(path, "rb"))  # noqa: SIM115 - it is one
    except FileNotFoundError:
        raise DataError(not_found(path)) from None
    except IsADirectoryError:
        raise DataError(f"{path} is a directory: name the file inside it.") from None
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError):
            raise DataError(f"{error}.") from None
        raise DataError(f"{shown(path)} cannot be read ({error.strerror or error}): check the path.") from None
    if stream.peek(2)[:2] == b"\x1f\x8b":
        return stack.enter_context(gzip.open(stream))  # type: ignore[return-value]
    return stream


def _read(stream: BinaryIO, name: str, size: int) -> bytes:
    """At least one byte and up to ``size`` (all of it, from a file), or nothing at the end."""
    try:
        parts = [stream.read(size)]
        while parts[-1] and (missing := size - sum(map(len, parts))) > 0:  # a pipe gives what it has
            parts.append(stream.read(missing))
        return b"".join(parts)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError(f"{name} is a damaged gzip file: fetch or compress it again.") from None
    except OSError as error:
        raise DataError(f"{name} cannot be read ({error.strerror or error}).") from None


_MARKS = {b"\xff\xfe\0\0": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


def _encoding(head: bytes) -> str:
    return next((encoding for mark, encoding in _MARKS.items() if head.startswith(mark)), "utf-8-sig")


def _whole_lines(head: bytes) -> bytes:
    """The beginning of a file, up to the end of a line."""
    text = head
    if (encoding := _encoding(head)) != "utf-8-sig":
        text = codecs.getincrementaldecoder(encoding)().decode(head).encode()
    return text if len(head) < HEAD else text[: text.rfind(b"\n") + 1] or text


class _Utf8(io.RawIOBase):
    """A binary stream as UTF-8, from UTF-8, UTF-16 or UTF-32 with a mark, or the Latin-1 of Windows."""

    def __init__(self, stream: BinaryIO, name: str, head: bytes) -> None:
        self._stream, self._name, self._head = stream, name, head
        encoding = _encoding(head)
        self._may_be_latin = encoding == "utf-8-sig"
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def read(self, size: int = -1) -> bytes:  # noqa: ARG002 - a piece at a time, however much is asked for
        while True:
            raw, self._head = self._head or _read(self._stream, self._name, BLOCK), b""
            text = self._decode(raw)
            if text or not raw:
                break
        if "\0" in text:
            raise DataError(
                f"{self._name} has NUL bytes: it is not a text table, or UTF-16 without its mark; save it as UTF-8."
            )
        return text.encode()

    def _decode(self, raw: bytes) -> str:
        pending = self._decoder.getstate()[0]
        try:
            return self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError:
            if not self._may_be_latin:
                raise DataError(
                    f"{self._name} is in an encoding other than UTF-8, UTF-16 and Latin-1: save it as UTF-8."
                ) from None
        self._decoder, self._may_be_latin = codecs.getincrementaldecoder("cp1252")(), False
        return self._decode(pending + raw)


# ---------------------------------------------------------------------------------------------------------------- pieces


def _delimited(name: str, stream: _Utf8 | _Tabbed, head: bytes, header: bool, names_for: NamesFor | None) -> Stream:
    delimiter, width = sniff(head)
    check_width(name, width)
    written = delimiter
    if delimiter == SPACES:
        stream, head, delimiter, written = _Tabbed(stream), spaces_to_tabs(head), "\t", ","
    reader = _Reader(name, stream, delimiter, width, quote=quote_of(head, delimiter, width))
    tables = reader.tables()
    first = next(tables, None)
    names: tuple[str, ...] = tuple(f"column {i}" for i in range(1, width + 1))
    if header:
        names = names if first is None else tuple(names_in(first))
        first = None if first is None else first.slice(1)
    elif names_for is not None:
        names = names_for(width, name)
    check_names(name, list(names))
    if first is None or (first.num_rows == 0 and (first := next(tables, None)) is None):
        raise DataError(f"{name} has a header and no rows: add rows{', or pass --no-header' if header else ''}.")

    quoted = [i for i in range(width) if in_single_quotes(first.column(i))]

    def renamed(first: pa.Table) -> Iterator[pa.Table]:
        for table in chain([first], tables):
            for i in quoted:
                table = table.set_column(i, table.column_names[i], without_single_quotes(table.column(i)))
            yield from _pieces(table.rename_columns(list(names)))

    return Stream(name, names, renamed(first), written, "," if delimiter == ";" else ".")


class _Tabbed(io.RawIOBase):
    """Text whose values are separated by runs of spaces, with tabs instead, whole lines at a time."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._rest = stream, b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:  # noqa: ARG002 - a piece at a time, however much is asked for
        while True:
            text = self._stream.read()
            whole, line_end, rest = (self._rest + text).rpartition(b"\n")
            if not text:
                self._rest, last = b"", self._rest
                return spaces_to_tabs(last)
            self._rest = rest
            if line_end:
                return spaces_to_tabs(whole + line_end)


class _Reader:
    """Rows of text by pyarrow, block by block; a row of another width is refused with its number."""

    def __init__(self, name: str, stream: Any, delimiter: str, width: int, *, quote: str | Literal[False]) -> None:
        self.name, self.stream, self.delimiter, self.width, self.quote = name, stream, delimiter, width, quote
        self.rows, self.bad = 0, None

    def tables(self) -> Iterator[pa.Table]:
        from pyarrow import csv

        try:
            reader = csv.open_csv(
                pa.PythonFile(self.stream, "r"),
                read_options=csv.ReadOptions(autogenerate_column_names=True, block_size=BLOCK, use_threads=False),
                parse_options=csv.ParseOptions(
                    delimiter=self.delimiter,
                    quote_char=self.quote,
                    newlines_in_values=self.quote == '"',
                    invalid_row_handler=self._invalid,
                ),
                convert_options=csv.ConvertOptions(column_types={f"f{i}": pa.large_string() for i in range(self.width)}),
            )
            for batch in reader:
                self.rows += batch.num_rows
                yield pa.Table.from_batches([batch])
        except pa.ArrowInvalid as error:
            raise DataError(self._said(error)) from None

    def _invalid(self, row: Any) -> str:
        if not row.text.strip():
            return "skip"
        self.bad = self.bad or row
        return "error"

    def _said(self, error: pa.ArrowInvalid) -> str:
        if self.bad is None:
            where = f"after row {self.rows:,}" if self.rows else "at its beginning"
            return f"{self.name} cannot be cut into columns {where}: check its quotes and delimiters ({error})."
        count = self.bad.actual_columns
        where = f"row {self.bad.number}" if self.bad.number is not None else f"a row after row {self.rows:,}"
        return (
            f"{self.name}, {where} has {count} value{'s' * (count != 1)} where the first row has {self.width}: "
            "correct the line, or quote values that hold a delimiter or a line break."
        )


def _parquet(path: Path, name: str, head: bytes) -> Stream:
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path if str(path) != "-" else pa.BufferReader(head + sys.stdin.buffer.read()))
    except (pa.ArrowException, OSError, ValueError):
        raise DataError(f"{name} is a damaged Parquet file: write it again.") from None
    check_names(name, file.schema_arrow.names)
    check_columns(name, file.schema_arrow)

    def tables() -> Iterator[pa.Table]:
        try:
            for batch in file.iter_batches(batch_size=ROWS):
                yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError, ValueError):
            raise DataError(f"{name} is a damaged Parquet file: write it again.") from None

    return Stream(name, tuple(file.schema_arrow.names), tables(), close=file.close)


def _feather(path: Path, name: str, head: bytes) -> Stream:
    with arrow_file(name, "Feather"):
        source = pa.memory_map(str(path))
        schema, batches = open_feather(source, head[:6])
    check_names(name, schema.names)
    check_columns(name, schema)

    def tables() -> Iterator[pa.Table]:
        with arrow_file(name, "Feather"):
            for batch in batches:
                yield from _pieces(pa.Table.from_batches([batch]))

    return Stream(name, tuple(schema.names), tables(), close=source.close)


def _typed(name: str, table: pa.Table, *, sparse: bool = False) -> Stream:
    return Stream(name, tuple(table.column_names), _pieces(table), sparse=sparse)


def _pieces(table: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, table.num_rows, ROWS):
        yield table.slice(start, ROWS)
