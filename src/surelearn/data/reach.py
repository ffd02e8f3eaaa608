"""How far the numbers of a column reach among the rows that a model was fitted on, and which new rows
lie far outside: what is certified says nothing about them.

The reach of a column goes from its fifth smallest number to its fifth largest, so that no number of a
single row is kept with the model, and half of that width beyond both.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

FEWEST = 5  # rows that have a number as extreme as the one that is kept
BEYOND = 0.5  # of the width, on both sides


def reach(values: npt.ArrayLike) -> tuple[float, float] | None:
    """Beyond which two numbers a value is far outside these (NaN: missing); None where there are too
    few to say.

    Examples
    --------
    >>> reach(np.arange(101.0))  # 4 and 96 are the fifth from both ends
    (-42.0, 142.0)
    >>> reach([1.0, 2.0, 3.0]) is None
    True
    """
    numbers = np.asarray(values, dtype=float)
    numbers = numbers[np.isfinite(numbers)]
    if numbers.size < 2 * FEWEST:
        return None
    ends = np.partition(numbers, (FEWEST - 1, numbers.size - FEWEST))
    low, high = float(ends[FEWEST - 1]), float(ends[numbers.size - FEWEST])
    further = BEYOND * (high - low)
    made = low - further, high + further
    return made if np.isfinite(made).all() else None


def far_outside(
    X: pd.DataFrame,
    reaches: dict[str, tuple[float, float]],
    known: dict[str, frozenset[str]],
) -> tuple[npt.NDArray[np.object_], dict[str, int]]:
    """For each row the names of the columns in which it lies far outside, joined by "; ", and in how
    many rows each such column of numbers does.

    Parameters
    ----------
    X : rows as the model reads them
    reaches : of columns of numbers
    known : of columns of categories, the values that the model was fitted on; any other is outside

    Examples
    --------
    >>> X = pd.DataFrame({"age": [41.0, 455.0, None], "sex": ["F", "F", "f"]})
    >>> names, counts = far_outside(X, {"age": (-20.0, 130.0)}, {"sex": frozenset("FM")})
    >>> names.tolist(), counts
    (['', 'age', 'sex'], {'age': 1})
    """
    names = np.full(len(X), "", dtype=object)
    counts: dict[str, int] = {}
    for name in X.columns:
        if name in reaches:
            numbers, (low, high) = X[name].to_numpy(dtype=float), reaches[name]
            strange = np.flatnonzero((numbers < low) | (numbers > high))
            if strange.size:
                counts[name] = int(strange.size)
        elif name in known:
            codes, values = pd.factorize(X[name])
            new = np.array([str(value) not in known[name] for value in values], dtype=bool)
            strange = np.flatnonzero(np.append(new, False)[codes])  # −1 is missing
        else:
            continue
        for row in strange:
            names[row] = f"{names[row]}; {name}" if names[row] else str(name)
    return names, counts
