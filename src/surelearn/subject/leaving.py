"""All fits without one row, as learners with a closed form hand them over: scores at points,
without n refits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelearn.types import Array


@dataclass(frozen=True, eq=False)
class Without:
    """The fits without one row, at some points.

    Attributes
    ----------
    rows : which rows were left out, (k,)
    full : scores of the fit to all rows at the points, (m, outputs)
    own : what the fit without a row says of that row, (k, outputs)
    targets : what it should say, as the fit codes targets: ±1 for classes, (k, outputs)
    each : makes an iterator over the scores of the fits without a row at the points, each (m,
        outputs), in turn
    """

    rows: npt.NDArray[np.intp]
    full: Array
    own: Array
    targets: Array
    each: Callable[[], Iterator[Array]]
