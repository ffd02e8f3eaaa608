"""Losses per row of one fixed predictor on fresh rows, averaged over independent units: the facts
of a certificate.

A task is a named set of losses: a classifier's errors, per class and per slice, a regression's
distance from the truth, or any loss in a stated range that the caller brings. Measuring is kept
apart from claiming, so that a certificate can be verified by measuring again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from surelearn.lacking import Lacking
from surelearn.operating import PredictionSets, Requirement, Walk, walk_facts
from surelearn.subject import Task, predict_with
from surelearn.subject.bands import band_of, outside
from surelearn.subject.predicting import missing
from surelearn.subject.probabilities import probabilities_of as probabilities_of
from surelearn.subject.recorded import (
    from_columns as from_columns,  # for certificates, which are below
)
from surelearn.types import AnyArray, Array, Ints, Model, RowsLike

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
_LATER = 18  # options that came after the first version: kept only where they are set


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


class LossBoundError(ValueError):
    """A stated bound on the loss that the rows contradict: stating a larger one now would be
    choosing it by them.
    """


@dataclass(frozen=True, eq=False)
class Loss:
    """One number per row, to be averaged.

    Attributes
    ----------
    name : of its facts
    values : one number per row
    within : the rows that it is about; None, all
    counted : whether it is 0 or 1, and counted
    """

    name: str
    values: Array | Mask
    within: Mask | None = None
    counted: bool = False


def measure(
    model: Model,
    X: RowsLike | None,
    y: npt.ArrayLike | None,
    what: Measurement,
    *,
    groups: npt.ArrayLike | None = None,
    slices: Slices | None = None,
    baseline: Model = None,
    novel: Mask | None = None,
    losses: LossesPerUnit | None = None,
    baseline_losses: LossesPerUnit | None = None,
    weights: npt.ArrayLike | None = None,
    further: Sequence[Happened] = (),
) -> dict[str, Any]:
    """Predict once, or take the losses, and gather every fact that `certify` can make a claim of.

    A rate is kept as ``name.count`` of ``name.n`` rows or, with groups, as ``name.means``: one mean
    a group that has such rows. Other losses, and those to be compared row by row, are kept as
    ``name.losses``; with weights so are all, as means by weight, beside ``name.weights``. Samples
    are put in a fixed pseudo-random order, since some theorems need an order that does not depend
    on the losses.

    Raises
    ------
    ValueError
        in one sentence, for empty or mismatched data, missing or unknown labels, missing
        predictions, losses out of range
    """
    if losses is not None and what.task != "losses":
        raise ValueError(
            "losses go with a certificate of losses per unit, and this one is about a model's"
            " predictions"
        )
    by_losses = what.task == "losses"
    truth = (
        _checked_losses(losses_of(losses, model, X), X, what, "losses")
        if by_losses
        else _target(y, X)
    )
    sampler = _Sampler(truth.size, groups, _weights(weights, truth.size, what))
    marks = {f"slice[{name}]": mask for name, mask in _slices(slices, X, truth.size).items()}
    if novel is not None:
        marks["novel"] = _mask("novel", novel, truth.size)
    values: dict[str, Any] = {"rows": truth.size}
    if groups is not None:
        values["groups"] = sampler.units
    rows = cast("RowsLike", X)  # there are some unless losses were given: `_target` counted them
    if what.task == "classification":
        parts = compared_parts(slices, X) if "differences" in what.metrics else {}
        main = _classification(model, rows, truth, what, baseline, sampler, values, parts)
    elif what.task == "regression":
        main = _regression(model, rows, truth, what, baseline, sampler, values)
    else:
        other = None
        if baseline_losses is not None:
            name = "baseline_losses"
            other = _checked_losses(losses_of(baseline_losses, None, X, name), X, what, name)
            if other.size != truth.size:
                raise ValueError(
                    f"losses has {truth.size} units and {name} has {other.size}: they must be of"
                    " the same units"
                )
        main = _losses(truth, other, what, sampler, values)
    if main is not None:
        for name, mask in marks.items():
            values |= sampler.kept(replace(main, name=name, within=mask))
    for i, one in enumerate(further):
        happened = _mask(one.what.label, one.values, truth.size)
        inside = None if one.within is None else _mask(one.what.label, one.within, truth.size)
        values |= sampler.kept(Loss(f"further[{i}]", happened, inside, counted=True))
    return values


def costs_of(is_positive: Mask, called: Mask, cost: float) -> Array:
    """What each answer costs: ``cost`` for a missed positive, 1 for a false alarm, otherwise
    nothing.

    Examples
    --------
    >>> costs_of(np.array([True, True, False, False]), np.array([True, False, True, False]), 40.0)
    array([ 0., 40.,  1.,  0.])
    """
    return np.where(is_positive & ~called, cost, np.where(called & ~is_positive, 1.0, 0.0))


def _classification(
    model: Model,
    X: RowsLike,
    y: AnyArray,
    what: Measurement,
    baseline: Model,
    sampler: _Sampler,
    values: dict[str, Any],
    parts: Mapping[str, Mapping[str, Mask]],
) -> Loss | None:
    labels = (*what.classes, *what.unseen)
    unknown = [label for label in _unique(y) if label not in labels]
    if unknown:
        raise ValueError(
            f"y holds {unknown[0]!r}, a label the model never saw: it knows {_listed(what.classes)}"
        )
    predicted = _labels(model, X, y.size, "model", what)
    if (sets := what.prediction_sets) is not None:
        scores = sets.scores(model, X)
        values |= sets.facts(scores, _positions(y, what.classes), sampler.one_row_a_unit())
    if (walk := what.walk) is not None:
        values |= walk_facts(
            walk, model, X, y, positive=what.positive, classes=what.classes, ordered=sampler.ordered
        )
        _more_metrics(model, X, y, predicted, what, sampler, values)
        return None
    wrong = np.asarray(predicted != y, dtype=bool)
    risk = Loss("risk", wrong, counted=True)
    values |= sampler.kept(risk, compared=True)
    values["risk.rate"] = sampler.mean(wrong)
    if what.largest_group is not None and not what.by_cost:
        values |= sampler.sums("risk", wrong)
    for label in labels:
        values |= sampler.kept(replace(risk, name=f"class[{label}]", within=np.asarray(y == label)))
    if what.positive is not None:
        is_positive, called = np.asarray(y == what.positive), np.asarray(predicted == what.positive)
        values |= sampler.kept(Loss("sensitivity", called, is_positive, counted=True))
        values |= sampler.kept(Loss("specificity", ~called, ~is_positive, counted=True))
        values |= sampler.kept(Loss("precision", is_positive, called, counted=True))
        if what.cost is not None:
            costs = costs_of(is_positive, called, what.cost)
            values |= sampler.kept(Loss("cost", costs))
            if what.largest_group is not None and what.by_cost:
                values |= sampler.sums("cost", costs)
    others = {f"constant[{label}]": label for label in what.constants}
    if baseline is not None:
        others["baseline"] = _labels(baseline, X, y.size, "baseline", what)
    for name, answers in others.items():
        if what.by_cost and what.cost is not None:
            costs = costs_of(
                np.asarray(y == what.positive), np.asarray(answers == what.positive), what.cost
            )
            values |= sampler.kept(Loss(f"{name}.cost", costs))
        else:
            values |= sampler.kept(
                Loss(name, np.asarray(y != answers, dtype=bool), counted=True), compared=True
            )
    _more_metrics(model, X, y, predicted, what, sampler, values)
    values |= _differences(y, predicted, what, parts)
    return risk


def _more_metrics(
    model: Model,
    X: RowsLike,
    y: AnyArray,
    predicted: AnyArray,
    what: Measurement,
    sampler: _Sampler,
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
    codes = _positions(y, what.classes)
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


def _positions(y: AnyArray, classes: tuple[Any, ...]) -> Ints:
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


def _differences(
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


def _regression(
    model: Model,
    X: RowsLike,
    y: AnyArray,
    what: Measurement,
    baseline: Model,
    sampler: _Sampler,
    values: dict[str, Any],
) -> Loss | None:
    y = _numeric(y, "y")
    error = _numeric(_predictions(model, X, y.size, "model"), "the model's predictions") - y
    values |= _of_interval(model, X, y, error, what, sampler.one_row_a_unit())
    losses = LOSSES[what.loss](error)
    values["mean_loss"] = sampler.mean(losses)
    if what.loss_bound is None:
        return None
    if losses.max() > what.loss_bound:
        raise LossBoundError(
            f"loss_bound={what.loss_bound:g} is not a bound: some row has a larger {what.loss} loss"
        )
    other = None
    if baseline is not None:
        other = LOSSES[what.loss](
            _numeric(_predictions(baseline, X, y.size, "baseline"), "the baseline's predictions")
            - y
        )
        if other.max() > what.loss_bound:
            raise LossBoundError(
                f"loss_bound={what.loss_bound:g} is not a bound: the baseline has a larger"
                f" {what.loss} loss"
            )
    return _losses(losses, other, what, sampler, values)


def _of_interval(
    model: Model, X: RowsLike, y: Array, error: Array, what: Measurement, rows: npt.NDArray[np.intp]
) -> dict[str, Any]:
    """The scores whose rank an interval is made of: distances from the truth, or those of the row's
    own width; ∞ for targets outside the stated range, of which there may be some.
    """
    beyond = outside(y, what.target_range)
    known = what.target_range is not None
    facts: dict[str, Any] = {"outside.count": int(beyond.sum())} if known else {}
    if not what.banded:
        away = np.where(beyond, np.inf, np.abs(error))
        return {"residuals": sorted(away[rows].tolist()), **facts}
    band = band_of(model, X, what.target_range)
    if isinstance(band, Lacking):
        raise ValueError(
            "the certificate is about intervals with a width of each row's own, and the model gives"
            " none"
        )
    if band.low.size != y.size:
        raise ValueError(f"predict_band gives {band.low.size} widths for {y.size} rows")
    return {"scores": sorted(band.scores(y)[rows].tolist()), **facts}


def _losses(
    losses: Array,
    baseline_losses: Array | None,
    what: Measurement,
    sampler: _Sampler,
    values: dict[str, Any],
) -> Loss:
    main = Loss("loss", losses, counted=what.binary)
    values |= sampler.kept(main, compared=True)
    if what.largest_group is not None:
        values |= sampler.sums("loss", losses)
    if baseline_losses is not None:
        values |= sampler.kept(Loss("baseline", baseline_losses))
    return main


def losses_of(
    losses: LossesPerUnit | None, model: Model, units: RowsLike | None, name: str = "losses"
) -> npt.NDArray[Any]:
    """Losses as they were given, or as a function of the units (the model's own
    ``unit_losses``) gives them.
    """
    source = losses if losses is not None else getattr(model, "unit_losses", None)
    if source is None:
        raise ValueError(f"{name} are needed: one number per unit, or a function of the units")
    if callable(source) and units is None:
        raise ValueError(f"{name} is a function of the units: pass them, too, as X=")
    given = source(units) if callable(source) else source
    try:
        array = np.asarray(given)
        array.astype(float)
    # words, sequences of different lengths, a tensor that needs gradients
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{name} must be numbers, one per unit") from None
    return array


def _checked_losses(
    losses: npt.NDArray[Any], units: RowsLike | None, what: Measurement, name: str
) -> Array:
    """Losses as numbers in the stated range, one per unit."""
    array = losses.astype(float)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one number per unit, not of shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty: there are no units to certify on")
    if units is not None and _length(units) != array.size:
        raise ValueError(
            f"X has {_length(units)} units and {name} has {array.size}: they must describe the same"
            " units"
        )
    if not np.isfinite(array).all():
        raise ValueError(
            f"{name} must be finite: {int((~np.isfinite(array)).sum())} of {array.size} are not"
        )
    low, high = what.loss_range or (0.0, 1.0)
    if array.min() < low or array.max() > high:
        outside = array[(array < low) | (array > high)]
        raise LossBoundError(
            f"loss_range=({low:g}, {high:g}) is not the range of {name}: {outside.size} of"
            f" {array.size} lie outside, such as {outside[0]:g}"
        )
    return array


def check_range(loss_range: tuple[float, float], name: str = "loss_range") -> tuple[float, float]:
    """A stated range as two finite numbers, the lower one first."""
    try:
        low, high = map(float, loss_range)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(high - low) and low < high):
        raise ValueError(
            f"{name} must be two finite numbers, the lower one first, not {loss_range!r:.60}"
        )
    return low, high


class _Sampler:
    """The independent units, rows or groups, in a fixed pseudo-random order, and means over
    them, by weight if given.
    """

    def __init__(self, n: int, groups: npt.ArrayLike | None, weights: Array | None = None) -> None:
        self.grouped, self.weights = groups is not None, weights
        if groups is None:
            index = np.arange(n)
        else:
            labels = np.asarray(groups)
            if labels.shape != (n,):
                raise ValueError(
                    f"groups must name one group a row: it has shape {labels.shape}, y has {n} rows"
                )
            if missing(labels).any():
                raise ValueError(
                    "groups must not be missing: give rows of an unknown group one of their own"
                )
            index = np.unique(
                labels.astype(str) if labels.dtype == object else labels, return_inverse=True
            )[1]
        self.units = int(index.max()) + 1
        # the order must not depend on the losses; that it is always the same is harmless
        rng = np.random.default_rng(0)
        self.unit_of_row = rng.permutation(self.units)[index]
        self.row_order = rng.permutation(n)

    @property
    def sizes(self) -> npt.NDArray[np.intp]:
        """How many rows each unit has."""
        return np.bincount(self.unit_of_row, minlength=self.units)

    def sums(self, name: str, values: Array | Mask) -> dict[str, Any]:
        """The sum of ``values`` over each unit's rows, and their number."""
        totals = np.bincount(
            self.unit_of_row, np.asarray(values, dtype=float), minlength=self.units
        )
        return {f"{name}.group_losses": totals, f"{name}.group_sizes": self.sizes}

    def kept(self, loss: Loss, *, compared: bool = False) -> dict[str, Any]:
        """The facts of a loss: a count, or one mean a unit; ``compared``: the means in any case."""
        within = np.ones(len(loss.values), dtype=bool) if loss.within is None else loss.within
        facts: dict[str, Any] = {}
        if self.weights is not None:
            facts[f"{loss.name}.weights"] = self._average(
                self.weights, np.ones(len(within)), within
            )
        elif loss.counted:
            facts |= self._rate(loss.name, np.asarray(loss.values, dtype=bool), within)
        if compared or not loss.counted or self.weights is not None:
            facts[f"{loss.name}.losses"] = self._means(loss.values, within)
        return facts

    def ordered(self, values: Array) -> Array:
        """One number per unit, in the fixed order."""
        return self._means(values, np.ones(len(values), dtype=bool))

    def mean(self, values: Array | Mask) -> float:
        """The mean over all units."""
        means = self._means(values, np.ones(len(values), dtype=bool))
        if self.weights is None:
            return float(means.mean())
        weights = self._average(
            self.weights, np.ones(len(values)), np.ones(len(values), dtype=bool)
        )
        return float(np.sum(weights * means) / weights.sum()) if weights.any() else math.nan

    def _means(self, values: Array | Mask, within: Mask) -> Array:
        """Mean of ``values`` over the rows ``within`` each unit, for the units that have such
        rows.
        """
        plain = self._average(values, np.ones(len(values)), within)
        if self.weights is None:
            return plain
        weighted = self._average(values, self.weights, within)
        return np.where(np.isnan(weighted), plain, weighted)  # a unit that weighs nothing

    def _average(self, values: Array | Mask, weights: Array, within: Mask) -> Array:
        values, unit = np.asarray(values, dtype=float), self.unit_of_row[within]
        totals = np.bincount(unit, (weights * values)[within], minlength=self.units)
        sizes = np.bincount(unit, weights[within], minlength=self.units)
        there = np.bincount(unit, minlength=self.units) > 0
        with np.errstate(invalid="ignore"):
            return np.clip(totals[there] / sizes[there], np.min(values), np.max(values))

    def _rate(self, name: str, happened: Mask, within: Mask) -> dict[str, Any]:
        """How often something happened within some rows: a count, or one mean a group."""
        if self.grouped:
            return {f"{name}.means": self._means(happened, within)}
        return {f"{name}.count": int((happened & within).sum()), f"{name}.n": int(within.sum())}

    def one_row_a_unit(self) -> npt.NDArray[np.intp]:
        """One random row of every unit."""
        shuffled = self.unit_of_row[self.row_order]
        return self.row_order[np.unique(shuffled, return_index=True)[1]]


