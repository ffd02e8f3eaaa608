"""What a model reads: names, kinds and forms of its columns, so that a new file is read as the
audited one was.

Nothing is inferred from new rows: a chunk of a column that happens to hold only digits is still a
category if it was one.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute

from surelearn.data.columns import LARGEST, MISSING, DataError, Values, listed, shown
from surelearn.data.pixels import check_same, pixel_names
from surelearn.data.raw import MAX_COLUMNS
from surelearn.data.reach import far_outside, reach
from surelearn.data.table import Table
from surelearn.documents import checked, reading
from surelearn.subject import Task
from surelearn.types import ImageShape

pc: Any = pyarrow.compute
MOST_NAMED = 100  # unseen values that are remembered by name, a column
MOST_TOLD = 5  # columns that lie far outside


@dataclass(frozen=True)
class Feature:
    """A column that a model reads.

    Attributes
    ----------
    name, kind : as in `Column`
    form : of dates the format; "truth" for truth values
    known : of a category the values that the model was fitted on
    reach : of a number, beyond which two values one lies far outside those that the model was fitted
        on (`surelearn.data.reach`); None: too few to say, or a model of surelearn up to 0.2
    """

    name: str
    kind: str
    form: str = ""
    known: tuple[str, ...] = ()
    reach: tuple[float, float] | None = None


@dataclass(frozen=True)
class Schema:
    """The columns a model reads, and what else its table had.

    Attributes
    ----------
    features : in the model's order
    target, task, group : the column it predicts, how, and the one that says which rows belong
        together
    labels : how targets are written: as a "number", as labels that are "whole" or "decimal"
        numbers, "truth" values, "words"
    names : all columns of the table, in its order
    header : whether its file named them
    images : height, width and channels of images, whose pixels are the features; None for other rows
    """

    features: tuple[Feature, ...]
    target: str
    task: Task
    labels: str
    group: str | None
    names: tuple[str, ...]
    header: bool
    images: ImageShape | None = None

    @classmethod
    def of(cls, table: Table, columns: Sequence[str], rows: npt.NDArray[np.intp]) -> Schema:
        """The schema of a model that was fitted on these columns and rows of a table."""
        described = {column.name: column for column in table.columns}
        features = []
        for name in columns:
            column = described[name]
            truth = column.kind == "category" and _holds_truth(table.frame[name].to_numpy())
            known = (
                table.X[name].iloc[rows].dropna().unique().tolist()
                if column.kind == "category"
                else []
            )
            form = "truth" if truth else column.form
            # an edge that is black in every image is left by any speck
            measured = column.kind == "number" and table.images is None
            width = reach(table.X[name].iloc[rows]) if measured else None
            features.append(Feature(name, column.kind, form, tuple(sorted(map(str, known))), width))
        numeric = table.frame[table.target].to_numpy().dtype.kind in "iuf"
        kind = {"i": "whole", "b": "truth", "f": "number"}.get(
            table.y.dtype.kind, "decimal" if numeric else "words"
        )
        names = tuple(map(str, table.frame.columns))
        header = bool(table.reading.get("header", True))
        return cls(
            tuple(features),
            table.target,
            table.task,
            kind,
            table.group,
            names,
            header,
            table.images,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        plain = asdict(self)
        if self.images is None:
            del plain["images"]
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Schema:
        """Read what `to_dict` wrote."""
        with reading("the list of the model's columns"):
            features = tuple(
                checked(
                    Feature(
                        f["name"], f["kind"], f["form"], tuple(f["known"]), _pair(f.get("reach"))
                    )
                )
                for f in plain["features"]
            )
            if unknown := {feature.kind for feature in features} - set(_READERS):
                raise ValueError(f"no column of a model is of the kind {min(unknown)!r:.60}")
            rest = {name: plain[name] for name in ("target", "task", "labels", "group", "header")}
            images = _shape(plain.get("images"), {feature.name for feature in features})
            names = tuple(plain["names"])
            return checked(cls(features=features, names=names, images=images, **rest))

    def outside(self, rows: pd.DataFrame, notes: Notes) -> npt.NDArray[np.object_] | None:
        """For each row, as `conform` made it, the names of the columns in which it lies far outside
        the rows that the model was fitted on; None where the model does not tell.
        """
        reaches = {f.name: f.reach for f in self.features if f.reach is not None}
        known = {f.name: frozenset(f.known) for f in self.features if f.kind == "category"}
        if not reaches and not known:
            return None
        names, counts = far_outside(rows, reaches, known)
        for name, count in counts.items():
            notes.outside[name] += count
        return names

    def names_for(self, width: int, name: str) -> tuple[str, ...]:
        """Names for the columns of a file that has none; the target may be left out of it."""
        if width == len(self.names):
            return self.names
        if width == len(self.names) - 1:
            return tuple(label for label in self.names if label != self.target)
        raise DataError(
            f"{name} has {width} columns and no header, but the model's table had"
            f" {len(self.names)}."
        )

    def check(self, name: str, columns: Sequence[str], images: ImageShape | None = None) -> None:
        """Refuse a table in which a column is missing, or whose rows are not such images."""
        if self.images is not None:
            check_same(name, images, self.images)
        missing = [feature.name for feature in self.features if feature.name not in columns]
        if not missing:
            return
        near = difflib.get_close_matches(missing[0], columns, n=1, cutoff=0.7)
        said = (
            f" Did you mean {shown(near[0])}?"
            if near and len(missing) == 1
            else " Add them, or name them as they were."
        )
        raise DataError(f"{name} has no column {listed(missing)}, which the model reads.{said}")

    def conform(
        self, table: pa.Table, name: str, notes: Notes, *, decimal: str = "."
    ) -> pd.DataFrame:
        """The model's columns of a table of text or typed columns, as the audit would have read
        them.
        """
        made = {}
        for feature in self.features:
            try:
                values = _READERS[feature.kind](table.column(feature.name), feature, notes, decimal)
            except DataError as error:
                raise DataError(f"{name}, {error}") from None
            except (pa.ArrowException, TypeError) as error:
                said = f"cannot be read as a {feature.kind}: {str(error).splitlines()[0]}"
                raise DataError(f"{name}, column {shown(feature.name)} {said}.") from None
            # else pandas makes NaN of None
            made[feature.name] = pd.Series(values, dtype=values.dtype)
        notes.rows += table.num_rows
        return pd.DataFrame(made, columns=[feature.name for feature in self.features])

    def targets(self, column: pa.Array | pa.ChunkedArray, *, decimal: str = ".") -> Values:
        """Targets of new rows, as the audit would have read them, with None or NaN where there
        is none.
        """
        return read_labels(column, self.labels, decimal=decimal)


@dataclass
class Notes:
    """What was odd about new rows, counted while they are read."""

    rows: int = 0
    extra: tuple[str, ...] = ()
    unseen: dict[str, Counter[str]] = field(default_factory=dict)
    unread: dict[str, Counter[str]] = field(default_factory=dict)
    infinite: Counter[str] = field(default_factory=Counter)
    outside: Counter[str] = field(default_factory=Counter)

    def lines(self) -> Iterator[str]:
        """For people, one oddity a line."""
        if self.extra:
            yield f"not read by the model: {listed(self.extra, 8)}"
        for column, counts in self.unseen.items():
            total = sum(counts.values())
            yield (
                f"{shown(column)} has values it had not when the model was fitted, in {total:,}"
                f" rows: {_most(counts)}"
            )
        for column, counts in self.unread.items():
            total = sum(counts.values())
            yield (
                f"{shown(column)} cannot be read in {total:,} rows, taken as missing:"
                f" {_most(counts)}"
            )
        for column, count in self.infinite.items():
            yield f"{shown(column)} is infinite in {count:,} rows, taken as missing"
        if self.outside:
            told = [
                f"{shown(column)} ({count:,} {'row' if count == 1 else 'rows'})"
                for column, count in self.outside.most_common(MOST_TOLD)
            ]
            if (more := len(self.outside) - MOST_TOLD) > 0:
                told.append(f"{more:,} more")
            yield (
                f"far outside the rows that the model was fitted on (column `outside`): {', '.join(told)};"
                " what is certified is about rows like those it was audited on"
            )


def _pair(ends: Any) -> tuple[float, float] | None:
    """Two finite numbers, the lower one first, or nothing."""
    if ends is None:
        return None
    low, high = map(float, ends)
    if not low <= high or not np.isfinite([low, high]).all():
        raise ValueError(f"{ends!r:.60} are no ends of a column")
    return low, high


def _shape(told: Any, names: set[str]) -> ImageShape | None:
    """Height, width and channels, which have the names of the columns."""
    if told is None:
        return None
    height, width, channels = map(int, told)
    if (
        height * width * channels > MAX_COLUMNS
        or {*pixel_names((height, width, channels))} != names
    ):
        raise ValueError(f"images of shape {told!r:.60} do not have the model's columns")
    return height, width, channels


def _most(counts: Counter[str]) -> str:
    return listed([value for value, _ in counts.most_common(MOST_NAMED)])


def _count(into: dict[str, Counter[str]], name: str, values: Iterable[str]) -> None:
    """Count values by name; when there are too many names, what is new shares one."""
    counter = into.setdefault(name, Counter())
    for value, count in Counter(values).items():
        counter[value if value in counter or len(counter) < MOST_NAMED else "…"] += count


# --------------------------------------------------------------------------------------------------


def _holds_truth(values: Values) -> bool:
    return values.dtype.kind == "b" or any(
        isinstance(value, bool) for value in values[:1000].tolist()
    )


def _is_text(column: pa.Array) -> bool:
    return (
        pa.types.is_string(column.type)
        or pa.types.is_large_string(column.type)
        or pa.types.is_string_view(column.type)
    )


def trimmed(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Text without spaces around it, missing where it says so."""
    text = pc.utf8_trim_whitespace(pc.cast(column, pa.large_string()))
    text = pc.if_else(pc.is_in(text, value_set=pa.array(MISSING, pa.large_string())), None, text)
    return text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array, dictionaries decoded."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _number(
    column: pa.Array | pa.ChunkedArray, feature: Feature, notes: Notes, decimal: str
) -> Values:
    column = _plain(column)
    values = (
        _text_numbers(trimmed(column), feature.name, notes, decimal)
        if _is_text(column)
        else _floats(column)
    )
    if np.all(np.abs(values) <= LARGEST):
        return values
    endless = np.isinf(values)
    if np.any(np.abs(values[~endless]) > LARGEST):
        largest = values[~endless][np.nanargmax(np.abs(values[~endless]))]
        raise DataError(
            f"column {shown(feature.name)} holds {largest:.4g}, too large to compute with:"
            " correct it."
        )
    if endless.any():
        notes.infinite[feature.name] += int(endless.sum())
    return np.where(endless, np.nan, values)


