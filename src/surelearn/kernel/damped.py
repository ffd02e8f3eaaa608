"""(H + εI)⁻¹ of many blocks at once, as the inverse L⁻¹ of a Cholesky factor: what a block of rows
is solved with.

A block is met every epoch, and products with L⁻¹ are several times quicker than triangular solves.
L⁻¹ is built from the inverses of small diagonal pieces by matrix products, which a GPU does for all
blocks together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

SHARE = {4: 1e-2, 8: 1e-4}  # ε as a share of the largest diagonal entry of H, by bytes per number
_PIECE = 256


def damped_factors(blocks: torch.Tensor, largest: torch.Tensor, share: float) -> torch.Tensor:
    """L⁻¹ with LLᵀ = H + εI for each block H of ``blocks`` (b, m, m), overwritten; solve with
    `solve_damped`.

    Parameters
    ----------
    largest : (b,), the size of the numbers H was computed from: their rounding must not make it
        indefinite
    share : ε as a share of H's largest diagonal entry
    """
    import torch

    diagonals = blocks.diagonal(dim1=1, dim2=2)
    rounding = (
        10
        * torch.finfo(blocks.dtype).eps
        * blocks.shape[1]
        * largest
        * max(1.0, share / SHARE[blocks.element_size()])
    )
    damping = torch.maximum(share * diagonals.amax(1), rounding)
    damping = torch.where(damping > 0, damping, 1.0)
    diagonals += damping[:, None]
    while True:
        factors, info = torch.linalg.cholesky_ex(blocks)
        if not bool(info.any()):
            return inverse_of_triangular(factors)
        more = torch.where(info > 0, 9.0 * damping, 0.0)
        damping += more
        diagonals += more[:, None]


def solve_damped(factor: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """(H + εI)⁻¹ times ``right``, from one block's L⁻¹."""
    return factor.T @ (factor @ right)


def inverse_of_triangular(factors: torch.Tensor) -> torch.Tensor:
    """The inverses of lower triangular matrices (b, m, m): halves are inverted, then joined, as
    [[A, 0], [B, C]] has the inverse [[A⁻¹, 0], [−C⁻¹BA⁻¹, C⁻¹]].
    """
    import torch

    b, m, _ = factors.shape
    out = torch.zeros_like(factors)
    pieces = [slice(start, min(start + _PIECE, m)) for start in range(0, m, _PIECE)]
    for alike in (pieces[:-1], pieces[-1:]):
        if alike:
            inverses = _invert(torch.cat([factors[:, own, own] for own in alike])).split(b)
            for own, inverse in zip(alike, inverses, strict=True):
                out[:, own, own] = inverse
    size = _PIECE
    while size < m:
        for start in range(0, m - size, 2 * size):
            first, second = (
                slice(start, start + size),
                slice(start + size, min(start + 2 * size, m)),
            )
            joined = factors[:, second, first] @ out[:, first, first]
            out[:, second, first] = -(out[:, second, second] @ joined)
        size *= 2
    return out


def _invert(pieces: torch.Tensor) -> torch.Tensor:
    import torch

    identity = torch.eye(pieces.shape[1], dtype=pieces.dtype, device=pieces.device)
    return torch.linalg.solve_triangular(pieces, identity.expand_as(pieces), upper=False)
