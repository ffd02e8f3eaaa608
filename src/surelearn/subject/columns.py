"""What columns are called, where a page or a result names them."""

from __future__ import annotations

from typing import Any


def column_names(X: Any) -> tuple[str, ...]:
    """Those of a table; x0, x1, … for an array, as scikit-learn calls them."""
    return (
        tuple(map(str, X.columns))
        if hasattr(X, "columns")
        else tuple(f"x{j}" for j in range(X.shape[1]))
    )
