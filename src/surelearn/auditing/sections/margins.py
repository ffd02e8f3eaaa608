"""Section: the margin distribution of a vote as its rounds grow."""

from __future__ import annotations

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.writing import Entry
from surelearn.lacking import Lacking
from surelearn.plain import show
from surelearn.report import Chart, Section
from surelearn.subject import subject_of

_SHOWN = 30  # rounds drawn


def section(context: Context) -> Section | None:
    """Median and 5% to 95% of the fit rows' margins; nothing for a model that is no vote of two
    classes.
    """
    subject = subject_of(context.model)
    staged, classes = subject.staged_margins, subject.last.classes
    if (
        isinstance(staged, Lacking)
        or context.selection is None
        or classes is None
        or len(classes) != 2
    ):
        return None
    # quantiles of the margins after some of the rounds, evenly spaced on a logarithmic axis
    X, y = context.rows("train")
    margins = list(staged(subject.rows_for_last(X), y))
    rounds = np.unique(np.geomspace(1, len(margins), _SHOWN).round().astype(int))
    low, middle, high = np.array([np.quantile(margins[t - 1], [0.05, 0.5, 0.95]) for t in rounds]).T
    last = margins[-1]
    note = (
        "The margin of a row is the weight of the stumps that are right about it less the weight"
        f" of those that are not. After {len(margins):,} rounds the smallest margin is"
        f" {last.min():.2f} and {show(float((last <= 0).mean()), 'rate')} of the training rows are"
        " misclassified."
    )
    data = {
        "x": rounds,
        "y": middle,
        "low": low,
        "high": high,
        "x_label": "boosting rounds",
        "unit": "number",
    }
    data = {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in data.items()
    }
    chart = Chart(
        kind="curve", title="Margins of the training rows, median and 5% to 95%", data=data
    )
    return ENTRY.says(notes=(note,), charts=(chart,))


ENTRY = Entry(key="margins", title="Margin distribution", write=section)
