"""Regression that a few wild targets cannot rule: Huber's convex loss, and clipped losses in
variational form.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from surelearn.earlier import Names
from surelearn.lacking import Lacking
from surelearn.linear._regressor import (
    LinearRegressor,
    require_bound,
    require_nonnegative,
    require_positive,
    row_norms,
)
from surelearn.linear.robust.losses import (
    KNEE,
    Array,
    Clipped,
    Problem,
    huber_dual,
    minimize_clipped,
    minimize_huber,
    scale_of_rows,
)
from surelearn.linear.robust.record import HuberRecord, VariationalRecord
from surelearn.losses import huber_loss
from surelearn.optim.spread import around_spreads
from surelearn.record import Within
from surelearn.subject import Around, Objective, Parts, linear_form
from surelearn.types import RowsLike

KINDS = ("truncation", "geman_mcclure")
PENALTY = 1e-4  # λ where none is stated
# the threshold of a clipped loss in units of σ: 96% of least squares' efficiency at normal
# residuals
CLIPPED = 4.0


class HuberRegression(LinearRegressor):
    """Minimizes (1/n)·Σ M^η(⟨w, x_i⟩ + b − y_i) + λ‖w‖², M^η the Moreau envelope of ``η|·|``,
    exactly.

    Course, Section 17; the outer branch of M^η is ``η|t| − ½η²`` (printed with ½t², a misprint).
    Squared for residuals up to η, linear beyond: a target's pull is at most η. Unlike
    scikit-learn's HuberRegressor, η is in the units of y and fixed.

    Parameters
    ----------
    threshold : η > 0, the residual beyond which the loss is linear. None is 1 where x_bound is
        stated, else 1.345 times the scale of the residuals (`scale_of_rows`), which looks at the
        rows and voids the stability claim
    regularization : λ ≥ 0. None is 10⁻⁴: where x_bound is stated as it is, else of the weights of
        columns divided by their spread (`column_spreads`), λ·Σ(s_j·w_j)², so that columns of any
        size may be mixed; which voids that claim, too
    fit_intercept : whether to add b, which is not penalized; a free intercept voids the stability
        claim
    x_bound, y_bound : bounds on ‖x‖ and ``|y|`` that hold for every row, of which stability and
        risk claims are made
    tol : the gradient norm to reach, relative to η·x_bound (η times the largest ‖x‖ seen, if
        not stated)
    max_iter : the most Newton steps
    delta : failure probability of claims

    Attributes
    ----------
    coef_, intercept_ : w and b, in the columns' own units
    threshold_ : η
    spreads_ : what the columns were divided by for the penalty, (d,); 1 where λ was stated

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 200.0, 3.0, 4.0]
    >>> HuberRegression(threshold=0.1, regularization=0.0).fit(X, y).coef_.round(2).tolist()
    [1.0]
    >>> model = HuberRegression(threshold=0.1, regularization=0.1, fit_intercept=False, x_bound=4.0).fit(X, y)
    >>> print(model.certificate_["uniform_stability"])
    uniform stability ≤ 0.3201  (always, stability of Huber regression)
    """

    saved_as = "huber-regression/1"
    earlier: ClassVar[Names] = {"tolerance": "tol"}
    Record = HuberRecord

    def __init__(
        self,
        *,
        threshold: float | None = None,
        regularization: float | None = None,
        fit_intercept: bool = True,
        x_bound: float | None = None,
        y_bound: float | None = None,
        tol: float = 1e-10,
        max_iter: int = 200,
        delta: float = 0.05,
    ) -> None:
        self.threshold = threshold
        self.regularization = regularization
        self.fit_intercept = fit_intercept
        self.x_bound = x_bound
        self.y_bound = y_bound
        self.tol = tol
        self.max_iter = max_iter
        self.delta = delta

    def fit(
        self, X: RowsLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> HuberRegression:
        """Fit; weights count rows."""
        require_positive(tol=self.tol, max_iter=self.max_iter)
        _require_stated(self)
        problem, scale, weighted = self._problem(X, y, sample_weight, reset=True)
        self.spreads_ = problem.spreads
        self.threshold_ = self._stated_threshold() or KNEE * scale_of_rows(
            problem, self.tol * scale
        )
        reach = self.tol * self.threshold_ * scale
        found = minimize_huber(problem, self.threshold_, reach, int(self.max_iter))
        if found.gradient_norm > reach:
            warnings.warn(
                f"the gradient's norm is {found.gradient_norm:.3g} after {found.steps} steps, above"
                f" {reach:.3g}: raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        d = self.n_features_in_
        self.coef_, self.intercept_ = (
            found.v[:d] / self.spreads_,
            float(found.v[d]) if self.fit_intercept else 0.0,
        )
        self.n_iter_ = found.steps
        if hasattr(self, "facts_"):
            del self.facts_  # of a fit before
        measured = self._measured(problem, scale, weighted)
        self.facts_ = {name: getattr(value, "value", value) for name, value in measured.items()}
        return self

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """With what each claim needs, and without."""
        yield cls()
        yield cls(threshold=0.2, regularization=0.1, fit_intercept=False, x_bound=1.0)
        yield cls(threshold=0.2, regularization=0.1, fit_intercept=False, x_bound=1.0, y_bound=1.0)

    def measure_again(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> dict[str, Any]:
        """The record's fields that the fitted model and the rows it was fitted on tell,
        measured again.
        """
        check_is_fitted(self)
        return self._measured(*self._problem(X, y, sample_weight, reset=False))

    def _stated_threshold(self) -> float | None:
        """η where it was stated or x_bound was, so that nothing is taken from the rows."""
        if self.threshold is not None:
            return float(self.threshold)
        return None if self.x_bound is None else 1.0

    def _problem(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None,
        sample_weight: npt.ArrayLike | None,
        *,
        reset: bool,
    ) -> tuple[Problem, float, bool]:
        """The problem of checked rows, the size of a row, and whether the rows are weighted."""
        X, y, weights = self._rows(X, y, sample_weight, "csr", reset=reset)
        norms = row_norms(X)
        require_bound("x_bound", norms, self.x_bound)
        require_bound("y_bound", np.abs(y), self.y_bound)
        problem = Problem.of(
            X, y, weights, _penalty(self), bool(self.fit_intercept), relative=_is_relative(self)
        )
        largest = float(row_norms(problem.A).max()) if _is_relative(self) else float(norms.max())
        scale = float(self.x_bound) if self.x_bound is not None else max(1.0, largest)
        return problem, scale, bool((weights != weights[0]).any())

    def _measured(self, problem: Problem, scale: float, weighted: bool) -> dict[str, Any]:
        eta, v = threshold_of(self), weights_of(self, problem)
        # the gradient that the solver left, and the size of the terms that it is rounded from
        reach = self.tol * eta * scale
        r = problem.residual(v)
        slope = float(np.linalg.norm(problem.huber_gradient(v, r, eta)))
        size = eta * float(row_norms(problem.A).max()) + float(
            np.linalg.norm(2 * problem.penalty * v)
        )
        dual: dict[str, Any] = {}
        # models of version 0.2 have none
        if _penalty(self) > 0 and "dual" in getattr(self, "facts_", {"dual": 0}):
            value, rounding = huber_dual(problem, v, eta, free=bool(self.fit_intercept))
            dual = {"dual": Within(value, 4 * rounding), "gap_rounding": rounding}
        # rounding decides of them
        near = int((np.abs(np.abs(r) - eta) <= 1e-12 * (eta + np.abs(problem.y).max())).sum())
        return {
            "n": int(problem.A.shape[0]),
            "d": len(self.coef_),
            "threshold": eta,
            "regularization": _penalty(self),
            "threshold_from_rows": self._stated_threshold() is None,
            "relative": _is_relative(self),
            "x_bound": None if self.x_bound is None else float(self.x_bound),
            "y_bound": None if self.y_bound is None else float(self.y_bound),
            "gradient_bound": reach,
            "gradient_norm": Within(slope, 1e-6 * slope + 1e-12 * size),
            "objective": problem.huber_objective(v, r, eta),
            "risk": float(problem.weights @ huber_loss(r, eta)),
            "beyond_threshold": Within(int((np.abs(r) > eta).sum()), near),
            "weighted": weighted,
            "free_intercept": bool(self.fit_intercept),
        } | dual

    def _describe(self) -> Parts | Around:
        check_is_fitted(self)
        return (
            around_spreads(self._inside(), self.spreads_)
            if self.facts_.get("relative")
            else self._parts()
        )

    def _inside(self) -> HuberRegression:
        """The same fit as a model of columns divided by their spreads, with everything stated."""
        inside = copy(self)
        inside.threshold, inside.regularization = self.threshold_, _penalty(self)
        inside.coef_, inside.spreads_ = self.coef_ * self.spreads_, np.ones(len(self.coef_))
        inside.facts_ = self.facts_ | {"relative": False}
        return inside

    def _parts(self) -> Parts:
        facts = self.facts_
        objective = Objective(
            "huber",
            _penalty(self),
            intercept="free" if self.fit_intercept else "none",
            parameters={"knee": threshold_of(self)},
            uniform=not facts["weighted"],
            rows=facts["n"],
            minimized=(
                facts["gradient_norm"] <= facts["gradient_bound"]
                if "gradient_bound" in facts
                else True
            ),
            tolerance=float(self.tol),
        )
        return Parts(lambda: linear_form(self.coef_, self.intercept_), objective)


class VariationalRegression(LinearRegressor):
    """Lowers (1/n)·Σ ℓ̃(r_i) + λ‖w‖² with a clipped loss ℓ̃(t) = min over η in [0, 1] of η·½t² +
    ψ(η).

    Course, Section 17. η_i is how far row i is believed. Alternating between all η (closed form)
    and w (weighted least squares) never raises the objective, from Huber's fit on. The objective is
    not convex: where this ends is a local optimum, each half being best for the other, and may
    depend on the start.

    Parameters
    ----------
    loss : ψ by its name, see `Clipped`: "truncation" (a row counts or does not) or "geman_mcclure"
        (smooth)
    threshold : the residual, in the units of y, whose squared loss is the level ½·threshold² that
        ℓ̃ never exceeds. None is 4 times the scale of the residuals of Huber's fit
        (`scale_of_rows`)
    regularization : λ ≥ 0. None is 10⁻⁴ of the weights of columns divided by their spread, as of
        `HuberRegression`
    fit_intercept : whether to add b, which is not penalized
    tol : the relative decrease of the objective below which to stop
    max_iter : the most alternations
    delta : failure probability of claims (none is made)

    Attributes
    ----------
    threshold_, spreads_ : as of `HuberRegression`
    beliefs_ : array (n,), the last η of each training row
    objectives_ : array, the objective at Huber's fit and after each alternation

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 200.0, 3.0, 4.0]
    >>> model = VariationalRegression(threshold=0.5, regularization=0.0).fit(X, y)
    >>> model.coef_.round(4).tolist(), model.beliefs_.round(6).tolist()
    ([1.0], [1.0, 1.0, 0.0, 1.0, 1.0])
    """

    saved_as = "variational-regression/1"
    earlier: ClassVar[Names] = {"tolerance": "tol"}
    Record = VariationalRecord

    def __init__(
        self,
        *,
        loss: str = "geman_mcclure",
        threshold: float | None = None,
        regularization: float | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-10,
        max_iter: int = 1000,
        delta: float = 0.05,
    ) -> None:
        self.loss = loss
        self.threshold = threshold
        self.regularization = regularization
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.delta = delta

    def fit(
        self, X: RowsLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> VariationalRegression:
        """Fit; weights count rows."""
        if self.loss not in KINDS:
            raise ValueError(f"loss must be one of {', '.join(KINDS)}, not {self.loss!r}")
        require_positive(max_iter=self.max_iter)
        require_nonnegative(tol=self.tol)
        _require_stated(self)
        problem, clipped, start = self._start(X, y, sample_weight, reset=True)
        self.threshold_, self.spreads_ = clipped.threshold, problem.spreads
        v, self.objectives_ = minimize_clipped(
            problem, clipped, start, self.tol, int(self.max_iter)
        )
        if len(self.objectives_) > self.max_iter and self.objectives_[-1] < self.objectives_[-2] * (
            1 - self.tol
        ):
            warnings.warn(
                f"the objective still falls after {self.max_iter} alternations: raise max_iter or"
                " tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        d = self.n_features_in_
        self.coef_, self.intercept_ = (
            v[:d] / self.spreads_,
            float(v[d]) if self.fit_intercept else 0.0,
        )
        self.beliefs_ = clipped.belief(problem.residual(v))
        self.n_iter_ = len(self.objectives_) - 1 or 1
        self.facts_ = self._measured(problem, clipped, start)
        return self

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Both losses, and everything taken from the rows."""
        yield cls()
        yield cls(threshold=0.2, regularization=1e-4)
        yield cls(loss="truncation", threshold=0.2, fit_intercept=False)

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """Both losses."""
        yield cls()
        yield cls(loss="truncation")

    def measure_again(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> dict[str, Any]:
        """The record's fields that the fitted model and the rows tell, measured again; Huber's
        start is found again.
        """
        check_is_fitted(self)
        return self._measured(*self._start(X, y, sample_weight, reset=False))

    def _start(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None,
        sample_weight: npt.ArrayLike | None,
        *,
        reset: bool,
    ) -> tuple[Problem, Clipped, Array]:
        """The problem of checked rows, the loss, and Huber's fit."""
        X, y, weights = self._rows(X, y, sample_weight, "csr", reset=reset)
        problem = Problem.of(
            X, y, weights, _penalty(self), bool(self.fit_intercept), relative=_is_relative(self)
        )
        reach = 1e-10 * max(1.0, float(row_norms(problem.A if _is_relative(self) else X).max()))
        if reset:
            eta = (
                CLIPPED * scale_of_rows(problem, reach)
                if self.threshold is None
                else float(self.threshold)
            )
        else:
            eta = threshold_of(self)
        return problem, Clipped(self.loss, eta), minimize_huber(problem, eta, reach * eta, 200).v

    def _measured(self, problem: Problem, clipped: Clipped, start: Array) -> dict[str, Any]:
        v = weights_of(self, problem)
        return {
            "n": int(problem.A.shape[0]),
            "d": len(self.coef_),
            "loss": self.loss,
            "threshold": clipped.threshold,
            "regularization": _penalty(self),
            "relative": _is_relative(self),
            "objective": problem.clipped_objective(v, clipped),
            "huber_start_objective": problem.clipped_objective(start, clipped),
            "believed": float(problem.weights @ clipped.belief(problem.residual(v))),
        }

    def _describe(self) -> Parts:
        check_is_fitted(self)
        why = (
            "the clipped loss is not convex: the fit is a local optimum, which may depend on the"
            " start"
        )
        return Parts(lambda: linear_form(self.coef_, self.intercept_), Lacking("objective", why))


def weights_of(model: HuberRegression | VariationalRegression, problem: Problem) -> Array:
    """(w, b) of a fitted model as the problem has them, or w where no b was fitted."""
    w = model.coef_ * problem.spreads
    return np.append(w, model.intercept_) if model.fit_intercept else w


def threshold_of(model: HuberRegression | VariationalRegression) -> float:
    """η of a fitted model; those of version 0.2 had it stated."""
    found: Any = getattr(model, "threshold_", model.threshold)
    return float(found)


def _require_stated(model: HuberRegression | VariationalRegression) -> None:
    if model.threshold is not None:
        require_positive(threshold=model.threshold)
    if model.regularization is not None:
        require_nonnegative(regularization=model.regularization)


def _penalty(model: HuberRegression | VariationalRegression) -> float:
    return PENALTY if model.regularization is None else float(model.regularization)


def _is_relative(model: HuberRegression | VariationalRegression) -> bool:
    """Whether the penalty is on the weights of columns divided by their spread."""
    return model.regularization is None and getattr(model, "x_bound", None) is None
