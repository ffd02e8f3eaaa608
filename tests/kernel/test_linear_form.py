"""Linear EigenPro against least squares, ridge, kernel EigenPro with the linear kernel, and
data that break steps.
"""

from __future__ import annotations

import warnings

import mpmath as mp
import numpy as np
import pytest
from tests.making import make

from surelearn.bounds import distance_to_minimizer
from surelearn.certificate import Certificate
from surelearn.kernel.functions import Linear
from surelearn.kernel.linear_form import LinearEigenProRegressor
from surelearn.kernel.linear_iteration import LinearIteration, covariance_eigensystem, minimize

# as the references are
EXACT = {"tol": 1e-13, "epochs": 300, "random_state": 0, "fit_intercept": False}


def exact(X, Y, lam):
    if lam == 0:
        return np.linalg.lstsq(X, Y, rcond=None)[0]
    return np.linalg.solve(X.T @ X / len(X) + lam * np.eye(X.shape[1]), X.T @ Y / len(X))


def problem(seed):
    """Rows of any shape, some columns of another scale, constant, or rows twice."""
    rng = np.random.default_rng(seed)
    n, d, outputs = rng.integers(1, 60), rng.integers(1, 40), rng.integers(1, 3)
    X = rng.normal(size=(n, d))
    if seed % 3:
        X *= 10.0 ** rng.uniform(-2, 2, size=d)
    if seed % 5 == 0:
        X[:, 0] = 1.0
    if seed % 7 == 0:
        X[n // 2 :] = X[: n - n // 2]
    return X, rng.normal(size=(n, outputs))


@pytest.mark.parametrize("part", range(10))
def test_a_thousand_small_problems(part):
    for seed in range(100 * part, 100 * part + 100):
        X, Y = problem(seed)
        lam, batch = (0.0, 1e-3, 1.0)[seed % 3], (None, 7)[seed % 2]
        model = LinearEigenProRegressor(regularization=lam, batch_size=batch, **EXACT).fit(X, Y)
        expected = exact(X, Y, lam)
        off = np.linalg.norm(model.coef_.T - expected)
        assert off <= 1e-7 * np.linalg.norm(expected), f"seed {seed}"
        if lam:
            assert off <= model.facts_["gradient_norm"] / (2 * lam) + 1e-12 * np.linalg.norm(
                expected
            ), f"seed {seed}"
        np.testing.assert_allclose(
            model.facts_["training_risk"], ((X @ expected - Y) ** 2).sum(1).mean(), atol=1e-9
        )


@pytest.mark.parametrize("step", [None, 0.05, 1e9])
@pytest.mark.parametrize("lam", [0.01, 0.3])
def test_without_preconditioner_the_solution_is_the_same(lam, step):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 6)) * [1.0, 1.0, 2.0, 0.5, 0.7, 3.0]
    y = X @ rng.normal(size=6) + rng.normal(size=80)
    for q in (0, 2, 5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if step == 1e9 else "error")
            exactly = EXACT | {"epochs": 20000, "tol": 1e-12}
            run = LinearEigenProRegressor(
                regularization=lam, directions=q, batch_size=10, step=step, **exactly
            ).fit(X, y)
        np.testing.assert_allclose(run.coef_, exact(X, y, lam), atol=1e-9)
        assert run.facts_["directions"] == q
        assert run.facts_["step_capped"] is (step == 1e9)


