"""What each section of an audit costs, in CPU seconds of one core, and what it bought.

Every section's planning, tasks and writing are timed where they run, in one process, children
included; what it bought is the first thing that it found.
"""

from __future__ import annotations

import resource
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd

from surelearn import audit, jobs
from surelearn.auditing import flow
from surelearn.auditing.sections import ENTRIES
from surelearn.auditing.writing import Entry
from surelearn.lacking import Lacking
from surelearn.report import Audit, Section

WIDTH = 110  # letters of what a section found


class Clock:
    """CPU seconds by section, children included."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.tasks: dict[str, int] = {}

    @contextmanager
    def on(self, key: str) -> Iterator[None]:
        """Count what the body takes to a section."""
        before = cpu_seconds()
        try:
            yield
        finally:
            self.seconds[key] = self.seconds.get(key, 0.0) + cpu_seconds() - before

    def timed(self, key: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its time counted to a section."""

        def call(*inputs: Any, **options: Any) -> Any:
            with self.on(key):
                return function(*inputs, **options)

        return call

    def watched(self, entry: Entry) -> Entry:
        """A section whose planning, tasks and writing are counted."""
        write = self.timed(entry.key, entry.write)
        if entry.tasks is None:
            return replace(entry, write=write)
        plan = self.timed(entry.key, entry.tasks)

        def tasks(context: Any) -> Any:
            found = plan(context)
            if isinstance(found, Lacking):
                return found
            self.tasks[entry.key] = len(found)
            return [
                jobs.Task(task.key, self.timed(entry.key, task.function), task.arguments)
                for task in found
            ]

        return replace(entry, write=write, tasks=tasks)


def cpu_seconds() -> float:
    """Of this process and of its children that ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def audited(source: Any, **options: Any) -> tuple[Audit, Clock, float]:
    """An audit in this process, what its sections took, and what all of it took."""
    clock = Clock()
    entries = tuple(clock.watched(entry) for entry in ENTRIES)
    start = cpu_seconds()
    with mock.patch.object(flow, "ENTRIES", entries), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = audit(source, ledger=False, n_jobs=1, **options)
    return made, clock, cpu_seconds() - start


def bought(section: Section | None) -> str:
    """The first thing that a section found, or why it found nothing."""
    if section is None:
        return "nothing to say"
    said = [
        *(finding.text for finding in section.findings),
        *section.notes,
        *(f"{len(table.rows)} rows of {', '.join(table.header)}" for table in section.tables),
        *(f"{claim.label} {claim.bound()}" for claim in section.claims),
        *(chart.title for chart in section.charts),
    ]
    text = said[0] if said else ""
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"


def print_sections(name: str, source: Any, **options: Any) -> float:
    """Print each section's CPU seconds, the dearest first, and what it bought; their sum."""
    made, clock, whole = audited(source, **options)
    sections = {section.key: section for section in made.sections}
    total = sum(clock.seconds.values())
    print(f"\n{name}: {made.chips[0]}")
    print(f"{'section':<18} {'CPU s':>7} {'tasks':>6}  what it bought")
    for key, seconds in sorted(clock.seconds.items(), key=lambda item: -item[1]):
        if seconds >= 0.05 or key in clock.tasks:
            tasks = clock.tasks.get(key, 0)
            print(f"{key:<18} {seconds:7.2f} {tasks or '':>6}  {bought(sections.get(key))}")
    print(f"{'all sections':<18} {total:7.2f}\n{'the rest':<18} {whole - total:7.2f}", flush=True)
    return total


def tables(data: Path) -> Mapping[str, Callable[[], tuple[Any, dict[str, Any]]]]:
    """Tables of about 5,000 rows, one of 32,000, and one of long texts: each with the options to
    audit it with.
    """

    def read(
        file: str, target: str | int, rows: int | None = None, header: int | None = 0
    ) -> tuple[pd.DataFrame, dict[str, Any]]:
        frame = pd.read_csv(data / file, header=header, skipinitialspace=True, na_values="?")
        if header is None:
            frame.columns = [f"column {j}" for j in range(1, frame.shape[1] + 1)]
        if rows is not None and rows < len(frame):
            frame = frame.sample(rows, random_state=0).sort_index().reset_index(drop=True)
        return frame, {"target": frame.columns[target] if isinstance(target, int) else target}

    return {
        "sick": lambda: read("sick.csv", "Class"),
        "letter": lambda: read("letter.csv", "letter", 5000),
        "california": lambda: read("california_housing.csv", "median_house_value", 5000),
        "adult": lambda: read("adult_train.csv", -1, 5000, None),
        "adult, all": lambda: read("adult_train.csv", -1, None, None),
        "california, all": lambda: read("california_housing.csv", "median_house_value"),
        "bbc": lambda: read("bbc_news.csv.gz", "label"),
    }
