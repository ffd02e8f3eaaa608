"""Upper bounds on the Lipschitz constants of networks, layer by layer: never estimates from below.

Norms of matrices by their singular values in float64, rounded up. A convolution is a sum of shifts,
one a place of its kernel, each followed by a matrix: its norm is at most the sum of theirs, and at
most the square root of how many patches share an input times the norm of the matrix that maps a
patch; the smaller counts.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from surelearn.lacking import Lacking
from surelearn.subject import ScoreFunction
from surelearn.subject.forms import Array, NetworkForm
from surelearn.subject.registry import is_the, replaced
from surelearn.types import Model

if TYPE_CHECKING:
    import torch

LayerNorm = Literal["l2", "linf"]
_UP = 1.0 + 1e-9
_SLOPES = {  # the largest slope, rounded up
    **dict.fromkeys(
        (
            "ReLU",
            "ReLU6",
            "Tanh",
            "Softplus",
            "Hardtanh",
            "LogSigmoid",
            "Softsign",
            "Identity",
            "Flatten",
        ),
        1.0,
    ),
    # nothing, where a model predicts
    **dict.fromkeys(("Dropout", "Dropout1d", "Dropout2d", "AlphaDropout"), 1.0),
    "Sigmoid": 0.25,
    "GELU": 1.13,
    "SiLU": 1.1,
}
_BETWEEN = {"identity": 1.0, "relu": 1.0, "tanh": 1.0, "logistic": 0.25}


def _no_slope(why: str) -> Lacking:
    return Lacking("Lipschitz constant", why)


@dataclass(frozen=True, eq=False)
class Slopes:
    """A network as (a map with constant ``before``) and then a linear layer.

    Attributes
    ----------
    before : at least the Lipschitz constant of everything before the last layer, in the norm asked
        for
    weights : of the last layer, (classes, width)
    """

    before: float
    weights: Array


def slopes(f: ScoreFunction, norm: LayerNorm) -> Slopes | Lacking:
    """The Lipschitz constant before the last layer, and the last layer; `Lacking` says why not.

    Examples
    --------
    >>> from surelearn.subject import score_function
    >>> from sklearn.neural_network import MLPClassifier
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
    >>> model = MLPClassifier((3,), solver="lbfgs", max_iter=200, random_state=0).fit(X, y)
    >>> found = slopes(score_function(model), "l2")
    >>> bool(found.before >= np.linalg.norm(model.coefs_[0], 2)), found.weights.shape
    (True, (1, 3))
    """
    form = None if isinstance(f.closed, Lacking) else f.closed.form
    if isinstance(form, NetworkForm):
        weights = [W for W, _ in form.layers]
        before = math.prod(matrix_norm(W, norm) * _BETWEEN[form.activation] for W in weights[:-1])
        return Slopes(before, weights[-1])
    if f.module is None:
        return _no_slope("no Lipschitz constant is known for it")
    layers = _layers(f.module)
    if isinstance(layers, Lacking):
        return layers
    while layers and _keeps_the_largest(layers[-1]):
        layers = layers[:-1]
    if not layers or type(layers[-1]).__name__ != "Linear":
        return _no_slope("its last layer is not linear")
    before = 1.0
    for layer in layers[:-1]:
        if isinstance(slope := _slope(layer, norm), Lacking):
            return slope
        before *= slope
    return Slopes(before, _array(layers[-1].weight))


def matrix_norm(W: Array, norm: LayerNorm) -> float:
    """The largest ‖Wx‖/‖x‖ in L2 (the largest singular value) or L∞ (the largest row sum),
    rounded up.
    """
    W = np.asarray(W, dtype=np.float64)
    return _UP * float(np.linalg.norm(W, 2) if norm == "l2" else np.abs(W).sum(axis=1).max())


def _layers(module: Model) -> list[Any] | Lacking:
    """The layers in their order, each of a class of ``torch.nn`` itself, and nothing done
    before, between or after them.
    """
    name = type(module).__name__
    if not is_the(type(module), "torch.nn"):
        return _no_slope(f"the layer {name} is not known here")
    if method := replaced(module):
        return _no_slope(f"the method {method} of its layer {name} was replaced")
    if (
        module._forward_hooks
        or module._forward_pre_hooks
        or module._compiled_call_impl is not None
        or _hooks_everywhere()
    ):
        return _no_slope(f"a hook on its layer {name} may change what goes in or comes out")
    if name != "Sequential":
        return [module]
    found: list[Any] = []
    for part in module:
        if isinstance(inner := _layers(part), Lacking):
            return inner
        found += inner
    return found


def _hooks_everywhere() -> bool:
    base = sys.modules["torch.nn.modules.module"]
    return bool(base._global_forward_hooks or base._global_forward_pre_hooks)


def _keeps_the_largest(layer: Model) -> bool:
    """Whether the largest output is that of the layer before, and is ahead by no more."""
    name = type(layer).__name__
    return name in ("Identity", "Flatten") or (
        name in ("Softmax", "LogSoftmax") and layer.dim in (1, -1)
    )


def _slope(layer: Model, norm: LayerNorm) -> float | Lacking:
    name = type(layer).__name__
    if name in _SLOPES:
        return _SLOPES[name]
    if name == "LeakyReLU":
        return max(1.0, abs(layer.negative_slope))
    if name == "ELU":
        return max(1.0, abs(layer.alpha))
    if name == "Linear":
        return matrix_norm(_array(layer.weight), norm)
    if name in ("BatchNorm1d", "BatchNorm2d") and layer.running_var is not None:
        gain = np.ones(layer.num_features) if layer.weight is None else _array(layer.weight)
        return _UP * float((np.abs(gain) / np.sqrt(_array(layer.running_var) + layer.eps)).max())
    if name in ("MaxPool2d", "AvgPool2d") and not getattr(layer, "ceil_mode", False):
        return _pooling(layer, norm)
    if name == "Conv2d" and layer.padding_mode in ("zeros", "circular"):
        return _convolution(layer, norm)
    return _no_slope(f"the layer {name} is not known here")


def _pooling(layer: Model, norm: LayerNorm) -> float | Lacking:
    """Of a largest value or a mean over whole windows; in L2 the root of how many windows share
    an input comes in.
    """
    mean = type(layer).__name__ == "AvgPool2d"
    size, stride = _pair(layer.kernel_size), _pair(layer.stride or layer.kernel_size)
    if any(d != 1 for d in _pair(getattr(layer, "dilation", 1))):
        return _no_slope("a dilated pooling layer is not known here")
    if mean and (
        layer.divisor_override is not None
        or not (layer.count_include_pad or layer.padding in (0, (0, 0)))
    ):
        return _no_slope("an average over other than its whole window is not known here")
    shared = math.prod(math.ceil(k / s) for k, s in zip(size, stride, strict=True))
    return 1.0 if norm == "linf" else _UP * math.sqrt(shared / (math.prod(size) if mean else 1))


def _convolution(layer: Model, norm: LayerNorm) -> float | Lacking:
    if layer.padding_mode == "circular" and not isinstance(layer.padding, str):
        sizes = zip(
            _pair(layer.padding), _pair(layer.dilation), _pair(layer.kernel_size), strict=True
        )
        if any(2 * padding > dilation * (k - 1) for padding, dilation, k in sizes):
            return _no_slope(
                "a circular padding wider than the kernel repeats inputs: its slope is not known"
                " here"
            )
    weight = _array(layer.weight)  # (out, in/groups, height, width)
    groups = np.split(weight, layer.groups)
    if norm == "linf":
        return _UP * float(np.abs(weight).sum(axis=(1, 2, 3)).max())
    sums = [
        sum(np.linalg.norm(part[:, :, i, j], 2) for i, j in np.ndindex(*part.shape[2:]))
        for part in groups
    ]
    steps = zip(_pair(layer.kernel_size), _pair(layer.stride), strict=True)
    shared = math.prod(
        k if d > 1 else math.ceil(k / s)
        for (k, s), d in zip(steps, _pair(layer.dilation), strict=True)
    )
    patches = [
        math.sqrt(shared) * np.linalg.norm(part.reshape(len(part), -1), 2) for part in groups
    ]
    return _UP * float(max(min(pair) for pair in zip(sums, patches, strict=True)))


def _pair(value: Any) -> tuple[int, int]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value, value)


def _array(tensor: torch.Tensor) -> Array:
    return tensor.detach().cpu().double().numpy()
