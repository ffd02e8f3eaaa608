"""Rows, their weights and step sizes, as the engines of stochastic gradient descent want them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from surelearn.linear.logistic.sgd import Array, CompressedRows

EQUAL = np.empty(0)  # weights of rows that count the same


def sparse_rows(X: Any, dtype: str) -> Any:
    """Compressed sparse rows without duplicates, of the given type; what is given is not
    changed.
    """
    X = sparse.csr_matrix(X) if not sparse.issparse(X) else X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X.astype(dtype, copy=False)


def make_rows(X: Any, codes: Array, classes: int, weights: Array, dtype: str) -> CompressedRows:
    """Rows of a matrix (n, d) whose labels have the numbers ``codes``; 8-byte indices become
    4-byte ones.
    """
    if X.shape[1] >= 2**32 - 1:
        raise ValueError(
            f"X must have fewer than 2³² − 1 features, not {X.shape[1]:,}: hash them to fewer"
        )
    X = sparse_rows(X, dtype)
    indices = (
        X.indices.view(np.uint32) if X.indices.dtype == np.int32 else X.indices.astype(np.uint32)
    )
    targets = np.where(codes == 1, 1.0, -1.0) if classes == 2 else codes.astype(np.int64)
    return CompressedRows(X.data, indices, X.indptr.astype(np.int64), targets, weights)


def take(rows: CompressedRows, chosen: Array) -> CompressedRows:
    """Some of the rows, in the order given."""
    sizes = np.diff(rows.indptr)[chosen]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    where = np.repeat(rows.indptr[:-1][chosen] - indptr[:-1], sizes) + np.arange(indptr[-1])
    weights = rows.weights[chosen] if rows.weights.size else rows.weights
    return CompressedRows(
        rows.data[where], rows.indices[where], indptr, rows.targets[chosen], weights
    )


def held_out_rows(n: int, fraction: float) -> int:
    """How many of n rows are held out."""
    return max(1, round(fraction * n))


def split(
    rows: CompressedRows, fraction: float, generator: np.random.RandomState
) -> tuple[CompressedRows, CompressedRows]:
    """Rows to fit and rows held out, drawn at random; the weights of each have mean 1 again."""
    n = len(rows)
    held_out = held_out_rows(n, fraction)
    if held_out >= n:
        raise ValueError(
            f"validation_fraction={fraction} of {n} rows leaves none to fit: give more rows"
        )
    order = generator.permutation(n)
    fitted = take(rows, np.sort(order[held_out:]))
    if (fitted.targets == fitted.targets[0]).all():
        raise ValueError(
            "the rows left to fit hold one class only: lower validation_fraction or give more rows"
        )
    return _mean_one(fitted), _mean_one(take(rows, np.sort(order[:held_out])))


def _mean_one(rows: CompressedRows) -> CompressedRows:
    if not rows.weights.size:
        return rows
    return CompressedRows(
        rows.data, rows.indices, rows.indptr, rows.targets, rows.weights / rows.weights.mean()
    )


def mean_squared_norm(rows: CompressedRows) -> float:
    """The mean of ‖x‖² over the rows, without padding."""
    return float(np.vdot(rows.data, rows.data)) / len(rows)


def check_norms(X: Any, x_bound: float) -> None:
    """Refuse a matrix, dense or sparse, with a row of norm above ``x_bound``."""
    X = sparse.csr_matrix(X, dtype=np.float64)
    if (found := float(np.sqrt(X.multiply(X).sum(axis=1).max()))) > x_bound * (1 + 1e-12):
        raise ValueError(f"x_bound={x_bound:g} does not hold: a row of X has norm {found:g}")


def step_sizes(
    schedule: str, step: float, decay: float, start: int, count: int, number: int
) -> Array:
    """η of updates start, …, start + count − 1, in pass ``number`` = 0, 1, ….

    Examples
    --------
    >>> step_sizes("inverse", 1.0, 1.0, 0, 3, 0).round(4).tolist()
    [1.0, 0.5, 0.3333]
    >>> step_sizes("steps", 1.0, 0.5, 20, 2, 2).tolist()
    [0.25, 0.25]
    """
    t = np.arange(start, start + count, dtype=np.float64)
    if schedule == "inverse":
        return step / (1 + decay * t)
    if schedule == "sqrt":
        return step / np.sqrt(1 + decay * t)
    return np.full(count, step * decay**number if schedule == "steps" else step)
