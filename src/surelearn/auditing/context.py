"""What the sections of an audit look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from surelearn import jobs
from surelearn.adapters import Task
from surelearn.certificate import Certificate
from surelearn.claim import Finding
from surelearn.data.independence import Search
from surelearn.data.novelty import Compared
from surelearn.selection.costs import cost_of_threshold
from surelearn.selection.cross_validation import take
from surelearn.selection.selector import Selection
from surelearn.selection.split import Split


@dataclass(frozen=True, kw_only=True)
class Options:
    """Everything a user may ask of an audit; all of it is fixed before the certify rows are looked at."""

    delta: float = 0.05
    positive: Any = None
    cost: float | None = None
    threshold: float | None = None
    alpha: float = 0.1
    loss: str = "absolute"
    loss_bound: float | None = None
    largest_group: int | None = None
    slices: tuple[str, ...] = ()
    certify_fraction: float | None = None
    select_fraction: float | None = None
    prefer: str = "simplest"
    criterion: str | None = None
    seed: int = 0
    refits: int = 10
    curve_repeats: int = 3
    skip: tuple[str, ...] = ()
    effort: float = 1.0
    show_rows: bool = False
    independent: bool = False
    population: str | None = None
    coins: bool = False

    @property
    def miss(self) -> float | None:
        """What a missed positive costs when a false alarm costs 1: as stated, or as a stated threshold implies."""
        return self.cost if self.cost is not None or self.threshold is None else cost_of_threshold(self.threshold)


class Unusable(Exception):  # noqa: N818 - a reason, not an error
    """Why a section cannot be made for this model, in a sentence."""


@dataclass(frozen=True, kw_only=True)
class Runner:
    """How tasks run, never what they compute; ``command`` is the command line that asked, for the next one to try."""

    n_jobs: int | None = None
    journal: jobs.Journal | None = None
    progress: Callable[[str], jobs.Progress | None] = lambda label: None  # noqa: ARG005
    say: Callable[[str], None] = lambda line: None  # noqa: ARG005
    command: str = ""

    def run(self, tasks: Sequence[jobs.Task], label: str) -> list[Any]:
        """Run tasks with progress under a label."""
        return jobs.run(tasks, n_jobs=self.n_jobs, journal=self.journal, progress=self.progress(label))


@dataclass(frozen=True, kw_only=True, eq=False)
class Context:
    """One model under audit: its data, how it was chosen, and its certificate.

    ``split`` and ``selection`` are None for a model that was fitted elsewhere; then every row of ``X`` is a certify row, and
    ``seen`` has the rows that it was fitted on, if its user gave them. ``compared`` says which certify rows are like those
    that it was fitted on. ``looked_in`` are the ledgers; None: none is kept.
    """

    title: str
    target: str
    task: Task
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
    runner: Runner
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

    @property
    def contradicted(self) -> tuple[Finding, ...]:
        """What contradicts independence, unless the user vouches for it."""
        return () if self.options.independent else self.search.found

    @property
    def dependent(self) -> str:
        """Why certify rows do not count one by one as draws of new rows, or ""."""
        if self.time_name:
            return "rows are ordered by time"
        if self.contradicted:
            return "rows are not independent draws"
        return "rows belong together in groups" if self.groups is not None else ""

    @property
    def trained(self) -> bool:
        """Whether the rows that the model was fitted on are known."""
        return self.split is not None or self.seen is not None

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels that the model knows, in the order of its scores, as its certificate has them; () for a regressor."""
        return tuple(self.certificate.facts.options.get("classes", ()))

    def rows(self, purpose: str) -> tuple[Any, Any]:
        """X and y of the rows with one purpose: "fit", "select", "certify", or "train" for fit and select together."""
        if self.split is None:
            seen = self.seen if self.seen is not None and purpose in ("fit", "train") else (take(self.X, []), self.y[:0])
            return (self.X, self.y) if purpose == "certify" else seen
        split = self.split
        index = np.union1d(split.fit, split.select) if purpose == "train" else getattr(split, purpose)
        return take(self.X, index), self.y[index]

    def numbers(self, rows: Any) -> Any:
        """The numbers, counted from 1, that certify rows have in the table (among those with a target)."""
        return 1 + (np.asarray(rows) if self.split is None else self.split.certify[rows])

    def seed(self, key: str) -> int:
        """A seed for one task, from the audit's seed and the task's name."""
        return jobs.seed_for(key, self.options.seed)
