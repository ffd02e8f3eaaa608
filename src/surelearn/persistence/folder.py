"""A folder of texts and a model that is written as a whole: an interrupted run leaves no half
file.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from surelearn.files import absolute
from surelearn.persistence.models import save
from surelearn.types import Model


def write_folder(
    folder: str | Path,
    texts: Mapping[str, str],
    model: Model,
    kept: Mapping[str, Any],
    names: Mapping[str, str],
) -> dict[str, str]:
    """Write texts and a model beside the folder, then rename them into it.

    Parameters
    ----------
    folder : made if it does not exist
    texts : by the names of their files
    model, kept : what `save` is given, for the folder's ``model``
    names : what is called how in the folder; what an earlier run left under one of these names is
        removed

    Returns
    -------
    where what is, or why it is not: a model may have parts that cannot be kept, and the texts stand
    without it
    """
    place = absolute(folder)
    # one name: what a killed run left is taken away by the next one
    beside = place.with_name(f".{place.name}.part")
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
        except ValueError as error:  # a user's own class, perhaps
            unsaved = f"not saved: {error}"
        for name in texts:
            os.replace(beside / name, place / name)
        _clear(place, [name for name in names.values() if name not in written])
    except OSError as error:
        if made:
            with suppress(OSError):
                place.rmdir()
        raise OSError(f"{folder} cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    where = {what: str(Path(folder) / name) for what, name in names.items() if name in written}
    return where | ({"model": unsaved} if unsaved else {})


def _clear(place: Path, names: Sequence[str]) -> None:
    """Remove what an earlier run left: a page or model beside another certificate would mislead."""
    for name in names:
        if name == "model" and (place / name / "manifest.json").is_file():
            shutil.rmtree(place / name)
        elif (place / name).is_file():
            (place / name).unlink()
