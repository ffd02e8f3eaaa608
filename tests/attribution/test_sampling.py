"""Sampled values: unbiased, intervals that hold as often as they say, a rule that stops, least
squares beside both.
"""

from __future__ import annotations

import itertools
from math import comb, factorial

import numpy as np
import pytest
from scipy.stats import binom

from surelearn.attribution import banzhaf, beta_shapley, probabilistic_value, shapley
from surelearn.attribution.coalitions import CooperativeGame
from surelearn.attribution.intervals import Moments, empirical_bernstein_reach, reach
from surelearn.attribution.least_squares import size_shares
from surelearn.attribution.sampling import SamplingPlan, sampled
from surelearn.attribution.weights import banzhaf_weights, shapley_weights
from surelearn.bounds import empirical_bernstein, hoeffding

N = 6
TABLE = np.random.default_rng(3).random(2**N)
CODE = 1 << np.arange(N)


def u(masks):
    return TABLE[masks @ CODE]


u.takes_masks = True
KINDS = {
    "Shapley": shapley,
    "Banzhaf": banzhaf,
    "beta": lambda game, n, **options: beta_shapley(game, n, 2, 1, **options),
}


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("name", KINDS)
def test_intervals_hold_the_exact_values(name, paired):
    exact = KINDS[name](u, N).values
    made = KINDS[name](u, N, method="sampling", budget=20_000, paired=paired, random_state=0)
    assert (made.low <= exact).all()
    assert (exact <= made.high).all()
    assert (made.high - made.low).max() < 0.2
    assert "measured" in made.interval
    sure = KINDS[name](
        u, N, method="sampling", budget=20_000, paired=paired, value_range=(0, 1), random_state=0
    )
    assert (sure.low <= exact).all()
    assert (exact <= sure.high).all()
    assert "Bernstein" in sure.interval
    assert (sure.high - sure.low > made.high - made.low).all()


@pytest.mark.parametrize(
    ("kind", "weights"),
    [
        ("orders", shapley_weights(N)),
        ("halves", banzhaf_weights(N)),
        ("marginals", shapley_weights(N)),
    ],
)
def test_measured_intervals_miss_as_often_as_they_say(kind, weights):
    exact = (shapley if weights.name == "Shapley" else banzhaf)(u, N).values
    runs, delta, missed = 300, 0.1 * N, 0
    for seed in range(runs):
        plan = SamplingPlan(
            delta=delta, budget=4000 if kind == "marginals" else 1500, random_state=seed
        )
        drawn = sampled(CooperativeGame(u, N), weights, plan, kind)
        # one player alone, at δ/N = 0.1
        missed += int(abs(drawn.values[0, 0] - exact[0]) > drawn.reach[0, 0])
    assert binom.cdf(missed, runs, 0.1) > 1e-4
    assert binom.sf(missed - 1, runs, 0.1) > 1e-4


def test_guaranteed_intervals_on_a_coin():
    """A player who counts only when alone: rare draws of 1, where a small sample often shows
    none.
    """

    def rare(masks):
        return (masks[:, 0] & ~masks[:, 1:].any(axis=1)).astype(float)

    n = 5
    exact = shapley(rare, n, masks=True).values
    missed = measured = 0
    for seed in range(200):
        options = {
            "method": "sampling",
            "budget": 40,
            "masks": True,
            "paired": False,
            "random_state": seed,
        }
        made = shapley(rare, n, value_range=(0, 1), **options)
        missed += bool((made.low > exact).any() or (made.high < exact).any())
        wild = shapley(rare, n, **options)
        measured += bool((wild.low > exact).any() or (wild.high < exact).any())
    assert missed <= binom.ppf(1 - 1e-4, 200, 0.05)
    # the normal approximation does not hold here, and is not called a guarantee
    assert measured > 20


def test_guaranteed_intervals_in_the_worst_case():
    """The parity of two players: gains of ±1 as often, where intervals half as wide would miss
    too often.
    """
    missed, runs = 0, 600
    for seed in range(runs):
        options = {"method": "sampling", "budget": 60, "paired": False, "random_state": seed}
        made = shapley(lambda S: len(S) % 2, 2, value_range=(0, 1), **options)
        missed += bool((made.low > 0).any() or (made.high < 0).any())
    assert missed <= binom.ppf(1 - 1e-4, runs, 0.05)


