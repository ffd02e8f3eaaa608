"""Lines of a text file in pieces that can be read in any order: without an index, and with 8 MB in memory at a time.

A piece is a stretch of bytes, and a line belongs to the piece that it begins in.
"""

from __future__ import annotations

import gzip
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surelearn.linear.logistic.sgd import Array
from surelearn.unpacking import unzipped

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


class TextFile:
    """A file, from byte ``begin`` on, as ``count`` pieces of `PIECE` bytes."""

    def __init__(self, path: Path, begin: int = 0) -> None:
        self.path, self.begin = path, begin
        self.piece, self.size = PIECE, path.stat().st_size
        self.count = max(1, -(-(self.size - begin) // self.piece))

    def read(self, chosen: Array) -> Lines:
        """The lines that begin in the chosen pieces."""
        parts, begins, ends, total = [], [], [], 0
        with self.path.open("rb") as file:
            for number in chosen:
                begin, text = self._piece(file, int(number))
                total += len(text)
                parts.append(text)
                begins.append(begin)
                ends.append(total)
        fraction = total / max(1, self.size - self.begin)
        return Lines(np.frombuffer(b"".join(parts), dtype=np.uint8), begins, ends, min(1.0, fraction))

    def _piece(self, file: Any, number: int) -> tuple[int, bytes]:
        begin = self.begin + number * self.piece
        skipped = 0
        if number > 0:
            file.seek(begin - 1)
            skipped = len(file.readline(self.piece + 1)) - 1
        else:
            file.seek(begin)
        text = file.read(self.piece - skipped)  # nothing where one line from before goes all the way through
        if text and not text.endswith(b"\n"):
            text += file.readline()
        return begin + skipped, text if text.endswith(b"\n") or not text else text + b"\n"

    def line(self, lines: Lines, position: int) -> int:
        """The number of the line in the file, from 1, that holds this position of ``lines.text``."""
        part = int(np.searchsorted(lines.ends, position, side="right"))
        offset = lines.begins[part] + position - (lines.ends[part - 1] if part else 0)
        number = 1
        with self.path.open("rb") as file:
            while offset > 0 and (block := file.read(min(offset, 1 << 20))):
                number += block.count(b"\n")
                offset -= len(block)
        return number


def visits(count: int, generator: Any = None) -> Iterator[Array]:
    """Which pieces are read together: one pass over ``count`` pieces in random order, about `TOGETHER` at a time.

    Without a generator, and where all are read at once, they come in the order of the file.

    Examples
    --------
    >>> [group.tolist() for group in visits(3, np.random.RandomState(0))]
    [[0, 1, 2]]
    """
    order = np.arange(count) if generator is None or count <= TOGETHER else generator.permutation(count)
    for group in np.array_split(order, -(-count // TOGETHER)):
        yield np.sort(group)


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The file itself, or where its name ends in ``.gz`` a temporary copy that is not compressed."""
    if path.suffix != ".gz":
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / path.stem
        try:
            with path.open("rb") as packed, plain.open("wb") as file:
                file.writelines(unzipped(str(path), packed))
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{path} cannot be unpacked, it is damaged or not gzip: {error}") from None
        yield plain
