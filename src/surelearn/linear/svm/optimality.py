"""How far a machine's objective can be above the minimum, rounding included: weak duality with the
α that was found.

For any weights w, intercept b and 0 ≤ α_i ≤ C_i, with margins m_i = y_i f(x_i), w_α = Σ α_i y_i
φ(x_i) and s = Σ α_i y_i,

    P(w, b) − D(α) = Σ_i [(C_i − α_i)(1 − m_i)⁺ + α_i(m_i − 1)⁺] + ½‖w − w_α‖² − bs.

The sum has no negative term and cancels nothing; each term moves by at most C_i times an error in
m_i. The w that is kept is within δ of w_α, by rounding alone, so that only δ² counts. A free
intercept needs s = 0, which rounding spoils: taking |s| from one α_i with y_i = sgn s mends it, and
adds |s|(1 − m_i) and at most δ² + s²k(x_i, x_i), while bs drops out. A matrix K that rounding kept
from being positive semidefinite stands for K + τI, which moves m_i by τα_i.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from surelearn.kernel.composites import Product, Sum
from surelearn.kernel.functions import Kernel, Linear, Polynomial, Precomputed
from surelearn.linear.svm.dual import intercept_error
from surelearn.linear.svm.machine import Machine, MarginProblem
from surelearn.losses import HINGE

_EPS = float(np.finfo(float).eps)
# squared distances keep a ten-thousandth of their digits at worst, and t·exp(−t) ≤ 0.37
_DISTANCES = 4000.0


@dataclass(frozen=True)
class Optimality:
    """What weak duality proves about a machine.

    Attributes
    ----------
    primal : ½‖w‖² + Σ C_i·hinge, for a hard margin ½‖w‖²
    dual : the dual value that the primal one was compared with
    rounding : how far primal − dual can be off
    margins : y_i·f(x_i), as computed
    blur : how far each of them can be off
    bias_error : how far a free intercept can be from an exact one
    """

    primal: float
    dual: float
    rounding: float
    margins: np.ndarray
    blur: np.ndarray
    bias_error: float

    @property
    def gap(self) -> float:
        """How far the primal value can be above the minimum."""
        return self.primal - self.dual + self.rounding

    @property
    def weight_error(self) -> float:
        """‖w − w*‖ ≤ √(2·gap): ½‖w‖² makes the objective 1-strongly convex."""
        return math.sqrt(2 * self.gap)

    def compressed(self, squared: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """Rows that may have y·f(x) ≤ 1 under the exact solution: removing all the others
        leaves it as it is.
        """
        error = self.weight_error * np.sqrt(squared) + self.bias_error + self.blur
        return np.flatnonzero((self.margins <= 1.0 + error) | (alpha > 0))


def optimality(
    problem: MarginProblem, machine: Machine, weights: np.ndarray | None = None
) -> Optimality | None:
    """The proof for a machine as it is kept: without ``weights`` by α, else by w; None where α
    is not feasible.
    """
    alpha, upper = machine.alpha, machine.alpha if problem.upper is None else problem.upper
    if not ((alpha >= 0) & (alpha <= upper * (1 + 2 * _EPS))).all():
        return None
    alpha = np.minimum(alpha, upper)
    squared = problem.squared()
    lengths, used = np.sqrt(squared), np.count_nonzero(alpha)
    total = float(alpha @ lengths)  # at least ‖w‖
    if weights is None:
        margins, norm = machine.margins, machine.norm
        error = total * ((2 * used + 8) * _EPS + _kernel_error(problem.kernel, problem.X))
    else:
        margins = problem.signs * (np.asarray(problem.X @ weights) + machine.bias)
        norm = math.hypot(float(np.linalg.norm(weights)), problem.padding * machine.bias)
        error = norm * (_entries(problem.X) + 4) * _EPS
    short = 1.0 - margins
    mended = _mended(problem, alpha, short)
    if mended is None:
        return None
    gap = math.fsum(np.where(short > 0, (upper - alpha) * short, -alpha * short)) + mended
    primal = norm**2 / 2 + (0.0 if problem.upper is None else float(upper @ HINGE.value(margins)))
    drift = 2 * (used + 1) * _EPS * total  # at least ‖w − w_α‖
    blur = error * lengths + problem.shift * alpha + 4 * _EPS * abs(machine.bias)
    rounding = float(upper @ blur) + drift**2 + 8 * _EPS * (gap + primal)
    bias_error = 0.0
    if problem.intercept == "free":
        room = np.full_like(alpha, np.inf) if problem.upper is None else upper
        bias_error = intercept_error(
            alpha, room, margins, problem.signs, squared, gap + rounding
        ) + float(blur.max())
    return Optimality(primal, primal - gap, rounding, margins, blur, bias_error)


def _mended(problem: MarginProblem, alpha: np.ndarray, short: np.ndarray) -> float | None:
    """What it costs to make Σ α_i y_i = 0 where the intercept is free; None where no single α_i
    can.
    """
    if problem.intercept != "free" or (excess := math.fsum(alpha * problem.signs)) == 0.0:
        return 0.0
    able = (problem.signs == math.copysign(1.0, excess)) & (alpha >= abs(excess))
    if not able.any():
        return None
    return float(
        (abs(excess) * np.maximum(short[able], 0.0) + excess**2 * problem.squared()[able]).min()
    )


def _kernel_error(kernel: Kernel, X: Any) -> float:
    """How far a computed k(x, z) can be off, divided by √(k(x, x) k(z, z))."""
    return (
        0.0 if isinstance(kernel, Precomputed) else _kernel_times(kernel) * (_entries(X) + 8) * _EPS
    )


def _kernel_times(kernel: Kernel) -> float:
    """Errors of factors add up; those of a sum's parts are at most the largest part's, and one
    more for the sum.
    """
    if isinstance(kernel, Product):
        return 1.0 + sum(_kernel_times(part) for part in kernel.parts)
    if isinstance(kernel, Sum):
        return 1.0 + max(_kernel_times(part) for part in kernel.parts)
    return (
        1.0
        if isinstance(kernel, Linear)
        else kernel.degree
        if isinstance(kernel, Polynomial)
        else _DISTANCES
    )


def _entries(X: Any) -> int:
    """The most entries of a row that a sum runs over."""
    return int(np.diff(X.indptr).max(initial=0)) if sparse.issparse(X) else X.shape[1]
