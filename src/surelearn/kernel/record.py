"""What happened in a fit of a kernel machine, what may be claimed about it, and why not where
it may not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from surelearn import bounds
from surelearn.bounds.capacity import BINARY
from surelearn.bounds.optimality import CONVEX
from surelearn.bounds.stability import LOSS_NONNEGATIVE, UNIFORM
from surelearn.kernel.functions import UNBOUNDED, read_kernel, with_kernel_of_today
from surelearn.kernel.precomputed import MOST_ROWS, POSITIVE
from surelearn.lacking import Lacking
from surelearn.record import Record, Writer, run

MARGIN = 0.5  # rows with y·f(x) ≤ ρ = ½ count as margin errors
_EPS = 2.0**-52
_ROUNDING = 1e-6  # by which share rounding may move a leave-one-out error that is stated as exact
_ROUNDED = (
    "rounding may move it: raise regularization=, or use a kernel with a bounded k(x, x) (a linear"
    " one: scale the columns and state x_bound=)"
)
_TUNED = (
    "the bandwidth or λ was chosen on the rows: give bandwidth= (or a kernel object) and"
    " regularization= fixed beforehand"
)
_WEIGHTED = "the rows were weighted: the theorem is about rows drawn alike, each counted once"
_CENTERS = (
    "f is built on fewer centers than rows: the theorem is about the minimizer over all of the RKHS"
)
_STATE_X = "state x_bound=, a bound on ‖x‖ that holds for every row"
_RISKS = (bounds.uniform_stability_nonnegative, bounds.bousquet_elisseeff)
ON_THE_WAY = (
    "EigenPro's way to the coefficients, which are judged wherever it led; no claim reads it"
)


@dataclass(frozen=True, kw_only=True)
class KernelMachineRecord(Record):
    """A fit of (1/n)·Σ‖f(x_i) − y_i‖² + λ‖f‖² over the RKHS of a kernel.

    Attributes
    ----------
    outputs : targets of a row
    weighted : whether rows had weights
    kernel, kernel_parameters : the kernel, ``kernel(name, **parameters)``
    tuned : whether the bandwidth or λ was chosen on the rows
    x_bound : as stated for every row, or None
    regularization : λ
    solver, dtype : "direct", "eigenpro" or "centres", and the precision it worked in
    norm : ‖f‖ in the RKHS; an upper bound, rounding included, where claims read it
    training_risk, leave_one_out_error : mean squared errors; None where the latter needs an inverse
        that is not known
    value_error : how far rounding moves a value f(x_i); None where no claim reads it
    gradient_norm : an upper bound on ‖∇F(f)‖ in the RKHS; None for λ = 0 and for centers
    centres : how many rows f is built on, where they are fewer
    rank : of the kernel matrix, where it was factored
    matrix_rows : rows of a kernel matrix that was given
    validation_rows, validation_error : rows held out, and the share of wrong labels or the mean
        squared error on them
    epochs, stopped, … : how EigenPro ran; critical batch sizes and accelerations as in Ma and
        Belkin (2019)
    """

    outputs: int
    weighted: bool
    kernel: str
    kernel_parameters: Mapping[str, Any]
    tuned: bool
    x_bound: float | None
    regularization: float
    solver: str
    dtype: str
    norm: float
    training_risk: float
    leave_one_out_error: float | None
    value_error: float | None = None
    gradient_norm: float | None = None
    centres: int | None = None  # spelled as in the files that people have
    rank: int | None = None
    matrix_rows: int | None = None
    validation_rows: int | None = None
    validation_error: float | None = None
    epochs: int = run(ON_THE_WAY)
    stopped: str | None = run(ON_THE_WAY, default=None)
    subsample: int | None = run(ON_THE_WAY, default=None)
    directions: int | None = run(ON_THE_WAY, default=None)
    batch_size: int | None = run(ON_THE_WAY, default=None)
    step: float | str | None = run(ON_THE_WAY, default=None)
    step_predicted: float | None = run(ON_THE_WAY, default=None)
    step_capped: bool | None = run(ON_THE_WAY, default=None)
    cached: bool | None = run(ON_THE_WAY, default=None)
    critical_batch_size: float | None = run(ON_THE_WAY, default=None)
    critical_batch_size_preconditioned: float | None = run(ON_THE_WAY, default=None)
    acceleration_predicted: float | None = run(ON_THE_WAY, default=None)
    acceleration_measured: float | None = run(ON_THE_WAY, default=None)

    @classmethod
    def read(cls, values: Mapping[str, Any], *, strict: bool = True) -> Self:
        """The record of these values; a kernel's parameters have the names of today."""
        return super().read(with_kernel_of_today(values), strict=strict)

    @property
    def radius(self) -> float | None:
        """A bound on √k(x, x) for every row, from the stated one on ‖x‖; None where there is
        none.
        """
        return read_kernel(self.kernel, self.kernel_parameters).radius(self.x_bound)

    def write(self, writer: Writer) -> None:
        """The distance to the minimizer and the leave-one-out error, or why there is none."""
        if self.centres is not None:
            writer.lacks("distance_to_the_minimizer", _CENTERS, bounds.distance_to_minimizer.key)
        else:
            positive = [POSITIVE] if (self.matrix_rows or 0) > MOST_ROWS else []
            write_distance(
                writer, self.regularization, weighted=self.weighted, assumptions=positive
            )
        if self.leave_one_out_error is None:
            iterative = "it needs the inverse of the kernel matrix: solver='direct' gives it"
            writer.lacks(
                "leave_one_out_error",
                iterative if self.solver != "direct" else "the kernel matrix is singular",
                label="leave-one-out error",
            )
        elif writer.version > 4 and self._rounds_little():
            read = {"error": "leave_one_out_error"}
            writer.claim(bounds.leave_one_out_error, read, loss="squared")
        elif writer.version > 4:
            writer.lacks("leave_one_out_error", _ROUNDED, label="leave-one-out error")

    def _rounds_little(self) -> bool:
        """Whether rounding leaves a leave-one-out error as it is: K + nλ has a condition number of
        at most 1 + max k(x, x)/λ, which multiplies n·ε.
        """
        radius = self.radius
        if radius is None or not self.regularization > 0:
            return False
        return self.n * _EPS * (1 + radius**2 / self.regularization) <= _ROUNDING

    def bounded_radius(self) -> float | Lacking:
        """√k(x, x) is at most this for every row."""
        if self.radius is not None:
            return self.radius
        return Lacking("radius", UNBOUNDED if self.kernel == "precomputed" else _STATE_X)


