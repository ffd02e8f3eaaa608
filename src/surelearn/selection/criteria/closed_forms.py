"""Leave-one-out without n fits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surelearn.selection.cross_validation import fit_and_predict
from surelearn.subject import Task
from surelearn.types import AnyArray, Array, Model, RowsLike


def has_closed_form(model: Model, X: RowsLike, task: Task) -> bool:
    """Whether `leave_one_out_predictions` knows a shorter way than n fits.

    A learner that does offers ``leave_one_out_predictions(X, y)``, called on the unfitted learner,
    with None where its settings leave no closed form; scikit-learn's ``LinearRegression`` and
    ``Ridge`` are known here.
    """
    return hasattr(model, "leave_one_out_predictions") or (
        task == "regression" and _penalty(model, X) is not None
    )


def leave_one_out_predictions(model: Model, X: RowsLike, y: npt.ArrayLike) -> AnyArray:
    """The prediction of each row by the model fitted on all others.

    A least-squares fit with penalty α‖w‖² predicts ŷ = Hy, and without row i it predicts y_i − (y_i
    − ŷ_i)/(1 − H_ii) there. Where a row determines its own prediction (H_ii = 1), and where no
    closed form is known, n fits are made.
    """
    y = np.asarray(y)
    if hasattr(model, "leave_one_out_predictions"):
        predicted = model.leave_one_out_predictions(X, y)
    else:
        alpha = _penalty(model, X)
        predicted = (
            None
            if alpha is None
            else _penalized(np.asarray(X, dtype=float), y, alpha, model.fit_intercept)
        )
    return _refits(model, X, y) if predicted is None else np.asarray(predicted)


def _penalty(model: Model, X: RowsLike) -> float | None:
    """α of scikit-learn's least squares, None for anything else."""
    from scipy.sparse import issparse
    from sklearn.linear_model import LinearRegression, Ridge

    kind = type(model)
    if kind not in (LinearRegression, Ridge) or model.positive or issparse(X):
        return None
    return (
        0.0
        if kind is LinearRegression
        else float(model.alpha)
        if np.ndim(model.alpha) == 0
        else None
    )


def _penalized(X: Array, y: AnyArray, alpha: float, intercept: bool) -> Array | None:
    y = y.astype(float)
    center, level = (X.mean(0), y.mean()) if intercept else (0.0, 0.0)
    # residuals of ridge over 1 − leverage, from one singular value decomposition
    U, s, _ = np.linalg.svd(X - center, full_matrices=False)
    kept = s > max(X.shape) * np.finfo(float).eps * s[0]
    U, s = U[:, kept], s[kept]
    shrunk = s**2 / (s**2 + alpha)
    leverages = U**2 @ shrunk + (1 / len(y) if intercept else 0.0)
    if (leverages > 1 - 1e-9).any():
        return None
    residuals = y - level - U @ (shrunk * (U.T @ (y - level)))
    return y - residuals / (1 - leverages)


def _refits(model: Model, X: RowsLike, y: AnyArray) -> AnyArray:
    rows = np.arange(y.size)
    return np.concatenate(
        [
            fit_and_predict(model, X, y, np.delete(rows, i), rows[i : i + 1])["predictions"]
            for i in rows
        ]
    )
