"""The audit: `flow` runs it, `claims` writes its certificate, `sections` are the page,
`verdict` its first sentence.
"""

from surelearn.auditing.flow import audit

__all__ = ["audit"]
