"""Poison within the columns' range: how much of it is needed to flip every answer, to reverse or to
move the weights.

All poison passes a filter that refuses rows outside of a range fixed beforehand, so that no
poisoned row has a score ⟨v, x⟩ beyond a known one. Without a range nothing is claimed here: one row
that is long enough outweighs all others.

The fit to clean rows μ and ε_d·n poisoned rows ν is where g(μ) + ε_d·g(ν) + c·∇R = 0 (course,
Definition 18.1), R the penalty beside the mean loss, with c = 1 where its total stays and c = 1 +
ε_d where it grows with the rows. The course (Example 18.2; Y. Lu, G. Kamath and Y. Yu, ICML 2023)
takes the inner product with *one* target w′. Here it is taken with other vectors, so that what
follows holds for every w′ that does the same harm.
"""

from __future__ import annotations

from typing import get_args

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds._checks import Value
from surelearn.bounds._sources import COURSE
from surelearn.bounds._special import lambertw
from surelearn.bounds.poisoning import ADDED, LINEAR, STATIONARY, ClassLoss
from surelearn.claim import DETERMINISTIC, at_least, theorem

FILTERED = (
    "a filter refuses every row outside of the range before the fit; the clean rows lie inside"
)
FLIPPED = (
    "the target flips the answer on every clean row: its score is 0 or has the other sign (two"
    " classes, answers cut at 0)"
)
DIRECTION = (
    "gain is the mean over clean rows of y⟨v, x⟩ for one fixed direction v, of min(y⟨v, x⟩, 0)"
    " where the clean fit is wrong"
)
WITHIN = "no row inside the range has |⟨v, x⟩| above reach"
REVERSED = (
    "the target is −t·w for some t > 0, w the weights of gain and reach; reaching other weights may"
    " take less"
)
CONVEX = (
    "the loss is convex in y⟨w, x⟩ with a slope below 0 at 0 (c classes: softmax), the penalty"
    " least at 0"
)
ALL_PENALIZED = (
    "the penalty is λ‖w‖² on every weight, the intercept's too, beside the mean loss or with a"
    " total that stays"
)
LIPSCHITZ = (
    "no row has a loss whose slope in its scores is longer than slope: 1 for logistic and hinge"
    " loss, √2 for softmax"
)
LENGTH = "no row inside the range is longer than x_bound, its 1 for the intercept counted"
_STATEMENT = at_least("poison_fraction", holds=DETERMINISTIC, unit="number")
# of the hinge loss; each gives a bound, the best is taken
_TILTS = np.concatenate([[0.0], np.geomspace(1e-5, 10.0, 241)])


