"""Hashes of models and rows, so that a certificate says which ones it is about.

Hashing only ever *reads* an object's state; nothing is loaded or executed. The hash depends on values alone: not on memory
layout, on which parts are shared, or on counters that predicting moves, so that a model keeps its hash when it is saved,
loaded and used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from surelearn.seeds import is_secret

UNHASHED = "unhashed"


class _UnhashableError(TypeError):
    """Some part has no state that could be read: a lock, an open file, a generator."""


def fingerprint_model(model: Any) -> str:
    """``sha256:…`` of a model's full state, or "unhashed" for a plain function and for state that cannot be read.

    A function's hash would be its name's, and say nothing about what it does. A learner's ``certificate_`` is left out: it
    names the hash of the model that it is about. So are seeds that must stay secret (`surelearn.seeds`).
    """
    if not (hasattr(model, "predict") or hasattr(model, "transform") or _is_module(model)):
        return UNHASHED
    try:
        digest = hashlib.sha256()
        _feed(digest, model, ())
    except (_UnhashableError, RecursionError):
        return UNHASHED
    return f"sha256:{digest.hexdigest()}"


def fingerprint_rows(X: Any, y: Any) -> str:
    """``sha256:…`` of features and targets, column by column, in their order; pandas, polars, NumPy or sparse."""
    digest = hashlib.sha256()
    for name, values in (*_columns(X), ("target", y)):
        array = np.asarray(values)
        if array.dtype.hasobject or array.dtype.kind in "USTO":
            body = "\x1f".join(map(str, array.tolist())).encode()
        else:
            body = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
        digest.update(f"{name}|{array.dtype.kind}|{array.shape}|{len(body)}\n".encode())
        digest.update(body)
    return f"sha256:{digest.hexdigest()}"


def _columns(X: Any) -> list[tuple[str, Any]]:
    if hasattr(X, "columns"):  # pandas and polars
        return [(str(name), X[name]) for name in X.columns]
    if hasattr(X, "tocsr"):  # SciPy sparse
        rows = X.tocsr()
        return [("data", rows.data), ("indices", rows.indices), ("indptr", rows.indptr), ("shape", rows.shape)]
    return [("X", X)]


def _feed(digest: Any, value: Any, inside: tuple[int, ...]) -> None:
    """Write a value into the digest, with its type, and its parts in an order of their own."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        digest.update(f"{type(value).__name__}:{value!r};".encode())
    elif isinstance(value, np.ndarray):
        _feed_array(digest, value, inside)
    elif _is_torch(value, "Tensor"):
        _feed_tensor(digest, value, inside)
    elif isinstance(value, (np.generic, np.dtype)):
        digest.update(f"{value.dtype.str if isinstance(value, np.generic) else value.str}:{value!r};".encode())
    elif isinstance(value, type):
        digest.update(f"class:{value.__module__}.{value.__qualname__};".encode())
    elif id(value) in inside:  # an object that holds itself
        digest.update(f"above:{len(inside) - inside.index(id(value))};".encode())
    else:
        _feed_parts(digest, value, (*inside, id(value)))


def _feed_parts(digest: Any, value: Any, inside: tuple[int, ...]) -> None:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, Mapping):
        parts = sorted(((repr(key), key, item) for key, item in value.items()), key=lambda part: part[0])
        flat = [part for _, key, item in parts for part in (key, item)]
    elif isinstance(value, (set, frozenset)):
        flat = sorted(value, key=repr)
    elif isinstance(value, (list, tuple)):
        flat = list(value)
    else:
        flat = _state(value)
    digest.update(f"{kind}[{len(flat)}](".encode())
    for part in flat:
        _feed(digest, part, inside)
    digest.update(b")")


def _feed_array(digest: Any, array: np.ndarray, inside: tuple[int, ...]) -> None:
    digest.update(f"array:{array.dtype.str}:{array.shape};".encode())
    if array.dtype.names:  # field by field: the padding between fields holds anything
        for name in array.dtype.names:
            _feed_array(digest, array[name], inside)
    elif array.dtype.hasobject:
        for part in array.ravel().tolist():
            _feed(digest, part, inside)
    else:
        digest.update(np.ascontiguousarray(array).tobytes())


def _feed_tensor(digest: Any, tensor: Any, inside: tuple[int, ...]) -> None:
    """As an array with the tensor's type, wherever it is kept; half precision that NumPy has not is widened."""
    digest.update(f"tensor:{tensor.dtype}:".encode())
    plain = tensor.detach().cpu()
    if plain.is_sparse or plain.is_quantized:
        raise _UnhashableError("a sparse or quantized tensor")
    _feed_array(digest, (plain.float() if str(tensor.dtype) == "torch.bfloat16" else plain).numpy(), inside)


def _is_torch(value: Any, name: str) -> bool:
    """Whether it is a torch tensor, or a module, without importing torch."""
    return any(kind.__name__ == name and kind.__module__.partition(".")[0] == "torch" for kind in type(value).__mro__)


def _is_module(value: Any) -> bool:
    return _is_torch(value, "Module")


def _state(value: Any) -> list[Any]:
    """The parts of an object: its attributes, or what it would be rebuilt from."""
    if hasattr(value, "get_tree_stats"):  # scikit-learn's trees of neighbours count their queries in their state
        return [np.asarray(part) for part in value.get_arrays()]
    if callable(value) and hasattr(value, "__code__"):
        raise _UnhashableError("a function inside a model")
    if _is_module(value):  # weights, buffers, parts and settings; predicting may turn ``training`` off and on
        return [{name: part for name, part in vars(value).items() if name != "training"}]
    if hasattr(value, "__dict__") and type(value).__reduce__ is object.__reduce__:
        state = value.__getstate__()
        if isinstance(state, dict) and "certificate_" in state:
            state = {name: part for name, part in state.items() if name != "certificate_"}
        if isinstance(state, dict) and hasattr(type(value), "secret_parameters"):
            state = {name: None if is_secret(value, name) else part for name, part in state.items()}
        return [state] if state is not None else []
    try:
        made_by, arguments, *state = value.__reduce_ex__(2)[:3]
    except Exception:  # whatever the object raises: it has no state that could be read
        raise _UnhashableError(type(value).__name__) from None
    return [getattr(made_by, "__qualname__", ""), *arguments, *state]
