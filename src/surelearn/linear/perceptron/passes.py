"""One pass of Algorithm 1 over the rows, compiled: imported when a perceptron is fitted, never
before.

``order`` holds the rows to visit, ``signs`` their labels ±1, ``weights`` the padded w (its last
entry is the bias), ``late`` Σ (steps before the update)·y·(x, 1), from which the average of all
iterates follows, ``counts`` the mistakes on each row. Each returns the mistakes of the pass.
"""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np

from surelearn.types import Array, Ints


@numba.njit(cache=True)
def dense_pass(X, signs, order, weights, late, counts, steps):  # noqa: D103 - see the module
    d = X.shape[1]
    mistakes = 0
    for i in order:
        score = weights[d]
        for j in range(d):
            score += weights[j] * X[i, j]
        if signs[i] * score <= 0.0:
            for j in range(d):
                weights[j] += signs[i] * X[i, j]
                late[j] += steps * signs[i] * X[i, j]
            weights[d] += signs[i]
            late[d] += steps * signs[i]
            counts[i] += 1
            mistakes += 1
        steps += 1
    return mistakes


@numba.njit(cache=True)
def sparse_pass(data, indices, indptr, signs, order, weights, late, counts, steps):  # noqa: D103 - see the module
    d = weights.shape[0] - 1
    mistakes = 0
    for i in order:
        score = weights[d]
        for k in range(indptr[i], indptr[i + 1]):
            score += weights[indices[k]] * data[k]
        if signs[i] * score <= 0.0:
            for k in range(indptr[i], indptr[i + 1]):
                weights[indices[k]] += signs[i] * data[k]
                late[indices[k]] += steps * signs[i] * data[k]
            weights[d] += signs[i]
            late[d] += steps * signs[i]
            counts[i] += 1
            mistakes += 1
        steps += 1
    return mistakes


def kernel_pass(
    column: Callable[[int], Array],
    signs: Array,
    order: Ints,
    scores: Array,
    counts: Ints,
    late: Ints,
    steps: int,
) -> int:
    """A pass with w = Σ counts_i·y_i·φ(x_i): ``scores`` of all rows are kept, ``column(i)`` is
    k(·, x_i) + 1.
    """
    mistakes, start = 0, 0
    while start < order.size:
        rest = order[start:]
        wrong = signs[rest] * scores[rest] <= 0.0
        at = int(np.argmax(wrong))
        if not wrong[at]:
            break
        i = int(rest[at])
        scores += signs[i] * column(i)
        counts[i] += 1
        late[i] += steps + start + at
        mistakes += 1
        start += at + 1
    return mistakes
