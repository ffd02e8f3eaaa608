"""DP-SGD: clip every row's gradient, add noise to their sum, divide by the expected batch size,
project.

w ← P(w − η·(Σ_i g_i·min(1, C/‖g_i‖) + σC·ξ)/(qN)) with ξ ~ N(0, I) (M. Abadi and others, CCS 2016,
Algorithm 1). The course's Algorithm 2 adds the noise after dividing by b, which makes it b times
larger. Dividing by the batch's own size would leak it: qN is fixed. Torch modules are in
`surelearn.optim.dp_module`.

Noise comes from NumPy's and torch's generators, which are not cryptographic, and floating-point
numbers are not reals (I. Mironov, CCS 2012): the guarantee takes them for ideal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelearn import stated
from surelearn.losses import LOGISTIC, ConvexLoss, find_loss, log_loss_slopes
from surelearn.optim.accountant import PoissonSampler
from surelearn.types import Array, Ints

Slopes = Callable[[Array, npt.NDArray[np.intp]], Array]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How DP-SGD steps; nothing here may depend on the rows.

    Attributes
    ----------
    steps : how many
    step : η, constant
    clip : C, the norm to which each row's gradient is clipped
    noise_multiplier : σ, in units of C; 0 is no privacy
    regularization : λ of λ‖w‖², whose gradient needs no privacy
    radius : project onto ‖w‖ ≤ radius; None does not
    average : return the mean of the second half of the iterates, which costs no privacy
    """

    steps: int
    step: float = 1.0
    clip: float = 1.0
    noise_multiplier: float = 1.0
    regularization: float = 0.0
    radius: float | None = None
    average: bool = True

    def __post_init__(self) -> None:
        if int(self.steps) != self.steps or self.steps < 1:
            raise ValueError(f"steps must be a whole number of at least 1, not {self.steps}")
        for name in ("step", "clip"):
            stated.positive(name, getattr(self, name))
        for name in ("noise_multiplier", "regularization"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ValueError(
                    f"{name} must be finite and not negative, not {getattr(self, name)}"
                )
        if self.radius is not None and not 0 < self.radius < np.inf:
            raise ValueError(f"radius must be None or positive and finite, not {self.radius}")


def clip_factors(norms: Array, clip: float) -> Array:
    """min(1, C/‖g‖) for each row; a norm of 0 stays.

    Examples
    --------
    >>> clip_factors(np.array([0.0, 0.5, 4.0]), 2.0).tolist()
    [1.0, 1.0, 0.5]
    """
    return clip / np.maximum(norms, clip)


def project(weights: Array, radius: float | None) -> Array:
    """The nearest point of the ball ‖w‖ ≤ radius.

    Examples
    --------
    >>> project(np.array([3.0, 4.0]), 1.0).tolist()
    [0.6000000000000001, 0.8]
    """
    if radius is None:
        return weights
    return weights * (radius / max(radius, float(np.linalg.norm(weights))))


def softmax_slopes(codes: Ints, classes: int) -> Slopes:
    """Derivatives of the logarithmic loss by the scores: (B, 1) for two classes, (B, K) for
    more.
    """
    codes = np.asarray(codes)
    if classes == 2:
        return loss_slopes(2.0 * codes - 1.0, LOGISTIC)
    return lambda scores, rows: log_loss_slopes(scores, codes[rows])


def loss_slopes(targets: npt.ArrayLike, loss: str | ConvexLoss) -> Slopes:
    """Derivatives of a loss of `surelearn.losses` by the score, (B, 1); targets are ±1
    for losses of a margin.
    """
    known, targets = find_loss(loss), np.asarray(targets, dtype=np.float64)
    return lambda scores, rows: known.slope_of_scores(scores, targets[rows, None])


def clipped_sum(X: Array, slopes: Array, clip: float, intercept: bool = True) -> Array:
    """Σ_i of clipped gradients of a linear predictor, (d + 1, K), its last row the intercept's.

    Row i's gradient is (x_i, 1)·s_iᵀ, so its norm is ‖(x_i, 1)‖·‖s_i‖: no gradient of a single row
    is ever formed.
    """
    squares = np.einsum("ij,ij->i", X, X) + intercept
    norms = np.sqrt(squares * np.einsum("ij,ij->i", slopes, slopes))
    scaled = np.where(np.isfinite(norms)[:, None], slopes * clip_factors(norms, clip)[:, None], 0.0)
    return np.vstack([X.T @ scaled, scaled.sum(axis=0) if intercept else np.zeros(slopes.shape[1])])


def private_descent(
    X: Array,
    slopes: Slopes,
    outputs: int,
    sampler: PoissonSampler,
    recipe: Recipe,
    generator: np.random.Generator,
) -> Array:
    """DP-SGD for a linear predictor with ``outputs`` scores, from zero weights: (d + 1, outputs).

    Parameters
    ----------
    X : rows, (n, d)
    slopes : derivatives of the loss by the scores, of scores (B, outputs) and the rows they belong
        to
    sampler : draws the batches, and knows afterwards how many

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2)); y = (X[:, 0] > 0).astype(int)
    >>> recipe = Recipe(steps=100, noise_multiplier=2.0)
    >>> w = private_descent(X, softmax_slopes(y, 2), 1, PoissonSampler(2000, 0.1, 1), recipe, rng)
    >>> float(((X @ w[:2] + w[2] > 0).ravel() == y).mean()) > 0.97
    True
    """
    weights = np.zeros((X.shape[1] + 1, outputs))
    expected = sampler.sample_rate * sampler.n
    mean, tail = np.zeros_like(weights), recipe.steps // 2
    for number, rows in enumerate(sampler.batches(recipe.steps)):
        batch = X[rows]
        scores = batch @ weights[:-1] + weights[-1]
        total = clipped_sum(batch, slopes(scores, rows), recipe.clip)
        total += recipe.noise_multiplier * recipe.clip * generator.standard_normal(total.shape)
        gradient = total / expected + 2 * recipe.regularization * weights
        weights = project(weights - recipe.step * gradient, recipe.radius)
        if number >= tail:
            mean += weights
    return mean / (recipe.steps - tail) if recipe.average else weights
