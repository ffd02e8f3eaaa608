"""Support vector machines (course, Sections 5 to 7): hard and soft margin, linear and with a kernel."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from surelearn import bounds
from surelearn.base import Learner, Writer
from surelearn.bounds.capacity import BINARY
from surelearn.bounds.optimality import CONVEX_LIPSCHITZ
from surelearn.bounds.stability import LOSS_NONNEGATIVE, UNIFORM
from surelearn.certificate import AT_LEAST_ERRORS
from surelearn.claim import Theorem
from surelearn.kernel.functions import UNBOUNDED, Kernel, Linear, Precomputed, kernel, squared_norms
from surelearn.kernel.precomputed import FIXED, MOST_ROWS, POSITIVE, check_matrix, validate
from surelearn.linear.svm.machine import Machine, Problem, train
from surelearn.linear.svm.optimality import Optimality, optimality
from surelearn.linear.svm.votes import class_pairs, votes

CLASSES_KNOWN = "the classes were known before seeing the rows"
_MARGIN = 0.99  # at which the margin bound counts rows: just below 1, where the support vectors of a solution sit
_STATE = "state x_bound=, a bound on ‖x‖ that holds for every row"
_FREE = "the free intercept is not regularized: intercept='regularized' certifies"
_GAP = bounds.duality_gap
_COMPRESSION, _STABILITY, _RADEMACHER = bounds.campi_garatti, bounds.stability_near_minimizer, bounds.rademacher_margin


@dataclass(frozen=True)
class _Trained:
    """One machine of a model: its rows, their signs, the solution, w without a kernel, and how near the optimum it is."""

    rows: np.ndarray
    signs: np.ndarray
    machine: Machine
    weights: np.ndarray | None
    proof: Optimality | None

    @property
    def gap(self) -> float:
        """How far the objective can be above its minimum; without a proof as computed."""
        return self.machine.gap if self.proof is None else self.proof.gap

    @property
    def errors(self) -> tuple[float, float]:
        """How far w and a free b can be from the exact ones."""
        return (math.inf, math.inf) if self.proof is None else (self.proof.weight_error, self.proof.bias_error)

    def compressed(self, squared: np.ndarray) -> np.ndarray:
        """Rows that determine the exact solution, or may."""
        if self.proof is None:
            return self.rows
        return self.rows[self.proof.compressed(squared[self.rows], self.machine.alpha)]


class SupportVectorMachine(ClassifierMixin, Learner):
    """Minimizes ½‖w‖² + C·Σ_i max(0, 1 − y_i f(x_i)), or ½‖w‖² under y_i f(x_i) ≥ 1; f(x) = ⟨w, φ(x)⟩ + b.

    Several classes: one machine a pair, and votes.

    Parameters
    ----------
    margin : "soft", or "hard" (refused with a witness where the rows cannot be separated)
    C : the price of the sum of hinge losses; in the form (1/n)·Σ hinge + λ‖w‖² it is λ = 1/(2Cn)
    kernel, degree, sigma : a name or object of `surelearn.kernel.functions`, sums and products of such, and parameters of a
        name (σ as the course has it); "precomputed": rows are rows of a kernel matrix, as `SVC` of scikit-learn has them
    intercept : "regularized" (b counts into ‖w‖: vectors are padded with a 1), "none", or "free" (LIBSVM's). Stability and
        margin bounds are about the first two
    x_bound : a bound on ‖x‖ that holds for every row, seen or not; stated by you, for the bounds that need it
    tol : the duality gap, divided by nC, at which to stop
    passes : the most passes over the rows
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
    >>> model = SupportVectorMachine(margin="hard", intercept="free").fit(X, y)  # OR: 2x₁ + 2x₂ − 1
    >>> model.coef_.round(6), model.intercept_.round(6), round(model.facts_["margin"], 4)
    (array([[2., 2.]]), array([-1.]), 0.3536)
    >>> SupportVectorMachine(kernel="polynomial", degree=2, margin="hard").fit(X, [0, 1, 1, 0]).predict(X)  # XOR
    array([0, 1, 1, 0])
    """

    takes_sparse = True

    def __init__(
        self,
        *,
        margin: str = "soft",
        C: float = 1.0,
        kernel: str | Kernel = "linear",
        degree: int = 3,
        sigma: float = 1.0,
        intercept: str = "regularized",
        x_bound: float | None = None,
        tol: float = 1e-8,
        passes: int = 1000,
        delta: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.margin = margin
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.sigma = sigma
        self.intercept = intercept
        self.x_bound = x_bound
        self.tol = tol
        self.passes = passes
        self.delta = delta
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SupportVectorMachine:
        """Solve, and record the duality gap; returns self. ``sample_weight`` multiplies C row by row."""
        self._check_parameters()
        X, y = validate(self, X, y)
        check_classification_targets(y)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        used = np.flatnonzero(weights > 0)
        self.classes_, labels = np.unique(np.asarray(y)[used], return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError("y has only one class (among rows with a positive weight): two classes at least are needed")
        k, random, shift = self._kernel(), check_random_state(self.random_state), 0.0
        if isinstance(k, Precomputed):
            X, shift = check_matrix(X)
        else:
            self._check_bound(X)
        machines: list[_Trained] = []
        for low, high in class_pairs(self.classes_.size):
            mine = np.flatnonzero((labels == low) | (labels == high))
            rows, signs = used[mine], np.where(labels[mine] == high, 1.0, -1.0)
            upper = self.C * weights[rows] if self.margin == "soft" else None
            machines.append(self._train(rows, Problem(k.among(X, rows), signs, upper, k, self.intercept, shift), random))
        self._keep(X, k, machines)
        self.facts_ = self._facts(X, k, machines, weights)
        if not self.facts_["reached"]:
            warnings.warn(
                f"the duality gap is still {self.facts_['relative_gap']:.2g} of the objective's scale: scale the columns, "
                "raise passes=, lower C, or use another intercept=",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """f(x) for two classes, votes for every class otherwise."""
        check_is_fitted(self)
        X, k = validate(self, X), self._kernel()
        if isinstance(k, Linear):
            scores = np.asarray(X @ self.coef_.T) + self.intercept_
        else:
            vectors = self.support_ if self.support_vectors_ is None else self.support_vectors_
            scores = k.sums(X, vectors, self.dual_coef_.T) + self.intercept_
        return scores[:, 0] if self.classes_.size == 2 else votes(scores, self.classes_.size)

    def predict(self, X: Any) -> np.ndarray:
        """The class of every row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)]

    def _kernel(self) -> Kernel:
        return kernel(self.kernel, degree=self.degree, sigma=self.sigma)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)
        return tags

    def _check_parameters(self) -> None:
        for name, value, known in (
            ("margin", self.margin, ("soft", "hard")),
            ("intercept", self.intercept, ("regularized", "none", "free")),
        ):
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, not {value!r}")
        for name, value in (("C", self.C), ("tol", self.tol), ("x_bound", 1.0 if self.x_bound is None else self.x_bound)):
            if not (isinstance(value, (int, float, np.number)) and 0 < value < math.inf):
                raise ValueError(f"{name} must be positive and finite, not {value!r}")
        if self.x_bound is not None and self.__sklearn_tags__().input_tags.pairwise:
            raise ValueError("x_bound is about rows, and a precomputed kernel has none: leave it out")
        if not isinstance(self.passes, (int, np.integer)) or self.passes < 1:
            raise ValueError(f"passes must be a whole number of at least 1, not {self.passes!r}")

    def _check_bound(self, X: Any) -> None:
        if self.x_bound is not None and (longest := math.sqrt(squared_norms(X).max())) > self.x_bound * (1 + 1e-12):
            raise ValueError(f"x_bound={self.x_bound:g} does not hold: a row has norm {longest:.6g}; state a larger bound")

    def _train(self, rows: np.ndarray, problem: Problem, random: Any) -> _Trained:
        machine = train(problem, tol=self.tol, passes=self.passes, random=random)
        weights = None
        if isinstance(problem.kernel, Linear):
            used = np.flatnonzero(machine.alpha)
            weights = np.asarray(problem.X[used].T @ (machine.alpha * problem.signs)[used])
        return _Trained(rows, problem.signs, machine, weights, optimality(problem, machine, weights))

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

    def _facts(self, X: Any, k: Kernel, machines: list[_Trained], weights: np.ndarray) -> dict[str, Any]:
        padding = 1.0 if self.intercept == "regularized" else 0.0
        squared = k.diagonal(X) + padding
        kept = [made.compressed(squared) for made in machines]
        n, price = X.shape[0], self.C * float(weights.mean())
        facts: dict[str, Any] = {
            "n": n,
            "d": X.shape[1],
            "classes": self.classes_.size,
            "kernel": k.name,
            **k.parameters(),
            "intercept": self.intercept,
            "hard": self.margin == "hard",
            "uniform_weights": bool(np.ptp(weights) <= 1e-12 * weights.max()),
            "machines": len(machines),
            "support_vectors": self.support_.size,
            "compressed": np.unique(np.concatenate(kept)).size,
            "gap": max(made.gap for made in machines),
            "weight_error": max(made.errors[0] for made in machines),
            "bias_error": max(made.errors[1] for made in machines),
            "reached": True,
        }
        proofs = [made.proof for made in machines if made.proof is not None]
        if len(proofs) == len(machines):
            worst = max(proofs, key=lambda proof: proof.gap)
            facts |= {"primal": worst.primal, "dual": worst.dual, "gap_rounding": worst.rounding}
        if self.margin == "soft":
            totals = [self.C * float(weights[made.rows].sum()) for made in machines]
            relative = max(made.machine.gap / total for made, total in zip(machines, totals, strict=True))
            proved = max(made.gap / total for made, total in zip(machines, totals, strict=True))
            facts |= {"C": price, "relative_gap": relative, "proved_relative_gap": proved}
            facts["reached"] = bool(relative <= (1e-3 if self.intercept == "free" else self.tol))  # LIBSVM's tol is another
        else:
            facts["relative_gap"] = max(made.machine.gap / made.machine.norm**2 for made in machines)
            facts["reached"] = bool(facts["relative_gap"] <= 1e-3)
        radius = k.radius(self.x_bound)
        if radius is not None:
            facts["radius"] = math.sqrt(radius**2 + padding)
        if len(machines) == 1:
            facts |= self._facts_of_two(machines[0].machine, facts, price)
        return facts

    def _facts_of_two(self, machine: Machine, facts: dict[str, Any], price: float) -> dict[str, Any]:
        margins, n = machine.margins, facts["n"]
        slope = machine.norm if self.intercept == "free" else math.sqrt(max(0.0, machine.norm**2 - machine.bias**2))
        hinge = np.maximum(0.0, 1.0 - margins)
        two = {
            "norm": machine.norm,
            "margin": float(margins.min()) / slope if slope > 0 else 0.0,  # Definition 5.1; negative where rows are wrong
            "hinge": float(hinge.mean()),
            "clipped_hinge": float(np.minimum(hinge, 1.0).mean()),
            "margin_at": _MARGIN,
            "margin_error": float((margins <= _MARGIN).mean()),
        }
        if self.margin == "soft":
            two["regularization"] = 1.0 / (2.0 * price * n)
            if (
                "radius" in facts
            ):  # both fits may be up to 2·tol, rounding included, above their minima: ‖w − w*‖ ≤ √(2·tol/λ)
                two["distance"] = math.sqrt(2 * self.tol / two["regularization"])
        return two

    def _claim(self, writer: Writer) -> None:
        self._claim_optimality(writer)
        if not self.facts_["uniform_weights"]:
            for theorem in (_COMPRESSION, _STABILITY, _RADEMACHER):
                writer.absent("risk", "rows are weighted unequally (sample_weight)", theorem.key)
            return
        self._claim_compression(writer)
        self._claim_stability(writer)
        self._claim_margin(writer)

    def _claim_optimality(self, writer: Writer) -> None:
        """The objective is within the duality gap of its minimum; several classes: that of every machine is."""
        if "dual" not in self.facts_:
            writer.absent("suboptimality", "the α found are not feasible: lower tol= or scale the columns", _GAP.key)
            return
        loss = "½‖w‖² where y·f(x) ≥ 1" if self.facts_["hard"] else "½‖w‖² + C·Σ max(0, 1 − y·f(x))"
        several = f", each of {self.facts_['machines']} machines" if self.facts_["machines"] > 1 else ""
        read = {"primal": "primal", "dual": "dual", "rounding": "gap_rounding"}
        unseen = (POSITIVE,) if self.facts_["kernel"] == "precomputed" and self.facts_["d"] > MOST_ROWS else ()
        label = f"objective above its minimum{several}"
        writer.claim(_GAP, read, loss=loss, label=label, assumptions=unseen, met=_GAP.assumes)

    def _claim_compression(self, writer: Writer) -> None:
        """The rows with y·f(x) ≤ 1 determine w; a new row with y·f(x) ≤ 1, so every error, would join them.

        That is true of the exact solution f*. The rows counted are those that may have y·f*(x) ≤ 1, and an error of f is a
        row with y·f*(x) < 1 as long as |f − f*| < 1 there. Several classes: the rows of all machines together.
        """
        facts = self.facts_
        room = (1.0 - facts["bias_error"]) / facts["weight_error"] if facts["weight_error"] > 0 else math.inf
        if not room > 0 or ("radius" in facts and facts["radius"] >= room):
            writer.absent("risk", "the solution is not known well enough: lower tol= or raise passes=", _COMPRESSION.key)
            return
        assumptions = [CLASSES_KNOWN, *([FIXED] if facts["kernel"] == "precomputed" else [])]
        if "radius" not in facts and math.isfinite(room):
            padded = " + 1" if self.intercept == "regularized" else ""
            assumptions.append(f"k(x, x){padded} < {_floor(room**2)} for every new row: the solver's tolerance turns none")
        read = {"size": "compressed", "n": "n"}
        writer.claim(_COMPRESSION, read, assumptions=assumptions, met=_COMPRESSION.assumes[2:])

    def _claim_stability(self, writer: Writer) -> None:
        if reason := self._why_not(soft=True):
            writer.absent("uniform stability", reason, bounds.beta_near_minimizer.key)
            writer.absent("risk", reason, _STABILITY.key)
            return
        read = {"lipschitz": "radius", "regularization": "regularization", "n": "n", "distance": "distance"}
        bounded = self._kernel().radius(None) is not None
        stated = () if bounded else ("‖x‖ ≤ x_bound for every row, as stated",)
        met = (UNIFORM, CONVEX_LIPSCHITZ) if bounded else (UNIFORM,)
        writer.claim(bounds.beta_near_minimizer, read, loss="hinge", assumptions=stated, met=met)
        within = f"the weights are within {self.facts_['distance']:.1e} of the minimizer's; the risk includes it"
        writer.claim(
            _STABILITY,
            {"risk": "clipped_hinge", **read},
            loss=f"clipped hinge, min(1, max(0, 1 − y·f(x))): {AT_LEAST_ERRORS}",
            label="risk, clipped hinge loss",
            loss_bound=1.0,
            met=(*met, LOSS_NONNEGATIVE),
            assumptions=(*stated, within),
        )

    def _claim_margin(self, writer: Writer) -> None:
        if reason := self._why_not(soft=False):
            writer.absent("risk", reason, _RADEMACHER.key)
            return
        read = {"margin_error": "margin_error", "n": "n", "norm": "norm", "radius": "radius", "margin": "margin_at"}
        met = [line for line in _RADEMACHER.assumes if line in ("no unregularized intercept", BINARY)]
        writer.claim(_RADEMACHER, read, met=(*met, *self._bounded(_RADEMACHER)))

    def _bounded(self, theorem: Theorem[..., Any]) -> tuple[str, ...]:
        """The theorem's bound on ‖φ(x)‖, where the kernel is bounded and nothing needs to be believed."""
        bounded = self._kernel().radius(None) is not None
        return tuple(line for line in theorem.assumes if bounded and line.startswith("‖x‖ ≤"))

    def _why_not(self, *, soft: bool) -> str:
        """Why a bound for two classes, a bounded ‖φ(x)‖ and a regularized intercept does not apply, or ""."""
        facts = self.facts_
        if facts["classes"] > 2:
            return f"the theorem is about two classes, here are {facts['classes']}"
        if self.intercept == "free":
            return _FREE
        if soft and facts["hard"]:
            return "a hard margin is not stable: λ = 0"
        if soft and not facts["reached"]:
            return f"the duality gap did not reach tol={self.tol:g}"
        if soft and facts["proved_relative_gap"] > 2 * self.tol:
            return f"rounding may hide a duality gap of twice tol={self.tol:g}: raise tol"
        if "radius" in facts:
            return ""
        return UNBOUNDED if facts["kernel"] == "precomputed" else _STATE


def _floor(value: float) -> str:
    """A number for people, three digits, rounded down."""
    shown = float(f"{value:.2e}")
    return f"{shown if shown <= value else float(f'{value * 0.99:.2e}'):g}"
