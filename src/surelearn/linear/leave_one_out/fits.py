"""All fits without one row, or with one row replaced, at about the price of one fit.

Leaving row i out drops its loss from the sum and keeps the rest: the total penalty nλ stays.
Replacing row i by another is leaving it out of the rows with the other added, so one more fit gives
all n replacements. `largest_change` measures what a replacement does to the loss, to stand beside
the certified β of `surelearn.bounds.stability`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from surelearn.linear.leave_one_out.newton import Indices, leave_out, newton
from surelearn.linear.leave_one_out.ridge import ridge_without
from surelearn.linear.leave_one_out.wide import sums_without
from surelearn.linear.ridge.spectrum import INTERCEPTS, Array, Intercept
from surelearn.losses import LOGISTIC, SQUARED
from surelearn.subject.leaving import Without
from surelearn.types import Label, RowsLike

Loss = Literal["squared", "logistic"]
_MOST_WEIGHTS = 20_000_000  # of all fits together; beyond, only their sums of rows are kept
_NO_FREE = "intercept must be 'none' or 'regularized', not {!r}"


@dataclass(frozen=True, eq=False)
class LeaveOneOutFits:
    """The fits without one row.

    Attributes
    ----------
    weights : (k, d), or (k, d, t) for several outputs; row by row the fit without that row, None if
        not asked for, or where they are too many
    intercepts : (k,) or (k, t); 0 without one
    scores : (k,) or (k, t), each row's score by the fit without it
    errors : (k,), bounds on the distance of the weights from the exact minimizer; 0 for ridge,
        which is exact to rounding
    full_weights, full_intercept : the fit to all rows
    sums : (coefficients (k, n), rows (n, d)) of which the weights are the sums, where there are more
        columns than rows
    """

    weights: Array | None
    intercepts: Array
    scores: Array
    errors: Array
    full_weights: Array
    full_intercept: Array
    sums: tuple[Array, Any] | None = None

    def at(self, points: Any, rows: npt.NDArray[np.intp], targets: Array) -> Without:
        """Scores of these fits at points (m, d); ``targets`` are those of the rows left out, as
        the fit codes them.
        """
        full = _columns(np.asarray(points @ self.full_weights + self.full_intercept))
        if self.sums is not None:
            coefficients, of = self.sums
            products = points @ of.T  # (m, n)
            points = _dense(products)
            fits = list(zip(coefficients, self.intercepts, strict=True))
        elif self.weights is None:
            raise ValueError("the weights of the fits were not asked for: pass weights=True")
        else:
            fits = list(zip(self.weights, self.intercepts, strict=True))
        return Without(
            rows=rows,
            full=full,
            own=_columns(self.scores),
            targets=_columns(targets),
            each=lambda: (_columns(points @ w + b) for w, b in fits),
        )


@dataclass(frozen=True)
class Change:
    """The largest change of the loss found, and where: which row, by which replacement, at which
    point.

    ``point`` is −1 where the point was searched for inside ``x_bound``.
    """

    value: float
    row: int
    replacement: int
    point: int


def ridge_leave_one_out(
    X: RowsLike,
    y: npt.ArrayLike,
    regularization: float,
    *,
    intercept: Intercept = "none",
    weights: bool = False,
    rows: npt.ArrayLike | None = None,
) -> LeaveOneOutFits:
    """Ridge regression without each row in turn, by Sherman–Morrison: ŷ_i = y_i − e_i/(1 − h_i).

    The objective without row i is (1/n)·Σ_{j≠i}(⟨w, x_j⟩ − y_j)² + λ‖w‖². h_i = x_iᵀ(XᵀX +
    nλI)⁻¹x_i comes from a Cholesky factor where that loses few digits, else from the singular value
    decomposition.

    Parameters
    ----------
    X : rows (n, d)
    y : targets (n,) or (n, t)
    regularization : λ > 0
    intercept : "none", "regularized" or "free", as for `surelearn.linear.Ridge`
    weights : whether to return the n weight vectors too
    rows : which rows to leave out; all unless told

    Examples
    --------
    >>> fits = ridge_leave_one_out([[1.0], [2.0]], [1.0, 2.0], 2.5, weights=True)
    >>> fits.weights.round(4).tolist(), fits.scores.round(4).tolist()
    ([[0.4444], [0.1667]], [0.4444, 0.3333])
    """
    read, lam = _rows(X), _positive(regularization)
    Y = _targets(read, y)
    _check_intercept(intercept)
    fits, which = ridge_without(read, Y, lam * len(read), intercept), _which(rows, len(read))
    return LeaveOneOutFits(
        weights=fits.weights()[which] if weights else None,
        intercepts=fits.intercepts()[which],
        scores=fits.scores[which],
        errors=np.zeros(len(which)),
        full_weights=fits.full_weights,
        full_intercept=fits.full_intercept,
    )


def ridge_replace_one(
    X: RowsLike,
    y: npt.ArrayLike,
    regularization: float,
    row: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    intercept: Intercept = "none",
) -> LeaveOneOutFits:
    """Ridge regression with each row in turn replaced by ``(row, target)``, in closed form.

    Examples
    --------
    >>> fits = ridge_replace_one([[1.0], [2.0]], [1.0, 2.0], 2.5, [1.0], -1.0)
    >>> fits.weights.round(4).tolist()
    [[0.3], [0.0]]
    """
    read, lam = _rows(X), _positive(regularization)
    Y = _targets(read, y)
    _check_intercept(intercept)
    n, added = (
        len(read),
        np.concatenate([Y, np.asarray(target, dtype=float).reshape(1, *Y.shape[1:])]),
    )
    fits = ridge_without(_with_row(read, row), added, lam * n, intercept)
    weights, intercepts = fits.weights(), fits.intercepts()
    return LeaveOneOutFits(
        weights=weights[:n],
        intercepts=intercepts[:n],
        scores=fits.scores[:n],
        errors=np.zeros(n),
        full_weights=weights[n],  # without the added row: the fit to the rows as they are
        full_intercept=intercepts[n],
    )


def logistic_leave_one_out(
    X: RowsLike,
    y: npt.ArrayLike,
    regularization: float,
    *,
    tol: float = 1e-6,
    intercept: Literal["none", "regularized"] = "none",
    rows: npt.ArrayLike | None = None,
) -> LeaveOneOutFits:
    """Logistic regression without each row in turn, each within ``tol`` of its exact minimizer,
    without n separate fits.

    The objective without row i is (1/n)·Σ_{j≠i} ln(1 + e^{−y_j⟨w, x_j⟩}) + λ‖w‖². All rows start
    with the Newton step from the full fit, its Hessian downdated by rank one, and share that
    Hessian's factor in the corrections; ``errors`` holds proven bounds on the distances that
    remain. Rows whose removal moves the scores far get Newton's method of their own, still in
    batches.

    Parameters
    ----------
    X : rows (n, d), with more columns than rows also sparse: then the fits are sums of rows, found in
        no more columns than rows (`surelearn.linear.leave_one_out.wide`)
    y : labels of two classes; the second in sorted order counts as +1
    regularization : λ > 0
    tol : the largest distance ‖w − w*‖ allowed; not below 1e-12 times the largest weights
    intercept : "none", or "regularized": a column of ones, penalized like the others
    rows : which rows to leave out; all unless told

    Examples
    --------
    >>> fits = logistic_leave_one_out([[-1.0], [1.0], [2.0]], [0, 1, 1], 0.1)
    >>> fits.weights.round(4).tolist()
    [[0.9255], [0.9255], [0.9378]]
    """
    lam, given = _positive(regularization), _wide_rows(X)
    n, d = int(given.shape[0]), int(given.shape[1])
    if d > n:
        return _wide_without(given, _signs(y), lam * n, tol, intercept, _which(rows, n))
    X = _padded(_rows(given), intercept)
    return _logistic_without(X, _signs(y), lam * len(X), tol, intercept, _which(rows, len(X)))


def logistic_replace_one(
    X: RowsLike,
    y: npt.ArrayLike,
    regularization: float,
    row: npt.ArrayLike,
    label: Label,
    *,
    tol: float = 1e-6,
    intercept: Literal["none", "regularized"] = "none",
    rows: npt.ArrayLike | None = None,
) -> LeaveOneOutFits:
    """Logistic regression with each row in turn replaced by ``(row, label)``; parameters as
    `logistic_leave_one_out`.

    Examples
    --------
    >>> fits = logistic_replace_one([[-1.0], [1.0], [2.0]], [0, 1, 1], 0.1, [2.0], 0)
    >>> fits.weights.round(4).tolist()
    [[0.1768], [0.1768], [0.0]]
    """
    rows_, lam = _rows(X), _positive(regularization)
    labels = np.append(np.asarray(y), np.asarray([label], dtype=np.asarray(y).dtype))
    which = _which(rows, len(rows_))
    X = _padded(_with_row(rows_, row), intercept)
    return _logistic_without(X, _signs(labels), lam * len(rows_), tol, intercept, which)


def largest_change(
    X: RowsLike,
    y: npt.ArrayLike,
    regularization: float,
    replacements: tuple[RowsLike, npt.ArrayLike],
    *,
    loss: Loss = "squared",
    points: tuple[RowsLike, npt.ArrayLike] | None = None,
    x_bound: float | None = None,
    y_bound: float | None = None,
    rows: npt.ArrayLike | None = None,
) -> Change:
    """The largest change of the loss at any point, over every row replaced by every replacement: a
    measurement of β.

    No certified β may be below it. Without an intercept; pad the rows for a penalized one.

    Parameters
    ----------
    X, y : rows (n, d) and targets (n,); for the logistic loss labels −1 and 1
    regularization : λ > 0
    replacements : rows (m, d) and targets (m,), each to take the place of each row
    loss : "squared" (ridge) or "logistic"
    points : rows and targets at which the loss is compared; the rows and the replacements unless
        told
    x_bound, y_bound : if given, also search the worst point, ‖x‖ = x_bound and ``|y|`` ≤ y_bound
        (or ±1)
    rows : which rows to replace; all unless told

    Examples
    --------
    >>> change = largest_change([[1.0], [1.0]], [1.0, -1.0], 100.0, ([[1.0]], [1.0]), x_bound=1.0, y_bound=1.0)
    >>> round(change.value, 6)
    0.0199
    """
    if loss not in ("squared", "logistic"):
        raise ValueError(f"loss must be 'squared' or 'logistic', not {loss!r}")
    rows_, Y = _rows(X), np.asarray(y, dtype=float)
    if Y.ndim != 1:
        raise ValueError("y must have one output: measure the outputs one by one")
    others, targets = _rows(replacements[0]), np.asarray(replacements[1], dtype=float)
    if points is None:
        points = np.vstack([rows_, others]), np.concatenate([Y, targets])
    at, labels = _rows(points[0]), np.asarray(points[1], dtype=float)
    loss_of = (SQUARED if loss == "squared" else LOGISTIC).of_scores
    which = _which(rows, len(rows_))
    full = _full_fit(rows_, Y, regularization, loss)
    best = Change(value=0.0, row=-1, replacement=-1, point=-1)
    for k, (row, target) in enumerate(zip(others, targets, strict=True)):
        fitted = _replaced(rows_, Y, regularization, loss, row, target, which)
        # (m, k)
        changes = np.abs(
            loss_of(at @ fitted.T, labels[:, None]) - loss_of(at @ full, labels)[:, None]
        )
        point, i = np.unravel_index(int(np.argmax(changes)), changes.shape)
        best = max(
            best,
            Change(float(changes[point, i]), int(which[i]), k, int(point)),
            key=lambda c: c.value,
        )
        if x_bound is not None:
            worst = _worst_inside(full, fitted, loss, x_bound, y_bound)
            i = int(np.argmax(worst))
            best = max(best, Change(float(worst[i]), int(which[i]), k, -1), key=lambda c: c.value)
    return best


def _full_fit(X: Array, y: Array, regularization: float, loss: Loss) -> Array:
    if loss == "squared":
        return ridge_leave_one_out(X, y, regularization).full_weights
    return newton(X, _signs(y), _positive(regularization) * len(X))


def _replaced(
    X: Array, y: Array, regularization: float, loss: Loss, row: Array, target: float, which: Indices
) -> npt.NDArray[Any]:
    if loss == "squared":
        return np.asarray(ridge_replace_one(X, y, regularization, row, target).weights)[which]
    return np.asarray(
        logistic_replace_one(X, y, regularization, row, target, tol=1e-9, rows=which).weights
    )


def _worst_inside(
    full: Array, fitted: Array, loss: Loss, x_bound: float, y_bound: float | None
) -> Array:
    """For each fit the largest change at 256 points with ‖x‖ = x_bound in the plane of it and
    the full fit, (k,).
    """
    angles = np.linspace(0, np.pi, 256, endpoint=False)  # −x with −y is as bad as x with y
    apart = full - fitted
    # best when w + w' is small
    first = apart / np.maximum(np.linalg.norm(apart, axis=1, keepdims=True), 1e-300)
    second = full - (first @ full)[:, None] * first
    size = np.linalg.norm(second, axis=1, keepdims=True)
    # else rounding only
    second = np.where(size > 1e-6 * np.linalg.norm(full), second / np.maximum(size, 1e-300), 0.0)
    cos, sin = x_bound * np.cos(angles), x_bound * np.sin(angles)

    def scores(w: Array) -> Array:
        return (first * w).sum(1)[:, None] * cos + (second * w).sum(1)[:, None] * sin  # (k, 256)

    before, after = scores(np.broadcast_to(full, fitted.shape)), scores(fitted)
    if loss == "squared":
        if y_bound is None:
            raise ValueError("y_bound must be given with x_bound for the squared loss")
        worst = np.abs(before - after) * (np.abs(before + after) + 2 * y_bound)
    else:
        worst = np.maximum(
            *(
                np.abs(LOGISTIC.of_scores(before, sign) - LOGISTIC.of_scores(after, sign))
                for sign in (1.0, -1.0)
            )
        )
    return worst.max(1)


def _logistic_without(
    X: Array, signs: Array, total: float, tol: float, intercept: str, rows: Indices
) -> LeaveOneOutFits:
    _check(tol, signs, X)
    full = newton(X, signs, total)
    weights, errors = leave_out(X, signs, total, full, rows, tol)
    scores = np.einsum("ij,ij->i", weights, X[rows])
    intercepts, full_intercept = np.zeros(len(rows)), np.float64(0)
    if intercept == "regularized":
        weights, intercepts, full, full_intercept = (
            weights[:, :-1],
            weights[:, -1],
            full[:-1],
            full[-1],
        )
    return LeaveOneOutFits(
        weights=weights,
        intercepts=intercepts,
        scores=scores,
        errors=errors,
        full_weights=full,
        full_intercept=np.asarray(full_intercept),
    )


def _wide_without(
    X: Any, signs: Array, total: float, tol: float, intercept: str, rows: Indices
) -> LeaveOneOutFits:
    """As `_logistic_without`, of rows (n, d) that may be sparse."""
    _check(tol, signs, X)
    padded = X
    if intercept == "regularized":
        ones = np.ones((X.shape[0], 1))
        padded = sparse.hstack([X, ones], "csr") if sparse.issparse(X) else np.hstack([X, ones])
    elif intercept != "none":
        raise ValueError(_NO_FREE.format(intercept))
    found = sums_without(padded, signs, total, rows, tol)
    own = intercept == "regularized"
    few = found.coefficients.shape[0] * X.shape[1] <= _MOST_WEIGHTS
    return LeaveOneOutFits(
        weights=found.coefficients @ X if few else None,
        intercepts=found.coefficients.sum(axis=1) if own else np.zeros(len(rows)),
        scores=found.scores,
        errors=found.errors,
        full_weights=found.full @ X,
        full_intercept=np.asarray(found.full.sum() if own else 0.0),
        sums=(found.coefficients, X),
    )


def _check(tol: float, signs: Array, X: Any) -> None:
    if not tol > 0:
        raise ValueError(f"tol must be above 0, not {tol!r}")
    if len(signs) != X.shape[0]:
        raise ValueError(f"y must have one label for each of the {X.shape[0]} rows")


def _wide_rows(X: Any) -> Any:
    if not sparse.issparse(X):
        return _rows(X)
    found = cast("Any", X).tocsr().astype(float)
    if not np.isfinite(found.data).all() or not found.shape[0]:
        raise ValueError("X must be rows of finite numbers, shape (n, d)")
    return found


def _dense(values: Any) -> Array:
    return np.asarray(values.toarray() if sparse.issparse(values) else values)


def _rows(X: RowsLike) -> Array:
    rows = np.asarray(cast("Any", X).toarray() if sparse.issparse(X) else X, dtype=float)
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise ValueError("X must be rows of finite numbers, shape (n, d)")
    return rows


def _targets(X: Array, y: npt.ArrayLike) -> Array:
    Y = np.asarray(y, dtype=float)
    if Y.ndim not in (1, 2) or len(Y) != len(X) or not np.isfinite(Y).all():
        raise ValueError(f"y must be finite numbers, one row for each of the {len(X)} rows of X")
    return Y


def _which(rows: npt.ArrayLike | None, n: int) -> Indices:
    which = np.arange(n) if rows is None else np.asarray(rows, dtype=np.intp)
    if which.ndim != 1 or (which < 0).any() or (which >= n).any():
        raise ValueError(f"rows must be row numbers from 0 to {n - 1}")
    return which


def _check_intercept(intercept: str) -> None:
    if intercept not in INTERCEPTS:
        raise ValueError(f"intercept must be one of {', '.join(INTERCEPTS)}, not {intercept!r}")


def _positive(regularization: float) -> float:
    if not (np.isfinite(regularization) and regularization > 0):
        raise ValueError(f"regularization must be a finite number above 0, not {regularization!r}")
    return float(regularization)


def _padded(X: Array, intercept: str) -> Array:
    if intercept not in INTERCEPTS or intercept == "free":
        raise ValueError(_NO_FREE.format(intercept))
    return np.hstack([X, np.ones((len(X), 1))]) if intercept == "regularized" else X


def _with_row(X: Array, row: npt.ArrayLike) -> Array:
    return np.vstack([X, np.asarray(row, dtype=float).reshape(1, X.shape[1])])


def _signs(y: npt.ArrayLike) -> Array:
    classes, index = np.unique(np.asarray(y), return_inverse=True)
    if len(classes) > 2:
        raise ValueError(f"y must have two classes, not {len(classes)}")
    if len(classes) == 1 and classes[0] not in (-1, 1):
        raise ValueError("y must have two classes, or be -1 or 1 throughout")
    if len(classes) == 1:
        return np.full(len(index), float(classes[0]), dtype=np.float64)
    return np.asarray(2 * index.ravel() - 1, dtype=np.float64)


def _columns(scores: Array) -> Array:
    return scores.reshape(len(scores), -1)
