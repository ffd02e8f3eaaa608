"""Learners that withstand changed rows: smoothed, trained on attacks, or voting over partitions; and proofs."""

from surelearn.robust.adversarial import AdversarialLinearClassifier, train_adversarially
from surelearn.robust.adversarial_classifier import AdversarialClassifier
from surelearn.robust.certified import NotCertified, Radii, certified_radii
from surelearn.robust.curve import RobustnessCurve, Tradeoff, certify_robustness, robustness_curve, tradeoff
from surelearn.robust.partition import PartitionClassifier
from surelearn.robust.smoothing import SmoothedClassifier, SmoothedLabels, SmoothedRadii

__all__ = [
    "AdversarialClassifier",
    "AdversarialLinearClassifier",
    "NotCertified",
    "PartitionClassifier",
    "Radii",
    "RobustnessCurve",
    "SmoothedClassifier",
    "SmoothedLabels",
    "SmoothedRadii",
    "Tradeoff",
    "certified_radii",
    "certify_robustness",
    "robustness_curve",
    "tradeoff",
    "train_adversarially",
]
