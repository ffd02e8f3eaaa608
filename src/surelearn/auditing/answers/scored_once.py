"""Scores of one class in one pass: probabilities are counted between thresholds that were fixed before any
file was read, so that no row is spent on choosing them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from surelearn.measurement import Measurement
from surelearn.operating import Requirement
from surelearn.subject.recorded import RecordedScores

ABOVE_ONE = float(np.nextafter(1.0, 2.0))  # a cut that no probability reaches
WALKED = ("sensitivity", "specificity")  # requirements whose walk begins at an end of the grid


def _grid() -> tuple[float, ...]:
    near = {float(f"{10 ** (-6 + j / 75):.3g}") for j in range(248)}
    near = {one for one in near if one < 0.002}
    even = {k / 500 for k in range(1, 500)}
    return tuple(sorted({0.0, *near, *even, *(round(1 - one, 9) for one in near)}))


GRID = _grid()
"""Thresholds of a probability: every fifth of a percent and, within that of 0 and of 1, 75 for each power of
ten down to a millionth."""


def walk_over(requirement: Requirement) -> tuple[float, ...]:
    """The grid in the order of a walk: from where the requirement is surest.

    Examples
    --------
    >>> walk_over(Requirement.parse("sensitivity >= 0.9"))[:2], walk_over(Requirement.parse("specificity >= 0.9"))[0]
    ((0.0, 1e-06), 0.999999)
    """
    return GRID if requirement.quantity == "sensitivity" else GRID[::-1]


@dataclass(frozen=True)
class CountedScores:
    """How many rows of each label have a score between two neighboring cuts.

    Attributes
    ----------
    column, positive, other : of the score; the class that it is the score of; all others
    cuts : ascending
    counts : by whether a row is positive, and how many cuts its score reaches
    """

    column: str
    positive: str
    other: str
    cuts: tuple[float, ...]
    counts: Mapping[tuple[bool, int], int]

    def at_least(self, threshold: float) -> tuple[int, int]:
        """How many positive rows, and how many others, have a score of at least a cut."""
        reached = self.cuts.index(threshold) + 1
        found = Counter[bool]()
        for (positive, cuts), n in self.counts.items():
            found[positive] += n * (cuts >= reached)
        return found[True], found[False]

    def model(self, classes: tuple[str, ...], content: str, threshold: float) -> RecordedScores:
        """The answers from a threshold on."""
        own = {"positive": self.positive, "threshold": threshold}
        return RecordedScores(self.column, classes, content, **own)

    def walked(self, what: Measurement) -> dict[str, Any]:
        """The facts of a walk along thresholds, under the names that `surelearn.operating.Walk` has."""
        walk = what.walk
        if walk is None:
            return {}
        size = len(self.cuts) + 1
        held = np.zeros((2, size), dtype=np.int64)
        for (positive, cuts), n in self.counts.items():
            held[int(positive), cuts] += n
        above = np.cumsum(held[:, ::-1], axis=1)[:, ::-1]  # with a score that reaches so many cuts
        place = {cut: i + 1 for i, cut in enumerate(self.cuts)}
        steps = [place[cut] for cut in walk.thresholds]
        facts: dict[str, Any] = {
            "walk.found": above[1, steps].tolist(),
            "walk.alarms": above[0, steps].tolist(),
            "walk.positives": int(held[1].sum()),
            "walk.negatives": int(held[0].sum()),
        }
        return {**facts, **walk.end(facts)}


def cuts_with(threshold: float | None) -> tuple[float, ...]:
    """The grid, and a threshold that was stated."""
    return GRID if threshold is None else tuple(sorted({*GRID, threshold}))
