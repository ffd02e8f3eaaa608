"""Certified radii: how far a row may move, in a norm, before a classifier can change its mind
about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds import _measured as measured
from surelearn.bounds._checks import Value
from surelearn.bounds._special import gammainc, gammaincinv, ndtri
from surelearn.bounds.holdout import IID, UNSEEN, clopper_pearson_lower
from surelearn.claim import ALWAYS, at_least, theorem

RadialKernel = Literal["gaussian", "laplace", "matern 3/2", "matern 5/2"]
LARGEST_SCORE = "the class with the largest score is predicted"
GAP = (
    "score_gap is what the predicted class scores above the other at this row, rounding subtracted"
)
NORM = (
    "rkhs_norm is at least the RKHS norm of the difference of the two classes' scores, intercepts"
    " apart"
)
LIPSCHITZ = (
    "slope is at least the Lipschitz constant of the layers before the last, in the norm of the"
    " radius"
)
NOISE = "the row was classified under independent Gaussian noises of standard deviation noise"
CHOSEN_APART = "the class was chosen before these noises were drawn"
PER_ROW = (
    "each row's certificate fails with probability at most alpha, by randomness independent of the"
    " rows"
)
_STATEMENT = at_least("certified_radius", holds=ALWAYS, unit="number")
_TSUZUKU = "Y. Tsuzuku, I. Sato and M. Sugiyama, NeurIPS 2018, Proposition 1"


def _ratio(gap: Any, slope: Any) -> Any:
    """gap/slope; 0 where the gap is 0, ∞ where only the slope is, or where the gap is infinite."""
    gap, slope = np.broadcast_arrays(gap, slope)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(gap == 0, 0.0, np.where((slope == 0) | np.isinf(gap), np.inf, gap / slope))


@theorem(
    "distance to a hyperplane",
    "Hölder's inequality; M. Hein and M. Andriushchenko, NeurIPS 2017, whose bound is exact here",
    assumes=(LARGEST_SCORE, GAP),
    claims=_STATEMENT,
    example={"score_gap": 2.0, "dual_norm": 4.0},
)
def linear_radius(score_gap: npt.ArrayLike, dual_norm: npt.ArrayLike) -> Value:
    """Radius within which class b cannot overtake class a of a linear classifier: (s_a − s_b)/‖w_a
    − w_b‖_*.

    ``|⟨w, z − x⟩| ≤ ‖w‖_*·‖z − x‖``, attained by some z: the radius is exact for this pair, and the
    least over b is exact for the row, wherever the whole ball is allowed. The dual of L2 is L2, of
    L∞ it is L1, of L1 it is L∞.

    Parameters
    ----------
    score_gap : s_a − s_b ≥ 0 at the row, a the predicted class
    dual_norm : ‖w_a − w_b‖_* in the dual of the norm of the radius

    Examples
    --------
    >>> linear_radius(2.0, 4.0)
    0.5
    """
    return check.plain(
        _ratio(check.nonnegative("score_gap", score_gap), check.nonnegative("dual_norm", dual_norm))
    )


def _reach(loss: Any, kernel: str) -> Any:
    """The t with 1 − κ(t) = loss < 1, t = √(2ν)·‖x − z‖/σ: 1 − (1 + t)e^{−t} is a regularized
    incomplete gamma function.

    For ν = 5/2, 1 − (1 + t + t²/3)e^{−t} lies above that function of order 3 and grows with t: by
    halving, rounded down.
    """
    if kernel == "matern 3/2":
        return gammaincinv(2, loss)
    loss, high = check.number("loss", loss), gammaincinv(3, loss)
    low = np.zeros(loss.shape)
    for _ in range(200):
        middle = (low + high) / 2
        short = gammainc(3, middle) + middle**2 / 6 * np.exp(-middle) <= loss
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return low


def _bandwidth_of_sigma(sigma: float, given: Mapping[str, Any]) -> dict[str, Any]:
    """Give bandwidth=h, the kernel's length: sigma = 2h² for a Gaussian kernel, h for others."""
    is_gaussian = given.get("kernel", "gaussian") == "gaussian"
    number = check.positive("sigma", sigma)
    return {"bandwidth": check.plain(np.sqrt(number / 2.0)) if is_gaussian else sigma}


