"""Candidates that begin alike share the prepared columns of a fold: same results, fewer fits."""

from collections import Counter
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder
from sklearn.tree import DecisionTreeClassifier

from surelearn.selection import prepared, select
from surelearn.selection.catalogue import named_candidates
from surelearn.selection.preparation import preparation, reads_columns_alone
from surelearn.selection.prepared import Alike, groups_of
from surelearn.selection.prepared import prepared as rows_of

problem = import_module("surelearn.selection.criteria.problem")
KINDS = {"x": "number", "town": "category", "said": "text"}


def table(n=160, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    words = np.array(["good", "bad", "so so", "never again", "fine"])
    frame = pd.DataFrame(
        {"x": x, "town": rng.choice(["a", "b", "c"], n), "said": rng.choice(words, n)}
    )
    frame.loc[rng.random(n) < 0.1, "x"] = np.nan
    return frame, np.where(x + rng.normal(size=n) > 0, "yes", "no")


def candidates():
    return {
        "bayes": make_pipeline(preparation(KINDS), GaussianNB()),
        "tree": make_pipeline(preparation(KINDS), DecisionTreeClassifier(random_state=0)),
        "boosting's columns": make_pipeline(
            preparation(KINDS, "trees"), DecisionTreeClassifier(random_state=0)
        ),
    }


class Scribbler(ClassifierMixin, BaseEstimator):
    """Writes to the rows that it is given."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        X[:] = np.nan
        return self

    def predict(self, X):
        X[:] = np.nan
        return np.repeat(self.classes_[0], len(X))

    def predict_proba(self, X):
        return np.full((len(X), self.classes_.size), 1 / self.classes_.size)


@pytest.fixture
def counted(monkeypatch):
    """How often columns were prepared for whom."""
    found = Counter()
    before = prepared._prepare

    def counting(model, X, train, test):
        found[len(train)] += 1
        return before(model, X, train, test)

    monkeypatch.setattr(prepared, "_prepare", counting)
    return found


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_are_those_without_sharing(monkeypatch, n_jobs):
    X, y = table()
    by_name = ["naive Bayes", "logistic regression", "kernel SVM", "boosted trees"]
    many = named_candidates(by_name, "classification", KINDS, len(y))
    shared = select(many, X, y, task="classification", random_state=3, n_jobs=n_jobs)
    monkeypatch.setattr(problem, "groups_of", lambda _: {})
    alone = select(many, X, y, task="classification", random_state=3, n_jobs=1)
    assert shared.name == alone.name
    assert shared.errors == alone.errors
    assert shared.mean_losses == alone.mean_losses
    assert np.array_equal(shared.scores, alone.scores)


def test_each_fold_is_prepared_once_for_those_that_are_alike(counted):
    X, y = table()
    select(candidates(), X, y, task="classification", n_jobs=1)
    assert (
        sum(counted.values()) == 3 * 5
    )  # five folds, three times (few rows); "trees" stands alone
    assert prepared._Kept.by_preparation == {}  # nothing is kept


def test_a_learner_that_writes_to_its_rows_harms_no_other():
    X, y = table()
    alone = select(candidates(), X, y, task="classification", n_jobs=1)
    with_one = {"scribbler": make_pipeline(preparation(KINDS), Scribbler()), **candidates()}
    beside = select(with_one, X, y, task="classification", n_jobs=1)
    assert beside.errors[1:] == alone.errors


def test_what_reads_the_target_or_chance_is_not_shared():
    of_target = make_pipeline(ColumnTransformer([("t", TargetEncoder(), ["town"])]), GaussianNB())
    assert groups_of({"one": of_target, "two": of_target}) == {}
    assert not reads_columns_alone(make_pipeline(StandardScaler(), TargetEncoder()))
    assert not reads_columns_alone(DecisionTreeClassifier())


def test_other_preparations_and_other_folds_are_told_apart():
    X, _ = table()
    few, many = (make_pipeline(preparation(KINDS, r), GaussianNB()) for r in ("few", "many"))
    groups = groups_of({"a": few, "b": few, "c": many, "d": many})
    assert groups["a"] == groups["b"] != groups["c"]
    first, rest = np.arange(100), np.arange(100, 160)
    for fold, (train, test) in enumerate([(first, rest), (rest, first)]):
        for name, model in (("a", few), ("c", many)):
            _, seen, new = rows_of(model, X, train, test, Alike("here", fold, groups[name]))
            expected = model.steps[0][1].fit(X.iloc[train])
            for found, rows in ((seen, train), (new, test)):
                one, other = found, expected.transform(X.iloc[rows])
                one, other = (m.toarray() if hasattr(m, "toarray") else m for m in (one, other))
                np.testing.assert_array_equal(one, other)
    prepared.forget()
