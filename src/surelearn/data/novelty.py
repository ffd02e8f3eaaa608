"""Errors on what the model has not met: rows that are no copy, and contents without a near copy, of
a fit row.

A model that looks rows up errs nowhere on copies of its fit rows, and an error over all held-back
rows hides how it does elsewhere. What counts as a near copy is fixed by the fit rows alone
(`Novelty`), before a held-back row is looked at.

Why one row per content is counted. Let a table be made of contents, drawn independently from one
distribution, each of which stands there once or several times, exactly or nearly, however often and
for whatever reason; rows get their purpose without regard to their content. Copies of one content
err together, so rows are not independent trials, and counting all of them overstates what is known.
But a content of which no copy was fitted on is met in the certify rows alone. Given the fit rows,
such contents are independent draws from one distribution, that of a content which was held back
with all its copies, and so are those of them that lie outside the set of near copies of fit rows,
which is a function of the fit rows. One row of each, chosen without its label, is one trial: the
number of errors is binomial and Clopper–Pearson applies. The claim is about such contents, each
counted once. A content that stands often is rarely held back with all its copies, so that the claim
is about new contents only if how often one stands says nothing about its errors, which is assumed.
It is not about rows (a content that is met often weighs no more than another), and not about new
patients: another visit may lie further away than a near copy. The share of δ is set aside, or not,
by what is seen among the fit rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from surelearn.data.table import hash_rows

Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[np.uint64]

NEIGHBOR = 20  # the neighbor whose distance says how dense the fit rows are where a row lies
BY_CHANCE = 0.01  # the share of independent rows that would be taken for near copies
FEW_VALUES = 20  # a number with at most so many values must be equal, as a category must
# fit rows times rows compared with them times numbers; beyond, only exact copies are looked for
MOST_WORK = 1e9
SAMPLE = 1000  # fit rows that dimension and share of near copies are estimated from
# of fit rows with a near copy among the others, from which on a share of δ is set aside
LEAST_SHARE = 0.05
MOST_NUMBERS = 2_000  # of an image or another tensor: a larger one is compared as a whole
# expected among the certify rows: from fewer not even zero errors would prove anything useful
LEAST_CONTENTS = 20


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows as they are compared: scaled numbers, a key of everything that must be equal, and a
    key of all columns.
    """

    numbers: Floats
    equal: Keys
    content: Keys


@dataclass(frozen=True, eq=False)
class _Scale:
    """A column's quantile function, inverted: linear between knots and, with the slope at its
    ends, beyond them.
    """

    knots: Floats
    ranks: Floats

    @classmethod
    def of(cls, values: Floats) -> _Scale:
        ranks = np.linspace(0, 1, 51)
        knots, knot = np.unique(np.quantile(values, ranks), return_inverse=True)
        return cls(knots, np.bincount(knot, ranks) / np.bincount(knot))

    def __call__(self, values: Floats) -> Floats:
        slopes = np.diff(self.ranks) / np.diff(self.knots)
        below, above = np.minimum(values - self.knots[0], 0), np.maximum(values - self.knots[-1], 0)
        return np.interp(values, self.knots, self.ranks) + slopes[0] * below + slopes[-1] * above


@dataclass(frozen=True, eq=False)
class Compared:
    """Rows compared with the fit rows, by features alone.

    Attributes
    ----------
    copies : which rows have the features of a fit row
    near : which rows have a copy or a near copy among the fit rows
    novel : one random row of every content that has none; near copies of each other are one content
    frequent : whether many fit rows have a near copy among the other fit rows
    planned : whether a share of δ was set aside for the novel contents: decided by the fit rows
        alone
    looks_near : whether near copies were looked for, or exact ones only
    """

    copies: Mask
    near: Mask
    novel: Mask
    frequent: bool
    planned: bool
    looks_near: bool


