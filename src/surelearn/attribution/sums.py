"""Models whose predictions are a weighted sum of others': values are linear in the game, so theirs
are the same sum of the members' values, exact where each member has a closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from surelearn.attribution.result import Attribution
from surelearn.subject.registry import Parts, described
from surelearn.types import AnyArray, Array, Model

_CLOSE = 1e-6  # of the largest prediction


def members_of(model: Model) -> tuple[tuple[float, Model], ...]:
    """(weight, member) where a model says that it is a weighted sum; () for others."""
    found = described(model) if hasattr(model, "predict") else None
    return found.weighted if isinstance(found, Parts) else ()


def summed(
    members: tuple[tuple[float, Model], ...], explained: Callable[[Model], Attribution], full: Array
) -> Attribution | None:
    """The weighted sum of what is explained of each member; None if one has no closed form, or if
    the sum is not what the model says, ``full`` (rows,).
    """
    try:
        found = [explained(member) for _, member in members]
    except ValueError:  # a member without a closed form
        return None
    weights = [weight for weight, _ in members]

    def total(name: str) -> AnyArray:
        parts = [w * getattr(one, name) for w, one in zip(weights, found, strict=True)]
        return np.sum(parts, axis=0)

    if np.abs(total("full") - full).max() > _CLOSE * max(1.0, float(np.abs(full).max())):
        return None
    kept = all(one.parts is not None for one in found)
    return replace(
        found[0],
        values=total("values"),
        empty=total("empty"),
        full=total("full"),
        parts=total("parts") if kept else None,
        model_rows=sum(one.model_rows for one in found),
        method="weighted sum of the members' closed forms, exact for this game",
    )
