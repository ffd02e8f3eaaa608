"""Facts of one fixed predictor on fresh rows: counts of errors, per class, per slice, per group, and per-row losses.

Measuring is kept apart from claiming, so that a certificate can be verified by measuring again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.adapters import Task, predict_with
from surelearn.adapters.predicting import missing

LOSSES = {"absolute": lambda error: np.abs(error), "squared": lambda error: error**2}
Mask = npt.NDArray[np.bool_]
Slices = Mapping[str, Mask] | Callable[[Any], Mapping[str, Mask]]


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What is measured: everything that must be fixed before the rows are looked at.

    Attributes
    ----------
    task : "classification" or "regression"
    classes : the labels the model knows
    positive : the class that matters, if one does
    constants : labels whose constant answer is compared with
    cost : what a missed positive costs when a false alarm costs 1
    by_cost : whether constant answers and the baseline are compared with by their cost; by their errors in certificates
        that were made before the mean cost could be the headline
    alpha : regression: the fraction of new targets that a prediction interval may miss
    loss, loss_bound : regression: which loss is averaged, and its stated range [0, loss_bound]
    largest_group : no group has more rows, as stated; losses are then summed over groups, too
    """

    task: Task
    classes: tuple[Any, ...] = ()
    positive: Any = None
    constants: tuple[Any, ...] = ()
    cost: float | None = None
    by_cost: bool = False
    alpha: float = 0.1
    loss: str = "absolute"
    loss_bound: float | None = None
    largest_group: int | None = None

    def options(self) -> dict[str, Any]:
        """Plain options for the facts."""
        return asdict(self)

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Measurement:
        """Read what `options` wrote."""
        return cls(**{key: value for key, value in options.items() if key in cls.__dataclass_fields__})


class LossBoundError(ValueError):
    """A stated bound on the loss that the rows contradict: stating a larger one now would be choosing it by them."""


def measure(
    model: Any,
    X: Any,
    y: Any,
    what: Measurement,
    *,
    groups: Any = None,
    slices: Slices | None = None,
    baseline: Any = None,
    novel: Mask | None = None,
) -> dict[str, Any]:
    """Predict once and gather every fact that `certify` can make a claim of.

    A rate is kept as ``name.count`` of ``name.n`` rows or, with groups, as ``name.means``: one mean a group that has such
    rows. Losses to be compared row by row are kept as ``name.losses``. Samples are put in a fixed pseudo-random order,
    since some theorems need an order that does not depend on the losses.

    Raises
    ------
    ValueError
        in one sentence, for empty or mismatched data, missing or unknown labels, missing predictions
    """
    y = _target(y, X)
    sampler = _Sampler(y.size, groups)
    marks = {f"slice[{name}]": _mask(name, mask, y.size) for name, mask in _slices(slices, X).items()}
    if novel is not None:
        marks["novel"] = _mask("novel", novel, y.size)
    values: dict[str, Any] = {"rows": y.size}
    if groups is not None:
        values["groups"] = sampler.units
    if what.task == "classification":
        losses = _classification(model, X, y, what, baseline, sampler, values)
        for name, mask in marks.items():
            values |= sampler.rate(name, losses == 1, mask)
    else:
        losses = _regression(model, X, y, what, baseline, sampler, values)
        if losses is not None:
            for name, mask in marks.items():
                values[f"{name}.losses"] = sampler.means(losses, mask)
    return values


def costs_of(is_positive: Mask, called: Mask, cost: float) -> npt.NDArray[np.float64]:
    """What each answer costs: ``cost`` for a missed positive, 1 for a false alarm, otherwise nothing.

    Examples
    --------
    >>> costs_of(np.array([True, True, False, False]), np.array([True, False, True, False]), 40.0)
    array([ 0., 40.,  1.,  0.])
    """
    return np.where(is_positive & ~called, cost, np.where(called & ~is_positive, 1.0, 0.0))


