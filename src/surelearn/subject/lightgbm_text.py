"""LightGBM's model text, read, and checked before LightGBM reads it.

LightGBM believes what a text says: a child that does not exist, a category out of range or a size
that is not the tree's ends the process, or reads memory of others. So every line of a tree must be
one that is known, with as many numbers as the tree has leaves or splits, and children must make one
tree of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from surelearn.types import Array, Bools, Ints

_WHOLE = re.compile(r"-?[0-9]{1,10}+(?: -?[0-9]{1,10}+)*+")
# nothing is tried twice
_NUMBER = r"[-+]?(?:[0-9]++(?:\.[0-9]*+)?+(?:[eE][-+]?[0-9]{1,4}+)?+|inf|nan)"
_NUMBERS = re.compile(rf"{_NUMBER}(?: {_NUMBER})*+")
_HEAD = {
    "version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "objective", "average_output",
    "feature_names", "monotone_constraints", "feature_infos", "tree_sizes",
}  # fmt: skip
_SPLITS = ("split_feature", "left_child", "right_child", "decision_type")
_CATEGORICAL = 1  # the bit of decision_type
_MOST_DECISIONS = 15


@dataclass(frozen=True, eq=False)
class TextTree:
    """One tree of the text.

    Attributes
    ----------
    feature, threshold, decision : of each split, (splits,); the threshold of a split by categories
        is the number of its set
    left, right : a split's children, (splits,): splits from 0, leaves as −1, −2, …
    leaf_value : (leaves,)
    edges, words : set s has the categories whose bits are in words[edges[s]:edges[s + 1]]
    linear : whether leaves are linear functions
    """

    feature: Ints
    threshold: Array
    decision: Ints
    left: Ints
    right: Ints
    leaf_value: Array
    edges: Ints
    words: Ints
    linear: bool

    @property
    def categorical(self) -> Bools:
        """Whether a split asks for a set of categories, (splits,)."""
        return (self.decision & _CATEGORICAL) > 0

    @property
    def default_left(self) -> Bools:
        """Whether what is missing goes left, (splits,)."""
        return (self.decision & 2) > 0

    @property
    def missing(self) -> Ints:
        """What a split takes for missing, (splits,): 0 nothing, 1 zero and NaN, 2 NaN."""
        return (self.decision >> 2) & 3


@dataclass(frozen=True, eq=False)
class ModelText:
    """A model text that was checked.

    Attributes
    ----------
    text : whole
    per_round : trees of a round, one for each output
    averaged : whether outputs are the mean over rounds, not the sum
    trees : in the order of the text
    """

    text: str
    per_round: int
    averaged: bool
    trees: tuple[TextTree, ...]


def read_text(content: bytes) -> ModelText:
    """The model text, whose trees are trees; a sentence says what is wrong with it."""
    text = content.decode()
    _check("\0" not in text, "it holds a zero byte")
    head, first_tree, _ = text.partition("\nTree=")
    _check(bool(first_tree), "it has no trees")
    facts = _head(head)
    features, count = _one(facts, "max_feature_idx") + 1, _one(facts, "num_class")
    sizes = _whole(facts["tree_sizes"], "tree_sizes", None).tolist()
    for name in ("feature_names", "feature_infos"):
        _check(len(facts[name].split(" ")) == features, f"its {name} are not {features}")
    per_round = _one(facts, "num_tree_per_iteration")
    _check(
        1 <= count <= len(sizes) and per_round in (1, count), "its classes are more than its trees"
    )
    _check(
        len(sizes) % per_round == 0 and _one(facts, "label_index") >= 0,
        "its last round is not complete",
    )
    _check_objective(facts.get("objective", ""), count)
    raw = text if text.isascii() else None
    body = text.encode()
    at = len(head.encode()) + 1
    trees: list[TextTree] = []
    for number, size in enumerate(sizes):
        _check(0 < size <= len(body) - at, f"tree {number} is longer than the text")
        part = raw[at : at + size] if raw is not None else body[at : at + size].decode()
        first, _, rest = part.partition("\n")
        _check(
            first == f"Tree={number}" and rest.endswith("\n\n"),
            f"tree {number} is not where tree_sizes says",
        )
        trees.append(_tree(rest, features, number))
        at += size
    _check(body[at:].startswith(b"end of trees\n"), "its trees do not end where tree_sizes says")
    return ModelText(text, per_round, "average_output" in facts, tuple(trees))


def _check(kept: bool, otherwise: str) -> None:
    if not kept:
        raise ValueError(f"LightGBM's text is not as it writes it: {otherwise}")


def _head(text: str) -> dict[str, str]:
    lines = text.rstrip("\n").split("\n")
    _check(lines[0] == "tree", "it does not begin with a tree")
    found = _facts(lines[1:], _HEAD, "its head")
    _check(
        _HEAD - {"objective", "average_output", "monotone_constraints"} <= found.keys(),
        "its head is not complete",
    )
    return found


def _facts(lines: list[str], known: set[str], where: str) -> dict[str, str]:
    pairs = [line.partition("=") for line in lines]
    found = {name: value for name, _, value in pairs}
    _check(len(found) == len(pairs), f"{where} says something twice")
    unknown = sorted(found.keys() - known)
    _check(
        not unknown, f"{where} has {unknown[0] if unknown else ''!r:.40}, which is not known here"
    )
    return found


def _check_objective(text: str, classes: int) -> None:
    stated = [part.partition(":")[2] for part in text.split(" ") if part.startswith("num_class:")]
    _check(
        all(number == str(classes) for number in stated),
        "its objective has another number of classes",
    )
    _check(
        bool(stated) or not text.startswith("multiclass"),
        "its objective does not say how many classes there are",
    )


def _one(facts: Mapping[str, str], name: str) -> int:
    return int(_whole(facts.get(name, ""), name, 1)[0])


def _whole(text: str, name: str, count: int | None) -> Any:
    return _values(_WHOLE, text, name, count).astype(np.int64)


def _values(pattern: re.Pattern[str], text: str, name: str, count: int | None) -> Any:
    _check(
        text == "" or pattern.fullmatch(text) is not None, f"{name} are not numbers: {text!r:.40}"
    )
    found = np.array(text.split(" ") if text else [], dtype=float)
    _check(count is None or len(found) == count, f"{name} are {len(found)}, not {count}")
    return found


_LEAVES = ("leaf_value", "leaf_weight", "leaf_count")
_INSIDE = ("split_gain", "threshold", "internal_value", "internal_weight", "internal_count")
_LINEAR = ("leaf_const", "num_features", "leaf_features", "leaf_coeff")
_TREE = {
    "num_leaves", "num_cat", *_SPLITS, *_LEAVES, *_INSIDE, *_LINEAR, "cat_boundaries", "cat_threshold", "is_linear",
    "shrinkage",
}  # fmt: skip


def _tree(text: str, features: int, number: int) -> TextTree:
    """One tree: its splits numbered so that children come after their parents, its leaves each
    once.
    """
    where = f"tree {number}"
    facts = _facts(text.rstrip("\n").split("\n"), _TREE, where)
    leaves, categorical = _one(facts, "num_leaves"), _one(facts, "num_cat")
    _check(leaves >= 1 and categorical >= 0, f"{where} has no leaves")
    _check(
        set(_SPLITS) | {"leaf_value", "threshold", "is_linear", "shrinkage"} <= facts.keys(),
        f"{where} is not complete",
    )
    splits = leaves - 1
    features_at, left, right, decisions = (_whole(facts[name], name, splits) for name in _SPLITS)
    inside = {
        name: _values(_NUMBERS, facts[name], name, splits) for name in _INSIDE if name in facts
    }
    at_leaves = {
        name: _values(
            _NUMBERS,
            facts[name],
            name,
            0 if facts[name] == "" and leaves == 1 and name != "leaf_value" else leaves,
        )
        for name in _LEAVES
        if name in facts
    }
    _values(_NUMBERS, facts["shrinkage"], "shrinkage", 1)
    _check(
        bool(((features_at >= 0) & (features_at < features)).all()),
        f"{where} splits a column that is not there",
    )
    _check(
        bool(((decisions >= 0) & (decisions <= _MOST_DECISIONS)).all()),
        f"{where} decides in a way that is not known",
    )
    children = np.concatenate([left, right])
    after = children[children >= 0] > np.tile(np.arange(splits), 2)[children >= 0]
    once = np.array_equal(
        np.sort(children), np.concatenate([np.arange(-leaves, 0), np.arange(1, splits)])
    )
    _check(splits == 0 or (bool(after.all()) and once), f"{where} is no tree")
    used = inside["threshold"][(decisions & _CATEGORICAL) > 0]
    edges, words = _categories(facts, categorical, used, where)
    _check(facts["is_linear"] in ("0", "1"), f"{where} is neither linear nor not")
    if facts["is_linear"] == "1":
        _check_lines(facts, leaves, features, where)
    return TextTree(
        features_at,
        inside["threshold"],
        decisions,
        left,
        right,
        at_leaves["leaf_value"],
        edges,
        words,
        facts["is_linear"] == "1",
    )


def _categories(facts: Mapping[str, str], count: int, used: Array, where: str) -> tuple[Ints, Ints]:
    """Sets of categories as bits, their edges and words: each split names one of ``count`` sets."""
    _check(
        bool(((used >= 0) & (used < max(count, 0)) & (used == np.floor(used))).all()),
        f"{where} has no such categories",
    )
    if count == 0:
        return np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    edges = _whole(facts.get("cat_boundaries", ""), "cat_boundaries", count + 1)
    _check(
        edges[0] == 0 and bool((np.diff(edges) > 0).all()),
        f"{where} has sets of categories that do not follow",
    )
    words = _whole(facts.get("cat_threshold", ""), "cat_threshold", int(edges[-1]))
    _check(bool(((words >= 0) & (words < 2**32)).all()), f"{where} has categories that are no bits")
    return edges, words


def _check_lines(facts: Mapping[str, str], leaves: int, features: int, where: str) -> None:
    """A linear function in every leaf, of some of the columns."""
    _check(set(_LINEAR) <= facts.keys(), f"{where} is not complete")
    _values(_NUMBERS, facts["leaf_const"], "leaf_const", leaves)
    counts = _whole(facts["num_features"], "num_features", leaves)
    _check(bool((counts >= 0).all()), f"{where} has leaves of no columns")
    columns, coefficients = (
        " ".join(facts[name].split()) for name in ("leaf_features", "leaf_coeff")
    )
    at = _whole(columns, "leaf_features", int(counts.sum()))
    _values(_NUMBERS, coefficients, "leaf_coeff", int(counts.sum()))
    _check(
        bool(((at >= 0) & (at < features)).all()),
        f"{where} has a leaf of a column that is not there",
    )
