"""Do the claims hold as often as they say?

Exact sums where the outcomes can be listed, simulation elsewhere. A tight theorem is tried near its
worst case, must not be violated with more than δ, and must be once its slack is halved. Loose
theorems need only hold. Mutants are wrong uses whose broken coverage is shown, beside the right use
that repairs it.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import beta, binom
from tests.simulation import at_most, enough, limit

from surelearn import bounds as b

DELTA = 0.05


def violations_at_most(rate: float, delta: float, trials: int) -> bool:
    """Whether a rate of violations seen in so many trials agrees with a probability ≤ δ: at
    most 4 standard errors above.
    """
    return rate <= delta + 4 * math.sqrt(delta * (1 - delta) / trials)


def violations_at_least(rate: float, delta: float, trials: int) -> bool:
    """The same from the other side: whether it agrees with a probability ≥ δ."""
    return rate >= delta - 4 * math.sqrt(delta * (1 - delta) / trials)


def mean_at_most(values, bound: float) -> bool:
    """Whether the mean of a sample agrees with an expectation ≤ bound: at most 4 standard
    errors above.
    """
    return bool(np.mean(values) <= bound + 4 * np.std(values) / math.sqrt(np.size(values)))


def halved(measured, bound):
    """The bound with half its slack; every tight theorem must break under it."""
    return measured + (bound - measured) / 2


def worst_violation(errors, n: int, *, upper=np.inf, lower=-np.inf) -> float:
    """The largest probability, over all error rates p, that p lies outside the bounds: exact, for a
    list of all outcomes.

    Each outcome has its count of errors among n and its bounds; outcomes of equal count are equally
    likely. The probability jumps only where p crosses a bound, so it is enough to look just beyond
    each of them.
    """
    upper, lower = np.broadcast_to(upper, errors.shape), np.broadcast_to(lower, errors.shape)
    p = np.unique(np.concatenate([upper + 1e-12, lower - 1e-12]))
    p = p[(p > 0) & (p < 1), None]
    probability = binom.pmf(errors, n, p) / np.bincount(errors)[errors]
    return float((probability * ((p > upper) | (p < lower))).sum(axis=1).max())


# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [20, 50, 200])
def test_clopper_pearson_is_exact_at_its_worst_p(n):
    k = np.arange(n + 1)
    upper, lower = b.clopper_pearson(k, n, DELTA), b.clopper_pearson_lower(k, n, DELTA)
    low, high = b.clopper_pearson_interval(k, n, DELTA)
    for worst in (
        worst_violation(k, n, upper=upper),
        worst_violation(k, n, lower=lower),
        worst_violation(k, n, lower=low, upper=high),
    ):
        assert DELTA / 2 <= worst <= DELTA
    assert worst_violation(k, n, upper=halved(k / n, upper)) > 3 * DELTA
    assert worst_violation(k, n, lower=halved(k / n, lower)) > 3 * DELTA


@pytest.mark.parametrize("theorem", [b.chernoff_kl, b.hoeffding], ids=lambda t: t.key)
@pytest.mark.parametrize("n", [20, 50, 200])
def test_chernoff_and_hoeffding_hold_at_every_p(theorem, n):
    k = np.arange(n + 1)
    upper = theorem(k / n, n, DELTA)
    assert worst_violation(k, n, upper=upper) <= DELTA
    assert worst_violation(k, n, upper=halved(k / n, upper)) > 2 * DELTA


def test_chernoff_is_exact_where_zero_errors_just_miss():
    n, p = 50, 1 - DELTA ** (1 / 50) + 1e-9  # the bound from 0 errors is 1 − δ^{1/n}
    k = np.arange(n + 1)
    assert binom.pmf(k, n, p)[b.chernoff_kl(k / n, n, DELTA) < p].sum() == pytest.approx(
        DELTA, rel=1e-5
    )


def test_hoeffding_at_one_half():
    n, p = 100, 0.5  # even here the exponential tail is about 8 times the normal one: 0.6% for 5%
    k = np.arange(n + 1)
    upper = b.hoeffding(k / n, n, DELTA)
    assert DELTA / 10 < binom.pmf(k, n, p)[upper < p].sum() < DELTA
    assert binom.pmf(k, n, p)[halved(k / n, upper) < p].sum() > 1.8 * DELTA


def test_empirical_bernstein_at_one_half():
    # many rows, so that 7 ln(2/δ)/3(n − 1) is small; with 1,000 half the slack is 5.3%, hardly seen
    n, p = 20_000, 0.5
    k = np.arange(n // 2 - 500, n // 2 + 500)  # 7 standard deviations either side
    upper = np.array(
        [b.empirical_bernstein(np.repeat([1.0, 0.0], [errors, n - errors]), DELTA) for errors in k]
    )
    probability = binom.pmf(k, n, p)
    # loose by its two-sided ln(2/δ) and by the exponential tail
    assert probability[upper < p].sum() < DELTA / 10
    assert probability[halved(k / n, upper) < p].sum() > 1.5 * DELTA


@pytest.mark.parametrize(
    ("bound", "p", "least"),
    [
        (
            lambda k, n: b.clopper_pearson(k, n, DELTA),
            b.clopper_pearson(5, 60, DELTA) + 1e-9,
            DELTA / 2,
        ),
        (
            lambda k, n: 1 - b.clopper_pearson_lower(n - k, n, DELTA),
            b.clopper_pearson(5, 60, DELTA) + 1e-9,
            DELTA / 2,
        ),
        (
            lambda k, n: b.chernoff_kl(k / n, n, DELTA),
            b.chernoff_kl(0, 60, DELTA) + 1e-9,
            DELTA / 2,
        ),
        (lambda k, n: b.hoeffding(k / n, n, DELTA), 0.5, 0.0),
    ],
    ids=["clopper_pearson", "clopper_pearson_lower", "chernoff_kl", "hoeffding"],
)
def test_count_bounds_in_simulation(bound, p, least):
    n, trials = 60, 100_000
    rows = np.random.default_rng(0).random((trials, n)) < p
    rate = (bound(rows.sum(axis=1), n) < p).mean()
    assert violations_at_most(rate, DELTA, trials)
    assert violations_at_least(rate, least, trials)


# --------------------------------------------------------------------------------------------------

SEQUENCES = np.array(list(itertools.product((0, 1), repeat=10)))


@pytest.fixture(scope="module")
def lower_after_each_row():
    """Betting's lower ends on every 0/1 sequence, after each of its rows: anytime → (sequences,
    rows).
    """
    lower = {
        (anytime, prefix): b.betting_lower(prefix, DELTA, anytime)
        for anytime in (False, True)
        for rows in range(1, SEQUENCES.shape[1] + 1)
        for prefix in itertools.product((0, 1), repeat=rows)
    }
    rows = range(1, SEQUENCES.shape[1] + 1)
    return {
        anytime: np.array(
            [[lower[anytime, tuple(s[:t])] for t in rows] for s in SEQUENCES.tolist()]
        )
        for anytime in (False, True)
    }


def test_betting_on_every_sequence_at_every_p(lower_after_each_row):
    k, n = SEQUENCES.sum(axis=1), SEQUENCES.shape[1]
    lower = lower_after_each_row[False][:, -1]
    assert DELTA / 2 <= worst_violation(k, n, lower=lower) <= DELTA
    assert worst_violation(k, n, lower=halved(k / n, lower)) > 3 * DELTA
    upper = np.array([b.betting_upper(s, DELTA) for s in SEQUENCES])
    assert DELTA / 2 <= worst_violation(k, n, upper=upper) <= DELTA
    low, high = np.transpose([b.betting_interval(s, DELTA) for s in SEQUENCES])
    assert DELTA / 4 <= worst_violation(k, n, lower=low, upper=high) <= DELTA


def test_anytime_betting_looked_at_after_every_row_of_every_sequence(lower_after_each_row):
    k, n = SEQUENCES.sum(axis=1), SEQUENCES.shape[1]
    # p is violated by some look iff it lies below the highest
    highest = lower_after_each_row[True].max(axis=1)
    assert DELTA / 2 <= worst_violation(k, n, lower=highest) <= DELTA


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "mean"),
    [
        (lambda rng, shape: rng.binomial(1, 0.5, shape), 0.5),
        (lambda rng, shape: rng.binomial(1, 0.1, shape), 0.1),
        (lambda rng, shape: rng.beta(2, 2, shape), 0.5),
        (lambda rng, shape: rng.beta(0.5, 1.5, shape), 0.25),
    ],
    ids=["coin", "rare", "beta(2, 2)", "beta(1/2, 3/2)"],
)
def test_betting_in_simulation(draw, mean):
    trials, n = 1000, 200
    losses = draw(np.random.default_rng(1), (trials, n))
    measured = losses.mean(axis=1)
    upper = np.array([b.betting_upper(row, DELTA) for row in losses])
    lower = np.array([b.betting_lower(row, DELTA) for row in losses])
    low, high = np.transpose([b.betting_interval(row, DELTA) for row in losses])
    assert violations_at_most((upper < mean).mean(), DELTA, trials)
    assert violations_at_most((lower > mean).mean(), DELTA, trials)
    assert violations_at_most(((low > mean) | (high < mean)).mean(), DELTA, trials)
    assert not violations_at_most((halved(measured, upper) < mean).mean(), DELTA, trials)
    assert not violations_at_most((halved(measured, lower) > mean).mean(), DELTA, trials)


@pytest.mark.slow
@pytest.mark.parametrize("anytime", [True, False])
def test_looking_often_is_for_anytime_betting_only(anytime):
    """Of up to 400 sequences as many as it takes: bounds that are not anytime until they are
    below p too often whatever the rest would be, the others by `tests.simulation`.
    """
    most, p = 400, 0.5
    coins = np.random.default_rng(2).binomial(1, p, (most, 2000))
    looks = np.unique(np.geomspace(1, 2000, 60).astype(int))
    below = trials = 0
    while trials == 0 or not (enough([(below, DELTA)], trials, most) or below > limit(DELTA, most)):
        row, trials = coins[trials], trials + 1
        below += any(b.betting_upper(row[:t], DELTA, anytime) < p for t in looks)
    # bets made for n are no longer fair over many n
    assert at_most(below, DELTA, trials) == anytime


def test_mutant_clopper_pearson_looked_at_after_every_row():
    trials, n, p = 500, 1000, 0.5
    errors = np.cumsum(np.random.default_rng(3).random((trials, n)) < p, axis=1)
    below = b.clopper_pearson(errors, np.arange(1, n + 1), DELTA) < p
    assert violations_at_most(below[:, -1].mean(), DELTA, trials)
    assert below.any(axis=1).mean() > 0.25


def test_paired_difference_of_correlated_classifiers():
    trials, n = 2000, 200
    only_baseline, only_model, both = 0.3, 0.2, 0.1
    kind = np.random.default_rng(4).choice(4, (trials, n), p=[only_baseline, only_model, both, 0.4])
    losses, baseline = (kind == 1) | (kind == 2), (kind == 0) | (kind == 2)
    gain = only_baseline - only_model
    measured = baseline.mean(axis=1) - losses.mean(axis=1)
    lower = np.array(
        [b.paired_difference(*pair, DELTA) for pair in zip(losses, baseline, strict=True)]
    )
    rate = (lower > gain).mean()
    assert violations_at_most(rate, DELTA, trials)
    assert violations_at_least(rate, DELTA / 2, trials)
    assert not violations_at_most((halved(measured, lower) > gain).mean(), DELTA, trials)


@pytest.mark.parametrize("largest", [2, 5])
def test_row_weighted_betting_on_every_sequence_of_large_hard_and_small_easy_groups(largest):
    """A group has all its ``largest`` rows wrong (with probability q), or one row, right: R =
    qM/(qM + 1 − q).
    """
    k, n = SEQUENCES.sum(axis=1), SEQUENCES.shape[1]
    losses, sizes = SEQUENCES * largest, np.where(SEQUENCES, largest, 1)
    measured = losses.sum(axis=1) / sizes.sum(axis=1)

    def worst(risk):
        # the q that has this risk
        return worst_violation(k, n, upper=risk / (risk + largest * (1 - risk)))

    upper = np.array(
        [b.row_weighted_betting(s, m, largest, DELTA) for s, m in zip(losses, sizes, strict=True)]
    )
    assert DELTA / 3 <= worst(upper) <= DELTA
    assert worst(halved(measured, upper)) > 3 * DELTA
    # Mutants: rows counted as if independent; and the mean over groups read as a claim about rows.
    assert worst(b.clopper_pearson(losses.sum(axis=1), sizes.sum(axis=1), DELTA)) > 3 * DELTA
    assert worst(np.array([b.betting_upper(s, DELTA) for s in SEQUENCES])) > 3 * DELTA


# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2])
def test_pac_rank_is_the_smallest_that_is_safe(alpha):
    n = np.arange(1, 500)
    rank = b.conformal_rank_pac(n, alpha, DELTA)
    k = np.where(np.isinf(rank), n + 1, rank)  # rank n + 1 is +∞ and covers all
    # The k-th smallest of n covers a Beta(k, n + 1 − k) share of new rows.
    finite = k <= n
    assert (beta.cdf(1 - alpha, k, n + 1 - k)[finite] <= DELTA).all()
    assert (beta.cdf(1 - alpha, k - 1, n + 2 - k)[k > 1] > DELTA).all()
    assert not finite[0]
    assert finite[-1]


def test_pac_rank_covers_as_often_as_it_says():
    n, alpha, trials = 300, 0.1, 20_000
    residuals = np.random.default_rng(5).exponential(size=(trials, n))
    radius = np.array([b.conformal_radius(row, alpha, DELTA) for row in residuals])
    rate = (-np.expm1(-radius) < 1 - alpha).mean()  # the share of new residuals within the radius
    assert violations_at_most(rate, DELTA, trials)
    assert violations_at_least(rate, DELTA / 2, trials)

    half_the_excess = math.ceil(halved(n * (1 - alpha), b.conformal_rank_pac(n, alpha, DELTA)))
    coverage = -np.expm1(-np.sort(residuals, axis=1)[:, half_the_excess - 1])
    assert not violations_at_most((coverage < 1 - alpha).mean(), DELTA, trials)


def test_mutant_marginal_rank_read_as_a_claim_about_this_calibration():
    n, alpha, trials = 300, 0.1, 10_000
    # uniform: a score is its own coverage
    scores = np.sort(np.random.default_rng(6).random((trials, n)), axis=1)
    coverage = scores[:, int(b.conformal_rank(n, alpha)) - 1]
    assert mean_at_most(1 - coverage, alpha)  # what it says: in expectation
    # and one rank less does not
    assert not mean_at_most(1 - scores[:, int(b.conformal_rank(n, alpha)) - 2], alpha)
    assert 0.4 < (coverage < 1 - alpha).mean() < 0.6  # what it does not say


# --------------------------------------------------------------------------------------------------


def best_of(size: int, n: int, p: float, trials: int, seed: int) -> np.ndarray:
    """Errors among n rows of the best of ``size`` independent classifiers, each of risk p."""
    return np.random.default_rng(seed).binomial(n, p, (trials, size)).min(axis=1)


def test_finite_class_covers_its_empirical_best():
    size, n, p, trials = 100, 200, 0.5, 20_000
    risk = best_of(size, n, p, trials, seed=7) / n
    bound = b.finite_class(risk, n, DELTA, size)
    assert violations_at_most((bound < p).mean(), DELTA, trials)
    assert not violations_at_most((halved(risk, bound) < p).mean(), DELTA, trials)
    # the mutant without ln size
    assert not violations_at_most((b.hoeffding(risk, n, DELTA) < p).mean(), DELTA, trials)


@pytest.mark.parametrize(
    "theorem",
    [b.pac_bayes_kl, b.pac_bayes_quadratic, b.mcallester, lambda *inputs: b.catoni(*inputs, c=0.5)],
    ids=["pac_bayes_kl", "pac_bayes_quadratic", "mcallester", "catoni"],
)
def test_pac_bayes_covers_a_posterior_on_the_empirical_best(theorem):
    size, n, p, trials = 1000, 500, 0.3, 10_000
    risk = best_of(size, n, p, trials, seed=8) / n
    bound = theorem(risk, math.log(size), n, DELTA)  # uniform prior, all mass on one: KL = ln size
    assert violations_at_most((bound < p).mean(), DELTA, trials)
    assert not violations_at_most((halved(risk, bound) < p).mean(), DELTA, trials)


def test_mutant_naive_best_of_twelve():
    candidates, n, p, trials = 12, 200, 0.5, 20_000
    errors = best_of(candidates, n, p, trials, seed=9)
    naive = (b.clopper_pearson(errors, n, DELTA) >= p).mean()
    assert 0.58 < naive < 0.66  # 62% instead of 95%
    repaired = b.after_selection(b.clopper_pearson, candidates, errors=errors, n=n, delta=DELTA)
    assert violations_at_most((repaired < p).mean(), DELTA, trials)
    assert violations_at_least((repaired < p).mean(), DELTA / 2, trials)
    claim = b.clopper_pearson.certify(int(errors[0]), n, DELTA, candidates=candidates)
    assert claim.value == repaired[0]
    assert claim.confidence == 1 - DELTA


# ------------------------------------------------------------------------------ predictors fitted o


def boxes(trials: int, n: int, d: int, seed: int):
    """Bounding boxes of n uniform rows in [0, 1]^d: how many rows determine each, and the risk
    of a row outside.
    """
    rows = np.random.default_rng(seed).random((trials, n, d))
    risk = 1 - np.prod(rows.max(axis=1) - rows.min(axis=1), axis=1)
    sides = np.sort(np.concatenate([rows.argmin(axis=1), rows.argmax(axis=1)], axis=1), axis=1)
    return 1 + (np.diff(sides, axis=1) > 0).sum(axis=1), risk


@pytest.mark.parametrize("d", [1, 2, 3])
def test_compression_bounds_cover_bounding_boxes(d):
    trials, n = 20_000, 50
    size, risk = boxes(trials, n, d, seed=10)
    for theorem in (b.campi_garatti, b.floyd_warmuth):
        bound = theorem(np.arange(2 * d + 1), n, DELTA)[size]
        assert violations_at_most((bound < risk).mean(), DELTA, trials)
    # Campi and Garatti pay about twice the smallest conceivable; Floyd and Warmuth are loose, half
    # the slack still covers.
    assert not violations_at_most(
        (b.campi_garatti(np.arange(2 * d + 1), n, DELTA)[size] / 2 < risk).mean(), DELTA, trials
    )
    assert (b.floyd_warmuth(np.arange(2 * d + 1), n, DELTA)[size] / 4 < risk).mean() > 2 * DELTA


def best_thresholds(trials: int, n: int, noise: float, seed: int):
    """Fit 1[x > t] to noisy labels of 1[x > ½] by least errors, t a row: (errors, whether a row
    was needed, risk).
    """
    rng = np.random.default_rng(seed)
    x = np.sort(rng.random((trials, n)), axis=1)
    y = (x > 0.5) ^ (rng.random((trials, n)) < noise)
    ones_below = np.concatenate([np.zeros((trials, 1), int), np.cumsum(y, axis=1)], axis=1)
    zeros_above = n - np.arange(n + 1) - (ones_below[:, -1:] - ones_below)
    below = (ones_below + zeros_above).argmin(axis=1)
    t = np.concatenate([np.zeros((trials, 1)), x], axis=1)[np.arange(trials), below]
    return (
        (ones_below + zeros_above).min(axis=1),
        (below > 0).astype(int),
        noise + (1 - 2 * noise) * abs(t - 0.5),
    )


@pytest.mark.parametrize("noise", [0.0, 0.2, 0.5])
def test_capacity_and_compression_bounds_cover_fitted_thresholds(noise):
    trials, n = 5000, 200
    errors, size, risk = best_thresholds(trials, n, noise, seed=11)
    measured, k = errors / n, np.arange(n + 1)
    for upper, share in (
        (b.hypergeometric_tail_inversion(k, n, DELTA, vc_dimension=1)[errors], 1 / 2),
        # the row at the threshold is never an error
        (b.floyd_warmuth(size, n, DELTA, errors=errors), 1 / 2),
        # loose from here on: half the slack still covers
        (b.vapnik(measured, n, DELTA, vc_dimension=1), 1 / 8),
        (b.growth_function_bound(measured, n, DELTA, log_growth=math.log(n + 1)), 1 / 20),
        (b.vc(measured, n, DELTA, vc_dimension=1), 1 / 20),
    ):
        assert violations_at_most((upper < risk).mean(), DELTA, trials)
        if noise == 0.5:  # the worst case: every threshold errs on half of new rows
            assert not violations_at_most(
                (measured + share * (upper - measured) < risk).mean(), DELTA, trials
            )


# --------------------------------------------------------------------------------------------------


def cluster_and_outlier(miss: float) -> np.ndarray:
    """Points on the line where missing the outlier costs ``miss`` times the optimum; 2/(2 +
    miss) of seedings do.
    """
    return np.array([-1.0] * 15 + [1.0] * 15 + [1.0 + math.sqrt(30 * miss)])


def seeding_costs(points, k: int, seedings: int, seed: int) -> np.ndarray:
    """Costs of independent plain D² seedings, one candidate a step (of several, the best: that
    is greedy, not covered).
    """
    rng = np.random.default_rng(seed)
    nearest = (points - rng.choice(points, (seedings, 1))) ** 2
    for _ in range(k - 1):
        drawn = rng.random((seedings, 1)) * nearest.sum(axis=1, keepdims=True)
        chosen = (np.cumsum(nearest, axis=1) > drawn).argmax(axis=1)
        nearest = np.minimum(nearest, (points - points[chosen, None]) ** 2)
    return nearest.sum(axis=1)


def optimal_cost_of_two(points) -> float:
    """The optimal 2-means cost on the line: optimal clusters are contiguous, so every cut is
    tried.
    """
    points = np.sort(points)
    return min(
        points[:i].var() * i + points[i:].var() * (len(points) - i) for i in range(1, len(points))
    )


def test_kmeans_seeding_ratio_in_the_mean():
    points = cluster_and_outlier(miss=20.0)
    ratio = seeding_costs(points, 2, 50_000, seed=13) / optimal_cost_of_two(points)
    assert mean_at_most(ratio, b.kmeans_plus_plus_ratio(2))
    # a miss is rare but dear; 8(ln k + 2) is for worse points than these
    assert not mean_at_most(ratio, 3.0)


@pytest.mark.parametrize("seedings", [1, 2])
def test_kmeans_optimum_lower_bound(seedings):
    trials, k = 10_000, 2
    # just dear enough to refute the optimum by δ^{1/R}
    points = cluster_and_outlier(miss=1.05 * DELTA ** (-1 / seedings))
    optimum = optimal_cost_of_two(points)
    costs = seeding_costs(points, k, trials * seedings, seed=14).reshape(trials, seedings)
    lower = np.array([b.kmeans_optimum_lower_bound(row, k, DELTA) for row in costs])
    assert violations_at_most((lower > optimum).mean(), DELTA, trials)
    # The mutant that takes the optimum for a seeding's expected cost, without the factor 8(ln k +
    # 2):
    assert not violations_at_most(
        (lower * b.kmeans_plus_plus_ratio(k) > optimum).mean(), DELTA, trials
    )


# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "looseness"),
    [(None, 2.0), (2.0 * 2.0 / (3.0 * 99), 1.05)],
    ids=["best step", "small step"],
)
def test_averaged_sgd_reaches_what_it_says_in_the_mean(step, looseness):
    norm_bound, lipschitz, iterations, trials = 2.0, 3.0, 100, 20_000
    # A linear loss z·w with z = ±ρ, whose mean is such that the steps only just lead from 0 to −B:
    # the worst case.
    eta = step or norm_bound / (lipschitz * math.sqrt(iterations))
    mean = norm_bound / (eta * (iterations - 1))
    z = np.where(
        np.random.default_rng(15).random((trials, iterations)) < (1 + mean / lipschitz) / 2,
        lipschitz,
        -lipschitz,
    )
    iterates = -eta * (np.cumsum(z, axis=1) - z)  # w₁ = 0
    excess = mean * iterates.mean(axis=1) + mean * norm_bound
    bound = b.sgd_learnability(norm_bound, lipschitz, iterations, step=step)
    assert mean_at_most(excess, bound)
    assert not mean_at_most(excess, bound / looseness / 1.1)


def test_expected_gap_of_a_learner_that_remembers():
    stability, n, values, trials = 0.3, 20, 1000, 5000
    # Its loss is 0 on remembered rows and β on others: replacing a row changes it by β, and that
    # much it misjudges.
    rows = np.sort(np.random.default_rng(16).integers(values, size=(trials, n)), axis=1)
    remembered = 1 + (np.diff(rows, axis=1) > 0).sum(axis=1)
    gap = stability * (1 - remembered / values)  # the risk; its training risk is 0
    assert mean_at_most(gap, b.expected_gap(stability))
    assert not mean_at_most(gap, b.expected_gap(stability / 2))


def test_expected_gap_of_tikhonov_regularization():
    lipschitz, regularization, n, trials = 1.0, 0.1, 50, 50_000
    z = np.random.default_rng(17).choice([-lipschitz, lipschitz], (trials, n)).mean(axis=1)
    w = -z / (2 * regularization)  # minimizes the mean of z·w plus λw²
    gap = -z * w  # a new z averages 0, so the risk is 0 and the training risk z·w
    stability = b.beta_tikhonov(lipschitz, regularization, n)
    assert mean_at_most(gap, b.expected_gap(stability))
    assert not mean_at_most(gap, b.expected_gap(stability / 2.2))  # exactly β/2 for a linear loss


# --------------------------------------------------------------------------------------------------


def test_mutant_certifying_on_the_rows_of_the_fit():
    trials, n = 200, 100
    rng = np.random.default_rng(18)
    # labels are noise: every predictor has risk ½
    x, y = rng.random((trials, n)), rng.random((trials, n)) < 0.5

    def errors_of_nearest_neighbour(new_x, new_y):
        nearest = abs(new_x[:, :, None] - x[:, None, :]).argmin(axis=2)
        return (np.take_along_axis(y, nearest, axis=1) != new_y).sum(axis=1)

    reused = b.clopper_pearson(errors_of_nearest_neighbour(x, y), n, DELTA)
    assert (reused < 0.5).all()
    fresh = errors_of_nearest_neighbour(rng.random((trials, n)), rng.random((trials, n)) < 0.5)
    assert violations_at_most((b.clopper_pearson(fresh, n, DELTA) < 0.5).mean(), DELTA, trials)


def test_mutant_thresholds_certified_on_the_rows_that_chose_them():
    trials, n = 5000, 200
    errors, _, risk = best_thresholds(trials, n, 0.5, seed=19)
    assert (b.clopper_pearson(errors, n, DELTA) < risk).mean() > 0.25


def built_from_earlier_results(trials: int, n: int, uses: int, seed: int) -> np.ndarray:
    """Errors of the models certified on the same n rows, one after the other, the last built from
    what the others showed.

    Labels are noise, so that every model has risk ½. The first are random classifiers; of each and
    its opposite, the one that looked better is kept, and the last model is the vote of those kept.
    """
    wrong = np.random.default_rng(seed).random((trials, uses - 1, n)) < 0.5
    kept = wrong ^ (wrong.mean(axis=2, keepdims=True) > 0.5)
    vote = kept.sum(axis=1) > (uses - 1) / 2
    return np.concatenate([wrong.sum(axis=2), vote.sum(axis=1, keepdims=True)], axis=1)


def test_mutant_the_same_certify_rows_twenty_times():
    trials, n, uses = 2000, 100, 20
    below = b.clopper_pearson(built_from_earlier_results(trials, n, uses, seed=20), n, DELTA) < 0.5
    # the first use is what the rows are for
    assert violations_at_most(below[:, 0].mean(), DELTA, trials)
    assert below[:, :-1].any(axis=1).mean() > 0.4  # trying seeds: the best of nineteen
    assert below[:, -1].mean() > 0.85  # learning from them


def test_paying_for_later_uses_covers_only_models_that_did_not_learn_from_earlier_ones():
    trials, n, uses = 2000, 100, 40
    k = np.arange(1, uses + 1)
    delta = np.where(k == 1, DELTA, DELTA * 6 / (np.pi * k) ** 2)  # together 1.4·δ
    below = b.clopper_pearson(built_from_earlier_results(trials, n, uses, seed=21), n, delta) < 0.5
    assert violations_at_most(below[:, :-1].any(axis=1).mean(), delta.sum(), trials)
    # a union over k does not pay for what the results told the fortieth model
    assert below[:, -1].mean() > 0.25


def test_mutant_stratified_certify_rows():
    trials, n = 5000, 200
    share, error = np.array([0.9, 0.1]), np.array([0.3, 0.0])  # the frequent class is the hard one
    risk = share @ error
    rng = np.random.default_rng(22)

    def errors_among(classes):
        return (rng.random((trials, n)) < error[classes]).sum(axis=1)

    balanced = errors_among(np.arange(n) % 2)
    assert (b.clopper_pearson(balanced, n, DELTA) < risk).mean() > 0.9
    uniform = errors_among(rng.choice(2, (trials, n), p=share))
    assert violations_at_most((b.clopper_pearson(uniform, n, DELTA) < risk).mean(), DELTA, trials)


@pytest.mark.parametrize("copies_travel_together", [True, False])
def test_mutant_copies_that_travel_together(copies_travel_together):
    trials, n, values = 2000, 300, 30
    rng = np.random.default_rng(23)
    label = np.arange(values) < 9  # 30 distinct rows, 9 of them positive
    rows = rng.integers(values, size=(trials, n))
    if copies_travel_together:
        chosen = rng.permuted(np.tile(np.arange(values) < values // 3, (trials, 1)), axis=1)
        certify = np.take_along_axis(chosen, rows, axis=1)
    else:
        certify = rng.random((trials, n)) < 1 / 3
    y = label[rows]
    # the model: the majority of the rows to fit
    guess = (y & ~certify).sum(axis=1) * 2 > (~certify).sum(axis=1)
    risk = np.where(guess, 1 - label.mean(), label.mean())
    errors = ((y != guess[:, None]) & certify).sum(axis=1)
    rate = (b.clopper_pearson(errors, certify.sum(axis=1), DELTA) < risk).mean()
    if copies_travel_together:
        assert 0.2 < rate < 0.4  # ten values, not a hundred rows, are what was drawn
    else:
        assert violations_at_most(rate, DELTA, trials)
