"""Cards in two columns of about the same height, without a script: their heights are estimated
from what they hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from surelearn.report.charts import MOST_ROWS, row_height
from surelearn.report.document import Chart, PageTable, Section
from surelearn.report.rows import PagePart

# Pixels and characters per line of a card in two columns, as `page.css` sets them at a width of 960
# pixels.
_FRAME, _LINE, _SMALL = 58, 25, 21
_TEXT, _NOTE, _CAPTION, _TABLE = 48, 58, 60, 56
_PLANE = 206


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
    height += sum(_lines(claim.label, _TEXT - 16) * _LINE + 6 for claim in section.claims[:proved])
    return height + (_LINE if section.claims else 0)


def _lines(text: str, width: float) -> int:
    return max(1, math.ceil(len(text) / width))


def _chart(chart: Chart) -> float:
    caption = 8 + 19 * _lines(chart.title, _CAPTION)
    if chart.kind in ("curve", "reliability"):
        return caption + _PLANE
    if chart.kind == "pictures":
        count = len(chart.data.get("names") or ())
        return caption + (
            70 * math.ceil(count / 7) if chart.data.get("small") else 120 * math.ceil(count / 5)
        )
    if chart.kind == "columns":
        return caption + 45 * len(chart.data.get("names") or ())
    names = [str(name) for name in chart.data.get("names") or ()]
    return caption + 50 + row_height(chart.kind, names) * min(len(names), MOST_ROWS)


def _table(table: PageTable) -> float:
    """Cells wrap: beyond its longest word each column has a part of what is left, by its longest
    text, as browsers divide it.
    """
    rows = [table.header, *table.rows]
    columns = [[row[i] for row in rows if i < len(row)] for i in range(len(table.header))]
    longest = [max(map(len, column)) for column in columns]
    least = [max(max(map(len, cell.split()), default=0) for cell in column) for column in columns]
    room = _TABLE - 2.7 * (len(columns) - 1)  # cells have a margin
    more = max(room - sum(least), 0.0) / max(sum(longest) - sum(least), 1)
    widths = [
        max(low + min(more, 1.0) * (high - low), 1.0)
        for low, high in zip(least, longest, strict=True)
    ]
    wrapped = (
        max((_lines(cell, width) for cell, width in zip(row, widths, strict=False)), default=1)
        for row in rows
    )
    return 12 + sum(11 + 22 * lines for lines in wrapped)
