"""What a kill, Ctrl-C, a second run or a damaged journal leave behind."""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from tests.commands.audit.steps import (
    SKIP,
    WRITTEN,
    audit,
    content,
    leftovers,
    names,
    page_text,
    prepare,
    refusal,
    surelearn,
    without_progress,
    words,
)
from tests.loaded import Forked

from surelearn.auditing.verification import verify_folder
from surelearn.commands.early import EarlyPage
from surelearn.report import Audit
from surelearn.terminal import ctrl_c

UNHURRIED = f"--model models_of_cli_tests:unhurried --jobs 1 --ledger ledger.json {SKIP}"

# killed at the moment at which a file of this name would be put in its place
DIES_BEFORE = """
import os, signal
def fatal(source, target, replace=os.replace):
    if str(target).endswith({victim!r}):
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)
os.replace = fatal
"""


def arguments_of(*parts):
    return ["audit", "t.csv", "--target", "y", *words(*parts)]


def start(*parts):
    """The command in a session of its own, with everything loaded."""
    return Forked(["surelearn", *arguments_of(*parts)])


def start_from_nothing(*parts):
    """The program in a session of its own, at its first line, where Ctrl-C is heard even if this
    process ignores it.
    """
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from surelearn.cli import main; print('ready', flush=True); main(sys.argv[1:], 'surelearn')"
    )
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", code, *arguments_of(*parts)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def fits(place):
    path = place / "fits.txt"
    return len(path.read_text().split()) if path.exists() else 0


def wait_for_fits(place, process, count):
    limit = time.monotonic() + 60
    while fits(place) < count and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.01)


def is_whole(out):
    """There is nothing, or an audit that says what is missing and is verified; returns its titles."""
    if not (out / "audit.json").exists():
        assert not out.exists()
        return ()
    found = verify_folder(out)
    assert found, found.differences
    document = Audit.from_json((out / "audit.json").read_text(encoding="utf-8"))
    assert document.unfinished
    assert any(line.startswith("unfinished") for line in found.unchecked)
    text = page_text(out)
    assert "This page is not finished" in text
    assert text.count("Not measured yet.") == len(document.unfinished)
    return document.missing


def quiet_end(process):
    process.communicate(timeout=60)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The three files, and how many fits they took."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    with pytest.MonkeyPatch.context() as monkeypatch:
        for _ in prepare(folder, monkeypatch):
            result = surelearn("audit t.csv --target y", UNHURRIED)
            assert result.exit_code == 0, result.output
            total = fits(folder)
    assert total > 30
    return content(folder / "surelearn-audit"), total


@pytest.mark.slow
def test_killed_at_ten_moments_it_ends_the_same(place, uninterrupted):
    whole, total = uninterrupted
    draw = random.Random(1)  # noqa: S311
    # None: by the clock, while things load
    moments = [None, None, *sorted(draw.randrange(1, total) for _ in range(8))]
    for moment in moments:
        if moment is None:
            process = start_from_nothing(UNHURRIED, "--out out")
            time.sleep(draw.uniform(0.05, 1.5))
        else:
            process = start(UNHURRIED, "--out out")
            wait_for_fits(place, process, moment)
        assert process.poll() is None, "it ended before it was killed"
        os.killpg(process.pid, signal.SIGKILL)
        quiet_end(process)
        is_whole(place / "out")
    done = fits(place)
    result = surelearn("audit t.csv --target y", UNHURRIED, "--out out")
    assert result.exit_code == 0, result.output
    assert content(place / "out") == whole
    assert leftovers(place) == []
    # each kill costs the fit that it hit, not those before
    assert fits(place) < total + 2 * len(moments)
    assert fits(place) > done
    assert "no earlier audit known here" in page_text(place / "out")


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["report.html", "audit.json"])
def test_killed_between_the_files_it_ends_the_same(victim, place, uninterrupted):
    """The narrowest moments, which no clock finds: while the files are put in their place, and
    inside the ledger.
    """
    whole, _ = uninterrupted
    process = Forked(
        ["surelearn", *arguments_of(UNHURRIED, "--out out")], DIES_BEFORE.format(victim=victim)
    )
    quiet_end(process)
    assert process.returncode == -signal.SIGKILL
    assert leftovers(place) != []
    for path in (place / "out").glob("*.json"):
        json.loads(path.read_bytes())  # each file is whole, or not there
    result = surelearn("audit t.csv --target y", UNHURRIED, "--out out")
    assert result.exit_code == 0, result.output
    assert content(place / "out") == whole
    assert leftovers(place) == []


