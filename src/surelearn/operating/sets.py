"""Prediction sets: for each row the labels that are not ruled out, so that new rows' true labels are in
their sets as often as was stated.

A label c is in the set of a row x if its score s(x, c) is at most a threshold. What a score is, is fixed
without certified rows; the threshold is the certified rows' score of a rank that follows from their
number, α and δ (`surelearn.bounds.conformal_coverage`), one for all labels or one for each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy.special import softmax

from surelearn.bounds.holdout import conformal_rank_pac
from surelearn.lacking import Lacking
from surelearn.subject import subject_of
from surelearn.subject.probabilities import probabilities_of
from surelearn.types import Array, Bools, Ints, Model, RowsLike

SCORES = ("probability", "ratio", "cumulative", "regularized")
QUANTITIES = ("set_coverage", "class_coverage")  # of claims
SEPARATOR, ESCAPE, NO_LETTERS = "|", "\\", "\\e"
_DIGITS = 12  # of a score: sums of floats in another order differ further behind
_LEAST = 1e-300  # of a probability
_EQUAL = 1.01
_PENALTY = 0.1  # for each label that is more probable, of "regularized"


@dataclass(frozen=True)
class PredictionSets:
    """What is in a set; all but the thresholds is fixed before rows are looked at.

    Attributes
    ----------
    alpha : the part of new rows whose true label may be outside their set
    classes : the labels that the model knows
    per_class : whether each label has a threshold, and a claim, of its own
    score : one of `SCORES`, see `nonconformity`
    delta : the failure probability of each threshold
    thresholds : one, or with ``per_class`` one for each label; None: the label is in every set, since
        too few rows have it
    """

    alpha: float
    classes: tuple[Any, ...]
    per_class: bool = False
    score: str = "probability"
    delta: float = 0.0
    thresholds: tuple[float | None, ...] = ()

    def facts(self, scores: Array, codes: Ints, rows: Ints) -> dict[str, Any]:
        """Count certified rows: (n, K) ``scores``, (n,) positions of the true labels (−1: a label
        that the model does not know, which no set contains), and the independent ones of the rows.
        """
        scores, codes = scores[rows], codes[rows]
        known = codes >= 0
        own = np.where(known, scores[np.arange(codes.size), np.maximum(codes, 0)], np.inf)
        thresholds: list[float | None] = []
        facts: dict[str, Any] = {}
        for name, part in self._parts(own, codes):
            rank = conformal_rank_pac(part.size, self.alpha, self.delta) if part.size else math.inf
            cut = math.inf if rank > part.size else float(np.sort(part)[int(rank) - 1])
            thresholds.append(cut if math.isfinite(cut) else None)
            covered = (
                int(np.sum(part <= cut)) if math.isfinite(cut) else int(np.isfinite(part).sum())
            )
            facts |= {f"{name}.covered": covered, f"{name}.n": int(part.size)}
            facts[f"{name}.threshold"] = thresholds[-1]
        inside = within(scores, thresholds)
        facts["set.sizes"] = np.bincount(inside.sum(axis=1)).tolist()
        facts["set.unknown"] = int((~known).sum())
        return facts

    def _parts(self, own: Array, codes: Ints) -> list[tuple[str, Array]]:
        """Scores of the true labels with the name of their facts: of all rows, or of each label's."""
        if not self.per_class:
            return [("set", own)]
        return [(f"set[{label}]", own[codes == i]) for i, label in enumerate(self.classes)]

    @classmethod
    def of_facts(cls, options: Mapping[str, Any], values: Mapping[str, Any]) -> PredictionSets:
        """Read the thresholds that `facts` found."""
        classes = tuple(options["classes"])
        each = bool(options.get("per_class", False))
        names = [f"set[{label}]" for label in classes] if each else ["set"]
        cuts = tuple(values[f"{name}.threshold"] for name in names)
        score = str(options.get("set_score", "probability"))
        return cls(float(options["sets"]), classes, each, score, thresholds=cuts)

    def members(self, model: Model, X: RowsLike) -> Bools:
        """(n, K) which labels are in the set of each row, in the order of ``classes``."""
        return within(self.scores(model, X), self.thresholds)

    def scores(self, model: Model, X: RowsLike) -> Array:
        """(n, K) the score of each label.

        Raises
        ------
        ValueError
            where the model gives neither probabilities nor scores
        """
        return nonconformity(self.score, shares_of(model, X, self.classes))

    def labels(self, model: Model, X: RowsLike) -> list[tuple[Any, ...]]:
        """The labels in the set of each row, the most probable first."""
        return self.listed(self.scores(model, X))

    def listed(self, scores: Array) -> list[tuple[Any, ...]]:
        """The same from the scores of the labels."""
        inside, order = within(scores, self.thresholds), np.argsort(scores, axis=1, kind="stable")
        found = []
        for row, places in zip(inside, order, strict=True):
            found.append(tuple(self.classes[i] for i in places if row[i]))
        return found

    def read(self, texts: Sequence[Any], name: str = "sets") -> Bools:
        """(n, K) from texts that `in_words` wrote; a label that is none of the model's is refused."""
        place = {str(label): i for i, label in enumerate(self.classes)}
        inside = np.zeros((len(texts), len(self.classes)), dtype=bool)
        for row, text in zip(inside, texts, strict=True):
            for word in from_words("" if text is None or text != text else str(text)):
                if word not in place:
                    raise ValueError(f"{name} holds {word!r:.60}, which is no label of the model")
                row[place[word]] = True
        return inside


