"""The sections of the page, in order. A new one is a module with ``section(context)``, added here."""

from __future__ import annotations

from collections.abc import Callable

from surelearn.auditing import (
    assumptions,
    bounds_compared,
    calibration,
    choice,
    columns,
    costly,
    coverage,
    kernel_machine,
    learning_curve,
    margins,
    novelty,
    over_time,
    purposes,
    slices,
    stability,
    trust,
)
from surelearn.auditing.context import Context
from surelearn.auditing.single_rows import without_messages
from surelearn.report import Section

FIRST: tuple[Callable[[Context], Section | None], ...] = (
    over_time.section,
    choice.section,
    learning_curve.section,
    margins.section,
    kernel_machine.section,
    costly.section,
    slices.section,
    novelty.section,
    calibration.section,
    coverage.section,
    stability.section,
)
LAST: tuple[Callable[[Context], Section | None], ...] = (
    columns.section,
    assumptions.section,
    bounds_compared.section,
    kernel_machine.details,
    columns.listing,
    purposes.section,
)


def write_sections(context: Context) -> tuple[Section, ...]:
    """Every section that has something to say."""
    made = [*(write(context) for write in FIRST), *trust.sections(context), *(write(context) for write in LAST)]
    return tuple(without_messages(context, [section for section in made if section is not None]))
