"""Section: how rows and δ were divided, before any number was looked at."""

from __future__ import annotations

from surelearn.auditing.context import Context
from surelearn.claim import find_theorem
from surelearn.report import Section, Table


def section(context: Context) -> Section:
    """Rows by purpose and each claim's share of δ."""
    tables = []
    if context.split is not None:
        counts = [(purpose, f"{getattr(context.split, purpose).size:,}") for purpose in ("fit", "select", "certify")]
        tables.append(Table(header=("purpose", "rows"), rows=tuple(counts)))
    total = context.certificate.delta
    rows = [
        (claim.label, find_theorem(claim.theorem).name, f"{claim.delta:.6g}", f"{100 * claim.delta / total:.3g}%")
        for claim in context.certificate.together
    ]
    if rows:
        tables.append(Table(header=("claim", "theorem", "δ", "of the page's δ"), rows=tuple(rows)))
    notes = [f"δ = {total:.6g} for all guarantees of this page together; half goes to the headline."]
    if context.split is not None and context.split.order == "hash":
        notes.append("Rows are given their purpose by a hash of their content, not by a seed: trying again does not help.")
    return Section(key="budget", title="Split and confidence", place="details", notes=tuple(notes), tables=tuple(tables))
