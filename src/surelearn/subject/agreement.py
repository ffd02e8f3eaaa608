"""Whether a closed form gives the scores that the model itself gives, on rows and on mixtures
of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from surelearn.types import AnyArray, Array, Model

Function = Callable[[Array], AnyArray]
_ROWS = 64  # and as many mixtures of them, and random rows
_CLOSE = 1e-4  # of the largest score: a machine may compute in float32
_SURE = 1e-6


def mixtures(X: Array, most: int = _ROWS) -> Array:
    """Some of the rows, random mixtures of them, and rows near them; the same ones every time."""
    random, spread = np.random.RandomState(0), X.std(axis=0)
    first: Array = X[random.randint(len(X), size=most)]
    second: Array = X[random.randint(len(X), size=most)]
    near = first + random.standard_normal(first.shape) * np.where(spread > 0, spread, 1.0)
    return np.concatenate(
        [first, np.where(random.random_sample(first.shape) < 0.5, first, second), near]
    )


def apart_of(
    model: Model,
    formed: Function,
    own: Function,
    predict: Function,
    classes: Sequence[Any],
    votes: bool,
) -> Callable[[Array], bool]:
    """Whether scores ``formed`` by a closed form differ from the model's ``own``, as a function of
    rows.

    Up to what is added to all classes; where a model gives probabilities only, those; where
    machines vote, labels.
    """
    raw = hasattr(model, "decision_function")

    def apart(X: Array) -> bool:
        found = np.asarray(formed(X), dtype=float)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*feature names")
            if votes:
                sure = found.max(axis=1) > _SURE * max(1e-300, float(np.abs(found).max()))
                return bool((np.asarray(classes)[found.argmax(axis=1)] != predict(X))[sure].any())
            said = np.asarray(own(X), dtype=float)
        if said.shape != found.shape:
            return True
        found, said = (found - found[:, :1], said - said[:, :1]) if raw else (_softmax(found), said)
        return not bool(
            np.abs(said - found).max() <= _CLOSE * max(float(np.abs(said).max()), 1e-12)
        )

    return apart


def _softmax(scores: Array) -> Array:
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)
