"""Certificates for answers that somebody wrote down: which columns are what, the independent units
that they are, and the page about them.
"""

from surelearn.auditing.answers.flow import audit_answers, audit_units, roles_and_options
from surelearn.auditing.answers.gate import check_goals, gate_answers
from surelearn.auditing.answers.roles import Roles
from surelearn.auditing.answers.units import Units, read_units

__all__ = [
    "Roles", "Units", "audit_answers", "audit_units", "check_goals", "gate_answers", "read_units",
    "roles_and_options",
]  # fmt: skip
