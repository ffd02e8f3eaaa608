"""Answers that somebody wrote down, as a model that reads them from columns of its rows: a
vendor's, a language model's, another team's.

The object says which columns, and which content they had when it was made, so that other answers
under the same names are another model.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import numpy as np

from surelearn.types import AnyArray, Array, TableRows

_SPAN = 1500.0  # arsinh of the largest number is 710


class RecordedAnswers:
    """Answers with the labels, or the numbers, of one column.

    Parameters
    ----------
    column : its name
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

    def __init__(self, column: str, classes: tuple[Any, ...] | None, content: str) -> None:
        self.column, self.content = column, content
        if classes is not None:
            self.classes_ = np.asarray(classes, dtype=object)

    @property
    def _estimator_type(self) -> Literal["classifier", "regressor"]:
        return "classifier" if hasattr(self, "classes_") else "regressor"

    def predict(self, X: TableRows) -> AnyArray:
        """The column's values."""
        return np.asarray(X[self.column])

    def __repr__(self) -> str:
        return f"answers of column {self.column!r}"


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
        column: str,
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
            return np.asarray(X[self.answer])
        other = next(label for label in self.classes_.tolist() if label != self.positive)
        found = np.where(self.scores(X) >= self.threshold, 1, 0)
        return np.array([other, self.positive], dtype=object)[found]

    def scores(self, X: TableRows) -> Array:
        """The column's numbers."""
        return np.asarray(X[self.column], dtype=float)

    def predict_proba(self, X: TableRows) -> Array:
        """(n, 2): in the order of the classes."""
        score = self.scores(X)
        if not self.probable:
            score = 0.5 + np.arcsinh(score - self.threshold) / _SPAN
        first = self.classes_[0] == self.positive
        return np.column_stack([score, 1 - score] if first else [1 - score, score])

    def __repr__(self) -> str:
        return f"scores of column {self.column!r}, {self.positive!r} from {self.threshold:g} on"


def content_of(*columns: Any) -> str:
    """A hash of the values of columns, in their order: arrays, or columns of a DataFrame."""
    digest = hashlib.sha256()
    for column in columns:
        words = "\x1f".join(map(str, np.asarray(column).tolist()))
        digest.update(f"{len(words)}|{words}\n".encode(errors="surrogatepass"))
    return digest.hexdigest()
