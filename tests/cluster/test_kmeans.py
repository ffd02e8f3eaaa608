"""k-means: exact Lloyd, seeding as the theorem has it, lower bounds below the optimum found by
trying every partition.
"""

from __future__ import annotations

import copy
import itertools
import json
import math

import numpy as np
import pytest
import sklearn.cluster
from scipy import sparse, stats

from surelearn import bounds
from surelearn.certificate import Certificate
from surelearn.cluster import KMeans, search, seeding
from surelearn.cluster.dense import DenseRows, nearest, rows_per_product
from surelearn.cluster.kmeans import RULES, distances
from surelearn.cluster.lloyd import Lloyd
from surelearn.cluster.spectrum import affordable, singular_values


def squares(x, centers):
    return ((x[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)


def optimum(x, k, weights=None):
    """The k-means optimum over all labellings of x."""
    w = np.ones(len(x)) if weights is None else weights
    best = math.inf
    for labels in itertools.product(range(k), repeat=len(x) - 1):
        member = np.eye(k)[[0, *labels]]
        mass = member.T @ w
        means = (member * w[:, None]).T @ x / np.where(mass > 0, mass, 1)[:, None]
        best = min(best, float(w @ ((x - means[[0, *labels]]) ** 2).sum(axis=1)))
    return best


def reference(x, w, centers, iterations):
    """Lloyd's algorithm in its plainest form."""
    for _ in range(iterations):
        labels = squares(x, centers).argmin(axis=1)
        means = np.array(
            [
                np.average(x[labels == c], axis=0, weights=w[labels == c])
                for c in range(len(centers))
            ]
        )
        if np.array_equal(means, centers):
            break
        centers = means
    return centers


def tiny(seed, n=8):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) + 5 * rng.integers(3, size=(n, 1))


# Lloyd.


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("iterations", [1, 4, 40])
def test_lloyd_is_lloyd(seed, iterations):
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(300, 1500)), int(rng.integers(1, 9)), int(rng.integers(1, 12))
    x = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4) + (seed % 3) * 4 * rng.integers(
        4, size=(n, 1)
    )
    x -= x.mean(axis=0)
    w = rng.uniform(0.5, 2, size=n) if seed % 2 else np.ones(n)
    start = x[rng.choice(n, k, replace=False)]
    found = Lloyd(DenseRows(x), w).run(start, iterations, 0.0)
    assert found.iterations <= iterations
    np.testing.assert_allclose(
        found.centers, reference(x, w, start, iterations), rtol=1e-9, atol=1e-9 * np.abs(x).max()
    )


def test_lloyd_from_scikit_learns_start_ends_where_scikit_learn_does():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(4000, 10))
    start = x[:25]
    ours = KMeans(25, init=start).fit(x)
    theirs = sklearn.cluster.KMeans(25, init=start, n_init=1).fit(x)
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    assert ours.score(x) == pytest.approx(theirs.score(x), rel=1e-9)
    np.testing.assert_allclose(ours.transform(x[:50]), theirs.transform(x[:50]), rtol=1e-9)


def test_far_clusters_that_four_bytes_cannot_tell_apart():
    rng = np.random.default_rng(0)
    places = np.array([[0.0, 0.0], [0.0, 0.5], [1e6, 1e6], [1e6, 1e6 + 0.5]])
    x = np.repeat(places, 300, axis=0) + 0.01 * rng.normal(size=(1200, 2))
    model = KMeans(4, init=x[[0, 300, 600, 900]]).fit(x)
    np.testing.assert_array_equal(model.labels_, np.repeat(np.arange(4), 300))
    np.testing.assert_array_equal(model.predict(x), model.labels_)
    assert model.inertia_ == pytest.approx(
        sum(((p - p.mean(axis=0)) ** 2).sum() for p in np.split(x, 4)), rel=1e-6
    )


