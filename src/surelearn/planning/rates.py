"""Errors, sensitivities and intervals: exact, from the binomial."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincc, btdtrib
from scipy.stats import binom

from surelearn import stated
from surelearn.bounds import clopper_pearson, clopper_pearson_lower, conformal_rank_pac
from surelearn.planning.checks import (
    MOST_ROWS,
    check_counts,
    check_level,
    check_rate,
    not_above,
)
from surelearn.types import Array

# A claim's part of δ on an audit's page (`surelearn.certification`). The headline, errors or
# interval, has half; the other items divide the other half equally. With a positive class of two
# these are sensitivity, specificity, precision, gain, the baseline's errors, the slices, the other
# metrics and calibration: a sixteenth each. Without one they are the classes, gain, the baseline's
# errors, the slices, the metrics and calibration: a twelfth. (A column that slices are asked for of
# adds the differences between them, an item more.) An interval without a stated loss bound is a
# page's only claim and has all of δ. Prediction sets have half of the other half, and the other items
# then divide the rest.
OF_SETS = 1 / 2
SHARES = {
    "risk": 1 / 2,
    "interval": 1 / 2,
    "sensitivity": 1 / 16,
    "gain": 1 / 12,
    "sets": 1 / 2 * OF_SETS,
}


@dataclass(frozen=True, kw_only=True)
class RateTest:
    """A binomial claim: failures of at most ``most`` at level δ, where in truth a part ``expected``
    of rows fails.

    With ``least`` the claim is a success rate of at least that, and ``most`` is 1 − least.
    """

    most: float
    expected: float
    delta: float
    least: float | None = None

    def holds(self, failures: Array, n: Array) -> npt.NDArray[np.bool_]:
        """Whether the bound from so many failures among n rows is the wished one, as the
        theorem computes it.
        """
        valid = (failures >= 0) & (failures < n)
        k, n = np.where(valid, failures, 0.0), np.maximum(n, 1.0)
        if self.least is None:
            return valid & (np.asarray(clopper_pearson(k, n, self.delta)) <= self.most)
        return valid & (np.asarray(clopper_pearson_lower(n - k, n, self.delta)) >= self.least)

    def allowed(self, n: npt.ArrayLike) -> Array:
        """The most failures that n rows may contain; −1 where not even none is few enough."""
        n = np.asarray(n, dtype=float)
        guess = np.where(n > 0, binom.ppf(self.delta, np.maximum(n, 1.0), self.most), 0.0) - 1
        best = np.maximum(guess - 2, -1.0)
        for k in (guess - 1, guess, guess + 1):  # ties are decided by the theorem itself
            best = np.where(self.holds(k, n), k, best)
        return best

    def power(self, n: npt.ArrayLike) -> Array:
        """The probability that n rows certify the claim."""
        n = np.asarray(n, dtype=float)
        k = self.allowed(n)
        return np.where(
            k < 0, 0.0, binom.cdf(np.maximum(k, 0.0), np.maximum(n, 1.0), self.expected)
        )

    def first_rows(self, k: Array) -> Array:
        """n_k, the fewest rows that may contain k failures."""
        near = np.ceil(self._turning(k))
        best = near + 1
        for n in (near, near - 1):
            best = np.where(self.holds(k, n), n, best)
        return best

    def rows(self, power: float) -> int:
        """The fewest rows from which on the power never falls below ``power``.

        From n_k to n_{k+1} − 1 rows, k failures are allowed and the power P(Bin(n, expected) ≤ k)
        falls with n. So the answer is n_{k+1} for the last k whose power at n_{k+1} − 1 is too
        small. That lowest power is at least P(Bin(ν, expected) ≤ k) at the real number ν ≥ n_{k+1}
        − 1 with P(Bin(ν, most) ≤ k + 1) = δ, which grows with k: the first k where this suffices is
        found by halving, and then the counts before it are looked at downwards.
        """
        end = self._first(
            lambda k: betaincc(k + 1, self._turning(k + 1) - k, self.expected) >= power
        )
        failing, size = -1, 16
        while end > 0 and failing < 0:
            counts = np.arange(max(end - size, 0), end, dtype=float)
            lowest = binom.cdf(counts, self.first_rows(counts + 1) - 1, self.expected)
            failing = int(counts[lowest < power][-1]) if (lowest < power).any() else -1
            end, size = int(counts[0]), 2 * size
        return self._checked(self.first_rows(np.array(failing + 1.0)))

    def next_rows(self, n: int, power: float) -> int:
        """The fewest rows, more than n, that reach ``power``, where n do not; with a few more it
        may be lost again.

        It is reached at some n_k, where the power is at most that at the real number ν_k ≤ n_k,
        which grows with k.
        """
        start = self._first(
            lambda k: (
                betaincc(k + 1, np.maximum(self._turning(k) - 0.02 - k, 1e-9), self.expected)
                >= power
            )
        )
        start, size = max(start, int(self.allowed(n)) + 1), 16
        while True:
            rows = self.first_rows(np.arange(start, start + size, dtype=float))
            reached = self.power(rows) >= power
            if reached.any():
                return self._checked(rows[reached][0])
            start, size = start + size, 2 * size

    def _first(self, true: Callable[[Array], Any]) -> int:
        """The first count for which a condition is true that stays true from there on, by
        doubling and halving.
        """
        low, high = -1, 0
        while not true(np.array(float(high))):
            self._checked(self._turning(np.array(float(high))))
            low, high = high, 2 * high + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if true(np.array(float(middle))) else (middle, high)
        return high

    def _checked(self, rows: Array) -> int:
        if rows <= MOST_ROWS:
            return int(rows)
        claim = f"max_risk {self.most:g} when expected_risk is {self.expected:g}"
        if self.least is not None:
            claim = (
                f"min_sensitivity {self.least:g} when expected_sensitivity is {1 - self.expected:g}"
            )
        raise ValueError(
            f"more than {MOST_ROWS:,} rows are needed to certify {claim}: state a wider gap"
        )

    def _turning(self, k: Array) -> Array:
        """The real n with P(Bin(n, most) ≤ k) = δ, or up to 0.01 more: SciPy's, where it is that
        near; else by halving a bracket whose end is a Chernoff bound.
        """
        log = math.log(1 / self.delta)
        low, high = k, (k + log + np.sqrt(log**2 + 2 * k * log)) / self.most + 1
        n = k + btdtrib(k + 1, 1 - self.delta, self.most)
        before, after = np.maximum(n - 0.004, k), n + 0.004
        near = self._more_likely(k, before) & ~self._more_likely(k, after)
        low, high = np.where(near, before, low), np.where(near, after, high)
        while np.any(high - low > 0.01):
            middle = (low + high) / 2
            above = self._more_likely(k, middle)
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return high

    def _more_likely(self, k: Array, n: Array) -> npt.NDArray[np.bool_]:
        """Whether P(Bin(n, most) ≤ k) > δ at a real n."""
        return np.asarray(betaincc(k + 1, n - k, self.most) > self.delta)


def rows_needed(
    max_risk: float = 0.05,
    expected_risk: float = 0.0,
    *,
    delta: float = 0.05,
    candidates: int = 1,
    share: float = 0.5,
    power: float = 0.8,
) -> int:
    """The fewest held-back rows from which on errors of at most ``max_risk`` are certified with
    probability ``power``.

    Exact: the power is a sawtooth in the number of rows, and with the answer or any larger number
    it is at least ``power``.

    Parameters
    ----------
    max_risk : the error rate to certify, by `surelearn.bounds.clopper_pearson`
    expected_risk : the error rate that the model in truth has
    delta : failure probability of the whole certificate
    candidates : models compared by their errors *on these rows*; an audit compares on other rows,
        so there it is 1
    share : the claim's part of δ: half for an audit's headline, 1 for a certificate's only claim

    Examples
    --------
    >>> rows_needed(0.05), rows_needed(0.05, share=1.0)  # no error: ln 0.025 / ln 0.95 = 71.9, ln 0.05 / ln 0.95 = 58.4
    (72, 59)
    >>> rows_needed(0.05, 0.02)
    338
    """
    return risk_test(max_risk, expected_risk, check_level(delta, candidates, share)).rows(
        stated.fraction("power", power)
    )


def power(
    n: npt.ArrayLike,
    max_risk: float = 0.05,
    expected_risk: float = 0.0,
    *,
    delta: float = 0.05,
    candidates: int = 1,
    share: float = 0.5,
) -> Any:
    """The probability that n held-back rows certify errors of at most ``max_risk``; see
    `rows_needed`.

    Examples
    --------
    >>> power([71, 72])
    array([0., 1.])
    >>> round(power(338, 0.05, 0.02), 4)
    0.8561
    """
    chances = risk_test(max_risk, expected_risk, check_level(delta, candidates, share)).power(
        check_counts(n)
    )
    return chances.item() if chances.ndim == 0 else chances


def sensitivity_rows(
    min_sensitivity: float,
    expected_sensitivity: float = 1.0,
    *,
    delta: float = 0.05,
    candidates: int = 1,
    share: float = SHARES["sensitivity"],
    power: float = 0.8,
) -> int:
    """The fewest held-back *positive* rows from which on a sensitivity of ``min_sensitivity`` is
    certified.

    Any rate of successes, with `surelearn.bounds.clopper_pearson_lower`; otherwise as
    `rows_needed`.

    Examples
    --------
    >>> sensitivity_rows(0.9, share=1.0)  # ln 0.05 / ln 0.9 = 28.4
    29
    >>> sensitivity_rows(0.9, 0.95)
    400
    """
    test = sensitivity_test(
        min_sensitivity, expected_sensitivity, check_level(delta, candidates, share)
    )
    return test.rows(stated.fraction("power", power))


def rows_holding(positives: int, prevalence: float, power: float = 0.8) -> int:
    """The fewest rows that hold so many positives with probability ``power``, where a part
    ``prevalence`` is positive.

    Examples
    --------
    >>> rows_holding(1, 0.1)  # 0.9¹⁵ = 0.206, 0.9¹⁶ = 0.185
    16
    """
    prevalence, power = stated.fraction("prevalence", prevalence), stated.fraction("power", power)
    low, high = positives - 1, max(positives, 1)
    while binom.sf(positives - 1, high, prevalence) < power:
        low, high = high, 2 * high
        if low > MOST_ROWS:
            raise ValueError(
                f"prevalence {prevalence:g} is so small that more than {MOST_ROWS:,} rows are"
                " needed"
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (middle, high) if binom.sf(positives - 1, middle, prevalence) < power else (low, middle)
        )
    return high


def interval_rows(
    alpha: float = 0.1, *, delta: float = 0.05, candidates: int = 1, share: float = 0.5
) -> int:
    """The fewest held-back rows for a prediction interval that contains at least 1 − α of new
    targets.

    With n rows even the largest error seen covers too little with probability (1 − α)ⁿ, which must
    not exceed δ; with fewer rows `surelearn.bounds.conformal_rank_pac` is infinite.

    Examples
    --------
    >>> interval_rows(0.1), interval_rows(0.1, share=1.0)  # ln 0.025 / ln 0.9 = 35.01, ln 0.05 / ln 0.9 = 28.4
    (36, 29)
    """
    alpha, level = stated.fraction("interval", alpha), check_level(delta, candidates, share)
    near = math.ceil(math.log(level) / math.log1p(-alpha))
    if near > MOST_ROWS:
        raise ValueError(
            f"interval {alpha:g} is so small that more than {MOST_ROWS:,} rows are needed: state a"
            " larger one"
        )
    return next(
        (
            n
            for n in (near - 1, near)
            if n > 0 and math.isfinite(conformal_rank_pac(n, alpha, level))
        ),
        near + 1,
    )


def risk_test(max_risk: float, expected_risk: float, delta: float) -> RateTest:
    """The test of an error rate, checked."""
    most, expected = (
        stated.fraction("max_risk", max_risk),
        check_rate("expected_risk", expected_risk),
    )
    if expected >= most:
        raise ValueError(not_above("expected_risk", expected, "max_risk", most))
    return RateTest(most=most, expected=expected, delta=delta)


def sensitivity_test(min_sensitivity: float, expected_sensitivity: float, delta: float) -> RateTest:
    """The test of a sensitivity, checked."""
    least = stated.fraction("min_sensitivity", min_sensitivity)
    expected = check_rate("expected_sensitivity", expected_sensitivity)
    if expected <= least:
        raise ValueError(not_above("expected_sensitivity", expected, "min_sensitivity", least))
    return RateTest(most=1 - least, expected=1 - expected, delta=delta, least=least)
