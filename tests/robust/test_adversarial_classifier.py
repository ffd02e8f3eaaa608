"""The wrapper: worst rows against brute force, the game against its exact solution, and no
claim that is not its own.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.linear_model import LogisticRegression as Peer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler
from sklearn.svm import SVC

import surelearn
from surelearn.attacks import domain, projected_gradient
from surelearn.attacks.evasion import worst_rows
from surelearn.certificate import Certificate
from surelearn.linear import LogisticRegression, Perceptron, SupportVectorMachine
from surelearn.robust import (
    AdversarialClassifier,
    AdversarialLinearClassifier,
    certified_radii,
    certify_robustness,
    robustness_curve,
    tradeoff,
)
from surelearn.subject import score_function

CANCER, SICK = load_breast_cancer(return_X_y=True)
Z = (CANCER - CANCER.mean(axis=0)) / CANCER.std(axis=0)
IRIS, SPECIES = load_iris(return_X_y=True)
X, Y, SIGNS = Z[:300], SICK[:300], 2.0 * SICK[:300] - 1


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize(
    "where",
    [None, domain(4, low=IRIS.min(axis=0), high=IRIS.max(axis=0), scale=[1.0, 0.5, 2.0, 0.0])],
)
def test_the_worst_rows_of_linear_scores_are_worst(norm, where):
    """Against a general solver, class by class; and no gradient attack finds a smaller margin."""
    model = Peer(max_iter=1000).fit(IRIS, SPECIES)
    scale = np.ones(4) if where is None else where.scale
    low, high = (
        (np.full(4, -np.inf), np.full(4, np.inf)) if where is None else (where.low, where.high)
    )
    rows = [0, 13, 22, 60, 77, 117, 118, 131, 133]  # some at the end of their range
    found = worst_rows(model, IRIS[rows], SPECIES[rows], radius=0.4, norm=norm, where=where)

    def margin(row, label):
        scores = row @ model.coef_.T + model.intercept_
        return scores[label] - np.delete(scores, label).max()

    for worst, row, label in zip(found, IRIS[rows], SPECIES[rows], strict=True):
        step = np.where(scale > 0, (worst - row) / np.where(scale > 0, scale, 1.0), worst - row)
        assert (np.abs(step).max() if norm == "linf" else np.linalg.norm(step)) <= 0.4 + 1e-12
        assert (worst >= low).all()
        assert (worst <= high).all()
        assert worst[scale == 0] == pytest.approx(row[scale == 0], abs=0)
        best = np.inf
        for rival in {0, 1, 2} - {label}:
            slope = model.coef_[rival] - model.coef_[label]
            box = [
                (max(a, x - 0.4 * s), min(b, x + 0.4 * s))
                for a, b, x, s in zip(low, high, row, scale, strict=True)
            ]
            inside = {
                "type": "ineq",
                "fun": lambda v, x=row: (
                    0.16 - (((v - x) / np.where(scale > 0, scale, 1)) ** 2).sum()
                ),
            }
            cuts = (inside,) if norm == "l2" else ()
            solved = minimize(
                lambda v, g=slope: -v @ g,
                row,
                bounds=box,
                constraints=cuts,
                method="SLSQP",
                tol=1e-12,
            )
            best = min(best, margin(solved.x, label))
        assert margin(worst, label) == pytest.approx(best, abs=1e-6)
    free = worst_rows(
        model, IRIS[rows], SPECIES[rows], radius=0.4, norm=norm, where=domain(4, scale=scale)
    )
    assert where is None or ((free < low) | (free > high)).any(), "the range cuts"


def objective(model, radius, norm, regularization):
    """The worst-case objective of logistic regression at the model's weights."""
    w, b = model.coef_[0], model.intercept_[0]
    margins = SIGNS * (X @ w + b) - radius * np.linalg.norm(w, 1 if norm == "linf" else 2)
    return np.logaddexp(0, -margins).mean() + regularization * w @ w


