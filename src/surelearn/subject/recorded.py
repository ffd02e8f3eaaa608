"""Answers that somebody wrote down, as a model that reads them from columns of its rows: a
vendor's, a language model's, another team's.

The object says which columns, and which content they had when it was made, so that other answers
under the same names are another model.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from surelearn.subject.predicting import Task, missing
from surelearn.types import AnyArray, Array, TableRows

_SPAN = 1500.0  # arsinh of the largest number is 710


class RecordedAnswers:
    """Answers with the labels, or the numbers, of one column.

    Parameters
    ----------
    column : its name, or in an array its position
    classes : the labels there are; None: the answers are numbers
    content : what identifies the answers, as `content_of` makes it

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"said": ["cat", "dog"]})
    >>> RecordedAnswers("said", ("cat", "dog"), content_of(rows["said"])).predict(rows).tolist()
    ['cat', 'dog']
    """

    saved_as = "recorded-answers/1"

    def __init__(self, column: str | int, classes: tuple[Any, ...] | None, content: str) -> None:
        self.column, self.content = column, content
        if classes is not None:
            self.classes_ = np.asarray(classes, dtype=object)

    @property
    def _estimator_type(self) -> Literal["classifier", "regressor"]:
        return "classifier" if hasattr(self, "classes_") else "regressor"

    def taken_as(self, *, probable: bool) -> RecordedAnswers:  # noqa: ARG002 - of scores
        """The same answers, their scores taken for probabilities or not, where they have some."""
        return self

    def predict(self, X: TableRows) -> AnyArray:
        """The column's values."""
        return _column(X, self.column)

    def __repr__(self) -> str:
        place = f" of column {self.column!r}" if isinstance(self.column, str) else ""
        return f"{'' if place else 'recorded '}answers{place}"


class RecordedScores(RecordedAnswers):
    """Answers of two classes with the score of one of them, which is a probability, or any number
    that ranks rows.

    A score outside [0, 1] is no probability; `predict_proba` then gives 1/2 + arsinh(s − t)/1500,
    which ranks rows as the scores s do, is 1/2 at the threshold t, and between 0 and 1 for any
    finite s.

    Parameters
    ----------
    column : of the score
    classes : the two labels
    content : see `RecordedAnswers`
    positive : the class whose score it is
    threshold : it is answered from this score on
    probable : whether the scores are probabilities
    answer : the column of the answers, where they do not follow the threshold
    """

    saved_as = "recorded-scores/1"

    def __init__(
        self,
        column: str | int,
        classes: tuple[Any, ...],
        content: str,
        *,
        positive: Any,
        threshold: float,
        probable: bool = True,
        answer: str | None = None,
    ) -> None:
        super().__init__(column, classes, content)
        self.positive, self.threshold, self.probable = positive, threshold, probable
        self.answer = answer

    def predict(self, X: TableRows) -> AnyArray:
        """The answers: those of their own column, else what the threshold says."""
        if self.answer is not None:
            return _column(X, self.answer)
        other = next(label for label in self.classes_.tolist() if label != self.positive)
        found = np.where(self.scores(X) >= self.threshold, 1, 0)
        return np.array([other, self.positive], dtype=object)[found]

    def scores(self, X: TableRows) -> Array:
        """The column's numbers."""
        return np.asarray(_column(X, self.column), dtype=float)

    def taken_as(self, *, probable: bool) -> RecordedScores:
        """The same scores, taken for probabilities or not."""
        own = tuple(self.classes_.tolist())
        return RecordedScores(
            self.column,
            own,
            self.content,
            positive=self.positive,
            threshold=self.threshold,
            probable=probable,
            answer=self.answer,
        )

    def predict_proba(self, X: TableRows) -> Array:
        """(n, 2): in the order of the classes."""
        score = self.scores(X)
        if not self.probable:
            score = 0.5 + np.arcsinh(score - self.threshold) / _SPAN
        first = self.classes_[0] == self.positive
        return np.column_stack([score, 1 - score] if first else [1 - score, score])

    def __repr__(self) -> str:
        return f"scores of column {self.column!r}, {self.positive!r} from {self.threshold:g} on"


