"""Kernel interpolation and ridge regression by EigenPro, or directly where the problem is small.

Minimizes (1/n)·Σ‖f(x_i) − y_i‖² + λ‖f‖² over the RKHS of a kernel; λ = 0 interpolates. PyTorch is
imported when a learner is fitted or predicts, not before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from surelearn.kernel.machine import KernelMachine, as_array
from surelearn.kernel.options import Compute
from surelearn.kernel.record import MARGIN, KernelClassificationRecord, KernelRegressionRecord
from surelearn.kernel.streams import ParquetRows, label_values
from surelearn.kernel.torch_functions import ArrayOrTensor
from surelearn.subject import Around, Parts
from surelearn.types import Array, RowsLike


class EigenProRegressor(MultiOutputMixin, RegressorMixin, KernelMachine):
    """Kernel regression: (1/n)·Σ‖f(x_i) − y_i‖² + λ‖f‖², by EigenPro, or directly where there are
    few rows.

    Parameters
    ----------
    kernel : "laplace", "gaussian", "matern", "polynomial", "linear", "precomputed", or an object of
        `surelearn.kernel.functions` and of sums and products of such
    bandwidth : the kernel's length h: exp(−‖x − z‖²/2h²), exp(−‖x − z‖/h); None takes a multiple of
        the median distance of rows, "loo" the best by leave-one-out (`surelearn.kernel.choosing`):
        both void claims about the training rows
    degree : of the polynomial kernel
    regularization : λ ≥ 0 beside the *mean* squared loss; 0 interpolates; "loo" takes the best by
        leave-one-out. None is 0 where the kernel's length or x_bound is stated, or it has none.
        Where nothing is stated it is 0.1/n, and columns are divided by their spread on the rows
        (`column_spreads`), so that those of any size may be mixed (not those of a file; for images,
        whose pixels share a unit, state regularization=)
    centers : the number of random rows that f is built on, or those rows (p, d): all n rows are
        then read in at most ``epochs`` passes, and p² numbers or fewer are kept. None builds f on
        every row
    solver : "direct" (Cholesky in float64, exact leave-one-out), "eigenpro", or "auto": direct up
        to 2,000 rows
    epochs : the most passes over the rows
    preconditioner : EigenPro's subsample, directions, batch size and step, `Preconditioner`; None
        chooses them
    stopping : tolerance, target, time limit and validation rows, `Stopping`; None for its defaults
    compute : device, precision and memory, `Compute`; None for its defaults
    warm_start : whether EigenPro goes on from the α of the fit before, on the same rows; more rows
        may follow them
    x_bound, y_bound : bounds on ‖x‖ and ``|y|`` that hold for *every* row, for claims
    delta : the failure probability of each claim

    Attributes
    ----------
    centers_, coef_ : the training rows (None if the kernel is precomputed) and their coefficients α
    center_indices_ : which of the rows given to ``fit`` they are: not those held out, nor those of
        weight 0
    held_out_ : with ``centers``, which of the rows given to ``fit`` were held out
    regularization_ : the λ used
    spreads_ : what columns were divided by before the kernel; None where they are taken as they are
    eigenvalues_ : the leading eigenvalues of K_S/s (empty after a direct solution)
    facts_ : what was chosen and measured, among others ``norm``: the RKHS norm of f, and
        ``leave_one_out_error``

    Examples
    --------
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = EigenProRegressor("gaussian", bandwidth=1.0).fit(X, np.sin(X[:, 0]))
    >>> float(abs(model.predict([[1.5]])[0] - np.sin(1.5))) < 1e-4
    True
    """

    saved_as = "eigenpro-regressor/1"
    Record = KernelRegressionRecord

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """Interpolating, too."""
        yield cls(random_state=0, compute=Compute(device="cpu"))
        yield from super().checked()

    def fit(self, X: RowsLike, y: RowsLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows ``X`` (n, d) and targets ``y`` (n,) or (n, t), arrays or torch tensors.

        With ``sample_weight`` w the loss is Σ w_i‖f(x_i) − y_i‖²/Σw, and no claim about the
        training rows is made.
        """
        X, Y, labels = self._read(X, y, reset=True)
        self._fit(X, Y, sample_weight, labels=labels)
        self.coef_ = self.coef_ if np.asarray(as_array(y)).ndim == 2 else self.coef_[:, 0]
        return self

    def fit_file(
        self,
        path: str | Path,
        target: str | Sequence[str],
        *,
        features: Sequence[str] | None = None,
    ) -> Self:
        """Fit to a Parquet file that need not fit into memory: columns of numbers, all but the
        target's unless named.

        Needs ``centers=``, the number of random rows that f is built on.
        """
        self._needs_centers()
        stream, self.spreads_ = ParquetRows(path, target, features=features), None
        self._take_names(stream)
        self._fit_stream(stream, labels=False)
        self.coef_ = self.coef_[:, 0] if isinstance(target, str) else self.coef_
        return self

    def predict(self, X: RowsLike) -> Array:
        """f(x), shape (n,) or (n, t)."""
        scores = self._scores(X)
        return scores if self.coef_.ndim == 2 else scores[:, 0]

    def _read(
        self, X: RowsLike, y: RowsLike | None, *, reset: bool
    ) -> tuple[ArrayOrTensor, Array, bool]:
        rows, targets = self._checked(X, y=y, multi_output=True, y_numeric=True, reset=reset)
        Y = np.asarray(targets, dtype=np.float64).reshape(len(targets), -1)
        if self.y_bound is not None:
            self._check_bound("y_bound", self.y_bound, np.linalg.norm(Y, axis=1))
        return rows, Y, False

    def _more_facts(
        self,
        facts: dict[str, Any],  # noqa: ARG002
        values: Array | None,  # noqa: ARG002
        Y: Array | None,  # noqa: ARG002
    ) -> dict[str, Any]:
        return {"y_bound": self.y_bound}

    def _describe(self) -> Parts | Around:
        return self._described()


