"""The thesis' criterion for AdaBoost (Section 5.4.1): the bound from the distribution of
margins, Theorem 3.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import issparse

from surelearn.bounds import boosting_margin_vc, smallest_margin, vc_dimension_of_stumps
from surelearn.claim import Claim, Covers
from surelearn.lacking import Lacking
from surelearn.selection.criteria.capacity import is_boosted_stumps, rounds_of
from surelearn.selection.criteria.criterion import (
    DEPENDENT,
    GUARANTEE,
    JUDGMENT,
    Comparison,
    Criterion,
    two_classes,
)
from surelearn.selection.criteria.problem import SelectionProblem, last_of, last_step
from surelearn.selection.cross_validation import column_count
from surelearn.selection.stages import at_sizes
from surelearn.types import AnyArray, Array, Model, RowsLike

_POINTS = 100


@dataclass(frozen=True, kw_only=True)
class Margin(Criterion):
    """The margin bound, at the threshold θ where it is least, or at a stated one.

    Theorem 3.5 holds for every θ and every number of rounds at once, so that neither choice costs
    confidence. For few rows θ must be so large that hardly a vote's margin passes it, and the
    criterion picks the smallest votes (thesis, Section 5.5).

    Parameters
    ----------
    threshold : θ, above `surelearn.bounds.smallest_margin` and at most 1; by default the best of a
        hundred
    """

    name: ClassVar[str] = "margin"
    chooses: ClassVar[str] = "bound from the margins of a vote"
    cost: ClassVar[str] = "1 fit a candidate"
    guarantee: ClassVar[str] = (
        "with probability 1 − δ the bound holds for every vote of stumps at once, so for the chosen"
        " one as fitted on these rows; above 100%, which says nothing, below tens of thousands of"
        " rows"
    )
    needs: ClassVar[str] = "two classes, and votes of decision stumps (AdaBoost)"

    threshold: float | None = None

    def refusal(self, problem: SelectionProblem) -> Lacking | None:
        """Anything but two classes and votes of stumps; too few rows."""
        for unit in problem.units:
            if not is_boosted_stumps(last_of(unit.model)):
                return Lacking(
                    JUDGMENT,
                    f"criterion {self.name!r} is for votes of decision stumps, which {unit.name!r}"
                    " is not: leave it out",
                )
        d = column_count(problem.X)
        least = _least_margin(problem.y.size, d)
        if least >= 1:
            return Lacking(
                JUDGMENT,
                f"criterion {self.name!r} needs more rows: with {problem.y.size} in {d} columns no"
                " margin is large enough",
            )
        if self.threshold is not None and not least < self.threshold <= 1:
            return Lacking(
                JUDGMENT,
                f"threshold must lie above {least:.4f} (smallest_margin) and be at most 1, not"
                f" {self.threshold!r}",
            )
        return two_classes(self, problem)

    def compare(self, problem: SelectionProblem) -> Comparison:
        """Each vote's bound."""
        n, d = problem.y.size, column_count(problem.X)
        stumps = float(vc_dimension_of_stumps(d))
        thetas = (
            np.linspace(_least_margin(n, d), 1, _POINTS + 1)[1:]
            if self.threshold is None
            else np.array([self.threshold])
        )
        # (candidates, thresholds)
        rates = np.array(problem.measure("margins", measure_margins, thresholds=thetas))
        bounds = boosting_margin_vc(rates, n, problem.delta, thetas, stumps)
        best = np.argmin(bounds, axis=1)
        at = np.arange(len(best))
        piped = any(last_of(unit.model) is not unit.model for unit in problem.units)

        def claim(chosen: int) -> Claim | Lacking:
            if piped:
                return Lacking(GUARANTEE, "what a pipeline's steps learn widens the class")
            if problem.groups is not None:
                return Lacking(GUARANTEE, DEPENDENT)
            theta, rate = float(thetas[best[chosen]]), float(rates[chosen, best[chosen]])
            covers = Covers(
                predictor="the chosen vote, fitted on all rows given", rows="all rows given"
            )
            return boosting_margin_vc.certify(rate, n, problem.delta, theta, stumps, covers=covers)

        return Comparison(
            values=bounds[at, best].tolist(),
            standard_errors=[0.0] * len(at),
            fold_errors=[()] * len(at),
            how=self,
            details={
                "thresholds": tuple(thetas[best].tolist()),
                "margin errors": tuple(rates[at, best].tolist()),
            },
            claim=claim,
        )


def _least_margin(n: int, d: int) -> float:
    stumps = float(vc_dimension_of_stumps(d))
    return float(smallest_margin(n, stumps)) if n >= stumps else float("inf")


def measure_margins(
    fitted: Model, sizes: Sequence[int] | None, X: RowsLike, y: AnyArray, thresholds: Array
) -> list[Array]:
    """For each member the fraction of rows whose margin is at most each threshold: what a task
    returns.
    """
    vote, rows = last_step(fitted, X)
    margins = at_sizes(staged_margins(vote, rows, y), sizes or (rounds_of(vote),))
    return [
        np.searchsorted(np.sort(margin), thresholds + 1e-12, side="right") / len(margin)
        for margin in margins
    ]


def staged_margins(fitted: Model, X: RowsLike, y: AnyArray) -> Iterator[Array]:
    """The normalized margins y·Σα_t·h_t(x)/Σα_t after each round, of a fitted vote with two
    classes.

    A learner that has ``staged_margins(X, y)`` is asked; otherwise its ``estimators_`` vote by
    ``estimator_weights_``.
    """
    if hasattr(fitted, "staged_margins"):
        yield from fitted.staged_margins(X, y)
        return
    positive = fitted.classes_[-1]
    signs = np.where(np.asarray(y) == positive, 1.0, -1.0)
    rows = X if issparse(X) else np.asarray(X)
    total, weights = np.zeros(len(signs)), 0.0
    for weak, weight in zip(fitted.estimators_, fitted.estimator_weights_, strict=False):
        total += weight * np.where(weak.predict(rows) == positive, 1.0, -1.0)
        weights += weight
        yield signs * total / weights
