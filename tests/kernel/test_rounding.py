"""What rounding does to kernel values and to what is claimed of a fit; what memory, time and
odd input do to a fit.
"""

import math
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.making import make  # noqa: E402

from surelearn.kernel import (  # noqa: E402
    Compute,
    EigenProClassifier,
    EigenProRegressor,
    Stopping,
    fitting,
    iteration,
)
from surelearn.kernel.functions import Gaussian, Laplace, Linear, Matern, Polynomial  # noqa: E402
from surelearn.kernel.precomputed import POSITIVE  # noqa: E402
from surelearn.kernel.spectrum import KernelSpectrum  # noqa: E402
from surelearn.kernel.torch_composites import evaluator  # noqa: E402
from surelearn.kernel.torch_functions import Evaluator, out_of_memory  # noqa: E402

KERNELS = [
    Gaussian(bandwidth=0.3873),
    Laplace(0.7),
    Matern(0.5, nu=1.5),
    Matern(2.0, nu=2.5),
    Linear(),
    Polynomial(3),
    Gaussian(bandwidth=1.0) + 0.5 * Linear(),
    Laplace(0.7) * Gaussian(bandwidth=1.225),
]


def exact(k, X):
    """The kernel matrix with 64 binary digits."""
    wide = X.astype(np.longdouble)
    inner = wide @ wide.T
    squares = ((wide[:, None] - wide[None]) ** 2).sum(2)
    distance = np.sqrt(squares)
    match k:
        case Gaussian():
            return np.exp(-squares / (2 * np.longdouble(k.bandwidth) ** 2))
        case Laplace():
            return np.exp(-distance / k.bandwidth)
        case Matern():
            t = np.sqrt(np.longdouble(2 * k.nu)) * distance / k.bandwidth
            return (1 + t + (t**2 / 3 if k.nu == 2.5 else 0)) * np.exp(-t)
        case Polynomial():
            return (1 + inner) ** k.degree
        case Linear():
            return inner
    parts = [exact(part, X) for part in k.parts]
    return (
        sum(w * part for w, part in zip(k.weights, parts, strict=True))
        if hasattr(k, "weights")
        else parts[0] * parts[1]
    )


def rows_of_all_distances(seed, spread):
    """Pairs from 1e-9 lengths apart to many, and copies."""
    rng = np.random.default_rng(seed)
    X = spread * rng.normal(size=(40, 5))
    X[20:] = X[:20] + 10.0 ** rng.uniform(-9, 0, size=(20, 1)) * rng.normal(size=(20, 5))
    X[1] = X[0]
    return X


@pytest.mark.parametrize("spread", [0.1, 3.0, 30.0, 1e4])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_values_are_within_the_error_that_is_stated(k, dtype, spread):
    for seed in range(5):
        X = rows_of_all_distances(seed, spread)
        if dtype == "float32":
            X = X.astype(np.float32)
        made = evaluator(k, X, "cpu", dtype)
        off = np.abs(made.block(made.points, made.points).numpy() - exact(k, X)).max()
        assert off <= made.error()


@pytest.mark.parametrize(
    "k", [Gaussian(bandwidth=0.7071), Laplace(1.0), Matern(1.0, nu=1.5)], ids=repr
)
def test_products_of_rows_far_from_the_center_cost_digits(k):
    """Of rows 20 lengths from the center and under one apart; the error is not overstated by
    more than 100 here.
    """
    rng = np.random.default_rng(0)
    X = np.repeat(rng.choice([-20.0, 20.0], size=150), 2)[:, None] + rng.uniform(
        0, 0.8, size=(300, 1)
    )
    X = np.vstack([X, rng.uniform(-20, 20, size=(6000, 1))])  # few pairs are near
    made = Evaluator(k, X, "cpu", "float64")
    own = made.points[:300]
    off = np.abs(made.block(own, made.points).numpy()[:, :300] - exact(k, X[:300])).max()
    assert made.error() / 100 < off <= made.error()


@pytest.mark.parametrize(
    ("dtype", "near", "far", "most"), [("float32", 3e-3, 5.0, 5e-4), ("float64", 1e-7, 20.0, 1e-9)]
)
def test_near_rows_keep_their_distance(dtype, near, far, most):
    """A kernel with a kink at 0 sees every distance, however near the rows are and however far
    from the others.
    """
    X = np.array([[0.0], [near], [-2 * near], [far], [-far]]).astype(dtype)
    made = Evaluator(Laplace(1.0), X, "cpu", dtype)
    np.testing.assert_allclose(
        made.block(made.points, made.points).numpy(),
        exact(Laplace(1.0), X).astype(float),
        atol=most,
    )


