"""Kernels against mpmath, against scikit-learn with its own parameters, and against Mercer's
condition.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import pairwise

from surelearn.kernel.functions import (
    KERNELS,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    kernel,
    squared_distances,
)

ALL = [
    Linear(),
    Polynomial(2),
    Polynomial(5),
    Gaussian(bandwidth=0.5916),
    Gaussian(bandwidth=3.873),
    Laplace(0.7),
    Laplace(9.0),
]
ALL += [Matern(2.0, 1.5), Matern(0.7, 2.5)]
RNG = np.random.default_rng(0)


def by_hand(k: Kernel, x, z):
    with mp.workdps(40):
        x, z = [mp.mpf(float(v)) for v in x], [mp.mpf(float(v)) for v in z]
        inner = mp.fsum(a * b for a, b in zip(x, z, strict=True))
        squared = mp.fsum((a - b) ** 2 for a, b in zip(x, z, strict=True))
        if isinstance(k, Linear):
            return float(inner)
        if isinstance(k, Polynomial):
            return float((inner + 1) ** k.degree)
        if isinstance(k, Matern):
            t = mp.sqrt(2 * mp.mpf(k.nu) * squared) / mp.mpf(k.bandwidth)
            return float((1 + t + (t**2 / 3 if k.nu == 2.5 else 0)) * mp.exp(-t))
        assert isinstance(k, (Gaussian, Laplace))
        h = mp.mpf(k.bandwidth)
        return float(
            mp.exp(-squared / (2 * h**2) if isinstance(k, Gaussian) else -mp.sqrt(squared) / h)
        )


@pytest.mark.parametrize("k", ALL, ids=repr)
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_kernels_are_example_7_7(k, shift):
    X, Z = RNG.normal(size=(6, 3)) + shift, RNG.normal(size=(5, 3)) + shift
    Z[0] = X[0] + 1e-5  # close together, far from the origin
    X[1] = Z[1]
    expected = [[by_hand(k, x, z) for z in Z] for x in X]
    np.testing.assert_allclose(k(X, Z), expected, rtol=1e-11)
    np.testing.assert_allclose(
        k(sparse.csr_array(X), sparse.csr_array(Z)), expected, rtol=1e-9 if shift == 0 else 1e-4
    )


@pytest.mark.parametrize("k", ALL, ids=repr)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_diagonal_is_the_matrix_diagonal(k, make):
    X = make(RNG.normal(size=(7, 4)))
    np.testing.assert_allclose(k.diagonal(X), np.diag(k(X, X)), rtol=1e-13)
    assert np.sqrt(k.diagonal(X)).max() <= k.radius(float(np.sqrt(Linear().diagonal(X).max()))) * (
        1 + 1e-12
    )


@pytest.mark.parametrize("k", ALL, ids=repr)
@pytest.mark.parametrize("repeated", [False, True])
def test_matrices_are_symmetric_and_positive_semidefinite(k, repeated):
    X = RNG.normal(size=(60, 3)) + 5.0
    if repeated:
        X[30:] = X[:30]
    K = k(X, X)
    np.testing.assert_allclose(K, K.T, rtol=1e-12)
    values = np.linalg.eigvalsh((K + K.T) / 2)
    assert values.min() >= -1e-12 * values.max()


def test_the_distance_itself_would_not_be_a_kernel():
    X = RNG.normal(size=(20, 2))
    assert np.linalg.eigvalsh(-squared_distances(X, X)).min() < -1  # the test above can fail


def test_peers_with_their_own_parameters():
    X, Z = RNG.normal(size=(8, 3)), RNG.normal(size=(9, 3))
    np.testing.assert_allclose(
        Gaussian(bandwidth=1.25)(X, Z), pairwise.rbf_kernel(X, Z, gamma=0.32), rtol=1e-12
    )
    np.testing.assert_allclose(
        Polynomial(4)(X, Z), pairwise.polynomial_kernel(X, Z, degree=4, gamma=1, coef0=1)
    )
    # theirs is ℓ₁
    assert not np.allclose(Laplace(2.5)(X, Z), pairwise.laplacian_kernel(X, Z, gamma=1 / 2.5))
    assert Gaussian(bandwidth=3.0).bandwidth == pytest.approx(3.0)
    assert Gaussian(bandwidth=3.0)(X, Z)[0, 0] == pytest.approx(
        np.exp(-np.sum((X[0] - Z[0]) ** 2) / 18)
    )


@pytest.mark.parametrize("far", [0.0, 1e3, 1e6, 1e8])
def test_distances_are_never_negative_and_zero_between_equal_rows(far):
    X = RNG.normal(size=(40, 5)) + far
    for Y in (X, sparse.csr_array(X)):
        distances = squared_distances(Y, Y)
        assert distances.min() >= 0.0
        assert not np.diag(distances).any()
    np.testing.assert_allclose(squared_distances(X, X), ((X[:, None] - X) ** 2).sum(2), rtol=1e-9)


@pytest.mark.parametrize("k", ALL, ids=repr)
def test_sums_in_pieces(k, monkeypatch):
    X, Z, c = RNG.normal(size=(23, 3)), RNG.normal(size=(11, 3)), RNG.normal(size=(11, 2))
    whole = k(X, Z) @ c
    np.testing.assert_allclose(k.sums(X, Z, c), whole, rtol=1e-12)
    monkeypatch.setattr("surelearn.kernel.composites._PIECE", 50)
    assert len(list(k.pieces(X, Z))) == 6
    np.testing.assert_allclose(k.sums(X, Z, c), whole, rtol=1e-10)
    np.testing.assert_allclose(
        k.sums(sparse.csr_array(X), sparse.csr_array(Z), c[:, 0]), whole[:, 0], rtol=1e-9
    )


def test_names_and_parameters_round_trip():
    for name, made in KERNELS.items():
        assert kernel(name) == made()
    for k in ALL:
        assert kernel(k.name, **k.parameters()) == k
        assert kernel(k) is k
    with pytest.raises(AttributeError):
        Gaussian(bandwidth=0.7).bandwidth = 2.0  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("which", "parameters", "message"),
    [
        ("rbf", {}, "kernel must be one of linear, polynomial, gaussian, laplace"),
        ("gaussian", {"bandwidth": 0.0}, "bandwidth must be positive"),
        ("laplace", {"bandwidth": float("inf")}, "bandwidth must be positive"),
        ("laplace", {"bandwidth": "scale"}, "bandwidth must be positive"),
        ("polynomial", {"degree": 2.5}, "degree must be a whole number"),
        ("polynomial", {"degree": 0}, "degree must be a whole number"),
    ],
)
def test_refusals_name_the_parameter(which, parameters, message):
    with pytest.raises(ValueError, match=message):
        kernel(which, **parameters)


def quadratic_features(X):
    """φ(x) of the course's quadratic classifier: xxᵀ row by row, √2·x, and 1 (Definition 7.2)."""
    return np.hstack(
        [np.einsum("ni,nj->nij", X, X).reshape(len(X), -1), np.sqrt(2.0) * X, np.ones((len(X), 1))]
    )


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_quadratic_classifier_is_the_polynomial_kernel_of_degree_2(d):
    X, Z = RNG.normal(size=(8, d)), RNG.normal(size=(6, d))
    assert quadratic_features(X).shape == (8, d**2 + d + 1)
    np.testing.assert_allclose(
        quadratic_features(X) @ quadratic_features(Z).T, Polynomial(2)(X, Z), rtol=1e-12, atol=1e-14
    )
    Q, p, b = RNG.normal(size=(d, d)), RNG.normal(size=d), 0.7
    by_form = [x @ Q @ x + np.sqrt(2.0) * x @ p + b for x in X]
    np.testing.assert_allclose(
        quadratic_features(X) @ np.r_[Q.ravel(), p, b], by_form, rtol=1e-9, atol=1e-12
    )


