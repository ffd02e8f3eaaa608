"""Dual coordinate ascent, compiled: imported when a support vector machine is fitted, never before.

Each α_i in turn moves to the best value in [0, upper_i] while the others stay (C.-J. Hsieh et al.,
ICML 2008, the algorithm of LIBLINEAR; with a kernel I. Steinwart et al., JMLR 12 (2011), "SVMs
without offset"). Rows z_i = y_i·x_i are walked over with shrinking (Hsieh et al., Section 3.2):
those that sit at a bound and are pushed against it are left out until the others are done, so that
a hundred rounds cost little more than ten passes over all rows.
"""

from __future__ import annotations

import numba
import numpy as np

# D. Knuth's generator, MMIX
_FACTOR, _ADDEND = np.uint64(6364136223846793005), np.uint64(1442695040888963407)


@numba.njit(cache=True)
def gram_passes(Q, passes, seed, alpha, upper, margins):
    """Q_ij = y_i y_j k(x_i, x_j); ``margins`` = Qα is kept."""
    order, state = np.arange(alpha.size), np.uint64(seed)
    for _ in range(passes):
        state = _shuffle(order, order.size, state)
        for i in order:
            best = _best(alpha[i], upper[i], margins[i], Q[i, i])
            move, alpha[i] = best - alpha[i], best
            if move != 0.0:
                for j in range(margins.shape[0]):
                    margins[j] += move * Q[i, j]


@numba.njit(cache=True)
def dense_rounds(Z, squared, visits, slack, seed, alpha, upper, weights):
    """Walk over dense rows until their gradients agree up to ``slack`` or ``visits`` are spent; the
    visits made.

    ``weights`` = Σ α_i z_i is kept.
    """
    order, state = np.arange(alpha.size), np.uint64(seed)
    active, done, highest, lowest = alpha.size, 0, np.inf, -np.inf
    while done < visits:
        state = _shuffle(order, active, state)
        high, low, place = -np.inf, np.inf, 0
        while place < active:
            i = order[place]
            margin = 0.0
            for j in range(weights.shape[0]):
                margin += Z[i, j] * weights[j]
            done += 1
            if _settled(alpha[i], upper[i], margin - 1.0, highest, lowest):
                active -= 1
                order[place], order[active] = order[active], i
                continue
            push = _push(alpha[i], upper[i], margin - 1.0)
            high, low = max(high, push), min(low, push)
            best = _best(alpha[i], upper[i], margin, squared[i])
            move, alpha[i] = best - alpha[i], best
            if move != 0.0:
                for j in range(weights.shape[0]):
                    weights[j] += move * Z[i, j]
            place += 1
        if high - low <= slack:
            if active == alpha.size:
                break
            active, highest, lowest = alpha.size, np.inf, -np.inf
        else:
            highest, lowest = high if high > 0 else np.inf, low if low < 0 else -np.inf
    return done


@numba.njit(cache=True)
def sparse_rounds(data, indices, indptr, squared, visits, slack, seed, alpha, upper, weights):
    """Rounds of dual coordinate descent over CSR rows."""
    order, state = np.arange(alpha.size), np.uint64(seed)
    active, done, highest, lowest = alpha.size, 0, np.inf, -np.inf
    while done < visits:
        state = _shuffle(order, active, state)
        high, low, place = -np.inf, np.inf, 0
        while place < active:
            i = order[place]
            margin = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                margin += data[k] * weights[indices[k]]
            done += 1
            if _settled(alpha[i], upper[i], margin - 1.0, highest, lowest):
                active -= 1
                order[place], order[active] = order[active], i
                continue
            push = _push(alpha[i], upper[i], margin - 1.0)
            high, low = max(high, push), min(low, push)
            best = _best(alpha[i], upper[i], margin, squared[i])
            move, alpha[i] = best - alpha[i], best
            if move != 0.0:
                for k in range(indptr[i], indptr[i + 1]):
                    weights[indices[k]] += move * data[k]
            place += 1
        if high - low <= slack:
            if active == alpha.size:
                break
            active, highest, lowest = alpha.size, np.inf, -np.inf
        else:
            highest, lowest = high if high > 0 else np.inf, low if low < 0 else -np.inf
    return done


@numba.njit(cache=True)
def _shuffle(order, size, state):
    """Put the first ``size`` entries into a random order (R. Fisher and F. Yates); the
    generator's new state.
    """
    for place in range(size):
        state = state * _FACTOR + _ADDEND
        other = place + np.int64((state >> np.uint64(33)) % np.uint64(size - place))
        order[place], order[other] = order[other], order[place]
    return state


@numba.njit(cache=True)
def _settled(alpha, upper, gradient, highest, lowest):
    """Whether α sits at a bound and is pushed against it harder than any other row was pushed
    inwards.
    """
    return (alpha == 0.0 and gradient > highest) or (alpha == upper and gradient < lowest)


@numba.njit(cache=True)
def _push(alpha, upper, gradient):
    """The gradient, without what the box stops."""
    if alpha == 0.0:
        return min(gradient, 0.0)
    return max(gradient, 0.0) if alpha == upper else gradient


@numba.njit(cache=True)
def _best(alpha, upper, margin, squared):
    if squared <= 0.0:  # the vector is 0: its margin stays 0 below 1
        return upper
    return min(max(alpha + (1.0 - margin) / squared, 0.0), upper)
