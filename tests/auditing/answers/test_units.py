"""From columns to units: what is missing counts against the answers, and what cannot be is refused in
one sentence.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from surelearn.auditing.answers import Roles, audit_answers, read_units
from surelearn.auditing.answers.units import NO_ANSWER, NO_LABEL, NO_MAJORITY
from surelearn.auditing.options import OptionError
from surelearn.bounds import clopper_pearson, clopper_pearson_lower
from surelearn.data import DataError

N = 60


def frame(**columns):
    """Sixty rows of two labels, with an answer that is wrong in six, and other columns."""
    truth = np.where(np.arange(N) % 3 == 0, "ill", "well").astype(object)
    said = truth.copy()
    said[:6] = "well"
    return pd.DataFrame({"id": np.arange(N), "t": truth, "a": said}).assign(**columns)


def audited(source, **given):
    return audit_answers(source, ledger=False, **given)


# ── what is counted ──────────────────────────────────────────────────────────────────────────────


def test_a_missing_answer_is_a_wrong_one():
    table = frame()
    table.loc[[10, 11, 13], "a"] = None
    audit = audited(table, truth="t", answer="a")
    wrong = int((table["a"] != table["t"]).sum())
    claim = audit.certificate["risk"]
    assert claim.inputs["errors"] == wrong == 5
    assert claim.value == clopper_pearson(wrong, N, claim.delta)
    assert any(f.code == "SL120" and f.numbers["rows"] == 3 for f in read(table).findings)


def read(table, **roles):
    return read_units(table, Roles(**({"truth": "t", "answer": "a"} | roles)))


def test_rows_without_a_label_are_left_out_and_counted():
    table = frame()
    table.loc[:9, "t"] = None
    units = read(table)
    assert len(units.y) == len(units.X) == len(units.beside) == N - 10
    assert [f.numbers["rows"] for f in units.findings if f.code == "SL110"] == [10]


def test_a_word_that_is_no_label_is_wrong_and_its_spelling_is_told():
    table = frame()
    table.loc[30:34, "a"] = "ILL "
    units = read(table)
    assert "ILL" in units.unseen
    assert units.classes == ("ill", "well")
    assert [f.numbers["rows"] for f in units.findings if f.code == "SL121"] == [5]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_whole_numbers_are_labels_however_a_missing_one_made_them_floats(kind):
    truth = [1, 0, 0] * 20
    said = [1.0, 0.0, None] * 20
    units = read(kind({"t": truth, "a": said}))
    assert units.classes == ("0", "1")
    assert set(units.model.predict(units.X).tolist()) == {"0", "1", NO_ANSWER}


def test_raters_are_a_majority_and_a_tie_is_a_wrong_answer():
    raters = {
        "anna": ["a", "b", "a", None] * 20,
        "ben": ["a", "a", "b", None] * 20,
        "eva": ["a", "b", None, None] * 20,
    }
    table = pd.DataFrame({**raters, "said": ["a", "b", "a", "a"] * 20})
    units = read(table, truth=("anna", "ben", "eva"), answer="said")
    assert units.y.tolist() == ["a", "b", NO_MAJORITY] * 20
    certificate = audited(table, truth=("anna", "ben", "eva"), answer="said").certificate
    assert certificate["risk"].inputs["errors"] == 20
    errors = {c.label: c for c in certificate.together if c.quantity == "rater_error"}
    assert [c.inputs["n"] for c in errors.values()] == [60, 60, 40]
    assert [c.inputs["errors"] for c in errors.values()] == [0, 40, 0]
    agreement = next(c for c in certificate.together if c.quantity == "rater_agreement")
    assert (agreement.inputs["errors"], agreement.inputs["n"]) == (20, 60)
    # each rater's claim has a third of what the agreement has
    assert [c.delta for c in errors.values()] == pytest.approx([agreement.delta / 3] * 3)


def test_of_several_guesses_the_first_counts_and_top_k_beside_it():
    table = frame(b=["ill"] * N)
    certificate = audited(table, truth="t", answer=("a", "b")).certificate
    assert certificate["risk"].inputs["errors"] == 2
    assert certificate["top_k_error"].inputs["errors"] == 0


def test_sets_of_labels_are_right_as_a_whole_and_label_by_label():
    truth = ["x;y", "x", ";", "x", None] * 15
    said = ["y; x", "x;y", ";", None, None] * 15
    audit = audited(pd.DataFrame({"t": truth, "a": said}), truth="t", answer="a", separator=";")
    assert audit.certificate["mean_grade"].inputs["successes"] == 30
    assert audit.certificate["mean_grade"].inputs["n"] == 60
    wrong = {c.label[:3]: c.inputs["errors"] for c in audit.certificate.together if c.family}
    assert wrong == {"x w": 15, "y w": 15}


def test_duels_count_a_tie_half_and_a_missing_winner_as_lost():
    winner = ["new"] * 30 + ["old"] * 20 + ["Tie"] * 20 + [None] * 10
    audit = audited(pd.DataFrame({"w": winner, "n": range(80)}), winner="w", ours="new")
    claim = audit.certificate["mean_grade"]
    assert claim.theorem == "betting_lower"  # 0, 1/2 and 1 are no counts
    assert claim.measured == pytest.approx((30 + 10) / 80)


def test_grades_that_are_missing_are_the_worst_and_those_of_the_other_the_best():
    table = pd.DataFrame({"g": [8.0] * 50 + [None] * 10, "h": [4.0] * 30 + [None] * 30})
    certificate = audited(table, grade="g", loss_range=(1, 10), against="h").certificate
    assert certificate["mean_grade"].measured == pytest.approx((50 * 8 + 10 * 1) / 60)
    assert certificate["gain"].measured == pytest.approx((410 - 30 * 4 - 30 * 10) / 60)


def test_a_score_of_many_classes_is_of_one_against_the_rest():
    table = pd.DataFrame({"t": ["a", "b", "c"] * 30, "p": [0.9, 0.2, 0.4] * 30})
    audit = audited(table, truth="t", score="p", positive="b")
    assert set(audit.certificate.facts.options["classes"]) == {"b", "not b"}
    assert audit.certificate["sensitivity"].inputs["successes"] == 0


def test_scores_that_are_no_probabilities_need_a_threshold_and_rank():
    table = frame(s=np.where(np.arange(N) % 3 == 0, 3.0, -40.0))
    given = {"truth": "t", "score": "s", "positive": "ill"}
    with pytest.raises(DataError, match="outside 0 to 1: state --threshold"):
        audited(table, **given)
    audit = audited(table, threshold=0.0, **given)
    assert audit.certificate["risk"].inputs["errors"] == 0
    assert audit.certificate["auc"].measured == 1.0
    quantities = {claim.quantity for claim in audit.certificate.together}
    assert not quantities & {"brier_score", "log_loss", "calibration"}


def test_drawn_rows_without_a_label_leave_only_claims_that_they_speak_against():
    table = frame(w=1.0)
    table.loc[:2, "t"] = None
    given = {"truth": "t", "answer": "a", "weight": "w", "weight_bound": 1.5}
    audit = audited(table, **given)
    assert {claim.quantity for claim in audit.certificate.together} == {"risk"}
    assert audit.certificate["risk"].measured == pytest.approx(
        4 / N
    )  # row 3, and rows 0 to 2 without a label
    assert any("have no label" in lack.reason for lack in audit.certificate.lacking)
    assert "drawn from" in audit.certificate["risk"].covers.population
    assert audit.verdict.text.startswith("In the file that these rows were drawn from")
    whole = audited(frame(w=1.0), **given)
    assert "class_error" in {claim.quantity for claim in whole.certificate.together}


def test_with_coins_rows_without_a_label_weigh_nothing():
    table = frame(w=2.0)
    table.loc[1::2, "t"] = None
    units = read(table, weight="w", weight_bound=2.0, coin=True)
    assert units.y[1] == NO_LABEL
    assert units.weights.tolist() == [2.0, 0.0] * (N // 2)
    audit = audited(table, truth="t", answer="a", weight="w", weight_bound=2.0, coin=True)
    wrong = int((table["a"] != table["t"])[::2].sum())
    assert audit.certificate["risk"].measured == pytest.approx(2 * wrong / N)


def test_slices_are_values_or_stated_ranges():
    table = frame(site=["A", "B"] * (N // 2), age=np.linspace(20, 80, N))
    certificate = audited(table, truth="t", answer="a", slices=("site", "age:40,60")).certificate
    slices = {claim.about("slice") for claim in certificate.together if claim.family == "slice"}
    assert slices == {"site = A", "site = B", "age ≤ 40", "40 < age ≤ 60", "age > 60"}


def test_a_pass_rate_is_clopper_pearsons():
    table = pd.DataFrame({"p": ["yes"] * 50 + ["No"] * 9 + [None]})
    claim = audited(table, passed="p").certificate["mean_grade"]
    assert claim.value == clopper_pearson_lower(50, 60, 0.05)


# ── what is refused ──────────────────────────────────────────────────────────────────────────────

REFUSED = {
    "needs truth": ({"answer": "a"}, "answer needs truth, the column of what is right"),
    "two things": ({"truth": "t", "answer": "a", "passed": "t"}, "only one of these"),
    "nothing": ({}, "say what is what"),
    "no ours": ({"winner": "t"}, "winner needs ours, whose wins are counted"),
    "no bound": ({"truth": "t", "answer": "a", "weight": "id"}, "weight needs weight_bound"),
    "coin alone": ({"truth": "t", "answer": "a", "coin": True}, "coin goes with weight"),
    "grade without range": ({"grade": "id"}, "grade needs loss_range"),
    "no class": ({"truth": "t", "score": "id"}, "score needs positive"),
    "threshold alone": (
        {"truth": "t", "answer": "a", "threshold": 0.3},
        "threshold goes with score",
    ),
    "unknown": ({"truth": "t", "answr": "a"}, "did you mean answer?"),
    "no column": ({"truth": "t", "answer": "aa"}, "no column 'aa'"),
    "twice": ({"truth": "t", "answer": "t"}, "named twice"),
    "needed": ({"truth": "t", "answer": "a", "drop": ("a",)}, "do not leave it out"),
    "no such class": ({"truth": "t", "answer": "a", "positive": "il"}, "Did you mean 'ill'?"),
    "no pass": ({"passed": "t"}, "say pass or fail"),
    "no winner": ({"winner": "t", "ours": "us"}, "never names 'us'"),
    "words": ({"grade": "t", "loss_range": (0, 1)}, "holds words: a grade is a number"),
    "range": ({"grade": "id", "loss_range": (1, 0)}, "two finite numbers, the lower one first"),
    "out of range": ({"grade": "id", "loss_range": (0, 10)}, "is not the range of losses"),
    "uncut": ({"truth": "t", "answer": "a", "slices": ("id",)}, "say where to cut it"),
    "cut": ({"truth": "t", "answer": "a", "slices": ("id:x",)}, "after the colon come numbers"),
    "all distinct": ({"truth": "id", "answer": "a", "task": "classification"}, "60 labels in 60"),
    "other words": ({"truth": "t", "answer": "id"}, "is answered, 'ill' and 'well' are labels"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_one_sentence_says_what_is_wrong(name):
    given, said = REFUSED[name]
    with pytest.raises((OptionError, ValueError)) as caught:
        audited(frame(), **given)
    text = str(caught.value)
    assert said in text
    assert "\n" not in text


def test_no_verdict_where_a_column_names_groups():
    table = frame(patient=np.repeat(np.arange(N // 4), 4))
    audit = audited(table, truth="t", answer="a")
    assert audit.verdict.kind == "no verdict"
    assert "`group='patient'`" in audit.verdict.text
    assert not audit.certificate.together
    assert audited(table, truth="t", answer="a", group="patient").certificate.together


def test_roles_are_read_back():
    roles = Roles(truth="t", answer=("a", "b"), slices="s", separator=None, drop=("x",))
    assert Roles.from_dict(roles.to_dict()) == Roles.from_dict(roles.stated()) == roles


def test_rows_without_a_label_are_compared_with_the_others():
    """Answers of 'ill' are seldom labeled here: the verdict is about labeled rows only."""
    table = pd.concat([frame() for _ in range(5)], ignore_index=True)
    table["id"] = np.random.default_rng(0).permutation(len(table))
    hard = table["a"] == "ill"
    table["t"] = table["t"].where(~hard | (table["id"] % 4 == 0), None)
    audit = audited(table, truth="t", answer="a")
    assert audit.verdict.text.startswith("Labeled rows only: ")
    assert any(finding.code == "SL119" for finding in audit.findings)
    table["t"] = frame()["t"].tolist() * 5
    table["t"] = table["t"].where(table["id"] % 3 > 0, None)
    assert not any(f.code == "SL119" for f in audited(table, truth="t", answer="a").findings)


def test_rows_are_known_by_their_texts_whatever_other_systems_wrote_beside_them():
    """Without a truth only what does not come from a system tells which rows these are."""
    rng = np.random.default_rng(0)
    prompts = [f"what is {a} times {b}?" for a, b in rng.integers(0, 10**6, (N, 2))]
    one = pd.DataFrame({"prompt": prompts, "passed": rng.random(N) < 0.9, "latency": rng.random(N)})
    two = pd.DataFrame({"prompt": prompts, "passed": rng.random(N) < 0.9, "cost": rng.random(N)})
    known = [read_units(table, Roles(passed="passed")).known for table in (one, two)]
    assert known[0].shares(known[1])
    other = two.assign(prompt=[f"who wrote {prompt}" for prompt in prompts])
    assert not known[0].shares(read_units(other, Roles(passed="passed")).known)