def test_a_dictator_is_known_after_one_half():
    made = banzhaf(
        lambda masks: masks[:, 0].astype(float),
        3,
        method="sampling",
        masks=True,
        budget=20,
        random_state=0,
    )
    assert made.values[0] == 1.0
    assert made.high[0] == 1.0


def test_reach_is_the_registered_theorem():
    x = np.random.default_rng(0).random(50) ** 3
    moments = Moments()
    for piece in np.split(x, [7, 20]):
        moments.add(piece)
    assert moments.mean == pytest.approx(x.mean(), rel=1e-12)
    assert moments.variance == pytest.approx(x.var(ddof=1), rel=1e-12)
    bernstein = empirical_bernstein_reach(moments.variance, 50, 0.01, 1.0)
    assert x.mean() + bernstein == pytest.approx(empirical_bernstein(x, 0.01), rel=1e-12)
    one_side = min(empirical_bernstein(x, 0.0125), hoeffding(x.mean(), 50, 0.0125))
    assert x.mean() + reach(moments, 0.05, 1.0) == pytest.approx(one_side, rel=1e-12)


def test_stops_at_the_tolerance():
    made = shapley(u, N, method="sampling", tolerance=0.05, budget=100_000, random_state=0)
    assert "stopped by the tolerance" in made.method
    assert (made.high - made.low).max() <= 0.1
    assert made.calls < 20_000
    short = shapley(u, N, method="sampling", tolerance=1e-4, budget=1000, random_state=0)
    assert "stopped by the budget" in short.method
    assert short.calls <= 1002


def test_the_same_seed_draws_the_same():
    one, two = (
        shapley(u, N, method="sampling", budget=500, random_state=7).values for _ in range(2)
    )
    np.testing.assert_array_equal(one, two)
    state = np.random.RandomState(7)
    np.testing.assert_array_equal(
        shapley(u, N, method="sampling", budget=500, random_state=state).values, one
    )


def test_pairs_know_pairwise_games_after_one():
    rng = np.random.default_rng(0)
    w, Q = rng.normal(size=N), rng.normal(size=(N, N))

    def quadratic(masks):
        z = masks.astype(float)
        return z @ w + np.einsum("ij,jk,ik->i", z, Q, z)

    exact = shapley(quadratic, N, masks=True).values
    np.testing.assert_allclose(
        exact, w + np.diag(Q) + ((Q + Q.T).sum(0) - 2 * np.diag(Q)) / 2, atol=1e-10
    )
    for method in ("sampling", "least squares"):
        made = shapley(quadratic, N, method=method, budget=200, masks=True, random_state=0)
        np.testing.assert_allclose(made.values, exact, atol=1e-10)
        np.testing.assert_allclose(made.high - made.low, 0, atol=1e-10)
        loose = shapley(
            quadratic, N, method=method, budget=200, masks=True, paired=False, random_state=0
        )
        assert np.abs(loose.values - exact).max() > 1e-3


@pytest.mark.parametrize("paired", [True, False])
def test_least_squares(paired):
    exact = shapley(u, N)
    made = shapley(u, N, method="least squares", budget=20_000, paired=paired, random_state=1)
    np.testing.assert_allclose(made.values, exact.values, atol=0.02)
    assert (made.low <= exact.values).all()
    assert (exact.values <= made.high).all()
    assert abs(made.gap) < 1e-12
    stopped = shapley(
        u, N, method="least squares", tolerance=0.05, budget=50_000, paired=paired, random_state=1
    )
    assert "tolerance" in stopped.method
    assert stopped.calls < 50_000


