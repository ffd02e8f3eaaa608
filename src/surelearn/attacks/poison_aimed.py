"""Poison placed where it hurts: by gradients through the fit of a stand-in that is like the
model's learner.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.attacks.influence_known import MOST_COLUMNS
from surelearn.attacks.poison_allowed import Allowed, Array
from surelearn.attacks.poison_bilevel import bilevel
from surelearn.attacks.poison_kernel import KernelRidgeObjective
from surelearn.attacks.poison_objectives import LinearObjective, known_objective
from surelearn.lacking import Lacking
from surelearn.subject import Subject, subject_of
from surelearn.subject.forms import KernelForm
from surelearn.types import Model, RowsLike

_INNER, _OUTER = 300, 200  # rows that the poison is aimed with, and those that it is aimed at
_STEPS, _STEP = 20, 5.0  # in standard deviations at first: the range seen is what holds rows back


@dataclass(frozen=True, eq=False)
class StandIn:
    """A learner that attacks can differentiate through, in place of the model's own.

    Attributes
    ----------
    objective : what is fitted
    rows : the prepared rows, in numbers
    targets : the labels as it takes them
    labels : from those back to the model's own
    words : what it is, for people; "" where it is the learner itself
    """

    objective: Any
    rows: npt.ArrayLike
    targets: Any
    labels: Callable[[Any], Any]
    words: str


@dataclass(frozen=True, eq=False)
class Aimed:
    """Poisoned rows.

    Attributes
    ----------
    X, y : the rows, in the columns as the learner is given them, and their labels
    stand_in : through what the gradients went, for people; "" where it is the learner itself
    used : how many clean rows it was aimed with
    """

    X: Array
    y: np.ndarray
    stand_in: str
    used: int


def aimed_rows(
    model: Model, X: RowsLike, y: npt.ArrayLike, count: int, *, task: str, random_state: int = 0
) -> Aimed | Lacking:
    """``count`` rows that, added to the training rows, raise the loss on others, within the range
    seen of each column.

    Parameters
    ----------
    model : a fitted model whose form is known, or a pipeline, whose learner the rows are for
    X, y : the rows that it was fitted to, as the model takes them
    task : "classification" or "regression"

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = X[:, 0] > 0
    >>> poison = aimed_rows(LogisticRegression().fit(X, y), X, y, 5, task="classification")
    >>> poison.X.shape, bool((np.abs(poison.X) <= np.abs(X).max(0)).all())
    ((5, 2), True)
    """
    subject = subject_of(model)
    Z = subject.rows_for_last(X)
    if Z.shape[1] > MOST_COLUMNS:
        why = (
            f"the model has {Z.shape[1]:,} prepared columns, more than the {MOST_COLUMNS} that"
            " aimed poison is made for"
        )
        return Lacking("aimed poison", why)
    try:
        Z = np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z, dtype=float)
    except ValueError:
        return Lacking("aimed poison", "the prepared columns are not all numbers")
    stand = stand_in(subject.last, Z, y, task)
    if isinstance(stand, Lacking):
        return stand
    order = np.random.default_rng(random_state).permutation(len(Z))[: _INNER + _OUTER]
    cut = min(_INNER, int(0.6 * len(order)))
    parts = order[:cut], order[cut:]
    some = max(1, round(count / len(Z) * len(parts[0])))
    found = place(
        stand.objective, Z, stand.targets, parts, some, random_state, steps=_STEPS, step=_STEP
    )
    rows, labels = (
        np.resize(part, (count, *part.shape[1:])) for part in (found.X, stand.labels(found.y))
    )
    return Aimed(rows, labels, stand.words, min(len(Z), _INNER + _OUTER))


def place(
    objective: Any,
    Z: Any,
    t: Any,
    parts: tuple[Any, Any],
    count: int,
    seed: int,
    *,
    steps: int,
    step: float,
) -> Any:
    """Poison among the first part of the rows that raises the loss on the second, within the
    range seen of each column.
    """
    inner, outer = parts
    seen = Allowed(low=Z.min(axis=0), high=Z.max(axis=0))
    work = {"count": count, "allowed": seen, "steps": steps, "step": step, "random_state": seed}
    return bilevel(objective, Z[inner], t[inner], Z[outer], t[outer], **work)


def stand_in(subject: Subject, Z: Array, y: npt.ArrayLike, task: str) -> StandIn | Lacking:
    """A logistic, linear or kernel regression like the learner, for prepared rows Z; `Lacking`
    without a gradient.
    """
    closed = subject.learner.form
    if isinstance(closed, Lacking):
        why = (
            f"{subject.kind} has no gradient to aim poison by, so labels were changed at random"
            " only"
        )
        return Lacking("stand-in", why)
    form = closed.form
    kernel = isinstance(form, KernelForm)
    bandwidth = _width(form, Z) if kernel else 1.0
    if task == "regression":
        middle, scale = float(np.mean(np.asarray(y))), float(np.std(np.asarray(y))) or 1.0
        objective = (
            KernelRidgeObjective(bandwidth=bandwidth, regularization=1e-3)
            if kernel
            else LinearObjective("squared", regularization=1e-3)
        )
        words = f"a {'kernel' if kernel else 'linear'} ridge regression"
        return StandIn(
            objective,
            Z,
            (np.asarray(y, dtype=float) - middle) / scale,
            lambda t: middle + scale * t,
            words,
        )
    classes, codes = np.unique(y, return_inverse=True)
    if kernel and len(classes) == 2:
        objective = KernelRidgeObjective(bandwidth=bandwidth, regularization=1e-3)
        return StandIn(
            objective,
            Z,
            2.0 * codes - 1,
            lambda t: classes[(t > 0).astype(int)],
            "a kernel ridge regression",
        )
    own = known_objective(subject, len(Z))
    if isinstance(own, Lacking) or own[0].loss != "logistic":
        objective = LinearObjective(classes=len(classes), regularization=1e-3)
        return StandIn(objective, Z, codes, lambda t: classes[t], "a logistic regression")
    return StandIn(own[0], Z, codes, lambda t: classes[t], "")


def _width(form: Any, Z: Any) -> float:
    """The bandwidth of the learner's own Gaussian kernel, else √½ of the median distance of some
    rows.
    """
    if form.name == "gaussian":
        return float(form.parameters["bandwidth"])
    from scipy.spatial.distance import pdist

    return math.sqrt((float(np.median(pdist(Z[:300], "sqeuclidean"))) or 1.0) / 2.0)
