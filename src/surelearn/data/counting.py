"""One pass over a file of any length, in memory that does not grow with its rows: how often values
of columns occur together, and sums of numbers.

Parquet is decoded to codes of its dictionaries, of the columns that are asked for alone; Arrow, JSON
lines and delimited text (gzipped or not) come in pieces, whose values are coded. Everything that is kept are
whole numbers, so that the result does not depend on how rows are cut into pieces. Counts do not depend on
the order of the rows; sums are kept of blocks of rows, drawn by their positions, for bounds that bet on one block
after the other.
"""

from __future__ import annotations

import hashlib
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute

from surelearn import files
from surelearn.data import opening
from surelearn.data.arrow import plain_frame
from surelearn.data.block_sums import (
    BLOCKS,
    Blocks,
    Graded,
    Steps,
    Sums,
    add_up,
    blocks_of,
    in_steps,
)
from surelearn.data.columns import DataError, NotCountableError, Values, shown, type_text
from surelearn.data.delimited import from_text
from surelearn.data.feather import FeatherSource
from surelearn.data.formats import described, kind_of
from surelearn.data.frames import plain
from surelearn.data.json_lines import (
    coded_pieces,
    column_of,
    decoded,
    first_lines,
    read_json_lines,
)
from surelearn.data.parquet import ParquetSource
from surelearn.data.raw import Raw
from surelearn.data.sorted_groups import SortedGroups
from surelearn.data.stream import open_stream
from surelearn.unpacking import Unzipped

pc: Any = pyarrow.compute
LARGE_ROWS = 5_000_000  # of Parquet: with more rows a file is read in one pass by itself
LARGE_BYTES = 500 * 10**6  # of other files
LARGE_PACKED = LARGE_BYTES // 5  # of those that are gzipped
BATCH = 1 << 20  # rows
HEAD_ROWS = 200_000  # that are looked at as a table: by which it is known again, and searched
MOST_DISTINCT = 10_000  # values of a column that are counted
MOST_CELLS = 1 << 22  # combinations of values
_FEW_CELLS = 1 << 10  # with so many, all blocks of each are held at once
_HASHED = 1 << 20
_HEAD_BATCH = 1 << 16
Codes = npt.NDArray[np.int32]
Cell = tuple[int, ...]


@dataclass
class OnePass:
    """What one pass found.

    Attributes
    ----------
    name, path : of the file, or folder
    columns : all its columns
    rows : how many there are
    hash : ``sha256:…`` of the file's bytes; of a folder's files, in the order of their names
    values : of each counted column, its values as a file that is read whole has them; None or NaN
        where one is missing
    cells : for each tuple of columns, how many rows have these values, by their positions in
        ``values``
    sums : for each tuple of columns, the sums of graded rows by the same positions, in blocks; of
        groups for no columns only
    groups : how many there are
    missing : how many numbers are missing: ours, the other's
    outside : how many numbers lie outside of the range, and the first of them
    head : the first rows as a table
    """

    name: str
    path: Path
    columns: tuple[str, ...]
    rows: int = 0
    hash: str = ""
    values: dict[str, Values] = field(default_factory=dict)
    cells: dict[tuple[str, ...], Counter[Cell]] = field(default_factory=dict)
    sums: dict[tuple[str, ...], dict[Cell, Blocks]] = field(default_factory=dict)
    groups: int | None = None
    missing: tuple[int, int] = (0, 0)
    outside: tuple[int, float] = (0, 0.0)
    head: Raw = field(default_factory=lambda: Raw("", None, pd.DataFrame()))


def is_large(source: object) -> bool:
    """Whether a source is a file, or a folder of Parquet files, that is long enough to be read in
    one pass by itself: by its metadata, or its bytes.
    """
    if not isinstance(source, (str, Path)) or str(source) == "-":
        return False
    path = Path(source)
    try:
        parts = _parts(path)
        if not all(stat.S_ISREG(part.stat().st_mode) for part in parts):
            return False
        if all(_begins(part, b"PAR1") for part in parts):
            return sum(_rows_of(part) for part in parts) > LARGE_ROWS
        packed = _begins(path, b"\x1f\x8b")
        return path.stat().st_size > (LARGE_PACKED if packed else LARGE_BYTES)
    except (OSError, ValueError, pa.ArrowException):  # which reading it says better
        return False


