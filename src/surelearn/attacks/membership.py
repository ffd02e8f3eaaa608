"""Was this row in the training set? Attacks that guess, and what their success says of ε.

Attacks take losses or scores as arrays, or callables that fit and measure; they import no learner.
What they find is a measurement: an attack that fails proves nothing. Lower bounds on ε are in
`surelearn.attacks.epsilon_audit`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import norm, rankdata

from surelearn import stated
from surelearn.bounds import clopper_pearson_interval
from surelearn.types import Array, RandomState

FALSE_POSITIVE_RATES = (0.001, 0.01, 0.1)


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A measured rate with its interval: ``successes`` of ``n``; ``false_positives``: the rate of
    others that passed too.

    Where many rows score the same, that is fewer than were allowed.
    """

    value: float
    low: float
    high: float
    successes: int
    n: int
    false_positives: float


@dataclass(frozen=True, kw_only=True)
class Membership:
    """How well a score tells members from others; higher scores mean "member".

    Attributes
    ----------
    auc : the probability that a member scores above another row, ties counted half; 0.5 is guessing
    auc_low, auc_high : its interval (DeLong), at 1 − ``alpha``, asymptotic
    true_positives : by false positive rate, the rate of members found at the threshold that so few
        others pass; the interval is Clopper–Pearson's at that threshold
    advantage : the largest difference of true and false positive rate over all thresholds, which is
        at least 0 by choosing
    members, others : how many of each
    how : what was done
    """

    auc: float
    auc_low: float
    auc_high: float
    true_positives: Mapping[float, Rate]
    advantage: float
    members: int
    others: int
    alpha: float
    how: str

    def __str__(self) -> str:
        found = "; ".join(
            f"{rate.value:.1%} of members at {fpr:.1%} false"
            for fpr, rate in self.true_positives.items()
        )
        return (
            f"AUC {self.auc:.3f} ({self.auc_low:.3f} to {self.auc_high:.3f}); {found} ({self.how})"
        )


@dataclass(frozen=True, kw_only=True)
class LikelihoodRatios:
    """Log likelihood ratios of membership, a number for each row, and how well they tell
    members.
    """

    ratios: Array = field(repr=False)
    membership: Membership


def loss_threshold(
    losses_in: npt.ArrayLike,
    losses_out: npt.ArrayLike,
    *,
    alpha: float = 0.05,
    false_positive_rates: tuple[float, ...] = FALSE_POSITIVE_RATES,
) -> Membership:
    """Guess "member" where the loss is small.

    S. Yeom and others, CSF 2018, Adversary 2.

    Parameters
    ----------
    losses_in : losses of rows that were in the training set
    losses_out : losses of rows like them that were not
    alpha : 1 − the level of the intervals

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = loss_threshold(rng.exponential(0.5, 500), rng.exponential(1.0, 500))
    >>> round(found.auc, 2), found.auc_low > 0.5
    (0.64, True)
    """
    inside, outside = (
        checked_numbers("losses_in", losses_in),
        checked_numbers("losses_out", losses_out),
    )
    return tell_apart(
        -inside,
        -outside,
        how="threshold on the loss",
        alpha=alpha,
        false_positive_rates=false_positive_rates,
    )


def likelihood_ratio(
    shadow_losses: npt.ArrayLike,
    included: npt.ArrayLike,
    losses: npt.ArrayLike,
    members: npt.ArrayLike,
    *,
    alpha: float = 0.05,
    false_positive_rates: tuple[float, ...] = FALSE_POSITIVE_RATES,
    few: int = 8,
) -> LikelihoodRatios:
    """Compare a row's loss with its losses in models that had it and in models that had it not:
    LiRA.

    Losses become φ = ln(p/(1 − p)) with p = e^{−loss}, nearly Gaussian; the ratio is ln N(φ; in) −
    ln N(φ; out). Rows that no shadow model had (or all had) are compared with the models there are
    (the offline attack). N. Carlini and others, IEEE S&P 2022, Algorithm 1.

    Parameters
    ----------
    shadow_losses : (models, rows), logarithmic losses of refitted models; `shadow_models` makes
        them
    included : (models, rows), whether the model was fitted with the row
    losses : (rows,), the losses of the model that is attacked
    members : (rows,), whether it was fitted with the row
    few : with fewer models a side, all rows share one variance

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> included = rng.random((16, 200)) < 0.5; members = rng.random(200) < 0.5
    >>> hard = rng.exponential(1.0, 200)
    >>> found = likelihood_ratio(hard * (1.1 - 0.5 * included), included, hard * (1.1 - 0.5 * members), members)
    >>> found.membership.auc > 0.99
    True
    """
    shadows, inside = np.asarray(shadow_losses, dtype=float), np.asarray(included, dtype=bool)
    losses, members = checked_numbers("losses", losses), np.asarray(members, dtype=bool)
    if (
        shadows.ndim != 2
        or shadows.shape != inside.shape
        or shadows.shape[1] != len(losses)
        or len(losses) != len(members)
    ):
        raise ValueError(
            "shadow_losses and included must be (models, rows), losses and members (rows,), of the"
            " same rows"
        )
    checked_numbers("shadow_losses", shadows.ravel())
    phi, target = _logit(shadows), _logit(losses)
    with_row, without = _moments(phi, inside, few), _moments(phi, ~inside, few)
    ratios = _log_density(target, *with_row) - _log_density(target, *without)
    offline = ~inside.any(axis=0)
    ratios = np.where(offline, norm.logcdf(target, without[0], without[1]), ratios)
    ratios = np.where(inside.all(axis=0), -norm.logsf(target, *with_row), ratios)
    told = tell_apart(
        ratios[members], ratios[~members], how=f"likelihood ratio from {len(shadows)} refitted models", alpha=alpha,
        false_positive_rates=false_positive_rates,
    )  # fmt: skip
    return LikelihoodRatios(ratios=ratios, membership=told)


