"""Learners made without arguments, on tables as they come: columns of any size, scores beside
scikit-learn's, and claims.
"""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
import sklearn.linear_model as theirs
from scipy import sparse
from sklearn.datasets import load_diabetes, load_wine
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from surelearn import certificate_of
from surelearn.kernel import LinearEigenProRegressor, RandomFeaturesRegressor
from surelearn.linear import (
    HuberRegression,
    LeastSquares,
    NaiveBayes,
    Ridge,
    SquareRootLasso,
    SupportVectorMachine,
    VariationalRegression,
)
from surelearn.linear.robust.losses import KNEE, NORMAL, Problem, huber_dual, huber_scale
from surelearn.optim.spread import column_spreads, divided
from surelearn.subject import subject_of

RELATIVE = [
    HuberRegression(),
    VariationalRegression(),
    SquareRootLasso(),
    LinearEigenProRegressor(random_state=0),
]
TWINS = [
    (Ridge(), theirs.Ridge()),
    (LeastSquares(), theirs.LinearRegression()),
    (HuberRegression(), theirs.HuberRegressor()),
    (VariationalRegression(), theirs.HuberRegressor()),
    (SquareRootLasso(), theirs.Lasso()),
    (LinearEigenProRegressor(random_state=0), theirs.LinearRegression()),
]


def diabetes():
    return load_diabetes(return_X_y=True)


def alcohol():
    """Columns of wine from 0.1 to 1,000 in size, and a target far from 0."""
    table = load_wine().data
    return table[:, 1:], table[:, 0]


def names(pair):
    return type(pair).__name__ if not isinstance(pair, tuple) else type(pair[0]).__name__


def scores(model, X, y):
    """On thirds kept apart, five times."""
    found = []
    for seed in range(5):
        train, test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(max(-1.0, model.fit(train, y_train).score(test, y_test)))
    return np.mean(found)


@pytest.mark.parametrize("pair", TWINS, ids=names)
def test_not_below_the_twin_on_tables_as_they_come(pair):
    ours, other = (
        np.mean([scores(model, *table()) for table in (diabetes, alcohol)]) for model in pair
    )
    assert ours >= other - 0.005


def test_random_features_on_tables_as_they_come():
    for table in (diabetes, alcohol):
        assert scores(RandomFeaturesRegressor(random_state=0), *table()) > 0.4


# --------------------------------------------------------------------------------------------------


def test_spreads_are_standard_deviations_but_for_rare_values():
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=500), rng.random(500) < 0.004, np.full(500, 3.0)]
    X[0, 1] = 1.0
    found = column_spreads(X)
    assert found[0] == pytest.approx(X[:, 0].std())
    assert found[1] == pytest.approx(0.1)
    assert X[:, 1].std() < 0.1
    assert found[2] == 1.0


def test_spreads_of_weighted_and_sparse_rows_are_those_of_copies():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 4)) * (rng.random((30, 4)) < 0.5) * [1.0, 1e3, 1e-3, 1.0]
    counts = rng.integers(0, 3, size=30)
    expected = column_spreads(np.repeat(X, counts, axis=0))
    np.testing.assert_allclose(column_spreads(X, counts.astype(float)), expected)
    np.testing.assert_allclose(column_spreads(sparse.csr_array(X), counts.astype(float)), expected)
    np.testing.assert_allclose(divided(sparse.csr_array(X), expected).toarray(), X / expected)


def test_spreads_do_not_overflow():
    assert np.isfinite(column_spreads(np.array([[1e300], [-1e300], [5e299]]))).all()


@pytest.mark.parametrize("model", RELATIVE, ids=names)
def test_units_of_columns_and_target_do_not_matter(model):
    X, y = alcohol()
    plain = model.fit(X, y).predict(X)
    units, factor = 10.0 ** np.arange(-6.0, X.shape[1] - 6.0), 1e5
    again = model.fit(X * units, y * factor).predict(X * units)
    np.testing.assert_allclose(again / factor, plain, rtol=1e-5)


@pytest.mark.parametrize("model", [*RELATIVE, Ridge()], ids=names)
def test_weights_count_rows_at_defaults(model):
    if isinstance(model, LinearEigenProRegressor):
        pytest.skip("it takes no weights")
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3)) * [1.0, 100.0, 0.01]
    y = X @ [1.0, 0.02, 30.0] + rng.normal(size=60)
    counts = rng.integers(0, 4, size=60)
    weighted = model.fit(X, y, sample_weight=counts).predict(X)
    copied = model.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts)).predict(X)
    np.testing.assert_allclose(weighted, copied, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "model", [*RELATIVE, RandomFeaturesRegressor(n_components=40, random_state=0)], ids=names
)
def test_what_was_taken_from_the_rows_is_recorded_and_measured_again(model):
    X, y = alcohol()
    model.fit(X, y)
    assert model.record_.relative
    verification = model.certificate_.verify(model, X, y)
    assert verification, verification.differences
    moved = X.copy()
    moved[0, 3] *= 5  # one value, which moves a spread
    assert not model.certificate_.verify(model, moved, y)


