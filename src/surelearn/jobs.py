"""Independent tasks on joblib: progress and time left, a journal (SQLite), resume after a kill, any backend.

Results do not depend on ``n_jobs``, on the backend or on where an earlier run was killed: every task runs with one BLAS and
one OpenMP thread, takes its randomness from its own key (`seed_for`), and journaled results come back bit for bit.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import pickle
import signal
import sqlite3
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
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs
from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, TextColumn
from rich.progress import Progress as RichProgress
from rich.progress import Task as RichTask
from rich.text import Text
from threadpoolctl import ThreadpoolController

__all__ = ["Journal", "Progress", "Task", "TaskError", "rich_progress", "run", "seed_for", "silent"]

MISSING: Any = object()
LOST_WORKERS = 3  # so often a run goes on after its workers were lost, before it gives up


@dataclass(frozen=True)
class Task:
    """One call, under a key that is the same in every run ("cv/forest/fold 3"); it must not write to its arguments."""

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
    tasks: Sequence[Task], *, n_jobs: int | None = None, journal: Journal | None = None, progress: Progress | None = None
) -> list[Any]:
    """Run tasks and return their results in the order of the tasks.

    Each result is journaled as it comes; results found in the journal are not computed again. Tasks of lost workers (killed,
    out of memory) are sent again.

    Parameters
    ----------
    tasks : independent of each other, with different keys
    n_jobs : as in joblib (None: 1, or what ``joblib.parallel_config`` says); 1 stays in this process
    journal : where results survive a kill
    progress : `rich_progress` on a terminal; None says nothing

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
        losses = 0
        while len(results) < len(tasks):
            calls = [(i, task) for i, task in enumerate(tasks) if i not in results]
            try:
                with closing(_outcomes(calls, n_jobs)) as outcomes:
                    for i, result in outcomes:
                        key = tasks[i].key
                        if isinstance(result, _Failure):
                            raise TaskError(key, result.error) from result.error
                        if isinstance(result, _Aligned):  # a run inside a task on dask: nothing travelled
                            result = result.result
                        if journal is not None:
                            journal.store(key, result)
                        results[i] = result
                        progress.advance(key)
            except (BrokenExecutor, CancelledError, TimeoutError) as error:  # loky's and dask's words for lost workers
                losses += 1
                if losses > LOST_WORKERS:
                    raise
                if not isinstance(error, BrokenExecutor):  # dask starts new ones; on one core joblib would stay here
                    time.sleep(2)
    finally:
        progress.finish()
    return [results[i] for i in range(len(tasks))]


# ---- on joblib


def _outcomes(calls: list[tuple[int, Task]], n_jobs: int | None) -> Generator[tuple[int, Any], None, None]:
    """Number and outcome of each call, as they come."""
    if n_jobs == 1:
        yield from (_call(i, task.function, **task.arguments) for i, task in calls)
        return
    # Arguments travel as keywords of the call itself: there joblib's dask backend finds large ones and sends them once.
    parts = [delayed(_call)(i, task.function, **task.arguments) for i, task in calls]
    try:
        streaming: Any = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    except ValueError:
        streaming = None
    if streaming is None:  # multiprocessing only returns lists: a few tasks at a time, so that the journal follows
        size = 4 * effective_n_jobs(n_jobs)  # pyright: ignore[reportArgumentType] None is documented
        with ExitStack() as stack:
            with _ctrl_c_held():
                parallel: Any = stack.enter_context(Parallel(n_jobs=n_jobs))
            for start in range(0, len(parts), size):
                yield from parallel(parts[start : start + size])
        return
    stream = streaming(parts)
    try:
        for outcome in stream:  # noqa: UP028 `yield from` would close the stream outside the filter below
            yield outcome
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib: "tasks have been successfully executed but not used"
            stream.close()


