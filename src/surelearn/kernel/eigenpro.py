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
from sklearn.utils.validation import (
    _check_sample_weight,  # pyright: ignore[reportAttributeAccessIssue]
    check_is_fitted,
    check_X_y,
    validate_data,
)

from surelearn.base import Learner, Writer
from surelearn.kernel import claims
from surelearn.kernel.choosing import choose_kernel, default_bandwidth, with_length
from surelearn.kernel.fitting import Fitted, Options, Rows, default_budget, fit_rows, resolve_device
from surelearn.kernel.functions import Gaussian, Kernel, Laplace, Matern, Precomputed, kernel
from surelearn.kernel.torch_composites import evaluator as prepare
from surelearn.kernel.torch_functions import check_rows

Array = npt.NDArray[np.float64]
_SOLVERS = ("auto", "direct", "eigenpro")
_DEVICES = ("auto", "cpu", "cuda")
_DTYPES = ("float32", "float64")


class _EigenPro(Learner):
    """What the regressor and the classifier share: parameters, fitting, scores."""

    def __init__(
        self,
        kernel: str | Kernel = "laplace",
        *,
        bandwidth: float | str | None = None,
        degree: int = 3,
        regularization: float | str = 0.0,
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
        warm_start: bool = False,
        verbose: bool = False,
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
        self.warm_start = warm_start
        self.verbose = verbose
        self.x_bound = x_bound
        self.y_bound = y_bound
        self.random_state = random_state
        self.delta = delta

    def _fit(self, X: Any, Y: Array, sample_weight: Any, *, labels: bool) -> None:
        """Fit to checked rows and targets (n, outputs)."""
        self._check()
        resolve_device(self.device)
        rng = check_random_state(self.random_state)
        rows = _rows(X, Y, sample_weight)
        made, lam, tuned = self._choose(rows, rng, labels=labels)
        if isinstance(made, Precomputed) and X.shape[0] != X.shape[1]:
            raise ValueError(f"X must be the square matrix k(x_i, x_j) of the training rows, not of shape {tuple(X.shape)}")
        settings: dict[str, Any] = {n: getattr(self, n) for n in Options.__dataclass_fields__ if hasattr(self, n)}
        settings["regularization"] = lam
        options = Options(**settings, classify=labels, exact=lam > 0 or (labels and Y.shape[1] == 1 and not tuned))
        fitted = fit_rows(made, rows, options, rng, self._start(X, Y.shape[1]))
        self.kernel_name_, self.kernel_parameters_ = made.name, made.parameters()
        self.centers_ = None if isinstance(made, Precomputed) else _as_array(fitted.rows.X)
        self.center_indices_, self.coef_ = fitted.rows.numbers, fitted.alpha
        self.eigenvalues_ = fitted.eigenvalues
        if self.x_bound is not None and self.centers_ is not None:
            self._check_bound("x_bound", self.x_bound, np.linalg.norm(self.centers_.astype(float, copy=False), axis=1))
        facts = {"d": X.shape[1], "outputs": Y.shape[1], "kernel": made.name, "tuned": tuned, **fitted.facts}
        facts |= {"radius": made.radius(self.x_bound), "y_bound": self.y_bound}
        facts |= {f"kernel_{name}": value for name, value in self.kernel_parameters_.items()}
        self.facts_ = facts | self._more_facts(facts, fitted)
        self.epochs_ = int(fitted.facts["epochs"])

    def _start(self, X: Any, outputs: int) -> tuple[np.ndarray, Array] | None:
        """The rows' numbers and α of the fit before, where it is to go on and had as many columns and outputs."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        alpha = self.coef_.reshape(len(self.coef_), -1)
        fits = alpha.shape[1] == outputs and len(X) > self.center_indices_.max()
        if not fits or (self.centers_ is not None and not np.array_equal(_as_array(X)[self.center_indices_], self.centers_)):
            raise ValueError("warm_start=True goes on with the same rows (more may follow) and outputs: these are others")
        return self.center_indices_, alpha

    def _more_facts(self, facts: dict[str, Any], fitted: Fitted) -> dict[str, Any]:
        """What the claims of this learner read."""
        raise NotImplementedError

    def _choose(self, rows: Rows, rng: np.random.RandomState, *, labels: bool) -> tuple[Kernel, float, bool]:
        """The kernel, λ, and whether either was chosen on the rows: by leave-one-out, or a bandwidth by their distances."""
        made = self.kernel if isinstance(self.kernel, Kernel) else kernel(self.kernel, degree=self.degree)
        length = getattr(self.kernel, "bandwidth", self.bandwidth)
        if length in (None, "loo") or self.regularization == "loo":
            check_rows(rows.X)
        if "loo" in (self.regularization, length):
            found = choose_kernel(
                _as_array(rows.X),
                _labels(rows.Y) if labels else rows.Y,
                kernels=[made],
                bandwidths=None if length in (None, "loo") else [float(length)],
                regularizations=None if self.regularization == "loo" else [float(self.regularization)],
                classify=labels,
                random_state=rng,
            )
            return found.kernel, found.regularization, True
        lam = float(self.regularization)
        if isinstance(self.kernel, Kernel) or not isinstance(made, (Gaussian, Laplace, Matern)):
            return made, lam, False
        if length is None:
            length = default_bandwidth(made, _as_array(rows.X), rng, interpolate=lam == 0)
        return with_length(made, float(length or 1.0)), lam, self.bandwidth is None

    def _checked(self, X: Any, **rest: Any) -> Any:
        """Rows, and targets if y is given, as arrays; torch tensors stay where they are. `Evaluator` looks for NaN."""
        if not _is_tensor(X):
            dtypes = (np.float64, np.float32)
            return validate_data(self, X, **rest, reset="y" in rest, dtype=dtypes, ensure_all_finite=False)
        if X.ndim != 2 or not X.is_floating_point():
            raise ValueError(f"X must be a tensor of floating-point numbers with two axes, not {X.dtype} with {X.ndim}")
        if "y" not in rest:
            if X.shape[1] != self.n_features_in_:
                raise ValueError(f"X has {X.shape[1]} columns, but the model was fitted to {self.n_features_in_}")
            return X.detach()
        self.n_features_in_ = int(X.shape[1])
        rest["y"] = _as_array(rest["y"])
        return X.detach(), check_X_y(np.zeros((len(X), 1)), **rest)[1]

    def _scores(self, X: Any) -> Any:
        """f(x) for each row and output, an array (n, outputs), or a tensor where X is one."""
        import torch

        check_is_fitted(self, "coef_")
        X = self._checked(X)
        if self.centers_ is None:
            scores = _as_array(X)[:, self.center_indices_] @ self.coef_.reshape(len(self.coef_), -1)
            return torch.from_numpy(scores).to(X) if _is_tensor(X) else scores
        made = kernel(self.kernel_name_, **self.kernel_parameters_)
        device = resolve_device(self.device)
        evaluator = prepare(made, self.centers_, device, self.facts_["dtype"])
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
            loo = " or 'loo'" if name == "bandwidth" else ""
            if value is not None and not (loo and value == "loo") and not _is_number(value, above=0):
                raise ValueError(f"{name} must be a finite number above 0 or None{loo}, not {value!r}")
        for name, least in (("subsample", 1), ("directions", 0), ("batch_size", 1), ("epochs", 1)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or value != int(value) or value < least):
                raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
        if self.regularization != "loo" and not (_is_number(self.regularization) and float(self.regularization) >= 0):
            raise ValueError(f"regularization must be a finite number of at least 0 or 'loo', not {self.regularization!r}")
        if self.validation_fraction is not None and not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must be between 0 and 1, not {self.validation_fraction!r}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)
        return tags

    @staticmethod
    def _check_bound(name: str, bound: float | None, seen: Array) -> None:
        if bound is not None and seen.max() > bound * (1 + 1e-12):
            raise ValueError(f"{name}={bound:g} but a row has {seen.max():g}: state a bound that holds for every row")


def _labels(Y: Array) -> np.ndarray:
    """Which class a row's ±1 targets say."""
    return (Y[:, 0] > 0).astype(int) if Y.shape[1] == 1 else Y.argmax(axis=1)


def _is_number(value: Any, above: float = -math.inf) -> bool:
    return isinstance(value, (int, float, np.number)) and math.isfinite(value) and bool(value > above)


def _is_tensor(X: Any) -> bool:
    return type(X).__module__ == "torch"


def _rows(X: Any, Y: Array, sample_weight: Any) -> Rows:
    """Rows with their weights; those of weight 0 are left out."""
    numbers = np.arange(len(Y))
    if sample_weight is None:
        return Rows(X, Y, None, numbers)
    weights = _check_sample_weight(sample_weight, Y, dtype=np.float64, ensure_non_negative=True)
    return Rows(X, Y, weights, numbers).take(np.flatnonzero(weights))


def _as_array(X: Any) -> np.ndarray:
    return X.detach().cpu().numpy() if _is_tensor(X) else X


class EigenProRegressor(MultiOutputMixin, RegressorMixin, _EigenPro):
    """Kernel regression: (1/n)·Σ‖f(x_i) − y_i‖² + λ‖f‖², by EigenPro, or directly where there are few rows.

    Parameters
    ----------
    kernel : "laplace", "gaussian", "matern", "polynomial", "linear", "precomputed", or an object of
        `surelearn.kernel.functions` and of sums and products of such
    bandwidth : the kernel's length h: exp(−‖x − z‖²/2h²), exp(−‖x − z‖/h); None takes a multiple of the median distance of
        rows, "loo" the best by leave-one-out (`surelearn.kernel.choosing`): both void claims about the training rows
    degree : of the polynomial kernel
    regularization : λ ≥ 0 beside the *mean* squared loss; 0 interpolates; "loo" takes the best by leave-one-out
    solver : "direct" (Cholesky in float64, exact leave-one-out), "eigenpro", or "auto": direct up to 2,000 rows
    subsample, directions, batch_size : s, q and m of EigenPro; None chooses them
    step : η of EigenPro 2, made smaller where it would diverge; None solves for each block of rows instead
    epochs, tol : stop after so many passes, or when the residual is below ``tol`` of the targets' size
    target : stop when the error (the validation rows', else the training rows' mean squared one) is at most this
    time_limit : seconds after which to stop, at the end of an epoch
    validation_fraction, patience : hold out so many rows, and stop when they have not improved for so many epochs
    device, dtype : "auto" takes CUDA where there is a device; the eigensystem is always in float64
    memory_limit : bytes; kernel blocks are kept when they fit, else computed again each epoch
    warm_start : whether EigenPro goes on from the α of the fit before, on the same rows; more rows may follow them
    verbose : whether to say on stderr, after each epoch, how far the fit is
    x_bound, y_bound : bounds on ‖x‖ and ``|y|`` that hold for *every* row, for claims
    delta : the failure probability of each claim

    Attributes
    ----------
    centers_, coef_ : the training rows (None if the kernel is precomputed) and their coefficients α
    center_indices_ : which of the rows given to ``fit`` they are: not those held out, nor those of weight 0
    eigenvalues_ : the leading eigenvalues of K_S/s (empty after a direct solution)
    facts_ : what was chosen and measured, among others ``norm``: the RKHS norm of f, and ``leave_one_out_error``

    Examples
    --------
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = EigenProRegressor("gaussian", bandwidth=1.0).fit(X, np.sin(X[:, 0]))
    >>> float(abs(model.predict([[1.5]])[0] - np.sin(1.5))) < 1e-4
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows ``X`` (n, d) and targets ``y`` (n,) or (n, t), arrays or torch tensors.

        With ``sample_weight`` w the loss is Σ w_i‖f(x_i) − y_i‖²/Σw, and no claim about the training rows is made.
        """
        X, y = self._checked(X, y=y, multi_output=True, y_numeric=True)
        Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        self._check_bound("y_bound", self.y_bound, np.linalg.norm(Y, axis=1))
        self._fit(X, Y, sample_weight, labels=False)
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

    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows ``X`` (n, d) and labels ``y`` (n,), of two or more classes; ``sample_weight`` as in regression."""
        X, y = self._checked(X, y=y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("y holds one class only: classification needs at least two")
        Y = np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        self._fit(X, Y[:, 1:] if len(self.classes_) == 2 else Y, sample_weight, labels=True)
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
        return {"classes": len(self.classes_), **(claims.margin_facts(fitted.values, fitted.rows.Y) if two else {})}

    def _claim(self, writer: Writer) -> None:
        claims.claim_distance(writer, self.facts_)
        claims.claim_leave_one_out(writer, self.facts_)
        claims.claim_margin(writer, self.facts_)
