"""Rows and labels as learners of stumps take them, and what they refuse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from surelearn.boosting.columns import BINS, is_binned

Array = npt.NDArray[Any]
METHODS = ("auto", "exact", "binned")


@dataclass(frozen=True)
class Rows:
    """Rows of positive weight: X (n, d), labels 0 … K − 1 of ``classes``, weights, and whether
    they are all equal.
    """

    X: Array
    labels: Array
    classes: Array
    weights: Array
    uniform: bool


def fit_rows(learner: Any, X: Any, y: Any, sample_weight: Any, *, reset: bool = True) -> Rows:
    """What to fit to; rows of weight 0 count as absent. Unless ``reset`` they must be like
    those that were fitted.
    """
    check_method(learner)
    X, y = validate_data(
        learner, X, y, dtype=np.float64, order="C", ensure_all_finite=False, reset=reset
    )
    _refuse_missing(learner, X)
    check_classification_targets(y)
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not (counted := weights > 0).all():
        X, y, weights = X[counted], y[counted], weights[counted]
    classes, labels = np.unique(y, return_inverse=True)
    if classes.size < 2:
        raise ValueError("y holds one class only: a classifier needs rows of at least two classes")
    if not (reset or np.array_equal(classes, learner.classes_)):
        raise ValueError(
            f"y holds the classes {classes.tolist()}, fitted were {learner.classes_.tolist()}"
        )
    _check_thresholds(learner.thresholds, X.shape[1])
    return Rows(X, labels, classes, weights, bool((weights == weights[0]).all()))


def predict_rows(learner: Any, X: Any) -> Array:
    """Rows to predict, checked against those that were fitted."""
    check_is_fitted(learner)
    X = validate_data(learner, X, dtype=np.float64, ensure_all_finite=False, reset=False)
    _refuse_missing(learner, X)
    return X


def check_method(learner: Any) -> None:
    """Refuse a method that is unknown, or that contradicts given thresholds."""
    if learner.method not in METHODS:
        raise ValueError(f"method must be 'auto', 'exact' or 'binned', not {learner.method!r}")
    if learner.method == "exact" and learner.thresholds is not None:
        raise ValueError(
            "method='exact' tries every cut, but thresholds= names the cuts: leave one of them out"
        )


def count_thresholds(thresholds: Any) -> int | None:
    """How many thresholds were stated for each feature, or None."""
    return None if thresholds is None else int(np.shape(thresholds)[-1])


def shared_facts(learner: Any, rows: Rows) -> dict[str, Any]:
    """What rows and parameters tell of the record that one stump and a vote of them share."""
    n, d = rows.X.shape
    return {
        "n": n,
        "d": d,
        "classes": int(rows.classes.size),
        "uniform": rows.uniform,
        "method": "binned" if is_binned(n, learner.method, learner.thresholds) else "exact",
        "thresholds": count_thresholds(learner.thresholds),
    }


def _refuse_missing(learner: Any, X: Array) -> None:
    if np.isfinite(X.sum()) or np.isfinite(X).all():
        return
    column = int(np.flatnonzero(~np.isfinite(X).all(axis=0))[0])
    names = getattr(learner, "feature_names_in_", None)
    name = column if names is None else repr(names[column])
    if np.isnan(X[:, column]).any():
        raise ValueError(
            f"X has missing values (NaN) in column {name}: fill them in or leave the rows out first"
        )
    raise ValueError(
        f"X has infinite values (inf) in column {name}: replace them by finite numbers first"
    )


def _check_thresholds(thresholds: Any, d: int) -> None:
    if thresholds is None:
        return
    given = np.asarray(thresholds, dtype=float)
    if given.ndim not in (1, 2) or given.size == 0 or (given.ndim == 2 and given.shape[0] != d):
        raise ValueError(
            f"thresholds must be an array (k,) for all columns or ({d}, k), not of shape"
            f" {given.shape}"
        )
    if given.shape[-1] > BINS or not np.isfinite(given).all():
        raise ValueError(f"thresholds must be at most {BINS} finite numbers per column")
