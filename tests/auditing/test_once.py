"""The flow, once: one path for Python and the command, each model hashed once, one certificate,
one folder.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.tree import DecisionTreeClassifier

import surelearn
from surelearn import fingerprint
from surelearn.auditing.headline import Headline
from surelearn.auditing.options import OptionError, Options
from surelearn.auditing.sections import skippable
from surelearn.auditing.verification import verify_folder
from surelearn.certificate import SECOND_MODEL, Certificate
from surelearn.certification import certify
from surelearn.cli import main
from surelearn.data import read_table
from surelearn.data.oddities import find_oddities, giveaways
from surelearn.jobs import Runner
from surelearn.linear import LogisticRegression, Ridge
from surelearn.persistence import read_model

BARE = {"skip": skippable(), "n_jobs": 1}


def table(rows=300, seed=0, leak=False):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(rows, 3)), columns=["a", "b", "c"])
    frame["y"] = np.where(frame["a"] + 0.5 * rng.normal(size=rows) > 0, "yes", "no")
    return frame.assign(told=np.where(frame["y"] == "yes", "up", "down")) if leak else frame


def texts(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leak", [False, True])
def test_each_model_is_hashed_once(leak, monkeypatch, tmp_path):
    hashed, kept, made = Counter(), [], fingerprint._fingerprint

    def counted(model, *, first):
        kept.append(model)  # so that no other has its id
        hashed[id(model)] += 1
        return made(model, first=first)

    monkeypatch.setattr(fingerprint, "_fingerprint", counted)
    models = {"it": LogisticRegression(regularization=0.1, x_bound=10.0, random_state=0)}
    options = {
        "target": "y",
        "models": models,
        "against": DecisionTreeClassifier(max_depth=1, random_state=0),
    }
    # both ask for the learner's certificate
    skip = [key for key in skippable() if key not in ("stability", "bounds")]
    result = surelearn.audit(
        table(leak=leak), **options, ledger=tmp_path / "ledger", skip=skip, refits=2, n_jobs=1
    )
    assert hashed[id(result.model)] == 1
    # the pipeline, the rival, and the learner inside or the model with the suspects
    assert len(hashed) == 3
    assert max(hashed.values()) == 1


def test_a_model_that_is_fitted_again_is_hashed_again():
    X, y = np.arange(6.0)[:, None], np.arange(6.0)
    model = Ridge(regularization=0.1).fit(X, y)
    with fingerprint.fixed_models(model):
        before = fingerprint.fingerprint_model(model)
        other = fingerprint.fingerprint_model(Ridge(regularization=0.1).fit(X, -y))
    assert before != other
    model.fit(X, -y)
    assert fingerprint.fingerprint_model(model) == other


def test_the_table_is_searched_for_oddities_once(monkeypatch):
    calls = []
    for place in ("surelearn.data.table", "surelearn.auditing.dividing"):
        found = pytest.importorskip(place).find_oddities
        monkeypatch.setattr(
            f"{place}.find_oddities",
            lambda *a, _found=found, **k: calls.append(1) or _found(*a, **k),
        )
    surelearn.audit(table(leak=True), target="y", models="naive Bayes", ledger=False, **BARE)
    assert len(calls) == 1


def patients(visits=5):
    """Every visit of a patient has the patient's label: the name tells it, and names a group."""
    names = np.repeat([f"p{i}" for i in range(60)], visits)
    return table(60 * visits).assign(
        patient=names, y=np.repeat(np.where(np.arange(60) % 2, "yes", "no"), visits)
    )


@pytest.mark.parametrize(
    "frame", [table(leak=True), table(), patients()], ids=["leak", "none", "patients"]
)
@pytest.mark.parametrize("grouped", [False, True])
def test_what_gives_the_target_away_is_what_is_found_among_oddities(frame, grouped):
    read = read_table(frame, target="y")
    oddities = find_oddities(
        read.frame, read.columns, read.y, read.task, read.row_hashes, grouped=grouped
    )
    told = giveaways(read.frame, read.columns, read.y, read.task, grouped=grouped)
    assert told == [finding.numbers["column"] for finding in oddities if finding.code == "SL103"]
    expected = (
        ["told"] if "told" in frame else ["patient"] if "patient" in frame and grouped else []
    )
    assert told == expected


# ------------------------------------------------------------------------------------------- Python


