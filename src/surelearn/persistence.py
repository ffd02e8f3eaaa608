"""Save and load models without executing code: a folder with a manifest and one file of arrays.

scikit-learn models are kept in skops' format, whose types must all be on a fixed list; surelearn's own as arrays
(safetensors) and JSON, made again by a class from a registry. Pickle is never opened. The manifest is written last and names
the other file by its hash, so that an interrupted save leaves the model that was there before.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import io
import json
import math
import platform
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surelearn import files
from surelearn.certificate import Certificate
from surelearn.data.schema import Schema
from surelearn.fingerprint import UNHASHED, fingerprint_model
from surelearn.plain import content_hash
from surelearn.version import __version__

FORMAT = "surelearn-model"
VERSION = 1
MANIFEST = "manifest.json"

# Types beyond skops' own list that the default candidates are made of; making one runs nothing that a file says. Each with
# the one way in which skops writes it, and the length of its state where compiled code takes that for granted.
TRUSTED: dict[str, tuple[str, int | None]] = {
    "numpy.dtype": ("DTypeNode", None),
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor": ("ObjectNode", None),
    "sklearn.metrics._dist_metrics.EuclideanDistance64": ("ObjectNode", 3),
    "sklearn.neighbors._ball_tree.BallTree": ("ObjectNode", 13),
    "sklearn.neighbors._kd_tree.KDTree": ("ObjectNode", 13),
    "sklearn.tree._tree.Tree": ("TreeNode", None),
}
# surelearn's own estimators: alone they are kept as arrays and JSON, inside a pipeline by skops.
LEARNERS = {
    "surelearn.cluster.kmeans.KMeans",
    "surelearn.linear.logistic.LogisticRegression",
    "surelearn.linear.naive_bayes.NaiveBayes",
    "surelearn.linear.perceptron.Perceptron",
    "surelearn.linear.ridge.LeastSquares",
    "surelearn.linear.ridge.Ridge",
    "surelearn.linear.robust.HuberRegression",
    "surelearn.linear.robust.VariationalRegression",
    "surelearn.linear.robust_lasso.SquareRootLasso",
    "surelearn.linear.svm.SupportVectorMachine",
    "surelearn.selection.preparation.DateParts",
    "surelearn.selection.preparation.HashedWords",
}
TRUSTED |= dict.fromkeys(sorted(LEARNERS), ("ObjectNode", None))
_VERSIONS_OF = ("numpy", "scikit-learn", "skops", "safetensors")
_DATA = r"model-[0-9a-f]{16}\.(skops|safetensors)"
_DATA_FILE = re.compile(_DATA)
_LEFT_BEHIND = re.compile(rf"{_DATA}|\.({_DATA}|{re.escape(MANIFEST)})\.\d+\.part")  # by an earlier save, or a killed one
_NEVER_OPENED = (
    (b"\x80", "a pickle"),
    (b"\x1f\x8b", "compressed, perhaps by joblib"),
    (b"x\x9c", "compressed, perhaps by joblib"),
    (b"x\x5e", "compressed, perhaps by joblib"),
    (b"x\xda", "compressed, perhaps by joblib"),
    (b"BZh", "compressed, perhaps by joblib"),
    (b"\xfd7zXZ", "compressed, perhaps by joblib"),
    (b"PK", "a zip archive, perhaps from torch.save"),
)


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
    model: Any,
    path: str | Path,
    *,
    certificate: Certificate | None = None,
    schema: Schema | None = None,
    reference: Mapping[str, Any] | None = None,
    trusted: Sequence[str] = (),
) -> Path:
    """Save a fitted model into a folder from which `load` reads it without executing code.

    What was written is read back and compared before it takes the place of what was there.

    Parameters
    ----------
    model : a scikit-learn model or pipeline, or a learner of surelearn
    path : the folder; made if it does not exist
    certificate : about this model; a learner's own ``certificate_`` by default
    schema, reference : the columns it reads and a summary of its certify rows, as an audit has them
    trusted : names of further types that you vouch for, such as ``xgboost.sklearn.XGBClassifier``; `load` needs them again

    Raises
    ------
    ValueError
        if the model has parts that cannot be kept without pickle, or the certificate is about another model

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
    certificate = getattr(model, "certificate_", None) if certificate is None else certificate
    fingerprint = _fingerprint(model)
    if fingerprint == UNHASHED:
        raise ValueError("the model holds a function or a part without readable state: it cannot be saved without pickle")
    if certificate is not None and certificate.facts.hashes.get("model") not in (fingerprint, None):
        raise ValueError("the certificate is about another model, or the model was changed since")
    holds, parameters, content = _encode_model(model, trusted)
    digest = hashlib.sha256(content).hexdigest()
    name = f"model-{digest[:16]}.{holds}"
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "class": _class_name(type(model)),
        "parameters": parameters,
        "fingerprint": fingerprint,
        "versions": _versions(),
        "files": {name: {"sha256": digest, "bytes": len(content)}},
        "columns": None if schema is None else schema.to_dict(),
        "reference": reference,
        "certificate": None if certificate is None else certificate.to_dict(),
    }
    text = json.dumps({**manifest, "hash": content_hash(manifest)}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    made = _check_folder(path)
    with files.locked(path / MANIFEST):
        before = _left_behind(path)
        try:
            files.write(path / name, content)
            _decode_model(path, manifest, trusted)  # what is on the disk now
            files.write(path / MANIFEST, text)
        except BaseException:
            _tidy(path, name, made)
            raise
        for old in before - {name}:
            (path / old).unlink(missing_ok=True)
    return path


def load(path: str | Path, *, trusted: Sequence[str] = ()) -> Any:
    """The model that `save` wrote into a folder. Nothing in it is executed; whatever is not as it was written is refused.

    Parameters
    ----------
    path : the folder
    trusted : names of further types that you vouch for

    Raises
    ------
    ValueError
        one sentence that says what is wrong: not a folder of `save`, a changed byte, a type that is not on the list, …
    """
    return read_model(path, trusted=trusted).model


def find_model(path: str | Path) -> Path:
    """The model's folder: ``path`` itself, or the one inside an audit's folder."""
    inside = Path(path) / "model"
    return inside if (inside / MANIFEST).is_file() else Path(path)


def read_model(path: str | Path, *, trusted: Sequence[str] = ()) -> Saved:
    """The model with its certificate and columns; see `load`."""
    path = Path(path)
    manifest = _read_manifest(path)
    model = _decode_model(path, manifest, trusted)
    try:
        certificate = None if manifest["certificate"] is None else Certificate.from_dict(manifest["certificate"])
        schema = None if manifest["columns"] is None else Schema.from_dict(manifest["columns"])
        about = None if certificate is None else certificate.facts.hashes.get("model")
    except Exception as error:  # whatever plain data of another shape leads to
        raise ValueError(f"{path}: {_first_line(error)}") from None
    if about not in (manifest["fingerprint"], None):
        raise ValueError(f"{path}: its certificate is about another model")
    return Saved(model, certificate, schema, manifest["reference"], manifest["versions"])


# -------------------------------------------------------------------------------------------------------------- manifest


def _check_folder(path: Path) -> list[Path]:
    """The folders that were made, the innermost first; one that holds something else is refused."""
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path} is a file: name a folder for the model")
    if path.is_dir() and any(path.iterdir()) and not _left_behind(path) and not _manifest_names(path, FORMAT):
        raise ValueError(f"{path} holds other files: name a folder of its own for the model")
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    return made


