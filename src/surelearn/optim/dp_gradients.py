"""Sums of clipped per-example gradients of a torch module, in closed form where its layers allow,
else by ``torch.func``.

For a linear layer used once on inputs (B, d) an example's gradient is b·aᵀ, with a its input and b
the gradient at its output: its norm is ‖a‖‖b‖, and the clipped sum Σ c_i·b_i·a_iᵀ is one matrix
product (I. Goodfellow, 2015; X. Li and others, ICLR 2022). On sequences and in convolutions the
same holds summed over positions, where ‖a‖‖b‖ would be wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from surelearn.lacking import Lacking

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.utils.hooks import RemovableHandle

PerExample = Callable[["Tensor", "Tensor"], "Tensor"]  # outputs, targets -> losses, (B,)
Sums = dict["Tensor", "Tensor"]  # by parameter, each of its shape
_FORM = "closed form of clipped gradients"
_NEVER = 1e30  # a norm to which nothing is clipped
_NUMBERS = 2**25  # at most so many numbers of per-example gradients at once


@dataclass
class Layer:
    """A layer whose per-example gradients have a closed form, and what went through it in this
    batch.
    """

    module: nn.Linear | nn.Conv2d
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)

    def watch(self) -> RemovableHandle:
        """Remember inputs and outputs from now on; returns the handle that ends it."""

        def remember(_: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            self.inputs.append(inputs[0].detach())
            self.outputs.append(output)

        return self.module.register_forward_hook(remember)

    def forget(self) -> None:
        """Make ready for the next batch."""
        self.inputs.clear()
        self.outputs.clear()


LayerPass = tuple[Layer, "Tensor", "Tensor"]  # a layer, its inputs, the gradients at its outputs


class ClosedForm:
    """Clipped sums from inputs and output gradients of linear and convolutional layers: one
    forward, one backward pass.

    ``lacking`` says why a module has no such form; None if it has.
    """

    def __init__(self, module: nn.Module, loss: PerExample) -> None:
        self.module, self.loss = module, loss
        self.parameters = trainable(module)
        self.layers = [layer for child in module.modules() if (layer := _layer(child)) is not None]
        covered = [id(p) for layer in self.layers for p in _own(layer.module)]
        self.lacking: Lacking | None = None
        if len(covered) != len(set(covered)) or set(covered) != {
            id(p) for p in self.parameters.values()
        }:
            self.lacking = Lacking(
                _FORM,
                "it has parameters outside of linear and convolutional layers, or shares them",
            )
        self._handles = [layer.watch() for layer in self.layers] if self.lacking is None else []

    def close(self) -> None:
        """Take the hooks off."""
        for handle in self._handles:
            handle.remove()
        for layer in self.layers:
            layer.forget()

    def norms(self, X: Tensor, y: Tensor) -> Tensor:
        """‖g_i‖ for each example, (B,)."""
        return total_of([_squares_keeping(*part)[0] for part in self._known(X, y)]).sqrt()

    def clipped_sum(self, X: Tensor, y: Tensor, clip: float) -> Sums:
        """Σ g_i·min(1, C/‖g_i‖) by parameter."""
        return _clipped(self._known(X, y), clip)

    def _known(self, X: Tensor, y: Tensor) -> list[LayerPass]:
        """The layers' parts of gradients, for a module that has shown that it has them."""
        parts = self.parts(X, y)
        if isinstance(parts, Lacking):
            raise ValueError(f"module must use its layers alike in every batch: {parts.reason}")
        return parts

    def parts(self, X: Tensor, y: Tensor) -> list[LayerPass] | Lacking:
        """Each layer with its inputs and the gradients at its outputs; lacking where a layer was
        not used exactly once.
        """
        import torch

        for layer in self.layers:
            layer.forget()
        losses = checked_losses(self.loss(self.module(X), y), len(X))
        if any(len(layer.outputs) != 1 for layer in self.layers):
            return Lacking(_FORM, "a layer was used several times, or not at all")
        grads = torch.autograd.grad(losses.sum(), [layer.outputs[0] for layer in self.layers])
        return [
            (layer, *_flat(layer, grad)) for layer, grad in zip(self.layers, grads, strict=True)
        ]


