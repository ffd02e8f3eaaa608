"""Class scores of any model and, where there is one, their gradient with respect to the inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from surelearn.lacking import Lacking
from surelearn.subject.agreement import apart_of, mixtures
from surelearn.subject.closing import closed_form, has_cut, through, two
from surelearn.subject.forms import Closed, ModuleForm, Pull
from surelearn.subject.predicting import (
    Predict,
    check_outputs,
    classes_of,
    describe,
    missing,
    predict_with,
)
from surelearn.subject.registry import NO_FORM
from surelearn.subject.torch_modules import is_module
from surelearn.types import AnyArray, Array, Model, RowsLike

if TYPE_CHECKING:
    from torch import nn

ONE_CLASS = Lacking(
    "scores", "the model knows one class only: no change of a row can change its prediction"
)


@dataclass(frozen=True)
class ScoreFunction:
    """Scores of rows (n, d), labels, and gradients.

    Attributes
    ----------
    name : the model on one line
    scores : rows to scores (n, classes); a regressor's outputs (n, outputs)
    predict : rows to labels
    classes : the labels in the order of the scores; None where the model does not say
    pullback : rows to (scores, back), back taking weights (n, classes) to Σ_c weights_c·∇score_c,
        (n, d)
    exact : whether the class with the largest score (the first of equal ones) is what ``predict``
        says
    closed : the closed form
    apart : rows to whether the closed form's scores there are not the model's own; None where there
        is nothing to compare
    """

    name: str
    scores: Callable[[AnyArray], Array]
    predict: Callable[[AnyArray], AnyArray]
    classes: tuple[Any, ...] | None
    pullback: Callable[[AnyArray], Pull] | Lacking = Lacking("gradient", NO_FORM.reason)  # noqa: RUF009
    exact: bool = True
    closed: Closed | Lacking = NO_FORM
    apart: Callable[[AnyArray], bool] | None = None

    @property
    def module(self) -> nn.Module | None:
        """The torch module that gives the scores, or None."""
        form = None if isinstance(self.closed, Lacking) else self.closed.form
        return form.module if isinstance(form, ModuleForm) else None

    @property
    def dtype(self) -> npt.DTypeLike:
        """What the model computes in."""
        form = None if isinstance(self.closed, Lacking) else self.closed.form
        return form.dtype if isinstance(form, ModuleForm) else np.float64

    def gradient(self, X: RowsLike, weights: npt.ArrayLike) -> Array:
        """Σ_c weights_c·∇score_c(x) for every row; ``weights`` (n, classes) or (classes,)."""
        if isinstance(self.pullback, Lacking):
            raise ValueError(f"{self.name} has no gradient: {self.pullback.reason}")
        scores, back = self.pullback(_numbers(X))
        return np.asarray(
            back(np.broadcast_to(np.asarray(weights, dtype=float), scores.shape)), dtype=float
        )


def score_function(
    model: Model, *, classes: npt.ArrayLike | None = None, shape: tuple[int, ...] | None = None
) -> ScoreFunction:
    """How to score by a model and to differentiate it.

    Parameters
    ----------
    model : a fitted classifier, pipeline or `Subject`, a torch module that gives logits (n,
        classes), (n, 1) or (n,), or a function that gives labels (n,) or scores (n, classes)
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
    from surelearn.subject.subject import Subject

    if isinstance(model, Subject):
        classes, shape, model = model.classes, model.shape, model.model
    if isinstance(model, ScoreFunction):
        return model
    known = classes_of(model, classes)
    if known is not None and len(known) < 2:
        raise ValueError(ONE_CLASS.reason)
    if is_module(model):
        return _of_module(model, known, shape)
    name, own, predict = describe(model), _guarded(_scores(model, known)), _labels(model, known)
    closed = closed_form(model)
    if isinstance(closed, Lacking):
        return ScoreFunction(name, own, predict, known, Lacking("gradient", closed.reason))
    values, pull = through(closed)
    apart = None
    if known is not None and closed.head != "votes":
        votes = closed.head == "pairs" or has_cut(model)
        apart = apart_of(model, values, own, predict, known, votes)
    exact = closed.head not in ("pairs", "votes")
    return ScoreFunction(name, _guarded(values), predict, known, pull, exact, closed, apart)


