"""Networks for images: what they are made of, and how a trained one becomes plain layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from surelearn.types import AnyArray, ImageShape

Kind = Literal["cnn", "mlp"]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What a network for images is made of.

    Attributes
    ----------
    kind : "cnn" or "mlp"
    shape : of an image: height, width, channels
    widths : channels of each stage, or units of each hidden layer
    depth : convolutions of each stage but the first, which has one
    outputs : classes
    """

    kind: Kind
    shape: ImageShape
    widths: tuple[int, ...]
    depth: int
    outputs: int


def trunk(layout: Layout) -> nn.Sequential:
    """Standardized images (n, channels, height, width) to class scores (n, outputs), with batch
    normalization before every GELU.

    A CNN has a stage per width: 3×3 convolutions, then max-pooling by 2, which halves the sides
    that still can be. Sides above 4 are averaged down to 4 at the end.

    Examples
    --------
    >>> layout = Layout(kind="cnn", shape=(28, 28, 1), widths=(32, 64, 128), depth=2, outputs=10)
    >>> network = trunk(layout)
    >>> [tuple(v.shape) for v in network.parameters() if v.ndim > 1]  # doctest: +NORMALIZE_WHITESPACE
    [(32, 1, 3, 3), (64, 32, 3, 3), (64, 64, 3, 3), (128, 64, 3, 3), (128, 128, 3, 3), (10, 1152)]
    >>> network(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """
    height, width, channels = layout.shape
    parts: list[nn.Module] = []
    if layout.kind == "mlp":
        size = height * width * channels
        parts.append(nn.Flatten())
        for units in layout.widths:
            parts += [nn.Linear(size, units, bias=False), nn.BatchNorm1d(units), nn.GELU()]
            size = units
        return nn.Sequential(*parts, nn.Linear(size, layout.outputs))
    for stage, into in enumerate(layout.widths):
        for _ in range(layout.depth if stage else 1):
            parts += [
                nn.Conv2d(channels, into, 3, padding=1, bias=False),
                nn.BatchNorm2d(into),
                nn.GELU(),
            ]
            channels = into
        halves = (2 if height > 1 else 1, 2 if width > 1 else 1)
        if max(halves) > 1:
            parts.append(nn.MaxPool2d(halves))
            height, width = height // halves[0], width // halves[1]
    if max(height, width) > 4:
        height, width = min(height, 4), min(width, 4)
        parts.append(nn.AdaptiveAvgPool2d((height, width)))
    return nn.Sequential(*parts, nn.Flatten(), nn.Linear(channels * height * width, layout.outputs))


def operations(layout: Layout) -> float:
    """Floating-point operations that training takes per image: a product and a sum for each
    product of a weight and a number, forward, and twice as many back.

    Examples
    --------
    >>> operations(Layout(kind="mlp", shape=(28, 28, 1), widths=(1024, 1024), depth=1, outputs=10))
    11169792.0
    """
    height, width, channels = layout.shape
    made = torch.empty(1, channels, height, width, device="meta")
    with torch.device("meta"):
        network = trunk(layout).eval()
    total = 0.0
    for part in network:
        made = part(made)
        if isinstance(part, nn.Conv2d | nn.Linear):
            total += 6.0 * made.numel() * part.weight[0].numel()
    return total


def hidden(network: nn.Sequential) -> tuple[str, ...]:
    """The names of the matrices between the first and the last, which Muon takes."""
    return tuple(name for name, value in network.named_parameters() if value.ndim > 1)[1:-1]


def folded(network: nn.Sequential) -> nn.Sequential:
    """The same function without batch normalization: each is an affine map once trained, and goes
    into the weights of the layer before it.
    """
    parts: list[nn.Module] = []
    for part in network.eval():
        before: Any = parts[-1] if parts else None
        if isinstance(part, nn.BatchNorm2d):
            parts[-1] = fuse_conv_bn_eval(before, part)
        elif isinstance(part, nn.BatchNorm1d):
            parts[-1] = fuse_linear_bn_eval(before, part)
        else:
            parts.append(part)
    return nn.Sequential(*parts).eval()


def of_rows(layout: Layout, body: nn.Sequential) -> nn.Sequential:
    """A network of flat rows (n, height·width·channels), the channels of a pixel side by side:
    the first convolution takes them apart and standardizes them; `standardize` sets how.
    """
    height, width, channels = layout.shape
    apart = nn.Conv2d(1, channels, (1, channels), stride=(1, channels))
    return nn.Sequential(nn.Unflatten(1, (1, height, width * channels)), apart, *body).eval()


def standardize(network: nn.Sequential, mean: Tensor, scale: Tensor) -> None:
    """Let a network `of_rows` begin with (pixel − mean)/scale, of each channel (channels,)."""
    apart: Any = network[1]
    with torch.no_grad():
        apart.weight.copy_(torch.diag(1 / scale)[:, None, None, :])
        apart.bias.copy_(-mean / scale)


def without_weights(layout: Layout) -> nn.Sequential:
    """The layers of a trained network, to be given their weights: nothing is drawn or computed."""
    with torch.device("meta"):
        parts: list[nn.Module] = []
        for part in trunk(layout):
            if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
                before: Any = parts[-1]
                size = before.weight.shape[0]
                before.bias = nn.Parameter(torch.empty(size))
            else:
                parts.append(part)
        return of_rows(layout, nn.Sequential(*parts))


def widths_of(kind: Kind, stated: Sequence[int] | None) -> tuple[int, ...]:
    """The widths, as stated or the usual ones."""
    if stated is not None:
        return tuple(int(width) for width in stated)
    return (32, 64, 128) if kind == "cnn" else (1024, 1024)


def images_of(rows: AnyArray, shape: ImageShape, device: torch.device) -> Tensor:
    """Flat rows as images (n, channels, height, width) on a device: bytes where they are bytes,
    else in single precision.
    """
    kind = np.uint8 if rows.dtype == np.uint8 else np.float32
    held = torch.from_numpy(np.require(rows, kind, ["C", "W"])).to(device)
    return held.view(len(rows), *shape).permute(0, 3, 1, 2).contiguous()


def standards_of(X: Tensor) -> tuple[Tensor, Tensor]:
    """The mean and the spread of each channel (channels,), in double precision on the way."""
    parts = [part.double() for part in X.split(4096)]
    count = X.shape[0] * X.shape[2] * X.shape[3]
    mean = torch.stack([part.sum((0, 2, 3)) for part in parts]).sum(0) / count
    about = [(part - mean[:, None, None]).square().sum((0, 2, 3)) for part in parts]
    scale = (torch.stack(about).sum(0) / count).sqrt()
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    return mean.float(), scale.float()