@theorem(
    "radius of a radial kernel machine",
    "Cauchy–Schwarz in the RKHS with ‖φ(x) − φ(z)‖² = 2 − 2κ(‖x − z‖); Hein and Andriushchenko"
    " (2017) use a slope",
    assumes=(LARGEST_SCORE, GAP, NORM),
    claims=_STATEMENT,
    example={"score_gap": 1.0, "rkhs_norm": 2.0, "bandwidth": 1.0},
    earlier={"sigma": _bandwidth_of_sigma},
)
def kernel_radius(
    score_gap: npt.ArrayLike,
    rkhs_norm: npt.ArrayLike,
    *,
    bandwidth: npt.ArrayLike,
    kernel: RadialKernel = "gaussian",
) -> Value:
    """Euclidean radius of a kernel machine, k(x, z) = κ(‖x − z‖) with κ(0) = 1: the r with ‖f_a −
    f_b‖·√(2 − 2κ(r)) = gap.

    ``|f(x) − f(z)| = |⟨f, φ(x) − φ(z)⟩| ≤ ‖f‖·√(2 − 2κ(‖x − z‖))``. With u = 1 − gap²/(2‖f‖²),
    Gaussian: r² = −2h²·ln u; Laplace: r = −h·ln u (its feature map is not Lipschitz, so that r falls
    with the *square* of a small gap); Matérn: by halving. ∞ where gap ≥ √2·‖f‖.

    Parameters
    ----------
    score_gap : s_a − s_b ≥ 0 at the row, a the predicted class
    rkhs_norm : ‖f_a − f_b‖ in the RKHS, intercepts left out
    bandwidth : h, the kernel's length, as `surelearn.kernel.functions` has it

    Examples
    --------
    >>> round(kernel_radius(1.0, 2.0, bandwidth=1.0), 5), round(kernel_radius(1.0, 2.0, bandwidth=2.0, kernel="laplace"), 5)
    (0.51678, 0.26706)
    """
    gap, norm = check.nonnegative("score_gap", score_gap), check.nonnegative("rkhs_norm", rkhs_norm)
    length = check.positive("bandwidth", bandwidth)
    check.require(
        kernel in ("gaussian", "laplace", "matern 3/2", "matern 5/2"),
        f"kernel has no radius here: {kernel!r:.60}",
    )
    loss = np.minimum(np.minimum(_ratio(gap, norm), 2.0) ** 2 / 2, 1.0)
    loss, length = np.broadcast_arrays(loss, length)
    with np.errstate(divide="ignore"):
        depth = -np.log1p(-loss)  # −ln u, ∞ where the gap cannot be closed
    if kernel == "gaussian":
        return check.plain(np.sqrt(2.0 * length**2 * depth))
    if kernel == "laplace":
        return check.plain(length * depth)
    reach = _reach(np.minimum(loss, 1 - 2**-40), kernel) / np.sqrt(
        3.0 if kernel == "matern 3/2" else 5.0
    )
    return check.plain(np.where(loss < 1, length * reach, np.inf))


