"""Words of texts: contributions beside the model's own scores, and words that were planted."""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import surelearn
from surelearn.attribution import words
from surelearn.lacking import Lacking
from surelearn.selection.combined import CombinedClassifier
from surelearn.selection.preparation import preparation
from surelearn.selection.terms import inside_words, runs
from surelearn.subject import subject_of

PLAIN = ["the", "film", "plot", "actor", "scene", "music", "story", "with", "its", "and"]
KINDS = {"review": "text", "stars": "number", "title": "text"}


def reviews(n=300, classes=("bad", "good"), seed=0):
    """Each class has a word of its own in its reviews."""
    rng = np.random.default_rng(seed)
    y = rng.integers(len(classes), size=n)
    planted = np.array([f"planted{label}" for label in classes])
    texts = [" ".join([*rng.choice(PLAIN, 7), planted[k], "(the-end)"]) for k in y]
    texts[3] = "a - !"
    X = pd.DataFrame({"review": texts, "stars": rng.normal(size=n), "title": rng.choice(PLAIN, n)})
    return X, np.array(classes, dtype=object)[y]


def linear(learner=None, kinds=KINDS):
    return make_pipeline(preparation(kinds, "many"), learner or LogisticRegression())


def check_sums(found, model, X, background):
    """Contributions of the words and of the rest sum to the model's score less its mean."""
    scores = model.decision_function(X).reshape(len(X), -1)
    means = model.decision_function(background).reshape(len(background), -1).mean(axis=0)
    assert np.allclose(found.scores, scores)
    assert np.allclose(found.mean_scores, means)
    for i in range(len(X)):
        assert np.allclose(found.contributions(i).sum(axis=1) + found.rest(i), scores[i] - means)


@pytest.mark.parametrize("classes", [("bad", "good"), ("a", "b", "c", "d")])
def test_contributions_sum_to_the_score_less_its_mean(classes):
    X, y = reviews(classes=classes)
    model = linear().fit(X[:200], y[:200])
    found = words(model, X[200:], X[:200])
    check_sums(found, model, X[200:], X[:200])
    shares = found.shares
    assert shares.words + shares.rare + shares.letters + shares.others == pytest.approx(1)
    assert 0 < shares.others < shares.words
    assert shares.letters < 0.02  # runs of letters lie in words
    for k, output in enumerate(found.outputs):
        first = found.leading(k, 1)[0]
        if found.direction[k, first] > 0:
            assert (found.columns[first], found.words[first]) == ("review", f"planted{output}")
    assert found.outputs == (classes if len(classes) > 2 else ("good",))


def test_a_word_has_the_runs_of_letters_in_it():
    """Alone, runs of letters or whole words would each have a part of what a planted word does."""
    X, y = reviews()
    model = linear(kinds={"review": "text"}).fit(X, y)
    found = words(model, X)
    step = model[0].transformers_[0][1]
    form = subject_of(model).terms
    row = next(i for i, text in enumerate(X["review"]) if "plantedgood" in text)
    values = form.prepare(X).toarray()[row]
    names = step.get_feature_names_out(["review"]).tolist()
    inside = {f"review: …{run}…" for run in runs(["plantedgood"], 3, 5).names(np.arange(30))}
    (at,) = [i for i, word in enumerate(found.words) if word == "plantedgood"]
    by_hand = sum(
        form.weights[0, j] * values[j]
        for j, name in enumerate(names)
        if name == "review: plantedgood" or (name in inside and _only_in(name, X["review"][row]))
    )
    shared = [name for name in names if name in inside and not _only_in(name, X["review"][row])]
    added = found.contributions(row)[0, at] + found._means[0, at]
    slack = sum(abs(form.weights[0, names.index(name)]) for name in shared)
    assert abs(added - by_hand) <= slack
    assert added > form.weights[0, names.index("review: plantedgood")] * 0.3


def _only_in(name, text):
    run = name.removeprefix("review: …").removesuffix("…")
    return not any(run in f" {word} " for word in text.lower().split() if word != "plantedgood")


