"""How rich a candidate's class is, in the words of the capacity theorems."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surelearn.bounds import (
    boosting_finite,
    boosting_tail_inversion,
    boosting_vc,
    finite_class,
    growth_function_bound,
    vc,
    vc_dimension_of_halfspaces,
    vc_dimension_of_stumps,
)
from surelearn.claim import Theorem
from surelearn.selection.criteria.problem import Capacity, StatedCapacity, predictions_of
from surelearn.selection.cross_validation import column_count
from surelearn.types import AnyArray, Model, RowsLike

_BOUNDS: dict[frozenset[str], Theorem[..., Any]] = {
    frozenset({"vc_dimension"}): vc,
    frozenset({"rounds", "vc_dimension"}): boosting_vc,
    frozenset({"rounds", "vc_dimension", "d"}): boosting_vc,
    frozenset({"rounds", "d"}): boosting_tail_inversion,
    frozenset({"size"}): finite_class,
    frozenset({"rounds", "size"}): boosting_finite,
    frozenset({"log_growth"}): growth_function_bound,
}
_MEASURED = {"risk", "errors", "n", "delta", "index"}


def known_capacities(fitted: Model, sizes: Sequence[int] | None, d: int) -> list[Capacity | None]:
    """The capacity of each member, where it is known: boosted stumps, stumps, halfspaces and
    constants.

    A learner may say its own with a method ``capacity(d)`` that returns inputs of a capacity
    theorem, such as ``{"rounds": 10, "vc_dimension": 6}``. A pipeline's is not known: what its
    steps learn widens the class.
    """
    if is_boosted_stumps(fitted):
        stumps = float(vc_dimension_of_stumps(d))
        shared = {"vc_dimension": stumps, "d": float(d)}
        return [{"rounds": float(rounds), **shared} for rounds in sizes or (rounds_of(fitted),)]
    if sizes is not None:
        return [None] * len(sizes)
    return [fitted.capacity(d) if hasattr(fitted, "capacity") else _known(fitted, d)]


def _known(fitted: Model, d: int) -> Capacity | None:
    from sklearn.dummy import DummyClassifier
    from sklearn.tree import DecisionTreeClassifier

    if isinstance(fitted, DummyClassifier) and fitted.strategy in (
        "prior",
        "most_frequent",
        "constant",
    ):
        return {"size": 2.0}
    from surelearn.boosting import DecisionStump

    is_stump = type(fitted) is DecisionTreeClassifier and fitted.max_depth == 1
    if is_stump or isinstance(fitted, DecisionStump):
        return {"vc_dimension": float(vc_dimension_of_stumps(d))}
    if hasattr(fitted, "classes_") and np.size(getattr(fitted, "coef_", ())) == d:
        return {"vc_dimension": float(vc_dimension_of_halfspaces(d))}
    return None


def is_boosted_stumps(model: Model) -> bool:
    """Whether a model is AdaBoost with decision stumps, ours or scikit-learn's."""
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    from surelearn.boosting import AdaBoostClassifier as OurAdaBoost

    if isinstance(model, OurAdaBoost):
        return True
    if type(model) is not AdaBoostClassifier:
        return False
    weak: Any = model.estimator
    return weak is None or (type(weak) is DecisionTreeClassifier and weak.max_depth == 1)


def rounds_of(model: Model) -> int:
    """How many rounds boosting was told to make."""
    return int(model.n_rounds if hasattr(model, "n_rounds") else model.n_estimators)


def measure_risks(
    fitted: Model, sizes: Sequence[int] | None, X: RowsLike, y: AnyArray
) -> list[dict[str, Any]]:
    """Errors on the rows fitted on and the capacity, of each member: what a task of SRM returns."""
    predicted = predictions_of(fitted, sizes, X)
    known = known_capacities(fitted, sizes, column_count(X))
    if has_missing(X):  # trees send those to a side of their own choice, which widens the class
        known = [None] * len(known)
    return [
        {"errors": int(np.sum(p != y)), "known": capacity}
        for p, capacity in zip(predicted, known, strict=True)
    ]


def has_missing(X: RowsLike) -> bool:
    """Whether numbers are missing."""
    values = np.asarray(X)
    return values.dtype.kind == "f" and bool(np.isnan(values).any())


def measure_risks_beside(
    fitted: Model,
    sizes: Sequence[int] | None,
    X: RowsLike,
    y: AnyArray,
    test_X: RowsLike,
    test_y: AnyArray,
) -> list[dict[str, Any]]:
    """Likewise, with the errors on other rows."""
    readings = measure_risks(fitted, sizes, X, y)
    others = predictions_of(fitted, sizes, test_X)
    return [
        reading | {"others": int(np.sum(p != test_y))}
        for reading, p in zip(readings, others, strict=True)
    ]


def stated_capacity(
    stated: StatedCapacity | None, name: str, model: Model, d: int, n: int
) -> Capacity | None:
    """What a user says of a candidate: a number (its VC dimension), a mapping of inputs, a
    function, or a dict of names.
    """
    given = stated(model, d, n) if callable(stated) else stated
    if isinstance(given, Mapping) and not set(given) <= {key for keys in _BOUNDS for key in keys}:
        return stated_capacity(given.get(name), name, model, d, n)
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {key: float(value) for key, value in given.items()}
    return {"vc_dimension": float(given)}


def bound_for(
    capacity: Capacity, bound: Theorem[..., Any] | None, name: str
) -> tuple[Theorem[..., Any], Capacity]:
    """The theorem for a capacity, and the capacity in its words; a vote's rounds never go
    unnoticed.
    """
    if bound is None:
        bound = _BOUNDS.get(frozenset(capacity))
        if bound is None:
            raise ValueError(
                f"the capacity of {name!r} must name inputs of a capacity bound, not"
                f" {', '.join(capacity)}"
            )
    inputs = {
        p.name for p in bound.signature.parameters.values() if p.default is p.empty
    } - _MEASURED
    if set(capacity) == {"size"} and inputs == {"vc_dimension"}:
        capacity = {"vc_dimension": float(max(1, math.floor(math.log2(capacity["size"]))))}
    if not inputs <= set(capacity) or ("rounds" in capacity and "rounds" not in inputs):
        raise ValueError(
            f"{bound.key} needs {' and '.join(sorted(inputs))}, but the capacity of {name!r} is"
            f" given by {' and '.join(sorted(capacity))}: pass capacity= or another bound="
        )
    return bound, {name: value for name, value in capacity.items() if name in inputs}
