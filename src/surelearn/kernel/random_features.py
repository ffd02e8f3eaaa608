"""Random features: maps φ with E⟨φ(x), φ(z)⟩ = k(x, z), and minimum-norm least squares on them, in time linear in n.

Bochner's theorem writes k(x, z) = E cos⟨ω, x − z⟩: for our Gaussian exp(−‖x − z‖²/σ), ω has the distribution N(0, (2/σ)·I);
for our Laplace exp(−‖x − z‖/σ), that of g/(σ|u|) with g and u standard normal (multivariate Cauchy). A frequency gives a
cosine and a sine of the same angle, so that ‖φ(x)‖ = 1 exactly, as √k(x, x), for an even number of features.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.linalg import svd
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    MultiOutputMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from surelearn.base import Learner, Writer
from surelearn.kernel.functions import Gaussian, Kernel, Laplace, inner_products, kernel, squared_norms

Array = npt.NDArray[np.float64]
FEATURES = ("gaussian", "laplace", "relu")
_INTERCEPTS = ("free", "none")
_PIECE = 2**22  # numbers in a piece of the features: 32 MB


class _Features(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What random features share: ``fit`` draws ``weights_`` (d, ·), ``transform`` maps rows."""

    n_components: int
    random_state: Any
    weights_: Array

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - scikit-learn's signature
        """Draw the weights; of ``X`` only the number of columns matters."""
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        self.weights_ = self._draw(X.shape[1], check_random_state(self.random_state))
        return self

    def transform(self, X: Any) -> Array:
        """φ of each row, shape (n, n_components)."""
        check_is_fitted(self, "weights_")
        return self._map(validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False))

    def _draw(self, d: int, random: np.random.RandomState) -> Array:
        raise NotImplementedError

    def _map(self, X: Any) -> Array:
        raise NotImplementedError

    @property
    def _n_features_out(self) -> int:
        return self.n_components

    def __sklearn_tags__(self) -> Any:
        """Sparse rows are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class FourierFeatures(_Features):
    """φ(x) = √(2/D)·(cos(⟨ω_j, x⟩ + b_j), sin(⟨ω_j, x⟩ + b_j)), j = 1 … D/2, after Rahimi and Recht (2007).

    ⟨φ(x), φ(z)⟩ is unbiased for k(x, z); its standard error for independent frequencies is `fourier_standard_error`. The
    phases b_j, uniform on (0, 2π), cancel within a pair; for odd D the last cosine has no sine and needs its phase.

    Parameters
    ----------
    kernel : "gaussian", "laplace", or a Gaussian or Laplace kernel object
    sigma : the kernel's σ, as `surelearn.kernel.functions` defines it, where ``kernel`` is a name
    n_components : D
    orthogonal : frequencies orthogonal within each block of d, with lengths as if independent (Yu et al. 2016): each
        has the same distribution as before, their sum a lower variance (where d > 1)
    random_state : seed of the frequencies

    Attributes
    ----------
    weights_ : the frequencies ω_j, shape (d + 1, ⌈D/2⌉), the last row holds the phases

    Examples
    --------
    >>> rows = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> phi = FourierFeatures(sigma=2.0, n_components=20000, random_state=0).fit_transform(rows)
    >>> bool(abs(phi[0] @ phi[1] - np.exp(-0.5)) < 0.01)
    True
    """

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        *,
        sigma: float = 1.0,
        n_components: int = 500,
        orthogonal: bool = False,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.sigma = sigma
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.random_state = random_state

    def _draw(self, d: int, random: np.random.RandomState) -> Array:
        _check_count(self.n_components)
        count = -(-self.n_components // 2)
        frequencies = draw_frequencies(_stationary(self.kernel, self.sigma), d, count, self.orthogonal, random)
        return np.vstack([frequencies, random.uniform(0, 2 * np.pi, count)])

    def _map(self, X: Any) -> Array:
        angles = np.asarray(X @ self.weights_[:-1]) + self.weights_[-1]
        sines = np.sin(angles[:, : self.n_components // 2])
        return np.hstack([np.cos(angles), sines]) * math.sqrt(2 / self.n_components)


class ReluFeatures(_Features):
    """φ(x) = √(2/D)·max(0, ⟨w_j, (x, b)⟩), w_j standard normal, whose ⟨φ(x), φ(z)⟩ is unbiased for `arc_cosine`.

    Parameters
    ----------
    n_components : D
    bias : b, the constant that every row is padded with; 0: none
    random_state : seed of the weights

    Attributes
    ----------
    weights_ : w_j, shape (d + 1, D), the last row belongs to the bias

    Examples
    --------
    >>> ReluFeatures(n_components=3, random_state=0).fit_transform(np.ones((2, 4))).shape
    (2, 3)
    """

    def __init__(self, n_components: int = 500, *, bias: float = 1.0, random_state: Any = None) -> None:
        self.n_components = n_components
        self.bias = bias
        self.random_state = random_state

    def _draw(self, d: int, random: np.random.RandomState) -> Array:
        _check_count(self.n_components)
        if not isinstance(self.bias, Real) or not math.isfinite(self.bias):
            raise ValueError(f"bias must be a finite number, not {self.bias!r}")
        return random.standard_normal((d + 1, self.n_components))

    def _map(self, X: Any) -> Array:
        products = np.asarray(X @ self.weights_[:-1]) + self.bias * self.weights_[-1]
        return np.maximum(products, 0.0) * math.sqrt(2 / self.weights_.shape[1])


class RandomFeaturesRegressor(MultiOutputMixin, RegressorMixin, Learner):
    """Least squares on random features; among all best weights those of smallest norm.

    Up to as many features as rows this is ordinary least squares, with more the interpolant of smallest norm. Rows are read
    in pieces into one triangular factor: time O(n·D²), memory O(D²) beside the rows.

    Parameters
    ----------
    features : "gaussian" or "laplace" (`FourierFeatures`) or "relu" (`ReluFeatures`)
    sigma : the kernel's σ; unused by "relu"
    n_components : D, the number of features
    orthogonal : of Fourier features; unused by "relu"
    intercept : "free" (features and targets are centred) or "none"
    random_state : seed of the features

    Attributes
    ----------
    weights_ : the random weights, as the features have them
    coef_ : (D,) or (t, D)
    intercept_ : a number, or (t,)
    facts_ : among others ``rank``, ``condition_number``, ``weight_norm`` and ``training_risk``

    Examples
    --------
    >>> X, y = np.linspace(0, 1, 20)[:, None], np.sin(np.linspace(0, 6, 20))
    >>> model = RandomFeaturesRegressor(sigma=0.01, n_components=200, random_state=0).fit(X, y)
    >>> bool(np.abs(model.predict(X) - y).max() < 1e-8)
    True
    """

    takes_sparse = True

    def __init__(
        self,
        features: str = "gaussian",
        *,
        sigma: float = 1.0,
        n_components: int = 500,
        orthogonal: bool = False,
        intercept: str = "free",
        random_state: Any = None,
    ) -> None:
        self.features = features
        self.sigma = sigma
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.intercept = intercept
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows ``X`` (n, d), dense or sparse, and targets ``y`` (n,) or (n, t)."""
        _check_choice("features", self.features, FEATURES)
        _check_choice("intercept", self.intercept, _INTERCEPTS)
        X, y = validate_data(self, X, y, accept_sparse="csr", multi_output=True, y_numeric=True, dtype=np.float64)
        Y = np.asarray(y, dtype=float).reshape(len(y), -1)
        mapping = self._mapping()
        self.weights_ = mapping.weights_ = mapping._draw(X.shape[1], check_random_state(self.random_state))
        free, D = self.intercept == "free", self.n_components
        R = _triangle(mapping, X, Y, free)
        means, R = (R[0, 1:] / R[0, 0], R[1:, 1:]) if free else (np.zeros(R.shape[1]), R)
        coef, facts = minimum_norm(R[:, :D], R[:, D:], max(len(Y), D))
        constant = means[D:] - means[:D] @ coef
        self.coef_ = np.ascontiguousarray(coef.T if np.ndim(y) == 2 else coef[:, 0])
        self.intercept_ = constant if np.ndim(y) == 2 else float(constant[0])
        left = Y - self.predict(X).reshape(Y.shape)
        facts |= {"n": len(Y), "d": X.shape[1], "outputs": Y.shape[1], "components": D, "features": self.features}
        facts |= {"intercept": self.intercept, "training_risk": float((left**2).sum(1).mean())}
        self.facts_ = facts
        return self

    def predict(self, X: Any) -> Array:
        """Predictions, shape (n,) or (n, t)."""
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        mapping = self._mapping()
        mapping.weights_ = self.weights_
        parts = [mapping._map(X[rows]) @ self.coef_.T + self.intercept_ for rows in _pieces(X.shape[0], self.n_components)]
        return np.concatenate(parts)

    def _mapping(self) -> FourierFeatures | ReluFeatures:
        if self.features == "relu":
            return ReluFeatures(self.n_components)
        return FourierFeatures(self.features, sigma=self.sigma, n_components=self.n_components, orthogonal=self.orthogonal)

    def _claim(self, writer: Writer) -> None:
        reason = (
            "least squares without a penalty is not uniformly stable, and its weights have no norm bounded beforehand: fit"
            " surelearn.linear.Ridge with a regularization fixed beforehand to the transformed rows"
        )
        writer.absent("uniform stability", reason)
        writer.absent("risk", reason + ", or certify on rows kept apart")
        writer.absent(
            "distance to the kernel's interpolant",
            "random features replace the kernel by another of finite rank; how far predictions move is not bounded here",
        )


