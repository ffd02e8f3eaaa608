"""What poison is allowed: Γ, the range of every feature and the labels; and the rows that the
attacks take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.types import Array, RowsLike


@dataclass(frozen=True, eq=False)
class Allowed:
    """Γ: features between ``low`` and ``high``, labels among ``labels``; unbounded unless told.

    Attributes
    ----------
    low, high : a number, or one per column
    labels : labels (or targets) that poison may have; None for those that the clean rows have

    Examples
    --------
    >>> Allowed(low=0.0, high=1.0, labels=(1,)).project(np.array([[-2.0, 0.5]]))
    array([[0. , 0.5]])
    """

    low: npt.ArrayLike = -np.inf
    high: npt.ArrayLike = np.inf
    labels: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        low, high = np.asarray(self.low, dtype=float), np.asarray(self.high, dtype=float)
        if np.isnan(low).any() or np.isnan(high).any() or low.ndim > 1 or high.ndim > 1:
            raise ValueError("low and high must be numbers, or one number for each column")
        if (low > high).any():
            raise ValueError("low must not be above high: no row would be allowed")
        if self.labels is not None and not len(self.labels):
            raise ValueError(
                "labels must name at least one label that poison may have, or be None for those"
                " of y"
            )

    @property
    def unbounded(self) -> bool:
        """Whether every row is allowed."""
        return bool(
            np.isneginf(np.asarray(self.low)).all() and np.isposinf(np.asarray(self.high)).all()
        )

    def ranges(self, d: int) -> tuple[Array, Array]:
        """The range of each of d columns."""
        for name, value in (("low", self.low), ("high", self.high)):
            if np.size(value) not in (1, d):
                raise ValueError(
                    f"{name} must be a number, or one for each of the {d} columns, not"
                    f" {np.size(value)}"
                )
        low, high = (
            np.broadcast_to(np.asarray(value, dtype=float), d).copy()
            for value in (self.low, self.high)
        )
        return low, high

    def project(self, X: Array) -> Array:
        """The allowed rows nearest to X."""
        return np.clip(X, *self.ranges(X.shape[1]))

    def labels_for(self, y: np.ndarray) -> np.ndarray:
        """The labels that poison may have beside rows labeled y."""
        return np.unique(y) if self.labels is None else same_kind(self.labels, y)

    def holds(self, X: Array, y: np.ndarray, clean: np.ndarray) -> bool:
        """Whether all rows and labels are allowed, beside clean labels."""
        low, high = self.ranges(X.shape[1])
        return bool(((low <= X) & (high >= X)).all() and np.isin(y, self.labels_for(clean)).all())


def same_kind(labels: npt.ArrayLike, y: np.ndarray) -> np.ndarray:
    """Labels as an array that can stand beside y without changing any of them."""
    given, kind = np.asarray(labels), np.asarray(y).dtype
    try:
        made = given.astype(np.result_type(given, kind) if kind.kind in "US" else kind)
    except ValueError:
        made = np.array([])
    if made.shape != given.shape or not (made == given).all():
        raise ValueError(f"labels must be of the kind that y has ({kind}), not {given.tolist()}")
    return made


def checked_rows(X: RowsLike, y: npt.ArrayLike, names: str = "X and y") -> tuple[Array, np.ndarray]:
    """Rows (n, d) and labels (n,) as arrays, or one sentence that says what is wrong."""
    rows, labels = np.asarray(X, dtype=float), np.asarray(y)
    if rows.ndim != 2 or labels.shape != (len(rows),) or not len(rows):
        raise ValueError(
            f"{names} must be rows (n, d) and n labels, n at least 1, not {rows.shape} and"
            f" {labels.shape}"
        )
    if not np.isfinite(rows).all():
        raise ValueError(f"{names} must be finite: fill in missing values first")
    return rows, labels


def checked_count(name: str, value: float, least: int = 1) -> int:
    """A whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return int(value)
