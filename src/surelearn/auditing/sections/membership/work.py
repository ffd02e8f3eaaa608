"""The work behind the section on membership: losses of rows, in the model and in the same model
fitted again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surelearn import jobs
from surelearn.auditing.context import Context, Unusable
from surelearn.auditing.seen import stack
from surelearn.auditing.single_rows import raised
from surelearn.certificate import Certificate
from surelearn.claim import Claim
from surelearn.lacking import Lacking
from surelearn.selection.cross_validation import columns_for, fit_quietly, take, take_for
from surelearn.subject import Task, predict_with, score_function, subject_of
from surelearn.subject.torch_modules import is_module

_MOST_TRIED = 2000  # rows of each kind that the attacks are tried on
_ROW_FITS = 150_000  # rows times refits of a likelihood ratio, at effort 1
_MOST_REFITS = 16
NOT_PRIVATE = Lacking("epsilon", "it was not fitted with differential privacy")
# the same of refits with (and as many without) one row; each steps over few rows at a time
_CANARY_FITS = 600_000
LEAST, _MOST, _TASKS = 16, 128, 8  # refits with (and as many without) one row, and their tasks


def tasks(context: Context) -> list[jobs.Task]:
    """The rows' losses in the model and in refits on halves of all rows; a private model's
    refits with and without a row.
    """
    if not context.trained:
        return []
    tried, pool, (X, y) = np.concatenate(tried_rows(context)), pool_of(context), _rows(context)
    kind, new, truth = context.task, take(X, tried), y[tried]
    own = {
        "model": context.model,
        "classes": context.classes or None,
        "X": new,
        "y": truth,
        "task": kind,
    }
    made = [jobs.Task("membership/model", observe, own)]
    if context.unfitted is None:
        return made
    shared = {
        "model": context.unfitted,
        "X": take(X, pool),
        "y": y[pool],
        "new": new,
        "truth": truth,
        "task": kind,
    }
    for i, inside in enumerate(halves_of(context)):
        made.append(
            jobs.Task(
                f"membership/refit {i}", observe_refit, {**shared, "rows": np.flatnonzero(inside)}
            )
        )
    return made + canary_tasks(context)


def tried_rows(context: Context) -> tuple[Any, Any]:
    """Rows that were fitted on, and rows that were not, that the attacks are tried on."""
    train, certify = _sides(context)
    made = [
        np.random.default_rng(context.seed("membership/rows")).permutation(rows)
        for rows in (train, certify)
    ]
    return np.sort(made[0][:_MOST_TRIED]), np.sort(made[1][:_MOST_TRIED])


def _sides(context: Context) -> tuple[Any, Any]:
    """Positions of both kinds among all rows."""
    if context.split is None:
        fitted = len(context.rows("train")[1])
        return np.arange(fitted), fitted + np.arange(len(context.y))
    return np.union1d(context.split.fit, context.split.select), context.split.certify


def _rows(context: Context) -> tuple[Any, Any]:
    """All rows: of the table, or those seen and then the others."""
    if context.seen is None:
        return context.X, context.y
    X, y = context.seen
    return stack(X, context.X), np.concatenate([y, context.y])


def pool_of(context: Context) -> Any:
    """Positions of all rows that were fitted on or certified with."""
    return np.union1d(*_sides(context))


def halves_of(context: Context) -> Any:
    """(refits, rows of the pool): which rows a refit has, in complementary pairs, so that each
    row is in half of them.
    """
    size, effort = pool_of(context).size, context.options.effort
    most = min(1.6 * context.options.refits, 2 * _ROW_FITS / size, _MOST_REFITS)
    pairs = 0 if context.unfitted is None else int(most * effort // 2)
    generator = np.random.default_rng(context.seed("membership/halves"))
    masks = [generator.permutation(size) < size // 2 for _ in range(pairs)]
    return np.array([half for mask in masks for half in (mask, ~mask)], dtype=bool).reshape(
        2 * pairs, size
    )


def carried(model: Any) -> Claim | Lacking:
    """The ε that the learner's certificate claims, or why it claims none."""
    certificate = subject_of(model).certificate
    if not isinstance(certificate, Certificate):
        return NOT_PRIVATE
    found = [claim for claim in certificate.claims if claim.quantity == "epsilon"]
    reasons = [absent for absent in certificate.lacking if absent.what == "epsilon"]
    return [*found, *reasons, NOT_PRIVATE][0]


def canary_tasks(context: Context) -> list[jobs.Task]:
    """Refits of a private classifier with and without one row, as many as the budget allows, in
    a few tasks.
    """
    if (
        context.task != "classification"
        or isinstance(carried(context.model), Lacking)
        or not context.options.refits
    ):
        return []
    X, y = context.rows("train")
    refits = int(min(_MOST, context.options.effort * _CANARY_FITS / len(y)))
    if refits < LEAST:
        return []
    randomness = np.random.default_rng(context.seed("membership/canary"))
    shared = {"model": context.model, "unfitted": context.unfitted, "X": X, "y": y}
    shared["tried"] = np.sort(randomness.permutation(len(y))[:2000])
    seeds = randomness.integers(2**31, size=(refits, 2))
    return [
        jobs.Task(f"membership/canary {i}", observe_canary, {**shared, "seeds": part})
        for i, part in enumerate(np.array_split(seeds, _TASKS))
    ]


FARTHEST = 40.0  # a margin of ±40 is a probability that cannot be told from 1 or 0


