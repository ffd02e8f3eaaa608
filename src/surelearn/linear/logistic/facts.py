"""What a logistic regression records of a fit, for its certificate."""

from __future__ import annotations

from typing import Any

import numpy as np

from surelearn.linear.logistic.objective import lipschitz_constant, measure, minimizer_loss_bound
from surelearn.linear.logistic.sgd import Array, Rows


def known(
    learner: Any, n: int, uniform: bool, finish: str = "none", streamed: bool = False, rounds: int | None = None
) -> dict[str, Any]:
    """Facts without measurements; ``rounds`` is how often each row was seen, None where only the caller knows."""
    facts: dict[str, Any] = {
        "n": n,
        "d": int(learner.n_features_in_),
        "classes": int(learner.classes_.size),
        "regularization": float(learner.regularization),
        "l1_regularization": float(learner.l1_regularization),
        "intercept": learner.intercept,
        "average": bool(learner.average),
        "schedule": learner.schedule,
        "step": learner.step_,
        "step_from_rows": learner.step == "auto" or (learner.intercept != "none" and learner.intercept_step == "auto"),
        "intercept_step": 1.0 if learner.intercept == "none" else learner.intercept_step_,
        "updates": int(learner.t_),
        "passes": int(learner.passes_),
        "stopped": learner.stopped_,
        "uniform": uniform,
        "finish": finish,
        "streamed": streamed,
        "rounds": 0 if rounds is None else int(rounds),
    }
    if learner.norm_bound is not None:
        facts["norm_bound"] = float(learner.norm_bound)
    if learner.x_bound is not None:
        padded = float(np.sqrt(learner.x_bound**2 + (learner.intercept != "none")))
        rho = lipschitz_constant(padded, facts["classes"])
        growth = 1 + min(1.0, 2 * facts["regularization"] * learner.step_ * learner.t_)
        facts |= {"x_bound": float(learner.x_bound), "lipschitz": rho, "step_lipschitz": rho * growth}
        if facts["regularization"] > 0:
            facts["minimizer_loss_bound"] = minimizer_loss_bound(padded, facts["classes"], facts["regularization"])
    return facts


def measured(learner: Any, rows: Rows, found: Array, bias: int) -> dict[str, Any]:
    """Loss, error, objective and gradient at the weights found, on the rows fitted."""
    at = measure(rows, found, learner.regularization, bias)
    absolute = np.abs(learner.coef_).sum(dtype=np.float64) if learner.l1_regularization > 0 else 0.0
    if learner.intercept == "regularized":
        absolute += np.abs(learner.intercept_).sum(dtype=np.float64)
    facts = {"log_loss": at.loss, "training_error": at.error}
    facts["objective"] = at.objective + learner.l1_regularization * float(absolute)
    if learner.l1_regularization == 0:
        facts["gradient_norm"] = at.gradient_norm
        if learner.regularization > 0:
            facts["distance"] = at.gradient_norm / (2 * learner.regularization)
    return facts
