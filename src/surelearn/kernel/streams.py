"""Rows in chunks for kernel machines, from arrays, memory-mapped arrays and Parquet files larger than memory.

A source knows how many rows and columns there are without reading them. Every pass gives the rows in their own order, cut at
the same places whatever the source is: a fit sums over all rows, so that their order does not matter, and rows are drawn at
random by their numbers. What cannot be used is refused in one sentence that names the file, the column and the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

Array = npt.NDArray[np.float64]
Chunk = tuple[np.ndarray, Array]  # rows (b, d), float32 or float64, and targets (b, outputs)
_READ = 1 << 13  # rows read from Parquet at a time


class RowStream(Protocol):
    """Rows and targets: ``n`` rows of ``d`` columns with ``outputs`` targets, as often as they are asked for."""

    name: str
    n: int
    d: int
    outputs: int

    def chunks(self, size: int) -> Iterator[Chunk]:
        """One pass: ``size`` rows at a time, the last fewer."""
        ...

    def take(self, rows: npt.NDArray[np.int64]) -> Chunk:
        """The rows of those numbers, in that order."""
        ...


class ArrayRows:
    """Rows of an array (n, d), in memory or mapped from a file, and their targets (n,) or (n, outputs).

    Parameters
    ----------
    X, y : arrays; those of ``np.load(path, mmap_mode="r")`` are read a chunk at a time
    classes : labels in order, where y are labels: targets are then ±1, one output a class (two classes: one output)

    Examples
    --------
    >>> rows = ArrayRows(np.arange(6.0).reshape(3, 2), np.array(["a", "b", "a"]), classes=["a", "b"])
    >>> [targets[:, 0].tolist() for _, targets in rows.chunks(2)]
    [[-1.0, 1.0], [-1.0]]
    """

    def __init__(self, X: np.ndarray, y: np.ndarray, *, classes: Any = None, name: str = "X") -> None:
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise ValueError(f"{name} must be an array (n, d) of numbers, not {X.dtype} of shape {X.shape}")
        if len(y) != len(X) or y.ndim not in (1, 2):
            raise ValueError(f"y must have one row for each of the {len(X)} rows of {name}, not shape {y.shape}")
        if X.size == 0:
            raise ValueError(f"{name} is empty: it has shape {X.shape}; rows and columns are needed")
        self.name, (self.n, self.d) = name, X.shape
        self._X, self._y, self._labels = X, y, _Labels.of(classes)
        self.outputs = self._labels.outputs if self._labels else int(np.prod(y.shape[1:]))

    def chunks(self, size: int) -> Iterator[Chunk]:
        """One pass: ``size`` rows at a time, the last fewer."""
        for start in range(0, self.n, size):
            yield self._chunk(slice(start, start + size), np.arange(start, min(start + size, self.n)))

    def take(self, rows: npt.NDArray[np.int64]) -> Chunk:
        """The rows of those numbers, in that order."""
        return self._chunk(rows, rows)

    def _chunk(self, part: Any, numbers: npt.NDArray[np.int64]) -> Chunk:
        X, y = np.asarray(self._X[part]), np.asarray(self._y[part])
        X = np.ascontiguousarray(X, dtype=np.float32 if X.dtype == np.float32 else np.float64)
        _check_finite(X, numbers, lambda column: f"{self.name}, column {column}")
        if self._labels:
            return X, self._labels.targets(y.reshape(len(X)), "y")
        if y.dtype.kind not in "biuf":
            raise ValueError(f"y holds {y.dtype}: numbers are needed, or classes= for labels")
        Y = y.reshape(len(X), -1).astype(np.float64)
        _check_finite(Y, numbers, lambda _: "y")
        return X, Y


class ParquetRows:
    """Rows of a Parquet file: columns of numbers, and the target's or targets' columns.

    Parameters
    ----------
    path : the file
    target : the name of the target's column, or names of several
    features : the columns to use, in order; None takes all others
    classes : labels in order (`label_values` lists them), where the target holds labels: targets are then ±1, one output a
        class (two classes: one output)
    """

    def __init__(
        self, path: Any, target: str | Sequence[str], *, features: Sequence[str] | None = None, classes: Any = None
    ) -> None:
        self.path, self.name = Path(path), Path(path).name
        self._file = _open(self.path)
        names = self._file.schema_arrow.names
        self.targets = [target] if isinstance(target, str) else list(target)
        self.features = [name for name in names if name not in self.targets] if features is None else list(features)
        self._labels = _Labels.of(classes)
        self._check(names)
        self.n, self.d = int(self._file.metadata.num_rows), len(self.features)
        self.outputs = self._labels.outputs if self._labels else len(self.targets)
        if self.n == 0 or self.d == 0:
            raise ValueError(f"{self.name} is empty: it has {self.n} rows and {self.d} columns of features")
        kinds = {str(self._file.schema_arrow.field(name).type) for name in self.features}
        self._dtype = np.float32 if kinds <= {"float", "halffloat"} else np.float64

    def _check(self, names: list[str]) -> None:
        import pyarrow as pa

        if not self.targets or (self._labels and len(self.targets) > 1):
            raise ValueError("target must name one column, or several columns of numbers without classes=")
        for name in (*self.targets, *self.features):
            if name in self.targets and name in self.features:
                raise ValueError(f"features must not name {name!r}, which is the target")
            if name not in names:
                raise ValueError(_no_column(self.name, name, names))
            kind = self._file.schema_arrow.field(name).type
            number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
            if not number and not (self._labels and name in self.targets):
                raise ValueError(f"{self.name}, column {name!r} holds {kind}: numbers are needed; encode it or leave it out")

    def chunks(self, size: int) -> Iterator[Chunk]:
        """One pass: ``size`` rows at a time, the last fewer."""
        kept: list[Chunk] = []
        count = 0
        for X, Y, _ in self._pieces(range(self._file.num_row_groups)):
            kept.append((X, Y))
            count += len(X)
            while count >= size:
                X, Y = _joined(kept)
                yield X[:size], Y[:size]
                kept, count = [(X[size:], Y[size:])], count - size
        if count:
            yield _joined(kept)

    def take(self, rows: npt.NDArray[np.int64]) -> Chunk:
        """The rows of those numbers, in that order; row groups without any are not read."""
        sizes = [self._file.metadata.row_group(i).num_rows for i in range(self._file.num_row_groups)]
        ends = np.cumsum(sizes)
        order = np.argsort(rows, kind="stable")
        sought = np.asarray(rows)[order]
        groups = np.unique(np.searchsorted(ends, sought, side="right"))
        X, Y = np.empty((len(rows), self.d), self._dtype), np.empty((len(rows), self.outputs))
        for some, targets, start in self._pieces(groups.tolist()):
            first, last = np.searchsorted(sought, (start, start + len(some)))
            X[order[first:last]] = some[sought[first:last] - start]
            Y[order[first:last]] = targets[sought[first:last] - start]
        return X, Y

    def _pieces(self, groups: Sequence[int]) -> Iterator[tuple[np.ndarray, Array, int]]:
        """Rows, targets and the number of the first, for the row groups named."""
        import pyarrow as pa

        sizes = [self._file.metadata.row_group(i).num_rows for i in range(self._file.num_row_groups)]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        columns = list(dict.fromkeys((*self.features, *self.targets)))
        try:
            for group in groups:
                start = int(starts[group])
                for batch in self._file.iter_batches(_READ, row_groups=[group], columns=columns, use_threads=False):
                    if batch.num_rows:
                        yield self._numbers(batch, start)
                    start += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{self.path} is a damaged Parquet file: write it again ({error})") from None

    def _numbers(self, batch: pa.RecordBatch, start: int) -> tuple[np.ndarray, Array, int]:
        numbers = np.arange(start, start + batch.num_rows)
        X = np.empty((batch.num_rows, self.d), self._dtype)
        for j, name in enumerate(self.features):
            X[:, j] = _column(batch, name)
        _check_finite(X, numbers, lambda j: f"{self.name}, column {self.features[j]!r}")
        if self._labels:
            labels = np.asarray(batch.column(self.targets[0]).to_pylist(), dtype=object)
            return X, self._labels.targets(labels, f"{self.name}, column {self.targets[0]!r}"), start
        Y = np.column_stack([_column(batch, name) for name in self.targets]).astype(np.float64)
        _check_finite(Y, numbers, lambda j: f"{self.name}, column {self.targets[j]!r}")
        return X, Y, start


def label_values(path: Any, target: str) -> np.ndarray:
    """The distinct values of a column of a Parquet file, sorted; only that column is read."""
    import pyarrow.compute as pc

    file = _open(Path(path))
    if target not in file.schema_arrow.names:
        raise ValueError(
            f"{Path(path).name} has no column {target!r}: it has {', '.join(map(repr, file.schema_arrow.names))}"
        )
    found: set[Any] = set()
    for batch in file.iter_batches(columns=[target]):
        found |= set(pc.unique(batch.column(0)).to_pylist())
    if None in found or any(value != value for value in found):
        raise ValueError(f"{Path(path).name}, column {target!r} has rows without a label: fill or remove them")
    return np.array(sorted(found))


class _Labels:
    """Labels as targets ±1."""

    def __init__(self, classes: Any) -> None:
        self._codes = {label: code for code, label in enumerate(np.asarray(classes).tolist())}
        if len(self._codes) < 2:
            raise ValueError(f"classes must hold at least two different labels, not {list(self._codes)}")
        self.outputs = 1 if len(self._codes) == 2 else len(self._codes)

    @classmethod
    def of(cls, classes: Any) -> _Labels | None:
        return None if classes is None else cls(classes)

    def targets(self, labels: np.ndarray, where: str) -> Array:
        codes = np.array([self._codes.get(label, -1) for label in labels.tolist()])
        if codes.min(initial=0) < 0:
            strange = labels.tolist()[int(codes.argmin())]
            raise ValueError(f"{where} holds the label {strange!r}, which classes= does not: name all labels")
        Y = np.where(codes[:, None] == np.arange(len(self._codes)), 1.0, -1.0)
        return Y[:, 1:] if len(self._codes) == 2 else Y


def _open(path: Path) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(path)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}: check the path") from None
    except IsADirectoryError:
        raise ValueError(f"{path} is a directory: name the file inside it") from None
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} cannot be read as Parquet: write it again ({str(error).splitlines()[0]})") from None


def _no_column(file: str, column: str, names: list[str]) -> str:
    return f"{file} has no column {column!r}: it has {', '.join(map(repr, names[:20]))}{', …' if len(names) > 20 else ''}"


def _column(batch: pa.RecordBatch, name: str) -> np.ndarray:
    """A column as NumPy numbers, missing values as NaN."""
    import pyarrow as pa

    column = batch.column(name)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return column.to_numpy(zero_copy_only=False)


def _joined(parts: list[Chunk]) -> Chunk:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([X for X, _ in parts]), np.concatenate([Y for _, Y in parts])


def _check_finite(values: np.ndarray, numbers: npt.NDArray[np.int64], where: Any) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        bad = values[row, column]
        said = "a missing value" if np.isnan(bad) else f"{bad}"
        raise ValueError(f"{where(int(column))} has {said} in row {numbers[row]} (counted from 0): fill or remove such rows")
