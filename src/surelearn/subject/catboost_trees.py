"""CatBoost's models as sums of trees.

In a symmetric tree all splits of a level are the same, and the number of the leaf that CatBoost says
a row falls into has their answers as its bits: categories, their statistics, borders and missing
values are left to CatBoost. Other trees are read where they split numbers: right if x is above the
border in single precision.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surelearn.lacking import Lacking
from surelearn.subject.trees import Tree, Trees, trees_from
from surelearn.types import AnyArray, Array, Bools, Ints, Model, RowsLike

_DEEPEST = 16  # levels of a symmetric tree


@dataclass(frozen=True, eq=False)
class LeafBits:
    """Splits of symmetric trees by the leaves that a row falls into.

    Attributes
    ----------
    model : that says into which
    tree, level : of each node, (nodes,)
    """

    model: Model
    tree: Ints
    level: Ints

    def coded(self, X: RowsLike) -> AnyArray:
        """The number of each tree's leaf, (rows, trees)."""
        return np.asarray(self.model.calc_leaf_indexes(X, thread_count=1), dtype=np.uint32)

    def goes_left(self, coded: AnyArray, nodes: slice) -> Bools:
        """Whether a row goes left, (rows, nodes): its leaf has no bit of that level."""
        bits = np.left_shift(np.uint32(1), self.level[nodes].astype(np.uint32))
        return (coded[:, self.tree[nodes]] & bits) == 0


def catboost_trees(model: Model, output: str) -> Trees | Lacking:
    """The trees of a fitted classifier (``output`` "score") or regressor ("value")."""
    if not model.is_fitted():
        return Lacking("trees", "it is not fitted")
    found = _document(model)
    if isinstance(found, Lacking):
        return found
    scale = float(found["scale_and_bias"][0])
    if "oblivious_trees" not in found:
        return _free(found, scale, output)
    sources = _sources(found["features_info"])
    return (
        sources
        if isinstance(sources, Lacking)
        else _symmetric(model, found, sources, scale, output)
    )


def _document(model: Model) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        try:
            model.save_model(str(path), format="json")
        except Exception as error:  # CatBoost's own: of features that JSON does not hold
            return Lacking("trees", f"CatBoost writes no JSON of it: {error}")
        return json.loads(path.read_text(encoding="utf-8"))


def _sources(features: Mapping[str, Any]) -> list[tuple[int, ...]] | Lacking:
    """For each possible split, by its number, the columns that it reads: borders of numbers first,
    then single categories, then statistics of categories.
    """
    if features.get("text_features") or features.get("embedding_features"):
        return Lacking("trees", "it reads texts or embeddings, each split several of their columns")
    numbers, words = (features.get(f"{name}_features", []) for name in ("float", "categorical"))
    column = {("float", f["feature_index"]): int(f["flat_feature_index"]) for f in numbers}
    column |= {("cat", f["feature_index"]): int(f["flat_feature_index"]) for f in words}
    found: list[tuple[int, ...]] = []
    for feature in numbers:
        found += [(int(feature["flat_feature_index"]),)] * len(feature.get("borders") or [])
    for feature in words:
        found += [(int(feature["flat_feature_index"]),)] * len(feature.get("values") or [])
    for statistic in features.get("ctrs", []):
        read = {
            column[kind, part[f"{kind}_feature_index"]]
            for part in statistic["elements"]
            for kind in ("float", "cat")
            if f"{kind}_feature_index" in part
        }
        found += [tuple(sorted(read))] * len(statistic["borders"])
    return found


def _symmetric(
    model: Model,
    found: Mapping[str, Any],
    sources: list[tuple[int, ...]],
    scale: float,
    output: str,
) -> Trees | Lacking:
    """Every symmetric tree as a binary one: at level l the splits 2^l − 1 … 2^(l+1) − 2."""
    used = sorted(set(sources)) or [(0,)]
    place = {source: i for i, source in enumerate(used)}
    trees: list[_Symmetric] = []
    for tree in found["oblivious_trees"]:
        levels: list[Mapping[str, Any]] = tree["splits"] or []
        splits = [int(split["split_index"]) for split in levels]
        if len(splits) > _DEEPEST or any(split >= len(sources) for split in splits):
            return Lacking("trees", "it has splits that are not known here")
        values = np.asarray(tree["leaf_values"], dtype=float).reshape(2 ** len(splits), -1)
        trees.append(_binary([place[sources[split]] for split in splits], scale * values))
    if not trees:
        return Lacking("trees", "it has none")
    counts = [len(tree.level) for tree in trees]
    starts = np.cumsum([0, *counts])[:-1].astype(np.int64)
    before = np.repeat(starts, counts)  # (nodes,)
    left, right = (
        np.where((side := np.concatenate(sides)) < 0, -1, side + before)
        for sides in ([tree.left for tree in trees], [tree.right for tree in trees])
    )
    numbers: Ints = np.repeat(np.arange(len(trees)), counts)
    return Trees(
        starts,
        left,
        right,
        np.concatenate([tree.source for tree in trees]),
        tuple(used),
        np.concatenate([tree.value for tree in trees]),
        LeafBits(model, numbers, np.concatenate([tree.level for tree in trees])),
        (output,),
    )


