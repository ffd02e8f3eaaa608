"""What fitting a model once more costs: seconds of one core of an ordinary machine, by formulas of
rows, columns and what the fitted model holds, never timed, so that every machine plans the same
refits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, cast

from surelearn.types import Model

_READ = 3e-8  # a number that is prepared
_LETTER = 7e-7  # of text that is cut into words and runs of letters
_LEAST = 0.01
_MOST_BINNED = 64  # columns beyond which boosting draws some
_INSIDE = ("estimator_", "best_estimator_", "regressor_", "final_estimator_")


def fit_work(model: Model, rows: int, columns: int, letters: float = 0.0) -> float:
    """About the seconds of one core that a fit of such a model on ``rows`` takes.

    Parameters
    ----------
    model : fitted; of one whose parts are not recognized, only reading the rows counts
    rows : to fit on
    columns : of the table
    letters : of text in those rows

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import ExtraTreesClassifier
    >>> X, y = np.random.default_rng(0).normal(size=(50, 4)), np.arange(50) % 2
    >>> model = ExtraTreesClassifier(100).fit(X, y)
    >>> [round(fit_work(model, n, 4), 2) for n in (100, 10_000)]
    [0.13, 0.45]
    """
    return _LEAST + _READ * rows * columns + _LETTER * letters + _learned(model, rows)


def _learned(model: Any, rows: int) -> float:
    """The fit itself, the sum over whatever is inside."""
    width = int(getattr(model, "n_features_in_", 1) or 1)
    if hasattr(model, "_predictors"):
        return _boosting(model, rows, width)
    members = _several(model)
    if members and all(hasattr(member, "tree_") for member in members):
        return sum(_tree(member, rows) for member in members)
    if hasattr(model, "tree_"):
        return _tree(model, rows)
    told: Callable[[int], float] | None = getattr(model, "work_of_fit", None)
    if told is not None:
        return told(rows)
    if (rounds := _rounds(model)) is not None:
        return rounds * (2e-3 + 1e-8 * rows * width)
    if hasattr(model, "support_vectors_"):
        return 2.4e-8 * rows**2 * (1 + width / 40)
    if hasattr(model, "centers_"):
        return 0.5 + 2e-4 * rows
    steps: list[tuple[str, Any]] = getattr(model, "steps", None) or []
    inside = [getattr(model, name, None) for name in _INSIDE]
    held = [*(step for _, step in steps), *inside, *members]
    if any(part is not None for part in held):
        return sum(_learned(part, rows) for part in held if part is not None)
    coefficients = getattr(model, "coef_", None)
    size = 0 if coefficients is None else min(math.prod(getattr(coefficients, "shape", (1,))), 5000)
    return 2e-7 * rows * size


def _boosting(model: Any, rows: int, width: int) -> float:
    """Histogram boosting: a part for each tree, for its leaves, and for the rows and columns."""
    trees = [tree for stage in model._predictors for tree in stage]
    leaves = sum(tree.get_n_leaf_nodes() for tree in trees)
    return 1e-3 * len(trees) + 4e-5 * leaves + 1.3e-8 * len(trees) * rows * min(width, _MOST_BINNED)


def _tree(tree: Any, rows: int) -> float:
    columns = int(getattr(tree, "max_features_", 1) or 1)
    each = 1.2e-8 if getattr(tree, "splitter", "best") == "random" else 5e-8
    return 1.2e-3 + rows * math.log2(max(2, rows)) * columns * each


def _several(model: Any) -> list[Any]:
    """The fitted members of an ensemble."""
    found = cast("Iterable[Any]", getattr(model, "estimators_", ()))
    made: list[Any] = []
    for member in found:
        nested = hasattr(member, "__iter__") and not hasattr(member, "fit")
        made += list(cast("Iterable[Any]", member)) if nested else [member]
    return made


def _rounds(model: Any) -> int | None:
    """Trees of LightGBM, XGBoost or CatBoost; None for others."""
    if hasattr(model, "booster_"):
        return int(model.booster_.num_trees())
    if hasattr(model, "get_booster"):
        return max(1, int(model.n_classes_ if getattr(model, "n_classes_", 2) > 2 else 1)) * int(
            model.get_num_boosting_rounds()
        )
    return int(model.tree_count_) if getattr(model, "tree_count_", None) else None
