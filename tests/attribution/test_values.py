"""Known games exactly, the axioms, and every definition of a value beside the others."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelearn.attribution import (
    banzhaf,
    beta_shapley,
    leave_one_out,
    probabilistic_value,
    random_order,
    shapley,
)
from surelearn.attribution.coalitions import masks_of
from surelearn.attribution.weights import banzhaf_weights, beta_shapley_weights, shapley_weights

VALUES = {
    "shapley": shapley,
    "banzhaf": banzhaf,
    "beta": lambda u, n, **o: beta_shapley(u, n, 3, 2, **o),
}


def gloves(S):
    return int(0 in S and len(S) > 1)


def voting(quota, votes):
    return lambda S: int(sum(votes[i] for i in S) >= quota)


def table_game(table):
    return lambda S: table[sum(1 << i for i in S)]


def by_definition(u, n, p):
    players = range(n)
    others = [
        [S for r in range(n) for S in itertools.combinations([j for j in players if j != i], r)]
        for i in players
    ]
    return [sum(p[len(S)] * (u(tuple(sorted((*S, i)))) - u(S)) for S in others[i]) for i in players]


def test_gloves():
    assert shapley(gloves, 3).values.tolist() == [Fraction(2, 3), Fraction(1, 6), Fraction(1, 6)]
    assert banzhaf(gloves, 3).values.tolist() == [Fraction(3, 4), Fraction(1, 4), Fraction(1, 4)]
    assert leave_one_out(gloves, 3).values.tolist() == [1, 0, 0]
    assert shapley(gloves, 3).calls == 8


def test_voting_games_in_rationals():
    # United Nations security council, 5 with a veto and 10 others, 9 votes needed: L. S. Shapley
    # and M. Shubik (1954).
    council = voting(39, [7] * 5 + [1] * 10)
    made = shapley(council, 15)
    assert made.values[0] == Fraction(421, 2145)
    assert made.values[-1] == Fraction(4, 2145)
    assert sum(made.values) == 1
    # The European Economic Community of 1958: Luxembourg's vote never decided.
    six = voting(12, [4, 4, 4, 2, 2, 1])
    assert shapley(six, 6).values.tolist() == [Fraction(14, 60)] * 3 + [Fraction(9, 60)] * 2 + [0]
    assert banzhaf(six, 6).values.tolist() == [Fraction(5, 16)] * 3 + [Fraction(3, 16)] * 2 + [0]


def test_airport_game():
    # S. C. Littlechild and G. Owen (1973): each step of the runway is shared by those who need it.
    cost = [Fraction(1), Fraction(2), Fraction(5, 2)]
    made = shapley(lambda S: max((cost[i] for i in S), default=Fraction(0)), 3)
    assert made.values.tolist() == [
        Fraction(1, 3),
        Fraction(1, 3) + Fraction(1, 2),
        Fraction(1, 3) + Fraction(1, 2) + Fraction(1, 2),
    ]


@pytest.mark.parametrize("n", [1, 2, 5])
def test_values_are_their_definition(n):
    table = np.random.default_rng(n).integers(-9, 9, 2**n).tolist()
    u = table_game(table)
    for made, weights in (
        (shapley(u, n), shapley_weights(n)),
        (banzhaf(u, n), banzhaf_weights(n)),
        (beta_shapley(u, n, 4, 2), beta_shapley_weights(n, 4, 2)),
    ):
        assert weights.exact is not None
        p = weights.exact()
        assert sum(math.comb(n - 1, s) * w for s, w in enumerate(p)) == 1
        np.testing.assert_allclose(
            weights.sizes, [float(math.comb(n - 1, s) * w) for s, w in enumerate(p)], rtol=1e-12
        )
        assert made.values.tolist() == by_definition(u, n, p)
        floats = probabilistic_value(lambda S: float(u(S)), n, [float(w) for w in p]).values
        np.testing.assert_allclose(floats, made.values.astype(float), atol=1e-12)


def test_beta_weights_of_real_numbers():
    p = beta_shapley_weights(5, 2.5, 1.5).p
    scale = math.gamma(2.5) * math.gamma(1.5) / math.gamma(4)
    expected = [math.gamma(s + 1.5) * math.gamma(6.5 - s) / math.gamma(8) / scale for s in range(5)]
    np.testing.assert_allclose(p, expected, rtol=1e-12)


numbers = st.integers(-20, 20)
games = st.integers(2, 5).flatmap(lambda n: st.lists(numbers, min_size=2**n, max_size=2**n))


@pytest.mark.parametrize("name", VALUES)
@given(one=games, scale=numbers, data=st.data())
@settings(max_examples=25, deadline=None)
def test_axioms(name, one, scale, data):
    n, value = len(one).bit_length() - 1, VALUES[name]
    two = data.draw(st.lists(numbers, min_size=2**n, max_size=2**n))
    phi, psi = value(table_game(one), n).values, value(table_game(two), n).values
    both = value(table_game([a + scale * b for a, b in zip(one, two, strict=True)]), n).values
    assert both.tolist() == (phi + scale * psi).tolist()  # linearity
    null = value(table_game([one[code & ~1] for code in range(2**n)]), n).values
    assert null[0] == 0  # player 0 adds nothing
    swap = [one[code & ~3 | [0, 1, 1, 3][code & 3]] for code in range(2**n)]
    symmetric = value(table_game(swap), n).values
    assert symmetric[0] == symmetric[1]
    if name == "shapley":
        assert sum(phi) == one[-1] - one[0]  # efficiency
        assert shapley(table_game(one), n).gap == 0


def test_random_orders_are_shapley():
    u = table_game(np.random.default_rng(0).integers(-9, 9, 16).tolist())
    orders = list(itertools.permutations(range(4)))
    assert random_order(u, 4, orders).values.tolist() == shapley(u, 4).values.tolist()
    weighted = random_order(u, 4, [(0, 1, 2, 3), (3, 2, 1, 0)], [Fraction(1, 4), Fraction(3, 4)])
    gains = [u(tuple(range(i + 1))) - u(tuple(range(i))) for i in range(4)]
    back = [u(tuple(range(i, 4))) - u(tuple(range(i + 1, 4))) for i in range(4)]
    assert weighted.values.tolist() == [
        Fraction(g, 4) + Fraction(3 * b, 4) for g, b in zip(gains, back, strict=True)
    ]


def test_masks_and_tuples_are_the_same_game():
    table = np.random.default_rng(1).normal(size=2**6)
    code = 1 << np.arange(6)
    batch = shapley(lambda masks: table[masks @ code], 6, masks=True)
    single = shapley(table_game(table), 6)
    np.testing.assert_allclose(batch.values, single.values, atol=1e-12)
    assert batch.calls == single.calls == 64
    several = shapley(
        lambda masks: np.stack([table[masks @ code], 2 * table[masks @ code]], axis=1),
        6,
        masks=True,
    )
    np.testing.assert_allclose(several.values, [single.values, 2 * single.values], atol=1e-12)


def test_twelve_thousand_coalitions_in_pieces():
    n, rng = 14, np.random.default_rng(2)
    w = rng.normal(size=n)

    def u(masks):
        return (masks @ w) ** 2

    p = shapley_weights(n).p
    masks = masks_of(np.arange(2**n), n)
    size = masks.sum(axis=1)
    table = u(masks)
    inside = np.where(masks, np.r_[0, p][size][:, None], -np.r_[p, 0][size][:, None])
    np.testing.assert_allclose(shapley(u, n, masks=True).values, table @ inside, atol=1e-10)
    # of a square, in closed form
    np.testing.assert_allclose(table @ inside, w * w.sum(), atol=1e-10)


def test_a_large_offset_does_not_hurt():
    table = np.random.default_rng(0).integers(-9, 9, 2**8).astype(float)
    plain = shapley(table_game(table), 8).values
    np.testing.assert_allclose(shapley(table_game(table + 2.0**45), 8).values, plain, atol=1e-9)


def test_the_result_says_what_it_is():
    made = shapley(gloves, 3, names=["right", "left", "other left"])
    assert made.ranking == ("right", "left", "other left")
    text = str(made)
    assert "2/3" in text
    assert "game: gloves" in text
    assert "every coalition once" in text
    assert made._repr_html_().startswith("<pre>Shapley values")
    assert made.stable_top(1).stable
    tied = made.stable_top(2)
    assert not tied.stable
    assert "equals the next" in tied.reason
    assert made.stable_top(3).stable