@dataclass(frozen=True, eq=False)
class _Symmetric:
    """A symmetric tree's nodes, level after level: children, source, level, value."""

    left: Ints
    right: Ints
    source: Ints
    level: Ints
    value: Array


def _binary(sources: list[int], values: Array) -> _Symmetric:
    """From the sources of each level's split, and the values (2^levels, outputs) of leaves by the
    bits of all splits' answers, the first split's lowest.
    """
    depth = len(sources)
    inner, count = (1 << depth) - 1, (2 << depth) - 1
    nodes, ways = np.arange(count), np.arange(inner + 1)
    levels: Ints = np.repeat(np.arange(depth + 1), 2 ** np.arange(depth + 1))  # (nodes,)
    leaf = nodes >= inner
    # the way to a leaf from the root has the first split's answer highest
    turned: Ints = np.zeros(inner + 1, dtype=np.int64)
    for bit in range(depth):
        turned |= ((ways >> bit) & 1) << (depth - 1 - bit)
    whole = np.zeros((count, values.shape[1]))
    whole[inner:] = values[turned]
    owner: Ints = np.array([*sources, 0], dtype=np.int64)
    return _Symmetric(
        np.where(leaf, -1, 2 * nodes + 1),
        np.where(leaf, -1, 2 * nodes + 2),
        np.where(leaf, 0, owner[levels]),
        np.where(leaf, 0, levels),
        whole,
    )


def _free(found: Mapping[str, Any], scale: float, output: str) -> Trees | Lacking:
    """Trees of any shape, whose splits are borders of numbers."""
    features = found["features_info"]
    numbers = features.get("float_features", [])
    if set(features) - {"float_features"}:
        return Lacking("trees", "its trees are not symmetric, and split more than numbers")
    column = {int(f["feature_index"]): int(f["flat_feature_index"]) for f in numbers}
    right = {int(f["feature_index"]) for f in numbers if f["nan_value_treatment"] == "AsTrue"}
    trees = [_free_tree(tree, column, right, scale) for tree in found["trees"]]
    if not trees:
        return Lacking("trees", "it has none")
    return trees_from(trees, _single, range(1 + max(column.values(), default=0)), (output,))


def _free_tree(
    whole: Mapping[str, Any], column: Mapping[int, int], missing_right: set[int], scale: float
) -> Tree:
    """Nodes in the order in which they are met, parents first."""
    nodes: list[Mapping[str, Any]] = [whole]
    left: list[int] = []
    for node in nodes:  # which grows
        inner = "split" in node
        left.append(len(nodes) if inner else -1)
        nodes += [node["left"], node["right"]] if inner else []
    below: Ints = np.array(left, dtype=np.int64)
    splits: list[Mapping[str, Any]] = [node.get("split", {}) for node in nodes]
    asked = [int(split.get("float_feature_index", -1)) for split in splits]
    leaves = [np.atleast_1d(np.asarray(node.get("value", 0.0), dtype=float)) for node in nodes]
    value = np.zeros((len(nodes), max(len(leaf) for leaf in leaves)))  # (nodes, outputs)
    for row, leaf in zip(value, leaves, strict=True):
        row[:] = leaf
    return Tree(
        below,
        np.where(below < 0, -1, below + 1),
        np.array([column.get(feature, 0) for feature in asked]),
        np.array([float(split.get("border", 0.0)) for split in splits]).astype(np.float32),
        np.array([feature not in missing_right for feature in asked]),
        scale * value,
    )


def _single(X: RowsLike) -> Array:
    """Numbers in single precision."""
    return np.asarray(X).astype(np.float32).astype(np.float64)
