"""Preparations that pass words on: columns are told apart, and values are those of the whole
pipeline.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from surelearn.attribution import explain
from surelearn.attribution.pipelines import prepared
from surelearn.linear import NaiveBayes

ALONE = [[0], [1], [2]]


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    made = pd.DataFrame(
        {"size": random.normal(10, 3, 240), "colour": random.choice(["red", "green", "blue"], 240)}
    )
    made["make"] = [None if i % 17 == 0 else random.choice(["a", "b"]) for i in range(240)]
    return made


@pytest.fixture(scope="module")
def answers(table):
    return np.where(
        (table["size"] - 10) / 3 + 2 * (table["colour"] == "red") + (table["make"] == "a") > 1,
        "yes",
        "no",
    )


@pytest.fixture(scope="module", params=["array", "data frame"])
def model(request, table, answers):
    words = make_column_transformer(
        ("passthrough", ["colour", "make"]),
        (StandardScaler(), ["size"]),
        verbose_feature_names_out=False,
    )
    if request.param == "data frame":
        words.set_output(transform="pandas")
    return make_pipeline(words, NaiveBayes(categorical=[0, 1])).fit(table, answers)


def test_words_are_columns_of_their_own(model, table):
    learner, X, background, columns = prepared(
        model, table[:20], table[20:60], ALONE
    ) or pytest.fail("columns are mixed")
    assert learner is model[-1]
    assert columns == [[2], [0], [1]]
    assert np.asarray(X)[:, 0].tolist() == table["colour"][:20].tolist()
    assert (learner.predict(X) == model.predict(table[:20])).all()
    assert len(background) == 40


def test_values_are_those_of_the_whole_pipeline(model, table):
    X, background = table[:6], table[100:130]
    through = explain(model, X, background, output="probability", target="yes")
    whole = explain(lambda rows: model.predict_proba(rows)[:, 1], X, background)
    np.testing.assert_allclose(through.values, whole.values, atol=1e-12)
    score = explain(model, X, background, output="score", method="additive")
    shares = model[-1].contributions(model[:-1].transform(table))[:, [2, 0, 1]]
    np.testing.assert_allclose(score.values, shares[:6] - shares[100:130].mean(axis=0), atol=1e-9)


def test_words_that_are_joined_are_not_told_apart(table, answers):
    def join(rows):
        return np.array(
            [[f"{colour} {make}", size] for size, colour, make in rows.itertuples(index=False)],
            dtype=object,
        )

    model = make_pipeline(FunctionTransformer(join), NaiveBayes(categorical=[0])).fit(
        table, answers
    )
    assert prepared(model, table[:20], table[20:60], ALONE) is None
    found = explain(model, table[:3], table[20:30], output="probability")
    whole = explain(lambda rows: model.predict_proba(rows)[:, 1], table[:3], table[20:30])
    np.testing.assert_allclose(found.values, whole.values, atol=1e-12)


def test_a_model_that_changes_its_words_is_still_found_out(table, answers):
    class Changes(NaiveBayes):
        def predict_proba(self, X):
            X[:, 0] = "red"
            return super().predict_proba(X)

    words = make_column_transformer(("passthrough", ["colour", "make", "size"]))
    model = make_pipeline(words, Changes(categorical=[0, 1])).fit(table, answers)
    with pytest.raises(ValueError, match="the model changes the rows it is given"):
        explain(model, table[:3], table[20:30], output="probability", method="exact")
