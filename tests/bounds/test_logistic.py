"""What logistic regression's claims derive from stated and measured numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import log_softmax

from surelearn import bounds


@pytest.mark.parametrize(
    ("x_bound", "classes", "lam"), [(1.0, 2, 0.1), (2.0, 3, 0.01), (0.5, 5, 1.0)]
)
def test_constants_hold(x_bound, classes, lam):
    """The loss of any W with λ‖W‖² ≤ ln K, and its slope, on rows of norm X."""
    rng = np.random.default_rng(0)
    rho, M = (
        bounds.logistic_lipschitz(x_bound, classes),
        bounds.logistic_loss_bound(x_bound, classes, lam),
    )
    largest_loss = largest_slope = 0.0
    for _ in range(3000):
        x = rng.normal(size=3)
        x *= x_bound / np.linalg.norm(x)
        W = rng.normal(size=(3, 1 if classes == 2 else classes))
        if rng.random() < 0.5:  # the worst direction: against the row's own class
            W = np.outer(x, [-1.0] if classes == 2 else [-1.0, 1.0] + [0.0] * (classes - 2))
        W *= math.sqrt(math.log(classes) / lam) / np.linalg.norm(W)
        scores = np.append(0.0, x @ W) if classes == 2 else x @ W
        target = 1 if classes == 2 else 0
        logs = log_softmax(scores)
        slope = np.exp(logs) - np.eye(classes)[target]
        slope = slope[1:] if classes == 2 else slope
        largest_loss = max(largest_loss, -logs[target])
        largest_slope = max(largest_slope, np.linalg.norm(np.outer(x, slope)))
    assert M * 0.5 < largest_loss <= M * (1 + 1e-12)
    assert rho * 0.5 < largest_slope <= rho


@pytest.mark.parametrize("lam", [1e-9, 0.05, 2.0])
def test_no_gradient_of_a_run_is_longer_and_a_linear_loss_attains_it(lam):
    """The steepest loss pulls the same way with slope ρ at every step."""
    rho, eta, steps = 1.5, 0.1, 20
    w, longest = 0.0, 0.0
    for _ in range(steps):
        w = (1 - 2 * eta * lam) * w - eta * rho
        longest = max(longest, abs(rho + 2 * lam * abs(w)))
    bound = bounds.sgd_lipschitz(rho, lam, eta, steps)
    assert longest <= bound
    assert longest > 0.85 * bound
