"""Lines of a text file in pieces that can be read in any order: without an index, and with 8 MB in
memory at a time.

A piece is a stretch of bytes, and a line belongs to the piece that it begins in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from surelearn.data.columns import DataError
from surelearn.data.opening import LONGEST_LINE, check_line, lines_as_utf8

Array = npt.NDArray[Any]

PIECE = 1 << 18  # bytes of a piece
TOGETHER = 32  # pieces that are in memory at once


@dataclass(frozen=True)
class Lines:
    """Whole lines of a file, from one or more of its pieces.

    Attributes
    ----------
    text : (m,) their bytes, a line break last
    begins, ends : where the lines of each piece begin in the file, and where they end in ``text``
    fraction : the part of the file that they are
    """

    text: Array
    begins: list[int]
    ends: list[int]
    fraction: float


@dataclass(frozen=True)
class SparseRows:
    """Some rows of a file as compressed sparse rows; the label of row i is ``names[codes[i]]``."""

    names: Array
    codes: Array
    data: Array
    indices: Array
    indptr: Array

    @property
    def labels(self) -> Array:
        """The label of each row."""
        return self.names[self.codes]


class BadLineError(ValueError):
    """A line that cannot be read: where it is wrong, in bytes, and a sentence that lacks the
    name and number of the line.
    """

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position, self.reason = position, reason


class TextFile:
    """A file, from byte ``begin`` on, as ``count`` pieces of `PIECE` bytes.

    Parameters
    ----------
    path : a text file, not compressed
    name : how sentences name it
    begin : the byte that its first row begins at
    ours : whether it is a copy of ours, in UTF-8, in which a NUL byte stands for a line break
        within a value
    ascii : whether its parser refuses what is not ASCII, so that every line need not be looked at
        twice
    """

    def __init__(
        self,
        path: Path,
        name: str,
        begin: int = 0,
        *,
        ours: bool = False,
        ascii: bool = False,  # noqa: A002
    ) -> None:
        self.path, self.name, self.begin, self._ours, self._ascii = path, name, begin, ours, ascii
        self.piece, self.size = PIECE, path.stat().st_size
        self.count = max(1, -(-(self.size - begin) // self.piece))

    def read(self, chosen: Array) -> Lines:
        """The lines that begin in the chosen pieces."""
        parts, begins, ends, total, read = [], [], [], 0, 0
        with self.path.open("rb") as file:
            for number in chosen:
                begin, text = self._piece(file, int(number))
                read += len(text)
                text = text if self._ours or self._ascii else lines_as_utf8(self.name, text)
                total += len(text)
                parts.append(text)
                begins.append(begin)
                ends.append(total)
        fraction = read / max(1, self.size - self.begin)
        return Lines(
            np.frombuffer(bytearray().join(parts), dtype=np.uint8), begins, ends, min(1.0, fraction)
        )

    def _piece(self, file: BinaryIO, number: int) -> tuple[int, bytes]:
        begin = self.begin + number * self.piece
        skipped = 0
        if number > 0:
            file.seek(begin - 1)
            skipped = len(file.readline(self.piece + 1)) - 1
        else:
            file.seek(begin)
        # nothing where one line from before goes all the way through
        text = file.read(self.piece - skipped)
        if text and not text.endswith(b"\n"):
            rest = file.readline(LONGEST_LINE + 1)
            check_line(self.name, len(rest))
            text += rest
        return begin + skipped, text if text.endswith(b"\n") or not text else text + b"\n"

    def refused(self, lines: Lines, bad: BadLineError) -> DataError:
        """The sentence for a line that cannot be read, unless its bytes are no text."""
        if self._ascii and not self._ours:
            lines_as_utf8(self.name, lines.text.tobytes())
        return DataError(f"{self.name}, line {self.line(lines, bad.position)}{bad.reason}")

    def line(self, lines: Lines, position: int) -> int:
        """The number of the line in the file, from 1, that holds this position of
        ``lines.text``.
        """
        part = int(np.searchsorted(lines.ends, position, side="right"))
        inside = lines.text[lines.ends[part - 1] if part else 0 : position].tobytes()
        number, before = 1 + _breaks(inside), lines.begins[part]
        with self.path.open("rb") as file:
            while before > 0 and (block := file.read(min(before, 1 << 20))):
                number += _breaks(block)
                before -= len(block)
        return number


def _breaks(text: bytes) -> int:
    return text.count(b"\n") + text.count(b"\0")


def visits(count: int, generator: np.random.RandomState | None = None) -> Iterator[Array]:
    """Which pieces are read together: one pass over ``count`` pieces in random order, about
    `TOGETHER` at a time.

    Without a generator, and where all are read at once, they come in the order of the file.

    Examples
    --------
    >>> [group.tolist() for group in visits(3, np.random.RandomState(0))]
    [[0, 1, 2]]
    """
    order = (
        np.arange(count) if generator is None or count <= TOGETHER else generator.permutation(count)
    )
    for group in np.array_split(order, -(-count // TOGETHER)):
        yield np.sort(group)


def table_bits(width: int) -> int:
    """K of a table of 2^k weights.

    Examples
    --------
    >>> table_bits(1024)
    10
    """
    if width & (width - 1) or not 2 <= width <= 2**31:
        raise ValueError(
            f"features must be a power of two from 2 to 2³¹ where they are hashed, not {width}"
        )
    return width.bit_length() - 1
