"""What the regressor and the classifier of `surelearn.kernel.eigenpro` share: parameters,
fitting, scores.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from copy import copy
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeGuard, cast

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    _check_sample_weight,  # pyright: ignore[reportAttributeAccessIssue]
    check_is_fitted,
    check_X_y,
    validate_data,
)

from surelearn.base import WEIGHTED_CHECKS, Learner, group_of
from surelearn.earlier import Groups, Names, moved
from surelearn.kernel.centers import CenterOptions, fit_centers, measure_centers
from surelearn.kernel.choosing import choose_kernel, default_bandwidth, with_length
from surelearn.kernel.fitting import (
    FittingOptions,
    WeightedRows,
    default_budget,
    fit_rows,
    measure_rows,
    resolve_device,
)
from surelearn.kernel.form import sum_form
from surelearn.kernel.functions import (
    Gaussian,
    Kernel,
    Laplace,
    Matern,
    Precomputed,
    kernel,
    read_kernel,
)
from surelearn.kernel.left_out import has_closed_fits, left_out
from surelearn.kernel.options import Compute, Preconditioner, Stopping
from surelearn.kernel.precomputed import check_matrix
from surelearn.kernel.streams import ArrayRows, ParquetRows, RowStream
from surelearn.kernel.torch_composites import evaluator as prepare
from surelearn.kernel.torch_functions import ArrayOrTensor, check_rows
from surelearn.lacking import Lacking
from surelearn.optim.spread import around_spreads, column_spreads
from surelearn.record import Record
from surelearn.subject import Around, Objective, Parts
from surelearn.subject.forms import PRECOMPUTED
from surelearn.subject.leaving import Without
from surelearn.subject.machines import Expansion, Machines
from surelearn.types import AnyArray, Array, RowsLike

if TYPE_CHECKING:
    import torch
    from typing_extensions import TypeIs

_SOLVERS = ("auto", "direct", "eigenpro")
_DEVICES = ("auto", "cpu", "cuda")
_DTYPES = ("float32", "float64")
_SECONDS = 5.0  # between two lines about the progress
_LARGEST = 1e140  # of a target
PENALTY = 0.1  # nλ where neither λ nor the kernel's length is stated
_CHUNK = 20_000  # rows of a stream at a time
_LOOKED_AT = 2000  # rows of a stream on which a kernel is chosen
_NO_WEIGHTS = (
    "sample_weight goes with centers=None: a model with fewer centers counts each row once"
)


class KernelMachine(Learner):
    """f = Σ α_j k(x_j, ·), fitted by least squares; targets are what a subclass makes of y."""

    groups: ClassVar[Groups] = {
        "preconditioner": Preconditioner,
        "stopping": Stopping,
        "compute": Compute,
    }
    # until version 0.2 the parameters of these stood beside them
    earlier: ClassVar[Names] = {
        **moved("preconditioner", "subsample", "directions", "batch_size", "step"),
        **moved("stopping", "tol", "target", "time_limit", "validation_fraction", "patience"),
        **moved("compute", "device", "dtype", "memory_limit", "verbose"),
    }
    spreads_: Array | None = None  # models of version 0.2 took columns as they are

    def __init__(
        self,
        kernel: str | Kernel = "laplace",
        *,
        bandwidth: float | str | None = None,
        degree: int = 3,
        regularization: float | str | None = None,
        solver: str = "auto",
        centers: int | npt.ArrayLike | None = None,
        epochs: int = 10,
        preconditioner: Preconditioner | None = None,
        stopping: Stopping | None = None,
        compute: Compute | None = None,
        warm_start: bool = False,
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
        self.epochs = epochs
        self.preconditioner = preconditioner
        self.stopping = stopping
        self.compute = compute
        self.warm_start = warm_start
        self.x_bound = x_bound
        self.y_bound = y_bound
        self.random_state = random_state
        self.delta = delta

    @property
    def _preconditioner(self) -> Preconditioner:
        return group_of("preconditioner", self.preconditioner, Preconditioner)

    @property
    def _stopping(self) -> Stopping:
        return group_of("stopping", self.stopping, Stopping)

    @property
    def _compute(self) -> Compute:
        return group_of("compute", self.compute, Compute)

    def _settings(self) -> dict[str, Any]:
        """All parameters, those in groups by their own names."""
        found = self.get_params(deep=False)
        for group in (self._preconditioner, self._stopping, self._compute):
            found |= group.get_params()
        return found

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Solved directly, by EigenPro and on fewer centers; with what each claim needs, and
        without.
        """
        yield cls(compute=Compute(device="cpu"))
        yield cls(bandwidth=1.0, regularization=0.1, y_bound=1.0, compute=Compute(device="cpu"))
        yield cls(
            "polynomial",
            degree=2,
            regularization=0.1,
            x_bound=1.0,
            y_bound=1.0,
            solver="eigenpro",
            compute=Compute(device="cpu"),
        )
        yield cls(
            bandwidth=1.0,
            solver="eigenpro",
            stopping=Stopping(validation_fraction=0.25),
            random_state=0,
            compute=Compute(device="cpu"),
        )
        yield cls(
            bandwidth=1.0,
            regularization=0.01,
            centers=20,
            stopping=Stopping(validation_fraction=0.25),
            random_state=0,
            compute=Compute(device="cpu"),
        )

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """Solved directly, and by EigenPro in double precision, as the checks' tolerances ask
        for.
        """
        yield cls(regularization=1e-3, random_state=0, compute=Compute(device="cpu"))
        yield cls(
            regularization=1e-3,
            solver="eigenpro",
            compute=Compute(dtype="float64", device="cpu"),
            random_state=0,
        )

    def expected_failures(self) -> dict[str, str]:
        """EigenPro stops at a tolerance, and not at the same point for a row of weight 2 as for
        two rows.
        """
        stops = self.solver == "eigenpro"
        return (
            {WEIGHTED_CHECKS[0]: "a stopped iteration is not equivalent to repeated rows"}
            if stops
            else {}
        )

    @property
    def record_(self) -> Record:
        """What happened in the fit; models of version 0.2 kept the kernel's parameters and
        x_bound beside their facts.
        """
        check_is_fitted(self, "facts_")
        told = {"x_bound": self.x_bound, "kernel_parameters": self.kernel_parameters_}
        return self.Record.read(told | {"kernel": self.kernel_name_} | self.facts_, strict=False)

    def measure_again(
        self,
        X: RowsLike,
        y: RowsLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> dict[str, Any]:
        """The record's fields that the fitted model and the rows it was fitted on tell,
        measured again.
        """
        check_is_fitted(self, "coef_")
        X, Y, labels = self._read(X, y, reset=False)
        X = self.in_spreads(X)
        self._check()
        made = read_kernel(self.kernel_name_, self.kernel_parameters_)
        # version 0.2 had it in facts alone
        lam = float(getattr(self, "regularization_", self.facts_["regularization"]))
        alpha = self.coef_.reshape(len(self.coef_), -1)
        if self.center_indices_ is None:
            found = self._measure_centers(
                made, ArrayRows(as_array(X), Y), alpha, lam, sample_weight, labels=labels
            )
            return found | self._told(made, X.shape[1], Y.shape[1])
        X, error, every = self._training_rows(X, Y, sample_weight)
        rows, held = self._apart(every)
        direct = not self.eigenvalues_.size
        options = self._options(lam, Y.shape[1], error, labels=labels)
        values, found = measure_rows(made, rows, held, alpha, options, direct=direct)
        more = {"matrix_rows": len(X)} if self._precomputed() else {}
        found |= self._told(made, X.shape[1], Y.shape[1]) | more
        return found | self._more_facts(found, values, rows.Y)

    def _measure_centers(
        self,
        made: Kernel,
        stream: RowStream,
        alpha: Array,
        lam: float,
        sample_weight: npt.ArrayLike | None,
        *,
        labels: bool,
    ) -> dict[str, Any]:
        if sample_weight is not None:
            raise ValueError(_NO_WEIGHTS)
        held = getattr(
            self,
            "held_out_",
            None if self._stopping.validation_fraction else np.zeros(0, dtype=np.int64),
        )
        if held is None:
            raise ValueError("version 0.2 did not keep which rows were held out: fit again")
        self._check_rows(stream)
        centers = np.asarray(self.centers_)
        options = self._center_options(centers, lam, stream.outputs, labels=labels)
        found = measure_centers(made, stream, centers, held, alpha, options)
        return found | self._more_facts(found, None, None)

    def _training_rows(
        self, X: ArrayOrTensor, Y: Array, sample_weight: npt.ArrayLike | None
    ) -> tuple[ArrayOrTensor, float, WeightedRows]:
        """Rows or the kernel matrix, how far that may be from one of a kernel, and the rows of
        positive weight.
        """
        error = 0.0
        if self._precomputed():
            X, error = _kernel_matrix(X)
        elif self.x_bound is not None:
            self._check_bound(
                "x_bound",
                self.x_bound,
                np.linalg.norm(as_array(X).astype(float, copy=False), axis=1),
            )
        return X, error, _rows(X, Y, sample_weight)

    def _apart(self, every: WeightedRows) -> tuple[WeightedRows, WeightedRows | None]:
        """The rows that f is built on, in their order, and those held out."""
        numbers = np.asarray(self.center_indices_)
        where = np.searchsorted(every.numbers, numbers)
        if where.max() >= len(every) or not np.array_equal(every.numbers[where], numbers):
            raise ValueError("some rows that the model is built on are not here, or have weight 0")
        rows = every.take(where)
        if self.centers_ is not None and not np.array_equal(as_array(rows.X), self.centers_):
            raise ValueError("the rows differ from those that the model is built on")
        others = np.delete(np.arange(len(every)), where)
        return rows, every.take(others) if len(others) else None

    def _told(self, made: Kernel, d: int, outputs: int) -> dict[str, Any]:
        """What the parameters and the kernel tell."""
        found: dict[str, Any] = {
            "d": d,
            "outputs": outputs,
            "kernel": made.name,
            "kernel_parameters": made.parameters(),
        }
        return found | {"tuned": self._tuned(), "x_bound": self.x_bound}

    def _options(self, lam: float, outputs: int, error: float, *, labels: bool) -> FittingOptions:
        names = FittingOptions.__dataclass_fields__
        settings = {name: value for name, value in self._settings().items() if name in names}
        settings["regularization"] = lam
        exact = lam > 0 or (labels and outputs == 1 and not self._tuned())
        return FittingOptions(**settings, classify=labels, exact=exact, matrix_error=error)

    def _center_options(
        self, centers: int | AnyArray, lam: float, outputs: int, *, labels: bool
    ) -> CenterOptions:
        names = CenterOptions.__dataclass_fields__.keys() - {"centers"}
        settings = {name: value for name, value in self._settings().items() if name in names}
        settings |= {"regularization": lam, "device": resolve_device(self._compute.device)}
        exact = labels and outputs == 1 and not self._tuned()
        return CenterOptions(centers, passes=self.epochs, classify=labels, exact=exact, **settings)

    def _fit(
        self, X: ArrayOrTensor, Y: Array, sample_weight: npt.ArrayLike | None, *, labels: bool
    ) -> None:
        """Fit to checked rows and targets (n, outputs)."""
        self._check()
        if np.abs(Y).max() > _LARGEST:
            raise ValueError(
                f"y holds numbers up to {np.abs(Y).max():.3g}, whose squares are too large: give it"
                " in other units"
            )
        resolve_device(self._compute.device)
        if not (self.warm_start and hasattr(self, "facts_")):
            self.spreads_ = self._spreads(X, sample_weight)
        X = self.in_spreads(X)
        if self.centers is not None:
            if sample_weight is not None:
                raise ValueError(_NO_WEIGHTS)
            self._fit_stream(ArrayRows(as_array(X), Y), labels=labels)
            return
        rng = check_random_state(self.random_state)
        X, error, rows = self._training_rows(X, Y, sample_weight)
        total = float(
            len(Y) if sample_weight is None else np.sum(np.asarray(sample_weight, dtype=float))
        )
        made, lam = self._choose(rows, rng, total, labels=labels)
        options = self._options(lam, Y.shape[1], error, labels=labels)
        fitted = fit_rows(made, rows, options, rng, self._start(X, Y.shape[1]))
        self.kernel_name_, self.kernel_parameters_, self.regularization_ = (
            made.name,
            made.parameters(),
            lam,
        )
        self.centers_ = None if isinstance(made, Precomputed) else as_array(fitted.rows.X)
        self.center_indices_, self.coef_ = fitted.rows.numbers, fitted.alpha
        self.eigenvalues_ = fitted.eigenvalues
        more = {"matrix_rows": len(X)} if self._precomputed() else {}
        more |= self._told(made, X.shape[1], Y.shape[1])
        self._keep(
            fitted.facts | more | self._more_facts(fitted.facts, fitted.values, fitted.rows.Y)
        )

    def _fit_stream(self, stream: RowStream, *, labels: bool) -> None:
        """Fit a model with fewer centers than rows, the rows read in passes."""
        self._check()
        rng = check_random_state(self.random_state)
        some = stream.take(
            rng.permutation(stream.n)[:_LOOKED_AT] if stream.n > _LOOKED_AT else np.arange(stream.n)
        )
        made, lam = self._choose(_rows(*some, None), rng, float(stream.n), labels=labels)
        if isinstance(made, Precomputed):
            raise ValueError(
                "kernel='precomputed' has a row and a column for every row: give centers=None"
            )
        self._check_rows(stream)
        centers, start = self._centers(stream)
        if self.spreads_ is not None and not isinstance(centers, int):
            centers = (
                as_array(self.in_spreads(np.asarray(centers, dtype=float)))
                if start is None
                else centers
            )
        options = self._center_options(centers, lam, stream.outputs, labels=labels)
        fitted = fit_centers(
            made,
            stream,
            options,
            rng,
            alpha=start,
            progress=Said() if self._compute.verbose else None,
        )
        self.centers_, self.coef_, self.center_indices_, self.held_out_ = (
            fitted.centers,
            fitted.alpha,
            None,
            fitted.held,
        )
        self.kernel_name_, self.kernel_parameters_, self.regularization_ = (
            made.name,
            made.parameters(),
            lam,
        )
        self.eigenvalues_ = np.zeros(0)
        more = {"weighted": False, **self._told(made, stream.d, stream.outputs)}
        self._keep(fitted.facts | more | self._more_facts(fitted.facts, None, None))

    def _check_rows(self, stream: RowStream) -> None:
        if self.x_bound is not None:
            for chunk in stream.chunks(_CHUNK):
                self._check_bound(
                    "x_bound",
                    self.x_bound,
                    np.linalg.norm(chunk[0].astype(float, copy=False), axis=1),
                )

    def _needs_centers(self) -> None:
        if self.centers is None:
            raise ValueError(
                "a file is fitted with fewer centers than rows: give centers=, for example 5000"
            )

    def _take_names(self, stream: ParquetRows) -> None:
        """The names and number of the columns, for rows that come with names later."""
        self.feature_names_in_, self.n_features_in_ = (
            np.asarray(stream.features, dtype=object),
            stream.d,
        )

    def _centers(self, stream: RowStream) -> tuple[Any, Array | None]:
        """The number of centers or the centers themselves, and the α to start with."""
        if self.warm_start and getattr(self, "center_indices_", 0) is None:
            return self.centers_, self.coef_.reshape(len(self.coef_), stream.outputs)
        given = self.centers
        return (int(given) if isinstance(given, (int, np.integer)) else np.asarray(given)), None

    def _keep(self, found: dict[str, Any]) -> None:
        known = {one.name for one in fields(self.Record)}
        self.facts_ = {name: value for name, value in found.items() if name in known}
        self.epochs_ = int(found["epochs"])

    def _start(self, X: ArrayOrTensor, outputs: int) -> tuple[np.ndarray, Array] | None:
        """The rows' numbers and α of the fit before, where it is to go on and had as many
        columns and outputs.
        """
        numbers = getattr(self, "center_indices_", None)
        if not self.warm_start or numbers is None:
            return None
        alpha = self.coef_.reshape(len(self.coef_), -1)
        fits = alpha.shape[1] == outputs and len(X) > numbers.max()
        if not fits or (
            self.centers_ is not None and not np.array_equal(as_array(X)[numbers], self.centers_)
        ):
            raise ValueError(
                "warm_start=True goes on with the same rows (more may follow) and outputs: these"
                " are others"
            )
        return numbers, alpha

    def _described(self) -> Parts | Around:
        check_is_fitted(self, "facts_")
        if self.spreads_ is None:
            return self._parts()
        inside = copy(self)
        inside.spreads_, inside.regularization = None, self.regularization_
        return around_spreads(inside, self.spreads_)

    def _parts(self) -> Parts:
        facts, count = self.facts_, len(self.classes_) if hasattr(self, "classes_") else None
        made = (
            self.kernel
            if isinstance(self.kernel, Kernel)
            else read_kernel(self.kernel_name_, self.kernel_parameters_)
        )
        objective = Objective(
            "squared",
            float(facts["regularization"]),
            intercept="none",
            coding="numbers" if count is None else "binary" if count == 2 else "one_vs_rest",
            uniform=not facts["weighted"],
            kernel=self.kernel_name_,
            rows=facts["n"],
            minimized=facts["solver"] == "direct",
            tolerance=None if facts["solver"] == "direct" else float(self._stopping.tol),
        )
        form = lambda: sum_form(made, self.centers_, self.coef_, classes=count)  # noqa: E731
        why = "there is a closed form only of a direct solution with λ > 0, of at most 5,000 rows"
        fits = self._without if has_closed_fits(self) else Lacking("leave-one-out", why)
        return Parts(form, objective, fits, self._machines, expansion=self._expansion)

    def _expansion(self) -> Expansion | Lacking:
        if self.centers_ is None:
            return Lacking("expansion", PRECOMPUTED.reason)
        return Expansion(
            read_kernel(self.kernel_name_, self.kernel_parameters_), self.centers_, self.facts_
        )

    def _without(
        self,
        X: RowsLike,  # noqa: ARG002 - it holds its rows
        y: npt.ArrayLike,  # noqa: ARG002
        points: RowsLike,
        rows: npt.ArrayLike | None = None,
    ) -> Without:
        fits = left_out(self, points)
        assert fits is not None  # noqa: S101 - has_closed_fits
        return fits.at(np.arange(len(fits.pull)) if rows is None else np.asarray(rows))

    def _machines(self) -> Machines | Lacking:
        """Whatever the kernel: the scores, and ‖f_m‖² = Σ_j α_jm·f_m(x_j)."""
        if self.centers_ is None:
            return Lacking("machines", PRECOMPUTED.reason)
        alpha = np.asarray(self.coef_, dtype=float).reshape(len(self.coef_), -1)
        squares = (alpha * as_array(self._scores(self.centers_))).sum(axis=0)
        return Machines(lambda Z: as_array(self._scores(Z)), squares, np.zeros(alpha.shape[1]))

    def _read(
        self, X: RowsLike, y: RowsLike | None, *, reset: bool
    ) -> tuple[ArrayOrTensor, Array, bool]:
        """Checked rows, their targets (n, outputs), and whether these are labels."""
        raise NotImplementedError

    def _more_facts(
        self, facts: dict[str, Any], values: Array | None, Y: Array | None
    ) -> dict[str, Any]:
        """What else the record of this learner has, of the values f(x_i) where they are known."""
        raise NotImplementedError

    def _unfitted(self) -> tuple[Kernel, float | str | None]:
        """The kernel as it was given, and its length: a number, "loo", or None where it is to
        be chosen.
        """
        made = (
            self.kernel
            if isinstance(self.kernel, Kernel)
            else kernel(self.kernel, degree=self.degree)
        )
        return made, getattr(self.kernel, "bandwidth", self.bandwidth)

    def _tuned(self) -> bool:
        """Whether the kernel or λ was chosen on the rows: by leave-one-out, or a bandwidth by
        their distances.
        """
        made, length = self._unfitted()
        by_distances = (
            isinstance(self.kernel, str)
            and isinstance(made, (Gaussian, Laplace, Matern))
            and length is None
        )
        return by_distances or "loo" in (self.regularization, length)

    def _relative(self) -> bool:
        """Whether columns are divided by their spread: neither the kernel's length, nor λ, nor
        a bound is stated.
        """
        made, length = self._unfitted()
        unstated = length is None and self.regularization is None and self.x_bound is None
        return (
            unstated
            and isinstance(self.kernel, str)
            and isinstance(made, (Gaussian, Laplace, Matern))
        )

    def _spreads(self, X: ArrayOrTensor, sample_weight: npt.ArrayLike | None) -> Array | None:
        """What to divide the columns of training rows by; None where they are taken as they are."""
        if not self._relative():
            return None
        check_rows(X)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        if weights is not None and (weights.shape != (len(X),) or not (weights > 0).any()):
            return None  # refused where rows and weights meet
        return column_spreads(as_array(X), weights)

    def in_spreads(self, X: ArrayOrTensor) -> ArrayOrTensor:
        """Rows as the kernel is given them: each column divided by its spread on the training
        rows, or as it is.
        """
        if self.spreads_ is None:
            return X
        if _is_tensor(X):
            return X / X.new_tensor(self.spreads_)
        return (X / self.spreads_).astype(X.dtype, copy=False)

    def _choose(
        self, rows: WeightedRows, rng: np.random.RandomState, total: float, *, labels: bool
    ) -> tuple[Kernel, float]:
        """The kernel, and λ for rows of this total weight."""
        made, length = self._unfitted()
        if self.centers is None and (length in (None, "loo") or self.regularization == "loo"):
            check_rows(rows.X)
        if "loo" in (self.regularization, length):
            found = choose_kernel(
                as_array(rows.X),
                _labels(rows.Y) if labels else rows.Y,
                kernels=[made],
                bandwidths=None if length in (None, "loo") else [float(length)],
                regularizations=(
                    None if self.regularization == "loo" else [float(self.regularization or 0.0)]
                ),
                classify=labels,
                random_state=rng,
            )
            return found.kernel, found.regularization
        lam = PENALTY / total if self._relative() else float(self.regularization or 0.0)
        if isinstance(self.kernel, Kernel) or not isinstance(made, (Gaussian, Laplace, Matern)):
            return made, lam
        if length is None:
            length = default_bandwidth(made, as_array(rows.X), rng, interpolate=lam == 0)
        return with_length(made, float(length or 1.0)), lam

    def _checked(self, X: RowsLike, *, reset: bool = False, **rest: Any) -> Any:
        """Rows, and targets if y is given, as arrays; torch tensors stay where they are.
        `Evaluator` looks for NaN.
        """
        if not _is_tensor(X):
            dtypes = (np.float64, np.float32)
            return validate_data(
                self, X, **rest, reset=reset, dtype=dtypes, ensure_all_finite=False
            )
        if X.ndim != 2 or not X.is_floating_point():
            raise ValueError(
                f"X must be a tensor of floating-point numbers with two axes, not {X.dtype} with"
                f" {X.ndim}"
            )
        X = X if X.element_size() >= 4 else X.float()
        if reset:
            self.n_features_in_ = int(X.shape[1])
        elif X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} columns, but the model was fitted to {self.n_features_in_}"
            )
        if "y" not in rest:
            return X.detach()
        rest["y"] = as_array(rest["y"])
        return X.detach(), check_X_y(np.zeros((len(X), 1)), **rest)[1]

    def _scores(self, X: RowsLike) -> Any:
        """f(x) for each row and output, an array (n, outputs), or a tensor where X is one."""
        import torch

        check_is_fitted(self, "coef_")
        X = self.in_spreads(self._checked(X))
        if self.centers_ is None:
            check_rows(X)
            scores = as_array(X)[:, self.center_indices_] @ self.coef_.reshape(len(self.coef_), -1)
            return torch.from_numpy(scores).to(X) if _is_tensor(X) else scores
        made = read_kernel(self.kernel_name_, self.kernel_parameters_)
        device = resolve_device(self._compute.device)
        evaluator = prepare(made, self.centers_, device, self.facts_["dtype"])
        scale = float(np.abs(self.coef_).max(initial=0.0)) or 1.0  # single precision ends at 1e38
        alpha = torch.from_numpy(self.coef_.reshape(len(self.coef_), -1) / scale).to(
            evaluator.device, evaluator.dtype
        )
        limit = self._compute.memory_limit
        budget = default_budget(device) if limit is None else limit
        scores = evaluator.times(evaluator.rows(X), evaluator.points, alpha, min(2.0**28, budget))
        return (
            scores.mul_(scale).to(X.device)
            if _is_tensor(X)
            else scores.cpu().double().numpy() * scale
        )

    def _check(self) -> None:
        settings, stopping = self._settings(), self._stopping
        for name, allowed in (("solver", _SOLVERS), ("device", _DEVICES), ("dtype", _DTYPES)):
            if (value := settings[name]) not in allowed:
                raise ValueError(
                    f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}"
                )
        for name in ("bandwidth", "step", "memory_limit", "time_limit", "x_bound", "y_bound"):
            value = settings[name]
            loo = " or 'loo'" if name == "bandwidth" else ""
            if (
                value is not None
                and not (loo and value == "loo")
                and not _is_number(value, above=0)
            ):
                raise ValueError(
                    f"{name} must be a finite number above 0 or None{loo}, not {value!r}"
                )
        for name, least in (
            ("subsample", 1),
            ("directions", 0),
            ("batch_size", 1),
            ("epochs", 1),
            ("patience", 1),
        ):
            value = settings[name]
            if (value is None and name in ("epochs", "patience")) or (
                value is not None and not _is_count(value, least)
            ):
                raise ValueError(
                    f"{name} must be a whole number of at least {least}, not {value!r}"
                )
        if not _is_number(stopping.tol, at_least=0):
            raise ValueError(f"tol must be a finite number of at least 0, not {stopping.tol!r}")
        if stopping.target is not None and not _is_number(stopping.target):
            raise ValueError(f"target must be a finite number or None, not {stopping.target!r}")
        if not (_is_number(self.delta, above=0) and self.delta < 1):
            raise ValueError(f"delta must be between 0 and 1, not {self.delta!r}")
        if self.x_bound is not None and self._precomputed():
            raise ValueError(
                "x_bound is about rows, and a precomputed kernel has none: leave it out"
            )
        stated = self.regularization not in (None, "loo")
        if stated and not _is_number(self.regularization, at_least=0):
            raise ValueError(
                "regularization must be a finite number of at least 0 or 'loo', not"
                f" {self.regularization!r}"
            )
        counted = (
            isinstance(self.centers, (int, np.integer))
            and not isinstance(self.centers, bool)
            and self.centers >= 1
        )
        if self.centers is not None and not counted and np.ndim(self.centers) != 2:
            raise ValueError(
                "centers must be a whole number of at least 1, rows (p, d), or None, not"
                f" {self.centers!r}"
            )
        others = {
            "solver": "auto",
            "subsample": None,
            "directions": None,
            "batch_size": None,
            "step": None,
        }
        given = [name for name, usual in others.items() if settings[name] != usual]
        if self.centers is not None and given:
            raise ValueError(
                f"{given[0]} goes with centers=None: a model with fewer centers is found in"
                " another way"
            )
        fraction = stopping.validation_fraction
        if fraction is not None and not (_is_number(fraction, above=0) and fraction < 1):
            raise ValueError(f"validation_fraction must be between 0 and 1, not {fraction!r}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed()
        return tags

    def _precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or (
            isinstance(self.kernel, str) and self.kernel == "precomputed"
        )

    @staticmethod
    def _check_bound(name: str, bound: float, seen: Array) -> None:
        if seen.max() > bound * (1 + 1e-12):
            raise ValueError(
                f"{name}={bound:g} but a row has {seen.max():g}: state a bound that holds for"
                " every row"
            )


def _labels(Y: Array) -> np.ndarray:
    """Which class a row's ±1 targets say."""
    return (Y[:, 0] > 0).astype(int) if Y.shape[1] == 1 else Y.argmax(axis=1)


def _is_number(
    value: object, above: float = -math.inf, at_least: float = -math.inf
) -> TypeGuard[float]:
    return (
        isinstance(value, (int, float, np.number))
        and not isinstance(value, bool)
        and math.isfinite(value)
        and bool(value > above and value >= at_least)
    )


def _is_count(value: object, least: int) -> bool:
    return _is_number(value, at_least=least) and value == int(value)


def _is_tensor(X: RowsLike) -> TypeIs[torch.Tensor]:
    return type(X).__module__ == "torch"


def _kernel_matrix(X: ArrayOrTensor) -> tuple[ArrayOrTensor, float]:
    """A matrix of training rows, made exactly symmetric, and how far it may be from one of a
    kernel.
    """
    check_rows(X)
    matrix, error = check_matrix(as_array(X))
    if not _is_tensor(X):
        return matrix, error
    import torch

    return torch.from_numpy(matrix).to(X), error


def _rows(X: ArrayOrTensor, Y: Array, sample_weight: npt.ArrayLike | None) -> WeightedRows:
    """Rows with their weights; those of weight 0 are left out."""
    numbers = np.arange(len(Y))
    if sample_weight is None:
        return WeightedRows(X, Y, None, numbers)
    weights = _check_sample_weight(sample_weight, Y, dtype=np.float64, ensure_non_negative=True)
    return WeightedRows(X, Y, weights / weights.max(initial=1e-300), numbers).take(
        np.flatnonzero(weights)
    )


def as_array(X: RowsLike) -> AnyArray:
    """An array, of a tensor too."""
    # What is no tensor was checked before, and is an array.
    return X.detach().cpu().numpy() if _is_tensor(X) else cast("AnyArray", X)


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
