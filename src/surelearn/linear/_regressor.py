"""What the robust linear regressors share: reading rows, predicting, and refusing impossible
parameters.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from surelearn.base import Learner
from surelearn.stated import is_number
from surelearn.types import RowsLike

Array = npt.NDArray[np.float64]


class LinearRegressor(RegressorMixin, Learner):
    """Predicts ⟨w, x⟩ + b from ``coef_`` and ``intercept_``; dense or sparse rows, one target."""

    takes_sparse = True

    coef_: Array
    intercept_: float

    def predict(self, X: RowsLike) -> Array:
        """⟨w, x⟩ + b for each row."""
        check_is_fitted(self)
        rows = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=np.float64, reset=False)
        return np.asarray(rows @ self.coef_ + self.intercept_)

    def _rows(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None,
        sample_weight: npt.ArrayLike | None,
        accept_sparse: str,
        *,
        reset: bool = True,
    ) -> tuple[Any, Array, Array]:
        """X, y and weights, checked."""
        rows, targets = validate_data(
            self, X, y, accept_sparse=accept_sparse, dtype=np.float64, y_numeric=True, reset=reset
        )
        weights = _check_sample_weight(
            sample_weight, rows, dtype=np.float64, ensure_non_negative=True
        )
        return rows, np.asarray(targets, dtype=np.float64), weights


def require_positive(**values: object) -> None:
    """Refuse, by name, what is not a finite number above 0."""
    for name, value in values.items():
        if not is_number(value) or not 0 < value < math.inf:
            raise ValueError(f"{name} must be a number above 0, not {value!r}")


def require_nonnegative(**values: object) -> None:
    """Refuse, by name, what is not a finite number of at least 0."""
    for name, value in values.items():
        if not is_number(value) or not 0 <= value < math.inf:
            raise ValueError(f"{name} must be a number of at least 0, not {value!r}")


def require_bound(name: str, sizes: Array, bound: float | None) -> None:
    """Refuse rows that exceed a bound that was stated for every row."""
    if bound is None:
        return
    require_positive(**{name: bound})
    if (largest := float(np.max(sizes))) > bound * (1 + 1e-12):
        raise ValueError(
            f"{name} = {bound:g} must hold for every row, but one has {largest:g}: state a larger"
            " bound"
        )


def row_norms(X: Any) -> Array:
    """Euclidean norm of each row, dense or sparse."""
    if sparse.issparse(X):
        return np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return np.linalg.norm(X, axis=1)
