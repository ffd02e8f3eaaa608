"""Paths of trees against every coalition; where an output is no sum of trees, it is enumerated
and said so.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from surelearn.attribution import explain

X, Y = make_classification(500, 6, n_informative=4, n_redundant=0, random_state=1)
THREE = Y + (X[:, 0] > 1)
MISSING = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
STEPPED = np.round(X)  # ties with thresholds

ENSEMBLES = [
    (DecisionTreeClassifier(max_depth=5, random_state=0), "probability"),
    (DecisionTreeRegressor(random_state=0), "value"),
    (RandomForestClassifier(12, random_state=0), "probability"),
    (ExtraTreesRegressor(8, random_state=0), "value"),
    (GradientBoostingClassifier(n_estimators=15, random_state=0), "score"),
    (GradientBoostingRegressor(n_estimators=15, subsample=0.5, random_state=0), "value"),
    (HistGradientBoostingClassifier(max_iter=15), "score"),
    (HistGradientBoostingRegressor(max_iter=15), "value"),
]


@pytest.mark.parametrize("value", ["shapley", "banzhaf", ("beta", 4, 1)])
@pytest.mark.parametrize("labels", [Y, THREE], ids=["two", "three"])
@pytest.mark.parametrize(("model", "output"), ENSEMBLES, ids=lambda made: type(made).__name__)
def test_paths_are_all_coalitions(model, output, labels, value):
    model.fit(X, labels)
    quick = explain(model, X[:4], X[100:112], output=output, value=value)
    slow = explain(model, X[:4], X[100:112], output=output, value=value, method="exact")
    assert quick.method == "paths of the trees, exact for this game"
    np.testing.assert_allclose(quick.values, slow.values, atol=1e-9)
    np.testing.assert_allclose(quick.parts, slow.parts, atol=1e-9)
    np.testing.assert_allclose(quick.full, slow.full, atol=1e-9)
    np.testing.assert_allclose(quick.empty, slow.empty, atol=1e-9)


@pytest.mark.parametrize(
    "rows", [MISSING, STEPPED, X.astype(np.float32)], ids=["missing", "ties", "single precision"]
)
@pytest.mark.parametrize(
    "model",
    [HistGradientBoostingClassifier(max_iter=20), RandomForestClassifier(10, random_state=0)],
)
def test_odd_rows_and_groups(model, rows):
    model.fit(rows, Y)
    output = "score" if "Hist" in type(model).__name__ else "probability"
    groups = {"first": [0, 3], "second": [5, 1]}
    quick = explain(model, rows[:4], rows[100:112], output=output, groups=groups)
    slow = explain(model, rows[:4], rows[100:112], output=output, groups=groups, method="exact")
    assert "paths" in quick.method
    np.testing.assert_allclose(quick.values, slow.values, atol=1e-9)


def test_thresholds_are_compared_in_single_precision():
    model = DecisionTreeRegressor().fit([[0.0, 0.0], [1.0, 0.0]], [0.0, 1.0])  # splits at 0.5
    just_above = np.array([[0.5 + 1e-9, 0.0], [0.6, 0.0]])
    made = explain(model, just_above, np.zeros((2, 2)))
    assert "paths" in made.method
    assert made.values.tolist() == [[0.0, 0.0], [1.0, 0.0]]


def test_the_mean_without_parts(monkeypatch):
    model = RandomForestClassifier(5, random_state=0).fit(X, Y)
    whole = explain(model, X[:4], X[100:112])
    monkeypatch.setattr("surelearn.attribution.explaining._KEPT", 0)
    mean = explain(model, X[:4], X[100:112])
    assert mean.parts is None
    np.testing.assert_allclose(mean.values, whole.values, atol=1e-12)


def test_a_boosted_probability_is_enumerated():
    """The probability is no sum of trees: exact by enumeration, and far from what scaled scores
    would say.
    """
    model = HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(X, Y)
    made = explain(model, X[:6], X[100:120])
    assert made.method == "exact, every coalition once"
    assert made.game.startswith("probability of class 1")
    scores = explain(model, X[:6], X[100:120], output="score")
    scaled = scores.values * ((made.full - made.empty) / (scores.full - scores.empty))[:, None]
    np.testing.assert_allclose(made.gap, 0, atol=1e-12)
    np.testing.assert_allclose(scaled.sum(axis=1), made.values.sum(axis=1), atol=1e-9)
    assert np.abs(scaled - made.values).max() > 0.02


def test_a_subclass_that_says_something_else_is_enumerated():
    class Clipped(RandomForestClassifier):
        def predict_proba(self, X):
            return np.clip(super().predict_proba(X), 0.2, 0.8)

    Clipped.__module__ = "sklearn.ensemble._forest"
    Clipped.__name__ = "RandomForestClassifier"
    model = Clipped(5, random_state=0).fit(X, Y)
    assert explain(model, X[:3], X[100:110]).method == "exact, every coalition once"


def test_beside_shap():
    if "shap" not in sys.modules:
        pytest.importorskip("shap", reason="shap is a peer, not a dependency")
    import shap

    model = RandomForestClassifier(10, max_depth=4, random_state=0).fit(X, Y)
    theirs = shap.TreeExplainer(
        model, X[100:112], feature_perturbation="interventional"
    ).shap_values(X[:4])
    np.testing.assert_allclose(explain(model, X[:4], X[100:112]).values, theirs[..., 1], atol=1e-6)
