"""Least squares and ridge regression, with what is certain about the fit.

Ridge minimizes (1/n)·Σ‖x_i W − y_i‖² + λ‖W‖² (course notes, Definition 3.4). Its certificate holds the exact leave-one-out
error, the uniform stability for a λ fixed beforehand, and the condition number that explains the notes' ε-example.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import (
    _check_sample_weight,  # pyright: ignore[reportAttributeAccessIssue]
    check_is_fitted,
    validate_data,
)

from surelearn.base import Learner, Writer
from surelearn.bounds import beta_ridge, bousquet_elisseeff, uniform_stability_nonnegative
from surelearn.bounds.stability import LOSS_NONNEGATIVE, UNIFORM
from surelearn.linear.leave_one_out import LeaveOneOut, ridge_leave_one_out
from surelearn.linear.ridge.sparse import solve_sparse
from surelearn.linear.ridge.spectrum import INTERCEPTS, Array, Design, Intercept, Spectrum

GRID = tuple(float(10.0**k) for k in np.linspace(-6, 2, 25))  # fixed before any data, so that δ can be shared among it
DENSE_ENTRIES = 10_000_000  # sparse rows are made dense up to so many entries (80 MB)
ILL_CONDITIONED = 1000.0
_CHOICES = ("loo", "gcv")
_SOLVERS = ("auto", "svd", "lsqr")


class _LeastSquares(MultiOutputMixin, RegressorMixin, Learner):
    """What least squares and ridge regression share: fitting, predicting, claims."""

    takes_sparse = True

    intercept: Intercept
    solver: str
    delta: float

    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows ``X`` (n, d), dense or sparse, and targets ``y`` (n,) or (n, t).

        With ``sample_weight`` s the loss is Σ s_i‖x_i W − y_i‖²/Σs, and no claim about the training rows is made.
        """
        _check_choice("intercept", self.intercept, INTERCEPTS)
        _check_choice("solver", self.solver, _SOLVERS)
        regularization, grid = self._candidates()
        X, y = validate_data(self, X, y, accept_sparse=("csr", "csc"), multi_output=True, y_numeric=True, dtype=np.float64)
        Y = np.asarray(y, dtype=float).reshape(len(y), -1)
        bounds = self._bounds(X, Y)
        weights, weighted = None, False
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            X, Y, weights = X[weights > 0], Y[weights > 0], weights[weights > 0]
            weighted = bool(np.ptp(weights) > 0)
        facts: dict[str, Any] = {"n": X.shape[0], "d": X.shape[1], "outputs": Y.shape[1], "weighted": weighted}
        facts |= {"intercept": self.intercept, "chosen_by": "", "candidates": 1, **bounds}
        dense = self.solver == "svd" or not sparse.issparse(X)
        if self.solver == "auto" and sparse.issparse(X):
            dense = X.shape[0] * X.shape[1] <= DENSE_ENTRIES
        if dense:
            coef, intercept = self._fit_dense(_dense(X), Y, weights, regularization, grid, facts)
        else:
            coef, intercept = self._fit_sparse(X, Y, weights, regularization, facts)
        self.coef_ = coef.T if np.ndim(y) == 2 else coef[:, 0]
        self.intercept_ = intercept if np.ndim(y) == 2 else float(intercept[0])
        self.regularization_ = float(facts["regularization"])
        facts["weight_norm"] = float(np.linalg.norm(coef))
        losses = ((X @ coef + intercept - Y) ** 2).sum(1)
        facts["training_risk"] = float(losses.mean() if weights is None else weights @ losses / weights.sum())
        self.facts_ = facts | _stability_facts(facts, losses)
        return self

    def predict(self, X: Any) -> Array:
        """Predictions, shape (n,) or (n, t)."""
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, accept_sparse=("csr", "csc"), reset=False, dtype=np.float64)
        return X @ self.coef_.T + self.intercept_

    def leave_one_out(self, X: Any, y: Any, rows: Any = None) -> LeaveOneOut:
        """The fits without one row of ``X``, ``y``, the rows it was fitted on, with this λ; see `ridge_leave_one_out`.

        Raises
        ------
        ValueError
            if there is no closed form: rows were weighted, or λ is 0
        """
        check_is_fitted(self, "coef_")
        if self.facts_["weighted"] or not self.regularization_ > 0:
            raise ValueError("there is a closed form only for λ > 0 and rows of equal weight")
        return ridge_leave_one_out(X, y, self.regularization_, intercept=self.intercept, weights=True, rows=rows)

    def leave_one_out_predictions(self, X: Any, y: Any) -> Array | None:
        """Each row's prediction by the fit to all others with the same λ beside the mean loss; None if n fits are needed."""
        if sparse.issparse(X) or isinstance(self._candidates()[0], str):
            return None
        Y = np.asarray(y, dtype=float)
        spectrum = Spectrum.of(Design.of(np.asarray(X, dtype=float), Y.reshape(len(Y), -1), None, self.intercept))
        left = spectrum.leave_one_out(float(self._candidates()[0]) * (1 - 1 / len(Y)))
        return None if left is None else Y - left.reshape(Y.shape)

    def _candidates(self) -> tuple[float | str, Array]:
        """λ or the way to choose it, and the grid to choose from."""
        return 0.0, np.zeros(0)

    def _bounds(self, X: Any, Y: Array) -> dict[str, float | None]:  # noqa: ARG002
        """What the user states about every row, checked on these."""
        return {"x_bound": None, "y_bound": None, "stated_loss_bound": None}

    def _fit_dense(
        self, X: Array, Y: Array, weights: Array | None, regularization: float | str, grid: Array, facts: dict[str, Any]
    ) -> tuple[Array, Array]:
        design = Design.of(X, Y, weights, self.intercept)
        spectrum = Spectrum.of(design)
        if isinstance(regularization, str):
            error = spectrum.leave_one_out_error if regularization == "loo" else spectrum.generalized_cross_validation
            self.grid_, self.grid_errors_ = grid, np.array([error(float(lam)) for lam in grid])
            facts |= {"chosen_by": regularization, "candidates": len(grid)}
            regularization = float(grid[np.argmin(self.grid_errors_)])
        W = spectrum.weights(regularization)
        left = spectrum.leave_one_out_error(regularization)
        slope = design.rows.T @ (design.rows @ W - design.targets) + regularization * W
        facts |= {
            "regularization": regularization,
            "solver": "svd",
            "rank": spectrum.rank,
            "condition_number": spectrum.condition(regularization),
            "condition_number_unregularized": spectrum.condition(0.0),
            "leave_one_out_error": left if math.isfinite(left) else None,
            "degrees_of_freedom": float(len(X) - spectrum.complements(regularization).sum()),
            "half_slope": float(np.linalg.norm(slope)),
        }
        return design.split(W)

    def _fit_sparse(
        self, X: Any, Y: Array, weights: Array | None, regularization: float | str, facts: dict[str, Any]
    ) -> tuple[Array, Array]:
        if isinstance(regularization, str):
            raise ValueError(
                f"regularization={regularization!r} needs the singular values: give a number, or solver='svd' if the rows"
                " fit in memory as a dense array"
            )
        shares = np.full(X.shape[0], 1 / X.shape[0]) if weights is None else weights / weights.sum()
        coef, intercept, half_slope = solve_sparse(X, Y, shares, regularization, self.intercept)
        facts |= {"regularization": regularization, "solver": "lsqr", "leave_one_out_error": None, "half_slope": half_slope}
        return coef, intercept

    def _claim(self, writer: Writer) -> None:
        facts = self.facts_
        if facts["leave_one_out_error"] is None:
            why = "LSQR gives no leverages" if facts["solver"] == "lsqr" else "a row determines its own prediction"
            writer.absent("leave-one-out error", why)
        if facts.get("condition_number", 0.0) > ILL_CONDITIONED:
            writer.absent("stable weights", _ill_conditioned(facts["condition_number"]))
        if reason := _no_stability(facts):
            writer.absent("uniform stability", reason, beta_ridge.key)
            writer.absent("risk", reason, uniform_stability_nonnegative.key)
            writer.absent("risk", reason, bousquet_elisseeff.key)
            return
        self._claim_stability(writer)

    def _claim_stability(self, writer: Writer) -> None:
        """Uniform stability of ridge with this λ, and the two bounds on the risk that follow.

        With λ chosen on the rows, the learner that chooses is not stable; each λ of the grid is, at its share of δ.
        """
        facts, candidates = self.facts_, self.facts_["candidates"]
        further = ["‖x‖ ≤ x_bound and |y| ≤ y_bound for every row, as stated"]
        further += [f"the weights are within {facts['distance']:.1e} of the minimizer's; the risk includes it"]
        if candidates > 1:
            further += [
                f"of the hyperparameters λ alone was chosen, among {candidates} values fixed beforehand, which share δ"
            ]
        if candidates == 1:
            read = {name: name for name in ("y_bound", "regularization", "n")}
            writer.claim(beta_ridge, {**read, "x_bound": "padded_x_bound"}, loss="squared", met=(UNIFORM,))
        else:
            reason = "λ was chosen on the rows: one row may change the choice, which no stability constant covers"
            writer.absent("uniform stability", reason, beta_ridge.key)
        common: dict[str, Any] = {
            "loss": "squared",
            "candidates": candidates,
            "met": (UNIFORM,),
            "assumptions": further,
        }
        if facts["stated_loss_bound"] is None:
            common["met"] = (UNIFORM, LOSS_NONNEGATIVE)  # it follows from the bounds on x and y
        read = {"risk": "risk", "beta": "stability", "n": "n", "loss_bound": "loss_bound"}
        writer.claim(uniform_stability_nonnegative, read, **common)
        if facts["leave_one_out_error"] is None:
            writer.absent("risk", "the leave-one-out error is not known", bousquet_elisseeff.key)
        else:
            read |= {"risk": "leave_one_out_risk", "beta": "remove_one_stability"}
            writer.claim(bousquet_elisseeff, read, leave_one_out=True, **common)


