"""Sums and products of kernels: values, plain data, refusals, and the learners that take kernel
objects.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.svm import SVC

from surelearn.kernel.composites import Product, Sum
from surelearn.kernel.functions import (
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    kernel,
)
from surelearn.kernel.positivity import check_positive
from surelearn.linear import Perceptron, SupportVectorMachine

RNG = np.random.default_rng(0)
SIMPLE = Gaussian(bandwidth=1.0), Linear(), Laplace(3.0), Polynomial(2)
WRITTEN = {
    "Gaussian(bandwidth=1.0) + 0.5 * Linear()": lambda k: k[0] + 0.5 * k[1],
    "Linear() * Gaussian(bandwidth=1.0)": lambda k: k[1] * k[0],
    "2.0 * Laplace(bandwidth=3.0)": lambda k: 2.0 * k[2],
    "2.0 * (Linear() * Gaussian(bandwidth=1.0)) + Polynomial(degree=2)": lambda k: (
        2.0 * (k[1] * k[0]) + k[3]
    ),
    "(Linear() + Polynomial(degree=2)) * Laplace(bandwidth=3.0)": lambda k: (k[1] + k[3]) * k[2],
    "Gaussian(bandwidth=1.0) * Linear() * Laplace(bandwidth=3.0)": lambda k: k[0] * k[1] * k[2],
    "3.0 * Linear() + 1.5 * Laplace(bandwidth=3.0)": lambda k: 3.0 * (k[1] + 0.5 * k[2]),
    "(2.0 * Linear()) * Gaussian(bandwidth=1.0)": lambda k: (2.0 * k[1]) * k[0],
    "Linear() + Gaussian(bandwidth=1.0) + Laplace(bandwidth=3.0)": lambda k: k[1] + (k[0] + k[2]),
}
every = pytest.mark.parametrize("text", WRITTEN)


def made(text) -> Kernel:
    return WRITTEN[text](SIMPLE)


@every
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_matrices_are_sums_and_products_of_matrices(text, make):
    X, Z = RNG.normal(size=(9, 3)), RNG.normal(size=(7, 3))
    k = made(text)
    np.testing.assert_allclose(
        k(make(X), make(Z)), WRITTEN[text]([part(X, Z) for part in SIMPLE]), rtol=1e-11
    )
    np.testing.assert_allclose(k.diagonal(make(X)), np.diag(k(X, X)), rtol=1e-12)
    assert check_positive(k, X)


@every
def test_they_are_written_as_they_are_read(text):
    k = made(text)
    assert repr(k) == text
    assert eval(text) == k  # noqa: S307
    assert hash(eval(text)) == hash(k)  # noqa: S307


@every
def test_parameters_are_plain_data(text):
    k = made(text)
    plain = json.loads(json.dumps(k.parameters()))
    assert kernel(k.name, **plain) == k
    assert kernel(k.name, **k.parameters()) == k
    assert clone(SupportVectorMachine(kernel=k)).kernel == k


@every
def test_radius_bounds_the_norm_of_every_feature(text):
    k, X = made(text), RNG.normal(size=(300, 3))
    bound = float(np.linalg.norm(X, axis=1).max())
    radius = k.radius(bound)
    assert radius is not None
    assert np.sqrt(k.diagonal(X)).max() <= radius * (1 + 1e-12)
    farthest = X[[np.linalg.norm(X, axis=1).argmax()]]
    assert np.sqrt(k.diagonal(farthest))[0] == pytest.approx(radius)
    assert (k.radius(None) is None) is ("Linear" in text or "Polynomial" in text)


def test_radius_by_hand():
    assert (Gaussian(bandwidth=0.7071) + 0.5 * Linear()).radius(2.0) == math.sqrt(3.0)
    assert (Linear() * Linear() * Matern()).radius(3.0) == 9.0


def test_numbers_of_numpy_are_numbers():
    assert np.float64(2.0) * Linear() == Linear() * np.int64(2) == 2 * Linear()
    assert json.dumps((np.float64(2.0) * Linear()).parameters())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: -1.0 * Linear(), "weight must be positive and finite, not -1.0"),
        (lambda: Linear() * 0, "weight must be positive and finite, not 0"),
        (lambda: Linear() * float("inf"), "weight must be positive and finite"),
        (lambda: Linear() * float("nan"), "weight must be positive and finite"),
        (lambda: Sum((Linear(), Gaussian()), (1.0,)), "one for each of the 2 parts"),
        (lambda: Sum(()), "a sum of kernels needs parts"),
        (lambda: kernel("product"), "a product of kernels needs parts"),
        (
            lambda: Product((Linear(), "gaussian")),  # pyright: ignore[reportArgumentType]
            "parts must be kernels, not 'gaussian'",
        ),
        (lambda: Linear() + Precomputed(), "a precomputed kernel cannot be part of a sum"),
        (lambda: Precomputed() * 2.0, "a precomputed kernel cannot be part of a sum"),
    ],
)
def test_refusals_say_what_is_wrong(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("other", [1.0, "linear", None, True])
def test_only_kernels_are_added(other):
    with pytest.raises(TypeError):
        _ = Linear() + other
    if not isinstance(other, float):
        with pytest.raises(TypeError):
            _ = Linear() * other


def two_classes(n=80):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 2))
    return X, np.where(X[:, 0] * X[:, 1] + 0.1 * X[:, 0] > 0, "yes", "no")


@pytest.mark.parametrize(
    "k", [Gaussian(bandwidth=1.0) + 0.5 * Linear(), Linear() * Linear() + Linear()], ids=repr
)
def test_the_svm_takes_them(k):
    X, y = two_classes()
    model = SupportVectorMachine(kernel=k, regularize_intercept=False).fit(X, y)
    peer = SVC(kernel=k, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-5)
    own = SupportVectorMachine(kernel=k).fit(X, y)
    assert (own.predict(X) == y).mean() > 0.9
    assert own.certificate_.claims


def test_the_perceptron_takes_them():
    X, y = two_classes()
    sure = np.abs(X[:, 0] * X[:, 1] + 0.1 * X[:, 0]) > 0.05
    model = Perceptron(kernel=Linear() * Linear() + Linear(), random_state=0).fit(X[sure], y[sure])
    assert model.record_.converged
    assert (model.predict(X[sure]) == y[sure]).all()
