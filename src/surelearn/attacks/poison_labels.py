"""Label flipping: poison that only changes labels, at random or where a fit's influence says
that it hurts most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from surelearn.attacks.poison_allowed import checked_count, checked_rows, same_kind
from surelearn.attacks.poison_objectives import VictimObjective, check_labels
from surelearn.types import RandomState, RowsLike


@dataclass(frozen=True, eq=False)
class LabelFlips:
    """Which rows were relabeled, all labels after it, and the risk on outer rows before and
    after (None if not asked).
    """

    rows: np.ndarray
    y: np.ndarray
    fraction: float
    before: float | None = None
    after: float | None = None

    @property
    def damage(self) -> float | None:
        """How much the risk rose."""
        return None if self.after is None or self.before is None else self.after - self.before


def flip_labels(
    y: npt.ArrayLike,
    count: int,
    *,
    labels: tuple[Any, ...] | None = None,
    random_state: RandomState = 0,
) -> LabelFlips:
    """Give ``count`` rows, drawn at random, another of the allowed labels (those of y unless told).

    Examples
    --------
    >>> flip_labels([0, 0, 0, 1, 1, 1], 2, random_state=1).y
    array([0, 1, 1, 1, 1, 1])
    """
    y = np.asarray(y)
    options = _options(y, labels)
    movable = np.array([(options != label).any() for label in y])
    count = _checked_flips(count, int(movable.sum()))
    random = check_random_state(random_state)
    rows = np.sort(random.choice(np.flatnonzero(movable), count, replace=False))
    flipped = y.astype(options.dtype)
    flipped[rows] = [random.choice(options[options != label]) for label in y[rows]]
    return LabelFlips(rows, flipped, count / len(y))


def flip_influential(
    objective: VictimObjective,
    X: RowsLike,
    y: npt.ArrayLike,
    X_outer: RowsLike,
    y_outer: npt.ArrayLike,
    *,
    count: int,
    labels: tuple[Any, ...] | None = None,
    rounds: int = 5,
) -> LabelFlips:
    """Relabel the rows whose relabelling raises the risk on outer rows most, to first order,
    refitting between rounds.

    Relabelling row i changes the minimizer by −H⁻¹(g(x_i, y′) − g(x_i, y_i))/n, and the outer risk
    by its product with ∇L.

    Examples
    --------
    >>> from surelearn.attacks.poison_objectives import LinearObjective
    >>> X, y = np.linspace(-2, 2, 40)[:, None], np.repeat([0, 1], 20)
    >>> flip_influential(LinearObjective(regularization=0.01), X, y, X, y, count=4).damage > 0
    True
    """
    (X, y), (X_outer, y_outer) = (
        checked_rows(X, y),
        checked_rows(X_outer, y_outer, "X_outer and y_outer"),
    )
    check_labels(objective, y)
    check_labels(objective, y_outer, "y_outer")
    options, n = _options(y, labels), len(y)
    check_labels(objective, options, "labels")
    count, rounds = _checked_flips(count, n), min(checked_count("rounds", rounds), int(count))
    flipped, free = y.copy(), np.ones(n, dtype=bool)
    w = objective.fit(X, y)
    before = objective.risk(w, X_outer, y_outer)
    for share in np.diff(np.linspace(0, count, rounds + 1).astype(int)):
        # a flip adds the difference of the row's gradients along u to the risk, to first order
        u = objective.solve(w, X, flipped, objective.gradient(w, X_outer, y_outer))
        now = objective.gradients(w, X, flipped) @ u
        relabeled = (
            objective.gradients(w, X, np.full(n, label, dtype=y.dtype)) @ u for label in options
        )
        rise = np.column_stack([now - then for then in relabeled]) / n
        rise[flipped[:, None] == options] = -np.inf
        rise[~free] = -np.inf
        chosen = np.argsort(-rise.max(1), kind="stable")[:share]
        chosen = chosen[np.isfinite(rise.max(1)[chosen])]
        flipped[chosen], free[chosen] = options[rise[chosen].argmax(1)], False
        w = objective.fit(X, flipped, start=w)
    rows = np.flatnonzero(~free)
    return LabelFlips(rows, flipped, len(rows) / n, before, objective.risk(w, X_outer, y_outer))


def _options(y: np.ndarray, labels: tuple[Any, ...] | None) -> np.ndarray:
    options = np.unique(y) if labels is None else same_kind(labels, y)
    if options.size < 2 and np.isin(y, options).all():
        raise ValueError(
            "labels must name another label than the rows have: there is nothing to flip to"
        )
    return options


def _checked_flips(count: int, most: int) -> int:
    count = checked_count("count", count)
    if count > most:
        raise ValueError(
            f"count must be at most {most}, the rows that can be given another label, not {count}"
        )
    return count


def change_labels(y: npt.ArrayLike, count: int, task: str, *, random_state: int = 0) -> np.ndarray:
    """``count`` random labels replaced by another class, or by the farther end of the targets'
    range.

    Examples
    --------
    >>> change_labels(np.array([0.0, 1.0, 2.0, 9.0]), 4, "regression").tolist()
    [9.0, 9.0, 9.0, 0.0]
    """
    if task == "classification":
        return flip_labels(y, count, random_state=random_state).y
    rows = np.random.default_rng(random_state).permutation(np.shape(y)[0])[:count]
    moved, ends = np.array(y, dtype=float), np.array([np.min(np.asarray(y)), np.max(np.asarray(y))])
    moved[rows] = ends[np.abs(ends - moved[rows, None]).argmax(axis=1)]
    return moved
