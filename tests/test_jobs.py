"""Tasks, their journal and what a kill leaves: the same numbers whatever the backend, n_jobs or moment of the kill."""

import io
import json
import math
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import cloudpickle
import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from rich.console import Console
from threadpoolctl import threadpool_info, threadpool_limits

from surelearn.jobs import Journal, Progress, Task, TaskError, rich_progress, run, seed_for, silent

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import this file by its name


def solve(seed, X):
    """Numbers that show the thread count in their last bits, if it is not fixed."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(150, 150)) + X[:150, :150]
    return {"inverse": np.linalg.inv(A @ A.T), "sum": float(A.sum()), "seed": seed}


def grumble(x, log):
    with open(log, "a") as file:
        file.write(f"{x}\n")
    if x == 3:
        raise LookupError("no such fold")
    time.sleep(0.05 * (x > 3))
    return x


def threads():
    return sorted({library["num_threads"] for library in threadpool_info()})


def big_product(n):
    A = np.ones((n, n))
    time.sleep(0.01)
    A @ A
    return threads()


def powers(n):
    return [Task(f"2^{i}", pow, {"base": 2, "exp": i}) for i in range(n)]


def solves(n=12):
    X = np.random.default_rng(0).normal(size=(400, 400))  # 1.28 MB: joblib memmaps it
    return [Task(f"solve/{i}", solve, {"seed": seed_for(f"solve/{i}", 7), "X": X}) for i in range(n)]


def same(a, b):
    """Equal in type and bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b or (a != a and b != b)


class Counting(Progress):
    def __init__(self):
        self.calls = []

    def start(self, total, what):  # noqa: ARG002
        self.calls.append(total)

    def advance(self, key):
        self.calls.append(key)

    def finish(self):
        self.calls.append("finish")


# ---- run


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
@pytest.mark.parametrize("n", [0, 1, 23])
def test_results_in_the_order_of_tasks(n, backend):
    with joblib.parallel_config(backend):
        assert run(powers(n), n_jobs=2) == [2**i for i in range(n)]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_results_do_not_depend_on_jobs_or_backend(backend, tmp_path):
    expected = run(solves(), n_jobs=1)
    for n_jobs in (2, 3):
        with joblib.parallel_config(backend), Journal(tmp_path / f"{n_jobs}.sqlite", run_key="k") as journal:
            assert same(run(solves(), n_jobs=n_jobs, journal=journal), expected)
            assert same(run(solves(), n_jobs=n_jobs, journal=journal), expected)


def test_one_job_stays_in_the_process_and_pickles_nothing():
    seen = []
    tasks = [Task("local", lambda x: seen.append(x) or (lambda: x), {"x": 5})]
    assert run(tasks, n_jobs=1)[0]() == 5
    assert seen == [5]
    with joblib.parallel_config("loky", n_jobs=2):
        assert run([Task("pid", os.getpid, {})], n_jobs=1) == [os.getpid()]
        assert run([Task("pid", os.getpid, {}), Task("pid 2", os.getpid, {})])[0] != os.getpid()


def test_argument_names_cannot_clash():
    assert run([Task("a", dict, {"i": 1, "function": 2, "key": 3})]) == [{"i": 1, "function": 2, "key": 3}]


def test_duplicate_keys_are_refused():
    with pytest.raises(ValueError, match="'2\\^1' is the key of 2 tasks"):
        run([*powers(3), Task("2^1", pow, {"base": 1, "exp": 1})])


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_an_error_names_its_task_and_keeps_what_was_finished(n_jobs, backend, tmp_path):
    log = tmp_path / "log"
    tasks = [Task(f"fold {x}", grumble, {"x": x, "log": str(log)}) for x in range(20)]
    progress = Counting()
    with joblib.parallel_config(backend), Journal(tmp_path / "j", run_key="k") as journal:
        with pytest.raises(TaskError, match=r"task 'fold 3' failed: LookupError: no such fold") as caught:
            run(tasks, n_jobs=n_jobs, journal=journal, progress=progress)
        assert caught.value.key == "fold 3"
        assert type(caught.value.__cause__) is LookupError
        assert progress.calls[-1] == "finish"
        before = log.read_text().split()
        finished = [task for task in tasks if task.key in progress.calls]
        assert n_jobs == 2 or len(finished) == 3
        assert run(finished, journal=journal) == [task.arguments["x"] for task in finished]
        assert log.read_text().split() == before


