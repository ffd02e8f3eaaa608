"""Criteria that compare losses on rows that were not fitted on: holdout, cross-validation,
leave-one-out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from surelearn.bounds import clopper_pearson
from surelearn.claim import Claim, Covers
from surelearn.lacking import Lacking
from surelearn.selection.costs import Costs
from surelearn.selection.criteria.criterion import (
    DEPENDENT,
    GUARANTEE,
    JUDGMENT,
    Comparison,
    Criterion,
)
from surelearn.selection.criteria.problem import SelectionProblem, predict_folds
from surelearn.selection.cross_validation import (
    FoldOutcome,
    Pairs,
    Resampling,
    average,
    default_resampling,
    forward,
    losses_of,
    mean_and_error,
    resample,
)
from surelearn.types import AnyArray, Array

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
        """Mean losses and their standard errors; where the problem has costs, mean costs (∞
        without probabilities).
        """
        how, pairs = self.plan(problem)
        outcomes = predict_folds(problem, pairs)
        y, values, spreads, folds, rows = problem.y, [], [], [], []
        for outcome in outcomes:
            if problem.costs is None:
                losses = [
                    losses_of(r["predictions"], y[test], problem.task)
                    for r, (_, test) in zip(outcome, pairs, strict=True)
                ]
                rows.append(average(losses, pairs, y.size))
            else:
                rows.append(_costs(problem, problem.costs, _scores(outcome, pairs, y)))
                losses = [rows[-1][test] for _, test in pairs]
            mean, spread = (
                (np.inf, 0.0)
                if np.isnan(rows[-1]).all()
                else mean_and_error(rows[-1], problem.groups)
            )
            values.append(mean)
            spreads.append(spread)
            folds.append(tuple(float(fold.mean()) for fold in losses))
        losses = np.stack(rows, axis=1)
        return Comparison(
            values=values,
            standard_errors=spreads,
            fold_errors=folds,
            how=how,
            losses=losses,
            scores=lambda chosen: _scores(outcomes[chosen], pairs, y),
            claim=lambda chosen: self.claim(problem, losses[:, chosen], losses.shape[1]),
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
        """Clopper–Pearson at δ over the number of candidates; not for groups, costs and unbounded
        losses.
        """
        if problem.costs is not None:
            return Lacking(
                GUARANTEE,
                "candidates were compared by their costs, each at a threshold that the held-out"
                " rows chose",
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
    """Folds that follow n: three times five below 300 rows, ten up to 5,000, five beyond."""

    name: ClassVar[str] = "cross-validation"
    chooses: ClassVar[str] = "mean loss on rows not fitted on, in folds that follow n"
    cost: ClassVar[str] = "15 fits a candidate below 300 rows, 10 up to 5,000, 5 beyond"

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


def _costs(problem: SelectionProblem, costs: Costs, scores: Array | None) -> Array:
    """Each row's cost, out of fold; NaN for all of them where there are no probabilities."""
    if scores is None:
        return np.full(problem.y.size, np.nan)
    return costs.of_rows(
        scores[:, np.unique(problem.y).tolist().index(costs.positive)], problem.y, problem.groups
    )


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


def _scores(outcome: Sequence[FoldOutcome], pairs: Pairs, y: AnyArray) -> Array | None:
    """Out-of-fold probabilities, averaged over repeats; None where a fold lacks a class or the
    model has none.
    """
    classes = np.unique(y)
    kept = [
        result["scores"]
        for result in outcome
        if "scores" in result and np.array_equal(result.get("classes", ()), classes)
    ]
    return average(kept, pairs, y.size) if len(kept) == len(outcome) else None
