"""Small quiet SVG charts: colours are the page's CSS classes, exact numbers are native tooltips (``<title>``)."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context
from itertools import pairwise, zip_longest
from typing import Any

from markupsafe import Markup, escape

from surelearn.claim import Claim
from surelearn.plain import show
from surelearn.report.document import Chart

WIDTH = 400  # of a chart's coordinates; the page scales it
WIDE = 480  # with long names
BAR_WIDTH = 240
ROW = 26
MOST_ROWS = 24
_HUGE = 1e150  # drawn like infinity, and its inverse like zero, so that no arithmetic overflows
_UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def clean(text: Any) -> str:
    """A text without the characters that XML and HTML forbid."""
    return _UNWRITABLE.sub("\ufffd", str(text))


def element(tag: str, *children: Any, **attributes: Any) -> Markup:
    """An SVG element; plain texts and attribute values are escaped, numbers written to a tenth."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_written(value))}"' for name, value in attributes.items()
    )
    inside = Markup("").join(child if isinstance(child, Markup) else escape(clean(child)) for child in children)
    return Markup(f"<{tag}{written}>{inside}</{tag}>")  # noqa: S704 - all parts are escaped


def _written(value: Any) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else clean(value)


def picture(title: str, width: float, height: float, *children: Any, css: str = "chart") -> Markup:
    """The SVG image itself, with the title that a screen reader says."""
    box = f"0 0 {_written(float(width))} {_written(float(height))}"
    attributes = {"class": css, "viewBox": box, "role": "img", "aria-label": title}
    return element("svg", element("title", title), *children, **attributes)


def text_width(text: str) -> float:
    """About how wide a 12-pixel text is; rather too wide than too narrow."""
    return sum(map(_character_width, text))


def _character_width(character: str) -> float:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 13.0
    if character in "mwMW@%…—":
        return 11.0
    if character in "iljtfrI.,;:'|!()[] ":
        return 4.8
    return 8.6 if character.isupper() else 7.2


def fit(text: str, width: float) -> str:
    """The text, or its beginning and an ellipsis, within so many pixels."""
    text = " ".join(clean(text).split())[:400]
    if text_width(text) <= width:
        return text
    while text and text_width(text) + 11 > width:
        text = text[:-1]
    return text.rstrip() + "…"


def exact(value: float, relation: str = "=") -> str:
    """Six significant digits, upper bounds rounded up and lower bounds down."""
    if not math.isfinite(value):
        return show(value, "number")
    rounding = {"<=": ROUND_CEILING, ">=": ROUND_FLOOR}.get(relation, ROUND_HALF_EVEN)
    rounded = Context(prec=6, rounding=rounding).create_decimal(repr(float(value))).normalize()
    return f"{rounded:f}" if value == 0 or 1e-6 <= abs(value) < 1e15 else str(rounded)


def number(value: Any) -> float | None:
    """The value as a float; None for what is missing, not a number or NaN."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        return None
    if abs(value) >= _HUGE:
        return math.inf if value > 0 else -math.inf
    return float(value) if abs(value) > 1 / _HUGE else 0.0


def numbers(values: Any) -> list[float | None]:
    """`number` of each value, of none where there are none."""
    return [number(value) for value in values or ()]


def told(value: float | None, unit: str, relation: str = "=") -> str:
    """A value for a tooltip."""
    return "no value" if value is None else show(value, unit, relation)


@dataclass(frozen=True)
class Axis:
    """Where values lie on the picture, and the round values that are marked."""

    low: float
    high: float
    start: float
    end: float
    unit: str = "number"
    log: bool = False
    most: int = 5

    def at(self, value: float) -> float:
        """The position of a value, at the edge if it lies beyond."""
        low, high, value = self._scaled(self.low), self._scaled(self.high), self._scaled(value)
        share = (min(max(value, low), high) - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def _scaled(self, value: float) -> float:
        if not self.log:
            return value
        return -math.inf if value <= 0 else math.log10(value)

    @property
    def ticks(self) -> list[float]:
        """Round numbers within the axis, so few that their labels do not touch."""
        chosen, ticks = _log_ticks if self.log else _round_ticks, []
        for most in range(self.most, 0, -1):
            ticks = chosen(self.low, self.high, most)
            room = [text_width(self.label(tick)) + 6 for tick in ticks]
            apart = [abs(self.at(b) - self.at(a)) for a, b in pairwise(ticks)]
            if self.start > self.end or all(gap >= (a + b) / 2 for gap, (a, b) in zip(apart, pairwise(room), strict=True)):
                break
        return ticks

    def label(self, tick: float) -> str:
        """A tick's text, with no more digits than it needs."""
        value, sign = (100 * tick, "%") if self.unit == "rate" else (tick, "")
        if value and not 1e-4 <= abs(value) < 1e7:
            return f"{value:.3g}{sign}".replace("e+", "e").replace("e0", "e").replace("e-0", "e−").replace("-", "−")
        text = f"{value:,.6f}".rstrip("0").rstrip(".")
        return text.replace("-", "−") + sign


