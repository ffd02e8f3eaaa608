"""The trees of a fitted scikit-learn ensemble as one table of nodes, where the explained output is
a sum over them.

Decision trees, forests and extra trees: value or mean probability. Gradient boosting, histogram or
not: value, or the raw score of a class, never its probability, which is no sum of trees. What is
read is compared with the model before it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.attribution.closed import mixtures
from surelearn.attribution.outputs import Output
from surelearn.types import Array, Model


@dataclass(frozen=True)
class Nodes:
    """Nodes of all trees, each tree's after the last one's.

    Attributes
    ----------
    roots : where each tree begins
    left, right : where a node's children stand; −1 for a leaf
    feature, threshold : a row goes left if x[feature] ≤ threshold
    missing_left : whether NaN goes left
    value : of a leaf, (nodes, outputs)
    single : compare in single precision, as scikit-learn's own trees do
    """

    roots: npt.NDArray[np.int64]
    left: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]
    feature: npt.NDArray[np.int64]
    threshold: Array
    missing_left: npt.NDArray[np.bool_]
    value: Array
    single: bool

    def prepared(self, X: Any) -> Array:
        """Rows as the trees compare them."""
        X = np.asarray(X)
        return np.ascontiguousarray(
            X.astype(np.float32).astype(np.float64) if self.single else X.astype(np.float64)
        )

    def total(self, X: Any) -> Array:
        """Sum of the leaves that rows fall into, (rows, outputs)."""
        X = self.prepared(X)
        answer, rows = np.zeros((len(X), self.value.shape[1])), np.arange(len(X))
        for root in self.roots:
            at = np.full(len(X), root)
            while (inner := self.left[at] >= 0).any():
                x = X[rows, np.where(inner, self.feature[at], 0)]
                goes_left = np.where(np.isnan(x), self.missing_left[at], x <= self.threshold[at])
                at = np.where(inner, np.where(goes_left, self.left[at], self.right[at]), at)
            answer += self.value[at]
        return answer


def trees_of(output: Output, X: Any, background: Any) -> tuple[Nodes, Any] | None:
    """The trees and the explained column of their values (or one for each row); None if the
    output is no sum of trees.
    """
    if output.model is None or hasattr(X, "columns") or np.asarray(X).dtype.kind not in "fiub":
        return None
    nodes = _read(output)
    if nodes is None:
        return None
    rows = mixtures(np.asarray(X), np.asarray(background))
    said, formed = output(rows), output.sign * nodes.total(rows)
    said = said[:, None] if said.ndim == 1 else said
    if said.shape != formed.shape:
        return None
    rest = said - formed  # a constant: the prior that boosting starts from
    if np.abs(rest - rest[0]).max() > 1e-6 * max(1.0, np.abs(said).max()):
        return None
    return nodes, 0 if output.column is None or formed.shape[1] == 1 else output.column


def _read(output: Output) -> Nodes | None:
    model, kind = output.model, type(output.model).__name__
    if not type(model).__module__.startswith("sklearn."):
        return None
    if hasattr(model, "tree_") and output.kind in ("probability", "value"):
        return _stack([_from_tree(model.tree_, 1.0, 0, None)], single=True)
    if (
        hasattr(model, "_predictors")
        and output.kind in ("score", "value")
        and not _has_categories(model)
    ):
        pieces = [
            _from_nodes(p.nodes, k, len(ps)) for ps in model._predictors for k, p in enumerate(ps)
        ]
        return _stack(pieces, single=False)
    if kind.startswith("GradientBoosting") and output.kind in ("score", "value"):
        outputs, rate = model.estimators_.shape[1], model.learning_rate
        pieces = [
            _from_tree(t.tree_, rate, k, outputs)
            for stage in model.estimators_
            for k, t in enumerate(stage)
        ]
        return _stack(pieces, single=True)
    if (
        kind.startswith(("RandomForest", "ExtraTrees"))
        and hasattr(model, "estimators_")
        and output.kind != "score"
    ):
        return _stack(
            [_from_tree(t.tree_, 1 / len(model.estimators_), 0, None) for t in model.estimators_],
            single=True,
        )
    return None


Piece = tuple[Any, ...]  # left, right, feature, threshold, missing_left, value


def _from_tree(tree: Any, factor: float, column: int, outputs: int | None) -> Piece | None:
    if tree.value.shape[1] != 1:  # several targets
        return None
    value = tree.value[:, 0, :] * factor
    if outputs is not None:
        value = value * np.eye(outputs)[column]
    return (
        tree.children_left,
        tree.children_right,
        tree.feature,
        tree.threshold,
        tree.missing_go_to_left,
        value,
    )


def _from_nodes(nodes: Any, column: int, outputs: int) -> Piece:
    leaf = nodes["is_leaf"].astype(bool)
    left, right = (np.where(leaf, -1, nodes[side].astype(np.int64)) for side in ("left", "right"))
    value = nodes["value"][:, None] * np.eye(outputs)[column]
    return (
        left,
        right,
        nodes["feature_idx"],
        nodes["num_threshold"],
        nodes["missing_go_to_left"],
        value,
    )


def _has_categories(model: Model) -> bool:
    return any(p.nodes["is_categorical"].any() for ps in model._predictors for p in ps)


def _stack(pieces: Sequence[Piece | None], *, single: bool) -> Nodes | None:
    found = [piece for piece in pieces if piece is not None]
    if len(found) < len(pieces) or not pieces:
        return None
    starts = np.cumsum([0] + [len(piece[0]) for piece in found])

    def children(side: int) -> Iterator[Any]:
        for start, piece in zip(starts, found, strict=False):
            yield np.where(piece[side] < 0, -1, piece[side] + start)

    left, right = (np.concatenate(list(children(side))).astype(np.int64) for side in (0, 1))
    feature, threshold, missing, value = (
        np.concatenate([piece[i] for piece in found]) for i in (2, 3, 4, 5)
    )
    return Nodes(
        starts[:-1].astype(np.int64),
        left,
        right,
        feature.astype(np.int64),
        threshold.astype(float),
        missing.astype(bool),
        np.ascontiguousarray(value, dtype=float),
        single,
    )
