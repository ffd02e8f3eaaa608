"""Logistic regression, (1/n)·Σ loss + λ‖W‖²: the slope and the range of its loss, and how steep its
steps can become.

The loss is ln(1 + e^{−y⟨w, x⟩}) for two classes and −ln softmax(Wx)_y for several. ``x_bound`` is
about rows as the weights meet them: padded with a 1 where there is an intercept (`padded_norm`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds._checks import Value
from surelearn.bounds.stability import EXACT
from surelearn.claim import ALWAYS, at_most, theorem

X_BOUNDED = "‖x‖ ≤ x_bound for every row, as stated"
ALL_REGULARIZED = "all weights are regularized"
FROM_ZERO = "plain steps of a constant size below 1/(2·regularization), from weights 0"


@theorem(
    "slope of the logistic loss",
    "the gradient is (p − e_y)xᵀ, and ‖p − e_y‖² = Σ_{k≠y} p_k² + (1 − p_y)² ≤ 2(1 − p_y)²",
    assumes=(X_BOUNDED,),
    claims=at_most(
        "lipschitz_constant_of_the_loss",
        label="Lipschitz constant of the loss",
        holds=ALWAYS,
        trivial=None,
        unit="number",
    ),
    example={"x_bound": 2.0, "classes": 3},
)
def logistic_lipschitz(x_bound: npt.ArrayLike, classes: npt.ArrayLike = 2) -> Value:
    """ρ of the logistic loss in the weights: X for two classes, whose gradient is a number below 1
    times x; √2·X for more.

    Examples
    --------
    >>> logistic_lipschitz(2.0), round(logistic_lipschitz(2.0, 3), 4)
    (2.0, 2.8284)
    """
    x, k = check.nonnegative("x_bound", x_bound), check.count("classes", classes, 1)
    return check.plain(x * np.where(k <= 2, 1.0, np.sqrt(2.0)))


@theorem(
    "range of the logistic loss",
    "W = 0 costs ln K, so that λ‖W‖² ≤ ln K for the minimizer W of every sample",
    assumes=(EXACT, ALL_REGULARIZED, X_BOUNDED),
    claims=at_most("logarithmic_loss_of_the_minimizer", holds=ALWAYS, trivial=None, unit="number"),
    example={"x_bound": 1.0, "classes": 2, "regularization": 0.1},
)
def logistic_loss_bound(
    x_bound: npt.ArrayLike, classes: npt.ArrayLike, regularization: npt.ArrayLike
) -> Value:
    """No loss of the minimizer exceeds ln(1 + (K − 1)·e^{ρ√(ln K/λ)}), on any sample and row; ρ of
    `logistic_lipschitz`.

    Two classes: |⟨w, x⟩| ≤ X‖w‖. Several: the scores of two classes differ by at most √2·X‖W‖.

    Examples
    --------
    >>> round(logistic_loss_bound(1.0, 2, 0.1), 4)
    2.7022
    """
    k, lam = check.count("classes", classes, 1), check.positive("regularization", regularization)
    margin = np.asarray(logistic_lipschitz(x_bound, k)) * np.sqrt(np.log(k) / lam)
    with np.errstate(divide="ignore"):  # of one class the loss is 0
        return check.plain(np.logaddexp(0.0, np.log(k - 1) + margin))


@theorem(
    "slope along stochastic gradient descent",
    "a step is w ← (1 − 2ηλ)w − ηg with ‖g‖ ≤ ρ: ‖w‖ ≤ min(ηρT, ρ/(2λ)) after T of them",
    assumes=(FROM_ZERO, "the loss is Lipschitz as stated"),
    claims=at_most(
        "lipschitz_constant_of_the_regularized_loss",
        label="Lipschitz constant of the regularized loss",
        holds=ALWAYS,
        trivial=None,
        unit="number",
    ),
    example={"lipschitz": 1.0, "regularization": 0.01, "step": 0.1, "iterations": 100},
)
def sgd_lipschitz(
    lipschitz: npt.ArrayLike,
    regularization: npt.ArrayLike,
    step: npt.ArrayLike,
    iterations: npt.ArrayLike,
) -> Value:
    """How long a gradient of loss + λ‖w‖² can be in T steps of size η from w = 0: ρ + 2λ‖w‖ ≤ ρ(1 +
    min(1, 2ληT)).

    Examples
    --------
    >>> round(sgd_lipschitz(1.0, 0.01, 0.1, 100), 6)
    1.2
    """
    rho, lam = (
        check.nonnegative("lipschitz", lipschitz),
        check.positive("regularization", regularization),
    )
    eta, t = check.positive("step", step), check.count("iterations", iterations)
    return check.plain(rho * (1 + np.minimum(1.0, 2 * lam * eta * t)))
