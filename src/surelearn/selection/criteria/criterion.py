"""What every criterion says of itself, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from surelearn.claim import Claim
from surelearn.lacking import Lacking
from surelearn.selection.candidates import Candidate
from surelearn.selection.criteria.problem import SelectionProblem
from surelearn.selection.cross_validation import Resampling
from surelearn.selection.metrics import Metric
from surelearn.types import Array

JUDGMENT = "judgment of the candidates"
GUARANTEE = "guarantee of the chosen candidate"
DEPENDENT = "rows of a group are not independent"


def no_scores(chosen: int) -> Array | None:  # noqa: ARG001
    """Probabilities of a candidate, for a criterion that computes none."""
    return None


def unclaimed(reason: str) -> Callable[[int], Lacking]:
    """Nothing certified of any candidate, for one reason."""
    return lambda chosen: Lacking(GUARANTEE, reason)  # noqa: ARG005


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """A criterion's answer; the candidate with the least value is best.

    Attributes
    ----------
    values, standard_errors : of each candidate
    fold_errors : each candidate's mean loss on each fold, where there are folds
    losses : (n, candidates), the loss of each row not fitted on (NaN: never tested), where there
        are such rows
    scores, predictions : the probabilities, or the predictions of rows not fitted on, of a candidate,
        by its position
    details : what the values are made of
    claim : what is certified of the candidate at a position, or why nothing is
    candidates : those that were judged, where they are not the problem's one by one
    metric : what the values are, on rows not fitted on; None: costs, or the criterion's own
    rows : the metric's loss of each row, (n,), of each candidate, where it has such
    mean_losses : of each candidate, the mean of ``losses``
    """

    values: Sequence[float]
    standard_errors: Sequence[float]
    fold_errors: Sequence[tuple[float, ...]]
    how: Resampling | Criterion
    claim: Callable[[int], Claim | Lacking]
    losses: Array | None = None
    scores: Callable[[int], Array | None] = no_scores
    predictions: Callable[[int], Array | None] = no_scores
    details: Mapping[str, Any] = field(default_factory=dict)
    candidates: Sequence[Candidate] | None = None
    metric: Metric | None = None
    rows: Sequence[Array | None] = ()
    mean_losses: Sequence[float] = ()


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

    def refusal(self, problem: SelectionProblem) -> Lacking | None:  # noqa: ARG002
        """Why this criterion cannot judge these candidates on these rows, as far as is known
        before any fit; else None.
        """
        return None

    def compare(self, problem: SelectionProblem) -> Comparison:
        """Judge every candidate."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.chooses


def two_classes(criterion: Criterion, problem: SelectionProblem) -> Lacking | None:
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
