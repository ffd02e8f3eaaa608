"""Kernel interpolation and ridge regression by EigenPro, or directly where the problem is small.

Minimizes (1/n)·Σ‖f(x_i) − y_i‖² + λ‖f‖² over the RKHS of a kernel; λ = 0 interpolates. PyTorch is imported when a learner is
fitted or predicts, not before.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from surelearn.base import Learner, Writer
from surelearn.kernel import claims
from surelearn.kernel.fitting import Fitted, Options, default_budget, fit_rows, resolve_device
from surelearn.kernel.functions import Gaussian, Kernel, Laplace, Matern, kernel
from surelearn.kernel.torch_functions import Evaluator

Array = npt.NDArray[np.float64]
_SOLVERS = ("auto", "direct", "eigenpro")
_DEVICES = ("auto", "cpu", "cuda")
_DTYPES = ("float32", "float64")
_HEURISTIC_ROWS = 500


class _EigenPro(Learner):
    """What the regressor and the classifier share: parameters, fitting, scores."""

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        *,
        bandwidth: float | None = None,
        degree: int = 3,
        regularization: float = 0.0,
        solver: str = "auto",
        subsample: int | None = None,
        directions: int | None = None,
        batch_size: int | None = None,
        step: float | None = None,
        epochs: int = 10,
        tol: float = 1e-3,
        target: float | None = None,
        time_limit: float | None = None,
        validation_fraction: float | None = None,
        patience: int = 3,
        device: str = "auto",
        dtype: str = "float32",
        memory_limit: float | None = None,
        x_bound: float | None = None,
        y_bound: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        delta: float = 0.05,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.degree = degree
        self.regularization = regularization
        self.solver = solver
        self.subsample = subsample
        self.directions = directions
        self.batch_size = batch_size
        self.step = step
        self.epochs = epochs
        self.tol = tol
        self.target = target
        self.time_limit = time_limit
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.device = device
        self.dtype = dtype
        self.memory_limit = memory_limit
        self.x_bound = x_bound
        self.y_bound = y_bound
        self.random_state = random_state
        self.delta = delta

    def _fit(self, X: np.ndarray, Y: Array, *, labels: bool) -> None:
        """Fit to checked rows and targets (n, outputs)."""
        self._check()
        rng = check_random_state(self.random_state)
        made, tuned = self._kernel(X, rng)
        options = Options(
            **{name: getattr(self, name) for name in Options.__dataclass_fields__ if hasattr(self, name)},
            classify=labels,
            exact=self.regularization > 0 or (labels and Y.shape[1] == 1 and not tuned),
        )
        fitted = fit_rows(made, X, Y, options, rng)
        self.kernel_name_, self.kernel_parameters_ = made.name, made.parameters()
        self.centers_, self.coef_ = _as_array(fitted.rows), fitted.alpha
        self.eigenvalues_ = fitted.eigenvalues
        if self.x_bound is not None:
            self._check_bound("x_bound", self.x_bound, np.linalg.norm(self.centers_.astype(float, copy=False), axis=1))
        facts = {"d": X.shape[1], "outputs": Y.shape[1], "kernel": made.name, "tuned": tuned, **fitted.facts}
        facts |= {"radius": made.radius(self.x_bound), "y_bound": self.y_bound}
        facts |= {f"kernel_{name}": value for name, value in self.kernel_parameters_.items()}
        self.facts_ = facts | self._more_facts(facts, fitted)
        self.epochs_ = int(fitted.facts["epochs"])

    def _more_facts(self, facts: dict[str, Any], fitted: Fitted) -> dict[str, Any]:
        """What the claims of this learner read."""
        raise NotImplementedError

    def _kernel(self, X: np.ndarray, rng: np.random.RandomState) -> tuple[Kernel, bool]:
        """The kernel, and whether its bandwidth was chosen on the rows: then it is the median distance of random pairs."""
        if isinstance(self.kernel, Kernel):
            return self.kernel, False
        made = kernel(self.kernel, degree=self.degree)
        if not isinstance(made, (Gaussian, Laplace, Matern)):
            return made, False
        bandwidth = self.bandwidth
        if bandwidth is None:
            some = _as_array(X[rng.permutation(len(X))[:_HEURISTIC_ROWS]]).astype(np.float64)
            apart = np.linalg.norm(some - np.roll(some, 1, axis=0), axis=1)
            bandwidth = float(np.median(apart[apart > 0])) if (apart > 0).any() else 1.0
        made = Gaussian.of_bandwidth(bandwidth) if isinstance(made, Gaussian) else type(made)(sigma=float(bandwidth))
        return made, self.bandwidth is None

    def _checked(self, X: Any, y: Any = None, **checks: Any) -> Any:
        """Rows, and targets if given, as arrays; rows of a torch tensor stay where they are. `Evaluator` looks for NaN."""
        if not _is_tensor(X):
            rest = {} if y is None else {"y": y}
            return validate_data(
                self, X, **rest, **checks, reset=y is not None, dtype=(np.float64, np.float32), ensure_all_finite=False
            )
        if X.ndim != 2 or not X.is_floating_point():
            raise ValueError(f"X must be a tensor of floating-point numbers with two axes, not {X.dtype} with {X.ndim}")
        if y is None and X.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {X.shape[1]} columns, but the model was fitted to {self.n_features_in_}")
        if y is None:
            return X.detach()
        self.n_features_in_ = int(X.shape[1])
        y = y.detach().cpu().numpy() if _is_tensor(y) else y
        return X.detach(), check_X_y(np.zeros((len(X), 1)), y, **checks)[1]

    def _scores(self, X: Any) -> Any:
        """f(x) for each row and output, an array (n, outputs), or a tensor where X is one."""
        import torch

        check_is_fitted(self, "coef_")
        X = self._checked(X)
        made = kernel(self.kernel_name_, **self.kernel_parameters_)
        device = resolve_device(self.device)
        evaluator = Evaluator(made, self.centers_, device, self.facts_["dtype"])
        alpha = torch.from_numpy(self.coef_.reshape(len(self.coef_), -1)).to(evaluator.device, evaluator.dtype)
        budget = default_budget(device) if self.memory_limit is None else self.memory_limit
        scores = evaluator.times(evaluator.rows(X), evaluator.points, alpha, min(2.0**28, budget))
        return scores.to(X.device) if _is_tensor(X) else scores.cpu().double().numpy()

    def _check(self) -> None:
        for name, allowed in (("solver", _SOLVERS), ("device", _DEVICES), ("dtype", _DTYPES)):
            if (value := getattr(self, name)) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")
        for name in ("bandwidth", "step", "memory_limit", "time_limit", "x_bound", "y_bound"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a finite number above 0 or None, not {value!r}")
        for name, least in (("subsample", 1), ("directions", 0), ("batch_size", 1), ("epochs", 1)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or value != int(value) or value < least):
                raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
        if not (math.isfinite(self.regularization) and self.regularization >= 0):
            raise ValueError(f"regularization must be a finite number of at least 0, not {self.regularization!r}")
        if self.validation_fraction is not None and not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must be between 0 and 1, not {self.validation_fraction!r}")

    @staticmethod
    def _check_bound(name: str, bound: float | None, seen: Array) -> None:
        if bound is not None and seen.max() > bound * (1 + 1e-12):
            raise ValueError(f"{name}={bound:g} but a row has {seen.max():g}: state a bound that holds for every row")


def _is_tensor(X: Any) -> bool:
    return type(X).__module__ == "torch"


def _as_array(X: Any) -> np.ndarray:
    return X.cpu().numpy() if _is_tensor(X) else X


class EigenProRegressor(MultiOutputMixin, RegressorMixin, _EigenPro):
    """Kernel regression: (1/n)·Σ‖f(x_i) − y_i‖² + λ‖f‖², by EigenPro, or directly where there are few rows.

    Parameters
    ----------
    kernel : "gaussian", "laplace", "matern", "polynomial", "linear", or an object of `surelearn.kernel.functions`
    bandwidth : the kernel's length h: exp(−‖x − z‖²/2h²), exp(−‖x − z‖/h); None takes the median distance of rows, which
        voids claims about the training rows
    degree : of the polynomial kernel
    regularization : λ ≥ 0 beside the *mean* squared loss; 0 interpolates
    solver : "direct" (Cholesky in float64, exact leave-one-out), "eigenpro", or "auto": direct up to 2,000 rows
    subsample, directions, batch_size : s, q and m of EigenPro; None chooses them
    step : η of EigenPro 2, made smaller where it would diverge; None solves for each block of rows instead
    epochs, tol : stop after so many passes, or when the residual is below ``tol`` of the targets' size
    target : stop when the error (the validation rows', else the training rows' mean squared one) is at most this
    time_limit : seconds after which to stop, at the end of an epoch
    validation_fraction, patience : hold out so many rows, and stop when they have not improved for so many epochs
    device, dtype : "auto" takes CUDA where there is a device; the eigensystem is always in float64
    memory_limit : bytes; kernel blocks are kept when they fit, else computed again each epoch
    x_bound, y_bound : bounds on ‖x‖ and ``|y|`` that hold for *every* row, for claims
    delta : the failure probability of each claim

    Attributes
    ----------
    centers_, coef_ : the training rows and their coefficients α
    eigenvalues_ : the leading eigenvalues of K_S/s (empty after a direct solution)
    facts_ : what was chosen and measured, among others ``norm``: the RKHS norm of f, and ``leave_one_out_error``

    Examples
    --------
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = EigenProRegressor(bandwidth=1.0).fit(X, np.sin(X[:, 0]))
    >>> float(abs(model.predict([[1.5]])[0] - np.sin(1.5))) < 1e-4
    True
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows ``X`` (n, d) and targets ``y`` (n,) or (n, t)."""
        X, y = self._checked(X, y, multi_output=True, y_numeric=True)
        Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        self._check_bound("y_bound", self.y_bound, np.linalg.norm(Y, axis=1))
        self._fit(X, Y, labels=False)
        self.coef_ = self.coef_ if np.ndim(y) == 2 else self.coef_[:, 0]
        return self

    def predict(self, X: Any) -> Array:
        """f(x), shape (n,) or (n, t)."""
        scores = self._scores(X)
        return scores if self.coef_.ndim == 2 else scores[:, 0]

    def _more_facts(self, facts: dict[str, Any], fitted: Fitted) -> dict[str, Any]:  # noqa: ARG002
        return claims.stability_facts(facts)

    def _claim(self, writer: Writer) -> None:
        claims.claim_distance(writer, self.facts_)
        claims.claim_leave_one_out(writer, self.facts_)
        claims.claim_stability(writer, self.facts_)


class EigenProClassifier(ClassifierMixin, _EigenPro):
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

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows ``X`` (n, d) and labels ``y`` (n,), of two or more classes: targets are ±1, one output a class."""
        X, y = self._checked(X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("y holds one class only: classification needs at least two")
        Y = np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        self._fit(X, Y[:, 1:] if len(self.classes_) == 2 else Y, labels=True)
        return self

    def decision_function(self, X: Any) -> Array:
        """f(x): for two classes one number a row, positive for the second; else one a class."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class with the largest score."""
        scores = _as_array(self.decision_function(X))
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def _more_facts(self, facts: dict[str, Any], fitted: Fitted) -> dict[str, Any]:  # noqa: ARG002
        two = len(self.classes_) == 2
        return {"classes": len(self.classes_), **(claims.margin_facts(fitted.values, fitted.targets) if two else {})}

    def _claim(self, writer: Writer) -> None:
        claims.claim_distance(writer, self.facts_)
        claims.claim_leave_one_out(writer, self.facts_)
        claims.claim_margin(writer, self.facts_)
