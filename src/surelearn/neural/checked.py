"""What every network asks of labels and weights before it is trained."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _check_y, check_consistent_length

from surelearn.types import AnyArray, Array

Codes = npt.NDArray[np.intp]


def needed(model: object, y: npt.ArrayLike | None) -> npt.ArrayLike:
    """Targets, which must be there."""
    if y is None:
        name = type(model).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    return y


def labels_of(
    model: object, rows: AnyArray, y: npt.ArrayLike | None
) -> tuple[npt.NDArray[Any], Codes]:
    """Different labels (classes,), and which of them each row has (n,)."""
    labels = _check_y(needed(model, y), multi_output=False)
    check_consistent_length(rows, labels)
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if classes.size < 2:
        raise ValueError("y holds one class only: classification needs at least two")
    return classes, codes


def numbers_of(model: object, rows: AnyArray, y: npt.ArrayLike | None) -> Array:
    """Targets of a regression (n,)."""
    targets = _check_y(needed(model, y), multi_output=False, y_numeric=True).astype(np.float64)
    check_consistent_length(rows, targets)
    return targets


def weights_of(sample_weight: npt.ArrayLike | None, rows: AnyArray) -> Array | None:
    """Weights of at least 0 (n,), if there are any."""
    if sample_weight is None:
        return None
    options: dict[str, Any] = {"dtype": np.float64, "ensure_non_negative": True}
    return _check_sample_weight(sample_weight, rows, **options)
