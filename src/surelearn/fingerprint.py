"""Hashes of models and rows, so that a certificate says which ones it is about.

Hashing only ever *reads* an object's state; nothing is loaded or executed. The hash depends on
values alone: not on memory layout, on which parts are shared, on counters that predicting moves, or
on where a class with a key lives (`surelearn.keys`), so that a model keeps its hash when it is
saved, loaded and used, and when surelearn's files move.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import numpy.typing as npt

from surelearn.earlier import EarlierNames, as_saved
from surelearn.keys import hashed_name
from surelearn.seeds import is_secret
from surelearn.subject.torch_modules import is_module
from surelearn.types import Model, RowsLike

if TYPE_CHECKING:
    import torch

UNHASHED = "unhashed"
_FIXED: ContextVar[dict[int, str | None]] = ContextVar("fixed", default={})  # noqa: B039 - never changed in place


class _UnhashableError(TypeError):
    """Some part has no state that could be read: a lock, an open file, a generator."""


def fingerprint_model(model: Model) -> str:
    """``sha256:…`` of a model's full state, or "unhashed" for a plain function and for state that
    cannot be read.

    A function's hash would be its name's, and say nothing about what it does. A learner's
    ``certificate_`` is left out: it names the hash of the model that it is about. So are seeds that
    must stay secret (`surelearn.seeds`).
    """
    fixed = _FIXED.get()
    if id(model) not in fixed:
        return _fingerprint(model, first=False)
    if (found := fixed[id(model)]) is None:
        found = fixed[id(model)] = _fingerprint(model, first=False)
    return found


@contextmanager
def fixed_models(*models: Any) -> Iterator[None]:
    """For work that leaves these models as they are: each is hashed once, however often its
    hash is asked for.
    """
    token = _FIXED.set({**_FIXED.get(), **{id(model): None for model in models}})
    try:
        yield
    finally:
        _FIXED.reset(token)


def is_fingerprint_of(model: Model, fingerprint: object) -> bool:
    """Whether it is the model's hash, also with the names that classes had when hashes were
    made for the first time.
    """
    if (found := fingerprint_model(model)) == fingerprint or found == UNHASHED:
        return found == fingerprint
    return _fingerprint(model, first=True) == fingerprint


def _fingerprint(model: Model, *, first: bool) -> str:
    if not (
        any(hasattr(model, name) for name in ("predict", "transform", "unit_losses"))
        or is_module(model)
    ):
        return UNHASHED
    digest = _Digest(first)
    try:
        _feed(digest, model, ())
    except (_UnhashableError, RecursionError):
        return UNHASHED
    return f"sha256:{digest.hexdigest()}"


class _Digest:
    """SHA-256 of what is fed, and how classes are named in it."""

    def __init__(self, first: bool) -> None:
        made = hashlib.sha256()
        self.update, self.hexdigest, self.first = made.update, made.hexdigest, first

    def name(self, cls: type) -> str:
        return hashed_name(cls, first=self.first)


def fingerprint_rows(X: RowsLike | None, y: npt.ArrayLike | None) -> str:
    """``sha256:…`` of features and targets (None: of units without), column by column; pandas,
    polars, NumPy or sparse.
    """
    digest = hashlib.sha256()
    for name, values in (*_columns(X), *(() if y is None else (("target", y),))):
        array = _array(values)
        if array.dtype.hasobject or array.dtype.kind in "USTO":
            body = "\x1f".join(map(str, array.tolist())).encode()
        else:
            body = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
        digest.update(f"{name}|{array.dtype.kind}|{array.shape}|{len(body)}\n".encode())
        digest.update(body)
    return f"sha256:{digest.hexdigest()}"


def _array(values: Any) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError:  # a list of sequences of different lengths
        return np.fromiter(values, dtype=object, count=len(values))


def _columns(X: Any) -> list[tuple[str, Any]]:
    if hasattr(X, "columns"):  # pandas and polars
        return [(str(name), X[name]) for name in X.columns]
    if hasattr(X, "tocsr"):  # SciPy sparse
        rows = X.tocsr()
        return [
            ("data", rows.data),
            ("indices", rows.indices),
            ("indptr", rows.indptr),
            ("shape", rows.shape),
        ]
    return [("X", X)]


def _feed(digest: _Digest, value: object, inside: tuple[int, ...]) -> None:
    """Write a value into the digest, with its type, and its parts in an order of their own."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        digest.update(f"{type(value).__name__}:{value!r};".encode())
    elif isinstance(value, np.ndarray):
        _feed_array(digest, value, inside)
    elif _is_tensor(value):
        _feed_tensor(digest, value, inside)
    elif isinstance(value, (np.generic, np.dtype)):
        digest.update(
            f"{value.dtype.str if isinstance(value, np.generic) else value.str}:{value!r};".encode()
        )
    elif isinstance(value, type):
        digest.update(f"class:{digest.name(value)};".encode())
    elif id(value) in inside:  # an object that holds itself
        digest.update(f"above:{len(inside) - inside.index(id(value))};".encode())
    else:
        _feed_parts(digest, value, (*inside, id(value)))


