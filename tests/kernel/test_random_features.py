"""Random features against the kernels they stand for, and minimum-norm least squares against
the pseudo-inverse.
"""

from __future__ import annotations

import functools
import time

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes
from tests.cases import scikit_learn_accepts

from surelearn.kernel import random_features
from surelearn.kernel.functions import Gaussian, Kernel, Laplace, Polynomial
from surelearn.kernel.random_features import (
    FourierFeatures,
    RandomFeaturesRegressor,
    ReluFeatures,
    arc_cosine,
    draw_frequencies,
    fourier_standard_error,
)

KERNELS: list[Kernel] = [Gaussian(bandwidth=1.225), Laplace(2.0)]
RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(6, 5)), RNG.normal(size=(4, 5))


@pytest.mark.parametrize(
    "maps",
    [
        FourierFeatures(n_components=20, random_state=0),
        FourierFeatures(Laplace(2.0), n_components=20, orthogonal=True, random_state=0),
        ReluFeatures(n_components=20, random_state=0),
    ],
    ids=repr,
)
def test_scikit_learn_accepts_the_maps(maps):
    scikit_learn_accepts(maps)


@functools.cache
def estimates(k, orthogonal, D, repeats):
    rows, found = np.vstack([X, Z]), []
    for seed in range(repeats):
        mapping = FourierFeatures(k, n_components=D, orthogonal=orthogonal, random_state=seed).fit(
            X
        )
        phi = mapping.transform(rows)
        found.append(phi[: len(X)] @ phi[len(X) :].T)
    return np.array(found)


@pytest.mark.parametrize("k", KERNELS, ids=repr)
@pytest.mark.parametrize("orthogonal", [False, True])
def test_products_are_unbiased_for_the_kernel(k, orthogonal):
    D, repeats = 40, 2000
    error = fourier_standard_error(k, X, Z, D) / np.sqrt(repeats)
    assert (np.abs(estimates(k, orthogonal, D, repeats).mean(0) - k(X, Z)) < 4.5 * error).all()


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_the_standard_error_is_the_stated_one_and_orthogonal_frequencies_lower_it(k):
    """The standard deviation of 2,000 estimates is known to about 1/√4000 = 1.6%."""
    plain, orthogonal = (estimates(k, which, 40, 2000).std(0) for which in (False, True))
    np.testing.assert_allclose(plain, fourier_standard_error(k, X, Z, 40), rtol=0.09)
    assert np.mean(orthogonal**2) < 0.9 * np.mean(plain**2)
    assert (orthogonal < plain * 1.06).all()


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_one_frequency_of_each_kind_has_the_same_length(k):
    """Orthogonal frequencies have the lengths of independent ones: quartiles of ‖ω‖, 20,000
    draws.
    """
    lengths = [
        np.linalg.norm(draw_frequencies(k, 3, 20_000, which, np.random.RandomState(1)), axis=0)
        for which in (False, True)
    ]
    np.testing.assert_allclose(*(np.percentile(each, [25, 50, 75]) for each in lengths), rtol=0.04)


def test_frequencies_of_a_block_are_orthogonal():
    W = draw_frequencies(Gaussian(bandwidth=0.7071), 4, 10, True, np.random.RandomState(0))
    for start, end in ((0, 4), (4, 8), (8, 10)):
        G = W[:, start:end].T @ W[:, start:end]
        np.testing.assert_allclose(G, np.diag(np.diag(G)), atol=1e-12)


def test_fourier_features_have_length_1():
    phi = FourierFeatures("laplace", n_components=8, random_state=0).fit_transform(100 * X)
    np.testing.assert_allclose((phi**2).sum(1), 1.0)


def test_an_odd_number_of_features_is_unbiased_too():
    """The last cosine stands alone: its product has at most the variance 1 about k."""
    found = estimates(KERNELS[0], False, 3, 4000)
    assert (np.abs(found.mean(0) - KERNELS[0](X, Z)) < 4.5 * found.std(0) / np.sqrt(4000)).all()
    assert (found.std(0) < 1).all()


@pytest.mark.parametrize("bias", [0.0, 1.5])
def test_relu_features_are_unbiased_for_the_arc_cosine_kernel(bias):
    D = 200_000
    mapping = ReluFeatures(D, bias=bias, random_state=0).fit(X)
    a, b = mapping.transform(X), mapping.transform(Z)
    terms = D * a[:, None, :] * b[None, :, :]
    error = terms.std(-1) / np.sqrt(D)
    assert (np.abs(terms.mean(-1) - arc_cosine(X, Z, bias)) < 4.5 * error).all()
    np.testing.assert_allclose(np.diag(arc_cosine(X, X, bias)), (X**2).sum(1) + bias**2)


@pytest.mark.parametrize("make", [FourierFeatures, ReluFeatures])
def test_a_seed_gives_the_same_features_for_dense_and_sparse_rows_and_they_have_names(make):
    mapping = make(n_components=6, random_state=3).fit(X)
    np.testing.assert_allclose(
        make(n_components=6, random_state=3).fit_transform(sparse.csr_array(X)),
        mapping.transform(X),
    )
    assert list(mapping.get_feature_names_out()) == [
        f"{make.__name__.lower()}{i}" for i in range(6)
    ]
    assert not np.allclose(
        make(n_components=6, random_state=4).fit_transform(X), mapping.transform(X)
    )


# ---- least squares


def design(model, rows):
    if model.features == "relu":
        mapping = ReluFeatures(model.n_components, random_state=model.random_state)
    else:
        mapping = FourierFeatures(
            model.features,
            bandwidth=model.bandwidth,
            n_components=model.n_components,
            random_state=0,
        )
    return mapping.fit_transform(rows)


