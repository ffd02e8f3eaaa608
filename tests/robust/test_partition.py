"""The vote of partitions: a learner like any other, whose certificate no inserted or deleted
rows can break.
"""

import hashlib
import itertools

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from surelearn.attacks.poison_labels import flip_labels
from surelearn.robust.partition import PartitionClassifier, deterministic, partition_of


def rows(n=120, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)).round(3)
    return X, np.clip(
        np.floor(X[:, 0] + 0.2 * rng.normal(size=n) + classes / 2), 0, classes - 1
    ).astype(int)


TREE = DecisionTreeClassifier(max_depth=2, random_state=0)


def test_no_single_insertion_or_deletion_breaks_a_certificate():
    X, y = rows(30)
    model = PartitionClassifier(TREE, partitions=6).fit(X, y)
    points = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=2)))
    before, certified = model.predict(points), model.unchanged_rows(points) >= 1
    assert certified.any()
    changed = 0
    others = [(np.delete(X, i, 0), np.delete(y, i)) for i in range(len(X))]
    # new classes, too
    others += [(np.vstack([X, x]), np.append(y, c)) for x in points for c in (-1, 0, 1, 2)]
    for X_other, y_other in others:
        after = PartitionClassifier(TREE, partitions=6).fit(X_other, y_other).predict(points)
        assert (after == before)[certified].all()
        changed += (after != before).sum()
    assert changed > 0  # where nothing is certified predictions do change


def strongest_rows(model, point, before, target):
    """A row for each partition whose learner does not vote for ``target``, next to the point;
    the winner's voters first.
    """
    near = point + np.random.default_rng(0).normal(size=(2000, 2)) * 1e-3
    row_of = dict(zip(partition_of(near, model.partitions).tolist(), near, strict=True))
    voters = zip(model.labels_, model.estimators_, strict=True)
    votes = [
        model.classes_[held[0 if e is None else int(e.predict(point[None])[0])]]
        for held, e in voters
    ]
    against = sorted(
        (part for part, vote in enumerate(votes) if vote != target),
        key=lambda part: votes[part] != before,
    )
    return np.array([row_of[part] for part in against])


@pytest.mark.parametrize("classes", [2, 3])
def test_an_attack_that_turns_a_partition_with_each_row_needs_more_rows_than_certified(classes):
    X, y = rows(400, classes=classes)
    model = PartitionClassifier(KNeighborsClassifier(n_neighbors=1), partitions=15).fit(X, y)
    tight = 0
    for point in np.random.default_rng(1).normal(size=(6, 2)):
        before, certified = model.predict(point[None])[0], int(model.unchanged_rows(point[None])[0])
        turned = {certified: False, certified + 1: False}
        for target, count in itertools.product({-1, *range(classes)} - {before}, turned):
            poison = strongest_rows(model, point, before, target)[:count]
            X_other, y_other = np.vstack([X, poison]), np.append(y, [target] * len(poison))
            after = (
                PartitionClassifier(model.base, partitions=15)
                .fit(X_other, y_other)
                .predict(point[None])[0]
            )
            turned[count] |= after != before
        assert not turned[certified]
        tight += turned[certified + 1]
    assert tight >= 4


def test_random_poison_never_breaks_a_certificate():
    X, y = rows(200, classes=3)
    points, _ = rows(50, seed=1)
    model = PartitionClassifier(TREE, partitions=20).fit(X, y)
    before, certified = model.predict(points), model.unchanged_rows(points)
    rng, largest = np.random.default_rng(0), int(certified.max())
    assert largest >= 3
    for trial in range(20):
        count = 1 + trial % largest
        deleted = rng.choice(len(X), rng.integers(0, count + 1), replace=False)
        inserted = rng.normal(size=(count - len(deleted), 2)) * 3
        X_other = np.vstack([np.delete(X, deleted, 0), inserted])
        y_other = np.append(np.delete(y, deleted), rng.integers(-1, 3, len(inserted)))
        after = PartitionClassifier(TREE, partitions=20).fit(X_other, y_other).predict(points)
        assert (after == before)[certified >= count].all()
        relabeled = flip_labels(y, count, random_state=trial).y  # a relabeled row counts one
        after = PartitionClassifier(TREE, partitions=20).fit(X, relabeled).predict(points)
        assert (after == before)[certified >= count].all()


class Picky(ClassifierMixin, BaseEstimator):
    """One answer for all points, which depends on every bit of the rows, the labels and their
    order.
    """

    def fit(self, X, y):
        self.classes_, self.answer_ = (
            np.unique(y),
            hashlib.sha256(X.tobytes() + y.tobytes()).digest()[0] % 2,
        )
        return self

    def predict(self, X):
        return np.full(len(X), self.answer_)


def test_the_order_of_rows_and_the_sign_of_zero_do_not_matter():
    X, y = rows(200)
    X[::5, 0] = 0.0
    other = X.copy()
    other[::5, 0] = -0.0
    order = np.random.default_rng(0).permutation(len(X))
    points, _ = rows(10, seed=1)
    for base in (Picky(), make_pipeline(StandardScaler(), LogisticRegression())):
        model, again = (PartitionClassifier(base, partitions=20) for _ in range(2))
        np.testing.assert_array_equal(
            model.fit(X, y).votes(points), again.fit(other[order], y[order]).votes(points)
        )


