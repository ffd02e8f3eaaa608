"""The audit as a document, and how it is drawn: HTML, Markdown, JSON."""

from surelearn.report.audit import Audit
from surelearn.report.document import Chart, Document, PageTable, Section, Verdict

__all__ = ["Audit", "Chart", "Document", "PageTable", "Section", "Verdict"]
