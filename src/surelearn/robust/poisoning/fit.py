"""A fitted learner as the theorems about poison take it: its machines at the rows that it was
fitted to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.claim import Covers
from surelearn.lacking import Lacking
from surelearn.subject import Objective, Subject
from surelearn.subject.machines import Machines
from surelearn.types import AnyArray, TableRows

Array = npt.NDArray[np.float64]
EXACTLY = "poisoned rows per clean row to exactly the weights −w (one target)"
SAME_COLUMNS = (
    "columns and targets are prepared, and penalty and kernel are, as they are here, whatever is"
    " added"
)
TOTAL = "g(μ) includes the gradient of the penalty, whose total does not grow with the rows"
MOST_COLUMNS = 500  # prepared columns, beyond which the directions of single columns are too many
_CLASSES = (
    "of logistic regression, of support vector machines or of a kernel machine that was solved"
    " directly"
)
_NUMBERS = "of least squares, a ridge, Huber, kernel or support vector regression"


@dataclass(frozen=True, eq=False)
class Fit:
    """The minimizer of a convex loss over equally weighted rows.

    Attributes
    ----------
    subject : the model around it
    objective : what it minimizes
    machines : its functions of prepared rows
    rows : the prepared rows that it was fitted to, dense or sparse
    """

    subject: Subject
    objective: Objective
    machines: Machines
    rows: Any

    @property
    def count(self) -> int:
        """How many rows it was fitted to."""
        return self.rows.shape[0]

    @property
    def grows(self) -> bool:
        """Whether the penalty stays beside the *mean* loss as rows are added, so that its total
        grows.
        """
        return self.objective.beside == "mean"

    def decay(self, n: int | None = None) -> Array:
        """⟨w_m, ∇R(w_m)⟩ of the penalty R beside the mean loss of n rows, for every machine;
        never below 0.
        """
        n = self.count if n is None else n
        squares = 2 * self.objective.strength(n) * self.machines.squares
        bias = 2 * (self.objective.intercept_strength(n) or 0.0) * self.machines.intercepts**2
        return np.maximum(squares + bias, 0.0)

    def total(self, decay: float) -> tuple[str, ...]:
        """The assumption on how the penalty grows, where there is one to make."""
        return () if self.grows or decay == 0 else (TOTAL,)


def fit_of(subject: Subject, X: TableRows, y: AnyArray) -> Fit | Lacking:
    """The fit behind a model, at the rows X, y that it was fitted to; `Lacking` says why the
    theorems do not apply.
    """
    objective, machines = subject.objective, subject.machines
    if isinstance(objective, Lacking) or isinstance(machines, Lacking):
        return not_proved(subject)
    told = objective.rows is None or objective.rows == len(y)
    if objective.uniform is False or objective.l1 != 0 or not objective.minimized or not told:
        return not_proved(subject)
    return Fit(subject, objective, machines, subject.prepared(X))


def not_proved(subject: Subject) -> Lacking:
    """No theorem applies to such a learner."""
    learner = subject.learner
    name, classes = type(learner.model).__name__, learner.classes
    several = f" with {len(classes)} classes" if classes is not None and len(classes) > 2 else ""
    kinds = _NUMBERS if classes is None else _CLASSES
    why = (
        f"no threshold is proved for {name}{several}: it needs the minimizer of a convex loss over"
        " equally weighted rows, "
    )
    return Lacking("poisoning threshold", why + kinds)


def covers(loss: str, population: str = "poison with features of any size") -> Covers:
    """What a claim about poison is about."""
    predictor, rows = "the fit to clean rows and poison", "the fit rows, as prepared"
    return Covers(predictor=predictor, loss=f"{loss} loss", population=population, rows=rows)


def in_numbers(*parts: Any) -> list[Array] | Lacking:
    """Prepared rows as dense numbers; why they are not, or that there are too many columns."""
    if (columns := parts[0].shape[1]) > MOST_COLUMNS:
        why = (
            f"the model has {columns:,} prepared columns, more than the {MOST_COLUMNS} that"
            " thresholds of poison are computed for"
        )
        return Lacking("prepared rows in numbers", why)
    try:
        return [
            np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=float)
            for part in parts
        ]
    except ValueError:
        return Lacking("prepared rows in numbers", "the prepared columns are not all numbers")
