"""What papers are cited for, derived again by brute force, without their formulas."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from surelearn.bounds.privacy import dp_sgd_epsilon, group_privacy
from surelearn.bounds.renyi import epsilon_from_renyi, subsampled_gaussian_renyi
from surelearn.bounds.robustness import lipschitz_radius, smoothing_radius
from surelearn.kernel.spectrum import KernelSpectrum


def random_distributions(rng, count=200, size=5):
    """Pairs of distributions with ratios of all sizes."""
    logs = rng.normal(size=(count, 2, size)) * rng.choice([0.1, 1.0, 3.0], size=(count, 1, 1))
    return np.exp(logs) / np.exp(logs).sum(axis=2, keepdims=True)


def hockey_stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize("tight", [True, False])
def test_from_renyi_to_epsilon_for_any_two_distributions(tight):
    """Canonne, Kamath and Steinke, Proposition 12; Mironov, Proposition 3: no pair has more
    than dp_delta at this ε.
    """
    shares = []
    for p, q in random_distributions(np.random.default_rng(0)):
        for alpha, dp_delta in itertools.product((1.5, 3.0, 20.0), (0.3, 1e-2, 1e-4)):
            rho = float(np.log((p**alpha * q ** (1 - alpha)).sum()) / (alpha - 1))
            spent = hockey_stick(
                p, q, epsilon_from_renyi([alpha], [max(rho, 0.0)], dp_delta, tight=tight)
            )
            assert spent <= dp_delta * (1 + 1e-9)
            shares.append(spent / dp_delta)
    assert not tight or max(shares) > 0.7  # it is nearly attained: not much less would be true


def densities(x, rows, sigma, rate):
    """The density of Σ of a Poisson sample of rows, plus noise; rows are clipped gradients in
    one dimension.
    """
    total = np.zeros_like(x)
    for kept in itertools.product((0, 1), repeat=len(rows)):
        total += (
            rate ** sum(kept)
            * (1 - rate) ** (len(rows) - sum(kept))
            * norm.pdf(x, np.dot(kept, rows), sigma)
        )
    return total


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.1), (0.6, 0.5), (2.0, 0.8)])
def test_no_rows_leak_more_than_the_pair_that_dp_sgd_is_accounted_by(sigma, rate):
    """Mironov, Talwar and Zhang; Zhu, Dong and Wang, Theorem 11: other rows beside the one in
    question do not help.
    """
    rng, x = np.random.default_rng(3), np.linspace(-25, 25, 40_001)
    step = x[1] - x[0]
    bound = {alpha: subsampled_gaussian_renyi(alpha, sigma, rate) for alpha in (1.5, 4.0)}
    epsilon = {dp_delta: dp_sgd_epsilon(sigma, rate, 1, dp_delta) for dp_delta in (0.03, 1e-3)}
    attained = []
    for others in ([], *(rng.uniform(-1, 1, size) for size in (1, 2, 3))):
        for row in (1.0, -1.0, 0.4):
            without, beside = (
                densities(x, others, sigma, rate),
                densities(x, [*others, row], sigma, rate),
            )
            for p, q in ((beside, without), (without, beside)):
                seen = (p > 1e-250) & (q > 1e-250)
                logs = np.log(p[seen]), np.log(q[seen])
                for alpha, most in bound.items():
                    divergence = np.log(
                        step * np.exp(alpha * logs[0] + (1 - alpha) * logs[1]).sum()
                    ) / (alpha - 1)
                    assert divergence <= most * (1 + 1e-6) + 1e-9
                    attained.append(divergence / most)
                for dp_delta, spent in epsilon.items():
                    assert step * np.maximum(p - math.exp(spent) * q, 0).sum() <= dp_delta * (
                        1 + 1e-6
                    )
    assert max(attained) > 1 - 1e-6


def test_a_group_is_a_chain_of_neighbours():
    """Vadhan: k rows that change together, one after the other; each link (ε, dp_delta)."""
    for first, second in zip(
        *[iter(random_distributions(np.random.default_rng(1), size=4))] * 2, strict=True
    ):
        chain = [first[0], first[1], second[0], second[1]]
        links = [(p, q) for p, q in itertools.pairwise(chain)]
        for epsilon in (0.1, 0.7):
            dp_delta = max(hockey_stick(p, q, epsilon) for p, q in links)
            together, spent = group_privacy(epsilon, dp_delta, 3)
            assert hockey_stick(chain[0], chain[-1], together) <= spent * (1 + 1e-12)


def smoothed(edges, classes, at, noise):
    """Probabilities of three classes at a point, of a classifier that is constant between edges."""
    masses = np.diff(norm.cdf(np.concatenate([[-np.inf], edges, [np.inf]]), at, noise))
    return np.bincount(classes, weights=masses, minlength=3)


def test_no_classifier_changes_its_smoothed_vote_within_the_radius():
    """Cohen, Rosenfeld and Kolter, Theorem 1, for random classifiers of the line; a halfline
    attains it.
    """
    rng, tried = np.random.default_rng(2), 0
    for _ in range(300):
        edges, noise = np.sort(rng.normal(0, 2, 8)), rng.uniform(0.3, 2)
        classes = rng.integers(3, size=9)
        there = smoothed(edges, classes, 0.0, noise)
        best = int(there.argmax())
        radius = smoothing_radius(there[best], np.delete(there, best).max(), noise)
        for at in np.linspace(-1, 1, 41) * radius * (1 - 1e-9):
            assert smoothed(edges, classes, at, noise).argmax() == best
        tried += radius > 0.1
    assert tried > 100
    half = smoothed([0.5], [0, 1], 0.0, 1.0)
    assert smoothing_radius(half[0], half[1], 1.0) == pytest.approx(0.5)


def test_two_scores_part_by_at_most_root_two_times_the_slope():
    """Tsuzuku, Sato and Sugiyama, Proposition 1, for linear maps, whose distance to a change is
    known; one attains it.
    """
    rng = np.random.default_rng(4)
    for _ in range(200):
        W, x = rng.normal(size=(4, 3)), rng.normal(size=3)
        scores = W @ x
        best = int(scores.argmax())
        gaps = scores[best] - np.delete(scores, best)
        distance = (gaps / np.linalg.norm(W[best] - np.delete(W, best, axis=0), axis=1)).min()
        assert lipschitz_radius(
            float(gaps.min()), math.sqrt(2), float(np.linalg.norm(W, 2))
        ) <= distance * (1 + 1e-12)
    rotation = np.eye(2)
    assert lipschitz_radius(1.0, math.sqrt(2), 1.0) == pytest.approx(
        1.0 / np.linalg.norm(rotation[0] - rotation[1])
    )


def test_batches_gain_as_the_critical_batch_size_says():
    """Ma, Bassily and Belkin: E[H_m²] ≼ ((β + (m − 1)λ₁)/m)·H over batches of m rows, and equality
    is nearly met.

    So that η = m/(β + (m − 1)λ₁) is safe for every direction, and its gain over one row is m/(1 +
    (m − 1)/m*).
    """
    rng = np.random.default_rng(5)
    X = rng.normal(size=(6, 3)) * [2.0, 1.0, 0.5]
    X /= np.linalg.norm(X, axis=1, keepdims=True)  # k(x, x) = 1 = β
    H = X.T @ X / len(X)
    spectrum = KernelSpectrum(np.linalg.eigvalsh(H)[::-1], beta=1.0)
    one = spectrum.step_size(1)
    for m in (1, 2, 3):
        batches = [
            X[list(rows)].T @ X[list(rows)] / m for rows in itertools.product(range(6), repeat=m)
        ]
        second = np.mean([B @ B for B in batches], axis=0)
        slack = np.linalg.eigvalsh(H / spectrum.step_size(m) - second)
        assert slack.min() >= -1e-12
        gain = spectrum.step_size(m) / one
        assert gain == pytest.approx(m / (1 + (m - 1) / spectrum.critical_batch_size()))
        top = np.linalg.eigh(H)[1][:, -1]
        # met
        assert top @ second @ top == pytest.approx(float(top @ H @ top) / spectrum.step_size(m))
