"""Regression that a few wild targets cannot rule: Huber's convex loss, and clipped losses in variational form."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from surelearn import bounds
from surelearn.base import Writer
from surelearn.bounds.robust_regression import SOLVED
from surelearn.linear._regressor import LinearRegressor, require_bound, require_nonnegative, require_positive, row_norms
from surelearn.linear.robust.losses import Clipped, Problem, huber_loss, minimize_clipped, minimize_huber

KINDS = ("truncation", "geman_mcclure")


class HuberRegression(LinearRegressor):
    """Minimizes (1/n)·Σ M^η(⟨w, x_i⟩ + b − y_i) + λ‖w‖², M^η the Moreau envelope of ``η|·|``, exactly.

    Course, Section 17; the outer branch of M^η is ``η|t| − ½η²`` (printed with ½t², a misprint). Squared for residuals up to
    η, linear beyond: a target's pull is at most η. Unlike scikit-learn's HuberRegressor, η is in the units of y and fixed.

    Parameters
    ----------
    threshold : η > 0, the residual beyond which the loss is linear
    regularization : λ ≥ 0
    fit_intercept : whether to add b, which is not penalized; a free intercept voids the stability claim
    x_bound, y_bound : bounds on ‖x‖ and ``|y|`` that hold for every row, of which stability and risk claims are made
    tolerance : the gradient norm to reach, relative to η·x_bound (η times the largest ‖x‖ seen, if not stated)
    max_iter : the most Newton steps
    delta : failure probability of claims

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 200.0, 3.0, 4.0]
    >>> HuberRegression(threshold=0.1, regularization=0.0).fit(X, y).coef_.round(2).tolist()
    [1.0]
    >>> model = HuberRegression(threshold=0.1, regularization=0.1, fit_intercept=False, x_bound=4.0).fit(X, y)
    >>> print(model.certificate_["uniform stability"])
    uniform stability ≤ 0.3201  (always, stability of Huber regression)
    """

    def __init__(
        self,
        *,
        threshold: float = 1.0,
        regularization: float = 1e-4,
        fit_intercept: bool = True,
        x_bound: float | None = None,
        y_bound: float | None = None,
        tolerance: float = 1e-10,
        max_iter: int = 200,
        delta: float = 0.05,
    ) -> None:
        self.threshold = threshold
        self.regularization = regularization
        self.fit_intercept = fit_intercept
        self.x_bound = x_bound
        self.y_bound = y_bound
        self.tolerance = tolerance
        self.max_iter = max_iter
        self.delta = delta

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HuberRegression:
        """Fit; weights count rows."""
        require_positive(threshold=self.threshold, tolerance=self.tolerance, max_iter=self.max_iter)
        require_nonnegative(regularization=self.regularization)
        X, y, weights = self._rows(X, y, sample_weight, "csr")
        norms, eta = row_norms(X), float(self.threshold)
        require_bound("x_bound", norms, self.x_bound)
        require_bound("y_bound", np.abs(y), self.y_bound)
        problem = Problem.of(X, y, weights, self.regularization, bool(self.fit_intercept))
        scale = float(self.x_bound) if self.x_bound is not None else max(1.0, float(norms.max()))
        reach = self.tolerance * eta * scale
        found = minimize_huber(problem, eta, reach, int(self.max_iter))
        if found.gradient_norm > reach:
            warnings.warn(
                f"the gradient's norm is {found.gradient_norm:.3g} after {found.steps} steps, above {reach:.3g}: "
                "raise max_iter or tolerance",
                ConvergenceWarning,
                stacklevel=2,
            )
        d = X.shape[1]
        self.coef_, self.intercept_ = found.v[:d].copy(), float(found.v[d]) if self.fit_intercept else 0.0
        self.n_iter_ = found.steps
        residuals = problem.residual(found.v)
        self.facts_ = {
            "n": int(X.shape[0]),
            "d": int(d),
            "threshold": eta,
            "regularization": float(self.regularization),
            "risk": float(problem.weights @ huber_loss(residuals, eta)),
            "objective": found.objective,
            "gradient_norm": found.gradient_norm,
            "gradient_bound": reach,
            "beyond_threshold": int((np.abs(residuals) > eta).sum()),
            "weighted": bool((weights != weights[0]).any()),
            "free_intercept": bool(self.fit_intercept),
        }
        stated = {"x_bound": self.x_bound, "y_bound": self.y_bound}
        self.facts_ |= {name: float(value) for name, value in stated.items() if value is not None}
        self._derive()
        return self

    def _derive(self) -> None:
        """Facts that follow from the stated bounds: β, and the largest loss that any row can have.

        w = 0 costs at most M^η(Y), so λ‖w‖² ≤ M^η(Y) and no residual exceeds Y + X·√(M^η(Y)/λ).
        """
        if self._no_stability():
            return
        facts = self.facts_
        x, eta, lam = facts["x_bound"], facts["threshold"], facts["regularization"]
        facts["beta"] = bounds.beta_huber(x, eta, lam, facts["n"], facts["gradient_bound"])
        if "y_bound" in facts:
            largest = facts["y_bound"] + x * np.sqrt(float(huber_loss(facts["y_bound"], eta)) / lam)
            facts["loss_bound"] = float(huber_loss(largest, eta))

    def _no_stability(self) -> str:
        """Why no stability claim can be made, or ""."""
        facts = self.facts_
        if facts["regularization"] == 0:
            return "regularization = 0: the objective is not strongly convex"
        if facts["free_intercept"]:
            return "the intercept is not regularized: set fit_intercept=False (and add a constant column)"
        if facts["weighted"]:
            return "rows are weighted unequally"
        if facts["gradient_norm"] > facts["gradient_bound"]:
            return "the minimization stopped before it reached its tolerance: raise max_iter"
        return "" if "x_bound" in facts else "state x_bound=, a bound on ‖x‖ that holds for every row"

    def _claim(self, writer: Writer) -> None:
        if reason := self._no_stability():
            writer.absent("uniform stability", reason, "beta_huber")
            writer.absent("risk", reason, "uniform_stability_nonnegative")
            return
        names = ("x_bound", "threshold", "regularization", "n")
        loss = f"huber({self.facts_['threshold']:g})"
        read = {**{name: name for name in names}, "gradient_norm": "gradient_bound"}
        writer.claim(bounds.beta_huber, read, loss=loss)
        if "y_bound" not in self.facts_:
            reason = "state y_bound=, a bound on |y| that holds for every row"
            writer.absent("risk", reason, "uniform_stability_nonnegative")
            return
        writer.claim(
            bounds.uniform_stability_nonnegative,
            {name: name for name in ("risk", "beta", "n", "loss_bound")},
            loss=loss,
            assumptions=("‖x‖ ≤ x_bound and |y| ≤ y_bound for every row, as stated", SOLVED),
        )


class VariationalRegression(LinearRegressor):
    """Lowers (1/n)·Σ ℓ̃(r_i) + λ‖w‖² with a clipped loss ℓ̃(t) = min over η in [0, 1] of η·½t² + ψ(η).

    Course, Section 17. η_i is how far row i is believed. Alternating between all η (closed form) and w (weighted least
    squares) never raises the objective, from Huber's fit on. The objective is not convex: where this ends is a local
    optimum, each half being best for the other, and may depend on the start.

    Parameters
    ----------
    loss : ψ by its name, see `Clipped`: "truncation" (a row counts or does not) or "geman_mcclure" (smooth)
    threshold : the residual, in the units of y, whose squared loss is the level ½·threshold² that ℓ̃ never exceeds
    regularization : λ ≥ 0
    fit_intercept : whether to add b, which is not penalized
    tolerance : the relative decrease of the objective below which to stop
    max_iter : the most alternations
    delta : failure probability of claims (none is made)

    Attributes
    ----------
    beliefs_ : array (n,), the last η of each training row
    objectives_ : array, the objective at Huber's fit and after each alternation

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 200.0, 3.0, 4.0]
    >>> model = VariationalRegression(threshold=0.5, regularization=0.0).fit(X, y)
    >>> model.coef_.round(4).tolist(), model.beliefs_.round(6).tolist()
    ([1.0], [1.0, 1.0, 0.0, 1.0, 1.0])
    """

    def __init__(
        self,
        *,
        loss: str = "geman_mcclure",
        threshold: float = 1.0,
        regularization: float = 1e-4,
        fit_intercept: bool = True,
        tolerance: float = 1e-10,
        max_iter: int = 1000,
        delta: float = 0.05,
    ) -> None:
        self.loss = loss
        self.threshold = threshold
        self.regularization = regularization
        self.fit_intercept = fit_intercept
        self.tolerance = tolerance
        self.max_iter = max_iter
        self.delta = delta

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> VariationalRegression:
        """Fit; weights count rows."""
        if self.loss not in KINDS:
            raise ValueError(f"loss must be one of {', '.join(KINDS)}, not {self.loss!r}")
        require_positive(threshold=self.threshold, max_iter=self.max_iter)
        require_nonnegative(regularization=self.regularization, tolerance=self.tolerance)
        X, y, weights = self._rows(X, y, sample_weight, "csr")
        problem = Problem.of(X, y, weights, self.regularization, bool(self.fit_intercept))
        clipped, eta = Clipped(self.loss, float(self.threshold)), float(self.threshold)
        reach = 1e-10 * eta * max(1.0, float(row_norms(X).max()))
        start = minimize_huber(problem, eta, reach, 200)
        v, self.objectives_ = minimize_clipped(problem, clipped, start.v, self.tolerance, int(self.max_iter))
        if len(self.objectives_) > self.max_iter and self.objectives_[-1] < self.objectives_[-2] * (1 - self.tolerance):
            warnings.warn(
                f"the objective still falls after {self.max_iter} alternations: raise max_iter or tolerance",
                ConvergenceWarning,
                stacklevel=2,
            )
        d = X.shape[1]
        self.coef_, self.intercept_ = v[:d].copy(), float(v[d]) if self.fit_intercept else 0.0
        self.beliefs_ = clipped.belief(problem.residual(v))
        self.n_iter_ = len(self.objectives_) - 1 or 1
        self.facts_ = {
            "n": int(X.shape[0]),
            "d": int(d),
            "loss": self.loss,
            "threshold": eta,
            "regularization": float(self.regularization),
            "objective": float(self.objectives_[-1]),
            "huber_start_objective": float(self.objectives_[0]),
            "believed": float(problem.weights @ self.beliefs_),
        }
        return self

    def _claim(self, writer: Writer) -> None:
        writer.absent("suboptimality", "the objective is not convex: this is a local optimum, and a better one may exist")
        writer.absent("uniform stability", "the objective is not convex: exchanging one row may lead to another optimum")
        writer.absent("risk", "no theorem here bounds the risk of a local optimum from its own rows: use certify()")
