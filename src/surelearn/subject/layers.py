"""How large the gradient of the loss is at every layer of a network: of a torch module by autograd,
of scikit-learn's networks by the chain rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from surelearn.lacking import Lacking
from surelearn.losses import log_loss_slopes
from surelearn.subject.forms import Closed, ModuleForm, NetworkForm
from surelearn.types import AnyArray, Array

if TYPE_CHECKING:
    from torch import Tensor, nn

NO_LAYERS = Lacking("layers", "it is no network whose layers are known")


@dataclass(frozen=True, eq=False)
class LayerGradients:
    """‖∂J_i/∂θ_l‖ of rows i and layers l, the layer nearest to the input first.

    Attributes
    ----------
    names : of the layers, as the model has them
    norms : (rows, layers)
    """

    names: tuple[str, ...]
    norms: Array

    @property
    def by_layer(self) -> Array:
        """The root mean square over rows, (layers,)."""
        return np.sqrt(np.mean(self.norms**2, axis=0))


def layer_names(closed: Closed) -> tuple[str, ...] | Lacking:
    """What its layers are called, the one nearest to the input first."""
    form = closed.form
    if isinstance(form, NetworkForm):
        names = tuple(f"layer {i + 1}" for i in range(len(form.layers)))
    elif isinstance(form, ModuleForm):
        names = tuple(name for name, _ in _layers(form.module))
    else:
        return NO_LAYERS
    return names if len(names) > 1 else Lacking("layers", "it has fewer than two layers")


def layer_gradients(
    closed: Closed, X: Array, y: AnyArray, classes: tuple[Any, ...] | None
) -> LayerGradients | Lacking:
    """Of rows X (n, d) as the network is given them.

    J_i is the log loss of row i; where the network gives numbers, J_i is its output itself.

    Parameters
    ----------
    closed : the network
    y : labels (n,), of which no other than ``classes`` are looked at; not read for a regression
    classes : the labels in the order of the outputs; None for a regression
    """
    form, names = closed.form, layer_names(closed)
    if isinstance(names, Lacking):
        return names
    rows = X if closed.prepare is None else closed.prepare(X)
    if classes is not None:
        known = np.isin(y, np.asarray(classes))
        rows, y = rows[known], np.asarray(y)[known]
    weights = _slopes(form.values(rows), y, classes)
    measured = _of_module if isinstance(form, ModuleForm) else _by_hand
    found = LayerGradients(names, measured(form, rows, weights))  # pyright: ignore[reportArgumentType]
    if not (np.isfinite(found.norms).all() and found.norms.any()):
        return Lacking("layers", "its gradient is 0 or no number on all rows that were looked at")
    return found


def _slopes(scores: Array, y: AnyArray, classes: tuple[Any, ...] | None) -> Array:
    """∂J_i/∂scores, (n, outputs)."""
    scores = np.asarray(scores, dtype=float)
    if classes is None:
        return np.ones_like(scores)
    code = np.argmax(np.asarray(y)[:, None] == np.asarray(classes), axis=1)
    if scores.shape[1] == 1:
        return log_loss_slopes(np.hstack([np.zeros_like(scores), scores]), code)[:, 1:]
    return log_loss_slopes(scores, code)


def _by_hand(form: NetworkForm, X: Array, weights: Array) -> Array:
    """‖δ_l‖·√(‖h_l‖² + 1) for W_l and b_l: the course's ∂J/∂W = δ·hᵀ, ∂J/∂b = δ."""
    norms = [
        np.linalg.norm(delta, axis=1) * np.sqrt((below**2).sum(axis=1) + 1)
        for delta, below in form.backward(X, weights)
    ]
    return np.stack(norms[::-1], axis=1)


def _of_module(form: ModuleForm, X: Array, weights: Array) -> Array:
    layers = _layers(form.module)
    gradients = form.parameter_gradients(X, weights, [p for _, own in layers for p in own])
    ends = np.cumsum([0, *(len(own) for _, own in layers)])
    squared = np.asarray(gradients, dtype=float).reshape(len(X), -1) ** 2  # (rows, tensors)
    norms = [np.sqrt(squared[:, a:b].sum(axis=1)) for a, b in pairwise(ends)]
    return np.stack(norms, axis=1)


def _layers(module: nn.Module, path: str = "", seen: set[int] | None = None) -> list[tuple[str, list[Tensor]]]:  # fmt: skip
    """Those that hold a matrix, each with its parameters, in the order in which the module names
    them; what a module holds itself beside others comes after those.
    """
    seen = set() if seen is None else seen
    found: list[tuple[str, list[Tensor]]] = []
    inside = list(module.named_children())
    for name, child in inside:
        found += _layers(child, f"{path}.{name}" if path else name, seen)
    own = [
        (name, p)
        for name, p in module.named_parameters(recurse=False)
        if p.is_floating_point() and id(p) not in seen
    ]
    seen.update(id(p) for _, p in own)
    matrices = [(name, p) for name, p in own if p.ndim >= 2]
    if matrices and inside:
        name = matrices[0][0]
        found.append((f"{path}.{name}" if path else name, [p for _, p in matrices]))
    elif matrices:
        found.append((path or type(module).__name__, [p for _, p in own]))
    return found
