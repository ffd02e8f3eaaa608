"""Composite, precomputed and weighted kernels on torch tensors, behind the interface of
`torch_functions.Evaluator`.

A prepared row is one row of one tensor whatever the kernel is, so that rows can be permuted, sliced
and kept as ever: the columns of the parts stand side by side, a row of a precomputed matrix brings
its own number along, a weighted row √w.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from surelearn.kernel.composites import Product, Sum
from surelearn.kernel.functions import Kernel, Linear, Precomputed
from surelearn.kernel.torch_functions import ArrayOrTensor, Evaluator, check_rows

if TYPE_CHECKING:
    import torch


def evaluator(
    kernel: Kernel,
    X: ArrayOrTensor,
    device: str,
    dtype: str,
    *,
    weights: np.ndarray | None = None,
    numbers: np.ndarray | None = None,
) -> Evaluator:
    """The evaluator of any kernel, prepared for the training rows.

    Parameters
    ----------
    kernel, X, device, dtype : as `Evaluator` takes them
    weights : w_i ≥ 0 of the training rows: k(x_i, x_j) becomes √w_i·k(x_i, x_j)·√w_j, new rows have
        weight 1
    numbers : with a precomputed kernel, the columns that are the training rows' own; None: X is
        square, in their order
    """
    if weights is not None:
        return Weighted(evaluator(kernel, X, device, dtype, numbers=numbers), X, weights)
    if isinstance(kernel, (Sum, Product)):
        return Composite(kernel, X, device, dtype)
    if isinstance(kernel, Precomputed):
        return Looked(kernel, X, device, dtype, numbers)
    return Evaluator(kernel, X, device, dtype)


class _Assembled(Evaluator):
    """An evaluator with blocks of its own: everything else is built on `block`, for rows taken
    as they are.
    """

    def __init__(self, kernel: Kernel, X: ArrayOrTensor, device: str, dtype: str) -> None:
        super().__init__(Linear(), X[:1], device, dtype)
        self.kernel = kernel

    def pieces(
        self, A: torch.Tensor, B: torch.Tensor, budget: float
    ) -> Iterator[tuple[slice, torch.Tensor]]:
        """As for a plain kernel, with room for the parts: one block more than a part needs, of
        the rows' precision.
        """
        return super().pieces(A, B, budget * self.dtype.itemsize / (2 * self.points.element_size()))


class Composite(_Assembled):
    """Σ_p w_p·k_p or Π_p k_p; the rows of part p are columns ``slices[p]`` of a prepared row,
    in the finest precision.
    """

    def __init__(self, kernel: Sum | Product, X: ArrayOrTensor, device: str, dtype: str) -> None:
        import torch

        super().__init__(kernel, X, device, dtype)
        self._parts = [evaluator(part, X, device, dtype) for part in kernel.parts]
        self._weights = kernel.weights if isinstance(kernel, Sum) else None
        self._dtypes = [part.points.dtype for part in self._parts]
        ends = np.cumsum([0] + [part.points.shape[1] for part in self._parts]).tolist()
        self._slices = [slice(start, stop) for start, stop in pairwise(ends)]
        self._finest = torch.float64 if torch.float64 in self._dtypes else self.dtype
        self.points = self._beside([part.points for part in self._parts])
        self._errors = [
            (part.error(), float(part.diagonal(part.points).max())) for part in self._parts
        ]
        for part in self._parts:
            part.points = part.points[:1].clone()  # the columns hold them now

    def rows(self, X: ArrayOrTensor) -> torch.Tensor:
        """Rows as `block` takes them."""
        return self._beside([part.rows(X) for part in self._parts])

    def block(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """The matrix of prepared rows; shape (len(A), len(B))."""
        return self._combine(part.block(a, b) for part, a, b in self._pairs(A, B))

    def times(
        self, A: torch.Tensor, B: torch.Tensor, coefficients: torch.Tensor, budget: float
    ) -> torch.Tensor:
        """Σ_j k(a_i, b_j)·c_j; for a sum part by part, each as quickly as it can."""
        if self._weights is None:
            return super().times(A, B, coefficients, budget)
        return self._combine(
            part.times(a, b, coefficients, budget) for part, a, b in self._pairs(A, B)
        )

    def diagonal(self, A: torch.Tensor) -> torch.Tensor:
        """k(a_i, a_i) for every prepared row."""
        return self._combine(
            part.diagonal(a) for part, a in zip(self._parts, self._apart(A), strict=True)
        )

    def error(self) -> float:
        """As for a plain kernel, from the parts' errors and their largest values."""
        import torch

        rounding = 2 * len(self._parts) * torch.finfo(self.dtype).eps
        if self._weights is not None:
            return sum(
                w * (error + rounding * most)
                for w, (error, most) in zip(self._weights, self._errors, strict=True)
            )
        exact, most = (
            math.prod(most + part * error for error, most in self._errors) for part in (0.0, 1.0)
        )
        return most * (1.0 + rounding) - exact

    def _beside(self, rows: list[torch.Tensor]) -> torch.Tensor:
        import torch

        return torch.cat([values.to(self._finest) for values in rows], dim=1)

    def _pairs(
        self, A: torch.Tensor, B: torch.Tensor
    ) -> Iterator[tuple[Evaluator, torch.Tensor, torch.Tensor]]:
        """Each part with its own rows of A and B, the same object where A is B."""
        left = self._apart(A)
        return zip(self._parts, left, left if A is B else self._apart(B), strict=True)

    def _apart(self, A: torch.Tensor) -> list[torch.Tensor]:
        return [
            A[:, own].to(dtype).contiguous()
            for own, dtype in zip(self._slices, self._dtypes, strict=True)
        ]

    def _combine(self, values: Iterator[torch.Tensor]) -> torch.Tensor:
        """Their weighted sum, or their product, in the memory of the first."""
        total = next(values)
        if self._weights is None:
            for factor in values:
                total.mul_(factor)
            return total
        total.mul_(self._weights[0])
        for weight, term in zip(self._weights[1:], values, strict=True):
            total.add_(term, alpha=weight)
        return total


