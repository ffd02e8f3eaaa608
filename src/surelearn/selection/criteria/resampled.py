"""Criteria that compare losses on rows that were not fitted on: holdout, cross-validation,
leave-one-out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from surelearn.bounds import clopper_pearson
from surelearn.claim import Claim, Covers
from surelearn.lacking import Lacking
from surelearn.selection.criteria.criterion import (
    DEPENDENT,
    GUARANTEE,
    JUDGMENT,
    Comparison,
    Criterion,
)
from surelearn.selection.criteria.judging import Judge, best_of_families
from surelearn.selection.criteria.problem import SelectionProblem, narrowed, predict_folds
from surelearn.selection.cross_validation import (
    Pairs,
    Resampling,
    default_resampling,
    forward,
    resample,
)
from surelearn.types import Array

STEPS = 5  # of forward chaining, at most
NOT_CERTIFIED = (
    "every row took part in a fit that was compared: only untouched rows can certify the chosen"
    " candidate"
)


@dataclass(frozen=True, kw_only=True)
class Resampled(Criterion):
    """The least mean loss on rows not fitted on."""

    guarantee: ClassVar[str] = (
        "nothing: the least of several estimates is too low, and no union bound repairs it; certify"
        " on untouched rows"
    )

    def plan(self, problem: SelectionProblem) -> tuple[Resampling, Pairs]:
        """How rows are taken in turn, and pairs of fitting and testing rows."""
        units = problem.y.size if problem.groups is None else np.unique(problem.groups).size
        how = self.resampling(problem.y.size, units)
        if problem.time is not None and how.kind == "k-fold":
            return _forward(problem, problem.time, how.folds)
        stratify = problem.task == "classification"
        return how, resample(
            how,
            problem.y,
            groups=problem.groups,
            stratify=stratify,
            random_state=problem.random_state,
        )

    def resampling(self, n: int, units: int) -> Resampling:
        """How n rows, in so many groups, are taken in turn."""
        raise NotImplementedError

    def fits(self, candidates: int, n: int) -> int:
        """One fit a candidate and fold."""
        how = self.resampling(n, n)
        return candidates * (n if how.kind == "leave-one-out" else how.folds * how.repeats)

    def compare(self, problem: SelectionProblem) -> Comparison:
        """The metric's values and their standard errors; where the problem has costs, mean costs
        (∞ without probabilities).
        """
        how, pairs = self.plan(problem)
        judge, compared = Judge(problem, pairs), len(problem.candidates)
        problem = narrowed(problem, pairs, judge.of_fold)
        outcomes = predict_folds(problem, pairs)
        judge = judge.for_all(outcomes)
        found = best_of_families(problem, judge.each(problem.candidates, outcomes))
        if problem.combine:
            from surelearn.selection.criteria.combining import with_combinations

            found = with_combinations(judge, found)
        losses = np.stack([one.losses for one in found], axis=1)
        return Comparison(
            candidates=[one.candidate for one in found],
            values=[one.value for one in found],
            standard_errors=[one.spread for one in found],
            fold_errors=[one.folds for one in found],
            mean_losses=[one.mean_loss for one in found],
            metric=None if judge.metric is None else judge.metric,
            rows=[one.rows for one in found],
            how=how,
            losses=losses,
            scores=lambda chosen: found[chosen].answers.probabilities,
            predictions=lambda chosen: found[chosen].answers.predictions,
            claim=lambda chosen: self.claim(problem, losses[:, chosen], compared),
        )

    def claim(self, problem: SelectionProblem, losses: Array, candidates: int) -> Claim | Lacking:  # noqa: ARG002
        """What is certified of a candidate with these losses, (n,), chosen among so many."""
        return Lacking(GUARANTEE, NOT_CERTIFIED)


@dataclass(frozen=True, kw_only=True)
class Holdout(Resampled):
    """Fit on some rows, compare on the held-out ones."""

    name: ClassVar[str] = "holdout"
    chooses: ClassVar[str] = "mean loss on held-out rows"
    cost: ClassVar[str] = "1 fit a candidate"
    guarantee: ClassVar[str] = (
        "with candidates fixed beforehand, an error rate of the chosen one, as fitted without the"
        " held-out rows, at δ divided by the number of candidates (Clopper–Pearson); a refit on all"
        " rows is not covered"
    )
    needs: ClassVar[str] = "held_out=, the positions of rows to compare on"

    def resampling(self, n: int, units: int) -> Resampling:  # noqa: ARG002
        """One pair."""
        return Resampling(kind="holdout", folds=1)

    def refusal(self, problem: SelectionProblem) -> Lacking | None:
        """Without rows to compare on."""
        if problem.held_out is None or len(problem.held_out) == 0:
            return Lacking(
                JUDGMENT,
                "criterion='holdout' needs held_out=, the positions of the rows to compare on",
            )
        return None

    def plan(self, problem: SelectionProblem) -> tuple[Resampling, Pairs]:
        """The held-out rows, and all others to fit on."""
        test = np.asarray(problem.held_out)
        train = np.setdiff1d(np.arange(problem.y.size), test)
        # other groups may go on while the held-out ones begin
        if problem.time is not None and problem.groups is not None:
            time = np.asarray(problem.time)
            train = train[time[train] < time[test].min()]
            if not train.size:
                raise ValueError("no row came before the held-out groups: leave out --select")
        return Resampling(kind="holdout", folds=1), [(train, test)]

    def claim(self, problem: SelectionProblem, losses: Array, candidates: int) -> Claim | Lacking:
        """Clopper–Pearson at δ over the number of candidates; not for groups, rows in time, costs
        and unbounded losses.
        """
        if problem.costs is not None:
            return Lacking(
                GUARANTEE,
                "candidates were compared by their costs, each at a threshold that the held-out"
                " rows chose",
            )
        if (
            problem.metric is not None
            and problem.metric.threshold is not None
            and np.unique(problem.y).size == 2
        ):
            return Lacking(
                GUARANTEE,
                f"by {problem.metric.label} each candidate answers at a threshold that the held-out"
                " rows chose",
            )
        if problem.combine:
            return Lacking(
                GUARANTEE,
                "probabilities were calibrated and an ensemble was weighted on the held-out rows",
            )
        if problem.time is not None:
            return Lacking(
                GUARANTEE,
                "rows are ordered in time: those held out measure the past, they do not bound the"
                " future",
            )
        if problem.task != "classification":
            return Lacking(GUARANTEE, "the absolute error has no stated bound")
        if problem.groups is not None:
            return Lacking(GUARANTEE, DEPENDENT)
        held_out = losses[~np.isnan(losses)]
        return clopper_pearson.certify(
            int(held_out.sum()),
            held_out.size,
            problem.delta,
            candidates=candidates,
            assumptions=(
                (
                    "candidates were fixed before seeing the held-out rows, and these were not"
                    " compared on before"
                ),
            ),
            covers=Covers(
                predictor="the chosen candidate, fitted on the rows not held out", rows="held out"
            ),
        )


@dataclass(frozen=True, kw_only=True)
class CrossValidation(Resampled):
    """Five folds, three times below 300 rows."""

    name: ClassVar[str] = "cross-validation"
    chooses: ClassVar[str] = "mean loss on rows not fitted on, in five folds"
    cost: ClassVar[str] = "15 fits a candidate below 300 rows, 5 from there on"

    def resampling(self, n: int, units: int) -> Resampling:
        """As `default_resampling` says, but no more folds than groups."""
        how = default_resampling(n)
        return Resampling(folds=min(how.folds, units), repeats=how.repeats)


@dataclass(frozen=True, kw_only=True)
class KFold(Resampled):
    """Folds as stated; no more of them than rows or groups."""

    name: ClassVar[str] = "k-fold"
    chooses: ClassVar[str] = "mean loss on rows not fitted on, in ten folds"
    cost: ClassVar[str] = "10 fits a candidate"
    folds: int = 10
    repeats: int = 1

    def resampling(self, n: int, units: int) -> Resampling:  # noqa: ARG002
        """As stated."""
        return Resampling(folds=min(self.folds, units), repeats=self.repeats)


@dataclass(frozen=True, kw_only=True)
class RepeatedKFold(KFold):
    """Ten folds, drawn five times."""

    name: ClassVar[str] = "repeated-k-fold"
    chooses: ClassVar[str] = "mean loss on rows not fitted on, in ten folds drawn five times"
    cost: ClassVar[str] = "50 fits a candidate"
    repeats: int = 5


@dataclass(frozen=True, kw_only=True)
class LeaveOneOut(Resampled):
    """Every row by itself."""

    name: ClassVar[str] = "leave-one-out"
    chooses: ClassVar[str] = "mean loss on each row, fitted on all others"
    cost: ClassVar[str] = (
        "n fits a candidate; 1 where there is a closed form (least squares and ridge regression)"
    )

    def resampling(self, n: int, units: int) -> Resampling:  # noqa: ARG002
        """N folds of one row."""
        return Resampling(kind="leave-one-out", folds=n)


@dataclass(frozen=True, kw_only=True)
class Stated(Resampled):
    """A `Resampling` as a user gives it."""

    name: ClassVar[str] = "resampling"
    chooses: ClassVar[str] = "mean loss on rows not fitted on"
    cost: ClassVar[str] = "folds × repeats fits a candidate"
    how: Resampling

    def resampling(self, n: int, units: int) -> Resampling:  # noqa: ARG002
        """As given."""
        return self.how


def _forward(
    problem: SelectionProblem, time: npt.ArrayLike, folds: int
) -> tuple[Resampling, Pairs]:
    """Steps in time; a step before which only one class was seen is left out."""
    pairs = forward(time, min(folds, STEPS), problem.groups)
    if problem.task == "classification":
        pairs = [(train, test) for train, test in pairs if np.unique(problem.y[train]).size > 1]
    if not pairs:
        raise ValueError(
            "the rows to fit on cannot be divided in time: too few times, or one class only in the"
            " first ones"
        )
    return Resampling(kind="forward", folds=len(pairs)), pairs
