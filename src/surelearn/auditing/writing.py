"""How sections of the page are made: the work of all of them side by side, each within a budget,
then what each one says.

Work is counted in units, about a second of one core each at ``effort=1``, never in time: results do
not depend on the machine. Where a model cannot be refitted or attacked, or raises, its section says
so and the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surelearn import jobs
from surelearn.auditing.context import Context
from surelearn.auditing.single_rows import raised, without_messages
from surelearn.claim import Claim, Finding
from surelearn.lacking import Lacking
from surelearn.report import Chart, PageTable, Section
from surelearn.report.document import Place


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One section, as the list of all sections has it.

    Attributes
    ----------
    key : its stable name, for ``skip`` and in the file
    title : what stands above it
    write : from the context to what the page says, to why it was not measured, or to None where
        there is nothing to say; with ``tasks``, from the context and their results, in their order
    tasks : from the context to its work, as independent tasks, or why it cannot be done; None: it
        has none
    place : where it stands on the page
    required : whether the page's claims rest on what it says, so that it cannot be skipped
    of_all : whether it is drawn from what the other sections say, which ``write`` is given after the
        context
    """

    key: str
    title: str
    write: Callable[..., Section | Lacking | None]
    tasks: Callable[[Context], Sequence[jobs.Task] | Lacking] | None = None
    place: Place = "measured"
    required: bool = False
    of_all: bool = False

    def says(
        self,
        *,
        notes: Sequence[str] = (),
        claims: Sequence[Claim] = (),
        findings: Sequence[Finding] = (),
        charts: Sequence[Chart] = (),
        tables: Sequence[PageTable] = (),
    ) -> Section:
        """The section, under its own key and title."""
        return Section(
            key=self.key,
            title=self.title,
            place=self.place,
            notes=tuple(notes),
            claims=tuple(claims),
            findings=tuple(findings),
            charts=tuple(charts),
            tables=tuple(tables),
        )


def write_sections(
    entries: Sequence[Entry],
    context: Context,
    early: Callable[[tuple[Section, ...], tuple[str, ...]], None] = lambda *_: None,
) -> tuple[Section, ...]:
    """Every section that was not skipped and has something to say, in order.

    Parameters
    ----------
    early : told what is known, and the keys of the sections that are not measured yet, which are
        empty: once before their work begins, then whenever some of them are finished, but for the
        last
    """
    page = _Growing([entry for entry in entries if entry.key not in context.options.skip], context)
    if page.waiting:
        early(page.sections(), page.waiting)
        page.plan()

        def add(results: Mapping[str, Any]) -> None:
            if page.add(results) and page.waiting:
                early(page.sections(), page.waiting)

        add({})  # those that cannot be measured are finished
        context.runner.run(page.tasks, "measurements", add)
    return page.sections()


class _Growing:
    """The sections of a page, written one by one as the results of their tasks come.

    What a section says depends on its own results only, not on which came first.
    """

    def __init__(self, entries: Sequence[Entry], context: Context) -> None:
        self._order, self._context = entries, context
        self._entries = entries = [entry for entry in entries if not entry.of_all]
        self._written = {e.key: _written(e, context, [], {}) for e in entries if not e.tasks}
        self._plans: dict[str, list[jobs.Task] | Lacking] = {}
        self._results: dict[str, Any] = {}

    @property
    def waiting(self) -> tuple[str, ...]:
        """Keys of the sections that are not measured yet."""
        return tuple(entry.key for entry in self._entries if entry.key not in self._written)

    @property
    def tasks(self) -> list[jobs.Task]:
        """The work of all sections."""
        plans = self._plans.values()
        return [task for plan in plans if not isinstance(plan, Lacking) for task in plan]

    def plan(self) -> None:
        """Ask the sections for their tasks."""
        waiting = self.waiting
        self._plans = {
            entry.key: _planned(entry, self._context)
            for entry in self._entries
            if entry.key in waiting
        }

    def add(self, results: Mapping[str, Any]) -> bool:
        """Take in results by the keys of their tasks; whether they finished a section."""
        self._results.update(results)
        waiting = self.waiting
        ready = [e for e in self._entries if e.key in waiting and self._is_measured(e)]
        for entry in ready:
            self._written[entry.key] = _written(
                entry, self._context, self._plans[entry.key], self._results
            )
        return bool(ready)

    def _is_measured(self, entry: Entry) -> bool:
        plan = self._plans[entry.key]
        return isinstance(plan, Lacking) or all(task.key in self._results for task in plan)

    def sections(self) -> tuple[Section, ...]:
        """What the page shows now."""
        made = {e.key: self._written.get(e.key, e.says()) for e in self._entries}
        known = [section for section in made.values() if section is not None]
        made |= {e.key: e.write(self._context, known) for e in self._order if e.of_all}
        ordered = [made[entry.key] for entry in self._order]
        return tuple(
            without_messages(self._context, [s for s in ordered if isinstance(s, Section)])
        )


def attempt(function: Callable[..., Any], arguments: Mapping[str, Any], *inputs: Any) -> Any:
    """What the function returns; where it raised, that is what is lacking."""
    try:
        return function(*inputs, **arguments)
    except Exception as error:  # a model may raise anything, and the other sections still run
        return Lacking("measurement", raised(error))


def _planned(entry: Entry, context: Context) -> list[jobs.Task] | Lacking:
    if entry.tasks is None:
        return []
    tasks = attempt(entry.tasks, {}, context)
    if isinstance(tasks, Lacking):
        return tasks
    return [
        jobs.Task(task.key, attempt, {"function": task.function, "arguments": dict(task.arguments)})
        for task in tasks
    ]


def _written(
    entry: Entry, context: Context, plan: list[jobs.Task] | Lacking, done: Mapping[str, Any]
) -> Section | None:
    made = (
        entry.write(context) if entry.tasks is None else _from_results(entry, context, plan, done)
    )
    if isinstance(made, Lacking):
        return entry.says(notes=(f"Not measured: {made.reason}",))
    return made


def _from_results(
    entry: Entry, context: Context, plan: list[jobs.Task] | Lacking, done: Mapping[str, Any]
) -> Section | Lacking | None:
    results = [plan] if isinstance(plan, Lacking) else [done[task.key] for task in plan]
    failed = next((result for result in results if isinstance(result, Lacking)), None)
    return attempt(entry.write, {}, context, results) if failed is None else failed
