"""What a compressed file may become: bombs are refused before memory goes, from headers or after
the first pieces.

A table seldom shrinks to a fiftieth; what repeats one byte shrinks to a thousandth. So content that
unpacks to more than `SMALL` must not be more than `RATIO` times its packed size, nor, where it is
held at once, larger than the machine's memory.
"""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from collections.abc import Iterator
from typing import Any, Protocol

SMALL = 64 * 2**20  # bytes: so much does no harm, whatever it was packed into
RATIO = 200
_PIECE = 2**20


class Packed(Protocol):
    """A stream of bytes that need not be seekable."""

    def read(self, size: int = ..., /) -> bytes:
        """Up to so many bytes."""
        ...


def memory() -> int:
    """Bytes of memory that the machine has; a guess where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return 16 * 2**30


def check_size(name: str, unpacked: int, packed: int, *, held: bool = True) -> None:
    """Refuse content that unpacks to too much; what is not ``held`` in memory at once may be larger
    than it.

    Examples
    --------
    >>> check_size("t.npz", 10**12, 10**6)
    Traceback (most recent call last):
    ...
    ValueError: t.npz unpacks to 931 GiB or more from 1 MiB, which is not read: unpack it yourself if you trust it
    """
    if unpacked > SMALL and (unpacked > RATIO * max(packed, 1) or (held and unpacked > memory())):
        sizes = f"{unpacked / 2**30:,.3g} GiB or more from {max(1, round(packed / 2**20)):,} MiB"
        raise ValueError(
            f"{name} unpacks to {sizes}, which is not read: unpack it yourself if you trust it"
        )


class Unzipped(io.RawIOBase):
    """The content of a gzip file as a stream, up to the limit.

    Parameters
    ----------
    name : how a refusal names it
    packed : the file, at its beginning; it need not be seekable
    held : whether all of it is kept in memory
    """

    def __init__(self, name: str, packed: Packed, *, held: bool = False) -> None:
        self._name, self._packed, self._held = name, _Counted(packed), held
        self._file, self._total = gzip.GzipFile(fileobj=self._packed, mode="rb"), 0  # type: ignore[arg-type]

    def readable(self) -> bool:
        """Whether it can be read: yes."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes; all that is left, up to the limit, where it is negative."""
        if size < 0:
            return b"".join(iter(lambda: self.read(_PIECE), b""))
        piece = self._file.read(size)
        self._total += len(piece)
        check_size(self._name, self._total, self._packed.count, held=self._held)
        return piece

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer from the stream; how many bytes."""
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


class _Counted(io.RawIOBase):
    """A stream that counts what was read of it."""

    def __init__(self, stream: Packed) -> None:
        self._stream, self.count = stream, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        piece = self._stream.read(size)
        self.count += len(piece)
        return piece


def unzipped(name: str, packed: Packed, *, held: bool = True) -> Iterator[bytes]:
    """The content of a gzip file in pieces, up to the limit; parameters as of `Unzipped`."""
    stream = Unzipped(name, packed, held=held)
    while piece := stream.read(_PIECE):
        yield piece


def check_zip(name: str, content: bytes) -> None:
    """Refuse a zip archive, or an archive inside it, whose members unpack to too much; reading
    stops at what they state.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        check_size(name, sum(member.file_size for member in members), len(content))
        for member in members:
            if member.filename.endswith((".npz", ".zip")):
                check_zip(name, archive.read(member))
