"""The audit as a document, and how it is drawn: HTML, Markdown, JSON."""

from surelearn.report.document import Audit, Chart, Section, Table, Verdict

__all__ = ["Audit", "Chart", "Section", "Table", "Verdict"]