@pytest.mark.parametrize(
    "words", ["", "--positive yes --cost 3 --slice a", "--format md --format html --delta 0.1"]
)
def test_python_writes_what_the_command_writes(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table().to_csv("t.csv", index=False)
    skip = [word for key in skippable() for word in ("--skip", key)]
    command = [
        "audit",
        "t.csv",
        "--target",
        "y",
        "--model",
        "naive Bayes",
        *words.split(),
        *skip,
        "--jobs",
        "1",
    ]
    result = CliRunner(catch_exceptions=False).invoke(main, [*command, "--out", "there"])
    assert result.exit_code == 0, result.output
    reproduce = surelearn.report.Audit.from_json(
        (tmp_path / "there" / "audit.json").read_text()
    ).reproduce
    options = {"positive": "yes", "cost": 3.0, "slices": ("a",)} if "cost" in words else {}
    options |= {"delta": 0.1} if "delta" in words else {}
    runner = Runner(n_jobs=1, command=reproduce)
    page = surelearn.audit(
        "t.csv", target="y", models=["naive Bayes"], runner=runner, skip=skippable(), **options
    )
    paths = page.write("here", ["html", "md"] if "md" in words else ["html"])
    assert texts(tmp_path / "here") == texts(tmp_path / "there")
    # skops numbers objects by address
    here, there = (read_model(tmp_path / name / "model") for name in ("here", "there"))
    assert fingerprint.fingerprint_model(here.model) == fingerprint.fingerprint_model(there.model)
    assert (here.certificate, here.schema, here.reference) == (
        there.certificate,
        there.schema,
        there.reference,
    )
    assert set(paths) == {"page", "numbers", "certificate", "model"} | (
        {"text"} if "md" in words else set()
    )
    assert verify_folder("here", "t.csv")


def test_writing_again_removes_what_is_no_longer_there(tmp_path):
    page = surelearn.audit(table(), target="y", models="naive Bayes", ledger=False, **BARE)
    page.write(tmp_path / "out", ["html", "md"])
    page.write(tmp_path / "out", ["md"])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "audit.json", "certificate.json", "model", "report.md",
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"^formats must be among html, md, not 'pdf'"):
        page.write(tmp_path / "out", ["pdf"])


def test_the_command_asks_the_public_function(monkeypatch, tmp_path):
    asked = []

    def audit(source, **options):
        asked.append((source, options))
        raise ValueError("enough")

    monkeypatch.setattr("surelearn.auditing.audit", audit)
    table().to_csv(tmp_path / "t.csv", index=False)
    for words in ([], ["--dry-run"]):
        command = ["audit", str(tmp_path / "t.csv"), "--target", "y", "--alpha", "0.2", *words]
        assert (
            CliRunner()
            .invoke(main, [*command, "--out", str(tmp_path / "out")])
            .output.endswith("enough\n")
        )
    assert [options["alpha"] for _, options in asked] == [0.2, 0.2]
    assert [options.get("dry_run", False) for _, options in asked] == [False, True]
    assert all(len(source.y) == 300 for source, _ in asked)


def test_a_dry_run_divides_and_records_nothing(tmp_path):
    frame = table(leak=True)
    ledger = tmp_path / "ledger"
    divided = surelearn.audit(frame, target="y", dry_run=True, ledger=ledger)
    assert divided.suspects == ("told",)
    assert "SL103" in {finding.code for finding in divided.oddities()}
    assert not ledger.exists()
    assert len(divided.train) + len(divided.split.certify) == 300
    with pytest.raises(ValueError, match="dry_run goes with a table"):
        surelearn.audit(
            Ridge().fit(np.eye(3), np.arange(3.0)), np.eye(3), np.arange(3.0), dry_run=True
        )


def test_a_table_that_was_read_is_not_read_again():
    frame = table()
    options = {"models": "naive Bayes", "ledger": False, **BARE}
    one, two = (
        surelearn.audit(frame, target="y", **options),
        surelearn.audit(read_table(frame, target="y"), **options),
    )
    assert one.to_json() == two.to_json()
    with pytest.raises(ValueError, match="target says how to read a table"):
        surelearn.audit(read_table(frame, target="y"), target="y", **options)


# --------------------------------------------------------------------------------------------------