class RecordedProbabilities(RecordedAnswers):
    """Answers with a probability of each class, one column each.

    Parameters
    ----------
    column : of the answers
    classes : the labels
    content : see `RecordedAnswers`
    probabilities : the columns, in the order of the classes
    """

    saved_as = "recorded-probabilities/1"

    def __init__(
        self,
        column: str | int,
        classes: tuple[Any, ...],
        content: str,
        probabilities: tuple[str, ...],
    ) -> None:
        super().__init__(column, classes, content)
        self.probabilities = probabilities

    def predict_proba(self, X: TableRows) -> Array:
        """(n, classes): in their order."""
        return np.column_stack(
            [np.asarray(_column(X, name), dtype=float) for name in self.probabilities]
        )


class RecordedIntervals(RecordedAnswers):
    """Numbers of one column, with an interval whose ends are two others.

    Parameters
    ----------
    column : of the answers
    content : see `RecordedAnswers`
    low, high : the columns of the ends
    """

    saved_as = "recorded-intervals/1"

    def __init__(self, column: str, content: str, low: str, high: str) -> None:
        super().__init__(column, None, content)
        self.low, self.high = low, high

    def predict_band(self, X: TableRows) -> tuple[Array, Array, Array]:
        """(n,) each: low, high, and a scale of 1."""
        low, high = (np.asarray(_column(X, name), dtype=float) for name in (self.low, self.high))
        return low, high, np.ones(low.shape)

    def __repr__(self) -> str:
        return f"{super().__repr__()}, from {self.low!r} to {self.high!r}"


def _column(X: TableRows, column: str | int) -> AnyArray:
    at = (slice(None), column) if hasattr(X, "dtype") else column  # of an array, or a DataFrame
    return np.asarray(X[at])


def from_columns(
    answers: npt.ArrayLike,
    truth: npt.ArrayLike,
    other: npt.ArrayLike | None = None,
    task: Task | None = None,
    classes: npt.ArrayLike | None = None,
) -> tuple[AnyArray, AnyArray, dict[str, Any]]:
    """Answers beside what is right, one of each per row, as rows of answers, their truth, and what
    `surelearn.certify` is told of them: ``model``, ``baseline`` for ``other`` answers, ``task``, and
    labels.

    Numbers with a fractional part are a regression, all else is labels, if ``task`` does not say. The
    labels are those of the truth, if ``classes`` does not say; other answers are wrong.

    Examples
    --------
    >>> rows, y, told = from_columns(["a", "c", "b"], ["a", "b", "b"])
    >>> told["model"].predict(rows).tolist(), told["classes"], told["unseen"]
    (['a', 'c', 'b'], ['a', 'b'], ['c'])
    """
    right = _one_per_row("truth", truth, None)
    said = [_one_per_row("answers", answers, right.size)]
    if other is not None:
        said.append(_one_per_row("baseline", other, right.size))
    if task is None:
        numbers = right.dtype.kind == "f" and bool((right != np.round(right)).any())
        task = "regression" if numbers else "classification"
    known: tuple[Any, ...] | None = None
    told: dict[str, Any] = {"task": task}
    if task == "classification":
        labels = sorted(set(right.tolist()), key=str) if classes is None else classes
        known = tuple(np.asarray(labels).tolist())
        seen = {word for column in (right, *said) for word in column.tolist()}
        told |= {"classes": list(known), "unseen": sorted(seen - {*known}, key=str)}
    same = len({column.dtype.kind for column in said}) == 1
    rows = np.column_stack(said if same else [column.astype(object) for column in said])
    for i, (name, column) in enumerate(zip(("model", "baseline"), said, strict=False)):
        told[name] = RecordedAnswers(i, known, content_of(column))
    return rows, right, told


def _one_per_row(name: str, values: npt.ArrayLike, n: int | None) -> AnyArray:
    column = np.asarray(values)
    if column.ndim != 1 or not column.size:
        raise ValueError(f"{name} must be one value per row, not of shape {column.shape}")
    if lost := int(missing(column).sum()):
        raise ValueError(
            f"{name} must not be missing: {lost} of {column.size} are; leave out rows without a"
            " truth, and give a missing answer a word of its own"
        )
    if n is not None and column.size != n:
        raise ValueError(
            f"{name} has {column.size} rows and truth has {n}: they must describe the same rows"
        )
    return column


def content_of(*columns: Any) -> str:
    """A hash of the values of columns, in their order: arrays, or columns of a DataFrame."""
    digest = hashlib.sha256()
    for column in columns:
        words = "\x1f".join(map(str, np.asarray(column).tolist()))
        digest.update(f"{len(words)}|{words}\n".encode(errors="surrogatepass"))
    return digest.hexdigest()
