"""Small quiet SVG charts: colors are the page's CSS classes, exact numbers are native tooltips
(``<title>``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from markupsafe import Markup

from surelearn.claim import Claim
from surelearn.plain import show
from surelearn.report.axes import Axis, axis_for, log_axis_for
from surelearn.report.columns import columns_table
from surelearn.report.document import Chart
from surelearn.report.drawing import (
    clean,
    element,
    exact,
    fit,
    number,
    numbers,
    picture,
    text_width,
    told,
    written,
)
from surelearn.report.pictures import drawn

WIDTH = 400  # of a chart's coordinates; the page scales it
WIDE = 480  # with long names
BAR_WIDTH = 240
ROW = 26
ABOVE = 42  # the height of a row whose name stands above its marks
MOST_ROWS = 24
MOST_DOTS = 20  # of a curve; more would hide it
_NAMES = {"candidates": 178.0, "bars": 178.0, "bounds": 230.0}  # the widest beside their marks


@dataclass(frozen=True)
class Line:
    """One row of a chart: a name, how it is emphasized, and its marks drawn around y = 0."""

    name: str
    tip: str
    marks: Markup
    css: str = ""


def row_height(kind: str, names: Sequence[str]) -> int:
    """The height of a row: taller where a name is so long that all stand above their marks."""
    return ROW if all(text_width(clean(name)) <= _NAMES[kind] for name in names) else ABOVE


def _start(kind: str, names: Sequence[str], chosen: Sequence[str] = ()) -> tuple[float, bool]:
    """Where the axis of a chart of rows begins, and whether the names stand above the marks.

    ``chosen`` are names in bold, which are wider.
    """
    if row_height(kind, names) == ABOVE:
        return 22.0, True
    room = max([*map(text_width, names), *(1.1 * text_width(name) for name in chosen)], default=0)
    return room + 12, False


def _rows_picture(
    title: str,
    axis: Axis,
    lines: Sequence[Line],
    left_out: int,
    *,
    above: bool,
    width: float = WIDTH,
) -> Markup:
    vacuous = axis.log and axis.unit == "rate" and axis.high > 1.3
    top, row = 18 if vacuous else 0, ABOVE if above else ROW
    bottom = top + 8 + row * len(lines)
    parts = _vacuous_region(axis, width, bottom) if vacuous else []
    parts += _vertical_grid(axis, top + 4, bottom)
    for i, line in enumerate(lines):
        room = width - 4 if above else axis.start - 11.9
        label = element(
            "text",
            fit(line.name, room / (1.1 if line.css else 1)),
            class_=f"lab {line.css}".strip(),
            x=2 if above else axis.start - 10.0,
            y=-14 if above else 4,
            text_anchor="start" if above else "end",
        )
        tip = element("title", line.tip)
        hit = element("rect", x=0, y=13 - row, width=width, height=row, class_="hit")
        parts.append(
            element(
                "g",
                tip,
                hit,
                label,
                line.marks,
                transform=f"translate(0,{top + 6 + row * (i + 1) - ROW // 2})",
            )
        )
    height = bottom + 24
    if left_out:
        height += 20
        parts.append(
            element("text", f"{left_out} more not drawn", class_="tick", x=axis.start, y=height - 6)
        )
    return picture(title, width, height, *parts, css="chart wide" if width > WIDTH else "chart")


def _vacuous_region(axis: Axis, width: float, bottom: float) -> list[Markup]:
    """Where a bound on a rate says nothing: beyond 100%."""
    x = axis.at(1.0)
    region = element("rect", class_="vac", x=x, y=0, width=width - 4 - x, height=bottom)
    return [
        region,
        element(
            "text", "vacuous", class_="tick", x=(x + width - 4) / 2, y=13, text_anchor="middle"
        ),
    ]


def _vertical_grid(axis: Axis, top: float, bottom: float) -> list[Markup]:
    parts = []
    for tick in axis.ticks:
        x = axis.at(tick)
        parts.append(element("line", class_="rule", x1=x, x2=x, y1=top, y2=bottom))
        parts.append(
            element(
                "text", axis.label(tick), class_="tick", x=x, y=bottom + 16, text_anchor="middle"
            )
        )
    return parts


def _most_telling(keys: Sequence[float], always: Iterable[int] = ()) -> list[int]:
    """Positions of the rows that are drawn, in their given order: the smallest keys, and some
    always.
    """
    always = set(always)
    ranked = sorted(range(len(keys)), key=lambda i: (i not in always, keys[i], i))
    return sorted(ranked[:MOST_ROWS])


def _dot(axis: Axis, value: float | None, css: str, radius: float = 4.5) -> Markup:
    """A dot; an arrowhead at the edge for what lies beyond the axis; a dash for what is missing."""
    if value is None:
        return element("text", "no value", class_="tick", x=axis.start + 6.0, y=4)
    x = axis.at(value)
    if (
        value > axis.high * (1 + 1e-9)
        or value < axis.low - 1e-9 * abs(axis.low)
        or (axis.log and value <= 0)
    ):
        tip = 6 if value > axis.high else -6
        return element(
            "path", class_=css, d=f"M{written(x + tip)} 0L{written(x)} -5.5L{written(x)} 5.5Z"
        )
    return element("circle", class_=css, cx=x, cy=0, r=radius)


def _candidates(chart: Chart, unit: str) -> Markup:
    data, chosen = chart.data, chart.data.get("chosen")
    rows = _together(data, "names", "values", "errors")
    shown = _most_telling(
        [_or(value, math.inf) for _, value, _ in rows], [] if chosen is None else [chosen]
    )
    ends = [value + sign * _or(error, 0) for _, value, error in (rows[i] for i in shown) if value is not None
            for sign in (-1, 1)]  # fmt: skip
    ends = [max(end, 0.0) for end in ends] if all(_or(rows[i][1], 0) >= 0 for i in shown) else ends
    start, above = _start(
        chart.kind, [rows[i][0] for i in shown], [rows[i][0] for i in shown if i == chosen]
    )
    axis = axis_for(ends, min(start, 208), WIDTH - 18, unit)
    lines = []
    for i in shown:
        name, value, error = rows[i]
        css = "mea" if i == chosen else "oth"
        marks = _dot(axis, value, css)
        tip = f"{name}: {told(value, unit)}"
        if value is not None and error is not None and math.isfinite(value + error):
            low, high = axis.at(value - error), axis.at(value + error)
            marks = element("line", class_=f"se {css}", x1=low, x2=high, y1=0, y2=0) + marks
            tip += f" ± {show(error, unit)}"
        lines.append(
            Line(
                name,
                tip + (", chosen" if i == chosen else ""),
                marks,
                "chosen" if i == chosen else "",
            )
        )
    return _rows_picture(chart.title, axis, lines, len(rows) - len(shown), above=above)


def _bars(chart: Chart, unit: str) -> Markup:
    rows = _together(chart.data, "names", "measured", "bounds")
    shown = _most_telling(
        [-max(_or(measured, -math.inf), _or(bound, -math.inf)) for _, measured, bound in rows]
    )
    drawn = [rows[i] for i in shown]
    start, above = _start(chart.kind, [row[0] for row in drawn])
    axis = axis_for([v for row in drawn for v in row[1:]], start, WIDTH - 18, unit)
    lines = []
    for name, measured, bound in drawn:
        upper = bound is None or measured is None or bound >= measured
        tip = f"{name}: measured {told(measured, unit)}"
        marks = Markup("")
        if bound is not None:
            tip += (
                f", at {'most' if upper else 'least'} {told(bound, unit, '<=' if upper else '>=')}"
            )
            marks = _reach(axis, bound, upper)
        if measured is not None or bound is None:
            marks += _dot(axis, measured, "mea", 4.0)
        lines.append(Line(name, tip, marks))
    return _rows_picture(chart.title, axis, lines, len(rows) - len(shown), above=above)


def _reach(axis: Axis, bound: float, upper: bool, half: float = 5.0, cap: float = 8.0) -> Markup:
    """The range in which the true value can lie, closed where the guarantee is."""
    zero = axis.at(0.0) if bound >= 0 else axis.start
    x = axis.at(bound)
    low, high = (zero, x) if upper else (x, axis.end)
    marks = element(
        "rect", class_="reach", x=low, y=-half, width=max(high - low, 0.0), height=2 * half, rx=2
    )
    if math.isfinite(bound):
        marks += element("line", class_="cap", x1=x, x2=x, y1=-cap, y2=cap)
    return marks


_KINDS = {"guaranteed": "gua", "measured": "mea", "vacuous": "vacuous"}


def _bounds(chart: Chart, unit: str) -> Markup:
    data = chart.data
    kinds = tuple(data.get("kinds") or ())
    rows = [(name, value, kinds[i] if i < len(kinds) else "guaranteed")
            for i, (name, value) in enumerate(_together(data, "names", "values"))]  # fmt: skip
    shown = _most_telling([_or(value, math.inf) for _, value, _ in rows])
    drawn = [rows[i] for i in shown]
    start, above = _start(chart.kind, [row[0] for row in drawn])
    axis = log_axis_for([value for _, value, _ in drawn], start, WIDE - 24, unit)
    lines = [
        Line(name, f"{name}: {told(value, unit, '=' if kind == 'measured' else '<=')}, {kind}",
             _dot(axis, value, _KINDS.get(kind, "oth")))
        for name, value, kind in drawn
    ]  # fmt: skip
    left_out = len(rows) - len(shown)
    return _rows_picture(chart.title, axis, lines, left_out, above=above, width=WIDE)


# ── Planes: points in two dimensions
# ──────────────────────────────────────────────────────────────────────────────────


def _curve(chart: Chart, unit: str) -> Markup:
    log, level = bool(chart.data.get("log")), number(chart.data.get("level"))
    level = level if _drawable(level) and not (log and _or(level, 0.0) <= 0) else None
    rows = [
        row
        for row in _together(chart.data, "x", "y", "low", "high", name=False)
        if _drawable(*row[:2])
    ]
    rows = [row for row in rows if not log or min(row[:2]) > 0]
    label = str(chart.data.get("x_label", ""))
    x_unit = str(chart.data.get("x_unit", "number"))
    make = log_axis_for if log else axis_for
    y_axis = make([*(v for row in rows for v in row[1:]), level], 150, 12, unit)
    room = max(text_width(y_axis.label(tick)) for tick in y_axis.ticks) + 10
    positions = [row[0] for row in rows]
    if log:
        x_axis = log_axis_for(positions, room, WIDTH - 22, x_unit)
    else:  # years and the like need not begin at zero
        x_axis = axis_for(positions, room, WIDTH - 22, x_unit, from_zero=False)
    rows.sort(key=lambda row: row[0])
    band = [row for row in rows if _drawable(*row[2:])]
    parts = _plane(x_axis, y_axis, label)
    legend = _legend(chart.data, x_axis, y_axis) if chart.data.get("legend") else []
    lower = _staircase(chart.data, band) or [(x, low) for x, _, low, _ in band]
    if len(band) > 1:
        around = [*((x, high) for x, _, _, high in band), *reversed(lower)]
        parts.append(element("polygon", class_="band", points=_points(around, x_axis, y_axis)))
    if len(band) > 1 and chart.data.get("proved"):
        parts.append(element("polyline", class_="ln low", points=_points(lower, x_axis, y_axis)))
    if level is not None:
        named = "" if legend else str(chart.data.get("level_label", ""))
        parts += _level(level, named, x_axis, y_axis)
    if len(rows) > 1:
        parts.append(
            element(
                "polyline", class_="ln", points=_points([row[:2] for row in rows], x_axis, y_axis)
            )
        )
    parts += [*_point(chart.data, x_axis, y_axis, named=not legend), *legend]
    dot = {"class_": "mea", "r": 3.5} if len(rows) <= MOST_DOTS else {"class_": "hit", "r": 7}
    for x, y, low, high in rows[:: math.ceil(len(rows) / 60) or 1]:
        tip = (
            f"{show(x, x_unit)} {label}".strip() + f": {show(y, unit)}" + _between(low, high, unit)
        )
        parts.append(
            element(
                "circle",
                element("title", tip),
                cx=x_axis.at(x),
                cy=y_axis.at(y),
                **dot,
            )
        )
    return picture(chart.title, WIDTH, 196 if label else 178, *parts)


def _point(data: Mapping[str, Any], x_axis: Axis, y_axis: Axis, *, named: bool) -> list[Markup]:
    """One point that matters, larger than the others and named."""
    given = data.get("point")
    at = [number(value) for value in given] if isinstance(given, tuple) else []
    if len(at) != 2 or not _drawable(*at):
        return []
    x, y = x_axis.at(_or(at[0], 0.0)), y_axis.at(_or(at[1], 0.0))
    dot = element("circle", class_="mea", cx=x, cy=y, r=5.5)
    if not named:
        return [dot]
    left = x > (x_axis.start + x_axis.end) / 2
    text = element(
        "text",
        fit(str(data.get("point_label", "")), 150),
        class_="tick",
        x=x - 9 if left else x + 9,
        y=y + 14,
        text_anchor="end" if left else "start",
    )
    return [dot, text]


def _level(level: float, label: str, x_axis: Axis, y_axis: Axis) -> list[Markup]:
    """A dashed line across, named above its left end."""
    y = y_axis.at(level)
    text = element(
        "text", fit(label, 150), class_="tick", x=x_axis.start + 4.0, y=y - 5 if y > 24 else y + 14
    )
    return [element("line", class_="diagonal", x1=x_axis.start, x2=x_axis.end, y1=y, y2=y), text]


def _legend(data: Mapping[str, Any], x_axis: Axis, y_axis: Axis) -> list[Markup]:
    """What the larger dot and the dashed line are, in the corner that the curve leaves free."""
    said = [("dot", data.get("point_label")), ("dashed", data.get("level_label"))]
    lines = [f"{mark}: {label}" for mark, label in said if label]
    upper = data.get("legend") == "upper left"
    x, y = (x_axis.start + 8.0, y_axis.end) if upper else (x_axis.end - 4.0, y_axis.start - 34.0)
    anchor = "start" if upper else "end"
    return [
        element("text", fit(line, 220), class_="tick", x=x, y=y + 14 * (i + 1), text_anchor=anchor)
        for i, line in enumerate(lines)
    ]


def _staircase(data: Mapping[str, Any], band: Sequence[Any]) -> list[tuple[float, float]]:
    """The corners of what is proved, over the range of the band: from each ``low_x`` on its ``low``
    holds, and nothing more before the next one.
    """
    steps = [step for step in _together(data, "low_x", "low", name=False) if _drawable(*step)]
    if not steps or len(band) < 2:
        return []
    start, end = band[0][0], band[-1][0]
    height = max((low for x, low in steps if x <= start), default=0.0)
    corners = [(start, height)]
    for x, low in sorted(step for step in steps if start < step[0] <= end):
        corners += [(x, height), (x, height := max(height, low))]
    return [*corners, (end, height)]


def _reliability(chart: Chart, unit: str) -> Markup:
    names = ("predicted", "observed", "low", "high", "counts")
    rows = [row for row in _together(chart.data, *names, name=False) if _drawable(*row[:2])]
    both = [1.0, *(v for row in rows for v in row[:2])]
    x_axis, y_axis = axis_for(both, 46, WIDTH - 22, "rate"), axis_for(both, 150, 12, "rate")
    parts = _plane(x_axis, y_axis, "predicted probability (observed frequency upward)")
    ends = {"x1": x_axis.at(0), "x2": x_axis.at(1), "y1": y_axis.at(0), "y2": y_axis.at(1)}
    parts.append(element("line", class_="diagonal", **ends))
    largest = max([count or 0 for *_, count in rows], default=0)
    for x, y, low, high, count in rows:
        tip = f"predicted {show(x, unit)}, observed {show(y, unit)}" + _between(low, high, unit)
        tip += "" if count is None else f", {show(count, 'number')} rows"
        at = x_axis.at(x)
        marks = element("title", tip)
        if low is not None and high is not None:
            marks += element(
                "line", class_="se mea", x1=at, x2=at, y1=y_axis.at(low), y2=y_axis.at(high)
            )
        radius = (
            3 + 3 * math.sqrt((count or 0) / largest)
            if largest and 0 <= (count or 0) <= largest
            else 4.0
        )
        parts.append(
            element("g", marks, element("circle", class_="mea", cx=at, cy=y_axis.at(y), r=radius))
        )
    return picture(chart.title, WIDTH, 196, *parts)


def _plane(x_axis: Axis, y_axis: Axis, x_label: str) -> list[Markup]:
    parts = []
    for tick in y_axis.ticks:
        y = y_axis.at(tick)
        parts.append(element("line", class_="rule", x1=x_axis.start, x2=x_axis.end, y1=y, y2=y))
        parts.append(
            element(
                "text",
                y_axis.label(tick),
                class_="tick",
                x=x_axis.start - 6.0,
                y=y + 4,
                text_anchor="end",
            )
        )
    for tick in x_axis.ticks:
        text = x_axis.label(tick)
        parts.append(
            element(
                "text",
                text,
                class_="tick",
                x=x_axis.at(tick),
                y=y_axis.start + 18,
                text_anchor="middle",
            )
        )
    if x_label:
        middle = (x_axis.start + x_axis.end) / 2
        label = fit(x_label, x_axis.end - x_axis.start)
        parts.append(
            element(
                "text", label, class_="tick", x=middle, y=y_axis.start + 38, text_anchor="middle"
            )
        )
    return parts


def _points(pairs: Iterable[Any], x_axis: Axis, y_axis: Axis) -> str:
    return " ".join(f"{written(x_axis.at(x))},{written(y_axis.at(y))}" for x, y in pairs)


def _between(low: float | None, high: float | None, unit: str) -> str:
    return "" if low is None or high is None else f" ({show(low, unit)} to {show(high, unit)})"


def _drawable(*values: float | None) -> bool:
    return all(value is not None and math.isfinite(value) for value in values)


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


def _together(data: Mapping[str, Any], first: str, *rest: str, name: bool = True) -> list[Any]:
    """The columns of a chart's data as rows, as many as the first has; what is missing is None."""
    head = [clean(item) for item in data.get(first) or ()] if name else numbers(data.get(first))
    columns = [numbers(data.get(key))[: len(head)] for key in rest]
    return list(zip_longest(head, *columns))


