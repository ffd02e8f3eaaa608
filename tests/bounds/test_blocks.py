"""Bounds from blocks of rows: by a second route, near their worst case, when halved, and where the
order of rows is no accident.
"""

import math
from itertools import pairwise

import numpy as np
import pytest
from tests.bounds.test_coverage import halved, violations_at_most

from surelearn import bounds as b
from surelearn.bounds import blocks
from surelearn.data.block_sums import block_end

DELTA, TRIALS = 0.05, 600


def cut(x):
    """Sizes, means and variances of the blocks of a sample."""
    ends = [0]
    while ends[-1] < x.size:
        ends.append(min(block_end(ends[-1]), x.size))
    parts = [x[i:j] for i, j in pairwise(ends)]
    return [p.size for p in parts], [p.mean() for p in parts], [p.var() for p in parts]


def row_by_row(x, delta):
    """The same gambler, without sums: every mean on a grid is bet against on every row, by the
    inequality itself, and the capital is looked at after each block.
    """
    wanted, n, past = math.log(1 / (0.99 * delta)), x.size, [0.5 - 0.5, 0.5 + 0.5]
    grid = np.linspace(0, 1, 4001)
    capital, refuted, weight = np.zeros(grid.size), np.zeros(grid.size, dtype=bool), [0.5, 0.5]
    start = 0
    while start < n:
        end = min(block_end(start), n)
        mean = np.average(past, weights=weight)
        spread = np.average((np.array(past) - mean) ** 2, weights=weight)
        risked = min(0.75, math.sqrt(2 * wanted / (spread * n)) * mean)
        bet, kappa = risked / mean, (-math.log(1 - risked) - risked) / risked**2
        for one in x[start:end]:
            y = bet * (one - mean)
            assert 1 + y >= math.exp(y - kappa * y * y) - 1e-12
            capital += bet * (one - grid) - kappa * y * y
            past.append(one)
            weight.append(1.0)
        refuted |= capital >= wanted
        start = end
    return grid[refuted].max() if refuted.any() else 0.0


@pytest.mark.parametrize("seed", range(3))
def test_as_the_gambler_who_bets_row_by_row_against_a_grid_of_means(seed):
    x = np.random.default_rng(seed).beta(6, 2, 700)
    lower = b.block_mean_lower(*cut(x), DELTA)
    assert row_by_row(x, DELTA) <= lower + 1e-9
    assert lower < row_by_row(x, DELTA) + 1 / 4000 + 1e-9


def test_scales_and_the_other_side():
    x = np.random.default_rng(0).beta(6, 2, 3_000)
    n, mean, variance = map(np.array, cut(x))
    lower = b.block_mean_lower(n, mean, variance, DELTA)
    assert b.block_mean_upper(n, 1 - mean, variance, DELTA) == pytest.approx(1 - lower)
    scaled = b.block_mean_lower(n, 2 + 3 * mean, 9 * variance, DELTA, 2.0, 5.0)
    assert scaled == pytest.approx(2 + 3 * lower)
    gain = b.block_gain(n, 2 * mean - 1, 4 * variance, DELTA, 1.0)
    assert gain == pytest.approx(2 * lower - 1)
    assert b.block_mean_lower([1], [0.3], [0.0], DELTA) == 0.0
    with pytest.raises(ValueError, match="no rows"):
        b.block_mean_lower([0], [0.0], [0.0], DELTA)


@pytest.mark.parametrize("p", [0.5, 0.9, 0.1, 0.01])
def test_holds_where_losses_are_0_or_1_and_breaks_when_halved(p):
    rng, wrong, broken = np.random.default_rng(0), 0, 0
    for _ in range(TRIALS):
        x = (rng.random(2_000) < p).astype(float)
        lower = b.block_mean_lower(*cut(x), DELTA)
        wrong += lower > p
        broken += halved(x.mean(), lower) > p
    assert violations_at_most(wrong / TRIALS, DELTA, TRIALS)
    assert broken / TRIALS > DELTA or p < 0.1


def test_a_mutant_whose_bets_are_chosen_at_every_look_is_seen():
    """Bets are fixed before their block, for the number of rows that there are in the end. Chosen
    again for each look, as if it were the last, the largest of the bounds is often too large.
    """
    rng, n, wrong, mutant = np.random.default_rng(1), 4_000, 0, 0
    for _ in range(TRIALS):
        x = (rng.random(n) < 0.5).astype(float)
        sizes, means, variances = map(np.array, cut(x))
        wrong += b.block_mean_lower(sizes, means, variances, DELTA) > 0.5
        rows, sums = np.cumsum(sizes), np.cumsum(sizes * means)
        looks = sums / rows - 0.5 * np.sqrt(2 * math.log(1 / DELTA) / rows)
        mutant += looks.max() > 0.5
    assert violations_at_most(wrong / TRIALS, DELTA, TRIALS)
    assert mutant / TRIALS > DELTA


@pytest.mark.parametrize("reverse", [False, True])
def test_sorted_rows_are_not_bet_on(reverse, monkeypatch):
    rng, wrong, mutant = np.random.default_rng(2), 0, 0
    for _ in range(60):
        x = np.sort(rng.random(2_000))[:: -1 if reverse else 1]
        found = cut(x)
        assert blocks.order_matters(*found, DELTA)
        lower = b.block_mean_lower(*found, DELTA)
        variance = x.var(ddof=1)
        assert lower == pytest.approx(b.moments_lower(x.mean(), variance, x.size, DELTA), rel=1e-9)
        wrong += lower > 0.5
        with monkeypatch.context() as patched:
            patched.setattr(blocks, "_order_matters", lambda *given: False)  # noqa: ARG005
            mutant += b.block_mean_lower(*found, DELTA) > 0.5
    assert wrong <= 3 + 6
    assert (mutant == 60) == reverse  # large numbers first refute any mean


def test_rows_in_no_order_are_seldom_taken_for_sorted():
    rng = np.random.default_rng(3)
    assert not any(blocks.order_matters(*cut(rng.random(3_000)), DELTA) for _ in range(400))


@pytest.mark.parametrize(("n", "least"), [(200, 1.5), (10_000, 1.2), (200_000, 1.08)])
def test_narrower_than_moments(n, least):
    """How many times as large the slack of moments is, for uniform losses."""
    rng, ratios = np.random.default_rng(4), []
    for _ in range(12):
        x = rng.random(n)
        ours = x.mean() - b.block_mean_lower(*cut(x), DELTA)
        ratios.append((x.mean() - b.moments_lower(x.mean(), x.var(ddof=1), n, DELTA)) / ours)
    assert np.mean(ratios) > least
