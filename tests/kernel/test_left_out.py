"""Kernel machines without one row: the closed form against fits without that row."""

import numpy as np
import pytest
from sklearn.base import clone

from surelearn.kernel import Compute
from surelearn.kernel.eigenpro import EigenProClassifier, EigenProRegressor
from surelearn.kernel.functions import Gaussian, Laplace, Linear
from surelearn.kernel.left_out import kernel_of, left_out

pytest.importorskip("torch")
RNG = np.random.default_rng(0)
X, Z, Y = RNG.normal(size=(25, 3)), RNG.normal(size=(7, 3)), RNG.normal(size=(25, 2))
LABELS = np.array(["a", "b", "c"])[RNG.integers(0, 3, 25)]


def without(model, X, y, i):
    """The fit without row i, the total penalty nλ held fixed."""
    n, rows = len(X), np.delete(np.arange(len(X)), i)
    made = clone(model).set_params(regularization=model.regularization * n / (n - 1))
    return made.fit(X[rows], y[rows])


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(bandwidth=1.225), Laplace(0.7), Gaussian(bandwidth=1.225) + 0.5 * Linear()],
    ids=repr,
)
@pytest.mark.parametrize("y", [Y[:, 0], Y], ids=["one output", "two outputs"])
@pytest.mark.parametrize("regularization", [0.0, 0.02])
def test_every_fit_without_a_row(kernel, y, regularization):
    model = EigenProRegressor(
        kernel, regularization=regularization, compute=Compute(device="cpu")
    ).fit(X, y)
    fits = left_out(model, Z)
    np.testing.assert_allclose(fits.full, model.predict(Z).reshape(len(Z), -1), atol=1e-8)
    for i, values in enumerate(fits.values()):
        other = without(model, X, y, i)
        np.testing.assert_allclose(values, other.predict(Z).reshape(len(Z), -1), atol=1e-6)
        np.testing.assert_allclose(fits.own[i], other.predict(X[[i]]).ravel(), atol=1e-6)
    np.testing.assert_allclose(fits.own + fits.pull, y.reshape(len(y), -1), atol=1e-8)
    assert kernel_of(model) == kernel


def test_of_classes():
    model = EigenProClassifier(
        bandwidth=1.5, regularization=0.01, compute=Compute(device="cpu")
    ).fit(X, LABELS)
    values = list(left_out(model, Z).values())
    np.testing.assert_allclose(
        values[3], without(model, X, LABELS, 3).decision_function(Z), atol=1e-8
    )


def test_where_there_is_no_closed_form():
    iterated = EigenProRegressor(
        bandwidth=1.0, solver="eigenpro", compute=Compute(device="cpu"), random_state=0
    ).fit(X, Y)
    assert left_out(iterated, Z) is None
    singular = EigenProRegressor("linear", solver="direct", compute=Compute(device="cpu")).fit(X, Y)
    assert left_out(singular, Z) is None
