"""Adversarial training of any classifier with a gradient, as a game of the learner against the
rows' changes.
"""

from __future__ import annotations

import copy
import math
import numbers
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from surelearn import stated
from surelearn.attacks.domains import Array, Domain, Norm
from surelearn.attacks.evasion import worst_rows
from surelearn.base import Learner
from surelearn.lacking import Lacking
from surelearn.robust.adversarial import AdversarialLinearClassifier
from surelearn.robust.record import AdversarialRecord
from surelearn.subject import Around, score_function
from surelearn.types import AnyArray, Model, RandomState, RowsLike


def _has(name: str) -> Any:
    return lambda self: hasattr(getattr(self, "estimator_", self.estimator), name)


class AdversarialClassifier(MetaEstimatorMixin, ClassifierMixin, Learner):
    """Trains a classifier on rows changed to hurt it (course, Section 17): min over models, max
    over changes.

    Fictitious play: in every round the learner is fitted to the rows as given and as they were
    worst for the models of all rounds before, each counting alike; then the worst rows for the new
    model are found, for linear models exactly. Where the learner minimizes a convex loss plus
    λ‖w‖², these are Frank–Wolfe steps of length 1/(t + 1) on the game's dual, and the worst-case
    objective approaches its least value; fitting to the last worst rows alone goes round in
    circles.

    Parameters
    ----------
    estimator : a classifier with a gradient that `surelearn.subject.score_function` knows: linear,
        kernel, network, also at the end of a pipeline. Where it takes ``sample_weight``, the
        weights add up to the number of rows, so that its regularization keeps its strength.
        ``warm_start=True`` is used
    radius, norm, where : of the changes: in units of the domain's scale, "linf" or "l2", and the
        `Domain` of changed rows
    rounds : how many times it is fitted again; the last fit has rounds + 1 times as many rows. A
        kernel machine needs few, a linear learner with a small λ many
    steps : of projected gradient, where the worst rows have no closed form
    held_out : the share of rows of every class that are not trained on and choose the round: that
        with the largest robust accuracy, the last of equal ones. None lets the rows trained on
        choose
    random_state : of the rows held out, of where attacks start, and of the estimator where it has
        None

    Attributes
    ----------
    estimator_ : the classifier of the round that was kept
    round_ : its number; 0 is the classifier fitted to unchanged rows
    accuracy_, robust_accuracy_ : (rounds + 1,) of every round, with radius 0 of the only one, on
        the rows that choose; the second under the attack that makes the rows, for linear models
        exact, else an upper bound
    classes_ : the labels

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> y = X @ [2.0, 0.5, 0.5, 0.5, 0.5] > 0
    >>> model = AdversarialClassifier(LogisticRegression(C=100.0), radius=0.3).fit(X, y)
    >>> bool(model.robust_accuracy_[-1] > model.robust_accuracy_[0])
    True
    """

    Record = AdversarialRecord

    classes_: npt.NDArray[Any]
    n_features_in_: int
    saved_as = "adversarial-classifier/1"

    def __init__(
        self,
        estimator: Model,
        *,
        radius: float = 0.1,
        norm: Norm = "linf",
        where: Domain | None = None,
        rounds: int = 20,
        steps: int = 10,
        held_out: float | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.radius = radius
        self.norm = norm
        self.where = where
        self.rounds = rounds
        self.steps = steps
        self.held_out = held_out
        self.random_state = random_state

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Around a classifier without a certificate, and around one with claims; rows held out
        or not.
        """
        from sklearn.linear_model import LogisticRegression

        yield cls(LogisticRegression(), rounds=2)
        yield cls(AdversarialLinearClassifier(max_iter=5), rounds=2, held_out=0.3, random_state=0)

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """Around a linear classifier, whose worst rows are exact, and around one that is
        attacked step by step.
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.svm import SVC

        yield cls(LogisticRegression(), rounds=3)
        yield cls(SVC(), rounds=2, steps=3)

    def __sklearn_tags__(self) -> Any:
        """Two classes or more, as the estimator takes them."""
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator).classifier_tags
        if inner is not None:
            tags.classifier_tags.multi_class = inner.multi_class
        return tags

    def fit(self, X: RowsLike, y: npt.ArrayLike) -> Self:
        """Play the rounds on rows X (n, d) and labels y (n,) of two or more classes."""
        self._check()
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError("y holds one class only: classification needs at least two")
        random = check_random_state(self.random_state)
        held = _held_out(codes, self.held_out, random)
        learner = _seeded(clone(self.estimator), random)
        self._play(
            learner,
            rows[~held],
            labels[~held],
            (rows[held], labels[held]) if held.any() else None,
            random,
        )
        self.facts_ = self._facts(rows, int(held.sum()))
        self.facts_ |= {"accuracy": self.accuracy_, "robust_accuracy": self.robust_accuracy_}
        return self

    def measure_again(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,  # noqa: ARG002
    ) -> dict[str, Any]:
        """The record's fields that the fitted model and the rows it was fitted on tell,
        measured again.
        """
        rows, labels = validate_data(self, X, y, dtype=np.float64, reset=False)
        classes, counts = np.unique(labels, return_counts=True)
        if not np.array_equal(classes, self.classes_):
            raise ValueError("y does not hold the classes that were fitted")
        held = sum(_share(count, self.held_out) for count in counts.tolist())
        return {**self._facts(rows, held), "estimator_claims": self._estimator_claims()}

    def _facts(self, X: Array, held_out: int) -> dict[str, Any]:
        return {
            "n": len(X),
            "d": X.shape[1],
            "classes": int(self.classes_.size),
            "radius": float(self.radius),
            "norm": self.norm,
            "held_out": held_out,
        }

    @property
    def record_(self) -> AdversarialRecord:
        """What happened in the fit, with the names of the claims that the classifier's own
        certificate makes.
        """
        check_is_fitted(self, "facts_")
        return AdversarialRecord.read(
            {"estimator_claims": self._estimator_claims(), **self.facts_}, strict=False
        )

    def _estimator_claims(self) -> tuple[tuple[str, str], ...]:
        inner = getattr(self.estimator_, "certificate_", None)
        return (
            ()
            if inner is None
            else tuple((claim.quantity, claim.theorem) for claim in inner.claims)
        )

    def _play(
        self,
        learner: Model,
        X: Array,
        y: AnyArray,
        watched: tuple[Array, Any] | None,
        random: np.random.RandomState,
    ) -> None:
        rows, measured, best = [X], [], -1.0
        for played in range(self.rounds + 1 if self.radius > 0 else 1):
            _fit(learner, rows, y)
            if not played:
                self._check_attack(learner)
            rows.append(self._worst(learner, X, y, random))
            seen = (
                (X, y, rows[-1])
                if watched is None
                else (*watched, self._worst(learner, *watched, random))
            )
            measured.append(_measured(learner, *seen))
            if measured[-1][1] >= best:
                best, self.round_, self.estimator_ = measured[-1][1], played, copy.deepcopy(learner)
        self.accuracy_, self.robust_accuracy_ = np.array(measured).T.copy()

    def _worst(self, learner: Model, X: Array, y: AnyArray, random: np.random.RandomState) -> Array:
        options: dict[str, Any] = {"norm": self.norm, "where": self.where, "steps": self.steps}
        return worst_rows(learner, X, y, radius=self.radius, random_state=random, **options)

    def predict(self, X: RowsLike) -> np.ndarray:
        """The class of every row."""
        return self._asked("predict", X)

    @available_if(_has("decision_function"))
    def decision_function(self, X: RowsLike) -> Array:
        """The estimator's scores."""
        return self._asked("decision_function", X)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: RowsLike) -> Array:
        """The estimator's probabilities (n, K), in the order of ``classes_``."""
        return self._asked("predict_proba", X)

    def _asked(self, method: str, X: RowsLike) -> Any:
        check_is_fitted(self, "facts_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return getattr(self.estimator_, method)(X)

    def _describe(self) -> Around:
        check_is_fitted(self, "facts_")
        return Around(self.estimator_)

    def _check(self) -> None:
        if not (hasattr(self.estimator, "fit") and is_classifier(self.estimator)):
            raise ValueError(
                f"estimator must be a scikit-learn classifier, not {type(self.estimator).__name__}"
            )
        if not (
            isinstance(self.radius, numbers.Real)
            and math.isfinite(self.radius)
            and self.radius >= 0
        ):
            raise ValueError(f"radius must be a finite number of at least 0, not {self.radius!r}")
        if self.norm not in ("linf", "l2"):
            raise ValueError(f"norm must be 'linf' or 'l2', not {self.norm!r}")
        for name in ("rounds", "steps"):
            value = getattr(self, name)
            stated.whole(name, value)
        if self.held_out is not None:
            stated.fraction("held_out", self.held_out)

    def _check_attack(self, learner: Model) -> None:
        f = score_function(learner)
        if isinstance(f.pullback, Lacking):
            raise ValueError(
                f"{f.name} has no gradient ({f.pullback.reason}), so projected gradient cannot find"
                " rows to train it on: PartitionClassifier and SmoothedClassifier take any"
                " classifier"
            )


def _fit(learner: Model, rows: list[Array], y: AnyArray) -> None:
    """Fit to all versions of the rows, each counting alike; weights, where they are taken, add
    up to one version's.
    """
    steps = getattr(learner, "steps", None)
    last, prefix = (steps[-1][1], f"{steps[-1][0]}__") if isinstance(steps, list) else (learner, "")
    weights = {}
    if len(rows) > 1 and has_fit_parameter(last, "sample_weight"):
        weights = {f"{prefix}sample_weight": np.full(len(rows) * len(y), 1.0 / len(rows))}
    learner.fit(np.concatenate(rows), np.tile(y, len(rows)), **weights)


def _measured(learner: Model, X: Array, y: AnyArray, worst: Array) -> tuple[float, float]:
    """The share of rows that are right, and that are right both as given and at their worst."""
    right = learner.predict(X) == y
    return float(right.mean()), float((right & (learner.predict(worst) == y)).mean())


def _held_out(
    codes: np.ndarray, share: float | None, random: np.random.RandomState
) -> npt.NDArray[np.bool_]:
    """Which rows are held out: so many of every class."""
    held = np.zeros(len(codes), dtype=bool)
    if share is None:
        return held
    for label in range(codes.max() + 1):
        rows = random.permutation(np.flatnonzero(codes == label))
        held[rows[: _share(len(rows), share)]] = True
    if not held.any():
        raise ValueError(
            f"held_out={share!r} holds out no row of {len(codes)}: give a larger share, or None"
        )
    return held


def _share(rows: int, share: float | None) -> int:
    """How many of a class's rows are held out."""
    return 0 if share is None else int(share * rows)


def _seeded(learner: Model, random: np.random.RandomState) -> Any:
    """The learner with a number for every ``random_state`` that is None."""
    names = [
        n
        for n, value in learner.get_params(deep=True).items()
        if n.split("__")[-1] == "random_state" and value is None
    ]
    return learner.set_params(**{name: int(random.randint(2**31 - 1)) for name in sorted(names)})
