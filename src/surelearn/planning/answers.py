"""The answer: rows, a table, curves."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from surelearn.plain import show
from surelearn.planning.tables import Allotment


@dataclass(frozen=True, kw_only=True)
class Need:
    """One answer: as which claim, at which δ, how many held-back rows, and the power that they
    have.
    """

    label: str
    delta: float
    rows: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A value for each number of held-back rows."""

    label: str
    rows: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How many rows a question needs.

    Attributes
    ----------
    question : in words
    needs : the answers, that of an audit's page first
    header, table : rows, what they allow, and the value of the first curve there
    measure, goal : what the curves show, and the level that they should reach
    notes : what was computed, and under which assumption
    allotment : what an audit makes of a stated number of rows
    """

    question: str
    needs: tuple[Need, ...]
    header: tuple[str, ...]
    table: tuple[tuple[float, ...], ...]
    measure: str
    goal: float
    notes: tuple[str, ...]
    allotment: Allotment | None = None
    asked: Any = field(repr=False)

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        """One for each answer; computed when they are first looked at."""
        curves = []
        for need in self.needs:
            n = self.asked.points(need.rows, self.rows)
            values = self.asked.values(n, need.delta)
            curves.append(
                Curve(label=need.label, rows=tuple(map(int, n)), values=tuple(map(float, values)))
            )
        return tuple(curves)

    @property
    def rows(self) -> int:
        """The first answer: held-back rows for an audit's page."""
        return self.needs[0].rows

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def _lines(self) -> Iterator[str]:
        yield f"{self.question}, hold back"
        labels, counts = (
            max(len(need.label) for need in self.needs),
            max(len(f"{need.rows:,}") for need in self.needs),
        )
        for need in self.needs:
            yield f"  {need.label:<{labels}}   {need.rows:>{counts},} {need.text}"
        yield ""
        cells = [
            [f"{value:,.0f}" if value >= 0 else "–" for value in row[:-1]] for row in self.table
        ]
        widths = [max(map(len, column)) for column in zip(self.header[:-1], *cells, strict=True)]
        heads = "   ".join(
            f"{name:>{width}}" for name, width in zip(self.header[:-1], widths, strict=True)
        )
        yield f"  {heads}   {self.header[-1]}"
        for texts, row in zip(cells, self.table, strict=True):
            numbers = "   ".join(
                f"{text:>{width}}" for text, width in zip(texts, widths, strict=True)
            )
            yield f"  {numbers}   {bar(row[-1])} {show(row[-1], 'rate', '>='):>6}"
        if self.allotment is not None:
            yield from ("", *str(self.allotment).split("\n"))
        yield from ("", *self.notes)


def bar(value: float, cells: int = 20) -> str:
    """A bar of so many characters, to an eighth of one."""
    eighths = math.floor(value * cells * 8 + 1e-9)
    return ("█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8]).ljust(cells)[:cells]
