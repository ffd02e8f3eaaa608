"""LeNet and AlexNet (course, Section 10), as torch modules."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def lenet(outputs: int = 10, *, radial: bool = False) -> nn.Sequential:
    """LeNet-5 for images 1 × 32 × 32 (Y. LeCun and others, Gradient-based learning applied to
    document recognition, 1998).

    6 @ 28², halved to 14², 16 @ 10², halved to 5², then 120, 84 and the output: 61,706 parameters
    with a linear output, which is how it is used today, and pooling without weights of its own.

    Parameters
    ----------
    radial : LeCun's output in place of a linear one, distances to fixed codes (`RadialOutput`)

    Examples
    --------
    >>> sum(p.numel() for p in lenet().parameters())
    61706
    """
    return nn.Sequential(
        nn.Conv2d(1, 6, 5), ScaledTanh(), nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5), ScaledTanh(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), ScaledTanh(),
        nn.Linear(120, 84), ScaledTanh(),
        RadialOutput(digit_codes()) if radial else nn.Linear(84, outputs),
    )  # fmt: skip


class ScaledTanh(nn.Module):
    """1.7159·tanh(2t/3), which is ±1 at ±1 (LeCun 1998, Appendix A)."""

    def forward(self, t: Tensor) -> Tensor:
        """Element by element."""
        return 1.7159 * torch.tanh(2 / 3 * t)


class RadialOutput(nn.Module):
    """The course's "Gaussian connection": y_i = Σ_j (x_j − w_ij)², the squared distance to the code
    of class i (LeCun 1998, Equation 7). The nearest code is the answer; codes are not trained.

    Examples
    --------
    >>> RadialOutput(torch.tensor([[1.0, 1.0], [1.0, -1.0]]))(torch.ones(1, 2)).tolist()
    [[0.0, 4.0]]
    """

    codes: Tensor

    def __init__(self, codes: Tensor) -> None:
        super().__init__()
        self.register_buffer("codes", codes)

    def forward(self, x: Tensor) -> Tensor:
        """(B, 84) to distances (B, classes)."""
        return ((x[:, None, :] - self.codes) ** 2).sum(dim=2)


def radial_loss(distances: Tensor, targets: Tensor, j: float = 1.0) -> Tensor:
    """Mean of y_target + ln(e⁻ʲ + Σ_i e^(−y_i)) over rows (LeCun 1998, Equation 9): the distance to
    the right code, and a push away from all others that never needs to be larger than j.
    """
    right = distances.gather(1, targets[:, None])[:, 0]
    others = torch.cat([-distances, torch.full_like(distances[:, :1], -j)], dim=1)
    return (right + torch.logsumexp(others, dim=1)).mean()


def digit_codes() -> Tensor:
    """(10, 84) of ±1: digits drawn on 7 × 12 as on a clock with seven segments. LeCun drew his
    codes by hand as small pictures; what matters is that they are pictures of the digits and lie
    apart.

    Examples
    --------
    >>> codes = digit_codes()
    >>> codes.shape, int((codes[0] != codes[8]).sum())
    (torch.Size([10, 84]), 3)
    """
    bars = {
        "top": (slice(0, 1), slice(2, 5)), "middle": (slice(6, 7), slice(2, 5)),
        "bottom": (slice(11, 12), slice(2, 5)),
        "upper left": (slice(1, 6), slice(0, 2)), "upper right": (slice(1, 6), slice(5, 7)),
        "lower left": (slice(7, 11), slice(0, 2)), "lower right": (slice(7, 11), slice(5, 7)),
    }  # fmt: skip
    dark = {
        0: ("middle",), 1: ("top", "middle", "bottom", "upper left", "lower left"),
        2: ("upper left", "lower right"), 3: ("upper left", "lower left"),
        4: ("top", "bottom", "lower left"), 5: ("upper right", "lower left"),
        6: ("upper right",), 7: ("middle", "bottom", "upper left", "lower left"), 8: (),
        9: ("lower left",),
    }  # fmt: skip
    codes = -torch.ones(10, 12, 7)
    for digit, off in dark.items():
        for name, place in bars.items():
            if name not in off:
                codes[(digit, *place)] = 1.0
    return codes.flatten(1)


def alexnet(outputs: int = 1000, *, groups: int = 1) -> nn.Sequential:
    """AlexNet for images 3 × 224 × 224 (A. Krizhevsky, I. Sutskever and G. Hinton 2012).

    96 kernels of 11² at stride 4 make 96 @ 55²: that needs padding 2, or an image of 227 (neither
    the course nor the paper says so). ``groups=2`` is the network of 2012, whose layers 2, 4 and 5
    see half of the channels each, on two graphics cards: 60,965,224 parameters; ungrouped
    62,378,344.

    Examples
    --------
    >>> with torch.device("meta"):  # shapes without numbers
    ...     sum(p.numel() for p in alexnet(groups=2).parameters())
    60965224
    """
    return nn.Sequential(
        nn.Conv2d(3, 96, 11, stride=4, padding=2), nn.ReLU(), _normalized(), nn.MaxPool2d(3, 2),
        nn.Conv2d(96, 256, 5, padding=2, groups=groups), nn.ReLU(), _normalized(), nn.MaxPool2d(3, 2),
        nn.Conv2d(256, 384, 3, padding=1), nn.ReLU(),
        nn.Conv2d(384, 384, 3, padding=1, groups=groups), nn.ReLU(),
        nn.Conv2d(384, 256, 3, padding=1, groups=groups), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Flatten(),
        nn.Dropout(0.5), nn.Linear(9216, 4096), nn.ReLU(),
        nn.Dropout(0.5), nn.Linear(4096, 4096), nn.ReLU(),
        nn.Linear(4096, outputs),
    )  # fmt: skip


def _normalized() -> nn.LocalResponseNorm:
    """The paper's response normalization (its Section 3.3; torch divides α by the five channels)."""
    return nn.LocalResponseNorm(5, alpha=5e-4, beta=0.75, k=2.0)
