"""Section: how the model was chosen."""

from __future__ import annotations

import math

from surelearn.auditing.context import Context
from surelearn.report import Chart, Section
from surelearn.selection.criteria import Criterion
from surelearn.selection.selector import Selection


def section(context: Context) -> Section | None:
    """The candidates' selection errors; nothing for a model that was fitted elsewhere."""
    selection = context.selection
    if selection is None or context.split is None:
        return None
    if isinstance(selection.how, Criterion):
        return _by_criterion(selection, selection.how)
    rate = selection.task == "classification" and selection.costs is None
    what = "Selection error" if selection.costs is None else "Mean cost"
    title = f"{what} of {len(selection.names)} candidates, {selection.how}, one standard error"
    held = context.split.select.size
    how = (
        f"Compared on {held:,} select rows"
        if held and selection.how.kind == "holdout"
        else f"{str(selection.how).capitalize()} on {context.split.fit.size + held:,} rows"
    )
    rule = "the simplest within one standard error of the best" if selection.prefer == "simplest" else "the best"
    measure = "" if rate else "Mean absolute error. " if selection.costs is None else "Mean cost in false alarms. "
    note = f"{measure}{how}; {rule} was chosen."
    return Section(key="selection", title="Choosing the model", notes=(note,), charts=_chart(selection, title, rate))


def _by_criterion(selection: Selection, by: Criterion) -> Section:
    rate = by.rate and selection.task == "classification"
    title = f"{str(by).capitalize()}, of {len(selection.names)} candidates"
    note = (
        f"By the criterion {by.name}: the candidate with the least {by}. It only chooses: what is guaranteed rests on "
        "the certify rows."
    )
    return Section(key="selection", title="Choosing the model", notes=(note,), charts=_chart(selection, title, rate))


def _chart(selection: Selection, title: str, rate: bool) -> tuple[Chart, ...]:
    """Candidates without a finite value are left out."""
    kept = [i for i, value in enumerate(selection.errors) if math.isfinite(value)]
    if selection.chosen not in kept:
        return ()
    data = {
        "names": [selection.names[i] for i in kept],
        "values": [selection.errors[i] for i in kept],
        "errors": [selection.standard_errors[i] for i in kept],
        "chosen": kept.index(selection.chosen),
        "unit": "rate" if rate else "number",
    }
    return (Chart(kind="candidates", title=title, data=data),)