@contextmanager
def _ctrl_c_held() -> Iterator[None]:
    """Workers started here leave Ctrl-C to this process: one that dies of it holding a queue's lock hangs the pool."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited by workers, only a delay here
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _call(i: int, function: Callable[..., Any], /, **arguments: Any) -> tuple[int, Any]:
    try:
        with _limits.one_thread():
            if not _on_dask():
                return i, function(**arguments)
            return i, _Aligned(function(**deepcopy(arguments)))
    except (Exception, SystemExit) as error:  # a value, so that other results of joblib's batch are not lost with it
        return i, _Failure(error)


def _on_dask() -> bool:
    try:
        return "distributed" in sys.modules and bool(sys.modules["distributed"].get_worker())
    except ValueError:  # loaded, but this is no worker
        return False


class _Aligned:
    """A result on its way from a dask worker, which arrives as the result itself.

    Dask hands over arrays at odd addresses, where NumPy adds in another order: the last bits would depend on the backend.
    So arguments are copied there and results travel as bytes of their own.
    """

    def __init__(self, result: Any) -> None:
        self.result = result

    def __reduce__(self) -> tuple[Any, ...]:
        from cloudpickle import dumps  # dask needs it too

        return pickle.loads, (dumps(self.result),)


class _Failure:
    """What a task raised; between processes an error that cannot travel becomes a RuntimeError, the traceback a note."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            error = pickle.loads(pickle.dumps(self.error))  # noqa: S301 its own bytes: can it travel?
        except Exception:
            error = RuntimeError(f"{type(self.error).__name__}: {self.error}")
        error.add_note("".join(traceback.format_exception(self.error)))
        return _Failure, (error,)


class _Limits:
    """One BLAS and one OpenMP thread while a task runs.

    BLAS counts its threads for the process, so the last of several tasks in one process restores them; OpenMP counts for
    each thread. The environment does the same for libraries that are first loaded inside a task.
    """

    VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._libraries: list[Any] = []
        self._modules = 0

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        with self._lock:
            if self._running == 0:
                self._look()
                self._environment = {name: os.environ.get(name) for name in self.VARIABLES}
                os.environ.update(dict.fromkeys(self.VARIABLES, "1"))
                self._blas = self._limited("blas")
            self._running += 1
        openmp = self._limited("openmp")
        try:
            yield
        finally:
            _set_threads(openmp)
            with self._lock:
                self._running -= 1
                if self._running == 0:
                    self._restore()

    def _look(self) -> list[Any]:
        """Libraries not known before; looking takes 5 ms, so only where modules were imported since the last look."""
        if len(sys.modules) == self._modules:
            return []
        known = {library.filepath for library in self._libraries}
        self._libraries, self._modules = ThreadpoolController().lib_controllers, len(sys.modules)
        return [library for library in self._libraries if library.filepath not in known]

    def _limited(self, kind: str) -> dict[Any, int]:
        """Limit the libraries of a kind; returns the threads they had."""
        before = {library: library.num_threads for library in self._libraries if library.user_api == kind}
        _set_threads(dict.fromkeys(before, 1))
        return before

    def _restore(self) -> None:
        _set_threads(self._blas)
        for name, value in self._environment.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        newcomers = self._look()  # loaded by a task, with one thread: the rest of this process may have them all
        if "OMP_NUM_THREADS" not in os.environ:
            _set_threads(dict.fromkeys(newcomers, cpu_count()))


def _set_threads(counts: Mapping[Any, int | None]) -> None:
    for library, count in counts.items():
        # threadpoolctl 3.8 lets one thread of a process set OpenBLAS's count and silently ignores the others, until cleared
        clear = getattr(library, "clear_controlling_thread", lambda **_: None)
        clear(force=True)
        if count is not None:
            library.set_num_threads(count)
        clear(force=True)


_limits = _Limits()


# ---- journal


