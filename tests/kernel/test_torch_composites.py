"""Evaluators of composite, precomputed and weighted kernels against NumPy, in blocks, permuted,
and inside EigenPro.
"""

from __future__ import annotations

import numpy as np
import pytest

from surelearn.kernel.functions import (
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
)
from surelearn.kernel.iteration import Iteration
from surelearn.kernel.torch_composites import evaluator
from surelearn.kernel.torch_functions import Evaluator

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
ALL: list[Kernel] = [
    Gaussian(bandwidth=1.414) + 0.5 * Linear(),
    Linear() * Gaussian(bandwidth=1.414),
    2.0 * Laplace(3.0),
    Polynomial(2) + Matern(2.0, 2.5) * (Linear() + 3.0 * Laplace(2.0)),
]
every_kernel = pytest.mark.parametrize("k", ALL, ids=repr)
every_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def close(found, expected, dtype="float64"):
    assert found.dtype is getattr(torch, dtype)
    within = 2e-4 if dtype == "float32" else 1e-11
    np.testing.assert_allclose(found.double().numpy(), expected, rtol=within, atol=within)


def test_simple_kernels_keep_their_evaluator():
    X = RNG.normal(size=(5, 2))
    assert type(evaluator(Laplace(1.0), X, "cpu", "float32")) is Evaluator


@every_kernel
@every_dtype
def test_composites_are_the_numpy_kernels(k, dtype):
    X, Z = RNG.normal(size=(9, 4)), RNG.normal(size=(7, 4))
    made = evaluator(k, Z, "cpu", dtype)
    assert made.kernel is k
    rows = made.rows(X)
    assert rows.shape[1] == made.points.shape[1]
    close(made.block(rows, made.points), k(X, Z), dtype)
    close(made.block(made.points, made.points), k(Z, Z), dtype)
    close(made.diagonal(made.points), k.diagonal(Z), dtype)
    close(made.diagonal(rows), k.diagonal(X), dtype)


@every_kernel
@every_dtype
@pytest.mark.parametrize("budget", [1e9, 3000.0])
def test_pieces_times_and_gram(k, dtype, budget):
    X, c = RNG.normal(size=(23, 4)), RNG.normal(size=(23, 2))
    made = evaluator(k, X, "cpu", dtype)
    close(made.gram(budget), k(X, X), dtype)
    coefficients = torch.from_numpy(c).to(made.dtype)
    times = made.times(made.points, made.points, coefficients, budget)
    np.testing.assert_allclose(
        times.double().numpy(), k(X, X) @ c, atol=1e-3 if dtype == "float32" else 1e-8
    )
    pieces = list(made.pieces(made.points, made.points, budget))
    assert (len(pieces) > 1) is (budget == 3000.0)
    for rows, values in pieces:
        close(values, k(X, X)[rows], dtype)


@every_kernel
def test_rows_can_be_permuted_and_sliced(k):
    X = RNG.normal(size=(20, 3))
    order = RNG.permutation(20)
    made = evaluator(k, X, "cpu", "float64")
    made.points = made.points[torch.from_numpy(order)]
    close(made.gram(1e9), k(X[order], X[order]))
    close(made.block(made.points[3:9], made.points[:5]), k(X[order][3:9], X[order][:5]))


def test_each_part_keeps_the_precision_that_its_distances_need():
    Z = RNG.normal(size=(8, 3)) * 1e4
    Z[1] = Z[0] + 0.5
    k = Laplace(1.0) + 1e-9 * Linear()
    made = evaluator(k, Z, "cpu", "float32")
    assert made.points.dtype is torch.float64
    found = made.block(made.points, made.points)
    assert found.dtype is torch.float32
    np.testing.assert_allclose(found.numpy(), k(Z, Z), atol=1e-2)
    assert found[0, 1] > 0.4


@pytest.mark.parametrize("k", [ALL[0], ALL[1], Precomputed()], ids=repr)
def test_tensors_are_rows_too(k):
    X = RNG.normal(size=(6, 3))
    K = Gaussian(bandwidth=0.7071)(X, X) if isinstance(k, Precomputed) else k(X, X)
    rows = torch.from_numpy(K if isinstance(k, Precomputed) else X)
    made = evaluator(k, rows, "cpu", "float64")
    close(made.gram(1e9), K)
    close(made.block(made.rows(rows), made.points), K)


def test_nothing_given_is_changed():
    X = RNG.normal(size=(6, 3))
    made = evaluator(Linear() * Gaussian(bandwidth=1.0), X, "cpu", "float64")
    before = made.points.clone()
    for _ in range(2):
        made.block(made.points, made.points)
        made.diagonal(made.points)
    assert torch.equal(before, made.points)


@every_dtype
def test_a_precomputed_matrix_is_looked_up(dtype):
    X, Z = RNG.normal(size=(12, 3)), RNG.normal(size=(5, 3))
    k = Polynomial(2)
    K, test = k(X, X), k(Z, X)
    made = evaluator(Precomputed(), K, "cpu", dtype)
    order = RNG.permutation(12)
    made.points = made.points[torch.from_numpy(order)]
    close(made.gram(1e9), K[np.ix_(order, order)], dtype)
    close(made.gram(500.0), K[np.ix_(order, order)], dtype)
    close(made.block(made.points[2:7], made.points[:4]), K[np.ix_(order[2:7], order[:4])], dtype)
    close(made.block(made.rows(test), made.points), test[:, order], dtype)
    close(made.diagonal(made.points), np.diag(K)[order], dtype)
    c = torch.ones(12, 1, dtype=made.dtype)
    close(made.times(made.rows(test), made.points, c, 500.0)[:, 0], test.sum(1), dtype)


