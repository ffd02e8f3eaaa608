"""Independent tasks on any joblib backend, journaled as they finish."""

from __future__ import annotations

import hashlib
import os
import pickle
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import ExitStack, closing, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from surelearn.jobs.journal import MISSING, Journal
from surelearn.jobs.progress import Progress, silent
from surelearn.jobs.threads import limits
from surelearn.processes import begin_with, end_with, safe_path

LOST_WORKERS = 3  # so often a run goes on after its workers were lost, before it gives up


@dataclass(frozen=True)
class Task:
    """One call, under a key that is the same in every run ("cv/forest/fold 3"); it must not
    write to its arguments.
    """

    key: str
    function: Callable[..., Any]
    arguments: Mapping[str, Any]


class TaskError(RuntimeError):
    """A task raised: the message and ``key`` say which one, ``__cause__`` is what it raised."""

    def __init__(self, key: str, error: BaseException) -> None:
        super().__init__(key, error)
        self.key, self.error = key, error

    def __str__(self) -> str:
        return f"task {self.key!r} failed: {type(self.error).__name__}: {self.error}"


def seed_for(key: str, random_state: int) -> int:
    """Seed of 32 bits for a task, from its key: the same whatever runs before or beside it.

    >>> seed_for("cv/forest/fold 3", 0)
    1156040164
    """
    return int.from_bytes(hashlib.sha256(f"{random_state}/{key}".encode()).digest()[:4], "big")


def run(
    tasks: Sequence[Task],
    *,
    n_jobs: int | None = None,
    journal: Journal | None = None,
    progress: Progress | None = None,
    done: Callable[[dict[str, Any]], None] | None = None,
) -> list[Any]:
    """Run tasks and return their results in the order of the tasks.

    Each result is journaled as it comes; results found in the journal are not computed again. Tasks
    of lost workers (killed, out of memory) are sent again.

    Parameters
    ----------
    tasks : independent of each other, with different keys
    n_jobs : as in joblib (None: 1, or what ``joblib.parallel_config`` says); 1 stays in this
        process
    journal : where results survive a kill
    progress : `rich_progress` on a terminal; None says nothing
    done : given results by the keys of their tasks: those of the journal together, then each as it
        comes

    Raises
    ------
    TaskError
        at the first task that raises; what finished before is in the journal

    Examples
    --------
    >>> run([Task("two", pow, {"base": 2, "exp": 10}), Task("three", pow, {"base": 3, "exp": 4})])
    [1024, 81]
    """
    tasks = list(tasks)
    key, count = Counter(task.key for task in tasks).most_common(1)[0] if tasks else ("", 0)
    if count > 1:
        raise ValueError(f"every task needs its own key, but {key!r} is the key of {count} tasks")
    progress = silent if progress is None else progress
    found = {} if journal is None else {i: journal.load(task.key) for i, task in enumerate(tasks)}
    results = {i: value for i, value in found.items() if value is not MISSING}
    progress.start(len(tasks), "tasks")
    try:
        for i in results:
            progress.advance(tasks[i].key)
        if done is not None and results:
            done({tasks[i].key: result for i, result in results.items()})
        losses = 0
        while len(results) < len(tasks):
            calls = [(i, task) for i, task in enumerate(tasks) if i not in results]
            try:
                with safe_path(), _respawns_quiet(), closing(_outcomes(calls, n_jobs)) as outcomes:
                    for i, result in outcomes:
                        key = tasks[i].key
                        if isinstance(result, _Failure):
                            raise TaskError(key, result.error) from result.error
                        # a run inside a task on dask: nothing traveled
                        if isinstance(result, _Aligned):
                            result = result.result
                        if journal is not None:
                            journal.store(key, result)
                        results[i] = result
                        progress.advance(key)
                        if done is not None:
                            done({key: result})
            # loky's and dask's words for lost workers
            except (BrokenExecutor, CancelledError, TimeoutError) as error:
                losses += 1
                if losses > LOST_WORKERS:
                    raise
                # dask starts new ones; on one core joblib would stay here
                if not isinstance(error, BrokenExecutor):
                    time.sleep(2)
    finally:
        progress.finish()
    return [results[i] for i in range(len(tasks))]


# ---- on joblib