def count(
    source: str | Path,
    asked: Sequence[tuple[str, ...]],
    graded: Graded | None = None,
    *,
    header: bool | None = None,
    opened: Opened | None = None,
    cuts: Mapping[str, Sequence[float]] | None = None,
    progress: Callable[[int, int | None], None] = lambda done, total: None,  # noqa: ARG005
) -> OnePass:
    """Read a file once.

    Parameters
    ----------
    source : a file, or a folder of Parquet files
    asked : tuples of at most three columns whose values are counted together; with ``graded`` whose
        rows are added up
    graded : numbers to add up
    header : as in `surelearn.data.read_table`
    opened : what `look` found, where that was called before
    cuts : of columns of numbers, ascending: their values are then how many of these a number reaches;
        None where it is missing, and −1 where it is below the first, or infinite
    progress : is told how many rows were read, and of how many where that is known

    Raises
    ------
    NotCountableError
        where a column has too many values, or the format cannot be read in pieces
    DataError
        where the file is damaged, or changes while it is read
    """
    found = look(source, header) if opened is None else opened
    stamp = _stamp(found.parts)
    known = _hash(found.parts)
    tally = _Tally(found, tuple(dict.fromkeys(asked)), graded, cuts, seed_of(known))
    for batch in found.batches(tally.names, header):
        tally.add(batch)
        progress(tally.rows, found.rows)
    made = tally.counted()
    made.hash = known
    if _stamp(found.parts) != stamp:
        raise DataError(f"{found.name} changed while it was read: run the command again.")
    return made


# ── Opening ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Opened:
    """A file whose columns are known.

    Attributes
    ----------
    name, path, parts : the file, or the folder and its files
    kind : "parquet", "feather", "json lines" or "text"
    rows : how many: as metadata say, or about as many as the length of the first lines lets expect
    head : the first rows as a table
    """

    name: str
    path: Path
    parts: tuple[Path, ...]
    kind: str
    rows: int | None
    head: Raw
    decimal: str = "."

    def batches(self, names: Sequence[str], header: bool | None) -> Iterator[pa.RecordBatch]:
        """Some columns of all rows, at most `BATCH` rows at a time."""
        for part in self.parts:
            with ExitStack() as stack:
                if self.kind == "parquet":
                    source = ParquetSource(part.name, part, coded=_texts(part, names))
                    stack.callback(source.close)
                    yield from source.coded_batches(BATCH, names)
                elif self.kind == "feather":
                    feather = FeatherSource(part.name, part)
                    stack.callback(feather.close)
                    for batch in feather.batches():
                        for start in range(0, batch.num_rows, BATCH):
                            yield batch.select(list(names)).slice(start, BATCH)
                elif self.kind == "json lines":
                    for piece in coded_pieces(part, names, _HEAD_BATCH):
                        texts = [pa.array(piece[name], pa.large_string()) for name in names]
                        yield pa.RecordBatch.from_arrays(texts, names=list(names))
                else:
                    stream = open_stream(part, header=header is not False, names_for=_numbered)
                    stack.callback(stream.close)
                    for table in stream.tables:
                        yield from table.select(list(names)).combine_chunks().to_batches()


def look(source: str | Path, header: bool | None = None) -> Opened:
    """The columns of a file, and its first rows."""
    path = Path(source)
    if str(source) == "-":
        raise NotCountableError(
            "standard input is read whole: save it to a file for one pass, or leave out --one-pass."
        )
    parts = _parts(path)
    with ExitStack() as stack:
        stream, head = opening.opened(parts[0], stack)
        kind = kind_of(parts[0].name, head)
        zipped = isinstance(stream, Unzipped)
    if kind not in ("parquet", "feather", "json lines", "text") or (zipped and kind != "text"):
        what = f"gzipped {described(kind)}" if zipped else described(kind)
        raise NotCountableError(
            f"{path.name} is {what}, which is read whole: one pass reads Parquet, Arrow,"
            " JSON lines and delimited text."
        )
    if kind == "text":
        return _look_at_text(path, header)
    if kind == "json lines":
        first = read_json_lines(path.name, first_lines(path, HEAD_ROWS))
        raw = Raw(path.name, path, plain(first, path.name))
        return Opened(path.name, path, parts, kind, _about(path), raw)
    rows, columns, types = 0, None, None
    for part in parts:
        opened = _source(part, kind)
        names, held = tuple(opened.schema.names), tuple(opened.schema.types)
        some = opened.rows if isinstance(opened, ParquetSource) else None
        rows += some or 0
        opened.close()
        columns = columns or names
        if names != columns:
            raise DataError(
                f"{path.name}: {part.name} has other columns than {parts[0].name}: a table in several"
                " files needs the same columns, in the same order, in each."
            )
        if some == 0:
            continue
        types = types or held
        for name, one, first in zip(columns, held, types, strict=True):
            if one != first:
                raise NotCountableError(
                    f"{path.name}: column {shown(name)} is {one} in {part.name} and {first} in"
                    f" {parts[0].name}, and one pass reads one type: save all alike, or leave out"
                    " --one-pass."
                )
    raw = Raw(path.name, path, plain(_first_rows(parts, kind), path.name))
    return Opened(path.name, path, parts, kind, rows or None, raw)


