"""The folder and its manifest."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import platform
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from surelearn import files
from surelearn.documents import MOST_BYTES, check_format, is_altered, parse_json
from surelearn.persistence.words import what, what_file
from surelearn.unpacking import memory
from surelearn.version import __version__

FORMAT = "surelearn-model"
VERSION = 2  # 1 named classes of surelearn by their modules
MANIFEST = "manifest.json"
# those of which a model may hold something
LIBRARIES = frozenset(("torch", "lightgbm", "xgboost", "catboost"))
_VERSIONS_OF = ("numpy", "scikit-learn", "skops", "safetensors")
_DATA = r"model-[0-9a-f]{16}\.(skops|safetensors)"
_DATA_FILE = re.compile(_DATA)
# by an earlier save, or a killed one
_LEFT_BEHIND = re.compile(rf"{_DATA}|\.({_DATA}|{re.escape(MANIFEST)})\.\d+\.part")


def check_folder(path: Path) -> list[Path]:
    """The folders that were made, the innermost first; one that holds something else is refused."""
    refuse_others(path)
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    return made


def refuse_others(path: Path) -> None:
    """Refuse a file, and a folder that holds something else than a model."""
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path} is a file: name a folder for the model")
    if (
        path.is_dir()
        and any(path.iterdir())
        and not left_behind(path)
        and not names_in_manifest(path, FORMAT)
    ):
        raise ValueError(f"{path} holds other files: name a folder of its own for the model")


def left_behind(path: Path) -> set[str]:
    """Names of the files that an earlier save, or a killed one, left."""
    return {entry.name for entry in path.iterdir() if _LEFT_BEHIND.fullmatch(entry.name)}


def names_in_manifest(path: Path, text: str) -> bool:
    """Whether there is a manifest that mentions the text."""
    return (path / MANIFEST).is_file() and text.encode() in (path / MANIFEST).read_bytes()


def tidy(path: Path, name: str, made: Sequence[Path]) -> None:
    """After a save that failed: no data that the manifest does not name, no folder that was not
    there.
    """
    if not names_in_manifest(path, name):  # an interrupt may come when all is written
        (path / name).unlink(missing_ok=True)
    with suppress(OSError):  # one that is not empty
        for folder in made:
            folder.rmdir()


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest, complete and as it was written; else one sentence that says what is wrong."""
    if path.is_file():
        raise ValueError(
            f"{path} is {what_file(path)}: a folder written by surelearn.save is needed"
        )
    if not path.is_dir():
        raise ValueError(f"{path} does not exist: name a folder written by surelearn.save")
    try:
        content = files.read(path / MANIFEST, most=MOST_BYTES)
    except OSError:
        raise ValueError(
            f"{path} has no {MANIFEST} that can be read: it is not a folder written by"
            " surelearn.save"
        ) from None
    try:
        manifest = parse_json(content, str(path / MANIFEST))
    except ValueError:
        if content.lstrip()[:1] in (b"{", b"["):
            raise
        raise ValueError(f"{path / MANIFEST} is {what(content)}, not JSON") from None
    try:
        check_format(manifest, "a manifest", FORMAT, VERSION)
    except ValueError as error:
        raise ValueError(f"{path / MANIFEST}: {error}") from None
    try:
        intact = "hash" in manifest and not is_altered(manifest)
    except (ValueError, RecursionError):  # NaN, or nested too deeply
        intact = False
    if not intact:
        raise ValueError(
            f"{path / MANIFEST} was changed after it was written: its hash is not that of its"
            " content"
        )
    needed = (
        "class",
        "parameters",
        "fingerprint",
        "versions",
        "files",
        "columns",
        "reference",
        "certificate",
    )
    if missing := [name for name in needed if name not in manifest]:
        raise ValueError(f"{path / MANIFEST} is incomplete: it has no {missing[0]!r}")
    if not isinstance(manifest["class"], str) or not isinstance(manifest["versions"], dict):
        raise ValueError(
            f"{path / MANIFEST} is damaged: class must be a name, and versions must be named"
        )
    return manifest


def read_data(path: Path, manifest: Mapping[str, Any]) -> tuple[str, bytes]:
    """Name and content of the one data file, checked against the manifest."""
    listed = manifest["files"]
    if not isinstance(listed, dict) or len(listed) != 1:
        raise ValueError(f"{path / MANIFEST} must name one file")
    name, facts = next(iter(listed.items()))
    if not _DATA_FILE.fullmatch(name):
        raise ValueError(f"{path / MANIFEST} names {name!r}, which is not a file of this folder")
    file = path / name
    if file.is_symlink() or not file.is_file():
        raise ValueError(f"{file} is missing, or is not a plain file")
    content = files.read(file, most=memory())
    if not isinstance(facts, dict) or hashlib.sha256(content).hexdigest() != facts.get("sha256"):
        raise ValueError(f"{file} was changed after it was written: its hash is not the manifest's")
    return name, content


def versions(libraries: Collection[str] = ()) -> dict[str, str | None]:
    """Of this surelearn, Python and the libraries that a saved model depends on, with the
    ``libraries`` that it holds.
    """
    found = {name: importlib.metadata.version(name) for name in _VERSIONS_OF}
    found |= {name: _version_of(name) for name in sorted(libraries)}
    return {"surelearn": __version__, "python": platform.python_version(), **found}


def _version_of(library: str) -> str | None:
    """As the module says, whatever package it came in (xgboost or xgboost-cpu); None where it
    is not installed.
    """
    try:
        return str(importlib.import_module(library).__version__)
    except ModuleNotFoundError:
        return None
