"""How much poison among the training rows a fit withstands: what is proved for the minimizer of
a convex loss.
"""

from surelearn.robust.poisoning.cancelling import CancelledAnswers, cancel_answers
from surelearn.robust.poisoning.thresholds import Threshold, poisoning_thresholds

__all__ = ["CancelledAnswers", "Threshold", "cancel_answers", "poisoning_thresholds"]
