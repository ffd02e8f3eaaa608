"""Sums of numbers in a stated range, in blocks of rows that are drawn by the rows' positions in a file.

Numbers are rounded to whole steps of their range before they are added up, so that sums are exact
and do not depend on how rows are cut into pieces. Which block a row is in depends on its position
and on the file's hash, by a random number, so that the order of the blocks says nothing about numbers, however the
file is sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from fractions import Fraction

import numba
import numpy as np
import numpy.typing as npt

from surelearn.data.columns import Values

STEPS = 1 << 24  # of a stated range
BLOCKS = 256
GROWTH = 8  # a block has an eighth of the rows before it, on average
_WORD = 32  # bits: sums of squares are kept in two words
Steps = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Graded:
    """Numbers in a stated range: their column, another's on the same rows, and the range.

    What is missing is the least there is, of the other the most: neither speaks for ours.

    Attributes
    ----------
    group : rows with the same value of this column belong together: the numbers are then means over
        groups, whose rows stand together in the file, sorted by it
    read : the numbers that values stand for, where these are words
    """

    column: str
    other: str | None
    low: float
    high: float
    group: str | None = None
    read: Callable[[Values], npt.NDArray[np.float64]] | None = None


@dataclass
class Sums:
    """Sums of numbers that were rounded to `STEPS` steps of their range: ours down, the other's up.

    Attributes
    ----------
    n : how many rows
    ours, squares : the sums of ours and of their squares, in steps
    other : the sum of the other's
    gain, gain_squares : of the differences, ours less the other's
    """

    n: int = 0
    ours: int = 0
    squares: int = 0
    other: int = 0
    gain: int = 0
    gain_squares: int = 0

    def add(self, found: npt.NDArray[np.int64]) -> None:
        """Add one batch's, as `add_up` leaves them."""
        n, ours, high, low, other, gain, gain_high, gain_low = map(int, found)
        self.n += n
        self.ours += ours
        self.squares += (high << _WORD) + low
        self.other += other
        self.gain += gain
        self.gain_squares += (gain_high << _WORD) + gain_low


Blocks = dict[int, Sums]  # in ascending order; blocks without such rows are left out


@numba.njit(cache=True)
def blocks_of(first: int, n: int, seed: int = 0) -> Steps:
    """The blocks of the n rows (or groups) from this one on, by their positions and a seed alone.

    The seed is that of a file: with one for all, what was drawn for the first rows would favor, or not,
    every file that is sorted in the same way.

    A row is in the last block with probability 1/9, in the one before with 1/9 of the rest, and so on:
    a file of any length has few blocks (about 180 of 10⁹ rows), and the first ones are small. The
    random numbers are those of SplitMix64 (G. L. Steele, D. Lea and C. H. Flood, OOPSLA 2014), which
    gives the hundredth of them without the others.

    Examples
    --------
    >>> blocks_of(0, 6).tolist() == [*blocks_of(0, 2).tolist(), *blocks_of(2, 4).tolist()]
    True
    """
    found = np.empty(n, dtype=np.int32)
    scale = 1.0 / np.log1p(-1.0 / (GROWTH + 1))
    for i in range(n):
        z = np.uint64(seed) + np.uint64(first + i + 1) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
        part = (np.float64(z >> np.uint64(11)) + 1.0) / 2.0**53  # in (0, 1]
        found[i] = BLOCKS - 1 - min(int(np.log(part) * scale), BLOCKS - 1)
    return found


def total(blocks: Iterable[Sums]) -> Sums:
    """The sums of several blocks together."""
    made = Sums()
    for block in blocks:
        for one in fields(Sums):
            setattr(made, one.name, getattr(made, one.name) + getattr(block, one.name))
    return made


def moments(n: int, total: Fraction | int, squares: Fraction | int) -> tuple[float, float]:
    """Mean and sample variance (divisor n − 1; 0 of a single number) of numbers with these sums,
    exact before they become floats.

    Examples
    --------
    >>> moments(4, 6, 14)
    (1.5, 1.6666666666666667)
    """
    mean = Fraction(total, n)
    variance = Fraction(squares - total * mean) / (n - 1) if n > 1 else Fraction(0)
    return float(mean), float(variance)


@numba.njit(cache=True)
def in_steps(
    values: npt.NDArray[np.float64],
    low: float,
    high: float,
    up: bool,
    steps: Steps,
) -> tuple[int, int, float]:
    """Numbers as whole steps of their range, rounded down or up; how many are missing, how many lie
    outside, and the first of these. Missing ones are the least, with ``up`` the most.
    """
    lost, outside, first = 0, 0, 0.0
    scale = STEPS / (high - low)
    for i in range(values.size):
        value = values[i]
        if np.isnan(value):
            lost += 1
            steps[i] = STEPS if up else 0
            continue
        if value < low or value > high:
            if outside == 0:
                first = value
            outside += 1
            value = low
        step = (value - low) * scale
        rounded = np.ceil(step) if up else np.floor(step)
        steps[i] = np.int32(min(max(rounded, 0.0), float(STEPS)))
    return lost, outside, first


@numba.njit(cache=True)
def add_up(
    joint: Steps,
    ours: Steps,
    other: Steps,
    found: npt.NDArray[np.int64],
) -> None:
    """Add to each cell: rows, Σ ours, Σ ours² in two words, Σ other, Σ (ours − other), and its squares in
    two words.
    """
    paired = other.size == ours.size
    for i in range(joint.size):
        at = joint[i]
        mine = np.int64(ours[i])
        square = mine * mine
        found[at, 0] += 1
        found[at, 1] += mine
        found[at, 2] += square >> _WORD
        found[at, 3] += square & 0xFFFFFFFF
        if paired:
            theirs = np.int64(other[i])
            gain = mine - theirs
            square = gain * gain
            found[at, 4] += theirs
            found[at, 5] += gain
            found[at, 6] += square >> _WORD
            found[at, 7] += square & 0xFFFFFFFF
