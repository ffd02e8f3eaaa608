"""Closed forms belong to classes, not to names or attributes: whatever may score otherwise has
none, and says why.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import SVC

from surelearn import linear
from surelearn.kernel.functions import Gaussian
from surelearn.lacking import Lacking
from surelearn.robust import certified_radii
from surelearn.subject import score_function, trusted
from surelearn.subject.closing import closed_form

X, Y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)[:, :5]


def bent(rows):
    return np.sign(rows) * np.abs(rows) ** 0.2


class Bent(LogisticRegression):
    """Linear in bent rows."""

    def fit(self, X, y):
        return super().fit(bent(X), y)

    def decision_function(self, X):
        return super().decision_function(bent(X))


class Scaling(ClassifierMixin, BaseEstimator):
    """Scales rows, and has coefficients of the scaled ones."""

    def fit(self, X, y):
        self.scale_ = 10.0
        inner = LogisticRegression().fit(X * self.scale_, y)
        self.coef_, self.intercept_, self.classes_ = inner.coef_, inner.intercept_, inner.classes_
        return self

    def decision_function(self, X):
        return (X * self.scale_) @ self.coef_[0] + self.intercept_[0]

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


class BentPipeline(Pipeline):
    def decision_function(self, X):
        return super().decision_function(bent(X))

    def predict(self, X):
        return super().predict(bent(X))


class BentScaler(StandardScaler):
    def transform(self, X):
        return super().transform(bent(X))


class BentGaussian(Gaussian):
    pass


def named_like(parent, method):
    """A subclass with the name and the module of its parent."""
    space = {
        method: lambda self, X: getattr(parent, method)(self, bent(X)),
        "__module__": parent.__module__,
    }
    return type(parent.__name__, (parent,), space)


def with_a_method_of_its_own():
    model = LogisticRegression().fit(X, Y)
    model.decision_function = lambda rows: LogisticRegression.decision_function(model, bent(rows))
    model.predict = lambda rows: (model.decision_function(rows) > 0).astype(int)
    return model


def with_an_own_step():
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    model[0].transform = lambda rows, **_: StandardScaler.transform(model[0], bent(rows))
    return model


MUTANTS = {
    "a subclass": (lambda: Bent().fit(X, Y), "may score otherwise than LogisticRegression"),
    "a subclass of the same name": (
        lambda: named_like(LogisticRegression, "decision_function")().fit(X, Y),
        "may score otherwise than LogisticRegression",
    ),
    "our learner's subclass": (
        lambda: named_like(linear.LogisticRegression, "decision_function")(regularization=0.01).fit(
            X, Y
        ),
        "may score otherwise than LogisticRegression",
    ),
    "a kernel machine's subclass": (
        lambda: named_like(SVC, "predict")().fit(X, Y),
        "may score otherwise than SVC",
    ),
    "a network's subclass": (
        lambda: named_like(MLPClassifier, "predict")(
            (3,), solver="lbfgs", alpha=1.0, max_iter=5000, random_state=0
        ).fit(X, Y),
        "may score otherwise than MLPClassifier",
    ),
    "coefficients alone": (lambda: Scaling().fit(X, Y), "Scaling has no gradient"),
    "a method of its own": (with_a_method_of_its_own, "its method decision_function was replaced"),
    "another pipeline": (
        lambda: BentPipeline([("scale", StandardScaler()), ("it", LogisticRegression())]).fit(X, Y),
        "otherwise than scikit-learn's Pipeline",
    ),
    "another scaler": (
        lambda: make_pipeline(BentScaler(), LogisticRegression()).fit(X, Y),
        "not known to be affine",
    ),
    "a step of its own": (with_an_own_step, "not known to be affine"),
    "another kernel": (
        lambda: linear.Perceptron(kernel=BentGaussian(bandwidth=1.0), random_state=0).fit(
            X[:80], Y[:80]
        ),
        "the kernel BentGaussian",
    ),
    "within a search": (
        lambda: GridSearchCV(Bent(), {"C": [1.0]}, cv=2).fit(X, Y),
        "may score otherwise",
    ),
    "another search": (
        lambda: named_like(GridSearchCV, "predict")(LogisticRegression(), {"C": [1.0]}, cv=2).fit(
            X, Y
        ),
        "GridSearchCV has no gradient",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_what_may_score_otherwise_has_no_radius(name):
    make, why = MUTANTS[name]
    model = make()
    f = score_function(model)
    assert isinstance(f.pullback, Lacking)
    assert why in f.pullback.reason
    with pytest.raises(ValueError, match="no radius is certified"):
        certified_radii(model, X[:20])


def test_wrappers_that_are_known_are_seen_through():
    model = LogisticRegression().fit(X, Y)
    expected = certified_radii(model, X[:20]).values
    assert np.array_equal(certified_radii(FrozenEstimator(model), X[:20]).values, expected)
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2).fit(X, Y)
    np.testing.assert_allclose(certified_radii(search, X[:20]).values, expected)


def test_a_link_is_not_a_line():
    """Coefficients, and a prediction that is their exponential."""
    assert (
        "PoissonRegressor has no gradient"
        in score_function(PoissonRegressor().fit(X, Y)).pullback.reason
    )


KNOWN = {
    "decision_function": (LogisticRegression(), "decision_function"),
    "votes": (SVC(), "predict"),
    "probabilities": (
        MLPClassifier((3,), solver="lbfgs", alpha=1.0, max_iter=5000, random_state=0),
        "predict_proba",
    ),
    "log odds": (linear.NaiveBayes(), "decision_function"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_form_is_compared_with_the_models_own_scores(name, monkeypatch):
    model, method = KNOWN[name]
    species = np.where(X[:, 0] > 1, 2, Y) if name == "votes" else Y
    model = model.fit(X, species)
    assert not isinstance(trusted(score_function(model), X).pullback, Lacking)
    kind = type(model)
    own = getattr(kind, method)
    # the class itself is another one now
    monkeypatch.setattr(kind, method, lambda self, rows: own(self, bent(rows)))
    f = trusted(score_function(model), X)
    assert f.pullback == Lacking("gradient", "its own scores are not those that its class computes")
    assert isinstance(f.closed, Lacking)
    with pytest.raises(ValueError, match="its own scores are not those"):
        certified_radii(model, X)
    with pytest.raises(ValueError, match="only predictions are known"):
        f.scores(X)


def test_a_scaler_that_clips_is_not_affine():
    X = np.random.default_rng(0).normal(size=(60, 3))
    scaler = MaxAbsScaler()
    if "clip" not in scaler.get_params():
        pytest.skip("this scikit-learn cannot clip there")
    model = make_pipeline(scaler.set_params(clip=True), LogisticRegression()).fit(X, X[:, 0] > 0)
    assert "not affine" in closed_form(model).reason


@pytest.mark.parametrize("members", [{"a": 1}, np.array(3.0), [], np.zeros((0, 2))], ids=str)
def test_members_of_any_shape(members):
    class Odd:
        estimators_ = members

        def predict(self, X):
            return np.zeros(len(X))

    assert "no gradient" in closed_form(Odd()).reason
