# pyright: reportInvalidTypeForm=false, reportIndexIssue=false
"""Distance, kernel and product in one CUDA kernel (Triton), so that kernel values never travel
through memory.

Inner products are taken on tensor cores in float16: each float32 number is split into two, x = high
+ low, and three of the four products are summed in float32. What is left out is 2⁻²² of the
product, the error is that of float32 and not of float16 (`benchmarks/bench_eigenpro.py --precision`
compares with float64). Triton comes with PyTorch's CUDA builds.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surelearn.kernel.functions import Gaussian, Kernel, Laplace, Matern

_INSTALLED = importlib.util.find_spec("triton") is not None
triton: Any = importlib.import_module("triton") if _INSTALLED else None
tl: Any = importlib.import_module("triton.language") if _INSTALLED else None

if TYPE_CHECKING:
    import torch

# a program's square of the kernel matrix, and the columns it takes at a time
_TILE, _DEPTH = 128, 64
_PROGRAMS = 8 * 132  # fills an H200 several times over
ROUNDING = 4.0  # how many times that of one float32 product a squared distance of copies can be off
MOST_OUTPUTS = 64  # a program holds a tile of them
_LARGEST = 6e4  # of a float16, nearly
# rows are within ten lengths or so of the center: scaled so, their low parts are far from underflow
_SCALE = 1024.0
UNIT = 2.0 / _SCALE**2


@dataclass(frozen=True, eq=False)
class Halves:
    """Rows split into float16 parts, as factors on the left [high, high, low] and on the right
    [high, low, high].
    """

    left: torch.Tensor
    right: torch.Tensor
    squares: torch.Tensor

    def __len__(self) -> int:
        return len(self.squares)


def split(rows: torch.Tensor) -> Halves:
    """Rows (n, d) in units of the kernel's length, ready for `times` and `gram`."""
    import torch

    scaled = (rows * _SCALE).clamp_(-_LARGEST, _LARGEST)
    high = scaled.half()
    low = (scaled - high).half()
    padding = high.new_zeros(len(rows), -3 * rows.shape[1] % _DEPTH)
    left, right = (
        torch.cat((*parts, padding), 1) for parts in ((high, high, low), (high, low, high))
    )
    return Halves(left, right, rows.square().sum(1))


def shape_of(kernel: Kernel) -> int | None:
    """Which of the shapes below a kernel has; None: not a function of the distance alone."""
    if isinstance(kernel, Matern):
        return 2 if kernel.nu == 1.5 else 3
    return 0 if isinstance(kernel, Gaussian) else 1 if isinstance(kernel, Laplace) else None


def available(rows: torch.Tensor, kernel: Kernel) -> bool:
    """Whether these rows and this kernel can be fused."""
    import torch

    return (
        triton is not None
        and rows.is_cuda
        and rows.dtype == torch.float32
        and shape_of(kernel) is not None
    )


