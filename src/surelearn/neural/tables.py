"""The network for tables: numbers in piecewise linear embeddings, categories in embeddings, and k
members that share their matrices.

Every idea is somebody's: smooth clipping of robustly scaled numbers, the number itself beside its
embedding, and a diagonal layer that scales features are RealMLP's (D. Holzmüller, L. Grinsztajn and
I. Steinwart, Better by default, NeurIPS 2024); piecewise linear embeddings are of Y. Gorishniy, I.
Rubachev and A. Babenko, On embeddings for numerical features in tabular deep learning (NeurIPS
2022); the members are TabM's (Y. Gorishniy, A. Kotelnikov and A. Babenko, ICLR 2025), from
BatchEnsemble (Y. Wen, D. Tran and J. Ba, ICLR 2020).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

LONGEST = 8  # numbers that a category is embedded in


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What a network for tables is made from.

    Attributes
    ----------
    numbers : columns of numbers, which come first
    marked : those of them that get a mark where they are missing
    categories : the number of codes of each column of categories, which come after the numbers
    outputs : classes; 1 for a regression
    members : k
    width, depth : of the hidden layers
    dropout : the share of hidden units that are left out of a step
    bins, embedded : into how many bins the range of each number is cut, and how many sums over them
        go on; 0 embedded takes numbers as they are
    """

    numbers: int
    marked: tuple[int, ...]
    categories: tuple[int, ...]
    outputs: int
    members: int
    width: int
    depth: int
    dropout: float
    bins: int
    embedded: int


class SmoothClip(nn.Module):
    """(x − center)·scale, clipped smoothly to (−3, 3) by t/√(1 + (t/3)²); 0 where x is missing."""

    center: Tensor
    scale: Tensor

    def __init__(self, d: int) -> None:
        super().__init__()
        # the median, and one over the interquartile range
        self.register_buffer("center", torch.zeros(d))
        self.register_buffer("scale", torch.ones(d))

    def scaled(self, x: Tensor) -> Tensor:
        """(B, d), column by column, not clipped."""
        t = torch.nan_to_num((x - self.center) * self.scale, nan=0.0)
        return t.clamp(-1e9, 1e9)  # whose squares are numbers

    def clipped(self, t: Tensor) -> Tensor:
        """Scaled numbers clipped."""
        return t * torch.rsqrt(1 + (t / 3) ** 2)

    def forward(self, x: Tensor) -> Tensor:
        """(B, d) to (B, d)."""
        return self.clipped(self.scaled(x))


class PiecewiseEmbedding(nn.Module):
    """t_j ↦ Σ_b V_jb·clip((t_j − low_jb)/width_jb, 0, 1) + c_j: a piecewise linear function of each
    number with values in R^embedded, whose knots are quantiles.
    """

    low: Tensor
    inverse: Tensor

    def __init__(self, d: int, bins: int, embedded: int) -> None:
        super().__init__()
        # one over the width of a bin; 0 where a column has fewer bins
        self.register_buffer("low", torch.zeros(d, bins))
        self.register_buffer("inverse", torch.zeros(d, bins))
        self.weight = nn.Parameter(_uniform(bins, d, bins, embedded))
        self.bias = nn.Parameter(_uniform(bins, d, embedded))

    def forward(self, t: Tensor) -> Tensor:
        """(B, d) to (B, d, embedded)."""
        filled = ((t[..., None] - self.low) * self.inverse).clamp(0, 1)  # (B, d, bins)
        return torch.einsum("bdf,dfe->bde", filled, self.weight) + self.bias


