"""Boosters as candidates: any labels, categories without a function in the model, answers by
rounds from one fit; saved, described, audited.
"""

import importlib.util

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import surelearn
from surelearn.fingerprint import fingerprint_model
from surelearn.lacking import Lacking
from surelearn.selection import select
from surelearn.selection.boosters import BoosterClassifier, BoosterRegressor
from surelearn.selection.catalogue import BOOSTERS, catalogue, named_candidates
from surelearn.selection.criteria import NestedFamily
from surelearn.selection.preparation import preparation
from surelearn.subject import subject_of

RNG = np.random.default_rng(0)
N = 400
SHOP = RNG.integers(0, 9, N)
FRAME = pd.DataFrame(
    {
        "size": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
        "shop": pd.Series([f"shop {one}" for one in SHOP], dtype=object),
    }
)
SCORE = FRAME["size"].fillna(0.0) * (SHOP % 3 - 1) + (SHOP % 2) + 0.3 * RNG.normal(size=N)
WORDS = np.where(SCORE > 0.6, "yes", "no")
KINDS = {"size": "number", "shop": "category"}
INSTALLED = [name for name, package in BOOSTERS.items() if importlib.util.find_spec(package)]


@parametrize_with_checks(
    [
        BoosterClassifier(HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3)),
        BoosterRegressor(HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=3)),
    ]
)
def test_scikit_learn_s_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("numbers", [False, True])
def test_categories_are_those_of_scikit_learn_without_its_function(numbers, tmp_path):
    learner = HistGradientBoostingRegressor if numbers else HistGradientBoostingClassifier
    around = BoosterRegressor if numbers else BoosterClassifier
    y = SCORE.to_numpy() if numbers else WORDS
    codes = preparation(KINDS, "native").fit_transform(FRAME)
    theirs = learner(max_iter=20, categorical_features=[0]).fit(codes, y)
    model = make_pipeline(preparation(KINDS, "native"), around(learner(max_iter=20), 1))
    model.fit(FRAME, y)
    ask = "predict" if numbers else "predict_proba"
    assert np.array_equal(getattr(model, ask)(FRAME), getattr(theirs, ask)(codes))
    inside = model[-1].estimator_
    assert inside.is_categorical_.tolist() == [True, False]
    surelearn.save(model, tmp_path / "model")
    again = surelearn.load(tmp_path / "model")
    assert np.array_equal(getattr(again, ask)(FRAME), getattr(model, ask)(FRAME))
    assert fingerprint_model(again) == fingerprint_model(model) is not None
    unseen = FRAME.head(2).assign(shop=["never seen", None], size=np.nan)
    assert len(set(np.asarray(getattr(again, ask)(unseen)).round(12).ravel())) <= 2
    assert len(again.predict(unseen)) == 2


def test_all_columns_may_be_categories():
    codes = preparation({"shop": "category"}, "native").fit_transform(FRAME[["shop"]])
    model = BoosterClassifier(HistGradientBoostingClassifier(max_iter=5), 1).fit(codes, WORDS)
    assert set(model.predict(codes)) <= {"yes", "no"}


@pytest.mark.parametrize("name", [name for name in INSTALLED if name != "CatBoost"])
def test_a_booster_with_words_as_labels_is_saved_described_and_read_by_rounds(name, tmp_path):
    (searched,) = named_candidates([name], "classification", KINDS, N)
    family = searched.members[0]
    assert family.is_staged
    model = family.members()[-1].model.fit(FRAME, WORDS)
    assert model.classes_.tolist() == ["no", "yes"]
    assert np.mean(model.predict(FRAME) == WORDS) > 0.8
    last, rows = model[-1], model[:-1].transform(FRAME)
    few = family.members()[0].model.fit(FRAME, WORDS)
    first, whole = last.predict_proba_at(rows, [family.sizes[0], family.sizes[-1]])
    assert np.allclose(first, few.predict_proba(FRAME), atol=1e-6)
    assert np.array_equal(whole, model.predict_proba(FRAME))
    assert not np.allclose(first, whole, atol=1e-3)
    surelearn.save(model, tmp_path / "model")
    again = surelearn.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(FRAME), whole)
    assert fingerprint_model(again) == fingerprint_model(model)
    form = subject_of(model).form
    assert isinstance(form, Lacking)
    assert "made of trees" in form.reason


