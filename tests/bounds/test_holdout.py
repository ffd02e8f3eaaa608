"""Bounds on fresh rows, each against a number found another way: exact sums, root finding, slow
loops, enumeration.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy import optimize, stats

from surelearn import bounds

LOSSES = np.random.default_rng(0).beta(0.5, 2.0, size=40)


def halve(above, low, high, steps=80):
    """The point of [low, high] from which on ``above`` is false."""
    low, high = mp.mpf(low), mp.mpf(high)
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return low


def binomial(counts, n, p):
    return mp.fsum(mp.binomial(n, i) * p**i * (1 - p) ** (n - i) for i in counts)


def bernoulli_kl(q, p):
    return mp.fsum(a * mp.log(a / b) for a, b in ((q, p), (1 - q, 1 - p)) if a > 0)


COUNTS = [
    (30, 1000, 0.05),
    (0, 59, 0.05),
    (1, 10, 0.1),
    (9, 10, 0.01),
    (100, 200, 1e-9),
    (1, 2, 0.5),
    (40, 90, 1e-80),
]
# SciPy's inverse beta functions fail here, to the unsound side or with NaN.
COUNTS += [
    (30, 1000, 1e-300),
    (36, 1593, 1e-257),
    (2, 5, 2e-108),
    (25, 31, 2.5e-243),
    (252, 256, 1e-160),
]


@pytest.mark.parametrize(("errors", "n", "delta"), COUNTS)
def test_clopper_pearson_is_the_root_of_the_binomial_cdf(errors, n, delta):
    with mp.workdps(50):
        root = halve(lambda p: binomial(range(errors + 1), n, p) >= delta, 0, 1)
        assert bounds.clopper_pearson(errors, n, delta) == pytest.approx(float(root), rel=1e-11)


@pytest.mark.parametrize(("errors", "n", "delta"), COUNTS)
def test_clopper_pearson_lower_is_the_root_of_the_binomial_tail(errors, n, delta):
    with mp.workdps(50):
        root = halve(lambda p: binomial(range(n - errors, n + 1), n, p) < delta, 0, 1)
        value = bounds.clopper_pearson_lower(n - errors, n, delta)
        # Below δ = 1e-80 it is 1 − upper, which may lose digits, but only to the safe side.
        assert value == pytest.approx(float(root), rel=1e-11, abs=1e-15 if delta < 1e-80 else 0)
        assert value <= root * (1 + mp.mpf(10) ** -11)


def test_clopper_pearson_agrees_with_scipy_and_the_published_numbers():
    def scipy_interval(alternative):
        return stats.binomtest(30, 1000, alternative=alternative).proportion_ci(
            0.95, method="exact"
        )

    assert bounds.clopper_pearson(30, 1000, 0.05) == pytest.approx(
        scipy_interval("less").high, rel=1e-9
    )
    assert bounds.clopper_pearson_lower(30, 1000, 0.05) == pytest.approx(
        scipy_interval("greater").low, rel=1e-9
    )
    assert bounds.clopper_pearson_interval(30, 1000, 0.05) == pytest.approx(
        tuple(scipy_interval("two-sided")), rel=1e-9
    )
    assert round(bounds.clopper_pearson(30, 1000, 0.05), 5) == 0.04047


@pytest.mark.parametrize(
    ("risk", "n", "delta"), [(0.03, 1000, 0.05), (0.0, 7, 0.3), (0.5, 20, 1e-9), (0.97, 50, 0.01)]
)
def test_chernoff_kl_spends_the_whole_budget(risk, n, delta):
    with mp.workdps(50):
        root = halve(
            lambda p: n * bernoulli_kl(mp.mpf(risk), p) <= -mp.log(delta), max(risk, 1e-40), 1
        )
        assert bounds.chernoff_kl(risk, n, delta) == pytest.approx(float(root), rel=1e-12)


def test_chernoff_kl_and_hoeffding_published():
    assert round(bounds.chernoff_kl(0.03, 1000, 0.05), 5) == 0.04512
    assert round(bounds.hoeffding(0.03, 1000, 0.05), 5) == 0.06870


@pytest.mark.parametrize(
    ("risk", "n", "delta"), [(0.03, 1000, 0.05), (0.4, 3, 0.9), (0.0, 10**6, 1e-300)]
)
def test_hoeffding_inverts_its_tail(risk, n, delta):
    slack = optimize.brentq(
        lambda e: -2 * n * e**2 - math.log(delta), 0, 1e3, xtol=1e-15, rtol=1e-14
    )
    assert bounds.hoeffding(risk, n, delta) == pytest.approx(risk + slack, rel=1e-12)


@pytest.mark.parametrize("delta", [0.05, 1e-6])
@pytest.mark.parametrize("losses", [LOSSES, (0.2, 0.9), (0.3,) * 10])
def test_empirical_bernstein_solved_for_delta(losses, delta):
    n = len(losses)
    # The variance as Maurer and Pontil define it, over pairs; the slack as a quadratic in s =
    # √ln(2/δ), solved for δ.
    variance = sum((a - b) ** 2 for a, b in itertools.combinations(losses, 2)) / (n * (n - 1))
    slack = bounds.empirical_bernstein(losses, delta) - sum(losses) / n
    s = np.roots([7 / (3 * (n - 1)), math.sqrt(2 * variance / n), -slack]).max()
    assert 2 * math.exp(-(s**2)) == pytest.approx(delta, rel=1e-9)


def test_empirical_bernstein_is_silent_about_one_row():
    assert bounds.empirical_bernstein([0.5], 0.05) == math.inf


def capital_of(losses, m, alpha, sign, anytime):
    """Largest capital of one hedged gambler against the mean m, row by row as Waudby-Smith and
    Ramdas define it.
    """
    n, capital, largest = len(losses), 1.0, 1.0
    total, squares, variance = 0.0, 0.0, 0.25
    for t, x in enumerate(losses, start=1):
        horizon = t * math.log(1 + t) if anytime else n
        bet = math.sqrt(2 * math.log(2 / alpha) / (variance * horizon))
        bet = min(bet, 0.75 / m if sign > 0 else 0.75 / (1 - m))
        capital *= 1 + sign * bet * (x - m)
        largest = max(largest, capital)
        total += x
        squares += (x - (0.5 + total) / (t + 1)) ** 2
        variance = (0.25 + squares) / (t + 1)
    return largest


@pytest.mark.parametrize("anytime", [False, True])
@pytest.mark.parametrize(
    "losses", [LOSSES, tuple(1 - LOSSES), (0.0, 0.0, 1.0, 0.0) * 8, (0.5,) * 30]
)
def test_betting_interval_against_a_grid_of_means(losses, anytime):
    grid = np.arange(0.0005, 1, 0.001)
    alive = [
        m
        for m in grid
        if max(capital_of(losses, m, 0.05, sign, anytime) for sign in (1, -1)) < 2 / 0.05
    ]
    low, high = bounds.betting_interval(losses, 0.05, anytime)
    assert alive[0] - 0.001 <= low <= alive[0]
    assert alive[-1] <= high <= alive[-1] + 0.001
    # One end alone has all of δ.
    assert bounds.betting_lower(losses, 0.025, anytime) == low
    assert bounds.betting_upper(losses, 0.025, anytime) == high


def test_betting_never_contradicts_the_mean_seen():
    # Rows sorted by loss break the assumption on their order; a gambler then refutes even the
    # sample's own mean.
    losses = (1.0,) * 50 + (0.0,) * 50
    assert capital_of(losses, 0.6, 0.05, 1, False) > 2 / 0.05
    low, high = bounds.betting_interval(losses, 0.05)
    assert low <= 0.5 <= high


@pytest.mark.parametrize("scale", [0.25, 8.0])
def test_betting_scales_with_the_loss(scale):
    low, high = bounds.betting_interval(LOSSES, 0.05)
    scaled = bounds.betting_interval(scale * LOSSES, 0.05, loss_bound=scale)
    assert scaled == pytest.approx((scale * low, scale * high), rel=1e-12)
    gain = bounds.paired_difference(0.2 * LOSSES, LOSSES, 0.05)
    scaled_gain = bounds.paired_difference(
        0.2 * scale * LOSSES, scale * LOSSES, 0.05, loss_bound=scale
    )
    assert scaled_gain == pytest.approx(scale * gain, rel=1e-12)


@pytest.mark.parametrize(
    ("losses", "baseline"),
    [
        ((0.0, 0.0, 0.0, 1.0) * 25, (1.0, 0.0, 0.0, 1.0) * 25),
        (LOSSES, LOSSES[::-1]),
        (LOSSES, (0.9,) * 40),
    ],
)
def test_paired_difference_bets_on_gains(losses, baseline):
    gains = np.subtract(baseline, losses)
    # In units of the gain g = 2m − 1: the capital 1 + λ(x − m) is 1 + (λ/2)(gain − g).
    grid = np.arange(-0.9995, 1, 0.001)
    refuted = [
        g for g in grid if capital_of((1 + gains) / 2, (1 + g) / 2, 0.1, 1, False) >= 1 / 0.05
    ]
    least = bounds.paired_difference(losses, baseline, 0.05)
    assert max(refuted, default=-1.0) <= least <= max(refuted, default=-1.0) + 0.001
    assert least <= gains.mean()


@pytest.mark.parametrize(
    "upper",
    [
        lambda k, n, delta: bounds.clopper_pearson(k, n, delta),
        lambda k, n, delta: bounds.chernoff_kl(k / n, n, delta),
        lambda k, n, delta: bounds.hoeffding(k / n, n, delta),
        lambda k, n, delta: bounds.empirical_bernstein([1.0] * k + [0.0] * (n - k), delta),
    ],
    ids=["clopper_pearson", "chernoff_kl", "hoeffding", "empirical_bernstein"],
)
@pytest.mark.parametrize("delta", [0.2, 0.05])
def test_upper_bounds_fail_at_most_as_often_as_they_say(upper, delta):
    n = 25
    uppers = np.array([upper(k, n, delta) for k in range(n + 1)])
    hardest = np.minimum(uppers[uppers < 1] + 1e-9, 1)  # just above a bound's value it fails most
    failures = [
        stats.binom.pmf(np.arange(n + 1), n, p)[uppers < p].sum()
        for p in (*hardest, *np.linspace(0, 1, 101))
    ]
    assert max(failures) <= delta * (1 + 1e-6)


@pytest.mark.parametrize("k", [0, 1, 12, 24])
def test_clopper_pearson_fails_exactly_as_often_as_it_says(k):
    p = bounds.clopper_pearson(k, 25, 0.05) + 1e-12
    assert stats.binom.cdf(k, 25, p) == pytest.approx(0.05, rel=1e-9)
    assert stats.binom.sf(k - 1, 25, bounds.clopper_pearson_lower(k, 25, 0.05)) == pytest.approx(
        0.05 if k else 1.0, rel=1e-9
    )


@pytest.mark.parametrize("anytime", [False, True])
def test_betting_fails_at_most_as_often_as_it_says(anytime):
    n, delta = 9, 0.2
    sequences = list(itertools.product((0.0, 1.0), repeat=n))
    intervals = np.array([bounds.betting_interval(x, delta, anytime) for x in sequences])
    ones = np.sum(sequences, axis=1)
    for p in np.linspace(0.01, 0.99, 99):
        missed = (intervals[:, 0] > p) | (p > intervals[:, 1])
        assert (p**ones * (1 - p) ** (n - ones))[missed].sum() <= delta
    assert ((intervals[:, 1] - intervals[:, 0]) < 1).any()


def test_after_selection_divides_delta_among_the_candidates():
    with mp.workdps(50):
        root = halve(lambda p: 12 * binomial(range(31), 1000, p) >= mp.mpf("0.05"), 0, 1)
    selected = bounds.after_selection(bounds.clopper_pearson, 12, errors=30, n=1000, delta=0.05)
    assert selected == pytest.approx(float(root), rel=1e-11)
    assert selected == bounds.clopper_pearson.certify(30, 1000, 0.05, candidates=12).value
    with pytest.raises(ValueError, match="candidates"):
        bounds.after_selection(bounds.clopper_pearson, 0, errors=30, n=1000, delta=0.05)


@pytest.mark.parametrize("alpha", ["0.5", "0.3", "0.25", "0.1", "0.05", "0.01", "0.9"])
def test_conformal_rank_counts_the_ranks_of_the_new_score(alpha):
    for n in range(1, 300):
        # The new score's rank among n + 1 exchangeable ones is uniform.
        covering = (k for k in range(1, n + 1) if Fraction(k, n + 1) >= 1 - Fraction(alpha))
        assert bounds.conformal_rank(n, float(alpha)) == next(covering, math.inf)


def test_conformal_rank_is_a_rank():
    assert bounds.conformal_rank(10, 1 - 1e-13) == 1


def exact_pac_rank(n, alpha, delta):
    """Smallest k with P(Bin(n, 1 − α) ≥ k) ≤ δ, in fractions."""
    alpha, delta, tail, best = Fraction(alpha), Fraction(delta), Fraction(0), math.inf
    for k in range(n, 0, -1):
        tail += math.comb(n, k) * (1 - alpha) ** k * alpha ** (n - k)
        if tail > delta:
            break
        best = k
    return best


@pytest.mark.parametrize("delta", [0.9, 0.1, 0.05, 0.01, 2.0**-5, 2.0**-10, 1e-12])
@pytest.mark.parametrize("alpha", [0.5, 0.25, 0.1, 0.05, 0.01])
def test_conformal_rank_pac_in_exact_fractions(alpha, delta):
    sizes = (*range(1, 40), 171, 300)
    assert bounds.conformal_rank_pac(sizes, alpha, delta).tolist() == [
        exact_pac_rank(n, alpha, delta) for n in sizes
    ]


def test_conformal_rank_pac_at_ties():
    # P(Bin(n, ½) ≥ (n + 1)/2) is exactly ½ for odd n; binom.isf alone misses it at 35, 39, 171, …
    for n in range(1, 200, 2):
        assert bounds.conformal_rank_pac(n, 0.5, 0.5) == (n + 1) / 2


@pytest.mark.parametrize(
    ("n", "alpha", "delta"), [(100, 0.1, 0.05), (29, 0.1, 0.05), (28, 0.1, 0.05), (500, 0.02, 0.1)]
)
def test_conformal_radius_by_order_statistics(n, alpha, delta):
    residuals = np.random.default_rng(1).exponential(size=n)
    # The coverage of the k-th smallest of n is Beta(k, n − k + 1).
    enough = (
        r
        for k, r in enumerate(sorted(residuals), 1)
        if stats.beta.cdf(1 - alpha, k, n - k + 1) <= delta
    )
    assert bounds.conformal_radius(residuals, alpha, delta) == next(enough, math.inf)


# --------------------------------------------------------------------------------------------- grou


def by_grid(losses, sizes, largest, delta):
    """The smallest risk of a grid from which on every one is refuted, by the capital written
    out as a product.
    """
    bets = bounds.holdout.predictable_bets
    guesses, total, count = [], 0.5, 1.0
    for loss, size in zip(losses, sizes, strict=True):
        guesses.append(total / count)
        total, count = total + loss, count + size
    seen = [
        1 - (s / largest + g * (1 - m / largest))
        for s, m, g in zip(losses, sizes, guesses, strict=True)
    ]
    stakes = bets(np.array(seen), delta, anytime=False)
    refuted = []
    for r in np.arange(1, 2000) / 2000:
        capital, highest = 1.0, 1.0
        for loss, size, stake in zip(losses, sizes, stakes, strict=True):
            capital *= 1 + min(stake, 0.75 / (1 - r)) * (r * size - loss) / largest
            highest = max(highest, capital)
        refuted.append(highest >= 1 / delta)
    assert refuted == sorted(refuted)  # all those above one number
    return (1 + refuted.index(True)) / 2000


def test_row_weighted_betting_is_the_inverted_test():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 8, 60)
    losses = rng.binomial(sizes, 0.2)
    upper = bounds.row_weighted_betting(losses, sizes, 9, 0.05)
    assert by_grid(losses, sizes, 9, 0.05) - 1 / 2000 <= upper <= by_grid(losses, sizes, 9, 0.05)
    assert bounds.row_weighted_betting(
        3.0 * losses, sizes, 9, 0.05, loss_bound=3.0
    ) == pytest.approx(3 * upper)
    assert upper < bounds.row_weighted_betting(losses, sizes, 30, 0.05)  # what is stated costs


def test_row_weighted_betting_of_equal_groups_is_betting_on_their_means():
    wrong = np.random.default_rng(1).integers(0, 5, 80)
    assert bounds.row_weighted_betting(wrong, np.full(80, 4), 4, 0.05) == pytest.approx(
        bounds.betting_upper(wrong / 4, 0.05)
    )


@pytest.mark.parametrize(
    ("losses", "sizes", "largest", "message"),
    [
        ([0, 1], [1, 3], 2, "sizes must lie in"),
        ([2, 0], [1, 3], 3, "must not exceed its size"),
        ([0], [1, 3], 3, "same length"),
        ([0, 1], [0, 1], 3, "sizes must lie in"),
        ([0, 1], [1, 1], 0, "largest_group"),
    ],
)
def test_row_weighted_betting_refuses(losses, sizes, largest, message):
    with pytest.raises(ValueError, match=message):
        bounds.row_weighted_betting(losses, sizes, largest, 0.05)
