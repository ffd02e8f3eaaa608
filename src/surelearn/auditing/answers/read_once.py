"""From a file of any length and what its columns are to counted answers, in one pass.

What is missing counts against the answers, as where a file is read whole: no answer is a wrong one,
a grade that is not there is the worst, and rows without a label are left out and counted.
"""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from surelearn.auditing.answers.counted import CountedAnswers, CountedRow, Slice
from surelearn.auditing.answers.roles import Roles
from surelearn.auditing.answers.scored_once import ABOVE_ONE, CountedScores, cuts_with
from surelearn.auditing.answers.units import (
    FAILED,
    FEW_NUMBERS,
    NO_ANSWER,
    PASSED,
    _named,
    _words,
    compare_unlabeled,
    parts_of,
    spelled_otherwise,
)
from surelearn.auditing.independence import not_compared
from surelearn.auditing.single_rows import FEWEST
from surelearn.claim import Finding
from surelearn.data import DataError, hash_contents
from surelearn.data.block_sums import Graded, total
from surelearn.data.columns import NotCountableError, Values, infer_task, is_whole, listed, shown
from surelearn.data.counting import (
    HEAD_ROWS,
    Cell,
    OnePass,
    Opened,
    count,
    look,
)
from surelearn.data.table import find_column
from surelearn.measurement import MOST_VALUES
from surelearn.monitoring.reference import FEWEST_ROWS
from surelearn.selection.ledger import Known
from surelearn.selection.sketch import sketch
from surelearn.slicing import cut_at
from surelearn.subject.recorded import RecordedAnswers

WIDEST = 1e150  # a range of grades whose squares are added up
TILED = 1_000  # rows that values are repeated to before they are taken for labels or numbers
Progress = Callable[[int, int | None], None]


def cannot(roles: Roles) -> str:
    """Why answers of this kind are not counted in one pass; "" where they are."""
    needs = {
        "scores beside answers need every row's score": bool(roles.score and roles.answer),
        "scores compared with other answers need every row's score": bool(
            roles.score and roles.against
        ),
        "probabilities are read of every row": roles.probability is not None,
        "of several raters every row's majority is needed": len(roles.truth) > 1,
        "of several guesses every row's first right one is needed": len(roles.answer) > 1,
        "sets of labels are compared row by row": roles.separator is not None,
        "of labels in groups every group's rates of each class are needed": bool(
            roles.truth and roles.group
        ),
        "of groups with slices every group's rows in each slice are needed": bool(
            roles.group and roles.slices
        ),
        "weighted rows are bet on one by one": roles.weight is not None,
        "the interval of forecasts needs every row's error": roles.task == "regression",
    }
    return next((why for why, asked in needs.items() if asked), "")


def read_counted(
    source: object,
    roles: Roles,
    positive: object = None,
    progress: Progress = lambda done, total: None,  # noqa: ARG005
) -> CountedAnswers:
    """Read a file of answers in one pass.

    Parameters
    ----------
    source : a file, or a folder of Parquet files
    roles : what its columns are
    positive : the class that matters
    progress : is told how many rows were read, and of how many where that is known

    Raises
    ------
    NotCountableError
        in one sentence, where one pass cannot answer what is asked
    DataError
        in one sentence, where something is wrong with the file

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "answers.csv"
    >>> pd.DataFrame({"label": list("ab") * 50, "said": list("aaab") * 25}).to_csv(file, index=False)
    >>> counted = read_counted(file, Roles(truth="label", answer="said"))
    >>> counted.rows, counted.cells[("b", "a", "")]
    (100, 25)
    """
    if why := cannot(roles):
        raise NotCountableError(f"--one-pass keeps counts and sums only, and {why}: leave it out.")
    if not isinstance(source, (str, Path)):
        raise NotCountableError("--one-pass reads a file: a data frame is in memory anyway.")
    opened = look(source, roles.header)
    roles = _named(opened.head, roles)
    reader = _Counter(opened, roles, None if positive is None else str(positive))
    names, graded = reader.asked()
    found = count(
        source, names, graded,
        header=roles.header, opened=opened, cuts=reader.cuts(), progress=progress,
    )  # fmt: skip
    return reader.read(found)


