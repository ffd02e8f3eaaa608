"""A model of tables as attacks and radii take it: numbers that move, in the user's columns and
units; all else stays.

A row becomes (numbers that move, its own number, what the preparation made of all the rest). Where
the preparation is affine in the numbers, as scaling is, the learner behind it is scored,
differentiated and certified through it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surelearn.attacks import Domain, domain
from surelearn.lacking import Lacking
from surelearn.robust.certified import Radii, RadiusNorm, radii_of
from surelearn.subject import (
    Closed,
    Objective,
    ScoreFunction,
    predict_with,
    score_function,
    subject_of,
    trusted,
)
from surelearn.subject.forms import Affine, Array, LinearForm
from surelearn.subject.predicting import missing
from surelearn.subject.refitting import column_names, take
from surelearn.subject.registry import Around, DecisionThreshold, Preparation, described
from surelearn.subject.torch_modules import is_module
from surelearn.types import Labels, Model, RowsLike, TableRows

RETURNED_NAN = "the model returned NaN for changed rows"
_SCALERS = (
    "StandardScaler",
    "RobustScaler",
    "MaxAbsScaler",
    "MinMaxScaler",
    "SimpleImputer",
    "Pipeline",
)


@dataclass(frozen=True, eq=False)
class Moves:
    """The columns that move.

    Attributes
    ----------
    positions, names : of the columns
    low, high, scale : the range seen, and the standard deviation
    whole : where only whole numbers were seen
    """

    positions: tuple[int, ...]
    names: tuple[str, ...]
    low: Array
    high: Array
    scale: Array
    whole: np.ndarray

    def only(self, which: np.ndarray) -> Moves:
        """Some of them."""
        at = np.flatnonzero(which)
        picked = tuple(self.positions[j] for j in at), tuple(self.names[j] for j in at)
        return Moves(*picked, self.low[at], self.high[at], self.scale[at], self.whole[at])


@dataclass(frozen=True, eq=False)
class View:
    """Rows of numbers with their domain, the model as a function of them, and what the model
    itself predicts for them.
    """

    f: ScoreFunction
    rows: Array
    where: Domain
    truth: Watched


class Watched:
    """What a model answers for changed rows; ``lacking`` says so, once an answer was NaN.

    An attack asks in its own loop, which no answer may stop: whoever started it looks at
    ``lacking`` afterwards.
    """

    def __init__(self, predict: Callable[[Array], np.ndarray]) -> None:
        self.predict = predict
        self.lacking: Lacking | None = None

    def __call__(self, Z: Array) -> np.ndarray:
        """One answer per row of ``Z``."""
        said = self.predict(Z)
        if missing(said).any():
            self.lacking = Lacking("answers", RETURNED_NAN)
        return said


def names_of(X: TableRows) -> tuple[str, ...]:
    """Of the columns of a table or an array."""
    return column_names(X if hasattr(X, "columns") else np.asarray(X))


def numbers_of(X: TableRows, positions: Sequence[int]) -> Array:
    """Columns as numbers, (n, len(positions)); NaN where one is missing."""
    if not hasattr(X, "iloc"):
        return np.asarray(X)[:, list(positions)].astype(float)
    frame: Any = X
    columns = [frame.iloc[:, j].to_numpy(dtype=float, na_value=np.nan) for j in positions]
    return np.column_stack(columns) if columns else np.zeros((len(X), 0))


def moves_of(kinds: Mapping[str, str], seen: TableRows, attacked: TableRows) -> Moves | Lacking:
    """Numbers with more than two values; units from the rows ``seen``, ranges from those and
    the ``attacked``.
    """
    for rows in (seen, attacked):
        if not hasattr(rows, "columns") and (hasattr(rows, "toarray") or len(np.shape(rows)) != 2):
            shape = "sparse" if hasattr(rows, "toarray") else f"of shape {np.shape(rows)[1:]}"
            why = (
                f"each row is {shape}, and small changes are tried on rows with one number per"
                " column"
            )
            return Lacking("columns that move", why)
    if not hasattr(seen, "columns") and np.asarray(seen).dtype.kind in "iu":
        why = (
            "rows are arrays of whole numbers, such as tokens, which do not change by a little;"
            " numbers that were measured go in an array of floats"
        )
        return Lacking("columns that move", why)
    table: Any = seen
    names, kept = names_of(seen), []
    for j, name in enumerate(names):
        dtype = table.dtypes.iloc[j] if hasattr(table, "iloc") else np.asarray(seen).dtype
        if kinds.get(name, "number") == "number" and getattr(dtype, "kind", "O") in "iuf":
            values = numbers_of(seen, [j])
            kept += [j] if np.unique(values[np.isfinite(values)]).size > 2 else []
    if not kept:
        why = (
            "no column holds numbers that could change a little; categories, text and dates are"
            " kept as they are"
        )
        return Lacking("columns that move", why)
    old, both = (
        numbers_of(seen, kept),
        np.vstack([numbers_of(seen, kept), numbers_of(attacked, kept)]),
    )
    both, old = (np.where(np.isfinite(values), values, np.nan) for values in (both, old))
    whole = np.all(np.isnan(old) | (old == np.round(old)), axis=0)
    low, high, scale = np.nanmin(both, axis=0), np.nanmax(both, axis=0), np.nanstd(old, axis=0)
    return Moves(tuple(kept), tuple(names[j] for j in kept), low, high, scale, whole)


def staying(X: TableRows, moves: Moves, most: int = 3) -> str:
    """The columns that do not move, for people: "sex, town, age and 2 more"; "" where all of
    them move.
    """
    kept = [str(name) for j, name in enumerate(names_of(X)) if j not in moves.positions]
    return ", ".join(kept[:most]) + (f" and {len(kept) - most} more" if len(kept) > most else "")


def with_numbers(X: TableRows, at: np.ndarray, moves: Moves, numbers: Array) -> Any:
    """Rows ``at`` of a table or an array, their numbers that move replaced."""
    if not hasattr(X, "iloc"):
        changed = np.asarray(X)[at].astype(float)
        changed[:, list(moves.positions)] = numbers
        return changed
    frame = take(X, at).reset_index(drop=True)
    for j, position in enumerate(moves.positions):
        frame.isetitem(position, numbers[:, j])
    return frame


def predicting(model: Model, labels: Labels = None) -> Callable[[Any], np.ndarray]:
    """The model's own predictions; ``labels`` name the outputs of a torch module, in their
    order.
    """
    predict = predict_with(model, None if labels is None else tuple(np.asarray(labels).tolist()))
    if not is_module(model):
        return lambda X: np.asarray(predict(X))
    return lambda X: np.asarray(predict(np.asarray(X, dtype=float)))


def view_of(model: Model, X: TableRows, moves: Moves, labels: Labels = None) -> View:
    """The model and rows ``X`` as attacks take them; a missing number is written as the lowest
    and has no effect.
    """
    numbers = numbers_of(X, moves.positions)
    rows: Array = np.column_stack(
        [np.where(np.isfinite(numbers), numbers, moves.low), np.arange(len(X), dtype=float)]
    )
    truth = _decoding(predicting(model, labels), X, moves, numbers)
    first, rest, cut = _split(model)
    found = _prepared(first, X, moves)
    if isinstance(found, Lacking):
        f = ScoreFunction(subject_of(rest).kind, _no_scores, truth, None, found)
        return View(f, rows, _domain(moves, 0), truth)
    prepared, slopes = found
    f = trusted(score_function(rest, classes=labels if is_module(rest) else None), prepared)
    f = _through(f if cut is None else _shifted(f, rest, cut), rest, slopes)
    if hasattr(rest, "feature_names_in_") and isinstance(f.closed, Lacking):
        f = replace(f, predict=truth)
    rows = np.column_stack([rows, prepared - rows[:, :-1] @ slopes.T])
    return View(f, rows, _domain(moves, prepared.shape[1]), truth)


def table_radii(
    model: Model,
    X: TableRows,
    *,
    seen: TableRows | None = None,
    kinds: Mapping[str, str] | None = None,
    norm: RadiusNorm = "linf",
    classes: Labels = None,
) -> Radii | Lacking:
    """How far the numbers of every row of a table may move without the prediction changing, in
    standard deviations.

    `certified_radii` for a model of whole tables: a pipeline that prepares columns apart
    (``ColumnTransformer``), scales numbers and encodes categories, also with a decision threshold.
    Numbers with more than two values move; categories, dates, words and flags stay as they are.

    Parameters
    ----------
    model : a fitted classifier or pipeline
    X : rows, a data frame or an array, as the model takes them
    seen : rows whose standard deviations are the units, and whose range the numbers stay in; X
        unless told. Claims about new rows need rows that are not X
    kinds : of columns, by name; only those called "number", or not named, move
    norm : "linf", "l2" or "l1" of the changes in those units
    classes : the labels in the order of the outputs of a torch module

    Returns
    -------
    the radii, or `Lacking` with the reason why nothing is proved

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import OneHotEncoder, StandardScaler
    >>> X = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0, 60.0, 70.0], "town": list("aababb")})
    >>> y = [0, 0, 0, 1, 1, 1]
    >>> columns = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), ["town"]))
    >>> model = make_pipeline(columns, LogisticRegression()).fit(X, y)
    >>> table_radii(model, X).values.round(2)
    array([1.47, 0.88, 0.29, 0.29, 0.88, 1.47])
    """
    moves = moves_of({} if kinds is None else kinds, X if seen is None else seen, X)
    if isinstance(moves, Lacking):
        return moves
    view = view_of(model, X, moves, classes)
    found = radii_of(replace(view.f, predict=view.truth), view.rows, norm=norm, where=view.where)
    if view.truth.lacking is not None:
        return Lacking("radius", view.truth.lacking.reason)
    if isinstance(found, Lacking) and isinstance(view.f.pullback, Lacking):
        return Lacking("radius", view.f.pullback.reason)
    return found


def _domain(moves: Moves, others: int) -> Domain:
    still = np.full(1 + others, np.inf)
    return domain(
        [*moves.names, "the row's number", *(f"prepared {j}" for j in range(others))],
        low=np.concatenate([moves.low, -still]),
        high=np.concatenate([moves.high, still]),
        scale=np.concatenate([moves.scale, np.zeros(len(still))]),
    )


def _decoding(
    predict: Callable[[Any], np.ndarray], X: TableRows, moves: Moves, numbers: Array
) -> Watched:
    """From rows of numbers back to the user's table, and what the model says of it."""
    count = len(moves.positions)

    def truth(Z: Array) -> np.ndarray:
        at = Z[:, count].astype(int)
        return predict(
            with_numbers(
                X, at, moves, np.where(np.isfinite(numbers[at]), Z[:, :count], numbers[at])
            )
        )

    return Watched(truth)


