"""Privacy loss distributions: the (ε, dp_delta) of a mechanism run many times, numerically and from
above.

The privacy loss ℓ = ln(P/Q) of two adjacent data sets is put on a grid such that dp_delta at every
grid point stays exact and grows in between (V. Doroshenko and others, "Connect the Dots", PoPETs
2022); sums of independent losses are powers of its Fourier transform (A. Koskela, J. Jälkö and A.
Honkela, AISTATS 2020). What leaves the window, and rounding, are added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds._special import ndtr
from surelearn.types import Array

_LARGEST = 2**21  # cells of a grid
_REACH = 9.0  # standard deviations of noise beyond which the loss counts as infinite


@dataclass(frozen=True)
class LossDistribution:
    """Losses ``(first + j)·step`` with probabilities ``masses[j]`` under P, and the probability
    of an infinite loss.
    """

    first: int
    step: float
    masses: Array
    infinite: float

    @property
    def losses(self) -> Array:
        """The grid."""
        return np.asarray((self.first + np.arange(len(self.masses))) * self.step, dtype=np.float64)

    def compose(self, times: int, tail: float) -> LossDistribution:
        """The loss of so many independent runs; what is improbable beyond ``tail`` is counted
        as infinite.
        """
        low, high = self._window(times, tail)
        first = int(np.floor(low / self.step))
        size = int(2 ** np.ceil(np.log2(max(2, np.ceil(high / self.step) - first + 1))))
        folded = np.bincount(
            (self.first + np.arange(len(self.masses))) % size, weights=self.masses, minlength=size
        )
        together = np.fft.irfft(np.fft.rfft(folded) ** times, size)
        masses = np.maximum(np.roll(together, -(first % size)), 0.0)
        rounding = 1e-13 + 1e-15 * times
        return LossDistribution(
            first, self.step, masses, min(1.0, times * self.infinite + tail + rounding)
        )

    def _window(self, times: int, tail: float) -> tuple[float, float]:
        """Between what sums of losses stay, except with probability ``tail`` above: Chernoff's
        bound.
        """
        losses, known = self.losses, self.masses > 0
        # Chernoff's bound on the sum of ``times`` losses, at the best of forty rates
        losses, logs = losses[known], np.log(self.masses[known])
        if times == 1:
            return float(losses[0]), float(losses[-1])
        spread = np.sqrt(max(self.masses[known] @ losses**2, 1e-300) * times)
        rates = np.geomspace(0.03, 300, 40) / spread
        rates = rates[rates * max(abs(losses[0]), abs(losses[-1])) < 600]
        rates = rates if len(rates) else np.array([1.0])
        need = -np.log(tail)
        high = min((times * _log_sum(logs + r * losses) + need) / r for r in rates)
        low = max(-(times * _log_sum(logs - r * losses) + need) / r for r in rates)
        return max(low, times * float(losses[0])), min(high, times * float(losses[-1]))

    def delta(self, epsilon: npt.ArrayLike) -> Array:
        """The dp_delta at which ε holds: E[(1 − e^{ε − ℓ})₊], infinite losses counted."""
        epsilon = np.atleast_1d(np.asarray(epsilon, dtype=float))
        gains = [
            self.masses @ np.maximum(-np.expm1(np.minimum(e - self.losses, 0.0)), 0.0)
            for e in epsilon
        ]
        return np.minimum(1.0, np.array(gains) + self.infinite)

    def epsilon(self, dp_delta: float) -> float:
        """The least ε ≥ 0 that holds at ``dp_delta``; infinite if none does."""
        if self.infinite >= dp_delta:
            return np.inf
        keep = self.losses > 0
        losses, masses = self.losses[keep], self.masses[keep]
        above = np.append(np.cumsum(masses[::-1])[::-1], 0.0) + self.infinite  # P(ℓ ≥ grid point)
        scaled = np.append(np.cumsum((masses * np.exp(-losses))[::-1])[::-1], 0.0)
        starts = np.append(0.0, losses)
        holds = above - np.exp(np.minimum(starts, 700.0)) * scaled <= dp_delta
        first = int(np.argmax(holds))
        if first == 0:
            return 0.0
        return float(min(starts[first], np.log((above[first - 1] - dp_delta) / scaled[first - 1])))


def subsampled_gaussian_losses(
    noise_multiplier: float, sample_rate: float, steps: int
) -> tuple[LossDistribution, ...]:
    """Losses of one step of DP-SGD, its row removed and its row added, on a grid that is fine
    enough for ``steps``.

    P = (1 − q)·N(0, σ²) + q·N(1, σ²) and Q = N(0, σ²), and the other way round: the pair that
    dominates every step of DP-SGD on Poisson samples, add-or-remove-one (Y. Zhu, J. Dong and Y.-X.
    Wang, AISTATS 2022, Theorem 11).

    Examples
    --------
    >>> removed, added = subsampled_gaussian_losses(1.0, 0.01, 1000)
    >>> round(removed.compose(1000, 1e-12).epsilon(1e-5), 2)
    1.83
    """
    sigma, q = (
        float(check.positive("noise_multiplier", noise_multiplier)),
        float(check.rate("sample_rate", sample_rate)),
    )
    check.require(q > 0, "sample_rate must be above 0")
    reach = _loss(np.array([1 + _REACH * sigma]), sigma, q)[0]
    bottom = _loss(np.array([-_REACH * sigma]), sigma, q)[0]
    step = _grid_step(sigma, q, steps, reach - bottom)
    first, last = int(np.floor(bottom / step)), int(np.ceil(reach / step))
    edges = _point(np.arange(first, last + 1, dtype=np.float64) * step, sigma, q)
    below, above = _between(np.append(-np.inf, edges), np.append(edges, np.inf), sigma)
    mixed = (1 - q) * below + q * above
    return _dots(mixed, below, first, step), _dots(below[::-1], mixed[::-1], -last, step)


def _dots(p: Array, q: Array, first: int, step: float) -> LossDistribution:
    """Each cell's mass on its two ends, such that P and Q keep their masses; outer cells go
    upwards.
    """
    inner_p, inner_q = p[1:-1], q[1:-1]
    ratio = np.exp(np.clip((first + np.arange(len(inner_p))) * step, -700, 700))
    up = np.clip((inner_p - ratio * inner_q) / -np.expm1(-step), 0.0, inner_p)
    masses = np.zeros(len(inner_p) + 1)
    masses[1:] += up
    masses[:-1] += inner_p - up
    masses[0] += p[0]
    return LossDistribution(first, step, masses, float(p[-1]))


def _grid_step(sigma: float, q: float, steps: int, width: float) -> float:
    """A fiftieth of one step's standard deviation, unless the grids of one or of all steps get
    too large.
    """
    spread = min(q * np.sqrt(np.expm1(min(1 / sigma**2, 50.0))), 1 / sigma)
    return float(max(spread / 50, width / 2**18, 30 * spread * np.sqrt(steps) / _LARGEST, 1e-7))


def _loss(x: Array, sigma: float, q: float) -> Array:
    """ln(1 − q + q·e^{(2x−1)/(2σ²)})."""
    up = np.log(q) + (2 * x - 1) / (2 * sigma**2)
    return up if q == 1 else np.logaddexp(np.log1p(-q), up)


def _point(loss: Array, sigma: float, q: float) -> Array:
    """Where the loss is taken: the inverse of `_loss`, −∞ below its range."""
    part = np.exp(loss) - (1 - q) if q < 1 else np.exp(loss)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.where(
            loss > 1,
            loss + np.log1p(-(1 - q) * np.exp(-np.maximum(loss, 1))),
            np.log(np.maximum(part, 0.0)),
        )
    return sigma**2 * (inside - np.log(q)) + 0.5


def _between(low: Array, high: Array, sigma: float) -> tuple[Array, Array]:
    """Masses of N(0, σ²) and N(1, σ²) between points, from the nearer tail."""

    def mass(a: Array, b: Array) -> Array:
        right = a > 0
        return np.where(right, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))

    return mass(low / sigma, high / sigma), mass((low - 1) / sigma, (high - 1) / sigma)


def _log_sum(values: Array) -> float:
    top = values.max()
    return float(top + np.log(np.exp(values - top).sum()))
