"""The audited model as attacks take it: numbers that move, in the user's columns and units; everything else keeps its value.

A row becomes (numbers that move, its own number, what the preparation made of all the rest). Where the preparation is affine
in the numbers, as scaling is, the learner behind it is scored, differentiated and certified through it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surelearn.adapters import ScoreFunction, predict_with, score_function, trusted
from surelearn.adapters.columns import column_names
from surelearn.adapters.forms import Affine, Array, LinearForm
from surelearn.adapters.known import known_as, replaced
from surelearn.adapters.modules import is_module
from surelearn.adapters.predicting import missing
from surelearn.attacks import Domain, domain
from surelearn.auditing.context import Unusable

RETURNED_NAN = "the model returned NaN for changed rows"
_SCALERS = ("StandardScaler", "RobustScaler", "MaxAbsScaler", "MinMaxScaler", "SimpleImputer", "Pipeline")


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
    """Rows of numbers with their domain, the model as a function of them, and what the model itself predicts for them."""

    f: ScoreFunction
    rows: Array
    where: Domain
    truth: Callable[[Array], np.ndarray]


def names_of(X: Any) -> tuple[str, ...]:
    """Of the columns of a table or an array."""
    if not hasattr(X, "columns") and (hasattr(X, "toarray") or len(np.shape(X)) != 2):
        raise Unusable("rows are neither a table nor an array with a row each")
    return column_names(X if hasattr(X, "columns") else np.asarray(X))


def numbers_of(X: Any, positions: Sequence[int]) -> Array:
    """Columns as numbers, (n, len(positions)); NaN where one is missing."""
    if not hasattr(X, "iloc"):
        return np.asarray(X)[:, list(positions)].astype(float)
    columns = [X.iloc[:, j].to_numpy(dtype=float, na_value=np.nan) for j in positions]
    return np.column_stack(columns) if columns else np.zeros((len(X), 0))


def moves_of(kinds: dict[str, str], seen: Any, attacked: Any) -> Moves:
    """Numbers with more than two values; units from the rows ``seen``, ranges from those and the ``attacked``."""
    names, kept = names_of(seen), []
    for j, name in enumerate(names):
        dtype = seen.dtypes.iloc[j] if hasattr(seen, "iloc") else np.asarray(seen).dtype
        if kinds.get(name, "number") == "number" and getattr(dtype, "kind", "O") in "iuf":
            values = numbers_of(seen, [j])
            kept += [j] if np.unique(values[np.isfinite(values)]).size > 2 else []
    if not kept:
        raise Unusable("no column holds numbers that could change a little; categories, text and dates are kept as they are")
    old, both = numbers_of(seen, kept), np.vstack([numbers_of(seen, kept), numbers_of(attacked, kept)])
    both, old = (np.where(np.isfinite(values), values, np.nan) for values in (both, old))
    whole = np.all(np.isnan(old) | (old == np.round(old)), axis=0)
    low, high, scale = np.nanmin(both, axis=0), np.nanmax(both, axis=0), np.nanstd(old, axis=0)
    return Moves(tuple(kept), tuple(names[j] for j in kept), low, high, scale, whole)


def staying(X: Any, moves: Moves, most: int = 3) -> str:
    """The columns that do not move, for people: "sex, town, age and 2 more"; "" where all of them move."""
    kept = [str(name) for j, name in enumerate(names_of(X)) if j not in moves.positions]
    return ", ".join(kept[:most]) + (f" and {len(kept) - most} more" if len(kept) > most else "")


def with_numbers(X: Any, at: np.ndarray, moves: Moves, numbers: Array) -> Any:
    """Rows ``at`` of a table or an array, their numbers that move replaced."""
    if not hasattr(X, "iloc"):
        changed = np.asarray(X)[at].astype(float)
        changed[:, list(moves.positions)] = numbers
        return changed
    frame = X.iloc[at].reset_index(drop=True)
    for j, position in enumerate(moves.positions):
        frame.isetitem(position, numbers[:, j])
    return frame


def predicting(model: Any, labels: Any = None) -> Callable[[Any], np.ndarray]:
    """The model's own predictions; ``labels`` name the outputs of a torch module, in their order."""
    predict = predict_with(model, None if labels is None else tuple(np.asarray(labels).tolist()))
    if not is_module(model):
        return lambda X: np.asarray(predict(X))
    return lambda X: np.asarray(predict(np.asarray(X, dtype=float)))


