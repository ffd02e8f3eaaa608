"""What small changes of a table's rows do to a model's answers, in the user's columns and units;
found, never proved.

The smallest change of numbers that turns an answer, another category in one column, how far a
regressor's predictions move. What cannot be attacked is `Lacking`, with the reason.
`surelearn.robust.tables.table_radii` proves the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surelearn.attacks import Evasion, decision_attack, smallest_change
from surelearn.attacks.domains import Norm
from surelearn.lacking import Lacking
from surelearn.robust.tables import (
    RETURNED_NAN,
    Moves,
    View,
    numbers_of,
    predicting,
    view_of,
    with_numbers,
)
from surelearn.subject.forms import Array
from surelearn.subject.predicting import missing
from surelearn.subject.refitting import take
from surelearn.types import AnyArray, Labels, Model, TableRows

if TYPE_CHECKING:
    import pandas

LARGEST = 2.0  # standard deviations beyond which no change is looked for
SHOWN = 3  # rows whose change is written out
STEPS, ROUNDS = 20, 8
_STRETCH = 3.0  # how much larger a change may be if it needs fewer columns
_RADII, _DRAWS = (2.0, 1.0, 0.5, 0.25, 0.1), 16  # of random changes

Columns = tuple[tuple[str, float, float], ...]  # name, old and new number


@dataclass(frozen=True, eq=False)
class RowChange:
    """A change that turns a row, as a person reads it.

    Attributes
    ----------
    row : its position
    distance : the largest change of any number that the attack needed, in standard deviations
    before, after : what the model answers
    columns : those that change, with the old and the new number; few, so that each may change by
        more than ``distance``
    """

    row: int
    distance: float
    before: Any
    after: Any
    columns: Columns


@dataclass(frozen=True, eq=False)
class TableAttack:
    """The smallest changes found.

    Attributes
    ----------
    distance : (n,) in standard deviations; 0 where the answer is wrong as it is, ∞ where no change
        was found
    method : how it was found
    gradients : why none were used; None where they were
    changes : of the rows that turn first, for each pattern of missing numbers
    said : (n,) what the model answers
    """

    distance: Array
    method: str
    gradients: Lacking | None
    changes: tuple[RowChange, ...]
    said: np.ndarray


@dataclass(frozen=True, eq=False)
class Substitutions:
    """Which rows are right, and by column which of those another category turns; (n,) each."""

    right: np.ndarray
    turned: Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class MovedPredictions:
    """Predictions (n,), and how far they were moved within each radius; (radii, n)."""

    before: Array
    largest: Array


def attack_table(
    model: Model,
    X: TableRows,
    y: AnyArray,
    moves: Moves,
    *,
    pool: TableRows,
    classes: Labels = None,
    budget: int = 200,
    random_state: int = 0,
) -> TableAttack | Lacking:
    """The smallest change found for every row: by gradients, or else by predictions, moving towards
    rows of ``pool``.

    Parameters
    ----------
    model : fitted, with its preparation; a function or a torch module, too
    X, y : rows and their labels
    moves : the columns that move, see `surelearn.robust.tables.moves_of`
    pool : rows that are known, to move towards
    classes : the labels of a torch module's outputs
    budget : predictions per row where there is no gradient

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from surelearn.robust.tables import moves_of
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = X[:, 0] > 0
    >>> found = attack_table(LogisticRegression().fit(X, y), X, y, moves_of({}, X, X), pool=X)
    >>> bool((found.distance[y == found.said] > 0).all()), found.gradients
    (True, None)
    """
    said = _checked(predicting(model, classes)(X), len(X))
    if isinstance(said, Lacking):
        return said
    if missing(said).any():
        return Lacking("attack", "the model predicts NaN")
    right = said == y
    distance, method, gradients, changes = np.where(right, np.inf, 0.0), "", None, []
    for present, rows in _patterns(numbers_of(X, moves.positions)):
        kept = moves.only(present)
        if not kept.names:
            continue
        # the others are wrong as they are
        rows = rows[right[rows]] if right[rows].any() else rows[:1]
        useful = np.isfinite(numbers_of(pool, kept.positions)).all(axis=1)
        view = view_of(
            model, _joined(take(X, rows), take(pool, np.flatnonzero(useful))), kept, classes
        )
        view, others = replace(view, rows=view.rows[: len(rows)]), view.rows[len(rows) :]
        found = _smallest(view, said[rows], others, budget, random_state)
        turned = view.truth(found.rows) != said[rows]
        distance[rows] = np.where(right[rows], np.where(turned, found.distance, np.inf), 0.0)
        method, gradients = (
            found.method,
            view.f.pullback if isinstance(view.f.pullback, Lacking) else None,
        )
        turned = np.flatnonzero(np.isfinite(distance[rows]) & (distance[rows] > 0))
        nearest = turned[np.argsort(distance[rows][turned], kind="stable")[: 3 * SHOWN]]
        few = _few_columns(view, found, said[rows], nearest, kept, random_state)
        if view.truth.lacking is not None:
            return Lacking("attack", view.truth.lacking.reason)
        for i, (after, columns) in zip(nearest, few, strict=True):
            changes.append(
                RowChange(int(rows[i]), float(distance[rows[i]]), said[rows[i]], after, columns)
            )
    return TableAttack(distance, method, gradients, tuple(changes), said)


def substitute_categories(
    model: Model, X: pandas.DataFrame, y: AnyArray, choices: Mapping[str, Sequence[Any]]
) -> Substitutions | Lacking:
    """Rows turned by another category in one column, the others as they are.

    Parameters
    ----------
    X, y : a data frame, and labels
    choices : the categories to try, by column
    """
    import pandas as pd

    predict, n = predicting(model), len(X)
    before = _checked(predict(X), n)
    if isinstance(before, Lacking):
        return before
    right = before == y
    turned = {}
    for name, values in choices.items():
        frame = X.iloc[np.tile(np.arange(n), len(values))].reset_index(drop=True)
        frame[name] = pd.Series(np.repeat(np.array(values, dtype=object), n)).astype(X[name].dtype)
        said = _checked(predict(frame), len(frame))
        if isinstance(said, Lacking):
            return said
        if missing(said).any():
            return Lacking("attack", RETURNED_NAN)
        turned[name] = right & (said.reshape(len(values), n) != y).any(axis=0)
    return Substitutions(right, turned)


def move_predictions(
    model: Model, X: TableRows, moves: Moves, radii: Sequence[float], classes: Labels = None
) -> MovedPredictions | Lacking:
    """How far a regressor's predictions move at most, as found column by column, within every
    radius.

    Parameters
    ----------
    moves : the columns that move, see `surelearn.robust.tables.moves_of`
    radii : the largest change of any number, in standard deviations
    """
    predict, numbers = predicting(model, classes), numbers_of(X, moves.positions)
    said = _checked(predict(X), len(X))
    if isinstance(said, Lacking):
        return said
    before = said.astype(float)
    if not np.isfinite(before).all():
        return Lacking("attack", "the model predicts numbers that are not finite")
    largest = np.zeros((len(radii), len(X)))
    for i, radius in enumerate(radii):
        for sign in (1.0, -1.0) if radius else ():
            reached = _climb(predict, X, moves, numbers, radius, sign)
            largest[i] = np.maximum(largest[i], np.abs(reached - before))
    if not np.isfinite(largest).all():
        return Lacking("attack", "the model's predictions for changed rows are not finite")
    return MovedPredictions(before, np.maximum.accumulate(largest, axis=0))


def _joined(X: TableRows, more: TableRows) -> Any:
    """Rows of two tables or arrays, one after the other."""
    if not hasattr(X, "iloc"):
        return np.concatenate([np.asarray(X), np.asarray(more)])
    import pandas as pd

    return pd.concat([X, more], ignore_index=True)


def _checked(said: np.ndarray, n: int) -> np.ndarray | Lacking:
    """The predictions, if there is one per row."""
    if said.shape != (n,):
        why = f"the model gave predictions of shape {said.shape} for {n} rows"
        return Lacking("attack", why)
    return said


def _patterns(numbers: Array) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Which numbers are present, and the rows in which they are."""
    kinds, which = np.unique(np.isfinite(numbers), axis=0, return_inverse=True)
    for i, present in enumerate(kinds):
        yield present, np.flatnonzero(which.ravel() == i)


