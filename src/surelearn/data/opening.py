"""How every file is opened: a regular one, gzipped or not, within limits, and its text as UTF-8.

Text is UTF-8; bytes that are no UTF-8 are read as the Latin-1 of Windows (cp1252), so that a file
which holds both, glued together from two, is read too. With its mark, UTF-16 and UTF-32 are read.
The rule looks at no more than a line, so that a file is read alike whole, in pieces, and in pieces
in any order.
"""

from __future__ import annotations

import codecs
import difflib
import gzip
import io
import re
import sys
import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from surelearn import files
from surelearn.data.columns import DataError, listed, shown
from surelearn.unpacking import Unzipped, check_size, memory

HEAD = 1 << 18  # bytes that decide what a piece cannot show
BLOCK = 1 << 22
LONGEST_LINE = 1 << 26  # bytes; in text tables one line is one row, or a part of it
NOT_THERE = "is in an encoding other than UTF-8, UTF-16 and Latin-1: save it as UTF-8."

OTHER_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".arrow", ".feather", ".xlsx", ".arff", ".npz",
                ".libsvm", ".svm", ".svmlight")  # fmt: skip
BUILT_IN = {  # name: the name of its target
    "breast_cancer": "diagnosis",
    "iris": "species",
    "wine": "cultivar",
    "digits": "digit",
    "diabetes": "progression",
}


# --------------------------------------------------------------------------------------------------


def parts_of(folder: Path) -> list[Path]:
    """The Parquet files of a folder, by their names; [] where there are none.

    Raises
    ------
    DataError
        where tables of another format lie among them, whose rows would be left out silently
    """
    parts = sorted(folder.glob("*.parquet"))
    if not parts:
        return []
    others = sorted(
        one.name
        for one in folder.iterdir()
        if not one.name.startswith((".", "_"))
        and Path(one.name.lower().removesuffix(".gz")).suffix in OTHER_TABLES
        and one.is_file()
    )
    if others:
        more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
        raise DataError(
            f"{folder} holds Parquet files and {shown(others[0])}{more}: only files *.parquet are read"
            " together; move the others away, or name one file."
        )
    return parts


def is_folder(path: Path) -> str:
    """What is said of a folder without Parquet files, of which a table can be made."""
    inside = sorted(one.name for one in path.iterdir() if not one.name.startswith("."))
    held = (
        f"it holds {len(inside):,} files, such as {shown(inside[0])}" if inside else "it is empty"
    )
    return (
        f"{path} is a folder without Parquet files ({held}): only files *.parquet, and images in one"
        " folder per class, are read together; name one file of another format."
    )


def content_of(path: Path) -> bytes:
    """The whole content of a file, unpacked where it is gzipped; at most what memory holds."""
    name = path.name
    try:
        files.check_regular(path, name)
        _check_fits(name, path)
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(not_found(path)) from None
    except IsADirectoryError:
        raise DataError(is_folder(path)) from None
    except PermissionError:
        raise DataError(
            f"{path} may not be read: no permission; change its permissions or copy it."
        ) from None
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{shown(path)} cannot be read ({error}): check the path.") from None
    if content[:2] == b"\x1f\x8b":
        content = read_from(Unzipped(name, io.BytesIO(content), held=True), name)
    return _not_empty(name, content)


def _check_fits(name: str, path: Path) -> None:
    try:
        size = path.stat().st_size
    except (OSError, ValueError):  # which opening it says better
        return
    if size > memory():
        raise DataError(
            f"{name} has {size / 2**30:,.3g} GiB, more than this machine's memory: take a sample of"
            " its rows."
        )


class Readable(Protocol):
    """A stream of bytes: a file, a pipe, something unpacked on the way."""

    def read(self, size: int = -1, /) -> bytes:
        """Up to ``size`` bytes, all of it where that is negative."""
        ...


def rest_of(name: str, head: bytes, stream: Readable) -> bytes:
    """A stream that must be held whole, such as standard input, after its head was read."""
    parts, size = [head], len(head)
    while piece := read_from(stream, name, BLOCK):
        parts.append(piece)
        size += len(piece)
        if size > memory() // 2:
            raise DataError(
                f"{name} is larger than this machine's memory: take a sample of its rows."
            )
    return b"".join(parts)


