"""Least squares and ridge regression, with what is certain about the fit.

Ridge minimizes (1/n)·Σ‖x_i W − y_i‖² + λ‖W‖² (course notes, Definition 3.4). Its certificate holds
the exact leave-one-out error, the uniform stability for a λ fixed beforehand, and the condition
number that explains the notes' ε-example.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import (
    _check_sample_weight,  # pyright: ignore[reportAttributeAccessIssue]
    check_is_fitted,
    validate_data,
)

from surelearn.base import WEIGHTED_CHECKS, Learner
from surelearn.earlier import Names
from surelearn.lacking import Lacking
from surelearn.linear.intercept import (
    Intercept,
    check_intercept,
    earlier_intercept,
    intercept_of,
)
from surelearn.linear.leave_one_out import LeaveOneOutFits, ridge_leave_one_out
from surelearn.linear.ridge.record import RidgeRecord
from surelearn.linear.ridge.sparse import solve_sparse, sparse_slope
from surelearn.linear.ridge.spectrum import Array, Design, Spectrum
from surelearn.record import Within
from surelearn.subject import Objective, Parts, linear_form
from surelearn.subject.leaving import Without
from surelearn.types import RowsLike

# fixed before any data, so that δ can be shared among it
GRID = tuple(float(10.0**k) for k in np.linspace(-6, 2, 25))
# fields of the record that models of version 0.2 do not have
SINCE_0_2 = ("left_out", "slope_rounding")
FIXED = 0.01  # λ where none is stated but bounds are
DENSE_ENTRIES = 10_000_000  # sparse rows are made dense up to so many entries (80 MB)
_CHOICES = ("loo", "gcv")
_SOLVERS = ("auto", "svd", "lsqr")
_NO_CLOSED_FITS = "there is a closed form only for λ > 0 and rows of equal weight"


class _LeastSquares(MultiOutputMixin, RegressorMixin, Learner):
    """What least squares and ridge regression share: fitting, predicting, claims."""

    Record = RidgeRecord
    takes_sparse = True

    fit_intercept: bool
    regularize_intercept: bool | None
    solver: str
    delta: float
    tol: float = 0.0  # of models of version 0.2, and of Ridge
    _may_leave_out: ClassVar[bool] = False  # whether regularize_intercept may be None

    def fit(
        self, X: RowsLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Fit to rows ``X`` (n, d), dense or sparse, and targets ``y`` (n,) or (n, t).

        With ``sample_weight`` s the loss is Σ s_i‖x_i W − y_i‖²/Σs, and no claim about the training
        rows is made.
        """
        check_intercept(self, optional=self._may_leave_out)
        _check_choice("solver", self.solver, _SOLVERS)
        self._candidates(1.0)  # refuses what is no λ before it reads
        rows, Y, weights, facts, dense, single = self._read(X, y, sample_weight)
        regularization, grid = self._candidates(
            float(rows.shape[0]) if weights is None else float(weights.sum())
        )
        if dense:
            coef, intercept = self._fit_dense(_dense(rows), Y, weights, regularization, grid, facts)
        else:
            coef, intercept = self._fit_sparse(rows, Y, weights, regularization, facts)
        self.coef_ = coef[:, 0] if single else coef.T
        self.intercept_ = float(intercept[0]) if single else intercept
        self.regularization_ = float(facts["regularization"])
        losses, errors = self._errors(rows, Y, weights, coef, intercept)
        facts |= errors
        self.facts_ = facts
        self._check_losses(losses)
        return self

    def measure_again(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> dict[str, Any]:
        """The record's fields that the fitted model and the rows it was fitted on tell,
        measured again.
        """
        rows, Y, weights, facts, dense, _ = self._read(X, y, sample_weight, reset=False)
        coef = np.atleast_2d(self.coef_).T
        intercept = np.atleast_1d(self.intercept_)
        lam, kind = self.regularization_, self._fitted_intercept()
        facts["intercept"] = kind
        if isinstance(chosen := self._candidates(1.0)[0], str):
            facts |= {"chosen_by": chosen, "candidates": len(self.grid_)}
        if dense:
            design = Design.of(_dense(rows), Y, weights, kind)
            W = np.vstack([coef, intercept]) if kind == "regularized" else coef
            slope, rounding = _half_slope(design, W, lam)
            facts |= {
                **_spectral_facts(Spectrum.of(design, self.tol), lam),
                "slope_rounding": rounding,
            }
            size = np.linalg.norm(design.rows) * (
                np.linalg.norm(design.targets) + np.linalg.norm(design.rows @ W)
            )
        else:
            shares = (
                np.full(rows.shape[0], 1 / rows.shape[0])
                if weights is None
                else weights / weights.sum()
            )
            slope, size = sparse_slope(rows, Y, shares, lam, kind, coef, intercept)
            facts |= {"solver": "lsqr", "leave_one_out_error": None}
        facts |= {"regularization": lam, "half_slope": Within(slope, 1e-12 * float(size))}
        facts |= self._errors(rows, Y, weights, coef, intercept)[1]
        kept = getattr(self, "facts_", facts)
        return {
            name: value for name, value in facts.items() if name in kept or name not in SINCE_0_2
        }

    def _errors(
        self, X: Any, Y: Array, weights: Array | None, coef: Array, intercept: Array
    ) -> tuple[Array, dict[str, float]]:
        losses = ((X @ coef + intercept - Y) ** 2).sum(1)
        risk = float(losses.mean() if weights is None else weights @ losses / weights.sum())
        return losses, {"weight_norm": float(np.linalg.norm(coef)), "training_risk": risk}

    def _check_losses(self, losses: Array) -> None:
        """Refuse a stated range of the loss that a training row leaves, where it would be used."""
        record = RidgeRecord.read(self.facts_)
        stated = record.stated_loss_bound
        used = stated is not None and record.no_stability() is None
        if stated is not None and used and losses.max() > stated * (1 + 1e-12):
            raise ValueError(
                f"loss_bound={stated:g} but a training row has loss {losses.max():g}: state a bound"
                " that holds"
            )

    def _read(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None,
        sample_weight: npt.ArrayLike | None,
        *,
        reset: bool = True,
    ) -> tuple[Any, Array, Array | None, dict[str, Any], bool, bool]:
        """Rows, targets and weights, checked; what they and the parameters tell; whether rows
        are made dense; one target?
        """
        rows, targets = validate_data(
            self,
            X,
            y,
            accept_sparse=("csr", "csc"),
            multi_output=True,
            y_numeric=True,
            dtype=np.float64,
            reset=reset,
        )
        Y = np.asarray(targets, dtype=float).reshape(len(targets), -1)
        bounds = self._bounds(rows, Y)
        weights, weighted = None, False
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, rows, dtype=np.float64, ensure_non_negative=True
            )
            rows, Y, weights = rows[weights > 0], Y[weights > 0], weights[weights > 0]
            weighted = bool(np.ptp(weights) > 0)
        facts: dict[str, Any] = {
            "n": rows.shape[0],
            "d": rows.shape[1],
            "outputs": Y.shape[1],
            "weighted": weighted,
        }
        facts |= {"intercept": self._intercept(), "chosen_by": "", "candidates": 1, **bounds}
        dense = self.solver == "svd" or not sparse.issparse(rows)
        if self.solver == "auto" and sparse.issparse(rows):
            dense = rows.shape[0] * rows.shape[1] <= DENSE_ENTRIES
        return rows, Y, weights, facts, dense, np.ndim(targets) == 1

    def predict(self, X: RowsLike) -> Array:
        """Predictions, shape (n,) or (n, t)."""
        check_is_fitted(self, "coef_")
        rows = validate_data(self, X, accept_sparse=("csr", "csc"), reset=False, dtype=np.float64)
        return rows @ self.coef_.T + self.intercept_

    def leave_one_out(
        self, X: RowsLike, y: npt.ArrayLike, rows: npt.ArrayLike | None = None
    ) -> LeaveOneOutFits:
        """The fits without one row of ``X``, ``y``, the rows it was fitted on, with this λ; see
        `ridge_leave_one_out`.

        Raises
        ------
        ValueError
            if there is no closed form: rows were weighted, or λ is 0
        """
        check_is_fitted(self, "coef_")
        if self.facts_["weighted"] or not self.regularization_ > 0:
            raise ValueError(_NO_CLOSED_FITS)
        kind = self._fitted_intercept()
        return ridge_leave_one_out(
            X, y, self.regularization_, intercept=kind, weights=True, rows=rows
        )

    def _parts(self) -> Parts:
        check_is_fitted(self, "facts_")
        facts = self.facts_
        objective = Objective(
            "squared",
            self.regularization_,
            intercept=self._fitted_intercept(),
            uniform=not facts["weighted"],
            rows=facts["n"],
            minimized=not facts.get("left_out"),
        )
        closed = not facts["weighted"] and self.regularization_ > 0
        fits = self._without if closed else Lacking("leave-one-out", _NO_CLOSED_FITS)
        return Parts(lambda: linear_form(self.coef_, self.intercept_), objective, fits)

    def _without(
        self, X: Array, y: Array, points: npt.ArrayLike, rows: npt.ArrayLike | None = None
    ) -> Without:
        which = np.arange(len(X)) if rows is None else np.asarray(rows)
        return self.leave_one_out(X, y, rows=which).at(
            np.asarray(points, dtype=float), which, np.asarray(y, float)[which]
        )

    def leave_one_out_predictions(self, X: RowsLike, y: npt.ArrayLike) -> Array | None:
        """Each row's prediction by the fit to all others with the same λ beside the mean loss;
        None if n fits are needed.
        """
        Y = np.asarray(y, dtype=float)
        total = len(Y) - 1.0  # the weight of the rows of each fit
        if sparse.issparse(X) or isinstance(lam := self._candidates(total)[0], str):
            return None
        design = Design.of(
            np.asarray(X, dtype=float), Y.reshape(len(Y), -1), None, self._intercept()
        )
        spectrum = Spectrum.of(design, self.tol)
        left = spectrum.leave_one_out(lam * total / len(Y))
        return None if left is None else Y - left.reshape(Y.shape)

    def _intercept(self) -> Intercept:
        """Which intercept, where it was left out too."""
        return intercept_of(self)

    def _fitted_intercept(self) -> Intercept:
        """Which intercept was fitted: one that was left out follows from bounds, whatever has
        been stated of them since.
        """
        kept = getattr(self, "facts_", {}).get("intercept")
        left_out = self.fit_intercept and self.regularize_intercept is None
        return kept if left_out and kept in ("free", "regularized") else self._intercept()

    def _candidates(self, total: float) -> tuple[float | str, Array]:  # noqa: ARG002
        """λ for rows of this total weight or the way to choose it, and the grid to choose from."""
        return 0.0, np.zeros(0)

    def _bounds(self, X: Any, Y: Array) -> dict[str, float | None]:  # noqa: ARG002
        """What the user states about every row, checked on these."""
        return {"x_bound": None, "y_bound": None, "stated_loss_bound": None}

    def _fit_dense(
        self,
        X: Array,
        Y: Array,
        weights: Array | None,
        regularization: float | str,
        grid: Array,
        facts: dict[str, Any],
    ) -> tuple[Array, Array]:
        design = Design.of(X, Y, weights, self._intercept())
        spectrum = Spectrum.of(design, self.tol)
        if isinstance(regularization, str):
            error = (
                spectrum.leave_one_out_error
                if regularization == "loo"
                else spectrum.generalized_cross_validation
            )
            self.grid_, self.grid_errors_ = grid, np.array([error(float(lam)) for lam in grid])
            facts |= {"chosen_by": regularization, "candidates": len(grid)}
            regularization = float(grid[np.argmin(self.grid_errors_)])
        W = spectrum.weights(regularization)
        slope, rounding = _half_slope(design, W, regularization)
        facts |= {"regularization": regularization, "half_slope": slope, "slope_rounding": rounding}
        facts |= _spectral_facts(spectrum, regularization)
        return design.split(W)

    def _fit_sparse(
        self,
        X: Any,
        Y: Array,
        weights: Array | None,
        regularization: float | str,
        facts: dict[str, Any],
    ) -> tuple[Array, Array]:
        if isinstance(regularization, str):
            raise ValueError(
                f"regularization={regularization!r} needs the singular values: give a number, or"
                " solver='svd' if the rows fit in memory as a dense array"
            )
        shares = np.full(X.shape[0], 1 / X.shape[0]) if weights is None else weights / weights.sum()
        coef, intercept, half_slope = solve_sparse(X, Y, shares, regularization, self._intercept())
        facts |= {
            "regularization": regularization,
            "solver": "lsqr",
            "leave_one_out_error": None,
            "half_slope": half_slope,
        }
        return coef, intercept


