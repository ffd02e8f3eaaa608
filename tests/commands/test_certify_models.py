"""`surelearn certify MODEL rows.csv --target y`: a model in a file answers the rows."""

import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression, Ridge

import surelearn
from surelearn import certify
from surelearn.auditing.answers import (
    Models,
    ask_models,
    audit_answers,
    audit_model,
    roles_and_options,
)
from surelearn.auditing.claims import ALWAYS_CLAIMED
from surelearn.certificate import Certificate
from surelearn.persistence.model_files import read_model_file

RNG = np.random.default_rng(5)
N = 400
X = pd.DataFrame(RNG.normal(size=(N, 3)), columns=["age", "dose", "mass"])
SIGNAL = X["age"] + X["dose"] + 0.7 * RNG.normal(size=N)
WORD = np.where(SIGNAL > 0.3, "sick", "well")
GRADE = np.select([SIGNAL < -0.5, SIGNAL < 0.8], ["c", "a"], "b").astype(object)
TABLE = X.assign(
    state=WORD,
    grade=GRADE,
    amount=SIGNAL.round(3),
    town=RNG.choice(["x", "y"], N),
    who=np.arange(N) // 2,
)
ROWS, FIT = TABLE.iloc[100:].reset_index(drop=True), TABLE.iloc[:100]
FEATURES = list(X.columns)


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ROWS.to_csv("rows.csv", index=False)
    return tmp_path


def told(model, target, *options):
    """The command, with all columns left out that are no features."""
    left = [name for name in ("state", "grade", "amount", "who") if name != target]
    drop = " ".join(f"--drop {name}" for name in left)
    return " ".join(["certify", str(model), "rows.csv", "--target", target, drop, *options])


def certificate(folder="surelearn-certify"):
    return Certificate.from_json((Path(folder) / "certificate.json").read_text())


def page_of(folder="surelearn-certify"):
    return (Path(folder) / "report.html").read_text()


def same_claims(found, reference):
    """All claims of the one in memory are in the certificate of the file, with the same values where
    these do not depend on the order of the rows, which is drawn by what a row has: a file of answers
    has more.
    """
    there = {(claim.label, claim.theorem): claim for claim in found.claims}
    for claim in reference.claims:
        ours = there[claim.label, claim.theorem]
        assert ours.quantity == claim.quantity
        assert ours.confidence == pytest.approx(claim.confidence)
        if {"losses", "baseline_losses"} & claim.inputs.keys():
            assert ours.measured == pytest.approx(claim.measured, abs=1e-6), claim.label
            assert ours.value == pytest.approx(claim.value, abs=0.12), claim.label
        else:
            assert ours.value == pytest.approx(claim.value, abs=1e-6), claim.label
    return len(reference.claims)


def classifier(target="state"):
    return LogisticRegression().fit(FIT[FEATURES], FIT[target])


# ── the same certificate as in memory ────────────────────────────────────────────────────────────


class Coded:
    """A model that answers with codes, as one that answers with labels."""

    def __init__(self, model, labels):
        self.model, self.classes_ = model, np.asarray(labels, dtype=object)

    def predict(self, rows):
        return self.classes_[self.model.predict(rows).ravel().astype(int)]

    def predict_proba(self, rows):
        return self.model.predict_proba(rows)


def coded(labels, target):
    return FIT[target].map({label: i for i, label in enumerate(labels)})


def skops_file(labels, target):
    model = classifier(target)
    skops.io.dump(model, "m.skops")
    return "m.skops", model


def saved_folder(labels, target):
    model = classifier(target)
    surelearn.save(model, "kept")
    return "kept", model


def lightgbm_file(labels, target):
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=8, verbose=-1, num_threads=1)
    model.fit(FIT[FEATURES], coded(labels, target)).booster_.save_model("m.txt")
    return "m.txt", Coded(model, labels)


def xgboost_file(labels, target, name="m.json"):
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(n_estimators=8, n_jobs=1)
    model.fit(FIT[FEATURES], coded(labels, target)).save_model(name)
    return name, Coded(model, labels)


def xgboost_binary(labels, target):
    return xgboost_file(labels, target, "m.ubj")


