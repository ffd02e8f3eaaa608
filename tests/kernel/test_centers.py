"""Fewer centers than rows: the minimizer over their span, from any source, whatever the kernel
and the rows are.
"""

import itertools

import numpy as np
import pandas as pd
import pytest

from surelearn.kernel.functions import Gaussian, Laplace, Linear, Matern, Polynomial
from surelearn.kernel.streams import ArrayRows, ParquetRows

torch = pytest.importorskip("torch")

from surelearn.kernel import factors  # noqa: E402
from surelearn.kernel.centers import CenterOptions, fit_centers  # noqa: E402
from surelearn.kernel.torch_functions import Evaluator  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    """Tiny problems do not wait for a second thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


KERNELS = [Gaussian(bandwidth=1.414), Laplace(3.0), Matern(2.0, 1.5), Polynomial(2), Linear()]


def fit(kernel, X, Y, centers, seed=0, **options):
    options = {"dtype": "float64", "device": "cpu", "tol": 1e-10, "passes": 40} | options
    return fit_centers(
        kernel, ArrayRows(X, Y), CenterOptions(centers, **options), np.random.RandomState(seed)
    )


def problem(n, d=3, outputs=1, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(X @ rng.standard_normal((d, outputs))) + 0.1 * rng.standard_normal(
        (n, outputs)
    )


def objective(kernel, X, Y, centers, alpha, penalty):
    fitted = kernel(X, centers) @ alpha
    return ((fitted - Y) ** 2).sum() / len(X) + penalty * (
        alpha * (kernel(centers, centers) @ alpha)
    ).sum()


def direct(kernel, X, Y, centers, penalty):
    """The least objective, by least squares on [K_XZ; √(nλ)·K_ZZ^½]."""
    values, vectors = np.linalg.eigh(kernel(centers, centers))
    root = np.sqrt(len(X) * penalty * values.clip(0))[:, None] * vectors.T
    A = np.vstack([kernel(X, centers), root])
    alpha = np.linalg.lstsq(A, np.vstack([Y, np.zeros((len(centers), Y.shape[1]))]), rcond=1e-13)[0]
    return objective(kernel, X, Y, centers, alpha, penalty)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("penalty", [0.0, 1e-4, 1e-1])
def test_agrees_with_least_squares_on_random_problems(kernel, penalty):
    for seed in range(12):
        rng = np.random.RandomState(seed)
        n, p = rng.randint(20, 200), rng.randint(1, 30)
        X, Y = problem(n, outputs=rng.randint(1, 4), seed=seed)
        fitted = fit(kernel, X, Y, p, seed, regularization=penalty)
        least = direct(kernel, X, Y, fitted.centers, penalty)
        found = objective(kernel, X, Y, fitted.centers, fitted.alpha, penalty)
        assert found <= least * (1 + 1e-6) + 1e-9
        assert fitted.facts["objective"] == pytest.approx(found, rel=1e-6, abs=1e-9)


def test_the_sample_alone_is_not_the_solution():
    X, Y = problem(2000)
    one, many = (
        fit(Gaussian(bandwidth=1.0), X, Y, 40, sample=50, passes=passes) for passes in (1, 30)
    )
    least = direct(Gaussian(bandwidth=1.0), X, Y, many.centers, 0.0)
    assert many.facts["objective"] == pytest.approx(least, rel=1e-6)
    assert one.facts["objective"] > 1.01 * least
    assert many.facts["stopped"] != "passes"


def test_all_rows_as_centers_is_the_full_model():
    X, Y = problem(80)
    for centers in (80, 500):
        fitted = fit(Laplace(2.0), X, Y, centers, regularization=1e-3, tol=1e-14)
        K = Laplace(2.0)(X, X)
        full = K @ np.linalg.solve(K + 80 * 1e-3 * np.eye(80), Y)
        assert fitted.facts["centres"] == 80
        np.testing.assert_allclose(Laplace(2.0)(X, fitted.centers) @ fitted.alpha, full, atol=1e-5)


def test_array_mapped_array_and_parquet_give_the_same_model(tmp_path):
    X, Y = problem(700)
    np.save(tmp_path / "X.npy", X)
    names = [f"x{j}" for j in range(3)]
    pd.DataFrame(X, columns=names).assign(y=Y[:, 0]).to_parquet(
        tmp_path / "rows.parquet", row_group_size=150
    )
    sources = (
        ArrayRows(X, Y),
        ArrayRows(np.load(tmp_path / "X.npy", mmap_mode="r"), Y),
        ParquetRows(tmp_path / "rows.parquet", "y"),
    )
    options = CenterOptions(30, device="cpu", validation_fraction=0.1)
    first, *others = (
        fit_centers(Gaussian(bandwidth=1.0), rows, options, np.random.RandomState(3))
        for rows in sources
    )
    for other in others:
        np.testing.assert_array_equal(first.centers, other.centers)
        np.testing.assert_array_equal(first.alpha, other.alpha)
        assert first.facts == other.facts


def test_the_same_seed_gives_the_same_model_and_another_seed_another():
    X, Y = problem(300)
    one, same, other = (fit(Gaussian(bandwidth=1.0), X, Y, 20, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.alpha, same.alpha)
    assert not np.array_equal(one.centers, other.centers)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("limit", [None, 1e3], ids=["sampled", "leading"])
@pytest.mark.parametrize(
    "kind",
    ["plain", "duplicates", "constant", "one value", "one row", "huge", "tiny", "zero targets"],
)
def test_never_worse_than_zero_and_never_grows(dtype, limit, kind):
    X, Y = problem(120, d=2, outputs=2)
    if kind == "duplicates":
        X[60:], Y[:60] = X[:60], Y[60:]
    elif kind == "constant":
        X[:, 0] = 7.0
    elif kind == "one value":
        X[:] = 1.0
    elif kind == "one row":
        X, Y = X[:1], Y[:1]
    elif kind in ("huge", "tiny"):
        factor = 1e8 if kind == "huge" else 1e-8
        X, Y = X * factor, Y * factor
    elif kind == "zero targets":
        Y[:] = 0.0
    for kernel in (
        Gaussian(bandwidth=0.007071),
        Gaussian(bandwidth=0.7071),
        Gaussian(bandwidth=707.1),
        Laplace(0.1),
        Laplace(1e4),
        Matern(1.0, 2.5),
        Linear(),
    ):
        for penalty in (0.0, 1e-3):
            options = {
                "dtype": dtype,
                "memory_limit": limit,
                "regularization": penalty,
                "exact": True,
            }
            facts = [fit(kernel, X, Y, 40, passes=passes, **options).facts for passes in (1, 2, 6)]
            sizes = [
                (Y**2).sum(1).mean(),
                *(found["training_risk"] + penalty * found["norm"] ** 2 for found in facts),
            ]
            assert np.isfinite(sizes).all()
            assert all(b <= a * 1.05 + 1e-20 * sizes[0] for a, b in itertools.pairwise(sizes)), (
                kernel,
                penalty,
                sizes,
            )


def test_duplicate_centers_do_no_harm():
    X, Y = problem(200)
    centers = np.repeat(X[:10], 3, axis=0)
    fitted = fit(Gaussian(bandwidth=1.0), X, Y, centers, regularization=1e-3)
    assert fitted.facts["objective"] == pytest.approx(
        direct(Gaussian(bandwidth=1.0), X, Y, X[:10], 1e-3), rel=1e-6
    )


def test_float32_is_close_to_float64():
    X, Y = problem(3000, d=5)
    for kernel in (Gaussian(bandwidth=1.581), Laplace(3.0)):
        wide = fit(kernel, X, Y, 100)
        narrow = fit(kernel, X, Y, 100, dtype="float32", tol=1e-4)
        found = objective(kernel, X, Y, narrow.centers, narrow.alpha, 0.0)
        assert found == pytest.approx(wide.facts["objective"], rel=2e-3)


def test_measures_are_those_of_the_model():
    X, Y = problem(400)
    signs = np.where(Y > 0, 1.0, -1.0)
    kernel = Gaussian(bandwidth=1.0)
    fitted = fit(
        kernel,
        X,
        signs,
        25,
        classify=True,
        exact=True,
        regularization=1e-3,
        passes=2,
        validation_fraction=0.2,
    )
    facts, centers, alpha = fitted.facts, fitted.centers, fitted.alpha
    apart = np.random.RandomState(0).permutation(400)[:80]
    kept = np.setdiff1d(np.arange(400), apart)
    scores = kernel(X, centers) @ alpha
    assert facts["n"] == 320
    assert facts["validation_rows"] == 80
    assert facts["validation_error"] == pytest.approx((scores[apart] * signs[apart] <= 0).mean())
    assert facts["training_risk"] == pytest.approx(((scores - signs)[kept] ** 2).mean())
    assert facts["margin_error"] == pytest.approx((scores[kept] * signs[kept] <= 0.5).mean())
    assert facts["norm"] == pytest.approx(
        float(np.sqrt((alpha * (kernel(centers, centers) @ alpha)).sum()))
    )
    assert not any((center == X[apart]).all(1).any() for center in centers)


def test_the_training_risk_without_a_last_pass_is_right():
    X, Y = problem(400)
    fitted = fit(Gaussian(bandwidth=1.0), X, Y, 25, regularization=1e-3, passes=1)
    scores = Gaussian(bandwidth=1.0)(X, fitted.centers) @ fitted.alpha
    assert fitted.facts["training_risk"] == pytest.approx(((scores - Y) ** 2).mean(), rel=1e-6)


def test_starting_from_a_solution_needs_one_pass():
    X, Y = problem(500)
    first = fit(Gaussian(bandwidth=1.0), X, Y, 20)
    options = CenterOptions(first.centers, dtype="float64", device="cpu")
    rng = np.random.RandomState(0)
    again = fit_centers(Gaussian(bandwidth=1.0), ArrayRows(X, Y), options, rng, alpha=first.alpha)
    assert again.facts["passes"] == 1
    assert again.facts["objective"] <= first.facts["objective"] * (1 + 1e-9)
    with pytest.raises(ValueError, match=r"alpha must have shape \(20, 1\)"):
        fit_centers(Gaussian(bandwidth=1.0), ArrayRows(X, Y), options, rng, alpha=first.alpha[:3])


def test_stopping_and_progress():
    X, Y = problem(500)
    calls = []
    options = CenterOptions(20, dtype="float64", device="cpu", tol=0.0, passes=3, sample=25)
    rng = np.random.RandomState(0)
    fitted = fit_centers(
        Gaussian(bandwidth=1.0),
        ArrayRows(X, Y),
        options,
        rng,
        progress=lambda *call: calls.append(call),
    )
    assert fitted.facts["stopped"] == "passes"
    assert calls == [(500, 1500), (1000, 1500), (1500, 1500)]
    assert fit(Gaussian(bandwidth=1.0), X, Y, 20, time_limit=1e-9).facts["stopped"] == "time"
    assert fit(Gaussian(bandwidth=1.0), X, Y, 20, target=0.5).facts["passes"] == 1
    noise = np.random.RandomState(1).standard_normal(500)
    stopped = fit(
        Gaussian(bandwidth=0.5),
        X,
        noise,
        200,
        validation_fraction=0.3,
        patience=2,
        tol=0.0,
        sample=60,
    )
    assert stopped.facts["stopped"] == "validation error stalled"


@pytest.mark.parametrize(
    ("centers", "said"),
    [
        (0, "at least 1"),
        (np.zeros((4, 2)), r"finite rows \(p, 3\)"),
        (np.full((1, 3), np.nan), "finite rows"),
    ],
)
def test_bad_centers(centers, said):
    with pytest.raises(ValueError, match=said):
        fit(Gaussian(bandwidth=0.7071), *problem(20), centers)


def test_overflow_is_one_sentence():
    X, Y = problem(30)
    with pytest.raises(ValueError, match="overflow"):
        fit(Polynomial(8), X * 1e10, Y, 5, dtype="float32")


def test_blocks_of_the_factors(monkeypatch):
    monkeypatch.setattr(factors, "BLOCK", 7)
    X, _ = problem(60)
    evaluator = Evaluator(Laplace(2.0), X[:30], "cpu", "float64")
    K, A = Laplace(2.0)(X[:30], X[:30]), Laplace(2.0)(X, X[:30])
    made = factors.Sampled(evaluator, evaluator.rows(X), True, 1e-2, 1e4)
    R = np.random.RandomState(0).standard_normal((30, 2))
    expected = np.linalg.solve(A.T @ A / 60 + 1e-2 * K, R)
    np.testing.assert_allclose(made.directions(torch.from_numpy(R)).numpy(), expected, rtol=1e-6)
    own = factors.Sampled(evaluator, evaluator.rows(X[30:]), False, 1e-2, 1e4)
    B = A[30:]
    expected = np.linalg.solve(0.85 * B.T @ B / 30 + 0.15 * K @ K / 30 + 1e-2 * K, R)
    np.testing.assert_allclose(own.directions(torch.from_numpy(R)).numpy(), expected, rtol=1e-6)