@pytest.mark.parametrize("q", [0, 3])
@pytest.mark.parametrize("outputs", [1, 2])
def test_it_is_kernel_eigenpro_with_the_linear_kernel_step_by_step(q, outputs):
    torch = pytest.importorskip("torch")
    from surelearn.kernel.iteration import Iteration
    from surelearn.kernel.torch_functions import Evaluator

    rng = np.random.default_rng(q)
    X, Y = rng.normal(size=(40, 6)), rng.normal(size=(40, outputs))
    chosen = {"size": 20, "directions": q, "batch_size": 10, "step": 0.2}
    by_rows = Iteration(
        Evaluator(Linear(), X, "cpu", "float64"), torch.from_numpy(Y), 0.0, budget=1e9, **chosen
    )
    by_weights = LinearIteration(X, Y, 0.0, **chosen)
    for _ in range(5):
        order = rng.permutation(4)
        by_rows.epoch(order)
        by_weights.epoch(order)
        np.testing.assert_allclose(
            X.T @ by_rows.alpha.numpy(), by_weights.weights, rtol=1e-9, atol=1e-12
        )
    assert not by_rows.capped
    assert not by_weights.capped
    assert np.linalg.norm(by_weights.weights) > 0.1


@pytest.mark.parametrize("lam", [0.0, 1e-2])
def test_it_has_the_solution_of_the_kernel_learner(lam):
    pytest.importorskip("torch")
    from surelearn.kernel.eigenpro import EigenProRegressor

    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(40, 80 if lam == 0 else 5)), rng.normal(size=(40, 2))
    more = {
        "solver": "eigenpro",
        "dtype": "float64",
        "device": "cpu",
        "epochs": 400,
        "tol": 1e-9,
        "random_state": 0,
    }
    kernel_model = make(EigenProRegressor, Linear(), regularization=lam, batch_size=20, **more).fit(
        X, Y
    )
    assert kernel_model.facts_["stopped"] == "converged"
    model = LinearEigenProRegressor(regularization=lam, batch_size=20, **EXACT).fit(X, Y)
    np.testing.assert_allclose(
        model.coef_.T, kernel_model.centers_.T @ kernel_model.coef_, atol=1e-6
    )


def test_the_leading_directions_are_flattened_to_the_next_one():
    X = np.random.default_rng(0).normal(size=(30, 6)) * np.arange(1, 7)
    run = LinearIteration(X, X[:, :1], 0.5, directions=2)
    preconditioned = run.precondition(X.T @ X / 30 + 0.5 * np.eye(6))
    values = np.linalg.eigvalsh(X.T @ X / 30)[::-1] + 0.5
    expected = np.sort([values[2], values[2], *values[2:]])
    np.testing.assert_allclose(
        np.sort(np.linalg.eigvals(preconditioned).real), expected, rtol=1e-10
    )
    assert run.largest(slice(0, 30), iterations=200) * run.batch_size / 30 == pytest.approx(
        values[2], rel=1e-3
    )


@pytest.mark.parametrize("shape", [(30, 5), (5, 30), (1, 4), (4, 1)])
def test_the_eigensystem_is_the_covariance(shape):
    X = np.random.default_rng(0).normal(size=shape)
    values, vectors = covariance_eigensystem(X, min(shape))
    np.testing.assert_allclose(np.abs(covariance_eigensystem(X, 1)[1][:, 0] @ vectors[:, 0]), 1.0)
    np.testing.assert_allclose((vectors * values) @ vectors.T, X.T @ X / len(X), atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(min(shape)), atol=1e-12)
    assert (np.diff(values) <= 0).all()


