"""How far from the minimizer a run stopped, and what that costs: bounds for minimizers carried over
to what was found.

Learners minimize F(w) = (1/n)·Σ loss + λ‖w‖² over weights without an unregularized intercept. F is
2λ-strongly convex, so its gradient at the weights found says how far they are; where F has kinks, a
point of the dual problem does.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds import _measured as measured
from surelearn.bounds._checks import Value
from surelearn.bounds._sources import COURSE, STABILITY
from surelearn.bounds.holdout import IID
from surelearn.bounds.stability import (
    FIXED_BEFORE,
    LOSS_NONNEGATIVE,
    UNIFORM,
    beta_tikhonov,
    uniform_stability_nonnegative,
)
from surelearn.claim import ALWAYS, at_most, equal, theorem

CONVEX = "the loss is convex in the weights, all of which are regularized"
CONVEX_LIPSCHITZ = (
    "the loss is convex in the weights, all of which are regularized, and Lipschitz as stated"
)
DUAL_FEASIBLE = "the dual point is feasible"
GAP_ROUNDED = "primal minus dual is computed to within rounding"


@theorem(
    "strong convexity gap",
    f"{COURSE}, section 8 (m-strong convexity, with m = 2λ); S. Boyd and L. Vandenberghe (2004),"
    " (9.9)",
    assumes=(CONVEX,),
    claims=at_most("suboptimality", holds=ALWAYS, trivial=None, unit="number"),
    example={"gradient_norm": 1e-4, "regularization": 0.01},
)
def strong_convexity_gap(gradient_norm: npt.ArrayLike, regularization: npt.ArrayLike) -> Value:
    """F(w) − min F of F = (1/n)·Σ loss + λ‖w‖² from its gradient at w: ‖∇F(w)‖²/(4λ).

    Examples
    --------
    >>> round(strong_convexity_gap(1e-4, 0.01), 12)
    2.5e-07
    """
    norm, lam = (
        check.nonnegative("gradient_norm", gradient_norm),
        check.positive("regularization", regularization),
    )
    return check.plain(norm**2 / (4 * lam))


@theorem(
    "distance to the minimizer",
    "S. Boyd and L. Vandenberghe (2004), (9.11), without its factor 2: the gradient is strongly"
    " monotone",
    assumes=(CONVEX,),
    claims=at_most("distance_to_the_minimizer", holds=ALWAYS, trivial=None, unit="number"),
    example={"gradient_norm": 1e-4, "regularization": 0.01},
)
def distance_to_minimizer(gradient_norm: npt.ArrayLike, regularization: npt.ArrayLike) -> Value:
    """‖w − w*‖ from the gradient of F = (1/n)·Σ loss + λ‖w‖² at w: ‖∇F(w)‖/(2λ); a parabola attains
    it.

    Examples
    --------
    >>> round(distance_to_minimizer(1e-4, 0.01), 12)
    0.005
    """
    norm, lam = (
        check.nonnegative("gradient_norm", gradient_norm),
        check.positive("regularization", regularization),
    )
    return check.plain(norm / (2 * lam))


@theorem(
    "distance to the minimizer, from a gap",
    "S. Boyd and L. Vandenberghe (2004), (9.8) at the minimizer, where the gradient is 0",
    assumes=(CONVEX,),
    claims=at_most("distance_to_the_minimizer", holds=ALWAYS, trivial=None, unit="number"),
    example={"gap": 1e-6, "regularization": 0.01},
)
def distance_from_gap(gap: npt.ArrayLike, regularization: npt.ArrayLike) -> Value:
    """‖w − w*‖ from F(w) − min F ≤ gap, F = (1/n)·Σ loss + λ‖w‖²: √(gap/λ); a parabola attains it.

    F is 2λ-strongly convex, smooth or not: F(w) ≥ F(w*) + λ‖w − w*‖². The penalty ½‖w‖² beside a
    sum has λ = ½.

    Examples
    --------
    >>> round(distance_from_gap(1e-6, 0.01), 12)
    0.01
    """
    return check.plain(
        np.sqrt(check.nonnegative("gap", gap) / check.positive("regularization", regularization))
    )


@theorem(
    "λ of a price",
    "½‖w‖² + C·Σ loss, divided by Cn, is (1/n)·Σ loss + ‖w‖²/(2Cn)",
    assumes=(UNIFORM,),
    claims=equal("regularization"),
    example={"c": 1.0, "n": 100},
)
def regularization_of_price(c: npt.ArrayLike, n: npt.ArrayLike) -> Value:
    """λ beside the mean loss where the sum of n losses has the price C beside ½‖w‖²: 1/(2Cn).

    Examples
    --------
    >>> regularization_of_price(1.0, 100)
    0.005
    """
    return check.plain(1.0 / (2.0 * check.positive("c", c) * check.count("n", n, 1)))


@theorem(
    "duality gap",
    f"{COURSE}, section 6 (6.b); weak duality: S. Boyd and L. Vandenberghe (2004), 5.2.2 and 5.5.1",
    assumes=(DUAL_FEASIBLE, GAP_ROUNDED),
    claims=at_most("suboptimality", holds=ALWAYS, trivial=None, unit="number"),
    example={"primal": 1.0, "dual": 0.8, "rounding": 1e-9},
)
def duality_gap(primal: npt.ArrayLike, dual: npt.ArrayLike, rounding: npt.ArrayLike = 0.0) -> Value:
    """P(w) − min P from any feasible point α of the dual problem: P(w) − D(α) + rounding, as D(α) ≤
    min P.

    Nothing is asked of w, of P's smoothness or of how either point was found. A dual value above
    the primal one is refused: α cannot be feasible.

    Parameters
    ----------
    primal, dual : P(w) and D(α), computed
    rounding : a bound on the error of primal − dual

    Examples
    --------
    >>> round(duality_gap(1.0, 0.8, 1e-9), 9)
    0.200000001
    """
    p, d = check.number("primal", primal), check.number("dual", dual)
    error = check.nonnegative("rounding", rounding)
    check.require(
        d < np.inf,
        "dual must be finite: an infinite dual value says that the primal problem is infeasible",
    )
    check.require(p > -np.inf, "primal must not be −∞: the problem has no minimum")
    check.require(
        d <= p + error,
        "dual must not exceed primal by more than rounding: the dual point is not feasible",
    )
    return check.plain(np.maximum(p - d, 0.0) + error)


@theorem(
    "stability near the minimizer",
    f"{STABILITY}, Theorem 8.2, for the minimizer; the loss is Lipschitz from there to the weights found",
    assumes=(IID, FIXED_BEFORE, UNIFORM, LOSS_NONNEGATIVE, CONVEX_LIPSCHITZ),
    claims=at_most("risk", trivial="loss_bound", unit="number", measured=measured.risk),
    example={
        "risk": 0.3, "lipschitz": 1.0, "regularization": 0.1, "n": 10000, "distance": 1e-4, "loss_bound": 2.0, "delta": 0.05
    },
)  # fmt: skip
def stability_near_minimizer(
    risk: npt.ArrayLike,
    lipschitz: npt.ArrayLike,
    regularization: npt.ArrayLike,
    n: npt.ArrayLike,
    distance: npt.ArrayLike,
    loss_bound: npt.ArrayLike,
    delta: npt.ArrayLike,
) -> Value:
    """Risk of weights within r of the minimizer w* of (1/n)·Σ loss + λ‖w‖², 0 ≤ loss ≤ M for w*.

    risk + 2ρr + β + (2nβ + M)·√(ln(1/δ) / 2n), β = ρ²/(λn). The theorem is about w*; ρr is lost on
    the way there in the training risk and on the way back in the risk, whichever way w was found.

    Parameters
    ----------
    risk : training risk of the weights found
    distance : r ≥ ‖w − w*‖, from `distance_to_minimizer`
    loss_bound : M, a bound on the loss of the minimizer for every sample and row

    Examples
    --------
    >>> round(stability_near_minimizer(0.3, 1.0, 0.1, 10000, 1e-4, loss_bound=2.0, delta=0.05), 4)
    0.5705
    """
    rho, r = check.nonnegative("lipschitz", lipschitz), check.nonnegative("distance", distance)
    beta = beta_tikhonov(rho, regularization, n)
    return check.plain(
        uniform_stability_nonnegative(risk, beta, n, delta, loss_bound) + 2 * rho * r
    )


@theorem(
    "stability of a stopped minimization",
    "S. Shalev-Shwartz and S. Ben-David (2014), Section 13.3, as in `beta_tikhonov`, plus the"
    " tolerance twice",
    assumes=(
        FIXED_BEFORE,
        UNIFORM,
        CONVEX_LIPSCHITZ,
        "on every sample the learner stops within the stated distance",
    ),
    claims=at_most("uniform_stability", holds=ALWAYS, trivial=None, unit="number"),
    example={"lipschitz": 1.0, "regularization": 0.1, "n": 1000, "distance": 1e-4},
)
def beta_near_minimizer(
    lipschitz: npt.ArrayLike,
    regularization: npt.ArrayLike,
    n: npt.ArrayLike,
    distance: npt.ArrayLike,
) -> Value:
    """β of a learner that stops within r of the minimizer of (1/n)·Σ loss + λ‖w‖²: ρ²/(λn) + 2ρr.

    Examples
    --------
    >>> round(beta_near_minimizer(1.0, 0.1, 1000, 1e-4), 6)
    0.0102
    """
    rho, r = check.nonnegative("lipschitz", lipschitz), check.nonnegative("distance", distance)
    return check.plain(beta_tikhonov(rho, regularization, n) + 2 * rho * r)
