"""DP-SGD for linear predictors: closed-form clipping, noise, division by qN, projection."""

import numpy as np
import pytest

from surelearn.optim.accountant import PoissonSampler
from surelearn.optim.dp_sgd import (
    Recipe,
    clip_factors,
    clipped_sum,
    loss_slopes,
    private_descent,
    project,
    softmax_slopes,
)
from surelearn.optim.losses import LOSSES


def rows(n=40, d=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * rng.exponential(2, size=(n, 1)), rng.integers(3, size=n)


def gradients_one_by_one(X, slopes):
    return [np.vstack([np.outer(x, s), s]) for x, s in zip(X, slopes, strict=True)]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("clip", [0.1, 1.0, 100.0])
def test_clipped_sums_against_a_loop(classes, clip):
    X, y = rows()
    y = y % classes
    scores = np.random.default_rng(1).normal(size=(len(X), 1 if classes == 2 else classes))
    slopes = softmax_slopes(y, classes)(scores, np.arange(len(X)))
    each = gradients_one_by_one(X, slopes)
    total = sum(g * min(1.0, clip / np.linalg.norm(g)) for g in each)
    np.testing.assert_allclose(clipped_sum(X, slopes, clip), total, atol=1e-12)


def test_no_row_moves_the_sum_by_more_than_the_clipping_norm():
    X, y = rows(seed=3)
    X[0] *= 1e6
    slopes = softmax_slopes(y, 3)(
        np.random.default_rng(1).normal(size=(len(X), 3)), np.arange(len(X))
    )
    whole = clipped_sum(X, slopes, 0.7)
    for i in range(len(X)):
        without = clipped_sum(np.delete(X, i, 0), np.delete(slopes, i, 0), 0.7)
        assert np.linalg.norm(whole - without) <= 0.7 * (1 + 1e-9)


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "hinge", "squared hinge"])
def test_slopes_against_differences(loss):
    rng = np.random.default_rng(0)
    targets, scores = rng.choice([-1.0, 1.0], size=20), rng.normal(size=(20, 1))
    known = LOSSES["huber(1)" if loss == "huber" else loss]

    def value(z):
        return known.value(targets * z[:, 0] if known.of == "margin" else z[:, 0] - targets)

    difference = (value(scores + 1e-6) - value(scores - 1e-6)) / 2e-6
    np.testing.assert_allclose(
        loss_slopes(targets, loss)(scores, np.arange(20))[:, 0], difference, atol=1e-5
    )


def test_noise_has_the_stated_scale_and_is_divided_by_the_expected_batch_size():
    """Rows of zeros with slope 0: a step is noise alone, σC/(qN)·η a coordinate."""
    n, d, rate = 200, 400, 0.1
    sampler = PoissonSampler(n, rate, random_state=0)
    recipe = Recipe(steps=1, step=2.0, clip=0.5, noise_multiplier=3.0, average=False)
    found = private_descent(
        np.zeros((n, d)),
        lambda scores, _: np.zeros_like(scores),
        5,
        sampler,
        recipe,
        np.random.default_rng(1),
    )
    scale = 2.0 * 3.0 * 0.5 / (rate * n)
    assert found.std() == pytest.approx(scale, rel=4 / np.sqrt(2 * found.size))
    assert abs(found.mean()) < 4 * scale / np.sqrt(found.size)


def test_the_batch_s_own_size_is_never_divided_by():
    """With slope −1 and rows of zeros each row adds exactly C to the intercept: its sum over
    qN, not 1.
    """
    sampler = PoissonSampler(100, 0.3, random_state=0)
    size = len(PoissonSampler(100, 0.3, random_state=0).draw())
    assert size != 30
    recipe = Recipe(steps=1, clip=1.0, noise_multiplier=0.0, average=False)
    found = private_descent(
        np.zeros((100, 2)),
        lambda scores, _: -np.ones_like(scores),
        1,
        sampler,
        recipe,
        np.random.default_rng(0),
    )
    assert found[-1, 0] == pytest.approx(size / 30)


def test_weights_stay_in_the_ball():
    X, y = rows(200)
    recipe = Recipe(steps=30, step=5.0, noise_multiplier=2.0, radius=0.3, average=False)
    found = private_descent(
        X, softmax_slopes(y, 3), 3, PoissonSampler(200, 0.2, 0), recipe, np.random.default_rng(0)
    )
    assert np.linalg.norm(found) <= 0.3 * (1 + 1e-12)
    np.testing.assert_allclose(project(np.array([0.1, 0.2]), 1.0), [0.1, 0.2])


def test_without_noise_and_clipping_it_is_gradient_descent():
    X, y = rows(60)
    y = (y > 0).astype(int)
    recipe = Recipe(
        steps=20, step=0.1, clip=1e9, noise_multiplier=0.0, regularization=0.05, average=False
    )
    found = private_descent(
        X, softmax_slopes(y, 2), 1, PoissonSampler(60, 1.0), recipe, np.random.default_rng(0)
    )
    w, padded = np.zeros(6), np.column_stack([X, np.ones(60)])
    for _ in range(20):
        w -= 0.1 * (padded.T @ (1 / (1 + np.exp(-padded @ w)) - y) / 60 + 0.1 * w)
    np.testing.assert_allclose(found[:, 0], w, atol=1e-10)


def test_clip_factors_of_zero_and_infinite_norms():
    assert clip_factors(np.array([0.0, np.inf]), 1.0).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"steps": 0}, "steps"),
        ({"steps": 1.5}, "steps"),
        ({"steps": 1, "clip": 0.0}, "clip"),
        ({"steps": 1, "step": np.inf}, "step"),
        ({"steps": 1, "noise_multiplier": -1.0}, "noise_multiplier"),
        ({"steps": 1, "regularization": -1.0}, "regularization"),
        ({"steps": 1, "radius": 0.0}, "radius"),
    ],
)
def test_bad_recipes_are_named(options, name):
    with pytest.raises(ValueError, match=name):
        Recipe(**options)