HARD = {
    "copies": lambda rng: np.repeat(rng.normal(size=(30, 4)), 10, axis=0),
    "constant columns": lambda rng: np.c_[
        np.ones((300, 2)), rng.normal(size=(300, 2)), np.zeros((300, 1))
    ],
    "one row": lambda rng: rng.normal(size=(1, 7)),
    "one column": lambda rng: rng.normal(size=(50, 1)),
    "fewer rows than directions": lambda rng: rng.normal(size=(3, 50)),
    "zeros": lambda _: np.zeros((20, 3)),
    "large": lambda rng: 1e15 * rng.normal(size=(200, 5)),
    "small": lambda rng: 1e-15 * rng.normal(size=(200, 5)),
    "mixed scales": lambda rng: rng.normal(size=(300, 6)) * 10.0 ** np.arange(-9, 9, 3),
    "an outlier": lambda rng: np.r_[rng.normal(size=(299, 4)), np.full((1, 4), 1e6)],
    "heavy tails": lambda rng: rng.standard_cauchy(size=(2500, 8)),
    "far from 0": lambda rng: rng.normal(size=(300, 4)) + 1e4,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("lam", [0.0, 1e-3, 1e3])
def test_no_setting_diverges(name, lam, dtype):
    rng = np.random.default_rng(3)
    X = HARD[name](rng).astype(dtype)
    y = rng.normal(size=len(X))
    zero = (y**2).mean()
    for more in (
        {},
        {"directions": 0},
        {"batch_size": 1},
        {"subsample": 2, "batch_size": 32},
        {"directions": 500},
    ):
        if more.get("batch_size") == 1 and len(X) > 300:
            continue
        model = LinearEigenProRegressor(
            regularization=lam, random_state=0, epochs=10, **more, fit_intercept=False
        ).fit(X, y)
        norm, risk = model.facts_["norm"], model.facts_["training_risk"]
        assert np.isfinite(model.coef_).all()
        assert risk + lam * norm**2 <= zero * (1 + 1e-5), more
        if name == "zeros":
            assert not model.coef_.any()


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_squares_that_leave_the_range_do_not_matter(size):
    X, Y = problem(1)
    plain = LinearEigenProRegressor(**EXACT).fit(X, Y)
    scaled = LinearEigenProRegressor(**EXACT).fit(X * size, Y)
    np.testing.assert_allclose(scaled.coef_ * size, plain.coef_, rtol=1e-9)
    targets = LinearEigenProRegressor(regularization=1.0, **EXACT).fit(X, Y * size)
    np.testing.assert_allclose(
        targets.coef_ / size, LinearEigenProRegressor(regularization=1.0, **EXACT).fit(X, Y).coef_
    )
    assert str(targets.certificate_)
    with pytest.raises(ValueError, match="the weights overflow"):
        LinearEigenProRegressor(**EXACT).fit(X * 1e-200, Y * 1e200)


def test_blocks_grow_where_rows_contradict_each_other_and_not_where_they_agree():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(512, 8))
    plain = {"batch_size": 32, "random_state": 0, "tol": 1e-8, "fit_intercept": False}
    agree = LinearEigenProRegressor(**plain).fit(X, X @ np.ones(8))
    contradict = LinearEigenProRegressor(**plain).fit(X, rng.normal(size=512))
    assert agree.facts_["batch_size_last"] == 32
    assert contradict.facts_["batch_size_last"] == 512
    assert agree.facts_["stopped"] == contradict.facts_["stopped"] == "converged"


def test_full_steps_never_increase_the_gradient():
    rng = np.random.default_rng(0)
    run = LinearIteration(
        rng.normal(size=(50, 20)),
        rng.normal(size=(50, 1)),
        0.0,
        size=25,
        directions=5,
        batch_size=50,
    )
    sizes = []
    for _ in range(30):
        gradient, size = run.full_gradient()
        sizes.append(size)
        run.full_step(gradient)
    assert (np.diff(sizes) < 0).all()


def test_an_epoch_that_diverges_is_taken_back():
    rng = np.random.default_rng(0)
    run = LinearIteration(
        rng.normal(size=(50, 5)), rng.normal(size=(50, 1)), 0.0, directions=0, batch_size=50
    )
    run._steps[0, 50] = 1e3
    reason, _ = minimize(run, 200, 1e-8, np.random.RandomState(0))
    assert reason == "converged"
    np.testing.assert_allclose(run.weights, exact(run.X, run.Y, 0.0), atol=1e-6)


