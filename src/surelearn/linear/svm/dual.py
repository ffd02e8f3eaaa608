"""The dual of the support vector machine (course, 6.b), solved without an intercept, and what a
dual solution proves.

Without a free intercept the dual has no equality constraint: max Σα_i − ½αᵀQα, 0 ≤ α_i ≤ C_i, Q_ij
= y_i y_j k(x_i, x_j). LIBSVM cannot leave that constraint out, and LIBLINEAR through scikit-learn
does not return α; its algorithm is short (`passes`), and is here helped by Newton steps on the free
α_i, which reach a gap of 10⁻¹² where coordinate ascent alone would crawl, and by an interior-point
method (`interior`), whose cost does not depend on C.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from scipy import linalg, sparse
from threadpoolctl import ThreadpoolController

from surelearn.kernel.functions import inner_products, squared_norms
from surelearn.linear.svm.interior import follow_central_path

_MOST_FREE = 1500  # free α_i up to which a Newton step is worth its cube
_FEW_FREE = 200  # up to which it is so at the beginning; five more for every pass
_NEWTON_STEPS = 30
_ROUND = 20  # passes between looks at the gap
_SLACK = 500.0  # LIBLINEAR's tolerance, of gradients, over ours, of the gap, from which to start
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

    def ascend(self, passes: int, slack: float, seed: int) -> int:  # noqa: ARG002 - rows that are settled cost nothing here
        """Coordinate ascent over the rows, in a new order every time; the passes made."""
        from surelearn.linear.svm.passes import gram_passes

        gram_passes(self.Q, passes, seed, self.alpha, self.upper, self._margins)
        return passes

    def margins(self) -> np.ndarray:
        """y_i·f(x_i) = (Qα)_i, computed again so that rounding does not add up."""
        self._margins = self.Q @ self.alpha
        return self._margins

    def gap(self) -> float:
        """Primal minus dual objective."""
        return gap(self.alpha, self.upper, self.margins())

    def part(self, rows: np.ndarray) -> np.ndarray:
        """Q among some rows."""
        return self.Q[np.ix_(rows, rows)]

    @property
    def between(self) -> int:
        """Passes between looks at the gap: settled rows cost nothing, a look costs as much as
        many passes.
        """
        return 2 * _ROUND

    def crawls(self, done: int, share: float) -> bool:
        """Whether coordinate ascent has had its chance: with a gap that Newton steps will not
        close, sooner.
        """
        return done >= (2 if share > 0.01 else 8) * _ROUND

    def interior_cost(self) -> float:
        """Multiplications of an interior-point step."""
        return self.alpha.size**3 / 3

    def solve_shifted(self, diagonal: np.ndarray, right: np.ndarray) -> np.ndarray:
        """(Q + diag)⁻¹·right."""
        shifted = self.Q + np.diag(diagonal)
        return linalg.cho_solve(
            linalg.cho_factor(shifted, overwrite_a=True, check_finite=False), right
        )


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

    def ascend(self, passes: int, slack: float, seed: int) -> int:
        """Coordinate ascent until gradients agree up to ``slack``; the passes made, as many
        visits of a row as there are.
        """
        from surelearn.linear.svm.passes import dense_rounds, sparse_rounds

        n = self.alpha.size
        state = (self._squared, passes * n, slack, seed, self.alpha, self.upper, self._weights)
        if sparse.issparse(self.Z):
            visits = sparse_rounds(self.Z.data, self.Z.indices, self.Z.indptr, *state)
        else:
            visits = dense_rounds(self.Z, *state)
        return min(passes, -(-visits // n))

    def margins(self) -> np.ndarray:
        """y_i·f(x_i) = ⟨z_i, Σ α_j z_j⟩, computed again so that rounding does not add up."""
        self._weights = np.asarray(self.Z.T @ self.alpha)
        return np.asarray(self.Z @ self._weights)

    def gap(self) -> float:
        """Primal minus dual objective."""
        return gap(self.alpha, self.upper, self.margins())

    def part(self, rows: np.ndarray) -> np.ndarray:
        """Q among some rows."""
        return inner_products(self.Z[rows], self.Z[rows])

    @property
    def between(self) -> int:
        """Passes between looks at the gap."""
        return max(1, min(_ROUND, self.Z.shape[1] // 10))

    def crawls(self, done: int, share: float) -> bool:  # noqa: ARG002 - narrow rows make the interior-point method cheap
        """Whether coordinate ascent has had its chance, a share of what the interior-point
        method costs.
        """
        return done >= max(1, self.Z.shape[1] // 10)

    def interior_cost(self) -> float:
        """Multiplications of an interior-point step; sparse rows are left to coordinate ascent
        unless they are narrow.
        """
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


def solve(
    dual: GramDual | RowsDual, *, tol: float, passes: int, random: np.random.RandomState
) -> int:
    """Maximize the dual until the gap is at most ``tol``·ΣC_i; the passes made. The α of the
    smallest gap met is kept.

    tol is the gap of (1/n)·Σ hinge + λ‖w‖² with λ = 1/(2Cn), whose value at w = 0 is 1.
    """
    enough, slack = tol * dual.upper.sum(), min(0.5, _SLACK * tol)
    followed = dual.interior_cost() > _AFFORDABLE
    done, pause, best = 0, dual.between, (np.inf, dual.alpha)
    # many small systems: threads would wait for each other
    with _libraries().limit(limits=1, user_api="blas"):
        while done < passes:
            done += dual.ascend(min(pause, passes - done), slack, random.randint(2**31))
            slack, most = max(slack / 10, 1e-14), min(_FEW_FREE + 5 * done, _MOST_FREE)
            margins = dual.margins()
            left = gap(dual.alpha, dual.upper, margins)
            best = (left, dual.alpha.copy()) if left < best[0] else best
            if left <= enough:
                break
            if not followed and dual.crawls(done, left / dual.upper.sum()):
                follow_central_path(dual)
                followed, most, margins = True, _MOST_FREE, dual.margins()
            _newton(dual, margins, most)
            after = dual.gap()
            best = (after, dual.alpha.copy()) if after < best[0] else best
            if after <= enough:
                break
            if after > left / 10:  # Newton steps come too early: more passes before the next
                pause *= 2
        dual.alpha = best[1]
    return done


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS libraries; looking for them takes milliseconds."""
    return ThreadpoolController()