@theorem(
    "radius of a polynomial kernel machine",
    "after M. Hein and M. Andriushchenko, NeurIPS 2017: a slope within the ball, here of φ, from"
    " derivatives of k",
    assumes=(LARGEST_SCORE, GAP, NORM),
    claims=_STATEMENT,
    example={
        "score_gap": 1.0,
        "rkhs_norm": 2.0,
        "x_norm": 1.0,
        "degree": 2,
        "gamma": 1.0,
        "offset": 1.0,
    },
)
def polynomial_radius(
    score_gap: npt.ArrayLike,
    rkhs_norm: npt.ArrayLike,
    x_norm: npt.ArrayLike,
    degree: npt.ArrayLike,
    gamma: npt.ArrayLike = 1.0,
    offset: npt.ArrayLike = 1.0,
) -> Value:
    """Euclidean radius of a machine with kernel (γ⟨x, z⟩ + c)^p: the r with ‖f_a − f_b‖·r·L(‖x‖ +
    r) = gap.

    Moving from x in direction v moves φ(x) by √(pγk^{p−1}‖v‖² + p(p−1)γ²k^{p−2}⟨x, v⟩²), k = γ‖x‖²
    + c; within ‖x‖ ≤ R that is at most L(R)·‖v‖ with L² = pγ(γR² + c)^{p−2}(pγR² + c), which grows
    with R.

    Parameters
    ----------
    x_norm : ‖x‖ of the row
    degree, gamma, offset : p, γ > 0 and c ≥ 0

    Examples
    --------
    >>> round(polynomial_radius(1.0, 2.0, x_norm=1.0, degree=2), 4), polynomial_radius(1.0, 2.0, x_norm=1.0, degree=1)
    (0.1816, 0.5)
    """
    gap, norm = check.nonnegative("score_gap", score_gap), check.nonnegative("rkhs_norm", rkhs_norm)
    x_norm = check.nonnegative("x_norm", x_norm)
    p, gamma, c = (
        check.count("degree", degree, 1),
        check.positive("gamma", gamma),
        check.nonnegative("offset", offset),
    )
    check.require(np.isfinite(x_norm) & np.isfinite(c), "x_norm and offset must be finite")

    def squared_slope(reach: Any) -> Any:
        k = gamma * reach**2
        with np.errstate(divide="ignore", invalid="ignore"):
            general = p * gamma * (k + c) ** (p - 2) * (p * k + c)
        return np.where(p == 1, gamma, general)

    target = _ratio(gap, norm)
    target, start, _ = np.broadcast_arrays(target, x_norm, p + gamma + c)
    finite = np.where(np.isinf(target), 0.0, target)
    low, high = np.zeros(finite.shape), np.ones(finite.shape)
    with np.errstate(over="ignore"):
        while (short := high * np.sqrt(squared_slope(start + high)) < finite).any():
            high = np.where(short, 2 * high, high)
        for _ in range(200):
            middle = (low + high) / 2
            short = middle * np.sqrt(squared_slope(start + middle)) <= finite
            low, high = np.where(short, middle, low), np.where(short, high, middle)
    return check.plain(
        np.where(np.isinf(target), np.inf, np.where(p == 1, finite / np.sqrt(gamma), low))
    )


@theorem(
    "radius from a Lipschitz constant",
    _TSUZUKU,
    assumes=(LARGEST_SCORE, GAP, LIPSCHITZ),
    claims=_STATEMENT,
    example={"score_gap": 2.0, "dual_norm": 0.5, "slope": 4.0},
)
def lipschitz_radius(
    score_gap: npt.ArrayLike, dual_norm: npt.ArrayLike, slope: npt.ArrayLike
) -> Value:
    """Radius of a network whose last layer is linear: (s_a − s_b)/(L·‖w_a − w_b‖_*), L of all
    layers before the last.

    Proposition 1 has √2·L for the difference of two scores of a map with constant L in L2; the
    pair's own weights are at most that. ``dual_norm`` = √2 and L of the whole network give its
    form.

    Examples
    --------
    >>> lipschitz_radius(2.0, 0.5, 4.0)
    1.0
    """
    gap, dual = check.nonnegative("score_gap", score_gap), check.nonnegative("dual_norm", dual_norm)
    slope = check.nonnegative("slope", slope)
    with np.errstate(invalid="ignore"):
        product = np.where((dual == 0) | (slope == 0), 0.0, dual * slope)
    return check.plain(_ratio(gap, product))


