"""What a model's answers say of rows is read as it is meant, shadow models have half of the rows
each, and a model that memorizes is found out.
"""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeRegressor

from surelearn.attacks import (
    canary_scores,
    complementary_halves,
    membership_evidence,
    membership_inference,
    shadow_evidence,
)
from surelearn.attacks.membership_evidence import FARTHEST, MembershipEvidence, MembershipInference
from surelearn.lacking import Lacking
from surelearn.subject import subject_of


def noise(n=300, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def evidence(*arguments, **options) -> MembershipEvidence:
    found = membership_evidence(*arguments, **options)
    assert isinstance(found, MembershipEvidence)
    return found


def test_losses_are_those_of_the_right_class():
    X, y = noise()
    model = LogisticRegression().fit(X, y)
    seen = evidence(model, X, y)
    own = model.predict_proba(X)[np.arange(len(y)), y]
    np.testing.assert_allclose(seen.losses, -np.log(own), rtol=1e-10)
    np.testing.assert_allclose(
        seen.evidence, np.where(y == 1, 1, -1) * model.decision_function(X), rtol=1e-7, atol=1e-9
    )
    assert seen.seen == "probabilities"
    words = np.where(y == 1, "yes", "no")
    machine = SVC().fit(X, words)
    seen = evidence(machine, X, words)
    np.testing.assert_allclose(
        seen.evidence, np.where(y == 1, 1, -1) * machine.decision_function(X)
    )
    assert seen.seen == "scores"
    assert evidence(machine, X[:1], np.array(["perhaps"])).evidence == [-FARTHEST]
    said = evidence(lambda _: words, X, words, task="classification")
    assert said.evidence.tolist() == [1.0] * 300
    assert said.seen == "predictions"


def test_a_subject_is_taken_as_its_model_and_a_regressor_by_its_errors():
    X, y = noise()
    model = LinearRegression().fit(X, y)
    one, two = evidence(model, X, y), evidence(subject_of(model), X, y)
    np.testing.assert_array_equal(one.evidence, two.evidence)
    np.testing.assert_allclose(one.evidence, model.predict(X) - y)
    np.testing.assert_array_equal(one.losses, np.abs(one.evidence))


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (lambda X: np.full(len(X), np.nan), "NaN for some rows"),
        (lambda X: np.zeros((len(X), 2)), "predictions of shape (300, 2) for 300 rows"),
    ],
)
def test_answers_that_say_nothing_are_lacking(model, why):
    found = membership_evidence(model, *noise(), task="classification")
    assert isinstance(found, Lacking)
    assert why in found.reason


def test_a_model_that_does_not_say_what_it_answers_is_lacking_a_task():
    X, y = noise()
    for found in (
        membership_evidence(lambda X: X[:, 0], X, y),
        membership_inference(lambda X: X[:, 0], X, y, np.arange(300) < 150),
    ):
        assert isinstance(found, Lacking)
        assert found.what == "task"


def test_every_row_is_in_half_of_the_shadow_models():
    halves = complementary_halves(51, 4, 0)
    assert halves.shape == (8, 51)
    assert (halves.sum(axis=0) == 4).all()
    assert set(halves.sum(axis=1)) == {25, 26}
    np.testing.assert_array_equal(halves, complementary_halves(51, 4, 0))


def test_a_shadow_model_is_fitted_on_its_rows_alone():
    X, y = noise()
    rows = np.arange(150)
    found = shadow_evidence(KNeighborsClassifier(1), X, y, rows, X, y, task="classification")
    assert isinstance(found, MembershipEvidence)
    assert (found.evidence[:150] > 0).all()
    assert not (found.evidence[150:] > 0).all()


@pytest.mark.parametrize(
    "model", [KNeighborsClassifier(1), DecisionTreeRegressor(random_state=0)], ids=str
)
def test_a_model_that_memorizes_is_found_out(model):
    X, y = noise()
    members = np.arange(300) % 2 == 0
    found = membership_inference(
        model.fit(X[members], y[members]), X, y, members, shadows=6, random_state=0
    )
    assert isinstance(found, MembershipInference)
    assert found.by_loss.auc_low > 0.55
    assert not isinstance(found.by_ratio, Lacking)
    assert found.by_ratio.auc_low > 0.55
    assert (found.by_loss.members, found.by_loss.others) == (150, 150)


def test_without_shadow_models_the_ratio_is_lacking():
    X, y = noise()
    members = np.arange(300) < 150
    model = LogisticRegression().fit(X[members], y[members])
    for asked, shadows, why in ((model, 0, "none was asked for"), (model.predict, 4, "cloned")):
        found = membership_inference(
            asked, X, y, members, shadows=shadows, task="classification", random_state=0
        )
        assert isinstance(found, MembershipInference)
        assert isinstance(found.by_ratio, Lacking)
        assert why in found.by_ratio.reason
    with pytest.raises(ValueError, match="even number"):
        membership_inference(model, X, y, members, shadows=3)
    with pytest.raises(ValueError, match="both kinds"):
        membership_inference(model, X, y, np.ones(300, dtype=bool))


def test_a_classifier_without_a_certificate_has_no_canary():
    X, y = noise(60)
    model = LogisticRegression().fit(X, y)
    found = canary_scores(model, model, X, y, tried=np.arange(60), seeds=np.arange(2).reshape(1, 2))
    assert isinstance(found, Lacking)
    assert found.what == "certificate"
