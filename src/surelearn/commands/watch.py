"""`surelearn watch`: do live rows still bear the certificate out?"""

from __future__ import annotations

import csv
import itertools
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surelearn.commands.live_answers import LiveAnswers
from surelearn.terminal import ctrl_c, say, shorten

if TYPE_CHECKING:
    import pyarrow as pa

    from surelearn.data.stream import Stream
    from surelearn.monitoring import Looks, Watch
    from surelearn.types import AnyArray

EXAMPLES = """
\b
Examples:
  surelearn watch surelearn-audit/certificate.json monday.csv       labels in the target's column; predictions by the model
  surelearn watch surelearn-audit/certificate.json joined.csv --prediction prediction --plot evidence.png
  tail -f labeled.csv | surelearn watch surelearn-audit/certificate.json -          row by row; ends at an alarm
  surelearn watch surelearn-audit/certificate.json unlabeled.csv    no labels: compares inputs and scores only

\b
Exit codes:
  0  no alarm and no drift found
  2  bad input; nothing is recorded
  3  alarm: live rows contradict a certified claim, which is named; it stays
  4  drift: inputs, scores (SL501, SL502) or class frequencies (SL503) differ from the certify rows; no claim is contradicted
"""
ALARM, DRIFT = 3, 4
SAVE_EVERY = 1000  # rows of standard input
ENDS = ("low", "high")  # columns of intervals, as `surelearn predict` writes them


@click.command("watch", epilog=EXAMPLES)
@click.argument("certificate", type=click.Path(path_type=Path))
@click.argument("source", metavar="FILE")
@click.option("--state", type=click.Path(dir_okay=False, path_type=Path),
              help="Where the evidence is kept from run to run (default: beside the certificate).")  # fmt: skip
@click.option(
    "--claim",
    help=(
        "Watch this only: risk, sensitivity, specificity, precision, … (default: every certified"
        " claim)."
    ),
)
@click.option(
    "--delta",
    type=float,
    help="Probability of ever raising a false alarm, beyond the certificate's (default: 0.05).",
)
@click.option(
    "--target", metavar="COLUMN", help="Column of the true labels (default: the audit's target)."
)
@click.option(
    "--prediction",
    metavar="COLUMN",
    help="Column of predictions (default: “prediction”, else the model predicts).",
)
@click.option(
    "--group",
    metavar="COLUMN",
    help="Column that says which rows belong together (default: the audit's).",
)
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    help="The model's folder (default: beside the certificate).",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the evidence over time (.png, .svg, .pdf).",
)
def command(certificate: Path, source: str, plot: Path | None, **given: Any) -> None:
    """Test whether live rows contradict a CERTIFICATE, file by file or row by row ("-": standard
    input).

    FILE holds a random sample of what the model is used on, with true labels. Every certified claim
    that labeled rows can contradict is watched; delta is divided among them. However often this is
    run, an unchanged model raises an alarm with probability at most delta plus the certificate's
    own. A risk that grew but is still within the certified bound cannot be seen. Inputs, scores and
    class frequencies are compared with the certify rows.
    """
    sys.exit(_watch(certificate, source, plot, **given))


