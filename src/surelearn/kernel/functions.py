"""Reproducing kernels as the course defines them (Section 7, Example 7.7): one definition each for
the whole project.

A kernel is frozen plain data, called on two arrays of rows: ``Gaussian(bandwidth=2.0)(X, Z)`` is
the matrix k(x_i, z_j). The bandwidth h is a length, in the units of the rows, for every kernel that
has one; the course's σ, which divides ‖x − z‖² itself, is 2h², and scikit-learn's ``gamma`` is
1/(2h²). Kernels add, multiply, and take positive weights: ``Gaussian(bandwidth=2.0) + 0.5 *
Linear()`` is a kernel again, of `surelearn.kernel.composites`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist

from surelearn import profiles, stated
from surelearn.earlier import REMEMBERED, reads_earlier_names, warn_of_earlier
from surelearn.kernel.composites import Kernel, Product, RowMatrix, Sum, is_sparse

UNBOUNDED = (
    "a precomputed kernel is known at the rows fitted alone: nothing bounds k(x, x) at new ones"
)
# below this share of ‖x‖² + ‖z‖², ‖x‖² + ‖z‖² − 2⟨x, z⟩ has lost more than four digits
_CLOSE = 1e-4


@dataclass(frozen=True)
class Linear(Kernel):
    """k(x, z) = ⟨x, z⟩."""

    name: ClassVar[str] = "linear"
    saved_as = "linear-kernel/1"

    def __call__(self, X: RowMatrix, Z: RowMatrix) -> np.ndarray:
        """The matrix ⟨x_i, z_j⟩."""
        return inner_products(X, Z)

    def diagonal(self, X: RowMatrix) -> np.ndarray:
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
    saved_as = "polynomial-kernel/1"

    def __post_init__(self) -> None:
        if isinstance(self.degree, bool) or self.degree != int(self.degree) or self.degree < 1:
            raise ValueError(f"degree must be a whole number of at least 1, not {self.degree!r}")

    def __call__(self, X: RowMatrix, Z: RowMatrix) -> np.ndarray:
        """The matrix (⟨x_i, z_j⟩ + 1)^p."""
        return profiles.polynomial(inner_products(X, Z), self.degree)

    def diagonal(self, X: RowMatrix) -> np.ndarray:
        """(‖x_i‖² + 1)^p."""
        return profiles.polynomial(squared_norms(X), self.degree)

    def radius(self, x_bound: float | None) -> float | None:
        """(x_bound² + 1)^{p/2}."""
        return None if x_bound is None else (x_bound**2 + 1.0) ** (self.degree / 2)


def _first_was_sigma(cls: type[Gaussian]) -> type[Gaussian]:
    """``Gaussian(2.0)`` was σ = 2: for one release it is read so, with the warning."""
    init = cls.__init__

    @functools.wraps(init)
    def reading(self: Gaussian, *args: float, **given: Any) -> None:
        given = {"sigma": args[0], **given} if args else given
        init(self, *args[1:], **given)

    cls.__init__ = reading
    return cls


@_first_was_sigma
@reads_earlier_names
@dataclass(frozen=True)
class Gaussian(Kernel):
    """k(x, z) = exp(−‖x − z‖²/(2h²)), h the ``bandwidth``; scikit-learn's ``gamma`` is 1/(2h²).

    Examples
    --------
    >>> Gaussian(bandwidth=1.0)(np.array([[0.0]]), np.array([[1.0], [2.0]])).round(4)
    array([[0.6065, 0.1353]])
    """

    bandwidth: float = field(default=1.0, kw_only=True)
    name: ClassVar[str] = "gaussian"
    saved_as = "gaussian-kernel/1"
    earlier = {"sigma": profiles.bandwidth_of_gaussian}  # noqa: RUF012 - read only

    def __post_init__(self) -> None:
        _positive(self.bandwidth)

    @classmethod
    def of_bandwidth(cls, bandwidth: float) -> Gaussian:
        """``Gaussian(bandwidth=…)``, under its earlier name."""
        warn_of_earlier("Gaussian", {"of_bandwidth": "Gaussian(bandwidth=)"}, {"of_bandwidth": 0})
        return cls(bandwidth=bandwidth)

    @property
    def sigma(self) -> float:
        """2h², under its earlier name."""
        warn_of_earlier("Gaussian", self.earlier, {"sigma": 0})
        return 2.0 * self.bandwidth**2

    def __call__(self, X: RowMatrix, Z: RowMatrix) -> np.ndarray:
        """The matrix exp(−‖x_i − z_j‖²/(2h²))."""
        return profiles.gaussian(squared_distances(X, Z), self.bandwidth)

    def diagonal(self, X: RowMatrix) -> np.ndarray:
        """Ones."""
        return np.ones(X.shape[0])

    def radius(self, x_bound: float | None) -> float | None:  # noqa: ARG002 - every x has the same norm
        """1, wherever x is."""
        return 1.0


@reads_earlier_names
@dataclass(frozen=True)
class Laplace(Kernel):
    """k(x, z) = exp(−‖x − z‖/h), h the ``bandwidth``, with the Euclidean distance (scikit-learn's
    laplacian_kernel takes the ℓ₁ distance).

    Examples
    --------
    >>> Laplace(bandwidth=2.0)(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])).round(4)
    array([[0.0821]])
    """

    bandwidth: float = 1.0
    name: ClassVar[str] = "laplace"
    saved_as = "laplace-kernel/1"
    earlier = {"sigma": "bandwidth"}  # noqa: RUF012 - read only

    def __post_init__(self) -> None:
        _positive(self.bandwidth)

    def __call__(self, X: RowMatrix, Z: RowMatrix) -> np.ndarray:
        """The matrix exp(−‖x_i − z_j‖/h)."""
        return profiles.laplace(squared_distances(X, Z), self.bandwidth)

    def diagonal(self, X: RowMatrix) -> np.ndarray:
        """Ones."""
        return np.ones(X.shape[0])

    def radius(self, x_bound: float | None) -> float | None:  # noqa: ARG002 - every x has the same norm
        """1, wherever x is."""
        return 1.0


@reads_earlier_names
@dataclass(frozen=True)
class Matern(Kernel):
    """k(x, z) = p(t)·e^{−t} with t = √(2ν)·‖x − z‖/h, h the ``bandwidth``, and p = 1 + t for ν =
    3/2, 1 + t + t²/3 for ν = 5/2.

    Examples
    --------
    >>> Matern(bandwidth=2.0)(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])).round(4)
    array([[0.0702]])
    """

    bandwidth: float = 1.0
    nu: float = 1.5
    name: ClassVar[str] = "matern"
    saved_as = "matern-kernel/1"
    earlier = {"sigma": "bandwidth"}  # noqa: RUF012 - read only

    def __post_init__(self) -> None:
        _positive(self.bandwidth)
        if self.nu not in (1.5, 2.5):
            raise ValueError(f"nu must be 1.5 or 2.5 (0.5 is Laplace, ∞ Gaussian), not {self.nu!r}")

    def __call__(self, X: RowMatrix, Z: RowMatrix) -> np.ndarray:
        """The matrix p(t_ij)·e^{−t_ij}."""
        return profiles.matern(squared_distances(X, Z), self.bandwidth, self.nu)

    def diagonal(self, X: RowMatrix) -> np.ndarray:
        """Ones."""
        return np.ones(X.shape[0])

    def radius(self, x_bound: float | None) -> float | None:  # noqa: ARG002 - every x has the same norm
        """1, wherever x is."""
        return 1.0


@dataclass(frozen=True)
class Precomputed(Kernel):
    """Rows are rows of a kernel matrix, as scikit-learn has it: fit on k(X, X), (n, n), and predict
    from k(test, X), (m, n).

    A row holds its values at the training rows alone: ``Z`` is all of them, in their order, or the
    numbers of some.

    Examples
    --------
    >>> K = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> Precomputed()(np.array([[5.0, 7.0]]), K), Precomputed().diagonal(K)
    (array([[5., 7.]]), array([2., 3.]))
    >>> Precomputed()(np.array([[5.0, 7.0]]), np.array([1]))
    array([[7.]])
    """

    name: ClassVar[str] = "precomputed"
    combines: ClassVar[bool] = False
    saved_as = "precomputed-kernel/1"

    def __call__(self, X: RowMatrix, Z: RowMatrix) -> np.ndarray:
        """X itself, where Z is the whole matrix of the training rows, or the columns that it
        numbers.
        """
        if Z.ndim == 1:
            return _array(X[:, Z])
        if Z.shape[0] != Z.shape[1] or X.shape[1] != Z.shape[0]:
            raise ValueError(
                f"a precomputed kernel is known at all {Z.shape[1]} training rows together, not at"
                f" a selection of {Z.shape[0]}: give X of shape (m, n), n the rows fitted, to a"
                " learner that keeps them all"
            )
        return _array(X)

    def among(self, X: RowMatrix, rows: np.ndarray) -> Any:
        """Their rows and columns of the matrix."""
        return X if np.array_equal(rows, np.arange(X.shape[0])) else X[rows][:, rows]

    def anchors(self, X: RowMatrix, rows: np.ndarray) -> np.ndarray:  # noqa: ARG002 - X is nothing but values
        """Their numbers."""
        return np.asarray(rows)

    def kept(self, X: RowMatrix, rows: np.ndarray) -> None:
        """Nothing: new rows bring their values along."""

    def gram(self, X: RowMatrix) -> np.ndarray:
        """A copy of the matrix."""
        return self(X, X)

    def diagonal(self, X: RowMatrix) -> np.ndarray:
        """The diagonal of the training rows' matrix."""
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                "X must be the square matrix k(x_i, x_j) of the rows fitted, not of shape"
                f" {X.shape}"
            )
        return np.array(X.diagonal(), dtype=float)

    def radius(self, x_bound: float | None) -> float | None:  # noqa: ARG002 - ‖x‖ is not known
        """None: nothing is known about rows unseen."""
        return None