def shadow_models(
    fit: Callable[[npt.NDArray[np.intp], int], Any],
    losses: Callable[[Any], npt.ArrayLike],
    rows: int,
    *,
    models: int = 16,
    random_state: RandomState = None,
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Fit models on random halves of the rows and measure every row's loss in each: (models, rows)
    losses, and who was in.

    Halves come in complementary pairs, so that every row is in exactly half of an even number of
    models.

    Parameters
    ----------
    fit : from the row numbers of a half and a seed, a fitted model
    losses : from a model, the logarithmic losses of all rows
    rows : how many there are
    """
    if models < 2 or rows < 2:
        raise ValueError(f"models and rows must be at least 2, not {models} and {rows}")
    generator = np.random.default_rng(random_state)
    included = np.zeros((models, rows), dtype=bool)
    for number in range(models):
        half = generator.permutation(rows)[: rows // 2]
        included[number, half] = True
        if number % 2:
            included[number] = ~included[number - 1]
    seeds = generator.integers(2**31, size=models)
    fitted = (
        fit(np.flatnonzero(mask), int(seed)) for mask, seed in zip(included, seeds, strict=True)
    )
    return np.stack([checked_numbers("losses", losses(model)) for model in fitted]), included


def tell_apart(
    scores_in: npt.ArrayLike,
    scores_out: npt.ArrayLike,
    *,
    how: str,
    alpha: float = 0.05,
    false_positive_rates: tuple[float, ...] = FALSE_POSITIVE_RATES,
) -> Membership:
    """Area under the curve and true positive rates at low false positive rates, with intervals;
    higher means member.
    """
    inside, outside = (
        checked_numbers("scores_in", scores_in),
        checked_numbers("scores_out", scores_out),
    )
    stated.fraction("alpha", alpha)
    area, spread = _area(inside, outside)
    reach = float(norm.isf(alpha / 2)) * spread
    found = {
        float(fpr): _true_positives(inside, outside, fpr, alpha) for fpr in false_positive_rates
    }
    return Membership(
        auc=area,
        auc_low=max(0.0, area - reach),
        auc_high=min(1.0, area + reach),
        true_positives=found,
        advantage=_advantage(inside, outside),
        members=len(inside),
        others=len(outside),
        alpha=alpha,
        how=how,
    )


def _area(inside: Array, outside: Array) -> tuple[float, float]:
    """AUC and DeLong's standard error."""
    m, n = len(inside), len(outside)
    ranks = rankdata(np.concatenate([inside, outside]))
    above = (ranks[:m] - rankdata(inside)) / n  # how many others each member beats
    below = 1 - (ranks[m:] - rankdata(outside)) / m
    variance = (above.var(ddof=1) / m if m > 1 else 0.25) + (
        below.var(ddof=1) / n if n > 1 else 0.25
    )
    return float(above.mean()), float(np.sqrt(variance))


def _true_positives(inside: Array, outside: Array, fpr: float, alpha: float) -> Rate:
    """Members above the lowest threshold that at most a part ``fpr`` of the others passes."""
    stated.fraction("false_positive_rates", fpr)
    allowed = int(np.floor(fpr * len(outside)))
    threshold = np.sort(outside)[::-1][allowed]
    successes, n = int((inside > threshold).sum()), len(inside)
    low, high = clopper_pearson_interval(successes, n, alpha)
    passed = float((outside > threshold).mean())
    return Rate(
        value=successes / n, low=low, high=high, successes=successes, n=n, false_positives=passed
    )


def _advantage(inside: Array, outside: Array) -> float:
    values = np.unique(np.concatenate([inside, outside]))
    true = 1 - np.searchsorted(np.sort(inside), values) / len(inside)
    false = 1 - np.searchsorted(np.sort(outside), values) / len(outside)
    return float(max(0.0, (true - false).max()))


def _logit(losses: Array) -> Array:
    losses = np.clip(losses, 1e-12, None)
    return -losses - np.log(-np.expm1(-losses))


def _moments(phi: Array, chosen: npt.NDArray[np.bool_], few: int) -> tuple[Array, Array]:
    """Mean and standard deviation of each row over the models chosen; a row without any gets
    those of all rows.
    """
    count = chosen.sum(axis=0)
    if not count.any():
        return np.zeros(phi.shape[1]), np.ones(phi.shape[1])
    safe = np.maximum(count, 1)
    mean = np.where(chosen, phi, 0.0).sum(axis=0) / safe
    squares = np.where(chosen, (phi - mean) ** 2, 0.0).sum(axis=0)
    if count[count > 0].min() < few:
        variance = np.full(phi.shape[1], squares.sum() / max(1, (count - 1).clip(0).sum()))
    else:
        variance = squares / np.maximum(safe - 1, 1)
    return np.where(count > 0, mean, phi[chosen].mean()), np.sqrt(np.maximum(variance, 1e-12))


def _log_density(x: Array, mean: Array, deviation: Array) -> Array:
    return -0.5 * ((x - mean) / deviation) ** 2 - np.log(deviation)


def checked_numbers(name: str, values: npt.ArrayLike) -> Array:
    """A non-empty vector of numbers; infinite losses are kept finite."""
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} must be a one-dimensional array of at least one number")
    if np.isnan(array).any():
        raise ValueError(f"{name} must not hold NaN: drop those rows")
    return np.clip(array, -1e300, 1e300)
