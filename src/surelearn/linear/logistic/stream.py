"""Rows of text from disk, a few pieces at a time: for data larger than memory.

In every pass the pieces of the file (256 kB each) come in a new random order, 32 of them together,
and the rows of those in `block_order`: rows that meet come from 32 places of the file, so that a
file sorted by label does no harm.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from surelearn.data.columns import DataError, shown
from surelearn.data.pieces import SparseRows
from surelearn.data.sparse_rows import SparseSource, sparse_source
from surelearn.linear.logistic.facts import known
from surelearn.linear.logistic.rows import EQUAL, check_norms, step_sizes
from surelearn.linear.logistic.sgd import Array, CompressedRows, block_order
from surelearn.types import AnyArray, Labels

if TYPE_CHECKING:
    from surelearn.linear.logistic.learner import LogisticRegression


def read_rows(
    path: str | Path, *, features: int, dtype: str = "float64", **options: Any
) -> Iterator[tuple[Any, Array]]:
    """Sparse rows (n, features) and labels (n,) of a file, a few megabytes at a time, in its order.

    Parameters
    ----------
    features, hashed, target, categorical : as `LogisticRegression.fit_file` has them

    What a model fitted to a file predicts for the rows of another is ``model.predict(X)`` of each.
    """
    numeric = None
    with sparse_source(path, features, dtype, **options) as source:
        for piece, _ in source.pieces():
            numeric = _are_numbers(piece.names) if numeric is None else numeric
            labels = np.array([_label(name, numeric, source) for name in piece.names])
            yield _matrix(piece, features), labels[piece.codes]


def fit_pieces(
    learner: LogisticRegression, path: str | Path, classes: Labels, features: int, **options: Any
) -> None:
    """Fit a `LogisticRegression` to a file, the rows of a few pieces in memory at a time."""
    _check(learner)
    generator = check_random_state(learner.random_state)
    learner.n_features_in_ = int(features)
    descent, n = None, 0
    with sparse_source(path, features, learner._sgd.dtype, **options) as source:
        for number in range(learner.epochs):
            n = 0
            for piece, fraction in source.pieces(generator):
                if descent is None:
                    learner.classes_ = _classes(piece, source, classes)
                rows = _rows(learner, piece, source)
                if descent is None:
                    learner._begin(rows, expected=len(rows) / fraction)
                    descent = learner._descent(first=True)
                steps = step_sizes(
                    learner._sgd.schedule,
                    learner.step_,
                    learner.step_decay_,
                    learner.t_,
                    len(rows),
                    number,
                )
                descent.run(rows, block_order(len(rows), generator), steps)
                learner.t_ += len(rows)
                n += len(rows)
            learner.epochs_ = number + 1
    learner.stopped_ = "passes"
    if descent is None:
        raise ValueError("epochs=0 reads no row of a file: set epochs to 1 or more")
    learner._store(descent.average() if learner._sgd.average else descent.weights(), descent)
    learner.facts_ = known(learner, n, True, streamed=True, rounds=learner.epochs_)


def _check(learner: LogisticRegression) -> None:
    if learner._sgd.engine == "lazy" or learner.l1_regularization > 0:
        raise ValueError(
            'a file is fitted by the scaled engine: set engine="auto" and l1_regularization=0'
        )
    if learner.finish in ("newton", "lbfgs") or learner._sgd.early_stopping is not None:
        raise ValueError("a file is not kept in memory: set finish=None and early_stopping=None")


def _are_numbers(names: AnyArray) -> bool:
    try:
        return bool(np.isfinite(np.asarray(names).astype(np.float64)).all())
    except (TypeError, ValueError):
        return False


def _label(name: str | float, numeric: bool, source: SparseSource) -> float | str:
    if not numeric:
        return str(name)
    try:
        return float(name)
    except ValueError:
        raise DataError(
            f"{source.name} holds the label {shown(name)} beside numbers: name all with classes=."
        ) from None


def _classes(piece: SparseRows, source: SparseSource, classes: Labels) -> Array:
    """The labels that were named, or those of the pieces read first; numbers where all of them
    are.
    """
    named = np.asarray(piece.names if classes is None else classes)
    found = np.unique(named.astype(np.float64 if _are_numbers(named) else str))
    if found.size < 2:
        raise DataError(
            f"{source.name}: the first rows read are of one class; name all labels with classes=."
        )
    check_classification_targets(found)
    return found


def _codes(learner: LogisticRegression, piece: SparseRows, source: SparseSource) -> Array:
    known = {label: number for number, label in enumerate(learner.classes_.tolist())}
    numeric = learner.classes_.dtype.kind == "f"
    code = [known.get(_label(name, numeric, source), -1) for name in piece.names]
    if -1 in code:
        strange = piece.names[code.index(-1)]
        said = f"{strange:g}" if piece.names.dtype.kind == "f" else shown(strange)
        raise DataError(
            f"{source.name} holds the label {said}, which the first rows do not: name all with"
            " classes=."
        )
    return np.array(code, dtype=np.int64)[piece.codes]


def _rows(learner: LogisticRegression, piece: SparseRows, source: SparseSource) -> CompressedRows:
    codes = _codes(learner, piece, source)
    targets = codes * 2.0 - 1.0 if learner.classes_.size == 2 else codes
    if learner.x_bound is not None:
        X = _matrix(piece, learner.n_features_in_)
        X.sum_duplicates()
        check_norms(X, learner.x_bound)
    return CompressedRows(piece.data, piece.indices, piece.indptr, targets, EQUAL)


def _matrix(piece: SparseRows, features: int) -> Any:
    return sparse.csr_matrix(
        (piece.data, piece.indices.astype(np.int64), piece.indptr), (piece.codes.size, features)
    )
