"""Poison that raises the risk of whatever is fitted to it: max_ν L(w*(ν)), w* the fit to clean
rows and ν (bilevel).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from surelearn.attacks.poison_allowed import Allowed, Array, checked_count, checked_rows
from surelearn.attacks.poison_objectives import check_labels
from surelearn.types import RandomState, RowsLike


class Follower(Protocol):
    """A learner that answers poison with its fit, and knows how the risk of that fit moves with
    the poison.
    """

    def fit(self, X: Array, y: np.ndarray, start: Any = None) -> Any:
        """The fit, as its own kind of state."""
        ...

    def risk(self, w: Any, X: Array, y: np.ndarray, /) -> float:
        """The mean loss of a fit."""
        ...

    def total_gradient(
        self, w: Any, X: Array, y: np.ndarray, count: int, X_outer: Array, y_outer: np.ndarray, /
    ) -> Array:
        """∇ of the risk on outer rows by the last ``count`` rows, (count, d)."""
        ...


@dataclass(frozen=True, eq=False)
class Bilevel:
    """What the bilevel attack found.

    Attributes
    ----------
    X, y : the poison
    fraction : poison over clean rows
    before, after : the risk on the outer rows of the fit to clean rows, and with the poison
    risks : after each step; ``after`` is the largest of them
    refits : how often the learner was fitted
    """

    X: Array
    y: np.ndarray
    fraction: float
    before: float
    after: float
    risks: Array
    refits: int

    @property
    def damage(self) -> float:
        """How much the risk rose."""
        return self.after - self.before


def bilevel(
    follower: Follower,
    X: RowsLike,
    y: npt.ArrayLike,
    X_outer: RowsLike,
    y_outer: npt.ArrayLike,
    *,
    count: int,
    allowed: Allowed | None = None,
    steps: int = 40,
    step: float = 0.5,
    random_state: RandomState = 0,
) -> Bilevel:
    """Total gradient ascent on poison, the learner refitted at every step (course, Section 18; Lu,
    Kamath and Yu, 2022).

    Poison begins as clean rows with another allowed label, and moves along −∇_xw F·(∇_ww F)⁻¹·∇_w
    L, every row by ``step`` standard deviations at first and less each step. The best poison met is
    returned, so that it does no less damage than flipped copies.

    Parameters
    ----------
    follower : `LinearObjective`, `ModuleObjective` or `KernelRidgeObjective`
    X, y : the clean rows
    X_outer, y_outer : rows whose risk is to rise, not among the clean ones
    count : poison rows
    allowed : Γ; unbounded, with the labels of y, unless told
    steps : refits

    Examples
    --------
    >>> from surelearn.attacks.poison_objectives import LinearObjective
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> learner = LinearObjective(regularization=0.01)
    >>> found = bilevel(learner, X[:100], y[:100], X[100:], y[100:], count=10, allowed=Allowed(low=-3.0, high=3.0))
    >>> found.damage > 0.1
    True
    """
    (X, y), (X_outer, y_outer) = (
        checked_rows(X, y),
        checked_rows(X_outer, y_outer, "X_outer and y_outer"),
    )
    check_labels(follower, y)
    check_labels(follower, y_outer, "y_outer")
    gamma, count, random = (
        allowed or Allowed(),
        checked_count("count", count),
        check_random_state(random_state),
    )
    steps = checked_count("steps", steps, 0)
    rows, labels = flipped_copies(X, y, count, gamma, random)
    clean = follower.fit(X, y)
    before, scale = follower.risk(clean, X_outer, y_outer), X.std(0)
    state, best, highest, risks = clean, rows, -np.inf, []
    mixed_labels = np.concatenate([y, labels])
    for i in range(steps + 1):
        mixed = np.vstack([X, rows])
        state = follower.fit(mixed, mixed_labels, start=state)
        risks.append(follower.risk(state, X_outer, y_outer))
        if risks[-1] > highest:
            best, highest = rows, risks[-1]
        if i < steps:
            uphill = (
                follower.total_gradient(state, mixed, mixed_labels, count, X_outer, y_outer) * scale
            )
            length = np.linalg.norm(uphill, axis=1, keepdims=True)
            move = np.divide(uphill, length, out=np.zeros_like(uphill), where=length > 0)
            rows = gamma.project(rows + step * (1 - i / steps) * scale * move)
    if not np.isfinite(highest):
        raise ValueError(
            "the learner's risk was not a number at any step: look at its loss on X_outer"
        )
    return Bilevel(best, labels, count / len(X), before, highest, np.array(risks), len(risks) + 1)


def flipped_copies(
    X: Array, y: np.ndarray, count: int, gamma: Allowed, random: np.random.RandomState
) -> tuple[Array, np.ndarray]:
    """Clean rows drawn at random, made allowed, each with the allowed label that differs most
    from its own.
    """
    chosen = random.randint(len(X), size=count)
    options = gamma.labels_for(y)
    if np.issubdtype(y.dtype, np.floating):  # a target: the farthest
        labels = options[np.abs(options[None, :] - y[chosen, None]).argmax(1)]
    else:
        others = [options[options != label] for label in y[chosen]]
        labels = np.array(
            [random.choice(other if other.size else options) for other in others], dtype=y.dtype
        )
    return gamma.project(X[chosen]), labels
