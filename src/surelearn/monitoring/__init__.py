"""Whether a certified model still keeps its promise: betting tests on labeled rows, label
shift, drift of inputs.
"""

from surelearn.monitoring.looks import Looks
from surelearn.monitoring.reference import Counter, Reference, drift
from surelearn.monitoring.watch import Fed, Watch
from surelearn.monitoring.watched import WatchedClaim

__all__ = ["Counter", "Fed", "Looks", "Reference", "Watch", "WatchedClaim", "drift"]
