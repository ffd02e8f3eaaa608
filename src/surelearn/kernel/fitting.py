"""From rows to coefficients: which solver, on which device, until when, and what is measured of
the result.
"""

from __future__ import annotations

import math
import os
import sys
import time
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from surelearn.kernel.direct import solve
from surelearn.kernel.functions import Kernel
from surelearn.kernel.iteration import Iteration
from surelearn.kernel.torch_composites import evaluator
from surelearn.kernel.torch_functions import Evaluator, out_of_memory
from surelearn.optim.stopping import Stopper
from surelearn.record import Within
from surelearn.types import Array

if TYPE_CHECKING:
    import torch

DIRECT_ROWS = 2000  # up to so many rows "auto" solves directly
# with a penalty the rows cannot contradict each other, and a residual may grow for a while
_GROWTH = 1e6
_JUDGED = 2000  # rows on which the residual is watched
_PIECE = 2.0**28  # bytes of a kernel block that is not kept
_MATRICES = 4  # of as many rows and columns as there are rows, that a direct solution holds


@dataclass(frozen=True)
class FittingOptions:
    """The learner's parameters of those names.

    ``classify``: errors are wrong labels; ``exact``: measure in float64, with room for rounding;
    ``matrix_error``: how far a kernel matrix that was given may be from one of a kernel.
    """

    regularization: float
    solver: str
    subsample: int | None
    directions: int | None
    batch_size: int | None
    step: float | None
    epochs: int
    tol: float
    target: float | None
    time_limit: float | None
    validation_fraction: float | None
    patience: int
    device: str
    dtype: str
    memory_limit: float | None
    verbose: bool
    classify: bool
    exact: bool
    matrix_error: float = 0.0


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows to fit: X (n, d), an array or a tensor, targets (n, outputs), weights w_i > 0, and each
    row's number.

    Numbers are the columns of a precomputed kernel matrix that belong to the rows.
    """

    X: Any
    Y: Array
    weights: Array | None
    numbers: npt.NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.Y)

    def take(self, which: np.ndarray) -> WeightedRows:
        """Some of the rows."""
        return WeightedRows(
            self.X[which],
            self.Y[which],
            None if self.weights is None else self.weights[which],
            self.numbers[which],
        )

    @property
    def total(self) -> float:
        """Σw_i, or n."""
        return float(len(self) if self.weights is None else self.weights.sum())

    @property
    def roots(self) -> Array:
        """√w_i as a column."""
        return np.ones((len(self), 1)) if self.weights is None else np.sqrt(self.weights)[:, None]

    def evaluator(
        self, kernel: Kernel, device: str, dtype: str, *, weighted: bool = True
    ) -> Evaluator:
        """The kernel on these rows, as W^½KW^½ unless told otherwise."""
        weights = self.weights if weighted else None
        return evaluator(kernel, self.X, device, dtype, weights=weights, numbers=self.numbers)


@dataclass(frozen=True, eq=False)
class Fitted:
    """The rows fitted, their α and values f(x_i), (n, outputs) in the rows' order, and the
    facts.
    """

    rows: WeightedRows
    alpha: Array
    values: Array
    eigenvalues: Array
    facts: dict[str, Any]


def fit_rows(
    kernel: Kernel,
    rows: WeightedRows,
    options: FittingOptions,
    rng: np.random.RandomState,
    start: tuple[Any, Array] | None = None,
) -> Fitted:
    """Fit f to rows; ``start``: the numbers of rows and their α to begin with."""
    began, held = time.monotonic(), None
    if options.validation_fraction is not None:
        order = rng.permutation(len(rows))
        count = min(len(rows) - 1, math.ceil(options.validation_fraction * len(rows)))
        held, rows = rows.take(order[:count]), rows.take(order[count:])
    device = resolve_device(options.device)
    budget = default_budget(device) if options.memory_limit is None else float(options.memory_limit)
    scale = float(np.abs(rows.Y).max()) or 1.0
    facts: dict[str, Any] = {"n": len(rows), "regularization": options.regularization, "epochs": 0}
    facts["weighted"] = rows.weights is not None
    small = held is None and len(rows) <= DIRECT_ROWS and _MATRICES * 8 * len(rows) ** 2 <= budget
    found = None
    if options.solver == "direct" or (options.solver == "auto" and small):
        found = _direct(kernel, rows, held, scale, device, budget, options)
    direct = found is not None
    if found is None:
        beginning = None if start is None else _beginning(rows, *start)
        found = _iterate(kernel, rows, scale, held, device, budget, options, rng, beginning, began)
    alpha, values, eigenvalues, more = found
    alpha *= scale
    if values is None:
        values, measured = _measure(
            kernel, rows, alpha, device, min(_PIECE, budget / 10), options, direct=direct
        )
        more |= {name: getattr(value, "value", value) for name, value in measured.items()}
    else:
        values *= scale
        more |= {"norm": _norm(alpha, values), "value_error": None}
    more["training_risk"] = _risk(rows, values)
    return Fitted(rows, alpha, values, eigenvalues, facts | more)


def measure_rows(
    kernel: Kernel,
    rows: WeightedRows,
    held: WeightedRows | None,
    alpha: Array,
    options: FittingOptions,
    *,
    direct: bool,
) -> tuple[Array, dict[str, Any]]:
    """f(x_i) of rows that were fitted, and the facts that α, these rows and those held out
    tell, measured again.
    """
    import torch

    device = resolve_device(options.device)
    budget = default_budget(device) if options.memory_limit is None else float(options.memory_limit)
    scale = float(np.abs(rows.Y).max()) or 1.0
    values, facts = _measure(
        kernel, rows, alpha, device, min(_PIECE, budget / 10), options, direct=direct
    )
    facts |= {
        "n": len(rows),
        "regularization": options.regularization,
        "weighted": rows.weights is not None,
    }
    off = facts["value_error"]
    if direct:
        found = _direct(
            kernel, rows, held, scale, device, budget, replace(options, solver="direct")
        )
        facts |= {} if found is None else found[3]
        if (left := facts["leave_one_out_error"]) is not None:
            made = rows.evaluator(kernel, device, "float64", weighted=False)
            most = float(made.diagonal(made.points).max())
            facts["leave_one_out_error"] = Within(
                left, left * _inverse_error(len(rows), most, options.regularization)
            )
    else:
        facts |= {"solver": "eigenpro", "dtype": options.dtype, "leave_one_out_error": None}
        if held is not None:
            weighted = rows.evaluator(kernel, device, options.dtype)
            judge = _Judge(weighted, held, scale, options.classify, budget)
            judge.error(_on(weighted, alpha / (rows.roots * scale), torch.arange(len(rows))))
            facts |= judge.facts(scale)
            if not options.classify:
                facts["validation_error"] = _mean_square(facts["validation_error"], 1e-5 * scale)
        # the iteration's own precision: how far it is from float64 says what another order moves
        if not options.exact:
            # the norm's uncertainty is that of the values, turned into one of √(αᵀKα)
            exactly = replace(options, exact=True)
            careful, known = _measure(
                kernel, rows, alpha, device, min(_PIECE, budget / 10), exactly, direct=False
            )
            off = known["value_error"] + 4 * float(np.linalg.norm(values - careful)) / math.sqrt(
                len(rows)
            )
            norm = _norm(alpha, values)
            moved = (
                math.sqrt(norm**2 + math.sqrt(len(rows)) * off * float(np.linalg.norm(alpha)))
                - norm
            )
            facts |= {"norm": Within(norm, 1e-6 * norm + moved), "value_error": None}
    facts["training_risk"] = _mean_square(_risk(rows, values), off)
    return values, facts


def _mean_square(error: float, off: float) -> Within:
    """A mean squared error of values that rounding moves by about ``off``."""
    return Within(error, 1e-6 * error + off * (2 * math.sqrt(error) + off))


def _risk(rows: WeightedRows, values: Array) -> float:
    """Σw‖f(x) − y‖²/Σw."""
    return float((rows.roots**2 * (values - rows.Y) ** 2).sum() / rows.total)


def _norm(alpha: Array, values: Array) -> float:
    """‖f‖ = √Σα_i·f(x_i), from values in the iteration's own precision."""
    return math.sqrt(max(0.0, float((alpha * values).sum())))


