"""JSON that others may have written: limited in size, count, depth and numbers before anything is
made of it.

Every reader of a ledger, certificate, audit, manifest or watch state goes through `read_json` or
`parse_json`; what they refuse, they refuse with a `ValueError` of one sentence. `checked` does the
same for what is made of the plain data.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import types
import typing
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from surelearn import files
from surelearn.plain import content_hash

if TYPE_CHECKING:
    from surelearn.types import Plain

MOST_BYTES = 256 * 2**20
MOST_VALUES = 10_000_000
MOST_CONTAINERS = 1_000_000  # lists and objects, which take more room than numbers
DEEPEST = 100
LONGEST_NUMBER = 300  # digits: such a number is still a float

T = TypeVar("T")


def read_json(path: str | Path, what: str = "") -> Any:
    """The plain data in a JSON file: a regular one, of limited size.

    Parameters
    ----------
    path : the file
    what : how a refusal names it; the path by default

    Raises
    ------
    ValueError
        in one sentence, for whatever is not strict JSON within the limits
    OSError
        if there is no such file
    """
    what = what or str(path)
    return parse_json(files.read(Path(path), most=MOST_BYTES, what=what), what)


def parse_json(text: str | bytes, what: str = "this", *, deepest: int = DEEPEST) -> Any:
    """The plain data in JSON text; NaN, a name that stands twice, and numbers that no float holds
    are refused too.

    Examples
    --------
    >>> parse_json('{"delta": 0.05}')
    {'delta': 0.05}
    >>> parse_json("[" * 5000, "audit.json")
    Traceback (most recent call last):
    ...
    ValueError: audit.json is not JSON that is read: it is nested more than 100 deep
    """
    if len(text) > MOST_BYTES:
        raise ValueError(
            f"{what} is not JSON that is read: it is larger than {MOST_BYTES / 2**20:g} MiB"
        )
    try:
        text = text.decode() if isinstance(text, bytes) else text
        # those inside strings too: an upper limit is enough
        containers = text.count("[") + text.count("{")
        _limit(
            containers <= MOST_CONTAINERS,
            f"it holds more than {MOST_CONTAINERS:,} lists and objects",
        )
        _limit(
            containers + text.count(",") <= MOST_VALUES,
            f"it holds more than {MOST_VALUES:,} values",
        )
        plain = json.loads(
            text,
            object_pairs_hook=_once,
            parse_int=_whole,
            parse_float=_real,
            parse_constant=_constant,
        )
        _limit(not _deeper(plain, deepest), f"it is nested more than {deepest} deep")
    except _LimitError as error:
        raise ValueError(f"{what} is not JSON that is read: {error}") from None
    except RecursionError:
        raise ValueError(
            f"{what} is not JSON that is read: it is nested more than {deepest} deep"
        ) from None
    except MemoryError:
        raise ValueError(
            f"{what} is not JSON that is read: there is not enough memory for it"
        ) from None
    except UnicodeDecodeError:
        raise ValueError(f"{what} is not JSON: it is not UTF-8 text") from None
    except ValueError as error:
        raise ValueError(f"{what} is not JSON: {error}") from None
    return plain


class _LimitError(Exception):
    """JSON beyond a limit."""


def _limit(kept: bool, otherwise: str) -> None:
    if not kept:
        raise _LimitError(otherwise)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise _LimitError(f"an object names {twice!r:.60} twice")
    return made


def _whole(digits: str) -> int:
    _limit(len(digits) <= LONGEST_NUMBER, f"it holds a number of more than {LONGEST_NUMBER} digits")
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits)
    _limit(math.isfinite(value), f"it holds {digits:.40}, which is too large")
    return value


def _constant(name: str) -> float:
    raise _LimitError(f"it holds {name}, which JSON has not")


def _deeper(plain: Plain, most: int) -> bool:
    """Whether containers are nested more than ``most`` deep; level by level, without recursion."""
    level = [plain] if isinstance(plain, (list, dict)) else []
    for _ in range(most):
        items = (part.values() if isinstance(part, dict) else part for part in level)
        level = [item for part in items for item in part if isinstance(item, (list, dict))]
        if not level:
            return False
    return True


def check_format(plain: object, what: str, kind: str, newest: int) -> int:
    """The version of plain data that say which format they have; another format or a later version
    is refused.

    Parameters
    ----------
    plain : what `parse_json` gave
    what : how a refusal names it: "a certificate"
    kind : the format it must have
    newest : the latest version that is read

    Examples
    --------
    >>> check_format({"format": "surelearn-ledger", "version": 9}, "a ledger", "surelearn-ledger", 2)
    Traceback (most recent call last):
    ...
    ValueError: this is a ledger, but it has version 9, this surelearn reads up to 2: upgrade surelearn
    """
    if not isinstance(plain, Mapping) or plain.get("format") != kind:
        raise ValueError(f"this is not {what}: its format is not {kind!r}")
    version = plain.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(
            f"this is {what}, but the version must be a positive whole number, not {version!r:.60}"
        )
    if version > newest:
        raise ValueError(
            f"this is {what}, but it has version {version!s:.60}, this surelearn reads up to"
            f" {newest}: upgrade surelearn"
        )
    return version


def sealed(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Plain data with the hash of their content, by which `is_altered` finds later changes.

    Examples
    --------
    >>> kept = sealed({"format": "surelearn-ledger", "version": 2})
    >>> is_altered(kept), is_altered({**kept, "version": 1})
    (False, True)
    """
    return {**plain, "hash": content_hash(plain)}