def nonconformity(score: str, probabilities: Array) -> Array:
    """(n, K) how little each label fits, by one of `SCORES`.

    "probability": −ln p_c, which ranks as 1 − p_c does and tells small probabilities apart (Y. Sadinle,
    J. Lei and L. Wasserman, Least ambiguous set-valued classifiers, 2019); "ratio": ln(max p/p_c);
    "cumulative": the sum of all larger probabilities
    (Y. Romano, M. Sesia and E. Candès, Classification with valid and adaptive coverage, 2020, without
    a random part); "regularized": the same and 0.1 for each more probable label (A. Angelopoulos, S.
    Bates, J. Malik and M. I. Jordan, Uncertainty sets for image classifiers, 2021). By the last three
    the most probable label has the score 0 and is in every set.

    Examples
    --------
    >>> p = np.array([[0.6, 0.3, 0.1]])
    >>> [nonconformity(score, p).round(2).tolist()[0] for score in SCORES]
    [[0.51, 1.2, 2.3], [0.0, 0.69, 1.79], [0.0, 0.6, 0.9], [0.0, 0.7, 1.1]]
    """
    p = np.asarray(probabilities, dtype=float)
    if score in ("probability", "ratio"):
        p = np.maximum(p, _LEAST)
        most = p.max(axis=1, keepdims=True) if score == "ratio" else 1.0
        return _rounded(np.log(most / p))
    order = np.argsort(-p, axis=1, kind="stable")
    falling = np.take_along_axis(p, order, axis=1)
    before = np.cumsum(falling, axis=1) - falling
    # equal probabilities share the place of the first of them
    places = np.broadcast_to(np.arange(p.shape[1]), p.shape)
    new = np.ones(p.shape, dtype=bool)
    new[:, 1:] = falling[:, 1:] < falling[:, :-1]
    first = np.maximum.accumulate(np.where(new, places, 0), axis=1)
    sums = np.take_along_axis(before, first, axis=1)
    if score == "regularized":
        sums = sums + _PENALTY * first
    found = np.empty_like(p)
    np.put_along_axis(found, order, sums, axis=1)
    return _rounded(found)


def _rounded(scores: Array) -> Array:
    return cast("Array", np.round(scores, _DIGITS))


def within(scores: Array, thresholds: Sequence[float | None]) -> Bools:
    """(n, K) which scores are at most their label's threshold; all where it is None."""
    cuts = np.array([np.inf if cut is None else cut for cut in thresholds])
    return scores <= cuts


