"""Hashes of models and rows, so that a certificate says which ones it is about.

Hashing only ever *writes* an object's state into a digest; nothing is loaded or executed.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

UNHASHED = "unhashed"


def fingerprint_model(model: Any) -> str:
    """``sha256:…`` of a model's full state, or "unhashed" for a plain function and for state that cannot be serialized.

    Two fits with the same result have the same hash, in another process too. A function's hash would be its name's, and say
    nothing about what it does.
    """
    from joblib.hashing import NumpyHasher

    if not hasattr(model, "predict"):
        return UNHASHED
    try:
        return f"sha256:{NumpyHasher(hash_name='sha256').hash(model)}"
    except Exception:  # joblib raises what the object's own state raises
        return UNHASHED


def fingerprint_rows(X: Any, y: Any) -> str:
    """``sha256:…`` of features and targets, column by column, in their order; pandas, polars, NumPy or sparse."""
    digest = hashlib.sha256()
    for name, values in (*_columns(X), ("target", y)):
        array = np.asarray(values)
        if array.dtype.hasobject or array.dtype.kind in "USTO":
            body = "\x1f".join(map(str, array.tolist())).encode()
        else:
            body = np.ascontiguousarray(array).tobytes()
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
