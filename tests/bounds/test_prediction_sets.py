"""Coverage of prediction sets against exact fractions, the order statistics' beta law, and ties."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.stats import beta

from surelearn import bounds


def tail(n: int, p: Fraction, k: int) -> Fraction:
    """P(Bin(n, p) ≥ k), exactly."""
    return sum((comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1)), Fraction(0))


@pytest.mark.parametrize("alpha", [Fraction(1, 10), Fraction(1, 4), Fraction(3, 10)])
@pytest.mark.parametrize("n", [5, 22, 47])
def test_the_fewest_covered_rows_in_exact_fractions(n, alpha):
    delta = Fraction(1, 20)
    enough = [k for k in range(n + 1) if tail(n, 1 - alpha, k) <= delta]
    sure = [float(bounds.conformal_coverage(k, n, float(alpha), 0.05)) for k in range(n + 1)]
    assert [k for k in range(n + 1) if sure[k] > 0] == enough
    assert {value for value in sure if value} <= {float(1 - alpha)}


@pytest.mark.parametrize(("n", "alpha", "delta"), [(171, 0.1, 0.05), (400, 0.05, 0.01)])
def test_the_rank_by_the_beta_law_of_order_statistics(n, alpha, delta):
    """The share below the k-th of n continuous scores is Beta(k, n − k + 1)."""
    least = next(k for k in range(1, n + 1) if beta.cdf(1 - alpha, k, n - k + 1) <= delta)
    assert bounds.conformal_coverage(least, n, alpha, delta) == 1 - alpha
    assert bounds.conformal_coverage(least - 1, n, alpha, delta) == 0.0


def test_too_few_rows_cover_nothing():
    assert bounds.conformal_coverage(28, 28, 0.1, 0.05) == 0.0
    assert bounds.conformal_coverage(29, 29, 0.1, 0.05) == 0.9
    assert bounds.conformal_coverage(29, 29, 0.3, 0.05) == 0.7  # and not 0.7 with a rounding error


def test_ties_only_help():
    """Scores of few values: the k-th covers all that are equal to it."""
    rng, n, alpha, delta = np.random.default_rng(0), 60, 0.2, 0.2
    share = np.array([0.5, 0.29, 0.21])  # the first two cover 79%: just too few
    rank, wrong, trials = int(bounds.conformal_rank_pac(n, alpha, delta)), 0, 2000
    for _ in range(trials):
        cut = np.sort(rng.choice(3, n, p=share))[rank - 1]
        wrong += share[: cut + 1].sum() < 1 - alpha
    assert wrong / trials <= delta + 4 * np.sqrt(delta * (1 - delta) / trials)
    assert wrong > 0


@pytest.mark.parametrize(
    ("covered", "n", "alpha", "said"),
    [(30, 29, 0.1, "covered"), (0, 0, 0.1, "n"), (5, 9, 1.0, "alpha"), (-1, 9, 0.1, "covered")],
)
def test_impossible_counts_are_refused(covered, n, alpha, said):
    with pytest.raises(ValueError, match=rf"\b{said}\b"):
        bounds.conformal_coverage(covered, n, alpha, 0.05)
