"""Criteria to choose a model by: one interface for any candidates and for nested families.

``select(candidates, X, y, criterion="srm")`` takes a name, or a criterion with its settings:
``criterion=StructuralRisk(bound=vapnik)``. `criteria()` lists them all with their cost in fits and
what they guarantee.
"""

from __future__ import annotations

from surelearn.selection.criteria.criterion import Comparison, Criterion
from surelearn.selection.criteria.information import AIC, BIC, AICc
from surelearn.selection.criteria.margins import Margin
from surelearn.selection.criteria.problem import NestedFamily, SelectionProblem, units_of
from surelearn.selection.criteria.resampled import (
    CrossValidation,
    Holdout,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    Resampled,
    Stated,
)
from surelearn.selection.criteria.stability import Stability
from surelearn.selection.criteria.structural import AdjustedStructuralRisk, StructuralRisk
from surelearn.selection.cross_validation import Resampling


def criteria() -> tuple[Criterion, ...]:
    """Every criterion, with its settings as they are unless told.

    Examples
    --------
    >>> {criterion.name: criterion.fits(candidates=8, n=600) for criterion in criteria()}["adjusted-srm"]
    16
    """
    resampled = (CrossValidation(), Holdout(), KFold(), RepeatedKFold(), LeaveOneOut())
    return (
        *resampled,
        AIC(),
        AICc(),
        BIC(),
        StructuralRisk(),
        AdjustedStructuralRisk(),
        Margin(),
        Stability(),
    )


def as_criterion(criterion: str | Criterion | Resampling) -> Criterion:
    """A criterion from its name, from a `Resampling`, or as it is."""
    if isinstance(criterion, Criterion):
        return criterion
    if isinstance(criterion, Resampling):
        return Holdout() if criterion.kind == "holdout" else Stated(how=criterion)
    known = {each.name: each for each in criteria()}
    if not isinstance(criterion, str) or criterion not in known:
        raise ValueError(
            f"criterion must be one of {', '.join(known)}, a Criterion or a Resampling, not"
            f" {criterion!r}"
        )
    return known[criterion]


__all__ = [
    "AIC",
    "BIC",
    "AICc",
    "AdjustedStructuralRisk",
    "Comparison",
    "Criterion",
    "CrossValidation",
    "Holdout",
    "KFold",
    "LeaveOneOut",
    "Margin",
    "NestedFamily",
    "RepeatedKFold",
    "Resampled",
    "SelectionProblem",
    "Stability",
    "StructuralRisk",
    "as_criterion",
    "criteria",
    "units_of",
]
