"""What one row does to the model: left out exactly where there is a closed form, else by
refits; β where it is certified.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from surelearn import jobs
from surelearn.attacks.influence_known import leave_one_out
from surelearn.auditing.claims import own_certificate
from surelearn.auditing.context import Context
from surelearn.auditing.own_threshold import own_threshold
from surelearn.auditing.refitting import refit
from surelearn.claim import Claim, Finding
from surelearn.lacking import Lacking
from surelearn.plain import show
from surelearn.report import PageTable
from surelearn.subject import Closed, subject_of
from surelearn.subject.forms import LinearForm
from surelearn.subject.refitting import take
from surelearn.types import Array

# multiplications for all fits without one row; beyond, a sample of rows is left out
_MOST_WORK = 2e9
_FEWEST = 2  # rows left out in any case
# scores that all choices of a threshold without one row look at
_MOST_SCORES = 2e7
_MOST_POINTS = 2000  # rows at which predictions are compared
_REPLACEMENTS = 3
_MANY = 0.05  # a row that changes so many predictions is one too many


@dataclass(frozen=True, eq=False)
class Changes:
    """How predictions change without one row: a number by at most ``largest``, ``share`` of the
    classes; over ``rows``.
    """

    largest: float
    share: float | None
    rows: int
    exact: bool


def tasks(context: Context, refits: int) -> list[jobs.Task]:
    """So many refits without one row; none where there is a closed form."""
    if _has_closed_form(context):
        return []
    X, y = context.rows("train")
    own = own_threshold(context, nearly_all=True)
    shared = {"model": context.unfitted, "X": X, "y": y, "new": _points(context), "own": own}
    return [
        jobs.Task(
            key=f"one row/{r}",
            function=refit,
            arguments={**shared, "rows": np.delete(np.arange(len(y)), r)},
        )
        for r in np.random.default_rng(context.seed("one row/refits")).permutation(len(y))[:refits]
    ]


def measure(context: Context, refits: Sequence[Any]) -> Changes | Lacking:
    """Leave rows out of the fit rows one by one, and compare predictions of certify rows."""
    return _by_refits(context, refits) if refits else _in_closed_form(context)


def _points(context: Context) -> Any:
    """The certify rows at which predictions are compared."""
    new, _ = context.rows("certify")
    return take(
        new,
        np.sort(
            np.random.default_rng(context.seed("one row/points")).permutation(len(new))[
                :_MOST_POINTS
            ]
        ),
    )


def _has_closed_form(context: Context) -> bool:
    subject = subject_of(context.model)
    return not isinstance(subject.leave_one_out, Lacking) and not isinstance(
        subject.objective, Lacking
    )


def _in_closed_form(context: Context) -> Changes | Lacking:
    """With every row of a ridge, logistic or kernel regression left out in turn."""
    subject, (X, y), new = subject_of(context.model), context.rows("train"), _points(context)
    objective = subject.objective
    if isinstance(objective, Lacking):
        return objective
    which, own = np.arange(len(y)), own_threshold(context, nearly_all=True)
    rows = len(y) if own is None else min(len(y), int(_MOST_SCORES / len(y)))
    if objective.kernel == "linear":
        Z, new_rows = subject.prepared(X), subject.prepared(new)
        size = max(np.size(Z), np.size(new_rows))
        if objective.loss == "logistic" and Z.shape[1] > Z.shape[0]:
            size = max(size, Z.shape[0] ** 3 // 10)  # many need a Hessian of their own
        rows = min(rows, max(_FEWEST, int(_MOST_WORK / size)))
    if rows < len(y):
        which = np.sort(
            np.random.default_rng(context.seed("one row/rows")).permutation(len(y))[:rows]
        )
    fits = leave_one_out(subject, X, y, new, rows=which)
    if isinstance(fits, Lacking):
        return fits
    if context.task == "regression":
        before = in_units(fits.full, subject.target)
        largest = max(
            float(np.abs(in_units(values, subject.target) - before).max()) for values in fits.each()
        )
        return Changes(largest=largest, share=None, rows=len(which), exact=True)
    if objective.loss != "logistic":
        before = classes_of(fits.full)
        share = max(float((classes_of(values) != before).mean()) for values in fits.each())
        return Changes(largest=float("nan"), share=share, rows=len(which), exact=True)
    before = fits.full > _cut(context, context.threshold)
    largest = share = 0.0
    for row, values in zip(which, fits.each(), strict=True):
        rows = np.delete(np.arange(len(y)), row)
        threshold = context.threshold if own is None else own.of(X, y[rows], rows)
        largest = max(largest, float(np.abs(expit(values) - expit(fits.full)).max()))
        share = max(share, float(((values > _cut(context, threshold)) != before).mean()))
    return Changes(largest=largest, share=share, rows=len(which), exact=True)


def _cut(context: Context, threshold: float | None) -> float:
    """The score from which on the second class is answered, at a probability of the class that
    matters.
    """
    cut = 0.0 if threshold is None else float(np.log(threshold / (1 - threshold)))
    classes = subject_of(context.model).learner.classes or ()
    return cut if context.options.positive in (None, *classes[1:]) else -cut


def classes_of(scores: Array) -> Any:
    """The positions of the classes that scores (m, outputs) choose."""
    return scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(axis=1)


def in_units(values: Array, scaling: Any) -> Any:
    """Predictions in the targets' own units."""
    return values if scaling is None else np.asarray(scaling.inverse_transform(values))


