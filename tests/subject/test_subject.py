"""A model declares what it knows: the registry, what users add to it, and the parts of a
Subject.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

from surelearn import linear, robust
from surelearn.attacks import projected_gradient
from surelearn.attribution import explain
from surelearn.base import Learner
from surelearn.kernel import Compute, EigenProClassifier, LinearEigenProRegressor
from surelearn.keys import find_class
from surelearn.lacking import Lacking
from surelearn.robust import certified_radii
from surelearn.subject import (
    Objective,
    Parts,
    State,
    describes,
    linear_form,
    score_function,
    subject_of,
    task_of,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = (X @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=80) > 0).astype(int)
THREE = Y + (X[:, 2] > 0.5)
T = X @ [1.0, -2.0, 0.5]


class Weighing(ClassifierMixin, BaseEstimator):
    """A class of a user's own."""

    def fit(self, X, y):
        inner = LogisticRegression().fit(X, y)
        self.classes_, self.w_, self.b_ = inner.classes_, inner.coef_[0], inner.intercept_[0]
        return self

    def predict(self, X):
        return self.classes_[(np.asarray(X) @ self.w_ + self.b_ > 0).astype(int)]

    def decision_function(self, X):
        return np.asarray(X) @ self.w_ + self.b_


class Unregistered(Weighing):
    """A class that nobody has described."""


def test_a_user_extends_the_registry_in_two_lines():
    model = Weighing().fit(X, Y)
    with pytest.raises(ValueError, match="not written down here"):
        certified_radii(model, X[:5])

    @describes(Weighing)
    def _(model):
        return Parts(form=lambda: linear_form(model.w_, model.b_, classes=2))

    radii = certified_radii(model, X[:5])
    np.testing.assert_allclose(
        radii.values, np.abs(model.decision_function(X[:5])) / np.linalg.norm(model.w_)
    )
    attack = projected_gradient(
        model, X[:5], model.predict(X[:5]), radius=radii.values * 1.01, norm="l2", random_state=0
    )
    assert attack.success.all()
    why = score_function(Unregistered().fit(X, Y)).pullback
    assert isinstance(why, Lacking)
    assert "otherwise than Weighing" in why.reason


def test_a_name_registers_what_is_not_imported():
    @describes("surely_not_installed:Model")
    def _(model):
        return Parts()

    assert subject_of(lambda rows: rows[:, 0]).predict(X).shape == (80,)


def test_a_model_that_declares_nothing_still_predicts():
    subject = subject_of(
        lambda rows: np.where(rows[:, 0] > 0, "b", "a"), classes=["a", "b"], task="classification"
    )
    assert set(subject.predict(X)) == {"a", "b"}
    assert subject.task == "classification"
    for part in (
        "scores",
        "form",
        "objective",
        "machines",
        "leave_one_out",
        "refit",
        "record",
        "state",
    ):
        assert isinstance(getattr(subject, part), Lacking), part


def test_parts_are_computed_once_and_only_when_asked():
    asked = []

    class Slow(Weighing):
        pass

    @describes(Slow)
    def _(model):
        return Parts(form=lambda: asked.append(1) or linear_form(model.w_, model.b_, classes=2))

    subject = subject_of(Slow().fit(X, Y))
    assert subject.objective.what == "objective"
    assert not asked
    assert subject.form is subject.form
    assert asked == [1]


