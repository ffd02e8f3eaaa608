"""Averages of weights over the steps of training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor


class Average(Protocol):
    """How weights are averaged."""

    @property
    def start(self) -> float:
        """The epoch from which on weights count."""
        ...

    def share(self, count: int) -> float:
        """How much the next weights count, after ``count`` earlier ones."""
        ...


@dataclass
class Averaged:
    """The average so far; ``kept`` has the numbers that are averaged (weights and running means),
    and the latest of those that are not (counters).
    """

    how: Average
    kept: dict[str, Tensor]
    count: int = 0

    def update(self, tensors: Mapping[str, Tensor], epochs: float) -> None:
        """Take the weights after a step in; ``epochs`` have passed."""
        import torch

        averaged = [name for name, tensor in tensors.items() if tensor.is_floating_point()]
        if waits := epochs <= self.how.start and self.count == 0:
            averaged = []
        followed = [name for name in tensors if name not in averaged]
        with torch.no_grad():
            if followed:
                torch._foreach_copy_(*self._pairs(followed, tensors))  # pyright: ignore[reportPrivateImportUsage] - as torch.optim calls it
            if not waits:
                share = self.how.share(self.count)
                torch._foreach_lerp_(*self._pairs(averaged, tensors), share)  # pyright: ignore[reportPrivateImportUsage]
                self.count += 1

    def _pairs(
        self, names: Sequence[str], tensors: Mapping[str, Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        return [self.kept[name] for name in names], [tensors[name].detach() for name in names]


def copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies without gradients."""
    return {name: t.detach().clone() for name, t in tensors.items()}


@dataclass(frozen=True)
class Ema:
    """Exponential moving average, w̄ ← w̄ + (1 − d)(w − w̄), d = min(decay, (1 + t)/(10 + t)) after t
    steps, so that the beginning is soon forgotten.

    Examples
    --------
    >>> [round(Ema(0.99).share(t), 3) for t in (0, 10, 10_000)]
    [0.9, 0.45, 0.01]
    """

    decay: float = 0.999
    start: float = 0.0

    def share(self, count: int) -> float:
        """1 − d."""
        return 1 - min(self.decay, (1 + count) / (10 + count))


@dataclass(frozen=True)
class Swa:
    """The mean of the weights after every step from epoch ``start`` on (P. Izmailov and others,
    Averaging weights leads to wider optima, 2018).

    Examples
    --------
    >>> [Swa(5.0).share(t) for t in (0, 1, 3)]
    [1.0, 0.5, 0.25]
    """

    start: float

    def share(self, count: int) -> float:
        """1/(count + 1)."""
        return 1 / (count + 1)


@contextmanager
def swapped(tensors: Mapping[str, Tensor], averaged: Averaged) -> Iterator[None]:
    """The tensors hold the average while the body runs."""
    import torch

    before = copied(tensors)
    with torch.no_grad():
        for name, value in averaged.kept.items():
            tensors[name].copy_(value)
    try:
        yield
    finally:
        with torch.no_grad():
            for name, value in before.items():
                tensors[name].copy_(value)
