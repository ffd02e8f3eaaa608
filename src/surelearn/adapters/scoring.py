"""Class scores of any model and, where there is one, their gradient with respect to the inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from surelearn.adapters.agreement import apart_of, mixtures
from surelearn.adapters.forms import Array
from surelearn.adapters.modules import is_module, module_functions
from surelearn.adapters.predicting import check_outputs, classes_of, describe, missing, predict_with
from surelearn.adapters.recognize import Closed, Head, NoClosedForm, closed_form

Back = Callable[[Any], Any]


@dataclass(frozen=True)
class ScoreFunction:
    """Scores of rows (n, d), labels, and gradients.

    Attributes
    ----------
    name : the model on one line
    scores : rows to scores (n, classes); a regressor's outputs (n, outputs)
    predict : rows to labels
    classes : the labels in the order of the scores; None where the model does not say
    pullback : rows to (scores, back), back taking weights (n, classes) to Σ_c weights_c·∇score_c, (n, d); None without
    why_not : why there is no gradient, or ""
    exact : whether the class with the largest score (the first of equal ones) is what ``predict`` says
    closed : the closed form, where there is one
    module : the torch module, where it is one
    dtype : what the model computes in
    apart : rows to whether the closed form's scores there are not the model's own; None where there is nothing to compare
    """

    name: str
    scores: Callable[[Any], Array]
    predict: Callable[[Any], np.ndarray]
    classes: tuple[Any, ...] | None
    pullback: Callable[[Any], tuple[Any, Back]] | None = None
    why_not: str = ""
    exact: bool = True
    closed: Closed | None = None
    module: Any = None
    dtype: Any = np.float64
    apart: Callable[[Any], bool] | None = None

    def gradient(self, X: Any, weights: Any) -> Array:
        """Σ_c weights_c·∇score_c(x) for every row; ``weights`` (n, classes) or (classes,)."""
        if self.pullback is None:
            raise ValueError(f"{self.name} has no gradient: {self.why_not}")
        scores, back = self.pullback(np.asarray(X, dtype=float))
        return np.asarray(back(np.broadcast_to(np.asarray(weights, dtype=float), scores.shape)), dtype=float)


def score_function(model: Any, *, classes: Any = None, shape: tuple[int, ...] | None = None) -> ScoreFunction:
    """How to score by a model and to differentiate it.

    Parameters
    ----------
    model : a fitted classifier or pipeline, a torch module that gives logits (n, classes), (n, 1) or (n,), or a function
        that gives labels (n,) or scores (n, classes)
    classes : the labels in the order of the scores, where the model does not know them
    shape : of one row, for a torch module that does not take vectors

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array(["no", "no", "yes", "yes"])
    >>> f = score_function(LogisticRegression().fit(X, y))
    >>> f.classes, f.scores(X).argmax(axis=1)
    (('no', 'yes'), array([0, 0, 1, 1]))
    >>> bool((f.gradient(X, [0.0, 1.0]) == f.closed.form.weights).all())
    True
    """
    if isinstance(model, ScoreFunction):
        return model
    known = classes_of(model, classes)
    if known is not None and len(known) < 2:
        raise ValueError("the model knows one class only: no change of a row can change its prediction")
    if is_module(model):
        return _of_module(model, known, shape)
    plain = ScoreFunction(describe(model), _guarded(_scores(model, known)), _labels(model, known), known)
    try:
        closed = closed_form(model)
    except NoClosedForm as reason:
        return ScoreFunction(plain.name, plain.scores, plain.predict, known, why_not=str(reason))
    values, pull = _through(closed)
    return ScoreFunction(
        plain.name,
        _guarded(values),
        plain.predict,
        known,
        pull,
        exact=closed.head != "pairs",
        closed=closed,
        apart=None if known is None else apart_of(model, values, plain.scores, plain.predict, known, closed.head == "pairs"),
    )


def trusted(f: ScoreFunction, X: Any) -> ScoreFunction:
    """The same; without its closed form where that does not give the model's own scores of rows X and mixtures of them."""
    if f.apart is None or not f.apart(mixtures(np.asarray(X, dtype=float))):
        return f
    why = "its own scores are not those that its class computes"
    return replace(f, scores=_unknown, pullback=None, why_not=why, exact=False, closed=None, apart=None)


def _unknown(X: Any) -> Any:  # noqa: ARG001
    raise ValueError("only predictions are known of this model")