def test_the_feature_map_is_not_unique_but_the_kernel_is():
    X, Z = RNG.normal(size=(5, 2)), RNG.normal(size=(4, 2))  # Remark 7.5, as corrected

    def three(X):
        return np.c_[X[:, 0] ** 2, np.sqrt(2.0) * X[:, 0] * X[:, 1], X[:, 1] ** 2]

    def four(X):
        return np.c_[X[:, 0] ** 2, X[:, 0] * X[:, 1], X[:, 0] * X[:, 1], X[:, 1] ** 2]

    np.testing.assert_allclose(three(X) @ three(Z).T, four(X) @ four(Z).T)
    np.testing.assert_allclose(three(X) @ three(Z).T, (Linear() * Linear())(X, Z))


@pytest.mark.parametrize("far", [0.0, 1e4, 1e8])
@pytest.mark.parametrize("apart", [1.0, 1e-3, 1e-6])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_distances_of_near_rows_far_away_do_not_cancel(far, apart, make):
    X = RNG.normal(size=(5, 3)) + far
    Z = X[:4] + apart * RNG.normal(size=(4, 3))
    with mp.workdps(50):
        expected = [
            [float(sum((mp.mpf(a) - mp.mpf(b)) ** 2 for a, b in zip(x, z, strict=True))) for z in Z]
            for x in X
        ]
    np.testing.assert_allclose(squared_distances(make(X), make(Z)), expected, rtol=1e-11)
    naive = (X**2).sum(1)[:, None] + (Z**2).sum(1) - 2 * X @ Z.T
    assert far < 1e8 or np.abs(naive / expected - 1).max() > 1e-3  # the test can fail


def test_a_precomputed_kernel_hands_the_matrix_through():
    X, Z = RNG.normal(size=(6, 2)), RNG.normal(size=(3, 2))
    k, K, test = Precomputed(), Laplace(1.0)(X, X), Laplace(1.0)(Z, X)
    c = RNG.normal(size=6)
    np.testing.assert_array_equal(k(test, K), test)
    np.testing.assert_array_equal(k(sparse.csr_array(test), K), test)
    np.testing.assert_allclose(k.sums(test, K, c), test @ c)
    np.testing.assert_array_equal(k.diagonal(K), np.diag(K))
    assert k(K, K) is not K
    assert k.radius(1.0) is None
    assert kernel("precomputed") == kernel(k.name, **k.parameters()) == k
    with pytest.raises(
        ValueError, match="at all 6 training rows together, not at a selection of 2"
    ):
        k(test, K[:2])
    with pytest.raises(ValueError, match="square matrix"):
        k.diagonal(test)
