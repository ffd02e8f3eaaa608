"""Scores and gradients of a torch module, by autograd; PyTorch is imported when a module is
given, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from surelearn.subject.forms import Closed, ModuleForm
from surelearn.subject.registry import Parts, describes


@describes("torch.nn:Module", subclasses=True)
def _module(model: Any) -> Parts:
    """Of whatever class: its outputs are what ``forward`` gives, and autograd goes back through
    it.
    """
    return Parts(form=Closed(ModuleForm(model), None, "outputs"))


def is_module(model: Any) -> bool:
    """Whether the model is a ``torch.nn.Module``, without importing torch."""
    return any(
        kind.__name__ == "Module" and kind.__module__.startswith("torch.nn")
        for kind in type(model).__mro__
    )


def takes_tokens(module: Any) -> bool:
    """Whether a torch module looks up whole numbers, as an embedding does."""
    return any(type(part).__name__ in ("Embedding", "EmbeddingBag") for part in module.modules())


def module_functions(
    module: Any, shape: tuple[int, ...] | None
) -> tuple[Callable[..., Any], Callable[..., Any], Any]:
    """``values(X)`` and ``pull(X)`` as a closed form has them, and the NumPy type the module
    computes in.

    Rows are (n, d), or of any shape that the module takes; ``shape`` is what it wants for one row
    where that is another. Whole numbers stay whole where the module looks tokens up
    (`takes_tokens`). Its mode (training or not) is put back.
    """
    import torch

    parameter = next(iter(module.parameters()), None)
    device = torch.device("cpu") if parameter is None else parameter.device
    dtype = (
        torch.float32 if parameter is None or not parameter.is_floating_point() else parameter.dtype
    )
    kind = np.float64 if dtype == torch.float64 else np.float32

    tokens = takes_tokens(module)

    def rows(X: Any) -> Any:
        if tokens and np.asarray(X).dtype.kind in "iu":
            tensor = torch.from_numpy(np.require(X, np.int64, ["C", "W"])).to(device)
        else:
            tensor = torch.from_numpy(np.require(X, kind, ["C", "W"])).to(device, dtype)
        return tensor if shape is None else tensor.reshape(len(tensor), *shape)

    def outputs(tensor: Any) -> Any:
        found = module(tensor)
        return found[:, None] if found.ndim == 1 else found

    def values(X: Any) -> Any:
        with torch.no_grad(), _evaluating(module):
            return outputs(rows(X)).cpu().numpy()

    def pull(X: Any) -> Any:
        inputs = rows(X)
        if not inputs.is_floating_point():
            raise ValueError("tokens have no gradient: no token lies between two others")
        inputs = inputs.requires_grad_(True)
        with torch.enable_grad(), _evaluating(module):
            found = outputs(inputs)

        def back(weights: Any) -> Any:
            given = torch.from_numpy(np.require(weights, kind, ["C", "W"])).to(device, dtype)
            (gradient,) = torch.autograd.grad(found, inputs, given)
            return gradient.reshape(len(gradient), -1).cpu().numpy()

        return found.detach().cpu().numpy(), back

    return values, pull, kind


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:
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
