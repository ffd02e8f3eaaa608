"""Logistic regression: scikit-learn's checks, the optimum against its peers, bad input, and its
claims by simulation.
"""

from __future__ import annotations

import gzip
import io
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, sparse
from scipy.special import expit, log_softmax
from sklearn.base import clone
from sklearn.datasets import load_iris, load_svmlight_file, make_classification
from sklearn.linear_model import LogisticRegression as Peer
from tests.making import make

from surelearn import bounds
from surelearn.certificate import Certificate
from surelearn.linear import SGD
from surelearn.linear.intercept import arguments_of
from surelearn.linear.logistic.learner import LogisticRegression
from surelearn.linear.logistic.objective import measure
from surelearn.linear.logistic.rows import make_rows

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def bag(n=400, d=60, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = sparse.random(
        n, d, density=0.15, format="csr", random_state=seed, data_rvs=rng.standard_normal
    )
    y = (X @ rng.normal(size=(d, classes)) * 2 + rng.gumbel(size=(n, classes))).argmax(axis=1)
    return X, y


def objective(model, X, y, weights=None, l1=0.0):
    """F written out, from the fitted attributes."""
    scores = X @ model.coef_.T + model.intercept_
    codes = np.searchsorted(model.classes_, y)
    if scores.shape[1] == 1:
        losses = np.logaddexp(0, -np.where(codes == 1, 1, -1) * scores[:, 0])
    else:
        losses = -log_softmax(scores, axis=1)[np.arange(len(codes)), codes]
    penalty = (model.coef_**2).sum()
    absolute = abs(model.coef_).sum()
    if model.fit_intercept and model.regularize_intercept:
        penalty, absolute = (
            penalty + (model.intercept_**2).sum(),
            absolute + abs(model.intercept_).sum(),
        )
    return np.average(losses, weights=weights) + model.regularization * penalty + l1 * absolute


# The optimum.


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("intercept", ["regularized", "free", "none"])
@pytest.mark.parametrize("how", ["newton", "lbfgs"])
def test_a_finish_reaches_the_optimum(classes, intercept, how):
    X, y = bag(classes=classes)
    model = LogisticRegression(
        regularization=0.003, **arguments_of(intercept), finish=how, random_state=0
    ).fit(X, y)
    padded = sparse.hstack([X, np.ones((400, 1))]).tocsr() if intercept == "regularized" else X
    C = 1 / (2 * 400 * 0.003)
    peer = Peer(
        C=C, fit_intercept=intercept == "free", solver="newton-cg", tol=1e-12, max_iter=1000
    ).fit(padded, y)
    np.testing.assert_allclose(model.coef_, peer.coef_[:, :60], atol=1e-5)
    if intercept == "regularized":
        np.testing.assert_allclose(model.intercept_, peer.coef_[:, 60], atol=1e-5)
    if intercept == "none":
        assert not model.intercept_.any()
    assert model.facts_["objective"] == pytest.approx(objective(model, X, y), rel=1e-12)


def test_liblinear_reaches_the_same_optimum():
    """LIBLINEAR's bias is regularized too: the same objective."""
    X, y = bag()
    model = LogisticRegression(regularization=0.002, random_state=0).fit(X, y)
    peer = Peer(C=1 / (2 * 400 * 0.002), solver="liblinear", tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-5)


@pytest.mark.parametrize(
    "options",
    [{}, {"average": True}, {"engine": "lazy"}, {"dtype": "float32"}, {"schedule": "sqrt"}],
)
def test_many_passes_alone_come_near_the_optimum(options):
    X, y = bag()
    best = LogisticRegression(regularization=0.003, finish="newton").fit(X, y).facts_["objective"]
    model = make(
        LogisticRegression, regularization=0.003, finish=None, epochs=100, random_state=0, **options
    ).fit(X, y)
    assert best - 1e-6 < model.facts_["objective"] < best * 1.01
    assert model.facts_["objective"] <= best + model.certificate_["suboptimality"].value


def test_the_l1_penalty_finds_its_optimum():
    """Against a solver of the smooth form with w = a − b, a, b ≥ 0."""
    X, y = bag(d=12)
    model = LogisticRegression(
        regularization=0.0,
        l1_regularization=0.02,
        fit_intercept=False,
        epochs=3000,
        sgd=SGD(schedule="sqrt", step_decay=0.1),
        random_state=0,
    ).fit(X, y)
    signs = np.where(y == 1, 1, -1)

    def split_form(ab):
        w = ab[:12] - ab[12:]
        margins = signs * (X @ w)
        slope = X.T @ (-signs * expit(-margins)) / 400
        return np.logaddexp(0, -margins).mean() + 0.02 * ab.sum(), np.concatenate(
            [slope, -slope]
        ) + 0.02

    best = optimize.minimize(
        split_form, np.zeros(24), jac=True, bounds=[(0, None)] * 24, method="L-BFGS-B"
    )
    assert model.facts_["objective"] == pytest.approx(objective(model, X, y, l1=0.02), rel=1e-12)
    assert best.fun - 1e-6 <= model.facts_["objective"] <= best.fun * 1.002
    zero = abs(best.x[:12] - best.x[12:]) < 1e-6
    assert zero.any()
    assert abs(model.coef_[0][zero]).max() < 0.05


def test_weights_are_repetitions():
    X, y = bag()
    weights = np.random.default_rng(0).integers(0, 4, size=400)
    model = LogisticRegression(regularization=0.003).fit(X, y, sample_weight=weights)
    again = LogisticRegression(regularization=0.003).fit(
        X[np.repeat(np.arange(400), weights)], np.repeat(y, weights)
    )
    np.testing.assert_allclose(model.coef_, again.coef_, atol=1e-8)
    assert model.facts_["objective"] == pytest.approx(objective(model, X, y, weights), rel=1e-12)
    assert not model.facts_["uniform"]


@pytest.mark.parametrize("engine", ["scaled", "lazy"])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_calls_of_partial_fit_are_one_pass(engine, average, classes):
    """Below 128 rows the order is a permutation; one row a call leaves it no choice."""
    X, y = bag(n=50, classes=classes)
    options = {
        "step": 0.5,
        "step_decay": 0.1,
        "intercept_step": 1,
        "engine": engine,
        "average": average,
        "finish": None,
    }
    streamed = make(LogisticRegression, **options)
    for i in range(50):
        streamed.partial_fit(X[[i]], y[[i]], classes=np.unique(y))
    rows = make_rows(X, y, classes, np.empty(0), "float64")
    from surelearn.linear.logistic.rows import step_sizes
    from surelearn.linear.logistic.sgd import StochasticDescent

    descent = StochasticDescent(
        np.zeros((61, 1 if classes == 2 else 3)), decay=1e-4, engine=engine, summed=np.zeros((1, 1))
    )
    descent.run(rows, np.arange(50), step_sizes("inverse", 0.5, 0.1, 0, 50, 0))
    want = descent.average() if average else descent.weights()
    np.testing.assert_allclose(streamed.coef_, want[:-1].T, atol=1e-12)
    np.testing.assert_allclose(streamed.intercept_, want[-1], atol=1e-12)
    assert streamed.t_ == 50
    assert streamed.facts_["n"] == 50


def test_early_stopping():
    X, y = bag(n=3000, d=200)
    options = {"finish": None, "epochs": 200, "patience": 2, "random_state": 0}
    stopped = make(
        LogisticRegression, early_stopping="validation", validation_fraction=0.2, **options
    ).fit(X, y)
    assert stopped.stopped_ == "validation error stalled"
    assert stopped.epochs_ < 200
    assert stopped.facts_["n"] == 2400
    training = make(LogisticRegression, early_stopping="training", tol=1e-3, **options).fit(X, y)
    assert training.stopped_ == "training error stalled"
    assert LogisticRegression(finish=None, epochs=3).fit(X, y).stopped_ == "passes"


def test_a_file_sorted_by_label_does_no_harm():
    X, y = bag(n=4000, d=100)
    order = np.argsort(y, kind="stable")
    mixed, by_label = (
        LogisticRegression(regularization=0.001, finish=None, epochs=5, random_state=0).fit(
            X[o], y[o]
        )
        for o in (np.arange(4000), order)
    )
    assert by_label.facts_["objective"] < mixed.facts_["objective"] * 1.02


@pytest.mark.skipif(not (DATA / "a9a.gz").exists(), reason="the a9a data are not here")
def test_a9a_against_liblinear():
    (X, y), (new, labels) = (
        load_svmlight_file(io.BytesIO(gzip.decompress((DATA / name).read_bytes())), n_features=123)
        for name in ("a9a.gz", "a9a.t.gz")
    )
    model = LogisticRegression(
        regularization=1e-4, finish=None, sgd=SGD(average=True), epochs=10, random_state=0
    ).fit(X, y)
    exact = LogisticRegression(regularization=1e-4, finish="newton").fit(X, y)
    # LIBLINEAR wants 4-byte indices
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    peer = Peer(C=1 / (2 * len(y) * 1e-4), solver="liblinear").fit(X, y)
    new.indices, new.indptr = new.indices.astype(np.int32), new.indptr.astype(np.int32)
    assert exact.score(new, labels) == pytest.approx(peer.score(new, labels), abs=3e-4)
    assert model.score(new, labels) == pytest.approx(peer.score(new, labels), abs=3e-3)
    assert model.facts_["objective"] < exact.facts_["objective"] * 1.003


# Input.


def test_what_kinds_of_input_work():
    X, y = bag(n=60)
    want = LogisticRegression(random_state=0).fit(X, y)
    names = np.array(["ham", "spam"])[y]
    assert set(LogisticRegression(random_state=0).fit(X, names).predict(X)) <= {"ham", "spam"}
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    before = wide.copy()
    for other in (
        X.toarray(),
        wide,
        sparse.csr_array(X),
        sparse.csc_matrix(X),
        pd.DataFrame(X.toarray()).add_prefix("x"),
    ):
        model = LogisticRegression(random_state=0).fit(other, y.astype(float))
        np.testing.assert_allclose(model.coef_, want.coef_, atol=1e-9)
    assert list(model.feature_names_in_[:2]) == ["x0", "x1"]
    assert (wide != before).nnz == 0
    assert wide.indices.dtype == np.int64
    empty = sparse.vstack([X, sparse.csr_matrix((5, 60))]).tocsr()  # rows without entries
    LogisticRegression().fit(empty, np.append(y, [0, 1, 0, 1, 0])).predict(empty)
    # constant features
    LogisticRegression(regularization=0.1).fit(np.ones((6, 2)), [0, 1, 0, 1, 0, 1])


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"regularization": -1e-9}, "regularization"),
        ({"regularization": math.nan}, "regularization"),
        ({"l1_regularization": -1.0}, "l1_regularization"),
        ({"fit_intercept": "yes"}, "fit_intercept"),
        ({"schedule": "cosine"}, "schedule"),
        ({"step": 0.0}, "step"),
        ({"step": "fast"}, "step"),
        ({"intercept_step": 2.0}, "intercept_step"),
        ({"engine": "dense"}, "engine"),
        ({"finish": "sag"}, "finish"),
        ({"epochs": 0}, "epochs"),
        ({"dtype": "float16"}, "dtype"),
        ({"x_bound": -1.0}, "x_bound"),
        ({"x_bound": 0.01}, "x_bound"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"l1_regularization": 0.1, "finish": "newton"}, "l1_regularization"),
        ({"l1_regularization": 0.1, "engine": "scaled"}, "l1_regularization"),
        ({"regularization": 1.0, "step": 0.6}, "step"),
    ],
)
def test_refused_parameters(options, word):
    X, y = bag(n=30)
    with pytest.raises(ValueError, match=word):
        make(LogisticRegression, **options).fit(X, y)


