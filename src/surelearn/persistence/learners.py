"""surelearn's own learners, torch modules and boosters, as arrays (safetensors) and JSON.

A learner is made again by the class with its key, a scikit-learn model inside it as everywhere
(`persistence.archives`), a booster from its library's own format (`persistence.boosters`).
"""

from __future__ import annotations

import importlib
import math
from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surelearn.certificate import Certificate
from surelearn.earlier import EarlierNames
from surelearn.keys import EARLIER, find_class, key_of, path_of
from surelearn.lacking import Lacking
from surelearn.persistence.archives import decode_archive, encode_archive
from surelearn.persistence.boosters import Native, kind_of, put_together, take_apart
from surelearn.persistence.modules import ModuleMismatchError, decode_module, encode_module
from surelearn.persistence.words import first_line, shown
from surelearn.subject import state_of
from surelearn.subject.torch_modules import is_module
from surelearn.types import Model, Plain
from surelearn.unpacking import check_size

if TYPE_CHECKING:
    from torch import nn

LONGEST_HEADER = 16 * 2**20  # bytes of names and shapes of arrays
# scikit-learn's models around others, which are taken apart where skops does not keep what is
# inside
AROUND = {
    "sklearn.compose._target.TransformedTargetRegressor": (
        "sklearn.compose:TransformedTargetRegressor"
    ),
    "sklearn.frozen._frozen.FrozenEstimator": "sklearn.frozen:FrozenEstimator",
    "sklearn.model_selection._classification_threshold.FixedThresholdClassifier": (
        "sklearn.model_selection:FixedThresholdClassifier"
    ),
    "sklearn.pipeline.Pipeline": "sklearn.pipeline:Pipeline",
}
# extra
_NEEDS = {"torch": "torch", "lightgbm": "boosters", "xgboost": "boosters", "catboost": "boosters"}


class _RefusedPartError(ValueError):
    """A scikit-learn model inside is refused, in a sentence of its own."""


@dataclass(frozen=True)
class Encoded:
    """A model taken apart.

    Attributes
    ----------
    parameters : plain data that names its arrays
    content : the arrays
    foreign : torch modules inside whose layers are not on the list, which whoever loads gives again
    """

    parameters: Any
    content: bytes
    foreign: list[Any]


def is_taken_apart(model: Model) -> bool:
    """Whether it is kept as arrays and JSON: learners of ours, torch modules, boosters, and
    what holds one of these two.
    """
    return key_of(type(model)) is not None or _is_foreign(model) or _is_around_foreign(model)


def encode_learner(model: Model, trusted: Sequence[str] = ()) -> Encoded:
    """Parameters and what fitting learned, numbers as arrays, the rest as JSON."""
    from safetensors.numpy import save as to_bytes

    writing = _Writing(trusted)
    parameters = (
        writing.encode(model, "model") if key_of(type(model)) is None else writing.state(model)
    )
    return Encoded(parameters, to_bytes(writing.arrays), writing.foreign)


def decode_learner(
    path: Path,
    manifest: Mapping[str, Any],
    content: bytes,
    into: nn.Module | None = None,
    trusted: Sequence[str] = (),
) -> Any:
    """The model that `encode_learner` took apart; a module whose layers are not known is
    ``into`` with its weights.
    """
    from safetensors.numpy import load as from_bytes

    name: str = manifest["class"]
    parameters = manifest["parameters"]
    cls = find_class(EARLIER.get(name, name))
    if cls is None and not (isinstance(parameters, dict) and set(parameters) in _WHOLE):
        raise ValueError(f"{path} holds a {name!r}, which is no learner of this surelearn")
    libraries = libraries_of(parameters, whole=cls is None)
    _check_installed(path, libraries)
    if into is not None and "torch" not in libraries:
        raise ValueError(f"{path} holds a {name} without a torch module: leave out into=")
    try:
        if (length := int.from_bytes(content[:8], "little")) > min(len(content), LONGEST_HEADER):
            raise ValueError(f"SafetensorError: its header is said to have {length:,} bytes")
        reading = _Reading(path, from_bytes(content), into, trusted)
        return reading.decode(parameters) if cls is None else reading.made(cls, dict(parameters))
    except _RefusedPartError as error:
        raise ValueError(str(error)) from None
    except ModuleMismatchError as error:
        factory = manifest.get("factory")
        made = f" ({shown(factory)} made it)" if isinstance(factory, str) else ""
        raise ValueError(f"{path}: {error}{made}") from None
    except Exception as error:  # whatever plain data of another shape leads to
        raise ValueError(f"{path} is damaged: {first_line(error)}") from None


# How a model that is no learner of ours is encoded.
_WHOLE = ({"module"}, {"pipeline"}, {"around", "state"}, {"booster", "content", "state"})


