"""Which reader a file of a model has, by the end of its name; pickles have none."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path

from surelearn import files
from surelearn.persistence.manifest import MANIFEST
from surelearn.persistence.model_files import foreign_boosters, onnx_session, ours, torch_weights
from surelearn.persistence.model_files.columns import plain_name
from surelearn.persistence.model_files.model_file import ModelFile
from surelearn.persistence.words import first_line, what
from surelearn.unpacking import memory

Reader = Callable[[str, str, bytes], ModelFile]  # of a name, a hash and the content

READERS: dict[str, Reader] = {
    ".skops": ours.read_skops,
    ".onnx": onnx_session.read_onnx,
    ".txt": foreign_boosters.read_lightgbm,
    ".lgb": foreign_boosters.read_lightgbm,
    ".json": foreign_boosters.read_xgboost,
    ".ubj": foreign_boosters.read_xgboost_binary,
    ".cbm": foreign_boosters.read_catboost,
}
_FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_SAVED_AS = (
    "a folder of surelearn.save, .skops, .onnx, LightGBM's .txt, XGBoost's .json or .ubj, CatBoost's"
    " .cbm, or MODULE:FACTORY with --weights FILE.safetensors"
)
_INSTEAD = "save it with surelearn.save, skops or in its library's own format, and name that"
_WEIGHTS_INSTEAD = (
    "save its weights with safetensors.torch.save_file(model.state_dict(), 'weights.safetensors')"
    " and name MODULE:FACTORY with --weights weights.safetensors"
)
_NEVER = ("a pickle", "compressed")  # as `words.what` calls them
_REFUSED = {
    **dict.fromkeys(
        (".pkl", ".pickle", ".joblib", ".dill", ".cloudpickle", ".p", ".sav"), _INSTEAD
    ),
    **dict.fromkeys((".pt", ".pth", ".ckpt", ".bin", ".pt2"), _WEIGHTS_INSTEAD),
    **dict.fromkeys(
        (".h5", ".hdf5", ".keras", ".pb", ".tflite"), "export it to ONNX, and name that"
    ),
}


def read_model_file(source: str | Path, weights: str | Path | None = None) -> ModelFile:
    """A model in a file or folder, or a factory of torch modules with its weights. Nothing that a
    file holds is run.

    Parameters
    ----------
    source : the file or folder, or "package.module:function", which is imported and called
    weights : of the module that the function makes, a safetensors file

    Raises
    ------
    ValueError
        in one sentence: a pickle, a damaged or unknown file, a library that is not installed

    Examples
    --------
    >>> read_model_file("model.pkl")
    Traceback (most recent call last):
    ...
    ValueError: model.pkl is a pickle by its name, which could run code and is never opened: save it with
    surelearn.save, skops or in its library's own format, and name that
    """
    text, path = str(source), Path(source)
    if is_factory(text):
        if weights is None:
            raise ValueError(f"{text} needs --weights FILE.safetensors, the module's weights")
        return torch_weights.read_torch(text, Path(weights))
    if weights is not None:
        raise ValueError(f"--weights goes with MODULE:FACTORY, not with {text}")
    suffix = path.suffix.lower()
    if suffix in _REFUSED and not os.path.isdir(path):
        kind = (
            "is a pickle by its name, which could run code and is never opened"
            if "ONNX" not in _REFUSED[suffix]
            else "is of a format that is not read"
        )
        raise ValueError(f"{text} {kind}: {_REFUSED[suffix]}")
    if not os.path.exists(path):
        raise ValueError(f"{text} does not exist{_near(path)}: name a model, {_SAVED_AS}")
    if os.path.isdir(path) or path.name == MANIFEST:
        return ours.read_folder(path.parent if path.name == MANIFEST else path)
    if suffix == ".safetensors":
        raise ValueError(
            f"{text} holds weights only: name the folder that surelearn.save wrote, or"
            f" MODULE:FACTORY with --weights {text}"
        )
    content = files.read(path, most=memory(), what=text)
    reader = READERS.get(suffix)
    if reader is None:
        raise ValueError(f"{text} is no model that is read: name {_SAVED_AS}")
    kind = what(content)
    if kind.startswith(_NEVER) or (kind.startswith("a zip") and suffix != ".skops"):
        raise ValueError(f"{text} is {kind}: {_INSTEAD}")
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    try:
        return reader(plain_name(path.name), digest, content)
    except ModuleNotFoundError:
        raise
    except ValueError as error:
        said = first_line(error)
        if said.startswith(f"{path.name} "):  # it is named
            raise ValueError(said) from None
        raise ValueError(f"{text} cannot be read as a model: {said}") from None
    except Exception as error:  # whatever damaged content of another shape leads to
        raise ValueError(f"{text} is damaged: {first_line(error)}") from None


def is_model(source: str) -> bool:
    """Whether a word on the command line names a model: by the end of its name, as a factory, or as
    a folder with a model.

    Examples
    --------
    >>> is_model("model.onnx"), is_model("mine:make"), is_model("rows.csv"), is_model("model.pkl")
    (True, True, False, True)
    """
    path = Path(source)
    if os.path.isdir(path):
        return any((folder / MANIFEST).is_file() for folder in (path, path / "model"))
    return path.suffix.lower() in {*READERS, *_REFUSED} or is_factory(source)


def is_factory(source: str | Path) -> bool:
    """Whether it names a function that makes a torch module: "package.module:function"."""
    return _FACTORY.fullmatch(str(source)) is not None and not os.path.exists(source)


def _near(path: Path) -> str:
    """The file of the folder that may have been meant."""
    if not os.path.isdir(path.parent):
        return ""
    names = [entry.name for entry in path.parent.iterdir()]
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.7)
    return f" (did you mean {near[0]!r}?)" if near else ""
