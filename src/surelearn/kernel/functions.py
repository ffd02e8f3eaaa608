"""Reproducing kernels as the course defines them (Section 7, Example 7.7): one definition each for the whole project.

A kernel is frozen plain data, called on two arrays of rows: ``Gaussian(sigma=2.0)(X, Z)`` is the matrix k(x_i, z_j). The
course's σ is not everyone's: it divides ‖x − z‖² itself, so that its Gaussian with σ = 2h² is the usual one of width h, and
scikit-learn's ``gamma`` is 1/σ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

_CLOSE = 1e-4  # below this share of ‖x‖² + ‖z‖², ‖x‖² + ‖z‖² − 2⟨x, z⟩ has lost more than four digits
_PIECE = 2**23  # numbers in a piece of a kernel matrix: 64 MB


@dataclass(frozen=True)
class Kernel:
    """What all kernels share: parameters as plain data, and sums over a kernel matrix that is never held whole."""

    name: ClassVar[str] = ""

    def __call__(self, X: Any, Z: Any) -> np.ndarray:
        """The matrix k(x_i, z_j) for rows of X and Z, dense or sparse; shape (n, m)."""
        raise NotImplementedError

    def diagonal(self, X: Any) -> np.ndarray:
        """k(x_i, x_i) for every row, without the matrix; shape (n,)."""
        raise NotImplementedError

    def radius(self, x_bound: float | None) -> float | None:
        """A bound on √k(x, x) wherever ‖x‖ ≤ x_bound; None where there is none."""
        raise NotImplementedError

    def parameters(self) -> dict[str, Any]:
        """The parameters as plain data; ``kernel(k.name, **k.parameters())`` is k again."""
        return asdict(self)

    def pieces(self, X: Any, Z: Any) -> Iterator[tuple[slice, np.ndarray]]:
        """The matrix k(X, Z) in pieces of whole rows, each at most 64 MB (or one row)."""
        step = max(1, _PIECE // max(1, Z.shape[0]))
        for start in range(0, X.shape[0], step):
            rows = slice(start, min(start + step, X.shape[0]))
            yield rows, self(X[rows], Z)

    def sums(self, X: Any, Z: Any, coefficients: np.ndarray) -> np.ndarray:
        """Σ_j k(x_i, z_j)·c_j for every row x_i, piece by piece; ``coefficients`` (m,) or (m, machines).

        Examples
        --------
        >>> Linear().sums(np.eye(2), np.array([[1.0, 2.0]]), np.array([3.0]))
        array([3., 6.])
        """
        out = np.empty((X.shape[0], *np.shape(coefficients)[1:]))
        for rows, values in self.pieces(X, Z):
            out[rows] = values @ coefficients
        return out


@dataclass(frozen=True)
class Linear(Kernel):
    """k(x, z) = ⟨x, z⟩."""

    name: ClassVar[str] = "linear"

    def __call__(self, X: Any, Z: Any) -> np.ndarray:
        """The matrix ⟨x_i, z_j⟩."""
        return inner_products(X, Z)

    def diagonal(self, X: Any) -> np.ndarray:
        """‖x_i‖²."""
        return squared_norms(X)

    def radius(self, x_bound: float | None) -> float | None:
        """‖x‖ ≤ x_bound itself."""
        return x_bound


@dataclass(frozen=True)
class Polynomial(Kernel):
    """k(x, z) = (⟨x, z⟩ + 1)^p, with p = ``degree`` a positive whole number.

    Examples
    --------
    >>> Polynomial(degree=2)(np.array([[1.0, 2.0]]), np.array([[3.0, 0.0]]))
    array([[16.]])
    """

    degree: int = 3
    name: ClassVar[str] = "polynomial"

    def __post_init__(self) -> None:
        if isinstance(self.degree, bool) or self.degree != int(self.degree) or self.degree < 1:
            raise ValueError(f"degree must be a whole number of at least 1, not {self.degree!r}")

    def __call__(self, X: Any, Z: Any) -> np.ndarray:
        """The matrix (⟨x_i, z_j⟩ + 1)^p."""
        return (inner_products(X, Z) + 1.0) ** self.degree

    def diagonal(self, X: Any) -> np.ndarray:
        """(‖x_i‖² + 1)^p."""
        return (squared_norms(X) + 1.0) ** self.degree

    def radius(self, x_bound: float | None) -> float | None:
        """(x_bound² + 1)^{p/2}."""
        return None if x_bound is None else (x_bound**2 + 1.0) ** (self.degree / 2)


@dataclass(frozen=True)
class Gaussian(Kernel):
    """k(x, z) = exp(−‖x − z‖² / σ). The usual exp(−‖x − z‖²/2h²) has σ = 2h², scikit-learn's ``gamma`` is 1/σ.

    Examples
    --------
    >>> Gaussian(sigma=2.0)(np.array([[0.0]]), np.array([[1.0], [2.0]])).round(4)
    array([[0.6065, 0.1353]])
    >>> Gaussian.of_bandwidth(1.0)
    Gaussian(sigma=2.0)
    """

    sigma: float = 1.0
    name: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        _positive(self.sigma)

    @classmethod
    def of_bandwidth(cls, bandwidth: float) -> Gaussian:
        """exp(−‖x − z‖²/2h²), h the bandwidth (a length)."""
        return cls(sigma=2.0 * bandwidth**2)

    @property
    def bandwidth(self) -> float:
        """The length h with σ = 2h²."""
        return math.sqrt(self.sigma / 2.0)

    def __call__(self, X: Any, Z: Any) -> np.ndarray:
        """The matrix exp(−‖x_i − z_j‖² / σ)."""
        return np.exp(-squared_distances(X, Z) / self.sigma)

    def diagonal(self, X: Any) -> np.ndarray:
        """Ones."""
        return np.ones(X.shape[0])

    def radius(self, x_bound: float | None) -> float | None:  # noqa: ARG002 - every x has the same norm
        """1, wherever x is."""
        return 1.0


@dataclass(frozen=True)
class Laplace(Kernel):
    """k(x, z) = exp(−‖x − z‖ / σ), with the Euclidean distance (scikit-learn's laplacian_kernel takes the ℓ₁ distance).

    Examples
    --------
    >>> Laplace(sigma=2.0)(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])).round(4)
    array([[0.0821]])
    """

    sigma: float = 1.0
    name: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        _positive(self.sigma)

    @property
    def bandwidth(self) -> float:
        """σ, which is a length here."""
        return self.sigma

    def __call__(self, X: Any, Z: Any) -> np.ndarray:
        """The matrix exp(−‖x_i − z_j‖ / σ)."""
        return np.exp(-np.sqrt(squared_distances(X, Z)) / self.sigma)

    def diagonal(self, X: Any) -> np.ndarray:
        """Ones."""
        return np.ones(X.shape[0])

    def radius(self, x_bound: float | None) -> float | None:  # noqa: ARG002 - every x has the same norm
        """1, wherever x is."""
        return 1.0


@dataclass(frozen=True)
class Matern(Kernel):
    """k(x, z) = p(t)·e^{−t} with t = √(2ν)·‖x − z‖/σ and p = 1 + t for ν = 3/2, 1 + t + t²/3 for ν = 5/2; σ is a length.

    Examples
    --------
    >>> Matern(sigma=2.0)(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])).round(4)
    array([[0.0702]])
    """

    sigma: float = 1.0
    nu: float = 1.5
    name: ClassVar[str] = "matern"

    def __post_init__(self) -> None:
        _positive(self.sigma)
        if self.nu not in (1.5, 2.5):
            raise ValueError(f"nu must be 1.5 or 2.5 (0.5 is Laplace, ∞ Gaussian), not {self.nu!r}")

    @property
    def bandwidth(self) -> float:
        """σ, which is a length here."""
        return self.sigma

    def __call__(self, X: Any, Z: Any) -> np.ndarray:
        """The matrix p(t_ij)·e^{−t_ij}."""
        t = np.sqrt(2.0 * self.nu * squared_distances(X, Z)) / self.sigma
        return (1.0 + t + (t**2 / 3.0 if self.nu == 2.5 else 0.0)) * np.exp(-t)

    def diagonal(self, X: Any) -> np.ndarray:
        """Ones."""
        return np.ones(X.shape[0])

    def radius(self, x_bound: float | None) -> float | None:  # noqa: ARG002 - every x has the same norm
        """1, wherever x is."""
        return 1.0


KERNELS: dict[str, type[Kernel]] = {made.name: made for made in (Linear, Polynomial, Gaussian, Laplace, Matern)}


def kernel(which: str | Kernel, **parameters: Any) -> Kernel:
    """The kernel of a name with those ``parameters`` that it has, or the kernel given.

    Examples
    --------
    >>> kernel("gaussian", sigma=2.0, degree=3)
    Gaussian(sigma=2.0)
    >>> kernel(Laplace(0.5))
    Laplace(sigma=0.5)
    """
    if isinstance(which, Kernel):
        return which
    if not isinstance(which, str) or which not in KERNELS:
        raise ValueError(f"kernel must be one of {', '.join(KERNELS)} or a kernel object, not {which!r}")
    made = KERNELS[which]
    return made(**{name: value for name, value in parameters.items() if name in made.__dataclass_fields__})


def inner_products(X: Any, Z: Any) -> np.ndarray:
    """⟨x_i, z_j⟩ as a dense matrix, for dense or sparse rows."""
    product = X @ Z.T
    return product.toarray() if sparse.issparse(product) else np.asarray(product)


def squared_norms(X: Any) -> np.ndarray:
    """‖x_i‖² for dense or sparse rows."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=float).ravel()
    return np.einsum("ij,ij->i", X, X)


