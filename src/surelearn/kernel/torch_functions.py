"""The kernels of `surelearn.kernel.functions` on torch tensors: the same objects, on any device, in
blocks.

Rows are centered and divided by the kernel's length first, so that ‖x‖² + ‖z‖² − 2⟨x, z⟩ cancels as
little as it can. Distances of near rows, where it cancels all the same, are taken again from
differences. Where rows lie so many lengths apart that float32 would not do, the products are taken
in float64, and where that is not enough either, all from differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from surelearn.kernel import fused
from surelearn.kernel.functions import Gaussian, Kernel, Laplace, Linear, Matern, Polynomial
from surelearn.types import AnyArray

if TYPE_CHECKING:
    import torch

ArrayOrTensor: TypeAlias = "AnyArray | torch.Tensor"  # rows (n, d)
# the largest error of a squared distance, in squared lengths, by bytes per number
_FINE = {4: 1e-4, 8: 1e-12}
# squared lengths below which distances are taken from differences, or 100 times the error
_NEAR = {4: 1e-4, 8: 1e-2}
_MANY = 32  # one pair in so many that is so near: take all from differences
_PAIRS = 2**16  # taken so at a time
_NO_MEMORY = ("out of memory", "allocate memory", "not enough memory", "ALLOC_FAILED")
# lengths from the center beyond which a square would overflow, by bytes per number
_FARTHEST = {4: 1e15, 8: 1e140}


class Evaluator:
    """A kernel on one device, prepared for the training rows.

    Parameters
    ----------
    kernel : an object of `surelearn.kernel.functions`
    X : the training rows, a NumPy array or a tensor (n, d)
    device, dtype : of the values
    """

    _split: tuple[torch.Tensor, fused.Halves] | None = None

    def __init__(self, kernel: Kernel, X: ArrayOrTensor, device: str, dtype: str) -> None:
        import torch

        self.kernel, self.device, self.dtype = kernel, torch.device(device), getattr(torch, dtype)
        self._length = _length(kernel)
        raw = self._raw(X)
        self._center = None if self._length is None else raw.mean(0, dtype=torch.float64)
        self._rows_dtype, self._direct, self._rounding = self.dtype, False, 0.0
        self.points = self._prepare(raw)
        if self._length is not None:
            self._refine(raw)

    def _refine(self, raw: torch.Tensor) -> None:
        """Take distances in float64, or from differences, where the rows are too many lengths
        apart.
        """
        import torch

        size, fine = (
            8.0 * float(self.points.square().sum(1, dtype=torch.float64).max()),
            _FINE[self.dtype.itemsize],
        )
        if size * torch.finfo(self._rows_dtype).eps > fine:
            self._rows_dtype = torch.float64
            self._direct = size * torch.finfo(torch.float64).eps > fine
            self.points = self._prepare(raw)
        self._rounding = size * torch.finfo(self._rows_dtype).eps

    def rows(self, X: ArrayOrTensor) -> torch.Tensor:
        """Rows as `block` takes them: on the device, centered and in units of the kernel's
        length.
        """
        return self._prepare(self._raw(X))

    def _raw(self, X: ArrayOrTensor) -> torch.Tensor:
        rows = _tensor(X).to(self.device)
        check_rows(rows)
        return rows

    def _prepare(self, values: torch.Tensor) -> torch.Tensor:
        import torch

        if self._center is None or self._length is None:
            return values.to(self._rows_dtype)
        values = values.to(torch.promote_types(values.dtype, self._rows_dtype))
        values = ((values - self._center.to(values.dtype)) / self._length).to(self._rows_dtype)
        farthest = _FARTHEST[values.element_size()]
        return values.clamp_(-farthest, farthest)

    def block(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """The matrix k(a_i, b_j) of prepared rows; shape (len(A), len(B))."""
        if self._length is None:
            inner = A @ B.T
            return (
                inner.add_(1.0).pow_(self.kernel.degree)
                if isinstance(self.kernel, Polynomial)
                else inner
            )
        shape = _SHAPES[type(self.kernel)]
        values = shape(self._squared_distances(A, B), self.kernel).to(self.dtype)
        return values.fill_diagonal_(1.0) if A is B else values

    def _squared_distances(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        import torch

        if self._direct:
            return torch.cdist(A, B, compute_mode="donot_use_mm_for_euclid_dist").square_()
        squares = torch.addmm(B.square().sum(1)[None], A, B.T, alpha=-2.0)
        squares.add_(A.square().sum(1)[:, None])
        if squares.numel() == 0 or bool(squares.min() > self._near):
            return squares
        i, j = (squares <= self._near).nonzero(as_tuple=True)
        if _MANY * len(i) > squares.numel():
            return torch.cdist(A, B, compute_mode="donot_use_mm_for_euclid_dist").square_()
        for rows, columns in zip(i.split(_PAIRS), j.split(_PAIRS), strict=True):
            squares[rows, columns] = (A[rows] - B[columns]).square_().sum(1)
        return squares

    @property
    def _near(self) -> float:
        return max(_NEAR[self._rows_dtype.itemsize], 100.0 * self._rounding)

    def error(self) -> float:
        """The most by which an entry of the training rows' matrix can be off, whatever the rounding
        was.

        A squared distance from products, used where it is above `_near`, is off by e = (d +
        3)·ε·(‖a‖ + ‖b‖)²: the distance by e/√near. Radial kernels change by at most 1 a length, and
        all but Laplace's by at most 3/2 a squared length. Centering and scaling move each row by 2ε
        of its distance from the center.
        """
        import torch

        d, eps = self.points.shape[1], torch.finfo(self.dtype).eps
        size = float(self.points.square().sum(1, dtype=torch.float64).max())
        if self._length is None:
            degree = self.kernel.degree if isinstance(self.kernel, Polynomial) else 1
            return (
                degree
                * (d + 4)
                * eps
                * (1.0 + size if isinstance(self.kernel, Polynomial) else size) ** degree
            )
        own = torch.finfo(self._rows_dtype).eps
        slope = 1.0 / math.sqrt(self._near) if isinstance(self.kernel, Laplace) else 1.5
        products = 0.0 if self._direct else 4 * (d + 3) * own * size * slope
        return products + 4 * own * math.sqrt(size) + (d + 3) * own + 8 * eps

    def diagonal(self, A: torch.Tensor) -> torch.Tensor:
        """k(a_i, a_i) for every prepared row."""
        if self._length is None:
            inner = A.square().sum(1)
            return (
                (inner + 1.0) ** self.kernel.degree
                if isinstance(self.kernel, Polynomial)
                else inner
            )
        return A.new_ones(len(A), dtype=self.dtype)

    def pieces(
        self, A: torch.Tensor, B: torch.Tensor, budget: float
    ) -> Iterator[tuple[slice, torch.Tensor]]:
        """k(A, B) in pieces of whole rows within ``budget`` bytes; where memory runs out all
        the same, in halves.
        """
        step = max(1, min(len(A), int(budget / (3 * max(1, len(B)) * self._rows_dtype.itemsize))))
        start = 0
        while start < len(A):
            rows = slice(start, min(start + step, len(A)))
            try:
                values = self.block(A if len(A) == rows.stop - rows.start else A[rows], B)
            except RuntimeError as error:
                if step == 1 or not out_of_memory(error):
                    raise
                step = max(1, step // 2)
                continue
            yield rows, values
            start = rows.stop

    def times(
        self, A: torch.Tensor, B: torch.Tensor, coefficients: torch.Tensor, budget: float
    ) -> torch.Tensor:
        """Σ_j k(a_i, b_j)·c_j without the whole matrix; ``coefficients`` (len(B), outputs)."""
        if self._fuses(A) and coefficients.shape[1] <= fused.MOST_OUTPUTS:
            return fused.times(
                self._halves(A),
                self._halves(B),
                coefficients,
                self.kernel,
                fused.ROUNDING * self._rounding,
            )
        wide = widened(coefficients)
        out = wide.new_empty(len(A), wide.shape[1])
        for rows, values in self.pieces(A, B, budget):
            out[rows] = values @ wide
        return out[:, : coefficients.shape[1]].contiguous()

    def _fuses(self, A: torch.Tensor) -> bool:
        return fused.available(A, self.kernel) and not self._direct

    def _halves(self, A: torch.Tensor) -> fused.Halves:
        """A's float16 parts; those of the training rows are kept."""
        if A is not self.points:
            return fused.split(A)
        if self._split is None or self._split[0] is not A:
            self._split = A, fused.split(A)
        return self._split[1]

    def gram(self, budget: float) -> torch.Tensor:
        """k(X, X) of the training rows, each pair evaluated once; n² numbers."""
        import torch

        A, n = self.points, len(self.points)
        if self._fuses(A):
            return fused.gram(self._halves(A), self.kernel, fused.ROUNDING * self._rounding)
        out = torch.empty(n, n, dtype=self.dtype, device=self.device)
        step = max(1, min(n, 2048, int(budget / (3 * n * self._rows_dtype.itemsize))))
        for start in range(0, n, step):
            stop = min(start + step, n)
            own = A[start:stop]
            out[start:stop, start:stop] = self.block(own, own)
            for rows, values in self.pieces(own, A[stop:], budget):
                out[start + rows.start : start + rows.stop, stop:] = values
                out[stop:, start + rows.start : start + rows.stop] = values.T
        return out


