"""What columns are called, where a page or a result names them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np
import numpy.typing as npt

from surelearn.types import RowsLike


def column_names(X: RowsLike) -> tuple[str, ...]:
    """Those of a table; x0, x1, … for an array, as scikit-learn calls them."""
    named: Iterable[object] | None = getattr(X, "columns", None)
    if named is not None:
        return tuple(map(str, named))
    return tuple(f"x{j}" for j in range(np.shape(cast("npt.ArrayLike", X))[1]))
