"""Closed forms of models: machines f_m(x) that are linear, sums of kernels, or small networks, with their gradients.

A form gives ``values(X)``, shape (n, machines), and ``pull(X)``: the values and a function from weights (n, machines) to
Σ_m weights_m·∇f_m(x), shape (n, d).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from surelearn import profiles

Array = npt.NDArray[np.float64]
Pull = tuple[Array, Callable[[Array], Array]]
_PIECE = 2**21  # numbers in a piece of a kernel matrix: 16 MB


class Form(Protocol):
    """What every closed form can do."""

    def values(self, X: Array) -> Array:
        """f_m(x) for every row and machine."""
        ...

    def pull(self, X: Array) -> Pull:
        """The values, and the function from weights to gradients."""
        ...


@dataclass(frozen=True)
class Affine:
    """x ↦ Ax + c; ``matrix`` of shape (k, d), or (d,) for a diagonal."""

    matrix: Array
    shift: Array

    def __call__(self, X: Array) -> Array:
        """Ax + c for every row."""
        return (X * self.matrix if self.matrix.ndim == 1 else X @ self.matrix.T) + self.shift

    def back(self, G: Array) -> Array:
        """Aᵀg for every row."""
        return G * self.matrix if self.matrix.ndim == 1 else G @ self.matrix

    def then(self, after: Affine) -> Affine:
        """The map that comes of this one and then ``after``."""
        if self.matrix.ndim == 1:
            matrix = after.matrix * self.matrix
        else:
            matrix = after.matrix[:, None] * self.matrix if after.matrix.ndim == 1 else after.matrix @ self.matrix
        return Affine(matrix, after(self.shift[None])[0])

    def dense(self) -> Array:
        """A as a matrix (k, d)."""
        return np.diag(self.matrix) if self.matrix.ndim == 1 else self.matrix


@dataclass(frozen=True)
class LinearForm:
    """f_m(x) = ⟨w_m, x⟩ + b_m; ``weights`` (machines, d), ``intercepts`` (machines,)."""

    weights: Array
    intercepts: Array

    def values(self, X: Array) -> Array:
        """⟨w_m, x⟩ + b_m."""
        return X @ self.weights.T + self.intercepts

    def pull(self, X: Array) -> Pull:
        """The gradient is Σ weights_m·w_m everywhere."""
        return self.values(X), lambda weights: weights @ self.weights


@dataclass(frozen=True)
class KernelForm:
    """f_m(x) = Σ_j c_jm·k(x, z_j) + b_m.

    Attributes
    ----------
    name : "gaussian", "laplace", "matern" (functions of the Euclidean distance) or "polynomial": (γ⟨x, z⟩ + offset)^degree
    parameters : σ (and ν) as in `surelearn.kernel.functions`; or degree, gamma and offset
    centers, coefficients, intercepts : (centers, d), (centers, machines), (machines,)
    """

    name: str
    parameters: Mapping[str, float]
    centers: Array
    coefficients: Array
    intercepts: Array

    def gram(self, X: Array, Z: Array) -> Array:
        """k(x_i, z_j), from distances that do not cancel."""
        if self.name == "polynomial":
            return self._kernel(X @ Z.T)
        from scipy.spatial.distance import cdist

        return self._kernel(np.asarray(cdist(X, Z, "sqeuclidean"), dtype=np.float64))

    def values(self, X: Array) -> Array:
        """Σ_j c_jm·k(x, z_j) + b_m, piece by piece."""
        pieces = [self.gram(X[rows], self.centers) @ self.coefficients for rows in self._pieces(X)]
        return np.concatenate(pieces) + self.intercepts

    def pull(self, X: Array) -> Pull:
        """The slopes of the kernel are kept from the values for the gradients."""
        kept = [self._both(X[rows]) for rows in self._pieces(X)]

        def back(weights: Array) -> Array:
            out = np.empty_like(X)
            for rows, (_, slopes) in zip(self._pieces(X), kept, strict=True):
                G = slopes * (weights[rows] @ self.coefficients.T)
                out[rows] = G @ self.centers
                if self.name != "polynomial":
                    out[rows] = 2.0 * (X[rows] * G.sum(axis=1, keepdims=True) - out[rows])
            return out

        return np.concatenate([values for values, _ in kept]) + self.intercepts, back

    def _both(self, X: Array) -> tuple[Array, Array]:
        """Values without intercept, and the slopes: dk/d⟨x, z⟩, or dk/d‖x − z‖²."""
        if self.name == "polynomial":
            at = X @ self.centers.T
        else:
            near, far = X - self.centers.mean(axis=0), self.centers - self.centers.mean(axis=0)
            squared = np.einsum("ij,ij->i", near, near)[:, None] + np.einsum("ij,ij->i", far, far) - 2.0 * near @ far.T
            at = np.maximum(squared, 0.0)
        kernel = self._kernel(at)
        return kernel @ self.coefficients, self._slopes(kernel, at)

    def _kernel(self, at: Array) -> Array:
        """Its values at ⟨x, z⟩, or at ‖x − z‖²."""
        return getattr(profiles, self.name)(at, **self._shape())

    def _slopes(self, kernel: Array, at: Array) -> Array:
        return getattr(profiles, f"{self.name}_slope")(kernel, at, **self._shape())

    def _shape(self) -> dict[str, float]:
        names = {"polynomial": ("degree", "gamma", "offset"), "matern": ("sigma", "nu")}.get(self.name, ("sigma",))
        return {name: self.parameters[name] for name in names}

    def _pieces(self, X: Array) -> list[slice]:
        step = max(1, _PIECE // max(1, len(self.centers)))
        return [slice(start, start + step) for start in range(0, len(X), step)]


@dataclass(frozen=True)
class GaussianForm:
    """f_m(x) = c_m − ½·Σ_j (x_j − μ_mj)²/v_mj, as naive Bayes has it of numbers; μ and v of shape (machines, d)."""

    means: Array
    variances: Array
    offsets: Array

    def values(self, X: Array) -> Array:
        """The logarithm of each class's share."""
        pairs = zip(self.means, self.variances, strict=True)
        return self.offsets - 0.5 * np.stack([((X - mean) ** 2 / variance).sum(axis=1) for mean, variance in pairs], axis=1)

    def pull(self, X: Array) -> Pull:
        """The gradient of f_m is −(x − μ_m)/v_m."""

        def back(weights: Array) -> Array:
            return weights @ (self.means / self.variances) - X * (weights @ (1.0 / self.variances))

        return self.values(X), back