def catboost_file(labels, target):
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostClassifier(iterations=8, verbose=0, allow_writing_files=False)
    model.fit(FIT[FEATURES], coded(labels, target)).save_model("m.cbm")
    return "m.cbm", Coded(model, labels)


def onnx_file(labels, target):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from onnx import helper

    model = classifier(target)
    two = len(labels) == 2
    weights, shift = model.coef_, model.intercept_
    if two:
        weights, shift = np.vstack([-weights, weights]) / 2, np.r_[-shift, shift] / 2
    node = helper.make_node(
        "LinearClassifier", ["X"], ["label", "p"], domain="ai.onnx.ml", multi_class=1,
        coefficients=weights.ravel().tolist(), intercepts=shift.tolist(), post_transform="SOFTMAX",
        classlabels_strings=model.classes_.tolist(),
    )  # fmt: skip
    kinds = onnx.TensorProto
    made = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("X", kinds.FLOAT, [None, 3])],
        [
            helper.make_tensor_value_info("label", kinds.STRING, [None]),
            helper.make_tensor_value_info("p", kinds.FLOAT, [None, len(labels)]),
        ],
    )
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx.ml", 1)]
    content = helper.make_model(made, opset_imports=opsets, ir_version=8).SerializeToString()
    Path("m.onnx").write_bytes(content)
    return "m.onnx", model


def torch_weights(labels, target):
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    model = classifier(target)
    weights, shift = model.coef_, model.intercept_
    if len(labels) == 2:
        weights, shift = np.vstack([-weights, weights]) / 2, np.r_[-shift, shift] / 2
    name = f"nets_{len(labels)}"
    Path(f"{name}.py").write_text(
        f"from torch import nn\n\ndef make():\n    return nn.Linear(3, {len(labels)})\n"
    )
    state = {
        "weight": torch.tensor(np.ascontiguousarray(weights), dtype=torch.float32),
        "bias": torch.tensor(shift, dtype=torch.float32),
    }
    save_file(state, "w.safetensors")
    return f"{name}:make --weights w.safetensors", model


FORMATS = [
    skops_file, saved_folder, lightgbm_file, xgboost_file, xgboost_binary, catboost_file, onnx_file, torch_weights,
]  # fmt: skip


def asked(name, *options):
    """A model may come with options of its own."""
    model, _, own = name.partition(" ")
    return model, " ".join([own, *options])


@pytest.mark.parametrize("make", FORMATS)
@pytest.mark.parametrize(
    ("target", "positive"), [("state", "sick"), ("state", None), ("grade", None)]
)
def test_the_certificate_is_that_of_the_model_in_memory(make, target, positive, rows, shell):
    labels = sorted(set(ROWS[target]))
    name, reference = make(labels, target)
    model, own = asked(name, "" if positive is None else f"--positive {positive}")
    # words, as the columns of a file are
    result = shell.run(f"{told(model, target, own)} --drop town --independent")
    assert result.exit_code == 0, result.output
    told_of = {} if positive is None else {"positive": positive}
    expected = certify(
        reference, ROWS[FEATURES], ROWS[target].to_numpy(dtype=object), classes=labels, task="classification",
        metrics=ALWAYS_CLAIMED, **told_of,
    )  # fmt: skip
    assert same_claims(certificate(), expected) > 10


def booster_of_numbers(library):
    if library == "ridge":
        model = Ridge().fit(FIT[FEATURES], FIT["amount"])
        skops.io.dump(model, "m.skops")
        return "m.skops", model
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMRegressor(n_estimators=8, verbose=-1).fit(FIT[FEATURES], FIT["amount"])
    model.booster_.save_model("m.lgb")
    return "m.lgb", model


@pytest.mark.parametrize("library", ["ridge", "lightgbm"])
def test_numbers_with_an_interval_and_a_bounded_error(library, rows, shell):
    name, reference = booster_of_numbers(library)
    command = told(name, "amount", "--loss-bound 30 --alpha 0.2 --drop town --independent")
    result = shell.run(command)
    assert result.exit_code == 0, result.output
    expected = certify(
        reference,
        ROWS[FEATURES],
        ROWS["amount"].to_numpy(),
        loss_bound=30,
        alpha=0.2,
        task="regression",
    )
    assert same_claims(certificate(), expected) > 1