def test_a_task_still_queued_when_loky_is_aborted_says_nothing(monkeypatch, tmp_path):
    from joblib.externals.loky.process_executor import _ExecutorManagerThread as Manager

    aborted = []
    flag = Manager.flag_executor_shutting_down

    def leave_one_queued(self):  # what a full call queue does, now and then
        flag(self)
        self.work_ids_queue.put(10**6)
        aborted.append(self)

    monkeypatch.setattr(Manager, "flag_executor_shutting_down", leave_one_queued)
    heard = []
    monkeypatch.setattr(threading, "excepthook", hear := heard.append)
    tasks = [Task(f"fold {x}", grumble, {"x": x, "log": str(tmp_path / "log")}) for x in range(20)]
    with pytest.raises(TaskError, match="fold 3"):
        run(tasks, n_jobs=2)
    assert aborted
    assert not heard
    assert threading.excepthook is hear


class StubbornError(Exception):
    def __init__(self, first, second):
        super().__init__(f"cannot travel {first}{second}")


def stubborn():
    raise StubbornError(1, 2)


def test_an_error_that_cannot_be_pickled_still_names_its_task():
    tasks = [Task("a", stubborn, {}), Task("b", stubborn, {})]
    with pytest.raises(TaskError, match="failed: StubbornError: cannot travel") as caught:
        run(tasks, n_jobs=1)
    assert type(caught.value.__cause__) is StubbornError
    with pytest.raises(TaskError, match="StubbornError: cannot travel") as caught:
        run(tasks, n_jobs=2)
    assert "in stubborn" in caught.value.__cause__.__notes__[0]


def leave():
    sys.exit(3)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_task_cannot_end_the_program(n_jobs):
    with pytest.raises(TaskError, match="'bye' failed: SystemExit: 3"):
        run([Task("bye", leave, {}), *powers(2)], n_jobs=n_jobs)


@pytest.mark.parametrize(("backend", "n_jobs"), [("loky", 1), ("loky", 2), ("threading", 4), ("multiprocessing", 2)])
def test_a_task_has_one_thread(backend, n_jobs):
    tasks = [Task(str(i), big_product, {"n": 20 + i}) for i in range(12)]
    environment = dict(os.environ)
    with threadpool_limits(2, user_api="blas"), joblib.parallel_config(backend):
        assert 2 in threads()
        assert run(tasks, n_jobs=n_jobs) == [[1]] * 12
        assert 2 in threads()  # and the process has its threads back
    assert dict(os.environ) == environment


def test_a_library_loaded_inside_a_task_has_one_thread():
    code = """
    import os, sys
    import joblib
    from surelearn import jobs
    from threadpoolctl import threadpool_info
    def late():
        import sklearn.ensemble
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "openmp"]
    if __name__ == "__main__":
        assert not [library for library in threadpool_info() if library["user_api"] == "openmp"]
        os.environ.pop("OMP_NUM_THREADS", None)
        inside = jobs.run([jobs.Task("late", late, {})])[0]
        outside = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "openmp"]
        print(set(inside) == {1}, set(outside) == {joblib.cpu_count()})
    """
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)  # noqa: S603
    assert out.stdout.split() == ["True", "True"]


def vanish(x, flag):
    if x == 5 and not os.path.exists(flag):
        open(flag, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def test_tasks_of_a_killed_worker_are_sent_again(tmp_path):
    tasks = [Task(str(x), vanish, {"x": x, "flag": str(tmp_path / "flag")}) for x in range(12)]
    progress = Counting()
    with joblib.parallel_config("loky"):
        assert run(tasks, n_jobs=2, progress=progress) == list(range(12))
    assert sorted(progress.calls[1:-1]) == sorted(task.key for task in tasks)


def test_workers_that_always_die_are_given_up():
    tasks = [Task(str(x), os._exit, {"status": 9}) for x in range(2)]
    with pytest.raises(RuntimeError, match="terminated"):
        run(tasks, n_jobs=2)


def test_seeds_depend_on_key_and_state_only():
    seeds = {seed_for(f"fold {i}", state) for i in range(100) for state in range(20)}
    assert len(seeds) == 2000
    assert all(0 <= seed < 2**32 for seed in seeds)
    assert seed_for("a", 0) == 3542182797
    assert max(seeds) > 2**31


# ---- progress


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
    console = Console(file=screen, force_terminal=True, width=90, color_system=None, legacy_windows=False)
    run(powers(6), progress=rich_progress("candidates", console=console))
    assert re.search(r"\x1b\[2K  ━{40} 6/6 candidates  0:00:0\d\n\x1b\[\?25h$", screen.getvalue())


def test_time_left_is_not_fooled_by_resumed_tasks():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=90, color_system=None, legacy_windows=False)
    bar = rich_progress("naps", console=console)
    bar.start(1000, "tasks")
    for i in range(900):
        bar.advance(str(i))
    time.sleep(0.4)
    bar.advance("computed")
    bar.finish()
    left = re.findall(r"901/1000 naps  0:00:0\d, (\d+):(\d+):(\d+) left", screen.getvalue())[-1]
    assert sum(int(part) * unit for part, unit in zip(left, (3600, 60, 1), strict=True)) >= 39  # 99 tasks of 0.4 s or more


