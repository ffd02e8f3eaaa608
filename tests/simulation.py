"""When a simulation has seen enough: as sure as a run of fixed length, in fewer trials.

A test of coverage counts how often a promise is broken and must fail where it is broken more often
than stated. A run of ``most`` trials passes if the count is not 4 standard errors above the stated
rate. Here a run may pass earlier, by Wald's sequential test ("Sequential Tests of Statistical
Hypotheses", 1945): once what was seen is 10,000 times likelier at the stated rate than at the rate
which the full run would have passed with probability 1/1000. By Ville's inequality a mutant that
breaks promises so often, or more often, is ever let through early with probability at most
1/10,000; what is not let through early runs all trials and is judged by their number, as before.
So a right page is failed by at most as many runs as before, and such a mutant is passed with
probability at most 0.0011 instead of 0.001.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from scipy.stats import beta

EARLY = 1e-4  # the most that stopping adds to the probability of passing a mutant
MISSED = 1e-3  # the probability at which a full run passes the mutant that stopping is judged by


def limit(rate: float, trials: int) -> float:
    """The largest count of ``trials`` that agrees with a probability of at most ``rate``."""
    return trials * rate + 4 * math.sqrt(trials * rate * (1 - rate))


def at_most(count: int, rate: float, trials: int) -> bool:
    """Whether so many of ``trials`` agree with a probability of at most ``rate``: not 4
    standard errors above.
    """
    return count <= limit(rate, trials)


def more_than(count: int, rate: float, trials: int) -> bool:
    return not at_most(count, rate, trials)


def mutant(rate: float, most: int) -> float:
    """The rate at which a full run passes with probability `MISSED`; above it, with less."""
    passing = math.floor(limit(rate, most))
    return float(beta.isf(MISSED, passing + 1, most - passing)) if passing < most else 1.0


def enough(counts: Iterable[tuple[int, float]], trials: int, most: int) -> bool:
    """Whether a run may end after ``trials`` of ``most``: every count, of a promise that may be
    broken at the rate beside it, is far likelier at this rate than at its mutant's.
    """
    return trials >= most or all(
        clear(count, trials, rate, mutant(rate, most)) for count, rate in counts
    )


def clear(count: int, trials: int, rate: float, bad: float) -> bool:
    """Whether the count is 10,000 times likelier at ``rate`` than at a mutant's larger rate."""
    if bad == 1:
        return count < trials
    likelier = count * math.log(rate / bad) + (trials - count) * math.log((1 - rate) / (1 - bad))
    return likelier >= -math.log(EARLY)
