"""LightGBM's, XGBoost's and CatBoost's models in their own formats: model text, JSON and cbm, with
plain data beside them.

Their libraries read these formats in compiled code that believes them, so each is checked first. A
model comes back as the class of a fixed list with the attributes that it had; no method that a file
names is called.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

from surelearn.fingerprint import canonical_cbm
from surelearn.persistence.catboost_cbm import check_cbm
from surelearn.subject.lightgbm_text import read_text
from surelearn.subject.xgboost_json import read_json
from surelearn.types import Model

ESTIMATORS = (
    "lightgbm.LGBMClassifier", "lightgbm.LGBMRegressor",
    "xgboost.XGBClassifier", "xgboost.XGBRegressor", "xgboost.XGBRFClassifier", "xgboost.XGBRFRegressor",
    "catboost.CatBoostClassifier", "catboost.CatBoostRegressor",
)  # fmt: skip
KINDS = (*ESTIMATORS, "lightgbm.Booster", "xgboost.Booster")
_MOST_JOBS = 1024


@dataclass(frozen=True)
class Native:
    """What is kept of a booster: its content in the library's own format, None where it has
    none, and its attributes.
    """

    kind: str
    content: bytes | None
    state: Mapping[str, Any]


def kind_of(value: object) -> str | None:
    """The name of exactly this class on the list; None for others, and for classes derived from
    it.
    """
    made = type(value)
    library = made.__module__.partition(".")[0]
    name = f"{library}.{made.__name__}"
    if name not in KINDS:
        return None
    return name if getattr(importlib.import_module(library), made.__name__, None) is made else None


def take_apart(value: Model) -> Native:
    """A booster of the list as content and attributes."""
    kind = kind_of(value)
    assert kind is not None  # noqa: S101 - asked before
    state = dict(vars(value))
    if kind == "lightgbm.Booster":
        state = value.__getstate__()
        return Native(kind, state.pop("_handle").encode(), state)
    if kind == "xgboost.Booster":
        state.pop("handle")
        return Native(kind, bytes(value.save_raw("json")), state)
    if kind.startswith("catboost."):
        state = value.__getstate__()
        # the answers on the rows that stopped it are not the model's
        for name in ("__model", "_test_evals"):
            state.pop(name, None)
        found = {"state": state, "columns": getattr(value, "_n_features_in", None)}
        return Native(kind, canonical_cbm(value) if value.is_fitted() else None, found)
    return Native(kind, None, state)


def put_together(native: Native) -> Any:
    """The booster that `take_apart` took apart, of content that was checked."""
    if native.kind not in KINDS:
        raise ValueError(f"{native.kind!r:.60} is no booster that is made again")
    library, _, name = native.kind.partition(".")
    cls = getattr(importlib.import_module(library), name)
    make = _BY_KIND.get(native.kind) or (_catboost if library == "catboost" else _estimator)
    return make(cls, native)


def _estimator(cls: Any, native: Native) -> Any:
    model = object.__new__(cls)
    vars(model).update(native.state)
    jobs = native.state.get("n_jobs")
    if isinstance(jobs, int):
        if abs(jobs) > _MOST_JOBS:
            raise ValueError(f"it asks for {jobs} threads")
        if native.kind.startswith("xgboost.") and "_Booster" in native.state:
            model.get_booster().set_param({"nthread": max(jobs, 0)})
    return model


def _lightgbm(cls: Any, native: Native) -> Any:
    booster = object.__new__(cls)
    with redirect_stdout(io.StringIO()):  # what it finds wrong it also prints
        booster.__setstate__({**native.state, "_handle": read_text(_content(native)).text})
    return booster


def _xgboost(cls: Any, native: Native) -> Any:
    read_json(_content(native))
    booster = cls()
    booster.load_model(bytearray(_content(native)))
    vars(booster).update({name: value for name, value in native.state.items() if name != "handle"})
    return booster


def _catboost(cls: Any, native: Native) -> Any:
    state = dict(native.state["state"])
    if native.content is not None:
        check_cbm(native.content)
        state["__model"] = native.content
    model = cls()
    model.__setstate__(state)
    if native.state["columns"] is not None:
        model._n_features_in = native.state["columns"]
    return model


def _content(native: Native) -> bytes:
    if native.content is None:
        raise ValueError(f"{native.kind} has no content")
    return native.content


_BY_KIND: dict[str, Callable[[Any, Native], Any]] = {
    "lightgbm.Booster": _lightgbm,
    "xgboost.Booster": _xgboost,
}
