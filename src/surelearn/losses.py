"""Losses of margins, residuals and scores, one definition each: learners, theorems, attacks and the
page evaluate these.

`surelearn.optim.losses` makes objectives of them. Compiled loops and torch have their own code,
held to these by tests/test_losses.py, which also finds copies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_softmax, softmax

from surelearn.types import AnyArray, Array


@dataclass(frozen=True)
class ConvexLoss:
    """A convex loss of one number: the margin t = y·ŷ of a classifier, or the residual t = ŷ − y of
    a regression.

    Attributes
    ----------
    of : "margin" or "residual"
    value, derivative : ℓ(t) and ℓ′(t), of arrays; where ℓ has a kink, a subgradient
    curvature : the largest ℓ″, infinite for a kink
    least_curvature : the smallest ℓ″
    lipschitz : the largest |ℓ′|, may be infinite
    slopes : left and right derivative at 0
    second_derivative : ℓ″(t), of arrays; 0 at a kink of ℓ, one of the two sides at a kink of ℓ′;
        None where nobody stated it
    """

    name: str
    of: Literal["margin", "residual"]
    value: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    curvature: float
    least_curvature: float
    lipschitz: float
    slopes: tuple[float, float]
    second_derivative: Callable[[Array], Array] | None = None

    def inner(self, scores: Array, y: AnyArray | float) -> tuple[Array, AnyArray | float]:
        """What the loss is of, at scores and targets, and its derivative by the score; targets of a
        margin are −1 and 1.
        """
        return (y * scores, y) if self.of == "margin" else (scores - y, 1.0)

    def of_scores(self, scores: Array, y: AnyArray | float) -> Array:
        """ℓ at scores and targets."""
        return self.value(self.inner(scores, y)[0])

    def slope_of_scores(self, scores: Array, y: AnyArray | float) -> Array:
        """The derivative of ℓ by the score."""
        t, sign = self.inner(scores, y)
        return self.derivative(t) * sign

    def curvature_of_scores(self, scores: Array, y: AnyArray | float) -> Array:
        """The second derivative of ℓ by the score: that by t, since dt/ds is −1 or 1."""
        if self.second_derivative is None:
            raise ValueError(f"second_derivative of the {self.name} loss must be stated")
        return self.second_derivative(self.inner(scores, y)[0])


def huber_loss(t: npt.ArrayLike, threshold: npt.ArrayLike) -> Array:
    """M^η(t) = min_s ½(s − t)² + η|s|, a Moreau envelope: ½t² where |t| ≤ η, and η|t| − ½η² beyond.

    The course prints η|t| − ½t² for the outer branch, a misprint: it would not be continuous.

    Examples
    --------
    >>> huber_loss([0.5, 1.0, 3.0], 1.0).tolist()
    [0.125, 0.5, 2.5]
    """
    size, eta = np.abs(t), np.asarray(threshold, dtype=float)
    return np.where(size <= eta, 0.5 * np.square(size), eta * size - 0.5 * eta**2)


def huber(threshold: float = 1.0) -> ConvexLoss:
    """Huber's loss of a residual, `huber_loss`; ℓ″ is 1 up to ``|t|`` = η, the knee included.

    Examples
    --------
    >>> huber(1.0).value(np.array([0.5, 3.0]))
    array([0.125, 2.5  ])
    """
    eta = float(threshold)
    if not 0 < eta < math.inf:
        raise ValueError(f"threshold must be positive and finite, not {threshold!r}")
    return ConvexLoss(
        f"huber({eta:g})",
        "residual",
        lambda t: huber_loss(t, eta),
        lambda t: np.clip(t, -eta, eta),
        1.0,
        0.0,
        eta,
        (0.0, 0.0),
        lambda t: np.where(np.abs(t) <= eta, 1.0, 0.0),
    )


SQUARED = ConvexLoss(
    "squared", "residual", np.square, lambda t: 2 * np.asarray(t),
    2.0, 2.0, math.inf, (0.0, 0.0), lambda t: np.full(np.shape(t), 2.0),
)  # fmt: skip
LOGISTIC = ConvexLoss(
    "logistic", "margin", lambda t: np.logaddexp(0, -t), lambda t: -expit(-t),
    0.25, 0.0, 1.0, (-0.5, -0.5), lambda t: expit(t) * expit(-t),
)  # fmt: skip
HINGE = ConvexLoss(
    "hinge", "margin", lambda t: np.maximum(1 - t, 0), lambda t: np.where(np.asarray(t) < 1, -1.0, 0.0),
    math.inf, 0.0, 1.0, (-1.0, -1.0), lambda t: np.zeros(np.shape(t)),
)  # fmt: skip
SQUARED_HINGE = ConvexLoss(
    "squared hinge", "margin", lambda t: np.maximum(1 - t, 0) ** 2, lambda t: -2 * np.maximum(1 - t, 0),
    2.0, 0.0, math.inf, (-2.0, -2.0), lambda t: np.where(np.asarray(t) < 1, 2.0, 0.0),
)  # fmt: skip
SQUARED_MARGIN = ConvexLoss(
    "squared margin", "margin", lambda t: (1 - t) ** 2, lambda t: -2 * (1 - np.asarray(t)),
    2.0, 2.0, math.inf, (-2.0, -2.0), lambda t: np.full(np.shape(t), 2.0),
)  # fmt: skip
EXPONENTIAL = ConvexLoss(
    "exponential", "margin", lambda t: np.exp(-t), lambda t: -np.exp(-t),
    math.inf, 0.0, math.inf, (-1.0, -1.0), lambda t: np.exp(-t),
)  # fmt: skip
PERCEPTRON = ConvexLoss(
    "perceptron", "margin", lambda t: np.maximum(-t, 0), lambda t: np.where(np.asarray(t) < 0, -1.0, 0.0),
    math.inf, 0.0, 1.0, (-1.0, 0.0), lambda t: np.zeros(np.shape(t)),
)  # fmt: skip

LOSSES = {
    loss.name: loss
    for loss in (
        SQUARED,
        huber(),
        LOGISTIC,
        HINGE,
        SQUARED_HINGE,
        SQUARED_MARGIN,
        EXPONENTIAL,
        PERCEPTRON,
    )
}


def find_loss(loss: str | ConvexLoss) -> ConvexLoss:
    """The loss of that name, with spaces or, as learners' parameters have it, underscores; or the
    loss itself.

    Examples
    --------
    >>> find_loss("squared_hinge").name
    'squared hinge'
    """
    if isinstance(loss, ConvexLoss):
        return loss
    name = "huber(1)" if loss == "huber" else loss.replace("_", " ")
    if name not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(LOSSES)} or a ConvexLoss, not {loss!r}")
    return LOSSES[name]


def log_losses(scores: Array, codes: AnyArray) -> Array:
    """−ln softmax(s)_y of several classes, (n,), at scores (n, c) and classes 0 … c − 1.

    Two classes with the scores 0 and s have `LOGISTIC` of the margin ±s.

    Examples
    --------
    >>> log_losses(np.array([[0.0, 0.0], [0.0, 3.0]]), np.array([0, 1])).round(4).tolist()
    [0.6931, 0.0486]
    """
    return -log_softmax(scores, axis=1)[np.arange(len(scores)), codes]


def log_loss_slopes(scores: Array, codes: AnyArray) -> Array:
    """The derivative of `log_losses` by the scores, (n, c): softmax(s) − e_y."""
    slopes = softmax(scores, axis=1)
    slopes[np.arange(len(scores)), codes] -= 1.0
    return slopes


def log_loss_curved(scores: Array, directions: Array) -> Array:
    """The second derivative of `log_losses` by the scores, (diag(p) − ppᵀ) with p = softmax(s),
    times directions (n, c).
    """
    shares = softmax(scores, axis=1)
    return shares * (directions - (shares * directions).sum(axis=1, keepdims=True))
