"""What a learner minimizes, as the attacks on training rows need it: (1/n)·Σ ℓ(w; x_i, y_i) +
λ‖w‖², and its derivatives.

Labels are 0 … c − 1 for classifiers, numbers for squared and Huber's loss. `LinearObjective` has
closed forms; a torch module is a `surelearn.attacks.poison_modules.ModuleObjective`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, get_args

import numpy as np
from scipy import linalg, optimize, sparse

from surelearn import stated
from surelearn.attacks.poison_allowed import Array
from surelearn.lacking import Lacking
from surelearn.losses import (
    ConvexLoss,
    find_loss,
    huber,
    log_loss_curved,
    log_loss_slopes,
    log_losses,
)
from surelearn.subject import Subject
from surelearn.subject.forms import LinearForm

Loss = Literal["logistic", "squared hinge", "exponential", "squared", "huber"]
_MOST_DENSE = 500  # parameters, up to which the Hessian is a matrix


class VictimObjective(ABC):
    """A mean loss, twice differentiable almost everywhere, with penalty λ‖w‖², in a flat vector of
    parameters.

    Attributes
    ----------
    regularization : λ
    damping : added to the Hessian where it is inverted
    iterations : the most steps of one fit
    """

    regularization: float = 0.0
    damping: float = 0.0
    iterations: int = 1000

    @abstractmethod
    def start(self, d: int) -> Array:
        """Parameters to fit from, for rows of d features."""

    @abstractmethod
    def losses(self, w: Array, X: Array, y: np.ndarray) -> Array:
        """ℓ of every row, without the penalty."""

    @abstractmethod
    def gradients(self, w: Array, X: Array, y: np.ndarray) -> Array:
        """∇_w ℓ of every row, (n, p)."""

    @abstractmethod
    def gradient(self, w: Array, X: Array, y: np.ndarray, weights: Array | None = None) -> Array:
        """Mean of ∇_w ℓ, or its sum with ``weights``."""

    @abstractmethod
    def pull(self, w: Array, X: Array, y: np.ndarray, v: Array) -> Array:
        """∇_x ⟨v, ∇_w ℓ⟩ of every row, (n, d)."""

    @abstractmethod
    def hessian_product(self, w: Array, X: Array, y: np.ndarray, v: Array) -> Array:
        """The mean Hessian of ℓ times v."""

    def risk(self, w: Array, X: Array, y: np.ndarray) -> float:
        """The mean loss, without the penalty."""
        return float(self.losses(w, X, y).mean())

    def fit(self, X: Array, y: np.ndarray, start: Array | None = None) -> Array:
        """The minimizer, from ``start`` (a local one where the loss is not convex)."""

        def value(w: Array) -> tuple[float, Array]:
            slope = self.gradient(w, X, y) + 2 * self.regularization * w
            return self.risk(w, X, y) + self.regularization * float(w @ w), slope

        options = {
            "maxiter": self.iterations,
            "maxfun": 2 * self.iterations,
            "gtol": 1e-9,
            "ftol": 1e-15,
        }
        w = self.start(X.shape[1]) if start is None else np.asarray(start, dtype=float)
        return optimize.minimize(value, w, jac=True, method="L-BFGS-B", options=options).x

    def solve(self, w: Array, X: Array, y: np.ndarray, b: Array) -> Array:
        """H⁻¹b, H the Hessian of the whole objective, by conjugate gradients; b (p,) or (p, m)."""
        if b.ndim == 2:
            return np.column_stack([self.solve(w, X, y, column) for column in b.T])
        shift = 2 * self.regularization + self.damping

        def times(v: Array) -> Array:
            return self.hessian_product(w, X, y, v.ravel()) + shift * v.ravel()

        operator = sparse.linalg.LinearOperator((b.size, b.size), matvec=times, dtype=np.float64)
        return sparse.linalg.cg(operator, b, rtol=1e-8, maxiter=10 * b.size)[0]

    def total_gradient(
        self, w: Array, X: Array, y: np.ndarray, count: int, X_outer: Array, y_outer: np.ndarray
    ) -> Array:
        """How the risk on outer rows changes with the last ``count`` rows, as the fit w
        follows: −∇_x⟨H⁻¹∇L, g⟩/n.
        """
        u = self.solve(w, X, y, self.gradient(w, X_outer, y_outer))
        return -self.pull(w, X[-count:], y[-count:], u) / len(X)


# of a classifier's labels 0 … c − 1; the others are of numbers
_OF_CLASSES = ("logistic", "squared hinge", "exponential")
_DEEPEST = -300.0  # margin, below which the exponential loss is taken as there


class LinearObjective(VictimObjective):
    """A mean loss of scores that are linear in w, with derivatives in closed form.

    Parameters
    ----------
    loss : "logistic" (labels 0 … c − 1), "squared hinge" or "exponential" (labels 0 and 1),
        "squared" or "huber" (numbers)
    classes : c, for logistic loss; two classes have one score, c have c scores, w then being (c, d)
        in one row
    intercept : whether a column of ones is added, penalized like the others
    regularization : λ beside the mean loss
    knee : η of Huber's loss, ½r² up to ``|r|`` = η and straight beyond

    Examples
    --------
    >>> X, y = np.array([[1.0], [2.0]]), np.array([1.0, 2.0])
    >>> LinearObjective("squared", intercept=False, regularization=2.5).fit(X, y).round(6)
    array([0.5])
    """

    def __init__(
        self,
        loss: Loss = "logistic",
        *,
        classes: int = 2,
        intercept: bool = True,
        regularization: float = 0.0,
        knee: float = 1.0,
    ) -> None:
        if loss not in get_args(Loss):
            raise ValueError(f"loss must be one of {', '.join(get_args(Loss))}, not {loss!r}")
        stated.whole("classes", classes, 2)
        if classes > 2 and loss in ("squared hinge", "exponential"):
            raise ValueError(
                f"classes must be 2 for {loss} loss: attack one machine against the rest at a time"
            )
        if not (np.isfinite(knee) and knee > 0):
            raise ValueError(f"knee must be a number above 0, not {knee!r}")
        if not (np.isfinite(regularization) and regularization >= 0):
            raise ValueError(
                f"regularization must be a number of at least 0, not {regularization!r}"
            )
        self.loss, self.classes, self.intercept, self.regularization = (
            loss,
            int(classes),
            intercept,
            regularization,
        )
        self.scores = self.classes if loss == "logistic" and classes > 2 else 1
        self.knee = float(knee)

    def start(self, d: int) -> Array:
        """Zeros."""
        return np.zeros(self.scores * (d + self.intercept))

    def decision(self, w: Array, X: Array) -> Array:
        """Scores, (n, 1) or (n, c)."""
        return self._padded(X) @ w.reshape(self.scores, -1).T

    def losses(self, w: Array, X: Array, y: np.ndarray) -> Array:
        """ℓ of every row."""
        S = self.decision(w, X)
        if self.scores > 1:
            return log_losses(S, y.astype(int))
        return self._convex().of_scores(*self._paired(S, y))[:, 0]

    def gradients(self, w: Array, X: Array, y: np.ndarray) -> Array:
        """∇_w ℓ of every row, (n, p)."""
        slopes = self._slopes(self.decision(w, X), y)
        return (slopes[:, :, None] * self._padded(X)[:, None, :]).reshape(len(X), -1)

    def gradient(self, w: Array, X: Array, y: np.ndarray, weights: Array | None = None) -> Array:
        """Mean of ∇_w ℓ, or its sum with ``weights``."""
        slopes = self._slopes(self.decision(w, X), y)
        shares = np.full(len(X), 1 / len(X)) if weights is None else weights
        return ((slopes * shares[:, None]).T @ self._padded(X)).ravel()

    def pull(self, w: Array, X: Array, y: np.ndarray, v: Array) -> Array:
        """∇_x ⟨v, ∇_w ℓ⟩ = Vᵀℓ′ + Wᵀℓ″(Vx) of every row, (n, d)."""
        W, V = w.reshape(self.scores, -1), v.reshape(self.scores, -1)
        S = self.decision(w, X)
        curved = self._curved(S, y, self._padded(X) @ V.T)
        return (self._slopes(S, y) @ V + curved @ W)[:, : X.shape[1]]

    def hessian_product(self, w: Array, X: Array, y: np.ndarray, v: Array) -> Array:
        """The mean Hessian of ℓ times v."""
        Z = self._padded(X)
        curved = self._curved(self.decision(w, X), y, Z @ v.reshape(self.scores, -1).T)
        return (curved.T @ Z).ravel() / len(X)

    def hessian(self, w: Array, X: Array, y: np.ndarray) -> Array:
        """The mean Hessian of ℓ."""
        if self.scores > 1:
            return np.column_stack([self.hessian_product(w, X, y, unit) for unit in np.eye(w.size)])
        Z = self._padded(X)
        return (Z * self._curved(self.decision(w, X), y, np.ones((len(X), 1)))).T @ Z / len(X)

    def solve(self, w: Array, X: Array, y: np.ndarray, b: Array) -> Array:
        """H⁻¹b; a small H is factored, the least-norm solution taken where it is singular."""
        if len(b) > _MOST_DENSE:
            return super().solve(w, X, y, b)
        shift = 2 * self.regularization + self.damping
        H = self.hessian(w, X, y) + shift * np.eye(len(b))
        if shift > 0:
            return np.asarray(linalg.solve(H, b, assume_a="pos"))
        return linalg.lstsq(H, b, lapack_driver="gelsd")[0]  # pyright: ignore[reportOptionalSubscript]

    def fit(self, X: Array, y: np.ndarray, start: Array | None = None) -> Array:
        """The minimizer: L-BFGS, then Newton steps as long as they shrink the gradient."""
        check_labels(self, np.asarray(y))
        w = super().fit(X, y, start)

        def slope(w: Array) -> Array:
            return self.gradient(w, X, y) + 2 * self.regularization * w

        for _ in range(10):
            further = w - self.solve(w, X, y, slope(w))
            if not np.linalg.norm(slope(further)) < 0.5 * np.linalg.norm(slope(w)):
                break
            w = further
        return w

    def _convex(self) -> ConvexLoss:
        """The loss of one score."""
        return huber(self.knee) if self.loss == "huber" else find_loss(self.loss)

    def _paired(self, S: Array, y: np.ndarray) -> tuple[Array, Array]:
        """One score per row (n, 1), and −1 and 1 for classes, or the numbers, (n, 1)."""
        if self.loss not in _OF_CLASSES:
            return S, y[:, None]
        signs = (2.0 * y - 1.0)[:, None]
        return (signs * np.maximum(signs * S, _DEEPEST) if self.loss == "exponential" else S), signs

    def _slopes(self, S: Array, y: np.ndarray) -> Array:
        """Derivatives of the losses by the scores."""
        if self.scores > 1:
            return log_loss_slopes(S, y.astype(int))
        return self._convex().slope_of_scores(*self._paired(S, y))

    def _curved(self, S: Array, y: np.ndarray, T: Array) -> Array:
        """Second derivatives of the losses by the scores, times T."""
        if self.scores > 1:
            return log_loss_curved(S, T)
        return self._convex().curvature_of_scores(*self._paired(S, y)) * T

    def _padded(self, X: Array) -> Array:
        return np.column_stack([X, np.ones(len(X))]) if self.intercept else X


def check_labels(objective: Any, y: np.ndarray, name: str = "y") -> None:
    """Refuse labels that a classifier's objective does not have, and targets that are no
    numbers.
    """
    classes, numbers = getattr(objective, "loss", "") in _OF_CLASSES, y.dtype.kind in "iufb"
    if not classes and not numbers:
        raise ValueError(f"{name} must hold numbers, not {y.dtype}")
    if classes and not (numbers and np.isin(y, np.arange(objective.classes)).all()):
        raise ValueError(
            f"{name} must hold labels 0 … {objective.classes - 1}: number the classes first"
        )


def checked_parameters(objective: VictimObjective, name: str, w: Any, d: int) -> Array:
    """Finite parameters, as many as the objective has for d features."""
    given, wanted = np.asarray(w, dtype=float), objective.start(d).size
    if given.shape != (wanted,) or not np.isfinite(given).all():
        raise ValueError(f"{name} must be {wanted} finite parameters, not of shape {given.shape}")
    return given


def known_objective(subject: Subject, n: int) -> tuple[LinearObjective, Array] | Lacking:
    """A fitted logistic or ridge regression as these attacks take it, with its parameters: weights
    and intercepts.

    Only a fit at the minimizer of the mean loss over n rows of equal weight, with a squared
    penalty.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from surelearn.subject import subject_of
    >>> model = LogisticRegression().fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> objective, w = known_objective(subject_of(model), 4)
    >>> objective.regularization, w.shape
    (0.125, (2,))
    """
    objective, closed = subject.objective, subject.learner.form
    if isinstance(objective, Lacking):
        return objective
    if isinstance(closed, Lacking):
        return Lacking("objective", closed.reason)
    plain = objective.minimized and objective.uniform is not False and objective.l1 == 0
    coded = {"logistic": ("binary", "softmax"), "squared": ("numbers",)}.get(objective.loss, ())
    if objective.coding not in coded or not plain:
        why = (
            "it is not the minimizer of a logistic or squared loss with a squared penalty over rows"
            " of equal weight"
        )
        return Lacking("objective", why)
    form = closed.form
    if not isinstance(form, LinearForm) or (objective.loss == "squared" and len(form.weights) > 1):
        return Lacking(
            "objective", "it is not linear in the rows that it is given, or has several outputs"
        )
    classes = 2 if len(form.weights) == 1 else len(form.weights)
    loss: Loss = "squared" if objective.loss == "squared" else "logistic"
    made = LinearObjective(loss, classes=classes, regularization=objective.strength(n))
    return made, np.column_stack([form.weights, form.intercepts]).ravel().astype(float)
