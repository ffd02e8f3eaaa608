"""`measure`: predict once, and gather every fact that a claim can be made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from surelearn.lacking import Lacking
from surelearn.measurement.given import (
    LossBoundError,
    checked_losses,
    labels_of,
    listed,
    losses_of,
    mask_of,
    masks_of,
    numeric,
    predictions_of,
    target_of,
    unique,
    weights_of,
)
from surelearn.measurement.metrics import (
    compared_parts,
    costs_of,
    differences,
    more_metrics,
    positions,
)
from surelearn.measurement.units import Loss, Sampler
from surelearn.measurement.what import LOSSES, Happened, LossesPerUnit, Mask, Measurement, Slices
from surelearn.operating import walk_facts
from surelearn.subject.bands import band_of, outside
from surelearn.types import AnyArray, Array, Model, RowsLike


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
    rows_hash: Callable[[], str] = str,
) -> dict[str, Any]:
    """Predict once, or take the losses, and gather every fact that `certify` can make a claim of.

    A rate is kept as ``name.count`` of ``name.n`` rows or, with groups, as ``name.means``: one mean
    a group that has such rows. Other losses, and those to be compared row by row, are kept as
    ``name.losses``; with weights so are all, as means by weight, beside ``name.weights``. Samples
    are put in a pseudo-random order, drawn by ``rows_hash`` where ``what.order`` says so, since some
    theorems need an order that does not depend on the losses.

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
        checked_losses(losses_of(losses, model, X), X, what, "losses")
        if by_losses
        else target_of(y, X)
    )
    drawn_by = rows_hash() if what.order == "rows" else ""
    sampler = Sampler(truth.size, groups, weights_of(weights, truth.size, what), drawn_by)
    marks = {f"slice[{name}]": mask for name, mask in masks_of(slices, X, truth.size).items()}
    if novel is not None:
        marks["novel"] = mask_of("novel", novel, truth.size)
    values: dict[str, Any] = {"rows": truth.size}
    if groups is not None:
        values["groups"] = sampler.units
    rows = cast("RowsLike", X)  # there are some unless losses were given: `target_of` counted them
    if what.task == "classification":
        parts = compared_parts(slices, X) if "differences" in what.metrics else {}
        main = _classification(model, rows, truth, what, baseline, sampler, values, parts)
    elif what.task == "regression":
        main = _regression(model, rows, truth, what, baseline, sampler, values)
    else:
        other = None
        if baseline_losses is not None:
            name = "baseline_losses"
            other = checked_losses(losses_of(baseline_losses, None, X, name), X, what, name)
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
        happened = mask_of(one.what.label, one.values, truth.size)
        inside = None if one.within is None else mask_of(one.what.label, one.within, truth.size)
        values |= sampler.kept(Loss(f"further[{i}]", happened, inside, counted=True))
    return values


def _classification(
    model: Model,
    X: RowsLike,
    y: AnyArray,
    what: Measurement,
    baseline: Model,
    sampler: Sampler,
    values: dict[str, Any],
    parts: Mapping[str, Mapping[str, Mask]],
) -> Loss | None:
    labels = (*what.classes, *what.unseen)
    unknown = [label for label in unique(y) if label not in labels]
    if unknown:
        raise ValueError(
            f"y holds {unknown[0]!r}, a label the model never saw: it knows {listed(what.classes)}"
        )
    predicted = labels_of(model, X, y.size, "model", what)
    if (sets := what.prediction_sets) is not None:
        scores = sets.scores(model, X)
        values |= sets.facts(scores, positions(y, what.classes), sampler.one_row_a_unit())
    if (walk := what.walk) is not None:
        values |= walk_facts(
            walk, model, X, y, positive=what.positive, classes=what.classes, ordered=sampler.ordered
        )
        more_metrics(model, X, y, predicted, what, sampler, values)
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
        others["baseline"] = labels_of(baseline, X, y.size, "baseline", what)
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
    more_metrics(model, X, y, predicted, what, sampler, values)
    values |= differences(y, predicted, what, parts)
    return risk


def _regression(
    model: Model,
    X: RowsLike,
    y: AnyArray,
    what: Measurement,
    baseline: Model,
    sampler: Sampler,
    values: dict[str, Any],
) -> Loss | None:
    y = numeric(y, "y")
    error = numeric(predictions_of(model, X, y.size, "model"), "the model's predictions") - y
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
            numeric(predictions_of(baseline, X, y.size, "baseline"), "the baseline's predictions")
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
    sampler: Sampler,
    values: dict[str, Any],
) -> Loss:
    main = Loss("loss", losses, counted=what.binary)
    values |= sampler.kept(main, compared=True)
    if what.largest_group is not None:
        values |= sampler.sums("loss", losses)
    if baseline_losses is not None:
        values |= sampler.kept(Loss("baseline", baseline_losses))
    return main
