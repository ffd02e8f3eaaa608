"""The solver of a block of rows: triangular inverses, damping that rounding cannot defeat."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from surelearn.kernel.damped import damped_factors, inverse_of_triangular, solve_damped  # noqa: E402


@pytest.mark.parametrize("m", [1, 2, 255, 256, 257, 512, 700, 1025])
def test_triangular_inverse(m):
    rng = np.random.default_rng(m)
    lower = np.tril(rng.normal(size=(2, m, m))) / np.sqrt(m) + 2 * np.eye(m)
    found = inverse_of_triangular(torch.from_numpy(lower)).numpy()
    np.testing.assert_allclose(found @ lower, np.broadcast_to(np.eye(m), (2, m, m)), atol=1e-12)
    assert not np.triu(found, 1).any()


def test_each_block_has_its_own_damping():
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(3, 40, 60)) * np.array([1.0, 10.0, 100.0])[:, None, None]
    blocks = roots @ roots.transpose(0, 2, 1)
    share = 0.3
    factors = damped_factors(
        torch.from_numpy(blocks.copy()), torch.ones(3, dtype=torch.float64), share
    )
    right = rng.normal(size=(40, 2))
    for block, factor in zip(blocks, factors, strict=True):
        damped = block + share * block.diagonal().max() * np.eye(40)
        np.testing.assert_allclose(
            solve_damped(factor, torch.from_numpy(right)).numpy(), np.linalg.solve(damped, right)
        )


def test_an_indefinite_block_is_damped_until_it_is_not():
    blocks = torch.tensor([[[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]], dtype=torch.float64)
    factors = damped_factors(blocks, torch.ones(2, dtype=torch.float64), 1e-4)
    assert factors.isfinite().all()
    inverse = factors[1].T @ factors[1]
    # the sound block is left as it was
    np.testing.assert_allclose(inverse.numpy(), np.eye(2) / (1 + 1e-4), rtol=1e-12)


def test_a_block_of_zeros_is_solved():
    factors = damped_factors(torch.zeros(1, 3, 3), torch.zeros(1), 1e-2)
    np.testing.assert_allclose(solve_damped(factors[0], torch.ones(3, 1)).numpy(), 1.0)
