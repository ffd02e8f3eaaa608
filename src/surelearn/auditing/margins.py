"""Section: the margins of a vote as its rounds grow."""

from __future__ import annotations

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.one_row import learner_of
from surelearn.plain import show
from surelearn.report import Chart, Section

_SHOWN = 30  # rounds drawn


def section(context: Context) -> Section | None:
    """Median and 5% to 95% of the fit rows' margins; nothing for a model that is no vote of two classes."""
    steps, learner = learner_of(context.model)
    if not hasattr(learner, "staged_margins") or context.selection is None or len(learner.classes_) != 2:
        return None
    X, y = context.rows("train")
    margins = list(learner.staged_margins(X if steps is None else steps.transform(X), y))
    rounds = np.unique(np.geomspace(1, len(margins), _SHOWN).round().astype(int))
    low, middle, high = np.array([np.quantile(margins[t - 1], [0.05, 0.5, 0.95]) for t in rounds]).T
    last = margins[-1]
    note = (
        f"A row's margin is the weight of the stumps that are right about it less the weight of those that are not. After "
        f"{len(margins):,} rounds the smallest margin is {last.min():.2f} and {show(float((last <= 0).mean()), 'rate')} of "
        f"fit rows are wrong."
    )
    data = {"x": rounds, "y": middle, "low": low, "high": high, "x_label": "rounds", "unit": "number"}
    data = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in data.items()}
    chart = Chart(kind="curve", title="Margins of the fit rows, median and 5% to 95%", data=data)
    return Section(key="margins", title="How surely it votes", notes=(note,), charts=(chart,))