@dataclass(frozen=True, kw_only=True)
class Runner:
    """How tasks run, never what they compute; ``command`` is the command line that asked, for
    the next one to try. ``early`` is given what is known before the long work begins, and again
    whenever a part of it is finished: of an audit, an `Audit` whose ``unfinished`` names what is not
    measured yet. ``heed`` is called before tasks and after each: it raises an interrupt that got lost.
    """

    n_jobs: int | None = None
    journal: Journal | None = None
    progress: Callable[[str], Progress | None] = lambda label: None  # noqa: ARG005
    say: Callable[[str], None] = lambda line: None  # noqa: ARG005
    command: str = ""
    early: Callable[[Any], None] = lambda found: None  # noqa: ARG005
    heed: Callable[[], None] = lambda: None

    def run(
        self,
        tasks: Sequence[Task],
        label: str,
        done: Callable[[dict[str, Any]], None] | None = None,
    ) -> list[Any]:
        """Run tasks with progress under a label; ``done`` as in `run`."""

        def heeded(found: dict[str, Any]) -> None:
            self.heed()
            if done is not None:
                done(found)

        self.heed()
        return run(
            tasks,
            n_jobs=self.n_jobs,
            journal=self.journal,
            progress=self.progress(label),
            done=heeded,
        )


def _outcomes(
    calls: list[tuple[int, Task]], n_jobs: int | None
) -> Generator[tuple[int, Any], None, None]:
    """Number and outcome of each call, as they come."""
    if n_jobs == 1:
        yield from (_call(0, i, task.function, **task.arguments) for i, task in calls)
        return
    # Arguments travel as keywords of the call itself: there joblib's dask backend finds large ones
    # and sends them once.
    parts = [delayed(_call)(os.getpid(), i, task.function, **task.arguments) for i, task in calls]
    try:
        streaming: Any = Parallel(n_jobs=n_jobs, return_as="generator_unordered", **_first())
    except ValueError:
        streaming = None
    # multiprocessing only returns lists: a few tasks at a time, so that the journal follows
    if streaming is None:
        size = 4 * effective_n_jobs(n_jobs)  # pyright: ignore[reportArgumentType] None is documented
        with ExitStack() as stack:
            with _ctrl_c_held():
                parallel: Any = stack.enter_context(Parallel(n_jobs=n_jobs, **_first()))
            for start in range(0, len(parts), size):
                yield from parallel(parts[start : start + size])
        return
    stream = streaming(parts)
    try:
        for outcome in stream:  # noqa: UP028 `yield from` would close the stream outside the filter below
            yield outcome
    finally:
        with warnings.catch_warnings(), _loky_abort_quiet():
            # joblib: "tasks have been successfully executed but not used"
            warnings.simplefilter("ignore")
            stream.close()


def _first() -> dict[str, Any]:
    """What workers do before their first task, unless ``joblib.parallel_config`` says it."""
    stated = getattr(get_active_backend()[0], "backend_kwargs", {})
    return (
        {} if "initializer" in stated else {"initializer": begin_with, "initargs": (os.getpid(),)}
    )


@contextmanager
def _respawns_quiet() -> Iterator[None]:
    """Loky replaces a worker that grew, as one does by importing PyTorch, and warns: nothing is
    lost.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="A worker stopped while some jobs were given to the executor"
        )
        yield


@contextmanager
def _ctrl_c_held() -> Iterator[None]:
    """Workers started here leave Ctrl-C to this process: one that dies of it holding a queue's
    lock hangs the pool.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    # inherited by workers, only a delay here
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _loky_abort_quiet() -> Iterator[None]:
    """An aborted loky drops its pending tasks; if one is still queued, its thread then ends
    with a harmless KeyError.
    """
    before = threading.excepthook

    def hook(args: threading.ExceptHookArgs, /) -> None:
        thread = "" if args.thread is None else args.thread.name
        if not (args.exc_type is KeyError and thread == "ExecutorManagerThread"):
            before(args)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = before


def _call(
    parent: int, i: int, function: Callable[..., Any], /, **arguments: Any
) -> tuple[int, Any]:
    end_with(parent)
    try:
        with limits.one_thread():
            if not _on_dask():
                return i, function(**arguments)
            return i, _Aligned(function(**deepcopy(arguments)))
    # a value, so that other results of joblib's batch are not lost with it
    except (Exception, SystemExit) as error:
        return i, _Failure(error)


def _on_dask() -> bool:
    try:
        return "distributed" in sys.modules and bool(sys.modules["distributed"].get_worker())
    except ValueError:  # loaded, but this is no worker
        return False


class _Aligned:
    """A result on its way from a dask worker, which arrives as the result itself.

    Dask hands over arrays at odd addresses, where NumPy adds in another order: the last bits would
    depend on the backend. So arguments are copied there and results travel as bytes of their own.
    """

    def __init__(self, result: object) -> None:
        self.result = result

    def __reduce__(self) -> tuple[Any, ...]:
        from cloudpickle import dumps  # dask needs it too

        return pickle.loads, (dumps(self.result),)


class _Failure:
    """What a task raised; between processes an error that cannot travel becomes a RuntimeError,
    the traceback a note.
    """

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            error = pickle.loads(pickle.dumps(self.error))  # noqa: S301 its own bytes: can it travel?
        except Exception:
            error = RuntimeError(f"{type(self.error).__name__}: {self.error}")
        error.add_note("".join(traceback.format_exception(self.error)))
        return _Failure, (error,)
