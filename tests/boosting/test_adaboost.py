"""AdaBoost over stumps: Algorithm 1 in exact arithmetic, the peer, and what happens at the
edges.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.tree import DecisionTreeClassifier

from surelearn import bounds
from surelearn.boosting import AdaBoostClassifier, DecisionStump

METHODS = ("exact", "binned")


def by_the_book(X, labels, weights, rounds):
    """Algorithm 1 (and SAMME), trying every stump in fractions: (feature, threshold, below,
    above, ε) of every round.
    """
    classes, D, made = max(labels) + 1, [Fraction(int(w)) for w in weights], []
    stumps = []
    for j in range(X.shape[1]):
        for a, b in pairwise(np.unique(X[:, j]).tolist()):
            sides = [(k, m) for k, m in product(range(classes), repeat=2) if classes > 2 or k != m]
            stumps += [(j, (a + b) / 2, *pair) for pair in sides]
    stumps += [(0, math.inf, k, k) for k in range(classes)]
    for _ in range(rounds):
        total, best = sum(D), None
        for j, threshold, below, above in stumps:
            answers = [below if x <= threshold else above for x in X[:, j].tolist()]
            wrong = [a != y for a, y in zip(answers, labels, strict=True)]
            error = sum(w for w, is_wrong in zip(D, wrong, strict=True) if is_wrong) / total
            if best is None or error < best[-2]:
                best = (j, threshold, below, above, error, wrong)
        assert best is not None
        *stump, error, wrong = best
        if error >= 1 - Fraction(1, classes) and made:
            break
        j, threshold, below, above = stump
        made.append(
            (*((j, threshold) if below != above else (0, math.inf)), below, above, float(error))
        )
        if error in (0, 1 - Fraction(1, classes)):
            break
        factor = (classes - 1) * (1 - error) / error
        D = [w * factor if is_wrong else w for w, is_wrong in zip(D, wrong, strict=True)]
    return made


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(30))
def test_it_is_algorithm_1(seed, method):
    rng = np.random.default_rng(seed)
    n, d, classes = int(rng.integers(4, 13)), int(rng.integers(1, 4)), 2 + seed % 3 // 2
    X = rng.integers(0, int(rng.integers(2, 8)), size=(n, d)).astype(float)
    if seed % 4 == 0:
        X[:, 0] = 7.0  # a constant column
    labels = np.concatenate([np.arange(classes), rng.integers(classes, size=n - classes)])
    weights = rng.integers(1, 4, size=n) if seed % 2 else np.ones(n)
    book = by_the_book(X, labels.tolist(), weights, 7)
    model = AdaBoostClassifier(7, method=method).fit(X, labels, sample_weight=weights)
    ours = zip(model.features_, model.thresholds_, model.below_, model.above_, strict=True)
    assert [tuple(stump) for stump in ours] == [stump[:4] for stump in book]
    np.testing.assert_allclose(model.estimator_errors_, [stump[4] for stump in book], atol=1e-9)
    stump = DecisionStump(method=method).fit(X, labels, sample_weight=weights)
    assert (stump.feature_, stump.threshold_, stump.below_, stump.above_) == book[0][:4]


def test_weights_and_scores_are_those_of_the_formula():
    X, y = load_breast_cancer(return_X_y=True)
    model = AdaBoostClassifier(5).fit(X, y)
    D, f = np.full(len(y), 1 / len(y)), np.zeros(len(y))
    signs = 2 * y - 1
    for t, scores in enumerate(model.staged_decision_function(X)):
        below = X[:, model.features_[t]] <= model.thresholds_[t]
        h = np.where(below, 2 * model.below_[t] - 1, 2 * model.above_[t] - 1)
        epsilon = D[h != signs].sum()
        alpha = 0.5 * np.log((1 - epsilon) / epsilon)
        assert model.estimator_weights_[t] == pytest.approx(alpha, rel=1e-9)
        D = D * np.exp(-alpha * signs * h)
        D /= D.sum()
        f = f + alpha * h
        np.testing.assert_allclose(scores, f, atol=1e-9)


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_scikit_learn_agrees_where_the_criterion_is_the_same(load):
    X, y = load(return_X_y=True)
    rng = np.random.default_rng(0)
    X = X + 1e-6 * rng.normal(size=X.shape)  # no ties
    theirs = sklearn.ensemble.AdaBoostClassifier(DecisionStump(), n_estimators=15).fit(X, y)
    ours = AdaBoostClassifier(15).fit(X, y)
    np.testing.assert_allclose(ours.estimator_errors_, theirs.estimator_errors_, atol=1e-9)
    np.testing.assert_allclose(
        ours.estimator_weights_ * (2 if len(set(y)) == 2 else 1), theirs.estimator_weights_
    )
    for a, b in zip(ours.staged_predict(X), theirs.staged_predict(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_first_stump_errs_no_more_than_a_tree_of_depth_one_and_often_is_it():
    rng, same = np.random.default_rng(0), 0
    for _ in range(40):
        X = rng.normal(size=(50, 3))
        y = (X[:, 0] + rng.normal(size=50) > 0).astype(int)
        tree, stump = DecisionTreeClassifier(max_depth=1).fit(X, y), DecisionStump().fit(X, y)
        assert stump.score(X, y) >= tree.score(X, y)
        same += bool(stump.score(X, y) == tree.score(X, y))
    assert same > 10


@pytest.mark.parametrize("classes", [2, 4])
def test_both_engines_agree_where_no_feature_has_more_than_255_values(classes):
    rng = np.random.default_rng(1)
    X = np.column_stack(
        [rng.integers(0, k, size=3000) for k in (2, 3, 40, 255)] + [np.full(3000, 2.0)]
    ).astype(float)
    y = (X[:, 1] + X[:, 2] / 20 + X[:, 3] / 100 + rng.normal(size=3000) > 3).astype(int) * (
        1 + rng.integers(classes - 1, size=3000)
    )
    one, other = (AdaBoostClassifier(300, method=method).fit(X, y) for method in METHODS)
    np.testing.assert_array_equal(one.features_, other.features_)
    np.testing.assert_array_equal(one.thresholds_, other.thresholds_)
    np.testing.assert_allclose(one.estimator_errors_, other.estimator_errors_, atol=1e-10)
    np.testing.assert_array_equal(one.margin_counts_, other.margin_counts_)
    np.testing.assert_array_equal(one.facts_["staged_errors"], other.facts_["staged_errors"])


def test_bins_hold_about_equally_many_rows_and_change_little():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20_000, 6))
    y = (X[:, :3].sum(axis=1) + rng.normal(size=20_000) > 0).astype(int)
    binned, exact = (
        AdaBoostClassifier(40).fit(X, y),
        AdaBoostClassifier(40, method="exact").fit(X, y),
    )
    assert (binned.facts_["method"], exact.facts_["method"]) == ("binned", "exact")
    assert abs(binned.score(X, y) - exact.score(X, y)) < 0.005
    np.testing.assert_allclose(
        binned.estimator_errors_[:3], exact.estimator_errors_[:3], atol=0.005
    )


@pytest.mark.parametrize("method", METHODS)
def test_every_prefix_of_a_long_run_errs_as_counted(method):
    """Weights pass 1e100 on the way, and are divided by their sum; edges end in the cycle of
    Rudin, Daubechies and Schapire (2004, Theorem 2): (√5 − 1)/2 for three weak learners of
    which each errs on one of three groups of rows.
    """
    X, y = np.arange(6.0)[:, None], np.array(["in", "in", "out", "out", "in", "in"])
    model = AdaBoostClassifier(1500, method=method).fit(X, y)
    assert np.log(2 * (1 - model.estimator_errors_)).sum() > np.log(1e100)  # of the sum of weights
    np.testing.assert_allclose(
        1 - 2 * model.estimator_errors_[-9:], (math.sqrt(5) - 1) / 2, atol=1e-9
    )
    wrong = [int((predicted != y).sum()) for predicted in model.staged_predict(X)]
    np.testing.assert_array_equal(wrong, model.facts_["staged_errors"])
    for counts, margins in zip(model.margin_counts_, model.staged_margins(X, y), strict=True):
        assert counts[15] == (margins <= 0.32 + 1e-9).sum()
        assert counts[49] == 6


def test_a_perfect_first_stump_is_the_vote():
    model = AdaBoostClassifier(50).fit([[1.0], [2.0], [3.0]], ["a", "b", "b"])
    assert (model.n_rounds_, model.stopped_, model.thresholds_.tolist()) == (
        1,
        "perfect stump",
        [1.5],
    )
    assert model.predict([[1.4], [1.6]]).tolist() == ["a", "b"]
    assert model.certificate_["training_error"].value == 0


def test_no_edge_ends_the_rounds():
    X, y = np.zeros((6, 2)), [0, 0, 1, 1, 2, 2]
    model = AdaBoostClassifier(50).fit(X, y)  # nothing is better than chance
    assert (model.n_rounds_, model.stopped_) == (1, "no edge")
    model = AdaBoostClassifier(50).fit(X, [0, 1, 1, 1, 1, 1])  # a constant is, once
    assert (model.n_rounds_, model.stopped_) == (1, "no edge")
    assert model.predict(X).tolist() == [1] * 6
    np.testing.assert_array_equal(model.feature_importances_, [0, 0])
    xor = AdaBoostClassifier(50).fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0])
    assert xor.stopped_ == "no edge"
    assert xor.certificate_["training_error"].value == pytest.approx(1.0)


def test_several_classes_with_a_side_in_balance_take_the_first():
    stump = DecisionStump().fit([[0.0], [1.0], [1.0]], [2, 0, 1])
    assert stump.predict([[0.0], [1.0]]).tolist() == [2, 0]


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_copies_and_zero_is_absent(method):
    rng = np.random.default_rng(4)
    X, y, weights = rng.normal(size=(60, 3)), rng.integers(3, size=60), rng.integers(0, 4, size=60)
    one = AdaBoostClassifier(20, method=method).fit(X, y, sample_weight=weights)
    other = AdaBoostClassifier(20, method=method).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights)
    )
    np.testing.assert_array_equal(one.thresholds_, other.thresholds_)
    np.testing.assert_allclose(one.estimator_weights_, other.estimator_weights_)


def test_importances_are_shares_of_the_vote():
    X, y = load_breast_cancer(return_X_y=True)
    model = AdaBoostClassifier(30).fit(X, y)
    share = model.estimator_weights_[model.features_ == 27].sum() / model.estimator_weights_.sum()
    assert model.feature_importances_[27] == pytest.approx(share)
    assert model.feature_importances_.sum() == pytest.approx(1)


def test_thresholds_lie_half_way_and_never_on_the_upper_value():
    low = np.nextafter(1.0, 2)
    high = np.nextafter(low, 2)
    assert low / 2 + high / 2 == high
    for method in METHODS:
        model = DecisionStump(method=method).fit([[low], [high]], [0, 1])
        assert low <= model.threshold_ < high
        assert DecisionStump(method=method).fit([[-1.7e308], [1.7e308]], [0, 1]).threshold_ == 0


def test_given_thresholds_are_the_only_cuts():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] > 0.3).astype(int)
    model = AdaBoostClassifier(5, thresholds=[[0.0, 0.25, 9.0], [-1.0, 1.0, -9.0]]).fit(X, y)
    assert set(model.thresholds_) <= {0.0, 0.25, -1.0, 1.0, np.inf}
    assert model.thresholds_[0] == 0.25
    assert model.record_.class_size == bounds.number_of_stumps(2, 3) == 2 * 6 + 2


def test_tables_with_names_and_words_for_classes():
    table = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "size": [0.0, 0.0, 1.0, 1.0]})
    model = AdaBoostClassifier().fit(table, ["young", "young", "old", "old"])
    assert model.feature_names_in_.tolist() == ["age", "size"]
    assert model.predict(table).tolist() == ["young", "young", "old", "old"]
    assert model.features_.tolist() == [0]  # both are perfect: the first wins
    table.loc[2, "size"] = np.nan
    with pytest.raises(
        ValueError, match=r"^X has missing values \(NaN\) in column 'size': fill them in .* first$"
    ):
        model.fit(table, ["young", "young", "old", "old"])
    with pytest.raises(ValueError, match="missing values"):
        model.predict(table)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (AdaBoostClassifier(0), "n_rounds must be a whole number of at least 1, not 0"),
        (AdaBoostClassifier(2.5), "n_rounds must be a whole number"),
        (
            AdaBoostClassifier(method="fast"),
            "method must be 'auto', 'exact' or 'binned', not 'fast'",
        ),
        (AdaBoostClassifier(method="exact", thresholds=[0.0]), "leave one of them out"),
        (DecisionStump(thresholds=[[0.0]] * 3), "thresholds must be an array"),
        (DecisionStump(thresholds=[np.inf]), "at most 255 finite numbers"),
        (DecisionStump(thresholds=np.arange(256.0)), "at most 255 finite numbers"),
    ],
)
def test_refusals(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])


def test_margins_of_every_round_and_their_plot():
    X, y = load_iris(return_X_y=True)
    model = AdaBoostClassifier(12).fit(X, y)
    for margins, predicted in zip(model.staged_margins(X, y), model.staged_predict(X), strict=True):
        assert ((margins > 0) <= (predicted == y)).all()
        assert (np.abs(margins) <= 1 + 1e-12).all()
    two = AdaBoostClassifier(12).fit(X[50:], y[50:])
    *_, last = two.staged_margins(X[50:], y[50:])
    signs = np.where(y[50:] == 2, 1, -1)
    np.testing.assert_allclose(
        last, signs * two.decision_function(X[50:]) / two.estimator_weights_.sum()
    )
    axes = two.plot_margins(X[50:], y[50:])
    assert [line.get_label() for line in axes.lines[:-1]] == [
        "1 round",
        "2 rounds",
        "5 rounds",
        "10 rounds",
        "12 rounds",
    ]
    assert len(two.plot_margins(X[50:], y[50:], rounds=[3]).lines) == 2
    with pytest.raises(ValueError, match="y holds 0, a class that was not fitted"):
        next(two.staged_margins(X, y))


def test_rows_that_weigh_next_to_nothing_are_still_wrong():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    weights = np.ones(60)
    weights[0] = 1e16
    model = AdaBoostClassifier(20).fit(X, y, sample_weight=weights)
    assert model.stopped_ != "perfect stump"
    true = weights[model.predict(X) != y].sum() / weights.sum()
    assert true <= model.certificate_["training_error"].value


def test_what_is_not_there_is_refused():
    X, y = np.arange(6.0)[:, None], np.array([0, 1, 0, 1, 0, 1])
    with pytest.raises(sklearn.exceptions.NotFittedError):
        _ = AdaBoostClassifier().feature_importances_
    model = AdaBoostClassifier(5).fit(X, y)
    with pytest.raises(ValueError, match="rounds must be numbers from 1 to"):
        model.plot_margins(X, y, rounds=[99])
    with pytest.raises(ValueError, match="delta must lie strictly"):
        model.prefix_bounds(3)