def _look_at_text(path: Path, header: bool | None) -> Opened:
    """The first rows as the whole table would be read, their names among them."""
    with open_stream(path, header=header is not False, names_for=_numbered) as stream:
        kept, rows = [], 0
        for table in stream.tables:
            kept.append(table)
            rows += table.num_rows
            if rows >= HEAD_ROWS:
                break
        table = pa.concat_tables(kept).slice(0, HEAD_ROWS).combine_chunks()
        decimal, columns = stream.decimal, list(stream.columns)
    if header is not False:
        first = pa.table({name: pa.array([name], pa.large_string()) for name in columns})
        table = pa.concat_tables([first, table.cast(first.schema)])
    raw = from_text(path.name, path, table, header, decimal=decimal)
    return Opened(path.name, path, (path,), "text", _about(path), raw, decimal)


def _about(path: Path) -> int | None:
    """About how many lines a file of text has; None where it is packed."""
    with path.open("rb") as file:
        first = file.read(opening.HEAD)
    lines = first.count(b"\n")
    if first[:2] == b"\x1f\x8b" or not lines:
        return None
    return int(path.stat().st_size / len(first) * lines)


def _source(part: Path, kind: str) -> ParquetSource | FeatherSource:
    if kind == "parquet":
        return ParquetSource(part.name, part, coded=())
    return FeatherSource(part.name, part)


def _first_rows(parts: Sequence[Path], kind: str) -> pd.DataFrame:
    kept: list[pa.RecordBatch] = []
    rows = 0
    for part in parts:
        source = _source(part, kind)
        try:
            if isinstance(source, ParquetSource):
                batches = (batch for _, batch in source.batches(_HEAD_BATCH))
            else:
                batches = source.batches()
            for batch in batches:
                kept.append(batch.slice(0, HEAD_ROWS - rows))
                rows += kept[-1].num_rows
                if rows >= HEAD_ROWS:
                    break
        finally:
            source.close()
        if rows >= HEAD_ROWS:
            break
    if not kept:
        raise DataError(f"{parts[0].name} is empty: it has no rows.")
    return plain_frame(parts[0].name, pa.Table.from_batches(kept))


def _numbered(width: int, name: str) -> tuple[str, ...]:  # noqa: ARG001 - as `open_stream` asks
    return tuple(f"column {i}" for i in range(1, width + 1))


def _parts(path: Path) -> tuple[Path, ...]:
    """The file, or a folder's Parquet files by their names."""
    parts = tuple(opening.parts_of(path)) if path.is_dir() else ()
    return parts or (path,)


def _begins(path: Path, magic: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(magic)) == magic


def _rows_of(path: Path) -> int:
    from pyarrow import parquet

    return parquet.read_metadata(path).num_rows


def _texts(path: Path, names: Sequence[str]) -> list[str]:
    """The columns of text, which Parquet can decode to dictionaries."""
    from pyarrow import parquet

    schema = parquet.read_schema(path)
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary)
    return [name for name in names if any(is_text(schema.field(name).type) for is_text in text)]


def _stamp(parts: Sequence[Path]) -> list[tuple[int, int]]:
    try:
        return [(part.stat().st_size, part.stat().st_mtime_ns) for part in parts]
    except OSError as error:
        raise DataError(f"{parts[0].name} cannot be read ({error}): check the path.") from None


def _hash(parts: Sequence[Path]) -> str:
    """Of the bytes of a file; of several, of their hashes."""
    digests = []
    for part in parts:
        files.check_regular(part, part.name)
        with part.open("rb") as file:
            digest = hashlib.sha256()
            while piece := file.read(_HASHED):
                digest.update(piece)
        digests.append(digest.hexdigest())
    if len(digests) == 1:
        return f"sha256:{digests[0]}"
    return f"sha256:{hashlib.sha256('|'.join(digests).encode()).hexdigest()}"


