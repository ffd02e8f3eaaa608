"""Rows that take some columns from explained rows and the others from background rows, in
arrays and data frames.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from surelearn.subject.refitting import column_names
from surelearn.types import Bools, Ints, TableRows

# columns by name or position that play as one
Groups = Mapping[str, Sequence[int | str]] | Sequence[Sequence[int | str]] | None


class Mixer:
    """Mixes explained and background rows, player by player.

    Parameters
    ----------
    X, background : rows, both arrays or both data frames of the same columns
    columns : for each player the positions of its columns
    """

    def __init__(self, X: TableRows, background: TableRows, columns: list[list[int]]) -> None:
        self.columns, self.players = columns, len(columns)
        self.rows, self.background = len(X), len(background)
        self.frames = hasattr(X, "columns")
        self.X: Any = X
        self.b: Any = background
        # of a column that belongs to nobody it does not matter
        self._player = np.zeros(X.shape[1], dtype=int)
        for player, held in enumerate(columns):
            self._player[held] = player
        self._kept: tuple[Any, dict[tuple[int, bool], Any]] = (None, {})

    def mixed(self, masks: Bools, rows: slice) -> TableRows:
        """A block (coalitions, rows, background) of mixed rows."""
        inside = np.asarray(masks)[:, self._player]
        if not self.frames:
            # the background everywhere, and the explained rows where their players are in
            shape = (len(masks), rows.stop - rows.start, self.background, self.X.shape[1])
            block = np.empty(shape, dtype=np.result_type(self.X, self.b))
            block[...] = self.b
            np.copyto(block, self.X[None, rows, None, :], where=inside[:, None, None, :])
            return block
        import pandas as pd

        x, b = self._places(len(masks), rows)
        each = len(x) // len(masks)
        made = {}
        for j, name in enumerate(self.X.columns):
            made[name] = self._both(j).take(np.where(np.repeat(inside[:, j], each), x, b))
        return pd.DataFrame(made, copy=False)

    def switch(self, mixed: TableRows, player: int, inside: bool, rows: slice) -> None:
        """Give the columns of one player to the explained rows (``inside``) or to the
        background, throughout a mixed block.
        """
        block = cast("Any", mixed)
        for j in self.columns[player]:
            if not self.frames:
                block[..., j] = self.X[None, rows, None, j] if inside else self.b[None, None, :, j]
                continue
            key = (rows.start, rows.stop, len(block))
            if self._kept[0] != key:
                self._kept = (key, {})
            if (j, inside) not in self._kept[1]:
                each = (rows.stop - rows.start) * self.background
                x, b = self._places(len(block) // each, rows)
                self._kept[1][j, inside] = self._both(j).take(x if inside else b)
            block[self.X.columns[j]] = self._kept[1][j, inside]

    def as_rows(self, block: TableRows) -> TableRows:
        """The block as rows for the model."""
        return block if self.frames else np.asarray(block).reshape(-1, block.shape[-1])

    def copy(self, block: TableRows) -> TableRows:
        """To compare with afterwards."""
        return cast("Any", block).copy()

    def same(self, before: TableRows, now: TableRows) -> bool:
        """Whether a block is as it was."""
        if self.frames:
            return cast("Any", before).equals(now)
        was, block = np.asarray(before), np.asarray(now)
        if block.dtype == object:  # a missing value among words equals nothing, but is still itself
            return bool(np.all(np.frompyfunc(operator.is_, 2, 1)(was, block)))
        return np.array_equal(was, block, equal_nan=block.dtype.kind == "f")

    def _places(self, coalitions: int, rows: slice) -> tuple[Ints, Ints]:
        """For each row of a block, where its explained and its background values stand in
        `_both`.
        """
        count = rows.stop - rows.start
        x = np.tile(np.repeat(np.arange(rows.start, rows.stop), self.background), coalitions)
        return x, np.tile(self.rows + np.arange(self.background), coalitions * count)

    def _both(self, j: int) -> Any:
        import pandas as pd

        return pd.concat([self.X.iloc[:, j], self.b.iloc[:, j]], ignore_index=True).array


def interleaved(X: TableRows, background: TableRows, x: Ints, b: Ints, where: Bools) -> TableRows:
    """Rows x of X but for columns not in ``where`` (rows, d), which are those of rows b of the
    background.
    """
    if not hasattr(X, "columns"):
        return np.where(where, np.asarray(X)[x], np.asarray(background)[b])
    import pandas as pd

    made, first, second = {}, cast("Any", X), cast("Any", background)
    for j, name in enumerate(first.columns):
        both = pd.concat([first.iloc[:, j], second.iloc[:, j]], ignore_index=True).array
        made[name] = both.take(np.where(where[:, j], x, len(X) + b))
    return pd.DataFrame(made)


def players_of(
    X: TableRows, groups: Groups = None, names: Sequence[str] | None = None
) -> tuple[list[list[int]], tuple[str, ...]]:
    """Columns of each player, and the players' names.

    Parameters
    ----------
    X : rows
    groups : {name: columns} or a list of lists of columns, by name or position; columns in no group
        play alone
    names : of the columns; None takes the data frame's, or x0, x1, …
    """
    d = X.shape[1]
    if names is None:
        names = column_names(X)
    if len(names) != d:
        raise ValueError(f"names must be {d}, one for each column, not {len(names)}")
    names = list(map(str, names))
    named = dict(groups) if isinstance(groups, Mapping) else dict(enumerate(groups or []))
    players, taken = [], {}
    for label, held in named.items():
        places = [_place(column, names) for column in held]
        if not places:
            raise ValueError(f"groups must hold columns: {label!r} holds none")
        for place in places:
            if place in taken:
                raise ValueError(f"groups must not share columns: {names[place]!r} is in two")
            taken[place] = label
        players.append(
            (
                sorted(places),
                str(label) if isinstance(label, str) else " + ".join(names[j] for j in places),
            )
        )
    players += [([j], names[j]) for j in range(d) if j not in taken]
    players.sort(key=lambda player: player[0][0])
    return [held for held, _ in players], tuple(name for _, name in players)


def _place(column: int | str, names: Sequence[str]) -> int:
    if isinstance(column, str):
        if column not in names:
            raise ValueError(f"groups name the column {column!r}, which is not there")
        return names.index(column)
    if not 0 <= int(column) < len(names):
        raise ValueError(f"groups name column {column}, but there are {len(names)}")
    return int(column)
