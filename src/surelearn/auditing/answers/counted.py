"""What follows from answers that were counted in one pass: the facts of their certificate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from surelearn.auditing.answers.scored_once import CountedScores
from surelearn.auditing.answers.units import Kind, Units
from surelearn.claim import Finding
from surelearn.data.block_sums import STEPS, Blocks, Sums, moments, total
from surelearn.measurement import LossBoundError, Measurement
from surelearn.selection.ledger import Known
from surelearn.subject.recorded import RecordedAnswers


class CountedRow(NamedTuple):
    """What counted rows have in common: what is right (or the grade), what was answered, and what
    the other answered (or the other's grade, or the position of a slice's value).
    """

    truth: Any
    answer: Any
    other: Any = ""


Test = Callable[[CountedRow], bool]


@dataclass(frozen=True)
class Slice:
    """One subpopulation: a column and its values, as positions among those that were counted."""

    column: str
    name: str
    codes: frozenset[int]


@dataclass(frozen=True, kw_only=True, eq=False)
class CountedAnswers:
    """What one pass over a file of answers found.

    Attributes
    ----------
    name, path, target, task : as in `Units`
    rows : how many have a label, or were judged
    hash : of the file
    model, rival : the answers, and those compared with; they hold no rows
    classes, unseen : the labels of the truth; other words among the answers
    cells : how many rows are alike
    sums : of grades, in blocks of rows, or of groups, drawn by their positions in the file
    scores : of a class, where scores and no answers were counted
    groups : how many groups the rows are of, where grades are means over groups
    slices : the subpopulations
    sliced : for each sliced column how many rows are alike, or the sums of grades by the value's
        position
    called, bounds : what a grade is, and its stated range
    outside : how many grades lie outside of it, and the first one
    findings, beside, known : as in `Units`; of the file's first rows
    columns : how many columns the file has
    unlabeled_compared : whether all rows without a label were compared with the others
    """

    name: str
    path: Path
    target: str
    task: Kind
    rows: int
    hash: str
    model: RecordedAnswers
    rival: RecordedAnswers | None = None
    classes: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    cells: Mapping[CountedRow, int] = field(default_factory=dict)
    sums: Blocks | None = None
    scores: CountedScores | None = None
    groups: int | None = None
    slices: tuple[Slice, ...] = ()
    sliced: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict)
    called: str = ""
    bounds: tuple[float, float] = (0.0, 1.0)
    outside: tuple[int, float] = (0, 0.0)
    binary: bool = False
    against: bool = False
    unlabeled_compared: bool = False
    findings: tuple[Finding, ...] = ()
    beside: pd.DataFrame = field(default_factory=pd.DataFrame)
    known: Known = field(default_factory=Known)

    @property
    def labels(self) -> dict[str, int]:
        """How often each label of the truth occurs, in their order."""
        counts = dict.fromkeys(self.classes, 0)
        for row, n in self.cells.items():
            counts[row.truth] += n
        return counts

    @property
    def compared(self) -> tuple[str, ...]:
        """Columns with at least two slices."""
        counts = Counter(one.column for one in self.slices)
        return tuple(column for column, number in counts.items() if number > 1)

    @property
    def means(self) -> tuple[float, float | None]:
        """The mean grade, and the other's."""
        facts = self.facts(Measurement(task="losses", binary=self.binary))
        counts = "loss.count" in facts
        mean = facts["loss.count"] / facts["loss.n"] if counts else facts["loss.mean"]
        if not self.against:
            return mean, None
        if self.sums is not None:
            low, span = self.bounds[0], self.bounds[1] - self.bounds[0]
            whole = total(self.sums.values())
            return mean, low + span * whole.other / whole.n / STEPS
        other = sum(n * Fraction(row.other) for row, n in self.cells.items())
        return mean, float(other / self.rows)

    def answering(self, threshold: float) -> CountedAnswers:
        """The answers from a threshold of the scores on."""
        scores = self.scores
        if scores is None:
            return self
        found, alarms = scores.at_least(threshold)
        whole = Counter[bool]()
        for (positive, _), n in scores.counts.items():
            whole[positive] += n
        yes, no = scores.positive, scores.other
        cells = {
            CountedRow(yes, yes): found,
            CountedRow(yes, no): whole[True] - found,
            CountedRow(no, yes): alarms,
            CountedRow(no, no): whole[False] - alarms,
        }
        cells = {row: n for row, n in cells.items() if n}
        return replace(
            self, cells=cells, model=scores.model(self.classes, self.hash, threshold), slices=()
        )

    def as_units(self) -> Units:
        """What the page asks of units, without their rows: means stand for grades."""
        own, other = self.means if self.task == "losses" else (0.0, None)
        return Units(
            name=self.name,
            path=self.path,
            target=self.target,
            task=self.task,
            X=pd.DataFrame(),
            y=np.broadcast_to(np.int8(0), self.rows),
            model=self.model,
            rival=self.rival,
            grades=np.array([own]),
            baseline_grades=None if other is None else np.array([other]),
            groups=None if self.groups is None else np.broadcast_to(np.int8(0), self.rows),
            called=self.called,
            bounds=self.bounds if self.task == "losses" else None,
            classes=self.classes,
            unseen=self.unseen,
            findings=self.findings,
            beside=self.beside,
            known=self.known,
        )

    # ── facts ────────────────────────────────────────────────────────────────────────────────────

    def facts(self, what: Measurement) -> dict[str, Any]:
        """The facts of a certificate, under the names that `surelearn.measurement.measure` gives
        them.

        Raises
        ------
        LossBoundError
            where a grade lies outside of its stated range
        """
        if self.outside[0]:
            low, high = self.bounds
            raise LossBoundError(
                f"loss_range=({low:g}, {high:g}) is not the range of losses: {self.outside[0]:,} of"
                f" {self.rows:,} lie outside, such as {self.outside[1]:g}"
            )
        values: dict[str, Any] = {"rows": self.rows}
        if self.groups is not None:
            values["groups"] = self.groups
        if what.thresholds and self.scores is not None:
            return values | self.scores.walked(what)
        if self.task == "classification":
            return values | self._of_labels(what)
        return values | (self._of_sums() if self.sums is not None else self._of_grades())

    def _of_labels(self, what: Measurement) -> dict[str, Any]:
        """Errors, and all that follows from truth and answer."""
        values: dict[str, Any] = self._rate("risk", _wrong)
        values["risk.rate"] = values["risk.count"] / self.rows
        for label in (*what.classes, *what.unseen):
            values |= self._rate(f"class[{label}]", _wrong, lambda row, c=label: row.truth == c)
        if (positive := what.positive) is not None:

            def is_positive(row: CountedRow) -> bool:
                return row.truth == positive

            def called(row: CountedRow) -> bool:
                return row.answer == positive

            values |= self._rate("sensitivity", called, is_positive)
            values |= self._rate(
                "specificity", lambda row: not called(row), lambda row: not is_positive(row)
            )
            values |= self._rate("precision", is_positive, called)
            if "f1" in what.metrics:
                either: Test = lambda row: is_positive(row) or called(row)  # noqa: E731
                values |= self._rate("f1", lambda row: is_positive(row) and called(row), either)
        if what.cost is not None:
            values |= self._mean("cost", lambda row: _cost(what, row.truth, row.answer))
        others: dict[str, Callable[[CountedRow], str]] = {
            f"constant[{label}]": lambda row, c=label: c  # noqa: ARG005
            for label in what.constants
        }
        if self.against:
            others["baseline"] = lambda row: row.other
        for name, said in others.items():
            values |= self._compared(name, said, what)
        if "balanced_accuracy" in what.metrics:
            for fact, of in (("counts", "count"), ("sizes", "n")):
                values[f"classes.{fact}"] = [values[f"class[{c}].{of}"] for c in what.classes]
        return values | self._of_label_slices(what)

    def _rate(self, name: str, happened: Test, within: Test = lambda row: True) -> dict[str, Any]:  # noqa: ARG005
        """How often something happened within some rows."""
        return _counted(name, self.cells.items(), happened, within)

    def _compared(
        self, name: str, said: Callable[[CountedRow], str], what: Measurement
    ) -> dict[str, Any]:
        """How another answer to the same rows does, and which rows only one of both has right."""
        if what.by_cost and what.cost is not None:

            def theirs(row: CountedRow) -> float:
                return _cost(what, row.truth, said(row))

            def gain(row: CountedRow) -> float:
                return theirs(row) - _cost(what, row.truth, row.answer)

            paired = self._mean(f"{name}.cost.gain", gain)
            del paired[f"{name}.cost.gain.n"]
            return self._mean(f"{name}.cost", theirs) | paired
        found = self._rate(name, lambda row: row.truth != said(row))
        ours = [
            (row.answer == row.truth, said(row) == row.truth, n) for row, n in self.cells.items()
        ]
        better = sum(n for right, other, n in ours if right and not other)
        worse = sum(n for right, other, n in ours if other and not right)
        found |= {f"{name}.better": better, f"{name}.worse": worse}
        return found | {f"{name}.equal": self.rows - better - worse}

    def _mean(self, name: str, value: Callable[[CountedRow], float]) -> dict[str, Any]:
        """Mean and variance of a number that truth and answers give."""
        return _moments_of(name, ((Fraction(value(row)), n) for row, n in self.cells.items()))

    def _of_label_slices(self, what: Measurement) -> dict[str, Any]:
        """Errors in slices, and the rates that differ between those of one column."""
        values: dict[str, Any] = {}

        def called(row: CountedRow) -> bool:
            return row.answer == what.positive

        rates: dict[str, tuple[Test, Test]] = {"error": (_wrong, lambda row: True)}  # noqa: ARG005
        if what.positive is not None:
            rates["selection"] = (called, lambda row: True)  # noqa: ARG005
            rates["sensitivity"] = (called, lambda row: row.truth == what.positive)
        for one in self.slices:
            cells = [(r, n) for r, n in self.sliced[one.column].items() if r.other in one.codes]
            values |= _counted(f"slice[{one.name}]", cells, _wrong)
            if "differences" not in what.metrics or one.column not in self.compared:
                continue
            for rate, (happened, within) in rates.items():
                key, found = f"between[{one.column}].{rate}", _counted("", cells, happened, within)
                values.setdefault(f"{key}.counts", []).append(found[".count"])
                values.setdefault(f"{key}.sizes", []).append(found[".n"])
        return values

    def _of_grades(self) -> dict[str, Any]:
        """Passes, or duels, of which there are few values."""
        own = [(Fraction(row.truth), n) for row, n in self.cells.items()]
        values = self._rate_or_mean("loss", own)
        for one in self.slices:
            held = self.sliced[one.column].items()
            inside = [(Fraction(row.truth), n) for row, n in held if row.other in one.codes]
            values |= self._rate_or_mean(f"slice[{one.name}]", inside)
        if self.against:  # passes: duels are against the other by themselves
            better = sum(n for row, n in self.cells.items() if row.truth > row.other)
            worse = sum(n for row, n in self.cells.items() if row.truth < row.other)
            values |= {"baseline.better": better, "baseline.worse": worse}
            values["baseline.equal"] = self.rows - better - worse
        return values

    def _rate_or_mean(self, name: str, cells: list[tuple[Fraction, int]]) -> dict[str, Any]:
        if not self.binary:
            return _moments_of(name, cells)
        return {
            f"{name}.count": sum(n for grade, n in cells if grade),
            f"{name}.n": sum(n for _, n in cells),
        }

    def _of_sums(self) -> dict[str, Any]:
        """Grades, of which sums are known."""
        low, high = map(Fraction, self.bounds)
        held = self.sums or {}
        values = _of_steps("loss", held, low, high - low)
        for one in self.slices:
            parts = [s for code, s in self.sliced[one.column].items() if code in one.codes]
            at = sorted({block for part in parts for block in part})
            joined = {block: total(part[block] for part in parts if block in part) for block in at}
            values |= _of_steps(f"slice[{one.name}]", joined, low, high - low)
        if self.against:
            gain = _of_steps("baseline.gain", held, Fraction(0), high - low, of_gain=True)
            values |= {key: value for key, value in gain.items() if key != "baseline.gain.n"}
        return values


