"""Reading a table: which column is the target, what the others are, and what is odd about them.

`read_table` is the one entry. Files become typed columns in `surelearn.data.formats`, columns get
their kinds in `surelearn.data.columns`, oddities are found in `surelearn.data.oddities`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pandas.util

from surelearn.claim import Finding
from surelearn.data.columns import (
    LARGEST,
    Column,
    DataError,
    Task,
    Values,
    count_values,
    describe,
    infer_task,
    labels,
    listed,
    shown,
)
from surelearn.data.formats import Raw, load
from surelearn.data.frames import Source
from surelearn.data.oddities import few_values, find_oddities
from surelearn.data.opening import no_column
from surelearn.data.pixels import pixel_names
from surelearn.types import ImageShape

FEWEST_ROWS = 20
hash_array: Any = pandas.util.hash_array  # loaded on demand; type checkers do not see it
Name = str | int
_POSITIONS = "A number is a position: 1 is the first column, -1 the last."


@dataclass(frozen=True, eq=False)
class Table:
    """A table ready to be split and fitted.

    Attributes
    ----------
    name : the file's name, or the built-in set's
    path : where the file is; None for built-in sets and data frames
    frame : all columns as read and typed, in the file's order; rows without a target are removed
    target : the name of the target column
    task : "classification" or "regression"
    columns : what each column of ``frame`` is, in order
    findings : what is odd about the table, by code
    row_hashes : one 64-bit hash per row as read, see `hash_rows`
    group, time : the columns that say which rows belong together, and in which order they came
    reading : how it was read, as `read_table`'s arguments
    unlabelled : the rows without a target, as read
    images : height, width and channels of images, whose pixels are the features; None for other rows
    """

    name: str
    path: Path | None
    frame: pd.DataFrame
    target: str
    task: Task
    columns: tuple[Column, ...]
    findings: tuple[Finding, ...]
    row_hashes: npt.NDArray[np.uint64]
    group: str | None = None
    time: str | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    unlabelled: pd.DataFrame = field(default_factory=pd.DataFrame)
    images: ImageShape | None = None

    @property
    def X(self) -> pd.DataFrame:  # noqa: N802 - scikit-learn's name
        """The features: numbers as float64, categories and text as str with None for missing,
        dates as datetime64.
        """
        return self._features.copy(deep=False)

    @cached_property
    def _features(self) -> pd.DataFrame:
        return pd.DataFrame(
            {c.name: _feature(self.frame[c.name], c) for c in self.columns if c.used}
        )

    @property
    def y(self) -> Values:
        """The target: class labels as the file says them (never 0.0 for 0), or floats."""
        values = self.frame[self.target].to_numpy()
        return labels(values) if self.task == "classification" else values.astype(float)

    @property
    def studied(self) -> tuple[Column, ...]:
        """The columns that are looked at one by one: a pixel says nothing by itself."""
        pixels = frozenset(() if self.images is None else pixel_names(self.images))
        return tuple(column for column in self.columns if column.name not in pixels)

    @property
    def groups(self) -> Values | None:
        """The group of each row, or None."""
        return None if self.group is None else self.frame[self.group].to_numpy()


def read_table(
    source: Source | None = None,
    *,
    target: Name | None = None,
    header: bool | None = None,
    drop: Name | Iterable[Name] = (),
    group: Name | None = None,
    time: Name | None = None,
    task: str | None = None,
    joined: bool = True,
) -> Table:
    """Read a table, decide what each of its columns is, and note what is odd.

    Parameters
    ----------
    source : a path to delimited text (delimiter and encoding are detected), JSON lines, ARFF,
        Parquet, Feather, Excel (with the extra ``excel``), LIBSVM or npz, gzipped or not; a folder
        of images, one folder per class (with the extra ``images``); a built-in name
        ("breast_cancer", the default, "iris", "wine", "digits", "diabetes"); or a pandas or polars
        data frame
    target : the column to predict, by name or position: 1 is the first, -1 the last; built-in sets,
        LIBSVM and npz have one
    header : whether the first line of a text table holds the names; without, columns are "column
        1", "column 2", …; None takes it for names, and refuses a line that looks like data
    drop : columns that must not be used, by name or position
    group : the column that says which rows belong together
    time : the column that orders the rows
    task : "classification" or "regression"; by default the target decides
    joined : False reads an npz as up to 0.2: x_train without x_test, images as flat rows

    Raises
    ------
    DataError
        one sentence that says what is wrong with the input and what to do

    Examples
    --------
    >>> table = read_table("iris")
    >>> table.task, table.X.shape, [column.kind for column in table.columns]
    ('classification', (150, 4), ['number', 'number', 'number', 'number', 'target'])
    >>> read_table("iris", target="specis")
    Traceback (most recent call last):
    ...
    surelearn.data.columns.DataError: iris has no column 'specis'. Did you mean 'species'?
    """
    if task not in (None, "classification", "regression"):
        raise DataError(f"--task is {shown(task)}: it must be classification or regression.")
    raw = load(source, header=header, joined=joined)
    roles = _roles(raw, target, group, time, [drop] if isinstance(drop, (str, int)) else list(drop))
    goal = next(name for name, role in roles.items() if role == "target")
    hashes = hash_rows(raw.frame)
    kept, found = _known_targets(raw, goal)
    frame = raw.frame if kept.all() else raw.frame.loc[kept].reset_index(drop=True)
    if len(frame) < FEWEST_ROWS:
        raise DataError(
            f"{raw.name} has {len(frame)} usable rows: at least {FEWEST_ROWS} are needed."
        )
    frame, infinite = _without_infinities(frame, roles, raw.name)
    frame, columns = _describe_all(frame, roles, raw)
    decided = _task(raw.name, goal, frame[goal].to_numpy(), task)
    table = Table(
        name=raw.name,
        path=raw.path,
        frame=frame,
        target=goal,
        task=decided,
        columns=columns,
        findings=(),
        row_hashes=hashes[kept],
        group=_named(roles, "group"),
        time=_named(roles, "time"),
        reading={
            "target": goal,
            "header": header is not False,
            "drop": [n for n, role in roles.items() if role == "dropped"],
            "group": _named(roles, "group"),
            "time": _named(roles, "time"),
            "task": decided,
            **({"joined": True} if _is_archive(raw) and joined else {}),
        },
        unlabelled=raw.frame.loc[~kept].reset_index(drop=True),
        images=raw.images,
    )
    _check_classes(table)
    found += [
        *raw.findings,
        *infinite,
        *few_values(goal, frame[goal].to_numpy(), decided, chosen=task is not None),
    ]
    odd = find_oddities(
        frame, table.studied, table.y, decided, table.row_hashes, grouped=table.group is not None
    )
    # files have names and no order
    found += [finding for finding in odd if not raw.files or finding.code != "SL109"]
    return replace(table, findings=tuple(sorted(found, key=lambda finding: finding.code)))


# --------------------------------------------------------------------------------------------------


def _roles(
    raw: Raw, target: Name | None, group: Name | None, time: Name | None, drop: Sequence[Name]
) -> dict[str, str]:
    """Which column the user gave which role."""
    names = list(raw.frame.columns)
    if len(names) < 2:
        raise DataError(
            f"{raw.name} has one column, {shown(names[0])}: a target and at least one feature are"
            " needed."
        )
    target = raw.target if target is None else target
    if target is None:
        raise DataError(
            f"{raw.name}: pass --target COLUMN, the column to predict, one of {listed(names, 12)}."
            f" {_POSITIONS}"
        )
    wanted = [
        ("target", target),
        ("group", group),
        ("time", time),
        *(("dropped", column) for column in drop),
    ]
    roles: dict[str, str] = {}
    for role, column in wanted:
        if column is None:
            continue
        name = find_column(
            raw.name, names, column, option="--drop" if role == "dropped" else f"--{role}"
        )
        if roles.get(name, role) != role:
            raise DataError(
                f"column {shown(name)} is named as {roles[name]} and as {role}: it can only be one"
                " of them."
            )
        roles[name] = role
    pixels = frozenset(() if raw.images is None else pixel_names(raw.images))
    if taken := sorted(pixels & {*roles}):
        raise DataError(
            f"{raw.name}: {shown(taken[0])} is named as {roles[taken[0]]}, and the pixels of an image"
            " belong together: name another column."
        )
    return roles


def find_column(table: str, names: Sequence[str], wanted: Name, *, option: str) -> str:
    """The column called ``wanted``, else the one at that position."""
    if str(wanted) in names and not isinstance(wanted, int):
        return str(wanted)
    try:
        position = int(wanted)
    except ValueError:
        hint = f"; {_POSITIONS[0].lower()}{_POSITIONS[1:-1]}"
        raise DataError(no_column(table, names, wanted, hint)) from None
    if position == 0 or abs(position) > len(names):
        raise DataError(f"{option} {position}: {table} has columns 1 to {len(names)}. {_POSITIONS}")
    return names[position - 1 if position > 0 else position]


def _named(roles: dict[str, str], wanted: str) -> str | None:
    return next((name for name, role in roles.items() if role == wanted), None)


# --------------------------------------------------------------------------------------------------


def _known_targets(raw: Raw, target: str) -> tuple[npt.NDArray[np.bool_], list[Finding]]:
    """Which rows have a target, and the finding about those that have none."""
    values = raw.frame[target].to_numpy()
    if values.dtype.kind == "M":
        raise DataError(
            f"{raw.name}, target {shown(target)} holds dates: a number or a category is needed."
        )
    known = ~pd.isna(values)
    if values.dtype.kind == "f":
        known &= ~np.isinf(values)
    lost = int(np.sum(~known))
    if lost == len(values):
        raise DataError(
            f"{raw.name}, target {shown(target)} has no values: choose another with --target."
        )
    if not lost:
        return known, []
    text = f"{lost:,} of {len(values):,} rows have no target and were removed."
    return known, [Finding(code="SL110", text=text, severity="notice", numbers={"rows": lost})]


def _without_infinities(
    frame: pd.DataFrame, roles: dict[str, str], table: str
) -> tuple[pd.DataFrame, list[Finding]]:
    """Infinite values become missing, with a finding; values too large to compute with are
    refused.
    """
    infinite, changed = {}, {}
    for name in frame.columns:
        values = frame[name].to_numpy()
        if (
            values.dtype.kind != "f"
            or roles.get(name) == "dropped"
            or np.all(np.abs(values) <= LARGEST)
        ):
            continue
        endless = np.isinf(values)
        if np.any(np.abs(values[~endless]) > LARGEST):
            largest = values[~endless][np.nanargmax(np.abs(values[~endless]))]
            said = (
                "rescale it"
                if roles.get(name)
                else "correct it, or leave the column out with --drop"
            )
            raise DataError(
                f"{table}, column {shown(name)} holds {largest:.4g}, too large to compute with:"
                f" {said}."
            )
        if endless.any():
            infinite[name] = int(endless.sum())
            changed[name] = np.where(endless, np.nan, values)
    if not infinite:
        return frame, []
    total = sum(infinite.values())
    text = (
        f"{total:,} infinite value{'s' * (total > 1)} in {listed(list(infinite))} treated as"
        " missing."
    )
    return frame.assign(**changed), [
        Finding(code="SL113", text=text, severity="notice", numbers={"columns": infinite})
    ]


def _describe_all(
    frame: pd.DataFrame, roles: dict[str, str], raw: Raw
) -> tuple[pd.DataFrame, tuple[Column, ...]]:
    """The kind of every column; dates are parsed."""
    table = raw.name
    columns, changed = [], {}
    pixels = frozenset(() if raw.images is None else pixel_names(raw.images))
    for name in frame.columns:
        values = frame[name].to_numpy()
        role: Any = roles.get(name)
        if role in ("target", "group", "dropped"):
            note = "dropped: --drop" if role == "dropped" else ""
            column, typed = Column(name, role, note, *count_values(values)), values
        elif name in pixels and role is None:
            column, typed = Column(name, "number", "", *count_values(values)), values
        elif pixels and role is None:
            column, typed = Column(name, "dropped", _BESIDE, *count_values(values)), values
        else:
            column, typed = describe(name, values)
        if role == "time":
            if typed.dtype.kind not in "iufM":
                raise DataError(
                    f"{table}, --time column {shown(name)} holds neither dates nor numbers: choose"
                    " another."
                )
            column = replace(column, kind="time", note="")
        if role in ("group", "time"):
            _check_role(table, column)
        columns.append(column)
        if typed is not values:
            changed[name] = typed
    if not any(column.used for column in columns):
        raise DataError(
            f"{table} has no usable feature columns: all are dropped, constant or identifiers."
        )
    return (frame.assign(**changed) if changed else frame), tuple(columns)


_BESIDE = "not used: models of images read pixels alone"


def _is_archive(raw: Raw) -> bool:
    return raw.path is not None and raw.path.name.lower().removesuffix(".gz").endswith(".npz")


def _check_role(table: str, column: Column) -> None:
    said = f"{table}, --{column.kind} column {shown(column.name)}"
    if column.missing:
        raise DataError(
            f"{said} has {column.missing:,} missing values: fill them or remove the rows."
        )
    if column.distinct < 2:
        raise DataError(f"{said} has one value: choose another column.")


def _task(table: str, target: str, values: Values, wanted: str | None) -> Task:
    if wanted == "classification":
        return "classification"
    if wanted == "regression":
        if values.dtype.kind not in "iufb":
            raise DataError(
                f"{table}, target {shown(target)} holds words: regression needs numbers; use"
                " classification."
            )
        return "regression"
    return infer_task(values)


def _check_classes(table: Table) -> None:
    distinct = next(column.distinct for column in table.columns if column.kind == "target")
    said, n = f"{table.name}, target {shown(table.target)}", len(table.frame)
    if distinct < 2:
        raise DataError(
            f"{said} has only one value, {shown(table.y[0])}: there is nothing to predict; choose"
            " another."
        )
    if table.task == "classification" and 2 * distinct > n:
        raise DataError(
            f"{said} has {distinct:,} classes in {n:,} rows: too many to learn; choose another"
            " target."
        )


def _feature(series: pd.Series, column: Column) -> pd.Series:
    if column.kind == "number":
        return series.astype(float)
    if column.kind == "date":
        return series
    if series.dtype == object and not isinstance(series[series.first_valid_index()], bool):
        return series
    words = [None if value is None else str(value) for value in series.tolist()]
    return pd.Series(words, index=series.index, dtype=object)


# --------------------------------------------------------------------------------------------------


def hash_rows(frame: pd.DataFrame) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each row's content, the same in every process and wherever the row stands.

    Each value is hashed: text by SipHash under the fixed key "surelearn-rows-1", missing text as a
    fixed token; numbers and truth values by a mix of their 64-bit float, with −0 as 0, one NaN, and
    the remainder of whole numbers that no float holds. So 1, 1.0 and a column that became float
    because a value is missing agree. Column by column, h ← mix((h ⊕ value) · 0x9E3779B97F4A7C15)
    with mix(h) = h ⊕ (h ≫ 32): the order of columns matters.

    Examples
    --------
    >>> frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    >>> bool((hash_rows(frame)[::-1] == hash_rows(frame[::-1])).all())
    True
    """
    hashes = np.full(len(frame), 0x5EED, dtype=np.uint64)
    for i in range(frame.shape[1]):
        hashes ^= _hash_values(frame.iloc[:, i].to_numpy())
        hashes *= np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(32)
    return hashes


