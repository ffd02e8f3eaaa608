"""What an ONNX file says beside its computation: labels of classes, weights in other files, and which
operation an output comes from.

Protocol buffers are numbered fields; only those that are needed are looked at, and of none more than
there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

DEEPEST = 40  # a graph inside an attribute of a node of a graph …
_LABELS = ("classlabels_strings", "classlabels_ints", "classlabels_int64s")
_KEEPS = ("Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape", "Flatten")
_EXTERNAL = 1
_INT64, _STRING = 7, 8


@dataclass
class Graph:
    """What is known of the file.

    Attributes
    ----------
    labels : of classes, as their nodes have them, in their order
    mapped : the same of nodes that name each probability
    external : whether weights are in other files
    makers : the operation and the first input of each value's node
    constants : arrays of one dimension that hold words or whole numbers, by their names
    picked : names of arrays that answers are picked from
    """

    labels: list[tuple[Any, ...]] = field(default_factory=list)
    mapped: list[tuple[Any, ...]] = field(default_factory=list)
    external: bool = False
    makers: dict[str, tuple[str, str]] = field(default_factory=dict)
    constants: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    picked: list[str] = field(default_factory=list)

    def classes(self) -> tuple[Any, ...] | None:
        """The labels, where the file says them in one way."""
        picked = [self.constants[name] for name in self.picked if name in self.constants]
        found = {*self.mapped} or {*self.labels} or {*picked}
        return found.pop() if len(found) == 1 else None

    def operation(self, value: str) -> str:
        """Which operation makes a value, but for those that change no number."""
        for _ in range(DEEPEST):
            made, source = self.makers.get(value, ("", ""))
            if made not in _KEEPS:
                return made
            value = source
        return ""


def read_graph(content: bytes) -> Graph:
    """What the file says; damaged content is refused."""
    found = Graph()
    graphs = [value for number, value in _fields(memoryview(content)) if number == 7]
    if not graphs or not all(isinstance(graph, memoryview) for graph in graphs):
        raise ValueError("it is not an ONNX file: it has no graph")
    _walk(content, "model", found, 0)
    return found


# of a message the numbers of the fields that hold messages, and which they are
_INSIDE: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}


def _walk(content: Any, kind: str, found: Graph, depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError(
            f"it is not an ONNX file that is read: it is nested more than {DEEPEST} deep"
        )
    fields = list(_fields(memoryview(content)))
    if kind == "node":
        _node(fields, found)
    if kind == "tensor":
        _tensor(fields, found)
    inside = _INSIDE.get(kind, {})
    for number, value in fields:
        if number in inside and isinstance(value, memoryview):
            _walk(value, inside[number], found, depth + 1)


def _node(fields: list[tuple[int, Any]], found: Graph) -> None:
    inputs = [_word(value) for number, value in fields if number == 1]
    operation = next((_word(value) for number, value in fields if number == 4), "")
    for number, value in fields:
        if number == 2:
            found.makers[_word(value)] = (operation, inputs[0] if inputs else "")
    if operation == "ArrayFeatureExtractor" and inputs:
        found.picked.append(inputs[0])
    into = found.mapped if operation == "ZipMap" else found.labels
    for number, value in fields:
        if number == 5 and isinstance(value, memoryview):
            into += _labels(list(_fields(value)))


def _labels(attribute: list[tuple[int, Any]]) -> list[tuple[Any, ...]]:
    """The labels that an attribute holds, if it holds some."""
    name = next((_word(value) for number, value in attribute if number == 1), "")
    if name not in _LABELS:
        return []
    words = tuple(_word(value) for number, value in attribute if number == 9)
    labels: tuple[Any, ...] = words or tuple(_numbers(attribute, 8))
    return [labels] if labels else []


def _tensor(fields: list[tuple[int, Any]], found: Graph) -> None:
    said = [value for number, value in fields if number == 14]
    if _EXTERNAL in said or any(number == 13 for number, _ in fields):
        found.external = True
    sizes = _numbers(fields, 1)
    kind = next((value for number, value in fields if number == 2), 0)
    name = next((_word(value) for number, value in fields if number == 8), "")
    if len(sizes) != 1 or kind not in (_INT64, _STRING):
        return
    values: tuple[Any, ...] = tuple(_word(value) for number, value in fields if number == 6)
    if kind == _INT64:
        raw = next((bytes(value) for number, value in fields if number == 9), b"")
        cut = [raw[i : i + 8] for i in range(0, len(raw), 8)]
        values = tuple(int.from_bytes(one, "little", signed=True) for one in cut)
        values = values or tuple(_numbers(fields, 7))
    if len(values) == sizes[0]:
        found.constants[name] = values


def _numbers(fields: list[tuple[int, Any]], wanted: int) -> list[int]:
    """Whole numbers of a field, one by one or packed."""
    made: list[int] = []
    for number, value in fields:
        if number != wanted:
            continue
        if isinstance(value, int):
            made.append(_signed(value))
            continue
        at = 0
        while at < len(value):
            one, at = _varint(value, at)
            made.append(_signed(one))
    return made


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _word(value: Any) -> str:
    return bytes(value).decode(errors="replace") if isinstance(value, memoryview) else ""


def _fields(content: memoryview) -> Iterator[tuple[int, Any]]:
    """The fields of a message: numbers, or bytes."""
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        number, form = key >> 3, key & 7
        if form == 0:
            value, at = _varint(content, at)
            yield number, value
            continue
        if form == 2:
            size, at = _varint(content, at)
        else:
            size = {1: 8, 5: 4}.get(form, -1)
        if size < 0 or size > len(content) - at:
            raise ValueError("it is not an ONNX file, or is damaged")
        yield number, content[at : at + size]
        at += size


def _varint(content: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(content) and shift < 70:
        byte = content[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value & (2**64 - 1), at
    raise ValueError("it is not an ONNX file, or is damaged")
