"""Section: what was read, what was done to each column, and what looks odd."""

from __future__ import annotations

from surelearn.auditing.context import Context
from surelearn.auditing.writing import Entry
from surelearn.report import PageTable, Section


def data(context: Context) -> Section | None:
    """The findings about the data; the table with one row per column stands in the details
    (`section`).
    """
    if not context.columns and not context.search.found:
        return None
    seen = context.findings if context.columns else context.search.found
    findings = [finding for finding in seen if finding.severity != "info"]
    notes = () if findings else ("The checks of the columns found nothing odd.",)
    return DATA.says(notes=notes, findings=findings)


def section(context: Context) -> Section | None:
    """Every column with what was done to it."""
    if not context.columns:
        return None
    rows = [
        (c.name, c.kind, f"{c.missing:,}", f"{c.distinct:,}", c.note or "as it is")
        for c in context.columns
    ]
    table = PageTable(
        header=("column", "kind", "missing", "distinct", "what was done"), rows=tuple(rows)
    )
    minor = tuple(finding for finding in context.findings if finding.severity == "info")
    return ENTRY.says(tables=(table,), findings=minor)


DATA = Entry(key="data", title="Data checks", write=data, required=True)
ENTRY = Entry(key="columns", title="Columns", write=section, place="details")
