"""Small images on the page: PNG by the standard library, inline, without a request."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from surelearn.report.document import Chart
from surelearn.report.drawing import clean

MOST_BYTES = 400_000  # of all pictures of a chart, as text
LONGEST_SIDE = 96  # pixels that a picture keeps
_PNG = re.compile(r"[A-Za-z0-9+/]{20,}={0,2}")
_HEADS = base64.b64encode(b"\x89PNG\r\n\x1a\n\0").decode()  # of 9 bytes: whole groups of three


def png(pixels: npt.ArrayLike) -> str:
    r"""Bytes (height, width) of gray or (height, width, 3) of colors as a PNG in base64; large images
    keep every second or third pixel.

    Portable Network Graphics Specification, ISO/IEC 15948:2004, Sections 5.3 and 11.2.

    Examples
    --------
    >>> base64.b64decode(png(np.zeros((2, 2), np.uint8)))[:4]
    b'\x89PNG'
    """
    array = np.asarray(pixels, dtype=np.uint8)
    array = array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array
    stride = -(-max(array.shape[:2]) // LONGEST_SIDE)
    array = np.ascontiguousarray(array[::stride, ::stride])
    height, width = array.shape[:2]
    color = 2 if array.ndim == 3 else 0
    lines = np.zeros(
        (height, 1 + array[0].size), dtype=np.uint8
    )  # each begins with its filter: none
    lines[:, 1:] = array.reshape(height, -1)
    parts = [
        _part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)),
        _part(b"IDAT", zlib.compress(lines.tobytes(), 9)),
        _part(b"IEND", b""),
    ]
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(parts)).decode()


def _part(kind: bytes, content: bytes) -> bytes:
    summed = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", summed)


def shades(values: npt.ArrayLike, low: float, high: float) -> npt.NDArray[np.uint8]:
    """Numbers as bytes, ``low`` black and ``high`` white.

    Examples
    --------
    >>> shades([0.0, 0.5, 2.0], 0.0, 1.0).tolist()
    [0, 128, 255]
    """
    numbers = np.nan_to_num((np.asarray(values, dtype=float) - low) / max(high - low, 1e-300))
    return np.round(np.clip(numbers, 0.0, 1.0) * 255).astype(np.uint8)


def signed(values: npt.ArrayLike, largest: float) -> npt.NDArray[np.uint8]:
    """Numbers as colors (…, 3): 0 white, above it red, below it blue, full at ``largest``.

    Examples
    --------
    >>> signed([0.0, 1.0, -1.0], 1.0).tolist()
    [[255, 255, 255], [178, 24, 43], [33, 102, 172]]
    """
    share = np.clip(np.asarray(values, dtype=float) / max(largest, 1e-300), -1.0, 1.0)[..., None]
    ends = np.where(share > 0, np.array([178.0, 24.0, 43.0]), np.array([33.0, 102.0, 172.0]))
    return np.round(255 + np.abs(share) * (ends - 255)).astype(np.uint8)


def drawn(chart: Chart) -> Markup:
    """A row of pictures with what each shows; what is no PNG is not drawn."""
    names, pictures = chart.data.get("names") or (), chart.data.get("pictures") or ()
    side = 44 if chart.data.get("small") else 72
    figures = list(_figures(zip(names, pictures, strict=False), side))
    if chart.data.get("pairs"):
        pair = Markup('<div class="pair">{}{}</div>')
        figures = [pair.format(*two) for two in zip(figures[::2], figures[1::2], strict=False)]
    return Markup('<div class="pictures">{}</div>').format(Markup("").join(figures))


def _figures(pairs: Iterable[tuple[object, object]], side: int) -> Iterable[Markup]:
    size = 0
    for name, picture in pairs:
        text = str(picture)
        size += len(text)
        if size > MOST_BYTES or not text.startswith(_HEADS) or not _PNG.fullmatch(text):
            continue
        label = clean(name)
        yield Markup(
            '<figure><img src="data:image/png;base64,{}" alt="{}" width="{}">'
            "<figcaption>{}</figcaption></figure>"
        ).format(text, label, side, label)
