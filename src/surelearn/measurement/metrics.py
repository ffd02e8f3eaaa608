"""What people look for beside the error rate: AUC, Brier score, log loss, calibration, costs, differences."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np

from surelearn.lacking import Lacking
from surelearn.measurement.units import Loss, Sampler
from surelearn.measurement.what import (
    CLIP,
    MOST_LOG_LOSS,
    OF_PROBABILITIES,
    Mask,
    Measurement,
    Slices,
)
from surelearn.subject.probabilities import probabilities_of
from surelearn.types import AnyArray, Array, Ints, Model, RowsLike


def costs_of(is_positive: Mask, called: Mask, cost: float) -> Array:
    """What each answer costs: ``cost`` for a missed positive, 1 for a false alarm, otherwise
    nothing.

    Examples
    --------
    >>> costs_of(np.array([True, True, False, False]), np.array([True, False, True, False]), 40.0)
    array([ 0., 40.,  1.,  0.])
    """
    return np.where(is_positive & ~called, cost, np.where(called & ~is_positive, 1.0, 0.0))


def more_metrics(
    model: Model,
    X: RowsLike,
    y: AnyArray,
    predicted: AnyArray,
    what: Measurement,
    sampler: Sampler,
    values: dict[str, Any],
) -> None:
    """The facts of the metrics that were asked for, but for differences between slices."""
    if "balanced_accuracy" in what.metrics:
        of_class = [np.asarray(y == label) for label in what.classes]
        values["classes.counts"] = [int((mask & (predicted != y)).sum()) for mask in of_class]
        values["classes.sizes"] = [int(mask.sum()) for mask in of_class]
    if "f1" in what.metrics:
        is_positive, called = np.asarray(y == what.positive), np.asarray(predicted == what.positive)
        both = is_positive & called
        values |= sampler.kept(Loss("f1", both, is_positive | called, counted=True))
    if not set(what.metrics) & set(OF_PROBABILITIES):
        return
    probabilities = probabilities_of(model, X, what.classes)  # (n, classes)
    if isinstance(probabilities, Lacking):
        values["probabilities"] = probabilities.reason
        return
    codes = positions(y, what.classes)
    of_truth = np.where(codes < 0, 0.0, probabilities[np.arange(y.size), codes])
    if "brier" in what.metrics:
        squares = np.square(probabilities).sum(axis=1) - 2 * of_truth + 1
        squares = np.square(1 - of_truth) if len(what.classes) == 2 else squares
        values |= sampler.kept(Loss("brier", np.clip(squares, 0.0, 2.0)))
    if "log_loss" in what.metrics:
        # at most the stated range, also where NumPy's logarithm is another in the last digit
        losses = np.minimum(-np.log(np.clip(of_truth, CLIP, 1.0)), MOST_LOG_LOSS)
        values |= sampler.kept(Loss("log_loss", losses))
    if "auc" in what.metrics:
        is_positive = np.asarray(y == what.score_class)
        score = probabilities[:, what.classes.index(what.score_class)]
        values["auc.value"] = area_under_curve(score, is_positive)
        values["auc.positives"] = int(is_positive.sum())
        values["auc.negatives"] = int((~is_positive).sum())
    if "calibration" in what.metrics:
        said, happened = said_and_happened(probabilities, y, predicted, what)
        index = np.searchsorted(np.asarray(what.bins), said, side="left")
        for i, name in enumerate(bin_names(what.bins)):
            inside = np.asarray(index == i)
            values |= sampler.kept(Loss(f"bin[{name}]", happened, inside, counted=True))


def positions(y: AnyArray, classes: tuple[Any, ...]) -> Ints:
    """(n,) labels as positions among the classes; −1 for another."""
    position = {label: i for i, label in enumerate(classes)}
    return np.array([position.get(label, -1) for label in y.tolist()], dtype=np.intp)


def said_and_happened(
    probabilities: Array, y: AnyArray, predicted: AnyArray, what: Measurement
) -> tuple[Array, Mask]:
    """What is calibrated: (n,) a probability for each row, and whether it came true. It is that of
    the class that matters (of two: the second), else of the predicted one.
    """
    if what.score_class is not None:
        column = what.classes.index(what.score_class)
        return probabilities[:, column], np.asarray(y == what.score_class)
    codes = [what.classes.index(label) for label in np.asarray(predicted).tolist()]
    return probabilities[np.arange(len(codes)), codes], np.asarray(predicted == y)


def bin_names(bins: tuple[float, ...]) -> list[str]:
    """The bins of probabilities in words, their edges with all their digits.

    Examples
    --------
    >>> bin_names((0.07, 0.51234))
    ['0% to 7%', '7% to 51.234%', '51.234% to 100%']
    """
    ends = [f"{(100 * Decimal(repr(edge))).normalize():f}%" for edge in (0.0, *bins, 1.0)]
    return [f"{low} to {high}" for low, high in pairwise(ends)]


def area_under_curve(score: Array, is_positive: Mask) -> float:
    """How often a positive row's score is above a negative row's, ties counting one half (Mann and
    Whitney); 0.5 without rows of both.

    Examples
    --------
    >>> area_under_curve(np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, False, True, True]))
    0.875
    """
    positives, negatives = int(is_positive.sum()), int((~is_positive).sum())
    if not positives or not negatives:
        return 0.5
    # ranks from 1, equal scores sharing their mean rank
    _, index, counts = np.unique(score, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[index]
    wins = float(ranks[is_positive].sum()) - positives * (positives + 1) / 2
    return wins / (positives * negatives)


def differences(
    y: AnyArray, predicted: AnyArray, what: Measurement, parts: Mapping[str, Mapping[str, Mask]]
) -> dict[str, Any]:
    """For the values of each column: how many rows have them, and how many of these are answered
    wrongly, called positive, and found among the positive ones.
    """
    everywhere = np.ones(y.size, dtype=bool)
    rates = {"error": (np.asarray(predicted != y), everywhere)}
    if what.positive is not None:
        called = np.asarray(predicted == what.positive)
        rates["selection"] = (called, everywhere)
        rates["sensitivity"] = (called, np.asarray(y == what.positive))
    facts: dict[str, Any] = {}
    for column, masks in parts.items():
        for rate, (happened, within) in rates.items():
            inside = [within & mask for mask in masks.values()]
            facts[f"between[{column}].{rate}.counts"] = [int((happened & m).sum()) for m in inside]
            facts[f"between[{column}].{rate}.sizes"] = [int(m.sum()) for m in inside]
    return facts


@runtime_checkable
class Parted(Protocol):
    """Slices that know which column each of them is of, such as `surelearn.slicing.Cuts`."""

    def parts(self, X: Any) -> dict[str, dict[str, Mask]]:
        """Masks by column and name."""
        ...


def compared_parts(slices: Slices | None, X: RowsLike | None) -> dict[str, dict[str, Mask]]:
    """Columns with at least two slices, whose rates can be compared: masks by column and name."""
    found = slices.parts(X) if isinstance(slices, Parted) else {}
    return {column: masks for column, masks in found.items() if len(masks) > 1}
