"""SciPy's special functions with types: SciPy has none, and theorems are checked strictly."""

# pyright: basic
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import special, stats
from scipy.optimize import brentq

from surelearn.types import Array


def gammaln(x: npt.ArrayLike) -> Array:
    """Ln |Γ(x)|."""
    return special.gammaln(x)


def gammainc(a: npt.ArrayLike, x: npt.ArrayLike) -> Array:
    """The regularized lower incomplete gamma function P(a, x)."""
    return special.gammainc(a, x)


def gammaincinv(a: npt.ArrayLike, p: npt.ArrayLike) -> Array:
    """The x with P(a, x) = p."""
    return special.gammaincinv(a, p)


def betaincinv(a: npt.ArrayLike, b: npt.ArrayLike, p: npt.ArrayLike) -> Array:
    """The quantile of Beta(a, b) at p."""
    return special.betaincinv(a, b, p)


def betainccinv(a: npt.ArrayLike, b: npt.ArrayLike, p: npt.ArrayLike) -> Array:
    """The quantile of Beta(a, b) at 1 − p, exact for small p."""
    return special.betainccinv(a, b, p)


def rel_entr(p: npt.ArrayLike, q: npt.ArrayLike) -> Array:
    """p·ln(p/q), with its limits at 0."""
    return special.rel_entr(p, q)


def ndtr(x: npt.ArrayLike) -> Array:
    """The standard normal distribution function Φ."""
    return special.ndtr(x)


def log_ndtr(x: npt.ArrayLike) -> Array:
    """Ln Φ(x)."""
    return special.log_ndtr(x)


def ndtri(p: npt.ArrayLike) -> Array:
    """The standard normal quantile Φ⁻¹(p)."""
    return special.ndtri(p)


def lambertw(x: npt.ArrayLike) -> Array:
    """The principal branch of Lambert's W at real x ≥ −1/e."""
    return special.lambertw(x).real


def logsumexp(terms: npt.ArrayLike) -> float:
    """Ln Σ e^term, with the largest taken out as SciPy does, whose own takes eight times as long
    for a hundred terms.
    """
    terms = np.asarray(terms, dtype=float)
    largest = terms.max()
    if not np.isfinite(largest):
        return float(special.logsumexp(terms))
    at = terms == largest
    count = np.count_nonzero(at)
    others = np.exp(np.where(at, -np.inf, terms) - largest).sum() / count
    return float(np.log1p(others) + np.log(float(count)) + largest)


def binomial_sf(k: npt.ArrayLike, n: npt.ArrayLike, p: npt.ArrayLike) -> Array:
    """P(Binomial(n, p) > k)."""
    return stats.binom.sf(k, n, p)


def binomial_isf(q: npt.ArrayLike, n: npt.ArrayLike, p: npt.ArrayLike) -> Array:
    """The smallest k with P(Binomial(n, p) > k) ≤ q, as SciPy finds it."""
    return stats.binom.isf(q, n, p)


def root_between(function: Callable[[float], float], low: float, high: float) -> float:
    """A root between numbers at which the function's signs differ, to a few floats: by Brent's
    method.
    """
    return float(brentq(function, low, high, xtol=4 * math.ulp(low), disp=False))
