"""The spectrum of the rows, which bounds the cost of every clustering from below, and when it
is worth its price.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

if TYPE_CHECKING:
    from surelearn.cluster.lloyd import Rows

Matrix = npt.NDArray[Any]

# operations of the eigenvalues of an m × m matrix, over m³, counted at the speed of a matrix
# product
EIGENVALUES = 5.0
QUICK, DEAREST = 2e9, 2e11  # operations: a twentieth of a second, and a few seconds
SHARE = 0.25  # of the operations of the clustering
# eigenvalues computed twice agree within so many (n + d)·ε·trace, sparse rows' too
ROUNDINGS = 16.0


def singular_values(rows: Rows, weights: Matrix, k: int) -> Matrix:
    """Singular values of the centered rows scaled by √w, each lowered by its rounding; none where
    they would say nothing.

    Eigenvalues of a sum of n products are off by at most about (n + d)·ε·trace, which is taken off:
    the PCA tail stays a lower bound. Sparse rows are centered within their products only, which
    costs four times as much rounding.
    """
    from surelearn.cluster.sparse import CSRRows, centered_gram

    n, d = rows.shape
    if k > min(n, d):
        return np.empty(0)
    if isinstance(rows, CSRRows):
        gram, error = centered_gram(rows, weights)
    else:
        scaled = rows.X * np.sqrt(weights)[:, None]
        gram = scaled.T @ scaled if d <= n else scaled @ scaled.T
        error = (n + d) * np.finfo(float).eps * float(np.trace(gram))
    squares = np.linalg.eigvalsh(gram)[::-1] - error
    return np.sqrt(np.maximum(squares, 0.0))


def affordable(X: Matrix | sparse.csr_array, k: int, walks: int) -> bool:
    """Whether the spectrum is quick, or costs at most a quarter of ``walks`` assignments of all
    rows to k centers.

    Examples
    --------
    >>> affordable(np.empty((2000, 1500)), 8, 20), affordable(np.empty((2000, 1500)), 800, 20)
    (False, True)
    """
    entries, smaller = X.size if isinstance(X, np.ndarray) else X.nnz, min(X.shape)
    cost = float(entries) * smaller + EIGENVALUES * float(smaller) ** 3
    return cost <= max(QUICK, min(DEAREST, SHARE * 2.0 * entries * k * walks))
