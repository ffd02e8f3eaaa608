"""EigenPro steps on the weights of a linear model.

Minimizes F(w) = (1/n)·Σ‖⟨w, x_i⟩ − y_i‖² + λ‖w‖². A step on a block B of m rows is w ← w − η·P·g
with the preconditioner P = I − Σ_{i≤q} (1 − μ_{q+1}/μ_i)·e_i e_iᵀ, μ_i = λ_i + λ from the
eigensystem of a subsample's covariance, and with g = X_Bᵀr/m + λw: *half* the gradient, as the
EigenPro notes print it (line 6 of their algorithm lacks the 2 of H). With H_B = X_BᵀX_B/m + λI,
η‖PH_B‖ < 2 suffices (the notes ask for 1); unless η is given it is 1/‖PH_B‖ for every block. Blocks
that contradict each other pull w about near the minimum: then they are made larger, until a block
is all rows, on which no such step increases √(gᵀPg).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from surelearn.kernel.spectrum import KernelSpectrum, clean
from surelearn.optim.stopping import Stopper

Array = npt.NDArray[np.floating]
# the smallest λ_i/λ₁ that counts as a direction, by bytes per number
_FLATTEST = {4: 1e-5, 8: 1e-12}
_SUBSAMPLE = 2000
_LEAST_BATCH = 256
_GROWTH = 4
_PATIENCE = 20  # epochs without progress: rounding is reached
_DIVERGING = 1.9


class LinearIteration:
    """One run on rows in random order, of which the first ``size`` are the subsample.

    Parameters
    ----------
    X, Y : rows (n, d) and targets (n, outputs) of one dtype, near 1 in size
    regularization : λ
    size, directions, batch_size : s, q and m; None chooses them
    step : η; None is 1/‖PH_B‖
    """

    def __init__(
        self,
        X: Array,
        Y: Array,
        regularization: float,
        *,
        size: int | None = None,
        directions: int | None = None,
        batch_size: int | None = None,
        step: float | None = None,
    ) -> None:
        self.X, self.Y, self.regularization, self.step = X, Y, regularization, step
        self.size = min(len(X), size or _SUBSAMPLE)
        self.weights = np.zeros((X.shape[1], Y.shape[1]), dtype=X.dtype)
        self.capped, self._steps = False, dict[tuple[int, int], float]()
        self._precondition(directions)
        m = self.spectrum.critical_batch_size(self.directions)
        self.batch_size = min(
            len(X), batch_size or (max(_LEAST_BATCH, math.ceil(m)) if m < len(X) else len(X))
        )

    def _precondition(self, directions: int | None) -> None:
        """E and 1 − μ_{q+1}/μ_i, and the spectrum that the blocks' Hessians have in the norm of
        P⁻¹.
        """
        own, wanted = self.X[: self.size], directions
        if wanted is None:
            wanted = self.size if self.size == len(self.X) else self.size // 10
        values, vectors = covariance_eigensystem(own, wanted)
        usable = int((values > _FLATTEST[self.X.itemsize] * values[0]).sum())
        self.directions = q = max(0, min(wanted, usable - 1))
        curvature = values + self.regularization
        self._kept = vectors[:, :q].astype(self.X.dtype)
        self._shares = (1.0 - curvature[q] / curvature[:q])[:, None].astype(self.X.dtype)
        beta = (
            float(np.einsum("ij,ji->i", own, self.precondition(own.T)).max()) + self.regularization
        )
        self.spectrum = KernelSpectrum(curvature, beta)

    def precondition(self, V: Array) -> Array:
        """PV."""
        return V - self._kept @ (self._shares * (self._kept.T @ V))

    def blocks(self) -> list[slice]:
        """The rows of each step."""
        n, m = len(self.X), self.batch_size
        return [slice(start, min(start + m, n)) for start in range(0, n, m)]

    def half_gradient(self, rows: slice) -> Array:
        """G of the rows of a block: X_Bᵀ(X_B w − y_B)/m + λw, for a shorter last block in
        proportion.
        """
        X, m = self.X[rows], self.batch_size
        return (
            X.T @ (X @ self.weights - self.Y[rows]) / m
            + len(X) / m * self.regularization * self.weights
        )

    def full_gradient(self) -> tuple[Array, float]:
        """G of all rows, and √(gᵀPg)."""
        n = len(self.X)
        gradient = sum(
            (self.half_gradient(rows) for rows in self.blocks()), np.zeros_like(self.weights)
        )
        gradient *= self.batch_size / n
        squared = float((gradient * self.precondition(gradient)).sum(dtype=np.float64))
        return gradient, math.sqrt(max(0.0, squared)) if math.isfinite(squared) else math.inf

    def epoch(self, order: npt.NDArray[np.intp]) -> None:
        """A step on every block, in that order."""
        blocks = self.blocks()
        for index in order:
            self._move(blocks[index], self.half_gradient(blocks[index]))

    def full_step(self, gradient: Array) -> None:
        """A step on all rows, from their half gradient."""
        self._move(slice(0, len(self.X)), gradient)

    def _move(self, rows: slice, gradient: Array) -> None:
        key = (rows.start, rows.stop)
        if key not in self._steps:
            self._steps[key] = self._safe_step(rows)
        self.weights -= self._steps[key] * self.precondition(gradient)

    def _safe_step(self, rows: slice) -> float:
        """η, or 1/‖PH_B‖ where none is given or η would diverge on this block."""
        top = self.largest(rows)
        if self.step is not None and self.step * top <= _DIVERGING:
            return self.step
        self.capped |= self.step is not None
        return 1.0 / top if top > 0 else 1.0

    def largest(self, rows: slice, *, preconditioned: bool = True, iterations: int = 15) -> float:
        """‖PH_B‖ of a block by power iteration, from below and within a few percent."""
        X, m = self.X[rows], self.batch_size
        start = np.random.RandomState(0).normal(size=(X.shape[1], 1)).astype(X.dtype)
        vector, size = start / np.linalg.norm(start), 0.0
        for _ in range(iterations):
            vector = X.T @ (X @ vector) / m + len(X) / m * self.regularization * vector
            vector = self.precondition(vector) if preconditioned else vector
            size = float(np.linalg.norm(vector))
            if size == 0.0:
                return 0.0
            vector /= size
        return size

    def shrink(self) -> None:
        """Take smaller steps from here on."""
        self._steps = {key: step / 2 for key, step in self._steps.items()}

    def grow(self) -> None:
        """Make the blocks larger."""
        self.batch_size = min(len(self.X), _GROWTH * self.batch_size)
        self._steps.clear()


def covariance_eigensystem(
    X: Array, most: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """All min(s, d) eigenvalues of XᵀX/s, descending, and the leading orthonormal eigenvectors as
    columns, in float64.

    Examples
    --------
    >>> covariance_eigensystem(np.array([[2.0, 0.0], [0.0, 1.0]]), 1)[0]
    array([2. , 0.5])
    """
    rows = X.astype(np.float64)
    if rows.shape[1] <= len(rows):
        values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
        return clean(values[::-1]), vectors[:, ::-1][:, :most]
    values, left = np.linalg.eigh(rows @ rows.T / len(rows))
    return clean(values[::-1]), np.linalg.qr(rows.T @ left[:, ::-1][:, :most])[0]


def minimize(
    run: LinearIteration, epochs: int, tol: float, rng: np.random.RandomState
) -> tuple[str, int]:
    """Epochs until √(gᵀPg) is ``tol`` of what it was at w = 0; why it stopped, and after how many.

    The best weights are kept. An epoch that does not halve that number makes the blocks larger; one
    that doubles it is taken back.
    """
    stopper, n = Stopper(epochs, patience=_PATIENCE), len(run.X)
    gradient, size = run.full_gradient()
    first = size
    best = (size, run.weights.copy(), gradient)
    if size == 0.0:
        return "converged", 0
    while not stopper.reason:
        if run.batch_size < n:
            run.epoch(rng.permutation(len(run.blocks())))
        else:
            run.full_step(gradient)
        before = size
        gradient, size = run.full_gradient()
        stopper.after(training=size, converged=size <= tol * first)
        if not size <= 2.0 * best[0]:
            size, run.weights, gradient = best[0], best[1].copy(), best[2]
            run.shrink()
        elif size < best[0]:
            best = (size, run.weights.copy(), gradient)
        if run.batch_size < n and not size <= before / 2:
            run.grow()
    run.weights = best[1]
    return stopper.reason, stopper.done