def test_refused_rows():
    X, y = bag(n=30)
    with pytest.raises(ValueError, match="one class"):
        LogisticRegression().fit(X, np.zeros(30))
    with pytest.raises(ValueError, match="continuous"):
        LogisticRegression().fit(X, y + 0.5 * (np.arange(30) % 2))
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            LogisticRegression().fit(np.where(np.eye(30, 60) > 0, bad, X.toarray()), y)
    with pytest.raises(ValueError, match="classes"):
        LogisticRegression().partial_fit(X[:1], y[:1])
    model = LogisticRegression().partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="did not name"):
        model.partial_fit(X, y + 1)
    with pytest.raises(ValueError, match="same in every call"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="Negative"):
        LogisticRegression().fit(X, y, sample_weight=-np.ones(30))


# Claims.


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("intercept", ["regularized", "none"])
def test_the_gradient_is_the_derivative(classes, intercept):
    X, y = bag(n=50, d=4, classes=classes)
    weights = np.random.default_rng(1).exponential(size=50)
    rows = make_rows(X, y, classes, weights / weights.mean(), "float64")
    bias = {"none": 0, "regularized": 1}[intercept]
    W = np.random.default_rng(0).normal(size=(5, 1 if classes == 2 else 3))
    W[-1] *= bias
    slopes = np.zeros_like(W)
    for index in np.ndindex(W[: 4 + bias].shape):
        step = np.zeros_like(W)
        step[index] = 1e-6
        above, below = (measure(rows, W + sign * step, 0.1, bias).objective for sign in (1, -1))
        slopes[index] = (above - below) / 2e-6
    assert measure(rows, W, 0.1, bias).gradient_norm == pytest.approx(
        np.linalg.norm(slopes), rel=1e-7
    )
    assert measure(rows, W, 0.1, bias).objective == pytest.approx(
        0.1 * (W**2).sum() + mean_loss(X, y, W, weights), rel=1e-12
    )