class _Counter:
    """What is counted of which columns, and what the counts are."""

    def __init__(self, opened: Opened, roles: Roles, positive: str | None) -> None:
        self.roles, self.positive, self._opened = roles, positive, opened
        self.findings: list[Finding] = []
        self.compared = False

    def asked(self) -> tuple[list[tuple[str, ...]], Graded | None]:
        """The columns that are counted together, and grades."""
        roles = self.roles
        against = () if roles.against is None else (roles.against,)
        if roles.grade is not None:
            low, high = map(float, roles.loss_range or (0.0, 1.0))
            if not (np.isfinite(high - low) and low < high):
                raise DataError(
                    f"--loss-range {low:g} {high:g} must be two finite numbers, the lower one first."
                )
            if not (1 / WIDEST < high - low < WIDEST and max(-low, high) < WIDEST):
                raise NotCountableError(
                    f"--loss-range {low:g} {high:g} has a length whose square is no number, and one"
                    " pass adds squares up: leave out --one-pass, or scale the grades."
                )
            graded = Graded(roles.grade, roles.against, low, high, roles.group)
            rows = [] if roles.group else [(), *((column,) for column in self._columns())]
            return rows, graded
        main = self._main()
        if roles.group is not None:
            graded = Graded(main[0], roles.against, 0.0, 1.0, roles.group, self._worth)
            return [(*main, *against)], graded
        return [(*main, *against), *((*main, column) for column in self._columns())], None

    def _worth(self, values: Values) -> npt.NDArray[np.float64]:
        """The grades of passes, or of winners; those that are none are refused later, by name."""
        words = _words(self._opened.name, self._main()[0], values)
        ties = {word.casefold() for word in self.roles.ties}

        def worth(word: str | None) -> float:
            if word is None:
                return np.nan
            if self.roles.passed is not None:
                return float(word.strip().casefold() in PASSED)
            return 1.0 if word == self.roles.ours else 0.5 * (word.casefold() in ties)

        return np.array([worth(word) for word in words])

    def _main(self) -> tuple[str, ...]:
        roles = self.roles
        if roles.truth:
            return roles.truth[0], roles.answer[0] if roles.answer else str(roles.score)
        return (str(roles.passed or roles.winner),)

    @property
    def _threshold(self) -> float:
        """From which score on the class is answered."""
        return 0.5 if self.roles.threshold is None else self.roles.threshold

    def cuts(self) -> dict[str, tuple[float, ...]]:
        """Where scores are cut: at the grid, and just above 1."""
        if self.roles.score is None:
            return {}
        return {self.roles.score: (*cuts_with(self._threshold), ABOVE_ONE)}

    def _columns(self) -> list[str]:
        """The sliced columns; where a number is cut stands after its name."""
        return list(dict.fromkeys(wanted for wanted, _ in self._wanted()))

    def _wanted(self) -> list[tuple[str, list[float]]]:
        """The sliced columns, each with where it is cut."""
        names = list(self._opened.head.frame.columns)
        found: list[tuple[str, list[float]]] = []
        for wanted in self.roles.slices:
            column, colon, at = wanted.rpartition(":")
            edges: list[float] = []
            if wanted in names or not colon:
                column = wanted
            else:
                try:
                    edges = sorted({float(edge) for edge in at.split(",")})
                except ValueError:
                    edges = []
                if not edges or not np.isfinite(edges).all():
                    raise DataError(
                        f"--slice {shown(wanted)}: after the colon come numbers, as in age:30,60."
                    )
            found.append((find_column(self._opened.name, names, column, option="--slice"), edges))
        return found

    def read(self, found: OnePass) -> CountedAnswers:
        """The answers, from what one pass found."""
        self.found = found
        roles = self.roles
        made = self._of_truth() if roles.truth else self._of_judged()
        truth = roles.truth[0] if roles.truth else None
        head = found.head.frame
        if truth is not None:
            head = head.loc[head[truth].notna()].reset_index(drop=True)
        taken = {*roles.truth, *roles.answer, *roles.drop}
        taken |= {roles.passed, roles.grade, roles.winner, roles.against, roles.score}
        beside = head[[name for name in head.columns if name not in taken]]
        return replace(
            made,
            beside=beside,
            known=self._known(beside, head, made),
            unlabeled_compared=self.compared,
            findings=(*found.head.findings, *self.findings),
        )

    def _known(self, beside: pd.DataFrame, head: pd.DataFrame, made: CountedAnswers) -> Known:
        """How ledgers know the file: by its first rows, and by how often each label occurs."""
        truth = self.roles.truth[0] if self.roles.truth else None
        told = np.zeros(len(head), dtype=int)
        if truth is not None:
            told = _words(self.found.name, truth, head[truth].to_numpy())
        contents = [beside[name].to_numpy() for name in beside.columns]
        if not contents:
            contents = [told if truth is not None else head[made.target].to_numpy()]
        names = (made.target, *map(str, beside.columns))
        hashes = [hashlib.sha256(n.encode(errors="surrogatepass")).hexdigest()[:12] for n in names]
        counts = ""
        if truth is not None and made.rows > HEAD_ROWS and len(set(made.labels.values())) > 1:
            counts = hashlib.sha256(repr(made.labels).encode()).hexdigest()
        return Known(
            sketch(hash_contents(contents), told),
            np.empty(0, dtype=np.uint64),
            "",
            hashes[0],
            tuple(hashes[1:]),
            counts,
            parts_of(beside),
        )

    def _notice(self, code: str, text: str, **numbers: Any) -> None:
        self.findings.append(Finding(code=code, text=text, severity="notice", numbers=numbers))

    # ── labels ───────────────────────────────────────────────────────────────────────────────────

    def _of_truth(self) -> CountedAnswers:
        roles, found = self.roles, self.found
        truth, answer = self._main()
        scores = self._counted_scores(found.cells[truth, answer]) if roles.score else None
        main = found.cells[(truth, answer, *([roles.against] if roles.against else []))]
        self._check_labels(truth, main)
        words = {name: self._coded_words(name) for name in (truth, answer, roles.against) if name}
        cells: Counter[CountedRow] = Counter()
        lost = 0
        silent: Counter[str] = Counter()
        for cell, n in main.items():
            label = words[truth][cell[0]]
            if label is None:
                lost += n
                continue
            said = [words[answer][cell[1]]]
            said.append(words[roles.against][cell[2]] if roles.against else "")
            for name, word in zip((answer, roles.against), said, strict=True):
                silent[str(name)] += n * (word is None)
            # the other's missing answer counts as right, so that it does not speak for ours
            ours, other = NO_ANSWER if said[0] is None else said[0], said[1]
            cells[CountedRow(label, ours, label if other is None else other)] += n
        rows = sum(cells.values())
        if not rows:
            raise DataError(
                f"{found.name}, column {shown(truth)} has no values: name another with --truth."
            )
        if lost:
            text = f"{lost:,} of {lost + rows:,} rows have no label and were left out."
            self._notice("SL110", text, rows=lost)
            self._compare_unlabeled(truth, rows, lost)
        for name, n in silent.items():
            if n:
                self._notice(
                    "SL120",
                    f"{n:,} of {rows:,} rows have no answer in column {shown(name)}: each counts as"
                    f" {'wrong' if name == answer else 'right'}.",
                    rows=n,
                    column=name,
                )
        labels = sorted({row.truth for row in cells})
        self._check_words(cells, labels)
        seen = {row.answer for row in cells}
        seen |= {row.other for row in cells} if roles.against else set()
        known = tuple(labels)
        slices, sliced = self._slices(labeled=words[truth])
        by_words: dict[str, Counter[CountedRow]] = {}
        for column, held in sliced.items():
            by_words[column] = Counter()
            for (t, a, code), n in held.items():
                label, word = words[truth][t], words[answer][a]
                if label is not None:
                    by_words[column][
                        CountedRow(label, NO_ANSWER if word is None else word, code)
                    ] += n
        rival = None
        if roles.against:
            rival = RecordedAnswers(roles.against, known, found.hash)
        model = RecordedAnswers(answer, known, found.hash)
        if scores is not None:
            model = scores.model(known, found.hash, self._threshold)
        return CountedAnswers(
            name=found.name,
            path=found.path,
            target=truth,
            task="classification",
            rows=rows,
            hash=found.hash,
            model=model,
            scores=scores,
            rival=rival,
            classes=known,
            unseen=tuple(sorted(seen - {*known})),
            cells=cells,
            slices=slices,
            sliced=by_words,
            against=rival is not None,
        )

    def _compare_unlabeled(self, truth: str, rows: int, lost: int) -> None:
        """SL119 where rows without a label are others, or may be: only the first rows are kept, and
        where these are all, they are compared as where a file is read whole.
        """
        head = self.found.head.frame
        found = compare_unlabeled(head, self.roles, head[truth].notna().to_numpy())
        self.compared = found is not None and len(head) == rows + lost
        if not found and not self.compared and min(rows, lost) >= FEWEST_ROWS:
            found = (not_compared(lost, len(head)),)
        self.findings += found or ()

    def _coded_words(self, name: str) -> list[str | None]:
        """The words of a column's values; of a score those that its threshold answers."""
        if name == self.roles.score:
            called = cuts_with(self._threshold).index(self._threshold) + 1
            rest = self._others()
            return [
                None if reached is None else str(self.positive) if reached >= called else rest
                for reached in self.found.values[name]
            ]
        words = list(_words(self.found.name, name, self.found.values[name]))
        if self.roles.score is None or name != self.roles.truth[0] or self.positive not in words:
            return words
        rest = self._others()
        return [w if w in (None, self.positive) else rest for w in words]

    def _others(self) -> str:
        """What the other rows are called: their label where there is one, all of them together where
        there are several.
        """
        truth = self.roles.truth[0]
        used = {cell[0] for cell in self.found.cells[self._main()]}
        words = _words(self.found.name, truth, self.found.values[truth][sorted(used)])
        others = {word for word in words.tolist() if word is not None} - {self.positive}
        return others.pop() if len(others) == 1 else f"not {self.positive}"

    def _counted_scores(self, main: Mapping[Cell, int]) -> CountedScores | None:
        """How often each label has a score between two cuts; a score that is missing, or no probability,
        is refused.
        """
        name, found = self.roles.score, self.found
        if name is None:
            return None
        truth, reached = self._coded_words(self.roles.truth[0]), found.values[name]
        cuts = cuts_with(self._threshold)
        counts: Counter[tuple[bool, int]] = Counter()
        lost = strange = 0
        for cell, n in main.items():
            if truth[cell[0]] is None:
                continue
            at = reached[cell[1]]
            lost += n * (at is None)
            strange += n * (at is not None and not 0 < at <= len(cuts))
            counts[truth[cell[0]] == self.positive, 0 if at is None else at] += n
        if lost:
            raise DataError(
                f"{found.name}, column {shown(name)} lacks {lost:,} of {sum(counts.values()):,} scores:"
                " give a number in every row."
            )
        if strange:
            raise NotCountableError(
                f"{found.name}, column {shown(name)} holds {strange:,} numbers outside 0 to 1, and one"
                " pass counts probabilities: leave out --one-pass."
            )
        return CountedScores(name, str(self.positive), self._others(), cuts, counts)

    def _check_labels(self, truth: str, main: Mapping[Cell, int]) -> None:
        """Refuse numbers, which are no labels."""
        if self.roles.task is not None or self.positive is not None:
            return
        used = sorted({cell[0] for cell in main})
        values = self.found.values[truth][used]
        values = values[~pd.isna(values)]
        rows = min(sum(main.values()), TILED)
        if values.size and infer_task(np.resize(values, max(values.size, rows))) == "regression":
            raise NotCountableError(
                f"{self.found.name}, column {shown(truth)} holds numbers, and the interval of"
                " forecasts needs every row's error: leave out --one-pass, or say --task"
                " classification if they are labels."
            )

    def _check_words(self, cells: Mapping[CountedRow, int], labels: list[str]) -> None:
        """Refuse answers that no label is like, and a class that is none; note those that are
        written otherwise.
        """
        roles, name = self.roles, self.found.name
        truth, positive = shown(roles.truth[0]), self.positive
        if positive is not None and positive not in labels:
            near = difflib.get_close_matches(positive, labels, n=1, cutoff=0.6)
            hint = (
                f"Did you mean {shown(near[0])}?"
                if near
                else f"Its labels are {listed(labels, 8)}."
            )
            raise DataError(
                f"{name}, column {truth} has no label {shown(positive)} (--positive). {hint}"
            )
        if len(labels) < 2:
            raise DataError(
                f"{name}, column {truth} has only one label, {shown(labels[0])}: there is nothing to"
                " get wrong."
            )
        by_case = {label.strip().casefold(): label for label in reversed(labels)}
        for place, column in ((1, self._main()[1]), (2, roles.against)):
            if column is None:
                continue
            said: Counter[str] = Counter()
            for cell, n in cells.items():
                said[cell[place]] += n
            if not said.keys() & {*labels}:
                raise DataError(
                    f"{name}: no answer in column {shown(column)} is a label of column {truth}:"
                    f" {shown(next(iter(said)))} is answered, {listed(labels, 4)} are labels. Write"
                    " both alike."
                )
            for word, n in said.items():
                meant = by_case.get(word.strip().casefold())
                if word not in labels and meant is not None:
                    self._notice(
                        "SL121",
                        f"{shown(word)} is answered in {n:,} rows of column {shown(column)} and is no"
                        f" label, {shown(meant)} is: they count as different words.",
                        rows=n,
                        column=column,
                    )

    # ── units that were judged ───────────────────────────────────────────────────────────────────

    def _of_judged(self) -> CountedAnswers:
        """Passes, duels, or grades."""
        roles, found = self.roles, self.found
        name = str(roles.passed or roles.grade or roles.winner)
        slices, sliced = self._slices()
        shared: dict[str, Any] = {
            "name": found.name,
            "path": found.path,
            "target": name,
            "task": "losses",
            "rows": found.rows,
            "hash": found.hash,
            "model": RecordedAnswers(name, None, found.hash),
            "slices": slices,
            "against": roles.against is not None,
            "groups": found.groups,
        }
        if not found.rows:
            raise DataError(f"{found.name} is empty: it has no rows.")
        if roles.grade is not None:
            graded_slices = {
                column: {code: one for (code,), one in found.sums[(column,)].items()}
                for column in sliced
            }
            low, high = map(float, roles.loss_range or (0.0, 1.0))
            self._lost(roles.grade, found.missing[0], f"as {low:g}")
            self._lost(roles.against, found.missing[1], f"as {high:g}")
            label = name if len(name) <= 40 else f"{name[:39]}…"
            return CountedAnswers(
                **shared,
                sums=found.sums[()].get((), {}),
                sliced=graded_slices,
                called=label,
                bounds=(low, high),
                outside=found.outside,
            )
        grade = self._graded(name)
        other = None if roles.against is None else self._graded(roles.against, missing_as=1.0)
        cells: Counter[CountedRow] = Counter()
        for cell, n in found.cells[tuple(filter(None, (name, roles.against)))].items():
            cells[CountedRow(grade[cell[0]], "", 0.0 if other is None else other[cell[1]])] += n
        by_grade: dict[str, Counter[CountedRow]] = {}
        for column, held in sliced.items():
            by_grade[column] = Counter()
            for (code, value), n in held.items():
                by_grade[column][CountedRow(grade[code], "", value)] += n
        if found.groups is not None:
            shared["sums"] = found.sums[()].get((), {})
        return CountedAnswers(
            **shared,
            cells=cells,
            sliced=by_grade,
            called="pass rate" if roles.passed else "win rate",
            binary=roles.passed is not None,
        )

    def _lost(self, name: str | None, lost: int, ranked: str) -> None:
        if name is None:
            return
        if lost == self.found.rows:
            raise DataError(f"{self.found.name}, column {shown(name)} has no values: name another.")
        if lost:
            self._notice(
                "SL120",
                f"{lost:,} of {self.found.rows:,} rows have nothing in column {shown(name)}: each"
                f" counts {ranked}.",
                rows=lost,
                column=name,
            )

    def _counts_of(self, name: str) -> Counter[int]:
        """How often each value of a column occurs."""
        names, cells = next((k, v) for k, v in self.found.cells.items() if name in k)
        counts: Counter[int] = Counter()
        for cell, n in cells.items():
            counts[cell[names.index(name)]] += n
        return counts

    def _graded(self, name: str, missing_as: float = 0.0) -> list[float]:
        """The grade of each value of a column of passes, or of winners."""
        counts, words = self._counts_of(name), self._coded_words(name)
        lost = sum(n for code, n in counts.items() if words[code] is None)
        duel = self.roles.winner is not None
        ranked = "as lost" if duel else "as passed" if missing_as else "as failed"
        self._lost(name, lost, ranked)
        if duel:
            return self._won(name, words, counts)
        for code in counts:
            word = words[code]
            if word is not None and word.strip().casefold() not in PASSED | FAILED:
                raise DataError(
                    f"{self.found.name}, column {shown(name)} holds {shown(word)}: say pass or fail,"
                    " true or false, 1 or 0 (or certify a --grade)."
                )
        return [
            missing_as if word is None else float(word.strip().casefold() in PASSED)
            for word in words
        ]

    def _won(self, name: str, words: list[str | None], counts: Counter[int]) -> list[float]:
        ours, ties = str(self.roles.ours), {word.casefold() for word in self.roles.ties}
        met = {words[code] for code in counts} - {None}
        if ours not in met:
            names = [word for word in met if word is not None]
            near = difflib.get_close_matches(ours, names, n=1, cutoff=0.6)
            hint = f"Did you mean {shown(near[0])}?" if near else f"It has {listed(names, 6)}."
            raise DataError(
                f"{self.found.name}, column {shown(name)} never names {shown(ours)} (--ours). {hint}"
            )
        named = {word: n for code, n in counts.items() if (word := words[code]) is not None}
        self.findings += spelled_otherwise(named, ours, name)
        tied = [w is not None and w.casefold() in ties and w != ours for w in words]
        if ties_met := sum(n for code, n in counts.items() if tied[code]):
            self._notice(
                "SL122",
                f"{ties_met:,} of {self.found.rows:,} duels are ties: each counts one half.",
                rows=ties_met,
            )
        return [
            1.0 if word == ours else 0.5 if tie else 0.0
            for word, tie in zip(words, tied, strict=True)
        ]

    # ── slices ───────────────────────────────────────────────────────────────────────────────────

    def _slices(
        self, labeled: list[str | None] | None = None
    ) -> tuple[tuple[Slice, ...], dict[str, Mapping[Any, Any]]]:
        """The subpopulations, and the counts of each sliced column."""
        found, slices = self.found, list[Slice]()
        held: dict[str, Mapping[Any, Any]] = {}
        main = () if self.roles.grade is not None else self._main()
        for column, edges in self._wanted():
            cells: Mapping[Cell, Any] = (found.sums if not main else found.cells)[(*main, column)]
            held[column] = cells
            counts: Counter[int] = Counter()
            for cell, n in cells.items():
                if labeled is None or labeled[cell[0]] is not None:
                    counts[cell[-1]] += n if isinstance(n, int) else total(n.values()).n
            made = self._cut(column, counts, edges) if edges else self._named_by(column, counts)
            slices += [Slice(column, name, codes) for name, codes in made.items()]
        return tuple(slices), held

    def _cut(
        self, column: str, counts: Counter[int], edges: list[float]
    ) -> dict[str, frozenset[int]]:
        """Ranges of a number between stated edges."""
        codes = sorted(counts)
        values = self.found.values[column][codes]
        if values.dtype.kind not in "iufb":
            raise DataError(
                f"{self.found.name}, --slice column {shown(column)} holds words: it cannot be cut at"
                f" {edges[0]:g}."
            )
        frame = pd.DataFrame({column: values.astype(float)})
        masks = cut_at(frame, column, edges)(frame)
        return {
            name: frozenset(code for code, inside in zip(codes, mask, strict=True) if inside)
            for name, mask in masks.items()
        }

    def _named_by(self, column: str, counts: Counter[int]) -> dict[str, frozenset[int]]:
        """One slice for each value, but for rare ones."""
        codes = sorted(counts)
        values: Values = self.found.values[column][codes]
        known = values[~pd.isna(values)]
        if known.dtype.kind in "iuf" and not (is_whole(known) and len(known) <= FEW_NUMBERS):
            raise DataError(
                f"{self.found.name}, --slice column {shown(column)} holds numbers: say where to cut it,"
                f" as in --slice {shown(column + ':30,60')}; cut points that these rows choose would"
                " void the guarantee."
            )
        words = _words(self.found.name, column, values)
        met = Counter[str]()
        at: dict[str, set[int]] = {}
        for code, word in zip(codes, words, strict=True):
            name = "missing" if word is None else str(word)
            met[name] += counts[code]
            at.setdefault(name, set()).add(code)
        if len(met.keys() - {"missing"}) > MOST_VALUES:
            raise DataError(
                f"{self.found.name}, --slice column {shown(column)} has {len(met):,} values, more than"
                f" {MOST_VALUES}: choose a coarser one."
            )
        return {f"{column} = {name}": frozenset(at[name]) for name, n in met.items() if n >= FEWEST}
