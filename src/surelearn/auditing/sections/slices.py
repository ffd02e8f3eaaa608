"""Section: subpopulations, with cut points fixed on fit rows, bounded simultaneously."""

from __future__ import annotations

from surelearn.auditing.context import Context
from surelearn.auditing.single_rows import FEWEST
from surelearn.auditing.writing import Entry
from surelearn.report import Chart, Section


def section(context: Context) -> Section | None:
    """Measured error and bound of every slice."""
    claims = [claim for claim in context.certificate.together if claim.family == "slice"]
    asked = context.options.slices if context.answers is None else ()
    rare = tuple(filter(None, (_rare(context, column) for column in asked)))
    if not claims:
        return ENTRY.says(notes=rare) if rare else None
    unit = claims[0].unit
    chart = Chart(
        kind="bars",
        title=f"{_what(context)} by slice, measured and guaranteed",
        data={
            "names": [claim.about("slice") for claim in claims],
            "measured": [claim.measured for claim in claims],
            "bounds": [claim.value for claim in claims],
            "unit": unit,
        },
    )
    note = (
        "Dots are measured; bars end at the guaranteed bound, which holds for all slices together."
        + (" Cut points were fixed on fit rows." if context.answers is None else "")
    )
    return ENTRY.says(notes=(note, *rare), charts=(chart,))


def _what(context: Context) -> str:
    if context.answers is None or context.task != "losses":
        return "Errors"
    return context.answers.called.capitalize()


def _rare(context: Context, column: str) -> str:
    """Which values of a column that was asked for have no slice, as a count."""
    values = context.rows("train")[0][column]
    if values.dtype.kind in "biuf":
        return ""
    few = int((values.value_counts() < FEWEST).sum())
    which = f"{few:,} values of {column} occur" if few > 1 else f"One value of {column} occurs"
    return (
        f"{which} in fewer than {FEWEST} fit rows: no slice is named after"
        f" {'them' if few > 1 else 'it'}."
        if few
        else ""
    )


ENTRY = Entry(key="slices", title="Error slices", write=section)
