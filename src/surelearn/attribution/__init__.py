"""What each column, row or pixel contributes to what a model says: values of coalition games,
and gradients.
"""

import warnings
from typing import Any

from surelearn.attribution.data_rows import data_banzhaf, data_shapley, nearest_neighbors
from surelearn.attribution.explaining import explain
from surelearn.attribution.gradients import (
    highest_rows,
    integrated_gradients,
    maximize_activation,
    saliency,
    unit_of,
)
from surelearn.attribution.result import Attribution, RankingStability
from surelearn.attribution.values import (
    banzhaf,
    beta_shapley,
    leave_one_out,
    probabilistic_value,
    random_order,
    shapley,
)
from surelearn.attribution.words_of_texts import TermShares, WordAttribution, words

__all__ = [
    "Attribution",
    "RankingStability",
    "TermShares",
    "WordAttribution",
    "banzhaf",
    "beta_shapley",
    "data_banzhaf",
    "data_shapley",
    "explain",
    "highest_rows",
    "integrated_gradients",
    "leave_one_out",
    "maximize_activation",
    "nearest_neighbors",
    "probabilistic_value",
    "random_order",
    "saliency",
    "shapley",
    "unit_of",
    "words",
]

_EARLIER = {"Stability": RankingStability, "nearest_neighbours": nearest_neighbors}


def __getattr__(name: str) -> Any:
    """What had another name in an earlier version, for one release."""
    if name not in _EARLIER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    today = _EARLIER[name]
    message = (
        f"surelearn.attribution.{name} is {today.__name__} now; the earlier name goes with"
        " version 0.4"
    )
    warnings.warn(message, FutureWarning, stacklevel=2)
    return today
