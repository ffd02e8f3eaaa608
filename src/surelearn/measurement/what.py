"""What is measured: fixed before the rows are looked at, and kept with a certificate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from surelearn.operating import PredictionSets, Requirement, Walk
from surelearn.subject import Task
from surelearn.types import Array

LOSSES: dict[str, Callable[[Array], Array]] = {"absolute": np.abs, "squared": np.square}
MOST_VALUES = 100  # slices that a column of values may make
# what people look for beside the error rate; the second ones need probabilities
OF_PROBABILITIES = ("auc", "brier", "log_loss", "calibration")
METRICS = ("balanced_accuracy", "f1", "differences", *OF_PROBABILITIES)
CLIP = 1e-3  # a smaller probability of the truth counts as this one in the claimed log loss
MOST_LOG_LOSS = -math.log(CLIP)
Mask = npt.NDArray[np.bool_]
Slices = Mapping[str, Any] | Callable[[Any], Mapping[str, Any]]
LossesPerUnit = npt.ArrayLike | Callable[[Any], npt.ArrayLike]
_LATER = 19  # options that came after the first version: kept only where they are set


class FurtherRate(NamedTuple):
    """One more rate of the same units, which shares δ with the others of its kind.

    Attributes
    ----------
    quantity, label : of its claim
    kind : "upper", how often something bad happens at most; "interval", a rate from both sides
    """

    quantity: str
    label: str
    kind: Literal["upper", "interval"] = "upper"


class Happened(NamedTuple):
    """Whether it happened, per row, and which rows it is about (None: all)."""

    what: FurtherRate
    values: Mask
    within: Mask | None = None


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What is measured: everything that must be fixed before the rows are looked at.

    Attributes
    ----------
    task : "classification", "regression" or, for losses that the caller brings, "losses"
    classes : the labels the model knows
    positive : the class that matters, if one does
    constants : labels whose constant answer is compared with
    cost : what a missed positive costs when a false alarm costs 1
    by_cost : whether constant answers and the baseline are compared with by their cost; by their
        errors in certificates that were made before the mean cost could be the headline
    alpha : regression: the fraction of new targets that a prediction interval may miss
    loss, loss_bound : regression: which loss is averaged, and its stated range [0, loss_bound];
        losses: what it is called
    largest_group : no group has more rows, as stated; losses are then summed over groups, too
    loss_range : losses: the stated range
    binary : losses: whether each is 0 or 1, by its type
    weight_bound : no unit's weight is larger, as stated; losses are then weighted
    proportional : whether the weights are known up to a factor only
    metrics : classification: which of `METRICS` are measured, too
    bins : where the bins of a calibration claim are cut, between 0 and 1, rising
    unseen : labels that the rows may have, too: they count as errors, and nothing is claimed about
        them
    better : losses: "lower", or "higher" where they are grades, which are bounded from below
    further : more rates of the same units
    require : what the operating point must keep, `surelearn.operating.Requirement` as text; then only
        what holds at a threshold that is chosen on these rows is measured
    thresholds, walk_delta : those of its walk, in their order, and the δ of each step
    sets : the part of new rows whose true label prediction sets may miss; None: there are none
    per_class, set_score, sets_delta : as in `surelearn.operating.PredictionSets`
    banded : regression: whether intervals have a width of each row's own
    target_range : regression: what the target can be, as stated: intervals are clipped to it, and a
        target outside is a miss
    order : what the order of the units is drawn by, in which some theorems need them: "rows", the hash
        of the rows; "" in certificates that were made before that: one order for all rows, which is
        an unlucky one for some files that are sorted by their losses
    """

    task: Task | Literal["losses"]
    classes: tuple[Any, ...] = ()
    positive: Any = None
    constants: tuple[Any, ...] = ()
    cost: float | None = None
    by_cost: bool = False
    alpha: float = 0.1
    loss: str = "absolute"
    loss_bound: float | None = None
    largest_group: int | None = None
    loss_range: tuple[float, float] | None = None
    binary: bool = False
    weight_bound: float | None = None
    proportional: bool = False
    metrics: tuple[str, ...] = ()
    bins: tuple[float, ...] = ()
    unseen: tuple[Any, ...] = ()
    better: Literal["lower", "higher"] = "lower"
    further: tuple[FurtherRate, ...] = ()
    require: str = ""
    thresholds: tuple[float, ...] = ()
    walk_delta: float = 0.0
    sets: float | None = None
    per_class: bool = False
    set_score: str = "probability"
    sets_delta: float = 0.0
    banded: bool = False
    target_range: tuple[float, float] | None = None
    order: Literal["", "rows"] = ""

    def options(self) -> dict[str, Any]:
        """Plain options for the facts; the last ones, which came later, and those of other
        tasks only where they are set.
        """
        always = () if self.task == "losses" else [field.name for field in fields(self)][:-_LATER]
        values = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {
            name: value
            for name, (value, default) in values.items()
            if name in always or value != default
        }

    @property
    def score_class(self) -> Any:
        """The class whose probability is ranked and calibrated: the one that matters, of two the
        second; None where it is each row's predicted one.
        """
        if self.positive is None and len(self.classes) == 2:
            return self.classes[1]
        return self.positive

    @property
    def walk(self) -> Walk | None:
        """The walk along thresholds that is asked for, if one is."""
        if not self.thresholds:
            return None
        return Walk(Requirement.parse(self.require), self.thresholds, self.walk_delta, self.cost)

    @property
    def prediction_sets(self) -> PredictionSets | None:
        """The sets that are asked for, if they are."""
        if self.sets is None:
            return None
        return PredictionSets(
            self.sets, self.classes, self.per_class, self.set_score, self.sets_delta
        )

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Measurement:
        """Read what `options` wrote."""
        kept = {key: value for key, value in options.items() if key in cls.__dataclass_fields__}
        if "further" in kept:
            kept["further"] = tuple(FurtherRate(*one) for one in kept["further"])
        return cls(**kept)