def _left_behind(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir() if _LEFT_BEHIND.fullmatch(entry.name)}


def _manifest_names(path: Path, text: str) -> bool:
    return (path / MANIFEST).is_file() and text.encode() in (path / MANIFEST).read_bytes()


def _tidy(path: Path, name: str, made: Sequence[Path]) -> None:
    """After a save that failed: no data that the manifest does not name, no folder that was not there."""
    if not _manifest_names(path, name):  # an interrupt may come when all is written
        (path / name).unlink(missing_ok=True)
    with suppress(OSError):  # one that is not empty
        for folder in made:
            folder.rmdir()


def _read_manifest(path: Path) -> dict[str, Any]:
    if path.is_file():
        raise ValueError(f"{path} is {_what_file(path)}: a folder written by surelearn.save is needed")
    if not path.is_dir():
        raise ValueError(f"{path} does not exist: name a folder written by surelearn.save")
    try:
        if not (path / MANIFEST).is_file():  # a pipe would be waited for
            raise FileNotFoundError
        content = (path / MANIFEST).read_bytes()
    except OSError:
        raise ValueError(
            f"{path} has no {MANIFEST} that can be read: it is not a folder written by surelearn.save"
        ) from None
    try:
        manifest = json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError(f"{path / MANIFEST} is {_what(content)}, not JSON") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(f"{path / MANIFEST} is not a manifest: its format is not {FORMAT!r}")
    version = manifest.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"{path / MANIFEST}: the version must be a positive whole number, not {version!r}")
    if version > VERSION:
        raise ValueError(f"{path} has version {version}, this surelearn reads up to {VERSION}: upgrade surelearn")
    try:
        intact = content_hash(manifest) == manifest.get("hash")
    except (ValueError, RecursionError):  # NaN, or nested too deeply
        intact = False
    if not intact:
        raise ValueError(f"{path / MANIFEST} was changed after it was written: its hash is not that of its content")
    needed = ("class", "parameters", "fingerprint", "versions", "files", "columns", "reference", "certificate")
    if missing := [name for name in needed if name not in manifest]:
        raise ValueError(f"{path / MANIFEST} is incomplete: it has no {missing[0]!r}")
    if not isinstance(manifest["class"], str) or not isinstance(manifest["versions"], dict):
        raise ValueError(f"{path / MANIFEST} is damaged: class must be a name, and versions must be named")
    return manifest


