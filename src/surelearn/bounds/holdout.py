"""One fixed predictor on fresh rows: binomial, kl, Hoeffding, empirical Bernstein, betting and
conformal bounds.

None of these looks at how the predictor was found. They need rows that it has not seen, drawn
independently from the population that the claim is about.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds import _measured as measured
from surelearn.bounds._checks import Value
from surelearn.bounds._sources import THESIS
from surelearn.bounds._special import (
    betainccinv,
    betaincinv,
    binomial_isf,
    binomial_sf,
    root_between,
)
from surelearn.bounds._tails import binomial_tail_inversion, kl_inverse
from surelearn.claim import IN_EXPECTATION, Statement, Theorem, at_least, at_most, between, theorem

IID = "rows are independent and identically distributed"
GROUPS_IID = "groups are independent and identically distributed; rows within a group need not be"
CONTENTS_IID = (
    "contents (near copies are one) are independent and identically distributed, and how often one"
    " stands in the table says nothing about its errors"
)
UNSEEN = "the model did not see these rows"
BASELINE_UNSEEN = "the baseline did not see these rows"
UNIT_RANGE = "the loss lies in [0, 1]"
ORDER = "the order of the rows does not depend on their losses"


def _errors_of(
    n: npt.ArrayLike, errors: npt.ArrayLike, name: str = "errors"
) -> tuple[npt.NDArray[np.float64], ...]:
    n, errors = np.broadcast_arrays(check.count("n", n), check.count(name, errors))
    check.require(errors <= n, f"{name} must not exceed n")
    return n, errors


@theorem(
    "Clopper–Pearson",
    "C. J. Clopper and E. S. Pearson, Biometrika 26 (1934), 404–413",
    assumes=(IID, UNSEEN),
    claims=at_most("risk", measured=measured.error_rate),
    example={"errors": 30, "n": 1000, "delta": 0.05},
)
def clopper_pearson(errors: npt.ArrayLike, n: npt.ArrayLike, delta: npt.ArrayLike) -> Value:
    """Upper bound on an error probability from a count of errors: the largest p with P(Bin(n, p) ≤
    errors) ≥ δ.

    It is the Beta(errors + 1, n − errors) quantile at 1 − δ. No upper bound that uses only the
    count is smaller for every count; its coverage exceeds 1 − δ only because counts are whole
    numbers.

    Parameters
    ----------
    errors : number of errors among the n rows
    n : number of rows; with none the bound is 1
    delta : failure probability

    Examples
    --------
    >>> round(clopper_pearson(30, 1000, 0.05), 5)
    0.04047
    >>> round(clopper_pearson(0, 59, 0.05), 4)  # the rule of three, exactly
    0.0495
    """
    n, errors = _errors_of(n, errors)
    return check.plain(_binomial_upper(errors, n, check.confidence(delta)))


@theorem(
    "Clopper–Pearson, lower",
    "C. J. Clopper and E. S. Pearson, Biometrika 26 (1934), 404–413",
    assumes=(IID, UNSEEN),
    claims=at_least("rate", measured=measured.success_rate),
    example={"successes": 60, "n": 63, "delta": 0.05},
)
def clopper_pearson_lower(
    successes: npt.ArrayLike, n: npt.ArrayLike, delta: npt.ArrayLike
) -> Value:
    """Lower bound on a success probability: the smallest p with P(Bin(n, p) ≥ successes) ≥ δ.

    The Beta(successes, n − successes + 1) quantile at δ; 0 where nothing succeeded.

    Examples
    --------
    >>> round(clopper_pearson_lower(60, 63, 0.05), 4)
    0.8815
    """
    n, successes = _errors_of(n, successes, "successes")
    return check.plain(_binomial_lower(successes, n, check.confidence(delta)))


def _binomial_upper(errors: Any, n: Any, delta: Any) -> Any:
    """The Beta(errors + 1, n − errors) quantile at 1 − δ; in log space where δ is too small for
    SciPy.
    """
    upper = np.where(
        errors == n,
        1.0,
        betainccinv(errors + 1, np.maximum(n - errors, 1), np.maximum(delta, 1e-80)),
    )
    if np.any(delta < 1e-80):
        exact = np.vectorize(_exact_upper, otypes=[float])
        upper = np.where(delta < 1e-80, exact(errors, n, np.minimum(delta, 1e-80)), upper)
    return upper


def _exact_upper(errors: float, n: float, delta: float) -> float:
    return binomial_tail_inversion(int(errors), int(n), math.log(delta))


def _binomial_lower(successes: Any, n: Any, delta: Any) -> Any:
    """The Beta(successes, n − successes + 1) quantile at δ."""
    lower = np.where(
        successes == 0,
        0.0,
        betaincinv(np.maximum(successes, 1), n - successes + 1, np.maximum(delta, 1e-80)),
    )
    if np.any(delta < 1e-80):
        lower = np.where(
            delta < 1e-80,
            np.maximum(0.0, 1 - _binomial_upper(n - successes, n, np.minimum(delta, 1e-80))),
            lower,
        )
    return lower


@theorem(
    "Clopper–Pearson interval",
    "C. J. Clopper and E. S. Pearson, Biometrika 26 (1934), 404–413",
    assumes=(IID, UNSEEN),
    claims=between("risk", trivial=1.0, measured=measured.error_rate),
    example={"errors": 30, "n": 1000, "delta": 0.05},
)
def clopper_pearson_interval(
    errors: npt.ArrayLike, n: npt.ArrayLike, delta: npt.ArrayLike
) -> Value:
    """Two-sided interval for an error probability, each end at δ/2.

    Examples
    --------
    >>> low, high = clopper_pearson_interval(30, 1000, 0.05)
    >>> round(low, 4), round(high, 4)
    (0.0203, 0.0426)
    """
    half = check.confidence(delta) / 2
    n, errors = _errors_of(n, errors)
    return check.plain(_binomial_lower(errors, n, half)), check.plain(
        _binomial_upper(errors, n, half)
    )


@theorem(
    "Chernoff–kl",
    "W. Hoeffding, J. Amer. Statist. Assoc. 58 (1963), Theorem 1 (2.1); J. Langford, JMLR 6 (2005),"
    " Corollary 3.7",
    assumes=(IID, UNSEEN, UNIT_RANGE),
    claims=at_most("risk", measured=measured.risk),
    example={"risk": 0.03, "n": 1000, "delta": 0.05},
)
def chernoff_kl(risk: npt.ArrayLike, n: npt.ArrayLike, delta: npt.ArrayLike) -> Value:
    """Upper bound on a mean of losses in [0, 1]: the largest p with kl(risk ‖ p) ≤ ln(1/δ)/n.

    Never larger than Hoeffding's bound (Pinsker's inequality), and much smaller near 0.

    Examples
    --------
    >>> round(chernoff_kl(0.03, 1000, 0.05), 5)
    0.04512
    """
    risk, n, delta = check.rate("risk", risk), check.count("n", n, 1), check.confidence(delta)
    return check.plain(kl_inverse(risk, np.log(1 / delta) / n))


@theorem(
    "Hoeffding",
    f"W. Hoeffding, J. Amer. Statist. Assoc. 58 (1963), Theorem 2; {THESIS}, Corollary 2.1 (2.5)",
    assumes=(IID, UNSEEN, UNIT_RANGE),
    claims=at_most("risk", measured=measured.risk),
    example={"risk": 0.03, "n": 1000, "delta": 0.05},
)
def hoeffding(risk: npt.ArrayLike, n: npt.ArrayLike, delta: npt.ArrayLike) -> Value:
    """Upper bound on a mean of losses in [0, 1]: risk + √(ln(1/δ) / 2n).

    Examples
    --------
    >>> round(hoeffding(0.03, 1000, 0.05), 4)
    0.0687
    """
    risk, n, delta = check.rate("risk", risk), check.count("n", n, 1), check.confidence(delta)
    return check.plain(risk + np.sqrt(np.log(1 / delta) / (2 * n)))


@theorem(
    "empirical Bernstein",
    "A. Maurer and M. Pontil, COLT 2009, Theorem 4",
    assumes=(IID, UNSEEN, UNIT_RANGE),
    claims=at_most("risk", measured=measured.mean_loss),
    example={"losses": (0.0, 0.1, 0.2, 0.0, 0.1) * 40, "delta": 0.05},
)
def empirical_bernstein(losses: npt.ArrayLike, delta: npt.ArrayLike) -> Value:
    """Upper bound on a mean of losses in [0, 1] that profits from a small variance.

    mean + √(2 V ln(2/δ) / n) + 7 ln(2/δ) / (3(n − 1)), with V the sample variance (divisor n − 1);
    ∞ at n = 1.

    Examples
    --------
    >>> round(empirical_bernstein([0.0, 0.1, 0.2, 0.0, 0.1] * 40, 0.05), 4)
    0.1377
    """
    losses, delta = check.sample("losses", losses), check.confidence(delta)
    n = losses.size
    if n == 1:
        return check.plain(np.full(delta.shape, np.inf))
    log_term = np.log(2 / delta)
    slack = np.sqrt(2 * losses.var(ddof=1) * log_term / n) + 7 * log_term / (3 * (n - 1))
    return check.plain(losses.mean() + slack)


_BETTING = "I. Waudby-Smith and A. Ramdas, J. R. Statist. Soc. B 86 (2024), Theorem 3 and Section 4"
_LOSSES = {"losses": (0.0, 0.1, 0.2, 0.0, 0.1) * 40, "delta": 0.05}
STATED_RANGE = "the loss lies in [0, loss_bound], as stated"


@theorem(
    "betting interval",
    _BETTING,
    assumes=(IID, UNSEEN, STATED_RANGE, ORDER),
    claims=between("risk", trivial="loss_bound", measured=measured.mean_loss),
    example=_LOSSES,
)
def betting_interval(
    losses: npt.ArrayLike, delta: float, anytime: bool = False, loss_bound: float = 1.0
) -> tuple[float, float]:
    """Interval for a mean of losses in [0, M], from a gambler who bets against every candidate
    mean.

    With M = 1, for a candidate mean m the capital K⁺ₜ(m) = ∏ᵢ (1 + λᵢ(xᵢ − m)) is a fair game if m
    is the mean, so by Ville's inequality it ever reaches 2/δ with probability at most δ/2; likewise
    K⁻ with −λᵢ. The means that neither gambler could refute form the interval. The bets λᵢ follow
    the variance seen so far.

    Parameters
    ----------
    losses : losses in an order fixed beforehand
    delta : failure probability, half for each end
    anytime : False bets for this n (tightest at n); True spreads the bets, so that the interval may
        be looked at after every row and the claim holds for all looks together
    loss_bound : M, stated beforehand

    Examples
    --------
    >>> low, high = betting_interval([0.0, 0.1, 0.2, 0.0, 0.1] * 40, 0.05)
    >>> round(low, 4), round(high, 4)
    (0.0653, 0.1048)
    """
    half = float(check.confidence(delta)) / 2
    return betting_lower(losses, half, anytime, loss_bound), betting_upper(
        losses, half, anytime, loss_bound
    )


@theorem(
    "betting",
    _BETTING,
    assumes=(IID, UNSEEN, STATED_RANGE, ORDER),
    claims=at_most("risk", trivial="loss_bound", measured=measured.mean_loss),
    example=_LOSSES,
)
def betting_upper(
    losses: npt.ArrayLike, delta: float, anytime: bool = False, loss_bound: float = 1.0
) -> float:
    """Upper end alone of `betting_interval`, with all of δ.

    Examples
    --------
    >>> round(betting_upper([0.0, 0.1, 0.2, 0.0, 0.1] * 40, 0.05), 4)
    0.1007
    """
    bound = float(check.positive("loss_bound", loss_bound))
    losses = check.sample("losses", losses, 0.0, bound)
    return bound * (1.0 - _bet_lower(1.0 - losses / bound, float(check.confidence(delta)), anytime))


@theorem(
    "betting, lower",
    _BETTING,
    assumes=(IID, UNSEEN, STATED_RANGE, ORDER),
    claims=at_least("mean", measured=measured.mean_loss),
    example=_LOSSES,
)
def betting_lower(
    losses: npt.ArrayLike, delta: float, anytime: bool = False, loss_bound: float = 1.0
) -> float:
    """Lower end alone of `betting_interval`, with all of δ.

    Examples
    --------
    >>> round(betting_lower([0.0, 0.1, 0.2, 0.0, 0.1] * 40, 0.05), 4)
    0.0668
    """
    bound = float(check.positive("loss_bound", loss_bound))
    losses = check.sample("losses", losses, 0.0, bound)
    return bound * _bet_lower(losses / bound, float(check.confidence(delta)), anytime)


def predictable_bets(
    x: npt.NDArray[np.float64], delta: float, anytime: bool
) -> npt.NDArray[np.float64]:
    """Bet sizes λₜ that depend on x₁ … xₜ₋₁ only: √(2 ln(1/δ) / (σ̂²ₜ₋₁ · horizon)).

    The horizon is n for an interval at this n, and t·ln(t + 1) for one that holds at all times.
    """
    t = np.arange(1, x.size + 1)
    mean = (0.5 + np.cumsum(x)) / (t + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (t + 1)
    before = np.concatenate(([0.25], variance[:-1]))
    horizon = t * np.log(t + 1) if anytime else x.size
    return np.sqrt(2 * math.log(1 / delta) / (before * horizon))


def _bet_lower(x: npt.NDArray[np.float64], delta: float, anytime: bool) -> float:
    """The largest mean that the gambler betting on larger x has refuted.

    Each factor 1 + min(λ, ¾/m)(x − m) falls with m, so the refuted means are an interval [0, L] and
    halving finds L; it begins between the two floats around the root that Brent's method finds.
    """
    bets, wanted = predictable_bets(x, delta, anytime), math.log(1 / delta)

    def wealth(m: float) -> float:
        return float(np.cumsum(np.log1p(np.minimum(bets, 0.75 / m) * (x - m))).max())

    low, high = _around(lambda m: wealth(m) - wanted, float(x.mean()))
    for _ in range(64):
        middle = (low + high) / 2
        if middle <= low or middle >= high:
            break
        if wealth(middle) >= wanted:
            low = middle
        else:
            high = middle
    return low


def _around(falling: Callable[[float], float], high: float) -> tuple[float, float]:
    """Two numbers, at most 32 floats apart if rounding allows, between which a falling function
    turns negative: at the first, if that is not 0, it is not negative, at the second it is, if that is
    not ``high``.
    """
    low = high
    for _ in range(64):
        before, low = low, low / 2
        if low == 0 or falling(low) >= 0:
            break
    else:
        return 0.0, 0.0  # as far as halving goes
    if low == 0 or falling(before) >= 0:
        return low, before
    root = root_between(falling, low, before)
    near = 16 * math.ulp(root)
    if root - near > low and falling(root - near) >= 0:
        low = root - near
    if root + near < before and falling(root + near) < 0:
        before = root + near
    return low, before


@theorem(
    "paired betting",
    _BETTING,
    assumes=(IID, UNSEEN, BASELINE_UNSEEN, STATED_RANGE, ORDER),
    claims=at_least("gain", trivial=None, measured=measured.mean_gain),
    example={
        "losses": (0.0, 0.0, 0.0, 1.0) * 25,
        "baseline_losses": (1.0, 0.0, 0.0, 1.0) * 25,
        "delta": 0.05,
    },
)
def paired_difference(
    losses: npt.ArrayLike, baseline_losses: npt.ArrayLike, delta: float, loss_bound: float = 1.0
) -> float:
    """Lower bound on how much smaller one model's risk is than another's, from both on the same
    rows.

    Bets on (1 + (baselineᵢ − lossᵢ)/M)/2 ∈ [0, 1]. Rows on which both agree cost almost nothing, so
    that a gain is seen far earlier than by comparing two separate intervals. Negative values mean
    that the model may be worse.

    Examples
    --------
    >>> round(paired_difference([0, 0, 0, 1] * 25, [1, 0, 0, 1] * 25, 0.05), 4)
    0.1573
    """
    bound = float(check.positive("loss_bound", loss_bound))
    losses = check.sample("losses", losses, 0.0, bound)
    baseline_losses = check.sample("baseline_losses", baseline_losses, 0.0, bound)
    check.require(
        losses.size == baseline_losses.size, "losses and baseline_losses must have the same length"
    )
    centered = (1 + (baseline_losses - losses) / bound) / 2
    return bound * (2 * _bet_lower(centered, float(check.confidence(delta)), anytime=False) - 1)


def after_selection(
    bound: Callable[..., Any] | Theorem[..., Any], candidates: int, **inputs: Any
) -> Any:
    """The bound for the best of several candidates that were compared on these same rows: the
    theorem at δ/candidates.

    A union bound. It repairs a holdout comparison of candidates that were fixed before these rows
    were seen; it cannot repair cross-validation or a penalized criterion, which need untouched
    rows. As a claim: ``theorem.certify(..., candidates=M)``.

    Examples
    --------
    >>> round(after_selection(clopper_pearson, 12, errors=30, n=1000, delta=0.05), 4)
    0.0472
    """
    m = float(check.count("candidates", candidates, 1))
    return bound(**{**inputs, "delta": check.confidence(inputs["delta"]) / m})


@theorem(
    "split conformal",
    "V. Vovk, A. Gammerman and G. Shafer, Algorithmic Learning in a Random World (2005),"
    " Proposition 4.1",
    assumes=("calibration and new rows are exchangeable", UNSEEN),
    claims=Statement(
        quantity="rank_that_covers", relation="=", holds=IN_EXPECTATION, unit="number"
    ),
    example={"n": 171, "alpha": 0.1},
)
def conformal_rank(n: npt.ArrayLike, alpha: npt.ArrayLike) -> Value:
    """Which smallest of n calibration scores covers a new one with probability ≥ 1 − α *on
    average*: ⌈(n + 1)(1 − α)⌉.

    The probability is over calibration rows and new row together; for the coverage of this
    calibrated model see `conformal_rank_pac`. ∞ when n is too small: no finite rank covers.

    Examples
    --------
    >>> conformal_rank(171, 0.1)
    155.0
    >>> conformal_rank(5, 0.1)
    inf
    """
    n, alpha = check.count("n", n, 1), check.confidence(alpha, "alpha")
    exact = (n + 1) * (1 - alpha)
    # 0.9 is not a float: (n + 1)·0.9 may land just above a whole number
    rank = np.maximum(1.0, np.ceil(exact - 1e-12 * n))
    return check.plain(np.where(rank > n, np.inf, rank))


@theorem(
    "PAC conformal",
    "V. Vovk, Machine Learning 92 (2013), Proposition 2a; S. S. Wilks, Ann. Math. Statist. 12"
    " (1941), 91–96",
    assumes=(IID, UNSEEN),
    claims=Statement(quantity="rank_that_covers", relation="=", unit="number"),
    example={"n": 171, "alpha": 0.1, "delta": 0.05},
)
def conformal_rank_pac(n: npt.ArrayLike, alpha: npt.ArrayLike, delta: npt.ArrayLike) -> Value:
    """Which smallest of n calibration scores covers at least 1 − α of new ones with confidence 1 −
    δ.

    The k-th smallest covers less than 1 − α with probability at most P(Bin(n, 1 − α) ≥ k); the
    smallest k for which that is ≤ δ is returned, ∞ if not even k = n is enough.

    Examples
    --------
    >>> conformal_rank_pac(171, 0.1, 0.05)
    161.0
    >>> conformal_rank_pac(28, 0.1, 0.05), conformal_rank_pac(29, 0.1, 0.05)
    (inf, 29.0)
    """
    n, alpha, delta = (
        check.count("n", n, 1),
        check.confidence(alpha, "alpha"),
        check.confidence(delta),
    )
    rank = binomial_isf(delta, n, 1 - alpha) + 1  # isf: the smallest j with P(Bin > j) ≤ δ
    tied = binomial_sf(rank - 2, n, 1 - alpha) <= delta * (1 + 1e-13)  # exactly, which isf misses
    rank = np.where(tied, rank - 1, rank)
    return check.plain(np.where(rank > n, np.inf, rank))


def _coverage_of_radius(inputs: Mapping[str, Any]) -> float:
    return float(np.quantile(inputs["residuals"], 1 - inputs["alpha"], method="inverted_cdf"))


@theorem(
    "PAC conformal radius",
    "V. Vovk, Machine Learning 92 (2013), Proposition 2a; S. S. Wilks, Ann. Math. Statist. 12"
    " (1941), 91–96",
    assumes=(IID, UNSEEN),
    claims=at_most("error_quantile", trivial=None, unit="number", measured=_coverage_of_radius),
    example={"residuals": tuple(range(1, 101)), "alpha": 0.1, "delta": 0.05},
)
def conformal_radius(residuals: npt.ArrayLike, alpha: float, delta: float) -> float:
    """A distance from the prediction within which at least 1 − α of new targets fall, with
    confidence 1 − δ.

    The residual of rank `conformal_rank_pac`; ∞ when there are too few.

    Examples
    --------
    >>> conformal_radius(range(1, 101), 0.1, 0.05)
    96.0
    """
    residuals = check.sample("residuals", residuals, 0.0, math.inf)
    rank = conformal_rank_pac(residuals.size, alpha, delta)
    return math.inf if math.isinf(rank) else float(np.sort(residuals)[int(rank) - 1])


def _score_of_rank(inputs: Mapping[str, Any]) -> float:
    return float(np.quantile(inputs["scores"], 1 - inputs["alpha"], method="inverted_cdf"))


@theorem(
    "PAC conformal score",
    "V. Vovk, Machine Learning 92 (2013), Proposition 2a, of any fixed score; J. Lei, M. G'Sell,"
    " A. Rinaldo, R. J. Tibshirani and L. Wasserman, JASA 113 (2018), section 5.2, and Y. Romano, E."
    " Patterson and E. J. Candès, NeurIPS 32 (2019), whose scores they are",
    assumes=(IID, UNSEEN),
    claims=at_most("score_quantile", trivial=None, unit="number", measured=_score_of_rank),
    example={"scores": tuple(0.1 * k - 1 for k in range(100)), "alpha": 0.1, "delta": 0.05},
)
def conformal_score(scores: npt.ArrayLike, alpha: float, delta: float) -> float:
    """A number that the scores of at least 1 − α of new rows do not exceed, with confidence 1 − δ.

    The score of rank `conformal_rank_pac`; ∞ when there are too few. Unlike a distance a score may
    be negative, and ∞: of a target outside the stated range, which no interval holds.

    Examples
    --------
    >>> conformal_score([k / 10 - 1 for k in range(100)], 0.1, 0.05)
    8.5
    """
    found = check.sample("scores", scores, -math.inf, math.inf)
    rank = conformal_rank_pac(found.size, alpha, delta)
    return math.inf if math.isinf(rank) else float(np.sort(found)[int(rank) - 1])
