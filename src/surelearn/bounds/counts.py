"""Bounds that need sums only: counts, or a mean with its variance, as one pass over many rows
leaves them.

They do not depend on the order of the rows, and what parts of a file give is added up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds._checks import Value
from surelearn.bounds.holdout import (
    BASELINE_UNSEEN,
    IID,
    UNSEEN,
    clopper_pearson,
    clopper_pearson_lower,
)
from surelearn.bounds.units import RANGE
from surelearn.claim import at_least, at_most, theorem

SHARE_OF_SPREAD = 0.05  # of δ, for the bound on the standard deviation; fixed before any data
_MOMENTS = (
    "A. Maurer and M. Pontil, Empirical Bernstein Bounds and Sample-Variance Penalization, COLT 2009,"
    " Theorem 3 (Bennett) and Theorem 10 (standard deviation)"
)
_EXAMPLE = {"mean": 0.8, "variance": 0.04, "n": 10_000, "delta": 0.05}


def _mean(inputs: Mapping[str, Any]) -> float:
    return inputs["mean"]


def _net(inputs: Mapping[str, Any]) -> float | None:
    n = inputs["better"] + inputs["worse"] + inputs["equal"]
    return (inputs["better"] - inputs["worse"]) / n if n else None


@theorem(
    "paired counts",
    "C. J. Clopper and E. S. Pearson, Biometrika 26 (1934), 404–413, for both discordant counts; the"
    " marginals of a multinomial are binomial",
    assumes=(IID, UNSEEN, BASELINE_UNSEEN),
    claims=at_least("gain", trivial=None, measured=_net),
    example={"better": 60, "worse": 20, "equal": 920, "delta": 0.05},
)
def paired_counts(
    better: npt.ArrayLike, worse: npt.ArrayLike, equal: npt.ArrayLike, delta: npt.ArrayLike
) -> Value:
    """Lower bound on P(better) − P(worse), from how many of n rows were answered right by one alone,
    by the other alone, and by both or neither.

    The number of rows of each kind is binomial, whatever the other is: with probability 1 − δ both
    P(better) ≥ `clopper_pearson_lower` (better, n, δ/2) and P(worse) ≤ `clopper_pearson` (worse, n,
    δ/2), and then the difference of the two bounds holds. Rows on which both agree cost nothing. It
    needs no order of the rows. `paired_difference` bets on each row instead: where both counts are
    large and equal, the slack of counts is 1.3 times as large as its slack.

    Parameters
    ----------
    better, worse : rows that only this one, and only the other one, answered right
    equal : rows that both, or neither, answered right; without any row the bound is −1
    delta : failure probability

    Examples
    --------
    >>> round(paired_counts(60, 20, 920, 0.05), 4)
    0.0154
    """
    better, worse = check.count("better", better), check.count("worse", worse)
    n = better + worse + check.count("equal", equal)
    half = check.confidence(delta) / 2
    low, high = clopper_pearson_lower(better, n, half), clopper_pearson(worse, n, half)
    return check.plain(np.subtract(low, high))


def _slack(variance: npt.ArrayLike, n: npt.ArrayLike, delta: npt.ArrayLike) -> Any:
    """How far the mean of n numbers in [0, 1] may be from its expectation, to one side.

    √(2 ln(1/δ₁)/n)·(√V + √(2 ln(1/δ₂)/(n − 1))) + ln(1/δ₁)/(3n) with δ₁ = 0.95 δ, δ₂ = 0.05 δ and V
    the sample variance (divisor n − 1): Bennett's inequality at the largest standard deviation that
    Theorem 10 leaves. ∞ for fewer than two numbers.
    """
    variance, n = check.between("variance", variance, 0.0, 0.5), check.count("n", n, 1)
    delta = check.confidence(delta)
    mean_log = np.log(1 / delta) - np.log1p(-SHARE_OF_SPREAD)
    spread_log = np.log(1 / delta) - np.log(SHARE_OF_SPREAD)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(variance) + np.sqrt(2 * spread_log / (n - 1))
        slack = np.sqrt(2 * mean_log / n) * spread + mean_log / (3 * n)
    return np.where(n < 2, np.inf, slack)


def _on_unit(
    mean: npt.ArrayLike, variance: npt.ArrayLike, low: float, high: float
) -> tuple[Any, Any, float, float]:
    """Mean and variance on the scale [0, 1] of a stated range, its lower end and its length."""
    start, end = float(check.number("low", low)), float(check.number("high", high))
    span = end - start
    check.require(
        bool(np.isfinite(span)) and start < end,
        "low and high must be finite, and low smaller than high",
    )
    scaled = (check.between("mean", mean, start, end) - start) / span
    return scaled, check.nonnegative("variance", variance) / span**2, start, span


@theorem(
    "empirical Bernstein, from moments",
    _MOMENTS,
    assumes=(IID, UNSEEN, RANGE),
    claims=at_most("mean_loss", trivial="high", measured=_mean),
    example=_EXAMPLE,
)
def moments_upper(
    mean: npt.ArrayLike,
    variance: npt.ArrayLike,
    n: npt.ArrayLike,
    delta: npt.ArrayLike,
    low: float = 0.0,
    high: float = 1.0,
) -> Value:
    """Upper bound on the mean of losses in [low, high], from their number, mean and sample variance.

    For numbers in [0, 1], with probability 1 − δ: mean + √(2 ln(1/δ₁)/n)·(√V + √(2 ln(1/δ₂)/(n −
    1))) + ln(1/δ₁)/(3n), where δ₁ = 0.95 δ pays for Bennett's inequality and δ₂ = 0.05 δ for the
    standard deviation. Maurer and Pontil's Theorem 4, `empirical_bernstein`, gives each half of δ,
    which costs more. `betting_upper` needs every loss, in its order: for uniform losses the slack
    here is 1.7, 1.4, 1.2 and 1.2 times as large as its slack at n = 10³, 10⁴, 10⁵ and 10⁶ (δ = 0.05).

    Parameters
    ----------
    mean, variance : of the losses; the variance with divisor n − 1
    n : how many; of a single one the bound is ``high``
    delta : failure probability
    low, high : the stated range

    Examples
    --------
    >>> round(moments_upper(0.8, 0.04, 10_000, 0.05), 5)
    0.80589
    """
    scaled, spread, start, span = _on_unit(mean, variance, low, high)
    return check.plain(start + span * np.minimum(1.0, scaled + _slack(spread, n, delta)))


@theorem(
    "empirical Bernstein, from moments, lower",
    _MOMENTS,
    assumes=(IID, UNSEEN, RANGE),
    claims=at_least("mean_loss", trivial="low", measured=_mean),
    example=_EXAMPLE,
)
def moments_lower(
    mean: npt.ArrayLike,
    variance: npt.ArrayLike,
    n: npt.ArrayLike,
    delta: npt.ArrayLike,
    low: float = 0.0,
    high: float = 1.0,
) -> Value:
    """Lower bound on the mean of losses or grades in [low, high]: `moments_upper` from the other
    side.

    Grades that were rounded down before they were added up have a smaller mean than the grades: the
    bound holds for both.

    Examples
    --------
    >>> round(moments_lower(0.8, 0.04, 10_000, 0.05), 5)
    0.79411
    """
    scaled, spread, start, span = _on_unit(mean, variance, low, high)
    return check.plain(start + span * np.maximum(0.0, scaled - _slack(spread, n, delta)))


@theorem(
    "paired empirical Bernstein, from moments",
    _MOMENTS,
    assumes=(IID, UNSEEN, BASELINE_UNSEEN, RANGE),
    claims=at_least("gain", trivial=None, measured=_mean),
    example={"mean": 0.05, "variance": 0.04, "n": 10_000, "delta": 0.05, "span": 1.0},
)
def moments_gain(
    mean: npt.ArrayLike,
    variance: npt.ArrayLike,
    n: npt.ArrayLike,
    delta: npt.ArrayLike,
    span: float = 1.0,
) -> Value:
    """Lower bound on the mean of differences between two losses of the same rows, both in a range of
    length ``span``: the differences lie in [−span, span].

    Examples
    --------
    >>> round(moments_gain(0.05, 0.04, 10_000, 0.05), 5)
    0.04315
    """
    most = float(check.positive("span", span))
    scaled, spread, start, length = _on_unit(mean, variance, -most, most)
    return check.plain(start + length * np.maximum(0.0, scaled - _slack(spread, n, delta)))
