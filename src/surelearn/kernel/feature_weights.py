"""Columns weighted by what a kernel machine learned of them: a recursive feature machine's weights.

Radhakrishnan, Beaglehole, Pandit and Belkin (2024), Mechanism for feature learning in neural
networks and backpropagation-free machine learning models: kernel ridge regression, then the average
gradient outer product (1/n)Σ_i ∇f(x_i)∇f(x_i)ᵀ of what it fitted as the metric of the next kernel,
in turn. Here its diagonal, so that a weight belongs to a column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from surelearn.kernel.functions import Gaussian
from surelearn.subject.forms import Affine
from surelearn.subject.registry import Preparation, describes
from surelearn.types import Array, RowsLike

PENALTIES = (0.01, 0.1, 1.0)  # c of (K + cI)⁻¹y, chosen by leave-one-out


class FeatureWeights(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale column j by √w_j, w_j ∝ ((1/n)Σ_i ∂_j f(x_i)²)^power, f a Gaussian kernel machine in the
    columns as weighted so far.

    The columns are scaled so that their variances sum to 1, and so f's bandwidth is 1; its penalty has
    the least squared leave-one-out error.

    Parameters
    ----------
    labels : whether ``y`` are labels, each of which is fitted as 0 or 1, or numbers
    power : 1 is the paper's; less evens the weights out
    rounds : of fitting and weighting
    max_rows : to learn the weights on, drawn where there are more; time grows with its cube
    random_state : of the rows drawn

    Attributes
    ----------
    scale_ : (d,), √w_j

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> FeatureWeights().fit(X, np.sin(X[:, 0])).scale_.round(1).tolist()
    [1.0, 0.0, 0.0]
    """

    saved_as = "feature-weights/1"

    def __init__(
        self,
        labels: bool = False,
        power: float = 1.0,
        rounds: int = 2,
        max_rows: int = 600,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.labels = labels
        self.power = power
        self.rounds = rounds
        self.max_rows = max_rows
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: RowsLike, y: npt.ArrayLike) -> FeatureWeights:
        """Learn the weights."""
        rows, target = validate_data(
            self, X, y, dtype=np.float64, y_numeric=not self.labels, ensure_min_samples=2
        )
        if self.labels:
            check_classification_targets(target)
        if len(rows) > self.max_rows:
            drawn = check_random_state(self.random_state).permutation(len(rows))
            rows, target = rows[drawn[: self.max_rows]], target[drawn[: self.max_rows]]
        columns = target == np.unique(target)[:, None] if self.labels else target[None]
        self.scale_ = _scales(rows, _standard(columns.T.astype(float)), self.power, self.rounds)
        return self

    def transform(self, X: RowsLike) -> Array:
        """The columns, scaled."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float64) * self.scale_


def _standard(Y: Array) -> Array:
    """Centered columns (n, outputs) whose squares have mean 1 over all of them."""
    Y = Y - Y.mean(axis=0)
    size = np.sqrt((Y**2).mean())
    return Y / size if size > 0 else Y


def _scales(X: Array, Y: Array, power: float, rounds: int) -> Array:
    """√w after some rounds; equal weights where nothing is learned."""
    spread = X.var(axis=0)
    total = float(spread.sum())
    varies = total > 1e-20 * float((X**2).mean(axis=0).sum())  # more than rounding
    weights = np.full(X.shape[1], 1.0 / total if varies else 1.0)
    for _ in range(rounds):
        steep = _mean_squared_slopes(X * np.sqrt(weights), Y) * weights
        learned = (steep / steep.max()) ** power if steep.max() > 0 else steep
        if not learned @ spread > 0:
            break
        weights = learned / (learned @ spread)
    return np.sqrt(weights)


def _mean_squared_slopes(Z: Array, Y: Array) -> Array:
    """(d,), (1/n)Σ_i ‖∂_j f(z_i)‖² of kernel ridge regression with bandwidth 1.

    f(z) = Σ_i α_i k(z, z_i) has ∂_j f(z) = Σ_i α_i k(z, z_i)(z_ij − z_j).
    """
    gram = Gaussian(bandwidth=1.0)(Z, Z)
    steep = np.zeros(Z.shape[1])
    for alpha in _coefficients(gram, Y).T:  # (n,) of each output
        slopes = gram @ (alpha[:, None] * Z) - Z * (gram @ alpha)[:, None]
        steep += (slopes**2).mean(axis=0)
    return steep


def _coefficients(gram: Array, Y: Array) -> Array:
    """α = (K + cI)⁻¹Y, (n, outputs), with the c of `PENALTIES` whose leave-one-out residuals
    α_i/((K + cI)⁻¹)_ii have the least squares; one eigendecomposition gives all.
    """
    values, vectors = eigh(gram, driver="evd")
    turned, squares = vectors.T @ Y, vectors**2
    least, found = np.inf, Y
    for penalty in PENALTIES:
        inverse = 1.0 / (values + penalty)
        alpha = vectors @ (inverse[:, None] * turned)
        error = float(((alpha / (squares @ inverse)[:, None]) ** 2).mean())
        if error < least:
            least, found = error, alpha
    return found


@describes(FeatureWeights)
def _described(step: FeatureWeights) -> Preparation:
    made = lambda: Affine(step.scale_, np.zeros(step.scale_.size))  # noqa: E731
    return Preparation(made, columnwise=True)
