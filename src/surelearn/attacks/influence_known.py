"""Which training rows of a fitted model count most, without a single refit: exactly, or to
first order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from surelearn.attacks.influence import Influence, influence_function
from surelearn.attacks.poison_allowed import Array
from surelearn.attacks.poison_objectives import VictimObjective, known_objective
from surelearn.lacking import Lacking
from surelearn.losses import LOGISTIC, SQUARED
from surelearn.subject import Subject, subject_of
from surelearn.subject.leaving import Without
from surelearn.subject.registry import dense
from surelearn.types import AnyArray, Model, RowsLike

WIDEST = 2_000  # prepared columns, or rows where they are fewer: a Hessian has as many rows
MOST_COLUMNS = 500  # prepared columns, beyond which gradients through a fit are too dear
# multiplications for exact fits without one row; beyond, only the rows with most influence to first
# order
WORK = 1e9
FEWEST = 5  # rows that are left out exactly in any case


@dataclass(frozen=True, eq=False)
class ModelInfluence:
    """What leaving out training rows does to the loss on other rows.

    Attributes
    ----------
    found : the change of the mean loss for each row that was left out, and by which method
    base : the mean loss with all rows
    loss : its name
    error : from a position in ``found.rows`` to the standard error of that change over the other
        rows
    """

    found: Influence
    base: float
    loss: str
    error: Callable[[int], float]


def leave_one_out(
    model: Model,
    X: RowsLike,
    y: npt.ArrayLike,
    points: RowsLike,
    *,
    rows: npt.ArrayLike | None = None,
) -> Without | Lacking:
    """Every fit without one row, at other points, where the learner has them in closed form.

    Parameters
    ----------
    model : a fitted model, pipeline or `Subject`; columns stay prepared as they are
    X, y : the rows that it was fitted to, as the model takes them
    points : where the fits are looked at, as the model takes them
    rows : which rows to leave out; all unless told

    Examples
    --------
    >>> from surelearn.linear import Ridge
    >>> X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([1.0, 2.0, 3.0, 9.0])
    >>> fits = leave_one_out(Ridge(regularization=0.01).fit(X, y), X, y, X)
    >>> len(list(fits.each())), fits.full.shape
    (4, (4, 1))
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> print(leave_one_out(DecisionTreeRegressor().fit(X, y), X, y, X))
    no leave-one-out: no closed form of the fits without one row is known here
    """
    subject = subject_of(model)
    fits, objective = subject.leave_one_out, subject.objective
    if isinstance(fits, Lacking):
        return fits
    Z, new = subject.prepared(X), subject.prepared(points)
    squared = isinstance(objective, Lacking) or objective.loss == "squared"
    if not squared and min(Z.shape) > WIDEST:
        return Lacking(
            "leave-one-out",
            f"it has {Z.shape[1]:,} prepared columns and {Z.shape[0]:,} rows, more than {WIDEST:,} of"
            " both",
        )
    wide = not squared and Z.shape[1] > Z.shape[0]  # found among sums of rows, sparse ones too
    Z, new = (part if wide and issparse(part) else _numbers(part) for part in (Z, new))
    return fits(
        Z,
        prepared_targets(subject, y),
        new,
        None if rows is None else np.asarray(rows),
    )


def model_influence(
    model: Model, X: RowsLike, y: npt.ArrayLike, X_outer: RowsLike, y_outer: npt.ArrayLike
) -> ModelInfluence | Lacking:
    """By how much the mean loss on other rows changes without each training row, in closed form or
    to first order.

    Kernel machines that were solved directly, ridge and logistic regressions of ours: exactly.
    Logistic regressions of scikit-learn: to first order, as `influence_function` has it. Of large
    tables, the rows that count most to first order are left out exactly.

    Parameters
    ----------
    model : a fitted model, pipeline or `Subject`
    X, y : the rows that it was fitted to
    X_outer, y_outer : rows on which the loss is looked at

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[0.0], [1.0], [1.2], [3.0], [4.0], [9.0]]), np.array([0, 0, 0, 1, 1, 0])
    >>> told = model_influence(LogisticRegression().fit(X, y), X, y, X[:5], y[:5])
    >>> told.found.method, told.loss, int(told.found.top(1)[0])
    ('influence function', 'log loss', 5)
    """
    subject = subject_of(model)
    linear = _linear(subject, X, y, X_outer, y_outer)
    return linear if not isinstance(linear, Lacking) else _squared(subject, X, y, X_outer, y_outer)


def prepared_targets(subject: Subject, y: npt.ArrayLike) -> Any:
    """Targets as the learner is given them."""
    if subject.target is None:
        return y
    return np.squeeze(subject.target.transform(np.asarray(y, dtype=float).reshape(-1, 1)), axis=1)


def error_of_mean(differences: Array) -> float:
    """The standard error of a mean."""
    return (
        float(np.std(differences, ddof=1) / np.sqrt(len(differences)))
        if len(differences) > 1
        else 0.0
    )


def first_order_error(
    objective: VictimObjective,
    w: Array,
    Z: Array,
    y: AnyArray,
    points: Array,
    labels: AnyArray,
    row: int,
) -> float:
    """The standard error over other rows of what leaving out the row does to their mean loss,
    to first order.
    """
    move = objective.solve(
        w, Z, y, objective.gradients(w, Z[row : row + 1], y[row : row + 1])[0]
    ) / len(Z)
    return error_of_mean(objective.gradients(w, points, labels) @ move)


def _squared(
    subject: Subject, X: RowsLike, y: npt.ArrayLike, X_outer: RowsLike, y_outer: npt.ArrayLike
) -> ModelInfluence | Lacking:
    """Every row of a machine of squared loss that has its fits without a row in closed form."""
    objective = subject.objective
    if isinstance(objective, Lacking) or objective.loss != "squared":
        return Lacking(
            "influence",
            "no closed form of the fits without one row, nor of their first order, is known here",
        )
    fits = leave_one_out(subject, X, y, X_outer)
    if isinstance(fits, Lacking):
        return fits
    classes = subject.learner.classes
    if classes is None:
        wanted = np.asarray(prepared_targets(subject, y_outer), dtype=float).reshape(
            fits.full.shape
        )
    else:
        wanted = np.where(np.asarray(y_outer)[:, None] == np.asarray(classes), 1.0, -1.0)
        wanted = wanted[:, 1:] if fits.full.shape[1] == 1 else wanted
    own = ((fits.full - wanted) ** 2).mean(axis=1)
    base = float(own.mean())
    risk = np.array([((values - wanted) ** 2).mean() for values in fits.each()]) - base
    moved = np.array([np.abs(values - fits.full).max() for values in fits.each()])

    def error(at: int) -> float:
        values = next(values for i, values in enumerate(fits.each()) if i == at)
        return error_of_mean(((values - wanted) ** 2).mean(axis=1) - own)

    return ModelInfluence(Influence(fits.rows, risk, moved, "exact"), base, "squared loss", error)


def _linear(
    subject: Subject, X: RowsLike, y: npt.ArrayLike, X_outer: RowsLike, y_outer: npt.ArrayLike
) -> ModelInfluence | Lacking:
    """Every row of a logistic or ridge regression: exactly where the learner can, and where not
    to first order.
    """
    known, fits, classes = (
        known_objective(subject, np.shape(y)[0]),
        subject.leave_one_out,
        subject.learner.classes,
    )
    if isinstance(known, Lacking):
        return known
    objective, w = known
    if subject.target is not None or (objective.loss == "squared" and isinstance(fits, Lacking)):
        return Lacking("influence", "no closed form of the fits without one row is known here")
    Z, points = (subject.prepared(part) for part in (X, X_outer))
    if Z.shape[1] > MOST_COLUMNS:
        return Lacking("influence", _too_wide(Z.shape[1], MOST_COLUMNS))
    try:
        Z, points = _numbers(Z), _numbers(points)
    except ValueError:
        return Lacking("influence", "the prepared columns are not all numbers")
    if objective.loss == "squared":
        codes, labels = np.asarray(y, dtype=float), np.asarray(y_outer, dtype=float)
        name, loss, targets = "squared loss", SQUARED, labels
    else:
        codes, labels = (np.searchsorted(np.asarray(classes), part) for part in (y, y_outer))
        name, loss, targets = "log loss", LOGISTIC, 2.0 * labels - 1
    base = objective.risk(w, points, labels)
    rough = influence_function(objective, w, Z, codes, points, labels, scores=False)

    def error(at: int) -> float:
        return first_order_error(objective, w, Z, codes, points, labels, int(found.rows[at]))

    found = rough
    if not isinstance(fits, Lacking):
        # the rows that count most by the first order are left out exactly, as many as the work allows
        which = np.sort(rough.top(max(int(WORK / max(Z.size, points.size)), FEWEST)))
        left = fits(Z, np.asarray(y), points, which)
        full = loss.of_scores(left.full[:, 0], targets).mean()
        each = [
            (
                float(loss.of_scores(v[:, 0], targets).mean() - full),
                float(np.abs(v - left.full).max()),
            )
            for v in left.each()
        ]
        risk, moved = (np.array(part) for part in zip(*each, strict=True))
        found = Influence(which, risk, moved, "exact")
    return ModelInfluence(found, base, name, error)


def _too_wide(columns: int, most: int) -> str:
    return f"it has {columns:,} prepared columns, more than {most:,}"


def _numbers(rows: RowsLike) -> Array:
    return np.asarray(dense(rows), dtype=float)
