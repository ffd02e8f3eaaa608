"""LightGBM's models as sums of trees, by its own rules for what is missing.

A number goes left if x ≤ t in double precision. NaN counts as 0 at a split that knows of no missing
values; where zero is missing, so is every |x| ≤ 1e-35. A category goes left if it is in the split's
set; unknown, negative and missing ones go right (LightGBM's tree.h, ``NumericalDecision`` and
``CategoricalDecision``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surelearn.lacking import Lacking
from surelearn.subject.frame_columns import frame_columns, recoded
from surelearn.subject.lightgbm_text import TextTree, read_text
from surelearn.subject.trees import Tree, Trees, trees_from
from surelearn.types import Array, Model, RowsLike

_ZERO = float(np.float32(1e-35))  # no farther from 0 than this is zero
_MISSING_ZERO, _MISSING_NAN = 1, 2


def lightgbm_trees(model: Model, output: str) -> Trees | Lacking:
    """The trees of a fitted classifier (``output`` "score") or regressor ("value")."""
    booster = getattr(model, "_Booster", None)
    if booster is None:
        return Lacking("trees", "it is not fitted")
    try:
        found = read_text(booster.model_to_string().encode())
    except ValueError as wrong:  # a newer format
        return Lacking("trees", str(wrong))
    if any(tree.linear for tree in found.trees):
        return Lacking("trees", "its leaves are linear functions")
    features = int(booster.num_feature())
    averaged = found.averaged and output == "value"  # raw scores are sums, also of random forests
    rounds = len(found.trees) // found.per_round if averaged else 1
    one = np.eye(found.per_round) / rounds  # of each output
    trees = [_tree(tree, one[k % found.per_round], features) for k, tree in enumerate(found.trees)]
    zeros = any((tree.missing == _MISSING_ZERO).any() for tree in found.trees)
    named = booster.pandas_categorical

    def code(X: RowsLike) -> Array:
        rows = _numbers(X, named)
        if not zeros:
            return rows
        return np.hstack([rows, np.where(np.abs(rows) <= _ZERO, np.nan, rows)])

    sources = list(range(features)) * (1 + zeros)
    return trees_from(trees, code, sources, (output,))


def _tree(tree: TextTree, outputs: Array, features: int) -> Tree:
    """Splits first, then leaves; columns in which zero is missing stand after all others."""
    splits, leaves = len(tree.feature), len(tree.leaf_value)
    none = np.zeros(leaves, dtype=np.int64)
    left, right = (
        np.concatenate([np.where(side < 0, splits + ~side, side), none - 1])
        for side in (tree.left, tree.right)
    )
    categorical = tree.categorical
    as_zero = ~categorical & (tree.missing != _MISSING_ZERO) & (tree.missing != _MISSING_NAN)
    missing_left = np.where(as_zero, tree.threshold >= 0.0, tree.default_left) & ~categorical
    zero = ~categorical & (tree.missing == _MISSING_ZERO)
    value = np.zeros((splits + leaves, len(outputs)))
    value[splits:] = tree.leaf_value[:, None] * outputs
    return Tree(
        left,
        right,
        np.concatenate([tree.feature + features * zero, none]),
        np.concatenate([tree.threshold, np.zeros(leaves)]),
        np.concatenate([missing_left, none]),
        value,
        np.concatenate([np.where(categorical, tree.threshold, -1).astype(np.int64), none - 1]),
        np.split(tree.words, tree.edges[1:-1]) if len(tree.words) else (),
    )


def _numbers(X: RowsLike, named: list[list[Any]] | None) -> Array:
    """Rows as LightGBM reads them: whole numbers of an array in single precision, of a data frame
    in what holds them and single precision, categories by their place among those of the fit.
    """
    if not hasattr(X, "columns"):
        given = np.asarray(X)
        kind = given.dtype if given.dtype.kind == "f" else np.float32
        return given.astype(kind).astype(np.float64)
    categories = iter(named or [])
    columns = frame_columns(X)
    numbers = [
        one.numbers
        if one.names is None
        else recoded(one, tuple(next(categories, one.names)), np.nan)
        for one in columns
    ]
    rows = np.column_stack(numbers)  # (n, columns)
    single = np.result_type(np.float32, *(one.kind for one in columns)) == np.float32
    return rows.astype(np.float32).astype(np.float64) if single else rows
