"""Section: calibration of the probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.writing import Entry
from surelearn.bounds import clopper_pearson_interval
from surelearn.claim import Claim, Finding
from surelearn.lacking import Lacking
from surelearn.measurement import Measurement, bin_names, said_and_happened
from surelearn.plain import show
from surelearn.report import Chart, PageTable, Section
from surelearn.subject import subject_of
from surelearn.subject.probabilities import probabilities_of
from surelearn.types import AnyArray

MOST_BINS = 8
ALPHA = 0.01  # of a bin's interval
GUARANTEED = (
    "The intervals are guaranteed for all bins together; the bins were cut without looking at these"
    " rows."
)


def section(context: Context) -> Section | Lacking | None:
    """A reliability diagram on the certify rows, with the intervals that are guaranteed where there
    are some; nothing for models without probabilities.
    """
    if context.task != "classification" or not subject_of(context.model).gives_probabilities:
        return None
    X, y = context.rows("certify")
    what = Measurement.from_options(context.certificate.facts.options)
    probabilities = probabilities_of(context.model, X, what.classes)
    if isinstance(probabilities, Lacking):
        return probabilities
    predicted, happened = said_and_happened(
        probabilities, y, np.asarray(subject_of(context.model).predict(X)), what
    )
    named = (
        f"probability of {'the predicted class' if what.score_class is None else what.score_class}"
    )
    claims = {
        claim.about("bin"): claim
        for claim in context.certificate.together
        if claim.quantity == "calibration"
    }
    data = _bins(predicted, happened, what.bins if claims else None)
    if claims:
        _guarantee(data, [claims.get(name) for name in bin_names(what.bins)])
    error = float(
        np.average(np.abs(np.subtract(data["predicted"], data["observed"])), weights=data["counts"])
    )
    off = [i for i, p in enumerate(data["predicted"]) if not data["low"][i] <= p <= data["high"][i]]
    if off:
        share = f"{len(off)} of {len(data['counts'])} bins"
        text = (
            f"The {named} is miscalibrated beyond chance in {share}; expected calibration error"
            f" (ECE) {100 * error:.1f} points."
        )
        severity = "notice" if error < 0.1 else "warning"
    else:
        text, severity = (
            (
                f"No miscalibration of the {named} was found in {y.size:,} rows; ECE"
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
        kind="reliability", title=f"Reliability diagram, {named}", data={**data, "unit": "rate"}
    )
    return ENTRY.says(
        findings=(finding,),
        charts=(chart,),
        tables=() if not claims else (_table(claims.values(), what),),
        notes=() if not claims else (GUARANTEED,),
    )


def _guarantee(data: dict[str, list[float]], claims: Sequence[Claim | None]) -> None:
    """Put guaranteed intervals in the place of measured ones."""
    there = [claim for claim in claims if claim is not None]
    if len(there) == len(data["low"]):
        ends = [c.value if isinstance(c.value, tuple) else (0.0, 1.0) for c in there]
        data["low"], data["high"] = [low for low, _ in ends], [high for _, high in ends]


def _table(claims: Iterable[Claim], what: Measurement) -> PageTable:
    """When it says 85% to 95%, how often that came true, and how often it is guaranteed to."""
    came = "it is right in" if what.score_class is None else f"share of {what.score_class}"
    rows = [
        (
            str(claim.about("bin")),
            "" if claim.measured is None else show(claim.measured, "rate"),
            claim.bound(),
        )
        for claim in claims
    ]
    return PageTable(header=("when it says", f"{came}, measured", "guaranteed"), rows=tuple(rows))


def _bins(
    predicted: AnyArray, happened: AnyArray, edges: Sequence[float] | None
) -> dict[str, list[float]]:
    """Bins at the edges, or of equal counts, with 99% intervals of what was observed."""
    if edges is None:
        bins = int(np.clip(predicted.size // 25, 2, MOST_BINS))
        edges = np.unique(np.quantile(predicted, np.linspace(0, 1, bins + 1)[1:-1])).tolist()
    index = np.searchsorted(np.asarray(edges), predicted, side="left")
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
