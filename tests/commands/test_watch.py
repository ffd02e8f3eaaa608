"""`surelearn watch`: state from run to run, files fed twice, standard input, exit codes, drift."""

import json
import os
import signal

import numpy as np
import pandas as pd
import pytest

from surelearn.certificate import Certificate
from surelearn.monitoring import Watch
from surelearn.persistence import read_model
from surelearn.slicing import Cuts


def live(shell, n=120, seed=11, wrong=0.0):
    """New rows; a part of the labels is turned round."""
    frame = shell.frame(n, seed=seed)
    turned = np.random.default_rng(seed).random(n) < wrong
    return frame.assign(y=np.where(turned, np.where(frame["y"] == "yes", "no", "yes"), frame["y"]))


def test_live_rows_that_bear_it_out(place, shell):
    live(shell).to_csv("monday.csv", index=False)
    result = shell.run("watch classes/certificate.json monday.csv")
    assert result.exit_code == 0
    assert "120 new rows" in result.stdout
    assert "No alarm." in result.stdout
    state = json.loads((place / "classes" / "certificate.watch.json").read_text())
    assert state["format"] == "surelearn-watch"


def test_the_models_predictions_are_the_columns(place, shell):
    """A file with predictions, as `surelearn predict` writes it, and one that the model
    predicts: the same evidence.
    """
    live(shell).to_csv("monday.csv", index=False)
    shell.run("predict classes monday.csv --out joined.csv")
    one = shell.run("watch classes/certificate.json monday.csv --state one.json").stdout
    (place / "alone.json").write_text((place / "classes" / "certificate.json").read_text())
    two = shell.run("watch alone.json joined.csv --state two.json").stdout
    evidence = slice(0, 6)  # below it: slices, which take the model and its columns
    assert one.splitlines()[evidence] == two.splitlines()[evidence]
    assert "claims about slices got no evidence" in two
    assert "claims about slices" not in one
    assert "no model lies beside alone.json" in shell.refusal(
        "watch alone.json monday.csv --state three.json"
    )
    frame = pd.read_csv("joined.csv").rename(columns={"prediction": "said", "y": "truth"})
    frame.to_csv("renamed.csv", index=False)
    renamed = shell.run(
        "watch alone.json renamed.csv --state four.json --target truth --prediction said"
    ).stdout
    assert renamed == two


def test_a_change_raises_an_alarm_that_stays(place, shell):
    live(shell, wrong=0.5).to_csv("bad.csv", index=False)
    result = shell.run("watch classes bad.csv --plot evidence.png")
    assert result.exit_code == 3
    assert "Alarm after" in result.stdout
    assert (place / "evidence.png").read_bytes().startswith(b"\x89PNG")
    live(shell, seed=12).to_csv("good.csv", index=False)
    assert shell.run("watch classes good.csv").exit_code == 3


def test_the_evidence_is_that_of_python(place, shell):
    frames = [live(shell, seed=seed, wrong=0.2) for seed in (1, 2, 3)]
    saved = read_model("classes/model")
    watch = Watch(saved.certificate)
    for i, frame in enumerate(frames):
        frame.to_csv(f"{i}.csv", index=False)
        shell.run(f"watch classes {i}.csv")
        watch.update(frame["y"], saved.model.predict(frame[["x", "z", "c"]]))
    kept = Watch.load(place / "classes" / "certificate.watch.json", saved.certificate)
    assert kept.headline.evidence == pytest.approx(watch.headline.evidence, rel=1e-12)
    assert kept.rows == watch.rows == 360


def test_a_file_fed_twice_and_one_that_grew(place, shell):
    frame = live(shell, 200)
    frame[:120].to_csv("log.csv", index=False)
    first = shell.run("watch classes log.csv").stdout
    again = shell.run("watch classes log.csv").stdout
    assert "0 new rows; the first 120 rows were fed before as log.csv" in again
    assert first.splitlines()[1:] == again.splitlines()[1:]
    frame.to_csv("log.csv", index=False)
    assert (
        "80 new rows; the first 120 rows were fed before"
        in shell.run("watch classes log.csv").stdout
    )
    frame.to_csv("copy.csv", index=False)
    assert "0 new rows" in shell.run("watch classes copy.csv").stdout


