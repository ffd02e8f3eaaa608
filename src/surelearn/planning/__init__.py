"""How many labeled rows a certificate needs, and how likely it then comes out as wished.

The rows are those held back to certify: the model has not seen them. Five questions: an error rate
of at most so much, a prediction interval, a sensitivity of at least so much, a gain over another
model, prediction sets. Each is answered for the part of δ that the claim has on an audit's page (`SHARES`) and for a
certificate of that claim alone, which has all of δ.
"""

from surelearn.planning.answers import Curve, Need, Plan
from surelearn.planning.gains import gain_power, gain_rows
from surelearn.planning.questions import plan
from surelearn.planning.rates import (
    SHARES,
    interval_rows,
    power,
    rows_holding,
    rows_needed,
    sensitivity_rows,
)
from surelearn.planning.tables import Allotment, allotment

__all__ = [
    "SHARES",
    "Allotment",
    "Curve",
    "Need",
    "Plan",
    "allotment",
    "gain_power",
    "gain_rows",
    "interval_rows",
    "plan",
    "power",
    "rows_holding",
    "rows_needed",
    "sensitivity_rows",
]
