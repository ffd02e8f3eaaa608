"""Rows of a table for a model, what their columns are called, and the model fitted again on them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from surelearn.types import Model, RowsLike


def fit_quietly(model: Model, X: RowsLike, y: npt.ArrayLike) -> Model:
    """A fitted copy. One that does not converge is still a candidate: its error says what it is
    worth.
    """
    from sklearn.base import clone  # pyright: ignore - it has no types

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cast("Callable[[Model], Model]", clone)(model).fit(X, y)


def take(X: RowsLike, rows: npt.ArrayLike | slice) -> Any:
    """Rows of a DataFrame, an array or a sparse matrix, at positions or where a mask is True."""
    table: Any = X
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def take_for(
    model: Model, X: RowsLike, rows: npt.ArrayLike, fitted: npt.ArrayLike | None = None
) -> Any:
    """Rows for a model; of a kernel matrix (scikit-learn's tag ``pairwise``) with the columns of
    the rows it is fitted on.

    Those are ``fitted``, or ``rows`` themselves.
    """
    return columns_for(model, take(X, rows), rows if fitted is None else fitted)


def columns_for(model: Model, X: RowsLike, fitted: npt.ArrayLike) -> Any:
    """Rows for a model that is fitted on some of the rows that the columns of a kernel matrix
    stand for.
    """
    if not is_pairwise(model):
        return X
    matrix: Any = X
    if np.max(fitted, initial=-1) >= matrix.shape[1]:
        raise ValueError(
            "a kernel matrix has columns for the rows fitted on alone, not for others that a refit"
            " would take"
        )
    return matrix.iloc[:, fitted] if hasattr(matrix, "iloc") else matrix[:, fitted]


def is_pairwise(model: Model) -> bool:
    """Whether a model takes a kernel matrix for rows."""
    from sklearn.utils import get_tags  # pyright: ignore - it has no types

    tags = cast("Callable[[Model], Any]", get_tags)
    return hasattr(model, "__sklearn_tags__") and bool(tags(model).input_tags.pairwise)


def column_names(X: RowsLike) -> tuple[str, ...]:
    """Those of a table; x0, x1, … for an array, as scikit-learn calls them."""
    named: Iterable[object] | None = getattr(X, "columns", None)
    if named is not None:
        return tuple(map(str, named))
    return tuple(f"x{j}" for j in range(np.shape(cast("npt.ArrayLike", X))[1]))
