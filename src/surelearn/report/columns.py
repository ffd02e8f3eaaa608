"""The columns of a table, one row each: their values as a tiny chart, what is missing, and how they
go with the target.
"""

from __future__ import annotations

from itertools import zip_longest

from markupsafe import Markup

from surelearn.plain import show
from surelearn.report.document import Chart
from surelearn.report.drawing import clean, element, number, numbers, picture, written

TINY, HIGH = 96.0, 20.0  # of a column's chart
MOST = 100  # columns, whatever the file holds
LONGEST = 120  # letters of a name or a note
_HEAD = ("column", "kind", "values", "missing", "association", "distinct", "what was done")
_RIGHT = {"missing", "association", "distinct"}


def columns_table(chart: Chart, unit: str) -> Markup:  # noqa: ARG001
    """The table, with at most `MOST` columns; how many more there are is said below it."""
    data = chart.data
    fields = ("names", "kinds", "bars", "said", "missing", "association", "distinct", "notes")
    names, *rest = (tuple(data.get(field) or ()) for field in fields)
    rows = list(zip_longest(names, *(one[: len(names)] for one in rest)))
    head = Markup("").join(
        Markup('<th scope="col"{}>{}</th>').format(_right(name), name) for name in _HEAD
    )
    body = Markup("").join(_row(*row) for row in rows[:MOST])
    table = Markup(
        '<div class="scroll" tabindex="0" role="group" aria-label="{}"><table class="plain columns">'
        "<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>"
    ).format(clean(chart.title), head, body)
    more = int(number(data.get("more")) or 0) + max(0, len(rows) - MOST)
    if more:
        said = f"{more:,} more {'column is' if more == 1 else 'columns are'} in audit.json."
        table += Markup('<p class="note">{}</p>').format(said)
    return table


def _row(
    name: object, kind: object, bars: object, said: object, missing: object, association: object,
    distinct: object, note: object,
) -> Markup:  # fmt: skip
    share, strength, count = (number(value) for value in (missing, association, distinct))
    cells = [
        ("", _cut(kind)),
        (
            "",
            _tiny(bars, clean(said or ""))
            + Markup('<span class="soft">{}</span>').format(_cut(said)),
        ),
        ("missing", show(share, "rate") if share else ""),
        ("association", "" if strength is None else f"{strength:.2f}"),
        ("distinct", "" if count is None else f"{count:,.0f}"),
        ("", _cut(note)),
    ]
    inside = Markup("").join(
        Markup("<td{}>{}</td>").format(_right(field), cell) for field, cell in cells
    )
    return Markup('<tr><th scope="row">{}</th>{}</tr>').format(_cut(name), inside)


def _right(field: str) -> Markup:
    return Markup(' class="r"') if field in _RIGHT else Markup("")


def _cut(text: object) -> Markup:
    """An escaped text in isolation; a long one is cut, the whole in its tooltip."""
    text = clean("" if text is None else text)
    if len(text) <= LONGEST:
        return Markup("<bdi>{}</bdi>").format(text)
    return Markup('<bdi title="{}">{}…</bdi>').format(text[:2000], text[:LONGEST].rstrip())


def _tiny(bars: object, said: str) -> Markup:
    """Bars side by side, the highest as high as the picture; the base line stays where one is
    empty.
    """
    shares = [
        min(max(share or 0.0, 0.0), 1.0)
        for share in numbers(bars if isinstance(bars, tuple) else ())
    ]
    if not shares or max(shares) <= 0:
        return Markup("")
    width, most = TINY / len(shares), max(shares)
    path = "".join(
        f"M{written(i * width)} {written(HIGH)}v{written(-share / most * (HIGH - 1))}"
        f"h{written(max(width - 1, 1.0))}V{written(HIGH)}z"
        for i, share in enumerate(shares)
        if share > 0
    )
    base = element("line", class_="rule", x1=0, x2=TINY, y1=HIGH, y2=HIGH)
    return picture(
        said or "values", TINY, HIGH, base, element("path", class_="oth", d=path), css="tiny"
    )
