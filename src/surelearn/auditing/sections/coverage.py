"""Section: the interval of a regression holds on average; how often it does for small and for
large predictions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelearn.auditing.context import Context
from surelearn.auditing.writing import Entry
from surelearn.bounds import clopper_pearson
from surelearn.claim import Finding
from surelearn.plain import show
from surelearn.report import PageTable, Section
from surelearn.subject import predict_with

FIFTHS = 5
CHANCE = 0.01  # that a fifth is called far below although none is


@dataclass(frozen=True)
class Fifth:
    """The rows whose prediction lies between two cut points: how many, and how often the
    interval holds the truth.
    """

    low: float
    high: float
    rows: int
    covered: int
    radius: float

    @property
    def where(self) -> str:
        """The range of its predictions, for people."""
        if np.isinf(self.low):
            return f"up to {self.high:,.4g}"
        return (
            f"above {self.low:,.4g}"
            if np.isinf(self.high)
            else f"{self.low:,.4g} to {self.high:,.4g}"
        )


def section(context: Context) -> Section | None:
    """Coverage of the certified interval by fifths of the prediction, measured; nothing where
    no interval is certified.
    """
    claims = [claim for claim in context.certificate.together if claim.quantity == "error_quantile"]
    if not claims or isinstance(claims[0].value, tuple) or not np.isfinite(claims[0].value):
        return None
    radius, alpha = float(claims[0].value), context.options.alpha
    # fifths are cut on the predictions of the rows fitted on, and filled with certify rows
    X, y = context.rows("certify")
    predict = predict_with(context.model)
    predicted = np.asarray(predict(X), dtype=float)
    fitted_on, targets = context.rows("train")
    known = np.asarray(predict(fitted_on), dtype=float) if len(targets) else predicted
    parts = fifths(known, predicted, np.abs(predicted - np.asarray(y, dtype=float)), radius, alpha)
    if len(parts) < 2:
        return None
    shares = [part.covered / part.rows for part in parts]
    promised, worst = f"{100 * (1 - alpha):g}%", int(np.argmin(shares))
    low = [
        part
        for part in parts
        if clopper_pearson(part.covered, part.rows, CHANCE / len(parts)) < 1 - alpha
    ]
    text = (
        f"Coverage of ±{show(radius, 'number')} by fifths of the prediction:"
        f" {', '.join(show(s, 'rate') for s in shares)}"
    )
    if low:
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
    finding = Finding(
        code="SL302",
        text=text,
        severity="warning" if low else "info",
        numbers={"coverage": tuple(shares), "rows": tuple(part.rows for part in parts)},
    )
    header = ("predictions", "rows", "coverage", f"± for {promised} of them")
    rows = tuple(
        (part.where, f"{part.rows:,}", show(share, "rate"), show(part.radius, "number"))
        for part, share in zip(parts, shares, strict=True)
    )
    cut = "fit rows'" if len(targets) else f"{context.held_back}rows'"
    note = (
        f"Coverage was measured on {len(y):,} {context.held_back}rows, cut at fifths of the {cut}"
        " predictions. The certified width is constant."
    )
    return ENTRY.says(
        findings=(finding,), notes=(note,), tables=(PageTable(header=header, rows=rows),)
    )


def fifths(
    known: npt.NDArray[np.float64],
    predicted: npt.NDArray[np.float64],
    errors: npt.NDArray[np.float64],
    radius: float,
    alpha: float,
) -> list[Fifth]:
    """Rows with predictions (n,) and absolute errors (n,) by fifths of the ``known`` predictions;
    empty ones are left out.

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
            )
        )
    return made


ENTRY = Entry(
    key="coverage", title="Prediction interval: coverage by size of the prediction", write=section
)
