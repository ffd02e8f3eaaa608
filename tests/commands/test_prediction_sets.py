"""Prediction sets from a file to a page that verifies, to predictions of new rows, and to live rows."""

import json

import numpy as np
import pandas as pd
import pytest

from surelearn.certificate import Certificate
from surelearn.operating.sets import from_words
from surelearn.persistence import read_model

LABELS = ["cat", "dog", "ee|l"]


def scored(n=1200, seed=0, wrong=0.0):
    """Rows with a probability of each of three classes."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    z = rng.normal(size=(n, 3))
    z[np.arange(n), y] += 1.5
    p = np.exp(1.5 * z)
    p = np.round(p / p.sum(axis=1, keepdims=True), 3)
    told = np.where(rng.random(n) < wrong, rng.integers(3, size=n), y)
    table = pd.DataFrame(p, columns=[f"p_{label}" for label in LABELS])
    note = [f"case {seed} {i}" for i in rng.permutation(n)]
    return table.assign(label=np.array(LABELS)[told], said=np.array(LABELS)[p.argmax(1)], note=note)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    scored().to_csv("t.csv", index=False)
    return tmp_path


ASKED = "certify t.csv --truth label --probability p_* --ledger looks --quiet"


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """An audit of three classes with sets, made once."""
    from click.testing import CliRunner

    from surelearn.cli import main

    folder = tmp_path_factory.mktemp("sets")
    rows(900, 0).to_csv(folder / "rows.csv", index=False)
    command = [
        "audit",
        str(folder / "rows.csv"),
        "--target",
        "kind",
        "--sets",
        "0.1",
        "--positive",
        "b",
    ]
    command += [
        "--model",
        "naive Bayes",
        "--ledger",
        str(folder / "looks"),
        "--jobs",
        "1",
        "--quiet",
    ]
    for name in (
        "robustness",
        "poisoning",
        "membership",
        "attribution",
        "learning_curve",
        "stability",
    ):
        command += ["--skip", name]
    result = CliRunner(catch_exceptions=False).invoke(main, [*command, "--out", str(folder / "a")])
    assert result.exit_code == 0, result.output
    return folder


def rows(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n)
    X = rng.normal(size=(n, 2)) + 1.4 * np.array([[0, 0], [1, 1], [2, -1]])[y] * (1 - shift)
    return pd.DataFrame(X.round(4), columns=["u", "v"]).assign(kind=np.array(["a", "b", "c|d"])[y])


@pytest.mark.parametrize("more", ["--sets 0.1", "--sets 0.1 --per-class --answer said"])
def test_a_page_of_answers_guarantees_sets_and_verifies(more, here, shell):
    assert shell.run(f"{ASKED} {more} --out c").exit_code == 0
    certificate = Certificate.from_json((here / "c" / "certificate.json").read_text())
    assert certificate.sets.per_class == ("--per-class" in more)
    page = (here / "c" / "report.html").read_text()
    assert "Prediction sets" in page
    assert "at least 90.0%" in page
    verified = shell.run("verify c --data t.csv")
    assert verified.exit_code == 0, verified.output
    other = scored().assign(p_cat=lambda t: t["p_dog"], p_dog=scored()["p_cat"])
    other.to_csv("other.csv", index=False)
    assert shell.run("verify c --data other.csv").exit_code == 1
    found = json.loads((here / "c" / "audit.json").read_text())
    sets = next(section for section in found["sections"] if section["key"] == "sets")
    counts = certificate.facts["set.sizes"]
    mean = np.dot(counts, np.arange(len(counts))) / sum(counts)
    assert sets["findings"][0]["numbers"]["mean"] == pytest.approx(mean)
    assert sets["tables"][0]["rows"][0][0] == "all rows"
    of_each = " of each class" if certificate.sets.per_class else ""
    clause = (
        f"hold the true label of at least **90.0% of new rows{of_each}**, and {mean:.2f} labels"
    )
    assert clause in found["verdict"]["sentence"]


def test_a_score_of_two_classes_has_sets_whatever_its_range(here, shell):
    table = scored().assign(two=lambda t: np.where(t["label"] == "cat", "cat", "other"))
    for name, scale in (("probable", 1.0), ("ranked", 7.0)):
        table.assign(s=scale * table["p_cat"]).to_csv("two.csv", index=False)
        command = f"certify two.csv --truth two --score s --positive cat --threshold {scale / 2}"
        drop = " ".join(f"--drop {c!r}" for c in table.columns if c not in ("two", "note"))
        result = shell.run(
            f"{command} {drop} --sets 0.2 --ledger {name}.looks --quiet --out {name}"
        )
        assert result.exit_code == 0, result.output
        assert shell.run(f"verify {name} --data two.csv").exit_code == 0
        # live scores of another range are taken as the certified ones were
        live = table.assign(s=scale * table["p_cat"])[lambda t: t["p_cat"] < 0.13]
        live.to_csv("live.csv", index=False)
        watched = shell.run(f"watch {name}/certificate.json live.csv --state {name}.watch.json")
        made = Certificate.from_json((here / name / "certificate.json").read_text())
        p = live["p_cat"].to_numpy()
        if name == "ranked":
            p = 0.5 + np.arcsinh(scale * p - scale / 2) / 1500
        inside = made.sets.thresholds[0] >= -np.log(np.where(live["two"] == "cat", p, 1 - p))
        assert f"{inside.sum()} of {len(live)}" in watched.output, watched.output


REFUSED = {
    "labels only": ("certify t.csv --truth label --answer said --sets 0.1",
                    "--sets needs a number for each label: --probability"),
    "no star": ("certify t.csv --truth label --probability p --sets 0.1", "must have one star"),
    "no such columns": ("certify t.csv --truth label --probability q_*", "none is there"),
    "words": ("certify t.csv --truth label --probability *id", "column 'said' holds words"),
    "labels apart": ("certify t.csv --truth note --probability p_*", "Write both alike"),
    "a positive without a column": ("certify t.csv --truth label --probability p_* --positive cow",
                                    "names no column for --positive 'cow'"),
    "a score, too": ("certify t.csv --truth label --probability p_* --score p_cat --positive cat",
                     "--probability does not go with --score"),
    "all rows": ("certify t.csv --truth label --probability p_* --sets 1", "--sets must lie strictly between 0 and 1"),
    "per class of nothing": ("certify t.csv --truth label --probability p_* --per-class", "--per-class goes with --sets"),
    "one pass": ("certify t.csv --truth label --probability p_* --sets 0.1 --one-pass",
                 "--one-pass does not go with --sets"),
    "weights": ("certify t.csv --truth label --probability p_* --sets 0.1 --weight p_cat --weight-bound 2",
                "--sets does not go with --weight"),
    "passes": ("certify t.csv --pass said --sets 0.1", "--sets needs a number for each label"),
    "numbers": ("audit t.csv --target p_cat --sets 0.1", "--sets is about labels"),
    "time": ("audit t.csv --target label --time p_cat --sets 0.1", "leave out --time"),
    "a gate": ("gate t.csv --target label --max-risk 0.5 --sets 0.1", "No such option"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_in_one_sentence(name, here, shell):
    table = scored().assign(id=scored()["said"])
    if name == "words":
        table = table.assign(**{"1id": "x", "2id": "y"})
    table.to_csv("t.csv", index=False)
    command, said = REFUSED[name]
    if name == "a gate":
        assert said in shell.run(command).output
    elif name == "words":
        assert "holds words" in shell.refusal(command)
    else:
        assert said in shell.refusal(command)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"p_cat": np.nan}, "column 'p_cat' lacks 1 of 1,200 numbers"),
        ({"p_cat": 3.0}, "the probabilities of row 5 have the sum"),
    ],
)
def test_probabilities_that_are_none_are_refused(change, said, here, shell):
    table = scored()
    for name, value in change.items():
        table.loc[4, name] = value
    table.to_csv("t.csv", index=False)
    assert said in shell.refusal(f"{ASKED} --sets 0.1")


def test_classes_without_rows_and_rows_without_a_class(here, shell):
    """A class that no row has is in every set of --per-class; a label without a column is missed."""
    table = scored()
    table.assign(p_cow=0.0).to_csv("t.csv", index=False)
    assert shell.run(f"{ASKED} --sets 0.1 --per-class --out c").exit_code == 0
    made = Certificate.from_json((here / "c" / "certificate.json").read_text())
    assert made.sets.thresholds[made.sets.classes.index("cow")] is None
    table.drop(columns="p_dog").assign(**{"p_ee|l": 1 - table["p_cat"]}).to_csv(
        "t.csv", index=False
    )
    assert shell.run(f"{ASKED} --sets 0.6 --out d").exit_code == 0
    made = Certificate.from_json((here / "d" / "certificate.json").read_text())
    assert made.facts["set.unknown"] == (table["label"] == "dog").sum()
    assert shell.run(f"{ASKED} --sets 0.6 --per-class --out e").exit_code == 0
    found = json.loads((here / "e" / "audit.json").read_text())
    assert "new rows of each class that can be in one**" in found["verdict"]["sentence"]


def test_new_rows_get_their_set_and_the_probability_of_the_class_that_matters(
    audited, shell, tmp_path
):
    new = rows(40, 1)
    new.to_csv(tmp_path / "new.csv", index=False)
    result = shell.run(f"predict {audited}/a {tmp_path}/new.csv --out {tmp_path}/p.csv")
    assert result.exit_code == 0, result.output
    assert (
        "a set that holds the truth of 90.0% of new rows like the certified ones" in result.stderr
    )
    written = pd.read_csv(tmp_path / "p.csv", keep_default_na=False)
    assert list(written.columns)[3:] == [
        "prediction",
        "probability",
        "probability_b",
        "set",
        "outside",
    ]
    saved = read_model(audited / "a" / "model")
    shares = saved.model.predict_proba(new[["u", "v"]])
    own = saved.model.classes_.tolist()
    np.testing.assert_allclose(written["probability_b"], shares[:, own.index("b")], rtol=1e-12)
    sets = saved.certificate.sets
    assert [tuple(from_words(text)) for text in written["set"]] == sets.labels(
        saved.model, new[["u", "v"]]
    )
    verified = shell.run(f"verify {audited}/a --data {audited}/rows.csv")
    assert verified.exit_code == 0, verified.output


def told_of_sets(watched):
    """What `watch` says of prediction sets."""
    lines = watched.output.splitlines()
    return " ".join(next(line for line in lines if "in the prediction set" in line).split())


def test_live_rows_are_counted_by_the_model_by_a_column_of_sets_and_one_by_one(
    audited, shell, tmp_path
):
    live = rows(300, 2)
    live.to_csv(tmp_path / "live.csv", index=False)
    watch = f"watch {audited}/a/certificate.json"
    by_model = shell.run(f"{watch} {tmp_path}/live.csv --state {tmp_path}/1.json")
    saved = read_model(audited / "a" / "model")
    codes = [saved.certificate.sets.classes.index(label) for label in live["kind"]]
    inside = saved.certificate.sets.members(saved.model, live[["u", "v"]])[np.arange(300), codes]
    assert f"{inside.sum()} of 300" in by_model.output, by_model.output
    shell.run(f"predict {audited}/a {tmp_path}/live.csv --out {tmp_path}/p.csv")
    told = pd.read_csv(tmp_path / "p.csv", keep_default_na=False)[["kind", "prediction", "set"]]
    told.to_csv(tmp_path / "told.csv", index=False)
    by_column = shell.run(f"{watch} {tmp_path}/told.csv --state {tmp_path}/2.json")
    line = told_of_sets(by_model)
    assert told_of_sets(by_column) == line
    streamed = shell.run(f"{watch} - --state {tmp_path}/3.json", input=live.to_csv(index=False))
    assert told_of_sets(streamed) == line
    told.drop(columns="set").to_csv(tmp_path / "less.csv", index=False)
    without = shell.run(f"{watch} {tmp_path}/less.csv --state {tmp_path}/4.json")
    assert "claims about prediction sets got no evidence" in without.output
    told.assign(set="x").to_csv(tmp_path / "strange.csv", index=False)
    refused = shell.run(f"{watch} {tmp_path}/strange.csv --state {tmp_path}/5.json")
    assert refused.exit_code == 2
    assert "column 'set' holds 'x', which is no label of the model" in refused.output


def test_live_rows_that_are_covered_too_seldom_raise_an_alarm(here, shell):
    shell.run(f"{ASKED} --sets 0.1 --per-class --out c")
    scored(600, seed=3).to_csv("good.csv", index=False)
    assert shell.run("watch c/certificate.json good.csv --state good.json").exit_code == 0
    scored(600, seed=4, wrong=0.4).to_csv("bad.csv", index=False)
    bad = shell.run("watch c/certificate.json bad.csv --state bad.json --claim class_coverage")
    assert bad.exit_code == 3
    assert "contradict true label in the prediction set where it is cat" in bad.output