class Ridge(_LeastSquares):
    """Ridge regression: (1/n)·Σ‖x_i W + b − y_i‖² + λ‖W‖², from one singular value decomposition.

    Parameters
    ----------
    regularization : λ > 0 beside the *mean* squared loss (scikit-learn's ``alpha`` is nλ), or "loo"
        or "gcv": the one of ``grid`` with the least exact leave-one-out error, or the least
        generalized cross-validation (with ``sample_weight`` a row is left out whole, not one of its
        copies). None is 0.01 where x_bound or y_bound is stated, and 1/n (1/Σs for weights s) where
        nothing is: scikit-learn's alpha = 1, little enough for columns of any size
    grid : values of λ to choose from, fixed before seeing the rows; 25 from 1e-6 to 100 unless told
    fit_intercept : whether to add b
    regularize_intercept : True penalizes b like the weights (a column of ones), False leaves it
        free (rows and targets are centered; no stability claims). None is True where x_bound or
        y_bound is stated, so that its claims can be made, and False otherwise
    solver : "svd", "lsqr" (for large sparse rows) or "auto"
    x_bound, y_bound : bounds on ‖x‖ and on ``|y|`` (its norm if there are several outputs) that
        hold for *every* row, not only these; the stability claims need them
    loss_bound : a bound on the squared loss, if a smaller one is known than what x_bound and
        y_bound imply
    delta : the failure probability of each claim

    Attributes
    ----------
    coef_ : (d,) or (t, d)
    intercept_ : a number, or (t,)
    regularization_ : the λ used
    grid_, grid_errors_ : the grid and its leave-one-out or generalized cross-validation errors,
        where λ was chosen
    facts_ : among others ``leave_one_out_error``: the mean squared error of all n fits without one
        row, the total penalty nλ held fixed. A measurement, nearly unbiased for the risk of a fit
        on n − 1 rows; not a bound.

    Examples
    --------
    >>> model = Ridge(regularization=2.5, fit_intercept=False).fit([[1.0], [2.0]], [1.0, 2.0])
    >>> model.coef_.round(6).tolist()
    [0.5]
    >>> float(round(model.facts_["leave_one_out_error"], 6))  # (25/81 + 25/9)/2
    1.54321
    """

    saved_as = "ridge/1"
    earlier: ClassVar[Names] = {"intercept": earlier_intercept(None)}
    _may_leave_out = True

    def __init__(
        self,
        *,
        regularization: float | str | None = None,
        grid: npt.ArrayLike | None = None,
        fit_intercept: bool = True,
        regularize_intercept: bool | None = None,
        solver: str = "auto",
        x_bound: float | None = None,
        y_bound: float | None = None,
        loss_bound: float | None = None,
        delta: float = 0.05,
    ) -> None:
        self.regularization = regularization
        self.grid = grid
        self.fit_intercept = fit_intercept
        self.regularize_intercept = regularize_intercept
        self.solver = solver
        self.x_bound = x_bound
        self.y_bound = y_bound
        self.loss_bound = loss_bound
        self.delta = delta

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """With and without stated bounds, λ given or chosen."""
        yield cls()
        yield cls(regularization=0.1, x_bound=1.0, y_bound=1.0)
        yield cls(
            regularization="loo", x_bound=1.0, y_bound=1.0, fit_intercept=False, loss_bound=50.0
        )

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """Each intercept, each solver, and λ chosen."""
        yield cls()
        yield cls(fit_intercept=False)
        yield cls(regularize_intercept=False)
        yield cls(solver="lsqr")
        yield cls(regularization="gcv")

    def expected_failures(self) -> dict[str, str]:
        """Choosing λ leaves a weighted row out whole; repeated rows are left out one by one."""
        chosen = isinstance(self.regularization, str)
        return dict.fromkeys(WEIGHTED_CHECKS, "a weighted row is left out whole") if chosen else {}

    def _describe(self) -> Parts:
        return self._parts()

    def _bounded(self) -> bool:
        """Whether something is stated of every row: what is left out is then fixed beforehand,
        as claims need it.
        """
        return self.x_bound is not None or self.y_bound is not None

    def _intercept(self) -> Intercept:
        if self.fit_intercept and self.regularize_intercept is None:
            return "regularized" if self._bounded() else "free"
        return intercept_of(self)

    def _candidates(self, total: float) -> tuple[float | str, Array]:
        given = self.regularization
        if given is None:
            given = FIXED if self._bounded() else 1 / total
        if isinstance(given, str):
            _check_choice("regularization", given, _CHOICES)
            grid = np.asarray(GRID if self.grid is None else self.grid, dtype=float)
            if grid.ndim != 1 or not grid.size or not (np.isfinite(grid) & (grid > 0)).all():
                raise ValueError("grid must be a list of finite numbers above 0")
            return given, grid
        if self.grid is not None:
            raise ValueError(
                "grid is for regularization='loo' or 'gcv': give one of them, or leave the grid out"
            )
        if not (math.isfinite(given) and given > 0):
            raise ValueError(
                f"regularization must be a number above 0, 'loo' or 'gcv', not {given!r}; for 0"
                " there is LeastSquares"
            )
        return float(given), np.zeros(0)

    def _bounds(self, X: Any, Y: Array) -> dict[str, float | None]:
        norms = sparse.linalg.norm(X, axis=1) if sparse.issparse(X) else np.linalg.norm(X, axis=1)
        _check_bound("x_bound", self.x_bound, norms, "‖x‖")
        _check_bound("y_bound", self.y_bound, np.linalg.norm(Y, axis=1), "|y|")
        _check_bound("loss_bound", self.loss_bound, np.zeros(1), "loss")
        return {
            "x_bound": self.x_bound,
            "y_bound": self.y_bound,
            "stated_loss_bound": self.loss_bound,
        }


