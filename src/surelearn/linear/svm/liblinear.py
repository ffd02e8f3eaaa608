"""Machines that LIBLINEAR fitted, scikit-learn's `LinearSVC`: what model and rows tell, and which
theorems apply.

Such a machine minimizes ½‖w̃‖² + C·Σ ℓ(y·f(x)) with w̃ = (w, b/s), f(x) = ⟨w, x⟩ + b = ⟨w̃, (x,
s)⟩, ℓ the hinge loss or its square; one machine for two classes, else one for each class against
the others. It keeps no dual solution. With squared losses none is needed: the objective is smooth,
and its gradient tells the distance to the minimizer. With the hinge loss `dual` finds a dual point
again, whose value is below every primal one, whoever found the weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_array

from surelearn import bounds
from surelearn.bounds.capacity import BINARY
from surelearn.bounds.logistic import X_BOUNDED
from surelearn.bounds.optimality import CONVEX, CONVEX_LIPSCHITZ
from surelearn.bounds.stability import LOSS_NONNEGATIVE, UNIFORM
from surelearn.certificate import AT_LEAST_ERRORS
from surelearn.kernel.functions import squared_norms
from surelearn.lacking import Lacking
from surelearn.linear.svm.dual import RowsDual, solve
from surelearn.linear.svm.record import CLASSES_KNOWN, MARGIN
from surelearn.losses import HINGE, SQUARED_HINGE
from surelearn.record import Record, Within, Writer
from surelearn.types import RowsLike

_EPS = float(np.finfo(float).eps)
# of the dual point; where it is not reached, the gap is larger and still proved
_TOL, _PASSES = 1e-9, 2000
_STATE = "state x_bound=, a bound on ‖x‖ that holds for every row"
_GAP, _COMPRESSION = bounds.duality_gap, bounds.campi_garatti
_STABILITY, _RADEMACHER = bounds.stability_near_minimizer, bounds.rademacher_margin


@dataclass(frozen=True, kw_only=True)
class LiblinearRecord(Record):
    """A fit of ½‖w̃‖² + C·Σ ℓ(y·f(x)), every weight regularized.

    Attributes
    ----------
    classes : how many; more than two have a machine each
    squared : whether ℓ is the square of the hinge loss
    C : the price of a row's loss, times the mean weight
    intercept_scale : s, the padding; None without an intercept
    uniform_weights : whether rows counted equally
    x_bound : as stated
    gradient_norm : with squared losses, of the mean loss + λ‖w̃‖², the largest of the machines',
        rounding included
    primal, dual, gap_rounding : with hinge losses, of the machine whose proved duality gap is
        largest
    compressed : rows with y·f(x) ≤ 1 in some machine, or perhaps so at its minimizer
    norm, clipped_loss : ‖w̃‖, and the mean of ℓ where hinge losses above 1 count as 1; for two
        classes
    margin_at, margin_error : the share of rows with y·f(x) ≤ margin_at; for two classes
    """

    key: ClassVar[str] = "liblinear-machine/1"

    classes: int
    squared: bool
    C: float
    intercept_scale: float | None
    uniform_weights: bool
    x_bound: float | None
    compressed: int
    gradient_norm: float | None = None
    primal: float | None = None
    dual: float | None = None
    gap_rounding: float | None = None
    norm: float | None = None
    clipped_loss: float | None = None
    margin_at: float | None = None
    margin_error: float | None = None

    @property
    def regularization(self) -> float:
        """λ beside the mean loss."""
        return float(bounds.regularization_of_price(self.C, self.n))

    @property
    def distance(self) -> float:
        """‖w̃ − w̃*‖ at most, of every machine; infinite where nothing is proved."""
        if self.squared:
            return (
                math.inf
                if self.gradient_norm is None
                else _distance(self.gradient_norm, self.regularization)
            )
        if self.primal is None or self.dual is None:
            return math.inf
        return float(
            bounds.distance_from_gap(_GAP(self.primal, self.dual, self.gap_rounding or 0.0), 0.5)
        )

    @property
    def radius(self) -> float | None:
        """A bound on ‖(x, s)‖; None where none on ‖x‖ is stated."""
        if self.x_bound is None or self.intercept_scale is None:
            return self.x_bound
        return self.intercept_scale * float(bounds.padded_norm(self.x_bound / self.intercept_scale))

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

    def _write_optimality(self, writer: Writer) -> None:
        several = f", each of {self.classes} machines" if self.classes > 2 else ""
        label = f"objective above its minimum{several}"
        if not self.squared:
            read = {"primal": "primal", "dual": "dual", "rounding": "gap_rounding"}
            loss = "½‖w‖² + C·Σ max(0, 1 − y·f(x))"
            writer.claim(_GAP, read, loss=loss, label=label, met=_GAP.assumes)
            return
        loss = "mean of max(0, 1 − y·f(x))², + λ‖w‖²"
        read, derived = {"gradient_norm": "gradient_norm"}, {"regularization": self.regularization}
        writer.claim(
            bounds.strong_convexity_gap, read, loss=loss, label=label, met=(CONVEX,), **derived
        )
        writer.claim(bounds.distance_to_minimizer, read, loss=loss, met=(CONVEX,), **derived)

    def _write_compression(self, writer: Writer) -> None:
        """Rows with y·f*(x) > 1 do not move the minimizer; an error of f has y·f*(x) < 1 where |f −
        f*| < 1, and would.

        An error among several classes is one of some machine, so that the rows of all machines
        count together.
        """
        room = 1.0 / self.distance if self.distance > 0 else math.inf
        if not room > 0 or (self.radius is not None and self.radius >= room):
            writer.lacks(
                "risk",
                "the weights are not known to be near the minimizer: lower tol=",
                _COMPRESSION.key,
            )
            return
        assumptions = [CLASSES_KNOWN]
        if self.radius is None and math.isfinite(room):
            pad = "" if self.intercept_scale is None else " with its padding"
            assumptions.append(
                f"‖x‖{pad} < {0.999 * room:.3g} for every new row: the solver's tolerance turns"
                " none"
            )
        writer.claim(
            _COMPRESSION,
            {"size": "compressed", "n": "n"},
            assumptions=assumptions,
            met=_COMPRESSION.assumes[2:],
        )

    def _applies(self) -> float | Lacking:
        """The bound of ‖x‖, where a theorem about two classes applies."""
        if self.classes > 2:
            why = f"the theorem is about two classes, here are {self.classes}"
            return Lacking("theorem", why)
        return Lacking("theorem", _STATE) if self.radius is None else self.radius

    def _write_stability(self, writer: Writer) -> None:
        radius = self._applies()
        if isinstance(radius, Lacking):
            writer.lacks("uniform_stability", radius.reason, bounds.beta_near_minimizer.key)
            writer.lacks("risk", radius.reason, _STABILITY.key)
            return
        slope = radius
        if self.squared:
            slope = bounds.squared_hinge_lipschitz(radius, self.regularization, self.distance)
        derived = {
            "lipschitz": slope,
            "regularization": self.regularization,
            "distance": self.distance,
        }
        name = "squared hinge" if self.squared else "hinge"
        shared = {"met": (UNIFORM, CONVEX_LIPSCHITZ), "assumptions": (X_BOUNDED,)}
        writer.claim(bounds.beta_near_minimizer, {"n": "n"}, loss=name, **shared, **derived)
        writer.claim(
            _STABILITY,
            {"risk": "clipped_loss", "n": "n"},
            loss=f"clipped {name}, of min(1, max(0, 1 − y·f(x))): {AT_LEAST_ERRORS}",
            label=f"risk, clipped {name} loss",
            loss_bound=1.0,
            met=(UNIFORM, CONVEX_LIPSCHITZ, LOSS_NONNEGATIVE),
            assumptions=(X_BOUNDED,),
            **derived,
        )

    def _write_margin(self, writer: Writer) -> None:
        radius = self._applies()
        if isinstance(radius, Lacking):
            writer.lacks("risk", radius.reason, _RADEMACHER.key)
            return
        met = [
            line for line in _RADEMACHER.assumes if line in ("no unregularized intercept", BINARY)
        ]
        read = {"margin_error": "margin_error", "n": "n", "norm": "norm", "margin": "margin_at"}
        writer.claim(_RADEMACHER, read, radius=radius, met=met)


def _distance(gradient_norm: float, regularization: float) -> float:
    return float(bounds.distance_to_minimizer(gradient_norm, regularization))


@dataclass(frozen=True, eq=False)
class LiblinearMachines:
    """The weights of a fitted model, and what it was told; `measure_again` tells the record from
    the rows.

    Attributes
    ----------
    weights, intercepts : w, (machines, d), and b, (machines,)
    classes : the labels; of two, the machine is positive for the second
    C, squared, intercept_scale, x_bound : as in `LiblinearRecord`
    """

    Record: ClassVar[type[Record]] = LiblinearRecord

    weights: np.ndarray
    intercepts: np.ndarray
    classes: np.ndarray
    C: float
    squared: bool
    intercept_scale: float | None
    x_bound: float | None

    def measure_again(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> dict[str, Any]:
        """The record's fields, with how far rounding may have moved them."""
        rows = check_array(X, accept_sparse="csr", dtype=np.float64)
        y, weights = (
            np.asarray(y),
            _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True),
        )
        if y.shape != weights.shape or not np.isin(y, self.classes).all():
            raise ValueError(
                "y does not hold the classes that the model was fitted on, one for each row"
            )
        if self.x_bound is not None and (
            longest := math.sqrt(squared_norms(rows).max())
        ) > self.x_bound * (1 + 1e-12):
            raise ValueError(
                f"x_bound={self.x_bound:g} does not hold: a row has norm {longest:.6g}; state a"
                " larger bound"
            )
        padded = rows if self.intercept_scale is None else _padded(rows, self.intercept_scale)
        targets = [self.classes[1]] if len(self.classes) == 2 else self.classes
        machines = [
            _Measured(self, number, padded, np.where(y == target, 1.0, -1.0), weights)
            for number, target in enumerate(targets)
        ]
        facts: dict[str, Any] = {
            "n": rows.shape[0],
            "d": rows.shape[1],
            "classes": len(self.classes),
            "squared": self.squared,
            "C": self.C * float(weights.mean()),
            "intercept_scale": self.intercept_scale,
            "uniform_weights": bool(np.ptp(weights) <= 1e-12 * weights.max()),
            "x_bound": self.x_bound,
        }
        if self.squared:
            steepest = max((one.gradient() for one in machines), key=lambda found: found.value)
            facts["gradient_norm"] = steepest
            distance = _distance(
                steepest.value, float(bounds.regularization_of_price(facts["C"], facts["n"]))
            )
        else:
            primal, dual, rounding = max(
                (one.gap() for one in machines), key=lambda found: found[0] - found[1] + found[2]
            )
            near = 4 * rounding + 2 * _TOL * self.C * float(weights.sum())
            facts |= {
                "primal": primal,
                "dual": Within(dual, near),
                "gap_rounding": Within(rounding, rounding / 2),
            }
            distance = float(bounds.distance_from_gap(_GAP(primal, dual, rounding), 0.5))
        facts["compressed"] = int(
            np.any([one.may_be_held(distance) for one in machines], axis=0).sum()
        )
        return facts | (machines[0].of_two(self.squared) if len(machines) == 1 else {})


