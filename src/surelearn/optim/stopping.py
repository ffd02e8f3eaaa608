"""One rule for all iterative learners: when to stop, and in whose words."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Literal

Reason = Literal[
    "", "converged", "passes", "time", "training error stalled", "validation error stalled"
]


@dataclass
class Stopper:
    """Stops at a number of passes, after a time, or when an error has not improved for a while.

    Parameters
    ----------
    passes : the most passes over the rows
    seconds : the most time
    patience : passes without an improvement of more than ``tolerance`` after which to stop; None
        never does
    tolerance : what counts as an improvement

    Examples
    --------
    >>> stopper = Stopper(passes=100, patience=2)
    >>> [stopper.after(training=error) for error in (0.5, 0.4, 0.4, 0.4)]
    ['', '', '', 'training error stalled']
    """

    passes: int
    seconds: float | None = None
    patience: int | None = None
    tolerance: float = 0.0
    done: int = field(default=0, init=False)
    reason: Reason = field(default="", init=False)
    _best: float = field(default=math.inf, init=False)
    _since: int = field(default=0, init=False)
    _started: float = field(default_factory=time.monotonic, init=False)

    def after(
        self,
        *,
        training: float | None = None,
        validation: float | None = None,
        converged: bool = False,
    ) -> Reason:
        """Count a pass; the reason to stop now, or "". Validation error decides where it is
        given, else training error.
        """
        self.done += 1
        error = validation if validation is not None else training
        if error is not None:
            improved = error < self._best - self.tolerance
            self._since = 0 if improved else self._since + 1
            self._best = min(self._best, error)
        if converged:
            self.reason = "converged"
        elif self.patience is not None and error is not None and self._since >= self.patience:
            self.reason = (
                "training error stalled" if validation is None else "validation error stalled"
            )
        elif self.done >= self.passes:
            self.reason = "passes"
        elif self.seconds is not None and time.monotonic() - self._started >= self.seconds:
            self.reason = "time"
        return self.reason
