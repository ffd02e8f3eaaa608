"""Whether rows can be separated, and the proof either way: a hyperplane with its margin, or a
convex combination that is 0.

For vectors z_i = y_i·(x_i, 1), Gordan's alternative: either some w has ⟨w, z_i⟩ > 0 for every i, or
some a ≥ 0, Σa = 1, has Σ a_i z_i = 0, never both. The point of the convex hull of the z_i nearest
to 0 decides: its norm is the largest margin γ that a unit vector can have (the hard-margin support
vector machine without intercept), its direction attains it, and its weights a are the witness where
it is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from scipy.optimize import nnls

from surelearn.kernel.functions import inner_products, squared_norms

_ZERO = 1e-9  # a combination this small beside the largest vector counts as 0
# the square root of rounding: inner products cannot tell smaller distances from 0
_ZERO_OF_GRAM = 1e-7
_ROUNDING = 1e-12  # a margin must exceed what rounding can make of 0


@dataclass(frozen=True)
class Separation:
    """The nearest point of the convex hull of y_i·x_i to 0, and what follows.

    Attributes
    ----------
    combination : a ≥ 0 with Σa = 1, shape (n,); the point is Σ a_i y_i x_i
    distance : its norm. No unit vector has a margin above it: min_i y_i⟨w, x_i⟩ ≤ Σ a_i y_i⟨w, x_i⟩
        ≤ ‖Σ a_i y_i x_i‖
    margin : min_i y_i⟨w, x_i⟩ of the unit vector w in its direction; where positive, w separates
    radius : the largest ‖x_i‖
    zero : the distance, as a share of the radius, that counts as 0
    """

    combination: np.ndarray
    distance: float
    margin: float
    radius: float
    zero: float = _ZERO

    @property
    def separable(self) -> bool | None:
        """True with a hyperplane, False with a witness, None where rounding hides which."""
        if self.margin > _ROUNDING * self.radius:
            return True
        return False if self.distance <= self.zero * self.radius else None

    @property
    def witness(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the combination that counts, and their weights."""
        rows = np.flatnonzero(self.combination)
        return rows, self.combination[rows]

    @property
    def answer(self) -> str:
        """Whether the rows can be separated: "yes", "no" or "unknown"."""
        return {True: "yes", False: "no", None: "unknown"}[self.separable]

    def words(self) -> str:
        """The answer for people."""
        return in_words(self.answer, self.witness[0].size, self.distance)


def in_words(separable: str | None, rows: int, distance: float) -> str:
    """An answer for people: ``distance`` is the norm of a convex combination of so many
    ``rows``.
    """
    if separable == "no":
        return (
            f"the rows cannot be separated: a convex combination of y·x over {rows} of them has"
            f" norm {distance:.2g}, so that no unit vector has a larger margin"
        )
    return (
        "the rows can be separated"
        if separable == "yes"
        else "the rows can hardly be separated: rounding hides whether"
    )


def pad(X: Any) -> Any:
    """Rows (x, 1), dense or CSR.

    Examples
    --------
    >>> pad(np.array([[2.0, 3.0]]))
    array([[2., 3., 1.]])
    """
    ones = np.ones((X.shape[0], 1))
    if sparse.issparse(X):
        return sparse.hstack([X, sparse.csr_array(ones)], format="csr")
    return np.hstack([X, ones])


def separate(vectors: Any, signs: np.ndarray) -> Separation:
    """Separate the rows of ``vectors`` (already padded, where a bias is wanted) by a hyperplane
    through 0, or show why not.

    Examples
    --------
    >>> xor = np.array([[0.0, 0, 1], [1, 0, 1], [0, 1, 1], [1, 1, 1]])
    >>> found = separate(xor, np.array([-1, 1, 1, -1]))
    >>> found.separable, found.combination
    (False, array([0.25, 0.25, 0.25, 0.25]))
    >>> found = separate(xor, np.array([-1, 1, 1, 1]))
    >>> found.separable, round(found.margin, 4)
    (True, 0.3333)
    """
    n, d = vectors.shape
    if d > n:
        combination = nearest_combination(
            _factor(inner_products(vectors, vectors) * np.outer(signs, signs))
        )
    else:
        dense = vectors.toarray() if sparse.issparse(vectors) else np.asarray(vectors)
        combination = nearest_combination(dense * signs[:, None])
    point = np.asarray(vectors.T @ (combination * signs))
    distance = float(np.linalg.norm(point))
    margin = float((signs * np.asarray(vectors @ point)).min()) / distance if distance > 0 else 0.0
    return Separation(combination, distance, margin, float(np.sqrt(squared_norms(vectors).max())))


def separate_gram(gram: np.ndarray, signs: np.ndarray) -> Separation:
    """`separate` for vectors that only their inner products describe, such as a kernel matrix
    (plus 1 for a bias).
    """
    Q = gram * np.outer(signs, signs)
    combination = nearest_combination(_factor(Q))
    scores = Q @ combination
    distance = float(np.sqrt(max(0.0, combination @ scores)))
    margin = float(scores.min()) / distance if distance > 0 else 0.0
    return Separation(
        combination, distance, margin, float(np.sqrt(np.diag(Q).max())), zero=_ZERO_OF_GRAM
    )


def nearest_combination(Z: np.ndarray) -> np.ndarray:
    """The weights a ≥ 0, Σa = 1, for which ‖Σ a_i z_i‖ is smallest.

    Nonnegative least squares: over u ≥ 0, ‖Σ u_i z_i‖² + (Σ u_i − 1)² is smallest at a positive
    multiple of a.
    """
    scale = float(np.sqrt(np.einsum("ij,ij->i", Z, Z).max()))
    if scale == 0.0:
        return np.full(Z.shape[0], 1.0 / Z.shape[0])
    system = np.vstack([Z.T / scale, np.ones(Z.shape[0])])
    target = np.zeros(system.shape[0])
    target[-1] = 1.0
    weights, _ = nnls(system, target, maxiter=max(100, 30 * min(system.shape)))
    return weights / weights.sum()


def _factor(Q: np.ndarray) -> np.ndarray:
    """Rows z_i with ⟨z_i, z_j⟩ = Q_ij, as few columns as Q has rank: Cholesky with pivots."""
    factor, pivots, rank, _ = lapack.dpstrf(Q, lower=1, tol=-1.0)
    rows = np.zeros((Q.shape[0], rank))
    rows[pivots - 1] = np.tril(factor)[:, :rank]
    return rows
