"""Bounds that hold for every predictor of a class at once, and the sizes of classes.

They need no held-back rows: the class, not the sample, is what was fixed beforehand. They pay for
its richness and are often vacuous; they are kept because the thesis compares them and because they
explain why held-back rows are worth more.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds import _measured as measured
from surelearn.bounds import _tails
from surelearn.bounds._checks import Value
from surelearn.bounds._sources import THESIS
from surelearn.bounds._tails import log_choose, log_sum_exp
from surelearn.bounds.holdout import IID
from surelearn.claim import ALWAYS, at_most, equal, theorem

FIXED_CLASS = (
    "the class of predictors and every choice of preprocessing were fixed before seeing the rows"
)
BINARY = "two classes, unweighted rows"


@theorem(
    "finite class",
    f"{THESIS}, Theorem 2.2 (2.13)",
    assumes=(IID, FIXED_CLASS, "the class is finite"),
    claims=at_most("risk", measured=measured.risk),
    example={"risk": 0.05, "n": 1000, "delta": 0.05, "size": 100},
)
def finite_class(
    risk: npt.ArrayLike, n: npt.ArrayLike, delta: npt.ArrayLike, size: npt.ArrayLike
) -> Value:
    """Risk of any member of a finite class: risk + √((ln size + ln(1/δ)) / 2n).

    Examples
    --------
    >>> round(finite_class(0.05, 1000, 0.05, size=100), 4)
    0.1116
    """
    risk, n, delta = check.rate("risk", risk), check.count("n", n, 1), check.confidence(delta)
    size = check.count("size", size, 1)
    return check.plain(risk + np.sqrt((np.log(size) + np.log(1 / delta)) / (2 * n)))


@theorem(
    "growth function",
    f"{THESIS}, Theorem 2.3 (2.21); L. Devroye, L. Györfi and G. Lugosi (1996), Theorem 12.5",
    assumes=(IID, FIXED_CLASS, BINARY),
    claims=at_most("risk", measured=measured.risk),
    example={"risk": 0.05, "n": 60000, "delta": 0.05, "log_growth": 50.0},
)
def growth_function_bound(
    risk: npt.ArrayLike, n: npt.ArrayLike, delta: npt.ArrayLike, log_growth: npt.ArrayLike
) -> Value:
    """Risk of any member of a class whose growth function at n is e^log_growth: risk + √(32(ln(8/δ)
    + ln Π(n)) / n).

    Examples
    --------
    >>> round(growth_function_bound(0.0, 60000, 0.05, log_growth=50.0), 4)
    0.1714
    """
    risk, n, delta = check.rate("risk", risk), check.count("n", n, 1), check.confidence(delta)
    log_growth = check.nonnegative("log_growth", log_growth)
    return check.plain(risk + np.sqrt(32 * (np.log(8 / delta) + log_growth) / n))


@theorem(
    "Sauer's lemma",
    f"{THESIS}, Lemma 2.1 (2.22, 2.23)",
    assumes=("the class has the stated VC dimension",),
    claims=at_most("growth_function", holds=ALWAYS, trivial=None, unit="number"),
    example={"n": 10, "vc_dimension": 3},
)
def sauer(
    n: npt.ArrayLike,
    vc_dimension: npt.ArrayLike,
    form: Literal["sum", "power"] = "sum",
    log: bool = False,
) -> Value:
    """How many labelings of n points a class of VC dimension d can realize at most.

    ``form="sum"`` is Σ_{i ≤ d} C(n, i); ``form="power"`` the weaker (en/d)^d, for n ≥ d ≥ 1.
    ``log=True`` gives the natural logarithm, which does not overflow.

    Examples
    --------
    >>> sauer(10, 3)
    176.0
    >>> round(sauer(10, 3, form="power"), 1)
    743.9
    """
    n, d = np.broadcast_arrays(check.count("n", n, 1), check.count("vc_dimension", vc_dimension))
    if form == "power":
        check.require((n >= d) & (d >= 1), "form='power' needs n ≥ vc_dimension ≥ 1")
        result = d * (1 + np.log(n / d))
    elif form == "sum":
        result = np.vectorize(_log_sauer_sum, otypes=[float])(n, d)
    else:
        raise ValueError(f"form must be 'sum' or 'power', not {form!r:.60}")
    if log:
        return check.plain(result)
    if form == "sum":
        return check.plain(np.vectorize(_sauer_sum, otypes=[float])(n, d))
    with np.errstate(over="ignore"):
        return check.plain(np.exp(result))


def _sauer_sum(n: float, d: float) -> float:
    """The sum in whole numbers, as far as floats reach."""
    if _log_sauer_sum(n, d) > 709:
        return math.inf
    return float(sum(math.comb(int(n), i) for i in range(int(min(n, d)) + 1)))


def _log_sauer_sum(n: float, d: float) -> float:
    if d >= n:
        return n * math.log(2)
    check.terms(d)
    return log_sum_exp(log_choose(n, np.arange(d + 1)))


@theorem(
    "Vapnik–Chervonenkis",
    f"{THESIS}, Theorem 2.4 (2.25)",
    assumes=(IID, FIXED_CLASS, BINARY),
    claims=at_most("risk", measured=measured.risk),
    example={"risk": 0.05, "n": 600, "delta": 0.05, "vc_dimension": 7},
)
def vc(
    risk: npt.ArrayLike, n: npt.ArrayLike, delta: npt.ArrayLike, vc_dimension: npt.ArrayLike
) -> Value:
    """Risk of any member of a class of VC dimension d: risk + √(32(ln(8/δ) + d·ln(en/d)) / n), for
    n ≥ d ≥ 1.

    Examples
    --------
    >>> round(vc(0.05, 600, 0.05, vc_dimension=7), 2)
    1.57
    """
    return growth_function_bound(risk, n, delta, sauer(n, vc_dimension, form="power", log=True))


@theorem(
    "Vapnik, relative deviation",
    "V. Vapnik, Statistical Learning Theory (1998), Theorem 4.4 with (4.24); the form behind Table"
    f" 5.2 of {THESIS}",
    assumes=(IID, FIXED_CLASS, BINARY),
    claims=at_most("risk", measured=measured.risk),
    example={"risk": 0.05, "n": 6000, "delta": 0.05, "vc_dimension": 7},
)
def vapnik(
    risk: npt.ArrayLike, n: npt.ArrayLike, delta: npt.ArrayLike, vc_dimension: npt.ArrayLike
) -> Value:
    """Risk of any member of a class of VC dimension d, by relative deviation: tighter than `vc` at
    small risks.

    With E = 4(d(ln(2n/d) + 1) + ln(4/δ))/n, from (R − risk)² ≤ E·R: risk + (E/2)(1 + √(1 +
    4·risk/E)).

    Examples
    --------
    >>> round(vapnik(0.0, 6000, 0.05, vc_dimension=7), 4)
    0.0423
    """
    risk, n, delta = check.rate("risk", risk), check.count("n", n, 1), check.confidence(delta)
    d = check.count("vc_dimension", vc_dimension, 1)
    check.require(n >= d, "n must be at least vc_dimension")
    e = 4 * (d * (np.log(2 * n / d) + 1) + np.log(4 / delta)) / n
    return check.plain(risk + e / 2 * (1 + np.sqrt(1 + 4 * risk / e)))


@theorem(
    "hypergeometric tail inversion",
    "J.-S. Leboeuf, F. LeBlanc and M. Marchand, arXiv:2111.00062 (2021), Theorem 8",
    assumes=(IID, FIXED_CLASS, BINARY),
    claims=at_most("risk", measured=measured.error_rate),
    example={"errors": 30, "n": 600, "delta": 0.05, "vc_dimension": 7},
)
def hypergeometric_tail_inversion(
    errors: npt.ArrayLike,
    n: npt.ArrayLike,
    delta: npt.ArrayLike,
    vc_dimension: npt.ArrayLike,
    ghost: npt.ArrayLike | None = None,
) -> Value:
    """Risk of any member of a class of VC dimension d, without relaxing the ghost-sample argument.

    With a ghost sample of g rows, M = n + g and δ' = δ/(4·Σ_{i ≤ d} C(M, i)), let K be the largest
    number of errors among M rows that shows at most ``errors`` among n of them with probability ≥
    δ'. Then R ≤ max(1, K − errors)/g: some bad predictor has at least g·R ghost errors with
    probability > ¼ (Greenberg and Mohri 2014, for R > 1/g), and then more than K among M, which for
    one labeling has probability < δ'.

    Parameters
    ----------
    ghost : rows of the ghost sample, fixed before seeing ``errors`` (it may depend on n, d and δ);
        by default 4n

    Examples
    --------
    >>> round(hypergeometric_tail_inversion(30, 600, 0.05, vc_dimension=7), 2)
    0.2
    """
    errors, n = check.count("errors", errors), check.count("n", n, 1)
    delta, d = check.confidence(delta), check.count("vc_dimension", vc_dimension, 1)
    ghost = 4 * n if ghost is None else check.count("ghost", ghost, 1)
    check.require(errors <= n, "errors must not exceed n")
    return check.plain(np.vectorize(_invert_ghost_tail, otypes=[float])(errors, n, delta, d, ghost))


def _invert_ghost_tail(errors: float, n: float, delta: float, d: float, ghost: float) -> float:
    total = int(n + ghost)
    log_delta = math.log(delta / 4) - _log_sauer_sum(total, d)
    most = _tails.hypergeometric_tail_inversion(int(errors), int(n), total, log_delta)
    return max(1, most - int(errors)) / ghost


@theorem(
    "structural risk",
    f"{THESIS}, Section 2.2.2, step 4 with δ spread over the classes; Theorem 2.5",
    assumes=(IID, "the sequence of classes was fixed before seeing the rows", BINARY),
    claims=at_most("risk", measured=measured.risk),
    example={"risk": 0.05, "n": 60000, "delta": 0.05, "vc_dimension": 7, "index": 3},
)
def structural_risk(
    risk: npt.ArrayLike,
    n: npt.ArrayLike,
    delta: npt.ArrayLike,
    vc_dimension: npt.ArrayLike,
    index: npt.ArrayLike,
) -> Value:
    """`vc` for the index-th of a sequence of classes, valid for whichever class is chosen: δ_j =
    6δ/(π²j²).

    Choosing among classes costs a union over them, which the thesis' step 4 leaves out; Σ δ_j = δ
    pays it. The choice that minimizes this bound is strongly universally consistent (Theorem 2.5)
    if the classes' best risks tend to the Bayes risk and Σ_j e^{−V_j} < ∞: the dimensions must
    grow, and fast enough.

    Parameters
    ----------
    index : the class's position in the sequence, from 1

    Examples
    --------
    >>> structural_risk([0.2, 0.1, 0.09], 60000, 0.05, [2, 5, 20], [1, 2, 3]).round(3).tolist()
    [0.323, 0.277, 0.407]
    """
    index = check.count("index", index, 1)
    return vc(risk, n, 6 * check.confidence(delta) / (np.pi * index) ** 2, vc_dimension)


@theorem(
    "VC dimension of stumps",
    "S. Gey, Statist. Probab. Lett. 138 (2018), Vapnik–Chervonenkis dimension of axis-parallel"
    " cuts",
    claims=equal("vc_dimension", label="VC dimension"),
    example={"d": 12},
)
def vc_dimension_of_stumps(d: npt.ArrayLike) -> Value:
    """Exact VC dimension of decision stumps in R^d: the largest k with C(k, ⌊k/2⌋) ≤ 2d.

    Sets of size ⌊k/2⌋ form the largest antichain of labelings, and one axis shows at most two of
    them. The thesis' counting argument (eq. 3.4) gives only an upper bound, 7 in R¹² where 6 is
    exact.

    Examples
    --------
    >>> vc_dimension_of_stumps([1, 2, 3, 12]).tolist()
    [2.0, 3.0, 4.0, 6.0]
    """

    def largest(d: float) -> int:
        k = 1
        while math.comb(k + 1, (k + 1) // 2) <= 2 * d:
            k += 1
        return k

    return check.plain(np.vectorize(largest, otypes=[float])(check.count("d", d, 1)))


@theorem(
    "number of stumps at stated thresholds",
    "counted: two answers for each feature and threshold, and the two constants",
    claims=equal("size_of_the_class"),
    example={"d": 12, "thresholds": 10},
)
def number_of_stumps(d: npt.ArrayLike, thresholds: npt.ArrayLike) -> Value:
    """At k thresholds for each of d features there are 2dk + 2 decision stumps.

    Parameters
    ----------
    thresholds : k, as stated; equal ones are counted as often as they were stated

    Examples
    --------
    >>> number_of_stumps(2, 3)
    14.0
    """
    return check.plain(2 * check.count("d", d, 1) * check.count("thresholds", thresholds) + 2)


@theorem(
    "VC dimension of halfspaces",
    "L. Devroye, L. Györfi and G. Lugosi (1996), Corollary 13.1",
    claims=equal("vc_dimension", label="VC dimension"),
    example={"d": 12},
)
def vc_dimension_of_halfspaces(d: npt.ArrayLike, intercept: bool = True) -> Value:
    """Exact VC dimension of halfspaces in R^d: d + 1, or d without an intercept.

    Examples
    --------
    >>> vc_dimension_of_halfspaces(12)
    13.0
    """
    return check.plain(check.count("d", d, 1) + (1 if intercept else 0))


@theorem(
    "VC dimension of sigmoid networks",
    f"{THESIS}, Theorem 4.1 (4.5); M. Anthony and P. Bartlett (1999), Theorem 8.14",
    assumes=("the network's output is computed in the stated number of operations",),
    claims=at_most("vc_dimension", label="VC dimension", holds=ALWAYS, trivial=None, unit="number"),
    example={"parameters": 100, "operations": 1000, "exponentials": 10},
)
def vc_dimension_of_sigmoid_network(
    parameters: npt.ArrayLike, operations: npt.ArrayLike, exponentials: npt.ArrayLike | None = None
) -> Value:
    """VC dimension of functions computed from w parameters in t operations (arithmetic, jumps,
    exponentials).

    t²w(w + 19·log₂(9w)); with at most q exponentials (w(q + 1))² + 11w(q + 1)(t + log₂(9w(q + 1))).

    Examples
    --------
    >>> round(vc_dimension_of_sigmoid_network(100, 1000, exponentials=10))
    13470606
    """
    w, t = check.count("parameters", parameters, 1), check.count("operations", operations, 1)
    if exponentials is None:
        return check.plain(t**2 * w * (w + 19 * np.log2(9 * w)))
    wq = w * (check.count("exponentials", exponentials) + 1)
    return check.plain(wq**2 + 11 * wq * (t + np.log2(9 * wq)))


@theorem(
    "VC dimension of two-layer sigmoid networks on integers",
    f"{THESIS}, Theorem 4.2; M. Anthony and P. Bartlett (1999), Theorem 8.11",
    assumes=(
        "inputs are whole numbers in {−k, …, k}",
        "two layers, sigmoid units, a linear threshold output",
    ),
    claims=at_most("vc_dimension", label="VC dimension", holds=ALWAYS, trivial=None, unit="number"),
    example={"parameters": 1000, "inputs_per_unit": 784, "k": 128},
)
def vc_dimension_of_two_layer_sigmoid(
    parameters: npt.ArrayLike, inputs_per_unit: npt.ArrayLike, k: npt.ArrayLike
) -> Value:
    """VC dimension of a two-layer sigmoid network on integer inputs of size at most k:
    2W·log₂(60·N·k).

    Examples
    --------
    >>> round(vc_dimension_of_two_layer_sigmoid(1000, 784, 128))
    45043
    """
    w, fan_in = (
        check.count("parameters", parameters, 1),
        check.count("inputs_per_unit", inputs_per_unit, 1),
    )
    return check.plain(2 * w * np.log2(60 * fan_in * check.count("k", k, 1)))


@theorem(
    "boosting, finite class",
    f"{THESIS}, Theorem 3.2 (3.10); R. Schapire and Y. Freund, Boosting (2012), Theorem 4.3",
    assumes=(IID, FIXED_CLASS, BINARY, "the number of rounds was fixed beforehand"),
    claims=at_most("risk", measured=measured.risk),
    example={"risk": 0.0, "n": 60000, "delta": 0.05, "rounds": 10, "size": 1000},
)
def boosting_finite(
    risk: npt.ArrayLike,
    n: npt.ArrayLike,
    delta: npt.ArrayLike,
    rounds: npt.ArrayLike,
    size: npt.ArrayLike,
) -> Value:
    """Risk of a vote of T members of a finite class: risk + √(32(T·ln(en·size/T) + ln(8/δ)) / n),
    for n ≥ T.

    Examples
    --------
    >>> round(boosting_finite(0.0, 60000, 0.05, rounds=10, size=1000), 3)
    0.302
    """
    n, t = check.count("n", n, 1), check.count("rounds", rounds, 1)
    check.require(n >= t, "n must be at least rounds")
    return growth_function_bound(
        risk, n, delta, t * (1 + np.log(n * check.count("size", size, 1) / t))
    )


@theorem(
    "boosting, VC",
    f"{THESIS}, Theorem 3.3 (3.11); R. Schapire and Y. Freund, Boosting (2012), Theorem 4.6",
    assumes=(IID, FIXED_CLASS, BINARY, "the number of rounds was fixed beforehand"),
    claims=at_most("risk", measured=measured.risk),
    example={"risk": 0.0, "n": 600, "delta": 0.05, "rounds": 10, "vc_dimension": 7},
)
def boosting_vc(
    risk: npt.ArrayLike,
    n: npt.ArrayLike,
    delta: npt.ArrayLike,
    rounds: npt.ArrayLike,
    vc_dimension: npt.ArrayLike,
) -> Value:
    """Risk of a vote of T members of a class of VC dimension V, for n ≥ max(T, V).

    risk + √(32(T(ln(en/T) + V·ln(en/V)) + ln(8/δ)) / n). The thesis' Table 5.1 leaves out both e's;
    this does not, and gives 4.8310 where the table prints 4.3671 (`surelearn.papers.thesis` has the
    table's form).

    Examples
    --------
    >>> round(boosting_vc(0.0, 600, 0.05, rounds=10, vc_dimension=7), 4)
    4.831
    """
    n, t = check.count("n", n, 1), check.count("rounds", rounds, 1)
    v = check.count("vc_dimension", vc_dimension, 1)
    check.require((n >= t) & (n >= v), "n must be at least rounds and vc_dimension")
    return growth_function_bound(risk, n, delta, t * (1 + np.log(n / t) + v * (1 + np.log(n / v))))
