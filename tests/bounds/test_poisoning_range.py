"""Poison within a range: against the least poison that linear programs find, weight by weight,
and against attacks.
"""

import math
from typing import cast

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit, softmax

from surelearn.bounds.poisoning import ClassLoss, classification_pull, poisoning_threshold
from surelearn.bounds.poisoning_range import (
    poisoning_threshold_flipped,
    poisoning_threshold_moved,
    poisoning_threshold_reversed,
)

SLOPES = {
    "logistic": lambda t: -expit(-t),
    "hinge": lambda t: -(t < 1).astype(float),
    "squared hinge": lambda t: -2 * np.maximum(0, 1 - t),
    "squared": lambda t: 2 * (t - 1),
    "exponential": lambda t: -np.exp(-t),
}
GRID = np.linspace(-1, 1, 41)
# every row inside the range, on a grid
POISON = np.array([(x, 1.0, y) for x in GRID for y in (-1.0, 1.0)])


def clean_rows(seed):
    """Twelve rows of one column in [−1, 1] and an intercept, labels, and weights that get a few
    wrong.
    """
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=12)
    y = np.where(x + 0.4 * rng.normal(size=12) + 0.2 * rng.normal() > 0, 1.0, -1.0)
    design = np.column_stack([x, np.ones(12)])
    objective = lambda w: np.logaddexp(0, -y * (design @ w)).mean() + 0.02 * w @ w  # noqa: E731
    return design, y, optimize.minimize(objective, [1.0, 0.0]).x


def least_poison(loss, target, design, y, penalty=0.0, penalized=(1.0, 1.0)):
    """The least mass of poison on the grid with which the gradient vanishes at the target; ∞
    where there is none.
    """
    shrink = 2 * penalty * np.array(penalized) * target
    clean = (SLOPES[loss](y * (design @ target)) * y) @ design / len(y) + shrink
    rows, labels = POISON[:, :2], POISON[:, 2]
    pulls = (SLOPES[loss](labels * (rows @ target)) * labels)[:, None] * rows + shrink
    found = optimize.linprog(np.ones(len(POISON)), A_eq=pulls.T, b_eq=-clean)
    return found.fun if found.status == 0 else math.inf


def flipping(design, w, angles=60, sizes=(0.01, 0.5, 4.0)):
    """Weights with the other sign of every clean score."""
    for angle in np.linspace(0, 2 * np.pi, angles, endpoint=False):
        unit = np.array([np.cos(angle), np.sin(angle)])
        if ((design @ unit) * (design @ w) <= 0).all():
            yield from (size * unit for size in sizes)
    yield from (-t * w for t in (1e-3, 0.1, 1.0))


def directions(w):
    """The column, the intercept and the weights, with the largest score in the range of each."""
    column, constant = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    yield from ((sign * v, 1.0) for v in (column, constant) for sign in (1, -1))
    yield w, float(np.abs(w).sum())


def best_claim(loss, design, y, w, penalty=0.0, penalized=(1.0, 1.0)):
    right, values = y * (design @ w) > 0, []
    for v, reach in directions(w):
        along = y * (design @ v)
        gain = float(np.where(right, along, np.minimum(along, 0)).mean())
        decay = 2 * penalty * float(np.sum(np.array(penalized) * v * v))
        values.append(
            poisoning_threshold_flipped(gain, reach, float(1 - right.mean()), loss, decay)
        )
    return max(values)


@pytest.mark.parametrize("loss", list(SLOPES))
@pytest.mark.parametrize(("penalty", "penalized"), [(0.0, (1, 1)), (0.05, (1, 1)), (0.05, (1, 0))])
def test_no_weights_that_flip_every_answer_are_reached_with_less(loss, penalty, penalized):
    claims = []
    for seed in range(3):
        design, y, w = clean_rows(seed)
        claims.append(claim := best_claim(loss, design, y, w, penalty, penalized))
        targets = list(flipping(design, w, 60 if loss == "logistic" else 30))
        least = min(least_poison(loss, target, design, y, penalty, penalized) for target in targets)
        assert claim <= least + 1e-9, (seed, claim, least)
        if loss == "logistic" and penalty == 0:
            wrong = np.mean(y * (design @ w) <= 0)
            # and it is nearly exact
            assert least <= 1.05 * (claim + 2 * classification_pull() * wrong) + 0.02
    assert max(claims) > 0.1


