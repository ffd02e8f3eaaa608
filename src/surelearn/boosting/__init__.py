"""Decision stumps and their votes, each with its certificate."""

from surelearn.boosting.adaboost import AdaBoostClassifier
from surelearn.boosting.stump import DecisionStump

__all__ = ["AdaBoostClassifier", "DecisionStump"]
