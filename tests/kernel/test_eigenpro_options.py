"""EigenPro with weights, a start, precomputed and composite kernels, and what it says on the
way.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

torch = pytest.importorskip("torch")

from tests.making import make  # noqa: E402

from surelearn.kernel import Compute  # noqa: E402
from surelearn.kernel.eigenpro import EigenProClassifier, EigenProRegressor  # noqa: E402
from surelearn.kernel.functions import Gaussian, Laplace, Linear  # noqa: E402

SOLVERS = [
    {"solver": "direct"},
    {
        "solver": "eigenpro",
        "dtype": "float64",
        "epochs": 3000,
        "tol": 1e-11,
        "subsample": 20,
        "batch_size": 16,
    },
    {
        "solver": "eigenpro",
        "dtype": "float64",
        "epochs": 3000,
        "tol": 1e-11,
        "memory_limit": 1e4,
        "batch_size": 16,
    },
]


def problem(seed=0, n=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return (
        X,
        np.sin(X @ rng.normal(size=(3, 2))) + 0.1 * rng.normal(size=(n, 2)),
        rng.normal(size=(15, 3)),
    )


def made(solver, kernel="gaussian", **more):
    return make(
        EigenProRegressor,
        kernel,
        bandwidth=2.0,
        device="cpu",
        random_state=0,
        **{"regularization": 1e-2} | solver | more,
    )


@pytest.mark.parametrize("solver", SOLVERS, ids=["direct", "cached", "uncached"])
def test_weights_count_copies(solver):
    X, Y, Z = problem()
    weights = np.random.default_rng(1).integers(0, 4, size=len(X))
    repeated = made(solver).fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0))
    weighted = made(solver).fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(weighted.predict(Z), repeated.predict(Z), atol=1e-5)
    assert weighted.facts_["training_risk"] == pytest.approx(
        repeated.facts_["training_risk"], rel=1e-4
    )
    assert weighted.facts_["norm"] == pytest.approx(repeated.facts_["norm"], rel=1e-4)
    np.testing.assert_array_equal(weighted.center_indices_, np.flatnonzero(weights))
    np.testing.assert_allclose(
        made(solver).fit(X, Y, np.full(len(X), 7.0)).predict(Z),
        made(solver).fit(X, Y).predict(Z),
        atol=1e-6,
    )


def test_the_weighted_gradient_is_that_of_the_weighted_objective():
    X, Y, _ = problem(3)
    weights, lam, k = (
        np.random.default_rng(1).uniform(0.1, 3.0, size=len(X)),
        1e-2,
        Gaussian(bandwidth=2.0),
    )
    early = made(SOLVERS[1], epochs=1, tol=0.0, batch_size=10).fit(X, Y, weights)
    K = k(X, X)
    optimum = np.linalg.solve(K + lam * weights.sum() * np.diag(1 / weights), Y)
    off = early.coef_ - optimum
    distance = np.sqrt(np.sum(off * (K @ off)))
    bound = early.facts_["gradient_norm"] / (2 * lam)
    assert 1e-6 < distance <= bound * (1 + 1e-9)
    rho = weights[:, None] * (K @ early.coef_ - Y) + lam * weights.sum() * early.coef_
    assert early.facts_["gradient_norm"] == pytest.approx(
        2 / weights.sum() * np.sqrt(np.sum(rho * (K @ rho))), rel=1e-6
    )


def test_weights_void_claims_about_the_rows():
    X, Y, _ = problem()
    labels = (Y[:, 0] > 0).astype(int)
    machine = EigenProClassifier(bandwidth=2.0, compute=Compute(device="cpu"))
    assert "risk" in {claim.quantity for claim in machine.fit(X, labels).certificate_.claims}
    weighted = machine.fit(X, labels, sample_weight=np.ones(len(X))).certificate_
    assert "risk" not in {claim.quantity for claim in weighted.claims}
    assert any("weighted" in absent.reason for absent in weighted.lacking)
    stable = (
        made({"solver": "direct"}, y_bound=3.0, x_bound=9.0).fit(X, Y, np.ones(len(X))).certificate_
    )
    assert {claim.quantity for claim in stable.claims} == {
        "distance_to_the_minimizer",
        "leave_one_out_error",
    }


def test_a_warm_start_goes_on():
    X, Y, _ = problem(n=200)
    settings = {
        "solver": "eigenpro",
        "dtype": "float64",
        "tol": 0.0,
        "batch_size": 20,
        "subsample": 30,
    }
    once, twice = (
        made(settings, epochs=epochs).fit(X, Y).facts_["gradient_norm"] for epochs in (3, 6)
    )
    model = made(settings, epochs=3, warm_start=True).fit(X, Y)
    assert model.facts_["gradient_norm"] == pytest.approx(once, rel=1e-9)
    assert model.fit(X, Y).facts_["gradient_norm"] == pytest.approx(twice, rel=0.5)
    assert model.facts_["gradient_norm"] < 0.8 * once
    more = np.vstack([X, X[:50] + 0.1]), np.vstack([Y, Y[:50]])
    assert model.fit(*more).coef_.shape == (250, 2)
    with pytest.raises(ValueError, match="warm_start=True goes on with the same rows"):
        model.fit(X[::-1], Y)


@pytest.mark.parametrize("solver", SOLVERS, ids=["direct", "cached", "uncached"])
def test_precomputed_is_the_kernel(solver):
    X, Y, Z = problem()
    k = Laplace(2.0)
    for more in ({}, {"validation_fraction": 0.3, "solver": "eigenpro", "epochs": 20}):
        plain, looked = (
            made(solver | more, k).fit(X, Y),
            made(solver | more, "precomputed").fit(k(X, X), Y),
        )
        np.testing.assert_allclose(looked.predict(k(Z, X)), plain.predict(Z), atol=1e-5)
        assert looked.centers_ is None
    with pytest.raises(ValueError, match="square matrix"):
        made(solver, "precomputed").fit(k(X, X)[:, :50], Y)


def test_precomputed_matrices_are_cut_right_in_cross_validation():
    X, Y, _ = problem()
    k = Laplace(2.0)
    found = cross_val_score(made({"solver": "direct"}, "precomputed"), k(X, X), Y, cv=3)
    np.testing.assert_allclose(
        found, cross_val_score(made({"solver": "direct"}, k), X, Y, cv=3), atol=1e-9
    )


@pytest.mark.parametrize("solver", SOLVERS, ids=["direct", "cached", "uncached"])
@pytest.mark.parametrize(
    "k",
    [Gaussian(bandwidth=1.225) + 0.5 * Linear(), Laplace(2.0) * Gaussian(bandwidth=1.414)],
    ids=repr,
)
def test_sums_and_products(solver, k):
    X, Y, Z = problem()
    expected = k(Z, X) @ np.linalg.solve(k(X, X) + 1e-2 * len(X) * np.eye(len(X)), Y)
    np.testing.assert_allclose(made(solver, k).fit(X, Y).predict(Z), expected, atol=1e-5)


def test_each_epoch_says_how_far_it_is(capsys):
    X, Y, _ = problem()
    made({"solver": "eigenpro"}, epochs=2, tol=0.0, verbose=True).fit(X, Y)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["epoch 1 of 2", "epoch 2 of 2"]
    assert all("s left" in line for line in lines)


@pytest.mark.filterwarnings("ignore:the kernel matrix of")
def test_hundreds_of_small_problems_agree_with_a_direct_solution():
    """Both solvers, all kernels, λ over five decades: f at new rows within what the residual
    allows.
    """
    rng = np.random.default_rng(0)
    kernels = [
        Linear(),
        Gaussian(bandwidth=0.7071),
        Laplace(0.7),
        Gaussian(bandwidth=1.581) * Laplace(3.0),
        Linear() + Gaussian(bandwidth=1.0),
    ]
    close = []
    for trial in range(800):
        n, d = int(rng.integers(1, 13)), int(rng.integers(1, 4))
        X, Z, Y = (
            rng.normal(size=(n, d)),
            rng.normal(size=(3, d)),
            rng.normal(size=(n, 1)) * 10 ** rng.uniform(-3, 3),
        )
        if trial % 3 == 0:
            X[rng.integers(n)] = X[0]
        k, lam = kernels[trial % len(kernels)], 10 ** rng.uniform(-3, 2)
        K = k(X, X)
        expected = k(Z, X) @ np.linalg.solve(K + lam * n * np.eye(n), Y)
        tolerance = 1e-6 * np.abs(Y).max()
        direct = EigenProRegressor(
            k, regularization=lam, solver="direct", compute=Compute(device="cpu")
        ).fit(X, Y)
        np.testing.assert_allclose(direct.predict(Z), expected, atol=tolerance)
        if trial % 10 == 0:
            more = {
                "solver": "eigenpro",
                "dtype": "float64",
                "epochs": 200,
                "tol": 1e-9,
                "batch_size": int(rng.integers(1, n + 1)),
            }
            found = make(
                EigenProRegressor, k, regularization=lam, device="cpu", random_state=trial, **more
            ).fit(X, Y)
            reach = np.sqrt(k.diagonal(Z))[:, None] * found.facts_["gradient_norm"] / (2 * lam)
            assert (np.abs(found.predict(Z) - expected) <= reach + tolerance).all()
            close.append(bool((reach <= 1e-2 * np.abs(Y).max()).all()))
    assert np.mean(close) > 0.7


def test_fewer_centers_than_rows(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = np.sin(X[:, 0]) + X[:, 1] ** 2
    settings = {
        "bandwidth": 3.0,
        "regularization": 1e-6,
        "device": "cpu",
        "dtype": "float64",
        "epochs": 60,
        "tol": 1e-12,
        "random_state": 0,
    }
    few = make(EigenProRegressor, "gaussian", centers=60, **settings).fit(X, y)
    assert few.centers_.shape == (60, 3)
    assert few.coef_.shape == (60,)
    K, own = (
        Gaussian(bandwidth=3.0)(X, few.centers_),
        Gaussian(bandwidth=3.0)(few.centers_, few.centers_),
    )
    values, vectors = np.linalg.eigh(own)
    root = np.sqrt(600e-6 * np.maximum(values, 0.0))[:, None] * vectors.T
    least = np.linalg.lstsq(np.vstack([K, root]), np.append(y, np.zeros(60)), rcond=1e-15)[0]
    np.testing.assert_allclose(few.predict(X), K @ least, atol=1e-3)
    assert few.facts_["training_risk"] == pytest.approx(
        np.mean((few.predict(X) - y) ** 2), rel=1e-3
    )
    path = tmp_path / "rows.parquet"
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y, kind=np.where(y > 1, "big", "small"))
    frame.to_parquet(path)
    filed = make(EigenProRegressor, "gaussian", centers=60, **settings).fit_file(
        path, "y", features=["a", "b", "c"]
    )
    np.testing.assert_allclose(filed.predict(frame[["a", "b", "c"]]), few.predict(X), rtol=1e-9)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    np.testing.assert_allclose(
        make(EigenProRegressor, "gaussian", centers=60, **settings).fit(mapped, y).predict(X),
        few.predict(X),
    )
    machine = make(EigenProClassifier, "gaussian", centers=60, **settings).fit_file(
        path, "kind", features=["a", "b", "c"]
    )
    assert machine.classes_.tolist() == ["big", "small"]
    assert machine.score(frame[["a", "b", "c"]], frame["kind"]) > 0.95
    claims = {claim.quantity for claim in machine.certificate_.claims}
    assert claims == {"risk"}
    assert {absent.what for absent in few.certificate_.lacking} >= {
        "distance_to_the_minimizer",
        "uniform_stability",
    }


def test_a_warm_start_with_centers_and_what_does_not_go_with_them(capsys):
    X, Y, _ = problem(n=100)
    model = made({"centers": 10}, warm_start=True, epochs=1, verbose=True).fit(X, Y)
    first, kept = model.facts_["training_risk"], model.centers_
    model.fit(X, Y)
    np.testing.assert_array_equal(model.centers_, kept)
    assert model.facts_["training_risk"] <= first * (1 + 1e-6)
    assert "rows read" in capsys.readouterr().err
    with pytest.raises(ValueError, match="sample_weight goes with centers=None"):
        made({"centers": 10}).fit(X, Y, np.ones(100))
    with pytest.raises(ValueError, match="give centers="):
        made({}).fit_file("rows.parquet", "y")
    with pytest.raises(ValueError, match="centers must be a whole number"):
        made({"centers": 0}).fit(X, Y)
    with pytest.raises(ValueError, match="'precomputed' has a row and a column"):
        made({"centers": 3}, "precomputed").fit(np.eye(5), Y[:5])


def test_leave_one_out_chooses_bandwidth_and_penalty():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(150, 1))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=150)
    chosen = EigenProRegressor(
        "gaussian",
        bandwidth="loo",
        regularization="loo",
        compute=Compute(device="cpu"),
        random_state=0,
    ).fit(X, y)
    poor = EigenProRegressor(
        "gaussian", bandwidth=30.0, regularization=1e-3, compute=Compute(device="cpu")
    ).fit(X, y)
    Z = np.linspace(-2.5, 2.5, 50)[:, None]
    errors = [np.mean((model.predict(Z) - np.sin(3 * Z[:, 0])) ** 2) for model in (chosen, poor)]
    assert errors[0] < 0.02 < errors[1]
    assert chosen.facts_["tuned"]
    assert not poor.facts_["tuned"]
    assert (
        EigenProClassifier(regularization="loo", compute=Compute(device="cpu"))
        .fit(X, y > 0)
        .score(X, y > 0)
        > 0.9
    )
    with pytest.raises(ValueError, match="or 'loo', not 'gcv'"):
        EigenProRegressor(regularization="gcv").fit(X, y)


@pytest.mark.parametrize("solver", ["direct", "eigenpro"])
def test_the_record_is_measured_again_with_weights_matrices_and_several_outputs(solver):
    X, Y, _ = problem()
    weights = np.arange(60) % 3.0
    shared = {"solver": solver, "device": "cpu", "random_state": 0, "regularization": 0.1}
    labels = np.digitize(Y[:, 0], [-0.3, 0.3])
    fits = [
        (make(EigenProRegressor, bandwidth=2.0, **shared), X, Y, weights),
        (
            make(EigenProRegressor, bandwidth=2.0, validation_fraction=0.3, **shared),
            X,
            Y[:, 0],
            weights,
        ),
        (make(EigenProRegressor, "precomputed", **shared), X @ X.T, Y, None),
        (
            make(
                EigenProRegressor,
                0.5 * Gaussian(bandwidth=1.0) + Linear(),
                y_bound=9.0,
                x_bound=9.0,
                **shared,
            ),
            X,
            Y,
            None,
        ),
        (
            make(EigenProClassifier, bandwidth="loo", **shared | {"regularization": "loo"}),
            X,
            labels,
            None,
        ),
        (make(EigenProClassifier, bandwidth=2.0, **shared), torch.from_numpy(X), labels, weights),
    ]
    for learner, rows, targets, w in fits:
        model = learner.fit(rows, targets, sample_weight=w)
        found = model.certificate_.verify(model, rows, targets, sample_weight=w)
        assert found, (learner, found)
        assert not model.certificate_.verify(model, rows, targets, sample_weight=weights[::-1] + 1)
        model.facts_["training_risk"] *= 0.999
        told = model.certificate_.verify(model, rows, targets, sample_weight=w).differences
        assert told == ("training_risk: not what model and rows give",)
    assert "the rows are not those" in str(
        model.certificate_.verify(model, 2 * rows, targets, sample_weight=w)
    )


def test_centers_are_measured_again_on_the_rows_that_were_not_held_out():
    X, Y, _ = problem()
    model = made({}, centers=15, validation_fraction=0.3).fit(X, Y)
    assert len(model.held_out_) == model.facts_["validation_rows"] == 18
    assert model.certificate_.verify(model, X, Y)
    others = X.copy()
    others[np.delete(np.arange(60), model.held_out_)[0]] += 3.0
    assert "training_risk" in str(model.certificate_.verify(model, others, Y))
    assert "sample_weight goes with centers=None" in str(
        model.certificate_.verify(model, X, Y, sample_weight=np.ones(60))
    )
    del model.held_out_  # as version 0.2 left it
    assert "did not keep which rows were held out" in str(model.certificate_.verify(model, X, Y))