def test_a_claim_for_minus_w_alone_is_broken_by_shorter_weights():
    """The mutant: the threshold of −w, read as one of all weights that flip every answer."""
    design, y, w = clean_rows(1)
    w = 8 * w  # long weights, as of a fit with little penalty
    gradient = (SLOPES["logistic"](-y * (design @ w)) * y) @ design / len(y)
    mutant = poisoning_threshold(float(-w @ gradient), reach=float(np.abs(w).sum()))
    least = least_poison("logistic", -1e-3 * w, design, y)
    assert ((design @ w) * (design @ (-1e-3 * w)) <= 0).all()
    assert best_claim("logistic", design, y, w) <= least < mutant / 3


@pytest.mark.parametrize("loss", list(SLOPES))
def test_the_threshold_of_reversed_weights_is_the_infimum_over_their_lengths(loss):
    for seed in range(4):
        design, y, w = clean_rows(seed)
        w, reach = 5 * w, 5 * float(np.abs(w).sum())
        value = poisoning_threshold_reversed(float(np.mean(y * (design @ w))), reach)
        each = []
        for t in np.geomspace(1e-5, 10, 60):
            margins = -t * y * (design @ w)
            inner = float(np.mean(margins * SLOPES[loss](margins)))
            each.append(poisoning_threshold(inner, loss, reach=t * reach))
        assert value <= min(each) + 1e-12
        assert value == pytest.approx(min(each), rel=1e-3)


def test_reversed_weights_of_several_classes():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, size=(40, 2)), rng.integers(3, size=40)
    W = np.eye(3)[:, :2] * 3 + rng.normal(size=(3, 2)) * 0.1
    y = np.where(rng.random(40) < 0.9, (X @ W.T).argmax(1), y)
    corners = np.array([(a, b) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]) @ W.T
    gain = np.mean((X @ W.T)[np.arange(40), y] - (X @ W.T).mean(1))
    value = poisoning_threshold_reversed(
        gain, float((corners.mean(1, keepdims=True) - corners).max())
    )
    grid = np.array([(a, b) for a in GRID for b in GRID]) @ W.T
    assert value > 0.1
    for t in np.geomspace(1e-4, 3, 20):
        s, z = -t * X @ W.T, -t * grid
        inner = np.mean((softmax(s, 1) * s).sum(1) - s[np.arange(40), y])
        pull = (z - (softmax(z, 1) * z).sum(1, keepdims=True)).max()
        assert value <= inner / pull + 1e-12
    assert value == pytest.approx(inner_limit(X, y, W, grid), rel=1e-6)


def inner_limit(X, y, W, grid, t=1e-7):
    s, z = -t * X @ W.T, -t * grid
    inner = np.mean((softmax(s, 1) * s).sum(1) - s[np.arange(len(y)), y])
    return inner / (z - (softmax(z, 1) * z).sum(1, keepdims=True)).max()


@pytest.mark.parametrize("grows", [True, False])
def test_no_poison_moves_the_weights_farther(grows):
    rng = np.random.default_rng(0)
    for seed in range(6):
        design, y, _ = clean_rows(seed)
        penalty = (0.01, 0.1, 1.0)[seed % 3]

        def fitted(count, rows, labels, design=design, y=y, penalty=penalty):
            total = (len(y) + count) if grows else len(y)

            def objective(u):
                every = np.concatenate([y * (design @ u), labels * (rows @ u)])
                return np.logaddexp(0, -every).sum() / total + penalty * u @ u

            return optimize.minimize(objective, np.zeros(2), tol=1e-12).x

        w = fitted(0, design[:0], y[:0])
        for count in (1, 3, 12):
            for _ in range(3):
                rows = np.column_stack([rng.choice([-1.0, 1.0], size=count), np.ones(count)])
                moved = float(
                    np.linalg.norm(fitted(count, rows, rng.choice([-1.0, 1.0], size=count)) - w)
                )
                needed = poisoning_threshold_moved(
                    moved, float(np.linalg.norm(w)), math.sqrt(2), penalty
                )
                assert needed <= count / len(y) * (1 + 1e-4)


