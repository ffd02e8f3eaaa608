"""Logistic regression for sparse, high-dimensional and streaming data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from surelearn.base import WEIGHTED_CHECKS, Learner, group_of
from surelearn.earlier import Groups, Names, moved
from surelearn.lacking import Lacking
from surelearn.linear.intercept import earlier_intercept, intercept_of
from surelearn.linear.leave_one_out import LeaveOneOutFits, logistic_leave_one_out
from surelearn.linear.logistic.options import SGD
from surelearn.linear.logistic.parameters import check_parameters
from surelearn.linear.logistic.record import LogisticRecord
from surelearn.optim.stopping import Stopper
from surelearn.record import Within
from surelearn.subject import Objective, Parts, linear_form
from surelearn.subject.leaving import Without
from surelearn.subject.registry import dense
from surelearn.types import AnyArray, Array, Ints, Labels, RandomState, RowsLike

if TYPE_CHECKING:
    from surelearn.linear.logistic.sgd import CompressedRows, StochasticDescent

_BIAS = {"none": 0, "regularized": 1, "free": 2}  # as `surelearn.linear.logistic.sgd` counts them
_FINISH_NONZEROS, _FINISH_WEIGHTS = 2_000_000, 1_000

_NO_CLOSED_FITS = (
    "there is a closed form only for two classes, λ > 0, and a finish at the minimizer"
)
# parameters of ``sgd`` that stood beside it in version 0.2
_OF_SGD = (
    "schedule", "step", "intercept_step", "step_decay", "average", "engine", "dtype",
    "early_stopping", "validation_fraction", "patience", "tol",
)  # fmt: skip


class LogisticRegression(ClassifierMixin, Learner):
    """Logistic regression by stochastic gradient descent whose cost a row is the number of its
    non-zeros.

    Minimizes (1/n)·Σ ln(1 + e^{−y⟨w, x⟩}) + λ‖w‖² + λ₁‖w‖₁, for several classes with softmax and
    one weight vector a class. Rows are visited in blocks of about fifty (``block_order``), so that
    memory is read in order and a file sorted by label does no harm. The weights equal those of
    dense SGD to rounding.

    Parameters
    ----------
    regularization : λ ≥ 0, the slides' μ
    l1_regularization : λ₁ ≥ 0; above 0 the lazy engine is used and no finish
    fit_intercept : whether to add an intercept
    regularize_intercept : True pads rows with a feature 1 whose weight is in the penalty, as in the
        notes; False leaves it outside of the penalty, and takes the stability claims away
    epochs : the most passes over the rows; 0 leaves everything to ``finish``
    sgd : steps, averaging, precision and early stopping of the descent, `SGD`; None for its defaults
    finish : "newton" or "lbfgs" goes on to the minimizer with scikit-learn's solvers; None does
        not; "auto" is "newton" for small data (at most 2,000,000 non-zeros and 1,000 weights)
        without L1, averaging and early stopping
    measure : measure objective and gradient at the end, one more pass, which the certificate needs
    x_bound : a bound on ‖x‖ (without the padding) that holds for every row, for claims about the
        risk
    norm_bound : B, the norm up to which a single averaged pass is compared
    delta : failure probability of each claim
    random_state : of the order of the rows

    Attributes
    ----------
    coef_, intercept_, classes_ : as in scikit-learn
    facts_ : what the certificate is made of
    t_ : updates made
    epochs_, stopped_ : passes made, and why they ended

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]
    >>> model = LogisticRegression(regularization=0.01, x_bound=3.0, random_state=0).fit(X, y)
    >>> model.predict([[0.5], [2.5]]).tolist()
    ['no', 'yes']
    >>> model.certificate_["suboptimality"].value < 1e-9
    True
    """

    Record = LogisticRecord
    takes_sparse = True
    saved_as = "logistic-regression/1"
    earlier: ClassVar[Names] = {
        "passes": "epochs",
        "passes_": "epochs_",
        "tolerance": "sgd__tol",
        "intercept": earlier_intercept(True),
        **moved("sgd", *_OF_SGD),
    }
    groups: ClassVar[Groups] = {"sgd": SGD}

    classes_: npt.NDArray[Any]
    coef_: npt.NDArray[Any]
    intercept_: npt.NDArray[Any]
    n_features_in_: int

    def __init__(
        self,
        *,
        regularization: float = 1e-4,
        l1_regularization: float = 0.0,
        fit_intercept: bool = True,
        regularize_intercept: bool = True,
        epochs: int = 10,
        sgd: SGD | None = None,
        finish: Literal["auto", "newton", "lbfgs"] | None = "auto",
        measure: bool = True,
        x_bound: float | None = None,
        norm_bound: float | None = None,
        delta: float = 0.05,
        random_state: RandomState = None,
    ) -> None:
        self.regularization = regularization
        self.l1_regularization = l1_regularization
        self.fit_intercept = fit_intercept
        self.regularize_intercept = regularize_intercept
        self.epochs = epochs
        self.sgd = sgd
        self.finish = finish
        self.measure = measure
        self.x_bound = x_bound
        self.norm_bound = norm_bound
        self.delta = delta
        self.random_state = random_state

    @property
    def _sgd(self) -> SGD:
        return group_of("sgd", self.sgd, SGD)

    # Fitting.

    def fit(
        self, X: RowsLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> LogisticRegression:
        """Fit to rows X (n, d), dense or sparse, with labels y (n,) of two or more classes."""
        check_parameters(self)
        rows, labels, weights, uniform = self._weighted(
            *self._validated(X, y, reset=True), sample_weight
        )
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                "y holds one class only: logistic regression needs rows of at least two classes"
            )
        self._fit_rows(self._rows(rows, codes, weights), uniform)
        return self

    def _weighted(
        self, X: Any, y: AnyArray, sample_weight: npt.ArrayLike | None
    ) -> tuple[Any, AnyArray, Array, bool]:
        """Rows that count, their weights of mean 1 (none where all are equal), and whether they
        are.
        """
        if sample_weight is None:
            return X, y, np.empty(0), True
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        counted = weights > 0
        if not counted.all():
            X, y, weights = X[counted], y[counted], weights[counted]
        uniform = bool((weights == weights[0]).all())
        return X, y, np.empty(0) if uniform else weights / weights.mean(), uniform

    def _fit_rows(self, rows: CompressedRows, uniform: bool) -> None:
        from surelearn.linear.logistic.facts import known, measured
        from surelearn.linear.logistic.objective import finish
        from surelearn.linear.logistic.rows import split

        generator = check_random_state(self.random_state)
        held_out = None
        if self._sgd.early_stopping == "validation":
            rows, held_out = split(rows, self._sgd.validation_fraction, generator)
        self._begin(rows)
        descent = self._descent(first=True)
        if self.epochs:
            self._descend(descent, rows, held_out, generator)
        found = descent.average() if self._sgd.average and self.epochs else descent.weights()
        how = self._finish(rows)
        if how != "none":
            found = finish(rows, found, self.regularization, _BIAS[intercept_of(self)], how)
        found = self._store(found, descent)
        self.facts_ = known(self, len(rows), uniform, finish=how, rounds=self.epochs_)
        if self.measure:
            self.facts_ |= measured(self, rows, found, _BIAS[intercept_of(self)])[0]

    def measure_again(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> dict[str, Any]:
        """The record's fields that the fitted model and the rows it was fitted on tell, measured
        again.

        Of a stream pass all rows, in any order. Which rows early stopping held out is told by a
        seed that is a number.
        """
        from surelearn.linear.logistic.facts import measured, stated
        from surelearn.linear.logistic.rows import held_out_rows, split

        read, labels = self._validated(X, y, reset=False)
        if not np.isin(labels, self.classes_).all():
            raise ValueError("y holds classes that the model does not know")
        if self.facts_["streamed"]:
            return stated(self) | self._streamed(read, labels, sample_weight)
        read, labels, weights, uniform = self._weighted(read, labels, sample_weight)
        rows = self._rows(read, np.searchsorted(self.classes_, labels), weights)
        told: dict[str, Any] = {
            "uniform": uniform,
            "streamed": False,
            "rounds": self.epochs_,
            "finish": self._finish(rows),
        }
        if self._sgd.early_stopping == "validation":
            if not isinstance(self.random_state, Integral):
                n = len(rows) - held_out_rows(len(rows), self._sgd.validation_fraction)
                return stated(self) | told | {"n": n, "updates": n * self.epochs_}
            rows, _ = split(
                rows, self._sgd.validation_fraction, check_random_state(self.random_state)
            )
        step, intercept_step = self._first_step(rows)
        told |= {"n": len(rows), "updates": len(rows) * self.epochs_, "step": step}
        told["intercept_step"] = intercept_step if self.fit_intercept else 1.0
        if self.measure:
            found = np.vstack([self.coef_.T, self.intercept_])
            at, rounding = measured(self, rows, found, _BIAS[intercept_of(self)])
            told |= at
            if self.l1_regularization == 0:
                told["gradient_norm"] = Within(
                    at["gradient_norm"], 2 * rounding + 1e-6 * at["gradient_norm"]
                )
        return stated(self) | told

    def _streamed(self, X: Any, y: AnyArray, sample_weight: npt.ArrayLike | None) -> dict[str, Any]:
        """What all rows of a stream tell; how often they were seen is known to the caller,
        unless it was once.
        """
        n, record = X.shape[0], self.record_
        if record.rounds <= 1 and record.finish == "none" and self.t_ != n:
            raise ValueError(f"the model made {self.t_:,} steps, and there are {n:,} rows")
        # which holds x_bound against them
        self._rows(X, np.searchsorted(self.classes_, y), np.empty(0))
        uniform = sample_weight is None or bool((np.asarray(sample_weight) == 1).all())
        return {"n": n, "uniform": uniform, "streamed": True, "updates": self.t_}

    @property
    def record_(self) -> LogisticRecord:
        """What happened in the fit: typed, frozen and primitive."""
        check_is_fitted(self, "facts_")
        return LogisticRecord.read(self.facts_, strict=False)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """At the minimizer with and without stated bounds, and one averaged pass, whose excess
        risk is claimed.
        """
        yield cls(random_state=0)
        yield cls(regularization=0.01, x_bound=1.0, random_state=0)
        yield cls(
            epochs=1,
            sgd=SGD(average=True, schedule="constant", step=0.1, intercept_step=1),
            finish=None,
            x_bound=1.0,
            norm_bound=2.0,
            random_state=0,
        )
        yield cls(sgd=SGD(early_stopping="validation"), l1_regularization=0.001, random_state=0)

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """At the minimizer; and descents that stop elsewhere, by each engine."""
        yield cls()
        yield cls(finish=None)
        yield cls(sgd=SGD(average=True, engine="lazy"))
        yield cls(sgd=SGD(early_stopping="validation"), l1_regularization=1e-4)

    def expected_failures(self) -> dict[str, str]:
        """SGD that does not go on to the minimizer meets a row of weight 2 once, not twice: it
        is close, not equal.
        """
        finished = (
            self.finish == "auto" and not self._sgd.average and self._sgd.early_stopping is None
        )
        if finished and self.l1_regularization == 0:
            return {}
        return dict.fromkeys(
            WEIGHTED_CHECKS, "a stopped descent is not equivalent to repeated rows"
        )

    def _descend(
        self,
        descent: StochasticDescent,
        rows: CompressedRows,
        held_out: CompressedRows | None,
        generator: np.random.RandomState,
    ) -> None:
        from surelearn.linear.logistic.objective import measure
        from surelearn.linear.logistic.sgd import block_order

        sgd = self._sgd
        patience = None if sgd.early_stopping is None else sgd.patience
        stopper = Stopper(passes=self.epochs, patience=patience, tolerance=sgd.tol)
        watched = sgd.early_stopping == "training"
        while not stopper.reason:
            order = block_order(len(rows), generator)
            loss = descent.run(rows, order, self._steps(len(rows)), want_loss=watched)
            self.t_ += len(rows)
            self.epochs_ += 1
            validation = None
            if held_out is not None:
                at = descent.average() if sgd.average else descent.weights()
                validation = measure(held_out, at, 0.0, _BIAS[intercept_of(self)]).loss
            stopper.after(training=loss if watched else None, validation=validation)
        self.stopped_ = stopper.reason

    def partial_fit(
        self,
        X: RowsLike,
        y: npt.ArrayLike,
        classes: Labels = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> LogisticRegression:
        """One pass over more rows, from the weights so far. The first call names all ``classes``,
        or y holds them all.

        A call costs the number of features once, beside the non-zeros of its rows. Weights are
        taken as they are given.
        """
        from surelearn.linear.logistic.facts import known
        from surelearn.linear.logistic.sgd import block_order

        check_parameters(self)
        first = not hasattr(self, "coef_")
        read, labels = self._validated(X, y, reset=first)
        self._check_classes(labels, classes, first)
        weights, uniform = np.empty(0), True
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, read, dtype=np.float64, ensure_non_negative=True
            )
            uniform = bool((weights == 1).all())
        rows = self._rows(read, np.searchsorted(self.classes_, labels), weights)
        before = {"n": 0, "uniform": True, "finish": "none", "rounds": 0} if first else self.facts_
        if first:
            self._begin(rows)
        descent = self._descent(first=first)
        descent.run(
            rows,
            block_order(len(rows), check_random_state(self.random_state)),
            self._steps(len(rows)),
        )
        self.t_ += len(rows)
        self.epochs_ += 1
        self._store(descent.average() if self._sgd.average else descent.weights(), descent)
        rounds = before["rounds"] if before["rounds"] > 1 else None
        n, uniform = before["n"] + len(rows), uniform and before["uniform"]
        self.facts_ = known(self, n, uniform, finish=before["finish"], streamed=True, rounds=rounds)
        return self

    def fit_file(
        self,
        path: str | Path,
        *,
        features: int,
        hashed: bool = False,
        target: str | None = None,
        categorical: Sequence[str] = (),
        classes: Labels = None,
    ) -> LogisticRegression:
        """Fit to LIBSVM or delimited text that need not fit in memory, in ``epochs`` passes, 8 MB
        at a time.

        Parameters
        ----------
        path : the file, read by the rules of the audit's reader; what is gzipped, UTF-16, or has
            line breaks within quotes is first copied to a temporary file
        features : how many there are; where ``hashed``, and for delimited text, the size of the
            table they share, a power of two
        target : None for lines ``label index:value …``, indices from 1; else the column of the
            labels of delimited text, whose first line names the columns. Numbers are used as they
            are, other values hashed as ``name=value``; missing ones add nothing
        categorical : columns of delimited text whose values are names even where they look like
            numbers
        classes : all labels; by default those of the first 8 MB read

        Pieces of 256 kB come in random order, 32 at once, rows in ``block_order``: a file sorted by
        label does no harm. No finish, no early stopping, no L1 penalty.
        `surelearn.linear.logistic.stream.read_rows` reads rows to predict.
        """
        from surelearn.linear.logistic.stream import fit_pieces

        check_parameters(self)
        how = {"hashed": hashed, "target": target, "categorical": categorical}
        fit_pieces(self, path, classes, features, **how)
        return self

    def _check_classes(self, y: AnyArray, classes: Labels, first: bool) -> None:
        if first:
            self.classes_ = np.unique(np.asarray(y if classes is None else classes))
            if self.classes_.size < 2:
                raise ValueError(
                    "classes must name at least two classes: give all of them with the first call"
                )
        elif classes is not None and not np.array_equal(
            np.unique(np.asarray(classes)), self.classes_
        ):
            raise ValueError("classes must be the same in every call of partial_fit")
        if unknown := set(np.unique(y).tolist()) - set(self.classes_.tolist()):
            raise ValueError(
                "y holds classes that the first call of partial_fit did not name:"
                f" {sorted(unknown)[:3]}"
            )

    # Its parts.

    def _validated(self, X: RowsLike, y: npt.ArrayLike | None, reset: bool) -> tuple[Any, AnyArray]:
        rows, labels = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset
        )
        check_classification_targets(labels)
        return rows, labels

    def _rows(self, X: Any, codes: Ints, weights: Array) -> CompressedRows:
        from surelearn.linear.logistic.rows import check_norms, make_rows

        if self.x_bound is not None:
            check_norms(X, self.x_bound)
        return make_rows(X, codes, self.classes_.size, weights, self._sgd.dtype)

    def _begin(self, rows: CompressedRows, expected: float | None = None) -> None:
        """Choose what the steps depend on, before the first of them; ``expected`` is how many
        rows a pass will have.
        """
        self.t_, self.epochs_, self.stopped_ = 0, 0, ""
        self.step_, self.intercept_step_ = self._first_step(rows)
        natural = (
            0.5
            if self._sgd.schedule == "steps"
            else 2 * self.regularization * self.step_ + 3 / (expected or len(rows))
        )
        self.step_decay_ = float(natural if self._sgd.step_decay is None else self._sgd.step_decay)

    def _first_step(self, rows: CompressedRows) -> tuple[float, float]:
        """η₀, and the intercept's share of it."""
        from surelearn.linear.logistic.rows import mean_squared_norm

        sgd, norm = self._sgd, mean_squared_norm(rows)
        typical = norm * len(rows) / max(1, rows.data.size)
        of_intercept = float(
            min(1.0, typical) or 1.0 if sgd.intercept_step == "auto" else sgd.intercept_step
        )
        norm += of_intercept if self.fit_intercept else 0.0
        longest = 0.25 / self.regularization if self.regularization > 0 else np.inf
        step = (min(4.0 / norm, longest) if norm > 0 else 1.0) if sgd.step == "auto" else sgd.step
        return float(step), of_intercept

    def _steps(self, count: int) -> Any:
        from surelearn.linear.logistic.rows import step_sizes

        return step_sizes(
            self._sgd.schedule, self.step_, self.step_decay_, self.t_, count, self.epochs_
        )

    def _descent(self, first: bool) -> StochasticDescent:
        from surelearn.linear.logistic.sgd import StochasticDescent

        shape = (self.n_features_in_ + 1, self.classes_.size if self.classes_.size > 2 else 1)
        if first:
            begin, summed = np.empty(shape, dtype=self._sgd.dtype), np.zeros((1, 1))
            begin.fill(0)  # large pages, where np.zeros has small ones
        elif self._sgd.average:
            begin, summed = self.last_weights_.copy(), self.summed_weights_
        else:
            begin, summed = np.vstack([self.coef_.T, self.intercept_]), None
        lazy = self._sgd.engine == "lazy" or self.l1_regularization > 0
        return StochasticDescent(
            begin,
            decay=self.regularization,
            shrinkage=self.l1_regularization,
            bias=_BIAS[intercept_of(self)],
            bias_step=self.intercept_step_,
            engine="lazy" if lazy else "scaled",
            summed=summed if self._sgd.average else None,
            steps_summed=self.t_,
        )

    def _finish(self, rows: CompressedRows) -> str:
        if self.finish != "auto":
            return self.finish or "none"
        small = (
            rows.data.size <= _FINISH_NONZEROS
            and (self.n_features_in_ + 1) * self.classes_.size <= _FINISH_WEIGHTS
        )
        stops = self._sgd.average or self._sgd.early_stopping is not None
        plain = self.l1_regularization == 0 and not stops
        return "newton" if small and plain and self.regularization > 0 else "none"

    def _store(self, found: Any, descent: StochasticDescent) -> Any:
        found = np.ascontiguousarray(found, dtype=self._sgd.dtype)
        self.coef_ = np.ascontiguousarray(found[:-1].T)
        self.intercept_ = found[-1].copy()
        if self._sgd.average:
            self.last_weights_, self.summed_weights_ = descent.weights(), descent.summed()
        return found

    # Predicting.

    def decision_function(self, X: RowsLike) -> Any:
        """Scores: (n,) of the second of two classes, else (n, K)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        scores = safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        return scores.ravel() if self.classes_.size == 2 else scores

    def predict(self, X: RowsLike) -> Any:
        """The likeliest class of each row."""
        scores = self.decision_function(X)
        return self.classes_[
            (scores > 0).astype(int) if self.classes_.size == 2 else scores.argmax(axis=1)
        ]

    def predict_proba(self, X: RowsLike) -> Any:
        """Probabilities (n, K) of the classes in the order of ``classes_``."""
        scores = np.asarray(self.decision_function(X), dtype=np.float64)
        return softmax(
            np.column_stack([np.zeros_like(scores), scores]) if scores.ndim == 1 else scores, axis=1
        )

    def predict_log_proba(self, X: RowsLike) -> Any:
        """Logarithms of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def leave_one_out(
        self, X: RowsLike, y: npt.ArrayLike, rows: npt.ArrayLike | None = None
    ) -> LeaveOneOutFits:
        """The minimizers without one row of ``X``, ``y``, the rows it was fitted on; see
        `logistic_leave_one_out`.

        Raises
        ------
        ValueError
            if there is no closed form: several classes, λ = 0, an L1 penalty, a free intercept,
            unequal weights, or weights that no finish brought to the minimizer
        """
        check_is_fitted(self)
        if not self._fits_are_closed():
            raise ValueError(_NO_CLOSED_FITS)
        padded = "regularized" if self.fit_intercept else "none"
        return logistic_leave_one_out(X, y, self.regularization, intercept=padded, rows=rows)

    def _without(
        self, X: RowsLike, y: AnyArray, points: RowsLike, rows: npt.ArrayLike | None = None
    ) -> Without:
        which = np.arange(np.size(y)) if rows is None else np.asarray(rows)
        targets = np.where(np.asarray(y)[which] == self.classes_[1], 1.0, -1.0)
        fits = self.leave_one_out(X, y, rows=which)
        if fits.sums is None or not issparse(points):
            points = np.asarray(dense(points), dtype=float)
        return fits.at(points, which, targets)

    def _fits_are_closed(self) -> bool:
        facts = self.facts_
        plain = (
            self.classes_.size == 2
            and facts["uniform"]
            and facts["finish"] != "none"
            and self.regularization > 0
        )
        return plain and intercept_of(self) != "free"  # with an L1 penalty there is no finish

    def _describe(self) -> Parts:
        check_is_fitted(self)
        facts, count = self.facts_, self.classes_.size
        objective = Objective(
            "logistic",
            float(self.regularization),
            intercept=facts["intercept"],
            coding="binary" if count == 2 else "softmax",
            l1=float(self.l1_regularization),
            uniform=facts["uniform"],
            rows=facts["n"],
            minimized=facts["finish"] != "none",
        )
        fits = (
            self._without if self._fits_are_closed() else Lacking("leave-one-out", _NO_CLOSED_FITS)
        )
        return Parts(lambda: linear_form(self.coef_, self.intercept_, count), objective, fits)
