"""How often words, sequences of words and runs of letters occur in texts, all terms at once.

A term is a sequence of words of two or more letters or digits, in lower case, or a run of letters
within a word with a space before and after it: scikit-learn's ``CountVectorizer`` with the analyzers
"word" and "char_wb". Sequences are numbers until it is known which are kept, and the runs of a word
are found once, however often it occurs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from surelearn.types import Array, Ints

_WORD = re.compile(r"\b\w\w+\b")


@dataclass(frozen=True, eq=False)
class Counted:
    """Terms of one kind.

    Attributes
    ----------
    counts : (texts, terms), sparse
    names : from positions of terms to what they are
    """

    counts: Any
    names: Callable[[Ints], list[str]]


def sequences(texts: Sequence[str], longest: int) -> list[Counted]:
    """Words, pairs of neighbors, … up to ``longest`` words.

    Examples
    --------
    >>> words, pairs = sequences(["red ball, red ball", "ball"], 2)
    >>> words.names(np.arange(2)), words.counts.toarray().tolist()
    (['red', 'ball'], [[2.0, 2.0], [0.0, 1.0]])
    >>> pairs.names(np.arange(2)), pairs.counts.toarray().tolist()
    (['red ball', 'ball red'], [[2.0, 1.0], [0.0, 0.0]])
    """
    known: dict[str, int] = {}
    each = [
        [known.setdefault(word, len(known)) for word in _WORD.findall(text.lower())]
        for text in texts
    ]
    words = np.array([word for text in each for word in text], dtype=np.int64)
    row = np.repeat(np.arange(len(texts)), [len(text) for text in each])
    spelled = list(known)

    def single(at: Ints) -> list[str]:
        return [spelled[i] for i in at]

    found = [Counted(_sums(row, words, (len(texts), len(spelled))), single)]
    start, ids = np.arange(words.size), words
    for more in range(1, longest):
        goes_on = start + more < words.size
        goes_on[goes_on] = row[start[goes_on] + more] == row[start[goes_on]]
        start = start[goes_on]
        pairs, ids = np.unique(
            ids[goes_on] * max(1, len(spelled)) + words[start + more], return_inverse=True
        )
        heads, tails = np.divmod(pairs, max(1, len(spelled)))
        names = _joined(found[-1].names, heads, single, tails)
        found.append(Counted(_sums(row[start], ids, (len(texts), pairs.size)), names))
    return found


def runs(texts: Sequence[str], shortest: int, longest: int) -> Counted:
    """Runs of ``shortest`` to ``longest`` letters within words, each of which has a space before and
    after it.

    Examples
    --------
    >>> found = runs(["at", "at a"], 3, 4)
    >>> found.names(np.arange(4)), found.counts.toarray().tolist()
    ([' at', 'at ', ' at ', ' a '], [[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    """
    known: dict[str, int] = {}
    each = [[known.setdefault(word, len(known)) for word in text.lower().split()] for text in texts]
    words = np.array([word for text in each for word in text], dtype=np.int64)
    row = np.repeat(np.arange(len(texts)), [len(text) for text in each])
    letters: dict[str, int] = {}
    inside: list[list[int]] = []
    for word in (f" {word} " for word in known):
        inside.append(
            [
                letters.setdefault(word[at : at + size], len(letters))
                for size in range(shortest, min(longest, len(word)) + 1)
                for at in range(len(word) - size + 1)
            ]
        )
    within = np.repeat(np.arange(len(inside)), [len(word) for word in inside])
    ids = np.array([run for word in inside for run in word], dtype=np.int64)
    # (texts, words) @ (words, runs)
    counts = _sums(row, words, (len(texts), len(known))) @ _sums(
        within, ids, (len(known), len(letters))
    )
    spelled = list(letters)
    return Counted(counts, lambda at: [spelled[i] for i in at])


@dataclass(frozen=True, eq=False)
class Inside:
    """Of what a run of letters says of a text, the share that belongs to a word.

    Attributes
    ----------
    row, run, word : (entries,); positions of runs in the vocabulary, of words in ``words``
    share : (entries,), its occurrences in the word by its occurrences in the text
    words : what the words are
    """

    row: Ints
    run: Ints
    word: Ints
    share: Array
    words: list[str]


def inside_words(
    texts: Sequence[str], vocabulary: Mapping[str, int], shortest: int, longest: int
) -> Inside:
    """Which words the runs of letters of `runs` lie in: a run that occurs n times in a text, m times
    in pieces with a word, belongs to that word by m/n. A piece is what stands between spaces; words
    in the same piece ("ex-boss") share it equally.

    Examples
    --------
    >>> found = inside_words(["red bed"], {"ed ": 0, " re": 1}, 3, 3)
    >>> [(found.words[w], int(r), float(s)) for w, r, s in zip(found.word, found.run, found.share)]
    [('red', 0, 0.5), ('red', 1, 1.0), ('bed', 0, 0.5)]
    """
    known: dict[str, int] = {}
    each = [
        [known.setdefault(piece, len(known)) for piece in text.lower().split()] for text in texts
    ]
    piece = np.array([one for text in each for one in text], dtype=np.int64)
    row = np.repeat(np.arange(len(texts)), [len(text) for text in each])
    occurs = _sums(row, piece, (len(texts), len(known)))  # (texts, pieces)
    held: list[list[int]] = []
    words: dict[str, int] = {}
    of_piece: list[list[int]] = []
    for one in known:
        of_piece.append([words.setdefault(word, len(words)) for word in _WORD.findall(one)])
        padded = f" {one} "
        held.append(
            [
                vocabulary[run]
                for size in range(shortest, min(longest, len(padded)) + 1)
                for at in range(len(padded) - size + 1)
                if (run := padded[at : at + size]) in vocabulary
            ]
        )
    within = np.repeat(np.arange(len(held)), [len(runs) for runs in held])
    ids = np.array([run for runs in held for run in runs], dtype=np.int64)
    runs_in = _sums(within, ids, (len(known), len(vocabulary)))  # (pieces, runs)
    words_in = _sums(
        np.repeat(np.arange(len(of_piece)), [len(found) for found in of_piece]),
        np.array([word for found in of_piece for word in found], dtype=np.int64),
        (len(known), len(words)),
    )
    totals = (occurs @ runs_in).tocsr()
    first = _pairs(occurs, words_in)  # text, piece, word
    several = np.asarray(words_in.sum(axis=1)).ravel()
    second, run, count = _rows_of(runs_in, first.piece)
    times = first.count[second] * count / several[first.piece[second]]
    text = first.row[second]
    share = times / np.asarray(totals[text, run]).ravel() if run.size else times
    return Inside(text, run, first.word[second], share, list(words))


@dataclass(frozen=True, eq=False)
class _Placed:
    row: Ints
    piece: Ints
    word: Ints
    count: Array


def _pairs(occurs: Any, words_in: Any) -> _Placed:
    """Every word of every piece of every text, with how often the piece occurs times the word in
    it.
    """
    found = occurs.tocoo()
    at, word, count = _rows_of(words_in, found.col)
    return _Placed(found.row[at], found.col[at], word, found.data[at] * count)


def _rows_of(matrix: Any, rows: Ints) -> tuple[Ints, Ints, Array]:
    """The entries of rows of a sparse matrix: which of ``rows``, the column, the value."""
    sizes = np.diff(matrix.indptr)[rows]
    at = np.repeat(np.arange(rows.size), sizes)
    ends = np.cumsum(sizes)
    inside = np.arange(at.size) - np.repeat(ends - sizes, sizes) + matrix.indptr[rows][at]
    return at, matrix.indices[inside].astype(np.int64), matrix.data[inside]


def _joined(
    first: Callable[[Ints], list[str]],
    heads: Ints,
    second: Callable[[Ints], list[str]],
    tails: Ints,
) -> Callable[[Ints], list[str]]:
    def names(at: Ints) -> list[str]:
        pairs = zip(first(heads[at]), second(tails[at]), strict=True)
        return [f"{head} {tail}" for head, tail in pairs]

    return names


def _sums(row: Ints, column: Ints, shape: tuple[int, int]) -> Any:
    """How often each pair occurs, a sparse matrix."""
    return sparse.csr_matrix((np.ones(row.size), (row, column)), shape=shape)
