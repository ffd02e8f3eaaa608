"""The perceptron (course, Section 2): Algorithm 1 on padded vectors, plain, averaged and with a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from surelearn import bounds
from surelearn.base import Learner, Writer
from surelearn.kernel.functions import Kernel, Precomputed, kernel, squared_norms
from surelearn.kernel.precomputed import FIXED, MOST_ROWS, POSITIVE, check_matrix, validate
from surelearn.linear.svm.separation import Separation, pad, separate, separate_gram
from surelearn.linear.svm.votes import class_pairs, votes
from surelearn.optim.stopping import Stopper

_AFFORDABLE = 1e8  # multiplications after which "auto" leaves the largest margin alone: about a second
_KEPT = 2**27  # numbers in columns of the kernel matrix that are kept between passes, a gigabyte; others are computed again
CLASSES_KNOWN = "the classes were known before seeing the rows"


class Perceptron(ClassifierMixin, Learner):
    """Sign of ⟨x, w⟩ + b, learned by w ← w + y·x, b ← b + y on every mistake, y(⟨x, w⟩ + b) ≤ 0, from w = 0, b = 0.

    Rows are visited in one order, pass after pass. On rows that can be separated it makes at most C²/γ² mistakes (Theorem
    2.8; C bounds the padded vectors (x, 1), γ is their largest margin) and stops; on others it never settles (Theorem 2.11).

    Parameters
    ----------
    multiclass : "one_vs_all" (largest score), or "one_vs_one" (one vote a pair; the course's L317 prints scores for votes)
    averaged : predict with the average of w over all steps
    kernel : None, or a name or object of `surelearn.kernel.functions`, with its ``degree`` or ``sigma``; "precomputed": rows
        are rows of a kernel matrix, (n, n) to fit and k(new, fitted) to predict
    passes, seconds : the most passes over the rows, the most time
    patience, tolerance : stop when the error has not fallen by more than ``tolerance`` for so many passes; None never does
    validation_fraction : the share of rows, drawn at random and not trained on, whose error ``patience`` watches; None
        watches the training error
    shuffle : visit the rows in a random order (drawn once) instead of as given
    separation : whether to find γ, or prove that there is none: True, False, or "auto" where it takes a second at most
    delta : failure probability of each claim

    Attributes
    ----------
    coef_, intercept_ : weights of every machine, (machines, d) and (machines,); without a kernel
    support_vectors_, dual_coef_, intercept_ : mistake rows (None: precomputed) and their coefficients; with a kernel
    mistake_rows_ : the distinct rows on which some machine was updated: they and the number of passes determine it
    witness_ : where two classes cannot be separated, {"rows", "weights"} of a convex combination of y·(x, 1) that is 0
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

    takes_sparse = True

    def __init__(
        self,
        *,
        multiclass: str = "one_vs_all",
        averaged: bool = False,
        kernel: str | Kernel | None = None,
        degree: int = 3,
        sigma: float = 1.0,
        passes: int = 1000,
        seconds: float | None = None,
        patience: int | None = 50,
        tolerance: float = 0.0,
        validation_fraction: float | None = None,
        shuffle: bool = False,
        separation: bool | str = "auto",
        delta: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.multiclass = multiclass
        self.averaged = averaged
        self.kernel = kernel
        self.degree = degree
        self.sigma = sigma
        self.passes = passes
        self.seconds = seconds
        self.patience = patience
        self.tolerance = tolerance
        self.validation_fraction = validation_fraction
        self.shuffle = shuffle
        self.separation = separation
        self.delta = delta
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Perceptron:
        """Run Algorithm 1 until it settles or the stopper stops it; returns self."""
        self._check_parameters()
        X, y = validate(self, X, y)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError("y has only one class: a classifier needs rows of at least two classes")
        X = check_matrix(X)[0] if self._precomputed() else X
        order, held = self._split(X.shape[0])
        signs = _signs(labels, self.classes_.size, self.multiclass)
        run = _Run.of(X, None if self.kernel is None else self._kernel(), signs, self.averaged)
        stopper = Stopper(passes=self.passes, seconds=self.seconds, patience=self.patience, tolerance=self.tolerance)
        while not stopper.reason:
            settled = run.one_pass(order)
            errors: dict[str, float] = {}
            if self.patience is not None and not settled:
                watched = held if held.size else order
                wrong = self._decide(run.scores(watched)).argmax(1) != labels[watched]
                errors["validation" if held.size else "training"] = float(wrong.mean())
            stopper.after(**errors, converged=settled)
        self.n_iter_ = stopper.done
        self.mistake_rows_ = run.mistake_rows()
        self._keep(run)
        wrong = self._decide(run.scores(np.arange(X.shape[0]))).argmax(1) != labels
        self.facts_ = self._facts(run, stopper, order, wrong)
        self._separate(run, order)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """The score of the second class, or a score (one-vs-all) or votes (one-vs-one) for every class."""
        check_is_fitted(self)
        X = validate(self, X)
        if self.kernel is None:
            scores = np.asarray(X @ self.coef_.T) + self.intercept_
        else:
            vectors = self.mistake_rows_ if self.support_vectors_ is None else self.support_vectors_
            scores = self._kernel().sums(X, vectors, self.dual_coef_.T) + self.intercept_
        return scores[:, 0] if self.classes_.size == 2 else self._decide(scores)

    def predict(self, X: Any) -> np.ndarray:
        """The class of every row; sgn(0) is the first class (Definition 2.4)."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)]

    def _decide(self, scores: np.ndarray) -> np.ndarray:
        """What each class has for it, from the scores of the machines."""
        if self.classes_.size == 2:
            return np.hstack([np.zeros_like(scores), scores])
        return scores if self.multiclass == "one_vs_all" else votes(scores, self.classes_.size)

    def _kernel(self) -> Kernel:
        return kernel(self.kernel or "linear", degree=self.degree, sigma=self.sigma)

    def _precomputed(self) -> bool:
        return self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed()
        return tags

    def _check_parameters(self) -> None:
        if self.multiclass not in ("one_vs_all", "one_vs_one"):
            raise ValueError(f"multiclass must be 'one_vs_all' or 'one_vs_one', not {self.multiclass!r}")
        for name, value in (("passes", self.passes), ("patience", self.patience)):
            if not (value is None and name == "patience") and (not isinstance(value, (int, np.integer)) or value < 1):
                raise ValueError(f"{name} must be a whole number of at least 1, not {value!r}")
        if self.validation_fraction is not None and not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must lie strictly between 0 and 1, not {self.validation_fraction!r}")
        if self.separation not in (True, False, "auto"):
            raise ValueError(f"separation must be True, False or 'auto', not {self.separation!r}")

    def _split(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows to train on, in their order, and those held out; neither depends on the labels."""
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

    def _facts(self, run: _Run, stopper: Stopper, order: np.ndarray, wrong: np.ndarray) -> dict[str, Any]:
        others = np.ones(wrong.size, dtype=bool)
        others[self.mistake_rows_] = False
        norms = (squared_norms(run.X) if run.kernel is None else run.kernel.diagonal(run.X))[order]
        return {
            "n": wrong.size,
            "d": run.X.shape[1],
            "classes": self.classes_.size,
            "stopped": stopper.reason,
            "converged": stopper.reason == "converged",
            "passes": stopper.done,
            "most_passes": int(self.passes),
            "trained_rows": order.size,
            "mistakes": int(run.counts.sum()),
            "mistake_rows": self.mistake_rows_.size,
            "training_errors": int(wrong[order].sum()),
            "other_errors": int(wrong[others].sum()),
            "radius": float(np.sqrt(norms.max() + 1.0)),
        }

    def _separate(self, run: _Run, order: np.ndarray) -> None:
        """For two classes: the largest margin of the padded vectors or a witness against it, else the margin reached."""
        if self.classes_.size > 2:
            return
        n, d = order.size, run.X.shape[1]
        cost = n * min(n, d + 1.0) ** 2 if self.kernel is None else float(n) ** 3
        if self.separation is True or (self.separation == "auto" and cost <= _AFFORDABLE):
            found = run.separation(order)
            self.facts_ |= {"separable": _WORDS[found.separable], "separation": found.words(), "margin_by": "svm"}
            if found.separable:
                self.facts_["margin"] = found.margin
            elif found.separable is False:
                rows, weights = found.witness
                self.witness_ = {"rows": order[rows], "weights": weights}
                self.facts_ |= {"witness_rows": order[rows], "witness_weights": weights, "witness_norm": found.distance}
            return
        self.facts_["separable"] = "yes" if self.facts_["converged"] else "unknown"
        if self.facts_["converged"] and (reached := run.margin(order)) > 0:
            self.facts_ |= {"margin": reached, "margin_by": "perceptron"}

    def _claim(self, writer: Writer) -> None:
        facts = self.facts_
        mistakes = bounds.perceptron_mistakes
        if "margin" in facts:
            read = {"radius": "radius", "margin": "margin", "mistakes": "mistakes"}
            label = "mistakes until it settled" if facts["converged"] else "mistakes, however long it runs"
            unseen = [POSITIVE] if self._precomputed() and facts["d"] > MOST_ROWS else []
            writer.claim(mistakes, read, label=label, met=mistakes.assumes, assumptions=unseen)
        else:
            writer.absent("mistakes", self._why_no_margin(), mistakes.key)
        known = (CLASSES_KNOWN, FIXED) if self._precomputed() else (CLASSES_KNOWN,)
        consistent, agnostic = bounds.campi_garatti, bounds.floyd_warmuth
        if self.averaged:
            reason = "the average counts the steps between mistakes, which the mistake rows do not tell"
            for theorem in (consistent, agnostic):
                writer.absent("risk", reason, theorem.key)
        elif facts["converged"]:
            # Rows without a mistake never change w, and a row on which the result errs would have been a mistake: the
            # mistake rows of all machines together are a preferent compression, whatever the number of classes.
            writer.claim(
                consistent,
                {"size": "mistake_rows", "n": "trained_rows"},
                assumptions=known,
                met=consistent.assumes[2:],
            )
        else:
            writer.absent("risk", f"it did not settle ({facts['stopped']})", consistent.key)
            writer.claim(
                agnostic,
                {"size": "mistake_rows", "n": "n", "errors": "other_errors", "messages": "most_passes"},
                assumptions=known,
                met=agnostic.assumes[2:],
            )

    def _why_no_margin(self) -> str:
        if self.classes_.size > 2:
            return f"Theorem 2.8 is about two classes, here are {self.classes_.size}"
        if "separation" in self.facts_:
            return self.facts_["separation"]
        return "whether the rows can be separated was not computed: separation=True does"


_WORDS = {True: "yes", False: "no", None: "unknown"}


def _signs(labels: np.ndarray, classes: int, multiclass: str) -> np.ndarray:
    """±1 for every machine and row, 0 where the machine ignores the row; shape (machines, n)."""
    if classes == 2:
        return np.where(labels == 1, 1.0, -1.0)[None]
    if multiclass == "one_vs_all":
        return np.where(labels == np.arange(classes)[:, None], 1.0, -1.0)
    return np.array([1.0 * (labels == l) - (labels == k) for k, l in class_pairs(classes)])  # noqa: E741


@dataclass
class _Run:
    """The state of all machines between passes: w with its bias, or with a kernel the number of mistakes on each row."""

    X: Any
    kernel: Kernel | None
    signs: np.ndarray  # (machines, n)
    averaged: bool
    counts: np.ndarray  # (machines, n)
    now: np.ndarray  # padded weights (machines, d + 1), or with a kernel the scores of all rows (machines, n)
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
        return cls(X, kernel, signs, averaged, counts, now, late, steps, np.zeros(machines, dtype=bool), {})

    def one_pass(self, order: np.ndarray) -> bool:
        """A pass of every machine that has not settled; whether all have now."""
        from surelearn.linear.perceptron import passes as passes

        for m in np.flatnonzero(~self.settled):
            mine = order[self.signs[m, order] != 0]
            state = (self.signs[m], mine, self.now[m])
            if self.kernel is not None:
                mistakes = passes.kernel_pass(self._column, *state, self.counts[m], self.late[m], int(self.steps[m]))
            elif sparse.issparse(self.X):
                arrays = (self.X.data, self.X.indices, self.X.indptr)
                mistakes = passes.sparse_pass(*arrays, *state, self.late[m], self.counts[m], self.steps[m])
            else:
                mistakes = passes.dense_pass(self.X, *state, self.late[m], self.counts[m], self.steps[m])
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
        """Padded weights, or with a kernel coefficients y_i·counts_i of all rows; averaged if asked for."""
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
        """The margin of the last (not the averaged) w of the one machine, divided by its norm with bias."""
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
