"""Is it a kernel? The condition of Moore and Aronszajn (course, Theorem 7.6), checked on a sample
of rows.

k is a kernel if and only if every matrix k(x_i, x_j) is symmetric and positive semidefinite. One
matrix that is not refutes it; a sample on which all is well proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from surelearn.kernel.composites import RowMatrix, is_sparse

# digits that a computed k(x, z) may have lost: squared distances keep a ten-thousandth at worst
_LOST = 1e4
_SHOWN = 6


@dataclass(frozen=True, eq=False)
class Positivity:
    """What a sample says of a supposed kernel; true where nothing speaks against it.

    Attributes
    ----------
    size : the rows that were looked at
    symmetric : whether k(x, z) = k(z, x), up to rounding
    smallest : the smallest eigenvalue of their matrix (of its symmetric part)
    tolerance : how far below 0 rounding can bring it
    rows, coefficients : where the condition fails, few rows of X and c_i of length 1 with Σ c_i c_j
        k(x_i, x_j) < 0, or without symmetry the two rows; else empty
    value : that sum, or k(x, z) − k(z, x) of the two rows; else 0
    """

    size: int
    symmetric: bool
    smallest: float
    tolerance: float
    rows: npt.NDArray[np.intp]
    coefficients: npt.NDArray[np.float64]
    value: float

    def __bool__(self) -> bool:
        return self.rows.size == 0

    def __str__(self) -> str:
        if self:
            least = f"smallest eigenvalue {self.smallest:.2g}, rounding ±{self.tolerance:.2g}"
            return (
                f"no sign against a kernel on {self.size} rows ({least}); a sample can refute it,"
                " not prove it"
            )
        if not self.symmetric:
            one, other = self.rows
            return (
                f"not a kernel: k(x, z) − k(z, x) = {_signed(self.value)} for rows {one} and"
                f" {other}: it is not symmetric"
            )
        some = " …" if self.rows.size > _SHOWN else ""
        rows = ", ".join(map(str, self.rows[:_SHOWN])) + some
        coefficients = ", ".join(_signed(c) for c in self.coefficients[:_SHOWN]) + some
        value = f"Σ c_i c_j k(x_i, x_j) = {_signed(self.value)} < 0"
        return f"not a kernel: {value} for these rows and coefficients: {rows}; {coefficients}"


def check_positive(
    kernel: Callable[[Any, Any], Any],
    X: RowMatrix,
    *,
    rows: int = 500,
    random_state: int | np.random.RandomState | None = None,
) -> Positivity:
    """Look for rows of X that show that ``kernel`` is none.

    Parameters
    ----------
    kernel : a kernel object, or any function of two arrays of rows that returns the matrix of its
        values
    X : rows, dense or sparse
    rows : how many of them to look at, at most; drawn without replacement

    Examples
    --------
    >>> from surelearn.kernel.functions import Gaussian
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> bool(check_positive(Gaussian(bandwidth=1.0), X))
    True
    >>> print(check_positive(lambda X, Z: np.tanh(X @ Z.T - 1), X))
    not a kernel: Σ c_i c_j k(x_i, x_j) = −0.762 < 0 for these rows and coefficients: 0; 1
    """
    if isinstance(rows, bool) or rows != int(rows) or rows < 1:
        raise ValueError(f"rows must be a whole number of at least 1, not {rows!r}")
    X = X.tocsr() if is_sparse(X) else np.asarray(X)
    if X.ndim != 2 or X.shape[0] == 0:
        raise ValueError(
            f"X must be rows, an array (n, d) with n of at least 1, not of shape {X.shape}"
        )
    chosen = np.sort(check_random_state(random_state).permutation(X.shape[0])[:rows])
    K = np.asarray(kernel(X[chosen], X[chosen]))
    if K.shape != (chosen.size, chosen.size):
        raise ValueError(
            f"kernel must return the matrix of {chosen.size} × {chosen.size} values, not shape"
            f" {K.shape}"
        )
    eps = float(np.finfo(K.dtype if K.dtype.kind == "f" else float).eps)
    K = K.astype(float)
    if not np.isfinite(K).all():
        raise ValueError("kernel gives values that are not finite on these rows: scale the columns")
    return _judge(K, chosen, _LOST * eps * float(np.abs(K).max()))


def _judge(K: np.ndarray, chosen: np.ndarray, off: float) -> Positivity:
    """``off``: how far an entry can be off; then eigenvalues of n rows are within n times that."""
    tolerance = off * len(K)
    difference = K - K.T
    symmetric = not (np.abs(difference) > 2 * off).any()
    K = (K + K.T) / 2
    smallest = float(np.linalg.eigvalsh(K)[0])
    places, coefficients, value = np.empty(0, dtype=np.intp), np.empty(0), 0.0
    if not symmetric:
        places = np.array(np.unravel_index(np.abs(difference).argmax(), K.shape))
        value = float(difference[places[0], places[1]])
    elif smallest < -tolerance:
        places, coefficients, value = _witness(K, tolerance)
    return Positivity(len(K), symmetric, smallest, tolerance, chosen[places], coefficients, value)


def _witness(K: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Few rows whose matrix has an eigenvalue well below 0: those with the largest |c_i|, more
    of them until it has.
    """
    all_values, all_vectors = np.linalg.eigh(K)
    order = np.argsort(-np.abs(all_vectors[:, 0]), kind="stable")
    enough, size = min(-tolerance, 0.1 * float(all_values[0])), 1
    while True:
        places = np.sort(order[:size])
        values, vectors = np.linalg.eigh(K[np.ix_(places, places)])
        if values[0] <= enough or size == len(K):
            c = vectors[:, 0] * (np.sign(vectors[np.abs(vectors[:, 0]).argmax(), 0]) or 1.0)
            return places, c, float(c @ K[np.ix_(places, places)] @ c)
        size = min(len(K), size + 1 + size // 4)


def _signed(value: float) -> str:
    """A number with a proper minus."""
    return f"{value:.3g}".replace("-", "−")
