"""SVG elements, text that fits, and numbers that can be drawn."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context
from typing import Any

from markupsafe import Markup, escape

from surelearn.plain import show

HUGE = 1e150  # drawn like infinity, and its inverse like zero, so that no arithmetic overflows
# they make a text look like another
_DIRECTION_AND_WIDTH = "\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
_UNWRITABLE = re.compile(
    f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_DIRECTION_AND_WIDTH}\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


def clean(text: object) -> str:
    """A text without the characters that XML and HTML forbid, and controls of direction and
    width.
    """
    return _UNWRITABLE.sub("\ufffd", str(text))


def element(tag: str, *children: Any, **attributes: Any) -> Markup:
    """An SVG element; plain texts and attribute values are escaped, numbers written to a tenth."""
    pairs = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(written(value))}"'
        for name, value in attributes.items()
    )
    inside = Markup("").join(
        child if isinstance(child, Markup) else escape(clean(child)) for child in children
    )
    return Markup(f"<{tag}{pairs}>{inside}</{tag}>")  # noqa: S704 - all parts are escaped


def written(value: object) -> str:
    """A coordinate or attribute as text, without digits that nobody sees."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else clean(value)


def picture(title: str, width: float, height: float, *children: Any, css: str = "chart") -> Markup:
    """The SVG image itself, with the title that a screen reader says."""
    box = f"0 0 {written(float(width))} {written(float(height))}"
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
    """The text within so many pixels, or its beginning, an ellipsis and its end: names of one
    table often begin alike.
    """
    text = " ".join(clean(text).split())
    text = text if len(text) <= 400 else f"{text[:200]}{text[-200:]}"
    if text_width(text) <= width:
        return text
    tail = text[-max(1, len(text) // 3) :]
    while tail and text_width(tail) > width / 3:
        tail = tail[1:]
    head = text[: len(text) - len(tail)]
    while head and text_width(head) + text_width(tail) + 11 > width:
        head = head[:-1]
    return f"{head.rstrip()}…{tail.lstrip()}"


def exact(value: float, relation: str = "=") -> str:
    """Six significant digits, upper bounds rounded up and lower bounds down."""
    if not math.isfinite(value):
        return show(value, "number")
    rounding = {"<=": ROUND_CEILING, ">=": ROUND_FLOOR}.get(relation, ROUND_HALF_EVEN)
    rounded = Context(prec=6, rounding=rounding).create_decimal(repr(float(value))).normalize()
    return f"{rounded:f}" if value == 0 or 1e-6 <= abs(value) < 1e15 else str(rounded)


def number(value: object) -> float | None:
    """The value as a float; None for what is missing, not a number or NaN."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        return None
    if abs(value) >= HUGE:
        return math.inf if value > 0 else -math.inf
    return float(value) if abs(value) > 1 / HUGE else 0.0


def numbers(values: Iterable[object] | None) -> list[float | None]:
    """`number` of each value, of none where there are none."""
    return [number(value) for value in values or ()]


def told(value: float | None, unit: str, relation: str = "=") -> str:
    """A value for a tooltip."""
    return "no value" if value is None else show(value, unit, relation)
