"""Attacks on models, taken as `surelearn.subject` takes them: findings, never guarantees."""

from surelearn.attacks.canary import CanaryScores, canary_scores
from surelearn.attacks.decision import decision_attack
from surelearn.attacks.domains import Domain, domain
from surelearn.attacks.epsilon_audit import epsilon_from_canaries, epsilon_from_retrainings
from surelearn.attacks.evasion import fgsm, projected_gradient
from surelearn.attacks.influence import exact_influence, influence_function, refit_influence
from surelearn.attacks.influence_known import ModelInfluence, leave_one_out, model_influence
from surelearn.attacks.influence_margins import dual_influence
from surelearn.attacks.membership import likelihood_ratio, loss_threshold
from surelearn.attacks.membership_evidence import (
    MembershipEvidence,
    MembershipInference,
    complementary_halves,
    evidence_ratio,
    membership_evidence,
    membership_inference,
    shadow_evidence,
)
from surelearn.attacks.poison_aimed import Aimed, aimed_rows
from surelearn.attacks.poison_allowed import Allowed
from surelearn.attacks.poison_bilevel import bilevel
from surelearn.attacks.poison_curve import damage_curve
from surelearn.attacks.poison_further import Further, module_influence, trained_further
from surelearn.attacks.poison_labels import change_labels, flip_influential, flip_labels
from surelearn.attacks.poison_objectives import LinearObjective
from surelearn.attacks.poisoning import (
    cancel_gradient,
    corrupt_parameters,
    neutral_rows,
    transition,
)
from surelearn.attacks.result import Evasion
from surelearn.attacks.smallest import simplest_change, smallest_change
from surelearn.attacks.tables import EncodedTable, encode_table

__all__ = [
    "Aimed",
    "Allowed",
    "CanaryScores",
    "Domain",
    "EncodedTable",
    "Evasion",
    "Further",
    "LinearObjective",
    "MembershipEvidence",
    "MembershipInference",
    "ModelInfluence",
    "aimed_rows",
    "bilevel",
    "canary_scores",
    "cancel_gradient",
    "change_labels",
    "complementary_halves",
    "corrupt_parameters",
    "damage_curve",
    "decision_attack",
    "domain",
    "dual_influence",
    "encode_table",
    "epsilon_from_canaries",
    "epsilon_from_retrainings",
    "evidence_ratio",
    "exact_influence",
    "fgsm",
    "flip_influential",
    "flip_labels",
    "influence_function",
    "leave_one_out",
    "likelihood_ratio",
    "loss_threshold",
    "membership_evidence",
    "membership_inference",
    "model_influence",
    "module_influence",
    "neutral_rows",
    "projected_gradient",
    "refit_influence",
    "shadow_evidence",
    "simplest_change",
    "smallest_change",
    "trained_further",
    "transition",
]
