"""Lower bounds on ε from attacks: by independent retrainings, or by canaries that were included at
random.

Each holds with probability 1 − α: of models that are (ε, dp_delta)-private, at most a part α is
told a larger bound. On one fixed model, with rows that were not included by coin flips, there is no
such bound: membership is then only a measurement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import beta, binom

from surelearn import stated
from surelearn.attacks.membership import checked_numbers
from surelearn.types import AnyArray, Array


@dataclass(frozen=True, kw_only=True)
class EpsilonLowerBound:
    """ε ≥ ``epsilon`` at ``dp_delta``, except with probability α.

    Attributes
    ----------
    true_positives, false_positives : what was counted; for canaries, right and wrong guesses
    trials : retrainings evaluated, or canaries
    """

    epsilon: float
    alpha: float
    dp_delta: float
    true_positives: int
    false_positives: int
    trials: int
    how: str

    def __str__(self) -> str:
        return (
            f"ε ≥ {self.epsilon:.3g} at dp_delta = {self.dp_delta:g}, {1 - self.alpha:.0%} sure"
            f" ({self.how})"
        )


def epsilon_from_retrainings(
    scores_in: npt.ArrayLike,
    scores_out: npt.ArrayLike,
    *,
    dp_delta: float = 0.0,
    alpha: float = 0.05,
    threshold: float | None = None,
) -> EpsilonLowerBound:
    """From scores of models that were trained independently, some with a row and some without it;
    high means with.

    With privacy, TPR ≤ e^ε·FPR + δ and 1 − FPR ≤ e^ε·(1 − TPR) + δ (course, Section 19).
    One-sided Clopper–Pearson bounds at α/2 for each rate: ε ≥ ln((TPR − δ)/FPR) or ln((1 − FPR −
    δ)/(1 − TPR)). M. Jagielski, J. Ullman and A. Oprea, NeurIPS 2020, Section 4.

    Parameters
    ----------
    scores_in, scores_out : one number a training, such as minus the row's loss
    threshold : fixed beforehand; None takes the best one on the first half of the trainings and
        evaluates it on the second

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> epsilon_from_retrainings(rng.normal(2, 1, 1000), rng.normal(0, 1, 1000), dp_delta=1e-5).epsilon > 1
    True
    """
    _check(dp_delta, alpha)
    inside, outside = (
        checked_numbers("scores_in", scores_in),
        checked_numbers("scores_out", scores_out),
    )
    how = "independent retrainings, threshold given"
    if threshold is None:
        if min(len(inside), len(outside)) < 4:
            raise ValueError(
                "scores_in and scores_out must hold at least 4 trainings each, or give threshold="
            )
        threshold = _best_threshold(inside[::2], outside[::2], dp_delta, alpha)
        inside, outside = inside[1::2], outside[1::2]
        how = "independent retrainings, threshold from half of them"
    true, false = int((inside > threshold).sum()), int((outside > threshold).sum())
    found = float(_two_rates(true, len(inside), false, len(outside), dp_delta, alpha))
    return EpsilonLowerBound(
        epsilon=found, alpha=alpha, dp_delta=dp_delta, true_positives=true, false_positives=false,
        trials=len(inside) + len(outside), how=how,
    )  # fmt: skip


def epsilon_from_canaries(
    scores: npt.ArrayLike,
    included: npt.ArrayLike,
    *,
    guesses: int | tuple[int, ...] | None = None,
    dp_delta: float = 0.0,
    alpha: float = 0.05,
) -> EpsilonLowerBound:
    """From one training, in which each of m canary rows was included by a fair coin of its own.

    The k/2 highest scores are guessed "in", the k/2 lowest "out". With (ε, δ)-privacy, at least v
    of k guesses are right with probability at most P(B ≥ v) + 2mδ·max_i P(v − i ≤ B < v)/i, where B
    is binomial with k tries and e^ε/(1 + e^ε). T. Steinke, M. Nasr and M. Jagielski, NeurIPS 2023,
    Theorem 5.2.

    Parameters
    ----------
    scores : of each canary after training; high means included
    included : whether the coin put it in
    guesses : k, fixed beforehand; several share α; None is all, a third and a tenth of the canaries

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> included = rng.random(1000) < 0.5
    >>> epsilon_from_canaries(included + rng.normal(0, 0.5, 1000), included).epsilon > 1
    True
    """
    _check(dp_delta, alpha)
    values, inside = checked_numbers("scores", scores), np.asarray(included, dtype=bool)
    if inside.shape != values.shape:
        raise ValueError(
            f"included must have one entry for each of {len(values)} scores, not shape"
            f" {inside.shape}"
        )
    m = len(values)
    if guesses is None:
        guesses = tuple(sorted({max(2, m // part // 2 * 2) for part in (1, 3, 10)}))
    tries = (guesses,) if isinstance(guesses, (int, np.integer)) else tuple(guesses)
    if not tries or any(not 1 <= k <= m for k in tries):
        raise ValueError(f"guesses must lie between 1 and the {m} canaries, not {guesses}")
    order = np.argsort(values, kind="stable")
    found = []
    for k in tries:
        right = int(inside[order[m - (k + 1) // 2 :]].sum() + (~inside[order[: k // 2]]).sum())
        found.append((_canary_bound(m, k, right, dp_delta, alpha / len(tries)), k, right))
    epsilon, k, right = max(found)
    return EpsilonLowerBound(
        epsilon=epsilon, alpha=alpha, dp_delta=dp_delta, true_positives=right, false_positives=k - right, trials=m,
        how=f"one training with {m} canaries included at random, {k} guesses",
    )  # fmt: skip


def _two_rates(
    true: AnyArray | int,
    n_in: int,
    false: AnyArray | int,
    n_out: int,
    dp_delta: float,
    alpha: float,
) -> Any:
    """The larger of both bounds, from counts (or arrays of them); at least 0."""
    true, false = np.asarray(true), np.asarray(false)
    with np.errstate(divide="ignore", invalid="ignore"):
        tpr = np.where(true > 0, beta.ppf(alpha / 2, true, n_in - true + 1), 0.0)
        fpr = np.where(false < n_out, beta.isf(alpha / 2, false + 1, n_out - false), 1.0)
        found = np.maximum(
            np.log(np.maximum(tpr - dp_delta, 1e-300) / fpr),
            np.log(np.maximum(1 - fpr - dp_delta, 1e-300) / (1 - tpr)),
        )
    return np.maximum(found, 0.0)


def _best_threshold(inside: Array, outside: Array, dp_delta: float, alpha: float) -> float:
    candidates = np.unique(np.concatenate([inside, outside]))
    true = len(inside) - np.searchsorted(np.sort(inside), candidates, side="right")
    false = len(outside) - np.searchsorted(np.sort(outside), candidates, side="right")
    return float(
        candidates[np.argmax(_two_rates(true, len(inside), false, len(outside), dp_delta, alpha))]
    )


def _canary_bound(m: int, k: int, right: int, dp_delta: float, alpha: float) -> float:
    """The largest ε whose p-value is below α, by bisection."""
    if _p_value(m, k, right, 0.0, dp_delta) >= alpha:
        return 0.0
    low, high = 0.0, 1.0
    while high < 64 and _p_value(m, k, right, high, dp_delta) < alpha:
        low, high = high, 2 * high
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if _p_value(m, k, right, middle, dp_delta) < alpha else (low, middle)
        )
    return low


def _p_value(m: int, k: int, right: int, epsilon: float, dp_delta: float) -> float:
    chance = 1 / (1 + np.exp(-epsilon))
    usual = float(binom.sf(right - 1, k, chance))
    if dp_delta == 0 or right == 0:
        return usual
    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), k, chance))
    return min(1.0, usual + 2 * m * dp_delta * float((below / np.arange(1, right + 1)).max()))


def _check(dp_delta: float, alpha: float) -> None:
    if not 0 <= dp_delta < 1:
        raise ValueError(f"dp_delta must lie in [0, 1), not {dp_delta}")
    stated.fraction("alpha", alpha)
