"""A small torch module as an objective for attacks on training rows, differentiated by
autograd, in double precision.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from surelearn.attacks.poison_allowed import Array
from surelearn.attacks.poison_objectives import VictimObjective

if TYPE_CHECKING:
    from torch import Tensor, nn


class ModuleObjective(VictimObjective):
    """The mean loss of a copy of a torch module, in evaluation mode, with penalty λ‖w‖² on all
    parameters.

    Parameters
    ----------
    module : takes rows (n, d) (or ``shape``), gives logits (n, c) or, for squared loss, one number
        per row
    loss : "logistic" (cross-entropy, labels 0 … c − 1), "squared", or a function of outputs and
        targets giving one per row
    regularization : λ
    shape : of one row, for a module that does not take vectors
    damping : added to the Hessian, which need not be positive, where it is inverted
    iterations : the most L-BFGS steps of one fit
    """

    def __init__(
        self,
        module: nn.Module,
        loss: str | Callable[[Any, Any], Any] = "logistic",
        *,
        regularization: float = 0.0,
        shape: tuple[int, ...] | None = None,
        damping: float = 0.01,
        iterations: int = 200,
    ) -> None:
        if not (callable(loss) or loss in ("logistic", "squared")):
            raise ValueError(f"loss must be 'logistic', 'squared' or a function, not {loss!r}")
        self.module = copy.deepcopy(module).double().cpu().eval()
        self.shape, self.regularization, self.damping, self.iterations = (
            shape,
            regularization,
            damping,
            iterations,
        )
        self._loss = _named(loss) if isinstance(loss, str) else loss
        self._shapes = {name: part.shape for name, part in self.module.named_parameters()}

    def start(self, d: int) -> Array:  # noqa: ARG002 - a module knows its inputs
        """The parameters that the module was given with."""
        import torch

        return torch.nn.utils.parameters_to_vector(self.module.parameters()).detach().numpy().copy()

    def decision(self, w: Array, X: Array) -> Array:
        """Outputs of the module with parameters w."""
        import torch

        with torch.no_grad():
            return self._outputs(torch.from_numpy(w), torch.from_numpy(X)).numpy()

    def losses(self, w: Array, X: Array, y: np.ndarray) -> Array:
        """ℓ of every row."""
        import torch

        with torch.no_grad():
            return self._losses(*_tensors(w, X, y)).numpy()

    def gradients(self, w: Array, X: Array, y: np.ndarray) -> Array:
        """∇_w ℓ of every row, (n, p)."""
        import torch

        def one(w: Tensor, x: Tensor, label: Tensor) -> Tensor:
            return self._losses(w, x[None], label[None])[0]

        return (
            torch.func.vmap(torch.func.grad(one), (None, 0, 0))(*_tensors(w, X, y)).detach().numpy()
        )

    def gradient(self, w: Array, X: Array, y: np.ndarray, weights: Array | None = None) -> Array:
        """Mean of ∇_w ℓ, or its sum with ``weights``."""
        import torch

        theta, rows, labels = _tensors(w, X, y, follow="w")
        losses = self._losses(theta, rows, labels)
        total = losses.mean() if weights is None else torch.from_numpy(weights) @ losses
        return torch.autograd.grad(total, theta)[0].numpy()

    def pull(self, w: Array, X: Array, y: np.ndarray, v: Array) -> Array:
        """∇_x ⟨v, ∇_w ℓ⟩ of every row, (n, d)."""
        import torch

        theta, rows, labels = _tensors(w, X, y, follow="wX")
        (slope,) = torch.autograd.grad(
            self._losses(theta, rows, labels).sum(), theta, create_graph=True
        )
        return torch.autograd.grad(slope @ torch.from_numpy(v), rows)[0].numpy()

    def hessian_product(self, w: Array, X: Array, y: np.ndarray, v: Array) -> Array:
        """The mean Hessian of ℓ times v."""
        import torch

        theta, rows, labels = _tensors(w, X, y, follow="w")
        (slope,) = torch.autograd.grad(
            self._losses(theta, rows, labels).mean(), theta, create_graph=True
        )
        return torch.autograd.grad(slope @ torch.from_numpy(np.ascontiguousarray(v)), theta)[
            0
        ].numpy()

    def _outputs(self, theta: Tensor, rows: Tensor) -> Tensor:
        import torch

        parameters, begin = {}, 0
        for name, shape in self._shapes.items():
            parameters[name] = theta[begin : begin + shape.numel()].reshape(shape)
            begin += shape.numel()
        inputs = rows if self.shape is None else rows.reshape(len(rows), *self.shape)
        return torch.func.functional_call(self.module, parameters, (inputs,))

    def _losses(self, theta: Tensor, rows: Tensor, labels: Tensor) -> Tensor:
        return self._loss(self._outputs(theta, rows), labels)


def _named(loss: str) -> Callable[[Any, Any], Any]:
    """`surelearn.losses.log_losses` and `SQUARED`, for torch to differentiate."""

    def logistic(outputs: Tensor, labels: Tensor) -> Tensor:
        import torch

        return torch.nn.functional.cross_entropy(outputs, labels.long(), reduction="none")

    def squared(outputs: Tensor, labels: Tensor) -> Tensor:
        return (outputs.reshape(labels.shape) - labels) ** 2

    return logistic if loss == "logistic" else squared


def _tensors(w: Array, X: Array, y: np.ndarray, follow: str = "") -> tuple[Any, Any, Any]:
    """Parameters, rows and labels as tensors; those named in ``follow`` are differentiated."""
    import torch

    theta, rows = (
        torch.tensor(np.asarray(part, dtype=float), requires_grad=n in follow)
        for part, n in ((w, "w"), (X, "X"))
    )
    return theta, rows, torch.tensor(np.asarray(y, dtype=float))
