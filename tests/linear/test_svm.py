"""The support vector machine: against an independent solver, LIBLINEAR and LIBSVM; its gap, and
what is claimed of it.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC

from surelearn import bounds
from surelearn.certificate import Certificate
from surelearn.kernel.functions import Gaussian, Laplace, Linear, Polynomial
from surelearn.linear.intercept import arguments_of
from surelearn.linear.svm.dual import GramDual, RowsDual, gap, intercept_error, solve
from surelearn.linear.svm.learner import SupportVectorMachine
from surelearn.linear.svm.machine import InfeasibleError, MarginProblem, train
from surelearn.linear.svm.optimality import optimality

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
KERNELS = [Linear(), Polynomial(2), Gaussian(bandwidth=1.225), Laplace(2.0)]
ABSENT_REASON = "state x_bound=, a bound on ‖x‖ that holds for every row"


def noisy(seed, n=30, d=2, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + noise * rng.normal(size=n) > 0, 1, -1)
    y[:2] = [-1, 1]
    return X, y


def independent(K, y, C, free):
    """The dual (6.b) by SciPy's SLSQP: its value."""
    Q = K * np.outer(y, y)
    constraints = (
        [{"type": "eq", "fun": lambda a: a @ y, "jac": lambda _: y.astype(float)}] if free else []
    )
    found = minimize(
        lambda a: a @ Q @ a / 2 - a.sum(),
        np.zeros(len(y)),
        jac=lambda a: Q @ a - 1,
        bounds=[(0, C)] * len(y),
        constraints=constraints,
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-13},
    )
    assert found.success
    return -found.fun


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("intercept", ["regularized", "none", "free"])
@pytest.mark.parametrize("C", [0.1, 3.0])
def test_the_optimum_is_that_of_an_independent_solver(kernel, intercept, C):
    X, y = noisy(1)
    model = SupportVectorMachine(kernel=kernel, **arguments_of(intercept), C=C).fit(X, y)
    K = kernel(X, X) + (intercept == "regularized")
    value = independent(K, y, C, intercept == "free")
    facts = model.facts_
    assert facts["dual"] == pytest.approx(value, rel=1e-5)
    assert facts["dual"] * (1 - 1e-9) <= value + 1e-6
    assert facts["primal"] == pytest.approx(value, rel=1e-5)
    # the same numbers from what the model kept: α and f
    alpha = np.zeros(len(y))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    f = model.decision_function(X)
    squared = alpha @ (K * np.outer(y, y)) @ alpha
    assert facts["primal"] == pytest.approx(
        squared / 2 + C * np.maximum(0, 1 - y * f).sum(), rel=1e-9
    )
    assert model.record_.gap == pytest.approx(
        facts["primal"] - (alpha.sum() - squared / 2), abs=1e-6
    )
    assert 0 <= model.record_.gap <= 1e-5 * C * len(y)
    assert alpha.max() <= C
    assert intercept != "free" or abs(alpha @ y) < 1e-6


def test_liblinear_and_libsvm_reach_the_same_optimum():
    X, y = noisy(0, 300, 5)
    for C in (0.01, 1.0, 100.0):
        ours = SupportVectorMachine(C=C).fit(X, y)
        theirs = LinearSVC(
            loss="hinge", C=C, tol=1e-10, max_iter=10**6, dual=True, random_state=0
        ).fit(X, y)
        w = np.append(theirs.coef_, theirs.intercept_)
        objective = w @ w / 2 + C * np.maximum(0, 1 - y * theirs.decision_function(X)).sum()
        assert ours.facts_["primal"] == pytest.approx(objective, rel=1e-5)
        assert ours.facts_["dual"] <= objective * (1 + 1e-12)
    for ours, theirs in (
        (
            SupportVectorMachine(
                kernel="gaussian", bandwidth=math.sqrt(2), regularize_intercept=False
            ),
            SVC(gamma=0.25, tol=1e-9),
        ),
        (
            SupportVectorMachine(kernel="polynomial", degree=2, regularize_intercept=False),
            SVC(kernel="poly", degree=2, gamma=1, coef0=1, tol=1e-9),
        ),
    ):
        np.testing.assert_allclose(
            ours.fit(X, y).decision_function(X),
            theirs.fit(X, y).decision_function(X),
            rtol=1e-4,
            atol=1e-4,
        )


