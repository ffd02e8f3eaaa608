"""Algorithmic stability: bounds on the risk from a stability constant β, and the constants of
common learners.

β is *replace-one* uniform stability: exchanging any one training row changes the loss at any point
by at most β. Learners minimize (1/n)·Σ loss + λ‖w‖² over weights without an unregularized
intercept; ``regularization`` is that λ, fixed before seeing the rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds import _measured as measured
from surelearn.bounds._checks import Value
from surelearn.bounds._sources import STABILITY
from surelearn.bounds.holdout import IID
from surelearn.claim import ALWAYS, IN_EXPECTATION, Statement, at_most, theorem

FIXED_BEFORE = "hyperparameters and preprocessing were fixed before seeing the rows"
UNIFORM = "rows are weighted equally"
EXACT = "the learner returns the exact minimizer"
LOSS_BOUNDED = "the loss is at most loss_bound in absolute value, as stated"
LOSS_NONNEGATIVE = "the loss lies in [0, loss_bound], as stated"
CONVEX_SMOOTH = "the loss is convex and smooth, and Lipschitz as stated"
PERMUTED = "constant step of at most 2/smoothness, rows visited in permuted passes"


def _stability(holds: str = ALWAYS) -> Statement:
    return at_most("uniform_stability", holds=holds, trivial=None, unit="number")


def _checked(
    risk: npt.ArrayLike,
    beta: npt.ArrayLike,
    n: npt.ArrayLike,
    delta: npt.ArrayLike,
    loss_bound: npt.ArrayLike,
) -> tuple[npt.NDArray[np.float64], ...]:
    return (
        check.number("risk", risk),
        check.nonnegative("beta", beta),
        check.count("n", n, 1),
        check.confidence(delta),
        check.positive("loss_bound", loss_bound),
    )


@theorem(
    "uniform stability",
    f"{STABILITY}, Theorem 8.2",
    assumes=(IID, FIXED_BEFORE, UNIFORM, LOSS_BOUNDED),
    claims=at_most("risk", trivial="loss_bound", unit="number", measured=measured.risk),
    example={"risk": 0.1, "beta": 0.001, "n": 1000, "delta": 0.05, "loss_bound": 1.0},
)
def uniform_stability(
    risk: npt.ArrayLike,
    beta: npt.ArrayLike,
    n: npt.ArrayLike,
    delta: npt.ArrayLike,
    loss_bound: npt.ArrayLike,
) -> Value:
    """Risk of a β-stable learner with |loss| ≤ M: risk + β + (nβ + M)·√(2 ln(1/δ) / n).

    For losses in [0, M] `uniform_stability_nonnegative` is smaller.

    Examples
    --------
    >>> round(uniform_stability(0.1, 0.001, 1000, 0.05, loss_bound=1.0), 4)
    0.2558
    """
    risk, beta, n, delta, m = _checked(risk, beta, n, delta, loss_bound)
    return check.plain(risk + beta + (n * beta + m) * np.sqrt(2 * np.log(1 / delta) / n))


@theorem(
    "uniform stability, loss in [0, M]",
    f"{STABILITY}, Theorem 8.2, with the range M instead of 2M in Lemma 8.5",
    assumes=(IID, FIXED_BEFORE, UNIFORM, LOSS_NONNEGATIVE),
    claims=at_most("risk", trivial="loss_bound", unit="number", measured=measured.risk),
    example={"risk": 0.1, "beta": 0.001, "n": 1000, "delta": 0.05, "loss_bound": 1.0},
)
def uniform_stability_nonnegative(
    risk: npt.ArrayLike,
    beta: npt.ArrayLike,
    n: npt.ArrayLike,
    delta: npt.ArrayLike,
    loss_bound: npt.ArrayLike,
) -> Value:
    """Risk of a β-stable learner with 0 ≤ loss ≤ M: risk + β + (2nβ + M)·√(ln(1/δ) / 2n).

    One row moves the empirical risk by at most β + M/n when losses share a sign, not by β + 2M/n as
    in Lemma 8.5.

    Examples
    --------
    >>> round(uniform_stability_nonnegative(0.1, 0.001, 1000, 0.05, loss_bound=1.0), 4)
    0.2171
    """
    risk, beta, n, delta, m = _checked(risk, beta, n, delta, loss_bound)
    check.nonnegative("risk", risk)
    return check.plain(risk + beta + (2 * n * beta + m) * np.sqrt(np.log(1 / delta) / (2 * n)))


@theorem(
    "Bousquet–Elisseeff",
    "O. Bousquet and A. Elisseeff, JMLR 2 (2002), Theorem 12",
    assumes=(IID, FIXED_BEFORE, UNIFORM, LOSS_NONNEGATIVE),
    claims=at_most("risk", trivial="loss_bound", unit="number", measured=measured.risk),
    example={"risk": 0.1, "beta": 0.001, "n": 1000, "delta": 0.05, "loss_bound": 1.0},
)
def bousquet_elisseeff(
    risk: npt.ArrayLike,
    beta: npt.ArrayLike,
    n: npt.ArrayLike,
    delta: npt.ArrayLike,
    loss_bound: npt.ArrayLike,
    leave_one_out: bool = False,
) -> Value:
    """Risk from *remove-one* stability β, with 0 ≤ loss ≤ M, from the training or the leave-one-out
    risk.

    risk + 2β + (4nβ + M)·√(ln(1/δ)/2n); from the leave-one-out risk with β in place of 2β, where β
    must hold for samples of n − 1 rows too. Minimizing (1/n)·Σ loss + λ‖w‖² has half of
    `beta_tikhonov` as its remove-one constant, the removed row's loss being dropped from the sum
    and 1/n kept.

    Parameters
    ----------
    leave_one_out : whether ``risk`` is the leave-one-out estimate

    Examples
    --------
    >>> round(bousquet_elisseeff(0.1, 0.0005, 1000, 0.05, loss_bound=1.0), 4)
    0.2171
    """
    risk, beta, n, delta, m = _checked(risk, beta, n, delta, loss_bound)
    check.nonnegative("risk", risk)
    gap = beta if leave_one_out else 2 * beta
    return check.plain(risk + gap + (4 * n * beta + m) * np.sqrt(np.log(1 / delta) / (2 * n)))


@theorem(
    "expected gap",
    f"{STABILITY}, Lemma 8.3",
    assumes=(IID, FIXED_BEFORE, UNIFORM),
    claims=at_most("generalization_gap", holds=IN_EXPECTATION, trivial=None, unit="number"),
    example={"beta": 0.001},
)
def expected_gap(beta: npt.ArrayLike) -> Value:
    """Expected difference of risk and training risk of a β-stable learner: at most β.

    Also where β itself holds only in expectation over the learner's randomness (`beta_sgd_convex`).

    Examples
    --------
    >>> expected_gap(0.001)
    0.001
    """
    return check.plain(check.nonnegative("beta", beta))


@theorem(
    "stability of Tikhonov regularization",
    "S. Shalev-Shwartz and S. Ben-David (2014), Section 13.3, with strong convexity used at both"
    " minimizers",
    assumes=(FIXED_BEFORE, UNIFORM, EXACT, "the loss is convex, and Lipschitz as stated"),
    claims=_stability(),
    example={"lipschitz": 1.0, "regularization": 0.1, "n": 1000},
)
def beta_tikhonov(
    lipschitz: npt.ArrayLike, regularization: npt.ArrayLike, n: npt.ArrayLike, slides: bool = False
) -> Value:
    """β of minimizing (1/n)·Σ loss + λ‖w‖² with a convex ρ-Lipschitz loss: ρ²/(λn).

    Both objectives are 2λ-strongly convex; adding their inequalities at each other's minimizer
    gives 2λ‖w − w'‖² ≤ 2ρ‖w − w'‖/n, so ‖w − w'‖ ≤ ρ/(λn). A linear loss attains it.

    Parameters
    ----------
    slides : the slides' 2ρ²/(λn), valid but twice as large

    Examples
    --------
    >>> round(beta_tikhonov(1.0, 0.1, 1000), 6), round(beta_tikhonov(1.0, 0.1, 1000, slides=True), 6)
    (0.01, 0.02)
    """
    rho, lam = (
        check.nonnegative("lipschitz", lipschitz),
        check.positive("regularization", regularization),
    )
    return check.plain((2 if slides else 1) * rho**2 / (lam * check.count("n", n, 1)))


@theorem(
    "stability of ridge regression",
    "O. Bousquet and A. Elisseeff, JMLR 2 (2002), Theorem 22 and Example 3, for replaced rows, the"
    " range derived from λ",
    assumes=(
        FIXED_BEFORE,
        UNIFORM,
        EXACT,
        "‖x‖ ≤ x_bound and |y| ≤ y_bound for every row, as stated",
    ),
    claims=_stability(),
    example={"x_bound": 1.0, "y_bound": 1.0, "regularization": 0.1, "n": 1000},
)
def beta_ridge(
    x_bound: npt.ArrayLike, y_bound: npt.ArrayLike, regularization: npt.ArrayLike, n: npt.ArrayLike
) -> Value:
    """β of ridge regression, (1/n)·Σ(⟨w, x⟩ − y)² + λ‖w‖²: ρ²/(λn) with ρ = 2XY(1 + X/(2√λ)).

    With the rows/√n decomposed as U·diag(s)·Vᵀ the minimizer is V·diag(s/(s² + λ))·Uᵀ(y/√n), and
    s/(s² + λ) ≤ 1/(2√λ): so ‖w‖ ≤ Y/(2√λ), attained where every row is √λ and every target Y. No
    residual on the segment between two minimizers exceeds Y(1 + X/(2√λ)), and the loss is
    ρ-Lipschitz there, all that the proof of `beta_tikhonov` asks of it. Up to 4 times smaller than
    with λ‖w‖² ≤ Y², from the cost of w = 0. It also holds for several targets,
    |y| their Euclidean norm.

    Examples
    --------
    >>> round(beta_ridge(1.0, 1.0, 0.1, 1000), 4)
    0.2665
    """
    x, y = check.nonnegative("x_bound", x_bound), check.nonnegative("y_bound", y_bound)
    lam = check.positive("regularization", regularization)
    return beta_tikhonov(2 * x * y * (1 + x / (2 * np.sqrt(lam))), lam, n)


@theorem(
    "stability of the hinge loss",
    "O. Bousquet and A. Elisseeff, JMLR 2 (2002), Example 2, for replaced rows",
    assumes=(FIXED_BEFORE, UNIFORM, EXACT, "‖x‖ ≤ x_bound for every row, as stated"),
    claims=_stability(),
    example={"x_bound": 1.0, "regularization": 0.1, "n": 1000},
)
def beta_hinge(x_bound: npt.ArrayLike, regularization: npt.ArrayLike, n: npt.ArrayLike) -> Value:
    """β of the support vector machine, (1/n)·Σ max(0, 1 − y⟨w, x⟩) + λ‖w‖²: X²/(λn).

    With C on the sum of losses, λ = 1/(2Cn): β falls with n only if C does.

    Examples
    --------
    >>> round(beta_hinge(1.0, 0.1, 1000), 6)
    0.01
    """
    return beta_tikhonov(check.nonnegative("x_bound", x_bound), regularization, n)


@theorem(
    "stability of the logistic loss",
    "S. Shalev-Shwartz and S. Ben-David (2014), Section 13.3, with strong convexity used at both"
    " minimizers",
    assumes=(FIXED_BEFORE, UNIFORM, EXACT, "‖x‖ ≤ x_bound for every row, as stated"),
    claims=_stability(),
    example={"x_bound": 1.0, "regularization": 0.1, "n": 1000},
)
def beta_logistic(x_bound: npt.ArrayLike, regularization: npt.ArrayLike, n: npt.ArrayLike) -> Value:
    """β of logistic regression, (1/n)·Σ ln(1 + e^{−y⟨w, x⟩}) + λ‖w‖²: X²/(λn), for the logarithmic
    loss.

    Examples
    --------
    >>> round(beta_logistic(1.0, 0.1, 1000), 6)
    0.01
    """
    return beta_tikhonov(check.nonnegative("x_bound", x_bound), regularization, n)


@theorem(
    "stability of SGD, convex",
    "M. Hardt, B. Recht and Y. Singer, ICML 2016, Theorem 3.8",
    assumes=(
        FIXED_BEFORE,
        UNIFORM,
        CONVEX_SMOOTH,
        "every step is at most 2/smoothness",
        "one random row a step",
    ),
    claims=_stability(IN_EXPECTATION),
    example={"lipschitz": 1.0, "total_step": 10.0, "n": 1000},
)
def beta_sgd_convex(lipschitz: npt.ArrayLike, total_step: npt.ArrayLike, n: npt.ArrayLike) -> Value:
    """β of stochastic gradient descent on a convex smooth ρ-Lipschitz loss, in expectation over the
    rows drawn.

    (2ρ²/n)·Σ_t η_t. Being in expectation, it may enter `expected_gap`, never `uniform_stability`.

    Parameters
    ----------
    total_step : Σ_t η_t over all steps taken

    Examples
    --------
    >>> round(beta_sgd_convex(1.0, 10.0, 1000), 6)
    0.02
    """
    rho, total = (
        check.nonnegative("lipschitz", lipschitz),
        check.nonnegative("total_step", total_step),
    )
    return check.plain(2 * rho**2 * total / check.count("n", n, 1))


@theorem(
    "stability of SGD, strongly convex",
    "M. Hardt, B. Recht and Y. Singer, ICML 2016, Theorem 3.9",
    assumes=(
        FIXED_BEFORE,
        UNIFORM,
        CONVEX_SMOOTH,
        "constant step of at most 1/smoothness, projected on a ball",
    ),
    claims=_stability(IN_EXPECTATION),
    example={"lipschitz": 1.0, "strong_convexity": 0.1, "n": 1000},
)
def beta_sgd_strongly_convex(
    lipschitz: npt.ArrayLike, strong_convexity: npt.ArrayLike, n: npt.ArrayLike
) -> Value:
    """β of stochastic gradient descent on a γ-strongly convex loss, in expectation, for any number
    of steps: 2ρ²/(γn).

    Examples
    --------
    >>> round(beta_sgd_strongly_convex(1.0, 0.1, 1000), 6)
    0.02
    """
    rho = check.nonnegative("lipschitz", lipschitz)
    return check.plain(
        2 * rho**2 / (check.positive("strong_convexity", strong_convexity) * check.count("n", n, 1))
    )


@theorem(
    "stability of SGD, permuted passes",
    "M. Hardt, B. Recht and Y. Singer, ICML 2016, Lemmas 2.5 and 3.7.1, for a permutation fixed"
    " beforehand",
    assumes=(FIXED_BEFORE, UNIFORM, CONVEX_SMOOTH, PERMUTED),
    claims=_stability(),
    example={"lipschitz": 1.0, "step": 1e-5, "passes": 5},
)
def beta_sgd_permuted(
    lipschitz: npt.ArrayLike, step: npt.ArrayLike, passes: npt.ArrayLike
) -> Value:
    """β of stochastic gradient descent in K permuted passes over the rows, for every seed: 2ρ²ηK.

    Gradient steps with η ≤ 2/L on a convex L-smooth loss do not expand distances; the replaced row
    is met once a pass and adds at most 2ηρ. The only SGD constant here that may enter
    `uniform_stability`; small only if η is of order 1/n.

    Examples
    --------
    >>> round(beta_sgd_permuted(1.0, 1e-5, 5), 6)
    0.0001
    """
    rho = check.nonnegative("lipschitz", lipschitz)
    return check.plain(2 * rho**2 * check.nonnegative("step", step) * check.count("passes", passes))