def test_a_row_changes_one_partition_only():
    X, y = rows(200)
    before = PartitionClassifier(Picky(), partitions=20).fit(X, y)
    for X_other, y_other in ((X[1:], y[1:]), (np.vstack([X, [[9.0, 9.0]]]), np.append(y, -1))):
        after = PartitionClassifier(Picky(), partitions=20).fit(X_other, y_other)
        assert np.abs(after.sizes_ - before.sizes_).sum() == 1
        same = after.sizes_ == before.sizes_
        answers = [
            [e.answer_ for e in np.array(model.estimators_)[same]] for model in (before, after)
        ]
        assert answers[0] == answers[1]


def test_a_class_that_no_row_had_may_win_a_tie():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(100, 2)), rng.normal(size=(100, 2)) + 20])
    y, point = np.repeat([0, 1], 100), np.zeros((1, 2))
    model = PartitionClassifier(KNeighborsClassifier(n_neighbors=1), partitions=4).fit(X, y)
    assert model.votes(point).tolist() == [[4, 0]]
    # not 2: two votes for an earlier class tie with two that are left
    assert model.unchanged_rows(point) == 1
    poison = strongest_rows(model, point[0], 0, -1)[:2]
    after = PartitionClassifier(model.base, partitions=4).fit(
        np.vstack([X, poison]), np.append(y, [-1, -1])
    )
    assert after.predict(point) == -1


def test_a_scaler_outside_the_vote_breaks_what_was_certified_inside_does_not():
    """The wrong use: one row, inserted before all rows are scaled together, reaches every
    learner.
    """
    X, y = rows(200)
    points, _ = rows(50, seed=1)
    poison = np.vstack([X, [[1e6, 0.0]]]), np.append(y, 0)

    def predictions(model, scaler, X, y):
        model.fit(scaler.fit_transform(X), y)
        return model.predict(scaler.transform(points)), model.unchanged_rows(
            scaler.transform(points)
        ) >= 1

    outside = StandardScaler(), PartitionClassifier(LogisticRegression(), partitions=11)
    inside = (
        FunctionTransformer(),
        PartitionClassifier(make_pipeline(StandardScaler(), LogisticRegression()), partitions=11),
    )
    for broken, (scaler, model) in ((True, outside), (False, inside)):
        before, certified = predictions(model, scaler, X, y)
        after, _ = predictions(model, scaler, *poison)
        assert ((before != after) & certified).any() == broken


def test_partitions_are_disjoint_and_about_equal():
    X, y = rows(1000)
    model = PartitionClassifier(partitions=10).fit(X, y)
    assert model.sizes_.sum() == 1000
    assert 60 < model.sizes_.min() <= model.sizes_.max() < 150
    np.testing.assert_array_equal(
        partition_of(X, 10)[:5], partition_of(X[:5].astype(np.float32).astype(float).round(3), 10)
    )


def test_empty_partitions_do_not_vote():
    X, y = rows(12)
    model = PartitionClassifier(TREE, partitions=100).fit(X, y)
    assert model.facts_["empty"] > 80
    assert (model.votes(X).sum(axis=1) == (model.sizes_ > 0).sum()).all()


def test_claims():
    X, y = rows(300)
    model = PartitionClassifier(TREE, partitions=21).fit(X, y)
    claims = model.claims(X[:5])
    assert [claim.value for claim in claims] == model.unchanged_rows(X[:5]).tolist()
    assert all(
        claim.confidence == "always" and claim.recompute() == claim.value for claim in claims
    )
    assert any("deterministic" in line for line in claims[0].assumptions)
    new, truth = rows(500, seed=5)
    plain, under = (model.poisoned_accuracy(new, truth, count) for count in (0, 5))
    assert under.value < plain.value < (model.predict(new) == truth).mean()
    assert under.confidence == 0.95
    assert "5 training rows" in under.label
    assert model.certificate_.lacking[0].reason.startswith("the claim is one for each prediction")
    assert model.certificate_.verify(model, X, y)
    assert "partitions of other sizes" in str(model.certificate_.verify(model, X + 1, y))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PartitionClassifier(partitions=0), "partitions must be a whole number of at least 1"),
        (PartitionClassifier(partitions=2.5), "partitions must be a whole number"),
        (PartitionClassifier("tree"), "base must be a scikit-learn classifier, not str"),
        (
            PartitionClassifier(DecisionTreeClassifier(random_state=np.random.RandomState(0))),
            "moves on with every fit",
        ),
    ],
)
def test_bad_input(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*rows())


def test_bad_questions():
    X, y = rows()
    with pytest.raises(ValueError, match="one class only"):
        PartitionClassifier().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="rows must be a whole number"):
        PartitionClassifier().fit(X, y).poisoned_accuracy(X, y, -1)


def test_every_random_state_is_fixed():
    made = deterministic(make_pipeline(StandardScaler(), DecisionTreeClassifier()))
    assert made[-1].random_state == 0
    assert deterministic(DecisionTreeClassifier(random_state=3)).random_state == 3


def test_the_accuracy_under_poison_holds_as_often_as_it_says():
    rng, delta, trials, wrong = np.random.default_rng(3), 0.1, 150, 0
    X = rng.normal(size=(8200, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=8200) > 0).astype(int)
    model = PartitionClassifier(TREE, partitions=9).fit(X[:200], y[:200])
    X, y = X[200:], y[200:]
    true = np.mean((model.predict(X) == y) & (model.unchanged_rows(X) >= 2))
    for _ in range(trials):
        some = rng.permutation(len(y))[:60]
        wrong += model.poisoned_accuracy(X[some], y[some], 2, delta=delta).value > true
    assert 0 < wrong <= trials * delta + 3 * np.sqrt(trials * delta * (1 - delta))
