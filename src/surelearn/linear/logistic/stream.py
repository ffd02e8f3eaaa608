"""Rows of text from disk, a few pieces at a time: for data larger than memory.

In every pass the pieces of the file (256 kB each) come in a new random order, 32 of them together, and the rows of those in
`block_order`: rows that meet come from 32 places of the file, so that a file sorted by label does no harm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from surelearn.linear.logistic.delimited import Delimited
from surelearn.linear.logistic.facts import known
from surelearn.linear.logistic.libsvm import BadLineError, Libsvm, Piece
from surelearn.linear.logistic.pieces import TextFile, unpacked, visits
from surelearn.linear.logistic.rows import EQUAL, check_norms, step_sizes
from surelearn.linear.logistic.sgd import Array, Rows, block_order


class Source:
    """A file and how its lines become rows."""

    def __init__(self, path: Path, plain: Path, form: Libsvm | Delimited) -> None:
        self.path, self.form = path, form
        self.file = TextFile(plain, form.begin)

    def pieces(self, generator: Any = None) -> Iterator[tuple[Piece, float]]:
        """One pass, in the order of the file or a random one: rows, and the part of the file that they are."""
        for chosen in visits(self.file.count, generator):
            lines = self.file.read(chosen)
            try:
                piece = self.form.parse(lines.text)
            except BadLineError as bad:
                shown = lines.text[bad.position : bad.position + 40].tobytes().split(b"\n")[0].decode("utf-8", "replace")
                line = self.file.line(lines, bad.position)
                raise ValueError(f"line {line} of {self.path} {bad.reason}: {shown!r}") from None
            if piece.codes.size:
                yield piece, lines.fraction


@contextmanager
def opened(
    path: Any, features: int, dtype: str, hashed: bool = False, target: str | None = None, categorical: Sequence[str] = ()
) -> Iterator[Source]:
    """A file of LIBSVM text, or of CSV text where ``target`` names the column of the labels."""
    path = Path(path)
    categorical = (categorical,) if isinstance(categorical, str) else tuple(categorical)
    if not isinstance(features, Integral) or not 1 <= features < 2**32 - 1:
        raise ValueError(f"features must be a whole number between 1 and 2³² − 2, not {features!r}")
    if categorical and target is None:
        raise ValueError("categorical names columns of a CSV file: name the column of the labels too, with target=")
    with unpacked(path) as plain:
        form = Libsvm(features, hashed, dtype) if target is None else Delimited(plain, features, dtype, target, categorical)
        yield Source(path, plain, form)


def read_rows(path: Any, *, features: int, dtype: str = "float64", **options: Any) -> Iterator[tuple[Any, Array]]:
    """Sparse rows (n, features) and labels (n,) of a file, a few megabytes at a time, in its order.

    Parameters
    ----------
    features, hashed, target, categorical : as `LogisticRegression.fit_file` has them

    What a model fitted to a file predicts for the rows of another is ``model.predict(X)`` of each.
    """
    numeric = None
    with opened(path, features, dtype, **options) as source:
        for piece, _ in source.pieces():
            numeric = _are_numbers(piece.names) if numeric is None else numeric
            yield _matrix(piece, features), np.array([_label(name, numeric, path) for name in piece.names])[piece.codes]


def fit_pieces(learner: Any, path: Any, classes: Any, features: int, **options: Any) -> None:
    """Fit a `LogisticRegression` to a file, the rows of a few pieces in memory at a time."""
    _check(learner)
    generator = check_random_state(learner.random_state)
    learner.n_features_in_ = int(features)
    descent, n = None, 0
    with opened(path, features, learner.dtype, **options) as source:
        for number in range(learner.passes):
            n = 0
            for piece, fraction in source.pieces(generator):
                if descent is None:
                    learner.classes_ = _classes(piece, path, classes)
                rows = _rows(learner, piece, path)
                if descent is None:
                    learner._begin(rows, expected=len(rows) / fraction)
                    descent = learner._descent(first=True)
                steps = step_sizes(learner.schedule, learner.step_, learner.step_decay_, learner.t_, len(rows), number)
                descent.run(rows, block_order(len(rows), generator), steps)
                learner.t_ += len(rows)
                n += len(rows)
            learner.passes_ = number + 1
    if descent is None:
        raise ValueError(f"{path} holds no rows")
    learner.stopped_ = "passes"
    learner._store(descent.average() if learner.average else descent.weights(), descent)
    learner.facts_ = known(learner, n, True, streamed=True, rounds=learner.passes_)


def _check(learner: Any) -> None:
    if learner.engine == "lazy" or learner.l1_regularization > 0:
        raise ValueError('a file is fitted by the scaled engine: set engine="auto" and l1_regularization=0')
    if learner.finish in ("newton", "lbfgs") or learner.early_stopping is not None:
        raise ValueError("a file is not kept in memory: set finish=None and early_stopping=None")


def _are_numbers(names: Any) -> bool:
    try:
        return bool(np.isfinite(np.asarray(names).astype(np.float64)).all())
    except (TypeError, ValueError):
        return False


def _label(name: Any, numeric: bool, path: Any) -> float | str:
    if not numeric:
        return str(name)
    try:
        return float(name)
    except ValueError:
        raise ValueError(f"{path} holds the label {str(name)!r} beside numbers: name all with classes=") from None


def _classes(piece: Piece, path: Any, classes: Any) -> Array:
    """The labels that were named, or those of the pieces read first; numbers where all of them are."""
    named = np.asarray(piece.names if classes is None else classes)
    found = np.unique(named.astype(np.float64 if _are_numbers(named) else str))
    if found.size < 2:
        raise ValueError(f"the first rows read of {path} are of one class: name all labels with classes=")
    check_classification_targets(found)
    return found


def _codes(learner: Any, piece: Piece, path: Any) -> Array:
    known = {label: number for number, label in enumerate(learner.classes_.tolist())}
    numeric = learner.classes_.dtype.kind == "f"
    code = [known.get(_label(name, numeric, path), -1) for name in piece.names]
    if -1 in code:
        strange = piece.names[code.index(-1)]
        shown = f"{strange:g}" if piece.names.dtype.kind == "f" else repr(str(strange))
        raise ValueError(f"{path} holds the label {shown}, which the first rows do not: name all with classes=")
    return np.array(code, dtype=np.int64)[piece.codes]


def _rows(learner: Any, piece: Piece, path: Any) -> Rows:
    codes = _codes(learner, piece, path)
    targets = codes * 2.0 - 1.0 if learner.classes_.size == 2 else codes
    if learner.x_bound is not None:
        X = _matrix(piece, learner.n_features_in_)
        X.sum_duplicates()
        check_norms(X, learner.x_bound)
    return Rows(piece.data, piece.indices, piece.indptr, targets, EQUAL)


def _matrix(piece: Piece, features: int) -> Any:
    return sparse.csr_matrix((piece.data, piece.indices.astype(np.int64), piece.indptr), (piece.codes.size, features))