def opened(path: Path, stack: ExitStack) -> tuple[BinaryIO, bytes]:
    """A file, or standard input ("-"), as a stream of unpacked bytes after its first `HEAD` of
    them, and those.
    """
    name = name_of(path)
    stream: Any = sys.stdin.buffer
    if str(path) != "-":
        try:
            files.check_regular(path, path.name)
            stream = stack.enter_context(open(path, "rb"))  # noqa: SIM115 - the stack closes it
        except FileNotFoundError:
            raise DataError(not_found(path)) from None
        except IsADirectoryError:
            raise DataError(is_folder(path)) from None
        except PermissionError:
            raise DataError(
                f"{path} may not be read: no permission; change its permissions or copy it."
            ) from None
        except OSError as error:
            raise DataError(
                f"{shown(path)} cannot be read ({error.strerror or error}): check the path."
            ) from None
        except ValueError as error:
            raise DataError(f"{error}.") from None
    head = read_from(stream, name, HEAD)
    if head[:2] == b"\x1f\x8b":
        stream = Unzipped(name, _After(head, stream))
        head = read_from(stream, name, HEAD)
    return stream, _not_empty(name, head)


def name_of(path: Path) -> str:
    """How sentences name a file."""
    return "standard input" if str(path) == "-" else path.name


def _not_empty(name: str, content: bytes) -> bytes:
    if not content.strip():
        raise DataError(empty(name))
    return content


def empty(name: str) -> str:
    """The sentence for a file without rows."""
    return f"{name} is empty: a table with a header and rows is needed."


class _After:
    """A stream with bytes put back before it."""

    def __init__(self, head: bytes, stream: Readable) -> None:
        self._head, self._stream = head, stream

    def read(self, size: int = -1) -> bytes:
        if not self._head:
            return self._stream.read(size)
        piece, self._head = (
            (self._head, b"") if size < 0 else (self._head[:size], self._head[size:])
        )
        return piece


def read_from(stream: Readable, name: str, size: int = -1) -> bytes:
    """Up to ``size`` bytes (all of it where that is negative), fewer at the end only."""
    try:
        if size < 0:
            return stream.read()
        parts = [stream.read(size)]
        # a pipe gives what it has
        while parts[-1] and (missing := size - sum(map(len, parts))) > 0:
            parts.append(stream.read(missing))
        return b"".join(parts)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError(f"{name} is a damaged gzip file: fetch or compress it again.") from None
    except OSError as error:
        raise DataError(f"{name} cannot be read ({error.strerror or error}).") from None
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{error}.") from None


def too_much(name: str, unpacked: int, packed: int, *, held: bool = True) -> None:
    """Refuse what unpacks to too much, as `surelearn.unpacking.check_size` does."""
    try:
        check_size(name, unpacked, packed, held=held)
    except ValueError as error:
        raise DataError(f"{error}.") from None


def not_found(path: Path) -> str:
    """The sentence for a path where there is nothing, with near names."""
    try:
        names = sorted(entry.name for entry in path.parent.iterdir())
    except OSError:
        return f"{path} does not exist, nor does its directory: check the path."
    near = difflib.get_close_matches(path.name, [*names, *BUILT_IN], n=2, cutoff=0.7)
    if near:
        return f"{path} does not exist. Did you mean {' or '.join(map(repr, near))}?"
    if path.suffix or len(path.parts) > 1:
        return f"{path} does not exist: check the path."
    return (
        f"{path} is neither a file here nor a built-in set: the built-in sets are"
        f" {', '.join(BUILT_IN)}."
    )


def no_column(name: str, names: Sequence[str], wanted: object, hint: str = "") -> str:
    """The sentence for a column that is not there, with near names, or those that are."""
    folded = {label.casefold(): label for label in reversed(names)}
    near = [
        folded[label]
        for label in difflib.get_close_matches(str(wanted).casefold(), folded, n=3, cutoff=0.6)
    ]
    if near:
        return (
            f"{name} has no column {shown(wanted)}. Did you mean"
            f" {' or '.join(shown(label) for label in near)}?"
        )
    return f"{name} has no column {shown(wanted)}. Its columns are {listed(names, 12)}{hint}."


# --------------------------------------------------------------------------------------------------

