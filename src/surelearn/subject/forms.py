"""Closed forms of models: machines f_m(x) that are linear, sums of kernels, or small networks, with
their gradients.

A form gives ``values(X)``, shape (n, machines), and ``pull(X)``: the values and a function from
weights (n, machines) to Σ_m weights_m·∇f_m(x), shape (n, d).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
import numpy.typing as npt

from surelearn import profiles
from surelearn.earlier import of_today, warn_of_earlier
from surelearn.lacking import Lacking
from surelearn.types import Array

if TYPE_CHECKING:
    from torch import Tensor, nn

    from surelearn.subject.torch_modules import ModuleFunctions

Head = Literal["each", "two", "pairs", "votes", "outputs"]
Back = Callable[[Array], Array]  # weights (n, machines) to gradients (n, d)
Pull = tuple[Array, Back]
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
            matrix = (
                after.matrix[:, None] * self.matrix
                if after.matrix.ndim == 1
                else after.matrix @ self.matrix
            )
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
    name : "gaussian", "laplace", "matern" (functions of the Euclidean distance) or "polynomial":
        (γ⟨x, z⟩ + offset)^degree
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
            squared = (
                np.einsum("ij,ij->i", near, near)[:, None]
                + np.einsum("ij,ij->i", far, far)
                - 2.0 * near @ far.T
            )
            at = np.maximum(squared, 0.0)
        kernel = self._kernel(at)
        return kernel @ self.coefficients, self._slopes(kernel, at)

    def _kernel(self, at: Array) -> Array:
        """Its values at ⟨x, z⟩, or at ‖x − z‖²."""
        return getattr(profiles, self.name)(at, **self._shape())

    def _slopes(self, kernel: Array, at: Array) -> Array:
        return getattr(profiles, f"{self.name}_slope")(kernel, at, **self._shape())

    def _shape(self) -> dict[str, float]:
        names = {"polynomial": ("degree", "gamma", "offset"), "matern": ("bandwidth", "nu")}.get(
            self.name, ("bandwidth",)
        )
        return {name: self.parameters[name] for name in names}

    def _pieces(self, X: Array) -> list[slice]:
        step = max(1, _PIECE // max(1, len(self.centers)))
        return [slice(start, start + step) for start in range(0, len(X), step)]


@dataclass(frozen=True)
class GaussianForm:
    """f_m(x) = c_m − ½·Σ_j (x_j − μ_mj)²/v_mj, as naive Bayes has it of numbers; μ and v of
    shape (machines, d).
    """

    means: Array
    variances: Array
    offsets: Array

    def values(self, X: Array) -> Array:
        """The logarithm of each class's share."""
        pairs = zip(self.means, self.variances, strict=True)
        return self.offsets - 0.5 * np.stack(
            [((X - mean) ** 2 / variance).sum(axis=1) for mean, variance in pairs], axis=1
        )

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
    """Layers Wx + b with one activation between them, as scikit-learn's ``MLPClassifier`` has
    them; W of shape (out, in).
    """

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

    def backward(self, X: Array, weights: Array) -> Iterator[tuple[Array, Array]]:
        """δ_l = ∂J/∂(W_l·h_l + b_l) and h_l of every layer, the last one first, where ``weights`` are
        ∂J/∂f (n, machines).
        """
        outputs, slope = self._forward(X), _ACTIVATIONS[self.activation][1]
        for (W, _), below in zip(self.layers[::-1], [*outputs[-2::-1], X], strict=True):
            yield weights, below
            weights = weights @ W * slope(below)

    def _forward(self, X: Array) -> list[Array]:
        outputs: list[Array] = []
        below = X
        for W, b in self.layers:
            below = below @ W.T + b
            if len(outputs) < len(self.layers) - 1:
                below = _ACTIVATIONS[self.activation][0](below)
            outputs.append(below)
        return outputs


@dataclass(frozen=True, eq=False)
class ModuleForm:
    """A torch module's outputs (n, outputs), differentiated by autograd.

    Attributes
    ----------
    module : the module, put into its evaluation mode while it is asked
    shape : of one row, where it does not take vectors
    """

    module: nn.Module
    shape: tuple[int, ...] | None = None

    def values(self, X: Array) -> Array:
        """The outputs, in the module's own precision."""
        return self._functions().values(X)

    def pull(self, X: Array) -> Pull:
        """The outputs, and back through the module."""
        return self._functions().pull(X)

    def parameter_gradients(
        self, X: Array, weights: Array, parameters: Sequence[Tensor]
    ) -> list[list[float]]:
        """‖Σ_m weights_m·∂f_m(x)/∂θ‖ of every row and tensor θ of the module; 0 where a row's output
        does not depend on it.
        """
        return self._functions().parameter_norms(X, weights, parameters)

    @property
    def dtype(self) -> npt.DTypeLike:
        """The NumPy type that the module computes in."""
        return self._functions().dtype

    def _functions(self) -> ModuleFunctions:
        from surelearn.subject.torch_modules import module_functions

        return module_functions(self.module, self.shape)