class Ridge(_LeastSquares):
    """Ridge regression: (1/n)·Σ‖x_i W + b − y_i‖² + λ‖W‖², from one singular value decomposition.

    Parameters
    ----------
    regularization : λ > 0 beside the *mean* squared loss (scikit-learn's ``alpha`` is nλ), or "loo" or "gcv": the one of
        ``grid`` with the least exact leave-one-out error, or the least generalized cross-validation (with
        ``sample_weight`` a row is left out whole, not one of its copies)
    grid : values of λ to choose from, fixed before seeing the rows; 25 from 1e-6 to 100 unless told
    intercept : "regularized" (a column of ones, penalized like the others), "free" (centred; no stability claims) or "none"
    solver : "svd", "lsqr" (for large sparse rows) or "auto"
    x_bound, y_bound : bounds on ‖x‖ and on ``|y|`` (its norm if there are several outputs) that hold for *every* row, not
        only these; the stability claims need them
    loss_bound : a bound on the squared loss, if a smaller one is known than what x_bound and y_bound imply
    delta : the failure probability of each claim

    Attributes
    ----------
    coef_ : (d,) or (t, d)
    intercept_ : a number, or (t,)
    regularization_ : the λ used
    grid_, grid_errors_ : the grid and its leave-one-out or generalized cross-validation errors, where λ was chosen
    facts_ : among others ``leave_one_out_error``: the mean squared error of all n fits without one row, the total penalty nλ
        held fixed. A measurement, nearly unbiased for the risk of a fit on n − 1 rows; not a bound.

    Examples
    --------
    >>> model = Ridge(regularization=2.5, intercept="none").fit([[1.0], [2.0]], [1.0, 2.0])
    >>> model.coef_.round(6).tolist()
    [0.5]
    >>> float(round(model.facts_["leave_one_out_error"], 6))  # (25/81 + 25/9)/2
    1.54321
    """

    def __init__(
        self,
        *,
        regularization: float | str = 0.01,
        grid: npt.ArrayLike | None = None,
        intercept: Intercept = "regularized",
        solver: str = "auto",
        x_bound: float | None = None,
        y_bound: float | None = None,
        loss_bound: float | None = None,
        delta: float = 0.05,
    ) -> None:
        self.regularization = regularization
        self.grid = grid
        self.intercept = intercept
        self.solver = solver
        self.x_bound = x_bound
        self.y_bound = y_bound
        self.loss_bound = loss_bound
        self.delta = delta

    def _candidates(self) -> tuple[float | str, Array]:
        if isinstance(self.regularization, str):
            _check_choice("regularization", self.regularization, _CHOICES)
            grid = np.asarray(GRID if self.grid is None else self.grid, dtype=float)
            if grid.ndim != 1 or not grid.size or not (np.isfinite(grid) & (grid > 0)).all():
                raise ValueError("grid must be a list of finite numbers above 0")
            return self.regularization, grid
        if self.grid is not None:
            raise ValueError("grid is for regularization='loo' or 'gcv': give one of them, or leave the grid out")
        if not (math.isfinite(self.regularization) and self.regularization > 0):
            raise ValueError(
                f"regularization must be a number above 0, 'loo' or 'gcv', not {self.regularization!r}; for 0 there is"
                " LeastSquares"
            )
        return float(self.regularization), np.zeros(0)

    def _bounds(self, X: Any, Y: Array) -> dict[str, float | None]:
        norms = sparse.linalg.norm(X, axis=1) if sparse.issparse(X) else np.linalg.norm(X, axis=1)
        _check_bound("x_bound", self.x_bound, norms, "‖x‖")
        _check_bound("y_bound", self.y_bound, np.linalg.norm(Y, axis=1), "|y|")
        _check_bound("loss_bound", self.loss_bound, np.zeros(1), "loss")
        return {"x_bound": self.x_bound, "y_bound": self.y_bound, "stated_loss_bound": self.loss_bound}


