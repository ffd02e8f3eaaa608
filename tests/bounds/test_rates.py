"""F1, balanced accuracy, AUC and differences of rates: against exact sums and brute force, and by
simulation near their worst case.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import beta, binom
from tests.simulation import at_most, more_than

from surelearn.bounds import (
    auc_lower,
    balanced_accuracy_lower,
    clopper_pearson,
    clopper_pearson_interval,
    clopper_pearson_lower,
    f1_lower,
    rate_difference,
)
from surelearn.measurement import area_under_curve


def kl(a: float, b: float) -> float:
    return sum(p * math.log(p / q) for p, q in ((a, b), (1 - a, 1 - b)) if p > 0)


@pytest.mark.parametrize(
    ("auc", "m", "delta"), [(0.95, 60, 0.05), (0.7, 400, 0.01), (1.0, 30, 0.1)]
)
def test_auc_is_where_the_divergence_is_spent(auc, m, delta):
    low = auc_lower(auc, m, 3 * m, delta)
    assert auc_lower(auc, 3 * m, m, delta) == low
    assert kl(auc, low) == pytest.approx(math.log(1 / delta) / m, rel=1e-6)
    # Pinsker: never below the and Hoeffding's form
    assert low >= auc - math.sqrt(math.log(1 / delta) / (2 * m))


def test_auc_without_a_class_or_below_chance_says_nothing():
    assert auc_lower(0.9, 0, 50, 0.05) == 0
    claim = auc_lower.certify(0.5, 60, 60, 0.05)
    assert claim.vacuous
    assert not auc_lower.certify(0.95, 60, 60, 0.05).vacuous


def test_area_under_curve_is_scikit_learns():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    for size in (5, 50, 500):
        score, positive = rng.integers(0, 20, size) / 20, rng.random(size) < 0.3
        positive[:2] = [True, False]
        expected = roc_auc_score(positive, score)
        assert area_under_curve(score, positive) == pytest.approx(expected, abs=1e-12)
    assert area_under_curve(np.ones(3), np.ones(3, dtype=bool)) == 0.5


def test_auc_holds_in_its_worst_case_and_halving_its_slack_breaks_it():
    """Positive scores are above all negative ones or below: the U-statistic is then the mean of as
    many independent coins as there are positive rows. Exactly, by binomial probabilities.
    """
    m, delta = 40, 0.1
    measured = np.arange(m + 1) / m
    low = np.array([auc_lower(value, m, 10 * m, delta) for value in measured])
    truths = np.linspace(0.55, 0.95, 81)
    mass = binom.pmf(np.arange(m + 1)[:, None], m, truths)  # (counts, truths)
    broken = (mass * (low[:, None] > truths)).sum(axis=0)
    assert 0.3 * delta < broken.max() <= delta
    halved = (mass * (((measured + low) / 2)[:, None] > truths)).sum(axis=0)
    assert halved.max() > delta


def test_auc_holds_for_overlapping_scores():
    """Normal scores: every pair counts, and pairs share rows."""
    rng, delta, trials, broken, naive = np.random.default_rng(1), 0.2, 2000, 0, 0
    truth = 0.7602499389  # Φ(1/√2)
    for _ in range(trials):
        score = np.concatenate([rng.normal(1, 1, 15), rng.normal(0, 1, 25)])
        positive = np.arange(40) < 15
        value = area_under_curve(score, positive)
        broken += auc_lower(value, 15, 25, delta) > truth
        # a mutant: every pair as if it were independent of the others
        naive += auc_lower(value, 15 * 25, 15 * 25, delta) > truth
    assert at_most(broken, delta, trials)
    assert more_than(naive, delta, trials)


@pytest.mark.parametrize(("hits", "n"), [(0, 0), (0, 20), (17, 20), (20, 20)])
def test_f1_is_a_function_of_one_binomial_bound(hits, n):
    share = beta.ppf(0.05, hits, n - hits + 1) if hits else 0.0
    assert f1_lower(hits, n, 0.05) == pytest.approx(2 * share / (1 + share), abs=1e-12)
    claim = f1_lower.certify(hits, n, 0.05)
    # 2TP/(2TP + FP + FN)
    assert claim.measured == (None if n == 0 else pytest.approx(2 * hits / (2 * hits + n - hits)))


def test_f1_holds_nearly_as_often_as_it_says():
    """The probabilities of a true positive, a false positive and a miss; other rows do not count."""
    rng, delta, trials = np.random.default_rng(2), 0.1, 4000
    counts = rng.multinomial(120, [0.2, 0.05, 0.03, 0.72], size=trials)
    hits, n = counts[:, 0], counts[:, :3].sum(axis=1)
    truth = 2 * 0.2 / (2 * 0.2 + 0.08)
    broken = int((f1_lower(hits, n, delta) > truth).sum())
    assert at_most(broken, delta, trials)
    assert broken > trials * delta / 2
    # a mutant: all rows as the sample size
    assert more_than(
        int((f1_lower(np.round(hits / n * 120), 120, delta) > truth).sum()), delta, trials
    )


def test_balanced_accuracy_is_the_mean_of_the_classes_bounds():
    errors, sizes = [5, 0, 9], [50, 3, 60]
    expected = 1 - np.mean(
        [clopper_pearson(e, n, 0.05 / 3) for e, n in zip(errors, sizes, strict=True)]
    )
    assert balanced_accuracy_lower(errors, sizes, 0.05) == pytest.approx(expected, abs=1e-14)
    assert balanced_accuracy_lower([0, 0], [40, 0], 0.05) < 0.5  # nothing is known of the second


def test_balanced_accuracy_holds_and_without_a_union_it_does_not():
    """Exactly: one class is never wrong, so the other decides."""
    n, delta, p = 30, 0.1, 0.2
    mass = binom.pmf(np.arange(n + 1), n, p)
    sure = np.array([balanced_accuracy_lower([k, 0], [n, 10**9], delta) for k in range(n + 1)])
    assert 0 < mass[sure > 1 - p / 2].sum() <= delta / 2
    alone = np.array([1 - clopper_pearson(k, n, 2.5 * delta) / 2 for k in range(n + 1)])
    assert mass[alone > 1 - p / 2].sum() > delta


def test_the_largest_difference_by_brute_force():
    counts, sizes, delta = [5, 40, 2], [50, 60, 40], 0.05
    each = [clopper_pearson_interval(c, n, delta / 3) for c, n in zip(counts, sizes, strict=True)]
    pairs = list(itertools.permutations(each, 2))
    low, high = rate_difference(counts, sizes, delta)
    assert high == pytest.approx(max(a[1] - b[0] for a, b in pairs), abs=1e-12)
    assert low == pytest.approx(max(a[0] - b[1] for a, b in pairs), abs=1e-12)
    assert rate_difference([3, 3], [30, 30], delta)[0] == 0
    assert rate_difference([3, 0], [30, 0], delta)[1] == pytest.approx(
        1 - clopper_pearson_lower(3, 30, delta / 4)
    )
    with pytest.raises(ValueError, match="counts must not exceed sizes"):
        rate_difference([4, 3], [3, 3], delta)
    with pytest.raises(ValueError, match="at least 2 numbers"):
        rate_difference([4], [30], delta)


def test_differences_hold_and_their_measured_values_do_not():
    """Of equal rates the largest measured difference is never 0; the interval has it."""
    rng, delta, trials, broken, apart = np.random.default_rng(4), 0.2, 1000, 0, 0
    for _ in range(trials):
        counts = rng.binomial(25, 0.4, size=4)
        low, high = rate_difference(counts, [25] * 4, delta)
        broken += low > 0
        apart += np.ptp(counts) > 0
        assert 0 <= low <= high <= 1
    assert at_most(broken, delta, trials)
    assert apart > 0.9 * trials
