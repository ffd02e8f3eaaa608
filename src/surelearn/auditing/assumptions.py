"""Section: the assumptions in plain words, and which of them the data contradict."""

from __future__ import annotations

from surelearn.auditing.context import Context
from surelearn.plain import percent_sure
from surelearn.report import Section
from surelearn.selection.ledger import allowance, ordinal


def section(context: Context) -> Section:
    """Same source, independence, first use: what was seen for and against each."""
    codes = {finding.code: finding for finding in context.findings}
    notes = []
    if context.time_name:
        notes.append(f"New rows come from the same source as these. Not assumed: rows are ordered by {context.time_name}.")
    elif "SL109" in codes:
        notes.append(f"New rows come from the same source as these. Contradicted by the file's order: {codes['SL109'].text}")
    else:
        said = "Cannot be checked from this file; `surelearn watch` checks live rows."
        notes.append(f"New rows come from the same source as these. {said}")
    if context.groups is not None:
        notes.append(f"Rows of different {context.group_name} values are independent. Rows of the same one need not be.")
    else:
        against = [codes[code].text for code in ("SL108", "SL104") if code in codes]
        seen = " ".join(against) if against else "Not contradicted: no duplicates, no grouping seen."
        notes.append(f"Rows are independent. {seen} If several rows belong to one person or machine, use `--group`.")
    notes.append(f"Held-back rows were not used before. {_use(context)}")
    return Section(key="assumptions", title="Assumptions", place="assumptions", notes=tuple(notes))


def _use(context: Context) -> str:
    if not context.ledger_kept:
        return "No ledger was kept: whoever made this page vouches for it."
    if context.turn == 1:
        return "The ledger shows no earlier audit."
    delta = allowance(context.options.delta, context.turn)
    return (
        f"This is the {ordinal(context.turn)} audit of these rows, so it is held to a stricter confidence, "
        f"{percent_sure(delta)}: all audits of these rows together fail in at most 1.4 times δ, unless the "
        "model was changed because of what an earlier audit showed."
    )
