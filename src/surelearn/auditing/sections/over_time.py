"""Rows in the order of time: the error on the last ones beside a constant answer's, measured,
with no guarantee.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.headline import plural, quoted
from surelearn.auditing.writing import Entry
from surelearn.measurement import Measurement, measure
from surelearn.plain import show
from surelearn.report import PageTable, Section, Verdict
from surelearn.selection.costs import best_constant


@dataclass(frozen=True)
class _MeasuredLosses:
    """What is compared over time: errors, mean cost or mean loss of the model and of the best
    constant of the fit rows.
    """

    what: str
    unit: str
    model: float
    constant: float
    answer: str


def verdict(context: Context) -> Verdict:
    """What was measured on the last rows, or on the last groups to begin, and that it bounds
    nothing.
    """
    facts = context.certificate.facts
    rows = f"{facts['rows']:,} rows"
    if context.groups is None:
        where = f"the last {rows} by {context.time_name}"
    else:
        where = (
            f"the last {facts['groups']:,} {plural(context.group_name)} to begin by"
            f" {context.time_name} ({rows})"
        )
    said = []
    for each in _measured(context):
        model, constant = (show(value, each.unit) for value in (each.model, each.constant))
        if each.what == "errors":
            said.append(
                f"the error rate was {model} (measured), against {constant} for {each.answer}"
            )
        elif each.what == "mean cost":
            said.append(
                f"the mean cost was {model} (measured), against {constant} for {each.answer}"
            )
        else:
            said.append(
                f"the {each.what} was {model} (measured), against {constant} for {each.answer}"
            )
    future = "rows" if context.groups is None else plural(context.group_name)
    sentence = (
        f"On {where}, {' and '.join(said)}; nothing is guaranteed for the {future} to come, because"
        " the data change over time."
    )
    return Verdict(kind="measured only", sentence=sentence)


def section(context: Context) -> Section | None:
    """The numbers of the verdict as a table: the model against the constant baseline."""
    if not context.time_name:
        return None
    rows = []
    for each in _measured(context):
        rows.append((each.what, "the model", show(each.model, each.unit)))
        rows.append((each.what, each.answer, show(each.constant, each.unit)))
    how = (
        "groups that began after every training row"
        if context.groups is not None
        else "the last rows"
    )
    notes = (
        (
            f"Both were measured on {how}, in the order of {context.time_name}. The baseline is the"
            " best constant answer for the training rows."
        ),
    )
    table = PageTable(header=("metric", "model or baseline", "measured"), rows=tuple(rows))
    return ENTRY.says(notes=notes, tables=(table,))


def _measured(context: Context) -> list[_MeasuredLosses]:
    (_, fitted), (X, y) = context.rows("train"), context.rows("certify")
    facts, options = context.certificate.facts, context.options
    groups = (
        None
        if context.groups is None or context.split is None
        else np.asarray(context.groups)[context.split.certify]
    )
    if context.task == "classification":
        answer: Any = best_constant(fitted, options.positive, options.miss)
        name = f"always answering {quoted(answer)}"
    else:
        answer = float(np.median(fitted))
        name = f"always answering the median, {show(answer, 'number')}"
    what = Measurement.from_options({**facts.options, "loss_bound": None})
    constant = measure(lambda rows: np.full(len(rows), answer), X, y, what, groups=groups)

    def mean_cost(values: Mapping[str, Any]) -> float:
        return float(np.mean(values["cost.losses"]))

    if context.task == "regression":
        kind = f"mean {options.loss} loss"
        return [_MeasuredLosses(kind, "number", facts["mean_loss"], constant["mean_loss"], name)]
    found = [_MeasuredLosses("errors", "rate", facts["risk.rate"], constant["risk.rate"], name)]
    if options.miss is not None:
        found.append(
            _MeasuredLosses(
                "mean cost", "number", mean_cost(facts.values), mean_cost(constant), name
            )
        )
    return found


ENTRY = Entry(
    key="over_time",
    title="Out-of-time test: the last rows, against a constant baseline",
    write=section,
)
