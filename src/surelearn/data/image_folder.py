"""A folder of images, one folder per class: ``images/cats/1.png``, ``images/dogs/2.png``.

Pillow reads the files (the extra ``images``). Nothing outside the folder is read, a file says its size
before it is unpacked, and all images must have one size.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from surelearn import files
from surelearn.claim import Finding
from surelearn.data.columns import DataError, Values, shown
from surelearn.data.pixels import check_shape, in_words, pixel_names
from surelearn.data.raw import Raw, make_frame
from surelearn.types import ImageShape
from surelearn.unpacking import memory

TARGET = "class"
_KINDS = {
    "png": "PNG", "jpg": "JPEG", "jpeg": "JPEG", "bmp": "BMP", "gif": "GIF", "tif": "TIFF", "tiff": "TIFF",
    "webp": "WEBP", "pgm": "PPM", "ppm": "PPM", "pbm": "PPM",
}  # fmt: skip
_PARTS = {"train", "training", "val", "valid", "validation", "test", "testing"}
_MOST_BYTES = 2**26  # of one file
_WIDE = ("I", "I;16", "I;16B", "I;16L", "F")  # one channel of numbers beyond a byte


def holds_images(path: Path) -> bool:
    """Whether a folder holds image files, or folders with some."""
    return any(True for _ in _found(path, []))


def read_images(path: Path, labelled: bool = True) -> Raw:
    """The images of a folder as rows of pixels, and the names of their folders as classes.

    Parameters
    ----------
    labelled : whether every image must lie in the folder of its class; else they may lie in the
        folder itself, too
    """
    name = path.name or str(path)
    _need_pillow(name)
    others: list[str] = []
    found = list(_found(path, others))
    classes = [_class_of(relative) for relative in found]
    if labelled:
        _check_classes(name, found, classes)
    images, first = [], None
    most = memory() // 4
    for relative in found:
        with np.errstate(all="raise"):
            made = _read(path / relative, f"{name}/{relative}")
        first = made if first is None else first
        if made.shape[:2] != first.shape[:2]:
            raise DataError(
                f"{name}: {found[0]} has {in_words(_shape(first))} and {relative}"
                f" {in_words(_shape(made))}: images must have one size; resize them."
            )
        images.append(made)
        if (len(images) + 1) * made.size * 8 > most:
            raise DataError(f"{name} holds more images than fit into memory: name a part of them.")
    array = np.stack(_alike(images))
    shape = _shape(array[0])
    check_shape(name, shape)
    columns: list[Values] = list(array.reshape(len(array), -1).T)
    names = pixel_names(shape)
    if all(label is not None for label in classes):
        columns.append(np.array(classes, dtype=object))
        names.append(TARGET)
    frame: pd.DataFrame = make_frame(names, columns)
    target = TARGET if TARGET in names else None
    return Raw(
        name, path, frame, target=target, findings=_unread(others), images=shape, files=tuple(found)
    )


def _need_pillow(name: str) -> None:
    try:
        import PIL.Image  # noqa: F401
    except ModuleNotFoundError:
        raise DataError(
            f"{name} is a folder of images, which Pillow reads: pip install 'surelearn[images]'."
        ) from None


def _found(path: Path, others: list[str]) -> Iterator[str]:
    """Image files below a folder, relative to it and in order; what else lies there is noted."""
    root = path.resolve()
    for entry in _entries(path):
        if entry.is_dir():
            # images/train/cats beside images/test/cats
            parted = entry.name.lower() in _PARTS and any(e.is_dir() for e in _entries(Path(entry)))
            folders = [e for e in _entries(Path(entry)) if e.is_dir()] if parted else [entry]
            for folder in folders:
                _check_inside(Path(folder), root, path)
                for file in _entries(Path(folder)):
                    yield from _image(file, root, path, others)
        else:
            yield from _image(entry, root, path, others)


def _image(entry: os.DirEntry[str], root: Path, path: Path, others: list[str]) -> Iterator[str]:
    relative = Path(entry.path).relative_to(path).as_posix()
    if entry.name.lower().rpartition(".")[2] not in _KINDS or entry.is_dir():
        others.append(relative)
        return
    _check_inside(Path(entry), root, path)
    yield relative


def _entries(path: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return sorted((e for e in entries if not e.name.startswith(".")), key=lambda e: e.name)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): check the path.") from None


def _check_inside(one: Path, root: Path, path: Path) -> None:
    if one.is_symlink() and not one.resolve().is_relative_to(root):
        raise DataError(
            f"{one} is a link to outside of {path.name}, which is not followed: copy what it names."
        )


def _class_of(relative: str) -> str | None:
    return Path(relative).parent.name or None


def _check_classes(name: str, found: list[str], classes: list[str | None]) -> None:
    loose = [relative for relative, label in zip(found, classes, strict=True) if label is None]
    if loose:
        raise DataError(
            f"{name} holds images beside the folders of its classes, such as {shown(loose[0])}: put"
            f" each into the folder of its class, {name}/cats/1.png."
        )
    if len(set(classes)) < 2:
        raise DataError(
            f"{name} has one folder of images, {shown(classes[0])}: two classes are needed at least,"
            " a folder each."
        )


def _read(path: Path, said: str) -> Values:
    """One image as an array (height, width, channels)."""
    from PIL import Image, ImageOps

    kind = _KINDS[path.name.lower().rpartition(".")[2]]
    try:
        files.check_regular(path, said)
        if path.stat().st_size > _MOST_BYTES:
            raise DataError(f"{said} has more than {_MOST_BYTES >> 20} MiB: make it smaller.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path, formats=sorted({kind, "PNG", "JPEG"})) as opened:
                # before a pixel is unpacked
                check_shape(said, (opened.height, opened.width, 1))
                image: Any = ImageOps.exif_transpose(opened)
                return _pixels(image)
    except DataError:
        raise
    except Exception as error:  # Pillow's readers raise what they like
        why = " ".join(str(error).split()) or type(error).__name__
        raise DataError(
            f"{said} cannot be read as an image ({why:.100}): leave it out, or save it again."
        ) from None


def _pixels(image: Any) -> Values:
    """Gray as one channel, colors as three; what is transparent is as if it were not."""
    if image.mode in _WIDE:
        wide = np.asarray(image)
        if wide.dtype.kind == "f" and not np.isfinite(wide).all():
            raise ValueError("it holds NaN or infinity")
        return wide[:, :, None]
    gray = image.mode in ("1", "L", "LA")
    made = np.asarray(image.convert("L" if gray else "RGB"))
    return made[:, :, None] if gray else made


def _alike(images: list[Values]) -> list[Values]:
    """Gray images among colored ones become colored."""
    channels = max(image.shape[2] for image in images)
    return [np.broadcast_to(image, (*image.shape[:2], channels)) for image in images]


def _shape(image: Values) -> ImageShape:
    height, width, channels = image.shape
    return height, width, channels


def _unread(others: list[str]) -> tuple[Finding, ...]:
    if not others:
        return ()
    text = f"{len(others):,} files are no images and were not read, such as {shown(others[0])}."
    numbers = {"files": len(others)}
    return (Finding(code="SL115", text=text, severity="info", numbers=numbers),)
