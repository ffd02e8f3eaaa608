"""What an attacker on membership sees: losses of rows, in the model and in the same model fitted again on other rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from surelearn.adapters import Task, predict_with, score_function
from surelearn.adapters.modules import is_module
from surelearn.auditing.context import Unusable
from surelearn.auditing.one_row import learner_of
from surelearn.auditing.single_rows import raised
from surelearn.selection.cross_validation import columns_for, fit_quietly, take, take_for

FARTHEST = 40.0  # a margin of ±40 is a probability that cannot be told from 1 or 0


def observe(model: Any, X: Any, y: Any, task: Task, classes: Any = None) -> dict[str, Any]:
    """Each row's loss, the evidence that a likelihood ratio compares, and what of the model was ``seen``.

    Classes: the logarithmic loss, and ln(p/(1 − p)) of the right one; where there are no probabilities, its score above the
    best other one takes the place of ln(p/(1 − p)), or ±1 for right and wrong. Numbers: the absolute error, and the error.
    ``classes`` are the labels of a torch module's outputs, if they are not 0, 1, …
    """
    if task == "regression":
        errors = np.asarray(predict_with(model)(X), dtype=float).reshape(len(y)) - np.asarray(y, dtype=float)
        return {"losses": np.abs(_numbers(errors)), "evidence": errors, "seen": "predictions"}
    margins, seen = _margins(model, X, np.asarray(y), classes)
    margins = np.clip(_numbers(margins), -FARTHEST, FARTHEST)
    return {"losses": np.logaddexp(0.0, -margins), "evidence": margins, "seen": seen}


def observe_refit(model: Any, X: Any, y: Any, rows: Any, new: Any, truth: Any, task: Task) -> dict[str, Any]:
    """The same of a copy fitted on some rows: one task. ``failed`` says why there is none."""
    try:
        fitted = fit_quietly(model, take_for(model, X, rows), y[rows])
        return observe(fitted, columns_for(model, new, rows), truth, task)
    except Exception as error:  # a refit may meet rows on which the model cannot be fitted
        return {"failed": raised(error)}


def observe_canary(model: Any, unfitted: Any, X: Any, y: Any, tried: Any, seeds: Any) -> dict[str, Any]:
    """One row with a wrong label: how well refits with it know it, and refits without it, noise drawn anew in each.

    The row is the one of those ``tried`` that the model is surest about, so that a wrong label pulls hardest. ``seeds`` are
    (refits, 2). ``epsilon`` is what the certificate of a refit says.
    """
    row = tried[int(np.argmax(observe(model, take(X, tried), y[tried], "classification")["evidence"]))]
    others = np.unique(y[y != y[row]])
    marked = y.copy()
    marked[row] = others[0]
    sets = (np.arange(len(y)), np.delete(np.arange(len(y)), row))
    scores = np.empty(seeds.shape)
    for i, j in np.ndindex(scores.shape):
        fitted = fit_quietly(seeded(unfitted, int(seeds[i, j])), take(X, sets[j]), marked[sets[j]])
        scores[i, j] = observe(fitted, take(X, [row]), marked[[row]], "classification")["evidence"][0]
    claim = learner_of(fitted)[1].certificate_["epsilon"]  # pyright: ignore[reportPossiblyUnboundVariable]
    return {"with": scores[:, 0], "without": scores[:, 1], "epsilon": claim.value, "dp_delta": claim.inputs["dp_delta"]}


def seeded(model: Any, seed: int) -> Any:
    """A copy whose every ``random_state`` is the seed: noise must be drawn anew."""
    from sklearn.base import clone

    copied = clone(model)
    names = [name for name in copied.get_params() if name.rpartition("__")[2] == "random_state"]
    return copied.set_params(**dict.fromkeys(names, seed))


def _margins(model: Any, X: Any, y: Any, classes: Any) -> tuple[Any, str]:
    """How far the right class is ahead of the others, and what it was read from."""
    if is_module(model):
        function = score_function(model, classes=classes)
        return _ahead(function.scores(X), y, function.classes), "scores"
    classes = getattr(model, "classes_", None)
    if classes is not None and hasattr(model, "predict_proba"):
        return _log_odds(np.asarray(model.predict_proba(X), dtype=float), y, classes), "probabilities"
    if classes is not None and hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X), dtype=float)
        scores = np.column_stack([np.zeros_like(scores), scores]) if scores.ndim == 1 else scores
        return _ahead(scores, y, classes), "scores"
    predicted = np.asarray(predict_with(model)(X))
    if predicted.shape != y.shape:
        raise Unusable(f"the model gave predictions of shape {predicted.shape} for {len(y):,} rows")
    _numbers(predicted)
    return np.where(predicted == y, 1.0, -1.0), "predictions"


def _log_odds(probabilities: Any, y: Any, classes: Any) -> Any:
    right = _is_right(probabilities, y, classes)
    with np.errstate(divide="ignore"):
        return np.log(np.where(right, probabilities, 0.0).sum(axis=1)) - np.log(
            np.where(right, 0.0, probabilities).sum(axis=1)
        )


def _ahead(scores: Any, y: Any, classes: Any) -> Any:
    right = _is_right(scores, y, classes)
    own = np.where(right, scores, -np.inf).max(axis=1)
    return own - np.where(right, -np.inf, scores).max(axis=1)


def _is_right(values: Any, y: Any, classes: Any) -> Any:
    """(rows, classes): which is the row's class; none for a label that the model does not know."""
    labels = np.arange(values.shape[1]) if classes is None else np.asarray(classes)
    if values.shape != (len(y), len(labels)):
        raise Unusable(f"the model gave {values.shape} numbers for {len(y):,} rows and {len(labels)} classes")
    if len(labels) < 2:
        raise Unusable("the model knows one class only, and says the same of every row")
    _numbers(values)
    return y[:, None] == labels


def _numbers(values: Any) -> Any:
    """The values, if none is NaN."""
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise Unusable("the model's predictions are NaN for some rows")
    return values
