"""What DP-SGD spent: ε from privacy loss distributions, Rényi beside it, for the sampler that
really ran.

Two accountants look at the same steps where dp-accounting is installed (``pip install
'surelearn[privacy]'``), and the larger ε counts. Only Poisson samples are accounted: with shuffled
batches of fixed size the formulas do not hold.
"""

from __future__ import annotations

import functools
import importlib.util
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelearn import stated
from surelearn.bounds.privacy import LARGEST, dp_sgd_epsilon, dp_sgd_renyi
from surelearn.types import RandomState

ADJACENCY = "add or remove one row"
NOT_POISSON = (
    "the batches were not drawn by PoissonSampler, each row with the same probability: no ε is"
    " known for them"
)
ALONE = "install dp-accounting (pip install 'surelearn[privacy]') for a second accountant"


@dataclass(frozen=True, kw_only=True)
class PrivacySpent:
    """What steps of DP-SGD spent.

    Attributes
    ----------
    epsilon : at ``dp_delta``, the larger of ours and dp-accounting's, both from privacy loss
        distributions
    renyi_epsilon : the looser ε of Rényi accounting
    accounted : dp-accounting's ε; 0 where it is not installed
    by : which accountants looked
    noise_multiplier, sample_rate, steps : what was accounted
    adjacency : which data sets count as adjacent
    """

    epsilon: float
    dp_delta: float
    renyi_epsilon: float
    accounted: float
    by: str
    noise_multiplier: float
    sample_rate: float
    steps: int
    adjacency: str = ADJACENCY

    def __str__(self) -> str:
        what = (
            f"noise {self.noise_multiplier:.4g}, sample rate {self.sample_rate:.4g}, {self.steps:,}"
            " steps"
        )
        return (
            f"ε ≤ {self.epsilon:.4g} at dp_delta = {self.dp_delta:g} ({self.adjacency}; {what};"
            f" {self.by})"
        )


class PoissonSampler:
    """Batches in which each of n rows is with probability ``sample_rate``, independently; counts
    what it drew.

    Parameters
    ----------
    n : number of rows
    sample_rate : q in (0, 1]
    random_state : int, RandomState, Generator or None; a seed that others know voids the guarantee

    Examples
    --------
    >>> sampler = PoissonSampler(1000, 0.01, random_state=0)
    >>> [len(batch) for batch in sampler.batches(3)], sampler.drawn
    ([11, 12, 12], 3)
    """

    def __init__(self, n: int, sample_rate: float, random_state: RandomState = None) -> None:
        if int(n) != n or n < 1:
            raise ValueError(f"n must be a whole number of at least 1, not {n}")
        if not 0 < sample_rate <= 1:
            raise ValueError(f"sample_rate must lie in (0, 1], not {sample_rate}")
        self.n, self.sample_rate, self.drawn = int(n), float(sample_rate), 0
        self._generator = generator_from(random_state)

    def draw(self) -> npt.NDArray[np.intp]:
        """The rows of the next batch; may be none."""
        self.drawn += 1
        if self.sample_rate == 1:
            return np.arange(self.n)
        if self.sample_rate > 0.1:
            return np.flatnonzero(self._generator.random(self.n) < self.sample_rate)
        # a binomial size, then rows without replacement
        size = self._generator.binomial(self.n, self.sample_rate)
        return np.sort(self._generator.choice(self.n, size, replace=False, shuffle=False))

    def batches(self, steps: int) -> Iterator[npt.NDArray[np.intp]]:
        """Poisson-sampled batches, one per step."""
        for _ in range(steps):
            yield self.draw()


def generator_from(random_state: RandomState) -> np.random.Generator:
    """A generator; seeded by the operating system for None."""
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return np.random.default_rng(random_state)
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=8, dtype=np.uint32))
    raise ValueError(
        f"random_state must be an int, a RandomState, a Generator or None, not {random_state!r}"
    )


