"""Asking a game for its coalitions, each once, and adding up an exact probabilistic value."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.attribution.weights import Weights
from surelearn.types import AnyArray

Masks = npt.NDArray[np.bool_]
MOST = 24  # players that can be enumerated
_AT_ONCE = 4096  # coalitions in one batch
_REMEMBERED = 2**20


class CooperativeGame:
    """A set function, asked through batches of masks; a game on tuples is asked once for each
    coalition.

    Parameters
    ----------
    game : takes a tuple of players, or where ``masks`` is True an array (coalitions, n) of booleans
        and returns one number, or one row of numbers, for each
    n : players, numbered from 0
    masks : None looks for ``game.takes_masks``
    value_range : (low, high) that u was said to lie in; None asks for nothing
    """

    def __init__(
        self,
        game: Callable[[Any], Any],
        n: int,
        masks: bool | None = None,
        value_range: tuple[float, float] | None = None,
    ) -> None:
        if not callable(game):
            raise TypeError(
                f"game must be a function of a tuple of players, not {type(game).__name__}"
            )
        if n != int(n) or n < 1:
            raise ValueError(f"n must be a whole number of players, at least 1, not {n!r}")
        self.game, self.n, self.calls = game, int(n), 0
        self.masks = bool(getattr(game, "takes_masks", False)) if masks is None else masks
        self.value_range = value_range
        self._known: dict[bytes, Any] = {}

    def __call__(self, masks: Masks) -> npt.NDArray[np.float64]:
        """U of each coalition, (coalitions, outputs)."""
        u = _finite(self.numbers(masks).astype(float), masks)
        if self.value_range is not None and not (
            self.value_range[0] <= u.min() and u.max() <= self.value_range[1]
        ):
            raise ValueError(
                f"value_range must hold every value of the game, not {self.value_range}: u is"
                f" {_farthest(u):g}"
            )
        return u

    def numbers(self, masks: Masks) -> AnyArray:
        """U of each coalition as the game says it, (coalitions, outputs): fractions stay
        fractions.
        """
        return np.concatenate([self._batch(piece) for piece in _pieces(masks)])

    def _batch(self, masks: Masks) -> AnyArray:
        if not self.masks:
            answers = [self._one(mask) for mask in masks]
            if all(issubclass(kind, Rational) for kind in set(map(type, answers))):
                column = np.empty((len(answers), 1), dtype=object)
                column[:, 0] = answers
                return column
            return np.asarray(answers, dtype=float).reshape(len(masks), -1)
        self.calls += len(masks)
        answers = np.asarray(self.game(masks))
        if answers.ndim == 0 or len(answers) != len(masks):
            raise ValueError(
                f"game must return one value for each of {len(masks)} masks, not shape"
                f" {answers.shape}"
            )
        return answers.reshape(len(masks), -1)

    def _one(self, mask: Masks) -> Any:
        key = mask.tobytes()
        if key not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self.calls += 1
            self._known[key] = self.game(tuple(np.flatnonzero(mask).tolist()))
        return self._known[key]


def masks_of(codes: npt.ArrayLike, n: int) -> Masks:
    """Whole numbers as masks: player i is in where bit i is set."""
    return (np.asarray(codes)[:, None] >> np.arange(n) & 1).astype(bool)


def enumerated(game: CooperativeGame, weights: Weights) -> tuple[AnyArray, AnyArray, AnyArray]:
    """All φ_i, (outputs, n), with u(∅) and u(all); in fractions where game and weights are."""
    n = game.n
    if n > MOST:
        raise ValueError(
            f"{n} players have 2^{n} coalitions: use method='sampling' or 'least squares'"
        )
    pieces = [
        game.numbers(masks_of(codes, n))
        for codes in np.array_split(np.arange(2**n), max(1, 2**n // _AT_ONCE))
    ]
    if all(_exact(piece) for piece in pieces) and weights.exact is not None:
        table = np.concatenate([piece.astype(object) for piece in pieces])
        return _in_fractions(table, weights.exact(), n), _single(table[0]), _single(table[-1])
    # each coalition's gain over the empty one, times what it counts for each player
    table = _finite(np.concatenate([piece.astype(float) for piece in pieces]), None)
    values = np.zeros((n, table.shape[1]))  # (n, outputs)
    codes = np.arange(2**n)
    for start in range(0, 2**n, _AT_ONCE):
        inside = masks_of(codes[start : start + _AT_ONCE], n)
        around = weights.around(inside.sum(axis=1)[:, None], inside)
        values += around.T @ (table[start : start + _AT_ONCE] - table[0])
    return values.T, _single(table[0]), _single(table[-1])


def _in_fractions(table: npt.NDArray[Any], p: list[Fraction], n: int) -> AnyArray:
    """Sums of whole numbers by size of coalition first, so that fractions are few."""
    common = math.lcm(*{int(u.denominator) for u in table.flat})
    whole = np.array(
        [[int(u.numerator) * (common // int(u.denominator)) for u in row] for row in table],
        dtype=object,
    )
    if max(abs(u) for u in whole.flat) * 2**n < 2**62:
        whole = whole.astype(np.int64)
    # of all coalitions of s players, what those with player i sum to, and those without
    codes = np.arange(2**n)
    size = np.bitwise_count(codes)
    values = np.full((table.shape[1], n), Fraction(0), dtype=object)
    for s in range(n + 1):
        these = size == s
        held = masks_of(codes[these], n).T.astype(whole.dtype) @ whole[these]  # (n, outputs)
        total = whole[these].sum(axis=0)
        before, after = p[s - 1] if s else Fraction(0), p[s] if s < n else Fraction(0)
        for i in range(n):
            for j in range(table.shape[1]):
                values[j, i] += before * int(held[i, j]) - after * int(total[j] - held[i, j])
    return values / common


def _exact(piece: npt.NDArray[Any]) -> bool:
    return piece.dtype == object or piece.dtype.kind in "iub"


def _single(row: npt.NDArray[Any]) -> Any:
    return row[0] if len(row) == 1 else row


def _pieces(masks: Masks) -> list[Masks]:
    return [masks[start : start + _AT_ONCE] for start in range(0, len(masks), _AT_ONCE)]


def _finite(values: npt.NDArray[np.float64], masks: Masks | None) -> npt.NDArray[np.float64]:
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any():
        first = int(np.argmax(bad))
        players = np.flatnonzero(
            masks[first]
            if masks is not None
            else masks_of([first], len(values).bit_length() - 1)[0]
        )
        raise ValueError(
            f"game must return finite numbers, not {values[first][~np.isfinite(values[first])][0]}"
            f" for the players {tuple(players.tolist())}"
        )
    return values


def _farthest(u: npt.NDArray[np.float64]) -> float:
    return float(u.flat[np.argmax(np.abs(u - np.median(u)))])
