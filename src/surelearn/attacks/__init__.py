"""Attacks on models, taken as `surelearn.adapters` takes them: findings, never guarantees."""

from surelearn.attacks.decision import decision_attack
from surelearn.attacks.domains import Domain, domain
from surelearn.attacks.epsilon_audit import epsilon_from_canaries, epsilon_from_retrainings
from surelearn.attacks.evasion import fgsm, projected_gradient
from surelearn.attacks.influence import exact_influence, influence_function, refit_influence
from surelearn.attacks.membership import likelihood_ratio, loss_threshold
from surelearn.attacks.poison_allowed import Allowed
from surelearn.attacks.poison_bilevel import bilevel
from surelearn.attacks.poison_curve import damage_curve
from surelearn.attacks.poison_labels import flip_influential, flip_labels
from surelearn.attacks.poison_objectives import LinearObjective
from surelearn.attacks.poisoning import cancel_gradient, corrupt_parameters, neutral_rows, transition
from surelearn.attacks.result import Evasion
from surelearn.attacks.smallest import simplest_change, smallest_change
from surelearn.attacks.tables import EncodedTable, encode_table

__all__ = [
    "Allowed",
    "Domain",
    "EncodedTable",
    "Evasion",
    "LinearObjective",
    "bilevel",
    "cancel_gradient",
    "corrupt_parameters",
    "damage_curve",
    "decision_attack",
    "domain",
    "encode_table",
    "epsilon_from_canaries",
    "epsilon_from_retrainings",
    "exact_influence",
    "fgsm",
    "flip_influential",
    "flip_labels",
    "influence_function",
    "likelihood_ratio",
    "loss_threshold",
    "neutral_rows",
    "projected_gradient",
    "refit_influence",
    "simplest_change",
    "smallest_change",
    "transition",
]
