"""DPLogisticRegression: a scikit-learn citizen whose certificate states (ε, dp_delta), and ε
against an attack.
"""

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import StandardScaler

from surelearn.attacks.epsilon_audit import epsilon_from_canaries, epsilon_from_retrainings
from surelearn.bounds.privacy import dp_sgd_epsilon
from surelearn.certificate import Certificate
from surelearn.linear.dp_logistic import DPLogisticRegression

FAST = {"noise_multiplier": 1.0, "epsilon": None}


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), np.array(["malignant", "benign"])[y]


def test_it_learns_within_its_epsilon():
    X, y = cancer()
    model = DPLogisticRegression(epsilon=1.0, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    assert 0.95 < model.certificate_["epsilon"].value <= 1.0


def test_several_classes():
    X, y = load_iris(return_X_y=True)
    model = DPLogisticRegression(
        epsilon=None, noise_multiplier=0.5, epochs=200, random_state=0
    ).fit(X - X.mean(0), y)
    assert model.score(X - X.mean(0), y) > 0.8
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))


def test_the_certificate_says_what_it_covers():
    X, y = cancer()
    certificate = (
        DPLogisticRegression(**FAST, batch_size=50, epochs=4, random_state=0).fit(X, y).certificate_
    )
    claim = certificate["epsilon"]
    assert claim.inputs["sample_rate"] == 50 / 569
    assert claim.inputs["steps"] == 46
    assert claim.value == pytest.approx(dp_sgd_epsilon(1.0, 50 / 569, 46, 1e-5), rel=1e-3)
    assert claim.value <= certificate["epsilon_renyi"].value
    text = str(certificate)
    for said in (
        "at dp_delta = 1e-05",
        "add or remove one row",
        "weights alone",
        "choice of settings",
        "are public",
    ):
        assert said in text
    assert certificate.verify()
    assert Certificate.from_json(certificate.to_json()) == certificate


def test_facts_hold_nothing_measured_on_the_rows():
    X, y = cancer()
    one = DPLogisticRegression(**FAST, random_state=0).fit(X, y)
    other = DPLogisticRegression(**FAST, random_state=0).fit(-3 * X[::-1], y)
    assert one.facts_ == other.facts_


def test_no_noise_no_epsilon():
    X, y = cancer()
    model = DPLogisticRegression(epsilon=None, noise_multiplier=0.0, random_state=0).fit(X, y)
    with pytest.raises(KeyError, match="no noise was added"):
        model.certificate_["epsilon"]


def test_seeds():
    X, y = cancer()
    one, same, other = (
        DPLogisticRegression(**FAST, random_state=s).fit(X, y).coef_ for s in (0, 0, 1)
    )
    assert np.array_equal(one, same)
    assert not np.allclose(one, other)
    free = [DPLogisticRegression(**FAST).fit(X, y).coef_ for _ in range(2)]
    assert not np.allclose(*free)


def test_rows_are_shortened_alike_in_fitting_and_predicting():
    X, y = cancer()
    short = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    bounded = DPLogisticRegression(**FAST, x_bound=1.0, random_state=0).fit(X, y)
    plain = DPLogisticRegression(**FAST, random_state=0).fit(short, y)
    np.testing.assert_allclose(bounded.coef_, plain.coef_)
    np.testing.assert_allclose(bounded.decision_function(X), plain.decision_function(short))
    np.testing.assert_allclose(
        bounded.decision_function(100 * X), bounded.decision_function(10 * X)
    )


def worst_case(present, noise, trials, seed):
    """Scores of a row that is alone on its axis, with the strongest gradient: the mechanism's
    worst case.
    """
    X, y = np.zeros((20, 1)), np.arange(20) % 2
    X[0] = 1e6 if present else 0.0
    y[0] = 1
    model = DPLogisticRegression(
        epsilon=None, noise_multiplier=noise, batch_size=20, epochs=1, average=False
    )
    return np.array(
        [model.set_params(random_state=seed + t).fit(X, y).coef_[0, 0] for t in range(trials)]
    )


def test_an_attack_cannot_refute_epsilon_but_refutes_half_of_it():
    """One full-batch step in its worst case: the attack comes close to the claimed ε and does
    not pass it.
    """
    inside, outside = worst_case(True, 1.0, 2000, 0), worst_case(False, 1.0, 2000, 10_000)
    dp_delta = 1e-2
    certified = dp_sgd_epsilon(1.0, 1.0, 1, dp_delta)
    found = epsilon_from_retrainings(inside, outside, dp_delta=dp_delta).epsilon
    assert 0.4 * certified < found <= certified


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"epsilon": None}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"noise_multiplier": -1.0}, "noise_multiplier"),
        ({"dp_delta": 0.0}, "dp_delta"),
        ({"x_bound": 0.0}, "x_bound"),
        ({"clip": 0.0}, "clip"),
        ({"batch_size": 0}, "batch_size"),
        ({"epochs": np.inf}, "epochs"),
        ({"step": 0.0}, "step"),
        ({"radius": -1.0}, "radius"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_input_is_named(options, name):
    X, y = cancer()
    with pytest.raises(ValueError, match=name):
        DPLogisticRegression(**options).fit(X, y)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="one class"):
        DPLogisticRegression(**FAST).fit(np.zeros((5, 2)), np.ones(5))


def audited(noise, seed, canaries=60):
    """One training with canaries included by coin flips, each alone on its axis; the ε that the
    attack proves, α = 0.1.
    """
    rng = np.random.default_rng(seed)
    included = rng.random(canaries) < 0.5
    X = np.vstack([np.zeros((20, canaries)), 1e6 * np.eye(canaries)[included]])
    y = np.r_[np.arange(20) % 2, np.ones(included.sum(), dtype=int)]
    model = DPLogisticRegression(
        epsilon=None,
        noise_multiplier=noise,
        batch_size=len(X),
        epochs=1,
        dp_delta=1e-3,
        average=False,
        random_state=seed,
    ).fit(X, y)
    found = epsilon_from_canaries(
        model.coef_[0], included, dp_delta=1e-3, alpha=0.1, guesses=(20, 60)
    ).epsilon
    return found, model.certificate_["epsilon"].value


def test_the_attack_exceeds_the_certified_epsilon_in_at_most_alpha_of_trainings():
    found, certified = np.transpose([audited(0.7, seed) for seed in range(200)])
    assert (found > certified).mean() <= binom.ppf(0.999, 200, 0.1) / 200
    # the mutant: claims the ε of noise that was not added
    too_little = dp_sgd_epsilon(6.0, 1.0, 1, 1e-3)
    assert (found > too_little).mean() > 0.5


def test_a_certificate_is_checked_against_parameters_and_rows_but_not_what_another_accountant_said(
    monkeypatch,
):
    X, y = cancer()
    model = DPLogisticRegression(**FAST, batch_size=50, epochs=4).fit(X, y)
    certificate = Certificate.from_json(model.certificate_.to_json())
    assert certificate.verify(model, X, y), certificate.verify(model, X, y)
    assert not certificate.verify(model, X[1:], y[1:])
    monkeypatch.setitem(model.facts_, "by", "an accountant that is not installed here")
    found = model.certificate_.verify(model, X, y)
    assert found, found
    assert [line.split(":")[0] for line in found.unchecked] == ["seeded", "by", "accounted"]
    monkeypatch.setitem(model.facts_, "steps", 40)
    assert (
        "steps: not what model and rows give" in model.certificate_.verify(model, X, y).differences
    )
