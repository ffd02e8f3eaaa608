"""Which words of texts push a model's scores up and down: exactly, where scores add up terms; by
leaving words out, where they do not.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from surelearn.lacking import Lacking
from surelearn.subject import Subject, describe, subject_of
from surelearn.subject.terms import LinearTerms
from surelearn.types import Array, Ints, Model, RowsLike

FEWEST = 5  # background rows that have a word
_CLOSE = 1e-6  # of the largest score
_SHOWN = 8
Method = Literal["auto", "exact", "occlusion"]


@dataclass(frozen=True, kw_only=True)
class TermShares:
    """How the sum of all mean ``|contributions|`` divides; 1 in all, each NaN where there are none.

    Attributes
    ----------
    words : words and sequences of words that are told, with the runs of letters in them
    rare : those that fewer background rows have than is asked for
    letters : runs of letters that lie in no word, or of which that is not known
    others : the columns that are no terms
    """

    words: float
    rare: float
    letters: float
    others: float


@dataclass(frozen=True, kw_only=True, eq=False)
class WordAttribution:
    """How words of texts push a model's scores.

    With ``method`` "exact" a word adds c(x) = w·φ(x) to the score of a row, where φ is its weight
    in the text (TF-IDF), and the parts of the runs of letters that lie in it; its contribution is
    c(x) − mean of c over the background rows. Summed over words, rare words, runs outside of
    words and other columns that is the score less the mean score. With "occlusion" it is the
    change of the answer when the word is left out of the text.

    Attributes
    ----------
    words : the words, and sequences of words, that at least ``min_rows`` background rows have
    columns : the text column that each stands in
    rows_with : how many background rows (with groups: how many groups) have it
    outputs : what the scores are of: the second of two classes (``other`` is the first), all of
        several, or "prediction"
    importance : (outputs, words), mean ``|contribution|`` over the explained rows
    direction : (outputs, words), what the word adds to the score, or by occlusion to the answer, on
        average over (background) rows that have it: above 0 it pushes towards the output
    method : "exact" or "occlusion"
    score : what is divided among the words, in words
    model : whose score it is
    member : its name and its share of the weights, where the model combines several (``members``)
        and one of them is explained; None: the whole model is
    calibrated : whether the model's probabilities are other than the scores say
    shares : how the mean ``|contributions|`` divide; None by occlusion, which looks at some words only
    rows, background_rows : how many were looked at
    min_rows : background rows that a word must have
    scores, mean_scores : (rows, outputs) and (outputs,), the model's own; None by occlusion
    why : why the method is not exact; "" where it is
    """

    words: tuple[str, ...]
    columns: tuple[str, ...]
    rows_with: Ints
    outputs: tuple[Any, ...]
    other: Any = None
    importance: Array
    direction: Array
    method: str
    score: str
    model: str
    member: tuple[str, float] | None = None
    members: int = 1
    calibrated: bool = False
    shares: TermShares | None = None
    rows: int
    background_rows: int
    min_rows: int
    scores: Array | None = None
    mean_scores: Array | None = None
    why: str = ""
    _values: Any = field(default=None, repr=False)
    _means: Array | None = field(default=None, repr=False)
    _rest: Array | None = field(default=None, repr=False)

    def leading(self, output: int = 0, most: int = _SHOWN) -> Ints:
        """Positions of the words with the largest mean ``|contribution|`` to an output; those without
        any are left out.
        """
        order = np.lexsort((np.arange(len(self.words)), -self.importance[output]))
        return order[self.importance[output][order] > 0][:most]

    def contributions(self, row: int) -> Array:
        """Of the words in one of the explained rows, (outputs, words); only where they are exact."""
        if self._values is None or self._means is None:
            raise ValueError("words that were left out of texts have no contribution in every row")
        return np.stack([one[[row]].toarray()[0] for one in self._values]) - self._means

    def rest(self, row: int) -> Array:
        """What all other terms and columns contribute in one of the explained rows, (outputs,)."""
        if self._rest is None:
            raise ValueError("what other terms contribute is known where contributions are exact")
        return self._rest[row]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def _lines(self) -> Iterator[str]:
        of = f" of {self.outputs[0]}" if self.other is not None else ""
        yield f"words by mean |contribution| to the {self.score}{of}, over {self.rows:,} rows"
        several = len(set(self.columns)) > 1
        for k, output in enumerate(self.outputs):
            if len(self.outputs) > 1:
                yield f"{output}"
            for at in self.leading(k):
                name = f"{self.columns[at]}: {self.words[at]}" if several else self.words[at]
                sign = "+" if self.direction[k, at] > 0 else "−"
                yield f"  {sign} {name:<24} {self.importance[k, at]:.4g}"
        if not len(self.words):
            yield f"no word stands in {self.min_rows} background rows"
        yield f"method: {self.how}"
        if self.member is not None:
            yield f"of {self.member[0]}, one of {self.members} models, weight {self.member[1]:.0%}"
        if self.why:
            yield f"not exact: {self.why}"
        if self.shares is not None:
            yield f"these words carry {self.shares.words:.1%} of the mean |contributions|"

    @property
    def how(self) -> str:
        """The method in a sentence's words."""
        if self.method == "exact":
            return (
                "what a word's terms add to the score, less the mean over"
                f" {self.background_rows:,} background rows, exact"
            )
        return "the change of the answer when the word is left out"


