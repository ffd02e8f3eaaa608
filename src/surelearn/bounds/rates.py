"""Numbers that are made of several rates on fresh rows: F1, balanced accuracy, the largest
difference between subpopulations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds._checks import Value
from surelearn.bounds.holdout import IID, UNSEEN, clopper_pearson, clopper_pearson_lower
from surelearn.claim import at_least, between, theorem

_BINOMIAL = "C. J. Clopper and E. S. Pearson, Biometrika 26 (1934), 404–413"
_UNION = f"{_BINOMIAL}, for every part at its share of δ"
_PARTS = {"counts": (5, 40, 2), "sizes": (50, 60, 40), "delta": 0.05}


def _f1(inputs: Mapping[str, Any]) -> float | None:
    n = inputs["n"]
    return 2 * inputs["successes"] / (n + inputs["successes"]) if n else None


@theorem(
    "F1 by Clopper–Pearson",
    f"{_BINOMIAL}, for J = TP/(TP + FP + FN), and F1 = 2J/(1 + J)",
    assumes=(IID, UNSEEN),
    claims=at_least("f1", unit="number", measured=_f1, label="F1"),
    example={"successes": 60, "n": 66, "delta": 0.05},
)
def f1_lower(successes: npt.ArrayLike, n: npt.ArrayLike, delta: npt.ArrayLike) -> Value:
    """Lower bound on F1 = 2 P(TP) / (2 P(TP) + P(FP) + P(FN)) of one class.

    Given how many rows are of the class or called so, each of them is both (a true positive)
    independently with probability J = P(TP) / (P(TP) + P(FP) + P(FN)), and F1 = 2J/(1 + J) grows
    with J: one binomial bound is enough, where bounds on precision and recall would share δ.

    Parameters
    ----------
    successes : rows of the class that are called so
    n : rows that are of the class or called so; with none the bound is 0
    delta : failure probability

    Examples
    --------
    >>> round(f1_lower(60, 66, 0.05), 4)
    0.9062
    """
    share = np.asarray(clopper_pearson_lower(successes, n, delta))
    return check.plain(2 * share / (1 + share))


def _parts(
    counts: npt.ArrayLike, sizes: npt.ArrayLike, least: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Counts within parts of the rows, and the sizes of the parts."""
    counts, sizes = check.count("counts", counts), check.count("sizes", sizes)
    check.require(
        counts.ndim == 1 and counts.shape == sizes.shape,
        "counts and sizes must be one number per part of the rows",
    )
    check.require(counts.size >= least, f"counts must hold at least {least} numbers")
    check.require(counts <= sizes, "counts must not exceed sizes")
    return counts, sizes


def _rates(inputs: Mapping[str, Any]) -> npt.NDArray[np.float64]:
    counts, sizes = (np.asarray(inputs[name], dtype=float) for name in ("counts", "sizes"))
    return (counts / np.maximum(sizes, 1))[sizes > 0]


def _balanced(inputs: Mapping[str, Any]) -> float | None:
    """None where a class has no rows: its error was not measured."""
    rates = _rates(inputs)
    return 1 - float(rates.mean()) if rates.size == len(inputs["sizes"]) else None


def _spread(inputs: Mapping[str, Any]) -> float | None:
    """None where fewer than two parts have rows: nothing was compared."""
    rates = _rates(inputs)
    return float(np.ptp(rates)) if rates.size > 1 else None


@theorem(
    "balanced accuracy by Clopper–Pearson",
    _UNION,
    assumes=(IID, UNSEEN),
    claims=at_least("balanced_accuracy", measured=_balanced),
    example=_PARTS,
)
def balanced_accuracy_lower(counts: npt.ArrayLike, sizes: npt.ArrayLike, delta: float) -> float:
    """Lower bound on the mean over classes of the probability of a right answer: 1 − the mean of
    Clopper–Pearson bounds on the classes' errors, each at δ/K. A class without rows counts as
    wrong.

    Parameters
    ----------
    counts : (K,), errors in each class
    sizes : (K,), rows of each class
    delta : failure probability

    Examples
    --------
    >>> round(balanced_accuracy_lower([5, 9], [50, 60], 0.05), 4)
    0.7581
    """
    counts, sizes = _parts(counts, sizes, 1)
    share = float(check.confidence(delta)) / counts.size
    upper: npt.NDArray[np.float64] = np.asarray(clopper_pearson(counts, sizes, share))
    return 1 - float(upper.mean())


@theorem(
    "largest difference of rates",
    _UNION,
    assumes=(IID, UNSEEN),
    claims=between("rate_difference", trivial=1.0, measured=_spread),
    example=_PARTS,
)
def rate_difference(
    counts: npt.ArrayLike, sizes: npt.ArrayLike, delta: float
) -> tuple[float, float]:
    """Interval for the largest difference between the rates p₁ … p_V of V parts of the rows.

    With simultaneous two-sided Clopper–Pearson intervals [L, U], each at δ/V, it is at most
    max_{a ≠ b} (U_a − L_b) and at least max_{a ≠ b} (L_a − U_b), or 0. A part without rows has the
    interval [0, 1], and the upper end says nothing.

    Parameters
    ----------
    counts : (V,), how often it happened in each part
    sizes : (V,), rows of each part
    delta : failure probability

    Examples
    --------
    >>> low, high = rate_difference([5, 40], [50, 60], 0.05)
    >>> round(low, 4), round(high, 4)
    (0.2788, 0.7692)
    """
    counts, sizes = _parts(counts, sizes, 2)
    share = float(check.confidence(delta)) / (2 * counts.size)
    low = np.asarray(clopper_pearson_lower(counts, sizes, share))
    high = np.asarray(clopper_pearson(counts, sizes, share))
    apart, surely = high[:, None] - low[None, :], low[:, None] - high[None, :]
    for differences in (apart, surely):
        np.fill_diagonal(differences, 0.0)
    return max(0.0, float(surely.max())), min(1.0, float(apart.max()))
