"""`save` and `load`."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surelearn import files
from surelearn.certificate import Certificate
from surelearn.data.schema import Schema
from surelearn.documents import sealed
from surelearn.fingerprint import UNHASHED, fingerprint_model, is_fingerprint_of
from surelearn.keys import EARLIER, key_of, path_of
from surelearn.persistence.archives import decode_archive, encode_archive
from surelearn.persistence.learners import (
    decode_learner,
    encode_learner,
    is_taken_apart,
    libraries_of,
)
from surelearn.persistence.manifest import (
    FORMAT,
    LIBRARIES,
    MANIFEST,
    VERSION,
    check_folder,
    left_behind,
    read_data,
    read_manifest,
    tidy,
    versions,
)
from surelearn.persistence.words import first_line
from surelearn.seeds import without_secrets
from surelearn.types import Model

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, eq=False)
class Saved:
    """What a model's folder holds.

    Attributes
    ----------
    model : the model, fitted
    certificate : what is guaranteed about it, or None
    schema : the columns it reads, or None for a model of arrays
    reference : a summary of the certify rows, to compare new rows with; plain data, or None
    versions : of the libraries it was saved with
    """

    model: Any
    certificate: Certificate | None
    schema: Schema | None
    reference: Mapping[str, Any] | None
    versions: Mapping[str, str]


def save(
    model: Model,
    path: str | Path,
    *,
    certificate: Certificate | None = None,
    schema: Schema | None = None,
    reference: Mapping[str, Any] | None = None,
    trusted: Sequence[str] = (),
    factory: str | None = None,
) -> Path:
    """Save a fitted model into a folder from which `load` reads it without executing code.

    What was written is read back and compared before it takes the place of what was there. The seed
    of a private model's noise (its ``random_state``) is not saved: who has it can take the noise
    away.

    Parameters
    ----------
    model : a scikit-learn model or pipeline, a learner of surelearn, a torch module, or a
        classifier or regressor of LightGBM, XGBoost or CatBoost, which is kept in its library's own
        format. Modules, alone and inside others, are kept layer by layer where their layers are on
        a list (`persistence.modules.LAYERS`), else `load` is given one like it
    path : the folder; made if it does not exist
    certificate : about this model; a learner's own ``certificate_`` by default
    schema, reference : the columns it reads and a summary of its certify rows, as an audit has them
    trusted : names of further types that you vouch for, such as ``mine.models.Classifier``; `load`
        needs them again
    factory : "package.module:function", which makes a torch module like the model's, of a class of
        your own. It is written down for who loads the model, ``load(path, into=function())``, and
        never imported

    Raises
    ------
    ValueError
        if the model has parts that cannot be kept without pickle, or the certificate is about
        another model

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load(save(model, f"{folder}/model")).predict([[0.9]])
    array([1])
    """
    path = Path(path)
    if factory is not None and not re.fullmatch(r"[\w.]+:[\w.]+", factory):
        raise ValueError(
            f"factory must be of the form package.module:function, not {factory!r:.80}"
        )
    certificate = getattr(model, "certificate_", None) if certificate is None else certificate
    fingerprint = _fingerprint(model)
    if fingerprint == UNHASHED:
        raise ValueError(
            "the model holds a function or a part without readable state: it cannot be saved"
            " without pickle"
        )
    if certificate is not None and certificate.facts.hashes.get("model") not in (fingerprint, None):
        raise ValueError("the certificate is about another model, or the model was changed since")
    model = without_secrets(model)
    if is_taken_apart(model):
        encoded = encode_learner(model, trusted)
        holds, parameters, content, foreign = (
            "safetensors",
            encoded.parameters,
            encoded.content,
            encoded.foreign,
        )
        libraries = libraries_of(parameters, whole=key_of(type(model)) is None)
    else:
        holds, parameters, content, foreign = (
            "skops",
            repr(model),
            encode_archive(model, trusted),
            [],
        )
        libraries = set()
    if factory is not None and "torch" not in libraries:
        raise ValueError("factory= is for models with a torch module: leave it out")
    digest = hashlib.sha256(content).hexdigest()
    name = f"model-{digest[:16]}.{holds}"
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "class": _class_name(type(model)),
        "parameters": parameters,
        "fingerprint": fingerprint,
        "versions": versions(libraries),
        "files": {name: {"sha256": digest, "bytes": len(content)}},
        "columns": None if schema is None else schema.to_dict(),
        "reference": reference,
        "certificate": None if certificate is None else certificate.to_dict(),
        **({} if factory is None else {"factory": factory}),
    }
    text = (
        json.dumps(
            sealed(manifest),
            indent=1,
            ensure_ascii=False,
            allow_nan=False,
        )
        + "\n"
    )
    made = check_folder(path)
    with files.locked(path / MANIFEST):
        before = left_behind(path)
        try:
            files.write(path / name, content)
            # what is on the disk now
            _decode_model(path, manifest, trusted, foreign[0] if foreign else None)
            files.write(path / MANIFEST, text)
        except BaseException:
            tidy(path, name, made)
            raise
        for old in before - {name}:
            (path / old).unlink(missing_ok=True)
    return path


def load(path: str | Path, *, trusted: Sequence[str] = (), into: nn.Module | None = None) -> Any:
    """The model that `save` wrote into a folder. Nothing in it is executed; whatever is not as it
    was written is refused.

    Parameters
    ----------
    path : the folder
    trusted : names of further types that you vouch for
    into : a torch module made like the one that was saved, for modules of your own classes; a copy
        takes the weights

    Raises
    ------
    ValueError
        one sentence that says what is wrong: not a folder of `save`, a changed byte, a type that is
        not on the list, …
    """
    return read_model(path, trusted=trusted, into=into).model


def find_model(path: str | Path) -> Path:
    """The model's folder: ``path`` itself, or the one inside an audit's folder."""
    inside = Path(path) / "model"
    return inside if (inside / MANIFEST).is_file() else Path(path)


def read_model(
    path: str | Path, *, trusted: Sequence[str] = (), into: nn.Module | None = None
) -> Saved:
    """The model with its certificate and columns; see `load`."""
    path = Path(path)
    manifest = read_manifest(path)
    model = _decode_model(path, manifest, trusted, into)
    try:
        certificate = (
            None
            if manifest["certificate"] is None
            else Certificate.from_dict(manifest["certificate"])
        )
        schema = None if manifest["columns"] is None else Schema.from_dict(manifest["columns"])
        about = None if certificate is None else certificate.facts.hashes.get("model")
    except Exception as error:  # whatever plain data of another shape leads to
        raise ValueError(f"{path}: {first_line(error)}") from None
    if about not in (manifest["fingerprint"], None):
        raise ValueError(f"{path}: its certificate is about another model")
    return Saved(model, certificate, schema, manifest["reference"], manifest["versions"])


def _class_name(cls: type) -> str:
    return key_of(cls) or path_of(cls)


def _fingerprint(model: Model) -> str:
    """As `fingerprint_model`; "unhashed" also where a part of the model raises something else
    than it should.
    """
    try:
        return fingerprint_model(model)
    except Exception:
        return UNHASHED


def _decode_model(
    path: Path, manifest: Mapping[str, Any], trusted: Sequence[str], into: nn.Module | None
) -> Any:
    """The model, which must be the one that was saved."""
    name, content = read_data(path, manifest)
    if name.endswith(".safetensors"):
        model = decode_learner(path, manifest, content, into, trusted)
    elif into is not None:
        raise ValueError(f"{path} holds a scikit-learn model, not a torch module: leave out into=")
    else:
        model = decode_archive(path / name, content, trusted)
    if _class_name(type(model)) != EARLIER.get(manifest["class"], manifest["class"]):
        raise ValueError(
            f"{path} holds a {_class_name(type(model))}, its manifest says {manifest['class']!r}"
        )
    fingerprint = _fingerprint(model)
    if fingerprint == UNHASHED:
        raise ValueError(
            f"{path} holds no model, or one with parts that surelearn.save never writes"
        )
    if fingerprint != manifest["fingerprint"] and not is_fingerprint_of(
        model, manifest["fingerprint"]
    ):
        now = versions(LIBRARIES & manifest["versions"].keys())
        others = [
            f"{k} {v} (here {now.get(k)})"
            for k, v in manifest["versions"].items()
            if v != now.get(k)
        ]
        if not others:
            raise ValueError(f"{path}: the model is not the one that was saved")
        warnings.warn(
            f"{path} was saved with {', '.join(others)} and reads differently: it may not be the"
            " model that was certified",
            stacklevel=4,
        )
    return model
