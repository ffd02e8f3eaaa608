"""Gradients against differences and known integrals, completeness, excitation, and the OR they
cannot see.
"""

from __future__ import annotations

import numpy as np
import pytest

from surelearn.attribution import explain, shapley
from surelearn.attribution.gradients import (
    highest_rows,
    integrated_gradients,
    maximize_activation,
    saliency,
    unit_of,
)

X = np.random.default_rng(0).normal(size=(4, 3))


def smooth(Z):
    return np.sin(Z[:, 0]) * Z[:, 1] + np.exp(Z[:, 2])


def smooth_gradient(Z):
    return np.c_[np.cos(Z[:, 0]) * Z[:, 1], np.sin(Z[:, 0]), np.exp(Z[:, 2])]


def network():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(3, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2)
    ).double()


def test_differences_and_given_gradients():
    by_differences = saliency(smooth, X)
    np.testing.assert_allclose(by_differences.values, smooth_gradient(X), atol=1e-8)
    assert by_differences.method == "central differences"
    given = saliency(smooth, X, gradient=smooth_gradient)
    np.testing.assert_array_equal(given.values, smooth_gradient(X))
    assert given.method == "as given"


def test_autograd_is_differences():
    module = network()
    made = saliency(module, X, target=1)
    assert made.method == "autograd"

    def second(Z):
        import torch

        with torch.no_grad():
            return module(torch.as_tensor(Z)).numpy()[:, 1]

    np.testing.assert_allclose(made.values, saliency(second, X).values, atol=1e-8)


def test_integrated_gradients_of_known_integrals():
    made = integrated_gradients(lambda Z: Z[:, 0] ** 2 * Z[:, 1], np.array([[2.0, 3.0, 1.0]]))
    # 12 in the ratio of the powers 2 : 1
    np.testing.assert_allclose(made.values, [[8.0, 4.0, 0.0]], atol=1e-6)
    assert made.complete
    np.testing.assert_allclose(made.gap, 0, atol=1e-6)


@pytest.mark.parametrize("baseline", [0.0, np.array([1.0, -1.0, 0.5])])
def test_completeness(baseline):
    made = integrated_gradients(smooth, X, baseline, gradient=smooth_gradient)
    assert made.complete
    start = np.broadcast_to(np.asarray(baseline, dtype=float), X.shape)
    np.testing.assert_allclose(made.values.sum(axis=1), smooth(X) - smooth(start), atol=1e-10)
    module = integrated_gradients(network(), X, baseline, target=0)
    assert module.complete
    assert np.abs(module.gap).max() < 1e-6


def test_a_step_is_not_complete():
    made = integrated_gradients(lambda Z: (Z[:, 0] > 0.5).astype(float), np.array([[1.0, 0.0]]))
    assert not made.complete
    assert made.gap[0] == pytest.approx(1.0)


def test_gradients_do_not_see_an_or():
    def either(Z):
        return np.minimum(1.0, np.maximum(0, Z).sum(axis=1))

    both = np.array([[2.0, 2.0]])
    assert saliency(either, both).values.tolist() == [[0.0, 0.0]]
    assert explain(either, both, np.zeros((1, 2))).values.tolist() == [[0.5, 0.5]]
    assert [str(v) for v in shapley(lambda S: int(len(S) > 0), 2).values] == ["1/2", "1/2"]


def test_maximal_activation():
    made = maximize_activation(
        lambda Z: -((Z - [1.0, 2.0]) ** 2).sum(axis=1), np.zeros(2), steps=300
    )
    np.testing.assert_allclose(made.input, [1, 2], atol=0.05)
    assert made.start == -5
    assert made.activation == max(made.history)
    bounded = maximize_activation(lambda Z: Z.sum(axis=1), np.zeros(2), bounds=(-0.5, 0.5))
    np.testing.assert_allclose(bounded.input, [0.5, 0.5])
    small = maximize_activation(lambda Z: Z[:, 0], np.zeros(1), penalty=0.5, steps=300)
    assert small.input[0] == pytest.approx(1.0, abs=0.05)  # of x − x²/2
    assert maximize_activation(lambda Z: np.zeros(len(Z)), np.ones(2)).input.tolist() == [1, 1]


def test_units_inside_a_module():
    module = network()
    unit = unit_of(module, "1", 4)
    top = highest_rows(unit, X, 2)
    import torch

    with torch.no_grad():
        inside = module[1](module[0](torch.as_tensor(X))).numpy()[:, 4]
    assert top.rows.tolist() == np.argsort(-inside)[:2].tolist()
    np.testing.assert_allclose(top.activations, np.sort(inside)[::-1][:2])
    assert top.quantile == 0.75
    excited = maximize_activation(unit, X[0], bounds=(-3, 3))
    assert excited.activation > excited.start
    with pytest.raises(ValueError, match="layer must be one of '0', '1', '2', not 'head'"):
        unit_of(module, "head", 0)


def test_images_keep_their_shape():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(32, 1)
    )
    images = np.random.default_rng(0).random((2, 1, 6, 6))
    assert saliency(module, images).values.shape == images.shape
    made = integrated_gradients(module, images, steps=200, tolerance=1e-2)
    assert made.complete
    assert highest_rows(unit_of(module, "0", 1), images, 1).rows.shape == (1,)


def test_refusals():
    with pytest.raises(ValueError, match="target must say which of the 2"):
        saliency(lambda Z: Z[:, :2], X)
    with pytest.raises(TypeError, match="a torch module or a function"):
        saliency(3, X)
    with pytest.raises(ValueError, match="the gradient is not finite"):
        saliency(lambda Z: np.full(len(Z), np.nan), X)
    with pytest.raises(ValueError, match="gradient must be shaped like the rows"):
        saliency(smooth, X, gradient=lambda Z: Z[:, :1])
    with pytest.raises(ValueError, match="rows of finite numbers"):
        saliency(smooth, X * np.nan)
    with pytest.raises(ValueError, match="steps must be a whole number"):
        integrated_gradients(smooth, X, steps=0)
    with pytest.raises(ValueError, match="k must be a whole number"):
        highest_rows(smooth, X, 0)
    with pytest.raises(ValueError, match="a number, or a row of numbers, for each row"):
        saliency(lambda _: np.zeros(2), X)