@pytest.mark.parametrize("shift", [1e-9, -1e-9])
def test_near_ties_are_decided_as_in_eight_bytes(shift):
    # Rows a hair off the middle between two centers, in 30 dimensions: 4-byte products cannot see
    # it.
    rng = np.random.default_rng(1)
    centers = rng.normal(size=(6, 30))
    gap = centers[1] - centers[0]
    x = (
        (centers[0] + centers[1]) / 2
        + shift * gap
        + 1e-3
        * rng.normal(size=(2 * rows_per_product(6) + 7, 30))
        @ (np.eye(30) - np.outer(gap, gap) / (gap @ gap))
    )
    labels, found = nearest(x, centers)
    assert set(labels) == {int(shift > 0)}
    np.testing.assert_allclose(found, squares(x, centers).min(axis=1), rtol=1e-12)
    # the first of equals
    assert nearest(centers, np.vstack([centers, centers]))[0].tolist() == [0, 1, 2, 3, 4, 5]


def test_the_cost_never_rises():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(800, 6))
    costs = [KMeans(30, init=x[:30], max_iter=t, tol=0.0).fit(x).inertia_ for t in range(1, 15)]
    assert (np.diff(costs) <= 1e-9 * costs[0]).all()
    assert costs[-1] < costs[0]


def test_an_empty_cluster_takes_the_dearest_row():
    x = np.array([[0.0], [1.0], [2.0], [50.0]])
    model = KMeans(3, init=np.array([[0.0], [1.5], [999.0]])).fit(x)
    assert len(set(model.labels_)) == 3
    assert model.inertia_ == pytest.approx(0.5)


@pytest.mark.parametrize("init", ["k-means++", "greedy", "random"])
def test_fewer_different_rows_than_clusters(init):
    x = np.repeat(np.array([[0.1, 0.3], [1.7, 0.2], [2.9, -4.1]]), 5, axis=0)
    model = KMeans(7, init=init, random_state=0).fit(x)
    assert model.inertia_ < 1e-28
    assert model.facts_["used"] == len(set(model.labels_)) == 3
    assert np.isfinite(model.cluster_centers_).all()
    assert model.certificate_.verify()
    if init == "k-means++":  # nothing is claimed to cost more than it does
        assert bounds.kmeans_optimum_lower_bound(model.facts_["seeding_costs"], 7, 0.05) == 0.0


def test_as_many_clusters_as_rows():
    x = tiny(0)
    assert KMeans(len(x), random_state=0).fit(x).inertia_ < 1e-25


def test_scales_that_four_bytes_do_not_hold():
    x = tiny(2, 60)
    model = KMeans(3, random_state=0).fit(x)
    for scale in (1e-30, 1e30):
        np.testing.assert_array_equal(
            KMeans(3, random_state=0).fit(scale * x).labels_, model.labels_
        )


def test_weights_are_repetitions_and_order_is_nothing():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(90, 3)), rng.integers(0, 4, size=90)
    a = KMeans(3, random_state=1).fit(x, sample_weight=w)
    b = KMeans(3, random_state=1).fit(np.repeat(x, w, axis=0))
    mixed = rng.permutation(90)
    c = KMeans(3, random_state=1).fit(x[mixed], sample_weight=w[mixed])
    for other in (b, c):
        np.testing.assert_allclose(a.cluster_centers_, other.cluster_centers_, atol=1e-12)
        np.testing.assert_allclose(a.facts_["seeding_costs"], other.facts_["seeding_costs"])
        np.testing.assert_allclose(a.facts_["singular_values"], other.facts_["singular_values"])
        assert a.inertia_ == pytest.approx(other.inertia_)


def test_distances_near_zero_do_not_cancel():
    centers = np.array([[1e8, 0.0], [1e8 + 1, 0.0]])
    assert distances(np.array([[1e8, 1e-7]]), centers)[0] == pytest.approx([1e-7, 1.0], rel=1e-9)


# Seeding.


def plain(x, weights, k, runs, random, rule=2):
    """Positions and costs of plain seedings."""
    found = seeding.plain(DenseRows(x), weights, k, runs, random, most=RULES[rule])
    return found.rows, found.costs


