"""Section: model selection, the candidates and their errors."""

from __future__ import annotations

import math

from surelearn.auditing.context import Context
from surelearn.auditing.writing import Entry
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
    title = f"{what} of {len(selection.names)} candidates, {selection.how}, ± one standard error"
    held = context.split.select.size
    how = (
        f"on {held:,} select rows"
        if held and selection.how.kind == "holdout"
        else f"{selection.how} on {context.split.fit.size + held:,} rows"
    )
    rule = (
        "the simplest within one standard error of the best"
        if selection.prefer == "simplest"
        else "the best"
    )
    measure = (
        "error rate"
        if rate
        else "mean absolute error"
        if selection.costs is None
        else "mean cost in false alarms"
    )
    note = f"Candidates were compared by {measure}, {how}; {rule} was chosen."
    return ENTRY.says(notes=(note,), charts=_chart(selection, title, rate))


def _by_criterion(selection: Selection, by: Criterion) -> Section:
    rate = by.rate and selection.task == "classification"
    title = f"{str(by).capitalize()}, of {len(selection.names)} candidates"
    note = (
        f"The criterion {by.name} chose the candidate with the smallest {by}. It guarantees"
        " nothing: the guarantees rest on the certify rows."
    )
    return ENTRY.says(notes=(note,), charts=_chart(selection, title, rate))


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


ENTRY = Entry(key="selection", title="Model selection", write=section)
