"""Where a changed row may lie: the range of every column, the unit in which it is measured,
what is fixed or substituted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from surelearn.types import Array

Norm = Literal["linf", "l2"]


@dataclass(frozen=True, eq=False)
class Domain:
    """Ranges, units and choices of the columns of rows (n, d); made by `domain`.

    Attributes
    ----------
    low, high : the range of every column
    scale : the unit in which a column's change is measured; 0 for a column that does not move
    choices : columns that are substituted, not moved, with the values allowed in them
    cost : what a substitution counts: as much as a move by so many units; 0 for columns that are
        not substituted
    names : of the columns, for people
    """

    low: Array
    high: Array
    scale: Array
    choices: Mapping[int, tuple[float, ...]]
    cost: Array
    names: tuple[str, ...]
    saved_as = "domain/1"

    def check(self, X: Array) -> None:
        """Refuse rows that do not lie within, naming the first value that does not."""
        outside = (self.low > X) | (self.high < X) | ~np.isfinite(X)
        if outside.any():
            i, j = np.argwhere(outside)[0]
            raise ValueError(
                f"row {i} has {X[i, j]:g} in {self.names[j]}, outside its range [{self.low[j]:g},"
                f" {self.high[j]:g}]: state low= and high= that hold for the rows given"
            )

    def check_substitutions(self, most: int, radius: npt.ArrayLike) -> int:
        """How many columns may be substituted; refused where none can be, or where the radius
        allows none.
        """
        if isinstance(most, bool) or most != int(most) or most < 0:
            raise ValueError(f"substitutions must be a whole number of at least 0, not {most!r}")
        if most and not self.choices:
            raise ValueError(
                "substitutions need a domain with choices= that says which columns may be"
                " substituted, by what"
            )
        if most and np.max(radius, initial=0.0) < (
            least := min(self.cost[j] for j in self.choices)
        ):
            raise ValueError(
                f"a substitution costs at least {least:g}, more than the radius: lower the domain's"
                " cost="
            )
        return int(most)

    def ball(self, X: Array, radius: npt.ArrayLike) -> tuple[Array, Array]:
        """The box of the L∞ ball around every row within the range: ``|z − x| ≤ radius·scale``
        holds to the last digit.
        """
        reach = np.reshape(np.asarray(radius, dtype=float), (-1, 1)) * self.scale
        low, high = X - reach, X + reach
        with np.errstate(invalid="ignore"):
            low = np.where(X - low > reach, np.nextafter(low, np.inf), low)
            high = np.where(high - X > reach, np.nextafter(high, -np.inf), high)
        return np.maximum(low, self.low), np.minimum(high, self.high)

    def within(self, Z: Array, X: Array, radius: npt.ArrayLike, norm: Norm) -> Array:
        """Z moved into the ball around X and into the range, exactly as `distance` measures it."""
        radius = np.broadcast_to(np.asarray(radius, dtype=float), len(X))
        low, high = self.ball(X, radius)
        Z = np.clip(Z, low, high)
        shrink = 1e-15
        while (far := self.moved(Z, X, norm) > radius).any():
            factor = radius[far] / self.moved(Z[far], X[far], norm) * (1.0 - shrink)
            Z[far] = np.clip(X[far] + (Z[far] - X[far]) * factor[:, None], low[far], high[far])
            shrink *= 4.0
        return Z

    def distance(self, Z: Array, X: Array, norm: Norm) -> Array:
        """How far every row is from where it was: moves in units of ``scale``, a substitution
        as a move by its cost.
        """
        return _together(self.moved(Z, X, norm), self.spent(Z, X, norm), norm)

    def moved(self, Z: Array, X: Array, norm: Norm) -> Array:
        """The part of the distance that comes from columns that move."""
        moves = self.scale > 0
        return _length(np.abs(Z[:, moves] - X[:, moves]) / self.scale[moves], norm)

    def spent(self, Z: Array, X: Array, norm: Norm) -> Array:
        """The part of the distance that comes from substitutions."""
        columns = list(self.choices)
        return _length((Z[:, columns] != X[:, columns]) * self.cost[columns], norm)

    def room(self, spent: Array, radius: npt.ArrayLike, norm: Norm) -> Array:
        """How far a row may still move when its substitutions have spent so much of the radius;
        −1 if more than all.
        """
        radius = np.broadcast_to(np.asarray(radius, dtype=float), spent.shape)
        left = radius.copy()
        if norm == "l2":
            with np.errstate(invalid="ignore"):
                left = np.where(
                    spent > 0, np.sqrt(np.maximum(radius - spent, 0.0) * (radius + spent)), radius
                )
        shrink = 1e-15
        while (
            far := (left > 0) & (spent <= radius) & (_together(left, spent, norm) > radius)
        ).any():
            left[far] *= 1.0 - shrink
            shrink *= 4.0
        return np.where(spent <= radius, left, -1.0)

    def substituted(self, Z: Array, X: Array) -> npt.NDArray[np.intp]:
        """In how many columns of choices every row differs."""
        columns = list(self.choices)
        return (Z[:, columns] != X[:, columns]).sum(axis=1)


def _length(steps: Array, norm: Norm) -> Array:
    if norm == "linf":
        return steps.max(axis=1, initial=0.0)
    return np.sqrt(np.einsum("ij,ij->i", steps, steps))


def _together(moved: Array, spent: Array, norm: Norm) -> Array:
    return np.maximum(moved, spent) if norm == "linf" else np.hypot(moved, spent)


def domain(
    columns: int | Iterable[str],
    *,
    low: npt.ArrayLike = -np.inf,
    high: npt.ArrayLike = np.inf,
    scale: npt.ArrayLike = 1.0,
    fixed: Iterable[int | str] = (),
    choices: Mapping[Any, Iterable[float]] | None = None,
    cost: npt.ArrayLike = 1.0,
) -> Domain:
    """Where changed rows may lie.

    Parameters
    ----------
    columns : how many, or their names
    low, high, scale : a number, or one per column; ``scale`` is the unit of a column's change (its
        standard deviation, say)
    fixed : columns, by name or number, that do not change, also where ``choices`` names them
    choices : {column: values allowed}, for columns that are substituted, not moved; how many of
        them, the attack is told
    cost : of one substitution, a number, or one per column: it counts as much as a move by so many
        units, and is within a radius where that move would be; 0 leaves only their number limited

    Examples
    --------
    >>> where = domain(["age", "job"], low=0.0, high=[99.0, 3.0], scale=[10.0, 1.0], choices={"job": (0, 1, 2, 3)})
    >>> where.scale, dict(where.choices)
    (array([10.,  0.]), {1: (0.0, 1.0, 2.0, 3.0)})
    """
    names = tuple(f"x{j}" for j in range(columns)) if isinstance(columns, int) else tuple(columns)

    def numbers(name: str, value: npt.ArrayLike) -> Array:
        array = np.asarray(value, dtype=float)
        if (
            array.ndim > 1
            or (array.ndim == 1 and len(array) != len(names))
            or np.isnan(array).any()
        ):
            raise ValueError(f"{name} must be a number, or one for each of {len(names)} columns")
        return np.broadcast_to(array, len(names)).copy()

    def number_of(column: Any) -> int:
        if column in names:
            return names.index(column)
        if isinstance(column, (int, np.integer)) and 0 <= column < len(names):
            return int(column)
        raise ValueError(
            f"no column is called {column!r}: name one of {', '.join(map(str, names[:5]))}, …"
        )

    bottom, top, units = numbers("low", low), numbers("high", high), numbers("scale", scale)
    if (bottom > top).any():
        raise ValueError(f"low must not be above high, as in {names[int((bottom > top).argmax())]}")
    if (units < 0).any() or np.isinf(units).any():
        raise ValueError("scale must not be negative or infinite: 0 fixes a column")
    price = numbers("cost", cost)
    if (price < 0).any() or np.isinf(price).any():
        raise ValueError(
            "cost must not be negative or infinite: fixed= names columns that do not change"
        )
    allowed = {
        number_of(column): tuple(map(float, values)) for column, values in (choices or {}).items()
    }
    for column, values in allowed.items():
        if not all(bottom[column] <= value <= top[column] for value in values):
            raise ValueError(
                f"choices of {names[column]} must lie within its range [{bottom[column]:g},"
                f" {top[column]:g}]"
            )
    still = set(map(number_of, fixed))
    allowed = {column: values for column, values in allowed.items() if column not in still}
    units[[*still, *allowed]] = 0.0
    price[[j for j in range(len(names)) if j not in allowed]] = 0.0
    return Domain(bottom, top, units, allowed, price, names)
