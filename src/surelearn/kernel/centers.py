"""Kernel machines with fewer centers than rows, for data beyond memory: f = Σ_{j≤p} α_j k(z_j, ·),
fitted to streamed rows.

Minimizes (1/n)·Σ‖f(x_i) − y_i‖² + λ‖f‖² over the span of the centers, which is Hα = K_ZX Y with H =
K_ZX K_XZ + nλK_ZZ, by conjugate gradients: a pass over the rows gives Hd for the next directions d
and, from the same kernel blocks, the gradient and the risk at α itself, so that rounding does not
add up. The step is the minimizer over all directions kept: the objective cannot grow, whatever the
spectrum is. Directions come from `surelearn.kernel.factors`, which solves the problem on a sample
of the rows; the first is its solution there.

EigenPro 3 (Abedsoltan, Belkin and Pandit 2023) and 4 descend on the same objective by steps on
batches projected onto the span. Its batches bring noise and a step size that depends on the
spectrum, and each projection costs as much as our directions, which are needed once a pass: a few
passes reach the minimizer to within a percent of the objective.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from surelearn.kernel.drawing import Drawn, Progress, StreamedRows, draw
from surelearn.kernel.factors import BLOCK, LeadingDirections, Sampled
from surelearn.kernel.fitting import default_budget, resolve_device
from surelearn.kernel.functions import Kernel
from surelearn.kernel.record import MARGIN
from surelearn.kernel.streams import RowStream
from surelearn.kernel.torch_composites import evaluator as prepare
from surelearn.kernel.torch_functions import Evaluator
from surelearn.optim.stopping import Stopper
from surelearn.record import Within
from surelearn.types import Array

if TYPE_CHECKING:
    import torch

_PIECE = 2.0**26  # bytes of a kernel block; sixteen times as many on other devices than the CPU
_LEAST = 2.0**22  # bytes below which blocks only become slow
_NOISE = 20.0  # how far above rounding the values of a direction of norm 1 must be
_FACTOR = 0.8  # the share of memory that p × p numbers may take
_CHUNK = 20_000  # rows at a time whose targets are measured
_LEADING = 1000  # the most directions flattened where p × p numbers do not fit


@dataclass(frozen=True)
class CenterOptions:
    """How to fit; names as in `EigenProRegressor`.

    Parameters
    ----------
    centers : how many random rows, or the centers themselves, an array (p, d)
    sample : rows on which the preconditioner is made; None chooses, from p to 4p
    passes, tol : stop after so many passes, or when a pass lowers the objective by less than
        ``tol`` of it
    classify : validation errors are wrong labels
    exact : measure f in one more pass, in float64, for claims
    """

    centers: int | np.ndarray
    regularization: float = 0.0
    sample: int | None = None
    passes: int = 10
    tol: float = 1e-3
    target: float | None = None
    time_limit: float | None = None
    validation_fraction: float | None = None
    patience: int = 3
    device: str = "auto"
    dtype: str = "float32"
    memory_limit: float | None = None
    classify: bool = False
    exact: bool = False


@dataclass(frozen=True, eq=False)
class FittedCenters:
    """Centers (p, d), their coefficients α (p, outputs), the numbers of the rows held out, and
    the facts.
    """

    centers: np.ndarray
    alpha: Array
    held: npt.NDArray[np.int64]
    facts: dict[str, Any]


def fit_centers(
    kernel: Kernel,
    stream: RowStream,
    options: CenterOptions,
    rng: np.random.RandomState,
    *,
    alpha: Array | None = None,
    progress: Progress | None = None,
) -> FittedCenters:
    """Fit f to the rows of a stream.

    Parameters
    ----------
    kernel : an object of `surelearn.kernel.functions`
    rng : draws held-out rows, centers and the sample
    alpha : where to start, (p, outputs), for centers given as an array
    progress : called with the rows visited and the most there can be, after each chunk

    Examples
    --------
    >>> from surelearn.kernel.functions import Gaussian
    >>> from surelearn.kernel.streams import ArrayRows
    >>> X = np.linspace(0, 3, 200)[:, None]
    >>> rows, rng = ArrayRows(X, np.sin(X[:, 0])), np.random.RandomState(0)
    >>> fitted = fit_centers(Gaussian(bandwidth=1.0), rows, CenterOptions(10, dtype="float64", device="cpu"), rng)
    >>> fitted.centers.shape, fitted.facts["training_risk"] < 1e-4
    ((10, 1), True)
    """
    device = resolve_device(options.device)
    budget = default_budget(device) if options.memory_limit is None else float(options.memory_limit)
    drawn = draw(stream, options.centers, options.sample, options.validation_fraction, rng)
    scale = math.sqrt(float((drawn.sample[1] ** 2).sum(1).mean())) or 1.0
    evaluator = prepare(kernel, drawn.centers, device, options.dtype)
    square = _square(len(drawn.centers), evaluator.dtype.itemsize)
    left = budget - square if square <= _FACTOR * budget else budget
    rows = StreamedRows(stream, evaluator, drawn.held, scale, left, options.passes, progress)
    _check_finite(evaluator.diagonal(evaluator.points))
    run = _Descent(evaluator, rows, drawn, options, budget, rng)
    if alpha is not None:
        run.start(alpha / scale)
    reason, done = _passes(run, scale, options)
    facts = {
        "n": rows.n,
        "centres": len(drawn.centers),
        "regularization": float(options.regularization),
    }
    facts |= {"dtype": options.dtype, "solver": "centres", "leave_one_out_error": None}
    facts |= {"epochs": done, "passes": done, "stopped": reason, **run.facts(scale)}

    def measured(alpha: torch.Tensor) -> tuple[float, Array, dict[str, Any]]:
        """The objective of α, α in the targets' units, and what is measured of it."""
        found = alpha.cpu().numpy() * scale
        held = drawn.held
        told = _measure(kernel, stream, drawn.centers, held, found, options, facts["objective"])
        return told["training_risk"] + options.regularization * told["norm"] ** 2, found, told

    last = measured(run.alpha)
    if options.exact and run.judge is None and last[0] > run.checked[0] * scale**2:
        # Rounding made the last step, which no pass has looked at, one upwards.
        last = min(last, measured(run.checked[1]), key=lambda one: one[0])
    return FittedCenters(drawn.centers, last[1], drawn.held, facts | last[2])


