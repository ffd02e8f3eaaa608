"""Votes of stumps: labellings counted one by one, the tail inverted in whole numbers."""

from __future__ import annotations

import math
from itertools import combinations, pairwise, product

import numpy as np
import pytest

from surelearn.bounds import hypergeometric_tail_inversion
from surelearn.bounds.boosting import boosting_tail_inversion, log_growth_of_stump_votes


def stump_labellings(X):
    """Every labelling of the rows by a stump or a constant, ±1, up to sign."""
    found = {(1,) * len(X)}
    for column in X.T:
        for a, b in pairwise(np.unique(column)):
            signs = np.where(column <= (a + b) / 2, 1, -1)
            found.add(tuple((signs * signs[0]).tolist()))
    return found


@pytest.mark.parametrize(("n", "d"), [(3, 1), (5, 1), (5, 2), (6, 3), (8, 2)])
def test_stumps_label_points_in_no_more_ways_than_said(n, d):
    X = np.random.default_rng(n).normal(size=(n, d))
    assert len(stump_labellings(X)) <= d * (n - 1) + 1
    if d == 1:
        assert len(stump_labellings(X)) == n


@pytest.mark.parametrize(
    ("n", "d", "rounds"),
    [(5, 1, 1), (5, 2, 1), (6, 1, 2), (6, 2, 2), (6, 2, 3), (7, 2, 3), (9, 1, 3)],
)
def test_votes_label_points_in_no_more_ways_than_said(n, d, rounds):
    X = np.random.default_rng(n).normal(size=(n, d))
    # all dichotomies of the cube's corners by ≤ 3 weights
    alphas = np.array(list(product(range(-3, 4), repeat=rounds)))
    found = set()
    for stumps in combinations(sorted(stump_labellings(X)), rounds):
        found |= {row.tobytes() for row in alphas @ np.array(stumps) > 0}
    assert len(found) <= math.exp(log_growth_of_stump_votes(n, rounds, d)) + 1e-6


@pytest.mark.parametrize(
    ("n", "rounds", "d"), [(600, 10, 12), (3000, 100, 12), (50, 3, 2), (8, 40, 3)]
)
def test_the_growth_function_in_whole_numbers(n, rounds, d):
    ways = d * (n - 1) + 1
    whole = math.comb(ways, min(rounds, ways)) * sum(
        math.comb(n, i) for i in range(min(rounds, n) + 1)
    )
    assert log_growth_of_stump_votes(n, rounds, d) == pytest.approx(
        min(math.log(whole), n * math.log(2)), rel=1e-9
    )


def test_it_is_smaller_than_the_growth_function_of_theorem_3_3():
    n, v = 3000, 6
    t = np.array([1, 10, 100])
    assert (
        log_growth_of_stump_votes(n, t, 12) < t * (1 + np.log(n / t) + v * (1 + np.log(n / v)))
    ).all()


@pytest.mark.parametrize(
    ("errors", "n", "rounds", "d", "ghost"),
    [(0, 40, 1, 1, 60), (3, 40, 2, 1, 60), (5, 60, 1, 3, 60)],
)
def test_the_tail_in_whole_numbers(errors, n, rounds, d, ghost):
    total = n + ghost
    growth = math.comb(d * (total - 1) + 1, rounds) * sum(
        math.comb(total, i) for i in range(rounds + 1)
    )

    def shows_few(marked):
        seen = sum(
            math.comb(marked, i) * math.comb(total - marked, n - i) for i in range(errors + 1)
        )
        return 4 * growth * seen * 20 >= math.comb(total, n)  # probability ≥ δ/(4Π), δ = 1/20

    most = max(marked for marked in range(errors, total + 1) if shows_few(marked))
    value = boosting_tail_inversion(errors, n, 0.05, rounds, d, ghost=ghost)
    assert value == pytest.approx(max(1, most - errors) / ghost)


def test_it_beats_the_vc_dimension_and_falls_with_rows():
    one = boosting_tail_inversion(100, 1000, 0.05, rounds=1, d=12)
    assert one <= hypergeometric_tail_inversion(100, 1000, 0.05, vc_dimension=6)
    values = boosting_tail_inversion([60, 600, 6000], [600, 6000, 60000], 0.05, rounds=20, d=12)
    assert (np.diff(values) < 0).all()
    assert (np.diff(boosting_tail_inversion(60, 600, 0.05, [1, 2, 5, 10, 20], 12)) > 0).all()


def test_refusals():
    with pytest.raises(ValueError, match="errors must not exceed n"):
        boosting_tail_inversion(11, 10, 0.05, 1, 1)
    with pytest.raises(ValueError, match="rounds must be at least 1"):
        boosting_tail_inversion(1, 10, 0.05, 0, 1)
