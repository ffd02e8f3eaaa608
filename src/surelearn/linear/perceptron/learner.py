"""The perceptron (course, Section 2): Algorithm 1 on padded vectors, plain, averaged and with a
kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from surelearn import stated
from surelearn.base import Learner
from surelearn.earlier import Names
from surelearn.kernel.form import sum_form
from surelearn.kernel.functions import Kernel, Precomputed, kernel, squared_norms
from surelearn.kernel.precomputed import NOT_KERNEL_MATRICES, check_matrix, validate
from surelearn.lacking import Lacking
from surelearn.linear.perceptron.record import PerceptronRecord
from surelearn.linear.svm.separation import Separation, pad, separate, separate_gram
from surelearn.linear.svm.votes import class_pairs, votes
from surelearn.optim.stopping import Stopper
from surelearn.profiles import bandwidth_of_sigma
from surelearn.record import Within
from surelearn.subject import Closed, Parts, linear_form
from surelearn.types import RandomState, RowsLike

# multiplications after which "auto" leaves the largest margin alone: about a second
_AFFORDABLE = 1e8
# numbers in columns of the kernel matrix that are kept between passes, a gigabyte; others are
# computed again
_KEPT = 2**27


class Perceptron(ClassifierMixin, Learner):
    """Sign of ⟨x, w⟩ + b, learned by w ← w + y·x, b ← b + y on every mistake, y(⟨x, w⟩ + b) ≤ 0,
    from w = 0, b = 0.

    Rows are visited in one order, pass after pass. On rows that can be separated it makes at most
    C²/γ² mistakes (Theorem 2.8; C bounds the padded vectors (x, 1), γ is their largest margin) and
    stops; on others it never settles (Theorem 2.11).

    Parameters
    ----------
    multiclass : "one_vs_all" (largest score), or "one_vs_one" (one vote per pair; the course notes
        print scores for votes)
    averaged : predict with the average of w over all steps
    kernel : None, or a name or object of `surelearn.kernel.functions`, with its ``degree`` or
        ``bandwidth``; "precomputed": rows are rows of a kernel matrix, (n, n) to fit and k(new, fitted)
        to predict
    epochs, seconds : the most passes over the rows, the most time
    patience, tol : stop when the error has not fallen by more than ``tol`` for so many
        passes; None never does
    validation_fraction : the share of rows, drawn at random and not trained on, whose error
        ``patience`` watches; None watches the training error
    shuffle : visit the rows in a random order (drawn once) instead of as given
    separation : whether to find γ, or prove that there is none: True, False, or "auto" where it
        takes a second at most
    delta : failure probability of each claim

    Attributes
    ----------
    coef_, intercept_ : weights of every machine, (machines, d) and (machines,); without a kernel
    support_vectors_, dual_coef_, intercept_ : mistake rows (None: precomputed) and their
        coefficients; with a kernel
    mistake_rows_ : the distinct rows on which some machine was updated: they and the number of
        passes determine it
    witness_ : where two classes cannot be separated, {"rows", "weights"} of a convex combination of
        y·(x, 1) that is 0
    n_iter_ : passes made

    Examples
    --------
    >>> X, y = np.array([[0, 0], [1, 0], [0, 1], [1, 1]]), np.array([0, 1, 1, 1])
    >>> model = Perceptron().fit(X, y)  # OR can be separated
    >>> model.predict(X), model.facts_["mistakes"], round(model.certificate_["mistakes"].value, 6)
    (array([0, 1, 1, 1]), 9, 27.0)
    >>> Perceptron().fit(X, [0, 1, 1, 0]).witness_["weights"]  # XOR cannot
    array([0.25, 0.25, 0.25, 0.25])
    """

    Record = PerceptronRecord
    takes_sparse = True
    saved_as = "perceptron/1"
    earlier: ClassVar[Names] = {
        "sigma": bandwidth_of_sigma,
        "passes": "epochs",
        "tolerance": "tol",
    }

    def __init__(
        self,
        *,
        multiclass: str = "one_vs_all",
        averaged: bool = False,
        kernel: str | Kernel | None = None,
        degree: int = 3,
        bandwidth: float = 1.0,
        epochs: int = 1000,
        seconds: float | None = None,
        patience: int | None = 50,
        tol: float = 0.0,
        validation_fraction: float | None = None,
        shuffle: bool = False,
        separation: bool | str = "auto",
        delta: float = 0.05,
        random_state: RandomState = None,
    ) -> None:
        self.multiclass = multiclass
        self.averaged = averaged
        self.kernel = kernel
        self.degree = degree
        self.bandwidth = bandwidth
        self.epochs = epochs
        self.seconds = seconds
        self.patience = patience
        self.tol = tol
        self.validation_fraction = validation_fraction
        self.shuffle = shuffle
        self.separation = separation
        self.delta = delta
        self.random_state = random_state

    def fit(self, X: RowsLike, y: npt.ArrayLike) -> Perceptron:
        """Run Algorithm 1 until it settles or the stopper stops it; returns self."""
        self._check_parameters()
        X, y = validate(self, X, y)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                "y has only one class: a classifier needs rows of at least two classes"
            )
        X = check_matrix(X)[0] if self._precomputed() else X
        stopper = Stopper(
            passes=self.epochs,
            seconds=self.seconds,
            patience=self.patience,
            tolerance=self.tol,
        )
        run, order = self._descend(X, labels, stopper)
        self.n_iter_ = stopper.done
        self.mistake_rows_ = run.mistake_rows()
        self._keep(run)
        self.facts_ = self._facts(run, stopper.reason, order, labels)
        if self.facts_.get("witness_rows") is not None:
            rows, weights = self.facts_["witness_rows"], self.facts_["witness_weights"]
            self.witness_ = {"rows": np.array(rows), "weights": np.array(weights)}
        return self

    def _descend(self, X: Any, labels: np.ndarray, stopper: Stopper) -> tuple[_Run, np.ndarray]:
        """Algorithm 1 until the stopper stops it: its state, and the rows trained on in their
        order.
        """
        order, held = self._split(X.shape[0])
        signs = _signs(labels, self.classes_.size, self.multiclass)
        run = _Run.of(X, None if self.kernel is None else self._kernel(), signs, self.averaged)
        while not stopper.reason:
            settled = run.one_pass(order)
            errors: dict[str, float] = {}
            if self.patience is not None and not settled:
                watched = held if held.size else order
                wrong = self._decide(run.scores(watched)).argmax(1) != labels[watched]
                errors["validation" if held.size else "training"] = float(wrong.mean())
            stopper.after(**errors, converged=settled)
        return run, order

    @property
    def record_(self) -> PerceptronRecord:
        """What happened in the fit; version 0.2 left these to the parameters."""
        check_is_fitted(self, "facts_")
        stated = {"averaged": self.averaged, "precomputed": self._precomputed()}
        return PerceptronRecord.read(stated | self.facts_, strict=False)

    def measure_again(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> dict[str, Any]:
        """The record's fields that the fitted model and the rows tell, by as many passes over the
        rows as it made.

        Where a random order (or held-out rows) was drawn without a seed that is a number, few of
        them.
        """
        if sample_weight is not None:
            raise ValueError("the perceptron has no weights of rows: leave sample_weight out")
        read, y = validate(self, X), np.asarray(y)
        if y.shape != (read.shape[0],) or not np.array_equal(np.unique(y), self.classes_):
            raise ValueError(
                "y does not hold the classes that the model was fitted on, one for each row"
            )
        read, labels = (
            check_matrix(read)[0] if self._precomputed() else read,
            np.searchsorted(self.classes_, y),
        )
        if (self.shuffle or self.validation_fraction is not None) and not isinstance(
            self.random_state, Integral
        ):
            return self._stated(read) | {
                "passes": self.n_iter_,
                "mistake_rows": self.mistake_rows_.size,
            }
        stopper = Stopper(passes=self.n_iter_, patience=self.patience, tolerance=self.tol)
        run, order = self._descend(read, labels, stopper)
        if not self._is_kept(run):
            raise ValueError(
                f"{self.n_iter_:,} passes over them lead to other weights than the model's"
            )
        stopped_by_time = stopper.reason == "passes" and self.n_iter_ < self.epochs
        told = self._facts(run, "time" if stopped_by_time else stopper.reason, order, labels)
        if told["witness_norm"] is not None:
            # what rounding left of 0
            told["witness_norm"] = Within(told["witness_norm"], 1e-7 * told["radius"])
        return told

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Plain, averaged, with a kernel that separates, and with rows held out by a seed."""
        yield cls(epochs=20)
        yield cls(averaged=True, epochs=5, separation=False)
        yield cls(kernel="gaussian", bandwidth=0.158)
        yield cls(epochs=20, validation_fraction=0.2, shuffle=True, random_state=0)

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """Each way to tell classes apart, to end, and to be given rows."""
        yield cls()
        yield cls(multiclass="one_vs_one", averaged=True)
        yield cls(kernel="gaussian", shuffle=True, epochs=30)
        yield cls(validation_fraction=0.2, patience=5)
        yield cls(kernel="precomputed", random_state=0)

    def expected_failures(self) -> dict[str, str]:
        """Checks whose tables are no kernel matrices."""
        return NOT_KERNEL_MATRICES if self.kernel == "precomputed" else {}

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """The score of the second class, or a score (one-vs-all) or votes (one-vs-one) for
        every class.
        """
        check_is_fitted(self)
        X = validate(self, X)
        if self.kernel is None:
            scores = np.asarray(X @ self.coef_.T) + self.intercept_
        else:
            vectors = self.mistake_rows_ if self.support_vectors_ is None else self.support_vectors_
            scores = self._kernel().sums(X, vectors, self.dual_coef_.T) + self.intercept_
        return scores[:, 0] if self.classes_.size == 2 else self._decide(scores)

    def predict(self, X: RowsLike) -> np.ndarray:
        """The class of every row; sgn(0) is the first class (Definition 2.4)."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)]

    def _decide(self, scores: np.ndarray) -> np.ndarray:
        """What each class has for it, from the scores of the machines."""
        if self.classes_.size == 2:
            return np.hstack([np.zeros_like(scores), scores])
        return scores if self.multiclass == "one_vs_all" else votes(scores, self.classes_.size)

    def _describe(self) -> Parts:
        check_is_fitted(self)
        return Parts(
            self._form,
            Lacking("objective", "it stops where no row is wrong any more, and minimizes no loss"),
        )

    def _form(self) -> Closed | Lacking:
        count, votes = self.classes_.size, self.multiclass == "one_vs_one"
        if self.kernel is None:
            return linear_form(self.coef_, self.intercept_, count, votes=votes)
        return sum_form(
            self._kernel(),
            self.support_vectors_,
            self.dual_coef_.T,
            self.intercept_,
            count,
            votes=votes,
        )

    def _kernel(self) -> Kernel:
        return kernel(self.kernel or "linear", degree=self.degree, bandwidth=self.bandwidth)

    def _precomputed(self) -> bool:
        return self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed()
        return tags

    def _check_parameters(self) -> None:
        if self.multiclass not in ("one_vs_all", "one_vs_one"):
            raise ValueError(
                f"multiclass must be 'one_vs_all' or 'one_vs_one', not {self.multiclass!r}"
            )
        for name, value in (("epochs", self.epochs), ("patience", self.patience)):
            if not (value is None and name == "patience") and (
                not isinstance(value, (int, np.integer)) or value < 1
            ):
                raise ValueError(f"{name} must be a whole number of at least 1, not {value!r}")
        if self.validation_fraction is not None:
            stated.fraction("validation_fraction", self.validation_fraction)
        if self.separation not in (True, False, "auto"):
            raise ValueError(f"separation must be True, False or 'auto', not {self.separation!r}")

    def _split(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows to train on, in their order, and those held out; neither depends on the
        labels.
        """
        random = check_random_state(self.random_state)
        order, held = np.arange(n), np.empty(0, dtype=np.intp)
        if self.validation_fraction is not None:
            held = random.permutation(n)[: max(1, int(self.validation_fraction * n))]
            order = np.setdiff1d(order, held)
        return (random.permutation(order) if self.shuffle else order), held

    def _keep(self, run: _Run) -> None:
        if self.kernel is None:
            weights = run.weights()
            self.coef_, self.intercept_ = weights[:, :-1].copy(), weights[:, -1].copy()
            return
        self.support_vectors_ = self._kernel().kept(run.X, self.mistake_rows_)
        self.dual_coef_ = run.weights()[:, self.mistake_rows_]
        self.intercept_ = self.dual_coef_.sum(axis=1)  # the padded 1 of every mistake row

    def _is_kept(self, run: _Run) -> bool:
        """Whether a run led to the weights that the model keeps."""
        weights = run.weights()
        if self.kernel is None:
            kept = np.column_stack([self.coef_, self.intercept_])
        else:
            kept = np.zeros_like(weights)
            if self.mistake_rows_.max(initial=0) >= kept.shape[1]:
                return False
            kept[:, self.mistake_rows_] = self.dual_coef_
        return bool(
            np.allclose(weights, kept, rtol=1e-9, atol=1e-9 * np.abs(kept).max(initial=0.0))
        )

    def _stated(self, X: Any) -> dict[str, Any]:
        return {
            "n": X.shape[0],
            "d": X.shape[1],
            "classes": self.classes_.size,
            "averaged": bool(self.averaged),
            "precomputed": self._precomputed(),
            "most_passes": int(self.epochs),
        }

    def _facts(
        self, run: _Run, stopped: str, order: np.ndarray, labels: np.ndarray
    ) -> dict[str, Any]:
        wrong = self._decide(run.scores(np.arange(labels.size))).argmax(1) != labels
        mistakes = run.mistake_rows()
        others = np.ones(wrong.size, dtype=bool)
        others[mistakes] = False
        norms = (squared_norms(run.X) if run.kernel is None else run.kernel.diagonal(run.X))[order]
        facts = self._stated(run.X) | {
            "stopped": stopped,
            "passes": self.n_iter_,
            "trained_rows": order.size,
            "mistakes": int(run.counts.sum()),
            "mistake_rows": mistakes.size,
            "training_errors": int(wrong[order].sum()),
            "other_errors": int(wrong[others].sum()),
            "radius": float(np.sqrt(norms.max() + 1.0)),
        }
        return facts | self._separated(run, order, settled=stopped == "converged")

    def _separated(self, run: _Run, order: np.ndarray, *, settled: bool) -> dict[str, Any]:
        """For two classes: the largest margin of the padded vectors or a witness against it,
        else the margin reached.
        """
        nothing: dict[str, Any] = dict.fromkeys(
            ("separable", "margin", "margin_by", "witness_rows", "witness_weights", "witness_norm")
        )
        if self.classes_.size > 2:
            return nothing
        n, d = order.size, run.X.shape[1]
        cost = n * min(n, d + 1.0) ** 2 if self.kernel is None else float(n) ** 3
        if self.separation is True or (self.separation == "auto" and cost <= _AFFORDABLE):
            found = run.separation(order)
            told = nothing | {"separable": found.answer, "margin_by": "svm"}
            if found.separable:
                told["margin"] = found.margin
            elif found.separable is False:
                rows, weights = found.witness
                told |= {"witness_rows": order[rows].tolist(), "witness_weights": weights.tolist()}
                told["witness_norm"] = found.distance
            return told
        told = nothing | {"separable": "yes" if settled else "unknown"}
        if settled and (reached := run.margin(order)) > 0:
            told |= {"margin": reached, "margin_by": "perceptron"}
        return told


