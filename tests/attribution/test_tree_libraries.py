"""Boosted trees of every library, with native categories and missing values: values by paths are
those by all coalitions of what the model itself says.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from surelearn.attribution import explain
from surelearn.selection.boosters import BoosterClassifier, BoosterRegressor
from surelearn.subject import Lacking, subject_of
from surelearn.subject.trees import Trees

RNG = np.random.default_rng(0)
N = 400
LETTERS = np.array(list("uvwxyz"))


def _numbers():
    """Columns of numbers: missing ones, zeros, and whole numbers 0 … 5 that stand for words."""
    X = RNG.normal(size=(N, 5))
    X[::5, 1] = np.nan
    X[::3, 2] = 0.0
    X[:, 4] = RNG.integers(0, 6, N)
    return X


X = _numbers()
Y = (np.nan_to_num(X[:, 0] * X[:, 1]) > 0).astype(int) ^ (X[:, 4] % 2 == 0)
THREE = Y + (X[:, 2] > 0.5)
AMOUNT = 100 * np.nan_to_num(X).sum(axis=1) + 1000
FRAME = pd.DataFrame(X, columns=list("abcde")).assign(
    e=pd.Categorical(LETTERS[X[:, 4].astype(int)]), f=pd.Categorical(RNG.choice([3, 5, 9], N))
)
WORDS = FRAME.astype({"e": str, "f": str})


def check(model, rows, background, output, tol=1e-9, **options):
    """By paths and by all coalitions; the sum is the output less its mean over the background."""
    quick = explain(model, rows, background, output=output, method="closed form", **options)
    slow = explain(model, rows, background, output=output, method="exact", **options)
    assert quick.method == "paths of the trees, exact for this game"
    scale = tol * max(1.0, float(np.abs(slow.full).max()))
    np.testing.assert_allclose(quick.values, slow.values, rtol=0, atol=scale)
    np.testing.assert_allclose(quick.parts, slow.parts, rtol=0, atol=scale)
    np.testing.assert_allclose(
        quick.values.sum(axis=1), slow.full - slow.empty, rtol=0, atol=2 * scale
    )
    return quick


def halves(rows):
    """A few rows to explain, and background rows."""
    return (
        (rows.iloc[:4], rows.iloc[100:110])
        if hasattr(rows, "columns")
        else (rows[:4], rows[100:110])
    )


HISTOGRAMS = {
    "names": ({"categorical_features": "from_dtype"}, FRAME),
    "numbers": ({"categorical_features": [4]}, X),
    "no categories": ({}, X),
}


@pytest.mark.parametrize("kind", HISTOGRAMS)
@pytest.mark.parametrize("labels", [Y, THREE], ids=["two", "three"])
def test_histogram_boosting_with_native_categories(kind, labels):
    options, rows = HISTOGRAMS[kind]
    model = HistGradientBoostingClassifier(max_iter=10, **options).fit(rows, labels)
    assert kind == "no categories" or (subject_of(model).trees.decisions.chosen >= 0).any()
    check(model, *halves(rows), "score")


def test_histogram_boosting_of_amounts():
    model = HistGradientBoostingRegressor(max_iter=10, categorical_features="from_dtype")
    check(model.fit(FRAME, AMOUNT), *halves(FRAME), "value")
    model.set_params(loss="poisson").fit(FRAME, AMOUNT - AMOUNT.min())  # exp of the sum
    made = explain(model, *halves(FRAME), output="value")
    assert made.method == "exact, every coalition once"


LIGHTGBM = {
    "numbers": ({}, X),
    "zero is missing": ({"zero_as_missing": True}, X),
    "nothing is missing": ({"use_missing": False}, X),
    "categories by number": ({"min_data_per_group": 5}, X),
    "categories by name": ({"min_data_per_group": 5, "max_cat_to_onehot": 1}, FRAME),
    "whole numbers": ({}, (X[:, [0, 2, 4]] * 1000).astype(int)),
    "forest": ({"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}, X),
    "dropout": ({"boosting_type": "dart"}, X),
}


@pytest.mark.parametrize("kind", LIGHTGBM)
def test_lightgbm(kind):
    lightgbm = pytest.importorskip("lightgbm")
    options, rows = LIGHTGBM[kind]
    words = [4] if kind == "categories by number" else "auto"
    shared = {"n_estimators": 10, "n_jobs": 1, "verbose": -1, "cat_smooth": 1, **options}
    for labels in (Y, THREE):
        model = lightgbm.LGBMClassifier(**shared).fit(rows, labels, categorical_feature=words)
        check(model, *halves(rows), "score")
    model = lightgbm.LGBMRegressor(**shared).fit(rows, AMOUNT, categorical_feature=words)
    check(model, *halves(rows), "value")


def test_lightgbm_of_lines_is_enumerated():
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMRegressor(n_estimators=3, n_jobs=1, verbose=-1, linear_tree=True)
    made = explain(model.fit(np.nan_to_num(X), AMOUNT), *halves(np.nan_to_num(X)), output="value")
    assert made.method == "exact, every coalition once"


XGBOOST = {
    "numbers": ({}, X),
    "zero is missing": ({"missing": 0.0}, np.nan_to_num(X)),
    "categories by number": ({"feature_types": ["q"] * 4 + ["c"], "max_cat_to_onehot": 1}, X),
    "categories by name": ({}, FRAME),
    "dropout": ({"booster": "dart", "rate_drop": 0.3}, X),
    "fine differences": ({}, np.round(X, 2) + 1e-9 * RNG.normal(size=X.shape)),
}


@pytest.mark.parametrize("kind", XGBOOST)
def test_xgboost(kind):
    xgboost = pytest.importorskip("xgboost")
    options, rows = XGBOOST[kind]
    shared = {"n_estimators": 10, "n_jobs": 1, "enable_categorical": True, **options}
    for labels in (Y, THREE):
        model = xgboost.XGBClassifier(**shared).fit(rows, labels)
        check(model, *halves(rows), "score", tol=1e-5)  # it adds up in single precision
    check(xgboost.XGBRegressor(**shared).fit(rows, AMOUNT), *halves(rows), "value", tol=1e-5)


def test_xgboost_forests_and_the_best_round():
    xgboost = pytest.importorskip("xgboost")
    forest = xgboost.XGBRFClassifier(n_estimators=10, n_jobs=1).fit(X, THREE)
    check(forest, *halves(X), "score", tol=1e-5)
    early = xgboost.XGBClassifier(n_estimators=200, n_jobs=1, early_stopping_rounds=2)
    early.fit(X[:200], Y[:200], eval_set=[(X[200:], ~Y[200:].astype(bool))], verbose=False)
    assert early.best_iteration < 5
    check(early, *halves(X), "score", tol=1e-5)


def test_thresholds_of_xgboost_are_compared_in_single_precision():
    xgboost = pytest.importorskip("xgboost")
    rows = np.array([[0.0], [1.0]] * 20)
    model = xgboost.XGBRegressor(n_estimators=1, n_jobs=1, min_child_weight=0).fit(rows, rows[:, 0])
    threshold = float(subject_of(model).trees.decisions.threshold[0])
    just_above = np.nextafter(threshold, 1.0)  # the same in single precision: left
    over = float(np.nextafter(np.float32(threshold), np.float32(1.0)))  # right
    made = explain(model, np.array([[just_above], [over]]), np.zeros((1, 1)), output="value")
    assert "paths" in made.method
    assert made.values[0, 0] == 0.0
    assert made.values[1, 0] > 0.1


CATBOOST = {
    "numbers": ({}, X),
    "missing ones above all": ({"nan_mode": "Max"}, X),
    "one by one": ({"one_hot_max_size": 9}, WORDS),
    "statistics": ({"max_ctr_complexity": 1}, WORDS),
    "both": ({"one_hot_max_size": 3, "max_ctr_complexity": 1}, WORDS),
    "trees of any shape": ({"grow_policy": "Lossguide", "nan_mode": "Max"}, X),
    "level by level": ({"grow_policy": "Depthwise"}, X),
}


@pytest.mark.parametrize("kind", CATBOOST)
def test_catboost(kind):
    catboost = pytest.importorskip("catboost", reason="CatBoost is in an extra of its own")
    options, rows = CATBOOST[kind]
    words = ["e", "f"] if hasattr(rows, "columns") else None
    shared = {"iterations": 12, "depth": 4, "thread_count": 1, "verbose": 0}
    shared |= {"allow_writing_files": False, "cat_features": words, **options}
    for labels in (Y, THREE):
        model = catboost.CatBoostClassifier(**shared).fit(rows, labels)
        check(model, *halves(rows), "score")
    check(catboost.CatBoostRegressor(**shared).fit(rows, AMOUNT), *halves(rows), "value")


def test_catboost_splits_that_combine_columns_are_exact_if_one_player_holds_them():
    catboost = pytest.importorskip("catboost", reason="CatBoost is in an extra of its own")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({name: rng.choice(list("klm"), 300) for name in "ab"})
    rows = rows.assign(c=rng.normal(size=300), d=rng.normal(size=300))
    options = {"thread_count": 1, "verbose": 0, "allow_writing_files": False}
    options |= {"model_size_reg": 0, "max_ctr_complexity": 4, "random_seed": 0}
    model = catboost.CatBoostClassifier(iterations=20, cat_features=["a", "b"], **options)
    model.fit(rows, rows["a"] == rows["b"])
    combined = {source for source in subject_of(model).trees.sources if len(source) > 1}
    assert (0, 1) in combined
    assert combined < {(0, 1), (0, 2), (1, 2), (0, 1, 2), (0, 3)}
    with pytest.raises(ValueError, match="no closed form"):
        explain(model, *halves(rows), output="score", method="closed form")
    check(model, *halves(rows), "score", groups={"together": ["a", "b", "c"]})


def unseen(rows):
    """Rows with a category that was not there when the model was fitted."""
    rows = rows.copy()
    words = np.where(np.arange(len(rows)) % 3 == 0, "new", rows["e"].astype(str))
    return rows.assign(e=pd.Categorical(words, categories=["new", *LETTERS]))


def test_categories_that_were_not_there_in_the_fit():
    rows, background = map(unseen, halves(FRAME))
    model = HistGradientBoostingClassifier(max_iter=10, categorical_features="from_dtype")
    check(model.fit(FRAME, Y), rows, background, "score")
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_jobs=1, verbose=-1, min_data_per_group=5, cat_smooth=1)
    check(model.fit(FRAME, Y), rows, background, "score")
    numbers = X[:6].copy()
    numbers[:, 4] = [9, -1, np.nan, 2.6, 40, 3]
    model.fit(X, Y, categorical_feature=[4])
    check(model, numbers, X[100:110], "score")


def test_a_name_that_xgboost_has_no_answer_for_is_enumerated():
    """XGBoost 3.2 takes it for the first of its names, or refuses it, by its spelling."""
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(n_estimators=10, n_jobs=1, enable_categorical=True).fit(FRAME, Y)
    rows, background = map(unseen, halves(FRAME))
    assert isinstance(subject_of(model).trees.decisions.coded(rows), Lacking)
    made = explain(model, rows, background, output="score")
    assert made.method == "exact, every coalition once"


def test_a_pipeline_groups_what_it_makes_of_a_column():
    lightgbm = pytest.importorskip("lightgbm")
    prepare = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["e", "f"]), remainder="passthrough"
    )
    inner = lightgbm.LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1)
    model = make_pipeline(prepare, inner)
    model[:-1].set_output(transform="pandas")
    model.fit(WORDS, THREE)
    made = check(model, *halves(WORDS), "score")
    assert made.names == tuple("abcdef")
    whole = explain(
        lambda rows: inner.predict(prepare.transform(rows), raw_score=True),
        *halves(WORDS),
        target=0,
        method="exact",
    )
    own = explain(model, *halves(WORDS), output="score", target=0)
    np.testing.assert_allclose(own.values, whole.values, atol=1e-9)


@pytest.mark.parametrize("library", ["sklearn", "lightgbm", "xgboost"])
def test_the_audits_candidates(library):
    """Any labels, the first columns as categories, a data frame of numbers too."""
    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    inside = {
        "sklearn": (HistGradientBoostingClassifier(max_iter=10), 1),
        "lightgbm": (lightgbm.LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1), 0),
        "xgboost": (xgboost.XGBClassifier(n_estimators=10, n_jobs=1), 0),
    }
    estimator, categories = inside[library]
    model = BoosterClassifier(estimator, categories)
    for rows in (X[:, ::-1], pd.DataFrame(X[:, ::-1], columns=list("edcba"))):
        model.fit(rows, np.array(["no", "yes"])[Y])
        made = check(model, *halves(rows), "score", tol=1e-5)
        assert "class 'yes'" in made.game
    amounts = BoosterRegressor(HistGradientBoostingRegressor(max_iter=10), 1)
    check(amounts.fit(X[:, ::-1], AMOUNT), *halves(X[:, ::-1]), "value")


def test_a_search_around_trees_is_seen_through():
    lightgbm = pytest.importorskip("lightgbm")
    search = GridSearchCV(
        lightgbm.LGBMClassifier(n_jobs=1, verbose=-1), {"n_estimators": [3, 5]}, cv=2
    )
    check(search.fit(X, Y), *halves(X), "score")


@pytest.mark.parametrize("value", ["banzhaf", ("beta", 4, 1)])
def test_other_values_and_groups(value):
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1).fit(FRAME, Y)
    groups = {"words": ["e", "f"], "numbers": ["a", "c"]}
    rows, background = halves(FRAME)
    options = {"output": "score", "groups": groups, "value": value}
    quick = explain(model, rows, background, method="closed form", **options)
    slow = explain(model, rows, background, method="exact", **options)
    np.testing.assert_allclose(quick.values, slow.values, atol=1e-9)


def test_the_probability_is_no_sum_of_trees():
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1).fit(X, Y)
    assert explain(model, *halves(X)).game.startswith("probability")
    assert explain(model, *halves(X)).method == "exact, every coalition once"


def test_trees_that_are_not_the_model_are_not_used(monkeypatch):
    """Columns that are taken for each other leave every sum as it is; mixtures tell."""
    model = HistGradientBoostingClassifier(max_iter=5).fit(X, Y)
    trees = subject_of(model).trees
    assert isinstance(trees, Trees)
    swapped = tuple(reversed(trees.sources))
    monkeypatch.setattr("surelearn.subject.sklearn_trees.trees_from", lambda *_, **__: trees)
    assert "paths" in explain(model, *halves(X), output="score").method
    object.__setattr__(trees, "sources", swapped)
    assert explain(model, *halves(X), output="score").method == "exact, every coalition once"


def test_beside_shap():
    shap = pytest.importorskip("shap", reason="shap is a peer, not a dependency")
    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    for model in (
        lightgbm.LGBMClassifier(n_estimators=20, n_jobs=1, verbose=-1),
        xgboost.XGBClassifier(n_estimators=20, n_jobs=1),
    ):
        rows, background = halves(X)
        peer = shap.TreeExplainer(
            model.fit(X, Y), background, feature_perturbation="interventional"
        )
        ours = explain(model, rows, background, output="score").values
        np.testing.assert_allclose(ours, peer.shap_values(rows), atol=1e-5)
