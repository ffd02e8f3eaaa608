"""Section: stability, how much predictions change when the model is fitted again on other rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surelearn import jobs
from surelearn.auditing.context import Context
from surelearn.auditing.own_threshold import notes as own_notes
from surelearn.auditing.own_threshold import own_threshold
from surelearn.auditing.refitting import affordable_refits, refit, too_costly
from surelearn.auditing.sections import one_row
from surelearn.auditing.writing import Entry
from surelearn.claim import Finding
from surelearn.lacking import Lacking
from surelearn.plain import show
from surelearn.report import PageTable, Section
from surelearn.selection.cross_validation import losses_of
from surelearn.subject import subject_of
from surelearn.types import AnyArray, TableRows

SHARE = 0.9
LEAST = 3  # refits, however slow the model
CHANGED = 0.1  # of the predictions: more is a warning


def tasks(context: Context) -> list[jobs.Task] | Lacking:
    """Refits on nine tenths of the fit rows, and on all but one; none for a model fitted
    elsewhere.
    """
    if context.selection is None or context.options.refits == 0:
        return []
    X, y = context.rows("train")
    if (costly := too_costly(context, len(y), 2 * LEAST)) is not None:
        return costly
    own = own_threshold(context, nearly_all=True)
    shared = {
        "model": context.unfitted,
        "X": X,
        "y": y,
        "new": context.rows("certify")[0],
        "own": own,
    }
    made = []
    for i in range(refits_of(context)):
        key = f"stability/{i}"
        rows = np.sort(
            np.random.default_rng(context.seed(key)).permutation(len(y))[: int(SHARE * len(y))]
        )
        made.append(jobs.Task(key=key, function=refit, arguments={**shared, "rows": rows}))
    return [*made, *one_row.tasks(context, refits_of(context))]


def refits_of(context: Context) -> int:
    """Refits on nine tenths of the rows, and as many without one row: those asked for, or as many
    as the work allows, at least `LEAST`.
    """
    most = affordable_refits(context, ENTRY.key, len(context.rows("train")[1])) / 2
    return min(context.options.refits, max(LEAST, int(most)))


def section(context: Context, results: Sequence[Any]) -> Section | None:
    """How much refits differ from the model on the certify rows, and what one row does."""
    if context.selection is None or context.options.refits == 0:
        return None
    refits = refits_of(context)
    results, without_one = results[:refits], results[refits:]
    new, truth = context.rows("certify")
    predicted = np.asarray(context.model.predict(new))
    risks = [float(losses_of(r["predictions"], truth, context.task).mean()) for r in results]
    finding = (_classes if context.task == "classification" else _numbers)(
        context, predicted, results, new, risks
    )
    changes = one_row.measure(context, without_one)
    beside = one_row.beside_certified(context)
    notes = [*own_notes(context), *([f"{beside.reason}."] if isinstance(beside, Lacking) else [])]
    if isinstance(changes, Lacking):
        notes.insert(0, f"Leave-one-out was not measured: {changes.reason}.")
        findings = (finding,)
    else:
        findings = (finding, one_row.finding(context, changes))
    return ENTRY.says(
        notes=notes,
        findings=findings,
        tables=(beside,) if isinstance(beside, PageTable) else (),
    )


def _classes(
    context: Context,
    predicted: AnyArray,
    results: Sequence[Any],
    new: TableRows,
    risks: list[float],
) -> Finding:
    changed = float(np.mean([np.mean(r["predictions"] != predicted) for r in results]))
    text = f"{len(results)} refits on 90% of the training rows change {show(changed, 'rate')} of predictions"
    numbers = {
        "changed": changed,
        "lowest_error": min(risks),
        "highest_error": max(risks),
        "refits": len(results),
    }
    if all("scores" in r for r in results) and subject_of(context.model).gives_probabilities:
        scores = np.asarray(context.model.predict_proba(new))
        same = [r["scores"] for r in results if r["scores"].shape == scores.shape]
        numbers["largest_change"] = max(
            (float(np.abs(other - scores).max()) for other in same), default=0.0
        )
        text += f"; the largest change of a probability is {numbers['largest_change']:.2f}"
    text += (
        f". Their held-out error is between {show(min(risks), 'rate')} and"
        f" {show(max(risks), 'rate')}."
    )
    return Finding(
        code="SL401",
        text=text,
        severity="warning" if changed > CHANGED else "info",
        numbers=numbers,
    )


def _numbers(
    context: Context,  # noqa: ARG001
    predicted: AnyArray,
    results: Sequence[Any],
    new: TableRows,  # noqa: ARG001
    risks: list[float],
) -> Finding:
    spread = float(np.mean([np.mean(np.abs(r["predictions"] - predicted)) for r in results]))
    text = (
        f"{len(results)} refits on 90% of the training rows move a prediction by {show(spread, 'number')} on"
        f" average. Their held-out mean absolute error is between {show(min(risks), 'number')} and"
        f" {show(max(risks), 'number')}."
    )
    unstable = spread > 0.5 * float(np.mean(risks))
    numbers = {
        "mean_change": spread,
        "lowest_error": min(risks),
        "highest_error": max(risks),
        "refits": len(results),
    }
    return Finding(
        code="SL401", text=text, severity="warning" if unstable else "info", numbers=numbers
    )


ENTRY = Entry(key="stability", title="Stability", write=section, tasks=tasks)
