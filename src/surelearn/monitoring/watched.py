"""One certified claim under watch: its part of δ, the evidence against it, and what it says for
people.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.claim import Claim
from surelearn.monitoring.evidence import (
    MOST_POINTS,
    Evidence,
    capital,
    check_entries,
    require,
    whole,
    words,
)
from surelearn.monitoring.losses import INTERVALS, Losses, live_value, scale, unit_bound
from surelearn.plain import show
from surelearn.types import Array, Bools

COUNTS = ("rows", "unknown", "beyond", "repeated")


class WatchedClaim:
    """The betting test of one claim: if it is true, its alarm is ever raised with probability at
    most ``delta``.

    Parameters
    ----------
    claim : what was certified
    delta : its part of the watch's δ
    grouped : whether a group's rows count once, as their mean
    points : how many points of the evidence's way are kept

    Attributes
    ----------
    claim, delta : as given
    rows : labeled rows that the claim is about
    unknown : of them, rows with a label that the model never saw; they count as errors
    beyond : of them, rows with a loss above the stated ``loss_bound``, counted as ``loss_bound``
    repeated : groups left out because an earlier update had them
    """

    def __init__(
        self, claim: Claim, delta: float, *, grouped: bool = False, points: int = MOST_POINTS
    ) -> None:
        self.claim, self.delta, self.grouped = claim, delta, grouped
        self.rows = self.unknown = self.beyond = self.repeated = 0
        self._evidence = Evidence(unit_bound(claim), delta, points)
        self._groups: set[bytes] = set()

    @property
    def alarm_at(self) -> int | None:
        """After how many ``units`` the evidence reached 1/δ; once raised the alarm stays."""
        return self._evidence.alarm_at

    @property
    def evidence(self) -> float:
        """The gamblers' capital: large if the live rows contradict the certified bound."""
        return capital(self._evidence.log_capital)

    @property
    def highest(self) -> float:
        """The largest evidence after any row."""
        return capital(self._evidence.highest)

    @property
    def history(self) -> tuple[tuple[int, float], ...]:
        """(units, ln evidence) from the start to now, thinned, the highest among them."""
        return self._evidence.history

    @property
    def units(self) -> int:
        """How many losses there were: the rows, or the groups of a certificate made with groups."""
        return self._evidence.units

    @property
    def errors(self) -> float:
        """The sum of the losses (of the groups' mean losses); for a rate of successes, of the
        failures.
        """
        return self._evidence.lost * scale(self.claim)

    @property
    def rate(self) -> float:
        """The mean loss, NaN before the first."""
        return self.errors / self.units if self.units else math.nan

    @property
    def bound(self) -> float:
        """What the mean loss was certified to be at most, in the long run."""
        return self._evidence.game.bound * scale(self.claim)

    def take(self, losses: Losses, groups: Sequence[bytes] | None) -> None:
        """Bet on these losses; with groups on the mean of each new group, by first appearance."""
        used = ~np.isnan(losses.values)
        if groups is None:
            self._evidence.take(losses.values[used])
        else:
            used = self._take_groups(losses.values, used, groups)
        self.rows += int(used.sum())
        self.unknown += int((losses.unknown & used).sum())
        self.beyond += int((losses.beyond & used).sum())

    def _take_groups(
        self, losses: Array, concerned: Bools, groups: Sequence[bytes]
    ) -> npt.NDArray[np.bool_]:
        """Take in the groups' means; returns which rows that were."""
        present = dict.fromkeys(
            name for name, about in zip(groups, concerned, strict=True) if about
        )
        unit = {
            name: i for i, name in enumerate(name for name in present if name not in self._groups)
        }
        index = np.array([unit.get(name, -1) for name in groups], dtype=int)
        used = concerned & (index >= 0)
        sums, counts = np.bincount(index[used], losses[used]), np.bincount(index[used])
        self._evidence.take(np.clip(sums / counts, 0.0, 1.0))
        self.repeated += len(present) - len(unit)
        self._groups |= set(unit)
        return used

    @property
    def unit(self) -> str:
        """The unit that the claim counts: "group" or "row"."""
        return "group" if self.grouped else "row"

    @property
    def now(self) -> str:
        """The evidence, for people."""
        return words(self._evidence.log_capital)

    @property
    def most(self) -> str:
        """The largest evidence, for people."""
        return words(self._evidence.highest)

    @property
    def limit(self) -> str:
        """The evidence at which the alarm is raised, for people."""
        return words(-math.log(self.delta), "<=")

    @property
    def closeness(self) -> float:
        """How near the evidence ever came to the alarm, on a logarithmic scale; 0 and above is
        an alarm.
        """
        return self._evidence.highest + math.log(self.delta)

    def live(self) -> str:
        """What the live rows were, in the claim's own words: ``2 of 80, 2.5%``."""
        if not self.units:
            return "no such rows"
        value = live_value(self.claim, self.rate)
        rows = some(self.rows, "row") + (f" of {some(self.units, 'group')}" if self.grouped else "")
        if self.claim.quantity in INTERVALS:
            missed = "further away" if self.claim.quantity == "error_quantile" else "outside"
            return f"{value} of {rows} {missed}, ≤ {show(self.bound, 'rate')} certified"
        if self.grouped or self.claim.unit == "number":
            return f"{value} in {rows}"
        return (
            f"{self.errors if self.claim.relation == '<=' else self.units - self.errors:,.0f} of"
            f" {self.units:,}, {value}"
        )

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, ready for JSON; the claim is named by its label."""
        return {
            "claim": self.claim.label,
            "delta": self.delta,
            **{name: getattr(self, name) for name in COUNTS},
            "evidence": self._evidence.to_dict(),
            "groups": base64.b64encode(b"".join(sorted(self._groups))).decode(),
        }

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Take over a state; a `ValueError` says which part of it cannot be right."""
        check_entries(plain, self.to_dict())
        for name in COUNTS:
            setattr(self, name, whole(name, plain[name]))
        self._evidence = Evidence.from_dict(
            plain["evidence"], self._evidence.game.bound, self.delta, self._evidence.points
        )
        packed = base64.b64decode(plain["groups"], validate=True)
        self._groups = {packed[i : i + 8] for i in range(0, len(packed), 8)}
        require("groups", len(packed) == 8 * len(self._groups) == 8 * self.units * self.grouped)
        require("rows", self.units <= self.rows if self.grouped else self.units == self.rows)


def some(count: int, what: str) -> str:
    """A count with its noun: ``1 row``, ``2 rows``."""
    return f"{count:,} {what}{'s' * (count != 1)}"
