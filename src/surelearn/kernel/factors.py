"""Approximate inverses of H = Σ_i k_Z(x_i)·k_Z(x_i)ᵀ + nλK_ZZ, the matrix of least squares on p
centers Z.

With K_ZZ = LLᵀ, f = Σ α_j k(z_j, ·) has coordinates Lᵀα in which ‖f‖ is the plain norm, and H
becomes n(C + λI), C the mean of w·wᵀ over the rows, w = L⁻¹k_Z(x). `Sampled` estimates C on random
rows. Falkon takes the centers themselves for them: w is largest there, C is too large in the many
small directions, and three times as many passes are needed in our trials. A small weight on the
centers helps all the same, since it keeps the estimate of few rows from being too small anywhere.

Centers whose k(z, ·) lies in the span of those before, to rounding, take no part in the directions.

Both triangles, L and the factor of C + λI, share the memory of one p × p matrix. Where that does
not fit, `LeadingDirections` flattens the q largest eigendirections of K_ZZ as EigenPro does.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np

from surelearn.kernel.torch_functions import Evaluator

if TYPE_CHECKING:
    import torch

BLOCK = 1024
# units of rounding added to the diagonal of K_ZZ, lest rounding make it indefinite or fill
# directions
_FLOOR = 1000.0
_OWN = 0.15  # weight of the centers beside as many sampled rows


class Triangle:
    """A lower triangle in the lower half of a square matrix; its diagonal blocks are apart, so
    that the rest is free.
    """

    def __init__(self, store: torch.Tensor, diagonal: list[torch.Tensor]) -> None:
        self._store, self.diagonal, self._cuts = store, diagonal, cuts(len(store))

    def factor(self, floor: float) -> None:
        """L in place of A = LLᵀ; a block that rounding made indefinite gets ``floor``, or ten
        times as much, and so on.
        """
        import torch

        A = self._store
        for i, (a, b) in enumerate(self._cuts):
            left, below = A[a:b, :a], A[b:, a:b]
            self.diagonal[i] = _cholesky(self.diagonal[i].addmm_(left, left.T, alpha=-1.0), floor)
            below.addmm_(A[b:, :a], left.T, alpha=-1.0)
            below.copy_(
                torch.linalg.solve_triangular(self.diagonal[i].T, below, upper=True, left=False)
            )

    def forward(self, B: torch.Tensor) -> torch.Tensor:
        """L⁻¹B."""
        import torch

        X = B.clone()
        for (a, b), own in zip(self._cuts, self.diagonal, strict=True):
            X[a:b].addmm_(self._store[a:b, :a], X[:a], alpha=-1.0)
            X[a:b] = torch.linalg.solve_triangular(own, X[a:b], upper=False)
        return X

    def backward(self, B: torch.Tensor) -> torch.Tensor:
        """L⁻ᵀB."""
        import torch

        X = B.clone()
        for (a, b), own in zip(reversed(self._cuts), reversed(self.diagonal), strict=True):
            X[a:b].addmm_(self._store[b:, a:b].T, X[b:], alpha=-1.0)
            X[a:b] = torch.linalg.solve_triangular(own.T, X[a:b], upper=True)
        return X


class Sampled:
    """H⁻¹, up to a factor, with C estimated on the rows S and, with a small weight, on the centers.

    Parameters
    ----------
    evaluator : the kernel with the centers as its points
    rows : S as `Evaluator.rows` gives them; random rows of the data, or all of them
    everything : whether S are all rows
    penalty : λ
    piece : bytes of a kernel block
    """

    def __init__(
        self,
        evaluator: Evaluator,
        rows: torch.Tensor,
        everything: bool,
        penalty: float,
        piece: float,
    ) -> None:
        import torch

        evaluator = copy.copy(evaluator)
        self._kept = torch.arange(len(evaluator.points), device=evaluator.device)
        eps = torch.finfo(evaluator.dtype).eps
        largest = float(evaluator.diagonal(evaluator.points).max())
        floor = _FLOOR * eps * largest or 1.0
        A = self._rooted(evaluator, floor, piece)
        pivots = torch.cat([block.diagonal() for block in self._root.diagonal]).square()
        kept = pivots > max(eps**0.5 * largest, 3.0 * floor)
        kept[0] = True
        if not bool(kept.all()):
            del A, self._root
            self._kept, evaluator.points = self._kept[kept], evaluator.points[kept]
            A = self._rooted(evaluator, floor, piece)
        p, s = len(A), len(rows)
        own = 0.0 if everything else min(0.5, _OWN * p / s)
        self._spread = self._own(A, own / p)
        for _, values in evaluator.pieces(rows, evaluator.points, piece):
            self._add(A, self._root.forward(values.T.contiguous()), (1.0 - own) / s)
        largest = max(float(block.diagonal().max()) for block in self._spread.diagonal)
        floor = 3.0 * eps * largest or 1.0
        for block in self._spread.diagonal:
            block.diagonal().add_(penalty + floor)
        self._spread.factor(floor)

    def _rooted(self, evaluator: Evaluator, floor: float, piece: float) -> torch.Tensor:
        """K_ZZ with Lᵀ in its upper half."""
        A = evaluator.gram(piece)
        A.diagonal().add_(floor)
        self._root = Triangle(A.T, [A[a:b, a:b].T.clone() for a, b in cuts(len(A))])
        self._root.factor(floor)
        return A

    def _own(self, A: torch.Tensor, weight: float) -> Triangle:
        """weight·LᵀL, below the diagonal of A, whose other half holds Lᵀ."""
        blocks = []
        for (a, b), lower in zip(cuts(len(A)), self._root.diagonal, strict=True):
            upper = lower.T
            A[a:b, :a] = (
                weight * (upper @ A[:a, a:b].T + A[a:b, b:] @ A[:a, b:].T) if weight else 0.0
            )
            blocks.append(weight * (upper @ upper.T + A[a:b, b:] @ A[a:b, b:].T))
        return Triangle(A, blocks)

    def _add(self, A: torch.Tensor, W: torch.Tensor, weight: float) -> None:
        for i, (a, b) in enumerate(cuts(len(A))):
            A[a:b, :a].addmm_(W[a:b], W[:a].T, alpha=weight)
            self._spread.diagonal[i].addmm_(W[a:b], W[a:b].T, alpha=weight)

    def directions(self, R: torch.Tensor) -> torch.Tensor:
        """A direction for each column of R."""
        inner = self._spread.forward(self._root.forward(R[self._kept]))
        out = R.new_zeros(R.shape)
        out[self._kept] = self._root.backward(self._spread.backward(inner))
        return out


class LeadingDirections:
    """H⁻¹, up to factors, on the span of q leading eigenvectors of K_ZZ and beside it: O(pq)
    memory.

    Parameters
    ----------
    evaluator, penalty, piece : as `Sampled` has them
    size : q
    rng : draws the subspace
    """

    def __init__(
        self,
        evaluator: Evaluator,
        size: int,
        penalty: float,
        piece: float,
        rng: np.random.RandomState,
    ) -> None:
        import torch

        points = evaluator.points
        # randomized subspace iteration: the leading eigenvectors from two products with the kernel
        p = len(points)
        basis = torch.from_numpy(rng.standard_normal((p, min(p, size + 10)))).to(
            evaluator.device, evaluator.dtype
        )
        for _ in range(2):
            basis = torch.linalg.qr(evaluator.times(points, points, basis, piece))[0]
        inner = basis.T.double() @ evaluator.times(points, points, basis, piece).double()
        values, vectors = torch.linalg.eigh((inner + inner.T) / 2)
        self._basis = basis @ vectors.to(basis)
        values = values.clamp(
            min=torch.finfo(basis.dtype).eps ** 0.5 * float(values[-1].clamp(min=1e-300))
        )
        self._weights = (1.0 / (values**2 / p + penalty * values)).to(basis)[:, None]
        self._weights /= self._weights.max()

    def directions(self, R: torch.Tensor) -> torch.Tensor:
        """Two directions for each column of R: within the span, and beside it."""
        import torch

        inside = self._basis.T @ R
        return torch.cat([self._basis @ (self._weights * inside), R - self._basis @ inside], 1)


def cuts(p: int) -> list[tuple[int, int]]:
    """Where the blocks begin and end."""
    return [(start, min(start + BLOCK, p)) for start in range(0, p, BLOCK)]


def _cholesky(block: torch.Tensor, floor: float) -> torch.Tensor:
    import torch

    jitter = 0.0
    while True:
        factor, info = torch.linalg.cholesky_ex(block)
        if not int(info):
            return factor
        block.diagonal().add_(9.0 * jitter if jitter else floor)
        jitter = 10.0 * jitter if jitter else floor
