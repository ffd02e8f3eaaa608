"""What is proved against poison within the columns' range, of a linear classifier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelearn.bounds.poisoning import ClassLoss
from surelearn.bounds.poisoning_range import (
    poisoning_threshold_flipped,
    poisoning_threshold_moved,
    poisoning_threshold_reversed,
)
from surelearn.claim import Claim
from surelearn.losses import LOGISTIC, log_loss_slopes
from surelearn.robust.poisoning.fit import SAME_COLUMNS, covers

Array = npt.NDArray[np.float64]
_WITHIN = "poisoned rows per clean row, within the columns' range,"
FLIPPED = f"{_WITHIN} to flip the answer on every fit row"
REVERSED = f"{_WITHIN} to weights −t·w (t > 0)"
MOVED = f"{_WITHIN} to move the weights by half their length"
RANGE = "the range of a column, as prepared, is from its least to its largest value in the fit rows"
INSIDE = "poison within the columns' range"


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A fitted linear classifier in prepared columns, at the minimizer of a mean loss with a
    squared penalty.

    Attributes
    ----------
    loss : as `poisoning_threshold_flipped` names it; logistic for softmax
    weights, intercepts : (k, d) and (k,), with k = 1 for two classes
    penalty : λ, of the weights
    intercept_penalty : that of the intercept, 0 where it is free; None without an intercept
    """

    loss: ClassLoss
    weights: Array
    intercepts: Array
    penalty: float
    intercept_penalty: float | None

    @property
    def all_penalized(self) -> bool:
        """Whether λ > 0 multiplies the square of every weight."""
        return self.penalty > 0 and self.intercept_penalty in (None, self.penalty)

    def scores(self, Z: Array) -> Array:
        """Scores of prepared rows, (n, k)."""
        return Z @ self.weights.T + self.intercepts


@dataclass(frozen=True, eq=False)
class Box:
    """The range of every column, low to high, each (d,)."""

    low: Array
    high: Array

    @classmethod
    def of(cls, Z: Array) -> Box:
        """The range that the columns of some rows have."""
        return cls(Z.min(axis=0), Z.max(axis=0))

    @property
    def middle(self) -> Array:
        """The middle of every range."""
        return (self.low + self.high) / 2

    @property
    def half(self) -> Array:
        """Half of every range's length."""
        return (self.high - self.low) / 2

    def ends(self, weights: Array, intercepts: Array) -> tuple[Array, Array]:
        """The least and the largest score of a row inside the range, for every row of weights."""
        center, spread = weights @ self.middle + intercepts, np.abs(weights) @ self.half
        return center - spread, center + spread

    def longest(self, padded: bool) -> float:
        """The length of the longest row inside the range, with a 1 for the intercept or without."""
        return float(np.sqrt((np.maximum(np.abs(self.low), np.abs(self.high)) ** 2).sum() + padded))


def within_range(
    machine: LinearFit, Z: Array, codes: npt.NDArray[np.intp], names: list[str]
) -> list[Claim]:
    """All that is proved: flipped answers (two classes), reversed weights, moved weights (every
    weight penalized).
    """
    box = Box.of(Z)
    found = [flipped_claim(machine, box, Z, codes, names)] if len(machine.weights) == 1 else []
    found.append(reversed_claim(machine, box, Z, codes))
    if machine.loss == "logistic" and machine.all_penalized:
        found.append(moved_claim(machine, box, Z, codes))
    return [claim for claim in found if claim is not None]


