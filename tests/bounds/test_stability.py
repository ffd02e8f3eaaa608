"""Stability bounds against McDiarmid's tail, and stability constants against learners fitted on
neighbouring samples.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit

from surelearn import bounds

CASES = [(0.001, 1000, 0.05, 1.0), (0.0, 50, 0.3, 4.0), (0.3, 7, 1e-9, 0.5)]


def mcdiarmid(differences, n, delta):
    """The ε with exp(−2ε²/(n·c²)) = δ."""
    return optimize.brentq(
        lambda e: -2 * e**2 / (n * differences**2) - math.log(delta), 0, 1e6, xtol=1e-14
    )


@pytest.mark.parametrize(("beta", "n", "delta", "m"), CASES)
def test_uniform_stability_is_mcdiarmid(beta, n, delta, m):
    # One row moves the risk by β and the training risk by β + 2M/n, by β + M/n when losses share a
    # sign.
    loose, tight = (0.1 + beta + mcdiarmid(2 * beta + width * m / n, n, delta) for width in (2, 1))
    assert bounds.uniform_stability(0.1, beta, n, delta, m) == pytest.approx(loose, rel=1e-10)
    assert bounds.uniform_stability_nonnegative(0.1, beta, n, delta, m) == pytest.approx(
        tight, rel=1e-10
    )


def test_uniform_stability_without_learning_is_hoeffding():
    fixed = bounds.hoeffding(0.1, 50, 0.05)
    assert bounds.uniform_stability_nonnegative(0.1, 0.0, 50, 0.05, 1.0) == pytest.approx(
        fixed, rel=1e-13
    )
    # Losses in [−1, 1], shifted and halved, lie in [0, 1].
    shifted = 2 * bounds.hoeffding((1 - 0.1) / 2, 50, 0.05) - 1
    assert bounds.uniform_stability(-0.1, 0.0, 50, 0.05, 1.0) == pytest.approx(shifted, rel=1e-12)


@pytest.mark.parametrize(("beta", "n", "delta", "m"), CASES)
def test_bousquet_elisseeff_is_mcdiarmid_after_removing_two(beta, n, delta, m):
    # A replacement removes two rows: 2β each for risk and training (or leave-one-out) risk, and M/n
    # for the row itself.
    slack = mcdiarmid(4 * beta + m / n, n, delta)
    assert bounds.bousquet_elisseeff(0.1, beta, n, delta, m) == pytest.approx(
        0.1 + 2 * beta + slack, rel=1e-10
    )
    held_out = bounds.bousquet_elisseeff(0.1, beta, n, delta, m, leave_one_out=True)
    assert held_out == pytest.approx(0.1 + beta + slack, rel=1e-10)


def test_bousquet_elisseeff_at_half_the_constant_is_uniform_stability():
    removed, replaced = (0.1, 0.0005, 1000, 0.05, 1.0), (0.1, 0.001, 1000, 0.05, 1.0)
    assert bounds.bousquet_elisseeff(*removed) == pytest.approx(
        bounds.uniform_stability_nonnegative(*replaced), rel=1e-13
    )


def test_expected_gap_of_a_mean_by_enumeration():
    # The learner returns the mean of n coins; its loss is (mean − x)².
    n, p = 6, 0.3
    samples = np.array(list(itertools.product((0, 1), repeat=n)))
    weights = np.prod(np.where(samples, p, 1 - p), axis=1)
    means = samples.mean(axis=1, keepdims=True)
    risk = p * (1 - means[:, 0]) ** 2 + (1 - p) * means[:, 0] ** 2
    gap = weights @ (risk - ((means - samples) ** 2).mean(axis=1))
    beta = max(abs((a / n - x) ** 2 - ((a + 1) / n - x) ** 2) for a in range(n) for x in (0, 1))
    assert gap == pytest.approx(2 * p * (1 - p) / n)  # known: twice the variance over n
    assert gap <= bounds.expected_gap(beta) == beta


def minimize(slope, reach):
    """The weight at which a rising (sub)gradient crosses zero."""
    low, high = -reach, reach
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(middle) >= 0 else (middle, high)
    return (low + high) / 2


def largest_change(loss, fit, rows, seed):
    """The largest change of a loss over many samples of ``rows`` with one replaced, and over
    all test rows.
    """
    rng = np.random.default_rng(seed)
    largest = 0.0
    for _ in range(60):
        sample = rng.integers(len(rows), size=6)
        if rng.random() < 0.5:
            sample[1:] = rng.integers(2, size=5)  # concentrated samples change most
        weights = [fit(rows[[i, *sample[1:]]]) for i in range(len(rows))]
        losses = np.array([[loss(w, row) for row in rows] for w in weights])
        largest = max(largest, np.ptp(losses, axis=0).max())
    return largest


def test_beta_tikhonov_is_attained_by_a_linear_loss():
    # loss w·z with |z| ≤ ρ: w = −mean(z)/(2λ).
    rho, lam, n = 1.5, 0.3, 7
    w, moved = (-(z + 6 * rho) / n / (2 * lam) for z in (rho, -rho))
    assert bounds.beta_tikhonov(rho, lam, n) == pytest.approx(abs(w - moved) * rho, rel=1e-13)
    assert bounds.beta_tikhonov(rho, lam, n, slides=True) == pytest.approx(
        2 * abs(w - moved) * rho, rel=1e-13
    )


HINGE_ROWS = np.array([1.0, -1.0, 0.6, -0.2, 0.05])  # y·x


@pytest.mark.parametrize("lam", [0.02, 0.1, 0.5, 2.0])
def test_beta_hinge_of_fitted_machines(lam):
    n = 6

    def fit(rows):
        return minimize(lambda w: 2 * lam * w - np.mean(rows * (rows * w < 1)), 1 / lam)

    change = largest_change(lambda w, row: max(0.0, 1 - w * row), fit, HINGE_ROWS, seed=0)
    beta = bounds.beta_hinge(1.0, lam, n)
    assert change <= beta * (1 + 1e-9)
    if lam >= 0.5:  # all rows stay inside the margin, where the loss is linear
        assert change == pytest.approx(beta, rel=1e-9)


@pytest.mark.parametrize("lam", [0.01, 0.1, 1.0])
def test_beta_logistic_of_fitted_models(lam):
    n = 6

    def fit(rows):
        return minimize(lambda w: 2 * lam * w - np.mean(rows * expit(-rows * w)), 1 / lam)

    change = largest_change(lambda w, row: np.logaddexp(0, -w * row), fit, HINGE_ROWS, seed=0)
    assert 0.1 * bounds.beta_logistic(1.0, lam, n) < change <= bounds.beta_logistic(1.0, lam, n)


def test_beta_logistic_at_a_quarter_when_regularization_wins():
    # Near w = 0 the loss is linear with slope ½x: Tikhonov's constant at ρ = X/2, attained by
    # opposite rows.
    x, lam, n = 1.5, 1e4, 6
    ends = [
        minimize(lambda w, z=z: 2 * lam * w - (5 * x * expit(-x * w) + z * expit(-z * w)) / n, 1.0)
        for z in (x, -x)
    ]
    change = abs(np.subtract(*np.logaddexp(0, -x * np.array(ends))))
    assert 4 * change == pytest.approx(bounds.beta_logistic(x, lam, n), rel=1e-3)


def test_beta_ridge_of_fitted_models():
    lam, n, y_bound = 0.2, 6, 2.0
    rows = np.array(
        [
            (x, s, y)
            for x, s in ((1.0, 0.0), (0.6, 0.8), (0.1, 0.0), (0.6, -0.8))
            for y in (-y_bound, y_bound)
        ]
    )

    def fit(sample):
        x, y = sample[:, :2], sample[:, 2]
        return np.linalg.solve(x.T @ x / len(x) + lam * np.eye(2), x.T @ y / len(x))

    change = largest_change(lambda w, row: (row[:2] @ w - row[2]) ** 2, fit, rows, seed=0)
    beta = bounds.beta_ridge(1.0, y_bound, lam, n)
    assert 0.05 * beta < change <= beta


def test_beta_ridge_is_attained_when_regularization_wins():
    # w ≈ mean(xy)/λ is small and the residual is the target: exchanging (X, Y) for (X, −Y) moves
    # the loss by 4X²Y²/(λn).
    x, y, lam, n = 1.5, 2.0, 1e8, 6
    w, moved = ((5 * x * y + x * end) / n / (x**2 + lam) for end in (y, -y))
    change = (x * moved - y) ** 2 - (x * w - y) ** 2
    assert change == pytest.approx(bounds.beta_ridge(x, y, lam, n), rel=1e-3)


@pytest.mark.parametrize(("x", "y", "lam", "n"), [(1.0, 1.0, 0.1, 1000), (3.0, 0.5, 4.0, 10)])
def test_beta_ridge_is_twice_bousquet_and_elisseeff(x, y, lam, n):
    # Example 3: removing a row, 2κ²B²/(λn), where B bounds the residual; the longest w has all rows
    # s and all targets Y.
    longest = -optimize.minimize_scalar(
        lambda s: -s * y / (s**2 + lam), bounds=(0, 100), options={"xatol": 1e-12}
    ).fun
    residual = y + x * longest
    assert bounds.beta_ridge(x, y, lam, n) / 2 == pytest.approx(
        2 * x**2 * residual**2 / (lam * n), rel=1e-9
    )


@pytest.mark.parametrize("seed", range(4))
def test_ridge_minimizers_are_no_longer_than_stated(seed):
    """‖w‖ ≤ Y/(2√λ), half of what the cost of w = 0 gives, for rows of any length; attained by
    rows √λ.
    """
    rng = np.random.default_rng(seed)
    ratios = []
    for _ in range(500):
        n, d, lam = int(rng.integers(1, 9)), int(rng.integers(1, 5)), 10 ** rng.uniform(-3, 3)
        x = math.sqrt(lam) * rng.normal(size=(n, d)) * 10 ** rng.uniform(-1, 1, size=d)
        y = rng.choice([-1.0, 1.0], n)
        ratios.append(
            2
            * math.sqrt(lam)
            * np.linalg.norm(np.linalg.solve(x.T @ x / n + lam * np.eye(d), x.T @ y / n))
        )
    assert 0.9 < max(ratios) <= 1 + 1e-12


@pytest.mark.parametrize("share", [1.0, 3.0, 30.0])
def test_beta_ridge_is_reached_to_a_quarter_with_long_rows(share):
    # n − 1 rows √λ with target Y make w = Y/(2√λ); the last is exchanged for (X, −Y), whose
    # residual is all of Y(1 + Xw).
    lam, n, y = 0.3, 10**6, 2.0
    x = share * math.sqrt(lam)
    w, moved = (
        ((n - 1) * math.sqrt(lam) * y + a * b) / ((n - 1) * lam + a**2 + n * lam)
        for a, b in ((math.sqrt(lam), y), (x, -y))
    )
    change = (x * w + y) ** 2 - (x * moved + y) ** 2
    assert 0.24 < change / bounds.beta_ridge(x, y, lam, n) < 1


def descend(rows, order, step, gradient, reach=math.inf):
    w = 0.0
    for i in order:
        w = np.clip(w - step * gradient(w, rows[i]), -reach, reach)
    return w


def neighbours(n, value):
    rows = np.linspace(-value, value, n)
    return (np.concatenate([[end], rows[1:]]) for end in (-value, value))


def test_beta_sgd_convex_is_attained_by_a_linear_loss():
    n, steps, rho, step = 3, 5, 2.0, 0.1
    a, b = neighbours(n, rho)
    changes = [
        rho * abs(descend(a, order, step, lambda _, z: z) - descend(b, order, step, lambda _, z: z))
        for order in itertools.product(range(n), repeat=steps)
    ]
    assert bounds.beta_sgd_convex(rho, step * steps, n) == pytest.approx(
        np.mean(changes), rel=1e-12
    )


def test_beta_sgd_convex_of_logistic_regression():
    n, steps, step = 3, 6, 4.0  # smoothness ¼, so that steps up to 8 do not expand
    a, b = neighbours(n, 1.0)

    def slope(w, z):
        return -z * expit(-z * w)

    orders = list(itertools.product(range(n), repeat=steps))
    weights = [(descend(a, order, step, slope), descend(b, order, step, slope)) for order in orders]
    change = max(
        np.mean([abs(np.subtract(*np.logaddexp(0, -z * np.array(w)))) for w in weights])
        for z in (1.0, -1.0)
    )
    assert 0.05 < change <= bounds.beta_sgd_convex(1.0, step * steps, n)


@pytest.mark.parametrize("steps", [1, 4, 6])
def test_beta_sgd_strongly_convex_of_a_regularized_linear_loss(steps):
    # loss z·w + (γ/2)w² on |w| ≤ R is (1 + γR)-Lipschitz for |z| ≤ 1, and γ-smooth.
    n, gamma, reach = 3, 0.5, 0.2
    step, rho = 1 / gamma, 1 + gamma * reach
    a, b = neighbours(n, 1.0)

    def slope(w, z):
        return z + gamma * w

    changes = []
    for order in itertools.product(range(n), repeat=steps):
        w, moved = (descend(rows, order, step, slope, reach) for rows in (a, b))
        changes.append([abs(z * (w - moved) + gamma / 2 * (w**2 - moved**2)) for z in (-1.0, 1.0)])
    assert np.mean(changes, axis=0).max() <= bounds.beta_sgd_strongly_convex(rho, gamma, n)


@pytest.mark.parametrize("step", [0.01, 0.5])
def test_beta_sgd_strongly_convex_is_the_limit_of_the_recursion(step):
    # E d ← (1 − ηγ)·E d + 2ηρ/n, whatever the step; the loss moves ρ times as far.
    rho, gamma, n, distance = 1.5, 0.2, 40, 0.0
    for _ in range(20000):
        distance = (1 - step * gamma) * distance + 2 * step * rho / n
    assert bounds.beta_sgd_strongly_convex(rho, gamma, n) == pytest.approx(rho * distance, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_beta_sgd_permuted_holds_for_every_seed(seed):
    n, passes, rho = 8, 3, 1.5
    rng = np.random.default_rng(seed)
    order = np.concatenate([rng.permutation(n) for _ in range(passes)])
    a, b = neighbours(n, rho)
    moved = abs(descend(a, order, 0.1, lambda _, z: z) - descend(b, order, 0.1, lambda _, z: z))
    # a linear loss attains it
    assert rho * moved == pytest.approx(bounds.beta_sgd_permuted(rho, 0.1, passes), rel=1e-12)

    def slope(w, z):
        return -z * expit(-z * w)

    step = 8 / rho**2  # the largest allowed: the logistic loss is ρ²/4-smooth
    weights = np.array([descend(rows, order, step, slope) for rows in (a, b)])
    change = max(abs(np.subtract(*np.logaddexp(0, -z * weights))) for z in (rho, -rho))
    assert 0 < change <= bounds.beta_sgd_permuted(rho, step, passes)