class EigenProClassifier(ClassifierMixin, KernelMachine):
    """Kernel classification by least squares on ±1, one output a class (two classes: one output).

    Parameters and attributes are those of `EigenProRegressor`; ``y_bound`` is not needed.

    Attributes
    ----------
    classes_ : the labels, in the order of the scores

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> model = EigenProClassifier(bandwidth=0.5).fit(X, ["same", "same", "other", "other"])
    >>> model.predict([[0.1, 0.1], [0.9, 0.0]]).tolist()
    ['same', 'other']
    """

    saved_as = "eigenpro-classifier/1"
    Record = KernelClassificationRecord

    def fit(self, X: RowsLike, y: RowsLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows ``X`` (n, d) and labels ``y`` (n,), of two or more classes;
        ``sample_weight`` as in regression.
        """
        X, Y, labels = self._read(X, y, reset=True)
        self._fit(X, Y, sample_weight, labels=labels)
        return self

    def fit_file(
        self, path: str | Path, target: str, *, features: Sequence[str] | None = None
    ) -> Self:
        """Fit to a Parquet file that need not fit into memory; as `EigenProRegressor.fit_file`,
        the target holds labels.
        """
        self._needs_centers()
        self.classes_ = label_values(path, target)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{path}, column {target!r} holds one class only: classification needs at least two"
            )
        stream, self.spreads_ = (
            ParquetRows(path, target, features=features, classes=self.classes_),
            None,
        )
        self._take_names(stream)
        self._fit_stream(stream, labels=True)
        return self

    def decision_function(self, X: RowsLike) -> Array:
        """f(x): for two classes one number per row, positive for the second; else one per class."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: RowsLike) -> np.ndarray:
        """The class with the largest score."""
        scores = as_array(self.decision_function(X))
        return self.classes_[
            (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        ]

    def _read(
        self, X: RowsLike, y: RowsLike | None, *, reset: bool
    ) -> tuple[ArrayOrTensor, Array, bool]:
        rows, labels = self._checked(X, y=y, reset=reset)
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError("y holds one class only: classification needs at least two")
        if reset:
            self.classes_ = classes
        elif not np.array_equal(classes, self.classes_):
            raise ValueError("y holds other classes than the model's")
        Y = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
        return rows, Y[:, 1:] if len(classes) == 2 else Y, True

    def _more_facts(
        self, facts: dict[str, Any], values: Array | None, Y: Array | None
    ) -> dict[str, Any]:
        """The classes, and the share of rows with y·f(x) ≤ ρ, f(x) known up to an error."""
        found: dict[str, Any] = {"classes": len(self.classes_)}
        error = facts.get("value_error")
        if len(self.classes_) > 2 or values is None or Y is None or error is None:
            return found
        return found | {
            "margin_at": MARGIN,
            "margin_error": float((Y[:, 0] * values[:, 0] <= MARGIN + error).mean()),
        }

    def _describe(self) -> Parts | Around:
        return self._described()
