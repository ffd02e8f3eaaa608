"""How other Python processes start and end: without modules from the working folder, and not
after this one.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_SAFE_PATH = "PYTHONSAFEPATH"  # Python's own variable, since 3.11
_PR_SET_PDEATHSIG = 1
_LOOK_EVERY = 0.5  # seconds

_lock = threading.Lock()
_inside = 0
_before: str | None = None
_watched: set[int] = set()


@contextmanager
def safe_path() -> Iterator[None]:
    """Python processes started in here do not put the working folder first on their path, as ``-m``
    and ``-c`` do.

    Else a ``random.py`` beside someone's data would be imported, and so run, by every worker
    process.
    """
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = os.environ.get(_SAFE_PATH)
            os.environ[_SAFE_PATH] = "1"
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                os.environ.pop(_SAFE_PATH, None)
                if _before is not None:
                    os.environ[_SAFE_PATH] = _before


def _forked() -> None:
    """In a new process nobody is left who could give back a lock that another thread held."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forked)


def begin_with(parent: int) -> None:
    """End this worker process with its parent from the start: it may wait for a first task that
    nobody will send.
    """
    if sys.platform == "win32" or parent == os.getpid():  # there os.kill ends processes
        return
    end_with(parent)
    if os.getppid() != parent:  # it may be gone already, or not yet waited for by its own parent
        threading.Thread(target=_wait_out, args=(parent,), name="end with it", daemon=True).start()


def end_with(parent: int) -> None:
    """End this process as soon as its parent is gone, however that ended; nothing where ``parent``
    is not its parent.

    On Linux the kernel does it, also while a long computation keeps Python from running anything
    else; elsewhere, and where the thread that started this process is not the last one, a thread
    looks twice a second.
    """
    if not hasattr(os, "getppid") or os.getppid() != parent or parent in _watched:
        return
    _watched.add(parent)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_watch, args=(parent,), name="end with the parent", daemon=True).start()


def _wait_out(process: int) -> None:
    """End this process when there is no such process any more."""
    while True:
        try:
            os.kill(process, 0)
        except OSError:  # or another user's process has its number now
            os._exit(1)
        time.sleep(_LOOK_EVERY)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_EVERY)
    os._exit(1)
