"""Torch modules as data: layers from a closed list with their settings, and arrays; other
modules are given again.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from surelearn.fingerprint import UNHASHED, fingerprint_model
from surelearn.subject.torch_modules import is_module

if TYPE_CHECKING:
    import torch
    from torch import nn

_POOL = ("kernel_size", "stride", "padding", "ceil_mode")
_CONVOLUTION = (
    "in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode", "bias",
)  # fmt: skip
# Layers of torch.nn that are made again, with the settings they are made from; making one runs
# nothing that a file says.
LAYERS: dict[str, tuple[str, ...]] = {
    "AdaptiveAvgPool2d": ("output_size",),
    "AvgPool1d": (*_POOL, "count_include_pad"),
    "AvgPool2d": (*_POOL, "count_include_pad", "divisor_override"),
    "Conv1d": _CONVOLUTION,
    "Conv2d": _CONVOLUTION,
    "Dropout": ("p", "inplace"),
    "ELU": ("alpha", "inplace"),
    "Flatten": ("start_dim", "end_dim"),
    "GELU": ("approximate",),
    "GroupNorm": ("num_groups", "num_channels", "eps", "affine"),
    "Identity": (),
    "LayerNorm": ("normalized_shape", "eps", "elementwise_affine", "bias"),
    "LeakyReLU": ("negative_slope", "inplace"),
    "Linear": ("in_features", "out_features", "bias"),
    "LogSoftmax": ("dim",),
    "MaxPool1d": (*_POOL, "dilation", "return_indices"),
    "MaxPool2d": (*_POOL, "dilation", "return_indices"),
    "ReLU": ("inplace",),
    "SELU": ("inplace",),
    "Sequential": (),
    "SiLU": ("inplace",),
    "Sigmoid": (),
    "Softmax": ("dim",),
    "Softplus": ("beta", "threshold"),
    "Tanh": (),
    "Unflatten": ("dim", "unflattened_size"),
}


class ModuleMismatchError(ValueError):
    """The module given is not one made like that which was saved, or none was given."""


def encode_module(module: nn.Module) -> dict[str, Any]:
    """Layers (None where not all are on the list), weights as arrays, which of them are frozen,
    which parts evaluate.
    """
    made: dict[str, Any] = {
        "layers": _described(module),
        "class": _class_of(module),
        "weights": {name: _array(name, value) for name, value in module.state_dict().items()},
        "frozen": [name for name, value in module.named_parameters() if not value.requires_grad],
        "evaluates": [
            name for name, part in module.named_modules(remove_duplicate=False) if not part.training
        ],
    }
    if made["layers"] is not None and not _comes_back(made, module):
        made["layers"] = None
    return made


def _array(name: str, value: torch.Tensor) -> Any:
    try:
        return value.detach().cpu().numpy().copy()
    except TypeError:  # numbers that NumPy has not
        raise ValueError(
            f"the module's {name} is of {value.dtype}, which cannot be saved: convert the module"
            " first, with .float()"
        ) from None


def _comes_back(made: Mapping[str, Any], module: nn.Module) -> bool:
    """Whether the layers say all there is: not where a user gave one an attribute, or torch
    makes it in another way now.
    """
    try:
        return fingerprint_model(decode_module(made, None)) == fingerprint_model(module) != UNHASHED
    except Exception:  # whatever torch says of settings it reads but does not take
        return False


def decode_module(made: Mapping[str, Any], into: nn.Module | None) -> Any:
    """The module that `encode_module` took apart; a copy of ``into`` with the weights, where
    its layers are not known.
    """
    import torch

    if into is None and made["layers"] is None:
        raise ModuleMismatchError(
            f"the layers of its {made['class']} are not on the list: pass into= with a module made"
            " like it"
        )
    if into is None:
        # nothing is drawn or kept until the weights, which are there, take their place
        with torch.device("meta"):
            module = _made(made["layers"])
    elif not is_module(into):
        raise ModuleMismatchError(f"into= must be a torch module, not a {type(into).__name__}")
    elif _class_of(into) != made["class"]:
        raise ModuleMismatchError(f"into= must be a {made['class']}, not a {_class_of(into)}")
    else:
        module = copy.deepcopy(into)
    weights = {name: torch.tensor(value) for name, value in made["weights"].items()}
    check_shapes(module, weights)
    module.load_state_dict(weights, assign=True)
    for name, value in module.named_parameters():
        value.requires_grad_(name not in made["frozen"])
    for name, part in module.named_modules():
        part.training = name not in made["evaluates"]
    return module


def check_shapes(module: nn.Module, weights: Mapping[str, Any]) -> None:
    """Refuse weights that are not those of the module, by names and shapes."""
    needed = module.state_dict()
    if others := sorted(set(needed) ^ set(weights)):
        raise ModuleMismatchError(
            f"the module has other weights than were saved: {others[0]} is in one of the two only"
        )
    for name, value in needed.items():
        if value.shape != weights[name].shape:
            shapes = f"{tuple(weights[name].shape)} was saved, the module has {tuple(value.shape)}"
            raise ModuleMismatchError(
                f"the module has other weights than were saved: of {name}, {shapes}"
            )


def _described(module: nn.Module) -> Any:
    """Name, settings and parts of a layer; None where one is not of the list, or weights are
    used twice.
    """
    from torch import nn

    kinds = {type(part) for part in module.modules()}
    weights = [id(value) for _, value in module.named_parameters(remove_duplicate=False)]
    known = all(kind.__name__ in LAYERS and kind is getattr(nn, kind.__name__) for kind in kinds)
    return _layer(module) if known and len(set(weights)) == len(weights) else None


def _layer(module: Any) -> dict[str, Any]:
    name = type(module).__name__
    settings = {key: getattr(module, key) for key in LAYERS[name]}
    if "bias" in settings:
        settings["bias"] = settings["bias"] is not None
    return {
        "layer": name,
        "settings": settings,
        "parts": {key: _layer(part) for key, part in module._modules.items()},
    }


def _made(described: Mapping[str, Any]) -> Any:
    from torch import nn

    name, settings, parts = described["layer"], described["settings"], described["parts"]
    if name not in LAYERS or set(settings) != set(LAYERS[name]) or (parts and name != "Sequential"):
        raise ValueError(f"{name!r} with these settings is no layer that is made again")
    if name == "Sequential":
        return nn.Sequential(OrderedDict((key, _made(part)) for key, part in parts.items()))
    return getattr(nn, name)(**settings)


def _class_of(module: object) -> str:
    return f"{type(module).__module__}.{type(module).__qualname__}"