def _target(y: npt.ArrayLike | None, X: RowsLike | None) -> Any:
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y must be one-dimensional, not of shape {y.shape}")
    if (rows := _length(X)) != y.size:
        raise ValueError(f"X has {rows} rows and y has {y.size}: they must describe the same rows")
    if y.size == 0:
        raise ValueError("there are no rows to certify on")
    if missing(y).any():
        raise ValueError(f"y must not be missing: {int(missing(y).sum())} of {y.size} values are")
    return y


def _labels(model: Model, X: RowsLike, n: int, name: str, what: Measurement) -> Any:
    predicted = _predictions(model, X, n, name, what.classes)
    known = (*what.classes, *what.unseen)
    unknown = [label for label in _unique(predicted) if label not in known]
    if unknown:
        raise ValueError(
            f"the {name} predicts {unknown[0]!r}, which is no class: it knows"
            f" {_listed(what.classes)}"
        )
    return predicted


def _predictions(
    model: Model, X: RowsLike, n: int, name: str, classes: tuple[Any, ...] | None = None
) -> Any:
    predicted = np.asarray(predict_with(model, classes)(X))
    if predicted.shape != (n,):
        raise ValueError(
            f"the {name} must predict one value per row: {n} rows gave predictions of shape"
            f" {predicted.shape}"
        )
    if missing(predicted).any():
        raise ValueError(f"the {name} predicts NaN for {int(missing(predicted).sum())} of {n} rows")
    return predicted


