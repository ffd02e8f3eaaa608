"""k-means: how good seeding is, and how far from the optimum a clustering can be."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds._checks import Value
from surelearn.bounds._sources import STABILITY
from surelearn.claim import ALWAYS, IN_EXPECTATION, at_least, at_most, theorem

PLAIN_SEEDING = "plain D² seeding, one candidate a step (greedy seeding is not covered)"


@theorem(
    "k-means++",
    f"D. Arthur and S. Vassilvitskii, SODA 2007, Theorem 3.1; {STABILITY}, Section 8.3",
    assumes=(PLAIN_SEEDING, "the cost is that of the seeds, before Lloyd's iterations"),
    claims=at_most(
        "seeding_cost_over_optimum",
        label="seeding cost / optimum",
        holds=IN_EXPECTATION,
        trivial=None,
        unit="number",
    ),
    example={"k": 10},
)
def kmeans_plus_plus_ratio(k: npt.ArrayLike) -> Value:
    """Expected cost of k-means++ seeds over the optimal cost: 8(ln k + 2), over the seeding's
    randomness.

    Examples
    --------
    >>> round(kmeans_plus_plus_ratio(10), 2)
    34.42
    """
    return check.plain(8 * (np.log(check.count("k", k, 1)) + 2))


@theorem(
    "k-means optimum, from seedings",
    "Markov's inequality on D. Arthur and S. Vassilvitskii, SODA 2007, Theorem 3.1, for independent"
    " seedings",
    assumes=(PLAIN_SEEDING, "the seedings are independent"),
    claims=at_least("optimal_cost", unit="number"),
    example={"costs": (120.0, 100.0, 110.0), "k": 10, "delta": 0.05},
)
def kmeans_optimum_lower_bound(costs: npt.ArrayLike, k: int, delta: float) -> float:
    """Lower bound on the optimal k-means cost from R independent seedings: δ^{1/R}·min(costs) /
    (8(ln k + 2)).

    Each cost exceeds δ^{−1/R} times its expectation's bound with probability at most δ^{1/R}, all R
    of them with at most δ.

    Parameters
    ----------
    costs : R costs of independent plain k-means++ seedings, before Lloyd

    Examples
    --------
    >>> round(kmeans_optimum_lower_bound([120.0, 100.0, 110.0], 10, 0.05), 3)
    1.07
    """
    costs = check.sample("costs", costs, 0.0, np.inf)
    return float(
        float(check.confidence(delta)) ** (1 / costs.size) * costs.min() / kmeans_plus_plus_ratio(k)
    )


@theorem(
    "k-means optimum, from the spectrum",
    "C. Ding and X. He, ICML 2004, Theorem 3.3",
    # Assumptions keep the spelling of the certificates that people have.
    assumes=("the singular values are those of the centred data",),
    claims=at_least("optimal_cost", holds=ALWAYS, unit="number"),
    example={"singular_values": (10.0, 5.0, 2.0, 1.0), "k": 3},
)
def kmeans_spectral_lower_bound(singular_values: npt.ArrayLike, k: int) -> float:
    """Lower bound on the optimal k-means cost: the PCA tail Σ_{i ≥ k} σ_i² of the centered data,
    sorted from large.

    Replacing rows by their centers gives a matrix of rank at most k − 1 once the mean is removed;
    no such matrix is nearer.

    Examples
    --------
    >>> kmeans_spectral_lower_bound([10.0, 5.0, 2.0, 1.0], 3)
    5.0
    """
    values = check.sample("singular_values", singular_values, 0.0, np.inf)
    return float(np.sum(np.sort(values)[::-1][int(check.count("k", k, 1)) - 1 :] ** 2))


@theorem(
    "k-means ratio, from the spectrum",
    "C. Ding and X. He, ICML 2004, Theorem 3.3, divided into the cost",
    assumes=("the singular values are those of the centred data",),
    claims=at_most(
        "cost_over_optimum", label="cost / optimum", holds=ALWAYS, trivial=None, unit="number"
    ),
    example={"cost": 8.0, "singular_values": (10.0, 5.0, 2.0, 1.0), "k": 3},
)
def kmeans_spectral_ratio(cost: float, singular_values: npt.ArrayLike, k: int) -> float:
    """How many times the optimum a clustering can cost: its cost over the PCA tail, 1 for a cost of
    0.

    Examples
    --------
    >>> kmeans_spectral_ratio(8.0, [10.0, 5.0, 2.0, 1.0], 3)
    1.6
    """
    return _ratio(cost, kmeans_spectral_lower_bound(singular_values, k))


@theorem(
    "k-means ratio, from seedings",
    "Markov's inequality on D. Arthur and S. Vassilvitskii, SODA 2007, Theorem 3.1, and the PCA"
    " tail, divided into the cost",
    assumes=(
        PLAIN_SEEDING,
        "the seedings are independent",
        "the singular values, if given, are those of the centred data",
    ),
    claims=at_most("cost_over_optimum", label="cost / optimum", trivial=None, unit="number"),
    example={
        "cost": 90.0,
        "costs": (120.0, 100.0, 110.0),
        "k": 10,
        "delta": 0.05,
        "singular_values": (10.0, 5.0),
    },
)
def kmeans_ratio(
    cost: float,
    costs: npt.ArrayLike,
    k: int,
    delta: float,
    singular_values: npt.ArrayLike | None = None,
) -> float:
    """How many times the optimum a clustering can cost: its cost over the larger of the two lower
    bounds.

    Only the bound from the seedings can fail, with probability δ: the larger of it and the PCA tail
    fails no more often.

    Parameters
    ----------
    cost : of the clustering, found in whatever way from whatever start
    costs : R costs of independent plain k-means++ seedings, before Lloyd

    Examples
    --------
    >>> round(kmeans_ratio(90.0, [120.0, 100.0, 110.0], 10, 0.05), 1)
    84.1
    """
    seeded = kmeans_optimum_lower_bound(costs, k, delta)
    return _ratio(
        cost,
        (
            seeded
            if singular_values is None
            else max(seeded, kmeans_spectral_lower_bound(singular_values, k))
        ),
    )


def _ratio(cost: float, optimum: float) -> float:
    """The cost over a lower bound on the optimum; nothing costs less than 0."""
    cost = float(check.nonnegative("cost", cost))
    if cost == 0:
        return 1.0
    return max(1.0, cost / optimum) if optimum > 0 else float("inf")
