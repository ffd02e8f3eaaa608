"""Label shift: whether the classes' frequencies among live rows can be those of the certify rows. A
finding.

The certify rows' counts bound each class's frequency from both sides (Clopper–Pearson), and
gamblers bet against both bounds on every labeled live row (`surelearn.monitoring.betting`). Half of
the false-alarm rate of 1% is for the bounds, half for the bets; each half is shared equally by all
sides of all classes. So it holds however often one looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.bounds import clopper_pearson, clopper_pearson_lower
from surelearn.certificate import Certificate
from surelearn.claim import Finding
from surelearn.monitoring.evidence import Evidence, check_entries, require, whole
from surelearn.plain import show

FALSE_ALARMS = 0.01
LARGE = 0.25  # a distance in total variation from which the finding is a warning


class LabelShift:
    """Evidence that live rows have other class frequencies than the certify rows.

    Parameters
    ----------
    names : the classes
    certified : how many certify rows each class had
    errors : how many of them the model got wrong
    rows : how many certify rows there were, if some had a label that the model never saw

    Examples
    --------
    >>> shift = LabelShift(["healthy", "ill"], [950, 50], [10, 10])
    >>> shift.take(np.repeat([0, 1], [60, 40]))
    >>> print(shift.finding())
    Label shift: 40% of live rows are 'ill', 5.0% of the certify rows were. Error rates per class may still hold; \
overall errors, precision and mean cost need not: with the certify rows' errors per class, errors would now be \
8.6% instead of 2.0%. (SL503, warning)
    """

    def __init__(
        self, names: list[str], certified: list[int], errors: list[int], rows: int = 0
    ) -> None:
        self.names, self.certified, self.errors = names, certified, errors
        # the last one: labels the model never saw
        self.counts = np.zeros(len(names) + 1, dtype=np.int64)
        # of two, one tells the other
        watched = [int(np.argmin(certified))] if len(names) == 2 else range(len(names))
        level = FALSE_ALARMS / 2 / (2 * len(watched))
        n = self.certified_rows = rows or sum(certified)
        self._tests: list[tuple[int, bool, Evidence]] = []
        for i in watched:
            bounds = {
                True: float(clopper_pearson(certified[i], n, level)),
                False: 1 - float(clopper_pearson_lower(certified[i], n, level)),
            }
            for more, bound in bounds.items():
                if 0 < bound < 1:
                    self._tests.append((i, more, Evidence(bound, level, points=1)))

    @classmethod
    def of(cls, certificate: Certificate) -> LabelShift | None:
        """The test for a certificate; None for a regression, for groups, and without counts by
        class.
        """
        facts = certificate.facts
        names = [str(label) for label in facts.options.get("classes") or ()]
        keys = [f"class[{name}]" for name in names]
        if len(names) < 2 or "groups" in facts or any(f"{key}.n" not in facts for key in keys):
            return None
        return cls(
            names,
            [facts[f"{key}.n"] for key in keys],
            [facts[f"{key}.count"] for key in keys],
            facts["rows"],
        )

    def take(self, truth: npt.NDArray[np.int64]) -> None:
        """Take in labels, as positions among the classes; −1 is one that the model never saw."""
        self.counts += np.bincount(
            np.where(truth < 0, len(self.names), truth), minlength=self.counts.size
        )
        for i, more, evidence in self._tests:
            evidence.take(((truth == i) == more).astype(float))

    @property
    def rows(self) -> int:
        """Labels taken in so far."""
        return int(self.counts.sum())

    def finding(self) -> Finding | None:
        """SL503, if some class's evidence ever reached its alarm; it stays."""
        found = [
            (evidence.alarm_at, i)
            for i, _, evidence in self._tests
            if evidence.alarm_at is not None
        ]
        if not found:
            return None
        unseen = self.certified_rows - sum(self.certified)
        live = self.counts / self.rows
        before = np.append(self.certified, unseen) / self.certified_rows
        most = max((i for _, i in found), key=lambda i: abs(live[i] - before[i]))
        then, now, follows = self._overall(before), self._overall(live), ""
        if now != then:
            instead = f"{show(now, 'rate')} instead of {show(then, 'rate')}"
            follows = f": with the certify rows' errors per class, errors would now be {instead}"
        distance = float(np.abs(live - before).sum() / 2)
        return Finding(
            code="SL503",
            text=(
                f"Label shift: {_percent(live[most])} of live rows are {self.names[most]!r:.60},"
                f" {_percent(before[most])} of the certify rows were. Error rates per class may"
                f" still hold; overall errors, precision and mean cost need not{follows}."
            ),
            severity="warning" if distance >= LARGE else "notice",
            numbers={
                "class": self.names[most],
                "live": float(live[most]),
                "certified": float(before[most]),
                "rows": self.rows,
                "after": min(after for after, _ in found),
                "distance": distance,
                "false_alarms": FALSE_ALARMS,
            },
        )

    def _overall(self, shares: npt.NDArray[np.float64]) -> float:
        """The error rate if each class kept that of the certify rows (an unknown label is an
        error).
        """
        rates = [
            wrong / n if n else 1.0 for wrong, n in zip(self.errors, self.certified, strict=True)
        ]
        return float(shares @ np.array([*rates, 1.0]))

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, ready for JSON."""
        return {
            "counts": self.counts.tolist(),
            "evidence": [evidence.to_dict() for _, _, evidence in self._tests],
        }

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Take over a state; a `ValueError` says which part of it cannot be right."""
        check_entries(plain, self.to_dict())
        self.counts = np.array(
            [whole("counts", count) for count in plain["counts"]], dtype=np.int64
        )
        require(
            "counts",
            self.counts.shape == (len(self.names) + 1,)
            and len(plain["evidence"]) == len(self._tests),
        )
        self._tests = [
            (
                i,
                more,
                Evidence.from_dict(kept, evidence.game.bound, evidence.delta, evidence.points),
            )
            for (i, more, evidence), kept in zip(self._tests, plain["evidence"], strict=True)
        ]
        require("evidence", all(evidence.units == self.rows for _, _, evidence in self._tests))


def _percent(share: float) -> str:
    return f"{100 * share:.{0 if 0.1 <= share <= 0.9 else 1}f}%"
