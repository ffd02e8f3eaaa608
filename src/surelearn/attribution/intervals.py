"""Intervals for a mean of independent draws, from their number, mean and variance."""

from __future__ import annotations

import numpy as np
from scipy.stats import t as student

from surelearn.types import Array

GUARANTEED = (
    "empirical Bernstein (Maurer and Pontil 2009, Theorem 4) or Hoeffding, half of delta each; "
    "assumes that u lies in value_range"
)
MEASURED = "normal approximation: measured, not guaranteed"


class Moments:
    """Number, mean and squared deviations of draws that come in batches."""

    def __init__(self) -> None:
        self.count, self.mean, self.squares = 0, np.zeros(()), np.zeros(())

    def add(self, draws: Array) -> None:
        """Draws along the first axis."""
        count, mean = len(draws), draws.mean(axis=0)
        shift, total = mean - self.mean, self.count + count
        self.squares = (
            self.squares
            + ((draws - mean) ** 2).sum(axis=0)
            + shift**2 * (self.count * count / total)
        )
        self.mean = self.mean + shift * (count / total)
        self.count = total

    @property
    def variance(self) -> Array:
        """With divisor count − 1; ∞ for one draw."""
        return (
            self.squares / (self.count - 1) if self.count > 1 else np.full(self.mean.shape, np.inf)
        )


def reach(moments: Moments, delta: float, span: float | None) -> Array:
    """Half the width of two-sided intervals, each at δ; ``span`` is the length of the range of
    a draw, None if unknown.
    """
    m, variance = moments.count, moments.variance
    if m < 2:
        return np.full(variance.shape, np.inf)
    if span is None:
        return student.isf(delta / 2, m - 1) * np.sqrt(variance / m)
    bernstein = empirical_bernstein_reach(variance, m, delta / 4, span)
    return np.minimum(bernstein, span * np.sqrt(np.log(4 / delta) / (2 * m)))


def empirical_bernstein_reach(variance: Array, m: int, delta: float, span: float) -> Array:
    """√(2V ln(2/δ)/m) + 7·span·ln(2/δ)/(3(m − 1)) for one side at δ."""
    log_term = np.log(2 / delta)
    return np.sqrt(2 * variance * log_term / m) + 7 * span * log_term / (3 * (m - 1))
