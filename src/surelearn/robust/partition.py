"""A vote of learners on disjoint partitions of the rows: so many rows inserted or deleted
cannot change a prediction.
"""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, clone
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from surelearn import stated
from surelearn.base import Learner
from surelearn.bounds.holdout import clopper_pearson_lower
from surelearn.bounds.poisoning import BY_CONTENT, DETERMINISTIC, TIES, UNPREPARED, partition_radius
from surelearn.claim import Claim
from surelearn.fingerprint import fingerprint_model
from surelearn.lacking import Lacking
from surelearn.record import Writer
from surelearn.robust.record import PartitionRecord
from surelearn.subject import Closed, Parts
from surelearn.subject.closing import closed_form, through
from surelearn.subject.forms import VoteForm
from surelearn.types import Model, RowsLike

Array = npt.NDArray[Any]
SALT = b"surelearn partition"
ANY_ROWS = "the base learner can be fitted to whatever rows a partition may hold"


def partition_of(X: npt.ArrayLike, partitions: int) -> npt.NDArray[np.intp]:
    """The partition of each row, by a hash of its features alone: equal rows share one, and no row
    moves another.

    Examples
    --------
    >>> partition_of([[0.0, 1.0], [2.0, 3.0], [-0.0, 1.0]], 100)[[0, 2]].tolist()
    [12, 12]
    """
    rows = np.ascontiguousarray(np.asarray(X, dtype="<f8") + 0.0)  # −0 and 0 are one number
    hashes = (hashlib.blake2b(row.tobytes(), digest_size=8, key=SALT).digest() for row in rows)
    return np.array(
        [int.from_bytes(digest, "little") % partitions for digest in hashes], dtype=np.intp
    )