def account(
    noise_multiplier: float, sample_rate: float, steps: int, dp_delta: float
) -> PrivacySpent:
    """What so many steps of DP-SGD on Poisson samples spend.

    Examples
    --------
    >>> spent = account(1.0, 0.01, 1000, 1e-5)
    >>> round(spent.epsilon, 2), round(spent.renyi_epsilon, 2)
    (1.83, 2.1)
    """
    installed = importlib.util.find_spec("dp_accounting") is not None
    return _account(float(noise_multiplier), float(sample_rate), steps, float(dp_delta), installed)


@functools.lru_cache(maxsize=256)
def _account(
    noise_multiplier: float, sample_rate: float, steps: int, dp_delta: float, installed: bool
) -> PrivacySpent:
    renyi = dp_sgd_renyi(noise_multiplier, sample_rate, steps, dp_delta)
    accounted, by = 0.0, f"privacy loss distribution; {ALONE}"
    if renyi > LARGEST:
        by = "Rényi accounting: nothing finer for so large an ε"
    if installed and renyi <= LARGEST:
        accounted = min(renyi, _dp_accounting(noise_multiplier, sample_rate, steps, dp_delta))
        by = "privacy loss distribution, the larger of ours and dp-accounting's"
    return PrivacySpent(
        epsilon=dp_sgd_epsilon(noise_multiplier, sample_rate, steps, dp_delta, accounted),
        dp_delta=dp_delta,
        renyi_epsilon=renyi,
        accounted=accounted,
        by=by,
        noise_multiplier=noise_multiplier,
        sample_rate=sample_rate,
        steps=int(steps),
    )


def account_sampler(
    sampler: PoissonSampler, noise_multiplier: float, dp_delta: float
) -> PrivacySpent:
    """What the batches that a sampler really drew have spent; a sampler that is not Poisson is
    refused.
    """
    if not isinstance(sampler, PoissonSampler):
        raise TypeError(NOT_POISSON)
    if dp_delta >= 1 / sampler.n:
        warnings.warn(
            f"dp_delta={dp_delta:g} is not below 1/n with n = {sampler.n}: publishing one row at"
            " random would satisfy it, so that ε promises next to nothing; choose it well"
            " below 1/n",
            stacklevel=3,
        )
    return account(noise_multiplier, sampler.sample_rate, sampler.drawn, dp_delta)


@functools.lru_cache(maxsize=256)
def noise_for(epsilon: float, dp_delta: float, sample_rate: float, steps: int) -> float:
    """The least noise multiplier, to a thousandth, with which `account` stays at or below ε: by
    bisection.

    Examples
    --------
    >>> sigma = noise_for(2.0, 1e-5, 0.01, 1000)
    >>> 1.9 < account(sigma, 0.01, 1000, 1e-5).epsilon <= 2.0
    True
    """
    stated.positive("epsilon", epsilon)

    def spends(sigma: float) -> float:
        return dp_sgd_epsilon(sigma, sample_rate, steps, dp_delta)

    low = high = 1.0
    while spends(high) > epsilon:
        low, high = high, 2 * high
        if high > 1e6:
            raise ValueError(
                f"epsilon={epsilon:g} is too small for {steps} steps at"
                f" sample_rate={sample_rate:g}: raise it"
            )
    while low == high or spends(low) <= epsilon:
        high, low = low, low / 2
        if low < 1e-2:
            break
    while high / low > 1.0005:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if spends(middle) > epsilon else (low, middle)
    while account(high, sample_rate, steps, dp_delta).epsilon > epsilon:
        high *= 1.0005
    return high


def _dp_accounting(
    noise_multiplier: float, sample_rate: float, steps: int, dp_delta: float
) -> float:
    """The ε of dp-accounting's privacy loss distributions."""
    import dp_accounting
    from dp_accounting import pld

    if steps == 0 or sample_rate == 0:
        return 0.0
    event = dp_accounting.GaussianDpEvent(noise_multiplier)
    if sample_rate < 1:
        event = dp_accounting.PoissonSampledDpEvent(sample_rate, event)
    coarse = 1e-4 * max(1.0, dp_sgd_renyi(noise_multiplier, sample_rate, steps, dp_delta) / 10)
    accountant = pld.PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE, coarse)
    accountant.compose(event, steps)
    return float(accountant.get_epsilon(dp_delta))