def hash_contents(columns: Iterable[Values]) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each row's values, whatever the order of the columns; for
    `surelearn.selection.sketch`.

    Examples
    --------
    >>> one, other = np.array([1, 2, 2]), np.array([2.5, 1.0, 2.0])
    >>> bool((hash_contents([one, other]) == hash_contents([other, one])).all())
    True
    """
    first, *rest = columns
    total = hash_array(_hash_values(np.asarray(first)))
    with np.errstate(over="ignore"):
        for values in rest:
            total = total + hash_array(_hash_values(np.asarray(values)))
    return total


def _hash_values(values: Values) -> npt.NDArray[np.uint64]:
    if values.dtype.kind == "O":
        codes, words = pd.factorize(values)
        if len(words) and isinstance(words[0], bool):
            return _hash_numbers(np.append(words.astype(float), np.nan)[codes])
        text = np.array([*map(str, words), "\0missing"], dtype=object)
        return hash_array(text, hash_key="surelearn-rows-1", categorize=False)[codes]
    if values.dtype.kind == "M":
        return hash_array(values.astype("datetime64[us]").view(np.int64))
    return _hash_numbers(values)


def _hash_numbers(values: Values) -> npt.NDArray[np.uint64]:
    floats = values.astype(float) + 0.0  # −0 + 0 is 0
    bits = np.where(np.isnan(floats), np.nan, floats).view(np.uint64)
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8 and np.any(np.abs(floats) > 2**53):
        bits = bits + (values.view(np.uint64) - _to_unsigned(floats))
    return hash_array(bits)


def _to_unsigned(floats: Values) -> npt.NDArray[np.uint64]:
    """Whole floats as 64-bit integers modulo 2⁶⁴."""
    return np.array([int(value) % 2**64 for value in floats], dtype=np.uint64)
