"""Which thresholds a walk may try, and in which order: fixed on rows that are not certified, from where
the requirement is surest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.stats import binom

from surelearn.bounds import clopper_pearson_lower
from surelearn.bounds.thresholds import sure_rows
from surelearn.operating.requirement import Requirement
from surelearn.types import Array, Bools, Ints

LADDER_RULE = 2  # of a ladder, recorded with it; 1, not recorded, had one threshold for each rate
STEPS = 250  # thresholds where the walk is expected to end
FEW_STEPS = 24  # where it is not expected to end: the rest of the curve
_FAR, _NEAR = 1.1, 1.02  # by which a step calls more rows than the one before
_UNSURE = 0.001  # the probability of failing, and of passing, from which on steps are small
_BEYOND = 3.0  # standard errors past the level, up to which thresholds are tried


@dataclass(frozen=True)
class Rungs:
    """Thresholds in the order of a walk, and what the other rows make one expect of the first.

    Attributes
    ----------
    thresholds : (J,)
    expected : the rate, or the mean cost, at the first threshold; None where no row tells it
    share : of the rows (for sensitivity: of the positives; for specificity: of the others) that the
        first test counts
    rows : how many rows they were fixed on
    """

    thresholds: tuple[float, ...]
    expected: float | None
    share: float
    rows: int


def ladder(
    requirement: Requirement,
    scores: Array,
    good: Bools,
    certified: int,
    delta: float,
    cost: float | None = None,
) -> Rungs:
    """Thresholds for rows that are to be certified, and their order, from other rows.

    A sensitivity is surest at the lowest threshold, a specificity at the highest. Precision, and
    errors among the answered, start at one of the thresholds that are expected to leave at least
    ln δ/ln(level) certified rows (fewer could not show it even without an error), at the one where
    the first test is likeliest to pass; where none leaves so many, at the one whose bound is expected
    to come nearest. A mean cost has one threshold, the cheapest: more could not make it smaller.

    Any number of thresholds may be tried without a loss of δ, so they are dense: the walk then ends near
    the level even where one class has few rows.

    Parameters
    ----------
    requirement : what must be kept
    scores : (m,), of the class that matters or, for errors, the confidence of each answer
    good : (m,), whether the row is positive or, for errors, whether the answer is right
    certified : how many rows the walk will count
    delta : failure probability of each of its steps
    cost : for a mean cost, that of a missed positive where a false alarm costs 1

    Examples
    --------
    >>> scores, good = np.linspace(0.05, 0.95, 10), np.arange(10) >= 4
    >>> rungs = ladder(Requirement.parse("sensitivity >= 0.8"), scores, good, 500, 0.05)
    >>> rungs.thresholds[:4]
    (0.0, 0.125, 0.25, 0.3125)
    """
    probable = bool(scores.size) and scores.min() >= 0 and scores.max() <= 1
    cuts = _cuts(scores, probable=probable)  # ascending
    if requirement.quantity in ("sensitivity", "specificity"):
        return _of_one_class(requirement, cuts, scores, good, certified)
    if requirement.quantity == "mean_cost":
        return _cheapest(cuts, scores, good, cost or 1.0)
    return _of_the_called(requirement, cuts, scores, good, certified, delta)


def _cuts(scores: Array, *, probable: bool) -> Array:
    """Ascending thresholds that tell the scores apart, from one that calls every row to one that
    calls hardly any.
    """
    if not scores.size:
        return np.array([0.5])
    known = np.unique(scores)
    low, high = (0.0, 1.0) if probable else (known[0], np.nextafter(known[-1], math.inf))
    between = [_between(a, b) for a, b in pairwise(known.tolist())]
    return np.unique(np.concatenate(([low], between, [high])))


def _between(low: float, high: float) -> float:
    """A number above ``low`` and at most ``high`` with few binary digits, so that it is the same in
    single precision, and in print: the largest multiple of the largest power of two that has one.

    Examples
    --------
    >>> _between(0.7713, 0.7719), _between(1000.2, 1000.4)
    (0.771484375, 1000.25)
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return high
    step = 2.0 ** math.frexp(max(high - low, math.ulp(high)))[1]
    for _ in range(3):
        found = math.floor(high / step) * step
        if low < found <= high:
            return found
        step /= 2
    return (low + high) / 2


