"""What a logistic regression records of a fit: what was stated, how the run went, and what the
rows fitted measure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surelearn.linear.intercept import intercept_of
from surelearn.linear.logistic.objective import measure
from surelearn.linear.logistic.sgd import Array, CompressedRows

if TYPE_CHECKING:
    from surelearn.linear.logistic.learner import LogisticRegression


def stated(learner: LogisticRegression) -> dict[str, Any]:
    """Facts that the parameters tell, and the shape of the weights."""
    sgd = learner._sgd
    return {
        "d": int(learner.n_features_in_),
        "classes": int(learner.classes_.size),
        "regularization": float(learner.regularization),
        "l1_regularization": float(learner.l1_regularization),
        "intercept": intercept_of(learner),
        "average": bool(sgd.average),
        "schedule": sgd.schedule,
        "step_from_rows": sgd.step == "auto"
        or (learner.fit_intercept and sgd.intercept_step == "auto"),
        "x_bound": None if learner.x_bound is None else float(learner.x_bound),
        "norm_bound": None if learner.norm_bound is None else float(learner.norm_bound),
    }


def known(
    learner: LogisticRegression,
    n: int,
    uniform: bool,
    finish: str = "none",
    streamed: bool = False,
    rounds: int | None = None,
) -> dict[str, Any]:
    """Facts without measurements; ``rounds`` is how often each row was seen, None where only
    the caller knows.
    """
    return stated(learner) | {
        "n": n,
        "step": learner.step_,
        "intercept_step": learner.intercept_step_ if learner.fit_intercept else 1.0,
        "updates": int(learner.t_),
        "uniform": uniform,
        "finish": finish,
        "streamed": streamed,
        "rounds": 0 if rounds is None else int(rounds),
    }


def measured(
    learner: LogisticRegression, rows: CompressedRows, found: Array, bias: int
) -> tuple[dict[str, Any], float]:
    """Loss, error, objective and gradient at the weights found (d + 1, K), and how far rounding
    moves the gradient.
    """
    at = measure(rows, found, learner.regularization, bias)
    absolute = np.abs(learner.coef_).sum(dtype=np.float64) if learner.l1_regularization > 0 else 0.0
    if intercept_of(learner) == "regularized":
        absolute += np.abs(learner.intercept_).sum(dtype=np.float64)
    facts: dict[str, Any] = {"log_loss": at.loss, "training_error": at.error}
    facts["objective"] = at.objective + learner.l1_regularization * float(absolute)
    facts["gradient_norm"] = at.gradient_norm if learner.l1_regularization == 0 else None
    return facts, at.rounding
