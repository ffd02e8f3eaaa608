"""LIBSVM or delimited text as compressed sparse rows, some pieces at a time, in any order.

What is not plain text with a line for each row (gzip, UTF-16, runs of spaces, line breaks within
quotes) is first copied to a temporary file that is.
"""

from __future__ import annotations

import codecs
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from surelearn.data import opening
from surelearn.data.cells import AT_START, IN_QUOTES, HashedCells, odd_quotes, protect
from surelearn.data.columns import DataError
from surelearn.data.delimited import check_two, no_rows
from surelearn.data.dialect import Dialect, cut, dialect_of, names_in, unclosed_quote
from surelearn.data.formats import described, kind_of
from surelearn.data.header import check_header
from surelearn.data.libsvm import LibsvmLines
from surelearn.data.pieces import BadLineError, SparseRows, TextFile, visits
from surelearn.data.raw import check_names
from surelearn.unpacking import Unzipped

_LONE_RETURN = re.compile(rb"\r(?!\n)")
_SPARE = 64 * 2**20  # bytes that stay free on the disk of temporary files


class SparseSource:
    """A file, how its lines become sparse rows, and what is said if it has none."""

    def __init__(self, file: TextFile, form: LibsvmLines | HashedCells, nothing: str) -> None:
        self.name, self._file, self._form, self._nothing = file.name, file, form, nothing

    def pieces(
        self, generator: np.random.RandomState | None = None
    ) -> Iterator[tuple[SparseRows, float]]:
        """One pass, in the order of the file or a random one: rows, and the part of the file
        that they are.
        """
        nothing = True
        for chosen in visits(self._file.count, generator):
            lines = self._file.read(chosen)
            try:
                piece = self._form.parse(lines.text)
            except BadLineError as bad:
                raise self._file.refused(lines, bad) from None
            if piece.codes.size:
                nothing = False
                yield piece, lines.fraction
        if nothing:
            raise DataError(self._nothing)


@contextmanager
def sparse_source(
    path: str | Path,
    features: int,
    dtype: str,
    hashed: bool = False,
    target: str | None = None,
    categorical: Sequence[str] = (),
) -> Iterator[SparseSource]:
    """A file of LIBSVM text, or of delimited text where ``target`` names the column of the
    labels.
    """
    categorical = (categorical,) if isinstance(categorical, str) else tuple(categorical)
    if not isinstance(features, Integral) or not 1 <= features < 2**32 - 1:
        raise ValueError(f"features must be a whole number between 1 and 2³² − 2, not {features!r}")
    if categorical and target is None:
        raise ValueError(
            "categorical names columns of delimited text: name the column of the labels too, with"
            " target="
        )
    form: LibsvmLines | HashedCells
    if target is None:
        form = LibsvmLines(int(features), hashed, dtype)
        with libsvm_file(Path(path)) as file:
            yield SparseSource(file, form, opening.empty(file.name))
        return
    with _delimited_file(Path(path), target, categorical) as (file, dialect, columns):
        form = HashedCells(dialect, columns, int(features), dtype, target, categorical)
        yield SparseSource(file, form, no_rows(file.name, header=True))


@contextmanager
def libsvm_file(path: Path) -> Iterator[TextFile]:
    """The lines of a file that is said to be LIBSVM text."""
    with ExitStack() as copies:
        with ExitStack() as stack:
            stream, head = _text(path, stack, ("text", "libsvm"))
            plain, ours = path, isinstance(stream, Unzipped) or opening.marked(head) is not None
            if ours:
                plain = _copied(
                    path.name, opening.Utf8(stream, path.name, head), lambda text: text, copies
                )
        begin = 0 if ours else len(codecs.BOM_UTF8) * head.startswith(codecs.BOM_UTF8)
        yield TextFile(plain, path.name, begin, ours=ours, ascii=True)


@contextmanager
def _delimited_file(
    path: Path, target: str, categorical: Sequence[str]
) -> Iterator[tuple[TextFile, Dialect, list[str]]]:
    """The lines after the first of a file of delimited text, its dialect, and its columns, of
    which some must be there.
    """
    name = path.name
    with ExitStack() as copies:
        with ExitStack() as stack:
            stream, head = _text(path, stack, ("text",))
            text = opening.as_utf8(name, opening.whole_lines(head))
            dialect = dialect_of(name, text, whole=len(head) < opening.HEAD)
            check_two(name, dialect)
            plain, ours = (
                path,
                isinstance(stream, Unzipped) or opening.marked(head) is not None or dialect.spaced,
            )
            ours = (
                ours or _LONE_RETURN.search(text) is not None or _has_quoted_breaks(path, dialect)
            )
            if ours:
                plain = _copied(
                    name, opening.Utf8(stream, name, head), _Protected(path, dialect), copies
                )
        first, begin = _first_line(plain)
        columns = names_in(
            cut(
                opening.lines_as_utf8(name, first),
                dialect.delimiter,
                dialect.width,
                quote=dialect.quote,
            )
        )
        check_names(name, columns)
        for missing in (column for column in (target, *categorical) if column not in columns):
            _check_header(name, text, dialect)
            raise DataError(opening.no_column(name, columns, missing))
        yield TextFile(plain, name, begin, ours=ours), dialect, columns


