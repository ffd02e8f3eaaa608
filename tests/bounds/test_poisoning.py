"""Thresholds of poisoning against brute force over poisoned rows, and the vote of partitions
against all changes of it.
"""

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
    poisoning_threshold_machines,
    poisoning_threshold_regression,
    regression_pull,
)

SLOPES = {
    "logistic": lambda t: -expit(-t),
    "hinge": lambda t: -(t <= 1).astype(float),
    "squared hinge": lambda t: -2 * np.maximum(0, 1 - t),
    "squared": lambda t: 2 * (t - 1),
    "exponential": lambda t: -np.exp(-t),
}


@pytest.mark.parametrize("reach", [0.0, 0.3, 0.7, 5.0])
@pytest.mark.parametrize("loss", list(SLOPES))
def test_the_pull_of_a_row_is_the_largest_on_a_grid(loss, reach):
    t = np.linspace(-reach, reach, 200_001)
    assert classification_pull(loss, reach=reach) == pytest.approx(
        (-t * SLOPES[loss](t)).max(), abs=1e-5
    )


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


def drop(loss, scores, h=1e-6):
    """How fast a loss falls as all scores shrink, −⟨w, ∇_w ℓ⟩ = −(d/dα) ℓ(α·s) at α = 1, from
    its values alone.
    """
    return (loss((1 - h) * scores) - loss((1 + h) * scores)) / (2 * h)


@pytest.mark.parametrize("reach", [0.4, 30.0])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_pull_of_the_hinge_of_many_classes_is_the_largest_over_all_scores(classes, reach):
    def hinge(s):
        return np.maximum(0, 1 + s[:, 1:].max(axis=1) - s[:, 0])

    s = np.random.default_rng(0).uniform(-min(reach, 3) / 2, min(reach, 3) / 2, (400_000, classes))
    pulls = drop(hinge, s)
    assert classification_pull("hinge", classes, reach) >= pulls.max() - 1e-8
    assert classification_pull("hinge", classes, reach) == pytest.approx(pulls.max(), abs=0.05)


def regression_loss(name, r, tube, knee):
    if name == "huber":
        return np.where(np.abs(r) <= knee, r**2 / 2, knee * (np.abs(r) - knee / 2))
    return np.maximum(np.abs(r) - tube, 0) ** (2 if name == "squared" else 1)


@pytest.mark.parametrize("reach", [0.2, 1.1, 10.0])
@pytest.mark.parametrize(("tube", "knee"), [(0.0, 0.3), (0.4, 0.75), (1.4, 1.0), (2.0, 5.0)])
@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
def test_the_pull_of_regression_is_the_largest_on_a_grid(loss, tube, knee, reach):
    s, y = np.meshgrid(np.linspace(-min(reach, 2), min(reach, 2), 4001), np.linspace(-1.5, 1.5, 31))
    pulls = drop(lambda s: regression_loss(loss, s - y, tube, knee), s)
    found = regression_pull(1.5, loss, reach, tube, knee)
    assert found >= pulls.max() - 1e-8
    assert found == pytest.approx(max(pulls.max(), 0), abs=2e-3)


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
def test_at_the_threshold_one_row_reaches_a_regression_where_every_row_is_allowed(loss):
    rng, Y, knee, tube = np.random.default_rng(1), 2.0, 0.6, 0.0 if loss == "huber" else 0.1
    X, w = rng.normal(size=(100, 3)), np.array([-0.5, 0.4, 0.2])
    y = np.clip(-X @ w + 0.1 * rng.normal(size=100), -Y, Y)

    def gradient(X, y, h=1e-6):
        values = [
            regression_loss(loss, X @ (w + step) - y, tube, knee).mean()
            for e in np.eye(3) * h
            for step in (e, -e)
        ]
        return np.array(values).reshape(3, 2) @ [1, -1] / (2 * h)

    g = gradient(X, y)
    epsilon = poisoning_threshold_regression(float(w @ g), Y, loss, tube=tube, knee=knee)
    assert epsilon > 0.1
    # the row with the largest pull
    s = {"squared": (Y - tube) / 2, "absolute": Y - tube - 1e-4, "huber": Y - knee}[loss]
    slope = {"squared": 2 * (Y - tube - s), "absolute": 1.0, "huber": knee}[loss]
    across = g - (w @ g) / (w @ w) * w
    poison = s * w / (w @ w) + across / (epsilon * slope)
    np.testing.assert_allclose(g + epsilon * gradient(poison[None], np.array([Y])), 0, atol=2e-3)


def least_poison(needs, classes):
    """The least poison of all classes, so that each pair of them has what its machine needs: a
    linear program.
    """
    pairs = list(itertools.combinations(range(classes), 2))
    counts = -np.array([[float(k in pair) for k in range(classes)] for pair in pairs])
    return optimize.linprog(
        np.ones(classes), A_ub=counts, b_ub=-np.asarray(needs), method="highs"
    ).fun


@pytest.mark.parametrize("classes", [3, 4, 6])
def test_machines_of_pairs_need_no_less_than_the_theorem_says(classes):
    rng, pairs = np.random.default_rng(classes), classes * (classes - 1) // 2
    for _ in range(100):
        inner, share = rng.uniform(-0.2, 1, pairs), rng.uniform(0.1, 0.9, pairs)
        inner[0] *= rng.integers(1, 5)
        bound = poisoning_threshold_machines(inner, share, together=classes - 1)
        least = least_poison(share * np.maximum(inner, 0), classes)  # the hinge pulls by 1
        assert bound <= least + 1e-9
        assert classes > 3 or bound == pytest.approx(least)  # a triangle: nothing less is true


