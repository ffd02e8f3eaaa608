"""One pass of stochastic gradient descent with a counter a feature, as the slides have it: any
per-coordinate penalty.

A weight and the counter of the steps that it has seen stand side by side, so that a feature costs
one place in memory. What skipped steps do is in a table, a row for each step t: 1/P_t with P_t =
∏(1 − 2ηλ), and Q_t = Σ ηλ₁/P. A weight w that has seen the steps before s is, before step t,

    sign(w)·max(P_t·(|w|/P_s + Q_s − Q_t), 0).

For averages the table has the sums of P and of P·Q before t too. It begins anew, with all weights
caught up, where P gets small or the table long.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from surelearn.linear.logistic.compiled import gaps, logistic_loss, logistic_slope

_SMALLEST_PRODUCT = 1e-3  # below it P would underflow and Q cancel


@numba.njit(cache=True)
def extend(table, now, steps, decay, shrinkage):
    """Fill the rows of the table after row ``now`` for more steps; how many of them fit. Row 0
    is (1, 0, …).
    """
    p, summing = 1.0 / table[now, 0], table.shape[1] > 2
    room = min(steps.size, table.shape[0] - 1 - now)
    for t in range(room):
        if p < _SMALLEST_PRODUCT:
            return t
        q, row = table[now + t, 1], now + t + 1
        if summing:
            table[row, 2] = table[row - 1, 2] + p
            table[row, 3] = table[row - 1, 3] + p * q
        p *= 1.0 - 2.0 * steps[t] * decay
        table[row, 0] = 1.0 / p
        table[row, 1] = q + steps[t] * shrinkage / p
    return room


@numba.njit(cache=True)
def lazy_binary_pass(
    w,
    since,
    table,
    now,
    data,
    indices,
    indptr,
    targets,
    weights,
    order,
    steps,
    decay,
    shrinkage,
    bias,
):
    """Two classes; ``w`` (d + 1, 2) and ``since`` are the same memory: weights are w[:, 0],
    counters since[:, 1].
    """
    last = w.shape[0] - 1
    b = float(w[last, 0])
    longest = np.diff(indptr).max() if order.size else 0
    values, raw, seen = (
        np.empty(longest),
        np.empty(longest, dtype=w.dtype),
        np.empty(longest, dtype=since.dtype),
    )
    loss = 0.0
    for t in range(order.size):
        i = order[t]
        index, x = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        p, q = 1.0 / table[now + t, 0], table[now + t, 1]
        dot = 0.0
        for k in range(index.size):  # a loop that only loads: more of them are under way at once
            raw[k], seen[k] = w[index[k], 0], since[index[k], 1]
        for k in range(index.size):
            value, s = float(raw[k]), seen[k]
            value = math.copysign(
                max(p * (abs(value) * table[s, 0] + (table[s, 1] - q)), 0.0), value
            )
            values[k] = value
            dot += value * x[k]
        m = targets[i] * (dot + b)
        weight = weights[i] if weights.size > 0 else 1.0
        loss += weight * logistic_loss(m)
        g = weight * targets[i] * logistic_slope(m)
        eta = steps[t]
        keep, cut, c = 1.0 - 2.0 * eta * decay, eta * shrinkage, eta * g
        for k in range(index.size):
            value = keep * values[k] - c * x[k]
            w[index[k], 0] = math.copysign(max(abs(value) - cut, 0.0), value)
            since[index[k], 1] = now + t + 1
        b -= eta * bias[0] * (g + 2.0 * bias[1] * b)
        b = math.copysign(max(abs(b) - eta * bias[0] * bias[2], 0.0), b)
    w[last, 0] = b
    return loss


@numba.njit(cache=True)
def _caught_up(w, table, since, now, summing):
    """A weight after the steps since..now−1 that skipped it, and the sum of its values before
    each of them.
    """
    if since == now or w == 0.0:
        return w, 0.0
    size = abs(w) * table[since, 0] + table[since, 1]
    left = (size - table[now, 1]) / table[now, 0]
    end = now
    if left <= 0.0:  # shrunk to zero on the way
        left = 0.0
        end = since + np.searchsorted(table[since : now + 1, 1], size) if summing else now
    total = 0.0
    if summing:
        total = math.copysign(
            size * (table[end, 2] - table[since, 2]) - (table[end, 3] - table[since, 3]), w
        )
    return math.copysign(left, w), total


@numba.njit(cache=True)
def lazy_pass(
    w,
    since,
    total,
    table,
    now,
    data,
    indices,
    indptr,
    targets,
    weights,
    order,
    steps,
    decay,
    shrinkage,
    bias,
):
    """Any number K of classes, one column for two; counters are since[:, K]; ``total`` sums the
    iterates or is empty.
    """
    last, classes = w.shape[0] - 1, w.shape[1] - 1
    averaging = total.size > 0
    z = np.empty(classes)
    loss = 0.0
    for t in range(order.size):
        i = order[t]
        z[:] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            j, x = indices[p], data[p]
            for k in range(classes):
                value, passed = _caught_up(
                    float(w[j, k]), table, since[j, classes], now + t, averaging
                )
                w[j, k] = value
                z[k] += value * x
                if averaging:
                    total[j, k] += passed + value
            since[j, classes] = now + t + 1
        for k in range(classes):
            z[k] += w[last, k]
            if averaging:
                total[last, k] += w[last, k]
        if classes == 1:
            m = targets[i] * z[0]
            loss_here = logistic_loss(m)
            z[0] = targets[i] * logistic_slope(m)
        else:
            loss_here = gaps(z, int(targets[i]))
        weight = weights[i] if weights.size > 0 else 1.0
        loss += weight * loss_here
        eta = steps[t]
        keep, cut = 1.0 - 2.0 * eta * decay, eta * shrinkage
        for p in range(indptr[i], indptr[i + 1]):
            for k in range(classes):
                value = keep * w[indices[p], k] - eta * weight * z[k] * data[p]
                w[indices[p], k] = math.copysign(max(abs(value) - cut, 0.0), value)
        for k in range(classes):
            value = w[last, k] - eta * bias[0] * (weight * z[k] + 2.0 * bias[1] * w[last, k])
            w[last, k] = math.copysign(max(abs(value) - eta * bias[0] * bias[2], 0.0), value)
    return loss


@numba.njit(cache=True)
def catch_up(w, since, total, table, now):
    """Bring all weights to the present and set the counters to 0."""
    classes = w.shape[1] - 1
    p, q = 1.0 / table[now, 0], table[now, 1]
    for j in range(w.shape[0] - 1):
        s = since[j, classes]
        for k in range(classes):
            value = float(w[j, k])
            if total.size > 0:
                w[j, k], passed = _caught_up(value, table, s, now, True)
                total[j, k] += passed
            elif value != 0.0:
                w[j, k] = math.copysign(
                    max(p * (abs(value) * table[s, 0] + (table[s, 1] - q)), 0.0), value
                )
        since[j, classes] = 0
