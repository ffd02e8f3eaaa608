"""Muon: momentum, made orthogonal, for the hidden matrices of a network."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

# K. Jordan and others, Muon: an optimizer for hidden layers in neural networks (2024): five steps
# of x ↦ ax + bx³ + cx⁵ bring every singular value in (0, 1] near 1.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def orthogonalized(G: Tensor, steps: int = 5) -> Tensor:
    """The nearest matrix with orthonormal rows or columns, UVᵀ for G = UΣVᵀ, by Newton–Schulz: its
    singular values lie between about 0.7 and 1.2.

    X ← aX + (b·XXᵀ + c·(XXᵀ)²)X from X = G/‖G‖_F, for each of a batch of matrices (…, m, n).

    Examples
    --------
    >>> G = torch.diag(torch.tensor([3.0, -1.0]))
    >>> X = orthogonalized(G)
    >>> bool((X.diag().abs() - 1).abs().max() < 0.35), X[0, 1].item()
    (True, 0.0)
    """
    a, b, c = COEFFICIENTS
    wide = G.shape[-2] <= G.shape[-1]
    X = G if wide else G.mT
    X = X / (X.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        A = X @ X.mT
        X = a * X + (b * A + c * A @ A) @ X
    return X if wide else X.mT


class Muon(torch.optim.Optimizer):
    """W ← (1 − ηλ)W − η·0.2·√max(m, n)·orthogonalized(G + μM), M ← μM + G, for matrices.

    The factor makes a step's root mean square that of AdamW, so that both take the same learning
    rate (J. Liu and others, Muon is scalable for LLM training, 2025). Kernels of convolutions count
    as matrices with a row per output channel. Matrices of one shape are made orthogonal together.

    Parameters
    ----------
    parameters : hidden matrices; not embeddings, heads or vectors, which AdamW takes
    lr, momentum, weight_decay : η, μ, λ

    Examples
    --------
    >>> W = nn.Parameter(torch.zeros(3, 3))
    >>> W.grad = torch.eye(3)
    >>> Muon([W], lr=0.1).step()
    >>> bool((W.diag() < -0.02).all())
    True
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter] | Iterable[dict[str, Any]],
        lr: float,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(parameters, defaults)  # type: ignore[arg-type]

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # noqa: ARG002
        """One step of every matrix that has a gradient."""
        for group in self.param_groups:
            alike: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
            for W in group["params"]:
                if W.grad is not None:
                    alike[W.shape].append(W)
            for shape, matrices in alike.items():
                size = 0.2 * max(shape[0], shape[1:].numel()) ** 0.5
                pushed = torch.stack([self._pushed(W, group["momentum"]) for W in matrices])
                if pushed.is_cuda:  # its matrix units are made for it, and no digit more is needed
                    pushed = pushed.bfloat16()
                updates = orthogonalized(pushed).to(matrices[0].dtype) * (group["lr"] * size)
                for W, update in zip(matrices, updates.unflatten(2, shape[1:]), strict=True):
                    W.mul_(1 - group["lr"] * group["weight_decay"]).sub_(update)

    def _pushed(self, W: nn.Parameter, momentum: float) -> Tensor:
        """G + μM, flat, with M moved on."""
        state, G = self.state[W], W.grad
        if G is None:
            raise ValueError("a matrix has no gradient")
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(W)
        state["momentum"].mul_(momentum).add_(G)
        return G.add(state["momentum"], alpha=momentum).flatten(1)