@dataclass(frozen=True, kw_only=True)
class KernelRegressionRecord(KernelMachineRecord):
    """A fit of `surelearn.kernel.EigenProRegressor`; ``y_bound`` as stated for every row, or
    None.
    """

    key: ClassVar[str] = "eigenpro-regressor/1"

    y_bound: float | None

    def write(self, writer: Writer) -> None:
        """The distance to the minimizer, uniform stability and the bounds on the risk that
        follow, or why not.
        """
        super().write(writer)
        stated_bounds, lam = self.stable_bounds(), self.regularization
        if isinstance(stated_bounds, Lacking):
            for quantity, theorem in (
                ("uniform_stability", bounds.beta_ridge),
                *(("risk", risk) for risk in _RISKS),
            ):
                writer.lacks(quantity, stated_bounds.reason, theorem.key)
            return
        radius, y_bound = stated_bounds
        read = {name: name for name in ("y_bound", "regularization", "n")}
        writer.claim(bounds.beta_ridge, read, x_bound=radius, loss="squared", met=(UNIFORM,))
        stated = "k(x, x) ≤ radius² and |y| ≤ y_bound for every row, as stated"
        common: dict[str, Any] = {
            "loss": "squared",
            "met": (UNIFORM, LOSS_NONNEGATIVE),
            "assumptions": [stated],
        }
        common["loss_bound"] = bounds.ridge_loss_bound(radius, y_bound, lam)
        slope, off = self.gradient_norm or 0.0, self.value_error or 0.0
        change = 2 * float(bounds.ridge_loss_change(radius, y_bound, lam, slope, off))
        beta = bounds.beta_ridge(radius, y_bound, lam, self.n)
        risk = self.training_risk + change
        writer.claim(
            bounds.uniform_stability_nonnegative, {"n": "n"}, risk=risk, beta=beta, **common
        )
        if self.leave_one_out_error is None:
            writer.lacks(
                "risk", "the leave-one-out error is not known", bounds.bousquet_elisseeff.key
            )
            return
        beta = bounds.beta_ridge_removed(radius, y_bound, lam, self.n)
        risk = self.leave_one_out_error + change
        writer.claim(
            bounds.bousquet_elisseeff,
            {"n": "n"},
            risk=risk,
            beta=beta,
            leave_one_out=True,
            **common,
        )

    def stable_bounds(self) -> tuple[float, float] | Lacking:
        """The bounds on √k(x, x) and |y| that the stability claim reads, where it can be made."""
        radius = self.bounded_radius()
        if self.centres is not None:
            why = _CENTERS
        elif self.regularization == 0:
            why = (
                "without a penalty interpolation is not uniformly stable: set regularization="
                " beforehand"
            )
        elif self.weighted:
            why = _WEIGHTED
        elif self.tuned:
            why = _TUNED
        elif isinstance(radius, Lacking):
            return radius
        elif self.y_bound is None:
            why = "state y_bound=, a bound on |y| that holds for every row"
        else:
            return radius, self.y_bound
        return Lacking("uniform_stability", why)


