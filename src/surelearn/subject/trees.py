"""Sums of trees: which way a row goes at every split, and what the leaves say.

A split asks one column of the user's rows (or several that it combines), so that of a row mixed from
two others it is answered by the one that the column was taken from.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from surelearn.lacking import Lacking
from surelearn.types import AnyArray, Array, Bools, Ints, RowsLike

_CELLS = 2**23  # answers of rows at nodes that are held at once
_Words = npt.NDArray[np.uint32]
Code = Callable[[RowsLike], Array | Lacking]


class Decisions(Protocol):
    """How rows are split, by the library that the trees come from."""

    def coded(self, X: RowsLike) -> AnyArray | Lacking:
        """Rows as the model is given them, as its splits read them, (rows, …)."""
        ...

    def goes_left(self, coded: AnyArray, nodes: slice) -> Bools:
        """Whether a row goes left, (rows, nodes); anything at leaves."""
        ...


@dataclass(frozen=True, eq=False)
class Trees:
    """An output Σ_t (the leaf of tree t that a row falls into), up to a constant.

    Attributes
    ----------
    roots : where each tree begins, (trees,); its nodes follow, before the next tree's
    left, right : where a node's children stand, (nodes,); −1 for a leaf
    source : which of ``sources`` a node's split reads, (nodes,)
    sources : the columns of the user's rows that a split reads, mostly one
    value : of a leaf, (nodes, outputs)
    decisions : which way rows go
    outputs : which outputs are this sum: "value", "score", "probability"
    precision : relative to the largest output, how far the model's own sum may be from this one
    work : numbers that a prediction goes through in each tree, about
    """

    roots: Ints
    left: Ints
    right: Ints
    source: Ints
    sources: tuple[tuple[int, ...], ...]
    value: Array
    decisions: Decisions
    outputs: tuple[str, ...]
    precision: float = 1e-6
    work: float = 500.0

    @property
    def depth(self) -> int:
        """Splits on the longest way from a root to a leaf."""
        depth = 0
        at: Ints = self.roots
        while len(at := at[self.left[at] >= 0]):
            at = np.concatenate([self.left[at], self.right[at]])
            depth += 1
        return depth

    def blocks(self, rows: int) -> Iterator[tuple[Ints, slice]]:
        """Trees that so many rows are asked about at once: their roots, and all their nodes."""
        ends = np.append(self.roots[1:], len(self.left))
        most, first = max(1, _CELLS // max(1, rows)), 0
        while first < len(self.roots):
            start = int(self.roots[first])
            last = max(first + 1, int((ends <= start + most).sum()))
            yield self.roots[first:last], slice(start, int(ends[last - 1]))
            first = last

    def add_leaves(self, roots: Ints, nodes: slice, goes_left: Bools, sums: Array) -> None:
        """Add the leaves of a block of trees, of rows that go so, to their sums (rows, outputs)."""
        _compiled(_add)(roots, self.left, self.right, goes_left, nodes.start, self.value, sums)


@dataclass(frozen=True, eq=False)
class Splits:
    """Splits by thresholds, x ≤ t, and by sets of categories.

    Attributes
    ----------
    code : rows as the model is given them to numbers (rows, coded columns), NaN where a value is
        missing; `Lacking` of rows for which the library's answer is not defined
    feature : the coded column that a node asks, (nodes,)
    threshold : of a node, (nodes,)
    missing_left : whether NaN goes left, (nodes,)
    chosen : which set a node asks for, (nodes,); −1 where it has a threshold
    edges, words : set s has the whole numbers whose bits are in words[edges[s]:edges[s + 1]]
    inside_left : whether the members of a set go left, all other numbers right; or the other way
        round
    """

    code: Code
    feature: Ints
    threshold: Array
    missing_left: Bools
    chosen: Ints
    edges: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    words: _Words = field(default_factory=lambda: np.zeros(0, dtype=np.uint32))
    inside_left: bool = True

    def coded(self, X: RowsLike) -> AnyArray | Lacking:
        """Numbers (rows, coded columns)."""
        found = self.code(X)
        return found if isinstance(found, Lacking) else np.ascontiguousarray(found, np.float64)

    def goes_left(self, coded: AnyArray, nodes: slice) -> Bools:
        """Whether a row goes left, (rows, nodes)."""
        answers = np.empty((len(coded), nodes.stop - nodes.start), dtype=np.bool_)
        _compiled(_split)(
            coded, self.feature[nodes], self.threshold[nodes], self.missing_left[nodes],
            self.chosen[nodes], self.edges, self.words, self.inside_left, answers,
        )  # fmt: skip
        return answers


@dataclass(frozen=True, eq=False)
class Prepared:
    """How rows are split by a model inside another one, which prepares them."""

    inside: Decisions
    prepare: Callable[[RowsLike], AnyArray]

    def coded(self, X: RowsLike) -> AnyArray | Lacking:
        """Prepared rows, as the splits inside read them, (rows, …)."""
        return self.inside.coded(self.prepare(X))

    def goes_left(self, coded: AnyArray, nodes: slice) -> Bools:
        """Whether a row goes left, (rows, nodes)."""
        return self.inside.goes_left(coded, nodes)


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree to be put together with others; children by their place in it.

    Attributes
    ----------
    left, right, feature, threshold, missing_left : as of `Splits`, (nodes,)
    value : (nodes, outputs)
    chosen : (nodes,), numbered from this tree's first set; None: thresholds alone
    sets : the words of each of its sets
    """

    left: npt.NDArray[np.integer]
    right: npt.NDArray[np.integer]
    feature: npt.NDArray[np.integer]
    threshold: npt.NDArray[np.floating]
    missing_left: npt.NDArray[np.generic]
    value: Array
    chosen: npt.NDArray[np.integer] | None = None
    sets: Sequence[npt.NDArray[np.integer]] = ()


