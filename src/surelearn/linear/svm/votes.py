"""One-vs-one: which pairs of classes meet, and how their machines vote."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def class_pairs(classes: int) -> list[tuple[int, int]]:
    """Pairs (k, l) of class numbers, l the positive one.

    Examples
    --------
    >>> class_pairs(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return list(combinations(range(classes), 2))


def votes(scores: np.ndarray, classes: int) -> np.ndarray:
    """Votes for every class from the scores of the machines of `class_pairs`; shape (n, classes).

    Each machine gives one vote: an indicator, not its score (the course notes print Σ_l ⟨x, w_kl⟩).
    Scores only break ties: their sums, squashed into (−⅓, ⅓), are added.

    Examples
    --------
    >>> votes(np.array([[-9.0, -0.1, 0.2]]), 3).round(1)
    array([[ 2.3, -0.3,  1. ]])
    """
    counted, summed = np.zeros((scores.shape[0], classes)), np.zeros((scores.shape[0], classes))
    for column, (k, l) in enumerate(class_pairs(classes)):  # noqa: E741 - the course's names
        positive = scores[:, column] > 0
        counted[:, l] += positive
        counted[:, k] += ~positive
        summed[:, l] += scores[:, column]
        summed[:, k] -= scores[:, column]
    return counted + summed / (3 * (np.abs(summed) + 1))