@theorem(
    "randomized smoothing, known probabilities",
    "J. Cohen, E. Rosenfeld and J. Z. Kolter, ICML 2019, Theorem 1",
    assumes=(
        "under the noise the class has probability at least p_lower, every other at most p_upper",
    ),
    claims=_STATEMENT,
    example={"p_lower": 0.9, "p_upper": 0.05, "noise": 0.5},
)
def smoothing_radius(p_lower: npt.ArrayLike, p_upper: npt.ArrayLike, noise: npt.ArrayLike) -> Value:
    """L2 radius of the smoothed classifier argmax_c P(f(x + N(0, σ²I)) = c): (σ/2)(Φ⁻¹(p_lower) −
    Φ⁻¹(p_upper)), or 0.

    Examples
    --------
    >>> round(smoothing_radius(0.9, 0.05, noise=0.5), 4)
    0.7316
    """
    low, high = check.rate("p_lower", p_lower), check.rate("p_upper", p_upper)
    sigma = check.positive("noise", noise)
    low, high, sigma = np.broadcast_arrays(low, high, sigma)
    above = low > high
    apart = ndtri(np.where(above, low, 0.5)) - ndtri(np.where(above, high, 0.5))
    return check.plain(sigma / 2 * np.maximum(0.0, apart))


def _share(inputs: Mapping[str, Any]) -> float:
    """σ·Φ⁻¹ of the share seen: what the radius would be if that were the probability."""
    return smoothing_radius(
        inputs["successes"] / inputs["n"], 1 - inputs["successes"] / inputs["n"], inputs["noise"]
    )


@theorem(
    "randomized smoothing",
    "J. Cohen, E. Rosenfeld and J. Z. Kolter, ICML 2019, Theorem 1 and Proposition 2 (CERTIFY)",
    assumes=(NOISE, CHOSEN_APART),
    claims=at_least("certified_radius", unit="number", measured=_share),
    example={"successes": 990, "n": 1000, "delta": 0.05, "noise": 0.5},
)
def smoothed_radius(
    successes: npt.ArrayLike, n: npt.ArrayLike, delta: npt.ArrayLike, noise: npt.ArrayLike
) -> Value:
    """L2 radius of the smoothed classifier from votes under noise: σ·Φ⁻¹(p), p the Clopper–Pearson
    lower bound at δ.

    0 where p ≤ ½: the certificate abstains. Holds with probability 1 − δ over the noise, for this
    row alone.

    Parameters
    ----------
    successes, n : noises under which the class was predicted, of how many
    noise : σ, the standard deviation in every direction

    Examples
    --------
    >>> round(smoothed_radius(990, 1000, 0.001, noise=0.5), 4), smoothed_radius(520, 1000, 0.001, noise=0.5)
    (0.989, 0.0)
    """
    n = check.count("n", n, 1)
    p = clopper_pearson_lower(successes, n, delta)
    return smoothing_radius(p, 1 - p, noise)


@theorem(
    "certified robust accuracy",
    "C. J. Clopper and E. S. Pearson, Biometrika 26 (1934), 404–413; union over a row's certificate"
    " and its label",
    assumes=(IID, UNSEEN, PER_ROW),
    claims=at_least("robust_accuracy", measured=measured.success_rate),
    example={"successes": 800, "n": 1000, "delta": 0.05, "alpha": 0.001},
)
def robust_accuracy(
    successes: npt.ArrayLike, n: npt.ArrayLike, delta: npt.ArrayLike, alpha: npt.ArrayLike = 0.0
) -> Value:
    """Share of new rows that are classified right and stay so within the radius: Clopper–Pearson
    lower bound − α.

    A row counts as a success where its label is right and its certified radius is large enough.
    P(success) ≤ P(right and truly robust) + α, as a certificate is wrong with probability at most α
    (0 for exact radii). At least 0.

    Examples
    --------
    >>> round(robust_accuracy(800, 1000, 0.05), 4), round(robust_accuracy(800, 1000, 0.05, alpha=0.001), 4)
    (0.778, 0.777)
    """
    alpha = check.rate("alpha", alpha)
    return check.plain(
        np.maximum(0.0, clopper_pearson_lower(successes, check.count("n", n, 1), delta) - alpha)
    )
