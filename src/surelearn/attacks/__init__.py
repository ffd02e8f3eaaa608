"""Attacks on models, taken as `surelearn.adapters` takes them: findings, never guarantees."""

from surelearn.attacks.decision import decision_attack
from surelearn.attacks.domains import Domain, domain
from surelearn.attacks.evasion import fgsm, projected_gradient
from surelearn.attacks.result import Evasion
from surelearn.attacks.smallest import simplest_change, smallest_change
from surelearn.attacks.tables import EncodedTable, encode_table

__all__ = [
    "Domain",
    "EncodedTable",
    "Evasion",
    "decision_attack",
    "domain",
    "encode_table",
    "fgsm",
    "projected_gradient",
    "simplest_change",
    "smallest_change",
]