def test_norm_and_distance_of_rows_that_nearly_coincide():
    """Two rows 1.5e-5 apart with opposite targets, others far away: f is steep, and its
    certificate must know.
    """
    X, y, lam = (
        np.array([[0.0], [1.5e-5], [500.0], [-500.0]]),
        np.array([1.0, -1.0, 0.0, 0.0]),
        1e-8,
    )
    K = exact(Laplace(1.0), X).astype(float)
    alpha = np.linalg.solve(K + 4 * lam * np.eye(4), y)
    model = EigenProRegressor("laplace", bandwidth=1.0, regularization=lam).fit(X, y)
    norm = math.sqrt(alpha @ K @ alpha)
    assert model.facts_["norm"] == pytest.approx(norm, rel=1e-6)
    np.testing.assert_allclose(model.predict(X), K @ alpha, atol=1e-6)
    away = model.coef_ - alpha
    assert math.sqrt(max(0.0, away @ K @ away)) <= model.certificate_.claims[0].value < norm


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_the_distance_claim_is_never_below_the_distance(n):
    """Also where the residual is 0 and only rounding is left; the solution in 64 binary digits
    by refinement.
    """
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, y, lam = rng.normal(size=(n, 2)), rng.normal(size=n), 10 ** rng.uniform(-4, 0)
        model = EigenProRegressor(
            "gaussian", bandwidth=1.0, regularization=lam, solver="direct"
        ).fit(X, y)
        K = exact(Gaussian(bandwidth=1.0), X)
        system = K + lam * n * np.eye(n, dtype=np.longdouble)
        alpha = np.zeros(n, dtype=np.longdouble)
        for _ in range(6):
            alpha += np.linalg.solve(system.astype(float), (y - system @ alpha).astype(float))
        away = model.coef_ - alpha
        assert (
            float(np.sqrt(np.maximum(0, away @ K @ away)))
            <= model.certificate_.claims[0].value
            <= 1e-5
        )


@pytest.mark.filterwarnings("ignore:the kernel matrix of")
@pytest.mark.parametrize(("dtype", "most"), [("float32", 1e-3), ("float64", 1e-4)])
def test_hundreds_of_small_problems_with_and_without_penalty(dtype, most):
    """EigenPro with its own settings against a direct solution, wherever that is determined to
    three digits.
    """
    rng = np.random.default_rng(1)
    kernels, judged = (
        [
            Gaussian(bandwidth=0.7071),
            Laplace(0.7),
            Laplace(3.0),
            Gaussian(bandwidth=1.581) * Laplace(3.0),
            Linear() + Gaussian(bandwidth=1.0),
        ],
        0,
    )
    for trial in range(400):
        n, d = int(rng.integers(1, 13)), int(rng.integers(1, 4))
        X, Z, Y = (
            rng.normal(size=(n, d)),
            rng.normal(size=(3, d)),
            rng.normal(size=(n, 1)) * 10 ** rng.uniform(-3, 3),
        )
        k, lam = kernels[trial % len(kernels)], 0.0 if trial % 2 else 10 ** rng.uniform(-3, 2)
        system = k(X, X) + lam * n * np.eye(n)
        if np.linalg.cond(system) > 1e3:
            continue
        settings = {
            "solver": "eigenpro",
            "dtype": dtype,
            "epochs": 300,
            "tol": 1e-6,
            "device": "cpu",
            "random_state": trial,
        }
        found = make(EigenProRegressor, k, regularization=lam, **settings).fit(X, Y).predict(Z)
        assert np.abs(found - k(Z, X) @ np.linalg.solve(system, Y)).max() <= most * np.abs(Y).max()
        judged += 1
    assert judged > 340


def test_targets_of_any_size():
    X = np.random.default_rng(0).normal(size=(60, 3))
    plain = (
        EigenProRegressor(bandwidth=1.0, solver="eigenpro", random_state=0)
        .fit(X, X[:, 0])
        .predict(X)
    )
    for size in (1e38, 1e-46, 1e100):
        model = EigenProRegressor(bandwidth=1.0, solver="eigenpro", random_state=0).fit(
            X, size * X[:, 0]
        )
        np.testing.assert_allclose(model.predict(X) / size, plain, rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match="squares are too large"):
        EigenProRegressor(bandwidth=1.0).fit(X, 1e300 * X[:, 0])
    weighted = EigenProRegressor(bandwidth=1.0, solver="eigenpro", random_state=0).fit(
        X, X[:, 0], np.full(60, 1e200)
    )
    np.testing.assert_allclose(weighted.predict(X), plain, atol=1e-3)


# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", ["eigensystem", "apply", "preconditioned", "features"])
@pytest.mark.parametrize("call", [1, 2, 5])
def test_memory_may_run_out_anywhere(monkeypatch, at, call):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(200, 3)), rng.normal(size=200)
    settings = {
        "solver": "eigenpro",
        "dtype": "float64",
        "epochs": 300,
        "tol": 1e-9,
        "regularization": 1e-2,
    }
    settings |= {"subsample": 40, "batch_size": 32, "device": "cpu", "random_state": 0}
    expected = make(EigenProRegressor, bandwidth=2.0, **settings).fit(X, Y).predict(X)
    owner, name = {
        "eigensystem": (iteration, "eigensystem"),
        "apply": (iteration.Iteration, "apply"),
        "preconditioned": (iteration.Iteration, "preconditioned"),
        "features": (Evaluator, "gram"),
    }[at]
    original, calls = getattr(owner, name), []

    def failing(*arguments):
        calls.append(1)
        if len(calls) == call:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return original(*arguments)

    monkeypatch.setattr(owner, name, failing)
    found = make(EigenProRegressor, bandwidth=2.0, **settings).fit(X, Y).predict(X)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_direct_solution_without_memory(monkeypatch):
    def full(*arguments):
        raise RuntimeError(
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
        )

    monkeypatch.setattr(fitting, "solve", full)
    X = np.random.default_rng(0).normal(size=(50, 3))
    assert EigenProRegressor(bandwidth=2.0).fit(X, X[:, 0]).facts_["solver"] == "eigenpro"
    with pytest.raises(MemoryError, match="use solver='eigenpro'"):
        EigenProRegressor(bandwidth=2.0, solver="direct").fit(X, X[:, 0])
    assert not out_of_memory(
        RuntimeError("required rank 4 tensor to use channels_last memory format")
    )


def test_the_memory_limit_rules_the_direct_solver_and_all_sizes():
    X = np.random.default_rng(0).normal(size=(1500, 3))
    model = EigenProRegressor(bandwidth=2.0, compute=Compute(memory_limit=2e6), epochs=2).fit(
        X, X[:, 0]
    )
    assert model.facts_["solver"] == "eigenpro"
    assert (model.facts_["subsample"], model.facts_["batch_size"]) == (125, 176)
    assert model.facts_["directions"] <= 25
    assert EigenProRegressor(bandwidth=2.0).fit(X, X[:, 0]).facts_["solver"] == "direct"


def test_time_for_preparation_counts(monkeypatch):
    started = time.monotonic()
    monkeypatch.setattr(iteration.Iteration, "_prepare", _slowly(iteration.Iteration._prepare))
    X = np.random.default_rng(0).normal(size=(200, 3))
    settings = {
        "solver": "eigenpro",
        "epochs": 10**6,
        "tol": 0.0,
        "time_limit": 0.3,
        "device": "cpu",
    }
    model = make(EigenProRegressor, "laplace", bandwidth=2.0, **settings).fit(X, X[:, 0])
    assert model.facts_["stopped"] == "time"
    assert model.epochs_ == 1
    assert time.monotonic() - started < 30


def _slowly(function):
    def slow(*arguments):
        time.sleep(0.4)
        return function(*arguments)

    return slow


# --------------------------------------------------------------------------------------------------


def test_directions_follow_the_spectrum_and_the_batch():
    found = KernelSpectrum(np.array([1.0, 0.1, 0.01, 0.001]), 1.0)
    assert [found.directions(m, 0.5) for m in (1, 2, 5, 12, 102, 2000)] == [0, 0, 1, 2, 3, 4]
    for m in (2, 5, 12, 102):
        q = found.directions(m, 0.5)
        assert m / (1 + (m - 1) / found.critical_batch_size(q)) >= 0.5 * m * (1 - 1e-12)
        assert q == 0 or m / (1 + (m - 1) / found.critical_batch_size(q - 1)) < 0.5 * m
    X = np.random.default_rng(0).normal(size=(600, 10))
    settings = {
        "solver": "eigenpro",
        "epochs": 1,
        "subsample": 500,
        "device": "cpu",
        "random_state": 0,
    }
    by_batch = [
        make(EigenProRegressor, "laplace", bandwidth=4.0, batch_size=m, **settings)
        .fit(X, X[:, 0])
        .facts_["directions"]
        for m in (5, 20, 600)
    ]
    assert by_batch[0] < by_batch[1] < by_batch[2] == 100


