"""Random features: maps φ with E⟨φ(x), φ(z)⟩ = k(x, z), and minimum-norm least squares on them, in
time linear in n.

Bochner's theorem writes k(x, z) = E cos⟨ω, x − z⟩: for our Gaussian exp(−‖x − z‖²/(2h²)), ω has the
distribution N(0, I/h²); for our Laplace exp(−‖x − z‖/h), that of g/(h|u|) with g and u standard
normal (multivariate Cauchy). A frequency gives a cosine and a sine of the same angle, so that
‖φ(x)‖ = 1 exactly, as √k(x, x), for an even number of features.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.linalg import svd
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    MultiOutputMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from surelearn import stated
from surelearn.base import Estimator, Learner
from surelearn.earlier import Names, TwoWay
from surelearn.kernel.choosing import default_bandwidth, with_length
from surelearn.kernel.composites import RowMatrix, is_sparse
from surelearn.kernel.functions import (
    Gaussian,
    Kernel,
    Laplace,
    inner_products,
    kernel,
    squared_norms,
)
from surelearn.optim.spread import column_spreads, divided
from surelearn.profiles import bandwidth_of_sigma
from surelearn.record import Record, Within, Writer
from surelearn.subject import Parts
from surelearn.types import Array, RowsLike

FEATURES = ("gaussian", "laplace", "relu")
# λ to choose from, fixed before any rows: features have length 1
_PENALTIES = 10.0 ** np.linspace(-8.0, 0.0, 17)
_LOOKED_AT = 2000  # rows whose distances are looked at
_PIECE = 2**22  # numbers in a piece of the features: 32 MB


class _Features(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """What random features share: ``fit`` draws ``weights_`` (d, ·), ``transform`` maps rows."""

    n_components: int
    random_state: int | np.random.RandomState | None
    weights_: Array

    def fit(self, X: RowsLike, y: npt.ArrayLike | None = None) -> Self:  # noqa: ARG002 - scikit-learn's signature
        """Draw the weights; of ``X`` only the number of columns matters."""
        rows = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        self.weights_ = self._draw(rows.shape[1], check_random_state(self.random_state))
        return self

    def transform(self, X: RowsLike) -> Array:
        """φ of each row, shape (n, n_components)."""
        check_is_fitted(self, "weights_")
        return self._map(validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False))

    def _draw(self, d: int, random: np.random.RandomState) -> Array:
        raise NotImplementedError

    def _map(self, X: RowMatrix) -> Array:
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
    """φ(x) = √(2/D)·(cos(⟨ω_j, x⟩ + b_j), sin(⟨ω_j, x⟩ + b_j)), j = 1 … D/2, after Rahimi and Recht
    (2007).

    ⟨φ(x), φ(z)⟩ is unbiased for k(x, z); its standard error for independent frequencies is
    `fourier_standard_error`. The phases b_j, uniform on (0, 2π), cancel within a pair; for odd D
    the last cosine has no sine and needs its phase.

    Parameters
    ----------
    kernel : "gaussian", "laplace", or a Gaussian or Laplace kernel object
    bandwidth : the kernel's length h, as `surelearn.kernel.functions` defines it, where ``kernel``
        is a name
    n_components : D
    orthogonal : frequencies orthogonal within each block of d, with lengths as if independent (Yu
        et al. 2016): each has the same distribution as before, their sum a lower variance (where d
        > 1)
    random_state : seed of the frequencies

    Attributes
    ----------
    weights_ : the frequencies ω_j, shape (d + 1, ⌈D/2⌉), the last row holds the phases

    Examples
    --------
    >>> rows = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> phi = FourierFeatures(bandwidth=1.0, n_components=20000, random_state=0).fit_transform(rows)
    >>> bool(abs(phi[0] @ phi[1] - np.exp(-0.5)) < 0.01)
    True
    """

    saved_as = "fourier-features/1"
    earlier = {"sigma": bandwidth_of_sigma}  # noqa: RUF012 - read only

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        *,
        bandwidth: float = 1.0,
        n_components: int = 500,
        orthogonal: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.random_state = random_state

    def _draw(self, d: int, random: np.random.RandomState) -> Array:
        _check_count(self.n_components)
        count = -(-self.n_components // 2)
        frequencies = draw_frequencies(
            _stationary(self.kernel, self.bandwidth), d, count, self.orthogonal, random
        )
        return np.vstack([frequencies, random.uniform(0, 2 * np.pi, count)])

    def _map(self, X: RowMatrix) -> Array:
        angles = np.asarray(X @ self.weights_[:-1]) + self.weights_[-1]
        sines = np.sin(angles[:, : self.n_components // 2])
        return np.hstack([np.cos(angles), sines]) * math.sqrt(2 / self.n_components)


class ReluFeatures(_Features):
    """φ(x) = √(2/D)·max(0, ⟨w_j, (x, b)⟩), w_j standard normal, whose ⟨φ(x), φ(z)⟩ is unbiased for
    `arc_cosine`.

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

    saved_as = "relu-features/1"

    def __init__(
        self,
        n_components: int = 500,
        *,
        bias: float = 1.0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.bias = bias
        self.random_state = random_state

    def _draw(self, d: int, random: np.random.RandomState) -> Array:
        _check_count(self.n_components)
        if not isinstance(self.bias, Real) or not math.isfinite(self.bias):
            raise ValueError(f"bias must be a finite number, not {self.bias!r}")
        return random.standard_normal((d + 1, self.n_components))

    def _map(self, X: RowMatrix) -> Array:
        products = np.asarray(X @ self.weights_[:-1]) + self.bias * self.weights_[-1]
        return np.maximum(products, 0.0) * math.sqrt(2 / self.weights_.shape[1])


@dataclass(frozen=True, kw_only=True)
class RandomFeaturesRecord(Record):
    """A fit of (1/n)·Σ‖⟨w, φ(x_i)⟩ + b − y_i‖² + λ‖w‖², φ random features.

    Attributes
    ----------
    regularization, chosen_by : λ, and "gcv" where it was chosen on the rows
    relative : whether the features' scale was taken from the rows
    outputs : targets of a row
    components, features, intercept : D, the kind of features, and "free" or "none"
    rank, condition_number : of the features of the training rows, without singular values that are
        rounding
    weight_norm, training_risk : ‖w‖ and the mean squared error
    """

    key: ClassVar[str] = "random-features-regressor/1"

    outputs: int
    components: int
    features: str
    intercept: str
    rank: int
    condition_number: float
    weight_norm: float
    training_risk: float
    regularization: float = 0.0
    chosen_by: str = ""
    relative: bool = False

    def write(self, writer: Writer) -> None:
        """Nothing is claimed, and why."""
        reason = (
            "least squares without a penalty is not uniformly stable, and its weights have no norm"
            " bounded beforehand: fit surelearn.linear.Ridge with a regularization fixed beforehand"
            " to the transformed rows"
        )
        if self.chosen_by or self.relative:
            reason = (
                "the features' scale or the penalty was taken from the rows: fit"
                " surelearn.linear.Ridge with x_bound=1 and y_bound= to rows transformed by"
                " FourierFeatures with a stated bandwidth="
            )
        writer.lacks("uniform_stability", reason)
        writer.lacks("risk", reason + ", or certify on rows kept apart")
        writer.lacks(
            "distance_to_the_kernels_interpolant",
            "random features replace the kernel by another of finite rank; how far predictions move"
            " is not bounded here",
            label="distance to the kernel's interpolant",
        )


def _read_intercept(value: Any, given: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG001
    """fit_intercept= says the same, True for free and False for none"""
    _check_choice("intercept", value, ("free", "none"))
    return {"fit_intercept": value == "free"}


class RandomFeaturesRegressor(MultiOutputMixin, RegressorMixin, Learner):
    """Ridge regression on random features: (1/n)·Σ‖⟨w, φ(x_i)⟩ + b − y_i‖² + λ‖w‖².

    With λ = 0 the best weights of smallest norm: up to as many features as rows ordinary least
    squares, with more the interpolant of smallest norm. Rows are read in pieces into one triangular
    factor: time O(n·D²), memory O(D²) beside the rows.

    Parameters
    ----------
    features : "gaussian" or "laplace" (`FourierFeatures`) or "relu" (`ReluFeatures`)
    bandwidth : the kernel's length h; unused by "relu". None divides columns by their spread on the
        rows (`column_spreads`), and takes a multiple of the rows' median distance
        (`default_bandwidth`)
    n_components : D, the number of features
    regularization : λ ≥ 0 beside the *mean* squared loss; 0 is least squares. None is 0 where h is
        stated, and else the one of 17 from 10⁻⁸ to 1 with the least generalized cross-validation
    orthogonal : of Fourier features; unused by "relu"
    fit_intercept : whether to add b: features and targets are centered
    random_state : seed of the features

    Attributes
    ----------
    weights_ : the random weights, as the features have them
    coef_ : (D,) or (t, D)
    intercept_ : a number, or (t,)
    regularization_ : the λ used
    facts_ : among others ``rank``, ``condition_number``, ``weight_norm`` and ``training_risk``

    Examples
    --------
    >>> X, y = np.linspace(0, 1, 20)[:, None], np.sin(np.linspace(0, 6, 20))
    >>> model = RandomFeaturesRegressor(bandwidth=0.07, n_components=200, random_state=0).fit(X, y)
    >>> bool(np.abs(model.predict(X) - y).max() < 1e-8)
    True
    """

    takes_sparse = True
    saved_as = "random-features-regressor/1"
    earlier: ClassVar[Names] = {
        "sigma": bandwidth_of_sigma,
        "intercept": TwoWay(
            _read_intercept,
            ("fit_intercept",),
            lambda state: "free" if state["fit_intercept"] else "none",
        ),
    }
    Record = RandomFeaturesRecord
    regularization: float | None = 0.0  # of models of version 0.2

    def __init__(
        self,
        features: str = "gaussian",
        *,
        bandwidth: float | None = None,
        n_components: int = 500,
        regularization: float | None = None,
        orthogonal: bool = False,
        fit_intercept: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.features = features
        self.bandwidth = bandwidth
        self.n_components = n_components
        self.regularization = regularization
        self.orthogonal = orthogonal
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def fit(self, X: RowsLike, y: npt.ArrayLike) -> Self:
        """Fit to rows ``X`` (n, d), dense or sparse, and targets ``y`` (n,) or (n, t)."""
        _check_choice("features", self.features, FEATURES)
        if not isinstance(self.fit_intercept, (bool, np.bool_)):
            raise ValueError(f"fit_intercept must be True or False, not {self.fit_intercept!r}")
        if self.regularization is not None:
            _check_penalty(self.regularization)
        X, Y, single = self._read(X, y, reset=True)
        self.weights_ = self._draw(X, check_random_state(self.random_state))
        coef, constant, found = self._solve(X, Y)
        self.regularization_ = found["regularization"]
        self.coef_ = np.ascontiguousarray(coef[:, 0] if single else coef.T)
        self.intercept_ = float(constant[0]) if single else constant
        measured = self._measured(X, Y, found)
        self.facts_ = {name: getattr(value, "value", value) for name, value in measured.items()}
        return self

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """What is left out taken from the rows; fewer features than rows, and more."""
        yield cls(n_components=20, random_state=0)
        yield cls(bandwidth=0.7, n_components=6, random_state=0)
        yield cls("laplace", bandwidth=0.1, n_components=200, fit_intercept=False, random_state=0)
        yield cls(bandwidth=0.7, n_components=50, regularization=0.01, random_state=0)

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """Both kinds of features, with an intercept and without."""
        yield cls(bandwidth=5.0, n_components=51, random_state=0)
        yield cls("relu", n_components=31, fit_intercept=False, random_state=0)

    def measure_again(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> dict[str, Any]:
        """The record's fields that the fitted model and the rows it was fitted on tell,
        measured again.
        """
        if sample_weight is not None:
            raise ValueError("this learner takes no sample_weight")
        check_is_fitted(self, "coef_")
        X, Y, _ = self._read(X, y, reset=False)
        return self._measured(X, Y, self._solve(X, Y)[2])

    def _read(
        self, X: RowsLike, y: npt.ArrayLike | None, *, reset: bool
    ) -> tuple[RowMatrix, Array, bool]:
        """Checked rows and targets (n, t), and whether there is one target."""
        rows, targets = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            multi_output=True,
            y_numeric=True,
            dtype=np.float64,
            reset=reset,
        )
        Y = np.asarray(targets, dtype=float).reshape(len(targets), -1)
        return rows, Y, np.ndim(targets) == 1

    def _solve(self, X: RowMatrix, Y: Array) -> tuple[Array, Array, dict[str, Any]]:
        """The weights of smallest norm (D, t), the intercepts (t,), and the facts of the
        features' matrix.
        """
        mapping = self._mapping()
        mapping.weights_ = self.weights_
        free, D = bool(self.fit_intercept), self.n_components
        R = _triangle(mapping, X, Y, free)
        means, R = (R[0, 1:] / R[0, 0], R[1:, 1:]) if free else (np.zeros(R.shape[1]), R)
        stated = (
            0.0
            if self.regularization is None and self.bandwidth is not None
            else self.regularization
        )
        coef, facts = penalized(R[:, :D], R[:, D:], len(Y), stated, free)
        return coef, means[D:] - means[:D] @ coef, facts

    def _draw(self, X: RowMatrix, random: np.random.RandomState) -> Array:
        """The features' random weights; of columns in units of their spread where no bandwidth was
        stated.
        """
        if self.bandwidth is not None:
            return self._mapping()._draw(X.shape[1], random)
        spreads, mapping = column_spreads(X), self._mapping()
        if isinstance(mapping, FourierFeatures):
            looked = X[np.sort(random.permutation(X.shape[0])[:_LOOKED_AT])]
            looked = divided(looked, spreads)
            made = kernel(self.features)
            dense = looked.toarray() if is_sparse(looked) else looked
            mapping.kernel = with_length(
                made, default_bandwidth(made, dense, random, interpolate=False) or 1.0
            )
        drawn = mapping._draw(X.shape[1], random)
        return np.vstack([drawn[:-1] / spreads[:, None], drawn[-1:]])

    def _measured(self, X: RowMatrix, Y: Array, found: dict[str, Any]) -> dict[str, Any]:
        risk = float(((Y - self.predict(X).reshape(Y.shape)) ** 2).sum(1).mean())
        condition = found["condition_number"]
        return {
            "n": len(Y),
            "d": X.shape[1],
            "outputs": Y.shape[1],
            "components": self.n_components,
            "features": self.features,
            "intercept": "free" if self.fit_intercept else "none",
            "rank": found["rank"],
            "condition_number": Within(
                condition, condition * (1e-6 + float(np.finfo(float).eps) * condition)
            ),
            "weight_norm": float(np.linalg.norm(self.coef_)),
            "regularization": found["regularization"],
            "chosen_by": "gcv" if self.regularization is None and self.bandwidth is None else "",
            "relative": self.bandwidth is None,
            "training_risk": Within(risk, 1e-6 * risk + 1e-12 * float((Y**2).sum(1).mean())),
        }

    def predict(self, X: RowsLike) -> Array:
        """Predictions, shape (n,) or (n, t)."""
        check_is_fitted(self, "coef_")
        checked = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        mapping = self._mapping()
        mapping.weights_ = self.weights_
        parts = [
            mapping._map(checked[rows]) @ self.coef_.T + self.intercept_
            for rows in _pieces(checked.shape[0], self.n_components)
        ]
        return np.concatenate(parts)

    def _mapping(self) -> FourierFeatures | ReluFeatures:
        if self.features == "relu":
            return ReluFeatures(self.n_components)
        bandwidth = 1.0 if self.bandwidth is None else self.bandwidth
        return FourierFeatures(
            self.features,
            bandwidth=bandwidth,
            n_components=self.n_components,
            orthogonal=self.orthogonal,
        )

    def _describe(self) -> Parts:
        return Parts()


def draw_frequencies(
    k: Kernel, d: int, count: int, orthogonal: bool, random: np.random.RandomState
) -> Array:
    """``count`` frequencies ω from the spectral distribution of a Gaussian or Laplace kernel on
    R^d; shape (d, count).
    """
    normal = random.standard_normal((d, count))
    if orthogonal:
        directions = np.hstack([_haar(d, random) for _ in range(-(-count // d))])[:, :count]
        normal = directions * np.linalg.norm(normal, axis=0)
    if isinstance(k, Gaussian):
        return normal / k.bandwidth
    return normal / (k.bandwidth * np.abs(random.standard_normal(count)))  # pyright: ignore[reportAttributeAccessIssue]


def fourier_standard_error(k: Kernel, X: Array, Z: Array, n_components: int) -> Array:
    """√((1 + k(2x, 2z) − 2k(x, z)²)/D) of ⟨φ(x), φ(z)⟩, D even, frequencies independent: cos² a =
    (1 + cos 2a)/2.

    Examples
    --------
    >>> fourier_standard_error(Gaussian(), np.zeros((1, 1)), np.array([[0.0], [9.0]]), 100).round(3)
    array([[0. , 0.1]])
    """
    return np.sqrt(np.maximum(1 + k(2 * X, 2 * Z) - 2 * k(X, Z) ** 2, 0.0) / n_components)


def arc_cosine(X: RowMatrix, Z: RowMatrix, bias: float = 1.0) -> Array:
    """‖x̃‖‖z̃‖·(sin θ + (π − θ) cos θ)/π with x̃ = (x, b) and θ the angle of x̃ and z̃ (Cho and
    Saul 2009, order 1).
    """
    lengths = np.sqrt(np.multiply.outer(squared_norms(X) + bias**2, squared_norms(Z) + bias**2))
    cosine = np.clip(
        (inner_products(X, Z) + bias**2) / np.where(lengths > 0, lengths, 1.0), -1.0, 1.0
    )
    angle = np.arccos(cosine)
    return lengths * (np.sin(angle) + (np.pi - angle) * cosine) / np.pi


def minimum_norm(A: Array, B: Array, size: int) -> tuple[Array, dict[str, Any]]:
    """A⁺B, and its facts; singular values below ``size``·ε·σ_max count as 0."""
    U, s, Vt = svd(A, full_matrices=False, check_finite=False) if len(A) else (A, np.empty(0), A)
    kept = s > size * np.finfo(float).eps * (s[0] if s.size else 0.0)
    W = Vt[kept].T @ ((U[:, kept].T @ B) / s[kept, None])
    condition = float(s[0] / s[kept][-1]) if kept.any() else 1.0
    return W, {
        "rank": int(kept.sum()),
        "condition_number": condition,
        "weight_norm": float(np.linalg.norm(W)),
    }


def penalized(
    A: Array, B: Array, n: int, regularization: float | None, free: bool
) -> tuple[Array, dict[str, Any]]:
    """Weights that minimize (‖Aw − B‖² + nλ‖w‖²)/n for a triangular factor of n rows, and their
    facts.

    λ = None is the one of a grid with the least generalized cross-validation, (‖Aw − B‖²/n)/(1 −
    trace/n)², the trace that of the map from targets to predictions, an intercept included. λ = 0
    is `minimum_norm`.
    """
    if regularization == 0 or not len(A):
        coef, facts = minimum_norm(A, B, max(n, A.shape[1]))
        return coef, facts | {"regularization": regularization or 0.0}
    U, s, Vt = svd(A, full_matrices=False, check_finite=False)
    T = U.T @ B
    outside = float(((B - U @ T) ** 2).sum())
    lam = regularization
    if lam is None:
        scores = []
        for one in _PENALTIES:
            kept = s**2 / (s**2 + n * one)
            left = max(1.0 - (float(kept.sum()) + free) / n, 0.0)
            error = outside + float((((1 - kept)[:, None] * T) ** 2).sum())
            scores.append(error / left**2 if left > 0 else math.inf)
        lam = float(_PENALTIES[int(np.argmin(scores))])
    W = Vt.T @ ((s / (s**2 + n * lam))[:, None] * T)
    low, high = math.sqrt(float(s[-1]) ** 2 + n * lam), math.sqrt(float(s[0]) ** 2 + n * lam)
    rank = int((s > max(n, A.shape[1]) * np.finfo(float).eps * s[0]).sum())
    return W, {
        "rank": rank,
        "condition_number": high / low,
        "weight_norm": float(np.linalg.norm(W)),
        "regularization": lam,
    }


def _triangle(mapping: FourierFeatures | ReluFeatures, X: RowMatrix, Y: Array, ones: bool) -> Array:
    """R of a QR decomposition of (1, Φ, Y), piece by piece; without its first row and column it
    belongs to the centered.
    """
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


def _stationary(which: str | Kernel, bandwidth: float) -> Kernel:
    made = (
        kernel(which, bandwidth=bandwidth)
        if which in ("gaussian", "laplace") or isinstance(which, Kernel)
        else None
    )
    if not isinstance(made, (Gaussian, Laplace)):
        raise ValueError(
            f"kernel must be 'gaussian', 'laplace' or such a kernel object, not {which!r}"
        )
    return made


def _check_penalty(regularization: float) -> None:
    if not isinstance(regularization, Real) or not 0 <= float(regularization) < math.inf:
        raise ValueError(
            f"regularization must be a finite number of at least 0 or None, not {regularization!r}"
        )


def _check_count(n_components: int) -> None:
    stated.whole("n_components", n_components)


def _check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")
