"""Predict new rows with a saved model, in pieces: the columns that came, and what the model
adds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute

from surelearn import files
from surelearn.certificate import Certificate
from surelearn.claim import Claim
from surelearn.data.frames import Source
from surelearn.data.schema import Notes, Schema
from surelearn.data.stream import FILE, Stream, open_stream
from surelearn.operating import Requirement
from surelearn.operating.sets import in_words
from surelearn.persistence import Saved
from surelearn.subject import Lacking, predict_with, scores_of
from surelearn.subject.bands import band_of, within_distance
from surelearn.types import Array, Model, RowsLike

pc: Any = pyarrow.compute


def predict(saved: Saved, source: Source, *, header: bool | None = None) -> pd.DataFrame:
    """The rows of a file or data frame with ``prediction`` and ``probability``, or for regression
    ``low`` and ``high``.

    The probability of the class that matters is ``probability_<class>``; ``set`` are the labels of a
    guaranteed prediction set (`surelearn.operating.sets.from_words` reads them); ``outside`` names the
    columns in which a row lies far outside the rows that the model was fitted on.

    Parameters
    ----------
    saved : from `surelearn.persistence.read_model`
    source : as in `surelearn.data.read_table`; columns beyond the model's are kept, and a target is
        not needed
    header : whether a text file names its columns; by default as the audited one did
    """
    return pa.concat_tables(Predictor(saved).tables(source, header=header)).to_pandas()


_ZERO = "feature 0"
_COUNTED_FROM_ONE = (
    "{name} has an index 0, which the model's table had not: surelearn up to 0.2 counted the"
    " columns of LIBSVM files from 1 also where their indices began at 0; write indices one higher"
    " for such a model"
)


def interval_claim(certificate: Certificate | None) -> Claim | None:
    """The claim about the distance from the truth, or about the scores of intervals of their own
    width, that gives a prediction its interval, if there is one.
    """
    claims = () if certificate is None else certificate.together
    own = ("error_quantile", "score_quantile")
    return next((claim for claim in claims if claim.quantity in own), None)


def intervals(
    model: Model, X: RowsLike, certificate: Certificate, predicted: Array | None = None
) -> tuple[Array, Array] | Lacking:
    """(n,), (n,): the ends of the certified intervals of rows, within the stated range of the target;
    `Lacking` where none is certified.

    Parameters
    ----------
    predicted : the model's predictions of the rows, where they are known
    """
    claim = interval_claim(certificate)
    if claim is None:
        return Lacking("interval", "the certificate makes no claim about one")
    score = float(claim.value)  # type: ignore[arg-type]
    target_range = certificate.facts.options.get("target_range")
    if claim.quantity == "score_quantile":
        band = band_of(model, X, target_range)
        return band if isinstance(band, Lacking) else band.interval(score)
    said = predict_with(model)(X) if predicted is None else predicted
    said = np.asarray(said, dtype=float)
    return within_distance(said, score, target_range)


ADDED = ("prediction", "probability", "set", "abstain", "low", "high", "outside")  # columns


def abstains_below(certificate: Certificate | None) -> float | None:
    """The confidence below which no answer is given, where errors among the answered are guaranteed;
    None where every row is answered.
    """
    facts = None if certificate is None else certificate.facts
    if facts is None or "walk.threshold" not in facts:
        return None
    selective = Requirement.parse(facts.options["require"]).quantity == "error"
    return float(facts["walk.threshold"]) if selective else None


@dataclass
class Predictor:
    """A saved model at work on tables in pieces; ``notes`` counts what was odd about the rows
    so far.
    """

    saved: Saved
    notes: Notes = field(default_factory=Notes)

    @property
    def schema(self) -> Schema:
        """The columns the model reads."""
        if self.saved.schema is None:
            raise ValueError(
                "the model was saved without its columns: only a model of an audit predicts files"
            )
        return self.saved.schema

    def open(self, source: Source, *, header: bool | None = None) -> Stream:
        """The table in pieces, checked for the model's columns."""
        schema = self.schema
        stream = open_stream(
            source,
            header=schema.header if header is None else header,
            names_for=schema.names_for,
            images=schema.images is not None,
        )
        try:
            if not stream.sparse:
                schema.check(stream.name, stream.columns, stream.images)
            elif _ZERO in stream.columns and _ZERO not in schema.names:
                raise ValueError(_COUNTED_FROM_ONE.format(name=stream.name))
        except ValueError:
            stream.close()
            raise
        known = {*schema.names, FILE} if schema.images is not None else schema.names
        self.notes.extra = tuple(name for name in stream.columns if name not in known)
        return stream

    def rows(self, stream: Stream, table: pa.Table) -> pd.DataFrame:
        """The model's columns of a piece."""
        if stream.sparse:  # features that no line of the file mentions are zero
            for feature in self.schema.features:
                if feature.name not in table.column_names:
                    table = table.append_column(feature.name, pa.array(np.zeros(table.num_rows)))
        return self.schema.conform(table, stream.name, self.notes, decimal=stream.decimal)

    def added(self, stream: Stream, table: pa.Table) -> dict[str, Any]:
        """What the model adds to a piece."""
        rows = self.rows(stream, table)
        made = scores_of(self.saved.model, rows)
        made |= self._of_classes(rows, made)
        confident = abstains_below(self.saved.certificate)
        if confident is not None and "probability" in made:
            made["abstain"] = np.asarray(made["probability"], dtype=float) < confident
        certificate = self.saved.certificate
        if self.schema.task == "regression" and certificate is not None:
            ends = intervals(self.saved.model, rows, certificate, made["prediction"])
            if not isinstance(ends, Lacking):
                made |= {"low": ends[0], "high": ends[1]}
        outside = self.schema.outside(rows, self.notes)
        return made if outside is None else made | {"outside": outside}

    def _of_classes(self, rows: pd.DataFrame, made: dict[str, Any]) -> dict[str, Any]:
        """The probability of the class that matters, and the prediction set, where one is known or
        guaranteed.
        """
        certificate, model = self.saved.certificate, self.saved.model
        if certificate is None or self.schema.task != "classification":
            return {}
        positive, sets = certificate.facts.options.get("positive"), certificate.sets
        added: dict[str, Any] = {}
        if positive is not None and "probability" in made:
            own = np.asarray(model.classes_).tolist()
            if len(own) == 2:  # the answer's probability is known, and the other's with it
                mine = np.asarray(made["prediction"] == positive, dtype=bool)
                said = np.asarray(made["probability"], dtype=float)
                added[f"probability_{positive}"] = np.where(mine, said, 1 - said)
            elif positive in own:
                shares = np.asarray(model.predict_proba(rows), dtype=float)
                added[f"probability_{positive}"] = shares[:, own.index(positive)]
        if sets is not None:
            texts = [in_words(labels) for labels in sets.labels(model, rows)]
            added["set"] = np.array(texts, dtype=object)
        return added

    def _extended(self, table: pa.Table, added: dict[str, Any]) -> pa.Table:
        """A piece with what the model adds; of images without their pixels."""
        if self.schema.images is not None:
            read = {feature.name for feature in self.schema.features}
            kept = [name for name in table.column_names if name not in read]
            numbers = np.arange(1, table.num_rows + 1) + self.notes.rows - table.num_rows
            table = table.select(kept) if kept else pa.table({"row": numbers})
        return _extended(table, added)

    def tables(self, source: Source, *, header: bool | None = None) -> Iterator[pa.Table]:
        """The pieces of a table with what the model adds, under names that are free."""
        with self.open(source, header=header) as stream:
            for table in stream.tables:
                yield self._extended(table, self.added(stream, table))

    def write(
        self,
        source: Source,
        out: Path | None,
        *,
        header: bool | None = None,
        advance: Callable[[int], None] = lambda rows: None,  # noqa: ARG005
    ) -> int:
        """Write the pieces to a file (CSV, TSV, either gzipped, Parquet), or to standard output
        as CSV; how many rows.
        """
        with self.open(source, header=header) as stream, _sink(out, stream) as put:
            for table in stream.tables:
                put(self._extended(table, self.added(stream, table)))
                advance(table.num_rows)
        return self.notes.rows