def test_acceleration_is_measured_outside_the_subsample_or_not_at_all():
    X = np.random.default_rng(0).normal(size=(300, 5))
    settings = {"solver": "eigenpro", "epochs": 1, "device": "cpu", "random_state": 0}
    assert (
        make(EigenProRegressor, "laplace", bandwidth=4.0, **settings)
        .fit(X, X[:, 0])
        .facts_["acceleration_measured"]
        is None
    )
    apart = make(
        EigenProRegressor, "laplace", bandwidth=4.0, subsample=100, batch_size=100, **settings
    ).fit(X, X[:, 0])
    assert 1.0 < apart.facts_["acceleration_measured"] < apart.facts_["acceleration_predicted"]


# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("Machine", [EigenProRegressor, EigenProClassifier])
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"epochs": "x"}, "epochs must be a whole number"),
        ({"epochs": None}, "epochs must be a whole number"),
        ({"epochs": float("nan")}, "epochs must be a whole number"),
        ({"subsample": "a"}, "subsample must be a whole number"),
        ({"patience": 0}, "patience must be a whole number"),
        ({"tol": -1.0}, "tol must be a finite number"),
        ({"target": "a"}, "target must be a finite number"),
        ({"validation_fraction": "a"}, "validation_fraction must be between"),
        ({"delta": 2.0}, "delta must be between"),
        ({"centers": 5, "step": 1.0}, "step goes with centers=None"),
        ({"centers": 5, "x_bound": 1e-3}, "x_bound=0.001 but a row has"),
        ({"x_bound": 1e-3}, "x_bound=0.001 but a row has"),
        ({"device": "cuda"}, "needs a GPU"),
    ],
    ids=str,
)
def test_a_wrong_parameter_is_named(Machine, settings, said):
    if settings.get("device") == "cuda" and torch.cuda.is_available():
        pytest.skip("a GPU is here")
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ValueError, match=said):
        make(Machine, bandwidth=1.0, **settings).fit(X, X[:, 0] > 0)


def test_matrices_that_are_no_kernel():
    y = np.random.default_rng(0).normal(size=80)
    with pytest.raises(ValueError, match="positive semidefinite"):
        EigenProRegressor("precomputed", regularization=0.1).fit(-np.eye(80), y)
    K = np.eye(80)
    model = EigenProRegressor("precomputed", regularization=0.1).fit(K, y)
    K[3, 2] = np.nan
    with pytest.raises(ValueError, match="row 3, column 2"):
        model.predict(K)


def test_validation_rows_of_a_direct_solution_are_measured():
    X = np.random.default_rng(0).normal(size=(100, 3))
    model = EigenProRegressor(
        bandwidth=2.0, solver="direct", stopping=Stopping(validation_fraction=0.2), random_state=0
    ).fit(X, X[:, 0])
    assert model.facts_["validation_rows"] == 20
    held = np.setdiff1d(np.arange(100), model.center_indices_)
    expected = ((model.predict(X[held]) - X[held, 0]) ** 2).mean()
    assert model.facts_["validation_error"] == pytest.approx(expected)


def test_a_kernel_that_sees_no_difference_warns():
    X = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.warns(UserWarning, match="rank 1"):
        EigenProRegressor("gaussian", bandwidth=1e9).fit(X, X[:, 0])


def test_short_floats_are_widened():
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(30, 3))).bfloat16()
    model = EigenProRegressor(bandwidth=1.0).fit(X, X[:, 0].double())
    np.testing.assert_allclose(model.predict(X).numpy(), X[:, 0].double().numpy(), atol=1e-6)


def test_a_matrix_that_was_not_seen_whole_is_assumed_to_be_a_kernels(monkeypatch):
    """Also where few of its rows are fitted: which rows were looked at has nothing to do with
    their weights.
    """
    monkeypatch.setattr("surelearn.kernel.record.MOST_ROWS", 50)
    X = np.random.default_rng(0).normal(size=(80, 3))
    model = EigenProRegressor("precomputed", regularization=0.1).fit(
        X @ X.T, X[:, 0], np.arange(80) < 20
    )
    assert POSITIVE in model.certificate_.claims[0].assumptions
    with pytest.raises(ValueError, match="x_bound is about rows"):
        EigenProRegressor("precomputed", x_bound=1.0).fit(X @ X.T, X[:, 0])


def test_a_matrix_that_is_symmetric_up_to_single_precision():
    X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    K = (X @ X.T).astype(np.float64)
    K[3, 5] = np.nextafter(np.float32(K[3, 5]), np.float32(9.0))
    model = EigenProRegressor("precomputed", regularization=0.1).fit(K, X[:, 0])
    np.testing.assert_allclose(model.predict(K), X @ np.array([1.0, 0.0, 0.0]), atol=0.5)
