"""What the claims about machines of squared losses derive from stated and measured numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from surelearn import bounds


def minimizer(X, y, lam):
    def objective(w):
        short = np.maximum(1 - y * (X @ w), 0)
        return (short**2).mean() + lam * w @ w, -2 * X.T @ (y * short) / len(y) + 2 * lam * w

    return minimize(
        objective, np.zeros(X.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-11}
    ).x


@pytest.mark.parametrize(("x_bound", "lam"), [(1.0, 0.1), (3.0, 0.02), (0.5, 1.0)])
def test_the_slope_holds_between_minimizers_of_two_samples(x_bound, lam):
    """No loss is steeper, and exchanging a row moves no loss by more than β = ρ²/(λn)."""
    rng, n = np.random.default_rng(0), 12
    rho, largest, moved = bounds.squared_hinge_lipschitz(x_bound, lam), 0.0, 0.0
    for trial in range(60):
        X = rng.normal(size=(n, 2)) if trial % 2 else np.tile([1.0, 0.0], (n, 1))
        X *= (
            rng.choice([1.0, min(1.0, np.sqrt(lam) / x_bound)])
            * x_bound
            / np.linalg.norm(X, axis=1, keepdims=True)
        )
        y = rng.choice([-1.0, 1.0], n) if trial % 3 else np.ones(n)
        w = minimizer(X, y, lam)
        assert np.linalg.norm(w) <= 1 / (2 * np.sqrt(lam)) + 1e-6
        other = X.copy()
        other[0], worst = (
            -x_bound * X[0] / np.linalg.norm(X[0]),
            -x_bound * w / max(np.linalg.norm(w), 1e-12),
        )
        away = minimizer(other, y, lam)
        losses = [max(0.0, 1 - worst @ one) ** 2 for one in (w, away)]
        largest = max(largest, 2 * max(0.0, 1 - worst @ w) * x_bound)
        moved = max(moved, abs(losses[0] - losses[1]))
    assert 0.6 * rho < largest <= rho * (1 + 1e-6)
    assert moved <= bounds.beta_tikhonov(rho, lam, n)


def test_rows_of_length_root_lambda_attain_the_norm():
    X, y, lam = np.full((5, 1), np.sqrt(0.3)), np.ones(5), 0.3
    assert np.linalg.norm(minimizer(X, y, lam)) == pytest.approx(1 / (2 * np.sqrt(lam)), rel=1e-6)
