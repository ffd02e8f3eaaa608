"""What every criterion says of itself, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from surelearn.claim import Claim
from surelearn.lacking import Lacking
from surelearn.selection.criteria.problem import Problem


def _nothing(chosen: int) -> Any:  # noqa: ARG001
    return None


JUDGMENT = "judgment of the candidates"


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """A criterion's answer; the candidate with the least value is best.

    Attributes
    ----------
    values, standard_errors : of each candidate
    fold_errors : each candidate's mean loss on each fold, where there are folds
    losses : (n, candidates), the loss of each row not fitted on (NaN: never tested), where there
        are such rows
    scores : the probabilities of a candidate, by its position
    details : what the values are made of
    claim : what is certified of the candidate at a position, where something is
    no_claim : why nothing is
    """

    values: Sequence[float]
    standard_errors: Sequence[float]
    fold_errors: Sequence[tuple[float, ...]]
    how: Any
    losses: Any = None
    scores: Callable[[int], Any] = _nothing
    details: Mapping[str, Any] = field(default_factory=dict)
    claim: Callable[[int], Claim | None] = _nothing
    no_claim: str = ""


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """By what a candidate is chosen; its fields are its settings.

    Attributes
    ----------
    name : how `select` and ``--criterion`` know it
    chooses : what the chosen candidate has the least of
    cost : fits, in words; a nested family is one candidate
    guarantee : what is certain about the chosen candidate
    needs : what it asks of candidates and rows; it is refused elsewhere
    rate : whether its values are error rates when candidates classify
    """

    name: ClassVar[str]
    chooses: ClassVar[str]
    cost: ClassVar[str]
    guarantee: ClassVar[str]
    needs: ClassVar[str] = "any candidates"
    rate: ClassVar[bool] = True

    def fits(self, candidates: int, n: int) -> int:  # noqa: ARG002
        """How many fits a comparison on n rows takes."""
        return candidates

    def refusal(self, problem: Problem) -> Lacking | None:  # noqa: ARG002
        """Why this criterion cannot judge these candidates on these rows, as far as is known
        before any fit; else None.
        """
        return None

    def compare(self, problem: Problem) -> Comparison:
        """Judge every candidate."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.chooses


def two_classes(criterion: Criterion, problem: Problem) -> Lacking | None:
    """The refusal of anything but two classes, which the bounds are for."""
    if problem.task == "classification" and np.unique(problem.y).size == 2:
        return None
    found = (
        f"there are {np.unique(problem.y).size} classes"
        if problem.task == "classification"
        else "the target is a number"
    )
    return Lacking(
        JUDGMENT,
        f"criterion {criterion.name!r} is for two classes, and {found}: choose by cross-validation",
    )