@pytest.mark.parametrize(("norm", "radius", "above"), [("linf", 0.2, 0.03), ("l2", 0.6, 0.001)])
def test_the_game_approaches_the_exact_solution(norm, radius, above):
    """λ = 0.01: within 3% (L∞) and 0.1% (L2) of the least worst-case objective, where the plain
    learner is far off.
    """
    best = (
        AdversarialLinearClassifier(radius=radius, norm=norm, regularization=0.01)
        .fit(X, Y)
        .objective_[0]
    )
    ours = LogisticRegression(regularization=0.01, regularize_intercept=False, random_state=0)
    peer = Peer(C=1 / (2 * 0.01 * len(X)), max_iter=1000, tol=1e-8, warm_start=True)
    for learner in (ours, peer):
        game = AdversarialClassifier(learner, radius=radius, norm=norm, rounds=40).fit(X, Y)
        reached, plain = (
            objective(m, radius, norm, 0.01) for m in (game.estimator_, clone(learner).fit(X, Y))
        )
        assert best - 1e-9 <= reached <= best * (1 + above)
        assert plain > best * (1 + 5 * above)
        assert game.robust_accuracy_[game.round_] >= game.robust_accuracy_[0] + 0.01


def test_a_pipeline_keeps_its_regularization():
    """The weights reach the last step: without them C would grow with every round."""
    inside = make_pipeline(
        StandardScaler(with_mean=False, with_std=False), Peer(C=0.1, max_iter=1000)
    )
    kept = AdversarialClassifier(inside, radius=0.2, rounds=5).fit(X, Y).estimator_[-1]
    alone = (
        AdversarialClassifier(Peer(C=0.1, max_iter=1000), radius=0.2, rounds=5).fit(X, Y).estimator_
    )
    np.testing.assert_allclose(kept.coef_, alone.coef_, atol=1e-3)


