"""Bounds from margins: for votes of weak learners, and for linear and kernel classifiers."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds import _measured as measured
from surelearn.bounds._checks import Value
from surelearn.bounds._sources import THESIS
from surelearn.bounds.capacity import BINARY, FIXED_CLASS
from surelearn.bounds.holdout import IID
from surelearn.claim import at_most, theorem


def smallest_margin(n: npt.ArrayLike, vc_dimension: npt.ArrayLike) -> Value:
    """θ_min = √(8V·ln(en/V)/n), above which Theorem 3.5 speaks (the thesis prints it without the
    /n).

    Examples
    --------
    >>> round(smallest_margin(600, 7), 4)
    0.7133
    """
    n, v = check.count("n", n, 1), check.count("vc_dimension", vc_dimension, 1)
    check.require(n >= v, "n must be at least vc_dimension")
    return check.plain(np.sqrt(8 * v * (1 + np.log(n / v)) / n))


@theorem(
    "boosting margins, VC",
    f"{THESIS}, Theorem 3.5 (with the missing /m); R. Schapire and Y. Freund, Boosting (2012),"
    " Theorem 5.5",
    assumes=(IID, FIXED_CLASS, BINARY),
    claims=at_most("risk", measured=measured.margin_error),
    example={"margin_error": 0.1, "n": 60000, "delta": 0.05, "margin": 0.5, "vc_dimension": 7},
)
def boosting_margin_vc(
    margin_error: npt.ArrayLike,
    n: npt.ArrayLike,
    delta: npt.ArrayLike,
    margin: npt.ArrayLike,
    vc_dimension: npt.ArrayLike,
) -> Value:
    """Risk of a vote over a class of VC dimension V, from the fraction of rows with normalized
    margin ≤ θ.

    margin_error + 4e^{−kθ²/8} + √(32(ln(k(k+1)²) + kV·ln(en/V) + ln(8/δ)) / n), k =
    ⌈(4/θ²)·ln(nθ²/(8V·ln(en/V)))⌉. It holds for every θ > `smallest_margin` at once, and for any
    number of rounds. At or below it k < 1, and the theorem is silent: refused. (Its proof would
    allow 2 for the factor 4.)

    Parameters
    ----------
    margin_error : fraction of the n rows whose margin y·f(x)/Σα is at most ``margin``
    margin : θ in (0, 1]

    Examples
    --------
    >>> round(boosting_margin_vc(0.1, 60000, 0.05, margin=0.5, vc_dimension=7), 3)
    2.277
    """
    margin_error, delta = check.rate("margin_error", margin_error), check.confidence(delta)
    n, v, theta = (
        check.count("n", n, 1),
        check.count("vc_dimension", vc_dimension, 1),
        check.rate("margin", margin),
    )
    least = smallest_margin(n, v)
    check.require(
        theta > least,
        f"margin must exceed {np.max(least):.4f} (smallest_margin); below, the theorem is silent",
    )
    log_growth = v * (1 + np.log(n / v))
    k = np.ceil(4 / theta**2 * np.log(n * theta**2 / (8 * log_growth)))
    check.require(k >= 1, "margin is too close to smallest_margin; the theorem is silent")
    deviation = np.sqrt(32 * (np.log(k * (k + 1) ** 2) + k * log_growth + np.log(8 / delta)) / n)
    return check.plain(margin_error + 4 * np.exp(-k * theta**2 / 8) + deviation)


@theorem(
    "boosting margins, finite class",
    f"{THESIS}, Theorem 3.4; constants from the proof of R. Schapire and Y. Freund, Boosting"
    " (2012), Theorem 5.1",
    assumes=(IID, FIXED_CLASS, BINARY, "the class of weak learners is finite"),
    claims=at_most("risk", measured=measured.margin_error),
    example={"margin_error": 0.1, "n": 60000, "delta": 0.05, "margin": 0.5, "size": 1000},
)
def boosting_margin_finite(
    margin_error: npt.ArrayLike,
    n: npt.ArrayLike,
    delta: npt.ArrayLike,
    margin: npt.ArrayLike,
    size: npt.ArrayLike,
) -> Value:
    """Risk of a vote over a finite class H, from the fraction of rows with normalized margin ≤ θ,
    with its constants.

    Draw k weak learners by their weights: by Hoeffding their average crosses θ/2 wrongly with
    probability ≤ e^{−kθ²/8}, once on the distribution and once on the sample; and a union over
    |H|^k averages, k + 1 thresholds and all k (weights 1/(k(k+1))) compares the two. So for every k
    and θ at once margin_error + 2e^{−kθ²/8} + √((ln(k(k+1)²/δ) + k·ln|H|) / 2n); the smallest over
    k is returned.

    Examples
    --------
    >>> round(boosting_margin_finite(0.1, 60000, 0.05, margin=0.5, size=1000), 3)
    0.21
    """
    margin_error, delta = check.rate("margin_error", margin_error), check.confidence(delta)
    n, size = check.count("n", n, 1), check.count("size", size, 1)
    theta = check.positive("margin", check.rate("margin", margin))

    def smallest(n: float, delta: float, theta: float, size: float) -> float:
        # Past k = (16/θ²)·ln(n + 2) the exponential is below n⁻², while the root only grows.
        # Every k is valid: where there are very many, a fine grid of them will do.
        last = math.ceil(16 / theta**2 * math.log(n + 2)) + 1
        k = (
            np.arange(1.0, last + 1)
            if last <= 10**5
            else np.unique(np.geomspace(1, last, 10**5).round())
        )
        deviation = np.sqrt(
            (np.log(k) + 2 * np.log(k + 1) - math.log(delta) + k * math.log(size)) / (2 * n)
        )
        return float(np.min(2 * np.exp(-k * theta**2 / 8) + deviation))

    return check.plain(margin_error + np.vectorize(smallest, otypes=[float])(n, delta, theta, size))


@theorem(
    "Rademacher margin, uniform over norms",
    "M. Mohri, A. Rostamizadeh and A. Talwalkar (2018), Theorems 3.3 and 5.10, Lemma 5.7; dyadic"
    " union over ‖w‖r/ρ",
    assumes=(
        IID,
        "‖x‖ ≤ radius for every row, as stated",
        FIXED_CLASS,
        "no unregularized intercept",
        BINARY,
    ),
    claims=at_most("risk", measured=measured.margin_error),
    example={
        "margin_error": 0.05,
        "n": 60000,
        "delta": 0.05,
        "norm": 10.0,
        "radius": 1.0,
        "margin": 1.0,
    },
)
def rademacher_margin(
    margin_error: npt.ArrayLike,
    n: npt.ArrayLike,
    delta: npt.ArrayLike,
    norm: npt.ArrayLike,
    radius: npt.ArrayLike,
    margin: npt.ArrayLike,
) -> Value:
    """Risk of sign⟨w, x⟩ from the fraction of rows with y⟨w, x⟩ ≤ ρ, for measured ‖w‖ and chosen ρ.

    For ‖w‖r/ρ ≤ B fixed beforehand the risk is at most margin_error + 2B/√n + √(ln(1/δ)/2n).
    Neither ‖w‖ nor ρ was fixed beforehand; a union over B = 2⁰, 2¹, 2², … with δ_j = δ/((j+1)(j+2))
    pays for both: margin_error + 2·2^j/√n + √(ln((j+1)(j+2)/δ)/2n), j = ⌈log₂ max(1, ‖w‖r/ρ)⌉. For
    kernels ‖w‖ is the RKHS norm and r² bounds k(x, x).

    Parameters
    ----------
    norm : ‖w‖ of the fitted classifier
    radius : r, a bound on ‖x‖ that the user states (never the maximum seen)
    margin : ρ > 0

    Examples
    --------
    >>> round(rademacher_margin(0.05, 60000, 0.05, norm=10.0, radius=1.0, margin=1.0), 4)
    0.1879
    """
    margin_error, n, delta = (
        check.rate("margin_error", margin_error),
        check.count("n", n, 1),
        check.confidence(delta),
    )
    ratio = (
        check.nonnegative("norm", norm)
        * check.positive("radius", radius)
        / check.positive("margin", margin)
    )
    j = np.ceil(np.log2(np.maximum(1.0, ratio)))
    return check.plain(
        margin_error + 2 * 2**j / np.sqrt(n) + np.sqrt(np.log((j + 1) * (j + 2) / delta) / (2 * n))
    )