def _no_scores(X: Array) -> Any:  # noqa: ARG001
    raise ValueError("only predictions are known of this model")


def _split(model: Model) -> tuple[Any, Any, DecisionThreshold | None]:
    """The transformer of columns, or None; what comes after it; and the threshold on a
    probability, or None.
    """
    around, cut = described(model), None
    if (
        isinstance(around, Around)
        and around.cut is not None
        and around.cut.response == "predict_proba"
    ):
        cut, model = around.cut, around.inside
        around = described(model)
    if isinstance(around, Around) and around.steps:
        first = described(around.steps[0][1])
        if isinstance(first, Preparation) and first.parts:
            return around.steps[0][1], model[1:] if len(around.steps) > 1 else around.inside, cut
    return None, model, cut


def _prepared(first: Model | None, X: TableRows, moves: Moves) -> tuple[Array, Array] | Lacking:
    """What the learner sees of the rows (n, k), and how it moves with the numbers (k, moves)."""
    if first is None:
        found = _floats(X)
        if found is None:
            return Lacking(
                "gradient",
                "its rows hold more than numbers, and how they are prepared is not known here",
            )
        slopes = np.zeros((found.shape[1], len(moves.positions)))
        slopes[list(moves.positions), range(len(moves.positions))] = 1.0
    else:
        made = described(first)
        for name, step, columns in made.parts if isinstance(made, Preparation) else ():
            if _touches(columns, moves, names_of(X)) and not _scales(step):
                return Lacking(
                    "gradient",
                    f"how the step {name!r} of its preparation moves with a number is not known"
                    " here",
                )
        low, high = (_moved(X, moves, ends) for ends in (moves.low, moves.high))
        found, bottom, top = (_floats(first.transform(part)) for part in (X, low, high))
        if found is None or bottom is None or top is None:
            why = (
                "its learner is given categories as they are, and a gradient is about numbers alone"
            )
            return Lacking("gradient", why)
        slopes = (top - bottom).T / (moves.high - moves.low)
    if not np.isfinite(found).all():
        return Lacking(
            "gradient", "its learner is given missing values, which do not move by a little"
        )
    return found, slopes


