"""k-means bounds against the optimum found by trying every partition, and against seedings
actually drawn.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate

from surelearn import bounds


def cost(x, centers):
    return ((x[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2).min(axis=1).sum()


def optimum(x, k):
    """The k-means optimum over all labellings of x."""
    labellings = np.array(list(itertools.product(range(k), repeat=len(x))))
    member = (labellings[..., None] == np.arange(k)).astype(float)  # (labellings, rows, k)
    counts = np.maximum(member.sum(axis=1), 1)
    sums = np.einsum("lik,id->lkd", member, x)
    return (x**2).sum() - ((sums**2).sum(axis=2) / counts).sum(axis=1).max()


def seed_by_squared_distance(x, k, rng):
    centers = x[[rng.integers(len(x))]]
    for _ in range(k - 1):
        nearest = ((x[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2).min(axis=1)
        centers = np.vstack([centers, x[rng.choice(len(x), p=nearest / nearest.sum())]])
    return centers


def data(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(9, 2)) + 6 * rng.integers(3, size=(9, 1))


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_spectral_lower_bound_stays_below_the_optimum(seed, k):
    x = data(seed)
    values = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    bound = bounds.kmeans_spectral_lower_bound(values[::-1], k)  # in any order
    assert bound <= optimum(x, k) * (1 + 1e-12)
    if k == 1:
        assert bound == pytest.approx(optimum(x, k), rel=1e-12)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_spectral_lower_bound_is_attained_by_a_simplex(k):
    # k centers at a simplex and a pair around each, along an axis of its own: the spectrum
    # separates exactly.
    offsets = np.hstack([np.zeros((k, k)), np.eye(k)])
    x = np.vstack(
        [np.hstack([20 * np.eye(k), np.zeros((k, k))]) + sign * offsets for sign in (1, -1)]
    )
    values = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    assert optimum(x, k) == pytest.approx(2 * k)
    assert bounds.kmeans_spectral_lower_bound(values, k) == pytest.approx(2 * k, rel=1e-9)


@pytest.mark.parametrize("k", [4, 5, 50])
def test_spectral_lower_bound_vanishes_once_the_rank_is_spent(k):
    assert bounds.kmeans_spectral_lower_bound([3.0, 2.0, 1.0], k) == 0.0


@pytest.mark.parametrize("k", [2, 3])
def test_seeding_costs_at_most_the_ratio_in_the_mean(k):
    x, rng = data(7), np.random.default_rng(0)
    costs = [cost(x, seed_by_squared_distance(x, k, rng)) for _ in range(2000)]
    assert 1 < np.mean(costs) / optimum(x, k) <= bounds.kmeans_plus_plus_ratio(k)


@pytest.mark.parametrize("k", [1, 2, 1000])
def test_ratio_by_the_area_under_the_hyperbola(k):
    assert bounds.kmeans_plus_plus_ratio(k) == pytest.approx(
        16 + 8 * integrate.quad(lambda t: 1 / t, 1, k)[0], rel=1e-9
    )


@pytest.mark.parametrize("k", [2, 3])
def test_optimum_lower_bound_stays_below_the_optimum(k):
    x, rng = data(7), np.random.default_rng(1)
    for rounds in (1, 3, 10):
        costs = [cost(x, seed_by_squared_distance(x, k, rng)) for _ in range(rounds)]
        assert 0 < bounds.kmeans_optimum_lower_bound(costs, k, 0.05) <= optimum(x, k)


@pytest.mark.parametrize(
    ("costs", "delta"), [((120.0, 100.0, 110.0), 0.05), ((7.0,), 0.5), ((5.0,) * 20, 1e-9)]
)
def test_optimum_lower_bound_is_markov_on_every_seeding(costs, delta):
    # If OPT were below the bound, all R costs would exceed c times their expected ratio:
    # probability (1/c)^R = δ.
    bound = bounds.kmeans_optimum_lower_bound(costs, 10, delta)
    c = min(costs) / (bound * bounds.kmeans_plus_plus_ratio(10))
    assert math.prod(1 / c for _ in costs) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("costs", [[], [-1.0], [[1.0]]])
def test_impossible_costs_are_refused(costs):
    with pytest.raises(ValueError, match="costs"):
        bounds.kmeans_optimum_lower_bound(costs, 3, 0.05)


def test_a_perfect_seeding_says_nothing():
    assert bounds.kmeans_optimum_lower_bound([0.0, 1.0], 3, 0.05) == 0.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [2, 3])
def test_ratios_stay_above_what_the_optimum_shows(seed, k):
    x, rng = data(seed), np.random.default_rng(seed)
    values = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    costs = [cost(x, seed_by_squared_distance(x, k, rng)) for _ in range(5)]
    true = costs[0] / optimum(x, k)
    assert true <= bounds.kmeans_spectral_ratio(costs[0], values, k)
    assert true <= bounds.kmeans_ratio(costs[0], costs, k, 0.05, values)


@pytest.mark.parametrize(
    ("values", "larger"), [((9.0, 4.0, 3.0), 25.0), ((9.0, 0.3, 0.4), 0.25), (None, 0.0)]
)
def test_the_ratio_divides_by_the_larger_lower_bound(values, larger):
    seeded = 0.05 ** (1 / 2) * 50.0 / (8 * (math.log(2) + 2))
    assert 0.25 < seeded < 25
    found = bounds.kmeans_ratio(40.0, [50.0, 60.0], 2, 0.05, values)
    assert found == pytest.approx(40.0 / max(seeded, larger))
    if values:
        assert bounds.kmeans_spectral_ratio(40.0, values, 2) == pytest.approx(40.0 / larger)


def test_ratio_at_its_limits():
    assert (
        bounds.kmeans_ratio(0.0, [0.0], 2, 0.05)
        == bounds.kmeans_spectral_ratio(0.0, [1.0], 2)
        == 1.0
    )
    assert (
        bounds.kmeans_ratio(1.0, [0.0], 2, 0.05)
        == bounds.kmeans_spectral_ratio(1.0, [1.0], 2)
        == math.inf
    )
    assert bounds.kmeans_spectral_ratio(1.0, [1.0], 1) == 1.0
    assert bounds.kmeans_spectral_ratio.certify(1.0, [1.0], 2).vacuous
    with pytest.raises(ValueError, match="cost"):
        bounds.kmeans_spectral_ratio(-1.0, [1.0], 1)