class LeastSquares(_LeastSquares):
    """Least squares without a penalty: the solution of smallest norm (course notes, Section 3).

    Its certificate warns where the weights are chaotic, as in the notes' example of rows (0, 1) and
    (ε, 1) with targets 1 and −1, whose solution is (−2/ε, 1).

    Parameters
    ----------
    fit_intercept : whether to add b
    regularize_intercept : True takes b as the weight of a column of ones, so that it counts to the
        norm that is smallest; False centers rows and targets
    solver : "svd", "lsqr" (for large sparse rows) or "auto"
    tol : singular values below so much of the largest count as 0, as scikit-learn's
        LinearRegression has it: combinations of columns that hardly vary are left out (the record
        counts them), which unscaled columns need; 0 leaves out what is rounding, and is least
        squares to the letter. LSQR leaves out nothing
    delta : the failure probability of claims; without a penalty there are none

    Examples
    --------
    >>> model = LeastSquares(fit_intercept=False).fit([[0.0, 1.0], [1e-4, 1.0]], [1.0, -1.0])
    >>> model.coef_.round(3).tolist()
    [-20000.0, 1.0]
    >>> print(model.certificate_.lacking[1].reason.split(":")[0])
    the condition number is 2e+04
    """

    saved_as = "least-squares/1"
    earlier: ClassVar[Names] = {"intercept": earlier_intercept(False)}

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        regularize_intercept: bool = False,
        solver: str = "auto",
        tol: float = 1e-6,
        delta: float = 0.05,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.regularize_intercept = regularize_intercept
        self.solver = solver
        self.tol = tol
        self.delta = delta

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """As people make it, and to the letter."""
        yield cls()
        yield cls(tol=0.0, fit_intercept=False)

    def _describe(self) -> Parts:
        return self._parts()


