"""The operating point of recorded scores: which rows fix the thresholds, what the page promises, and where
it cannot be kept.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from tests.simulation import at_most

from surelearn import Certificate
from surelearn.auditing.answers import Roles, audit_answers, gate_answers, read_units
from surelearn.auditing.answers.flow import certify_units, roles_and_options
from surelearn.auditing.answers.operating import divide_units
from surelearn.auditing.claims import Withholding
from surelearn.auditing.operating import calls_all, is_met, passes
from surelearn.auditing.options import Options
from surelearn.cli import main
from surelearn.operating import LADDER_RULE, Requirement

COLUMNS = {"truth": "label", "score": "p", "positive": "cancer"}


def scored(n=1200, seed=0, shift=1.8):
    """Scores of a disease that one row in five has, and an age that says nothing."""
    rng = np.random.default_rng(seed)
    sick = rng.random(n) < 0.2
    p = 1 / (1 + np.exp(1.5 - shift * sick - rng.normal(size=n)))
    label = np.where(sick, "cancer", "healthy")
    return pd.DataFrame({"label": label, "p": p, "age": rng.random(n).round(6)})


def run(*arguments):
    return CliRunner().invoke(main, [str(one) for one in arguments])


def divided(frame, text="sensitivity >= 0.9", roles=None):
    options = Options(require=text, positive="cancer")
    units = read_units(frame, Roles(truth="label", score="p", **(roles or {})), "cancer")
    return divide_units(units, Requirement.parse(text), options)


def test_the_page_promises_what_the_walk_tests_and_what_other_rows_say():
    result = audit_answers(scored(), **COLUMNS, require="sensitivity >= 0.9", ledger=False)
    certificate = result.certificate
    assert result.verdict.kind == "guaranteed"
    assert "at least 90.0% of ‘cancer’ rows found; at most " in result.verdict.text
    assert certificate["sensitivity"].value == 0.9
    share = 1 - certificate["specificity"].value
    assert f"{np.ceil(1000 * share) / 10:.1f}% of the others called ‘cancer’" in result.verdict.text
    assert result["operating"].place == "costs"
    (chart,) = result["operating"].charts
    data = chart.data
    assert data["low_x"] is not None
    further = np.subtract(
        data["low_x"], data["x"]
    )  # what is proved lies right of what was measured
    band = certificate["specificity_distance"].value
    assert (further >= np.minimum(band, 1 - np.asarray(data["x"])) - 1e-3).all()
    assert chart.data["point"][1] == pytest.approx(certificate["sensitivity"].measured, abs=1e-3)
    slack = np.subtract(chart.data["y"], chart.data["low"])
    band = certificate["sensitivity_distance"].value
    assert (slack >= np.minimum(band, chart.data["y"]) - 1e-3).all()
    assert chart.data["y"][0] < 0.1 < 0.9 < chart.data["y"][-1]  # the whole curve
    assert "the certified rows chose only where to stop" in " ".join(result["operating"].notes)
    assert "costly" not in {section.key for section in result.sections}
    assert result.to_html()
    assert certificate.facts["rows"] < 1200 == result.rows + 300


def test_which_rows_fix_the_thresholds_depends_on_neither_scores_nor_labels():
    frame = scored()
    units, rungs = divided(frame)
    other = frame.assign(
        p=np.random.default_rng(1).random(len(frame)),
        label=np.random.default_rng(2).permutation(frame["label"]),
    )
    again, others = divided(other)
    assert (len(units.y), rungs.rows) == (900, 300)
    np.testing.assert_array_equal(units.beside["age"], again.beside["age"])
    assert rungs.thresholds != others.thresholds


def test_the_thresholds_do_not_look_at_the_certified_rows():
    frame = scored()
    units, rungs = divided(frame)
    kept = frame["age"].isin(units.beside["age"])
    changed = frame.assign(p=np.where(kept, 0.5, frame["p"]))
    assert divided(changed)[1].thresholds == rungs.thresholds
    assert divided(frame.assign(p=np.where(kept, frame["p"], 0.5)))[1].thresholds != rungs.thresholds  # fmt: skip


def test_a_file_of_nothing_but_scores_and_labels_is_divided_by_coins():
    frame = scored().drop(columns="age")
    units, rungs = divided(frame)
    assert len(units.y) + rungs.rows == 1200
    assert 240 < rungs.rows < 360
    np.testing.assert_array_equal(units.X["p"], divided(frame)[0].X["p"])


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("specificity >= 0.8", {}, "at most 20.0% of the others called ‘cancer’; at least "),
        ("precision >= 0.5", {}, "at least 50.0% of the rows called ‘cancer’ are ‘cancer’; at least "),
        ("error <= 0.1", {}, "% of rows answered, at most 10.0% errors among those"),
        ("mean_cost <= 0.7", {"cost": 4.0}, "a mean cost of at most 0.7 per row"),
    ],
)  # fmt: skip
def test_every_requirement_has_its_sentence_and_its_page(text, options, said):
    result = audit_answers(scored(), **COLUMNS, require=text, ledger=False, **options)
    assert result.verdict.kind == "guaranteed", result.verdict.text
    assert said in result.verdict.text
    assert result["operating"].charts
    assert result.to_html()
    assert result.to_markdown()
    again = Certificate.from_json(result.certificate.published().to_json())
    assert again.verify()


def test_scores_that_are_no_probabilities_need_no_threshold():
    frame = scored()
    frame["p"] = 5 * np.log(frame["p"] / (1 - frame["p"]))
    result = audit_answers(frame, **COLUMNS, require="sensitivity >= 0.9", ledger=False)
    assert result.verdict.kind == "guaranteed"
    with pytest.raises(ValueError, match="errors among the answered need probabilities"):
        audit_answers(frame, **COLUMNS, require="error <= 0.1", ledger=False)


def test_what_cannot_be_kept_is_said_by_how_much_and_with_how_many_rows():
    result = audit_answers(scored(160), **COLUMNS, require="recall >= 95%", ledger=False)
    assert result.verdict.kind == "do not ship"
    assert "a sensitivity of at least 95.0% is not guaranteed at any threshold" in result.verdict.text  # fmt: skip
    assert result.certificate["sensitivity"].value < 0.95
    assert "rows like these would show it, instead of 120" in result.verdict.text
    poor = audit_answers(scored(shift=0.0), **COLUMNS, require="precision >= 0.9", ledger=False)
    assert "a better model is needed" in poor.verdict.text


def test_too_few_rows_are_not_called_a_bad_model():
    """One threshold answers without an error; no file of 600 rows could show one in a thousand."""
    rng = np.random.default_rng(3)
    label = rng.choice(["cancer", "healthy"], 600, p=[0.3, 0.7])
    p = np.clip(np.where(label == "cancer", 0.75, 0.2) + 0.15 * rng.normal(size=600), 0, 1)
    frame = pd.DataFrame({"label": label, "p": p.round(3), "id": rng.permutation(10**6)[:600]})
    result = audit_answers(frame, **COLUMNS, require="error <= 0.001", ledger=False)
    said, claim = result.verdict.text, result.certificate["selective_error"]
    assert claim.measured < 0.005
    assert "Even without an exception at least 3,688 answered rows are needed" in said
    assert f"and these are {claim.inputs['sizes'][0]}" in said
    assert "better model" not in said
    assert "surest" not in said


def test_the_number_of_rows_rests_on_the_rate_that_stands_beside_it():
    said = audit_answers(scored(400, 4, 4.0), **COLUMNS, require="error <= 0.02", ledger=False).verdict.text  # fmt: skip
    (measured,) = re.findall(r"tried, (\d+\.\d+%) measured", said)
    assert f"If the rate is {measured} there, as measured, about " in said


# ── what a constant answer keeps, too ────────────────────────────────────────────────────────────────


def useless(n=2000):
    rng = np.random.default_rng(0)
    ids = rng.permutation(10**6)[:n]
    label = rng.choice(["cancer", "healthy"], n, p=[0.1, 0.9])
    return pd.DataFrame({"id": ids, "label": label, "p": rng.random(n)})


@pytest.mark.parametrize("text", ["sensitivity >= 0.95", "specificity >= 0.95"])
def test_random_scores_keep_a_rate_of_one_class_and_are_not_let_pass(text):
    result = audit_answers(useless(), **COLUMNS, require=text, ledger=False)
    claims = {c.quantity: c.value for c in result.certificate.together}
    assert is_met(result.certificate)  # the claim is true, and stays
    assert claims["sensitivity"] + claims["specificity"] <= 1
    assert result.verdict.kind == "do not ship"
    assert "is kept only as a coin keeps it" in result.verdict.text
    assert "% of the others called ‘cancer’" in result.verdict.text
    assert "% of ‘cancer’ rows found" in result.verdict.text
    assert "a better model is needed" in result.verdict.text
    assert not gate_answers(useless(), **COLUMNS, require=text, ledger=False, number=1)


def test_calling_every_row_is_said_and_not_let_pass(tmp_path):
    """Two scores: the upper one finds 97%, which so few rows do not show."""
    rng = np.random.default_rng(0)
    sick = rng.random(500) < 0.25
    high = rng.random(500) < np.where(sick, 0.97, 0.1)
    label, p = np.where(sick, "cancer", "healthy"), np.where(high, 0.8, 0.2)
    frame = pd.DataFrame({"label": label, "p": p, "id": rng.permutation(10**6)[:500]})
    frame.to_csv(tmp_path / "few.csv", index=False)
    result = audit_answers(frame, **COLUMNS, require="sensitivity >= 0.95", ledger=False)
    said = result.verdict.text
    assert calls_all(result.certificate) == "every row"
    assert result.verdict.kind == "do not ship"
    assert "is kept only by calling every row ‘cancer’, as a constant answer does" in said
    assert "at most 100.0% of the others called ‘cancer’" in said
    assert "as measured: more than" in said  # the scores are good: rows are missing
    assert '<h1 class="bad">' in result.to_html()
    asked = ("--truth", "label", "--score", "p", "--positive", "cancer", "--out", tmp_path / "out")
    asked += ("--ledger", tmp_path / "l.json", "--require", "sensitivity >= 0.95")
    failed = run("certify", tmp_path / "few.csv", *asked)
    assert failed.exit_code == 1
    assert "check: sensitivity >= 0.95 is kept only as a constant answer keeps it" in failed.output


def test_a_precision_below_the_share_of_positives_is_kept_by_calling_every_row():
    frame = scored(shift=0.0).replace({"cancer": "healthy", "healthy": "cancer"})  # four in five
    result = audit_answers(frame, **COLUMNS, require="precision >= 0.7", ledger=False)
    assert is_met(result.certificate)
    assert not passes(result.certificate)
    assert "as a constant answer does" in result.verdict.text
    good = audit_answers(scored(shift=3.0), **COLUMNS, require="precision >= 0.7", ledger=False)
    assert passes(good.certificate), good.verdict.text


def test_errors_that_a_constant_answer_does_not_make_either_are_a_warning():
    result = audit_answers(scored(shift=0.0), **COLUMNS, require="error <= 0.3", ledger=False)
    assert result.verdict.kind == "warning"
    assert "Always answering ‘healthy’ keeps it, too: " in result.verdict.text
    assert passes(result.certificate)


# ── what else a page says ────────────────────────────────────────────────────────────────────────────


def test_a_page_says_what_a_higher_sensitivity_costs():
    result = audit_answers(scored(4000, shift=3.0), **COLUMNS, require="sensitivity >= 0.9", ledger=False)  # fmt: skip
    dearer = audit_answers(scored(4000, shift=3.0), **COLUMNS, require="sensitivity >= 0.95", ledger=False)  # fmt: skip
    (said,) = [n for n in result["operating"].notes if n.startswith("For 95.0% instead of 90.0%")]
    now, dear = (1 - one.certificate["specificity"].measured for one in (result, dearer))
    assert now < dear
    told = re.search(
        r"found: (\d+\.\d)% of the others called instead of (\d+\.\d)%, as measured", said
    )
    assert told is not None
    assert float(told[1]) == pytest.approx(100 * dear, abs=1)  # another ladder has other thresholds
    assert float(told[2]) == pytest.approx(100 * now, abs=0.1)
    few = audit_answers(scored(400, shift=3.0), **COLUMNS, require="sensitivity >= 0.8", ledger=False)  # fmt: skip
    most = audit_answers(scored(400, shift=3.0), **COLUMNS, require="sensitivity >= 0.95", ledger=False)  # fmt: skip
    assert "takes 183 ‘cancer’ rows or more, instead of " in " ".join(most["operating"].notes)
    assert "takes 183" not in " ".join(few["operating"].notes)


def test_scores_whose_threshold_misses_many_are_advised_a_requirement():
    def advised(**options):
        (table,) = audit_answers(scored(), **COLUMNS, ledger=False, **options)["next"].tables
        return [row for row in table.rows if row[0] == "Say how much must be found"]

    ((_, why, how),) = advised()
    assert re.match(r"At the threshold in use \d+\.\d% of ‘cancer’ are found, as measured", why)
    assert how == "`require='sensitivity >= 0.95'`"
    assert not advised(require="sensitivity >= 0.9")
    assert not advised(cost=3.0)


def several_raters(n=1600):
    frame, rng = scored(n, shift=3.0), np.random.default_rng(6)
    other = rng.permutation(frame["label"])
    second = np.where(rng.random(n) < 0.05, other, frame["label"])
    return frame.assign(second=second)


def test_several_raters_may_tie_so_that_the_second_number_says_why_it_is_missing(tmp_path):
    asked = {**COLUMNS, "truth": ("label", "second"), "ledger": False}
    result = audit_answers(several_raters(), **asked, require="sensitivity >= 0.8")
    assert result.verdict.kind == "guaranteed"
    assert "of the others are called ‘cancer’ is not claimed: raters may tie" in result.verdict.text
    several_raters(60).to_csv(tmp_path / "two.csv", index=False)
    book = tmp_path / "ledger.json"
    refused = run(
        "certify", tmp_path / "two.csv", "--truth", "label", "--truth", "second", "--score", "p",
        "--positive", "cancer", "--require", "specificity >= 0.5", "--ledger", book, "--out", tmp_path / "o",
    )  # fmt: skip
    assert refused.exit_code == 2
    assert "does not go with several --truth: raters may tie" in refused.output
    assert not book.exists()  # refused before the look


def test_what_a_score_cannot_be_asked_names_the_option_of_the_command(tmp_path):
    frame = scored()
    frame.assign(p=5 * frame["p"]).to_csv(tmp_path / "raw.csv", index=False)
    asked = ("--truth", "label", "--score", "p", "--positive", "cancer", "--out", tmp_path / "out")
    result = run("certify", tmp_path / "raw.csv", *asked, "--require", "error <= 0.1")
    assert result.exit_code == 2
    assert result.output.splitlines()[-1].startswith("--require: errors among the answered need")


def test_the_promise_of_the_page_is_kept_as_often_as_it_says():
    """Both numbers of the sentence, on 20,000 new rows each time."""
    new = scored(20_000, seed=10_000)
    sick = (new["label"] == "cancer").to_numpy()
    trials, broken = 60, 0
    for seed in range(trials):
        made = audit_answers(
            scored(400, seed), **COLUMNS, require="sensitivity >= 0.8", delta=0.2, ledger=False,
            skip=("performance", "calibration"),
        ).certificate  # fmt: skip
        called = new["p"].to_numpy() >= made.facts["walk.threshold"]
        broken += (
            called[sick].mean() < made["sensitivity"].value
            or 1 - called[~sick].mean() < made["specificity"].value
        )
    assert at_most(broken, 0.2, trials), broken


def test_the_command_says_where_thresholds_come_from_and_exits_with_the_check(tmp_path):
    scored().to_csv(tmp_path / "scored.csv", index=False)
    scored(160).to_csv(tmp_path / "few.csv", index=False)
    asked = ("--truth", "label", "--score", "p", "--positive", "cancer", "--out", tmp_path / "out")
    asked += ("--ledger", tmp_path / "ledger.json")
    kept = run("certify", tmp_path / "scored.csv", *asked, "--require", "sensitivity >= 0.9")
    assert kept.exit_code == 0, kept.output
    assert "thresholds fixed on 300 of 1,200 rows, drawn by a hash of the columns" in kept.output
    assert "check: sensitivity >= 0.9" in kept.output
    assert "verified" in run("verify", tmp_path / "out").output
    again = run("verify", tmp_path / "out", "--data", tmp_path / "scored.csv").output
    assert "facts from model and rows" in again, again
    assert "out: verified" in again, again
    failed = run("certify", tmp_path / "few.csv", *asked, "--require", "sensitivity >= 0.95")
    assert failed.exit_code == 1
    assert "check: sensitivity >= 0.95 is not guaranteed" in failed.output


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--require", "sensitvity >= 0.9"), "did you mean sensitivity?"),
        (("--require", "mean_cost <= 0.2"), "needs --cost"),
        (("--require", "sensitivity >= 0.9", "--cost", "3"), "leave out --cost"),
        (("--require", "sensitivity >= 0.9", "--threshold", "0.3"), "--threshold"),
        (("--require", "sensitivity >= 0.9", "--group", "age"), "does not go with --group"),
        (("--require", "sensitivity >= 0.9", "--answer", "age"), "leave out --answer"),
        (("--require", "sensitivity >= 0.9", "--max-risk", "0.1"), "two checks"),
        (("--require", "mean_error <= 3"), "needs --loss-bound"),
    ],
)
def test_refusals_are_one_sentence_that_names_the_option(tmp_path, more, said):
    scored(60).to_csv(tmp_path / "scored.csv", index=False)
    asked = ("--truth", "label", "--score", "p", "--positive", "cancer", "--out", tmp_path / "out")
    result = run("certify", tmp_path / "scored.csv", *asked, *more)
    assert result.exit_code == 2, result.output
    assert said in result.output
    assert "Traceback" not in result.output
    assert len(result.output.splitlines()) == 1


@pytest.mark.parametrize(("level", "kind"), [(0.5, "guaranteed"), (0.05, "do not ship")])
def test_forecasts_are_required_by_their_mean_error(level, kind):
    rng = np.random.default_rng(3)
    y = rng.random(300)
    frame = pd.DataFrame({"y": y, "yhat": y + rng.normal(0, 0.1, 300), "t": rng.random(300)})
    result = audit_answers(
        frame, truth="y", answer="yhat", loss_bound=2.0, require=f"mean_error <= {level}",
        ledger=False, task="regression",
    )  # fmt: skip
    assert result.verdict.kind == kind, result.verdict.text


def test_thresholds_of_an_earlier_rule_still_verify_and_others_do_not(tmp_path):
    frame = scored()
    frame.to_csv(tmp_path / "scored.csv", index=False)
    asked = ("--truth", "label", "--score", "p", "--positive", "cancer", "--ledger", tmp_path / "l")
    asked += ("--require", "sensitivity >= 0.9", "--out", tmp_path / "out")
    run("certify", tmp_path / "scored.csv", *asked)
    place = tmp_path / "out" / "certificate.json"
    made = Certificate.from_json(place.read_text())
    assert made.facts.options["ladder"] == LADDER_RULE
    units, rungs = divided(frame)
    roles, options = roles_and_options({**COLUMNS, "require": "sensitivity >= 0.9"})
    coarse = replace(rungs, thresholds=rungs.thresholds[::10])

    def told(**changed):
        again = certify_units(units, roles, options, Withholding(), rungs=coarse)
        known = {k: v for k, v in {**again.facts.options, **changed}.items() if v is not None}
        again = replace(again, facts=replace(again.facts, options=known))
        place.write_text(again.to_json())
        return run("verify", tmp_path / "out", "--data", tmp_path / "scored.csv").output

    assert "are not those that its other rows give" in told()
    assert "an earlier version fixed them by another rule" in (earlier := told(ladder=None))
    assert "are not those" not in earlier
    assert "no rule 9 of fixing thresholds is known" in told(ladder=9)