@pytest.mark.parametrize(
    "model", [HuberRegression(), LinearEigenProRegressor(random_state=0)], ids=names
)
def test_the_subject_is_a_model_of_divided_columns(model):
    X, y = alcohol()
    subject = subject_of(model.fit(X, y))
    assert subject.learned_steps == ("spread",)
    inside = subject.learner.model
    np.testing.assert_allclose(inside.predict(subject.prepared(X)), model.predict(X))
    closed = subject.form
    np.testing.assert_allclose(closed.form.values(closed.prepare(X))[:, 0], model.predict(X))
    assert subject.objective.regularization == model.record_.regularization


# ------------------------------------------------------------------------------------------- claims


def test_stated_bounds_fix_what_is_left_out():
    """Nothing is taken from the rows then, and the claims are those of the numbers stated."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-0.5, 0.5, size=(50, 3))
    y = np.clip(X @ [1.0, -1.0, 0.5], -1, 1)
    left, stated = (
        Ridge(x_bound=1.0, y_bound=1.0),
        Ridge(x_bound=1.0, y_bound=1.0, regularization=0.01, regularize_intercept=True),
    )
    assert left.fit(X, y).record_ == stated.fit(X, y).record_
    assert left.certificate_["risk"]
    bounds = {"x_bound": 1.0, "y_bound": 1.0, "fit_intercept": False}
    huber, told = (
        HuberRegression(**bounds),
        HuberRegression(**bounds, threshold=1.0, regularization=1e-4),
    )
    assert huber.fit(X, y).record_ == told.fit(X, y).record_
    assert huber.certificate_["risk"]


def test_a_scale_taken_from_the_rows_voids_what_it_must():
    """Mutant: a threshold or a scale from the rows, certified."""
    X, y = diabetes()
    for options in ({}, {"threshold": 50.0}, {"regularization": 1e-4}):
        model = HuberRegression(fit_intercept=False, **options).fit(X, y)
        kinds = {claim.quantity for claim in model.certificate_.claims}
        assert kinds == {"suboptimality"}
        (reason,) = {item.reason for item in model.certificate_.lacking}
        assert "state " in reason


def exactly(X, y, lam):
    """The weights of the centered ridge problem in rational numbers: one column."""
    x, t = [Fraction(float(value)) for value in X[:, 0]], [Fraction(float(value)) for value in y]
    n, x_mean, t_mean = len(x), sum(x) / len(x), sum(t) / len(t)
    spread = sum((a - x_mean) ** 2 for a in x) / n + Fraction(lam)
    best = sum((a - x_mean) * (b - t_mean) for a, b in zip(x, t, strict=True)) / n / spread
    return best, spread, (x_mean, t_mean)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e8])
@pytest.mark.parametrize("off", [0.0, 1e-9, 1e-3])
def test_ridge_proves_how_near_the_minimizer_it_is(size, off):
    """F(w) − F* is (σ² + λ)(w − w*)², here without rounding; far columns, and weights that
    somebody moved.
    """
    rng = np.random.default_rng(4)
    X = size * (1e4 + rng.normal(size=(40, 1)))
    y = X[:, 0] / size + rng.normal(size=40)
    peer = theirs.Ridge(alpha=40 * 0.125).fit(X, y)
    best, curvature, _ = exactly(X, y, 0.125)
    peer.coef_ = peer.coef_ * (1 + off)
    certificate = certificate_of(peer, X, y)
    gap = float(curvature * (Fraction(float(peer.coef_[0])) - best) ** 2)
    assert gap <= certificate["suboptimality"].value
    assert (
        abs(float(Fraction(float(peer.coef_[0])) - best))
        <= certificate["distance_to_the_minimizer"].value
    )
    ours = Ridge(regularization=0.125).fit(X, y)
    distance = ours.certificate_["distance_to_the_minimizer"].value
    assert abs(float(Fraction(float(ours.coef_[0])) - best)) <= distance
    if size <= 1:
        assert distance <= 1e-3 * abs(float(best))


def test_ridge_says_so_when_weights_are_off():
    X, y = diabetes()
    peer = theirs.Ridge().fit(X, y)
    near = certificate_of(peer, X, y)["suboptimality"].value
    peer.coef_ = peer.coef_ * 1.01
    assert certificate_of(peer, X, y)["suboptimality"].value > 1e3 * near


@pytest.mark.parametrize("free", [True, False])
def test_hubers_dual_value_is_below_every_objective_and_meets_the_minimum(free):
    rng = np.random.default_rng(5)
    for _ in range(50):
        X, y = rng.normal(size=(30, 3)), rng.standard_t(2, size=30)
        problem = Problem.of(X, y, rng.random(30) + 0.1, 10.0 ** rng.uniform(-4, 0), free)
        v = rng.normal(size=3 + free)
        dual, rounding = huber_dual(problem, v, 0.7, free=free)
        for _ in range(20):
            other = v + rng.normal(size=v.size) * 10.0 ** rng.uniform(-3, 1)
            assert dual <= problem.huber_objective(other, problem.residual(other), 0.7) + rounding
    X, y = diabetes()
    facts = HuberRegression().fit(X, y).facts_
    assert facts["objective"] - facts["dual"] <= 1e-9 * facts["objective"]


def test_huber_stopped_early_claims_no_more_than_it_reached():
    X, y = diabetes()
    best = HuberRegression().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        early = HuberRegression(threshold=best.threshold_, max_iter=2).fit(X, y)
    above = early.facts_["objective"] - best.facts_["objective"]
    assert above > 1e-6
    assert early.certificate_["suboptimality"].value >= above


def test_the_scale_of_residuals():
    rng = np.random.default_rng(6)
    r = 7.0 * rng.normal(size=20_000)
    share = np.full(r.size, 1 / r.size)
    assert huber_scale(r, share) == pytest.approx(7.0, rel=0.02)
    wild = np.r_[r, np.full(1000, 1e9)]
    # whatever a twentieth of the rows says
    assert huber_scale(wild, np.full(wild.size, 1 / wild.size)) < 8.5
    solved = huber_scale(r, share)
    assert share @ np.minimum((r / solved) ** 2, KNEE**2) == pytest.approx(NORMAL, rel=1e-6)
    assert huber_scale(np.r_[np.zeros(9), 1.0], np.full(10, 0.1)) == pytest.approx(np.sqrt(0.1))


def test_least_squares_counts_what_it_leaves_out():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(40, 3)) * [1e8, 1.0, 1.0]
    y = X @ [1e-8, 1.0, 0.0] + 0.1 * rng.normal(size=40)
    model, whole = LeastSquares().fit(X, y), LeastSquares(tol=0.0).fit(X, y)
    assert (model.facts_["left_out"], whole.facts_["left_out"]) == (2, 0)
    reasons = {item.what: item.reason for item in model.certificate_.lacking}
    assert "tol=0 keeps them" in reasons["leave_one_out_error"]
    assert "leave_one_out_error" not in {item.what for item in whole.certificate_.lacking}
    np.testing.assert_allclose(
        whole.predict(X), theirs.LinearRegression(tol=0.0).fit(X, y).predict(X)
    )
    assert not subject_of(model).objective.minimized


# --------------------------------------------------------------------------------------------------


def test_naive_bayes_counts_indicators():
    rng = np.random.default_rng(8)
    y = rng.integers(0, 2, size=400)
    rare = (rng.random((400, 5)) < 0.02).astype(float)
    rare[y == 0, 0] = 0.0  # never seen in a class: a Gaussian of no width
    X = np.c_[rng.normal(size=400) + 2 * y, rare]
    model = NaiveBayes().fit(X, y)
    assert model.kinds_ == ["number"] + ["categorical"] * 5
    assert model.certificate_.verify(model, X, y)
    fresh = X.copy()
    fresh[:, 0] = 0.0
    fresh[:, 1] = 1.0
    assert np.abs(model.decision_function(fresh)).max() < 10
    assert scores(NaiveBayes(), X, y) > scores(GaussianNB(), X, y)


def test_support_vectors_of_columns_that_differ_a_million_times():
    rng = np.random.default_rng(9)
    y = rng.integers(0, 2, size=300)
    X = np.c_[2e5 * (1 + rng.normal(size=300)), rng.normal(size=(300, 3)) + 1.5 * y[:, None]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SupportVectorMachine(random_state=0).fit(X, y)
    assert model.record_.relative_gap < 0.01
    assert model.score(X, y) > 0.88


@pytest.mark.parametrize("model", [Ridge(), HuberRegression()], ids=names)
def test_what_is_stated_after_the_fit_changes_nothing_about_it(model):
    X, y = diabetes()
    model.fit(X, y)
    before, form = subject_of(model).objective, model.certificate_
    model.set_params(x_bound=1e3)
    assert subject_of(model).objective == before
    assert model.certificate_.claims[0].value == form.claims[0].value
    model.set_params(x_bound=None)
