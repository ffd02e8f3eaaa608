"""Columns of live rows as arrays, and labels as text."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt


def one_dimensional(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    """A column as an array; a list keeps its values as they are (NumPy would make a word of a
    NaN among words).
    """
    array = (
        np.asarray(values, dtype=object)
        if isinstance(values, (list, tuple))
        else np.asarray(values)
    )
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, not of shape {array.shape}")
    return array


def missing(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which values are None, NaN, NaT or pandas' NA."""
    if values.dtype.kind in "biuUS":
        return np.zeros(values.shape, dtype=bool)
    import pandas as pd

    return np.asarray(pd.isna(values), dtype=bool)


def word(label: object) -> str:
    """A label as text; 1.0 is "1", because a column of whole numbers becomes float beside a missing
    value.

    Examples
    --------
    >>> word(1), word(1.0), word(1.5), word("1")
    ('1', '1', '1.5', '1')
    """
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def group_hash(label: object) -> bytes:
    """Eight bytes that stand for a group's label."""
    return hashlib.blake2b(word(label).encode("utf-8", "surrogatepass"), digest_size=8).digest()