def _inverse_error(n: int, most: float, regularization: float) -> float:
    """By what share other rounding may move a leave-one-out error: n·ε·(1 + max k(x, x)/λ),
    from 1e-6 to 0.001.
    """
    if regularization == 0:
        return 1e-3
    return min(1e-3, max(1e-6, n * float(np.finfo(float).eps) * (1 + most / regularization)))


# α, f(x_i) if known already, eigenvalues, facts
_Found = tuple[Array, Array | None, Array, dict[str, Any]]


def _beginning(rows: WeightedRows, numbers: np.ndarray, alpha: Array) -> Array:
    """α of a fit before, row by row; 0 for rows that it did not have."""
    largest = int(max(numbers.max(), rows.numbers.max()))
    every = np.zeros((largest + 1, alpha.shape[1]))
    every[numbers] = alpha
    return every[rows.numbers]


def _direct(
    kernel: Kernel,
    rows: WeightedRows,
    held: WeightedRows | None,
    scale: float,
    device: str,
    budget: float,
    options: FittingOptions,
) -> _Found | None:
    """The direct solution; None where it was not asked for and memory runs out."""
    import torch

    made = rows.evaluator(kernel, device, "float64")
    targets = torch.from_numpy(rows.roots * rows.Y / scale).to(made.device)
    try:
        gram = made.gram(min(_PIECE, budget / 10))
        _check_finite(gram)
        found = solve(gram, targets, options.regularization * rows.total)
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
        if options.solver == "auto":
            return None
        raise MemoryError(
            f"solver='direct' holds {len(rows):,}² numbers, too many here: use solver='eigenpro'"
        ) from None
    if found.rank <= 1 < len(rows):
        warnings.warn(
            f"the kernel matrix of {len(rows)} rows has rank {found.rank}: f is a multiple of one"
            " function; check the bandwidth and the columns",
            stacklevel=5,
        )
    left = (
        None
        if found.left_out is None
        else float(found.left_out.square().sum()) / rows.total * scale**2
    )
    facts = {
        "solver": "direct",
        "dtype": "float64",
        "rank": found.rank,
        "leave_one_out_error": left,
    }
    if held is not None:
        judge = _Judge(made, held, scale, options.classify, budget)
        judge.error(found.alpha)
        facts |= judge.facts(scale)
    return rows.roots * found.alpha.cpu().numpy(), None, np.zeros(0), facts


