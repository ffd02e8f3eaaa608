"""NumPy archives: arrays by name, one of them the rows, the others columns beside them. Always whole,
and never a pickle.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from surelearn.claim import Finding
from surelearn.data.columns import DataError, Values, listed
from surelearn.data.frames import plain
from surelearn.data.opening import too_much
from surelearn.data.pixels import check_shape, pixel_names, shape_of
from surelearn.data.raw import Raw, check_width

_PARTS = ("train", "val", "valid", "validation", "test")  # in this order
_ROWS = ("X", "x", "images", "data")  # names of the array of rows, where there are several
_TARGETS = ("y", "labels", "label", "targets", "target")
_DAMAGE = (
    ValueError, OSError, EOFError, KeyError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def read_npz(path: Path, content: bytes, labelled: bool, joined: bool = True) -> Raw:
    """The arrays of an npz as a table.

    The array of rows (n, …) becomes columns "feature 1", …; images (n, height, width[, channels])
    become pixels, and the table knows their shape. Other arrays of n values are columns with their
    names. Arrays called x_train and x_test, or train_images and test_images, are joined.

    Parameters
    ----------
    labelled : whether a target must be there
    joined : False reads as up to 0.2: X and y, or x_train and y_train alone, and images as flat rows
    """
    name = path.name
    arrays = _arrays(name, content)
    if not joined:
        return _as_before(name, path, arrays, labelled)
    parted = _joined(name, arrays)
    rows = _rows(name, parted, labelled)
    X, target = parted[rows], next((label for label in _TARGETS if label in parted), None)
    _check_arrays(name, rows, X, target, None if target is None else parted[target])
    shape = shape_of(X) if X.ndim in (3, 4) else None
    columns, unread = {}, []
    for label, values in parted.items():
        if label == rows:
            continue
        if values.ndim and values.size == len(values) == len(X) and values.dtype.kind in "biufUM":
            columns[label] = values.reshape(-1)
        else:
            unread.append(label)
    return _raw(name, path, _Read(X, columns, shape, target, unread, [*columns, rows]))


@dataclass(frozen=True, eq=False)
class _Read:
    """Rows, the columns beside them, and what was not read."""

    X: Values
    columns: Mapping[str, Values]
    shape: tuple[int, int, int] | None
    target: str | None
    unread: list[str]
    read: list[str]


def _arrays(name: str, content: bytes) -> dict[str, Values]:
    """Every array by name."""
    try:
        too_much(
            name,
            sum(member.file_size for member in zipfile.ZipFile(io.BytesIO(content)).infolist()),
            len(content),
        )
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return {key: np.asarray(arrays[key]) for key in arrays}
    except _DAMAGE as error:
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


def _joined(name: str, arrays: Mapping[str, Values]) -> dict[str, Values]:
    """Arrays whose names say that they are parts of one, joined under what their names share."""
    parts: dict[str, dict[str, Values]] = {}
    for label, values in arrays.items():
        stem, part = _stem(label)
        if stem in arrays:  # x beside x_train: each is what its name says
            stem, part = label, ""
        parts.setdefault(stem, {})[part] = values
    made: dict[str, Values] = {}
    for stem, found in parts.items():
        ordered = [found[part] for part in ("", *_PARTS) if part in found]
        first = ordered[0]
        if len(ordered) > 1 and any(o.ndim == 0 or o.shape[1:] != first.shape[1:] for o in ordered):
            shapes = ", ".join(str(one.shape) for one in ordered)
            raise DataError(
                f"{name}: the parts of {stem!r} ({', '.join(found)}) have the shapes {shapes}: they"
                " can only be joined if they differ in their number of rows alone."
            )
        made[stem] = first if len(ordered) == 1 else np.concatenate(ordered)
    return made


def _stem(label: str) -> tuple[str, str]:
    """What parts of an array share in their names, and which part one is.

    Examples
    --------
    >>> _stem("x_train"), _stem("test_images"), _stem("latest")
    (('x', 'train'), ('images', 'test'), ('latest', ''))
    """
    head, _, tail = label.rpartition("_")
    if head and tail.lower() in _PARTS:
        return head, tail.lower()
    head, _, tail = label.partition("_")
    return (tail, head.lower()) if tail and head.lower() in _PARTS else (label, "")


def _rows(name: str, arrays: Mapping[str, Values], labelled: bool) -> str:
    """The name of the array of rows."""
    wide = [label for label, values in arrays.items() if values.size != len(np.atleast_1d(values))]
    found = next((label for label in _ROWS if label in arrays), None)
    if found is None:
        wide = [label for label in wide if label not in _TARGETS]
        found = wide[0] if len(wide) == 1 else None
    if found is None or (labelled and len(arrays) < 2):
        raise DataError(
            f"{name} has arrays {listed(list(arrays)) or 'none'}: X and y, or x_train and y_train,"
            " are needed."
        )
    return found


def _as_before(name: str, path: Path, arrays: Mapping[str, Values], labelled: bool) -> Raw:
    pairs = [("X", "y"), ("x", "y"), ("x_train", "y_train"), ("X_train", "y_train")]
    pair = next((pair for pair in pairs if set(pair) <= set(arrays)), None)
    if pair is None and not labelled and [*arrays][:1] in (["X"], ["x"]):
        pair = (next(iter(arrays)), None)
    if pair is None:
        raise DataError(
            f"{name} has arrays {listed(list(arrays)) or 'none'}: X and y, or x_train and y_train,"
            " are needed."
        )
    X, y = arrays[pair[0]], None if pair[1] is None else arrays[pair[1]]
    _check_arrays(name, "X", X, "y", y)
    columns = {} if y is None else {"y": y.reshape(-1)}
    unread = [other for other in arrays if other not in pair]
    return _raw(name, path, _Read(X, columns, None, "y", unread, list(filter(None, pair))))


def _raw(name: str, path: Path, read: _Read) -> Raw:
    width = read.X.size // len(read.X)
    if read.shape is None:
        check_width(name, width)
    else:
        check_shape(name, read.shape)
    names = (
        [f"feature {i}" for i in range(1, width + 1)]
        if read.shape is None
        else pixel_names(read.shape)
    )
    if twice := sorted({*names} & {*read.columns}):
        raise DataError(f"{name} has an array {twice[0]!r}, as a column is called: rename it.")
    frame = pd.DataFrame(read.X.reshape(len(read.X), -1), columns=names)
    frame = pd.concat([frame, pd.DataFrame(dict(read.columns), index=frame.index)], axis=1)
    findings = []
    if read.unread:
        text = f"Arrays {listed(read.unread)} were not read, only {listed(read.read)}."
        numbers = {"arrays": read.unread}
        findings.append(Finding(code="SL115", text=text, severity="info", numbers=numbers))
    return Raw(
        name,
        path,
        plain(frame, name),
        target=read.target,
        findings=tuple(findings),
        images=read.shape,
    )


def _check_arrays(name: str, rows: str, X: Values, target: str | None, y: Values | None) -> None:
    for label, array in ((rows, X), (target, y)):
        if array is not None and (array.dtype.kind not in "biufU" or array.ndim == 0):
            raise DataError(
                f"{name}, array {label} is {array.dtype} of shape {array.shape}: numbers in rows"
                " are needed."
            )
    if y is not None and (y.size != len(y) or len(X) != len(y)):
        raise DataError(
            f"{name} has {rows} of shape {X.shape} and {target} of shape {y.shape}: one target per"
            " row is needed."
        )
    if X.size == 0:
        raise DataError(
            f"{name} is empty: its array {rows} has shape {X.shape}; rows and columns are needed."
        )
    if X.ndim in (3, 4):
        _check_pixels(name, rows, X)


def _check_pixels(name: str, rows: str, X: Values) -> None:
    if X.dtype.kind == "U":
        raise DataError(f"{name}, array {rows} holds words of shape {X.shape}: images are numbers.")
    if X.dtype.kind == "f" and not np.isfinite(X).all():
        lost = int((~np.isfinite(X)).reshape(len(X), -1).any(axis=1).sum())
        raise DataError(
            f"{name}, array {rows}: {lost:,} of {len(X):,} images hold NaN or infinity: leave them"
            " out, or fill in their pixels."
        )