WRONG = {
    "delta": (1.0, "delta must lie strictly between 0 and 1, not 1"),
    "alpha": (0, "alpha must lie strictly between 0 and 1, not 0"),
    "threshold": (float("nan"), "threshold must lie strictly between 0 and 1, not nan"),
    "certify_fraction": ("half", "certify_fraction must lie strictly between 0 and 1, not 'half'"),
    "select_fraction": (-0.1, "select_fraction must be at least 0 and below 1, not -0.1"),
    "cost": (0.0, "cost must be a positive number, not 0"),
    "loss_bound": (float("inf"), "loss_bound must be a positive number, not inf"),
    "largest_group": (0, "largest_group must be a whole number of at least 1, not 0"),
    "effort": (None, "effort must be a finite number above 0, not None"),
    "population": ("all", "population must be 'labelled' or nothing, not 'all'"),
    "skip": ("nonsense", f"skip knows the sections {', '.join(skippable())}, not 'nonsense'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_options_are_refused_by_the_name_of_the_argument(name):
    value, said = WRONG[name]
    with pytest.raises(OptionError) as error:
        Options(**{name: value})
    assert str(error.value) == said
    assert error.value.in_terms_of({name: "--it"}) == said.replace(name, "--it", 1)
    with pytest.raises(ValueError, match=r"must|knows"):
        surelearn.audit("iris", **{name: value})
    with pytest.raises(ValueError, match=r"must|knows"):
        surelearn.gate("iris", max_risk=0.1, **{name: value})


def test_costs_need_the_class_that_matters():
    for given in ({"cost": 2.0}, {"threshold": 0.5}):
        with pytest.raises(
            OptionError, match=r"^cost and threshold need positive, the class that matters$"
        ):
            Options(**given)
    assert Options(cost=2.0, positive="yes").miss == 2.0


# --------------------------------------------------------------------------------------------------


def test_the_second_model_of_a_leak_keeps_its_facts(tmp_path):
    for options in ({}, {"positive": "yes", "cost": 4.0}):
        page = surelearn.audit(
            table(leak=True), target="y", models="naive Bayes", ledger=False, **BARE, **options
        )
        certificate = page.certificate
        (second,) = [
            claim
            for claim in certificate.together
            if claim.covers.predictor == certificate.facts.hashes[SECOND_MODEL]
        ]
        assert second.label.endswith(" with told")
        assert set(second.sources.values()) <= set(certificate.facts.values)
        assert all(
            second.inputs[name] == certificate.facts[key] for name, key in second.sources.items()
        )
        assert certificate.verify()
        assert sum(claim.delta for claim in certificate.together) <= 0.05 * (1 + 1e-9)
        assert "with it at most" in page.verdict.text
        page.write(tmp_path / "out")
        found = verify_folder(tmp_path / "out", table(leak=True))
        assert found
        assert any("about a model that is not in the folder" in line for line in found.unchecked)


def test_an_edited_fact_of_the_second_model_is_found():
    page = surelearn.audit(table(leak=True), target="y", models="naive Bayes", ledger=False, **BARE)
    facts = page.certificate.facts
    (key,) = [key for key in facts.values if key.startswith(SECOND_MODEL) and key.endswith("count")]
    edited = replace(
        page.certificate, facts=replace(facts, values={**facts.values, key: facts[key] + 1})
    )
    assert any("with told" in line for line in edited.verify().differences)


@pytest.mark.parametrize(
    "answer", ["no", "a] of always answering b", "[no].losses", "", "where the truth is yes"]
)
def test_the_verdict_reads_no_label(answer):
    """Whatever the classes are called, and whatever claims are called in words."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1))
    y = np.where(X[:, 0] > 0.3, "yes", answer)
    certificate = certify(
        lambda X: np.where(X[:, 0] > 0.3, "yes", answer),
        X,
        y,
        task="classification",
        classes=["yes", answer],
        majority=answer,
    )
    renamed = replace(
        certificate, claims=tuple(replace(claim, label="it") for claim in certificate.claims)
    )
    headline = Headline.of(renamed)
    assert headline is not None
    assert headline.rival == f"always answering ‘{answer}’"
    assert {
        claim.about("class") for claim in renamed.claims if claim.quantity == "class_error"
    } == {"yes", answer}
    again = Certificate.from_json(certificate.to_json())
    assert [claim.about("constant") for claim in again.claims] == [
        claim.about("constant") for claim in certificate.claims
    ]
    assert again["risk"].about("class") is None
