"""Bounds for learners whose result is determined by a few of the rows: support vectors, the
perceptron's mistakes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds._checks import Value
from surelearn.bounds._tails import binomial_tail_inversion, log_choose, log_sum_exp
from surelearn.bounds.holdout import IID
from surelearn.bounds.stability import FIXED_BEFORE
from surelearn.claim import at_most, theorem


def _rest_error(inputs: Mapping[str, Any]) -> float:
    return inputs["errors"] / max(inputs["n"] - inputs["size"], 1)


@theorem(
    "Campi–Garatti compression",
    "M. C. Campi and S. Garatti, JMLR 24 (2023), Theorem 7",
    assumes=(
        IID,
        FIXED_BEFORE,
        (
            "compression is preferent: rows outside the compressed set can be removed without"
            " changing it"
        ),
        "an error on a new row would change the compression of the compressed set and that row",
    ),
    claims=at_most("risk"),
    example={"size": 38, "n": 398, "delta": 0.05},
)
def campi_garatti(size: npt.ArrayLike, n: npt.ArrayLike, delta: npt.ArrayLike) -> Value:
    """Risk of a learner that compressed n rows to ``size`` of them and errs on none of the others.

    The root ε of (δ/n)·Σ_{m=k}^{n−1} C(m, k)/C(n, k)·(1 − ε)^{−(n−m)} = 1 with k = ``size``; 1 at k
    = n. It holds for all sizes at once, and pays for that about twice the smallest conceivable
    value.

    Examples
    --------
    >>> round(campi_garatti(38, 398, 0.05), 3)
    0.145
    """
    k, n = np.broadcast_arrays(check.count("size", size), check.count("n", n, 1))
    check.require(k <= n, "size must not exceed n")
    return check.plain(
        np.vectorize(_campi_garatti_root, otypes=[float])(k, n, check.confidence(delta))
    )


def _campi_garatti_root(k: float, n: float, delta: float) -> float:
    if k == n:
        return 1.0
    check.terms(n - k)
    m = np.arange(k, n)
    terms = log_choose(m, k) - log_choose(n, k) + math.log(delta / n)
    low, high = 0.0, 1.0
    for _ in range(64):
        middle = (low + high) / 2
        if middle >= 1.0 or log_sum_exp(terms - (n - m) * math.log1p(-middle)) >= 0:
            high = middle
        else:
            low = middle
    return high


@theorem(
    "Floyd–Warmuth compression",
    "S. Floyd and M. Warmuth, Machine Learning 21 (1995), Theorem 6; with errors: J. Langford, JMLR"
    " 6 (2005), Section 6",
    assumes=(
        IID,
        FIXED_BEFORE,
        "the predictor can be rebuilt from the compressed rows and the message alone",
    ),
    claims=at_most("risk", measured=_rest_error),
    example={"size": 38, "n": 398, "delta": 0.05},
)
def floyd_warmuth(
    size: npt.ArrayLike,
    n: npt.ArrayLike,
    delta: npt.ArrayLike,
    errors: npt.ArrayLike = 0,
    messages: npt.ArrayLike = 1,
) -> Value:
    """Risk of a predictor that ``size`` of the n rows determine, from its errors on the other rows.

    `clopper_pearson` on the n − k rows that were not used, at δ / ((n + 1)·C(n, k)·messages): a
    union over which rows, how many, and which message. With no errors 1 − (δ/((n + 1)·C(n,
    k)))^{1/(n−k)}.

    Parameters
    ----------
    size : how many distinct rows determine the predictor
    errors : errors among the other rows (0: the consistent form; else the agnostic one)
    messages : how many values the further information has that is needed to rebuild it, such as a
        step count

    Examples
    --------
    >>> round(floyd_warmuth(38, 398, 0.05), 3)
    0.306
    """
    k, n, errors = np.broadcast_arrays(
        check.count("size", size), check.count("n", n, 1), check.count("errors", errors)
    )
    check.require(k + errors <= n, "size and errors together must not exceed n")
    log_delta = np.log(check.confidence(delta)) - np.log(n + 1) - log_choose(n, k)
    log_delta = log_delta - np.log(check.count("messages", messages, 1))

    def invert(errors: float, rest: float, log_delta: float) -> float:
        return binomial_tail_inversion(int(errors), int(rest), log_delta)

    return check.plain(np.vectorize(invert, otypes=[float])(errors, n - k, log_delta))