def _moved(X: TableRows, moves: Moves, ends: Array) -> Any:
    """The first row once for every column that moves, complete, that column at its end."""
    count = len(moves.positions)
    numbers = np.where(np.eye(count, dtype=bool), ends, moves.low)
    return with_numbers(X, np.zeros(count, dtype=int), moves, numbers)


def _floats(prepared: RowsLike) -> Array | None:
    """Rows as dense numbers; None where they are not."""
    try:
        table: Any = prepared
        return np.asarray(table.toarray() if hasattr(table, "toarray") else table, dtype=float)
    except (TypeError, ValueError):
        return None


def _touches(columns: Any, moves: Moves, names: tuple[str, ...]) -> bool:
    """Whether a step reads a column that moves; True where that cannot be told."""
    if not isinstance(columns, (list, np.ndarray)) or np.asarray(columns).dtype.kind == "b":
        return True
    chosen = {names[c] if isinstance(c, (int, np.integer)) else str(c) for c in columns}
    return bool(chosen & set(moves.names))


def _scales(step: Model) -> bool:
    """Whether every present number becomes a multiple of itself plus a constant."""
    if isinstance(step, str):
        return True
    found = described(step)
    if isinstance(found, Around):  # a pipeline of steps
        return (
            found.cut is None
            and found.target is None
            and all(map(_scales, (*(step for _, step in found.steps), found.inside)))
        )
    return isinstance(found, Preparation) and found.columnwise