def test_preconditioning_needs_fewer_epochs():
    rng = np.random.default_rng(0)
    X = (
        rng.normal(size=(3000, 30))
        @ np.linalg.qr(rng.normal(size=(30, 30)))[0]
        * np.arange(1, 31) ** -1.0
    )
    y = X @ rng.normal(size=30) + 0.1 * rng.normal(size=3000)
    plain, ours = (
        LinearEigenProRegressor(
            directions=q, **EXACT | {"epochs": 5000, "tol": 1e-4, "batch_size": 3000}
        ).fit(X, y)
        for q in (0, None)
    )
    assert plain.facts_["stopped"] == ours.facts_["stopped"] == "converged"
    assert ours.epochs_ < plain.epochs_ / 10
    assert ours.facts_["acceleration_measured"] == pytest.approx(
        ours.facts_["acceleration_predicted"], rel=0.3
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_distance_claim_holds_and_verifies(dtype):
    for seed in range(60):
        X, Y = problem(seed)
        X = X.astype(dtype)
        lam = 10.0 ** np.random.default_rng(seed).uniform(-4, 1)
        model = LinearEigenProRegressor(
            regularization=lam, batch_size=10, **EXACT | {"epochs": 1 + seed % 4, "tol": 1e-6}
        ).fit(X, Y)
        bound = distance_to_minimizer(model.facts_["gradient_norm"], lam)
        expected = exact(X.astype(float), Y, lam)
        assert np.linalg.norm(model.coef_.T - expected) <= bound + 1e-11 * np.linalg.norm(expected)
        certificate = model.certificate_
        assert certificate["distance_to_the_minimizer"].value == bound
        assert seed % 10 or Certificate.from_json(certificate.to_json()).verify(model)


def test_the_distance_claim_counts_rounding():
    X, Y = problem(1)
    model = LinearEigenProRegressor(regularization=1.0, **EXACT).fit(X * 1e3, Y)
    with mp.workdps(60):
        rows, weights = mp.matrix(X * 1e3), mp.matrix(model.coef_.T)
        gradient = (rows.T * (rows * weights - mp.matrix(Y))) * 2 / len(X) + 2 * weights
        at_zero = mp.norm(rows.T * mp.matrix(Y)) * 2 / len(X)
        assert mp.norm(gradient) <= model.facts_["gradient_norm"] <= 1e-10 * at_zero


def test_what_is_not_claimed_says_why():
    X, Y = problem(4)
    absent = str(
        LinearEigenProRegressor(regularization=0.0, random_state=0).fit(X, Y).certificate_.lacking
    )
    assert "without a penalty" in absent
    assert "EigenProRegressor(kernel='linear')" in absent


def test_shapes_and_repeatability():
    X, Y = problem(2)
    one = LinearEigenProRegressor(random_state=5).fit(X, Y[:, 0])
    again = LinearEigenProRegressor(random_state=5).fit(X, Y[:, 0])
    several = LinearEigenProRegressor(random_state=5).fit(X, np.c_[Y[:, 0], Y[:, 0]])
    assert one.coef_.shape == (X.shape[1],)
    assert several.coef_.shape == (2, X.shape[1])
    assert one.predict(X).shape == (len(X),)
    assert several.predict(X).shape == (len(X), 2)
    np.testing.assert_array_equal(one.coef_, again.coef_)
    np.testing.assert_allclose(several.coef_[0], one.coef_, rtol=1e-4)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"regularization": -1.0}, "regularization must be a finite number of at least 0"),
        ({"tol": float("nan")}, "tol must be a finite number"),
        ({"step": 0.0}, "step must be a finite number above 0"),
        ({"subsample": 0}, "subsample must be a whole number of at least 1"),
        ({"directions": -1}, "directions must be a whole number of at least 0"),
        ({"batch_size": 1.5}, "batch_size must be a whole number of at least 1"),
        ({"epochs": True}, "epochs must be a whole number of at least 1"),
    ],
)
def test_refusals_name_the_parameter(more, message):
    with pytest.raises(ValueError, match=message):
        LinearEigenProRegressor(**more).fit(np.eye(3), np.ones(3))
