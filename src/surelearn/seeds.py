"""Seeds that must stay secret: those of the noise of a private model.

A class names them in ``secret_parameters``. They are no part of what a model is called, of its
hash, or of what is saved.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surelearn.types import Model


def is_secret(value: object, name: str) -> bool:
    """Whether an object's parameter must not leave this process."""
    return name in getattr(type(value), "secret_parameters", ())


def without_secrets(model: Model) -> Any:
    """The model, or a copy without its secret seeds where it, or one of its parts, holds some."""
    if not any(_holders(model, set())):
        return model
    made = copy.deepcopy(model)
    for part in list(_holders(made, set())):
        for name in type(part).secret_parameters:
            setattr(part, name, None)
    return made


def _holders(value: object, seen: set[int]) -> Iterator[Any]:
    """The parts of a model, itself among them, that hold a secret."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if any(
        getattr(value, name, None) is not None
        for name in getattr(type(value), "secret_parameters", ())
    ):
        yield value
    if isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, list | tuple):
        parts = list(value)
    else:
        parts = (
            list(vars(value).values())
            if hasattr(value, "get_params") and hasattr(value, "__dict__")
            else []
        )
    for part in parts:
        yield from _holders(part, seen)
