"""Parquet: whole, in pieces, and by row groups; what it unpacks to is known from its pages,
whatever its footer says.

A footer can state anything; memory goes where pages are unpacked. So before a row group is read,
the headers of its pages are, which state what the decoder allocates and how many values there are:
beyond the limits of `surelearn.unpacking` the file is refused. Two encodings repeat long text at no
cost (a dictionary, and common beginnings): where a column has them, so few rows are decoded at a
time that they fit, whatever they repeat. Columns that stay dictionaries are decoded to indices;
they count as if written out, which readers do sooner or later.

Reference: the Apache Parquet format, ``parquet.thrift``; headers of pages are in Thrift's compact
protocol.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

from surelearn.data.arrow import arrow_file, check_columns, plain_frame
from surelearn.data.opening import too_much
from surelearn.data.raw import check_names, check_width
from surelearn.unpacking import RATIO, SMALL, memory

pc: Any = pyarrow.compute
PIECE = 64 * 2**20  # bytes of a piece, about
AT_ONCE = 2**30  # bytes that rows may have while they are decoded
BUFFER = 2**20  # bytes of a column that are read at once where rows are never written out
_DICTIONARY = 2  # the type of a page
_COMMON_BEGINNINGS = 7  # the encoding DELTA_BYTE_ARRAY


class ParquetSource:
    """A Parquet file whose sizes are checked before rows are read.

    Parameters
    ----------
    name : how sentences name it
    source : the file, or its content
    held : whether all rows will be in memory at once
    coded : columns of text that are read as dictionaries, for `coded_batches`; then nothing is
        refused for what its rows would be when written out, since they never are
    """

    def __init__(
        self,
        name: str,
        source: Path | bytes,
        *,
        held: bool = False,
        coded: Sequence[str] | None = None,
    ) -> None:
        from pyarrow import parquet

        self.name, self._source, self._held = name, source, held
        with arrow_file(name, "Parquet"):
            self._file = parquet.ParquetFile(
                pa.BufferReader(source) if isinstance(source, bytes) else source,
                read_dictionary=coded,
                buffer_size=0 if coded is None else BUFFER,
            )
            self._size = len(source) if isinstance(source, bytes) else source.stat().st_size
            self.schema: pa.Schema = self._file.schema_arrow
            groups = [
                self._file.metadata.row_group(i) for i in range(self._file.metadata.num_row_groups)
            ]
            self.group_rows: list[int] = [group.num_rows for group in groups]
            self.rows: int = self._file.metadata.num_rows
            if sum(self.group_rows) != self.rows or min(self.group_rows, default=0) < 0:
                raise ValueError("the counts of rows disagree")
        check_names(name, self.schema.names)
        check_width(name, len(self.schema.names))
        if coded is None:
            self._too_much(8 * self.rows * len(self.schema.names))
        self._unpacked, self._longest = 0, dict[int, int]()
        self._dictionaries = {
            field.name for field in self.schema if pa.types.is_dictionary(field.type)
        }

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def batches(
        self,
        most: int,
        *,
        groups: Sequence[int] | None = None,
        columns: Sequence[str] | None = None,
        threads: bool = False,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Rows in order, at most ``most`` at a time, each batch after the number of its first row.

        Parameters
        ----------
        groups, columns : which row groups and columns are read, by default all
        threads : whether columns are decoded in parallel
        """
        names = list(self.schema.names) if columns is None else list(columns)
        check_columns(self.name, pa.schema([self.schema.field(name) for name in names]))
        decoded = 0
        with arrow_file(self.name, "Parquet"):
            for group in range(len(self.group_rows)) if groups is None else groups:
                start, fit = (
                    sum(self.group_rows[:group]),
                    self._at_once() // max(1, self._check(group)),
                )
                size = max(1, min(most, fit))
                for batch in self._file.iter_batches(
                    size, row_groups=[group], columns=names, use_threads=threads
                ):
                    decoded += _decoded(batch)
                    self._too_much(decoded)
                    for piece in _cut(batch, self._at_once()):
                        yield start, piece
                        start += piece.num_rows

    def coded_batches(self, most: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns in order, at most ``most`` rows at a time, text as the dictionaries that it
        was opened for; in one thread.
        """
        check_columns(self.name, pa.schema([self.schema.field(name) for name in columns]))
        with arrow_file(self.name, "Parquet"):
            for group in range(len(self.group_rows)):
                self._check(group)
                for batch in self._file.iter_batches(
                    most, row_groups=[group], columns=list(columns), use_threads=False
                ):
                    if batch.num_rows:
                        yield batch

    def tables(self, most: int) -> Iterator[pa.Table]:
        """All rows in pieces of at most ``most`` rows and about `PIECE` bytes."""
        kept: list[pa.RecordBatch] = []
        for _, batch in self.batches(most):
            rows, size = sum(one.num_rows for one in kept), sum(map(_decoded, kept))
            if kept and (rows + batch.num_rows > most or size > PIECE):
                yield pa.Table.from_batches(kept)
                kept = []
            kept.append(batch)
        if kept:
            yield pa.Table.from_batches(kept)

    def _check(self, group: int) -> int:
        """How many bytes a value of a row group may have by being repeated; its pages are
        checked, once.
        """
        if group not in self._longest:
            described, longest = self._file.metadata.row_group(group), 0
            with _bytes_of(self._source) as view:
                for number in range(described.num_columns):
                    column, values = described.column(number), 0
                    for page in _pages(view, column):
                        self._unpacked += page.unpacked
                        self._too_much(self._unpacked)
                        values += page.values
                        if values > described.num_rows:
                            raise ValueError("a column has more values than there are rows")
                        repeats = (
                            column.physical_type == "BYTE_ARRAY"
                            and column.path_in_schema not in self._dictionaries
                        )
                        longest = max(longest, page.repeated if repeats else 0)
            self._longest[group] = longest
        return self._longest[group]

    def _at_once(self) -> int:
        """How many bytes rows may have while they are decoded: no more than the file may have
        before it is refused.
        """
        return min(AT_ONCE, memory() // 8, max(SMALL, RATIO * self._size))

    def _too_much(self, unpacked: int) -> None:
        too_much(self.name, unpacked, self._size, held=self._held)


def _decoded(batch: pa.RecordBatch) -> int:
    """How many bytes the rows have once the values of dictionaries are written out."""
    return sum(
        _written_out(column) if pa.types.is_dictionary(column.type) else column.nbytes
        for column in batch.columns
    )


def _cut(batch: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
    """The rows in pieces of at most so many bytes, or of one row; none where there are none."""
    if batch.num_rows < 2 or _decoded(batch) <= most:
        yield from [batch] if batch.num_rows else []
        return
    half = batch.num_rows // 2
    yield from _cut(batch.slice(0, half), most)
    yield from _cut(batch.slice(half), most)


def _written_out(column: pa.Array) -> int:
    values, indices = column.dictionary, column.indices
    texts = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
        pa.types.is_large_binary,
    )
    if not any(is_text(values.type) for is_text in texts):
        return 8 * len(indices)
    lengths = pc.cast(pc.binary_length(values), pa.int64()).take(indices)
    return indices.nbytes + (pc.sum(lengths).as_py() or 0)


def read_parquet(name: str, content: bytes) -> pd.DataFrame:
    """All rows of a Parquet file, by its content."""
    source = ParquetSource(name, content, held=True)
    kept = [batch for _, batch in source.batches(1 << 20, threads=True)]
    with arrow_file(name, "Parquet"):
        return plain_frame(
            name, pa.Table.from_batches(kept) if kept else source.schema.empty_table()
        )


# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Page:
    """What a page's header states: its size unpacked, its values, and how many bytes of text
    may be repeated for nothing.
    """

    unpacked: int
    values: int
    repeated: int


class _bytes_of:  # noqa: N801 - used as a function
    """The bytes of a file, mapped, or its content."""

    def __init__(self, source: Path | bytes) -> None:
        self._source = source

    def __enter__(self) -> View:
        if isinstance(self._source, bytes):
            return self._source
        with self._source.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return self._map

    def __exit__(self, *_: object) -> None:
        if not isinstance(self._source, bytes):
            self._map.close()


View: TypeAlias = mmap.mmap | bytes  # the bytes of a file


def _pages(view: View, column: pa.parquet.ColumnChunkMetaData) -> Iterator[_Page]:
    """The pages of a column of a row group, found where the decoder will look for them."""
    position, dictionary = column.data_page_offset, column.dictionary_page_offset
    if column.has_dictionary_page and dictionary is not None and 0 < dictionary < position:
        position = dictionary
    end, values = position + column.total_compressed_size, 0
    while position < end and values < column.num_values:
        header, position = _struct(view, position)
        unpacked, packed = header.get(2, -1), header.get(3, -1)
        if unpacked < 0 or packed < 0:
            raise ValueError("a page without its sizes")
        about = header.get(5) or header.get(8) or {}
        encoding = about.get(2 if 5 in header else 4)
        repeats = header.get(1) == _DICTIONARY or encoding == _COMMON_BEGINNINGS
        yield _Page(unpacked, about.get(1, 0), unpacked if repeats else 0)
        values += about.get(1, 0)
        position += packed


def _struct(view: View, position: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """The fields of a Thrift structure by their numbers, and where it ends."""
    fields: dict[int, Any] = {}
    number = 0
    while kind := view[position]:
        step, kind = kind >> 4, kind & 15
        position += 1
        if step:
            number += step
        else:
            number, position = _whole(view, position)
        fields[number], position = _value(view, position, kind, depth)
        if len(fields) > 100:
            raise ValueError("a page's header has too many fields")
    return fields, position + 1


def _value(view: View, position: int, kind: int, depth: int) -> tuple[Any, int]:
    """A field's value of a Thrift type, and where it ends; of text and lists nothing is kept."""
    if kind in (1, 2):  # true, false
        return kind == 1, position
    if kind in (4, 5, 6):
        return _whole(view, position)
    if kind == 12 and depth < 8:
        return _struct(view, position, depth + 1)
    if kind == 8:
        length, position = _varint(view, position)
        return None, position + length
    if kind in (3, 7):
        return None, position + (1 if kind == 3 else 8)
    raise ValueError("a page's header cannot be read")


def _whole(view: View, position: int) -> tuple[int, int]:
    value, position = _varint(view, position)
    return (value >> 1) ^ -(value & 1), position


def _varint(view: View, position: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = view[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
    raise ValueError("a number that is too long")
