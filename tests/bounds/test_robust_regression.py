"""Perturbed columns, the dual of the square-root lasso, and the stability of Huber regression,
each against its source.
"""

import numpy as np
import pytest
from scipy import optimize

from surelearn import bounds


def random_problem(rng):
    n, d = rng.integers(1, 8, 2)
    return rng.normal(size=(n, d)), rng.normal(size=d), rng.normal(size=n), 10 ** rng.uniform(-2, 1)


def test_no_perturbation_of_the_columns_exceeds_the_bound_and_one_attains_it():
    rng = np.random.default_rng(0)
    for _ in range(300):
        X, w, y, radius = random_problem(rng)
        residual = X @ w - y
        bound = bounds.column_perturbations(np.linalg.norm(residual), np.abs(w).sum(), radius)
        for _ in range(10):
            Z = rng.normal(size=X.shape)
            Z *= radius / np.linalg.norm(Z, axis=0)
            assert np.linalg.norm((X + Z) @ w - y) <= bound * (1 + 1e-12)
        Z = radius * np.outer(residual / np.linalg.norm(residual), np.sign(w))
        assert np.linalg.norm((X + Z) @ w - y) == pytest.approx(bound, rel=1e-12)


def test_the_bound_is_attained_where_the_residual_is_zero():
    X, w, radius = np.array([[1.0, 2.0], [3.0, -1.0]]), np.array([2.0, -3.0]), 0.5
    y = X @ w
    Z = radius * np.outer([0.6, 0.8], np.sign(w))  # any unit vector does
    assert bounds.column_perturbations(0.0, 5.0, radius) == 2.5
    assert np.linalg.norm((X + Z) @ w - y) == pytest.approx(2.5, rel=1e-14)


def test_no_weights_go_below_the_dual_value():
    rng = np.random.default_rng(1)
    for _ in range(300):
        X, w, y, radius = random_problem(rng)
        u = rng.normal(size=len(y)) * rng.choice([0.1, 1, 10])
        u *= np.sign(u @ y)
        dual = bounds.square_root_lasso_optimum(
            u @ y, np.linalg.norm(u), np.abs(X.T @ u).max(), radius
        )
        for v in (0 * w, w, np.linalg.lstsq(X, y)[0]):
            assert dual <= np.linalg.norm(X @ v - y) + radius * np.abs(v).sum() + 1e-12


def test_the_best_dual_vector_attains_the_optimum():
    # One column: a fine search over w, and over the angle of u.
    x, y, radius = np.array([3.0, 4.0]), np.array([1.0, 5.0]), 2.0
    primal = optimize.minimize_scalar(
        lambda w: np.linalg.norm(x * w - y) + radius * abs(w), (0, 1), tol=1e-14
    ).fun
    angles = np.linspace(0, np.pi, 200001)
    u = np.array([np.cos(angles), np.sin(angles)])
    dual = bounds.square_root_lasso_optimum(
        np.maximum(0, y @ u), np.ones(len(angles)), np.abs(x @ u), radius
    ).max()
    assert dual == pytest.approx(primal, rel=1e-4)
    assert dual <= primal


def test_beta_huber_is_tikhonov_plus_two_distances_to_the_minimizer():
    x, eta, lam, n, g = 3.0, 0.5, 0.2, 40, 0.01
    rho = eta * x
    # The objective grows at least as λ‖w − w*‖²: a gradient of norm g is met at most g/(2λ) away,
    # as in λw² itself.
    away = optimize.brentq(lambda t: 2 * lam * t - g, 0, 10)
    expected = bounds.beta_tikhonov(rho, lam, n) + 2 * rho * away
    assert bounds.beta_huber(x, eta, lam, n, g) == pytest.approx(expected, rel=1e-12)


def test_beta_huber_with_loose_gradients_is_attained_by_a_linear_piece():
    # All rows beyond η: the gradient is ±ηx̄ + 2λw, and each of two solutions stops where its norm
    # is g, outwards.
    x, eta, lam, n, g = 2.0, 0.5, 0.3, 5, 0.05
    w, moved = ((eta * x * pulls / n + off) / (2 * lam) for pulls, off in ((n, g), (n - 2, -g)))
    assert eta * x * (w - moved) == pytest.approx(bounds.beta_huber(x, eta, lam, n, g), rel=1e-12)


@pytest.mark.parametrize("threshold", [0.2, 1.0, 50.0])
def test_the_range_of_hubers_loss_is_the_worst_of_all_weights_that_0_allows(threshold):
    x, y, lam = 1.5, 2.0, 0.3

    def loss(t):
        return optimize.minimize_scalar(
            lambda s: (s - t) ** 2 / 2 + threshold * abs(s), (0, t), tol=1e-14
        ).fun

    # as far as the objective at 0 allows
    w = optimize.brentq(lambda w: lam * w**2 - loss(y), 0, 100)
    worst = max(loss(abs(sign * w * x - y)) for sign in (-1, 1))
    assert bounds.huber_loss_bound(x, y, threshold, lam) == pytest.approx(worst, rel=1e-9)
