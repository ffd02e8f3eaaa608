"""The operating point of recorded scores: which rows fix the thresholds, what the page promises, and where
it cannot be kept.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from tests.simulation import at_most

from surelearn import Certificate
from surelearn.auditing.answers import Roles, audit_answers, read_units
from surelearn.auditing.answers.operating import divide_units
from surelearn.auditing.options import Options
from surelearn.cli import main
from surelearn.operating import Requirement

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
    assert chart.data["low"] is not None
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
