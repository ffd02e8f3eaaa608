"""Box plots, frequencies and curves as SVG in the page's colors, exact numbers in native
tooltips.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from markupsafe import Markup

from surelearn.papers.reproduction import Figure
from surelearn.report.axes import Axis, axis_for
from surelearn.report.drawing import element, fit, picture, text_width, written

WIDTH, ROW, PLOT, TALL = 640, 38, 92, 260
MOST_LABEL = 200


def draw(figure: Figure) -> Markup:
    """A figure as SVG."""
    return {"boxes": _boxes, "bars": _bars, "lines": _lines}[figure.kind](figure)


def _boxes(figure: Figure) -> Markup:
    start = min(max(map(text_width, figure.groups)), MOST_LABEL) + 16
    axis = axis_for(
        [v for values in figure.groups.values() for v in values], start, WIDTH - 20, "number"
    )
    bottom = 8 + ROW * len(figure.groups)
    parts = []
    for tick in axis.ticks:
        x = axis.at(tick)
        parts.append(element("line", class_="rule", x1=x, x2=x, y1=4, y2=bottom))
        parts.append(
            element(
                "text", axis.label(tick), class_="tick", x=x, y=bottom + 17, text_anchor="middle"
            )
        )
    parts.append(element("text", fit(figure.axis, axis.end - axis.start), class_="tick", x=(axis.start + axis.end) / 2,
                         y=bottom + 38, text_anchor="middle"))  # fmt: skip
    for i, (name, values) in enumerate(figure.groups.items()):
        box = _box(name, values, axis)
        label = element(
            "text", fit(name, start - 14), class_="lab", x=start - 12, y=4, text_anchor="end"
        )
        parts.append(element("g", label, box, transform=f"translate(0,{8 + ROW * i + ROW // 2})"))
    return picture(figure.title, WIDTH, bottom + 46, *parts, css="chart broad")


def summary(values: Sequence[float]) -> dict[str, float]:
    """Quartiles, mean, and the farthest values within 1.5 box lengths of the box.

    Examples
    --------
    >>> summary([1, 2, 3, 4, 100])["high"]
    4.0
    """
    ordered = np.sort(np.asarray(values, float))
    lower, median, upper = np.percentile(ordered, [25, 50, 75])
    reach = 1.5 * (upper - lower)
    inside = ordered[(ordered >= lower - reach) & (ordered <= upper + reach)]
    found = {
        "low": inside[0],
        "lower": lower,
        "median": median,
        "upper": upper,
        "high": inside[-1],
        "mean": ordered.mean(),
    }
    return {name: float(value) for name, value in found.items()}


def _box(name: str, values: Sequence[float], axis: Axis) -> Markup:
    s = summary(values)
    at = {key: axis.at(value) for key, value in s.items()}
    tip = (
        f"{name}: median {s['median']:.1f}, half of all between {s['lower']:.1f} and"
        f" {s['upper']:.1f}, mean {s['mean']:.1f}"
    )
    marks = [
        element("title", tip),
        element("rect", x=0, y=-ROW / 2, width=WIDTH, height=ROW, class_="hit"),
    ]
    marks += [
        element("line", class_="se mea", x1=at[a], x2=at[b], y1=0, y2=0)
        for a, b in (("low", "lower"), ("upper", "high"))
    ]
    marks += [
        element("line", class_="se mea", x1=at[end], x2=at[end], y1=-5, y2=5)
        for end in ("low", "high")
    ]
    marks.append(
        element(
            "rect",
            class_="box",
            x=at["lower"],
            y=-10,
            width=max(at["upper"] - at["lower"], 1.0),
            height=20,
        )
    )
    marks.append(element("line", class_="middle", x1=at["median"], x2=at["median"], y1=-10, y2=10))
    beyond = sorted({value for value in values if not s["low"] <= value <= s["high"]})
    marks += [element("circle", class_="ring", cx=axis.at(value), cy=0, r=3) for value in beyond]
    x = at["mean"]
    marks.append(
        element(
            "path",
            class_="mean",
            d=f"M{written(x - 4.5)} 0L{written(x)} -4.5L{written(x + 4.5)} 0L{written(x)} 4.5Z",
        )
    )
    return element("g", *marks)


def _bars(figure: Figure) -> Markup:
    start = min(max(map(text_width, figure.groups)), MOST_LABEL) + 16
    step = (WIDTH - 8 - start) / len(figure.labels)
    highest = max([1.0, *(v for values in figure.groups.values() for v in values)])
    parts = []
    for i, (name, values) in enumerate(figure.groups.items()):
        ground = 14 + PLOT * (i + 1)
        parts.append(
            element(
                "text",
                fit(name, start - 14),
                class_="lab",
                x=start - 12,
                y=ground - 4,
                text_anchor="end",
            )
        )
        for j, (label, value) in enumerate(zip(figure.labels, values, strict=True)):
            if value:
                tip = f"{name}: {label} in {value:g} {figure.axis}"
                css = "mea" if j == figure.mark else "oth"
                parts.append(
                    _bar(
                        tip,
                        value,
                        css,
                        start + step * j,
                        ground,
                        step,
                        (PLOT - 34) * value / highest,
                    )
                )
        parts.append(element("line", class_="rule", x1=start, x2=WIDTH - 8, y1=ground, y2=ground))
    ground = 14 + PLOT * len(figure.groups)
    for j, label in enumerate(figure.labels):
        css = "tick chosen" if j == figure.mark else "tick"
        parts.append(
            element(
                "text",
                label,
                class_=css,
                x=start + step * (j + 0.5),
                y=ground + 17,
                text_anchor="middle",
            )
        )
    return picture(figure.title, WIDTH, ground + 26, *parts, css="chart broad")


def _bar(
    tip: str, value: float, css: str, x: float, ground: float, step: float, height: float
) -> Markup:
    bar = element("rect", class_=css, x=x + 4, y=ground - height, width=step - 8, height=height)
    count = element(
        "text",
        f"{value:g}",
        class_="tick",
        x=x + step / 2,
        y=ground - height - 5,
        text_anchor="middle",
    )
    return element("g", element("title", tip), bar, count)


def _lines(figure: Figure) -> Markup:
    top = 12 + 20 * len(figure.groups)
    across = replace(
        axis_for(figure.at, 56, WIDTH - 20, "number"), low=min(figure.at), high=max(figure.at)
    )
    up = axis_for(
        [v for values in figure.groups.values() for v in values], top + TALL, top, "number"
    )
    parts = []
    for tick in across.ticks:
        parts.append(
            element(
                "text",
                across.label(tick),
                class_="tick",
                x=across.at(tick),
                y=top + TALL + 17,
                text_anchor="middle",
            )
        )
    for tick in up.ticks:
        y = up.at(tick)
        parts.append(element("line", class_="rule", x1=across.start, x2=across.end, y1=y, y2=y))
        parts.append(
            element(
                "text",
                up.label(tick),
                class_="tick",
                x=across.start - 8,
                y=y + 4,
                text_anchor="end",
            )
        )
    for i, (name, values) in enumerate(figure.groups.items()):
        points = " ".join(
            f"{written(across.at(x))},{written(up.at(v))}"
            for x, v in zip(figure.at, values, strict=True)
        )
        parts.append(
            element("polyline", element("title", name), class_=f"curve c{i}", points=points)
        )
        parts.append(
            element(
                "line",
                class_=f"curve c{i}",
                x1=across.start,
                x2=across.start + 26,
                y1=14 + 20 * i,
                y2=14 + 20 * i,
            )
        )
        label = fit(name, across.end - across.start - 40)
        parts.append(element("text", label, class_="lab", x=across.start + 34, y=18 + 20 * i))
    below = f"{figure.across}; upwards: {figure.axis}"
    parts.append(element("text", fit(below, across.end - across.start), class_="tick", x=(across.start + across.end) / 2,
                         y=top + TALL + 38, text_anchor="middle"))  # fmt: skip
    return picture(figure.title, WIDTH, top + TALL + 46, *parts, css="chart broad")
