"""Probabilities of classes in one order, whatever the model's own is."""

from __future__ import annotations

from typing import Any

import numpy as np

from surelearn.lacking import Lacking
from surelearn.subject.subject import subject_of
from surelearn.types import Array, Model, RowsLike

_SUM = 1e-3  # by which probabilities of all classes may miss 1: those of float32


def probabilities_of(model: Model, X: RowsLike, classes: tuple[Any, ...]) -> Array | Lacking:
    """(n, classes): the probabilities that the model gives, in the order of ``classes``, 0 for a
    class that it does not know; or why what it gives are none.
    """
    give = subject_of(model).probabilities
    if isinstance(give, Lacking):
        return give
    found = np.asarray(give(X), dtype=float)
    own = list(np.asarray(getattr(model, "classes_", classes)).tolist())
    if found.ndim != 2 or found.shape[1] != len(own):
        return Lacking("probabilities", "the model does not give one number per row and class")
    if not np.isfinite(found).all():
        return Lacking("probabilities", "some of the model's probabilities are NaN or infinite")
    if found.min() < -_SUM or np.abs(found.sum(axis=1) - 1).max() > _SUM:
        return Lacking(
            "probabilities", "the model's probabilities of some row are negative or do not sum to 1"
        )
    found = np.clip(found, 0.0, None)
    given = np.zeros((len(found), len(classes)))
    for label, column in zip(own, (found / found.sum(axis=1, keepdims=True)).T, strict=True):
        if label in classes:
            given[:, classes.index(label)] = column
    return given
