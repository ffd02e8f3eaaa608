"""Slices of a column, fixed on fit rows: ranges of a number, the values of a category. Data, so
that they can be stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from surelearn.measurement import Mask
from surelearn.types import Array, RowsLike

if TYPE_CHECKING:
    import pandas as pd

_MOST_VALUES = 6  # of a category that slices are chosen from


@dataclass(frozen=True)
class Cut:
    """The slices of one column.

    Attributes
    ----------
    column : its name, or its position in an array
    edges : cut points of a number, by how they are printed; None for a category
    names : the slices that the fit rows had (an empty one would waste δ), or the category's known
        values
    """

    column: Any
    edges: Mapping[str, float] | None
    names: tuple[str, ...]

    def __call__(self, X: RowsLike) -> dict[str, Mask]:
        """Masks by name."""
        values = _column(X, self.column)
        if self.edges is None:
            words = np.array([_category(value) for value in values.tolist()], dtype=object)
            return {
                f"{self.column} = {name}": np.asarray(words == name, dtype=bool)
                for name in self.names
            }
        masks = _ranges(values.astype(float), self.column, self.edges)
        return {name: masks[name] for name in self.names}


@dataclass(frozen=True)
class Cuts:
    """Slices of several columns, as one function of X; for `surelearn.certify`'s ``slices``."""

    cuts: tuple[Cut, ...]

    def __call__(self, X: RowsLike) -> dict[str, Mask]:
        """Masks by name."""
        return {name: mask for cut in self.cuts for name, mask in cut(X).items()}

    def parts(self, X: RowsLike) -> dict[str, dict[str, Mask]]:
        """Masks by column and name."""
        return {str(cut.column): cut(X) for cut in self.cuts}

    def options(self) -> list[dict[str, Any]]:
        """Plain data for the facts of a certificate."""
        return [
            {
                "column": cut.column,
                "edges": None if cut.edges is None else dict(cut.edges),
                "names": list(cut.names),
            }
            for cut in self.cuts
        ]

    @classmethod
    def from_options(cls, plain: Iterable[Mapping[str, Any]]) -> Cuts:
        """Read what `options` wrote."""
        return cls(tuple(Cut(cut["column"], cut["edges"], tuple(cut["names"])) for cut in plain))


def cut(X: RowsLike, *columns: Any, bins: int = 4, fewest: int = 1) -> Cuts:
    """Fix slices of columns on the *fit* rows: quantile ranges of a number, the values of a
    category.

    Missing values are a slice of their own if the fit rows have any; values that they never had
    belong to no slice.

    Parameters
    ----------
    X : fit rows
    *columns : names, or positions in an array
    bins : how many ranges for numbers
    fewest : a value of a category in fewer fit rows has no slice: its name would tell of single
        rows, its bound nothing

    Examples
    --------
    >>> import numpy as np
    >>> slices = cut(np.arange(100.0).reshape(-1, 1), 0, bins=2)
    >>> {name: int(mask.sum()) for name, mask in slices(np.array([[1.0], [70.0], [80.0]])).items()}
    {'0 ≤ 49.5': 1, '0 > 49.5': 2}
    """
    if bins < 2:
        raise ValueError(f"bins must be at least 2, not {bins}")
    return Cuts(tuple(_cut(X, column, bins, fewest) for column in columns))


def cut_at(X: RowsLike, column: str, edges: Sequence[float]) -> Cuts:
    """The ranges of a number between stated edges that some row has.

    Examples
    --------
    >>> import numpy as np
    >>> cut_at(np.array([[10.0], [70.0]]), 0, [30.0, 60.0]).cuts[0].names
    ('0 ≤ 30', '0 > 60')
    """
    named = {f"{edge:.12g}": float(f"{edge:.12g}") for edge in sorted(edges)}
    masks = _ranges(_column(X, column).astype(float), column, named)
    return Cuts((Cut(column, named, tuple(name for name, mask in masks.items() if mask.any())),))


def choose_slices(
    X: pd.DataFrame,
    losses: Array | None,
    kinds: dict[str, str],
    stated: Sequence[str] = (),
    *,
    fewest: int = 1,
) -> Cuts | None:
    """Slices of the stated columns, or of the one column along which out-of-fold losses differ
    most.

    Everything is decided on fit rows: which column, its cut points, and so how many slices share δ.
    Without losses, as a criterion that compares no rows leaves them, there are none but the stated
    ones.

    Parameters
    ----------
    X : fit rows, a table
    losses : (n,) of each fit row, by a fit without it; NaN where there is none
    kinds : "number" or "category" by the columns to choose from
    stated : columns that were asked for
    fewest : see `cut`
    """
    if stated:
        return cut(X, *stated, fewest=fewest)
    if losses is None:
        return None
    best, most = None, 0.0
    compared = ~np.isnan(losses)
    for column, kind in kinds.items():
        values = np.asarray(X[column])
        if kind != "number" and not (
            kind == "category" and 2 <= len(set(values.tolist())) <= _MOST_VALUES
        ):
            continue
        slices = cut(X, column, fewest=fewest)
        spread = _spread(losses, [mask & compared for mask in slices(X).values()])
        if spread > most:
            best, most = slices, spread
    return best


def _spread(losses: Array, masks: list[Any]) -> float:
    """Between-slice sum of squares of the losses, over slices with at least ten rows."""
    parts = [losses[mask] for mask in masks if mask.sum() >= 10]
    if len(parts) < 2:
        return 0.0
    overall = np.concatenate(parts).mean()
    return float(sum(part.size * (part.mean() - overall) ** 2 for part in parts) / (len(parts) - 1))


def _cut(X: RowsLike, column: str | int, bins: int, fewest: int) -> Cut:
    values = _column(X, column)
    if values.dtype.kind not in "biuf":
        counts = Counter(map(_category, values.tolist()))
        return Cut(column, None, tuple(name for name, count in counts.items() if count >= fewest))
    values = values.astype(float)
    edges = _round_edges(np.nanquantile(values, np.linspace(0, 1, bins + 1)[1:-1]))
    met = tuple(name for name, mask in _ranges(values, column, edges).items() if mask.any())
    return Cut(column, edges, met)


def _round_edges(edges: Array) -> dict[str, float]:
    """Cut points as they are printed: with as few digits as keep them apart, and used with
    those digits.
    """
    distinct = np.unique(edges).tolist()
    digits = next(
        d for d in range(4, 18) if len({f"{edge:.{d}g}" for edge in distinct}) == len(distinct)
    )
    return {f"{edge:.{digits}g}": float(f"{edge:.{digits}g}") for edge in distinct}


def _category(value: object) -> str:
    return "missing" if value is None or value != value else str(value)


def _ranges(values: Array, column: str | int, edges: Mapping[str, float]) -> dict[str, Mask]:
    named = list(edges.items())
    (first, lowest), (last, highest) = named[0], named[-1]
    masks = {f"{column} ≤ {first}": values <= lowest}
    for (low, above), (high, up_to) in pairwise(named):
        masks[f"{low} < {column} ≤ {high}"] = (values > above) & (values <= up_to)
    masks[f"{column} > {last}"] = values > highest
    masks[f"{column} missing"] = np.isnan(values)
    return masks


def _column(X: Any, column: Any) -> Any:
    try:
        return np.asarray(X[column]) if hasattr(X, "columns") else np.asarray(X)[:, column]
    except (KeyError, IndexError):
        raise ValueError(f"X has no column {column!r:.60} to cut slices of") from None