def _of_one_class(
    requirement: Requirement, cuts: Array, scores: Array, good: Bools, certified: int
) -> Rungs:
    """Sensitivity upwards from the lowest threshold, specificity downwards from the highest.

    Each test counts fewer rows of the class than the one before, so that more thresholds let the walk
    end nearer to the level, and never earlier. They lie at scores of rows of *both* classes: with few
    rows of its own class the steps between their scores would be large. Most of them lie where the
    walk is expected to end: three standard errors of either rate around the level.
    """
    rising = requirement.quantity == "sensitivity"
    own = np.sort(scores[good if rising else ~good])
    below = np.searchsorted(own, cuts, side="left") / max(own.size, 1)  # of the class, not called
    order = np.arange(cuts.size) if rising else np.arange(cuts.size)[::-1]
    kept = (1 - below if rising else below)[order]
    deviation = math.sqrt(requirement.level * (1 - requirement.level))
    here = deviation / math.sqrt(max(own.size, 1))
    there = deviation / math.sqrt(max(own.size * certified / max(scores.size, 1), 1))
    sure = int(np.sum(kept > requirement.level + _BEYOND * here + (_BEYOND + 2) * there))
    far = int(np.sum(kept >= requirement.level - _BEYOND * here))
    # the first, the sure ones, those that may be the last, and those that show the rest of the curve
    parts = [(0, 1), (1, sure), (max(sure, 1), far), (max(far, 1), cuts.size)]
    most = (1, FEW_STEPS, STEPS, FEW_STEPS)
    chosen = [_thinned(np.arange(*part), k) for part, k in zip(parts, most, strict=True)]
    thresholds = tuple(cuts[order[np.concatenate(chosen)]].tolist())
    return Rungs(thresholds, float(kept[0]), own.size / max(scores.size, 1), scores.size)


def _thinned(steps: Ints, most: int) -> Ints:
    """At most so many of the steps, evenly, with the first and the last one."""
    if steps.size <= most:
        return steps
    return steps[np.unique(np.linspace(0, steps.size - 1, most).astype(int))]


def _of_the_called(
    requirement: Requirement, cuts: Array, scores: Array, good: Bools, certified: int, delta: float
) -> Rungs:
    """From the strictest thresholds down, each calling about a tenth more rows than the one before and,
    where the walk is expected to end, a fiftieth: with a tenth there up to a tenth of the rows that could
    be called were not, and a smaller step hardly ever fails where the larger one would have passed.
    """
    order = np.argsort(scores, kind="stable")
    right = np.append(np.cumsum(good[order][::-1])[::-1], 0)  # from the i-th smallest score on
    first = np.searchsorted(scores[order], cuts, side="left")
    called, hits = scores.size - first, right[first]
    share = called / max(scores.size, 1)
    least = requirement.level if requirement.relation == ">=" else 1 - requirement.level
    enough = share * certified >= sure_rows(least, delta)
    rate = (hits + 0.5) / (called + 1)  # of rows that are right, held back a little
    power = _power(share, rate, least, certified, delta)
    if enough.any():
        start = _surest(enough, power)
    else:  # nothing can pass: where the bound is expected to come nearest
        n = np.maximum(np.floor(share * certified), 1)
        start = _surest(called > 0, clopper_pearson_lower(np.floor(rate * n), n, delta))
    chosen = [start]
    for i in range(start - 1, -1, -1):
        more = _NEAR if _UNSURE < power[i] < 1 - _UNSURE else _FAR
        if called[i] >= more * called[chosen[-1]] or (i == 0 and called[i] > called[chosen[-1]]):
            chosen.append(i)
    chosen = [chosen[i] for i in _thinned(np.arange(len(chosen)), STEPS)]
    measured = hits[start] / called[start] if called[start] else None
    if measured is not None and requirement.relation == "<=":
        measured = 1 - measured
    return Rungs(
        tuple(cuts[chosen].tolist()),
        None if measured is None else float(measured),
        float(share[start]),
        scores.size,
    )


def _surest(enough: Bools, power: Array) -> int:
    """The position of the largest power among those that are enough; of equal ones the strictest."""
    if not enough.any():
        return 0
    power = np.where(enough, np.round(power, 6), -1.0)
    return int(power.size - 1 - np.argmax(power[::-1]))


def _power(share: Array, rate: Array, least: float, certified: int, delta: float) -> Array:
    """How likely the test at each threshold passes, if ``rate`` of the called rows are right."""
    n = np.maximum(np.floor(share * certified), 1)
    allowed = binom.ppf(delta, n, 1 - least) - 1  # errors, nearly as Clopper and Pearson allow
    exact = binom.cdf(allowed + 1, n, 1 - least) <= delta
    allowed = np.where(exact, allowed + 1, allowed)
    return np.where(allowed < 0, 0.0, binom.cdf(np.maximum(allowed, 0), n, 1 - rate))


def _cheapest(cuts: Array, scores: Array, good: Bools, cost: float) -> Rungs:
    positives, others = np.sort(scores[good]), np.sort(scores[~good])
    missed = np.searchsorted(positives, cuts, side="left")
    alarms = others.size - np.searchsorted(others, cuts, side="left")
    costs = (cost * missed + alarms) / max(scores.size, 1)
    best = int(np.argmin(costs))
    return Rungs((float(cuts[best]),), float(costs[best]), 1.0, scores.size)