def test_an_audits_folder_reads_rows_as_it_read_its_table(place, shell):
    """Gaps and categories; the model is asked as `surelearn predict` asks it."""
    shell.frame(500, seed=9).to_csv("rows.csv", index=False)
    result = shell.run("certify classes rows.csv --target y --positive yes --independent")
    assert result.exit_code == 0, result.output
    assert shell.run("predict classes rows.csv --out p.csv").exit_code == 0
    predicted = pd.read_csv("p.csv")
    errors = int((predicted["prediction"] != predicted["y"]).sum())
    facts = certificate().facts
    assert facts["rows"] == 500
    assert facts["risk.count"] == errors
    unseen = shell.frame(500, seed=9)
    unseen.loc[0, "c"] = "zz"
    unseen.to_csv("rows.csv", index=False)
    assert (
        "'c' has values it had not when the model was fitted"
        in shell.run("certify classes rows.csv --target y --independent --out o2").stdout
    )


# ── what the page and the certificate say ────────────────────────────────────────────────────────


def test_the_page_and_the_certificate_name_the_file_by_its_hash(rows, shell):
    import hashlib

    skops_file(None, "state")
    digest = hashlib.sha256(Path("m.skops").read_bytes()).hexdigest()
    result = shell.run(told("m.skops", "state"))
    assert f"m.skops (a model in skops' format, sha256:{digest}) answered" in result.stdout
    assert certificate().facts.options["answers"]["answered_by"] == f"m.skops, sha256:{digest}"
    page = page_of()
    assert f"The model in the file m.skops, sha256:{digest} was not fitted on these rows" in page
    assert (
        "This is assumed: a model&#39;s file does not say" in page
        or "a model's file does not say" in page
    )
    assert "surelearn certify m.skops rows.csv --target state" in page
    assert str(rows) not in page


def test_from_python_as_on_the_command_line(rows, shell):
    _, model = skops_file(None, "state")
    shell.run(told("m.skops", "state", "--independent"))
    again = audit_model(
        "m.skops",
        "rows.csv",
        target="state",
        drop=("grade", "amount", "who"),
        independent=True,
        ledger=False,
    )
    assert same_claims(certificate(), again.certificate) > 10
    here = audit_model(
        model, ROWS[[*FEATURES, "state"]], target="state", independent=True, ledger=False
    )
    assert same_claims(here.certificate, again.certificate) > 10


def test_a_column_of_answers_gives_the_same_errors(rows):
    _, model = skops_file(None, "state")
    written = ROWS.assign(said=model.predict(ROWS[FEATURES]))
    recorded = audit_answers(written, truth="state", answer="said", ledger=False, independent=True)
    asked_now = audit_model("m.skops", "rows.csv", target="state", ledger=False, independent=True)
    assert recorded.certificate.facts["risk.count"] == asked_now.certificate.facts["risk.count"]


def test_a_stated_threshold_answers_in_the_models_place(rows, shell):
    _, model = skops_file(None, "state")
    result = shell.run(told("m.skops", "state", "--positive sick --threshold 0.2"))
    assert result.exit_code == 0, result.output
    p = model.predict_proba(ROWS[FEATURES])[:, 0]
    expected = np.where(p >= 0.2, "sick", "well") != ROWS["state"]
    assert certificate().facts["risk.count"] == int(expected.sum())
    line = shell.refusal(told("m.skops", "state", "--threshold 0.2"))
    assert line == (
        "--threshold goes with two classes and --positive, the one that is answered from it on"
    )