def _watch(
    path: Path,
    source: str,
    plot: Path | None,
    *,
    state: Path | None,
    claim: str | None,
    delta: float | None,
    **given: Any,
) -> int:
    from surelearn import files
    from surelearn.monitoring import Looks
    from surelearn.monitoring.losses import SETS

    path = path / "certificate.json" if path.is_dir() else path
    state = path.with_name(f"{path.stem}.watch.json") if state is None else state
    for file in (path, state, *([] if source == "-" else [Path(source)])):
        files.check_regular(file)
    read = _read_certificate(path)
    kind = LiveAnswers if "answers" in read.facts.options else _Live
    with closing(kind(path, read, source, **given)) as live:
        if not live.labelled and (live.counter is None or not live.complete):
            raise ValueError(
                f"{live.source} has no column {live.target!r} of labels, and no model lies beside"
                f" {live.path} to compare inputs: pass --target COLUMN or --model FOLDER"
            )
        with files.locked(state):
            looks = Looks.load(_looks_path(state), live.certificate)
            if isinstance(live, _Live) and not live.labelled:
                live.columns()
                return _drift_only(live, looks, state)
            watch = _begin(live, state, claim, delta)
            ctrl_c.under_way = True
            _take(watch, live, state)
            found = _look(live, looks, state)
    if live.note:
        say(str(live.note))
    if watch.quantity is not None and claim is None:
        say(
            f"{state} was begun to watch {watch.quantity} only: another --state watches every"
            " certified claim"
        )
    for line in str(watch).splitlines():
        say(line)
    if not live.complete and any(each.claim.family == "slice" for each in watch.watched):
        say(
            "claims about slices got no evidence: that takes the model and every column that it"
            " reads"
        )
    if not live.with_sets and any(each.claim.quantity in SETS for each in watch.watched):
        say(
            "claims about prediction sets got no evidence: that takes the model and every column that it"
            " reads, or a column 'set' as surelearn predict writes it; of answers the columns of their"
            " probabilities or score"
        )
    if (shift := watch.label_shift) is not None:
        say(f"{shift.text} ({shift.code})")
    for line in found:
        say(line)
    if plot is not None:
        watch.plot(plot)
        say(f"evidence  {plot}")
    return ALARM if watch.alarm else DRIFT if found or shift is not None else 0


def _begin(live: _Live | LiveAnswers, state: Path, claim: str | None, delta: float | None) -> Watch:
    """The watch that the state holds, or a new one."""
    from surelearn.monitoring import Watch

    if not state.exists():
        return Watch(live.certificate, claim, 0.05 if delta is None else delta)
    watch = Watch.load(state, live.certificate)
    if delta is not None and delta != watch.delta:
        raise ValueError(
            f"{state} was begun with --delta {watch.delta:g}: it cannot change; name another"
            " --state"
        )
    if claim is not None and claim != watch.quantity:
        watches = watch.quantity or "every certified claim"
        raise ValueError(f"{state} watches {watches}: name another --state to watch {claim} only")
    return watch


def _look(live: _Live | LiveAnswers, looks: Looks, state: Path) -> list[str]:
    """Compare inputs and scores with the certify rows, where that can be done, and record the
    look; what was found.
    """
    if live.counter is None or not live.complete:
        return []
    before = len(looks.seen)
    findings = looks.look(live.counter)
    if len(looks.seen) > before:
        looks.save(_looks_path(state), live.certificate)
    lines = [
        f"{finding.text} ({finding.code})" for finding in findings if finding.severity != "info"
    ]
    return [*lines, str(looks)] if lines else []


def _looks_path(state: Path) -> Path:
    """Where looks at drift are counted: beside the state."""
    return state.with_name(f"{state.name.removesuffix('.json').removesuffix('.watch')}.drift.json")


def _drift_only(live: _Live, looks: Looks, state: Path) -> int:
    """Compare unlabeled rows."""
    say(
        f"no column {shorten(live.target)!r} of labels, so the certificate is not tested; inputs"
        " and scores were compared"
    )
    found = _look(live, looks, state)
    if found:
        lines = found
    elif few := [finding.text for finding in live.counter.findings() if finding.severity == "info"]:
        lines = few
    else:
        none = (
            f"{live.rows:,} rows: no difference from the certify rows was found, which proves"
            " nothing about errors"
        )
        lines = [none, str(looks)]
    for line in lines:
        say(line)
    return DRIFT if found else 0


def _read_certificate(path: Path) -> Any:
    from surelearn.certificate import Certificate

    try:
        certificate = Certificate.from_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise ValueError(
            f"{path} cannot be read: name a certificate.json, or the folder of an audit"
        ) from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not (found := certificate.verify()):
        raise ValueError(f"{path}: {found.differences[0]}")
    return certificate


