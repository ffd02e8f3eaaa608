"""Rows in chunks for kernel machines, from arrays, memory-mapped arrays and Parquet files larger
than memory.

A source knows how many rows and columns there are without reading them. Every pass gives the rows
in their own order, cut at the same places whatever the source is: a fit sums over all rows, so that
their order does not matter, and rows are drawn at random by their numbers. What cannot be used is
refused in one sentence that names the file, the column and the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from surelearn.types import Array

if TYPE_CHECKING:
    import pyarrow as pa

    from surelearn.data.parquet import ParquetSource

Chunk = tuple[np.ndarray, Array]  # rows (b, d), float32 or float64, and targets (b, outputs)
_READ = 1 << 13  # rows read from Parquet at a time


class RowStream(Protocol):
    """Rows and targets: ``n`` rows of ``d`` columns with ``outputs`` targets, as often as they
    are asked for.
    """

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
    """Rows of an array (n, d), in memory or mapped from a file, and their targets (n,) or (n,
    outputs).

    Parameters
    ----------
    X, y : arrays; those of ``np.load(path, mmap_mode="r")`` are read a chunk at a time
    classes : labels in order, where y are labels: targets are then ±1, one output a class (two
        classes: one output)

    Examples
    --------
    >>> rows = ArrayRows(np.arange(6.0).reshape(3, 2), np.array(["a", "b", "a"]), classes=["a", "b"])
    >>> [targets[:, 0].tolist() for _, targets in rows.chunks(2)]
    [[-1.0, 1.0], [-1.0]]
    """

    def __init__(
        self, X: np.ndarray, y: np.ndarray, *, classes: npt.ArrayLike | None = None, name: str = "X"
    ) -> None:
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise ValueError(
                f"{name} must be an array (n, d) of numbers, not {X.dtype} of shape {X.shape}"
            )
        if len(y) != len(X) or y.ndim not in (1, 2):
            raise ValueError(
                f"y must have one row for each of the {len(X)} rows of {name}, not shape {y.shape}"
            )
        if X.size == 0:
            raise ValueError(
                f"{name} is empty: it has shape {X.shape}; rows and columns are needed"
            )
        self.name, (self.n, self.d) = name, X.shape
        self._X, self._y, self._labels = X, y, _Labels.of(classes)
        self.outputs = self._labels.outputs if self._labels else int(np.prod(y.shape[1:]))

    def chunks(self, size: int) -> Iterator[Chunk]:
        """One pass: ``size`` rows at a time, the last fewer."""
        for start in range(0, self.n, size):
            yield self._chunk(
                slice(start, start + size), np.arange(start, min(start + size, self.n))
            )

    def take(self, rows: npt.NDArray[np.int64]) -> Chunk:
        """The rows of those numbers, in that order."""
        return self._chunk(rows, rows)

    def _chunk(self, part: slice | npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> Chunk:
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
    classes : labels in order (`label_values` lists them), where the target holds labels: targets
        are then ±1, one output a class (two classes: one output)
    """

    def __init__(
        self,
        path: str | Path,
        target: str | Sequence[str],
        *,
        features: Sequence[str] | None = None,
        classes: npt.ArrayLike | None = None,
    ) -> None:
        self.path, self.name = Path(path), Path(path).name
        self._file = _open(self.path)
        names = self._file.schema.names
        self.targets = [target] if isinstance(target, str) else list(target)
        self.features = (
            [name for name in names if name not in self.targets]
            if features is None
            else list(features)
        )
        self._labels = _Labels.of(classes)
        self._check(names)
        self.n, self.d = self._file.rows, len(self.features)
        self.outputs = self._labels.outputs if self._labels else len(self.targets)
        if self.n == 0 or self.d == 0:
            raise ValueError(
                f"{self.name} is empty: it has {self.n} rows and {self.d} columns of features"
            )
        kinds = {str(self._file.schema.field(name).type) for name in self.features}
        self._dtype = np.float32 if kinds <= {"float", "halffloat"} else np.float64

    def _check(self, names: list[str]) -> None:
        import pyarrow as pa

        if not self.targets or (self._labels and len(self.targets) > 1):
            raise ValueError(
                "target must name one column, or several columns of numbers without classes="
            )
        for name in (*self.targets, *self.features):
            if name in self.targets and name in self.features:
                raise ValueError(f"features must not name {name!r}, which is the target")
            if name not in names:
                raise ValueError(_no_column(self.name, names, name))
            kind = self._file.schema.field(name).type
            number = (
                pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
            )
            number = number or pa.types.is_decimal(kind)
            if not number and not (self._labels and name in self.targets):
                raise ValueError(
                    f"{self.name}, column {name!r} holds {kind}: numbers are needed; encode it or"
                    " leave it out"
                )

    def chunks(self, size: int) -> Iterator[Chunk]:
        """One pass: ``size`` rows at a time, the last fewer."""
        kept: list[Chunk] = []
        count = 0
        for X, Y, _ in self._pieces(None):
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
        ends = np.cumsum(self._file.group_rows)
        order = np.argsort(rows, kind="stable")
        sought = np.asarray(rows)[order]
        groups = np.unique(np.searchsorted(ends, sought, side="right"))
        X, Y = np.empty((len(rows), self.d), self._dtype), np.empty((len(rows), self.outputs))
        for some, targets, start in self._pieces(groups.tolist()):
            first, last = np.searchsorted(sought, (start, start + len(some)))
            X[order[first:last]] = some[sought[first:last] - start]
            Y[order[first:last]] = targets[sought[first:last] - start]
        return X, Y

    def _pieces(self, groups: Sequence[int] | None) -> Iterator[tuple[np.ndarray, Array, int]]:
        """Rows, targets and the number of the first, for the row groups named, by default all."""
        columns = list(dict.fromkeys((*self.features, *self.targets)))
        for start, batch in self._file.batches(_READ, groups=groups, columns=columns):
            yield self._numbers(batch, start)

    def _numbers(self, batch: pa.RecordBatch, start: int) -> tuple[np.ndarray, Array, int]:
        numbers = np.arange(start, start + batch.num_rows)
        X = np.empty((batch.num_rows, self.d), self._dtype)
        for j, name in enumerate(self.features):
            X[:, j] = _column(batch, name)
        _check_finite(X, numbers, lambda j: f"{self.name}, column {self.features[j]!r}")
        self._check_large(X)
        if self._labels:
            labels = np.asarray(batch.column(self.targets[0]).to_pylist(), dtype=object)
            return (
                X,
                self._labels.targets(labels, f"{self.name}, column {self.targets[0]!r}"),
                start,
            )
        Y = np.column_stack([_column(batch, name) for name in self.targets]).astype(np.float64)
        _check_finite(Y, numbers, lambda j: f"{self.name}, column {self.targets[j]!r}")
        return X, Y, start

    def _check_large(self, X: np.ndarray) -> None:
        """Refuse numbers too large to compute with, as the audit does."""
        from surelearn.data.columns import LARGEST, DataError, shown

        largest = np.where(X.max(axis=0) > -X.min(axis=0), X.max(axis=0), X.min(axis=0))
        if (large := np.abs(largest) > LARGEST).any():
            column = int(np.argmax(large))
            said = f"holds {largest[column]:.4g}, too large to compute with: correct it."
            raise DataError(f"{self.name}, column {shown(self.features[column])} {said}")


