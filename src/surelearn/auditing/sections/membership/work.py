"""The work behind the section on membership: losses of rows, in the model and in the same model
fitted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surelearn import jobs
from surelearn.attacks.canary import canary_scores
from surelearn.attacks.membership_evidence import (
    complementary_halves,
    membership_evidence,
    shadow_evidence,
)
from surelearn.auditing.context import Context
from surelearn.auditing.refitting import affordable_refits, too_costly
from surelearn.auditing.seen import stack
from surelearn.auditing.writing import attempt
from surelearn.certificate import Certificate
from surelearn.claim import Claim
from surelearn.lacking import Lacking
from surelearn.subject import Task, subject_of
from surelearn.subject.refitting import take
from surelearn.subject.torch_modules import is_module
from surelearn.types import AnyArray, Model, RowsLike

_MOST_TRIED = 2000  # rows of each kind that the attacks are tried on
_ROW_FITS = 150_000  # rows times refits of a likelihood ratio, at effort 1
_MOST_REFITS = 16
LEAST_PAIRS = 3  # of refits, however slow the model
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
        "classes": context.classes or None if is_module(context.model) else None,
        "X": new,
        "y": truth,
        "task": kind,
    }
    made = [jobs.Task("membership/model", observe, own)]
    if context.unfitted is None:
        return made
    shared = {
        "unfitted": context.unfitted,
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
    """(refits, rows of the pool): which rows a refit has, each in half of them."""
    size, effort = pool_of(context).size, context.options.effort
    most = min(1.6 * context.options.refits, 2 * _ROW_FITS / size, _MOST_REFITS)
    pairs = 0 if context.unfitted is None else int(most * effort // 2)
    if too_costly(context, size // 2, 2 * LEAST_PAIRS) is not None:
        pairs = 0
    if pairs > LEAST_PAIRS:
        slow = int(affordable_refits(context, "membership", size // 2) // 2)
        pairs = min(pairs, max(LEAST_PAIRS, slow))
    return complementary_halves(size, pairs, context.seed("membership/halves"))


def carried(model: Model) -> Claim | Lacking:
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


def observe(
    model: Model, X: RowsLike, y: AnyArray, task: Task, classes: Sequence[Any] | None
) -> dict[str, Any] | Lacking:
    """`membership_evidence` as a task: plain results, which a journal keeps."""
    found = membership_evidence(model, X, y, task=task, classes=classes)
    return found if isinstance(found, Lacking) else vars(found).copy()


def observe_refit(**arguments: Any) -> dict[str, Any]:
    """`shadow_evidence` as a task. A refit may meet rows on which the model cannot be fitted: then
    the other attack stays, and what is ``lacking`` is told.
    """
    found = attempt(shadow_evidence, arguments)
    return {"lacking": found} if isinstance(found, Lacking) else vars(found).copy()


def observe_canary(**arguments: Any) -> dict[str, Any] | Lacking:
    """`canary_scores` as a task."""
    found = canary_scores(**arguments)
    return found if isinstance(found, Lacking) else vars(found).copy()
