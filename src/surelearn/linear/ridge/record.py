"""What happened in a fit of least squares or ridge regression, and which theorems apply to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from surelearn.bounds import (
    beta_ridge,
    beta_ridge_removed,
    bousquet_elisseeff,
    distance_to_minimizer,
    leave_one_out_error,
    padded_norm,
    ridge_loss_bound,
    ridge_loss_change,
    strong_convexity_gap,
    uniform_stability_nonnegative,
)
from surelearn.bounds.optimality import CONVEX
from surelearn.bounds.ridge import BOUNDED
from surelearn.bounds.stability import LOSS_NONNEGATIVE, UNIFORM
from surelearn.lacking import Lacking
from surelearn.record import Record, Writer

ILL_CONDITIONED = 1000.0


@dataclass(frozen=True, kw_only=True)
class RidgeRecord(Record):
    """A fit of (1/n)·Σ‖x_i W − y_i‖² + λ‖W‖².

    Attributes
    ----------
    outputs : targets
    weighted : whether rows counted unequally
    intercept : "none", "regularized" or "free"
    chosen_by, candidates : how λ was chosen ("" if it was given), and among how many
    x_bound, y_bound, stated_loss_bound : as stated for every row, or None
    regularization : λ
    solver : "svd" or "lsqr"
    half_slope, slope_rounding : ½‖∇F‖ at the weights found, and what rounding can have hidden of
        it; None for LSQR
    training_risk, leave_one_out_error : mean squared errors; None where leverages are not known or
        a row has leverage 1
    left_out : combinations of columns above rounding that were left out, as LeastSquares' ``tol``
        says
    weight_norm, rank, condition_number, condition_number_unregularized, degrees_of_freedom : of the
        weights and the spectrum
    """

    key: ClassVar[str] = "ridge/1"

    outputs: int
    weighted: bool
    intercept: str
    chosen_by: str
    candidates: int
    x_bound: float | None
    y_bound: float | None
    stated_loss_bound: float | None
    regularization: float
    solver: str
    half_slope: float
    training_risk: float
    leave_one_out_error: float | None
    weight_norm: float
    rank: int | None = None
    condition_number: float | None = None
    condition_number_unregularized: float | None = None
    degrees_of_freedom: float | None = None
    left_out: int | None = None
    slope_rounding: float | None = None

    def write(self, writer: Writer) -> None:
        """The exact leave-one-out error, uniform stability and two bounds on the risk, or why
        not.
        """
        if self.leave_one_out_error is None:
            why = (
                "LSQR gives no leverages"
                if self.solver == "lsqr"
                else "a row determines its own prediction"
            )
            if self.left_out:
                why = (
                    f"{self.left_out} combinations of columns that hardly vary were left out: tol=0"
                    " keeps them"
                )
            writer.lacks("leave_one_out_error", why, label="leave-one-out error")
        if self.condition_number is not None and self.condition_number > ILL_CONDITIONED:
            writer.lacks("stable_weights", _ill_conditioned(self.condition_number))
        if (lost := self.no_stability()) is not None:
            writer.lacks("uniform_stability", lost.reason, beta_ridge.key)
            writer.lacks("risk", lost.reason, uniform_stability_nonnegative.key)
            writer.lacks("risk", lost.reason, bousquet_elisseeff.key)
        else:
            self._write_stability(writer)
        if self.regularization > 0:
            self._write_optimality(writer)
        if self.leave_one_out_error is not None and writer.version > 4:
            writer.claim(leave_one_out_error, {"error": "leave_one_out_error"}, loss="squared")

    def _write_optimality(self, writer: Writer) -> None:
        """How near the minimizer the weights are: that needs no bound on rows, and holds
        however λ was chosen.
        """
        what = (
            ("suboptimality", strong_convexity_gap),
            ("distance_to_the_minimizer", distance_to_minimizer),
        )
        if self.slope_rounding is None:
            reason = "what rounding hides of LSQR's gradient is not bounded: use solver='svd'"
            for quantity, theorem in what:
                writer.lacks(quantity, reason, theorem.key)
            return
        loss = "Σs‖xW + b − y‖²/Σs + λ‖W‖²" if self.weighted else "(1/n)·Σ‖xW + b − y‖² + λ‖W‖²"
        loss += ", b as good as any" if self.intercept == "free" else ""
        slope = 2 * (self.half_slope + self.slope_rounding)
        for _, theorem in what:
            writer.claim(
                theorem,
                {"regularization": "regularization"},
                gradient_norm=slope,
                loss=loss,
                met=(CONVEX,),
            )

    def _write_stability(self, writer: Writer) -> None:
        """Uniform stability of ridge with this λ, and the two bounds on the risk that follow.

        The bounds are about the minimizer: those of the weights found have twice the change of a
        loss added. With λ chosen on the rows, the learner that chooses is not stable; each λ of the
        grid is, at its share of δ.
        """
        x_bound, y_bound = self.row_bounds()
        slope, lam = 2 * self.half_slope, self.regularization
        distance = float(distance_to_minimizer(slope, lam))
        further = [
            BOUNDED,
            f"the weights are within {distance:.1e} of the minimizer's; the risk includes it",
        ]
        if self.candidates > 1:
            further += [
                f"of the hyperparameters λ alone was chosen, among {self.candidates} values fixed"
                " beforehand, which share δ"
            ]
        if self.candidates == 1:
            read = {name: name for name in ("y_bound", "regularization", "n")}
            writer.claim(beta_ridge, read, x_bound=x_bound, loss="squared", met=(UNIFORM,))
        else:
            reason = (
                "λ was chosen on the rows: one row may change the choice, which no stability"
                " constant covers"
            )
            writer.lacks("uniform_stability", reason, beta_ridge.key)
        derived = float(ridge_loss_bound(x_bound, y_bound, lam))
        stated = self.stated_loss_bound
        common: dict[str, Any] = {
            "loss": "squared",
            "candidates": self.candidates,
            # it follows from the bounds on x, y
            "met": (UNIFORM,) if stated is not None else (UNIFORM, LOSS_NONNEGATIVE),
            "assumptions": further,
            "loss_bound": derived if stated is None else min(stated, derived),
        }
        change = 2 * float(ridge_loss_change(x_bound, y_bound, lam, slope))
        beta = beta_ridge(x_bound, y_bound, lam, self.n)
        writer.claim(
            uniform_stability_nonnegative,
            {"n": "n"},
            risk=self.training_risk + change,
            beta=beta,
            **common,
        )
        if self.leave_one_out_error is None:
            writer.lacks("risk", "the leave-one-out error is not known", bousquet_elisseeff.key)
            return
        risk, beta = (
            self.leave_one_out_error + change,
            beta_ridge_removed(x_bound, y_bound, lam, self.n),
        )
        writer.claim(
            bousquet_elisseeff, {"n": "n"}, risk=risk, beta=beta, leave_one_out=True, **common
        )

    def row_bounds(self) -> tuple[float, float]:
        """Bounds on ‖x‖, with the column of ones if there is one, and on ``|y|``."""
        x_bound, y_bound = self.x_bound or 0.0, self.y_bound or 0.0
        return float(padded_norm(x_bound)) if self.intercept == "regularized" else x_bound, y_bound

    def no_stability(self) -> Lacking | None:
        """Why no stability is claimed; None where it is."""
        why = None
        if self.weighted:
            why = "rows were weighted unequally, and the theorem weighs them equally"
        elif self.regularization == 0:
            why = (
                "without a penalty least squares is not uniformly stable: use Ridge with a"
                " regularization fixed beforehand, and state x_bound= and y_bound="
            )
        elif self.intercept == "free" and self.x_bound is None and self.y_bound is None:
            why = (
                "state x_bound= and y_bound=, bounds on ‖x‖ and |y| that hold for every row; and"
                " the intercept is free: set regularize_intercept=True or fit_intercept=False, whose"
                " stability is known"
            )
        elif self.intercept == "free":
            why = (
                "the intercept is free: set regularize_intercept=True or fit_intercept=False, whose"
                " stability is known"
            )
        elif self.x_bound is None:
            why = "state x_bound=, a bound on ‖x‖ that holds for every row"
        elif self.y_bound is None:
            why = "state y_bound=, a bound on |y| that holds for every row"
        return None if why is None else Lacking("uniform_stability", why)


def _ill_conditioned(condition: float) -> str:
    """The warning of the notes' ε-example, with its number."""
    size = "infinite" if math.isinf(condition) else f"{condition:.0e}"
    return (
        f"the condition number is {size}: a relative change of y may change the weights so many"
        " times as much; columns depend on each other nearly, or differ in scale: scale them,"
        " leave some out, or regularize more"
    )
