"""What could be done to the model, and what it gives away: sections that attack it, run side by side, each within a budget.

A module of `MODULES` has ``tasks(context)``, the work as independent tasks, and ``section(context, results)``, what the page
says about their results. Work is counted in units, about a second of one core each at ``effort=1``, never in time: results
do not depend on the machine. Where a model cannot be attacked, or raises, its section says so and the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from surelearn import jobs
from surelearn.auditing import attribution, membership, poisoning, robustness
from surelearn.auditing.context import Context, Unusable
from surelearn.auditing.single_rows import raised
from surelearn.report import Section


class Trust(Protocol):
    """A module with a section of its own."""

    TITLE: str

    @staticmethod
    def tasks(context: Context) -> Sequence[jobs.Task]:
        """The work; no tasks: nothing to do."""
        ...

    @staticmethod
    def section(context: Context, results: Sequence[Any]) -> Section | None:
        """What the page says of the results, in the order of the tasks."""
        ...


MODULES: Mapping[str, Any] = {
    "robustness": robustness,
    "poisoning": poisoning,
    "membership": membership,
    "attribution": attribution,
}


def sections(context: Context) -> list[Section]:
    """Every section that was not switched off."""
    asked = {key: module for key, module in MODULES.items() if key not in context.options.skip}
    plans: dict[str, list[jobs.Task] | str] = {key: _planned(module, context) for key, module in asked.items()}
    tasks = [task for plan in plans.values() if not isinstance(plan, str) for task in plan]
    done = {task.key: result for task, result in zip(tasks, context.runner.run(tasks, "trust"), strict=True)}
    made = []
    for key, module in asked.items():
        plan = plans[key]
        results = [plan] if isinstance(plan, str) else [done[task.key] for task in plan]
        failed = [result for result in results if isinstance(result, str)]
        section = _said(key, module.TITLE, failed[0]) if failed else _written(key, module, context, results)
        made += [] if section is None else [section]
    return made


def attempt(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """What the function returns, or a sentence on why it could not."""
    try:
        return function(**arguments)
    except Exception as error:  # a model may raise anything, and the other sections still run
        return _reason(error)


def _planned(module: Any, context: Context) -> list[jobs.Task] | str:
    try:
        return [
            jobs.Task(task.key, attempt, {"function": task.function, "arguments": dict(task.arguments)})
            for task in module.tasks(context)
        ]
    except Exception as error:
        return _reason(error)


def _written(key: str, module: Any, context: Context, results: list[Any]) -> Section | None:
    try:
        return module.section(context, results)
    except Exception as error:
        return _said(key, module.TITLE, _reason(error))


def _said(key: str, title: str, reason: str) -> Section:
    return Section(key=key, title=title, notes=(f"Not measured: {reason}",))


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) if isinstance(error, Unusable) else raised(error)
