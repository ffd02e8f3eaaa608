"""What a model is made again from: its attributes under a stable key, as `surelearn.save` keeps
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from surelearn.keys import key_of
from surelearn.lacking import Lacking
from surelearn.seeds import without_secrets
from surelearn.subject.registry import class_of
from surelearn.subject.torch_modules import is_module
from surelearn.types import Model

_BOOSTERS = ("lightgbm", "xgboost", "catboost")


@dataclass(frozen=True, eq=False)
class State:
    """The attributes of a learner of ours.

    Attributes
    ----------
    key : of its class, wherever that lives: "ridge/1"
    values : its attributes by name: arrays, plain data, and parts with a state of their own
        (kernels, models inside); without seeds that must stay secret
    """

    key: str
    values: Mapping[str, Any]


def state_of(model: Model) -> State | Lacking:
    """The state of a learner of ours; `Lacking` says in which other form `surelearn.save` keeps the
    model, or why in none.

    Examples
    --------
    >>> from surelearn.linear import Ridge
    >>> state = state_of(Ridge(regularization=0.1).fit([[0.0], [1.0]], [0.0, 2.0]))
    >>> state.key, state.values["coef_"].shape
    ('ridge/1', (1,))
    """
    kind = class_of(model)
    key, name = key_of(kind), kind.__name__
    if key is not None:
        return State(key, dict(cast("dict[str, Any]", vars(without_secrets(model)))))
    if is_module(model):
        return Lacking("state", f"{name} is kept as layers and weights, not under a key")
    if not hasattr(model, "get_params"):
        return Lacking("state", f"{name} is no learner of surelearn: only what it answers is known")
    if type(model).__module__.partition(".")[0] in _BOOSTERS:
        return Lacking("state", f"{name} is kept in its own library's format, not under a key")
    return Lacking(
        "state", f"{name} is kept in skops' format, by its own names of types, not under a key"
    )