def view_of(model: Any, X: Any, moves: Moves, labels: Any = None) -> View:
    """The model and rows ``X`` as attacks take them; a missing number is written as the lowest and has no effect."""
    numbers = numbers_of(X, moves.positions)
    rows: Array = np.column_stack([np.where(np.isfinite(numbers), numbers, moves.low), np.arange(len(X), dtype=float)])
    truth = _decoding(predicting(model, labels), X, moves, numbers)
    first, rest, cut = _split(model)
    try:
        prepared, slopes = _prepared(first, X, moves)
    except Unusable as reason:
        f = ScoreFunction(type(rest).__name__, _no_scores, truth, None, why_not=str(reason))
        return View(f, rows, _domain(moves, 0), truth)
    f = trusted(score_function(rest, classes=labels if is_module(rest) else None), prepared)
    f = _through(f if cut is None else _shifted(f, rest, cut), rest, slopes)
    if hasattr(rest, "feature_names_in_") and f.closed is None:
        f = replace(f, predict=truth)
    rows = np.column_stack([rows, prepared - rows[:, :-1] @ slopes.T])
    return View(f, rows, _domain(moves, prepared.shape[1]), truth)


def _domain(moves: Moves, others: int) -> Domain:
    still = np.full(1 + others, np.inf)
    return domain(
        [*moves.names, "the row's number", *(f"prepared {j}" for j in range(others))],
        low=np.concatenate([moves.low, -still]),
        high=np.concatenate([moves.high, still]),
        scale=np.concatenate([moves.scale, np.zeros(len(still))]),
    )


def _decoding(predict: Callable[[Any], np.ndarray], X: Any, moves: Moves, numbers: Array) -> Callable[[Array], np.ndarray]:
    """From rows of numbers back to the user's table, and what the model says of it."""
    count = len(moves.positions)

    def truth(Z: Array) -> np.ndarray:
        at = Z[:, count].astype(int)
        said = predict(with_numbers(X, at, moves, np.where(np.isfinite(numbers[at]), Z[:, :count], numbers[at])))
        if missing(said).any():
            raise Unusable(RETURNED_NAN)
        return said

    return truth


def _no_scores(X: Any) -> Any:  # noqa: ARG001
    raise ValueError("only predictions are known of this model")


def _split(model: Any) -> tuple[Any, Any, tuple[Any, float] | None]:
    """The transformer of columns, or None; what comes after it; and (class, threshold), or None."""
    cut = None
    if _cuts_a_probability(model):
        cut, model = (model.pos_label, float(model.threshold)), model.estimator_
    whole = known_as(model, "sklearn.pipeline") == "Pipeline" and not replaced(model)
    if whole and len(model.steps) > 1 and known_as(model[0], "sklearn.compose") == "ColumnTransformer":
        return model[0], model[1:] if len(model.steps) > 2 else model[-1], cut
    return None, model, cut


def _cuts_a_probability(model: Any) -> bool:
    if known_as(model, "sklearn.model_selection") != "FixedThresholdClassifier" or replaced(model):
        return False
    return model.response_method == "predict_proba" and model.pos_label is not None and not isinstance(model.threshold, str)


def _prepared(first: Any, X: Any, moves: Moves) -> tuple[Array, Array]:
    """What the learner sees of the rows (n, k), and how it moves with the numbers (k, moves)."""
    if first is None:
        try:
            found = np.asarray(X, dtype=float)
        except (TypeError, ValueError):
            raise Unusable("its rows hold more than numbers, and how they are prepared is not known here") from None
        slopes = np.zeros((found.shape[1], len(moves.positions)))
        slopes[list(moves.positions), range(len(moves.positions))] = 1.0
    else:
        for name, step, columns in first.transformers_:
            if _touches(columns, moves, names_of(X)) and not _scales(step):
                raise Unusable(f"how the step {name!r} of its preparation moves with a number is not known here")
        found = _floats(first.transform(X))
        low, high = (_moved(X, moves, ends) for ends in (moves.low, moves.high))
        slopes = (_floats(first.transform(high)) - _floats(first.transform(low))).T / (moves.high - moves.low)
    if not np.isfinite(found).all():
        raise Unusable("its learner is given missing values, which do not move by a little")
    return found, slopes


