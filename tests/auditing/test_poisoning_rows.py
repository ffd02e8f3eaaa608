"""Which rows count most for models without a closed form: a machine's dual steps against
refits, losses, ties and spread.
"""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from surelearn.attacks.influence_margins import dual_influence, steps
from surelearn.auditing.sections.poisoning.influence import influence
from surelearn.auditing.sections.poisoning.words import _aimed, _flipped, _influence
from surelearn.linear import SupportVectorMachine
from surelearn.linear.intercept import arguments_of
from surelearn.subject import subject_of


def halves(load, n=100):
    X, y = load(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:250]
    X = scale(X[rows])
    return X[:n], y[rows][:n], X[n:], y[rows][n:]


def told(model, X, y, new, truth, refits=12, hard=None):
    hard = np.full(len(y), np.nan) if hard is None else hard
    return influence(
        model.fit(X, y), X, y, new, truth, "classification", refits, np.arange(len(y)), hard, 0
    )


class Nearest(ClassifierMixin, BaseEstimator):
    """Gives labels only."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.centers_ = np.array([X[y == label].mean(axis=0) for label in self.classes_])
        return self

    def predict(self, X):
        return self.classes_[((X[:, None] - self.centers_) ** 2).sum(axis=2).argmin(axis=1)]


@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
def test_a_dual_step_is_the_refit_while_the_margin_keeps_its_rows(intercept):
    X, y, new, _ = halves(load_breast_cancer)
    model = SupportVectorMachine(
        C=1.0, kernel="gaussian", bandwidth=0.7071, **arguments_of(intercept), tol=1e-10
    ).fit(X, y)
    dual = subject_of(model).dual
    (one,), kernel = dual.machines, dual.kernel
    changes = steps(one, kernel(X[one.rows], X[one.rows]), kernel(new, X[one.rows]))
    assert one.rows.size > 50
    for at in range(0, one.rows.size, 9):
        keep = np.arange(len(y)) != one.rows[at]
        refit = clone(model).fit(X[keep], y[keep])
        change = refit.decision_function(new) - model.decision_function(new)
        np.testing.assert_allclose(changes[:, at], change, atol=2e-3 * np.abs(change).max() + 1e-7)


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_the_machines_of_scikit_learn_are_read_right(load, kernel):
    X, y, new, _ = halves(load)
    model = SVC(kernel=kernel, C=2.0, class_weight="balanced").fit(X, y)
    dual = subject_of(model).dual
    machines, kappa = dual.machines, dual.kernel
    apart = copy.copy(model)
    apart.decision_function_shape = "ovo"
    scores = np.reshape(apart.decision_function(new), (len(new), -1))
    scores = scores if len(model.classes_) == 2 else -scores
    for k, one in enumerate(machines):
        np.testing.assert_allclose(
            kappa(new, X[one.rows]) @ one.beta + one.bias, scores[:, k], atol=1e-9
        )
        assert (np.abs(one.beta) <= one.most * (1 + 1e-9)).all()


def test_steps_find_the_rows_that_refits_say_count_most():
    X, y, new, truth = halves(load_breast_cancer)
    model = SVC(gamma=1 / 30).fit(X, y)
    found = dual_influence(model, X, new, truth)
    rows, rise = found.rows, found.risk
    sign = np.where(truth == 1, 1.0, -1.0)

    def loss(fitted):
        return np.maximum(1 - sign * fitted.decision_function(new), 0).mean()

    refits = [
        loss(clone(model).fit(np.delete(X, row, 0), np.delete(y, row))) - loss(model)
        for row in rows
    ]
    assert np.corrcoef(refits, rise)[0, 1] > 0.85
    assert np.argmax(np.abs(refits)) in np.argsort(-np.abs(rise))[:4]


def test_every_support_vector_of_a_small_machine_is_left_out():
    X, y, new, truth = halves(load_iris)
    found = told(SVC(), X, y, new, truth)
    model = SVC().fit(X, y)
    assert found["tried"] == model.support_.size > 12
    assert found["chosen"].endswith("the others have no influence")
    assert found["loss"].startswith("hinge loss")
    assert found["noise"] == 0
    other = np.setdiff1d(np.arange(len(y)), model.support_)[0]
    kept = SVC(gamma=model._gamma).fit(np.delete(X, other, 0), np.delete(y, other))
    np.testing.assert_allclose(kept.decision_function(new), model.decision_function(new), atol=0.02)
    probabilities = told(Probable(), X, y, new, truth)
    assert "support vectors" not in probabilities["chosen"]
    many = told(
        SVC(),
        np.tile(X, (16, 1)) + np.random.default_rng(0).normal(size=(1600, 4)),
        np.tile(y, 16),
        new,
        truth,
        4,
    )
    assert "one step of the dual" in many["chosen"]
    assert many["tried"] == 7  # of the work of a machine, more than three refits


class Probable(SVC):
    """A machine with probabilities, which other rows change too."""

    def predict_proba(self, X):
        return np.eye(len(self.classes_))[np.searchsorted(self.classes_, self.predict(X))]


def test_what_is_called_errors_are_errors():
    X, y, new, truth = halves(load_iris)
    model = Nearest()
    found = told(model, X, y, new, truth)
    assert found["loss"] == "error rate"
    assert found["base"] == np.mean(model.predict(new) != truth)
    votes = told(SVC(decision_function_shape="ovo"), X, y, new, truth)
    assert votes["loss"] == "error rate"


def test_rows_that_are_as_easy_as_all_others_are_not_called_hard():
    X, y, new, truth = halves(load_iris)
    model, hard = DecisionTreeClassifier(random_state=0), np.zeros(len(y))
    hard[[40, 60, 77]] = 1.0
    found = told(model, X, y, new, truth, 20, hard)
    assert set(found["rows"]) == {40, 60, 77}
    assert found["chosen"] == " that are hardest to predict"
    drawn = told(model, X, y, new, truth, 8, 0 * hard)
    assert drawn["tried"] == 4
    assert drawn["chosen"].startswith(" drawn at random")
    assert set(drawn["rows"]) != set(range(4))
    # few have a hinge loss: margins tell which are hard
    narrow = told(LinearSVC(), X, y, new, truth, 8)
    margins = LinearSVC().fit(X, y).decision_function(X)
    ranks = np.sort(margins, axis=1)[:, -1] - np.sort(margins, axis=1)[:, -2]
    right = margins.argmax(axis=1) == y
    assert np.where(right, ranks, -ranks)[narrow["rows"]].max() < np.median(ranks)


def finding(change, spread, noise=0.0):
    said = {"method": "refits", "chosen": "", "tried": 9, "loss": "error rate", "base": 0.06}
    return _influence({"changes": [change], "noise": noise, "spread": spread, **said}, 3, 100)


def test_one_more_error_is_no_warning():
    one_in_fifty = np.eye(50)[0]
    spread = one_in_fifty.std(ddof=1) / np.sqrt(50) / 0.06
    few = finding(one_in_fifty.mean() / 0.06, spread)
    assert few.severity == "info"
    assert "within two standard errors over the held-back rows" in few.text
    assert finding(1 / 3, 0.01).severity == "warning"
    assert "two standard errors" not in finding(1 / 3, 0.01).text
    assert finding(1 / 3, 0.01, noise=0.5).severity == "info"
    X, y, new, truth = halves(load_iris)
    found = told(Nearest(), X, y, new, truth)
    assert found["spread"] > 0
    assert (
        abs(found["changes"][0]) <= 2 * found["spread"]
        or found["changes"][0] * found["base"] * len(truth) >= 4
    )


def test_the_spread_over_new_rows_is_that_of_a_refit():
    X, y, new, truth = halves(load_breast_cancer)
    found = told(LogisticRegression(), X, y, new, truth)
    assert found["method"] == "influence function"
    row = found["rows"][0]

    def losses(keep):
        model = LogisticRegression(tol=1e-9, max_iter=10_000).fit(X[keep], y[keep])
        return -np.log(model.predict_proba(new)[np.arange(len(truth)), truth])

    every = np.arange(len(y))
    change = losses(np.delete(every, row)) - losses(every)
    expected = change.std(ddof=1) / np.sqrt(len(change)) / losses(every).mean()
    assert found["spread"] == pytest.approx(expected, rel=0.7)


CLASSES = SimpleNamespace(task="classification", options=SimpleNamespace(miss=None))
NUMBERS = SimpleNamespace(task="regression")


@pytest.mark.parametrize(
    ("risks", "told", "severity"),
    [
        (
            {0.01: [0.05], 0.03: [0.05], 0.1: [0.04], 0.2: [0.2]},
            "20% of the training labels",
            "notice",
        ),
        (
            {0.01: [0.05], 0.03: [0.3], 0.1: [0.11], 0.2: [0.6]},
            "3% of the training labels",
            "warning",
        ),
        (
            {0.01: [0.05], 0.03: [0.07], 0.1: [0.12], 0.2: [0.2]},
            "10% of the training labels",
            "notice",
        ),
        (
            {0.01: [0.05], 0.03: [0.05], 0.1: [0.04], 0.2: [0.06]},
            "10% of the training labels",
            "info",
        ),
    ],
)
def test_the_fraction_that_is_told_of_is_the_one_that_is_judged(risks, told, severity):
    found = _flipped(CLASSES, {0.0: [0.05], **risks})
    assert told in found.text
    assert found.severity == severity
    assert ("does not raise" in found.text) <= (severity == "info")


def test_so_for_rows_that_are_added():
    found = _aimed(CLASSES, {0.03: [0.05, 0.05], 0.1: [0.4, 0.5]}, 0.05, None)
    assert found.severity == "warning"
    assert "10% of rows added" in found.text
    calm = _aimed(NUMBERS, {0.03: [1.0], 0.1: [1.01]}, 1.0, None)
    assert (calm.severity, "3% of rows added" in calm.text) == ("info", True)
