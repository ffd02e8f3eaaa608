"""Linear regression by EigenPro: weights in R^d instead of a coefficient for each row (see `linear_iteration`)."""

from __future__ import annotations

import math
import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from surelearn.base import Learner, Writer
from surelearn.kernel import claims
from surelearn.kernel.linear_iteration import Array, LinearIteration, minimize


class LinearEigenProRegressor(MultiOutputMixin, RegressorMixin, Learner):
    """Linear regression without intercept, (1/n)·Σ‖⟨w, x_i⟩ − y_i‖² + λ‖w‖², by EigenPro steps on w.

    `EigenProRegressor` with the linear kernel has the same minimizer; this form costs O(d) memory beside the rows. With
    λ = 0 and many minimizers it tends to the shortest one. For an intercept, give X a column of ones.

    Parameters
    ----------
    regularization : λ ≥ 0 beside the *mean* squared loss
    subsample, directions : s rows whose covariance gives the q directions that are flattened; None chooses: 2,000 rows and
        every direction above rounding, or a tenth of s where that is not all rows
    batch_size : m rows a step at first, more where the rows contradict each other; None takes the critical batch size
    step : η, made smaller where it would diverge; None takes the largest safe step of each block
    epochs, tol : stop after so many passes, or when the gradient (in the norm of P) is ``tol`` of that at w = 0
    delta : the failure probability of each claim

    Attributes
    ----------
    coef_ : w, (d,) or (outputs, d)
    eigenvalues_ : the leading eigenvalues of the subsample's covariance, λ added
    facts_ : what was chosen and measured
    epochs_ : passes made

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 3.0]])
    >>> LinearEigenProRegressor(random_state=0).fit(X, [1.0, 3.0, 7.0]).coef_.round(6)
    array([1., 2.])
    """

    def __init__(
        self,
        *,
        regularization: float = 0.0,
        subsample: int | None = None,
        directions: int | None = None,
        batch_size: int | None = None,
        step: float | None = None,
        epochs: int = 100,
        tol: float = 1e-6,
        random_state: int | np.random.RandomState | None = None,
        delta: float = 0.05,
    ) -> None:
        self.regularization = regularization
        self.subsample = subsample
        self.directions = directions
        self.batch_size = batch_size
        self.step = step
        self.epochs = epochs
        self.tol = tol
        self.random_state = random_state
        self.delta = delta

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows ``X`` (n, d), in their float32 or float64, and targets ``y`` (n,) or (n, t)."""
        self._check()
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=(np.float64, np.float32))
        Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        rng = check_random_state(self.random_state)
        order, lam = rng.permutation(len(X)), float(self.regularization)
        powers = _power(max(float(np.abs(X).max()), math.sqrt(lam))), _power(float(np.abs(Y).max()))
        scaled, targets = np.ldexp(X[order], -powers[0]), np.ldexp(Y[order], -powers[1])
        run = LinearIteration(
            scaled,
            targets.astype(X.dtype),
            _times(lam, -2 * powers[0]),
            size=self.subsample,
            directions=self.directions,
            batch_size=self.batch_size,
            step=None if self.step is None else _times(self.step, 2 * powers[0]),
        )
        first_batch = run.batch_size
        reason, self.epochs_ = minimize(run, self.epochs, self.tol, rng)
        if run.capped:
            warnings.warn(f"step={self.step:g} would diverge on some blocks: a smaller one was taken there", stacklevel=2)
        with np.errstate(over="ignore"):
            coef = np.ldexp(run.weights.astype(np.float64), powers[1] - powers[0])
            self.eigenvalues_ = np.ldexp(run.spectrum.eigenvalues[: run.directions + 1], 2 * powers[0])
        if not np.isfinite(coef).all():
            raise ValueError("the weights overflow, as X is so small beside y: scale the columns")
        self.coef_ = np.ascontiguousarray(coef.T) if np.ndim(y) == 2 else coef[:, 0]
        self.facts_ = {"n": len(X), "d": X.shape[1], "outputs": Y.shape[1], "regularization": lam, "dtype": X.dtype.name}
        self.facts_ |= {"epochs": self.epochs_, "stopped": reason, "batch_size": first_batch}
        self.facts_ |= _chosen(run, self.step) | _measured(run, scaled, targets, powers)
        return self

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """⟨w, x⟩ for each row, shape (n,) or (n, t)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return X @ self.coef_.T

    def _check(self) -> None:
        for name, least in (("subsample", 1), ("directions", 0), ("batch_size", 1), ("epochs", 1)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or value != int(value) or value < least):
                raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
        if self.step is not None and not (math.isfinite(self.step) and self.step > 0):
            raise ValueError(f"step must be a finite number above 0 or None, not {self.step!r}")
        for name in ("regularization", "tol"):
            if not (math.isfinite(value := getattr(self, name)) and value >= 0):
                raise ValueError(f"{name} must be a finite number of at least 0, not {value!r}")

    def _claim(self, writer: Writer) -> None:
        claims.claim_distance(writer, self.facts_)
        writer.absent("risk", "this learner asks for no bounds on ‖x‖ and |y|: EigenProRegressor(kernel='linear') does")


def _power(size: float) -> int:
    """The power of 2 next to a size, by which dividing is exact; 0 for 0."""
    return math.frexp(size)[1]


def _times(value: float, power: int) -> float:
    """value·2^power, infinite or 0 where it is out of range."""
    with np.errstate(over="ignore"):
        return float(np.ldexp(value, power))


def _chosen(run: LinearIteration, step: float | None) -> dict[str, Any]:
    """What was chosen, and the acceleration predicted and measured on the last block."""
    last, q = run.blocks()[-1], run.directions
    top, flattened = run.largest(last, preconditioned=False), run.largest(last)
    return {
        "subsample": run.size,
        "directions": q,
        "batch_size_last": run.batch_size,
        "step": "block" if step is None else float(step),
        "step_capped": run.capped,
        "critical_batch_size": run.spectrum.critical_batch_size(q),
        "acceleration_predicted": run.spectrum.acceleration(q),
        "acceleration_measured": top / flattened if flattened > 0 else 1.0,
    }


def _measured(run: LinearIteration, X: Array, Y: npt.NDArray[np.float64], powers: tuple[int, int]) -> dict[str, float]:
    """Norm, training risk, and ‖∇F‖ with what rounding can add, in float64 and the rows' own units.

    Each of the sums of k products in Xw and Xᵀr is within k·eps times the lengths of its vectors.
    """
    n, (x_power, y_power) = len(X), powers
    weights, lam = run.weights.astype(np.float64), run.regularization
    rows = X.astype(np.float64, copy=False)
    residual = rows @ weights - Y
    gradient = rows.T @ residual / n + lam * weights
    length, size = float(np.linalg.norm(rows)), float(np.linalg.norm(weights))
    terms = (X.shape[1] + 2) * length * size + (n + 4) * float(np.linalg.norm(residual))
    rounding = float(np.finfo(float).eps) * (length * terms / n + 4 * lam * size)
    return {
        "norm": _times(size, y_power - x_power),
        "training_risk": _times(float((residual**2).sum(1).mean()), 2 * y_power),
        "gradient_norm": _times(2.0 * (float(np.linalg.norm(gradient)) + rounding), x_power + y_power),
    }