def words(
    model: Model | Subject,
    X: RowsLike,
    background: RowsLike | None = None,
    *,
    method: Method = "auto",
    columns: Sequence[str] | None = None,
    groups: npt.ArrayLike | None = None,
    min_rows: int = FEWEST,
    random_state: int = 0,
) -> WordAttribution | Lacking:
    """Which words of the texts in X push the scores of a model up, and which down.

    Where the scores add up terms, s_k(x) = Σ_t w_kt·φ_t(x) + b_k, a term contributes
    w_kt·(φ_t(x) − mean φ_t), which are also its interventional Shapley values (Lundberg and Lee,
    *A Unified Approach to Interpreting Model Predictions*, 2017, Corollary 1). What a run of letters
    contributes is divided among the words that it lies in, by how often. Otherwise words are
    left out of texts, one at a time, and the change of the answer is measured (Li, Monroe and
    Jurafsky, *Understanding Neural Networks through Representation Erasure*, 2016).

    Parameters
    ----------
    model : fitted, with a step that counts the words of texts: `TextTerms`, or scikit-learn's
        ``CountVectorizer`` or ``TfidfVectorizer``; of a model that combines or calibrates others the
        linear one with the largest weight is explained. By occlusion: any model
    X : rows to explain, a table or a sequence of texts
    background : rows over which means are taken and rows with a word are counted, usually those that
        the model was fitted on; None: ``X``
    method : "exact", "occlusion", or "auto": exact if that is possible
    columns : of texts, for occlusion; None: those of strings with three words or more, on average
    groups : of each background row; a word must then stand in ``min_rows`` groups
    min_rows : background rows that must have a word, so that what single rows say is not told
    random_state : by occlusion, of the rows looked at

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> texts = ["a fine film", "a dull film", "fine music", "dull music"] * 5
    >>> model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    >>> found = words(model.fit(texts, ["good", "bad", "good", "bad"] * 5), texts)
    >>> sorted((found.words[at], bool(found.direction[0, at] > 0)) for at in found.leading()[:2])
    [('dull', False), ('fine', True)]
    >>> total = found.contributions(0).sum(axis=1) + found.rest(0)
    >>> bool(np.allclose(total, found.scores[0] - found.mean_scores))
    True
    """
    if method not in ("auto", "exact", "occlusion"):
        raise ValueError(f"method must be 'auto', 'exact' or 'occlusion', not {method!r}")
    if min_rows != int(min_rows) or min_rows < 1:
        raise ValueError(f"min_rows must be a whole number of at least 1, not {min_rows!r}")
    subject = subject_of(model)
    background = X if background is None else background
    why: Lacking | None = None
    if method != "occlusion":
        form = subject.terms
        found = form if isinstance(form, Lacking) else _exact(form, X, background, groups, min_rows)
        if isinstance(found, WordAttribution) or method == "exact":
            return found
        why = found
    from surelearn.attribution.occlusion import left_out

    return left_out(
        subject,
        X,
        background,
        columns=columns,
        groups=groups,
        min_rows=min_rows,
        random_state=random_state,
        why="" if why is None else why.reason,
    )


