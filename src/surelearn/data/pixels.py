"""Images as rows of a table: every number of a pixel is a column, and the table knows their shape."""

from __future__ import annotations

from collections.abc import Sequence

from surelearn.data.columns import DataError
from surelearn.data.raw import MAX_COLUMNS
from surelearn.types import AnyArray, ImageShape

_COLORS = {1: ("",), 3: (" red", " green", " blue")}


def shape_of(array: AnyArray) -> ImageShape:
    """Height, width and channels of images (n, height, width[, channels])."""
    height, width, channels = (*array.shape[1:], 1)[:3]
    return int(height), int(width), int(channels)


def pixel_names(shape: ImageShape) -> list[str]:
    """Names of the columns, line by line, the channels of a pixel side by side.

    Examples
    --------
    >>> pixel_names((1, 2, 1)), pixel_names((1, 1, 3))
    (['pixel 1,1', 'pixel 1,2'], ['pixel 1,1 red', 'pixel 1,1 green', 'pixel 1,1 blue'])
    """
    height, width, channels = shape
    colors = _COLORS.get(channels) or [f" channel {c}" for c in range(1, channels + 1)]
    return [
        f"pixel {i},{j}{color}"
        for i in range(1, height + 1)
        for j in range(1, width + 1)
        for color in colors
    ]


def in_words(shape: ImageShape) -> str:
    """A shape for people.

    Examples
    --------
    >>> in_words((28, 28, 1)), in_words((32, 30, 3))
    ('28 × 28 pixels', '32 × 30 pixels in 3 channels')
    """
    height, width, channels = shape
    return f"{height} × {width} pixels" + (f" in {channels} channels" if channels > 1 else "")


def check_shape(name: str, shape: ImageShape) -> None:
    """Refuse images that hold no pixel, or too many to be studied one by one."""
    height, width, channels = shape
    numbers = height * width * channels
    if not numbers:
        raise DataError(
            f"{name} holds images of {height} × {width} pixels: there is nothing to see."
        )
    if numbers > MAX_COLUMNS:
        side = int((MAX_COLUMNS / channels) ** 0.5) // 8 * 8
        raise DataError(
            f"{name} holds images of {in_words(shape)}, {numbers:,} numbers each and more than"
            f" {MAX_COLUMNS:,}: make them smaller first, for example {side} × {side}."
        )


def check_same(name: str, shape: ImageShape | None, wanted: ImageShape) -> None:
    """Refuse rows that are not images of the shape that a model reads."""
    if shape is None:
        raise DataError(
            f"{name} holds no images, and the model reads images of {in_words(wanted)}: name an npz"
            " with an array (n, height, width[, channels]), or a folder of image files."
        )
    if shape != wanted:
        raise DataError(
            f"{name} holds images of {in_words(shape)}, and the model reads {in_words(wanted)}:"
            " change their size."
        )


def flat_names(columns: Sequence[str], shape: ImageShape) -> list[str]:
    """The names that up to 0.2 the pixels had, the other columns as they are."""
    known = {name: f"feature {i}" for i, name in enumerate(pixel_names(shape), 1)}
    return [known.get(name, name) for name in columns]
