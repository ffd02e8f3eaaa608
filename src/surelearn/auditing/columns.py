"""Section: what was read, what was done to each column, and what looks odd."""

from __future__ import annotations

from surelearn.auditing.context import Context
from surelearn.report import Section, Table


def section(context: Context) -> Section | None:
    """The findings about the data; one row a column stands in the details (`listing`)."""
    if not context.columns and not context.search.found:
        return None
    seen = context.findings if context.columns else context.search.found
    findings = [finding for finding in seen if finding.severity != "info"]
    notes = () if findings else ("Nothing odd was seen in the columns.",)
    return Section(key="data", title="The data", notes=notes, findings=tuple(findings))


def listing(context: Context) -> Section | None:
    """Every column with what was done to it."""
    if not context.columns:
        return None
    rows = [(c.name, c.kind, f"{c.missing:,}", f"{c.distinct:,}", c.note or "as it is") for c in context.columns]
    table = Table(header=("column", "kind", "missing", "distinct", "what was done"), rows=tuple(rows))
    minor = tuple(finding for finding in context.findings if finding.severity == "info")
    return Section(key="columns", title="Columns", place="details", tables=(table,), findings=minor)