def _exact(
    form: LinearTerms,
    X: RowsLike,
    background: RowsLike,
    groups: npt.ArrayLike | None,
    min_rows: int,
) -> WordAttribution | Lacking:
    inside, outputs = subject_of(form.model), form.weights.shape[0]
    prepared = form.prepare(X)
    rows = sparse.csr_matrix(prepared)  # (n, columns of φ)
    others = rows if background is X else sparse.csr_matrix(form.prepare(background))
    if not rows.shape[0] or not others.shape[0]:
        return Lacking("words", "there are no rows")
    scores = rows @ form.weights.T + form.intercepts
    given = _own(inside, prepared, outputs)
    if given is None or np.abs(given - scores).max() > _CLOSE * max(1.0, np.abs(given).max()):
        return Lacking("words", f"{inside.kind} scores rows otherwise than its coefficients say")
    vocabulary: dict[tuple[Any, str], int] = {}
    ours = _pieces(form, rows, X, vocabulary)
    theirs = ours if background is X else _pieces(form, others, background, vocabulary)
    return _attributed(form, ours, theirs, vocabulary, groups, min_rows, given)


@dataclass(frozen=True, eq=False)
class _Pieces:
    """What words say of rows, and what the columns that are left say.

    ``row``, ``word`` (entries,), ``amount`` (entries, outputs); ``left`` (n, columns of φ): runs of
    letters outside of words, and columns that are no terms.
    """

    row: Ints
    word: Ints
    amount: Array
    left: Any

    def of(self, output: int, words_: int) -> Any:
        """What each word adds to an output in each row, (n, words), sparse."""
        shape = (self.left.shape[0], words_)
        return sparse.csr_matrix((self.amount[:, output], (self.row, self.word)), shape)


def _pieces(
    form: LinearTerms, rows: Any, X: RowsLike, vocabulary: dict[tuple[Any, str], int]
) -> _Pieces:
    """The terms of rows by words: a run of letters counts to the words that it lies in."""
    terms = form.terms
    whole = (terms.names != "") & ~terms.letters
    code = np.full(whole.size, -1)
    for at in np.flatnonzero(whole).tolist():
        key = (terms.source[at], terms.names[at])
        code[at] = vocabulary.setdefault(key, len(vocabulary))
    found = rows.tocoo()
    kept = whole[found.col]
    row, column, value = found.row[kept], found.col[kept], found.data[kept]
    word = code[column]
    left = sparse.csr_matrix(
        (found.data[~kept], (found.row[~kept], found.col[~kept])), shape=rows.shape
    )
    if terms.in_words is not None:
        shares = terms.in_words(X)
        known = zip(shares.source.tolist(), shares.words.tolist(), strict=True)
        codes = np.array([vocabulary.setdefault(key, len(vocabulary)) for key in known], dtype=int)
        part = np.asarray(rows[shares.row, shares.column]).ravel() * shares.share
        left = left - sparse.csr_matrix((part, (shares.row, shares.column)), shape=rows.shape)
        row, column = np.concatenate([row, shares.row]), np.concatenate([column, shares.column])
        word, value = np.concatenate([word, codes[shares.word]]), np.concatenate([value, part])
    amount = value[:, None] * form.weights.T[column]  # (entries, outputs)
    return _Pieces(row, word, amount, left)


