"""What the parameters of a logistic regression may be."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from surelearn import stated
from surelearn.linear.intercept import check_intercept

if TYPE_CHECKING:
    from surelearn.linear.logistic.learner import LogisticRegression


def check_parameters(learner: LogisticRegression) -> None:
    """Refuse the first parameter that makes no sense, by its name."""
    for name in ("regularization", "l1_regularization"):
        if not (value := getattr(learner, name)) >= 0 or value == np.inf:
            raise ValueError(f"{name} must be a finite number of at least 0, not {value}")
    check_intercept(learner)
    sgd = learner._sgd
    for owner, name, allowed in (
        (sgd, "schedule", ("constant", "inverse", "sqrt", "steps")),
        (sgd, "engine", ("auto", "scaled", "lazy")),
        (sgd, "early_stopping", (None, "training", "validation")),
        (learner, "finish", (None, "auto", "newton", "lbfgs")),
        (sgd, "dtype", ("float64", "float32")),
    ):
        if getattr(owner, name) not in allowed:
            raise ValueError(f"{name} must be one of {allowed}, not {getattr(owner, name)!r}")
    step, move = sgd.step, sgd.intercept_step
    if step != "auto" and not (_is_number(step) and 0 < step < np.inf):
        raise ValueError(f'step must be "auto" or a positive number, not {step!r}')
    if move != "auto" and not (_is_number(move) and 0 < move <= 1):
        raise ValueError(f'intercept_step must be "auto" or a number in (0, 1], not {move!r}')
    if (value := sgd.step_decay) is not None and not 0 <= value < np.inf:
        raise ValueError(f"step_decay must be None or a finite number of at least 0, not {value}")
    for name in ("x_bound", "norm_bound"):
        if (value := getattr(learner, name)) is not None and not 0 < value < np.inf:
            raise ValueError(f"{name} must be None or a positive number, not {value}")
    stated.fraction("delta", learner.delta)
    if learner.epochs < 0 or (learner.epochs == 0 and learner.finish not in ("newton", "lbfgs")):
        raise ValueError(
            f'epochs must be at least 1, or 0 with finish="newton" or "lbfgs", not {learner.epochs}'
        )
    stated.fraction("validation_fraction", sgd.validation_fraction)
    if learner.l1_regularization > 0 and (
        sgd.engine == "scaled" or learner.finish in ("newton", "lbfgs")
    ):
        raise ValueError(
            'l1_regularization needs engine="lazy" (or "auto") and no finish: set finish=None'
        )


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, Real) and not isinstance(value, bool)