def _wrong(row: CountedRow) -> bool:
    return row.truth != row.answer


def _counted(
    name: str,
    cells: Iterable[tuple[CountedRow, int]],
    happened: Test,
    within: Test = lambda row: True,  # noqa: ARG005
) -> dict[str, Any]:
    """A rate as a count of a number of rows."""
    inside = [(row, n) for row, n in cells if within(row)]
    return {
        f"{name}.count": sum(n for row, n in inside if happened(row)),
        f"{name}.n": sum(n for _, n in inside),
    }


def _cost(what: Measurement, truth: str, answer: str) -> float:
    """What an answer costs: `surelearn.measurement.costs_of` of one row."""
    if truth == what.positive:
        return 0.0 if answer == what.positive else float(what.cost or 0.0)
    return 1.0 if answer == what.positive else 0.0


def _moments_of(name: str, cells: Iterable[tuple[Fraction, int]]) -> dict[str, Any]:
    held = list(cells)
    n = sum(count for _, count in held)
    if not n:
        return {f"{name}.n": 0, f"{name}.mean": 0.0, f"{name}.variance": 0.0}
    total = sum((value * count for value, count in held), Fraction(0))
    squares = sum((value * value * count for value, count in held), Fraction(0))
    mean, variance = moments(n, total, squares)
    return {f"{name}.n": n, f"{name}.mean": mean, f"{name}.variance": variance}


def _of_steps(
    name: str, blocks: Blocks, low: Fraction, span: Fraction, *, of_gain: bool = False
) -> dict[str, Any]:
    """Number, mean and variance of numbers low + span · steps / `STEPS`, and those of each block."""
    step = span / STEPS

    def sums(block: Sums) -> tuple[int, Fraction, Fraction]:
        plain, squares = (
            (block.gain, block.gain_squares) if of_gain else (block.ours, block.squares)
        )
        squared = block.n * low * low + 2 * low * step * plain + step * step * squares
        return block.n, block.n * low + step * plain, squared

    whole = sums(total(blocks.values()))
    mean, variance = moments(*whole) if whole[0] else (0.0, 0.0)
    found = [sums(blocks[at]) for at in sorted(blocks)]
    each = [moments(*block) for block in found]
    return {
        f"{name}.n": whole[0],
        f"{name}.mean": mean,
        f"{name}.variance": variance,
        f"{name}.block_sizes": [n for n, _, _ in found],
        f"{name}.block_means": [m for m, _ in each],
        # with the number of rows as divisor
        f"{name}.block_variances": [
            v * (n - 1) / n for (n, _, _), (_, v) in zip(found, each, strict=True)
        ],
    }