def _step(span: float, most: int) -> float:
    raw = span / most
    power = 10.0 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9))


def _round_ticks(low: float, high: float, most: int) -> list[float]:
    step = _step(high - low, most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def _log_ticks(low: float, high: float, most: int) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ticks = []
    for factors, every in (((1, 2, 5), 1), ((1, 3), 1), *(((1,), k) for k in range(1, 400))):
        powers = [power for power in range(first, last + 1) if power % every == 0]
        ticks = [float(f"{factor}e{power}") for power in powers for factor in factors]
        ticks = [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
        if len(ticks) <= most + 1:
            break
    return ticks


def axis_for(values: Iterable[float | None], start: float, end: float, unit: str, most: int = 5) -> Axis:
    """A linear axis with round ends: from zero for rates, and for other numbers unless they are all far from it."""
    finite = [value for value in map(number, values) if value is not None and math.isfinite(value)] or [0.0]
    low, high = min(finite), max(finite)
    if unit == "rate" or low <= 0 <= high or min(abs(low), abs(high)) < max(abs(low), abs(high)) / 2:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        around = abs(low) / 10
        low, high = (low - around, low + around) if around else (0.0, 0.1 if unit == "rate" else 1.0)
    step = _step(high - low, most)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    if unit == "rate" and max(finite) <= 1 < high:
        high = 1.0
    return Axis(low, high, start, end, unit, most=most)


def log_axis_for(values: Iterable[float | None], start: float, end: float, unit: str) -> Axis:
    """A logarithmic axis; rates end at 1000%, since beyond all are equally vacuous."""
    usable = [value for value in values if value is not None and 0 < value < math.inf] or [0.1, 1.0]
    low, high = max(min(usable), 1e-140), max(usable)
    if unit == "rate":
        low, high = min(max(low, 1e-9), 0.5), min(high, 10.0)
    low, high = low / 1.25, max(high, low * 2) * (2 if unit == "rate" and high > 1 else 1.25)
    return Axis(low, high, start, end, unit, log=True)


# ── Rows: one name a line, marks along a common axis ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Line:
    """One row of a chart: a name, how it is emphasized, and its marks drawn around y = 0."""

    name: str
    tip: str
    marks: Markup
    css: str = ""


def _label_room(names: Iterable[str], most: float = 178) -> float:
    return max([text_width(fit(name, most)) for name in names], default=0) + 12


def _rows_picture(title: str, axis: Axis, lines: Sequence[Line], left_out: int, *, width: float = WIDTH) -> Markup:
    vacuous = axis.log and axis.unit == "rate" and axis.high > 1.3
    top = 18 if vacuous else 0
    bottom = top + 8 + ROW * len(lines)
    parts = _vacuous_region(axis, width, bottom) if vacuous else []
    parts += _vertical_grid(axis, top + 4, bottom)
    for i, line in enumerate(lines):
        name = fit(line.name, (axis.start - 11.9) / (1.1 if line.css else 1))
        label = element("text", name, class_=f"lab {line.css}".strip(), x=axis.start - 10.0, y=4, text_anchor="end")
        tip = element("title", line.tip)
        hit = element("rect", x=0, y=-ROW / 2, width=width, height=ROW, class_="hit")
        parts.append(element("g", tip, hit, label, line.marks, transform=f"translate(0,{top + 6 + ROW * i + ROW // 2})"))
    height = bottom + 24
    if left_out:
        height += 20
        parts.append(element("text", f"{left_out} more not drawn", class_="tick", x=axis.start, y=height - 6))
    return picture(title, width, height, *parts, css="chart wide" if width > WIDTH else "chart")


def _vacuous_region(axis: Axis, width: float, bottom: float) -> list[Markup]:
    """Where a bound on a rate says nothing: beyond 100%."""
    x = axis.at(1.0)
    region = element("rect", class_="vac", x=x, y=0, width=width - 4 - x, height=bottom)
    return [region, element("text", "vacuous", class_="tick", x=(x + width - 4) / 2, y=13, text_anchor="middle")]


def _vertical_grid(axis: Axis, top: float, bottom: float) -> list[Markup]:
    parts = []
    for tick in axis.ticks:
        x = axis.at(tick)
        parts.append(element("line", class_="rule", x1=x, x2=x, y1=top, y2=bottom))
        parts.append(element("text", axis.label(tick), class_="tick", x=x, y=bottom + 16, text_anchor="middle"))
    return parts


def _most_telling(keys: Sequence[float], always: Iterable[int] = ()) -> list[int]:
    """Positions of the rows that are drawn, in their given order: the smallest keys, and some always."""
    always = set(always)
    ranked = sorted(range(len(keys)), key=lambda i: (i not in always, keys[i], i))
    return sorted(ranked[:MOST_ROWS])


def _dot(axis: Axis, value: float | None, css: str, radius: float = 4.5) -> Markup:
    """A dot; an arrowhead at the edge for what lies beyond the axis; a dash for what is missing."""
    if value is None:
        return element("text", "no value", class_="tick", x=axis.start + 6.0, y=4)
    x = axis.at(value)
    if value > axis.high * (1 + 1e-9) or value < axis.low - 1e-9 * abs(axis.low) or (axis.log and value <= 0):
        tip = 6 if value > axis.high else -6
        return element("path", class_=css, d=f"M{_written(x + tip)} 0L{_written(x)} -5.5L{_written(x)} 5.5Z")
    return element("circle", class_=css, cx=x, cy=0, r=radius)


def _candidates(chart: Chart, unit: str) -> Markup:
    data, chosen = chart.data, chart.data.get("chosen")
    rows = _together(data, "names", "values", "errors")
    shown = _most_telling([_or(value, math.inf) for _, value, _ in rows], [] if chosen is None else [chosen])
    ends = [value + sign * _or(error, 0) for _, value, error in (rows[i] for i in shown) if value is not None
            for sign in (-1, 1)]  # fmt: skip
    ends = [max(end, 0.0) for end in ends] if all(_or(rows[i][1], 0) >= 0 for i in shown) else ends
    room = max(_label_room(rows[i][0] for i in shown), 1.1 * _label_room(rows[i][0] for i in shown if i == chosen))
    axis = axis_for(ends, min(room, 190), WIDTH - 18, unit)
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
        lines.append(Line(name, tip + (", chosen" if i == chosen else ""), marks, "chosen" if i == chosen else ""))
    return _rows_picture(chart.title, axis, lines, len(rows) - len(shown))


def _bars(chart: Chart, unit: str) -> Markup:
    rows = _together(chart.data, "names", "measured", "bounds")
    shown = _most_telling([-max(_or(measured, -math.inf), _or(bound, -math.inf)) for _, measured, bound in rows])
    drawn = [rows[i] for i in shown]
    axis = axis_for([v for row in drawn for v in row[1:]], _label_room(row[0] for row in drawn), WIDTH - 18, unit)
    lines = []
    for name, measured, bound in drawn:
        upper = bound is None or measured is None or bound >= measured
        tip = f"{name}: measured {told(measured, unit)}"
        marks = Markup("")
        if bound is not None:
            tip += f", at {'most' if upper else 'least'} {told(bound, unit, '<=' if upper else '>=')}"
            marks = _reach(axis, bound, upper)
        if measured is not None or bound is None:
            marks += _dot(axis, measured, "mea", 4.0)
        lines.append(Line(name, tip, marks))
    return _rows_picture(chart.title, axis, lines, len(rows) - len(shown))


def _reach(axis: Axis, bound: float, upper: bool, half: float = 5.0, cap: float = 8.0) -> Markup:
    """The range in which the true value can lie, closed where the guarantee is."""
    zero = axis.at(0.0) if bound >= 0 else axis.start
    x = axis.at(bound)
    low, high = (zero, x) if upper else (x, axis.end)
    marks = element("rect", class_="reach", x=low, y=-half, width=max(high - low, 0.0), height=2 * half, rx=2)
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
    room = _label_room((row[0] for row in drawn), 230)
    axis = log_axis_for([value for _, value, _ in drawn], room, WIDE - 24, unit)
    lines = [
        Line(name, f"{name}: {told(value, unit, '=' if kind == 'measured' else '<=')}, {kind}",
             _dot(axis, value, _KINDS.get(kind, "oth")))
        for name, value, kind in drawn
    ]  # fmt: skip
    return _rows_picture(chart.title, axis, lines, len(rows) - len(shown), width=WIDE)


# ── Planes: points in two dimensions ──────────────────────────────────────────────────────────────────────────────────


def _curve(chart: Chart, unit: str) -> Markup:
    rows = [row for row in _together(chart.data, "x", "y", "low", "high", name=False) if _drawable(*row[:2])]
    label = str(chart.data.get("x_label", ""))
    y_axis = axis_for([v for row in rows for v in row[1:]], 150, 12, unit)
    room = max(text_width(y_axis.label(tick)) for tick in y_axis.ticks) + 10
    x_axis = axis_for([row[0] for row in rows], room, WIDTH - 22, "number")
    rows.sort(key=lambda row: row[0])
    band = [row for row in rows if _drawable(*row[2:])]
    parts = _plane(x_axis, y_axis, label)
    if len(band) > 1:
        around = [(x, high) for x, _, _, high in band] + [(x, low) for x, _, low, _ in reversed(band)]
        parts.append(element("polygon", class_="band", points=_points(around, x_axis, y_axis)))
    if len(rows) > 1:
        parts.append(element("polyline", class_="ln", points=_points([row[:2] for row in rows], x_axis, y_axis)))
    for x, y, low, high in rows[:: math.ceil(len(rows) / 60) or 1]:
        tip = f"{show(x, 'number')} {label}".strip() + f": {show(y, unit)}" + _between(low, high, unit)
        parts.append(element("circle", element("title", tip), class_="mea", cx=x_axis.at(x), cy=y_axis.at(y), r=3.5))
    return picture(chart.title, WIDTH, 196 if label else 178, *parts)


def _reliability(chart: Chart, unit: str) -> Markup:
    names = ("predicted", "observed", "low", "high", "counts")
    rows = [row for row in _together(chart.data, *names, name=False) if _drawable(*row[:2])]
    both = [1.0, *(v for row in rows for v in row[:2])]
    x_axis, y_axis = axis_for(both, 46, WIDTH - 22, "rate"), axis_for(both, 150, 12, "rate")
    parts = _plane(x_axis, y_axis, "predicted (across) against observed (up)")
    ends = {"x1": x_axis.at(0), "x2": x_axis.at(1), "y1": y_axis.at(0), "y2": y_axis.at(1)}
    parts.append(element("line", class_="diagonal", **ends))
    largest = max([count or 0 for *_, count in rows], default=0)
    for x, y, low, high, count in rows:
        tip = f"predicted {show(x, unit)}, observed {show(y, unit)}" + _between(low, high, unit)
        tip += "" if count is None else f", {show(count, 'number')} rows"
        at = x_axis.at(x)
        marks = element("title", tip)
        if low is not None and high is not None:
            marks += element("line", class_="se mea", x1=at, x2=at, y1=y_axis.at(low), y2=y_axis.at(high))
        radius = 3 + 3 * math.sqrt((count or 0) / largest) if largest and 0 <= (count or 0) <= largest else 4.0
        parts.append(element("g", marks, element("circle", class_="mea", cx=at, cy=y_axis.at(y), r=radius)))
    return picture(chart.title, WIDTH, 196, *parts)


def _plane(x_axis: Axis, y_axis: Axis, x_label: str) -> list[Markup]:
    parts = []
    for tick in y_axis.ticks:
        y = y_axis.at(tick)
        parts.append(element("line", class_="rule", x1=x_axis.start, x2=x_axis.end, y1=y, y2=y))
        parts.append(element("text", y_axis.label(tick), class_="tick", x=x_axis.start - 6.0, y=y + 4, text_anchor="end"))
    for tick in x_axis.ticks:
        text = x_axis.label(tick)
        parts.append(element("text", text, class_="tick", x=x_axis.at(tick), y=y_axis.start + 18, text_anchor="middle"))
    if x_label:
        middle = (x_axis.start + x_axis.end) / 2
        label = fit(x_label, x_axis.end - x_axis.start)
        parts.append(element("text", label, class_="tick", x=middle, y=y_axis.start + 38, text_anchor="middle"))
    return parts


def _points(pairs: Iterable[Any], x_axis: Axis, y_axis: Axis) -> str:
    return " ".join(f"{_written(x_axis.at(x))},{_written(y_axis.at(y))}" for x, y in pairs)


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
    "curve": (_curve, "x"),
    "reliability": (_reliability, "predicted"),
}


def draw(chart: Chart) -> Markup:
    """A chart as SVG, or a sentence where there is nothing to draw."""
    painter, first = _PAINTERS[chart.kind]
    if not chart.data.get(first):
        return Markup('<p class="note">{}: no data.</p>').format(clean(chart.title))
    return painter(chart, str(chart.data.get("unit", "rate" if chart.kind == "reliability" else "number")))


# ── The interval bar of a claim ───────────────────────────────────────────────────────────────────────────────────────


def bar_axis(claims: Sequence[Claim]) -> Axis:
    """One axis from zero for the bars of claims of one kind; rates that are bounded from below can reach 100%."""
    unit = claims[0].unit
    values = [0.0, *(number(value) for claim in claims for value in (*_ends(claim), claim.measured))]
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
        parts.append(element("rect", class_="reach", x=low, y=-5, width=high - low, height=10, rx=2))
        parts += [element("line", class_="cap", x1=x, x2=x, y1=-9, y2=9) for x in (low, high)]
    elif claim.relation == "=":
        parts.append(element("line", class_="cap", x1=axis.at(value), x2=axis.at(value), y1=-9, y2=9))
    else:
        parts.append(_reach(axis, value, claim.relation == "<=", cap=9.0))
    if measured is not None and math.isfinite(measured):
        parts.append(_dot(axis, measured, "mea", 4.0))
    for end, anchor, x in ((axis.low, "end", axis.start - 7), (axis.high, "start", axis.end + 7)):
        parts.append(element("text", axis.label(end), class_="tick", x=x, y=4, text_anchor=anchor))
    body = element("g", *parts, transform="translate(0,11)")
    return picture(_bar_title(claim), BAR_WIDTH, 22, body, css="bar")


def _bar_title(claim: Claim) -> str:
    seen = "" if claim.measured is None else f"measured {show(claim.measured, claim.unit)} ({exact(claim.measured)}), "
    if isinstance(claim.value, tuple):
        low, high = claim.value
        return f"{seen}guaranteed {claim.bound()} ({exact(low, '>=')} to {exact(high, '<=')})"
    words = {"<=": "at most", ">=": "at least"}.get(claim.relation, "exactly")
    return f"{seen}guaranteed {words} {show(claim.value, claim.unit, claim.relation)} ({exact(claim.value, claim.relation)})"
