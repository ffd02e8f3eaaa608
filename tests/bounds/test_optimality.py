"""What a gradient says about the minimizer, where that is known, and bounds carried over to a
stopped run.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from surelearn import bounds


@pytest.mark.parametrize("lam", [1e-3, 0.1, 7.0])
def test_a_parabola_attains_gap_and_distance(lam):
    """F = λ‖w − c‖² has gradient 2λ(w − c)."""
    w, c = np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.0, 1.0])
    norm = np.linalg.norm(2 * lam * (w - c))
    assert bounds.strong_convexity_gap(norm, lam) == pytest.approx(
        lam * np.sum((w - c) ** 2), rel=1e-12
    )
    assert bounds.distance_to_minimizer(norm, lam) == pytest.approx(
        np.linalg.norm(w - c), rel=1e-12
    )


@pytest.mark.parametrize("seed", range(5))
def test_gap_and_distance_on_least_squares(seed):
    """F = (1/n)‖Aw − b‖² + λ‖w‖², whose minimizer is a linear system's."""
    rng = np.random.default_rng(seed)
    for _ in range(200):
        n, d, lam = (
            int(rng.integers(1, 9)),
            int(rng.integers(1, 6)),
            float(10 ** rng.uniform(-3, 1)),
        )
        A, b, w = rng.normal(size=(n, d)), rng.normal(size=n), rng.normal(size=d)

        def objective(w, A=A, b=b, lam=lam):
            return np.mean((A @ w - b) ** 2) + lam * w @ w

        best = np.linalg.solve(A.T @ A / n + lam * np.eye(d), A.T @ b / n)
        norm = np.linalg.norm(2 * A.T @ (A @ w - b) / n + 2 * lam * w)
        assert objective(w) - objective(best) <= bounds.strong_convexity_gap(norm, lam) * (1 + 1e-9)
        assert np.linalg.norm(w - best) <= bounds.distance_to_minimizer(norm, lam) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_duality_gap_of_a_constrained_parabola(seed):
    """min ½‖w‖² where Aw ≥ 1 has the dual value 1ᵀa − ½‖Aᵀa‖² for every a ≥ 0; with one row,
    min = 1/(2‖A‖²).
    """
    rng = np.random.default_rng(seed)
    for _ in range(200):
        row, a = rng.normal(size=3), float(rng.exponential())
        w = row / (row @ row) * (1 + rng.exponential()) + np.cross(row, rng.normal(size=3))
        primal, dual, least = w @ w / 2, a - a**2 * (row @ row) / 2, 1 / (2 * row @ row)
        assert primal - least <= bounds.duality_gap(primal, dual, 1e-12)
        best = 1 / (row @ row)
        assert bounds.duality_gap(primal, best - best**2 * (row @ row) / 2) == pytest.approx(
            primal - least, abs=1e-9
        )


def test_an_infeasible_dual_point_is_refused():
    with pytest.raises(
        ValueError, match=r"dual must not exceed primal .*: the dual point is not feasible"
    ):
        bounds.duality_gap(1.0, 1.1, 0.05)
    assert bounds.duality_gap(1.0, 1.1, 0.2) == 0.2
    assert bounds.duality_gap(-3.0, -4.0) == 1.0
    assert bounds.duality_gap(1.0, -math.inf) == math.inf
    for primal, dual in ((1.0, math.inf), (-math.inf, 0.0)):
        with pytest.raises(ValueError, match="primal"):
            bounds.duality_gap(primal, dual)


def test_at_the_minimizer_nothing_is_lost():
    beta = bounds.beta_tikhonov(1.5, 0.1, 500)
    assert bounds.beta_near_minimizer(1.5, 0.1, 500, 0.0) == beta
    near = bounds.stability_near_minimizer(0.2, 1.5, 0.1, 500, 0.0, loss_bound=3.0, delta=0.05)
    assert near == bounds.uniform_stability_nonnegative(0.2, beta, 500, 0.05, loss_bound=3.0)


def test_by_hand():
    beta, rho, r, n, M = 4 / (0.1 * 500), 2.0, 0.01, 500, 3.0
    assert bounds.beta_near_minimizer(rho, 0.1, n, r) == pytest.approx(beta + 0.04, rel=1e-12)
    want = 0.2 + 0.04 + beta + (2 * n * beta + M) * math.sqrt(math.log(20) / (2 * n))
    assert bounds.stability_near_minimizer(
        0.2, rho, 0.1, n, r, loss_bound=M, delta=0.05
    ) == pytest.approx(want, rel=1e-12)


def test_stability_of_a_stopped_run_is_attained():
    """Linear losses g·w with g = ±ρ: w* = −mean(g)/(2λ); two stopped runs err by r in opposite
    directions.
    """
    rho, lam, n, r = 1.0, 0.5, 4, 0.01
    g = np.array([1.0, -1.0, 1.0, -1.0]) * rho
    other = g.copy()
    other[0] = -rho
    w, moved = -g.mean() / (2 * lam) - r, -other.mean() / (2 * lam) + r
    assert rho * abs(w - moved) == pytest.approx(
        bounds.beta_near_minimizer(rho, lam, n, r), rel=1e-12
    )


def test_the_risk_bound_covers_stopped_runs():
    """Linear losses on coin tosses, shifted to be non-negative, with a run stopped where it
    looks best.
    """
    rng = np.random.default_rng(0)
    rho, lam, n, r, delta = 1.0, 0.5, 30, 0.05, 0.2
    bias, M = 0.2, 2.0  # |w*| ≤ 1 here, so the loss 1 + g·w lies in [0, 2]
    broken = 0
    for _ in range(2000):
        g = np.where(rng.random(n) < 0.5 + bias / 2, rho, -rho)
        w = -g.mean() / (2 * lam) - r * np.sign(g.mean())
        bound = bounds.stability_near_minimizer(
            1 + g.mean() * w, rho, lam, n, r, loss_bound=M, delta=delta
        )
        broken += 1 + bias * w > bound
    assert broken / 2000 <= delta


@pytest.mark.parametrize("theorem", [bounds.strong_convexity_gap, bounds.distance_to_minimizer])
def test_refusals(theorem):
    with pytest.raises(ValueError, match="regularization"):
        theorem(0.1, 0.0)
    with pytest.raises(ValueError, match="gradient_norm"):
        theorem(-0.1, 1.0)


def test_a_parabola_attains_the_distance_from_its_gap_and_no_hinge_exceeds_it():
    lam = 0.3
    assert bounds.distance_from_gap(lam * 0.7**2, lam) == pytest.approx(0.7, rel=1e-15)
    w = np.linspace(-3, 3, 60001)
    F = np.maximum(0, 1 - 2 * w) / 2 + np.maximum(0, 1 + w) / 2 + lam * w**2
    best = w[F.argmin()]
    assert (np.abs(w - best) <= bounds.distance_from_gap(F - F.min(), lam) + 1e-3).all()


def test_a_price_of_the_sum_is_a_penalty_of_the_mean():
    """½w² + C·Σ max(0, 1 − w) over n rows, and (1/n)·Σ max(0, 1 − w) + λw², have one minimizer."""
    n, C, w = 5, 0.07, np.linspace(0, 2, 200001)
    lam = bounds.regularization_of_price(C, n)
    of_sum, of_mean = w**2 / 2 + C * n * np.maximum(0, 1 - w), np.maximum(0, 1 - w) + lam * w**2
    assert w[of_sum.argmin()] == w[of_mean.argmin()] == pytest.approx(C * n)
