"""Interior points for the dual (M. Ferris and T. Munson, SIAM J. Optim. 13 (2002)), whose cost
does not grow with C.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy import linalg


class Dual(Protocol):
    """What the method needs of a dual: α, its bounds, Qα, the gap, and systems with Q + a
    diagonal.
    """

    alpha: np.ndarray
    upper: np.ndarray

    def margins(self) -> np.ndarray: ...  # noqa: D102

    def gap(self) -> float: ...  # noqa: D102

    def solve_shifted(self, diagonal: np.ndarray, right: np.ndarray) -> np.ndarray: ...  # noqa: D102


def follow_central_path(dual: Dual) -> None:
    """Follow the central path α_i z_i = (C_i − α_i) v_i = μ → 0, then put every α_i that is nearly
    at a bound there.

    Where columns differ much in size, rounding ends the path early and leads astray: the best point
    on it is kept, and taken over only if its gap is smaller than the one that was reached.
    """
    before, reached = dual.alpha, dual.gap()
    upper = dual.upper
    dual.alpha = upper / 2
    slope = dual.margins() - 1.0
    shift = 1.0 + 0.01 * float(np.abs(slope).mean())
    # multipliers z of α ≥ 0 and v of α ≤ C
    low, high = np.maximum(slope, 0) + shift, np.maximum(-slope, 0) + shift
    length, best = 0.0, (np.inf, dual.alpha)
    for _ in range(150):
        alpha, rest = dual.alpha, upper - dual.alpha
        # short steps ask for centering
        mu = (1.0 - 0.9 * length) * float(low @ alpha + high @ rest) / (2 * upper.size)
        if mu <= 1e-14 * upper.mean():
            break
        try:
            step = dual.solve_shifted(
                low / alpha + high / rest, 1.0 - dual.margins() + mu / alpha - mu / rest
            )
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
        if (now := dual.gap()) < best[0]:
            best = now, moved
    dual.alpha = best[1].copy()
    short = 1.0 - dual.margins()
    dual.alpha[dual.alpha < 1e-6 * upper * (short < -1e-8)] = 0.0
    near = (upper - dual.alpha < 1e-6 * upper) & (short > 1e-8)
    dual.alpha[near] = upper[near]
    # what was nearly at a bound had to be only nearly there
    if dual.gap() > max(best[0], 1e-3 * upper.sum()):
        dual.alpha = best[1]
    if not dual.gap() < reached:
        dual.alpha = before