def _take(watch: Watch, live: _Live | LiveAnswers, state: Path) -> None:
    """Feed the file, or standard input row by row until it ends or the alarm is raised; keep the
    evidence.

    Of a stream with a bad row the rows up to the last that were saved, a thousand at a time, stay
    taken in.
    """
    if live.source != "-" or live.at_once:
        hashes, truths, predictions, groups, rows, told = live.columns()
        if isinstance(live, _Live) and live.known_as is not None and not watch.knows(hashes):
            hashes = live.known_as  # the same rows without what predict put behind them
        live.note = watch.feed(
            hashes, truths, predictions, groups, name=live.source, X=rows, **told
        )
        watch.save(state)
        return
    if live.group is not None:
        raise ValueError("rows from standard input cannot be gathered into groups: pass files")
    saved = 0
    try:
        for count, (truth, predicted, rows, told) in enumerate(live.one_by_one(), start=1):
            watch.update(truth, predicted, X=rows, **told)
            if watch.alarm:
                break
            if count % SAVE_EVERY == 0:
                watch.save(state)
                saved = count
    except ValueError as error:
        kept = f"; the {saved:,} rows before were taken in, feed what follows them" if saved else ""
        raise ValueError(f"{error}{kept}") from None
    except BaseException:  # rows that were taken in have been seen, whatever ends the stream
        watch.save(state)
        raise
    watch.save(state)


