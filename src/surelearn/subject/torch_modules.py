"""Scores and gradients of a torch module, by autograd; PyTorch is imported when a module is
given, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from surelearn.subject.forms import Closed, ModuleForm, Pull
from surelearn.subject.registry import Parts, class_of, describes
from surelearn.types import AnyArray, Array, Model

if TYPE_CHECKING:
    import torch
    from torch import nn


@describes("torch.nn:Module", subclasses=True)
def _module(model: Model) -> Parts:
    """Of whatever class: its outputs are what ``forward`` gives, and autograd goes back through
    it.
    """
    return Parts(form=Closed(ModuleForm(model), None, "outputs"))


def is_module(model: Model) -> bool:
    """Whether the model is a ``torch.nn.Module``, without importing torch."""
    return any(
        f"{base.__module__}.{base.__qualname__}" == "torch.nn.modules.module.Module"
        for base in class_of(model).__mro__
    )


def takes_tokens(module: nn.Module) -> bool:
    """Whether a torch module looks up whole numbers, as an embedding does."""
    return any(type(part).__name__ in ("Embedding", "EmbeddingBag") for part in module.modules())


class ModuleFunctions(NamedTuple):
    """``values(X)`` and ``pull(X)`` as a closed form has them, the norms of its parameters'
    gradients, row by row, and the NumPy type the module computes in.
    """

    values: Callable[[AnyArray], Array]
    pull: Callable[[AnyArray], Pull]
    dtype: npt.DTypeLike
    parameter_norms: Callable[[AnyArray, Array, Sequence[torch.Tensor]], list[list[float]]]


def module_functions(module: nn.Module, shape: tuple[int, ...] | None = None) -> ModuleFunctions:
    """A torch module as functions of rows that are arrays.

    Rows are (n, d), or of any shape that the module takes; ``shape`` is what it wants for one row
    where that is another. Whole numbers stay whole where the module looks tokens up
    (`takes_tokens`). Its mode (training or not) is put back.
    """
    import torch

    # device and type are those of the first parameter
    parameter = next(iter(module.parameters()), None)
    device = torch.device("cpu") if parameter is None else parameter.device
    dtype = (
        torch.float32 if parameter is None or not parameter.is_floating_point() else parameter.dtype
    )
    kind = np.float64 if dtype == torch.float64 else np.float32

    tokens = takes_tokens(module)

    def rows(X: AnyArray) -> torch.Tensor:
        if tokens and np.asarray(X).dtype.kind in "iu":
            tensor = _tensor(X, np.int64).to(device)
        else:
            tensor = _tensor(X, kind).to(device, dtype)
        return tensor if shape is None else tensor.reshape(len(tensor), *shape)

    def outputs(tensor: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = module(tensor)
        return found[:, None] if found.ndim == 1 else found

    def values(X: AnyArray) -> Array:
        with torch.no_grad(), _evaluating(module):
            return outputs(rows(X)).cpu().numpy()

    def pull(X: AnyArray) -> Pull:
        inputs = rows(X)
        if not inputs.is_floating_point():
            raise ValueError("tokens have no gradient: no token lies between two others")
        inputs = inputs.requires_grad_(True)
        with torch.enable_grad(), _evaluating(module):
            found = outputs(inputs)

        def back(weights: Array) -> Array:
            given = _tensor(weights, kind).to(device, dtype)
            gradient: torch.Tensor = torch.autograd.grad(found, inputs, given)[0]
            return gradient.reshape(len(gradient), -1).cpu().numpy()

        return found.detach().cpu().numpy(), back

    def parameter_norms(
        X: AnyArray, weights: Array, parameters: Sequence[torch.Tensor]
    ) -> list[list[float]]:
        inputs, given = rows(X), _tensor(weights, kind).to(device, dtype)
        wanted = [p for p in parameters if p.requires_grad]
        found: list[list[float]] = []
        with torch.enable_grad(), _evaluating(module):
            for i in range(len(inputs)):
                out = outputs(inputs[i : i + 1])
                made = torch.autograd.grad(
                    out, wanted, given[i : i + 1], allow_unused=True, materialize_grads=True
                )
                norms = {
                    id(p): float(g.square().sum().sqrt()) for p, g in zip(wanted, made, strict=True)
                }
                found.append([norms.get(id(p), 0.0) for p in parameters])
        return found

    return ModuleFunctions(values, pull, kind, parameter_norms)


def _tensor(values: AnyArray, kind: npt.DTypeLike) -> torch.Tensor:
    """The array as a tensor, copied where torch could not write to it."""
    import torch

    made = np.require(values, kind, ["C", "W"])
    return torch.from_numpy(made)  # pyright: ignore[reportUnknownMemberType] - torch has no type for it


@contextmanager
def _evaluating(module: nn.Module) -> Generator[None]:
    if not any(part.training for part in module.modules()):
        yield
        return
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
