"""What happened in a fit of logistic regression, and which theorems apply to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from surelearn.bounds import (
    beta_near_minimizer,
    distance_to_minimizer,
    logistic_lipschitz,
    logistic_loss_bound,
    padded_norm,
    sgd_learnability,
    sgd_lipschitz,
    stability_near_minimizer,
    strong_convexity_gap,
)
from surelearn.bounds.logistic import X_BOUNDED
from surelearn.bounds.optimality import CONVEX, CONVEX_LIPSCHITZ
from surelearn.bounds.stability import LOSS_NONNEGATIVE, UNIFORM
from surelearn.record import Record, Writer

LOGARITHMIC = "logarithmic loss"
STATE_X_BOUND = "state x_bound=, a bound on ‖x‖ that holds for every row"
SINGLE_PASS = "a single pass: a fresh row each step"  # noqa: S105 - not a password
AVERAGED = "the averaged iterate"
_STEPS = "step= and intercept_step=1"
CONVEX_LOSS = "convex loss, Lipschitz as stated"


@dataclass(frozen=True, kw_only=True)
class LogisticRecord(Record):
    """A fit of (1/n)·Σ loss + λ‖W‖² + λ₁‖W‖₁ by stochastic gradient descent, and perhaps a finish
    at the minimizer.

    Attributes
    ----------
    classes : how many
    regularization, l1_regularization : λ and λ₁
    intercept : "none", "regularized" or "free"
    average, schedule : whether iterates were averaged, and how steps shrank
    step, intercept_step : η₀, and the share of a step by which the intercept moved
    step_from_rows : whether one of them was chosen from the rows
    updates : steps made
    rounds : how often each row was seen; 0 where only the caller of ``partial_fit`` knows, and
        where only the finish did
    uniform : whether rows counted equally
    finish : "none", or which solver went on to the minimizer
    streamed : whether rows came by ``partial_fit`` or from a file
    x_bound, norm_bound : as stated, or None
    log_loss, training_error, objective : at the weights found, on the rows fitted; None where they
        were not measured
    gradient_norm : of the objective there, rounding included; None with an L1 penalty, too
    """

    key: ClassVar[str] = "logistic-regression/1"

    classes: int
    regularization: float
    l1_regularization: float
    intercept: str
    average: bool
    schedule: str
    step: float
    intercept_step: float
    step_from_rows: bool
    updates: int
    rounds: int
    uniform: bool
    finish: str
    streamed: bool
    x_bound: float | None = None
    norm_bound: float | None = None
    log_loss: float | None = None
    training_error: float | None = None
    objective: float | None = None
    gradient_norm: float | None = None

    def __post_init__(self) -> None:
        if self.streamed and self.log_loss is not None:
            raise ValueError(
                "rows that came by partial_fit or from a file are not kept: nothing was measured on"
                " them"
            )

    def write(self, writer: Writer) -> None:
        """Optimality, stability and the single-pass guarantee, or why not."""
        if reason := self._no_optimality():
            writer.lacks("suboptimality", reason, strong_convexity_gap.key)
            writer.lacks("distance_to_the_minimizer", reason, distance_to_minimizer.key)
        else:
            read = {"gradient_norm": "gradient_norm", "regularization": "regularization"}
            writer.claim(strong_convexity_gap, read, met=(CONVEX,), loss=LOGARITHMIC)
            writer.claim(distance_to_minimizer, read, met=(CONVEX,), loss=LOGARITHMIC)
        self._write_stability(writer)
        self._write_single_pass(writer)

    def padded(self) -> float:
        """A bound on ‖x‖, with the column of ones if there is one."""
        x_bound = self.x_bound or 0.0
        return x_bound if self.intercept == "none" else float(padded_norm(x_bound))

    def _no_optimality(self) -> str:
        if self.regularization == 0:
            return "without regularization the objective is not strongly convex"
        if self.l1_regularization > 0:
            return "with an L1 penalty the objective has no gradient where a weight is zero"
        if self.intercept == "free":
            return (
                "the intercept is free of regularization: the objective is not strongly convex"
                " in it"
            )
        if self.streamed:
            return (
                "partial_fit and fit_file do not keep the rows: the gradient of the objective over"
                " all of them is not known"
            )
        if self.gradient_norm is None:
            return "the gradient was not measured: fit with measure=True"
        return ""

    def _write_stability(self, writer: Writer) -> None:
        reason = self._no_optimality() or ("" if self.uniform else "rows are weighted unequally")
        if reason or self.x_bound is None or self.gradient_norm is None:
            writer.lacks("risk", reason or STATE_X_BOUND, stability_near_minimizer.key)
            writer.lacks("uniform_stability", reason or STATE_X_BOUND, beta_near_minimizer.key)
            return
        shared = {"regularization": "regularization", "n": "n"}
        lipschitz = logistic_lipschitz(self.padded(), self.classes)
        distance = distance_to_minimizer(self.gradient_norm, self.regularization)
        writer.claim(
            stability_near_minimizer,
            {**shared, "risk": "log_loss"},
            lipschitz=lipschitz,
            distance=distance,
            loss_bound=logistic_loss_bound(self.padded(), self.classes, self.regularization),
            loss=LOGARITHMIC,
            label="logarithmic loss of new rows",
            met=(UNIFORM, LOSS_NONNEGATIVE, CONVEX_LIPSCHITZ),
            assumptions=(X_BOUNDED,),
        )
        writer.claim(
            beta_near_minimizer,
            shared,
            lipschitz=lipschitz,
            distance=distance,
            loss=LOGARITHMIC,
            met=(UNIFORM, CONVEX_LIPSCHITZ),
            assumptions=(X_BOUNDED,),
        )

    def _no_single_pass(self, version: float) -> str:
        # until version 4 the parameters of SGD were the learner's own
        fit_with = "fit with sgd=SGD({})" if version > 4 else "fit with {}"
        if not self.average:
            average = fit_with.format("average=True")
            return f"the guarantee is for the averaged iterate: {average}"
        if self.finish != "none":
            return "the weights were changed by a finish: fit with finish=None"
        if self.rounds > 1:
            return (
                f"the rows were seen in {self.rounds} passes: the guarantee is for one, fit with"
                " epochs=1"
            )
        if self.l1_regularization > 0:
            return "the theorem's steps are plain gradient steps, not steps with an L1 penalty"
        if self.schedule != "constant":
            constant = fit_with.format('schedule="constant"')
            return f"the guarantee is for a constant step: {constant}"
        if self.step_from_rows:
            state = "sgd=SGD(step=…, intercept_step=1)" if version > 4 else _STEPS
            return f"the steps were chosen from the rows: state {state}"
        if self.intercept_step != 1:
            full = fit_with.format("intercept_step=1")
            return f"the intercept moved by smaller steps than the theorem's: {full}"
        if not self.uniform:
            return "rows are weighted unequally"
        if self.x_bound is None:
            return STATE_X_BOUND
        if self.norm_bound is None:
            return "state norm_bound=, the norm up to which other weights are compared"
        return ""

    def _write_single_pass(self, writer: Writer) -> None:
        """E F(w̄) − F(u) ≤ B²/(2ηT) + ηρ²/2, for the loss plus λ‖w‖², whose gradients stay
        below `sgd_lipschitz`.
        """
        quantity = "excess_risk" if self.regularization == 0 else "excess_regularized_risk"
        if reason := self._no_single_pass(writer.version):
            writer.lacks(quantity, reason, sgd_learnability.key)
            return
        slope = logistic_lipschitz(self.padded(), self.classes)
        if self.regularization > 0:
            slope = sgd_lipschitz(slope, self.regularization, self.step, self.updates)
        writer.claim(
            sgd_learnability,
            {"norm_bound": "norm_bound", "iterations": "updates", "step": "step"},
            lipschitz=slope,
            quantity=quantity,
            loss=LOGARITHMIC,
            met=(
                (SINGLE_PASS, AVERAGED, CONVEX_LOSS)
                if self.rounds == 1
                else (AVERAGED, CONVEX_LOSS)
            ),
            assumptions=(X_BOUNDED, "norm_bound and step were fixed before seeing the rows"),
        )
