"""The one open registry: what a class says about its fitted models, by the class itself and not by
its name.

A function registered with `describes` takes a fitted model of exactly that class to `Parts`,
`Around` (a model around another) or `Preparation` (a step that prepares rows). Our own learners
have the method ``_describe`` instead. A subclass is another class: it may compute otherwise, and
inherits nothing here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from surelearn.lacking import Lacking
from surelearn.subject.forms import Affine, Closed
from surelearn.subject.leaving import Without
from surelearn.subject.machines import DualSolution, Expansion, Machines
from surelearn.subject.objectives import Objective
from surelearn.subject.terms import Terms
from surelearn.subject.trees import Trees
from surelearn.types import AnyArray, Array, Model, RowsLike

T = TypeVar("T")
Lazy = T | Lacking | Callable[[], T | Lacking]
# rows (n, d), targets (n,), points (m, d), and which rows, (k,); None: all
LeaveOneOut = Callable[[Array, AnyArray, Array, npt.NDArray[np.intp] | None], Without]
StagedMargins = Callable[[RowsLike, npt.ArrayLike], Iterable[Array]]
NO_FORM = Lacking("closed form", "how its scores come from the numbers is not written down here")
NO_OBJECTIVE = Lacking("objective", "what its fit minimized is not written down here")
NO_EXPANSION = Lacking("expansion", "it is no sum of kernels that tells how it was fitted")
NO_ROUNDS = Lacking("margins", "it is no vote that grows round after round")
NO_DUAL = Lacking("dual", "it is no support vector machine whose dual solution is known here")
NO_TREES = Lacking("trees", "it is no sum of trees that is known here")
NO_CLOSED_FITS = Lacking(
    "leave-one-out", "no closed form of the fits without one row is known here"
)


@dataclass(frozen=True, eq=False)
class Parts:
    """What a model knows of itself; each part a value, a function that makes it when it is first
    asked for, or `Lacking`.

    Attributes
    ----------
    form : the model in closed form, of the rows that it is given itself
    objective : what its fit minimized
    leave_one_out : from its rows and targets, points, and which rows (None: all) to the fits
        `Without` one of them
    machines : f_m(x) with their norms, where that is known of more than closed forms with a
        gradient; None: of those only
    dual : the dual solution of support vector machines
    fixed : makes a copy that refits with what this fit took from its rows (a kernel's width); None:
        nothing is taken
    expansion : its kernel and the rows that it is built on, where it says how it was fitted in
        their space
    staged_margins : from rows and labels to the margins of a vote, round after round
    columns : what its columns are called, where that is not in ``feature_names_in_``
    weighted : (weight, fitted model) of each member of which its predictions are the weighted sum,
        all given the same rows; () for others
    trees : the trees of which an output is the sum
    decisions : rows to raw scores, as scikit-learn's ``decision_function`` gives them, of a
        class that has no such method; None: it has, or has no scores
    members : (name, weight, fitted model) of each model whose answers it combines, in whatever way,
        all given the same rows; () for others
    """

    form: Lazy[Closed] = NO_FORM
    objective: Lazy[Objective] = NO_OBJECTIVE
    leave_one_out: LeaveOneOut | Lacking = NO_CLOSED_FITS
    machines: Lazy[Machines] | None = None
    dual: Lazy[DualSolution] = NO_DUAL
    fixed: Callable[[], Model] | None = None
    expansion: Lazy[Expansion] = NO_EXPANSION
    staged_margins: StagedMargins | Lacking = NO_ROUNDS
    columns: tuple[str, ...] | None = None
    weighted: tuple[tuple[float, Model], ...] = ()
    trees: Lazy[Trees] = NO_TREES
    decisions: Callable[[RowsLike], AnyArray] | None = None
    members: tuple[tuple[str, float, Model], ...] = ()


@dataclass(frozen=True)
class DecisionThreshold:
    """A decision threshold: ``positive`` is answered where its response is at least
    ``threshold``.
    """

    positive: Any
    threshold: float
    response: str


@dataclass(frozen=True, eq=False)
class Around:
    """A model around another, which predicts as that one does but for what is named here.

    Attributes
    ----------
    inside : the fitted model
    steps : (name, step) of what prepares rows for it, in turn
    target : what targets were prepared by, so that predictions are given back through its inverse
    cut : the decision threshold that its answers follow
    adds : whether it only adds something, such as widths of intervals, to a model that was fitted as
        it stands
    """

    inside: Model
    steps: tuple[tuple[str, Model], ...] = ()
    target: Model = None
    cut: DecisionThreshold | None = None
    adds: bool = False


@dataclass(frozen=True, eq=False)
class Preparation:
    """A fitted step that prepares rows.

    Attributes
    ----------
    affine : makes the affine map of rows of numbers that it is
    columnwise : whether every number that is present becomes a multiple of itself plus a constant
    parts : (name, step, columns) of a step that hands its columns to others, side by side; ()
        otherwise
    places : which of the prepared columns come from each of the parts, by its name; None: unknown
    terms : makes the terms of texts that its prepared columns are; None: they are none
    keeps_columns : whether prepared column j comes from column j, however the row scales it
    """

    affine: Callable[[], Affine] | Lacking
    columnwise: bool = False
    parts: tuple[tuple[str, Model, Any], ...] = ()
    places: Mapping[str, slice] | None = None
    terms: Callable[[], Terms] | None = None
    keeps_columns: bool = False


Description = Parts | Around | Preparation
Describe = Callable[[Model], Description]
D = TypeVar("D", bound=Describe)
_BY_CLASS: dict[type[Any], Describe] = {}
_BY_NAME: dict[str, dict[str, Describe]] = {}  # class name -> module -> function
_BY_BASE: dict[str, dict[str, Describe]] = {}  # the same, for every class that derives from it


def describes(*kinds: type[Any] | str, subclasses: bool = False) -> Callable[[D], D]:
    """Register a function from a fitted model of exactly these classes to what is known of it.

    Parameters
    ----------
    kinds : classes, or their names "module:Class", so that nothing is imported that nobody uses
    subclasses : whether whatever derives from these (by name) is described so too, as every torch
        module is by autograd

    Examples
    --------
    >>> from surelearn.subject import Parts, describes, linear_form, subject_of
    >>> class Scales:
    ...     classes_ = np.array(["light", "heavy"])
    ...     def predict(self, X):
    ...         return self.classes_[(np.asarray(X)[:, 0] > 2.0).astype(int)]
    >>> @describes(Scales)
    ... def _(model):
    ...     return Parts(form=linear_form([[1.0]], [-2.0], classes=2))
    >>> subject_of(Scales()).form.form.weights.tolist()
    [[1.0]]
    """

    def register(function: D) -> D:
        for kind in kinds:
            if isinstance(kind, str):
                module, name = kind.split(":")
                (_BY_BASE if subclasses else _BY_NAME).setdefault(name, {})[module] = function
            else:
                _BY_CLASS[kind] = function
        return function

    return register


def registered() -> list[str]:
    """The classes that are described by name, as "module:Class", whether installed or not."""
    return sorted(f"{module}:{name}" for name, places in _BY_NAME.items() for module in places)


def described(thing: Model) -> Description | Lacking:
    """What is known of a fitted model or step; `Lacking` says why nothing is."""
    kind = class_of(thing)
    name = kind.__name__
    found = _registered(kind) or _derived(kind)
    if found is None:
        parent = next((base.__name__ for base in kind.__mro__[1:] if _registered(base)), "")
        if parent:
            why = (
                f"{name} has no gradient that is known: it may score otherwise than {parent}, from"
                " which it inherits"
            )
        elif not hasattr(thing, "predict"):
            why = (
                f"{name} has no gradient that is known: a function gives answers, not how it comes"
                " to them"
            )
        else:
            why = f"{name} has no gradient that is known: {NO_FORM.reason}"
        return Lacking("description", why)
    if method := replaced(thing):
        return Lacking(
            "description", f"{name} has no gradient that is known: its method {method} was replaced"
        )
    return found(thing)


def class_of(thing: Model) -> type[Any]:
    """Its class itself, not what it says its class is."""
    anything: object = thing
    return type(anything)


def made(part: Lazy[T]) -> T | Lacking:
    """A part itself, computed if it is a function."""
    if isinstance(part, Lacking) or not callable(part):
        return part
    return cast("Callable[[], T | Lacking]", part)()


def _registered(kind: type[Any]) -> Describe | None:
    if kind in _BY_CLASS:
        return _BY_CLASS[kind]
    if callable(own := vars(kind).get("_describe")):  # a learner of ours
        return cast("Describe", own)
    places = _BY_NAME.get(kind.__name__, {})
    return next((function for place, function in places.items() if is_the(kind, place)), None)


def _derived(kind: type[Any]) -> Describe | None:
    for base in kind.__mro__:
        places = _BY_BASE.get(base.__name__, {})
        if found := next(
            (function for place, function in places.items() if is_the(base, place)), None
        ):
            return found
    return None


def is_the(kind: type[Any], place: str) -> bool:
    """Whether a module that is loaded has this very class under its name."""
    return getattr(sys.modules.get(place), kind.__name__, None) is kind


def replaced(thing: Model) -> str:
    """The first method that the object has of its own instead of its class's; "" where there is
    none.
    """
    kind = class_of(thing)
    own: dict[str, Any] = getattr(thing, "__dict__", {})
    return next(
        (
            name
            for name, value in own.items()
            if callable(value) and callable(getattr(kind, name, None))
        ),
        "",
    )


def dense(values: RowsLike) -> AnyArray:
    """An array, also of a sparse matrix."""
    made: Callable[[], AnyArray] | None = getattr(values, "toarray", None)
    return np.asarray(values) if made is None else made()
