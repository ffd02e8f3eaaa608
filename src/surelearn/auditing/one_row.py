"""What one row does to the model: left out exactly where there is a closed form, else by refits; β where it is certified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from surelearn import jobs
from surelearn.auditing.context import Context
from surelearn.auditing.refitting import refit
from surelearn.certificate import Certificate
from surelearn.claim import Claim, Finding
from surelearn.plain import show
from surelearn.report import Table
from surelearn.selection.cross_validation import take
from surelearn.selection.selector import Selection

PREPARED = "the fit rows were looked at before: to prepare columns, and to choose among candidates"
_MOST_WORK = 2e9  # multiplications for all fits without one row; beyond, a sample of rows is left out
_MOST_POINTS = 2000  # rows at which predictions are compared
_REPLACEMENTS = 3
_MANY = 0.05  # a row that changes so many predictions is one too many


@dataclass(frozen=True, eq=False)
class Changes:
    """How predictions change without one row: a number by at most ``largest``, ``share`` of the classes; over ``rows``."""

    largest: float
    share: float | None
    rows: int
    exact: bool


def learner_of(model: Any) -> tuple[Any, Any]:
    """The steps that prepare rows, or None, and the learner they are prepared for."""
    from sklearn.pipeline import Pipeline

    model = inside_threshold(model)
    if not isinstance(model, Pipeline):
        return None, model
    return (model[:-1] if len(model.steps) > 1 else None), model[-1]


def inside_threshold(model: Any) -> Any:
    """The model whose decision threshold was moved, or the model itself."""
    from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

    return model.estimator_ if isinstance(model, FixedThresholdClassifier | TunedThresholdClassifierCV) else model


def kernel_machine(learner: Any) -> tuple[Any, Any] | None:
    """The step that prepares targets, or None, and the EigenPro learner they are prepared for; None for other learners.

    One with a precomputed kernel holds no rows, and counts as another.
    """
    from sklearn.compose import TransformedTargetRegressor

    from surelearn.kernel.eigenpro import EigenProClassifier, EigenProRegressor

    scaling = None
    if isinstance(learner, TransformedTargetRegressor):
        scaling, learner = learner.transformer_, learner.regressor_
    ours = isinstance(learner, EigenProClassifier | EigenProRegressor) and learner.centers_ is not None
    return (scaling, learner) if ours else None


def own_certificate(model: Any, selection: Selection | None, dropped: Sequence[str] = ()) -> Certificate | str:
    """What the learner guarantees from the rows it was fitted on, or why that is void here.

    It is not void if this was the only candidate, no step before the learner learned anything from the rows, and no column
    was ``dropped`` because of what it says about the labels.
    """
    if selection is None:
        return "how the model was fitted is not known here"
    if dropped:
        names = ", ".join(map(repr, dropped))
        return f"{names} left out because of the fit rows' labels: which columns there are was not fixed beforehand"
    from sklearn.utils import get_tags

    steps, learner = learner_of(model)
    certificate = getattr(learner, "certificate_", None)
    if len(selection.names) > 1 or not isinstance(certificate, Certificate):
        return PREPARED
    if inside_threshold(model) is not model:
        return "the decision threshold may have been chosen on them"
    learned = [name for name, step in getattr(steps, "steps", []) if step != "passthrough" and get_tags(step).requires_fit]
    return f"the step {learned[0]!r} was fitted on the same rows" if learned else certificate


def measure(context: Context) -> Changes:
    """Leave rows out of the fit rows one by one, and compare predictions of certify rows."""
    new, _ = context.rows("certify")
    new = take(new, np.sort(np.random.default_rng(context.seed("one row/points")).permutation(len(new))[:_MOST_POINTS]))
    exact = _in_closed_form(context, new)
    return _by_refits(context, new) if exact is None else exact


def _in_closed_form(context: Context, new: Any) -> Changes | None:
    """With every row of a ridge, logistic or kernel regression left out in turn; None where there is no closed form."""
    steps, learner = learner_of(context.model)
    X, y = context.rows("train")
    if machine := kernel_machine(learner):
        return _of_kernel(*machine, new if steps is None else steps.transform(new))
    if not hasattr(learner, "leave_one_out") or np.ndim(y) != 1:
        return None
    Z, points = (X, new) if steps is None else (steps.transform(X), steps.transform(new))
    Z, points = np.asarray(Z, dtype=float), np.asarray(points, dtype=float)
    rows = min(len(Z), int(_MOST_WORK / max(Z.size, points.size)))
    which = np.sort(np.random.default_rng(context.seed("one row/rows")).permutation(len(Z))[:rows])
    try:
        fits = learner.leave_one_out(Z, y, rows=which)
    except ValueError:
        return None
    before = points @ fits.full_weights + fits.full_intercept
    after = points @ fits.weights.T + fits.intercepts  # (m, k)
    if context.task == "regression":
        return Changes(largest=float(np.abs(after - before[:, None]).max()), share=None, rows=rows, exact=True)
    cut = 0.0 if context.threshold is None else float(np.log(context.threshold / (1 - context.threshold)))
    cut *= 1.0 if context.options.positive in (None, learner.classes_[1]) else -1.0
    return Changes(
        largest=float(np.abs(expit(after) - expit(before)[:, None]).max()),
        share=float(((after > cut) != (before > cut)[:, None]).mean(axis=0).max()),
        rows=rows,
        exact=True,
    )


def _of_kernel(scaling: Any, machine: Any, points: Any) -> Changes | None:
    """The same for a kernel machine that was solved directly."""
    from surelearn.kernel.left_out import left_out

    fits = left_out(machine, points)
    if fits is None:
        return None
    rows = len(fits.pull)
    if hasattr(machine, "classes_"):
        before = classes_of(fits.full)
        share = max(float((classes_of(values) != before).mean()) for values in fits.values())
        return Changes(largest=float("nan"), share=share, rows=rows, exact=True)
    before = in_units(fits.full, scaling)
    largest = max(float(np.abs(in_units(values, scaling) - before).max()) for values in fits.values())
    return Changes(largest=largest, share=None, rows=rows, exact=True)


def classes_of(scores: Any) -> Any:
    """The positions of the classes that scores (m, outputs) choose."""
    return scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(axis=1)


def in_units(values: Any, scaling: Any) -> Any:
    """Predictions in the targets' own units."""
    return values if scaling is None else np.asarray(scaling.inverse_transform(values))