def test_no_bar_without_a_terminal(capfd):
    run(powers(3), progress=rich_progress("candidates", console=Console(file=io.StringIO())))
    run(powers(3), progress=rich_progress("candidates"))
    assert capfd.readouterr() == ("", "")


# ---- journal


def roundtrip(path, value):
    with Journal(path, run_key="k") as journal:
        journal.store("key", value)
    with Journal(path, run_key="k") as journal:
        return journal.load("key")


DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(),
    hnp.floating_dtypes(endianness="?"),
    hnp.complex_number_dtypes(),
    hnp.datetime64_dtypes(),
    hnp.timedelta64_dtypes(),
    hnp.unicode_string_dtypes(),
    hnp.byte_string_dtypes(),
)
ARRAYS = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(codec=None)))
RESULTS = st.recursive(
    st.one_of(PLAIN, ARRAYS, ARRAYS.filter(lambda a: a.ndim == 0).map(lambda a: a[()])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.one_of(st.text(), st.integers(), st.tuples(st.integers())), inner, max_size=4),
    ),
    max_leaves=8,
)


@given(value=RESULTS)
@settings(max_examples=60, deadline=None)
def test_results_come_back_bit_for_bit(value, tmp_path_factory):
    path = tmp_path_factory.mktemp("journal") / "j"
    assert same(roundtrip(path, value), value)


@pytest.mark.parametrize(
    "value",
    [
        np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 5e-324]),
        np.array([0x7FC00001, 0xFFC12345], np.uint32).view(np.float32),  # payloads of NaN
        np.array([True, False]),
        np.array([-(2**63), 2**63 - 1]),
        np.array(["né", "", "a\0b"]),
        np.float32(0.1),
        np.str_("trailing\0"),
        np.bool_(True),
        {"tuple": (1, [2.5, (None,)]), 3: {"array": "not an array"}},
        -0.0,
        10**2000,
    ],
    ids=repr,
)
def test_chosen_values_come_back_bit_for_bit(value, tmp_path):
    back = roundtrip(tmp_path / "j", value)
    assert same(back, value)
    assert not isinstance(value, float) or math.copysign(1, back) == math.copysign(1, value)


def test_memory_order_comes_back_too(tmp_path):
    for order in "CF":
        back = roundtrip(tmp_path / "j", np.asarray(np.arange(12.0).reshape(3, 4), order=order))
        assert back.flags["F_CONTIGUOUS"] == (order == "F")
        assert back.flags.writeable
        assert (back == np.arange(12.0).reshape(3, 4)).all()


def holding(value, log):
    with open(log, "a") as file:
        file.write("x")
    return value


CIRCLE: list = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    "value",
    [{1, 2}, b"bytes", os.getpid, np.array([{}], object), np.zeros(2, "f8,i4"), 10**5000, CIRCLE, [1, 1j]],
    ids=["set", "bytes", "function", "objects", "structured", "huge", "circle", "complex"],
)
def test_a_result_that_cannot_be_journaled_is_computed_again(value, tmp_path):
    tasks = [Task("odd", holding, {"value": value, "log": tmp_path / "odd"})]
    tasks += [Task("even", holding, {"value": 1.5, "log": tmp_path / "even"})]
    for _ in range(2):
        with Journal(tmp_path / "j", run_key="k") as journal:
            results = run(tasks, journal=journal)
            assert results[0] is value
            assert results[1] == 1.5
            assert journal.notice == ""
    assert (tmp_path / "odd").read_text() == "xx"
    assert (tmp_path / "even").read_text() == "x"


def test_nothing_in_the_file_is_a_pickle(tmp_path):
    with Journal(tmp_path / "j", run_key="k") as journal:
        run([*powers(2), Task("array", np.arange, {"stop": 3})], journal=journal)
    with sqlite3.connect(tmp_path / "j") as connection:
        rows = dict(connection.execute("SELECT key, value FROM results"))
    connection.close()
    assert json.loads(rows["2^1"]) == 2
    assert json.loads(rows["array"])["array"][:2] == ["<i8", [3]]


def test_another_run_key_starts_anew(tmp_path):
    log = tmp_path / "log"
    for run_key, runs in (("a", 1), ("a", 1), ("b", 2), ("a", 3)):
        with Journal(tmp_path / "j", run_key=run_key) as journal:
            run([Task("t", holding, {"value": 1, "log": log})], journal=journal)
            assert journal.notice == ""
        assert len(log.read_text()) == runs


