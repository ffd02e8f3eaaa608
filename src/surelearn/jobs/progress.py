"""Progress: how many tasks are done, and how long the rest will take."""

from __future__ import annotations

import time
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, TextColumn
from rich.progress import Progress as RichProgress
from rich.progress import Task as RichTask
from rich.text import Text


class Progress:
    """Who is told how far a run has come; this one says nothing."""

    def start(self, total: int, what: str) -> None:
        """Once, before all tasks."""

    def advance(self, key: str) -> None:
        """After each task, also one resumed from a journal."""

    def finish(self) -> None:
        """At the end, also after an error."""


silent = Progress()


def rich_progress(label: str = "", *, console: Console | None = None) -> Progress:
    """Bar on a terminal (standard error), with ``6/6 candidates  0:00:09`` for the label "candidates";
    elsewhere, as in a log, a plain line there now and then.
    """
    console = console or Console(stderr=True)
    return _Bar(label, console) if console.is_terminal else _Lines(label, console)


class _Lines(Progress):
    """``6 of 20 candidates, 0:00:09, about 0:00:21 left``: not before some seconds, and the seldomer
    the longer it takes.
    """

    FIRST = 5.0  # seconds
    AGAIN = 0.2  # of the time so far, and at least FIRST

    def __init__(self, label: str, console: Console) -> None:
        self._label, self._file = label, console.file

    def start(self, total: int, what: str) -> None:
        self._what, self._total, self._done, self._computed = self._label or what, total, 0, 0
        self._started = self._said = time.monotonic()

    def advance(self, key: str) -> None:  # noqa: ARG002 lines only count
        now = time.monotonic()
        elapsed = now - self._started
        self._done += 1
        self._computed += elapsed > RESUMED_WITHIN
        if self._done < self._total and now - self._said >= max(self.FIRST, self.AGAIN * elapsed):
            self._said = now
            left = elapsed / self._computed * (self._total - self._done)
            self._say(f"{_clock(elapsed)}, about {_clock(left)} left")

    def finish(self) -> None:
        if self._said > self._started:
            self._say(_clock(time.monotonic() - self._started))

    def _say(self, times: str) -> None:
        line = f"  {self._done} of {self._total} {self._what}, {times}"
        print(line, file=self._file, flush=True)


RESUMED_WITHIN = 0.2  # seconds; what a journal gives at once is no measure of speed


class _Bar(Progress):
    def __init__(self, label: str, console: Console) -> None:
        self._label = label
        count = TextColumn("{task.completed}/{task.total} {task.description}", markup=False)
        columns = (TextColumn(" "), BarColumn(), count, _Times())
        self._rich = RichProgress(*columns, console=console)

    def start(self, total: int, what: str) -> None:
        self._started, self._computed, self._remaining = time.monotonic(), 0, total
        self._id = self._rich.add_task(self._label or what, total=total, expected=None)
        self._rich.start()

    def advance(self, key: str) -> None:  # noqa: ARG002 the bar only counts
        elapsed = time.monotonic() - self._started
        self._computed += elapsed > RESUMED_WITHIN
        self._remaining -= 1
        expected = elapsed + elapsed / self._computed * self._remaining if self._computed else None
        self._rich.update(self._id, advance=1, expected=expected)

    def finish(self) -> None:
        self._rich.stop()


class _Times(ProgressColumn):
    """Time since the start and, until the end, time left."""

    def render(self, task: RichTask) -> Text:
        elapsed, expected = task.elapsed or 0.0, task.fields["expected"]
        left = (
            ""
            if expected is None or not task.remaining
            else f", {_clock(max(expected - elapsed, 0.0))} left"
        )
        return Text(f" {_clock(elapsed)}{left}")


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