def _what_file(path: Path) -> str:
    with path.open("rb") as file:
        return _what(file.read(16))


def _what(content: bytes) -> str:
    """What a file seems to be that is not ours."""
    for magic, what in _NEVER_OPENED:
        if content.startswith(magic):
            return f"{what}, which could run code and is never opened"
    if content.lstrip()[:1] in (b"{", b"["):
        return "JSON text"
    return "damaged, or something else that is never opened"


def _data(path: Path, manifest: Mapping[str, Any]) -> tuple[str, bytes]:
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
    content = file.read_bytes()
    if not isinstance(facts, dict) or hashlib.sha256(content).hexdigest() != facts.get("sha256"):
        raise ValueError(f"{file} was changed after it was written: its hash is not the manifest's")
    return name, content


def _versions() -> dict[str, str]:
    found = {name: importlib.metadata.version(name) for name in _VERSIONS_OF}
    return {"surelearn": __version__, "python": platform.python_version(), **found}


# ---------------------------------------------------------------------------------------------------------------- models


def _class_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _fingerprint(model: Any) -> str:
    """As `fingerprint_model`; "unhashed" also where a part of the model raises something else than it should."""
    try:
        return fingerprint_model(model)
    except Exception:
        return UNHASHED


def _first_line(error: Exception) -> str:
    return _shown(str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}")


def _shown(text: str) -> str:
    """One line of what a file says, without what would move a terminal's cursor."""
    line = (text.splitlines() or ["?"])[0]
    return "".join(letter if letter.isprintable() else "?" for letter in line[:200])


def _encode_model(model: Any, trusted: Sequence[str]) -> tuple[str, Any, bytes]:
    """How the model is kept ("skops" or "safetensors"), its parameters as JSON, and the bytes."""
    if _class_name(type(model)) in LEARNERS:
        return "safetensors", *_encode_learner(model)
    import skops.io

    try:
        content = skops.io.dumps(model)
        untrusted = _untrusted(content, trusted)
    except Exception as error:  # skops raises whatever a user's own class raises
        raise ValueError(f"the model cannot be saved without pickle: {_first_line(error)}") from None
    if untrusted:
        raise ValueError(
            f"the model holds {untrusted[0]}, which is not on the list of types that are loaded: pass trusted=[...] to "
            "surelearn.save and surelearn.load if you vouch for it"
        )
    return "skops", repr(model), content


def _untrusted(content: bytes, trusted: Sequence[str]) -> list[str]:
    import skops.io

    return sorted(set(skops.io.get_untrusted_types(data=content)) - {*TRUSTED, *trusted})


