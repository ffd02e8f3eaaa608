"""Gains over another model: the chance that betting sees them, by simulation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.stats import norm

from surelearn import stated
from surelearn.bounds import clopper_pearson_interval
from surelearn.bounds.holdout import predictable_bets
from surelearn.planning.checks import (
    check_counts,
    check_level,
    check_rate,
    not_above,
)
from surelearn.planning.rates import SHARES

MOST_SIMULATED = 50_000
REPEATS = 1000


def gain_power(
    n: int,
    min_gain: float,
    expected_gain: float,
    disagreement: float,
    *,
    delta: float = 0.05,
    candidates: int = 1,
    share: float = SHARES["gain"],
    repeats: int = REPEATS,
) -> float:
    """How often n held-back rows certify that a model errs on ``min_gain`` fewer rows than another:
    a simulation.

    The seed is fixed, and numbers of rows are compared on the same draws. The theorem is
    `surelearn.bounds.paired_difference`.

    Parameters
    ----------
    n : rows on which both models are compared
    min_gain : difference of error rates to certify; negative: the model is at most so much worse
    expected_gain : the difference in truth
    disagreement : the part of rows on which exactly one of the two errs; at least the gain

    Examples
    --------
    >>> gain_power(1000, 0.02, 0.05, 0.1, repeats=200)
    0.505
    """
    game = gain_game(min_gain, expected_gain, disagreement, check_level(delta, candidates, share))
    return game.wins(int(check_counts(n, 1)), repeats) / repeats


def gain_rows(
    min_gain: float,
    expected_gain: float,
    disagreement: float,
    *,
    delta: float = 0.05,
    candidates: int = 1,
    share: float = SHARES["gain"],
    power: float = 0.8,
) -> int:
    """About the fewest rows with which `gain_power` reaches ``power``, to 1% of the rows and the
    simulation's error.

    Examples
    --------
    >>> 1300 < gain_rows(0.02, 0.05, 0.1) < 1600
    True
    """
    return gain_game(
        min_gain, expected_gain, disagreement, check_level(delta, candidates, share)
    ).rows(stated.fraction("power", power))


@dataclass(frozen=True, kw_only=True)
class GainGame:
    """The bets of `paired_difference` against a gain of ``least``, where in truth it is
    ``expected``.
    """

    least: float
    expected: float
    disagreement: float
    delta: float

    @lru_cache  # noqa: B019 - a game is a few numbers, and equal games share their answers
    def wins(self, n: int, repeats: int) -> int:
        """In how many of the simulated comparisons the bound is at least ``least``."""
        won, lost = (self.disagreement + self.expected) / 2, (self.disagreement - self.expected) / 2
        mean, goal = (1 + self.least) / 2, math.log(1 / self.delta)
        wins = 0
        for repeat in range(repeats):
            u = np.random.default_rng((20_240_229, repeat)).random(n)
            x = 0.5 + 0.5 * (u < won) - 0.5 * (u >= 1 - lost)
            if x.mean() < mean:  # the bound is never above what was measured
                continue
            bets = np.minimum(predictable_bets(x, self.delta, False), 0.75 / mean)
            wins += bool(np.cumsum(np.log1p(bets * (x - mean))).max() >= goal)
        return wins

    def repeats(self, n: int) -> int:
        """Fewer for many rows, so that an answer takes seconds."""
        return min(max(10_000_000 // n, REPEATS // 4), REPEATS)

    def power(self, n: int) -> float:
        """The part of simulated comparisons that certify the gain."""
        return self.wins(n, self.repeats(n)) / self.repeats(n)

    def error(self, n: int) -> float:
        """Half the width of the 95% interval around the simulated power."""
        repeats = self.repeats(n)
        low, high = clopper_pearson_interval(self.wins(n, repeats), repeats, 0.05)
        return (high - low) / 2

    def rows(self, power: float) -> int:
        """From a normal approximation in steps of a quarter to a bracket, then by halving the
        bracket.
        """
        spread = math.sqrt(max(self.disagreement - self.expected**2, 1e-3))
        effort = math.sqrt(2 * math.log(1 / self.delta)) + max(float(norm.ppf(power)), -1.0)
        low = high = max(1, round((effort * spread / (self.expected - self.least)) ** 2))
        if high <= MOST_SIMULATED and self.power(high) >= power:
            while low > 1 and self.power(low := max(1, low * 4 // 5)) >= power:
                high = low
        else:
            while (
                high <= MOST_SIMULATED and self.power(high := max(high + 1, high * 5 // 4)) < power
            ):
                low = high
        if high > MOST_SIMULATED:
            raise ValueError(
                f"min_gain and expected_gain are so close that more than {MOST_SIMULATED:,} rows"
                " would have to be simulated: state a wider gap"
            )
        while high - low > max(1, high // 100):
            middle = (low + high) // 2
            low, high = (low, middle) if self.power(middle) >= power else (middle, high)
        return high


def gain_game(min_gain: float, expected_gain: float, disagreement: float, delta: float) -> GainGame:
    """The game of a gain, checked."""
    least, expected = (
        check_rate("min_gain", min_gain, -1.0),
        check_rate("expected_gain", expected_gain, -1.0),
    )
    differ = check_rate("disagreement", disagreement)
    if least == -1:
        raise ValueError("min_gain must be above -1: that much is always true")
    if expected <= least:
        raise ValueError(not_above("expected_gain", expected, "min_gain", least))
    if differ == 0 or abs(expected) > differ:
        raise ValueError(
            f"disagreement must be above 0 and at least the expected gain {expected:g}, not"
            f" {differ:g}: a gain comes from rows on which exactly one of the two models errs"
        )
    return GainGame(least=least, expected=expected, disagreement=differ, delta=delta)
