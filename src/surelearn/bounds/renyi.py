"""Rényi differential privacy: curves ε(α) of mechanisms, and what they say as (ε, dp_delta).

D_α(P‖Q) = ln E_Q[(P/Q)^α]/(α − 1) for orders α > 1 (course, Definition 19.3). Curves of mechanisms
run one after the other add up. Adjacent data sets differ in one row that was added or removed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds._checks import Value
from surelearn.bounds._special import gammaln, logsumexp
from surelearn.types import Array

ORDERS: Array = np.concatenate(
    [1 + np.arange(1, 100) / 10, np.arange(11, 65), [80, 96, 128, 192, 256, 512, 1024]]
)
_ROUNDING = 1e-13  # added to ln A, above what quadrature and rounding may lose
_LEAST_NOISE = 0.1  # below it the integrand of fractional orders is too rough: whole orders only


def gaussian_renyi(
    orders: npt.ArrayLike, sensitivity: npt.ArrayLike, noise: npt.ArrayLike
) -> Value:
    """Rényi curve of the Gaussian mechanism: αΔ²/(2σ²).

    I. Mironov, CSF 2017, Proposition 7. The course (Example 19.5) calls the *squared* sensitivity
    Δ₂f.

    Examples
    --------
    >>> gaussian_renyi([2, 8], sensitivity=1.0, noise=2.0).tolist()
    [0.25, 1.0]
    """
    alpha = _orders(orders)
    return check.plain(
        alpha
        * check.positive("sensitivity", sensitivity) ** 2
        / (2 * check.positive("noise", noise) ** 2)
    )


def laplace_renyi(orders: npt.ArrayLike, sensitivity: float, scale: float) -> Value:
    """Rényi curve of the Laplace mechanism, with t = Δ/b: ln(α/(2α−1)·e^{(α−1)t} +
    (α−1)/(2α−1)·e^{−αt})/(α − 1).

    I. Mironov, CSF 2017, Proposition 6.

    Examples
    --------
    >>> round(laplace_renyi(2.0, 1.0, 1.0), 4)
    0.6191
    """
    alpha = _orders(orders)
    t = check.positive("sensitivity", sensitivity) / check.positive("scale", scale)
    up, down = (
        np.log(alpha / (2 * alpha - 1)) + (alpha - 1) * t,
        np.log((alpha - 1) / (2 * alpha - 1)) - alpha * t,
    )
    return check.plain(np.logaddexp(up, down) / (alpha - 1))


def randomized_response_renyi(orders: npt.ArrayLike, keep: float) -> Value:
    """Rényi curve of answering the truth of two with probability p: ln(p^α(1−p)^{1−α} + (1−p)^α
    p^{1−α})/(α − 1).

    I. Mironov, CSF 2017.

    Examples
    --------
    >>> round(randomized_response_renyi(2.0, 0.75), 4)
    0.8473
    """
    alpha, p = _orders(orders), check.confidence(keep, "keep")
    yes, no = np.log(p), np.log1p(-p)
    return check.plain(
        np.logaddexp(alpha * yes + (1 - alpha) * no, alpha * no + (1 - alpha) * yes) / (alpha - 1)
    )


def subsampled_gaussian_renyi(
    orders: npt.ArrayLike, noise_multiplier: float, sample_rate: float
) -> Value:
    """Rényi curve of the Gaussian mechanism on a Poisson sample: ln A_α/(α − 1).

    A_α = E[(1 − q + q·e^{(2x−1)/(2σ²)})^α] over x ~ N(0, σ²): a binomial sum for whole α, the
    trapezoid rule, which converges exponentially for this integrand, for the others. I. Mironov, K.
    Talwar and L. Zhang, 2019 (arXiv:1908.10530), Section 3.3: this direction, the row removed, is
    the larger one. With noise below 0.1 fractional orders are not computed: infinity.

    Parameters
    ----------
    orders : α > 1
    noise_multiplier : σ, the noise's standard deviation in units of the sensitivity
    sample_rate : q, the probability with which each row is in the sample, independently of the
        others

    Examples
    --------
    >>> subsampled_gaussian_renyi([2, 2.5], 1.0, 0.01).round(8).tolist()
    [0.00017181, 0.00021758]
    """
    alpha = np.atleast_1d(_orders(orders))
    sigma, q = (
        float(check.positive("noise_multiplier", noise_multiplier)),
        float(check.rate("sample_rate", sample_rate)),
    )
    if q == 0:
        found = np.zeros_like(alpha)
    elif q == 1:
        found = alpha / (2 * sigma**2)
    else:
        whole = alpha == np.floor(alpha)
        found = np.full(alpha.shape, np.inf)
        found[whole] = [_binomial(a, sigma, q) / (a - 1) for a in alpha[whole]]
        if sigma >= _LEAST_NOISE:
            found[~whole] = [(_integral(a, sigma, q) + _ROUNDING) / (a - 1) for a in alpha[~whole]]
    return check.plain(np.maximum(found, 0.0).reshape(np.shape(orders)))


def epsilon_from_renyi(
    orders: npt.ArrayLike, renyi: npt.ArrayLike, dp_delta: float, tight: bool = True
) -> float:
    """The least ε over the orders of a Rényi curve ρ(α), for a given dp_delta.

    ρ + ln(1 − 1/α) − ln(α·dp_delta)/(α − 1): C. Canonne, G. Kamath and T. Steinke, NeurIPS 2020
    (arXiv:2004.00010v4), Proposition 12; B. Balle and others, AISTATS 2020, Theorem 21. It replaces
    ρ + ln(1/dp_delta)/(α − 1) of I. Mironov, CSF 2017 (arXiv:1702.07476v3), Proposition 3.

    Parameters
    ----------
    tight : False for Mironov's conversion

    Examples
    --------
    >>> curve = gaussian_renyi(ORDERS, sensitivity=1.0, noise=2.0)
    >>> round(epsilon_from_renyi(ORDERS, curve, 1e-5), 3), round(epsilon_from_renyi(ORDERS, curve, 1e-5, tight=False), 3)
    (2.166, 2.524)
    """
    alpha, rho = _orders(orders), check.nonnegative("renyi", renyi)
    log_delta = np.log(check.confidence(dp_delta, "dp_delta"))
    if tight:
        epsilon = rho + np.log1p(-1 / alpha) - (log_delta + np.log(alpha)) / (alpha - 1)
    else:
        epsilon = rho - log_delta / (alpha - 1)
    return max(0.0, float(np.min(epsilon)))


def _orders(orders: npt.ArrayLike) -> Array:
    alpha = check.number("orders", orders)
    check.require((alpha > 1) & np.isfinite(alpha), "orders must be finite and above 1")
    return alpha


def _binomial(alpha: float, sigma: float, q: float) -> float:
    """Ln Σ_k C(α, k)(1 − q)^{α−k} q^k e^{(k² − k)/(2σ²)}."""
    k = np.arange(alpha + 1)
    ways = gammaln(alpha + 1) - gammaln(k + 1) - gammaln(alpha - k + 1)
    return logsumexp(
        ways + (alpha - k) * np.log1p(-q) + k * np.log(q) + (k * k - k) / (2 * sigma**2)
    )


def _integral(alpha: float, sigma: float, q: float) -> float:
    """Ln of the integral of N(x; 0, σ²)·(1 − q + q·e^{(2x−1)/(2σ²)})^α; its mass lies between 0
    and α.
    """
    step = min(sigma / 24, sigma**2 / 2)
    x = np.arange(-10 * sigma, alpha + 10 * sigma, step)
    loss = np.logaddexp(np.log1p(-q), np.log(q) + (2 * x - 1) / (2 * sigma**2))
    return float(
        logsumexp(alpha * loss - x**2 / (2 * sigma**2))
        + np.log(step / sigma)
        - 0.5 * np.log(2 * np.pi)
    )
