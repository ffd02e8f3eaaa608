"""Objectives that a wild target cannot rule: of Huber's loss (`surelearn.losses.huber`), the Moreau
envelope of η|·|, and of clipped losses in variational form.

Course, Section 17. Both are minimized by weighted least squares: a residual's weight says how far
its row is believed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg

from surelearn.linear._regressor import row_norms
from surelearn.losses import huber, huber_loss
from surelearn.optim.spread import column_spreads, divided
from surelearn.optim.stopping import Stopper

Array = npt.NDArray[np.float64]

# thresholds in units of σ: at normal residuals Huber's fit has 95% of least squares' efficiency
KNEE = 1.345
NORMAL = 0.7101645482061506  # E min(Z², c²), Z standard normal, c = 1.345
ROUNDS = 20  # of fit and scale
DENSE = 4000  # most features for which the normal equations are formed


def proximal_point(t: npt.ArrayLike, threshold: float) -> Any:
    """The s that attains M^η(t): sgn(t)·max(|t| − η, 0). The slope of M^η at t is t − s.

    Examples
    --------
    >>> proximal_point([0.5, -3.0], 1.0).tolist()
    [0.0, -2.0]
    """
    t = np.asarray(t, dtype=float)
    return t - huber(threshold).derivative(t)


@dataclass(frozen=True)
class Clipped:
    """A bounded loss ℓ̃(t) = min over η in [0, 1] of η·ℓ(t) + ψ(η), with ℓ(t) = ½t² and at most c =
    ½·threshold².

    ``kind`` names ψ:

    - "truncation": ψ(η) = c(1 − η), so that ℓ̃ = min(ℓ, c) and a row is believed (η = 1) or not (η = 0);
    - "geman_mcclure": ψ(η) = c(1 − √η)², so that ℓ̃ = cℓ/(c + ℓ) and η = (c/(c + ℓ))²
      (M. Black and A. Rangarajan, IJCV 19 (1996), Section 3; S. Geman and D. McClure, 1987).

    Examples
    --------
    >>> Clipped("truncation", 2.0).loss([1.0, 3.0]).tolist()
    [0.5, 2.0]
    >>> Clipped("geman_mcclure", 2.0).loss([2.0, 1e9]).round(6).tolist()
    [1.0, 2.0]
    """

    kind: str
    threshold: float

    @property
    def c(self) -> float:
        """The level that the loss never exceeds."""
        return self.threshold**2 / 2

    def psi(self, belief: npt.ArrayLike) -> Any:
        """ψ(η): what it costs to disbelieve a row."""
        eta = np.asarray(belief, dtype=float)
        return self.c * (1 - eta if self.kind == "truncation" else (1 - np.sqrt(eta)) ** 2)

    def belief(self, t: npt.ArrayLike) -> Any:
        """The η that attains ℓ̃(t), in closed form."""
        loss = np.square(np.asarray(t, dtype=float)) / 2
        return (
            (loss < self.c).astype(float)
            if self.kind == "truncation"
            else (self.c / (self.c + loss)) ** 2
        )

    def loss(self, t: npt.ArrayLike) -> Any:
        """ℓ̃(t)."""
        loss = np.square(np.asarray(t, dtype=float)) / 2
        return (
            np.minimum(loss, self.c)
            if self.kind == "truncation"
            else self.c * (loss / (self.c + loss))
        )


@dataclass(frozen=True)
class Problem:
    """Rows A (with a last column of ones for an intercept), targets, weights that sum to 1, and λ
    for all but it.

    ``spreads`` (d,) is what the columns were divided by: 1 where the penalty is on weights in the
    columns' own units.
    """

    A: Any
    y: Array
    weights: Array
    penalty: Array
    spreads: Array

    @classmethod
    def of(
        cls,
        X: Any,
        y: Array,
        weights: Array,
        regularization: float,
        fit_intercept: bool,
        *,
        relative: bool = False,
    ) -> Problem:
        """The problem (1/Σs)·Σ s_i loss(r_i) + λ‖w‖²; ``relative``: of columns divided by their
        spread.
        """
        spreads = column_spreads(X, weights) if relative else np.ones(X.shape[1])
        X = divided(X, spreads) if relative else X
        ones = np.ones((X.shape[0], 1))
        penalty = np.full(X.shape[1], float(regularization))
        if fit_intercept:
            X = (
                sparse.hstack([X, ones], format="csr")
                if sparse.issparse(X)
                else np.hstack([X, ones])
            )
            penalty = np.append(penalty, 0.0)
        return cls(X, y, weights / weights.sum(), penalty, spreads)

    def residual(self, v: Array) -> Array:
        """Targets minus Av."""
        return self.y - self.A @ v

    def tikhonov(self, v: Array) -> float:
        """λ‖w‖²."""
        return float(self.penalty @ v**2)

    def huber_gradient(self, v: Array, r: Array, threshold: float) -> Array:
        """The gradient of Σ s_i M^η(r_i) + λ‖w‖² at v, whose residuals are r."""
        return 2 * self.penalty * v - self.A.T @ (self.weights * huber(threshold).derivative(r))

    def huber_objective(self, v: Array, r: Array, threshold: float) -> float:
        """Σ s_i M^η(r_i) + λ‖w‖² at v, whose residuals are r."""
        return float(self.weights @ huber_loss(r, threshold)) + self.tikhonov(v)

    def clipped_objective(self, v: Array, clipped: Clipped) -> float:
        """Σ s_i ℓ̃(r_i) + λ‖w‖² at v."""
        return float(self.weights @ clipped.loss(self.residual(v))) + self.tikhonov(v)

    def solve(self, belief: Array, right: Array, start: Array) -> Array:
        """(AᵀDA + 2λ)⁻¹ right, with D = weights·belief: a step of weighted least squares; the
        shortest if many.
        """
        D, twice = self.weights * belief, 2 * self.penalty
        if sparse.issparse(self.A) or self.A.shape[1] > DENSE:
            size = self.A.shape[1]
            operator = LinearOperator(
                (size, size),
                matvec=lambda v: self.A.T @ (D * (self.A @ v)) + twice * v,
                dtype=float,
            )
            return cg(operator, right, x0=start, rtol=1e-12, maxiter=10 * size)[0]
        H = self.A.T @ (D[:, None] * self.A)
        H.flat[:: H.shape[0] + 1] += twice
        scale = np.sqrt(np.maximum(np.diag(H), np.finfo(float).tiny))
        try:
            if np.diag(H).min() <= 0:
                raise linalg.LinAlgError
            factor = linalg.cho_factor(H / np.outer(scale, scale))
            if np.abs(np.diag(factor[0])).min() < 1e-7:
                raise linalg.LinAlgError
            return linalg.cho_solve(factor, right / scale) / scale
        except linalg.LinAlgError:
            return np.linalg.lstsq(H, right, rcond=1e-13)[0]


def huber_dual(problem: Problem, v: Array, threshold: float, *, free: bool) -> tuple[float, float]:
    """A lower bound on Huber's objective by weak duality, and how far rounding can move objective
    minus bound; λ > 0.

    M^η(r) is the largest ur − ½u² with |u| ≤ η, so that D(u) = Σ s_i(u_i y_i − ½u_i²) − ‖Σ s_i u_i
    x_i‖²/(4λ) is a bound for every such u, with a free b for those whose Σ s_i u_i is 0. At the
    minimizer u_i is the residual, clipped; here its mean S is taken away and u shrunk by 1 + |S|/η,
    so that it stays in the box. Rounding leaves a mean of e: a u that has none is within 2e, and D
    with it within 2e·(Σ s_i|y_i − u_i| + x̄‖w_u‖) + (2e·x̄)²/4λ, where x̄ = Σ s_i‖x_i‖ and w_u = Σ
    s_i u_i x_i/2λ.
    """
    eps, (n, width) = float(np.finfo(float).eps), problem.A.shape
    s, y, lam = problem.weights, problem.y, float(problem.penalty[0])
    sizes = row_norms(problem.A)
    residual = problem.residual(v)
    u = huber(threshold).derivative(residual)
    if free:
        mean = float(s @ u)
        u = np.clip((u - mean) / (1 + abs(mean) / threshold), -threshold, threshold)
    pull = np.asarray(problem.A.T @ (s * u))[: width - free]
    square, size = float(pull @ pull) / (4 * lam), float(np.linalg.norm(pull))
    dual = float(s @ (u * y - u**2 / 2)) - square
    reach = float(s @ sizes)  # x̄, or more
    blur = (width + 8) * eps * float((np.abs(y) + sizes * np.linalg.norm(v)).max())  # of a residual
    off = (n + 8) * eps * threshold * reach  # of the pull
    rounding = threshold * blur + (n + 12) * eps * problem.huber_objective(v, residual, threshold)
    rounding += (n + 12) * eps * float(s @ (np.abs(u * y) + u**2)) + (width + 12) * eps * square
    rounding += (2 * size * off + off**2) / (4 * lam)
    if free:
        left = 2 * (n + 12) * eps * threshold
        rounding += left * (float(s @ np.abs(y - u)) + reach * size / (2 * lam)) + (
            left * reach
        ) ** 2 / (4 * lam)
    return dual, 2 * rounding


@dataclass(frozen=True)
class Minimum:
    """Where a minimization ended: weights, objective, gradient norm and steps."""

    v: Array
    objective: float
    gradient_norm: float
    steps: int


def huber_scale(residuals: Array, weights: Array) -> float:
    """Huber's "proposal 2": the σ with Σ s_i min(r_i²/σ², c²) = E min(Z², c²), Z standard normal, c
    = 1.345; Σs = 1.

    P. Huber, Robust Statistics (1981), Section 6.7: σ of normal residuals, which a few wild ones
    move little. Where most residuals are 0 there is none, and the root mean square stands for it.

    Examples
    --------
    >>> r = np.random.default_rng(0).normal(scale=3.0, size=10_000)
    >>> round(huber_scale(r, np.full(r.size, 1e-4)), 1)
    3.0
    """
    square = float(weights @ residuals**2)
    if float(weights @ (residuals != 0)) * KNEE**2 <= NORMAL:
        return float(np.sqrt(square))
    low, high = 0.0, float(np.sqrt(square / NORMAL))  # the sum is at most r²/σ²
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        above = (
            float(weights @ np.minimum((residuals / middle) ** 2, KNEE**2)) > NORMAL
            if middle > 0
            else True
        )
        low, high = (middle, high) if above else (low, middle)
    return high


def scale_of_rows(problem: Problem, reach: float) -> float:
    """The scale σ of the residuals of Huber's fit with threshold 1.345·σ: fit and scale in turn,
    from least squares on.

    Where the rows are fitted exactly, the targets' own spread, or 1.
    """
    v = problem.solve(
        np.ones(len(problem.y)),
        problem.A.T @ (problem.weights * problem.y),
        np.zeros(problem.A.shape[1]),
    )
    scale = huber_scale(problem.residual(v), problem.weights)
    size = float(np.abs(problem.y).max())
    for _ in range(ROUNDS):
        if scale <= 1e-10 * size:
            center = float(problem.weights @ problem.y)
            return float(np.sqrt(problem.weights @ (problem.y - center) ** 2)) or size or 1.0
        found = minimize_huber(problem, KNEE * scale, KNEE * scale * reach, 200, start=v)
        before, v, scale = scale, found.v, huber_scale(problem.residual(found.v), problem.weights)
        if abs(scale - before) <= 1e-3 * before:
            break
    return scale


def minimize_huber(
    problem: Problem, threshold: float, tolerance: float, max_iter: int, start: Array | None = None
) -> Minimum:
    """The minimizer of Σ s_i M^η(r_i) + λ‖w‖² by semismooth Newton steps, until the gradient's norm
    is ≤ ``tolerance``.

    The objective is convex and piecewise quadratic: Newton's step minimizes the piece it stands on,
    and ends exactly once it knows which rows are beyond η. Rows beyond η have no curvature;
    reweighted least squares gives them η/|r|, which never fails and is slow. ``caution`` mixes the
    two: 1 is reweighting, 0 Newton. The step's length is exact.
    """
    v, caution, stopper = np.zeros(problem.A.shape[1]), 1.0, Stopper(passes=max_iter)
    v = v if start is None else start
    best = None
    while True:
        r = problem.residual(v)
        gradient = problem.huber_gradient(v, r, threshold)
        norm = float(np.linalg.norm(gradient))
        if best is None or norm < best.gradient_norm:
            best = Minimum(v, problem.huber_objective(v, r, threshold), norm, stopper.done)
        if stopper.after(converged=norm <= tolerance):
            return replace(best, steps=stopper.done)
        # a Newton step whose outliers count as much as ``caution`` says: less caution after good steps
        size = np.abs(r)
        belief = np.where(size <= threshold, 1.0, caution * threshold / np.maximum(size, threshold))
        step = problem.solve(belief, -gradient, np.zeros_like(v))
        length = _step_length(problem, threshold, v, r, step)
        caution = min(1.0, caution * 10) if length < 0.3 else max(caution / 10, 1e-12)
        v = v + length * step


def _step_length(problem: Problem, threshold: float, v: Array, r: Array, step: Array) -> float:
    """The t ≥ 0 that minimizes Huber's objective at v + t·step: its slope is increasing and
    linear between kinks.
    """
    change, penalty = problem.A @ step, 2 * problem.penalty * step
    derivative = huber(threshold).derivative

    def slope(t: float) -> float:
        pull = problem.weights * derivative(r - t * change)
        return float(penalty @ (v + t * step) - pull @ change)

    moving = change != 0
    kinks = ((r[moving] - threshold) / change[moving], (r[moving] + threshold) / change[moving])
    kinks = np.unique(np.concatenate([[0.0], *kinks]))
    kinks = kinks[(kinks >= 0) & np.isfinite(kinks)]
    low, high = 0, len(kinks)  # the slope is < 0 at kinks[low], ≥ 0 at kinks[high]
    if slope(0.0) >= 0:
        return 0.0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if slope(kinks[middle]) < 0 else (low, middle)
    start = float(kinks[low])
    end = float(kinks[high]) if high < len(kinks) else start + 1.0
    before, after = slope(start), slope(end)
    return start - before * (end - start) / (after - before) if after > before else end


def minimize_clipped(
    problem: Problem, clipped: Clipped, start: Array, tolerance: float, max_iter: int
) -> tuple[Array, Array]:
    """Alternate between the rows' beliefs η and weighted least squares; the weights, and the
    objective after each step.

    Each half minimizes Σ s_i(η_i·½r_i² + ψ(η_i)) + λ‖w‖² exactly in its own variables, so the
    objective never rises.
    """
    v, stopper = start, Stopper(passes=max_iter)
    objectives = [problem.clipped_objective(v, clipped)]
    while True:
        belief = clipped.belief(problem.residual(v))
        right = problem.A.T @ (problem.weights * belief * problem.y)
        moved = problem.solve(belief, right, v)
        objective = problem.clipped_objective(moved, clipped)
        if objective >= objectives[-1]:  # a partial optimum, up to rounding
            break
        gain = objectives[-1] - objective
        v, objectives = moved, [*objectives, objective]
        if stopper.after(converged=gain <= tolerance * objective):
            break
    return v, np.array(objectives)
