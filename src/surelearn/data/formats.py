"""From a file, a built-in set or a data frame to typed columns: delimited text, JSON lines, ARFF,
Parquet, Feather, Excel, LIBSVM, npz, gzipped or not, a folder of images.

What a file holds is decided by its first bytes, then by its name. Nothing is written, nothing is
unpickled, and whatever is wrong becomes one `DataError` sentence.
"""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from surelearn.data.arff import looks_like_arff, read_arff
from surelearn.data.columns import DataError, in_single_quotes
from surelearn.data.delimited import from_text, read_delimited, unwrapped
from surelearn.data.excel import looks_like_excel, read_excel
from surelearn.data.feather import read_feather
from surelearn.data.frames import Source, plain, to_pandas
from surelearn.data.image_folder import holds_images, read_images
from surelearn.data.json_lines import looks_like_json_lines, read_json_lines
from surelearn.data.npz import read_npz
from surelearn.data.opening import (
    BUILT_IN,
    HEAD,
    as_utf8,
    content_of,
    name_of,
    opened,
    parts_of,
    rest_of,
    whole_lines,
)
from surelearn.data.parquet import read_parquet
from surelearn.data.raw import Raw

__all__ = ["BUILT_IN", "Raw", "described", "from_bytes", "kind_of", "load"]

