"""Least squares and ridge regression, and what their certificates may and may not say."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.linear_model
from scipy import sparse

from surelearn import bounds
from surelearn.certificate import Certificate
from surelearn.linear.intercept import arguments_of
from surelearn.linear.ridge.learner import GRID, LeastSquares, Ridge
from surelearn.linear.ridge.spectrum import ridge_path

INTERCEPTS = ("none", "regularized", "free")


def problem(seed=0, n=40, d=5, outputs=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    shape = d if outputs is None else (d, outputs)
    y = X @ rng.normal(size=shape) + rng.normal(size=n if outputs is None else (n, outputs)) + 2
    return X, y, rng.integers(1, 4, n).astype(float)


def bounded(seed=0, n=60, d=3, norm=1.0):
    """Rows with ‖x‖ ≤ norm and |y| ≤ 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X *= norm * rng.random((n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.clip(X[:, 0] + 0.3 * rng.normal(size=n), -1, 1)


def penalized_fit(X, y, total, intercept, weights=None):
    """Σ s_i(x_i w + b − y_i)² + total·‖w‖² by plain normal equations, an independent form;
    returns w, b.
    """
    s = np.ones(len(X)) if weights is None else weights
    padded = X if intercept == "none" else np.column_stack([X, np.ones(len(X))])
    penalty = np.full(padded.shape[1], total)
    if intercept == "free":
        penalty[-1] = 0
    w = np.linalg.solve(
        padded.T @ (s[:, None] * padded) + np.diag(penalty),
        padded.T @ (s[:, None] * y.reshape(len(y), -1)),
    )
    w = w if y.ndim == 2 else w[:, 0]
    return (w, np.zeros_like(w[-1])) if intercept == "none" else (w[:-1], w[-1])


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("outputs", [None, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", ["svd", "lsqr"])
def test_the_minimizer(intercept, outputs, weighted, solver):
    X, y, s = problem(outputs=outputs)
    weights = s if weighted else None
    rows = sparse.csr_matrix(X) if solver == "lsqr" else X
    model = Ridge(regularization=0.3, **arguments_of(intercept), solver=solver).fit(
        rows, y, sample_weight=weights
    )
    w, b = penalized_fit(X, y, 0.3 * (s.sum() if weighted else len(X)), intercept, weights)
    np.testing.assert_allclose(model.coef_, w.T, rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.intercept_, b, rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.predict(rows), X @ w + b, rtol=0, atol=1e-9)


def test_agrees_with_scikit_learn():
    X, y, s = problem()
    ours = Ridge(regularization=0.2, regularize_intercept=False).fit(X, y, sample_weight=s)
    peer = sklearn.linear_model.Ridge(alpha=0.2 * s.sum()).fit(X, y, sample_weight=s)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-10)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=1e-10)


def test_a_row_without_weight_is_no_row():
    X, y, _ = problem()
    s = np.r_[np.zeros(10), np.ones(30)]
    a, b = Ridge().fit(X, y, sample_weight=s), Ridge().fit(X[10:], y[10:])
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-12)
    assert a.facts_["n"] == 30
    assert not a.facts_["weighted"]


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("outputs", [None, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_error_is_that_of_n_refits(intercept, outputs, weighted):
    X, y, s = problem(n=25, outputs=outputs)
    weights = s if weighted else np.ones(len(X))
    model = Ridge(regularization=0.1, **arguments_of(intercept)).fit(X, y, sample_weight=weights)
    total = 0.1 * weights.sum()  # held fixed
    left = []
    for i in range(len(X)):
        kept = np.arange(len(X)) != i
        w, b = penalized_fit(X[kept], y[kept], total, intercept, weights[kept])
        left.append(np.sum((X[i] @ w + b - y[i]) ** 2))
    assert model.facts_["leave_one_out_error"] == pytest.approx(
        np.average(left, weights=weights), rel=1e-10
    )


def test_gcv_from_the_hat_matrix():
    X, y, _ = problem()
    n, lam = len(X), 0.4
    hat = X @ np.linalg.solve(X.T @ X + n * lam * np.eye(5), X.T)
    expected = np.mean((y - hat @ y) ** 2) / (1 - np.trace(hat) / n) ** 2
    model = Ridge(regularization="gcv", grid=[lam], fit_intercept=False).fit(X, y)
    assert model.grid_errors_[0] == pytest.approx(expected, rel=1e-12)
    assert model.facts_["degrees_of_freedom"] == pytest.approx(np.trace(hat), rel=1e-12)


@pytest.mark.parametrize("choice", ["loo", "gcv"])
def test_choice_is_the_best_of_the_grid(choice):
    X, y, _ = problem(n=30, d=20)
    grid = np.logspace(-4, 2, 13)
    model = Ridge(regularization=choice, grid=grid, fit_intercept=False).fit(X, y)
    path = ridge_path(X, y, grid, intercept="none")
    errors = path["leave_one_out" if choice == "loo" else "gcv"]
    np.testing.assert_allclose(model.grid_errors_, errors, rtol=1e-12)
    assert model.regularization_ == grid[np.argmin(errors)]
    assert 0 < np.argmin(errors) < 12
    if choice == "loo":
        peer = sklearn.linear_model.RidgeCV(alphas=30 * grid, fit_intercept=False).fit(X, y)
        assert peer.alpha_ == pytest.approx(30 * model.regularization_)


@pytest.mark.parametrize("outputs", [None, 2])
def test_path_is_the_separate_fits(outputs):
    X, y, _ = problem(outputs=outputs)
    path = ridge_path(X, y, [1e-3, 0.1, 10.0])
    for k, lam in enumerate(path["grid"]):
        model = Ridge(regularization=lam).fit(X, y)
        np.testing.assert_allclose(path["coef"][k], model.coef_, atol=1e-13)
        np.testing.assert_allclose(path["intercept"][k], model.intercept_, atol=1e-13)
        assert path["leave_one_out"][k] == pytest.approx(
            model.facts_["leave_one_out_error"], rel=1e-12
        )


def test_digits_that_the_normal_equations_lose():
    tiny = 1e-8  # Läuchli: XᵀX rounds to a singular matrix
    X = np.array([[1.0, 1.0], [tiny, 0.0], [0.0, tiny]])
    assert np.linalg.matrix_rank(X.T @ X) == 1
    model = LeastSquares(fit_intercept=False, tol=0.0).fit(X, X @ [3.0, -1.0])
    np.testing.assert_allclose(model.coef_, [3.0, -1.0], atol=1e-6)


def test_leave_one_out_with_hardly_any_penalty():
    """1 − h_i is of the size of λ here; subtracting h_i from 1 would leave no digit."""
    X = np.array([[1.0, 0.0], [0.0, 1.0]])
    y = np.array([1.0, 2.0])
    model = Ridge(regularization=1e-14, fit_intercept=False).fit(X, y)
    # each row left out is predicted 0
    assert model.facts_["leave_one_out_error"] == pytest.approx(2.5, rel=1e-12)
    X, y, _ = problem(n=4, d=8)
    # e_i/(1 − h_i) = (K + nλI)⁻¹y over the inverse's diagonal
    inverse = np.linalg.inv(X @ X.T + 4e-14 * np.eye(4))
    expected = np.mean((inverse @ y / np.diag(inverse)) ** 2)
    model = Ridge(regularization=1e-14, fit_intercept=False).fit(X, y)
    assert model.facts_["leave_one_out_error"] == pytest.approx(expected, rel=1e-10)


def test_smallest_norm_where_columns_depend():
    X, y, _ = problem()
    X = np.hstack([X, X[:, :2]])
    for solver in ("svd", "lsqr"):
        model = LeastSquares(fit_intercept=False, solver=solver).fit(X, y)
        np.testing.assert_allclose(model.coef_, np.linalg.lstsq(X, y, rcond=None)[0], atol=1e-10)
    assert "infinite" in LeastSquares(fit_intercept=False).fit(X, y).certificate_.lacking[0].reason


@pytest.mark.parametrize("eps", [1e-3, 1e-6, 1e-9])
def test_the_epsilon_example(eps):
    """Course notes, Section 3: the solution (−2/ε, 1) is chaotic; a penalty cures it (the
    notes' points are our rows).
    """
    X, y = np.array([[0.0, 1.0], [eps, 1.0]]), np.array([1.0, -1.0])
    model = LeastSquares(fit_intercept=False, tol=0.0).fit(X, y)
    np.testing.assert_allclose(model.coef_, [-2 / eps, 1.0], rtol=1e-6)
    warnings = [
        absent.reason for absent in model.certificate_.lacking if absent.what == "stable_weights"
    ]
    assert len(warnings) == 1
    assert model.facts_["condition_number"] == pytest.approx(2 / eps, rel=1e-2)
    ridge = Ridge(regularization=0.1, fit_intercept=False).fit(X, y)
    assert np.linalg.norm(ridge.coef_) < 1
    assert ridge.facts_["condition_number"] < 4
    assert all(absent.what != "stable_weights" for absent in ridge.certificate_.lacking)


def test_certified_numbers_by_hand():
    X, y = bounded()
    model = Ridge(regularization=0.5, x_bound=1.0, y_bound=1.0, delta=0.1).fit(X, y)
    certificate = model.certificate_
    n, lam, x = 60, 0.5, math.sqrt(2)  # padded
    beta = (2 * x * (1 + x / (2 * math.sqrt(lam)))) ** 2 / (lam * n)
    assert certificate["uniform_stability"].value == pytest.approx(beta, rel=1e-12)
    bound = (1 + x / (2 * math.sqrt(lam))) ** 2
    risk = np.mean((model.predict(X) - y) ** 2)
    value = risk + beta + (2 * n * beta + bound) * math.sqrt(math.log(10) / (2 * n))
    assert certificate["risk"].value == pytest.approx(value, rel=1e-10)
    second = next(claim for claim in certificate.claims if claim.theorem == "bousquet_elisseeff")
    left = model.facts_["leave_one_out_error"]
    assert second.value == pytest.approx(
        left + beta / 2 + (2 * n * beta + bound) * math.sqrt(math.log(10) / (2 * n)), rel=1e-10
    )
    again = Certificate.from_json(certificate.to_json())
    assert again.verify(model)
    # These three, how near the minimizer it is, and the leave-one-out error.
    assert len(again.claims) == 6


def test_risk_claims_hold_where_the_risk_is_known():
    """x = ±1/10, y = ±1 with P(y = sign x) = 0.6, large λ and n: a claim below the trivial
    value, never violated.
    """
    rng = np.random.default_rng(1)
    n, lam = 20_000, 1.0
    informative = 0
    for _ in range(50):
        x = 0.1 * rng.choice([-1.0, 1.0], n)
        y = np.where(rng.random(n) < 0.6, 1.0, -1.0) * np.sign(x)
        model = Ridge(regularization=lam, fit_intercept=False, x_bound=0.1, y_bound=1.0).fit(
            x[:, None], y
        )
        score = 0.1 * model.coef_[0]
        risk = 0.6 * (1 - score) ** 2 + 0.4 * (1 + score) ** 2
        for claim in model.certificate_.claims[1:3]:
            assert claim.quantity == "risk"
            assert risk <= claim.value
            informative += not claim.vacuous
    assert informative == 100


def test_the_loss_bound_is_attained_and_never_exceeded():
    """n = 1 and x = √λ give ‖w‖ = Y/(2√λ); the worst point is −X with target Y."""
    lam, X, Y = 0.25, 2.0, 3.0
    model = Ridge(regularization=lam, fit_intercept=False, x_bound=X, y_bound=Y).fit(
        [[math.sqrt(lam)], [math.sqrt(lam)]], [Y, Y]
    )
    worst = (float(model.predict([[-X]])[0]) - Y) ** 2
    assert bounds.ridge_loss_bound(X, Y, lam) == pytest.approx(worst, rel=1e-12)
    assert model.certificate_["risk"].inputs["loss_bound"] == bounds.ridge_loss_bound(X, Y, lam)
    rng = np.random.default_rng(0)
    for _ in range(1000):
        n, d, lam = int(rng.integers(2, 12)), int(rng.integers(1, 4)), 10 ** rng.uniform(-3, 2)
        rows = rng.normal(size=(n, d))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True) / rng.random((n, 1))
        y = rng.uniform(-1, 1, (n, 2)) / math.sqrt(2)
        model = Ridge(regularization=lam, fit_intercept=False, x_bound=1.0, y_bound=1.0).fit(
            rows, y
        )
        largest = (1 + np.linalg.norm(model.coef_, 2)) ** 2  # over ‖x‖ ≤ 1, ‖y‖ ≤ 1
        assert largest <= bounds.ridge_loss_bound(1.0, 1.0, lam) * (1 + 1e-12)


def test_a_smaller_loss_bound_may_be_stated():
    X, y = bounded()
    derived = Ridge(regularization=0.1, x_bound=1.0, y_bound=1.0).fit(X, y)
    stated = Ridge(regularization=0.1, x_bound=1.0, y_bound=1.0, loss_bound=4.0).fit(X, y)
    assert stated.certificate_["risk"].value < derived.certificate_["risk"].value
    assert any("loss_bound" in line for line in stated.certificate_["risk"].assumptions)
    assert not any("loss_bound" in line for line in derived.certificate_["risk"].assumptions)
    with pytest.raises(ValueError, match=r"loss_bound=0\.01 but a training row has loss"):
        Ridge(regularization=0.1, x_bound=1.0, y_bound=1.0, loss_bound=0.01).fit(X, y)


def test_the_claim_includes_the_tolerance():
    """A fit away from the minimizer by a known distance says so, and the risk it certifies
    contains what that may change.
    """
    X, y = bounded(n=200, d=20)
    exact = Ridge(regularization=1e-3, fit_intercept=False, x_bound=1.0, y_bound=1.0).fit(X, y)
    solved = Ridge(
        regularization=1e-3, fit_intercept=False, x_bound=1.0, y_bound=1.0, solver="lsqr"
    ).fit(sparse.csr_matrix(X), y)
    apart = np.linalg.norm(exact.coef_ - solved.coef_)
    distances = [model.facts_["half_slope"] / 1e-3 for model in (exact, solved)]
    assert apart <= sum(distances) < 1e-9
    for model, distance in zip((exact, solved), distances, strict=True):
        risk = model.certificate_["risk"]
        change = 2 * distance * (2 * math.sqrt(risk.inputs["loss_bound"]) + distance)
        assert risk.inputs["risk"] == pytest.approx(
            model.facts_["training_risk"] + change, rel=1e-14
        )
    assert [absent.what for absent in solved.certificate_.lacking] == [
        "leave_one_out_error",
        "risk",
        "suboptimality",
        "distance_to_the_minimizer",
    ]


def absent_reasons(model):
    return {absent.what: absent.reason for absent in model.certificate_.lacking}


def test_mutant_tuned_regularization_certified_as_if_fixed():
    """A chosen λ pays for the choice, and is not called stable: one row may change the choice
    by more than β.
    """
    X, y = bounded()
    tuned = Ridge(regularization="loo", x_bound=1.0, y_bound=1.0).fit(X, y)
    fixed = Ridge(regularization=tuned.regularization_, x_bound=1.0, y_bound=1.0).fit(X, y)
    risks = [claim for claim in tuned.certificate_.claims if claim.quantity == "risk"]
    assert [claim.candidates for claim in risks] == [len(GRID)] * 2
    assert [claim.inputs["delta"] for claim in risks] == [0.05 / 25] * 2
    assert any("among 25 values" in line for line in risks[0].assumptions)
    assert risks[0].value > fixed.certificate_["risk"].value
    assert "chosen on the rows" in absent_reasons(tuned)["uniform_stability"]
    assert tuned.certificate_.verify(tuned)


def test_mutant_the_tuned_learner_breaks_the_stability_of_its_regularization():
    grid, found = [1e-3, 1e3], False
    rng = np.random.default_rng(0)
    for _ in range(200):
        X, y = rng.uniform(-1, 1, (6, 1)), rng.uniform(-1, 1, 6)
        before = Ridge(regularization="loo", grid=grid, fit_intercept=False).fit(X, y)
        X[0], y[0] = rng.uniform(-1, 1, 1), rng.uniform(-1, 1)
        after = Ridge(regularization="loo", grid=grid, fit_intercept=False).fit(X, y)
        if before.regularization_ != after.regularization_:
            # certified as if 1e3 had been fixed
            beta = 4 * (1 + 1 / math.sqrt(1e3)) ** 2 / (1e3 * 6)
            a, b = abs(before.coef_[0]), abs(after.coef_[0])
            found |= abs((1 + a) ** 2 - (1 + b) ** 2) > beta
    assert found


def test_mutant_free_intercept_certified():
    """With x = 0 the free intercept is the mean of y: replacing one target moves the loss by
    about 4Y²/n, far beyond β.
    """
    n, X = 10, np.zeros((10, 1))
    y = np.ones(n)
    model = Ridge(regularization=1.0, regularize_intercept=False, x_bound=0.01, y_bound=1.0).fit(
        X, y
    )
    assert "the intercept is free" in absent_reasons(model)["uniform_stability"]
    assert "the intercept is free" in absent_reasons(model)["risk"]
    assert {claim.quantity for claim in model.certificate_.claims} == {
        "suboptimality",
        "distance_to_the_minimizer",
        "leave_one_out_error",
    }
    other = Ridge(regularization=1.0, regularize_intercept=False).fit(X, np.r_[-1.0, y[1:]])
    change = abs((model.intercept_ + 1) ** 2 - (other.intercept_ + 1) ** 2)
    beta = 4 * 0.01**2 * 1.01**2 / n
    assert change > 100 * beta


def test_why_nothing_is_claimed():
    X, y = bounded()
    weights = np.r_[2.0, np.ones(59)]
    stated = {"x_bound": 1.0, "y_bound": 1.0}
    assert "state x_bound=" in absent_reasons(Ridge().fit(X, y))["risk"]
    assert "state y_bound=" in absent_reasons(Ridge(x_bound=1.0).fit(X, y))["risk"]
    assert (
        "weighted unequally"
        in absent_reasons(Ridge(**stated).fit(X, y, sample_weight=weights))["risk"]
    )
    assert (
        "without a penalty" in absent_reasons(LeastSquares(fit_intercept=False).fit(X, y))["risk"]
    )
    assert Ridge(**stated).fit(X, y, sample_weight=2 * np.ones(60)).certificate_["risk"]
    assert absent_reasons(LeastSquares(fit_intercept=False).fit(np.eye(2), [1.0, 2.0]))[
        "leave_one_out_error"
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"regularization": -1.0}, "regularization must be a number above 0"),
        ({"regularization": 0.0}, "LeastSquares"),
        ({"regularization": math.nan}, "regularization must be"),
        ({"regularization": "best"}, "regularization must be one of 'loo', 'gcv'"),
        (
            {"regularization": "loo", "grid": [0.0, 1.0]},
            "grid must be a list of finite numbers above 0",
        ),
        ({"grid": [1.0]}, "grid is for"),
        ({"fit_intercept": "both"}, "fit_intercept must be True or False"),
        ({"solver": "qr"}, "solver must be one of"),
        ({"x_bound": 0.5}, "x_bound=0.5 but row"),
        ({"y_bound": 0.5}, "y_bound=0.5 but row"),
        ({"x_bound": -1.0}, "x_bound must be a finite number above 0"),
        ({"regularization": "loo", "solver": "lsqr"}, "needs the singular values"),
    ],
)
def test_refused(options, message):
    X, y = bounded(norm=1.0)
    X[0] /= np.linalg.norm(X[0])
    y[0] = 1.0
    with pytest.raises(ValueError, match=message):
        Ridge(**options).fit(sparse.csr_matrix(X) if "solver" in options else X, y)


@pytest.mark.parametrize(("entry", "message"), [(math.nan, "NaN"), (math.inf, "infinity")])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_rows_that_are_no_numbers_are_refused(make, entry, message):
    with pytest.raises(ValueError, match=message):
        Ridge().fit(make(np.array([[entry, 1.0], [0.0, 1.0]])), [0.0, 1.0])
    with pytest.raises(ValueError, match=message):
        Ridge().fit(make(np.eye(2)), [0.0, entry])


def test_rows_of_every_kind():
    X, y, _ = problem()
    X[np.abs(X) < 0.5] = 0
    X[:, 1] = 1.0  # constant
    X[3] = 0  # empty
    expected = Ridge().fit(X, y).coef_
    wide = sparse.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for rows in (wide, sparse.csc_matrix(X), sparse.csr_array(X), np.asfortranarray(X)):
        np.testing.assert_allclose(Ridge().fit(rows, y).coef_, expected, atol=1e-12)
    names = [f"c{j}" for j in range(5)]
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = Ridge().fit(frame, y)
        assert list(model.feature_names_in_) == names
        np.testing.assert_allclose(
            model.predict(frame), X @ expected + model.intercept_, atol=1e-12
        )
