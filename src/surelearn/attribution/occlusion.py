"""Words left out of texts one at a time: what the answers of any model change by.

Li, Monroe and Jurafsky (2016), Understanding Neural Networks through Representation Erasure. How much
is asked of the model is counted in letters, before it is asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from surelearn.attribution.words_of_texts import WordAttribution, rows_with
from surelearn.lacking import Lacking
from surelearn.subject import Subject
from surelearn.subject.predicting import Predict
from surelearn.subject.refitting import take
from surelearn.types import AnyArray, Array, Ints, RowsLike

LETTERS = 2_000_000  # of texts that the model is asked about, at most
MOST_ROWS = 300  # whose answers say which words are looked at
MOST_WORDS = 40  # looked at, of each column
MOST_TEXTS = 20  # that one word is left out of
FEWEST_TEXTS = 3
_WORDY = 3.0  # words of a text, on average, from which on a column of strings holds texts
_WORD = re.compile(r"\b\w\w+\b")


def left_out(
    subject: Subject,
    X: RowsLike,
    background: RowsLike,
    *,
    columns: Sequence[str] | None,
    groups: npt.ArrayLike | None,
    min_rows: int,
    random_state: int,
    why: str,
) -> WordAttribution | Lacking:
    """`words` by occlusion: first which words the model's answers go with, then what leaving each
    of them out changes.

    A word's importance is the mean |change| over texts with the word, times the share of
    explained rows that have it.
    """
    rows, others = Texts.of(X), Texts.of(background)
    names = rows.wordy() if columns is None else tuple(columns)
    if not names or not len(rows) or not len(others):
        lacking = "there are no rows" if names else "no column of texts is known"
        return Lacking("words", f"{why}; {lacking}" if why else lacking)
    asked = _asked(subject)
    if isinstance(asked, Lacking):
        return asked
    rng = np.random.default_rng(random_state)
    sample, shown = (
        np.sort(rng.permutation(len(each))[: each.affordable(names, LETTERS // 4)])
        for each in (others, rows)
    )
    answers = asked.answers(others.taken(sample))  # (sample, outputs)
    looked = [
        (name, *one)
        for name in names
        for one in _telling(others.words_in(name), sample, answers, groups, min_rows)
    ]
    allowance = LETTERS / 2 / max(1, len(looked))  # letters for each word
    planned = [
        Left(name, word, count, *chosen)
        for name, word, count in looked
        if (chosen := _texts_with(rows, names, name, word, shown, allowance, rng)) is not None
    ]
    found = _changes(asked, rows, shown, planned)
    shape = (len(planned), len(asked.outputs))
    return WordAttribution(
        words=tuple(one.word for one in planned),
        columns=tuple(one.column for one in planned),
        rows_with=np.array([one.count for one in planned], dtype=np.int64),
        outputs=asked.outputs,
        other=asked.other,
        importance=np.array([one[0] for one in found]).reshape(shape).T,
        direction=np.array([one[1] for one in found]).reshape(shape).T,
        method="occlusion",
        score=asked.score,
        model=subject.name,
        rows=len(shown),
        background_rows=len(others),
        min_rows=min_rows,
        why=why,
    )


@dataclass(frozen=True, eq=False)
class Left:
    """A word that is left out of some texts.

    Attributes
    ----------
    column, word, count : where it stands, and in how many background rows or groups
    share : of the rows to explain that have it
    rows : positions of those that it is left out of
    """

    column: str
    word: str
    count: int
    share: float
    rows: Ints


def _texts_with(
    rows: Texts,
    names: Sequence[str],
    name: str,
    word: str,
    shown: Ints,
    allowance: float,
    rng: np.random.Generator,
) -> tuple[float, Ints] | None:
    """The share of the rows with a word, and some of these; None where too few have it."""
    has = np.array([i for i in shown.tolist() if word in rows.words_in(name)[i]], dtype=np.int64)
    size = float(np.mean(rows.letters(names)[has])) if has.size else 0.0
    most = int(min(MOST_TEXTS, allowance // max(size, 1.0)))
    if has.size < FEWEST_TEXTS or most < FEWEST_TEXTS:
        return None
    return has.size / shown.size, np.sort(rng.permutation(has)[:most])


def _changes(
    asked: Asked, rows: Texts, shown: Ints, planned: Sequence[Left]
) -> list[tuple[Array, Array]]:
    """Of each word the importance and the mean change that it brings, for each output; the model
    is asked once about texts as they are, and once about all others.
    """
    if not planned:
        return []
    before = asked.answers(rows.taken(shown))  # (shown, outputs)
    after = asked.answers(rows.without(planned))  # (texts of all words, outputs)
    ends = np.cumsum([one.rows.size for one in planned])[:-1]
    made: list[tuple[Array, Array]] = []
    for one, said in zip(planned, np.split(after, ends), strict=True):
        change = before[np.searchsorted(shown, one.rows)] - said
        made.append((np.abs(change).mean(axis=0) * one.share, change.mean(axis=0)))
    return made


def _telling(
    words_in: list[frozenset[str]],
    sample: Ints,
    answers: Array,
    groups: npt.ArrayLike | None,
    min_rows: int,
) -> list[tuple[str, int]]:
    """Words that enough rows have and that the answers go with most, with the number of rows: by
    |cov(has the word, answer)| / sd(has the word), the largest of all outputs.
    """
    place: dict[str, int] = {}
    column = [place.setdefault(word, len(place)) for has in words_in for word in sorted(has)]
    ends = np.cumsum([0, *(len(has) for has in words_in)])
    shape = (len(words_in), len(place))
    present = sparse.csr_matrix((np.ones(len(column)), np.array(column, dtype=int), ends), shape)
    counts, known = rows_with(present, groups), np.array(list(place), dtype=object)
    here = present[sample]
    share = np.asarray(here.mean(axis=0)).ravel()
    together = here.T @ (answers - answers.mean(axis=0)) / len(sample)  # (words, outputs)
    spread = np.sqrt(np.maximum(share * (1 - share), 1e-12))
    strength = np.abs(together).max(axis=1, initial=0.0) / spread
    usable = np.flatnonzero((counts >= min_rows) & (share * len(sample) >= FEWEST_TEXTS))
    order = usable[np.lexsort((known[usable].astype(str), -strength[usable].round(12)))]
    return [(str(known[at]), int(counts[at])) for at in order[:MOST_WORDS] if strength[at] > 0]


@dataclass(frozen=True)
class Asked:
    """Which answers of a model words are left out for."""

    answers: Predict
    outputs: tuple[Any, ...]
    other: Any
    score: str


def _asked(subject: Subject) -> Asked | Lacking:
    """Probabilities, else scores; a regressor's predictions."""
    classes = subject.classes
    if classes is None or subject.task == "regression":
        if subject.task != "regression":
            return Lacking("words", f"{subject.kind} gives neither probabilities nor numbers")
        return Asked(_columns(subject.predict), ("prediction",), None, "prediction")
    asked = subject.probabilities if subject.gives_probabilities else subject.decisions
    if isinstance(asked, Lacking):
        return Lacking("words", f"{subject.kind} gives labels only, which single words rarely move")
    score = "probability" if subject.gives_probabilities else "score"
    if len(classes) == 2:
        return Asked(_last(asked), (classes[1],), classes[0], score)
    return Asked(_columns(asked), tuple(classes), None, score)


