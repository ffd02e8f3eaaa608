"""Models that surelearn saved, and scikit-learn's in skops' format."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from surelearn import files
from surelearn.documents import MOST_BYTES
from surelearn.persistence.archives import decode_archive
from surelearn.persistence.manifest import MANIFEST
from surelearn.persistence.model_files.columns import SchemaColumns, plain_name
from surelearn.persistence.model_files.model_file import ModelFile, of_estimator
from surelearn.persistence.models import find_model, read_model
from surelearn.subject.torch_modules import is_module

_SAVED = "a model that surelearn saved"


def read_folder(path: Path) -> ModelFile:
    """A folder of `surelearn.save`, or the model in an audit's folder."""
    folder = find_model(path)
    saved = read_model(folder)
    content = files.read(folder / MANIFEST, most=MOST_BYTES)
    name = plain_name(Path(path).resolve().name)
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    if is_module(saved.model):
        from surelearn.persistence.model_files.torch_weights import of_module

        return of_module(saved.model, name, digest)
    if saved.schema is None:
        return of_estimator(saved.model, name, digest, kind=_SAVED)
    reads = SchemaColumns(saved.schema)
    made = of_estimator(saved.model, name, digest, reads, kind=_SAVED)
    return replace(made, notes=reads.notes.lines)


def read_skops(name: str, digest: str, content: bytes) -> ModelFile:
    """A ``.skops`` file, whose types must all be on the fixed list."""
    model = decode_archive(Path(name), content, ())
    return of_estimator(model, name, digest, kind="a model in skops' format")
