"""PAC-Bayes: the risk of a predictor drawn from a posterior, from its divergence to a prior fixed
beforehand.

All of them bound the *Gibbs* predictor, which draws anew for every row, and hold for every
posterior at once. The vote of the same posterior errs at most twice as often
(`deterministic_linear_classifier`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds import _measured as measured
from surelearn.bounds._checks import Value
from surelearn.bounds._special import ndtr
from surelearn.bounds._tails import kl_inverse
from surelearn.bounds.holdout import IID, UNIT_RANGE
from surelearn.claim import at_most, theorem

PRIOR = "the prior and every choice of preprocessing were fixed before seeing the rows"
GAUSSIAN = "prior N(0, I), posterior N(μ·w/‖w‖, I); no intercept beyond a padded column"


def _training_error(inputs: Mapping[str, Any]) -> float:
    return float(np.mean(np.asarray(inputs["margins"]) <= 0))


def _complexity(kl: npt.ArrayLike, n: npt.ArrayLike, delta: npt.ArrayLike) -> Any:
    n = check.count("n", n, 1)
    return (check.nonnegative("kl", kl) + np.log(2 * np.sqrt(n) / check.confidence(delta))) / n


@theorem(
    "PAC-Bayes-kl",
    "M. Seeger, JMLR 3 (2002); A. Maurer, arXiv:cs/0411099 (2004), Theorem 5",
    assumes=(IID, UNIT_RANGE, PRIOR),
    claims=at_most("risk", measured=measured.risk),
    example={"risk": 0.05, "kl": 5.0, "n": 1000, "delta": 0.05},
)
def pac_bayes_kl(
    risk: npt.ArrayLike, kl: npt.ArrayLike, n: npt.ArrayLike, delta: npt.ArrayLike
) -> Value:
    """Gibbs risk: the largest p with kl(risk ‖ p) ≤ (KL + ln(2√n/δ)) / n.

    Parameters
    ----------
    risk : the Gibbs predictor's mean loss on the n rows
    kl : Kullback–Leibler divergence of the posterior from the prior

    Examples
    --------
    >>> round(pac_bayes_kl(0.05, 5.0, 1000, 0.05), 4)
    0.0913
    """
    return check.plain(kl_inverse(check.rate("risk", risk), _complexity(kl, n, delta)))


@theorem(
    "PAC-Bayes, quadratic",
    "M. Pérez-Ortiz, O. Rivasplata, J. Shawe-Taylor and C. Szepesvári, JMLR 22 (2021), Theorem"
    " 1 (6)",
    assumes=(IID, UNIT_RANGE, PRIOR),
    claims=at_most("risk", measured=measured.risk),
    example={"risk": 0.05, "kl": 5.0, "n": 1000, "delta": 0.05},
)
def pac_bayes_quadratic(
    risk: npt.ArrayLike, kl: npt.ArrayLike, n: npt.ArrayLike, delta: npt.ArrayLike
) -> Value:
    """Gibbs risk: (√(risk + c) + √c)² with c = (KL + ln(2√n/δ)) / 2n, from kl(p ‖ q) ≥ (q −
    p)²/(2q).

    Examples
    --------
    >>> round(pac_bayes_quadratic(0.05, 5.0, 1000, 0.05), 4)
    0.099
    """
    c = _complexity(kl, n, delta) / 2
    return check.plain((np.sqrt(check.rate("risk", risk) + c) + np.sqrt(c)) ** 2)


@theorem(
    "PAC-Bayes, McAllester",
    "D. McAllester, COLT 1999, with the constant of A. Maurer, arXiv:cs/0411099 (2004), by"
    " Pinsker's inequality",
    assumes=(IID, UNIT_RANGE, PRIOR),
    claims=at_most("risk", measured=measured.risk),
    example={"risk": 0.05, "kl": 5.0, "n": 1000, "delta": 0.05},
)
def mcallester(
    risk: npt.ArrayLike, kl: npt.ArrayLike, n: npt.ArrayLike, delta: npt.ArrayLike
) -> Value:
    """Gibbs risk: risk + √((KL + ln(2√n/δ)) / 2n).

    Examples
    --------
    >>> round(mcallester(0.05, 5.0, 1000, 0.05), 4)
    0.1279
    """
    return check.plain(check.rate("risk", risk) + np.sqrt(_complexity(kl, n, delta) / 2))


@theorem(
    "PAC-Bayes, Catoni",
    "O. Catoni, PAC-Bayesian Supervised Classification (2007), Theorem 1.2.6",
    assumes=(IID, UNIT_RANGE, PRIOR, "the parameter c was fixed before seeing the rows"),
    claims=at_most("risk", measured=measured.risk),
    example={"risk": 0.05, "kl": 5.0, "n": 1000, "delta": 0.05, "c": 0.5},
)
def catoni(
    risk: npt.ArrayLike, kl: npt.ArrayLike, n: npt.ArrayLike, delta: npt.ArrayLike, c: npt.ArrayLike
) -> Value:
    """Gibbs risk: (1 − exp(−c·risk − (KL + ln(1/δ))/n)) / (1 − e^{−c}), for one c > 0 fixed
    beforehand.

    Examples
    --------
    >>> round(catoni(0.05, 5.0, 1000, 0.05, c=0.5), 4)
    0.0825
    """
    risk, kl, n = check.rate("risk", risk), check.nonnegative("kl", kl), check.count("n", n, 1)
    c, delta = check.positive("c", c), check.confidence(delta)
    return check.plain(np.expm1(-c * risk - (kl + np.log(1 / delta)) / n) / np.expm1(-c))


@theorem(
    "PAC-Bayes, linear classifiers",
    "J. Langford, JMLR 6 (2005), Section 5.3; J. Langford and J. Shawe-Taylor, NIPS 2002",
    assumes=(IID, PRIOR, GAUSSIAN, "two classes"),
    claims=at_most("risk", measured=_training_error),
    example={"margins": (0.5, 0.3, 0.4, -0.1, 0.6) * 200, "delta": 0.05},
)
def gibbs_linear_classifier(
    margins: npt.ArrayLike, delta: float, scale: float | None = None
) -> float:
    """Risk of the Gibbs classifier around a linear one, from its normalized margins y⟨w,
    x⟩/(‖w‖‖x‖).

    A weight drawn from N(μ·w/‖w‖, I) errs on a row of normalized margin g with probability Φ(−μg),
    and its divergence from N(0, I) is μ²/2; `pac_bayes_kl` does the rest. It holds for all μ at
    once, so the best may be chosen.

    Parameters
    ----------
    margins : normalized margins in [−1, 1]
    scale : μ > 0; by default the best of a fine grid

    Examples
    --------
    >>> round(gibbs_linear_classifier([0.5, 0.3, 0.4, -0.1, 0.6] * 200, 0.05), 3)
    0.238
    """
    margins = check.sample("margins", margins, -1.0, 1.0)
    delta = float(check.confidence(delta))
    # KL = μ²/2 beyond n·ln 2 leaves nothing of the bound, so the grid ends there.
    # to √(2n), by equal factors
    grid = 0.01 * np.sqrt(2e4 * margins.size) ** np.linspace(0.0, 1.0, 200)
    if scale is not None:
        grid = check.positive("scale", [scale])
    risks = [float(ndtr(-mu * margins).mean()) for mu in grid]
    return float(np.min(pac_bayes_kl(risks, grid**2 / 2, margins.size, delta)))


@theorem(
    "PAC-Bayes, linear vote",
    "J. Langford and J. Shawe-Taylor, NIPS 2002: a vote errs only where at least half of the"
    " posterior errs",
    assumes=(IID, PRIOR, GAUSSIAN, "two classes"),
    claims=at_most("risk", measured=_training_error),
    example={"margins": (0.9, 0.8, 0.7, 0.9, 0.6) * 200, "delta": 0.05},
)
def deterministic_linear_classifier(
    margins: npt.ArrayLike, delta: float, scale: float | None = None
) -> float:
    """Risk of the linear classifier sign⟨w, x⟩ itself: twice `gibbs_linear_classifier`.

    Examples
    --------
    >>> round(deterministic_linear_classifier([0.9, 0.8, 0.7, 0.9, 0.6] * 200, 0.05), 3)
    0.041
    """
    return 2 * gibbs_linear_classifier(margins, delta, scale)
