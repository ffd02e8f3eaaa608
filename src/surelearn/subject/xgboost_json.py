"""XGBoost's JSON, read, and checked before XGBoost reads it: a child or category that does not
exist would end the process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from surelearn.documents import parse_json
from surelearn.types import Array, Bools, Ints, Plain

_ROOT = 2**31 - 1  # the parent of the first node
_MOST_FEATURES = 10_000_000  # XGBoost makes room for every column
_NODES = (
    "base_weights", "default_left", "left_children", "loss_changes", "parents", "right_children", "split_conditions",
    "split_indices", "split_type", "sum_hessian",
)  # fmt: skip
_CATEGORIES = ("categories", "categories_nodes", "categories_segments", "categories_sizes")


@dataclass(frozen=True, eq=False)
class JSONTree:
    """One tree of the text.

    Attributes
    ----------
    left, right : a node's children, (nodes,); −1 for a leaf
    feature : the column that a node splits, (nodes,)
    condition : a split's threshold, a leaf's value, (nodes,), numbers of single precision
    default_left : whether what is missing goes left, (nodes,)
    sets : the categories for which a node goes right, by the node
    """

    left: Ints
    right: Ints
    feature: Ints
    condition: Array
    default_left: Bools
    sets: Mapping[int, Ints]


@dataclass(frozen=True, eq=False)
class ModelJSON:
    """A text that was checked.

    Attributes
    ----------
    features, outputs : how many
    trees : in their order; none for a linear model
    output : to which output each tree adds, (trees,)
    weights : by which it is multiplied, (trees,)
    rounds : where rounds of trees begin, and the end
    names : the categories of each column, in the order of their codes; None of one whose values
        are codes; () where rows have codes alone
    """

    features: int
    outputs: int
    trees: tuple[JSONTree, ...] = ()
    output: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    weights: Array = field(default_factory=lambda: np.zeros(0))
    rounds: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    names: tuple[tuple[str | int | float, ...] | None, ...] = ()


def read_json(content: bytes) -> ModelJSON:
    """A text whose trees are trees; a sentence says what is wrong with another."""
    learner: Mapping[str, Any] = parse_json(content, "XGBoost's text")["learner"]
    facts = {
        name: int(learner["learner_model_param"].get(name, 0))
        for name in ("num_class", "num_feature", "num_target")
    }
    features, outputs = facts["num_feature"], max(1, facts["num_class"], facts["num_target"])
    _check(0 < features <= _MOST_FEATURES, "it has no columns, or too many")
    _check(
        facts["num_class"] >= 0 and facts["num_target"] >= 0,
        "its classes or targets are fewer than none",
    )
    start: Plain = parse_json(learner["learner_model_param"]["base_score"], "its base_score")
    begun = _numbers(start if isinstance(start, Sequence) else [start], "base_score", None)
    _check(len(begun) in (1, outputs), "its base_score")
    for name in ("feature_names", "feature_types"):
        named: Sequence[str] | None = learner.get(name)
        _check(not named or len(named) == features, f"its {name} are not {features}")
    objective: Mapping[str, Plain] = learner["objective"]
    for part in objective.values():
        stated = part.get("num_class") if isinstance(part, Mapping) else None
        _check(
            stated in (None, str(facts["num_class"])), "its objective has another number of classes"
        )
    booster = learner["gradient_booster"]
    _check(booster["name"] in ("gbtree", "dart", "gblinear"), f"it is a {booster['name']!r:.40}")
    if booster["name"] == "gblinear":
        weights = _numbers(booster["model"]["weights"], "weights", None)
        _check(
            len(weights) == (features + 1) * outputs,
            "its weights are not one for every column and output",
        )
        return ModelJSON(features, outputs)
    factors = None
    if booster["name"] == "dart":
        count = len(booster["gbtree"]["model"]["trees"])
        factors = _numbers(booster["weight_drop"], "weight_drop", count)
        booster = booster["gbtree"]
        _check(booster["name"] == "gbtree", "it drops out what are no trees")
    return _model(booster["model"], features, outputs, factors)


def _check(kept: bool, otherwise: str) -> None:
    if not kept:
        raise ValueError(f"XGBoost's text is not as it writes it: {otherwise}")


def _numbers(
    values: Plain, name: str, count: int | None, low: float = -np.inf, most: float = np.inf
) -> Any:
    _check(
        isinstance(values, list) and all(type(v) in (int, float) for v in values),
        f"{name} are not numbers",
    )
    found = np.array(values, dtype=float)
    _check(count is None or len(found) == count, f"{name} are {len(found)}, not {count}")
    _check(bool(((found >= low) & (found <= most)).all()), f"{name} are out of range")
    return found


def _whole(values: Plain, name: str, count: int | None, low: float, most: float) -> Any:
    _check(
        isinstance(values, list) and all(type(value) is int for value in values),
        f"{name} are not whole numbers",
    )
    return _numbers(values, name, count, low, most).astype(np.int64)


def _model(
    model: Mapping[str, Any], features: int, outputs: int, factors: Array | None
) -> ModelJSON:
    trees, facts = model["trees"], model["gbtree_model_param"]
    _check(
        int(facts["num_trees"]) == len(trees) >= outputs,
        "its trees are not as many as it says, or fewer than outputs",
    )
    _check(
        1 <= int(facts.get("num_parallel_tree", 1)) <= len(trees),
        "its rounds have more trees than there are",
    )
    output = _whole(model["tree_info"], "tree_info", len(trees), 0, outputs - 1)
    rounds = _whole(
        model.get("iteration_indptr", [0, len(trees)]), "iteration_indptr", None, 0, len(trees)
    )
    _check(
        len(rounds) > 1 and rounds[0] == 0 and rounds[-1] == len(trees),
        "its rounds are not all of its trees",
    )
    _check(bool((np.diff(rounds) >= 0).all()), "its rounds do not follow each other")
    categories = model.get("cats")
    names = () if categories is None else _names(categories, features)
    made: list[JSONTree] = []
    for number, tree in enumerate(trees):
        _check(tree["id"] == number, f"tree {number} has another number")
        made.append(_tree(tree, features, f"tree {number}"))
    weights = np.ones(len(trees)) if factors is None else factors
    return ModelJSON(features, outputs, tuple(made), output, weights, rounds, names)


def _names(
    found: Mapping[str, Any], features: int
) -> tuple[tuple[str | int | float, ...] | None, ...]:
    """The categories of columns by name: for every column where its names begin in one text, or
    numbers.
    """
    parts = found["enc"]
    _check(len(parts) in (0, features), "it has categories of columns that are not there")
    counts: list[int] = []
    names: list[tuple[str | int | float, ...] | None] = []
    for part in parts:
        values = part["values"]
        if "offsets" in part:
            _whole(values, "names of categories", None, -128, 255)
            edges = _whole(part["offsets"], "offsets of names", None, 0, len(values))
            good = len(edges) == 0 or (
                edges[0] == 0 and edges[-1] == len(values) and bool((np.diff(edges) >= 0).all())
            )
            _check(
                good and (len(edges) > 0 or not values),
                "names of categories do not follow each other",
            )
            counts.append(max(len(edges) - 1, 0))
            whole = bytes(value % 256 for value in values)
            words = [whole[low:high] for low, high in pairwise(edges.tolist())]
            names.append(tuple(word.decode(errors="replace") for word in words) or None)
        else:
            _numbers(values, "categories", None)
            counts.append(len(values))
            names.append(tuple(values))
    edges = (
        np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        if parts
        else np.zeros(0, dtype=np.int64)
    )
    given = _whole(found["feature_segments"], "feature_segments", None, 0, int(sum(counts)))
    _check(
        np.array_equal(given, edges) or (len(given) == 0 and sum(counts) == 0),
        "its categories do not follow",
    )
    order = _whole(
        found["sorted_idx"], "sorted_idx", int(sum(counts)), 0, max(int(sum(counts)) - 1, 0)
    )
    for low, high in pairwise(edges.tolist()):
        _check(
            np.array_equal(np.sort(order[low:high]), np.arange(high - low)),
            "its categories are not in an order",
        )
    return tuple(names)


def _tree(tree: Mapping[str, Any], features: int, where: str) -> JSONTree:
    """Nodes of which each but the first is the child of one other; children that come after it,
    or later nodes reused.
    """
    facts = {name: int(value) for name, value in tree["tree_param"].items()}
    count = facts["num_nodes"]
    _check(
        facts.get("size_leaf_vector", 1) in (0, 1),
        f"{where} answers several outputs at once, which is not saved here",
    )
    _check(
        facts.get("num_feature", features) == features and 0 <= facts.get("num_deleted", 0) < count,
        f"{where} has odd sizes",
    )
    for name in _NODES:
        _check(
            isinstance(tree[name], list) and len(tree[name]) == count,
            f"{where}: {name} are not {count}",
        )
    for name in ("base_weights", "loss_changes", "sum_hessian"):
        _numbers(tree[name], name, count)
    # every node but the root is the child of one node, its stated parent, and none is its own ancestor
    condition = _numbers(tree["split_conditions"], "split_conditions", count)
    default, _ = (_whole(tree[name], name, count, 0, 1) for name in ("default_left", "split_type"))
    feature = _whole(tree["split_indices"], "split_indices", count, 0, features - 1)
    left, right = (
        _whole(tree[name], name, count, -1, count - 1)
        for name in ("left_children", "right_children")
    )
    parents = _whole(tree["parents"], "parents", count, -1, _ROOT)
    inner = np.flatnonzero(left >= 0)
    _check(np.array_equal(inner, np.flatnonzero(right >= 0)), f"{where} has a node with one child")
    children = np.concatenate([left[inner], right[inner]])
    reached = len(np.unique(children)) == len(children) and 0 not in children
    _check(reached and bool((parents[children] == np.tile(inner, 2)).all()), f"{where} is no tree")
    _check(
        parents[0] in (-1, _ROOT) and _is_acyclic(children, np.tile(inner, 2)),
        f"{where} is no tree",
    )
    sets = _sets(tree, count, where)
    return JSONTree(left, right, feature, condition, default == 1, sets)


def _is_acyclic(children: Ints, parents: Ints) -> bool:
    """Whether every child is after its parent, or at least hangs on the first node."""
    if bool((children > parents).all()):
        return True
    below: dict[int, list[int]] = {}
    for child, parent in zip(children.tolist(), parents.tolist(), strict=True):
        below.setdefault(parent, []).append(child)
    found, level = 1, [0]
    while level := [child for node in level for child in below.get(node, ())]:
        found += len(level)
    return found == len(children) + 1


def _sets(tree: Mapping[str, Any], count: int, where: str) -> Mapping[int, Ints]:
    """Nodes that split by a set of categories, each with its own part of one list."""
    given = tree.get("categories", [])
    nodes = _whole(tree.get("categories_nodes", []), "categories_nodes", None, 0, count - 1)
    starts = _whole(
        tree.get("categories_segments", []), "categories_segments", len(nodes), 0, len(given)
    )
    sizes = _whole(tree.get("categories_sizes", []), "categories_sizes", len(nodes), 0, len(given))
    members = _whole(given, "categories", None, 0, 2**24)
    _check(bool((starts + sizes <= len(given)).all()), f"{where} has categories that are not there")
    split = np.flatnonzero(
        (np.array(tree["split_type"]) == 1) & (np.array(tree["left_children"]) >= 0)
    )
    _check(np.array_equal(np.sort(nodes), split), f"{where} has a split without its categories")
    return {
        int(node): members[start : start + size]
        for node, start, size in zip(nodes, starts, sizes, strict=True)
    }
