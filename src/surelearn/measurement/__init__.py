"""Facts of one fixed predictor on fresh rows: losses per row, averaged over independent units.

A task is a named set of losses: a classifier's errors, per class and per slice, a regression's
distance from the truth, or any loss in a stated range that the caller brings. Measuring is kept
apart from claiming, so that a certificate can be verified by measuring again.
"""

from surelearn.measurement.flow import (
    measure,
)
from surelearn.measurement.given import (
    LossBoundError,
    check_range,
    losses_of,
)
from surelearn.measurement.metrics import (
    Parted,
    area_under_curve,
    bin_names,
    compared_parts,
    costs_of,
    said_and_happened,
)
from surelearn.measurement.what import (
    CLIP,
    LOSSES,
    METRICS,
    MOST_LOG_LOSS,
    MOST_VALUES,
    OF_PROBABILITIES,
    FurtherRate,
    Happened,
    LossesPerUnit,
    Mask,
    Measurement,
    Slices,
)

__all__ = [
    "CLIP",
    "LOSSES",
    "METRICS",
    "MOST_LOG_LOSS",
    "MOST_VALUES",
    "OF_PROBABILITIES",
    "FurtherRate",
    "Happened",
    "LossBoundError",
    "LossesPerUnit",
    "Mask",
    "Measurement",
    "Parted",
    "Slices",
    "area_under_curve",
    "bin_names",
    "check_range",
    "compared_parts",
    "costs_of",
    "losses_of",
    "measure",
    "said_and_happened",
]