def trusted(f: ScoreFunction, X: RowsLike) -> ScoreFunction:
    """The function; without its closed form where that does not give the model's own scores of
    rows X and their mixtures.
    """
    if f.apart is None or not f.apart(mixtures(np.asarray(X, dtype=float))):
        return f
    why = "its own scores are not those that its class computes"
    lost = {"pullback": Lacking("gradient", why), "closed": Lacking("closed form", why)}
    return replace(f, scores=_unknown, exact=False, apart=None, **lost)


def _unknown(X: RowsLike) -> Array:  # noqa: ARG001
    raise ValueError("only predictions are known of this model")


def _of_module(
    module: nn.Module, classes: tuple[Any, ...] | None, shape: tuple[int, ...] | None
) -> ScoreFunction:
    form = ModuleForm(module, shape)

    def scores(X: RowsLike) -> Array:
        found = form.values(np.asarray(X))
        check_outputs(found, classes)
        return two(found) if found.shape[1] == 1 else found

    def pullback(X: Array) -> Pull:
        found, back = form.pull(X)
        return (
            (two(found), lambda weights: back(weights[:, 1:]))
            if found.shape[1] == 1
            else (found, back)
        )

    guarded = _guarded(scores)

    def predict(X: RowsLike) -> AnyArray:
        best = guarded(X).argmax(axis=1)
        return best if classes is None else np.asarray(classes)[best]

    closed = Closed(form, None, "outputs")
    return ScoreFunction(type(module).__name__, guarded, predict, classes, pullback, closed=closed)


def _scores(model: Model, classes: tuple[Any, ...] | None) -> Predict:
    for name in ("decision_function", "predict_proba"):
        if callable(found := getattr(model, name, None)):
            return found
    predict = predict_with(model)

    def one_hot(X: RowsLike) -> AnyArray:
        said = np.asarray(predict(X))
        if said.ndim == 2 or (classes is None and said.dtype.kind == "f"):
            return said
        if classes is None:
            raise ValueError("the model gives labels and does not know its classes: pass classes=")
        return (said[:, None] == np.asarray(classes)).astype(float)

    return one_hot


def _labels(model: Model, classes: tuple[Any, ...] | None) -> Callable[[RowsLike], AnyArray]:
    predict = predict_with(model)

    def labels(X: RowsLike) -> AnyArray:
        said, count = np.asarray(_called(predict, X)), _shape(X)[0]
        if said.ndim == 2 and not hasattr(model, "predict"):
            said = (
                said.argmax(axis=1) if classes is None else np.asarray(classes)[said.argmax(axis=1)]
            )
        if said.shape != (count,):
            raise ValueError(f"the model gave predictions of shape {said.shape} for {count} rows")
        if (lost := missing(said)).any():
            raise ValueError(f"the model returned NaN for {lost.sum()} of {len(said)} rows")
        return said

    return labels


def _guarded(scores: Predict) -> Callable[[RowsLike], Array]:
    """Scores (n, classes) that are numbers, or a sentence."""

    def checked(X: RowsLike) -> Array:
        found, count = np.asarray(_called(scores, X)), _shape(X)[0]
        if found.ndim == 1:
            found = two(found[:, None])
        if found.ndim != 2 or len(found) != count:
            raise ValueError(f"the model gave scores of shape {found.shape} for {count} rows")
        if np.isnan(found).any():
            raise ValueError(
                "the model's scores are NaN, first in row"
                f" {int(np.isnan(found).any(axis=1).argmax())}"
            )
        return found

    return checked


def _called(function: Predict, X: RowsLike) -> Any:
    try:
        return function(X)
    except Exception as error:
        raise ValueError(
            f"the model failed on rows of shape {_shape(X)}: {type(error).__name__}: {error}"
        ) from error


def _shape(X: RowsLike) -> tuple[int, ...]:
    return np.shape(cast("npt.ArrayLike", X))  # NumPy asks whatever has a shape for it


def _numbers(X: RowsLike) -> AnyArray:
    """Whole numbers stay whole: they may be tokens."""
    rows = np.asarray(X)
    return rows if rows.dtype.kind in "iu" else rows.astype(float)
