"""Section: how the model was chosen."""

from __future__ import annotations

from surelearn.auditing.context import Context
from surelearn.report import Chart, Section


def section(context: Context) -> Section | None:
    """The candidates' selection errors; nothing for a model that was fitted elsewhere."""
    selection = context.selection
    if selection is None or context.split is None:
        return None
    rate = selection.task == "classification"
    chart = Chart(
        kind="candidates",
        title=f"Selection error of {len(selection.names)} candidates, {selection.how}, one standard error",
        data={
            "names": selection.names,
            "values": selection.errors,
            "errors": selection.standard_errors,
            "chosen": selection.chosen,
            "unit": "rate" if rate else "number",
        },
    )
    held = context.split.select.size
    how = (
        f"Compared on {held:,} select rows"
        if held
        else f"{str(selection.how).capitalize()} on {context.split.fit.size:,} rows"
    )
    rule = "the simplest within one standard error of the best" if selection.prefer == "simplest" else "the best"
    measure = "" if rate else "Mean absolute error. "
    note = f"{measure}{how}; {rule} was chosen."
    return Section(key="selection", title="Choosing the model", notes=(note,), charts=(chart,))
