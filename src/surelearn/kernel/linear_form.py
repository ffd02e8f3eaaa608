"""Linear regression by EigenPro: weights in R^d instead of a coefficient for each row (see
`linear_iteration`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from surelearn.base import Learner
from surelearn.kernel.linear_iteration import Array, LinearIteration, minimize
from surelearn.kernel.record import ON_THE_WAY, write_distance
from surelearn.optim.spread import around_spreads, column_spreads
from surelearn.record import Record, Within, Writer, run
from surelearn.subject import Around, Objective, Parts, linear_form
from surelearn.types import RowsLike

Doubles = npt.NDArray[np.float64]
RELATIVE = 10.0  # nλ where none is stated, of columns divided by their spread


@dataclass(frozen=True, kw_only=True)
class LinearFormRecord(Record):
    """A fit of (1/n)·Σ‖⟨w, x_i⟩ + b − y_i‖² + λ‖w‖² by steps on w.

    Attributes
    ----------
    outputs : targets of a row
    regularization : λ
    free_intercept : whether b was fitted, which the penalty does not count
    relative : whether the penalty, ``norm`` and ``gradient_norm`` are of columns divided by their
        spread on the rows
    dtype : the precision of the rows and of the steps
    norm, training_risk : ‖w‖ and the mean squared error, in float64
    gradient_norm : ‖∇F(w)‖, F minimized over b, and what rounding can add
    epochs, stopped, … : how the steps went
    """

    key: ClassVar[str] = "linear-eigenpro-regressor/1"

    outputs: int
    regularization: float
    dtype: str
    norm: float
    training_risk: float
    gradient_norm: float
    free_intercept: bool = False
    relative: bool = False
    epochs: int = run(ON_THE_WAY)
    stopped: str = run(ON_THE_WAY)
    subsample: int = run(ON_THE_WAY)
    directions: int = run(ON_THE_WAY)
    batch_size: int = run(ON_THE_WAY)
    batch_size_last: int = run(ON_THE_WAY)
    step: float | str = run(ON_THE_WAY)
    step_capped: bool = run(ON_THE_WAY)
    critical_batch_size: float = run(ON_THE_WAY)
    acceleration_predicted: float = run(ON_THE_WAY)
    acceleration_measured: float = run(ON_THE_WAY)

    def write(self, writer: Writer) -> None:
        """The distance to the minimizer, and why the risk is not claimed."""
        units = ["columns are in units of their spread on these rows"] if self.relative else []
        write_distance(writer, self.regularization, assumptions=units)
        writer.lacks(
            "risk",
            "this learner asks for no bounds on ‖x‖ and |y|: EigenProRegressor(kernel='linear')"
            " does",
        )


class LinearEigenProRegressor(MultiOutputMixin, RegressorMixin, Learner):
    """Linear regression, (1/n)·Σ‖⟨w, x_i⟩ + b − y_i‖² + λ‖w‖², by EigenPro steps on w.

    Without b, `EigenProRegressor` with the linear kernel has the same minimizer; this form costs
    O(d) memory beside the rows. With λ = 0 and many minimizers it tends to the shortest one.

    Parameters
    ----------
    regularization : λ ≥ 0 beside the *mean* squared loss. None is 10/n of the weights of columns
        divided by their spread (`column_spreads`), λ·Σ(s_j·w_j)², so that columns of any size may
        be mixed; without an intercept it is 0
    fit_intercept : whether to add b, by centering rows and targets; it is not penalized
    subsample, directions : s rows whose covariance gives the q directions that are flattened; None
        chooses: 2,000 rows and every direction above rounding, or a tenth of s where that is not
        all rows
    batch_size : m rows per step at first, more where the rows contradict each other; None takes the
        critical batch size
    step : η, made smaller where it would diverge; None takes the largest safe step of each block
    epochs, tol : stop after so many passes, or when the gradient (in the norm of P) is ``tol`` of
        that at w = 0
    delta : the failure probability of each claim

    Attributes
    ----------
    coef_ : w, (d,) or (outputs, d)
    intercept_ : b, a number or (outputs,)
    spreads_ : what the columns were divided by for the penalty, (d,); 1 where λ was stated
    eigenvalues_ : the leading eigenvalues of the subsample's covariance, λ added
    facts_ : what was chosen and measured
    epochs_ : passes made

    Examples
    --------
    >>> model = LinearEigenProRegressor(regularization=0.0).fit([[0.0], [1.0], [3.0]], [1.0, 3.0, 7.0])
    >>> model.coef_.round(6), round(model.intercept_, 6)
    (array([2.]), 1.0)
    """

    saved_as = "linear-eigenpro-regressor/1"
    Record = LinearFormRecord
    fit_intercept: bool = False  # of models of version 0.2, which took rows as they are
    intercept_: Any = 0.0

    def __init__(
        self,
        *,
        regularization: float | None = None,
        fit_intercept: bool = True,
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
        self.fit_intercept = fit_intercept
        self.subsample = subsample
        self.directions = directions
        self.batch_size = batch_size
        self.step = step
        self.epochs = epochs
        self.tol = tol
        self.random_state = random_state
        self.delta = delta

    def fit(self, X: RowsLike, y: npt.ArrayLike) -> Self:
        """Fit to rows ``X`` (n, d), in their float32 or float64, and targets ``y`` (n,) or (n,
        t).
        """
        self._check()
        X, Y = self._read(X, y, reset=True)
        rng = check_random_state(self.random_state)
        order, lam = rng.permutation(len(X)), self._penalty(len(X))
        self.spreads_, rows, centered = self._solved(X, Y)
        powers = _powers(rows, centered, lam)
        scaled = np.ldexp(rows[order].astype(X.dtype, copy=False), -powers[0])
        targets = np.ldexp(centered[order], -powers[1])
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
            warnings.warn(
                f"step={self.step:g} would diverge on some blocks: a smaller one was taken there",
                stacklevel=2,
            )
        with np.errstate(over="ignore"):
            coef = (
                np.ldexp(run.weights.astype(np.float64), powers[1] - powers[0])
                / self.spreads_[:, None]
            )
            self.eigenvalues_ = np.ldexp(
                run.spectrum.eigenvalues[: run.directions + 1], 2 * powers[0]
            )
        if not np.isfinite(coef).all():
            raise ValueError("the weights overflow, as X is so small beside y: scale the columns")
        constant = _mean(Y) - _mean(X) @ coef if self.fit_intercept else np.zeros(Y.shape[1])
        single = np.asarray(y).ndim == 1
        self.coef_ = coef[:, 0].copy() if single else np.ascontiguousarray(coef.T)
        self.intercept_ = float(constant[0]) if single else constant
        self.facts_ = {
            "epochs": self.epochs_,
            "stopped": reason,
            "batch_size": first_batch,
            **_chosen(run, self.step),
        }
        measured = self._measured(X, Y, coef)
        self.facts_ |= {name: getattr(value, "value", value) for name, value in measured.items()}
        return self

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """With a penalty, of which the distance to the minimizer is claimed, and without."""
        yield cls()
        yield cls(regularization=0.1)
        yield cls(regularization=0.1, fit_intercept=False)

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """With a seed: an average of random batches is never the same."""
        yield cls(random_state=0)

    def measure_again(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> dict[str, Any]:
        """The record's fields that the fitted model and the rows it was fitted on tell,
        measured again.
        """
        if sample_weight is not None:
            raise ValueError("this learner takes no sample_weight")
        check_is_fitted(self)
        X, Y = self._read(X, y, reset=False)
        return self._measured(X, Y, np.atleast_2d(self.coef_).T)

    def _is_relative(self) -> bool:
        """Whether the penalty is on the weights of columns divided by their spread."""
        return self.regularization is None and bool(self.fit_intercept)

    def _penalty(self, n: int) -> float:
        """λ for n rows."""
        if self.regularization is None:
            return RELATIVE / n if self.fit_intercept else 0.0
        return float(self.regularization)

    def _solved(self, X: Array, Y: Doubles) -> tuple[Doubles, Array, Doubles]:
        """What columns are divided by (1 where λ was stated), and rows and targets as they are
        solved.
        """
        spreads = column_spreads(X) if self._is_relative() else np.ones(X.shape[1])
        if not self.fit_intercept:
            return spreads, X, Y
        rows = X - _mean(X)
        return spreads, rows / spreads if self._is_relative() else rows, Y - _mean(Y)

    def _measured(
        self, X: Array, Y: npt.NDArray[np.float64], coef: npt.NDArray[np.float64]
    ) -> dict[str, Any]:
        (spreads, rows, targets), lam = self._solved(X, Y), self._penalty(len(X))
        told = {
            "dtype": X.dtype.name,
            "free_intercept": bool(self.fit_intercept),
            "relative": self._is_relative(),
        }
        powers = _powers(rows, targets, lam)
        return told | _measured(
            rows, targets, coef * spreads[:, None], lam, powers, bool(self.fit_intercept)
        )

    def _read(
        self, X: RowsLike, y: npt.ArrayLike | None, *, reset: bool
    ) -> tuple[Array, npt.NDArray[np.float64]]:
        """Checked rows and targets (n, outputs)."""
        rows, targets = validate_data(
            self,
            X,
            y,
            multi_output=True,
            y_numeric=True,
            dtype=(np.float64, np.float32),
            reset=reset,
        )
        return rows, np.asarray(targets, dtype=np.float64).reshape(len(targets), -1)

    def predict(self, X: RowsLike) -> npt.NDArray[np.float64]:
        """⟨w, x⟩ + b for each row, shape (n,) or (n, t)."""
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        return rows @ self.coef_.T + self.intercept_

    def _check(self) -> None:
        for name, least in (("subsample", 1), ("directions", 0), ("batch_size", 1), ("epochs", 1)):
            value = getattr(self, name)
            if value is not None and (
                isinstance(value, bool) or value != int(value) or value < least
            ):
                raise ValueError(
                    f"{name} must be a whole number of at least {least}, not {value!r}"
                )
        if self.step is not None and not (math.isfinite(self.step) and self.step > 0):
            raise ValueError(f"step must be a finite number above 0 or None, not {self.step!r}")
        for name, value in (("regularization", self.regularization or 0.0), ("tol", self.tol)):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a finite number of at least 0, not {value!r}")

    def _describe(self) -> Parts | Around:
        check_is_fitted(self)
        if not self.facts_.get("relative"):
            return self._parts()
        inside = copy(self)
        inside.regularization, inside.coef_ = (
            self._penalty(self.facts_["n"]),
            self.coef_ * self.spreads_,
        )
        inside.spreads_, inside.facts_ = (
            np.ones(len(self.spreads_)),
            self.facts_ | {"relative": False},
        )
        return around_spreads(inside, self.spreads_)

    def _parts(self) -> Parts:
        facts = self.facts_
        objective = Objective(
            "squared",
            self._penalty(facts["n"]),
            intercept="free" if self.fit_intercept else "none",
            rows=facts["n"],
            minimized=facts["stopped"] == "converged",
            tolerance=float(self.tol),
        )
        return Parts(lambda: linear_form(self.coef_, self.intercept_), objective)


def _mean(rows: Array) -> npt.NDArray[np.float64]:
    """The mean of each column, in float64, without overflow."""
    return (rows.astype(np.float64, copy=False) / len(rows)).sum(axis=0)


def _powers(X: Array, Y: npt.NDArray[np.float64], regularization: float) -> tuple[int, int]:
    """The powers of 2 next to the sizes of rows and targets."""
    size = max(float(np.abs(X).max()), math.sqrt(regularization))
    return _power(size), _power(float(np.abs(Y).max()))


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


def _measured(
    X: Array,
    Y: npt.NDArray[np.float64],
    coef: npt.NDArray[np.float64],
    lam: float,
    powers: tuple[int, int],
    centered: bool,
) -> dict[str, Any]:
    """Norm, training risk, and ‖∇F‖ with what rounding can add, in float64 and the rows' own units.

    Each of the sums of k products in Xw and Xᵀr is within k·eps times the lengths of its vectors;
    ``centered`` numbers are each within 3 eps of their own size, and the residuals' mean, which b
    takes away, within n·eps of theirs. Rounding moves what is measured again by far less than this
    worst case.
    """
    n, (x_power, y_power), eps = len(X), powers, float(np.finfo(float).eps)
    weights, scaled_lam = np.ldexp(coef, x_power - y_power), _times(lam, -2 * x_power)
    rows, targets = np.ldexp(X.astype(np.float64, copy=False), -x_power), np.ldexp(Y, -y_power)
    residual = rows @ weights - targets
    residual -= residual.mean(axis=0) if centered else 0.0
    gradient = rows.T @ residual / n + scaled_lam * weights
    length, size, left = (float(np.linalg.norm(part)) for part in (rows, weights, residual))
    sums = (X.shape[1] + 2) * length * size
    if centered:
        sums = (X.shape[1] + 8) * length * size + 4 * float(np.linalg.norm(targets))
    rounding = eps * (
        length * (sums + ((2 * n + 10) if centered else (n + 4)) * left) / n + 4 * scaled_lam * size
    )
    slope, off = (
        2.0 * (float(np.linalg.norm(gradient)) + rounding),
        eps * (sums + 4 * float(np.linalg.norm(targets))),
    )
    risk = float((residual**2).sum(1).mean())
    return {
        "n": n,
        "d": X.shape[1],
        "outputs": Y.shape[1],
        "regularization": lam,
        "norm": _times(size, y_power - x_power),
        "training_risk": Within(
            _times(risk, 2 * y_power), _times(1e-6 * risk + off * (2 * left + off) / n, 2 * y_power)
        ),
        "gradient_norm": Within(
            _times(slope, x_power + y_power), _times(1e-6 * slope + rounding / 2, x_power + y_power)
        ),
    }