class Journal:
    """Results of one run in a SQLite file, committed one by one; nothing is ever unpickled.

    Numbers, strings, lists, tuples, dicts and NumPy arrays come back with type, order and bits; a result that holds anything
    else is not kept and its task runs again at a resume. A file that is damaged or not a journal is moved aside, and
    ``notice`` says so; the results of another ``run_key`` are dropped.

    Parameters
    ----------
    path : of the file, made with its folder where missing; one run at a time can hold it
    run_key : hash of everything the results depend on: data, options, version of the code
    """

    APPLICATION = 0x5375_724A  # "SurJ", in the file's header
    FORMAT = 1

    def __init__(self, path: str | Path, *, run_key: str) -> None:
        self.path = Path(path)
        self.notice = ""
        self._run_key = f"{self.FORMAT}/{run_key}"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._connection: sqlite3.Connection | None = self._open()
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF  # the primary code
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise RuntimeError(f"the journal {self.path} is in use by another run") from None
            if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL):
                raise OSError(f"the journal {self.path} cannot be opened: {error}") from None
            aside = self._move_aside()
            self.notice = f"{self.path} is damaged or not a journal ({error}): moved to {aside.name}, started anew"
            self._connection = self._open()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=1, isolation_level=None, check_same_thread=False)

        def one(statement: str, *values: Any) -> Any:
            return connection.execute(statement, values).fetchone()[0]

        try:
            known = one("PRAGMA application_id") == self.APPLICATION
            if not known and (one("PRAGMA application_id") or one("SELECT count(*) FROM sqlite_master")):
                raise sqlite3.DatabaseError("another program's file")
            if (verdict := one("PRAGMA quick_check(1)")) != "ok":
                raise sqlite3.DatabaseError(verdict)
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # also: no shared memory, so network disks will do
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            if not known or not one("SELECT count(*) FROM run WHERE key = ?", self._run_key):
                connection.execute("BEGIN IMMEDIATE")  # all or nothing: a kill in between leaves an empty or the old file
                connection.execute("DROP TABLE IF EXISTS run")
                connection.execute("DROP TABLE IF EXISTS results")
                connection.execute("CREATE TABLE run (key TEXT)")
                connection.execute("CREATE TABLE results (key TEXT PRIMARY KEY, value BLOB, digest BLOB)")
                connection.execute("INSERT INTO run VALUES (?)", (self._run_key,))
                connection.execute(f"PRAGMA application_id = {self.APPLICATION}")
                connection.execute("COMMIT")
            one("SELECT count(*) FROM results WHERE key = value OR digest IS NULL")  # the columns are there
        except BaseException:
            connection.close()
            raise
        return connection

    def _files(self) -> list[Path]:
        return [self.path.with_name(self.path.name + suffix) for suffix in ("", "-wal", "-shm", "-journal")]

    def _move_aside(self) -> Path:
        number = 1
        while (aside := self.path.with_name(f"{self.path.name}.aside-{number}")).exists():
            number += 1
        for file in self._files():  # a stray -wal or -journal would be replayed into the new file
            if file.exists():
                file.replace(aside.with_name(aside.name + file.name.removeprefix(self.path.name)))
        return aside

    def _digest(self, key: str, value: bytes) -> bytes:
        return hashlib.sha256(f"{self._run_key}\0{key}\0".encode() + value).digest()

    def _execute(self, statement: str, *values: Any) -> list[Any]:
        if self._connection is None:
            raise ValueError(f"the journal {self.path} is closed")
        return self._connection.execute(statement, values).fetchall()

    def load(self, key: str) -> Any:
        """Result of a task, or ``MISSING``, also where its bytes do not match their digest."""
        try:
            rows = self._execute("SELECT value, digest FROM results WHERE key = ?", key)
        except sqlite3.Error:
            return MISSING
        for value, digest in rows:
            if isinstance(value, bytes) and digest == self._digest(key, value):
                return _decode(json.loads(value))
        return MISSING

    def store(self, key: str, result: Any) -> None:
        """Keep a result, if it can be written; a full disk stops the journal, not the run."""
        try:
            value = json.dumps(_encode(result)).encode()
            self._execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", key, value, self._digest(key, value))
        except (TypeError, RecursionError):
            return
        except sqlite3.Error as error:
            self.notice = f"results could not be written to {self.path}: {error}"

    def close(self) -> None:
        """Close the file; a later journal of the same ``run_key`` resumes from it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def delete(self) -> None:
        """Close and remove the file: the run is complete."""
        self.close()
        for file in self._files():
            file.unlink(missing_ok=True)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _encode(value: Any) -> Any:
    """JSON for a result; every JSON object has one name, its type, so that nothing has to be escaped."""
    kind = type(value)
    if kind in (bool, float, str, type(None)) or (kind is int and value.bit_length() < 10_000):
        return value
    if kind is list:
        return [_encode(item) for item in value]
    if kind is tuple:
        return {"tuple": [_encode(item) for item in value]}
    if kind is dict:
        return {"dict": [[_encode(name), _encode(item)] for name, item in value.items()]}
    if kind is np.str_:  # an array, and str(), would lose trailing NULs
        return {"text": "".join(value)}
    if (kind is np.ndarray or isinstance(value, np.generic)) and value.dtype.kind in "biufcmMSU":
        order = "F" if value.flags.fnc else "C"
        body = base64.b64encode(value.tobytes(order)).decode()
        return {"array" if kind is np.ndarray else "scalar": [value.dtype.str, list(value.shape), order, body]}
    raise TypeError(f"{kind.__name__} cannot be journaled")


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, body),) = value.items()
    if kind == "tuple":
        return tuple(_decode(item) for item in body)
    if kind == "dict":
        return {_decode(name): _decode(item) for name, item in body}
    if kind == "text":
        return np.str_(body)
    dtype, shape, order, text = body
    array = np.ndarray(shape, dtype, buffer=base64.b64decode(text), order=order).copy(order="K")
    return array if kind == "array" else array[()]


# ---- progress


class Progress:
    """Who is told how far a run has come; this one says nothing."""

    def start(self, total: int, what: str) -> None:
        """Once, before all tasks."""

    def advance(self, key: str) -> None:
        """After each task, also one resumed from a journal."""

    def finish(self) -> None:
        """At the end, also after an error."""


silent = Progress()


def rich_progress(label: str = "", *, console: Console | None = None) -> Progress:
    """Bar on a terminal (standard error), with ``6/6 candidates  0:00:09`` for the label "candidates"."""
    return _Bar(label, console or Console(stderr=True))


class _Bar(Progress):
    RESUMED_WITHIN = 0.2  # seconds; what a journal gives at once is no measure of speed

    def __init__(self, label: str, console: Console) -> None:
        self._label = label
        count = TextColumn("{task.completed}/{task.total} {task.description}", markup=False)
        columns = (TextColumn(" "), BarColumn(), count, _Times())
        self._rich = RichProgress(*columns, console=console, disable=not console.is_terminal)

    def start(self, total: int, what: str) -> None:
        self._started, self._computed, self._remaining = time.monotonic(), 0, total
        self._id = self._rich.add_task(self._label or what, total=total, expected=None)
        self._rich.start()

    def advance(self, key: str) -> None:  # noqa: ARG002 the bar only counts
        elapsed = time.monotonic() - self._started
        self._computed += elapsed > self.RESUMED_WITHIN
        self._remaining -= 1
        expected = elapsed + elapsed / self._computed * self._remaining if self._computed else None
        self._rich.update(self._id, advance=1, expected=expected)

    def finish(self) -> None:
        self._rich.stop()


class _Times(ProgressColumn):
    """Time since the start and, until the end, time left."""

    def render(self, task: RichTask) -> Text:
        elapsed, expected = task.elapsed or 0.0, task.fields["expected"]
        left = "" if expected is None or not task.remaining else f", {_clock(max(expected - elapsed, 0.0))} left"
        return Text(f" {_clock(elapsed)}{left}")


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