def test_second_center_is_drawn_in_proportion_to_the_squared_distance():
    x = np.array([[0.0], [1.0], [2.0], [4.0], [7.0]])
    w = np.array([1.0, 2.0, 1.0, 0.5, 1.0])
    rows, costs = plain(x, w, 2, 40_000, np.random.RandomState(0))
    chance = np.zeros((5, 5))
    for first in range(5):
        mass = w * (x[:, 0] - x[first, 0]) ** 2
        chance[first] = w[first] / w.sum() * mass / mass.sum()
    counts = np.zeros((5, 5))
    np.add.at(counts, (rows[:, 0], rows[:, 1]), 1)
    possible = chance > 0
    assert counts[~possible].sum() == 0
    assert stats.chisquare(counts[possible], 40_000 * chance[possible]).pvalue > 1e-3
    expected = (w * np.minimum((x - x[rows[:, 0]].T).T ** 2, (x - x[rows[:, 1]].T).T ** 2)).sum(
        axis=1
    )
    np.testing.assert_allclose(costs, expected)


def test_draws_beyond_the_first_block():
    rng = np.random.default_rng(0)
    x = np.zeros((3 * seeding.BLOCK + 5, 1))
    x[[2000, 3000]] = [[3.0], [-1.0]]  # the only rows that cost anything once a zero is chosen
    rows, _ = plain(x, np.ones(len(x)), 2, 4000, np.random.RandomState(int(rng.integers(99))))
    seconds = rows[x[rows[:, 0], 0] == 0, 1]
    assert set(seconds) == {2000, 3000}
    assert np.mean(seconds == 2000) == pytest.approx(0.9, abs=0.02)


