"""What the sections of an audit look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from surelearn import jobs
from surelearn.auditing.options import Options
from surelearn.certificate import Certificate
from surelearn.claim import Finding
from surelearn.data.independence import Search
from surelearn.data.novelty import Compared
from surelearn.data.pixels import pixel_names
from surelearn.lacking import Lacking
from surelearn.operating import Rungs
from surelearn.selection.selector import Selection
from surelearn.selection.split import Split
from surelearn.selection.width import NOT_COMPARED, Widths
from surelearn.subject import Task
from surelearn.subject.refitting import take
from surelearn.types import AnyArray, ImageShape

if TYPE_CHECKING:
    from surelearn.auditing.answers.counted import CountedAnswers
    from surelearn.auditing.answers.units import Units


@dataclass(frozen=True, kw_only=True, eq=False)
class Context:
    """One model under audit: its data, how it was chosen, and its certificate.

    ``split`` and ``selection`` are None for a model that was fitted elsewhere; then every row of
    ``X`` is a certify row, and ``seen`` has the rows that it was fitted on, if its user gave them.
    ``compared`` says which certify rows are like those that it was fitted on. ``looked_in`` are the
    ledgers; None: none is kept. ``answers`` are there where somebody wrote them down, and no model
    is at hand; ``counted`` are there, too, where only counts and sums of them are known, and then
    ``X`` and ``y`` say how many rows there are and nothing else. ``rungs`` are the thresholds of an
    operating point, and the rows that fixed them. ``widths`` are the forms of intervals that were
    compared on the rows to fit on. ``images`` is the shape of images, whose pixels are the columns.
    """

    title: str
    target: str
    task: Task | Literal["losses"]
    X: Any
    y: Any
    groups: Any
    columns: tuple[Any, ...]
    findings: tuple[Finding, ...]
    split: Split | None
    selection: Selection | None
    model: Any
    certificate: Certificate
    options: Options
    runner: jobs.Runner
    turn: int = 1
    suspects: tuple[str, ...] = ()
    unfitted: Any = None
    threshold: float | None = None
    group_name: str = "group"
    time_name: str = ""
    looked_in: tuple[Path, ...] | None = None
    seen: tuple[Any, Any] | None = None
    compared: Compared | None = None
    search: Search = field(default_factory=Search)
    unlabelled_compared: bool = False
    left_out: tuple[str, ...] = ()
    not_installed: tuple[tuple[str, str], ...] = ()
    answers: Units | None = None
    rungs: Rungs | None = None
    counted: CountedAnswers | None = None
    widths: Widths = NOT_COMPARED
    images: ImageShape | None = None
    # not handed on to a context that differs
    made: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def studied(self) -> tuple[Any, ...]:
        """The columns that are looked at one by one: a pixel says nothing by itself."""
        pixels = frozenset(() if self.images is None else pixel_names(self.images))
        return tuple(column for column in self.columns if column.name not in pixels)

    @property
    def contradicted(self) -> tuple[Finding, ...]:
        """What contradicts independence, unless the user vouches for it."""
        return () if self.options.independent else self.search.found

    @property
    def dependent(self) -> Lacking | None:
        """Why certify rows do not count one by one as draws of new rows; None where they do."""
        why = None
        if self.time_name:
            why = "rows are ordered by time"
        elif self.contradicted:
            why = "rows are not independent draws"
        elif self.groups is not None:
            why = "rows belong together in groups"
        return None if why is None else Lacking("claim about new rows", why)

    @property
    def held_back(self) -> str:
        """The word before certify rows; recorded answers were not held back from any fit."""
        return "held-back " if self.answers is None else ""

    @property
    def where(self) -> str:
        """Which rows claims are about."""
        if self.answers is not None and self.answers.drawn:
            return "In the file that these rows were drawn from"
        return "On new rows like these"

    @property
    def predicts(self) -> Task:
        """What the model predicts; of grades nothing does, and no section about models is asked."""
        return "regression" if self.task == "losses" else self.task

    @property
    def trained(self) -> bool:
        """Whether the rows that the model was fitted on are known."""
        return self.split is not None or self.seen is not None

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels that the model knows, in the order of its scores, as its certificate has
        them; () for a regressor.
        """
        return tuple(self.certificate.facts.options.get("classes", ()))

    @property
    def labels(self) -> tuple[Any, ...]:
        """As `classes`, and those that only certify rows have, which the model never saw."""
        return (*self.classes, *self.certificate.facts.options.get("unseen", ()))

    def rows(self, purpose: str) -> tuple[Any, Any]:
        """X and y of the rows with one purpose: "fit", "select", "certify", or "train" for fit
        and select together.
        """
        if self.split is None:
            seen = (
                self.seen
                if self.seen is not None and purpose in ("fit", "train")
                else (take(self.X, []), self.y[:0])
            )
            return (self.X, self.y) if purpose == "certify" else seen
        split = self.split
        index = (
            np.union1d(split.fit, split.select) if purpose == "train" else getattr(split, purpose)
        )
        return take(self.X, index), self.y[index]

    def numbers(self, rows: int | AnyArray) -> Any:
        """The numbers, counted from 1, that certify rows have in the table (among those with a
        target).
        """
        return 1 + (np.asarray(rows) if self.split is None else self.split.certify[rows])

    def seed(self, key: str) -> int:
        """A seed for one task, from the audit's seed and the task's name."""
        return jobs.seed_for(key, self.options.seed)

    def once(self, key: str, make: Callable[[int], Any]) -> Any:
        """What several sections read, made for the first of them, from the task's seed."""
        if key not in self.made:
            self.made[key] = make(self.seed(key))
        return self.made[key]
