"""Section: which rows did what. (How δ was divided, the page draws from the certificate itself.)"""

from __future__ import annotations

from surelearn.auditing.context import Context
from surelearn.auditing.novelty import nothing_near
from surelearn.report import Section, Table

VOUCHED = (
    "The model was fitted elsewhere. That it was fitted on these fit rows and on no certify row, whoever made this page "
    "vouches for; what the rows themselves show does not contradict it."
)


FIT_ROWS = (
    "about the rows it was fitted on: with one row more or less in the table others may change their purpose "
    "(`--coins` gives each row a coin of its own)"
)
TABLE_ROWS = "about all rows of the table, as its columns were read: each row's purpose is its own coin, with a secret salt"


def whose_rows(context: Context) -> str:
    """What statements on adding or removing a row are about: the rows fitted on or, where each has its own coin, all."""
    return TABLE_ROWS if context.split is not None and context.split.rule == 0 else FIT_ROWS


def section(context: Context) -> Section | None:
    """Rows by purpose; nothing for a model that was fitted elsewhere, on rows that nobody gave."""
    if not context.trained:
        return None
    purposes = ("fit", "certify") if context.split is None else ("fit", "select", "certify")
    counts = tuple((purpose, f"{len(context.rows(purpose)[1]):,}") for purpose in purposes)
    if unused := 0 if context.split is None else len(context.y) - sum(len(context.rows(purpose)[1]) for purpose in purposes):
        counts += (("not used", f"{unused:,}"),)
    if context.split is None:
        note = VOUCHED
    elif context.split.rule == 0:
        note = "Each row was given its purpose by its own coin: a hash of its content and of a salt that is kept secret."
    elif context.split.order == "hash":
        note = "Rows were given their purpose by a hash of their content, not by a seed: trying again does not help."
    elif context.groups is not None:
        note = (
            f"The last groups to begin by {context.time_name} were measured on, others fitted on up to then; their rows "
            "that are as late as those measured on were not used."
        )
    else:
        note = f"The last rows by {context.time_name} were measured on, the others fitted on."
    table = Table(header=("purpose", "rows"), rows=counts)
    copies = tuple(finding for finding in context.findings if finding.code == "SL104") if context.split is None else ()
    title = "Which rows did what"
    notes = (note, *nothing_near(context))
    return Section(key="split", title=title, place="details", notes=notes, tables=(table,), findings=copies)
