"""The types that cross rooms: arrays, rows as people bring them, plain data, and the user's model.

Shapes stand in docstrings, ``X (n, d)``. A function that reads what a user passed takes `RowsLike` or
NumPy's ``ArrayLike``; behind it everything is an array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
# height, width, channels
ImageShape: TypeAlias = tuple[int, int, int]
Bools: TypeAlias = npt.NDArray[np.bool_]
AnyArray: TypeAlias = npt.NDArray[Any]  # of numbers of any width, of words, of objects


class HasShape(Protocol):
    """DataFrames of pandas and polars, sparse matrices, tensors."""

    @property
    def shape(self) -> Any:
        """Rows first."""
        ...


class TableRows(HasShape, Protocol):
    """Rows behind the entrance: a DataFrame, an array or a sparse matrix, never a list."""

    def __len__(self) -> int:
        """How many."""
        ...

    def __getitem__(self, key: Any, /) -> Any:
        """Columns of a DataFrame, rows of the others: `surelearn.subject.refitting.take` takes rows
        of both.
        """
        ...


RowsLike: TypeAlias = npt.ArrayLike | HasShape  # rows as a user brings them
RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None
Model: TypeAlias = Any  # the user's: an estimator of any library, a module, a function of rows
# a class, as a column holds it; None where none is stated
Label: TypeAlias = bool | int | float | str | np.generic | None
Labels: TypeAlias = Sequence[Any] | AnyArray | None  # of all classes, in the order of the scores

# What JSON holds.
Plain: TypeAlias = "bool | int | float | str | Sequence[Plain] | Mapping[str, Plain] | None"
