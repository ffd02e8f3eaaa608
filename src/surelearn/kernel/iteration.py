"""The EigenPro iteration: gradient steps on blocks of rows, the leading eigendirections of a
subsample flattened.

Solves (K + cI)α = y, c = nλ. In the RKHS the preconditioner is P = I − Σ_{i≤q} (1 − τ_i)·e_i⊗e_i
with the subsample's eigenfunctions e_i. A step on a block B with residual g is α_B ← α_B − h and
α_S ← α_S + V·D·F_Bᵀh, F_B the e_i at the block's rows up to a factor. EigenPro 2 takes h = (η/m)·g.
Unless a step size is given we take h = (H_B + εI)⁻¹g, H_B the preconditioned kernel matrix of the
block: it fits the block nearly exactly, and as 0 ≤ H_B(H_B + εI)⁻¹ < I no step moves away from a
solution, in the norm of P⁻¹, whatever the spectrum is.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from surelearn.kernel.damped import SHARE, damped_factors, solve_damped
from surelearn.kernel.spectrum import KernelSpectrum, eigensystem
from surelearn.kernel.torch_functions import Evaluator, out_of_memory, widened

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
_FLATTEST = {4: 1e-5, 8: 1e-9}  # the smallest τ that rounding allows, by bytes per number
_TOGETHER = {"cuda": 32, "cpu": 1}  # blocks solved for in one go
# s and m where memory allows, below and from so many rows
_MANY, _SUBSAMPLE, _BATCH = 50_000, (1000, 1500), (1000, 2000)
_USED = 0.8  # of a batch's rows, by which q is chosen


class Iteration:
    """One run on prepared rows, whose first ``size`` are the subsample: they must be in random
    order.

    Parameters
    ----------
    evaluator : the kernel and its rows
    Y : targets, a tensor (n, outputs)
    penalty : c = nλ
    size, directions, batch_size : s, q and m; None chooses them
    step : η of EigenPro 2; None solves on each block
    budget : bytes that kernel blocks may take
    """

    def __init__(
        self,
        evaluator: Evaluator,
        Y: torch.Tensor,
        penalty: float,
        *,
        size: int | None,
        directions: int | None,
        batch_size: int | None,
        step: float | None,
        budget: float,
    ) -> None:
        self.evaluator, self.Y, self.penalty, self.step, self.budget = (
            evaluator,
            Y,
            penalty,
            step,
            budget,
        )
        n, item = len(Y), Y.element_size()
        self.size = min(n, size or _within(budget, _SUBSAMPLE[n >= _MANY], 8))
        self.batch_size = min(n, batch_size or _within(budget, _BATCH[n >= _MANY], item))
        self.alpha = Y.new_zeros(Y.shape)
        self.gram = (
            self._gram() if (n + self.batch_size + self.size) * n * item <= 0.8 * budget else None
        )
        self._keep_factors = self.cached or n * self.batch_size * item <= 0.3 * budget
        self._factors: dict[int, torch.Tensor] = {}
        self.capped, self._damping = False, SHARE[item]
        self._prepare(directions)
        self._with_room(lambda: self._factor(0))

    @property
    def cached(self) -> bool:
        """Whether the whole kernel matrix is kept."""
        return self.gram is not None

    def _gram(self) -> torch.Tensor | None:
        """The kernel matrix; None where it does not fit after all."""
        try:
            return self.evaluator.gram(self.budget / 10)
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            return None

    def _with_room(self, work: Callable[[], T]) -> T:
        """What ``work`` returns; where memory runs out it is done again with less kept, then with
        blocks half as long.

        First what blocks are solved with is no longer kept, then the kernel matrix.
        """
        while True:
            try:
                return work()
            except RuntimeError as error:
                if not out_of_memory(error) or not self._make_room():
                    raise

    def _make_room(self) -> bool:
        self._factors.clear()
        if self._keep_factors:
            self._keep_factors = False
        elif self.gram is not None:
            self.gram = None
        elif self.batch_size > 1:
            self.batch_size //= 2
        else:
            return False
        return True

    def _prepare(self, directions: int | None) -> None:
        """The preconditioner, of a subsample that is halved as long as memory runs out."""
        while True:
            try:
                self._precondition(directions)
                return
            except RuntimeError as error:
                if not out_of_memory(error) or self.size == 1:
                    raise
            self.size //= 2

    def _precondition(self, directions: int | None) -> None:
        """V, D and F of the docstring above, from the subsample's eigensystem."""
        import torch

        # curvature along the subsample's eigenvectors; the leading q are brought down to the next one
        n, s, points = len(self.Y), self.size, self.evaluator.points
        own = points[:s]
        subsample = self.evaluator.block(own, own) if self.gram is None else self.gram[:s, :s]
        values, vectors = eigensystem(subsample)
        self.spectrum = KernelSpectrum(values / s, float(self.evaluator.diagonal(points).max()))
        self.directions = q = self._choose(directions, values)
        c = self.penalty
        curvature = (n / s * values**2 + 2 * c * values + c**2) / np.maximum(
            values + c, np.finfo(float).tiny
        )
        flattened = curvature[q] / curvature[:q] if q else np.zeros(0)
        weights = torch.from_numpy((1.0 - flattened) / (values[:q] + c)).to(vectors)
        kept = vectors[:, :q]
        self._vectors_weighted = (kept * weights).to(self.Y.dtype)
        kept = kept.to(self.Y.dtype)
        if self.gram is None:
            self._features = self.evaluator.times(points, points[:s], kept, self.budget / 10)
        else:
            self._features = self.gram[:, :s] @ kept
        self._features[:s] += c * kept
        self._weights = weights.to(self.Y.dtype)

    def _choose(self, directions: int | None, values: np.ndarray) -> int:
        """q: as many as m needs (`KernelSpectrum.directions`), where a quarter of the memory holds
        the eigenfunctions at all rows.

        At most a fifth of the subsample, of whose eigenvectors the later ones are not those of all
        rows, unless told; and never more than have an eigenvalue above rounding, less one.
        """
        usable = int((values > _FLATTEST[self.Y.element_size()] * values[0]).sum())
        if usable <= 1 and self.size > 1:
            warnings.warn(
                f"the kernel matrix of {self.size} rows has {usable} eigenvalue(s) above rounding:"
                " there is no direction to flatten, and the fit uses steps without preconditioner;"
                " check the bandwidth and the columns",
                stacklevel=6,
            )
        held = int(self.budget / 4 / (len(self.Y) * self.Y.element_size()))
        chosen = min(self.spectrum.directions(self.batch_size, _USED), self.size // 5, held)
        return max(0, min(chosen if directions is None else directions, usable - 1, self.size - 1))

    def blocks(self) -> list[slice]:
        """The rows of each step."""
        n, m = len(self.Y), self.batch_size
        return [slice(start, min(start + m, n)) for start in range(0, n, m)]

    def preconditioned(self, rows: slice) -> tuple[torch.Tensor, torch.Tensor]:
        """K_BB + cI and H_B of a block."""
        own = self.evaluator.points[rows]
        plain = (
            self.evaluator.block(own, own) if self.gram is None else self.gram[rows, rows].clone()
        )
        plain.diagonal().add_(self.penalty)
        features = self._features[rows]
        return plain, plain - (features * self._weights) @ features.T

    def epoch(self, order: Iterable[int]) -> None:
        """A step on every block in that order; where blocks must become shorter on the way, on
        all of those in turn.
        """
        size = self.batch_size
        for index in order:
            self._with_room(partial(self._take_step, int(index)))
            if self.batch_size < size:
                self.epoch(range(len(self.blocks())))
                return

    def _take_step(self, index: int) -> None:
        rows = self.blocks()[index]
        move = self._move(index, self.rest(rows))
        pull = self._vectors_weighted @ (self._features[rows].T @ move)
        self.alpha[rows] -= move
        self.alpha[: self.size] += pull

    def residual(self, some: Iterable[int] | None = None) -> float:
        """The mean squared residual of (K + cI)α = y now, on all blocks or on some."""
        import torch

        total, count = torch.zeros((), dtype=torch.float64, device=self.Y.device), 0
        for rows in [slice(0, len(self.Y))] if some is None else [self.blocks()[i] for i in some]:
            total += self.rest(rows).square().sum(dtype=torch.float64)
            count += _length(rows)
        return float(total) / count

    def rest(self, rows: slice) -> torch.Tensor:
        """Kα + cα − y on some rows."""
        rest = self.apply(rows).sub_(self.Y[rows])
        return rest.add_(self.alpha[rows], alpha=self.penalty) if self.penalty else rest

    def dampen(self) -> None:
        """Take smaller steps from here on: rows contradict each other, and the blocks pull α
        about.
        """
        self._damping *= 10.0
        self.step = None if self.step is None else self.step / 10.0
        self._factors.clear()

    def apply(self, rows: slice) -> torch.Tensor:
        """Kα on some rows."""
        if self.gram is not None:
            return (self.gram[rows] @ widened(self.alpha))[:, : self.alpha.shape[1]]
        points = self.evaluator.points
        return self.evaluator.times(points[rows], points, self.alpha, self.budget / 2)

    def _move(self, index: int, residual: torch.Tensor) -> torch.Tensor:
        factor = self._factor(index)
        return residual * factor if self.step is not None else solve_damped(factor, residual)

    def _factor(self, index: int) -> torch.Tensor:
        """What a block's residual is multiplied by; kept, and prepared with other blocks',
        where memory allows.
        """
        if index in self._factors:
            return self._factors[index]
        blocks = self.blocks()
        if self.step is not None:
            made = {index: self._safe_step(self.preconditioned(blocks[index])[1])}
        else:
            size = _length(blocks[index])
            alike = [
                i
                for i, rows in enumerate(blocks)
                if _length(rows) == size and i not in self._factors and i != index
            ]
            group = (
                [index, *alike[: _TOGETHER[self.Y.device.type] - 1]]
                if self._keep_factors
                else [index]
            )
            made = dict(zip(group, self._solvers([blocks[i] for i in group]), strict=True))
        if self._keep_factors:
            self._factors |= made
        return made[index]

    def _solvers(self, group: list[slice]) -> torch.Tensor:
        m = _length(group[0])
        reduced, largest = self.Y.new_empty(len(group), m, m), self.Y.new_empty(len(group))
        for i, rows in enumerate(group):
            plain, reduced[i] = self.preconditioned(rows)
            largest[i] = plain.diagonal().max()
        return damped_factors(reduced, largest, self._damping)

    def _safe_step(self, reduced: torch.Tensor) -> torch.Tensor:
        """η/m, or 1/λ₁(H_B) where η/m would diverge on this block."""
        top = largest_eigenvalue(reduced)
        wanted = self.step / self.batch_size  # pyright: ignore[reportOptionalOperand]
        self.capped |= wanted * top > 1.9
        return reduced.new_tensor(wanted if wanted * top <= 1.9 else 1.0 / top)

    def facts(self) -> dict[str, Any]:
        """What was chosen, and the acceleration predicted and measured, on the last block if it
        is outside the subsample.
        """
        last, q, measured = self.blocks()[-1], self.directions, None
        if last.start >= self.size:
            top, flattened = (largest_eigenvalue(matrix) for matrix in self.preconditioned(last))
            measured = top / flattened if flattened > 0 else 1.0
        return {
            "subsample": self.size,
            "directions": q,
            "batch_size": self.batch_size,
            "step": "block" if self.step is None else float(self.step),
            "step_capped": self.capped,
            "step_predicted": self.spectrum.step_size(self.batch_size, q),
            "critical_batch_size": self.spectrum.critical_batch_size(0),
            "critical_batch_size_preconditioned": self.spectrum.critical_batch_size(q),
            "acceleration_predicted": self.spectrum.acceleration(q),
            "acceleration_measured": measured,
            "cached": self.cached,
        }


def largest_eigenvalue(matrix: torch.Tensor, iterations: int = 20) -> float:
    """λ₁ of a positive semidefinite matrix by power iteration, from below and within a few
    percent.
    """
    import torch

    start = torch.ones(len(matrix), 1, dtype=matrix.dtype, device=matrix.device)
    start[1::2] = 0.5
    vector, size = start / start.norm(), matrix.new_zeros(())
    for _ in range(iterations):
        vector = matrix @ vector
        size = vector.norm()
        vector = vector / size.clamp(min=torch.finfo(matrix.dtype).tiny)
    return float(size)


def _within(budget: float, wanted: int, item: int) -> int:
    """``wanted`` rows, or as many whose square matrices, four at a time, take a quarter of the
    memory; at least 100.
    """
    return min(wanted, max(100, int((budget / (16 * item)) ** 0.5)))


def _length(rows: slice) -> int:
    return rows.stop - rows.start
