"""Bounds uniform over a class, each against its own tail inverted numerically, an enumeration
or a published number.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator

import mpmath as mp
import numpy as np
import pytest
from scipy import optimize, stats

from surelearn import bounds


def invert(log_tail, delta):
    """The deviation at which the decreasing ``log_tail`` reaches ln δ, to 40 digits."""
    with mp.workdps(40):
        low, high = mp.mpf(0), mp.mpf(1000)
        for _ in range(150):
            middle = (low + high) / 2
            low, high = (middle, high) if log_tail(middle) > mp.log(delta) else (low, middle)
        return float(low)


def devroye_tail(growth, n):
    """P(some member deviates by ε) ≤ 8·Π·e^{−nε²/32}, as a logarithm."""
    return lambda e: mp.log(8 * growth) - n * e**2 / 32


@pytest.mark.parametrize(
    ("n", "delta", "size"), [(1000, 0.05, 100), (7, 0.5, 1), (10**6, 1e-12, 2**40)]
)
def test_finite_class_inverts_the_union_bound(n, delta, size):
    slack = invert(lambda e: mp.log(size) - 2 * n * e**2, delta)
    assert bounds.finite_class(0.05, n, delta, size) == pytest.approx(0.05 + slack, rel=1e-12)
    assert bounds.finite_class(0.05, n, delta, 1) == pytest.approx(
        bounds.hoeffding(0.05, n, delta), rel=1e-14
    )


@pytest.mark.parametrize(
    ("n", "delta", "log_growth"), [(60000, 0.05, 50.0), (10, 0.9, 0.0), (10**6, 1e-9, 1000.0)]
)
def test_growth_function_bound_inverts_its_tail(n, delta, log_growth):
    slack = invert(devroye_tail(mp.exp(log_growth), n), delta)
    assert bounds.growth_function_bound(0.1, n, delta, log_growth) == pytest.approx(
        0.1 + slack, rel=1e-12
    )


@pytest.mark.parametrize("n", [1, 2, 10, 35, 64, 300])
def test_sauer_sum_in_whole_numbers(n):
    for d in range(n + 3):
        exact = sum(math.comb(n, i) for i in range(d + 1))
        assert bounds.sauer(n, d) == float(exact)
        assert bounds.sauer(n, d, log=True) == pytest.approx(math.log(exact), abs=1e-11)


@pytest.mark.parametrize(("n", "intervals"), [(6, 1), (8, 1), (8, 2), (9, 3)])
def test_sauer_is_attained_by_unions_of_intervals(n, intervals):
    labellings = itertools.product((0, 1), repeat=n)
    realized = sum(
        sum(b > a for a, b in itertools.pairwise((0, *labels))) <= intervals
        for labels in labellings
    )
    assert bounds.sauer(n, 2 * intervals) == realized


@pytest.mark.parametrize(("n", "d"), [(10, 3), (7, 7), (60000, 500), (10**6, 1)])
def test_sauer_power_form(n, d):
    with mp.workdps(40):
        exact = (mp.e * n / d) ** d
        assert bounds.sauer(n, d, form="power", log=True) == pytest.approx(
            float(mp.log(exact)), rel=1e-13
        )
    assert bounds.sauer(n, d, form="power") >= bounds.sauer(n, d)


def test_sauer_overflows_to_infinity_only_without_log():
    assert bounds.sauer(10**5, 5000) == math.inf
    assert math.isfinite(bounds.sauer(10**5, 5000, log=True))


@pytest.mark.parametrize(
    ("n", "d", "form", "match"),
    [(3, 4, "power", "vc_dimension"), (3, 0, "power", "vc_dimension"), (3, 1, "best", "form")],
)
def test_sauer_refuses_what_it_cannot_say(n, d, form, match):
    with pytest.raises(ValueError, match=match):
        bounds.sauer(n, d, form=form)


@pytest.mark.parametrize(("n", "d", "delta"), [(600, 7, 0.05), (7, 7, 0.5), (10**6, 100, 1e-9)])
def test_vc_inverts_its_tail(n, d, delta):
    with mp.workdps(40):
        growth = (mp.e * n / d) ** d
    slack = invert(devroye_tail(growth, n), delta)
    assert bounds.vc(0.05, n, delta, d) == pytest.approx(0.05 + slack, rel=1e-12)


def test_vc_published():
    assert round(bounds.vc(0.05, 600, 0.05, 7), 2) == 1.57


@pytest.mark.parametrize(
    ("risk", "n", "d", "delta"), [(0.05, 6000, 7, 0.05), (0.0, 6000, 7, 0.05), (0.4, 50, 20, 1e-6)]
)
def test_vapnik_solves_the_relative_deviation(risk, n, d, delta):
    # Vapnik (4.24): P(sup (R − r)/√R > ε) ≤ 4·exp(d(ln(2n/d) + 1) − nε²/4).
    e = invert(lambda e: mp.log(4) + d * (mp.log(mp.mpf(2 * n) / d) + 1) - n * e**2 / 4, delta)
    upper = optimize.brentq(lambda r: (r - risk) - e * math.sqrt(r), risk + 1e-9, 1e3, xtol=1e-14)
    assert bounds.vapnik(risk, n, delta, d) == pytest.approx(upper, rel=1e-10)


@pytest.mark.parametrize("vc_dimension", [1, 2, 3])
@pytest.mark.parametrize(("n", "ghost"), [(1, 1), (5, 5), (8, 12), (12, 40)])
def test_hypergeometric_tail_inversion_by_exhaustive_search(n, ghost, vc_dimension):
    total, delta = n + ghost, 0.5
    share = delta / (4 * sum(math.comb(total, i) for i in range(vc_dimension + 1)))
    for errors in range(n + 1):
        most = max(k for k in range(total + 1) if stats.hypergeom.cdf(errors, total, k, n) >= share)
        value = bounds.hypergeometric_tail_inversion(errors, n, delta, vc_dimension, ghost=ghost)
        assert value == pytest.approx(max(1, most - errors) / ghost)


def test_hypergeometric_tail_inversion_at_full_size():
    share = 0.05 / (4 * sum(math.comb(3000, i) for i in range(8)))
    marked = range(30, 3001)
    most = max(k for k in marked if stats.hypergeom.pmf(np.arange(31), 3000, k, 600).sum() >= share)
    assert bounds.hypergeometric_tail_inversion(30, 600, 0.05, 7) == (most - 30) / 2400
    assert (most - 30) / 2400 == pytest.approx(0.20, abs=0.005)


@pytest.mark.parametrize("errors", [3, 12])
def test_hypergeometric_tail_inversion_refuses_impossible_counts(errors):
    with pytest.raises(ValueError, match=r"errors|vc_dimension"):
        bounds.hypergeometric_tail_inversion(errors, 10, 0.05, 2 if errors > 10 else 0)


@pytest.mark.parametrize("index", [1, 2, 17])
def test_structural_risk_is_vc_at_its_share(index):
    share = float(mp.mpf("0.05") / (mp.zeta(2) * index**2))
    slack = invert(devroye_tail((mp.e * 60000 / 7) ** 7, 60000), share)
    assert bounds.structural_risk(0.05, 60000, 0.05, 7, index) == pytest.approx(
        0.05 + slack, rel=1e-10
    )


def shown_by(order):
    """Bit mask of the subsets that stumps along one axis cut off, the points being ranked along
    it as in ``order``.
    """
    full = (1 << len(order)) - 1
    prefixes = [0, *itertools.accumulate(1 << i for i in order)]
    return sum({1 << labels for prefix in prefixes for labels in (prefix, full - prefix)})


def stumps_shatter(k, d):
    """Whether some k points in R^d, given by their rank order on each axis, are shattered; ties
    only lose labellings.
    """
    shown = {shown_by(order) for order in itertools.permutations(range(k))}
    first, everything = shown_by(range(k)), (1 << (1 << k)) - 1
    choices = itertools.combinations_with_replacement(shown, d - 1)
    return any(functools.reduce(operator.or_, masks, first) == everything for masks in choices)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_vc_dimension_of_stumps_by_shattering(d):
    k = int(bounds.vc_dimension_of_stumps(d))
    assert stumps_shatter(k, d)
    assert not stumps_shatter(k + 1, d)


def test_vc_dimension_of_stumps_in_twelve_dimensions():
    k = int(bounds.vc_dimension_of_stumps(12))
    orders = [shown_by(order) for order in itertools.permutations(range(k))]
    covered = 0
    for _ in range(12):  # greedily
        covered |= max(orders, key=lambda mask: (mask & ~covered).bit_count())
    assert covered == (1 << (1 << k)) - 1
    # An axis shows at most two subsets of one size.
    sizes = [labels.bit_count() for labels in range(1 << (k + 1))]
    assert max(sizes.count(size) for size in sizes) > 2 * 12


def separable(points, labels, intercept):
    rows = np.column_stack([points, np.ones(len(points))]) if intercept else points
    signs = np.where(labels, -1.0, 1.0)[:, None]
    fit = optimize.linprog(
        np.zeros(rows.shape[1]), A_ub=signs * rows, b_ub=-np.ones(len(rows)), bounds=(None, None)
    )
    return fit.status == 0


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_vc_dimension_of_halfspaces_by_shattering(d, intercept):
    def shattered(points):
        return all(
            separable(points, labels, intercept)
            for labels in itertools.product((0, 1), repeat=len(points))
        )

    k = int(bounds.vc_dimension_of_halfspaces(d, intercept))
    points = np.vstack([np.eye(d), np.zeros((k - d, d))])
    assert shattered(points)
    rng = np.random.default_rng(d)
    assert not any(shattered(rng.normal(size=(k + 1, d))) for _ in range(5))


@pytest.mark.parametrize(
    ("w", "t", "q"), [(100, 1000, 10), (1, 1, 0), (3, 50, None), (100, 1000, None)]
)
def test_vc_dimension_of_sigmoid_network_in_bits(w, t, q):
    # The logarithms as exact integer powers: a·log₂ b is the number of bits of b^a.
    if q is None:
        expected = (t * w) ** 2 + t**2 * math.log2((9 * w) ** (19 * w))
    else:
        u = w * (q + 1)
        expected = u**2 + 11 * u * t + math.log2((9 * u) ** (11 * u))
    assert bounds.vc_dimension_of_sigmoid_network(w, t, q) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(("w", "fan_in", "k"), [(1000, 784, 128), (1, 1, 1), (50, 10, 1)])
def test_vc_dimension_of_two_layer_sigmoid_in_bits(w, fan_in, k):
    expected = math.log2((60 * fan_in * k) ** (2 * w))
    assert bounds.vc_dimension_of_two_layer_sigmoid(w, fan_in, k) == pytest.approx(
        expected, rel=1e-13
    )


@pytest.mark.parametrize(
    ("n", "rounds", "size", "delta"),
    [(60000, 10, 1000, 0.05), (600, 600, 2, 0.5), (50, 1, 1, 1e-9)],
)
def test_boosting_finite_inverts_its_tail(n, rounds, size, delta):
    with mp.workdps(40):
        growth = (mp.e * n * size / rounds) ** rounds
    slack = invert(devroye_tail(growth, n), delta)
    assert bounds.boosting_finite(0.1, n, delta, rounds, size) == pytest.approx(
        0.1 + slack, rel=1e-12
    )


@pytest.mark.parametrize(
    ("n", "rounds", "v", "delta"), [(600, 10, 7, 0.05), (600, 600, 600, 0.5), (10**6, 100, 6, 1e-9)]
)
def test_boosting_vc_inverts_its_tail(n, rounds, v, delta):
    with mp.workdps(40):
        growth = (mp.e * n / rounds) ** rounds * (mp.e * n / v) ** (v * rounds)
    slack = invert(devroye_tail(growth, n), delta)
    assert bounds.boosting_vc(0.1, n, delta, rounds, v) == pytest.approx(0.1 + slack, rel=1e-12)


def test_boosting_vc_published():
    assert round(bounds.boosting_vc(0.0, 600, 0.05, 10, 7), 4) == 4.8310


@pytest.mark.parametrize(
    ("bound", "inputs"),
    [
        (bounds.vapnik, {"vc_dimension": 11}),
        (bounds.vc, {"vc_dimension": 11}),
        (bounds.structural_risk, {"vc_dimension": 11, "index": 1}),
        (bounds.boosting_vc, {"rounds": 2, "vc_dimension": 11}),
        (bounds.boosting_vc, {"rounds": 11, "vc_dimension": 2}),
        (bounds.boosting_finite, {"rounds": 11, "size": 5}),
    ],
)
def test_too_few_rows_for_the_class_are_refused(bound, inputs):
    with pytest.raises(ValueError, match=r"n ≥|n must be at least"):
        bound(0.0, 10, 0.05, **inputs)
    assert math.isfinite(bound(0.0, 11, 0.05, **inputs))