def observe(model: Any, X: Any, y: Any, task: Task, classes: Any = None) -> dict[str, Any]:
    """Each row's loss, the evidence that a likelihood ratio compares, and what of the model was
    ``seen``.

    Classes: the logarithmic loss, and ln(p/(1 − p)) of the right one; where there are no
    probabilities, its score above the best other one takes the place of ln(p/(1 − p)), or ±1 for
    right and wrong. Numbers: the absolute error, and the error. ``classes`` are the labels of a
    torch module's outputs, if they are not 0, 1, …
    """
    if task == "regression":
        errors = np.asarray(predict_with(model)(X), dtype=float).reshape(len(y)) - np.asarray(
            y, dtype=float
        )
        return {"losses": np.abs(_numbers(errors)), "evidence": errors, "seen": "predictions"}
    margins, seen = _margins(model, X, np.asarray(y), classes)
    margins = np.clip(_numbers(margins), -FARTHEST, FARTHEST)
    return {"losses": np.logaddexp(0.0, -margins), "evidence": margins, "seen": seen}


def observe_refit(
    model: Any, X: Any, y: Any, rows: Any, new: Any, truth: Any, task: Task
) -> dict[str, Any]:
    """One task: `observe` of a shadow model, a copy fitted on some rows. ``failed`` says why
    there is none.
    """
    try:
        fitted = fit_quietly(model, take_for(model, X, rows), y[rows])
        return observe(fitted, columns_for(model, new, rows), truth, task)
    except Exception as error:  # a refit may meet rows on which the model cannot be fitted
        return {"failed": raised(error)}


def observe_canary(
    model: Any, unfitted: Any, X: Any, y: Any, tried: Any, seeds: Any
) -> dict[str, Any]:
    """One row with a wrong label: how well refits with it know it, and refits without it, noise
    drawn anew in each.

    The row is the one of those ``tried`` that the model is surest about, so that a wrong label
    pulls hardest. ``seeds`` are (refits, 2). ``epsilon`` is what the certificate of a refit says.
    """
    row = tried[
        int(np.argmax(observe(model, take(X, tried), y[tried], "classification")["evidence"]))
    ]
    others = np.unique(y[y != y[row]])
    marked = y.copy()
    marked[row] = others[0]
    sets = (np.arange(len(y)), np.delete(np.arange(len(y)), row))
    scores = np.empty(seeds.shape)
    for i, j in np.ndindex(scores.shape):
        fitted = fit_quietly(seeded(unfitted, int(seeds[i, j])), take(X, sets[j]), marked[sets[j]])
        scores[i, j] = observe(fitted, take(X, [row]), marked[[row]], "classification")["evidence"][
            0
        ]
    claim = subject_of(fitted).certificate["epsilon"]  # pyright: ignore[reportPossiblyUnboundVariable]
    return {
        "with": scores[:, 0],
        "without": scores[:, 1],
        "epsilon": claim.value,
        "dp_delta": claim.inputs["dp_delta"],
    }


def seeded(model: Any, seed: int) -> Any:
    """A copy whose every ``random_state`` is the seed: noise must be drawn anew."""
    from sklearn.base import clone

    copied = clone(model)
    names = [name for name in copied.get_params() if name.rpartition("__")[2] == "random_state"]
    return copied.set_params(**dict.fromkeys(names, seed))


def _margins(model: Any, X: Any, y: Any, classes: Any) -> tuple[Any, str]:
    """How far the right class is ahead of the others, and what it was read from."""
    if is_module(model):
        function = score_function(model, classes=classes)
        return _ahead(function.scores(X), y, function.classes), "scores"
    subject = subject_of(model)
    classes, probabilities, decisions = subject.classes, subject.probabilities, subject.decisions
    if classes is not None and not isinstance(probabilities, Lacking):
        return _log_odds(np.asarray(probabilities(X), dtype=float), y, classes), "probabilities"
    if classes is not None and not isinstance(decisions, Lacking):
        scores = np.asarray(decisions(X), dtype=float)
        scores = np.column_stack([np.zeros_like(scores), scores]) if scores.ndim == 1 else scores
        return _ahead(scores, y, classes), "scores"
    predicted = np.asarray(predict_with(model)(X))
    if predicted.shape != y.shape:
        raise Unusable(f"the model gave predictions of shape {predicted.shape} for {len(y):,} rows")
    _numbers(predicted)
    return np.where(predicted == y, 1.0, -1.0), "predictions"


def _log_odds(probabilities: Any, y: Any, classes: Any) -> Any:
    right = _is_right(probabilities, y, classes)
    with np.errstate(divide="ignore"):
        return np.log(np.where(right, probabilities, 0.0).sum(axis=1)) - np.log(
            np.where(right, 0.0, probabilities).sum(axis=1)
        )


def _ahead(scores: Any, y: Any, classes: Any) -> Any:
    right = _is_right(scores, y, classes)
    own = np.where(right, scores, -np.inf).max(axis=1)
    return own - np.where(right, -np.inf, scores).max(axis=1)


def _is_right(values: Any, y: Any, classes: Any) -> Any:
    """(rows, classes): which is the row's class; none for a label that the model does not know."""
    labels = np.arange(values.shape[1]) if classes is None else np.asarray(classes)
    if values.shape != (len(y), len(labels)):
        raise Unusable(
            f"the model gave {values.shape} numbers for {len(y):,} rows and {len(labels)} classes"
        )
    if len(labels) < 2:
        raise Unusable("the model knows one class only, and says the same of every row")
    _numbers(values)
    return y[:, None] == labels


def _numbers(values: Any) -> Any:
    """The values, if none is NaN."""
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise Unusable("the model's predictions are NaN for some rows")
    return values