def without_added(
    names: Sequence[str], own: Collection[str] = (), positive: object = None
) -> list[str]:
    """The columns of a table without those that `Predictor.write` put behind them, if it did.

    ``own`` are the columns that the model knows, ``positive`` is the class that matters.

    Examples
    --------
    >>> without_added(["x", "y", "prediction", "probability"])
    ['x', 'y']
    >>> without_added(["prediction", "y"])
    ['prediction', 'y']
    """
    added, kept = {*ADDED, f"probability_{positive}"}, list(names)
    while kept and kept[-1] not in own and {kept[-1], kept[-1].rstrip("_")} & added:
        kept.pop()
    last = names[len(kept) :]
    return kept if last and last[0].rstrip("_") == "prediction" else list(names)


def _extended(table: pa.Table, added: dict[str, Any]) -> pa.Table:
    for name, values in added.items():
        free = name
        while free in table.column_names:
            free += "_"
        array = (
            pa.array(values.tolist())
            if values.dtype.kind == "O"
            else pa.array(np.ascontiguousarray(values))
        )
        table = table.append_column(free, array)
    return table


# --------------------------------------------------------------------------------------------------


@contextmanager
def _sink(out: Path | None, stream: Stream) -> Iterator[Callable[[pa.Table], None]]:
    """Where predictions go; a file appears when all of them are there."""
    if out is None:
        yield _TextWriter(sys.stdout.buffer, stream.delimiter).put
        sys.stdout.flush()
        return
    name = out.name.lower()
    if not name.removesuffix(".gz").endswith((".csv", ".tsv", ".txt")) and not name.endswith(
        ".parquet"
    ):
        raise ValueError(f"--out {out} must end in .csv, .tsv, .csv.gz or .parquet")
    with files.writing(out) as beside:
        if name.endswith(".parquet"):
            with _ParquetWriter(beside) as writer:
                yield writer.put
        else:
            import gzip

            delimiter = "\t" if name.removesuffix(".gz").endswith(".tsv") else stream.delimiter
            with (
                gzip.open(beside, "wb", compresslevel=5)
                if name.endswith(".gz")
                else open(beside, "wb")
            ) as file:
                yield _TextWriter(file, delimiter).put  # type: ignore[arg-type]


