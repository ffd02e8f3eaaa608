"""Section: model selection, the candidates and their errors."""

from __future__ import annotations

import math

from surelearn.auditing.context import Context
from surelearn.auditing.writing import Entry
from surelearn.plain import show
from surelearn.report import Chart, PageTable, Section
from surelearn.selection.criteria import Criterion
from surelearn.selection.selector import COMBINED, Selection


def section(context: Context) -> Section | None:
    """The candidates' selection errors; nothing for a model that was fitted elsewhere."""
    selection = context.selection
    if selection is None or context.split is None:
        return None
    if isinstance(selection.how, Criterion):
        return _by_criterion(selection, selection.how)
    measure = "mean cost in false alarms" if selection.metric is None else selection.metric.label
    title = (
        f"{measure[0].upper()}{measure[1:]} of {len(selection.names)} candidates, {selection.how},"
        " ± one standard error"
    )
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
    notes = [
        f"Candidates were compared by {measure}, {how}; {rule} was chosen.",
        *_settings(selection),
        *(_threshold(selection) if context.options.require is None else ()),
        *_price(selection, measure),
        *_left_out(context),
    ]
    return ENTRY.says(
        notes=notes, charts=_chart(selection, title, selection.rate), tables=_table(selection)
    )


def _settings(selection: Selection) -> list[str]:
    """Which settings the chosen candidate has."""
    words = selection.settings[selection.chosen] if selection.settings else ""
    if not words:
        return []
    made = "is" if selection.name in COMBINED else "has the settings"
    return [f"The {selection.name} {made} {words}."]


def _price(selection: Selection, measure: str) -> list[str]:
    """What a simpler model costs, or an ensemble that was not worth it."""
    price = selection.price
    if price is None:
        return []
    unit = "rate" if selection.rate else "number"
    mean, low, high = (show(value, unit) for value in (price.mean, price.low, price.high))
    simple = selection.names[price.simplest]
    if price.simplest == selection.chosen:
        return [
            f"The price of simplicity: {simple} has {mean} more {measure} than the best on the same"
            f" rows, measured (95% interval {low} to {high})."
        ]
    return [
        f"The price of simplicity: {simple}, the simplest within one standard error, has {mean} more"
        f" {measure} than {selection.name} on the same rows, measured (95% interval {low} to"
        f" {high}); --prefer simplest takes it."
    ]


def _threshold(selection: Selection) -> list[str]:
    if selection.threshold is None or selection.metric is None:
        return []
    return [
        f"It answers ‘{selection.positive}’ from a probability of {selection.threshold:.3f} on: the"
        f" least {selection.metric.label} by out-of-fold predictions."
    ]


def _left_out(context: Context) -> list[str]:
    """Candidates that did not take part, for their time or for want of a package."""
    found: list[str] = []
    if context.left_out:
        found = [
            f"Not tried, for the time it takes: {', '.join(context.left_out)}; --minutes buys more."
        ]
    if context.not_installed:
        names = ", ".join(name for name, _ in context.not_installed)
        extras = sorted({extra for _, extra in context.not_installed})
        commands = " ".join(f"'{extra}'" for extra in extras)
        found.append(f"Not tried, since not installed: {names} (`pip install {commands}`).")
    return found


def _table(selection: Selection) -> tuple[PageTable, ...]:
    """The candidates' settings and error rates, where the chart does not say them."""
    rate = selection.task == "classification" and selection.costs is None
    if not selection.mean_losses or selection.metric is None:
        return ()
    what = "Error rate" if rate else "Mean absolute error"
    unit = "rate" if rate else "number"
    rows = [
        (name, show(value, "rate" if selection.rate else "number"), show(loss, unit), words)
        for name, value, loss, words in zip(
            selection.names,
            selection.errors,
            selection.mean_losses,
            selection.settings,
            strict=True,
        )
    ]
    if selection.metric.name == "accuracy" and rate:  # it is the measure already
        return (
            PageTable(
                header=("Candidate", "Error rate", "Settings"),
                rows=tuple((name, value, words) for name, value, _, words in rows),
            ),
        )
    label = selection.metric.label
    head = ("Candidate", f"{label[0].upper()}{label[1:]}", what, "Settings")
    return (PageTable(header=head, rows=tuple(rows)),)


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