def squared_distances(X: Any, Z: Any) -> np.ndarray:
    """‖x_i − z_j‖², never negative, and accurate also for rows that are close together but far from the origin.

    ‖x‖² + ‖z‖² − 2⟨x, z⟩ costs one matrix product but cancels where x ≈ z; those pairs are computed again from x − z.

    Examples
    --------
    >>> squared_distances(np.array([[1e8]]), np.array([[1e8 + 1]]))
    array([[1.]])
    """
    if not sparse.issparse(X) and not sparse.issparse(Z):
        centre = Z.mean(axis=0) if Z.shape[0] else 0.0
        near, far = X - centre, Z - centre
    else:
        near, far = X, Z
    size = np.add.outer(squared_norms(near), squared_norms(far))
    distances = size - 2.0 * inner_products(near, far)
    rows, columns = np.nonzero(~(distances > _CLOSE * size))
    if rows.size > distances.size // 4 and not (sparse.issparse(X) or sparse.issparse(Z)):
        return cdist(X, Z, "sqeuclidean")
    for start in range(0, rows.size, 2**14):
        i, j = rows[start : start + 2**14], columns[start : start + 2**14]
        distances[i, j] = squared_norms(X[i] - Z[j])
    return distances


def _positive(sigma: float) -> None:
    if not (isinstance(sigma, (int, float, np.number)) and not isinstance(sigma, bool) and 0 < sigma < math.inf):
        raise ValueError(f"sigma must be positive and finite, not {sigma!r}")
