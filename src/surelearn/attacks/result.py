"""What an attack did, as frozen data: a measurement, never a guarantee — an attack that fails
proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelearn.attacks.domains import Domain, Norm


@dataclass(frozen=True, eq=False)
class Evasion:
    """The outcome of an attack on rows.

    Attributes
    ----------
    method : the attack in words
    norm : "linf" or "l2", in units of the domain's scale
    radius : the largest change allowed; a number, or one per row
    rows : the rows changed, (n, d); where the attack failed, as they were
    success : whether the row, changed within the radius, is no longer predicted as ``labels`` (or
        is, as the target)
    distance : of the change; 0 where the row was wrong to begin with, ∞ where the attack failed
    substituted : columns of choices that were changed; their cost is part of the distance
    labels, before, after : the labels stated, those predicted before, and those after
    calls : rows that the model was asked about
    targeted : whether the attack aimed at a class
    """

    method: str
    norm: Norm
    radius: npt.ArrayLike
    original: npt.NDArray[np.float64]
    rows: npt.NDArray[np.float64]
    success: npt.NDArray[np.bool_]
    distance: npt.NDArray[np.float64]
    substituted: npt.NDArray[np.intp]
    labels: np.ndarray
    before: np.ndarray
    after: np.ndarray
    calls: int
    targeted: bool
    domain: Domain

    @property
    def accuracy(self) -> float:
        """The share of rows that were right before the attack."""
        return float((self.before == self.labels).mean())

    @property
    def robust_accuracy(self) -> float:
        """The share of rows on which the attack failed: an upper bound on the share that no
        change can turn.
        """
        return float(1.0 - self.success.mean())

    def changes(self, row: int) -> tuple[tuple[str, float, float], ...]:
        """What was changed in a row, as (column, from, to), the largest change in units of
        scale first.
        """
        old, new = self.original[row], self.rows[row]
        # a substitution comes first
        unit = np.where(self.domain.scale > 0, self.domain.scale, 1e-300)
        moved = sorted(np.flatnonzero(old != new), key=lambda j: -abs(new[j] - old[j]) / unit[j])
        return tuple((self.domain.names[j], float(old[j]), float(new[j])) for j in moved)

    def __str__(self) -> str:
        turned = int(self.success.sum())
        return f"{self.method}: {turned} of {len(self.rows)} rows turned, {self.calls:,} rows asked"
