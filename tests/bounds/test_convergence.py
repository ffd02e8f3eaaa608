"""Convergence theorems against algorithms actually run, on problems that attain them where such
exist.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import optimize
from scipy.linalg import hadamard

from surelearn import bounds


def perceptron(rows):
    """Mistakes until ``rows`` (padded, multiplied by their labels) are separated."""
    w, mistakes, clean = np.zeros(rows.shape[1]), 0, False
    while not clean:
        clean = True
        for row in rows:
            if row @ w <= 0:
                w, mistakes, clean = w + row, mistakes + 1, False
    return mistakes


@pytest.mark.parametrize("n", [2, 4, 16])
def test_perceptron_mistakes_are_attained_by_orthogonal_rows(n):
    # Hadamard's rows share a column of ones, the padding: it separates them by 1, and each is
    # mistaken once.
    rows = hadamard(n)
    assert (
        perceptron(rows)
        == n
        == pytest.approx(bounds.perceptron_mistakes(math.sqrt(n), 1.0), rel=1e-12)
    )


@pytest.mark.parametrize("seed", range(5))
def test_perceptron_mistakes_on_separable_rows(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 2))
    padded = np.column_stack([x, np.ones(60)])
    target = np.array([0.6, 0.7, 0.2]) / np.linalg.norm([0.6, 0.7, 0.2])
    padded = padded[abs(padded @ target) > 0.2]
    rows = padded * np.sign(padded @ target)[:, None]
    bound = bounds.perceptron_mistakes(np.linalg.norm(rows, axis=1).max(), (rows @ target).min())
    assert 0 < perceptron(rows) <= bound


def test_adaboost_training_error_of_three_rounds_of_stumps():
    x = np.arange(10.0)
    y = np.array([1, 1, 1, -1, -1, -1, -1, 1, 1, -1])
    weights, score, edges = np.full(10, 0.1), np.zeros(10), []
    stumps = [s * np.where(x < cut, 1, -1) for cut in np.arange(-0.5, 10) for s in (1, -1)]
    for _ in range(3):
        h = min(stumps, key=lambda h: weights[h != y].sum())
        error = weights[h != y].sum()
        alpha = 0.5 * math.log((1 - error) / error)
        score += alpha * h
        weights = weights * np.exp(-alpha * y * h)
        weights /= weights.sum()
        edges.append(0.5 - error)
    bound = bounds.adaboost_training_error(edges)
    # the product of the normalizers is this mean
    assert bound == pytest.approx(np.exp(-y * score).mean(), rel=1e-12)
    assert np.mean(y * score <= 0) <= bound < 1


def test_adaboost_training_error_is_attained_by_a_round_without_edge():
    assert bounds.adaboost_training_error([0.0, 0.0]) == 1.0
    assert bounds.adaboost_training_error([0.1, 0.5]) == 0.0


@pytest.mark.parametrize("edge", [0.51, -0.51])
def test_impossible_edges_are_refused(edge):
    with pytest.raises(ValueError, match="edges"):
        bounds.adaboost_training_error([edge])


def descend(gradient, start, step, iterations):
    path = [np.asarray(start, dtype=float)]
    for _ in range(iterations):
        path.append(path[-1] - step * gradient(path[-1]))
    return np.array(path)


def test_gradient_descent_convex_on_hubers_function():
    # Drori and Teboulle: the Huber function with this knee is the worst case and ends at LD²/(4k +
    # 2).
    smoothness, distance = 4.0, 3.0
    for k in (1, 2, 10, 100):
        knee = distance / (2 * k + 1)
        path = descend(
            lambda x, knee=knee: smoothness * np.clip(x, -knee, knee), distance, 1 / smoothness, k
        )
        end = smoothness * (knee * path[-1] - knee**2 / 2)
        assert end == pytest.approx(smoothness * distance**2 / (4 * k + 2), rel=1e-9)
        bound = bounds.gradient_descent_convex(distance, 1 / smoothness, k, smoothness)
        assert bound == pytest.approx(end * (2 + 1 / k), rel=1e-9)


def test_gradient_descent_convex_on_an_ill_conditioned_quadratic():
    curvature, start = np.array([10.0, 0.1, 0.001]), np.array([1.0, 2.0, 3.0])
    for step, k in itertools.product((0.1, 0.02), (1, 10, 1000)):
        end = descend(lambda x: curvature * x, start, step, k)[-1]
        bound = bounds.gradient_descent_convex(np.linalg.norm(start), step, k, 10.0)
        assert curvature @ end**2 / 2 <= bound


@pytest.mark.parametrize("k", [0, 1, 7])
@pytest.mark.parametrize(("m", "smoothness"), [(1.0, 10.0), (3.0, 4.0), (0.25, 0.25)])
def test_gradient_descent_strongly_convex_is_attained_at_the_longest_step(k, m, smoothness):
    step = 2 / (m + smoothness)
    # the steepest direction shrinks by (L − m)/(L + m)
    end = descend(lambda x: smoothness * x, 3.0, step, k)[-1]
    bound = bounds.gradient_descent_strongly_convex(3.0, step, k, smoothness, m)
    assert smoothness * end**2 / 2 == pytest.approx(bound, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("step", [0.01, 0.1, 0.18])
def test_gradient_descent_strongly_convex_on_a_quadratic(step):
    curvature, start = np.array([10.0, 3.0, 1.0]), np.array([1.0, -2.0, 3.0])
    path = descend(lambda x: curvature * x, start, step, 60)
    gaps = path**2 @ curvature / 2
    bound = bounds.gradient_descent_strongly_convex(
        np.linalg.norm(start), step, np.arange(61), 10.0, 1.0
    )
    assert (gaps <= bound).all()


@pytest.mark.parametrize(("smoothness", "start"), [(4.0, 3.0), (0.5, 1.0)])
def test_gradient_descent_nonconvex_is_attained_at_the_first_step(smoothness, start):
    gap = smoothness * start**2 / 2
    bound = bounds.gradient_descent_nonconvex(gap, 1 / smoothness, 0, smoothness)
    assert bound == pytest.approx(smoothness * start, rel=1e-12)


def test_gradient_descent_nonconvex_on_a_cosine():
    path = descend(np.sin, 0.01, 0.5, 50)  # f = −cos, smoothness 1, from near its maximum
    smallest = np.minimum.accumulate(abs(np.sin(path)))
    bound = bounds.gradient_descent_nonconvex(1 - np.cos(0.01), 0.5, np.arange(51), 1.0)
    assert (smallest <= bound).all()
    # 16 squared norms of 4 spend 2·8/0.25
    assert bounds.gradient_descent_nonconvex(8.0, 0.25, 15, 1.0) == 2.0


@pytest.mark.parametrize(
    ("bound", "inputs"),
    [
        (bounds.gradient_descent_convex, {"distance": 1.0, "smoothness": 10.0}),
        (bounds.gradient_descent_nonconvex, {"gap": 1.0, "smoothness": 10.0}),
        (
            bounds.gradient_descent_strongly_convex,
            {"distance": 1.0, "smoothness": 19.0, "strong_convexity": 1.0},
        ),
    ],
)
def test_steps_that_are_too_long_are_refused(bound, inputs):
    assert math.isfinite(bound(step=0.1, iterations=3, **inputs))
    with pytest.raises(ValueError, match="step"):
        bound(step=0.1001, iterations=3, **inputs)


def test_strong_convexity_beyond_smoothness_is_refused():
    with pytest.raises(ValueError, match="strong_convexity"):
        bounds.gradient_descent_strongly_convex(1.0, 0.01, 3, 1.0, 2.0)


def test_sgd_learnability_is_attained_by_a_linear_loss():
    # loss −ρw from w = 0: the average iterate is ηρ(T − 1)/2 and the best |w| ≤ B gains ρB; worst
    # at η = B/(ρT).
    norm, rho, rounds = 2.0, 3.0, 25
    step = norm / (rho * rounds)
    average = descend(lambda _: -rho, 0.0, step, rounds - 1).mean()
    assert bounds.sgd_learnability(norm, rho, rounds, step) == pytest.approx(
        rho * norm - rho * average, rel=1e-12
    )


@pytest.mark.parametrize(("norm", "rho", "rounds"), [(1.0, 1.0, 10000), (2.0, 3.0, 25)])
def test_sgd_learnability_chooses_the_best_step(norm, rho, rounds):
    best = optimize.minimize_scalar(
        lambda s: bounds.sgd_learnability(norm, rho, rounds, math.exp(s)),
        bounds=(-10, 3),
        method="bounded",
    )
    assert bounds.sgd_learnability(norm, rho, rounds) == pytest.approx(best.fun, rel=1e-8)