def _classification(
    model: Any, X: Any, y: Any, what: Measurement, baseline: Any, sampler: _Sampler, values: dict[str, Any]
) -> npt.NDArray[np.float64]:
    unknown = [label for label in _unique(y) if label not in what.classes]
    if unknown:
        raise ValueError(f"y holds {unknown[0]!r}, a label the model never saw: it knows {_listed(what.classes)}")
    predicted = _labels(model, X, y.size, "model", what.classes)
    wrong = np.asarray(predicted != y, dtype=bool)
    everywhere = np.ones(y.size, dtype=bool)
    values |= sampler.rate("risk", wrong, everywhere)
    values["risk.losses"] = sampler.means(wrong, everywhere)
    values["risk.rate"] = float(np.mean(values["risk.losses"]))
    if what.largest_group is not None and not what.by_cost:
        values |= sampler.sums("risk", wrong)
    for label in what.classes:
        values |= sampler.rate(f"class[{label}]", wrong, y == label)
    if what.positive is not None:
        is_positive, called = np.asarray(y == what.positive), np.asarray(predicted == what.positive)
        values |= sampler.rate("sensitivity", called, is_positive)
        values |= sampler.rate("specificity", ~called, ~is_positive)
        values |= sampler.rate("precision", is_positive, called)
        if what.cost is not None:
            costs = costs_of(is_positive, called, what.cost)
            values["cost.losses"] = sampler.means(costs, everywhere)
            if what.largest_group is not None and what.by_cost:
                values |= sampler.sums("cost", costs)
    others = {f"constant[{label}]": label for label in what.constants}
    if baseline is not None:
        others["baseline"] = _labels(baseline, X, y.size, "baseline", what.classes)
    for name, answers in others.items():
        if what.by_cost and what.cost is not None:
            costs = costs_of(np.asarray(y == what.positive), np.asarray(answers == what.positive), what.cost)
            values[f"{name}.cost.losses"] = sampler.means(costs, everywhere)
        else:
            errs = np.asarray(y != answers, dtype=bool)
            values |= sampler.rate(name, errs, everywhere)
            values[f"{name}.losses"] = sampler.means(errs, everywhere)
    return wrong.astype(float)


def _regression(
    model: Any, X: Any, y: Any, what: Measurement, baseline: Any, sampler: _Sampler, values: dict[str, Any]
) -> npt.NDArray[np.float64] | None:
    y = _numeric(y, "y")
    error = _numeric(_predictions(model, X, y.size, "model"), "the model's predictions") - y
    values["residuals"] = sorted(np.abs(error[sampler.one_row_a_unit()]).tolist())
    everywhere = np.ones(y.size, dtype=bool)
    losses = LOSSES[what.loss](error)
    values["mean loss"] = float(sampler.means(losses, everywhere).mean())
    if what.loss_bound is None:
        return None
    if losses.max() > what.loss_bound:
        raise LossBoundError(f"loss_bound={what.loss_bound:g} is not a bound: some row has a larger {what.loss} loss")
    values["loss.losses"] = sampler.means(losses, everywhere)
    if what.largest_group is not None:
        values |= sampler.sums("loss", losses)
    if baseline is not None:
        other = LOSSES[what.loss](_numeric(_predictions(baseline, X, y.size, "baseline"), "the baseline's predictions") - y)
        if other.max() > what.loss_bound:
            raise LossBoundError(
                f"loss_bound={what.loss_bound:g} is not a bound: the baseline has a larger {what.loss} loss"
            )
        values["baseline.losses"] = sampler.means(other, everywhere)
    return losses


