"""How far each column spreads: the unit of parameters that are about columns, where nobody stated
them in the columns' own.

A penalty or a kernel's width that suits columns of size 1 suits none of a table as it comes.
Learners take such a parameter, where it is left out, in units of the columns' spread on the rows.
That looks at the rows: their records say so, and claims that need everything fixed beforehand are
not made.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from surelearn.subject import Around
from surelearn.types import AnyArray, Array

# a column's range counts as so many spreads at most: rare values (an indicator, a pixel) are not
# blown up
TAIL = 10.0


def column_spreads(
    X: AnyArray | sparse.spmatrix | sparse.sparray, weights: Array | None = None
) -> Array:
    """s_j = max(σ_j, (max_j − min_j)/10) of the columns of rows (n, d), dense or sparse; 1 for a
    constant column.

    σ_j is the standard deviation, of rows with ``weights`` (n,) the weighted one; rows of weight 0
    do not count.

    Examples
    --------
    >>> column_spreads(np.array([[0.0, 5.0], [2.0, 5.0]])).tolist()
    [1.0, 1.0]
    >>> column_spreads(np.array([[0.0]] * 400 + [[1.0]])).round(4).tolist()  # σ is 0.05
    [0.1]
    """
    if weights is not None and not (weights > 0).all():
        X, weights = X[weights > 0], weights[weights > 0]
    if sparse.issparse(X):
        return _sparse_spreads(X, weights)
    low, high = X.min(axis=0).astype(float), X.max(axis=0).astype(float)
    largest = np.maximum(np.abs(low), np.abs(high))
    unit = np.where(largest > 0, largest, 1.0)  # squares of the largest numbers overflow
    centered = X / unit - np.average(X / unit, axis=0, weights=weights)
    deviation = np.sqrt(np.average(centered**2, axis=0, weights=weights)) * unit
    return _spreads(deviation, low, high)


def _sparse_spreads(X: sparse.spmatrix | sparse.sparray, weights: Array | None) -> Array:
    from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis

    rows = X.tocsr()
    low, high = min_max_axis(rows, axis=0)
    variance = mean_variance_axis(rows, axis=0, weights=weights)[1]
    return _spreads(
        np.sqrt(np.maximum(variance, 0.0)), np.asarray(low, float), np.asarray(high, float)
    )


def _spreads(deviation: Array, low: Array, high: Array) -> Array:
    found = np.maximum(deviation, high / TAIL - low / TAIL)
    return np.where((high > low) & (found > 0) & np.isfinite(found), found, 1.0)


def divided(
    X: AnyArray | sparse.spmatrix | sparse.sparray, spreads: Array
) -> AnyArray | sparse.spmatrix | sparse.sparray:
    """Rows with every column in units of its spread."""
    return X @ sparse.diags_array(1.0 / spreads) if sparse.issparse(X) else X / spreads


def around_spreads(inside: BaseEstimator, spreads: Array) -> Around:
    """A model as the rest of the library sees it: ``inside``, of columns divided by their
    spreads, behind that step.
    """
    from sklearn.preprocessing import StandardScaler

    step = StandardScaler(with_mean=False)
    step.mean_, step.scale_, step.var_, step.n_features_in_ = (
        None,
        spreads,
        spreads**2,
        len(spreads),
    )
    vars(inside).pop("feature_names_in_", None)  # the step gives arrays
    return Around(inside, steps=(("spread", step),))
