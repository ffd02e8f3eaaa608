"""Section: the interval of a regression holds on average; how often it does for small and for
large predictions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.auditing.context import Context
from surelearn.auditing.writing import Entry
from surelearn.bounds import clopper_pearson
from surelearn.claim import Finding
from surelearn.lacking import Lacking
from surelearn.plain import show
from surelearn.prediction import interval_claim, intervals
from surelearn.report import PageTable, Section
from surelearn.selection.width import FORMS
from surelearn.subject import predict_with
from surelearn.subject.bands import Band, band_of, outside
from surelearn.types import Array

FIFTHS = 5
CHANCE = 0.01  # that a fifth is called far below although none is


@dataclass(frozen=True)
class Fifth:
    """The rows whose prediction lies between two cut points: how many, and how often the
    interval holds the truth; ``width`` is the mean half-width.
    """

    low: float
    high: float
    rows: int
    covered: int
    radius: float
    width: float = np.nan

    @property
    def where(self) -> str:
        """The range of its predictions, for people."""
        if np.isinf(self.low):
            return f"up to {show(self.high, 'number')}"
        return (
            f"above {show(self.low, 'number')}"
            if np.isinf(self.high)
            else f"{show(self.low, 'number')} to {show(self.high, 'number')}"
        )


def section(context: Context) -> Section | None:
    """Coverage of the certified interval by fifths of the prediction, measured, and which forms of
    intervals were compared; nothing where no interval is certified.
    """
    claim = interval_claim(context.certificate)
    if claim is None or isinstance(claim.value, tuple) or not np.isfinite(claim.value):
        return None
    own, alpha = claim.quantity == "score_quantile", context.options.alpha
    # fifths are cut on the predictions of the rows fitted on, and filled with certify rows
    X, y = context.rows("certify")
    predict = predict_with(context.model)
    predicted, truth = np.asarray(predict(X), dtype=float), np.asarray(y, dtype=float)
    fitted_on, targets = context.rows("train")
    known = np.asarray(predict(fitted_on), dtype=float) if len(targets) else predicted
    low, high = _ends(context, predicted)
    target_range = context.certificate.facts.options.get("target_range")
    band = band_of(context.model, X, target_range) if own else None
    if isinstance(band, Band):
        errors = band.scores(truth)
    else:
        errors = np.where(outside(truth, target_range), np.inf, np.abs(predicted - truth))
    parts = fifths(known, predicted, errors, float(claim.value), alpha, (high - low) / 2)
    if len(parts) < 2:
        return None
    shares = [part.covered / part.rows for part in parts]
    promised, worst = f"{100 * (1 - alpha):g}%", int(np.argmin(shares))
    seldom = [
        part
        for part in parts
        if clopper_pearson(part.covered, part.rows, CHANCE / len(parts)) < 1 - alpha
    ]
    what = (
        "intervals of the row's own width"
        if own
        else f"±{show(float(claim.value), 'number', '<=')}"
    )
    text = (
        f"Coverage of {what} by fifths of the prediction:"
        f" {', '.join(show(s, 'rate') for s in shares)}"
    )
    if seldom:
        text += (
            f". Coverage of {promised} holds on average over all rows (marginal coverage), not for"
            f" predictions {parts[worst].where}, of which {show(shares[worst], 'rate')} are"
            " covered."
        )
    else:
        text += (
            f". Coverage of {promised} is certified on average over all rows, and no fifth is below"
            " it by more than chance."
        )
    numbers: dict[str, Any] = {
        "coverage": tuple(shares),
        "rows": tuple(part.rows for part in parts),
    }
    if own:
        numbers["half_width"] = tuple(part.width for part in parts)
    severity = "warning" if seldom else "info"
    finding = Finding(code="SL302", text=text, severity=severity, numbers=numbers)
    last = "half-width, on average" if own else f"± for {promised} of them"
    header = ("predictions", "rows", "coverage", last)
    rows = tuple(
        (
            part.where,
            f"{part.rows:,}",
            show(share, "rate"),
            show(part.width if own else part.radius, "number"),
        )
        for part, share in zip(parts, shares, strict=True)
    )
    cut = "fit rows'" if len(targets) else f"{context.held_back}rows'"
    note = (
        f"Coverage was measured on {len(y):,} {context.held_back}rows, cut at fifths of the {cut}"
        " predictions."
    )
    note += "" if own else " The certified width is constant."
    notes = [note, *_beyond(context), *_of_forms(context, float(claim.value) if own else None)]
    return ENTRY.says(
        findings=(finding,),
        notes=notes,
        tables=(PageTable(header=header, rows=rows), *_table_of_forms(context)),
    )


def widths_in_words(context: Context) -> str:
    """How wide the intervals of certify rows are, measured."""
    X, _ = context.rows("certify")
    low, high = _ends(context, np.asarray(predict_with(context.model)(X), dtype=float))
    half = (high - low) / 2
    few, many = (show(float(np.quantile(half, share)), "number") for share in (0.1, 0.9))
    return (
        f", whose half-width is {show(float(half.mean()), 'number')} on average, {few} to {many} for"
        " four rows in five, measured"
    )


def _ends(context: Context, predicted: Array) -> tuple[Array, Array]:
    """(n,), (n,): the ends of the certify rows' intervals."""
    X, _ = context.rows("certify")
    found = intervals(context.model, X, context.certificate, predicted)
    nowhere = np.full(predicted.shape, np.nan)
    return (nowhere, nowhere) if isinstance(found, Lacking) else found


