"""Kernels on torch tensors against the NumPy ones, far from the origin, in blocks, and when
memory runs out.
"""

from __future__ import annotations

import numpy as np
import pytest

from surelearn.kernel.functions import Gaussian, Kernel, Laplace, Linear, Matern, Polynomial
from surelearn.kernel.torch_functions import Evaluator

torch = pytest.importorskip("torch")

ALL: list[Kernel] = [
    Linear(),
    Polynomial(3),
    Gaussian(bandwidth=1.414),
    Laplace(3.0),
    Matern(2.0, 1.5),
    Matern(2.0, 2.5),
]
RNG = np.random.default_rng(0)
every_kernel = pytest.mark.parametrize("k", ALL, ids=repr)


def by_torch(k, X, Z, dtype="float64"):
    evaluator = Evaluator(k, Z, "cpu", dtype)
    return evaluator.block(evaluator.rows(X), evaluator.points).double().numpy()


@every_kernel
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks_are_the_numpy_kernels(k, dtype):
    X, Z = RNG.normal(size=(9, 4)), RNG.normal(size=(7, 4))
    np.testing.assert_allclose(
        by_torch(k, X, Z, dtype), k(X, Z), rtol=2e-4 if dtype == "float32" else 1e-11
    )


@pytest.mark.parametrize("k", ALL[2:], ids=repr)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shift", "spread"), [(1e6, 1.0), (0.0, 1e4), (1e3, 1e9), (0.0, 1e30)])
def test_near_rows_far_from_the_origin_keep_their_distance(k, dtype, shift, spread):
    Z = RNG.normal(size=(8, 3)) * spread + shift
    Z[1] = Z[0] + 0.5 * (spread < 1e15)
    expected = k(Z, Z)
    if spread == 1e30:
        expected = np.eye(8)
        expected[0, 1] = expected[1, 0] = 1.0
    np.testing.assert_allclose(
        by_torch(k, Z, Z, dtype), expected, atol=1e-2 if dtype == "float32" else 1e-7
    )


@every_kernel
def test_the_gram_matrix_in_pieces_is_the_block(k):
    X = RNG.normal(size=(23, 4))
    evaluator = Evaluator(k, X, "cpu", "float64")
    for budget in (1e9, 2000.0):
        np.testing.assert_allclose(evaluator.gram(budget).numpy(), k(X, X), rtol=1e-11)
        times = evaluator.times(
            evaluator.points, evaluator.points, torch.ones(23, 2, dtype=torch.float64), budget
        )
        np.testing.assert_allclose(times[:, 1].numpy(), k(X, X).sum(1), rtol=1e-8)
    np.testing.assert_allclose(
        evaluator.diagonal(evaluator.points).numpy(), k.diagonal(X), rtol=1e-12
    )


def test_running_out_of_memory_halves_the_block(monkeypatch):
    X = RNG.normal(size=(40, 3))
    evaluator, sizes = Evaluator(Gaussian(bandwidth=1.0), X, "cpu", "float64"), []
    whole = evaluator.block

    def small_device(A, B):
        sizes.append(len(A))
        if len(A) > 6:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(A, B)

    monkeypatch.setattr(evaluator, "block", small_device)
    times = evaluator.times(
        evaluator.points, evaluator.points, torch.ones(40, 1, dtype=torch.float64), 1e9
    )
    np.testing.assert_allclose(
        times[:, 0].numpy(), Gaussian(bandwidth=1.0)(X, X).sum(1), rtol=1e-12
    )
    assert sizes[:4] == [40, 20, 10, 5]
