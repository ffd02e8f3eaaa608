"""Reading a table in pieces, so that a file larger than memory can be predicted.

Delimited text, LIBSVM (either gzipped or not), Parquet and Feather come in pieces; other formats
are read whole. Text stays text: a `Schema` says what it means. What a piece cannot show is decided
by the file's first 256 kB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from surelearn.data import opening
from surelearn.data.delimited import DelimitedPieces
from surelearn.data.dialect import dialect_of
from surelearn.data.feather import FeatherSource
from surelearn.data.formats import BUILT_IN, from_bytes, kind_of, load
from surelearn.data.frames import Source
from surelearn.data.image_folder import holds_images
from surelearn.data.parquet import ParquetSource
from surelearn.data.pixels import flat_names
from surelearn.data.raw import Raw
from surelearn.types import ImageShape
from surelearn.unpacking import Unzipped

ROWS = 20_000  # a piece
FILE = "file"  # the column that says where an image came from

NamesFor = Callable[[int, str], tuple[str, ...]]


@dataclass(frozen=True)
class Stream:
    """A table in pieces.

    ``tables`` gives each piece once, as text or typed columns; ``delimiter`` and ``decimal`` are
    those of the text it came from, "," and "." for other formats. ``images`` is the shape of images
    whose pixels are columns.
    """

    name: str
    columns: tuple[str, ...]
    tables: Iterator[pa.Table]
    delimiter: str = ","
    decimal: str = "."
    sparse: bool = False
    close: Callable[[], None] = lambda: None
    images: ImageShape | None = None

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_stream(
    source: Source,
    *,
    header: bool = True,
    names_for: NamesFor | None = None,
    images: bool = True,
) -> Stream:
    """Read a file, standard input ("-"), a built-in set or a data frame in pieces; to be used as a
    context.

    Parameters
    ----------
    source : as in `read_table`
    header : whether a text table names its columns; if not, ``names_for`` gives names for so many
        columns
    images : False takes images as flat rows, whose columns are called as up to 0.2
    """
    if isinstance(source, (str, Path)) and (
        str(source) == "-" or Path(source).is_file() or str(source) not in BUILT_IN
    ):
        if Path(source).is_dir() and holds_images(Path(source)):
            return _of_raw(load(source, header=header, labelled=False), images)
        with ExitStack() as stack:
            stream = _file(Path(source), header, names_for, stack, images)
            return replace(stream, close=stack.pop_all().close)
    return _of_raw(load(source, header=header), images)


def _of_raw(raw: Raw, images: bool, *, sparse: bool = False) -> Stream:
    """A table that was read whole; where each row is a file, with a column of their names."""
    frame = raw.frame
    if raw.images is not None and not images:
        frame = frame.set_axis(flat_names(list(frame.columns), raw.images), axis=1)
    if raw.files and FILE not in frame.columns:
        frame = frame.assign(**{FILE: raw.files})
    table = pa.Table.from_pandas(frame, preserve_index=False)
    stream = Stream(raw.name, tuple(table.column_names), _pieces(table), sparse=sparse)
    return replace(stream, images=raw.images if images else None)


def _file(
    path: Path, header: bool, names_for: NamesFor | None, stack: ExitStack, images: bool
) -> Stream:
    name = opening.name_of(path)
    stream, head = opening.opened(path, stack)
    kind = kind_of(name, head)
    if kind == "text":
        return _delimited(path, stream, head, header, names_for, stack.enter_context(ExitStack()))
    plain = str(path) != "-" and not isinstance(stream, Unzipped)
    if kind in ("parquet", "feather"):
        content = path if plain else opening.rest_of(name, head, stream)
        source = ParquetSource(name, content) if kind == "parquet" else FeatherSource(name, content)
        stack.callback(source.close)
        tables = source.tables(ROWS) if isinstance(source, ParquetSource) else _batches(source)
        return Stream(name, tuple(source.schema.names), tables)
    content = opening.rest_of(name, head, stream) if kind != "libsvm" or str(path) == "-" else b""
    stack.close()
    if not content:
        return _libsvm(path, stack)
    raw = from_bytes(Path(name), content, header, labelled=False)
    if kind == "excel" and not header and names_for is not None:
        raw = replace(
            raw, frame=raw.frame.set_axis(list(names_for(raw.frame.shape[1], name)), axis=1)
        )
    return _of_raw(raw, images, sparse=kind == "libsvm")


def _delimited(
    path: Path,
    stream: opening.Readable,
    head: bytes,
    header: bool,
    names_for: NamesFor | None,
    others: ExitStack,
) -> Stream:
    name = opening.name_of(path)
    dialect = dialect_of(
        name, opening.as_utf8(name, opening.whole_lines(head)), whole=len(head) < opening.HEAD
    )

    def again() -> opening.Utf8:
        other, start = opening.opened(path, others)
        return opening.Utf8(other, name, start)

    text = opening.Utf8(stream, name, head)
    pieces = DelimitedPieces(name, text, dialect, None if str(path) == "-" else again)
    names = names_for(dialect.width, name) if names_for is not None and not header else None
    columns, tables = pieces.named(header, names)
    return Stream(
        name,
        columns,
        (piece for table in tables for piece in _pieces(table)),
        dialect.written,
        dialect.decimal,
    )


def _libsvm(path: Path, stack: ExitStack) -> Stream:
    from surelearn.data.libsvm import LibsvmPieces
    from surelearn.data.sparse_rows import libsvm_file

    pieces = LibsvmPieces(stack.enter_context(libsvm_file(path)), ROWS)
    tables = (pa.Table.from_pandas(frame, preserve_index=False) for frame in pieces.frames())
    return Stream(path.name, pieces.columns, tables, sparse=True)


def _batches(source: FeatherSource) -> Iterator[pa.Table]:
    for batch in source.batches():
        yield from _pieces(pa.Table.from_batches([batch]))


def _pieces(table: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, table.num_rows, ROWS):
        yield table.slice(start, ROWS)