def _iterate(
    kernel: Kernel,
    rows: WeightedRows,
    scale: float,
    held: WeightedRows | None,
    device: str,
    budget: float,
    options: FittingOptions,
    rng: np.random.RandomState,
    start: Array | None,
    began: float,
) -> _Found:
    import torch

    made = rows.evaluator(kernel, device, options.dtype)
    order = torch.from_numpy(rng.permutation(len(rows)))
    made.points = made.points[order.to(made.device)]
    _check_finite(made.diagonal(made.points))
    targets = _on(made, rows.roots * rows.Y / scale, order)
    run = Iteration(
        made,
        targets,
        options.regularization * rows.total,
        size=options.subsample,
        directions=options.directions,
        batch_size=options.batch_size,
        step=options.step,
        budget=budget,
    )
    if start is not None:
        run.alpha = _on(made, start / (rows.roots * scale), order)
    judge = None if held is None else _Judge(made, held, scale, options.classify, budget)
    reason, done = _epochs(run, judge, options, scale, rng, began)
    if run.capped:
        warnings.warn(
            f"step={options.step:g} would diverge on some blocks: a smaller one was taken there",
            stacklevel=4,
        )
    facts = {
        "solver": "eigenpro",
        "dtype": options.dtype,
        "epochs": done,
        "stopped": reason,
        "leave_one_out_error": None,
    }
    facts |= run.facts()
    if judge is not None:
        facts |= judge.facts(scale)
    eigenvalues = run.spectrum.eigenvalues[: run.directions + 1].copy()
    values = (
        None if options.exact else _in_order(run.apply(slice(0, len(rows))), order) / rows.roots
    )
    return rows.roots * _in_order(run.alpha, order), values, eigenvalues, facts