def label_values(path: str | Path, target: str) -> np.ndarray:
    """The distinct values of a column of a Parquet file, sorted; only that column is read."""
    import pyarrow.compute as pc

    file = _open(Path(path))
    if target not in file.schema.names:
        raise ValueError(_no_column(file.name, file.schema.names, target))
    found: set[Any] = set()
    for _, batch in file.batches(_READ, columns=[target]):
        found |= set(pc.unique(batch.column(0)).to_pylist())  # pyright: ignore[reportAttributeAccessIssue]
    if None in found or any(value != value for value in found):
        raise ValueError(
            f"{file.name}, column {target!r} has rows without a label: fill or remove them"
        )
    return np.array(sorted(found))


class _Labels:
    """Labels as targets ±1."""

    def __init__(self, classes: npt.ArrayLike) -> None:
        self._codes = {label: code for code, label in enumerate(np.asarray(classes).tolist())}
        if len(self._codes) < 2:
            raise ValueError(
                f"classes must hold at least two different labels, not {list(self._codes)}"
            )
        self.outputs = 1 if len(self._codes) == 2 else len(self._codes)

    @classmethod
    def of(cls, classes: npt.ArrayLike | None) -> _Labels | None:
        return None if classes is None else cls(classes)

    def targets(self, labels: np.ndarray, where: str) -> Array:
        codes = np.array([self._codes.get(label, -1) for label in labels.tolist()])
        if codes.min(initial=0) < 0:
            strange = labels.tolist()[int(codes.argmin())]
            raise ValueError(
                f"{where} holds the label {strange!r}, which classes= does not: name all labels"
            )
        Y = np.where(codes[:, None] == np.arange(len(self._codes)), 1.0, -1.0)
        return Y[:, 1:] if len(self._codes) == 2 else Y


def _open(path: Path) -> ParquetSource:
    """A Parquet file, opened as the audit opens one; other formats are refused."""
    from surelearn.data import opening
    from surelearn.data.columns import DataError
    from surelearn.data.formats import described, kind_of
    from surelearn.data.parquet import ParquetSource

    with ExitStack() as stack:
        stream, head = opening.opened(path, stack)
        kind = kind_of(path.name, head)
        if kind != "parquet":
            raise DataError(
                f"{path.name} is {described(kind)}: Parquet is needed here; save it so."
            )
        content = (
            path if isinstance(stream, BufferedReader) else opening.rest_of(path.name, head, stream)
        )
    return ParquetSource(path.name, content)


def _no_column(file: str, names: Sequence[str], column: str) -> str:
    from surelearn.data.opening import no_column

    return no_column(file, names, column)


def _column(batch: pa.RecordBatch, name: str) -> np.ndarray:
    """A column as NumPy numbers, missing values as NaN."""
    import pyarrow as pa

    column = batch.column(name)
    if pa.types.is_boolean(column.type) or pa.types.is_decimal(column.type):
        column = column.cast(pa.int8() if pa.types.is_boolean(column.type) else pa.float64())
    return column.to_numpy(zero_copy_only=False)


def _joined(parts: list[Chunk]) -> Chunk:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([X for X, _ in parts]), np.concatenate([Y for _, Y in parts])


def _check_finite(
    values: np.ndarray, numbers: npt.NDArray[np.int64], where: Callable[[int], str]
) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        bad = values[row, column]
        said = "a missing value" if np.isnan(bad) else f"{bad}"
        raise ValueError(
            f"{where(int(column))} has {said} in row {numbers[row]} (counted from 0): fill or"
            " remove such rows"
        )