def libraries_of(parameters: Plain, *, whole: bool) -> set[str]:
    """The libraries beside scikit-learn that a model's parameters, as they were encoded, need
    (``whole``: a model's).
    """
    if not isinstance(parameters, dict):
        return set()
    return set().union(*map(_libraries, [parameters] if whole else parameters.values()))


def _libraries(value: Any) -> set[str]:
    """Those that a value, as it was encoded, needs."""
    if not isinstance(value, dict) or not value:
        return set()
    kind = next(iter(value))
    inside = value["state"] if "state" in value else value[kind]
    found: set[str] = {"torch"} if kind == "module" else set()
    if kind == "booster" and isinstance(value[kind], str):
        found = {value[kind].partition(".")[0]} & _NEEDS.keys()
    if kind in ("dict", "object", "pipeline", "around", "booster") and isinstance(inside, dict):
        inside = list(inside.values())
    elif kind not in ("list", "tuple") or not isinstance(inside, list):
        return found
    return found.union(*map(_libraries, inside))


def _is_foreign(value: object) -> bool:
    """Whether it is a torch module or a booster, neither of which skops keeps."""
    return is_module(value) or kind_of(value) is not None


def _is_around_foreign(value: object) -> bool:
    """Whether it is a model of scikit-learn around others, with a torch module or a booster
    somewhere inside.
    """
    return path_of(type(value)) in AROUND and _holds_foreign(value, set())


def _holds_foreign(value: object, seen: set[int]) -> bool:
    if _is_foreign(value) or id(value) in seen:
        return _is_foreign(value)
    seen.add(id(value))
    if isinstance(value, list | tuple):
        return any(_holds_foreign(part, seen) for part in value)
    estimator = hasattr(value, "get_params") and hasattr(value, "__dict__")
    return estimator and any(_holds_foreign(part, seen) for part in vars(value).values())


def _check_installed(path: Path, libraries: set[str]) -> None:
    for library in sorted(libraries):
        try:
            importlib.import_module(library)
        except ModuleNotFoundError:
            what = (
                "a torch module, which needs PyTorch"
                if library == "torch"
                else f"a model that needs {library}"
            )
            extra = _NEEDS[library]
            raise ModuleNotFoundError(
                f"{path} holds {what}: pip install 'surelearn[{extra}]'", name=library
            ) from None


class _Writing:
    """Takes a model apart: plain data, and arrays beside them."""

    def __init__(self, trusted: Sequence[str]) -> None:
        self.arrays: dict[str, Any] = {}
        self.foreign: list[Any] = []
        self._trusted = trusted

    def state(self, value: Model) -> dict[str, Any]:
        """The attributes of an object: of a learner, its state."""
        found = state_of(value)
        values = vars(value) if isinstance(found, Lacking) else found.values
        return {name: self.encode(part, name) for name, part in values.items()}

    def encode(self, value: Any, name: str) -> Any:
        """Plain data that `_Reading.decode` makes the value of; ``name`` is the attribute it
        belongs to.
        """
        kind = type(value)  # a subclass would come back as its base
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"number": repr(value)}
        # a long double has no other form
        if issubclass(kind, np.generic) and not isinstance(value.item(), np.generic):
            return {"scalar": self.encode(value.item(), name), "type": value.dtype.str}
        if (
            kind is np.ndarray
            and value.dtype.kind in "biuf"
            and value.dtype.itemsize <= 8
            and value.dtype.isnative
        ):
            return {"array": self._keep(value, name)}
        if kind is np.ndarray and all(isinstance(item, str) for item in value.ravel().tolist()):
            return {
                "words": value.ravel().tolist(),
                "shape": list(value.shape),
                "type": value.dtype.str,
            }
        if kind in (list, tuple):
            return {kind.__name__: [self.encode(item, name) for item in value]}
        if kind is dict and all(type(key) is str for key in value):
            return {"dict": {key: self.encode(item, name) for key, item in value.items()}}
        if kind is dict and all(type(key) is int for key in value):
            return {"pairs": [[key, self.encode(item, name)] for key, item in value.items()]}
        if (named := _mapping_name(value)) is not None:
            return {
                "items": [
                    [self.encode(key, name), self.encode(item, name)] for key, item in value.items()
                ],
                "of": named,
            }
        if kind is Certificate:
            return {"certificate": value.to_dict()}
        return self._part(value, name)

    def _keep(self, array: np.ndarray, name: str) -> str:
        key = f"{name}.{len(self.arrays)}"
        self.arrays[key] = np.asarray(array, order="C")  # safetensors writes the memory as it lies
        return key

    def _part(self, value: Model, name: str) -> Any:
        """A kernel, a module, or a model inside the model."""
        if is_module(value):
            made = encode_module(value)
            self.foreign += [value] if made["layers"] is None else []
            return {"module": self.encode(made, name)}
        key = key_of(type(value))
        if key is not None and _is_kernel(value):
            return {"kernel": value.name, "parameters": self.encode(value.saved(), name)}
        if key is not None:
            return {"object": key, "state": self.state(value)}
        if kind_of(value) is not None:
            native = take_apart(value)
            kept = native.content and self._keep(
                np.frombuffer(native.content, dtype=np.uint8), name
            )
            state = {part: self.encode(item, part) for part, item in native.state.items()}
            return {"booster": native.kind, "content": kept, "state": state}
        if _is_around_foreign(value):
            place = AROUND[path_of(type(value))]
            state = self.state(value)
            return (
                {"pipeline": state}
                if place == "sklearn.pipeline:Pipeline"
                else {"around": place, "state": state}
            )
        if hasattr(value, "get_params") and not isinstance(value, type):
            archive = np.frombuffer(encode_archive(value, self._trusted), dtype=np.uint8)
            return {"archive": self._keep(archive, name)}
        raise ValueError(
            f"the model's {name} is a {type(value).__name__}, which cannot be saved without pickle"
        )