_PAINTERS: dict[str, tuple[Callable[[Chart, str], Markup], str]] = {
    "candidates": (_candidates, "names"),
    "bars": (_bars, "names"),
    "bounds": (_bounds, "names"),
    "columns": (columns_table, "names"),
    "curve": (_curve, "x"),
    "pictures": (lambda chart, _: drawn(chart), "names"),
    "reliability": (_reliability, "predicted"),
}


def draw(chart: Chart) -> Markup:
    """A chart as SVG, or a sentence where there is nothing to draw."""
    painter, first = _PAINTERS[chart.kind]
    if not chart.data.get(first):
        return Markup('<p class="note">{}: no data.</p>').format(clean(chart.title))
    unit = str(chart.data.get("unit", "rate" if chart.kind == "reliability" else "number"))
    return painter(chart, unit)


def caption(chart: Chart) -> Markup:
    """The title above a chart; a screen reader has it from the picture, a chart without data says
    it itself.
    """
    if not (chart.title and chart.data.get(_PAINTERS[chart.kind][1])):
        return Markup("")
    return Markup('<p class="caption" aria-hidden="true">{}</p>').format(clean(chart.title))


# ── The interval bar of a claim
# ───────────────────────────────────────────────────────────────────────────────────────


def bar_axis(claims: Sequence[Claim]) -> Axis:
    """One axis from zero for the bars of claims of one kind; rates that are bounded from below
    can reach 100%.
    """
    unit = claims[0].unit
    values = [
        0.0,
        *(number(value) for claim in claims for value in (*_ends(claim), claim.measured)),
    ]
    if unit == "rate" and any(claim.relation == ">=" for claim in claims):
        values.append(1.0)
    axis = axis_for(values, 0, 1, unit, most=4)
    room = [text_width(axis.label(end)) + 8 for end in (axis.low, axis.high)]
    return replace(axis, start=max(room[0], 38), end=BAR_WIDTH - max(room[1], 44))


