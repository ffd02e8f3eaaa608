"""The same model, fitted again on other rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from surelearn.selection.cross_validation import fit_quietly, take


def refit(model: Any, X: Any, y: Any, rows: Any, new: Any) -> dict[str, Any]:
    """Fit a copy on some rows and predict the new ones: one task."""
    fitted = fit_quietly(model, take(X, rows), y[rows])
    result = {"predictions": np.asarray(fitted.predict(new))}
    if hasattr(fitted, "predict_proba"):
        result["scores"] = np.asarray(fitted.predict_proba(new))
    return result
