"""`surelearn predict`: the plain pipeline's predictions, whatever the file, with what is odd
said.
"""

import gzip
import subprocess
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.loaded import programs

from surelearn.certificate import Certificate
from surelearn.data.schema import Schema
from surelearn.persistence import read_model
from surelearn.prediction import Predictor, predict


def new_rows(shell, n=50):
    return shell.frame(n, seed=7)


def test_predictions_are_the_pipelines(place, shell):
    new_rows(shell).drop(columns="y").to_csv("new.csv", index=False)
    result = shell.run("predict classes/model new.csv --out p.csv")
    assert result.exit_code == 0
    assert "50 rows predicted" in result.stderr
    assert "added: prediction and its probability; errors ≤ " in result.stderr
    assert result.stdout == ""
    written = pd.read_csv("p.csv")
    added = ["prediction", "probability", "probability_yes", "outside"]
    assert list(written.columns) == ["x", "z", "c", "amount", "who", *added]
    model = read_model("classes/model").model
    X = new_rows(shell)[["x", "z", "c"]]
    assert written["prediction"].tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(
        written["probability"], model.predict_proba(X).max(axis=1), rtol=1e-15
    )


def test_the_audits_folder_will_do(place, shell):
    assert shell.run("predict classes t.csv --out p.csv").exit_code == 0


def test_intervals_are_the_certified_ones(place, shell):
    result = shell.run("predict amounts/model t.csv --out p.csv")
    radius = Certificate.from_json((place / "amounts" / "certificate.json").read_text())[
        "error_quantile"
    ].value
    written = pd.read_csv("p.csv")
    np.testing.assert_allclose(written["high"] - written["prediction"], radius, rtol=1e-9)
    np.testing.assert_allclose(written["prediction"] - written["low"], radius, rtol=1e-9)
    inside = written["amount"].between(written["low"], written["high"]).mean()
    assert inside >= 0.9
    assert "which holds 90% of new rows like the certified ones" in result.stderr


def test_rows_far_outside_are_flagged(place, shell):
    """Each by the names of its columns; how many there are is said, and old files say nothing."""
    table = new_rows(shell, 6).drop(columns="y")
    table.loc[1, "x"], table.loc[2, "x"], table.loc[2, "c"] = 1e6, -1e6, "never seen"
    table.to_csv("new.csv", index=False)
    result = shell.run("predict classes/model new.csv --out p.csv")
    outside = pd.read_csv("p.csv", keep_default_na=False)["outside"].tolist()
    assert outside == ["", "x", "x; c", "", "", ""]
    said = "far outside the rows that the model was fitted on (column `outside`): 'x' (2 rows)"
    assert said in result.stderr
    saved = read_model("classes/model")
    plain = saved.schema.to_dict()
    for feature in plain["features"]:
        del feature["reach"]
        feature["kind"] = "text" if feature["kind"] == "category" else feature["kind"]
    told = predict(replace(saved, schema=Schema.from_dict(plain)), table)
    assert "outside" not in told.columns


def test_values_pass_through_as_they_came(place, shell):
    text = 'x,z,c,note,who\n 1.50 ,NA,a,"say ""hi"", twice",\n-2,, b,"two\nlines",é\n'
    (place / "new.csv").write_text(text, encoding="utf-8")
    result = shell.run("predict classes/model new.csv")
    head, *lines = result.stdout.split("\n")
    assert head == "x,z,c,note,who,prediction,probability,probability_yes,outside"
    assert lines[0].startswith(' 1.50 ,NA,a,"say ""hi"", twice",,yes,0.')
    assert "\n".join(lines[1:]).startswith('-2,, b,"two\nlines",é,no,0.')
    assert "not read by the model: 'note'" in result.stderr


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.csv.gz", "p.parquet"])
def test_formats_of_output_and_input(name, place, shell):
    frame = new_rows(shell)
    frame.to_parquet("new.parquet")
    (place / "new.csv.gz").write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    for source in ("new.parquet", "new.csv.gz"):
        assert shell.run(f"predict classes/model {source} --out {name}").exit_code == 0
        read = (
            pd.read_parquet(name)
            if name.endswith("parquet")
            else pd.read_csv(name, sep="\t" if "tsv" in name else ",")
        )
        assert (
            read["prediction"].tolist()
            == read_model("classes/model").model.predict(frame[["x", "z", "c"]]).tolist()
        )
    assert not list(place.glob("*.part"))