_MARKS = {
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
_SEVERAL = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_CONTROLS = bytes(code for code in range(32) if chr(code) not in "\t\n\r\f")


def _latin(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("cp1252"), error.end


codecs.register_error("surelearn-latin", _latin)


def marked(head: bytes) -> str | None:
    """The encoding that a file's first bytes name, if it is not UTF-8."""
    return next((encoding for mark, encoding in _MARKS.items() if head.startswith(mark)), None)


def lines_as_utf8(name: str, lines: bytes) -> bytes:
    """Whole lines of text without a mark, as UTF-8."""
    _check_no_nul(name, lines)
    if lines.isascii():
        return lines
    try:
        lines.decode()
    except UnicodeDecodeError:
        try:
            plain = _SEVERAL.search(lines) is None  # then no byte is UTF-8, which is quicker
            return (
                lines.decode("cp1252") if plain else lines.decode("utf-8", "surelearn-latin")
            ).encode()
        except UnicodeDecodeError:
            raise DataError(f"{name} {NOT_THERE}") from None
    return lines


def as_utf8(name: str, content: bytes, *, lines: bool = False) -> bytes:
    """The text of a file as UTF-8 bytes; web pages are refused, and JSON unless it is ``lines``."""
    if encoding := marked(content):
        try:
            content = content.decode(encoding).encode()
        except UnicodeError:
            raise DataError(f"{name} {NOT_THERE}") from None
    content = content.removeprefix(codecs.BOM_UTF8)
    _check_no_nul(name, content)
    sample = content[:65536]
    if len(sample) - len(sample.translate(None, _CONTROLS)) > 0.005 * len(sample):
        raise DataError(
            f"{name} is binary, not a table: text, JSON lines, Parquet, Arrow (Feather), Excel, ARFF, LIBSVM and npz are"
            " read."
        )
    content = lines_as_utf8(name, content)
    start = content[:200].lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise DataError(f"{name} is a web page or XML, not a table: download the data file itself.")
    if not lines and start.startswith((b"{", b"[{", b"[[", b"[\n")):
        raise DataError(f"{name} is JSON, not a table: save it as JSON lines, CSV or Parquet.")
    return content


def _check_no_nul(name: str, text: bytes) -> None:
    if b"\0" in text:
        raise DataError(
            f"{name} has NUL bytes: it is not a text table, or UTF-16 without its mark; save it as"
            " UTF-8."
        )


def whole_lines(head: bytes) -> bytes:
    """The beginning of a file, up to the end of a line, as UTF-8 unless it is marked otherwise."""
    text = head
    if encoding := marked(head):
        text = codecs.getincrementaldecoder(encoding)().decode(head).encode()
    return text if len(head) < HEAD else text[: _last_break(text) + 1] or text


def first_lines(text: bytes) -> bytes:
    """The first whole lines of text in UTF-8 that every reader decides by."""
    return text if len(text) <= HEAD else text[:HEAD][: _last_break(text[:HEAD]) + 1] or text[:HEAD]


def _last_break(text: bytes) -> int:
    return max(text.rfind(b"\n"), text.rfind(b"\r"))


class Utf8(io.RawIOBase):
    """A stream of bytes as UTF-8, whole lines at a time; ``head`` was read of it already."""

    def __init__(self, stream: Readable, name: str, head: bytes) -> None:
        self._stream, self._name, self._head, self._rest = stream, name, head, b""
        encoding = marked(head)
        self._decoder = codecs.getincrementaldecoder(encoding)() if encoding else None
        self._first = True

    def readable(self) -> bool:
        """Whether it can be read: yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; a piece at a time, however large it is."""
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def read(self, size: int = -1) -> bytes:  # noqa: ARG002 - a piece at a time, however much is asked for
        """The next whole lines, or nothing at the end."""
        while True:
            raw, self._head = self._head or read_from(self._stream, self._name, BLOCK), b""
            more = self._decoded(raw)
            if self._first and more:
                more, self._first = more.removeprefix(codecs.BOM_UTF8), False
            text = self._rest + more
            cut = _last_break(text) + 1 if raw else len(text)
            self._rest = text[cut:]
            if cut or not raw:
                return lines_as_utf8(self._name, text[:cut])
            check_line(self._name, len(text))

    def _decoded(self, raw: bytes) -> bytes:
        if self._decoder is None:
            return raw
        try:
            return self._decoder.decode(raw, final=not raw).encode()
        except UnicodeError:
            raise DataError(f"{self._name} {NOT_THERE}") from None


def check_line(name: str, length: int) -> None:
    """Refuse a line that has no end in sight."""
    if length > LONGEST_LINE:
        raise DataError(
            f"{name} has a line of more than {LONGEST_LINE >> 20} MiB: one line must be one row."
        )
