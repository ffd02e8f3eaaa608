"""Differential privacy: what mechanisms spend, and how spending adds up.

M is (ε, δ)-private if P(M(D) ∈ E) ≤ e^ε·P(M(D') ∈ E) + δ for all events E and adjacent D, D'
(course, Section 19). This δ is called ``dp_delta`` throughout: it is not a claim's failure
probability. Rényi curves are in `surelearn.bounds.renyi`, privacy loss distributions in
`surelearn.bounds.privacy_loss`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds._checks import Value
from surelearn.bounds._special import log_ndtr
from surelearn.bounds.privacy_loss import subsampled_gaussian_losses
from surelearn.bounds.renyi import ORDERS, epsilon_from_renyi, subsampled_gaussian_renyi
from surelearn.claim import ALWAYS, Statement, at_most, theorem

ADJACENT = "adjacent data sets differ in one row, added or removed"
SENSITIVE = "adjacent data sets move the answer by at most sensitivity, as stated"
IDEAL_NOISE = (
    "sampling and noise are secret and ideal; floating-point numbers of a pseudo-random generator"
    " stand for them"
)
POISSON = "each row is in each batch with probability sample_rate, independently"
CLIPPED = "one row moves the sum of a step by at most the clipping norm"
PUBLIC = (
    "the number of rows, the columns and the set of labels are public, and nothing else was fitted"
    " to these rows"
)

LARGEST = 100.0  # an ε above it protects nobody: Rényi's bound stands, without the finer one

Pair = tuple[float, float]


def _spends() -> Statement:
    return at_most("epsilon", holds=ALWAYS, trivial=None, unit="number")


# Mechanisms.


@theorem(
    "randomized response",
    "S. Warner, JASA 60 (1965); P. Kairouz, S. Oh and P. Viswanath, JMLR 17 (2016), for more than"
    " two answers",
    assumes=("adjacent answers differ in one person's, replaced", IDEAL_NOISE),
    claims=_spends(),
    example={"keep": 0.75, "categories": 2},
)
def randomized_response(keep: npt.ArrayLike, categories: npt.ArrayLike = 2) -> Value:
    """ε of answering the truth with probability p, otherwise one of the other k − 1 answers:
    |ln(p(k − 1)/(1 − p))|.

    Exact, with dp_delta = 0. (Adjacency is replacing: each person answers.)

    Parameters
    ----------
    keep : p, in [0, 1]; 0 or 1 give infinity
    categories : k ≥ 2; one answer spends nothing

    Examples
    --------
    >>> round(randomized_response(0.75), 4)
    1.0986
    """
    p, k = check.rate("keep", keep), check.count("categories", categories, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        largest = np.abs(np.log(p) + np.log(k - 1) - np.log1p(-p))
    return check.plain(np.where(k == 1, 0.0, largest))


@theorem(
    "Laplace mechanism",
    "C. Dwork, F. McSherry, K. Nissim and A. Smith, TCC 2006",
    assumes=(SENSITIVE, IDEAL_NOISE),
    claims=_spends(),
    example={"sensitivity": 1.0, "scale": 2.0},
)
def laplace_mechanism(sensitivity: npt.ArrayLike, scale: npt.ArrayLike) -> Value:
    """ε of adding Laplace noise of scale b to an answer of L1 sensitivity Δ: Δ/b, with dp_delta =
    0.

    Examples
    --------
    >>> laplace_mechanism(1.0, 2.0)
    0.5
    """
    return check.plain(check.positive("sensitivity", sensitivity) / check.positive("scale", scale))


def gaussian_mechanism_classical(
    sensitivity: npt.ArrayLike, noise: npt.ArrayLike, dp_delta: npt.ArrayLike
) -> Value:
    """ε of Gaussian noise σ, as it is often stated: Δ√(2 ln(1.25/dp_delta))/σ where that is below
    1, else infinite.

    C. Dwork and A. Roth (2014), Theorem A.1. `gaussian_mechanism` is exact.

    Examples
    --------
    >>> round(gaussian_mechanism_classical(1.0, 10.0, 1e-5), 4), gaussian_mechanism_classical(1.0, 1.0, 1e-5)
    (0.4845, inf)
    """
    ratio = check.positive("sensitivity", sensitivity) / check.positive("noise", noise)
    epsilon = ratio * np.sqrt(2 * np.log(1.25 / check.confidence(dp_delta, "dp_delta")))
    return check.plain(np.where(epsilon < 1, epsilon, np.inf))


def gaussian_delta(
    epsilon: npt.ArrayLike, sensitivity: npt.ArrayLike, noise: npt.ArrayLike
) -> Value:
    """dp_delta of Gaussian noise σ at ε, exactly: Φ(Δ/(2σ) − εσ/Δ) − e^ε·Φ(−Δ/(2σ) − εσ/Δ).

    B. Balle and Y.-X. Wang, ICML 2018, Theorem 8.

    Examples
    --------
    >>> round(gaussian_delta(1.0, sensitivity=1.0, noise=1.0), 5)
    0.12694
    """
    mu = check.positive("sensitivity", sensitivity) / check.positive("noise", noise)
    return check.plain(_gaussian_delta(check.nonnegative("epsilon", epsilon), mu))


@theorem(
    "analytic Gaussian mechanism",
    "B. Balle and Y.-X. Wang, ICML 2018, Theorem 8",
    assumes=(SENSITIVE, IDEAL_NOISE),
    claims=_spends(),
    example={"sensitivity": 1.0, "noise": 2.0, "dp_delta": 1e-5},
)
def gaussian_mechanism(
    sensitivity: npt.ArrayLike, noise: npt.ArrayLike, dp_delta: npt.ArrayLike
) -> Value:
    """ε of adding N(0, σ²) to each coordinate of an answer of L2 sensitivity Δ: the least at which
    `gaussian_delta` holds.

    Examples
    --------
    >>> round(gaussian_mechanism(1.0, 2.0, 1e-5), 4), round(gaussian_mechanism(1.0, 10.0, 1e-5), 4)
    (1.9931, 0.3407)
    """
    mu = check.positive("sensitivity", sensitivity) / check.positive("noise", noise)
    mu, target = np.broadcast_arrays(mu, check.confidence(dp_delta, "dp_delta"))
    low, high = np.zeros(mu.shape), mu**2 / 2 + mu * np.sqrt(2 * np.log(1 / target))
    for _ in range(100):
        middle = (low + high) / 2
        enough = _gaussian_delta(middle, mu) <= target
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return check.plain(np.where(_gaussian_delta(np.zeros(mu.shape), mu) <= target, 0.0, high))


def gaussian_noise(sensitivity: float, epsilon: float, dp_delta: float) -> float:
    """The least σ with which `gaussian_mechanism` spends at most ε.

    Examples
    --------
    >>> round(gaussian_noise(1.0, epsilon=1.0, dp_delta=1e-5), 4)
    3.7306
    """
    wanted = float(check.positive("epsilon", epsilon))
    low, high = 1e-12, 1.0
    while gaussian_mechanism(1.0, high, dp_delta) > wanted:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if gaussian_mechanism(1.0, middle, dp_delta) > wanted else (low, middle)
        )
    return high * float(check.positive("sensitivity", sensitivity))


# Calculus.


def sequential_composition(epsilons: npt.ArrayLike, dp_deltas: npt.ArrayLike = 0.0) -> Pair:
    """Mechanisms on the same rows, each free to look at the answers before: ε and dp_delta add up.

    C. Dwork and A. Roth (2014), Theorem 3.16; by induction also where one mechanism sees the
    answers of another.

    Examples
    --------
    >>> sequential_composition([0.5, 0.25], [1e-6, 0.0])
    (0.75, 1e-06)
    """
    epsilon, delta = _pairs(epsilons, dp_deltas)
    return math.fsum(epsilon), min(1.0, math.fsum(delta))


def parallel_composition(epsilons: npt.ArrayLike, dp_deltas: npt.ArrayLike = 0.0) -> Pair:
    """Mechanisms on disjoint rows: the largest ε and the largest dp_delta (course, Proposition
    19.4).

    Shards must be disjoint, which the course does not say. Which shard a row belongs to may depend
    on that row only, and adjacency is adding or removing it.

    Examples
    --------
    >>> parallel_composition([0.5, 0.25])
    (0.5, 0.0)
    """
    epsilon, delta = _pairs(epsilons, dp_deltas)
    return max(epsilon), max(delta)


def group_privacy(epsilon: float, dp_delta: float, k: int) -> Pair:
    """K rows that change together: (kε, k·e^{(k−1)ε}·dp_delta).

    S. Vadhan (2017), group privacy, with the sum of dp_delta·e^{iε} over i < k bounded by k times
    its last term. The course (Proposition 19.4) states it for dp_delta = 0.

    Examples
    --------
    >>> group_privacy(0.5, 0.0, 3)
    (1.5, 0.0)
    """
    (epsilon,), (delta,) = _pairs(epsilon, dp_delta)
    size = float(check.count("k", k, 1))
    return size * epsilon, min(1.0, size * math.exp(min((size - 1) * epsilon, 700.0)) * delta)


def advanced_composition(epsilon: float, dp_delta: float, k: int, slack: float) -> Pair:
    """As many as k mechanisms, each (ε, dp_delta): kε(e^ε − 1)/(e^ε + 1) + ε√(2k ln(1/slack)), or
    kε if that is less.

    At dp_delta 1 − (1 − dp_delta)^k(1 − slack). P. Kairouz, S. Oh and P. Viswanath, ICML 2015.

    Examples
    --------
    >>> e, d = advanced_composition(0.1, 0.0, 100, slack=1e-5)
    >>> round(e, 3), round(d, 7)
    (5.298, 1e-05)
    """
    (epsilon,), (delta,) = _pairs(epsilon, dp_delta)
    times, spare = float(check.count("k", k, 1)), float(check.confidence(slack, "slack"))
    usual = times * epsilon * math.tanh(epsilon / 2) + epsilon * math.sqrt(
        2 * times * math.log(1 / spare)
    )
    total = -math.expm1(times * math.log1p(-delta) + math.log1p(-spare)) if delta < 1 else 1.0
    return min(usual, times * epsilon), total


def post_processing(epsilon: float, dp_delta: float) -> Pair:
    """Whatever is computed from a private answer, without the rows, spends nothing more.

    C. Dwork and A. Roth (2014), Proposition 2.1.

    Examples
    --------
    >>> post_processing(1.0, 1e-5)
    (1.0, 1e-05)
    """
    (epsilon,), (delta,) = _pairs(epsilon, dp_delta)
    return epsilon, delta


# DP-SGD.


@theorem(
    "DP-SGD, Rényi",
    "I. Mironov, K. Talwar, L. Zhang (2019), Section 3.3; C. Canonne, G. Kamath, T. Steinke (2020),"
    " Proposition 12",
    assumes=(ADJACENT, POISSON, CLIPPED, PUBLIC, IDEAL_NOISE),
    claims=_spends(),
    example={"noise_multiplier": 1.0, "sample_rate": 0.01, "steps": 1000, "dp_delta": 1e-5},
)
def dp_sgd_renyi(noise_multiplier: float, sample_rate: float, steps: int, dp_delta: float) -> float:
    """ε of so many steps of DP-SGD from the Rényi curve of one, T·ρ(α), at the best of the orders
    `ORDERS`.

    Examples
    --------
    >>> round(dp_sgd_renyi(1.0, 0.01, 1000, 1e-5), 3)
    2.101
    """
    _, q, t, delta = _checked(noise_multiplier, sample_rate, steps, dp_delta)
    if q == 0 or t == 0:
        return 0.0
    return epsilon_from_renyi(
        ORDERS, t * subsampled_gaussian_renyi(ORDERS, noise_multiplier, q), delta
    )


@theorem(
    "DP-SGD, privacy loss distribution",
    "V. Doroshenko and others, PoPETs 2022; Y. Zhu, J. Dong and Y.-X. Wang, AISTATS 2022, Theorems"
    " 10 and 11",
    assumes=(ADJACENT, POISSON, CLIPPED, PUBLIC, IDEAL_NOISE),
    claims=_spends(),
    example={"noise_multiplier": 1.0, "sample_rate": 0.01, "steps": 1000, "dp_delta": 1e-5},
)
def dp_sgd_epsilon(
    noise_multiplier: float, sample_rate: float, steps: int, dp_delta: float, accounted: float = 0.0
) -> float:
    """ε of so many steps of DP-SGD from the distribution of the privacy loss, composed numerically
    and from above.

    The larger of both directions (a row removed, a row added); never more than `dp_sgd_renyi`,
    which holds too and is what is given above 100.

    Parameters
    ----------
    accounted : the ε of another accountant of the same steps; the larger of the two is claimed

    Examples
    --------
    >>> round(dp_sgd_epsilon(1.0, 0.01, 1000, 1e-5), 3)
    1.828
    """
    sigma, q, t, delta = _checked(noise_multiplier, sample_rate, steps, dp_delta)
    other = float(check.nonnegative("accounted", accounted))
    if q == 0 or t == 0:
        return other
    if q == 1:
        return max(other, float(gaussian_mechanism(math.sqrt(t), sigma, delta)))
    usual = dp_sgd_renyi(sigma, q, t, delta)
    if usual > LARGEST:
        return max(other, usual)
    composed = max(
        losses.compose(t, 1e-4 * delta).epsilon(delta)
        for losses in subsampled_gaussian_losses(sigma, q, t)
    )
    return max(other, min(composed, usual))


def _gaussian_delta(
    epsilon: npt.NDArray[np.float64], mu: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    first, second = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return -np.exp(first) * np.expm1(np.minimum(second - first, 0.0))


def _checked(
    noise_multiplier: float, sample_rate: float, steps: int, dp_delta: float
) -> tuple[float, float, int, float]:
    return (
        float(check.positive("noise_multiplier", noise_multiplier)),
        float(check.rate("sample_rate", sample_rate)),
        int(check.count("steps", steps)),
        float(check.confidence(dp_delta, "dp_delta")),
    )


def _pairs(epsilons: npt.ArrayLike, dp_deltas: npt.ArrayLike) -> tuple[list[float], list[float]]:
    epsilon, delta = check.nonnegative("epsilon", epsilons), check.rate("dp_delta", dp_deltas)
    check.require(epsilon.size > 0, "epsilon must hold at least one number")
    epsilon, delta = np.broadcast_arrays(np.atleast_1d(epsilon), np.atleast_1d(delta))
    return epsilon.tolist(), delta.tolist()
