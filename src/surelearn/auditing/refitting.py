"""The same model, fitted again on other rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from surelearn.selection.cross_validation import columns_for, fit_quietly, take_for


def refit(model: Any, X: Any, y: Any, rows: Any, new: Any) -> dict[str, Any]:
    """Fit a copy on some rows and predict the new ones: one task."""
    fitted, new = fit_quietly(model, take_for(model, X, rows), y[rows]), columns_for(model, new, rows)
    result = {"predictions": np.asarray(fitted.predict(new))}
    if hasattr(fitted, "predict_proba"):
        result["scores"] = np.asarray(fitted.predict_proba(new))
    return result
