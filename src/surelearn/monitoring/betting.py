"""A game that only a mean loss above a bound can win: the test behind `Watch`.

H₀: losses x₁, x₂, … in [0, 1] whose conditional mean is never above B. Gambler j multiplies her
capital by 1 + θⱼ(xₜ − B)/B in every round, which under H₀ is at most 1 on average. All start with 1
together, so that by Ville's inequality their sum ever reaches 1/δ with probability at most δ,
however often one looks.

Half of the capital is staked at once. The other half is a reserve that the gamblers receive bit by
bit: what is left of it after n rounds is ½/ln(e + nB). Without it, a model that was good for a year
has ruined everyone who bets against it, and its failure shows only when they have won a year's
losses back; with it the delay grows as the logarithm of the good time. It amounts to a mixture over
the row at which the change happens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from surelearn import stated
from surelearn.types import Array

STAKED = 0.5  # the part of the capital that is staked at once
LARGEST_BET = 0.95  # at 1 a single row without loss would ruin the gambler
SMALLEST_BOUND = 1e-9  # a mean of at most 0 is also one of at most this
_SPREAD = 16.0  # the smallest bet is that for a risk of (1 + 1/16)·B
# rounds played in one piece: sums of logarithms stay short, so that batches do not matter
_AT_ONCE = 128


@dataclass(frozen=True)
class Game:
    """The gamblers against a bound B in (0, 1).

    For losses 0 and 1 with mean p the best bet is θ = (p − B)/(1 − B), after J. L. Kelly (1956).
    The bets double from that for p = (1 + 1/16)·B up to 0.95, with prior weights ∝ 1/(1 +
    ln²(θ/θ₂)), θ₂ the best bet for p = 2B (½, if that is less). In simulation, with B between 0.002
    and 0.3 and δ = 0.05, an alarm takes on average 1.25 times the rows of the best single bet for p
    = 2B, and 1.45 times for p = 1.25 B or 4 B (`tests/monitoring/test_betting.py`).

    References
    ----------
    J. Ville, Étude critique de la notion de collectif (1939); J. L. Kelly, Bell System Tech. J. 35
    (1956), 917–926; I. Waudby-Smith and A. Ramdas, J. R. Statist. Soc. B 86 (2024), Section 4

    Examples
    --------
    >>> game = Game(0.083)
    >>> capitals, totals = game.play(game.start, 0, np.ones(5))
    >>> [round(math.exp(total), 1) for total in totals]
    [1.9, 7.0, 47.8, 441.4, 4588.5]
    """

    bound: float

    def __post_init__(self) -> None:
        stated.fraction("bound", self.bound)

    @cached_property
    def bets(self) -> Array:
        """θⱼ, each the double of the one before (nearly: they end at 0.95)."""
        smallest = self._for_double / _SPREAD
        return np.geomspace(smallest, LARGEST_BET, math.ceil(math.log2(LARGEST_BET / smallest)) + 1)

    @cached_property
    def weights(self) -> Array:
        """The gamblers' shares of whatever is staked; their sum is 1."""
        prior = 1 / (1 + np.log(self.bets / self._for_double) ** 2)
        return prior / prior.sum()

    @property
    def _for_double(self) -> float:
        return min(self.bound / (1 - self.bound), 0.5)

    @property
    def start(self) -> Array:
        """Logarithms of the gamblers' capitals before the first round."""
        return np.log(STAKED * self.weights)

    def reserve(self, played: npt.ArrayLike) -> Array:
        """Logarithm of what is not staked yet after so many rounds."""
        return math.log(1 - STAKED) - np.log(np.log(math.e + np.asarray(played) * self.bound))

    def entering(self, played: npt.ArrayLike) -> Array:
        """Logarithm of what leaves the reserve before the round that comes after so many: 1/a −
        1/b = (b − a)/(ab).
        """
        before = math.e + np.asarray(played, dtype=float) * self.bound
        a, b = np.log(before), np.log(before + self.bound)
        return math.log(1 - STAKED) + np.log(np.log1p(self.bound / before)) - np.log(a) - np.log(b)

    def total(self, capitals: Array, played: int) -> float:
        """Logarithm of the whole capital."""
        return float(np.logaddexp(np.logaddexp.reduce(capitals), self.reserve(played)))

    def play(self, capitals: Array, played: int, losses: npt.ArrayLike) -> tuple[Array, Array]:
        """Play one round a loss.

        Parameters
        ----------
        capitals : logarithms of the gamblers' capitals
        played : rounds played before
        losses : numbers in [0, 1]

        Returns
        -------
        logarithms of the gamblers' capitals at the end, and of the whole capital after every round
        """
        losses = np.asarray(losses, dtype=float)
        if losses.ndim != 1 or not np.all((losses >= 0) & (losses <= 1)):
            raise ValueError("losses must be one-dimensional and lie in [0, 1]")
        pieces = [losses[i : i + _AT_ONCE] for i in range(0, losses.size, _AT_ONCE)]
        totals = []
        for x in pieces:
            before = played + np.arange(x.size)
            # (rounds, gamblers)
            growth = np.cumsum(np.log1p(self.bets * (x[:, None] - self.bound) / self.bound), axis=0)
            grown = np.vstack([np.zeros_like(self.bets), growth[:-1]])
            staked = self.entering(before)[:, None] + np.log(self.weights) - grown
            paths = growth + np.logaddexp.accumulate(np.vstack([capitals, staked]), axis=0)[1:]
            capitals, played = paths[-1], played + x.size
            totals.append(
                np.logaddexp(np.logaddexp.reduce(paths, axis=1), self.reserve(before + 1))
            )
        return capitals, np.concatenate(totals) if totals else np.empty(0)