def test_shares_of_runs_sum_to_one():
    texts = ["red bed, red-bed", "a bed", "- -"]
    counted = runs(texts, 3, 4)
    names = counted.names(np.arange(counted.counts.shape[1]))
    found = inside_words(texts, {name: i for i, name in enumerate(names)}, 3, 4)
    total = np.zeros(counted.counts.shape)
    np.add.at(total, (found.row, found.run), found.share)
    expected = (counted.counts.toarray() > 0).astype(float)
    expected[:, names.index(" a ")] = 0  # in no word
    expected[:, names.index(" - ")] = 0
    assert np.allclose(total, expected)
    # " red-bed " has "d-b" of both words
    at = (found.row == 0) & (found.run == names.index("d-b"))
    assert sorted(zip([found.words[w] for w in found.word[at]], found.share[at], strict=True)) == [
        ("bed", 0.5),
        ("red", 0.5),
    ]


def test_words_of_fewer_rows_or_groups_are_not_told():
    X, y = reviews()
    X.loc[10:13, "review"] += " fourtimes"
    X.loc[20:24, "review"] += " fivetimes"
    model = linear().fit(X, y)
    found = words(model, X)
    assert "fivetimes" in found.words
    assert "fourtimes" not in found.words
    assert not any("fourtimes" in word for word in found.words)
    assert "fourtimes" in words(model, X, min_rows=4).words
    groups = np.arange(len(X))
    groups[20:24] = 20  # two of five rows belong together: too few groups
    of_groups = words(model, X, groups=groups)
    assert "fivetimes" not in of_groups.words
    assert "plantedgood" in of_groups.words
    check_sums(of_groups, model, X, X)
    forest = make_pipeline(preparation({"review": "text"}), RandomForestClassifier(5)).fit(X, y)
    left = words(forest, X, groups=groups)
    assert not {"fourtimes", "fivetimes"} & set(left.words)


def test_scikit_learn_s_vectorizers():
    X, y = reviews()
    texts = X["review"].to_numpy()
    for steps in (
        (TfidfVectorizer(),),
        (CountVectorizer(ngram_range=(1, 2)), TfidfTransformer(), MaxAbsScaler()),
    ):
        model = make_pipeline(*steps, LogisticRegression()).fit(texts, y)
        found = words(model, texts)
        check_sums(found, model, texts, texts)
        assert all(found.words[at].startswith("planted") for at in found.leading(0, 2))
        assert set(found.columns) == {"text"}
    by_letters = make_pipeline(TfidfVectorizer(analyzer="char_wb"), LogisticRegression())
    found = words(by_letters.fit(texts, y), texts)
    assert found.words == ()
    assert found.shares.letters == pytest.approx(1)
    assert "no word stands in 5 background rows" in str(found)
    mixed = make_column_transformer(
        (StandardScaler(), ["stars"]), (TfidfVectorizer(), "review"), sparse_threshold=0
    )
    model = make_pipeline(mixed, LogisticRegression()).fit(X, y)
    found = words(model, X)
    check_sums(found, model, X, X)
    assert set(found.columns) == {"review"}


def test_models_around_a_linear_one_say_whose_words_these_are():
    X, y = reviews()
    inside = linear().fit(X, y)
    plain = words(inside, X)
    cut = FixedThresholdClassifier(linear(), threshold=0.3).fit(X, y)
    assert np.allclose(words(cut, X).importance, plain.importance)
    once = CombinedClassifier([("linear", linear())], [0.7], pool="logarithmic").fit(X, y)
    found = words(once, X)
    assert np.allclose(found.importance, plain.importance)
    assert found.calibrated
    assert found.member is None
    forest = make_pipeline(preparation(KINDS), RandomForestClassifier(5, random_state=0))
    several = CombinedClassifier([("forest", forest), ("linear", once)], [3.0, 1.0]).fit(X, y)
    found = words(several, X)
    assert found.member == ("linear", 0.25)
    assert "of linear, one of 2 models, weight 25%" in str(found)
    assert np.allclose(found.importance, plain.importance)
    calibrated = CalibratedClassifierCV(linear(), cv=2).fit(X, y)
    found = words(calibrated, X)
    check_sums(found, calibrated.calibrated_classifiers_[0].estimator, X, X)
    assert found.members == 2
    voted = VotingClassifier([("forest", forest), ("linear", linear())], weights=[1, 3]).fit(X, y)
    assert words(voted, X).member == ("linear", 0.75)
    both = [("a light one", linear()), ("heavy", linear(LogisticRegression(C=0.01)))]
    heavy = words(CombinedClassifier(both, [1.0, 3.0]).fit(X, y), X)
    assert heavy.member == ("heavy", 0.75)
    assert heavy.importance.sum() < 0.5 * plain.importance.sum()


