"""Steps recorded as CUDA graphs: one launch for all kernels of a step, and no Python between."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

WARM = 3  # calls before the recording, in which libraries choose and keep what they work with


class Graphed:
    """A function of one tensor of the same shape at every call, recorded after a few calls.

    All that the function reads and writes must stay where it is: parameters, moments and rates are
    changed in place. What it returns is overwritten by the next call.

    Parameters
    ----------
    function : from a tensor on a CUDA device to a tensor or None
    """

    def __init__(self, function: Callable[[Tensor], Tensor | None]) -> None:
        import torch

        self.function = function
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.given: Tensor | None = None
        self.returned: Tensor | None = None

    def __call__(self, given: Tensor) -> Tensor | None:
        """What the function returns; calls after the third are replayed."""
        import torch

        self.calls += 1
        if self.graph is not None and self.given is not None:
            if given.shape != self.given.shape:
                raise ValueError(
                    f"a graph of batches {tuple(self.given.shape)} cannot take one of"
                    f" {tuple(given.shape)}: let all have the same shape, or set graphed=False"
                )
            self.given.copy_(given)
            self.graph.replay()
            return self.returned
        if self.calls <= WARM:
            # recording happens on another stream than the usual one, and so must these calls
            aside = torch.cuda.Stream()
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                returned = self.function(given)
            torch.cuda.current_stream().wait_stream(aside)
            return returned
        self.given = given.clone()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.returned = self.function(self.given)
        graph.replay()
        self.graph = graph
        return self.returned
