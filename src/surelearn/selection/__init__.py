"""Which rows do what, and which candidate is chosen."""

from surelearn.selection.costs import Costs
from surelearn.selection.criteria import NestedFamily, criteria
from surelearn.selection.cross_validation import Resampling
from surelearn.selection.honest import (
    Estimate,
    bias_corrected_cross_validation,
    nested_cross_validation,
)
from surelearn.selection.selector import Selection, select
from surelearn.selection.split import Split, split_rows

__all__ = [
    "Costs",
    "Estimate",
    "NestedFamily",
    "Resampling",
    "Selection",
    "Split",
    "bias_corrected_cross_validation",
    "criteria",
    "nested_cross_validation",
    "select",
    "split_rows",
]
