"""Which columns of a table a model reads, and in which order: those that it names, all that hold
numbers, or those of the schema that it was saved with.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pandas as pd
import pyarrow as pa

from surelearn.data.columns import DataError, listed, shown
from surelearn.data.schema import Notes, Schema

# how libraries call columns whose names they were not told
_NO_NAMES = (r"Column_{}", r"f{}", r"{}", r"x{}", r"feature_{}")
_FROM = (0, 1)


class Reads(Protocol):
    """How the rows that a model reads are taken from a table.

    Attributes
    ----------
    named : whether columns are found by their names, not by their order
    """

    @property
    def named(self) -> bool:
        """Whether columns are found by their names, not by their order."""
        ...

    def rows(self, frame: pd.DataFrame, table: str, model: str) -> pd.DataFrame:
        """The model's columns, in its order.

        Parameters
        ----------
        frame : the columns that the model may read, in the table's order
        table, model : what the two are called in a refusal
        """
        ...


@dataclass(frozen=True)
class NumberColumns:
    """All columns that hold numbers, in the table's order; ``count`` of them, where that is known."""

    count: int | None = None
    named: bool = False

    def rows(self, frame: pd.DataFrame, table: str, model: str) -> pd.DataFrame:
        """The columns of numbers and truth values."""
        names = [str(name) for name in frame.columns if _is_number(frame[name])]
        if not names or (self.count is not None and self.count != len(names)):
            wanted = "columns" if self.count is None else f"{self.count:,} columns"
            has = listed(names, 8) if names else "none"
            raise DataError(
                f"{model} reads {wanted} of numbers without names, and {table} has {len(names):,}"
                f" beside the target: {has}. Leave out with --drop what the model does not read."
            )
        return frame[names].astype(float)


@dataclass(frozen=True)
class NamedColumns:
    """The columns of these names.

    Attributes
    ----------
    names : in the model's order
    words : those that may hold words; None: all
    spaces : whether the library writes "_" for a space in a name
    """

    names: tuple[str, ...]
    words: frozenset[str] | None = frozenset()
    spaces: bool = False
    named: bool = True

    def rows(self, frame: pd.DataFrame, table: str, model: str) -> pd.DataFrame:
        """The columns, numbers as numbers."""
        there = [str(name) for name in frame.columns]
        written = {name.replace(" ", "_") if self.spaces else name: name for name in there}
        found = {name: name if name in there else written.get(name, "") for name in self.names}
        _check_there(found, there, table, model)
        made: dict[str, pd.Series] = {}
        for name, column in found.items():
            values = frame[column]
            if _is_number(values):
                made[name] = values if self.words is None else values.astype(float)
            elif self.words is not None and name not in self.words:
                kind = "dates" if values.dtype.kind == "M" else "words"
                raise DataError(
                    f"{table}, column {shown(column)} holds {kind}, which {model} cannot read: a"
                    " model in this format reads numbers only; write the column as the numbers that"
                    " it was fitted on, or save the whole pipeline with surelearn.save."
                )
            else:
                made[name] = values
        return pd.DataFrame(made, columns=list(self.names))


@dataclass(frozen=True)
class SchemaColumns:
    """The columns of the table that the model was fitted on, read as they were read then."""

    schema: Schema
    notes: Notes = field(default_factory=Notes)
    named: bool = True

    def rows(self, frame: pd.DataFrame, table: str, model: str) -> pd.DataFrame:
        """As `surelearn predict` reads them."""
        names = [feature.name for feature in self.schema.features]
        there = [str(name) for name in frame.columns]
        _check_there({name: name if name in there else "" for name in names}, there, table, model)
        taken = pa.Table.from_pandas(frame[names], preserve_index=False)
        return self.schema.conform(taken, table, self.notes)


def by_names(
    names: Sequence[str] | None,
    count: int | None,
    *,
    words: frozenset[str] | None = frozenset(),
    spaces: bool = False,
) -> Reads:
    """Columns by name, or by their order where a library made the names up."""
    if names is None or _made_up(names):
        return NumberColumns(count if names is None else len(names))
    return NamedColumns(tuple(names), words, spaces)


def _made_up(names: Sequence[str]) -> bool:
    return any(
        list(names) == [form.format(i + start) for i in range(len(names))]
        for form in _NO_NAMES
        for start in _FROM
    )


def _check_there(found: dict[str, str], there: Sequence[str], table: str, model: str) -> None:
    """One sentence about the columns that are missing."""
    missing = [name for name, column in found.items() if not column]
    if not missing:
        return
    near = difflib.get_close_matches(missing[0], there, n=1, cutoff=0.6)
    hint = (
        f" Did you mean {shown(near[0])}? Then rename it."
        if near
        else f" It has {listed(there, 8)}."
    )
    raise DataError(f"{table} has no column {listed(missing)}, which {model} reads.{hint}")


def _is_number(values: pd.Series) -> bool:
    return isinstance(values.dtype, np.dtype) and values.dtype.kind in "iufb"


def plain_name(text: str) -> str:
    """A name as a file's own, without folders and what would move a cursor."""
    return re.sub(r"[^\w.\-+ :/]", "?", text)[:80]
