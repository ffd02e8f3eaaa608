"""Prediction sets through `certify`: coverage near the worst case, in total and per class, wrong uses,
what each label is scored by, and every number of their certificate.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from tests.simulation import at_most, more_than
from tests.test_verified_to_the_bottom import edit, numbers, read

import surelearn
from surelearn.auditing.answers import audit_answers
from surelearn.bounds import conformal_rank_pac
from surelearn.certification import uncounted
from surelearn.operating import PredictionSets
from surelearn.operating.sets import SCORES, choose_score, from_words, in_words, nonconformity
from surelearn.plain import content_hash
from surelearn.subject.recorded import RecordedScores

CLASSES = (0, 1, 2)


class Shares:
    """A model whose probabilities of three classes are its columns."""

    classes_ = np.array(CLASSES)

    def predict(self, X):
        return X.argmax(axis=1)

    def predict_proba(self, X):
        return X


def rows(rng, n, prior=(0.5, 0.3, 0.2)):
    """Truths, and probabilities of them that are uniform on (0, 1): of the true label p, the other two
    share the rest.
    """
    y, p = rng.choice(3, n, p=prior), rng.random(n)
    X = np.repeat(((1 - p) / 2)[:, None], 3, axis=1)
    X[np.arange(n), y] = p
    return X, y


def certified(X, y, **options):
    with uncounted():
        return surelearn.certify(Shares(), X, y, **{"sets": 0.1, "majority": 0, **options})


def missed(sets, label=0):
    """The part of new rows whose true label is outside: its score is −ln p, and p uniform."""
    cut = sets.thresholds[label if sets.per_class else 0]
    return math.exp(-cut)


# ── coverage near the worst case ─────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_coverage_fails_with_nearly_the_stated_probability_and_no_more():
    """With continuous scores the rank is exact: P(Bin(n, 0.9) ≥ k) just below its δ."""
    n, delta, rng, trials = 157, 0.8, np.random.default_rng(1), 800
    share = delta / 4
    exact = binom.sf(conformal_rank_pac(n, 0.1, share) - 1, n, 0.9)
    assert 0.99 * share < exact <= share
    wrong = shifted = 0
    for _ in range(trials):
        X, y = rows(rng, n)
        made = certified(X, y, delta=delta)
        assert made["set_coverage"].delta == pytest.approx(share)
        wrong += missed(made.sets) > 0.1
        # a mutant: the rank of a coverage that holds on average only
        own = np.sort(1 - X[np.arange(n), y])
        shifted += 1 - own[math.ceil((n + 1) * 0.9) - 1] > 0.1
    assert at_most(wrong, share, trials), wrong
    assert more_than(wrong, share / 2, trials), wrong
    assert more_than(shifted, share, trials), shifted


@pytest.mark.slow
def test_coverage_of_each_class_holds_together():
    n, delta, rng, trials = 300, 0.8, np.random.default_rng(1), 250
    wrong, one = 0, 0
    for _ in range(trials):
        X, y = rows(rng, n)
        made = certified(X, y, delta=delta, per_class=True)
        assert made["class_coverage"].delta == pytest.approx(delta / 12)
        off = [missed(made.sets, label) > 0.1 for label in CLASSES]
        wrong, one = wrong + any(off), one + off[0]
    assert at_most(wrong, delta / 4, trials), wrong
    assert at_most(one, delta / 12, trials), one
    assert more_than(wrong, delta / 16, trials), wrong  # near it: the ranks leave a part of δ


def test_a_random_row_of_a_new_group_is_covered():
    """All rows of a group have one score: rows that count one by one would claim far too much."""
    groups, size, delta, rng, trials = 101, 20, 0.8, np.random.default_rng(2), 120
    wrong = rowwise = 0
    for _ in range(trials):
        X, y = rows(rng, groups)
        X, y = np.repeat(X, size, axis=0), np.repeat(y, size)
        made = certified(X, y, delta=delta, groups=np.repeat(np.arange(groups), size))
        assert made["set_coverage"].inputs["n"] == groups
        wrong += missed(made.sets) > 0.1
        own = np.sort(1 - X[np.arange(len(y)), y])
        rowwise += 1 - own[int(conformal_rank_pac(len(y), 0.1, delta / 4)) - 1] > 0.1
    assert at_most(wrong, delta / 4, trials), wrong
    assert more_than(rowwise, delta / 4, trials), rowwise
    assert "new group" in made["set_coverage"].covers.population


# ── wrong uses ───────────────────────────────────────────────────────────────────────────────────────


def test_a_mutant_that_chooses_the_score_by_the_certified_rows_covers_too_few():
    """Of ten scores that say nothing, the one with the smallest sets on these rows."""
    n, delta, rng, trials, tried = 101, 0.8, np.random.default_rng(3), 150, 10
    before = after = 0
    for _ in range(trials):
        X, y = rows(rng, n)
        off = [missed(certified(X, y, delta=delta).sets)]
        before += off[0] > 0.1
        for _ in range(tried - 1):  # other scores of the same rows, which are others' probabilities
            own = np.sort(rng.random(n))
            off.append(1 - own[int(conformal_rank_pac(n, 0.1, delta / 4)) - 1])
        after += max(off) > 0.1
    assert at_most(before, delta / 4, trials), before
    assert more_than(after, delta / 4, trials), after


def test_another_score_on_the_same_rows_is_told():
    X, y = rows(np.random.default_rng(16), 400)
    made = [surelearn.certify(Shares(), X, y, sets=0.1, set_score=score) for score in SCORES]
    told = [certificate.facts.setting.partition("candidates=")[2] for certificate in made]
    assert told == ["", "2", "3", "4"]


def test_recorded_scores_pay_for_either_reading():
    """That they lie between 0 and 1 is read from the certified rows, and decides what a label is
    scored by.
    """
    rng = np.random.default_rng(5)
    y = rng.random(400) < 0.5
    p = np.clip(0.25 + 0.5 * y + 0.2 * rng.normal(size=400), 0, 1)
    labels, frame = np.where(y, "yes", "no"), pd.DataFrame({"p": p})
    model = RecordedScores("p", ("no", "yes"), "x", positive="yes", threshold=0.5)
    made = surelearn.certify(model, frame, labels, sets=0.2)
    scores = nonconformity("probability", np.column_stack([1 - p, p]))
    of_truth = np.sort(scores[np.arange(400), y.astype(int)])
    rank = int(conformal_rank_pac(400, 0.2, 0.0125 / 2))
    assert rank > conformal_rank_pac(400, 0.2, 0.0125)
    assert made.sets.thresholds == (of_truth[rank - 1],)
    assert made.verify(model, frame, labels)


def test_what_a_label_is_scored_by_is_chosen_without_certified_rows(monkeypatch):
    """`audit` hands over the out-of-fold rows only: twice as many rows, and no certified one."""
    seen = []

    def spy(probabilities, codes, alpha, certified, delta, *, per_class):
        seen.append((len(probabilities), len(codes), certified))
        return "ratio"

    monkeypatch.setattr("surelearn.auditing.walking.choose_score", spy)
    made = surelearn.audit("iris", models="naive Bayes", sets=0.3, ledger=False, effort=0.01, refits=0,
                           curve_repeats=0, skip=("robustness", "poisoning", "membership", "attribution"))  # fmt: skip
    rows = made.certificate.facts["rows"]
    assert seen == [(made.rows - rows, made.rows - rows, rows)]
    assert made.certificate.facts.options["set_score"] == "ratio"


# ── labels that no set can hold, classes with few rows ───────────────────────────────────────────────


def test_a_label_that_the_model_does_not_know_is_missed_and_counts():
    X, y = rows(np.random.default_rng(4), 400)
    some = certified(X, np.where(np.arange(400) < 5, 9, y), unseen=[9])
    assert some.facts["set.unknown"] == 5
    assert some.sets.thresholds[0] >= certified(X, y).sets.thresholds[0]
    many = certified(X, np.where(np.arange(400) < 60, 9, y), unseen=[9])
    assert many.sets is None
    assert [one.reason for one in many.lacking if one.what == "set_coverage"] == [
        "too many rows have a label that the model does not know"
    ]
    each = certified(X, np.where(np.arange(400) < 60, 9, y), unseen=[9], per_class=True)
    assert [claim.label[-1] for claim in each.claims if claim.quantity == "class_coverage"] == ["0", "1", "2"]  # fmt: skip


def test_a_class_with_too_few_rows_is_in_every_set():
    """ln(δ/12)/ln 0.9 = 52.1 rows; the class that no row has is there, too."""
    X, y = rows(np.random.default_rng(5), 400)
    keep = (y == 0) | (np.cumsum(y == 1) <= 52) & (y == 1)
    made = certified(X[keep], y[keep], per_class=True)
    cuts = made.sets.thresholds
    assert cuts[0] is not None
    assert cuts[1:] == (None, None)
    reasons = [one.reason for one in made.lacking if one.what == "class_coverage"]
    assert reasons == [
        "52 rows where it is 1 are fewer than the 53 that are needed: it is in every set",
        "0 rows where it is 2 are fewer than the 53 that are needed: it is in every set",
    ]
    assert made.sets.members(Shares(), X)[:, 1:].all()
    keep |= np.cumsum(y == 1) == 53
    assert certified(X[keep], y[keep], per_class=True).sets.thresholds[1] is not None


def test_too_few_rows_give_no_sets():
    X, y = rows(np.random.default_rng(6), 41)  # ln(δ/4)/ln 0.9 = 41.6
    assert certified(X, y).sets is None
    X, y = rows(np.random.default_rng(6), 42)
    assert certified(X, y)["set_coverage"].value == 0.9


# ── what a label is scored by ────────────────────────────────────────────────────────────────────────


def test_scores_by_hand_and_by_enumeration():
    rng = np.random.default_rng(7)
    p = rng.dirichlet(np.ones(6), 30)
    p[:5] = np.repeat([[0.25, 0.25, 0.2, 0.1, 0.1, 0.1]], 5, axis=0)  # ties share a place
    for score in SCORES:
        found = nonconformity(score, p)
        for i, row in enumerate(p):
            for c, mine in enumerate(row):
                more = row[row > mine]
                want = {
                    "probability": -math.log(mine),
                    "ratio": math.log(row.max() / mine),
                    "cumulative": more.sum(),
                    "regularized": more.sum() + 0.1 * more.size,
                }[score]
                assert found[i, c] == pytest.approx(want, abs=1e-11)


def test_the_smaller_sets_are_chosen_and_an_empty_set_is_no_smaller_than_one_label():
    """Right in 97 of 100 rows: of sets by 1 − p some are empty, by the ratio each has one label."""
    rng, m = np.random.default_rng(8), 2000
    y, top = rng.integers(2, size=m), rng.uniform(0.6, 1.0, m)
    right = rng.random(m) < 0.97
    p = np.where(
        (np.arange(2) == np.where(right, y, 1 - y)[:, None]), top[:, None], 1 - top[:, None]
    )
    assert choose_score(p, y, 0.1, 500, 0.01, per_class=False) == "ratio"
    p = rng.dirichlet(np.ones(5), m)  # the truth is drawn by them, and no sets are smaller
    y = (rng.random(m)[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(0, 4)
    assert choose_score(p, y, 0.1, 500, 0.01, per_class=False) == "probability"
    assert choose_score(p[:0], y[:0], 0.1, 500, 0.01, per_class=True) == "probability"


def test_a_model_with_decision_values_only_has_sets():
    X, y = make_classification(600, n_classes=3, n_informative=5, random_state=0)
    for classes in (2, 3):
        keep = y < classes
        A, b = X[keep], y[keep]
        model = LinearSVC().fit(A[::2], b[::2])
        made = surelearn.certify(model, A[1::2], b[1::2], sets=0.1)
        assert made.verify(model, A[1::2], b[1::2])
        inside = made.sets.members(model, A[1::2])
        assert inside[np.arange(len(inside)), b[1::2]].mean() >= 0.9
        assert inside.mean() < 1


def test_a_row_without_probabilities_does_not_change_what_the_others_are_scored_by():
    class Both(Shares):
        def decision_function(self, X):
            return 9 * np.nan_to_num(X)

    X, y = rows(np.random.default_rng(13), 200)
    with uncounted():
        sets = surelearn.certify(Both(), X, y, sets=0.1).sets
    alone = sets.members(Both(), X)
    assert 0.9 <= alone[np.arange(200), y].mean() < 1
    X[-1] = np.nan
    with pytest.raises(ValueError, match="some of the model's probabilities are NaN"):
        sets.members(Both(), X)
    with pytest.raises(ValueError, match="some of the model's probabilities are NaN"), uncounted():
        surelearn.certify(Both(), X, y, sets=0.1)


def test_a_model_with_labels_only_has_none():
    X, y = rows(np.random.default_rng(9), 50)
    with pytest.raises(ValueError, match="prediction sets need probabilities"):
        surelearn.certify(lambda A: A.argmax(axis=1), X, y, task="classification", classes=[0, 1, 2], sets=0.1)  # fmt: skip


# ── words ────────────────────────────────────────────────────────────────────────────────────────────


def test_sets_as_text_are_read_back():
    rng = np.random.default_rng(10)
    letters = list('ab|\\e,\n"é')
    for _ in range(300):
        labels = ["".join(rng.choice(letters, rng.integers(4))) for _ in range(rng.integers(4))]
        assert from_words(in_words(labels)) == labels
    assert in_words(["a", "b"]) == "a|b"


def test_labels_come_with_the_most_probable_first_and_are_read_back():
    X, y = rows(np.random.default_rng(11), 200)
    sets = certified(X, y).sets
    listed = sets.labels(Shares(), X)
    assert all(sorted(row, key=lambda c, p=p: -p[c]) == list(row) for row, p in zip(listed, X, strict=True))  # fmt: skip
    inside = sets.read([in_words(row) for row in listed])
    assert (inside == sets.members(Shares(), X)).all()
    with pytest.raises(ValueError, match="'7', which is no label of the model"):
        sets.read(["1|7"])


# ── the certificate ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("options", [{}, {"per_class": True}, {"set_score": "cumulative"}])
def test_every_edited_number_is_found(options):
    X, y = rows(np.random.default_rng(12), 300)
    made = certified(X, y, **options)
    assert made.verify(Shares(), X, y)
    plain = json.loads(made.to_json())
    assert read(plain).sets == made.sets
    assert made.sets.score == options.get("set_score", "probability")
    of_sets = [path for path in numbers(plain["facts"]) if "set" in str(path)]
    assert len(of_sets) >= 6
    for path in of_sets:
        changed = read(edit(plain, ("facts", *path)))
        assert changed is None or not changed.verify(Shares(), X, y), path


def test_an_edited_coverage_is_found_by_the_file_alone():
    """Fewer rows are covered than the rank; another δ found the threshold; another α was stated."""
    X, y = rows(np.random.default_rng(13), 300)
    plain = json.loads(certified(X, y).to_json())
    values = {("values", "set.covered"): 250, ("options", "sets_delta"): 0.02,
              ("options", "sets"): 0.05, ("values", "set.threshold"): None}  # fmt: skip
    for (part, name), value in values.items():
        facts = {**plain["facts"], part: {**plain["facts"][part], name: value}}
        changed = {**plain, "facts": facts}
        changed = {**changed, "hash": content_hash(changed)}
        assert read(changed) is None or not read(changed).verify(), name


def test_without_the_option_nothing_changes():
    X, y = rows(np.random.default_rng(14), 100)
    with uncounted():
        plain = surelearn.certify(Shares(), X, y).to_json()
    assert not [name for name in ("set_score", '"sets"', "per_class", '"set.') if name in plain]
    assert "class_coverage" not in plain


def test_candidates_share_the_delta_of_the_sets():
    X, y = rows(np.random.default_rng(15), 300)
    made = certified(X, y, candidates=4)
    assert made["set_coverage"].inputs["delta"] == pytest.approx(0.05 / 4 / 4)
    assert made.sets.thresholds[0] > certified(X, y).sets.thresholds[0]
    assert made.verify(Shares(), X, y)


def test_sets_stand_beside_an_operating_point():
    X, y = rows(np.random.default_rng(16), 900)
    made = certified(X, y, require="error <= 0.3", thresholds=[0.9, 0.8, 0.7, 0.6])
    assert {"selective_error", "answered", "set_coverage"} <= {c.quantity for c in made.claims}
    assert math.fsum(claim.delta for claim in made.together) <= 0.05 + 1e-12
    assert made.verify(Shares(), X, y)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sets": 0}, "sets must lie strictly between 0 and 1, not 0"),
        ({"sets": "0.1"}, "sets must lie strictly between 0 and 1, not '0.1'"),
        ({"sets": None, "per_class": True}, "per_class goes with sets"),
        ({"set_score": "best"}, "set_score must be one of probability, ratio, cumulative"),
        ({"weights": np.ones(60), "weight_bound": 2.0}, "do not go with weights"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(options, said):
    X, y = rows(np.random.default_rng(17), 60)
    with pytest.raises(ValueError, match=said):
        certified(X, y, **options)


def test_sets_are_about_labels():
    with pytest.raises(ValueError, match="sets are about labels"):
        surelearn.certify(
            lambda A: A[:, 0], [[1.0], [2.5]], [1.5, 2.0], task="regression", sets=0.1
        )
    with pytest.raises(ValueError, match="sets goes with a model"):
        surelearn.certify(losses=[0.1, 0.2], sets=0.1)


def test_sets_are_the_same_in_pieces():
    X, y = make_classification(500, n_classes=4, n_informative=6, random_state=1)
    model = LogisticRegression().fit(X[:200], y[:200])
    sets = surelearn.certify(model, X[200:], y[200:], sets=0.1).sets
    assert isinstance(sets, PredictionSets)
    whole = sets.labels(model, X[200:])
    assert [row for one in X[200:] for row in sets.labels(model, one[None])] == whole


def test_a_label_with_any_name_is_verified():
    X, y = rows(np.random.default_rng(14), 300)
    labels = np.array(["a.covered", "b]", ".threshold"])

    class Named(Shares):
        classes_ = labels

        def predict(self, X):
            return labels[X.argmax(axis=1)]

    with uncounted():
        made = surelearn.certify(Named(), X, labels[y], sets=0.1, per_class=True, task="classification")  # fmt: skip
    assert sum(claim.quantity == "class_coverage" for claim in made.claims) == 3
    assert made.verify(Named(), X, labels[y])


def test_what_is_promised_is_never_rounded_up():
    """0.9996 is no 100.0%."""
    X, y = rows(np.random.default_rng(15), 15_000)
    frame = pd.DataFrame(X, columns=["p_a", "p_b", "p_c"]).assign(y=np.array(list("abc"))[y])
    page = audit_answers(frame, truth="y", probability="p_*", sets=0.0004, ledger=False).to_html()
    assert "99.9% of new rows have their true label in their set" in page
    assert "100.0% of new rows" not in page
