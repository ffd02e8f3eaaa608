"""What is certified of a stump and of votes: numbers by another route, and claims that hold as
often as they say.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import load_breast_cancer, load_iris

from surelearn import bounds
from surelearn.boosting import AdaBoostClassifier, DecisionStump
from surelearn.bounds.boosting import boosting_tail_inversion
from surelearn.certificate import Certificate

CLOSED = (
    "boosting_tail_inversion",
    "boosting_vc",
    "boosting_margin_vc",
    "boosting_finite",
    "boosting_margin_finite",
)


def claims(model):
    return {claim.theorem: claim for claim in model.certificate_.claims}


def reasons(model):
    return {absent.theorem: absent.reason for absent in model.certificate_.lacking}


def noisy(rng, n, d=2, flip=0.3):
    """Rows on the corners and middles {0, 1, 2}^d; the label is x_1 > 0, flipped with
    probability ``flip``.
    """
    X = rng.integers(0, 3, size=(n, d)).astype(float)
    return X, (X[:, 0] > 0) ^ (rng.random(n) < flip)


def true_risks(model, d=2, flip=0.3):
    """The exact risk after every round."""
    X = np.array(np.meshgrid(*[[0.0, 1.0, 2.0]] * d)).reshape(d, -1).T
    clean = X[:, 0] > 0
    return np.array(
        [
            np.where(predicted == clean, flip, 1 - flip).mean()
            for predicted in model.staged_predict(X)
        ]
    )


def test_a_vote_of_stumps_has_its_claims():
    rng = np.random.default_rng(0)
    X, y = noisy(rng, 5000)
    model = AdaBoostClassifier(7, thresholds=[0.5, 1.5]).fit(X, y)
    made, record = claims(model), model.record_
    assert set(made) == {"adaboost_training_error", *CLOSED}
    n, t, wrong, v, size = 5000, model.n_rounds_, int((model.predict(X) != y).sum()), 3, 2 * 4 + 2
    assert record.training_errors == wrong
    epsilon = model.estimator_errors_
    assert made["adaboost_training_error"].value == pytest.approx(
        np.prod(2 * np.sqrt(epsilon * (1 - epsilon)))
    )
    assert made["adaboost_training_error"].value >= wrong / n
    root = (
        32
        * (t * (math.log(math.e * n / t) + v * math.log(math.e * n / v)) + math.log(8 * 7 / 0.05))
        / n
    )
    assert made["boosting_vc"].value == pytest.approx(wrong / n + math.sqrt(root))
    root = 32 * (t * math.log(math.e * n * size / t) + math.log(8 * 7 / 0.05)) / n
    assert made["boosting_finite"].value == pytest.approx(wrong / n + math.sqrt(root))
    tail = boosting_tail_inversion(wrong, n, 0.05 / 7, t, 2)
    assert made["boosting_tail_inversion"].value == tail < 0.45
    *_, margins = model.staged_margins(X, y)
    for key in ("boosting_margin_vc", "boosting_margin_finite"):
        assert made[key].inputs["margin_error"] == np.mean(
            margins <= made[key].inputs["margin"] + 1e-9
        )
        assert made[key].inputs["delta"] == 0.05  # for votes of any length: nothing to pay
    finite = min(
        np.mean(margins <= theta + 1e-9)
        + 2 * math.exp(-k * theta**2 / 8)
        + math.sqrt((math.log(k * (k + 1) ** 2 / 0.05) + k * math.log(size)) / (2 * n))
        for theta in np.arange(1, 51) / 50
        for k in range(1, 400)
    )
    assert made["boosting_margin_finite"].value == pytest.approx(finite)
    again = Certificate.from_json(model.certificate_.to_json())
    assert again == model.certificate_
    assert again.verify(model)


def test_each_claim_pays_for_the_rounds_there_could_have_been():
    y = np.arange(500) % 2
    for most in (20, 2000):
        model = AdaBoostClassifier(most).fit(y[:, None], y)  # the first stump is perfect
        assert model.n_rounds_ == 1
        for key in CLOSED[:2]:
            claim = claims(model)[key]
            assert claim.confidence == 0.95
            assert claim.candidates == most
            assert claim.inputs["delta"] == 0.05 / most
            assert claim.inputs["rounds"] == model.n_rounds_


def test_where_claims_are_not_made_the_certificate_says_why():
    X, y = load_breast_cancer(return_X_y=True)
    assert set(reasons(AdaBoostClassifier(5).fit(X, y))) == {
        "boosting_finite",
        "boosting_margin_finite",
    }
    weighted = AdaBoostClassifier(5).fit(X, y, sample_weight=1 + y)
    assert reasons(weighted) == dict.fromkeys(CLOSED, "rows are weighted unequally")
    (training,) = weighted.certificate_.claims  # Theorem 3.1 is about any first weights
    assert training.label == "weighted training error"
    error = np.average(weighted.predict(X) != y, weights=1 + y)
    assert error <= training.value
    scaled = AdaBoostClassifier(5).fit(X, y, sample_weight=np.full(len(y), 3.0))
    assert (
        claims(scaled)["boosting_vc"].value
        == claims(AdaBoostClassifier(5).fit(X, y))["boosting_vc"].value
    )
    X, y = load_iris(return_X_y=True)
    several = AdaBoostClassifier(5).fit(X, y)
    assert not several.certificate_.claims
    assert all("two classes, here are 3" in reason for reason in reasons(several).values())
    with pytest.raises(ValueError, match="no bounds on the risk: the theorem is about two classes"):
        several.prefix_bounds()


def test_few_rows():
    X = np.column_stack([np.arange(6.0), np.zeros(6)])
    model = AdaBoostClassifier(20).fit(X, [0, 0, 1, 1, 0, 0])
    assert "at least as many rows as rounds, here are 6 and 20" in reasons(model)["boosting_vc"]
    assert "more than 1 with so few rows" in reasons(model)["boosting_margin_vc"]
    assert claims(model)["boosting_tail_inversion"].vacuous
    found = model.prefix_bounds()
    assert np.isnan(found["boosting_vc"]).tolist() == [False] * 6 + [True] * 14
    assert np.isnan(found["boosting_margin_vc"]).all()
    tiny = AdaBoostClassifier(20).fit(np.eye(3), [0, 1, 1])
    assert "at least 4 rows" in reasons(tiny)["boosting_vc"]
    assert np.isnan(tiny.prefix_bounds()["boosting_vc"]).all()
    assert "at least 4 rows" in reasons(DecisionStump().fit(np.eye(3), [0, 1, 1]))["vc"]


def test_a_stump_has_its_claims():
    rng = np.random.default_rng(1)
    X, y = noisy(rng, 3000)
    made = claims(DecisionStump(thresholds=[0.5, 1.5]).fit(X, y))
    wrong = int(((X[:, 0] > 0.5) != y).sum())
    assert made["vc"].value == pytest.approx(
        wrong / 3000 + math.sqrt(32 * (math.log(8 / 0.05) + 3 * math.log(math.e * 3000 / 3)) / 3000)
    )
    assert made["hypergeometric_tail_inversion"].value == bounds.hypergeometric_tail_inversion(
        wrong, 3000, 0.05, 3
    )
    assert made["finite_class"].value == pytest.approx(
        wrong / 3000 + math.sqrt(math.log(10 / 0.05) / 6000)
    )
    model = DecisionStump().fit(X, y)
    assert set(reasons(model)) == {"finite_class"}
    assert Certificate.from_json(model.certificate_.to_json()).verify(model)
    assert set(reasons(DecisionStump().fit(X, y, sample_weight=1 + y))) == set(made)


def test_the_last_prefix_has_the_certificate_s_bound():
    rng = np.random.default_rng(2)
    X, y = noisy(rng, 2000)
    model = AdaBoostClassifier(9, thresholds=[0.5, 1.5]).fit(X, y)
    found = model.prefix_bounds()
    for key in CLOSED:
        assert found[key][-1] == pytest.approx(claims(model)[key].value)
        assert found[key].shape == (model.n_rounds_,)
    for t in range(1, model.n_rounds_ + 1):  # a prefix is what fewer rounds would have made
        shorter = AdaBoostClassifier(t, thresholds=[0.5, 1.5]).fit(X, y)
        np.testing.assert_array_equal(shorter.thresholds_, model.thresholds_[:t])
        assert found["training_error"][t - 1] == shorter.record_.training_errors / 2000
        assert found["training_error_bound"][t - 1] == pytest.approx(
            claims(shorter)["adaboost_training_error"].value
        )
        assert found["boosting_margin_finite"][t - 1] == pytest.approx(
            claims(shorter)["boosting_margin_finite"].value
        )
        # which pays for t rounds only
        assert found["boosting_vc"][t - 1] > claims(shorter)["boosting_vc"].value or t == 9
    assert (model.prefix_bounds(0.01)["boosting_vc"] > found["boosting_vc"]).all()


def test_bounds_of_all_prefixes_hold_at_once():
    rng, delta, trials = np.random.default_rng(3), 0.2, 150
    broken, tightest = dict.fromkeys(CLOSED, 0), dict.fromkeys(CLOSED, np.inf)
    for _ in range(trials):
        model = AdaBoostClassifier(6, thresholds=[0.5, 1.5], delta=delta).fit(*noisy(rng, 400))
        found, risks = model.prefix_bounds(), true_risks(model)
        for key in CLOSED:
            broken[key] += bool((risks > found[key]).any())
            tightest[key] = min(tightest[key], np.nanmin(found[key]))
    allowed = binom.ppf(0.999, trials, delta)
    assert all(count <= allowed for count in broken.values())
    assert tightest["boosting_tail_inversion"] < 0.6  # they say something
    assert tightest["boosting_margin_finite"] < 0.9


def test_not_paying_for_the_rounds_breaks_the_bound():
    """On labels that are coins, votes of many stumps learn the rows by heart: a bound for one
    stump is wrong about them.
    """
    rng, mutant, honest, trials = np.random.default_rng(4), 0, 0, 40
    for _ in range(trials):
        X, y = rng.normal(size=(120, 5)), rng.integers(2, size=120)
        model = AdaBoostClassifier(150).fit(X, y)  # its risk is ½ whatever it is
        wrong = model.facts_["staged_errors"]
        mutant += bool((boosting_tail_inversion(wrong, 120, 0.05, 1, 5) < 0.5).any())
        honest += bool((model.prefix_bounds()["boosting_tail_inversion"] < 0.5).any())
    assert honest <= binom.ppf(0.999, trials, 0.05)
    assert mutant > trials / 2


def test_a_stump_s_claims_hold_and_the_training_error_does_not_bound_the_risk():
    rng, delta, trials = np.random.default_rng(5), 0.2, 300
    broken, naive = {"hypergeometric_tail_inversion": 0, "vc": 0, "finite_class": 0}, 0
    for _ in range(trials):
        X, y = rng.integers(0, 3, size=(60, 4)).astype(float), rng.integers(2, size=60)
        model = DecisionStump(thresholds=[0.5, 1.5], delta=delta).fit(X, y)
        for key, claim in claims(model).items():
            broken[key] += claim.value < 0.5
        # Hoeffding, as if the stump were fixed
        naive += model.error_ + math.sqrt(math.log(1 / delta) / 120) < 0.5
    assert all(count <= binom.ppf(0.999, trials, delta) for count in broken.values())
    assert naive > binom.ppf(0.999, trials, delta)


def test_a_vote_is_measured_again_on_its_rows_weighted_or_not_and_another_vote_is_found():
    X, y = noisy(np.random.default_rng(6), 300)
    weights = np.where(y, 2.0, 0.5) * (np.arange(300) % 5 > 0)  # some rows do not count
    for learner in (AdaBoostClassifier(9), DecisionStump()):
        model = learner.fit(X, y, sample_weight=weights)
        found = model.certificate_.verify(model, X, y, sample_weight=weights)
        assert found, found
        assert not model.certificate_.verify(model, X, y)
        assert not model.certificate_.verify(model, X, ~y, sample_weight=weights)
    iris = load_iris(return_X_y=True)
    for learner in (AdaBoostClassifier(9), DecisionStump()):
        assert learner.fit(*iris).certificate_.verify(learner, *iris)
    model = AdaBoostClassifier(9).fit(X, y)
    model.estimator_weights_ = model.estimator_weights_ * [2.0, *[1.0] * (model.n_rounds_ - 1)]
    found = model.certificate_.verify(model, X, y)
    assert "not those that AdaBoost gives" in str(found)
