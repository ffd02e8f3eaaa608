"""ONNX models, computed by onnxruntime (an extra)."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from surelearn.persistence.model_files.columns import NamedColumns, NumberColumns, Reads
from surelearn.persistence.model_files.model_file import Answered, ModelFile, of_outputs, usable
from surelearn.persistence.model_files.onnx_text import Graph, read_graph
from surelearn.persistence.trial import tried
from surelearn.types import AnyArray

_AT_ONCE = 8192  # rows
_TYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(string)": object,
}
_WHOLE = ("tensor(int64)", "tensor(int32)", "tensor(bool)")
_PROBABLE = ("Sigmoid", "Logistic")
_TRIAL = """
import onnxruntime
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
onnxruntime.InferenceSession(sys.stdin.buffer.read(), options, providers=["CPUExecutionProvider"])
"""


def read_onnx(name: str, digest: str, content: bytes) -> ModelFile:
    """An ONNX file with one tensor of all numbers, or one input for each column."""
    graph = read_graph(content)
    if graph.external:
        raise ValueError(
            "it keeps weights in other files, which its hash does not cover: save it as one file"
            " (onnx.save(model, path, save_as_external_data=False))"
        )
    try:
        runtime = importlib.import_module("onnxruntime")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"{name} needs onnxruntime: pip install 'surelearn[onnx]'", name="onnxruntime"
        ) from None
    tried(_TRIAL, content, "onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # the same sums each time
    session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    inputs = session.get_inputs()
    reads, feeds = _inputs(inputs)
    size = next(
        (one.shape[0] for one in inputs if one.shape and isinstance(one.shape[0], int)), None
    )

    def run(rows: pd.DataFrame) -> dict[str, Any]:
        return _run(session, feeds, rows, size)

    classes, outputs, task, ask, number = _outputs(session, graph, run)
    return ModelFile(
        name=name,
        digest=digest,
        kind="an ONNX model",
        task=task,
        classes=classes,
        outputs=outputs,
        reads=reads,
        ask=ask,
        ask_number=number,
    )


Feeds = Callable[[pd.DataFrame], Mapping[str, AnyArray]]


def _inputs(inputs: list[Any]) -> tuple[Reads, Feeds]:
    """Which columns the inputs are, and how rows are given to them."""
    for one in inputs:
        if one.type not in _TYPES:
            raise ValueError(
                f"its input {one.name!r} is a {one.type}, which no column of a table is"
            )
    wide = [one for one in inputs if len(one.shape) == 2 and one.shape[1] != 1]
    if len(inputs) == 1 and wide and inputs[0].type != "tensor(string)":
        only = inputs[0]
        width = only.shape[1] if isinstance(only.shape[1], int) else None
        return NumberColumns(width), lambda rows: {only.name: _typed(rows, only)}
    bad = next((one for one in inputs if one in wide or len(one.shape) not in (1, 2)), None)
    if bad is not None:
        shape = " × ".join(str(size or "?") for size in bad.shape)
        raise ValueError(
            f"its input {bad.name!r} has the shape {shape}: one tensor of rows × columns is read, or"
            " one input for each column"
        )
    words = frozenset(one.name for one in inputs if one.type == "tensor(string)")
    reads = NamedColumns(tuple(one.name for one in inputs), words)

    def feed(rows: pd.DataFrame) -> dict[str, AnyArray]:
        made = {one.name: _typed(rows[[one.name]], one) for one in inputs}
        return {
            one.name: made[one.name][:, 0] if len(one.shape) == 1 else made[one.name]
            for one in inputs
        }

    return reads, feed


def _typed(rows: pd.DataFrame, one: Any) -> AnyArray:
    """Columns as the input's type; whole numbers must be whole."""
    if one.type == "tensor(string)":
        words = [
            ["" if value is None or value != value else str(value)] for value in rows.iloc[:, 0]
        ]
        return np.array(words, dtype=object).reshape(len(rows), 1)
    values = rows.to_numpy(dtype=float)
    if one.type in _WHOLE and not np.array_equal(values, np.round(values)):
        raise ValueError(
            f"its input {one.name!r} takes whole numbers, and a column has fractions or missing values"
        )
    return values.astype(_TYPES[one.type])