@pytest.mark.parametrize("seed", range(6))
def test_the_two_forms_of_the_dual_agree(seed):
    X, y = noisy(seed, 60, 3)
    upper = np.random.default_rng(seed).uniform(0.1, 5, 60)
    Z = X * y[:, None]
    values = []
    for dual in (
        RowsDual(Z, upper),
        RowsDual(sparse.csr_array(Z), upper),
        GramDual(Z @ Z.T, upper),
    ):
        solve(dual, tol=1e-12, passes=1000, random=np.random.RandomState(seed))
        margins = dual.margins()
        assert gap(dual.alpha, upper, margins) <= 1e-12 * upper.sum()
        values.append(dual.alpha.sum() - dual.alpha @ margins / 2)
    assert values == pytest.approx([values[0]] * 3, rel=1e-10)


@pytest.mark.parametrize("seed", range(20))
def test_the_gap_is_primal_minus_dual_at_any_point(seed):
    rng = np.random.default_rng(seed)
    Z, upper = rng.normal(size=(9, 3)), rng.uniform(0.5, 2, size=9)
    alpha = rng.uniform(size=9) * upper
    margins = Z @ Z.T @ alpha
    primal = alpha @ margins / 2 + upper @ np.maximum(0, 1 - margins)
    assert gap(alpha, upper, margins) == pytest.approx(
        primal - (alpha.sum() - alpha @ margins / 2), rel=1e-12
    )


def test_how_far_the_exact_solution_can_be():
    """‖w − w*‖ ≤ √(2·gap) and the interval for b, for solutions that are stopped early or
    spoiled on purpose.
    """
    for seed in range(60):
        X, y = noisy(seed, 25, 2)
        free = seed % 2 == 1
        problem = MarginProblem(
            X, y.astype(float), np.full(25, 1.0), Linear(), "free" if free else "none"
        )
        exact = train(problem, tol=1e-13, passes=1000, random=np.random.RandomState(0))
        proof = optimality(problem, exact, (exact.alpha * y) @ X)
        rng = np.random.default_rng(seed)
        alpha = np.clip(exact.alpha + rng.normal(scale=10.0 ** rng.integers(-6, -1), size=25), 0, 1)
        if free:  # keep Σ α y = 0
            over = alpha @ y
            for i in np.flatnonzero(y == np.sign(over)):
                cut = min(alpha[i], abs(over))
                alpha[i] -= cut
                over -= np.sign(over) * cut
        w, best = (alpha * y) @ X, (exact.alpha * y) @ X
        margins = y * (X @ w + exact.bias + (shift := 0.01 * rng.normal() if free else 0.0))
        found = gap(alpha, problem.upper, margins)
        assert np.linalg.norm(w - best) <= math.sqrt(2 * found) + proof.weight_error
        if free:
            error = intercept_error(
                alpha, problem.upper, margins, problem.signs, problem.squared(), found
            )
            assert abs(shift) <= error + proof.bias_error
            assert error < 2.0


