"""`Watch` and prediction sets: what of live rows counts, what is refused, and how often it is wrong."""

import numpy as np
import pytest

from surelearn.certification import certify, uncounted
from surelearn.monitoring import Watch

CLASSES = ("a", "b")


class Shares:
    """A model whose probabilities of two classes are its columns."""

    classes_ = np.array(CLASSES)

    def predict(self, X):
        return self.classes_[X.argmax(axis=1)]

    def predict_proba(self, X):
        return X


def rows(rng, n):
    """Truths, and a probability of each that is uniform."""
    y, p = rng.choice(2, n), rng.random(n)
    return np.where(np.arange(2) == y[:, None], p[:, None], 1 - p[:, None]), np.array(CLASSES)[y]


def made(**options):
    X, y = rows(np.random.default_rng(0), 400)
    with uncounted():
        return certify(Shares(), X, y, sets=0.1, majority="a", **options)


def test_live_rows_are_counted_by_their_sets():
    certificate = made()
    watch = Watch(certificate, "set_coverage")
    inside = np.array([[True, False], [False, False], [True, True], [False, True]])
    watch.update(["a", "a", "b", None], ["a"] * 4, sets=inside)
    assert (watch.rows, watch.headline.errors) == (3, 1)
    watch.update(
        ["b", "zebra"], ["a", "a"], sets=["a|b", "a|b"]
    )  # no set holds what no model knows
    assert (watch.rows, watch.headline.errors, watch.headline.unknown) == (5, 2, 1)
    assert "3 of 5, 60.0%" in str(watch)


def test_each_class_has_evidence_of_its_own_rows():
    watch = Watch(made(per_class=True), "class_coverage")
    watch.update(["a", "a", "b"], ["a"] * 3, sets=["a", "", "a"])
    assert [(each.rows, each.errors) for each in watch.watched] == [(2, 1), (1, 1)]
    watch.update(["zebra"], ["a"], sets=["a|b"])  # it is none of these classes
    assert [each.rows for each in watch.watched] == [2, 1]


def test_without_sets_there_is_no_evidence_about_them():
    watch = Watch(made()).update(["a"] * 50, ["a"] * 50)
    sets = next(each for each in watch.watched if each.claim.quantity == "set_coverage")
    assert sets.rows == 0
    assert watch.rows == 50


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (np.ones((2, 3), dtype=bool), "one column per class"),
        (np.ones((3, 2), dtype=bool), "one row per label"),
        (np.ones((2, 2)), "sets must be booleans"),
        (["a", "c"], "sets holds 'c', which is no label of the model"),
    ],
)
def test_sets_that_do_not_fit_are_refused_and_nothing_is_taken_in(sets, said):
    watch = Watch(made())
    with pytest.raises(ValueError, match=said):
        watch.update(["a", "b"], ["a", "a"], sets=sets)
    assert watch.rows == 0


def test_a_kept_watch_goes_on(tmp_path):
    certificate = made()
    X, y = rows(np.random.default_rng(1), 60)
    watch = Watch(certificate)
    for part in (slice(0, 30), slice(30, 60)):
        inside = certificate.sets.members(Shares(), X[part])
        watch.update(y[part], Shares().predict(X[part]), sets=inside)
        watch.save(tmp_path / "w.json")
        again = Watch.load(tmp_path / "w.json", certificate)
        assert str(again) == str(watch)
        watch = again
    assert watch.rows == 60


def test_alarms_are_as_rare_as_stated_and_come_where_coverage_fell():
    """The sets just keep what is certified; then they keep 75%."""
    certificate, rng, trials, delta = made(), np.random.default_rng(2), 60, 0.2
    alarms = {0.1: 0, 0.25: 0}
    for missed in alarms:
        for _ in range(trials):
            y = np.array(CLASSES)[rng.choice(2, 200)]
            other = np.where(y == "a", "b", "a")
            sets = np.where(rng.random(200) < missed, other, y)
            watch = Watch(certificate, "set_coverage", delta).update(y, y, sets=sets)
            alarms[missed] += watch.alarm
    assert alarms[0.1] <= trials * delta + 4 * np.sqrt(trials * delta * (1 - delta))
    assert alarms[0.25] > trials * 0.9
