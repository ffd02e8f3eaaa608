"""What the regressor and the classifier of `surelearn.kernel.eigenpro` share: parameters, fitting, scores."""

from __future__ import annotations

import math
import sys
import time
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    _check_sample_weight,  # pyright: ignore[reportAttributeAccessIssue]
    check_is_fitted,
    check_X_y,
    validate_data,
)

from surelearn.base import Learner
from surelearn.kernel.centres import CentreOptions, fit_centres
from surelearn.kernel.choosing import choose_kernel, default_bandwidth, with_length
from surelearn.kernel.fitting import Fitted, Options, Rows, default_budget, fit_rows, resolve_device
from surelearn.kernel.functions import Gaussian, Kernel, Laplace, Matern, Precomputed, kernel
from surelearn.kernel.precomputed import check_matrix
from surelearn.kernel.streams import ArrayRows, ParquetRows, RowStream
from surelearn.kernel.torch_composites import evaluator as prepare
from surelearn.kernel.torch_functions import check_rows

Array = npt.NDArray[np.float64]
_SOLVERS = ("auto", "direct", "eigenpro")
_DEVICES = ("auto", "cpu", "cuda")
_DTYPES = ("float32", "float64")
_SECONDS = 5.0  # between two lines about the progress
_LARGEST = 1e140  # of a target
_CHUNK = 20_000  # rows of a stream at a time
_LOOKED_AT = 2000  # rows of a stream on which a kernel is chosen


