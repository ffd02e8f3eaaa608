"""Comparing candidates on rows they were not fitted on: holdout, k-fold, repeated,
leave-one-out and forward chaining.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

from surelearn.jobs import seed_for
from surelearn.selection.prepared import Alike, prepared
from surelearn.selection.split import first_times
from surelearn.subject.refitting import fit_quietly
from surelearn.types import AnyArray, Array, Model, RowsLike

Positions: TypeAlias = npt.NDArray[np.intp]
Pairs: TypeAlias = list[tuple[Positions, Positions]]  # rows to fit on, rows to test on


class FoldOutcome(TypedDict):
    """What a fit predicts of rows it has not seen: plain, so that a journal keeps it.

    ``scores`` are probabilities, (n, classes), in the order of ``classes``, where the model has them.
    """

    predictions: AnyArray
    scores: NotRequired[Array]
    classes: NotRequired[AnyArray]


@dataclass(frozen=True, kw_only=True)
class Resampling:
    """How rows are taken in turn: "holdout" (given rows), "k-fold" (repeated), "leave-one-out",
    or "forward" in time.
    """

    kind: Literal["holdout", "k-fold", "leave-one-out", "forward"] = "k-fold"
    folds: int = 10
    repeats: int = 1

    def __str__(self) -> str:
        if self.kind == "forward":
            return f"forward chaining in {self.folds} steps"
        if self.kind != "k-fold":
            return self.kind.replace("holdout", "held-out select rows")
        times = {1: "", 2: "twice repeated "}.get(self.repeats, f"{self.repeats} times repeated ")
        return f"{times}{self.folds}-fold cross-validation"


def default_resampling(n: int) -> Resampling:
    """Five folds, three times repeated where there are few rows.

    Examples
    --------
    >>> [str(default_resampling(n)) for n in (100, 1000)]
    ['3 times repeated 5-fold cross-validation', '5-fold cross-validation']
    """
    return Resampling(folds=5, repeats=3 if n < 300 else 1)


def resample(
    how: Resampling,
    y: npt.ArrayLike,
    *,
    groups: npt.ArrayLike | None = None,
    stratify: bool = False,
    random_state: int = 0,
) -> Pairs:
    """Pairs of fitting and testing positions; groups stay whole, classes are spread evenly if
    ``stratify``.
    """
    from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, StratifiedKFold

    y = np.asarray(y)
    if how.kind == "leave-one-out":
        return list(LeaveOneOut().split(y))
    if how.kind == "holdout":
        raise ValueError(
            "a holdout's rows are given, not drawn: see surelearn.selection.split_rows"
        )
    if how.kind == "forward":
        raise ValueError(
            "forward chaining needs the time of each row: see"
            " surelearn.selection.cross_validation.forward"
        )
    distinct = np.unique(groups).size if groups is not None else y.size
    if not 2 <= how.folds <= distinct:
        raise ValueError(
            f"folds must lie between 2 and {distinct}, the number of"
            f" {'groups' if groups is not None else 'rows'}"
        )
    if stratify:
        stratify = groups is None and np.unique(y, return_counts=True)[1].min() >= how.folds
    pairs: Pairs = []
    for repeat in range(how.repeats):
        seed = seed_for(f"fold/{repeat}", random_state)
        if groups is not None:
            pairs += list(
                GroupKFold(how.folds, shuffle=True, random_state=seed).split(
                    y, y, np.asarray(groups)
                )
            )
        else:
            kind = StratifiedKFold if stratify else KFold
            pairs += list(
                kind(how.folds, shuffle=True, random_state=seed).split(np.zeros(y.size), y)
            )
    return pairs


def forward(time: npt.ArrayLike, folds: int, groups: npt.ArrayLike | None = None) -> Pairs:
    """Pairs of fitting and testing positions in the order of time: each time fit on all rows
    before, test on the next ones.

    Rows of the same time are never on both sides. With groups, those that begin in a step are
    tested on, with all their rows: no group is on both sides, either.

    Examples
    --------
    >>> [(train.tolist(), test.tolist()) for train, test in forward([1, 2, 2, 3, 4, 5], 2)]
    [([0], [1, 2, 3]), ([0, 1, 2, 3], [4, 5])]
    """
    time = np.asarray(time)
    unit_of_row = (
        np.arange(time.size)
        if groups is None
        else np.unique(np.asarray(groups).astype(str), return_inverse=True)[1]
    )
    begins = first_times(time, unit_of_row)
    ordered = np.sort(begins)
    starts = np.unique(ordered[np.arange(1, folds + 1) * ordered.size // (folds + 1)])
    starts = starts[starts > ordered[0]]
    step = np.searchsorted(starts, begins, side="right")[unit_of_row]
    return [
        (np.flatnonzero(time < start), np.flatnonzero(step == i + 1))
        for i, start in enumerate(starts)
    ]


def fit_and_predict(
    model: Model,
    X: RowsLike,
    y: AnyArray,
    train: Positions,
    test: Positions,
    proba: bool = False,
    alike: Alike | None = None,
) -> FoldOutcome:
    """Fit a copy of ``model`` on some rows and predict others: one task of a comparison.

    Returns
    -------
    ``predictions`` and, where asked for and possible, ``scores``: one column of probabilities a
    class, with ``classes``
    """
    model, seen, new = prepared(model, X, train, test, alike)
    fitted = fit_quietly(model, seen, y[train])
    result: FoldOutcome = {"predictions": np.asarray(fitted.predict(new))}
    if proba and hasattr(fitted, "predict_proba"):
        result["scores"] = np.asarray(fitted.predict_proba(new))
        result["classes"] = np.asarray(fitted.classes_)
    return result


def losses_of(predictions: AnyArray, y: AnyArray, task: str) -> Array:
    """The loss of each row that selection compares: 0 or 1 for a class, the absolute error for
    a number.
    """
    if task == "classification":
        return np.asarray(predictions != y, dtype=float)
    return np.abs(np.asarray(predictions, dtype=float) - np.asarray(y, dtype=float))


def mean_and_error(losses: Array, groups: npt.ArrayLike | None = None) -> tuple[float, float]:
    """Mean of the rows' losses (NaN: not compared on) and its standard error; with groups, over
    groups.
    """
    compared = ~np.isnan(losses)
    means = losses[compared]
    if groups is not None:
        labels = np.unique(np.asarray(groups)[compared], return_inverse=True)[1]
        means = np.bincount(labels, means) / np.bincount(labels)
    error = float(means.std(ddof=1) / np.sqrt(means.size)) if means.size > 1 else 0.0
    return float(means.mean()), error


def aligned(outcome: FoldOutcome, classes: AnyArray) -> Array | None:
    """Probabilities (n, classes) in the order of all classes; those of a class that the fit had
    not seen are 0. None where the model has none.
    """
    if "scores" not in outcome or "classes" not in outcome:
        return None
    known = np.searchsorted(classes, outcome["classes"])
    if np.array_equal(known, np.arange(classes.size)):
        return outcome["scores"]
    found = np.zeros((len(outcome["scores"]), classes.size))
    found[:, known] = outcome["scores"]
    return found


def average(values: Sequence[Array], pairs: Pairs, n: int) -> Array:
    """Mean over repeats of what each fold gave its test rows; NaN for rows that were never
    tested on.
    """
    total, count = np.zeros((n, *values[0].shape[1:])), np.zeros(n)
    for value, (_, test) in zip(values, pairs, strict=True):
        total[test] += value
        count[test] += 1
    with np.errstate(invalid="ignore"):
        return (total.T / count).T


def row_count(X: RowsLike) -> int:
    """How many rows there are, of a list too."""
    table: Any = X
    return int(np.shape(table)[0])


def column_count(X: RowsLike) -> int:
    """How many columns there are, of a list of rows too."""
    table: Any = X
    return int(np.shape(table)[1])
