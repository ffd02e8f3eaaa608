"""Which rows of a table do what, checked before anything is fitted; nothing here looks at a
certify row's target.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from surelearn.auditing.options import Options
from surelearn.certification import check_largest_group
from surelearn.claim import Finding
from surelearn.data import Table, read_table
from surelearn.data.oddities import find_oddities, giveaways
from surelearn.selection.cross_validation import default_resampling
from surelearn.selection.ledger import secret_salt
from surelearn.selection.split import Indices, Split, split_rows
from surelearn.types import HasShape

LEAST_GROUPS = 10
# from so many images on candidates are compared on this part of them
IMAGES_COMPARED_ONCE, SELECTED_IMAGES = 2000, 0.1

# a file, a built-in set by its name, a DataFrame, or a table that was read already
DataSource: TypeAlias = str | Path | HasShape | Table


@dataclass(frozen=True, eq=False)
class Divided:
    """A table whose rows have their purposes.

    Attributes
    ----------
    options : in the table's own labels
    used : columns that can be used
    suspects : columns that give the target away on the rows to fit on, and that nobody vouches for
    """

    table: Table
    split: Split
    options: Options
    used: list[str]
    suspects: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        """The columns that are used, without the suspects."""
        return [name for name in self.used if name not in self.suspects]

    @property
    def train(self) -> Indices:
        """The rows to fit on and to select by."""
        return np.union1d(self.split.fit, self.split.select)

    def oddities(self) -> list[Finding]:
        """What is odd about the rows to fit on; of certify rows nothing is said."""
        table, train = self.table, self.train
        hashes, grouped = table.row_hashes[train], table.group is not None
        return find_oddities(
            table.frame.iloc[train],
            table.studied,
            table.y[train],
            table.task,
            hashes,
            grouped=grouped,
        )

    def line(self) -> str:
        """Which rows do what, in one line."""
        split, table, criterion = self.split, self.table, self.options.criterion
        how = (
            f"select {split.select.size:,}"
            if split.select.size
            else f"select by {default_resampling(split.fit.size)}"
        )
        if split.order == "time" and not split.select.size:
            how = "select by forward chaining"
        if criterion not in (None, "cross-validation", "holdout"):
            how = f"select by {criterion}"
        held = "the last ones" if split.order == "time" else "held back"
        groups = (
            ""
            if table.groups is None
            else f" ({np.unique(split.keys[split.certify]).size:,} {table.group}s)"
        )
        return f"fit {split.fit.size:,} · {how} · certify {split.certify.size:,}{groups} ({held})"


def as_table(source: DataSource | None, **reading: Any) -> Table:
    """The table, read as `surelearn.data.read_table` does, unless it was read already."""
    if not isinstance(source, Table):
        return read_table(source, **reading)
    if given := [name for name, value in reading.items() if value not in (None, ())]:
        raise ValueError(f"{given[0]} says how to read a table, and this one was read already")
    return source


def divide(table: Table, keep: Sequence[str], options: Options) -> Divided:
    """Give the rows of a table their purposes, and refuse what cannot be audited."""
    options = _with_select_rows(table, options)
    split = split_rows(
        table.row_hashes,
        groups=table.groups,
        time=None if table.time is None else table.frame[table.time].to_numpy(),
        certify=options.certify_fraction,
        select=options.select_fraction,
        salt=secret_salt() if options.coins else None,
    )
    if not split.certify.size:
        raise ValueError(
            f"{table.name}: no row is held back to certify on: more rows, or a larger --certify,"
            " are needed"
        )
    used = [column.name for column in table.columns if column.used]
    train = np.union1d(split.fit, split.select)
    options = _in_labels_of(table, train, options)
    _check(table, used, keep, options)
    grouped = table.group is not None
    told = giveaways(
        table.frame.iloc[train], table.studied, table.y[train], table.task, grouped=grouped
    )
    suspects = tuple(name for name in told if name not in keep)
    if set(suspects) == set(used):
        raise ValueError(
            f"{table.name}: every usable column repeats {table.target!r}; pass --keep {suspects[0]}"
            " if it is meant"
        )
    return Divided(table, split, options, used, suspects)


def _with_select_rows(table: Table, options: Options) -> Options:
    """Networks are not fitted five times to be compared, where images are many."""
    many = table.images is not None and len(table.y) >= IMAGES_COMPARED_ONCE
    if not many or options.select_fraction is not None or options.criterion is not None:
        return options
    return replace(options, select_fraction=SELECTED_IMAGES)


def _in_labels_of(table: Table, train: Indices, options: Options) -> Options:
    """Options in the labels of the rows to fit on: ``--positive 1`` means the label 1."""
    if options.positive is None:
        return options
    if table.task != "classification":
        raise ValueError(
            f"--positive names a class, but {table.target!r} is a number; use --task classification"
            " for classes"
        )
    labels = np.unique(table.y[train]).tolist()
    same = [label for label in labels if str(label) == str(options.positive)]
    if not same:
        known = ", ".join(map(str, labels[:8]))
        raise ValueError(
            f"{table.name} has no class {str(options.positive)!r} in column {table.target!r} of the"
            f" rows to fit on: it has {known}"
        )
    return replace(options, positive=same[0])


def _check(table: Table, used: list[str], keep: Sequence[str], options: Options) -> None:
    for name in keep:
        if name not in table.frame.columns:
            raise ValueError(f"{table.name} has no column {name!r} to keep")
    for name in options.slices:
        if name not in used:
            near = difflib.get_close_matches(name, used, n=3) or used[:8]
            raise ValueError(
                f"{table.name} has no usable column {name!r} to slice by: it has"
                f" {', '.join(map(repr, near))}"
            )
    if table.groups is not None and (groups := np.unique(table.groups).size) < LEAST_GROUPS:
        raise ValueError(
            f"{table.name} has {groups} groups in column {table.group!r}: at least {LEAST_GROUPS}"
            " are needed"
        )
    check_largest_group(options.largest_group, table.groups, f"{table.name}: --largest-group")