class LeastSquares(_LeastSquares):
    """Least squares without a penalty: the solution of smallest norm (course notes, Section 3).

    Its certificate warns where the weights are chaotic, as in the notes' example of rows (0, 1) and (ε, 1) with targets 1
    and −1, whose solution is (−2/ε, 1).

    Parameters
    ----------
    intercept : "free" (centred), "none", or "regularized" (a column of ones)
    solver : "svd", "lsqr" (for large sparse rows) or "auto"
    delta : the failure probability of claims; without a penalty there are none

    Examples
    --------
    >>> model = LeastSquares(intercept="none").fit([[0.0, 1.0], [1e-4, 1.0]], [1.0, -1.0])
    >>> model.coef_.round(3).tolist()
    [-20000.0, 1.0]
    >>> print(model.certificate_.absent[1].reason.split(":")[0])
    the condition number is 2e+04
    """

    def __init__(self, *, intercept: Intercept = "free", solver: str = "auto", delta: float = 0.05) -> None:
        self.intercept = intercept
        self.solver = solver
        self.delta = delta


def _stability_facts(facts: dict[str, Any], losses: Array) -> dict[str, Any]:
    """What the stability claims read.

    With Y = y_bound, X = √(x_bound² + 1) if padded, ‖W*‖ ≤ Y/(2√λ): W* = V diag(s/(s² + λ)) Uᵀ(y/√n), and s/(s² + λ) is
    largest at s = √λ. So no loss of the minimizer exceeds M = Y²(1 + X/(2√λ))². The objective is 2λ-strongly convex, so
    the weights found are within ε = ‖∇‖/(2λ) of it, which changes any loss by at most t = Xε(2√M + Xε); the risk bound of
    the minimizer then holds for them with 2t added. Removing a row, 1/n and so nλ kept, moves the minimizer half as far as
    replacing one, from n rows as from n − 1: half of β, for the bound from the leave-one-out error.
    """
    if _no_stability(facts):
        return {}
    lam, n, y_bound = facts["regularization"], facts["n"], facts["y_bound"]
    x_bound = math.hypot(facts["x_bound"], 1.0) if facts["intercept"] == "regularized" else float(facts["x_bound"])
    derived = (y_bound * (1 + x_bound / (2 * math.sqrt(lam)))) ** 2
    stated = facts["stated_loss_bound"]
    if stated is not None and losses.max() > stated * (1 + 1e-12):
        raise ValueError(f"loss_bound={stated:g} but a training row has loss {losses.max():g}: state a bound that holds")
    distance = facts["half_slope"] / lam
    change = x_bound * distance * (2 * math.sqrt(derived) + x_bound * distance)
    left = facts["leave_one_out_error"]
    beta = float(beta_ridge(x_bound, y_bound, lam, n))
    return {
        "padded_x_bound": x_bound,
        "stability": beta,
        "remove_one_stability": beta / 2,
        "loss_bound": derived if stated is None else min(float(stated), derived),
        "distance": distance,
        "risk": facts["training_risk"] + 2 * change,
        "leave_one_out_risk": None if left is None else left + 2 * change,
    }