def test_the_same_rows_with_what_predict_adds_are_not_fed_again(place, shell):
    """Nor where they were fed with these columns before; rows that only begin alike are new."""
    live(shell, 150).to_csv("log.csv", index=False)
    assert shell.run("predict classes log.csv --out told.csv").exit_code == 0
    added = pd.read_csv("told.csv").columns.tolist()[len(live(shell).columns) :]
    assert added[:2] == ["prediction", "probability"]
    assert "150 new rows" in shell.run("watch classes log.csv").stdout
    assert "0 new rows; the first 150" in shell.run("watch classes told.csv").stdout
    assert "150 new rows" in shell.run("watch classes told.csv --state s.json").stdout
    for file in ("told.csv", "log.csv"):
        assert "0 new rows" in shell.run(f"watch classes {file} --state s.json").stdout
    live(shell, 150, seed=12).to_csv("other.csv", index=False)
    assert shell.run("predict classes other.csv --out told.csv").exit_code == 0
    assert "150 new rows" in shell.run("watch classes told.csv").stdout


def test_standard_input_row_by_row(place, shell):
    good, bad = live(shell, 30), live(shell, 300, seed=3, wrong=0.9)
    text = good.to_csv(index=False)
    result = shell.run("watch classes - --state s.json", input=text)
    assert result.exit_code == 0
    assert ", 30 labeled rows;" in result.stdout
    result = shell.run("watch classes - --state s.json", input=bad.to_csv(index=False))
    assert result.exit_code == 3
    rows = Watch.load(
        place / "s.json",
        Certificate.from_json((place / "classes" / "certificate.json").read_text()),
    ).rows
    assert 30 < rows < 100  # it ended at the alarm


def test_without_labels_inputs_are_compared(place, shell):
    frame = live(shell, 400).drop(columns="y")
    frame.to_csv("new.csv", index=False)
    result = shell.run("watch classes new.csv")
    assert result.exit_code == 0
    assert "no column 'y' of labels, so the certificate is not tested" in result.stdout
    assert "SL50" not in result.stdout
    frame.assign(x=frame["x"] + 1.5).to_csv("moved.csv", index=False)
    result = shell.run("watch classes moved.csv")
    assert result.exit_code == 4
    assert "(SL501)" in result.stdout
    assert "Column 'x': " in result.stdout
    assert "(SL502)" in result.stdout  # the scores moved with it
    assert not (place / "classes" / "certificate.watch.json").exists()


def test_drift_is_told_beside_labels_and_has_its_exit_code(place, shell):
    live(shell, 400).assign(z=3.0).to_csv("moved.csv", index=False)
    result = shell.run("watch classes moved.csv")
    assert result.exit_code == 4
    assert "(SL501)" in result.stdout
    assert "No alarm." in result.stdout
    live(shell, 400, seed=5, wrong=0.6).assign(z=3.0).to_csv("worse.csv", index=False)
    # a contradicted certificate is worse than drift
    assert shell.run("watch classes worse.csv").exit_code == 3


def test_finding_2_of_65_cases_is_an_alarm_although_errors_are_few(place, shell):
    truth = np.repeat(["yes", "no"], [65, 2935])
    called = np.where(np.arange(3000) < 2, "yes", "no")
    table = pd.DataFrame({"y": truth, "prediction": called}).sample(frac=1, random_state=0)
    table.to_csv("cases.csv", index=False)
    certificate = Certificate.from_json((place / "classes" / "certificate.json").read_text())
    assert (table["y"] != table["prediction"]).mean() < certificate["risk"].value
    result = shell.run("watch classes cases.csv")
    assert result.exit_code == 3
    assert "the live rows contradict sensitivity (recall) for yes ≥" in result.stdout
    assert "contradict errors ≤" not in result.stdout


def test_label_shift_is_named_and_has_the_exit_code_of_drift(place, shell):
    frame = live(shell, 1500)
    frame[(frame["y"] == "yes") | (frame.index % 8 == 0)].to_csv("ill.csv", index=False)
    shell.run("predict classes ill.csv --out joined.csv")
    (place / "alone.json").write_text((place / "classes" / "certificate.json").read_text())
    result = shell.run("watch alone.json joined.csv")  # inputs are not compared
    assert "Label shift: " in result.stdout
    assert "of live rows are 'yes'" in result.stdout or "of live rows are 'no'" in result.stdout
    assert (
        "Error rates per class may still hold; overall errors, precision and mean cost need not"
        in result.stdout
    )
    assert "(SL503)" in result.stdout
    assert result.exit_code == 4
    assert "Exit codes:" in shell.run("watch --help").stdout


