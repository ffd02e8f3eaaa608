"""Which rows do what, and which candidate is chosen."""

from surelearn.selection.cross_validation import Resampling
from surelearn.selection.selector import Selection, select
from surelearn.selection.split import Split, split_rows

__all__ = ["Resampling", "Selection", "Split", "select", "split_rows"]
