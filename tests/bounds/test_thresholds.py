"""Walks along fixed thresholds, and bands that hold at every threshold: against independent numbers,
near their worst cases, and their wrong uses.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.stats import binom, ksone
from tests.simulation import at_most, more_than

from surelearn import bounds as b
from surelearn.bounds import thresholds as t

DELTA = 0.1


@pytest.mark.parametrize("n", [5, 40, 400])
@pytest.mark.parametrize("delta", [0.001, 0.05, 0.5])
def test_the_band_holds_as_often_as_smirnovs_exact_distribution_says(n, delta):
    slack = b.dkw_distance(n, delta)
    broken = ksone.sf(slack, n)
    assert broken <= delta * (1 + 1e-12)
    if n == 400:
        assert broken >= 0.8 * delta
    assert ksone.sf(slack / 2, n) > delta


def test_the_band_is_the_formula_of_massart():
    with mpmath.workdps(40):
        exact = mpmath.sqrt(mpmath.log(1 / mpmath.mpf("0.0125")) / (2 * 173))
    assert b.dkw_distance(173, 0.0125) == pytest.approx(float(exact), rel=1e-14)
    assert b.dkw_lower(150, 173, 0.0125) == pytest.approx(150 / 173 - float(exact), rel=1e-14)
    assert b.dkw_lower(1, 173, 0.0125) == 0.0
    assert b.dkw_distance(1, 1e-9) == 1.0


def test_above_one_half_the_band_is_that_of_one_half():
    """The one-sided inequality with constant 1 was proved by Massart for e^(−2nε²) ≤ 1/2 only."""
    assert b.dkw_distance(50, 0.9) == b.dkw_distance(50, 0.5) == math.sqrt(math.log(2) / 100)


def test_the_band_holds_at_the_threshold_that_looks_best():
    rng, n, trials = np.random.default_rng(1), 100, 4000
    scores = np.sort(rng.random((trials, n)), axis=1)
    found = np.arange(n, 0, -1) / n  # the share of scores from each one on; in truth 1 − score
    above = (found - (1 - scores)).max(axis=1)
    slack = b.dkw_distance(n, DELTA)
    assert at_most(int((above > slack).sum()), DELTA, trials)
    assert more_than(int((above > slack / 2).sum()), DELTA, trials)
    naive = b.clopper_pearson_lower(np.arange(n, 0, -1), n, DELTA)
    assert more_than(int((naive > 1 - scores).any(axis=1).sum()), DELTA, trials)


@pytest.mark.parametrize(("n", "level", "delta"), [(299, 0.99, 0.05), (59, 0.95, 0.05)])
def test_as_many_rows_without_an_error_are_enough_and_one_fewer_is_not(n, level, delta):
    assert t.sure_rows(level, delta) == n
    assert b.fixed_sequence_lower([n], [n], level, 0, delta) == level
    assert b.fixed_sequence_lower([n - 1], [n - 1], level, 0, delta) < level
    assert b.fixed_sequence_upper([0], [n], 1 - level + 1e-12, 0, delta) == 1 - level + 1e-12
    assert b.fixed_sequence_upper([0], [n - 1], 1 - level, 0, delta) > 1 - level


@pytest.mark.parametrize("n", [60, 200, 1000])
def test_a_step_passes_as_often_as_its_binomial_tail_says(n):
    """Just below the level: the first step, and so any claim of the walk, is wrong this often."""
    level, k = 0.9, np.arange(n + 1)
    passed = t.passes_lower(k, np.full(n + 1, n), level, DELTA)
    wrong = binom.pmf(k, n, level)[passed].sum()
    assert DELTA / 3 <= wrong <= DELTA
    twice = t.passes_lower(k, np.full(n + 1, n), level, 2.5 * DELTA)
    assert binom.pmf(k, n, level)[twice].sum() > DELTA


def test_a_walk_stops_at_the_first_failure_and_an_empty_step_fails():
    assert b.fixed_sequence_upper([0, 30, 0], [100, 100, 100], 0.05, 0, DELTA) == 0.05
    assert b.fixed_sequence_upper([0, 30, 0], [100, 100, 100], 0.05, 1, DELTA) == 1.0
    assert b.fixed_sequence_upper([0, 30, 0], [100, 100, 100], 0.05, 2, DELTA) == 1.0
    assert b.fixed_sequence_upper([0, 0, 0], [100, 0, 100], 0.05, 2, DELTA) == 1.0
    assert b.fixed_sequence_upper([0, 0], [0, 100], 0.05, 0, DELTA) == 1.0
    assert b.fixed_sequence_lower([0, 100], [0, 100], 0.9, 0, DELTA) == 0.0
    assert b.fixed_sequence_lower([100, 0, 100], [100, 0, 100], 0.9, 2, DELTA) == 0.0


def test_where_the_first_step_fails_its_own_bound_is_the_value():
    lower = b.fixed_sequence_lower([80, 100], [100, 100], 0.9, 0, DELTA)
    assert lower == b.clopper_pearson_lower(80, 100, DELTA) < 0.9
    upper = b.fixed_sequence_upper([9, 0], [100, 100], 0.05, 0, DELTA)
    assert upper == b.clopper_pearson(9, 100, DELTA) > 0.05
    losses = [0.5] * 40
    mean = b.fixed_sequence_mean(losses, 40, 0.3, 0, DELTA)
    assert mean == b.betting_upper(losses, DELTA) > 0.3
    assert b.fixed_sequence_mean(losses * 2, 40, 0.3, 1, DELTA) == 1.0  # never reached


def walked(errors, sizes, level, delta):
    """(trials,) the step where each walk ends; −1 where the first one fails."""
    passed = t.passes_upper(errors, sizes, level, delta)
    return passed, np.where(passed.all(axis=-1), passed.shape[-1], passed.argmin(axis=-1)) - 1


def growing(rng, trials, sizes, rate):
    """(trials, J) errors among the rows answered at each threshold, each a part of the next."""
    steps = np.diff(sizes, prepend=0)
    return np.cumsum(rng.binomial(steps, rate, size=(trials, sizes.size)), axis=1)


SIZES = np.array([90, 130, 190, 280, 410, 600, 880, 1290, 1900, 2800])


def test_a_walk_holds_and_restarts_or_walking_on_past_a_failure_does_not():
    """Errors are just above the level at every threshold, so that every promise is untrue."""
    rng, level, trials = np.random.default_rng(2), 0.05, 3000
    errors = growing(rng, trials, SIZES, level * (1 + 1e-9))
    passed, last = walked(errors, SIZES, level, DELTA)
    assert at_most(int((last >= 0).sum()), DELTA, trials)
    first = t.passes_upper(errors[:, 5:], SIZES[5:], level, DELTA)[:, 0]  # a first step near δ
    assert at_most(int(first.sum()), DELTA, trials)
    assert more_than(int(first.sum()), DELTA / 2, trials)
    assert more_than(int(passed.any(axis=1).sum()), DELTA, trials)  # a restart, or walking on


def test_a_walk_into_a_worse_part_is_wrong_no_more_often_than_delta():
    """Good steps first; the first bad one is just above the level, the next ones are worse."""
    rng, level, trials = np.random.default_rng(3), 0.05, 3000
    good = growing(rng, trials, SIZES[:4], 0.01)
    rates = np.array([0.05 * SIZES[4] - 0.01 * SIZES[3], 60.0, 120.0]) / np.diff(SIZES[3:7])
    worse = np.cumsum(rng.binomial(np.diff(SIZES[3:7]), rates, (trials, 3)), axis=1) + good[:, -1:]
    errors = np.hstack([good, worse])
    truth = np.append(np.full(4, 0.01), (0.01 * SIZES[3] + np.cumsum(rates * np.diff(SIZES[3:7]))) / SIZES[4:7])  # fmt: skip
    assert truth[4] == pytest.approx(level)
    truth[4] += 1e-9
    _, last = walked(errors, SIZES[:7], level, DELTA)
    broken = int((truth[np.maximum(last, 0)] > level)[last >= 0].sum())
    assert at_most(broken, DELTA, trials)
    assert more_than(broken, DELTA / 3, trials)
    assert (last >= 3).mean() > 0.7  # it goes as far as it may


def test_a_mutant_that_takes_an_empty_step_for_passed_starts_anywhere():
    """An empty first step that passes gives the walk a second start."""
    rng, level, trials = np.random.default_rng(4), 0.05, 2000
    sizes = np.array([0, 0, 60])
    errors = growing(rng, trials, sizes, 0.2)
    _, last = walked(errors, sizes, level, DELTA)
    assert (last == -1).all()
    careless = np.asarray(b.clopper_pearson(errors, np.maximum(sizes, 1), DELTA)) <= level
    careless |= sizes == 0
    assert careless[:, 0].all()  # 20% of errors, and "at most 5%" is said


def test_a_betting_walk_holds():
    rng, level, n, trials = np.random.default_rng(5), 0.3, 60, 400
    losses = (rng.random((trials, 2, n)) < level + 1e-9).astype(float)
    broken = sum(t.steps_passed_mean(one, level, DELTA, 1.0) > 0 for one in losses)
    assert at_most(broken, DELTA, trials)
    naive = sum(one[0].mean() + (b.betting_upper(one[0], DELTA) - one[0].mean()) / 2 <= level for one in losses)  # fmt: skip
    assert more_than(naive, DELTA, trials)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (([1], [1, 2], 0.9, 0, 0.05), "same length"),
        (([3], [2], 0.9, 0, 0.05), "counts must not exceed sizes"),
        (([1], [2], 0.9, 1, 0.05), "step must be below 1"),
        (([1], [2], 1.5, 0, 0.05), "level"),
    ],
)
def test_bad_steps_are_refused_by_name(inputs, said):
    for theorem in (b.fixed_sequence_lower, b.fixed_sequence_upper):
        with pytest.raises(ValueError, match=said):
            theorem(*inputs)


def test_bad_losses_are_refused_by_name():
    with pytest.raises(ValueError, match="n numbers per step"):
        b.fixed_sequence_mean([0.1] * 5, 2, 0.1, 0, 0.05)
    with pytest.raises(ValueError, match="successes must not exceed n"):
        b.dkw_lower(3, 2, 0.05)