def test_looks_at_drift_are_counted_from_run_to_run(place, shell):
    """Each look has its part of 1%: a difference with p between two levels is found on the
    first look and not on a later.
    """
    frame = live(shell, 300).drop(columns="y")
    frame.to_csv("new.csv", index=False)
    assert "1 look at drift so far, the last at 0.61%" in shell.run("watch classes new.csv").stdout
    # the same rows are the same look
    assert "1 look at drift so far" in shell.run("watch classes new.csv").stdout
    for day in range(2, 5):
        live(shell, 300, seed=100 + day).drop(columns="y").to_csv("new.csv", index=False)
        printed = shell.run("watch classes new.csv").stdout
    assert (
        "4 looks at drift so far, the last at 0.038%: if nothing changed, any of them finds"
        " something with" in printed
    )
    assert "probability about 1%, however many follow" in printed
    live(shell, 300, seed=99).to_csv("labeled.csv", index=False)
    shell.run("watch classes labeled.csv")  # labeled rows are compared too
    assert len(json.loads((place / "classes" / "certificate.drift.json").read_text())["seen"]) == 5
    (place / "classes" / "certificate.drift.json").write_text("{}")
    assert "certificate.drift.json does not hold looks at drift" in shell.refusal(
        "watch classes new.csv"
    )


def test_a_broken_slice_is_named(place, shell):
    """Labels are turned round in one slice only; the slices' columns come from the file, as the
    model reads them.
    """
    certificate = Certificate.from_json((place / "classes" / "certificate.json").read_text())
    cuts = Cuts.from_options(certificate.facts.options["slices"])
    frame = live(shell, 2000)
    claims = [claim for claim in certificate.together if claim.quantity == "slice_risk"]
    best = min(claims, key=lambda claim: claim.value)
    inside = cuts(frame)[best.label.removeprefix("errors where ")]
    turned = inside & (np.random.default_rng(0).random(2000) < best.value + 0.3)
    frame["y"] = np.where(turned, np.where(frame["y"] == "yes", "no", "yes"), frame["y"])
    frame.to_csv("broken.csv", index=False)
    result = shell.run("watch classes broken.csv")
    assert result.exit_code == 3
    assert f"the live rows contradict {best.label} {best.bound()}" in result.stdout
    watch = Watch.load(place / "classes" / "certificate.watch.json", certificate)
    counted = {
        each.claim.label: each.rows for each in watch.watched if each.claim.quantity == "slice_risk"
    }
    assert counted == {f"errors where {name}": mask.sum() for name, mask in cuts(frame).items()}


BAD_STREAMS = {
    "a long field": (
        b"x,z,c,y\n1,2,a,yes\n1,2,a," + b"y" * 131_073 + b"\n",
        "more than 131,072 characters",
    ),
    "an open quote": (
        b'x,z,c,y\n1,2,a,yes\n1,2,"a,yes\n' + b"1,2,a,yes\n" * 20_000,
        "more than 131,072 characters",
    ),
    "a long name": (
        b"x,z,c," + b"y" * 131_073 + b"\n",
        "row 1 cannot be read: a value has more than",
    ),
    "no such columns": (b"a,b\n1,2\n", "standard input has no column 'y' of labels"),
    "a name twice": (b"x,z,c,y,y\n1,2,a,yes,yes\n", "two columns of the same name"),
    "a ragged row": (b"x,z,c,y\n1,2,a,yes\n1,2\n", "row 3 has 2 values where the first has 4"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "row 1 is not text in UTF-8"),
    "zeros": (b"x,z,c,y\n1,2,a,\0\0\n", "NUL"),
    "binary rows": (b"x,z,c,y\n1,2,a,yes\n\xff\xfe\xfd,2,a,yes\n", "is not text in UTF-8"),
    "nothing": (b"", "standard input has no column 'y'"),
}


@pytest.mark.parametrize("name", BAD_STREAMS)
def test_a_bad_stream_is_refused_in_one_sentence_and_leaves_no_state(place, shell, name):
    content, said = BAD_STREAMS[name]
    assert said in shell.refusal("watch classes -", input=content)


def test_rows_of_a_long_stream_before_a_bad_one_stay_taken_in(place, shell, monkeypatch):
    monkeypatch.setattr("surelearn.commands.watch.SAVE_EVERY", 20)  # a thousand takes long
    text = live(shell, 50).to_csv(index=False) + "1,2\n"
    result = shell.run("watch classes - --claim risk --state s.json", input=text)
    assert result.exit_code == 2
    assert "the 40 rows before were taken in, feed what follows them" in result.stderr
    certificate = Certificate.from_json((place / "classes" / "certificate.json").read_text())
    assert Watch.load(place / "s.json", certificate).rows == 40


def _waited(*_):
    raise AssertionError("it waits for a pipe")