class _Sampler:
    """The independent units, rows or groups, in a fixed pseudo-random order, and means over them."""

    def __init__(self, n: int, groups: Any) -> None:
        self.grouped = groups is not None
        if groups is None:
            index = np.arange(n)
        else:
            labels = np.asarray(groups)
            if labels.shape != (n,):
                raise ValueError(f"groups must name one group a row: it has shape {labels.shape}, y has {n} rows")
            if missing(labels).any():
                raise ValueError("groups must not be missing: give rows of an unknown group one of their own")
            index = np.unique(labels.astype(str) if labels.dtype == object else labels, return_inverse=True)[1]
        self.units = int(index.max()) + 1
        rng = np.random.default_rng(0)  # the order must not depend on the losses; that it is always the same is harmless
        self.unit_of_row = rng.permutation(self.units)[index]
        self.row_order = rng.permutation(n)

    @property
    def sizes(self) -> npt.NDArray[np.intp]:
        """How many rows each unit has."""
        return np.bincount(self.unit_of_row, minlength=self.units)

    def sums(self, name: str, values: Any) -> dict[str, Any]:
        """The sum of ``values`` over each unit's rows, and their number."""
        totals = np.bincount(self.unit_of_row, np.asarray(values, dtype=float), minlength=self.units)
        return {f"{name}.group_losses": totals, f"{name}.group_sizes": self.sizes}

    def means(self, values: Any, within: Any = None) -> npt.NDArray[np.float64]:
        """Mean of ``values`` over the rows ``within`` each unit, for the units that have such rows."""
        rows = np.ones(len(values), dtype=bool) if within is None else np.asarray(within)
        totals = np.bincount(self.unit_of_row[rows], np.asarray(values, dtype=float)[rows], minlength=self.units)
        counts = np.bincount(self.unit_of_row[rows], minlength=self.units)
        return np.clip(totals[counts > 0] / counts[counts > 0], np.min(values), np.max(values))

    def rate(self, name: str, happened: Any, within: Any) -> dict[str, Any]:
        """How often something happened within some rows: a count, or one mean a group."""
        happened, within = np.asarray(happened, dtype=bool), np.asarray(within, dtype=bool)
        if self.grouped:
            return {f"{name}.means": self.means(happened, within)}
        return {f"{name}.count": int((happened & within).sum()), f"{name}.n": int(within.sum())}

    def one_row_a_unit(self) -> npt.NDArray[np.intp]:
        """One random row of every unit."""
        shuffled = self.unit_of_row[self.row_order]
        return self.row_order[np.unique(shuffled, return_index=True)[1]]


def _target(y: Any, X: Any) -> Any:
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y must be one-dimensional, not of shape {y.shape}")
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if rows != y.size:
        raise ValueError(f"X has {rows} rows and y has {y.size}: they must describe the same rows")
    if y.size == 0:
        raise ValueError("there are no rows to certify on")
    if missing(y).any():
        raise ValueError(f"y must not be missing: {int(missing(y).sum())} of {y.size} values are")
    return y


def _labels(model: Any, X: Any, n: int, name: str, classes: tuple[Any, ...]) -> Any:
    predicted = _predictions(model, X, n, name, classes)
    unknown = [label for label in _unique(predicted) if label not in classes]
    if unknown:
        raise ValueError(f"the {name} predicts {unknown[0]!r}, which is no class: it knows {_listed(classes)}")
    return predicted


def _predictions(model: Any, X: Any, n: int, name: str, classes: Any = None) -> Any:
    predicted = np.asarray(predict_with(model, classes)(X))
    if predicted.shape != (n,):
        raise ValueError(f"the {name} must predict one value a row: {n} rows gave predictions of shape {predicted.shape}")
    if missing(predicted).any():
        raise ValueError(f"the {name} predicts NaN for {int(missing(predicted).sum())} of {n} rows")
    return predicted


def _slices(slices: Slices | None, X: Any) -> Mapping[str, Mask]:
    if slices is None:
        return {}
    named = slices(X) if callable(slices) else slices
    if not isinstance(named, Mapping):
        raise TypeError("slices must map names to masks, or be a function of X that does (see surelearn.slicing.cut)")
    return named


def _mask(name: str, mask: Any, n: int) -> Mask:
    mask = np.asarray(mask)
    if mask.dtype != bool or mask.shape != (n,):
        raise ValueError(f"slice {name!r} must be a boolean mask with one value a row")
    return mask


def _numeric(values: Any, name: str) -> npt.NDArray[np.float64]:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers for regression") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    return array


def _unique(values: npt.NDArray[Any]) -> list[Any]:
    return list(dict.fromkeys(values.tolist()))


def _listed(labels: tuple[Any, ...], most: int = 5) -> str:
    names = [repr(label) for label in labels[:most]]
    return ", ".join(names) + (f" and {len(labels) - most} more" if len(labels) > most else "")
