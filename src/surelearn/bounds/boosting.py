"""Votes of decision stumps: how many labelings they can realize, and the risk that follows."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds import _measured as measured
from surelearn.bounds import _tails
from surelearn.bounds._checks import Value
from surelearn.bounds._tails import log_choose
from surelearn.bounds.capacity import BINARY, FIXED_CLASS, sauer
from surelearn.bounds.holdout import IID
from surelearn.claim import at_most, theorem

FIXED_ROUNDS = "the number of rounds was fixed beforehand"


def log_growth_of_stump_votes(n: npt.ArrayLike, rounds: npt.ArrayLike, d: npt.ArrayLike) -> Value:
    """The logarithm of how many labelings of n points in R^d the signs of Σ_{t ≤ T} α_t·h_t can
    realize, h_t stumps.

    Stumps and constants label n points in at most N = d(n − 1) + 1 ways up to sign; signs go into
    the α's, equal labelings into one. So a vote is a halfspace through 0 over some T of N
    labelings: ln C(N, T) + ln Σ_{i ≤ T} C(n, i), and never more than n·ln 2. The growth function
    behind Theorem 3.3, (en/T)^T·Π_H(n)^T, also counts repetitions, orders and signs.

    Examples
    --------
    >>> round(float(np.exp(log_growth_of_stump_votes(5, 1, 1))))  # C(5, 1)·(1 + 5)
    30
    """
    n, t, d = check.count("n", n, 1), check.count("rounds", rounds, 1), check.count("d", d, 1)
    ways = d * (n - 1) + 1
    log_growth = log_choose(ways, np.minimum(t, ways)) + sauer(n, t, log=True)
    return check.plain(np.minimum(log_growth, n * math.log(2)))


@theorem(
    "boosting, tail inversion",
    "J.-S. Leboeuf, F. LeBlanc and M. Marchand, arXiv:2111.00062 (2021), Theorem 8, for votes of"
    " stumps",
    assumes=(IID, FIXED_CLASS, BINARY, FIXED_ROUNDS),
    claims=at_most("risk", measured=measured.error_rate),
    example={"errors": 600, "n": 6000, "delta": 0.05, "rounds": 10, "d": 12},
)
def boosting_tail_inversion(
    errors: npt.ArrayLike,
    n: npt.ArrayLike,
    delta: npt.ArrayLike,
    rounds: npt.ArrayLike,
    d: npt.ArrayLike,
    ghost: npt.ArrayLike | None = None,
) -> Value:
    """Risk of a vote of T stumps in R^d: `hypergeometric_tail_inversion` with the growth function
    of such votes.

    With a ghost sample of g rows, M = n + g and δ' = δ/(4·Π(M)), Π by `log_growth_of_stump_votes`,
    let K be the largest number of errors among M rows that shows at most ``errors`` among n of them
    with probability ≥ δ'. Then R ≤ max(1, K − errors)/g.

    Parameters
    ----------
    ghost : rows of the ghost sample, fixed before seeing ``errors`` (it may depend on n, T, d and
        δ); by default 4n

    Examples
    --------
    >>> round(boosting_tail_inversion(600, 6000, 0.05, rounds=10, d=12), 3)
    0.206
    """
    errors, n = check.count("errors", errors), check.count("n", n, 1)
    delta = check.confidence(delta)
    ghost = 4 * n if ghost is None else check.count("ghost", ghost, 1)
    check.require(errors <= n, "errors must not exceed n")
    log_delta = np.log(delta / 4) - log_growth_of_stump_votes(n + ghost, rounds, d)

    def invert(errors: float, n: float, ghost: float, log_delta: float) -> float:
        most = _tails.hypergeometric_tail_inversion(int(errors), int(n), int(n + ghost), log_delta)
        return max(1, most - int(errors)) / ghost

    return check.plain(np.vectorize(invert, otypes=[float])(errors, n, ghost, log_delta))
