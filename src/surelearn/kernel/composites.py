"""What all kernels share, and weighted sums and products of them, kernels again (products by
Schur's theorem).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, ClassVar, TypeAlias, TypeGuard

import numpy as np
from scipy import sparse

from surelearn.earlier import EarlierNames, as_saved
from surelearn.types import AnyArray

RowMatrix: TypeAlias = AnyArray | sparse.csr_array  # rows (n, d), dense or sparse
_PIECE = 2**20  # numbers in a piece of a kernel matrix: 8 MB, which caches like better than more


@dataclass(frozen=True)
class Kernel(EarlierNames):
    """What all kernels share: parameters as plain data, and a kernel matrix piece by piece."""

    name: ClassVar[str] = ""
    combines: ClassVar[bool] = True

    def __add__(self, other: Kernel) -> Kernel:
        """The kernel k(x, z) + l(x, z)."""
        if not isinstance(other, Kernel):
            return NotImplemented
        terms = _terms(self) + _terms(other)
        return Sum(tuple(part for _, part in terms), tuple(weight for weight, _ in terms))

    def __mul__(self, other: Kernel | float) -> Kernel:
        """The kernel k(x, z)·l(x, z), or w·k(x, z) for a number w > 0."""
        if isinstance(other, Kernel):
            return Product(_factors(self) + _factors(other))
        if not isinstance(other, Real) or isinstance(other, bool):
            return NotImplemented
        terms = _terms(self)
        return Sum(
            tuple(part for _, part in terms), tuple(_weight(other) * weight for weight, _ in terms)
        )

    __rmul__ = __mul__

    def __call__(self, X: RowMatrix, Z: RowMatrix) -> np.ndarray:
        """The matrix k(x_i, z_j) for rows of X and Z, dense or sparse; shape (n, m)."""
        raise NotImplementedError

    def diagonal(self, X: RowMatrix) -> np.ndarray:
        """k(x_i, x_i) for every row, without the matrix; shape (n,)."""
        raise NotImplementedError

    def radius(self, x_bound: float | None) -> float | None:
        """A bound on √k(x, x) wherever ‖x‖ ≤ x_bound; None where there is none."""
        raise NotImplementedError

    def parameters(self) -> dict[str, Any]:
        """The parameters as plain data; ``kernel(k.name, **k.parameters())`` is k again."""
        return asdict(self)

    def saved(self) -> dict[str, Any]:
        """The parameters as a file has them: under earlier names where such a file had them."""
        return as_saved(self, {**vars(self), **self.parameters()})

    def among(self, X: RowMatrix, rows: np.ndarray) -> Any:
        """Some training rows without the others."""
        return X[rows]

    def anchors(self, X: RowMatrix, rows: np.ndarray) -> Any:
        """Some training rows as a second argument: what k(·, x_j) needs of x_j."""
        return X[rows]

    def kept(self, X: RowMatrix, rows: np.ndarray) -> np.ndarray | None:
        """What a fitted machine keeps of some training rows: the rows, dense; None where their
        numbers are enough.
        """
        chosen = X[rows]
        return chosen.toarray() if is_sparse(chosen) else chosen

    def pieces(self, X: RowMatrix, Z: RowMatrix) -> Iterator[tuple[slice, np.ndarray]]:
        """The matrix k(X, Z) in pieces of whole rows, each at most 8 MB (or one row)."""
        for rows in _slices(X.shape[0], Z.shape[0]):
            yield rows, self(X[rows], Z)

    def gram(self, X: RowMatrix) -> np.ndarray:
        """The matrix k(x_i, x_j) of training rows, filled piece by piece, each pair evaluated
        once; exactly symmetric.
        """
        n = X.shape[0]
        out = np.empty((n, n))
        for rows in _slices(n, n):
            values, count = self(X[rows], X[rows.start :]), rows.stop - rows.start
            out[rows, rows.start :], out[rows.stop :, rows] = values, values[:, count:].T
            out[rows, rows] = np.triu(values[:, :count]) + np.triu(values[:, :count], 1).T
        return out

    def sums(self, X: RowMatrix, Z: RowMatrix, coefficients: np.ndarray) -> np.ndarray:
        """Σ_j k(x_i, z_j)·c_j for every row x_i, piece by piece; ``coefficients`` (m,) or (m,
        machines).

        Examples
        --------
        >>> from surelearn.kernel.functions import Linear
        >>> Linear().sums(np.eye(2), np.array([[1.0, 2.0]]), np.array([3.0]))
        array([3., 6.])
        """
        out = np.empty((X.shape[0], *np.shape(coefficients)[1:]))
        for rows, values in self.pieces(X, Z):
            out[rows] = values @ coefficients
        return out


@dataclass(frozen=True, repr=False)
class Sum(Kernel):
    """k(x, z) = Σ_p w_p·k_p(x, z) with weights w_p > 0; written ``Gaussian(bandwidth=1.0) + 0.5 * Linear()``.

    Parameters
    ----------
    parts : kernels
    weights : one for each part; all 1 unless given

    Examples
    --------
    >>> from surelearn.kernel.functions import Gaussian, Linear
    >>> Linear() + 0.5 * Gaussian(bandwidth=1.0)
    Linear() + 0.5 * Gaussian(bandwidth=1.0)
    >>> (Linear() + 0.5 * Gaussian(bandwidth=1.0))(np.array([[2.0]]), np.array([[2.0]]))
    array([[4.5]])
    """

    parts: tuple[Kernel, ...] = ()
    weights: tuple[float, ...] = ()
    name: ClassVar[str] = "sum"
    saved_as = "sum-kernel/1"

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _parts(self.parts, self.name))
        weights = self.weights or (1.0,) * len(self.parts)
        if len(weights) != len(self.parts):
            raise ValueError(
                f"weights must be one for each of the {len(self.parts)} parts, not {len(weights)}"
            )
        object.__setattr__(self, "weights", tuple(map(_weight, weights)))

    @property
    def weighted(self) -> list[tuple[float, Kernel]]:
        """Each weight with its part."""
        return list(zip(self.weights, self.parts, strict=True))

    def __call__(self, X: RowMatrix, Z: RowMatrix) -> np.ndarray:
        """The matrix Σ_p w_p·k_p(x_i, z_j)."""
        return _total(weight * part(X, Z) for weight, part in self.weighted)

    def diagonal(self, X: RowMatrix) -> np.ndarray:
        """Σ_p w_p·k_p(x_i, x_i)."""
        return _total(weight * part.diagonal(X) for weight, part in self.weighted)

    def radius(self, x_bound: float | None) -> float | None:
        """√(Σ_p w_p·r_p²), where every part has its r_p."""
        radii = [part.radius(x_bound) for part in self.parts]
        known = [radius for radius in radii if radius is not None]
        if len(known) < len(radii):
            return None
        return math.sqrt(
            math.fsum(
                weight * radius**2 for weight, radius in zip(self.weights, known, strict=True)
            )
        )

    def parameters(self) -> dict[str, Any]:
        """The parts' names and parameters, and the weights."""
        return {"parts": [_plain(part) for part in self.parts], "weights": list(self.weights)}

    def saved(self) -> dict[str, Any]:
        """The parts' names and parameters as a file has them, and the weights."""
        return {"parts": [_saved(part) for part in self.parts], "weights": list(self.weights)}

    def __repr__(self) -> str:
        """As it is written."""
        return " + ".join(
            _bracketed(part) if w == 1.0 else f"{w!r} * {_bracketed(part)}"
            for w, part in self.weighted
        )


