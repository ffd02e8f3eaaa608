"""The same model, fitted again on other rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from surelearn.lacking import Lacking
from surelearn.subject import subject_of
from surelearn.subject.refitting import columns_for, fit_quietly, take_for
from surelearn.types import AnyArray, Model, TableRows


def refit(
    model: Model, X: TableRows, y: AnyArray, rows: AnyArray, new: TableRows
) -> dict[str, Any]:
    """Fit a copy on some rows and predict the new ones: one task."""
    fitted, new = (
        fit_quietly(model, take_for(model, X, rows), y[rows]),
        columns_for(model, new, rows),
    )
    result = {"predictions": np.asarray(fitted.predict(new))}
    probabilities = subject_of(fitted).probabilities
    if not isinstance(probabilities, Lacking):
        result["scores"] = np.asarray(probabilities(new))
    return result
