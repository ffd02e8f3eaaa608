"""Where the explained output is a sum of trees: the trees that the model declares, compared with
what it says of rows and of mixtures of them before they are used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from surelearn.attribution.mixing import interleaved
from surelearn.attribution.outputs import Output
from surelearn.subject import Lacking, subject_of
from surelearn.subject.refitting import take
from surelearn.subject.trees import Trees
from surelearn.types import AnyArray, Array, Ints, TableRows

_CHECKED = 256  # explained and background rows that are compared, at most
_MIXED = 64  # mixtures of them


@dataclass(frozen=True, eq=False)
class TreeSum:
    """Trees whose sum is the explained output.

    Attributes
    ----------
    trees : as the model declares them
    column : of their outputs, the explained one for each row, (rows,)
    player : who owns a node's split, (nodes,); −1 where its column never changes
    X, background : rows as the trees read them
    """

    trees: Trees
    column: Ints
    player: Ints
    X: AnyArray
    background: AnyArray


def trees_of(
    output: Output, X: TableRows, background: TableRows, columns: list[list[int]]
) -> TreeSum | None:
    """The trees; None if the output is no sum of trees, or a split reads columns of several
    players.
    """
    if output.model is None:
        return None
    trees = subject_of(output.model).trees
    if not isinstance(trees, Trees) or output.kind not in trees.outputs:
        return None
    owner = dict.fromkeys(range(X.shape[1]), -1)
    owner |= {j: player for player, held in enumerate(columns) for j in held}
    owners = [{owner[j] for j in source if j in owner} for source in trees.sources]
    if any(len(players) > 1 for players in owners):
        return None
    player = np.array([min(players, default=-1) for players in owners])[trees.source]
    output(take(X, slice(1)))  # the model itself says what is wrong with rows that it does not take
    codes = [trees.decisions.coded(output.given(rows)) for rows in (X, background)]
    if any(isinstance(code, Lacking) for code in codes):
        return None
    chosen = 0 if output.column is None or trees.value.shape[1] == 1 else output.column
    column = np.broadcast_to(np.asarray(chosen, dtype=np.int64), len(X)).copy()
    found = TreeSum(trees, column, player, *cast("list[AnyArray]", codes))
    return found if _is_what_it_says(found, output, X, background, len(columns)) else None


def _is_what_it_says(
    found: TreeSum, output: Output, X: TableRows, background: TableRows, players: int
) -> bool:
    """Whether the model says the sum of the leaves, up to a constant, of the rows, and also of
    mixtures of them: there a split goes as it does for the row of its player.
    """
    trees, rng = found.trees, np.random.RandomState(0)
    x, b = (rng.permutation(len(rows))[:_CHECKED] for rows in (X, background))
    pairs = rng.randint(len(x), size=_MIXED), rng.randint(len(b), size=_MIXED)
    some = rng.random_sample((_MIXED, players + 1)) < 0.5  # the last for columns of nobody
    owner = np.full(X.shape[1], -1)
    for column, player in _owners(trees, found.player):
        owner[column] = player
    mixed = interleaved(X, background, x[pairs[0]], b[pairs[1]], some[:, owner])
    said = [_answers(output, rows) for rows in (take(X, x), take(background, b), mixed)]
    if said[0].shape[1] != trees.value.shape[1]:
        return False
    sums = [np.zeros(part.shape) for part in said]
    for roots, nodes in trees.blocks(len(x) + len(b) + _MIXED):
        # (rows, nodes) of explained rows, background rows, and mixtures of them
        left = [
            trees.decisions.goes_left(code[rows], nodes)
            for code, rows in ((found.X, x), (found.background, b))
        ]
        ours, theirs = (each[rows] for each, rows in zip(left, pairs, strict=True))
        left.append(np.where(some[:, found.player[nodes]], ours, theirs))
        for goes, total in zip(left, sums, strict=True):
            trees.add_leaves(roots, nodes, goes, total)
    rest = np.concatenate(said) - output.sign * np.concatenate(sums)
    scale = max(1.0, max(float(np.abs(part).max()) for part in said))
    # a constant: where boosting starts
    return bool(np.abs(rest - rest[0]).max() <= trees.precision * scale)


def _owners(trees: Trees, player: Ints) -> set[tuple[int, int]]:
    """The columns that are split, and whose they are."""
    split = trees.left >= 0
    pairs = set(zip(trees.source[split].tolist(), player[split].tolist(), strict=True))
    return {(column, owner) for source, owner in pairs for column in trees.sources[source]}


def _answers(output: Output, rows: TableRows) -> Array:
    """(rows, outputs)."""
    said = output(rows)
    return said[:, None] if said.ndim == 1 else said
