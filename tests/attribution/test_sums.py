"""Weighted sums of models: exact values against every coalition, one by one."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from surelearn.attribution import explain
from surelearn.linear import Ridge
from surelearn.selection.combined import CombinedRegressor


def table(n=200):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    frame["kind"] = rng.choice(["x", "y", "z"], n)
    y = frame["a"] * frame["b"] + (frame["kind"] == "x") * frame["c"] + rng.normal(size=n)
    return frame, y.to_numpy()


def prepared(model):
    words = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    return make_pipeline(words, model)


def ensemble(*models, weights):
    named = [(str(i), prepared(model)) for i, model in enumerate(models)]
    return CombinedRegressor(named, weights)


def test_an_ensemble_of_trees_and_a_line_is_exact():
    X, y = table()
    members = (
        ExtraTreesRegressor(10, random_state=0),
        HistGradientBoostingRegressor(max_iter=10),
        Ridge(),
    )
    model = ensemble(*members, weights=[0.5, 0.3, 0.2]).fit(X, y)
    rows, background = X[:6], X[50:58]
    closed = explain(model, rows, background, output="value", method="closed form")
    every = explain(model, rows, background, output="value", method="exact")
    assert closed.method.startswith("weighted sum")
    assert closed.names == every.names == ("a", "b", "c", "kind")
    np.testing.assert_allclose(closed.values, every.values, atol=1e-9)
    np.testing.assert_allclose(closed.parts, every.parts, atol=1e-9)
    np.testing.assert_allclose(closed.full - closed.empty, closed.values.sum(axis=1), atol=1e-9)


def test_one_member_without_a_closed_form_leaves_the_whole_without():
    X, y = table()
    model = ensemble(Ridge(), KNeighborsRegressor(3), weights=[0.5, 0.5]).fit(X, y)
    with pytest.raises(ValueError, match="no closed form"):
        explain(model, X[:3], X[10:14], output="value", method="closed form")
    assert explain(model, X[:3], X[10:14], output="value").method.startswith("exact, every")