def _columns(asked: Predict) -> Predict:
    def answers(X: RowsLike) -> AnyArray:
        found = np.asarray(asked(X), dtype=float)
        return found.reshape(len(found), -1)

    return answers


def _last(asked: Predict) -> Predict:
    """The answer for the second of two classes."""

    def answers(X: RowsLike) -> AnyArray:
        return _columns(asked)(X)[:, -1:]

    return answers


class Texts:
    """Rows with columns of texts: a data frame, an array, or texts alone, whose column is "text"."""

    def __init__(self, rows: Any, names: tuple[str, ...]) -> None:
        self.rows, self.names = rows, names
        self._texts: dict[str, list[str]] = {}
        self._words: dict[str, list[frozenset[str]]] = {}
        self._letters: dict[tuple[str, ...], Ints] = {}

    @staticmethod
    def of(X: RowsLike) -> Texts:
        """Rows as a user brings them."""
        rows: Any = X
        if hasattr(rows, "to_pandas"):
            rows = rows.to_pandas()
        if hasattr(rows, "columns"):
            return Texts(rows, tuple(map(str, rows.columns)))
        cells = np.asarray(rows, dtype=object)
        many = cells.ndim == 2
        return Texts(cells, tuple(f"x{j}" for j in range(cells.shape[1])) if many else ("text",))

    def __len__(self) -> int:
        return len(self.rows)

    def texts(self, name: str) -> list[str]:
        """A column; what is missing is empty."""
        if name not in self._texts:
            cells = self._cells(name)
            found = ["" if cell is None or cell != cell else str(cell) for cell in cells]
            self._texts[name] = found
        return self._texts[name]

    def _cells(self, name: str, table: Any = None) -> Any:
        if name not in self.names:
            raise ValueError(f"there is no column {name!r}")
        at, rows = self.names.index(name), self.rows if table is None else table
        return rows if rows.ndim == 1 else rows.iloc[:, at] if self._framed else rows[:, at]

    @property
    def _framed(self) -> bool:
        return hasattr(self.rows, "iloc")

    def wordy(self) -> tuple[str, ...]:
        """Columns of strings with several words each, on average."""
        found: list[str] = []
        for name in self.names:
            cells = [cell for cell in self._cells(name)[:MOST_ROWS] if isinstance(cell, str)]
            words = sum(len(_WORD.findall(text)) for text in cells)
            if cells and words / len(cells) >= _WORDY:
                found.append(name)
        return tuple(found)

    def words_in(self, name: str) -> list[frozenset[str]]:
        """The words of each text, in lower case."""
        if name not in self._words:
            self._words[name] = [frozenset(_WORD.findall(t.lower())) for t in self.texts(name)]
        return self._words[name]

    def letters(self, names: Sequence[str]) -> Ints:
        """Of each row, in all of these columns."""
        key = tuple(names)
        if key not in self._letters:
            counts = np.array([[len(text) for text in self.texts(name)] for name in names])
            self._letters[key] = np.asarray(counts.sum(axis=0), dtype=np.int64)
        return self._letters[key]

    def affordable(self, names: Sequence[str], letters: int) -> int:
        """Rows of the usual length that have so many letters; at least 1."""
        usual = max(1.0, float(self.letters(names).mean()))
        return int(np.clip(letters / usual, 1, MOST_ROWS))

    def taken(self, rows: Ints) -> Any:
        """Some of the rows."""
        return take(self.rows, rows)

    def without(self, planned: Sequence[Left]) -> Any:
        """The rows of every word, each without that word."""
        made: Any = self.taken(np.concatenate([one.rows for one in planned])).copy()
        columns = {name: self.texts(name) for name in {one.column for one in planned}}
        ends = np.cumsum([one.rows.size for one in planned])
        for name in columns:
            cells = self._cells(name, made)
            changed = np.array(cells, dtype=object)
            for one, end in zip(planned, ends.tolist(), strict=True):
                if one.column == name:
                    pattern = re.compile(rf"\b{re.escape(one.word)}\b", re.IGNORECASE)
                    texts = [pattern.sub(" ", columns[name][i]) for i in one.rows.tolist()]
                    changed[end - one.rows.size : end] = texts
            at = self.names.index(name)
            if made.ndim == 1:
                made = changed
            elif self._framed:
                made[made.columns[at]] = changed
            else:
                made[:, at] = changed
        return made
