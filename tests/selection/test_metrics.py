"""Metrics beside scikit-learn's, and what is refused."""

import numpy as np
import pytest
from sklearn import metrics as sk

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
