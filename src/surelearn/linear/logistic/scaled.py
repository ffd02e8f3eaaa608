"""One pass of stochastic gradient descent with w = s·v: a decay of all weights multiplies the
one number s.
"""

from __future__ import annotations

import numba
import numpy as np

from surelearn.linear.logistic.compiled import FAST, gaps, logistic_loss, logistic_slope

_SMALLEST_SCALE = 1e-9
_SMALLEST_SCALE_AVERAGED = 1e-3  # sums of scales times changes cancel: three digits may go


@numba.njit(cache=True, fastmath=FAST)
def scaled_pass(
    v,
    u,
    state,
    data,
    indices,
    indptr,
    targets,
    weights,
    order,
    steps,
    decay,
    bias,
    averaging,
    want_loss,
):
    """Two classes, w = s·v; ``state`` is (s, sum of the scales met, sum of the biases met)."""
    last = v.size - 1
    scale, scales, biases = state[0], state[1], state[2]
    bias_step, bias_decay = bias[0], bias[1]
    b = float(v[last])
    zero = v.dtype.type(0)
    smallest = _SMALLEST_SCALE_AVERAGED if averaging else _SMALLEST_SCALE
    loss = 0.0
    for t in range(order.size):
        i = order[t]
        index, x = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        dot = zero
        for k in range(index.size):
            dot += v[index[k]] * x[k]
        y, eta = targets[i], steps[t]
        margin = y * (scale * dot + b)
        g = y * logistic_slope(margin)
        if weights.size > 0:
            g *= weights[i]
        if want_loss:
            one = logistic_loss(margin)
            loss += one * weights[i] if weights.size > 0 else one
        scales += scale  # the iterate before this step enters the average
        biases += b
        scale *= 1.0 - 2.0 * eta * decay
        if abs(scale) < smallest:
            for j in range(last):
                if averaging:
                    u[j] -= scales * v[j]
                v[j] *= v.dtype.type(scale)
            scale, scales = 1.0, 0.0
        c = v.dtype.type(-eta * g / scale)
        if averaging:
            for k in range(index.size):
                change = c * x[k]
                v[index[k]] += change
                u[index[k]] += scales * change
        else:
            for k in range(index.size):
                v[index[k]] += c * x[k]
        b -= eta * bias_step * (g + 2.0 * bias_decay * b)
    v[last] = b
    state[0], state[1], state[2] = scale, scales, biases
    return loss


@numba.njit(cache=True, fastmath=FAST)
def scaled_softmax_pass(
    v, u, state, data, indices, indptr, targets, weights, order, steps, decay, bias, averaging
):
    """Several classes, W = s·V with V of shape (d + 1, K); ``state`` is (s, sum of the scales,
    sums of the biases met).
    """
    last, classes = v.shape[0] - 1, v.shape[1]
    scale, scales = state[0], state[1]
    bias_step, bias_decay = bias[0], bias[1]
    z = np.empty(classes)
    smallest = _SMALLEST_SCALE_AVERAGED if averaging else _SMALLEST_SCALE
    loss = 0.0
    for t in range(order.size):
        i = order[t]
        z[:] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            row, x = v[indices[p]], data[p]
            for k in range(classes):
                z[k] += row[k] * x
        for k in range(classes):
            z[k] = scale * z[k] + v[last, k]
            state[2 + k] += v[last, k]
        one = gaps(z, targets[i])
        w = weights[i] if weights.size > 0 else 1.0
        loss += w * one
        scales += scale
        scale *= 1.0 - 2.0 * steps[t] * decay
        if abs(scale) < smallest:
            for j in range(last):
                for k in range(classes):
                    if averaging:
                        u[j, k] -= scales * v[j, k]
                    v[j, k] *= scale
            scale, scales = 1.0, 0.0
        for k in range(classes):
            v[last, k] -= steps[t] * bias_step * (w * z[k] + 2.0 * bias_decay * v[last, k])
            z[k] *= -steps[t] * w / scale
        for p in range(indptr[i], indptr[i + 1]):
            x = data[p]
            row = v[indices[p]]
            for k in range(classes):
                row[k] += z[k] * x
            if averaging:
                row = u[indices[p]]
                for k in range(classes):
                    row[k] += scales * z[k] * x
    state[0], state[1] = scale, scales
    return loss
