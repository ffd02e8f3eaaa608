"""Text as terms and as topics: weights by hand, and beside scikit-learn's."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

import surelearn
from surelearn.selection.text import TextTerms, TextTopics

REVIEWS = ["a fine film, a fine cast", "a dull film", "fine and dull", "", "no film at all"]


def column(texts):
    return np.array(texts, dtype=object)[:, None]


def test_words_weigh_what_scikit_learn_s_sublinear_tf_idf_gives():
    ours = TextTerms(words=2, letters=0, min_rows=1).fit_transform(column(REVIEWS))
    theirs = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True).fit_transform(REVIEWS)
    assert np.allclose(ours.toarray(), theirs.toarray())


def test_runs_of_letters_stand_beside_words_and_names_say_which():
    terms = TextTerms(words=1, letters=4, min_rows=1).fit(column(REVIEWS))
    names = terms.get_feature_names_out(["review"]).tolist()
    assert "review: film" in names
    assert "review: …fil…" in names
    row = terms.transform(column(["film"])).toarray()[0]
    assert len(row) == len(names)
    assert row[names.index("review: film")] == pytest.approx(1.0)  # words have length 1
    both = np.array([name.startswith("review: …") for name in names])
    assert np.linalg.norm(row[both]) == pytest.approx(1.0)  # and runs of letters, too


def test_long_texts_count_words_only():
    names = TextTerms(min_rows=1, most_letters=10).fit(column(REVIEWS)).get_feature_names_out()
    assert not any("…" in name for name in names)


def test_missing_text_and_new_words_have_no_terms():
    terms = TextTerms(min_rows=1).fit(column(REVIEWS))
    assert terms.transform(column([None, float("nan"), "zzzz qqqq"])).nnz == 0


@pytest.mark.parametrize("texts", [["", None, ""], ["?", "!", "."]])
def test_columns_without_a_word_are_a_column_of_zeros(texts):
    for learner in (TextTerms(letters=0), TextTopics()):
        made = learner.fit(column(texts))
        assert np.asarray(abs(made.transform(column(["new words"]))).sum()) == 0
        assert made.transform(column(texts)).shape[1] == len(made.get_feature_names_out())


def test_rare_terms_count_where_there_are_no_others():
    assert len(TextTerms(letters=0).fit(column(["one", "two"])).get_feature_names_out()) == 2


def test_topics_keep_the_inner_products_of_few_texts():
    topics = TextTopics().fit(column(REVIEWS * 2))
    found = topics.transform(column(REVIEWS))
    exact = topics.terms_.transform(column(REVIEWS)).toarray()
    assert np.allclose(found @ found.T, exact @ exact.T)


@pytest.mark.parametrize("learner", [TextTerms(), TextTopics(n_topics=3)])
def test_they_are_saved_without_pickle(learner, tmp_path):
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(learner, LogisticRegression()).fit(
        column(REVIEWS * 3), [1, 0, 1, 0, 0] * 3
    )
    loaded = surelearn.load(surelearn.save(model, tmp_path / "model"))
    assert np.array_equal(
        loaded.predict_proba(column(REVIEWS)), model.predict_proba(column(REVIEWS))
    )


@pytest.mark.parametrize("runs", [(3, 5), (2, 2), (3, 3)])
def test_runs_of_letters_are_scikit_learn_s(runs):
    texts = [*REVIEWS, "A  x\tYZ, été été", "the other film's other end"]
    theirs = TfidfVectorizer(analyzer="char_wb", ngram_range=runs, sublinear_tf=True)
    expected = theirs.fit_transform(texts[:5]), theirs.transform(texts)
    ours = TextTerms(words=0, letters=runs[1], min_rows=1)
    assert np.allclose(ours.fit_transform(column(texts[:5])).toarray(), expected[0].toarray())
    assert np.allclose(ours.transform(column(texts)).toarray(), expected[1].toarray())
    assert [*ours.vocabularies_[0]] == theirs.get_feature_names_out().tolist()


def test_rare_terms_are_left_out_as_by_scikit_learn():
    texts = [*REVIEWS, "dull film, dull cast", "fine film at best"]
    theirs = TfidfVectorizer(ngram_range=(1, 3), sublinear_tf=True, min_df=2)
    ours = TextTerms(words=3, letters=0, min_rows=2)
    expected = theirs.fit_transform(texts)
    assert np.allclose(ours.fit_transform(column(texts)).toarray(), expected.toarray())
    assert [*ours.vocabularies_[0]] == theirs.get_feature_names_out().tolist()
    new = ["a dull film at all", "none"]
    assert np.allclose(ours.transform(column(new)).toarray(), theirs.transform(new).toarray())


def test_the_most_frequent_terms_are_kept():
    texts = ["one two three"] * 3 + ["two three"] * 2 + ["three"]
    terms = TextTerms(words=1, letters=0, min_rows=1, max_terms=2).fit(column(texts))
    assert [*terms.vocabularies_[0]] == ["three", "two"]


def test_long_texts_have_no_pairs():
    texts = ["good film " * 20, "bad film " * 20]
    pairs = TextTerms(letters=0, min_rows=1).fit(column(texts)).get_feature_names_out()
    alone = TextTerms(letters=0, min_rows=1, long_text=150).fit(column(texts))
    assert "x0: good film" in pairs
    assert alone.get_feature_names_out().tolist() == ["x0: bad", "x0: film", "x0: good"]
    assert alone.transform(column(["good film"])).nnz == 2
