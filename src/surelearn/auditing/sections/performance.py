"""Section: how good it is in the numbers that people look for: ROC and precision–recall curves, the
confusion matrix, recall and precision of each class; RMSE and R² of a regression.
"""

from __future__ import annotations

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.writing import Entry
from surelearn.claim import Claim
from surelearn.lacking import Lacking
from surelearn.measurement import area_under_curve
from surelearn.plain import show
from surelearn.report import Chart, PageTable, Section
from surelearn.subject import subject_of
from surelearn.subject.probabilities import probabilities_of
from surelearn.types import AnyArray, Array, Bools

MOST_CLASSES = 12  # of a confusion matrix that fits on the page
POINTS = 60  # of a curve
EQUAL = 1e-12  # a standard deviation, of the largest target, that is rounding
FAR_BELOW = -100.0


def section(context: Context) -> Section | None:
    """Of the certify rows; what is guaranteed of it stands in the certificate."""
    if context.task == "losses":
        return None
    X, y = context.rows("certify")
    predicted = np.asarray(subject_of(context.model).predict(X))
    if context.task == "regression":
        return ENTRY.says(tables=(_of_numbers(context, predicted, y),))
    notes, charts = _curves(context, X, y)
    tables = [_of_classes(context, predicted, y)]
    if len(context.labels) <= MOST_CLASSES:
        tables.append(_confusion(context, predicted, y))
    return ENTRY.says(notes=notes, charts=charts, tables=tables)


def baseline_of_numbers(context: Context) -> float | None:
    """The median of the rows fitted on, which is answered always; None where they are not known."""
    return float(np.median(context.rows("train")[1])) if context.trained else None


def errors_of_numbers(predicted: AnyArray, y: AnyArray, alpha: float) -> dict[str, float]:
    """Mean absolute error, root mean squared error, and the distance within which 1 − α of the
    answers are.
    """
    size = np.abs(np.asarray(predicted, float) - np.asarray(y, float))
    largest = float(size.max()) or 1.0  # so that squares do not overflow
    return {
        "mean absolute error": float(size.mean()),
        "RMSE": largest * float(np.sqrt(np.square(size / largest).mean())),
        f"{100 * (1 - alpha):g}% are within": float(
            np.quantile(size, 1 - alpha, method="inverted_cdf")
        ),
    }


def r_squared(predicted: AnyArray, y: AnyArray) -> float | None:
    """1 − the squared errors over those of the mean of these rows; None where all are equal, up to
    rounding.
    """
    y, predicted = np.asarray(y, float), np.asarray(predicted, float)
    largest = float(np.abs(y).max()) or 1.0  # so that squares do not overflow
    spread = float(np.sqrt(np.square((y - y.mean()) / largest).mean()))
    left = float(np.abs(y - predicted).max()) or 1.0
    if spread < EQUAL:
        return None
    ratio = left / largest / spread * float(np.sqrt(np.square((y - predicted) / left).mean()))
    return 1 - min(ratio, 1e150) ** 2


def r_squared_in_words(fraction: float | None, digits: int) -> str:
    """R² with so many digits; far below 0 they say nothing."""
    if fraction is None:
        return ""
    return f"{fraction:.{digits}f}" if fraction > FAR_BELOW else f"below {FAR_BELOW:g}"


def _of_numbers(context: Context, predicted: AnyArray, y: AnyArray) -> PageTable:
    alpha, median = context.options.alpha, baseline_of_numbers(context)
    own = errors_of_numbers(predicted, y, alpha)
    constant = {} if median is None else errors_of_numbers(np.full(len(y), median), y, alpha)
    rows = [
        (name, show(value, "number"), show(constant[name], "number") if constant else "")
        for name, value in own.items()
    ]
    rows.append(("R²", r_squared_in_words(r_squared(predicted, y), 3), ""))
    return PageTable(
        header=(f"{context.held_back}rows, measured", "the model", "always the median"),
        rows=tuple(rows),
    )


def _of_classes(context: Context, predicted: AnyArray, y: AnyArray) -> PageTable:
    """Recall and precision of each class."""
    rows: list[tuple[str, ...]] = []
    for label in context.labels:
        true, said = np.asarray(y == label), np.asarray(predicted == label)
        both = int((true & said).sum())
        rates = [
            show(both / n, "rate") if n else "no such row"
            for n in (int(true.sum()), int(said.sum()))
        ]
        rows.append((str(label), f"{int(true.sum()):,}", *rates))
    return PageTable(
        header=("class", f"{context.held_back}rows", "recall, measured", "precision, measured"),
        rows=tuple(rows),
    )


