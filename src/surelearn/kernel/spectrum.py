"""The spectrum of a kernel's operator, estimated from a subsample, and what it says about gradient
descent.

The operator f ↦ (1/n)·Σ f(x_i)·k(x_i, ·) has the eigenvalues of K/n; those of K_S/s for a random
subsample S of s rows estimate them, and k(x, S)·v/(s·λ) extends an eigenvector v to any x
(Nyström). All eigenvalues come from a dense solver; a few of a large matrix from a block Lanczos
method with a random start, where that is quicker (see `leading_eigensystem`).
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from surelearn.kernel.functions import Kernel
from surelearn.types import Array, RowsLike

if TYPE_CHECKING:
    import torch
    from matplotlib.axes import Axes

_METHODS = ("auto", "dense", "randomized")
_LARGE, _SHARE = 1000, 50  # randomized from so many rows on, for at most one in so many directions


@dataclass(frozen=True)
class Decay:
    """How eigenvalues fall: ln λ_i fitted by least squares as c − p·ln i, and as c − r·i.

    Attributes
    ----------
    kind : "power" or "exponential", whichever fits better; "none" with fewer than three positive
        eigenvalues
    exponent, rate : p and r
    power_error, exponential_error : root mean squared errors of ln λ_i
    first, last : the indices i fitted, from 1
    """

    kind: str
    exponent: float
    rate: float
    power_error: float
    exponential_error: float
    first: int
    last: int

    def __str__(self) -> str:
        words = {
            "power": f"λ_i ~ i^−{self.exponent:.2f}",
            "exponential": f"λ_i ~ e^(−{self.rate:.3g}·i)",
        }
        return words.get(self.kind, "too few positive eigenvalues to tell")


@dataclass(frozen=True, eq=False)
class Extension:
    """What carries eigenvectors to new rows: the kernel, the subsample's rows (s, d) and
    eigenvectors (s, r) as columns.
    """

    kernel: Kernel
    rows: np.ndarray
    vectors: Array


@dataclass(frozen=True, eq=False)
class KernelSpectrum:
    """Eigenvalues λ₁ ≥ λ₂ ≥ … ≥ 0 of K_S/s, and β = max k(x, x).

    Attributes
    ----------
    eigenvalues : (s,) or the leading ones, descending
    beta : β(K), the largest k(x, x) of the rows
    extension : eigenvectors and their rows, where they were asked for
    """

    eigenvalues: Array
    beta: float
    extension: Extension | None = field(default=None, repr=False)

    def critical_batch_size(self, q: int = 0) -> float:
        """m* = β/λ_{q+1}: up to about it, doubling the batch halves the iterations (Ma, Bassily and
        Belkin 2018).

        With η of `step_size`, an iteration on m rows moves as far as m/(1 + (m − 1)/m*) iterations
        on one: half of m at m* + 1, which other texts call m*, and never more than m*.
        """
        top = self.eigenvalues[q] if q < len(self.eigenvalues) else 0.0
        return float(self.beta / top) if top > 0 else float("inf")

    def directions(self, batch_size: int, share: float = 0.8) -> int:
        """The fewest directions q to flatten for which an iteration on m rows moves as far as
        share·m iterations on one.

        By `critical_batch_size` that is m* ≥ (m − 1)·share/(1 − share): EigenPro 2 chooses q by m*
        = m, half of m.

        Examples
        --------
        >>> KernelSpectrum(np.array([1.0, 0.1, 0.01]), 1.0).directions(5, 0.5)
        1
        """
        return int(((batch_size - 1) * share * self.eigenvalues > (1.0 - share) * self.beta).sum())

    def step_size(self, batch_size: int, q: int = 0) -> float:
        """η = m/(β + (m − 1)·λ_{q+1}), for α_B ← α_B − (η/m)·(residual on B)."""
        top = float(self.eigenvalues[q]) if q < len(self.eigenvalues) else 0.0
        return batch_size / (self.beta + (batch_size - 1) * top) if self.beta > 0 else 1.0

    def acceleration(self, q: int) -> float:
        """λ₁/λ_{q+1}: how many times fewer full-batch iterations q flattened directions need."""
        top = self.eigenvalues[q] if q < len(self.eigenvalues) else 0.0
        return float(self.eigenvalues[0] / top) if top > 0 else float("inf")

    def effective_dimension(self, regularization: float) -> float:
        """Σ λ_i/(λ_i + λ); of leading eigenvalues only, too little by at most (the sum of the
        others)/λ.
        """
        values = self.eigenvalues[self.eigenvalues > 0]
        return float((values / (values + regularization)).sum())

    def computational_reach(self, iterations: int, epsilon: float) -> int:
        """How many directions T gradient steps with η = 1/λ₁ fit to a share ε: (1 − λ_i/λ₁)^T ≤ ε
        (the exponent is T).

        Examples
        --------
        >>> KernelSpectrum(np.array([1.0, 0.5, 1e-6]), 1.0).computational_reach(100, 0.01)
        2
        """
        top = self.eigenvalues[0]
        if not top > 0:
            return 0
        return int(((1.0 - self.eigenvalues / top) ** iterations <= epsilon).sum())

    def decay(self, first: int = 1, last: int | None = None) -> Decay:
        """The power law and the exponential nearest to λ_first … λ_last, least squares of ln λ_i
        over i.

        By default all down to 1e-10·λ₁, where rounding begins. The last of a subsample's
        eigenvalues are too small: fit no more than its first tenth where the operator itself is
        meant.

        Examples
        --------
        >>> KernelSpectrum(1.0 / np.arange(1.0, 50) ** 2, 1.0).decay().kind
        'power'
        """
        index = np.arange(
            first,
            len(self.eigenvalues) + 1 if last is None else min(last, len(self.eigenvalues)) + 1,
        )
        values = self.eigenvalues[index - 1]
        index = index[(values > 0) & (values >= 1e-10 * self.eigenvalues[0])]
        if len(index) < 3:
            return Decay("none", *[float("nan")] * 4, first=first, last=first + len(index) - 1)
        logs, i = np.log(self.eigenvalues[index - 1]), index.astype(float)
        (exponent, power), (rate, exponential) = _fall(np.log(i), logs), _fall(i, logs)
        kind = "power" if power <= exponential else "exponential"
        return Decay(kind, exponent, rate, power, exponential, int(index[0]), int(index[-1]))

    def eigenfunctions(self, X: RowsLike) -> Array:
        """The operator's eigenfunctions at new rows, k(x, S)·v_i/(√s·λ_i), with mean square 1 on S;
        shape (n, r).

        One column for each eigenvector kept whose eigenvalue is above rounding.
        """
        if self.extension is None:
            raise ValueError(
                "this spectrum has eigenvalues only: call kernel_spectrum(..., top=...) for"
                " eigenfunctions"
            )
        kept = self.eigenvalues[: self.extension.vectors.shape[1]] > 0
        rows, values = self.extension.rows, self.eigenvalues[: len(kept)][kept]
        X = np.asarray(X, dtype=float)
        return self.extension.kernel.sums(
            X, rows, self.extension.vectors[:, kept] / (np.sqrt(len(rows)) * values)
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the positive eigenvalues over their index, both logarithmic, with the nearest
        decay; the axes.
        """
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(6, 4), layout="constrained").subplots()
        index, fitted = np.arange(1, len(self.eigenvalues) + 1), self.decay()
        positive = self.eigenvalues > 0
        ax.plot(index[positive], self.eigenvalues[positive], label="eigenvalues of K_S/s")
        if fitted.kind != "none":
            i = index[fitted.first - 1 : fitted.last].astype(float)
            shape = -fitted.exponent * np.log(i) if fitted.kind == "power" else -fitted.rate * i
            level = np.mean(np.log(self.eigenvalues[fitted.first - 1 : fitted.last]) - shape)
            ax.plot(i, np.exp(shape + level), linestyle="--", label=str(fitted))
        ax.set(xlabel="index i", ylabel="λ_i", xscale="log", yscale="log")
        ax.legend()
        return ax

    def __str__(self) -> str:
        top = float(self.eigenvalues[0]) if len(self.eigenvalues) else 0.0
        return (
            f"{len(self.eigenvalues):,} eigenvalues, {int((self.eigenvalues > 0).sum()):,} above"
            f" rounding: λ₁ = {top:.4g}, β = {self.beta:.4g}, critical batch size"
            f" {self.critical_batch_size():.4g}; {self.decay()}"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def kernel_spectrum(
    kernel: Kernel,
    X: RowsLike,
    size: int = 2000,
    random_state: int | np.random.RandomState | None = None,
    *,
    top: int | None = None,
) -> KernelSpectrum:
    """The spectrum of ``kernel`` on at most ``size`` random rows of X, in NumPy; with ``top`` the
    leading ones and vectors.

    Examples
    --------
    >>> from surelearn.kernel.functions import Linear
    >>> kernel_spectrum(Linear(), np.array([[1.0], [1.0]])).eigenvalues
    array([1., 0.])
    >>> kernel_spectrum(Linear(), np.array([[1.0], [-1.0]]), top=1).eigenfunctions([[3.0]]).round(6) ** 2
    array([[9.]])
    """
    from sklearn.utils import check_array, check_random_state

    if not isinstance(kernel, Kernel):
        raise ValueError(f"kernel must be a kernel object, such as Laplace(2.0), not {kernel!r}")
    every = check_array(X, dtype=float)
    rng = check_random_state(random_state)
    rows = every[rng.permutation(len(every))[:size]]
    matrix, beta = kernel(rows, rows) / len(rows), float(kernel.diagonal(every).max())
    if top is None:
        return KernelSpectrum(
            clean(np.asarray(np.linalg.eigvalsh(matrix)[::-1], dtype=np.float64)), beta
        )
    values, vectors = leading_eigensystem(matrix, top, random_state=rng)
    return KernelSpectrum(values, beta, Extension(kernel, rows, vectors))


def leading_eigensystem(
    matrix: npt.ArrayLike,
    top: int,
    *,
    method: str = "auto",
    tolerance: float = 1e-8,
    random_state: int | np.random.RandomState | None = 0,
) -> tuple[Array, Array]:
    """The ``top`` largest eigenvalues of a symmetric positive semidefinite matrix, descending, and
    vectors as columns.

    Parameters
    ----------
    matrix : (n, n)
    top : at most n
    method : "dense" (LAPACK), "randomized" (block Lanczos from a random start, all vectors kept
        orthogonal), or "auto": randomized from 1,000 rows on and for at most n/50 directions, about
        where it becomes quicker on a CPU
    tolerance : randomized stops when every ‖Av − λv‖ ≤ tolerance·λ₁; then each λ is that near to an
        eigenvalue. It gives way to dense where that takes half as many vectors as rows

    Examples
    --------
    >>> leading_eigensystem(np.diag([1.0, 3.0, 2.0]), 2)[0]
    array([3., 2.])
    """
    from sklearn.utils import check_random_state

    A = np.asarray(matrix, dtype=float)
    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, _METHODS))}, not {method!r}")
    if A.ndim != 2 or A.shape[0] != A.shape[1] or not np.isfinite(A).all():
        raise ValueError(
            "matrix must be square and finite: check the rows, and scale columns that are huge"
        )
    if not 1 <= top <= len(A):
        raise ValueError(f"top must be between 1 and the {len(A)} rows of the matrix, not {top!r}")
    found = None
    if method == "randomized" or (method == "auto" and len(A) >= _LARGE and top * _SHARE <= len(A)):
        found = _block_lanczos(A, top, tolerance, check_random_state(random_state))
    values, vectors = _dense(A, top) if found is None else found
    return clean(values, len(A)), vectors