def test_words_are_left_out_where_scores_add_up_no_terms():
    X, y = reviews()
    model = make_pipeline(preparation(KINDS), RandomForestClassifier(20, random_state=0)).fit(X, y)
    found = words(model, X)
    assert found.method == "occlusion"
    assert found.why
    assert {found.words[at] for at in found.leading(0, 2)} == {"plantedbad", "plantedgood"}
    at = found.words.index("plantedgood")
    has = X["review"].str.contains("plantedgood")
    without = X.assign(review=X["review"].str.replace("plantedgood", " "))
    change = (model.predict_proba(X) - model.predict_proba(without))[has, 1]
    assert found.direction[0, at] == pytest.approx(change.mean(), abs=0.15)
    assert found.importance[0, at] == pytest.approx(np.abs(change).mean() * has.mean(), abs=0.15)
    refused = words(model, X, method="exact")
    assert isinstance(refused, Lacking)
    with pytest.raises(ValueError, match="no contribution in every row"):
        found.contributions(0)
    arrays = words(model[-1], model[0].transform(X))
    assert isinstance(arrays, Lacking)
    assert "no column of texts" in arrays.reason


def test_a_function_and_a_regressor_are_asked_by_leaving_words_out():
    X, y = reviews()

    class Counts:
        classes_ = np.array(["bad", "good"])

        def predict_proba(self, rows):
            good = np.array(["plantedgood" in text for text in rows["review"]], dtype=float)
            return np.stack([1 - good, good], axis=1)

        def predict(self, rows):
            return self.classes_[self.predict_proba(rows).argmax(axis=1)]

    found = words(Counts(), X)
    (first,) = found.leading(0)
    assert found.words[first] == "plantedgood"
    has = X["review"].str.contains("plantedgood").mean()
    assert found.importance[0, first] == pytest.approx(has)
    number = linear(Ridge()).fit(X, (y == "good") * 2.0)
    made = words(number, X)
    assert made.outputs == ("prediction",)
    total = made.contributions(0).sum() + made.rest(0)[0]
    assert total == pytest.approx(number.predict(X)[0] - number.predict(X).mean())


def test_the_same_again_and_after_saving(tmp_path):
    X, y = reviews()
    for model in (linear(), make_pipeline(preparation(KINDS), RandomForestClassifier(5))):
        fitted = model.fit(X, y)
        one, two = (words(fitted, X[:100], X, random_state=3) for _ in range(2))
        assert one.words == two.words
        assert np.array_equal(one.importance, two.importance)
        assert str(one) == str(two)
    ours = surelearn.linear.LogisticRegression(regularization=0.01)
    ours = linear(ours).fit(X, y)
    surelearn.save(ours, tmp_path / "model")
    again = surelearn.load(tmp_path / "model")
    assert np.allclose(words(again, X).importance, words(ours, X).importance)


def test_wrong_arguments():
    X, y = reviews(40)
    model = linear().fit(X, y)
    with pytest.raises(ValueError, match="method must be"):
        words(model, X, method="best")
    with pytest.raises(ValueError, match="min_rows"):
        words(model, X, min_rows=0)
    with pytest.raises(ValueError, match="no column 'nothing'"):
        words(model, X, method="occlusion", columns=["nothing"])