class _TextWriter:
    """Delimited text, each value as it came, quoted only where it must be."""

    def __init__(self, file: BinaryIO, delimiter: str) -> None:
        self.file, self.delimiter, self.started = file, delimiter, False

    def put(self, table: pa.Table) -> None:
        if not self.started:
            names = self._quoted(pa.array(table.column_names, pa.large_string())).to_pylist()
            self.file.write(f"{self.delimiter.join(names)}\n".encode())
            self.started = True
        columns = [self._quoted(_as_text(column)) for column in table.columns]
        lines = pc.binary_join_element_wise(*columns, pa.scalar(self.delimiter, pa.large_string()))
        self.file.write(("\n".join(lines.to_pylist()) + "\n").encode())

    def _quoted(self, text: pa.Array) -> Any:
        special = pc.match_substring_regex(text, f'["\\r\\n{self.delimiter}]')
        if not pc.any(special).as_py():
            return text
        mark, nothing = pa.scalar('"', pa.large_string()), pa.scalar("", pa.large_string())
        marked = pc.binary_join_element_wise(
            mark, pc.replace_substring(text, '"', '""'), mark, nothing
        )
        return pc.if_else(special, marked, text)


def _as_text(column: pa.Array | pa.ChunkedArray) -> Any:
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return pc.cast(column, pa.large_string()).fill_null("")


class _ParquetWriter:
    def __init__(self, path: Path) -> None:
        self.path, self.writer = path, None

    def __enter__(self) -> _ParquetWriter:
        return self

    def put(self, table: pa.Table) -> None:
        from pyarrow import parquet

        if self.writer is None:
            self.writer = parquet.ParquetWriter(self.path, table.schema)
        self.writer.write_table(table.cast(self.writer.schema))

    def __exit__(self, *_: Any) -> None:
        if self.writer is not None:
            self.writer.close()


def same_file(out: Path, source: Source) -> bool:
    """Whether predictions would overwrite the file they are made from."""
    try:
        return isinstance(source, (str, Path)) and os.path.samefile(out, source)
    except OSError:
        return False
