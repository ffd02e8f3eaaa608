"""Models that add up the terms of texts: each term's coefficient, and which text column it stands in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surelearn.lacking import Lacking
from surelearn.types import AnyArray, Array, Bools, Ints, Model, RowsLike

if TYPE_CHECKING:
    from surelearn.subject.registry import Preparation

NO_TERMS = Lacking("terms", "no step hands the learner the terms of texts, a column each")


@dataclass(frozen=True, eq=False)
class WordShares:
    """Which words the runs of letters of texts lie in: of what φ_column says of a row, ``share``
    belongs to a word. Shares of a row and a column sum to 1, but for runs outside of words.

    Attributes
    ----------
    row, column, word : (entries,); positions of words in ``words``
    share : (entries,)
    words, source : (words,), what they are and the text column that they stand in
    """

    row: Ints
    column: Ints
    word: Ints
    share: Array
    words: AnyArray
    source: AnyArray


@dataclass(frozen=True, eq=False)
class Terms:
    """What the columns are that a step makes of texts.

    Attributes
    ----------
    names : of each column, the term that it weighs; "" for a column that is no term
    letters : whether the term is a run of letters rather than whole words, (columns,)
    source : the name of the text column that it stands in; of a step that does not know how its
        columns are called, their positions
    in_words : from the rows that the step is given to the words that runs of letters lie in; None:
        that is not known
    """

    names: AnyArray
    letters: Bools
    source: AnyArray
    in_words: Callable[[RowsLike], WordShares] | None = None


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
        return _through(steps, X)

    return LinearTerms(model, None, 1, False, prepare, weights, intercepts, terms)


def _passes(step: Model) -> bool:
    return step is None or isinstance(step, str)


def _terms_after(steps: Sequence[Model]) -> Terms | Lacking:
    """What the columns are after steps in turn; the steps after one that counts terms must leave
    them in their places.
    """
    from surelearn.subject.registry import Around, Preparation, described

    found: Terms | None = None
    for at, step in enumerate(steps):
        told = None if _passes(step) else described(step)
        if told is None:
            continue
        if isinstance(told, Around):  # a pipeline of steps alone
            inner = _terms_after((*(one for _, one in told.steps), told.inside))
            if found is None and isinstance(inner, Terms):
                found = _after(steps[:at], inner)
                continue
        elif isinstance(told, Preparation):
            if told.terms is not None:
                found = _after(steps[:at], told.terms())
                continue
            if told.places is not None and found is None:
                inner = _side_by_side(step, told)
                found = None if inner is None else _after(steps[:at], inner)
                continue
            if told.columnwise or told.keeps_columns:
                continue
        if found is not None:
            return Lacking("terms", f"{type(step).__name__} mixes the terms")
    return NO_TERMS if found is None else found


def _after(steps: Sequence[Model], terms: Terms) -> Terms:
    """Terms of a step that other steps prepare rows for."""
    inner = terms.in_words
    if inner is None or all(_passes(step) for step in steps):
        return terms

    def in_words(X: RowsLike) -> WordShares:
        return inner(_through(steps, X))

    return replace(terms, in_words=in_words)


def _through(steps: Sequence[Model], X: RowsLike) -> Any:
    rows: Any = X
    for step in steps:
        rows = rows if _passes(step) else step.transform(rows)
    return rows


def _side_by_side(step: Model, told: Preparation) -> Terms | None:
    """The terms of steps that are each given some of the columns."""
    known = getattr(step, "feature_names_in_", None)
    places = told.places or {}
    parts: list[tuple[slice, Any, Terms]] = []
    for name, inner, columns in told.parts:
        one = NO_TERMS if _passes(inner) else _terms_after((inner,))
        if isinstance(one, Terms):
            called = _called(columns, known)
            source = np.array([_column(at, called) for at in one.source.tolist()], dtype=object)
            parts.append((places[name], columns, replace(one, source=source)))
    if not parts:
        return None
    width = max(place.stop for place in places.values())
    names, source = np.full(width, "", dtype=object), np.full(width, "", dtype=object)
    letters = np.zeros(width, dtype=bool)
    for place, _, one in parts:
        names[place], letters[place], source[place] = one.names, one.letters, one.source

    def in_words(X: RowsLike) -> WordShares:
        found = [
            _moved(one.in_words(_chosen(X, columns)), place.start, _called(columns, known))
            for place, columns, one in parts
            if one.in_words is not None
        ]
        return _joined(found)

    some = any(one.in_words is not None for _, _, one in parts)
    return Terms(names, letters, source, in_words if some else None)


def _chosen(X: RowsLike, columns: Any) -> Any:
    """Some columns of rows, as a column transformer passes them on."""
    table: Any = X
    if not hasattr(table, "iloc"):
        return np.asarray(table, dtype=object)[:, columns]
    by_name = isinstance(columns, str) or all(isinstance(one, str) for one in columns)
    return table.loc[:, columns] if by_name else table.iloc[:, columns]


def _moved(shares: WordShares, start: int, columns: list[str]) -> WordShares:
    """Shares whose columns begin at another place, with the names of text columns."""
    source = [_column(at, columns) for at in shares.source.tolist()]
    source = np.array(source, dtype=object)
    return replace(shares, column=shares.column + start, source=source)


def _joined(parts: Sequence[WordShares]) -> WordShares:
    """The shares of several steps."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(part.words.size for part in parts)])
    return WordShares(
        np.concatenate([part.row for part in parts]),
        np.concatenate([part.column for part in parts]),
        np.concatenate([part.word + at for part, at in zip(parts, starts, strict=False)]),
        np.concatenate([part.share for part in parts]),
        np.concatenate([part.words for part in parts]),
        np.concatenate([part.source for part in parts]),
    )


def _column(at: Any, columns: list[str]) -> Any:
    """A position of a column as its name."""
    return columns[at] if isinstance(at, int) else at


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
