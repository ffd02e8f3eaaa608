"""Stochastic gradient descent whose cost a row is the number of its non-zeros, not the number of features.

One step on row x with step size η, decay λ and shrinkage λ₁ is, for dense weights,

    w ← shrink((1 − 2ηλ)·w − η·ℓ'(⟨w, x⟩)·x, ηλ₁),        shrink(a, c) = sign(a)·max(|a| − c, 0),

which touches every weight. Two engines give the same weights to rounding, touching only those with x_j ≠ 0:

- *scaled* (λ₁ = 0): w = s·v, the decay multiplies the one number s. One random access a feature.
- *lazy*: a counter a feature says up to which step its weight was decayed; a touched weight is caught up *before* the
  prediction, then this step's decay and gradient are applied together; all are caught up once more at the end.

Reference: regularization slides, "Lazy Regularized Logistic Regression with SGD", after W. Cohen (2012). As printed, the
likelihood update is said of x_j = 0 and multiplied by w_j: it is for x_j ≠ 0 and multiplied by x_j, and the catch-up is
(1 − 2ημ)^m. Decaying first and predicting second, as printed, is another algorithm.

The averaged iterate is the mean of the weights *before* each step, as single-pass theorems have it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

BLOCK = 50  # rows that stand together in the file
STREAMS = 8  # blocks that are read in turns
TURN = 5  # rows of a block that are read one after another
NO_BIAS, PENALIZED_BIAS, FREE_BIAS = 0, 1, 2

_FAST = {"reassoc", "contract", "arcp", "nsz"}  # sums in any order; NaN and infinity stay what they are
_SMALLEST_SCALE = 1e-9
_SMALLEST_SCALE_AVERAGED = 1e-3  # sums of scales times changes cancel: three digits may go
_SMALLEST_PRODUCT = 1e-3


@dataclass(frozen=True)
class Rows:
    """Rows as compressed sparse rows with 4-byte unsigned indices.

    Attributes
    ----------
    data, indices, indptr : (nnz,), (nnz,) uint32, (n + 1,) int64
    targets : (n,) −1.0 and 1.0 for two classes, else the number of the class
    weights : (n,) or empty, for equal weights
    """

    data: Array
    indices: Array
    indptr: Array
    targets: Array
    weights: Array

    def __len__(self) -> int:
        return self.indptr.size - 1


def block_order(n: int, generator: Any, block: int = BLOCK, streams: int = STREAMS, turn: int = TURN) -> Array:
    """An order of n rows: blocks of 50 rows in random order, eight of them read in turns, five rows of each.

    Memory is read almost in order (2.1 ns a non-zero where a permutation of the rows takes 8), yet a file that is sorted by
    label does no harm: labels change every few rows. Small data get at least 64 blocks; below 128 rows it is a permutation.

    Parameters
    ----------
    generator : something with ``permutation``, such as `numpy.random.RandomState`

    Examples
    --------
    >>> sorted(block_order(1000, np.random.RandomState(0)).tolist()) == list(range(1000))
    True
    """
    block = max(1, min(block, n // 64))
    turn = min(turn, block)
    count, turns = -(-n // block), -(-block // turn)
    starts = np.full(-(-count // streams) * streams, n, dtype=np.int64)
    starts[:count] = generator.permutation(count) * block
    offsets = np.arange(turns * turn).reshape(1, turns, 1, turn)
    order = np.where(offsets < block, starts.reshape(-1, 1, streams, 1) + offsets, n).ravel()
    return order[order < n]


@numba.njit(cache=True, fastmath=_FAST)
def _scaled_pass(v, u, state, data, indices, indptr, targets, weights, order, steps, decay, bias, averaging, want_loss):
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
        g = -y / (1.0 + math.exp(margin))
        if weights.size > 0:
            g *= weights[i]
        if want_loss:
            one = math.log1p(math.exp(-abs(margin))) + max(-margin, 0.0)
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


@numba.njit(cache=True, fastmath=_FAST)
def _softmax(z, target):
    """Scores become probabilities minus the target's indicator; returns the logarithmic loss."""
    top = z[0]
    for k in range(1, z.size):
        top = max(top, z[k])
    total = 0.0
    mine = z[target] - top
    for k in range(z.size):
        z[k] = math.exp(z[k] - top)
        total += z[k]
    for k in range(z.size):
        z[k] /= total
    z[target] -= 1.0
    return math.log(total) - mine