def _mapping_name(value: object) -> str | None:
    """Of a mapping that is not one from texts or whole numbers, and has a form all the same."""
    if type(value) is OrderedDict:
        return "ordered"
    if type(value) is defaultdict and value.default_factory is OrderedDict:
        return "default ordered"
    return (
        "dict"
        if type(value) is dict and all(isinstance(key, np.generic) for key in value)
        else None
    )


def _is_kernel(value: object) -> bool:
    from surelearn.kernel.composites import Kernel

    return isinstance(value, Kernel)


@dataclass(frozen=True)
class _Reading:
    """Makes a model again of plain data and arrays, given a module where one is not made of
    layers of the list.
    """

    path: Path
    arrays: Mapping[str, Any]
    into: Any
    trusted: Sequence[str]

    def made(self, cls: type, state: Mapping[str, Any]) -> Any:
        """An object with its attributes; no method of it is called."""
        model = object.__new__(cls)
        attributes = {key: self.decode(value) for key, value in state.items()}
        vars(model).update(cls.of_file(attributes) if issubclass(cls, EarlierNames) else attributes)
        return model

    def decode(self, value: Any) -> Any:
        """What `_Writing.encode` took apart."""
        if not isinstance(value, dict):
            return value
        kind = next(iter(value))
        if kind == "array":
            return self.arrays[value["array"]]
        if kind == "scalar":
            # np.void(n) would make n bytes
            if (dtype := np.dtype(value["type"])).kind not in "biufUO":
                raise ValueError(f"no number is of type {dtype}")
            return dtype.type(self.decode(value["scalar"]))
        if kind == "number":
            return float(value["number"])
        if kind == "words":
            dtype = np.dtype(value["type"])
            check_size("it", dtype.itemsize * len(value["words"]), sum(map(len, value["words"])))
            return np.array(value["words"], dtype=dtype).reshape(value["shape"])
        if kind in ("list", "tuple"):
            items = [self.decode(item) for item in value[kind]]
            return items if kind == "list" else tuple(items)
        if kind == "dict":
            return {key: self.decode(item) for key, item in value["dict"].items()}
        if kind == "pairs":
            return {int(key): self.decode(item) for key, item in value["pairs"]}
        if kind == "items":
            pairs = [(self.decode(key), self.decode(item)) for key, item in value["items"]]
            made = {"dict": dict, "ordered": OrderedDict}.get(value["of"])
            return defaultdict(OrderedDict, pairs) if made is None else made(pairs)
        if kind == "certificate":
            return Certificate.from_dict(value["certificate"])
        return self._part(kind, value)

    def _part(self, kind: str, value: Mapping[str, Any]) -> Any:
        """A kernel, a module, or a model inside the model."""
        if kind == "kernel":
            from surelearn.kernel.functions import read_kernel

            return read_kernel(value["kernel"], self.decode(value["parameters"]))
        if kind == "module":
            return decode_module(self.decode(value["module"]), self.into)
        if kind == "object":
            if (cls := find_class(value["object"])) is None:
                raise ValueError(f"a {value['object']!r} is nothing that this surelearn makes")
            return self.made(cls, value["state"])
        if kind == "pipeline":
            from sklearn.pipeline import Pipeline

            return self.made(Pipeline, value["pipeline"])
        if kind == "around":
            if value["around"] not in AROUND.values():
                raise ValueError(
                    f"{value['around']!r:.60} is no model around others that is made again"
                )
            module, _, name = value["around"].partition(":")
            return self.made(getattr(importlib.import_module(module), name), value["state"])
        if kind == "booster":
            kept = value["content"] and self.arrays[value["content"]].tobytes()
            state = {name: self.decode(part) for name, part in value["state"].items()}
            return put_together(Native(value["booster"], kept, state))
        if kind == "archive":
            try:
                return decode_archive(
                    self.path, self.arrays[value["archive"]].tobytes(), self.trusted
                )
            except ValueError as error:
                raise _RefusedPartError(str(error)) from None
        raise ValueError(f"unknown kind of value {kind!r}")
