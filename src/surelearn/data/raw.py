"""A table as read, and what its names and width must be."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from surelearn.claim import Finding
from surelearn.data.columns import DataError, Values, listed
from surelearn.types import ImageShape

MAX_COLUMNS = 5_000


@dataclass(frozen=True)
class Raw:
    """A table as read, before anything is decided about its columns.

    ``frame`` has one typed column per column of the source: numbers, truth values, dates, or text
    with None for missing. ``images`` is the shape of images whose pixels are columns, and ``files``
    where each of them came from, if every one is a file.
    """

    name: str
    path: Path | None
    frame: pd.DataFrame
    target: str | None = None
    findings: tuple[Finding, ...] = ()
    images: ImageShape | None = None
    files: tuple[str, ...] = ()


def make_frame(names: list[str], columns: list[Values]) -> pd.DataFrame:
    """A frame of columns whose names may repeat until they are checked."""
    made = {i: pd.Series(values, dtype=values.dtype) for i, values in enumerate(columns)}
    return pd.DataFrame(made).set_axis(names, axis=1)


def check_names(name: str, names: list[str]) -> None:
    """Refuse names that stand twice."""
    twice = [label for label, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(
            f"{name} has more than one column called {listed(twice)}: rename them, or pass"
            " --no-header."
        )


def check_width(name: str, width: int) -> None:
    """Refuse a table that is too wide to be studied column by column."""
    if width > MAX_COLUMNS:
        raise DataError(
            f"{name} has {width:,} columns, more than {MAX_COLUMNS:,}: select fewer features first."
        )