class SharedLinear(nn.Module):
    """h_m ↦ ((h_m ⊙ r_m)·W) ⊙ s_m + b_m for members m: one matrix W, and vectors of their own.

    The vectors are multiplied into W, so that each member costs one product and no further pass.
    """

    def __init__(self, members: int, d: int, width: int, first: Tensor | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(_uniform(d, d, width))
        self.r = nn.Parameter(torch.ones(members, d) if first is None else first)
        self.s = nn.Parameter(torch.ones(members, width))
        self.bias = nn.Parameter(_uniform(d, members, width))

    def forward(self, h: Tensor) -> Tensor:
        """(k, B, d) to (k, B, width)."""
        each = self.r[:, :, None] * self.weight * self.s[:, None, :]
        return torch.baddbmm(self.bias[:, None, :], h, each)


class TableNetwork(nn.Module):
    """k networks that share their matrices. In training it gives what each answers, (k, B, outputs):
    logits, or standardized targets. In use it gives what they answer together, (B, outputs): the
    logarithms of their mean probabilities, or their mean in the target's own unit.
    """

    target: Tensor

    def __init__(self, sizes: Sizes, *, classes: bool) -> None:
        super().__init__()
        k, self.classes, self.numbers = sizes.members, classes, sizes.numbers
        self.marked = list(sizes.marked)
        self.clip = SmoothClip(sizes.numbers)
        embedded = sizes.embedded if sizes.numbers and sizes.bins else 0
        self.bins = PiecewiseEmbedding(sizes.numbers, sizes.bins, embedded) if embedded else None
        wide = [min(count, LONGEST) for count in sizes.categories]
        self.words = nn.ParameterList(
            nn.Parameter(_words(count, width))
            for count, width in zip(sizes.categories, wide, strict=True)
        )
        parts = [1 + embedded] * sizes.numbers + [1] * len(sizes.marked) + wide
        d = sum(parts)
        self.scale = nn.Parameter(torch.ones(d))
        # members begin with other signs of whole columns
        signs = torch.randint(0, 2, (k, len(parts))).float() * 2 - 1
        first = torch.cat([signs[:, [j]].expand(k, n) for j, n in enumerate(parts)], dim=1)
        self.hidden = nn.ModuleList(
            SharedLinear(k, sizes.width if i else d, sizes.width, None if i else first)
            for i in range(sizes.depth)
        )
        self.dropout = sizes.dropout
        last = sizes.width if sizes.depth else d
        self.head = nn.Parameter(_uniform(last, k, last, sizes.outputs))
        self.shift = nn.Parameter(torch.zeros(k, sizes.outputs))
        # mean and standard deviation of a regression's targets
        self.register_buffer("target", torch.tensor([0.0, 1.0]))

    def features(self, X: Tensor) -> Tensor:
        """(B, columns) to (B, d): embedded, and scaled by a diagonal layer."""
        x = X[:, : self.numbers]
        t = self.clip.scaled(x)
        seen = self.clip.clipped(t)[..., None]
        if self.bins is not None:
            seen = torch.cat([seen, self.bins(t)], dim=-1)  # (B, numbers, 1 + embedded)
        parts = [seen.flatten(1)]
        if self.marked:
            parts.append(torch.isnan(x[:, self.marked]).to(t.dtype))
        for j, table in enumerate(self.words):
            parts.append(table[X[:, self.numbers + j].long()])
        return torch.cat(parts, dim=1) * self.scale

    def each(self, X: Tensor) -> Tensor:
        """What each member answers, (k, B, outputs)."""
        h = self.features(X).expand(len(self.head), -1, -1)
        for layer in self.hidden:
            h = self._dropped(nn.functional.silu(layer(h)))
        return torch.baddbmm(self.shift[:, None, :], h, self.head)

    def _dropped(self, h: Tensor) -> Tensor:
        """Dropout of the same units of all members: random numbers cost more than products."""
        if not (self.training and self.dropout):
            return h
        kept = nn.functional.dropout(torch.ones_like(h[0]), self.dropout)
        return h * kept

    def forward(self, X: Tensor) -> Tensor:
        """(k, B, outputs) in training, (B, outputs) in use."""
        each = self.each(X)
        if self.training:
            return each
        if not self.classes:
            return each.mean(dim=0) * self.target[1] + self.target[0]
        logs = torch.log_softmax(each, dim=-1)
        return torch.logsumexp(logs, dim=0) - math.log(len(each))


def _words(count: int, width: int) -> Tensor:
    """Embeddings of codes 0, 1, …; 0 is for what is missing or was not seen, and begins at zero."""
    made = torch.randn(count, width) / max(width, 1) ** 0.5
    made[0] = 0.0
    return made


def _uniform(d: int, *shape: int) -> Tensor:
    """Within ±1/√d, as torch begins a linear layer of d inputs."""
    return (2 * torch.rand(*shape) - 1) / math.sqrt(max(d, 1))