@pytest.mark.parametrize("intercept", ["regularized", "none", "free"])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_hard_is_the_limit_of_soft(kernel, intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    X = X[abs(X[:, 0]) > 0.2]
    y = X[:, 0] > 0
    hard = SupportVectorMachine(margin="hard", kernel=kernel, **arguments_of(intercept)).fit(X, y)
    soft = SupportVectorMachine(C=1e5, kernel=kernel, **arguments_of(intercept), tol=1e-12).fit(
        X, y
    )
    assert hard.facts_["norm"] == pytest.approx(soft.facts_["norm"], rel=1e-3)
    assert np.abs(hard.decision_function(X)).min() == pytest.approx(1, abs=1e-6)
    assert hard.record_.gap <= 1e-4 * hard.facts_["primal"]
    assert hard.score(X, y) == 1.0


def test_or_and_xor():
    model = SupportVectorMachine(margin="hard", regularize_intercept=False).fit(
        CORNERS, [0, 1, 1, 1]
    )
    np.testing.assert_allclose(model.coef_, [[2, 2]], rtol=1e-5)
    assert model.facts_["margin"] == pytest.approx(1 / math.sqrt(8), rel=1e-5)  # Definition 5.1
    with pytest.raises(
        InfeasibleError, match="margin='hard' is infeasible: the rows cannot be separated"
    ) as refused:
        SupportVectorMachine(margin="hard").fit(CORNERS, [0, 1, 1, 0])
    witness = refused.value.witness
    signs = np.array([-1, 1, 1, -1])[witness["rows"]]
    padded = np.hstack([CORNERS, np.ones((4, 1))])[witness["rows"]]
    np.testing.assert_allclose((witness["weights"] * signs) @ padded, 0, atol=1e-15)
    assert witness["weights"].sum() == pytest.approx(1)
    for kernel in ("polynomial", "gaussian", "laplace"):
        assert (
            SupportVectorMachine(margin="hard", kernel=kernel)
            .fit(CORNERS, [0, 1, 1, 0])
            .score(CORNERS, [0, 1, 1, 0])
            == 1
        )


@pytest.mark.parametrize("intercept", ["regularized", "none", "free"])
@pytest.mark.parametrize(
    ("margin", "kernel"),
    [("soft", Linear()), ("soft", Gaussian(bandwidth=1.0)), ("hard", Gaussian(bandwidth=0.5))],
)
def test_the_compressed_rows_rebuild_it(intercept, margin, kernel):
    X, y = noisy(5, 150, noise=0.0 if margin == "hard" else 0.5)
    options = {"margin": margin, "kernel": kernel, **arguments_of(intercept), "C": 0.5}
    model = SupportVectorMachine(**options).fit(X, y)
    f = model.decision_function(X)
    kept = y * f <= 1 + 1e-4
    size = model.facts_["compressed"]
    # those that tolerance and rounding leave in doubt count too
    assert kept.sum() <= size <= kept.sum() + 5
    assert size < 150
    assert (model.facts_["bias_error"] > 0) == (intercept == "free")
    again = SupportVectorMachine(**options).fit(X[kept], y[kept])
    np.testing.assert_allclose(again.decision_function(X), f, atol=1e-3)
    assert model.certificate_["risk"].value == bounds.campi_garatti(size, 150, 0.05)
    # mutant: only rows on the margin (0 < α < C) do not rebuild it
    if margin == "soft" and intercept != "free":
        on = np.isin(np.arange(150), model.support_[np.abs(model.dual_coef_[0]) < 0.5 - 1e-9]) & (
            y * f >= 1 - 1e-4
        )
        if on.any() and len(set(y[on])) == 2:
            few = SupportVectorMachine(**options).fit(X[on], y[on])
            assert not np.allclose(few.decision_function(X), f, atol=1e-2)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "options",
    [{}, {"regularize_intercept": False}, {"kernel": "gaussian", "bandwidth": 1.0}],
    ids=str,
)
def test_compression_and_margin_bounds_cover(classes, options):
    """The certified risk is exceeded in at most δ of the samples (δ = ½, so that some might)."""
    rng = np.random.default_rng(0)
    corners = 2.5 * np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])

    def draw(n):
        y = rng.integers(classes, size=n)
        return corners[y] + np.clip(rng.normal(size=(n, 2)), -4, 4), y

    fresh, labels = draw(4000)
    wrong: dict[str, list[bool]] = {}
    for _ in range(60):
        X, y = draw(60)
        model = SupportVectorMachine(C=0.3, delta=0.5, x_bound=12.0, **options).fit(X, y)
        risk = np.mean(model.predict(fresh) != labels)
        assert any(claim.theorem == "campi_garatti" for claim in model.certificate_.claims)
        for claim in model.certificate_.claims:
            if claim.quantity == "risk":
                wrong.setdefault(claim.theorem, []).append(risk > claim.value)
    assert all(np.mean(found) <= 0.5 for found in wrong.values())
    expected = {"campi_garatti"}
    if classes == 2 and "regularize_intercept" not in options:
        expected |= {"rademacher_margin", "stability_near_minimizer"}
    assert set(wrong) == expected


