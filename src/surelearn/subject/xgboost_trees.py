"""XGBoost's models as sums of trees, by its own rules for what is missing.

A number goes left if x < t in single precision. A category goes right if it is in the split's set,
other and negative ones left. NaN, and what ``missing=`` names, goes the way that the split says
(XGBoost's predict_fn.h and categorical.h).
"""

from __future__ import annotations

from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from surelearn.lacking import Lacking
from surelearn.subject.frame_columns import frame_columns, recoded
from surelearn.subject.trees import Tree, Trees, bits_of, trees_from
from surelearn.subject.xgboost_json import JSONTree, ModelJSON, read_json
from surelearn.types import Array, Model, RowsLike

_Rows = npt.NDArray[np.float32] | Lacking
_ROUNDING = 1e-5  # it adds leaves up in single precision


def xgboost_trees(model: Model, output: str) -> Trees | Lacking:
    """The trees of a fitted classifier (``output`` "score") or regressor ("value")."""
    if not model.__sklearn_is_fitted__():
        return Lacking("trees", "it is not fitted")
    booster = model.get_booster()
    try:
        found = read_json(bytes(booster.save_raw("json")))
    except ValueError as wrong:  # several outputs at once, or a newer format
        return Lacking("trees", str(wrong))
    last = _last_round(model, found)
    one = np.eye(found.outputs)
    trees = [
        _tree(tree, weight * one[k])
        for tree, weight, k in zip(found.trees, found.weights, found.output, strict=True)
    ][:last]
    if not trees:
        return Lacking("trees", "it has none")
    missing = np.float32(np.nan if model.missing is None else model.missing)

    def code(X: RowsLike) -> Array | Lacking:
        rows = _numbers(X, found.names)
        if isinstance(rows, Lacking):
            return rows
        rows = np.where(rows == missing, np.float32(np.nan), rows)
        return rows.astype(np.float64)

    columns = range(found.features)
    return trees_from(trees, code, columns, (output,), inside_left=False, precision=_ROUNDING)


def _last_round(model: Model, found: ModelJSON) -> int:
    """How many trees its predictions are the sum of: those up to the best round, if it stopped
    early.
    """
    best = model.get_booster().attr("best_iteration")
    rounds = len(found.rounds) - 1
    return int(found.rounds[rounds if best is None else min(int(best) + 1, rounds)])


def _tree(tree: JSONTree, outputs: Array) -> Tree:
    condition = tree.condition.astype(np.float32)
    leaf = tree.left < 0
    chosen = np.full(len(leaf), -1)
    chosen[list(tree.sets)] = np.arange(len(tree.sets))  # (nodes,)
    return Tree(
        tree.left,
        tree.right,
        tree.feature,
        # x < t of single precision is x ≤ the number before t
        np.nextafter(condition, np.float32(-np.inf)),
        tree.default_left,
        np.where(leaf, condition, 0.0)[:, None] * outputs,  # (nodes, outputs)
        chosen,
        [bits_of(members) for members in tree.sets.values()],
    )


def _numbers(X: RowsLike, names: tuple[tuple[str | int | float, ...] | None, ...]) -> _Rows:
    """Rows in single precision, categories of a data frame by their place among those of the
    fit. XGBoost 3.2 refuses a name that was not there or takes it for the first, by its spelling.
    """
    if not hasattr(X, "columns"):
        return np.asarray(X).astype(np.float32)
    made: list[Array] = []
    for column, known in zip_longest(frame_columns(X), names):
        if column is None or column.names is None:
            made += [] if column is None else [column.numbers]
            continue
        made.append(recoded(column, known or column.names, -1.0))
        if (made[-1] < 0).any():
            return Lacking("trees", "a category was not there when it was fitted")
    return np.column_stack(made).astype(np.float32)  # (n, columns)