def _moved(X: Any, moves: Moves, ends: Array) -> Any:
    """The first row once for every column that moves, complete, that column at its end."""
    count = len(moves.positions)
    numbers = np.where(np.eye(count, dtype=bool), ends, moves.low)
    return with_numbers(X, np.zeros(count, dtype=int), moves, numbers)


def _floats(prepared: Any) -> Array:
    try:
        return np.asarray(prepared.toarray() if hasattr(prepared, "toarray") else prepared, dtype=float)
    except (TypeError, ValueError):
        raise Unusable("its learner is given categories as they are, and a gradient is about numbers alone") from None


def _touches(columns: Any, moves: Moves, names: tuple[str, ...]) -> bool:
    """Whether a step reads a column that moves; True where that cannot be told."""
    if not isinstance(columns, (list, np.ndarray)) or np.asarray(columns).dtype.kind == "b":
        return True
    chosen = {names[c] if isinstance(c, (int, np.integer)) else str(c) for c in columns}
    return bool(chosen & set(moves.names))


def _scales(step: Any) -> bool:
    """Whether every present number becomes a multiple of itself plus a constant."""
    name = known_as(step, "sklearn.preprocessing", "sklearn.impute", "sklearn.pipeline")
    if isinstance(step, str) or (name == "FunctionTransformer" and step.func is None):
        return True
    if name not in _SCALERS or getattr(step, "clip", False) or replaced(step):
        return False
    if name == "SimpleImputer":
        return step.missing_values is np.nan or step.missing_values != step.missing_values
    return all(_scales(part) for _, part in step.steps) if name == "Pipeline" else True


def _through(f: ScoreFunction, rest: Any, slopes: Array) -> ScoreFunction:
    """The learner's scores, labels and gradients as functions of the rows of a `View`."""
    k, count = slopes.shape
    apart = f.apart

    def inner(Z: Array) -> Array:
        return Z[:, :count] @ slopes.T + Z[:, count + 1 :]

    def pullback(Z: Array) -> Any:
        scores, back = f.pullback(inner(Z))  # type: ignore[misc]

        def whole(weights: Any) -> Any:
            found = back(weights)
            return np.column_stack([found @ slopes, np.zeros((len(found), 1 + k))])

        return scores, whole

    def labels(Z: Array) -> np.ndarray:
        if f.closed is not None and f.exact and f.classes is not None:
            return np.asarray(f.classes)[f.scores(inner(Z)).argmax(axis=1)]
        return np.asarray(f.predict(inner(Z)))

    closed = f.closed
    if closed is not None:
        whole = Affine(np.hstack([slopes, np.zeros((k, 1)), np.eye(k)]), np.zeros(k))
        closed = replace(closed, prepare=whole if closed.prepare is None else whole.then(closed.prepare))
    return replace(
        f,
        name=type(_learner(rest)).__name__,
        scores=lambda Z: f.scores(inner(Z)),
        predict=labels,
        pullback=None if f.pullback is None else pullback,
        closed=closed,
        apart=None if apart is None else lambda Z: apart(inner(Z)),
    )


def _learner(rest: Any) -> Any:
    return rest.steps[-1][1] if isinstance(getattr(rest, "steps", None), list) else rest


def _shifted(f: ScoreFunction, rest: Any, cut: tuple[Any, float]) -> ScoreFunction:
    """With a decision threshold: a shift of a logistic regression's score; else by probabilities alone."""
    positive, threshold = cut
    classes = [] if f.classes is None else list(f.classes)
    at = classes.index(positive)
    closed, pull, form = f.closed, f.pullback, None if f.closed is None else f.closed.form
    logistic = known_as(_learner(rest), "sklearn.linear_model", "surelearn.linear") == "LogisticRegression"
    if closed is None or pull is None or closed.head != "two" or not (logistic and isinstance(form, LinearForm)):
        other = classes[1 - at]

        def labels(X: Any) -> np.ndarray:
            return np.where(rest.predict_proba(X)[:, at] >= threshold, positive, other)

        why = "its answers follow a threshold on a probability that has no gradient known here"
        return replace(f, predict=labels, pullback=None, closed=None, why_not=f.why_not or why)
    shift = np.array([0.0, np.log((1 - threshold) / threshold) * (1.0 if at == 1 else -1.0)])
    return replace(
        f,
        scores=lambda X: f.scores(X) + shift,
        pullback=lambda X: (pull(X)[0] + shift, pull(X)[1]),
        closed=replace(closed, form=replace(form, intercepts=form.intercepts + shift[1])),
    )
