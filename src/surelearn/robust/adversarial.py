"""Training against changed rows (course, Section 17): min_w mean max_{‖Δ‖ ≤ r} ℓ(x + Δ; w).

For a linear classifier the inner maximum is known: the margin y·f(x) falls by exactly r·‖w‖_*, the
dual norm. For a torch module it is searched for by projected gradient.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from surelearn.attacks.domains import Array, Domain, Norm
from surelearn.attacks.evasion import worst_rows
from surelearn.base import Learner
from surelearn.lacking import Lacking
from surelearn.record import Within
from surelearn.robust.adversarial_gap import RobustMachine, gap, losses_and_slopes
from surelearn.robust.record import AdversarialLinearRecord
from surelearn.subject import Parts, linear_form
from surelearn.types import AnyArray, Model, RandomState, RowsLike

LinearLoss = Literal["logistic", "squared_hinge"]


class AdversarialLinearClassifier(ClassifierMixin, Learner):
    """Minimizes (1/n)·Σ ℓ(y_i f(x_i) − r·‖w‖_*) + λ‖w‖², exactly the worst case over changes of
    radius r of every row.

    Convex: ℓ falls with the margin, and the margin less r·‖w‖_* is concave in w. Several classes:
    one against the others.

    Parameters
    ----------
    radius : r, in units of ``scale``
    norm : "linf" (dual: ‖w‖₁) or "l2"
    loss : "logistic", or "squared_hinge" (the SVM's, smoothed)
    regularization : λ beside the mean loss
    scale : the unit of every column's change; a number or one per column (0: it does not change)
    tol, max_iter : of L-BFGS-B

    Attributes
    ----------
    coef_, intercept_, classes_ : as in scikit-learn
    objective_ : the objective reached, of every machine
    n_iter_ : the most iterations that a machine took
    certificate_ : how far the objective can be above its minimum, by duality

    Examples
    --------
    >>> X, y = np.array([[-1.0, 0.1], [-1.0, -0.1], [1.0, 0.1], [1.0, -0.1]]), np.array([0, 0, 1, 1])
    >>> AdversarialLinearClassifier(radius=0.2).fit(X, y).predict(X)
    array([0, 0, 1, 1])
    """

    saved_as = "adversarial-linear-classifier/1"

    Record = AdversarialLinearRecord

    def __init__(
        self,
        *,
        radius: float = 0.1,
        norm: str = "linf",
        loss: LinearLoss = "logistic",
        regularization: float = 1e-4,
        scale: npt.ArrayLike | None = 1.0,
        tol: float = 1e-8,
        max_iter: int = 1000,
    ) -> None:
        self.radius = radius
        self.norm = norm
        self.loss = loss
        self.regularization = regularization
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Stopped early in either norm, and without regularization."""
        yield cls(max_iter=5)
        yield cls(norm="l2", loss="squared_hinge", regularization=0.01, max_iter=5)
        yield cls(regularization=0.0)

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """At its defaults."""
        yield cls()

    def fit(self, X: RowsLike, y: npt.ArrayLike) -> Self:
        """Fit to rows and labels of two or more classes."""
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        self._check()
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError("y holds one class only: classification needs at least two")
        scale = np.broadcast_to(np.asarray(self.scale, dtype=float), rows.shape[1])
        # one machine for two classes, else one for each class against the others
        found = [self._machine(rows, signs, scale) for signs in self._signs(labels)]
        self.coef_ = np.array([machine[0] for machine in found])
        self.intercept_ = np.array([machine[1] for machine in found])
        self.objective_ = np.array([machine[2] for machine in found])
        self.n_iter_ = max(1, *(machine[3] for machine in found))
        self.facts_ = self._facts(rows, labels)
        return self

    def measure_again(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,  # noqa: ARG002
    ) -> dict[str, Any]:
        """The record's fields that the fitted model and the rows it was fitted on tell,
        measured again.
        """
        rows, labels = validate_data(self, X, y, dtype=np.float64, reset=False)
        if not np.array_equal(np.unique(labels), self.classes_):
            raise ValueError("y does not hold the classes that were fitted")
        facts = self._facts(rows, labels)
        if facts["dual"] is not None:
            facts |= {
                name: Within(facts[name], facts["gap_rounding"]) for name in ("primal", "dual")
            }
        return facts

    def _facts(self, X: Array, y: AnyArray) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "n": len(X),
            "d": X.shape[1],
            "machines": len(self.coef_),
            "radius": float(self.radius),
            "norm": self.norm,
            "loss": self.loss,
            "regularization": float(self.regularization),
            **dict.fromkeys(("primal", "dual", "gap_rounding")),
        }
        if self.regularization > 0:
            scale, lam = (
                np.broadcast_to(np.asarray(self.scale, dtype=float), X.shape[1]),
                float(self.regularization),
            )
            machines = (
                RobustMachine(w, b, float(self.radius), self.norm, scale, self.loss, lam)
                for w, b in zip(self.coef_, self.intercept_, strict=True)
            )
            gaps = [
                gap(machine, X, side)
                for machine, side in zip(machines, self._signs(y), strict=True)
            ]
            worst = max(gaps, key=lambda found: found.value)
            if math.isfinite(worst.value):
                facts |= {
                    "primal": worst.primal,
                    "dual": worst.dual,
                    "gap_rounding": worst.rounding,
                }
        return facts

    def _signs(self, y: AnyArray) -> list[Array]:
        """±1 for every row, of every machine: the second of two classes, or each against the
        others.
        """
        which = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        return [np.where(y == label, 1.0, -1.0) for label in which]

    def _describe(self) -> Parts:
        check_is_fitted(self)
        why = "its loss is that at the worst change of every row, which no objective here describes"
        return Parts(
            lambda: linear_form(self.coef_, self.intercept_, len(self.classes_)),
            Lacking("objective", why),
        )

    def decision_function(self, X: RowsLike) -> Array:
        """f(x): for two classes one number per row, positive for the second; else one per class."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        scores = rows @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: RowsLike) -> np.ndarray:
        """The class of every row."""
        scores = self.decision_function(X)
        return self.classes_[
            (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        ]

    def _check(self) -> None:
        for name in ("radius", "regularization"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a finite number of at least 0, not {value!r}")
        if self.norm not in ("linf", "l2"):
            raise ValueError(f"norm must be 'linf' or 'l2', not {self.norm!r}")
        if self.loss not in ("logistic", "squared_hinge"):
            raise ValueError(f"loss must be 'logistic' or 'squared_hinge', not {self.loss!r}")

    def _machine(self, X: Array, signs: Array, scale: Array) -> tuple[Array, float, float, int]:
        """w, b, the objective and the iterations; w = p − q with p, q ≥ 0, so that ‖w‖₁ is
        smooth.
        """
        d = X.shape[1]

        def objective(v: Array) -> tuple[float, Any]:
            # the worst shift within the ball takes radius·‖w‖* off every margin
            w, b = v[:d] - v[d : 2 * d], v[-1]
            shrunk, slope = self._dual(v[:d] + v[d : 2 * d], w, scale)
            margins = signs * (X @ w + b) - self.radius * shrunk
            losses, falls = losses_and_slopes(margins, self.loss)
            pull = X.T @ (falls * signs) / len(X) + 2 * self.regularization * w
            push = -falls.mean() * self.radius * slope
            gradient = np.concatenate([pull + push[0], -pull + push[1], [np.mean(falls * signs)]])
            return float(losses.mean() + self.regularization * w @ w), gradient

        limits = [(0.0, None)] * (2 * d) + [(None, None)]
        options = {"maxiter": self.max_iter, "ftol": self.tol * 1e-4, "gtol": self.tol}
        start = np.concatenate([np.full(2 * d, 1e-3), [0.0]])
        found = minimize(
            objective, start, jac=True, method="L-BFGS-B", bounds=limits, options=options
        )
        return (
            found.x[:d] - found.x[d : 2 * d],
            float(found.x[-1]),
            float(found.fun),
            int(found.nit),
        )

    def _dual(self, absolute: Array, w: Array, scale: Array) -> tuple[float, Array]:
        """‖w·scale‖_* and its slopes in p and q."""
        if self.norm == "linf":
            return float(absolute @ scale), np.stack([scale, scale])
        size = math.sqrt(float((w * scale) @ (w * scale)) + 1e-300)
        slope = w * scale**2 / size
        return size, np.stack([slope, -slope])


def train_adversarially(
    module: Model,
    X: RowsLike,
    y: npt.ArrayLike,
    *,
    radius: float,
    norm: Norm = "linf",
    where: Domain | None = None,
    steps: int = 7,
    epochs: int = 20,
    batch_size: int = 64,
    learning_rate: float = 1e-3,
    random_state: RandomState = None,
) -> Any:
    """A copy of a torch module that gives logits, trained by Adam on rows that projected gradient
    changes in every batch.

    Parameters
    ----------
    X, y : rows (n, d) and labels 0, 1, …, in the order of the module's outputs
    radius, norm, where : of the changes; a radius of 0 is ordinary training
    steps : of projected gradient a batch; it starts at random in the ball
    """
    import torch

    from surelearn.neural.train import Training, train

    X, y = np.array(X, dtype=np.float64, ndmin=2), np.asarray(y)
    if y.shape != (len(X),) or y.dtype.kind not in "iub":
        raise ValueError(
            "y must hold a whole number, 0, 1, …, for every row: the number of its class"
        )
    if not (math.isfinite(radius) and radius >= 0):
        raise ValueError(f"radius must be a finite number of at least 0, not {radius!r}")
    module = copy.deepcopy(module)
    parameter = next(module.parameters())
    random = check_random_state(random_state)
    labels = torch.from_numpy(y.astype(np.int64)).to(parameter.device)
    attack: dict[str, Any] = {"radius": radius, "norm": norm, "where": where, "steps": steps}

    def step(rows: npt.NDArray[np.intp]) -> Any:
        batch = X[rows]
        if radius > 0:
            batch = worst_rows(module.eval(), batch, y[rows], random_state=random, **attack)
        module.train()
        given = torch.from_numpy(batch).to(parameter.device, parameter.dtype)
        # the mean of `surelearn.losses.log_losses`
        return torch.nn.functional.cross_entropy(module(given), labels[rows])

    plan = Training(
        epochs=epochs,
        learning_rate=learning_rate,
        optimizer=lambda parameters: torch.optim.Adam(parameters, lr=learning_rate),
    )
    seed = int(random.randint(2**31))
    train(step, module, _Orders(len(X), batch_size, random), plan, seed=seed)
    return module


class _Orders:
    """Batches of rows in orders from a generator that attacks draw from, too."""

    def __init__(self, n: int, batch_size: int, random: np.random.RandomState) -> None:
        self._n, self._batch_size, self._random = n, batch_size, random

    def __len__(self) -> int:
        return -(-self._n // self._batch_size)

    def epoch(self, number: int) -> Iterator[npt.NDArray[np.intp]]:  # noqa: ARG002
        """Every row once."""
        order = self._random.permutation(self._n)
        for start in range(0, self._n, self._batch_size):
            yield order[start : start + self._batch_size]
