"""Tables as the numbers that a network reads: numbers with NaN where they are missing, then a code
per category.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from surelearn.types import AnyArray, Array

MOST_LEVELS = 1000  # per column; rarer ones share the code of what was not seen


@dataclass(frozen=True, eq=False)
class Encoding:
    """Which columns are numbers, and the levels of the others.

    Attributes
    ----------
    numbers, categories : positions of the columns
    levels : the words of each column of categories; word i has code i + 1, all else code 0
    """

    numbers: tuple[int, ...]
    categories: tuple[int, ...]
    levels: tuple[AnyArray, ...]

    @classmethod
    def of(cls, X: Any) -> Self:
        """Learn it from rows: in a DataFrame columns of words, or of pandas' categorical type, are
        categories; booleans are numbers.

        Examples
        --------
        >>> rows = pd.DataFrame({"size": [1.5, None], "color": ["red", None], "old": [True, False]})
        >>> Encoding.of(rows)(rows).tolist()
        [[1.5, 1.0, 1.0], [nan, 0.0, 0.0]]
        """
        if not isinstance(X, pd.DataFrame):
            return cls(tuple(range(np.shape(X)[1])), (), ())
        words = [j for j in range(X.shape[1]) if _is_words(X.iloc[:, j])]
        levels = []
        for j in words:
            counts = _texts(X.iloc[:, j]).value_counts()
            kept = sorted(counts.index[:MOST_LEVELS].tolist())
            levels.append(np.array(kept, dtype=object))
        numbers = tuple(j for j in range(X.shape[1]) if j not in set(words))
        return cls(numbers, tuple(words), tuple(levels))

    def __call__(self, X: Any) -> Array:
        """Numbers, then codes, (n, columns) in float64."""
        if not isinstance(X, pd.DataFrame):
            return np.asarray(X, dtype=np.float64)
        made = np.empty((len(X), len(self.numbers) + len(self.categories)))
        for i, j in enumerate(self.numbers):
            made[:, i] = _numbers(X.iloc[:, j])
        for i, (j, levels) in enumerate(
            zip(self.categories, self.levels, strict=True), start=len(self.numbers)
        ):
            # get_indexer gives −1 for what is not there
            made[:, i] = pd.Index(levels).get_indexer(pd.Index(_texts(X.iloc[:, j]))) + 1
        return made

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each column of categories."""
        return tuple(len(words) + 1 for words in self.levels)

    def saved(self) -> dict[str, Any]:
        """As plain data and arrays."""
        return {
            "numbers": list(self.numbers),
            "categories": list(self.categories),
            "levels": list(self.levels),
        }

    @classmethod
    def read(cls, saved: dict[str, Any]) -> Self:
        """What `saved` gave."""
        return cls(tuple(saved["numbers"]), tuple(saved["categories"]), tuple(saved["levels"]))


def as_table(X: Any) -> Any:
    """A polars DataFrame as one of pandas; all else as it is."""
    if hasattr(X, "to_pandas") and not isinstance(X, pd.DataFrame):
        return X.to_pandas()
    return X


def scaling(x: Array) -> tuple[Array, Array]:
    """Median, and one over the interquartile range, of every column (n, d) without what is
    missing; half the range where the quartiles are equal, and 0 for a constant (Holzmüller,
    Grinsztajn and Steinwart 2024, "robust scaling").

    Examples
    --------
    >>> [part.tolist() for part in scaling(np.array([[0.0, 7.0], [1.0, 7.0], [4.0, np.nan]]))]
    [[1.0, 7.0], [0.5, 0.0]]
    """
    center, scale = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for j, column in enumerate(x.T):
        seen = column[~np.isnan(column)]
        if seen.size:
            low, center[j], high = np.quantile(seen, [0.25, 0.5, 0.75])
            width = high - low if high > low else (seen.max() - seen.min()) / 2
            with np.errstate(over="ignore"):
                scale[j] = 1 / width if width > 0 else 0.0
    return center, np.where(np.isfinite(scale), scale, 0.0)


def quantile_bins(t: Array, most: int) -> tuple[Array, Array]:
    """The lower ends of at most so many bins of each scaled column (n, d), and one over their widths,
    (d, bins): knots at equidistant quantiles, those that coincide taken as one. Columns with fewer
    bins have 0 for the others.

    Examples
    --------
    >>> [part.tolist() for part in quantile_bins(np.array([[0.0, 7.0], [1.0, 7.0], [3.0, 7.0]]), 2)]
    [[[0.0, 1.0], [0.0, 0.0]], [[1.0, 0.5], [0.0, 0.0]]]
    """
    knots = []
    for column in t.T:
        seen = column[~np.isnan(column)]
        ends = np.quantile(seen, np.linspace(0, 1, most + 1)) if seen.size else np.zeros(1)
        apart = [float(ends[0])]
        for end in ends[1:]:
            # nearer ones are one in single precision
            if end - apart[-1] > 1e-5 * max(1.0, abs(end)):
                apart.append(float(end))
        knots.append(np.array(apart))
    bins = max((len(one) - 1 for one in knots), default=0)
    low, inverse = np.zeros((len(knots), bins)), np.zeros((len(knots), bins))
    for j, one in enumerate(knots):
        low[j, : len(one) - 1], inverse[j, : len(one) - 1] = one[:-1], 1 / np.diff(one)
    return low, inverse


def _is_words(column: pd.Series) -> bool:
    kind = column.dtype
    return not (pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind)) or (
        isinstance(kind, pd.CategoricalDtype)
    )


def _texts(column: pd.Series) -> pd.Series:
    """Words; None where they are missing."""
    texts = column.astype(object)
    return texts.where(column.notna(), None).map(lambda v: None if v is None else str(v))


def _numbers(column: pd.Series) -> Array:
    """Numbers with NaN where they are missing; a column of words here is a mistake of the caller."""
    try:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise ValueError(
            f"column {column.name!r} held numbers when the network was fitted, and holds other"
            " values now"
        ) from None