def _through(f: ScoreFunction, rest: Model, slopes: Array) -> ScoreFunction:
    """The learner's scores, labels and gradients as functions of the rows of a `View`."""
    k, count = slopes.shape
    apart = f.apart

    def inner(Z: Array) -> Array:
        return Z[:, :count] @ slopes.T + Z[:, count + 1 :]

    def pullback(Z: Array) -> Any:
        scores, back = f.pullback(inner(Z))  # type: ignore[misc]

        def whole(weights: Array) -> Any:
            found = back(weights)
            return np.column_stack([found @ slopes, np.zeros((len(found), 1 + k))])

        return scores, whole

    def labels(Z: Array) -> np.ndarray:
        if not isinstance(f.closed, Lacking) and f.exact and f.classes is not None:
            return np.asarray(f.classes)[f.scores(inner(Z)).argmax(axis=1)]
        return np.asarray(f.predict(inner(Z)))

    closed = f.closed
    if not isinstance(closed, Lacking):
        whole = Affine(np.hstack([slopes, np.zeros((k, 1)), np.eye(k)]), np.zeros(k))
        closed = replace(
            closed, prepare=whole if closed.prepare is None else whole.then(closed.prepare)
        )
    return replace(
        f,
        name=subject_of(rest).last.kind,
        scores=lambda Z: f.scores(inner(Z)),
        predict=labels,
        pullback=f.pullback if isinstance(f.pullback, Lacking) else pullback,
        closed=closed,
        apart=None if apart is None else lambda Z: apart(inner(Z)),
    )


def _shifted(f: ScoreFunction, rest: Model, cut: DecisionThreshold) -> ScoreFunction:
    """With a decision threshold: a shift of a logistic regression's score; else by
    probabilities alone.
    """
    classes = [] if f.classes is None else list(f.classes)
    at = classes.index(cut.positive)
    closed, pull, objective = f.closed, f.pullback, subject_of(rest).objective
    form = closed.form if isinstance(closed, Closed) and closed.head == "two" else None
    logistic = isinstance(objective, Objective) and objective.loss == "logistic"
    if (
        isinstance(pull, Lacking)
        or isinstance(closed, Lacking)
        or not isinstance(form, LinearForm)
        or not logistic
    ):
        other = classes[1 - at]

        def labels(X: TableRows) -> np.ndarray:
            return np.where(rest.predict_proba(X)[:, at] >= cut.threshold, cut.positive, other)

        why = "its answers follow a threshold on a probability that has no gradient known here"
        lost = pull if isinstance(pull, Lacking) else Lacking("gradient", why)
        return replace(f, predict=labels, pullback=lost, closed=Lacking("closed form", lost.reason))
    shift = np.array(
        [0.0, np.log((1 - cut.threshold) / cut.threshold) * (1.0 if at == 1 else -1.0)]
    )
    return replace(
        f,
        scores=lambda X: f.scores(X) + shift,
        pullback=lambda X: (pull(X)[0] + shift, pull(X)[1]),
        closed=replace(closed, form=replace(form, intercepts=form.intercepts + shift[1])),
    )
