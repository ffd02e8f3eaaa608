"""Naive Bayes: its contributions add up, its counts are those of the definition, and it claims
nothing.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from surelearn.certificate import Certificate
from surelearn.linear.naive_bayes import NaiveBayes

SHARED = Path(__file__).parents[3] / "shared" / "data"


# The passenger list of the Board of Trade inquiry (R's `Titanic`): class, sex, age, died, survived.
TITANIC = [
    ("1st", "male", "child", 0, 5), ("1st", "male", "adult", 118, 57),
    ("1st", "female", "child", 0, 1), ("1st", "female", "adult", 4, 140),
    ("2nd", "male", "child", 0, 11), ("2nd", "male", "adult", 154, 14),
    ("2nd", "female", "child", 0, 13), ("2nd", "female", "adult", 13, 80),
    ("3rd", "male", "child", 35, 13), ("3rd", "male", "adult", 387, 75),
    ("3rd", "female", "child", 17, 14), ("3rd", "female", "adult", 89, 76),
    ("crew", "male", "adult", 670, 192), ("crew", "female", "adult", 3, 20),
]  # fmt: skip


def passengers():
    rows = [
        (*row[:3], survived)
        for row in TITANIC
        for survived in (0, 1)
        for _ in range(row[3 + survived])
    ]
    table = pd.DataFrame(rows, columns=["class", "sex", "age", "survived"])
    return table[["class", "age", "sex"]], table["survived"].to_numpy()


def test_titanic_by_hand():
    X, y = passengers()
    assert (len(y), y.sum()) == (2201, 711)
    model = NaiveBayes(smoothing=1e-9).fit(X, y)
    woman = pd.DataFrame([["3rd", "adult", "female"]], columns=X.columns)
    # Of 711 survivors and 1,490 dead: 178 and 528 in 3rd class, 654 and 1,438 adult, 344 and 126
    # female.
    expected = [np.log(a / 711 / (b / 1490)) for a, b in ((178, 528), (654, 1438), (344, 126))]
    np.testing.assert_allclose(model.contributions(woman), [expected], atol=1e-9)
    np.testing.assert_allclose(model.contributions(woman).round(3), [[-0.347, -0.048, 1.744]])
    assert model.prior_[1] == pytest.approx(np.log(711 / 1490), rel=1e-12)
    assert model.predict_proba(woman)[0, 1] == pytest.approx(0.648, abs=5e-4)


def test_the_signs_of_the_notes_example():
    # Example 20.2: −0.344 (3rd class), −0.034 (adult), +1.194 (female), from counts that the notes
    # do not give.
    X, y = passengers()
    ours = (
        NaiveBayes()
        .fit(X, y)
        .contributions(pd.DataFrame([["3rd", "adult", "female"]], columns=X.columns))[0]
    )
    assert ours[0] == pytest.approx(-0.344, abs=0.005)
    assert -0.06 < ours[1] < -0.03
    assert ours[2] > 1.194


@pytest.mark.skipif(
    not (SHARED / "titanic.csv").exists(), reason="shared/data/titanic.csv is not here"
)
def test_titanic_from_the_file():
    table = pd.read_csv(SHARED / "titanic.csv")
    X = pd.DataFrame({"class": table["Pclass"], "sex": table["Sex"]})
    X["age"] = np.where(table["Age"].isna(), None, np.where(table["Age"] < 16, "child", "adult"))
    model = NaiveBayes(categorical="all").fit(X, table["Survived"])
    woman = pd.DataFrame([[3, "female", "adult"]], columns=X.columns)
    assert np.sign(model.contributions(woman)[0]).tolist() == [-1, 1, -1]
    odds = table["Survived"].sum() / (len(table) - table["Survived"].sum())
    for name, value in woman.iloc[0].items():
        # without the rows whose age is missing
        counts = pd.crosstab(X[name], table["Survived"]) + 1
        odds *= counts.loc[value, 1] / counts[1].sum() / (counts.loc[value, 0] / counts[0].sum())
    assert model.predict_proba(woman)[0, 1] == pytest.approx(odds / (1 + odds), rel=1e-12)
    assert odds / (1 + odds) == pytest.approx(0.570, abs=5e-4)
    assert model.score(X, table["Survived"]) > 0.75


def mixed_rows(rng, n, classes):
    y = rng.integers(0, classes, n)
    X = pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue"], n),
            "height": rng.normal(size=n) + y,
            "member": rng.random(n) < 0.2 + 0.2 * y,
            "count": rng.integers(0, 4, n),
        }
    )
    X.loc[rng.random(n) < 0.2, "height"] = np.nan
    X.loc[rng.random(n) < 0.2, "colour"] = None
    return X, np.array(["a", "b", "c", "d"])[y]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_contributions_and_prior_are_the_log_odds(classes, seed):
    X, y = mixed_rows(np.random.default_rng(seed), 60, classes)
    model = NaiveBayes(categorical=["colour", "member", "count"]).fit(X, y)
    parts, chances = model.contributions(X), model.predict_proba(X)
    if classes == 2:
        assert parts.shape == (60, 4)
        np.testing.assert_array_equal(
            model.prior_[1] + parts.sum(axis=1), model.decision_function(X)
        )
        np.testing.assert_allclose(
            model.decision_function(X), np.log(chances[:, 1] / chances[:, 0]), atol=1e-10
        )
    else:
        assert parts.shape == (60, 4, 3)
        np.testing.assert_array_equal(model.prior_ + parts.sum(axis=1), model.decision_function(X))
        np.testing.assert_allclose(
            model.decision_function(X), np.log(chances / chances[:, :1]), atol=1e-10
        )
    np.testing.assert_array_equal(model.predict(X), model.classes_[chances.argmax(axis=1)])


def test_scikit_learn_agrees_on_numbers_and_on_categories():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)) * [1, 10, 0.1], rng.integers(0, 3, 80)
    weights = rng.integers(0, 3, 80)
    ours, theirs = (
        m.fit(X, y, sample_weight=weights) for m in (NaiveBayes(), GaussianNB(var_smoothing=1e-14))
    )
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-8)
    C = rng.integers(0, 4, (80, 3))
    ours = NaiveBayes(categorical="all", smoothing=0.7).fit(C, y, sample_weight=weights + 1)
    theirs = CategoricalNB(alpha=0.7).fit(C, y, sample_weight=weights + 1)
    np.testing.assert_allclose(ours.predict_proba(C), theirs.predict_proba(C), rtol=1e-10)


def test_what_is_missing_or_new_says_nothing():
    X, y = mixed_rows(np.random.default_rng(1), 80, 2)
    model = NaiveBayes().fit(X, y)
    row = pd.DataFrame([["purple", np.nan, None, 1]], columns=X.columns)
    assert model.contributions(row)[0, :3].tolist() == [0, 0, 0]
    seen = X.dropna(subset="height")
    alone = NaiveBayes().fit(seen[["height"]], y[seen.index])
    # fitted on the rows that have a height
    np.testing.assert_array_equal(alone.tables_[0], model.tables_[1])


def test_a_column_without_any_value_is_harmless():
    X = pd.DataFrame({"number": [np.nan] * 4, "word": [None] * 4, "x": [0.0, 0.1, 5.0, 5.1]})
    model = NaiveBayes(categorical=["word"]).fit(X, [0, 0, 1, 1])
    assert model.contributions(X)[:, :2].tolist() == [[0, 0]] * 4
    assert model.predict(X).tolist() == [0, 0, 1, 1]


def test_tables_arrays_and_lists_are_read_alike():
    pl = pytest.importorskip("polars")
    X, y = mixed_rows(np.random.default_rng(2), 50, 2)
    X = X.drop(columns="member")
    expected = NaiveBayes().fit(X, y)
    assert expected.kinds_ == ["categorical", "number", "number"]
    for other in (
        X.astype({"colour": "category"}),
        X.convert_dtypes(),
        pl.from_pandas(X),
        X.to_numpy(),
        X.to_numpy().tolist(),
    ):
        np.testing.assert_allclose(
            NaiveBayes().fit(other, y).predict_proba(other), expected.predict_proba(X), rtol=1e-12
        )
    assert NaiveBayes().fit(X, y).feature_names_in_.tolist() == ["colour", "height", "count"]


def test_whole_numbers_are_one_category_however_stored():
    X, y = pd.DataFrame({"deck": [1, 2, 2, 3]}), [0, 1, 1, 0]
    model = NaiveBayes(categorical=["deck"]).fit(X, y)
    assert model.categories_[0] == ["1", "2", "3"]
    np.testing.assert_array_equal(model.contributions(X.astype(float)), model.contributions(X))
    np.testing.assert_array_equal(
        NaiveBayes(categorical=[0]).fit(X.to_numpy(), y).contributions(X.to_numpy()),
        model.contributions(X),
    )


def test_smoothing_is_laplaces():
    model = NaiveBayes(smoothing=2.0).fit([["a"], ["a"], ["b"], ["c"]], [0, 0, 0, 1])
    np.testing.assert_allclose(np.exp(model.tables_[0][:, 0]), [4 / 9, 3 / 9, 2 / 9])
    np.testing.assert_allclose(np.exp(model.tables_[0][:, 1]), [2 / 7, 2 / 7, 3 / 7])


def test_constant_numbers_stay_finite():
    model = NaiveBayes().fit([[1.0, 0.0], [1.0, 1.0], [1.0, 5.0], [1.0, 5.0]], [0, 0, 1, 1])
    assert np.isfinite(model.contributions([[1.0, 5.0], [2.0, -3.0]])).all()
    assert model.contributions([[1.0, 5.0]])[0, 0] == 0.0


def test_nothing_is_claimed_and_the_certificate_says_why():
    X, y = passengers()
    model = NaiveBayes().fit(X, y)
    certificate = Certificate.from_json(model.certificate_.to_json())
    assert certificate.verify(model)
    assert certificate.verify(model, X, y), certificate.verify(model, X, y)
    assert "other tables" in str(certificate.verify(model, X[1:], y[1:]))
    assert not certificate.claims
    assert "independence of the features" in next(
        a.reason for a in certificate.lacking if a.what == "risk"
    )
    plain = {"kinds": model.kinds_, "categories": model.categories_, "facts": model.facts_}
    assert json.loads(json.dumps(plain)) == plain


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({"smoothing": 0.0}, [["a"], ["b"]], "smoothing must be a number above 0, not 0.0"),
        ({"smoothing": -1}, [["a"], ["b"]], "smoothing must be a number above 0, not -1"),
        ({"variance_floor": 0}, [["a"], ["b"]], "variance_floor must be a number above 0"),
        (
            {"categorical": "some"},
            [["a"], ["b"]],
            "categorical must be 'auto', 'all' or a list of columns, not 'some'",
        ),
        (
            {"categorical": ["deck"]},
            [["a"], ["b"]],
            "categorical names a column that X does not have: 'deck'",
        ),
        (
            {"categorical": [1]},
            [["a"], ["b"]],
            "categorical names a column that X does not have: 1",
        ),
        (
            {"categorical": []},
            [["a"], ["b"]],
            "a column of numbers holds something else: name it in categorical=",
        ),
        ({}, pd.DataFrame({"x": [1.0, np.inf]}), "X must not hold infinite numbers"),
        ({}, pd.DataFrame([[1, 2], [3, 4]], columns=["x", "x"]), "two columns of the same name"),
        ({}, pd.DataFrame({"x": []}), "Found array with 0 sample"),
    ],
)
def test_refusals_name_the_argument(options, X, message):
    with pytest.raises(ValueError, match=message):
        NaiveBayes(**options).fit(X, [0, 1][: len(X)])


def test_words_where_numbers_were_are_refused():
    model = NaiveBayes().fit(pd.DataFrame({"x": [1.0, 2.0]}), [0, 1])
    with pytest.raises(ValueError, match="a column of numbers holds something else"):
        model.predict(pd.DataFrame({"x": ["many"]}))
