"""What an audit of so many rows holds back."""

from __future__ import annotations

import math
from dataclasses import dataclass

from surelearn.selection.split import certify_fraction, select_fraction


@dataclass(frozen=True, kw_only=True)
class Allotment:
    """What an audit makes of so many rows, and whether the rows that it holds back are enough.

    Attributes
    ----------
    rows, fit, select, certify : numbers of rows
    says : what these certify rows can do
    enough : whether the wished power is reached
    fraction : the smallest ``--certify`` that holds back enough rows, None where that leaves none
        to fit on
    total : rows in all that are enough with the default split
    """

    rows: int
    fit: int
    select: int
    certify: int
    says: str
    enough: bool
    fraction: float | None = None
    total: int | None = None

    def __str__(self) -> str:
        compares = f", compares candidates on {self.select:,}" if self.select else ""
        text = (
            f"Of {self.rows:,} rows the audit fits on {self.fit:,}{compares} and holds back"
            f" {self.certify:,}:\n  {self.says}"
        )
        if self.enough:
            return text
        more = f"{self.total:,} rows in all"
        return f"{text}\n  enough would be " + (
            more if self.fraction is None else f"--certify {self.fraction}, or {more}"
        )


def allotment(rows: int) -> tuple[int, int, int]:
    """How many of so many rows an audit fits on, compares candidates on, and holds back.

    Examples
    --------
    >>> allotment(1000), allotment(20_000)
    ((700, 0, 300), (13532, 2000, 4468))
    """
    held, compared = round(certify_fraction(rows) * rows), round(select_fraction(rows) * rows)
    return rows - held - compared, compared, held


def fraction_for(held: int, rows: int) -> float | None:
    """The smallest fraction, to the digits that tell rows apart, of which `split_rows` makes at
    least so many rows.
    """
    if held + allotment(rows)[1] >= rows:
        return None
    digits = max(2, math.ceil(math.log10(rows)))
    steps = math.floor((held - 1) / rows * 10**digits)
    return next(
        f
        for i in range(steps, 10**digits)
        if round((f := round(i / 10**digits, digits)) * rows) >= held
    )


def total_for(held: int) -> int:
    """The smallest table of which the default split holds back so many rows; the held-back rows
    grow with the table.
    """
    low, high = 0, 6 * held + 10
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if allotment(middle)[2] >= held else (middle, high)
    return high
