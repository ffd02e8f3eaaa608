"""Metrics beside scikit-learn's, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics as sk

import surelearn
from surelearn.selection import select
from surelearn.selection.metrics import METRICS, Answers, as_metric, fold_value

RNG = np.random.default_rng(0)


def classes(k):
    y = np.array([f"class {i}" for i in RNG.integers(0, k, 300)])
    p = RNG.dirichlet(np.ones(k), 300)
    labels = np.unique(y)
    return Answers(y, labels[p.argmax(axis=1)], p, labels)


THREE, TWO = classes(3), classes(2)
POSITIVE = TWO.y == TWO.classes[1]
X = RNG.normal(size=300)
NUMBERS = Answers(X, X + RNG.normal(size=300), None, np.zeros(0))


@pytest.mark.parametrize(
    ("name", "answers", "expected"),
    [
        ("log-loss", THREE, sk.log_loss(THREE.y, THREE.probabilities)),
        ("accuracy", THREE, 1 - sk.accuracy_score(THREE.y, THREE.predictions)),
        ("balanced-accuracy", THREE, 1 - sk.balanced_accuracy_score(THREE.y, THREE.predictions)),
        ("brier", TWO, 2 * sk.brier_score_loss(POSITIVE, TWO.probabilities[:, 1])),
        ("auc", TWO, 1 - sk.roc_auc_score(POSITIVE, TWO.probabilities[:, 1])),
        (
            "average-precision",
            TWO,
            1 - sk.average_precision_score(POSITIVE, TWO.probabilities[:, 1]),
        ),
        ("f1", TWO, 1 - sk.f1_score(POSITIVE, TWO.predictions == TWO.classes[1])),
        ("absolute", NUMBERS, sk.mean_absolute_error(X, NUMBERS.predictions)),
        ("squared", NUMBERS, sk.mean_squared_error(X, NUMBERS.predictions)),
        ("quantile-0.1", NUMBERS, sk.mean_pinball_loss(X, NUMBERS.predictions, alpha=0.1)),
        ("quantile-0.9", NUMBERS, sk.mean_pinball_loss(X, NUMBERS.predictions, alpha=0.9)),
    ],
)
def test_values_agree_with_scikit_learn(name, answers, expected):
    assert fold_value(METRICS[name], answers) == pytest.approx(expected)


def test_every_metric_is_compared_with_scikit_learn():
    marks = test_values_agree_with_scikit_learn.pytestmark
    assert {case[0] for case in marks[0].args[1]} == set(METRICS)


def test_a_metric_is_about_the_class_that_matters():
    other = Answers(TWO.y, TWO.predictions, TWO.probabilities, TWO.classes, TWO.classes[0])
    expected = 1 - sk.f1_score(~POSITIVE, TWO.predictions == TWO.classes[0])
    assert fold_value(METRICS["f1"], other) == pytest.approx(expected)


def test_one_wrong_and_certain_answer_does_not_cost_infinitely_much():
    sure = Answers(np.array(["b"]), np.array(["a"]), np.array([[1.0, 0.0]]), np.array(["a", "b"]))
    assert fold_value(METRICS["log-loss"], sure) == pytest.approx(6 * np.log(10))


def test_refusals():
    with pytest.raises(ValueError, match="no metric 'auc' for regression: there are absolute"):
        as_metric("auc", "regression", 1)
    with pytest.raises(ValueError, match="metric 'f1' is for two classes, and there are 3"):
        as_metric("f1", "classification", 3)
    silent = Answers(TWO.y, TWO.predictions, None, TWO.classes)
    with pytest.raises(ValueError, match="needs probabilities"):
        fold_value(METRICS["brier"], silent)


def rare(n=900, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-(1.5 * X[:, 0] - 3.2))), "ill", "well")


@pytest.mark.parametrize("metric", ["f1", "balanced-accuracy"])
def test_thresholds_are_the_best_on_rows_not_fitted_on(metric):
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import balanced_accuracy_score, f1_score

    X, y = rare()
    found = select({"linear": LogisticRegression()}, X, y, metric=metric, positive="ill", n_jobs=1)
    p = found.scores[:, 0]

    def value(cut):
        said = np.where(p >= cut, "ill", "well")
        if metric == "f1":
            return 1 - f1_score(y, said, pos_label="ill")
        return 1 - balanced_accuracy_score(y, said)

    every = [value(cut) for cut in np.linspace(0.01, 0.99, 981)]
    assert found.positive == "ill"
    assert value(found.threshold) <= min(every) + 1e-12
    assert value(0.5) > min(every) + 0.05
    # out of fold it is a bit worse than at the threshold that all rows chose, and better than 0.5
    assert min(every) - 0.03 < found.errors[0] < value(0.5)


def test_thresholds_of_a_fold_are_chosen_on_the_others():
    """Probabilities that say nothing: at thresholds that saw the truth F1 would be better."""
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Noise(ClassifierMixin, BaseEstimator):
        def fit(self, _, y):
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X):
            return np.column_stack([X[:, 0], 1 - X[:, 0]])

        def predict(self, X):
            return self.classes_[self.predict_proba(X).argmax(axis=1)]

    errors, inside = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.random((60, 1)), np.where(rng.random(60) < 0.5, "a", "b")
        found = select({"noise": Noise()}, X, y, metric="balanced-accuracy", n_jobs=1)
        errors.append(found.errors[0])
        said = np.where(1 - X[:, 0] >= found.threshold, "b", "a")
        inside.append(np.mean([np.mean(said[y == one] != one) for one in ("a", "b")]))
    assert np.mean(inside) < 0.44
    assert np.mean(errors) == pytest.approx(0.5, abs=0.05)


def test_other_metrics_and_numbers_have_no_threshold():
    from sklearn.linear_model import LogisticRegression

    X, y = rare()
    for metric in ("auc", "log-loss", "accuracy"):
        found = select({"linear": LogisticRegression()}, X, y, metric=metric, n_jobs=1)
        assert found.threshold is None


def test_an_audit_answers_at_the_threshold_of_the_metric():
    from sklearn.model_selection import FixedThresholdClassifier

    X, y = rare()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(state=y)
    found = surelearn.audit(
        frame,
        target="state",
        models="logistic regression",
        metric="f1",
        positive="ill",
        ledger=False,
        effort=0.1,
        curve_repeats=0,
        refits=2,
    )
    assert isinstance(found.model, FixedThresholdClassifier)
    assert 0.02 < found.model.threshold < 0.45
    assert found.model.pos_label == "ill"
    said = next(section for section in found.sections if section.key == "selection").notes
    assert any("out-of-fold" in note and "1 − F1" in note for note in said)
