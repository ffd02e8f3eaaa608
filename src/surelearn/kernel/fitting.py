"""From rows to coefficients: which solver, on which device, until when, and what is measured of the result."""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from surelearn.kernel.direct import solve
from surelearn.kernel.functions import Kernel
from surelearn.kernel.iteration import Iteration
from surelearn.kernel.torch_functions import Evaluator
from surelearn.optim.stopping import Stopper

if TYPE_CHECKING:
    import torch

Array = npt.NDArray[np.float64]
DIRECT_ROWS = 2000  # up to so many rows "auto" solves directly
_GROWTH = 1e6  # with a penalty the rows cannot contradict each other, and a residual may grow for a while
_JUDGED = 2000  # rows on which the residual is watched
_PIECE = 2.0**28  # bytes of a kernel block that is not kept


@dataclass(frozen=True)
class Options:
    """The learner's parameters of those names; ``classify``: errors are wrong labels, ``exact``: measure in float64."""

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
    classify: bool
    exact: bool


@dataclass(frozen=True, eq=False)
class Fitted:
    """The rows fitted, their α, targets and values f(x_i), all (n, …) in the rows' order, and the facts."""

    rows: np.ndarray
    alpha: Array
    targets: Array
    values: Array
    eigenvalues: Array
    facts: dict[str, Any]


def fit_rows(kernel: Kernel, X: np.ndarray, Y: Array, options: Options, rng: np.random.RandomState) -> Fitted:
    """Fit f to rows X (n, d) and targets Y (n, outputs)."""
    held: tuple[np.ndarray, Array] | None = None
    if options.validation_fraction is not None:
        order = rng.permutation(len(X))
        count = min(len(X) - 1, math.ceil(options.validation_fraction * len(X)))
        held = X[order[:count]], Y[order[:count]]
        X, Y = X[order[count:]], Y[order[count:]]
    device = resolve_device(options.device)
    scale = float(np.abs(Y).max()) or 1.0
    facts: dict[str, Any] = {"n": len(X), "regularization": float(options.regularization), "device": device}
    direct = options.solver == "direct" or (options.solver == "auto" and held is None and len(X) <= DIRECT_ROWS)
    if direct:
        alpha, values, eigenvalues, more = _direct(kernel, X, Y / scale, device, options)
    else:
        alpha, values, eigenvalues, more = _iterate(kernel, X, Y / scale, scale, held, device, options, rng)
    if more["leave_one_out_error"] is not None:
        more["leave_one_out_error"] *= scale**2
    alpha *= scale
    if values is None:
        values, measured = _measure(kernel, X, Y, alpha, device, options, direct=direct)
        more |= measured
    else:
        values *= scale
    more["norm"] = math.sqrt(max(0.0, float((alpha * values).sum())))
    more["training_risk"] = float(((values - Y) ** 2).sum(1).mean())
    return Fitted(X, alpha, Y, values, eigenvalues, facts | more)


_Found = tuple[Array, Array | None, Array, dict[str, Any]]  # α, f(x_i) if known already, eigenvalues, facts


def _direct(kernel: Kernel, X: np.ndarray, Y: Array, device: str, options: Options) -> _Found:
    import torch

    evaluator = Evaluator(kernel, X, device, "float64")
    gram = evaluator.gram(_PIECE)
    _check_finite(gram)
    found = solve(gram, torch.from_numpy(Y).to(evaluator.device), options.regularization * len(X))
    left = None if found.left_out is None else float(found.left_out.square().sum(1).mean())
    facts = {"solver": "direct", "dtype": "float64", "rank": found.rank, "epochs": 0, "leave_one_out_error": left}
    return found.alpha.cpu().numpy(), None, np.zeros(0), facts


def _iterate(
    kernel: Kernel,
    X: np.ndarray,
    Y: Array,
    scale: float,
    held: tuple[np.ndarray, Array] | None,
    device: str,
    options: Options,
    rng: np.random.RandomState,
) -> _Found:
    import torch

    evaluator = Evaluator(kernel, X, device, options.dtype)
    order = torch.from_numpy(rng.permutation(len(X)))
    evaluator.points = evaluator.points[order.to(evaluator.device)]
    _check_finite(evaluator.diagonal(evaluator.points))
    targets = torch.from_numpy(Y)[order].to(evaluator.device, evaluator.dtype)
    budget = default_budget(device) if options.memory_limit is None else float(options.memory_limit)
    run = Iteration(
        evaluator,
        targets,
        options.regularization * len(X),
        size=options.subsample,
        directions=options.directions,
        batch_size=options.batch_size,
        step=options.step,
        budget=budget,
    )
    judge = None if held is None else _Judge(evaluator, held[0], held[1] / scale, options.classify, budget)
    reason, done = _epochs(run, judge, options, scale, rng)
    if run.capped:
        warnings.warn(f"step={options.step:g} would diverge on some blocks: a smaller one was taken there", stacklevel=4)
    fitted = run.apply(slice(0, len(X)))
    rest = fitted - targets + run.penalty * run.alpha
    residual = float(rest.square().sum(1, dtype=torch.float64).mean())
    alpha, values = (_in_order(part, order) for part in (run.alpha, fitted))
    facts = {"solver": "eigenpro", "dtype": options.dtype, "epochs": done, "stopped": reason, "leave_one_out_error": None}
    facts |= {"residual": residual * scale**2, **run.facts()}
    if judge is not None:
        facts |= {"validation_rows": len(judge.targets), "validation_error": judge.best * judge.unit(scale)}
    return alpha, None if options.exact else values, run.spectrum.eigenvalues[: run.directions + 1].copy(), facts