def widened(coefficients: torch.Tensor) -> torch.Tensor:
    """Several columns, on a CPU filled up with zeros to a multiple of 16: products take up to
    half the time.
    """
    import torch

    columns = coefficients.shape[1]
    if coefficients.device.type != "cpu" or columns == 1 or columns % 16 == 0:
        return coefficients
    return torch.nn.functional.pad(coefficients, (0, -columns % 16))


def check_rows(X: ArrayOrTensor) -> None:
    """Say where a number is missing, where one is."""
    rows = _tensor(X)
    if bool(rows.sum().isfinite()) or bool(rows.isfinite().all()):
        return
    row, column = (int(at) for at in rows.isfinite().logical_not().nonzero()[0])
    raise ValueError(
        f"X holds NaN or infinity, first in row {row}, column {column}: fill it in, or leave the"
        " row out"
    )


def _tensor(X: ArrayOrTensor) -> torch.Tensor:
    import torch

    return (
        X
        if isinstance(X, torch.Tensor)
        else torch.from_numpy(np.require(X, requirements=("C", "W")))
    )


def out_of_memory(error: RuntimeError) -> bool:
    """Whether torch ran out of memory, on any device."""
    import torch

    return isinstance(error, torch.OutOfMemoryError) or any(
        text in str(error) for text in _NO_MEMORY
    )


