"""What a kill, Ctrl-C, a second run or a damaged journal leave behind."""

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
    program,
    refusal,
    surelearn,
    words,
)

UNHURRIED = f"--model models_of_cli_tests:unhurried --jobs 1 --ledger ledger.json {SKIP}"


def start(*parts):
    """The program in a session of its own, where Ctrl-C is heard even if this process ignores
    it.
    """
    arguments = ["audit", "t.csv", "--target", "y", *words(*parts)]
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from surelearn.cli import main; main(sys.argv[1:], 'surelearn')"
    )
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def fits(place):
    path = place / "fits.txt"
    return len(path.read_text().split()) if path.exists() else 0


def wait_for_fits(place, process, count):
    limit = time.monotonic() + 60
    while fits(place) < count and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.01)


def quiet_end(process):
    process.stdout.close()
    process.stderr.close()
    process.wait(60)


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
        process = start(UNHURRIED, "--out out")
        if moment is None:
            time.sleep(draw.uniform(0.05, 1.5))
        else:
            wait_for_fits(place, process, moment)
        assert process.poll() is None, "it ended before it was killed"
        os.killpg(process.pid, signal.SIGKILL)
        quiet_end(process)
        assert not any((place / "out" / name).exists() for name in WRITTEN)
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
    code = f"""
        import os, signal
        from surelearn.cli import main
        replace = os.replace

        def fatal(source, target):
            if str(target).endswith({victim!r}):
                os.kill(os.getpid(), signal.SIGKILL)
            replace(source, target)

        os.replace = fatal
        main()
    """
    arguments = ["audit", "t.csv", "--target", "y", *words(UNHURRIED, "--out out")]
    process = subprocess.run(  # noqa: S603
        [sys.executable, "-c", textwrap.dedent(code), *arguments], capture_output=True
    )
    assert process.returncode == -signal.SIGKILL
    assert leftovers(place) != []
    for path in (place / "out").iterdir():
        assert path.name == "model" or path.read_bytes() == whole[path.name]  # whole, or not there
    result = surelearn("audit t.csv --target y", UNHURRIED, "--out out")
    assert result.exit_code == 0, result.output
    assert content(place / "out") == whole
    assert leftovers(place) == []


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_leaves_no_half_file_and_the_journal(jobs, place, uninterrupted):
    whole, total = uninterrupted
    process = start(UNHURRIED, f"--jobs {jobs} --out out")
    wait_for_fits(place, process, total // 2)
    began = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert time.monotonic() - began < 10
    assert stderr == "interrupted; run the same command to go on from here\n"
    assert "report.html" not in stdout  # the verdict may have been said, a page was not written
    assert not (place / "out").exists()
    assert leftovers(place) == [".out.journal.sqlite"]
    done = fits(place)
    result = program("audit t.csv --target y", UNHURRIED, f"--jobs {jobs} --out out")
    assert result.returncode == 0, result.stderr
    assert content(place / "out") == whole
    assert leftovers(place) == []
    assert fits(place) - done < total - total // 4  # the rest, from the journal on


@pytest.mark.slow
def test_ctrl_c_while_things_load(place):
    """Inside an import Python loses a KeyboardInterrupt or calls it an ImportError."""
    draw = random.Random(2)  # noqa: S311
    for delay in [draw.uniform(0.3, 1.2) for _ in range(6)]:
        process = start(UNHURRIED, "--out out")
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
        if stderr.startswith("Traceback"):
            assert "in <module>" in stderr  # before our first line ran
            continue
        if process.returncode == -signal.SIGINT and not stderr:
            continue  # on a busy machine: before Python could say anything
        assert process.returncode == 130
        assert stderr == "interrupted; run the same command to go on from here\n"
        assert not (place / "out").exists()


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
