"""NumPy archives with arrays X and y, or x_train and y_train: always whole."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd

from surelearn.claim import Finding
from surelearn.data.columns import DataError, Values, listed
from surelearn.data.frames import plain
from surelearn.data.opening import too_much
from surelearn.data.raw import Raw, check_width


def read_npz(path: Path, content: bytes, labelled: bool) -> Raw:
    """The arrays of an npz as columns "feature 1", … and "y", which may be lacking if not
    ``labelled``.
    """
    name = path.name
    try:
        too_much(
            name,
            sum(member.file_size for member in zipfile.ZipFile(io.BytesIO(content)).infolist()),
            len(content),
        )
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            found = list(arrays)
            pairs = [("X", "y"), ("x", "y"), ("x_train", "y_train"), ("X_train", "y_train")]
            pair = next((pair for pair in pairs if set(pair) <= set(found)), None)
            if pair is None and not labelled and found[:1] in (["X"], ["x"]):
                pair = (found[0], None)
            if pair is None:
                raise DataError(
                    f"{name} has arrays {listed(found) or 'none'}: X and y, or x_train and y_train,"
                    " are needed."
                )
            X = arrays[pair[0]]
            y = np.zeros(len(X)) if pair[1] is None else arrays[pair[1]]
    except (
        ValueError,
        OSError,
        EOFError,
        KeyError,
        RuntimeError,
        MemoryError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        if isinstance(error, DataError):
            raise
        said = (
            "holds Python objects, which are never opened"
            if "Object arrays" in str(error)
            else "is damaged"
        )
        raise DataError(
            f"{name} {said}: save plain numeric arrays X and y with numpy.savez."
        ) from None
    _check_arrays(name, X, y)
    X = X.reshape(len(X), -1)
    check_width(name, X.shape[1])
    frame = pd.DataFrame(X, columns=[f"feature {i}" for i in range(1, X.shape[1] + 1)])
    if pair[1] is not None:
        frame["y"] = y.reshape(-1)
    unread = [other for other in found if other not in pair]
    findings = []
    if unread:
        text = f"Arrays {listed(unread)} were not read, only {listed(pair)}."
        findings.append(
            Finding(code="SL115", text=text, severity="info", numbers={"arrays": unread})
        )
    return Raw(name, path, plain(frame, name), target="y", findings=tuple(findings))


def _check_arrays(name: str, X: Values, y: Values) -> None:
    for label, array in (("X", X), ("y", y)):
        if array.dtype.kind not in "biufU" or array.ndim == 0:
            raise DataError(
                f"{name}, array {label} is {array.dtype} of shape {array.shape}: numbers in rows"
                " are needed."
            )
    if y.size != len(y) or len(X) != len(y):
        raise DataError(
            f"{name} has X of shape {X.shape} and y of shape {y.shape}: one target per row is"
            " needed."
        )
    if X.size == 0:
        raise DataError(
            f"{name} is empty: its array X has shape {X.shape}; rows and columns are needed."
        )
