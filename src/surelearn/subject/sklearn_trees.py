"""scikit-learn's trees and their ensembles, which have no gradient, as sums of trees.

Decision trees, forests and extra trees: value or mean probability. Gradient boosting, histogram or
not: value, or the raw score of a class, never its probability, which is no sum of trees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from surelearn.lacking import Lacking
from surelearn.subject.registry import NO_TREES, Parts, described, describes, made
from surelearn.subject.trees import Tree, Trees, trees_from
from surelearn.types import Array, Bools, Ints, Model, RowsLike

_FORESTS = "ExtraTreesClassifier ExtraTreesRegressor RandomForestClassifier RandomForestRegressor"
_MEETINGS = "AdaBoostClassifier AdaBoostRegressor BaggingClassifier BaggingRegressor"
_TREE_WORK = 3000.0  # what costs count for a tree of a forest


def of_trees(model: Model, trees: Callable[[], Trees | Lacking] | None = None) -> Parts:
    """A model whose answers change in steps; ``trees`` makes them, where they can be read."""
    why = (
        f"{type(model).__name__} has no gradient: it is made of trees, whose answers change in"
        " steps"
    )
    return Parts(form=Lacking("closed form", why), trees=NO_TREES if trees is None else trees)


@describes(
    "sklearn.tree:DecisionTreeClassifier",
    "sklearn.tree:DecisionTreeRegressor",
    "sklearn.tree:ExtraTreeClassifier",
    "sklearn.tree:ExtraTreeRegressor",
)
def _tree(model: Model) -> Parts:
    return of_trees(model, lambda: _mean(model, [model]))


@describes(*(f"sklearn.ensemble:{name}" for name in _FORESTS.split()))
def _forest(model: Model) -> Parts:
    return of_trees(model, lambda: _mean(model, list(model.estimators_)))


@describes(
    "sklearn.ensemble:GradientBoostingClassifier", "sklearn.ensemble:GradientBoostingRegressor"
)
def _boosting(model: Model) -> Parts:
    return of_trees(model, lambda: _stages(model))


@describes(
    "sklearn.ensemble:HistGradientBoostingClassifier",
    "sklearn.ensemble:HistGradientBoostingRegressor",
)
def _histogram_boosting(model: Model) -> Parts:
    return of_trees(model, lambda: _histograms(model))


@describes(*(f"sklearn.ensemble:{name}" for name in _MEETINGS.split()))
def _meeting(model: Model) -> Parts:
    """Members of any kind, which vote: made of trees where the first of them is."""
    first = next((described(member) for member in getattr(model, "estimators_", ())), None)
    form = made(first.form) if isinstance(first, Parts) else None
    return (
        of_trees(model) if isinstance(form, Lacking) and "made of trees" in form.reason else Parts()
    )


def _mean(model: Model, members: list[Any]) -> Trees | Lacking:
    if not all(hasattr(member, "tree_") for member in members) or not members:
        return Lacking("trees", "it is not fitted")
    if any(member.tree_.value.shape[1] != 1 for member in members):
        return Lacking("trees", "the model has several targets")
    trees = [_read(m.tree_, m.tree_.value[:, 0, :] / len(members)) for m in members]
    kind = "probability" if hasattr(model, "classes_") else "value"
    return trees_from(trees, _single, range(model.n_features_in_), (kind,), work=_TREE_WORK)


def _stages(model: Model) -> Trees | Lacking:
    if not hasattr(model, "estimators_"):
        return Lacking("trees", "it is not fitted")
    one = np.eye(model.estimators_.shape[1])  # of each output
    trees = [
        _read(member.tree_, model.learning_rate * member.tree_.value[:, 0, :] * one[k])
        for stage in model.estimators_
        for k, member in enumerate(stage)
    ]
    kind = "score" if hasattr(model, "classes_") else "value"
    return trees_from(trees, _single, range(model.n_features_in_), (kind,), work=_TREE_WORK)


def _read(tree: Any, value: Array) -> Tree:
    return Tree(
        tree.children_left,
        tree.children_right,
        tree.feature,
        tree.threshold,
        tree.missing_go_to_left,
        value,
    )


def _single(X: RowsLike) -> Array:
    """Rows in single precision, which scikit-learn's own trees compare with thresholds in double."""
    return np.asarray(X).astype(np.float32).astype(np.float64)


def _histograms(model: Model) -> Trees | Lacking:
    if not hasattr(model, "_predictors"):
        return Lacking("trees", "it is not fitted")
    prepare = model._preprocessor  # puts columns of categories first, as numbers 0, 1, …
    sources: Ints = np.arange(int(model.n_features_in_))
    if prepare is not None:
        by_name: Bools = np.asarray(model.is_categorical_)
        sources = np.argsort(~by_name, kind="stable")
    trees: list[Tree] = []
    for stage in model._predictors:
        one = np.eye(len(stage))  # of each output
        for k, predictor in enumerate(stage):
            nodes, sets = predictor.nodes, predictor.raw_left_cat_bitsets
            leaf = nodes["is_leaf"].astype(bool)
            # leaves have children 0, which are none
            left, right = (
                np.where(leaf, -1, nodes[side].astype(np.int64)) for side in ("left", "right")
            )
            by_set = nodes["is_categorical"].astype(bool) & ~leaf
            trees.append(
                Tree(
                    left,
                    right,
                    nodes["feature_idx"],
                    nodes["num_threshold"],
                    nodes["missing_go_to_left"],
                    nodes["value"][:, None] * one[k],  # (nodes, outputs)
                    np.where(by_set, nodes["bitset_idx"].astype(np.int64), -1),
                    sets,
                )
            )

    def code(X: RowsLike) -> Array:
        return np.asarray(X if prepare is None else prepare.transform(X), dtype=float)

    kind = "score" if hasattr(model, "classes_") else "value"
    return trees_from(trees, code, sources.tolist(), (kind,))
