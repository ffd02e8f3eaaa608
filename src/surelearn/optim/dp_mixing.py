"""Whether a row's loss, or its gradient, depends on other rows of the batch: then clipping row
by row bounds nothing.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from surelearn.lacking import Lacking
from surelearn.optim.dp_gradients import PerExample, checked_losses, total_of, trainable

if TYPE_CHECKING:
    from torch import Tensor, nn

SEPARATE = (
    "module and loss treat each row by itself; rows were compared with themselves alone, which is"
    " no proof"
)
_RANDOM = (
    "module or loss draws random numbers of its own, so that nobody can see whether it mixes"
    " examples: use layers nn.Dropout in place of functional.dropout or of a layer's own dropout=,"
    " and leave out other noise"
)
_SEPARATION = "separation of rows"
_TRIED = 8  # rows that are compared
_MOST = 4096  # rows of the largest batch that is tried

Seen = tuple[
    "Tensor", "Tensor", "list[Tensor]"
]  # outputs (B, …), losses (B,), gradients by parameter


def refuse_mixing(
    module: nn.Module, loss: PerExample, X: Tensor, y: Tensor, expected: float
) -> None:
    """Refuse a module or a loss that gives a row another value, or another gradient, among others
    than alone.

    Some rows are compared, in the mode in which the module will be trained, in a small batch and in
    one as large as those to come.

    Parameters
    ----------
    loss : of outputs and targets, one number an example
    expected : size of the batches to come, which may be larger by three standard deviations
    """
    from torch import nn

    for name, child in module.named_modules():
        if isinstance(child, nn.modules.batchnorm._BatchNorm):
            raise ValueError(
                f"module.{name} is a {type(child).__name__}, which mixes examples: use GroupNorm or"
                " LayerNorm"
            )
    few = min(_TRIED, len(X))
    size = max(few, min(len(X), _MOST, math.ceil(expected + 3 * math.sqrt(expected))))
    # the first rows of a table are often of one class
    rows = np.random.default_rng(0).permutation(len(X))[:size]
    module, X, y = _in_double(module, loss, X[rows], y[rows])
    tried = _ready(module)
    before = [buffer.clone() for buffer in tried.buffers()]
    alone = _alone(tried, loss, X, y, few)
    for count in {few, size}:
        if mixes := _differ(_seen(tried, loss, X[:count], y[:count], range(few)), alone):
            again = _differ(_alone(tried, loss, X, y, few), alone)
            raise ValueError(_RANDOM if again else mixes.reason)
    if not all((old == new).all() for old, new in zip(before, tried.buffers(), strict=True)):
        raise ValueError(
            "module keeps statistics of the rows in a buffer, without noise: use layers that keep"
            " none"
        )


def _ready(module: nn.Module) -> nn.Module:
    """A copy without dropout, so that two passes agree."""
    from torch import nn

    tried = copy.deepcopy(module)
    for child in tried.modules():
        if isinstance(child, nn.modules.dropout._DropoutNd):
            child.eval()
    return tried


def _in_double(
    module: nn.Module, loss: PerExample, X: Tensor, y: Tensor
) -> tuple[nn.Module, Tensor, Tensor]:
    """In double precision, where all of it runs: else rounding may switch a unit on, and its
    gradient with it.
    """
    try:
        tried, X2, y2 = (
            copy.deepcopy(module).double(),
            *(v.double() if v.is_floating_point() else v for v in (X, y)),
        )
        loss(_ready(tried)(X2[:1]), y2[:1])
    except (RuntimeError, TypeError):
        return module, X, y
    return tried, X2, y2


def _seen(module: nn.Module, loss: PerExample, X: Tensor, y: Tensor, which: Sequence[int]) -> Seen:
    """Outputs and losses of the first rows, and the gradient of a sum of these losses with
    weights of their own.
    """
    import torch

    outputs, parameters = module(X), list(trainable(module).values())
    losses = checked_losses(loss(outputs, y), len(X))[: len(which)]
    # unequal weights, so that an example that took the place of another one shows in the sum
    weights = torch.tensor(
        [math.cos(1.0 + i) for i in which], dtype=losses.dtype, device=losses.device
    )
    grads = torch.autograd.grad(weights @ losses, parameters, allow_unused=True)
    kept = [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, grads, strict=True)]
    return outputs[: len(which)].detach(), losses.detach(), kept


def _together(parts: list[Seen]) -> Seen:
    import torch

    outputs, losses, grads = zip(*parts, strict=True)
    summed = [total_of(list(each)) for each in zip(*grads, strict=True)]
    return torch.cat(outputs), torch.cat(losses), summed


def _alone(module: nn.Module, loss: PerExample, X: Tensor, y: Tensor, few: int) -> Seen:
    return _together([_seen(module, loss, X[i : i + 1], y[i : i + 1], [i]) for i in range(few)])


def _differ(among: Seen, alone: Seen) -> Lacking | None:
    """What differs of rows among others and alone; None if nothing does."""
    import torch

    tolerance = min(0.05, max(1e-4, 1e4 * torch.finfo(alone[1].dtype).eps))
    near = {"rtol": tolerance, "atol": tolerance / 10, "equal_nan": True}
    if among[0].shape != alone[0].shape or not torch.allclose(among[0], alone[0], **near):
        return Lacking(
            _SEPARATION,
            "module gives other outputs for rows together than for each alone: it mixes examples",
        )
    if not torch.allclose(among[1], alone[1], **near):
        return Lacking(
            _SEPARATION,
            "loss gives other values for rows together than for each alone: it mixes examples",
        )
    off, size = (
        math.sqrt(sum(float(part.double().square().sum()) for part in parts))
        for parts in ([a - b for a, b in zip(among[2], alone[2], strict=True)], alone[2])
    )
    if math.isfinite(off) and off > tolerance * (size + 0.1):
        return Lacking(
            _SEPARATION,
            "rows have other gradients together than each alone: module or loss mixes examples",
        )
    return None


__all__ = ["SEPARATE", "refuse_mixing"]