def measure_centers(
    kernel: Kernel,
    stream: RowStream,
    centers: np.ndarray,
    held: npt.NDArray[np.int64],
    alpha: Array,
    options: CenterOptions,
) -> dict[str, Any]:
    """The facts that centers, α and the rows tell, measured again; ``held`` are the numbers of
    the rows held out.
    """
    evaluator = prepare(kernel, centers, resolve_device(options.device), options.dtype)
    facts = {
        "n": stream.n - len(held),
        "centres": len(centers),
        "regularization": options.regularization,
    }
    facts |= {
        "dtype": options.dtype,
        "solver": "centres",
        "leave_one_out_error": None,
        "weighted": False,
    }
    facts |= _measure(kernel, stream, centers, held, alpha, options)
    squares = sum(float((Y**2).sum()) for _, Y in stream.chunks(_CHUNK)) / stream.n
    if not options.exact:  # the objective of the last pass, in its own precision
        risk = facts["training_risk"]
        facts["training_risk"] = Within(risk, 1e-2 * risk + 1e-5 * squares)
    if len(held):
        import torch

        scale = math.sqrt(squares) or 1.0
        judge = _CenterJudge(
            evaluator,
            StreamedRows(stream, evaluator, held, scale, 0.0, 1, None),
            stream.take(held),
            options.classify,
        )
        error = judge.error(torch.from_numpy(alpha / scale).to(evaluator.device), 0.0)
        error *= 1.0 if options.classify else scale**2
        facts |= {"validation_rows": len(held), "validation_error": Within(error, 1e-3 * error)}
    return facts