def _length(kernel: Kernel) -> float | None:
    if isinstance(kernel, Gaussian):
        return math.sqrt(2.0 * kernel.bandwidth**2)
    if isinstance(kernel, (Laplace, Matern)):
        return float(kernel.bandwidth)
    if isinstance(kernel, (Linear, Polynomial)):
        return None
    raise ValueError(
        f"kernel must be linear, polynomial, gaussian, laplace or matern, not {kernel!r}"
    )


def _gaussian(squares: torch.Tensor, kernel: Gaussian) -> torch.Tensor:  # noqa: ARG001 - squares are in units of 2h²
    return squares.neg_().exp_()


def _laplace(squares: torch.Tensor, kernel: Laplace) -> torch.Tensor:  # noqa: ARG001
    return squares.sqrt_().neg_().exp_()


def _matern(squares: torch.Tensor, kernel: Matern) -> torch.Tensor:
    t = squares.mul_(2.0 * kernel.nu).sqrt_()
    polynomial = 1.0 + t if kernel.nu == 1.5 else 1.0 + t + t.square() / 3.0
    return (polynomial * t.neg_().exp_()).nan_to_num_(0.0)


_SHAPES: dict[type[Kernel], Callable[[torch.Tensor, Any], torch.Tensor]] = {
    Gaussian: _gaussian,
    Laplace: _laplace,
    Matern: _matern,
}
