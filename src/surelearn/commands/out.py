"""The folder that a command writes, and the journal beside it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

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
    """The journal beside the folder: it outlives a kill, an interrupt and a full disk; a refusal leaves nothing behind."""
    from surelearn.jobs import Journal, TaskError

    place = absolute(out)
    made = [folder for folder in place.parents if not folder.exists()]
    try:
        journal = Journal(place.with_name(f".{place.name}.journal.sqlite"), run_key=run_key)
    except OSError as error:
        raise ValueError(f"--out {out} cannot be written: {error.strerror or error}") from None
    except RuntimeError:
        raise ValueError(f"--out {out} is being written by another run: wait for it, or name another folder") from None
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


def write_folder(
    out: Path, texts: Mapping[str, str], model: Any, kept: Mapping[str, Any], names: Mapping[str, str]
) -> dict[str, str]:
    """Write texts and a model beside, then rename: an interrupted run leaves no half file.

    ``names`` says what is called how in the folder; what an earlier run left under one of them is removed. Returns where
    what is, or why it is not.
    """
    from surelearn.persistence import save

    place = absolute(out)
    beside = place.with_name(f".{place.name}.part")  # one name: what a killed run left is taken away by the next one
    made = not place.exists()
    try:
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        for name, text in texts.items():
            (beside / name).write_bytes(text.encode(errors="backslashreplace"))
        place.mkdir(parents=True, exist_ok=True)
        written, unsaved = set(texts), ""
        try:
            save(model, place / "model", **kept)
            written.add("model")
        except ValueError as error:  # a user's own class, perhaps; the page stands without the model
            unsaved = f"not saved: {error}"
        for name in texts:
            os.replace(beside / name, place / name)
        _clear(place, [name for name in names.values() if name not in written])
    except OSError as error:
        if made:
            with suppress(OSError):
                place.rmdir()
        raise OSError(f"--out {out} cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    where = {what: str(out / name) for what, name in names.items() if name in written}
    return where | ({"model": unsaved} if unsaved else {})


def _clear(place: Path, names: Sequence[str]) -> None:
    """Remove what an earlier run left: a page or model beside another certificate would mislead."""
    for name in names:
        if name == "model" and (place / name / "manifest.json").is_file():
            shutil.rmtree(place / name)
        elif (place / name).is_file():
            (place / name).unlink()


def absolute(path: Path) -> Path:
    """The path with a name of its own, also for ``.``."""
    return Path(os.path.abspath(path))
