"""Bounds from counts and moments: by a second route, near their worst case, and when halved."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta, multinomial
from tests.bounds.test_coverage import halved, violations_at_most

from surelearn import bounds as b

DELTA, TRIALS = 0.05, 4_000


def slack(variance, n, delta):
    """Maurer and Pontil, Theorems 3 and 10, with nineteen twentieths of δ for the first."""
    first, second = math.log(1 / (0.95 * delta)), math.log(1 / (0.05 * delta))
    largest = math.sqrt(variance) + math.sqrt(2 * second / (n - 1))
    return largest * math.sqrt(2 * first / n) + first / (3 * n)


def test_moments_by_hand():
    mean, variance, n = 3.2, 0.7, 5_000
    span = 4.0
    by_hand = span * slack(variance / span**2, n, DELTA)
    assert b.moments_upper(mean, variance, n, DELTA, 1.0, 5.0) == pytest.approx(mean + by_hand)
    assert b.moments_lower(mean, variance, n, DELTA, 1.0, 5.0) == pytest.approx(mean - by_hand)
    gain = 0.3 - 8.0 * slack(variance / 64, n, DELTA)
    assert b.moments_gain(0.3, variance, n, DELTA, 4.0) == pytest.approx(gain)
    assert b.moments_lower(mean, 0.0, 1, DELTA, 1.0, 5.0) == 1.0
    assert b.moments_upper(mean, 0.0, 1, DELTA, 1.0, 5.0) == 5.0


@pytest.mark.parametrize("p", [0.5, 0.1, 0.02])
def test_moments_hold_where_losses_are_0_or_1(p):
    """Of given mean, these have the largest variance."""
    n = 2_000
    k = np.random.default_rng(0).binomial(n, p, TRIALS)
    mean, variance = k / n, k * (n - k) / n / (n - 1)
    upper, lower = (f(mean, variance, n, DELTA) for f in (b.moments_upper, b.moments_lower))
    assert violations_at_most(np.mean(p > upper), DELTA, TRIALS)
    assert violations_at_most(np.mean(p < lower), DELTA, TRIALS)
    if p == 0.5:  # elsewhere what does not fall with the spread is a larger part of the slack
        assert np.mean(p > halved(mean, upper)) > DELTA
        assert np.mean(p < halved(mean, lower)) > DELTA


def test_moments_hold_where_one_row_in_thousands_is_large():
    """The spread is then often seen as nothing: what Theorem 10 pays for."""
    n, p = 1_000, 1e-3
    k = np.random.default_rng(1).binomial(n, p, TRIALS)
    mean, variance = k / n, k * (n - k) / n / (n - 1)
    assert violations_at_most(np.mean(p > b.moments_upper(mean, variance, n, DELTA)), DELTA, TRIALS)
    plain = mean + np.sqrt(2 * variance * math.log(1 / DELTA) / n)  # without what pays for it
    assert np.mean(p > plain) > DELTA


def test_paired_moments_hold_and_break_when_halved():
    n, better, worse = 2_000, 0.25, 0.25
    k = np.random.default_rng(2).multinomial(n, [better, worse, 1 - better - worse], TRIALS)
    mean = (k[:, 0] - k[:, 1]) / n
    variance = (k[:, 0] + k[:, 1] - n * mean**2) / (n - 1)
    lower = b.moments_gain(mean, variance, n, DELTA, 1.0)
    assert violations_at_most(np.mean(lower > better - worse), DELTA, TRIALS)
    assert np.mean(halved(mean, lower) > better - worse) > DELTA


def test_paired_counts_by_beta_quantiles():
    lower = beta.ppf(DELTA / 2, 60, 1000 - 60 + 1) - beta.ppf(1 - DELTA / 2, 20 + 1, 1000 - 20)
    assert b.paired_counts(60, 20, 920, DELTA) == pytest.approx(lower, abs=1e-12)


@pytest.mark.parametrize("n", [10, 25])
def test_paired_counts_hold_exactly_for_every_outcome(n):
    """All outcomes are listed, over a grid of probabilities."""
    k = np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)])
    lower = b.paired_counts(*k.T, DELTA)
    most = most_halved = 0.0
    for p in np.linspace(0, 1, 21):
        for q in np.linspace(0, 1 - p, 21):
            mass = multinomial.pmf(k, n, [p, q, max(0.0, 1 - p - q)])
            most = max(most, mass[lower > p - q + 1e-12].sum())
            broken = halved((k[:, 0] - k[:, 1]) / n, lower) > p - q + 1e-12
            most_halved = max(most_halved, mass[broken].sum())
    assert most <= DELTA
    assert most_halved > DELTA


def test_paired_counts_in_simulation_where_both_are_frequent():
    n, p = 5_000, 0.2
    k = np.random.default_rng(3).multinomial(n, [p, p, 1 - 2 * p], TRIALS)
    lower = b.paired_counts(*k.T, DELTA)
    assert violations_at_most(np.mean(lower > 0), DELTA, TRIALS)
    assert np.mean(halved((k[:, 0] - k[:, 1]) / n, lower) > 0) > DELTA


def test_moments_of_sums_are_exact():
    from surelearn.data.block_sums import moments

    big = 10**9
    mean, variance = moments(big, Fraction(7 * big, 10), Fraction(49 * big, 100) + Fraction(1, 10))
    assert (mean, variance) == (0.7, pytest.approx(0.1 / (big - 1), rel=1e-15))
