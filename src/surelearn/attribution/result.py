"""What an attribution hands back: values, intervals, and the name of the game they are values
of.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from surelearn.types import AnyArray, Array, Ints, RandomState

_BARS = 24
_ROUNDING = 64 * float(np.finfo(float).eps)
NONE_COUNTS = "none of them counts: all values are 0, but for rounding"


@dataclass(frozen=True, kw_only=True)
class RankingStability:
    """Whether the k most important players stay the same.

    Attributes
    ----------
    k, names : how many, and which they are; fewer where the others have no share at all
    stable : True if no doubt of the stated kind can change them
    share : of the resampled backgrounds in which they are the same; None where intervals decide
    reason : the sentence for a page
    """

    k: int
    names: tuple[str, ...]
    stable: bool
    share: float | None
    reason: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Attribution:
    """Values of the players of a stated game, and how they were found.

    Attributes
    ----------
    values : (players,) or (explained rows, players); fractions where the game is of whole numbers
        or fractions
    names : of the players
    value : which value: "Shapley", "Banzhaf", …
    game : what u(S) is
    method : how the values were found
    low, high : ends of the intervals, shaped like ``values``; None where the values are exact
    interval : what the intervals are, with their theorem or the word "measured"
    delta : failure probability of all intervals together
    empty, full : u(∅) and u(all players), a number or one for each explained row
    calls : coalitions that the game was asked for
    model_rows : rows that the model was asked to predict, 0 for a game without a model
    notes : sentences to read beside the values
    parts : (explained rows, background rows, players), the values against each background row;
        their mean is ``values``
    """

    values: AnyArray
    names: tuple[str, ...]
    value: str
    game: str
    method: str
    low: Array | None = None
    high: Array | None = None
    interval: str = "none: the values are exact"
    delta: float | None = None
    empty: AnyArray | float = 0
    full: AnyArray | float = 0
    calls: int = 0
    model_rows: int = 0
    notes: tuple[str, ...] = ()
    parts: Array | None = field(default=None, repr=False)

    @property
    def importance(self) -> Array:
        """``|value|`` of each player, its mean over the explained rows."""
        return np.abs(self.values.astype(float)).reshape(-1, len(self.names)).mean(axis=0)

    @property
    def ranking(self) -> tuple[str, ...]:
        """Names of the players, the most important first; those without a share keep their
        order.
        """
        return tuple(self.names[i] for i in self._order)

    @property
    def counts(self) -> npt.NDArray[np.bool_]:
        """Which players have a share that is more than rounding."""
        exact = self.values.dtype == object
        return self.importance > (0.0 if exact else rounding(self.empty, self.full))

    @property
    def _order(self) -> Ints:
        return np.argsort(-np.where(self.counts, self.importance, 0.0), kind="stable")

    @property
    def gap(self) -> AnyArray:
        """u(all) − u(∅) − Σ values: 0 for a Shapley value (efficiency)."""
        return self.full - self.empty - self.values.sum(axis=-1)

    def over_background(self, delta: float = 0.05) -> tuple[Array, Array]:
        """Measured intervals for the values against the population that the background rows were
        drawn from.

        value ± z·s/√B with the standard deviation s over the B background rows: a normal
        approximation, each value alone.
        """
        if self.parts is None or self.parts.shape[1] < 2:
            raise ValueError(
                "intervals over the background need values against at least two background rows"
            )
        error = self.parts.std(axis=1, ddof=1) / np.sqrt(self.parts.shape[1])
        reach = norm.isf(delta / 2) * error
        return self.values - reach, self.values + reach

    def stable_top(
        self,
        k: int = 3,
        *,
        delta: float = 0.05,
        resamples: int = 200,
        random_state: RandomState = 0,
    ) -> RankingStability:
        """Whether the k most important players would be others within the intervals, or with
        another background.

        Intervals decide where there are some; else background rows are drawn anew, ``resamples``
        times, and the same players must lead in 1 − delta of them. Players without a share are not
        ranked.
        """
        asked = min(_whole("k", k), len(self.names))
        k = min(asked, int(self.counts.sum()))
        if k == 0:
            return RankingStability(k=0, names=(), stable=False, share=None, reason=NONE_COUNTS)
        top = self._order[:k]
        names = tuple(self.names[i] for i in top)
        share = None
        if k == len(self.names):
            stable, reason = True, "these are all the players"
        elif self.low is not None and self.high is not None:
            stable = self._apart(top)
            reason = (
                f"the intervals ({self.interval})"
                f" {'keep them apart from' if stable else 'overlap with those of'} the others"
            )
        elif self.parts is None:
            order = np.sort(self.importance)[::-1]
            stable = bool(order[k - 1] > order[k])
            reason = (
                "the values are exact"
                if stable
                else "the values are exact, and the last of these equals the next"
            )
        elif self.parts.shape[1] < 2:
            stable, reason = (
                False,
                "one background row: how far the ranking depends on it cannot be seen",
            )
        else:
            share = self._same_top(top, resamples, random_state)
            stable = share >= 1 - delta
            reason = (
                f"the same lead in {share:.1%} of {resamples} resampled backgrounds of"
                f" {self.parts.shape[1]} rows"
            )
        reason += "; no other has a share" if k < asked else ""
        return RankingStability(k=k, names=names, stable=stable, share=share, reason=reason)

    def _apart(self, top: Ints) -> bool:
        low, high = (np.asarray(end).reshape(-1, len(self.names)) for end in (self.low, self.high))
        least = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(abs(low), abs(high))).mean(
            axis=0
        )
        most = np.maximum(abs(low), abs(high)).mean(axis=0)
        return bool(least[top].min() > np.delete(most, top).max())

    def _same_top(self, top: Ints, resamples: int, random_state: RandomState) -> float:
        from sklearn.utils import check_random_state

        assert self.parts is not None  # noqa: S101 - for the type checker; stable_top has looked
        rng, same, count = check_random_state(random_state), 0, self.parts.shape[1]
        for _ in range(_whole("resamples", resamples)):
            share = rng.multinomial(count, np.full(count, 1 / count)) / count
            importance = np.abs(np.einsum("rbn,b->rn", self.parts, share)).mean(axis=0)
            same += set(np.argsort(-importance, kind="stable")[: len(top)]) == set(top)
        return same / resamples

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def _lines(self) -> Iterator[str]:
        several = self.values.ndim == 2
        yield (
            f"{self.value}"
            f" values{f', mean |value| over {len(self.values):,} rows' if several else ''}"
        )
        shown = self.importance if several else self.values
        width, counts, largest = (
            max(map(len, self.names)),
            self.counts,
            max(self.importance.max(), 1e-300),
        )
        for i in self._order:
            bar = "█" * round(_BARS * float(self.importance[i] / largest)) * bool(counts[i])
            text = (
                f"{shown[i]}"
                if self.values.dtype == object and not several
                else f"{float(shown[i]):.4g}"
            )
            ends = (
                ""
                if several or self.low is None or self.high is None
                else f"  [{self.low[i]:.4g}, {self.high[i]:.4g}]"
            )
            yield f"  {self.names[i]:<{width}}  {text:>10}{ends}  {bar}"
        if not counts.any():
            yield NONE_COUNTS
        yield f"game: {self.game}"
        yield f"method: {self.method}; {self.calls:,} coalitions" + (
            f", {self.model_rows:,} predictions" * (self.model_rows > 0)
        )
        yield f"intervals: {self.interval}"
        yield from self.notes


def rounding(*ends: npt.ArrayLike) -> float:
    """What may be rounding in differences of numbers of this size."""
    return _ROUNDING * max(
        float(np.max(np.abs(np.asarray(end, dtype=float)), initial=0.0)) for end in ends
    )


def _whole(name: str, value: float) -> int:
    if value != int(value) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, not {value!r}")
    return int(value)
