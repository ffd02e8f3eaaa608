"""What a prediction and an explanation cost, counted from what a model holds, not timed."""

from __future__ import annotations

from typing import Any

import numpy as np

from surelearn.attribution.sums import members_of
from surelearn.subject import subject_of
from surelearn.subject.refitting import take
from surelearn.subject.torch_modules import is_module
from surelearn.subject.trees import Trees
from surelearn.types import Model, RowsLike

_LETTER = 0.9  # microseconds to count the words of a text, a letter
_LOOKED_AT = 50  # rows whose letters are counted
_TEXT = 30  # letters from which on a value is a text


def cost_of(model: Model, columns: int, frame: bool, letters: float = 0.0) -> float:
    """About the microseconds of one prediction, from what the model holds and the letters of text
    in a row.
    """
    told: Any = getattr(_last(model), "work_of_answer", None)  # in seconds
    if told is not None:
        return 0.5 + columns * (1.0 if frame else 0.02) + 1e6 * told()
    return 0.5 + columns * (1.0 if frame else 0.02) + _held(model) / 10_000 + _LETTER * letters


def letters_of(X: RowsLike) -> float:
    """Letters of text per row, as the first rows have them; short values are categories."""
    if not hasattr(X, "columns"):
        return 0.0
    some = take(X, slice(_LOOKED_AT))
    counts = [
        sum(len(value) for value in some[name] if isinstance(value, str) and len(value) > _TEXT)
        for name in some.columns
    ]
    return sum(counts) / max(1, len(some))


def _held(model: Model) -> float:
    """Numbers that a prediction goes through; those of LIBSVM count ten times, a tree as many as
    its model declares.
    """
    if is_module(model):
        return float(sum(p.numel() for p in model.parameters()))
    if isinstance(trees := subject_of(model).trees, Trees):
        return trees.work * len(trees.roots)
    steps = (
        [step for _, step in model.steps] if isinstance(getattr(model, "steps", None), list) else []
    )
    inner = [getattr(model, name, None) for name in ("regressor_", "final_estimator_")]
    nested = sum(_held(part) for part in [*steps, *inner, *_several(model)] if part is not None)
    held = {
        name: np.prod(value.shape)
        for name, value in getattr(model, "__dict__", {}).items()
        if hasattr(value, "shape")
    }
    return nested + sum(
        10.0 * size if name == "support_vectors_" else float(size) for name, size in held.items()
    )


def _several(model: Model) -> list[Any]:
    """The fitted members of an ensemble."""
    members = getattr(model, "estimators_", None)
    members = [] if members is None else list(members)
    return [
        one
        for member in members
        for one in (member if isinstance(member, list | np.ndarray) else [member])
    ]


def _last(model: Model) -> Any:
    """The learner behind a pipeline, and inside one whose target is prepared."""
    steps = getattr(model, "steps", None)
    inside = steps[-1][1] if isinstance(steps, list) else model
    return getattr(inside, "regressor_", inside)


def cost_of_pair(model: Model, width: int, players: int) -> float:
    """Of one row against one background row in closed form: all leaves that the two can reach
    together, all centers.
    """
    columns = 0.02 * width
    if members := members_of(model):
        return sum(cost_of_pair(_last(member), width, players) for _, member in members)
    centers = getattr(model, "support_vectors_", getattr(model, "centers_", None))
    if centers is not None:
        return columns + 0.003 * len(centers) * players**2
    trees = subject_of(model).trees
    if not isinstance(trees, Trees):
        return columns
    return columns + len(trees.roots) + len(trees.left) / 400