@dataclass
class _Live:
    """Live rows: where truth, prediction and group are, and the model that predicts where
    nothing else does.
    """

    path: Path
    certificate: Any
    source: str
    target: str | None = None
    prediction: str | None = None
    group: str | None = None
    model: Path | None = None
    note: Any = ""
    rows: int = 0
    predictor: Any = field(init=False, default=None)
    known_as: Any = field(init=False, default=None)  # hashes without the columns that predict adds
    at_once = False  # whether standard input is read to its end first

    def __post_init__(self) -> None:
        from surelearn.data.stream import open_stream
        from surelearn.persistence import MANIFEST, find_model, read_model
        from surelearn.prediction import Predictor

        options = self.certificate.facts.options
        self.target = self.target or options.get("target")
        if self.target is None:
            raise ValueError(
                f"{self.path} does not say which column is predicted: pass --target COLUMN"
            )
        self.group = self.group or options.get("group")
        folder = find_model(self.path.parent) if self.model is None else find_model(self.model)
        if self.model is not None or (folder / MANIFEST).is_file():
            saved = read_model(folder)
            if saved.certificate is None or saved.certificate.hash != self.certificate.hash:
                raise ValueError(f"{folder} is not the model of {self.path}")
            self.predictor = Predictor(saved) if saved.schema is not None else None
        self.counter = self._counter()
        self._lines: Iterator[list[str]] = iter(())
        if self.source == "-":
            self._lines = _lines_of_standard_input()
            names = tuple(name.strip() for name in next(self._lines, []))
            if len(set(names)) < len(names):
                raise ValueError(
                    "standard input has two columns of the same name: its first line must name each"
                    " once"
                )
            self.stream: Any = None
        else:
            schema = None if self.predictor is None else self.predictor.schema
            shape = (
                {} if schema is None else {"header": schema.header, "names_for": schema.names_for}
            )
            self.stream = open_stream(self.source, **shape)
            names = self.stream.columns
        try:
            self._check(names)
        except ValueError:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        if self.stream is not None:
            self.stream.close()

    def _check(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.labelled = self.target in names
        given = self.prediction is not None
        if given and self.prediction not in names:
            raise ValueError(f"{self.source} has no column {self.prediction!r} of predictions")
        if not given and "prediction" in names:
            self.prediction = "prediction"
        if self.labelled and self.prediction is None and self.predictor is None:
            said = "pass --prediction COLUMN or --model FOLDER"
            raise ValueError(
                f"{self.source} has no column 'prediction', and no model lies beside {self.path}:"
                f" {said}"
            )
        if self.labelled and self.group is not None and self.group not in names:
            said = "the certificate is about groups; pass --group COLUMN"
            raise ValueError(f"{self.source} has no column {self.group!r}: {said}")
        if not self.labelled and self.source == "-":
            raise ValueError(
                f"standard input has no column {self.target!r} of labels: pass --target COLUMN"
            )
        features = (
            []
            if self.predictor is None
            else [feature.name for feature in self.predictor.schema.features]
        )
        self.complete = self.predictor is not None and all(name in names for name in features)
        if (
            self.predictor is not None
            and not self.complete
            and (self.prediction is None or not self.labelled)
        ):
            self.predictor.schema.check(self.source, names)

    def _counter(self) -> Any:
        from surelearn.monitoring import Reference

        if self.predictor is None or self.predictor.saved.reference is None:
            return None
        return Reference.from_dict(self.predictor.saved.reference).counter()

    @property
    def kind(self) -> str:
        """How labels are written."""
        if self.predictor is not None:
            return self.predictor.schema.labels
        options = self.certificate.facts.options
        if options["task"] == "regression":
            return "number"
        first = next(iter(options["classes"]), "")
        return (
            "truth" if isinstance(first, bool) else "whole" if isinstance(first, int) else "words"
        )

    def columns(self) -> tuple[Any, ...]:
        """Hashes, truths, predictions, groups and the slices' columns of the file's rows;
        inputs are counted on the way.
        """
        import numpy as np
        import pandas as pd

        from surelearn.data import hash_rows
        from surelearn.prediction import without_added

        hashes, truths, predictions, groups, sliced, told = [], [], [], [], [], []
        own = list(self.names)
        if self.complete and self.labelled:  # else too little is left to know rows by
            positive = self.certificate.facts.options.get("positive")
            own = without_added(own, self.predictor.schema.names, positive)
        shorter = []
        with self.stream:
            for table in self.stream.tables:
                self.rows += table.num_rows
                truth, predicted, group, rows, beside = self._read(table, self.stream)
                frame = table.to_pandas()
                hashes.append(hash_rows(frame))
                if len(own) < len(self.names):
                    shorter.append(hash_rows(frame[own]))
                truths.append(truth)
                predictions.append(predicted)
                groups.append(group)
                sliced.append(rows)
                told.append(beside)
        if not self.labelled:
            return ()
        made = [np.concatenate(parts) for parts in (hashes, truths, predictions)]
        self.known_as = np.concatenate(shorter) if shorter else None
        self._check_labels(made[1])
        rows = pd.concat(sliced, ignore_index=True) if self.sliced_by and self.complete else None
        return (*made, None if self.group is None else np.concatenate(groups), rows, _joined(told))

    def _check_labels(self, truths: AnyArray) -> None:
        """Refuse a file whose labels are all unknown: they are written in another way, which is
        no error of the model.
        """
        classes = set(self.certificate.facts.options["classes"])
        found = [label for label in dict.fromkeys(truths.tolist()) if label is not None]
        if classes and found and not classes & set(found):
            known = ", ".join(repr(label) for label in sorted(classes, key=str)[:5])
            said = f"no label is one the model knows; {found[0]!r:.60} is not {known:.80}"
            raise ValueError(f"{self.source}, column {self.target!r}: {said}")

    @property
    def sliced_by(self) -> list[str]:
        """The columns that the certificate's slices are made of."""
        return [cut["column"] for cut in self.certificate.facts.options.get("slices", ())]

    def _told(self, table: pa.Table, features: Any, decimal: str) -> dict[str, Any]:
        """What `Watch.update` is told of a piece's prediction sets or intervals: those of the model, or in
        columns as `predict` writes them.
        """
        from surelearn.data.schema import read_labels
        from surelearn.lacking import Lacking
        from surelearn.prediction import intervals

        sets = self.certificate.sets
        if self.with_sets and self.complete:
            return {"sets": sets.members(self.predictor.saved.model, features)}
        if self.with_sets:
            words = table.column("set").cast("string").to_pylist()
            return {"sets": sets.read(words, f"{self.source}, column 'set'")}
        if not self.banded:
            return {}
        if self.complete:
            ends = intervals(self.predictor.saved.model, features, self.certificate)
            return {} if isinstance(ends, Lacking) else {"intervals": ends}
        if not {"low", "high"} <= set(self.names):
            return {}
        ends = (read_labels(table.column(name), "number", decimal=decimal) for name in ENDS)
        return {"intervals": tuple(ends)}

    @property
    def with_sets(self) -> bool:
        """Whether rows come with prediction sets: of the model, or in a column as `predict` writes it."""
        sets = self.certificate.sets
        return sets is not None and (self.complete or "set" in self.names)

    @property
    def banded(self) -> bool:
        """Whether intervals have a width of each row's own."""
        return bool(self.certificate.facts.options.get("banded"))

    def _read(self, table: pa.Table, stream: Stream | None) -> tuple[Any, Any, Any, Any, Any]:
        from surelearn.data.schema import read_labels
        from surelearn.subject import scores_of

        decimal = stream.decimal if stream is not None else "."
        scores: Any = {}
        rows: Any = None
        features: Any = None
        if self.complete:
            rows = self.predictor.schema.conform(
                table, self.source, self.predictor.notes, decimal=decimal
            )
            scores = scores_of(self.predictor.saved.model, rows)
            if self.counter is not None:
                self.counter.add(rows, scores)
            features, rows = rows, rows[self.sliced_by]
        predicted = scores.get("prediction")
        if self.prediction is not None:
            predicted = read_labels(table.column(self.prediction), self.kind, decimal=decimal)
        if not self.labelled:
            return None, predicted, None, rows, {}
        truth = read_labels(table.column(self.target), self.kind, decimal=decimal)
        group = None if self.group is None else read_labels(table.column(self.group), "words")
        return truth, predicted, group, rows, self._told(table, features, decimal)

    def one_by_one(self) -> Iterator[tuple[Any, Any, Any, Any]]:
        """Truth, prediction, the slices' columns and the prediction set or interval of each row of
        standard input.
        """
        import pyarrow as pa

        for number, row in enumerate(self._lines, start=2):
            if not "".join(row).strip():
                continue
            if len(row) != len(self.names):
                raise ValueError(
                    f"standard input, row {number} has {len(row)} values where the first has"
                    f" {len(self.names)}"
                )
            self.rows += 1
            table = pa.table(
                {
                    name: pa.array([value], pa.large_string())
                    for name, value in zip(self.names, row, strict=True)
                }
            )
            truth, predicted, _, rows, told = self._read(table, None)
            yield truth, predicted, rows, told


def _joined(told: list[dict[str, Any]]) -> dict[str, Any]:
    """What was told of the pieces, as one; nothing where it was not told of each."""
    import numpy as np

    first = told[0] if told and all(told) else {}
    if "sets" in first:
        return {"sets": np.concatenate([each["sets"] for each in told])}
    if "intervals" in first:
        ends = zip(*(each["intervals"] for each in told), strict=True)
        return {"intervals": tuple(np.concatenate(part) for part in ends)}
    return {}


def _lines_of_standard_input() -> Iterator[list[str]]:
    """Rows of CSV as they come; one that cannot be read is refused with its number."""
    rows = csv.reader(sys.stdin)
    for number in itertools.count(1):
        try:
            row = next(rows, None)
        except csv.Error as error:
            what = str(error)
            if "field larger" in what:
                what = f"a value has more than {csv.field_size_limit():,} characters"
            said = (
                f"standard input, row {number} cannot be read: {what}; check its quotes and"
                " delimiters"
            )
            raise ValueError(said) from None
        except UnicodeDecodeError:
            raise ValueError(
                f"standard input, row {number} is not text in UTF-8: pipe a CSV table"
            ) from None
        if row is None:
            return
        if any("\0" in value for value in row):
            raise ValueError(
                f"standard input, row {number} has NUL bytes: it is not a text table, pipe a CSV"
                " table"
            )
        yield row
