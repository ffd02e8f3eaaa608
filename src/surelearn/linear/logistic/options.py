"""How a logistic regression descends: what few people set, in one object."""

from __future__ import annotations

from typing import Literal

from surelearn.base import ParameterGroup


class SGD(ParameterGroup):
    """Stochastic gradient descent of a `LogisticRegression`: its steps, and when it stops.

    Parameters
    ----------
    schedule : step size at update t = 0, 1, …: "constant" η₀, "inverse" η₀/(1 + ct), "sqrt" η₀/√(1
        + ct), "steps" η₀·c^p in pass (or call of `partial_fit`) number p = 0, 1, …
    step : η₀; "auto" is 4/(mean ‖x‖² + intercept_step), at most 1/(4λ)
    intercept_step : the intercept moves by so much of a step, at most 1, since it is in every row;
        "auto" is the mean square of the values that are not zero, at most 1. The minimizer is the
        same; 1 is plain SGD on padded rows
    step_decay : c; None is 2λη₀ + 3/n for "inverse" and "sqrt", and 0.5 for "steps"
    average : predict with the mean of the weights before each step (Polyak)
    engine : "scaled", "lazy", or "auto": scaled unless λ₁ > 0
    dtype : "float64" or "float32", of the weights; 4 bytes are faster
    early_stopping : None, "training" or "validation": stop when the logarithmic loss, met on the
        way or of held-out rows, has not fallen by more than ``tol`` for ``patience`` passes
    validation_fraction : the part of the rows held out for early stopping
    patience, tol : as early stopping has them

    Examples
    --------
    >>> from surelearn.linear import LogisticRegression
    >>> LogisticRegression(sgd=SGD(average=True)).set_params(sgd__step=0.1)
    LogisticRegression(sgd=SGD(average=True, step=0.1))
    """

    saved_as = "logistic-sgd/1"

    def __init__(
        self,
        *,
        schedule: Literal["constant", "inverse", "sqrt", "steps"] = "inverse",
        step: float | Literal["auto"] = "auto",
        intercept_step: float | Literal["auto"] = "auto",
        step_decay: float | None = None,
        average: bool = False,
        engine: Literal["auto", "scaled", "lazy"] = "auto",
        dtype: Literal["float64", "float32"] = "float64",
        early_stopping: Literal["training", "validation"] | None = None,
        validation_fraction: float = 0.1,
        patience: int = 3,
        tol: float = 1e-4,
    ) -> None:
        self.schedule = schedule
        self.step = step
        self.intercept_step = intercept_step
        self.step_decay = step_decay
        self.average = average
        self.engine = engine
        self.dtype = dtype
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.tol = tol
