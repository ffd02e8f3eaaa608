"""Progress is counted and drawn."""

import io
import re
import time

import pytest
from rich.console import Console
from tests.jobs.tasks import Counting, powers

from surelearn.jobs import Journal, rich_progress, run, silent


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_counts_every_task_once_also_resumed_ones(n_jobs, tmp_path):
    with Journal(tmp_path / "j", run_key="k") as journal:
        run(powers(4), journal=journal, progress=silent)
        progress = Counting()
        run(powers(9), n_jobs=n_jobs, journal=journal, progress=progress)
    assert progress.calls[0] == 9
    assert progress.calls[1:5] == [f"2^{i}" for i in range(4)]
    assert sorted(progress.calls[5:-1]) == [f"2^{i}" for i in range(4, 9)]
    assert progress.calls[-1] == "finish"


def test_the_bar_looks_as_designed():
    screen = io.StringIO()
    console = Console(
        file=screen, force_terminal=True, width=90, color_system=None, legacy_windows=False
    )
    run(powers(6), progress=rich_progress("candidates", console=console))
    assert re.search(r"\x1b\[2K  ━{40} 6/6 candidates  0:00:0\d\n\x1b\[\?25h$", screen.getvalue())


def test_time_left_is_not_fooled_by_resumed_tasks():
    screen = io.StringIO()
    console = Console(
        file=screen, force_terminal=True, width=90, color_system=None, legacy_windows=False
    )
    bar = rich_progress("naps", console=console)
    bar.start(1000, "tasks")
    for i in range(900):
        bar.advance(str(i))
    time.sleep(0.4)
    bar.advance("computed")
    bar.finish()
    left = re.findall(r"901/1000 naps  0:00:0\d, (\d+):(\d+):(\d+) left", screen.getvalue())[-1]
    # 99 tasks of 0.4 s or more
    assert sum(int(part) * unit for part, unit in zip(left, (3600, 60, 1), strict=True)) >= 39


def test_no_bar_without_a_terminal(capfd):
    run(powers(3), progress=rich_progress("candidates", console=Console(file=io.StringIO())))
    run(powers(3), progress=rich_progress("candidates"))
    assert capfd.readouterr() == ("", "")


def test_a_plain_line_now_and_then_where_there_is_no_terminal(monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr("surelearn.jobs.progress.time.monotonic", lambda: float(next(clock)))
    log = io.StringIO()
    lines = rich_progress("fits", console=Console(file=log))
    lines.start(100, "tasks")
    for i in range(100):
        lines.advance(str(i))  # one second each
    lines.finish()
    said = log.getvalue().splitlines()
    assert said[0] == "  5 of 100 fits, 0:00:05, about 0:01:35 left"
    assert said[-1] == "  100 of 100 fits, 0:01:41"
    assert 5 < len(said) < 15
