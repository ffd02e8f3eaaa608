"""Columns prepared once per fold, for all candidates that prepare them alike.

Most of the time of a fit on few rows is spent before the learner: columns are selected, filled,
scaled, encoded, text is counted. A dozen candidates begin with one of four such preparations.
"""

from __future__ import annotations

import hashlib
import pickle
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, ClassVar

from surelearn.subject.refitting import take, take_for
from surelearn.types import Model, RowsLike


@dataclass(frozen=True)
class Alike:
    """Which rows these are (``comparison``, ``fold``), and which preparation of them."""

    comparison: str
    fold: int
    preparation: str


def groups_of(models: Mapping[str, Model]) -> dict[str, str]:
    """For each model, by its name, the preparation that it shares with another one; models that
    share none are not there.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from surelearn.selection.preparation import preparation
    >>> kinds = {"age": "number"}
    >>> models = {"bayes": make_pipeline(preparation(kinds), GaussianNB()),
    ...           "tree": make_pipeline(preparation(kinds), DecisionTreeClassifier()),
    ...           "alone": GaussianNB()}
    >>> groups = groups_of(models)
    >>> sorted(groups), groups["bayes"] == groups["tree"]
    (['bayes', 'tree'], True)
    """
    # which loads scikit-learn; `surelearn plan` has no use for it
    from surelearn.selection.preparation import reads_columns_alone

    firsts: dict[str, str] = {}
    for name, model in models.items():
        steps = _steps(model)
        if len(steps) > 1 and reads_columns_alone(steps[0][1]):
            firsts[name] = hashlib.sha256(pickle.dumps(steps[0][1])).hexdigest()
    counts = Counter(firsts.values())
    return {name: first for name, first in firsts.items() if counts[first] > 1}


def prepared(
    model: Model,
    X: RowsLike,
    train: Any,
    test: Any,
    alike: Alike | None,
) -> tuple[Model, Any, Any]:
    """What is still to be fitted, unfitted, and the rows to fit on and to predict as they reach
    it: the model itself and rows of X, unless it shares a preparation.
    """
    if alike is None:
        return model, take_for(model, X, train), take_for(model, X, test, train)
    rows = _Kept.rows(alike)
    if rows is None:
        rows = _prepare(model, X, train, test)
        _Kept.keep(alike, rows)
    # a learner may write to the rows that it was given
    return _rest(model), rows[0].copy(), rows[1].copy()


def forget() -> None:
    """Let go of the rows that are kept in this process."""
    _Kept.clear()


class _Kept:
    """The rows of one fold, by preparation; those of another fold take their place."""

    fold: ClassVar[tuple[str, int] | None] = None
    by_preparation: ClassVar[dict[str, tuple[Any, Any]]] = {}
    lock: ClassVar[Lock] = Lock()

    @classmethod
    def rows(cls, alike: Alike) -> tuple[Any, Any] | None:
        with cls.lock:
            if cls.fold != (alike.comparison, alike.fold):
                return None
            return cls.by_preparation.get(alike.preparation)

    @classmethod
    def keep(cls, alike: Alike, rows: tuple[Any, Any]) -> None:
        with cls.lock:
            if cls.fold != (alike.comparison, alike.fold):
                cls.fold = alike.comparison, alike.fold
                cls.by_preparation = {}
            cls.by_preparation[alike.preparation] = rows

    @classmethod
    def clear(cls) -> None:
        with cls.lock:
            cls.fold, cls.by_preparation = None, {}


def _prepare(model: Model, X: RowsLike, train: Any, test: Any) -> tuple[Any, Any]:
    from sklearn.base import clone

    first: Any = clone(_steps(model)[0][1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return first.fit_transform(take(X, train)), first.transform(take(X, test))


def _rest(model: Model) -> Model:
    """The pipeline without its first step; where one step is left, that alone."""
    from sklearn.pipeline import Pipeline

    steps = _steps(model)[1:]
    return steps[0][1] if len(steps) == 1 else Pipeline(list(steps))


def _steps(model: Model) -> Sequence[tuple[str, Model]]:
    from sklearn.pipeline import Pipeline

    return model.steps if type(model) is Pipeline else ()
