"""Which number of a model is explained: a class's probability, its score, a regression's value,
or a function's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from surelearn.subject import Lacking, classes_of, describe, predict_with, subject_of
from surelearn.subject.torch_modules import is_module, module_functions
from surelearn.types import Ints, Label, Model, TableRows

if TYPE_CHECKING:
    from torch import nn

Ask = Callable[[Any], npt.ArrayLike]  # of rows as the model is given them
OutputKind = str | Ask
KINDS = ("auto", "probability", "score", "value")
_METHOD = {"probability": "predict_proba", "score": "decision_function"}


def _as_they_are(rows: TableRows) -> TableRows:
    return rows


@dataclass(frozen=True)
class Output:
    """A model's output.

    Attributes
    ----------
    ask : rows in, numbers (m,) or (m, K) out
    column : which of K: one for all, or one for each explained row; None if there is one only
    kind : "probability", "score", "value" or "answer" (1 where a class is answered, 0 elsewhere)
    name : in words
    model : asked; None for a plain function
    sign : −1 where the score of the other of two classes is given
    given : rows as they are mixed to rows as the model is given them
    """

    ask: Ask
    column: int | Ints | None
    kind: str
    name: str
    model: Model = None
    sign: float = 1.0
    given: Callable[[TableRows], TableRows] = _as_they_are

    def __call__(self, X: TableRows) -> npt.NDArray[np.float64]:
        """Finite numbers, (m,) or (m, K)."""
        try:
            answers = np.asarray(self.ask(self.given(X)), dtype=float)
        except Exception as error:
            raise ValueError(
                f"the model fails on rows that mix explained and background rows: {error}"
            ) from error
        if answers.ndim == 2 and answers.shape[1] == 1:
            answers = answers[:, 0]
        if answers.ndim not in (1, 2) or len(answers) != len(X):
            raise ValueError(
                "the model must give one number, or one row of numbers, for each row, not shape"
                f" {answers.shape}"
            )
        # the sum alone is faster
        if not np.isfinite(answers.sum()) and not np.isfinite(answers).all():
            raise ValueError(
                "the model gives NaN or infinite numbers for rows that mix explained and background"
                " rows: explain an output that is finite, or let the model fill what is missing"
            )
        return answers if self.sign == 1 else -answers

    def chosen(
        self, answers: npt.NDArray[np.float64], shape: tuple[int, int, int], rows: slice
    ) -> npt.NDArray[np.float64]:
        """The explained column, shaped (coalitions, explained rows, background rows)."""
        if answers.ndim == 1:
            return answers.reshape(shape)
        if self.column is None or isinstance(self.column, int | np.integer):
            return answers[:, self.column or 0].reshape(shape)
        wanted = self.column[rows][None, :, None, None]
        return np.take_along_axis(answers.reshape(*shape, answers.shape[1]), wanted, axis=3)[..., 0]


def output_of(
    model: Model, rows: TableRows, output: OutputKind = "auto", target: Label = None
) -> Output:
    """The output to explain.

    Parameters
    ----------
    model : with predict, a torch module, or a function of rows
    rows : to explain
    output : "probability", "score", "value", a function of rows, or "auto": the first that the
        model has
    target : a class's label (a function's column); None: the second of two classes, else the class
        predicted for each row
    """
    if callable(output):
        return _function(output, rows, target, getattr(output, "__name__", "the function"))
    if output not in KINDS:
        raise ValueError(
            f"output must be {', '.join(map(repr, KINDS))} or a function of rows, not {output!r}"
        )
    if is_module(model):
        return _function(_module(model), rows, target, "output of the module")
    if output == "auto":
        output = next((kind for kind in _METHOD if _method(model, kind) is not None), "value")
    if output == "value" and (answers := _answers(model)) is not None:
        return _of_class(
            Output(answers, None, "answer", "", model), rows, classes_of(model) or (), target
        )
    if output == "value" or (classes := classes_of(model)) is None:
        if output != "value":
            raise ValueError(f"the model has no classes: explain output='value', not {output!r}")
        name = "value" if hasattr(model, "predict") else describe(model)
        return _function(predict_with(model), rows, target, name, model)
    method = _method(model, output)
    if method is None:
        raise ValueError(
            f"output={output!r} needs a model with {_METHOD[output]}: {describe(model)} has none"
        )
    return _of_class(Output(method, None, output, "", model), rows, classes, target)


def _method(model: Model, kind: str) -> Ask | None:
    """What gives the probabilities or raw scores of classes; None where nothing does."""
    own = getattr(model, _METHOD[kind], None)
    if own is not None or kind == "probability" or not hasattr(model, "predict"):
        return own
    declared = subject_of(model).decisions
    return None if isinstance(declared, Lacking) else declared


def _copied(rows: TableRows) -> TableRows:
    """For a model that may change what it is given."""
    return cast("Any", rows).copy()


def _of_class(output: Output, rows: TableRows, classes: tuple[Any, ...], target: Label) -> Output:
    if target is not None and target not in classes:
        raise ValueError(
            f"target must be one of the classes {', '.join(map(repr, classes[:8]))}, not {target!r}"
        )
    if target is None and len(classes) > 2:
        column, name = (
            np.argmax(output(_copied(rows)), axis=1),
            f"{output.kind} of the class predicted for each row",
        )
    else:
        column = 1 if target is None else classes.index(target)
        name = f"{output.kind} of class {classes[column]!r}"
    flipped = output.kind == "score" and len(classes) == 2 and np.ndim(column) == 0 and column == 0
    sign = -1.0 if flipped else 1.0
    return Output(output.ask, column, output.kind, name, output.model, sign)


def _answers(model: Model) -> Ask | None:
    """Which class a classifier of words answers, one column a class of zeros and a one; None
    where answers are numbers.
    """
    classes = classes_of(model)
    if classes is None or all(isinstance(label, int | float) for label in classes):
        return None
    predict, labels = predict_with(model), np.asarray(classes)
    return lambda X: (np.asarray(predict(X)).reshape(-1, 1) == labels).astype(float)


def _function(ask: Ask, rows: TableRows, target: Label, name: str, model: Model = None) -> Output:
    answers = Output(ask, None, "value", name, model)(_copied(rows))
    if answers.ndim == 1:
        return Output(ask, None, "value", name, model)
    if target is None:
        return Output(
            ask,
            np.argmax(answers, axis=1),
            "value",
            f"{name}, the largest of {answers.shape[1]} for each row",
            model,
        )
    if target not in range(answers.shape[1]):
        raise ValueError(
            f"target must be a column of the function's {answers.shape[1]}, not {target!r}"
        )
    return Output(ask, int(target), "value", f"{name}, column {target}", model)


def _module(module: nn.Module) -> Ask:
    return module_functions(module, None)[0]
