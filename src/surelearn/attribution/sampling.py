"""Monte Carlo for probabilistic values (course, Algorithm 3), with intervals and a rule for
stopping.

Three ways of drawing, each a sequence of independent draws with mean φ:

- *marginals*: for each player a random coalition of others, u(S ∪ i) − u(S): Algorithm 3, for any weights;
- *orders*, for the Shapley value: a random order gives every player one marginal, n − 1 coalitions for n of them;
- *halves*, for the Banzhaf value: (±)(u(S) − u(S's complement)) for every player from two coalitions.

Paired draws average a coalition (an order) with its complement (its reverse), which cancels what is
even in S.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from surelearn import stated
from surelearn.attribution.coalitions import CooperativeGame
from surelearn.attribution.intervals import GUARANTEED, MEASURED, Moments, reach
from surelearn.attribution.weights import Weights
from surelearn.types import Array, RandomState

_FIRST_LOOK = 32
_AT_ONCE = 4096


class SamplingOptions(TypedDict, total=False):
    """Options of every sampled value.

    Attributes
    ----------
    method : "auto" (exact up to 20 players), "exact", "sampling" or "least squares"
    delta : failure probability of all intervals together
    tolerance : stop when every interval reaches no farther than this from its value; None spends
        the budget
    budget : coalitions to ask for, at most
    value_range : (low, high) that u is known to lie in: intervals are then guaranteed; None
        measures them
    paired : draw a coalition together with its complement
    random_state : int, RandomState or None
    names : of the players
    masks : True if the game takes a batch of boolean masks (coalitions, n); None asks
        ``game.takes_masks``
    """

    method: str
    delta: float
    tolerance: float | None
    budget: int
    value_range: tuple[float, float] | None
    paired: bool
    random_state: RandomState
    names: Any
    masks: bool | None


@dataclass(frozen=True)
class SamplingPlan:
    """Options of a sampling run, checked when they are set."""

    delta: float = 0.05
    tolerance: float | None = None
    budget: int = 10_000
    value_range: tuple[float, float] | None = None
    paired: bool = True
    random_state: RandomState = None

    def __post_init__(self) -> None:
        stated.fraction("delta", self.delta)
        if self.tolerance is not None and not self.tolerance > 0:
            raise ValueError(f"tolerance must be positive, not {self.tolerance!r}")
        if self.budget != int(self.budget) or self.budget < 1:
            raise ValueError(f"budget must be a whole number of coalitions, not {self.budget!r}")
        if self.value_range is not None and not self.value_range[0] < self.value_range[1]:
            raise ValueError(
                f"value_range must be (low, high) with low < high, not {self.value_range!r}"
            )

    @property
    def span(self) -> float | None:
        """Length of the range of a marginal, which lies in [−(high − low), high − low]."""
        return (
            None if self.value_range is None else 2.0 * (self.value_range[1] - self.value_range[0])
        )


@dataclass(frozen=True)
class DrawnCoalitions:
    """Sampled values, (outputs, n), how far their intervals reach, and how it went."""

    values: Array
    reach: Array
    empty: Array
    full: Array
    method: str
    interval: str


Draw = Callable[[int], Array]  # draws (m, outputs, n)


def sampled(
    game: CooperativeGame, weights: Weights, plan: SamplingPlan, kind: str | None = None
) -> DrawnCoalitions:
    """Draw until the tolerance or the budget is reached."""
    from sklearn.utils import check_random_state

    if abs(weights.sizes.sum() - 1) > 1e-9:
        raise ValueError("weights must be a probability for sampling: Σ C(n − 1, s)·p_s = 1")
    rng, n = check_random_state(plan.random_state), game.n
    ends = game(np.array([np.zeros(n, bool), np.ones(n, bool)]))
    kind = kind or _kind(weights, plan)
    paired = kind == "halves" or (plan.paired and weights.symmetric)
    draw: Draw
    if n == 1 or kind == "orders":
        cost, draw = max(n - 1, 1) * (1 + paired), lambda m: _orders(game, ends, m, paired, rng)
    elif kind == "halves":
        cost, draw = 2, lambda m: _halves(game, m, rng)
    else:
        cost, draw = 2 * n * (1 + paired), lambda m: _marginals(game, weights, m, paired, rng)
    moments, why = _until(draw, cost, ends.shape[1] * n, plan)
    looked = reach(moments, plan.delta / (_looks(plan, cost) * ends.shape[1] * n), plan.span)
    drawn = f"{moments.count:,} independent {'pairs of ' * (paired and kind != 'halves')}{kind}"
    method = f"Monte Carlo, {drawn}, stopped by the {why}"
    return DrawnCoalitions(
        moments.mean, looked, ends[0], ends[1], method, GUARANTEED if plan.value_range else MEASURED
    )


def _kind(weights: Weights, plan: SamplingPlan) -> str:
    if weights.name == "Banzhaf" and plan.paired:
        return "halves"
    return "orders" if weights.name == "Shapley" else "marginals"


def _until(draw: Draw, cost: int, intervals: int, plan: SamplingPlan) -> tuple[Moments, str]:
    """Look after 32, 64, 128 … draws, each look with its share of δ; only once if there is no
    tolerance.
    """
    most = plan.budget // cost
    if most < 2:
        raise ValueError(
            f"budget must allow two draws of {cost} coalitions each, not {plan.budget}"
        )
    moments, share = Moments(), plan.delta / (_looks(plan, cost) * intervals)
    target = min(_FIRST_LOOK, most) if plan.tolerance is not None else most
    while True:
        while moments.count < target:
            moments.add(draw(min(target - moments.count, max(1, _AT_ONCE // cost))))
        if plan.tolerance is not None and reach(moments, share, plan.span).max() <= plan.tolerance:
            return moments, "tolerance"
        if target == most:
            return moments, "budget"
        target = min(2 * target, most)


def _looks(plan: SamplingPlan, cost: int) -> int:
    most = max(plan.budget // cost, 1)
    return 1 if plan.tolerance is None else 1 + max(0, math.ceil(math.log2(most / _FIRST_LOOK)))


def _orders(
    game: CooperativeGame, ends: Array, m: int, paired: bool, rng: np.random.RandomState
) -> Array:
    """Draws (m, outputs, n), each a random order's marginals, or the mean with its reverse's."""
    rank = np.argsort(rng.random_sample((m, game.n)), axis=1)  # (m, n)
    draws = _along(game, ends, rank)
    return (draws + _along(game, ends, game.n - 1 - rank)) / 2 if paired else draws


def _along(game: CooperativeGame, ends: Array, rank: npt.NDArray[np.intp]) -> Array:
    """Marginals (m, outputs, n) of players that join in the order of ``rank``."""
    m, n = rank.shape
    # u after 0, 1, … n players of each order; the marginal of a player is at its rank
    steps = np.empty((m, n + 1, ends.shape[1]))  # (m, n + 1, outputs)
    steps[:, 0], steps[:, n] = ends
    if n > 1:
        masks = rank[:, None, :] < np.arange(1, n)[:, None]
        steps[:, 1:n] = game(masks.reshape(-1, n)).reshape(m, n - 1, -1)
    gains = np.diff(steps, axis=1)  # (m, n, outputs), by rank
    return np.take_along_axis(gains, rank[:, :, None], axis=1).swapaxes(1, 2)


def _halves(game: CooperativeGame, m: int, rng: np.random.RandomState) -> Array:
    """Draws (m, outputs, n): the gap between a coalition and the others, plus for its members."""
    masks = rng.random_sample((m, game.n)) < 0.5
    u = game(np.concatenate([masks, ~masks]))  # (2m, outputs)
    return (u[:m] - u[m:])[:, :, None] * np.where(masks, 1.0, -1.0)[:, None, :]


def _marginals(
    game: CooperativeGame, weights: Weights, m: int, paired: bool, rng: np.random.RandomState
) -> Array:
    """Draws (m, outputs, n): for every player its gain over a coalition of its own of others."""
    n = game.n
    size = rng.choice(n, size=(m, n), p=weights.sizes / weights.sizes.sum())
    keys = rng.random_sample((m, n, n))  # draw, player, others
    keys[:, np.arange(n), np.arange(n)] = 2.0  # the player itself comes last
    others = np.argsort(np.argsort(keys, axis=2), axis=2) < size[:, :, None]
    draws = _gains(game, others)
    if paired:
        draws = (draws + _gains(game, ~others & ~np.eye(n, dtype=bool))) / 2
    return draws


def _gains(game: CooperativeGame, others: npt.NDArray[np.bool_]) -> Array:
    """What each player adds to its coalition of others (m, n, n), (m, outputs, n)."""
    m, n = others.shape[:2]
    masks = np.stack([others, others | np.eye(n, dtype=bool)])
    u = game(masks.reshape(-1, n)).reshape(2, m, n, -1)  # (2, m, n, outputs)
    return (u[1] - u[0]).swapaxes(1, 2)
