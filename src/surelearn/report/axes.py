"""Axes with round ticks, linear and logarithmic."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from surelearn.report.drawing import number, text_width


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
            if self.start > self.end or all(
                gap >= (a + b) / 2 for gap, (a, b) in zip(apart, pairwise(room), strict=True)
            ):
                break
        return ticks

    def label(self, tick: float) -> str:
        """A tick's text, with no more digits than it needs."""
        value, sign = (100 * tick, "%") if self.unit == "rate" else (tick, "")
        if value and not 1e-4 <= abs(value) < 1e7:
            return (
                f"{value:.3g}{sign}".replace("e+", "e")
                .replace("e0", "e")
                .replace("e-0", "e−")
                .replace("-", "−")
            )
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


def axis_for(
    values: Iterable[float | None],
    start: float,
    end: float,
    unit: str,
    most: int = 5,
    *,
    from_zero: bool = True,
) -> Axis:
    """A linear axis with round ends, from where the quantity can start: zero for what is never
    negative. With ``from_zero=False`` numbers that are all far from zero, such as years, begin
    near the smallest.
    """
    finite = [
        value for value in map(number, values) if value is not None and math.isfinite(value)
    ] or [0.0]
    low, high = min(finite), max(finite)
    if (
        unit == "rate"
        or (from_zero and low >= 0)
        or low <= 0 <= high
        or min(abs(low), abs(high)) < max(abs(low), abs(high)) / 2
    ):
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        around = abs(low) / 10
        low, high = (
            (low - around, low + around) if around else (0.0, 0.1 if unit == "rate" else 1.0)
        )
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


# ── Rows: one name a line, marks along a common axis
# ──────────────────────────────────────────────────────────────────
