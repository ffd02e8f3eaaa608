"""Certified radii: against independent values, near-worst cases, and simulation for smoothing."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import beta, norm

from surelearn.bounds.robustness import (
    kernel_radius,
    linear_radius,
    lipschitz_radius,
    polynomial_radius,
    robust_accuracy,
    smoothed_radius,
    smoothing_radius,
)
from surelearn.kernel.functions import Gaussian, Laplace, Matern, Polynomial

KERNELS = {
    "gaussian": lambda h: Gaussian(bandwidth=h),
    "laplace": Laplace,
    "matern 3/2": Matern,
    "matern 5/2": lambda h: Matern(h, nu=2.5),
}


def test_linear_radius_is_the_distance_to_the_hyperplane():
    random = np.random.default_rng(0)
    w, x = random.standard_normal(5), random.standard_normal(5)
    on_it = x - w * (w @ x) / (w @ w)
    assert linear_radius(abs(w @ x), np.linalg.norm(w)) == pytest.approx(
        np.linalg.norm(x - on_it), rel=1e-12
    )
    # L∞: every column
    moved = x - np.sign(w @ x) * np.sign(w) * linear_radius(abs(w @ x), np.abs(w).sum())
    assert w @ moved == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("gap", "slope", "radius"), [(0, 0, 0), (0, 3, 0), (1, 0, math.inf), (math.inf, 1, math.inf)]
)
def test_limits(gap, slope, radius):
    assert (
        linear_radius(gap, slope)
        == lipschitz_radius(gap, slope, 1.0)
        == kernel_radius(gap, slope, bandwidth=1.0)
        == radius
    )


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("gap", [1e-6, 0.01, 0.3, 1.0, 2.5])
def test_kernel_radius_solves_its_equation(name, gap):
    made = KERNELS[name](1.7)
    radius = kernel_radius(gap, 2.0, bandwidth=1.7, kernel=name)
    with mpmath.workdps(40):
        t = mpmath.mpf(radius) / mpmath.mpf(1.7)
        profile = {
            "gaussian": lambda: mpmath.exp(-(t**2) / 2),
            "laplace": lambda: mpmath.exp(-t),
            "matern 3/2": lambda: (1 + mpmath.sqrt(3) * t) * mpmath.exp(-mpmath.sqrt(3) * t),
            "matern 5/2": lambda: (
                (1 + mpmath.sqrt(5) * t + 5 * t**2 / 3) * mpmath.exp(-mpmath.sqrt(5) * t)
            ),
        }[name]()
        assert float(2 * mpmath.sqrt(2 - 2 * profile)) == pytest.approx(gap, rel=1e-10)
    here, there = np.zeros((1, 1)), np.array([[radius]])
    assert made(here, there)[0, 0] == pytest.approx(float(profile), rel=1e-12)


def test_kernel_radius_is_reached_by_some_machine():
    """f = k(x, ·) − k(z, ·) falls from x to z by ‖f‖·‖φ(x) − φ(z)‖ exactly: nothing larger
    would be true.
    """
    r = 0.8
    for name, kind in KERNELS.items():
        k = float(kind(1.3)(np.zeros((1, 1)), np.array([[r]]))[0, 0])
        rkhs, fall = math.sqrt(2 - 2 * k), 2 - 2 * k
        assert kernel_radius(fall, rkhs, bandwidth=1.3, kernel=name) == pytest.approx(r, rel=1e-9)


def test_kernel_radius_is_infinite_where_the_gap_cannot_be_closed():
    assert kernel_radius(math.sqrt(2) * 1.0001, 1.0, bandwidth=1.0) == math.inf
    assert kernel_radius(math.sqrt(2) * 0.9999, 1.0, bandwidth=1.0, kernel="matern 5/2") < math.inf
    with pytest.raises(ValueError, match="kernel"):
        kernel_radius(1.0, 1.0, bandwidth=1.0, kernel="cosine")


def test_a_laplace_radius_falls_with_the_square_of_the_gap():
    assert kernel_radius(1e-3, 1.0, bandwidth=1.0, kernel="laplace") == pytest.approx(
        1e-6 / 2, rel=1e-4
    )
    assert kernel_radius(1e-3, 1.0, bandwidth=1.0) == pytest.approx(1e-3, rel=1e-4)


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_polynomial_features_move_no_further_than_claimed(degree):
    random = np.random.default_rng(degree)
    made = Polynomial(degree)
    for _ in range(200):
        x = random.standard_normal((1, 3)) * random.uniform(0, 2)
        gap = random.uniform(0.01, 5)
        radius = polynomial_radius(gap, 1.0, float(np.linalg.norm(x)), degree)
        step = random.standard_normal((50, 3))
        z = (
            x
            + np.vstack([step / np.linalg.norm(step, axis=1, keepdims=True), x / np.linalg.norm(x)])
            * radius
        )
        apart = made.diagonal(x) + made.diagonal(z) - 2 * made(x, z)[0]
        assert np.sqrt(apart.max()) <= gap * (1 + 1e-9)
    assert np.sqrt(apart.max()) >= 0.2 * gap


def test_polynomial_scale_and_offset():
    # (γ⟨x, z⟩ + c)^p = c^p(⟨ax, az⟩ + 1)^p with a² = γ/c
    direct = polynomial_radius(1.0, 2.0, x_norm=1.5, degree=3, gamma=0.5, offset=2.0)
    a = math.sqrt(0.5 / 2.0)
    scaled = polynomial_radius(1.0, 2.0 * 2.0**1.5, x_norm=1.5 * a, degree=3) / a
    assert direct == pytest.approx(scaled, rel=1e-9)


def test_lipschitz_radius_with_root_two_is_the_proposition():
    assert lipschitz_radius(3.0, math.sqrt(2), 5.0) == pytest.approx(
        3.0 / (math.sqrt(2) * 5.0), rel=1e-15
    )


@pytest.mark.parametrize(
    ("successes", "n", "delta"), [(990, 1000, 0.001), (75, 100, 0.05), (100, 100, 0.01)]
)
def test_smoothed_radius_is_cohens(successes, n, delta):
    p = beta.ppf(delta, successes, n - successes + 1)
    assert smoothed_radius(successes, n, delta, noise=0.25) == pytest.approx(
        0.25 * norm.ppf(p), rel=1e-9
    )


def test_known_probabilities_and_abstention():
    assert smoothing_radius(0.8, 0.1, 2.0) == pytest.approx(
        norm.ppf(0.8) - norm.ppf(0.1), rel=1e-12
    )
    assert smoothing_radius(0.3, 0.4, 1.0) == smoothing_radius(1.0, 1.0, 1.0) == 0.0
    assert smoothing_radius(1.0, 0.0, 1.0) == math.inf
    assert smoothed_radius(55, 100, 0.05, 1.0) == 0.0


def failures(delta, shrink=1.0, trials=4000):
    """A halfspace at distance m: P = Φ(m/σ), and the smoothed radius is exactly m. How often
    more is certified.
    """
    random, m, n = np.random.default_rng(0), 0.5, 200
    successes = random.binomial(n, norm.cdf(m), trials)
    p = np.array([smoothed_radius(int(s), n, delta, 1.0) for s in successes])
    naive = np.array(
        [smoothing_radius(s / n, 1 - s / n, 1.0) if s > n / 2 else 0.0 for s in successes]
    )
    return float(np.mean(shrink * p + (1 - shrink) * naive > m))


def test_smoothing_fails_no_more_often_than_it_says_and_nearly_as_often():
    delta = 0.05
    assert 0.5 * delta <= failures(delta) <= delta + 3 * math.sqrt(delta * (1 - delta) / 4000)


def test_half_the_slack_fails_too_often():
    assert failures(0.05, shrink=0.5) > 0.1


def test_robust_accuracy_covers_with_certificates_that_fail():
    """Half of the rows are robust; of the others, alpha get a wrong certificate."""
    random, delta, alpha, n = np.random.default_rng(1), 0.05, 0.05, 300
    truth = 0.5
    issued = truth + (1 - truth) * alpha  # what is counted
    low = [robust_accuracy(int(s), n, delta, alpha) for s in random.binomial(n, issued, 2000)]
    assert np.mean(np.array(low) > truth) <= delta
    assert (
        np.mean(
            [robust_accuracy(int(s), n, delta) > truth for s in random.binomial(n, truth, 4000)]
        )
        <= 0.06
    )
    unpaid = [robust_accuracy(int(s), n, delta) for s in random.binomial(n, issued, 2000)]
    assert np.mean(np.array(unpaid) > truth) > delta, "α must be paid for"


def test_cauchy_schwarz_holds_for_random_machines():
    random = np.random.default_rng(3)
    centers, c = random.standard_normal((20, 2)), random.standard_normal(20)
    for name, kind in KERNELS.items():
        made = kind(1.5)
        rkhs = math.sqrt(c @ made(centers, centers) @ c)
        x, z = random.standard_normal((30, 2)), random.standard_normal((300, 2))
        fall = np.abs((made(x, centers) @ c)[:, None] - made(z, centers) @ c)
        radius = kernel_radius(fall, rkhs, bandwidth=1.5, kernel=name)
        assert (radius <= cdist(x, z) * (1 + 1e-9)).all()
