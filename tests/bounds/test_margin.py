"""Margin bounds against their proofs' union bounds, inverted or minimized by brute force at
high precision.
"""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import optimize

from surelearn import bounds


def exact(value):
    return pytest.approx(float(value), rel=1e-11)


@pytest.mark.parametrize(("n", "v"), [(600, 7), (60000, 7), (10, 10), (10**6, 1)])
def test_smallest_margin_is_where_the_vote_has_no_members(n, v):
    # k = ⌈(4/θ²)·ln(nθ²/(8V·ln(en/V)))⌉ members are drawn; the logarithm vanishes at θ_min.
    theta = optimize.brentq(
        lambda t: n * t**2 - 8 * math.log((math.e * n / v) ** v), 0, 10, xtol=1e-15
    )
    assert bounds.smallest_margin(n, v) == pytest.approx(theta, rel=1e-12)


def test_smallest_margin_published():
    assert round(bounds.smallest_margin(600, 7), 4) == 0.7133


@pytest.mark.parametrize(
    ("n", "delta", "theta", "v"),
    [(60000, 0.05, 0.5, 7), (600, 0.05, 0.72, 7), (10**7, 1e-9, 0.05, 20), (10**5, 0.5, 1.0, 1)],
)
def test_boosting_margin_vc_by_counting_members(n, delta, theta, v):
    with mp.workdps(40):
        theta = mp.mpf(theta)
        growth = (mp.e * n / v) ** v
        k = 0
        while mp.exp(k * theta**2 / 4) * 8 * mp.log(growth) < n * theta**2:
            k += 1
        # The tail of the union over k and its k + 1 thresholds: 8·k(k+1)²·Π^k·e^{−nε²/32} = δ.
        deviation = mp.sqrt(32 * mp.log(8 * k * (k + 1) ** 2 * growth**k / mp.mpf(delta)) / n)
        expected = mp.mpf("0.1") + 4 * mp.exp(-k * theta**2 / 8) + deviation
    assert bounds.boosting_margin_vc(0.1, n, delta, float(theta), v) == exact(expected)


@pytest.mark.parametrize("n", [600, 60000])
def test_boosting_margin_vc_is_silent_up_to_the_smallest_margin(n):
    least = bounds.smallest_margin(n, 7)
    for margin in (0.0, least / 2, least):
        with pytest.raises(ValueError, match="margin must exceed"):
            bounds.boosting_margin_vc(0.1, n, 0.05, margin, 7)
    assert bounds.boosting_margin_vc(0.1, n, 0.05, least * 1.0001, 7) > 0.1


@pytest.mark.parametrize("theta", [1.0, 0.5, 0.2])
@pytest.mark.parametrize(
    ("n", "delta", "size"),
    [(60000, 0.05, 1000), (50, 0.5, 2), (10**6, 1e-9, 10**6), (1000, 0.05, 1)],
)
def test_boosting_margin_finite_by_trying_every_vote(n, delta, theta, size):
    def bound(k):
        # |H|^k votes, k + 1 thresholds and the k-th share δ/(k(k+1)) of the union, in e^{−2nε²}.
        events = mp.mpf(size) ** k * (k + 1) * k * (k + 1)
        return 2 * mp.exp(-k * mp.mpf(theta) ** 2 / 8) + mp.sqrt(
            mp.log(events / mp.mpf(delta)) / (2 * n)
        )

    with mp.workdps(30):
        best = min(bound(k) for k in range(1, 4000))
    assert bounds.boosting_margin_finite(0.1, n, delta, theta, size) == exact(mp.mpf("0.1") + best)


def test_boosting_margin_finite_refuses_no_margin():
    with pytest.raises(ValueError, match="margin"):
        bounds.boosting_margin_finite(0.1, 1000, 0.05, 0.0, 10)


@pytest.mark.parametrize(
    ("norm", "radius", "margin", "j"),
    [
        (0.0, 1.0, 1.0, 0),
        (1.0, 1.0, 1.0, 0),
        (1.01, 1.0, 1.0, 1),
        (4.0, 2.0, 1.0, 3),
        (10.0, 1.0, 1.0, 4),
        (3.0, 1.0, 12.0, 0),
    ],
)
def test_rademacher_margin_is_the_fixed_norm_bound_at_the_next_power_of_two(
    norm, radius, margin, j
):
    n, delta = 60000, 0.05
    shares = [delta * (1 / (i + 1) - 1 / (i + 2)) for i in range(10**5)]
    assert math.fsum(shares) == pytest.approx(delta, rel=1e-4)
    complexity = math.sqrt(4.0**j / n)  # of {⟨w, x⟩/ρ : ‖w‖r/ρ ≤ 2^j}, Mohri et al. Theorem 5.10
    slack = optimize.brentq(lambda e: math.exp(-2 * n * e**2) - shares[j], 0, 1, xtol=1e-16)
    expected = 0.05 + 2 * complexity + slack
    assert bounds.rademacher_margin(0.05, n, delta, norm, radius, margin) == pytest.approx(
        expected, rel=1e-9
    )


def test_rademacher_complexity_of_a_ball_stays_below_its_bound():
    # E sup_{‖w‖ ≤ B} (1/n)Σ σᵢ⟨w, xᵢ⟩ = (B/n)·E‖Σ σᵢxᵢ‖, which orthogonal rows of norm r bring to
    # Br/√n.
    n = 16
    slack = bounds.hoeffding(0.0, n, 0.05 / 2)
    twice = bounds.rademacher_margin(0.0, n, 0.05, 1.0, 1.0, 1.0) - slack
    assert twice == pytest.approx(2 * np.linalg.norm(np.eye(n).sum(axis=0)) / n, rel=1e-12)