_NOT_TABLES = (  # first bytes of files that get renamed to .csv or .parquet
    (b"PK\x03\x04", "a zip archive: unpack it"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook, or a protected one: save it as .xlsx or CSV"),
    (b"%PDF", "a PDF document: export the table as CSV"),
    (b"SQLite format 3", "an SQLite database: export the table as CSV"),
    (b"\x93NUMPY", "a single NumPy array: save features and target as .npz with arrays X and y"),
    (b"\x89HDF", "an HDF5 file: export the table as CSV or Parquet"),
    (b"FEA1", "a Feather file of the first version: save the table as Feather, Parquet or CSV"),
    (b"\x89PNG", "an image: a table is needed"),
    (b"\xff\xd8\xff", "an image: a table is needed"),
    (b"BZh", "compressed with bzip2: decompress it, or use gzip"),
    (b"\xfd7zXZ", "compressed with xz: decompress it, or use gzip"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd: decompress it, or use gzip"),
    (b"\x80\x04\x95", "a pickle, which is never opened: save the table as CSV or Parquet"),
)


def load(
    source: Source | None, *, header: bool | None, labelled: bool = True, joined: bool = True
) -> Raw:
    """Read whatever ``source`` is: None, a built-in name, a path, a folder of Parquet files or of
    images, standard input ("-"), or a data frame; an npz or a folder of images may lack labels if not
    ``labelled``, and what ``joined`` means says `surelearn.data.npz.read_npz`.
    """
    source = "breast_cancer" if source is None else source
    if isinstance(source, (str, Path)):
        path = Path(source)
        if str(source) == "-":
            with ExitStack() as stack:
                stream, head = opened(path, stack)
                name = name_of(path)
                content = rest_of(name, head, stream)
            return replace(from_bytes(Path(name), content, header, labelled, joined), path=None)
        # os.path says no where a name is too long for a path
        if os.path.isdir(path):
            if parts := parts_of(path):
                return _folder(path, parts)
            if holds_images(path):
                return read_images(path, labelled)
        if str(source) in BUILT_IN and not path.is_file():
            return _built_in(str(source))
        return from_bytes(path, content_of(path), header, labelled, joined)
    return Raw(name="the data frame", path=None, frame=plain(to_pandas(source), "the data frame"))


def kind_of(name: str, content: bytes) -> str:
    """What a file holds, from its first bytes, then its name.

    One of "parquet", "feather", "excel", "npz", "json lines", "arff", "libsvm" and "text".
    """
    suffix = Path(name.lower().removesuffix(".gz")).suffix
    if content[:4] == b"PAR1":
        return "parquet"
    if content[:6] == b"ARROW1" or content[:4] == b"\xff\xff\xff\xff":
        return "feather"
    if looks_like_excel(content):
        return "excel"
    if suffix == ".npz" and content[:2] == b"PK":
        return "npz"
    for magic, what in _NOT_TABLES:
        if content.startswith(magic):
            raise DataError(f"{name} is {what}.")
    if suffix in (".parquet", ".npz", ".feather", ".arrow", ".xlsx"):
        raise DataError(
            f"{name} is not a {suffix[1:]} file, or is damaged: save it again, or name it .csv if"
            " it is text."
        )
    start = content[:65536].removeprefix(b"\xef\xbb\xbf")
    if suffix in (".jsonl", ".ndjson") or looks_like_json_lines(start):
        return "json lines"
    if suffix == ".arff" or looks_like_arff(start):
        return "arff"
    libsvm = suffix in (".libsvm", ".svm", ".svmlight")
    start = as_utf8(name, whole_lines(content[:HEAD]))
    return (
        "libsvm"
        if libsvm or (suffix not in (".csv", ".tsv") and _looks_like_libsvm(start))
        else "text"
    )


def described(kind: str) -> str:
    """What `kind_of` found, for people."""
    names = {
        "text": "delimited text",
        "libsvm": "LIBSVM text",
        "json lines": "JSON lines",
        "arff": "ARFF",
    }
    return names.get(kind) or {"excel": "an Excel workbook", "npz": "a NumPy archive"}.get(
        kind, kind.capitalize()
    )


_LIBSVM_LINE = re.compile(rb"\s*[^\s:,]+(\s+qid:\d+)?(\s+\d+:[^\s:]+)+\s*(#.*)?")


def _looks_like_libsvm(text: bytes) -> bool:
    lines = [
        line for line in text[:65536].splitlines()[:5] if line.strip() and not line.startswith(b"#")
    ]
    return bool(lines) and any(_LIBSVM_LINE.fullmatch(line) for line in lines[:3])


def from_bytes(
    path: Path, content: bytes, header: bool | None, labelled: bool, joined: bool = True
) -> Raw:
    """Read the content of a file, as `load` does."""
    name = path.name
    kind = kind_of(name, content)
    if kind == "parquet":
        return Raw(name, path, plain(read_parquet(name, content), name))
    if kind == "feather":
        return Raw(name, path, plain(read_feather(name, content), name))
    if kind == "excel":
        table, findings = read_excel(name, content)
        quoted = [i for i, column in enumerate(table.columns) if in_single_quotes(column.slice(1))]
        made = from_text(name, path, unwrapped(table, quoted), header)
        return replace(made, findings=(*made.findings, *findings))
    if kind == "npz":
        return read_npz(path, content, labelled, joined)
    text = as_utf8(name, content, lines=kind == "json lines")
    if kind == "json lines":
        return Raw(name, path, plain(read_json_lines(name, text), name))
    if kind == "arff":
        return read_arff(path, text)
    if kind == "libsvm":
        from surelearn.data.libsvm import read_libsvm

        return read_libsvm(path, text)
    return read_delimited(path, text, header)


def _folder(path: Path, parts: list[Path]) -> Raw:
    """The rows of all Parquet files of a folder, in the order of their names."""
    frames = [plain(read_parquet(part.name, content_of(part)), part.name) for part in parts]
    first = list(frames[0].columns)
    for part, frame in zip(parts, frames, strict=True):
        if list(frame.columns) != first:
            raise DataError(
                f"{path.name}: {part.name} has other columns than {parts[0].name}: a table in several"
                " files needs the same columns, in the same order, in each."
            )
    return Raw(path.name, path, pd.concat(frames, ignore_index=True))


def _built_in(name: str) -> Raw:
    from sklearn import datasets

    bunch: Any = getattr(datasets, f"load_{name}")(as_frame=True)
    target = bunch.target.to_numpy()
    if name in ("breast_cancer", "iris", "wine"):
        target = np.array([str(word) for word in bunch.target_names], dtype=object)[target]
    frame = bunch.data.copy()
    frame[BUILT_IN[name]] = pd.Series(target, index=frame.index, dtype=target.dtype)
    return Raw(name, None, frame, target=BUILT_IN[name])