class Vectorized:
    """Clipped sums by ``torch.func.vmap`` of the gradient, for any module that ``torch.func``
    can run.
    """

    def __init__(self, module: nn.Module, loss: PerExample) -> None:
        self.module, self.loss = module, loss
        self.parameters = trainable(module)
        self.size = sum(p.numel() for p in self.parameters.values())

    def close(self) -> None:
        """Nothing to take off."""

    def gradients(self, X: Tensor, y: Tensor) -> dict[str, Tensor]:
        """Each example's gradient by parameter, (B, …)."""
        from torch.func import functional_call, grad, vmap

        fixed = {
            n: p.detach() for n, p in self.module.named_parameters() if n not in self.parameters
        }
        fixed |= dict(self.module.named_buffers())

        def one(parameters: dict[str, Tensor], x: Tensor, target: Tensor) -> Tensor:
            output = functional_call(self.module, (parameters, fixed), (x[None],))
            return checked_losses(self.loss(output, target[None]), 1)[0]

        values = {name: p.detach() for name, p in self.parameters.items()}
        return vmap(grad(one), in_dims=(None, 0, 0), randomness="different")(values, X, y)

    def norms(self, X: Tensor, y: Tensor) -> Tensor:
        """‖g_i‖ for each example."""
        return total_of(
            [g.flatten(1).square().sum(1) for g in self.gradients(X, y).values()]
        ).sqrt()

    def clipped_sum(self, X: Tensor, y: Tensor, clip: float) -> Sums:
        """Σ g_i·min(1, C/‖g_i‖) by parameter, some examples at a time."""
        import torch

        at_once = max(1, _NUMBERS // max(1, self.size))
        sums: Sums = {}
        for start in range(0, len(X), at_once):
            grads = self.gradients(X[start : start + at_once], y[start : start + at_once])
            norms = total_of([g.flatten(1).square().sum(1) for g in grads.values()]).sqrt()
            usable = norms.isfinite()
            factors = _without(clip / norms.clamp(min=clip), usable)
            for name, each in grads.items():
                part = torch.tensordot(factors, _without(each, usable), 1)
                p = self.parameters[name]
                sums[p] = sums[p] + part if p in sums else part
        return sums


def trainable(module: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that are to be learned, by name."""
    found = {name: p for name, p in module.named_parameters() if p.requires_grad}
    if not found:
        raise ValueError("module must have a parameter that requires a gradient")
    return found


def checked_losses(losses: Tensor, count: int) -> Tensor:
    """One loss an example, or a refusal."""
    if tuple(losses.shape) != (count,):
        raise ValueError(
            f"loss must return one number for each of {count} examples, not shape"
            f" {tuple(losses.shape)}"
        )
    return losses


def total_of(parts: list[Tensor]) -> Tensor:
    """The sum of tensors of one shape."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _own(module: nn.Module) -> list[nn.Parameter]:
    return [p for p in module.parameters(recurse=False) if p.requires_grad]


def _layer(module: nn.Module) -> Layer | None:
    """A layer with a closed form and something to learn."""
    from torch import nn

    if not _own(module):
        return None
    if type(module) is nn.Linear:
        return Layer(module)
    if type(module) is not nn.Conv2d or module.groups != 1 or module.padding_mode != "zeros":
        return None
    return None if isinstance(module.padding, str) else Layer(module)


def _flat(layer: Layer, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs and output gradients: (B, d) and (B, k), or (B, d, T) and (B, k, T) with T
    positions.
    """
    from torch import nn
    from torch.nn.functional import unfold

    a = layer.inputs[0]
    m = layer.module
    if isinstance(m, nn.Conv2d):
        padding = (0, 0) if isinstance(m.padding, str) else m.padding  # `_layer` takes no words
        return unfold(a, m.kernel_size, m.dilation, padding, m.stride), grad.flatten(2)
    if a.dim() <= 2:
        return a, grad
    return a.flatten(1, -2).transpose(1, 2), grad.flatten(1, -2).transpose(1, 2)


def _clipped(parts: list[LayerPass], clip: float) -> Sums:
    """Σ g_i·min(1, C/‖g_i‖) by parameter, from the layers' parts of the gradients."""
    kept = [_squares_keeping(*part) for part in parts]
    squares = total_of([squares for squares, _ in kept])  # (B,)
    usable, factors = squares.isfinite(), clip / squares.sqrt().clamp(min=clip)  # (B,), (B,)
    sums: Sums = {}
    for (layer, a, b), (_, each) in zip(parts, kept, strict=True):
        a, b, weights = (_without(values, usable) for values in (a, b, factors))
        sums |= _weighted(layer, a, b, None if each is None else _without(each, usable), weights)
    return sums


def _squares_keeping(layer: Layer, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor | None]:
    """‖g_i‖² of this layer's parameters, and the weights' per-example gradients where they were
    formed.
    """
    import torch

    weight, bias = (
        layer.module.weight.requires_grad,
        layer.module.bias is not None and layer.module.bias.requires_grad,
    )
    each = None
    if a.dim() == 2:
        out = torch.linalg.vector_norm(b, dim=1).square_()
        inside = torch.linalg.vector_norm(a, dim=1).square_() if weight else 0.0
        return out * (inside + 1.0 if bias else inside), each
    squares = b.new_zeros(len(b))
    if weight and a.shape[1] * b.shape[1] <= a.shape[2] ** 2:
        each = torch.bmm(b, a.transpose(1, 2)).flatten(1)
        squares = squares + each.square().sum(1)
    elif weight:
        inner = (
            (torch.bmm(a.transpose(1, 2), a) * torch.bmm(b.transpose(1, 2), b))
            .sum((1, 2))
            .clamp_(min=0)
        )
        # the terms may cancel
        rounding = 8 * torch.finfo(a.dtype).eps * (a.shape[1] + b.shape[1] + a.shape[2])
        squares = squares + inner + rounding * a.square().sum((1, 2)) * b.square().sum((1, 2))
    return squares + b.sum(2).square().sum(1) if bias else squares, each


def _without(values: Tensor, usable: Tensor) -> Tensor:
    """Zeros for examples whose gradient is not finite: they count as having none."""
    import torch

    if bool(usable.all()):
        return values
    return torch.where(usable.view(-1, *[1] * (values.dim() - 1)), values, torch.zeros_like(values))


def _weighted(layer: Layer, a: Tensor, b: Tensor, each: Tensor | None, factors: Tensor) -> Sums:
    """Σ c_i·g_i for weight and bias."""
    import torch

    weight, bias = layer.module.weight, layer.module.bias
    scaled = b * factors.view(-1, *[1] * (b.dim() - 1))
    sums: Sums = {}
    if weight.requires_grad:
        if each is not None:
            total = factors @ each
        elif a.dim() == 2:
            total = scaled.T @ a
        else:
            total = torch.einsum("bkt,bdt->kd", scaled, a)
        sums[weight] = total.view(weight.shape)
    if bias is not None and bias.requires_grad:
        sums[bias] = scaled.sum(0) if b.dim() == 2 else scaled.sum((0, 2))
    return sums


def choose(
    module: nn.Module, loss: PerExample, X: Tensor, y: Tensor
) -> tuple[ClosedForm | Vectorized, str]:
    """The closed form if it gives the gradient that autograd gives on these few rows, else
    `Vectorized`; and which.
    """
    closed = ClosedForm(module, loss)
    was_training = module.training
    module.eval()  # without dropout, so that two passes agree
    try:
        lacking = _differs(closed, X, y) if closed.lacking is None else closed.lacking
    finally:
        module.train(was_training)
    if lacking is None:
        return closed, "closed form"
    closed.close()
    return Vectorized(module, loss), f"torch.func.vmap: {lacking.reason}"


def _differs(closed: ClosedForm, X: Tensor, y: Tensor) -> Lacking | None:
    """Why the closed form is not the gradient; None if it is."""
    import torch

    parts = closed.parts(X, y)
    if isinstance(parts, Lacking):
        return parts
    found = _clipped(parts, _NEVER)
    parameters = list(closed.parameters.values())
    true = torch.autograd.grad(closed.loss(closed.module(X), y).sum(), parameters)
    close = all(
        torch.allclose(found[p], t, rtol=1e-3, atol=1e-4)
        for p, t in zip(parameters, true, strict=True)
    )
    return None if close else Lacking(_FORM, "the weights of some layer are used outside of it too")
