"""Whether a certified model still keeps its promise: a betting test on labelled live rows, and drift without labels."""

from surelearn.monitoring.reference import Counter, Reference, drift
from surelearn.monitoring.watch import Fed, Watch

__all__ = ["Counter", "Fed", "Reference", "Watch", "drift"]
