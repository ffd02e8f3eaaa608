"""Columns of a data frame as numbers, those of categories as their codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from surelearn.types import AnyArray, Array, RowsLike


@dataclass(frozen=True, eq=False)
class FrameColumn:
    """One column.

    Attributes
    ----------
    numbers : (n,), NaN where a value is missing; a category is its place in ``names``
    names : all categories that the column could hold; None for numbers
    kind : the type that holds it
    """

    numbers: Array
    names: tuple[Any, ...] | None
    kind: type[Any]


def frame_columns(X: RowsLike) -> list[FrameColumn]:
    """The columns of a DataFrame of pandas, numbers and categories."""
    frame: Any = X
    made: list[FrameColumn] = []
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j]
        names = getattr(column.dtype, "categories", None)
        if names is None:
            numbers: AnyArray = column.to_numpy(dtype=np.float64, na_value=np.nan)
            made.append(FrameColumn(numbers, None, column.dtype.type))
            continue
        codes: AnyArray = column.cat.codes.to_numpy()
        made.append(FrameColumn(np.where(codes < 0, np.nan, codes), tuple(names), codes.dtype.type))
    return made


def recoded(column: FrameColumn, known: tuple[Any, ...], other: float) -> Array:
    """The places of categories among those that are known, ``other`` of those that are not.

    Examples
    --------
    >>> recoded(FrameColumn(np.array([0.0, 1.0, np.nan]), ("b", "z"), np.int8), ("a", "b"), -1.0)
    array([ 1., -1., nan])
    """
    place = {name: float(i) for i, name in enumerate(known)}
    places = np.array([place.get(name, other) for name in column.names or ()] + [np.nan])
    return places[np.nan_to_num(column.numbers, nan=-1.0).astype(np.int64)]