@numba.njit(cache=True, fastmath=_FAST)
def _scaled_softmax_pass(v, u, state, data, indices, indptr, targets, weights, order, steps, decay, bias, averaging):
    """Several classes, W = s·V with V of shape (d + 1, K); ``state`` is (s, sum of the scales, sums of the biases met)."""
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
        one = _softmax(z, targets[i])
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


@numba.njit(cache=True)
def _products(steps, decay, shrinkage):
    """What skipped steps do, a row for t = 0, 1, …: P_t = ∏(1 − 2ηλ), Q_t = Σ ηλ₁/P, and the sums of P and P·Q before t."""
    n = steps.size
    table = np.zeros((n + 1, 4))
    table[0, 0] = 1.0
    for t in range(n):
        p, q = table[t, 0], table[t, 1]
        table[t + 1, 0] = p * (1.0 - 2.0 * steps[t] * decay)
        table[t + 1, 1] = q + steps[t] * shrinkage / table[t + 1, 0]
        table[t + 1, 2] = table[t, 2] + p
        table[t + 1, 3] = table[t, 3] + p * q
        if table[t + 1, 0] < _SMALLEST_PRODUCT:  # begin anew there, lest P underflow and Q cancel
            return table[: t + 2]
    return table


@numba.njit(cache=True)
def _caught_up(w, table, since, now, summing):
    """A weight after the steps since..now−1 that skipped it, and the sum of its values before each of them."""
    if since == now or w == 0.0:
        return w, 0.0
    size = abs(w) / table[since, 0] + table[since, 1]
    left = table[now, 0] * (size - table[now, 1])
    end = now
    if left <= 0.0:  # shrunk to zero on the way
        left = 0.0
        end = since + np.searchsorted(table[since : now + 1, 1], size) if summing else now
    total = 0.0
    if summing:
        total = math.copysign(size * (table[end, 2] - table[since, 2]) - (table[end, 3] - table[since, 3]), w)
    return math.copysign(left, w), total


@numba.njit(cache=True)
def _lazy_pass(w, total, since, table, data, indices, indptr, targets, weights, order, steps, decay, shrinkage, bias):
    """Any number of classes; W of shape (d + 1, K), one column for two classes; ``total`` sums the iterates or is empty."""
    last, classes = w.shape[0] - 1, w.shape[1]
    averaging = total.size > 0
    z = np.empty(classes)
    loss = 0.0
    for t in range(order.size):
        i = order[t]
        z[:] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            j, x = indices[p], data[p]
            for k in range(classes):
                value, passed = _caught_up(float(w[j, k]), table, since[j], t, averaging)
                w[j, k] = value
                z[k] += value * x
                if averaging:
                    total[j, k] += passed + value
            since[j] = t + 1
        for k in range(classes):
            z[k] += w[last, k]
            if averaging:
                total[last, k] += w[last, k]
        if classes == 1:
            m = targets[i] * z[0]
            loss_here = math.log1p(math.exp(-abs(m))) + max(-m, 0.0)
            z[0] = -targets[i] / (1.0 + math.exp(m))
        else:
            loss_here = _softmax(z, int(targets[i]))
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
    now = order.size
    for j in range(last):  # catch up one more time before stopping
        for k in range(classes):
            value, passed = _caught_up(float(w[j, k]), table, since[j], now, averaging)
            w[j, k] = value
            if averaging:
                total[j, k] += passed
        since[j] = 0
    return loss