def draw_frequencies(k: Kernel, d: int, count: int, orthogonal: bool, random: np.random.RandomState) -> Array:
    """``count`` frequencies ω from the spectral distribution of a Gaussian or Laplace kernel on R^d; shape (d, count)."""
    normal = random.standard_normal((d, count))
    if orthogonal:
        directions = np.hstack([_haar(d, random) for _ in range(-(-count // d))])[:, :count]
        normal = directions * np.linalg.norm(normal, axis=0)
    if isinstance(k, Gaussian):
        return normal * math.sqrt(2 / k.sigma)
    return normal / (k.bandwidth * np.abs(random.standard_normal(count)))  # pyright: ignore[reportAttributeAccessIssue]


def fourier_standard_error(k: Kernel, X: Array, Z: Array, n_components: int) -> Array:
    """√((1 + k(2x, 2z) − 2k(x, z)²)/D) of ⟨φ(x), φ(z)⟩, D even, frequencies independent: cos² a = (1 + cos 2a)/2.

    Examples
    --------
    >>> fourier_standard_error(Gaussian(2.0), np.zeros((1, 1)), np.array([[0.0], [9.0]]), 100).round(3)
    array([[0. , 0.1]])
    """
    return np.sqrt(np.maximum(1 + k(2 * X, 2 * Z) - 2 * k(X, Z) ** 2, 0.0) / n_components)


def arc_cosine(X: Any, Z: Any, bias: float = 1.0) -> Array:
    """‖x̃‖‖z̃‖·(sin θ + (π − θ) cos θ)/π with x̃ = (x, b) and θ the angle of x̃ and z̃ (Cho and Saul 2009, order 1)."""
    lengths = np.sqrt(np.multiply.outer(squared_norms(X) + bias**2, squared_norms(Z) + bias**2))
    cosine = np.clip((inner_products(X, Z) + bias**2) / np.where(lengths > 0, lengths, 1.0), -1.0, 1.0)
    angle = np.arccos(cosine)
    return lengths * (np.sin(angle) + (np.pi - angle) * cosine) / np.pi


def minimum_norm(A: Array, B: Array, size: int) -> tuple[Array, dict[str, Any]]:
    """A⁺B, and its facts; singular values below ``size``·ε·σ_max count as 0."""
    U, s, Vt = svd(A, full_matrices=False, check_finite=False) if len(A) else (A, np.empty(0), A)
    kept = s > size * np.finfo(float).eps * (s[0] if s.size else 0.0)
    W = Vt[kept].T @ ((U[:, kept].T @ B) / s[kept, None])
    condition = float(s[0] / s[kept][-1]) if kept.any() else 1.0
    return W, {"rank": int(kept.sum()), "condition_number": condition, "weight_norm": float(np.linalg.norm(W))}


def _triangle(mapping: FourierFeatures | ReluFeatures, X: Any, Y: Array, ones: bool) -> Array:
    """R of a QR decomposition of (1, Φ, Y), piece by piece; without its first row and column it belongs to the centred."""
    R = np.empty((0, ones + mapping.n_components + Y.shape[1]))
    for rows in _pieces(len(Y), mapping.n_components):
        phi = mapping._map(X[rows])
        columns = [np.ones((len(phi), 1)), phi, Y[rows]] if ones else [phi, Y[rows]]
        R = np.asarray(np.linalg.qr(np.vstack([R, np.hstack(columns)]), mode="r"))
    return R


def _pieces(n: int, width: int) -> list[slice]:
    step = max(4 * width, _PIECE // width)
    return [slice(start, start + step) for start in range(0, n, step)]


def _haar(d: int, random: np.random.RandomState) -> Array:
    Q, R = np.linalg.qr(random.standard_normal((d, d)))
    return Q * np.sign(np.diag(R))


def _stationary(which: str | Kernel, sigma: float) -> Kernel:
    made = kernel(which, sigma=sigma) if which in ("gaussian", "laplace") or isinstance(which, Kernel) else None
    if not isinstance(made, (Gaussian, Laplace)):
        raise ValueError(f"kernel must be 'gaussian', 'laplace' or such a kernel object, not {which!r}")
    return made


def _check_count(n_components: Any) -> None:
    if not isinstance(n_components, Integral) or isinstance(n_components, bool) or n_components < 1:
        raise ValueError(f"n_components must be a whole number of at least 1, not {n_components!r}")


def _check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")