KERNELS: dict[str, type[Kernel]] = {
    made.name: made for made in (Linear, Polynomial, Gaussian, Laplace, Matern, Precomputed)
}
_COMPOSITES: dict[str, type[Kernel]] = {made.name: made for made in (Sum, Product)}


def kernel(which: str | Kernel, **parameters: Any) -> Kernel:
    """The kernel of a name with those ``parameters`` that it has, or the kernel given.

    Examples
    --------
    >>> kernel("gaussian", bandwidth=2.0, degree=3)
    Gaussian(bandwidth=2.0)
    >>> kernel(Laplace(0.5))
    Laplace(bandwidth=0.5)
    """
    if isinstance(which, Kernel):
        return which
    made = _class_of(which)
    known = {*made.__dataclass_fields__, *made.earlier}
    kept = {name: value for name, value in parameters.items() if name in known}
    if "parts" in kept:
        kept["parts"] = tuple(
            kernel(**part) if isinstance(part, Mapping) else part for part in kept["parts"]
        )
    return made(**kept)


def read_kernel(which: str, parameters: Mapping[str, Any]) -> Kernel:
    """The kernel of plain data, as a file of this or an earlier version has it: without a warning,
    and with what it was saved under remembered for its fingerprint.

    Examples
    --------
    >>> read_kernel("gaussian", {"sigma": 8.0})
    Gaussian(bandwidth=2.0)
    """
    made = _class_of(which)
    state = made.of_file(parameters)
    remembered = state.pop(REMEMBERED, None)
    if "parts" in state:
        state["parts"] = tuple(
            read_kernel(
                part["which"], {name: value for name, value in part.items() if name != "which"}
            )
            for part in state["parts"]
        )
    found = made(**{name: state[name] for name in made.__dataclass_fields__ if name in state})
    if remembered:
        vars(found)[REMEMBERED] = remembered
    return found


