"""What a page says of single rows: their numbers, and their values and labels only where that was
asked for.

A page is made to be passed on, and a row is often a person.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from surelearn.auditing.context import Context
from surelearn.report import Section
from surelearn.types import Label

HIDDEN = "Values of single rows are not shown (`--show-rows` prints them)."
SHOWN = (
    "Values of single rows are shown (`--show-rows`): pass the page on only to those who may see"
    " them."
)
FEWEST = 5  # fit rows of a category before a slice is named after it
_MESSAGE = re.compile(r"\b([Ii]t raised \w+): .*", re.DOTALL)


def rows_note(context: Context) -> str:
    """Whether the section shows values of single rows."""
    return SHOWN if context.options.show_rows else HIDDEN


def row_name(context: Context, number: int, label: Label) -> str:
    """A row by its number, with its label or the model's answer only where rows may be shown."""
    return f"row {number}, {label}" if context.options.show_rows else f"row {number}"


def raised(error: Exception) -> str:
    """What a model raised, as a reason; `without_messages` leaves the message out again,
    because it may quote a row.
    """
    message = " ".join(str(error).split())
    return f"it raised {type(error).__name__}" + (f": {message}" if message else "")


def without_messages(context: Context, sections: Sequence[Section]) -> list[Section]:
    """The sections without the messages of errors, unless rows may be shown."""
    if context.options.show_rows:
        return list(sections)
    said = r"\1 (its message may quote a row: `--show-rows` prints it)."
    return [
        replace(section, notes=tuple(_MESSAGE.sub(said, note) for note in section.notes))
        for section in sections
    ]