@dataclass(frozen=True, kw_only=True)
class KernelClassificationRecord(KernelMachineRecord):
    """A fit of `surelearn.kernel.EigenProClassifier` to ±1.

    Attributes
    ----------
    classes : how many
    margin_at, margin_error : ρ, and the share of rows with y·f(x) ≤ ρ, rounding included, where
        there are two classes; None where a model with fewer centers was not measured for claims
    """

    key: ClassVar[str] = "eigenpro-classifier/1"

    classes: int
    margin_at: float | None = None
    margin_error: float | None = None

    def write(self, writer: Writer) -> None:
        """The distance to the minimizer, and the Rademacher margin bound, uniform over norms, or
        why not.

        The margin bound holds for any f of a kernel fixed beforehand, however found.
        """
        super().write(writer)
        theorem, radius = bounds.rademacher_margin, self.bounded_radius()
        if self.classes > 2:
            writer.lacks(
                "risk", f"the theorem is about two classes, here are {self.classes}", theorem.key
            )
        elif self.weighted:
            writer.lacks("risk", _WEIGHTED, theorem.key)
        elif self.tuned:
            writer.lacks("risk", _TUNED, theorem.key)
        elif isinstance(radius, Lacking):
            writer.lacks("risk", radius.reason, theorem.key)
        else:
            read = {"margin_error": "margin_error", "n": "n", "norm": "norm", "margin": "margin_at"}
            met = tuple(
                line for line in theorem.assumes if line in ("no unregularized intercept", BINARY)
            )
            writer.claim(theorem, read, radius=radius, met=met)


def write_distance(
    writer: Writer,
    regularization: float,
    *,
    weighted: bool = False,
    assumptions: list[str] | None = None,
) -> None:
    """‖f − f*‖ ≤ ‖∇F(f)‖/(2λ) in the RKHS, f* the ridge solution, of a record's
    ``gradient_norm`` and λ.
    """
    if regularization == 0:
        reason = (
            "without a penalty the residual bounds the distance only by the smallest eigenvalue:"
            " set regularization="
        )
        writer.lacks("distance_to_the_minimizer", reason, bounds.distance_to_minimizer.key)
        return
    read = {"gradient_norm": "gradient_norm", "regularization": "regularization"}
    loss = ("Σw‖f(x) − y‖²/Σw" if weighted else "(1/n)·Σ‖f(x) − y‖²") + " + λ‖f‖²"
    writer.claim(
        bounds.distance_to_minimizer, read, loss=loss, met=(CONVEX,), assumptions=assumptions or []
    )
