"""Bounds from blocks of rows: by a second route, near their worst case, when halved, and where rows
are sorted.
"""

import math

import numpy as np
import pytest
from tests.bounds.test_coverage import halved, violations_at_most

from surelearn import bounds as b
from surelearn.data.block_sums import blocks_of

DELTA, TRIALS = 0.05, 600


def parts_of(x):
    """The blocks of a sample, each with its rows."""
    at = blocks_of(0, x.size)
    return [x[at == block] for block in np.unique(at)]


def cut(x):
    """Sizes, means and variances of the blocks of a sample."""
    parts = parts_of(x)
    return [p.size for p in parts], [p.mean() for p in parts], [p.var() for p in parts]


def row_by_row(x, delta):
    """The same gambler, without sums: every mean on a grid is bet against on every row, by the
    inequality itself, and the capital is looked at after each block.
    """
    wanted, n, past = math.log(1 / delta), x.size, [0.5 - 0.5, 0.5 + 0.5]
    grid = np.linspace(0, 1, 4001)
    capital, refuted, weight = np.zeros(grid.size), np.zeros(grid.size, dtype=bool), [0.5, 0.5]
    for part in parts_of(x):
        mean = np.average(past, weights=weight)
        spread = np.average((np.array(past) - mean) ** 2, weights=weight)
        risked = min(0.75, math.sqrt(2 * wanted / (spread * n)) * mean)
        bet, kappa = risked / mean, (-math.log(1 - risked) - risked) / risked**2
        for one in part:
            y = bet * (one - mean)
            assert 1 + y >= math.exp(y - kappa * y * y) - 1e-12
            capital += bet * (one - grid) - kappa * y * y
            past.append(one)
            weight.append(1.0)
        refuted |= capital >= wanted
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


def runs(x, parts):
    """The numbers with the largest first, in each of so many parts of equal means."""
    return np.concatenate([-np.sort(-part) for part in np.array_split(x, parts)])


@pytest.mark.parametrize("parts", [1, 8, 64])
def test_however_a_file_is_sorted_its_blocks_do_not_tell(parts):
    """The mutant cuts blocks of neighboring rows, as the file has them."""
    rng, wrong, mutant, trials = np.random.default_rng(2), 0, 0, 300
    for _ in range(trials):
        x = runs(rng.random(4_000), parts)
        wrong += b.block_mean_lower(*cut(x), DELTA) > 0.5
        blocks = np.split(x, np.cumsum(np.sort(np.bincount(blocks_of(0, x.size))))[:-1])
        blocks = [part for part in blocks if part.size]
        sums = [[getattr(p, what)() for p in blocks] for what in ("mean", "var")]
        mutant += b.block_mean_lower([p.size for p in blocks], *sums, DELTA) > 0.5
    assert violations_at_most(wrong / trials, DELTA, trials)
    assert mutant == trials or parts == 64


def test_files_that_are_sorted_alike_have_blocks_of_their_own():
    """The mutant draws the same blocks for all: what happened to the first rows happens to each file."""
    rng, delta, trials, wrong, mutant = np.random.default_rng(5), 0.15, 300, 0, 0
    unlucky = 7_696_581_394_439  # one of 25 that were tried
    for trial in range(trials):
        x = -np.sort(-(rng.random(1_500) < 0.9).astype(float))
        for seed in (1 + trial * 2**40, unlucky):
            at = blocks_of(0, x.size, seed)
            parts = [x[at == block] for block in np.unique(at)]
            sums = [[getattr(p, what)() for p in parts] for what in ("mean", "var")]
            over = b.block_mean_lower([p.size for p in parts], *sums, delta) > 0.9
            wrong, mutant = wrong + (over and seed != unlucky), mutant + (over and seed == unlucky)
    assert violations_at_most(wrong / trials, delta, trials)
    assert not violations_at_most(mutant / trials, delta, trials)


def test_blocks_are_drawn_by_positions_and_few():
    whole = blocks_of(0, 100_000)
    np.testing.assert_array_equal(whole[777:9_000], blocks_of(777, 9_000 - 777))
    sizes = np.bincount(whole, minlength=256)[::-1]
    wanted = 100_000 / 9 * (8 / 9) ** np.arange(256)
    assert np.all(np.abs(sizes - wanted) < 5 * np.sqrt(wanted) + 5)
    assert np.count_nonzero(sizes) < 130
    late = blocks_of(10**12, 90_000)  # positions of any size
    assert abs(np.mean(late == 255) - 1 / 9) < 0.006
    assert abs(np.corrcoef(whole[1:], whole[:-1])[0, 1]) < 0.02


@pytest.mark.parametrize(("n", "least"), [(200, 1.5), (10_000, 1.2), (200_000, 1.08)])
def test_narrower_than_moments(n, least):
    """How many times as large the slack of moments is, for uniform losses."""
    rng, ratios = np.random.default_rng(4), []
    for _ in range(12):
        x = rng.random(n)
        ours = x.mean() - b.block_mean_lower(*cut(x), DELTA)
        ratios.append((x.mean() - b.moments_lower(x.mean(), x.var(ddof=1), n, DELTA)) / ours)
    assert np.mean(ratios) > least
