"""Learners that withstand changed rows: smoothed, trained on attacks, or voting over
partitions; and proofs.
"""

from surelearn.robust.adversarial import AdversarialLinearClassifier, train_adversarially
from surelearn.robust.adversarial_classifier import AdversarialClassifier
from surelearn.robust.certified import Radii, certified_radii, radii_of
from surelearn.robust.changes import attack_table, move_predictions, substitute_categories
from surelearn.robust.curve import (
    RobustnessCurve,
    Tradeoff,
    certify_robustness,
    robustness_curve,
    tradeoff,
)
from surelearn.robust.partition import PartitionClassifier
from surelearn.robust.poisoning import (
    CancelledAnswers,
    Threshold,
    cancel_answers,
    poisoning_thresholds,
)
from surelearn.robust.smoothing import SmoothedClassifier, SmoothedLabels, SmoothedRadii
from surelearn.robust.tables import table_radii

__all__ = [
    "AdversarialClassifier",
    "AdversarialLinearClassifier",
    "CancelledAnswers",
    "PartitionClassifier",
    "Radii",
    "RobustnessCurve",
    "SmoothedClassifier",
    "SmoothedLabels",
    "SmoothedRadii",
    "Threshold",
    "Tradeoff",
    "attack_table",
    "cancel_answers",
    "certified_radii",
    "certify_robustness",
    "move_predictions",
    "poisoning_thresholds",
    "radii_of",
    "robustness_curve",
    "substitute_categories",
    "table_radii",
    "tradeoff",
    "train_adversarially",
]