def test_an_operating_point_is_chosen_along_the_models_score(rows, shell):
    """As for a column with its scores, and verified with the model."""
    _, model = skops_file(None, "state")
    required = '--positive sick --require "sensitivity >= 0.6" --independent'
    result = shell.run(told("m.skops", "state", required))
    assert result.exit_code == 0, result.output
    scored = ROWS.drop(columns=["grade", "amount", "who"])
    scored = scored.assign(p=model.predict_proba(ROWS[FEATURES])[:, 0])
    scored.to_csv("scored.csv", index=False)
    recorded = audit_answers(
        "scored.csv", truth="state", score="p", positive="sick", require="sensitivity >= 0.6",
        independent=True, ledger=False,
    )  # fmt: skip
    walked = certificate().facts["walk.threshold"]
    assert walked == pytest.approx(recorded.certificate.facts["walk.threshold"])
    verified = shell.run("verify surelearn-certify --data rows.csv --model m.skops")
    assert verified.exit_code == 0, verified.output
    assert shell.refusal(told("m.skops", "state", required, "--against m.skops")) == (
        "--require does not go with --against: leave one of them out"
    )
    skops_file(None, "grade")
    assert shell.refusal(
        told("m.skops", "grade", '--positive a --require "sensitivity >= 0.6"')
    ).startswith("--require chooses a threshold of a score: it needs a model of two classes")


def test_groups_slices_costs_and_checks(rows, shell):
    skops_file(None, "state")
    left = "certify m.skops rows.csv --target state --drop grade --drop amount"
    result = shell.run(f"{left} --group who --slice town --slice age:0 --max-risk 0.9")
    assert result.exit_code == 0, result.output
    facts = certificate().facts
    assert facts["groups"] == 150
    assert any("town" in claim.label for claim in certificate().claims)
    assert shell.run(f"{left} --drop who --max-risk 0.001 --out o2").exit_code == 1
    assert shell.run(f"{left} --drop who --positive sick --cost 5 --out o3").exit_code == 0
    assert certificate("o3").facts.options["cost"] == 5


# ── two models ───────────────────────────────────────────────────────────────────────────────────


def weak_file():
    skops.io.dump(LogisticRegression(C=1e-6).fit(FIT[FEATURES], FIT["state"]), "weak.skops")
    return "weak.skops"


def test_against_another_model_paired(rows, shell):
    _, model = skops_file(None, "state")
    other = skops.io.load(weak_file())
    result = shell.run(told("m.skops", "state", "--against weak.skops --independent --drop town"))
    assert result.exit_code == 0, result.output
    expected = certify(
        model,
        ROWS[FEATURES],
        ROWS["state"].to_numpy(dtype=object),
        baseline=other,
        metrics=ALWAYS_CLAIMED,
    )
    assert same_claims(certificate(), expected) > 5
    assert "weak.skops, sha256:" in certificate().facts.options["answers"]["rival_by"]
    verified = "verify surelearn-certify --data rows.csv --model m.skops"
    assert shell.run(f"{verified} --against weak.skops").exit_code == 0
    swapped = shell.run(f"{verified} --against m.skops")
    assert swapped.exit_code == 1
    assert "--against m.skops: its file is another" in swapped.stdout
    assert "--against is missing: weak.skops, sha256:" in shell.run(verified).stdout


def test_a_second_model_on_the_same_rows_pays_and_the_first_does_not_pay_again(rows, shell):
    skops_file(None, "state")
    weak_file()
    command = told("m.skops", "state", "--independent")
    shell.run(f"{command} --out o1")
    shell.run(f"{told('weak.skops', 'state', '--independent')} --out o2")
    shell.run(f"{command} --out o3")
    assert certificate("o1").delta == certificate("o3").delta == pytest.approx(0.05)
    assert certificate("o2").delta == pytest.approx(0.05 * 6 / (np.pi**2 * 4))


def test_rows_are_known_without_what_models_said_of_them(rows, shell):
    """Also where a threshold answers in the model's place."""
    skops_file(None, "state")
    weak_file()
    shell.run(f"{told('m.skops', 'state', '--positive sick --threshold 0.5')} --out o1")
    shell.run(f"{told('weak.skops', 'state', '--positive sick --threshold 0.5')} --out o2")
    assert certificate("o2").delta == pytest.approx(0.05 * 6 / (np.pi**2 * 4))
    for given in ({"positive": "sick", "threshold": 0.5}, {"positive": "sick"}, {}):
        roles, options = roles_and_options({"truth": "state", **given}, answered=True)
        models = Models(read_model_file("m.skops"), read_model_file("weak.skops"))
        units, _ = ask_models("rows.csv", roles, options.positive, models)
        assert list(units.beside.columns) == [name for name in ROWS.columns if name != "state"]


