"""From a file of answers and what its columns are to independent units: labels, answers, grades, and
what is known of the rows besides.

Whatever is missing counts against the answers: no answer is a wrong one, a grade that is not there
is the worst. Rows without a label are left out and counted, but for weighted draws, where a row that
was drawn and not labeled counts as wrong.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from surelearn.auditing.answers.roles import Roles
from surelearn.auditing.answers.shares import with_shares
from surelearn.auditing.independence import labels_missing
from surelearn.auditing.single_rows import FEWEST
from surelearn.claim import Finding
from surelearn.data import DataError, hash_contents
from surelearn.data.columns import Values, describe, infer_task, is_whole, listed, shown
from surelearn.data.formats import Raw, load
from surelearn.data.frames import Source
from surelearn.data.table import find_column
from surelearn.fingerprint import fingerprint_rows
from surelearn.measurement import MOST_VALUES, FurtherRate, Happened
from surelearn.monitoring import Reference, drift
from surelearn.monitoring.reference import FEWEST_ROWS, KINDS
from surelearn.plain import printable
from surelearn.selection.ledger import Known
from surelearn.selection.sketch import Smallest, sketch
from surelearn.slicing import Cuts, cut, cut_at
from surelearn.subject import Task
from surelearn.subject.recorded import (
    RecordedAnswers,
    RecordedIntervals,
    RecordedProbabilities,
    RecordedScores,
    content_of,
)
from surelearn.types import AnyArray, Array, Bools

NO_ANSWER, NO_LABEL, NO_MAJORITY = "(no answer)", "(no label)", "(no majority)"
PASSED = {"true", "1", "yes", "y", "pass", "passed", "ok", "success", "correct"}
FAILED = {"false", "0", "no", "n", "fail", "failed", "error", "failure", "incorrect", "wrong"}
Kind: TypeAlias = Task | Literal["losses"]
FEW_NUMBERS = 20  # values of a column of whole numbers that are taken for categories
LONGEST_NAME = 40


@dataclass(frozen=True, kw_only=True, eq=False)
class Units:
    """Independent units with their answers.

    Attributes
    ----------
    name, path : of the file
    target : the column of the truth, or of what is graded
    X : the columns that the recorded model, a rival and slices read
    y : labels, numbers, or grades
    model, rival : the answers; those compared with
    grades, baseline_grades : of a task "losses": higher is better
    called, bounds : what a grade is, and its stated range
    groups, weights : one per row, or None
    drawn : whether the weights are those of rows that were drawn from a file
    unlabeled_compared : whether rows without a label were compared with the others
    classes, unseen : the labels that the truth has; other words among the answers, and rows without
        a label
    probable : whether a score is a probability
    beside : the columns that do not come from the model
    known : how ledgers know these rows
    """

    name: str
    path: Path | None
    target: str
    task: Kind
    X: pd.DataFrame
    y: Any
    model: RecordedAnswers
    rival: RecordedAnswers | None = None
    grades: Any = None
    baseline_grades: Any = None
    called: str = ""
    bounds: tuple[float, float] | None = None
    groups: Any = None
    weights: Any = None
    drawn: bool = False
    unlabeled_compared: bool = False
    classes: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    probable: bool = True
    slices: Cuts | None = None
    further: tuple[Happened, ...] = ()
    findings: tuple[Finding, ...] = ()
    beside: pd.DataFrame = field(default_factory=pd.DataFrame)
    known: Known = field(default_factory=Known)

    @property
    def truth(self) -> Any:
        """What answers are compared with; None of units that were judged."""
        return None if self.task == "losses" else self.y

    @property
    def columns(self) -> dict[str, Any]:
        """What `certify` and `Certificate.verify` are given beside the model and its rows."""
        given = {
            "groups": self.groups,
            "slices": self.slices,
            "weights": self.weights,
            "further": self.further,
        }
        if self.task == "losses":
            return {**given, "losses": self.grades, "baseline_losses": self.baseline_grades}
        return {**given, "baseline": self.rival}


def read_units(
    source: Source | None,
    roles: Roles,
    positive: object = None,
    labels: Sequence[str] | None = None,
    *,
    walked: bool = False,
    live: bool = False,
) -> Units:
    """Read a file, or a frame, of answers.

    Parameters
    ----------
    source : as `surelearn.data.read_table` reads it
    roles : what its columns are
    positive : the class that matters, whose score it is where there is one
    labels : those that the truth can have, where they are known; by default those of the file
    live : whether they are live answers, of which any may be missing or all be wrong
    walked : whether the threshold of scores is chosen later, so that none need be stated

    Raises
    ------
    DataError
        one sentence that says what is wrong with the file and what to do

    Examples
    --------
    >>> frame = pd.DataFrame({"label": ["cat", "dog", "cat"], "said": ["cat", None, "dog"]})
    >>> units = read_units(frame, Roles(truth="label", answer="said"))
    >>> units.model.predict(units.X).tolist(), units.findings[0].code
    (['cat', '(no answer)', 'dog'], 'SL120')
    """
    if source is None:
        raise DataError("name the file of answers: there is no built-in one.")
    raw = load(source, header=roles.header)
    return units_of(raw, roles, positive, labels, walked=walked, live=live)


def units_of(
    raw: Raw,
    roles: Roles,
    positive: object = None,
    labels: Sequence[str] | None = None,
    *,
    walked: bool = False,
    live: bool = False,
) -> Units:
    """As `read_units`, of a table that was read."""
    if roles.probability is not None:
        raw, roles, labels = with_shares(raw, roles, positive, labels, live=live)
    labels = labels or roles.labels or None
    reader = _Reader(raw, _named(raw, roles), labels, walked=walked, live=live)
    kind = reader.roles.kind
    if kind in ("answers", "scores"):
        units = reader.of_truth(None if positive is None else str(positive))
    else:
        units = reader.of_grades()
    return replace(units, findings=(*raw.findings, *units.findings))


def _named(raw: Raw, roles: Roles) -> Roles:
    """The roles with names of columns where their positions were given."""
    names = list(raw.frame.columns)

    def find(option: str, wanted: str) -> str:
        return find_column(raw.name, names, wanted, option=f"--{option}")

    single = ("score", "passed", "grade", "winner", "against", "group", "weight", "low", "high")
    found: dict[str, Any] = {
        name: find(name, value) for name in single if (value := getattr(roles, name)) is not None
    }
    for name in ("truth", "answer", "drop", "probabilities"):
        found[name] = tuple(find(name, wanted) for wanted in getattr(roles, name))
    main = [
        *found["truth"],
        *found["answer"],
        *found["probabilities"],
        *(v for n, v in found.items() if n in single),
    ]
    twice = [name for name, count in Counter(main).items() if count > 1]
    if twice:
        raise DataError(f"column {shown(twice[0])} is named twice: it can only be one thing.")
    if taken := [name for name in found["drop"] if name in main]:
        raise DataError(f"column {shown(taken[0])} is needed: do not leave it out with --drop.")
    return replace(roles, **found)


class _Reader:
    """One table, and what its columns are."""

    def __init__(
        self,
        raw: Raw,
        roles: Roles,
        labels: Sequence[str] | None = None,
        *,
        walked: bool = False,
        live: bool = False,
    ) -> None:
        self.raw, self.roles, self.frame, self.labels = raw, roles, raw.frame, labels
        self.walked, self.live = walked, live
        self.findings: list[Finding] = []
        self.compared = False

    # ── answers and scores beside what is right ──────────────────────────────────────────────────

    def of_truth(self, positive: str | None) -> Units:
        roles = self.roles
        truths = [self.frame[name].to_numpy() for name in roles.truth]
        labeled = ~np.all([pd.isna(values) for values in truths], axis=0)
        if not labeled.any():
            raise DataError(
                f"{self.raw.name}, column {shown(roles.truth[0])} has no values: name another with"
                " --truth."
            )
        self._keep_labeled(labeled)
        if roles.separator is not None:
            return self._of_sets(roles.separator)
        truths = [self.frame[name].to_numpy() for name in roles.truth]
        if self._task(truths, positive) == "regression":
            return self._of_numbers(truths[0])
        return self._of_labels(
            [_words(self.raw.name, n, v) for n, v in zip(roles.truth, truths, strict=True)],
            positive,
        )

    def _keep_labeled(self, labeled: Bools) -> None:
        """Leave out rows without a label; of weighted draws they count as wrong."""
        lost = int((~labeled).sum())
        if not lost:
            return
        if self.roles.coin:
            text = f"{lost:,} of {labeled.size:,} rows were not labeled, by their coins: they have weight 0."
        elif self.roles.weight is not None:
            text = f"{lost:,} of {labeled.size:,} rows that were drawn have no label: each counts as wrong."
        else:
            text = f"{lost:,} of {labeled.size:,} rows have no label (empty, NA, None, …) and were left out."
            self._compare_unlabeled(labeled)
            self.frame = self.frame.loc[labeled].reset_index(drop=True)
        self._notice("SL110", text, rows=lost)

    def _compare_unlabeled(self, labeled: Bools) -> None:
        """SL119 where rows without a label are others; of groups and live answers it is not asked."""
        if self.roles.group is not None or self.live:
            return
        found = compare_unlabeled(self.frame, self.roles, labeled)
        self.compared = found is not None
        self.findings += found or ()

    def _notice(self, code: str, text: str, **numbers: Any) -> None:
        self.findings.append(Finding(code=code, text=text, severity="notice", numbers=numbers))

    def _task(self, truths: Sequence[Values], positive: str | None) -> str:
        roles = self.roles
        if roles.task is not None:
            return roles.task
        if roles.score or positive is not None or len(truths) > 1 or len(roles.answer) > 1:
            return "classification"
        known = truths[0][~pd.isna(truths[0])]
        return infer_task(known)

    def _of_numbers(self, truth: Values) -> Units:
        """Forecasts beside what came."""
        roles = self.roles
        if len(roles.truth) > 1 or len(roles.answer) != 1:
            raise DataError("numbers take one --truth and one --answer column.")
        others = [name for name in (roles.against, roles.low, roles.high) if name is not None]
        columns = [*roles.truth, *roles.answer, *others]
        for name in columns:
            values = self.frame[name].to_numpy()
            if values.dtype.kind not in "iufb":
                raise DataError(
                    f"{self.raw.name}, column {shown(name)} holds words: forecasts are numbers; say"
                    " --task classification for labels."
                )
            if bad := int((~np.isfinite(values.astype(float))).sum()):
                raise DataError(
                    f"{self.raw.name}, column {shown(name)} lacks {bad:,} of {len(values):,} numbers:"
                    " give a number in every row, since a forecast that is missing has no error."
                )
        X = self.frame[columns[1:]].astype(float)
        y = truth.astype(float)
        model, further = self._forecasts(X, y)
        rival = None
        if roles.against:
            rival = RecordedAnswers(roles.against, None, content_of(X[roles.against]))
        return replace(self._made("regression", X, y, model, rival), further=further)

    def _forecasts(self, X: pd.DataFrame, y: Array) -> tuple[RecordedAnswers, tuple[Happened, ...]]:
        """The forecasts and, where they have intervals, how often these miss."""
        name, low, high = self.roles.answer[0], self.roles.low, self.roles.high
        if low is None or high is None:
            return RecordedAnswers(name, None, content_of(X[name])), ()
        if crossed := int((X[low] > X[high]).sum()):
            raise DataError(
                f"{self.raw.name}: column {shown(low)} is above column {shown(high)} in {crossed:,} of"
                f" {len(X):,} rows: name the lower ends with --low, the upper ones with --high."
            )
        words = f"truth outside {_short(low)} to {_short(high)}"
        missed = np.asarray((y < X[low]) | (y > X[high]), dtype=bool)
        model = RecordedIntervals(name, content_of(X[name], X[low], X[high]), low, high)
        return model, (Happened(FurtherRate("interval_misses", words), missed),)

    def _of_labels(self, truths: list[AnyArray], positive: str | None) -> Units:
        """Labels beside answers, of one rater or several."""
        roles = self.roles
        y = truths[0] if len(truths) == 1 else majority(truths)
        missing = np.array([value is None for value in y])
        y = np.where(missing, NO_LABEL, y).astype(object)
        labels = sorted(
            {label for rater in truths for label in rater.tolist() if label is not None}
        )
        rest = f"not {positive}"
        said = {name: self._said(name) for name in roles.answer}
        if roles.against:  # what is missing there must not speak for ours
            said[roles.against] = self._said(roles.against, instead=y)
        if self.labels is None:
            self._check_labels(said, labels, positive)
        score = None if roles.score is None else self._scores(roles.score)
        others = [label for label in labels if label != positive]
        several = len(labels) > 2 or any(set(v) - {*labels, NO_ANSWER} for v in said.values())
        if score is not None and (several if self.labels is None else rest in self.labels):
            merge = {
                label: rest
                for label in [*others, *(w for v in said.values() for w in v)]
                if label not in (positive, NO_ANSWER)
            }
            y, truths = _renamed(y, merge), [_renamed(rater, merge) for rater in truths]
            said = {name: _renamed(values, merge) for name, values in said.items()}
            labels = sorted({rest, str(positive)})
        labels = labels if self.labels is None else list(self.labels)
        X = pd.DataFrame(said, index=self.frame.index, dtype=object)
        seen = {word for values in (y, *said.values()) for word in values.tolist()}
        unseen = tuple(sorted(seen - {*labels}))
        answer = roles.answer[0] if roles.answer else None
        probable = True
        if score is not None and roles.score is not None:
            X[roles.score] = score
            probable = bool(score.min() >= 0 and score.max() <= 1)
            model: RecordedAnswers = self._scored(X, tuple(labels), str(positive), probable, answer)
        elif roles.probabilities:
            name, shares = str(answer), list(roles.probabilities)
            X[shares] = self.frame[shares]
            content = content_of(X[name], *(X[share] for share in shares))
            model = RecordedProbabilities(name, tuple(labels), content, roles.probabilities)
        else:
            name = str(answer)
            model = RecordedAnswers(name, tuple(labels), content_of(X[name]))
        rival = None
        if roles.against:
            rival = RecordedAnswers(roles.against, tuple(labels), content_of(X[roles.against]))
        units = self._made("classification", X, y, model, rival)
        further = (*self._of_raters(truths, model.predict(X)), *self._of_guesses(said, y))
        return replace(
            units, classes=tuple(labels), unseen=unseen, probable=probable, further=further
        )

    def _said(self, name: str, instead: AnyArray | None = None) -> AnyArray:
        """Answers as words; a missing one is no label, or what stands ``instead``."""
        found = _words(self.raw.name, name, self.frame[name].to_numpy())
        missing = np.array([value is None for value in found])
        if lost := int(missing.sum()):
            self._no_answer(name, lost, len(found), "wrong" if instead is None else "right")
        return np.where(missing, NO_ANSWER if instead is None else instead, found).astype(object)

    def _no_answer(self, name: str, lost: int, rows: int, how: str = "wrong") -> None:
        self._notice(
            "SL120",
            f"{lost:,} of {rows:,} rows have no answer in column {shown(name)}: each counts as {how}.",
            rows=lost,
            column=name,
        )

    def _check_labels(
        self, said: dict[str, AnyArray], labels: list[str], positive: str | None
    ) -> None:
        """Refuse answers that no label is like, and a class that is none; note those that are
        written otherwise.
        """
        truth = shown(self.roles.truth[0])
        if positive is not None and positive not in labels:
            near = difflib.get_close_matches(positive, labels, n=1, cutoff=0.6)
            hint = (
                f"Did you mean {shown(near[0])}?"
                if near
                else f"Its labels are {listed(labels, 8)}."
            )
            raise DataError(
                f"{self.raw.name}, column {truth} has no label {shown(positive)} (--positive). {hint}"
            )
        if len(labels) < 2:
            raise DataError(
                f"{self.raw.name}, column {truth} has only one label, {shown(labels[0])}: there is"
                " nothing to get wrong."
            )
        if len(labels) > FEW_NUMBERS and 2 * len(labels) > len(self.frame):
            raise DataError(
                f"{self.raw.name}, column {truth} has {len(labels):,} labels in {len(self.frame):,}"
                " rows: too many; say --task regression for numbers, or --pass or --grade for"
                " answers that were judged."
            )
        by_case = {label.strip().casefold(): label for label in reversed(labels)}
        for name, values in said.items():
            counts = Counter(values.tolist())
            if not counts.keys() & {*labels}:
                first = next(iter(counts))
                raise DataError(
                    f"{self.raw.name}: no answer in column {shown(name)} is a label of column"
                    f" {truth}: {shown(first)} is answered, {listed(labels, 4)} are labels. Write"
                    " both alike."
                )
            for word, count in counts.items():
                meant = by_case.get(word.strip().casefold())
                if word not in labels and meant is not None:
                    self._notice(
                        "SL121",
                        f"{shown(word)} is answered in {count:,} rows of column {shown(name)} and is"
                        f" no label, {shown(meant)} is: they count as different words.",
                        rows=count,
                        column=name,
                    )

    def _scores(self, name: str) -> Array:
        values = self.frame[name].to_numpy()
        if values.dtype.kind not in "iufb":
            raise DataError(
                f"{self.raw.name}, column {shown(name)} holds words: a score is a number."
            )
        score = values.astype(float)
        if bad := int((~np.isfinite(score)).sum()):
            infinite = int(np.isinf(score).sum())
            how = (
                "lacks"
                if not infinite
                else "is infinite in"
                if infinite == bad
                else "lacks, or is infinite in,"
            )
            raise DataError(
                f"{self.raw.name}, column {shown(name)} {how} {bad:,} of {score.size:,} scores: give"
                " a number in every row."
            )
        return score

    def _scored(
        self,
        X: pd.DataFrame,
        labels: tuple[str, ...],
        positive: str,
        probable: bool,
        answer: str | None,
    ) -> RecordedScores:
        """The score with its threshold."""
        name, threshold = str(self.roles.score), self.roles.threshold
        if threshold is None and not probable and answer is None and not self.walked:
            raise DataError(
                f"{self.raw.name}, column {shown(name)} holds numbers outside 0 to 1: state"
                f" --threshold, from which {shown(positive)} is answered."
            )
        columns = [X[name], *([X[answer]] if answer else [])]
        return RecordedScores(
            name,
            labels,
            content_of(*columns),
            positive=positive,
            threshold=0.5 if threshold is None else float(threshold),
            probable=probable,
            answer=answer,
        )

    def _of_raters(self, truths: list[AnyArray], answers: AnyArray) -> list[Happened]:
        """Errors against each rater, and how often raters agree."""
        if len(truths) < 2:
            return []
        there = np.array([[value is not None for value in rater] for rater in truths])  # (k, n)
        found = [
            Happened(
                FurtherRate("rater_error", f"errors against {_short(name)}"),
                np.asarray(answers != rater),
                mask,
            )
            for name, rater, mask in zip(self.roles.truth, truths, there, strict=True)
        ]
        several = there.sum(axis=0) > 1
        same = np.array(
            [len({v for v in row if v is not None}) == 1 for row in zip(*truths, strict=True)]
        )
        agree = FurtherRate("rater_agreement", "raters agree, where several labeled", "interval")
        return [*found, Happened(agree, same & several, several)]

    def _of_guesses(self, said: dict[str, AnyArray], y: AnyArray) -> list[Happened]:
        """Of several guesses: how often none of the first k is right."""
        guesses = [said[name] for name in self.roles.answer]
        wrong = np.ones(len(y), dtype=bool)
        found = []
        for k, guess in enumerate(guesses, start=1):
            wrong = wrong & np.asarray(guess != y)
            if k > 1:
                what = FurtherRate("top_k_error", f"none of the first {k} answers right")
                found.append(Happened(what, wrong))
        return found

    # ── sets of labels ───────────────────────────────────────────────────────────────────────────

    def _of_sets(self, separator: str) -> Units:
        """Several labels a row: whether the whole set is right, and each label by itself."""
        truth, answer = (
            _words(self.raw.name, n, self.frame[n].to_numpy())
            for n in (self.roles.truth[0], self.roles.answer[0])
        )
        sets = [
            [_labels_in(cell, separator) for cell in column.tolist()] for column in (truth, answer)
        ]
        labels = sorted({label for one in sets[0] for label in one})
        if len(labels) > MOST_VALUES:
            raise DataError(
                f"{self.raw.name}, column {shown(self.roles.truth[0])} has {len(labels):,} labels"
                f" between {separator!r}: more than {MOST_VALUES}; is the separator right?"
            )
        unlabeled = np.array([cell is None for cell in truth.tolist()])  # of draws alone
        silent = np.array([cell is None for cell in answer.tolist()])
        if lost := int(silent.sum()):
            self._no_answer(self.roles.answer[0], lost, len(answer))
        same = np.array([one == other for one, other in zip(*sets, strict=True)])
        right = same & ~silent & ~unlabeled
        further = []
        for label in labels:
            differ = np.array([(label in t) != (label in a) for t, a in zip(*sets, strict=True)])
            what = FurtherRate("label_error", f"{_short(label)} wrongly given or left out")
            further.append(Happened(what, differ | unlabeled))
        X = pd.DataFrame({self.roles.answer[0]: answer}, index=self.frame.index, dtype=object)
        X[self.roles.answer[0]] = X[self.roles.answer[0]].where(X[self.roles.answer[0]].notna(), "")
        model = RecordedAnswers(self.roles.answer[0], None, content_of(X[self.roles.answer[0]]))
        baseline = None
        if self.roles.against:
            other = _words(
                self.raw.name, self.roles.against, self.frame[self.roles.against].to_numpy()
            )
            # what is missing there must not speak for ours
            baseline = np.array(
                [
                    a is None or t == _labels_in(a, separator)
                    for t, a in zip(sets[0], other.tolist(), strict=True)
                ]
            )
            baseline = baseline & ~unlabeled | np.array([a is None for a in other.tolist()])
        units = self._made("losses", X, right, model, None)
        return replace(
            units,
            grades=right,
            baseline_grades=baseline,
            called="exact match rate",
            bounds=(0.0, 1.0),
            further=tuple(further),
        )

    # ── units that were judged ───────────────────────────────────────────────────────────────────

    def of_grades(self) -> Units:
        """Passes, grades, or duels."""
        roles = self.roles
        name = str(roles.passed or roles.grade or roles.winner)
        called, bounds = "pass rate", (0.0, 1.0)
        if roles.grade is not None:
            called, bounds = _short(roles.grade), self._range()
        elif roles.winner is not None:
            called = "win rate"
        grades = self._graded(name, bounds)
        other = None
        if roles.against is not None:  # what is missing there must not speak for ours
            other = self._graded(roles.against, bounds, missing_as=bounds[1])
        X = pd.DataFrame({name: grades.astype(float)}, index=self.frame.index)
        model = RecordedAnswers(name, None, content_of(X[name]))
        units = self._made("losses", X, grades, model, None)
        return replace(units, grades=grades, baseline_grades=other, called=called, bounds=bounds)

    def _range(self) -> tuple[float, float]:
        low, high = map(float, self.roles.loss_range or (0.0, 1.0))
        if not (np.isfinite(high - low) and low < high):
            raise DataError(
                f"--loss-range {low:g} {high:g} must be two finite numbers, the lower one first."
            )
        return low, high

    def _graded(
        self, name: str, bounds: tuple[float, float], missing_as: float | None = None
    ) -> AnyArray:
        """One grade per row, higher is better; what is missing is the worst, if not said
        otherwise.
        """
        values = self.frame[name].to_numpy()
        missing = pd.isna(values)
        if missing.all() and not self.live:
            raise DataError(f"{self.raw.name}, column {shown(name)} has no values: name another.")
        lost = int(missing.sum())
        if lost and self.roles.coin:
            self._keep_labeled(~missing)
        elif lost:
            filled = bounds[0] if missing_as is None else missing_as
            words = {"passes": ("as failed", "as passed"), "duels": ("as lost", "")}
            ranked = words.get(self.roles.kind, (f"as {bounds[0]:g}", f"as {bounds[1]:g}"))
            worst = ranked[filled == bounds[1]]
            self._notice(
                "SL120",
                f"{lost:,} of {len(values):,} rows have nothing in column {shown(name)}: each counts {worst}.",
                rows=lost,
                column=name,
            )
        if self.roles.kind == "passes":
            passed = self._passed(name, values, missing)
            return passed | missing if missing_as else passed
        if self.roles.kind == "duels":
            return self._won(name, values, missing)
        if values.dtype.kind not in "iufb":
            raise DataError(
                f"{self.raw.name}, column {shown(name)} holds words: a grade is a number."
            )
        return np.where(
            missing, bounds[0] if missing_as is None else missing_as, values.astype(float)
        )

    def _passed(self, name: str, values: Values, missing: Bools) -> AnyArray:
        words = _words(self.raw.name, name, values)
        for word in words[~missing].tolist():
            if word.strip().casefold() not in PASSED | FAILED:
                raise DataError(
                    f"{self.raw.name}, column {shown(name)} holds {shown(word)}: say pass or fail, true"
                    " or false, 1 or 0 (or certify a --grade)."
                )
        return np.array([w is not None and w.strip().casefold() in PASSED for w in words.tolist()])

    def _won(self, name: str, values: Values, missing: Bools) -> AnyArray:
        """1 where ours won, 1/2 for a tie, 0 otherwise."""
        words, ours = _words(self.raw.name, name, values), str(self.roles.ours)
        found = Counter(words[~missing].tolist())
        if ours not in found and not self.live:
            near = difflib.get_close_matches(ours, list(found), n=1, cutoff=0.6)
            hint = (
                f"Did you mean {shown(near[0])}?" if near else f"It has {listed(list(found), 6)}."
            )
            raise DataError(
                f"{self.raw.name}, column {shown(name)} never names {shown(ours)} (--ours). {hint}"
            )
        self.findings += spelled_otherwise(found, ours, name)
        ties = {word.casefold() for word in self.roles.ties}
        tied = np.array(
            [w is not None and w.casefold() in ties and w != ours for w in words.tolist()]
        )
        if count := int(tied.sum()):
            self._notice(
                "SL122",
                f"{count:,} of {len(words):,} duels are ties: each counts one half.",
                rows=count,
            )
        return np.where(words == ours, 1.0, np.where(tied, 0.5, 0.0))

    # ── what all have ────────────────────────────────────────────────────────────────────────────

    def _made(
        self,
        task: Kind,
        X: pd.DataFrame,
        y: AnyArray,
        model: RecordedAnswers,
        rival: RecordedAnswers | None,
    ) -> Units:
        """The units with groups, slices, weights and what ledgers know."""
        roles = self.roles
        named = roles_of_truth(roles)[0]
        X, slices = self._slices(X)
        taken: set[str | None] = {*roles.truth, *roles.answer, *roles.drop, *roles.probabilities}
        taken |= {roles.score, roles.passed, roles.grade, roles.winner, roles.against, roles.weight}
        taken |= {roles.low, roles.high}
        names = [name for name in self.frame.columns if name not in taken]
        beside = self.frame[names]
        contents = [beside[name].to_numpy() for name in names] or [np.asarray(y)]
        hashes = {
            n: hashlib.sha256(n.encode(errors="surrogatepass")).hexdigest()[:12]
            for n in (named, *names)
        }
        told = np.asarray(y) if roles.truth else np.zeros(len(y), dtype=int)
        known = Known(
            sketch(hash_contents(contents), told),
            parts=parts_of(beside),
            targets=fingerprint_rows(np.sort(told.astype(str)), told[:0]) if roles.truth else "",
            target=hashes[named],
            columns=tuple(hashes[name] for name in names),
        )
        return Units(
            name=self.raw.name,
            path=self.raw.path,
            target=named,
            task=task,
            X=X,
            y=y,
            model=model,
            rival=rival,
            groups=self._groups(),
            weights=self._weights(),
            drawn=roles.weight is not None and not roles.coin,
            unlabeled_compared=self.compared,
            slices=slices,
            findings=tuple(self.findings),
            beside=beside,
            known=known,
        )

    def _groups(self) -> Any:
        name = self.roles.group
        if name is None:
            return None
        groups = self.frame[name].to_numpy()
        if lost := int(pd.isna(groups).sum()):
            raise DataError(
                f"{self.raw.name}, --group column {shown(name)} has {lost:,} missing values: fill them"
                " or remove the rows."
            )
        if len(pd.unique(groups)) < 2 and not self.live:
            raise DataError(
                f"{self.raw.name}, --group column {shown(name)} has one value: choose another."
            )
        return groups

    def _weights(self) -> Any:
        name = self.roles.weight
        if name is None:
            return None
        values = self.frame[name].to_numpy()
        if values.dtype.kind not in "iufb" or not np.isfinite(values.astype(float)).all():
            raise DataError(
                f"{self.raw.name}, --weight column {shown(name)} must hold a number in every row."
            )
        weights = values.astype(float)
        if not self.roles.coin:
            return weights
        if (least := float(weights.min())) < 1:
            raise DataError(
                f"{self.raw.name}, --weight column {shown(name)} holds {least:g}: with --coin a"
                " weight is 1 over the probability of a label, so at least 1."
            )
        judged = roles_of_truth(self.roles)
        return np.where(self.frame[judged].notna().any(axis=1), weights, 0.0)

    def _slices(self, X: pd.DataFrame) -> tuple[pd.DataFrame, Cuts | None]:
        """The columns whose values are subpopulations, beside those that the answers are in."""
        cuts: list[Any] = []
        for wanted in self.roles.slices:
            name, edges = self._slice(wanted)
            values = self.frame[name].to_numpy()
            if edges:
                if values.dtype.kind not in "iufb":
                    raise DataError(
                        f"{self.raw.name}, --slice column {shown(name)} holds words: it cannot be cut at"
                        f" {edges[0]:g}."
                    )
                X = X.assign(**{name: values.astype(float)})
                cuts += cut_at(X, name, edges).cuts
                continue
            distinct = pd.unique(values[~pd.isna(values)])
            if (
                values.dtype.kind in "f"
                and not (is_whole(distinct) and len(distinct) <= FEW_NUMBERS)
            ) or (values.dtype.kind in "iu" and len(distinct) > FEW_NUMBERS):
                raise DataError(
                    f"{self.raw.name}, --slice column {shown(name)} holds numbers: say where to cut it,"
                    f" as in --slice {shown(name + ':30,60')}; cut points that these rows choose would"
                    " void the guarantee."
                )
            if len(distinct) > MOST_VALUES:
                raise DataError(
                    f"{self.raw.name}, --slice column {shown(name)} has {len(distinct):,} values, more"
                    f" than {MOST_VALUES}: choose a coarser one."
                )
            X = X.assign(**{name: _words(self.raw.name, name, values)})
            cuts += cut(X, name, fewest=FEWEST).cuts
        return X, Cuts(tuple(cuts)) if cuts else None

    def _slice(self, wanted: str) -> tuple[str, list[float]]:
        """A column, and where it is cut: "age:30,60"."""
        names = list(self.frame.columns)
        column, colon, at = wanted.rpartition(":")
        if wanted in names or not colon:
            return find_column(self.raw.name, names, wanted, option="--slice"), []
        try:
            edges = sorted({float(edge) for edge in at.split(",")})
        except ValueError:
            edges = []
        if not edges or not np.isfinite(edges).all():
            raise DataError(
                f"--slice {shown(wanted)}: after the colon come numbers, as in age:30,60."
            )
        return find_column(self.raw.name, names, column, option="--slice"), edges


def spelled_otherwise(winners: Mapping[str, int], ours: str, column: str) -> list[Finding]:
    """SL121 of winners that are ours but for their spelling: they count as the other."""
    return [
        Finding(
            code="SL121",
            text=f"{shown(word)} won {count:,} duels of column {shown(column)}, and ours is {shown(ours)}:"
            " they count as different words, so these are lost.",
            severity="notice",
            numbers={"rows": count, "column": column},
        )
        for word, count in winners.items()
        if word != ours and word.strip().casefold() == ours.strip().casefold()
    ]


def compare_unlabeled(
    frame: pd.DataFrame, roles: Roles, labeled: Bools
) -> tuple[Finding, ...] | None:
    """SL119 where rows without a label are others, by what is beside the truth; None where there are
    too few to compare.

    Numbers are cut at deciles of all rows together, which treat both kinds alike.
    """
    if min(int(labeled.sum()), int((~labeled).sum())) < FEWEST_ROWS:
        return None
    columns = frame.drop(columns=list(roles.truth))
    typed = {str(name): describe(str(name), columns[name].to_numpy()) for name in columns}
    kinds = {n: c.kind for n, (c, _) in typed.items() if c.used and c.kind in KINDS}
    told = pd.DataFrame({name: typed[name][1] for name in kinds})
    reference = Reference.from_rows(told, told.loc[labeled], kinds)
    return labels_missing(drift(reference, told.loc[~labeled]), int((~labeled).sum()))


def spelled(table: str, name: str, labels: Sequence[Any] | AnyArray) -> list[str]:
    """Labels as the file of answers spells them."""
    return [str(word) for word in _words(table, name, np.asarray(labels)).tolist()]


def labels_in(raw: Raw, columns: Sequence[str]) -> list[str]:
    """The labels in columns of truth: numbers by their size, words by their letters."""
    found: dict[str, Any] = {}
    for name in columns:
        values = raw.frame[name].dropna().unique()
        found |= dict(zip(spelled(raw.name, name, values), values.tolist(), strict=True))
    numbers = all(isinstance(value, int | float) for value in found.values())
    return sorted(
        found, key=(lambda word: (found[word], "")) if numbers else (lambda word: (0, word))
    )


def roles_of_truth(roles: Roles) -> list[str]:
    """The columns that say what is right, or how a unit was judged."""
    return [name for name in (*roles.truth, roles.passed, roles.grade, roles.winner) if name]


def majority(truths: Sequence[AnyArray]) -> AnyArray:
    """(n,) the label that most raters gave each row; "(no majority)" for a tie, which no answer
    equals; None where nobody gave one.

    Examples
    --------
    >>> raters = [np.array(list("aab"), object), np.array(list("aba"), object), np.array(["b", None, "c"], object)]
    >>> majority(raters).tolist()
    ['a', '(no majority)', '(no majority)']
    """
    found: list[Any] = []
    for row in zip(*truths, strict=True):
        most = Counter(label for label in row if label is not None).most_common(2)
        tied = len(most) == 2 and most[0][1] == most[1][1]
        found.append(None if not most else NO_MAJORITY if tied else most[0][0])
    return np.array(found, dtype=object)


def _words(table: str, name: str, values: Values) -> AnyArray:
    """Labels as words, as the file says them; None where there is none."""
    if values.dtype.kind == "M":
        raise DataError(
            f"{table}, column {shown(name)} holds dates: a label or a number is needed."
        )
    missing = pd.isna(values)
    if values.dtype.kind == "f" and is_whole(values[~missing]):
        words = [
            None if lost else str(int(v)) for v, lost in zip(values.tolist(), missing, strict=True)
        ]
    else:
        words = [None if lost else str(v) for v, lost in zip(values.tolist(), missing, strict=True)]
    if taken := sorted({NO_ANSWER, NO_LABEL, NO_MAJORITY} & {*words}, key=str):
        raise DataError(
            f"{table}, column {shown(name)} holds {shown(taken[0])}, which here means what is missing:"
            " write it otherwise."
        )
    made = np.empty(len(words), dtype=object)
    made[:] = words
    return made


def _renamed(words: AnyArray, names: dict[str, str]) -> AnyArray:
    made = np.empty(len(words), dtype=object)
    made[:] = [names.get(word, word) for word in words.tolist()]
    return made


def _labels_in(cell: str | None, separator: str) -> frozenset[str]:
    return frozenset(word.strip() for word in (cell or "").split(separator) if word.strip())


def parts_of(beside: pd.DataFrame) -> tuple[Smallest, ...]:
    """Sketches of the columns that tell by themselves which rows these are, such as prompts and
    identifiers: mostly distinct words or whole numbers, but no enumeration, which any file may have.

    One for each, since a file of another system has other columns beside them.
    """
    found = []
    for name in beside.columns:
        values = beside[name].to_numpy()
        if values.dtype.kind not in "Oiu" or 2 * len(pd.unique(values)) <= len(values):
            continue
        words = [" ".join(str(v).split()).casefold() for v in values.tolist() if v is not None]
        if 2 * len(set(words)) > len(values) and not _enumerates(set(words)):
            found.append(Smallest.of(hash_contents([np.array(words, dtype=object)])))
    return tuple(found)


def _enumerates(words: set[str]) -> bool:
    """Whether distinct words differ by a number only, and the numbers leave few gaps."""
    if len({re.sub(r"\d+", "#", word) for word in words}) > 1:
        return False
    numbers = [int(found[-1]) for word in words if (found := re.findall(r"\d{1,18}", word))]
    return bool(numbers) and max(numbers) - min(numbers) < 2 * len(words)


def _short(name: str) -> str:
    """A name as part of a label."""
    plain = printable(name)
    return plain if len(plain) <= LONGEST_NAME else f"{plain[: LONGEST_NAME - 1]}…"