def _no_stability(facts: dict[str, Any]) -> str:
    """Why no stability is claimed, or ""."""
    if facts["weighted"]:
        return "rows were weighted unequally, and the theorem weighs them equally"
    if facts["intercept"] == "free":
        return "the intercept is free: use intercept='regularized' or 'none', whose stability is known"
    if facts["regularization"] == 0:
        return "without a penalty least squares is not uniformly stable: use Ridge with a regularization fixed beforehand"
    if facts["x_bound"] is None:
        return "state x_bound=, a bound on ‖x‖ that holds for every row"
    if facts["y_bound"] is None:
        return "state y_bound=, a bound on |y| that holds for every row"
    return ""


def _ill_conditioned(condition: float) -> str:
    """The warning of the notes' ε-example, with its number."""
    size = "infinite" if math.isinf(condition) else f"{condition:.0e}"
    return (
        f"the condition number is {size}: a relative change of y may change the weights so many times as much; columns"
        " depend on each other nearly, or differ in scale: scale them, leave some out, or regularize more"
    )


def _check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")


def _check_bound(name: str, bound: float | None, seen: Array, what: str) -> None:
    if bound is None:
        return
    if not (math.isfinite(bound) and bound > 0):
        raise ValueError(f"{name} must be a finite number above 0, not {bound!r}")
    if (worst := int(np.argmax(seen))) >= 0 and seen[worst] > bound * (1 + 1e-12):
        raise ValueError(
            f"{name}={bound:g} but row {worst} has {what} = {seen[worst]:g}: state a bound that holds for every row"
        )


def _dense(X: Any) -> Array:
    return X.toarray() if sparse.issparse(X) else X
