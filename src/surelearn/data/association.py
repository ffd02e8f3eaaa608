"""How strongly one column goes with the target, on one scale for numbers and categories.

Cramér's V of a table of counts is (χ²/n / min(r − 1, c − 1))^½. It is above 0 by chance alone, and
the more so the more values there are; W. Bergsma, "A bias-correction for Cramér's V and Tschuprow's
T", Journal of the Korean Statistical Society 42 (2013), equations (7) and (9), takes the expected
part off.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from surelearn.types import Array

MOST_LEVELS = 20  # values of a column; rarer ones count as one
PARTS = 10  # of a number, at its quantiles
Codes = npt.NDArray[np.intp]


def cramers_v(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Bias-corrected Cramér's V of two columns of whole numbers from 0 on, both of shape (n,).

    φ̃² = max(0, χ²/n − (r − 1)(c − 1)/(n − 1)), Ṽ = (φ̃² / min(r̃ − 1, c̃ − 1))^½ with
    r̃ = r − (r − 1)²/(n − 1), and c̃ likewise; 0 where a column has a single value.

    Examples
    --------
    >>> cramers_v([0, 1] * 50, [0, 1] * 50), cramers_v([0, 1] * 50, [0, 0, 1, 1] * 25)
    (1.0, 0.0)
    """
    a, b = (np.unique(np.asarray(one), return_inverse=True)[1].ravel() for one in (a, b))
    n, r, c = a.size, int(a.max(initial=0)) + 1, int(b.max(initial=0)) + 1
    if n < 2:
        return 0.0
    counts = np.bincount(a * c + b, minlength=r * c).reshape(r, c)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
    phi2 = float((np.square(counts - expected) / expected).sum()) / n
    phi2 = max(0.0, phi2 - (r - 1) * (c - 1) / (n - 1))
    least = min(r - 1 - (r - 1) ** 2 / (n - 1), c - 1 - (c - 1) ** 2 / (n - 1))
    return min(1.0, float(np.sqrt(phi2 / least))) if least > 0 else 0.0


def levels(values: pd.Series, parts: int = PARTS, *, cut: bool) -> Codes:
    """Each row's level: its part between quantiles where numbers are ``cut``, else its value, rare
    ones together; what is missing is a level of its own.

    Examples
    --------
    >>> levels(pd.Series([1.0, 2.0, 3.0, 4.0, np.nan]), 2, cut=True).tolist()
    [1, 1, 2, 2, 0]
    >>> levels(pd.Series(["a", "b", "a", None]), cut=False).tolist()
    [1, 2, 1, 0]
    """
    if not cut:
        codes, _ = pd.factorize(values, use_na_sentinel=True)
        order = np.argsort(-np.bincount(codes + 1)[1:], kind="stable")
        place = np.append(np.argsort(order, kind="stable"), -1)  # the last is for -1: missing
        return np.minimum(place[codes], MOST_LEVELS - 1) + 1
    x = as_numbers(values)
    known = np.isfinite(x)
    made = np.zeros(x.size, dtype=np.intp)
    if known.any():
        edges = np.quantile(x[known], np.arange(1, parts) / parts, method="inverted_cdf")
        made[known] = 1 + np.searchsorted(np.unique(edges), x[known], side="left")
    return made


def as_numbers(values: pd.Series) -> Array:
    """A column of numbers or dates as floats, dates in days since 1970; NaN is missing."""
    if values.dtype.kind == "M":
        days = values.to_numpy("datetime64[s]").astype(float) / 86_400
        return np.where(values.isna(), np.nan, days)
    return pd.to_numeric(values, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
