"""Prediction sets: all labels whose score is at most a threshold, which a fixed rank of certified rows
gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds._checks import Value
from surelearn.bounds.holdout import IID, UNSEEN, conformal_rank_pac
from surelearn.claim import at_least, theorem

SCORE_FIXED = "the score of a label was fixed without these rows"


def _covered(inputs: Mapping[str, Any]) -> float | None:
    """The part of these rows that is covered."""
    return inputs["covered"] / inputs["n"] if inputs["n"] else None


@theorem(
    "PAC prediction sets",
    "V. Vovk, Conditional validity of inductive conformal predictors, Machine Learning 92 (2013),"
    " Proposition 2a; S. S. Wilks, Ann. Math. Statist. 12 (1941), 91–96",
    assumes=(IID, UNSEEN, SCORE_FIXED),
    claims=at_least("set_coverage", measured=_covered),
    example={"covered": 161, "n": 171, "alpha": 0.1, "delta": 0.05},
)
def conformal_coverage(
    covered: npt.ArrayLike, n: npt.ArrayLike, alpha: npt.ArrayLike, delta: npt.ArrayLike
) -> Value:
    """How many of new rows have a true label whose score s(x, y) is at most a threshold t: at least
    1 − α, if k of n certified rows have, where k = `conformal_rank_pac` (n, α, δ); else nothing.

    Let q be the smallest number with P(s ≤ q) ≥ 1 − α. Less than 1 − α is below t only if t < q, and
    then k scores of n are below q, each with probability P(s < q) ≤ 1 − α: this has probability at
    most P(Bin(n, 1 − α) ≥ k) ≤ δ. Ties only help. The threshold may be the k-th smallest score of
    these same rows, or any larger one, since k depends on n, α and δ alone. Given all labels, the rows
    of one label are independent draws of its rows: the same holds for each label by itself.

    Parameters
    ----------
    covered : rows whose true label has a score of at most t; a label that the model does not know
        has none
    n : number of rows, such as all, or those of one label
    alpha : the part of new rows that may be missed
    delta : failure probability

    Examples
    --------
    >>> conformal_coverage(161, 171, 0.1, 0.05), conformal_coverage(160, 171, 0.1, 0.05)
    (0.9, 0.0)
    """
    rows, counts = np.broadcast_arrays(check.count("n", n, 1), check.count("covered", covered))
    check.require(counts <= rows, "covered must not exceed n")
    rank = np.asarray(conformal_rank_pac(rows, alpha, delta))
    # 1 − 0.3 is not 0.7 in floats
    sure = np.round(1 - check.confidence(alpha, "alpha"), 12)
    return check.plain(np.where(counts >= rank, sure, 0.0))