@pytest.mark.parametrize("name", KINDS)
def test_least_squares_over_all_coalitions_is_the_efficient_value(name):
    weights = {
        "Shapley": [1 / (N * comb(N - 1, s)) for s in range(N)],
        "Banzhaf": [2.0 ** -(N - 1)] * N,
        "beta": [factorial(s) * factorial(N - s) / factorial(N + 1) * 2 for s in range(N)],
    }[name]
    masks = np.array([m for m in itertools.product([False, True], repeat=N) if 0 < sum(m) < N])
    size = masks.sum(axis=1)
    q = np.array([weights[s] + weights[s - 1] for s in size])
    Z = masks[:, :-1].astype(float) - masks[:, -1:]
    gain = TABLE[-1] - TABLE[0]
    target = u(masks) - TABLE[0] - masks[:, -1] * gain
    beta = np.linalg.solve((Z * q[:, None]).T @ Z, (Z * q[:, None]).T @ target)
    solved = np.r_[beta, gain - beta.sum()]
    phi = probabilistic_value(u, N, weights).values
    np.testing.assert_allclose(solved, phi + (gain - phi.sum()) / N, atol=1e-10)
    made = KINDS[name](u, N, method="least squares", budget=30_000, random_state=0)
    np.testing.assert_allclose(made.values, solved, atol=0.03)
    assert ("efficient" in made.value) == (name != "Shapley")


def test_size_shares_of_shapley():
    s = np.arange(1, N)
    expected = 1 / (s * (N - s))  # C(n, s)/C(n − 2, s − 1) ∝ 1/(s(n − s))
    np.testing.assert_allclose(
        size_shares(shapley_weights(N)), expected / expected.sum(), rtol=1e-12
    )


def test_stable_top_by_intervals():
    strong = np.array([5.0, 3.0, 0.1, 0.0, 0.0, 0.0])

    def game(masks):
        return masks @ strong + 0.3 * u(masks)

    sure = shapley(game, N, method="sampling", budget=4000, masks=True, random_state=0)
    assert sure.stable_top(2).stable
    assert not sure.stable_top(4).stable
    assert "overlap" in sure.stable_top(4).reason


def test_many_players():
    w = np.linspace(-1, 1, 200)
    made = shapley(lambda masks: masks @ w, 200, masks=True, random_state=0)
    np.testing.assert_allclose(made.values, w, atol=1e-12)
    assert "Monte Carlo" in made.method


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0}, "delta must lie"),
        ({"tolerance": 0}, "tolerance must be positive"),
        ({"budget": 1.5}, "budget must be a whole number"),
        ({"method": "sampling", "budget": 5}, "budget must allow"),
        ({"method": "least squares", "budget": 5}, "budget must allow"),
        ({"value_range": (1, 0)}, "value_range must be"),
        ({"method": "sampling", "value_range": (0, 0.5)}, "value_range must hold every value"),
        ({"method": "guess"}, "method must be"),
        ({"names": ["a"]}, "names must be 6"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        shapley(u, N, **options)


def test_bad_games():
    with pytest.raises(TypeError, match="game must be a function"):
        shapley(3, 3)  # pyright: ignore
    with pytest.raises(ValueError, match="n must be a whole number"):
        shapley(len, 0)
    with pytest.raises(ValueError, match="finite numbers, not nan for the players \\(1,\\)"):
        shapley(lambda S: float("nan") if S == (1,) else 1.0, 3)
    with pytest.raises(ValueError, match="finite numbers"):
        shapley(lambda S: float("inf") if len(S) == 2 else 1.0, 3, method="sampling")
    with pytest.raises(ValueError, match="one value for each of 8 masks"):
        shapley(lambda _: np.zeros(3), 3, masks=True)
    with pytest.raises(ValueError, match="2\\^30 coalitions"):
        shapley(len, 30, method="exact")
    with pytest.raises(ValueError, match="probability for sampling"):
        probabilistic_value(len, 3, [1, 1, 1], method="sampling")
    with pytest.raises(ValueError, match="weights must be"):
        probabilistic_value(len, 3, [1, 1])
    with pytest.raises(ValueError, match="weights must be"):
        probabilistic_value(len, 2, [-1, 2])
    with pytest.raises(ValueError, match="alpha must be positive"):
        beta_shapley(len, 3, alpha=0)
