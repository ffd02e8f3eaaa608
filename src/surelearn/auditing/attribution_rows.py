"""Which rows the attribution section explains, which it shows one by one, and what they are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from surelearn.adapters import predict_with
from surelearn.adapters.modules import is_module
from surelearn.auditing import attribution_work as work
from surelearn.auditing.context import Context, Unusable
from surelearn.selection.cross_validation import take

_LOOKED = 1000  # certify rows among which a few are picked for the table


def choose_rows(context: Context) -> tuple[Any, dict[str, int], Any]:
    """Certify rows to explain, those to show one by one, and background rows: train rows, or certify rows beside them."""
    X, y = context.rows("certify")
    if len(getattr(X, "shape", ())) != 2:
        raise Unusable("shares are for tables: rows with one number, word or date for each column.")
    train = context.rows("train")[0]
    order = np.random.default_rng(context.seed("attribution/rows")).permutation(len(y))
    most, wanted = work.SIZES[0][0], work.REPEATS * work.SIZES[0][1]
    if train.shape[0]:
        others = np.random.default_rng(context.seed("attribution/background")).permutation(train.shape[0])
        background, rows = take(train, others[:wanted]), order[:most]
    elif len(y) < 2:
        raise Unusable("there is one row only, and nothing to compare it with.")
    else:
        half = min(wanted, len(y) - len(y) // 2)
        background, rows, order = take(X, order[:half]), order[half:][:most], order[half:]
    return rows, _picked(context, order[:_LOOKED]), background


def _picked(context: Context, rows: Any) -> dict[str, int]:
    """Rows to show: a typical one, the least certain, the surest of the wrong ones; of amounts the largest and the worst."""
    X, y = context.rows("certify")
    X, y = take(X, rows), np.asarray(y)[rows]
    if context.task == "regression":
        said = np.asarray(_said(context, X), dtype=float).reshape(len(rows))
        off = np.abs(said - y.astype(float))
        found = {"typical": _nearest_median(said), "largest": int(said.argmax()), "farthest off": int(off.argmax())}
    else:
        right = np.asarray(_said(context, X) == y)
        sure = _certainty(context, X)
        sure, known = (np.zeros(len(rows)), False) if sure is None else (sure, True)
        found = {}
        if right.any():
            found["typical"] = int(np.flatnonzero(right)[_nearest_median(sure[right])])
        if known:
            found["least certain"] = int(sure.argmin())
        if not right.all():
            found["wrong"] = int(np.flatnonzero(~right)[sure[~right].argmax()])
    return {kind: int(rows[place]) for kind, place in found.items()}


def _nearest_median(numbers: Any) -> int:
    return int(np.abs(numbers - np.median(numbers)).argmin())


def _said(context: Context, X: Any) -> Any:
    """Predictions, a module's as labels."""
    return np.asarray(predict_with(context.model, context.classes or None)(X))


def _certainty(context: Context, X: Any) -> Any:
    """How far the first class is ahead of the next; None for a model that gives labels only."""
    model = context.model
    if is_module(model):
        scores = work.Outputs(model)(X)
    elif hasattr(model, "classes_") and (hasattr(model, "predict_proba") or hasattr(model, "decision_function")):
        scores = np.asarray(getattr(model, "predict_proba" if hasattr(model, "predict_proba") else "decision_function")(X))
    else:
        return None
    scores = scores.reshape(len(scores), -1).astype(float)
    if scores.shape[1] == 1:
        return np.abs(scores[:, 0])
    best = np.sort(scores, axis=1)
    return best[:, -1] - best[:, -2]


def as_table(X: Any) -> Any:
    """Dense rows: a data frame or an array."""
    if hasattr(X, "to_pandas"):
        return X.to_pandas()
    return X.toarray() if hasattr(X, "toarray") else X