LEARNERS = [
    SVC(),
    SupportVectorMachine(),
    SupportVectorMachine(kernel="gaussian", bandwidth=5.477),
    LogisticRegression(random_state=0),
    Perceptron(averaged=True, random_state=0),
    make_pipeline(StandardScaler(), SVC()),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_robust_accuracy_rises_on_rows_not_seen(learner):
    rounds = 6 if "SVC" in str(learner) or "gaussian" in str(learner) else 25
    plain = clone(learner).fit(X, Y)
    hard = AdversarialClassifier(learner, radius=0.3, rounds=rounds, random_state=0).fit(X, Y)
    again = AdversarialClassifier(learner, radius=0.3, rounds=rounds, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(hard.robust_accuracy_, again.robust_accuracy_)
    attack = {"radius": 0.3, "steps": 20, "restarts": 2, "random_state": 0}
    left = [
        projected_gradient(m, Z[300:], SICK[300:], **attack).robust_accuracy for m in (plain, hard)
    ]
    assert left[1] > left[0] + 0.03


def test_eigenpro_is_wrapped():
    pytest.importorskip("torch")
    from surelearn.kernel import EigenProClassifier

    learner = EigenProClassifier(bandwidth=5.0, regularization=1e-3, random_state=0)
    plain, hard = (
        clone(learner).fit(X, Y),
        AdversarialClassifier(learner, radius=0.3, rounds=3, random_state=0).fit(X, Y),
    )
    left = [
        projected_gradient(m, Z[300:], SICK[300:], radius=0.3).robust_accuracy
        for m in (plain, hard)
    ]
    assert left[1] > left[0] + 0.03


def test_rows_held_out_choose_the_round():
    model = AdversarialClassifier(
        Peer(C=100.0, max_iter=5000), radius=0.3, rounds=8, held_out=0.3, random_state=1
    ).fit(X, Y)
    assert model.robust_accuracy_[model.round_] == model.robust_accuracy_.max()
    assert model.facts_["held_out"] == int(0.3 * Y.sum()) + int(0.3 * (1 - Y).sum())
    shares = model.robust_accuracy_ * model.facts_["held_out"]
    np.testing.assert_allclose(shares, shares.round(), atol=1e-9)
    none = AdversarialClassifier(Peer(), radius=0.0).fit(X, Y)
    assert none.accuracy_.shape == (1,)
    np.testing.assert_allclose(none.estimator_.coef_, Peer().fit(X, Y).coef_)


def test_several_classes_and_labels_in_words():
    names = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
    where = domain(4, low=0.0, high=8.0, fixed=[0])
    model = AdversarialClassifier(SVC(), radius=0.3, where=where, rounds=4, random_state=0).fit(
        IRIS, names
    )
    assert set(model.predict(IRIS)) == set(names)
    assert model.decision_function(IRIS).shape == (150, 3)
    assert not hasattr(model, "predict_proba")
    assert hasattr(AdversarialClassifier(Peer()), "predict_proba")


def test_attacks_and_radii_go_through_the_wrapper():
    model = AdversarialClassifier(
        make_pipeline(StandardScaler(), Peer()), radius=0.2, rounds=3
    ).fit(X, Y)
    inner = certified_radii(model.estimator_, Z[300:])
    np.testing.assert_array_equal(certified_radii(model, Z[300:]).values, inner.values)
    outside = make_pipeline(
        StandardScaler(), AdversarialClassifier(make_pipeline(RobustScaler(), Peer()), rounds=2)
    )
    found = GridSearchCV(outside, {"adversarialclassifier__radius": [0.1]}, cv=2).fit(X, Y)
    f = score_function(found)
    np.testing.assert_allclose(f.scores(Z)[:, 1], found.decision_function(Z), atol=1e-9)
    curve = robustness_curve(found, Z[300:], SICK[300:], [0.0, 0.2])
    np.testing.assert_allclose(curve.attacked, curve.certified, atol=0.005)


def test_its_certificate_claims_nothing_of_the_rows_it_changed():
    inner = SupportVectorMachine(x_bound=60.0)
    assert clone(inner).fit(X, Y).certificate_.claims
    model = AdversarialClassifier(inner, radius=0.2, rounds=2).fit(X, Y)
    certificate = model.certificate_
    assert certificate.claims == ()
    assert {absent.what for absent in certificate.lacking} >= {
        "risk",
        "robust_accuracy",
        "suboptimality",
    }
    for absent in certificate.lacking:
        assert (
            "no sample of new rows" if "r" in absent.what[0] else "not about the rows given"
        ) in absent.reason
    assert (
        certificate.facts["robust_accuracy"][model.round_] == model.robust_accuracy_[model.round_]
    )
    again = Certificate.from_json(certificate.to_json())
    assert again == certificate
    assert again.verify(model, X, Y)
    assert not again.verify(model, X[:-1], Y[:-1])
    assert surelearn.certify(model, Z[300:], SICK[300:])["risk"].value < 0.1
    proved = certify_robustness(model, Z[300:], SICK[300:], radius=0.2, norm="linf")
    assert proved["robust_accuracy"].value > 0.5
    assert proved.verify()


def test_the_tradeoff_takes_the_wrapper_and_is_drawn():
    pytest.importorskip("matplotlib")
    learner = AdversarialClassifier(Peer(C=10.0, max_iter=1000), rounds=20)
    found = tradeoff(learner, [0.0, 0.3], Z[300:], SICK[300:], radius=0.3, train=(X, Y))
    assert found.attacked[1] > found.attacked[0] + 0.1
    assert not hasattr(learner, "estimator_")
    axes = found.plot()
    assert [text.get_text() for text in axes.texts] == ["0", "0.3"]
    assert axes.get_xlabel() == "accuracy"
    assert "training radius" in str(found)
    assert "<pre>" in found._repr_html_()
    with pytest.raises(ValueError, match="train=\\(X, y\\)"):
        tradeoff(learner, [0.0], X, Y, radius=0.3)


def test_bad_input_gets_a_sentence():
    for options, message in [
        ({"radius": -1.0}, "radius must be"),
        ({"radius": np.nan}, "radius must be"),
        ({"norm": "l1"}, "norm must be"),
        ({"rounds": 0}, "rounds must be"),
        ({"steps": 1.5}, "steps must be"),
        ({"held_out": 1.0}, "held_out must lie strictly between 0 and 1"),
        ({"where": domain(3)}, "the domain has 3 columns"),
        ({"where": domain(30, low=0.0)}, "outside its range"),
    ]:
        with pytest.raises(ValueError, match=message):
            AdversarialClassifier(Peer(), **options).fit(X, Y)
    with pytest.raises(ValueError, match=r"held_out=0\.01 holds out no row"):
        AdversarialClassifier(Peer(), held_out=0.01).fit(X[::10], Y[::10])
    with pytest.raises(
        ValueError, match="estimator must be a scikit-learn classifier, not LinearRegression"
    ):
        AdversarialClassifier(LinearRegression()).fit(X, Y)
    with pytest.raises(ValueError, match="Unknown label type"):
        AdversarialClassifier(Peer()).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="one class"):
        AdversarialClassifier(Peer()).fit(X, np.zeros(len(X)))
    with pytest.raises(
        ValueError, match=r"RandomForestClassifier.* has no gradient .*projected gradient"
    ):
        AdversarialClassifier(RandomForestClassifier(5, random_state=0)).fit(X, Y)
