"""Section: which rows did what. (How δ was divided, the page draws from the certificate itself.)"""

from __future__ import annotations

from surelearn.auditing.context import Context
from surelearn.auditing.sections.novelty import nothing_near
from surelearn.auditing.writing import Entry
from surelearn.report import PageTable, Section

VOUCHED = (
    "The model was fitted elsewhere. Whoever made this page vouches that it was fitted on these fit"
    " rows and on no certify row; the rows themselves do not contradict it."
)


FIT_ROWS = (
    "about the rows it was fitted on: with one row more or less in the table others may change"
    " their purpose (`--coins` gives each row a coin of its own)"
)
TABLE_ROWS = (
    "about all rows of the table, as its columns were read: each row's purpose is its own coin,"
    " with a secret salt"
)


def whose_rows(context: Context) -> str:
    """What statements on adding or removing a row are about: the rows fitted on or, where each
    has its own coin, all.
    """
    return TABLE_ROWS if context.split is not None and context.split.rule == 0 else FIT_ROWS


def section(context: Context) -> Section | None:
    """Rows by purpose; nothing for a model that was fitted elsewhere, on rows that nobody gave."""
    if not context.trained:
        return None
    purposes = ("fit", "certify") if context.split is None else ("fit", "select", "certify")
    counts = tuple((purpose, f"{len(context.rows(purpose)[1]):,}") for purpose in purposes)
    if unused := (
        0
        if context.split is None
        else len(context.y) - sum(len(context.rows(purpose)[1]) for purpose in purposes)
    ):
        counts += (("not used", f"{unused:,}"),)
    if context.split is None:
        note = VOUCHED
    elif context.split.rule == 0:
        note = (
            "Each row was assigned by its own coin: a hash of its content and of a salt that is"
            " kept secret."
        )
    elif context.split.order == "hash":
        note = (
            "Rows were assigned by a hash of their content, not by a seed: a second try gives the"
            " same split."
        )
    elif context.groups is not None:
        note = (
            f"The last groups to begin by {context.time_name} are the test rows, and the others are"
            " training rows up to then; rows of the others that are as late as the test rows were"
            " not used."
        )
    else:
        note = (
            f"The last rows by {context.time_name} are the test rows, the others are training rows."
        )
    table = PageTable(header=("purpose", "rows"), rows=counts)
    copies = (
        tuple(finding for finding in context.findings if finding.code == "SL104")
        if context.split is None
        else ()
    )
    notes = (note, *nothing_near(context))
    return ENTRY.says(notes=notes, tables=(table,), findings=copies)


ENTRY = Entry(
    key="split",
    title="Data split: fit, select and certify rows",
    write=section,
    place="details",
    required=True,
)