def test_machines_against_the_rest_need_what_the_hardest_needs():
    inner, decay = np.array([0.1, 0.3, -0.2]), np.array([0.05, 0.01, 0.0])
    each = poisoning_threshold(inner, "squared hinge", decay=decay)
    assert poisoning_threshold_machines(inner, loss="squared hinge", decay=decay) == pytest.approx(
        each.max()
    )
    assert poisoning_threshold_machines([0.1, -0.2], reach=[0.5, 0.0]) == pytest.approx(0.2)
    assert poisoning_threshold_machines([-0.1, -0.2]) == 0.0
    assert poisoning_threshold_machines(
        [0.1, 0.1], share=[0.0, 0.5], decay=[2.0, 0.0]
    ) == pytest.approx(0.05)
    assert poisoning_threshold_machines([0.1, 0.1], decay=[2.0, 0.0]) == math.inf


@pytest.mark.parametrize("loss", ["hinge", "squared hinge", "exponential", "logistic"])
def test_no_poison_moves_all_machines_with_less(loss):
    """One against one, three classes: −⟨w_k, Σ g_k⟩ of any rows and labels is too little for
    some machine.
    """
    rng, pairs = np.random.default_rng(0), [(0, 1), (0, 2), (1, 2)]
    pull = classification_pull(loss)
    for _ in range(30):
        W, labels = rng.normal(size=(3, 4)), rng.integers(3, size=rng.integers(1, 40))
        scores = rng.normal(size=(len(labels), 4)) @ W.T * rng.choice([0.1, 1.0])
        reached = [
            (-t * SLOPES[loss](t)).sum()
            for k, (a, b) in enumerate(pairs)
            for t in [
                np.where(labels == a, 1.0, -1.0)[np.isin(labels, (a, b))]
                * scores[np.isin(labels, (a, b)), k]
            ]
            # what the poison can balance, in rows: a clean set that needs it exactly, of 100 rows
            # with
            # 70 for each machine
        ]
        needed = poisoning_threshold_machines(np.array(reached) / 70, 0.7, together=2, loss=loss)
        assert needed <= len(labels) / 100 + 1e-12
        assert needed >= max(reached) / pull / 100 - 1e-12


def clean_problem(seed=0, n=200, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    sign = np.where(X @ np.arange(1, d + 1) + rng.logistic(size=n) > 0, 1.0, -1.0)
    w = -rng.normal(size=d)
    return sign[:, None] * X, w  # rows times labels, and a target


def mean_gradient(rows, w):
    return -(expit(-rows @ w)[:, None] * rows).mean(axis=0)


def test_at_the_threshold_one_row_reaches_the_target_where_everything_is_allowed():
    rows, w = next(
        (rows, w) for rows, w in map(clean_problem, range(9)) if w @ mean_gradient(rows, w) > 0.05
    )
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
    # the penalty alone is more than any poison pulls
    assert poisoning_threshold(-0.2, decay=0.3) == math.inf


def test_limits():
    assert poisoning_threshold(0.0) == 0.0
    assert poisoning_threshold(0.1, reach=0.0) == math.inf  # poison with scores of 0 pulls nowhere
    assert poisoning_threshold_regression(0.1, math.inf) == 0.0
    assert poisoning_threshold_regression(0.1, math.inf, reach=0.0) == math.inf
    np.testing.assert_allclose(regression_pull([1.0, math.inf]), [0.5, math.inf])
    assert regression_pull(math.inf, "huber", knee=0.3, reach=2.0) == pytest.approx(0.6)
    assert regression_pull(math.inf, "huber") == math.inf
    np.testing.assert_allclose(classification_pull("hinge", [2, 5]), [1.0, 1.0])
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
        (
            lambda: poisoning_threshold(0.1, "exponential", classes=3),
            "classes must be 2 for exponential loss",
        ),
        (lambda: poisoning_threshold(0.1, "huber"), "loss must be one of logistic, hinge"),
        (lambda: poisoning_threshold(math.inf), "inner must be finite"),
        (lambda: poisoning_threshold(0.1, decay=-1.0), "decay must not be negative"),
        (lambda: poisoning_threshold_regression(0.1, -1.0), "target_bound must not be negative"),
        (
            lambda: poisoning_threshold_regression(0.1, 1.0, "hinge"),
            "loss must be squared, absolute or huber",
        ),
        (lambda: poisoning_threshold_regression(0.1, 1.0, tube=math.inf), "tube must be finite"),
        (
            lambda: poisoning_threshold_regression(0.1, 1.0, "huber", knee=0.0),
            "knee must be positive",
        ),
        (lambda: poisoning_threshold_machines(0.1), "inner must hold one number for each machine"),
        (
            lambda: poisoning_threshold_machines([0.1, 0.2], together=3),
            "together must not be more than",
        ),
        (
            lambda: poisoning_threshold_machines([0.1, 0.2], share=[0.1] * 3),
            "share must be one number, or one for each",
        ),
        (lambda: partition_radius(3, 4), "rival must not be above votes"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def winner(votes):
    """The class with most votes, the first of equal ones; −1 stands for a class that sorts
    before all.
    """
    counts = {c: votes.count(c) for c in sorted(set(votes) - {None})}
    return max(counts, key=lambda c: (counts[c], -c), default=None)


@pytest.mark.parametrize(
    "votes", [(0, 0, 0, 1), (1, 1, 1, 1), (0, 0, 0, 0, 0), (1, 1, 1, 0, 2), (2, 2, 2, None, 1)]
)
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