def mean_loss(X, y, W, weights):
    scores = X @ W[:-1] + W[-1]
    scores = np.column_stack([np.zeros(len(y)), scores]) if W.shape[1] == 1 else scores
    return np.average(-log_softmax(scores, axis=1)[np.arange(len(y)), y], weights=weights)


def test_the_certificate_by_hand():
    X, y = bag()
    X = sparse.csr_matrix(X / max(1.0, np.sqrt(X.multiply(X).sum(axis=1).max())))
    model = LogisticRegression(
        regularization=0.05, x_bound=1.0, finish=None, epochs=3, random_state=0
    ).fit(X, y)
    certificate = model.certificate_
    g, n, rho = model.facts_["gradient_norm"], 400, math.sqrt(2.0)
    assert certificate["suboptimality"].value == pytest.approx(g**2 / 0.2, rel=1e-12)
    assert certificate["distance_to_the_minimizer"].value == pytest.approx(g / 0.1, rel=1e-12)
    beta, M = rho**2 / (0.05 * n), math.log(1 + math.exp(rho * math.sqrt(math.log(2) / 0.05)))
    assert certificate["uniform_stability"].value == pytest.approx(
        beta + 2 * rho * g / 0.1, rel=1e-12
    )
    want = (
        model.facts_["log_loss"]
        + 2 * rho * g / 0.1
        + beta
        + (2 * n * beta + M) * math.sqrt(math.log(20) / (2 * n))
    )
    assert certificate["risk"].value == pytest.approx(want, rel=1e-12)
    again = Certificate.from_json(certificate.to_json())
    assert again.verify()
    assert again == certificate
    assert certificate.verify(model)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("seed", range(20))