class Looked(_Assembled):
    """A precomputed kernel, looked up: a prepared row is a row of K and last its own number
    among K's columns, −1 if new.
    """

    def __init__(
        self,
        kernel: Precomputed,
        X: ArrayOrTensor,
        device: str,
        dtype: str,
        numbers: np.ndarray | None = None,
    ) -> None:
        super().__init__(kernel, X, device, dtype)
        if numbers is None and X.shape[0] != X.shape[1]:
            raise ValueError(
                "X must be the square matrix k(x_i, x_j) of the training rows, not of shape"
                f" {X.shape}"
            )
        self._columns = X.shape[1]
        own = np.arange(len(X)) if numbers is None else np.asarray(numbers)
        self.points = self._numbered(X, own)

    def rows(self, X: ArrayOrTensor) -> torch.Tensor:
        """Rows as `block` takes them: new ones, k(x, ·) at the training rows."""
        if X.shape[1] != self._columns:
            raise ValueError(
                f"X must have k(x, ·) at the {self._columns} rows fitted as columns, not"
                f" {X.shape[1]}"
            )
        return self._numbered(X, np.full(len(X), -1))

    def block(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """The columns of A that are B's own; shape (len(A), len(B))."""
        return A.index_select(1, self._own(B))

    def diagonal(self, A: torch.Tensor) -> torch.Tensor:
        """k(a_i, a_i) for every prepared training row."""
        return A.gather(1, self._own(A)[:, None])[:, 0]

    def error(self) -> float:
        """What the numbers lose in the evaluator's precision."""
        import torch

        return torch.finfo(self.dtype).eps * float(self.points[:, :-1].abs().max())

    def _own(self, A: torch.Tensor) -> torch.Tensor:
        numbers = A[:, -1].long()
        if len(A) and int(numbers.min()) < 0:
            raise ValueError(
                "a precomputed kernel is known at training rows alone: k of two new rows is not in"
                " the matrix"
            )
        return numbers

    def _numbered(self, X: ArrayOrTensor, numbers: np.ndarray) -> torch.Tensor:
        import torch

        rows = torch.empty(len(X), X.shape[1] + 1, dtype=self.dtype, device=self.device)
        rows[:, :-1] = (
            X
            if isinstance(X, torch.Tensor)
            else torch.from_numpy(np.require(X, requirements=("C", "W")))
        )
        rows[:, -1] = torch.from_numpy(numbers).to(self.device)  # exact: float32 counts to 2²⁴
        check_rows(rows)
        return rows


class Weighted(_Assembled):
    """√w_i·k(x_i, x_j)·√w_j of another evaluator; a prepared row has √w last.

    The weighted ridge system (K + cW⁻¹)α = y is (W^½KW^½ + cI)β = W^½y with α = W^½β. New rows have
    weight 1, so that `times` of new rows with β is Σ_j k(x, x_j)·α_j.
    """

    def __init__(self, base: Evaluator, X: ArrayOrTensor, weights: np.ndarray) -> None:
        super().__init__(base.kernel, X, str(base.device), str(base.dtype).removeprefix("torch."))
        if (
            np.shape(weights) != (len(X),)
            or not (np.isfinite(weights) & (np.asarray(weights) >= 0)).all()
        ):
            raise ValueError(
                f"weights must be {len(X)} finite numbers of at least 0, one for each row"
            )
        self._base = base
        self.points = self._beside(base.points, np.sqrt(weights))
        base.points = base.points[:1].clone()

    def rows(self, X: ArrayOrTensor) -> torch.Tensor:
        """Rows as `block` takes them, of weight 1."""
        return self._beside(self._base.rows(X), np.ones(len(X)))

    def block(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """The matrix √w_i·k(a_i, b_j)·√w_j; shape (len(A), len(B))."""
        left = A[:, :-1].contiguous()
        values = self._base.block(left, left if A is B else B[:, :-1].contiguous())
        return values.mul_(A[:, -1:].to(values.dtype)).mul_(B[:, -1].to(values.dtype))

    def times(
        self, A: torch.Tensor, B: torch.Tensor, coefficients: torch.Tensor, budget: float
    ) -> torch.Tensor:
        """Σ_j √w_i·k(a_i, b_j)·√w_j·c_j, as quickly as without weights."""
        rows, others = A[:, :-1].contiguous(), B[:, :-1].contiguous()
        values = self._base.times(
            rows, others, coefficients * B[:, -1:].to(coefficients.dtype), budget
        )
        return values.mul_(A[:, -1:].to(values.dtype))

    def gram(self, budget: float) -> torch.Tensor:
        """W^½KW^½ of the training rows."""
        self._base.points, roots = (
            self.points[:, :-1].contiguous(),
            self.points[:, -1].to(self.dtype),
        )
        values = self._base.gram(budget).mul_(roots[:, None]).mul_(roots)
        self._base.points = self._base.points[:1].clone()
        return values

    def diagonal(self, A: torch.Tensor) -> torch.Tensor:
        """w_i·k(a_i, a_i)."""
        values = self._base.diagonal(A[:, :-1].contiguous())
        return values * A[:, -1].to(values.dtype).square()

    @staticmethod
    def _beside(rows: torch.Tensor, roots: np.ndarray) -> torch.Tensor:
        import torch

        return torch.cat([rows, torch.from_numpy(roots).to(rows)[:, None]], dim=1)
