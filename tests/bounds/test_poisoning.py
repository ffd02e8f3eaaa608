"""Thresholds of poisoning against brute force over poisoned rows, and the vote of partitions against all changes of it."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit, softmax

from surelearn.bounds.poisoning import (
    classification_pull,
    partition_radius,
    poisoning_threshold,
    poisoning_threshold_regression,
    regression_pull,
)

SLOPES = {
    "logistic": lambda t: -expit(-t),
    "hinge": lambda t: -(t <= 1).astype(float),
    "squared hinge": lambda t: -2 * np.maximum(0, 1 - t),
    "exponential": lambda t: -np.exp(-t),
}


@pytest.mark.parametrize("reach", [0.0, 0.3, 0.7, 5.0])
@pytest.mark.parametrize("loss", list(SLOPES))
def test_the_pull_of_a_row_is_the_largest_on_a_grid(loss, reach):
    t = np.linspace(-reach, reach, 200_001)
    assert classification_pull(loss, reach=reach) == pytest.approx((-t * SLOPES[loss](t)).max(), abs=1e-5)


@pytest.mark.parametrize("reach", [0.4, 30.0])
@pytest.mark.parametrize("classes", [2, 3, 6])
def test_the_pull_of_softmax_is_the_largest_over_all_scores(classes, reach):
    def pull(others):
        s = np.append(others, 0.0)  # differences to the label's own score
        return float(-(softmax(s) @ s))

    rng, box = np.random.default_rng(0), [(-reach, reach)] * (classes - 1)
    starts = rng.uniform(-min(reach, 4), min(reach, 4), (10, classes - 1))
    largest = max(-optimize.minimize(lambda s: -pull(s), start, bounds=box).fun for start in starts)
    assert classification_pull(classes=classes, reach=reach) == pytest.approx(largest, rel=1e-6)


@pytest.mark.parametrize("classes", [2, 3, 10, 1000])
def test_lambert_w_by_root_finding(classes):
    t = optimize.brentq(lambda t: math.exp(t) * (t - 1) - (classes - 1), 1, 30, xtol=1e-14)
    assert classification_pull(classes=classes) == pytest.approx(t - 1, rel=1e-12)
    assert poisoning_threshold(0.2, classes=classes) == pytest.approx(0.2 / (t - 1), rel=1e-12)


@pytest.mark.parametrize("reach", [0.2, 10.0])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_the_pull_of_regression_is_the_largest_on_a_grid(loss, reach):
    s, y = np.meshgrid(np.linspace(-reach, reach, 2001), np.linspace(-1.5, 1.5, 301))
    slope = 2 * (s - y) if loss == "squared" else np.where(s < y, -1.0, np.where(s > y, 1.0, -np.sign(s)))
    assert regression_pull(1.5, loss, reach) == pytest.approx((-s * slope).max(), abs=1e-3)


def clean_problem(seed=0, n=200, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    sign = np.where(X @ np.arange(1, d + 1) + rng.logistic(size=n) > 0, 1.0, -1.0)
    w = -rng.normal(size=d)
    return sign[:, None] * X, w  # rows times labels, and a target


def mean_gradient(rows, w):
    return -(expit(-rows @ w)[:, None] * rows).mean(axis=0)


def test_at_the_threshold_one_row_reaches_the_target_where_everything_is_allowed():
    rows, w = next((rows, w) for rows, w in map(clean_problem, range(9)) if w @ mean_gradient(rows, w) > 0.05)
    g = mean_gradient(rows, w)
    epsilon = poisoning_threshold(float(w @ g))
    t = 1 + classification_pull()
    across = g - (w @ g) / (w @ w) * w
    poison = t * w / (w @ w) + across / (epsilon * expit(-t))
    np.testing.assert_allclose(g + epsilon * mean_gradient(poison[None], w), 0, atol=1e-12)


@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_below_the_threshold_no_poison_reaches_the_target(decay):
    for seed in range(20):
        rows, w = clean_problem(seed)
        r = decay * float(w @ w)
        inner = float(w @ mean_gradient(rows, w))
        epsilon = min(0.999 * poisoning_threshold(inner, decay=r), 50.0)
        rng = np.random.default_rng(seed)
        for scale in (0.1, 1.0, 10.0):
            poison = rng.normal(size=(30, len(w))) * scale + rng.normal() * w / (w @ w)
            left = inner + epsilon * float(w @ mean_gradient(poison, w)) + (1 + epsilon) * r
            assert left > 0 or epsilon == 0


def test_a_penalty_moves_the_threshold():
    pull = classification_pull()
    assert poisoning_threshold(0.1, decay=0.1) == pytest.approx(0.2 / (pull - 0.1))
    assert poisoning_threshold(0.1, decay=pull) == math.inf
    assert poisoning_threshold(-0.2, decay=0.1) == 0.0
    assert poisoning_threshold(-0.2, decay=0.3) == math.inf  # the penalty alone is more than any poison pulls


def test_limits():
    assert poisoning_threshold(0.0) == 0.0
    assert poisoning_threshold(0.1, reach=0.0) == math.inf  # poison with scores of 0 pulls nowhere
    assert poisoning_threshold_regression(0.1, math.inf) == 0.0
    assert poisoning_threshold_regression(0.1, math.inf, reach=0.0) == math.inf
    np.testing.assert_allclose(regression_pull([1.0, math.inf]), [0.5, math.inf])
    np.testing.assert_allclose(poisoning_threshold([0.1, -0.1], "hinge"), [0.1, 0.0])


def test_the_claim_is_for_one_target_and_holds_always():
    claim = poisoning_threshold.certify(0.1)
    assert claim.confidence == "always"
    assert claim.relation == ">="
    assert any("this one target" in line for line in claim.assumptions)
    assert not claim.vacuous
    assert poisoning_threshold.certify(-0.1).vacuous


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: poisoning_threshold(0.1, classes=1), "classes must be at least 2"),
        (lambda: poisoning_threshold(0.1, "hinge", classes=3), "classes must be 2 for hinge loss"),
        (lambda: poisoning_threshold(0.1, "huber"), "loss must be logistic"),
        (lambda: poisoning_threshold(math.inf), "inner must be finite"),
        (lambda: poisoning_threshold(0.1, decay=-1.0), "decay must not be negative"),
        (lambda: poisoning_threshold_regression(0.1, -1.0), "target_bound must not be negative"),
        (lambda: poisoning_threshold_regression(0.1, 1.0, "hinge"), "loss must be squared or absolute"),
        (lambda: partition_radius(3, 4), "rival must not be above votes"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def winner(votes):
    """The class with most votes, the first of equal ones; −1 stands for a class that sorts before all."""
    counts = {c: votes.count(c) for c in sorted(set(votes) - {None})}
    return max(counts, key=lambda c: (counts[c], -c), default=None)


@pytest.mark.parametrize("votes", [(0, 0, 0, 1), (1, 1, 1, 1), (0, 0, 0, 0, 0), (1, 1, 1, 0, 2), (2, 2, 2, None, 1)])
def test_no_change_of_so_many_votes_changes_the_vote_and_one_more_does(votes):
    best, others = winner(votes), (-1, 0, 1, 2)
    rival = max(votes.count(c) + (c < best) for c in others if c != best)
    radius = int(partition_radius(votes.count(best), rival))

    def winners(changes):
        for where in itertools.combinations(range(len(votes)), changes):
            for new in itertools.product((None, *others), repeat=changes):
                changed = list(votes)
                for i, c in zip(where, new, strict=True):
                    changed[i] = c
                yield winner(changed)

    assert set(winners(radius)) == {best}
    assert len(set(winners(radius + 1))) > 1
