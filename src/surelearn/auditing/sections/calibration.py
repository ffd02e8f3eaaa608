"""Section: calibration of the probabilities."""

from __future__ import annotations

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.writing import Entry
from surelearn.bounds import clopper_pearson_interval
from surelearn.claim import Finding
from surelearn.report import Chart, Section
from surelearn.subject import subject_of
from surelearn.types import AnyArray

MOST_BINS = 8
ALPHA = 0.01  # of a bin's interval


def section(context: Context) -> Section | None:
    """A reliability diagram on the certify rows; nothing for models without probabilities."""
    if context.task != "classification" or not subject_of(context.model).gives_probabilities:
        return None
    X, y = context.rows("certify")
    scores = np.asarray(context.model.predict_proba(X))
    classes = np.asarray(context.model.classes_)
    if context.options.positive is not None or len(classes) == 2:
        positive = context.options.positive if context.options.positive is not None else classes[1]
        predicted, happened = scores[:, classes.tolist().index(positive)], y == positive
        what = f"probability of {positive}"
    else:
        top = scores.argmax(axis=1)
        predicted, happened = scores.max(axis=1), classes[top] == y
        what = "probability of the predicted class"
    data = _bins(predicted, np.asarray(happened, dtype=bool))
    error = float(
        np.average(np.abs(np.subtract(data["predicted"], data["observed"])), weights=data["counts"])
    )
    off = [i for i, p in enumerate(data["predicted"]) if not data["low"][i] <= p <= data["high"][i]]
    if off:
        share = f"{len(off)} of {len(data['counts'])} bins"
        text = (
            f"The {what} is miscalibrated beyond chance in {share}; expected calibration error"
            f" (ECE) {100 * error:.1f} points."
        )
        severity = "notice" if error < 0.1 else "warning"
    else:
        text, severity = (
            (
                f"No miscalibration of the {what} was found in {y.size:,} rows; ECE"
                f" {100 * error:.1f} points."
            ),
            "info",
        )
    finding = Finding(
        code="SL301",
        text=text,
        severity=severity,
        numbers={"mean_difference": error, "bins_off": len(off)},
    )
    chart = Chart(
        kind="reliability", title=f"Reliability diagram, {what}", data={**data, "unit": "rate"}
    )
    return ENTRY.says(findings=(finding,), charts=(chart,))


def _bins(predicted: AnyArray, happened: AnyArray) -> dict[str, list[float]]:
    """Bins of equal counts, with 99% intervals of what was observed."""
    bins = int(np.clip(predicted.size // 25, 2, MOST_BINS))
    edges = np.unique(np.quantile(predicted, np.linspace(0, 1, bins + 1)[1:-1]))
    index = np.digitize(predicted, edges)
    data: dict[str, list[float]] = {
        "predicted": [],
        "observed": [],
        "low": [],
        "high": [],
        "counts": [],
    }
    for i in np.unique(index):
        inside = index == i
        low, high = clopper_pearson_interval(int(happened[inside].sum()), int(inside.sum()), ALPHA)
        for key, value in zip(
            data,
            (predicted[inside].mean(), happened[inside].mean(), low, high, inside.sum()),
            strict=True,
        ):
            data[key].append(float(value))
    return data


ENTRY = Entry(key="calibration", title="Calibration", write=section)
