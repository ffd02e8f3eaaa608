"""Section: the gradient's norm at every layer of a network, and whether it vanishes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surelearn import jobs
from surelearn.auditing.context import Context
from surelearn.auditing.writing import Entry
from surelearn.claim import Finding
from surelearn.lacking import Lacking
from surelearn.report import Chart, Section
from surelearn.subject import subject_of
from surelearn.subject.refitting import take
from surelearn.types import AnyArray, Model, TableRows

ROWS = 64  # that are looked at
FEW, FEWER = 1e-3, 1e-5  # of the largest norm: a notice, a warning


def tasks(context: Context) -> list[jobs.Task]:
    """One task for a model that declares its layers; none for others."""
    classes = context.classes if context.predicts == "classification" else None
    subject = subject_of(context.model, classes=classes or None, task=context.predicts)
    if isinstance(subject.layers, Lacking):
        return []
    X, y = context.rows("train" if context.trained else "certify")
    drawn = np.random.default_rng(context.seed("layers")).permutation(len(y))[:ROWS]
    rows = np.sort(drawn)
    given = {
        "model": context.model,
        "X": take(X, rows),
        "y": np.asarray(y)[rows],
        "classes": classes,
        "task": context.predicts,
    }
    return [jobs.Task("layers/gradients", measure, given)]


def measure(
    model: Model, X: TableRows, y: AnyArray, classes: tuple[Any, ...] | None, task: Any
) -> dict[str, Any] | Lacking:
    """Names and norms by layer, as plain results, which a journal keeps."""
    subject = subject_of(model, classes=classes or None, task=task)
    found = subject.layer_gradients(X, y)
    if isinstance(found, Lacking):
        return found
    return {"names": list(found.names), "norms": found.by_layer.tolist(), "rows": len(found.norms)}


def section(context: Context, results: Sequence[Any]) -> Section | Lacking | None:
    """The norms as a small curve; a finding where those near the input are far smaller."""
    if not results:
        return None
    (found,) = results
    if isinstance(found, Lacking):
        return found
    names, norms = found["names"], np.asarray(found["norms"])
    last = int(np.argmax(norms))
    first = int(np.argmin(norms[: last + 1]))
    share = float(norms[first] / norms[last])
    what = "log loss" if context.predicts == "classification" else "prediction"
    numbers = {
        "share": share,
        "layer": first + 1,
        "largest": last + 1,
        "layers": len(names),
        "rows": found["rows"],
    }
    where = f"layer {first + 1} of {len(names)} ({names[first]})"
    text = (
        f"The gradient of the {what} vanishes: at {where} its norm is {share:.1g} times that at layer"
        f" {last + 1} ({names[last]}), over {found['rows']} rows, so that the layers near the input"
        " hardly learn."
    )
    charts = _chart(norms, what)
    if share < FEW:
        severity = "warning" if share < FEWER else "notice"
        finding = Finding(code="SL411", text=text, severity=severity, numbers=numbers)
        return ENTRY.says(findings=(finding,), charts=charts)
    note = (
        f"The gradient of the {what} reaches all {len(names)} layers: at {where} its norm is"
        f" {share:.2g} times the largest one, over {found['rows']} rows."
    )
    return ENTRY.says(notes=(note,), charts=charts)


def _chart(norms: AnyArray, what: str) -> tuple[Chart, ...]:
    """Nothing is drawn of two layers, nor of a norm that is 0."""
    if len(norms) < 3 or not (norms > 0).all():
        return ()
    data = {
        "x": list(range(1, len(norms) + 1)),
        "y": norms.tolist(),
        "x_label": "layer, from the input on",
        "unit": "number",
        "log": True,
    }
    title = f"Norm of the gradient of the {what} by layer"
    return (Chart(kind="curve", title=title, data=data),)


ENTRY = Entry(key="layers", title="Gradient by layer", write=section, tasks=tasks)