def _by_refits(context: Context, results: Sequence[Any]) -> Changes:
    new = _points(context)
    predicted = np.asarray(context.model.predict(new))
    if context.task == "regression":
        largest = max(float(np.abs(r["predictions"] - predicted).max()) for r in results)
        return Changes(largest=largest, share=None, rows=len(results), exact=False)
    moved: list[float] = []
    if subject_of(context.model).gives_probabilities:
        scores = np.asarray(context.model.predict_proba(new))
        moved = [
            float(np.abs(r["scores"] - scores).max())
            for r in results
            if r["scores"].shape == scores.shape
        ]
    share = max(float(np.mean(r["predictions"] != predicted)) for r in results)
    return Changes(
        largest=max(moved, default=float("nan")), share=share, rows=len(results), exact=False
    )


def finding(context: Context, changes: Changes) -> Finding:
    """SL402: the largest change of a prediction when one training row is left out."""
    fitted = len(context.rows("train")[1])
    which = (
        f"any one of the {fitted:,} training rows"
        if changes.rows == fitted
        else f"one of {changes.rows:,} sampled training rows"
    )
    how = (
        "in closed form, preprocessing unchanged" if changes.exact else f"by {changes.rows} refits"
    )
    if changes.share is None:
        text = (
            f"Leave-one-out: removing {which} ({how}) moves a prediction by at most"
            f" {show(changes.largest, 'number')}."
        )
    else:
        text = (
            f"Leave-one-out: removing {which} ({how}) changes at most {show(changes.share, 'rate')}"
            " of predictions"
        )
        text += (
            f" and a probability by at most {changes.largest:.2g}."
            if np.isfinite(changes.largest)
            else "."
        )
    numbers = {
        "largest_change": changes.largest,
        "share": changes.share,
        "rows_left_out": changes.rows,
    }
    numbers = {
        name: value for name, value in numbers.items() if value is not None and np.isfinite(value)
    }
    severity = "warning" if (changes.share or 0.0) > _MANY else "info"
    return Finding(code="SL402", text=text, severity=severity, numbers=numbers)


def beside_certified(context: Context) -> PageTable | Lacking | None:
    """The certified β beside the largest change of the loss that was found, or why there is none;
    None for a learner whose certificate does not mention one.
    """
    own = own_certificate(context.model, context.selection, context.suspects)
    if isinstance(own, Lacking):
        return Lacking("β", f"No uniform stability constant β is certified: {own.reason}")
    beta = next((claim for claim in own.claims if claim.quantity == "uniform_stability"), None)
    if beta is None:
        reasons = [absent.reason for absent in own.lacking if absent.what == "uniform_stability"]
        why = [f"No uniform stability constant β is certified: {reason}" for reason in reasons]
        return Lacking("β", why[0]) if why else None
    rows = [(f"certified uniform stability β of the {beta.covers.loss} loss", f"{beta.value:.3g}")]
    found = _largest_loss_change(context, beta)
    if found is not None:
        rows.append((f"largest change measured, {found[1]:,} replacements", f"{found[0]:.3g}"))
    return PageTable(
        header=("one training row replaced by another", "change of the loss"), rows=tuple(rows)
    )


def _largest_loss_change(context: Context, beta: Claim) -> tuple[float, int] | None:
    """Every fit row replaced by a few certify rows, the loss compared at certify rows; and how
    many replacements.
    """
    from surelearn.linear.leave_one_out import largest_change

    subject = subject_of(context.model)
    objective, classes = subject.objective, subject.learner.classes
    linear = isinstance(subject.learner.form, Closed) and isinstance(
        subject.learner.form.form, LinearForm
    )
    if (
        isinstance(objective, Lacking)
        or not linear
        or objective.loss not in ("squared", "logistic")
    ):
        return None
    (X, y), (new, truth) = context.rows("train"), context.rows("certify")
    Z, points = (np.asarray(subject.prepared(part), dtype=float) for part in (X, new))
    if objective.intercept == "regularized":
        Z, points = (np.column_stack([part, np.ones(len(part))]) for part in (Z, points))
    if classes is not None:
        y, truth = (np.where(labels == classes[1], 1.0, -1.0) for labels in (y, truth))
    picked = np.random.default_rng(context.seed("one row/replacements")).permutation(len(points))[
        :_MOST_POINTS
    ]
    rows = np.arange(min(len(Z), int(_MOST_WORK / max(Z.size, points.size))))
    others = picked[:_REPLACEMENTS]
    change = largest_change(
        Z, y, beta.inputs["regularization"], (points[others], truth[others]), points=(points[picked], truth[picked]),
        loss="squared" if context.task == "regression" else "logistic", rows=rows,
    )  # fmt: skip
    return change.value, rows.size * others.size