def _attributed(
    form: LinearTerms,
    ours: _Pieces,
    theirs: _Pieces,
    vocabulary: dict[tuple[Any, str], int],
    groups: npt.ArrayLike | None,
    min_rows: int,
    scores: Array,
) -> WordAttribution:
    inside, outputs, size = subject_of(form.model), len(form.weights), len(vocabulary)
    n, m = ours.left.shape[0], theirs.left.shape[0]
    ones = np.ones(theirs.row.size)
    present = sparse.csr_matrix((ones, (theirs.row, theirs.word)), shape=(m, size))
    has = rows_with(present, None)
    counts = has if groups is None else rows_with(present, groups)
    told = np.flatnonzero(counts >= min_rows)
    matrices = [ours.of(k, size) for k in range(outputs)]
    means = np.stack(
        [np.bincount(theirs.word, theirs.amount[:, k], size) / m for k in range(outputs)]
    )
    importance = np.stack(
        [_mean_distance(one.tocsc(), mean) for one, mean in zip(matrices, means, strict=True)]
    )  # (outputs, words)
    left_means = np.asarray(theirs.left.mean(axis=0)).ravel()
    distance = np.abs(form.weights).sum(axis=0) * _mean_distance(ours.left.tocsc(), left_means)
    rare = np.setdiff1d(np.arange(size), told)
    rest = (ours.left @ form.weights.T - form.weights @ left_means) + np.stack(
        [
            np.asarray(one[:, rare].sum(axis=1)).ravel() - mean[rare].sum()
            for one, mean in zip(matrices, means, strict=True)
        ],
        axis=1,
    )
    keys = list(vocabulary)
    labels, other = _labels(inside, outputs)
    amounts = (
        importance[:, told].sum(),
        importance[:, rare].sum(),
        distance[form.terms.letters].sum(),
        distance[~form.terms.letters].sum(),
    )
    words_, rare_, letters, others = (float(one) / max(sum(amounts), 1e-300) for one in amounts)
    total_means = np.array([mean.sum() for mean in means]) + form.weights @ left_means
    return WordAttribution(
        words=tuple(keys[at][1] for at in told.tolist()),
        columns=tuple("text" if keys[at][0] == 0 else str(keys[at][0]) for at in told.tolist()),
        rows_with=counts[told],
        outputs=labels,
        other=other,
        importance=importance[:, told],
        direction=means[:, told] * m / np.maximum(1, has[told]),
        method="exact",
        score="prediction" if inside.classes is None else "score",
        model=describe(form.model),
        member=form.member,
        members=form.members,
        calibrated=form.calibrated,
        shares=TermShares(words=words_, rare=rare_, letters=letters, others=others),
        rows=n,
        background_rows=m,
        min_rows=min_rows,
        scores=scores,
        mean_scores=total_means + form.intercepts,
        _values=tuple(one[:, told] for one in matrices),
        _means=means[:, told],
        _rest=rest,
    )


def _own(inside: Subject, rows: Any, outputs: int) -> Array | None:
    """The scores that the learner itself gives, (n, outputs); None where it gives others."""
    asked = inside.predict if inside.classes is None else inside.decisions
    if isinstance(asked, Lacking):
        return None
    found = np.asarray(asked(rows), dtype=float).reshape(rows.shape[0], -1)
    return found if found.shape[1] == outputs else None


def _mean_distance(rows: Any, means: Array) -> Array:
    """Mean over the rows of |φ_j − mean_j|, of columns of which most are 0."""
    column = np.repeat(np.arange(rows.shape[1]), np.diff(rows.indptr))
    present = np.bincount(column, np.abs(rows.data - means[column]), rows.shape[1])
    absent = rows.shape[0] - np.diff(rows.indptr)
    return (present + absent * np.abs(means)) / rows.shape[0]


def rows_with(values: Any, groups: npt.ArrayLike | None) -> Ints:
    """Of each column, the rows in which it is not 0, or the groups that have such a row."""
    present = sparse.csr_matrix(values, copy=True)
    present.eliminate_zeros()
    if groups is not None:
        present.data = np.ones(present.data.size)
        _, code = np.unique(np.asarray(groups).astype(str), return_inverse=True)
        size = code.size
        of_group = sparse.csr_matrix((np.ones(size), (code.ravel(), np.arange(size))))
        present = (of_group @ present).tocsr()
    return np.bincount(present.indices, minlength=present.shape[1]).astype(np.int64)


def _labels(inside: Subject, outputs: int) -> tuple[tuple[Any, ...], Any]:
    """What the outputs are of, and of two classes the other one."""
    classes = inside.classes
    if classes is None:
        return ("prediction",) if outputs == 1 else tuple(range(1, outputs + 1)), None
    return ((classes[1],), classes[0]) if outputs == 1 else (tuple(classes), None)