class _Measured:
    """One machine on the rows that it was fitted on, padded."""

    def __init__(
        self, model: LiblinearMachines, number: int, X: Any, signs: np.ndarray, weights: np.ndarray
    ) -> None:
        scale, bias = model.intercept_scale, float(model.intercepts[number])
        tail = [] if scale is None else [bias / scale]
        self.w = np.append(np.asarray(model.weights[number], dtype=float), tail)
        self.X, self.signs, self.upper = X, signs, model.C * weights
        self.margins = signs * np.asarray(X @ self.w).ravel()
        self.lengths = np.sqrt(squared_norms(X))
        # how far a margin can be off
        self.blur = (X.shape[1] + 4) * _EPS * self.lengths * np.linalg.norm(self.w)

    def gradient(self) -> Within:
        """‖∇F‖ of F = Σ C_i·max(0, 1 − m_i)²/ΣC_i + λ‖w̃‖², λ = 1/(2ΣC_i), and at most so much
        more by rounding.
        """
        total = float(self.upper.sum())
        short = HINGE.value(self.margins)
        pull = -self.upper * SQUARED_HINGE.derivative(self.margins) / total
        slope = self.w / total - np.asarray(self.X.T @ (pull * self.signs)).ravel()
        moved = 2 * self.upper / total * (self.blur + 2 * _EPS * short)
        error = (self.X.shape[0] + 8) * _EPS * float(pull @ self.lengths) + float(
            moved @ self.lengths
        )
        error += 8 * _EPS * float(np.linalg.norm(self.w)) / total
        found = float(np.linalg.norm(slope)) * (1 + (self.w.size + 4) * _EPS) + error
        return Within(found, 2 * error + 1e-6 * found)

    def gap(self) -> tuple[float, float, float]:
        """P(w̃) of these weights, D(α) of a dual point found here, and how far P − D can be off."""
        found = RowsDual(self._signed(), self.upper.copy())
        solve(found, tol=_TOL, passes=_PASSES, random=check_random_state(0))
        alpha = np.clip(found.alpha, 0.0, self.upper)
        own = np.asarray(found.Z.T @ alpha).ravel()
        square = float(self.w @ self.w)
        primal = square / 2 + float(self.upper @ HINGE.value(self.margins))
        dual = float(alpha.sum()) - float(own @ own) / 2
        reach = float(alpha @ self.lengths)  # at least ‖Σ α_i y_i x_i‖
        count = sum(self.X.shape) + 16
        rounding = (
            count
            * _EPS
            * (primal + float(alpha.sum()) + reach * float(np.linalg.norm(own)) + square)
        )
        return primal, min(dual, primal), rounding + float(self.upper @ self.blur)

    def _signed(self) -> Any:
        if sparse.issparse(self.X):
            return sparse.csr_array(self.X.multiply(self.signs[:, None]))
        return np.ascontiguousarray(self.X * self.signs[:, None])

    def may_be_held(self, distance: float) -> np.ndarray:
        """Rows that may have y·f(x) ≤ 1 at the minimizer, given how far that is."""
        return self.margins <= 1.0 + distance * self.lengths + self.blur

    def of_two(self, squared: bool) -> dict[str, Any]:
        """What the theorems about two classes read."""
        losses = (SQUARED_HINGE if squared else HINGE).value(self.margins)
        return {
            "norm": float(np.linalg.norm(self.w)),
            "clipped_loss": float(np.minimum(losses, 1.0).mean()),
            "margin_at": MARGIN,
            "margin_error": float((self.margins <= MARGIN).mean()),
        }


def _padded(X: Any, scale: float) -> Any:
    column = np.full((X.shape[0], 1), scale)
    return (
        sparse.csr_array(sparse.hstack([X, column]))
        if sparse.issparse(X)
        else np.hstack([X, column])
    )
