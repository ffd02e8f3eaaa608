"""Certificates for answers that somebody wrote down: which columns are what, the independent units
that they are, and the page about them.
"""

from surelearn.auditing.answers.counted import CountedAnswers
from surelearn.auditing.answers.flow import audit_answers, audit_units, roles_and_options
from surelearn.auditing.answers.gate import check_goal, check_goals, gate_answers
from surelearn.auditing.answers.models import Models, ask_models, audit_model, check_roles
from surelearn.auditing.answers.one_pass import audit_counted
from surelearn.auditing.answers.read_once import cannot, read_counted
from surelearn.auditing.answers.roles import Roles
from surelearn.auditing.answers.units import Units, read_units

__all__ = [
    "CountedAnswers", "Models", "Roles", "Units", "ask_models", "audit_answers", "audit_counted",
    "audit_model", "audit_units", "cannot", "check_goal", "check_goals", "check_roles",
    "gate_answers", "read_counted", "read_units", "roles_and_options",
]  # fmt: skip