def test_pipes_and_binary_files_are_refused(place, shell):
    os.mkfifo("pipe.csv")
    signal.signal(signal.SIGALRM, _waited)
    signal.alarm(120)
    assert "pipe.csv is a pipe" in shell.run("watch classes pipe.csv").stderr
    assert "pipe.csv is a pipe" in shell.run("watch pipe.csv new.csv").stderr
    signal.alarm(0)
    os.unlink("pipe.csv")
    (place / "picture.csv").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    assert "picture.csv" in shell.refusal("watch classes picture.csv")
    live(shell).rename(columns={"x": "w"}).to_csv("other.csv", index=False)
    assert "'x'" in shell.refusal("watch classes other.csv")


def test_a_state_for_one_claim_goes_on_and_says_so(place, shell):
    live(shell).to_csv("new.csv", index=False)
    shell.run("watch classes new.csv --claim risk --state s.json")
    printed = shell.run("watch classes new.csv --state s.json").stdout
    assert (
        "s.json was begun to watch risk only: another --state watches every certified claim"
        in printed
    )
    shell.run("watch classes new.csv")
    assert "watches every certified claim: name another --state" in shell.refusal(
        "watch classes new.csv --claim risk"
    )


def test_regression_and_groups(place, shell):
    frame = live(shell, 300)
    frame.to_csv("new.csv", index=False)
    result = shell.run("watch amounts new.csv")
    assert result.exit_code == 0
    assert "further away" in result.stdout
    result = shell.run("watch groups new.csv")
    assert result.exit_code == 0
    assert "of 100 groups" in result.stdout
    assert (
        "cannot be gathered into groups"
        in shell.run("watch groups -", input=frame.to_csv(index=False)).stderr
    )
    frame.drop(columns="who").to_csv("less.csv", index=False)
    assert "has no column 'who'" in shell.refusal("watch groups less.csv --state s.json")


def test_another_claim(place, shell):
    live(shell).to_csv("new.csv", index=False)
    assert (
        "sensitivity"
        in shell.run("watch classes new.csv --claim sensitivity --state s.json").stdout
    )
    assert "name another --state" in shell.refusal(
        "watch classes new.csv --claim risk --state s.json"
    )
    assert "name another --state" in shell.refusal(
        "watch classes new.csv --delta 0.01 --state s.json"
    )


def test_missing_labels_are_counted(place, shell):
    live(shell).assign(y=lambda frame: frame["y"].where(frame.index % 2 == 0, "")).to_csv(
        "new.csv", index=False
    )
    assert "60 rows without a label left out" in shell.run("watch classes new.csv").stdout


def test_refusals(place, shell):
    live(shell).to_csv("new.csv", index=False)
    assert "cannot be read" in shell.refusal("watch nothing.json new.csv")
    assert "does not exist" in shell.refusal("watch classes nothing.csv")
    assert "has no column 'said' of predictions" in shell.refusal(
        "watch classes new.csv --prediction said"
    )
    (place / "s.json").write_text("{}")
    assert "s.json" in shell.refusal("watch classes new.csv --state s.json")
    shell.run("watch classes new.csv --state s2.json")
    assert "certificate" in shell.refusal("watch amounts new.csv --state s2.json")
    assert "is not the model of" in shell.refusal("watch classes new.csv --model groups")
    plain = json.loads((place / "classes" / "certificate.json").read_text())
    plain["claims"][0]["value"] *= 0.9
    (place / "classes" / "certificate.json").write_text(json.dumps(plain))
    assert "was changed after it was written" in shell.refusal("watch classes new.csv")


def test_labels_written_in_another_way_are_no_errors(place, shell):
    """As in the public test file of Adult, where every label ends with a dot."""
    live(shell).assign(y=lambda frame: frame["y"] + ".").to_csv("dots.csv", index=False)
    said = shell.refusal("watch classes dots.csv")
    assert "dots.csv, column 'y': no label is one the model knows" in said
    assert "is not 'no', 'yes'" in said
    live(shell).assign(y=lambda frame: frame["y"].where(frame.index > 0, "maybe")).to_csv(
        "one.csv", index=False
    )
    assert (
        "1 row with a label the model never saw, counted as wrong"
        in shell.run("watch classes one.csv").stdout
    )


def test_a_refused_file_changes_no_evidence(place, shell):
    live(shell).to_csv("new.csv", index=False)
    shell.run("watch classes new.csv")
    before = (place / "classes" / "certificate.watch.json").read_bytes()
    (place / "ragged.csv").write_text("x,z,c,y\n" + "1,2,a,yes\n" * 30 + "1,2\n")
    assert "line 32" in shell.run("watch classes ragged.csv").stderr
    assert (place / "classes" / "certificate.watch.json").read_bytes() == before
