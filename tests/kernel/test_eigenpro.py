"""EigenPro against float64 direct solutions, itself without preconditioner, and data that break
other solvers.
"""

from __future__ import annotations

import math
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.kernel_ridge import KernelRidge
from tests.making import make

from surelearn.bounds import beta_ridge, bousquet_elisseeff, rademacher_margin
from surelearn.certificate import Certificate
from surelearn.kernel import Compute, Preconditioner, Stopping, fitting
from surelearn.kernel.eigenpro import EigenProClassifier, EigenProRegressor
from surelearn.kernel.functions import Gaussian, Laplace, Linear, Matern, Polynomial
from surelearn.kernel.iteration import Iteration
from surelearn.kernel.spectrum import KernelSpectrum, kernel_spectrum
from surelearn.kernel.torch_functions import Evaluator

torch = pytest.importorskip("torch")

KERNELS = [Linear(), Polynomial(2), Gaussian(bandwidth=1.225), Laplace(2.0), Matern(2.0)]
EXACT = {
    "solver": "eigenpro",
    "dtype": "float64",
    "epochs": 3000,
    "tol": 1e-10,
    "device": "cpu",
    "random_state": 0,
}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def problem(seed, n=60, d=4, outputs=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return (
        X,
        np.sin(X @ rng.normal(size=(d, outputs))) + 0.1 * rng.normal(size=(n, outputs)),
        rng.normal(size=(20, d)),
    )


def ridge_by_hand(k, X, Y, lam, Z):
    return k(Z, X) @ np.linalg.solve(k(X, X) + lam * len(X) * np.eye(len(X)), Y)


@pytest.mark.parametrize("k", KERNELS, ids=repr)
@pytest.mark.parametrize("seed", [0, 1, 4, 7, 11])
def test_ridge_is_the_direct_solution(k, seed):
    X, Y, Z = problem(seed, n=20 + 7 * seed)
    # a condition number of 1e5 takes too long
    lam = 1e-3 if seed % 2 and not isinstance(k, Polynomial) else 1e-2
    expected = ridge_by_hand(k, X, Y, lam, Z)
    more = {"subsample": 10 + 3 * seed, "batch_size": 5 + 4 * seed, "directions": seed}
    model = make(EigenProRegressor, k, regularization=lam, **more, **EXACT).fit(X, Y)
    np.testing.assert_allclose(model.predict(Z), expected, atol=1e-5)
    direct = EigenProRegressor(
        k, regularization=lam, solver="direct", compute=Compute(device="cpu")
    ).fit(X, Y)
    np.testing.assert_allclose(direct.predict(Z), expected, atol=1e-8)
    distance = np.sqrt(
        np.sum((model.coef_ - direct.coef_) * (k(X, X) @ (model.coef_ - direct.coef_)))
    )
    assert distance <= model.facts_["gradient_norm"] / (2 * lam) + 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_interpolation_is_the_pseudo_inverse(seed):
    X, Y, Z = problem(seed, n=50)
    X[10:15] = X[:5]  # copies with the same targets
    Y[10:15] = Y[:5]
    k = Laplace(2.0)
    expected = k(Z, X) @ np.linalg.pinv(k(X, X), rcond=1e-12, hermitian=True) @ Y
    np.testing.assert_allclose(
        make(EigenProRegressor, k, batch_size=16, **EXACT).fit(X, Y).predict(Z), expected, atol=1e-6
    )
    direct = EigenProRegressor(k, solver="direct", compute=Compute(device="cpu")).fit(X, Y)
    np.testing.assert_allclose(direct.predict(Z), expected, atol=1e-6)
    assert direct.facts_["rank"] == 45
    assert "singular" in str(direct.certificate_.lacking)


def test_without_preconditioner_and_with_a_step_the_solution_is_the_same():
    X, Y, Z = problem(3, n=80)
    k = Laplace(3.0)
    for lam, more in (
        (1e-3, {"directions": 0}),
        (1e-3, {"directions": 8}),
        (1e-3, {"directions": 8, "step": 5.0}),
        (1e-2, {"directions": 0, "memory_limit": 1.0}),  # 1e-3 takes 530 slow epochs
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make(
                EigenProRegressor, k, regularization=lam, batch_size=20, **more, **EXACT
            ).fit(X, Y)
        np.testing.assert_allclose(model.predict(Z), ridge_by_hand(k, X, Y, lam, Z), atol=1e-6)
        assert model.facts_["cached"] is ("memory_limit" not in more)


def iteration(k, X, Y, penalty, **chosen):
    chosen = {
        "size": None,
        "directions": None,
        "batch_size": None,
        "step": None,
        "budget": 1e9,
    } | chosen
    return Iteration(Evaluator(k, X, "cpu", "float64"), torch.from_numpy(Y), penalty, **chosen)


@pytest.mark.parametrize("penalty", [0.0, 0.5])
def test_the_leading_directions_are_flattened_to_the_next_one(penalty):
    X, Y, _ = problem(4, n=30)
    k = Laplace(2.0)
    _, reduced = iteration(k, X, Y, penalty, directions=5).preconditioned(slice(0, 30))
    values = np.linalg.eigvalsh(k(X, X))[::-1] + penalty
    expected = np.sort(np.r_[np.full(5, values[5]), values[5:]])[::-1]
    np.testing.assert_allclose(np.linalg.eigvalsh(reduced.numpy())[::-1], expected, atol=1e-10)


def test_a_step_that_would_diverge_is_made_smaller():
    X, Y, _ = problem(4, n=30)
    run = iteration(Laplace(2.0), X, Y, 0.0, directions=3, step=1e9)
    before = run.residual()
    run.epoch(np.array([0]))
    assert run.capped
    assert run.residual() < before


def test_rows_that_contradict_each_other_end_near_least_squares():
    X = problem(0, n=60, d=3)[0]
    noise = np.random.default_rng(1).normal(size=60)
    least = np.mean((X @ np.linalg.lstsq(X, noise, rcond=None)[0] - noise) ** 2)
    model = make(EigenProRegressor, "linear", batch_size=6, **{**EXACT, "epochs": 100}).fit(
        X, noise
    )
    assert least <= model.facts_["training_risk"] <= 1.01 * least


def test_the_gradient_is_the_objectives():
    X, Y, _ = problem(6)
    k, lam = Gaussian(bandwidth=math.sqrt(2)), 1e-2
    model = make(
        EigenProRegressor, k, regularization=lam, **{**EXACT, "epochs": 1, "batch_size": 9}
    ).fit(X, Y)
    K = k(X, X)
    rest = K @ model.coef_ + lam * 60 * model.coef_ - Y
    assert model.facts_["gradient_norm"] == pytest.approx(
        2 / 60 * np.sqrt(np.sum(rest * (K @ rest))), rel=1e-6
    )
    assert model.facts_["gradient_norm"] > 1e-6


def test_the_linear_kernel_is_linear_ridge_regression():
    X, Y, Z = problem(1)
    weights = np.linalg.solve(X.T @ X + 0.01 * len(X) * np.eye(4), X.T @ Y)
    model = make(EigenProRegressor, "linear", regularization=0.01, batch_size=25, **EXACT).fit(X, Y)
    np.testing.assert_allclose(model.predict(Z), Z @ weights, atol=1e-6)
    np.testing.assert_allclose(model.centers_.T @ model.coef_, weights, atol=1e-6)


def test_more_directions_need_fewer_epochs():
    X, Y, _ = problem(5, n=400, d=3, outputs=1)
    run = {**EXACT, "tol": 1e-2, "step": 1e9, "batch_size": 100, "subsample": 400, "epochs": 400}
    epochs = []
    for q in (0, 60):
        with pytest.warns(UserWarning, match="would diverge"):
            epochs.append(
                make(EigenProRegressor, "laplace", bandwidth=3.0, directions=q, **run)
                .fit(X, Y)
                .epochs_
            )
    assert epochs[1] < epochs[0] / 3


def hostile():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    yield "plain", X
    yield "copies", np.repeat(X[:4], 10, axis=0)
    yield "all the same", np.ones((40, 3))
    yield "zeros", np.zeros((40, 3))
    yield "constant column", np.c_[X, np.full(40, 7.0)]
    yield "huge", X * 1e12
    yield "huge column", np.c_[X, X[:, 0] * 1e9]
    yield "tiny", X * 1e-12
    yield "far", X + 1e7
    yield "outlier", np.r_[X[:-1], [[1e8, 0, 0]]]


@pytest.mark.parametrize(("name", "X"), [pytest.param(name, X, id=name) for name, X in hostile()])
@pytest.mark.parametrize("k", ["gaussian", "laplace", "linear", "polynomial"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nothing_diverges(name, X, k, dtype):
    y = np.random.default_rng(1).normal(size=len(X)) * 1e6
    for bandwidth in (None, 1e-3, 1e3):
        for solver in ("eigenpro", "direct"):
            settings = {
                "regularization": 0.0,
                "batch_size": 7,
                "solver": solver,
                "dtype": dtype,
                "device": "cpu",
            }
            model = make(EigenProRegressor, k, bandwidth=bandwidth, **settings)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "the kernel matrix")
                try:
                    model.fit(X, y)
                except ValueError as error:
                    assert "overflows: scale the columns" in str(error)  # noqa: PT017
                    assert k == "polynomial"
                    assert name in ("huge", "huge column", "far", "outlier")
                    continue
            assert np.isfinite(model.predict(X)).all()
            assert model.facts_["training_risk"] <= 1.05 * np.mean(y**2) + 1e-9


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows(n):
    X, Y, _ = problem(0, n=n)
    for solver in ("eigenpro", "direct"):
        model = EigenProRegressor(
            "laplace",
            bandwidth=1.0,
            solver=solver,
            epochs=200,
            preconditioner=Preconditioner(directions=50),
            compute=Compute(device="cpu"),
        ).fit(X, Y)
        np.testing.assert_allclose(model.predict(X), Y, atol=1e-2)


def test_a_degenerate_spectrum_is_told():
    with pytest.warns(UserWarning, match="no direction to flatten"):
        EigenProRegressor(solver="eigenpro", compute=Compute(device="cpu")).fit(
            np.ones((30, 2)), np.arange(30.0)
        )


def test_leave_one_out_is_fitting_without_the_row():
    X, Y, _ = problem(2, n=25, outputs=1)
    k, lam = Gaussian(bandwidth=math.sqrt(2)), 1e-2
    model = EigenProRegressor(k, regularization=lam, compute=Compute(device="cpu")).fit(X, Y[:, 0])
    errors = []
    for i in range(25):
        rest = np.arange(25) != i
        peer = KernelRidge(alpha=lam * 25, kernel="rbf", gamma=0.25).fit(X[rest], Y[rest, 0])
        errors.append(float((peer.predict(X[[i]])[0] - Y[i, 0]) ** 2))
    assert model.facts_["leave_one_out_error"] == pytest.approx(np.mean(errors), rel=1e-8)
    norm = np.sqrt(model.coef_ @ k(X, X) @ model.coef_)
    assert model.facts_["norm"] == pytest.approx(norm, rel=1e-9)


def test_labels_pandas_validation_and_target():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.array(["inside", "middle", "outside"])[
        np.digitize(np.linalg.norm(X, axis=1), [0.8, 1.6])
    ]
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = EigenProClassifier(
        solver="eigenpro",
        stopping=Stopping(validation_fraction=0.3),
        preconditioner=Preconditioner(batch_size=50),
        compute=Compute(device="cpu"),
        random_state=0,
    )
    model.fit(frame, y)
    assert (model.predict(frame) == y).mean() > 0.9
    assert model.facts_["n"] == 210
    assert model.facts_["validation_rows"] == 90
    assert model.facts_["validation_error"] < 0.2
    assert model.decision_function(frame).shape == (300, 3)
    early = make(EigenProClassifier, **{**model.get_params(), "target": 0.5}).fit(frame, y)
    assert early.epochs_ == 1
    assert early.facts_["stopped"] == "converged"


def test_the_certificate_has_what_may_be_claimed():
    X, Y, _ = problem(0, n=200, outputs=1)
    y = np.clip(Y[:, 0], -1.5, 1.5)
    model = EigenProRegressor(
        bandwidth=2.0, regularization=0.1, y_bound=2.0, compute=Compute(device="cpu")
    ).fit(X, y)
    certificate = model.certificate_
    keys = {claim.theorem for claim in certificate.claims}
    assert len(keys) == 5
    assert Certificate.from_json(certificate.to_json()).verify()
    assert certificate["uniform_stability"].value == pytest.approx(beta_ridge(1.0, 2.0, 0.1, 200))
    off = model.facts_["gradient_norm"] / 0.2
    loss_bound = (2.0 * (1 + 1 / (2 * np.sqrt(0.1)))) ** 2
    left = model.facts_["leave_one_out_error"] + 2 * off * (2 * np.sqrt(loss_bound) + off)
    beta = beta_ridge(1.0, 2.0, 0.1, 200)
    expected = bousquet_elisseeff(left, beta / 2, 200, 0.05, loss_bound, leave_one_out=True)
    assert any(claim.value == pytest.approx(expected) for claim in certificate.claims)
    tuned = (
        EigenProRegressor(regularization=0.1, y_bound=2.0, compute=Compute(device="cpu"))
        .fit(X, y)
        .certificate_
    )
    assert len(tuned.claims) == 2  # the distance to the minimizer, and leave-one-out
    assert "bandwidth or λ was chosen" in str(tuned.lacking)
    interpolating = (
        EigenProRegressor(bandwidth=2.0, y_bound=2.0, compute=Compute(device="cpu"))
        .fit(X, y)
        .certificate_
    )
    assert not interpolating.claims


def test_the_margin_bound_needs_two_classes_and_a_fixed_kernel():
    X, Y, _ = problem(0, n=200, outputs=1)
    y = Y[:, 0] > 0
    model = EigenProClassifier("laplace", bandwidth=2.0, compute=Compute(device="cpu")).fit(X, y)
    (claim,) = model.certificate_.claims
    signs, scores = np.where(y, 1, -1), model.decision_function(X)
    norm = np.sqrt(model.coef_[:, 0] @ Laplace(2.0)(X, X) @ model.coef_[:, 0])
    share = np.mean(signs * scores <= 0.5)
    assert claim.value == pytest.approx(
        rademacher_margin(share, 200, 0.05, norm=norm, radius=1.0, margin=0.5)
    )
    tuned = EigenProClassifier("laplace", compute=Compute(device="cpu")).fit(X, y).certificate_
    assert {claim.quantity for claim in tuned.claims} == {
        "distance_to_the_minimizer",
        "leave_one_out_error",
    }
    assert (
        not EigenProClassifier("laplace", bandwidth=2.0, compute=Compute(device="cpu"))
        .fit(X, np.digitize(X[:, 0], [0, 1]))
        .certificate_.claims
    )
    assert "state x_bound" in str(
        EigenProClassifier("linear", compute=Compute(device="cpu"), regularization=1.0)
        .fit(X, y)
        .certificate_.lacking
    )


def test_the_risk_bound_holds():
    """Regression on a small ball: the true risk stays below the stability bound in at least 1 −
    δ of the samples.
    """
    rng = np.random.default_rng(0)
    fresh = rng.uniform(-1, 1, size=(2000, 1))
    broken = 0
    for _ in range(60):
        X = rng.uniform(-1, 1, size=(50, 1))
        y = np.sign(rng.uniform(-1, 1, size=50) + X[:, 0])
        model = EigenProRegressor(
            bandwidth=0.5, regularization=0.5, y_bound=1.0, compute=Compute(device="cpu")
        ).fit(X, y)
        f = model.predict(fresh)
        up = (1 + fresh[:, 0]) / 2
        risk = np.mean(up * (f - 1) ** 2 + (1 - up) * (f + 1) ** 2)
        broken += any(
            claim.quantity == "risk" and claim.value < risk for claim in model.certificate_.claims
        )
    assert broken <= 60 * 0.05 + 3 * np.sqrt(60 * 0.05)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bandwidth": -1.0}, "bandwidth must be"),
        ({"solver": "cg"}, "solver must be one of"),
        ({"regularization": -1.0}, "regularization must be"),
        ({"epochs": 0}, "epochs must be"),
        ({"x_bound": 0.1}, "x_bound=0.1 but a row has"),
        ({"kernel": "cosine"}, "kernel must be one of"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    X, Y, _ = problem(0)
    with pytest.raises(ValueError, match=message):
        make(EigenProRegressor, **parameters).fit(X, Y)


def test_the_spectrum():
    X = np.random.default_rng(0).normal(size=(50, 3))
    spectrum = kernel_spectrum(Linear(), X)
    np.testing.assert_allclose(
        spectrum.eigenvalues[:3], np.linalg.eigvalsh(X.T @ X / 50)[::-1], rtol=1e-10
    )
    assert not spectrum.eigenvalues[3:].any()
    assert spectrum.beta == pytest.approx((X**2).sum(1).max())
    two = KernelSpectrum(np.array([0.5, 0.125, 0.0]), 1.0)
    assert (two.critical_batch_size(), two.critical_batch_size(1), two.critical_batch_size(2)) == (
        2.0,
        8.0,
        np.inf,
    )
    assert two.step_size(3) == 3 / 2
    assert two.acceleration(1) == 4.0
    assert two.effective_dimension(0.125) == pytest.approx(0.8 + 0.5)
    assert two.computational_reach(1, 0.75) == 2


def test_large_problems_iterate(monkeypatch):
    monkeypatch.setattr(fitting, "DIRECT_ROWS", 30)
    X, Y, _ = problem(0, n=40)
    assert EigenProRegressor(compute=Compute(device="cpu")).fit(X, Y).facts_["solver"] == "eigenpro"
    assert (
        EigenProRegressor(compute=Compute(device="cpu")).fit(X[:30], Y[:30]).facts_["solver"]
        == "direct"
    )


def test_without_torch_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'surelearn\[torch\]'"):
        EigenProRegressor().fit([[0.0], [1.0]], [0.0, 1.0])


def test_the_margin_bound_holds_for_interpolants_of_noise_and_forgetting_the_norm_does_not():
    rng, forgotten = np.random.default_rng(0), []
    for _ in range(30):
        X, y = rng.normal(size=(600, 3)), rng.integers(0, 2, 600)
        model = EigenProClassifier(
            "gaussian", bandwidth=0.3, solver="direct", compute=Compute(device="cpu")
        ).fit(X, y)
        claim = next(c for c in model.certificate_.claims if c.theorem == "rademacher_margin")
        assert claim.inputs["margin_error"] == 0  # it fits the noise
        assert claim.value >= 0.5  # the risk, whatever it learned
        forgotten.append(rademacher_margin(**{**claim.inputs, "norm": 1.0}))
    assert np.mean(np.array(forgotten) < 0.5) == 1


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_missing_numbers_are_named(value):
    X, Y, Z = problem(0)
    model = EigenProRegressor(bandwidth=1.0, compute=Compute(device="cpu")).fit(X, Y)
    for broken in (X, Z):
        broken[7, 2] = value
    sentence = "X holds NaN or infinity, first in row 7, column 2"
    with pytest.raises(ValueError, match=sentence):
        model.predict(Z)
    for bandwidth in (None, 1.0):
        with pytest.raises(ValueError, match=sentence):
            EigenProRegressor(bandwidth=bandwidth, compute=Compute(device="cpu")).fit(X, Y)


def test_tensors_come_in_and_go_out():
    X, Y, Z = problem(1)
    for solver in ("direct", "eigenpro"):
        model = EigenProRegressor(
            bandwidth=2.0,
            solver=solver,
            compute=Compute(dtype="float64", device="cpu"),
            random_state=0,
        )
        expected = model.fit(X, Y).predict(Z)
        found = model.fit(torch.from_numpy(X), torch.from_numpy(Y)).predict(torch.from_numpy(Z))
        assert isinstance(found, torch.Tensor)
        assert isinstance(model.centers_, np.ndarray)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    labels = (Y[:, 0] > 0).astype(int)
    machine = EigenProClassifier(
        bandwidth=2.0,
        compute=Compute(device="cpu"),
        stopping=Stopping(validation_fraction=0.2),
        random_state=0,
    )
    expected = machine.fit(X, labels).predict(Z)
    np.testing.assert_array_equal(
        machine.fit(torch.from_numpy(X), labels).predict(torch.from_numpy(Z)), expected
    )
    with pytest.raises(ValueError, match="3 columns, but the model was fitted to 4"):
        machine.predict(torch.zeros(2, 3))
    with pytest.raises(ValueError, match="floating-point numbers with two axes"):
        machine.fit(torch.zeros(5, 4, dtype=torch.int64), labels[:5])


def test_running_out_of_memory_makes_blocks_smaller(monkeypatch):
    X, Y, Z = problem(2, n=200)
    settings = {**EXACT, "subsample": 20, "batch_size": 64, "regularization": 1e-2}
    expected = make(EigenProRegressor, bandwidth=2.0, **settings).fit(X, Y).predict(Z)
    block, gram = Evaluator.block, Evaluator.gram

    def small_block(self, A, B):
        if len(A) > 20 and len(B) > 20:
            raise torch.OutOfMemoryError("out of memory")
        return block(self, A, B)

    def no_gram(self, budget):
        raise torch.OutOfMemoryError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(Evaluator, "block", small_block)
        patch.setattr(Evaluator, "gram", no_gram)
        model = make(EigenProRegressor, bandwidth=2.0, **settings).fit(X, Y)
    assert gram is Evaluator.gram
    assert model.facts_["batch_size"] == 16
    assert not model.facts_["cached"]
    np.testing.assert_allclose(model.predict(Z), expected, atol=1e-5)


def test_leave_one_out_is_stated_only_where_rounding_cannot_move_it():
    """A column of size 1e4 makes k(x, x) about 1e8: with λ = 1e-6 the inverse is off by 3.5e-4."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 3)) * [1.0, 1e4, 1.0]
    y = X @ [1.0, 1e-4, 2.0] + rng.normal(size=10)
    settings = {"regularization": 1e-6, "solver": "direct", "device": "cpu"}
    for stated in ({}, {"x_bound": 1e5}):
        model = make(EigenProRegressor, "linear", **settings, **stated).fit(X, y)
        claimed = {claim.quantity for claim in model.certificate_.claims}
        assert "leave_one_out_error" not in claimed
        assert (
            "rounding"
            in {i.what: i.reason for i in model.certificate_.lacking}["leave_one_out_error"]
        )
    bounded = make(EigenProRegressor, "gaussian", bandwidth=1e4, **settings).fit(X, y)
    assert "leave_one_out_error" in {claim.quantity for claim in bounded.certificate_.claims}
