"""Kills, interruptions and lost workers."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import cloudpickle
import pytest

# workers cannot import this file by its name
cloudpickle.register_pickle_by_value(sys.modules[__name__])

SCRIPT = """
import json, sys, time
from pathlib import Path
import joblib, numpy as np
from surelearn.jobs import Journal, Task, run, seed_for

def work(x, seed, log, attempt, seconds):
    with open(log, "a") as file:
        file.write(f"{attempt} {x}\\n")
    time.sleep(seconds)
    return {"x": x, "draw": np.random.default_rng(seed).normal(size=3)}

if __name__ == "__main__":
    folder, attempt, n_jobs, seconds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    common = dict(log=str(folder / "log"), attempt=attempt, seconds=seconds)
    tasks = [Task(f"t{x}", work, dict(x=x, seed=seed_for(f"t{x}", 1), **common)) for x in range(int(sys.argv[6]))]
    with Journal(folder / "j", run_key="k") as journal, joblib.parallel_config(sys.argv[5]):
        results = run(tasks, n_jobs=n_jobs, journal=journal)
        (folder / "notice").write_text(journal.notice)
    print(json.dumps([[r["x"], r["draw"].tobytes().hex()] for r in results]))
"""


class Script:
    """The script in its own session, so that whatever it leaves behind can be found and ended."""

    def __init__(self, folder, attempt, n_jobs, seconds, backend="loky", tasks=40):
        (folder / "script.py").write_text(SCRIPT)
        words = map(str, (folder, attempt, n_jobs, seconds, backend, tasks))
        command = [sys.executable, str(folder / "script.py"), *words]
        self.process = subprocess.Popen(  # noqa: S603
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def members(self):
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
            except OSError:
                continue
            if int(session) == self.process.pid and state != "Z":
                found.append(int(stat.parent.name))
        return found

    def end(self):
        for pid in self.members():
            os.kill(pid, signal.SIGKILL)
        return self.process.communicate(timeout=30)


def executed(folder):
    lines = (folder / "log").read_text().split("\n")[:-1] if (folder / "log").exists() else []
    return [tuple(map(int, line.split())) for line in lines]


def journaled(folder):
    copy = folder / "copy"
    for suffix in ("", "-wal"):
        source = folder / f"j{suffix}"
        Path(f"{copy}{suffix}").write_bytes(source.read_bytes() if source.exists() else b"")
    connection = sqlite3.connect(copy)
    try:
        return {int(key[1:]) for (key,) in connection.execute("SELECT key FROM results")}
    except sqlite3.OperationalError:  # killed before the tables
        return set()
    finally:
        connection.close()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_workers_that_were_sent_no_task_end_with_their_parent(how, tmp_path):
    """More workers than tasks: those without one waited for it for ever."""
    script = Script(tmp_path, 0, 4, 600, tasks=2)
    deadline = time.monotonic() + 60
    while not executed(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(script.members()) > 4
    script.process.send_signal(how)
    script.process.wait(timeout=30)
    while script.members() and time.monotonic() < deadline:
        time.sleep(0.05)
    left = script.members()
    script.end()
    assert not left


LATE = """
import os, subprocess, sys, time

if len(sys.argv) == 1:
    subprocess.Popen([sys.executable, __file__, str(os.getpid())])
    time.sleep(60)
print("ready", flush=True)
while os.getppid() == int(sys.argv[1]):
    time.sleep(0.01)
