"""What happened in a fit of a robust regression, and which theorems apply to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from surelearn import bounds
from surelearn.bounds.robust_regression import SOLVED
from surelearn.lacking import Lacking
from surelearn.record import Record, Writer


@dataclass(frozen=True, kw_only=True)
class HuberRecord(Record):
    """A fit of (1/n)·Σ M^η(⟨w, x_i⟩ + b − y_i) + λ‖w‖².

    Attributes
    ----------
    threshold, regularization : η and λ
    x_bound, y_bound : as stated for every row, or None
    gradient_bound : the gradient norm to reach, as the tolerance states it
    gradient_norm, objective, risk : at the weights found; the risk is the mean of M^η
    beyond_threshold : rows whose residual exceeds η
    weighted : whether rows counted unequally
    free_intercept : whether b was fitted
    threshold_from_rows : whether η was taken from the rows
    relative : whether the penalty is on weights of columns divided by their spread on the rows
    dual, gap_rounding : a lower bound on the objective by weak duality, and how far objective −
        dual can be off; None for λ = 0
    """

    key: ClassVar[str] = "huber-regression/1"

    threshold: float
    regularization: float
    x_bound: float | None = None
    y_bound: float | None = None
    gradient_bound: float
    gradient_norm: float
    objective: float
    risk: float
    beyond_threshold: int
    weighted: bool
    free_intercept: bool
    threshold_from_rows: bool = False
    relative: bool = False
    dual: float | None = None
    gap_rounding: float | None = None

    def write(self, writer: Writer) -> None:
        """Uniform stability and the bound on the risk that follows, and how near the minimum it
        is; or why not.
        """
        self._write_stability(writer)
        if self.dual is None:
            reason = (
                "without a penalty no dual point that is feasible to the last digit is known: state"
                " regularization="
            )
            writer.lacks("suboptimality", reason, "duality_gap")
            return
        read = {"primal": "objective", "dual": "dual", "rounding": "gap_rounding"}
        met, label = bounds.duality_gap.assumes, "objective above its minimum"
        writer.claim(
            bounds.duality_gap,
            read,
            loss=f"huber({self.threshold:g}) + λ‖w‖²",
            label=label,
            met=met,
        )

    def _write_stability(self, writer: Writer) -> None:
        x_bound, y_bound = self.stable_bound(), self.y_bound
        if isinstance(x_bound, Lacking):
            writer.lacks("uniform_stability", x_bound.reason, "beta_huber")
            writer.lacks("risk", x_bound.reason, "uniform_stability_nonnegative")
            return
        loss = f"huber({self.threshold:g})"
        names = ("x_bound", "threshold", "regularization", "n")
        read = {**{name: name for name in names}, "gradient_norm": "gradient_bound"}
        stability = writer.claim(bounds.beta_huber, read, loss=loss)
        if y_bound is None:
            reason = "state y_bound=, a bound on |y| that holds for every row"
            writer.lacks("risk", reason, "uniform_stability_nonnegative")
            return
        writer.claim(
            bounds.uniform_stability_nonnegative,
            {"risk": "risk", "n": "n"},
            beta=stability.value,
            loss_bound=bounds.huber_loss_bound(
                x_bound, y_bound, self.threshold, self.regularization
            ),
            loss=loss,
            assumptions=("‖x‖ ≤ x_bound and |y| ≤ y_bound for every row, as stated", SOLVED),
        )

    def stable_bound(self) -> float | Lacking:
        """The bound on ‖x‖ that the stability claim reads, where it can be made."""
        taken = ["the threshold"] * self.threshold_from_rows
        taken += ["the columns' scale"] * self.relative
        if taken:
            why = (
                f"{' and '.join(taken)} {'were' if len(taken) > 1 else 'was'} taken from the rows:"
                " state threshold=, regularization= and x_bound=, with fit_intercept=False"
            )
        elif self.regularization == 0:
            why = "regularization = 0: the objective is not strongly convex"
        elif self.free_intercept:
            why = (
                "the intercept is not regularized: set fit_intercept=False (and add a constant"
                " column)"
            )
        elif self.weighted:
            why = "rows are weighted unequally"
        elif self.gradient_norm > self.gradient_bound:
            why = "the minimization stopped before it reached its tolerance: raise max_iter"
        elif self.x_bound is None:
            why = "state x_bound=, a bound on ‖x‖ that holds for every row"
        else:
            return self.x_bound
        return Lacking("uniform_stability", why)


@dataclass(frozen=True, kw_only=True)
class VariationalRecord(Record):
    """A local optimum of (1/n)·Σ ℓ̃(r_i) + λ‖w‖² with a clipped loss.

    Attributes
    ----------
    loss, threshold, regularization : ψ by its name, the residual at its level, and λ
    objective, huber_start_objective : at the weights found, and at Huber's fit, where the
        alternation began
    believed : the mean of the rows' beliefs η
    relative : whether the penalty is on weights of columns divided by their spread on the rows
    """

    key: ClassVar[str] = "variational-regression/1"

    loss: str
    threshold: float
    regularization: float
    objective: float
    huber_start_objective: float
    believed: float
    relative: bool = False

    def write(self, writer: Writer) -> None:
        """Nothing is claimed of a local optimum, and why."""
        writer.lacks(
            "suboptimality",
            "the objective is not convex: this is a local optimum, and a better one may exist",
        )
        writer.lacks(
            "uniform_stability",
            "the objective is not convex: exchanging one row may lead to another optimum",
        )
        writer.lacks(
            "risk",
            "no theorem here bounds the risk of a local optimum from its own rows: use certify()",
        )


@dataclass(frozen=True, kw_only=True)
class SquareRootLassoRecord(Record):
    """A fit of ‖Xw + b − y‖₂ + λ‖w‖₁.

    Attributes
    ----------
    radius : λ, the most by which a column may move
    relative : whether that is in units of each column's spread on the rows, as are the weights in
        ``l1_norm``
    residual_norm, l1_norm, non_zeros : of the rows, each counted once, and of the weights
    objective : at the weights found, rows weighted
    dual_inner, dual_norm, dual_correlation : ⟨u, y⟩, ‖u‖₂ and ‖Xᵀu‖_∞ of the best dual vector u
        that was met
    weighted : whether rows had weights
    free_intercept : whether b was fitted
    """

    key: ClassVar[str] = "square-root-lasso/1"

    radius: float
    residual_norm: float
    l1_norm: float
    objective: float
    dual_inner: float
    dual_norm: float
    dual_correlation: float
    non_zeros: int
    weighted: bool
    free_intercept: bool
    relative: bool = False

    def write(self, writer: Writer) -> None:
        """The worst case over perturbed columns, and how small it can be made at all."""
        loss = "Euclidean norm of the training residuals"
        units = (
            ("columns, and how far each may move, are in units of its spread on these rows",)
            if self.relative
            else ()
        )
        read = {"residual_norm": "residual_norm", "l1_norm": "l1_norm", "perturbation": "radius"}
        writer.claim(bounds.column_perturbations, read, loss=loss, assumptions=units)
        if self.weighted:
            reason = "rows are weighted: the duality gap is that of the weighted objective"
            writer.lacks("least_perturbed_residual_norm", reason, "square_root_lasso_optimum")
        else:
            read = {
                "inner": "dual_inner",
                "dual_norm": "dual_norm",
                "correlation": "dual_correlation",
            }
            read["perturbation"] = "radius"
            writer.claim(bounds.square_root_lasso_optimum, read, loss=loss, assumptions=units)
        writer.lacks(
            "risk",
            "the theorem is about the training rows, perturbed; of new rows it says nothing: use"
            " certify()",
        )
