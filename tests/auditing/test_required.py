"""`audit` and `gate` with an operating point that is required: from out-of-fold scores to the saved model
that keeps it.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LinearRegression, LogisticRegression

import surelearn
from surelearn import Certificate
from surelearn.auditing.dividing import divide
from surelearn.auditing.fitting import fit
from surelearn.auditing.options import Options
from surelearn.auditing.verification import verify_folder
from surelearn.auditing.walking import rungs_of
from surelearn.cli import main
from surelearn.data import read_table
from surelearn.jobs import Runner
from surelearn.persistence import find_model, read_model
from surelearn.prediction import predict

TRUST = ("robustness", "poisoning", "membership", "attribution")
QUICK = {"ledger": False, "refits": 0, "curve_repeats": 0, "skip": TRUST}
LINEAR = {"linear": LogisticRegression()}


def patients(n=1500, seed=0, mark=1.6):
    rng = np.random.default_rng(seed)
    sick = rng.random(n) < 0.3
    x = rng.normal(size=(n, 3)) + np.outer(sick, [mark, 1.0, 0.0])
    return pd.DataFrame(x, columns=list("abc")).assign(sick=np.where(sick, "yes", "no"))


def audit(frame=None, **options):
    asked = {"target": "sick", "positive": "yes", "models": LINEAR, **QUICK, **options}
    return surelearn.audit(patients() if frame is None else frame, **asked)


def run(*arguments):
    return CliRunner().invoke(main, [str(one) for one in arguments])


def test_the_model_answers_at_the_threshold_that_the_certificate_is_about():
    result = audit(require="sensitivity >= 0.9")
    certificate, frame = result.certificate, patients()
    assert result.verdict.kind == "guaranteed", result.verdict.text
    assert "at least 90.0% of ‘yes’ rows found" in result.verdict.text
    assert result.model.threshold == certificate.facts["walk.threshold"]
    assert result.numbers["threshold"] == certificate.facts["walk.threshold"]
    said = result.model.predict_proba(frame[["a", "b", "c"]])[:, 1]
    called = result.model.predict(frame[["a", "b", "c"]]) == "yes"
    np.testing.assert_array_equal(called, said >= certificate.facts["walk.threshold"])
    assert "out-of-fold scores of the rows fitted on" in " ".join(result["operating"].notes)
    assert result.to_html()


@pytest.mark.parametrize(
    ("require", "options", "said"),
    [
        ("specificity >= 0.7", {}, "at most 30.0% of the others called ‘yes’; at least"),
        ("precision >= 0.6", {}, "at least 60.0% of the rows called ‘yes’ are ‘yes’"),
        ("error <= 0.1", {}, "of rows answered, at most 10.0% errors among those"),
        ("mean_cost <= 0.6", {"cost": 3.0}, "a mean cost of at most 0.6 per row"),
    ],
)
def test_what_else_may_be_required(require, options, said):
    result = audit(require=require, **options)
    assert result.verdict.kind == "guaranteed", result.verdict.text
    assert said in result.verdict.text


def test_a_folder_is_verified_with_its_data_and_predicts_at_the_threshold(tmp_path):
    patients().to_csv(tmp_path / "sick.csv", index=False)
    asked = ("--target", "sick", "--positive", "yes", "--model", "logistic regression", "--jobs", 1)
    asked += ("--ledger", tmp_path / "book.json", "--out", tmp_path / "out")
    asked += tuple(word for name in TRUST for word in ("--skip", name))
    kept = run("audit", tmp_path / "sick.csv", *asked, "--require", "recall >= 90%")
    assert kept.exit_code == 0, kept.output
    assert "check: sensitivity >= 0.9" in kept.output
    found = verify_folder(tmp_path / "out", tmp_path / "sick.csv")
    assert found, str(found)
    assert "facts from model and rows" in found.checked
    certificate = Certificate.from_json((tmp_path / "out" / "certificate.json").read_text())
    patients(200, seed=1).drop(columns="sick").to_csv(tmp_path / "new.csv", index=False)
    made = run("predict", tmp_path / "out", tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    assert "at least 90.0% of ‘yes’ rows found" in made.output
    table = pd.read_csv(tmp_path / "p.csv")
    said = table["probability"].where(table["prediction"] == "yes", 1 - table["probability"])
    called = (table["prediction"] == "yes").to_numpy()
    assert said[called].min() >= certificate.facts["walk.threshold"] > said[~called].max()
    assert called.mean() > 0.3
    plain = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert plain["numbers"]["options"]["require"] == "sensitivity >= 0.9"


def test_where_errors_among_the_answered_are_certified_predict_abstains_below_the_confidence(tmp_path):  # fmt: skip
    result = audit(require="error <= 0.1")
    surelearn.save(result.model, tmp_path / "model", certificate=result.certificate, schema=result.schema)  # fmt: skip
    table = predict(read_model(find_model(tmp_path / "model")), patients(400, seed=2))
    cut = result.certificate.facts["walk.threshold"]
    np.testing.assert_array_equal(table["abstain"], table["probability"] < cut)
    assert 0 < table["abstain"].mean() < 1
    right = (table["prediction"] == table["sick"])[~table["abstain"]]
    assert right.mean() > 0.85


def test_what_cannot_be_kept_exits_with_1_and_says_why(tmp_path):
    patients(200).to_csv(tmp_path / "sick.csv", index=False)
    asked = ("--target", "sick", "--positive", "yes", "--model", "logistic regression", "--jobs", 1)
    asked += ("--ledger", tmp_path / "book.json", "--out", tmp_path / "out", "--quiet")
    asked += tuple(word for name in TRUST for word in ("--skip", name))
    failed = run("audit", tmp_path / "sick.csv", *asked, "--require", "sensitivity >= 0.95")
    assert failed.exit_code == 1
    assert "is not guaranteed at any threshold" in failed.output
    assert "would show it" in failed.output


def test_thresholds_come_from_out_of_fold_scores_and_never_from_the_certify_rows():
    table = read_table(patients(), target="sick")
    options = Options(require="sensitivity >= 0.9", positive="yes")
    divided = divide(table, (), options)
    split, rng = divided.split, np.random.default_rng(5)
    fitted = fit(table, split, divided.columns, LINEAR, divided.options, Runner())
    rungs = rungs_of(table, split, fitted, options)
    frame = table.frame.copy()
    frame.loc[split.certify, "sick"] = rng.permutation(frame.loc[split.certify, "sick"])
    frame.loc[split.certify, ["a", "b", "c"]] = rng.normal(size=(split.certify.size, 3))
    assert rungs_of(replace(table, frame=frame), split, fitted, options) == rungs
    frame.loc[split.fit, "sick"] = rng.permutation(frame.loc[split.fit, "sick"])
    assert rungs_of(replace(table, frame=frame), split, fitted, options) != rungs


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--require", "sensitivity >= 0.9", "--group", "a"), "leave out --group"),
        (("--require", "sensitivity >= 0.9", "--time", "a"), "leave out --time"),
        (("--require", "sensitivity >= 0.9", "--max-risk", "0.1"), "two checks"),
        (("--require", "sensitivity >= 0.9", "--threshold", "0.1"), "leave out --threshold"),
        (("--require", "sensitivity >= 0.9", "--against", "majority"), "leave out --against"),
        (("--require", "mean_error <= 1", "--loss-bound", "3"), "is about numbers"),
    ],
)
def test_refusals_are_one_sentence(tmp_path, more, said):
    patients(60).to_csv(tmp_path / "sick.csv", index=False)
    asked = ("--target", "sick", "--positive", "yes", "--out", tmp_path / "out")
    result = run("audit", tmp_path / "sick.csv", *asked, *more)
    assert result.exit_code == 2, result.output
    assert said in result.output.splitlines()[-1]
    assert "Traceback" not in result.output


def test_numbers_are_required_by_their_mean_error():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"x": rng.random(400)})
    frame["y"] = frame["x"] + rng.normal(0, 0.05, 400)
    asked = {"target": "y", "models": LinearRegression(), "positive": None, "loss_bound": 2.0}
    good = audit(frame, require="mean_error <= 0.4", **asked)
    assert good.verdict.kind == "guaranteed", good.verdict.text
    assert "The required 0.4 is kept" in good.verdict.text
    bad = audit(frame, require="mean_error <= 0.01", **asked)
    assert bad.verdict.kind == "do not ship", bad.verdict.text


def test_a_gate_passes_what_is_required_and_fails_what_is_not(tmp_path):
    shared = {"target": "sick", "positive": "yes", "models": LINEAR, "ledger": tmp_path / "b.json"}
    failed = surelearn.gate(patients(), require="sensitivity >= 0.999", **shared)
    assert not failed
    assert failed.certificate is None
    passed = surelearn.gate(patients(), require="sensitivity >= 0.85", **shared)
    assert passed
    assert (failed.number, passed.number) == (1, 2)
    assert passed.certificate is not None
    assert passed.certificate["sensitivity"].value == 0.85
    assert passed.model.threshold == passed.certificate.facts["walk.threshold"]
    assert "by try 2 of a gate at sensitivity >= 0.85" in passed.certificate.facts.setting
    with pytest.raises(ValueError, match="max_risk, the risk to be guaranteed, or require"):
        surelearn.gate(patients(), **shared)
    with pytest.raises(ValueError, match="not both"):
        surelearn.gate(patients(), max_risk=0.1, require="sensitivity >= 0.9", **shared)


def test_scores_that_say_nothing_pass_no_gate(tmp_path):
    """A sensitivity is guaranteed for them, too: by calling nearly every row."""
    frame = patients()
    frame["sick"] = np.random.default_rng(1).permutation(frame["sick"])
    result = audit(frame, require="sensitivity >= 0.85")
    assert result.certificate["sensitivity"].value == 0.85
    assert result.verdict.kind == "do not ship"
    shared = {"target": "sick", "positive": "yes", "models": LINEAR, "ledger": tmp_path / "b.json"}
    assert not surelearn.gate(frame, require="sensitivity >= 0.85", **shared)


def test_the_gate_says_pass_or_fail_alone(tmp_path):
    patients().to_csv(tmp_path / "sick.csv", index=False)
    asked = ("gate", tmp_path / "sick.csv", "--target", "sick", "--positive", "yes", "--jobs", 1)
    asked += (
        "--model",
        "logistic regression",
        "--ledger",
        tmp_path / "b.json",
        "--out",
        tmp_path / "g",
    )
    failed = run(*asked, "--require", "sensitivity >= 0.999")
    assert failed.exit_code == 1
    assert failed.output.splitlines()[-1] == "gate: fail"
    assert "guaranteed" not in failed.output
    passed = run(*asked, "--require", "sensitivity >= 0.85")
    assert passed.exit_code == 0, passed.output
    assert "gate: pass" in passed.output
    assert Certificate.from_json((tmp_path / "g" / "certificate.json").read_text()).verify()
    assert run(*asked).exit_code == 2