def test_recorded_answers_and_a_model_share_the_rows(rows, shell):
    """Whoever certifies answers of another model on these rows first has looked at them."""
    _, model = skops_file(None, "state")
    left = ROWS.drop(columns=["grade", "amount", "who"])
    left.to_csv("rows.csv", index=False)
    left.assign(said=model.predict(left[FEATURES])).to_csv("answers.csv", index=False)
    assert shell.run("certify answers.csv --truth state --answer said --out o1").exit_code == 0
    shell.run("certify m.skops rows.csv --target state --out o2")
    assert certificate("o2").delta < certificate("o1").delta


# ── verify ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("options", ["", "--positive sick", "--positive sick --threshold 0.3"])
def test_verify_asks_the_model_again(options, rows, shell):
    skops_file(None, "state")
    shell.run(told("m.skops", "state", options))
    verified = shell.run("verify surelearn-certify --data rows.csv --model m.skops")
    assert verified.exit_code == 0, verified.output
    assert "facts from model and rows" in verified.stdout
    Path("m.skops").rename("renamed.skops")
    assert (
        shell.run("verify surelearn-certify --data rows.csv --model renamed.skops").exit_code == 0
    )
    without = shell.run("verify surelearn-certify --data rows.csv")
    assert without.exit_code == 0
    assert "everything from the data: pass --model with m.skops, sha256:" in without.stdout
    assert "facts from model and rows" not in without.stdout


def test_verify_finds_another_model_and_other_rows(rows, shell):
    skops_file(None, "state")
    shell.run(told("m.skops", "state"))
    weak_file()
    other = shell.run("verify surelearn-certify --data rows.csv --model weak.skops")
    assert other.exit_code == 1
    assert "--model weak.skops: its file is another, sha256:" in other.stdout
    changed = ROWS.copy()
    changed.loc[0, "age"] += 8
    changed.to_csv("rows.csv", index=False)
    moved = shell.run("verify surelearn-certify --data rows.csv --model m.skops")
    assert moved.exit_code == 1, moved.output


def test_verify_refuses_a_model_where_there_is_none(rows, shell):
    skops_file(None, "state")
    ROWS.assign(said=ROWS["state"]).to_csv("answers.csv", index=False)
    shell.run("certify answers.csv --truth state --answer said")
    line = shell.refusal("verify surelearn-certify --data answers.csv --model m.skops")
    assert "about answers that were written down: leave out --model" in line
    assert "--model goes with --data" in shell.refusal("verify surelearn-certify --model m.skops")


def test_watch_tests_live_answers_of_the_model(rows, shell):
    _, model = skops_file(None, "state")
    shell.run(told("m.skops", "state", "--positive sick --independent"))
    live = ROWS.iloc[::-1].assign(said=model.predict(ROWS[FEATURES])[::-1])
    live.to_csv("live.csv", index=False)
    result = shell.run("watch surelearn-certify/certificate.json live.csv --prediction said")
    assert result.exit_code == 0, result.output


# ── labels ───────────────────────────────────────────────────────────────────────────────────────


def test_positions_are_the_sorted_labels_unless_stated(rows, shell):
    _, reference = lightgbm_file(["b", "c", "a"], "grade")
    wrong = shell.run(told("m.txt", "grade", "--independent"))
    said = "m.txt knows classes by their positions only: 0 is 'a', 1 is 'b', 2 is 'c', the sorted labels of"
    assert said in wrong.stdout
    truth = ROWS["grade"].to_numpy(dtype=object)
    errors = int((reference.predict(ROWS[FEATURES]) != truth).sum())
    assert certificate().facts["risk.count"] != errors
    right = shell.run(told("m.txt", "grade", "--labels b,c,a", "--out o2"))
    assert "0 is 'b', 1 is 'c', 2 is 'a', as --labels says" in right.stdout
    assert certificate("o2").facts["risk.count"] == errors


