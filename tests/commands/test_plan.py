"""`surelearn plan`: what it says, what it refuses, and what it draws."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from surelearn.cli import main
from surelearn.planning import plan

PROGRAM = Path(sys.executable).with_name("surelearn")
RISK = "--max-risk 0.05 --expected-risk 0.02"
OTHERS = [
    "--interval 0.1 --rows 500",
    "--sets 0.1 --rows 500",
    "--sets 0.1 --rows 50",
    "--min-sensitivity 0.9 --expected-sensitivity 0.97",
    "--min-sensitivity 0.9 --expected-sensitivity 0.97 --prevalence 0.3 --rows 5000",
    "--min-gain 0 --expected-gain 0.2 --disagreement 0.3 --rows 300",
]


def surelearn_plan(line, *more):
    result = CliRunner(catch_exceptions=False).invoke(
        main, ["plan", *shlex.split(line), *map(str, more)]
    )
    assert "Traceback" not in result.output
    return result


def refusal(result):
    """The one sentence of a refusal, with nothing else said."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    return lines[0]


def test_the_known_numbers_the_headline_first():
    result = surelearn_plan("--max-risk 0.05")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert re.search(
        r"as the audit's headline +72 labeled rows.*\n +as the only claim +59 labeled rows",
        result.stdout,
    )


def test_it_says_what_the_plan_says():
    assert surelearn_plan(RISK).stdout == f"{plan(0.05, 0.02)}\n"
    assert (
        surelearn_plan(f"{RISK} --delta 0.1 --power 0.9 --candidates 6 --rows 700").stdout
        == f"{plan(0.05, 0.02, delta=0.1, power=0.9, candidates=6, rows=700)}\n"
    )


@pytest.mark.parametrize("line", OTHERS)
def test_the_other_questions(line):
    result = surelearn_plan(line)
    assert result.exit_code == 0, result.output
    assert "To certify " in result.stdout
    assert "█" in result.stdout


def test_bars_are_as_long_as_the_chance():
    lines = [
        line
        for line in surelearn_plan(RISK).stdout.splitlines()
        if "█" in line and line.endswith("%")
    ]
    assert len(lines) == 6
    for line in lines:
        assert line.count("█") == int(float(line.split()[-1].rstrip("%")) / 5 + 1e-9)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "",
            "say what to certify: state --max-risk, --interval, --min-sensitivity, --min-gain or --sets",
        ),
        (
            "--max-risk 0.05 --expected-risk 0.06",
            "--expected-risk must be below --max-risk 0.05, not 0.06",
        ),
        ("--max-risk 5", "--max-risk must lie strictly between 0 and 1, not 5.0"),
        ("--max-risk nan", "--max-risk must lie strictly between 0 and 1, not nan"),
        ("--max-risk five", "'five'"),
        ("--max-risk 0.05 --interval 0.1", "--max-risk or --interval, not both"),
        ("--max-risk 0.05 --prevalence 0.1", "--prevalence belongs to --min-sensitivity"),
        ("--max-risk 0.05 --rows 0", "--rows must be a whole number from 1 to"),
        ("--max-risk 0.05 --rows 1.5", "--rows"),
        ("--max-risk 0.05 --candidates 0", "--candidates must be"),
        ("--max-risk 0.05 --delta 1", "--delta must lie"),
        ("--max-risk 0.05 --power 0", "--power must lie"),
        ("--max-risk 1e-10", "more than 1,000,000,000 rows are needed to certify --max-risk 1e-10"),
        (
            "--min-sensitivity 0.9 --rows 100",
            "--rows needs --prevalence here: state the part of rows",
        ),
        ("--min-gain 0.02", "--min-gain needs --expected-gain and --disagreement"),
        (
            "--min-gain 0.02 --expected-gain 0.05 --disagreement 0.01",
            "--disagreement must be above 0 and at least",
        ),
        ("--max-risk 0.05 --plot power.pdf", "--plot power.pdf must end in .png or .svg"),
    ],
)
def test_bad_numbers_end_in_one_sentence(line, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words in refusal(surelearn_plan(line))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("line", [RISK, "--max-risk 0.05", *OTHERS])
def test_a_png(line, tmp_path):
    result = surelearn_plan(line, "--plot", tmp_path / "new" / "power.png")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "new" / "power.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["power.png"]
    assert result.stdout.endswith(f"plot  {tmp_path / 'new' / 'power.png'}\n")


def test_an_svg_is_the_same_every_time(tmp_path):
    for name in ("a.svg", "b.SVG"):
        assert surelearn_plan(RISK, "--plot", tmp_path / name).exit_code == 0
    written = (tmp_path / "a.svg").read_bytes()
    assert ElementTree.fromstring(written).tag.endswith("svg")  # noqa: S314 - our own
    assert written == (tmp_path / "b.SVG").read_bytes()


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert "notes.txt cannot be used" in refusal(
        surelearn_plan(RISK, "--plot", tmp_path / "notes.txt" / "power.png")
    )
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere"
)
def test_a_folder_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    try:
        assert "cannot be used: Permission denied" in refusal(
            surelearn_plan(RISK, "--plot", tmp_path / "power.png")
        )
        assert list(tmp_path.iterdir()) == []
    finally:
        tmp_path.chmod(0o700)


def test_a_disk_that_fills_up_leaves_the_old_picture(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    def half(figure, path, **options):
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Figure, "savefig", half)
    (tmp_path / "power.png").write_bytes(b"old")
    assert "No space left on device" in refusal(
        surelearn_plan(RISK, "--plot", tmp_path / "power.png")
    )
    assert [path.name for path in tmp_path.iterdir()] == ["power.png"]
    assert (tmp_path / "power.png").read_bytes() == b"old"


def test_every_example_of_the_help_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = surelearn_plan("--help").stdout.partition("Examples:")[2]
    examples = re.findall(r"surelearn plan ((?:--[a-z-]+ [\w.]+ ?)+)", text)
    assert len(examples) == text.count("surelearn plan") == 7
    for line in examples:
        assert surelearn_plan(line).exit_code == 0, line


def test_the_program():
    good = subprocess.run(  # noqa: S603
        [PROGRAM, "plan", "--max-risk", "0.05"], capture_output=True, text=True, timeout=60
    )
    assert good.returncode == 0
    assert "72 labeled rows" in good.stdout
    bad = subprocess.run(  # noqa: S603
        [PROGRAM, "plan", "--max-risk", "2"], capture_output=True, text=True, timeout=60
    )
    assert bad.returncode == 2
    assert bad.stdout == ""
    assert len(bad.stderr.splitlines()) == 1
