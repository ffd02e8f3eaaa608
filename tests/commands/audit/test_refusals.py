"""What the audit refuses, each in one sentence that says what to do."""

import os
from pathlib import Path

import pytest
from tests.commands.audit.steps import audit, leftovers, names, program, refusal, surelearn
from tests.loaded import programs


def test_the_sentence_of_the_program_itself(place):
    """Without click's test runner in between."""
    before = names(place)
    result = program("audit titanic.csv --target Survived", at=programs() / "surelearn")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("titanic.csv does not exist")
    assert names(place) == before


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("missing.csv", "missing.csv does not exist"),
        ("t.cvs", "Did you mean 't.csv'?"),
        ("folder", "is a folder without Parquet files"),
        ("irs", "Did you mean 'iris'?"),
        ("boston", "neither a file"),
        ("", ""),
    ],
)
def test_a_source_that_is_no_table(source, said, place):
    (place / "folder").mkdir()
    before = names(place)
    assert said in refusal(surelearn(["audit", source], "--target y --out out"))
    assert names(place) == before


BAD_OPTIONS = {
    "--delta 0": "--delta must lie strictly between 0 and 1, not 0",
    "--delta 2": "--delta must lie strictly between 0 and 1, not 2",
    "--delta nan": "--delta",
    "--delta small": "--delta",
    "--alpha 1": "--alpha must lie strictly between 0 and 1, not 1",
    "--cost 5": "need --positive",
    "--threshold 0.5": "need --positive",
    "--cost 0 --positive yes": "--cost must be a positive number",
    "--cost nan --positive yes": "--cost must be a positive number",
    "--threshold 2 --positive yes": "--threshold must lie strictly between 0 and 1, not 2",
    "--positive maybe": "no class 'maybe' in column 'y' of the rows to fit on: it has no, yes",
    "--positive yes --target x": "--positive names a class",
    "--slice colour": "t.csv has no usable column 'colour' to slice by: it has 'x'",
    "--slice X": "it has 'x'",
    "--slice y": "no usable column 'y'",
    "--slice x --drop x": "no usable column 'x'",
    "--group patient": "no column 'patient'",
    "--largest-group 3": "t.csv: --largest-group needs groups",
    "--largest-group 0": "--largest-group must be a whole number of at least 1, not 0",
    "--time when": "no column 'when'",
    "--drop nothing": "no column 'nothing'",
    "--keep nothing": "no column 'nothing'",
    "--target 9": "columns 1 to 4",
    "--certify 1.5": "--certify must lie strictly between 0 and 1, not 1.5",
    "--certify 0": "--certify",
    "--certify 0.6 --select 0.6": "leave no row",
    "--select -1": "--select must be at least 0 and below 1, not -1",
    "--model nonsense": (
        "there is no candidate 'nonsense' for classification: there are majority, naive Bayes, "
    ),
    "--model no_such_module:factory": (
        "--model no_such_module:factory: no_such_module cannot be imported"
    ),
    "--model models_of_cli_tests:missing": "models_of_cli_tests has no 'missing'",
    "--model models_of_cli_tests:raising": (
        "--model models_of_cli_tests:raising: KeyError: 'parameters'"
    ),
    "--model models_of_cli_tests:broken": "LookupError: no such branch",
    "--model models_of_cli_tests:word": "must have fit and predict",
    "--model models_of_cli_tests:fitted": (
        "--model models_of_cli_tests:fitted: candidate 'DecisionTreeClassifier' is already fitted,"
        " and would be fitted again: certify it as it is, on rows it has not seen, with"
        " surelearn.audit(model, X, y)"
    ),
    "--against models_of_cli_tests:fitted": (
        "--against models_of_cli_tests:fitted: candidate 'DecisionTreeClassifier' is"
    ),
    "--against nonsense": (
        "there is no candidate 'nonsense' for classification: there are majority, naive Bayes, "
    ),
    "--against no_such_module:factory": (
        "--against no_such_module:factory: no_such_module cannot be imported"
    ),
    "--against models_of_cli_tests:raising": (
        "--against models_of_cli_tests:raising: KeyError: 'parameters'"
    ),
    "--out t.csv": "--out t.csv is a file: name a folder",
    "--out t.csv/deep/down": "t.csv is a file",
    "--out /": "--out /",
    "--out /proc/surelearn/out": "--out /proc/surelearn/out cannot be written",
    "--out fresh/folder --positive maybe": "no class 'maybe'",
    "--out fresh/folder --model models_of_cli_tests:broken": "LookupError",
    "--max-risk -1": "--max-risk",
    "--max-risk nan": "--max-risk",
    "--jobs 0": "--jobs must not be 0",
    "--jobs many": "--jobs",
    "--loss-bound -3 --target x": "--loss-bound must be a positive number",
    "--task clustering": "'clustering' is not one of 'classification', 'regression'",
    "--metric speed": "--metric must be one of log-loss, brier, accuracy, balanced-accuracy, auc",
    "--metric auc --positive 1 --cost 5": "--cost says that candidates are compared by the mean cost: leave out --metric",
    "--prefer fastest": "'fastest' is not one of 'best', 'simplest'",
    "--format pdf": "'pdf' is not one of 'html', 'md'",
    "--ledger .": "directory",
    "--ledger t.csv": "t.csv is not a ledger that can be read",
    "--slise x": "--slise",
    "another.csv": "another.csv",
}


@pytest.mark.parametrize("options", BAD_OPTIONS)
def test_a_bad_option(options, place):
    before = {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}
    assert BAD_OPTIONS[options] in refusal(audit(options))
    # so no folder either
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


def test_an_unwritable_folder(place):
    (place / "locked").mkdir()
    (place / "locked").chmod(0o500)
    if os.access(place / "locked", os.W_OK):
        pytest.skip("this user may write everywhere")
    assert "no permission" in refusal(audit("--out locked"))
    assert "no permission" in refusal(audit("--out locked/out"))


def test_an_unwritable_folder_whoever_runs_it(place, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    assert "--out out cannot be written: no permission" in refusal(audit("--out out"))


def test_a_full_disk_keeps_what_was_computed(place, monkeypatch):
    write = Path.write_bytes

    def full(path, content):
        if path.parent.name.startswith(".out"):
            raise OSError(28, "No space left on device", str(path))
        return write(path, content)

    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.write_bytes", full)
        told = refusal(audit("--out out"), after_the_verdict=True)
        assert told == "--out out cannot be written: No space left on device"
    assert leftovers(place) == [".out.journal.sqlite"]
    assert not (place / "out").exists()
    assert audit("--out out").exit_code == 0
    assert leftovers(place) == []


def test_an_error_of_our_own_is_not_called_the_users(place, monkeypatch):
    def wrong(*_, **__):
        raise AssertionError("this is a bug")

    monkeypatch.setattr("surelearn.auditing.audit", wrong)
    with pytest.raises(AssertionError, match="this is a bug"):
        audit()


def test_debugging_shows_the_traceback(place, monkeypatch):
    monkeypatch.setenv("SURELEARN_DEBUG", "1")
    with pytest.raises(ValueError, match="--delta"):
        audit("--delta 2")
