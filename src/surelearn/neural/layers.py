"""Dropout and batch normalization (course, Section 9), in NumPy. Teaching forms: networks use
torch's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelearn import stated
from surelearn.types import Array


def dropout(h: npt.ArrayLike, q: float, generator: np.random.Generator) -> Array:
    """Each unit stays with probability q and is then multiplied by 1/q, so that E[dropout(h)] = h.

    The factor belongs to the forward pass of training (the course says "during the
    back-propagation"): when the network is used, nothing is dropped and nothing multiplied.

    Examples
    --------
    >>> dropout(np.ones(6), 0.5, np.random.default_rng(0)).tolist()
    [0.0, 2.0, 2.0, 2.0, 0.0, 0.0]
    """
    if q != 1:
        stated.fraction("q", q)
    h = np.asarray(h, dtype=float)
    return np.where(generator.random(h.shape) < q, h / q, 0.0)


@dataclass(eq=False)
class BatchNormalization:
    """x ↦ γ(x − μ)/√(σ² + ε) + β, column by column (S. Ioffe and C. Szegedy 2015, Algorithm 1).

    In training μ and σ² are the batch's, and running means move a share ``momentum`` towards them
    (σ² with n − 1); in use they are the running means.

    Examples
    --------
    >>> layer = BatchNormalization(1)
    >>> layer.train([[0.0], [2.0]]).round(3).tolist()
    [[-1.0], [1.0]]
    >>> layer.mean.tolist(), layer.variance.tolist()
    ([0.1], [1.1])
    """

    width: int
    momentum: float = 0.1
    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        self.gamma, self.beta = np.ones(self.width), np.zeros(self.width)
        self.mean, self.variance = np.zeros(self.width), np.ones(self.width)

    def train(self, X: npt.ArrayLike) -> Array:
        """A batch (n, width), n ≥ 2, normalized by itself."""
        X = np.asarray(X, dtype=float)
        if len(X) < 2:
            raise ValueError("a batch must have at least two rows: one has no variance")
        mean, variance = X.mean(axis=0), X.var(axis=0)
        self.mean = self.mean + self.momentum * (mean - self.mean)
        unbiased = variance * len(X) / (len(X) - 1)
        self.variance = self.variance + self.momentum * (unbiased - self.variance)
        return self._normalized(X, mean, variance)

    def __call__(self, X: npt.ArrayLike) -> Array:
        """Rows in use: each by itself."""
        return self._normalized(np.asarray(X, dtype=float), self.mean, self.variance)

    def _normalized(self, X: Array, mean: Array, variance: Array) -> Array:
        return self.gamma * (X - mean) / np.sqrt(variance + self.epsilon) + self.beta