@pytest.mark.parametrize("name", INSTALLED)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_booster_takes_part_and_answers_in_the_labels(name, task):
    y = WORDS if task == "classification" else SCORE.to_numpy()
    candidates = named_candidates([name], task, KINDS, N)
    found = select([*candidates], FRAME, y, task=task, n_jobs=1)
    assert found.name == name
    assert name in catalogue(task, KINDS, N)
    constant = np.mean(y != "no") if task == "classification" else np.abs(y - np.median(y)).mean()
    assert found.mean_losses[0] < constant


def test_rounds_of_one_fit_are_those_of_several():
    learner = HistGradientBoostingClassifier(max_iter=12, learning_rate=0.3)
    model = make_pipeline(preparation(KINDS, "native"), BoosterClassifier(learner, 1))
    path = "boosterclassifier__estimator__max_iter"
    family = NestedFamily(model, [4, 12], path)
    assert family.is_staged
    assert not NestedFamily(model, [4, 12], "boosterclassifier__estimator__max_bins").is_staged
    one = select([family], FRAME, WORDS, n_jobs=1, metric="log-loss")
    several = select([*family.members()], FRAME, WORDS, n_jobs=1, metric="log-loss")
    assert np.allclose(one.errors, several.errors)
    assert one.errors[0] != one.errors[1]


def test_boosted_trees_of_the_catalogue_take_categories_where_there_are_some():
    made = catalogue("classification", KINDS, N)["boosted trees"][0].member.model
    assert isinstance(made[-1], BoosterClassifier)
    assert made[-1].categories == 1
    plain = catalogue("classification", {"size": "number"}, N)["boosted trees"][0].member.model
    assert isinstance(plain[-1], HistGradientBoostingClassifier)


def test_what_it_refuses():
    codes = np.zeros((20, 1))
    with pytest.raises(ValueError, match="LogisticRegression has none"):
        BoosterClassifier(LogisticRegression(), 1).fit(codes, np.arange(20) % 2)
    with pytest.raises(ValueError, match="one class only"):
        BoosterClassifier(HistGradientBoostingClassifier()).fit(codes, np.zeros(20))


def test_a_page_about_xgboost_explains_and_attacks_it():
    pytest.importorskip("xgboost")
    frame = FRAME.assign(answer=WORDS)
    found = surelearn.audit(
        frame,
        target="answer",
        models="XGBoost",
        ledger=False,
        effort=0.1,
        curve_repeats=0,
        refits=2,
    )
    held = {section.key: section for section in found.sections}
    assert {"attribution", "robustness"} <= set(held)
    assert not [one for one in found.sections if getattr(one, "error", None)]
    assert isinstance(found.model[-1], BoosterClassifier)


def test_the_page_names_candidates_whose_package_is_missing(monkeypatch):
    from surelearn.selection import catalogue as module

    known = module.is_installed
    monkeypatch.setattr(module, "is_installed", lambda name: name != "xgboost" and known(name))
    skipped = ["performance", "slices", "novelty", "calibration", "stability", "robustness"]
    skipped += ["poisoning", "membership", "attribution", "learning_curve"]
    frame = FRAME.head(200).assign(answer=WORDS[:200])
    found = surelearn.audit(frame, target="answer", ledger=False, skip=skipped, independent=True)
    words = " ".join(map(str, next(s for s in found.sections if s.key == "selection").notes))
    assert "since not installed: XGBoost" in words
    assert "surelearn[boosters]" in words
