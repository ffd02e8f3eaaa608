"""Certificates from training rows for scikit-learn's own models: the claims that our learners
make of the same fit.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
import sklearn.cluster
import sklearn.ensemble
import sklearn.linear_model
from scipy import sparse
from scipy.optimize import minimize
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import surelearn
from surelearn import Certificate, bounds, certificate_of
from surelearn.cluster import KMeans
from surelearn.linear import LogisticRegression, Ridge, SupportVectorMachine
from surelearn.linear.intercept import arguments_of
from surelearn.plain import content_hash

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
X /= np.linalg.norm(X, axis=1).max()
SCORE = X @ [1.0, 2.0, 3.0, 4.0]
AMOUNTS, LABELS = (
    np.clip(SCORE, -1, 1),
    np.where(SCORE + 0.3 * RNG.normal(size=200) > 0, "yes", "no"),
)
BOUNDS = {"x_bound": 1.0, "y_bound": 1.0}


def by_theorem(certificate):
    return {claim.theorem: claim.value for claim in certificate.claims}


def assert_same_claims(one, other, rel):
    mine, theirs = by_theorem(one), by_theorem(other)
    assert mine.keys() == theirs.keys()
    assert mine
    for key, value in mine.items():
        assert value == pytest.approx(theirs[key], rel=rel), key


def test_ridge_has_the_claims_of_ours():
    theirs = sklearn.linear_model.Ridge(alpha=20.0, fit_intercept=False).fit(X, AMOUNTS)
    ours = Ridge(regularization=0.1, fit_intercept=False, **BOUNDS).fit(X, AMOUNTS)
    assert_same_claims(certificate_of(theirs, X, AMOUNTS, **BOUNDS), ours.certificate_, 1e-9)
    free = certificate_of(sklearn.linear_model.Ridge().fit(X, AMOUNTS), X, AMOUNTS, **BOUNDS)
    assert {claim.quantity for claim in free.claims} == {
        "suboptimality",
        "distance_to_the_minimizer",
        "leave_one_out_error",
    }
    assert "the intercept is free" in free.lacking[0].reason


@pytest.mark.parametrize("several", [False, True])
def test_logistic_regression_is_as_far_from_the_minimizer_as_is_measured(several):
    y = np.digitize(SCORE, [-0.5, 0.5]) if several else LABELS
    options = {"C": 0.1, "fit_intercept": False, "tol": 1e-10}
    theirs = sklearn.linear_model.LogisticRegression(**options).fit(X, y)
    found = certificate_of(theirs, X, y, x_bound=1.0)
    ours = LogisticRegression(
        regularization=1 / (2 * 0.1 * 200), fit_intercept=False, x_bound=1.0, random_state=0
    ).fit(X, y)
    assert found["risk"].value == pytest.approx(ours.certificate_["risk"].value, rel=1e-4)
    apart = np.linalg.norm(theirs.coef_ - ours.coef_)
    assert (
        apart
        <= found["distance_to_the_minimizer"].value
        + ours.certificate_["distance_to_the_minimizer"].value
    )
    rough = sklearn.linear_model.LogisticRegression(**{**options, "max_iter": 1, "tol": 10.0})
    early = certificate_of(rough.fit(X, y), X, y, x_bound=1.0)
    assert (
        np.linalg.norm(rough.coef_ - ours.coef_) <= early["distance_to_the_minimizer"].value + 1e-9
    )
    assert early["risk"].value > found["risk"].value  # what stopping early costs


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("several", [False, True])
def test_support_vector_machines_have_the_claims_of_ours(kernel, several):
    y = np.digitize(SCORE, [-0.5, 0.5]) if several else LABELS
    theirs = SVC(kernel=kernel, gamma=0.5, C=2.0, tol=1e-8).fit(X, y)
    found = certificate_of(theirs, X, y)
    named = {"kernel": "linear"} if kernel == "linear" else {"kernel": "gaussian", "bandwidth": 1.0}
    ours = SupportVectorMachine(C=2.0, regularize_intercept=False, **named).fit(X, y)
    assert {claim.theorem for claim in found.claims} == {
        claim.theorem for claim in ours.certificate_.claims
    }
    assert by_theorem(found)["campi_garatti"] == pytest.approx(
        by_theorem(ours.certificate_)["campi_garatti"], rel=0.1
    )
    assert found["suboptimality"].value < 1e-3
    assert found.verify(theirs, X, y)
    scaled = certificate_of(SVC().fit(X, y), X, y)
    assert "gamma='scale' took the kernel's width from the rows" in scaled.lacking[0].reason


def linear_svc(**options):
    return LinearSVC(**{"C": 0.05, "tol": 1e-10, "max_iter": 100_000, **options})


def test_linear_machines_of_hinge_losses_have_the_claims_of_ours():
    for theirs, intercept in (
        (linear_svc(loss="hinge"), "regularized"),
        (linear_svc(loss="hinge", fit_intercept=False), "none"),
    ):
        found = certificate_of(theirs.fit(X, LABELS), X, LABELS, x_bound=1.0)
        ours = SupportVectorMachine(
            C=0.05, **arguments_of(intercept), x_bound=1.0, tol=1e-12, random_state=0
        ).fit(X, LABELS)
        mine, other = by_theorem(found), by_theorem(ours.certificate_)
        assert mine.keys() == other.keys()
        assert mine.pop("duality_gap") < 1e-8  # of α that LIBLINEAR did not keep
        other.pop("duality_gap")
        assert mine == pytest.approx(other, rel=1e-3)
        assert found.verify(theirs, X, LABELS)
    rough = linear_svc(loss="hinge", tol=0.5, random_state=0).fit(X, LABELS)
    early = certificate_of(rough, X, LABELS, x_bound=1.0)
    assert early["suboptimality"].value > 100 * found["suboptimality"].value


def squared_hinge_objective(C, scale):
    """½(‖w‖² + (b/scale)²) + C·Σ max(0, 1 − y·f(x))² and its gradient, divided by Cn, as
    LIBLINEAR's authors write it.
    """
    signs, padded = np.where(LABELS == "yes", 1.0, -1.0), np.c_[X, np.full(len(X), scale)]

    def objective(w):
        short = np.maximum(1 - signs * (padded @ w), 0)
        value = (w @ w / 2 + C * (short**2).sum()) / (C * len(X))
        return value, (w - 2 * C * padded.T @ (signs * short)) / (C * len(X))

    return objective


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_linear_machines_of_squared_losses_are_as_near_the_minimizer_as_is_claimed(scale):
    objective = squared_hinge_objective(0.05, scale)
    best = minimize(objective, np.zeros(5), jac=True, method="BFGS", options={"gtol": 1e-12})
    for tol in (1e-10, 0.3):
        theirs = linear_svc(tol=tol, intercept_scaling=scale, random_state=0).fit(X, LABELS)
        found = certificate_of(theirs, X, LABELS, x_bound=1.0)
        w = np.append(theirs.coef_, theirs.intercept_ / scale)
        assert np.linalg.norm(w - best.x) <= found["distance_to_the_minimizer"].value + 1e-9
        assert objective(w)[0] - best.fun <= found["suboptimality"].value + 1e-12
        assert found.verify(theirs, X, LABELS)
        if tol == 0.3:  # not much larger than it must be, either
            assert found["distance_to_the_minimizer"].value < 100 * np.linalg.norm(w - best.x)
        assert found["uniform_stability"].value > 0
        assert {claim.theorem for claim in found.claims} >= {
            "campi_garatti",
            "rademacher_margin",
            "stability_near_minimizer",
        }


def test_wrong_uses_of_linear_machines_are_seen():
    """Another C, weights that were not told, and a bias that was free: none of these weights
    minimizes the objective.
    """
    good = certificate_of(linear_svc().fit(X, LABELS), X, LABELS)["distance_to_the_minimizer"].value
    other = linear_svc().fit(X, LABELS).set_params(C=0.5)
    weighted = linear_svc().fit(X, LABELS, sample_weight=np.where(SCORE > 0, 1.0, 3.0))
    free = linear_svc().fit(X, LABELS)
    free.intercept_ = free.intercept_ + 0.5
    for model in (other, weighted, free):
        found = certificate_of(model, X, LABELS)
        assert found["distance_to_the_minimizer"].value > 1e5 * good
        assert "campi_garatti" not in by_theorem(found) or "turns none" in str(
            found["risk"].assumptions
        )
    told = certificate_of(weighted, X, LABELS, sample_weight=np.where(SCORE > 0, 1.0, 3.0))
    assert told["distance_to_the_minimizer"].value < 1e-6
    assert "weighted unequally" in told.lacking[0].reason
    assert (
        "weighted by class_weight"
        in certificate_of(linear_svc(class_weight="balanced").fit(X, LABELS), X, LABELS)
        .lacking[0]
        .reason
    )
    with pytest.raises(ValueError, match="does not hold: a row has norm"):
        certificate_of(linear_svc().fit(X, LABELS), X, LABELS, x_bound=0.1)


def test_linear_machines_of_several_classes_and_sparse_rows():
    y = np.digitize(SCORE, [-0.5, 0.5])
    for loss in ("hinge", "squared_hinge"):
        theirs = linear_svc(loss=loss).fit(X, y)
        found = certificate_of(theirs, X, y, x_bound=1.0)
        assert "about two classes, here are 3" in found.lacking[0].reason
        assert found.verify(theirs, X, y)
        thin = certificate_of(theirs, sparse.csr_array(X), y, x_bound=1.0)
        assert by_theorem(thin)["campi_garatti"] == by_theorem(found)["campi_garatti"]


def test_every_number_of_a_linear_machines_record_is_measured_again():
    for loss in ("hinge", "squared_hinge"):
        model = linear_svc(loss=loss).fit(X, LABELS)
        plain = json.loads(certificate_of(model, X, LABELS, x_bound=1.0).to_json())
        numbers = {
            name: value
            for name, value in plain["facts"]["values"].items()
            if type(value) in (int, float)
        }
        assert len(numbers) >= 9
        for name, value in numbers.items():
            edited = json.loads(json.dumps(plain))
            edited["facts"]["values"][name] = value + 1 if type(value) is int else 0.5 * value
            edited["hash"] = content_hash(edited)
            try:
                again = Certificate.from_json(json.dumps(edited))
            except ValueError:
                continue  # a dual value above the primal one is no record
            assert not again.verify(model, X, LABELS), name


def test_clusters_have_the_ratio_of_ours():
    theirs = sklearn.cluster.KMeans(3, n_init=1, random_state=0).fit(X)
    ours = KMeans(3, init=theirs.cluster_centers_, random_state=0).fit(X)
    found = certificate_of(theirs, X)
    assert found["cost_over_optimum"].value == pytest.approx(
        theirs.inertia_ / found["optimal_cost"].value, rel=1e-9
    )
    assert found["optimal_cost"].value == pytest.approx(
        ours.certificate_["optimal_cost"].value, rel=1e-9
    )
    assert "greedy" in found.lacking[0].reason  # scikit-learn's seeding is not the theorem's


def test_votes_of_stumps_are_bounded_from_their_own_errors():
    theirs = sklearn.ensemble.AdaBoostClassifier(n_estimators=15, random_state=0).fit(X, LABELS)
    found = by_theorem(certificate_of(theirs, X, LABELS))
    errors = theirs.estimator_errors_
    assert found["adaboost_training_error"] == pytest.approx(
        np.prod(2 * np.sqrt(errors * (1 - errors))), rel=1e-9
    )
    wrong = int((theirs.predict(X) != LABELS).sum())
    assert found["boosting_tail_inversion"] == bounds.boosting_tail_inversion(
        wrong, 200, 0.05 / 15, 15, 4
    )
    assert wrong / 200 <= found["adaboost_training_error"]
    slow = sklearn.ensemble.AdaBoostClassifier(
        n_estimators=5, learning_rate=0.5, random_state=0
    ).fit(X, LABELS)
    assert "learning_rate=1" in certificate_of(slow, X, LABELS).lacking[0].reason


def test_what_is_not_covered_says_why():
    logistic = sklearn.linear_model.LogisticRegression(fit_intercept=False)
    cases = {
        "prepared by steps": make_pipeline(StandardScaler(), logistic),
        "weighted": sklearn.linear_model.LogisticRegression(
            fit_intercept=False, class_weight="balanced"
        ),
        "its fit minimized is": LinearSVC(penalty="l1", dual=False),
        "not written down": sklearn.ensemble.RandomForestClassifier(5, random_state=0),
        "it inherits": type("Mine", (sklearn.linear_model.LogisticRegression,), {})(
            fit_intercept=False
        ),
    }
    for words, model in cases.items():
        found = certificate_of(model.fit(X, LABELS), X, LABELS, x_bound=1.0)
        assert found.claims == ()
        assert words in found.lacking[0].reason, found.lacking
    assert "plain function" in certificate_of(lambda rows: rows, X, LABELS).lacking[0].reason


def test_it_is_verified_from_model_and_rows():
    model = sklearn.linear_model.Ridge(alpha=20.0, fit_intercept=False).fit(X, AMOUNTS)
    certificate = certificate_of(model, X, AMOUNTS, **BOUNDS)
    again = Certificate.from_json(certificate.to_json())
    assert again == certificate
    assert again.verify(model, X, AMOUNTS)
    assert not again.verify(model, X[::-1], AMOUNTS)
    other = sklearn.linear_model.Ridge(alpha=21.0, fit_intercept=False).fit(X, AMOUNTS)
    assert not again.verify(other, X, AMOUNTS)
    plain = json.loads(certificate.to_json())
    for name in ("training_risk", "half_slope", "regularization", "n"):
        edited = json.loads(json.dumps(plain))
        edited["facts"]["values"][name] = (
            0.5 + edited["facts"]["values"][name] if name != "n" else 400
        )
        edited["hash"] = content_hash(edited)
        assert not Certificate.from_json(json.dumps(edited)).verify(model, X, AMOUNTS), name


def test_a_learner_of_ours_has_its_certificate_already():
    ours = Ridge(regularization=0.1, **BOUNDS).fit(X, AMOUNTS)
    assert surelearn.certificate_of(ours, X, AMOUNTS) == ours.certificate_