def is_altered(plain: Mapping[str, Any]) -> bool:
    """Whether the content of plain data is not that of their hash."""
    return content_hash(plain) != plain["hash"]


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Whatever goes wrong while something is made of plain data is a `ValueError` that says what is
    damaged.

    Examples
    --------
    >>> with reading("the certificate"):
    ...     {}["claims"]
    Traceback (most recent call last):
    ...
    ValueError: the certificate is incomplete or damaged: it has no 'claims'
    """
    try:
        yield
    except KeyError as error:
        raise ValueError(f"{what} is incomplete or damaged: it has no {error!s:.80}") from None
    except (
        TypeError,
        AttributeError,
        LookupError,
        ArithmeticError,
        RecursionError,
        MemoryError,
        StopIteration,
    ) as error:
        said = str(error).splitlines() or [""]
        raise ValueError(
            f"{what} is incomplete or damaged: {type(error).__name__}: {said[0]:.120}"
        ) from None


def checked(made: T) -> T:
    """A dataclass whose fields were read from a file, if each has a value of its annotated type.

    Examples
    --------
    >>> from surelearn.claim import Covers
    >>> checked(Covers(loss=3))
    Traceback (most recent call last):
    ...
    ValueError: the loss of a Covers cannot be 3
    """
    cls = type(made)
    hints = _hints(cls)
    for field in dataclasses.fields(cls):  # pyright: ignore[reportArgumentType] - a dataclass
        value = getattr(made, field.name)
        if not _is_a(value, hints[field.name]):
            raise ValueError(f"the {field.name} of a {cls.__name__} cannot be {value!r:.60}")
    return made


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    """The types of a class's fields; a ledger has one such object per look, and evaluating them
    takes the longest.
    """
    return typing.get_type_hints(cls)


def _is_a(value: object, hint: Any) -> bool:
    """Whether a value is what an annotation says: of plain types, Literal, unions, tuples,
    lists and mappings.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin is Literal:
        return any(type(value) is type(option) and value == option for option in arguments)
    if origin in (typing.Union, types.UnionType):
        return any(_is_a(value, option) for option in arguments)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(_is_a(item, arguments[0]) for item in value)
        return len(value) == len(arguments) and all(map(_is_a, value, arguments))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            _is_a(key, arguments[0]) and _is_a(item, arguments[1]) for key, item in value.items()
        )
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint if hint in (int, bool, str) else isinstance(value, hint)
