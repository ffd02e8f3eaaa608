"""Kernel matrices that come from elsewhere: looked at before a machine is built on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg
from sklearn.utils.validation import check_array, validate_data

from surelearn.kernel.composites import RowMatrix, is_sparse
from surelearn.kernel.positivity import check_positive
from surelearn.types import RowsLike

if TYPE_CHECKING:
    from surelearn.base import Learner

MOST_ROWS = 4000  # up to which all of a matrix is looked at: a Cholesky factor takes seconds
FIXED = "the matrix holds values of one kernel, fixed before seeing the rows"
POSITIVE = f"the matrix is positive semidefinite, of which {MOST_ROWS:,} rows were looked at"
NOT_KERNEL_MATRICES = {  # scikit-learn's checks that a learner of kernel matrices cannot pass
    "check_estimators_dtypes": "cuts a kernel matrix to whole numbers, which makes it indefinite",
    "check_positive_only_tag_during_fit": "takes a matrix of random numbers, which is no kernel's",
}
_SYMMETRIC = 1e3  # units of rounding by which two halves may differ
# units of rounding, for every row, by which eigenvalues may lie below 0: careful values, others
_POSITIVE = (10.0, 1e4)


def validate(learner: Learner, X: RowsLike, *y: Any) -> Any:
    """Checked rows, dense or CSR, and y where it is given; of a kernel matrix, where it is not
    finite.
    """
    if learner.__sklearn_tags__().input_tags.pairwise:
        _check_finite(
            check_array(X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False)
        )
    return validate_data(
        learner, X, *y, accept_sparse="csr", dtype=np.float64, order="C", reset=bool(y)
    )


def check_matrix(X: RowMatrix) -> tuple[np.ndarray, float]:
    """The dense, exactly symmetric kernel matrix of training rows, and the τ ≥ 0 for which X + τI
    is positive semidefinite.

    τ is a rounding error: numbers that all are single precision may be off by theirs. Of more than
    4,000 rows as many are looked at, drawn at random.

    Examples
    --------
    >>> K, tau = check_matrix(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> K, tau < 1e-13
    (array([[2., 1.],
           [1., 2.]]), True)
    """
    K = np.asarray(X.toarray() if is_sparse(X) else X, dtype=float)
    if len(K) != K.shape[1]:
        raise ValueError(
            f"X must be the square matrix k(x_i, x_j) of the training rows, not of shape {K.shape}"
        )
    largest, difference = float(np.abs(K).max(initial=0.0)), _asymmetry(K)
    single = bool((K.astype(np.float32) == K).all())
    kinds = (np.float64, np.float32) if single else (np.float64,)
    roundings = [float(np.finfo(kind).eps) * largest for kind in kinds]
    if difference > _SYMMETRIC * roundings[-1]:
        raise ValueError(
            "X must be a symmetric kernel matrix: take (K + K.T)/2 where the difference is rounding"
        )
    if difference > 0:
        K = (K + K.T) / 2
    chosen = np.arange(len(K))
    if len(K) > MOST_ROWS:
        chosen = np.sort(np.random.RandomState(0).permutation(len(K))[:MOST_ROWS])
    part = K if chosen.size == len(K) else K[np.ix_(chosen, chosen)]
    for unit, times in [(roundings[0], times) for times in _POSITIVE] + [
        (unit, _POSITIVE[0]) for unit in roundings[1:]
    ]:
        if _is_positive(part, shift := times * unit * chosen.size):
            return K, 2 * shift  # the factor is rounded too
    found = check_positive(
        lambda A, B: K[np.ix_(A[:, 0], B[:, 0])], chosen[:, None], rows=chosen.size
    )
    if not found:
        raise ValueError(f"X must be a positive semidefinite matrix, but it is {found}")
    return K, 2 * found.tolerance


def _check_finite(X: RowMatrix) -> None:
    values = X.tocoo() if is_sparse(X) else X
    bad = ~np.isfinite(values.data if is_sparse(values) else values)
    if bad.any():
        row, column = (
            (values.row[bad][0], values.col[bad][0]) if is_sparse(values) else np.argwhere(bad)[0]
        )
        raise ValueError(
            f"X holds NaN or infinity, first in row {row}, column {column}: compute the kernel"
            " there again"
        )


def _asymmetry(K: np.ndarray) -> float:
    """The largest |k(x, z) − k(z, x)|, piece by piece."""
    return max(
        (
            float(np.abs(K[at : at + 512] - K[:, at : at + 512].T).max())
            for at in range(0, len(K), 512)
        ),
        default=0.0,
    )


def _is_positive(K: np.ndarray, shift: float) -> bool:
    """Whether K + shift·I has a Cholesky factor."""
    shifted = K.copy()
    shifted[np.diag_indices_from(shifted)] += shift
    try:
        linalg.cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return False
    return True
