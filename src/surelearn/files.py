"""Files that are never half written: write beside, then rename."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A path beside ``path`` to write to; it takes the place of ``path`` at the end, on disk, unless something is raised."""
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


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the folder of ``path``, so that of two processes that read and write it the second waits.

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
