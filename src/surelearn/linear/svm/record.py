"""What happened in a fit of a support vector machine, and which theorems apply to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from surelearn import bounds
from surelearn.bounds.capacity import BINARY
from surelearn.bounds.optimality import CONVEX_LIPSCHITZ
from surelearn.bounds.stability import LOSS_NONNEGATIVE, UNIFORM
from surelearn.certificate import AT_LEAST_ERRORS
from surelearn.kernel.functions import UNBOUNDED, Kernel, read_kernel, with_kernel_of_today
from surelearn.kernel.precomputed import FIXED, MOST_ROWS, POSITIVE
from surelearn.lacking import Lacking
from surelearn.linear.svm.votes import class_pairs
from surelearn.record import Record, Writer

CLASSES_KNOWN = "the classes were known before seeing the rows"
# at which the margin bound counts rows: just below 1, where the support vectors of a solution sit
MARGIN = 0.99
_STATE = "state x_bound=, a bound on ‖x‖ that holds for every row"
_FREE = "the free intercept is not regularized: regularize_intercept=True certifies"
_HARD = "a hard margin is not stable: λ = 0"
_GAP = bounds.duality_gap
_COMPRESSION, _STABILITY, _RADEMACHER = (
    bounds.campi_garatti,
    bounds.stability_near_minimizer,
    bounds.rademacher_margin,
)


@dataclass(frozen=True, kw_only=True)
class SvmRecord(Record):
    """A fit of ½‖w‖² + C·Σ max(0, 1 − y·f(x)), or of ½‖w‖² under y·f(x) ≥ 1; one machine for each
    pair of classes.

    Attributes
    ----------
    classes : how many
    kernel, kernel_parameters : the kernel, ``kernel(name, **parameters)``
    intercept : "regularized", "none" or "free"
    hard : whether the margin is hard
    uniform_weights : whether rows counted equally
    C : the price of a row's loss, times the mean weight; None with a hard margin
    tol, x_bound : as stated
    support_vectors : rows with α > 0 in some machine
    compressed : rows that determine the exact solution, or may
    relative_gap : the largest duality gap as computed, divided by the sum of the prices, or by ‖w‖²
        with a hard margin
    primal, dual, gap_rounding : of the machine whose proved duality gap is largest; None where some
        α are not feasible
    bias_error : how far a free intercept can be from an exact one; infinite where it is not known
    norm, margin, clipped_hinge : ‖w‖ with a regularized intercept, the margin (negative where rows
        are wrong), and the mean of min(1, max(0, 1 − y·f(x))); for two classes
    margin_at, margin_error : the share of rows with y·f(x) ≤ margin_at
    """

    key: ClassVar[str] = "support-vector-machine/1"

    classes: int
    kernel: str
    kernel_parameters: Mapping[str, Any]
    intercept: str
    hard: bool
    uniform_weights: bool
    tol: float
    x_bound: float | None
    support_vectors: int
    compressed: int
    relative_gap: float
    bias_error: float
    C: float | None = None
    primal: float | None = None
    dual: float | None = None
    gap_rounding: float | None = None
    norm: float | None = None
    margin: float | None = None
    clipped_hinge: float | None = None
    margin_at: float | None = None
    margin_error: float | None = None

    @property
    def machines(self) -> int:
        """One for each pair of classes."""
        return len(class_pairs(self.classes))

    @property
    def reached(self) -> bool:
        """Whether the solver came as near as it was asked to; LIBSVM's tolerance is another."""
        return self.relative_gap <= (1e-3 if self.hard or self.intercept == "free" else self.tol)

    @property
    def gap(self) -> float:
        """How far each machine's objective can be above its minimum; infinite where nothing is
        proved.
        """
        if self.primal is None or self.dual is None:
            return math.inf
        return float(_GAP(self.primal, self.dual, self.gap_rounding or 0.0))

    @property
    def weight_error(self) -> float:
        """‖w − w*‖ at most: ½‖w‖² is the form λ‖w‖² with λ = ½."""
        return float(bounds.distance_from_gap(self.gap, 0.5))

    @property
    def radius(self) -> float | None:
        """A bound on ‖φ(x)‖, padded where the intercept is regularized; None where nothing
        bounds it.
        """
        radius = self._kernel().radius(self.x_bound)
        return (
            radius
            if radius is None or self.intercept != "regularized"
            else float(bounds.padded_norm(radius))
        )

    def write(self, writer: Writer) -> None:
        """Optimality, compression, stability and the margin bound, or why not."""
        self._write_optimality(writer)
        if not self.uniform_weights:
            for theorem in (_COMPRESSION, _STABILITY, _RADEMACHER):
                writer.lacks("risk", "rows are weighted unequally (sample_weight)", theorem.key)
            return
        self._write_compression(writer)
        self._write_stability(writer)
        self._write_margin(writer)

    @classmethod
    def read(cls, values: Mapping[str, Any], *, strict: bool = True) -> Self:
        """The record of these values; a kernel's parameters have the names of today."""
        return super().read(with_kernel_of_today(values), strict=strict)

    def _kernel(self) -> Kernel:
        return read_kernel(self.kernel, self.kernel_parameters)

    def _write_optimality(self, writer: Writer) -> None:
        """The objective is within the duality gap of its minimum; several classes: that of
        every machine is.
        """
        if self.dual is None:
            writer.lacks(
                "suboptimality",
                "the α found are not feasible: lower tol= or scale the columns",
                _GAP.key,
            )
            return
        loss = "½‖w‖² where y·f(x) ≥ 1" if self.hard else "½‖w‖² + C·Σ max(0, 1 − y·f(x))"
        several = f", each of {self.machines} machines" if self.machines > 1 else ""
        read = {"primal": "primal", "dual": "dual", "rounding": "gap_rounding"}
        unseen = (POSITIVE,) if self.kernel == "precomputed" and (self.d or 0) > MOST_ROWS else ()
        label = f"objective above its minimum{several}"
        writer.claim(_GAP, read, loss=loss, label=label, assumptions=unseen, met=_GAP.assumes)

    def _write_compression(self, writer: Writer) -> None:
        """The rows with y·f(x) ≤ 1 determine w; a new row with y·f(x) ≤ 1, so every error, would
        join them.

        That is true of the exact solution f*. The rows counted are those that may have y·f*(x) ≤ 1,
        and an error of f is a row with y·f*(x) < 1 as long as |f − f*| < 1 there. Several classes:
        the rows of all machines together.
        """
        error, radius = self.weight_error, self.radius
        known = math.isfinite(error) and self.bias_error < 1
        room = ((1.0 - self.bias_error) / error if error > 0 else math.inf) if known else 0.0
        if not room > 0 or (radius is not None and radius >= room):
            writer.lacks(
                "risk",
                "the solution is not known well enough: lower tol= or raise max_iter=",
                _COMPRESSION.key,
            )
            return
        assumptions = [CLASSES_KNOWN, *([FIXED] if self.kernel == "precomputed" else [])]
        if radius is None and math.isfinite(room):
            padded = " + 1" if self.intercept == "regularized" else ""
            assumptions.append(
                f"k(x, x){padded} < {_floor(room**2)} for every new row: the solver's tolerance"
                " turns none"
            )
        read = {"size": "compressed", "n": "n"}
        writer.claim(_COMPRESSION, read, assumptions=assumptions, met=_COMPRESSION.assumes[2:])

    def _write_stability(self, writer: Writer) -> None:
        """Both fits may be up to 2·tol, rounding included, above their minima, which says how
        far from w* they are.
        """
        radius, C = self._applies(soft=True), self.C
        if isinstance(radius, Lacking) or C is None:
            reason = radius.reason if isinstance(radius, Lacking) else _HARD
            writer.lacks("uniform_stability", reason, bounds.beta_near_minimizer.key)
            writer.lacks("risk", reason, _STABILITY.key)
            return
        regularization = bounds.regularization_of_price(C, self.n)
        distance = bounds.distance_from_gap(2 * self.tol, regularization)
        derived = {"lipschitz": radius, "regularization": regularization, "distance": distance}
        bounded = self._kernel().radius(None) is not None
        stated = () if bounded else ("‖x‖ ≤ x_bound for every row, as stated",)
        met = (UNIFORM, CONVEX_LIPSCHITZ) if bounded else (UNIFORM,)
        writer.claim(
            bounds.beta_near_minimizer,
            {"n": "n"},
            loss="hinge",
            assumptions=stated,
            met=met,
            **derived,
        )
        within = f"the weights are within {distance:.1e} of the minimizer's; the risk includes it"
        writer.claim(
            _STABILITY,
            {"risk": "clipped_hinge", "n": "n"},
            loss=f"clipped hinge, min(1, max(0, 1 − y·f(x))): {AT_LEAST_ERRORS}",
            label="risk, clipped hinge loss",
            loss_bound=1.0,
            met=(*met, LOSS_NONNEGATIVE),
            assumptions=(*stated, within),
            **derived,
        )

    def _write_margin(self, writer: Writer) -> None:
        radius = self._applies(soft=False)
        if isinstance(radius, Lacking):
            writer.lacks("risk", radius.reason, _RADEMACHER.key)
            return
        # then nothing needs to be believed of ‖φ(x)‖
        bounded = self._kernel().radius(None) is not None
        met = [
            line for line in _RADEMACHER.assumes if line in ("no unregularized intercept", BINARY)
        ]
        met += [line for line in _RADEMACHER.assumes if bounded and line.startswith("‖x‖ ≤")]
        read = {"margin_error": "margin_error", "n": "n", "norm": "norm", "margin": "margin_at"}
        writer.claim(_RADEMACHER, read, radius=radius, met=met)

    def _applies(self, *, soft: bool) -> float | Lacking:
        """The bound of ‖φ(x)‖, where a theorem about two classes with a regularized intercept (and
        a soft margin) applies.
        """
        why = None
        if self.classes > 2:
            why = f"the theorem is about two classes, here are {self.classes}"
        elif self.intercept == "free":
            why = _FREE
        elif soft and self.hard:
            why = _HARD
        elif soft and not self.reached:
            why = f"the duality gap did not reach tol={self.tol:g}"
        elif soft and self.C is not None and self.gap / (self.C * self.n) > 2 * self.tol:
            why = f"rounding may hide a duality gap of twice tol={self.tol:g}: raise tol"
        elif self.radius is None:
            why = UNBOUNDED if self.kernel == "precomputed" else _STATE
        else:
            return self.radius
        return Lacking("theorem", why)


def _floor(value: float) -> str:
    """A number for people, three digits, rounded down."""
    shown = float(f"{value:.2e}")
    return f"{shown if shown <= value else float(f'{value * 0.99:.2e}'):g}"