def seed_of(known: str) -> int:
    """What blocks of rows are drawn with, from the hash of a file."""
    return int(known.removeprefix("sha256:")[:15], 16)


# ── Counting ─────────────────────────────────────────────────────────────────────────────────────


class _Tally:
    """What was counted so far."""

    def __init__(
        self,
        opened: Opened,
        asked: tuple[tuple[str, ...], ...],
        graded: Graded | None,
        cuts: Mapping[str, Sequence[float]] | None = None,
        seed: int = 0,
    ) -> None:
        self._seed = seed
        self._cuts = {name: np.asarray(one, dtype=float) for name, one in (cuts or {}).items()}
        self._opened, self._asked, self._graded = opened, asked, graded
        self._counted = tuple(dict.fromkeys(name for names in asked for name in names))
        numbers = () if graded is None else tuple(filter(None, (graded.column, graded.other)))
        group = None if graded is None else graded.group
        self.names = tuple(dict.fromkeys((*self._counted, *numbers, *filter(None, (group,)))))
        self._groups = None if group is None else SortedGroups(opened.name, group)
        self.rows = 0
        self._known: dict[str, dict[Any, int]] = {name: {} for name in self._counted}
        self._types: dict[str, pa.DataType] = {}
        self._cells: dict[tuple[str, ...], Counter[Cell]] = {names: Counter() for names in asked}
        self._sums: dict[tuple[str, ...], dict[Cell, Blocks]] = {names: {} for names in asked}
        self._placed = 0  # rows, or groups, that are in blocks
        self._missing, self._outside = [0, 0], (0, 0.0)

    def add(self, batch: pa.RecordBatch) -> None:
        """Count one batch."""
        codes: dict[str, Codes] = {}
        global_codes: dict[str, list[int]] = {}
        for name in self._counted:
            codes[name], values = self._coded(name, batch.column(name))
            global_codes[name] = [self._code(name, value) for value in values]
        numbers = None if self._graded is None else self._numbers(batch, self._graded)
        if numbers is not None and self._groups is not None:
            values = self._plain(self._groups.column, batch.column(self._groups.column))
            self._add_groups(*self._groups.means(values, *numbers))
            numbers = None
        blocks = None if numbers is None else self._next_blocks(batch.num_rows)
        for names in self._asked:
            widths = [len(global_codes[name]) for name in names]
            size = int(np.prod(widths, dtype=float))
            if size > MOST_CELLS:
                raise NotCountableError(
                    f"{self._opened.name}: columns {', '.join(map(shown, names))} have too many"
                    f" combinations of values to be counted in one pass ({size:,})."
                )
            joint = _joint([codes[name] for name in names], widths, batch.num_rows)
            if joint is None:
                raise DataError(f"{self._opened.name} is damaged: a code is beyond its dictionary.")
            if numbers is None or blocks is None:
                self._add_cells(names, joint, size, global_codes, widths)
                continue
            for at, block, found in _in_blocks(joint, size, blocks, *numbers):
                cell = _cell(at, names, global_codes, widths)
                self._sums[names].setdefault(cell, {}).setdefault(block, Sums()).add(found)
        self.rows += batch.num_rows

    def _add_cells(
        self,
        names: tuple[str, ...],
        joint: Codes,
        size: int,
        known: dict[str, list[int]],
        widths: list[int],
    ) -> None:
        counts = np.zeros(size, dtype=np.int64)
        _count(joint, counts)
        total = self._cells[names]
        for at in np.flatnonzero(counts).tolist():
            total[_cell(at, names, known, widths)] += int(counts[at])

    def _add_groups(self, ours: Steps, other: Steps) -> None:
        """Add the means of groups."""
        sums = self._sums.setdefault((), {}).setdefault((), {})
        alone = np.zeros(ours.size, np.int32)
        for _, block, found in _in_blocks(alone, 1, self._next_blocks(ours.size), ours, other):
            sums.setdefault(block, Sums()).add(found)

    def _next_blocks(self, n: int) -> Steps:
        """The blocks of the next rows, or groups."""
        self._placed += n
        return blocks_of(self._placed - n, n, self._seed)

    def _plain(self, name: str, column: pa.Array) -> pa.Array:
        """A column's values, which have an order: numbers where the first rows have numbers."""
        if pa.types.is_dictionary(column.type):
            return column.dictionary_decode()
        if pa.types.is_boolean(column.type):
            return column.cast(pa.uint8())
        if self._opened.kind not in ("text", "json lines"):
            return column
        numbers = self._opened.head.frame[name].dtype.kind in "iuf"
        if self._opened.kind == "text":
            values = type_text(column, decimal=self._opened.decimal, words=not numbers)
        else:
            found = decoded(column.to_pylist())
            words = [None if value is None else str(value) for value in found]
            values = _typed_json(name, found if numbers else words, self._opened.name)
        if numbers and values.dtype.kind not in "iuf":
            raise NotCountableError(
                f"{self._opened.name}, --group column {shown(name)} holds numbers at first and words"
                " later: leave out --one-pass."
            )
        return pa.array(values, from_pandas=True)

    def _numbers(self, batch: pa.RecordBatch, graded: Graded) -> tuple[Steps, Steps]:
        """Ours rounded down and the other's rounded up, in steps of the range."""
        found = []
        for i, name in enumerate((graded.column, graded.other)):
            if name is None:
                found.append(np.empty(0, dtype=np.int32))
                continue
            read = self._floats if graded.read is None else self._read
            values = read(name, batch.column(name))
            steps = np.empty(values.size, dtype=np.int32)
            lost, outside, first = in_steps(values, graded.low, graded.high, bool(i), steps)
            self._missing[i] += lost
            if outside:
                self._outside = (
                    self._outside[0] + outside,
                    self._outside[1] if self._outside[0] else first,
                )
            found.append(steps)
        return found[0], found[1]

    def _read(self, name: str, column: pa.Array) -> npt.NDArray[np.float64]:
        """The numbers that words stand for; NaN where one is missing."""
        codes, values = self._coded(name, column)
        read = self._graded.read if self._graded else None
        typed = self._as_read_whole(name, values)
        return read(typed)[codes] if read else np.empty(0)

    def _floats(self, name: str, column: pa.Array) -> npt.NDArray[np.float64]:
        """A column of numbers; NaN where one is missing."""
        if self._opened.kind == "text":
            values = type_text(column, decimal=self._opened.decimal)
        elif self._opened.kind == "json lines":
            values = _typed_json(name, decoded(column.to_pylist()), self._opened.name)
            if column.null_count == len(column):
                values = np.full(len(column), np.nan)
        elif (
            pa.types.is_floating(column.type)
            or pa.types.is_integer(column.type)
            or pa.types.is_decimal(column.type)
            or pa.types.is_boolean(column.type)
            or pa.types.is_null(column.type)
        ):
            values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        else:
            values = np.empty(0, dtype=object)
        if values.dtype.kind not in "iufb":
            what = "score" if name in self._cuts else "grade"
            raise DataError(
                f"{self._opened.name}, column {shown(name)} holds words: a {what} is a number."
            )
        return np.ascontiguousarray(values, dtype=np.float64)

    def _coded(self, name: str, column: pa.Array) -> tuple[Codes, list[Any]]:
        """(n,) codes, and the value of each code; the last one is None, for missing."""
        if name in self._cuts:
            return self._reached(name, column)
        if pa.types.is_boolean(column.type):
            codes = column.cast(pa.uint8())
            if codes.null_count:
                codes = pc.fill_null(codes, 2)
            self._types.setdefault(name, column.type)
            return codes.to_numpy(zero_copy_only=False).astype(np.int32), [False, True, None]
        coded: Any = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        indices, dictionary = coded.indices, coded.dictionary
        if len(dictionary) > MOST_DISTINCT:
            self._too_many(name)
        self._types.setdefault(name, dictionary.type)
        if indices.null_count:
            indices = pc.fill_null(indices.cast(pa.int32()), len(dictionary))
        codes = indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
        return codes, [*dictionary.to_pylist(), None]

    def _reached(self, name: str, column: pa.Array) -> tuple[Codes, list[Any]]:
        """How many cuts each number reaches; 0 stands for −1 here, as no number reaches none."""
        values, cuts = self._floats(name, column), self._cuts[name]
        codes = np.searchsorted(cuts, values, side="right").astype(np.int32)
        codes[np.isinf(values)] = 0
        codes[np.isnan(values)] = cuts.size + 1
        self._types.setdefault(name, pa.int64())
        return codes, [-1, *range(1, cuts.size + 1), None]

    def _code(self, name: str, value: Any) -> int:
        """The code of a value in the whole file."""
        known = self._known[name]
        value = None if value != value else value  # NaN, which equals nothing
        if value not in known:
            if len(known) > MOST_DISTINCT:
                self._too_many(name)
            known[value] = len(known)
        return known[value]

    def _too_many(self, name: str) -> None:
        raise NotCountableError(
            f"{self._opened.name}, column {shown(name)} has more than {MOST_DISTINCT:,} values: in one"
            " pass only labels and few numbers are counted."
        )

    def counted(self) -> OnePass:
        """All that was found."""
        opened = self._opened
        if self._groups is not None and self._graded is not None:
            self._add_groups(*self._groups.rest(self._graded.other is not None))
        summed = self._graded is not None and self._groups is None
        return OnePass(
            name=opened.name,
            path=opened.path,
            columns=tuple(opened.head.frame.columns),
            rows=self.rows,
            values={name: self._typed(name) for name in self._counted},
            cells={} if summed else self._cells,
            sums={} if self._graded is None else self._sums,
            groups=None if self._groups is None else self._groups.groups,
            missing=(self._missing[0], self._missing[1]),
            outside=self._outside,
            head=opened.head,
        )

    def _typed(self, name: str) -> Values:
        """The values of a column as they are in a table that is read whole."""
        used = {
            cell[names.index(name)]
            for held in (self._cells, self._sums)
            for names, cells in held.items()
            if name in names
            for cell in cells
        }
        known = [value if code in used else None for value, code in self._known[name].items()]
        if name in self._cuts:
            return np.array(known, dtype=object)
        return self._as_read_whole(name, known)

    def _as_read_whole(self, name: str, known: list[Any]) -> Values:
        """Values of a column as they are in a table that is read whole."""
        found = pa.array(known, self._types.get(name))
        if self._opened.kind == "text":
            return type_text(found, decimal=self._opened.decimal)
        if self._opened.kind == "json lines":
            return _typed_json(name, decoded(known), self._opened.name)
        frame = plain_frame(self._opened.name, pa.table({name: found}))
        return plain(frame, self._opened.name)[name].to_numpy()


