"""A fitted model as the rest of the library sees it: what it says about itself, asked for part
by part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from surelearn.lacking import Lacking
from surelearn.subject.bands import NO_BAND
from surelearn.subject.closing import closed_form
from surelearn.subject.forms import Closed, KernelForm
from surelearn.subject.layers import LayerGradients, layer_gradients, layer_names
from surelearn.subject.machines import DualSolution, Expansion, Machines, machines_of
from surelearn.subject.objectives import Objective
from surelearn.subject.predicting import (
    Predict,
    Task,
    classes_of,
    describe,
    known_task,
    predict_with,
)
from surelearn.subject.registry import (
    Around,
    DecisionThreshold,
    Description,
    LeaveOneOut,
    Parts,
    StagedMargins,
    dense,
    described,
    made,
)
from surelearn.subject.scoring import ONE_CLASS, ScoreFunction, score_function
from surelearn.subject.states import State, state_of
from surelearn.subject.terms import LinearTerms, linear_terms
from surelearn.subject.torch_modules import is_module, takes_tokens
from surelearn.subject.trees import Trees
from surelearn.types import AnyArray, Model, RowsLike

_NO_RECORD = (
    "learners of surelearn alone keep one of their fit; surelearn.certificate_of measures one on"
    " the rows"
)


@dataclass(frozen=True)
class Inputs:
    """What a model takes: ``columns`` by name, how many there are, and the ``shape`` of a row that
    is no vector; or None.

    ``kind`` is "tokens" for a torch module that looks up whole numbers, as an embedding does.
    """

    columns: tuple[str, ...] | None
    count: int | None
    shape: tuple[int, ...] | None = None
    kind: Literal["numbers", "tokens"] = "numbers"


@dataclass(frozen=True, eq=False)
class Subject:
    """A fitted model, and what it knows of itself. Every part is computed when it is first asked
    for.

    Attributes
    ----------
    model : the fitted model, pipeline, torch module or function itself
    classes : its labels in the order of its scores, where it or the caller knows them
    stated_task : "classification" or "regression", where the caller says so
    shape : of one row, for a torch module that does not take vectors
    """

    model: Model
    classes: tuple[Any, ...] | None = None
    stated_task: Task | None = None
    shape: tuple[int, ...] | None = None

    @cached_property
    def name(self) -> str:
        """The model on one line."""
        return describe(self.model)

    @cached_property
    def task(self) -> Task | Lacking:
        """What it answers: classes, or numbers."""
        return known_task(self.model, self.stated_task)

    @cached_property
    def inputs(self) -> Inputs:
        """The names and the number of the columns that the model reads."""
        names = getattr(self.model, "feature_names_in_", None)
        count = getattr(self.model, "n_features_in_", None)
        told = self.description.columns if isinstance(self.description, Parts) else None
        columns, width = (
            told if names is None else tuple(map(str, names)),
            None if count is None else int(count),
        )
        tokens = is_module(self.model) and takes_tokens(self.model)
        return Inputs(columns, width, self.shape, "tokens" if tokens else "numbers")

    @cached_property
    def predict(self) -> Predict:
        """Rows to answers: every model has it."""
        return predict_with(self.model, self.classes)

    @cached_property
    def scores(self) -> ScoreFunction | Lacking:
        """Class scores with their gradients, or a regressor's outputs with theirs; `Lacking`
        where no gradient is known.
        """
        if self.classes is not None and len(self.classes) < 2:
            return ONE_CLASS
        found = score_function(self.model, classes=self.classes, shape=self.shape)
        return found.pullback if isinstance(found.pullback, Lacking) else found

    @cached_property
    def probabilities(self) -> Predict | Lacking:
        """Rows to probabilities (n, classes), in the order of ``classes``."""
        found = getattr(self.model, "predict_proba", None)
        return found if callable(found) else Lacking("probabilities", f"{self.kind} gives none")

    @cached_property
    def band(self) -> Predict | Lacking:
        """Rows to low, high and scale, (n,) each: where the truth is expected, in units of the row's
        own width (`surelearn.subject.bands`).
        """
        found = getattr(self.model, "predict_band", None)
        return found if callable(found) else Lacking("band", NO_BAND)

    @property
    def gives_probabilities(self) -> bool:
        """Whether it gives probabilities of classes."""
        return not isinstance(self.probabilities, Lacking)

    @cached_property
    def decisions(self) -> Predict | Lacking:
        """Rows to the model's own scores: (n,) of the second of two classes, or (n, classes);
        not votes of pairs.
        """
        inside = described(self.bare)
        told = inside.decisions if isinstance(inside, Parts) else None
        found = getattr(self.model, "decision_function", told)
        apart = getattr(self.model, "decision_function_shape", "") == "ovo"
        return (
            found
            if callable(found) and not apart
            else Lacking("scores", f"{self.kind} gives none, a class each")
        )

    @property
    def kind(self) -> str:
        """What its class is called."""
        return type(self.model).__name__

    @cached_property
    def form(self) -> Closed | Lacking:
        """Linear, a sum of kernels, a network, …, with its affine preparation and its head."""
        return closed_form(self.model)

    @cached_property
    def size(self) -> int | None:
        """How many numbers its centers or support vectors are, where it is a sum of kernels;
        None otherwise.
        """
        form = None if isinstance(self.form, Lacking) else self.form.form
        if isinstance(form, KernelForm):
            return int(form.centers.size)
        return None if isinstance(self.expansion, Lacking) else int(np.size(self.expansion.centers))

    @cached_property
    def description(self) -> Description | Lacking:
        """What the registry, or the learner itself, says of the model's class."""
        return described(self.model)

    @cached_property
    def around(self) -> Around | None:
        """What the model does around another one; None where it is the learner itself."""
        return self.description if isinstance(self.description, Around) else None

    @cached_property
    def learner(self) -> Subject:
        """The innermost model: behind steps that prepare rows or targets, searches and decision
        thresholds.
        """
        if self.around is None:
            return self
        return subject_of(self.around.inside, task=self.stated_task, shape=self.shape).learner

    @cached_property
    def cut(self) -> DecisionThreshold | None:
        """The decision threshold that its answers follow; None for the usual one."""
        if self.around is None:
            return None
        return self.around.cut or subject_of(self.around.inside).cut

    def prepared(self, X: RowsLike) -> Any:
        """Rows as the innermost learner is given them."""
        if self.around is None:
            return X
        return subject_of(self.around.inside).prepared(_transformed(self.around.steps, X))

    @cached_property
    def last(self) -> Subject:
        """The model that prepared rows are fitted to: behind steps and decision thresholds, not
        behind prepared targets.
        """
        return self if self._whole else subject_of(self.around.inside, task=self.stated_task).last  # type: ignore[union-attr]

    def rows_for_last(self, X: RowsLike) -> Any:
        """Rows as the model `last` is given them."""
        if self._whole or self.around is None:
            return X
        return subject_of(self.around.inside).rows_for_last(_transformed(self.around.steps, X))

    @cached_property
    def uncut(self) -> Model:
        """The model without its decision threshold."""
        return self.model if self.around is None or self.around.cut is None else self.around.inside

    @cached_property
    def bare(self) -> Model:
        """The model inside decision thresholds, searches and the like: it scores rows just so,
        columns as they are.
        """
        if self.around is None or self.around.steps or self.around.target is not None:
            return self.model
        return subject_of(self.around.inside).bare

    @cached_property
    def learned_steps(self) -> tuple[str, ...]:
        """The names of steps before the model `last` that learned something from the rows."""
        if self._whole or self.around is None:
            return ()
        steps = [
            (name, step)
            for name, step in self.around.steps
            if step is not None and not isinstance(step, str)
        ]
        learned = tuple(name for name, step in steps if _requires_fit(step))
        return learned + subject_of(self.around.inside).learned_steps

    @property
    def _whole(self) -> bool:
        """Whether it is fitted as a whole, whatever it does inside."""
        return (
            self.around is None
            or self.around.target is not None
            or not (self.around.steps or self.around.cut or self.around.adds)
        )

    def prepared_names(self, count: int) -> tuple[str, ...]:
        """What the prepared columns are called, by the steps that made them; else their
        numbers, from 1.
        """
        names = None if self.around is None else self.around.steps and self.inputs.columns
        try:
            for _, step in () if self.around is None else self.around.steps:
                names = (
                    names
                    if step is None or isinstance(step, str)
                    else step.get_feature_names_out(names)
                )
            if (
                self.around is not None
                and names is not None
                and subject_of(self.around.inside).around is not None
            ):
                names = None  # prepared further inside, by steps of their own
        except Exception:  # steps of any kind may have none, or fail
            names = None
        found = () if names is None else tuple(str(name) for name in names)
        return found if len(found) == count else tuple(str(j + 1) for j in range(count))

    @cached_property
    def target(self) -> Model:
        """The fitted step that prepared targets for the learner; None without one."""
        if self.around is None:
            return None
        inner = subject_of(self.around.inside).target
        return inner if self.around.target is None else self.around.target

    @cached_property
    def objective(self) -> Objective | Lacking:
        """What the innermost learner's fit minimized, in the coordinates after `prepared`."""
        found = self.learner.description
        return (
            made(found.objective)
            if isinstance(found, Parts)
            else Lacking("objective", _reason(found))
        )

    @cached_property
    def machines(self) -> Machines | Lacking:
        """The innermost learner's functions of prepared rows, each with its norm."""
        found = self.learner.description
        if not isinstance(found, Parts):
            return Lacking("machines", _reason(found))
        return machines_of(self.learner.form) if found.machines is None else made(found.machines)

    @cached_property
    def layers(self) -> tuple[str, ...] | Lacking:
        """The names of the innermost learner's layers, the one nearest to the input first."""
        form = self.learner.form
        return Lacking("layers", form.reason) if isinstance(form, Lacking) else layer_names(form)

    def layer_gradients(self, X: RowsLike, y: AnyArray) -> LayerGradients | Lacking:
        """How large the gradient of the loss is at each of `layers`, of rows X and labels y; of
        the output itself where the model gives numbers.
        """
        form = self.learner.form
        if isinstance(form, Lacking):
            return Lacking("layers", form.reason)
        rows = np.asarray(dense(self.prepared(X)))
        rows = rows.astype(float) if rows.dtype == object else rows
        classes = None if self.task == "regression" else self.classes
        if classes is None and self.task != "regression":
            return Lacking("layers", "its classes are not known")
        return layer_gradients(form, rows, y, classes)

    @cached_property
    def leave_one_out(self) -> LeaveOneOut | Lacking:
        """From prepared rows, targets, prepared points and which rows (None: all) to the
        learner's fits without a row.
        """
        found = self.learner.description
        return (
            found.leave_one_out
            if isinstance(found, Parts)
            else Lacking("leave-one-out", _reason(found))
        )

    @cached_property
    def dual(self) -> DualSolution | Lacking:
        """The dual solution of the innermost learner, a support vector machine."""
        found = self.learner.description
        return made(found.dual) if isinstance(found, Parts) else Lacking("dual", _reason(found))

    @cached_property
    def expansion(self) -> Expansion | Lacking:
        """The innermost learner's kernel and the rows that it is built on, with how it was
        fitted.
        """
        found = self.learner.description
        return (
            made(found.expansion)
            if isinstance(found, Parts)
            else Lacking("expansion", _reason(found))
        )

    @cached_property
    def trees(self) -> Trees | Lacking:
        """The trees of which an output of the model `bare` is the sum."""
        found = described(self.bare)
        return made(found.trees) if isinstance(found, Parts) else Lacking("trees", _reason(found))

    @cached_property
    def terms(self) -> LinearTerms | Lacking:
        """Its scores as sums over the terms of texts; of a model that combines others, those of a
        linear member, which is named.
        """
        return linear_terms(self.model)

    @cached_property
    def certificate(self) -> Any:
        """The certificate that the model `last` wrote of its own fit, or `Lacking`."""
        found = getattr(self.last.model, "certificate_", None)
        return Lacking("certificate", "it writes none of its own fit") if found is None else found

    @cached_property
    def staged_margins(self) -> StagedMargins | Lacking:
        """From rows for `last` and labels to the margins of a vote, round after round."""
        found = self.last.description
        return (
            found.staged_margins if isinstance(found, Parts) else Lacking("margins", _reason(found))
        )

    @cached_property
    def fixed(self) -> Model:
        """The model, with what its fit took from the rows beside the weights (a kernel's width)
        fixed for refits.
        """
        found = self.description
        return self.model if not isinstance(found, Parts) or found.fixed is None else found.fixed()

    @cached_property
    def refit(self) -> Model | Lacking:
        """An unfitted copy of the model, to be fitted again; whoever fits it sets its seeds and
        counts its cost.
        """
        if not (hasattr(self.model, "get_params") and hasattr(self.model, "fit")):
            return Lacking(
                "refit", "a model without get_params and fit cannot be cloned and fitted again"
            )
        try:
            parts = (self.model, *self.model.get_params().values())
            if any(_is_frozen(part) for part in parts):
                return Lacking("refit", "a frozen part of it is not fitted again")
            return _clone(self.model)
        except Exception as reason:  # an estimator that does not keep scikit-learn's contract
            return Lacking("refit", f"it cannot be cloned: {reason}")

    @cached_property
    def record(self) -> Any | Lacking:
        """What happened in the fit: the model's own record, or the innermost learner's."""
        found = getattr(self.model, "record_", None) or getattr(self.learner.model, "record_", None)
        return Lacking("record", _NO_RECORD) if found is None else found

    @property
    def state(self) -> State | Lacking:
        """What it is made again from, under a stable key: the attributes that `surelearn.save`
        writes.
        """
        return state_of(self.model)


