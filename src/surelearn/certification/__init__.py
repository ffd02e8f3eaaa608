"""What is guaranteed about any fixed predictor, from rows or other units that it has not seen.

`certify` fixes what is measured before it looks (`beforehand`), measures, and writes the claims that
follow, each with its part of δ (`writer`).
"""

from surelearn.certification.beforehand import CHOSEN_HERE, LONGEST_NAME, check_largest_group
from surelearn.certification.flow import certify, certify_counted, uncounted

__all__ = [
    "CHOSEN_HERE",
    "LONGEST_NAME",
    "certify",
    "certify_counted",
    "check_largest_group",
    "uncounted",
]