@dataclass(frozen=True, repr=False)
class Product(Kernel):
    """k(x, z) = Π_p k_p(x, z); written ``Linear() * Gaussian(bandwidth=1.0)``.

    Examples
    --------
    >>> from surelearn.kernel.functions import Linear
    >>> (Linear() * Linear())(np.array([[3.0]]), np.array([[2.0]]))
    array([[36.]])
    """

    parts: tuple[Kernel, ...] = ()
    name: ClassVar[str] = "product"
    saved_as = "product-kernel/1"

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _parts(self.parts, self.name))

    def __call__(self, X: RowMatrix, Z: RowMatrix) -> np.ndarray:
        """The matrix Π_p k_p(x_i, z_j)."""
        return _product(part(X, Z) for part in self.parts)

    def diagonal(self, X: RowMatrix) -> np.ndarray:
        """Π_p k_p(x_i, x_i)."""
        return _product(part.diagonal(X) for part in self.parts)

    def radius(self, x_bound: float | None) -> float | None:
        """Π_p r_p, where every part has its r_p."""
        radii = [part.radius(x_bound) for part in self.parts]
        known = [radius for radius in radii if radius is not None]
        return math.prod(known) if len(known) == len(radii) else None

    def parameters(self) -> dict[str, Any]:
        """The parts' names and parameters."""
        return {"parts": [_plain(part) for part in self.parts]}

    def saved(self) -> dict[str, Any]:
        """The parts' names and parameters as a file has them."""
        return {"parts": [_saved(part) for part in self.parts]}

    def __repr__(self) -> str:
        """As it is written."""
        return " * ".join(map(_bracketed, self.parts))


def is_sparse(X: RowMatrix) -> TypeGuard[sparse.csr_array]:
    """Whether rows are a sparse matrix."""
    return bool(sparse.issparse(X))


def _slices(n: int, width: int) -> Iterator[slice]:
    """Rows in pieces of at most so many numbers, ``width`` in a row."""
    step = max(1, _PIECE // max(1, width))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _terms(kernel: Kernel) -> list[tuple[float, Kernel]]:
    return kernel.weighted if isinstance(kernel, Sum) else [(1.0, kernel)]


def _factors(kernel: Kernel) -> tuple[Kernel, ...]:
    return kernel.parts if isinstance(kernel, Product) else (kernel,)


def _parts(parts: Iterable[Kernel], name: str) -> tuple[Kernel, ...]:
    made = tuple(parts)
    if not made:
        raise ValueError(
            f"a {name} of kernels needs parts, such as Gaussian(bandwidth=1.0) and Linear(): write them with"
            " + and *"
        )
    for part in made:
        if not isinstance(part, Kernel):
            raise ValueError(f"parts must be kernels, not {part!r}")
        if not part.combines:
            raise ValueError(
                f"a {part.name} kernel cannot be part of a {name}: add or multiply the matrices"
                " themselves"
            )
    return made


def _weight(value: float) -> float:
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < math.inf:
        raise ValueError(
            f"a kernel's weight must be positive and finite, not {value!r}: otherwise the sum is no"
            " kernel"
        )
    return float(value)


def _plain(part: Kernel) -> dict[str, Any]:
    return {"which": part.name, **part.parameters()}


def _saved(part: Kernel) -> dict[str, Any]:
    return {"which": part.name, **part.saved()}


def _bracketed(part: Kernel) -> str:
    return f"({part!r})" if isinstance(part, (Sum, Product)) else f"{part!r}"


def _total(terms: Iterator[np.ndarray]) -> np.ndarray:
    """Their sum, in the memory of the first."""
    total = next(terms)
    for term in terms:
        total += term
    return total


def _product(factors: Iterator[np.ndarray]) -> np.ndarray:
    """Their product, in memory of its own."""
    product = np.array(next(factors))
    for factor in factors:
        product *= factor
    return product