def _floats(column: pa.Array) -> Values:
    if pa.types.is_temporal(column.type) or pa.types.is_nested(column.type):
        raise TypeError(f"it holds {column.type}")
    values = pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=float)


_NUMBER = r"^[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|(?i:inf|infinity))$"
_THOUSANDS = r"^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$"


def _text_numbers(text: pa.Array, name: str, notes: Notes, decimal: str) -> Values:
    try:
        return np.array(pc.cast(text, pa.float64()).to_numpy(zero_copy_only=False), dtype=float)
    except pa.ArrowInvalid:
        pass
    if decimal == ",":
        text = pc.replace_substring(text, ",", ".")
    else:
        text = pc.if_else(
            pc.match_substring_regex(text, _THOUSANDS), pc.replace_substring(text, ",", ""), text
        )
    text = pc.if_else(pc.starts_with(text, "+"), pc.utf8_slice_codeunits(text, 1), text)
    readable = pc.match_substring_regex(text, _NUMBER)
    unread = text.filter(pc.invert(readable).fill_null(False))
    if len(unread):
        _count(notes.unread, name, unread.to_pylist())
    numbers = pc.cast(pc.if_else(readable, text, None), pa.float64())
    return np.array(numbers.to_numpy(zero_copy_only=False), dtype=float)


