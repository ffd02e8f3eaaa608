"""Section: the learning curve, error against the number of training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surelearn import jobs
from surelearn.auditing.context import Context
from surelearn.auditing.own_threshold import fits_each, notes, own_threshold
from surelearn.auditing.refitting import affordable_refits, refit, too_costly
from surelearn.auditing.writing import Entry
from surelearn.lacking import Lacking
from surelearn.measurement import costs_of
from surelearn.report import Chart, Section
from surelearn.selection.cross_validation import losses_of
from surelearn.subject.refitting import take
from surelearn.types import AnyArray

SHARES = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
TEST_SHARE = 0.2
CURVE = (1 - TEST_SHARE) * sum(SHARES)
LEAST = 2  # repeats, however slow the model: one has no spread


@dataclass(frozen=True, eq=False)
class Step:
    """One refit of the curve: its key, the rows fitted on and the rows compared on, among fit
    and select rows.
    """

    key: str
    rows: Any
    test: Any


def tasks(context: Context) -> list[jobs.Task] | Lacking:
    """Refits on growing shares of the fit rows, a fifth of them held out in turn; never on
    certify rows.
    """
    X, y = context.rows("train")
    if context.selection is not None and context.options.curve_repeats:
        costly = too_costly(context, len(y) // 2, LEAST * len(SHARES))
        if costly is not None:
            return costly
    shared = {"model": context.unfitted, "X": X, "y": y, "own": own_threshold(context)}
    return [
        jobs.Task(
            key=step.key,
            function=refit,
            arguments={**shared, "rows": step.rows, "new": take(X, step.test)},
        )
        for step in _steps(context)
    ]


def _steps(context: Context) -> list[Step]:
    if context.selection is None:
        return []
    _, y = context.rows("train")
    least = max(10, 3 * (np.unique(y).size if context.task == "classification" else 3))
    steps = []
    for repeat in range(_repeats(context, len(y))):
        order = np.random.default_rng(context.seed(f"curve/{repeat}")).permutation(len(y))
        test, rest = order[: int(TEST_SHARE * len(y))], order[int(TEST_SHARE * len(y)) :]
        for share in SHARES:
            size = max(least, round(share * rest.size))
            if size > rest.size or (
                context.task == "classification" and np.unique(y[rest[:size]]).size < 2
            ):
                continue
            steps.append(Step(f"curve/{repeat}/{share}", rest[:size], test))
    return steps


def _repeats(context: Context, rows: int) -> int:
    """Those asked for, or as many as the work allows, at least `LEAST`; a curve costs about as
    much as `CURVE` fits on all rows.
    """
    most = int(affordable_refits(context, ENTRY.key, rows) / (CURVE * fits_each(context)))
    return min(context.options.curve_repeats, max(LEAST, most))


def section(context: Context, results: Sequence[Any]) -> Section | None:
    """The learning curve, and what the last doubling of rows brought."""
    _, y = context.rows("train")
    errors: dict[int, list[float]] = {}
    for step, result in zip(_steps(context), results, strict=True):
        losses = _losses(context, result["predictions"], y[step.test])
        errors.setdefault(len(step.rows), []).append(float(losses.mean()))
    x = sorted(errors)
    if len(x) < 2:
        return None
    mean = [float(np.mean(errors[size])) for size in x]
    half = [float(np.std(errors[size])) for size in x]
    data = {
        "x": x,
        "y": mean,
        "low": [max(0.0, m - h) for m, h in zip(mean, half, strict=True)],
        "high": [m + h for m, h in zip(mean, half, strict=True)],
        "x_label": "training rows",
        "unit": "rate"
        if context.task == "classification" and context.options.miss is None
        else "number",
    }
    name = loss_name(context)
    chart = Chart(kind="curve", title=f"Held-out {name} against training rows", data=data)
    return ENTRY.says(notes=(_advice(name, x, mean, half), *notes(context)), charts=(chart,))


def loss_name(context: Context) -> str:
    """What the curve shows: the error or, where a cost was stated, the mean cost."""
    return "error" if context.options.miss is None else "mean cost"


def _losses(context: Context, predictions: AnyArray, truth: AnyArray) -> AnyArray:
    if context.options.miss is None:
        return losses_of(predictions, truth, context.task)
    positive = context.options.positive
    return costs_of(truth == positive, predictions == positive, context.options.miss)


def _advice(name: str, x: list[int], mean: list[float], half: list[float]) -> str:
    """What the last doubling of rows brought, against the spread between repeats."""
    before = _before_doubling(x)
    if _falls(before, mean, half):
        return (
            f"The {name} still falls from {x[before]:,} to {x[-1]:,} training rows: more rows would"
            " improve the model."
        )
    return (
        f"The curve is flat from {x[before]:,} training rows on: more rows would tighten the"
        " guarantee, not improve the model."
    )


def _before_doubling(x: Sequence[int]) -> int:
    """The position from which on the rows were doubled, at least."""
    return max((i for i in range(len(x)) if x[i] <= x[-1] / 2), default=0)


def _falls(before: int, mean: Sequence[float], half: Sequence[float]) -> bool:
    """Whether the error fell since then, beyond the spread between repeats."""
    return mean[before] - mean[-1] > max(half[before], half[-1], 0.05 * mean[before])


def last_doubling(chart: Chart) -> tuple[int, int] | None:
    """Between which numbers of rows the error of the section's chart still falls at its end; None
    where it does not.
    """
    x, mean = chart.data["x"], chart.data["y"]
    half = [high - m for high, m in zip(chart.data["high"], mean, strict=True)]
    before = _before_doubling(x)
    return (x[before], x[-1]) if _falls(before, mean, half) else None


ENTRY = Entry(key="learning_curve", title="Learning curve", write=section, tasks=tasks)
