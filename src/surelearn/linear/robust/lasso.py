"""The square-root lasso: linear regression whose features may have been perturbed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, lars_path
from sklearn.utils.validation import check_is_fitted, validate_data

from surelearn import bounds
from surelearn.earlier import Names
from surelearn.linear._regressor import LinearRegressor, require_positive
from surelearn.linear.robust.record import SquareRootLassoRecord
from surelearn.optim.spread import column_spreads, divided
from surelearn.optim.stopping import Stopper
from surelearn.subject import Parts, linear_form
from surelearn.types import RowsLike

Array = npt.NDArray[np.float64]

# by which a dual value is lowered, so that rounding cannot lift it above the optimum
ROUNDING = 1e-12
DESCENTS = 8  # trial penalties by coordinate descent before the path is followed
RELATIVE = 0.5  # the radius where none is stated, in units of each column's spread
PATH_ENTRIES = 20_000_000  # of X, above which it is not: the path takes a dense matrix


class SquareRootLasso(LinearRegressor):
    """Minimizes ‖Xw + b − y‖₂ + λ‖w‖₁, the worst case of ‖(X + Z)w + b − y‖₂ when no column of Z
    exceeds λ.

    Course, Section 17. The minimizer is a lasso solution whose penalty is proportional to its own
    residual, ½‖Xw − y‖₂² + α‖w‖₁ with α = λ‖Xw − y‖₂. Coordinate descent finds the support for a
    trial α; on a fixed support with fixed signs the fit is solved in closed form; the duality gap
    decides. Unlike the lasso's, a good λ does not depend on the noise level.

    Parameters
    ----------
    radius : λ > 0, in the units of a column's Euclidean norm: it grows as √n for features measured
        with errors. None is half of each column's own spread on the rows (`column_spreads`), λ_j =
        s_j/2, so that columns of any size may be mixed: ‖Xw + b − y‖₂ + ``Σ λ_j·|w_j|`` is
        minimized, and column j of Z does not exceed λ_j
    fit_intercept : whether to add b, which is neither penalized nor perturbed
    tol : the duality gap to reach, relative to the residual of w = 0
    max_iter : the most trial penalties
    delta : failure probability of claims (those made here hold always)

    Attributes
    ----------
    coef_ : array (d,)
    intercept_ : float
    n_iter_ : trial penalties used
    facts_ : objective, norms, and the dual vector's

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> y = 2 * X[:, 0] + rng.normal(size=100)
    >>> SquareRootLasso(radius=0.1).fit(X, y).coef_.round(2).tolist()
    [1.98, -0.12, -0.15]
    >>> model = SquareRootLasso(radius=2.0).fit(X, y)
    >>> model.coef_.round(2).tolist()
    [1.82, 0.0, 0.0]
    >>> print(model.certificate_["perturbed_residual_norm"])
    perturbed residual norm ≤ 13.04  (always, robust regression is the square-root lasso)
    """

    saved_as = "square-root-lasso/1"
    earlier: ClassVar[Names] = {"tolerance": "tol"}
    Record = SquareRootLassoRecord

    def __init__(
        self,
        *,
        radius: float | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-8,
        max_iter: int = 100,
        delta: float = 0.05,
    ) -> None:
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.delta = delta

    def fit(
        self, X: RowsLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> SquareRootLasso:
        """Fit; weights count rows: the residual's norm is √Σ s_i r_i²."""
        require_positive(radius=RELATIVE if self.radius is None else self.radius)
        require_positive(tol=self.tol, max_iter=self.max_iter)
        X, y, weights = self._rows(X, y, sample_weight, "csc")
        design, spreads = self._design(X, y, weights)
        found = _solve(design, self._radius(), self.tol, int(self.max_iter))
        self.coef_, self.n_iter_ = found.weights / spreads, found.iterations
        self.intercept_ = float(design.target_mean - design.means @ found.weights)
        if found.gap > self.tol * design.size:
            warnings.warn(
                f"the duality gap is {found.gap:.3g} after {found.iterations} trial penalties:"
                " raise max_iter",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.facts_ = self._measured(X, y, weights, found, spreads)
        return self

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """With a free intercept, and without; the radius in the columns' spreads, and stated."""
        yield cls()
        yield cls(radius=0.5)
        yield cls(radius=0.5, fit_intercept=False)

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """At its defaults."""
        yield cls()

    def measure_again(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> dict[str, Any]:
        """The record's fields that the fitted model and the rows tell, measured again; the dual
        vector is found again.
        """
        check_is_fitted(self)
        rows, targets, weights = self._rows(X, y, sample_weight, "csc", reset=False)
        design, spreads = self._design(rows, targets, weights)
        found = _solve(design, self._radius(), self.tol, int(self.max_iter))
        return self._measured(rows, targets, weights, found, spreads)

    def _radius(self) -> float:
        return RELATIVE if self.radius is None else float(self.radius)

    def _design(self, X: Any, y: Array, weights: Array) -> tuple[_Design, Array]:
        """Rows as they are solved, and what their columns were divided by: 1 where the radius
        is in their own units.
        """
        spreads = column_spreads(X, weights) if self.radius is None else np.ones(X.shape[1])
        return (
            _Design(
                X if self.radius is not None else divided(X, spreads),
                y,
                weights,
                bool(self.fit_intercept),
            ),
            spreads,
        )

    def _measured(
        self, X: Any, y: Array, weights: Array, found: _Found, spreads: Array
    ) -> dict[str, Any]:
        design, solved = found.design, self.coef_ * spreads
        l1_norm = float(np.abs(solved).sum())
        left = float(np.linalg.norm(design.b - design.times(solved)))
        return {
            "n": int(X.shape[0]),
            "d": int(X.shape[1]),
            "radius": self._radius(),
            "relative": self.radius is None,
            "residual_norm": float(np.linalg.norm(X @ self.coef_ + self.intercept_ - y)),
            "l1_norm": l1_norm,
            "objective": left + self._radius() * l1_norm,
            "dual_inner": found.dual[0],
            "dual_norm": found.dual[1],
            "dual_correlation": found.dual[2],
            "non_zeros": int(np.count_nonzero(self.coef_)),
            "weighted": bool((weights != 1).any()),
            "free_intercept": bool(self.fit_intercept),
        }

    def worst_perturbation(self, X: RowsLike, y: npt.ArrayLike) -> Array:
        """A matrix Z, no column longer than λ, that makes ‖(X + Z)w + b − y‖₂ as large as any does:
        + λ‖w‖₁.

        z_j = λ·sgn(w_j)·u with u the residual's direction; where the residual is 0, any u of length
        1 does. ``X``, ``y`` are the rows it was fitted on, whose spreads are the units of a radius
        that was left out.

        Examples
        --------
        >>> X, y = [[4.0], [0.0]], [4.0, 2.0]
        >>> model = SquareRootLasso(radius=2.0, fit_intercept=False).fit(X, y)
        >>> Z = model.worst_perturbation(X, y)
        >>> round(float(np.linalg.norm(Z)), 6)
        2.0
        >>> round(float(np.linalg.norm((X + Z) @ model.coef_ - y)), 4) == round(model.facts_["objective"], 4)
        True
        """
        check_is_fitted(self)
        rows, targets = validate_data(
            self, X, y, accept_sparse=("csr", "csc"), dtype=np.float64, y_numeric=True, reset=False
        )  # fmt: skip
        residual = np.asarray(rows @ self.coef_ + self.intercept_ - targets, dtype=np.float64)
        size = np.linalg.norm(residual)
        direction = residual / size if size > 0 else np.eye(1, len(residual)).ravel()
        spreads = 1.0 if self.radius is not None else column_spreads(rows)
        return np.outer(direction, self._radius() * spreads * np.sign(self.coef_))

    def _describe(self) -> Parts:
        check_is_fitted(self)
        return Parts(lambda: linear_form(self.coef_, self.intercept_))


class _Design:
    """√s-weighted, centered rows A and targets b, with A implicit for sparse input."""

    def __init__(self, X: Any, y: Array, weights: Array, centered: bool) -> None:
        kept = weights > 0
        self.X = X if kept.all() else X[kept]
        self.y, self.weights, self.centered = y[kept], weights[kept], centered
        # centering by weighted means frees the intercept; sparse rows are never centered in memory
        self.root = np.sqrt(self.weights)
        total = self.weights.sum()
        self.means = (
            np.asarray(self.X.T @ self.weights).ravel() / total
            if centered
            else np.zeros(X.shape[1])
        )
        self.target_mean = float(self.y @ self.weights / total) if centered else 0.0
        self.b = self.root * (self.y - self.target_mean)
        self.size = float(np.linalg.norm(self.b))
        self.A = (
            None
            if sparse.issparse(X)
            else np.asfortranarray(self.root[:, None] * (self.X - self.means))
        )

    def times(self, w: Array) -> Array:
        """Aw."""
        return self.A @ w if self.A is not None else self.root * (self.X @ w - self.means @ w)

    def correlate(self, u: Array) -> Array:
        """Aᵀu."""
        if self.A is not None:
            return self.A.T @ u
        scaled = self.root * u
        return self.X.T @ scaled - self.means * scaled.sum()

    def columns(self, chosen: npt.NDArray[np.intp]) -> Array:
        """The chosen columns of A, dense."""
        if self.A is not None:
            return self.A[:, chosen]
        return self.root[:, None] * (self.X[:, chosen].toarray() - self.means[chosen])

    def lasso(self, alpha: float, start: Array, tolerance: float) -> Array:
        """The minimizer of ½‖Aw − b‖² + α‖w‖₁ by scikit-learn's coordinate descent."""
        total = len(self.b) if self.A is not None else self.weights.sum()
        # scikit-learn centers sparse columns without filling them
        inner = self.A is None and self.centered
        solver = Lasso(
            alpha=alpha / total, fit_intercept=inner, tol=tolerance, max_iter=1000, warm_start=True
        )
        solver.coef_ = start.copy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the duality gap of the whole problem decides
            if self.A is not None:
                solver.fit(self.A, self.b)
            else:
                solver.fit(self.X, self.y, sample_weight=self.weights)
        return np.asarray(solver.coef_, dtype=np.float64).ravel()


@dataclass
class _Found:
    """The best weights and the best dual vector so far; their difference is the duality gap."""

    design: _Design
    radius: float
    weights: Array = field(init=False)
    objective: float = field(init=False)
    dual: tuple[float, float, float] = field(init=False, default=(0.0, 0.0, 0.0))
    lower: float = field(init=False, default=0.0)
    iterations: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.weights, self.objective = np.zeros_like(self.design.means), self.design.size
        self.bound_by(self.design.b)

    @property
    def gap(self) -> float:
        return max(0.0, self.objective - self.lower)

    def consider(self, w: Array) -> Array:
        """Keep w if it is the best so far; its residual."""
        residual = self.design.b - self.design.times(w)
        objective = float(np.linalg.norm(residual) + self.radius * np.abs(w).sum())
        if objective < self.objective:
            self.weights, self.objective = w, objective
        self.bound_by(residual)
        return residual

    def bound_by(self, residual: Array) -> None:
        """Keep u = r/‖r‖ as the dual vector if its value, made feasible, is the largest so far."""
        if (size := np.linalg.norm(residual)) == 0:
            return
        u = residual / size
        inner = float(max(0.0, u @ self.design.b)) * (1 - ROUNDING)
        dual = (inner, float(np.linalg.norm(u)), float(np.abs(self.design.correlate(u)).max()))
        lower = bounds.square_root_lasso_optimum(*dual, self.radius)
        if lower > self.lower:
            self.dual, self.lower = dual, lower


def _solve(design: _Design, radius: float, tolerance: float, max_iter: int) -> _Found:
    """Find α with α = λ‖r(α)‖ on the lasso's path: ‖r(α)‖/α falls with α, so that trials
    bracket it.
    """
    found, stopper = _Found(design, radius), Stopper(passes=max_iter)
    low, high = 0.0, radius * design.size
    alpha, precision = high, 1e-4
    w = found.weights
    while found.gap > tolerance * design.size and alpha > 1e-14 * radius * design.size:
        if stopper.done == DESCENTS:
            _along_path(design, radius, found)
        w = design.lasso(alpha, w, precision)
        target = radius * float(np.linalg.norm(found.consider(w)))
        jump = _on_support(design, w, radius, found)
        low, high = (low, alpha) if target < alpha else (alpha, high)
        choices = (jump, target, np.sqrt(low * high), high / 10)
        alpha = next((float(a) for a in choices if low < a < high), high / 2)
        precision = max(precision / 10, 1e-15)
        if stopper.after(converged=found.gap <= tolerance * design.size):
            break
    found.iterations = stopper.done
    return found


def _along_path(design: _Design, radius: float, found: _Found) -> None:
    """Follow the whole lasso path from corner to corner (LARS) to the penalty with α = λ‖r(α)‖; for
    few rows and small λ.

    There the residual is 0 or nearly so and coordinate descent crawls. The path is exact but for
    degenerate rows.
    """
    if design.X.shape[0] * design.X.shape[1] > PATH_ENTRIES:
        return
    A = design.columns(np.arange(design.X.shape[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the duality gap decides
        corners = lars_path(A, design.b, method="lasso", max_iter=8 * min(A.shape))[2]
    sizes = np.linalg.norm(design.b[:, None] - A @ corners, axis=0)
    penalties = np.abs(A.T @ (design.b[:, None] - A @ corners)).max(axis=0)
    last = min(int(np.argmax(radius * sizes > penalties)) or len(sizes) - 1, len(sizes) - 1)
    for corner in {max(last - 1, 0), last}:
        found.consider(corners[:, corner])
    if last > 0:
        _on_support(design, (corners[:, last - 1] + corners[:, last]) / 2, radius, found)


def _on_support(design: _Design, w: Array, radius: float, found: _Found) -> float:
    """Solve the problem in closed form on the support and signs of w; the penalty α that belongs to
    it.

    With S the support and s its signs, A_Sᵀr = αs and α = λ‖r‖. The residual splits into r₀ of
    least squares and αq, q = A_S(A_SᵀA_S)⁻¹s, orthogonal to it: α² = λ²‖r₀‖²/(1 − λ²‖q‖²).
    """
    chosen = np.flatnonzero(w)
    if not 0 < len(chosen) <= len(design.b):
        return 0.0
    columns, signs = design.columns(chosen), np.sign(w[chosen])
    Q, R = linalg.qr(columns, mode="economic")
    if np.abs(np.diag(R)).min() <= 1e-10 * np.abs(np.diag(R)).max():
        return 0.0  # dependent columns: coordinate descent goes on alone
    half = linalg.solve_triangular(R, signs, trans="T")  # ‖q‖ = ‖R⁻ᵀs‖
    fitted = Q.T @ design.b
    left = float(np.linalg.norm(design.b - Q @ fitted))
    if left <= 1e-13 * design.size:
        left = 0.0
    rest = 1 - radius**2 * float(half @ half)
    alpha = radius * left / np.sqrt(rest) if rest > 0 else 0.0
    solution = np.zeros_like(w)
    solution[chosen] = linalg.solve_triangular(R, fitted - alpha * half)
    found.consider(solution)
    return alpha