def _smallest(
    view: View, y: AnyArray, others: Array, budget: int, seed: int, norm: Norm = "linf"
) -> Evasion:
    if isinstance(view.f.pullback, Lacking):
        options = {"others": others, "budget": budget, "radius": LARGEST, "random_state": seed}
        found = decision_attack(view.f, view.rows, y, norm=norm, where=view.where, **options)
        return _at_random(view, y, found, seed)
    largest = LARGEST if norm == "linf" else LARGEST * float(np.sqrt((view.where.scale > 0).sum()))
    options = {"largest": largest, "steps": STEPS, "rounds": ROUNDS, "random_state": seed}
    return smallest_change(view.f, view.rows, y, norm=norm, where=view.where, **options)


def _at_random(view: View, y: AnyArray, found: Evasion, seed: int) -> Evasion:
    """Rows not turned by moving towards others, which columns that stay may forbid: the nearest
    random change, shortened.
    """
    left = np.flatnonzero(~np.isfinite(found.distance))
    if not left.size:
        return found
    random, where, some = np.random.default_rng(seed), view.where, np.repeat(left, _DRAWS)
    X, best, near = view.rows, found.rows.copy(), found.distance.copy()
    for radius in _RADII:
        # every second one as far as it may
        step = np.clip(random.uniform(-2.0, 2.0, (len(some), X.shape[1])), -1.0, 1.0)
        tried = np.clip(X[some] + step * radius * where.scale, where.low, where.high)
        turned = (view.f.predict(tried) != y[some]).reshape(-1, _DRAWS)
        reached = np.where(
            turned, where.distance(tried, X[some], found.norm).reshape(-1, _DRAWS), np.inf
        )
        nearest = tried.reshape(len(left), _DRAWS, -1)[np.arange(len(left)), reached.argmin(axis=1)]
        better = reached.min(axis=1) < near[left]
        best[left[better]], near[left[better]] = nearest[better], reached.min(axis=1)[better]
    left = left[np.isfinite(near[left])]
    best[left] = _shortened(view, y[left], X[left], best[left])
    near[left] = where.distance(best[left], X[left], found.norm)
    return replace(found, rows=best, distance=near, success=np.isfinite(near))


