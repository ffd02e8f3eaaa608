"""The audit: one file a section, `sections` puts them in order, `flow` runs it."""

from surelearn.auditing.flow import audit

__all__ = ["audit"]