def with_kernel_of_today(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a record that has a kernel, its parameters under the names of today.

    Examples
    --------
    >>> with_kernel_of_today({"kernel": "laplace", "kernel_parameters": {"sigma": 3.0}})
    {'kernel': 'laplace', 'kernel_parameters': {'bandwidth': 3.0}}
    """
    which, parameters = values.get("kernel"), values.get("kernel_parameters")
    if not isinstance(which, str) or not isinstance(parameters, Mapping):
        return values
    return {**values, "kernel_parameters": read_kernel(which, parameters).parameters()}


def _class_of(which: str) -> type[Kernel]:
    if not isinstance(which, str) or which not in KERNELS | _COMPOSITES:
        raise ValueError(
            f"kernel must be one of {', '.join(KERNELS)} or a kernel object, not {which!r}"
        )
    return (KERNELS | _COMPOSITES)[which]


def _array(X: RowMatrix) -> np.ndarray:
    return np.array(X.toarray() if is_sparse(X) else X, dtype=float)


def inner_products(X: RowMatrix, Z: RowMatrix) -> np.ndarray:
    """⟨x_i, z_j⟩ as a dense matrix, for dense or sparse rows."""
    product = X @ Z.T
    return product.toarray() if is_sparse(product) else np.asarray(product)


def squared_norms(X: RowMatrix) -> np.ndarray:
    """‖x_i‖² for dense or sparse rows."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=float).ravel()
    return np.einsum("ij,ij->i", X, X)


def squared_distances(X: RowMatrix, Z: RowMatrix) -> np.ndarray:
    """‖x_i − z_j‖², never negative, and accurate also for rows that are close together but far from
    the origin.

    ‖x‖² + ‖z‖² − 2⟨x, z⟩ costs one matrix product but cancels where x ≈ z; those pairs are computed
    again from x − z.

    Examples
    --------
    >>> squared_distances(np.array([[1e8]]), np.array([[1e8 + 1]]))
    array([[1.]])
    """
    if not is_sparse(X) and not is_sparse(Z):
        center = Z.mean(axis=0) if Z.shape[0] else 0.0
        near, far = X - center, Z - center
    else:
        near, far = X, Z
    size = np.add.outer(squared_norms(near), squared_norms(far))
    distances = size - 2.0 * inner_products(near, far)
    rows, columns = np.nonzero(~(distances > _CLOSE * size))
    if rows.size > distances.size // 4 and not (is_sparse(X) or is_sparse(Z)):
        return cdist(X, Z, "sqeuclidean")
    for start in range(0, rows.size, 2**14):
        i, j = rows[start : start + 2**14], columns[start : start + 2**14]
        distances[i, j] = squared_norms(X[i] - Z[j])
    return distances


def _positive(bandwidth: float) -> None:
    stated.positive("bandwidth", bandwidth)
