"""Rows in groups, every row counting the same: a ratio of two means over groups, bounded by
betting.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds.holdout import GROUPS_IID, ORDER, STATED_RANGE, UNSEEN, predictable_bets
from surelearn.claim import at_most, theorem

LARGEST_GROUP = "no group has more than largest_group rows, as stated beforehand"
WHOLE_GROUPS = "a group is observed with all its rows"


def _ratio(inputs: Mapping[str, Any]) -> float:
    return float(np.sum(inputs["losses"]) / np.sum(inputs["sizes"]))


@theorem(
    "betting, row-weighted",
    "I. Waudby-Smith and A. Ramdas, J. R. Statist. Soc. B 86 (2024), Section 4, on loss − r·size of"
    " a group, inverted in r",
    assumes=(GROUPS_IID, WHOLE_GROUPS, UNSEEN, STATED_RANGE, LARGEST_GROUP, ORDER),
    claims=at_most(
        "row_weighted_risk", label="row-weighted risk", trivial="loss_bound", measured=_ratio
    ),
    example={
        "losses": (0, 1, 0, 2, 0) * 20,
        "sizes": (1, 4, 2, 5, 3) * 20,
        "largest_group": 5,
        "delta": 0.05,
    },
)
def row_weighted_betting(
    losses: npt.ArrayLike,
    sizes: npt.ArrayLike,
    largest_group: float,
    delta: float,
    loss_bound: float = 1.0,
) -> float:
    """Upper bound on the risk of a row of new groups, each *row* counting the same: R = E[S]/E[N]
    for loss S and size N.

    With losses in [0, 1] and 1 ≤ N ≤ M, for a candidate risk r the capital Kₜ(r) = ∏ᵢ (1 + λᵢ(r·Nᵢ
    − Sᵢ)/M) is a fair game if r = R, since E[r·N − S] = (r − R)·E[N] = 0, and stays positive for 0
    ≤ λᵢ < 1/(1 − r), since S ≤ N ≤ M. By Ville's inequality it ever reaches 1/δ with probability at
    most δ, so the risks that are not refuted contain R with probability 1 − δ. With bets min(λᵢ,
    ¾/(1 − r)), whose λᵢ depend on earlier groups only, every factor grows with r: the refuted risks
    are all those above one number, which halving finds. Where every group has M rows it is
    `betting_upper` of their means.

    The mean over groups, E[S/N], is another number: large groups may be the hard ones.

    Parameters
    ----------
    losses : S, the sum of the losses of each group's rows, in an order fixed beforehand
    sizes : N, the number of rows of each group
    largest_group : M, stated beforehand, never the largest one seen
    delta : failure probability
    loss_bound : the loss of one row lies in [0, loss_bound]

    Examples
    --------
    >>> round(row_weighted_betting([0, 1, 0, 2, 0] * 20, [1, 4, 2, 5, 3] * 20, 5, 0.05), 4)
    0.2592
    """
    most, bound = (
        float(check.count("largest_group", largest_group, 1)),
        float(check.positive("loss_bound", loss_bound)),
    )
    delta = float(check.confidence(delta))
    size = check.sample("sizes", sizes, 1.0, most)
    loss = check.sample("losses", losses, 0.0, most * bound) / bound
    check.require(size.size == loss.size, "losses and sizes must have the same length")
    check.require(
        np.all(loss <= size * (1 + 1e-12)),
        "the losses of a group must not exceed its size times loss_bound",
    )
    return bound * ratio_upper(np.minimum(loss, size) / most, size / most, delta, prior=1.0 / most)


def ratio_upper(
    loss: npt.NDArray[np.float64], size: npt.NDArray[np.float64], delta: float, prior: float
) -> float:
    """The smallest ratio E[loss]/E[size] that is refuted at δ, for 0 ≤ loss ≤ size ≤ 1; every
    larger one is refuted, too.

    ``prior`` is how much size the first guess of the ratio, one half, is worth; it matters for the
    bets only.
    """
    # from earlier units only
    guess = (0.5 * prior + np.cumsum(loss) - loss) / (prior + np.cumsum(size) - size)
    bets = predictable_bets(1 - (loss + guess * (1 - size)), delta, anytime=False)
    low, high = float(loss.sum() / size.sum()) if size.any() else 1.0, 1.0
    for _ in range(64):
        middle = (low + high) / 2
        if middle <= low or middle >= high:
            break
        wealth = np.cumsum(np.log1p(np.minimum(bets, 0.75 / (1 - middle)) * (middle * size - loss)))
        if wealth.max() >= math.log(1 / delta):
            high = middle
        else:
            low = middle
    return high