def test_some_rows_of_a_precomputed_matrix():
    X = RNG.normal(size=(10, 3))
    K, own = Gaussian(bandwidth=0.7071)(X, X), np.array([7, 2, 5])
    made = evaluator(Precomputed(), K[own], "cpu", "float64", numbers=own)
    close(made.gram(1e9), K[np.ix_(own, own)])
    close(made.block(made.rows(K[:2]), made.points), K[:2, own])


def test_precomputed_refusals():
    K = Gaussian(bandwidth=0.7071)(X := RNG.normal(size=(6, 2)), X)
    with pytest.raises(ValueError, match="X must be the square matrix"):
        evaluator(Precomputed(), K[:3], "cpu", "float64")
    with pytest.raises(ValueError, match="X holds NaN or infinity, first in row 1, column 4"):
        evaluator(
            Precomputed(), np.where(np.arange(36).reshape(6, 6) == 10, np.nan, K), "cpu", "float64"
        )
    made = evaluator(Precomputed(), K, "cpu", "float64")
    with pytest.raises(ValueError, match="at the 6 rows fitted as columns, not 4"):
        made.rows(K[:, :4])
    with pytest.raises(ValueError, match="k of two new rows"):
        made.diagonal(made.rows(K[:2]))


@pytest.mark.parametrize("k", [Linear(), Laplace(2.0), Precomputed(), *ALL[:2]], ids=repr)
@every_dtype
def test_weights_multiply_rows_and_columns(k, dtype):
    X, Z, weights = RNG.normal(size=(11, 3)), RNG.normal(size=(4, 3)), RNG.uniform(0, 3, size=11)
    weights[2] = 0.0
    K, test = (
        (Laplace(1.0)(X, X), Laplace(1.0)(Z, X))
        if isinstance(k, Precomputed)
        else (k(X, X), k(Z, X))
    )
    given, new = (K, test) if isinstance(k, Precomputed) else (X, Z)
    made = evaluator(k, given, "cpu", dtype, weights=weights)
    roots = np.sqrt(weights)
    close(made.gram(1e9), roots[:, None] * K * roots, dtype)
    close(made.block(made.points[:5], made.points[5:]), (roots[:, None] * K * roots)[:5, 5:], dtype)
    close(made.block(made.rows(new), made.points), test * roots, dtype)
    times = made.times(made.rows(new), made.points, torch.ones(11, 2, dtype=made.dtype), 500.0)
    close(times[:, 1], (test * roots).sum(1), dtype)
    order = RNG.permutation(11)
    made.points = made.points[torch.from_numpy(order)]
    close(made.gram(500.0), (roots[:, None] * K * roots)[np.ix_(order, order)], dtype)
    times = made.times(made.points, made.points, torch.ones(11, 1, dtype=made.dtype), 500.0)
    close(times[:, 0], (roots[:, None] * K * roots).sum(1)[order], dtype)
    close(made.diagonal(made.points), (weights * np.diag(K))[order], dtype)


def test_weights_are_checked():
    X = RNG.normal(size=(4, 2))
    for bad in ([1.0, 2.0], [1.0, 1.0, 1.0, -1.0], [1.0, 1.0, 1.0, np.nan]):
        with pytest.raises(ValueError, match="weights must be 4 finite numbers of at least 0"):
            evaluator(Linear(), X, "cpu", "float64", weights=np.array(bad))


def solved(made, Y, penalty, **chosen):
    chosen = {"size": 20, "directions": 4, "batch_size": 10, "step": None, "budget": 1e9} | chosen
    run = Iteration(made, torch.from_numpy(Y), penalty, **chosen)
    for epoch in range(1500):
        run.epoch(np.random.RandomState(epoch).permutation(len(run.blocks())))
        if run.residual() < 1e-22:
            break
    return run.alpha


@pytest.mark.parametrize("k", ALL[:3], ids=repr)
@pytest.mark.parametrize("budget", [1e9, 1.0])
def test_eigenpro_solves_with_them(k, budget):
    X, Y = RNG.normal(size=(40, 3)), RNG.normal(size=(40, 2))
    expected = np.linalg.solve(k(X, X) + 2.0 * np.eye(40), Y)
    np.testing.assert_allclose(
        solved(evaluator(k, X, "cpu", "float64"), Y, 2.0, budget=budget).numpy(),
        expected,
        atol=1e-7,
    )


def test_eigenpro_solves_a_precomputed_system():
    X, Y = RNG.normal(size=(40, 3)), RNG.normal(size=(40, 1))
    K = Laplace(2.0)(X, X)
    found = solved(evaluator(Precomputed(), K, "cpu", "float64"), Y, 0.5)
    np.testing.assert_allclose(found.numpy(), np.linalg.solve(K + 0.5 * np.eye(40), Y), atol=1e-7)


def test_weighted_ridge_is_each_row_as_often_as_it_weighs():
    X, Y, times = RNG.normal(size=(30, 3)), RNG.normal(size=(30, 1)), RNG.integers(0, 4, size=30)
    k, Z, penalty = Gaussian(bandwidth=1.225), RNG.normal(size=(6, 3)), 0.7
    made = evaluator(k, X, "cpu", "float64", weights=times.astype(float))
    beta = solved(made, np.sqrt(times)[:, None] * Y, penalty)
    repeated, targets = np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0)
    system = k(repeated, repeated) + penalty * np.eye(len(repeated))
    expected = k(Z, repeated) @ np.linalg.solve(system, targets)
    np.testing.assert_allclose(
        made.times(made.rows(Z), made.points, beta, 1e9).numpy(), expected, atol=1e-8
    )
    alpha = np.sqrt(times)[:, None] * beta.numpy()
    np.testing.assert_allclose(k(Z, X) @ alpha, expected, atol=1e-8)