class Descent:
    """Weights on their way: passes over rows, and the weights or their average at any time.

    Parameters
    ----------
    weights : (d + 1, K) where to begin, the bias last; K = 1 for two classes. Taken over, not copied
    decay, shrinkage : λ of λ‖w‖² and λ₁ of λ₁‖w‖₁
    bias : `NO_BIAS`, `PENALIZED_BIAS` (a padded feature 1) or `FREE_BIAS`
    bias_step : the bias moves by so much of a step, at most 1: it is in every row, and with a full step its noise may
        outweigh that of all other weights. The minimizer is the same. 1 is plain stochastic gradient descent.
    engine : "scaled" or "lazy"
    summed : (d + 1, K) the sum of the iterates so far, or None not to average
    steps_summed : how many iterates it holds
    """

    def __init__(
        self,
        weights: Array,
        *,
        decay: float = 0.0,
        shrinkage: float = 0.0,
        bias: int = PENALIZED_BIAS,
        bias_step: float = 1.0,
        engine: str = "scaled",
        summed: Array | None = None,
        steps_summed: int = 0,
    ) -> None:
        if engine not in ("scaled", "lazy"):
            raise ValueError(f"engine must be 'scaled' or 'lazy', not {engine!r}")
        if engine == "scaled" and shrinkage > 0:
            raise ValueError("the scaled engine has no L1 penalty: use engine='lazy'")
        if not 0 < bias_step <= 1:
            raise ValueError(f"bias_step must lie in (0, 1], not {bias_step}")
        self.decay, self.shrinkage, self.engine = float(decay), float(shrinkage), engine
        penalized, moves = float(bias == PENALIZED_BIAS), float(bias != NO_BIAS)
        self._bias = (moves * float(bias_step), penalized * self.decay, penalized * self.shrinkage)
        self.averaging = summed is not None
        self.steps_summed = steps_summed
        self._v = np.ascontiguousarray(weights)
        self._before = summed
        self._reset()

    def _reset(self) -> None:
        d, classes = self._v.shape
        self._u = np.zeros((d if self.averaging else 0, classes))  # 8 bytes: two large numbers are subtracted
        self._state = np.zeros(2 + classes)
        self._state[0] = 1.0
        if self.engine == "lazy":
            self._since = np.zeros(d - 1, dtype=np.int32)

    def run(self, rows: Rows, order: Array, steps: Array, want_loss: bool = False) -> float:
        """Visit ``rows[order]`` with these step sizes; the mean loss met on the way (0 where it was not wanted)."""
        steps = np.ascontiguousarray(steps, dtype=np.float64)
        if steps.size and 2 * steps.max() * self.decay >= 1:
            raise ValueError(
                f"step must be below 1/(2·regularization) = {0.5 / self.decay:g}, not {steps.max():g}: "
                "a longer step would overshoot the penalty"
            )
        order = np.ascontiguousarray(order, dtype=np.int64)
        loss = (self._run_lazy if self.engine == "lazy" else self._run_scaled)(rows, order, steps, want_loss)
        self.steps_summed += order.size if self.averaging else 0
        return loss / max(1, order.size)

    def _run_scaled(self, rows: Rows, order: Array, steps: Array, want_loss: bool) -> float:
        where = (rows.data, rows.indices, rows.indptr, rows.targets, rows.weights, order, steps, self.decay, self._bias)
        if self._v.shape[1] > 1:
            return _scaled_softmax_pass(self._v, self._u, self._state, *where, self.averaging)
        return _scaled_pass(self._v[:, 0], self._u[:, 0], self._state, *where, self.averaging, want_loss)

    def _run_lazy(self, rows: Rows, order: Array, steps: Array, want_loss: bool) -> float:  # noqa: ARG002
        loss, done = 0.0, 0
        where = (rows.data, rows.indices, rows.indptr, rows.targets, rows.weights)
        while done < order.size:
            table = _products(steps[done:], self.decay, self.shrinkage)
            part = slice(done, done + table.shape[0] - 1)
            penalty = (self.decay, self.shrinkage, self._bias)
            loss += _lazy_pass(self._v, self._u, self._since, table, *where, order[part], steps[part], *penalty)
            done = part.stop
        return loss

    def weights(self) -> Array:
        """The present weights, (d + 1, K)."""
        if self.engine == "lazy":
            return self._v.copy()
        w = self._v * self._v.dtype.type(self._state[0])
        w[-1] = self._v[-1]
        return w

    def summed(self) -> Array:
        """The sum of the iterates so far, (d + 1, K), in 8-byte numbers."""
        if not self.averaging:
            raise ValueError("the iterates were not summed: give summed=")
        if self.engine == "lazy":
            total = self._u.astype(np.float64)
        else:
            total = self._state[1] * self._v.astype(np.float64) - self._u
            total[-1] = self._state[2:]
        return total if self._before is None else total + self._before

    def average(self) -> Array:
        """The mean of the weights before each step, (d + 1, K)."""
        return self.summed() / max(1, self.steps_summed)