def test_gap_and_distance_are_never_exceeded(classes, seed):
    rng = np.random.default_rng(seed)
    X, y = bag(n=int(rng.integers(20, 200)), d=int(rng.integers(1, 30)), seed=seed, classes=classes)
    lam = float(10 ** rng.uniform(-4, 0))
    exact = LogisticRegression(regularization=lam, finish="newton").fit(X, y)
    rough = LogisticRegression(
        regularization=lam, finish=None, epochs=int(rng.integers(1, 9)), random_state=seed
    ).fit(X, y)
    certificate = rough.certificate_
    assert (
        rough.facts_["objective"] - exact.facts_["objective"]
        <= certificate["suboptimality"].value + 1e-12
    )
    away = np.hypot(
        np.linalg.norm(rough.coef_ - exact.coef_),
        np.linalg.norm(rough.intercept_ - exact.intercept_),
    )
    assert away <= certificate["distance_to_the_minimizer"].value * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("seed", range(12))
def test_stability_is_never_exceeded(classes, seed):
    """One row replaced by the worst we can think of, the loss watched at the worst points."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 30)), 3
    lam = float(10 ** rng.uniform(-2.5, 0))
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.append(np.arange(classes), rng.integers(classes, size=n - classes))
    model = LogisticRegression(regularization=lam, x_bound=1.0, finish="newton").fit(X, y)
    beta = model.certificate_["uniform_stability"].value
    points = np.vstack([X, -X, rng.normal(size=(50, d))])
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    for i in range(classes, n):
        other, labels = X.copy(), y.copy()
        other[i], labels[i] = -X[i], (y[i] + 1) % classes
        if rng.random() < 0.5:
            other[i] = X[i]
        moved = clone(model).fit(other, labels)
        change = abs(
            np.log(model.predict_proba(points)) - np.log(moved.predict_proba(points))
        ).max()
        assert change <= beta


def test_stability_is_nearly_attained():
    """The same row nine times, one label changed: β is within a factor of five of what is seen."""
    X, point = np.ones((9, 1)), np.ones((1, 1))
    template = LogisticRegression(regularization=5.0, fit_intercept=False, x_bound=1.0)
    one, other = (clone(template).fit(X, np.arange(9) >= k) for k in (4, 5))
    change = abs(one.predict_log_proba(point) - other.predict_log_proba(point)).max()
    beta = one.certificate_["uniform_stability"].value
    assert beta / 5 < change <= beta


def population(n, generator):
    X = generator.choice([-1.0, 1.0], size=(n, 3)) / math.sqrt(3)
    return X, (generator.random(n) < expit(X @ np.array([1.0, -1.0, 0.5]))).astype(int)


CORNERS = np.array(list(np.ndindex(2, 2, 2))) * 2.0 / math.sqrt(3) - 1 / math.sqrt(3)


def true_risk(w, b=0.0):
    """The expected logarithmic loss over the eight equally likely rows of `population`."""
    p, z = expit(CORNERS @ np.array([1.0, -1.0, 0.5])), CORNERS @ w + b
    return float(np.mean(p * np.logaddexp(0, -z) + (1 - p) * np.logaddexp(0, z)))


@pytest.mark.parametrize("finish", ["newton", None])
def test_the_risk_bound_covers(finish):
    generator = np.random.default_rng(0)
    broken, margins = 0, []
    for seed in range(300):
        X, y = population(60, generator)
        model = LogisticRegression(
            regularization=0.5, x_bound=1.0, finish=finish, delta=0.3, random_state=seed
        ).fit(X, y)
        bound = model.certificate_["risk"].value
        broken += true_risk(model.coef_[0], model.intercept_[0]) > bound
        margins.append(bound - model.facts_["log_loss"])
    assert broken / 300 <= 0.3
    assert max(margins) < 2


@pytest.mark.parametrize("lam", [0.0, 0.01])
@pytest.mark.parametrize("streamed", [False, True])
def test_the_single_pass_guarantee_in_the_mean(lam, streamed):
    generator = np.random.default_rng(1)
    B, rho, T = 1.5, math.sqrt(2), 400
    eta = B / (rho * math.sqrt(T))
    options = {
        "schedule": "constant",
        "step": eta,
        "intercept_step": 1,
        "average": True,
        "epochs": 1,
        "finish": None,
    }
    excess = []
    best = optimize.minimize(lambda w: true_risk(w) + lam * w @ w, np.zeros(3)).fun
    for seed in range(200):
        X, y = population(T, generator)
        model = make(
            LogisticRegression,
            regularization=lam,
            x_bound=1.0,
            norm_bound=B,
            random_state=seed,
            **options,
        )
        if streamed:
            for part in np.split(np.arange(T), 4):
                model.partial_fit(X[part], y[part], classes=[0, 1])
        else:
            model.fit(X, y)
        w, b = model.coef_[0], model.intercept_[0]
        excess.append(true_risk(w, b) + lam * (w @ w + b * b) - best)
    claim = model.certificate_["excess_risk" if lam == 0 else "excess_regularized_risk"]
    assert claim.confidence == "in expectation"
    growth = 1 + min(1, 2 * lam * eta * T)
    assert claim.value == pytest.approx(
        B**2 / (2 * eta * T) + eta * (rho * growth) ** 2 / 2, rel=1e-12
    )
    assert ("a single pass: a fresh row each step" in claim.assumptions) == streamed
    assert 0 < np.mean(excess) <= claim.value
    assert model.certificate_.verify()


SINGLE = {
    "schedule": "constant",
    "step": 0.1,
    "average": True,
    "epochs": 1,
    "finish": None,
    "norm_bound": 1.0,
}
SINGLE["intercept_step"] = 1


@pytest.mark.parametrize(
    ("options", "quantity", "word"),
    [
        ({"regularize_intercept": False}, "risk", "free"),
        ({"regularize_intercept": False}, "suboptimality", "free"),
        ({"regularization": 0.0}, "uniform_stability", "without regularization"),
        ({"l1_regularization": 0.01}, "risk", "L1"),
        ({"measure": False}, "suboptimality", "measure"),
        ({"x_bound": None}, "risk", "x_bound"),
        ({**SINGLE, "average": False}, "excess_regularized_risk", "average"),
        ({**SINGLE, "epochs": 2}, "excess_regularized_risk", "2 passes"),
        ({**SINGLE, "finish": "newton"}, "excess_regularized_risk", "finish"),
        ({**SINGLE, "schedule": "sqrt"}, "excess_regularized_risk", "constant"),
        ({**SINGLE, "step": "auto"}, "excess_regularized_risk", "step"),
        ({**SINGLE, "intercept_step": "auto"}, "excess_regularized_risk", "intercept_step"),
        ({**SINGLE, "norm_bound": None}, "excess_regularized_risk", "norm_bound"),
        ({**SINGLE, "x_bound": None}, "excess_regularized_risk", "x_bound"),
    ],
)
def test_claims_that_may_not_be_made(options, quantity, word):
    X, y = bag(n=40)
    model = make(LogisticRegression, **{"x_bound": 100.0, **options}).fit(X, y)
    with pytest.raises(KeyError, match=word):
        model.certificate_[quantity]
    assert Certificate.from_json(model.certificate_.to_json()).verify()


def test_unequal_weights_and_streams_take_claims_away():
    X, y = bag(n=40)
    weighted = LogisticRegression(x_bound=100.0).fit(X, y, sample_weight=np.arange(1, 41))
    assert "suboptimality" in {claim.quantity for claim in weighted.certificate_.claims}
    with pytest.raises(KeyError, match="weighted unequally"):
        weighted.certificate_["risk"]
    equal = LogisticRegression(x_bound=100.0).fit(X, y, sample_weight=np.full(40, 3.0))
    assert equal.certificate_["risk"].value > 0
    streamed = LogisticRegression(x_bound=100.0).partial_fit(X, y)
    with pytest.raises(KeyError, match="partial_fit"):
        streamed.certificate_["risk"]


@pytest.mark.parametrize(
    ("options", "word"), [({"epochs": 2}, "2 passes"), ({"finish": "newton"}, "finish")]
)
def test_a_stream_remembers_what_fit_did(options, word):
    X, y = bag(n=40)
    model = (
        make(LogisticRegression, x_bound=100.0, **{**SINGLE, **options}).fit(X, y).partial_fit(X, y)
    )
    assert model.facts_["n"] == 80
    with pytest.raises(KeyError, match=word):
        model.certificate_["excess_regularized_risk"]


def test_a_free_bias_breaks_the_bound_that_is_not_claimed():
    """The mutant: with an unregularized intercept the loss moves by more than β of the
    regularized weights.
    """
    X, point = np.zeros((5, 1)), np.zeros((1, 1))
    template = LogisticRegression(regularization=10.0, regularize_intercept=False, finish="newton")
    one, other = (clone(template).fit(X, np.arange(5) >= k) for k in (1, 2))
    change = abs(one.predict_log_proba(point) - other.predict_log_proba(point)).max()
    assert change > bounds.beta_logistic(1.0, 10.0, 5)


def test_a_tuned_regularization_is_seen_in_the_assumptions():
    X, y = make_classification(60, 4, random_state=0)
    certificate = LogisticRegression(x_bound=100.0).fit(X, y).certificate_
    assert any("fixed before seeing the rows" in line for line in certificate["risk"].assumptions)


def test_probabilities():
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(regularization=1e-3).fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(p), model.predict_log_proba(X))
    assert np.array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert model.score(X, y) > 0.95
    assert model.facts_["training_error"] == pytest.approx(1 - model.score(X, y))


def tuned_on(k, n):
    """λ from {0.001, 30} with the smaller leave-one-out loss on k ones and n − k zeros, all
    with x = 1.
    """

    def left_out(lam):
        without = {
            label: fitted(k - label, n - 1, lam).predict_log_proba([[1.0]])[0, label]
            for label in (0, 1)
        }
        return -(k * without[1] + (n - k) * without[0])

    return min((0.001, 30.0), key=left_out)


def fitted(k, n, lam):
    return LogisticRegression(regularization=lam, fit_intercept=False, x_bound=1.0).fit(
        np.ones((n, 1)), np.arange(n) < k
    )


def chance_of_a_false_claim(choose, n=25, p=0.7):
    """Of drawing rows for which another label of one of them moves the loss by more than the β
    that is claimed.
    """
    inner = range(3, n - 2)
    models = {k: fitted(k, n, choose(k, n)) for k in inner}
    beta = {k: model.certificate_["uniform_stability"].value for k, model in models.items()}
    logs = {k: model.predict_log_proba([[1.0]])[0] for k, model in models.items()}
    false = {
        k
        for k in inner
        for other in (k - 1, k + 1)
        if other in logs and abs(logs[k] - logs[other]).max() > beta[k]
    }
    return sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in false)


def test_a_tuned_regularization_breaks_the_stability_that_is_claimed():
    """The mutant: the choice flips with one label, from strong to weak, and the claim at the λ
    chosen is false; exact.
    """
    assert chance_of_a_false_claim(lambda k, n: 30.0) == 0  # noqa: ARG005 - fixed before
    assert chance_of_a_false_claim(lambda k, n: 0.001) == 0  # noqa: ARG005
    assert chance_of_a_false_claim(tuned_on) > 0.05
    named = fitted(12, 25, 30.0).certificate_["uniform_stability"].assumptions
    assert any("fixed before seeing the rows" in line for line in named)


@pytest.mark.parametrize("how", ["newton", "lbfgs"])
def test_a_finish_alone(how):
    X, y = make_classification(300, 10, flip_y=0.1, random_state=0)
    alone = LogisticRegression(
        regularization=1e-3, epochs=0, finish=how, sgd=SGD(average=True)
    ).fit(X, y)
    both = LogisticRegression(regularization=1e-3, finish="newton", random_state=0).fit(X, y)
    assert np.allclose(alone.coef_, both.coef_, atol=1e-5)
    assert (alone.epochs_, alone.t_, alone.facts_["rounds"]) == (0, 0, 0)
    with pytest.raises(ValueError, match="epochs must be at least 1, or 0 with finish="):
        LogisticRegression(epochs=0).fit(X, y)


@pytest.mark.parametrize(
    "how", ["weighted", "sparse", "several", "streamed", "held out", "held out by chance"]
)
def test_a_certificate_is_measured_again_on_weighted_sparse_several_and_streamed_rows(how):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=90), [0.0, 0.5] if how == "several" else [0.0])
    weights = rng.integers(0, 3, 90).astype(float) if how == "weighted" else None
    seed = None if how == "held out by chance" else 0
    model = LogisticRegression(
        random_state=seed, sgd=SGD(early_stopping="validation" if "held" in how else None)
    )
    if how == "streamed":
        model.partial_fit(X[:50], y[:50]).partial_fit(X[50:], y[50:])
    else:
        X = sparse.csr_matrix(X) if how == "sparse" else X
        model.fit(X, y, sample_weight=weights)
    certificate = Certificate.from_json(model.certificate_.to_json())
    found = certificate.verify(model, X, y, sample_weight=weights)
    assert found, found
    untold = {line.split(":")[0] for line in found.unchecked}
    assert untold >= {"streamed": {"rounds"}, "held out by chance": {"log_loss"}}.get(how, set())
    assert untold <= {"updates", "rounds", "finish", "step", "intercept_step", "log_loss"} | {
        "training_error",
        "objective",
        "gradient_norm",
    }
    assert bool(untold) == (how in ("streamed", "held out by chance"))
    assert not certificate.verify(
        model, X[1:], y[1:], sample_weight=None if weights is None else weights[1:]
    )
    if how == "weighted":
        assert not certificate.verify(model, X, y)
    if how == "streamed":
        twice = model.partial_fit(X, y)
        twice.facts_ = {**twice.facts_, "n": 90, "updates": 90}  # as if the rows had been seen once
        assert "the model made 180 steps" in str(twice.certificate_.verify(twice, X, y))
