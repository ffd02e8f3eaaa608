"""How to predict with a scikit-learn model, a pipeline, a torch module, or a plain function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import numpy.typing as npt

from surelearn.lacking import Lacking
from surelearn.seeds import without_secrets
from surelearn.subject.torch_modules import is_module, module_functions
from surelearn.types import AnyArray, Bools, Model, RowsLike

if TYPE_CHECKING:
    from torch import nn

Predict = Callable[[RowsLike], Any]  # answers as the user's model gives them
Task = Literal["classification", "regression"]


def predict_with(model: Model, classes: Sequence[Any] | AnyArray | None = None) -> Predict:
    """The function that predicts: ``model.predict``, a torch module's answers, or the model itself
    if it is a function.

    A module answers with the class of its largest output; with a single output, with the second of
    two classes where that is positive. Without ``classes``: with the position of the largest
    output, or with the value of the single one.
    """
    predict = getattr(model, "predict", None)
    if callable(predict):
        return predict
    if is_module(model):
        return _module_answers(model, classes)
    if callable(model) and not isinstance(model, type):
        return model
    raise TypeError(
        f"model must have a predict method or be a function, not {type(model).__name__}"
    )


def _module_answers(module: nn.Module, classes: Sequence[Any] | AnyArray | None) -> Predict:
    module_of = module_functions(module)

    def answer(X: RowsLike) -> AnyArray:
        rows = np.asarray(X)
        whole = rows.dtype.kind in "iu"
        found = module_of.values(rows if whole else rows.astype(module_of.dtype, copy=False))
        check_outputs(found, classes)
        if classes is None:
            return found[:, 0].astype(np.float64) if found.shape[1] == 1 else found.argmax(axis=1)
        if (lost := np.isnan(found).any(axis=1)).any():
            raise ValueError(f"the module's outputs are NaN for {lost.sum()} of {len(found)} rows")
        return np.asarray(classes)[
            (found[:, 0] > 0).astype(int) if found.shape[1] == 1 else found.argmax(axis=1)
        ]

    return answer


def check_outputs(found: AnyArray, classes: AnyArray | Sequence[Any] | None) -> None:
    """Refuse outputs (n, k) of a module that are not one per class, nor a single one for two
    classes.
    """
    if (
        classes is None
        or found.shape[1] == len(classes)
        or (found.shape[1] == 1 and len(classes) == 2)
    ):
        return
    gives = f"{found.shape[1]} output{'s' if found.shape[1] > 1 else ''}"
    raise ValueError(
        f"the module gives {gives} for {len(classes)} classes: pass classes= with one label an"
        " output, in order"
    )


def missing(values: npt.ArrayLike) -> Bools:
    """Which values are NaN or None."""
    values = np.asarray(values)
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype == object:
        return np.reshape(
            [value is None or value != value for value in values.ravel()], values.shape
        ).astype(bool)
    return np.zeros(values.shape, dtype=bool)


def scores_of(model: Model, X: RowsLike) -> dict[str, AnyArray]:
    """What the model says of rows: ``prediction`` and, if it gives one, the ``probability`` of
    that prediction.
    """
    # a pipeline: prepare the columns once
    if isinstance(getattr(model, "steps", None), list) and len(model.steps) > 1:
        return scores_of(model[-1], model[:-1].transform(X))
    predicted = np.asarray(predict_with(model)(X))
    if not hasattr(model, "predict_proba") or not hasattr(model, "classes_"):
        return {"prediction": predicted}
    classes = np.asarray(model.classes_)
    order = np.argsort(classes)
    columns = order[np.searchsorted(classes, predicted, sorter=order)]
    return {
        "prediction": predicted,
        "probability": np.asarray(model.predict_proba(X))[np.arange(len(columns)), columns],
    }


def task_of(model: Model, task: Task | None = None) -> Task:
    """As `known_task`; a model that does not say is refused."""
    found = known_task(model, task)
    if isinstance(found, Lacking):
        raise ValueError(found.reason)
    return found


def known_task(model: Model, task: Task | None = None) -> Task | Lacking:
    """Classification or regression: as stated, else by scikit-learn's tags, else by
    ``classes_``.
    """
    if task is not None:
        if task not in ("classification", "regression"):
            raise ValueError(f"task must be 'classification' or 'regression', not {task!r}")
        return task
    kind = getattr(model, "_estimator_type", None)
    if kind is None and hasattr(model, "__sklearn_tags__"):
        kind = model.__sklearn_tags__().estimator_type
    if kind == "regressor":  # CatBoost's have classes_, too
        return "regression"
    if kind == "classifier" or hasattr(model, "classes_"):
        return "classification"
    why = (
        "the model does not say whether it classifies or regresses: pass task='classification' or"
        " 'regression'"
    )
    return Lacking("task", why)


def classes_of(model: Model, classes: npt.ArrayLike | None = None) -> tuple[Any, ...] | None:
    """The labels a classifier knows: as stated, else its ``classes_``, else None; None with
    several targets.
    """
    known = getattr(model, "classes_", None) if classes is None else classes
    if known is None or (classes is None and several_targets(model)):
        return None
    return tuple(np.asarray(known).tolist()) or None


def several_targets(model: Model) -> bool:
    """Whether the model has labels of several targets, a list of their arrays."""
    own = getattr(model, "classes_", None)
    return isinstance(own, list) and np.ndim(cast("list[AnyArray]", own)[:1]) > 1


def describe(model: Model) -> str:
    """The model on one line, for people."""
    if isinstance(getattr(model, "steps", None), list):  # a pipeline
        text = " → ".join(describe(step) for _, step in model.steps)
    elif hasattr(model, "get_params") or hasattr(model, "predict"):
        text = " ".join(repr(without_secrets(model)).split())
    else:
        text = getattr(model, "__name__", type(model).__name__)
    return text if len(text) <= 120 else text[:119] + "…"
