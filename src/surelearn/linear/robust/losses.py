"""Losses that a wild target cannot rule: Huber's, the Moreau envelope of η|·|, and clipped losses in variational form.

Course, Section 17. Both are minimized by weighted least squares: a residual's weight says how far its row is believed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg

from surelearn.optim.stopping import Stopper

Array = npt.NDArray[np.float64]

DENSE = 4000  # most features for which the normal equations are formed


def huber_loss(t: npt.ArrayLike, threshold: float) -> Any:
    """M^η(t) = min_s ½(s − t)² + η|s| = ½t² where |t| ≤ η, and η|t| − ½η² beyond.

    The course prints η|t| − ½t² for the outer branch, a misprint: the envelope is continuous and grows with slope η.

    Examples
    --------
    >>> huber_loss([0.5, 1.0, 3.0], 1.0).tolist()
    [0.125, 0.5, 2.5]
    """
    size = np.abs(t)
    return np.where(size <= threshold, size**2 / 2, threshold * size - threshold**2 / 2)


def proximal_point(t: npt.ArrayLike, threshold: float) -> Any:
    """The s that attains M^η(t): sgn(t)·max(|t| − η, 0). The slope of M^η at t is t − s.

    Examples
    --------
    >>> proximal_point([0.5, -3.0], 1.0).tolist()
    [0.0, -2.0]
    """
    t = np.asarray(t, dtype=float)
    return t - np.clip(t, -threshold, threshold)


@dataclass(frozen=True)
class Clipped:
    """A bounded loss ℓ̃(t) = min over η in [0, 1] of η·ℓ(t) + ψ(η), with ℓ(t) = ½t² and at most c = ½·threshold².

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
        return (loss < self.c).astype(float) if self.kind == "truncation" else (self.c / (self.c + loss)) ** 2

    def loss(self, t: npt.ArrayLike) -> Any:
        """ℓ̃(t)."""
        loss = np.square(np.asarray(t, dtype=float)) / 2
        return np.minimum(loss, self.c) if self.kind == "truncation" else self.c * (loss / (self.c + loss))


@dataclass(frozen=True)
class Problem:
    """Rows A (with a last column of ones for an intercept), targets, weights that sum to 1, and λ for all but it."""

    A: Any
    y: Array
    weights: Array
    penalty: Array

    @classmethod
    def of(cls, X: Any, y: Array, weights: Array, regularization: float, fit_intercept: bool) -> Problem:
        """The problem (1/Σs)·Σ s_i loss(r_i) + λ‖w‖²."""
        ones = np.ones((X.shape[0], 1))
        penalty = np.full(X.shape[1], float(regularization))
        if fit_intercept:
            X = sparse.hstack([X, ones], format="csr") if sparse.issparse(X) else np.hstack([X, ones])
            penalty = np.append(penalty, 0.0)
        return cls(X, y, weights / weights.sum(), penalty)

    def residual(self, v: Array) -> Array:
        """Targets minus Av."""
        return self.y - self.A @ v

    def tikhonov(self, v: Array) -> float:
        """λ‖w‖²."""
        return float(self.penalty @ v**2)

    def solve(self, belief: Array, right: Array, start: Array) -> Array:
        """(AᵀDA + 2λ)⁻¹ right, with D = weights·belief: a step of weighted least squares; the shortest if many."""
        D, twice = self.weights * belief, 2 * self.penalty
        if sparse.issparse(self.A) or self.A.shape[1] > DENSE:
            size = self.A.shape[1]
            operator = LinearOperator((size, size), matvec=lambda v: self.A.T @ (D * (self.A @ v)) + twice * v, dtype=float)
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


@dataclass(frozen=True)
class Minimum:
    """Where a minimization ended: weights, objective, gradient norm and steps."""

    v: Array
    objective: float
    gradient_norm: float
    steps: int


def minimize_huber(problem: Problem, threshold: float, tolerance: float, max_iter: int) -> Minimum:
    """The minimizer of Σ s_i M^η(r_i) + λ‖w‖² by semismooth Newton steps, until the gradient's norm is ≤ ``tolerance``.

    The objective is convex and piecewise quadratic: Newton's step minimizes the piece it stands on, and ends exactly once
    it knows which rows are beyond η. Rows beyond η have no curvature; reweighted least squares gives them η/|r|, which
    never fails and is slow. ``caution`` mixes the two: 1 is reweighting, 0 Newton. The step's length is exact.
    """
    v, caution, stopper = np.zeros(problem.A.shape[1]), 1.0, Stopper(passes=max_iter)
    best = None
    while True:
        r = problem.residual(v)
        gradient = 2 * problem.penalty * v - problem.A.T @ (problem.weights * np.clip(r, -threshold, threshold))
        norm = float(np.linalg.norm(gradient))
        if best is None or norm < best.gradient_norm:
            objective = float(problem.weights @ huber_loss(r, threshold)) + problem.tikhonov(v)
            best = Minimum(v, objective, norm, stopper.done)
        if stopper.after(converged=norm <= tolerance):
            return replace(best, steps=stopper.done)
        size = np.abs(r)
        belief = np.where(size <= threshold, 1.0, caution * threshold / np.maximum(size, threshold))
        step = problem.solve(belief, -gradient, np.zeros_like(v))
        length = _step_length(problem, threshold, v, r, step)
        caution = min(1.0, caution * 10) if length < 0.3 else max(caution / 10, 1e-12)
        v = v + length * step


def _step_length(problem: Problem, threshold: float, v: Array, r: Array, step: Array) -> float:
    """The t ≥ 0 that minimizes Huber's objective at v + t·step: its slope is increasing and linear between kinks."""
    change, penalty = problem.A @ step, 2 * problem.penalty * step

    def slope(t: float) -> float:
        pull = problem.weights * np.clip(r - t * change, -threshold, threshold)
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
    """Alternate between the rows' beliefs η and weighted least squares; the weights, and the objective after each step.

    Each half minimizes Σ s_i(η_i·½r_i² + ψ(η_i)) + λ‖w‖² exactly in its own variables, so the objective never rises.
    """

    def value(v: Array) -> float:
        return float(problem.weights @ clipped.loss(problem.residual(v))) + problem.tikhonov(v)

    v, stopper = start, Stopper(passes=max_iter)
    objectives = [value(v)]
    while True:
        belief = clipped.belief(problem.residual(v))
        right = problem.A.T @ (problem.weights * belief * problem.y)
        moved = problem.solve(belief, right, v)
        objective = value(moved)
        if objective >= objectives[-1]:  # a partial optimum, up to rounding
            break
        gain = objectives[-1] - objective
        v, objectives = moved, [*objectives, objective]
        if stopper.after(converged=gain <= tolerance * objective):
            break
    return v, np.array(objectives)