def _misused(content: bytes) -> list[str]:
    """Trusted types that stand in an archive in another way than skops writes them."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = [json.loads(archive.read("schema.json"))]
    for part in parts:  # which grows by the parts of every part
        parts += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    nodes = [part for part in parts if isinstance(part, dict)]
    numbers = Counter(node.get("__id__") for node in nodes)
    named = [(f"{node.get('__module__')}.{node.get('__class__')}", node) for node in nodes]
    return [name for name, node in named if name in TRUSTED and not _as_written(node, *TRUSTED[name], numbers)]


def _as_written(node: Mapping[str, Any], loader: str, length: int | None, numbers: Mapping[Any, int]) -> bool:
    if node["__loader__"] != loader or length is None:
        return node["__loader__"] == loader
    state = node["content"]  # skops takes the first part of a number for all of this number
    return state["__loader__"] == "TupleNode" and len(state["content"]) == length and numbers[state["__id__"]] == 1


def _decode_model(path: Path, manifest: Mapping[str, Any], trusted: Sequence[str]) -> Any:
    """The model, which must be the one that was saved."""
    name, content = _data(path, manifest)
    if name.endswith(".safetensors"):
        model = _decode_learner(path, manifest, content)
    else:
        model = _decode_skops(path / name, content, trusted)
    if _class_name(type(model)) != manifest["class"]:
        raise ValueError(f"{path} holds a {_class_name(type(model))}, its manifest says {manifest['class']!r}")
    fingerprint = _fingerprint(model)
    if fingerprint == UNHASHED:
        raise ValueError(f"{path} holds no model, or one with parts that surelearn.save never writes")
    if fingerprint != manifest["fingerprint"]:
        now = _versions()
        others = [f"{k} {v} (here {now.get(k)})" for k, v in manifest["versions"].items() if v != now.get(k)]
        if not others:
            raise ValueError(f"{path}: the model is not the one that was saved")
        warnings.warn(
            f"{path} was saved with {', '.join(others)} and reads differently: it may not be the model that was certified",
            stacklevel=4,
        )
    return model


def _decode_skops(file: Path, content: bytes, trusted: Sequence[str]) -> Any:
    import skops.io

    try:
        untrusted = _untrusted(content, trusted)
        misused = _misused(content)
    except Exception as error:  # a damaged or hostile archive
        raise ValueError(f"{file} is {_what(content)} as a model ({_first_line(error)})") from None
    if untrusted:
        raise ValueError(
            f"{file} holds {_shown(untrusted[0])}, which is not on the list of types that are loaded: nothing was"
        )
    if misused:
        raise ValueError(f"{file} holds {misused[0]} in another way than it was written: nothing was loaded")
    try:
        return skops.io.loads(content, trusted=[*TRUSTED, *trusted])
    except Exception as error:
        raise ValueError(f"{file} cannot be loaded: {_first_line(error)}") from None


def _encode_learner(model: Any) -> tuple[Any, bytes]:
    """A learner of ours: parameters and what fitting learned, numbers as arrays, the rest as JSON."""
    from safetensors.numpy import save as to_bytes

    arrays: dict[str, Any] = {}
    plain = {name: _encode(value, name, arrays) for name, value in vars(model).items()}
    return plain, to_bytes(arrays)


def _decode_learner(path: Path, manifest: Mapping[str, Any], content: bytes) -> Any:
    from safetensors.numpy import load as from_bytes

    name = manifest["class"]
    if name not in LEARNERS:
        raise ValueError(f"{path} holds a {name!r}, which is no learner of this surelearn")
    module, _, cls_name = name.rpartition(".")
    cls = getattr(importlib.import_module(module), cls_name)
    try:
        arrays = from_bytes(content)
        model = cls.__new__(cls)
        vars(model).update({key: _decode(value, arrays) for key, value in dict(manifest["parameters"]).items()})
        return model
    except Exception as error:  # whatever plain data of another shape leads to
        raise ValueError(f"{path} is damaged: {_first_line(error)}") from None


def _encode(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    kind = type(value)  # a subclass would come back as its base
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"number": repr(value)}
    if issubclass(kind, np.generic) and not isinstance(value.item(), np.generic):  # a long double has no other form
        return {"scalar": _encode(value.item(), name, arrays), "type": value.dtype.str}
    if kind is np.ndarray and value.dtype.kind in "biuf" and value.dtype.itemsize <= 8 and value.dtype.isnative:
        key = f"{name}.{len(arrays)}"
        arrays[key] = np.asarray(value, order="C")  # safetensors writes the memory as it lies
        return {"array": key}
    if kind is np.ndarray and all(isinstance(item, str) for item in value.ravel().tolist()):
        return {"words": value.ravel().tolist(), "shape": list(value.shape), "type": value.dtype.str}
    if kind in (list, tuple):
        return {kind.__name__: [_encode(item, name, arrays) for item in value]}
    if kind is dict and all(isinstance(key, str) for key in value):
        return {"dict": {key: _encode(item, name, arrays) for key, item in value.items()}}
    if kind is Certificate:
        return {"certificate": value.to_dict()}
    raise ValueError(f"the model's {name} is a {kind.__name__}, which cannot be saved without pickle")


def _decode(value: Any, arrays: Mapping[str, Any]) -> Any:
    if not isinstance(value, dict):
        return value
    kind = next(iter(value))
    if kind == "array":
        return arrays[value["array"]]
    if kind == "scalar":
        return np.dtype(value["type"]).type(_decode(value["scalar"], arrays))
    if kind == "number":
        return float(value["number"])
    if kind == "words":
        return np.array(value["words"], dtype=np.dtype(value["type"])).reshape(value["shape"])
    if kind in ("list", "tuple"):
        items = [_decode(item, arrays) for item in value[kind]]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {key: _decode(item, arrays) for key, item in value["dict"].items()}
    if kind == "certificate":
        return Certificate.from_dict(value["certificate"])
    raise ValueError(f"unknown kind of value {kind!r}")
