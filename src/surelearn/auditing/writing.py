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
    """

    key: str
    title: str
    write: Callable[..., Section | Lacking | None]
    tasks: Callable[[Context], Sequence[jobs.Task] | Lacking] | None = None
    place: Place = "measured"
    required: bool = False

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
    early: Callable[[tuple[Section, ...]], None] = lambda sections: None,  # noqa: ARG005
) -> tuple[Section, ...]:
    """Every section that was not skipped and has something to say, in order; ``early`` is given
    those that need no work, before the work of the others begins.
    """
    asked = [entry for entry in entries if entry.key not in context.options.skip]
    at_once = {entry.key: _written(entry, context, [], {}) for entry in asked if not entry.tasks}
    waiting = [entry for entry in asked if entry.tasks]
    if waiting:
        early(_shown(context, list(at_once.values())))
    plans = {entry.key: _planned(entry, context) for entry in waiting}
    tasks = [task for plan in plans.values() if not isinstance(plan, Lacking) for task in plan]
    done = {
        task.key: result
        for task, result in zip(tasks, context.runner.run(tasks, "sections"), strict=True)
    }
    made = [
        _written(entry, context, plans[entry.key], done) if entry.tasks else at_once[entry.key]
        for entry in asked
    ]
    return _shown(context, made)


def _shown(context: Context, made: Sequence[Section | None]) -> tuple[Section, ...]:
    return tuple(without_messages(context, [section for section in made if section is not None]))


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
