"""Randomized smoothing (J. Cohen, E. Rosenfeld and J. Z. Kolter, ICML 2019): what a model says
most often under noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from surelearn import stated
from surelearn.bounds.robustness import smoothed_radius
from surelearn.claim import Claim, Covers
from surelearn.subject import score_function
from surelearn.types import Model, RowsLike

_PIECE = 2**22  # numbers in a batch of noisy rows


@dataclass(frozen=True, eq=False)
class SmoothedLabels:
    """What the smoothed classifier says of rows: ``labels``, and ``abstained`` where too few
    noises agree to be sure.
    """

    labels: np.ndarray
    abstained: np.ndarray


@dataclass(frozen=True, eq=False)
class SmoothedRadii:
    """Certified L2 radii of the smoothed classifier, each failing with probability at most
    ``alpha``.

    Attributes
    ----------
    labels : the class that stays
    values : the radius, in units of ``scale``; 0 where the certificate abstains
    abstained : whether it does
    successes, n : noises under which the class was predicted, of how many
    alpha, noise : the failure probability a row, and the noise's standard deviation
    """

    labels: np.ndarray
    values: np.ndarray
    abstained: np.ndarray
    successes: np.ndarray
    n: int
    alpha: float
    noise: float

    def claim(self, row: int, **options: Any) -> Claim:
        """The claim about one row, alone: the smoothed classifier says the same within the
        radius.
        """
        covers = Covers(predictor="smoothed", rows=f"row {row}")
        options = {"covers": covers, "label": f"l2 radius of row {row}, smoothed", **options}
        return smoothed_radius.certify(
            int(self.successes[row]), self.n, self.alpha, self.noise, **options
        )


class SmoothedClassifier:
    """Predicts the class that a fitted model gives most often to x + σ·scale·N(0, I), and certifies
    how far x may move.

    Parameters
    ----------
    model : anything that predicts labels, as `surelearn.subject` takes it
    sigma : σ, the noise level: a standard deviation in units of ``scale``, not a kernel's length
    scale : the unit of every column; a number or one per column (0: no noise, and the column may
        not move)
    select, samples : noises that choose a class, and further ones that count how often it is
        predicted
    alpha : the failure probability of a row's answer or radius
    random_state : of the noise; the same for the same seed, whatever else was asked before

    Examples
    --------
    >>> model = SmoothedClassifier(lambda X: (X[:, 0] > 0).astype(int), sigma=0.5, random_state=0)
    >>> found = model.certify(np.array([[1.0], [0.01]]))
    >>> found.labels.tolist(), found.abstained.tolist(), bool(0.8 < found.values[0] < 1.0)
    ([1, 1], [False, True], True)
    """

    def __init__(
        self,
        model: Model,
        *,
        sigma: float,
        scale: npt.ArrayLike | None = 1.0,
        select: int = 100,
        samples: int = 1000,
        alpha: float = 0.001,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        stated.positive("sigma", sigma)
        stated.fraction("alpha", alpha)
        for name, value in (("select", select), ("samples", samples)):
            if isinstance(value, bool) or value != int(value) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, not {value!r}")
        self.model, self.sigma, self.scale = model, float(sigma), np.asarray(scale, dtype=float)
        if np.isnan(self.scale).any() or (self.scale < 0).any():
            raise ValueError("scale must not be negative or NaN")
        self.select, self.samples, self.alpha, self.random_state = (
            int(select),
            int(samples),
            float(alpha),
            random_state,
        )
        self.f = score_function(model)

    def predict(self, X: RowsLike) -> np.ndarray:
        """The class predicted most often under noise, sure or not: see `decide`."""
        return self.decide(X).labels

    def decide(self, X: RowsLike) -> SmoothedLabels:
        """The most frequent class; it abstains unless a fair coin would rarely favor it so much
        over the second (α).

        Where it does not abstain, the answer is not the smoothed classifier's with probability at
        most α (Proposition 1).
        """
        labels, counts = self._counts(X, self.samples, self._random())
        order = np.sort(counts, axis=1)
        first, second = (
            order[:, -1],
            order[:, -2] if counts.shape[1] > 1 else np.zeros(len(counts), dtype=int),
        )
        tail = np.minimum(1.0, 2 * binom.sf(first - 1, first + second, 0.5))
        return SmoothedLabels(labels[counts.argmax(axis=1)], tail > self.alpha)

    def certify(self, X: RowsLike) -> SmoothedRadii:
        """The class that ``select`` noises choose, and its radius from ``samples`` others
        (Theorem 1, Proposition 2).
        """
        random = self._random()
        labels, chosen = self._counts(X, self.select, random)
        said = labels[chosen.argmax(axis=1)]
        names, counts = self._counts(X, self.samples, random)
        successes = (counts * (names == said[:, None])).sum(axis=1)
        values = np.asarray(
            smoothed_radius(successes, self.samples, self.alpha, self.sigma), dtype=float
        )
        return SmoothedRadii(
            said, values, values == 0, successes, self.samples, self.alpha, self.sigma
        )

    def _random(self) -> np.random.RandomState:
        seed = self.random_state
        return seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)

    def _counts(
        self, X: RowsLike, samples: int, random: np.random.RandomState
    ) -> tuple[np.ndarray, np.ndarray]:
        """Labels that occur, and how often each was predicted for every row under noise; (n,
        labels).
        """
        Z = np.array(X, dtype=np.float64, ndmin=2)
        if not np.isfinite(Z).all():
            raise ValueError("X must be finite: noise cannot be added to NaN or infinity")
        said = np.concatenate(
            [self._noisy(Z[some], samples, random) for some in _pieces(Z, samples)]
        )
        labels, codes = np.unique(said, return_inverse=True)
        counts = np.zeros((len(Z), len(labels)), dtype=int)
        np.add.at(counts, (np.repeat(np.arange(len(Z)), samples), codes.ravel()), 1)
        return labels, counts

    def _noisy(self, X: np.ndarray, samples: int, random: np.random.RandomState) -> np.ndarray:
        noise = random.standard_normal((len(X), samples, X.shape[1])) * (self.sigma * self.scale)
        return self.f.predict((X[:, None] + noise).reshape(-1, X.shape[1]))


def _pieces(X: np.ndarray, samples: int) -> list[slice]:
    step = max(1, _PIECE // max(1, samples * X.shape[1]))
    return [slice(start, start + step) for start in range(0, max(1, len(X)), step)]
