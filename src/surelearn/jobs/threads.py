"""One BLAS and one OpenMP thread a task, so that results do not depend on how many run at once."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from joblib import cpu_count
from threadpoolctl import ThreadpoolController


class Limits:
    """One BLAS and one OpenMP thread while a task runs.

    BLAS counts its threads for the process, so the last of several tasks in one process restores
    them; OpenMP counts for each thread. The environment does the same for libraries that are first
    loaded inside a task.
    """

    VARIABLES = (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    )

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._libraries: list[Any] = []
        self._modules = 0

    def forked(self) -> None:
        """In a new process: nobody is left there who could give back a lock that another thread held."""
        self._lock = threading.Lock()

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        """Limit the libraries that are loaded, and those that will be, while the body runs."""
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
        """Libraries not known before; looking takes 5 ms, so only where modules were imported
        since the last look.
        """
        if len(sys.modules) == self._modules:
            return []
        known = {library.filepath for library in self._libraries}
        self._libraries, self._modules = ThreadpoolController().lib_controllers, len(sys.modules)
        return [library for library in self._libraries if library.filepath not in known]

    def _limited(self, kind: str) -> dict[Any, int]:
        """Limit the libraries of a kind; returns the threads they had."""
        before = {
            library: library.num_threads for library in self._libraries if library.user_api == kind
        }
        _set_threads(dict.fromkeys(before, 1))
        return before

    def _restore(self) -> None:
        _set_threads(self._blas)
        for name, value in self._environment.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        # loaded by a task, with one thread: the rest of this process may have them all
        newcomers = self._look()
        if "OMP_NUM_THREADS" not in os.environ:
            _set_threads(dict.fromkeys(newcomers, cpu_count()))


def _set_threads(counts: Mapping[Any, int | None]) -> None:
    for library, count in counts.items():
        # threadpoolctl 3.8 lets one thread of a process set OpenBLAS's count and silently ignores
        # the others, until cleared
        clear = getattr(library, "clear_controlling_thread", lambda **_: None)
        clear(force=True)
        if count is not None:
            library.set_num_threads(count)
        clear(force=True)


limits = Limits()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=limits.forked)


# ---- journal