def flipped_claim(
    machine: LinearFit, box: Box, Z: Array, codes: npt.NDArray[np.intp], names: list[str]
) -> Claim | None:
    """The largest threshold among the directions of single columns, of the intercept and of the
    weights themselves.
    """
    signs = np.where(codes == 1, 1.0, -1.0)
    scores = machine.scores(Z)[:, 0]
    right = signs * scores > 0
    weight, free = machine.penalty, machine.intercept_penalty
    low, high = box.ends(machine.weights, machine.intercepts)
    squares = float((machine.weights**2).sum()) * weight + float(machine.intercepts[0] ** 2) * (
        free or 0.0
    )
    found = [
        (_gain(signs * scores, right), float(max(-low[0], high[0])), 2 * squares, "the weights")
    ]
    for j, (middle, half) in enumerate(zip(box.middle, box.half, strict=True)):
        if free is None:  # no intercept that could shift the column
            middle, half = 0.0, float(max(-box.low[j], box.high[j]))
        if half > 0:
            along, decay = (
                signs * (Z[:, j] - middle),
                2 * (weight + (free or 0.0) * float(middle) ** 2),
            )
            found += [
                (_gain(sign * along, right), float(half), decay, f"the column {names[j]}")
                for sign in (1.0, -1.0)
            ]
    if free is not None:
        found += [
            (_gain(sign * signs, right), 1.0, 2 * free, "the intercept") for sign in (1.0, -1.0)
        ]
    found = [one for one in found if one[1] > 0]
    if not found:
        return None
    gain, reach, decay = (np.array([one[i] for one in found]) for i in range(3))
    wrong = float(np.mean(~right))
    best = int(np.argmax(poisoning_threshold_flipped(gain, reach, wrong, machine.loss, decay)))
    return poisoning_threshold_flipped.certify(
        gain=found[best][0],
        reach=found[best][1],
        wrong=wrong,
        loss=machine.loss,
        decay=found[best][2],
        label=FLIPPED,
        covers=covers(machine.loss, INSIDE),
        assumptions=(
            RANGE,
            f"v is that of {found[best][3]}, counted from the middle of its range",
            SAME_COLUMNS,
        ),
    )


def _gain(along: Array, right: npt.NDArray[np.bool_]) -> float:
    return float(np.mean(np.where(right, along, np.minimum(along, 0.0))))


def reversed_claim(
    machine: LinearFit, box: Box, Z: Array, codes: npt.NDArray[np.intp]
) -> Claim | None:
    """The threshold of −t·w, whatever t > 0."""
    scores = machine.scores(Z)
    if scores.shape[1] == 1:
        low, high = box.ends(machine.weights, machine.intercepts)
        gain, reach = (
            float(np.mean(np.where(codes == 1, 1.0, -1.0) * scores[:, 0])),
            float(max(-low[0], high[0])),
        )
    else:
        gain = float(np.mean(scores[np.arange(len(codes)), codes] - scores.mean(axis=1)))
        centered = (
            machine.weights - machine.weights.mean(0),
            machine.intercepts - machine.intercepts.mean(),
        )
        reach = float(-box.ends(*centered)[0].min())
    if not reach > 0:
        return None
    assumptions = (RANGE, SAME_COLUMNS)
    return poisoning_threshold_reversed.certify(
        gain=gain,
        reach=reach,
        label=REVERSED,
        covers=covers(machine.loss, INSIDE),
        assumptions=assumptions,
    )


def moved_claim(machine: LinearFit, box: Box, Z: Array, codes: npt.NDArray[np.intp]) -> Claim:
    """The threshold of weights farther away than half their length."""
    W = np.column_stack([machine.weights, machine.intercepts])
    W = W if machine.intercept_penalty is not None else W[:, :-1]
    scores, padded = machine.scores(Z), np.column_stack([Z, np.ones(len(Z))])[:, : W.shape[1]]
    if scores.shape[1] == 1:
        signs = np.where(codes == 1, 1.0, -1.0)[:, None]
        slopes, slope = LOGISTIC.slope_of_scores(scores, signs), 1.0
    else:
        slopes, slope = log_loss_slopes(scores, codes), float(np.sqrt(2))
    norm = float(np.linalg.norm(W))
    return poisoning_threshold_moved.certify(
        distance=norm / 2,
        norm=norm,
        x_bound=box.longest(machine.intercept_penalty is not None),
        regularization=machine.penalty,
        slope=slope,
        residual=float(np.linalg.norm(slopes.T @ padded / len(Z) + 2 * machine.penalty * W)),
        label=MOVED,
        covers=covers(machine.loss, INSIDE),
        assumptions=(RANGE, SAME_COLUMNS),
    )