@pytest.mark.slow
@pytest.mark.parametrize(("jobs", "how"), [(1, "SIGINT"), (2, "SIGINT"), (1, "SIGTERM")])
def test_an_interrupt_keeps_the_page_and_says_what_is_missing(jobs, how, place, uninterrupted):
    whole, total = uninterrupted
    begin = start if jobs == 1 else start_from_nothing
    process = begin(UNHURRIED, f"--jobs {jobs} --out out")
    wait_for_fits(place, process, 3 * total // 4)
    began = time.monotonic()
    os.kill(process.pid, getattr(signal, how))
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == {"SIGINT": 130, "SIGTERM": 143}[how]
    assert time.monotonic() - began < 10
    missing = is_whole(place / "out")
    assert missing
    assert without_progress(stderr) == (
        f"interrupted; out/report.html is there, without {', '.join(missing)}; run the same command"
        " to go on from here\n"
    )
    assert "page  out/report.html, so far without" in stdout
    assert leftovers(place) == [".out.journal.sqlite"]
    done = fits(place)
    result = surelearn("audit t.csv --target y", UNHURRIED, f"--jobs {jobs} --out out")
    assert result.exit_code == 0, result.output
    assert content(place / "out") == whole
    assert leftovers(place) == []
    assert fits(place) - done < total - total // 4  # the rest, from the journal on


def test_an_interrupt_before_the_verdict_leaves_the_journal_only(place):
    process = start(UNHURRIED, "--out out")
    wait_for_fits(place, process, 1)
    os.kill(process.pid, signal.SIGINT)
    stderr = process.communicate(timeout=60)[1]
    assert (process.returncode, without_progress(stderr)) == (
        130,
        "interrupted; run the same command to go on from here\n",
    )
    assert not (place / "out").exists()
    assert leftovers(place) == [".out.journal.sqlite"]


def test_a_finished_audit_stays_until_another_one_is_finished(place, uninterrupted):
    _, total = uninterrupted
    assert audit("--out out").exit_code == 0
    before = content(place / "out")
    process = start(UNHURRIED, "--out out --seed 1")
    wait_for_fits(place, process, 3 * total // 4)
    os.kill(process.pid, signal.SIGINT)
    stderr = process.communicate(timeout=60)[1]
    assert "out-unfinished/report.html is there, without" in stderr
    assert content(place / "out") == before
    assert is_whole(place / "out-unfinished")
    result = surelearn("audit t.csv --target y", UNHURRIED, "--out out --seed 1")
    assert result.exit_code == 0, result.output
    assert content(place / "out") != before
    assert not (place / "out-unfinished").exists()
    assert leftovers(place) == []
    assert verify_folder(place / "out")


def test_files_that_are_no_audit_stay_until_the_audit_is_finished(place, monkeypatch):
    """Neither in the folder nor in the one beside it is there a free place for an unfinished page."""
    for name in ("out", "out-unfinished"):
        (place / name).mkdir()
        (place / name / "report.html").write_text("mine")
    said = []
    monkeypatch.setattr("surelearn.commands.early.EarlyPage._page", lambda page: said.append(page))
    assert audit("--out out").exit_code == 0
    assert not said
    assert (place / "out-unfinished" / "report.html").read_text() == "mine"
    assert verify_folder(place / "out")


@pytest.mark.parametrize("share", [1e9, 1e-9])
def test_each_finished_section_adds_itself(share, place, monkeypatch):
    """As often as its share of the time allows; and the rewritten folder, model and all, is the one
    of the same audit.
    """
    seen = []
    write = Audit.write

    def noted(document, *arguments, **options):
        seen.append(len(document.unfinished))
        return write(document, *arguments, **options)

    monkeypatch.setattr(Audit, "write", noted)
    monkeypatch.setattr("surelearn.commands.early.SHARE", share)
    assert audit("--out out").exit_code == 0
    assert seen[-1] == 0
    assert len(seen) > 2 if share > 1 else len(seen) == 2
    assert seen == sorted(seen, reverse=True)
    assert verify_folder(place / "out")


def test_an_interrupt_adds_what_was_finished_and_not_written(place, monkeypatch):
    """Here no page but the first is written by itself."""
    shown = []

    class Interrupted(EarlyPage):
        def __call__(self, known):
            super().__call__(known)
            shown.append(known.missing)
            if len(shown) == 2:
                ctrl_c()  # as a signal would

    monkeypatch.setattr("surelearn.commands.audit.EarlyPage", Interrupted)
    monkeypatch.setattr("surelearn.commands.early.SHARE", 1e-9)
    result = audit("--out out")
    assert result.exit_code == 130
    assert is_whole(place / "out") == shown[1] != shown[0]
    assert f"is there, without {', '.join(shown[1])}; run" in result.output


@pytest.mark.slow
def test_ctrl_c_while_things_load(place):
    """Inside an import Python loses a KeyboardInterrupt or calls it an ImportError."""
    draw = random.Random(2)  # noqa: S311
    for delay in [draw.uniform(0.05, 1.0) for _ in range(6)]:
        process = start_from_nothing(UNHURRIED, "--out out")
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 130
        assert stderr == "interrupted; run the same command to go on from here\n"
        assert not (place / "out").exists()


def test_an_interrupt_that_a_model_swallows_is_heard(place):
    """Other people's code may catch everything, and Python loses what comes inside a callback."""
    models = place / "models_of_cli_tests.py"
    models.write_text(
        models.read_text()
        + textwrap.dedent(
            """
            import signal

            class Deaf(NearestMean):
                def fit(self, X, y):
                    with open(os.environ["FITS"], "a") as file:
                        file.write("fit\\n")
                    with open(os.environ["FITS"]) as file:
                        third = len(file.readlines()) == 3
                    try:
                        if third:
                            os.kill(os.getpid(), signal.SIGINT)
                            time.sleep(1)
                    except BaseException:
                        pass
                    return super().fit(X, y)

            def deaf():
                return {"deaf": Pipeline([("deaf", Deaf(scale=10.5))])}
            """
        )
    )
    process = start_from_nothing("--model models_of_cli_tests:deaf --jobs 1 --out out", SKIP)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert stderr.endswith("run the same command to go on from here\n")
    assert fits(place) < 20  # the task went on, none came after it


def test_the_journal_of_another_model_is_not_used(place):
    """Same command, same data, but the module was edited after the kill."""
    process = start(UNHURRIED, "--out out")
    wait_for_fits(place, process, 16)
    os.killpg(process.pid, signal.SIGKILL)
    quiet_end(process)
    assert leftovers(place) != []
    models = place / "models_of_cli_tests.py"
    models.write_text(models.read_text().replace("Unhurried(scale=10.5", "Unhurried(scale=20.0"))
    before = fits(place)
    assert surelearn("audit t.csv --target y", UNHURRIED, "--out out").exit_code == 0
    fresh = fits(place) - before
    assert (
        surelearn("audit t.csv --target y", UNHURRIED, "--out whole --ledger apart.json").exit_code
        == 0
    )
    assert fresh == fits(place) - before - fresh
    assert content(place / "out") == content(place / "whole")


def test_two_runs_for_one_folder(place):
    process = start(UNHURRIED, "--out out")
    wait_for_fits(place, process, 1)
    result = audit("--out out")
    process.kill()
    quiet_end(process)
    assert "--out out is being written by another run" in refusal(result)


def test_a_damaged_journal_is_set_aside_and_said(place):
    (place / ".out.journal.sqlite").write_text("this is no journal, but somebody's notes\n" * 100)
    result = audit("--out out")
    assert result.exit_code == 0
    assert "not a journal" in result.stderr
    assert set(WRITTEN) <= set(names(place / "out"))
    assert leftovers(place) == [".out.journal.sqlite.aside-1"]  # never deleted: it is not ours


def test_what_a_killed_run_left_beside_the_folder_is_taken_away(place):
    (place / ".out.part").mkdir()
    (place / ".out.part" / "report.html").write_text("half")
    assert audit("--out out").exit_code == 0
    assert leftovers(place) == []
