"""Columns of text as numbers: TF-IDF of words and runs of letters, for linear models; and its
first singular directions, for trees and kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_is_fitted

from surelearn.lacking import Lacking
from surelearn.selection.terms import Counted, Inside, inside_words, runs, sequences
from surelearn.subject.registry import Preparation, describes
from surelearn.subject.terms import Terms, WordShares
from surelearn.types import AnyArray, Array

SHORTEST = 3  # letters in a run


class TextTerms(TransformerMixin, BaseEstimator):
    """TF-IDF of the words, of pairs of neighbors and of runs of letters in text columns; a
    missing text has none.

    A term that occurs t times in a text weighs (1 + ln t)·(1 + ln((1 + n)/(1 + n_t))), where n_t of
    the n texts fitted on have it; then words, and runs of letters, have length 1 each.

    Parameters
    ----------
    words : the longest sequence of words that counts as a term
    letters : the longest run of letters within a word that counts as one, from 3 on; 0: none
    min_rows : texts that must have a term
    max_terms : of words, and of runs of letters, in a column; the most frequent are kept
    most_letters : in a column with more letters in all, only words count: runs take long to count,
        and long texts have words enough

    long_text : in a column whose texts have more letters each, on average, only single words count:
        sequences tell long texts no better apart, and there are many

    Examples
    --------
    >>> texts = np.array([["red ball"], ["red box"], ["blue box"]], dtype=object)
    >>> TextTerms(words=1, letters=0, min_rows=2).fit(texts).get_feature_names_out(["toy"]).tolist()
    ['toy: box', 'toy: red']
    """

    saved_as = "text-terms/1"

    def __init__(
        self,
        words: int = 2,
        letters: int = 5,
        min_rows: int = 2,
        max_terms: int = 50_000,
        most_letters: int = 1_000_000,
        long_text: int = 1_000,
    ) -> None:
        self.words = words
        self.letters = letters
        self.min_rows = min_rows
        self.max_terms = max_terms
        self.most_letters = most_letters
        self.long_text = long_text

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> TextTerms:
        """Find the terms and in how many texts each occurs."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Any:  # noqa: ARG002
        """The weights of the rows fitted on, sparse."""
        if not self.words and not self.letters:
            raise ValueError("words and letters are both 0: there are no terms")
        columns = list(texts_of(X))
        self.n_columns_ = len(columns)
        self.vocabularies_: list[dict[str, int]] = []
        self.idf_: list[Array] = []
        blocks = []
        for texts in columns:
            size = sum(map(len, texts))
            longest = self.words if size <= self.long_text * max(1, len(texts)) else 1
            for by_letters in self._kinds():
                left_out = by_letters and self.words > 0 and size > self.most_letters
                counts, terms = self._kept(
                    [] if left_out else self._counted(texts, by_letters, longest)
                )
                counts = sparse.csr_matrix((len(texts), 0)) if counts is None else counts
                rows_with = np.bincount(counts.indices, minlength=counts.shape[1])
                self.vocabularies_.append({term: place for place, term in enumerate(terms)})
                self.idf_.append(1 + np.log((1 + len(texts)) / (1 + rows_with)))
                blocks.append(self._weighted(counts, self.idf_[-1]))
        return _side_by_side(blocks)

    def transform(self, X: npt.ArrayLike) -> Any:
        """The weights of the terms, sparse: words, then runs of letters, column by column."""
        check_is_fitted(self)
        blocks, known = [], iter(zip(self.vocabularies_, self.idf_, strict=True))
        for texts in texts_of(X):
            for by_letters in self._kinds():
                vocabulary, idf = next(known)
                if not vocabulary:
                    blocks.append(sparse.csr_matrix((len(texts), 0)))
                    continue
                longest = 1 + max(term.count(" ") for term in vocabulary)
                counted = self._counted(texts, by_letters, longest)
                blocks.append(self._weighted(_placed(counted, vocabulary, len(texts)), idf))
        return _side_by_side(blocks)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> AnyArray:
        """Names such as ``review: very good`` and, for runs of letters, ``review: …goo…``."""
        names = named(input_features, self.n_columns_)
        kinds = [*(["{}"] if self.words else []), *(["…{}…"] if self.letters else [])]
        found: list[str] = []
        for i, vocabulary in enumerate(self.vocabularies_):
            kind, column = kinds[i % len(kinds)], names[i // len(kinds)]
            terms = sorted(vocabulary, key=vocabulary.__getitem__)
            found += [f"{column}: {kind.format(term)}" for term in terms]
        return np.array(found or [f"{names[0]}: no term"], dtype=object)

    def _kinds(self) -> list[bool]:
        """Of the kinds of terms that count, whether each is one of letters."""
        return [*([False] if self.words else []), *([True] if self.letters else [])]

    def _counted(self, texts: list[str], by_letters: bool, longest: int) -> list[Counted]:
        if by_letters:
            return [runs(texts, min(SHORTEST, self.letters), self.letters)]
        return sequences(texts, longest)

    def _kept(self, counted: list[Counted]) -> tuple[Any, list[str]]:
        """Counts of the terms that are frequent enough, in the order of the alphabet, and these;
        rarer terms count too where there are no others.
        """
        rows_with = [np.bincount(c.counts.indices, minlength=c.counts.shape[1]) for c in counted]
        for fewest in (self.min_rows, 1):
            places = [np.flatnonzero(found >= fewest) for found in rows_with]
            if sum(place.size for place in places):
                break
        else:
            return None, []
        parts = [c.counts[:, place] for c, place in zip(counted, places, strict=True)]
        terms = [n for c, place in zip(counted, places, strict=True) for n in c.names(place)]
        counts = sparse.hstack(parts, format="csc")
        names = np.array(terms, dtype=object)
        totals = np.asarray(counts.sum(axis=0)).ravel()
        order = np.argsort(names)
        most = order[np.argsort(-totals[order], kind="stable")[: self.max_terms]]
        most = most[np.argsort(names[most])]
        return counts[:, most].tocsr(), names[most].tolist()

    @staticmethod
    def _weighted(counts: Any, idf: Array) -> Any:
        """Rows of length 1 of (1 + ln t)·idf."""
        weights = counts.tocsr()
        if not weights.shape[1]:
            return weights
        weights.data = (1 + np.log(weights.data)) * idf[weights.indices]
        return normalize(weights, copy=False)


class TextTopics(TransformerMixin, BaseEstimator):
    """The first singular directions of `TextTerms`' words: text for learners that need few columns.

    Parameters
    ----------
    n_topics : directions, at most
    random_state : of the randomized singular value decomposition

    Examples
    --------
    >>> texts = np.array([["red ball"], ["red box"], ["blue box"]], dtype=object)
    >>> TextTopics(n_topics=2).fit_transform(texts).shape
    (3, 2)
    """

    saved_as = "text-topics/1"

    def __init__(self, n_topics: int = 64, random_state: int = 0) -> None:
        self.n_topics = n_topics
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> TextTopics:
        """Find the words and the directions."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Array:
        """The rows fitted on, (n, topics)."""
        self.terms_ = TextTerms(words=1, letters=0)
        weights = self.terms_.fit_transform(X, y)
        most = min(self.n_topics, *weights.shape)
        _, _, self.components_ = randomized_svd(weights, most, random_state=self.random_state)
        return weights @ self.components_.T

    def transform(self, X: npt.ArrayLike) -> Array:
        """The words' weights along each direction, (n, topics)."""
        check_is_fitted(self)
        return self.terms_.transform(X) @ self.components_.T

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> AnyArray:
        """Names such as ``review topic 3``."""
        before = " and ".join(named(input_features, self.terms_.n_columns_))
        return np.array(
            [f"{before} topic {i + 1}" for i in range(len(self.components_))], dtype=object
        )


@describes(TextTerms)
def _described(step: TextTerms) -> Preparation:
    why = Lacking("affine map", "the preparation TextTerms is not affine")
    return Preparation(why, terms=lambda: _terms(step))


def _terms(step: TextTerms) -> Terms:
    """The terms of its prepared columns; an empty name for that of a step without any."""
    kinds = step._kinds()
    sizes = [len(vocabulary) for vocabulary in step.vocabularies_]
    if not sum(sizes):
        return Terms(np.array([""], dtype=object), np.zeros(1, dtype=bool), np.array([0], object))
    names = [term for known in step.vocabularies_ for term in sorted(known, key=known.__getitem__)]
    block = np.repeat(np.arange(len(sizes)), sizes)
    source = np.array((block // len(kinds)).tolist(), dtype=object)
    letters = np.array(kinds)[block % len(kinds)]
    inside = (lambda X: _in_words(step, X)) if letters.any() else None
    return Terms(np.array(names, dtype=object), letters, source, inside)


def _in_words(step: TextTerms, X: npt.ArrayLike) -> WordShares:
    """Which words the runs of letters of texts lie in, column by column."""
    kinds = step._kinds()
    at = kinds.index(True)
    starts = np.cumsum([0, *map(len, step.vocabularies_)])
    shortest = min(SHORTEST, step.letters)
    made: list[Inside] = []
    for j, texts in enumerate(texts_of(X)):
        vocabulary = step.vocabularies_[len(kinds) * j + at]
        made.append(inside_words(texts, vocabulary, shortest, step.letters))
    columns = [one.run + starts[len(kinds) * j + at] for j, one in enumerate(made)]
    before = np.cumsum([0, *(len(one.words) for one in made)])
    source = [j for j, one in enumerate(made) for _ in one.words]
    return WordShares(
        np.concatenate([one.row for one in made]),
        np.concatenate(columns),
        np.concatenate([one.word + before[j] for j, one in enumerate(made)]),
        np.concatenate([one.share for one in made]),
        np.array([word for one in made for word in one.words], dtype=object),
        np.array(source, dtype=object),
    )


def texts_of(X: npt.ArrayLike) -> Iterator[list[str]]:
    """The texts of each column; a missing one is empty."""
    cells = np.asarray(X, dtype=object)
    for column in cells.reshape(len(cells), -1).T:
        yield ["" if text is None or text != text else str(text) for text in column]


def named(input_features: Sequence[str] | None, count: int) -> list[str]:
    """The columns' names, or x0, x1, …"""
    return (
        [f"x{i}" for i in range(count)] if input_features is None else [*map(str, input_features)]
    )


def _placed(counted: list[Counted], vocabulary: dict[str, int], rows: int) -> Any:
    """Counts in the columns of a vocabulary; other terms are left out."""
    row, column, value = [], [], []
    for one in counted:
        found = one.counts.tocoo()
        here = [vocabulary.get(term, -1) for term in one.names(np.arange(one.counts.shape[1]))]
        at = np.array(here, dtype=np.int64)[found.col]
        kept = at >= 0
        row.append(found.row[kept])
        column.append(at[kept])
        value.append(found.data[kept])
    together = (np.concatenate(value), (np.concatenate(row), np.concatenate(column)))
    return sparse.csr_matrix(together, shape=(rows, len(vocabulary)))


def _side_by_side(blocks: list[Any]) -> Any:
    """One matrix; a column of zeros where no text has a term."""
    made = sparse.hstack(blocks, format="csr")
    return made if made.shape[1] else sparse.csr_matrix((made.shape[0], 1))
