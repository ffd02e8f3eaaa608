"""The fused CUDA kernel against float64; without a device, the arithmetic of its float16 parts."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.making import make  # noqa: E402

from surelearn.kernel import fused  # noqa: E402
from surelearn.kernel.eigenpro import EigenProRegressor  # noqa: E402
from surelearn.kernel.functions import Gaussian, Laplace, Linear, Matern  # noqa: E402
from surelearn.kernel.torch_functions import Evaluator  # noqa: E402

CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
RADIAL = [Gaussian(bandwidth=1.225), Laplace(2.0), Matern(2.0), Matern(2.0, nu=2.5)]


@pytest.mark.parametrize("size", [1e-3, 1.0, 10.0])
def test_three_products_of_halves_are_as_good_as_float32(size):
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(50, 30))).float() * size / 5.5
    halves = fused.split(rows)
    found = halves.left.double() @ halves.right.double().T * fused.UNIT / 2
    exact = rows.double() @ rows.double().T
    norms = exact.diagonal().sqrt()
    error = ((found - exact).abs() / (norms[:, None] * norms)).max()
    assert error < 2.0**-20
    assert (rows.half().double() @ rows.half().double().T - exact).abs().max() > 100 * (
        found - exact
    ).abs().max()
    assert halves.left.shape[1] % 64 == 0


def test_rows_far_away_do_not_overflow():
    halves = fused.split(torch.tensor([[1e15, -1e15], [0.0, 1.0]]))
    assert halves.left.isfinite().all()
    assert halves.squares.isfinite().all()


def test_only_radial_kernels_on_a_device_are_fused():
    rows = torch.zeros(2, 2)
    assert not fused.available(rows, Gaussian(bandwidth=0.7071))
    assert [fused.shape_of(k) for k in (*RADIAL, Linear())] == [0, 1, 2, 3, None]


@CUDA
@pytest.mark.parametrize("k", RADIAL, ids=repr)
@pytest.mark.parametrize(
    ("n", "m", "d", "outputs"),
    [(1, 1, 1, 1), (300, 1000, 7, 1), (1000, 129, 100, 3), (500, 700, 784, 20)],
)
def test_fused_is_the_kernel(k, n, m, d, outputs):
    rng = np.random.default_rng(n)
    X, Z = rng.normal(size=(m, d)) / np.sqrt(d) + 5.0, rng.normal(size=(n, d)) / np.sqrt(d) + 5.0
    X[: m // 3] = X[m // 3 : 2 * (m // 3)]  # copies
    evaluator = Evaluator(k, X, "cuda", "float32")
    assert fused.available(evaluator.points, k)
    gram = evaluator.gram(2.0**28).cpu().numpy()
    np.testing.assert_allclose(gram, k(X, X), atol=5e-6)
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_array_equal(gram.diagonal(), 1.0)
    c = rng.normal(size=(m, outputs))
    found = (
        evaluator.times(
            evaluator.rows(Z), evaluator.points, torch.from_numpy(c).cuda().float(), 2.0**28
        )
        .cpu()
        .numpy()
    )
    np.testing.assert_allclose(found, k(Z, X) @ c, atol=2e-5 * np.sqrt(m))


@CUDA
@pytest.mark.parametrize("memory_limit", [None, 5e6])
def test_a_fit_on_the_device_is_the_fit_on_the_cpu(memory_limit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=3000)
    settings = {
        "bandwidth": 2.0,
        "regularization": 1e-3,
        "epochs": 200,
        "tol": 1e-6,
        "random_state": 0,
        "solver": "eigenpro",
    }
    models = [
        make(EigenProRegressor, device=device, memory_limit=memory_limit, **settings).fit(X, y)
        for device in ("cuda", "cpu")
    ]
    on_device, on_cpu = (model.predict(X[:100]) for model in models)
    np.testing.assert_allclose(on_device, on_cpu, atol=1e-3)
    tensors = make(EigenProRegressor, device="cuda", **settings).fit(
        torch.from_numpy(X).cuda(), torch.from_numpy(y).cuda()
    )
    found = tensors.predict(torch.from_numpy(X[:100]).cuda())
    assert found.is_cuda
    np.testing.assert_allclose(found.cpu().numpy(), on_cpu, atol=1e-3)