_ACTIVATIONS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "identity": (lambda z: z, np.ones_like),
    "relu": (lambda z: np.maximum(z, 0.0), lambda a: (a > 0).astype(float)),
    "tanh": (np.tanh, lambda a: 1.0 - a**2),
    "logistic": (lambda z: 0.5 * (1.0 + np.tanh(0.5 * z)), lambda a: a * (1.0 - a)),
}  # each with its derivative, from its output


@dataclass(frozen=True)
class NetworkForm:
    """Layers Wx + b with one activation between them, as scikit-learn's ``MLPClassifier`` has them; W of shape (out, in)."""

    layers: tuple[tuple[Array, Array], ...] = field(default=())
    activation: str = "relu"

    def values(self, X: Array) -> Array:
        """The last layer's outputs, before any softmax."""
        return self._forward(X)[-1]

    def pull(self, X: Array) -> Pull:
        """Back through the layers."""
        outputs = self._forward(X)
        slope = _ACTIVATIONS[self.activation][1]

        def back(weights: Array) -> Array:
            for (W, _), below in zip(self.layers[::-1], [*outputs[-2::-1], None], strict=True):
                weights = weights @ W
                if below is not None:
                    weights = weights * slope(below)
            return weights

        return outputs[-1], back

    def _forward(self, X: Array) -> list[Array]:
        outputs: list[Any] = []
        for W, b in self.layers:
            X = X @ W.T + b
            X = X if len(outputs) == len(self.layers) - 1 else _ACTIVATIONS[self.activation][0](X)
            outputs.append(X)
        return outputs