@pytest.mark.parametrize("features", ["gaussian", "laplace", "relu"])
@pytest.mark.parametrize("intercept", ["free", "none"])
@pytest.mark.parametrize("D", [10, 40, 100])
@pytest.mark.parametrize("targets", [1, 3])
def test_it_is_the_pseudo_inverse_of_the_features(features, intercept, D, targets):
    rows, Y = RNG.normal(size=(40, 5)), 7 + RNG.normal(size=(40, targets))
    model = RandomFeaturesRegressor(
        features, bandwidth=1.6, n_components=D, fit_intercept=intercept == "free", random_state=0
    )
    model.fit(rows, Y if targets > 1 else Y[:, 0])
    phi, level = design(model, rows), np.zeros(targets)
    if intercept == "free":
        middle, level = phi.mean(0), Y.mean(0)
        expected = np.linalg.pinv(phi - middle) @ (Y - level)
        level = level - middle @ expected
    else:
        expected = np.linalg.pinv(phi) @ Y
    np.testing.assert_allclose(
        np.atleast_2d(model.coef_).T, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max()
    )
    assert model.facts_["weight_norm"] == pytest.approx(np.linalg.norm(expected), rel=1e-7)
    np.testing.assert_allclose(np.ravel(model.intercept_), level, atol=1e-6)
    fitted = model.predict(rows).reshape(Y.shape)
    assert model.facts_["training_risk"] == pytest.approx(((fitted - Y) ** 2).sum(1).mean())
    if D == 100:
        np.testing.assert_allclose(fitted, Y, atol=1e-6)
        assert model.facts_["rank"] == 40 - (intercept == "free")


def test_pieces_change_nothing(monkeypatch):
    rows, y = load_diabetes(return_X_y=True)
    asked = {"bandwidth": 0.22, "n_components": 30, "random_state": 0}
    whole = RandomFeaturesRegressor(**asked).fit(rows, y)
    monkeypatch.setattr(random_features, "_PIECE", 1)
    monkeypatch.setattr(
        random_features, "_pieces", lambda n, _: [slice(i, i + 37) for i in range(0, n, 37)]
    )
    pieces = RandomFeaturesRegressor(**asked).fit(sparse.csr_array(rows), y)
    np.testing.assert_allclose(pieces.coef_, whole.coef_, rtol=1e-7)
    np.testing.assert_allclose(pieces.predict(rows), whole.predict(rows), rtol=1e-9)


def test_the_cost_is_linear_in_n():
    """Eight times the rows cost at most 16 times the time (8 if linear, 64 if quadratic); the
    least of three runs.
    """

    def seconds(n):
        rows = RNG.normal(size=(n, 10))
        taken = []
        for _ in range(3):
            start = time.process_time()
            RandomFeaturesRegressor(n_components=40, random_state=0).fit(rows, rows[:, 0])
            taken.append(time.process_time() - start)
        return min(taken)

    seconds(1000)
    assert seconds(48_000) < 16 * seconds(6_000)


def test_one_row_and_constant_targets():
    model = RandomFeaturesRegressor(n_components=4, random_state=0).fit([[1.0, 2.0]], [3.0])
    assert model.predict([[5.0, 5.0]]) == pytest.approx([3.0])
    assert model.facts_["rank"] == 0
    flat = RandomFeaturesRegressor(n_components=200, random_state=0).fit(X, np.full(6, 2.5))
    np.testing.assert_allclose(flat.predict(Z), 2.5)


def test_the_certificate_says_what_is_absent_and_why():
    certificate = RandomFeaturesRegressor(random_state=0).fit(X, X[:, 0]).certificate_
    assert not certificate.claims
    reasons = {absent.what: absent.reason for absent in certificate.lacking}
    assert set(reasons) == {"uniform_stability", "risk", "distance_to_the_kernels_interpolant"}
    assert "Ridge" in reasons["risk"]
    assert "finite rank" in reasons["distance_to_the_kernels_interpolant"]


@pytest.mark.parametrize("targets", [1, 3])
def test_what_is_fitted_is_as_a_saved_copy_has_it(targets):
    """Arrays in C order: in another order the same numbers are summed differently."""
    model = RandomFeaturesRegressor(random_state=0).fit(
        X, X[:, :targets] if targets > 1 else X[:, 0]
    )
    assert model.coef_.flags.c_contiguous
    assert model.weights_.flags.c_contiguous


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            FourierFeatures(n_components=0),
            "n_components must be a whole number of at least 1, not 0",
        ),
        (FourierFeatures(n_components=True), "n_components must be a whole number"),
        (
            FourierFeatures("linear"),
            "kernel must be 'gaussian', 'laplace' or such a kernel object, not 'linear'",
        ),
        (FourierFeatures(Polynomial(2)), "kernel must be 'gaussian'"),
        (FourierFeatures(bandwidth=-1.0), "bandwidth must be positive and finite, not -1.0"),
        (ReluFeatures(bias=np.inf), "bias must be a finite number, not inf"),
        (
            RandomFeaturesRegressor("cosine"),
            "features must be one of 'gaussian', 'laplace', 'relu', not 'cosine'",
        ),
        (
            RandomFeaturesRegressor(fit_intercept="none"),  # pyright: ignore[reportArgumentType]
            "fit_intercept must be True or False, not 'none'",
        ),
    ],
)
def test_bad_parameters_are_refused_in_a_sentence(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, X[:, 0])