@dataclass(frozen=True, eq=False)
class VoteForm:
    """Shares of the members' softmax for every class: a smooth stand-in for their votes, to be
    differentiated.

    Attributes
    ----------
    members : (values and pull of its class scores, the positions of its classes) for every member
        that has a form
    constant : (classes,) votes that no row changes
    """

    members: tuple[tuple[Callable[[Array], Pull], npt.NDArray[np.intp]], ...]
    constant: Array

    def values(self, X: Array) -> Array:
        """Votes, each spread over the classes by its member's softmax."""
        return self.pull(X)[0]

    def pull(self, X: Array) -> Pull:
        """The gradient of a softmax p of scores s is p_c·(w_c − Σ_k p_k w_k), pulled back
        through s.
        """
        total: Array = np.tile(self.constant, (len(X), 1))
        kept: list[tuple[Array, Back, npt.NDArray[np.intp]]] = []
        for pull, held in self.members:
            scores, back = pull(X)
            shares = np.exp(scores - scores.max(axis=1, keepdims=True))
            shares /= shares.sum(axis=1, keepdims=True)
            total[:, held] += shares
            kept.append((shares, back, held))

        def whole(weights: Array) -> Array:
            out: Array = np.zeros_like(X, dtype=float)
            for shares, back, held in kept:
                own = weights[:, held]
                out += back(shares * (own - (shares * own).sum(axis=1, keepdims=True)))
            return out

        return total, whole


@dataclass(frozen=True)
class Closed:
    """A model in closed form: the machines ``form`` of the prepared row.

    Attributes
    ----------
    form : linear, kernel, network, …
    prepare : the affine steps before it, or None
    head : how machines become class scores: "each" (a machine an output), "two" (one machine,
        positive for the second class), "pairs" (a machine for every pair of classes, positive for
        the second, and votes), "votes" (a smooth stand-in for votes: the class with the largest
        score need not be the prediction), or "outputs" (those of a torch module: one per class, or
        a single one that is positive for the second of two)
    """

    form: Form
    prepare: Affine | None
    head: Head


def linear_form(
    weights: npt.ArrayLike,
    intercepts: npt.ArrayLike,
    classes: int | None = None,
    *,
    votes: bool = False,
) -> Closed | Lacking:
    """⟨w_m, x⟩ + b_m as a closed form.

    Parameters
    ----------
    weights, intercepts : (machines, d), and (machines,) or one number
    classes : how many classes the machines tell apart; None for a regression
    votes : whether there is a machine for every pair of classes
    """
    normals = np.atleast_2d(np.asarray(weights, dtype=float))
    biases = np.broadcast_to(np.asarray(intercepts, dtype=float).ravel(), (len(normals),))
    head = head_of(len(normals), classes, votes)
    return head if isinstance(head, Lacking) else Closed(LinearForm(normals, biases), None, head)


_EARLIER = {"sigma": profiles.bandwidth_of_sigma}


def kernel_form(
    name: str,
    parameters: Mapping[str, float],
    centers: npt.ArrayLike,
    coefficients: npt.ArrayLike,
    intercepts: npt.ArrayLike | None = None,
    classes: int | None = None,
    *,
    votes: bool = False,
) -> Closed | Lacking:
    """Σ_j c_jm·k(x, z_j) + b_m as a closed form, the kernel by its name in
    `surelearn.kernel.functions`.

    Parameters
    ----------
    name, parameters : of the kernel; others than its own are left out
    centers, coefficients, intercepts : (centers, d), (centers, machines), (machines,) or None for 0
    classes, votes : as for `linear_form`
    """
    if warn_of_earlier("kernel_form", _EARLIER, parameters):
        own = of_today(_EARLIER, {**parameters, "kernel": name})
        parameters = {key: value for key, value in own.items() if key != "kernel"}
    rows = np.asarray(centers, dtype=float)
    columns = np.asarray(coefficients, dtype=float).reshape(len(rows), -1)
    machines = columns.shape[1]
    biases = (
        np.zeros(machines)
        if intercepts is None
        else np.asarray(intercepts, dtype=float).reshape(machines)
    )
    if name == "linear":
        return linear_form(columns.T @ rows, biases, classes, votes=votes)
    head = head_of(machines, classes, votes)
    if isinstance(head, Lacking):
        return head
    if name == "polynomial":
        kept = {
            "gamma": 1.0,
            "offset": 1.0,
            **{key: float(parameters[key]) for key in parameters if key != "bandwidth"},
        }
    elif name in ("gaussian", "laplace", "matern"):
        kept = {
            "nu": 1.5,
            **{key: float(parameters[key]) for key in parameters if key in ("bandwidth", "nu")},
        }
    else:
        return no_kernel(name)
    return Closed(KernelForm(name, kept, rows, columns, biases), None, head)


def no_kernel(name: object) -> Lacking:
    """No gradient of this kernel is known: of one by its name, or of a function or object."""
    shown = repr(name) if isinstance(name, str) else type(name).__name__
    return Lacking("closed form", f"the kernel {shown} has no gradient that is known here")


PRECOMPUTED = Lacking("closed form", "a precomputed kernel has no rows to move")


def head_of(machines: int, classes: int | None, votes: bool = False) -> Head | Lacking:
    """How so many machines become scores of so many classes."""
    if classes == 2 and machines == 1:
        return "two"
    if votes and classes is not None and machines == classes * (classes - 1) // 2:
        return "pairs"
    if classes is None or machines == classes:
        return "each"
    why = f"{machines} machines for {classes} classes are combined in a way that is not known here"
    return Lacking("closed form", why)
