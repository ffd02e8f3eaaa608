"""What a compressed file may become: bombs are refused before memory goes, from headers or after the first pieces.

A table seldom shrinks to a fiftieth; what repeats one byte shrinks to a thousandth. So content that unpacks to more than
`SMALL` must not be more than `RATIO` times its packed size, nor larger than the machine's memory.
"""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from collections.abc import Iterator
from typing import BinaryIO

SMALL = 64 * 2**20  # bytes: so much does no harm, whatever it was packed into
RATIO = 200
_PIECE = 2**20


def memory() -> int:
    """Bytes of memory that the machine has; a guess where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return 16 * 2**30


def check_size(name: str, unpacked: int, packed: int) -> None:
    """Refuse content that unpacks to too much.

    Examples
    --------
    >>> check_size("t.npz", 10**12, 10**6)
    Traceback (most recent call last):
    ...
    ValueError: t.npz unpacks to 931 GiB or more from 1 MiB, which is not read: unpack it yourself if you trust it
    """
    if unpacked > SMALL and (unpacked > RATIO * max(packed, 1) or unpacked > memory()):
        sizes = f"{unpacked / 2**30:,.3g} GiB or more from {max(1, round(packed / 2**20)):,} MiB"
        raise ValueError(f"{name} unpacks to {sizes}, which is not read: unpack it yourself if you trust it")


def unzipped(name: str, packed: BinaryIO) -> Iterator[bytes]:
    """The content of a gzip file in pieces, up to the limit.

    Parameters
    ----------
    name : how a refusal names it
    packed : the file, at its beginning
    """
    total = 0
    with gzip.GzipFile(fileobj=packed) as file:
        while piece := file.read(_PIECE):
            total += len(piece)
            check_size(name, total, packed.tell())
            yield piece


def check_zip(name: str, content: bytes) -> None:
    """Refuse a zip archive, or an archive inside it, whose members unpack to too much; reading stops at what they state."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        check_size(name, sum(member.file_size for member in members), len(content))
        for member in members:
            if member.filename.endswith((".npz", ".zip")):
                check_zip(name, archive.read(member))