def test_labels_that_are_positions_need_no_names(rows, shell):
    """Also where one of them does not come up in the file."""
    lightgbm_file(["a", "b", "c"], "grade")
    numbered = ROWS[ROWS["grade"] != "c"].assign(grade=coded_rows).drop(columns="state")
    numbered.to_csv("rows.csv", index=False)
    result = shell.run(
        "certify m.txt rows.csv --target grade --drop amount --drop who --independent"
    )
    assert result.exit_code == 0, result.output
    assert "positions only" not in result.stdout
    assert certificate().facts.options["classes"] == ("0", "1", "2")


def coded_rows(frame):
    return frame["grade"].map({"a": 0, "b": 1, "c": 2})


def test_numbers_are_sorted_by_size(rows, shell):
    """2 comes before 10."""
    _, reference = lightgbm_file(["a", "b", "c"], "grade")
    sizes = {"a": 2, "b": 10, "c": 100}
    ROWS.assign(grade=ROWS["grade"].map(sizes)).to_csv("rows.csv", index=False)
    result = shell.run(told("m.txt", "grade", "--independent"))
    assert "0 is '2', 1 is '10', 2 is '100'" in result.stdout
    errors = reference.predict(ROWS[FEATURES]) != ROWS["grade"].to_numpy(dtype=object)
    assert certificate().facts["risk.count"] == int(errors.sum())


def test_labels_that_do_not_fit(rows, shell):
    lightgbm_file(["a", "b", "c"], "grade")
    skops_file(None, "state")
    for command, message in {
        told("m.txt", "grade", "--labels a,b"): (
            "--labels names 2 labels, m.txt has 3 classes: name one label per class, in the model's order"
        ),
        told("m.txt", "grade", "--labels a,b,b"): "--labels names a label twice",
        told("m.txt", "state"): (
            "m.txt has 3 classes without names, and rows.csv, column 'state' has 2 labels, 'sick' and"
            " 'well': say which label is which class with --labels, in the model's order."
        ),
        told("m.txt", "grade", "--labels x,y,z"): (
            "rows.csv, column 'grade' has no label that m.txt answers with: it answers 'x', 'y' and 'z',"
            " labels are 'a', 'b' and 'c'. Name another --target, or write both alike."
        ),
        told("m.skops", "state", "--labels ill,fine"): (
            "--labels is for models that only know positions: m.skops answers with 'sick' and 'well';"
            " leave it out"
        ),
        told("m.skops", "grade"): (
            "rows.csv, column 'grade' has no label that m.skops answers with: it answers 'sick' and"
            " 'well', labels are 'a', 'b' and 'c'. Name another --target, or write both alike."
        ),
        told("m.skops", "state", "--positive sic"): (
            "m.skops has no class 'sic' (--positive). Did you mean 'sick'?"
        ),
    }.items():
        assert shell.refusal(command) == message


def test_labels_that_the_model_never_answers_count_as_wrong(rows, shell):
    _, model = skops_file(None, "state")
    changed = ROWS.copy()
    changed.loc[:9, "state"] = "unknown"
    changed.to_csv("rows.csv", index=False)
    result = shell.run(told("m.skops", "state", "--independent"))
    assert (
        "Column 'state' has labels that m.skops never answers, 'unknown': rows with them"
        in result.stdout
    )
    errors = int((model.predict(ROWS[FEATURES]) != changed["state"]).sum())
    assert certificate().facts["risk.count"] == errors


def test_rows_without_a_label_are_left_out(rows, shell):
    skops_file(None, "state")
    ROWS.assign(state=ROWS["state"].where(ROWS.index > 9)).to_csv("rows.csv", index=False)
    assert (
        "10 of 300 rows have no label"
        in shell.run(told("m.skops", "state", "--independent")).stdout
    )
    assert certificate().facts["rows"] == 290


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────


class Trap:
    """Writes a file when a pickle of it is opened."""

    def __reduce__(self):
        return (Path.touch, (Path("opened"),))