def trees_from(
    trees: Sequence[Tree],
    code: Code,
    sources: Sequence[int],
    outputs: tuple[str, ...],
    *,
    inside_left: bool = True,
    precision: float = 1e-6,
    work: float = 500.0,
) -> Trees:
    """All trees as one table of nodes.

    Parameters
    ----------
    trees : at least one
    code : of `Splits`
    sources : the user's column that each coded column is made from
    outputs, precision, work : of `Trees`
    inside_left : of `Splits`
    """
    counts = [len(tree.left) for tree in trees]
    starts = np.cumsum([0, *counts])[:-1].astype(np.int64)
    before = np.cumsum([0, *(len(tree.sets) for tree in trees)])[:-1]

    def children(side: str) -> Ints:
        own = [np.asarray(getattr(tree, side), dtype=np.int64) for tree in trees]
        return np.concatenate(
            [np.where(a < 0, -1, a + start) for a, start in zip(own, starts, strict=True)]
        )

    def joined(name: str, kind: npt.DTypeLike) -> AnyArray:
        return np.concatenate([np.asarray(getattr(tree, name)) for tree in trees]).astype(kind)

    # sets of categories are numbered through, as nodes are
    chosen = [
        np.full(count, -1)
        if tree.chosen is None
        else np.where(tree.chosen < 0, -1, tree.chosen + first)
        for tree, count, first in zip(trees, counts, before, strict=True)
    ]
    sets = [np.asarray(words, dtype=np.uint32) for tree in trees for words in tree.sets]
    left, feature = children("left"), joined("feature", np.int64)
    feature[left < 0] = 0
    splits = Splits(
        code,
        feature,
        joined("threshold", np.float64),
        joined("missing_left", np.bool_),
        np.concatenate(chosen).astype(np.int64),
        np.cumsum([0, *map(len, sets)]).astype(np.int64),
        np.concatenate([np.zeros(0, dtype=np.uint32), *sets]),
        inside_left,
    )
    return Trees(
        starts,
        left,
        children("right"),
        feature,
        tuple((int(column),) for column in sources),
        np.ascontiguousarray(joined("value", np.float64)),
        splits,
        outputs,
        precision,
        work,
    )


def bits_of(members: npt.NDArray[np.integer]) -> _Words:
    """A set of whole numbers as bits of 32-bit words.

    Examples
    --------
    >>> bits_of(np.array([0, 2, 33])).tolist()
    [5, 2]
    """
    words = np.zeros(int(members.max(initial=-1)) // 32 + 1, dtype=np.uint32)
    np.bitwise_or.at(
        words, members // 32, np.left_shift(np.uint32(1), (members % 32).astype(np.uint32))
    )
    return words


def _split(
    coded: Array,
    feature: Ints,
    threshold: Array,
    missing_left: Bools,
    chosen: Ints,
    edges: Ints,
    words: _Words,
    inside_left: bool,
    answers: Bools,
) -> None:
    """Which way each row goes at each node, (rows, nodes)."""
    for r in range(coded.shape[0]):
        for k in range(len(feature)):
            x = coded[r, feature[k]]
            if np.isnan(x):
                answers[r, k] = missing_left[k]
            elif chosen[k] < 0:
                answers[r, k] = x <= threshold[k]
            else:
                start, size = edges[chosen[k]], edges[chosen[k] + 1] - edges[chosen[k]]
                inside = False
                if x > -1.0 and x < 32.0 * size:
                    code = int(x)  # toward zero, as the libraries do
                    inside = ((words[start + code // 32] >> np.uint32(code % 32)) & 1) == 1
                answers[r, k] = inside == inside_left


def _add(
    roots: Ints, left: Ints, right: Ints, goes_left: Bools, start: int, value: Array, sums: Array
) -> None:
    """Add to each row's sums the leaf of each tree that it falls into."""
    for r in range(goes_left.shape[0]):
        for root in roots:
            at = root
            while left[at] >= 0:
                at = left[at] if goes_left[r, at - start] else right[at]
            for k in range(value.shape[1]):
                sums[r, k] += value[at, k]


@functools.cache
def _compiled(function: Callable[..., None]) -> Callable[..., None]:
    import numba

    return numba.njit(cache=True, nogil=True)(function)