def _confusion(context: Context, predicted: AnyArray, y: AnyArray) -> PageTable:
    labels = context.labels
    counts = [[int(((y == t) & (predicted == p)).sum()) for p in labels] for t in labels]
    rows = [
        (f"is {label}", *(f"{count:,}" for count in row))
        for label, row in zip(labels, counts, strict=True)
    ]
    return PageTable(
        header=("confusion matrix", *(f"answered {label}" for label in labels)), rows=tuple(rows)
    )


def _curves(
    context: Context, X: AnyArray, y: AnyArray
) -> tuple[tuple[str, ...], tuple[Chart, ...]]:
    """ROC and precision–recall curves of a class that matters, of two the second."""
    positive = context.options.positive
    if positive is None and len(context.classes) == 2:
        positive = context.classes[1]
    if positive is None or not subject_of(context.model).gives_probabilities:
        return (), ()
    scores, is_positive = (
        probabilities_of(context.model, X, context.classes),
        np.asarray(y == positive),
    )
    if isinstance(scores, Lacking):
        return (f"No curves: {scores.reason}.",), ()
    if is_positive.all() or not is_positive.any():
        return (), ()
    score = scores[:, context.classes.index(positive)]
    # three digits are what a chart shows
    false, true, precision = (np.round(one, 3) for one in curve_points(score, is_positive))
    precise = average_precision(score, is_positive)
    area = area_under_curve(score, is_positive)
    found = (c for c in context.certificate.together if c.quantity == "auc" and not c.vacuous)
    claim: Claim | None = next(found, None)
    surely = "" if claim is None else f" (guaranteed {claim.bound()})"
    note = (
        f"AUC for {positive} {area:.3f}{surely}; average precision {precise:.3f}, and"
        f" {is_positive.mean():.3f} for scores that say nothing (measured)."
    )
    kept = np.unique(np.linspace(0, len(true) - 1, POINTS).astype(int))
    roc = {
        "x": false[kept].tolist(),
        "y": true[kept].tolist(),
        "x_label": "false positive rate",
        "x_unit": "rate",
    }
    later = kept[kept > 0]  # nothing is called positive at first: it has no precision
    recall = {
        "x": true[later].tolist(),
        "y": precision[later].tolist(),
        "x_label": "recall",
        "x_unit": "rate",
    }
    charts = (
        Chart(
            kind="curve",
            title=f"ROC curve: true positive rate for {positive}",
            data={**roc, "low": [None] * len(kept), "high": [None] * len(kept), "unit": "rate"},
        ),
        Chart(
            kind="curve",
            title=f"Precision–recall curve: precision for {positive}",
            data={
                **recall,
                "low": [None] * len(later),
                "high": [None] * len(later),
                "unit": "rate",
            },
        ),
    )
    return (note,), charts


def curve_points(score: Array, is_positive: Bools) -> tuple[Array, Array, Array]:
    """False positive rate, true positive rate and precision, from the highest threshold down; rows
    of one score are called positive together. The first point calls nothing positive.

    Examples
    --------
    >>> false, true, precise = curve_points(np.array([0.9, 0.8, 0.8]), np.array([True, True, False]))
    >>> false.tolist(), true.tolist(), precise.round(2).tolist()
    ([0.0, 0.0, 1.0], [0.0, 0.5, 1.0], [1.0, 1.0, 0.67])
    """
    order = np.argsort(-score, kind="stable")
    last = np.append(np.flatnonzero(np.diff(score[order])), score.size - 1)
    caught = np.concatenate(([0], np.cumsum(is_positive[order])[last]))
    called = np.concatenate(([0], last + 1))
    positives = int(is_positive.sum())
    return (
        (called - caught) / max(1, score.size - positives),
        caught / max(1, positives),
        np.where(called > 0, caught / np.maximum(called, 1), 1.0),
    )


def average_precision(score: Array, is_positive: Bools) -> float:
    """Precision, averaged over the steps of recall."""
    _, true, precise = curve_points(score, is_positive)
    return float(np.sum(np.diff(true) * precise[1:]))


ENTRY = Entry(key="performance", title="Performance", write=section)
