"""Evidence against a bound as it grows: the game's capital after every round, its highest, and
when it reached 1/δ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.certificate import Certificate
from surelearn.monitoring.betting import Game
from surelearn.plain import content_hash, show

MOST_POINTS = 1000


class Evidence:
    """What a stream of losses in [0, 1] says against "their mean is at most B".

    Parameters
    ----------
    bound : B
    delta : probability that the capital ever reaches 1/δ, if the mean is at most B
    points : how many points of the way are kept

    Attributes
    ----------
    units : losses taken so far
    lost : their sum
    highest, highest_at : ln of the largest capital after any loss (at least 0, the start), and
        after how many losses
    alarm_at : after how many losses the capital first reached 1/δ, or None

    Examples
    --------
    >>> evidence = Evidence(0.05, 0.05)
    >>> evidence.take(np.array([0.0, 0.0, 1.0, 1.0, 1.0, 1.0]))
    >>> evidence.alarm_at, evidence.lost, round(evidence.log_capital, 1)
    (6, 4.0, 5.0)
    """

    def __init__(self, bound: float, delta: float, points: int = MOST_POINTS) -> None:
        self.game, self.delta, self.points = Game(bound), delta, points
        self.units, self.lost = 0, 0.0
        self.highest, self.highest_at = 0.0, 0
        self.alarm_at: int | None = None
        self._capitals = self.game.start
        self._points: list[tuple[int, float]] = []

    @property
    def log_capital(self) -> float:
        """Ln of the capital now."""
        return self.game.total(self._capitals, self.units) if self.units else 0.0

    @property
    def history(self) -> tuple[tuple[int, float], ...]:
        """(losses taken, ln capital) from the start to now, at most about ``points``, the
        highest among them.
        """
        ends = {0: 0.0, self.highest_at: self.highest, self.units: self.log_capital}
        return tuple(sorted({**dict(self._points), **ends}.items()))

    def take(self, losses: npt.NDArray[np.float64]) -> None:
        """Play with these losses. Of the way, every 2ᵏ-th point is kept, with the smallest k
        that is enough.
        """
        if not losses.size:
            return
        self._capitals, totals = self.game.play(self._capitals, self.units, losses)
        now = self.units + np.arange(1, losses.size + 1)
        reached = totals >= -math.log(self.delta)
        if self.alarm_at is None and reached.any():
            self.alarm_at = int(now[np.argmax(reached)])
        if totals.max() > self.highest:
            self.highest, self.highest_at = float(totals.max()), int(now[np.argmax(totals)])
        self.units += int(losses.size)
        self.lost += math.fsum(losses)
        step = 1
        while self.units // step > self.points:
            step *= 2
        kept = now % step == 0
        self._points = [point for point in self._points if point[0] % step == 0]
        self._points += zip(now[kept].tolist(), totals[kept].tolist(), strict=True)

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, ready for JSON."""
        return {
            "units": self.units,
            "lost": self.lost,
            "highest": self.highest,
            "highest_at": self.highest_at,
            "alarm_at": self.alarm_at,
            "capitals": self._capitals.tolist(),
            "history": [list(point) for point in self._points],
        }

    @classmethod
    def from_dict(
        cls, plain: Mapping[str, Any], bound: float, delta: float, points: int = MOST_POINTS
    ) -> Evidence:
        """Read what `to_dict` wrote; a `ValueError` names the part that cannot be right."""
        made = cls(bound, delta, points)
        check_entries(plain, made.to_dict())
        made.units, made.highest_at = (
            whole("units", plain["units"]),
            whole("highest_at", plain["highest_at"]),
        )
        made.lost, made.highest = real("lost", plain["lost"]), real("highest", plain["highest"])
        made.alarm_at = None if plain["alarm_at"] is None else whole("alarm_at", plain["alarm_at"])
        made._capitals = np.array([real("capitals", value) for value in plain["capitals"]])
        made._points = [
            (whole("history", n), real("history", value)) for n, value in plain["history"]
        ]
        made._check()
        return made

    def _check(self) -> None:
        """Refuse a state that no losses lead to."""
        at = [n for n, _ in self._points]
        require("capitals", self._capitals.shape == self.game.bets.shape)
        require("lost", 0 <= self.lost <= self.units * (1 + 1e-9))
        require("highest_at", self.highest_at <= self.units)
        require(
            "history",
            at == sorted(set(at))
            and len(at) <= self.points
            and (not at or 0 < at[0] <= at[-1] <= self.units),
        )
        require("highest", self.highest >= max(0.0, self.log_capital - 1e-9))
        require("alarm_at", (self.alarm_at is not None) == (self.highest >= -math.log(self.delta)))
        require("alarm_at", self.alarm_at is None or 0 < self.alarm_at <= self.highest_at)


def capital(logarithm: float) -> float:
    """The capital that has this logarithm; ∞ where no float holds it.

    Examples
    --------
    >>> capital(0.0), capital(1000.0)
    (1.0, inf)
    """
    return math.exp(logarithm) if logarithm < 709 else math.inf


def words(logarithm: float, relation: str = ">=") -> str:
    """The capital that has this logarithm, for people; rounded down, so that nothing seems to have
    reached the alarm.

    Examples
    --------
    >>> words(math.log(19.9999)), words(1000.0), words(math.log(1 / 0.03), "<=")
    ('19.99', '10^434', '33.34')
    """
    if logarithm > math.log(1e9):
        return f"10^{math.floor(logarithm / math.log(10))}"
    return show(float(f"{math.exp(logarithm):.12g}"), "number", relation)


def check_entries(plain: object, like: Mapping[str, Any]) -> None:
    """Refuse a mapping that has not exactly these entries."""
    if not isinstance(plain, Mapping):
        raise ValueError(f"it should have entries, not be {plain!r:.40}")
    for name in like:
        if name not in plain:
            raise ValueError(f"it lacks {name!r}")
    for name in plain:
        if name not in like:
            raise ValueError(f"it has an unknown entry {name!r:.60}")


def name_of(certificate: Certificate) -> str:
    """The hash by which a state knows its certificate: the same with losses per row and, as
    published, without them.
    """
    return certificate.published().hash


def check_certificate(kept: Any, certificate: Certificate) -> None:
    """Refuse what was kept for another certificate, by its name.

    States of earlier releases have the hash with losses per row, and it covers the version of the
    certificate's format.
    """
    plain = certificate.to_dict()
    earlier = (
        content_hash({**plain, "version": version}) for version in range(plain["version"], 0, -1)
    )
    if kept != name_of(certificate) and kept not in earlier:
        raise ValueError(
            "this is the watch of another certificate: its evidence says nothing about this one"
        )


def whole(name: str, value: Any) -> int:
    """A whole number of at least 0."""
    require(name, type(value) is int and value >= 0)
    return value


def real(name: str, value: Any) -> float:
    """A finite number."""
    require(name, type(value) in (int, float) and math.isfinite(value))
    return float(value)


def require(name: str, sound: bool) -> None:
    """Refuse a part of a state."""
    if not sound:
        raise ValueError(f"its {name!r} cannot be right")