def test_seeding_costs_do_not_cancel():
    rng = np.random.default_rng(0)
    x = np.repeat([[-1e6, 3e6], [2e6, 1e5], [-1e6, -3.1e6]], 20, axis=0) + 1e-3 * rng.normal(
        size=(60, 2)
    )
    rows, costs = plain(x, np.ones(60), 3, 5, np.random.RandomState(0))
    np.testing.assert_allclose(costs, [squares(x, x[r]).min(axis=1).sum() for r in rows], rtol=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_seedings_are_drawn_in_proportion_to_the_squared_distance_however_many_walks(rule):
    """Every order of four of five weighted rows as often as D² says, also where rows are
    proposed by an old D².
    """
    x, w, draws = (
        np.array([[0.0], [1.0], [2.0], [4.0], [7.0]]),
        np.array([1.0, 2.0, 1.0, 0.5, 1.0]),
        30_000,
    )
    chances = {}
    for rows in itertools.permutations(range(5), 4):
        chances[rows] = w[rows[0]] / w.sum()
        for step in range(1, 4):
            mass = w * squares(x, x[list(rows[:step])]).min(axis=1)
            chances[rows] *= mass[rows[step]] / mass.sum()
    found, _ = plain(x, w, 4, draws, np.random.RandomState(0), rule)
    counts = dict.fromkeys(chances, 0)
    for rows in found.tolist():
        counts[tuple(rows)] += 1
    likely = [rows for rows, chance in chances.items() if draws * chance >= 5]
    rest = draws - sum(counts[rows] for rows in likely)
    expected = draws * np.array([chances[rows] for rows in likely])
    observed = np.array([counts[rows] for rows in likely])
    pvalue = stats.chisquare([*observed, rest], [*expected, draws - expected.sum()]).pvalue
    assert len(likely) > 60
    assert pvalue > 1e-3


@pytest.mark.parametrize("rule", RULES)
def test_seeding_costs_are_those_of_eight_bytes(rule):
    """4-byte products only rule centers out: so far from the origin they could not tell which
    is the nearest.
    """
    x = 1000 + np.random.default_rng(0).normal(size=(rows_per_product(3 * RULES[rule]) + 77, 20))
    found = seeding.plain(
        DenseRows(x), np.ones(len(x)), 60, 3, np.random.RandomState(0), most=RULES[rule]
    )
    np.testing.assert_allclose(
        found.costs, [squares(x, x[r]).min(axis=1).sum() for r in found.rows], rtol=1e-13
    )
    np.testing.assert_allclose(found.squares, squares(x, x[found.cheapest]).min(axis=1), rtol=1e-12)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_seeding_ratio_holds_in_the_mean(k, seed):
    x = tiny(seed)
    _, costs = plain(x, np.ones(len(x)), k, 4000, np.random.RandomState(seed))
    ratio = costs.mean() / optimum(x, k)
    assert 1 < ratio <= bounds.kmeans_plus_plus_ratio(k)
    assert costs.min() >= optimum(x, k) * (1 - 1e-12)


@pytest.mark.parametrize("runs", [1, 4])
def test_lower_bound_from_seedings_exceeds_the_optimum_in_at_most_delta(runs):
    x, k, delta, trials = tiny(4), 3, 0.3, 2000
    best = optimum(x, k)
    _, costs = plain(x, np.ones(len(x)), k, runs * trials, np.random.RandomState(0))
    violated = [
        bounds.kmeans_optimum_lower_bound(c, k, delta) > best for c in costs.reshape(trials, runs)
    ]
    assert np.mean(violated) <= delta
    # Markov's part alone, with the true mean in place of 8(ln k + 2)·OPT: still at most δ.
    tight = delta ** (1 / runs) * costs.reshape(trials, runs).min(axis=1) > costs.mean()
    assert tight.mean() <= delta + 3 * math.sqrt(delta / trials)


# A better start than a seeding.


def blobs(seed, n=6000, d=32, k=40):
    """Rows around as many centers as their spread lets overlap: half of a seeding's centers are
    in the wrong place.
    """
    rng = np.random.default_rng(seed)
    return rng.normal(size=(k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d))


def test_defaults_are_not_worse_than_scikit_learns():
    ratios = []
    for seed in range(4):
        x = blobs(seed)
        ours = KMeans(40, max_iter=20, random_state=seed).fit(x)
        ratios.append(
            ours.inertia_
            / sklearn.cluster.KMeans(40, max_iter=20, random_state=seed).fit(x).inertia_
        )
    assert np.mean(ratios) < 1
    assert max(ratios) < 1.02


def test_swaps_lower_the_cost_and_find_what_a_seeding_missed():
    places = np.array([[0.0, 0.0], [30.0, 0.0], [0.0, 30.0], [30.0, 30.0]])
    x = np.repeat(places, 50, axis=0) + np.random.default_rng(0).normal(size=(200, 2))
    start = x[[0, 1, 50, 100]]  # two in the first cluster, none in the last
    centers = search.swaps(DenseRows(x), np.ones(200), start, np.random.RandomState(0))
    assert sorted(squares(centers, places).argmin(axis=1)) == [0, 1, 2, 3]
    for seed in range(5):
        x = blobs(seed, 500, 5, 12)
        w = np.random.default_rng(seed).uniform(0, 2, 500)
        before = float(w @ squares(x, x[:12]).min(axis=1))
        after = float(
            w
            @ squares(x, search.swaps(DenseRows(x), w, x[:12], np.random.RandomState(seed))).min(
                axis=1
            )
        )
        assert after < before


def test_swaps_gain_what_they_say():
    """The gain of a candidate and the center it replaces, against trying every center."""
    x, w = blobs(0, 60, 3, 5), np.random.default_rng(0).uniform(0, 2, 60)
    table = squares(x, x[:5])
    first, second = np.sort(table, axis=1)[:, :2].T
    tried = squares(x[20:28], x)
    gains, places = search._gains(tried, w, first, second, table.argmin(axis=1), 5)
    for c, row in enumerate(range(20, 28)):
        costs = [
            w @ squares(x, np.vstack([np.delete(x[:5], place, axis=0), x[row]])).min(axis=1)
            for place in range(5)
        ]
        assert places[c] == np.argmin(costs)
        assert gains[c] == pytest.approx(w @ first - min(costs))


def test_a_coreset_weighs_what_the_rows_weigh_and_keeps_those_far_away():
    rng = np.random.default_rng(0)
    x, w = (
        np.vstack([rng.normal(size=(20_000, 2)), [[500.0, 0.0]]]),
        rng.integers(1, 4, size=20_001).astype(float),
    )
    near = squares(x, np.zeros((1, 2)))[:, 0]
    rows, masses = search.coreset(w, near, 500, np.random.RandomState(0))
    assert len(rows) <= 500
    assert 20_000 in rows
    assert masses.sum() == pytest.approx(w.sum(), rel=0.1)
    for center in ([0.0, 0.0], [3.0, -1.0], [100.0, 0.0]):
        gaps = squares(x, np.array([center]))[:, 0]
        assert masses @ gaps[rows] == pytest.approx(w @ gaps, rel=0.15)
    again, repeated = search.coreset(
        np.ones(int(w.sum())), np.repeat(near, w.astype(int)), 500, np.random.RandomState(0)
    )
    source = np.repeat(np.arange(20_001), w.astype(int))[again]
    np.testing.assert_array_equal(np.unique(source), rows)  # a row of weight 2 is a row given twice
    np.testing.assert_allclose(np.bincount(source, repeated, 20_001)[rows], masses, rtol=1e-6)


def test_a_bad_start_never_ends_above_the_seedings_of_the_certificate(monkeypatch):
    x = 100 * blobs(0, 40, 32, 40)[np.arange(2000) % 40] + np.random.default_rng(0).normal(
        size=(2000, 32)
    )
    # all in the first cluster
    monkeypatch.setattr(search, "better_start", lambda rows, *_: rows[np.arange(40)])
    model = KMeans(40, max_iter=1, random_state=0, n_init=2).fit(x)
    assert model.inertia_ <= min(model.facts_["seeding_costs"])
    assert model.certificate_.verify(model, x)


def test_rows_of_four_bytes_are_clustered_as_their_values_in_eight():
    x = blobs(1, 3000).astype(np.float32)
    short, wide = (KMeans(40, random_state=0).fit(rows) for rows in (x, x.astype(float)))
    np.testing.assert_array_equal(short.labels_, wide.labels_)
    np.testing.assert_allclose(
        short.facts_["seeding_costs"], wide.facts_["seeding_costs"], rtol=1e-12
    )
    assert short.inertia_ == pytest.approx(wide.inertia_, rel=1e-12)
    assert short.certificate_.verify(short, x)
    np.testing.assert_array_equal(short.predict(x), wide.predict(x.astype(float)))


# The certificate.


def by_theorem(certificate):
    return {claim.theorem: claim for claim in certificate.claims}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_claims_are_true_of_the_optimum(seed, weighted):
    x, k = tiny(seed), 2 + seed % 2
    w = np.random.default_rng(seed).uniform(0.1, 3, len(x)) if weighted else np.ones(len(x))
    best = optimum(x, k, w)
    model = KMeans(k, random_state=seed).fit(x, sample_weight=w)
    assert model.inertia_ >= best * (1 - 1e-12)
    claims = by_theorem(model.certificate_)
    for claim in claims.values():
        if claim.quantity == "optimal_cost":
            assert claim.value <= best
        if claim.quantity == "cost_over_optimum":
            assert model.inertia_ / best <= claim.value
    assert claims["kmeans_plus_plus_ratio"].confidence == "in expectation"
    assert claims["kmeans_plus_plus_ratio"].value == pytest.approx(8 * (math.log(k) + 2))
    expected = 0.05 ** (1 / 8) * min(model.facts_["seeding_costs"]) / (8 * (math.log(k) + 2))
    assert claims["kmeans_optimum_lower_bound"].value == pytest.approx(expected)


def test_the_ratio_is_the_cost_over_the_larger_lower_bound():
    x = np.random.default_rng(0).normal(size=(500, 6))
    few = by_theorem(KMeans(3, random_state=0).fit(x).certificate_)
    assert few["kmeans_spectral_ratio"].confidence == "always"
    lower = few["kmeans_spectral_lower_bound"].value
    values = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    assert lower == pytest.approx((values[2:] ** 2).sum(), rel=1e-9)
    model = KMeans(6, n_init=3, random_state=0).fit(x)
    assert len(model.facts_["seeding_costs"]) == 24
    many = by_theorem(model.certificate_)
    assert many["kmeans_optimum_lower_bound"].value < many["kmeans_spectral_lower_bound"].value
    crowded = KMeans(40, random_state=0).fit(x)
    claims = by_theorem(crowded.certificate_)
    assert claims["kmeans_ratio"].confidence == 0.95
    assert claims["kmeans_ratio"].value == pytest.approx(
        crowded.inertia_ / claims["kmeans_optimum_lower_bound"].value
    )
    assert "kmeans_spectral_lower_bound" not in claims


@pytest.mark.parametrize("init", ["k-means++", "greedy", "random"])
@pytest.mark.parametrize("k", [3, 30])
def test_certificates_survive_json_and_verify(init, k):
    x = np.random.default_rng(0).normal(size=(200, 5))
    certificate = KMeans(k, init=init, random_state=0).fit(x).certificate_
    read = Certificate.from_dict(json.loads(json.dumps(certificate.to_dict(), allow_nan=False)))
    assert read.verify()
    assert read.claims == certificate.claims


@pytest.mark.parametrize("init", ["greedy", "random", "given"])
def test_other_seeding_is_not_certified(init):
    # The mutant: greedy seeds cost less, so "certifying" them would be easy and wrong.
    x = np.random.default_rng(0).normal(size=(200, 5))
    certificate = (
        KMeans(9, init=x[:9] if init == "given" else init, random_state=0).fit(x).certificate_
    )
    assert not certificate.claims
    reasons = {absent.theorem: absent.reason for absent in certificate.lacking}
    assert init in reasons["kmeans_plus_plus_ratio"]
    assert init in reasons["kmeans_optimum_lower_bound"]
    assert "dimensions" in reasons["kmeans_spectral_lower_bound"]


def test_greedy_seeding_is_another_distribution():
    # On this line the greedy second center is the far row almost surely; plain seeding takes it as
    # often as D² says.
    x = np.array([[0.0]] * 8 + [[1.0]] * 4 + [[2.0]])
    w, random = np.ones(len(x)), np.random.RandomState(0)
    greedy = np.array([seeding.greedy(DenseRows(x), w, 3, random) for _ in range(300)])
    drawn, _ = plain(x, w, 3, 300, random)
    found = [np.mean([len(set(x[r, 0])) == 3 for r in rows]) for rows in (greedy, drawn)]
    assert found == [1.0, 1.0]  # D² never repeats a place
    second = [np.mean(x[rows[x[rows[:, 0], 0] == 0, 1], 0] == 1) for rows in (greedy, drawn)]
    assert second[1] == pytest.approx(0.5, abs=0.1)  # 4·1² against 1·2²
    assert second[0] > 0.6


def test_the_spectrum_of_wide_rows_and_of_too_many():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(12, 40))
    wide -= wide.mean(axis=0)
    np.testing.assert_allclose(
        singular_values(DenseRows(wide), np.ones(12), 3)[:11],
        np.linalg.svd(wide, compute_uv=False)[:11],
        rtol=1e-9,
    )
    assert len(singular_values(DenseRows(wide), np.ones(12), 13)) == 0
    certificate = KMeans(2, random_state=0).fit(rng.normal(size=(2001, 2001))).certificate_
    assert any("too dear" in absent.reason for absent in certificate.lacking)
    shapes = ((200_000, 64), (10**6, 2000), (50, 10**5))
    assert [affordable(np.broadcast_to(0.0, shape), 8, 20) for shape in shapes] == [
        True,
        False,
        True,
    ]