def _on(made: Evaluator, values: Array, order: torch.Tensor) -> torch.Tensor:
    """Rows of ``values`` in that order, on the evaluator's device and in its precision."""
    import torch

    return torch.from_numpy(values)[order].to(made.device, made.dtype)


def _in_order(values: torch.Tensor, order: torch.Tensor) -> Array:
    """Rows in the order they came in."""
    out = np.empty(values.shape)
    out[order.numpy()] = values.cpu().numpy()
    return out


def _epochs(
    run: Iteration,
    judge: _Judge | None,
    options: FittingOptions,
    scale: float,
    rng: np.random.RandomState,
    began: float,
) -> tuple[str, int]:
    """Epochs until the stopper says so; the best α is kept, and steps are damped where the residual
    grows.

    The residual is that of at least 2,000 rows: of the blocks that were met first, which all later
    ones have pulled at.
    """
    limit = (
        None
        if options.time_limit is None
        else max(0.0, options.time_limit - (time.monotonic() - began))
    )
    stopper = Stopper(options.epochs, limit, None if judge is None else options.patience)
    began = time.monotonic()
    size = float(run.Y.double().square().sum(1).mean())
    best, least = run.alpha.clone(), size
    while not stopper.reason:
        order = rng.permutation(len(run.blocks()))
        run.epoch(order)
        residual = run.residual(order[: math.ceil(_JUDGED / run.batch_size)])
        error, unit = residual, scale**2
        if judge is not None:
            error, unit = judge.error(run.alpha), judge.unit(scale)
        if not residual <= (_GROWTH * size if run.penalty else 2.0 * least):
            run.alpha = best.clone()
            run.dampen()
        elif judge.improved if judge is not None else residual < least:
            best = run.alpha.clone()
        least = min(least, residual)
        reached = options.target is not None and error * unit <= options.target
        near = residual <= options.tol**2 * size
        stopper.after(
            training=residual,
            validation=None if judge is None else error,
            converged=reached or near,
        )
        if options.verbose:
            left = (time.monotonic() - began) / stopper.done * (options.epochs - stopper.done)
            line = (
                f"epoch {stopper.done} of {options.epochs}: error {error * unit:.4g}, at most"
                f" {left:.0f} s left"
            )
            sys.stderr.write(line + "\n")
    if judge is not None or not run.penalty:
        run.alpha = best
    return stopper.reason, stopper.done


class _Judge:
    """The error on validation rows: the share of wrong labels, or the mean squared error."""

    def __init__(
        self, made: Evaluator, held: WeightedRows, scale: float, classify: bool, budget: float
    ) -> None:
        import torch

        self._evaluator, self._rows, self._classify = made, made.rows(held.X), classify
        self._budget = min(_PIECE, budget / 10)
        self.targets = torch.from_numpy(held.Y / scale).to(made.device, made.dtype)
        self._weights = torch.from_numpy(held.roots[:, 0] ** 2 / held.total).to(self.targets)
        self.best, self.improved = math.inf, False

    def unit(self, scale: float) -> float:
        """What turns the error into the targets' own units."""
        return 1.0 if self._classify else scale**2

    def facts(self, scale: float) -> dict[str, Any]:
        """How many rows, and the least error."""
        return {
            "validation_rows": len(self.targets),
            "validation_error": self.best * self.unit(scale),
        }

    def error(self, alpha: torch.Tensor) -> float:
        """The error of α, and whether it is the best so far."""
        scores = self._evaluator.times(self._rows, self._evaluator.points, alpha, self._budget)
        if not self._classify:
            wrong = (scores - self.targets).square().sum(1)
        elif scores.shape[1] == 1:
            wrong = (scores * self.targets <= 0)[:, 0]
        else:
            wrong = scores.argmax(1) != self.targets.argmax(1)
        error = float((self._weights * wrong).sum())
        self.improved = error < self.best
        self.best = min(self.best, error)
        return error


