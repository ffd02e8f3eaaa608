"""Candidates compared by what their answers cost, each at the threshold that suits it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.measurement import costs_of
from surelearn.types import AnyArray, Array, Ints, Label

PARTS = 10  # of the rows, each judged at a threshold that the others chose


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What wrong answers cost: a missed ``positive`` costs ``miss``, a false alarm 1.

    Answering positive is right where its probability p has p·miss ≥ (1 − p)·1, so from the
    threshold 1/(1 + miss) on if probabilities are exact. They are not, so that a candidate's
    ``threshold``, unless it is stated, is the cheapest one on rows that it was not fitted on.
    """

    positive: Label
    miss: float
    threshold: float | None = None

    def of_rows(self, p: Array, y: AnyArray, groups: npt.ArrayLike | None = None) -> Array:
        """What each row costs at the stated threshold, or at the cheapest one for the rows of the
        other parts.

        Parameters
        ----------
        p : (n,), the positive class's probability in rows not fitted on (NaN: not compared on, and
            so is the cost)
        y : (n,), the labels
        groups : rows that stay in one part
        """
        compared = np.flatnonzero(~np.isnan(p))
        scores, is_positive = p[compared], np.asarray(y[compared] == self.positive)
        if self.threshold is not None:
            cuts = np.full(compared.size, self.threshold)
        else:
            units = compared if groups is None else np.asarray(groups)[compared]
            part = np.unique(units, return_inverse=True)[1] % PARTS
            cuts = np.empty(compared.size)
            for k in np.unique(part):
                others = part != k if (part != k).any() else part == k
                cuts[part == k] = choose_threshold(
                    scores[others], is_positive[others], True, self.miss
                )
        costs = np.full(p.shape, np.nan)
        costs[compared] = costs_of(is_positive, scores >= cuts, self.miss)
        return costs


def cost_of_threshold(threshold: float) -> float:
    """What a miss costs, in false alarms, for whom answering positive from this probability on is
    right: (1 − t)/t.

    It is the K of t·K = (1 − t)·1, where both answers cost the same.

    Examples
    --------
    >>> cost_of_threshold(0.2)
    4.0
    """
    return (1 - threshold) / threshold


def choose_threshold(scores: Array, y: AnyArray, positive: Label, cost: float) -> float:
    """The threshold on the positive class's probability with the smallest cost on rows not fitted
    on.

    ``scores`` are out-of-fold probabilities (or those of select rows), NaN where there are none. A
    missed positive costs ``cost``, a false alarm 1.

    Examples
    --------
    >>> choose_threshold(np.array([0.1, 0.2, 0.35, 0.8]), np.array([0, 0, 1, 1]), 1, 5.0)
    0.275
    """
    compared = ~np.isnan(scores)
    return least_threshold(
        scores[compared],
        np.asarray(y[compared] == positive),
        lambda missed, alarms: cost * missed + alarms,
    )


def least_threshold(
    p: Array, is_positive: AnyArray, loss: Callable[[Ints, Ints], npt.NDArray[np.floating[Any]]]
) -> float:
    """The threshold with the least loss, a function of how many positives are missed and of how
    many false alarms there are.

    Parameters
    ----------
    p : (n,), probabilities of the positive class
    is_positive : (n,), whether it is that class

    Examples
    --------
    >>> p, is_positive = np.array([0.1, 0.2, 0.35, 0.8]), np.array([False, False, True, True])
    >>> least_threshold(p, is_positive, lambda missed, alarms: 1.0 * missed + alarms)
    0.275
    """
    order = np.argsort(p, kind="stable")
    p, is_positive = p[order], is_positive[order]
    missed = np.concatenate(([0], np.cumsum(is_positive)))  # called negative: the i smallest
    alarms = (~is_positive).sum() - np.concatenate(([0], np.cumsum(~is_positive)))
    cuts = np.concatenate(([p[0] / 2], (p[1:] + p[:-1]) / 2, [(1 + p[-1]) / 2]))
    # a threshold lies strictly between 0 and 1
    allowed = np.concatenate(([p[0] > 0], p[1:] > p[:-1], [p[-1] < 1]))
    if not allowed.any():
        return 0.5
    return float(cuts[np.argmin(np.where(allowed, loss(missed, alarms), np.inf))])


def best_constant(
    y: npt.ArrayLike, positive: Label | None = None, cost: float | None = None
) -> Label:
    """The constant answer with the least mean cost on these rows or, without a cost, with the
    fewest errors.

    Examples
    --------
    >>> y = ["sick"] * 3 + ["well"] * 97
    >>> best_constant(y), best_constant(y, "sick", 20.0), best_constant(y, "sick", 40.0)
    ('well', 'well', 'sick')
    """
    labels, counts = np.unique(np.asarray(y), return_counts=True)
    names = labels.tolist()
    if cost is None or positive is None:
        return names[counts.argmax()]
    count = dict(zip(names, counts.tolist(), strict=True))
    positives = count.pop(positive, 0)
    if not count or sum(count.values()) < cost * positives:
        return positive
    # all answers but the positive one cost the same
    return max(count, key=lambda label: count[label])
