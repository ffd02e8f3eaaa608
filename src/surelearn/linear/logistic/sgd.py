"""Stochastic gradient descent whose cost a row is the number of its non-zeros, not the number of
features.

One step on row x with step size η, decay λ and shrinkage λ₁ is, for dense weights,

    w ← shrink((1 − 2ηλ)·w − η·ℓ'(⟨w, x⟩)·x, ηλ₁),        shrink(a, c) = sign(a)·max(|a| − c, 0),

which touches every weight. Two engines give the same weights to rounding, touching only those with
x_j ≠ 0:

- *scaled* (λ₁ = 0): w = s·v, the decay multiplies the one number s. One random access a feature.
- *lazy*: a counter a feature says up to which step its weight was decayed; a touched weight is caught up *before* the
  prediction, then this step's decay and gradient are applied together; all are caught up once more
  at the end.

Reference: regularization slides, "Lazy Regularized Logistic Regression with SGD", after W. Cohen
(2012). As printed, the likelihood update is said of x_j = 0 and multiplied by w_j: it is for x_j ≠
0 and multiplied by x_j, and the catch-up is (1 − 2ημ)^m. Decaying first and predicting second, as
printed, is another algorithm.

The averaged iterate is the mean of the weights *before* each step, as single-pass theorems have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.linear.logistic.lazy import catch_up, extend, lazy_binary_pass, lazy_pass
from surelearn.linear.logistic.scaled import scaled_pass, scaled_softmax_pass

Array = npt.NDArray[Any]

BLOCK = 50  # rows that stand together in the file
STREAMS = 8  # blocks that are read in turns
TURN = 5  # rows of a block that are read one after another
NO_BIAS, PENALIZED_BIAS, FREE_BIAS = 0, 1, 2

# steps after which lazy weights are caught up, or d/8: then it costs little beside them
_TABLE = 1 << 15


@dataclass(frozen=True)
class CompressedRows:
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


def block_order(
    n: int,
    generator: np.random.RandomState,
    block: int = BLOCK,
    streams: int = STREAMS,
    turn: int = TURN,
) -> Array:
    """An order of n rows: blocks of 50 rows in random order, eight of them read in turns, five rows
    of each.

    Memory is read almost in order (2.1 ns a non-zero where a permutation of the rows takes 8), yet
    a file that is sorted by label does no harm: labels change every few rows. Small data get at
    least 64 blocks; below 128 rows it is a permutation.

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


class StochasticDescent:
    """Weights on their way: passes over rows, and the weights or their average at any time.

    Parameters
    ----------
    weights : (d + 1, K) where to begin, the bias last; K = 1 for two classes. Taken over, not
        copied
    decay, shrinkage : λ of λ‖w‖² and λ₁ of λ₁‖w‖₁
    bias : `NO_BIAS`, `PENALIZED_BIAS` (a padded feature 1) or `FREE_BIAS`
    bias_step : the bias moves by so much of a step, at most 1: it is in every row, and with a full
        step its noise may outweigh that of all other weights. The minimizer is the same. 1 is plain
        stochastic gradient descent.
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
        self._before = summed
        d, classes = weights.shape
        # 8 bytes: two large numbers are subtracted
        self._u = np.zeros((d if self.averaging else 0, classes))
        if engine == "lazy":
            self._begin_lazy(weights)
        else:
            self._v = np.ascontiguousarray(weights)
            self._state = np.zeros(2 + classes)
            self._state[0] = 1.0

    def _begin_lazy(self, weights: Array) -> None:
        d, classes = weights.shape
        # weights and a counter side by side
        self._v = np.empty((d, classes + 1), dtype=weights.dtype)
        self._v.fill(0)  # zero as a counter too
        if weights.any():
            self._v[:, :classes] = weights
        self._since = self._v.view(np.int32 if weights.dtype == np.float32 else np.int64)
        self._table = np.zeros((max(_TABLE, d // 8) + 1, 4 if self.averaging else 2))
        self._table[0, 0] = 1.0
        self._now = 0  # steps since the table began

    def run(
        self, rows: CompressedRows, order: Array, steps: Array, want_loss: bool = False
    ) -> float:
        """Visit ``rows[order]`` with these step sizes; the mean loss met on the way (0 where it
        was not wanted).
        """
        steps = np.ascontiguousarray(steps, dtype=np.float64)
        if steps.size and 2 * steps.max() * self.decay >= 1:
            raise ValueError(
                f"step must be below 1/(2·regularization) = {0.5 / self.decay:g}, not"
                f" {steps.max():g}: a longer step would overshoot the penalty"
            )
        order = np.ascontiguousarray(order, dtype=np.int64)
        loss = (self._run_lazy if self.engine == "lazy" else self._run_scaled)(
            rows, order, steps, want_loss
        )
        self.steps_summed += order.size if self.averaging else 0
        return loss / max(1, order.size)

    def _run_scaled(
        self, rows: CompressedRows, order: Array, steps: Array, want_loss: bool
    ) -> float:
        where = (
            rows.data,
            rows.indices,
            rows.indptr,
            rows.targets,
            rows.weights,
            order,
            steps,
            self.decay,
            self._bias,
        )
        if self._v.shape[1] > 1:
            return scaled_softmax_pass(self._v, self._u, self._state, *where, self.averaging)
        return scaled_pass(
            self._v[:, 0], self._u[:, 0], self._state, *where, self.averaging, want_loss
        )

    def _run_lazy(self, rows: CompressedRows, order: Array, steps: Array, want_loss: bool) -> float:  # noqa: ARG002
        loss, done = 0.0, 0
        where = (rows.data, rows.indices, rows.indptr, rows.targets, rows.weights)
        penalty = (self.decay, self.shrinkage, self._bias)
        while done < order.size:
            count = extend(self._table, self._now, steps[done:], self.decay, self.shrinkage)
            if count == 0:
                self._catch_up()
                continue
            now, part = (self._table, self._now), slice(done, done + count)
            if self._v.shape[1] == 2 and not self.averaging:
                loss += lazy_binary_pass(
                    self._v, self._since, *now, *where, order[part], steps[part], *penalty
                )
            else:
                loss += lazy_pass(
                    self._v, self._since, self._u, *now, *where, order[part], steps[part], *penalty
                )
            self._now += count
            done += count
        return loss

    def _catch_up(self) -> None:
        catch_up(self._v, self._since, self._u, self._table, self._now)
        self._now = 0

    def weights(self) -> Array:
        """The present weights, (d + 1, K)."""
        if self.engine == "lazy":
            self._catch_up()
            return self._v[:, :-1].copy()
        w = self._v * self._v.dtype.type(self._state[0])
        w[-1] = self._v[-1]
        return w

    def summed(self) -> Array:
        """The sum of the iterates so far, (d + 1, K), in 8-byte numbers."""
        if not self.averaging:
            raise ValueError("the iterates were not summed: give summed=")
        if self.engine == "lazy":
            self._catch_up()
            total = self._u.copy()
        else:
            total = self._state[1] * self._v.astype(np.float64) - self._u
            total[-1] = self._state[2:]
        return total if self._before is None else total + self._before

    def average(self) -> Array:
        """The mean of the weights before each step, (d + 1, K)."""
        return self.summed() / max(1, self.steps_summed)
