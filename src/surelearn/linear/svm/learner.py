"""Support vector machines (course, Sections 5 to 7): hard and soft margin, linear and with a
kernel.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from surelearn import stated
from surelearn.base import Learner
from surelearn.earlier import Names
from surelearn.kernel.form import sum_form
from surelearn.kernel.functions import (
    Kernel,
    Linear,
    Polynomial,
    Precomputed,
    kernel,
    squared_norms,
)
from surelearn.kernel.precomputed import NOT_KERNEL_MATRICES, check_matrix, validate
from surelearn.lacking import Lacking
from surelearn.linear.intercept import check_intercept, earlier_intercept, intercept_of
from surelearn.linear.svm.machine import Machine, MarginProblem, kept_machine, train
from surelearn.linear.svm.optimality import Optimality, optimality
from surelearn.linear.svm.record import MARGIN, SvmRecord
from surelearn.linear.svm.votes import class_pairs, votes
from surelearn.losses import HINGE
from surelearn.profiles import bandwidth_of_sigma
from surelearn.record import Within
from surelearn.subject import Closed, Objective, Parts, linear_form
from surelearn.subject.forms import PRECOMPUTED
from surelearn.subject.machines import DualMachine, DualSolution, Machines, largest
from surelearn.subject.registry import NO_DUAL, dense
from surelearn.types import RandomState, RowsLike


@dataclass(frozen=True)
class _Trained:
    """One machine of a model: its rows, their signs, the solution, w without a kernel, and how
    near the optimum it is.
    """

    rows: np.ndarray
    signs: np.ndarray
    machine: Machine
    weights: np.ndarray | None
    proof: Optimality | None

    @property
    def bias_error(self) -> float:
        """How far a free b can be from an exact one."""
        return math.inf if self.proof is None else self.proof.bias_error

    def compressed(self, squared: np.ndarray) -> np.ndarray:
        """Rows that determine the exact solution, or may."""
        if self.proof is None:
            return self.rows
        return self.rows[self.proof.compressed(squared[self.rows], self.machine.alpha)]


class SupportVectorMachine(ClassifierMixin, Learner):
    """Minimizes ½‖w‖² + C·Σ_i max(0, 1 − y_i f(x_i)), or ½‖w‖² under y_i f(x_i) ≥ 1; f(x) = ⟨w,
    φ(x)⟩ + b.

    Several classes: one machine a pair, and votes.

    Parameters
    ----------
    margin : "soft", or "hard" (refused with a witness where the rows cannot be separated)
    C : the price of the sum of hinge losses; in the form (1/n)·Σ hinge + λ‖w‖² it is λ = 1/(2Cn)
    kernel, degree, bandwidth : a name or object of `surelearn.kernel.functions`, sums and products of
        such, and parameters of a name (the bandwidth is a length); "precomputed": rows are rows of a
        kernel matrix, as `SVC` of scikit-learn has them
    fit_intercept : whether to add b
    regularize_intercept : whether b counts into ‖w‖: vectors are padded with a 1. LIBSVM's does
        not, and then neither stability nor margin bounds are known
    x_bound : a bound on ‖x‖ that holds for every row, seen or not; stated by you, for the bounds
        that need it
    tol : the duality gap, divided by nC, at which to stop
    max_iter : the most passes over the rows
    delta : failure probability of each claim

    Attributes
    ----------
    support_ : rows with α > 0 in some machine
    dual_coef_ : α_i y_i, (machines, support vectors)
    support_vectors_ : those rows, dense; with a kernel (None if it is precomputed)
    coef_ : w, (machines, d); without
    intercept_ : b, (machines,)
    n_iter_ : the most passes that a machine made

    Examples
    --------
    >>> X, y = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([0, 1, 1, 1])
    >>> model = SupportVectorMachine(margin="hard", regularize_intercept=False).fit(X, y)  # OR: 2x₁ + 2x₂ − 1
    >>> model.coef_.round(6), model.intercept_.round(6), round(model.facts_["margin"], 4)
    (array([[2., 2.]]), array([-1.]), 0.3536)
    >>> SupportVectorMachine(kernel="polynomial", degree=2, margin="hard").fit(X, [0, 1, 1, 0]).predict(X)  # XOR
    array([0, 1, 1, 0])
    """

    Record = SvmRecord
    takes_sparse = True
    saved_as = "support-vector-machine/1"
    earlier: ClassVar[Names] = {
        "sigma": bandwidth_of_sigma,
        "passes": "max_iter",
        "intercept": earlier_intercept(True),
    }

    def __init__(
        self,
        *,
        margin: str = "soft",
        C: float = 1.0,
        kernel: str | Kernel = "linear",
        degree: int = 3,
        bandwidth: float = 1.0,
        fit_intercept: bool = True,
        regularize_intercept: bool = True,
        x_bound: float | None = None,
        tol: float = 1e-8,
        max_iter: int = 1000,
        delta: float = 0.05,
        random_state: RandomState = None,
    ) -> None:
        self.margin = margin
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.bandwidth = bandwidth
        self.fit_intercept = fit_intercept
        self.regularize_intercept = regularize_intercept
        self.x_bound = x_bound
        self.tol = tol
        self.max_iter = max_iter
        self.delta = delta
        self.random_state = random_state

    def fit(
        self, X: RowsLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> SupportVectorMachine:
        """Solve, and record the duality gap; returns self. ``sample_weight`` multiplies C row
        by row.
        """
        self._check_parameters()
        X, y = validate(self, X, y)
        check_classification_targets(y)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self.classes_ = np.unique(np.asarray(y)[weights > 0])
        if self.classes_.size < 2:
            raise ValueError(
                "y has only one class (among rows with a positive weight): two classes at least are"
                " needed"
            )
        k, random = self._kernel(), check_random_state(self.random_state)
        X, problems = self._problems(X, y, weights)
        machines = [self._train(rows, problem, random) for rows, problem in problems]
        self._keep(X, k, machines)
        self.facts_ = self._facts(X, k, machines, weights)
        if not (record := self.record_).reached:
            warnings.warn(
                f"the duality gap is still {record.relative_gap:.2g} of the objective's scale:"
                " scale the columns, raise max_iter=, lower C, or use another intercept",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    @property
    def record_(self) -> SvmRecord:
        """What happened in the fit; version 0.2 left these to the parameters."""
        check_is_fitted(self, "facts_")
        stated = {
            "tol": float(self.tol),
            "x_bound": self.x_bound,
            "kernel_parameters": self._kernel().parameters(),
        }
        return SvmRecord.read(stated | self.facts_, strict=False)

    def measure_again(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> dict[str, Any]:
        """The record's fields that the fitted model and the rows it was fitted on tell,
        measured again.
        """
        X, y = validate(self, X), np.asarray(y)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if y.shape != weights.shape or not np.array_equal(np.unique(y[weights > 0]), self.classes_):
            raise ValueError(
                "y does not hold the classes that the model was fitted on, one for each row"
            )
        if self.support_.size and self.support_[-1] >= y.size:
            raise ValueError(
                f"there are {y.size:,} rows, and a support vector is row {self.support_[-1]:,}"
            )
        X, problems = self._problems(X, y, weights)
        machines = [
            self._kept(number, rows, problem) for number, (rows, problem) in enumerate(problems)
        ]
        told = self._facts(X, self._kernel(), machines, weights)
        # rounding decides a gap near 0
        told["bias_error"] = Within(told["bias_error"], 0.3 * told["bias_error"])
        rounding = [0.0 if made.proof is None else made.proof.rounding for made in machines]
        scale = max(map(operator.truediv, rounding, self._scales(machines, weights)))
        told["relative_gap"] = Within(told["relative_gap"], 4 * scale + 1e-6 * told["relative_gap"])
        return told

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Linear with and without a stated bound, with kernels, and with LIBSVM's intercept."""
        yield cls(random_state=0)
        yield cls(C=0.1, x_bound=1.0, random_state=0)
        yield cls(kernel="gaussian", bandwidth=0.5, fit_intercept=False, random_state=0)
        yield cls(
            kernel=Polynomial(2) + 0.5 * Linear(),
            x_bound=1.0,
            regularize_intercept=False,
            random_state=0,
        )

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """Each intercept, of rows, of kernels and of kernel matrices."""
        yield cls(tol=1e-12)
        yield cls(kernel="gaussian", fit_intercept=False, tol=1e-12)
        yield cls(kernel="laplace", regularize_intercept=False, tol=1e-12)
        yield cls(regularize_intercept=False, tol=1e-12)
        yield cls(kernel="precomputed")
        yield cls(kernel="precomputed", regularize_intercept=False)

    def expected_failures(self) -> dict[str, str]:
        """Checks whose tables are no kernel matrices."""
        return NOT_KERNEL_MATRICES if self.kernel == "precomputed" else {}

    def _problems(
        self, X: RowsLike, y: npt.ArrayLike, weights: np.ndarray
    ) -> tuple[Any, list[tuple[np.ndarray, MarginProblem]]]:
        """Rows (of a kernel matrix exactly symmetric), and for each pair of classes its rows'
        numbers and its problem.
        """
        k, shift, used = self._kernel(), 0.0, np.flatnonzero(weights > 0)
        if isinstance(k, Precomputed):
            X, shift = check_matrix(X)
        else:
            self._check_bound(X)
        labels, problems = np.searchsorted(self.classes_, np.asarray(y)[used]), []
        for low, high in class_pairs(self.classes_.size):
            mine = np.flatnonzero((labels == low) | (labels == high))
            rows, signs = used[mine], np.where(labels[mine] == high, 1.0, -1.0)
            upper = self.C * weights[rows] if self.margin == "soft" else None
            problems.append(
                (rows, MarginProblem(k.among(X, rows), signs, upper, k, intercept_of(self), shift))
            )
        return X, problems

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """f(x) for two classes, votes for every class otherwise."""
        check_is_fitted(self)
        X, k = validate(self, X), self._kernel()
        if isinstance(k, Linear):
            scores = np.asarray(X @ self.coef_.T) + self.intercept_
        else:
            vectors = self.support_ if self.support_vectors_ is None else self.support_vectors_
            scores = k.sums(X, vectors, self.dual_coef_.T) + self.intercept_
        return scores[:, 0] if self.classes_.size == 2 else votes(scores, self.classes_.size)

    def predict(self, X: RowsLike) -> np.ndarray:
        """The class of every row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)]

    def _describe(self) -> Parts:
        check_is_fitted(self)
        return Parts(self._form, self._objective, machines=self._machines, dual=self._dual)

    def _dual(self) -> DualSolution | Lacking:
        """A penalized b is a column of ones."""
        if (
            self.margin != "soft"
            or not self.facts_["uniform_weights"]
            or isinstance(self._kernel(), Precomputed)
        ):
            return NO_DUAL
        made, padded, machines = self._kernel(), intercept_of(self) == "regularized", []
        for k, pair in enumerate(class_pairs(len(self.classes_))):
            beta = self.dual_coef_[k]
            held = np.flatnonzero(beta)
            most, bias = (
                np.full(held.size, self.facts_["C"]),
                0.0 if padded else float(self.intercept_[k]),
            )
            machines.append(
                DualMachine(
                    pair, self.support_[held], beta[held], most, bias, intercept_of(self) == "free"
                )
            )
        return DualSolution(tuple(machines), lambda A, B: np.asarray(made(A, B)) + float(padded))

    def _machines(self) -> Machines | Lacking:
        """Whatever the kernel; several machines vote, and their scores break ties."""
        made, count = self._kernel(), self.classes_.size
        if isinstance(made, Precomputed):
            return Lacking("machines", PRECOMPUTED.reason)
        if isinstance(made, Linear):
            values, squares = (
                (lambda Z: np.asarray(Z @ self.coef_.T) + self.intercept_),
                (self.coef_**2).sum(axis=1),
            )
        else:
            vectors = self.support_vectors_
            values = lambda Z: made.sums(dense(Z), vectors, self.dual_coef_.T) + self.intercept_  # noqa: E731
            squares = (self.dual_coef_ * (values(vectors) - self.intercept_).T).sum(axis=1)
        choose = largest if count == 2 else (lambda scores: votes(scores, count).argmax(axis=1))
        return Machines(values, squares, self.intercept_, choose)

    def _form(self) -> Closed | Lacking:
        made, count = self._kernel(), self.classes_.size
        if isinstance(made, Linear):
            return linear_form(self.coef_, self.intercept_, count, votes=True)
        return sum_form(
            made, self.support_vectors_, self.dual_coef_.T, self.intercept_, count, votes=True
        )

    def _objective(self) -> Objective | Lacking:
        if self.margin == "hard":
            return Lacking(
                "objective",
                "with a hard margin the losses are constraints, not part of what is minimized",
            )
        facts, record = self.facts_, self.record_
        return Objective(
            "hinge",
            1 / (2 * facts["C"]),
            beside="sum",
            intercept=facts["intercept"],
            coding="binary" if self.classes_.size == 2 else "one_vs_one",
            uniform=facts["uniform_weights"],
            kernel=facts["kernel"],
            rows=facts["n"],
            minimized=record.reached,
            tolerance=float(self.tol),
            gap=record.gap,
        )

    def _kernel(self) -> Kernel:
        return kernel(self.kernel, degree=self.degree, bandwidth=self.bandwidth)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed" or isinstance(
            self.kernel, Precomputed
        )
        return tags

    def _check_parameters(self) -> None:
        if self.margin not in ("soft", "hard"):
            raise ValueError(f"margin must be one of 'soft', 'hard', not {self.margin!r}")
        check_intercept(self)
        for name, value in (
            ("C", self.C),
            ("tol", self.tol),
            ("x_bound", 1.0 if self.x_bound is None else self.x_bound),
        ):
            stated.positive(name, value)
        if self.x_bound is not None and self.__sklearn_tags__().input_tags.pairwise:
            raise ValueError(
                "x_bound is about rows, and a precomputed kernel has none: leave it out"
            )
        stated.whole("max_iter", self.max_iter)

    def _check_bound(self, X: Any) -> None:
        if self.x_bound is not None and (
            longest := math.sqrt(squared_norms(X).max())
        ) > self.x_bound * (1 + 1e-12):
            raise ValueError(
                f"x_bound={self.x_bound:g} does not hold: a row has norm {longest:.6g}; state a"
                " larger bound"
            )

    def _train(
        self, rows: np.ndarray, problem: MarginProblem, random: np.random.RandomState
    ) -> _Trained:
        machine = train(problem, tol=self.tol, passes=self.max_iter, random=random)
        weights = None
        if isinstance(problem.kernel, Linear):
            used = np.flatnonzero(machine.alpha)
            weights = np.asarray(problem.X[used].T @ (machine.alpha * problem.signs)[used])
        return _Trained(
            rows, problem.signs, machine, weights, optimality(problem, machine, weights)
        )

    def _kept(self, number: int, rows: np.ndarray, problem: MarginProblem) -> _Trained:
        """A machine of the fitted model as it was trained, without training it again."""
        coefficients = np.zeros(max(rows.max(), self.support_.max(initial=0)) + 1)
        coefficients[self.support_] = self.dual_coef_[number]
        machine = kept_machine(
            problem, coefficients[rows] * problem.signs, float(self.intercept_[number])
        )
        weights = self.coef_[number] if isinstance(problem.kernel, Linear) else None
        return _Trained(
            rows, problem.signs, machine, weights, optimality(problem, machine, weights)
        )

    def _keep(self, X: Any, k: Kernel, machines: list[_Trained]) -> None:
        coefficients = np.zeros((len(machines), X.shape[0]))
        for m, made in enumerate(machines):
            coefficients[m, made.rows] = made.machine.alpha * made.signs
        self.support_ = np.flatnonzero(coefficients.any(axis=0))
        self.dual_coef_ = coefficients[:, self.support_]
        self.intercept_ = np.array([made.machine.bias for made in machines])
        self.n_iter_ = max(1, *(made.machine.passes for made in machines))
        if isinstance(k, Linear):
            self.coef_ = np.array([made.weights for made in machines])
        else:
            self.support_vectors_ = k.kept(X, self.support_)

    def _facts(
        self, X: Any, k: Kernel, machines: list[_Trained], weights: np.ndarray
    ) -> dict[str, Any]:
        padding = 1.0 if intercept_of(self) == "regularized" else 0.0
        squared = k.diagonal(X) + padding
        kept = [made.compressed(squared) for made in machines]
        facts: dict[str, Any] = {
            "n": X.shape[0],
            "d": X.shape[1],
            "classes": self.classes_.size,
            "kernel": k.name,
            "kernel_parameters": k.parameters(),
            "intercept": intercept_of(self),
            "hard": self.margin == "hard",
            "uniform_weights": bool(np.ptp(weights) <= 1e-12 * weights.max()),
            "C": self.C * float(weights.mean()) if self.margin == "soft" else None,
            "tol": float(self.tol),
            "x_bound": self.x_bound,
            "support_vectors": self.support_.size,
            "compressed": np.unique(np.concatenate(kept)).size,
            "bias_error": max(made.bias_error for made in machines),
        }
        gaps = [made.machine.gap for made in machines]
        facts["relative_gap"] = max(map(operator.truediv, gaps, self._scales(machines, weights)))
        proofs = [made.proof for made in machines if made.proof is not None]
        if len(proofs) == len(machines):
            worst = max(proofs, key=lambda proof: proof.gap)
            facts |= {"primal": worst.primal, "dual": worst.dual, "gap_rounding": worst.rounding}
        return facts | (self._facts_of_two(machines[0].machine) if len(machines) == 1 else {})

    def _scales(self, machines: list[_Trained], weights: np.ndarray) -> list[float]:
        """What each machine's duality gap is compared with: the sum of its rows' prices, or
        ‖w‖².
        """
        if self.margin == "hard":
            return [made.machine.norm**2 for made in machines]
        return [self.C * float(weights[made.rows].sum()) for made in machines]

    def _facts_of_two(self, machine: Machine) -> dict[str, Any]:
        margins = machine.margins
        slope = (
            machine.norm
            if intercept_of(self) == "free"
            else math.sqrt(max(0.0, machine.norm**2 - machine.bias**2))
        )
        return {
            "norm": machine.norm,
            # Definition 5.1; negative where rows are wrong
            "margin": float(margins.min()) / slope if slope > 0 else 0.0,
            "clipped_hinge": float(np.minimum(HINGE.value(margins), 1.0).mean()),
            "margin_at": MARGIN,
            "margin_error": float((margins <= MARGIN).mean()),
        }