def gap(alpha: np.ndarray, upper: np.ndarray, margins: np.ndarray) -> float:
    """Primal minus dual objective, from y_i·f(x_i): αᵀQα + ΣC_i(1 − y_i f(x_i))⁺ − Σα_i.

    As a sum of terms that are never negative, so that nothing cancels: (C_i − α_i)(1 − m_i)⁺ +
    α_i(m_i − 1)⁺.
    """
    short = 1.0 - margins
    return float(
        np.sum(
            np.where(
                short > 0, (upper - alpha) * np.maximum(short, 0.0), -alpha * np.minimum(short, 0.0)
            )
        )
    )


def _newton(dual: GramDual | RowsDual, margins: np.ndarray, most: int) -> None:
    """Steps to the maximum over the free α_i, at most ``most``, within the box; they only ever
    increase the dual.

    A step is either cut where the first α_i meets its bound, or all α_i that leave the box are put
    back on its edge, whichever gains more. Those at a bound stay there.
    """
    rows = np.flatnonzero((dual.alpha > 0) & (dual.alpha < dual.upper))
    if not 0 < rows.size <= most:
        return
    Q, short, alpha, upper = (
        dual.part(rows),
        1.0 - margins[rows],
        dual.alpha[rows],
        dual.upper[rows],
    )
    free = np.arange(rows.size)
    for _ in range(_NEWTON_STEPS):
        inner = Q[np.ix_(free, free)]
        ridge = 1e-13 * max(float(np.trace(inner)), 1e-300)
        try:
            step = solve_quietly(inner + ridge * np.eye(free.size), short[free], "pos")
        except linalg.LinAlgError:
            break
        moves = [
            _cut(alpha[free], upper[free], step),
            np.clip(alpha[free] + step, 0.0, upper[free]),
        ]
        gains = [
            float(
                short[free] @ (m - alpha[free]) - (m - alpha[free]) @ inner @ (m - alpha[free]) / 2
            )
            for m in moves
        ]
        if not max(gains) > 0:
            break
        moved = moves[int(np.argmax(gains))]
        short -= Q[:, free] @ (moved - alpha[free])
        alpha[free] = moved
        inside = (moved > 0) & (moved < upper[free])
        if inside.all() or not inside.any():
            break
        free = free[inside]
    dual.alpha[rows] = alpha


def _cut(alpha: np.ndarray, upper: np.ndarray, step: np.ndarray) -> np.ndarray:
    """α after as much of a step as the box allows; what stops it lands exactly on the bound."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(step > 0, (upper - alpha) / step, -alpha / step)
    room[step == 0] = np.inf
    length = min(1.0, float(room.min()))
    moved = np.clip(alpha + length * step, 0.0, upper)
    stopped = room <= length
    moved[stopped] = np.where(step[stopped] > 0, upper[stopped], 0.0)
    return moved


def solve_quietly(system: np.ndarray, right: np.ndarray, kind: str) -> np.ndarray:
    """A linear system of a Newton step; ill-conditioned ones are no news: the gap tells whether
    the step was good.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", linalg.LinAlgWarning)
        return linalg.solve(system, right, assume_a=kind, check_finite=False)


def intercept_error(
    alpha: np.ndarray,
    upper: np.ndarray,
    margins: np.ndarray,
    signs: np.ndarray,
    squared: np.ndarray,
    gap: float,
) -> float:
    """How far the free intercept b can be from any exact one, given the gap ε.

    For a fixed intercept b + η the dual needs no equality: moving one α_i by σm changes it by σm(1
    − y_i f(x_i)) − ½m²k(x_i, x_i) − ησ y_i m. Where σy_i = −1 and that gain exceeds ε, b + η cannot
    be optimal, nor (by convexity) any larger value; σy_i = +1 bounds b from below in the same way.
    ∞ where no α_i can move.
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
        worst = max(
            worst, float(np.min(epsilon / step - sigma * (1.0 - margins[usable]) + step * k / 2))
        )
    return worst
