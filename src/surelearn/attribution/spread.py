"""Mean sizes of shares, and how they and their order vary over rows and backgrounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surelearn.types import Array, Ints

RESAMPLES = 400
SETTLED = 0.95
_FIRST = 3
_CONTENDS = 0.05  # of resamples
_COUNTS = 0.01  # of the largest share: less is nothing to rank


@dataclass(frozen=True, eq=False)
class Lead:
    """Of resamples, how many have the same first ``count`` columns, how many the same first
    one, and who else is there.
    """

    count: int
    same: float
    same_first: float
    contenders: tuple[int, ...]

    @property
    def stable(self) -> bool:
        """Whether the first columns are settled, as a set."""
        return self.same >= SETTLED


@dataclass(frozen=True, eq=False)
class Spread:
    """Mean |share| of each column, its standard error, and the same in resamples of rows and
    backgrounds together.
    """

    importance: Array
    error: Array
    drawn: Array

    @property
    def order(self) -> Ints:
        """Columns, the most important first."""
        return np.argsort(-self.importance, kind="stable")

    @property
    def resamples(self) -> int:
        """The number of bootstrap resamples."""
        return len(self.drawn)

    def lead(self) -> Lead | None:
        """Whether the first three columns stay the first; None where there is nothing to
        compare.
        """
        counting = int((self.importance > _COUNTS * self.importance.max()).sum())
        count = min(_FIRST, counting, len(self.importance) - 1)
        if count < 1:
            return None
        # the first columns of each resample beside those of all
        top, first = set(self.order[:count]), self.order[0]
        ranked = np.argsort(-self.drawn, axis=1, kind="stable")
        same = np.mean([set(row[:count]) == top for row in ranked])
        present = np.bincount(ranked[:, :count].ravel(), minlength=len(self.importance)) / len(
            ranked
        )
        others = [
            int(i)
            for i in np.argsort(-present, kind="stable")
            if present[i] >= _CONTENDS and i not in top
        ]
        return Lead(count, float(same), float((ranked[:, 0] == first).mean()), tuple(others))


def spread_of(values: Array, seed: int, resamples: int = RESAMPLES) -> Spread:
    """Of shares (backgrounds, rows, columns): mean over backgrounds, then |·|, then mean over rows.

    The mean over backgrounds of equal size is the share against all of them together, since a share
    is linear in the background. Standard errors are those of the bootstrap: rows and backgrounds
    are drawn anew, each with replacement.
    """
    rng, (backgrounds, rows, columns) = np.random.default_rng(seed), values.shape
    # draw backgrounds and rows anew, as counts, and form the mean |share| of each column again
    flat = values.reshape(backgrounds, -1)  # (backgrounds, rows × columns)
    drawn = np.empty((resamples, columns))
    for i in range(resamples):
        weights = rng.multinomial(backgrounds, np.full(backgrounds, 1 / backgrounds)) / backgrounds
        counts = rng.multinomial(rows, np.full(rows, 1 / rows)) / rows
        drawn[i] = counts @ np.abs(weights @ flat).reshape(rows, columns)
    importance = np.abs(values.mean(axis=0)).mean(axis=0)
    return Spread(importance, drawn.std(axis=0, ddof=1), drawn)
