"""Tasks in processes, threads and clusters give the same results."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import cloudpickle
import joblib
import numpy as np
import pytest
from tests.jobs.tasks import Counting, powers, same
from threadpoolctl import threadpool_info, threadpool_limits

from surelearn import processes
from surelearn.jobs import Journal, Task, TaskError, run, seed_for
from surelearn.jobs.threads import limits

# workers cannot import this file by its name
cloudpickle.register_pickle_by_value(sys.modules[__name__])


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


def solves(n=12):
    X = np.random.default_rng(0).normal(size=(400, 400))  # 1.28 MB: joblib memmaps it
    return [
        Task(f"solve/{i}", solve, {"seed": seed_for(f"solve/{i}", 7), "X": X}) for i in range(n)
    ]


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
        with (
            joblib.parallel_config(backend),
            Journal(tmp_path / f"{n_jobs}.sqlite", run_key="k") as journal,
        ):
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
    assert run([Task("a", dict, {"i": 1, "function": 2, "key": 3})]) == [
        {"i": 1, "function": 2, "key": 3}
    ]


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
        with pytest.raises(
            TaskError, match=r"task 'fold 3' failed: LookupError: no such fold"
        ) as caught:
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


@pytest.mark.parametrize(
    ("backend", "n_jobs"), [("loky", 1), ("loky", 2), ("threading", 4), ("multiprocessing", 2)]
)
def test_a_task_has_one_thread(backend, n_jobs):
    tasks = [Task(str(i), big_product, {"n": 20 + i}) for i in range(12)]
    environment = dict(os.environ)
    with threadpool_limits(2, user_api="blas"), joblib.parallel_config(backend):
        assert 2 in threads()
        assert run(tasks, n_jobs=n_jobs) == [[1]] * 12
        assert 2 in threads()  # and the process has its threads back
    assert dict(os.environ) == environment


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("lock", [limits._lock, processes._lock], ids=["threads", "path"])
def test_a_fork_while_another_thread_begins_a_task_does_not_hang(lock):
    """Tasks that an error left behind go on in threads while the next run starts processes."""
    with lock:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(5)
            with processes.safe_path(), limits.one_thread():
                os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    with processes.safe_path(), limits.one_thread():
        pass


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
    out = subprocess.run(  # noqa: S603
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
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