def _half_slope(design: Design, W: Array, regularization: float) -> tuple[float, float]:
    """½‖∇F‖ at W, F minimized over a free intercept, as computed, and the most by which rounding
    can have hidden more of it.

    Every number of the design is within 4 eps of its own size, each sum of k products within k·eps
    of the lengths of its vectors. Rows centered by a mean that is rounded have a mean z̄ that is
    not quite 0: then F has Zᵀ(r − r̄), not Zᵀr.
    """
    rows, (n, k), eps = design.rows, design.rows.shape, float(np.finfo(float).eps)
    residual = rows @ W - design.targets
    half = float(np.linalg.norm(rows.T @ residual + regularization * W))
    length, size, left, targets = (
        float(np.linalg.norm(part)) for part in (rows, W, residual, design.targets)
    )
    rounding = eps * (
        length * ((k + 6) * length * size + 6 * targets + (n + 10) * left)
        + 4 * regularization * size
    )
    if design.intercept == "free":
        roots = np.sqrt(design.shares)
        off, mean = float(np.linalg.norm(roots @ rows)), float(np.linalg.norm(roots @ residual))
        rounding += (off + (n + 6) * eps * length) * (mean + (n + 6) * eps * (left + targets))
    return half, 2 * rounding


def _spectral_facts(spectrum: Spectrum, regularization: float) -> dict[str, Any]:
    left = spectrum.leave_one_out_error(regularization)
    return {
        "solver": "svd",
        "rank": spectrum.rank,
        "left_out": spectrum.left_out,
        "condition_number": spectrum.condition(regularization),
        "condition_number_unregularized": spectrum.condition(0.0),
        "leave_one_out_error": left if math.isfinite(left) else None,
        "degrees_of_freedom": float(len(spectrum.U) - spectrum.complements(regularization).sum()),
    }


def _check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")


def _check_bound(name: str, bound: float | None, seen: Array, what: str) -> None:
    if bound is None:
        return
    if not (math.isfinite(bound) and bound > 0):
        raise ValueError(f"{name} must be a finite number above 0, not {bound!r}")
    if (worst := int(np.argmax(seen))) >= 0 and seen[worst] > bound * (1 + 1e-12):
        raise ValueError(
            f"{name}={bound:g} but row {worst} has {what} = {seen[worst]:g}: state a bound that"
            " holds for every row"
        )


def _dense(X: Any) -> Array:
    return X.toarray() if sparse.issparse(X) else X