def _feed_parts(digest: _Digest, value: object, inside: tuple[int, ...]) -> None:
    kind = digest.name(type(value))
    if isinstance(value, Mapping):
        parts = sorted(
            ((repr(key), key, item) for key, item in value.items()), key=lambda part: part[0]
        )
        flat = [part for _, key, item in parts for part in (key, item)]
    elif isinstance(value, (set, frozenset)):
        flat = sorted(value, key=repr)
    elif isinstance(value, (list, tuple)):
        flat = list(value)
    else:
        flat = _state(value, first=digest.first)
    digest.update(f"{kind}[{len(flat)}](".encode())
    for part in flat:
        _feed(digest, part, inside)
    digest.update(b")")


def _feed_array(digest: _Digest, array: np.ndarray, inside: tuple[int, ...]) -> None:
    digest.update(f"array:{array.dtype.str}:{array.shape};".encode())
    if array.dtype.names:  # field by field: the padding between fields holds anything
        for name in array.dtype.names:
            _feed_array(digest, array[name], inside)
    elif array.dtype.hasobject:
        for part in array.ravel().tolist():
            _feed(digest, part, inside)
    else:
        digest.update(np.ascontiguousarray(array).tobytes())


def _feed_tensor(digest: _Digest, tensor: torch.Tensor, inside: tuple[int, ...]) -> None:
    """As an array with the tensor's type, wherever it is kept; half precision that NumPy has
    not is widened.
    """
    digest.update(f"tensor:{tensor.dtype}:".encode())
    plain = tensor.detach().cpu()
    if plain.is_sparse or plain.is_quantized:
        raise _UnhashableError("a sparse or quantized tensor")
    _feed_array(
        digest, (plain.float() if str(tensor.dtype) == "torch.bfloat16" else plain).numpy(), inside
    )


def _is_tensor(value: object) -> TypeGuard[torch.Tensor]:
    """Whether it is a torch tensor, or a module, without importing torch."""
    return any(
        kind.__name__ == "Tensor" and kind.__module__.partition(".")[0] == "torch"
        for kind in type(value).__mro__
    )


def _is_of(value: object, library: str) -> bool:
    return type(value).__module__.partition(".")[0] == library


def canonical_cbm(model: Model) -> bytes:
    """A fitted CatBoost model in its binary form, as CatBoost writes it once it has read it:
    its first writing differs.
    """
    again = type(model)()
    again.load_model(blob=bytes(model._serialize_model()), format="cbm")
    return bytes(again._serialize_model())


def _state(value: Any, *, first: bool) -> list[Any]:
    """The parts of an object: its attributes, or what it would be rebuilt from; ``first`` as
    they were read at first.
    """
    # the model, not the threads it runs with
    if not first and _is_of(value, "xgboost") and hasattr(value, "save_raw"):
        return [
            bytes(value.save_raw("json")),
            {name: part for name, part in vars(value).items() if name != "handle"},
        ]
    if (
        not first
        and _is_of(value, "catboost")
        and hasattr(value, "_serialize_model")
        and value.is_fitted()
    ):
        state = value.__getstate__()
        # answers on the rows that stopped it: CatBoost does not read them back
        state.pop("_test_evals", None)
        return [{**state, "__model": canonical_cbm(value)}]
    # scikit-learn's trees of neighbors count their queries in their state
    if hasattr(value, "get_tree_stats"):
        return [np.asarray(part) for part in value.get_arrays()]
    if callable(value) and hasattr(value, "__code__"):
        raise _UnhashableError("a function inside a model")
    # weights, buffers, parts and settings; predicting may turn ``training`` off and on
    if is_module(value):
        return [{name: part for name, part in vars(value).items() if name != "training"}]
    if hasattr(value, "__dict__") and type(value).__reduce__ is object.__reduce__:
        state = value.__getstate__()
        if isinstance(state, dict) and "certificate_" in state:
            state = {name: part for name, part in state.items() if name != "certificate_"}
        if isinstance(state, dict) and isinstance(value, EarlierNames):
            state = as_saved(value, state)
        if isinstance(state, dict) and hasattr(type(value), "secret_parameters"):
            state = {name: None if is_secret(value, name) else part for name, part in state.items()}
        return [state] if state is not None else []
    try:
        made_by, arguments, *state = value.__reduce_ex__(2)[:3]
    except Exception:  # whatever the object raises: it has no state that could be read
        raise _UnhashableError(type(value).__name__) from None
    return [getattr(made_by, "__qualname__", ""), *arguments, *state]
