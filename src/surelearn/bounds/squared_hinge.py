"""The support vector machine of squared losses, (1/n)·Σ max(0, 1 − y⟨w, x⟩)² + λ‖w‖²: how steep its
loss can be.

``x_bound`` is about rows as the weights meet them: padded where the intercept is regularized.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds._checks import Value
from surelearn.bounds.logistic import ALL_REGULARIZED, X_BOUNDED
from surelearn.claim import ALWAYS, at_most, theorem


@theorem(
    "slope of the squared hinge loss",
    "rows with y⟨w, x⟩ < 1 alone make the minimizer that of ridge regression with targets ±1; then"
    " as in `beta_ridge`",
    assumes=(ALL_REGULARIZED, X_BOUNDED),
    claims=at_most(
        "lipschitz_constant_of_the_loss",
        label="Lipschitz constant of the loss",
        holds=ALWAYS,
        trivial=None,
        unit="number",
    ),
    example={"x_bound": 1.0, "regularization": 0.1, "distance": 1e-4},
)
def squared_hinge_lipschitz(
    x_bound: npt.ArrayLike, regularization: npt.ArrayLike, distance: npt.ArrayLike = 0.0
) -> Value:
    """ρ of max(0, 1 − y⟨w, x⟩)² within r of the minimizer of any sample: 2X(1 + X(1/(2√λ) + r)).

    At the minimizer w* the gradient is that of (1/n)·Σ_A (⟨w, x⟩ − y)² + λ‖w‖² over the rows A with
    y⟨w*, x⟩ < 1, so w* is the ridge solution of these, and ‖w*‖ ≤ √(|A|/n)/(2√λ) ≤ 1/(2√λ). The
    loss has slope 2·max(0, 1 − y⟨w, x⟩)·‖x‖. The segment between the minimizers of two samples
    stays within that norm, which is all that `beta_tikhonov` asks.

    Parameters
    ----------
    distance : r, how far from a minimizer the loss is looked at

    Examples
    --------
    >>> round(squared_hinge_lipschitz(1.0, 0.1), 4)
    5.1623
    """
    x, lam = check.nonnegative("x_bound", x_bound), check.positive("regularization", regularization)
    return check.plain(
        2 * x * (1 + x * (1 / (2 * np.sqrt(lam)) + check.nonnegative("distance", distance)))
    )
