"""Logistic regression with differential privacy: DP-SGD from zero weights, with its (ε, dp_delta) in the certificate."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from surelearn.base import Learner, Writer
from surelearn.optim.accountant import PoissonSampler, account_sampler, generator_from, noise_for
from surelearn.optim.dp_claims import facts_of, write_privacy
from surelearn.optim.dp_sgd import Recipe, private_descent, softmax_slopes

Array = npt.NDArray[np.float64]


class DPLogisticRegression(ClassifierMixin, Learner):
    """Logistic regression by DP-SGD: nobody can tell from its weights, beyond (ε, dp_delta), whether a row was there.

    Every row longer than ``x_bound`` is shortened to it, in fitting and predicting alike, and every row's gradient clipped.
    ε covers the weights: not a scaler or encoder fitted on the same rows (fix their numbers beforehand), not the choice of
    settings by trying several, and not what is measured on the rows afterwards. The number of rows, the columns and the set
    of labels count as public.

    Parameters
    ----------
    epsilon : ε to spend; the noise that needs is found by bisection
    noise_multiplier : the noise σ in units of ``clip``, in place of ``epsilon``
    dp_delta : privacy's δ, well below 1/n; not the failure probability of a claim
    x_bound : the length to which rows are shortened; None leaves them as they are, gradients are clipped all the same
    clip : the norm C to which each row's gradient is clipped
    batch_size : expected size qN of the Poisson samples
    passes : expected passes over the rows
    step : η
    regularization : λ ≥ 0 of λ‖w‖²
    radius : project the weights onto a ball; None does not
    average : predict with the mean of the second half of the iterates, which costs no privacy
    delta : failure probability of claims (those made here hold always)
    random_state : int, RandomState or None; a seed that others know voids the guarantee, so it is never saved or hashed

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

    secret_parameters: ClassVar[tuple[str, ...]] = ("random_state",)
    classes_: npt.NDArray[Any]
    coef_: Array
    intercept_: Array
    n_features_in_: int

    def __init__(
        self,
        *,
        epsilon: float | None = 1.0,
        noise_multiplier: float | None = None,
        dp_delta: float = 1e-5,
        x_bound: float | None = None,
        clip: float = 1.0,
        batch_size: float = 256,
        passes: float = 20.0,
        step: float = 1.0,
        regularization: float = 0.0,
        radius: float | None = None,
        average: bool = True,
        delta: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.noise_multiplier = noise_multiplier
        self.dp_delta = dp_delta
        self.x_bound = x_bound
        self.clip = clip
        self.batch_size = batch_size
        self.passes = passes
        self.step = step
        self.regularization = regularization
        self.radius = radius
        self.average = average
        self.delta = delta
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> DPLogisticRegression:
        """Fit to rows X (n, d) with labels y (n,) of two or more classes."""
        self._check()
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError("y holds one class only: logistic regression needs rows of at least two classes")
        rate = min(1.0, self.batch_size / len(X))
        self.steps_ = int(np.ceil(self.passes / rate))
        self.noise_multiplier_ = self._noise(rate)
        recipe = Recipe(
            steps=self.steps_,
            step=self.step,
            clip=self.clip,
            noise_multiplier=self.noise_multiplier_,
            regularization=self.regularization,
            radius=self.radius,
            average=self.average,
        )
        generator = generator_from(self.random_state)
        sampler = PoissonSampler(len(X), rate, generator)
        outputs = 1 if self.classes_.size == 2 else self.classes_.size
        found = private_descent(
            self._shortened(X), softmax_slopes(codes, self.classes_.size), outputs, sampler, recipe, generator
        )
        self.coef_, self.intercept_ = np.ascontiguousarray(found[:-1].T), found[-1].copy()
        spent = account_sampler(sampler, self.noise_multiplier_, self.dp_delta) if self.noise_multiplier_ > 0 else None
        reason = "" if spent else "no noise was added"
        self.facts_ = facts_of(len(X), X.shape[1], recipe, spent, reason, seeded=self.random_state is not None)
        return self

    def decision_function(self, X: Any) -> Array:
        """Scores: (n,) of the second of two classes, else (n, K)."""
        check_is_fitted(self)
        X = self._shortened(validate_data(self, X, dtype=np.float64, reset=False))
        scores = X @ self.coef_.T + self.intercept_
        return scores.ravel() if self.classes_.size == 2 else scores

    @property
    def shortens_rows(self) -> bool:
        """Whether scores are those of shortened rows: then they are not linear in the rows."""
        return self.x_bound is not None

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The likeliest class of each row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if self.classes_.size == 2 else scores.argmax(axis=1)]

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, K) of the classes in the order of ``classes_``."""
        scores = self.decision_function(X)
        return softmax(np.column_stack([np.zeros_like(scores), scores]) if scores.ndim == 1 else scores, axis=1)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def _check(self) -> None:
        if self.epsilon is None and self.noise_multiplier is None:
            raise ValueError("give epsilon= or noise_multiplier=")
        for name in ("batch_size", "passes"):
            if not 0 < getattr(self, name) < np.inf:
                raise ValueError(f"{name} must be positive and finite, not {getattr(self, name)}")
        if self.x_bound is not None and not 0 < self.x_bound < np.inf:
            raise ValueError(f"x_bound must be None or positive and finite, not {self.x_bound}")
        if not 0 < self.dp_delta < 1:
            raise ValueError(f"dp_delta must lie strictly between 0 and 1, not {self.dp_delta}")

    def _noise(self, rate: float) -> float:
        if self.noise_multiplier is not None:
            return float(self.noise_multiplier)
        return noise_for(float(self.epsilon), float(self.dp_delta), rate, self.steps_)  # pyright: ignore[reportArgumentType]

    def _shortened(self, X: Array) -> Array:
        if self.x_bound is None:
            return X
        return X * (self.x_bound / np.maximum(np.linalg.norm(X, axis=1), self.x_bound))[:, None]

    def _claim(self, writer: Writer) -> None:
        write_privacy(writer, self.facts_)
