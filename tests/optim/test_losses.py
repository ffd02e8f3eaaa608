"""Losses: derivatives against differences, L, m and ρ against the Hessian and against random
points.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from surelearn.optim.losses import (
    EXACT,
    LOSSES,
    ConvexLoss,
    RegularizedRisk,
    eigenvalue_range,
    find_loss,
    huber,
)

ALL = [*LOSSES.values(), huber(0.3)]
SMOOTH = ["squared", "huber", "logistic", "squared hinge", "squared margin"]


def by_name(loss):
    return getattr(loss, "name", None)


def problem(seed, loss, regularization=None):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 30)), int(rng.integers(1, 8))
    x = rng.normal(size=(n, d)) * rng.uniform(0.2, 3)
    y = rng.choice([-1.0, 1.0], size=n) if find_loss(loss).of == "margin" else rng.normal(size=n)
    return RegularizedRisk(
        x, y, loss, rng.uniform(0, 1) if regularization is None else regularization
    ), rng


@pytest.mark.parametrize("loss", ALL, ids=by_name)
def test_derivatives_curvatures_and_slopes(loss):
    t = np.linspace(-3, 3, 1001) + 1e-4  # beside the kinks
    h = 1e-6
    difference = (loss.value(t + h) - loss.value(t - h)) / (2 * h)
    np.testing.assert_allclose(loss.derivative(t), difference, rtol=1e-5, atol=1e-5)
    second = np.diff(loss.derivative(t)) / np.diff(t)
    assert second.max() <= loss.curvature + 1e-6
    assert second.min() >= loss.least_curvature - 1e-6
    assert np.abs(loss.derivative(t)).max() <= loss.lipschitz
    if math.isfinite(loss.curvature):
        # the constants are no larger than they must be
        assert second.max() >= 0.99 * loss.curvature
    if math.isfinite(loss.lipschitz) and loss.name != "logistic":
        assert np.abs(loss.derivative(t)).max() == loss.lipschitz
    left, right = ((loss.value(side * 1e-7) - loss.value(0.0)) / (side * 1e-7) for side in (-1, 1))
    assert (left, right) == pytest.approx(loss.slopes, abs=1e-5)


@pytest.mark.parametrize("eta", [0.5, 2.0])
def test_huber_is_the_moreau_envelope(eta):
    s = np.linspace(-8, 8, 160_001)
    for t in (-5.0, -0.4, 0.0, 0.6, 1.9, 3.0):
        assert huber(eta).value(t) == pytest.approx(
            (0.5 * (s - t) ** 2 + eta * np.abs(s)).min(), abs=1e-6
        )


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("seed", range(25))
def test_smoothness_and_strong_convexity_bound_every_pair_of_points(loss, seed):
    f, rng = problem(seed, loss)
    for _ in range(20):
        u, v = rng.normal(size=(2, f.dimension)) * 3
        gap = f.value(u) - f.value(v) - f.gradient(v) @ (u - v)
        square = ((u - v) ** 2).sum() / 2
        assert f.strong_convexity * square - 1e-9 <= gap <= f.smoothness * square + 1e-9
        assert (
            np.linalg.norm(f.gradient(u) - f.gradient(v))
            <= f.smoothness * np.linalg.norm(u - v) + 1e-9
        )


def test_constants_of_ridge_are_those_of_its_hessian():
    f, _ = problem(3, "squared", 0.25)
    values = np.linalg.eigvalsh(2 * f.X.T @ f.X / len(f.y) + 0.5 * np.eye(f.dimension))
    assert f.smoothness == pytest.approx(values[-1], rel=1e-9)
    assert f.strong_convexity == pytest.approx(values[0], rel=1e-9)


@pytest.mark.parametrize("loss", list(LOSSES))
@pytest.mark.parametrize("seed", range(10))
def test_gradients_of_rows_average_to_the_gradient_and_stay_below_the_lipschitz_constant(
    loss, seed
):
    f, rng = problem(seed, loss)
    radius = rng.uniform(0.1, 3)
    bound = f.lipschitz(radius)
    for _ in range(20):
        w = rng.normal(size=f.dimension)
        w *= radius * rng.uniform(0, 1) / np.linalg.norm(w)
        rows = np.array([f.gradient_of_row(i, w) for i in range(len(f.y))])
        np.testing.assert_allclose(rows.mean(axis=0), f.gradient(w), rtol=1e-9, atol=1e-12)
        assert np.mean([f.value_of_row(i, w) for i in range(len(f.y))]) == pytest.approx(f.value(w))
        assert np.linalg.norm(rows, axis=1).max() <= bound * (1 + 1e-12)


@pytest.mark.parametrize("shape", [(30, 5), (5, 30)])
def test_sparse_is_dense(shape):
    x = sparse.random(*shape, density=0.4, random_state=0, format="csr")
    y = np.where(np.arange(shape[0]) % 2, 1.0, -1.0)
    a, b = RegularizedRisk(x, y, "logistic", 0.1), RegularizedRisk(x.toarray(), y, "logistic", 0.1)
    w = np.linspace(-1, 1, shape[1])
    assert a.value(w) == pytest.approx(b.value(w))
    np.testing.assert_allclose(a.gradient(w), b.gradient(w))
    np.testing.assert_allclose(a.gradient_of_row(1, w), b.gradient_of_row(1, w))
    assert (a.smoothness, a.strong_convexity, a.lipschitz(2.0)) == pytest.approx(
        (b.smoothness, b.strong_convexity, b.lipschitz(2.0))
    )


def test_eigenvalues_are_bounded_where_they_are_too_dear():
    big = sparse.eye(EXACT + 1, format="csr") * 2.0
    assert eigenvalue_range(big) == (0.0, 4.0 * (EXACT + 1))
    low, high = eigenvalue_range(np.diag([1.0, 3.0]))
    assert low <= 1 <= 9 <= high
    assert (low, high) == pytest.approx((1, 9))
    assert eigenvalue_range(np.ones((2, 3)))[0] == 0.0


@pytest.mark.parametrize(
    ("x", "y", "loss", "regularization", "match"),
    [
        ([[1.0]], [0.0], "logistic", 0.0, "y must be −1 and 1"),
        ([[1.0]], [1.0], "cross", 0.0, "loss must be one of"),
        ([[1.0]], [1.0], "hinge", -1.0, "regularization must be"),
        ([[1.0]], [1.0, 1.0], "hinge", 0.0, "X must be"),
        ([1.0], [1.0], "hinge", 0.0, "X must be"),
    ],
)
def test_impossible_objectives_are_refused(x, y, loss, regularization, match):
    with pytest.raises(ValueError, match=match):
        RegularizedRisk(x, y, loss, regularization)


@pytest.mark.parametrize("threshold", [0.0, -1.0, math.inf, math.nan])
def test_impossible_thresholds_are_refused(threshold):
    with pytest.raises(ValueError, match="threshold must be positive"):
        huber(threshold)


def test_a_loss_of_ones_own():
    cube = ConvexLoss(
        "quartic",
        "residual",
        lambda t: t**4,
        lambda t: 4 * t**3,
        math.inf,
        0.0,
        math.inf,
        (0.0, 0.0),
    )
    assert RegularizedRisk([[2.0]], [1.0], cube).value(np.array([1.0])) == 1.0
