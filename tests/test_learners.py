"""Every learner × what all of them share: a certificate that verifies, saving without pickle, pipelines, an audit."""

import importlib.util
import json

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import surelearn
from surelearn.boosting import AdaBoostClassifier, DecisionStump
from surelearn.certificate import Certificate
from surelearn.cluster import KMeans
from surelearn.fingerprint import fingerprint_model
from surelearn.kernel import EigenProClassifier, EigenProRegressor, LinearEigenProRegressor
from surelearn.kernel.random_features import RandomFeaturesRegressor
from surelearn.linear import (
    DPLogisticRegression,
    HuberRegression,
    LeastSquares,
    LogisticRegression,
    NaiveBayes,
    Perceptron,
    Ridge,
    SquareRootLasso,
    SupportVectorMachine,
    VariationalRegression,
)
from surelearn.persistence import LEARNERS
from surelearn.robust import AdversarialLinearClassifier

ALL = [
    AdaBoostClassifier(n_rounds=20),
    AdversarialLinearClassifier(),
    DPLogisticRegression(random_state=0),
    DecisionStump(),
    HuberRegression(),
    KMeans(n_clusters=3, random_state=0),
    LeastSquares(),
    LogisticRegression(random_state=0),
    NaiveBayes(),
    Perceptron(random_state=0),
    Perceptron(averaged=True, random_state=0),
    Perceptron(kernel="gaussian", random_state=0),
    RandomFeaturesRegressor(random_state=0),
    Ridge(),
    SquareRootLasso(),
    SupportVectorMachine(),
    SupportVectorMachine(kernel="laplace"),
    VariationalRegression(),
]
if importlib.util.find_spec("torch") is not None:
    ALL += [EigenProClassifier(random_state=0), EigenProRegressor(random_state=0)]
ALL += [LinearEigenProRegressor(random_state=0)]
every_learner = pytest.mark.parametrize("learner", ALL, ids=str)


def rows(learner):
    X, y = (load_breast_cancer if is_classifier(learner) else load_diabetes)(return_X_y=True)
    if is_classifier(learner):
        y = np.array(["malignant", "benign"])[y]
    return StandardScaler().fit_transform(X)[:300], y[:300]


@every_learner
def test_it_sets_a_certificate_that_verifies(learner):
    model = clone(learner).fit(*rows(learner))
    certificate = model.certificate_
    assert certificate.facts.hashes["model"] == fingerprint_model(model)
    assert certificate.claims or certificate.absent  # what is guaranteed, or why nothing is
    again = Certificate.from_json(certificate.to_json())
    assert again == certificate
    assert again.verify(model)
    assert json.loads(certificate.to_json())["version"] == 3
    assert str(certificate).startswith("Certificate of")


@every_learner
def test_before_fit_there_is_none(learner):
    assert not hasattr(clone(learner), "certificate_")


@every_learner
def test_it_is_saved_as_arrays_and_json(learner, tmp_path):
    X, y = rows(learner)
    model = clone(learner).fit(X, y)
    again = surelearn.load(surelearn.save(model, tmp_path / "model"))
    assert [path.suffix for path in (tmp_path / "model").glob("model-*")] == [".safetensors"]
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert fingerprint_model(again) == fingerprint_model(model)
    assert again.certificate_ == model.certificate_


@every_learner
def test_it_is_saved_inside_a_pipeline(learner, tmp_path):
    X, y = rows(learner)
    model = make_pipeline(StandardScaler(), clone(learner)).fit(X, y)
    again = surelearn.load(surelearn.save(model, tmp_path / "model"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_every_learner_is_registered():
    names = {f"{type(learner).__module__}.{type(learner).__name__}" for learner in ALL}
    assert names <= LEARNERS


@pytest.mark.parametrize("learner", [a for a in ALL if is_classifier(a)], ids=str)
def test_it_is_a_candidate_of_the_audit(learner):
    result = surelearn.audit("breast_cancer", models={"it": clone(learner)}, ledger=False, refits=0, curve_repeats=0)
    assert result.certificate["risk"].value < 0.3
