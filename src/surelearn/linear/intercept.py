"""Which intercept a linear model has: ``fit_intercept`` and ``regularize_intercept`` in one word.

"regularized" is a padded feature 1 whose weight is in the penalty, "free" one that is outside of
it, "none" none. Records, objectives and closed forms use the word, learners have two arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, get_args

import numpy as np

from surelearn.earlier import TwoWay

Intercept = Literal["none", "regularized", "free"]
INTERCEPTS: tuple[Intercept, ...] = get_args(Intercept)


class HasIntercept(Protocol):
    """A learner that says whether to fit an intercept, and whether to penalize it."""

    fit_intercept: bool
    regularize_intercept: Any  # a bool; Ridge's may be left out


def intercept_of(learner: HasIntercept) -> Intercept:
    """The word for a learner's two arguments.

    Examples
    --------
    >>> from surelearn.linear import LeastSquares
    >>> intercept_of(LeastSquares()), intercept_of(LeastSquares(fit_intercept=False))
    ('free', 'none')
    """
    if not learner.fit_intercept:
        return "none"
    return "regularized" if learner.regularize_intercept else "free"


def arguments_of(word: str, otherwise: bool | None = False) -> dict[str, Any]:
    """The two arguments for a word; ``otherwise`` is what `regularize_intercept` is without any.

    Examples
    --------
    >>> arguments_of("free")
    {'fit_intercept': True, 'regularize_intercept': False}
    """
    if word not in INTERCEPTS:
        raise ValueError(f"intercept must be one of {', '.join(INTERCEPTS)}, not {word!r}")
    regularized = otherwise if word == "none" else word == "regularized"
    return {"fit_intercept": word != "none", "regularize_intercept": regularized}


def check_intercept(learner: HasIntercept, *, optional: bool = False) -> None:
    """Refuse, by name, what is neither True nor False (nor None, where it may be left out)."""
    for name in ("fit_intercept", "regularize_intercept"):
        value = getattr(learner, name)
        if optional and name == "regularize_intercept" and value is None:
            continue
        if not isinstance(value, (bool, np.bool_)):
            raise ValueError(f"{name} must be True or False, not {value!r}")


def earlier_intercept(otherwise: bool | None) -> TwoWay:
    """How the earlier parameter ``intercept`` is read; where it could be left out, None was
    ``regularize_intercept=None``.
    """

    def today(value: object, given: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG001
        """fit_intercept= and regularize_intercept= say the same"""
        if value is not None or otherwise is not None:
            return arguments_of(str(value), otherwise)
        return {"fit_intercept": True, "regularize_intercept": None}

    def then(state: Mapping[str, Any]) -> str | None:
        if not state["fit_intercept"]:
            return "none"
        regularized = state["regularize_intercept"]
        return None if regularized is None else "regularized" if regularized else "free"

    return TwoWay(today, ("fit_intercept", "regularize_intercept"), then)
