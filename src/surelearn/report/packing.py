"""Cards in two columns of about the same height, without a script: their heights are estimated
from what they hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from surelearn.report.charts import MOST_ROWS, ROW
from surelearn.report.document import Chart, PageTable, Section
from surelearn.report.rows import PagePart

# Pixels and characters per line of a card in two columns, as `page.css` sets them at a width of 960
# pixels.
_FRAME, _LINE, _SMALL = 70, 25, 21
_TEXT, _NOTE, _TABLE = 52, 62, 58
_PLANE = 218


def two_columns(parts: Sequence[PagePart]) -> tuple[list[PagePart], list[PagePart]]:
    """The parts in two columns, each in the page's order: the tallest first, always to the shorter
    column.

    The column that holds the first part of the page is the left one.
    """
    heights = [height_of(part.section, len(part.proved) + len(part.vacuous)) for part in parts]
    columns: tuple[list[int], list[int]] = ([], [])
    for i in sorted(range(len(parts)), key=lambda i: (-heights[i], i)):
        min(columns, key=lambda column: sum(heights[j] for j in column)).append(i)
    left, right = sorted(columns, key=lambda column: 0 not in column)
    return [parts[i] for i in sorted(left)], [parts[i] for i in sorted(right)]


def height_of(section: Section, proved: int = 0) -> float:
    """About how many pixels a card of the section takes; ``proved`` is how many of its claims
    are shown.
    """
    height = _FRAME + sum(map(_chart, section.charts)) + sum(map(_table, section.tables))
    height += sum(
        _lines(f"{finding.severity}    {finding.text} {finding.code}", _TEXT) * _LINE + 6
        for finding in section.findings
    )
    height += sum(_lines(note, _NOTE) * _SMALL + 6 for note in section.notes)
    height += sum(_lines(claim.label, _TEXT - 20) * _LINE + 6 for claim in section.claims[:proved])
    return height + (_LINE if section.claims else 0)


def _lines(text: str, width: float) -> int:
    return max(1, math.ceil(len(text) / width))


def _chart(chart: Chart) -> float:
    if chart.kind in ("curve", "reliability"):
        return _PLANE
    return 50 + ROW * min(len(chart.data.get("names") or ()), MOST_ROWS)


def _table(table: PageTable) -> float:
    """Cells share the width by their longest text, and wrap."""
    rows = [table.header, *table.rows]
    longest = [max(len(row[i]) for row in rows if i < len(row)) for i in range(len(table.header))]
    room = _TABLE - 3 * len(longest)  # cells have a margin
    widths = [max(6.0, room * size / max(sum(longest), room)) for size in longest]
    wrapped = (
        max((_lines(cell, width) for cell, width in zip(row, widths, strict=False)), default=1)
        for row in rows
    )
    return 12 + sum(11 + 22 * lines for lines in wrapped)