def _length(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") else len(X)


def _weights(weights: npt.ArrayLike | None, n: int, what: Measurement) -> Array | None:
    """One weight per row, in the stated range."""
    if what.weight_bound is None:
        return None
    if weights is None:
        raise ValueError(
            "weights are needed, one per unit: the certificate is about a shifted population"
        )
    array = _numeric(weights, "weights")
    if array.shape != (n,):
        raise ValueError(
            f"weights must be one number per unit: it has shape {array.shape}, there are {n} units"
        )
    if array.min() < 0 or array.max() > what.weight_bound:
        strange = array.min() if array.min() < 0 else array.max()
        raise LossBoundError(
            f"weights must lie in [0, weight_bound={what.weight_bound:g}], and some unit has"
            f" {strange:g}"
        )
    return array


def _slices(slices: Slices | None, X: RowsLike | None, n: int) -> dict[str, Mask]:
    """Masks by name; a column of values is one slice per value."""
    if slices is None:
        return {}
    if callable(slices) and X is None:
        raise ValueError("slices is a function of the units: pass them, too, as X=")
    named = cast("object", slices(X) if callable(slices) else slices)
    if not isinstance(named, Mapping):
        raise TypeError(
            "slices must map names to masks, or be a function of X that does (see"
            " surelearn.slicing.cut)"
        )
    masks: dict[str, Mask] = {}
    for name, column in cast("Mapping[str, npt.ArrayLike]", named).items():
        values = np.asarray(column)
        if values.dtype.kind not in "OUTiu" or values.shape != (n,):
            masks[name] = _mask(name, column, n)
            continue
        words = np.where(missing(values), "missing", values.astype(str))
        known = _unique(words)
        if len(known) > MOST_VALUES:
            raise ValueError(
                f"slice {name!r} has {len(known)} values, more than {MOST_VALUES}: see"
                " surelearn.slicing.cut"
            )
        masks |= {f"{name} = {value}": words == value for value in known}
    return masks


def _mask(name: str, mask: npt.ArrayLike, n: int) -> Mask:
    mask = np.asarray(mask)
    if mask.dtype != bool or mask.shape != (n,):
        raise ValueError(f"slice {name!r} must be a boolean mask with one value per row")
    return mask


def _numeric(values: npt.ArrayLike, name: str) -> Array:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    return array


def _unique(values: npt.NDArray[Any]) -> list[Any]:
    return list(dict.fromkeys(values.tolist()))


def _listed(labels: tuple[Any, ...], most: int = 5) -> str:
    names = [repr(label) for label in labels[:most]]
    return ", ".join(names) + (f" and {len(labels) - most} more" if len(labels) > most else "")
