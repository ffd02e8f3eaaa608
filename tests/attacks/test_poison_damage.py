"""Poison that raises a risk: the bilevel attack's total gradient and damage, flipped labels,
the curve of damage.
"""

import math

import numpy as np
import pytest

from surelearn.attacks.poison_allowed import Allowed
from surelearn.attacks.poison_bilevel import bilevel
from surelearn.attacks.poison_curve import damage_curve
from surelearn.attacks.poison_kernel import KernelRidgeObjective
from surelearn.attacks.poison_labels import flip_influential, flip_labels
from surelearn.attacks.poison_objectives import LinearObjective

LOGISTIC = LinearObjective(regularization=0.01)
SOFTMAX = LinearObjective(classes=3, regularization=0.01)
SQUARED = LinearObjective("squared", regularization=0.01)
KERNEL = KernelRidgeObjective(bandwidth=math.sqrt(2), regularization=0.02)


def rows(n=200, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    return X, np.clip(
        np.floor(X[:, 0] + 0.3 * rng.normal(size=n) + classes / 2), 0, classes - 1
    ).astype(int)


def problem(follower, n=200):
    classes = getattr(follower, "classes", 2)
    X, y = rows(n, classes)
    if follower in (SQUARED, KERNEL):
        y = np.where(y == 1, 1.0, -1.0)
    return X[: n // 2], y[: n // 2], X[n // 2 :], y[n // 2 :]


def network():
    torch = pytest.importorskip("torch")
    from surelearn.attacks.poison_modules import ModuleObjective

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    return ModuleObjective(net, regularization=0.01, damping=0.0, iterations=500)


@pytest.mark.parametrize("which", ["logistic", "softmax", "squared", "kernel", "network"])
def test_the_total_gradient_against_refits(which):
    follower = {"logistic": LOGISTIC, "softmax": SOFTMAX, "squared": SQUARED, "kernel": KERNEL}.get(
        which
    ) or network()
    X, y, X_outer, y_outer = problem(follower, 40)
    state = follower.fit(X, y)
    found = follower.total_gradient(state, X, y, 3, X_outer, y_outer)
    step = 1e-2 if which == "network" else 1e-4  # L-BFGS stops a little before the minimizer
    for i, j in ((-3, 0), (-1, 1)):
        risks = []
        for sign in (1, -1):
            moved = X.copy()
            moved[i, j] += sign * step
            risks.append(follower.risk(follower.fit(moved, y, start=state), X_outer, y_outer))
        assert found[i, j] == pytest.approx(
            (risks[0] - risks[1]) / (2 * step), rel=2e-2, abs=0.02 * np.abs(found).max()
        )


@pytest.mark.parametrize(
    "follower",
    [LOGISTIC, SOFTMAX, SQUARED, KERNEL],
    ids=["logistic", "softmax", "squared", "kernel"],
)
def test_the_bilevel_attack_raises_the_risk_within_its_range(follower):
    X, y, X_outer, y_outer = problem(follower)
    allowed = Allowed(low=-2.0, high=[2.0, 1.5])
    found = bilevel(follower, X, y, X_outer, y_outer, count=10, allowed=allowed, steps=20)
    assert allowed.holds(found.X, found.y, y)
    assert found.damage > 0
    assert found.after > found.risks[0] * 1.02  # more than the flipped copies that it began with
    refitted = follower.fit(np.vstack([X, found.X]), np.concatenate([y, found.y]))
    assert follower.risk(refitted, X_outer, y_outer) == pytest.approx(found.after, rel=1e-5)
    assert found.fraction == 0.1
    assert found.refits == 22


def test_the_bilevel_attack_raises_the_risk_of_a_network():
    X, y, X_outer, y_outer = problem(LOGISTIC)
    found = bilevel(
        network(), X, y, X_outer, y_outer, count=10, allowed=Allowed(low=-2.0, high=2.0), steps=8
    )
    assert found.after > found.before + 0.02
    assert np.abs(found.X).max() <= 2.0


def test_allowed_labels_hold_and_seeds_repeat():
    X, y, X_outer, y_outer = problem(LOGISTIC)
    found = [
        bilevel(
            LOGISTIC,
            X,
            y,
            X_outer,
            y_outer,
            count=4,
            allowed=Allowed(labels=(1,)),
            steps=2,
            random_state=seed,
        )
        for seed in (0, 0, 1)
    ]
    assert set(found[0].y.tolist()) == {1}
    np.testing.assert_array_equal(found[0].X, found[1].X)
    assert not np.array_equal(found[0].X, found[2].X)


def test_flipped_labels():
    _, y = rows(100, classes=3)
    found = flip_labels(y, 20, random_state=3)
    assert (found.y != y).sum() == 20
    np.testing.assert_array_equal(np.flatnonzero(found.y != y), found.rows)
    np.testing.assert_array_equal(found.y, flip_labels(y, 20, random_state=3).y)
    only = flip_labels(y, 10, labels=(2,))
    assert set(only.y[only.rows].tolist()) == {2}
    assert (y[only.rows] != 2).all()
    assert flip_labels(["a", "b"], 2, labels=("long",)).y.tolist() == ["long", "long"]


@pytest.mark.parametrize("objective", [LOGISTIC, SOFTMAX], ids=["logistic", "softmax"])
def test_flips_by_influence_hurt_more_than_random_ones(objective):
    X, y, X_outer, y_outer = problem(objective)
    chosen = flip_influential(objective, X, y, X_outer, y_outer, count=15)
    assert (chosen.y != y).sum() == 15
    at_random = [
        objective.risk(objective.fit(X, flip_labels(y, 15, random_state=seed).y), X_outer, y_outer)
        - chosen.before
        for seed in range(10)
    ]
    assert chosen.damage > max(at_random)


def test_the_curve_of_damage_and_its_budget():
    X, y = rows(400)
    fits = []

    def fit(rows, labels):
        fits.append(len(rows))
        w = LOGISTIC.fit(rows, labels)
        return lambda new: (LOGISTIC.decision(w, new)[:, 0] > 0).astype(int)

    curve = damage_curve(
        fit, X[:200], y[:200], X[200:], y[200:], fractions=(0.1, 0.45), repeats=4, refits=9
    )
    assert curve.refits == len(fits) == 9
    assert curve.risks.shape == (2, 4)
    assert curve.fractions.tolist() == [0.1, 0.45]
    assert (curve.spread > 0).any()
    assert curve.damage[1] > curve.damage[0]
    fits.clear()
    short = damage_curve(
        fit, X[:200], y[:200], X[200:], y[200:], fractions=(0.1, 0.2, 0.3), repeats=5, refits=5
    )
    assert short.risks.shape == (3, 1)
    assert short.asked == 5
    assert len(fits) == 4
    assert np.isnan(short.spread).all()


def test_the_curve_of_an_attack_that_adds_rows():
    X, y, X_outer, y_outer = problem(LOGISTIC)

    def attack(X, y, count, seed):
        found = bilevel(
            LOGISTIC, X, y, X_outer[:50], y_outer[:50], count=count, steps=3, random_state=seed
        )
        return np.vstack([X, found.X]), np.concatenate([y, found.y])

    def fit(rows, labels):
        w = LOGISTIC.fit(rows, labels)
        return lambda new: LOGISTIC.decision(w, new)[:, 0]

    curve = damage_curve(
        fit, X, y, X_outer[50:], y_outer[50:], attack=attack, fractions=(0.02, 0.2), repeats=2,
        loss=lambda score, label: np.logaddexp(0, -(2 * label - 1) * score),
    )  # fmt: skip
    assert curve.damage[1] > curve.damage[0] > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: flip_labels([1, 1], 1), "nothing to flip to"),
        (lambda: flip_labels([0, 1], 3), "count must be at most 2"),
        (lambda: flip_labels([0, 1], 0), "count must be a whole number of at least 1"),
        (lambda: bilevel(LOGISTIC, *problem(LOGISTIC), count=0), "count must be"),
        (
            lambda: bilevel(LOGISTIC, [[1.0]], [1], [[1.0]], [1, 2], count=1),
            "X_outer and y_outer must be rows",
        ),
        (
            lambda: bilevel(LOGISTIC, [[1.0]], [1], [[1.0]], [3], count=1),
            "y_outer must hold labels",
        ),
        (
            lambda: flip_influential(LOGISTIC, *problem(LOGISTIC), count=2, labels=(7, 8)),
            "labels must hold labels 0",
        ),
        (
            lambda: damage_curve(lambda *_: None, [[0]], [0], [[0]], [0], fractions=(0.0,)),
            "fractions must be",
        ),
        (lambda: damage_curve(lambda *_: None, [[0]], [0], [[0]], [0], refits=1), "refits must be"),
        (
            lambda: KernelRidgeObjective(bandwidth=0.0, regularization=1.0),
            "bandwidth must be a number above 0",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
