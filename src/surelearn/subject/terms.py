"""Models that add up the terms of texts: each term's coefficient, and which text column it stands in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surelearn.lacking import Lacking
from surelearn.types import AnyArray, Array, Bools, Model, RowsLike

if TYPE_CHECKING:
    from surelearn.subject.registry import Preparation

NO_TERMS = Lacking("terms", "no step before the learner counts the words of a text")


@dataclass(frozen=True, eq=False)
class Terms:
    """What the columns are that a step makes of texts.

    Attributes
    ----------
    names : of each column, the term that it weighs; "" for a column that is no term
    letters : whether the term is a run of letters rather than whole words, (columns,)
    source : the name of the text column that it stands in; of a step that does not know how its
        columns are called, their positions
    """

    names: AnyArray
    letters: Bools
    source: AnyArray


@dataclass(frozen=True, eq=False)
class LinearTerms:
    """s_k(x) = ⟨w_k, φ(x)⟩ + b_k, where some of the columns of φ are terms of texts.

    Attributes
    ----------
    model : whose scores these are: the innermost learner, which is given φ(x)
    member : its name and its share of the weights, where it is one of several whose answers are
        combined; else None
    members : of how many
    calibrated : whether the answers of the whole are other than these scores say
    prepare : rows to φ(x), sparse or dense
    weights : (outputs, columns of φ)
    intercepts : (outputs,)
    terms : of the columns of φ
    """

    model: Model
    member: tuple[str, float] | None
    members: int
    calibrated: bool
    prepare: Callable[[RowsLike], Any]
    weights: Array
    intercepts: Array
    terms: Terms


def linear_terms(model: Model) -> LinearTerms | Lacking:
    """The model's scores as sums over terms; of a model that combines others, those of its linear
    member with the largest weight.
    """
    return _inside(model, ())


def _inside(model: Model, steps: tuple[Model, ...]) -> LinearTerms | Lacking:
    from surelearn.subject.registry import Around, Parts, described

    found = described(model)
    if isinstance(found, Lacking):
        return Lacking("terms", found.reason)
    if isinstance(found, Around):
        if found.target is not None:
            return Lacking("terms", "its target was prepared, so that scores are no predictions")
        return _inside(found.inside, (*steps, *(step for _, step in found.steps)))
    if not isinstance(found, Parts):
        return Lacking("terms", f"{type(model).__name__} predicts nothing")
    if not found.members:
        return _of_learner(model, steps)
    total = sum(abs(weight) for _, weight, _ in found.members) or 1.0
    for name, weight, one in sorted(found.members, key=lambda part: -abs(part[1])):
        made = _inside(one, steps)
        if isinstance(made, LinearTerms):
            if len(found.members) == 1:
                return replace(made, calibrated=True)
            member = (name, abs(weight) / total)
            return replace(made, member=member, members=len(found.members), calibrated=True)
    return Lacking("terms", "none of the models that it combines adds up terms")


def _of_learner(model: Model, steps: tuple[Model, ...]) -> LinearTerms | Lacking:
    from surelearn.subject.closing import closed_form
    from surelearn.subject.forms import LinearForm

    terms = _terms_after(steps)
    if isinstance(terms, Lacking):
        return terms
    closed = closed_form(model)
    if isinstance(closed, Lacking):
        return Lacking("terms", f"{type(model).__name__} does not add up terms")
    form, affine = closed.form, closed.prepare
    if not isinstance(form, LinearForm) or closed.head not in ("two", "each"):
        return Lacking("terms", f"the scores of {type(model).__name__} are no sums over terms")
    weights, intercepts = form.weights, form.intercepts
    if affine is not None:
        intercepts = intercepts + weights @ affine.shift
        weights = weights * affine.matrix if affine.matrix.ndim == 1 else weights @ affine.matrix
    if weights.shape[1] != terms.names.size:
        return Lacking("terms", "there is not one coefficient for each term")

    def prepare(X: RowsLike) -> Any:
        rows: Any = X
        for step in steps:
            rows = rows if _passes(step) else step.transform(rows)
        return rows

    return LinearTerms(model, None, 1, False, prepare, weights, intercepts, terms)


def _passes(step: Model) -> bool:
    return step is None or isinstance(step, str)


def _terms_after(steps: Sequence[Model]) -> Terms | Lacking:
    """What the columns are after steps in turn; the steps after one that counts terms must leave
    them in their places.
    """
    from surelearn.subject.registry import Around, Preparation, described

    found: Terms | None = None
    for step in steps:
        told = None if _passes(step) else described(step)
        if told is None:
            continue
        if isinstance(told, Around):  # a pipeline of steps alone
            inner = _terms_after((*(one for _, one in told.steps), told.inside))
            if found is None and isinstance(inner, Terms):
                found = inner
                continue
        elif isinstance(told, Preparation):
            if told.terms is not None:
                found = told.terms()
                continue
            if told.places is not None and found is None:
                found = _side_by_side(step, told)
                continue
            if told.columnwise or told.keeps_columns:
                continue
        if found is not None:
            return Lacking("terms", f"{type(step).__name__} mixes the terms")
    return NO_TERMS if found is None else found


def _side_by_side(step: Model, told: Preparation) -> Terms | None:
    """The terms of steps that are each given some of the columns."""
    known = getattr(step, "feature_names_in_", None)
    places = told.places or {}
    parts: list[tuple[slice, Terms]] = []
    for name, inner, columns in told.parts:
        one = NO_TERMS if _passes(inner) else _terms_after((inner,))
        if isinstance(one, Terms):
            parts.append((places[name], _named(one, _called(columns, known))))
    if not parts:
        return None
    width = max(place.stop for place in places.values())
    names, source = np.full(width, "", dtype=object), np.full(width, "", dtype=object)
    letters = np.zeros(width, dtype=bool)
    for place, one in parts:
        names[place], letters[place], source[place] = one.names, one.letters, one.source
    return Terms(names, letters, source)


def _named(terms: Terms, columns: list[str]) -> Terms:
    """Positions of columns as their names."""
    source = [columns[at] if isinstance(at, int) else at for at in terms.source.tolist()]
    return Terms(terms.names, terms.letters, np.array(source, dtype=object))


def _called(columns: Any, known: Sequence[str] | None) -> list[str]:
    """The names of the columns that a part is given, as its user stated them."""
    if isinstance(columns, slice):
        names = [] if known is None else list(known)
        chosen: list[Any] = names[columns] if names else []
    else:
        chosen = np.atleast_1d(np.asarray(columns, dtype=object)).tolist()
    if len(chosen) and all(isinstance(one, bool | np.bool_) for one in chosen):
        chosen = np.flatnonzero(chosen).tolist()
    whole = [isinstance(one, int | np.integer) for one in chosen]
    return [
        str(known[one]) if known is not None and number else str(one)
        for one, number in zip(chosen, whole, strict=True)
    ]
