"""Robust linear regression: perturbed columns and the square-root lasso, the stability of Huber
regression.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds._checks import Value
from surelearn.bounds._sources import COURSE
from surelearn.bounds.stability import FIXED_BEFORE, UNIFORM, beta_tikhonov
from surelearn.claim import ALWAYS, at_least, at_most, theorem
from surelearn.losses import huber_loss

EVERY_COLUMN = (
    "each column of the training rows moves by at most the stated perturbation, in Euclidean norm"
)
SOLVED = (
    "on these rows and with any one replaced, the objective's gradient at the weights is at most"
    " gradient_norm"
)


def _unperturbed(inputs: Mapping[str, Any]) -> float:
    return inputs["residual_norm"]


@theorem(
    "robust regression is the square-root lasso",
    f"{COURSE}, Section 17; H. Xu, C. Caramanis and S. Mannor, NIPS 2008, Theorem 1",
    assumes=(EVERY_COLUMN,),
    claims=at_most(
        "perturbed_residual_norm", holds=ALWAYS, trivial=None, unit="number", measured=_unperturbed
    ),
    example={"residual_norm": 2.0, "l1_norm": 3.0, "perturbation": 0.5},
)
def column_perturbations(
    residual_norm: npt.ArrayLike, l1_norm: npt.ArrayLike, perturbation: npt.ArrayLike
) -> Value:
    """Largest ‖(X + Z)w − y‖₂ over all Z whose columns have norm at most λ: ‖Xw − y‖₂ + λ‖w‖₁, for
    any w.

    ‖Zw‖ ≤ Σ|w_j|‖z_j‖ ≤ λ‖w‖₁, and z_j = λ·sgn(w_j)·u with u the direction of the residual (any, if
    it is 0) attains it.

    Examples
    --------
    >>> column_perturbations(2.0, 3.0, 0.5)
    3.5
    """
    residual, norm = (
        check.nonnegative("residual_norm", residual_norm),
        check.nonnegative("l1_norm", l1_norm),
    )
    radius = check.nonnegative("perturbation", perturbation)
    with np.errstate(invalid="ignore"):
        moved = np.where((norm == 0) | (radius == 0), 0.0, radius * norm)
    return check.plain(residual + moved)


@theorem(
    "duality of the square-root lasso",
    "A. Belloni, V. Chernozhukov and L. Wang, Biometrika 98 (2011), Section 3.1",
    # Spelled as in the certificates that people have.
    assumes=("columns and targets are centred, where an intercept is fitted",),
    claims=at_least("least_perturbed_residual_norm", holds=ALWAYS, unit="number"),
    example={"inner": 3.0, "dual_norm": 1.0, "correlation": 0.6, "perturbation": 0.5},
)
def square_root_lasso_optimum(
    inner: npt.ArrayLike,
    dual_norm: npt.ArrayLike,
    correlation: npt.ArrayLike,
    perturbation: npt.ArrayLike,
) -> Value:
    """No linear predictor has a smaller ‖Xw − y‖₂ + λ‖w‖₁ than ⟨u, y⟩ / max(1, ‖u‖₂, ‖Xᵀu‖_∞/λ),
    for any vector u.

    The dual of the square-root lasso is max ⟨u, y⟩ over ‖u‖₂ ≤ 1, ‖Xᵀu‖_∞ ≤ λ: for such u and every
    w, ⟨u, y⟩ = ⟨u, y − Xw⟩ + ⟨Xᵀu, w⟩ ≤ ‖Xw − y‖₂ + λ‖w‖₁. Dividing by the maximum makes any u
    feasible.

    Parameters
    ----------
    inner : ⟨u, y⟩ ≥ 0
    dual_norm : ‖u‖₂
    correlation : ‖Xᵀu‖_∞
    perturbation : λ > 0

    Examples
    --------
    >>> round(square_root_lasso_optimum(3.0, 1.0, 0.6, 0.5), 6)
    2.5
    """
    value = check.nonnegative("inner", inner)
    check.require(np.isfinite(value), "inner must be finite")
    norm, largest = (
        check.nonnegative("dual_norm", dual_norm),
        check.nonnegative("correlation", correlation),
    )
    return check.plain(
        value
        / np.maximum(np.maximum(1.0, norm), largest / check.positive("perturbation", perturbation))
    )


@theorem(
    "stability of Huber regression",
    "S. Shalev-Shwartz and S. Ben-David (2014), Section 13.3, for the loss in Section 17 of"
    f" {COURSE}",
    assumes=(FIXED_BEFORE, UNIFORM, SOLVED, "‖x‖ ≤ x_bound for every row, as stated"),
    claims=at_most("uniform_stability", holds=ALWAYS, trivial=None, unit="number"),
    example={
        "x_bound": 1.0,
        "threshold": 1.0,
        "regularization": 0.1,
        "n": 1000,
        "gradient_norm": 1e-8,
    },
)
def beta_huber(
    x_bound: npt.ArrayLike,
    threshold: npt.ArrayLike,
    regularization: npt.ArrayLike,
    n: npt.ArrayLike,
    gradient_norm: npt.ArrayLike = 0.0,
) -> Value:
    """β of Huber regression, (1/n)·Σ M^η(⟨w, x⟩ − y) + λ‖w‖², solved to a gradient of norm g:
    ρ²/(λn) + ρg/λ, ρ = ηX.

    M^η has slope at most η, so the loss is ηX-Lipschitz in w whatever the targets are. The
    objective is 2λ-strongly convex: each of two solutions is within g/(2λ) of its minimizer, which
    moves the loss by ρg/λ in all.

    Examples
    --------
    >>> round(beta_huber(1.0, 1.0, 0.1, 1000), 6), round(beta_huber(1.0, 1.0, 0.1, 1000, gradient_norm=1e-4), 6)
    (0.01, 0.011)
    """
    rho = check.nonnegative("x_bound", x_bound) * check.positive("threshold", threshold)
    slack = check.nonnegative("gradient_norm", gradient_norm) / check.positive(
        "regularization", regularization
    )
    return check.plain(beta_tikhonov(rho, regularization, n) + rho * slack)


@theorem(
    "range of Huber regression's loss",
    "S. Shalev-Shwartz and S. Ben-David (2014), proof of Corollary 13.9, for the loss in Section"
    f" 17 of {COURSE}",
    assumes=(
        "the objective at the weights is at most that at 0",
        "‖x‖ ≤ x_bound and |y| ≤ y_bound for every row, as stated",
    ),
    claims=at_most("huber_loss", label="Huber loss", holds=ALWAYS, trivial=None, unit="number"),
    example={"x_bound": 1.0, "y_bound": 1.0, "threshold": 1.0, "regularization": 0.5},
)
def huber_loss_bound(
    x_bound: npt.ArrayLike,
    y_bound: npt.ArrayLike,
    threshold: npt.ArrayLike,
    regularization: npt.ArrayLike,
) -> Value:
    """No loss of Huber regression exceeds M^η(Y + X·√(M^η(Y)/λ)), on any sample and row.

    w = 0 costs at most M^η(Y), so λ‖w‖² ≤ M^η(Y), and no residual exceeds Y + X‖w‖.

    Examples
    --------
    >>> huber_loss_bound(1.0, 1.0, 1.0, 0.5)  # ‖w‖ ≤ 1, |residual| ≤ 2
    1.5
    """
    x, y = check.nonnegative("x_bound", x_bound), check.nonnegative("y_bound", y_bound)
    eta, lam = (
        check.positive("threshold", threshold),
        check.positive("regularization", regularization),
    )
    return check.plain(huber_loss(y + x * np.sqrt(huber_loss(y, eta) / lam), eta))