def _of_module(module: Any, classes: tuple[Any, ...] | None, shape: tuple[int, ...] | None) -> ScoreFunction:
    values, pull, kind = module_functions(module, shape)

    def scores(X: Any) -> Array:
        found = values(X)
        check_outputs(found, classes)
        return _two(found) if found.shape[1] == 1 else found

    def pullback(X: Any) -> tuple[Any, Back]:
        found, back = pull(X)
        return (_two(found), lambda weights: back(weights[:, 1:])) if found.shape[1] == 1 else (found, back)

    guarded = _guarded(scores)

    def predict(X: Any) -> np.ndarray:
        best = guarded(X).argmax(axis=1)
        return best if classes is None else np.asarray(classes)[best]

    name = type(module).__name__
    return ScoreFunction(name, guarded, predict, classes, pullback, module=module, dtype=kind)


def _through(closed: Closed) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """``values`` and ``pull`` of the whole model: preparation, machines, head."""
    prepare, form, head = closed.prepare, closed.form, closed.head

    def values(X: Any) -> Any:
        X = np.asarray(X, dtype=float)
        return _headed(form.values(X if prepare is None else prepare(X)), head)[0]

    def pull(X: Any) -> Any:
        X = np.asarray(X, dtype=float)
        machines, back = form.pull(X if prepare is None else prepare(X))
        scores, spread = _headed(machines, head)

        def whole(weights: Any) -> Any:
            inner = back(spread(weights))
            return inner if prepare is None else prepare.back(inner)

        return scores, whole

    return values, pull


def _headed(machines: Any, head: Head) -> tuple[Any, Back]:
    """Class scores from machines, and the way back; of pairs, a class has the least of what its pairs say for it."""
    if head == "each":
        return machines, lambda weights: weights
    if head == "two":
        return _two(machines), lambda weights: weights[:, 1:]
    count = round((1 + np.sqrt(1 + 8 * machines.shape[1])) / 2)
    signed = np.full((len(machines), count, machines.shape[1]), np.inf)
    for column, (low, high) in enumerate(combinations(range(count), 2)):
        signed[:, low, column], signed[:, high, column] = -machines[:, column], machines[:, column]
    weakest = signed.argmin(axis=2)
    scores = np.take_along_axis(signed, weakest[:, :, None], axis=2)[:, :, 0]
    second = np.array(list(combinations(range(count), 2)))[:, 1]
    sign = np.where(second[weakest] == np.arange(count), 1.0, -1.0)

    def spread(weights: Any) -> Any:
        out = np.zeros_like(machines)
        rows = np.arange(len(machines))
        for label in range(count):
            np.add.at(out, (rows, weakest[:, label]), weights[:, label] * sign[:, label])
        return out

    return scores, spread


def _two(single: Any) -> Any:
    """Scores (0, f) of two classes from one machine, (n, 1)."""
    return np.hstack([np.zeros_like(single), single])


def _scores(model: Any, classes: tuple[Any, ...] | None) -> Callable[[Any], Any]:
    for name in ("decision_function", "predict_proba"):
        if callable(found := getattr(model, name, None)):
            return found
    predict = predict_with(model)

    def one_hot(X: Any) -> Any:
        said = np.asarray(predict(X))
        if said.ndim == 2 or (classes is None and said.dtype.kind == "f"):
            return said
        if classes is None:
            raise ValueError("the model gives labels and does not know its classes: pass classes=")
        return (said[:, None] == np.asarray(classes)).astype(float)

    return one_hot


def _labels(model: Any, classes: tuple[Any, ...] | None) -> Callable[[Any], np.ndarray]:
    predict = predict_with(model)

    def labels(X: Any) -> np.ndarray:
        said = np.asarray(_called(predict, X))
        if said.ndim == 2 and not hasattr(model, "predict"):
            said = said.argmax(axis=1) if classes is None else np.asarray(classes)[said.argmax(axis=1)]
        if said.shape != (np.shape(X)[0],):
            raise ValueError(f"the model gave predictions of shape {said.shape} for {np.shape(X)[0]} rows")
        if (lost := missing(said)).any():
            raise ValueError(f"the model returned NaN for {lost.sum()} of {len(said)} rows")
        return said

    return labels


def _guarded(scores: Callable[[Any], Any]) -> Callable[[Any], Array]:
    """Scores (n, classes) that are numbers, or a sentence."""

    def checked(X: Any) -> Array:
        found = np.asarray(_called(scores, X))
        if found.ndim == 1:
            found = _two(found[:, None])
        if found.ndim != 2 or len(found) != np.shape(X)[0]:
            raise ValueError(f"the model gave scores of shape {found.shape} for {np.shape(X)[0]} rows")
        if np.isnan(found).any():
            raise ValueError(f"the model's scores are NaN, first in row {int(np.isnan(found).any(axis=1).argmax())}")
        return found

    return checked


def _called(function: Callable[[Any], Any], X: Any) -> Any:
    try:
        return function(X)
    except Exception as error:
        raise ValueError(f"the model failed on rows of shape {np.shape(X)}: {type(error).__name__}: {error}") from error