@pytest.mark.parametrize(
    ("kernel", "intercept"),
    [("linear", "regularized"), ("linear", "none"), ("gaussian", "regularized")],
)
def test_the_certified_stability_is_never_below_the_measured_change(kernel, intercept):
    grid = np.random.default_rng(0).uniform(-1, 1, size=(200, 2))
    grid /= np.maximum(1, np.linalg.norm(grid, axis=1))[:, None]
    largest = 0.0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(12, 2))
        X /= np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
        y = np.where(rng.random(12) < 0.5, 1, -1)
        y[:4] = [1, -1, 1, -1]
        C = 10.0 ** rng.uniform(-3, 0)
        options = {"C": C, "kernel": kernel, **arguments_of(intercept), "x_bound": 1.0}
        model = SupportVectorMachine(**options).fit(X, y)
        X2, y2 = X.copy(), y.copy()
        X2[0], y2[0] = -X[0] if seed % 2 else grid[seed], -y[0] if seed % 3 else y[0]
        other = SupportVectorMachine(**options).fit(X2, y2)
        beta = model.certificate_["uniform_stability"].value
        squared = 1 + (intercept == "regularized") if kernel == "linear" else 2
        # 2ρ√(2·tol/λ), λ = 1/(2Cn)
        tolerance = 2 * math.sqrt(squared) * math.sqrt(2e-8 * 2 * C * len(y))
        assert beta == pytest.approx(2 * C * squared + tolerance)  # so that β does not fall with n
        f, g = model.decision_function(grid), other.decision_function(grid)
        for sign in (-1, 1):
            change = np.abs(np.maximum(0, 1 - sign * f) - np.maximum(0, 1 - sign * g)).max()
            assert change <= beta
            largest = max(largest, change / beta)
    assert largest > 0.3  # the bound is of the right size


def test_mutant_a_free_intercept_is_not_stable():
    X, y = np.zeros((11, 1)), np.array([1] * 6 + [-1] * 5)
    other = y.copy()
    other[0] = -1
    options = {"C": 0.01, "regularize_intercept": False, "x_bound": 1.0}
    model, changed = (
        SupportVectorMachine(**options).fit(X, y),
        SupportVectorMachine(**options).fit(X, other),
    )
    change = abs(model.decision_function(X[:1])[0] - changed.decision_function(X[:1])[0])
    assert change > 50 * bounds.beta_hinge(1.0, 1 / (2 * 0.01 * 11), 11)
    with pytest.raises(KeyError, match="regularize_intercept=True certifies"):
        model.certificate_["uniform_stability"]