def test_standard_input_and_output(place, shell):
    text = new_rows(shell).to_csv(index=False)
    assert shell.run("predict classes/model -", input=text).stdout.count("\n") == 51


def test_a_column_called_prediction_is_kept(place, shell):
    new_rows(shell).assign(prediction="mine").to_csv("new.csv", index=False)
    shell.run("predict classes/model new.csv --out p.csv")
    written = pd.read_csv("p.csv")
    assert set(written["prediction"]) == {"mine"}
    assert set(written["prediction_"]) == {"yes", "no"}


def test_what_is_odd_is_named(place, shell):
    frame = new_rows(shell).astype({"x": object})
    frame.loc[0, "c"], frame.loc[1, "x"], frame.loc[2, "x"] = "zebra", "many", "inf"
    frame.assign(colour="red").to_csv("new.csv", index=False)
    said = shell.run("predict classes/model new.csv --out p.csv").stderr
    assert "not read by the model: 'colour'" in said
    assert "'c' has values it had not when the model was fitted, in 1 rows: 'zebra'" in said
    assert "'x' cannot be read in 1 rows, taken as missing: 'many'" in said
    assert "'x' is infinite in 1 rows" in said
    assert shell.run("predict classes/model new.csv --out p.csv --quiet").output == ""


def test_refusals(place, shell):
    new_rows(shell).drop(columns=["x", "c"]).to_csv("new.csv", index=False)
    assert "new.csv has no column 'x' and 'c', which the model reads" in shell.refusal(
        "predict classes/model new.csv"
    )
    assert "t.csv is the file to predict" in shell.refusal(
        "predict classes/model t.csv --out t.csv"
    )
    assert "must end in .csv" in shell.refusal("predict classes/model t.csv --out p.xlsx")
    assert "did you mean" in shell.refusal("predict classes/model tt.csv").lower()
    assert "has no manifest.json that can be read" in shell.refusal("predict . t.csv")
    assert "does not exist" in shell.refusal("predict nowhere t.csv")
    (place / "ragged.csv").write_text("x,z,c\n1,2,a\n1,2\n")
    assert "ragged.csv, line 3 has 2 values" in shell.refusal(
        "predict classes/model ragged.csv --out p.csv"
    )


def test_a_broken_file_leaves_the_earlier_predictions(place, shell):
    (place / "p.csv").write_text("earlier")
    (place / "late.csv").write_text("x,z,c\n" + "1,2,a\n" * 60_000 + "1\n")
    assert "line 60002" in shell.refusal("predict classes/model late.csv --out p.csv")
    assert (place / "p.csv").read_text() == "earlier"
    assert not list(place.glob(".p.csv*"))


def test_a_model_without_columns_does_not_predict_files(place, shell):
    from sklearn.linear_model import LogisticRegression

    from surelearn import save

    save(LogisticRegression().fit([[0.0], [1.0]], [0, 1]), "bare")
    assert "saved without its columns" in shell.refusal("predict bare t.csv")


def test_in_python(place, shell):
    frame = new_rows(shell)
    saved = read_model("classes/model")
    made = predict(saved, frame)
    assert made["prediction"].tolist() == saved.model.predict(frame[["x", "z", "c"]]).tolist()
    assert Predictor(saved).write("t.csv", place / "p.csv") == 600


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(place):
    """The program's largest memory, on a file of 18 MB and on one of 90: 60 MB more were seen,
    175 with pieces kept.
    """
    if not Path("/proc/self/status").is_file():
        pytest.skip("this system does not tell")
    lines = "".join(
        f"{i % 97 / 10},{i % 89 / 10},{'ab'[i % 2]},some text to make rows longer\n"
        for i in range(66_000)
    )
    code = """
        import sys
        from pathlib import Path
        from surelearn.persistence import read_model
        from surelearn.prediction import Predictor
        print(Predictor(read_model("classes/model")).write(sys.argv[1], Path("p.csv")))
        print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
    """
    peaks = []
    for times in (6, 30):
        with open("big.csv", "w") as file:
            file.write("x,z,c,note\n")
            for _ in range(times):
                file.write(lines)
        arguments = [programs() / "python", "-c", textwrap.dedent(code), "big.csv"]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True)  # noqa: S603
        rows, peak = map(int, done.stdout.split())
        assert rows == times * 66_000
        peaks.append(peak)
    assert peaks[1] - peaks[0] < 110_000, f"kilobytes: {peaks}"
