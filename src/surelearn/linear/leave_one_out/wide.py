"""Logistic regression without each row in turn where there are more columns than rows.

Every minimizer is a sum of rows, w = Xᵀc. With the eigenvectors U and eigenvalues Λ of the Gram
matrix G = XXᵀ, the rows of Z = UΛ^{1/2} have the same inner products as those of X, so that the
problem in Z has the same scores, in no more columns than rows; a minimizer a there is w = XᵀUΛ^{−1/2}a.

Eigenvalues at the level of rounding are left out, so that ZZᵀ = G − E. With the slopes g of the
losses at the solution and α = −g/(2·total), the gradient of the problem in X at Xᵀα is Xᵀ(g(Gα) −
g(ZZᵀα)), and a logistic slope changes by at most a fourth of its score: the minimizers are apart by at
most ‖X‖·‖Eα‖/(8·total), which is computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from surelearn.linear.leave_one_out.newton import Indices, leave_out, newton
from surelearn.losses import LOGISTIC
from surelearn.types import Array


@dataclass(frozen=True, eq=False)
class SumsOfRows:
    """Minimizers as sums of rows.

    Attributes
    ----------
    full : (n,), coefficients of the fit to all rows
    coefficients : (k, n), of the fits without a row
    scores : (k,), each row's score by the fit without it
    errors : (k,), bounds on the distances of the weights from the exact minimizers
    """

    full: Array
    coefficients: Array
    scores: Array
    errors: Array


def sums_without(X: Any, signs: Array, total: float, rows: Indices, tol: float) -> SumsOfRows:
    """The minimizers of Σ_{j≠i} ln(1 + e^{−s_j⟨w, x_j⟩}) + total·‖w‖² for each i of ``rows``.

    Parameters
    ----------
    X : (n, d), dense or sparse, with d > n or not
    """
    product = X @ X.T
    gram = np.asarray(product.toarray() if hasattr(product, "toarray") else product, dtype=float)
    n = len(gram)
    values, vectors = np.linalg.eigh(gram)
    largest = max(float(values[-1]), 0.0)
    least = n * np.finfo(float).eps * largest
    kept = values > least
    if not kept.any():  # rows of zeros
        none = np.zeros((len(rows), n))
        return SumsOfRows(np.zeros(n), none, np.zeros(len(rows)), np.zeros(len(rows)))
    U, root = vectors[:, kept], np.sqrt(values[kept])
    Z = U * root
    full = newton(Z, signs, total)
    found, errors = leave_out(Z, signs, total, full, rows, tol)
    present = np.ones((len(rows), n))
    present[np.arange(len(rows)), rows] = 0
    dual = _dual(found @ Z.T, signs, total) * present  # (k, n)
    outside = dual @ gram - (dual @ Z) @ Z.T  # Eα
    size = np.sqrt(largest) / (8 * total)
    return SumsOfRows(
        full=_sum(full[None], _dual(full[None] @ Z.T, signs, total), U, root)[0],
        coefficients=_sum(found, dual, U, root),
        scores=np.einsum("ij,ij->i", found, Z[rows]),
        errors=errors * (1 + size * np.sqrt(least)) + size * np.linalg.norm(outside, axis=1),
    )


def _dual(scores: Array, signs: Array, total: float) -> Array:
    """α = −g/(2·total) at these scores, (k, n)."""
    return -signs * LOGISTIC.derivative(signs * scores) / (2 * total)


def _sum(found: Array, dual: Array, U: Array, root: Array) -> Array:
    """UΛ^{−1/2}a, and α in the directions that were left out."""
    return (found / root) @ U.T + dual - (dual @ U) @ U.T
