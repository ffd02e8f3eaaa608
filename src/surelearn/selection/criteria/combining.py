"""Candidates calibrated and put together by their out-of-fold answers: no further fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from surelearn.selection.candidates import AVERAGE, STACK, Candidate
from surelearn.selection.combined import (
    CombinedClassifier,
    CombinedRegressor,
    greedy_weights,
    pooled,
    stacked_weights,
)
from surelearn.selection.criteria.judging import Judge, Judged
from surelearn.selection.cross_validation import mean_and_error
from surelearn.selection.metrics import CLIP
from surelearn.types import AnyArray, Array, Ints

CONSIDERED = 8  # of the best candidates, for an ensemble


def with_combinations(judge: Judge, found: Sequence[Judged]) -> list[Judged]:
    """The candidates, with calibrated probabilities where those are better by more than a
    standard error, then an average of some of them and, for classes, a stacked linear model.

    Calibrations, weights and stacked models are judged on parts of the rows that did not choose
    them.
    """
    parts = _parts(judge)
    if judge.problem.task == "regression":
        return [*found, *_average_of_numbers(judge, found, parts)]
    if any(one.answers.probabilities is None for one in found) or (parts < 0).all():
        return list(found)
    found = [_calibrated(judge, one, parts) for one in found]
    return [*found, *_pools(judge, found, parts)]


def _parts(judge: Judge) -> Ints:
    """(n,), the fold that each row was tested in (the last, where repeated); −1: never. Select rows,
    which are one fold, are divided in five, groups kept whole.
    """
    part = np.full(judge.y.size, -1)
    for k, (_, test) in enumerate(judge.pairs):
        part[test] = k
    if len(judge.pairs) == 1:
        test, groups = judge.pairs[0][1], judge.problem.groups
        units = test if groups is None else np.asarray(groups)[test]
        part[test] = np.unique(units, return_inverse=True)[1] % 5
    return np.where(part < 0, -1, np.unique(part, return_inverse=True)[1])


def _others(parts: Ints) -> Iterator[tuple[AnyArray, AnyArray]]:
    """Masks of the rows of all other parts, and of a part; five parts at most."""
    tested = parts >= 0
    fewer = np.where(tested, parts % 5, -1)
    for k in np.unique(fewer[tested]):
        here = fewer == k
        others = tested & ~here
        yield (others if others.any() else here), here


def _calibrated(judge: Judge, one: Judged, parts: Ints) -> Judged:
    """The candidate with calibrated probabilities, if those have less log loss."""
    logs, codes = _logs(one), _codes(judge)
    found = np.full(logs.shape, np.nan)
    for others, here in _others(parts):
        weights, offsets = stacked_weights([logs[others]], codes[others])
        found[here] = pooled([logs[here]], weights, offsets)
    tested = parts >= 0
    gain = _log_loss(np.exp(logs[tested]), codes[tested]) - _log_loss(found[tested], codes[tested])
    groups = judge.problem.groups
    mean, spread = mean_and_error(gain, None if groups is None else np.asarray(groups)[tested])
    if not mean > spread:
        return one
    weights, offsets = stacked_weights([logs[tested]], codes[tested])
    inside = one.candidate.model
    members = (
        inside.estimators
        if isinstance(inside, CombinedClassifier) and len(inside.estimators) == 1
        else [(one.candidate.name, inside)]
    )
    model = CombinedClassifier(members, weights.tolist(), offsets.tolist(), "logarithmic")
    return _judged(judge, replace(one.candidate, model=model, calibrated=True), found)


def _pools(judge: Judge, found: Sequence[Judged], parts: Ints) -> list[Judged]:
    """The average of some candidates, and a linear model stacked on them; nothing where one
    candidate is best alone.
    """
    codes, tested = _codes(judge), parts >= 0
    few = sorted(found, key=lambda one: one.value)[:CONSIDERED]
    logs = [_logs(one) for one in few]
    sure = [np.exp(one)[np.arange(codes.size), codes] for one in logs]

    def weights_on(rows: AnyArray) -> Array:
        return greedy_weights([one[rows] for one in sure], _of_chance)

    final = weights_on(tested)
    kept = np.flatnonzero(final)
    if kept.size < 2:
        return []
    shape = logs[0].shape
    average, stack = np.full(shape, np.nan), np.full(shape, np.nan)
    for others, here in _others(parts):
        average[here] = pooled([one[here] for one in logs], weights_on(others), None)
        weights, offsets = stacked_weights([logs[i][others] for i in kept], codes[others])
        stack[here] = pooled([logs[i][here] for i in kept], weights, offsets)
    chosen = [few[i].candidate for i in kept]
    members = [(one.name, one.model) for one in chosen]
    first = CombinedClassifier(members, final[kept].tolist())
    weights, offsets = stacked_weights([logs[i][tested] for i in kept], codes[tested])
    second = CombinedClassifier(members, weights.tolist(), offsets.tolist(), "logarithmic")
    return [
        _judged(judge, Candidate(name=name, model=model, settings=_told(members, shares)), answers)
        for name, model, shares, answers in (
            (AVERAGE, first, final[kept], average),
            (STACK, second, weights, stack),
        )
    ]


def _average_of_numbers(judge: Judge, found: Sequence[Judged], parts: Ints) -> list[Judged]:
    tested, y = parts >= 0, np.asarray(judge.y, dtype=float)
    few = sorted(found, key=lambda one: one.value)[:CONSIDERED]
    values = [np.asarray(one.answers.predictions, dtype=float) for one in few]
    squared = judge.metric is not None and judge.metric.name == "squared"
    size: Callable[[Array], Array] = np.square if squared else np.abs

    def weights_on(rows: AnyArray) -> Array:
        return greedy_weights([one[rows] for one in values], lambda mean: size(mean - y[rows]))

    final = weights_on(tested)
    kept = np.flatnonzero(final)
    if kept.size < 2:
        return []
    answers = np.full(y.shape, np.nan)
    for others, here in _others(parts):
        shares = weights_on(others)
        answers[here] = sum(share * one[here] for share, one in zip(shares, values, strict=True))
    members = [(few[i].candidate.name, few[i].candidate.model) for i in kept]
    model = CombinedRegressor(members, final[kept].tolist())
    candidate = Candidate(name=AVERAGE, model=model, settings=_told(members, final[kept]))
    folds = [judge.answers(answers[test], None, test) for _, test in judge.pairs]
    return [judge.judged(candidate, folds, None)]


def _judged(judge: Judge, candidate: Candidate, probabilities: Array) -> Judged:
    """A candidate that answers with the most probable class."""
    folds = [
        judge.answers(judge.classes[probabilities[test].argmax(axis=1)], probabilities[test], test)
        for _, test in judge.pairs
    ]
    return judge.judged(candidate, folds, probabilities)


def _told(members: Sequence[tuple[str, Any]], weights: Array) -> str:
    shares = weights / weights.sum()
    parts = [f"{share:.0%} {name}" for (name, _), share in zip(members, shares, strict=True)]
    return " + ".join(parts)


def _codes(judge: Judge) -> Ints:
    return np.searchsorted(judge.classes, judge.y)


def _logs(one: Judged) -> Array:
    """Out-of-fold log-probabilities, (n, classes)."""
    if one.answers.probabilities is None:
        raise ValueError(f"{one.candidate.name} gives no probabilities")
    return np.log(np.clip(one.answers.probabilities, CLIP, 1.0))


def _of_chance(chance: Array) -> Array:
    return -np.log(np.clip(chance, CLIP, 1.0))


def _log_loss(probabilities: Array, codes: Ints) -> Array:
    return _of_chance(probabilities[np.arange(codes.size), codes])
