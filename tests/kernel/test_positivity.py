"""The Moore–Aronszajn check: it accepts kernels, and what it says against others can be checked
by hand.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from surelearn.kernel.functions import (
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    squared_distances,
)
from surelearn.kernel.positivity import check_positive

RNG = np.random.default_rng(0)
NONE = {
    "tanh": lambda X, Z: np.tanh(X @ Z.T - 1.0),
    "minus squared distance": lambda X, Z: -squared_distances(X, Z),
    "distance": cdist,
    "Gaussian of the ℓ₁ distance": lambda X, Z: np.exp(-(cdist(X, Z, "cityblock") ** 2)),
    "exp(−d³)": lambda X, Z: np.exp(-(cdist(X, Z) ** 3)),
    "difference of kernels": lambda X, Z: (
        Gaussian(bandwidth=0.7071)(X, Z) - Gaussian(bandwidth=0.6708)(X, Z)
    ),
    "integers": lambda X, Z: np.sign(X @ Z.T).astype(int) - 2,
}


@pytest.mark.parametrize(
    "k",
    [
        Linear(),
        Polynomial(3),
        Gaussian(bandwidth=0.2236),
        Gaussian(bandwidth=70.71),
        Laplace(1.0),
        Matern(2.0, 2.5),
    ],
    ids=repr,
)
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_kernels_pass(k, shift):
    X = RNG.normal(size=(150, 3)) + shift
    X[50:100] = X[:50]
    found = check_positive(k, X)
    assert found
    assert found.symmetric
    assert found.size == 150
    assert found.smallest >= -found.tolerance
    assert str(found).startswith("no sign against a kernel on 150 rows")
    assert check_positive(k, sparse.csr_array(X), rows=40, random_state=0).size == 40


@pytest.mark.parametrize("name", NONE)
def test_what_is_no_kernel_is_refuted_by_a_witness(name):
    X, k = RNG.normal(size=(60, 3)), NONE[name]
    found = check_positive(k, X)
    assert not found
    c, rows = found.coefficients, X[found.rows]
    with mp.workdps(40):
        K = mp.matrix(np.asarray(k(rows, rows), dtype=float).tolist())
        value = (mp.matrix(c).T * K * mp.matrix(c))[0]
    assert float(value) == pytest.approx(found.value, rel=1e-6)
    assert found.value < -found.tolerance
    assert found.value >= found.smallest - found.tolerance
    assert np.linalg.norm(c) == pytest.approx(1.0)
    assert "< 0 for these rows and coefficients" in str(found)


def test_the_smallest_eigenvalue_is_that_of_the_matrix():
    X = RNG.normal(size=(20, 2))
    K = NONE["tanh"](X, X)
    assert check_positive(NONE["tanh"], X).smallest == pytest.approx(np.linalg.eigvalsh(K).min())


def test_a_witness_is_small_where_few_rows_suffice():
    X = np.arange(8.0)[:, None]
    found = check_positive(lambda X, Z: -np.abs(X - Z.T), X)
    assert found.rows.size == 2
    np.testing.assert_allclose(found.coefficients, np.sqrt(0.5))
    assert found.value == pytest.approx(-abs(X[found.rows[0]] - X[found.rows[1]]).item())
    assert str(found).endswith("0.707, 0.707")


def test_a_function_that_is_not_symmetric():
    X = RNG.normal(size=(10, 2))
    found = check_positive(lambda X, Z: np.add.outer(X[:, 0], 2 * Z[:, 0]), X)
    assert not found
    assert not found.symmetric
    one, other = found.rows
    assert found.value == pytest.approx(X[other, 0] - X[one, 0])
    assert str(found).endswith("it is not symmetric")


def test_rounding_of_float32_is_no_refutation():
    X = RNG.normal(size=(200, 3))
    assert check_positive(lambda X, Z: Gaussian(bandwidth=1.581)(X, Z).astype(np.float32), X)


def test_the_sample_is_random_and_repeatable():
    X = RNG.normal(size=(100, 2))
    one, again = (check_positive(NONE["tanh"], X, rows=20, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(one.rows, again.rows)
    assert one.size == 20


@pytest.mark.parametrize(
    ("k", "X", "more", "message"),
    [
        (Linear(), np.ones((3, 2)), {"rows": 0}, "rows must be a whole number of at least 1"),
        (Linear(), np.ones(3), {}, "X must be rows"),
        (
            lambda X, Z: (X @ Z.T)[:, 0],
            np.ones((3, 2)),
            {},
            "kernel must return the matrix of 3 × 3 values",
        ),
        (lambda X, Z: (X @ Z.T) / np.nan, np.ones((3, 2)), {}, "not finite"),
    ],
)
def test_refusals_name_the_argument(k, X, more, message):
    with pytest.raises(ValueError, match=message):
        check_positive(k, X, **more)