def test_the_spectrum_is_computed_where_it_is_cheap_or_asked_for():
    """What it costs beside the clustering decides, not a clock; asked for, it gives the PCA
    tail of an SVD.
    """
    X = np.random.default_rng(0).normal(size=(700, 700))
    start = X[:3]
    plain, asked, never = (
        KMeans(3, init=start, max_iter=2, spectrum=value).fit(X) for value in (None, True, False)
    )
    assert [len(model.facts_["singular_values"]) > 0 for model in (plain, asked, never)] == [
        False,
        True,
        False,
    ]
    assert [affordable(X, 3, 2), affordable(X, 350, 20), affordable(X, 350, 40)] == [
        False,
        False,
        True,
    ]
    tail = np.sum(np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[2:] ** 2)
    assert asked.certificate_["optimal_cost"].value == pytest.approx(tail, rel=1e-6)
    assert asked.certificate_["optimal_cost"].value <= tail
    for model, why in (
        (plain, "700 features is too dear: spectrum=True has it"),
        (never, "spectrum=False"),
    ):
        assert any(why in item.reason for item in model.certificate_.lacking)
        np.testing.assert_array_equal(model.labels_, asked.labels_)


# Refusals.


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_clusters": 9}, "n_clusters=9 exceeds n_samples=8"),
        ({"n_clusters": 0}, "n_clusters must be a whole number"),
        ({"n_clusters": 2.5}, "n_clusters must be a whole number"),
        ({"n_clusters": 2, "n_init": 0}, "n_init must be"),
        ({"n_clusters": 2, "max_iter": -1}, "max_iter must be"),
        ({"n_clusters": 2, "seedings": True}, "seedings must be"),
        ({"n_clusters": 2, "tol": -1.0}, "tol must be"),
        ({"n_clusters": 2, "tol": math.nan}, "tol must be"),
        ({"n_clusters": 2, "spectrum": "yes"}, "spectrum must be None, True or False"),
        ({"n_clusters": 2, "init": "kmeans"}, "init must be one of"),
        ({"n_clusters": 2, "init": np.zeros((3, 2))}, "init must hold 2 centers of 2 features"),
        ({"n_clusters": 2, "init": np.full((2, 2), np.nan)}, "init must hold finite"),
    ],
)
def test_impossible_options_are_refused(options, match):
    with pytest.raises(ValueError, match=match):
        KMeans(**options).fit(tiny(0))


