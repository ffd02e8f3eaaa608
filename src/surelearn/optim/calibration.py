"""Classification calibration: does a classifier that minimizes this loss also minimize the
error?
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from surelearn.losses import LOSSES, ConvexLoss, find_loss
from surelearn.types import Array

WIDE = 50.0  # margins are searched in [−WIDE, WIDE]


@dataclass(frozen=True)
class Calibration:
    """The verdict on a margin loss.

    Attributes
    ----------
    calibrated : whether the loss is classification calibrated
    convex : whether it is convex
    slopes : left and right derivative at 0
    exact : True by the theorem from known derivatives, False if numbers were computed from a
        callable
    reason : in one sentence
    """

    calibrated: bool
    convex: bool
    slopes: tuple[float, float]
    exact: bool
    reason: str


def calibration(loss: str | ConvexLoss | Callable[[Array], Array]) -> Calibration:
    """Bartlett's criterion: a convex margin loss is calibrated if and only if it is differentiable
    at 0 and ℓ′(0) < 0.

    Course, Theorem 6.3; P. Bartlett, M. Jordan and J. McAuliffe, JASA 2006, Theorem 2. The
    statement is about the minimizer over *all* measurable functions, not over linear ones. The
    perceptron loss is not calibrated, but the course's remark that it therefore "cannot generalize"
    is wrong: mistake and margin bounds hold for the perceptron.

    A callable is judged by numbers: midpoint convexity on a grid and one-sided derivatives at 0; a
    loss that is not convex by the definition, H⁻(η) > H(η) for every η ≠ ½ of a grid. Such a
    verdict is evidence, not proof (``exact`` is False).

    Examples
    --------
    >>> calibration("hinge").calibrated, calibration("perceptron").calibrated
    (True, False)
    >>> calibration(lambda t: np.maximum(-t, 0)).reason
    'it is convex but not differentiable at 0: its slopes are -1 and 0'
    """
    if isinstance(loss, (str, ConvexLoss)):
        known = find_loss(loss)
        if known.of != "margin":
            raise ValueError(
                f"{known.name} is a loss of residuals: calibration is about losses of the"
                " margin y·ŷ"
            )
        return _verdict(known.slopes, convex=True, exact=known.name in LOSSES)
    grid = np.linspace(-WIDE, WIDE, 4001)
    values = _evaluate(loss, grid)
    inner = np.concatenate(
        [values, _evaluate(loss, grid / WIDE), _evaluate(loss, grid / WIDE**2)]
    ).reshape(3, -1)
    slack = 1e-12 * (1 + np.abs(inner).max(axis=1, keepdims=True))
    convex = bool((inner[:, 1:-1] <= (inner[:, :-2] + inner[:, 2:]) / 2 + slack).all())
    slopes = (one_sided_slope(loss, -1), one_sided_slope(loss, 1))
    if convex:
        return _verdict(slopes, convex=True, exact=False)
    gaps = [excess(loss, eta) for eta in np.linspace(0.0, 1.0, 41) if abs(eta - 0.5) > 1e-9]
    calibrated = min(gaps) > 1e-9
    words = "every" if calibrated else "not every"
    return Calibration(
        calibrated, False, slopes, False, f"it is not convex; H⁻(η) > H(η) at {words} η ≠ ½ tried"
    )


def excess(loss: str | ConvexLoss | Callable[[Array], Array], eta: float) -> float:
    """ψ-transform before convexification, H⁻(η) − H(η): what the wrong sign costs where the
    probability of y = 1 is η.

    H(η) = inf_t ηℓ(t) + (1 − η)ℓ(−t), and H⁻ the same over t with t(2η − 1) ≤ 0. Positive for all η
    ≠ ½ is the definition of calibration. Infima are searched in |t| ≤ 50.

    Examples
    --------
    >>> round(excess("hinge", 0.8), 6), round(excess("exponential", 0.8), 6)
    (0.6, 0.2)
    """
    if not 0 <= eta <= 1:
        raise ValueError(f"eta must lie in [0, 1], not {eta!r}")
    function = find_loss(loss).value if isinstance(loss, (str, ConvexLoss)) else loss

    def risk(t: npt.ArrayLike) -> Array:
        return eta * _evaluate(function, t) + (1 - eta) * _evaluate(
            function, -np.asarray(t, dtype=float)
        )

    wrong = (-WIDE, 0.0) if eta > 0.5 else (0.0, WIDE)
    return float(
        _infimum(risk, *wrong) - min(_infimum(risk, *wrong), _infimum(risk, -wrong[1], -wrong[0]))
    )


def one_sided_slope(loss: Callable[[Array], Array], side: int) -> float:
    """The derivative at 0 from the left (−1) or the right (1), by Richardson's extrapolation."""
    steps = side * 1e-3 * 0.5 ** np.arange(8)
    table = (_evaluate(loss, steps) - _evaluate(loss, 0.0)) / steps
    for order in range(1, 4):
        table = (2**order * table[1:] - table[:-1]) / (2**order - 1)
    return float(table[-1])


def _verdict(slopes: tuple[float, float], convex: bool, exact: bool) -> Calibration:
    left, right = slopes
    if abs(left - right) > (0 if exact else 1e-6 * (1 + abs(left))):
        reason = (
            f"it is convex but not differentiable at 0: its slopes are {_show(left)} and"
            f" {_show(right)}"
        )
        return Calibration(False, convex, slopes, exact, reason)
    slope = (left + right) / 2
    negative = slope < (0 if exact else -1e-6)
    words = "negative" if negative else "not negative"
    return Calibration(
        negative,
        convex,
        slopes,
        exact,
        f"it is convex and its derivative at 0 is {_show(slope)}, {words}",
    )


def _show(slope: float) -> str:
    return f"{round(slope, 6) + 0.0:g}"


def _evaluate(function: Callable[[Array], Array], t: npt.ArrayLike) -> Array:
    values = np.asarray(function(np.asarray(t, dtype=float)), dtype=float)
    if np.shape(values) != np.shape(t) or np.isnan(values).any():
        raise ValueError("loss must map an array of margins to as many numbers")
    return values


def _infimum(risk: Callable[[Array], Array], low: float, high: float) -> float:
    grid = np.unique(np.concatenate([np.linspace(low, high, 2001), [max(low, min(0.0, high))]]))
    # the best of a grid, then a bounded search between its neighbors
    values = risk(grid)
    best = int(np.argmin(values))
    around = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    found = minimize_scalar(
        lambda t: float(risk(t)), bounds=around, method="bounded", options={"xatol": 1e-12}
    )
    return min(float(values[best]), float(found.fun), math.inf)
