"""A folder of texts and a model that is written as a whole: an interrupted run leaves no half
file, and a killed one no half folder.

Everything is written beside the folder first; renaming what is beside is the moment from which on it
counts. Then files move into their places one by one, and where a kill comes between two of them,
`settle` goes on.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from surelearn import files
from surelearn.documents import read_json
from surelearn.files import absolute
from surelearn.persistence.manifest import MANIFEST, left_behind, names_in_manifest, refuse_others
from surelearn.persistence.models import save
from surelearn.types import Model

_MODEL = "model"
_GONE = ".gone.json"  # names that the new content does not have


def write_folder(
    folder: str | Path,
    texts: Mapping[str, str],
    model: Model | None,
    kept: Mapping[str, Any],
    names: Mapping[str, str],
) -> dict[str, str]:
    """Write texts and a model beside the folder, then rename them into it.

    Parameters
    ----------
    folder : made if it does not exist
    texts : by the names of their files
    model, kept : what `save` is given, for the folder's ``model``; None: the model that is there
        stays
    names : what is called how in the folder; what an earlier run left under one of these names is
        removed

    Returns
    -------
    where what is, or why it is not: a model may have parts that cannot be kept, and the texts stand
    without it
    """
    place = absolute(folder)
    made = not place.exists()
    beside = _beside(place, "part")  # one name: what a killed run left is taken away by the next
    written, unsaved = {*texts}, ""
    try:
        settle(place)
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        for name, text in texts.items():
            (beside / name).write_bytes(text.encode(errors="backslashreplace"))
        if model is not None:
            unsaved = _saved(model, beside / _MODEL, place / _MODEL, kept)
        if not unsaved and (model is not None or (place / _MODEL / MANIFEST).is_file()):
            written.add(_MODEL)
        gone = [name for name in names.values() if name not in written]
        (beside / _GONE).write_bytes(json.dumps(gone).encode())
        place.mkdir(parents=True, exist_ok=True)
        beside.rename(_beside(place, "ready.part"))
        settle(place)
    except OSError as error:
        if made:
            with suppress(OSError):
                place.rmdir()
        raise OSError(f"{folder} cannot be written: {error.strerror or error}") from None
    except BaseException:  # Ctrl-C between two files
        settle(place)
        raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    where = {what: str(Path(folder) / name) for what, name in names.items() if name in written}
    return where | ({"model": unsaved} if unsaved else {})


def settle(folder: str | Path) -> None:
    """Put in their places the files of a write that was complete, but killed before they all were;
    nothing where there was none.
    """
    place = absolute(folder)
    ready = _beside(place, "ready.part")
    if not (ready / _GONE).is_file():  # the last to be taken away
        shutil.rmtree(ready, ignore_errors=True)
        return
    if (ready / _MODEL).is_dir():
        _put_model(ready / _MODEL, place / _MODEL)
    for path in sorted(ready.iterdir()):
        if path.name not in (_MODEL, _GONE):
            os.replace(path, place / path.name)
    _clear(place, _gone(ready))
    shutil.rmtree(ready / _MODEL, ignore_errors=True)
    (ready / _GONE).unlink()
    ready.rmdir()


def is_settled(folder: str | Path) -> bool:
    """Whether no write of the folder was killed while its files moved into their places."""
    return not (_beside(absolute(folder), "ready.part") / _GONE).is_file()


def remove_folder(folder: Path, names: Iterable[str]) -> None:
    """Take away what `write_folder` wrote under these names, and the folder, unless it holds
    something else.
    """
    place = absolute(folder)
    with suppress(OSError):
        _clear(place, [*names])
        place.rmdir()


def _beside(place: Path, ending: str) -> Path:
    return place.with_name(f".{place.name}.{ending}")


def _gone(ready: Path) -> list[str]:
    """Plain names only: another may have written them."""
    names = read_json(ready / _GONE)
    return [name for name in names if isinstance(name, str) and Path(name).name == name]


def _saved(model: Model, beside: Path, place: Path, kept: Mapping[str, Any]) -> str:
    """Save the model beside its place; why it is not saved, or nothing."""
    try:
        refuse_others(place)
        save(model, beside, **kept)
    except ValueError as error:  # a user's own class, perhaps
        shutil.rmtree(beside, ignore_errors=True)
        return f"not saved: {error}".replace(str(beside), str(place))
    return ""


def _put_model(ready: Path, place: Path) -> None:
    """The data, then the manifest that names them, then without the data of the model before."""
    place.mkdir(parents=True, exist_ok=True)
    with files.locked(place / MANIFEST):
        for path in sorted(ready.iterdir(), key=lambda path: path.name == MANIFEST):
            os.replace(path, place / path.name)
        for name in left_behind(place):
            if not names_in_manifest(place, name):
                (place / name).unlink(missing_ok=True)


def _clear(place: Path, names: Sequence[str]) -> None:
    """Remove what an earlier run left: a page or model beside another certificate would mislead."""
    for name in names:
        if name == _MODEL and (place / name / MANIFEST).is_file():
            shutil.rmtree(place / name)
        elif (place / name).is_file():
            (place / name).unlink()
