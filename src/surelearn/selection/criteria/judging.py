"""What candidates are worth on rows that they were not fitted on: by a metric or by costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from surelearn.selection.candidates import Candidate
from surelearn.selection.criteria.problem import SelectionProblem
from surelearn.selection.cross_validation import (
    FoldOutcome,
    Pairs,
    Positions,
    aligned,
    average,
    losses_of,
    mean_and_error,
)
from surelearn.selection.metrics import METRICS, Answers, Metric, fold_value
from surelearn.types import AnyArray, Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Judged:
    """A candidate with what it is worth.

    Attributes
    ----------
    answers : out of fold, averaged over repeats; NaN for rows that were never tested on
    value, spread : by the metric, or the mean cost; its standard error
    folds : the value on each fold
    rows : (n,), the metric's loss of each row; None for a metric that has none
    losses : (n,), 0 or 1 for a class and the absolute error for a number, or the cost
    mean_loss : their mean
    """

    candidate: Candidate
    answers: Answers
    value: float
    spread: float
    folds: tuple[float, ...]
    rows: Array | None
    losses: Array
    mean_loss: float


@dataclass(frozen=True, eq=False)
class Judge:
    """How answers are judged: ``metric`` is None where the problem's costs are what counts."""

    problem: SelectionProblem
    pairs: Pairs
    metric: Metric | None = None

    @property
    def y(self) -> AnyArray:
        """The labels or numbers."""
        return self.problem.y

    @property
    def classes(self) -> AnyArray:
        """The labels, sorted; none for numbers."""
        return np.unique(self.y) if self.problem.task == "classification" else np.zeros(0)

    def of_fold(self, outcome: FoldOutcome, test: Positions) -> float:
        """The value on one fold, to choose settings by: what is asked for, else log loss where
        there are probabilities.
        """
        scores = aligned(outcome, self.classes)
        answers = self.answers(outcome["predictions"], scores, test)
        metric = _usual(self.problem, scores is not None)
        if scores is not None and self._has_threshold(metric):
            whole = np.full((self.y.size, 2), np.nan)
            whole[test] = scores
            answers = replace(answers, predictions=self._said(metric, whole, test, test))
        return fold_value(metric, answers)

    def for_all(self, outcomes: Sequence[Sequence[FoldOutcome]]) -> Judge:
        """With the metric that all candidates can be compared by."""
        if self.problem.costs is not None:
            return self
        probable = all("scores" in fold for outcome in outcomes for fold in outcome)
        metric = _usual(self.problem, probable)
        if metric.needs == "probabilities" and not probable:
            raise ValueError(
                f"metric {metric.name!r} needs probabilities, and a candidate gives none: name"
                " another metric, or candidates with predict_proba"
            )
        return replace(self, metric=metric)

    def each(
        self, candidates: Sequence[Candidate], outcomes: Sequence[Sequence[FoldOutcome]]
    ) -> list[Judged]:
        """Every candidate, judged by what its folds answered."""
        found = []
        for candidate, outcome in zip(candidates, outcomes, strict=True):
            scores = [aligned(fold, self.classes) for fold in outcome]
            known = [one for one in scores if one is not None]
            mean = average(known, self.pairs, self.y.size) if len(known) == len(scores) else None
            folds = [
                self.answers(fold["predictions"], score, test)
                for fold, score, (_, test) in zip(outcome, scores, self.pairs, strict=True)
            ]
            found.append(self.judged(candidate, folds, mean))
        return found

    def judged(
        self, candidate: Candidate, folds: Sequence[Answers], probabilities: Array | None
    ) -> Judged:
        """A candidate, by its answers on each fold; ``probabilities`` are those of all rows."""
        n, groups = self.y.size, self.problem.groups
        folds = self._at_thresholds(folds, probabilities)
        losses = average(
            [losses_of(fold.predictions, fold.y, self.problem.task) for fold in folds],
            self.pairs,
            n,
        )
        together = self._together(folds, probabilities)
        rows: Array | None
        if self.metric is None:
            losses = rows = self._costs(probabilities)
            values = [float(rows[test].mean()) for _, test in self.pairs]
        else:
            values = [fold_value(self.metric, fold) for fold in folds]
            per_row = self.metric.losses
            rows = (
                None
                if per_row is None
                else average([per_row(fold) for fold in folds], self.pairs, n)
            )
        if rows is None:
            spread = (
                float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
            )
            value = float(np.mean(values))
        elif np.isnan(rows).all():
            value, spread = np.inf, 0.0
        else:
            value, spread = mean_and_error(rows, groups)
        mean_loss = np.inf if np.isnan(losses).all() else mean_and_error(losses, groups)[0]
        return Judged(
            candidate=candidate, answers=together, value=value, spread=spread, folds=tuple(values), rows=rows,
            losses=losses, mean_loss=mean_loss,
        )  # fmt: skip

    def _has_threshold(self, metric: Metric | None) -> bool:
        return metric is not None and metric.threshold is not None and self.classes.size == 2

    def _at_thresholds(
        self, folds: Sequence[Answers], probabilities: Array | None
    ) -> Sequence[Answers]:
        """Answers by the metric's best threshold on the rows of the other folds; of select rows, on
        those of four parts of five, groups kept whole.
        """
        metric = self.metric
        if metric is None or probabilities is None or not self._has_threshold(metric):
            return folds
        tested = ~np.isnan(probabilities[:, 0])
        found: list[Answers] = []
        for fold, (_, test) in zip(folds, self.pairs, strict=True):
            others = tested.copy()
            others[test] = False
            if others.any():
                said = self._said(metric, probabilities, np.flatnonzero(others), test)
            else:
                groups = self.problem.groups
                units = test if groups is None else np.asarray(groups)[test]
                part = np.unique(units, return_inverse=True)[1] % 5
                said = np.array(fold.predictions)
                for k in np.unique(part):
                    rest = test[part != k] if (part != k).any() else test
                    said[part == k] = self._said(metric, probabilities, rest, test[part == k])
            found.append(replace(fold, predictions=said))
        return found

    def _said(
        self, metric: Metric, probabilities: Array, chosen_on: Positions, rows: Positions
    ) -> AnyArray:
        """Labels of some rows, at the best threshold on others."""
        column = self.classes.tolist().index(self.answers(self.y[:0], None, rows[:0]).matters)
        p, is_positive = probabilities[:, column], self.y == self.classes[column]
        assert metric.threshold is not None  # noqa: S101 - asked before
        cut = metric.threshold(p[chosen_on], is_positive[chosen_on])
        return np.where(p[rows] >= cut, self.classes[column], self.classes[1 - column])

    def answers(
        self, predictions: AnyArray, probabilities: Array | None, rows: Positions
    ) -> Answers:
        """Answers for some rows."""
        positive = None if self.problem.costs is None else self.problem.costs.positive
        positive = self.problem.positive if positive is None else positive
        return Answers(self.y[rows], predictions, probabilities, self.classes, positive)

    def _together(self, folds: Sequence[Answers], probabilities: Array | None) -> Answers:
        """All rows: numbers averaged over repeats, labels of the last one."""
        if self.problem.task == "regression":
            values = [np.asarray(fold.predictions, dtype=float) for fold in folds]
            return self.answers(average(values, self.pairs, self.y.size), None, _all(self.y))
        said = self.y.copy()
        for fold, (_, test) in zip(folds, self.pairs, strict=True):
            said[test] = fold.predictions
        return self.answers(said, probabilities, _all(self.y))

    def _costs(self, probabilities: Array | None) -> Array:
        """Each row's cost, out of fold; NaN for all of them where there are no probabilities."""
        costs = self.problem.costs
        if probabilities is None or costs is None:
            return np.full(self.y.size, np.nan)
        column = self.classes.tolist().index(costs.positive)
        return costs.of_rows(probabilities[:, column], self.y, self.problem.groups)


def best_of_families(problem: SelectionProblem, found: Sequence[Judged]) -> list[Judged]:
    """Of the settings of each `Searched` candidate the best, under the candidate's name, where the
    first of them stood; all other candidates.
    """
    best: dict[str, Judged] = {}
    for unit, one in zip(problem.unit_of, found, strict=True):
        name = unit.family or one.candidate.name
        if name not in best or one.value < best[name].value:
            best[name] = replace(
                one, candidate=replace(one.candidate, name=name, settings=_settings(name, one))
            )
    return list(best.values())


def _settings(name: str, one: Judged) -> str:
    own = one.candidate.name
    return "" if own == name else own.removeprefix(f"{name}, ")


def _usual(problem: SelectionProblem, probable: bool) -> Metric:
    if problem.metric is not None:
        return problem.metric
    if problem.task == "regression":
        return METRICS["absolute"]
    return METRICS["log-loss" if probable else "accuracy"]


def _all(y: AnyArray) -> Positions:
    return np.arange(y.size)
