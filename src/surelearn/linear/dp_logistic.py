"""Logistic regression with differential privacy: DP-SGD from zero weights, with its (ε,
dp_delta) in the certificate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from surelearn import stated
from surelearn.base import Learner
from surelearn.earlier import Names
from surelearn.lacking import Lacking
from surelearn.optim.accountant import (
    PoissonSampler,
    PrivacySpent,
    account,
    account_sampler,
    generator_from,
    noise_for,
)
from surelearn.optim.dp_claims import NO_NOISE, PrivacyRecord, facts_of, told_again
from surelearn.optim.dp_sgd import Recipe, private_descent, softmax_slopes
from surelearn.subject import Closed, Parts, linear_form
from surelearn.types import RandomState, RowsLike

Array = npt.NDArray[np.float64]


class DPLogisticRegression(ClassifierMixin, Learner):
    """Logistic regression by DP-SGD: nobody can tell from its weights, beyond (ε, dp_delta),
    whether a row was there.

    Every row longer than ``x_bound`` is shortened to it, in fitting and predicting alike, and every
    row's gradient clipped. ε covers the weights: not a scaler or encoder fitted on the same rows
    (fix their numbers beforehand), not the choice of settings by trying several, and not what is
    measured on the rows afterwards. The number of rows, the columns and the set of labels count as
    public.

    Parameters
    ----------
    epsilon : ε to spend; the noise that needs is found by bisection
    noise_multiplier : the noise σ in units of ``clip``, in place of ``epsilon``
    dp_delta : privacy's δ, well below 1/n; not the failure probability of a claim
    x_bound : the length to which rows are shortened; None leaves them as they are, gradients are
        clipped all the same
    clip : the norm C to which each row's gradient is clipped
    batch_size : expected size qN of the Poisson samples
    epochs : expected passes over the rows
    step : η
    regularization : λ ≥ 0 of λ‖w‖²
    radius : project the weights onto a ball; None does not
    average : predict with the mean of the second half of the iterates, which costs no privacy
    delta : failure probability of claims (those made here hold always)
    random_state : int, RandomState or None; a seed that others know voids the guarantee, so it is
        never saved or hashed

    Attributes
    ----------
    coef_, intercept_, classes_ : as in scikit-learn
    noise_multiplier_ : σ
    steps_ : steps made

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)); y = X[:, 0] > 0
    >>> model = DPLogisticRegression(epsilon=1.0, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), bool(model.certificate_["epsilon"].value <= 1.0)
    (True, True)
    """

    Record = PrivacyRecord
    earlier: ClassVar[Names] = {"passes": "epochs"}
    secret_parameters: ClassVar[tuple[str, ...]] = ("random_state",)
    classes_: npt.NDArray[Any]
    coef_: Array
    intercept_: Array
    n_features_in_: int
    saved_as = "dp-logistic-regression/1"

    def __init__(
        self,
        *,
        epsilon: float | None = 1.0,
        noise_multiplier: float | None = None,
        dp_delta: float = 1e-5,
        x_bound: float | None = None,
        clip: float = 1.0,
        batch_size: float = 256,
        epochs: float = 20.0,
        step: float = 1.0,
        regularization: float = 0.0,
        radius: float | None = None,
        average: bool = True,
        delta: float = 0.05,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.noise_multiplier = noise_multiplier
        self.dp_delta = dp_delta
        self.x_bound = x_bound
        self.clip = clip
        self.batch_size = batch_size
        self.epochs = epochs
        self.step = step
        self.regularization = regularization
        self.radius = radius
        self.average = average
        self.delta = delta
        self.random_state = random_state

    def fit(self, X: RowsLike, y: npt.ArrayLike) -> DPLogisticRegression:
        """Fit to rows X (n, d) with labels y (n,) of two or more classes."""
        self._check()
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                "y holds one class only: logistic regression needs rows of at least two classes"
            )
        rate, recipe = self._plan(len(rows))
        self.steps_, self.noise_multiplier_ = recipe.steps, recipe.noise_multiplier
        generator = generator_from(self.random_state)
        sampler = PoissonSampler(len(rows), rate, generator)
        outputs = 1 if self.classes_.size == 2 else self.classes_.size
        found = private_descent(
            self._shortened(rows),
            softmax_slopes(codes, self.classes_.size),
            outputs,
            sampler,
            recipe,
            generator,
        )
        self.coef_, self.intercept_ = np.ascontiguousarray(found[:-1].T), found[-1].copy()
        spent = (
            account_sampler(sampler, self.noise_multiplier_, self.dp_delta)
            if self.noise_multiplier_ > 0
            else NO_NOISE
        )
        self.facts_ = self._facts(rows, recipe, spent) | {"seeded": self.random_state is not None}
        return self

    def measure_again(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> dict[str, Any]:
        """The record's fields that parameters and rows tell; that so much noise was added,
        nobody can see in the weights.
        """
        if sample_weight is not None:
            raise ValueError("DPLogisticRegression has no weights of rows: leave sample_weight out")
        rows, labels = validate_data(self, X, y, dtype=np.float64, reset=False)
        if not np.array_equal(np.unique(labels), self.classes_):
            raise ValueError("y does not hold the classes that the model was fitted on")
        rate, recipe = self._plan(len(rows))
        noise = recipe.noise_multiplier
        spent = account(noise, rate, recipe.steps, self.dp_delta) if noise > 0 else NO_NOISE
        return told_again(self._facts(rows, recipe, spent), self.facts_)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """With an ε to spend, with stated noise, and without noise."""
        yield cls(epsilon=2.0, epochs=2.0)
        yield cls(epsilon=None, noise_multiplier=1.0, batch_size=20, epochs=1.0, random_state=0)
        yield cls(epsilon=None, noise_multiplier=0.0, epochs=1.0)

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """With so little noise that it learns, and always the same."""
        yield cls(noise_multiplier=0.2, epsilon=None, epochs=60, random_state=0)

    def _plan(self, n: int) -> tuple[float, Recipe]:
        """The sample rate for n rows, and how it steps."""
        rate = min(1.0, self.batch_size / n)
        steps = int(np.ceil(self.epochs / rate))
        recipe = Recipe(
            steps=steps,
            step=self.step,
            clip=self.clip,
            noise_multiplier=self._noise(rate, steps),
            regularization=self.regularization,
            radius=self.radius,
            average=self.average,
        )
        return rate, recipe

    def _facts(self, X: Array, recipe: Recipe, spent: PrivacySpent | Lacking) -> dict[str, Any]:
        return facts_of(len(X), X.shape[1], recipe, spent)

    def decision_function(self, X: RowsLike) -> Array:
        """Scores: (n,) of the second of two classes, else (n, K)."""
        check_is_fitted(self)
        X = self._shortened(validate_data(self, X, dtype=np.float64, reset=False))
        scores = X @ self.coef_.T + self.intercept_
        return scores.ravel() if self.classes_.size == 2 else scores

    def predict(self, X: RowsLike) -> npt.NDArray[Any]:
        """The likeliest class of each row."""
        scores = self.decision_function(X)
        return self.classes_[
            (scores > 0).astype(int) if self.classes_.size == 2 else scores.argmax(axis=1)
        ]

    def predict_proba(self, X: RowsLike) -> Array:
        """Probabilities (n, K) of the classes in the order of ``classes_``."""
        scores = self.decision_function(X)
        return softmax(
            np.column_stack([np.zeros_like(scores), scores]) if scores.ndim == 1 else scores, axis=1
        )

    def predict_log_proba(self, X: RowsLike) -> Array:
        """Logarithms of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def _describe(self) -> Parts:
        check_is_fitted(self)
        why = "noise was added to every step: the weights are near no minimizer that is known"
        return Parts(self._form, Lacking("objective", why))

    def _form(self) -> Closed | Lacking:
        if self.x_bound is not None:
            why = "DPLogisticRegression shortens rows first: its scores are not linear in them"
            return Lacking("closed form", why)
        return linear_form(self.coef_, self.intercept_, self.classes_.size)

    def _check(self) -> None:
        if self.epsilon is None and self.noise_multiplier is None:
            raise ValueError("give epsilon= or noise_multiplier=")
        for name in ("batch_size", "epochs"):
            stated.positive(name, getattr(self, name))
        if self.x_bound is not None and not 0 < self.x_bound < np.inf:
            raise ValueError(f"x_bound must be None or positive and finite, not {self.x_bound}")
        stated.fraction("dp_delta", self.dp_delta)

    def _noise(self, rate: float, steps: int) -> float:
        if self.noise_multiplier is not None:
            return float(self.noise_multiplier)
        return noise_for(float(self.epsilon), float(self.dp_delta), rate, steps)  # pyright: ignore[reportArgumentType]

    def _shortened(self, X: Array) -> Array:
        if self.x_bound is None:
            return X
        return X * (self.x_bound / np.maximum(np.linalg.norm(X, axis=1), self.x_bound))[:, None]