def test_numbers_by_hand():
    pull = classification_pull()
    assert poisoning_threshold_flipped(0.5, 2.0) == 0.25
    assert poisoning_threshold_flipped(0.5, 2.0, wrong=0.1) == pytest.approx(0.25 - 0.1 * pull)
    assert poisoning_threshold_flipped(0.5, 1.0, decay=0.1) == pytest.approx(0.4 / 1.1)
    assert poisoning_threshold_flipped(0.5, 1.0, 0.1, "squared hinge", 0.8) == pytest.approx(
        (0.5 - 0.025 - 0.1) / 1.1
    )
    assert poisoning_threshold_flipped(0.5, 1.0, loss="hinge") == 0.5
    hinge = [
        (0.5 - 0.1 * t - 0.01 / (4 * t)) / (1 + t + 0.01 / (4 * t))
        for t in np.linspace(0.001, 1, 10000)
    ]
    assert poisoning_threshold_flipped(0.5, 1.0, 0.1, "hinge", 0.01) == pytest.approx(
        max(hinge), rel=1e-3
    )
    assert poisoning_threshold_flipped(0.5, 1.0, 0.1, "hinge", 0.01) <= max(hinge)
    assert poisoning_threshold_moved(1.0, 2.0, 5.0, 0.5) == pytest.approx(1 / 8)
    assert poisoning_threshold_moved(1.0, 2.0, 5.0, 0.5, slope=2.0, residual=0.5) == pytest.approx(
        0.5 / 13
    )


def test_thresholds_fall_with_what_helps_the_poison():
    grid = np.linspace(0.1, 3, 30)
    for values in (
        poisoning_threshold_flipped(0.3, grid, 0.1, decay=0.01),
        poisoning_threshold_flipped(0.3, 1.0, grid / 3, loss="hinge", decay=0.01),
        poisoning_threshold_flipped(0.3, 1.0, 0.1, decay=grid),
        poisoning_threshold_reversed(0.3, grid),
        poisoning_threshold_moved(1.0, grid, 2.0, 0.1),
        poisoning_threshold_moved(1.0, 2.0, grid, 0.1, residual=0.01),
        poisoning_threshold_moved(1.0, 2.0, 3.0, 0.1, residual=grid / 20),
    ):
        assert (np.diff(values) <= 1e-15).all()
        assert values[0] > values[-1]


def test_nothing_is_claimed_without_a_range():
    assert poisoning_threshold_flipped(0.5, math.inf) == 0.0
    assert poisoning_threshold_reversed(0.5, math.inf) == 0.0
    assert poisoning_threshold_moved(1.0, 2.0, math.inf, 0.1) == 0.0
    assert poisoning_threshold_flipped.certify(0.5, math.inf).vacuous
    for claim in (
        poisoning_threshold_flipped.certify(0.5, 1.0),
        poisoning_threshold_reversed.certify(0.5, 1.0),
        poisoning_threshold_moved.certify(1.0, 2.0, 5.0, 0.1),
    ):
        assert claim.confidence == "deterministic"
        assert any(
            "a filter refuses every row outside of the range" in line for line in claim.assumptions
        )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: poisoning_threshold_flipped(0.1, 0.0), "reach must be above 0"),
        (lambda: poisoning_threshold_flipped(0.1, 1.0, 1.5), "wrong must lie in"),
        (
            lambda: poisoning_threshold_flipped(0.1, 1.0, loss=cast("ClassLoss", "huber")),
            "loss must be one of logistic, hinge",
        ),
        (lambda: poisoning_threshold_flipped(math.inf, 1.0), "gain must be finite"),
        (lambda: poisoning_threshold_reversed(0.1, 0.0), "reach must be above 0"),
        (lambda: poisoning_threshold_moved(1.0, 1.0, 1.0, 0.0), "regularization must be positive"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