def _words(
    column: pa.Array | pa.ChunkedArray,
    feature: Feature,
    notes: Notes,
    decimal: str,  # noqa: ARG001
) -> Values:
    column = _plain(column)
    encoded = trimmed(_as_text(column)).dictionary_encode()
    known = [
        _truth(word) if feature.form == "truth" else word for word in encoded.dictionary.to_pylist()
    ]
    values = np.array([*known, None], dtype=object)[
        encoded.indices.fill_null(len(known)).to_numpy()
    ]
    if feature.kind == "category":
        strange = set(known) - set(feature.known)
        if strange:
            _count(
                notes.unseen, feature.name, [value for value in values.tolist() if value in strange]
            )
    return values


def _truth(word: str) -> str:
    return word.capitalize() if word.lower() in ("true", "false") else word


def _as_text(column: pa.Array) -> pa.Array:
    if pa.types.is_floating(column.type):  # 1.0 stands for 1 beside missing values
        values = column.to_numpy(zero_copy_only=False)
        words = [
            None if v != v else str(int(v)) if v == round(v) else repr(v) for v in values.tolist()
        ]
        return pa.array(words, pa.large_string())
    if pa.types.is_boolean(column.type):
        return pc.if_else(column, "True", "False")
    return column


def _dates(
    column: pa.Array | pa.ChunkedArray,
    feature: Feature,
    notes: Notes,
    decimal: str,  # noqa: ARG001
) -> Values:
    column = _plain(column)
    if not _is_text(column):
        if not (
            pa.types.is_timestamp(column.type)
            or pa.types.is_date(column.type)
            or pa.types.is_null(column.type)
        ):
            raise TypeError(f"it holds {column.type}")
        return (
            pc.cast(column, pa.timestamp("us"), safe=False)
            .to_numpy(zero_copy_only=False)
            .astype("datetime64[us]")
        )
    text = trimmed(column)
    words = pd.Series(text.to_pylist(), dtype=object)
    dates: Any = pd.to_datetime(words, format=feature.form or "ISO8601", errors="coerce", utc=True)
    bad = words[dates.isna() & words.notna()]
    if len(bad):
        _count(notes.unread, feature.name, bad.tolist())
    return dates.dt.tz_localize(None).to_numpy(dtype="datetime64[us]")


_READERS = {"number": _number, "category": _words, "text": _words, "date": _dates}


def read_labels(column: pa.Array | pa.ChunkedArray, kind: str, *, decimal: str = ".") -> Values:
    """Targets of new rows, written as `Schema.labels` says; None or NaN where there is none."""
    column = _plain(column)
    if kind == "number":
        return _number(column, Feature("the target", "number"), Notes(), decimal)
    words = trimmed(_as_text(column)).to_pylist()
    read = {"whole": _whole, "decimal": _decimal, "truth": _truth_value}.get(
        kind, lambda word: word
    )
    return np.array([None if word is None else read(word) for word in words], dtype=object)


def _whole(word: str) -> Any:
    try:
        return (
            int(word)
            if word.lstrip("+-").isdigit()
            else int(float(word))
            if float(word).is_integer()
            else word
        )
    except (ValueError, OverflowError):
        return word


def _decimal(word: str) -> str:
    try:
        return str(float(word))
    except ValueError:
        return word


def _truth_value(word: str) -> Any:
    return {"true": True, "false": False}.get(word.lower(), word)
