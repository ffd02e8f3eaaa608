"""The dual of the support vector machine (course, 6.b), solved without an intercept, and what a dual solution proves.

Without a free intercept the dual has no equality constraint: max Σα_i − ½αᵀQα, 0 ≤ α_i ≤ C_i, Q_ij = y_i y_j k(x_i, x_j).
LIBSVM cannot leave that constraint out, and LIBLINEAR through scikit-learn does not return α; its algorithm is short, and is
here helped by an interior-point method (M. Ferris and T. Munson, SIAM J. Optim. 13 (2002)), whose cost does not depend on C,
and by Newton steps on the free α_i, which reach a gap of 10⁻¹² where coordinate ascent alone would crawl.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import linalg, sparse
from threadpoolctl import threadpool_limits

from surelearn.kernel.functions import inner_products, squared_norms

_MOST_FREE = 1500  # free α_i up to which a Newton step is worth its cube
_FEW_FREE = 600  # up to which every pass may end with one
_NEWTON_STEPS = 30
_AFFORDABLE = 2e10  # multiplications of an interior-point step: some seconds


@dataclass
class GramDual:
    """The dual for a matrix Q."""

    Q: np.ndarray
    upper: np.ndarray
    alpha: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.alpha = np.zeros(self.upper.size)
        self._margins = np.zeros(self.upper.size)

    def one_pass(self, order: np.ndarray) -> None:
        """Coordinate ascent over the rows in ``order``."""
        from surelearn.linear.svm import passes as svm_passes

        svm_passes.gram_pass(self.Q, order, self.alpha, self.upper, self._margins)

    def margins(self) -> np.ndarray:
        """y_i·f(x_i) = (Qα)_i, computed again so that rounding does not add up."""
        self._margins = self.Q @ self.alpha
        return self._margins

    def part(self, rows: np.ndarray) -> np.ndarray:
        """Q among some rows."""
        return self.Q[np.ix_(rows, rows)]

    interior_after = 15  # passes after which coordinate ascent has had its chance

    def interior_cost(self) -> float:
        """Multiplications of an interior-point step."""
        return self.alpha.size**3 / 3

    def solve_shifted(self, diagonal: np.ndarray, right: np.ndarray) -> np.ndarray:
        """(Q + diag)⁻¹·right."""
        shifted = self.Q + np.diag(diagonal)
        return linalg.cho_solve(linalg.cho_factor(shifted, overwrite_a=True, check_finite=False), right)


@dataclass
class RowsDual:
    """The dual for rows z_i = y_i·x_i, dense or CSR: a pass costs the number of entries."""

    Z: Any
    upper: np.ndarray
    alpha: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.alpha = np.zeros(self.upper.size)
        self._squared = squared_norms(self.Z)
        self._weights = np.zeros(self.Z.shape[1])

    def one_pass(self, order: np.ndarray) -> None:
        """Coordinate ascent over the rows in ``order``."""
        from surelearn.linear.svm import passes as svm_passes

        state = (self._squared, order, self.alpha, self.upper, self._weights)
        if sparse.issparse(self.Z):
            svm_passes.sparse_pass(self.Z.data, self.Z.indices, self.Z.indptr, *state)
        else:
            svm_passes.dense_pass(self.Z, *state)

    def margins(self) -> np.ndarray:
        """y_i·f(x_i) = ⟨z_i, Σ α_j z_j⟩, computed again so that rounding does not add up."""
        self._weights = np.asarray(self.Z.T @ self.alpha)
        return np.asarray(self.Z @ self._weights)

    def part(self, rows: np.ndarray) -> np.ndarray:
        """Q among some rows."""
        return inner_products(self.Z[rows], self.Z[rows])

    interior_after = 1

    def interior_cost(self) -> float:
        """Multiplications of an interior-point step; sparse rows are left to coordinate ascent unless they are narrow."""
        n, d = self.Z.shape
        return np.inf if sparse.issparse(self.Z) and d > 500 else n * float(d) ** 2

    def solve_shifted(self, diagonal: np.ndarray, right: np.ndarray) -> np.ndarray:
        """(ZZᵀ + diag)⁻¹·right by a d × d system (Woodbury)."""
        Z = self.Z.toarray() if sparse.issparse(self.Z) else self.Z
        scaled = Z / diagonal[:, None]
        inner = Z.T @ scaled
        inner[np.diag_indices_from(inner)] += 1.0
        factor = linalg.cho_factor(inner, overwrite_a=True, check_finite=False)
        return right / diagonal - scaled @ linalg.cho_solve(factor, scaled.T @ right)


def solve(dual: GramDual | RowsDual, *, tol: float, passes: int, random: Any) -> int:
    """Maximize the dual until the gap is at most ``tol``·ΣC_i; the passes made.

    tol is the gap of (1/n)·Σ hinge + λ‖w‖² with λ = 1/(2Cn), whose value at w = 0 is 1.
    """
    enough = tol * dual.upper.sum()
    with threadpool_limits(1, user_api="blas"):  # many small systems: threads would wait for each other
        for done in range(1, passes + 1):
            dual.one_pass(random.permutation(dual.alpha.size))
            margins = dual.margins()
            if done == dual.interior_after and dual.interior_cost() <= _AFFORDABLE:
                if gap(dual.alpha, dual.upper, margins) > enough:
                    _interior(dual)
                    _newton(dual, dual.margins(), every=True)
                margins = dual.margins()
            if gap(dual.alpha, dual.upper, margins) > enough and done >= 3:
                _newton(dual, margins, every=done % 5 == 0)
                margins = dual.margins()
            if gap(dual.alpha, dual.upper, margins) <= enough:
                return done
    return passes


def gap(alpha: np.ndarray, upper: np.ndarray, margins: np.ndarray) -> float:
    """Primal minus dual objective, from y_i·f(x_i): αᵀQα + ΣC_i(1 − y_i f(x_i))⁺ − Σα_i.

    As a sum of terms that are never negative, so that nothing cancels: (C_i − α_i)(1 − m_i)⁺ + α_i(m_i − 1)⁺.
    """
    short = 1.0 - margins
    return float(np.sum(np.where(short > 0, (upper - alpha) * np.maximum(short, 0.0), -alpha * np.minimum(short, 0.0))))


def _interior(dual: GramDual | RowsDual) -> None:
    """Follow the central path α_i z_i = (C_i − α_i) v_i = μ → 0, then put every α_i that is nearly at a bound there.

    Taken over only if its gap is smaller than the one that was reached.
    """
    before, reached = dual.alpha, gap(dual.alpha, dual.upper, dual.margins())
    upper = dual.upper
    dual.alpha = upper / 2
    slope = dual.margins() - 1.0
    shift = 1.0 + 0.01 * float(np.abs(slope).mean())
    low, high = np.maximum(slope, 0) + shift, np.maximum(-slope, 0) + shift  # multipliers z of α ≥ 0 and v of α ≤ C
    length = 0.0
    for _ in range(150):
        alpha, rest = dual.alpha, upper - dual.alpha
        mu = (1.0 - 0.9 * length) * float(low @ alpha + high @ rest) / (2 * upper.size)  # short steps ask for centring
        if mu <= 1e-14 * upper.mean():
            break
        try:
            step = dual.solve_shifted(low / alpha + high / rest, 1.0 - dual.margins() + mu / alpha - mu / rest)
        except linalg.LinAlgError:
            break
        d_low = mu / alpha - low - low * step / alpha
        d_high = mu / rest - high + high * step / rest
        if not (np.isfinite(step).all() and np.isfinite(d_low).all() and np.isfinite(d_high).all()):
            break
        length = 1.0
        for value, change in ((alpha, step), (rest, -step), (low, d_low), (high, d_high)):
            falling = change < 0
            if falling.any():
                length = min(length, 0.99 * float(np.min(-value[falling] / change[falling])))
        moved = alpha + length * step
        if not ((moved > 0) & (moved < upper)).all():
            break
        dual.alpha, low, high = moved, low + length * d_low, high + length * d_high
    short = 1.0 - dual.margins()
    dual.alpha[dual.alpha < 1e-6 * upper * (short < -1e-8)] = 0.0
    near = (upper - dual.alpha < 1e-6 * upper) & (short > 1e-8)
    dual.alpha[near] = upper[near]
    if not gap(dual.alpha, upper, dual.margins()) < reached:
        dual.alpha = before


def _newton(dual: GramDual | RowsDual, margins: np.ndarray, *, every: bool) -> None:
    """Steps to the maximum over the free α_i, each as far as the box allows; they only ever increase the dual.

    Many free α_i make a step dear: it is then taken only where ``every`` says so.
    """
    for _ in range(_NEWTON_STEPS):
        free = np.flatnonzero((dual.alpha > 0) & (dual.alpha < dual.upper))
        if not 0 < free.size <= (_MOST_FREE if every else _FEW_FREE):
            return
        Q, short = dual.part(free), 1.0 - margins[free]
        ridge = 1e-13 * max(float(np.trace(Q)), 1e-300)
        try:
            step = linalg.solve(Q + ridge * np.eye(free.size), short, assume_a="pos", check_finite=False)
        except linalg.LinAlgError:
            return
        rise, bend = float(short @ step), float(step @ Q @ step)
        if not rise > 0:
            return
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(step > 0, (dual.upper[free] - dual.alpha[free]) / step, -dual.alpha[free] / step)
        room[step == 0] = np.inf
        length = min(rise / bend if bend > 0 else np.inf, float(room.min()))
        if not np.isfinite(length):
            return
        moved = dual.alpha[free] + length * step
        blocked = np.flatnonzero(room <= length)
        moved[blocked] = np.where(step[blocked] > 0, dual.upper[free][blocked], 0.0)
        dual.alpha[free] = np.clip(moved, 0.0, dual.upper[free])
        margins = dual.margins()
        if blocked.size == 0:
            return


def intercept_error(
    alpha: np.ndarray, upper: np.ndarray, margins: np.ndarray, signs: np.ndarray, squared: np.ndarray, gap: float
) -> float:
    """How far the free intercept b can be from any exact one, given the gap ε.

    For a fixed intercept b + η the dual needs no equality: moving one α_i by σm changes it by σm(1 − y_i f(x_i)) −
    ½m²k(x_i, x_i) − ησ y_i m. Where σy_i = −1 and that gain exceeds ε, b + η cannot be optimal, nor (by convexity) any
    larger value; σy_i = +1 bounds b from below in the same way. ∞ where no α_i can move.
    """
    worst = 0.0
    epsilon = max(gap, 1e-300)
    for side in (-1.0, 1.0):
        direction = side * signs  # σ
        room = np.where(direction > 0, upper - alpha, alpha)
        step = np.minimum(room, np.sqrt(2 * epsilon / np.maximum(squared, 1e-300)))
        usable = step > 0
        if not usable.any():
            return np.inf
        step, sigma, k = step[usable], direction[usable], squared[usable]
        worst = max(worst, float(np.min(epsilon / step - sigma * (1.0 - margins[usable]) + step * k / 2)))
    return worst
