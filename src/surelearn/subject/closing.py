"""The closed form of a whole model: what its learner says of itself, behind the steps that
prepare rows for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np

from surelearn.lacking import Lacking
from surelearn.subject.forms import Affine, Closed, Head, KernelForm, LinearForm, Pull
from surelearn.subject.objectives import Objective
from surelearn.subject.registry import (
    NO_FORM,
    Around,
    DecisionThreshold,
    Parts,
    Preparation,
    described,
    made,
)
from surelearn.types import Array, Ints, Model, RowsLike


def closed_form(model: Model) -> Closed | Lacking:
    """The closed form of a fitted model or pipeline, of the rows that it is given; `Lacking`
    says why there is none.
    """
    found = described(model)
    if isinstance(found, Lacking):
        return _no_form(model, found)
    if isinstance(getattr(model, "classes_", None), list):
        return Lacking("closed form", "the model has several targets")
    if isinstance(found, Around):
        return _around(model, found)
    if isinstance(found, Preparation):
        return Lacking("closed form", f"{type(model).__name__} prepares rows and predicts nothing")
    if found.form is NO_FORM:
        return Lacking(
            "closed form", f"{type(model).__name__} has no gradient that is known: {NO_FORM.reason}"
        )
    return made(found.form)


def _no_form(model: Model, why: Lacking) -> Lacking:
    if isinstance(getattr(model, "steps", None), list):
        return Lacking(
            "closed form",
            f"{type(model).__name__} may pass rows on otherwise than scikit-learn's Pipeline",
        )
    return Lacking("closed form", why.reason)


def _around(model: Model, found: Around) -> Closed | Lacking:
    name = type(model).__name__
    if found.target is not None:
        return Lacking(
            "closed form",
            f"{name} has no gradient that is known: prepared targets come after the scores",
        )
    inner = closed_form(found.inside)
    if isinstance(inner, Closed) and found.cut is not None:
        inner = _cut(inner, found.cut, model)
    if isinstance(inner, Lacking):
        return inner
    prepare: Affine | None = None
    for step in (*(_affine(step) for _, step in found.steps), inner.prepare):
        if isinstance(step, Lacking):
            return step
        if step is not None:
            prepare = step if prepare is None else prepare.then(step)
    return Closed(inner.form, prepare, inner.head)


def _cut(closed: Closed, cut: DecisionThreshold, model: Model) -> Closed | Lacking:
    """One machine of two classes, shifted so that it is positive where the second class is
    answered.

    A probability is a logistic function of the score of logistic regression alone.
    """
    form, logistic = closed.form, is_logistic(model)
    known = closed.head == "two" and isinstance(form, LinearForm | KernelForm)
    if not known or (cut.response == "predict_proba" and not logistic):
        why = "its answers follow a threshold on a probability that has no gradient known here"
        return Lacking("closed form", why)
    assert isinstance(form, LinearForm | KernelForm)  # noqa: S101 - known
    level = cut.threshold
    if cut.response == "predict_proba":
        with np.errstate(divide="ignore"):
            level = float(np.log(level) - np.log1p(-level))
    if not np.isfinite(level):
        return Lacking("closed form", "its threshold gives one answer to every row")
    second = cut.positive == np.asarray(model.classes_)[1]
    return replace(
        closed, form=replace(form, intercepts=form.intercepts - (level if second else -level))
    )


def is_logistic(model: Model) -> bool:
    """Whether the learner inside is a logistic regression, whose probability is the logistic
    function of its score.
    """
    found = described(model)
    if isinstance(found, Around):
        return is_logistic(found.inside)
    objective = made(found.objective) if isinstance(found, Parts) else None
    return isinstance(objective, Objective) and objective.loss == "logistic"


def has_cut(model: Model) -> bool:
    """Whether answers follow a decision threshold that was moved."""
    found = described(model)
    return isinstance(found, Around) and (found.cut is not None or has_cut(found.inside))


def _affine(step: Model) -> Affine | Lacking | None:
    """A fitted preparation as an affine map; None for one that does nothing."""
    if step is None or isinstance(step, str):
        return None
    found = described(step)
    if isinstance(found, Preparation):
        return found.affine if isinstance(found.affine, Lacking) else found.affine()
    return Lacking(
        "closed form", f"the preparation {type(step).__name__} is not known to be affine"
    )


def through(closed: Closed) -> tuple[Callable[[RowsLike], Array], Callable[[RowsLike], Pull]]:
    """``values`` and ``pull`` of the whole model: preparation, machines, head."""
    prepare, form, head = closed.prepare, closed.form, closed.head

    def prepared(X: RowsLike) -> Array:
        rows = np.asarray(X, dtype=float)
        return rows if prepare is None else prepare(rows)

    def values(X: RowsLike) -> Array:
        return headed(form.values(prepared(X)), head)[0]

    def pull(X: RowsLike) -> Pull:
        machines, back = form.pull(prepared(X))
        scores, spread = headed(machines, head)

        def whole(weights: Array) -> Array:
            inner = back(spread(weights))
            return inner if prepare is None else prepare.back(inner)

        return scores, whole

    return values, pull


def headed(machines: Array, head: Head) -> Pull:
    """Class scores from machines, and the way back; of pairs, a class has the least of what its
    pairs say for it.
    """
    if head in ("each", "votes") or (head == "outputs" and machines.shape[1] > 1):
        return machines, lambda weights: weights
    if head in ("two", "outputs"):
        return two(machines), lambda weights: weights[:, 1:]
    count = round(float((1 + np.sqrt(1 + 8 * machines.shape[1])) / 2))
    signed = np.full((len(machines), count, machines.shape[1]), np.inf)
    for column, (low, high) in enumerate(combinations(range(count), 2)):
        signed[:, low, column], signed[:, high, column] = -machines[:, column], machines[:, column]
    weakest = signed.argmin(axis=2)
    scores = np.take_along_axis(signed, weakest[:, :, None], axis=2)[:, :, 0]
    second: Ints = np.array(list(combinations(range(count), 2)))[:, 1]
    sign = np.where(second[weakest] == np.arange(count), 1.0, -1.0)

    def spread(weights: Array) -> Array:
        out = np.zeros_like(machines)
        rows = np.arange(len(machines))
        for label in range(count):
            np.add.at(out, (rows, weakest[:, label]), weights[:, label] * sign[:, label])
        return out

    return scores, spread


def two(single: Array) -> Array:
    """Scores (0, f) of two classes from one machine, (n, 1)."""
    return np.hstack([np.zeros_like(single), single])