def choose_score(
    probabilities: Array,
    codes: Ints,
    alpha: float,
    certified: int,
    delta: float,
    *,
    per_class: bool,
) -> str:
    """The score whose sets are smallest on rows that are not certified, by probabilities of fits without
    them: an empty set counts as one label, since no answer is no smaller one, and of scores whose sets
    are equal to 1% that with fewer empty sets is taken, then the plainer one.

    Parameters
    ----------
    probabilities : (m, K)
    codes : (m,) positions of the true labels
    alpha, delta, per_class : as of `PredictionSets`
    certified : how many rows are to be certified, whose rank is taken here, too, in proportion
    """
    m, classes = probabilities.shape
    if not m:
        return SCORES[0]
    told: list[tuple[float, float, int]] = []
    for i, score in enumerate(SCORES):
        found = nonconformity(score, probabilities)
        own, cuts = found[np.arange(m), codes], []
        parts = [own[codes == c] for c in range(classes)] if per_class else [own]
        for part in parts:
            rows = max(round(certified * part.size / m), 1)
            rank = conformal_rank_pac(rows, alpha, delta)
            cut = None
            if part.size and rank <= rows:
                cut = float(np.quantile(part, rank / rows, method="inverted_cdf"))
            cuts.append(cut)
        sizes = within(found, cuts).sum(axis=1)
        told.append((float(np.maximum(sizes, 1).mean()), float(np.mean(sizes == 0)), i))
    least = _EQUAL * min(size for size, _, _ in told)
    return SCORES[min((round(empty, 2), i) for size, empty, i in told if size <= least)[1]]


def shares_of(model: Model, X: RowsLike, classes: tuple[Any, ...]) -> Array:
    """(n, K) what the model gives each label: its probabilities; of a model without any its decision
    values, made positive and of sum 1 (softmax), which ranks labels as they do.

    A model with probabilities is refused rows where they are none, such as NaN: other scores are not
    what its thresholds are about.
    """
    given = probabilities_of(model, X, classes)
    if not isinstance(given, Lacking):
        return given
    if not isinstance(subject_of(model).probabilities, Lacking):  # a threshold is of one kind
        raise ValueError(f"prediction sets need probabilities of the labels: {given.reason}")
    decide = getattr(model, "decision_function", None)
    own = list(np.asarray(getattr(model, "classes_", classes)).tolist())
    if decide is None:
        raise ValueError(f"prediction sets need probabilities of the labels: {given.reason}")
    values = np.asarray(decide(X), dtype=float)
    values = np.column_stack([-values / 2, values / 2]) if values.ndim == 1 else values
    if values.shape != (len(values), len(own)) or not np.isfinite(values).all():
        raise ValueError(f"prediction sets need one score per row and label: {given.reason}")
    made = np.zeros((len(values), len(classes)))
    for label, column in zip(own, softmax(values, axis=1).T, strict=True):
        if label in classes:
            made[:, classes.index(label)] = column
    return made


def in_words(labels: Sequence[Any]) -> str:
    r"""A set as text: labels joined by ``|``; in a label ``\|`` stands for ``|``, ``\\`` for ``\``, and
    ``\e`` for a label without letters. The empty set is the empty text.

    Examples
    --------
    >>> in_words(["cat", "dog"]), in_words([]), in_words(["a|b", ""])
    ('cat|dog', '', 'a\\|b|\\e')
    """
    return SEPARATOR.join(_escaped(str(label)) for label in labels)


def _escaped(label: str) -> str:
    if not label:
        return NO_LETTERS
    return label.replace(ESCAPE, ESCAPE * 2).replace(SEPARATOR, ESCAPE + SEPARATOR)


def from_words(text: str) -> list[str]:
    r"""The labels in a text that `in_words` wrote.

    Examples
    --------
    >>> from_words("cat|dog"), from_words(""), from_words("a\\|b|\\e")
    (['cat', 'dog'], [], ['a|b', ''])
    """
    if not text:
        return []
    words, here, letters = [], "", iter(text)
    for letter in letters:
        if letter == ESCAPE:
            follows = next(letters, "")
            here += "" if follows == "e" else follows
        elif letter == SEPARATOR:
            words.append(here)
            here = ""
        else:
            here += letter
    return [*words, here]


def check_asked(sets: object, *, per_class: bool, score: str) -> float | None:
    """What was asked of sets, checked; None where nothing was."""
    if sets is None:
        if per_class:
            raise ValueError("per_class goes with sets, the part of new rows that they may miss")
        return None
    if score not in SCORES:
        raise ValueError(f"set_score must be one of {', '.join(SCORES)}, not {score!r:.60}")
    number = isinstance(sets, (int, float)) and not isinstance(sets, bool)
    if not number or not 0 < cast("float", sets) < 1:
        told = f"{sets:g}" if number else f"{sets!r:.60}"
        raise ValueError(f"sets must lie strictly between 0 and 1, not {told}")
    return float(cast("float", sets))
