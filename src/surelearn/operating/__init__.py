"""The operating point: a threshold that keeps a stated promise on new rows.

A `Requirement` says what is promised. A `ladder` of thresholds, and their order, is fixed on rows that
are not certified; a `Walk` along it counts what the certified rows say, and ends at the last threshold
that keeps the promise. `PredictionSets` answer with all labels that are not ruled out.
"""

from surelearn.operating.ladder import LADDER_RULE, Rungs, ladder
from surelearn.operating.requirement import Requirement
from surelearn.operating.sets import PredictionSets
from surelearn.operating.walk import Walk, walk_facts

__all__ = ["LADDER_RULE", "PredictionSets", "Requirement", "Rungs", "Walk", "ladder", "walk_facts"]
