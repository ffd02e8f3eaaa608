"""Learning rates over time: factors of η₀ as functions of the epochs that have passed.

The course (Section 9) divides by 10 at given epochs, or lets the rate sink as 1/(1 + ct) or
1/√(1 + ct); the others are those that networks are trained with today. A schedule is called with t,
the epochs done (a fraction within an epoch), and the number of epochs that there will be.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

Schedule = Callable[[float, float], float]


@dataclass(frozen=True)
class Constant:
    """η₀ all the time."""

    def __call__(self, t: float, epochs: float) -> float:  # noqa: ARG002
        """1."""
        return 1.0


@dataclass(frozen=True)
class Steps:
    """η₀ up to epoch t₀, η₀/10 up to t₁, η₀/100 after it, and so on (course, Section 9).

    Examples
    --------
    >>> [Steps((10, 20))(t, 30) for t in (0, 10, 11, 20.5)]
    [1.0, 1.0, 0.1, 0.01]
    """

    at: tuple[float, ...]
    divisor: float = 10.0

    def __call__(self, t: float, epochs: float) -> float:  # noqa: ARG002
        """divisor^−(number of marks before t)."""
        return 1 / self.divisor ** bisect_left(sorted(self.at), t)


@dataclass(frozen=True)
class Inverse:
    """η₀/(1 + ct) (course, Section 9).

    Examples
    --------
    >>> Inverse(c=0.5)(2, 30)
    0.5
    """

    c: float = 1.0

    def __call__(self, t: float, epochs: float) -> float:  # noqa: ARG002
        """1/(1 + ct)."""
        return 1 / (1 + self.c * t)


@dataclass(frozen=True)
class InverseRoot:
    """η₀/√(1 + ct) (course, Section 9).

    Examples
    --------
    >>> InverseRoot(c=1.5)(2, 30)
    0.5
    """

    c: float = 1.0

    def __call__(self, t: float, epochs: float) -> float:  # noqa: ARG002
        """1/√(1 + ct)."""
        return 1 / math.sqrt(1 + self.c * t)


@dataclass(frozen=True)
class Cosine:
    """From η₀ down to η₀·end along half a cosine (I. Loshchilov and F. Hutter, SGDR, 2017, without
    restarts).

    Examples
    --------
    >>> [round(Cosine()(t, 10), 3) for t in (0, 5, 10)]
    [1.0, 0.5, 0.0]
    """

    end: float = 0.0

    def __call__(self, t: float, epochs: float) -> float:
        """Half a cosine over the whole run."""
        return self.end + (1 - self.end) * 0.5 * (1 + math.cos(math.pi * min(1.0, t / epochs)))


@dataclass(frozen=True)
class OneCycle:
    """From η₀·start up to η₀ in a share ``rise`` of the run, then down to η₀·end, each along a
    cosine (L. Smith and N. Topin, Super-convergence, 2019).

    Examples
    --------
    >>> [round(OneCycle(rise=0.5)(t, 10), 3) for t in (0, 5, 10)]
    [0.04, 1.0, 0.0]
    """

    rise: float = 0.3
    start: float = 0.04
    end: float = 1e-5

    def __call__(self, t: float, epochs: float) -> float:
        """Up, then down."""
        u = min(1.0, t / epochs)
        if u < self.rise:
            low, v = self.start, 1 - u / self.rise
        else:
            low, v = self.end, (u - self.rise) / (1 - self.rise)
        return low + (1 - low) * 0.5 * (1 + math.cos(math.pi * v))


@dataclass(frozen=True)
class Waves:
    """½(1 − cos(2π·log₂(1 + (2ⁿ − 1)·t/epochs))): n waves, each twice as long as the one before it
    (D. Holzmüller, L. Grinsztajn and I. Steinwart 2024: "coslog", n = 4).

    Examples
    --------
    >>> [round(Waves(1)(t, 10), 3) for t in (0, 10 * (2**0.5 - 1), 10)]
    [0.0, 1.0, 0.0]
    """

    n: int = 4

    def __call__(self, t: float, epochs: float) -> float:
        """From 0 to 0, n times up and down."""
        u = min(1.0, t / epochs)
        return 0.5 * (1 - math.cos(2 * math.pi * math.log2(1 + (2**self.n - 1) * u)))


@dataclass(frozen=True)
class WarmUp:
    """Another schedule, times t/warm in the first ``warm`` epochs.

    Examples
    --------
    >>> [WarmUp(2.0, Constant())(t, 10) for t in (0, 1, 2, 5)]
    [0.0, 0.5, 1.0, 1.0]
    """

    warm: float = 1.0
    then: Schedule = Constant()

    def __call__(self, t: float, epochs: float) -> float:
        """The other schedule's factor, less in the beginning."""
        return self.then(t, epochs) * (min(1.0, t / self.warm) if self.warm > 0 else 1.0)
