"""What a gradient says: saliency, integrated gradients, inputs and rows that excite a unit.

Gradients come from autograd for torch modules, from a function you give, or from central
differences. A gradient sees only the next step: where y = x₁ ∨ x₂ and both hold, neither matters to
it (course §20); the Shapley values are ½ and ½.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from surelearn.types import Array, Model

if TYPE_CHECKING:
    import torch
    from torch import nn

Gradient = Callable[[Array], npt.ArrayLike]
_STEP = np.finfo(float).eps ** (1 / 3)


@dataclass(frozen=True, eq=False)
class Saliency:
    """Gradients of rows.

    Attributes
    ----------
    values : shaped like the rows
    method : where the gradient comes from
    """

    values: Array
    method: str


@dataclass(frozen=True, eq=False)
class IntegratedGradients:
    """(x − x₀)·∫₀¹ ∇f(x₀ + t(x − x₀)) dt for each row.

    Attributes
    ----------
    values : shaped like the rows
    gap : f(x) − f(x₀) − Σ values for each row: 0 if the integral is exact (completeness)
    complete : whether every gap is within the tolerance asked for
    steps : points of the quadrature
    method : where the gradient comes from
    """

    values: Array
    gap: Array
    complete: bool
    steps: int
    method: str


@dataclass(frozen=True, eq=False)
class Excitation:
    """An input that excites a unit.

    Attributes
    ----------
    input : the best that was met
    activation : of the unit there
    start : its activation at the start
    history : activation at every step
    """

    input: Array
    activation: float
    start: float
    history: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class HighRows:
    """The rows that excite a unit most.

    Attributes
    ----------
    rows : their positions, the highest first
    activations : of the unit
    quantile : share of all rows with no higher activation than the last of them
    """

    rows: npt.NDArray[np.int64]
    activations: Array
    quantile: float


def saliency(
    model: Model, X: npt.ArrayLike, *, target: int | None = None, gradient: Gradient | None = None
) -> Saliency:
    """∇_x f at each row.

    Parameters
    ----------
    model : a torch module, or a function of rows that gives one number (or one row of numbers) for
        each
    X : rows (m, …)
    target : which of several outputs
    gradient : of rows, shaped like them; None: autograd for modules, else central differences

    Examples
    --------
    >>> either = lambda X: np.minimum(1.0, X.sum(axis=1))  # x₁ ∨ x₂
    >>> saliency(either, np.array([[2.0, 2.0]])).values.tolist()
    [[0.0, 0.0]]
    """
    X = _rows(X)
    f = Differentiable(model, target, gradient)
    return Saliency(f.gradient(X), f.method)


def integrated_gradients(
    model: Model,
    X: npt.ArrayLike,
    baseline: npt.ArrayLike = 0.0,
    *,
    steps: int = 64,
    tolerance: float = 1e-3,
    target: int | None = None,
    gradient: Gradient | None = None,
) -> IntegratedGradients:
    """Gradients integrated from a baseline to each row (M. Sundararajan, A. Taly and Q. Yan, ICML
    2017), by Gauss–Legendre.

    Parameters
    ----------
    model, X, target, gradient : as for `saliency`
    baseline : x₀, a number or an input; what stands for "nothing"
    steps : points of the quadrature
    tolerance : a gap up to this part of |f(x) − f(x₀)| (of 1, if that is smaller) counts as
        complete

    Examples
    --------
    >>> made = integrated_gradients(lambda X: X[:, 0] * X[:, 1], np.array([[2.0, 3.0]]))
    >>> made.values.round(6).tolist(), made.complete
    ([[3.0, 3.0]], True)
    """
    X = _rows(X)
    if steps != int(steps) or steps < 1:
        raise ValueError(f"steps must be a whole number of at least 1, not {steps!r}")
    start = np.broadcast_to(np.asarray(baseline, dtype=float), X.shape)
    f = Differentiable(model, target, gradient)
    nodes, weights = np.polynomial.legendre.leggauss(int(steps))
    # the gradient's mean on the way from the baseline, by the nodes of the quadrature
    mean = np.zeros_like(X)
    for node, weight in zip(nodes, weights, strict=True):
        mean += weight / 2 * f.gradient(start + (node + 1) / 2 * (X - start))
    values = (X - start) * mean
    rise = f(X) - f(np.ascontiguousarray(start))
    gap = rise - values.reshape(len(X), -1).sum(axis=1)
    complete = bool((np.abs(gap) <= tolerance * np.maximum(1.0, np.abs(rise))).all())
    return IntegratedGradients(values, gap, complete, int(steps), f.method)


def maximize_activation(
    model: Model,
    start: npt.ArrayLike,
    *,
    steps: int = 200,
    rate: float = 0.1,
    penalty: float = 0.0,
    bounds: tuple[Any, Any] | None = None,
    target: int | None = None,
    gradient: Gradient | None = None,
) -> Excitation:
    """An input that excites a unit: gradient ascent on f(x) − penalty·‖x‖², steps of length
    ``rate``, kept in bounds.

    Parameters
    ----------
    model, target, gradient : as for `saliency`; a unit inside a module: `unit_of`
    start : the input to begin with
    steps, rate : how many, and how long
    penalty : keeps the input small
    bounds : (low, high) of the input, numbers or shaped like it

    Examples
    --------
    >>> made = maximize_activation(lambda X: -((X - 1.0) ** 2).sum(axis=1), np.zeros(2))
    >>> bool(np.abs(made.input - 1).max() < 0.05)
    True
    """
    f = Differentiable(model, target, gradient)
    x = _rows(np.asarray(start, dtype=float)[None])
    # steps of shrinking length along the gradient; the best input that was met is kept
    history, best = [float(f(x)[0])], (-np.inf, x)
    for step in range(steps):
        score = history[-1] - penalty * float((x**2).sum())
        best = max(best, (score, x), key=lambda pair: pair[0])
        slope = f.gradient(x) - 2 * penalty * x
        size = float(np.linalg.norm(slope))
        if size == 0:
            break
        x = x + rate * (1 - step / steps) * slope / size
        if bounds is not None:
            x = np.clip(x, bounds[0], bounds[1])
        history.append(float(f(x)[0]))
    score = history[-1] - penalty * float((x**2).sum())
    best = max(best, (score, x), key=lambda pair: pair[0])
    return Excitation(best[1][0], float(f(best[1])[0]), history[0], tuple(history))


def highest_rows(
    model: Model, X: npt.ArrayLike, k: int = 9, *, target: int | None = None
) -> HighRows:
    """The k rows that excite a unit most.

    Examples
    --------
    >>> highest_rows(lambda X: X[:, 0], np.array([[1.0], [5.0], [3.0]]), 2).rows.tolist()
    [1, 2]
    """
    X = _rows(X)
    if k != int(k) or k < 1:
        raise ValueError(f"k must be a whole number of at least 1, not {k!r}")
    activations = Differentiable(model, target, None)(X)
    rows = np.argsort(-activations, kind="stable")[: int(k)]
    return HighRows(rows, activations[rows], float(np.mean(activations <= activations[rows[-1]])))


def unit_of(module: nn.Module, layer: str, index: int) -> nn.Module:
    """A module whose output is one unit of a layer inside ``module``: (rows,), a mean where the
    unit has several places.

    Parameters
    ----------
    module : a torch module
    layer : its name, as in ``module.named_modules()``
    index : of the unit in the layer's output, along the second axis
    """
    import torch

    layers = dict(module.named_modules())
    if layer not in layers:
        known = ", ".join(repr(name) for name in list(layers)[1:13])
        raise ValueError(f"layer must be one of {known}, not {layer!r}")

    class ChosenUnit(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen: list[Any] = []
            hook = layers[layer].register_forward_hook(
                lambda _module, _inputs, output: seen.append(output)
            )
            try:
                self.module(x)
            finally:
                hook.remove()
            return seen[-1][:, index].reshape(len(x), -1).mean(dim=1)

    return ChosenUnit()


class Differentiable:
    """One output of a module or function, and its gradient."""

    def __init__(self, model: Model, target: int | None, gradient: Gradient | None) -> None:
        if not callable(model):
            raise TypeError(
                f"model must be a torch module or a function of rows, not {type(model).__name__}"
            )
        self.model: Any = model
        self.target, self.given = target, gradient
        self.module = any(
            kind.__module__.startswith("torch.nn") for kind in type(self.model).__mro__
        )
        self.method = (
            "as given"
            if gradient is not None
            else "autograd"
            if self.module
            else "central differences"
        )

    def __call__(self, X: Array) -> Array:
        """The output for each row."""
        if self.module:
            import torch

            with torch.no_grad():
                return np.asarray(
                    self._chosen(self.model(self._tensor(X)).cpu().numpy(), len(X)), dtype=float
                )
        return np.asarray(self._chosen(np.asarray(self.model(X), dtype=float), len(X)), dtype=float)

    def gradient(self, X: Array) -> Array:
        """Shaped like X; finite."""
        if self.given is not None:
            slope = np.asarray(self.given(X), dtype=float)
        elif self.module:
            slope = self._by_autograd(X)
        else:
            slope = self._by_differences(X)
        if slope.shape != X.shape:
            raise ValueError(f"gradient must be shaped like the rows, {X.shape}, not {slope.shape}")
        if not np.isfinite(slope).all():
            raise ValueError(
                "the gradient is not finite: the model gives NaN or infinite numbers near these"
                " rows"
            )
        return slope

    def _by_autograd(self, X: Array) -> Array:
        import torch

        x = self._tensor(X).requires_grad_(True)
        (slope,) = torch.autograd.grad(self._chosen(self.model(x), len(X)).sum(), x)
        return slope.cpu().numpy().astype(float)

    def _by_differences(self, X: Array) -> Array:
        """Central differences, one coordinate of all rows at a time."""
        slope = np.empty(X.shape)
        for place in np.ndindex(X.shape[1:]):
            at = (slice(None), *place)
            step = _STEP * np.maximum(1.0, np.abs(X[at]))
            above, below = X.copy(), X.copy()
            above[at] += step
            below[at] -= step
            slope[at] = (self(above) - self(below)) / (above[at] - below[at])
        return slope

    def _tensor(self, X: Array) -> torch.Tensor:
        import torch

        like = next(self.model.parameters(), torch.zeros(()))
        return torch.as_tensor(X, dtype=like.dtype, device=like.device)

    def _chosen(self, answers: Any, rows: int) -> Any:
        if answers.ndim == 2 and answers.shape[1] == 1:
            answers = answers[:, 0]
        if answers.ndim == 2 and self.target is None:
            raise ValueError(f"target must say which of the {answers.shape[1]} outputs is meant")
        if answers.ndim not in (1, 2) or len(answers) != rows:
            raise ValueError(
                "the model must give a number, or a row of numbers, for each row, not"
                f" {tuple(answers.shape)}"
            )
        return answers[:, self.target] if answers.ndim == 2 else answers


def _rows(X: npt.ArrayLike) -> Array:
    X = np.array(X, dtype=float)
    if X.ndim < 2 or not len(X) or not np.isfinite(X).all():
        raise ValueError(f"X must be rows of finite numbers, at least one, not shape {X.shape}")
    return X