def _in_order(values: torch.Tensor, order: torch.Tensor) -> Array:
    """Rows in the order they came in."""
    out = np.empty(values.shape)
    out[order.numpy()] = values.cpu().numpy()
    return out


def _epochs(
    run: Iteration, judge: _Judge | None, options: Options, scale: float, rng: np.random.RandomState
) -> tuple[str, int]:
    """Epochs until the stopper says so; the best α is kept, and steps are damped where the residual grows.

    The residual is that of at least 2,000 rows: of the blocks that were met first, which all later ones have pulled at.
    """
    stopper = Stopper(options.epochs, options.time_limit, None if judge is None else options.patience)
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
        stopper.after(training=residual, validation=None if judge is None else error, converged=reached or near)
    if judge is not None or not run.penalty:
        run.alpha = best
    return stopper.reason, stopper.done


class _Judge:
    """The error on validation rows: the share of wrong labels, or the mean squared error."""

    def __init__(self, evaluator: Evaluator, X: np.ndarray, Y: Array, classify: bool, budget: float) -> None:
        import torch

        self._evaluator, self._rows, self._classify = evaluator, evaluator.rows(X), classify
        self._budget = min(_PIECE, budget / 10)
        self.targets = torch.from_numpy(Y).to(evaluator.device, evaluator.dtype)
        self.best, self.improved = math.inf, False

    def unit(self, scale: float) -> float:
        """What turns the error into the targets' own units."""
        return 1.0 if self._classify else scale**2

    def error(self, alpha: torch.Tensor) -> float:
        """The error of α, and whether it is the best so far."""
        scores = self._evaluator.times(self._rows, self._evaluator.points, alpha, self._budget)
        if not self._classify:
            error = float((scores - self.targets).square().sum(1).mean())
        elif scores.shape[1] == 1:
            error = float((scores * self.targets <= 0).double().mean())
        else:
            error = float((scores.argmax(1) != self.targets.argmax(1)).double().mean())
        self.improved = error < self.best
        self.best = min(self.best, error)
        return error


def _measure(
    kernel: Kernel, X: np.ndarray, Y: Array, alpha: Array, device: str, options: Options, *, direct: bool
) -> tuple[Array, dict[str, Any]]:
    """f(x_i), and ‖∇F(f)‖ = (2/n)·√ρᵀKρ, ρ = Kα + nλα − y, where λ > 0; in float64 where claims read them."""
    import torch

    evaluator = Evaluator(kernel, X, device, "float64" if direct or options.exact else options.dtype)
    points, penalty = evaluator.points, options.regularization * len(X)
    coefficients = torch.from_numpy(alpha).to(evaluator.device, evaluator.dtype)
    values = evaluator.times(points, points, coefficients, _PIECE)
    facts: dict[str, Any] = {}
    if penalty > 0:
        rest = values + penalty * coefficients - torch.from_numpy(Y).to(values)
        squared = (rest * evaluator.times(points, points, rest, _PIECE)).sum().clamp(min=0)
        facts["gradient_norm"] = 2.0 / len(X) * float(squared.sqrt())
    return values.cpu().double().numpy(), facts


def _check_finite(values: torch.Tensor) -> None:
    if not bool(values.isfinite().all()):
        raise ValueError("X has rows so large that the kernel overflows: scale the columns, or use dtype='float64'")


def resolve_device(device: str) -> str:
    """The device that "auto" means here; without PyTorch, a sentence that says how to get it."""
    try:
        import torch
    except ModuleNotFoundError:
        raise ModuleNotFoundError("EigenPro needs PyTorch: pip install 'surelearn[torch]'", name="torch") from None

    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"


def default_budget(device: str) -> float:
    """Bytes that kernel blocks may take unless told: half of the memory, or most of what the device has free."""
    if device == "cuda":
        import torch

        return 0.8 * torch.cuda.mem_get_info()[0]
    return 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