def _text(path: Path, stack: ExitStack, kinds: Sequence[str]) -> tuple[Any, bytes]:
    """A stream of text and its first bytes; other formats are refused."""
    stream, head = opening.opened(path, stack)
    kind = kind_of(path.name, head)
    if kind not in kinds:
        said = (
            "LIBSVM text or, with target=, delimited text"
            if "libsvm" in kinds
            else "delimited text"
        )
        raise DataError(f"{path.name} is {described(kind)}: {said} is needed here.")
    opening.as_utf8(path.name, opening.whole_lines(head))
    return stream, head


def _check_header(name: str, text: bytes, dialect: Dialect) -> None:
    table = cut(dialect.plain(text), dialect.delimiter, dialect.width, quote=dialect.quote)
    if table is not None:
        check_header(name, table, dialect.decimal)


def _first_line(path: Path) -> tuple[bytes, int]:
    """The first line that is not blank, and where it ends."""
    with path.open("rb") as file:
        while (line := file.readline(opening.LONGEST_LINE)) and not line.removeprefix(
            codecs.BOM_UTF8
        ).strip():
            pass
        return line.removeprefix(codecs.BOM_UTF8).replace(b"\0", b"\n"), file.tell()


# --------------------------------------------------------------------------------------------------


def _copied(
    name: str, stream: opening.Utf8, changed: Callable[[bytes], bytes], stack: ExitStack
) -> Path:
    """A temporary file of lines in UTF-8, changed on their way; it is removed at the end."""
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    with (Path(folder) / "lines").open("wb") as file:
        while text := stream.read():
            if shutil.disk_usage(folder).free < len(text) + _SPARE:
                raise DataError(
                    f"{name} does not fit, unpacked, into the folder of temporary files: set TMPDIR"
                    " to a larger one."
                )
            file.write(changed(text))
        changed(b"")
    return Path(folder) / "lines"


class _Protected:
    """Lines on their way to a copy in which every row is a line: NUL stands for line breaks
    within quotes.
    """

    def __init__(self, path: Path, dialect: Dialect) -> None:
        self._path, self._dialect, self._state = path, dialect, AT_START

    def __call__(self, text: bytes) -> bytes:
        if not text and self._state == IN_QUOTES:
            _check_unclosed(self._path, self._dialect)
        changed = bytearray(self._dialect.plain(text))
        self._state, _ = _follow(changed, self._state, self._dialect, change=True)
        return bytes(changed)


def _follow(text: bytearray, state: int, dialect: Dialect, *, change: bool) -> tuple[int, bool]:
    quote = 0 if dialect.quote is False else ord(dialect.quote)
    return protect(
        np.frombuffer(text, dtype=np.uint8), state, ord(dialect.delimiter), quote, change
    )


def _has_quoted_breaks(path: Path, dialect: Dialect) -> bool:
    """Whether a quoted value of a file holds a line break; a quote that is never closed is
    refused.
    """
    if dialect.quote is False or not _has_odd_lines(path, dialect.quote.encode()):
        return False
    state = AT_START
    with path.open("rb") as file:
        while block := file.read(opening.BLOCK):
            state, found = _follow(bytearray(block), state, dialect, change=False)
            if found:
                return True
    if state == IN_QUOTES:
        _check_unclosed(path, dialect)
    return False


def _has_odd_lines(path: Path, quote: bytes) -> bool:
    """Whether a line of a file has an odd number of quotes, which one with quoted line breaks
    has.
    """
    found = odd = False
    with path.open("rb") as file:
        while not found and (block := file.read(opening.BLOCK)):
            if quote in block or odd:
                found, odd = odd_quotes(np.frombuffer(block, dtype=np.uint8), odd, ord(quote))
    return found or odd


def _check_unclosed(path: Path, dialect: Dialect) -> None:
    with ExitStack() as stack:
        stream, head = opening.opened(path, stack)
        lines = opening.Utf8(stream, path.name, head)
        unclosed_quote(path.name, TextIOWrapper(lines, encoding="utf-8", newline=""), dialect)  # type: ignore[arg-type]