def test_claims_against_numbers_by_hand():
    X, y = noisy(0, 200, 2)
    X = np.clip(X, -1, 1)
    model = SupportVectorMachine(C=0.01, x_bound=2.0, delta=0.1).fit(X, y)
    claims = {claim.theorem: claim for claim in model.certificate_.claims}
    f = model.decision_function(X)
    norm = math.hypot(*model.coef_[0], model.intercept_[0])
    ratio, error = norm * math.sqrt(5) / 0.99, np.mean(y * f <= 0.99)
    j = max(0, math.ceil(math.log2(ratio)))
    by_hand = error + 2 * 2**j / math.sqrt(200) + math.sqrt(math.log((j + 1) * (j + 2) / 0.1) / 400)
    assert claims["rademacher_margin"].value == pytest.approx(by_hand, rel=1e-9)
    # of the minimizer; and how far from it, √(2·tol/λ)
    beta, stopped = 2 * 0.01 * 5, math.sqrt(2e-8 * 2 * 0.01 * 200)
    ramp = np.clip(1 - y * f, 0, 1).mean()
    by_hand = (
        ramp
        + 2 * math.sqrt(5) * stopped
        + beta
        + (2 * 200 * beta + 1) * math.sqrt(math.log(10) / 400)
    )
    risk = claims["stability_near_minimizer"]
    assert risk.value == pytest.approx(by_hand, rel=1e-9)
    assert risk.inputs["distance"] == pytest.approx(stopped)
    assert "‖x‖ ≤ x_bound for every row, as stated" in risk.assumptions
    assert (
        f"the weights are within {stopped:.1e} of the minimizer's; the risk includes it"
        in risk.assumptions
    )
    assert risk.inputs["regularization"] == pytest.approx(1 / (2 * 0.01 * 200))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"x_bound": 9.0},
        {"regularize_intercept": False},
        {"kernel": "laplace"},
        {"margin": "hard", "kernel": "gaussian"},
    ],
    ids=str,
)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_certificate_verifies_after_a_round_trip(options, classes):
    X, _ = noisy(3, 60)
    y = np.digitize(X[:, 0], [-0.4, 0.4][: classes - 1])
    model = SupportVectorMachine(**options).fit(X, y)
    again = Certificate.from_json(model.certificate_.to_json())
    assert again.verify(model)
    assert again.verify(model, X, y), again.verify(model, X, y)
    assert not again.verify(model, X[::-1], y)
    keys = {claim.theorem for claim in again.claims} | {item.theorem for item in again.lacking}
    assert keys >= {
        "campi_garatti",
        "beta_near_minimizer",
        "stability_near_minimizer",
        "rademacher_margin",
    }


def test_absent_claims_say_why():
    X, y = noisy(0)
    weights = np.linspace(1, 2, len(y))
    weighted = SupportVectorMachine(kernel="gaussian").fit(X, y, sample_weight=weights)
    assert [claim.theorem for claim in weighted.certificate_.claims] == ["duality_gap"]
    assert {item.reason for item in weighted.certificate_.lacking} == {
        "rows are weighted unequally (sample_weight)"
    }
    assert weighted.certificate_.verify(weighted, X, y, sample_weight=weights)
    assert not weighted.certificate_.verify(weighted, X, y)
    doubled = SupportVectorMachine(kernel="gaussian").fit(X, y, sample_weight=np.full(len(y), 2.0))
    assert doubled.facts_["C"] == 2.0
    assert doubled.certificate_["uniform_stability"].value == pytest.approx(2 * 2.0 * 2, rel=1e-2)
    assert (
        "the learner returns the exact minimizer"
        not in doubled.certificate_["uniform_stability"].assumptions
    )
    unbounded = SupportVectorMachine().fit(X, y).certificate_
    with pytest.raises(KeyError, match="state x_bound="):
        unbounded["uniform_stability"]
    assert any("k(x, x) + 1 <" in line for line in unbounded["risk"].assumptions)
    # k(x, x) = 1
    assert not any(
        "‖x‖" in line for claim in doubled.certificate_.claims for line in claim.assumptions
    )
    assert [item.reason for item in unbounded.lacking if item.theorem == "rademacher_margin"] == [
        ABSENT_REASON
    ]