class Novelty:
    """Which rows have a copy, or a near copy, among the fit rows. Labels take no part.

    A row is a copy of a fit row that has the same features. It is a near copy if categories,
    missing values and numbers with few values agree and its distance d₁ to the nearest such fit row
    is at most c·d₂₀, d₂₀ the distance of its 20th nearest among the distinct fit rows. Numbers are
    put on the scale of their column's quantiles, linearly between each 2% of the fit rows, so that
    long tails and small units do not matter. In d dimensions a row that is independent of the fit
    rows has d₁ ≤ c·d₂₀ with probability 1 − (1 − c^d)¹⁹, since each of the 19 nearer rows lies
    within c·d₂₀ with probability c^d; c makes 19·c^d one in a hundred, with d from how d₂₀ grows to
    d₈₀ on fit rows.

    Parameters
    ----------
    X : features of the fit rows
    compared : how many rows will be compared with them

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 4))
    >>> novelty = Novelty(X, 3)
    >>> novelty.compare(np.vstack([X[0], X[1] + 1e-3, rng.normal(size=4)])).near.tolist()
    [True, True, False]
    """

    def __init__(self, X: pd.DataFrame | npt.ArrayLike, compared: int) -> None:
        frame = _frame(X)
        self._scales: dict[Any, _Scale] = {}
        for name in frame.columns:
            values = _as_number(frame[name])
            if values is not None and np.unique(values[~np.isnan(values)]).size > FEW_VALUES:
                self._scales[name] = _Scale.of(values[~np.isnan(values)])
        self._fit = self._rows(frame)
        self._distinct = np.unique(self._fit.numbers, axis=0)
        enough = len(self._distinct) > 4 * NEIGHBOR + 1
        work = len(frame) * max(compared, SAMPLE) * len(self._scales)
        self.looks_near = enough and 0 < work <= MOST_WORK
        self._ratio = self._closeness() if self.looks_near else 0.0

    def compare(self, X: pd.DataFrame | npt.ArrayLike) -> Compared:
        """Which rows are copies, which have a near copy, and one row of every content that has
        none.
        """
        rows = self._rows(_frame(X))
        radii = self._radii(rows)
        copies = np.isin(rows.content, self._fit.content)
        near = copies | (self._nearest(rows) <= radii)
        return Compared(
            copies=copies,
            near=near,
            novel=self._one_per_content(rows, radii, np.flatnonzero(~near)),
            frequent=self.share >= LEAST_SHARE,
            planned=self.planned(copies.size),
            looks_near=self.looks_near,
        )

    def _one_per_content(self, rows: _Rows, radii: Floats, novel: npt.NDArray[np.intp]) -> Mask:
        """One random row of every content among the novel rows: those that near copies connect
        are one.
        """
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import connected_components
        from scipy.spatial import KDTree

        first, same = np.unique(rows.content[novel], return_index=True, return_inverse=True)[1:]
        pairs = [(np.arange(novel.size), first[same])]
        for members in _by_key(rows.equal[novel]) if self.looks_near else ():
            here = novel[members]
            found = KDTree(rows.numbers[here]).query_ball_point(rows.numbers[here], radii[here])
            lengths = [len(near) for near in found]
            pairs.append(
                (np.repeat(members, lengths), members[np.concatenate(found).astype(np.intp)])
            )
        one, other = (np.concatenate(side) for side in zip(*pairs, strict=True))
        graph = coo_matrix(
            (np.ones(one.size, dtype=bool), (one, other)), shape=(novel.size, novel.size)
        )
        content = (
            connected_components(graph, directed=False)[1] if novel.size else np.zeros(0, dtype=int)
        )
        # the file's order might depend on labels
        order = np.random.default_rng(0).permutation(novel.size)
        chosen = np.zeros(len(rows.content), dtype=bool)
        chosen[novel[order[np.unique(content[order], return_index=True)[1]]]] = True
        return chosen

    @cached_property
    def share(self) -> float:
        """The share of the fit rows that have a copy or a near copy among the other fit rows,
        on a sample of them.
        """
        sample = self._sample(self._fit.content.size)
        rows = _Rows(self._fit.numbers[sample], self._fit.equal[sample], self._fit.content[sample])
        content, counts = np.unique(self._fit.content, return_counts=True)
        repeated = counts[np.searchsorted(content, rows.content)] > 1
        return float(
            np.mean(
                repeated
                | (self._nearest(rows, but_itself=True) <= self._radii(rows, but_itself=True))
            )
        )

    def planned(self, certify: int) -> bool:
        """Whether a share of δ is set aside for so many certify rows: decided by the fit rows
        alone.
        """
        return self.share >= LEAST_SHARE and certify * (1 - self.share) >= LEAST_CONTENTS

    # ----------------------------------------------------------------------------------------------

    def _rows(self, frame: pd.DataFrame) -> _Rows:
        numbers = np.zeros((len(frame), len(self._scales)))
        equal = frame.copy(deep=False)
        for j, (name, scale) in enumerate(self._scales.items()):
            values = _as_number(frame[name])
            values = np.full(len(frame), np.nan) if values is None else values
            numbers[:, j] = np.nan_to_num(scale(values))
            equal[name] = np.isnan(values).astype(float)
        return _Rows(numbers, hash_rows(equal), hash_rows(frame))

    def _closeness(self) -> float:
        """The ratio c of distances from which on a row is a near copy."""
        from scipy.spatial import KDTree

        points = self._distinct[self._sample(len(self._distinct))]
        distances = np.median(
            KDTree(self._distinct).query(points, [NEIGHBOR + 1, 4 * NEIGHBOR + 1])[0], axis=0
        )
        growth = np.log(distances[1] / distances[0]) if distances[0] > 0 else np.inf
        dimension = (
            np.clip(np.log(4) / growth, 0.5, len(self._scales)) if growth > 0 else len(self._scales)
        )
        return float((BY_CHANCE / (NEIGHBOR - 1)) ** (1 / dimension))

    def _radii(self, rows: _Rows, but_itself: bool = False) -> Floats:
        """Up to which distance a fit row is a near copy of each row; below 0 where only copies
        are looked for.
        """
        from scipy.spatial import KDTree

        if not self.looks_near:
            return np.full(len(rows.equal), -1.0)
        return (
            self._ratio
            * KDTree(self._distinct).query(rows.numbers, [NEIGHBOR + but_itself])[0][:, 0]
        )

    def _nearest(self, rows: _Rows, but_itself: bool = False) -> Floats:
        """The distance of each row to the nearest fit row (but itself) that agrees in all that
        must be equal.
        """
        from scipy.spatial import KDTree

        nearest = np.full(len(rows.equal), np.inf)
        if not self.looks_near:
            return nearest
        fitted = {self._fit.equal[members[0]]: members for members in _by_key(self._fit.equal)}
        for members in _by_key(rows.equal):
            if (there := fitted.get(rows.equal[members[0]])) is not None:
                tree = KDTree(self._fit.numbers[there])
                nearest[members] = tree.query(rows.numbers[members], [1 + but_itself])[0][:, 0]
        return nearest

    @staticmethod
    def _sample(n: int) -> npt.NDArray[np.intp]:
        return np.random.default_rng(0).permutation(n)[:SAMPLE]


def _by_key(keys: Keys) -> Iterator[npt.NDArray[np.intp]]:
    """Positions of the rows of each key."""
    order = np.argsort(keys, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(keys[order])) + 1) if keys.size else ()


def _frame(X: pd.DataFrame | npt.ArrayLike) -> pd.DataFrame:
    if isinstance(X, pd.DataFrame):
        return X
    array = np.asarray(X)
    # large images: copies alone are looked for, by all their numbers
    if array.ndim > 2 and array[:1].size > MOST_NUMBERS:
        return pd.DataFrame(
            {"numbers": [sha256(row.astype(float).tobytes()).hexdigest() for row in array]}
        )
    return pd.DataFrame(array.reshape(len(array), -1))


def _as_number(column: pd.Series) -> Floats | None:
    """A column of numbers or dates as floats, missing as NaN; None for words."""
    values = column.to_numpy()
    if values.dtype.kind == "M":
        return np.where(
            np.isnat(values), np.nan, values.astype("datetime64[us]").astype(np.int64).astype(float)
        )
    return values.astype(float) if values.dtype.kind in "iuf" else None
