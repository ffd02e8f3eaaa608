"""Any loss per unit in a stated range: its mean, where units are drawn as they will be met or from
another population.

A covariate shift is stated by weights: the density w = dQ/dP of the population Q that the claim is
about relative to P, which the units were drawn from. With 0 ≤ w ≤ W, E_Q[loss] = E_P[w·loss], a
mean of numbers in [0, W].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds import _measured as measured
from surelearn.bounds.groups import ratio_upper
from surelearn.bounds.holdout import (
    BASELINE_UNSEEN,
    IID,
    ORDER,
    UNSEEN,
    betting_lower,
    betting_upper,
    paired_difference,
)
from surelearn.claim import at_least, at_most, theorem

RANGE = "the loss lies in [low, high], as stated"
WEIGHT_BOUND = "no unit weighs more than weight_bound, as stated beforehand"
DENSITY_RATIO = (
    "the weights are the density of the shifted population relative to the one that these rows were"
    " drawn from, exactly, and so have mean 1"
)
PROPORTIONAL = (
    "the weights are proportional to the density of the shifted population relative to that which"
    " these rows were drawn from"
)
_BETTING = "I. Waudby-Smith and A. Ramdas, J. R. Statist. Soc. B 86 (2024), Theorem 3 and Section 4"
_WEIGHTED = (
    f"{_BETTING}, on weight · loss; H. Shimodaira, J. Statist. Plann. Inference 90 (2000), 227–244"
)
_RATIO = f"{_BETTING}, on weight · (r − loss), inverted in r"
_LOSSES = (0.0, 2.0, -1.0, 0.0, 1.0) * 40
_WEIGHTS = (0.25, 0.25, 4.0, 0.25, 0.25) * 40
_Floats = npt.NDArray[np.float64]


def _span(low: float, high: float) -> tuple[float, float]:
    """The lower end and the length of a stated range."""
    low, high = float(check.number("low", low)), float(check.number("high", high))
    check.require(
        np.isfinite(high - low) and low < high,
        "low and high must be finite, and low smaller than high",
    )
    return low, high - low


def _unit(name: str, losses: npt.ArrayLike, low: float, high: float) -> _Floats:
    """Losses on the scale [0, 1] of their range."""
    start, span = _span(low, high)
    return np.clip((check.sample(name, losses, low, high) - start) / span, 0.0, 1.0)


def _weights(weights: npt.ArrayLike, weight_bound: float, n: int) -> _Floats:
    """Weights on the scale [0, 1] of their bound."""
    most = float(check.positive("weight_bound", weight_bound))
    found = check.sample("weights", weights, 0.0, most)
    check.require(found.size == n, "losses and weights must have the same length")
    return found / most


@theorem(
    "betting, stated range",
    _BETTING,
    assumes=(IID, UNSEEN, RANGE, ORDER),
    claims=at_most("mean_loss", trivial="high", unit="number", measured=measured.mean_loss),
    example={"losses": _LOSSES, "low": -1.0, "high": 2.0, "delta": 0.05},
)
def range_mean_upper(losses: npt.ArrayLike, low: float, high: float, delta: float) -> float:
    """Upper bound on a mean of losses in [a, b]: a + (b − a) times `betting_upper` of (loss − a)/(b
    − a).

    Examples
    --------
    >>> round(range_mean_upper([0.0, 2.0, -1.0, 0.0, 1.0] * 40, -1.0, 2.0, 0.05), 4)
    0.5834
    """
    start, span = _span(low, high)
    return start + span * betting_upper(_unit("losses", losses, low, high), delta)


@theorem(
    "betting, stated range, lower",
    _BETTING,
    assumes=(IID, UNSEEN, RANGE, ORDER),
    claims=at_least("mean_loss", trivial="low", unit="number", measured=measured.mean_loss),
    example={"losses": _LOSSES, "low": -1.0, "high": 2.0, "delta": 0.05},
)
def range_mean_lower(losses: npt.ArrayLike, low: float, high: float, delta: float) -> float:
    """Lower bound on a mean of losses in [a, b]: a + (b − a) times `betting_lower` of (loss − a)/(b
    − a).

    Examples
    --------
    >>> round(range_mean_lower([0.0, 2.0, -1.0, 0.0, 1.0] * 40, -1.0, 2.0, 0.05), 4)
    0.2351
    """
    start, span = _span(low, high)
    return start + span * betting_lower(_unit("losses", losses, low, high), delta)


@theorem(
    "paired betting, stated range",
    _BETTING,
    assumes=(IID, UNSEEN, BASELINE_UNSEEN, RANGE, ORDER),
    claims=at_least("gain", trivial=None, unit="number", measured=measured.mean_gain),
    example={
        "losses": _LOSSES,
        "baseline_losses": (1.0, 2.0) * 100,
        "low": -1.0,
        "high": 2.0,
        "delta": 0.05,
    },
)
def range_gain(
    losses: npt.ArrayLike, baseline_losses: npt.ArrayLike, low: float, high: float, delta: float
) -> float:
    """Lower bound on how much smaller one mean of losses in [a, b] is than another, from both on
    the same units.

    (b − a) times `paired_difference` of both on the scale (loss − a)/(b − a): the difference does
    not depend on a.

    Examples
    --------
    >>> round(range_gain([0.0, 2.0, -1.0, 0.0, 1.0] * 40, [1.0, 2.0] * 100, -1.0, 2.0, 0.05), 4)
    0.8986
    """
    ours, theirs = (
        _unit("losses", losses, low, high),
        _unit("baseline_losses", baseline_losses, low, high),
    )
    return float(_span(low, high)[1] * paired_difference(ours, theirs, delta))


def _shifted_measured(inputs: Mapping[str, Any]) -> float:
    start = float(inputs["low"])
    weights, losses = (np.asarray(inputs[name], dtype=float) for name in ("weights", "losses"))
    return float(start + (weights * (losses - start)).mean())


@theorem(
    "betting, shifted",
    _WEIGHTED,
    assumes=(IID, UNSEEN, RANGE, WEIGHT_BOUND, DENSITY_RATIO, ORDER),
    claims=at_most("mean_loss", trivial="high", measured=_shifted_measured),
    example={
        "losses": _LOSSES,
        "weights": _WEIGHTS,
        "weight_bound": 4.0,
        "delta": 0.05,
        "low": -1.0,
        "high": 2.0,
    },
)
def shifted_mean(
    losses: npt.ArrayLike,
    weights: npt.ArrayLike,
    weight_bound: float,
    delta: float,
    low: float = 0.0,
    high: float = 1.0,
) -> float:
    """Upper bound on the mean loss of a shifted population Q, from units of P with weights w =
    dQ/dP ≤ W.

    For a loss in [0, 1], E_Q[loss] = ∫ loss dQ = ∫ loss·w dP = E_P[w·loss], and w·loss/W lies in
    [0, 1]: W times `betting_upper` of w·loss/W bounds it with probability 1 − δ. For a loss in [a,
    b] the same with (loss − a)/(b − a), since E_P[w] = 1. Weights that are dQ/dP only up to a
    factor c bound c·E_Q[loss] instead, which says nothing about Q unless c is known: see
    `reweighted_mean`. Shifts between classes or of labels given features are covered as far as w is
    the density of all that the loss depends on.

    Parameters
    ----------
    losses : in an order fixed beforehand; with groups, each group's mean by weight
    weights : w of each unit; with groups, each group's mean weight
    weight_bound : W, stated beforehand, never the largest one seen
    delta : failure probability
    low, high : the loss's stated range

    Examples
    --------
    >>> wrong, weights = [0, 1, 0, 0, 0] * 40, [0.25, 4.0, 0.25, 0.25, 0.25] * 40
    >>> round(shifted_mean(wrong, weights, 4.0, 0.05), 4)
    1.0
    >>> round(shifted_mean([0, 0, 1, 0, 0] * 40, weights, 4.0, 0.05), 4)
    0.1296
    """
    start, span = _span(low, high)
    loss = _unit("losses", losses, low, high)
    scaled = _weights(weights, weight_bound, loss.size)
    return start + span * min(1.0, float(weight_bound) * betting_upper(scaled * loss, delta))


def _reweighted(name: str, inputs: Mapping[str, Any]) -> float | None:
    weights = np.asarray(inputs["weights"])
    return (
        float(np.sum(weights * np.asarray(inputs[name])) / weights.sum()) if weights.any() else None
    )


def _reweighted_mean(inputs: Mapping[str, Any]) -> float | None:
    return _reweighted("losses", inputs)


@theorem(
    "betting, reweighted",
    _RATIO,
    assumes=(IID, UNSEEN, RANGE, WEIGHT_BOUND, PROPORTIONAL, ORDER),
    claims=at_most("mean_loss", trivial="high", measured=_reweighted_mean),
    example={
        "losses": _LOSSES,
        "weights": _WEIGHTS,
        "weight_bound": 4.0,
        "delta": 0.05,
        "low": -1.0,
        "high": 2.0,
    },
)
def reweighted_mean(
    losses: npt.ArrayLike,
    weights: npt.ArrayLike,
    weight_bound: float,
    delta: float,
    low: float = 0.0,
    high: float = 1.0,
) -> float:
    """Upper bound on the mean loss of a shifted population from weights that are known up to a
    factor: E[w·loss]/E[w].

    If w = c·dQ/dP with any c > 0, then E_P[w] = c and E_P[w·loss] = c·E_Q[loss]: the ratio R is
    E_Q[loss], also within a part of the population, where dQ/dP is never normalized. For losses in
    [0, 1] and a candidate r the capital Kₜ(r) = ∏ᵢ (1 + λᵢ·wᵢ(r − lossᵢ)/W) is a fair game at r =
    R, since E_P[w(R − loss)] = 0, and stays positive for 0 ≤ λᵢ < 1/(1 − r), since w(r − loss)/W ≥
    −(1 − r). By Ville's inequality it ever reaches 1/δ with probability at most δ. With bets
    min(λᵢ, ¾/(1 − r)) every factor grows with r, so that the refuted ratios are all those above one
    number, as in `surelearn.bounds.row_weighted_betting`.

    Examples
    --------
    >>> weights = [0.25, 4.0, 0.25, 0.25, 0.25] * 40
    >>> round(reweighted_mean([0, 0, 1, 0, 0] * 40, weights, 4.0, 0.05), 4)
    0.1261
    >>> round(reweighted_mean([0, 0, 1, 0, 0] * 40, [10 * w for w in weights], 40.0, 0.05), 4)
    0.1261
    """
    start, span = _span(low, high)
    loss = _unit("losses", losses, low, high)
    return start + span * _ratio(loss, _weights(weights, weight_bound, loss.size), delta)


@theorem(
    "betting, reweighted, lower",
    _RATIO,
    assumes=(IID, UNSEEN, RANGE, WEIGHT_BOUND, PROPORTIONAL, ORDER),
    claims=at_least("mean_loss", trivial="low", measured=_reweighted_mean),
    example={
        "losses": _LOSSES,
        "weights": _WEIGHTS,
        "weight_bound": 4.0,
        "delta": 0.05,
        "low": -1.0,
        "high": 2.0,
    },
)
def reweighted_mean_lower(
    losses: npt.ArrayLike,
    weights: npt.ArrayLike,
    weight_bound: float,
    delta: float,
    low: float = 0.0,
    high: float = 1.0,
) -> float:
    """Lower bound on the mean loss of a shifted population: 1 less `reweighted_mean` of 1 − loss,
    in units of the range.

    Examples
    --------
    >>> weights = [0.25, 4.0, 0.25, 0.25, 0.25] * 40
    >>> round(reweighted_mean_lower([1, 1, 0, 1, 1] * 40, weights, 4.0, 0.05), 4)
    0.8739
    """
    start, span = _span(low, high)
    loss = _unit("losses", losses, low, high)
    return start + span * (1 - _ratio(1 - loss, _weights(weights, weight_bound, loss.size), delta))


def _reweighted_gain(inputs: Mapping[str, Any]) -> float | None:
    ours, theirs = _reweighted("losses", inputs), _reweighted("baseline_losses", inputs)
    return None if ours is None or theirs is None else theirs - ours


@theorem(
    "paired betting, reweighted",
    _RATIO,
    assumes=(IID, UNSEEN, BASELINE_UNSEEN, RANGE, WEIGHT_BOUND, PROPORTIONAL, ORDER),
    claims=at_least("gain", trivial=None, measured=_reweighted_gain),
    example={
        "losses": _LOSSES, "baseline_losses": (1.0, 2.0) * 100, "weights": _WEIGHTS, "weight_bound": 4.0, "delta": 0.05,
        "low": -1.0, "high": 2.0,
    },
)  # fmt: skip
def reweighted_gain(
    losses: npt.ArrayLike,
    baseline_losses: npt.ArrayLike,
    weights: npt.ArrayLike,
    weight_bound: float,
    delta: float,
    low: float = 0.0,
    high: float = 1.0,
) -> float:
    """Lower bound on how much smaller one mean loss is than another in a shifted population, from
    the same units.

    Both means are of the same population Q, so 1 − 2R is their difference for R = `reweighted_mean`
    of (1 − (baseline − loss))/2 ∈ [0, 1], in units of the range.

    Examples
    --------
    >>> weights = [0.25, 4.0, 0.25, 0.25, 0.25] * 40
    >>> round(reweighted_gain([0, 0, 1, 0, 0] * 40, [1, 1, 1, 0, 0] * 40, weights, 4.0, 0.05), 4)
    0.6988
    """
    ours, theirs = (
        _unit("losses", losses, low, high),
        _unit("baseline_losses", baseline_losses, low, high),
    )
    check.require(ours.size == theirs.size, "losses and baseline_losses must have the same length")
    scaled = _weights(weights, weight_bound, ours.size)
    return _span(low, high)[1] * (1 - 2 * _ratio((1 - (theirs - ours)) / 2, scaled, delta))


def _ratio(loss: _Floats, weight: _Floats, delta: float) -> float:
    """The upper bound on E[weight·loss]/E[weight], both in [0, 1]."""
    return ratio_upper(weight * loss, weight, float(check.confidence(delta)), prior=1.0)