OBJECTIVES = {  # (loss, λ beside the mean of 80 losses, intercept, coding)
    "logistic": (LogisticRegression(C=2.0), Y, ("logistic", 1 / 320, "free", "binary")),
    "softmax": (LogisticRegression(C=2.0), THREE, ("logistic", 1 / 320, "free", "softmax")),
    "liblinear": (
        LogisticRegression(solver="liblinear"),
        Y,
        ("logistic", 1 / 160, "regularized", "binary"),
    ),
    "svc": (SVC(C=2.0), THREE, ("hinge", 1 / 320, "free", "one_vs_one")),
    "linear svc": (LinearSVC(), THREE, ("squared_hinge", 1 / 160, "regularized", "one_vs_rest")),
    "svr": (SVR(), T, ("epsilon_insensitive", 1 / 160, "free", "numbers")),
    "ridge": (Ridge(alpha=4.0), T, ("squared", 4 / 80, "free", "numbers")),
    "kernel ridge": (KernelRidge(alpha=4.0), T, ("squared", 4 / 80, "none", "numbers")),
    "least squares": (
        LinearRegression(fit_intercept=False),
        T,
        ("squared", 0.0, "none", "numbers"),
    ),
    "our ridge": (linear.Ridge(regularization=0.3), T, ("squared", 0.3, "free", "numbers")),
    "our logistic": (
        linear.LogisticRegression(regularization=0.1),
        Y,
        ("logistic", 0.1, "regularized", "binary"),
    ),
    "our svm": (
        linear.SupportVectorMachine(C=0.5),
        THREE,
        ("hinge", 1 / 80, "regularized", "one_vs_one"),
    ),
    "our huber": (linear.HuberRegression(regularization=0.2), T, ("huber", 0.2, "free", "numbers")),
    "kernel machine": (
        EigenProClassifier(
            "gaussian",
            bandwidth=1.0,
            regularization=0.1,
            solver="direct",
            compute=Compute(device="cpu"),
        ),
        Y,
        ("squared", 0.1, "none", "binary"),
    ),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_what_a_fit_minimized(name):
    model, y, (loss, strength, intercept, coding) = OBJECTIVES[name]
    objective = subject_of(make_pipeline(StandardScaler(), model).fit(X, y)).objective
    assert isinstance(objective, Objective)
    assert (objective.loss, objective.intercept, objective.coding) == (loss, intercept, coding)
    assert objective.strength(80) == pytest.approx(strength)


@pytest.mark.parametrize(
    "name", ["ridge", "our ridge", "logistic", "our logistic", "our huber", "kernel ridge"]
)
def test_the_fit_is_where_its_objective_says(name):
    """Another point nearby has a larger mean loss + λ‖w‖², by the objective as it is described."""
    model, y, _ = OBJECTIVES[name]
    Z = StandardScaler().fit_transform(X)
    model = model.fit(Z, y)
    subject = subject_of(model)
    objective, form = subject.objective, subject.form.form
    targets = np.where(y == 1, 1.0, -1.0) if subject.task == "classification" else y

    def risk(w, b):
        f = Z @ w + b
        losses = {
            "squared": lambda: (f - targets) ** 2,
            "logistic": lambda: np.logaddexp(0, -targets * f),
            "huber": lambda: np.where(
                np.abs(f - targets) <= 1, (f - targets) ** 2 / 2, np.abs(f - targets) - 0.5
            ),
        }[objective.loss]()
        return (
            losses.mean()
            + objective.strength(80) * w @ w
            + (objective.intercept_strength(80) or 0.0) * b**2
        )

    w, b = form.weights[0], float(form.intercepts[0])
    for step in 1e-2 * np.vstack([np.eye(4), -np.eye(4)]):
        free = 0.0 if objective.intercept == "none" else step[3]
        assert risk(w + step[:3], b + free) >= risk(w, b) - 1e-9


def test_what_stands_around_a_learner():
    scaled = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    cut = FixedThresholdClassifier(
        scaled, threshold=0.3, pos_label=1, response_method="predict_proba"
    ).fit(X, Y)
    subject = subject_of(cut)
    assert isinstance(subject.learner.model, LogisticRegression)
    assert (subject.cut.positive, subject.cut.threshold) == (1, 0.3)
    np.testing.assert_allclose(subject.prepared(X), StandardScaler().fit_transform(X))
    search = GridSearchCV(SVC(), {"C": [1.0]}, cv=2).fit(X, Y)
    assert isinstance(subject_of(search).learner.model, SVC)
    prepared = TransformedTargetRegressor(Ridge(), transformer=StandardScaler()).fit(X, T)
    assert subject_of(prepared).target is prepared.transformer_
    assert subject_of(prepared).objective.loss == "squared"


def test_trees_have_no_gradient_whoever_gathers_them():
    for model in (RandomForestClassifier(3), BaggingClassifier(n_estimators=3)):
        assert "made of trees" in subject_of(model.fit(X, Y)).form.reason


def test_linear_eigenpro_is_linear():
    """It has no ``intercept_``, and was taken for a model that is not fitted."""
    model = LinearEigenProRegressor(random_state=0).fit(X, T)
    np.testing.assert_allclose(score_function(model).gradient(X[:2], [1.0])[0], model.coef_)


class TestOurWrappers:
    def test_an_adversarial_classifier_is_the_one_inside(self):
        model = robust.AdversarialClassifier(LogisticRegression(), radius=0.1, rounds=2).fit(X, Y)
        expected = certified_radii(model.estimator_, X[:5]).values
        np.testing.assert_allclose(certified_radii(model, X[:5]).values, expected)

    def test_a_partition_classifier_is_attacked_by_its_members_gradients(self):
        model = robust.PartitionClassifier(LogisticRegression(), partitions=5).fit(X, Y)
        f = score_function(model)
        assert not f.exact
        h, weights = 1e-5, np.array([0.3, -1.0])
        near = np.array(
            [(f.scores(X[:4] + s) - f.scores(X[:4] - s)) @ weights / (2 * h) for s in h * np.eye(3)]
        ).T
        np.testing.assert_allclose(f.gradient(X[:4], weights), near, rtol=1e-4, atol=1e-7)
        attack = projected_gradient(
            model, X, model.predict(X), radius=2.0, norm="l2", random_state=0
        )
        assert attack.success.mean() > 0.8
        assert (model.predict(attack.rows) != model.predict(X))[attack.success].all()
        with pytest.raises(ValueError, match="a vote of models"):
            certified_radii(model, X)
        trees = robust.PartitionClassifier(partitions=5).fit(X, Y)
        assert "made of trees" in score_function(trees).pullback.reason

    def test_a_private_module_has_autograds_gradients_and_a_radius(self):
        torch = pytest.importorskip("torch")
        from surelearn.optim.dp_module import DPModule

        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        rows = X.astype(np.float32)
        model = DPModule(net, noise_multiplier=0.5, batch_size=40, epochs=5.0, random_state=0).fit(
            rows, Y
        )
        f = score_function(model)
        np.testing.assert_allclose(
            f.scores(rows), model.decision_function(rows), rtol=1e-5, atol=1e-5
        )
        assert f.gradient(rows, [0.0, 1.0]).shape == (80, 3)
        radii = certified_radii(model, rows)
        assert (radii.values > 0).any()
        attack = projected_gradient(
            model, rows, model.predict(rows), radius=4.0, norm="l2", random_state=0
        )
        assert attack.success.any()
        assert (radii.values[attack.success] <= 4.0).all()


def test_a_module_of_a_users_own_class_is_attacked_through_autograd():
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(3, 2)

        def forward(self, x):
            return torch.tanh(self.inner(x)) * 2.0

    torch.manual_seed(0)
    subject = subject_of(Net(), classes=[0, 1])
    said = subject.predict(X)
    attack = projected_gradient(subject, X, said, radius=3.0, norm="l2", random_state=0)
    assert attack.success.mean() > 0.5
    assert (subject.predict(attack.rows) != said)[attack.success].all()
    found = explain(subject, X[:2].astype(np.float32), X[:9].astype(np.float32), target=1)
    assert np.abs(found.values).max() > 0.01


def learners(kind=Learner):
    for one in kind.__subclasses__():
        yield one
        yield from learners(one)


def test_every_learner_describes_itself_in_its_own_file():
    import surelearn.boosting
    import surelearn.cluster
    import surelearn.kernel.random_features
    import surelearn.optim.dp_module  # noqa: F401

    bases = {one for kind in learners() for one in kind.__mro__[1:]}
    lives = {
        kind
        for kind in learners()
        if getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind
    }
    ours = [
        kind for kind in lives if kind.__module__.startswith("surelearn.") and kind not in bases
    ]
    assert len(ours) > 15
    lacking = [kind.__name__ for kind in ours if "_describe" not in vars(kind)]
    assert not lacking, "these learners do not say what they know of themselves"


def test_tokens_and_images_reach_a_module_as_they_are():
    torch = pytest.importorskip("torch")
    import surelearn

    class Words(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.last = torch.nn.Embedding(50, 4), torch.nn.Linear(4, 2)

        def forward(self, x):
            return self.last(self.table(x).mean(1))  # an embedding takes no floats

    class Pictures(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = torch.nn.Conv2d(1, 2, 3), torch.nn.Linear(2 * 36, 2)

        def forward(self, x):
            return self.last(torch.relu(self.first(x[:, None])).flatten(1))  # (n, 8, 8) -> (n, 2)

    torch.manual_seed(0)
    for module, rows in (
        (Words(), RNG.integers(0, 50, (100, 7))),
        (Pictures(), RNG.normal(size=(100, 8, 8))),
    ):
        labels = subject_of(module, classes=[0, 1]).predict(rows)
        certificate = surelearn.certify(module, rows, labels, classes=[0, 1], task="classification")
        assert certificate.claims[0].value < 0.05
    assert subject_of(Words()).inputs.kind == "tokens"
    with pytest.raises(ValueError, match="tokens have no gradient"):
        score_function(Words(), classes=[0, 1]).gradient(RNG.integers(0, 50, (3, 7)), [0.0, 1.0])


def test_the_state_is_what_is_saved_and_makes_the_model_again(tmp_path):
    import json

    import surelearn

    for model in (
        linear.Ridge(regularization=0.3).fit(X, T),
        linear.SupportVectorMachine(kernel="gaussian").fit(X, Y),
    ):
        state = subject_of(model).state
        assert isinstance(state, State)
        again = object.__new__(find_class(state.key))
        vars(again).update(state.values)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        folder = surelearn.save(model, tmp_path / state.key.replace("/", "-"))
        manifest = json.loads((folder / surelearn.persistence.MANIFEST).read_text())
        assert (manifest["class"], manifest["parameters"].keys()) == (
            state.key,
            state.values.keys(),
        )
    for model, why in (
        (LogisticRegression().fit(X, Y), "skops' format"),
        (make_pipeline(StandardScaler(), linear.Ridge()).fit(X, T), "skops' format"),
        (lambda rows: rows, "only what it answers is known"),
        (type("Mine", (linear.Ridge,), {})().fit(X, T), "not under a key"),
    ):
        assert why in subject_of(model).state.reason
    assert "certificate_of measures one" in subject_of(LogisticRegression().fit(X, Y)).record.reason
    assert subject_of(make_pipeline(StandardScaler(), linear.Ridge()).fit(X, T)).record.n == len(X)


def test_a_no_is_a_value():
    """Neither several targets, nor one class, nor a model that does not say its task, ends in
    an exception.
    """
    from sklearn.ensemble import RandomForestClassifier as Forest

    both = subject_of(Forest(3, random_state=0).fit(X, np.c_[Y, THREE]))
    assert both.classes is None
    assert isinstance(both.scores, Lacking)
    one = subject_of(linear.NaiveBayes().fit(X, Y), classes=["only"])
    assert "one class only" in one.scores.reason
    assert "pass task=" in subject_of(lambda rows: rows).task.reason
    with pytest.raises(ValueError, match="pass task="):
        task_of(lambda rows: rows)
