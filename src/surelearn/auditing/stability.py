"""Section: how much predictions move when the model is fitted again on other rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from surelearn import jobs
from surelearn.auditing import one_row
from surelearn.auditing.context import Context
from surelearn.auditing.refitting import refit
from surelearn.claim import Finding
from surelearn.plain import show
from surelearn.report import Section
from surelearn.selection.cross_validation import losses_of

SHARE = 0.9


def section(context: Context) -> Section | None:
    """Refits on nine tenths of the fit rows, compared on the certify rows; nothing for a model fitted elsewhere."""
    if context.selection is None or context.options.refits == 0:
        return None
    X, y = context.rows("train")
    new, truth = context.rows("certify")
    tasks = []
    for i in range(context.options.refits):
        key = f"stability/{i}"
        rows = np.sort(np.random.default_rng(context.seed(key)).permutation(len(y))[: int(SHARE * len(y))])
        arguments = {"model": context.unfitted, "X": X, "y": y, "rows": rows, "new": new}
        tasks.append(jobs.Task(key=key, function=refit, arguments=arguments))
    results = context.runner.run(tasks, "stability refits")
    predicted = np.asarray(context.model.predict(new))
    risks = [float(losses_of(r["predictions"], truth, context.task).mean()) for r in results]
    finding = (_classes if context.task == "classification" else _numbers)(context, predicted, results, new, risks)
    table, note = one_row.beside_certified(context)
    return Section(
        key="stability",
        title="Would it have come out the same?",
        notes=(note,) if note else (),
        findings=(finding, one_row.finding(context, one_row.measure(context))),
        tables=() if table is None else (table,),
    )


def _classes(context: Context, predicted: Any, results: list[Any], new: Any, risks: list[float]) -> Finding:
    changed = float(np.mean([np.mean(r["predictions"] != predicted) for r in results]))
    text = f"Refitting on 90% of the rows changes {show(changed, 'rate')} of predictions"
    numbers = {"changed": changed, "lowest error": min(risks), "highest error": max(risks), "refits": len(results)}
    if all("scores" in r for r in results) and hasattr(context.model, "predict_proba"):
        scores = np.asarray(context.model.predict_proba(new))
        same = [r["scores"] for r in results if r["scores"].shape == scores.shape]
        numbers["largest change"] = max((float(np.abs(other - scores).max()) for other in same), default=0.0)
        text += f"; the largest change of a probability is {numbers['largest change']:.2f}"
    text += f". The error on the held-back rows moves between {show(min(risks), 'rate')} and {show(max(risks), 'rate')}."
    return Finding(code="SL401", text=text, severity="warning" if changed > 0.1 else "info", numbers=numbers)


def _numbers(context: Context, predicted: Any, results: list[Any], new: Any, risks: list[float]) -> Finding:  # noqa: ARG001
    spread = float(np.mean([np.mean(np.abs(r["predictions"] - predicted)) for r in results]))
    text = (
        f"Refitting on 90% of the rows moves a prediction by {show(spread, 'number')} on average. The mean error on the "
        f"held-back rows moves between {show(min(risks), 'number')} and {show(max(risks), 'number')}."
    )
    unstable = spread > 0.5 * float(np.mean(risks))
    numbers = {"mean change": spread, "lowest error": min(risks), "highest error": max(risks), "refits": len(results)}
    return Finding(code="SL401", text=text, severity="warning" if unstable else "info", numbers=numbers)
