"""Which rows become centers, sample and held-out rows, and the training rows of a stream as
tensors, pass after pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from surelearn.kernel.streams import RowStream
from surelearn.kernel.torch_functions import Evaluator
from surelearn.types import Array

if TYPE_CHECKING:
    import torch

Progress = Callable[[int, int], None]
_CHUNK = 2.0**25  # bytes of the rows read at a time
_HELD = 20_000  # the most rows held out: they stay in memory
_SAMPLING = 3.0  # passes that the sample may cost


@dataclass(frozen=True, eq=False)
class Drawn:
    """The centers, the rows of the sample with their targets, whether these are all rows, and
    the held-out rows.
    """

    centers: np.ndarray
    sample: tuple[np.ndarray, Array]
    everything: bool
    held: npt.NDArray[np.int64]
    validation: tuple[np.ndarray, Array] | None


def draw(
    stream: RowStream,
    centers: int | np.ndarray,
    sample: int | None,
    validation_fraction: float | None,
    rng: np.random.RandomState,
) -> Drawn:
    """Draw rows, all different: first those held out, then the centers unless they are given,
    then the sample.
    """
    given = None if isinstance(centers, (int, np.integer)) else np.asarray(centers)
    if given is not None and (
        given.ndim != 2
        or given.shape[1] != stream.d
        or not np.isfinite(given).all()
        or not len(given)
    ):
        raise ValueError(
            f"centers must be a number or finite rows (p, {stream.d}), not an array of shape"
            f" {given.shape}"
        )
    if given is None and centers < 1:  # pyright: ignore[reportOperatorIssue]
        raise ValueError(f"centers must be at least 1, not {centers}")
    held = 0
    if validation_fraction is not None:
        held = min(stream.n - 1, _HELD, math.ceil(validation_fraction * stream.n))
    n = stream.n - held
    own = 0 if given is not None else min(n, int(centers))  # pyright: ignore[reportArgumentType]
    p = own if given is None else len(given)
    s = min(n, _worth(n, stream.d, p) if sample is None else sample)
    everything = n <= s + own
    numbers = _distinct(rng, stream.n, stream.n if everything else held + own + s)
    apart, chosen = np.sort(numbers[:held]), np.sort(numbers[held : held + own])
    sampled = np.sort(numbers[held:] if everything else numbers[held + own :])
    rows = stream.take(chosen)[0] if given is None else np.ascontiguousarray(given)
    return Drawn(
        rows, stream.take(sampled), everything, apart, stream.take(apart) if held else None
    )


def _worth(n: int, d: int, p: int) -> int:
    """How many rows to sample: from p to 4p, 2p² operations each, beside passes of n·p·(2d +
    200).
    """
    return max(p, min(4 * p, int(_SAMPLING * n * (2 * d + 200) / (2 * p))))


def _distinct(rng: np.random.RandomState, n: int, count: int) -> npt.NDArray[np.int64]:
    """``count`` different numbers below n, in random order, without n numbers in memory where
    count is far below.
    """
    if 4 * count > n:
        return rng.permutation(n)[:count]
    found = np.unique(rng.randint(0, n, size=count, dtype=np.int64))
    while len(found) < count:
        found = np.union1d(found, rng.randint(0, n, size=count - len(found), dtype=np.int64))
    return rng.permutation(found)


class StreamedRows:
    """The training rows and scaled targets of a stream as tensors, a chunk at a time; kept on
    the device where they fit.
    """

    def __init__(
        self,
        stream: RowStream,
        evaluator: Evaluator,
        held: npt.NDArray[np.int64],
        scale: float,
        budget: float,
        passes: int,
        progress: Progress | None,
    ) -> None:
        self._stream, self._evaluator, self._held, self._scale = stream, evaluator, held, scale
        self.n = stream.n - len(held)
        self._size = int(min(max(256.0, _CHUNK / (8 * stream.d)), 65_536.0))
        self.kept = (
            stream.n * (stream.d + stream.outputs) * evaluator.points.element_size() <= 0.2 * budget
        )
        self._kept: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._progress, self._visited, self._total = progress, 0, passes * self.n

    def chunks(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """One pass."""
        for rows, targets in self._kept or self._read():
            yield rows, targets
            self._visited += len(rows)
            if self._progress is not None:
                self._progress(self._visited, self._total)

    def _read(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        kept, start = [], 0
        for X, Y in self._stream.chunks(self._size):
            apart = self._held[slice(*np.searchsorted(self._held, (start, start + len(X))))] - start
            start += len(X)
            if len(apart):
                X, Y = np.delete(X, apart, axis=0), np.delete(Y, apart, axis=0)
            chunk = self._evaluator.rows(X), self.targets(Y)
            if self.kept:
                kept.append(chunk)
            yield chunk
        self._kept = kept

    def targets(self, Y: Array) -> torch.Tensor:
        """Scaled targets on the device."""
        import torch

        return torch.from_numpy(Y / self._scale).to(self._evaluator.device, self._evaluator.dtype)
