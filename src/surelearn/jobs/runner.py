"""How a flow runs its tasks: how many at a time, with which journal, and what it says meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from surelearn.jobs.journal import Journal
from surelearn.jobs.progress import Progress
from surelearn.jobs.tasks import Task, run


@dataclass(frozen=True, kw_only=True)
class Runner:
    """How tasks run, never what they compute; ``command`` is the command line that asked, for
    the next one to try.
    """

    n_jobs: int | None = None
    journal: Journal | None = None
    progress: Callable[[str], Progress | None] = lambda label: None  # noqa: ARG005
    say: Callable[[str], None] = lambda line: None  # noqa: ARG005
    command: str = ""

    def run(self, tasks: Sequence[Task], label: str) -> list[Any]:
        """Run tasks with progress under a label."""
        return run(tasks, n_jobs=self.n_jobs, journal=self.journal, progress=self.progress(label))
