"""Ridge regression, (1/n)·Σ‖⟨w, x⟩ − y‖² + λ‖w‖²: the range of its loss, and what stopping early
costs.

For kernels read ‖φ(x)‖ for ‖x‖. With several targets |y| is their Euclidean norm.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds._checks import Value
from surelearn.bounds.optimality import distance_to_minimizer
from surelearn.bounds.stability import EXACT, FIXED_BEFORE, UNIFORM, beta_ridge
from surelearn.claim import ALWAYS, at_most, equal, theorem

BOUNDED = "‖x‖ ≤ x_bound and |y| ≤ y_bound for every row, as stated"


@theorem(
    "norm with a column of ones",
    "Pythagoras: ‖(x, 1)‖² = ‖x‖² + 1",
    assumes=("‖x‖ ≤ x_bound for every row, as stated",),
    claims=at_most("norm_of_a_padded_row", holds=ALWAYS, trivial=None, unit="number"),
    example={"x_bound": 1.0},
)
def padded_norm(x_bound: npt.ArrayLike) -> Value:
    """‖(x, 1)‖ ≤ √(X² + 1), where a regularized intercept is the weight of a column of ones.

    Examples
    --------
    >>> round(padded_norm(1.0), 4)
    1.4142
    """
    return check.plain(np.hypot(check.nonnegative("x_bound", x_bound), 1.0))


@theorem(
    "leave-one-out, in closed form",
    "D. M. Allen, The relationship between variable selection and data augmentation and a method"
    " for prediction, Technometrics 16 (1974): y − ŷ₋ᵢ = (y − ŷ)/(1 − h) for the leverage h",
    assumes=(),
    claims=equal("leave_one_out_error", label="leave-one-out error"),
    example={"error": 2.5},
)
def leave_one_out_error(error: npt.ArrayLike) -> Value:
    """The mean squared error of all n fits without one row, each on that row, nλ kept as it is.

    It is what it is, whatever λ and the rows are, and says nothing of new rows for certain: it
    is nearly unbiased for the risk of a fit to n − 1 rows, unless λ was chosen by it.

    Parameters
    ----------
    error : the mean over rows, weighted as the fit was

    Examples
    --------
    >>> leave_one_out_error(2.5)
    2.5
    """
    return check.plain(check.nonnegative("error", error))


@theorem(
    "range of ridge regression's loss",
    "as in the proof of `beta_ridge`: ‖w‖ ≤ Y/(2√λ) for the minimizer of every sample",
    assumes=(EXACT, BOUNDED),
    claims=at_most("squared_loss_of_the_minimizer", holds=ALWAYS, trivial=None, unit="number"),
    example={"x_bound": 1.0, "y_bound": 1.0, "regularization": 0.25},
)
def ridge_loss_bound(
    x_bound: npt.ArrayLike, y_bound: npt.ArrayLike, regularization: npt.ArrayLike
) -> Value:
    """No loss of the minimizer exceeds M = Y²(1 + X/(2√λ))², on any sample and row.

    Examples
    --------
    >>> ridge_loss_bound(1.0, 1.0, 0.25)
    4.0
    """
    x, y = check.nonnegative("x_bound", x_bound), check.nonnegative("y_bound", y_bound)
    return check.plain(
        (y * (1 + x / (2 * np.sqrt(check.positive("regularization", regularization))))) ** 2
    )


@theorem(
    "what stopping early changes of ridge regression's loss",
    "S. Boyd and L. Vandenberghe (2004), (9.11), without its factor 2, and |a² − b²| = |a − b|·|a"
    " + b|",
    assumes=(BOUNDED,),
    claims=at_most("change_of_a_loss", holds=ALWAYS, trivial=None, unit="number"),
    example={"x_bound": 1.0, "y_bound": 1.0, "regularization": 0.25, "gradient_norm": 0.05},
)
def ridge_loss_change(
    x_bound: npt.ArrayLike,
    y_bound: npt.ArrayLike,
    regularization: npt.ArrayLike,
    gradient_norm: npt.ArrayLike,
    value_error: npt.ArrayLike = 0.0,
) -> Value:
    """How far a loss of the weights found may lie from the minimizer's: o(2√M + o), o = X‖∇F‖/(2λ)
    + v.

    The weights are within ‖∇F‖/(2λ) of the minimizer's, so a prediction is off by at most o, v the
    rounding of a value; the minimizer's residual is at most √M (`ridge_loss_bound`), and the
    other's at most √M + o.

    Parameters
    ----------
    gradient_norm : ‖∇F(w)‖ at the weights found
    value_error : v, how far rounding moves a prediction

    Examples
    --------
    >>> round(ridge_loss_change(1.0, 1.0, 0.25, 0.05), 6)
    0.41
    """
    root = np.sqrt(ridge_loss_bound(x_bound, y_bound, regularization))
    distance = distance_to_minimizer(gradient_norm, regularization)
    off = np.asarray(x_bound, dtype=float) * distance + check.nonnegative(
        "value_error", value_error
    )
    return check.plain(off * (2 * root + off))


@theorem(
    "stability of ridge regression, a row removed",
    "O. Bousquet and A. Elisseeff, JMLR 2 (2002), Theorem 22, with 1/n and so nλ kept when a row is"
    " left out",
    assumes=(FIXED_BEFORE, UNIFORM, EXACT, BOUNDED),
    claims=at_most(
        "remove_one_stability",
        label="remove-one stability",
        holds=ALWAYS,
        trivial=None,
        unit="number",
    ),
    example={"x_bound": 1.0, "y_bound": 1.0, "regularization": 0.1, "n": 1000},
)
def beta_ridge_removed(
    x_bound: npt.ArrayLike, y_bound: npt.ArrayLike, regularization: npt.ArrayLike, n: npt.ArrayLike
) -> Value:
    """Half of `beta_ridge`: leaving a row out moves the minimizer half as far as replacing it, of n
    rows as of n − 1.

    Examples
    --------
    >>> round(beta_ridge_removed(1.0, 1.0, 0.1, 1000), 4)
    0.1332
    """
    return check.plain(np.asarray(beta_ridge(x_bound, y_bound, regularization, n)) / 2)
