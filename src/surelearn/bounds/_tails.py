"""Tails of the binomial and hypergeometric distributions, and their inversion, in log space.

Unions over many subsets or labelings push δ far below the smallest float, so everything here takes
``log_delta``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds._special import betainccinv, gammaln, rel_entr

_STEPS = 64  # halvings of [0, 1]: past the spacing of floats
# below about 1e-107 SciPy's inverse beta function errs, also to the unsound side
_SMALLEST = math.log(1e-80)


def log_choose(n: npt.ArrayLike, k: npt.ArrayLike) -> Any:
    """Natural logarithm of C(n, k); −∞ outside 0 ≤ k ≤ n."""
    n, k = np.asarray(n, dtype=float), np.asarray(k, dtype=float)
    inside = (k >= 0) & (k <= n)
    k = np.where(inside, k, 0)
    return np.where(inside, gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1), -np.inf)


def log_sum_exp(terms: npt.NDArray[np.float64]) -> float:
    """Natural logarithm of Σ e^term, without overflow."""
    largest = float(terms.max())
    return largest + math.log(float(np.exp(terms - largest).sum()))


def kl_inverse(risk: npt.ArrayLike, budget: npt.ArrayLike) -> Any:
    """The largest p with kl(risk ‖ p) ≤ budget, by halving; the upper end of the last bracket,
    so never too small.
    """
    risk, budget = np.broadcast_arrays(
        np.asarray(risk, dtype=float), np.asarray(budget, dtype=float)
    )
    low, high = np.array(risk), np.ones(risk.shape)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        fits = rel_entr(risk, middle) + rel_entr(1 - risk, 1 - middle) <= budget
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return np.where(risk == 0, -np.expm1(-budget), high)  # at 0 the inverse is 1 − e^{−budget}


def log_binomial_cdf(k: int, n: int, p: float) -> float:
    """Natural logarithm of P(Binomial(n, p) ≤ k)."""
    check.terms(k)
    i = np.arange(k + 1)
    return log_sum_exp(log_choose(n, i) + i * math.log(p) + (n - i) * math.log1p(-p))


def log_hypergeometric_cdf(k: int, total: int, marked: int, drawn: int) -> float:
    """Natural logarithm of P(at most k of those drawn are marked), drawing from ``total`` of
    which ``marked`` are.
    """
    check.terms(min(k, marked, drawn) - max(0, drawn - (total - marked)))
    i = np.arange(max(0, drawn - (total - marked)), min(k, marked, drawn) + 1)
    if i.size == 0:
        return -math.inf
    ways = log_sum_exp(log_choose(marked, i) + log_choose(total - marked, drawn - i))
    return min(0.0, ways - float(log_choose(total, drawn)))


def binomial_tail_inversion(errors: int, n: int, log_delta: float) -> float:
    """The largest p with P(Binomial(n, p) ≤ errors) ≥ e^{log_delta}: Clopper and Pearson's
    upper end.
    """
    if errors >= n:
        return 1.0
    if errors == 0:
        return -math.expm1(log_delta / n)
    if log_delta > _SMALLEST:
        return float(betainccinv(errors + 1, n - errors, math.exp(log_delta)))
    low, high = errors / n, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle >= 1.0 or log_binomial_cdf(errors, n, middle) < log_delta:
            high = middle
        else:
            low = middle
    return high


def hypergeometric_tail_inversion(errors: int, n: int, total: int, log_delta: float) -> int:
    """The largest K with P(at most ``errors`` of n drawn are marked | K of ``total`` marked) ≥
    e^{log_delta}.
    """
    low, high = errors, total + 1  # the probability is 1 at K = errors and falls with K
    while high - low > 1:
        middle = (low + high) // 2
        if log_hypergeometric_cdf(errors, total, middle, n) >= log_delta:
            low = middle
        else:
            high = middle
    return low
