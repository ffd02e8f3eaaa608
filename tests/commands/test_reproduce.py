"""Published experiments from the command line: what is written, refused, and left behind by a
kill.
"""

import json
import os
import shlex
import signal
import sys
import time
from pathlib import Path

import pytest
from tests.loaded import Forked

FIGURE = "reproduce thesis-figure-5.1 --problems 4 --set variant_problems=2"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The files of a run that nothing disturbed, one task at a time."""
    out = tmp_path_factory.mktemp("whole") / "out"
    run = Forked(["surelearn", *shlex.split(FIGURE), "--jobs", "1", "--out", str(out)])
    run.communicate(120)
    assert run.returncode == 0
    return content(out)


def content(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def test_without_a_name_it_lists_what_there_is(shell, here):
    lines = shell.run("reproduce").output.splitlines()
    names = ["thesis-table-5.1", "thesis-table-5.2", "thesis-figure-5.1", "thesis-figure-5.3"]
    assert [line.split()[0] for line in lines[: len(names)]] == names
    assert all(line.endswith(".") for line in lines)
    assert list(here.iterdir()) == []


def test_a_table_in_its_folder(shell, here):
    result = shell.run("reproduce thesis-table-5.1")
    assert result.exit_code == 0, result.output
    assert "9 of 9 printed cells are met" in result.output
    folder = here / "surelearn-thesis-table-5.1"
    assert sorted(content(folder)) == ["report.html", "results.json"]
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert results["command"] == "surelearn reproduce thesis-table-5.1"
    assert results["numbers"]["cells"][0]["printed"] == 4.3671
    assert "4.3671" in (folder / "report.html").read_text(encoding="utf-8")
    assert [path.name for path in here.iterdir()] == [folder.name]  # no journal is left


def test_settings_are_listed(shell, here):
    lines = shell.run("reproduce thesis-figure-5.1 --settings").output.splitlines()
    assert any(line.startswith("thresholds=1 ") for line in lines)
    assert list(here.iterdir()) == []


def test_the_page_names_the_command_that_gives_it(shell, here):
    command = (
        "reproduce thesis-figure-5.3 --seed 3 --problems 2 --set variant_problems=0 --set"
        " 'formula=without e'"
    )
    assert shell.run(f"{command} --jobs 1 --quiet --out a").exit_code == 0
    again = json.loads((here / "a" / "results.json").read_text(encoding="utf-8"))["command"]
    assert again == f"surelearn {command.replace(' --set', ' --set', 1)}"
    assert shell.run(f"{again.removeprefix('surelearn ')} --jobs 1 --quiet --out b").exit_code == 0
    assert content(here / "a") == content(here / "b")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "thesis-figure-5.2",
            "there is no reproduction 'thesis-figure-5.2'. Did you mean 'thesis-figure-5.",
        ),
        (
            "thesis-table-5.1 --problems 3",
            "thesis-table-5.1 draws no problems: leave --problems out",
        ),
        ("thesis-figure-5.1 --problems 1", "problems must be at least 2"),
        ("thesis-figure-5.1 --set ties", "--set 'ties' must be SETTING=VALUE"),
        ("thesis-figure-5.1 --set size=3", "there is no setting 'size'"),
        ("thesis-figure-5.1 --set ties=both", "ties must be one of smallest, largest, not both"),
        ("thesis-figure-5.1 --jobs 0", "--jobs must not be 0"),
        ("thesis-table-5.1 --out taken", "--out taken is a file: name a folder"),
        ("thesis-table-5.1 --out taken/below", "--out taken/below cannot be made"),
        ("thesis-table-5.1 --out /", "--out / is no folder of its own"),
    ],
)
def test_refusals_are_one_sentence_before_any_work(words, sentence, shell, here):
    (here / "taken").write_text("a file")
    assert shell.refusal(f"reproduce {words}").startswith(sentence)


def test_a_folder_in_use_is_refused(shell, here):
    from surelearn.jobs import Journal

    with Journal(here / ".out.journal.sqlite", run_key="another"):
        result = shell.run("reproduce thesis-table-5.1 --out out")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "--out out is being written by another run" in result.stderr


@pytest.mark.slow
def test_results_do_not_depend_on_jobs(whole, shell, here):
    assert shell.run(f"{FIGURE} --jobs 2 --quiet --out out").exit_code == 0
    assert content(here / "out") == whole


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_killed_half_way_it_ends_the_same(whole, here):
    """Killed when the journal has grown by some results; the next run goes on from them."""
    slow = (
        "import time, surelearn.papers.thesis_boosting as module; solve = module.solve\n"
        "def slowly(**arguments):\n"
        "    open('solved.txt', 'a').write('x'); time.sleep(0.2); return solve(**arguments)\n"
        "module.solve = slowly\n"
    )
    command = ["surelearn", *shlex.split(f"{FIGURE} --jobs 1 --quiet --out out")]
    solved = here / "solved.txt"
    total, after = 12, 5  # four problems, and two for each of four other readings
    process = Forked(command, slow)
    try:
        limit = time.monotonic() + 60
        while (not solved.exists() or len(solved.read_text()) < after) and time.monotonic() < limit:
            assert process.poll() is None, "it ended before it was killed"
            time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(30)
    assert not (here / "out").exists()
    assert (here / ".out.journal.sqlite").exists()
    done = len(solved.read_text())
    again = Forked(command, slow)
    again.communicate(120)
    assert again.returncode == 0
    assert content(here / "out") == whole
    # the kill costs the problem that it hit
    assert len(solved.read_text()) <= total + 1 < total + done
    assert sorted(path.name for path in here.iterdir()) == ["out", "solved.txt"]