@pytest.mark.parametrize(
    ("x", "weights", "match"),
    [
        (np.array([[1.0], [np.nan]]), None, "NaN"),
        (np.array([[1.0], [np.inf]]), None, "infinity"),
        (np.array([[1e200], [0.0]]), None, "rescale"),
        (np.array([[1.0], [2.0]]), [0.0, 0.0], "at least one non-zero"),
        (np.array([[1.0], [2.0]]), [1.0, -1.0], "[Nn]egative"),
    ],
)
def test_impossible_rows_are_refused(x, weights, match):
    with pytest.raises(ValueError, match=match):
        KMeans(1).fit(x, sample_weight=weights)


def test_named_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(tiny(1), columns=["a", "b"])
    model = KMeans(2, random_state=0).fit(frame)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.get_feature_names_out().tolist() == ["kmeans0", "kmeans1"]
    np.testing.assert_array_equal(model.fit_predict(frame), model.labels_)


def test_a_clustering_is_measured_again_on_its_rows_sparse_weighted_or_not():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(120, 6)) * (rng.random((120, 6)) < 0.5)
    weights = rng.random(120) * (np.arange(120) % 7 > 0)
    for rows, given in itertools.product((X, sparse.csr_array(X)), (None, weights)):
        model = KMeans(3, random_state=0).fit(rows, sample_weight=given)
        found = model.certificate_.verify(model, rows, sample_weight=given)
        assert found, found
        assert not found.unchecked  # a number as random_state draws the seedings again
        assert not model.certificate_.verify(
            model, rows[:-1], sample_weight=None if given is None else given[:-1]
        )
        moved = copy.deepcopy(model)
        # another model with the cost of the first
        moved.cluster_centers_ = moved.cluster_centers_ + 0.1
        assert "cost: not what model and rows give" in str(
            moved.certificate_.verify(moved, rows, sample_weight=given)
        )


def test_seedings_of_an_earlier_rule_are_drawn_again_by_it():
    """Models of version 0.2 have no rule in their record: one walk over the rows for every
    center.
    """
    x = blobs(3, 300, 4, 9)
    model = KMeans(9, random_state=0).fit(x)
    costs = {}
    for rule in RULES:
        _, _, rows, weights, _ = model._read(x, None, reset=False)
        costs[rule] = plain(rows.X, weights, 9, 8, np.random.RandomState(0), rule)[1]
    assert not np.allclose(costs[1], costs[2])
    np.testing.assert_allclose(model.facts_["seeding_costs"], costs[2], rtol=1e-12)
    earlier = copy.deepcopy(model)
    earlier.facts_ = {name: value for name, value in model.facts_.items() if name != "rule"} | {
        "seeding_costs": costs[1]
    }
    found = earlier.certificate_.verify(earlier, x)
    assert found, found
    assert not found.unchecked
    earlier.facts_["rule"] = 2
    assert "seeding_costs" in str(earlier.certificate_.verify(earlier, x))