def _run(session: Any, feed: Feeds, rows: pd.DataFrame, size: int | None) -> dict[str, Any]:
    """All outputs by name, of rows in parts of ``size``, where the model takes no other number."""
    names = [one.name for one in session.get_outputs()]
    parts: dict[str, list[Any]] = {name: [] for name in names}
    for part, count in _parts(rows, size):
        for name, found in zip(names, session.run(None, dict(feed(part))), strict=True):
            if not hasattr(found, "__len__") or len(found) < count:
                raise ValueError(f"its output {name!r} is not one per row")
            parts[name].append(found[:count])
    return {
        name: [row for part in found for row in part]
        if isinstance(found[0], list)
        else np.concatenate(found)
        for name, found in parts.items()
    }


def _parts(rows: pd.DataFrame, size: int | None) -> Iterator[tuple[pd.DataFrame, int]]:
    """Rows in parts; the last one is filled up with its last row where the size is fixed."""
    step = size or _AT_ONCE
    for start in range(0, len(rows), step):
        part = rows.iloc[start : start + step]
        count = len(part)
        if size and count < size:
            part = pd.concat([part, *[part.iloc[-1:]] * (size - count)])
        yield part, count


def _outputs(
    session: Any, graph: Graph, run: Callable[[pd.DataFrame], dict[str, Any]]
) -> tuple[tuple[Any, ...] | None, int | None, Any, Any, Any]:
    """Classes, how many there are, the task, and how outputs are answers."""
    outputs = session.get_outputs()
    label = next((o for o in outputs if o.type in ("tensor(int64)", "tensor(string)")), None)
    maps = next((o for o in outputs if o.type.startswith("seq(map(")), None)
    floats = [o for o in outputs if o.type in ("tensor(float)", "tensor(double)")]
    classes = graph.classes()
    if label is None and maps is None:
        if not floats:
            raise ValueError("it gives neither labels nor numbers")
        return _of_numbers(floats[0], graph, run)

    def ask(rows: pd.DataFrame) -> Answered:
        found = run(rows)
        order = (
            classes if classes is not None else None if maps is None else tuple(found[maps.name][0])
        )
        given = None
        if maps is not None and order is not None:
            given = np.array(
                [[row.get(one, 0.0) for one in order] for row in found[maps.name]], float
            )
        elif floats:
            given = np.asarray(found[floats[0].name], dtype=float)
        if given is not None and order is not None:
            given = usable(given, len(order))
        if label is None:
            if given is None:
                raise ValueError("its maps are not one probability per class")
            return Answered(given.argmax(axis=1), given)
        said = np.asarray(found[label.name])
        said = said[:, 0] if said.ndim == 2 and said.shape[1] == 1 else said
        if order is None:
            whole = said.dtype.kind in "iu"
            if given is not None and given.ndim == 2 and whole:
                _check_positions(said, given)
                given = usable(given, given.shape[1])
            return Answered(said, given if whole else None, positions=whole)
        places = {one: i for i, one in enumerate(order)}
        try:
            positions = np.array([places[one] for one in said.tolist()])
        except (KeyError, TypeError):
            raise ValueError("it answers with a label that is none of those it names") from None
        return Answered(positions, given)

    known = classes is not None
    return classes, len(classes) if known and classes else None, "classification", ask, None


def _check_positions(said: AnyArray, given: AnyArray) -> None:
    """Refuse whole numbers that are no positions of the largest probability."""
    if (
        said.max() >= given.shape[1]
        or said.min() < 0
        or np.mean(given.argmax(axis=1) == said) < 0.5
    ):
        raise ValueError(
            "it answers with numbers that are not the positions of its probabilities, and does not"
            " say which labels they are"
        )


def _of_numbers(
    output: Any, graph: Graph, run: Callable[[pd.DataFrame], dict[str, Any]]
) -> tuple[None, int | None, Any, Any, Any]:
    """A tensor of numbers alone: outputs of classes, or one number."""
    single = "probability" if graph.operation(output.name) in _PROBABLE else "logit"

    def values(rows: pd.DataFrame) -> AnyArray:
        found = np.asarray(run(rows)[output.name])
        return found[:, None] if found.ndim == 1 else found

    def ask(rows: pd.DataFrame) -> Answered:
        found = values(rows)
        if found.ndim != 2:
            raise ValueError(f"its output {output.name!r} has the shape {found.shape}")
        return of_outputs(found, single=single)

    def number(rows: pd.DataFrame) -> Answered:
        found = values(rows)
        if found.ndim != 2 or found.shape[1] != 1:
            raise ValueError(f"its output {output.name!r} is not one number per row")
        return Answered(found[:, 0].astype(float))

    width = output.shape[1] if len(output.shape) == 2 and isinstance(output.shape[1], int) else None
    several = width is not None and width > 1
    return (
        None,
        width if several else None,
        "classification" if several else None,
        ask,
        None if several else number,
    )
