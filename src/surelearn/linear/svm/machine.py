"""One support vector machine for two classes: solved, with the duality gap."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

from surelearn.kernel.functions import Gaussian, Kernel, Linear, Polynomial
from surelearn.linear.svm.dual import GramDual, RowsDual, gap, solve, solve_quietly
from surelearn.linear.svm.separation import Separation, pad, separate, separate_gram

MOST_ROWS_OF_A_MATRIX = 20_000
_MOST_FREE = 1500
_AFFORDABLE = 3e10  # multiplications, for polishing: some seconds


class InfeasibleError(ValueError):
    """No hyperplane separates the rows: ``witness`` holds rows and weights of a convex
    combination of y·x that is 0.
    """

    def __init__(self, message: str, witness: dict[str, np.ndarray]) -> None:
        super().__init__(message)
        self.witness = witness


@dataclass(frozen=True)
class MarginProblem:
    """What a machine is asked to solve.

    Attributes
    ----------
    X, signs : rows and their labels ±1
    upper : C of every row, or None for a hard margin
    kernel : the kernel
    intercept : "regularized" (the vectors are padded), "none", or "free" (LIBSVM's)
    shift : what added to the diagonal makes a precomputed kernel matrix that of a kernel: rounding
    """

    X: Any
    signs: np.ndarray
    upper: np.ndarray | None
    kernel: Kernel
    intercept: str
    shift: float = 0.0

    @property
    def padding(self) -> float:
        """What the intercept adds to every inner product."""
        return 1.0 if self.intercept == "regularized" else 0.0

    def squared(self) -> np.ndarray:
        """Squared norms of the vectors."""
        return self.kernel.diagonal(self.X) + self.padding + self.shift

    def matrix(self) -> np.ndarray:
        """k(x_i, x_j)."""
        if (n := self.X.shape[0]) > MOST_ROWS_OF_A_MATRIX:
            raise ValueError(
                f"X has {n:,} rows, too many for a kernel matrix ({MOST_ROWS_OF_A_MATRIX:,} at"
                " most): use kernel='linear', regularize_intercept=False with margin='soft', or fewer"
                " rows"
            )
        return self.kernel.gram(self.X)

    def gram(self) -> np.ndarray:
        """Q_ij = y_i y_j (k(x_i, x_j) + padding)."""
        Q = self.matrix()
        Q += self.padding
        Q *= self.signs
        Q *= self.signs[:, None]
        return Q


@dataclass(frozen=True)
class Machine:
    """A solution, with what is proved about it.

    Attributes
    ----------
    alpha : dual variables, shape (n,)
    bias : the intercept, within the padded vectors or free
    margins : y_i·f(x_i)
    gap : primal minus dual objective as computed; what it proves, rounding included, is in
        `optimality`
    norm : ‖w‖, of the padded vectors where the intercept is regularized
    passes : over the rows; 0 where another algorithm was used
    """

    alpha: np.ndarray
    bias: float
    margins: np.ndarray
    gap: float
    norm: float
    passes: int


def train(
    problem: MarginProblem, *, tol: float, passes: int, random: np.random.RandomState
) -> Machine:
    """Solve with the algorithm that fits: nonnegative least squares, LIBSVM, or dual coordinate
    ascent.
    """
    if problem.upper is None:
        return _hard(problem)
    if problem.intercept == "free":
        return _libsvm(problem, problem.upper, tol)
    if isinstance(problem.kernel, Linear):
        dual = RowsDual(_signed(problem), problem.upper)
    else:
        dual = GramDual(problem.gram(), problem.upper)
    done = solve(dual, tol=0.9 * tol, passes=passes, random=random)
    margins = dual.margins()
    bias = problem.padding * float(dual.alpha @ problem.signs)
    return _machine(dual.alpha, bias, margins, problem.upper, done)


def kept_machine(problem: MarginProblem, alpha: np.ndarray, bias: float) -> Machine:
    """The machine of the α and b that a model keeps, measured again."""
    infinite = np.full(problem.signs.size, np.inf)
    margins = problem.signs * (_scores(problem, alpha) + bias)
    return _machine(alpha, bias, margins, infinite if problem.upper is None else problem.upper)


def _machine(
    alpha: np.ndarray, bias: float, margins: np.ndarray, upper: np.ndarray, passes: int = 0
) -> Machine:
    # ‖w‖² = Σ α_i y_i f(x_i): a free bias drops out, as Σ α_i y_i = 0
    norm = math.sqrt(max(0.0, float(alpha @ margins)))
    found = gap(alpha, np.where(np.isfinite(upper), upper, alpha), margins)
    return Machine(alpha, bias, margins, found, norm, passes)


def _signed(problem: MarginProblem) -> Any:
    """y_i·x_i, padded where the intercept is regularized."""
    X = pad(problem.X) if problem.padding else problem.X
    if sparse.issparse(X):
        return sparse.csr_array(
            (X.data * np.repeat(problem.signs, np.diff(X.indptr)), X.indices, X.indptr),
            shape=X.shape,
        )
    return np.ascontiguousarray(X * problem.signs[:, None])


def separation(problem: MarginProblem) -> Separation:
    """Whether the rows can be separated; a free intercept separates what a padded one does."""
    padding = 0.0 if problem.intercept == "none" else 1.0
    if isinstance(problem.kernel, Linear):
        return separate(pad(problem.X) if padding else problem.X, problem.signs)
    return separate_gram(problem.matrix() + padding, problem.signs)


def _hard(problem: MarginProblem) -> Machine:
    """The largest margin: the nearest point of the convex hull to 0, scaled so that the
    smallest margin is 1.
    """
    found = separation(problem)
    if not found.separable:
        rows, weights = found.witness
        raise InfeasibleError(
            f"margin='hard' is infeasible: {found.words()}; use margin='soft', or a richer kernel",
            {"rows": rows, "weights": weights},
        )
    infinite = np.full(problem.signs.size, np.inf)
    if problem.intercept == "free":
        return _libsvm(problem, infinite, 1e-6, largest=1e3 / found.margin**2)
    alpha = found.combination / (found.margin * found.distance)
    if isinstance(problem.kernel, Linear):
        Z = _signed(problem)
        margins = np.asarray(Z @ (Z.T @ alpha))
    else:
        margins = problem.gram() @ alpha
    alpha, margins = alpha / margins.min(), margins / margins.min()
    return _machine(alpha, problem.padding * float(alpha @ problem.signs), margins, infinite)


def _libsvm(
    problem: MarginProblem, upper: np.ndarray, tol: float, largest: float | None = None
) -> Machine:
    """LIBSVM's solution of the form with a free intercept; ``largest`` stands for the C of a
    hard margin.
    """
    from sklearn.svm import SVC

    weights = None if largest is not None else upper
    machine = SVC(
        C=largest or 1.0, tol=max(tol, 1e-6), cache_size=500, **_libsvm_kernel(problem.kernel)
    )
    # back from LIBSVM's signed coefficients of its support vectors to α of all rows
    given = problem.matrix() if machine.kernel == "precomputed" else problem.X
    machine.fit(given, problem.signs, sample_weight=weights)
    coefficients = machine.dual_coef_
    coefficients = coefficients.toarray() if sparse.issparse(coefficients) else coefficients
    alpha = np.zeros(problem.signs.size)
    alpha[machine.support_] = coefficients.ravel() * problem.signs[machine.support_]
    alpha = np.maximum(alpha, 0.0) if largest is not None else np.clip(alpha, 0.0, upper)
    found = []
    with suppress(linalg.LinAlgError):
        found.append(
            _finish(problem, alpha, float(machine.intercept_[0]), _scores(problem, alpha), upper)
        )
        if largest is None and found[0].gap <= 0.9 * tol * upper.sum():
            return found[0]
    with suppress(linalg.LinAlgError):
        found.append(_finish(problem, *_polish(problem, alpha, upper), upper))
    if not found:
        raise ValueError(
            "LIBSVM found no hyperplane that separates the rows: use regularize_intercept=True"
        )
    return min(found, key=lambda made: made.gap)


def _scores(problem: MarginProblem, alpha: np.ndarray) -> np.ndarray:
    """f(x_i) without the intercept."""
    used = np.flatnonzero(alpha)
    coefficients = (alpha * problem.signs)[used]
    if isinstance(problem.kernel, Linear):
        return np.asarray(problem.X @ np.asarray(problem.X[used].T @ coefficients))
    return problem.kernel.sums(problem.X, problem.kernel.anchors(problem.X, used), coefficients)


def _finish(
    problem: MarginProblem, alpha: np.ndarray, bias: float, scores: np.ndarray, upper: np.ndarray
) -> Machine:
    """The machine of a dual solution; for a hard margin centered, and scaled so that the
    smallest margin is exactly 1.
    """
    if problem.upper is None:
        low, high = scores[problem.signs < 0].max(), scores[problem.signs > 0].min()
        bias, scale = -(low + high) / 2, (high - low) / 2
        if not scale > 0:
            raise linalg.LinAlgError("the solution does not separate the rows")
        alpha, scores, bias = alpha / scale, scores / scale, float(bias / scale)
    return _machine(alpha, bias, problem.signs * (scores + bias), upper)


def _polish(
    problem: MarginProblem, alpha: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray]:
    """LIBSVM's solution made exact: the equations y_i f(x_i) = 1 of the free α_i and Σ α_i y_i = 0,
    within the box.

    Rows that violate their margin join the free ones. LIBSVM keeps kernel values in single
    precision and cannot do this. Returns α, b and f(x_i) − b.
    """
    alpha, bias, work = alpha.copy(), 0.0, 0.0
    free = (alpha > 0) & (alpha < upper)
    while work <= _AFFORDABLE:
        rows, top = np.flatnonzero(free), np.flatnonzero((alpha > 0) & ~free)
        work += rows.size**3 + 1e6
        if not 0 < rows.size <= _MOST_FREE:
            raise linalg.LinAlgError("too many free rows, or none")
        signs, X, k = problem.signs[rows], problem.X[rows], problem.kernel
        Q = k(X, k.anchors(problem.X, rows)) * np.outer(signs, signs)
        fixed = np.zeros(rows.size)
        if top.size:
            fixed = k.sums(X, k.anchors(problem.X, top), (alpha * problem.signs)[top])
        ridge = 1e-14 * float(np.trace(Q)) * np.eye(rows.size)
        system = np.block([[Q + ridge, signs[:, None]], [signs[None], np.zeros((1, 1))]])
        right = np.append(1.0 - signs * fixed, -float((alpha * problem.signs)[top].sum()))
        solution = solve_quietly(system, right, "sym")
        step, bias = solution[:-1] - alpha[rows], float(solution[-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(step > 0, (upper[rows] - alpha[rows]) / step, -alpha[rows] / step)
        room[step == 0] = np.inf
        length = min(1.0, float(room.min()))
        alpha[rows] = np.clip(alpha[rows] + length * step, 0.0, upper[rows])
        if length < 1.0:
            blocked = rows[room <= length]
            alpha[blocked] = np.where(step[room <= length] > 0, upper[blocked], 0.0)
            free[blocked] = False
            continue
        scores = _scores(problem, alpha)
        violated = (problem.signs * (scores + bias) < 1.0 - 1e-9) & (alpha == 0)
        if not violated.any():
            return alpha, bias, scores
        free |= violated
    return alpha, bias, _scores(problem, alpha)


def _libsvm_kernel(kernel: Kernel) -> dict[str, Any]:
    """The kernel in LIBSVM's parameters; others as the matrix of their values."""
    if isinstance(kernel, Linear):
        return {"kernel": "linear"}
    if isinstance(kernel, Polynomial):
        return {"kernel": "poly", "degree": int(kernel.degree), "gamma": 1.0, "coef0": 1.0}
    if isinstance(kernel, Gaussian):
        return {"kernel": "rbf", "gamma": 0.5 / kernel.bandwidth**2}
    return {"kernel": "precomputed"}
