"""One pass of dual coordinate ascent, compiled: imported when a support vector machine is fitted, never before.

Each α_i in turn moves to the best value in [0, upper_i] while the others stay (C.-J. Hsieh et al., ICML 2008, the algorithm
of LIBLINEAR; with a kernel I. Steinwart et al., JMLR 12 (2011), "SVMs without offset").
"""

from __future__ import annotations

import numba


@numba.njit(cache=True)
def gram_pass(Q, order, alpha, upper, margins):
    """Q_ij = y_i y_j k(x_i, x_j); ``margins`` = Qα is kept."""
    for i in order:
        move = _move(alpha[i], upper[i], margins[i], Q[i, i])
        if move != 0.0:
            alpha[i] += move
            for j in range(margins.shape[0]):
                margins[j] += move * Q[i, j]


@numba.njit(cache=True)
def dense_pass(Z, squared, order, alpha, upper, weights):
    """Rows z_i = y_i·x_i; ``weights`` = Σ α_i z_i is kept."""
    for i in order:
        margin = 0.0
        for j in range(weights.shape[0]):
            margin += Z[i, j] * weights[j]
        move = _move(alpha[i], upper[i], margin, squared[i])
        if move != 0.0:
            alpha[i] += move
            for j in range(weights.shape[0]):
                weights[j] += move * Z[i, j]


@numba.njit(cache=True)
def sparse_pass(data, indices, indptr, squared, order, alpha, upper, weights):
    """The same for CSR rows."""
    for i in order:
        margin = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            margin += data[k] * weights[indices[k]]
        move = _move(alpha[i], upper[i], margin, squared[i])
        if move != 0.0:
            alpha[i] += move
            for k in range(indptr[i], indptr[i + 1]):
                weights[indices[k]] += move * data[k]


@numba.njit(cache=True)
def _move(alpha, upper, margin, squared):
    if squared <= 0.0:  # the vector is 0: its margin stays 0 below 1
        return upper - alpha
    return min(max(alpha + (1.0 - margin) / squared, 0.0), upper) - alpha
