"""The folder that a command writes, and the journal beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from surelearn.files import absolute
from surelearn.terminal import ctrl_c


def check_out(out: Path) -> None:
    """Whether the folder can be made, before any work is done for it."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file: name a folder")
    place = absolute(out)
    if not place.name:
        raise ValueError(f"--out {out} is no folder of its own: name one")
    there = next(folder for folder in (place, *place.parents) if folder.exists())
    if not there.is_dir():
        raise ValueError(f"--out {out} cannot be made: {there} is a file")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"--out {out} cannot be written: no permission for {there}")


@contextmanager
def journal_beside(out: Path, run_key: str) -> Iterator[Any]:
    """The journal beside the folder: it outlives a kill, an interrupt and a full disk; a
    refusal leaves nothing behind.
    """
    from surelearn.jobs import Journal, TaskError

    place = absolute(out)
    made = [folder for folder in place.parents if not folder.exists()]
    try:
        journal = Journal(place.with_name(f".{place.name}.journal.sqlite"), run_key=run_key)
    except OSError as error:
        raise ValueError(f"--out {out} cannot be written: {error.strerror or error}") from None
    except RuntimeError:
        raise ValueError(
            f"--out {out} is being written by another run: wait for it, or name another folder"
        ) from None
    if journal.notice:
        click.echo(journal.notice, err=True)
    ctrl_c.under_way = True
    try:
        with journal:
            yield journal
    except (ValueError, TypeError, TaskError, MemoryError, SystemExit):
        journal.delete()
        with suppress(OSError):
            for folder in made:
                folder.rmdir()
        raise


@contextmanager
def named_out() -> Iterator[None]:
    """A folder that cannot be written is called by the name of its option."""
    try:
        yield
    except OSError as error:
        raise OSError(f"--out {error}") from None
