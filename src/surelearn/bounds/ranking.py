"""How well scores rank: the area under the ROC curve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds._checks import Value
from surelearn.bounds._tails import kl_inverse
from surelearn.bounds.holdout import IID, UNSEEN
from surelearn.claim import at_least, theorem


def _auc(inputs: Mapping[str, Any]) -> float | None:
    """None where a class has no rows: no pair was measured."""
    return inputs["auc"] if inputs["positives"] and inputs["negatives"] else None


@theorem(
    "Chernoff–kl for AUC",
    "W. Hoeffding, J. Amer. Statist. Assoc. 58 (1963), Theorem 1 (2.1) for averages of dependent"
    " sums as in Section 5",
    assumes=(IID, UNSEEN),
    claims=at_least("auc", unit="number", measured=_auc, trivial=0.5, label="AUC"),
    example={"auc": 0.95, "positives": 60, "negatives": 110, "delta": 0.05},
)
def auc_lower(
    auc: npt.ArrayLike, positives: npt.ArrayLike, negatives: npt.ArrayLike, delta: npt.ArrayLike
) -> Value:
    """Lower bound on the probability A that a positive row's score is above a negative row's, ties
    counting one half: the smallest p ≤ auc with kl(auc ‖ p) ≤ ln(1/δ)/m, m = min(positives,
    negatives).

    The measured AUC is a two-sample U-statistic: the average, over all ways to give m rows of one
    class different partners of the other, of means of m independent pairs. exp is convex, so
    E exp(s·AUC) is at most that of one such mean, (1 − A + A·exp(s/m))^m, from which Chernoff's
    bound P(AUC ≥ a) ≤ exp(−m·kl(a ‖ A)) follows for a ≥ A as for m independent pairs. By Pinsker's
    inequality the bound is never below auc − √(ln(1/δ)/(2m)). It holds given the numbers of rows of
    each class. 0 where a class has no rows.

    Parameters
    ----------
    auc : the measured AUC
    positives, negatives : numbers of rows
    delta : failure probability

    Examples
    --------
    >>> round(auc_lower(0.95, 60, 110, 0.05), 4)
    0.851
    """
    auc, delta = check.rate("auc", auc), check.confidence(delta)
    pairs = np.minimum(check.count("positives", positives), check.count("negatives", negatives))
    bound = 1 - kl_inverse(1 - auc, np.log(1 / delta) / np.maximum(pairs, 1))
    return check.plain(np.where(pairs > 0, np.maximum(bound, 0.0), 0.0))