@pytest.mark.parametrize(
    "name", ["m.pkl", "m.joblib", "m.pt", "m.onnx", "m.txt", "m.json", "m.skops"]
)
def test_a_pickle_is_refused_in_one_sentence_and_never_opened(name, rows, shell):
    Path(name).write_bytes(pickle.dumps(Trap()))
    line = shell.refusal(told(name, "state"))
    assert line.startswith(f"{name} is a pickle")
    assert "could run code and is never opened: save" in line
    assert not Path("opened").exists()


def test_what_is_said_of_wrong_commands(rows, shell):
    skops_file(None, "state")
    ROWS.rename(columns={"dose": "doses"}).to_csv("other.csv", index=False)
    ROWS.assign(dose="much").to_csv("words.csv", index=False)
    for command, message in {
        "certify m.skops rows.csv": "a model needs --target COLUMN, the column of what is right",
        "certify rows.csv m.skops --target state": (
            "the model comes first: surelearn certify m.skops rows.csv --target COLUMN"
        ),
        "certify m.skops --target state": (
            "name the rows after the model: surelearn certify m.skops ROWS --target COLUMN"
        ),
        "certify rows.csv --target state": (
            "--target goes with a model: surelearn certify MODEL rows.csv --target COLUMN; of answers"
            " that are written down say --truth and --answer"
        ),
        "certify m.skops rows.csv rows.csv --target state": (
            "name a model and one file of rows, or one file of answers, not 3 files"
        ),
        "certify m.skops rows.csv --target stat": "rows.csv has no column 'stat'. Did you mean 'state'?",
        "certify m.skops rows.csv --target state --answer town": (
            "--answer is for answers that are written down: leave it out, the model answers"
        ),
        "certify m.skops rows.csv --target state --tie none": (
            "--winner is for answers that are written down: leave it out, the model answers"
        ),
        "certify m.skops rows.csv --target state --truth grade": (
            "--target and --truth are two names of one thing: leave out --truth"
        ),
        "certify m.skops other.csv --target state": (
            "other.csv has no column 'dose', which m.skops reads. Did you mean 'doses'? Then rename it."
        ),
        "certify m.skops rows.csv --target state --weights w.safetensors": (
            "--weights goes with MODULE:FACTORY, not with m.skops"
        ),
        "certify m.skops rows.csv --target state --task regression": (
            "m.skops (a model in skops' format) answers with labels, and numbers were asked for: leave out"
            " --task, --positive and --labels, or name another model"
        ),
        "certify m.skops rows.csv --target state --max-risk 0.1 --at-least 3": (
            "pass --max-risk, the largest risk, or --at-least, the least grade: one of them"
        ),
    }.items():
        assert shell.refusal(command) == message
    assert "m.skops does not answer words.csv" in shell.refusal(
        "certify m.skops words.csv --target state"
    )


def test_columns_of_a_model_without_names_are_the_numbers_but_group_and_weight(rows, shell):
    """The group's number is no feature."""
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=8, verbose=-1)
    codes = coded(["sick", "well"], "state")
    model.fit(FIT[FEATURES].to_numpy(), codes).booster_.save_model("m.txt")
    left = "certify m.txt rows.csv --target state --drop grade --drop amount --independent"
    result = shell.run(f"{left} --group who")
    assert result.exit_code == 0, result.output
    assert "reading 3 columns: 'age', 'dose' and 'mass'" in result.stdout
    assert shell.refusal(left) == (
        "m.txt reads 3 columns of numbers without names, and rows.csv has 4 beside the target: 'age',"
        " 'dose', 'mass' and 'who'. Leave out with --drop what the model does not read."
    )


def test_what_an_option_of_columns_that_models_fill_in_is_called(rows):
    """Nobody states by hand which file answered."""
    with pytest.raises(ValueError, match=r"answered_by is no option of answers"):
        audit_answers(ROWS, truth="state", answer="town", answered_by="m.onnx, sha256:0")


def test_the_file_of_answers_still_needs_no_model(rows, shell):
    ROWS.assign(said=ROWS["state"]).to_csv("answers.csv", index=False)
    result = shell.run("certify answers.csv --truth state --answer said")
    assert result.exit_code == 0
    assert "answered_by" not in json.dumps(certificate().to_dict())