def _dense(A: Array, top: int) -> tuple[Array, Array]:
    from scipy.linalg import eigh

    n = len(A)
    values, vectors = (
        eigh(A, subset_by_index=(n - top, n - 1)) if 2 * top < n else np.linalg.eigh(A)
    )
    return values[::-1][:top].copy(), vectors[:, ::-1][:, :top].copy()


def _block_lanczos(
    A: Array, top: int, tolerance: float, rng: np.random.RandomState
) -> tuple[Array, Array] | None:
    """Ritz pairs of span(Ω, AΩ, A²Ω, …), Ω random with half as many columns as are wanted;
    None: not near enough.
    """
    n, width = len(A), max(8, (top + 1) // 2)
    basis = np.linalg.qr(rng.standard_normal((n, width)))[0]
    images = A @ basis
    while basis.shape[1] + width <= max(n // 2, 4 * width) and basis.shape[1] + width <= n:
        new = images[:, -width:]
        for _ in range(2):
            new = np.linalg.qr(new - basis @ (basis.T @ new))[0]
        basis, images = np.hstack([basis, new]), np.hstack([images, A @ new])
        if basis.shape[1] < top + width:
            continue
        small = basis.T @ images
        values, turn = np.linalg.eigh((small + small.T) / 2)
        values, turn = values[::-1][:top].copy(), turn[:, ::-1][:, :top]
        vectors = basis @ turn
        if np.linalg.norm(images @ turn - vectors * values, axis=0).max() <= tolerance * max(
            values[0], 0.0
        ):
            return values, vectors
    return None


def _fall(x: Array, y: Array) -> tuple[float, float]:
    """Minus the slope of the least-squares line, and the root mean squared error."""
    slope, level = np.polyfit(x, y, 1)
    return -float(slope), float(np.sqrt(np.mean((y - slope * x - level) ** 2)))


def clean(values: Array, size: int | None = None) -> Array:
    """Eigenvalues of a matrix of ``size`` rows (as many as values unless told) with what is
    rounding made 0.
    """
    floor = (size or len(values)) * np.finfo(float).eps * max(float(values[0]), 0.0)
    return np.where(values > floor, values, 0.0)


def eigensystem(gram: torch.Tensor) -> tuple[Array, torch.Tensor]:
    """Eigenvalues of K_S, descending, and its eigenvectors as columns, both from float64;
    always dense.
    """
    import torch

    values, vectors = torch.linalg.eigh(gram.double())
    return clean(values.flip(0).cpu().numpy()), vectors.flip(1)