def times(
    A: Halves, B: Halves, coefficients: torch.Tensor, kernel: Kernel, rounding: float
) -> torch.Tensor:
    """Σ_j k(a_i, b_j)·c_j; squared distances up to ``rounding`` are 0."""
    n, m, outputs = len(A), len(B), coefficients.shape[1]
    tiles = triton.cdiv(n, _TILE)
    parts = max(1, min(triton.cdiv(m, _TILE), _PROGRAMS // tiles))
    share = triton.cdiv(triton.cdiv(m, parts), _TILE) * _TILE
    parts = triton.cdiv(m, share)
    out = coefficients.new_empty(parts, n, outputs)
    width = 1 if outputs == 1 else max(16, triton.next_power_of_2(outputs))
    _times[(tiles, parts)](
        A.left, B.right, A.squares, B.squares, coefficients.contiguous(), out, n, m, outputs, share, UNIT, rounding,
        COLUMNS=A.left.shape[1], SHAPE=shape_of(kernel), WIDTH=width, DEPTH=_DEPTH, TILE=_TILE, num_warps=8, num_stages=3,
    )  # fmt: skip
    return out[0] if parts == 1 else out.sum(0)


def gram(A: Halves, kernel: Kernel, rounding: float) -> torch.Tensor:
    """k(a_i, a_j), each pair evaluated once."""
    n = len(A)
    out = A.squares.new_empty(n, n)
    tiles = triton.cdiv(n, _TILE)
    _gram[(tiles * (tiles + 1) // 2,)](
        A.left, A.right, A.squares, out, n, UNIT, rounding,
        COLUMNS=A.left.shape[1], SHAPE=shape_of(kernel), DEPTH=_DEPTH, TILE=_TILE, num_warps=8, num_stages=3,
    )  # fmt: skip
    return out


if triton is not None:

    @triton.jit
    def _values(inner, a2, b2, rounding, SHAPE: tl.constexpr):
        squares = (a2[:, None] + b2[None, :]) - inner
        squares = tl.where(squares > rounding, squares, 0.0)
        if SHAPE == 0:
            return tl.exp(-squares)
        if SHAPE == 1:
            return tl.exp(-tl.sqrt(squares))
        if SHAPE == 2:
            t = tl.sqrt(3.0 * squares)
            return (1.0 + t) * tl.exp(-t)
        t = tl.sqrt(5.0 * squares)
        return (1.0 + t + t * t / 3.0) * tl.exp(-t)

    @triton.jit
    def _twice_inner(
        A, B, i, j, n, m, unit, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, TILE: tl.constexpr
    ):
        k = tl.arange(0, DEPTH)
        a_at = A + (i % n)[:, None] * COLUMNS + k[None, :]
        b_at = B + (j % m)[None, :] * COLUMNS + k[:, None]
        inner = tl.zeros((TILE, TILE), dtype=tl.float32)
        for _ in range(0, COLUMNS, DEPTH):
            # a tensor core truncates its own sum: keep it short
            inner += unit * tl.dot(tl.load(a_at), tl.load(b_at))
            a_at += DEPTH
            b_at += DEPTH
        return inner

    @triton.jit
    def _times(
        A, B, A2, B2, C, out, n, m, outputs, share, unit, rounding,
        COLUMNS: tl.constexpr, SHAPE: tl.constexpr, WIDTH: tl.constexpr, DEPTH: tl.constexpr, TILE: tl.constexpr,
    ):  # fmt: skip
        tile, part = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
        i = tile * TILE + tl.arange(0, TILE)
        o = tl.arange(0, WIDTH)
        a2 = tl.load(A2 + i, mask=i < n, other=0.0)
        total = tl.zeros((TILE, WIDTH), dtype=tl.float32)
        for start in range(part * share, min((part + 1) * share, m), TILE):
            j = start + tl.arange(0, TILE)
            b2 = tl.load(B2 + j, mask=j < m, other=0.0)
            values = _values(
                _twice_inner(A, B, i, j, n, m, unit, COLUMNS, DEPTH, TILE), a2, b2, rounding, SHAPE
            )
            if WIDTH == 1:
                c = tl.load(C + j, mask=j < m, other=0.0)
                total += tl.sum(values * c[None, :], axis=1)[:, None]
            else:
                inside = (j[:, None] < m) & (o[None, :] < outputs)
                c = tl.load(C + j[:, None] * outputs + o[None, :], mask=inside, other=0.0)
                total = tl.dot(values, c, total, input_precision="tf32x3")
        where = out + (part * n + i[:, None]) * outputs + o[None, :]
        tl.store(where, total, mask=(i[:, None] < n) & (o[None, :] < outputs))

    @triton.jit
    def _gram(
        A, B, A2, out, n, unit, rounding,
        COLUMNS: tl.constexpr, SHAPE: tl.constexpr, DEPTH: tl.constexpr, TILE: tl.constexpr,
    ):  # fmt: skip
        index = tl.program_id(0)
        row = ((tl.sqrt(8.0 * index.to(tl.float64) + 1.0) - 1.0) / 2.0).to(tl.int32)
        row = tl.where((row + 1) * (row + 2) // 2 <= index, row + 1, row)
        row = tl.where(row * (row + 1) // 2 > index, row - 1, row)
        column = index - row * (row + 1) // 2
        i = row.to(tl.int64) * TILE + tl.arange(0, TILE)
        j = column.to(tl.int64) * TILE + tl.arange(0, TILE)
        a2, b2 = tl.load(A2 + i, mask=i < n, other=0.0), tl.load(A2 + j, mask=j < n, other=0.0)
        values = _values(
            _twice_inner(A, B, i, j, n, n, unit, COLUMNS, DEPTH, TILE), a2, b2, rounding, SHAPE
        )
        values = tl.where(i[:, None] == j[None, :], 1.0, values)
        inside = (i[:, None] < n) & (j[None, :] <= i[:, None])
        tl.store(out + i[:, None] * n + j[None, :], values, mask=inside)
        tl.store(out + j[None, :] * n + i[:, None], values, mask=inside)
