"""Kernel ridge regression and interpolation of small problems by torch's Cholesky, with exact
leave-one-out residuals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch


class Solution(NamedTuple):
    """α of (K + cI)α = y, what is left when each row is left out in turn (None: not defined),
    and the rank of K + cI.
    """

    alpha: torch.Tensor
    left_out: torch.Tensor | None
    rank: int


def solve(gram: torch.Tensor, Y: torch.Tensor, penalty: float) -> Solution:
    """α = (K + cI)⁻¹Y, or K⁺Y where K is singular; ``gram`` in float64 is overwritten.

    Without row i the residual there, y_i − f₋ᵢ(x_i), is α_i/((K + cI)⁻¹)_ii, with c = nλ held
    fixed.
    """
    import torch

    gram.diagonal().add_(penalty)
    factor, info = torch.linalg.cholesky_ex(gram)
    pivots = factor.diagonal()
    floor = (10 * len(gram) * torch.finfo(gram.dtype).eps) ** 0.5
    if int(info) == 0 and bool(pivots.min() > floor * pivots.max()):
        alpha = torch.cholesky_solve(Y, factor)
        return Solution(
            alpha, alpha / torch.cholesky_inverse(factor).diagonal()[:, None], len(gram)
        )
    values, vectors = torch.linalg.eigh(gram)
    kept = values > 10 * len(gram) * torch.finfo(gram.dtype).eps * values[-1].clamp(min=0.0)
    inverse = torch.where(kept, 1.0 / torch.where(kept, values, 1.0), 0.0)
    return Solution(vectors @ (inverse[:, None] * (vectors.T @ Y)), None, int(kept.sum()))