from surelearn.processes import begin_with
begin_with(int(sys.argv[1]))
print("begun", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals and zombies")
def test_a_worker_that_begins_when_its_parent_was_killed_ends(tmp_path):
    """The parent is there until its own parent has waited for it."""
    (tmp_path / "late.py").write_text(LATE)
    command = [sys.executable, str(tmp_path / "late.py")]
    piped = {"stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(command, **piped) as parent:  # noqa: S603
        assert parent.stdout.readline() == "ready\n"
        parent.kill()
        assert parent.stdout.readline() == "begun\n"
        parent.wait()
        started = time.monotonic()
        assert parent.stdout.read() == ""  # until the worker, too, has closed it
    assert time.monotonic() - started < 30


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize(("n_jobs", "kills"), [(1, 5), (2, 2)])
def test_resume_after_kills_gives_the_same_numbers(n_jobs, kills, tmp_path):
    reference = tmp_path / "reference"
    reference.mkdir()
    expected, _ = Script(reference, 0, 1, 0).process.communicate(timeout=60)
    assert len(json.loads(expected)) == 40
    rng = random.Random(n_jobs)  # noqa: S311
    done = [set()]
    for attempt in range(kills):
        script = Script(tmp_path, attempt, n_jobs, 0.05)
        before = len(executed(tmp_path))
        deadline = time.monotonic() + 30
        while len(executed(tmp_path)) <= before and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.1, 0.4))
        script.process.kill()
        script.process.wait(timeout=30)
        script.end()  # orphaned workers
        done.append(journaled(tmp_path))
        assert done[-1] >= done[-2]
    assert 0 < len(done[-1]) < 40
    script = Script(tmp_path, kills, n_jobs, 0)
    out, err = script.process.communicate(timeout=60)
    assert (out, err) == (expected, "")
    assert (tmp_path / "notice").read_text() == ""
    for attempt, x in executed(tmp_path):
        assert x not in done[attempt], f"task {x} ran again in attempt {attempt}"
    assert {x for attempt, x in executed(tmp_path) if attempt == kills} == set(range(40)) - done[
        kills
    ]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("n_jobs", "backend"), [(1, "loky"), (2, "loky"), (2, "threading"), (2, "multiprocessing")]
)
def test_ctrl_c_ends_quickly_with_the_journal_intact_and_no_process_left(n_jobs, backend, tmp_path):
    script = Script(tmp_path, 0, n_jobs, 0.2, backend)
    deadline = time.monotonic() + 30
    while len(executed(tmp_path)) < 10 and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(script.process.pid, signal.SIGINT)  # as a terminal does: the workers get it too
    start = time.monotonic()
    try:
        script.process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        script.end()
        raise
    assert time.monotonic() - start < 5
    deadline = time.monotonic() + 5
    while script.members() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert script.members() == []
    out, err = script.end()
    assert script.process.returncode == -signal.SIGINT
    assert out == ""
    assert err.count("Traceback") == 1, err
    assert err.rstrip().endswith("KeyboardInterrupt")
    kept = journaled(tmp_path)
    assert 1 <= len(kept) < 40  # joblib may return several at once
    assert not (tmp_path / "j-wal").exists()
    out, err = Script(tmp_path, 1, n_jobs, 0).process.communicate(timeout=60)
    assert [x for x, _ in json.loads(out)] == list(range(40))
    assert not {x for attempt, x in executed(tmp_path) if attempt == 1} & kept


DASK = """
import os, signal, sys, time
import joblib, numpy as np
from dask.distributed import Client, LocalCluster
from surelearn.jobs import Journal, Progress, Task, run

def plus(x, X):
    return X + x

def work(x, X):
    time.sleep(0.05)
    (inner,) = run([Task("inner", plus, dict(x=x, X=X))], n_jobs=1) if x == 1 else [X + x]
    return x, os.getpid(), float(np.linalg.inv(X @ X.T + x).sum() + X.sum()), inner

class Killer(Progress):
    def __init__(self, client, victims):
        self.client, self.victims, self.done = client, victims, 0

    def advance(self, key):
        self.done += 1
        if self.done == 15:
            for pid in list(self.client.run(os.getpid).values())[:self.victims]:
                os.kill(pid, signal.SIGKILL)

def numbers(results):
    return [(x, value, Y.sum(), Y.tobytes()) for x, _, value, Y in results]

if __name__ == "__main__":
    X = np.random.default_rng(0).normal(size=(100, 200))
    tasks = [Task(f"t{x}", work, dict(x=x, X=X)) for x in range(40)]
    expected = numbers(run(tasks, n_jobs=1))
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with Client(cluster) as client, joblib.parallel_config("dask"):
            with Journal(sys.argv[1], run_key="k") as journal:
                results = run(tasks, journal=journal, progress=Killer(client, 1))
                pids = {pid for _, pid, _, _ in results}
                assert numbers(results) == expected, "numbers after one worker was killed"
                assert os.getpid() not in pids and len(pids) > 1, "on the cluster"
                assert numbers(run(tasks, journal=journal)) == expected, "journal"
            client.wait_for_workers(2)
            results = run(tasks, progress=Killer(client, 2))  # the scattered X is lost with them
            assert numbers(results) == expected, "numbers after all workers were killed"
    print("done", len(results))
"""


@pytest.mark.slow
def test_a_dask_cluster_loses_one_worker_then_all(tmp_path):
    pytest.importorskip(
        "dask.distributed", reason="needs dask.distributed: pip install surelearn[scale]"
    )
    (tmp_path / "script.py").write_text(DASK)
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "j")]
    result = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
    )
    assert result.stdout == "done 40\n", result.stderr
