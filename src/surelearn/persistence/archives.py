"""scikit-learn models in skops' format, whose types must all be on a fixed list.

skops names types by their modules. Those of surelearn are named by their keys in what is written,
``surelearn.ridge/1``, and by the modules where they live today in what skops reads.
"""

from __future__ import annotations

import importlib
import io
import json
import sys
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from surelearn.documents import parse_json
from surelearn.keys import EARLIER, find_class, known_classes, path_of
from surelearn.persistence.trusted import OURS, TRUSTED
from surelearn.persistence.words import first_line, shown, what
from surelearn.types import Model, Plain
from surelearn.unpacking import check_zip

DEEPEST = 400  # a pipeline inside a pipeline takes about ten
MOST_PARTS = 200_000
_ADAPTERS = tuple(
    f"sklearn.externals.array_api_compat.{name}" for name in ("cupy", "dask", "torch")
)


def _skops() -> Any:
    """``skops.io``, without the libraries that it would load for nothing.

    It lists scikit-learn's estimators by `pkgutil.walk_packages`, which imports every package below
    ``sklearn``, adapters to torch, dask and CuPy among them: 2.8 of 3.1 seconds. Adapters that
    nobody has loaded are missing meanwhile, which the walk passes over; they hold no estimator.
    """
    if "skops.io" in sys.modules:
        return sys.modules["skops.io"]
    missing = [name for name in _ADAPTERS if name not in sys.modules]
    sys.modules.update(dict.fromkeys(missing))  # pyright: ignore[reportArgumentType, reportCallIssue]
    try:
        return importlib.import_module("skops.io")
    finally:
        for name in missing:
            sys.modules.pop(name, None)


def encode_archive(model: Model, trusted: Sequence[str]) -> bytes:
    """The bytes of an archive whose types are all trusted."""
    try:
        content, ours = _with_keys(_skops().dumps(model))
        untrusted = _untrusted(content, [*ours, *trusted])
    except Exception as error:  # skops raises whatever a user's own class raises
        raise ValueError(f"the model cannot be saved without pickle: {first_line(error)}") from None
    if untrusted:
        raise ValueError(
            f"the model holds {untrusted[0]}, which is not on the list of types that are loaded:"
            " pass trusted=[...] to surelearn.save and surelearn.load if you vouch for it"
        )
    return content


def _untrusted(content: bytes, trusted: Sequence[str]) -> list[str]:
    return sorted(set(_skops().get_untrusted_types(data=content)) - {*TRUSTED, *trusted})


def _with_keys(content: bytes) -> tuple[bytes, set[str]]:
    """An archive as skops writes it with keys in the place of surelearn's modules, and the
    names that then stand in it.
    """
    keys = {path_of(cls): f"surelearn.{key}" for key, cls in known_classes().items()}
    return _renamed(content, _schema(content), keys)


def _with_modules(content: bytes, schema: Plain) -> tuple[bytes, set[str]]:
    """An archive as skops reads it: keys, and the modules that earlier versions wrote, give way to
    today's modules.

    What is neither keeps its name, and is refused as any other type that is not on the list.
    """
    found: dict[str, str] = {}
    for name in {_name(node) for node in _nodes(schema)}:
        cls = find_class(EARLIER.get(name, name.removeprefix("surelearn.")))
        if cls is not None and name.startswith("surelearn."):
            found[name] = path_of(cls)
    return _renamed(content, schema, found)


def _renamed(content: bytes, schema: Plain, names: Mapping[str, str]) -> tuple[bytes, set[str]]:
    """An archive, and its schema in place, with other names of types; and those of them that
    now stand in it.
    """
    given = set()
    for node in _nodes(schema):
        if (name := names.get(_name(node))) is not None:
            node["__module__"], _, node["__class__"] = name.rpartition(".")
            given.add(name)
    if not given:
        return content, given
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(buffer, "w") as into:
        for entry in dict.fromkeys(source.namelist()):
            into.writestr(
                entry, json.dumps(schema) if entry == "schema.json" else source.read(entry)
            )
    return buffer.getvalue(), given


def _name(node: Mapping[str, Any]) -> str:
    return f"{node.get('__module__')}.{node.get('__class__')}"


def _schema(content: bytes) -> Any:
    """The description of the archive's parts, of an archive that does not unpack to too much."""
    check_zip("it", content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return parse_json(archive.read("schema.json"), "its schema.json", deepest=DEEPEST)


def _nodes(schema: Plain) -> list[Any]:
    parts = [schema]
    for part in parts:  # which grows by the parts of every part
        parts += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return [part for part in parts if isinstance(part, dict)]


def _check_expansion(schema: Plain) -> None:
    """Refuse parts that share parts that share parts …: few as they are written, they are many to
    whoever walks through.

    skops takes the first part of a number for all of this number; here the largest counts.
    """
    written: dict[Any, list[Any]] = {}
    for node in (nodes := _nodes(schema)):
        if isinstance(number := node.get("__id__"), int | str):
            written.setdefault(number, []).append(node)
    sizes: dict[Any, int] = {}

    def size(part: Plain) -> int:
        if isinstance(part, list):
            return sum(map(size, part))
        if not isinstance(part, dict):
            return 0
        number = part.get("__id__")
        if not isinstance(number, int | str):
            return 1 + sum(map(size, part.values()))
        if number not in sizes:
            sizes[number] = 1  # of a part inside itself
            sizes[number] = max(1 + sum(map(size, node.values())) for node in written[number])
        return sizes[number]

    if size(schema) > max(MOST_PARTS, 20 * len(nodes)):
        raise ValueError(f"its parts share each other until there are more than {MOST_PARTS:,}")


def _misused(schema: Plain, ours: set[str]) -> list[str]:
    """Trusted types that stand in an archive in another way than skops writes them."""
    nodes, ways = _nodes(schema), {**TRUSTED, **dict.fromkeys(ours, OURS)}
    numbers = Counter(node.get("__id__") for node in nodes)
    named = [(_name(node), node) for node in nodes]
    return [
        name for name, node in named if name in ways and not _as_written(node, *ways[name], numbers)
    ]


def _as_written(
    node: Mapping[str, Any], loader: str, length: int | None, numbers: Mapping[Any, int]
) -> bool:
    if node["__loader__"] != loader or length is None:
        return node["__loader__"] == loader
    state = node["content"]  # skops takes the first part of a number for all of this number
    return (
        state["__loader__"] == "TupleNode"
        and len(state["content"]) == length
        and numbers[state["__id__"]] == 1
    )


def decode_archive(file: Path, content: bytes, trusted: Sequence[str]) -> Any:
    """The model in an archive, of which nothing is made unless every type is trusted and as
    skops writes it.
    """
    try:
        schema = _schema(content)
        _check_expansion(schema)
        content, ours = _with_modules(content, schema)
        untrusted = _untrusted(content, [*ours, *trusted])
        misused = _misused(schema, ours)
    except Exception as error:  # a damaged or hostile archive
        raise ValueError(f"{file} is {what(content)} as a model ({first_line(error)})") from None
    if untrusted:
        raise ValueError(
            f"{file} holds {shown(untrusted[0])}, which is not on the list of types that are"
            " loaded: nothing was"
        )
    if misused:
        raise ValueError(
            f"{file} holds {misused[0]} in another way than it was written: nothing was loaded"
        )
    try:
        return _skops().loads(content, trusted=[*TRUSTED, *ours, *trusted])
    except Exception as error:
        raise ValueError(f"{file} cannot be loaded: {first_line(error)}") from None