def _signs(labels: np.ndarray, classes: int, multiclass: str) -> np.ndarray:
    """±1 for every machine and row, 0 where the machine ignores the row; shape (machines, n)."""
    if classes == 2:
        return np.where(labels == 1, 1.0, -1.0)[None]
    if multiclass == "one_vs_all":
        return np.where(labels == np.arange(classes)[:, None], 1.0, -1.0)
    return np.array([1.0 * (labels == l) - (labels == k) for k, l in class_pairs(classes)])  # noqa: E741


@dataclass
class _Run:
    """The state of all machines between passes: w with its bias, or with a kernel the number of
    mistakes on each row.
    """

    X: Any
    kernel: Kernel | None
    signs: np.ndarray  # (machines, n)
    averaged: bool
    counts: np.ndarray  # (machines, n)
    # padded weights (machines, d + 1), or with a kernel the scores of all rows (machines, n)
    now: np.ndarray
    late: np.ndarray
    steps: np.ndarray
    settled: np.ndarray
    columns: dict[int, np.ndarray]

    @classmethod
    def of(cls, X: Any, kernel: Kernel | None, signs: np.ndarray, averaged: bool) -> _Run:
        machines, n = signs.shape
        width = X.shape[1] + 1 if kernel is None else n
        now, late = np.zeros((machines, width)), np.zeros((machines, width))
        counts, steps = np.zeros((machines, n), dtype=np.int64), np.zeros(machines, dtype=np.int64)
        return cls(
            X, kernel, signs, averaged, counts, now, late, steps, np.zeros(machines, dtype=bool), {}
        )

    def one_pass(self, order: np.ndarray) -> bool:
        """A pass of every machine that has not settled; whether all have now."""
        from surelearn.linear.perceptron import passes as passes

        for m in np.flatnonzero(~self.settled):
            mine = order[self.signs[m, order] != 0]
            state = (self.signs[m], mine, self.now[m])
            if self.kernel is not None:
                mistakes = passes.kernel_pass(
                    self._column, *state, self.counts[m], self.late[m], int(self.steps[m])
                )
            elif sparse.issparse(self.X):
                arrays = (self.X.data, self.X.indices, self.X.indptr)
                mistakes = passes.sparse_pass(
                    *arrays, *state, self.late[m], self.counts[m], self.steps[m]
                )
            else:
                mistakes = passes.dense_pass(
                    self.X, *state, self.late[m], self.counts[m], self.steps[m]
                )
            self.steps[m] += mine.size
            self.settled[m] = mistakes == 0
        return bool(self.settled.all())

    def _column(self, i: int) -> np.ndarray:
        assert self.kernel is not None  # noqa: S101 - for the type checker
        if i not in self.columns:
            column = self.kernel(self.X, self.kernel.anchors(self.X, np.array([i])))[:, 0] + 1.0
            if (len(self.columns) + 1) * column.size > _KEPT:
                return column
            self.columns[i] = column
        return self.columns[i]

    def weights(self) -> np.ndarray:
        """Padded weights, or with a kernel coefficients y_i·counts_i of all rows; averaged if
        asked for.
        """
        steps = np.maximum(self.steps, 1)[:, None]
        if self.kernel is None:
            return self.now - self.late / steps if self.averaged else self.now
        return self.signs * (self.counts - self.late / steps if self.averaged else self.counts)

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """Scores of every machine; shape (rows, machines)."""
        weights = self.weights()
        if self.kernel is None:
            return np.asarray(self.X[rows] @ weights[:, :-1].T) + weights[:, -1]
        if not self.averaged:
            return self.now[:, rows].T
        total = np.zeros((rows.size, len(weights)))
        for i in self.mistake_rows().tolist():
            total += np.outer(self._column(i)[rows], weights[:, i])
        return total

    def mistake_rows(self) -> np.ndarray:
        return np.flatnonzero(self.counts.any(axis=0))

    def margin(self, order: np.ndarray) -> float:
        """The margin of the last (not the averaged) w of the one machine, divided by its norm
        with bias.
        """
        signs = self.signs[0]
        if self.kernel is not None:
            norm = float(np.sqrt(self.counts[0] @ (signs * self.now[0])))
            return float((signs[order] * self.now[0, order]).min()) / norm
        scores = np.asarray(self.X[order] @ self.now[0, :-1]) + self.now[0, -1]
        return float((signs[order] * scores).min() / np.linalg.norm(self.now[0]))

    def separation(self, order: np.ndarray) -> Separation:
        signs = self.signs[0, order]
        if self.kernel is None:
            return separate(pad(self.X[order]), signs)
        return separate_gram(self.kernel.gram(self.kernel.among(self.X, order)) + 1.0, signs)