@theorem(
    "poisoning threshold of flipped answers",
    f"derived from {COURSE}, Definition 18.1, for every target that flips all answers",
    assumes=(FLIPPED, DIRECTION, WITHIN, FILTERED, STATIONARY, ADDED, LINEAR),
    claims=_STATEMENT,
    example={"gain": 0.4, "reach": 1.0, "wrong": 0.02, "loss": "logistic", "decay": 0.001},
)
def poisoning_threshold_flipped(
    gain: npt.ArrayLike,
    reach: npt.ArrayLike,
    wrong: npt.ArrayLike = 0.0,
    loss: ClassLoss = "logistic",
    decay: npt.ArrayLike = 0.0,
) -> Value:
    """Least ε_d with which *any* weights w′ that flip every clean answer are reached: gain/R −
    κ·wrong, less for a penalty.

    Let φ = −ℓ′, which falls, divided by φ(0); m′ = y⟨w′, x⟩; v any direction with ``|⟨v, x⟩|`` ≤ R
    inside the range; and α ≥ 0. Stationarity at w′, times v − αw′, says

        mean_μ φ(m′)(y⟨v, x⟩ − αm′)  =  ε_d·mean_ν φ(m′)(αm′ − y⟨v, x⟩)  +  (c/φ(0))·⟨v − αw′, ∇R(w′)⟩.

    - Poison: φ(m′)(αm′ − y⟨v, x⟩) ≤ R·sup_s φ(s)(1 + θs) with α = θR. Where 1/φ is convex, 1/φ(s) is at least its tangent
      1 + θs for θ = ``|φ′(0)|``, and the supremum is 1: θ = ½ for logistic, 1 for exponential,
      squared hinge and squared loss. For hinge loss it is 1 + θ, for every θ ≥ 0.
    - Clean rows that the clean fit has right and w′ has wrong, m′ ≤ 0: φ(m′)(y⟨v, x⟩ − αm′) ≥ y⟨v, x⟩, as φ(m′) ≥ 1 where
      y⟨v, x⟩ ≥ 0, and by the same tangent where it is negative, ``|y⟨v, x⟩|`` ≤ R.
    - Clean rows that it has wrong and w′ has right, m′ ≥ 0: no less than min(y⟨v, x⟩, 0) − κR with κ = θ·sup_s sφ(s), which
      is W(1/e) for logistic, 1/e for exponential, ¼ for squared hinge and squared, θ for hinge
      loss.
    - The penalty λ‖·‖² of penalized weights: 2λ(⟨v, w′⟩ − α‖w′‖²) ≤ λ‖v‖²/(2α), whatever w′.

    With r = 2λ‖v‖² and q = r/(4θφ(0)R²), φ(0) before the division, that is gain/R − κ·wrong − c·q ≤
    ε_d; with c = 1 + ε_d

        ε_d ≥ (gain/R − κ·wrong − q)/(1 + q),

    which c = 1 only raises; for hinge loss (gain/R − θ·wrong − q)/(1 + θ + q) with the best θ.
    (With α = 0, logistic loss without a penalty and v = w the same steps give ½·mean(y⟨w, x⟩)/R.)

    It is nearly exact for logistic regression with an intercept. Scale every column to [−1, 1]: the
    rows −y·mean(yx)/ε, as many more of the one class as the clean rows have of the other, bring the
    fit to 0 from ε = max_j ``|mean(y·x_j)|`` on (``|mean(y)|`` for the intercept), and to −t·w for
    a small t just beyond. The v of that column proves as much, less κ·wrong and q.

    Parameters
    ----------
    gain : mean of y⟨v, x⟩ over clean rows, of min(y⟨v, x⟩, 0) where the clean fit is wrong
    reach : R, the largest ``|⟨v, x⟩|`` inside the range; ∞ proves nothing
    wrong : the share of clean rows that the clean fit has wrong (or scores 0)
    decay : r = 2λ‖v‖², over the penalized weights of v

    Examples
    --------
    >>> round(poisoning_threshold_flipped(0.4, 1.0), 4), round(poisoning_threshold_flipped(0.4, 1.0, wrong=0.1), 4)
    (0.4, 0.3722)
    """
    gain, reach = check.number("gain", gain), check.nonnegative("reach", reach)
    wrong, decay = check.rate("wrong", wrong), check.nonnegative("decay", decay)
    check.require(np.isfinite(gain), "gain must be finite")
    check.require(reach > 0, "reach must be above 0: no poison would have a score")
    check.require(np.isfinite(decay), "decay must be finite")
    tilt, spread, cost, slope = _terms(loss)
    gain, reach, wrong, decay = (
        np.asarray(part)[..., None] for part in (gain, reach, wrong, decay)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.where(decay == 0, 0.0, decay / (4 * tilt * slope) / reach / reach)
        found = np.where(np.isfinite(q), (gain / reach - cost * wrong - q) / (spread + q), 0.0)
    return check.plain(np.maximum(found, 0.0).max(axis=-1))


def _terms(loss: ClassLoss) -> tuple[Value, Value, Value, float]:
    """θ, sup φ(s)(1 + θs), κ and the unscaled φ(0)."""
    check.require(
        loss in get_args(ClassLoss),
        f"loss must be one of {', '.join(get_args(ClassLoss))}, not {loss!r:.60}",
    )
    if loss == "hinge":
        return _TILTS, 1.0 + _TILTS, _TILTS, 1.0
    if loss == "logistic":
        return 0.5, 1.0, float(lambertw(1 / np.e)), 0.5
    return (
        1.0,
        1.0,
        1 / np.e if loss == "exponential" else 0.25,
        1.0 if loss == "exponential" else 2.0,
    )


@theorem(
    "poisoning threshold of reversed weights",
    f"{COURSE}, Example 18.2, its least over all targets −t·w",
    assumes=(REVERSED, CONVEX, WITHIN, FILTERED, STATIONARY, ADDED, LINEAR),
    claims=_STATEMENT,
    example={"gain": 4.0, "reach": 40.0},
)
def poisoning_threshold_reversed(gain: npt.ArrayLike, reach: npt.ArrayLike) -> Value:
    """Least ε_d with which any of the weights −t·w, t > 0, is reached: mean(y⟨w, x⟩)/R, the infimum
    over t.

    At w′ = −t·w, with m = y⟨w, x⟩ and φ = −ℓ′, which falls: ⟨w′, g(μ)⟩ = t·mean(m·φ(−tm)) ≥
    tφ(0)·mean(m), since m·φ(−tm) ≥ mφ(0) for m of either sign; and −⟨w′, g(z)⟩ = sφ(s) ≤ tRφ(0) for
    a poisoned row, s = y⟨w′, x⟩ ≤ tR. Example 18.2 gives ε_d ≥ mean(m)/R for every t, whatever the
    convex loss; the penalty's ⟨w′, ∇R(w′)⟩ ≥ 0 only adds. As t → 0 both steps become equalities: it
    is the infimum over t of the thresholds of Example 18.2 with the range as limit.

    For softmax of c classes, u the scores and ū their mean, Σ p_j(−tu)·u_j ≤ ū takes the place of
    the first step: gain is the mean of u_y − ū, and reach the largest ū − u_y of a row inside the
    range.

    Parameters
    ----------
    gain : mean of y⟨w, x⟩ over the clean rows; of u_y − ū for c classes
    reach : R, the largest ``|⟨w, x⟩|`` inside the range; the largest ū − u_y for c classes

    Examples
    --------
    >>> poisoning_threshold_reversed(4.0, 40.0), poisoning_threshold_reversed(4.0, float("inf"))
    (0.1, 0.0)
    """
    gain, reach = check.number("gain", gain), check.nonnegative("reach", reach)
    check.require(np.isfinite(gain), "gain must be finite")
    check.require(reach > 0, "reach must be above 0: no poison would have a score")
    return check.plain(np.maximum(gain, 0.0) / reach)


@theorem(
    "poisoning threshold of moved weights",
    f"derived from {COURSE}, Definition 18.1, and strong convexity",
    assumes=(ALL_PENALIZED, LIPSCHITZ, LENGTH, FILTERED, STATIONARY, ADDED, LINEAR),
    claims=_STATEMENT,
    example={
        "distance": 1.0,
        "norm": 2.0,
        "x_bound": 5.0,
        "regularization": 0.01,
        "slope": 1.0,
        "residual": 1e-6,
    },
)
def poisoning_threshold_moved(
    distance: npt.ArrayLike,
    norm: npt.ArrayLike,
    x_bound: npt.ArrayLike,
    regularization: npt.ArrayLike,
    slope: npt.ArrayLike = 1.0,
    residual: npt.ArrayLike = 0.0,
) -> Value:
    """Least ε_d with which the weights w move by Δ or more, anywhere: 2λΔ/(LX + 2λ(‖w‖ + Δ)).

    F = mean_μ ℓ + λ‖·‖² is 2λ-strongly convex: 2λ‖w′ − w‖ ≤ ‖∇F(w′) − ∇F(w)‖. At the poisoned fit
    w′ stationarity says that ∇F(w′) = −ε_d·(g(ν; w′) + 2λw′), of length at most ε_d·(LX + 2λ(‖w‖ +
    ‖w′ − w‖)); ∇F(w) is 0, or of length ρ where the clean fit stopped early. So ε_d ≥ (2λ‖w′ − w‖ −
    ρ)/(LX + 2λ(‖w‖ + ‖w′ − w‖)), which grows with ‖w′ − w‖ ≥ Δ. Where the penalty's total does not
    grow with the rows, the last term of the denominator falls away, which only raises it.

    Parameters
    ----------
    distance : Δ
    norm : ‖w‖
    x_bound : X, the length of the longest row inside the range
    regularization : λ beside the mean loss
    slope : L, the length of the loss's slope in the scores
    residual : ρ, the length of the clean objective's gradient at w

    Examples
    --------
    >>> round(poisoning_threshold_moved(1.0, 2.0, 5.0, 0.01), 6)
    0.003953
    """
    distance, norm = check.nonnegative("distance", distance), check.nonnegative("norm", norm)
    longest, slope = check.nonnegative("x_bound", x_bound), check.nonnegative("slope", slope)
    twice, residual = (
        2 * check.positive("regularization", regularization),
        check.nonnegative("residual", residual),
    )
    for name, part in (
        ("distance", distance),
        ("norm", norm),
        ("slope", slope),
        ("residual", residual),
    ):
        check.require(np.isfinite(part), f"{name} must be finite")
    needed = np.maximum(twice * distance - residual, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        left = np.where(slope == 0, 0.0, slope * longest) + twice * (norm + distance)
        return check.plain(np.where(needed == 0, 0.0, needed / left))
