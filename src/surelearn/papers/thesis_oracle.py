"""The oracle of the thesis' AdaBoost experiments (Section 5.1.1): four clouds, labeled by a
random vote of stumps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surelearn.types import AnyArray

POINTS, FEATURES, CLOUDS, TRAINING = 11_000, 12, 4, 600
MOST_DRAWS = 10_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Oracle:
    """Points and the vote Σ α_t·h_t that labels them, h_t = 1 where direction·x ≤
    direction·threshold and −1 elsewhere.

    Attributes
    ----------
    X : (11,000, 12), in random order; ``clouds`` says which of the four each belongs to
    centers : (4, 12), different, every coordinate ±½
    features, thresholds, directions, weights : (T*,), the weights positive with sum 1
    rejected : votes drawn before this one with too many points in one class
    """

    X: AnyArray
    clouds: AnyArray
    centers: AnyArray
    features: AnyArray
    thresholds: AnyArray
    directions: AnyArray
    weights: AnyArray
    rejected: int = 0

    @property
    def rounds(self) -> int:
        """T*, the number of stumps."""
        return self.weights.size

    @property
    def y(self) -> AnyArray:
        """The labels −1 and 1."""
        stumps = np.where(
            self.X[:, self.features] * self.directions <= self.thresholds * self.directions,
            1.0,
            -1.0,
        )
        return np.where(stumps @ self.weights > 0, 1, -1)


def draw_oracle(seed: int, *, thresholds: str = "1", reject_above: float = 0.8) -> Oracle:
    """Points, then votes until one has no more than the fraction ``reject_above`` of points in a
    class.

    Parameters
    ----------
    thresholds : r for thresholds uniform on [−r, r], or "data": uniform over the feature's range
        among all points
    """
    rng = np.random.default_rng(seed)
    centers = _different_centers(rng)
    clouds = rng.permutation(np.repeat(np.arange(CLOUDS), POINTS // CLOUDS))
    X = rng.normal(size=(POINTS, FEATURES)) + centers[clouds]
    rounds = int(rng.integers(10, 101))
    low, high = _ranges(X, thresholds)
    for rejected in range(MOST_DRAWS):
        features = rng.integers(FEATURES, size=rounds)
        weights = 1 - rng.random(rounds)  # positive: in (0, 1]
        oracle = Oracle(
            X=X, clouds=clouds, centers=centers, features=features,
            thresholds=rng.uniform(low[features], high[features]),
            directions=rng.choice([-1, 1], size=rounds), weights=weights / weights.sum(), rejected=rejected,
        )  # fmt: skip
        positive = np.mean(oracle.y == 1)
        if max(positive, 1 - positive) <= reject_above:
            return oracle
    raise ValueError(
        f"none of {MOST_DRAWS} votes has at most {reject_above:g} of the points in a class: raise"
        " reject_above"
    )


def _different_centers(rng: np.random.Generator) -> AnyArray:
    while True:
        centers = rng.choice([-0.5, 0.5], size=(CLOUDS, FEATURES))
        if len(np.unique(centers, axis=0)) == CLOUDS:
            return centers


def _ranges(X: AnyArray, thresholds: str) -> tuple[AnyArray, AnyArray]:
    if thresholds == "data":
        return X.min(axis=0), X.max(axis=0)
    return np.full(FEATURES, -float(thresholds)), np.full(FEATURES, float(thresholds))