def _typed_json(name: str, values: list[Any], file: str) -> Values:
    """Values of JSON as a file that is read whole has them."""
    return plain(pd.DataFrame({name: column_of(values)}), file)[name].to_numpy()


def _cell(
    at: int, names: Sequence[str], known: dict[str, list[int]], widths: Sequence[int]
) -> Cell:
    """The codes that a joint one stands for."""
    found: list[int] = []
    for name, width in zip(reversed(names), reversed(widths), strict=True):
        at, code = divmod(at, width)
        found.append(known[name][code])
    return tuple(reversed(found))


def _in_blocks(
    joint: Codes, size: int, blocks: Steps, ours: Steps, other: Steps
) -> Iterator[tuple[int, int, npt.NDArray[np.int64]]]:
    """The cells and blocks that have rows, each with what `add_up` finds there."""
    within = joint * np.int32(BLOCKS) + blocks
    used = np.arange(size * BLOCKS if size <= _FEW_CELLS else 0)
    if size > _FEW_CELLS:
        used, within = np.unique(within, return_inverse=True)
    found = np.zeros((used.size, 8), dtype=np.int64)
    add_up(within.astype(np.int32, copy=False), ours, other, found)
    for i in np.flatnonzero(found[:, 0]).tolist():
        yield *divmod(int(used[i]), BLOCKS), found[i]


def _joint(codes: Sequence[Codes], widths: Sequence[int], n: int) -> Codes | None:
    """One code for those of several columns; None where one is beyond its dictionary."""
    joint = np.zeros(n, dtype=np.int32)
    for one, width in zip(codes, widths, strict=True):
        if not _join(joint, one, width):
            return None
    return joint


@numba.njit(cache=True)
def _join(joint: Codes, codes: Codes, width: int) -> bool:
    """In place: joint · width + code; whether all codes are below their width."""
    for i in range(joint.size):
        code = codes[i]
        if code < 0 or code >= width:
            return False
        joint[i] = joint[i] * width + code
    return True


@numba.njit(cache=True)
def _count(joint: Codes, counts: npt.NDArray[np.int64]) -> None:
    for i in range(joint.size):
        counts[joint[i]] += 1
