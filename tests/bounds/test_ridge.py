"""What ridge regression's claims derive from stated and measured numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import Ridge as SkRidge

from surelearn import bounds
from surelearn.linear import LeastSquares, Ridge


def test_the_change_of_a_loss_is_attained_where_the_weights_moved_along_the_worst_row():
    """One row x = √λ with target Y: w* = Y/(2√λ), and −X with target Y has the largest loss,
    which grows as w does.
    """
    lam, X, Y, moved = 0.25, 2.0, 3.0, 0.01
    best = Y / (2 * math.sqrt(lam))
    before, after = ((-X * w - Y) ** 2 for w in (best, best + moved))
    slope = 2 * (lam + math.sqrt(lam) ** 2) * moved  # of (√λ·w − Y)² + λw² there
    # the loss is curved, too: twice as safe
    assert bounds.distance_to_minimizer(slope, lam) == pytest.approx(2 * moved)
    assert after - before == pytest.approx(
        bounds.ridge_loss_change(X, Y, lam, 2 * lam * moved), rel=1e-9
    )
    assert after - before <= bounds.ridge_loss_change(X, Y, lam, slope)


def test_no_loss_changes_more():
    rng = np.random.default_rng(0)
    for _ in range(300):
        n, d, lam = int(rng.integers(2, 12)), int(rng.integers(1, 4)), 10 ** rng.uniform(-3, 1)
        A = rng.normal(size=(n, d))
        A /= np.linalg.norm(A, axis=1, keepdims=True) / rng.random((n, 1))
        y = rng.uniform(-1, 1, n)
        best = np.linalg.solve(A.T @ A / n + lam * np.eye(d), A.T @ y / n)
        found = best + rng.normal(size=d) * 10 ** rng.uniform(-6, 0)
        slope = np.linalg.norm(2 * (A.T @ (A @ found - y) / n + lam * found))
        x = rng.normal(size=(50, d))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        target = rng.uniform(-1, 1, 50)
        change = np.abs((x @ found - target) ** 2 - (x @ best - target) ** 2).max()
        assert change <= bounds.ridge_loss_change(1.0, 1.0, lam, slope) * (1 + 1e-12)


def test_a_row_left_out_moves_the_loss_by_at_most_half_of_what_a_replaced_one_does():
    rng = np.random.default_rng(1)
    n, lam = 30, 0.05
    A = rng.normal(size=(n, 2))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    y = rng.choice([-1.0, 1.0], n)

    def fit(kept):
        return np.linalg.solve(A[kept].T @ A[kept] / n + lam * np.eye(2), A[kept].T @ y[kept] / n)

    whole, largest = fit(np.arange(n)), 0.0
    for i in range(n):
        other = fit(np.delete(np.arange(n), i))
        largest = max(largest, np.abs((A @ whole - y) ** 2 - (A @ other - y) ** 2).max())
    assert (
        largest
        <= bounds.beta_ridge_removed(1.0, 1.0, lam, n)
        == bounds.beta_ridge(1.0, 1.0, lam, n) / 2
    )


def test_padding_adds_one_to_the_square():
    assert bounds.padded_norm(2.0) == pytest.approx(math.sqrt(5.0), rel=1e-15)


@pytest.mark.parametrize("model", [LeastSquares(), Ridge(regularization=0.3)])
def test_the_leave_one_out_error_is_that_of_all_refits(model):
    """Of n fits without a row, the penalty nλ kept: by hand, with scikit-learn's ridge of α = nλ."""
    rng, n = np.random.default_rng(0), 12
    X = rng.normal(size=(n, 2))
    y = X @ [1.0, -2.0] + rng.normal(size=n)
    claim = model.fit(X, y).certificate_["leave_one_out_error"]
    peer, errors = SkRidge(alpha=n * getattr(model, "regularization_", 0.0)), []
    for i in range(n):
        rest = np.arange(n) != i
        errors.append((peer.fit(X[rest], y[rest]).predict(X[[i]])[0] - y[i]) ** 2)
    assert claim.value == pytest.approx(np.mean(errors), rel=1e-9)
    assert (claim.relation, claim.confidence, claim.covers.loss) == ("=", "always", "squared")
