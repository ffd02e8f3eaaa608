"""Files that are never half written (write beside, then rename), and read only where they are
files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A path beside ``path`` to write to; it takes the place of ``path`` at the end, on disk,
    unless something is raised.
    """
    path = Path(os.path.abspath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield beside
        with open(beside, "rb") as written:
            os.fsync(written.fileno())
        os.replace(beside, path)
    except OSError as error:
        if error.filename == str(beside):  # people know the other name
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise
    finally:
        beside.unlink(missing_ok=True)


def write(path: Path, content: bytes | str) -> None:
    """Write a whole file, or leave the old one."""
    with writing(path) as beside:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)


def check_regular(path: Path, what: str = "") -> None:
    """Refuse what exists and is neither a regular file nor a folder: a pipe would be waited
    for, a device has no end.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # which opening it says better
        return
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ValueError(f"{what or path} is {_kind(mode)}: name a regular file")


def read(path: Path, *, most: int, what: str = "") -> bytes:
    """The bytes of a regular file that holds at most ``most``."""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):
        os.close(file)
        raise ValueError(f"{what or path} is {_kind(found.st_mode)}: name a regular file")
    with os.fdopen(file, "rb") as opened:
        content = opened.read(found.st_size + 1) if found.st_size <= most else b""
    if max(len(content), found.st_size) > most:
        raise ValueError(f"{what or path} is larger than {most / 2**20:g} MiB, which is not read")
    return content


def _kind(mode: int) -> str:
    kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}
    return kinds.get(stat.S_IFMT(mode), "a device")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the folder of ``path``, so that of two processes that read and write it the second
    waits.

    Without fcntl (Windows) nothing is held.
    """
    path = Path(os.path.abspath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        yield
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)  # which also lets go of the lock


def absolute(path: str | Path) -> Path:
    """The path with a name of its own, also for ``.``."""
    return Path(os.path.abspath(path))
