"""Convolution and pooling (course, Section 10), in NumPy. Teaching forms: networks use torch's.

As everywhere in deep learning, the kernel is not flipped: what is called convolution is
cross-correlation, (W ∗ X)_ij = Σ_uv W_uv·X_{i+u, j+v}.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from surelearn import stated
from surelearn.types import Array

Pair = int | tuple[int, int]


def output_size(m: int, a: int, stride: int = 1, padding: int = 0) -> int:
    """⌊1 + (m + 2p − a)/s⌋ places for a kernel of length a on m numbers with p zeros at either end.

    A stride as long as the kernel is fine (the course asks for less): pooling has it.

    Examples
    --------
    >>> output_size(32, 5), output_size(28, 2, stride=2), output_size(224, 11, stride=4, padding=2)
    (28, 14, 55)
    """
    stated.whole("stride", stride)
    stated.whole("padding", padding, 0)
    if m + 2 * padding < stated.whole("the kernel's length", a):
        raise ValueError(f"a kernel of length {a} does not fit into {m} with padding {padding}")
    return 1 + (m + 2 * padding - a) // stride


def same_padding(m: int, a: int, stride: int = 1) -> int:
    """P = ⌈(m(s − 1) + a − s)/2⌉, with which the output is as long as the input, or longer by one
    where a is even and s = 1. (The course prints m(s − a).)

    Examples
    --------
    >>> same_padding(28, 5), output_size(28, 5, padding=same_padding(28, 5))
    (2, 28)
    """
    return max(0, -(-(m * (stride - 1) + a - stride) // 2))


def convolve(
    X: npt.ArrayLike,
    W: npt.ArrayLike,
    bias: npt.ArrayLike = 0.0,
    *,
    stride: Pair = 1,
    padding: Pair = 0,
) -> Array:
    """W ∗ X + bias: at every place the inner product of the kernel and the part of X under it.

    Parameters
    ----------
    X : (m, n), or (channels, m, n)
    W : (a, b); (channels, a, b) for the sum over channels; or (outputs, channels, a, b)
    bias : one number, or one per output

    Examples
    --------
    The course's Example 10.1:

    >>> X = [[1, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 1, 1], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0]]
    >>> convolve(X, [[1, 0, 1], [0, 1, 0], [1, 0, 1]]).astype(int).tolist()
    [[4, 3, 4], [2, 4, 3], [2, 3, 4]]
    """
    x, w = np.asarray(X, dtype=float), np.asarray(W, dtype=float)
    kernels = w if w.ndim == 4 else w[None] if w.ndim == 3 else w[None, None]
    channels = x[None] if x.ndim == 2 else x
    if kernels.ndim != 4 or channels.ndim != 3 or kernels.shape[1] != len(channels):
        raise ValueError(
            f"X of shape {x.shape} and W of shape {w.shape} do not fit: both need the same channels"
        )
    windows = _windows(channels, kernels.shape[2:], stride, padding)
    out = np.einsum("cijuv,ocuv->oij", windows, kernels)
    out = out + np.broadcast_to(np.asarray(bias, dtype=float), len(kernels))[:, None, None]
    return out if w.ndim == 4 else out[0]


def convolution_matrix(W: npt.ArrayLike, shape: tuple[int, int]) -> Array:
    """W_circ with W_circ·vec(X) = vec(W ∗ X) for X of this shape: each row holds the kernel at
    another place. (A Toeplitz matrix, by blocks; the course calls it circulant.)

    Examples
    --------
    >>> convolution_matrix([[1, 2], [3, 4]], (3, 3))[:2].astype(int).tolist()
    [[1, 2, 0, 3, 4, 0, 0, 0, 0], [0, 1, 2, 0, 3, 4, 0, 0, 0]]
    """
    w = np.asarray(W, dtype=float)
    (m, n), (a, b) = shape, w.shape
    rows, columns = output_size(m, a), output_size(n, b)
    made = np.zeros((rows, columns, m, n))
    for i in range(rows):
        for j in range(columns):
            made[i, j, i : i + a, j : j + b] = w
    return made.reshape(rows * columns, m * n)


def pool(
    X: npt.ArrayLike,
    size: Pair = 2,
    *,
    how: Literal["max", "average"] = "max",
    stride: Pair | None = None,
) -> Array:
    """The largest number, or the mean, of each window of X (m, n) or (channels, m, n); windows lie
    side by side unless ``stride`` says otherwise.

    Examples
    --------
    >>> X = [[1, 2, 5, 6], [3, 4, 7, 8]]
    >>> pool(X).tolist(), pool(X, how="average").tolist()
    ([[4.0, 8.0]], [[2.5, 6.5]])
    """
    x = np.asarray(X, dtype=float)
    if how not in ("max", "average"):
        raise ValueError(f"how must be 'max' or 'average', not {how!r:.60}")
    windows = _windows(
        x[None] if x.ndim == 2 else x, _pair(size), size if stride is None else stride, 0
    )
    out = windows.max(axis=(3, 4)) if how == "max" else windows.mean(axis=(3, 4))
    return out[0] if x.ndim == 2 else out


def global_pool(X: npt.ArrayLike, *, how: Literal["max", "average"] = "average") -> Array:
    """One number per channel of X (channels, m, n): the window is the whole channel. (The course
    says a single scalar.)

    Examples
    --------
    >>> global_pool([[[1, 3], [5, 7]], [[0, 0], [0, 4]]]).tolist()
    [4.0, 1.0]
    """
    x = np.asarray(X, dtype=float)
    return pool(x, (x.shape[1], x.shape[2]), how=how)[:, 0, 0]


def _windows(x: Array, size: tuple[int, int], stride: Pair, padding: Pair) -> Array:
    """The parts of (channels, m, n) under the kernel at every place, (channels, rows, columns, a,
    b).
    """
    (s, t), (p, q) = _pair(stride), _pair(padding)
    rows = output_size(x.shape[1], size[0], s, p)
    columns = output_size(x.shape[2], size[1], t, q)
    padded = np.pad(x, ((0, 0), (p, p), (q, q)))
    found = np.lib.stride_tricks.sliding_window_view(padded, size, axis=(1, 2))  # type: ignore[call-overload]
    return found[:, ::s, ::t][:, :rows, :columns]


def _pair(value: Pair) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value