def _by_refits(context: Context, new: Any) -> Changes:
    X, y = context.rows("train")
    rows = np.random.default_rng(context.seed("one row/refits")).permutation(len(y))[: context.options.refits]
    shared = {"model": context.unfitted, "X": X, "y": y, "new": new}
    others = [np.delete(np.arange(len(y)), r) for r in rows]
    tasks = [
        jobs.Task(key=f"one row/{r}", function=refit, arguments={**shared, "rows": rest})
        for r, rest in zip(rows, others, strict=True)
    ]
    results = context.runner.run(tasks, "fits without one row")
    predicted = np.asarray(context.model.predict(new))
    if context.task == "regression":
        largest = max(float(np.abs(r["predictions"] - predicted).max()) for r in results)
        return Changes(largest=largest, share=None, rows=len(rows), exact=False)
    moved: list[float] = []
    if hasattr(context.model, "predict_proba"):
        scores = np.asarray(context.model.predict_proba(new))
        moved = [float(np.abs(r["scores"] - scores).max()) for r in results if r["scores"].shape == scores.shape]
    share = max(float(np.mean(r["predictions"] != predicted)) for r in results)
    return Changes(largest=max(moved, default=float("nan")), share=share, rows=len(rows), exact=False)


def finding(context: Context, changes: Changes) -> Finding:
    """In words."""
    fitted = len(context.rows("train")[1])
    which = f"any one of the {fitted:,} fit rows" if changes.rows == fitted else f"one of {changes.rows:,} sampled rows"
    how = "in closed form, columns prepared as before" if changes.exact else f"by {changes.rows} refits"
    if changes.share is None:
        text = f"Leaving out {which} ({how}) moves a prediction by at most {show(changes.largest, 'number')}."
    else:
        text = f"Leaving out {which} ({how}) changes at most {show(changes.share, 'rate')} of predictions"
        text += f" and a probability by at most {changes.largest:.2g}." if np.isfinite(changes.largest) else "."
    numbers = {"largest change": changes.largest, "share": changes.share, "rows left out": changes.rows}
    numbers = {name: value for name, value in numbers.items() if value is not None and np.isfinite(value)}
    severity = "warning" if (changes.share or 0.0) > _MANY else "info"
    return Finding(code="SL402", text=text, severity=severity, numbers=numbers)


def beside_certified(context: Context) -> tuple[Table | None, str]:
    """The certified β beside the largest change of the loss that was found, or a sentence that says why there is none."""
    own = own_certificate(context.model, context.selection, context.suspects)
    if isinstance(own, str):
        return None, f"No stability constant is certified: {own}."
    beta = next((claim for claim in own.claims if claim.quantity == "uniform stability"), None)
    if beta is None:
        reasons = [absent.reason for absent in own.absent if absent.quantity == "uniform stability"]
        return None, f"No stability constant is certified: {reasons[0]}." if reasons else ""
    rows = [(f"certified: no replacement of one row moves the {beta.covers.loss} loss by more", f"{beta.value:.3g}")]
    found = _largest_loss_change(context, beta)
    if found is not None:
        rows.append((f"measured: the largest change found, {found[1]:,} replacements", f"{found[0]:.3g}"))
    return Table(header=("one row replaced by another", "change of the loss"), rows=tuple(rows)), ""


def _largest_loss_change(context: Context, beta: Claim) -> tuple[float, int] | None:
    """Every fit row replaced by a few certify rows, the loss compared at certify rows; and how many replacements."""
    from surelearn.linear.leave_one_out import largest_change

    steps, learner = learner_of(context.model)
    if not hasattr(learner, "leave_one_out"):
        return None
    (X, y), (new, truth) = context.rows("train"), context.rows("certify")
    Z, points = ((np.asarray(part if steps is None else steps.transform(part), dtype=float)) for part in (X, new))
    if learner.intercept == "regularized":
        Z, points = (np.column_stack([part, np.ones(len(part))]) for part in (Z, points))
    if context.task == "classification":
        y, truth = (np.where(labels == learner.classes_[1], 1.0, -1.0) for labels in (y, truth))
    picked = np.random.default_rng(context.seed("one row/replacements")).permutation(len(points))[:_MOST_POINTS]
    rows = np.arange(min(len(Z), int(_MOST_WORK / max(Z.size, points.size))))
    others = picked[:_REPLACEMENTS]
    change = largest_change(
        Z, y, beta.inputs["regularization"], (points[others], truth[others]), points=(points[picked], truth[picked]),
        loss="squared" if context.task == "regression" else "logistic", rows=rows,
    )  # fmt: skip
    return change.value, rows.size * others.size