def _beyond(context: Context) -> list[str]:
    """Certify rows outside the stated range."""
    facts = context.certificate.facts
    stated = facts.options.get("target_range")
    if stated is None:
        return []
    said = f"Intervals are clipped to the stated range, {stated[0]:,.10g} to {stated[1]:,.10g}"
    lost = facts["outside.count"]
    if not lost:
        return [f"{said}; a target outside it would count as not covered."]
    return [f"{said}; {lost:,} of {facts['rows']:,} rows lie outside it and count as not covered."]


def _of_forms(context: Context, score: float | None) -> list[str]:
    """Which form of intervals was chosen, and why, and what its score means; None: it is constant."""
    compared, used = context.widths
    asked = context.options.width
    if not compared and score is None and asked not in (None, "constant"):
        why = "too few rows were predicted by fits without them to learn widths"
        if context.suspects:
            why = "beside a column that may repeat the target, two models are certified by one distance"
        return [f"The form {asked} was asked for and is not used: {why}."]
    if not compared:
        return []
    how = "The form of the intervals was stated."
    if len(compared) == len(FORMS):
        how = (
            "The form of the intervals was chosen on the rows to fit on, by out-of-fold predictions and"
            " before any other row was looked at: the narrowest one that holds as many of them; a"
            " simpler one where it is within a paired standard error."
        )
    if score is None:
        return [how]
    by = show(score, "number", "<=")
    means = {
        "normalized": f"Certified intervals are {by} times as wide as the rows to fit on suggest.",
        "quantiles": (
            f"Certified intervals are those that the rows to fit on suggest, each end moved outward by"
            f" {by} half-widths."
        ),
    }
    return [how, *([means[used]] if used in means else [])]


def _table_of_forms(context: Context) -> tuple[PageTable, ...]:
    """Forms with their mean half-widths on the rows to fit on."""
    widths, used = context.widths
    if not widths:
        return ()
    rows = tuple(
        (
            f"{one.form}, used" if one.form == used else one.form,
            show(one.mean / 2, "number"),
            "" if one.form == "constant" else f"{one.gain / widths[0].mean:.1%}",
            "" if one.form == "constant" else f"{one.error / widths[0].mean:.1%}",
        )
        for one in widths
    )
    header = ("form", "half-width on the rows to fit on", "narrower by", "± one standard error")
    return (PageTable(header=header, rows=rows),)


def fifths(
    known: npt.NDArray[np.float64],
    predicted: npt.NDArray[np.float64],
    errors: npt.NDArray[np.float64],
    radius: float,
    alpha: float,
    widths: npt.NDArray[np.float64] | None = None,
) -> list[Fifth]:
    """Rows with predictions (n,) and absolute errors or scores (n,), and half-widths, by fifths of the
    ``known`` predictions; empty ones are left out.

    Examples
    --------
    >>> p = np.arange(10.0)
    >>> [part.covered for part in fifths(p, p, np.where(p > 7, 3.0, 1.0), 2.0, 0.1)]
    [2, 2, 2, 2, 0]
    """
    cuts = np.unique(np.quantile(known, np.arange(1, FIFTHS) / FIFTHS))
    edges, index = np.concatenate(([-np.inf], cuts, [np.inf])), np.searchsorted(cuts, predicted)
    made = []
    for i in np.unique(index):
        off = errors[index == i]
        low, high = float(edges[i]), float(edges[i + 1])
        made.append(
            Fifth(
                low,
                high,
                off.size,
                int((off <= radius).sum()),
                float(np.quantile(off, 1 - alpha, method="higher")),
                np.nan if widths is None else float(widths[index == i].mean()),
            )
        )
    return made


ENTRY = Entry(
    key="coverage", title="Prediction interval: coverage by size of the prediction", write=section
)
