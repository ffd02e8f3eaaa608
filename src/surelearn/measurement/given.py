"""What the caller gives, checked: targets, predictions, losses, weights, slices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from surelearn.measurement.what import MOST_VALUES, LossesPerUnit, Mask, Measurement, Slices
from surelearn.subject import predict_with
from surelearn.subject.predicting import missing
from surelearn.types import Array, Model, RowsLike


class LossBoundError(ValueError):
    """A stated bound on the loss that the rows contradict: stating a larger one now would be
    choosing it by them.
    """


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


def checked_losses(
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


def target_of(y: npt.ArrayLike | None, X: RowsLike | None) -> Any:
    """Targets, one a row, none of them missing."""
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


def labels_of(model: Model, X: RowsLike, n: int, name: str, what: Measurement) -> Any:
    """A classifier's answers, among the labels that it knows."""
    predicted = predictions_of(model, X, n, name, what.classes)
    known = (*what.classes, *what.unseen)
    unknown = [label for label in unique(predicted) if label not in known]
    if unknown:
        raise ValueError(
            f"the {name} predicts {unknown[0]!r}, which is no class: it knows"
            f" {listed(what.classes)}"
        )
    return predicted


def predictions_of(
    model: Model, X: RowsLike, n: int, name: str, classes: tuple[Any, ...] | None = None
) -> Any:
    """A predictor's answers, one a row, none of them missing."""
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


def weights_of(weights: npt.ArrayLike | None, n: int, what: Measurement) -> Array | None:
    """One weight per row, in the stated range."""
    if what.weight_bound is None:
        return None
    if weights is None:
        raise ValueError(
            "weights are needed, one per unit: the certificate is about a shifted population"
        )
    array = numeric(weights, "weights")
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


def masks_of(slices: Slices | None, X: RowsLike | None, n: int) -> dict[str, Mask]:
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
            masks[name] = mask_of(name, column, n)
            continue
        words = np.where(missing(values), "missing", values.astype(str))
        known = unique(words)
        if len(known) > MOST_VALUES:
            raise ValueError(
                f"slice {name!r} has {len(known)} values, more than {MOST_VALUES}: see"
                " surelearn.slicing.cut"
            )
        masks |= {f"{name} = {value}": words == value for value in known}
    return masks


def mask_of(name: str, mask: npt.ArrayLike, n: int) -> Mask:
    """A mask of so many rows."""
    mask = np.asarray(mask)
    if mask.dtype != bool or mask.shape != (n,):
        raise ValueError(f"slice {name!r} must be a boolean mask with one value per row")
    return mask


def numeric(values: npt.ArrayLike, name: str) -> Array:
    """Finite numbers."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    return array


def unique(values: npt.NDArray[Any]) -> list[Any]:
    """Each value once, in the order of their first rows."""
    return list(dict.fromkeys(values.tolist()))


def listed(labels: tuple[Any, ...], most: int = 5) -> str:
    """Labels in words, the first few of many."""
    names = [repr(label) for label in labels[:most]]
    return ", ".join(names) + (f" and {len(labels) - most} more" if len(labels) > most else "")
