"""AdaBoost over decision stumps (thesis, Algorithm 1), with its certificate; several classes by
SAMME.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from surelearn import stated
from surelearn.base import Learner
from surelearn.boosting.columns import number_columns
from surelearn.boosting.record import AdaBoostRecord
from surelearn.boosting.rows import count_thresholds, fit_rows, predict_rows, shared_facts
from surelearn.record import Within
from surelearn.subject import Parts
from surelearn.subject.sklearn_trees import of_trees
from surelearn.types import RowsLike

Array = npt.NDArray[Any]
_STOPPED = ("rounds", "perfect stump", "no edge")


class AdaBoostClassifier(ClassifierMixin, Learner):
    """The vote Σ α_t·h_t(x) of decision stumps, each the best on rows weighted by how the vote so
    far fares on them.

    h_t minimizes the weighted error ε_t over all stumps (feature, threshold, class on either side)
    and the two constants; α_t = ½·ln((1 − ε_t)/ε_t), and rows that h_t gets wrong grow by (1 −
    ε_t)/ε_t relative to the others. With K > 2 classes (SAMME) α_t = ln((1 − ε_t)/ε_t) + ln(K − 1).

    Parameters
    ----------
    n_rounds : T, the most rounds; fewer are made where a stump is perfect or none is better than
        chance
    method : "exact" tries the cuts half-way between all neighboring values, "binned" at most 254
        per feature (all, where there are no more); "auto" is exact up to 5,000 rows
    thresholds : the only cuts to try, (k,) for all features or (d, k), k ≤ 255; stated before
        seeing the rows they make the stumps a finite class, which has claims of its own
    delta : failure probability of each claim

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn
    features_, thresholds_ : which feature each stump cuts, and where; a constant cuts at infinity
    below_, above_ : index in ``classes_`` of its answer where x ≤ threshold, and where not
    estimator_weights_, estimator_errors_ : α_t and ε_t
    margin_counts_ : (rounds, 50), two classes: rows fitted whose normalized margin y·f(x)/Σα is at
        most 1/50, 2/50, …, 1
    n_rounds_, stopped_ : rounds made, and why they ended
    feature_importances_ : the share of Σα that stumps on each feature have

    Notes
    -----
    Errors that differ by less than 1e-10 are ties: the first feature's lowest threshold wins, and a
    constant only beats cuts that are all worse. A vote of 0 is for the first class. A stump that is
    perfect on the rows, which only the first can be, is the whole vote, and so is the first stump
    where none is better than chance; its weight is 1. There is no ``predict_proba``: votes are not
    probabilities.

    Examples
    --------
    >>> X, y = [[0], [1], [2], [3], [4], [5]], ["in", "in", "out", "out", "in", "in"]
    >>> model = AdaBoostClassifier(n_rounds=3).fit(X, y)
    >>> model.predict(X).tolist()
    ['in', 'in', 'out', 'out', 'in', 'in']
    >>> model.estimator_errors_.round(3).tolist()
    [0.333, 0.25, 0.167]
    """

    Record = AdaBoostRecord

    classes_: Array
    n_features_in_: int
    saved_as = "adaboost-classifier/1"

    def __init__(
        self,
        n_rounds: int = 100,
        *,
        method: Literal["auto", "exact", "binned"] = "auto",
        thresholds: Any = None,
        delta: float = 0.05,
    ) -> None:
        self.n_rounds = n_rounds
        self.method = method
        self.thresholds = thresholds
        self.delta = delta

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Cuts found on the rows, and stated beforehand."""
        yield cls(8)
        yield cls(8, thresholds=[-0.5, 0.0, 0.5], delta=0.1)

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """Each way to find cuts."""
        yield cls(n_rounds=10)
        yield cls(n_rounds=10, method="binned")
        yield cls(n_rounds=10, thresholds=(-1.0, 0.0, 1.0))

    def fit(
        self, X: RowsLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> AdaBoostClassifier:
        """Run Algorithm 1 on rows X (n, d) with labels y (n,), from weights that are equal or
        as given.
        """
        from surelearn.boosting.search import run

        stated.whole("n_rounds", self.n_rounds)
        rows = fit_rows(self, X, y, sample_weight)
        columns = number_columns(rows.X, self.method, self.thresholds)
        made = run(columns, rows.labels, rows.classes.size, rows.weights, int(self.n_rounds))
        self.classes_ = rows.classes
        self.features_, self.below_, self.above_ = made.features, made.below, made.above
        cuts = zip(made.features.tolist(), made.cuts.tolist(), strict=True)
        self.thresholds_ = np.array([columns.threshold(feature, cut) for feature, cut in cuts])
        self.estimator_weights_, self.estimator_errors_ = made.alphas, made.errors
        self.n_rounds_, self.stopped_ = made.alphas.size, _STOPPED[made.stopped]
        self.margin_counts_ = made.margins
        self.facts_ = {
            **shared_facts(self, rows),
            "most_rounds": int(self.n_rounds),
            "staged_errors": made.wrong,
            "edges": 0.5 - made.errors if rows.classes.size == 2 else None,
            "margin_counts": made.margins[-1] if rows.classes.size == 2 else None,
        }
        return self

    def measure_again(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> dict[str, Any]:
        """The record's fields that the fitted model and the rows it was fitted on tell,
        measured again.
        """
        from surelearn.boosting.search import replay

        rows = fit_rows(self, X, y, sample_weight, reset=False)
        stumps = (
            self.features_,
            self.thresholds_,
            self.below_,
            self.above_,
            self.estimator_weights_,
        )
        errors, wrong, margins = replay(
            rows.X, rows.labels, rows.classes.size, rows.weights, *stumps
        )
        two, edges = rows.classes.size == 2, 0.5 - errors
        alone = self.n_rounds_ == 1 and self.estimator_weights_[0] == 1
        # α = artanh 2γ
        if two and not alone and np.abs(np.tanh(self.estimator_weights_) / 2 - edges).max() > 1e-9:
            raise ValueError(
                "the stumps' weights are not those that AdaBoost gives them on these rows"
            )
        return {
            **shared_facts(self, rows),
            "most_rounds": int(self.n_rounds),
            "staged_errors": wrong,
            "edges": tuple(Within(edge, 1e-9) for edge in edges.tolist()) if two else None,
            "margin_counts": margins[-1] if two else None,
        }

    @property
    def record_(self) -> AdaBoostRecord:
        """What happened in the fit; models of version 0.2 kept the number of stumps, and the
        margins beside the facts.
        """
        check_is_fitted(self, "facts_")
        counts = self.margin_counts_[-1] if self.classes_.size == 2 else None
        earlier = {"thresholds": count_thresholds(self.thresholds), "margin_counts": counts}
        return AdaBoostRecord.read({**earlier, **self.facts_}, strict=False)

    def staged_decision_function(self, X: RowsLike) -> Iterator[Array]:
        """Yield f(x) after 1, 2, … rounds: of the second of two classes (n,), else votes for
        every class (n, K).
        """
        X = predict_rows(self, X)
        scores = np.zeros((X.shape[0], self.classes_.size))
        stumps = zip(
            self.features_,
            self.thresholds_,
            self.below_,
            self.above_,
            self.estimator_weights_,
            strict=True,
        )
        for feature, threshold, below, above, alpha in stumps:
            is_below = X[:, feature] <= threshold
            if self.classes_.size == 2:
                scores[:, 1] += np.where(is_below, alpha * (2 * below - 1), alpha * (2 * above - 1))
                yield scores[:, 1].copy()
            else:
                scores[is_below, below] += alpha
                scores[~is_below, above] += alpha
                yield scores.copy()

    def decision_function(self, X: RowsLike) -> Array:
        """f(x) = Σ α_t·h_t(x), h = 1 for the second of two classes and −1 for the first; else
        votes for every class.
        """
        *_, scores = self.staged_decision_function(X)
        return scores

    def predict(self, X: RowsLike) -> Array:
        """The class that the vote is for."""
        return self._decide(self.decision_function(X))

    def staged_predict(self, X: RowsLike) -> Iterator[Array]:
        """Yield the vote's classes after 1, 2, … rounds."""
        for scores in self.staged_decision_function(X):
            yield self._decide(scores)

    def staged_margins(self, X: RowsLike, y: npt.ArrayLike) -> Iterator[Array]:
        """Yield normalized margins in [−1, 1] after 1, 2, … rounds: y·f(x)/Σα (eq. 3.12).

        For several classes: the share of the vote that the row's class has, less the largest share
        of another.
        """
        y = np.asarray(y)
        check_is_fitted(self)
        if (unknown := y[~np.isin(y, self.classes_)]).size:
            raise ValueError(f"y holds {unknown.tolist()[0]!r}, a class that was not fitted")
        label = np.searchsorted(self.classes_, y)
        total = np.cumsum(self.estimator_weights_)
        for scores, alphas in zip(self.staged_decision_function(X), total, strict=True):
            if scores.ndim == 1:
                yield (2 * label - 1) * scores / alphas
                continue
            mine = np.take_along_axis(scores, label[:, None], axis=1)[:, 0]
            np.put_along_axis(scores, label[:, None], -np.inf, axis=1)
            yield (mine - scores.max(axis=1)) / alphas

    def plot_margins(
        self, X: RowsLike, y: npt.ArrayLike, rounds: Sequence[int] | None = None, ax: Any = None
    ) -> Any:
        """Draw which fraction of rows has at most which margin, after each of ``rounds`` (by
        default 1, 2, 5, 10, …).
        """
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(6, 4), layout="constrained").subplots()
        if rounds is None:
            steps = [step * 10**power for power in range(9) for step in (1, 2, 5)]
            rounds = [*(t for t in steps if t < self.n_rounds_), self.n_rounds_]
        elif not len(rounds) or not all(1 <= t <= self.n_rounds_ for t in rounds):
            raise ValueError(
                f"rounds must be numbers from 1 to {self.n_rounds_}, as many as were made, not"
                f" {list(rounds)}"
            )
        for t, margins in enumerate(self.staged_margins(X, y), 1):
            if t in rounds:
                ax.ecdf(margins, label=f"{t} rounds" if t > 1 else "1 round")
        ax.axvline(0, color="grey", linewidth=0.8)
        ax.set(xlabel="margin", ylabel="fraction of rows with at most this margin", xlim=(-1, 1))
        ax.legend()
        return ax

    def prefix_bounds(self, delta: float | None = None) -> dict[str, Array]:
        """Bounds on the risk of the vote after 1, 2, … rounds, made with all of them in view;
        see `AdaBoostRecord`.
        """
        check_is_fitted(self)
        delta = self.delta if delta is None else delta
        stated.fraction("delta", delta)
        return self.record_.prefix_bounds(self.margin_counts_, delta)

    @property
    def feature_importances_(self) -> Array:
        """The share of Σα that stumps on each feature have; constants are on none."""
        check_is_fitted(self)
        cut = np.isfinite(self.thresholds_)
        shares = np.bincount(
            self.features_[cut], self.estimator_weights_[cut], minlength=self.n_features_in_
        )
        return shares / max(shares.sum(), np.finfo(float).tiny)

    def _decide(self, scores: Array) -> Array:
        return self.classes_[
            (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        ]

    def _describe(self) -> Parts:
        return replace(of_trees(self), staged_margins=self.staged_margins)