def subject_of(
    model: Model,
    *,
    classes: npt.ArrayLike | None = None,
    task: Task | None = None,
    shape: tuple[int, ...] | None = None,
) -> Subject:
    """A fitted model as a `Subject`; a model that declares nothing still predicts.

    Parameters
    ----------
    model : a fitted model or pipeline, a torch module, a function of rows, or a `Subject`
    classes : the labels in the order of the scores, where the model does not know them
    task : "classification" or "regression", where the model does not say
    shape : of one row, for a torch module that does not take vectors

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
    >>> subject = subject_of(LogisticRegression().fit(X, y))
    >>> subject.task, subject.objective.loss, subject.objective.strength(4)
    ('classification', 'logistic', 0.125)
    >>> print(subject_of(lambda X: X[:, 0]).objective)
    no objective: function has no gradient that is known: a function gives answers, not how it comes to them
    """
    if isinstance(model, Subject):
        return model
    return Subject(model, classes_of(model, classes), task, shape)


def _transformed(steps: tuple[tuple[str, Model], ...], X: RowsLike) -> Any:
    rows = X
    for _, step in steps:
        rows = rows if step is None or isinstance(step, str) else step.transform(rows)
    return rows


# scikit-learn has no types: these give its functions some.
def _clone(model: Model) -> Model:
    from sklearn.base import clone  # pyright: ignore

    return cast("Callable[[Model], Model]", clone)(model)


def _is_frozen(part: Model) -> bool:
    from sklearn.frozen import FrozenEstimator  # pyright: ignore

    return isinstance(part, cast("type[Any]", FrozenEstimator))


def _requires_fit(step: Model) -> bool:
    from sklearn.utils import get_tags  # pyright: ignore

    return bool(cast("Callable[[Model], Any]", get_tags)(step).requires_fit)


def _reason(found: Description | Lacking) -> str:
    return found.reason if isinstance(found, Lacking) else "it prepares rows, and predicts nothing"