class KernelMachine(Learner):
    """f = Σ α_j k(x_j, ·), fitted by least squares; targets are what a subclass makes of y."""

    def __init__(
        self,
        kernel: str | Kernel = "laplace",
        *,
        bandwidth: float | str | None = None,
        degree: int = 3,
        regularization: float | str = 0.0,
        solver: str = "auto",
        centers: int | npt.ArrayLike | None = None,
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
        self.centers = centers
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
        if np.abs(Y).max() > _LARGEST:
            raise ValueError(
                f"y holds numbers up to {np.abs(Y).max():.3g}, whose squares are too large: give it in other units"
            )
        resolve_device(self.device)
        if self.centers is not None:
            if sample_weight is not None:
                raise ValueError("sample_weight goes with centers=None: a model with fewer centers counts each row once")
            self._fit_stream(ArrayRows(as_array(X), Y), labels=labels)
            return
        rng, error = check_random_state(self.random_state), 0.0
        if self._precomputed():
            X, error = _kernel_matrix(X)
        elif self.x_bound is not None:
            self._check_bound("x_bound", self.x_bound, np.linalg.norm(as_array(X).astype(float, copy=False), axis=1))
        rows = _rows(X, Y, sample_weight)
        made, lam, tuned = self._choose(rows, rng, labels=labels)
        settings: dict[str, Any] = {n: getattr(self, n) for n in Options.__dataclass_fields__ if hasattr(self, n)}
        settings["regularization"] = lam
        options = Options(
            **settings, classify=labels, exact=lam > 0 or (labels and Y.shape[1] == 1 and not tuned), matrix_error=error
        )
        fitted = fit_rows(made, rows, options, rng, self._start(X, Y.shape[1]))
        self.kernel_name_, self.kernel_parameters_ = made.name, made.parameters()
        self.centers_ = None if isinstance(made, Precomputed) else as_array(fitted.rows.X)
        self.center_indices_, self.coef_ = fitted.rows.numbers, fitted.alpha
        self.eigenvalues_ = fitted.eigenvalues
        more = {"matrix_rows": len(X)} if self._precomputed() else {}
        self._keep(made, tuned, X.shape[1], Y.shape[1], fitted.facts | more, fitted)

    def _fit_stream(self, stream: RowStream, *, labels: bool) -> None:
        """Fit a model with fewer centers than rows, the rows read in passes."""
        self._check()
        device, rng = resolve_device(self.device), check_random_state(self.random_state)
        some = stream.take(rng.permutation(stream.n)[:_LOOKED_AT] if stream.n > _LOOKED_AT else np.arange(stream.n))
        made, lam, tuned = self._choose(_rows(*some, None), rng, labels=labels)
        if isinstance(made, Precomputed):
            raise ValueError("kernel='precomputed' has a row and a column for every row: give centers=None")
        names = set(CentreOptions.__dataclass_fields__) & set(self.get_params())
        settings: dict[str, Any] = {name: getattr(self, name) for name in names} | {"regularization": lam, "device": device}
        if self.x_bound is not None:
            for chunk in stream.chunks(_CHUNK):
                self._check_bound("x_bound", self.x_bound, np.linalg.norm(chunk[0].astype(float, copy=False), axis=1))
        centres, start = self._centres(stream)
        exact = labels and stream.outputs == 1 and not tuned
        options = CentreOptions(centres, passes=self.epochs, classify=labels, exact=exact, **settings)
        fitted = fit_centres(made, stream, options, rng, alpha=start, progress=Said() if self.verbose else None)
        self.centers_, self.coef_, self.center_indices_ = fitted.centres, fitted.alpha, None
        self.kernel_name_, self.kernel_parameters_ = made.name, made.parameters()
        self.eigenvalues_ = np.zeros(0)
        self._keep(made, tuned, stream.d, stream.outputs, {"weighted": False, **fitted.facts}, None)

    def _needs_centers(self) -> None:
        if self.centers is None:
            raise ValueError("a file is fitted with fewer centers than rows: give centers=, for example 5000")

    def _take_names(self, stream: ParquetRows) -> None:
        """The names and number of the columns, for rows that come with names later."""
        self.feature_names_in_, self.n_features_in_ = np.asarray(stream.features, dtype=object), stream.d

    def _centres(self, stream: RowStream) -> tuple[Any, Array | None]:
        """The number of centers or the centers themselves, and the α to start with."""
        if self.warm_start and getattr(self, "center_indices_", 0) is None:
            return self.centers_, self.coef_.reshape(len(self.coef_), stream.outputs)
        given = self.centers
        return (int(given) if isinstance(given, (int, np.integer)) else np.asarray(given)), None

    def _keep(self, made: Kernel, tuned: bool, d: int, outputs: int, found: dict[str, Any], fitted: Fitted | None) -> None:
        facts = {"d": d, "outputs": outputs, "kernel": made.name, "tuned": tuned, **found}
        facts |= {"radius": made.radius(self.x_bound), "y_bound": self.y_bound}
        facts |= {f"kernel_{name}": value for name, value in self.kernel_parameters_.items()}
        self.facts_ = facts | self._more_facts(facts, fitted)
        self.epochs_ = int(found["epochs"])

    def _start(self, X: Any, outputs: int) -> tuple[np.ndarray, Array] | None:
        """The rows' numbers and α of the fit before, where it is to go on and had as many columns and outputs."""
        numbers = getattr(self, "center_indices_", None)
        if not self.warm_start or numbers is None:
            return None
        alpha = self.coef_.reshape(len(self.coef_), -1)
        fits = alpha.shape[1] == outputs and len(X) > numbers.max()
        if not fits or (self.centers_ is not None and not np.array_equal(as_array(X)[numbers], self.centers_)):
            raise ValueError("warm_start=True goes on with the same rows (more may follow) and outputs: these are others")
        return numbers, alpha

    def _more_facts(self, facts: dict[str, Any], fitted: Fitted | None) -> dict[str, Any]:
        """What the claims of this learner read."""
        raise NotImplementedError

    def _choose(self, rows: Rows, rng: np.random.RandomState, *, labels: bool) -> tuple[Kernel, float, bool]:
        """The kernel, λ, and whether either was chosen on the rows: by leave-one-out, or a bandwidth by their distances."""
        made = self.kernel if isinstance(self.kernel, Kernel) else kernel(self.kernel, degree=self.degree)
        length = getattr(self.kernel, "bandwidth", self.bandwidth)
        if self.centers is None and (length in (None, "loo") or self.regularization == "loo"):
            check_rows(rows.X)
        if "loo" in (self.regularization, length):
            found = choose_kernel(
                as_array(rows.X),
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
            length = default_bandwidth(made, as_array(rows.X), rng, interpolate=lam == 0)
        return with_length(made, float(length or 1.0)), lam, self.bandwidth is None

    def _checked(self, X: Any, **rest: Any) -> Any:
        """Rows, and targets if y is given, as arrays; torch tensors stay where they are. `Evaluator` looks for NaN."""
        if not _is_tensor(X):
            dtypes = (np.float64, np.float32)
            return validate_data(self, X, **rest, reset="y" in rest, dtype=dtypes, ensure_all_finite=False)
        if X.ndim != 2 or not X.is_floating_point():
            raise ValueError(f"X must be a tensor of floating-point numbers with two axes, not {X.dtype} with {X.ndim}")
        X = X if X.element_size() >= 4 else X.float()
        if "y" not in rest:
            if X.shape[1] != self.n_features_in_:
                raise ValueError(f"X has {X.shape[1]} columns, but the model was fitted to {self.n_features_in_}")
            return X.detach()
        self.n_features_in_ = int(X.shape[1])
        rest["y"] = as_array(rest["y"])
        return X.detach(), check_X_y(np.zeros((len(X), 1)), **rest)[1]

    def _scores(self, X: Any) -> Any:
        """f(x) for each row and output, an array (n, outputs), or a tensor where X is one."""
        import torch

        check_is_fitted(self, "coef_")
        X = self._checked(X)
        if self.centers_ is None:
            check_rows(X)
            scores = as_array(X)[:, self.center_indices_] @ self.coef_.reshape(len(self.coef_), -1)
            return torch.from_numpy(scores).to(X) if _is_tensor(X) else scores
        made = kernel(self.kernel_name_, **self.kernel_parameters_)
        device = resolve_device(self.device)
        evaluator = prepare(made, self.centers_, device, self.facts_["dtype"])
        scale = float(np.abs(self.coef_).max(initial=0.0)) or 1.0  # single precision ends at 1e38
        alpha = torch.from_numpy(self.coef_.reshape(len(self.coef_), -1) / scale).to(evaluator.device, evaluator.dtype)
        budget = default_budget(device) if self.memory_limit is None else self.memory_limit
        scores = evaluator.times(evaluator.rows(X), evaluator.points, alpha, min(2.0**28, budget))
        return scores.mul_(scale).to(X.device) if _is_tensor(X) else scores.cpu().double().numpy() * scale

    def _check(self) -> None:
        for name, allowed in (("solver", _SOLVERS), ("device", _DEVICES), ("dtype", _DTYPES)):
            if (value := getattr(self, name)) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")
        for name in ("bandwidth", "step", "memory_limit", "time_limit", "x_bound", "y_bound"):
            value = getattr(self, name)
            loo = " or 'loo'" if name == "bandwidth" else ""
            if value is not None and not (loo and value == "loo") and not _is_number(value, above=0):
                raise ValueError(f"{name} must be a finite number above 0 or None{loo}, not {value!r}")
        for name, least in (("subsample", 1), ("directions", 0), ("batch_size", 1), ("epochs", 1), ("patience", 1)):
            value = getattr(self, name)
            if (value is None and name in ("epochs", "patience")) or (value is not None and not _is_count(value, least)):
                raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
        if not _is_number(self.tol, at_least=0):
            raise ValueError(f"tol must be a finite number of at least 0, not {self.tol!r}")
        if self.target is not None and not _is_number(self.target):
            raise ValueError(f"target must be a finite number or None, not {self.target!r}")
        if not (_is_number(self.delta, above=0) and self.delta < 1):
            raise ValueError(f"delta must be between 0 and 1, not {self.delta!r}")
        if self.x_bound is not None and self._precomputed():
            raise ValueError("x_bound is about rows, and a precomputed kernel has none: leave it out")
        if self.regularization != "loo" and not _is_number(self.regularization, at_least=0):
            raise ValueError(f"regularization must be a finite number of at least 0 or 'loo', not {self.regularization!r}")
        counted = isinstance(self.centers, (int, np.integer)) and not isinstance(self.centers, bool) and self.centers >= 1
        if self.centers is not None and not counted and np.ndim(self.centers) != 2:
            raise ValueError(f"centers must be a whole number of at least 1, rows (p, d), or None, not {self.centers!r}")
        others = {"solver": "auto", "subsample": None, "directions": None, "batch_size": None, "step": None}
        given = [name for name, usual in others.items() if getattr(self, name) != usual]
        if self.centers is not None and given:
            raise ValueError(f"{given[0]} goes with centers=None: a model with fewer centers is found in another way")
        fraction = self.validation_fraction
        if fraction is not None and not (_is_number(fraction, above=0) and fraction < 1):
            raise ValueError(f"validation_fraction must be between 0 and 1, not {self.validation_fraction!r}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed()
        return tags

    def _precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or (isinstance(self.kernel, str) and self.kernel == "precomputed")

    @staticmethod
    def _check_bound(name: str, bound: float, seen: Array) -> None:
        if seen.max() > bound * (1 + 1e-12):
            raise ValueError(f"{name}={bound:g} but a row has {seen.max():g}: state a bound that holds for every row")


def _labels(Y: Array) -> np.ndarray:
    """Which class a row's ±1 targets say."""
    return (Y[:, 0] > 0).astype(int) if Y.shape[1] == 1 else Y.argmax(axis=1)


def _is_number(value: Any, above: float = -math.inf, at_least: float = -math.inf) -> bool:
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and math.isfinite(value)
    return number and bool(value > above and value >= at_least)


def _is_count(value: Any, least: int) -> bool:
    return _is_number(value, at_least=least) and value == int(value)


def _is_tensor(X: Any) -> bool:
    return type(X).__module__ == "torch"


def _kernel_matrix(X: Any) -> tuple[Any, float]:
    """A matrix of training rows, made exactly symmetric, and how far it may be from one of a kernel."""
    check_rows(X)
    matrix, error = check_matrix(as_array(X))
    if not _is_tensor(X):
        return matrix, error
    import torch

    return torch.from_numpy(matrix).to(X), error


def _rows(X: Any, Y: Array, sample_weight: Any) -> Rows:
    """Rows with their weights; those of weight 0 are left out."""
    numbers = np.arange(len(Y))
    if sample_weight is None:
        return Rows(X, Y, None, numbers)
    weights = _check_sample_weight(sample_weight, Y, dtype=np.float64, ensure_non_negative=True)
    return Rows(X, Y, weights / weights.max(initial=1e-300), numbers).take(np.flatnonzero(weights))


def as_array(X: Any) -> np.ndarray:
    """An array, of a tensor too."""
    return X.detach().cpu().numpy() if _is_tensor(X) else X


class Said:
    """Says on stderr, every few seconds, how much of the passes is done."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()

    def __call__(self, done: int, most: int) -> None:
        """After so many of at most so many rows."""
        now = time.monotonic()
        if now - self._last >= _SECONDS or done == most:
            left = (now - self._began) * (most - done) / max(1, done)
            sys.stderr.write(f"{done:,} of at most {most:,} rows read, at most {left:.0f} s left\n")
            self._last = now
