"""Which training rows move a fit most: left out exactly where there is a closed form, to first
order, or by refits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from surelearn.attacks.poison_allowed import Array, checked_count, checked_rows
from surelearn.attacks.poison_objectives import (
    LinearObjective,
    VictimObjective,
    check_labels,
    checked_parameters,
)
from surelearn.subject import predict_with
from surelearn.types import RandomState, RowsLike

Loss = Callable[[Array, np.ndarray], Any]


@dataclass(frozen=True, eq=False)
class Influence:
    """What leaving out one row does.

    Attributes
    ----------
    rows : which rows were left out
    risk : by how much the mean loss on the outer rows rises without the row: negative where the row
        does harm
    largest : the largest change of a score on the outer rows; NaN where it was not computed
    method : "exact", "influence function", "dual step" or "refits"
    """

    rows: np.ndarray
    risk: Array
    largest: Array
    method: Literal["exact", "influence function", "dual step", "refits"]

    def top(self, count: int, by: Literal["risk", "largest"] = "risk") -> np.ndarray:
        """The rows with the largest effect, of either sign, first."""
        return self.rows[
            np.argsort(-np.abs(getattr(self, by)), kind="stable")[: checked_count("count", count)]
        ]


def influence_function(
    objective: VictimObjective,
    w: npt.ArrayLike,
    X: RowsLike,
    y: npt.ArrayLike,
    X_outer: RowsLike,
    y_outer: npt.ArrayLike,
    *,
    rows: npt.ArrayLike | None = None,
    scores: bool = True,
) -> Influence:
    """To first order, what leaving out each row does: the minimizer moves by H⁻¹(g_i)/n, the outer
    risk by ⟨∇L, H⁻¹g_i⟩/n.

    H is the Hessian of the whole objective at its minimizer w (R. D. Cook, 1977; P. W. Koh and P.
    Liang, ICML 2017); the total penalty stays. Closed form for `LinearObjective`, conjugate
    gradients for a torch module.

    Parameters
    ----------
    w : the minimizer on X, y
    X_outer, y_outer : rows on which the risk is looked at
    rows : which rows; all unless told
    scores : whether to find the largest change of a score too, which takes a product of rows and
        outer rows

    Examples
    --------
    >>> from surelearn.attacks.poison_objectives import LinearObjective
    >>> X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([1.0, 2.0, 3.0, 9.0])
    >>> line = LinearObjective("squared", intercept=False, regularization=0.01)
    >>> int(influence_function(line, line.fit(X, y), X, y, X[:3], y[:3]).top(1)[0])
    3
    """
    (X, y), (X_outer, y_outer) = (
        checked_rows(X, y),
        checked_rows(X_outer, y_outer, "X_outer and y_outer"),
    )
    check_labels(objective, y)
    which, w, n = _which(rows, len(X)), checked_parameters(objective, "w", w, X.shape[1]), len(X)
    slopes = objective.gradients(w, X[which], y[which])
    risk = slopes @ objective.solve(w, X, y, objective.gradient(w, X_outer, y_outer)) / n
    largest = np.full(len(which), np.nan)
    if scores and isinstance(objective, LinearObjective):
        moves = objective.solve(w, X, y, slopes.T).T / n
        largest = np.array([np.abs(objective.decision(move, X_outer)).max() for move in moves])
    return Influence(which, risk, largest, "influence function")


def exact_influence(
    leave_one_out: Callable[..., Any],
    X: RowsLike,
    y: npt.ArrayLike,
    X_outer: RowsLike,
    y_outer: npt.ArrayLike,
    *,
    loss: Loss,
    rows: npt.ArrayLike | None = None,
) -> Influence:
    """What leaving out each row does, exactly, for learners with all such fits in closed form.

    Parameters
    ----------
    leave_one_out : ``learner.leave_one_out``, called with X, y and rows=…: gives weights,
        intercepts, full_weights and full_intercept; or anything that gives ``full`` and
        ``values()``, the scores at the outer rows of the full fit and of each fit without a row
        (`surelearn.kernel.left_out`)
    loss : (scores, labels) to one number per row

    Examples
    --------
    >>> from surelearn.linear import Ridge
    >>> X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([1.0, 2.0, 3.0, 9.0])
    >>> model = Ridge(regularization=0.01, regularize_intercept=True).fit(X, y)
    >>> found = exact_influence(model.leave_one_out, X, y, X[:3], y[:3], loss=lambda s, t: (s - t) ** 2)
    >>> found.top(1).tolist(), bool(found.risk[3] < 0)
    ([3], True)
    """
    (X, y), (X_outer, y_outer) = (
        checked_rows(X, y),
        checked_rows(X_outer, y_outer, "X_outer and y_outer"),
    )
    which = _which(rows, len(X))
    fits = leave_one_out(X, y, rows=which)
    if hasattr(fits, "values"):
        asked = set(which.tolist())
        every = (values for i, values in enumerate(fits.values()) if i in asked)
        return _compared(fits.full, every, y_outer, loss, which, "exact")
    full = X_outer @ fits.full_weights + fits.full_intercept
    without = (
        X_outer @ weights + b for weights, b in zip(fits.weights, fits.intercepts, strict=True)
    )
    return _compared(full, without, y_outer, loss, which, "exact")


def refit_influence(
    fit: Callable[[Any, Any], Any],
    X: RowsLike,
    y: npt.ArrayLike,
    X_outer: RowsLike,
    y_outer: npt.ArrayLike,
    *,
    loss: Loss | None = None,
    rows: npt.ArrayLike | None = None,
    refits: int = 50,
    random_state: RandomState = 0,
) -> Influence:
    """What leaving out rows does, each by a refit: of ``rows``, or of as many drawn at random as
    the budget allows.

    Parameters
    ----------
    fit : rows and labels to a model, or to a function that predicts
    loss : (predictions, labels) to one number per row; 0 and 1 for right and wrong unless told
    refits : the most fits, that to all rows among them

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = np.arange(20.0)[:, None], np.repeat([0, 1], 10)
    >>> found = refit_influence(lambda X, y: DecisionTreeClassifier(random_state=0).fit(X, y), X, y, X, y, refits=11)
    >>> found.rows.size, found.method
    (10, 'refits')
    """
    n = np.shape(y)[0]
    if np.shape(cast("npt.ArrayLike", X))[0] != n or n < 2:
        raise ValueError("X and y must be equally many rows and labels, at least 2 of them")
    budget = checked_count("refits", refits, 2) - 1
    which = _which(rows, n)
    if rows is None and len(which) > budget:
        which = np.sort(check_random_state(random_state).permutation(which)[:budget])
    which = which[:budget]

    def predictions(left: np.ndarray) -> Array:
        return np.asarray(predict_with(fit(_take(X, left), _take(y, left)))(X_outer))

    everything = np.arange(n)
    without = (predictions(np.delete(everything, row)) for row in which)
    measure = loss or (lambda predicted, labels: predicted != labels)
    return _compared(
        predictions(everything), without, np.asarray(y_outer), measure, which, "refits"
    )


def _compared(
    full: Array,
    without: Iterable[Array],
    labels: np.ndarray,
    loss: Loss,
    rows: np.ndarray,
    method: Literal["exact", "refits"],
) -> Influence:
    """Risk and largest change of scores of every fit without a row against the full one."""
    full = np.asarray(full)
    full = full[:, 0] if full.ndim == 2 and full.shape[1] == 1 else full
    numeric, base = full.dtype.kind in "fiub", np.mean(loss(full, labels))
    risk, largest = [], []
    for scores in without:
        scores = np.reshape(scores, full.shape)
        risk.append(float(np.mean(loss(scores, labels)) - base))
        largest.append(
            float(np.abs(scores.astype(float) - full.astype(float)).max()) if numeric else np.nan
        )
    return Influence(rows, np.array(risk), np.array(largest), method)


def _take(rows: RowsLike, which: np.ndarray) -> Any:
    placed = getattr(rows, "iloc", None)
    return np.asarray(rows)[which] if placed is None else placed[which]


def _which(rows: npt.ArrayLike | None, n: int) -> np.ndarray:
    which = np.arange(n) if rows is None else np.asarray(rows)
    if (
        which.ndim != 1
        or not which.size
        or which.dtype.kind not in "iu"
        or which.min() < 0
        or which.max() >= n
    ):
        raise ValueError(f"rows must be numbers from 0 to {n - 1}, at least one of them")
    return np.unique(which)