def _measure(
    kernel: Kernel,
    rows: WeightedRows,
    alpha: Array,
    device: str,
    piece: float,
    options: FittingOptions,
    *,
    direct: bool,
) -> tuple[Array, dict[str, Any]]:
    """f(x_i), ‖f‖, and for λ > 0 ‖∇F(f)‖ = (2/Σw)·√ρᵀKρ, ρ_i = w_i(f(x_i) − y_i) + λΣw·α_i; upper
    bounds in float64.

    A sum Σ_j k(x, x_j)c_j is off by at most E·‖c‖₁, E = an entry's error + (n + 2)·ε·max k(x, x);
    where ρ_i is off by r_i, √ρᵀKρ is by at most √max k(x, x)·Σr_i.
    """
    import torch

    made = rows.evaluator(
        kernel, device, "float64" if direct or options.exact else options.dtype, weighted=False
    )
    points, penalty, eps = (
        made.points,
        options.regularization * rows.total,
        torch.finfo(made.dtype).eps,
    )
    most = float(made.diagonal(points).max())
    off = (
        (made.error() + options.matrix_error + (len(points) + 2) * eps * most)
        if options.exact or direct
        else 0.0
    )
    c = torch.from_numpy(alpha).to(made.device, made.dtype)
    values = made.times(points, points, c, piece)
    errors = off * c.abs().sum(0)
    squared = (c * values).sum().clamp(min=0) + (c.abs().sum(0) * errors).sum()
    facts: dict[str, Any] = {"norm": math.sqrt(float(squared)), "value_error": float(errors.max())}
    if penalty > 0:
        weights, targets = (
            torch.from_numpy(np.require(part, requirements="W")).to(values)
            for part in (rows.roots**2, rows.Y)
        )
        rest = weights * (values - targets) + penalty * c
        rounded = weights * errors + 4 * eps * (
            weights * (values.abs() + targets.abs()) + penalty * c.abs()
        )
        squared = (rest * made.times(points, points, rest, piece)).sum().clamp(min=0)
        squared = squared + off * rest.abs().sum(0).square().sum()
        further = math.sqrt(most) * float(rounded.sum(0).norm()) if off else 0.0
        slope = 2.0 / rows.total * (float(squared.sqrt()) + further)
        # far from the worst case
        facts["gradient_norm"] = Within(slope, 1e-6 * slope + 0.5 / rows.total * further)
    return values.cpu().double().numpy(), facts


def _check_finite(values: torch.Tensor) -> None:
    if not bool(values.isfinite().all()):
        raise ValueError(
            "X has rows so large that the kernel overflows: scale the columns, or use"
            " compute=Compute(dtype='float64')"
        )


def resolve_device(device: str) -> str:
    """The device that "auto" means here; without PyTorch, a sentence that says how to get it."""
    try:
        import torch
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "EigenPro needs PyTorch: pip install 'surelearn[torch]'", name="torch"
        ) from None

    here = torch.cuda.is_available()
    if device == "cuda" and not here:
        raise ValueError(
            "device='cuda' needs a GPU and a PyTorch that is built for it, and there is none here:"
            " use 'auto'"
        )
    return device if device != "auto" else "cuda" if here else "cpu"


def default_budget(device: str) -> float:
    """Bytes that kernel blocks may take unless told: half of the memory, or most of what the
    device has free.
    """
    if device == "cuda":
        import torch

        return 0.8 * torch.cuda.mem_get_info()[0]
    return 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
