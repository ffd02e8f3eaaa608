"""Measured damage against the fraction of poison, over several draws, in a budget of refits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.attacks.poison_allowed import Array, checked_count
from surelearn.attacks.poison_labels import flip_labels
from surelearn.subject import predict_with
from surelearn.types import RowsLike

Attack = Callable[[Any, Any, int, int], tuple[Any, Any]]


@dataclass(frozen=True, eq=False)
class DamageCurve:
    """The risk after poisoning, by fraction.

    Attributes
    ----------
    fractions : poison over clean rows, as whole rows made them
    risks : (fractions, repeats) the mean loss on the test rows
    clean : the mean loss without poison
    refits : how many fits that took, the clean one among them
    asked : repeats that were asked for; fewer were made where the budget did not allow them
    """

    fractions: Array
    risks: Array
    clean: float
    refits: int
    asked: int

    @property
    def mean(self) -> Array:
        """The mean risk of each fraction."""
        return self.risks.mean(axis=1)

    @property
    def spread(self) -> Array:
        """The standard deviation of each fraction over the repeats; NaN of one repeat."""
        if self.risks.shape[1] < 2:
            return np.full(len(self.risks), np.nan)
        return self.risks.std(axis=1, ddof=1)

    @property
    def damage(self) -> Array:
        """How much the mean risk rose."""
        return self.mean - self.clean


def flip_at_random(X: RowsLike, y: npt.ArrayLike, count: int, seed: int) -> tuple[Any, Any]:
    """The rows with ``count`` labels flipped at random: an attack on any learner of classes."""
    return X, flip_labels(y, count, random_state=seed).y


def damage_curve(
    fit: Callable[[Any, Any], Any],
    X: RowsLike,
    y: npt.ArrayLike,
    X_test: RowsLike,
    y_test: npt.ArrayLike,
    *,
    attack: Attack = flip_at_random,
    loss: Callable[[Any, Any], Any] | None = None,
    fractions: Sequence[float] = (0.01, 0.03, 0.1, 0.2),
    repeats: int = 5,
    refits: int = 50,
    random_state: int = 0,
) -> DamageCurve:
    """How the risk on test rows grows with the fraction of poison.

    Parameters
    ----------
    fit : rows and labels to a model, or to a function that predicts
    attack : (X, y, count, seed) to the poisoned rows and labels; random label flips unless told
    loss : (predictions, labels) to one number per row; 0 and 1 for right and wrong unless told
    fractions : poison over clean rows; only the first ones where the budget is smaller than their
        number
    repeats : draws of each fraction; as many fewer as ``refits``, the budget, demands, and at least
        one
    random_state : the first seed

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = np.arange(200.0)[:, None], np.repeat([0, 1], 100)
    >>> curve = damage_curve(lambda X, y: DecisionTreeClassifier(random_state=0).fit(X, y), X, y, X, y, fractions=(0.1, 0.3))
    >>> curve.clean, curve.risks.shape, bool(curve.mean[1] > curve.mean[0] > 0)
    (0.0, (2, 5), True)
    """
    n, repeats, refits = (
        np.shape(y)[0],
        checked_count("repeats", repeats),
        checked_count("refits", refits, 2),
    )
    counts = [max(1, round(fraction * n)) for fraction in fractions]
    if not counts or not all(np.isfinite(fraction) and fraction > 0 for fraction in fractions):
        raise ValueError("fractions must be at least one number, each above 0")
    counts = counts[: refits - 1]
    made = max(1, min(repeats, (refits - 1) // len(counts)))
    measure = loss or (lambda predicted, labels: np.asarray(predicted) != np.asarray(labels))

    def risk(rows: RowsLike, labels: npt.ArrayLike) -> float:
        return float(np.mean(measure(predict_with(fit(rows, labels))(X_test), y_test)))

    risks = [
        [risk(*attack(X, y, count, random_state + seed)) for seed in range(made)]
        for count in counts
    ]
    return DamageCurve(
        fractions=np.array(counts) / n,
        risks=np.array(risks),
        clean=risk(X, y),
        refits=1 + made * len(counts),
        asked=repeats,
    )