def _ends(claim: Claim) -> tuple[float, ...]:
    return claim.value if isinstance(claim.value, tuple) else (claim.value,)


def interval_bar(claim: Claim, axis: Axis) -> Markup:
    """What is measured (dot) and what is guaranteed (the bar's end), exact numbers in the title."""
    measured, value = claim.measured, claim.value
    parts = [element("line", class_="rule", x1=axis.start, x2=axis.end, y1=0, y2=0)]
    if isinstance(value, tuple):
        low, high = (axis.at(v) for v in value)
        parts.append(
            element("rect", class_="reach", x=low, y=-5, width=high - low, height=10, rx=2)
        )
        parts += [element("line", class_="cap", x1=x, x2=x, y1=-9, y2=9) for x in (low, high)]
    elif claim.relation == "=":
        parts.append(
            element("line", class_="cap", x1=axis.at(value), x2=axis.at(value), y1=-9, y2=9)
        )
    else:
        parts.append(_reach(axis, value, claim.relation == "<=", cap=9.0))
    if measured is not None and math.isfinite(measured):
        parts.append(_dot(axis, measured, "mea", 4.0))
    for end, anchor, x in ((axis.low, "end", axis.start - 7), (axis.high, "start", axis.end + 7)):
        parts.append(element("text", axis.label(end), class_="tick", x=x, y=4, text_anchor=anchor))
    body = element("g", *parts, transform="translate(0,11)")
    return picture(_bar_title(claim), BAR_WIDTH, 22, body, css="bar")


def _bar_title(claim: Claim) -> str:
    seen = (
        ""
        if claim.measured is None
        else f"measured {show(claim.measured, claim.unit)} ({exact(claim.measured)}), "
    )
    if isinstance(claim.value, tuple):
        low, high = claim.value
        return f"{seen}guaranteed {claim.bound()} ({exact(low, '>=')} to {exact(high, '<=')})"
    words = {"<=": "at most", ">=": "at least"}.get(claim.relation, "exactly")
    return (
        f"{seen}guaranteed {words} {show(claim.value, claim.unit, claim.relation)}"
        f" ({exact(claim.value, claim.relation)})"
    )