def _shortened(view: View, labels: Labels, X: Array, Z: Array) -> Array:
    """Turned rows, moved back along the line to where they came from."""
    low, high = np.zeros(len(Z)), np.ones(len(Z))
    for _ in range(8 if len(Z) else 0):
        middle = (low + high) / 2
        turned = view.f.predict(X + middle[:, None] * (Z - X)) != labels
        low, high = np.where(turned, low, middle), np.where(turned, middle, high)
    return X + high[:, None] * (Z - X)


def _few_columns(
    view: View, found: Evasion, y: AnyArray, which: np.ndarray, moves: Moves, seed: int
) -> list[tuple[Any, Columns]]:
    """Changes of rows that a person can read: few columns, no larger than needed, whole numbers
    where they are.
    """
    if not which.size:
        return []
    some, labels, count = replace(view, rows=view.rows[which]), y[which], len(moves.names)
    X, Z = some.rows, found.rows[which].copy()
    if not isinstance(view.f.pullback, Lacking):  # L2 moves the columns that matter, L∞ all of them
        short = _smallest(some, labels, X, 0, seed, "l2")
        Z = np.where(short.success[:, None], short.rows, Z)
        Z = _kept(some, labels, np.clip(X + _STRETCH * (Z - X), view.where.low, view.where.high), Z)
    order = np.argsort(np.abs(Z - X)[:, :count] / moves.scale, axis=1, kind="stable")
    for columns in order.T:
        tried = Z.copy()
        at = (np.arange(len(Z)), columns)
        tried[at] = X[at]
        if (tried != Z).any():
            Z = _kept(some, labels, tried, Z)
    # shorter, then at whole numbers away from the row; each only where the answer stays wrong
    Z = _kept(some, labels, _shortened(some, labels, X, Z), Z)
    outward = np.where(Z > X, np.ceil(Z), np.floor(Z))[:, :count]
    rounded = Z.copy()
    rounded[:, :count] = np.where(moves.whole & (Z != X)[:, :count], outward, Z[:, :count])
    Z = _kept(some, labels, np.clip(rounded, view.where.low, view.where.high), Z)
    after = some.truth(Z)
    return [(after[i], _written(X[i], Z[i], moves)) for i in range(len(Z))]


def _kept(view: View, labels: Labels, tried: Array, otherwise: Array) -> Array:
    """Rows as tried where they are still turned."""
    return np.where((view.f.predict(tried) != labels)[:, None], tried, otherwise)


def _written(x: Array, z: Array, moves: Moves) -> Columns:
    moved = [j for j in range(len(moves.names)) if x[j] != z[j]]
    moved.sort(key=lambda j: -abs(z[j] - x[j]) / moves.scale[j])
    return tuple((moves.names[j], float(x[j]), float(z[j])) for j in moved)


def _climb(
    predict: Callable[[Any], AnyArray],
    X: TableRows,
    moves: Moves,
    numbers: Array,
    radius: float,
    sign: float,
) -> Array:
    """The largest sign·prediction found: every column alone to both ends, then all that helped
    together; twice.
    """
    low = np.maximum(numbers - radius * moves.scale, moves.low)
    high = np.minimum(numbers + radius * moves.scale, moves.high)
    n, count = numbers.shape
    z, best = numbers, sign * predict(X)
    for _ in range(2):
        tried = np.repeat(z[None], 2 * count, axis=0)
        for j in range(count):
            tried[2 * j, :, j], tried[2 * j + 1, :, j] = low[:, j], high[:, j]
        values = sign * _asked(predict, X, moves, tried.reshape(-1, count)).reshape(2 * count, n)
        pairs = values.reshape(count, 2, n)
        ends = np.where(pairs[:, 1].T > pairs[:, 0].T, high, low)
        together = np.where(best[:, None] < pairs.max(axis=1).T, ends, z)
        alone = tried[values.argmax(axis=0), np.arange(n)]
        for option in (alone, together):
            value = sign * _asked(predict, X, moves, option)
            z = np.where((value > best)[:, None], option, z)
            best = np.maximum(value, best)
    return sign * best


def _asked(predict: Callable[[Any], AnyArray], X: TableRows, moves: Moves, numbers: Array) -> Array:
    """Predictions with the numbers put in, the rows repeated as often as there are numbers for."""
    at = np.tile(np.arange(len(X)), len(numbers) // len(X))
    return np.asarray(predict(with_numbers(X, at, moves, numbers)), dtype=float)
