"""Membership inference against a fitted model: what its answers say of each row, in the model itself
and in shadow models, copies that were fitted with and without the row.

`membership_inference` runs both attacks; the steps are functions too, so that shadow models can be
fitted side by side. What is found is a measurement: an attack that fails proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from surelearn.attacks.membership import (
    FALSE_POSITIVE_RATES,
    Membership,
    likelihood_ratio,
    loss_threshold,
)
from surelearn.lacking import Lacking
from surelearn.losses import LOGISTIC
from surelearn.subject import Subject, Task, score_function, subject_of
from surelearn.subject.refitting import columns_for, fit_quietly, take_for
from surelearn.subject.torch_modules import is_module
from surelearn.types import AnyArray, Array, Bools, Model, RowsLike

FARTHEST = 40.0  # a margin of ±40 is a probability that cannot be told from 1 or 0
# evidence is cut off here, a probability of a thousandth: farther out it is not Gaussian
_CUT_OFF = 7.0
_MANY_MODELS = 64  # with fewer shadow models all rows share a variance, as in Carlini and others
_NAN = Lacking("evidence", "the model's predictions are NaN for some rows")


@dataclass(frozen=True, eq=False, kw_only=True)
class MembershipEvidence:
    """What a model's answers say of rows.

    Attributes
    ----------
    losses : (n,) log losses, or absolute errors of a regressor; members tend to have smaller ones
    evidence : (n,) what a likelihood ratio compares: ln(p/(1 − p)) of the right class; where there
        are no probabilities, its score above the best other one, or ±1 for right and wrong; of a
        regressor the error
    seen : what of the model was read
    """

    losses: Array
    evidence: Array
    seen: Literal["probabilities", "scores", "predictions"]


@dataclass(frozen=True, eq=False, kw_only=True)
class MembershipInference:
    """Both attacks on one model.

    Attributes
    ----------
    own : the evidence that the model itself gives, (n,) each
    by_loss : a threshold on the loss (Yeom and others)
    by_ratio : the likelihood ratio with shadow models (LiRA, Carlini and others), or why it was not
        run
    """

    own: MembershipEvidence = field(repr=False)
    by_loss: Membership
    by_ratio: Membership | Lacking


def membership_inference(
    model: Model,
    X: RowsLike,
    y: npt.ArrayLike,
    members: npt.ArrayLike,
    *,
    shadows: int = 16,
    task: Task | None = None,
    classes: Sequence[Any] | None = None,
    alpha: float = 0.05,
    random_state: int | None = None,
) -> MembershipInference | Lacking:
    """How well rows that a model was fitted on are told from others: by its losses, and with shadow
    models.

    Parameters
    ----------
    model : fitted, or its `Subject`; shadow models are fitted where it can be cloned
    X, y : rows, members and others, with their targets
    members : (n,) whether the model was fitted on the row
    shadows : an even number of shadow models, each fitted on half of the rows; 0 for none
    task : "classification" or "regression", where the model does not say
    classes : the labels in the order of a torch module's outputs
    alpha : 1 − the level of the intervals

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(200, 2)), rng.integers(2, size=200)
    >>> members = np.arange(200) < 100
    >>> model = KNeighborsClassifier(1).fit(X[members], y[members])
    >>> found = membership_inference(model, X, y, members, shadows=4, random_state=0)
    >>> found.own.seen, round(found.by_loss.auc, 2), found.by_ratio.auc > 0.6
    ('probabilities', 0.72, True)
    """
    if shadows < 0 or shadows % 2:
        raise ValueError(f"shadows must be an even number of at least 0, not {shadows!r}")
    subject, labels = subject_of(model, classes=classes, task=task), np.asarray(y)
    inside = np.asarray(members, dtype=bool)
    if inside.shape != labels.shape or inside.all() or not inside.any():
        raise ValueError("members must say of each row whether it is one, and hold both kinds")
    asked = subject.task
    if isinstance(asked, Lacking):
        return asked
    own = membership_evidence(subject, X, labels, task=asked)
    if isinstance(own, Lacking):
        return own
    by_loss = loss_threshold(own.losses[inside], own.losses[~inside], alpha=alpha)
    halves = complementary_halves(len(labels), shadows // 2, random_state)
    unfitted, made = subject.refit, []
    if isinstance(unfitted, Lacking):
        return MembershipInference(own=own, by_loss=by_loss, by_ratio=unfitted)
    for half in halves:
        told = shadow_evidence(unfitted, X, labels, np.flatnonzero(half), X, labels, task=asked)
        if isinstance(told, Lacking):
            return MembershipInference(own=own, by_loss=by_loss, by_ratio=told)
        made.append(told)
    by_ratio = Lacking("likelihood ratio", "it needs shadow models, and none was asked for")
    if made:
        by_ratio = evidence_ratio(own, made, halves, inside, task=asked, alpha=alpha)
    return MembershipInference(own=own, by_loss=by_loss, by_ratio=by_ratio)


def membership_evidence(
    model: Model,
    X: RowsLike,
    y: npt.ArrayLike,
    *,
    task: Task | None = None,
    classes: Sequence[Any] | None = None,
) -> MembershipEvidence | Lacking:
    """Each row's loss in a fitted model, and the evidence that a likelihood ratio compares.

    Parameters
    ----------
    model : fitted, or its `Subject`
    X, y : rows and their targets, (n,)
    task, classes : as for `membership_inference`

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
    >>> found = membership_evidence(LogisticRegression().fit(X, y), X, y)
    >>> found.seen, bool(np.allclose(found.losses, np.log1p(np.exp(-found.evidence))))
    ('probabilities', True)
    """
    subject, labels = subject_of(model, classes=classes, task=task), np.asarray(y)
    asked = subject.task if task is None else task
    if isinstance(asked, Lacking):
        return asked
    if asked == "regression":
        said = np.asarray(subject.predict(X), dtype=float).reshape(len(labels))
        errors = said - labels.astype(float)
        if np.isnan(errors).any():
            return _NAN
        return MembershipEvidence(losses=np.abs(errors), evidence=errors, seen="predictions")
    told = _margins(subject, X, labels)
    if isinstance(told, Lacking):
        return told
    margins, seen = told
    if np.isnan(margins).any():
        return _NAN
    margins = np.clip(margins, -FARTHEST, FARTHEST)
    return MembershipEvidence(losses=LOGISTIC.value(margins), evidence=margins, seen=seen)


def shadow_evidence(
    unfitted: Model,
    X: RowsLike,
    y: AnyArray,
    rows: npt.NDArray[np.intp],
    new: RowsLike,
    truth: AnyArray,
    *,
    task: Task,
) -> MembershipEvidence | Lacking:
    """One shadow model: a copy fitted on some ``rows`` of ``X``, and its evidence on ``new`` rows.

    Of a model that takes a kernel matrix, the columns of ``new`` are those of ``X``. What the
    model raises while it is fitted is raised.
    """
    fitted = fit_quietly(unfitted, take_for(unfitted, X, rows), y[rows])
    return membership_evidence(fitted, columns_for(unfitted, new, rows), truth, task=task)


def complementary_halves(rows: int, pairs: int, random_state: int | None) -> Bools:
    """(2·pairs, rows): which rows a shadow model has, in complementary pairs, so that each row is in
    half of them.

    Examples
    --------
    >>> complementary_halves(10, 3, 0).sum(axis=0).tolist()
    [3, 3, 3, 3, 3, 3, 3, 3, 3, 3]
    """
    generator = np.random.default_rng(random_state)
    masks = [generator.permutation(rows) < rows // 2 for _ in range(pairs)]
    halves = [half for mask in masks for half in (mask, ~mask)]
    return np.array(halves, dtype=bool).reshape(2 * pairs, rows)


def evidence_ratio(
    own: MembershipEvidence,
    shadows: Sequence[MembershipEvidence],
    included: Bools,
    members: Bools,
    *,
    task: Task,
    alpha: float = 0.05,
    false_positive_rates: tuple[float, ...] = FALSE_POSITIVE_RATES,
) -> Membership:
    """The likelihood-ratio attack (LiRA) on evidence of the model and of shadow models.

    Parameters
    ----------
    own, shadows : evidence on the same rows, (n,) each
    included : (models, n), which rows each shadow model was fitted on
    members : (n,), those that the model was fitted on
    """
    # Errors of a regressor are measured in their spread on rows that it was not fitted on.
    spread = 1.0 if task == "classification" else float(np.std(own.evidence[~members])) or 1.0
    told = np.stack([shadow.evidence for shadow in shadows])  # (models, n)
    return likelihood_ratio(
        _as_losses(told / spread),
        included,
        _as_losses(own.evidence / spread),
        members,
        alpha=alpha,
        false_positive_rates=false_positive_rates,
        few=_MANY_MODELS,
    ).membership


def _as_losses(evidence: Array) -> Array:
    """Log losses whose ln(p/(1 − p)) is the evidence."""
    return LOGISTIC.value(np.clip(evidence, -_CUT_OFF, _CUT_OFF))


def _margins(
    subject: Subject, X: RowsLike, y: AnyArray
) -> tuple[Array, Literal["probabilities", "scores", "predictions"]] | Lacking:
    """How far the right class is ahead of the others, (n,), and what it was read from."""
    if is_module(subject.model):
        function = score_function(subject.model, classes=subject.classes)
        right = _right_class(scores := function.scores(np.asarray(X)), y, function.classes)
        return right if isinstance(right, Lacking) else (_ahead(scores, right), "scores")
    classes, probabilities, decisions = subject.classes, subject.probabilities, subject.decisions
    if classes is not None and not isinstance(probabilities, Lacking):
        shares = np.asarray(probabilities(X), dtype=float)  # (n, classes)
        right = _right_class(shares, y, classes)
        return right if isinstance(right, Lacking) else (_log_odds(shares, right), "probabilities")
    if classes is not None and not isinstance(decisions, Lacking):
        scores = np.asarray(decisions(X), dtype=float)  # (n,) or (n, classes)
        scores = np.column_stack([np.zeros_like(scores), scores]) if scores.ndim == 1 else scores
        right = _right_class(scores, y, classes)
        return right if isinstance(right, Lacking) else (_ahead(scores, right), "scores")
    predicted = np.asarray(subject.predict(X))
    if predicted.shape != y.shape:
        why = f"the model gave predictions of shape {predicted.shape} for {len(y):,} rows"
        return Lacking("evidence", why)
    if predicted.dtype.kind == "f" and np.isnan(predicted).any():
        return _NAN
    return np.where(predicted == y, 1.0, -1.0), "predictions"


def _log_odds(probabilities: Array, right: Bools) -> Array:
    """Ln of the right class's probability, less ln of all others'; both (n, classes)."""
    with np.errstate(divide="ignore"):
        return np.log(np.where(right, probabilities, 0.0).sum(axis=1)) - np.log(
            np.where(right, 0.0, probabilities).sum(axis=1)
        )


def _ahead(scores: Array, right: Bools) -> Array:
    """The right class's score, less the best other one; both (n, classes)."""
    own = np.where(right, scores, -np.inf).max(axis=1)
    return own - np.where(right, -np.inf, scores).max(axis=1)


def _right_class(values: Array, y: AnyArray, classes: Sequence[Any] | None) -> Bools | Lacking:
    """(n, classes): which is the row's class; none for a label that the model does not know."""
    labels = np.arange(values.shape[1]) if classes is None else np.asarray(classes)
    if values.shape != (len(y), len(labels)):
        why = f"the model gave {values.shape} numbers for {len(y):,} rows and {len(labels)} classes"
        return Lacking("evidence", why)
    if len(labels) < 2:
        why = "the model knows one class only, and says the same of every row"
        return Lacking("evidence", why)
    if values.dtype.kind == "f" and np.isnan(values).any():
        return _NAN
    return y[:, None] == labels