def test_delete_leaves_nothing_and_a_closed_journal_says_so(tmp_path):
    with Journal(tmp_path / "deep" / "j", run_key="k") as journal:
        run(powers(3), journal=journal)
        journal.delete()
        with pytest.raises(ValueError, match="closed"):
            journal.store("a", 1)
    assert list((tmp_path / "deep").iterdir()) == []


def test_one_run_at_a_time(tmp_path):
    with Journal(tmp_path / "j", run_key="k"), pytest.raises(RuntimeError, match="in use by another run"):
        Journal(tmp_path / "j", run_key="k")


def test_a_folder_is_not_a_journal(tmp_path):
    with pytest.raises(OSError, match="cannot be opened"):
        Journal(tmp_path, run_key="k")


def test_a_foreign_file_is_moved_aside_unharmed(tmp_path):
    path = tmp_path / "j"
    for number, content in enumerate([b"age,survived\n22,0\n" * 100, b"SQLite format 3\0" + bytes(5000)], 1):
        path.write_bytes(content)
        with Journal(path, run_key="k") as journal:
            assert run(powers(3), journal=journal) == [1, 2, 4]
            assert f"moved to j.aside-{number}" in journal.notice
        assert (tmp_path / f"j.aside-{number}").read_bytes() == content
        path.unlink()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE results (mine TEXT)")
    other.execute("INSERT INTO results VALUES ('precious')")
    other.commit()
    other.close()
    content = path.read_bytes()
    with Journal(path, run_key="k") as journal:
        assert run(powers(3), journal=journal) == [1, 2, 4]
        assert "another program's file" in journal.notice
    assert (tmp_path / "j.aside-3").read_bytes() == content


def test_damage_anywhere_is_survived(tmp_path):
    """Bytes overwritten, pages zeroed, the file cut: never an error, never a wrong number."""
    expected = [{"x": np.arange(i, i + 300.0)} for i in range(30)]
    tasks = [Task(f"t{i}", holding, {"value": value, "log": os.devnull}) for i, value in enumerate(expected)]
    with Journal(tmp_path / "good", run_key="k") as journal:
        run(tasks, journal=journal)
    good = (tmp_path / "good").read_bytes()
    rng = random.Random(0)  # noqa: S311
    aside = 0
    for trial in range(90):
        data, start = bytearray(good), rng.randrange(len(good) if trial % 2 else 4096)
        if trial % 3 == 0:
            data = data[:start]
        elif trial % 3 == 1:
            data[start] ^= 1 << rng.randrange(8)
        else:
            data[start : start + 700] = rng.randbytes(len(data[start : start + 700]))
        path = tmp_path / f"bad{trial}"
        path.write_bytes(data)
        with Journal(path, run_key="k") as journal:
            assert same(run(tasks, journal=journal), expected)
            aside += bool(journal.notice)
    assert 15 < aside < 90


def test_a_full_disk_stops_the_journal_not_the_run(tmp_path):
    with Journal(tmp_path / "j", run_key="k") as journal:
        journal._execute("PRAGMA max_page_count = 5")
        assert len(run([Task(f"{i}", np.arange, {"stop": 2000}) for i in range(5)], journal=journal)) == 5
        assert "full" in journal.notice


# ---- kills and interruptions

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
    tasks = [Task(f"t{x}", work, dict(x=x, seed=seed_for(f"t{x}", 1), **common)) for x in range(40)]
    with Journal(folder / "j", run_key="k") as journal, joblib.parallel_config(sys.argv[5]):
        results = run(tasks, n_jobs=n_jobs, journal=journal)
        (folder / "notice").write_text(journal.notice)
    print(json.dumps([[r["x"], r["draw"].tobytes().hex()] for r in results]))
"""


class Script:
    """The script in its own session, so that whatever it leaves behind can be found and ended."""

    def __init__(self, folder, attempt, n_jobs, seconds, backend="loky"):
        (folder / "script.py").write_text(SCRIPT)
        command = [sys.executable, str(folder / "script.py"), str(folder), *map(str, (attempt, n_jobs, seconds, backend))]
        self.process = subprocess.Popen(  # noqa: S603
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
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
    assert {x for attempt, x in executed(tmp_path) if attempt == kills} == set(range(40)) - done[kills]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize(("n_jobs", "backend"), [(1, "loky"), (2, "loky"), (2, "threading"), (2, "multiprocessing")])
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
    pytest.importorskip("dask.distributed", reason="needs dask.distributed: pip install surelearn[scale]")
    (tmp_path / "script.py").write_text(DASK)
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "j")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)  # noqa: S603
    assert result.stdout == "done 40\n", result.stderr
