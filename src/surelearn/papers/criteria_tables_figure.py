"""The figure of the documentation: ``python -m surelearn.papers.criteria_tables_figure
results.json figure.svg``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from surelearn.papers.criteria_tables import EVERY
from surelearn.papers.criteria_tables_families import FAMILIES
from surelearn.papers.criteria_tables_judging import CRITERIA
from surelearn.papers.criteria_tables_words import signed
from surelearn.report.axes import Axis
from surelearn.report.drawing import element, written

LEFT, PANEL, GAP, TOP, ROW, LANE = 150, 112, 24, 62, 42, 11
LOW, HIGH = -2.0, 4.0
COLORS = ("#1d5fd0", "#c2570c", "#0b7a5b")
STYLE = (
    "text{font:12px"
    " system-ui,sans-serif;fill:#222}.tick{font-size:10px;fill:#555}.head{font-weight:600}"
    ".rule{stroke:#ddd}.zero{stroke:#777}.interval{stroke-width:1.6}"
)

Summary = Mapping[str, Mapping[str, Mapping[str, Any]]]


def figure(summary: Summary) -> str:
    """Mean differences to the reference with Student's intervals over tables: criteria down, n
    across, a color per family.

    A filled mark is a settled difference, a bare mark has too few tables for an interval; what lies
    beyond the axis is written at its edge.
    """
    sizes = list(dict.fromkeys(at for by_n in summary.values() for at in by_n if at != EVERY))
    names = [
        name for name in CRITERIA if any(name in _shown(summary, family) for family in summary)
    ]
    width, height = LEFT + len(sizes) * (PANEL + GAP), TOP + ROW * len(names) + 44
    parts = [
        element("style", Markup(STYLE)),  # noqa: S704
        element("rect", width=width, height=height, fill="#fff"),
    ]
    parts += _legend(list(summary))
    for i, name in enumerate(names):
        parts.append(
            element("text", name, x=LEFT - 12, y=TOP + ROW * i + ROW / 2 + 4, text_anchor="end")
        )
    for j, size in enumerate(sizes):
        start = LEFT + j * (PANEL + GAP)
        parts += _panel(summary, size, names, Axis(LOW, HIGH, start, start + PANEL))
    middle = (LEFT + width) / 2
    words = "points of test error above the best by cross-validation (right is worse)"
    parts.append(element("text", words, x=middle, y=height - 8, text_anchor="middle"))
    box = f"0 0 {width} {height}"
    return str(element("svg", element("title", "Criteria on real tables"), *parts, xmlns="http://www.w3.org/2000/svg",
                       viewBox=box, width=width, height=height)) + "\n"  # fmt: skip


def _shown(summary: Summary, family: str) -> set[str]:
    """Criteria with a difference to show: all but the family's reference."""
    return {name for at in summary[family].values() for name in at} - {FAMILIES[family].reference}


def _legend(families: Sequence[str]) -> list[Markup]:
    parts, x = [], 16.0
    for family, color in zip(families, COLORS, strict=False):
        parts.append(_mark(x, 18, color, families.index(family), True))
        parts.append(element("text", family, x=x + 10, y=22))
        x += 34 + 6.6 * len(family)
    return parts


def _panel(summary: Summary, size: str, names: Sequence[str], axis: Axis) -> list[Markup]:
    bottom = TOP + ROW * len(names)
    parts = [
        element(
            "text",
            size,
            class_="head",
            x=(axis.start + axis.end) / 2,
            y=TOP - 14,
            text_anchor="middle",
        )
    ]
    for tick in (-2, 0, 2, 4):
        x = axis.at(tick)
        parts.append(
            element("line", class_="rule" if tick else "zero", x1=x, x2=x, y1=TOP - 6, y2=bottom)
        )
        label = f"{tick:+d}".replace("-", "−") if tick else "0"
        parts.append(
            element("text", label, class_="tick", x=x, y=bottom + 14, text_anchor="middle")
        )
    for i, name in enumerate(names):
        for k, (family, by_n) in enumerate(summary.items()):
            if name in _shown(summary, family) and name in by_n.get(size, {}):
                y = TOP + ROW * i + ROW / 2 + (k - (len(summary) - 1) / 2) * LANE
                parts.append(_difference(name, by_n[size][name]["difference"], k, y, axis))
    return parts


def _difference(name: str, difference: Mapping[str, Any], k: int, y: float, axis: Axis) -> Markup:
    mean, ends, color = difference["mean"], difference["student"], COLORS[k]
    tip = f"{name}: {signed(mean)}" + (f", {signed(ends[0])} to {signed(ends[1])}" if ends else "")
    marks = [element("title", tip)]
    if mean > axis.high:
        text = f"{signed(mean)}{' *' if difference['settled'] else ''} ›"
        marks.append(
            element(
                "text",
                text,
                class_="tick",
                x=axis.end,
                y=y + 3,
                text_anchor="end",
                style=f"fill:{color}",
            )
        )
        return element("g", *marks)
    if ends:
        x1, x2 = axis.at(ends[0]), axis.at(ends[1])
        marks.append(element("line", class_="interval", stroke=color, x1=x1, x2=x2, y1=y, y2=y))
    marks.append(_mark(axis.at(mean), y, color, k, difference["settled"]))
    return element("g", *marks)


def _mark(x: float, y: float, color: str, k: int, filled: bool) -> Markup:
    """A circle, a square or a diamond."""
    look = {"fill": color if filled else "#fff", "stroke": color, "stroke_width": 1.6}
    if k == 0:
        return element("circle", cx=x, cy=y, r=3.6, **look)
    if k == 1:
        return element("rect", x=x - 3.2, y=y - 3.2, width=6.4, height=6.4, **look)
    corners = [(x, y - 4.6), (x + 4.6, y), (x, y + 4.6), (x - 4.6, y)]
    return element(
        "path", d="M" + "L".join(f"{written(a)} {written(b)}" for a, b in corners) + "Z", **look
    )


def main(results: str, out: str) -> None:
    """Draw the figure of a ``results.json``."""
    summary = json.loads(Path(results).read_text(encoding="utf-8"))["numbers"]["summary"]
    Path(out).write_text(figure(summary), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