# --------------------------------------------------------------------------------------------------


class _Descent:
    """α, the directions taken so far, and a pass; ``checked`` is the last α whose objective a pass
    has measured, behind it.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        rows: StreamedRows,
        drawn: Drawn,
        options: CenterOptions,
        budget: float,
        rng: np.random.RandomState,
    ) -> None:
        import torch

        self._evaluator, self._rows, self._penalty = evaluator, rows, options.regularization
        most = _PIECE if evaluator.device.type == "cpu" else 16 * _PIECE
        self._piece = max(_LEAST, min(most, budget / 10))
        sampled = evaluator.rows(drawn.sample[0]), rows.targets(drawn.sample[1])
        self._sampled, self._share = sampled, rows.n / len(drawn.sample[0])
        p, outputs, item = len(evaluator.points), drawn.sample[1].shape[1], evaluator.dtype.itemsize
        square = _square(p, item)
        if square <= _FACTOR * budget:
            piece = min(3.0 * p * BLOCK * item, 0.1 * budget)
            self._made = Sampled(evaluator, sampled[0], drawn.everything, self._penalty, piece)
            size = 0
        else:
            size = max(1, min(_LEADING, p // 10, int(0.1 * budget / (p * item))))
            self._made = LeadingDirections(evaluator, size, self._penalty, self._piece, rng)
        # the state of the iteration: weights, directions kept with their images, and the best so far
        self._flattened = size
        self.alpha = torch.zeros(p, outputs, dtype=torch.float64, device=evaluator.device)
        self._most = max(4 * outputs, int(0.1 * budget / (16 * p)))
        self._directions, self._images = self.alpha[:, :0], self.alpha[:, :0]
        self._gradient: torch.Tensor | None = None
        self.risk = self.objective = math.inf
        self.checked: tuple[float, torch.Tensor] = (math.inf, self.alpha)
        self._largest = float(evaluator.diagonal(evaluator.points).max())
        self.stalled = False
        self.judge = (
            None
            if drawn.validation is None
            else _CenterJudge(evaluator, rows, drawn.validation, options.classify)
        )

    def start(self, alpha: Array) -> None:
        """Begin from α."""
        import torch

        if alpha.shape != tuple(self.alpha.shape):
            raise ValueError(
                f"alpha must have shape {tuple(self.alpha.shape)} for these centers, not"
                f" {alpha.shape}"
            )
        self.alpha = torch.from_numpy(alpha).to(self.alpha)

    def step(self) -> float:
        """One pass and a step; by how much it lowers the objective."""
        import torch

        outputs = self.alpha.shape[1]
        if self._gradient is None:
            self._gradient = self._sums([self._sampled], self.alpha)[0] * self._share
        D = self._next(self._gradient)
        both = torch.cat([self.alpha, D], 1)
        back, inner, squares = self._sums(self._rows.chunks(), self.alpha, D)
        applied = self._applied(both)
        squared_norm = float((self.alpha * applied[:, :outputs]).sum())
        self.risk, n = squares / self._rows.n, self._rows.n
        now = self.risk + self._penalty * squared_norm
        if not math.isfinite(now):
            raise ValueError(
                "the kernel or the targets overflow: scale the columns, or use"
                " compute=Compute(dtype='float64')"
            )
        if now > self.checked[0]:
            self.alpha, self.stalled = self.checked[1], True
            self.objective = self.checked[0]
            return 0.0
        # the gradient for the weights, and one exact step within the directions that are kept
        self.checked = now, self.alpha
        c = n * self._penalty
        gradient = back[:, :outputs] - c * applied[:, :outputs]
        self._keep(
            D,
            back[:, outputs:] + c * applied[:, outputs:],
            inner + c * (D.T @ applied[:, outputs:]),
        )
        moves = self._directions.T @ gradient
        self.alpha = self.alpha + self._directions @ moves
        self._gradient = gradient - self._images @ moves
        lowered = float(moves.square().sum()) / n
        self.objective = max(0.0, now - lowered)
        return lowered

    def _next(self, gradient: torch.Tensor) -> torch.Tensor:
        """New directions, each orthogonal to those before in the inner product of H, and of
        norm 1.
        """
        import torch

        _check_finite(gradient)
        columns = gradient / gradient.norm(dim=0).clamp(min=1e-300)
        D = self._made.directions(columns.to(self._evaluator.dtype)).double()
        D = torch.where(D.isfinite().all(0), D, columns.repeat(1, D.shape[1] // columns.shape[1]))
        D = D / D.norm(dim=0).clamp(min=1e-300)
        for _ in range(2):
            D = D - self._directions @ (self._images.T @ D)
        return (D / D.norm(dim=0).clamp(min=1e-300)).nan_to_num(0.0)

    def _keep(self, D: torch.Tensor, image: torch.Tensor, inner: torch.Tensor) -> None:
        """Keep directions D and HD such that DᵀHD = I, without what is rounding: K_XZ d near 0,
        or dependent ones.
        """
        import torch

        # directions of a size that rounding cannot have made, orthonormal in H
        least = (
            _NOISE * torch.finfo(self._evaluator.dtype).eps * self._largest
        ) ** 2 * self._rows.n
        clear = inner.diagonal() > least
        self.stalled = not bool(clear.any())
        D, image, inner = D[:, clear], image[:, clear], inner[clear][:, clear]
        sizes = inner.diagonal().rsqrt()
        values, vectors = torch.linalg.eigh((inner + inner.T) / 2 * sizes * sizes[:, None])
        kept = values > 100 * torch.finfo(self._evaluator.dtype).eps
        to = sizes[:, None] * vectors[:, kept] * values[kept].rsqrt()
        self._directions = torch.cat([self._directions, D @ to], 1)[:, -self._most :]
        self._images = torch.cat([self._images, image @ to], 1)[:, -self._most :]

    def _sums(
        self,
        chunks: Iterable[tuple[torch.Tensor, torch.Tensor]],
        alpha: torch.Tensor,
        D: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, float]:
        """K_ZX[Y − K_XZα, K_XZ D], Dᵀ K_ZX K_XZ D and ‖Y − K_XZα‖² over some rows."""
        import torch

        outputs = alpha.shape[1]
        V = (alpha if D is None else torch.cat([alpha, D], 1)).to(self._evaluator.dtype)
        back = torch.zeros(V.shape, dtype=torch.float64, device=V.device)
        inner = back.new_zeros(V.shape[1] - outputs, V.shape[1] - outputs)
        squares = back.new_zeros(())
        for rows, targets in chunks:
            for part, values in self._evaluator.pieces(rows, self._evaluator.points, self._piece):
                U = values @ V
                U[:, :outputs] = targets[part] - U[:, :outputs]
                back += values.T @ U
                wide = U.double()
                squares += wide[:, :outputs].square().sum()
                inner += wide[:, outputs:].T @ wide[:, outputs:]
        return back, inner, float(squares)

    def _applied(self, V: torch.Tensor) -> torch.Tensor:
        """K_ZZ V, where there is a penalty."""
        if not self._penalty:
            return V.new_zeros(V.shape)
        evaluator = self._evaluator
        return evaluator.times(
            evaluator.points, evaluator.points, V.to(evaluator.dtype), self._piece
        ).double()

    def facts(self, scale: float) -> dict[str, Any]:
        """What was chosen, and the objective as the last pass leaves it."""
        facts: dict[str, Any] = {
            "directions": self._flattened,
            "objective": self.objective * scale**2,
        }
        if self.judge is not None:
            error = self.judge.best * (1.0 if self.judge.classify else scale**2)
            facts |= {"validation_rows": len(self.judge.targets), "validation_error": error}
        return facts


class _CenterJudge:
    """The error on held-out rows, and the best α by it."""

    def __init__(
        self,
        evaluator: Evaluator,
        rows: StreamedRows,
        held: tuple[np.ndarray, Array],
        classify: bool,
    ) -> None:
        self._evaluator, self.classify = evaluator, classify
        self._held, self.targets = evaluator.rows(held[0]), rows.targets(held[1])
        self.best, self.alpha, self.objective = math.inf, None, math.inf

    def error(self, alpha: torch.Tensor, objective: float) -> float:
        """The share of wrong labels, or the mean squared error."""
        evaluator = self._evaluator
        scores = evaluator.times(self._held, evaluator.points, alpha.to(evaluator.dtype), _PIECE)
        if not self.classify:
            error = float((scores - self.targets).square().sum(1).double().mean())
        elif scores.shape[1] == 1:
            error = float((scores * self.targets <= 0).double().mean())
        else:
            error = float((scores.argmax(1) != self.targets.argmax(1)).double().mean())
        if error < self.best:
            self.best, self.alpha, self.objective = error, alpha, objective
        return error


def _passes(run: _Descent, scale: float, options: CenterOptions) -> tuple[str, int]:
    """Passes until the stopper says so; the α that is best on held-out rows, else the last."""
    judge = run.judge
    stopper = Stopper(
        options.passes, options.time_limit, None if judge is None else options.patience
    )
    while not stopper.reason:
        lowered = run.step()
        error = None if judge is None else judge.error(run.alpha, run.objective)
        measured = (run.objective if error is None else error) * (
            1.0 if judge and judge.classify else scale**2
        )
        near = lowered <= options.tol * run.objective or run.objective <= options.tol**2
        reached = options.target is not None and measured <= options.target
        stopper.after(training=run.objective, validation=error, converged=reached or near)
    if judge is not None and judge.alpha is not None:
        run.alpha, run.objective = judge.alpha, judge.objective
    return "training error stalled" if run.stalled else stopper.reason, stopper.done


# --------------------------------------------------------------------------------------------------


def _measure(
    kernel: Kernel,
    stream: RowStream,
    centers: np.ndarray,
    held: npt.NDArray[np.int64],
    alpha: Array,
    options: CenterOptions,
    objective: float | None = None,
) -> dict[str, Any]:
    """‖f‖, the training risk and the share of rows with y·f(x) ≤ ρ, in float64.

    Where no claim reads them and the ``objective`` is known, the risk is what it leaves, without
    another pass.
    """
    import torch

    evaluator = prepare(kernel, centers, resolve_device(options.device), "float64")
    points, coefficients = evaluator.points, torch.from_numpy(alpha).to(evaluator.device)
    applied = evaluator.times(points, points, coefficients, _PIECE)
    most, sizes = float(evaluator.diagonal(points).max()), coefficients.abs().sum(0)
    # of a value
    errors = (evaluator.error() + (len(points) + 2) * np.finfo(float).eps * most) * sizes
    squared = max(0.0, float((coefficients * applied).sum())) + float((sizes * errors).sum())
    facts: dict[str, Any] = {"norm": math.sqrt(squared)}
    if objective is not None and not options.exact:
        return facts | {"training_risk": max(0.0, objective - options.regularization * squared)}
    rows = StreamedRows(stream, evaluator, held, 1.0, 0.0, 1, None)
    squares, margins = 0.0, 0
    for some, targets in rows.chunks():
        values = evaluator.times(some, points, coefficients, _PIECE)
        squares += float((values - targets).square().sum())
        margins += int((values[:, 0] * targets[:, 0] <= MARGIN + float(errors[0])).sum())
    facts["training_risk"] = squares / rows.n
    if options.exact and options.classify and stream.outputs == 1:
        facts |= {"margin_at": MARGIN, "margin_error": margins / rows.n}
    return facts


def _square(p: int, item: int) -> int:
    """Bytes of both triangles, with what making them takes beside."""
    return (p * p + 5 * p * min(p, BLOCK)) * item


def _check_finite(values: torch.Tensor) -> None:
    if not bool(values.isfinite().all()):
        raise ValueError(
            "X has rows so large that the kernel overflows: scale the columns, or use"
            " compute=Compute(dtype='float64')"
        )