class PartitionClassifier(ClassifierMixin, Learner):
    """Deep partition aggregation: one learner a partition, each partition a hash's choice, and a
    majority vote.

    A row lies in one partition, by a hash of its features, and can change that learner's vote only.
    ⌊(n_a − n_b)/2⌋ rows, inserted or deleted, cannot change a prediction (Levine and Feizi, 2021).
    Relabeling a row counts one, since it stays where it is; another row in its place counts two.

    Parameters
    ----------
    base : the learner, deterministic given its rows; a decision tree unless told. Every
        ``random_state`` that is None is set to 0. Steps that learn from rows, such as scalers,
        belong inside it, in a pipeline
    partitions : how many; more partitions withstand more rows, and each learner sees fewer
    delta : the failure probability of claims about new rows

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn
    estimators_ : a fitted learner a partition, or None where it holds one class or nothing
    labels_ : for each partition the labels that it holds, as positions in ``classes_``
    sizes_ : rows in each partition

    Notes
    -----
    Learners see labels numbered within their partition and rows in an order of their content, so
    that nothing outside the partition reaches them. An empty partition does not vote, one with a
    single class votes for it, ties go to the class that sorts first, and a class that no row has
    yet counts as one that wins ties.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> model = PartitionClassifier(partitions=21).fit(X, X[:, 0] > 0)
    >>> model.predict([[2.0, 0.0]]), model.unchanged_rows([[2.0, 0.0]])
    (array([ True]), array([10]))
    """

    Record = PartitionRecord

    classes_: Array
    n_features_in_: int
    saved_as = "partition-classifier/1"

    def __init__(self, base: Model = None, partitions: int = 10, *, delta: float = 0.05) -> None:
        self.base = base
        self.partitions = partitions
        self.delta = delta

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Few partitions, and so many that some are empty."""
        yield cls()
        yield cls(partitions=100, delta=0.1)

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """Around trees, and around a learner without probabilities."""
        from sklearn.neighbors import NearestCentroid

        yield cls(partitions=3)
        yield cls(NearestCentroid(), partitions=2)

    def fit(self, X: RowsLike, y: npt.ArrayLike) -> PartitionClassifier:
        """Fit one learner to each partition of rows X (n, d) with labels y (n,)."""
        stated.whole("partitions", self.partitions)
        base = deterministic(
            DecisionTreeClassifier(random_state=0) if self.base is None else self.base
        )
        rows, answers = validate_data(self, X, y, dtype=np.float64)
        rows = rows + 0.0  # −0 and 0 are one number, as for the hash
        check_classification_targets(answers)
        self.classes_, labels = np.unique(answers, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                "y holds one class only: a classifier needs rows of at least two classes"
            )
        where = partition_of(rows, self.partitions)
        parts = [
            _ordered(np.flatnonzero(where == part), rows, labels) for part in range(self.partitions)
        ]
        # one base learner per partition; a partition of one label answers that
        self.labels_ = [np.unique(labels[part]) for part in parts]
        self.estimators_ = [
            clone(base).fit(rows[part], np.searchsorted(held, labels[part]))
            if held.size > 1
            else None
            for part, held in zip(parts, self.labels_, strict=True)
        ]
        self.sizes_ = np.bincount(where, minlength=self.partitions)
        self.facts_ = self._facts(*rows.shape)
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
        if not np.array_equal(np.unique(labels), self.classes_):
            raise ValueError("y does not hold the classes that were fitted")
        if not np.array_equal(
            np.bincount(partition_of(rows, self.partitions), minlength=self.partitions), self.sizes_
        ):
            raise ValueError("the rows fall into partitions of other sizes")
        return self._facts(*rows.shape)

    def _facts(self, n: int, d: int) -> dict[str, Any]:
        return {
            "n": n,
            "d": d,
            "partitions": int(self.partitions),
            "classes": int(self.classes_.size),
            "empty": int((self.sizes_ == 0).sum()),
            "smallest": int(self.sizes_.min()),
        }

    def votes(self, X: RowsLike) -> npt.NDArray[np.intp]:
        """How many learners vote for each class, (n, K)."""
        check_is_fitted(self, "facts_")
        Z = validate_data(self, X, dtype=np.float64, reset=False)
        counts, every = np.zeros((len(Z), self.classes_.size), dtype=np.intp), np.arange(len(Z))
        for held, learner in zip(self.labels_, self.estimators_, strict=True):
            if learner is not None:
                counts[every, held[np.asarray(learner.predict(Z), dtype=np.intp)]] += 1
            elif held.size:
                counts[:, held[0]] += 1
        return counts

    def predict(self, X: RowsLike) -> Array:
        """The class with most votes, the first of equal ones."""
        winners = self.votes(X).argmax(axis=1)
        return self.classes_[winners]

    def unchanged_rows(self, X: RowsLike) -> npt.NDArray[np.intp]:
        """For each prediction, how many training rows may be inserted or deleted, in all,
        without changing it.
        """
        return np.asarray(partition_radius(*_won_and_rival(self.votes(X))), dtype=np.intp)

    def claims(self, X: RowsLike) -> tuple[Claim, ...]:
        """The claim for each prediction: so many training rows, inserted plus deleted, do not
        change it.
        """
        counts = self.votes(X)
        won, rival = _won_and_rival(counts)
        writer = Writer(self.record_, self.delta, fingerprint_model(self))
        label = "inserted plus deleted rows that cannot change the prediction"
        return tuple(
            writer.claim(
                partition_radius,
                {},
                votes=int(a),
                rival=int(b),
                label=label,
                met=(BY_CONTENT, TIES),
                assumptions=(
                    ANY_ROWS,
                    f"it is about row {i} of those given, predicted as {self.classes_[best]}",
                ),
            )
            for i, (a, b, best) in enumerate(zip(won, rival, counts.argmax(1), strict=True))
        )

    def poisoned_accuracy(
        self, X: RowsLike, y: npt.ArrayLike, rows: int, *, delta: float | None = None
    ) -> Claim:
        """The claim that the accuracy on new rows is at least so much whichever ``rows`` are
        inserted or deleted, in all.

        A row of X, y, unseen in fitting, counts as a success where it is predicted right and
        withstands so many rows.
        """
        stated.whole("rows", rows, 0)
        y = np.asarray(y)
        right = self.predict(X) == y
        writer = Writer(self.record_, self.delta, fingerprint_model(self))
        return writer.claim(
            clopper_pearson_lower,
            {},
            successes=int((right & (self.unchanged_rows(X) >= rows)).sum()),
            n=len(y),
            delta=self.delta if delta is None else delta,
            quantity="accuracy_under_poison",
            label=f"accuracy with {rows} training rows inserted or deleted",
            assumptions=(DETERMINISTIC, UNPREPARED, ANY_ROWS),
        )

    def _describe(self) -> Parts:
        check_is_fitted(self, "facts_")
        return Parts(self._form)

    def _form(self) -> Closed | Lacking:
        """A smooth stand-in for the votes, where the members have gradients: votes themselves
        change in steps.
        """
        members, constant = [], np.zeros(self.classes_.size)
        for held, learner in zip(self.labels_, self.estimators_, strict=True):
            if learner is None:
                constant[held] += 1.0
                continue
            closed = closed_form(learner)
            if isinstance(closed, Lacking):
                return Lacking(
                    "closed form",
                    f"PartitionClassifier has no gradient: of its members, {closed.reason}",
                )
            members.append((through(closed)[1], held))
        return Closed(VoteForm(tuple(members), constant), None, "votes")


def deterministic(base: Model) -> Any:
    """A copy of the learner whose every ``random_state`` is a fixed number."""
    if not hasattr(base, "fit") or not hasattr(base, "get_params"):
        raise ValueError(f"base must be a scikit-learn classifier, not {type(base).__name__}")
    states = {
        name: value
        for name, value in base.get_params(deep=True).items()
        if name.split("__")[-1] == "random_state"
    }
    for name, value in states.items():
        if value is not None and not isinstance(value, numbers.Integral):
            raise ValueError(
                f"base has {name}={value!r}, which moves on with every fit: give a whole number, or"
                " None for 0"
            )
    return clone(base).set_params(**{name: 0 for name, value in states.items() if value is None})


def _ordered(part: Array, X: Array, labels: Array) -> Array:
    """The partition's rows in an order that depends on their content alone."""
    return part[np.lexsort((labels[part], *X[part].T[::-1]))]


def _won_and_rival(counts: Array) -> tuple[Array, Array]:
    """Votes of the winner, and the most that another class has, plus one where it sorts before;
    an unseen class has none.
    """
    best, rows = counts.argmax(axis=1), np.arange(len(counts))
    won = counts[rows, best]
    others = counts + (np.arange(counts.shape[1]) < best[:, None])
    others[rows, best] = 1  # a class that no row has yet may sort before all
    return won, others.max(axis=1)
