"""Values of players in coalition games (course §20): Shapley, Banzhaf, beta-Shapley, leave-one-out,
random order, any.

A game is a function u of a tuple of players, numbered from 0, or of a batch of boolean masks
(coalitions, n). u(∅) need not be 0: only gains u(S ∪ i) − u(S) count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Unpack, cast

import numpy as np

from surelearn.attribution.coalitions import CooperativeGame, enumerated
from surelearn.attribution.least_squares import fitted
from surelearn.attribution.result import Attribution
from surelearn.attribution.sampling import DrawnCoalitions, SamplingOptions, SamplingPlan, sampled
from surelearn.attribution.weights import (
    Weights,
    banzhaf_weights,
    beta_shapley_weights,
    leave_one_out_weights,
    shapley_weights,
    weights_of,
)
from surelearn.types import AnyArray

AUTO = 20  # players up to which "auto" enumerates
METHODS = ("auto", "exact", "sampling", "least squares")


def shapley(game: Callable[[Any], Any], n: int, **options: Unpack[SamplingOptions]) -> Attribution:
    """The Shapley value, p_s = s!(n − s − 1)!/n!: the mean gain over all orders of joining.

    Parameters
    ----------
    game : of a tuple of players, or of a batch of masks
    n : players
    options : `surelearn.attribution.sampling.Options`

    Examples
    --------
    >>> def gloves(S):  # one right hand, two left ones (Example 20.4)
    ...     return int(0 in S and len(S) > 1)
    >>> print(*shapley(gloves, 3).values)
    2/3 1/6 1/6
    """
    return value_of(game, shapley_weights(_players(n)), **options)


def banzhaf(game: Callable[[Any], Any], n: int, **options: Unpack[SamplingOptions]) -> Attribution:
    """The Banzhaf value, p_s = 2^{−(n−1)}: the mean gain over all coalitions of the others.

    Examples
    --------
    >>> print(*banzhaf(lambda S: int(0 in S and len(S) > 1), 3).values)
    3/4 1/4 1/4
    """
    return value_of(game, banzhaf_weights(_players(n)), **options)


def beta_shapley(
    game: Callable[[Any], Any],
    n: int,
    alpha: float = 16,
    beta: float = 1,
    **options: Unpack[SamplingOptions],
) -> Attribution:
    """The beta-Shapley value, p_s = B(s + β, n − 1 − s + α)/B(α, β); α > β looks at small
    coalitions, where noise is larger.

    Examples
    --------
    >>> print(*beta_shapley(lambda S: int(0 in S and len(S) > 1), 3, alpha=2, beta=1).values)
    1/2 1/6 1/6
    """
    return value_of(game, beta_shapley_weights(_players(n), alpha, beta), **options)


def probabilistic_value(
    game: Callable[[Any], Any], n: int, weights: Sequence[Any], **options: Unpack[SamplingOptions]
) -> Attribution:
    """The value of given weights p_0 … p_{n−1}: Σ_{S∌i} p_|S|·[u(S ∪ i) − u(S)].

    Examples
    --------
    >>> from fractions import Fraction
    >>> print(*probabilistic_value(lambda S: len(S) ** 2, 2, [Fraction(1, 4), Fraction(3, 4)]).values)
    5/2 5/2
    """
    return value_of(game, weights_of(weights, _players(n)), **options)


def leave_one_out(
    game: Callable[[Any], Any],
    n: int,
    *,
    names: Sequence[str] | None = None,
    masks: bool | None = None,
) -> Attribution:
    """What is lost without each player, u(all) − u(all but i): n + 1 coalitions.

    Examples
    --------
    >>> leave_one_out(lambda S: int(0 in S and len(S) > 1), 3).values.tolist()
    [1, 0, 0]
    """
    asked, weights = CooperativeGame(game, _players(n), masks), leave_one_out_weights(_players(n))
    table = asked.numbers(np.concatenate([np.ones((1, n), bool), ~np.eye(n, dtype=bool)]))
    empty = asked.numbers(np.zeros((1, n), bool))
    values = (table[0] - table[1:]).T
    return _result(
        asked, weights, values, names, empty[0], table[0], method="exact, n + 2 coalitions"
    )


def random_order(
    game: Callable[[Any], Any],
    n: int,
    orders: Sequence[Sequence[int]] | None = None,
    probabilities: Sequence[Any] | None = None,
    **options: Unpack[SamplingOptions],
) -> Attribution:
    """The random-order value (Definition 20.5): the mean gain when players join in a random order.

    Parameters
    ----------
    game, n : as for `shapley`
    orders : orders of the players; None draws all orders with the same probability, which estimates
        the Shapley value
    probabilities : of the orders; None makes them equal
    options : as for `shapley`, for drawn orders

    Examples
    --------
    >>> print(*random_order(lambda S: int(0 in S and len(S) > 1), 3, [(0, 1, 2), (1, 0, 2)]).values)
    1/2 1/2 0
    """
    if orders is None:
        return value_of(game, shapley_weights(_players(n)), **{**options, "method": "sampling"})
    asked, total = CooperativeGame(game, _players(n), options.get("masks")), None
    shares = (
        [Fraction(1, len(orders))] * len(orders) if probabilities is None else list(probabilities)
    )
    if (
        len(shares) != len(orders)
        or any(share < 0 for share in shares)
        or abs(float(sum(shares)) - 1) > 1e-9
    ):
        raise ValueError("probabilities must be one for each order, of at least 0, with sum 1")
    for order, share in zip(orders, shares, strict=True):
        if sorted(order) != list(range(n)):
            raise ValueError(
                f"orders must hold each of the players 0 … {n - 1} once, not {tuple(order)}"
            )
        rank = np.argsort(order)
        steps = asked.numbers(rank < np.arange(n + 1)[:, None])
        share = share if steps.dtype == object else float(share)
        gains = (steps[1:] - steps[:-1])[rank].T * share
        total = gains if total is None else total + gains
    if total is None:
        raise ValueError("orders must hold at least one order of the players")
    ends = asked.numbers(np.array([np.zeros(n, bool), np.ones(n, bool)]))
    weights = Weights("random-order", np.full(n, 1 / n))
    return _result(
        asked, weights, total, options.get("names"), *ends, method=f"exact, {len(orders):,} orders"
    )


def value_of(
    game: Callable[[Any], Any], weights: Weights, **options: Unpack[SamplingOptions]
) -> Attribution:
    """The value of these weights, by the method asked for."""
    method, names, masks = (
        options.pop("method", "auto"),
        options.pop("names", None),
        options.pop("masks", None),
    )
    if method not in METHODS:
        raise ValueError(f"method must be {', '.join(map(repr, METHODS))}, not {method!r}")
    plan = SamplingPlan(**cast(dict[str, Any], options))
    asked = CooperativeGame(game, weights.players, masks, plan.value_range)
    if method == "exact" or (method == "auto" and weights.players <= AUTO):
        values, empty, full = enumerated(asked, weights)
        return _result(
            asked, weights, values, names, empty, full, method="exact, every coalition once"
        )
    if method == "least squares":
        drawn = fitted(asked, weights, plan)
        weights = (
            weights
            if weights.name == "Shapley"
            else replace(weights, name=f"{weights.name} (moved to be efficient)")
        )
    else:
        drawn = sampled(asked, weights, plan)
    return from_draws(asked, weights, drawn, plan, names)


def from_draws(
    asked: CooperativeGame,
    weights: Weights,
    drawn: DrawnCoalitions,
    plan: SamplingPlan,
    names: Sequence[str] | None,
) -> Attribution:
    """An attribution from sampled values."""
    exact = not drawn.reach.any() and asked.n == 1
    sure = f"{drawn.interval}; all {drawn.values.size} together with probability {1 - plan.delta:g}"
    ends = {
        "low": drawn.values - drawn.reach,
        "high": drawn.values + drawn.reach,
        "interval": sure,
        "delta": plan.delta,
    }
    return _result(
        asked,
        weights,
        drawn.values,
        names,
        drawn.empty,
        drawn.full,
        method=drawn.method,
        **({} if exact else ends),
    )


def _result(
    asked: CooperativeGame,
    weights: Weights,
    values: AnyArray,
    names: Sequence[str] | None,
    empty: AnyArray,
    full: AnyArray,
    *,
    method: str,
    **more: Any,
) -> Attribution:
    if len(values) == 1:
        values, empty, full = values[0], np.ravel(empty)[0], np.ravel(full)[0]
        more = {key: end[0] if key in ("low", "high") else end for key, end in more.items()}
    return Attribution(
        values=values,
        names=_names(names, asked.n),
        value=weights.name,
        game=getattr(asked.game, "name", None) or getattr(asked.game, "__name__", "a game"),
        method=method,
        empty=empty,
        full=full,
        calls=asked.calls,
        **more,
    )


def _names(names: Sequence[str] | None, n: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"player {i}" for i in range(n))
    if len(names) != n:
        raise ValueError(f"names must be {n}, one for each player, not {len(names)}")
    return tuple(map(str, names))


def _players(n: int) -> int:
    if n != int(n) or n < 1:
        raise ValueError(f"n must be a whole number of players, at least 1, not {n!r}")
    return int(n)