def test_several_classes_and_columns_with_names():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    frame = pl.DataFrame(X, schema=["a", "b", "c", "d"])
    for options in (
        {},
        {"kernel": "gaussian", "bandwidth": 1.581},
        {"regularize_intercept": False},
    ):
        model = SupportVectorMachine(**options).fit(frame, names)
        assert model.score(frame, names) > 0.95
        assert model.dual_coef_.shape[0] == 3
        assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    peer = SVC(kernel="linear").fit(X, names)
    assert np.mean(model.predict(frame) == peer.predict(X)) > 0.98


def test_sparse_rows_with_wide_indices_and_constant_columns():
    X, y = noisy(0, 60, 4)
    X[abs(X) < 0.5] = 0.0
    X[:, 3] = 7.0
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for kernel in KERNELS:
        dense = SupportVectorMachine(kernel=kernel, tol=1e-11).fit(X, y)
        thin = SupportVectorMachine(kernel=kernel, tol=1e-11).fit(wide, y)
        np.testing.assert_allclose(
            dense.decision_function(X), thin.decision_function(wide), atol=1e-4
        )


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"margin": "firm"}, [0, 1, 1, 1], "margin must be one of 'soft', 'hard'"),
        ({"regularize_intercept": None}, [0, 1, 1, 1], "regularize_intercept must be True or"),
        ({"C": 0.0}, [0, 1, 1, 1], "C must be positive"),
        ({"C": -1.0}, [0, 1, 1, 1], "C must be positive"),
        ({"tol": 0.0}, [0, 1, 1, 1], "tol must be positive"),
        ({"max_iter": 0}, [0, 1, 1, 1], "max_iter must be a whole number"),
        ({"x_bound": 1.0}, [0, 1, 1, 1], "x_bound=1 does not hold: a row has norm 1.41421"),
        ({"kernel": "rbf"}, [0, 1, 1, 1], "kernel must be one of"),
        ({}, [1, 1, 1, 1], "only one class"),
        ({}, [0.5, 0.1, 0.2, 0.3], "Unknown label type"),
    ],
)
def test_bad_input_is_refused_in_words(options, y, message):
    with pytest.raises(ValueError, match=message):
        SupportVectorMachine(**options).fit(CORNERS, y)


@pytest.mark.parametrize(("entry", "message"), [(np.nan, "NaN"), (np.inf, "infinity")])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_rows_that_are_no_numbers_are_refused(make, entry, message):
    with pytest.raises(ValueError, match=message):
        SupportVectorMachine().fit(make(np.where(CORNERS == 1, entry, 0.0)), [0, 1, 1, 1])


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("intercept", ["regularized", "none", "free"])
def test_odd_but_good_input_works(kernel, intercept):
    X, y = noisy(2, 40, 3)
    X[:5], X[:, 2] = 0.0, 0.0  # rows without an entry, a column of one value
    options = {"kernel": kernel, **arguments_of(intercept), "tol": 1e-11, "random_state": 0}
    plain = SupportVectorMachine(**options).fit(X, y)
    for rows, labels in (
        (sparse.csr_array(X), y),
        (X, (y + 1) / 2),
        (X, np.where(y > 0, "yes", "no")),
    ):
        model = SupportVectorMachine(**options).fit(rows, labels)
        np.testing.assert_allclose(
            model.decision_function(rows), plain.decision_function(X), atol=1e-4
        )
        assert model.certificate_["suboptimality"].value < 1e-4
    # nothing but constants
    same = SupportVectorMachine(**options).fit(np.ones((4, 2)), [0, 1, 1, 1])
    assert same.certificate_["suboptimality"].value < 1e-6


def test_a_run_that_is_too_short_says_so():
    X, y = noisy(0, 200, 3, noise=2.0)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        model = SupportVectorMachine(kernel="polynomial", C=1e4, max_iter=1, x_bound=10.0).fit(X, y)
    with pytest.raises(KeyError, match="did not reach tol"):
        model.certificate_["uniform_stability"]
    absent = {item.theorem: item.reason for item in model.certificate_.lacking}
    assert "not known well enough" in absent["campi_garatti"]
