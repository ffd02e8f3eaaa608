"""surelearn's own learners as arrays (safetensors) and JSON, made again by a class from a registry."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from surelearn.certificate import Certificate
from surelearn.persistence.modules import ModuleMismatchError, decode_module, encode_module, is_module
from surelearn.persistence.trusted import KERNELS, LEARNERS
from surelearn.persistence.words import first_line
from surelearn.unpacking import check_size

LONGEST_HEADER = 16 * 2**20  # bytes of names and shapes of arrays


def encode_learner(model: Any) -> tuple[Any, bytes]:
    """A learner of ours: parameters and what fitting learned, numbers as arrays, the rest as JSON."""
    from safetensors.numpy import save as to_bytes

    arrays: dict[str, Any] = {}
    plain = {name: _encode(value, name, arrays) for name, value in vars(model).items()}
    return plain, to_bytes(arrays)


def decode_learner(path: Path, manifest: Mapping[str, Any], content: bytes, into: Any = None) -> Any:
    """The learner that `encode_learner` took apart; a module whose layers are not known is ``into`` with its weights."""
    from safetensors.numpy import load as from_bytes

    name = manifest["class"]
    if name not in LEARNERS:
        raise ValueError(f"{path} holds a {name!r}, which is no learner of this surelearn")
    module, _, cls_name = name.rpartition(".")
    cls = getattr(importlib.import_module(module), cls_name)
    parameters = manifest["parameters"]
    if holds_module(parameters):
        _needs_torch(path)
    elif into is not None:
        raise ValueError(f"{path} holds a {cls_name} without a torch module: leave out into=")
    try:
        if (length := int.from_bytes(content[:8], "little")) > min(len(content), LONGEST_HEADER):
            raise ValueError(f"SafetensorError: its header is said to have {length:,} bytes")
        arrays = from_bytes(content)
        model = cls.__new__(cls)
        vars(model).update({key: _decode(value, arrays, into) for key, value in dict(parameters).items()})
        return model
    except ModuleMismatchError as error:
        raise ValueError(f"{path}: {error}") from None
    except Exception as error:  # whatever plain data of another shape leads to
        raise ValueError(f"{path} is damaged: {first_line(error)}") from None


def holds_module(parameters: Any) -> bool:
    """Whether a learner's parameters, as they were encoded, hold a torch module."""
    return isinstance(parameters, dict) and any(isinstance(p, dict) and "module" in p for p in parameters.values())


def _needs_torch(path: Path) -> None:
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"{path} holds a torch module, which needs PyTorch: pip install 'surelearn[torch]'", name="torch"
        ) from None


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
    if is_module(value):
        return {"module": _encode(encode_module(value), name, arrays)}
    if f"{kind.__module__}.{kind.__qualname__}" in KERNELS:
        return {"kernel": value.name, "parameters": _encode(value.parameters(), name, arrays)}
    raise ValueError(f"the model's {name} is a {kind.__name__}, which cannot be saved without pickle")


def _decode(value: Any, arrays: Mapping[str, Any], into: Any = None) -> Any:
    if not isinstance(value, dict):
        return value
    kind = next(iter(value))
    if kind == "array":
        return arrays[value["array"]]
    if kind == "scalar":
        if (dtype := np.dtype(value["type"])).kind not in "biufUO":  # np.void(n) would make n bytes
            raise ValueError(f"no number is of type {dtype}")
        return dtype.type(_decode(value["scalar"], arrays))
    if kind == "number":
        return float(value["number"])
    if kind == "words":
        dtype = np.dtype(value["type"])
        check_size("it", dtype.itemsize * len(value["words"]), sum(map(len, value["words"])))
        return np.array(value["words"], dtype=dtype).reshape(value["shape"])
    if kind in ("list", "tuple"):
        items = [_decode(item, arrays) for item in value[kind]]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {key: _decode(item, arrays) for key, item in value["dict"].items()}
    if kind == "certificate":
        return Certificate.from_dict(value["certificate"])
    if kind == "kernel":
        from surelearn.kernel.functions import kernel

        return kernel(value["kernel"], **_decode(value["parameters"], arrays))
    if kind == "module":
        return decode_module(_decode(value["module"], arrays), into)
    raise ValueError(f"unknown kind of value {kind!r}")
