"""Descent: no theorem's bound is ever below what is measured, on thousands of iterations of
random problems.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import SVC

from surelearn import bounds
from surelearn.optim.descent import (
    gradient_descent,
    project,
    soft_margin_descent,
    stochastic_gradient_descent,
)
from surelearn.optim.losses import Function, RegularizedRisk, find_loss


def problem(seed, loss, regularization):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 40)), int(rng.integers(1, 6))
    x = rng.normal(size=(n, d)) * rng.uniform(0.3, 3, size=d)
    y = (
        rng.choice([-1.0, 1.0], size=n)
        if find_loss(loss).of == "margin"
        else 2 * rng.normal(size=n)
    )
    f = RegularizedRisk(x, y, loss, regularization)
    return f, rng.normal(size=d)


def best_of(f, start):
    return minimize(
        f.value, start, jac=f.gradient, method="BFGS", options={"gtol": 1e-11, "maxiter": 5000}
    ).x


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "squared hinge"])
@pytest.mark.parametrize("seed", range(30))
def test_strongly_convex_rate(loss, seed):
    f, start = problem(seed, loss, 0.05)
    best = best_of(f, start)
    run = gradient_descent(f, start, iterations=60, minimizer=best)
    assert run.theorem.key == "gradient_descent_strongly_convex"
    assert run.step == pytest.approx(2 / (f.strong_convexity + f.smoothness))
    assert run.holds
    assert run.measured[-1] < 0.5 * run.measured[0]
    assert run.claim().value == pytest.approx(run.bound[-1])
    unknown = gradient_descent(f, start, iterations=60)  # D ≤ ‖∇f(x_0)‖/m without knowing x*
    assert np.isnan(unknown.measured).all()
    assert (unknown.bound >= run.bound * (1 - 1e-6)).all()


@pytest.mark.parametrize("loss", ["huber", "squared hinge"])
@pytest.mark.parametrize("seed", range(30))
def test_convex_rate(loss, seed):
    f, start = problem(seed, loss, 0.0)
    assert f.strong_convexity == 0
    run = gradient_descent(f, start, iterations=60, minimizer=best_of(f, start))
    assert run.theorem.key == "gradient_descent_convex"
    assert run.holds
    assert (np.diff(run.measured) <= 1e-12).all()  # each step descends
    assert run.bound[60] == pytest.approx(run.bound[1] / 60)


def test_the_convex_rate_is_nearly_attained_and_half_of_it_is_false():
    # Huber's slope: far out the function is linear, and the bound D²/(2tk) is tight up to a factor
    # of two at k ≈ D/2η.
    f = RegularizedRisk([[1.0]], [0.0], "huber")
    run = gradient_descent(f, [100.0], iterations=100, minimizer=[0.0])
    assert run.holds
    ratio = (run.measured / run.bound)[1:].max()
    assert 0.45 < ratio <= 1


def test_strongly_convex_rate_is_attained_by_a_quadratic():
    f = RegularizedRisk(np.diag([1.0, 3.0]), [0.0, 0.0], "squared")
    run = gradient_descent(f, [0.0, 1.0], iterations=30, minimizer=[0.0, 0.0])
    np.testing.assert_allclose(run.measured, run.bound, rtol=1e-6)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
def test_projected_descent(loss, seed):
    f, start = problem(seed, loss, 0.02)
    radius = 0.5 * np.linalg.norm(best_of(f, start))  # the ball cuts the minimizer off
    start = project(start, radius)
    inside = gradient_descent(
        f, start, iterations=4000, radius=radius, minimizer=np.zeros(f.dimension)
    ).solution
    run = gradient_descent(f, start, iterations=60, radius=radius, minimizer=inside)
    assert run.theorem.key == "gradient_descent_convex"
    assert "projected" in run.claim().assumptions[-1]
    assert run.holds
    assert np.linalg.norm(run.solution) <= radius * (1 + 1e-12)
    w = np.random.default_rng(seed).normal(size=(500, f.dimension))
    assert min(f.value(project(v, radius)) for v in w) >= f.value(inside) - 1e-9


def test_project_is_the_nearest_point():
    rng = np.random.default_rng(0)
    for x in rng.normal(size=(50, 3)) * 3:
        nearest = project(x, 1.5)
        others = np.array([project(v, 1.5) for v in rng.normal(size=(100, 3))])
        assert np.linalg.norm(nearest - x) <= np.linalg.norm(others - x, axis=1).min() + 1e-12
    assert project(np.array([0.1]), None) == 0.1


@pytest.mark.parametrize("seed", range(10))
def test_nonconvex_rate(seed):
    rng = np.random.default_rng(seed)
    a = rng.uniform(0.5, 3, size=4)
    f = Function(
        value=lambda x: float(np.cos(a * x).sum()),
        gradient=lambda x: -a * np.sin(a * x),
        smoothness=float((a**2).max()),
        convex=False,
        lower=-4.0,
    )
    run = gradient_descent(f, rng.normal(size=4), iterations=80)
    assert run.quantity == "smallest_gradient_norm"
    assert run.holds
    assert run.bound[0] == pytest.approx(
        bounds.gradient_descent_nonconvex(run.inputs["gap"], run.step, 0, f.smoothness)
    )
    assert (np.diff(run.measured) <= 0).all()


# Stochastic descent.


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared", "huber"])
@pytest.mark.parametrize("seed", range(15))
def test_regret_never_exceeds_its_bound(loss, seed):
    f, start = problem(seed, loss, 0.01 * (seed % 2))
    ball = 0.5 + seed % 3
    comparator = project(start, ball)
    run = stochastic_gradient_descent(
        f, norm_bound=ball, iterations=200, comparator=comparator, random_state=seed
    )
    assert run.holds
    assert np.linalg.norm(run.solution) <= ball * (1 + 1e-12)
    assert run.bound[-1] == pytest.approx(ball * f.lipschitz(ball) / math.sqrt(200))


def test_regret_bound_is_attained_and_smaller_ones_are_not_true():
    # A linear loss from 0 straight to the comparator at the ball's edge: regret B²/(2ηT) + ηρ²/2 up
    # to 1/T.
    f = RegularizedRisk([[1.0]], [1.0], "hinge")
    run = stochastic_gradient_descent(
        f, norm_bound=1.0, iterations=400, comparator=[1.0], random_state=0
    )
    walk = np.minimum(np.arange(400) * run.step, 1.0)
    assert run.measured[-1] == pytest.approx((1 - walk).mean())
    assert run.solution == pytest.approx([walk.mean()])  # the average of the iterates, not the last
    assert 0.45 < run.measured[-1] / run.bound[-1] <= 1


def test_excess_risk_of_the_average_in_the_mean():
    f, _ = problem(2, "logistic", 0.0)
    ball = 1.0
    best = minimize(
        lambda v: f.value(project(v, ball)), np.zeros(f.dimension), method="Nelder-Mead"
    ).x
    runs = [
        stochastic_gradient_descent(f, norm_bound=ball, iterations=100, random_state=s)
        for s in range(200)
    ]
    mean = np.mean([f.value(run.solution) for run in runs]) - f.value(project(best, ball))
    claim = runs[0].claim()
    assert claim.confidence == "in expectation"
    assert 0 < mean <= claim.value
    assert "with replacement" in claim.assumptions[-1]


def test_fresh_rows_need_a_stated_constant():
    f, _ = problem(0, "hinge", 0.0)
    n = len(f.y)
    with pytest.raises(ValueError, match="needs lipschitz="):
        stochastic_gradient_descent(f, norm_bound=1.0, iterations=n, fresh=True)
    with pytest.raises(ValueError, match="exceeded by a row"):
        stochastic_gradient_descent(f, norm_bound=1.0, iterations=n, fresh=True, lipschitz=1e-3)
    with pytest.raises(ValueError, match="at most"):
        stochastic_gradient_descent(
            f, norm_bound=1.0, iterations=n + 1, fresh=True, lipschitz=100.0
        )
    run = stochastic_gradient_descent(
        f, norm_bound=1.0, iterations=n, fresh=True, lipschitz=100.0, random_state=0
    )
    assert run.claim().inputs["lipschitz"] == 100.0
    assert run.claim().assumptions == bounds.sgd_learnability.assumes


# The soft-margin support vector machine.


@pytest.mark.parametrize("seed", range(8))
def test_soft_margin_descent_reaches_libsvm(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 1 + seed % 4))
    y = np.where(x[:, 0] + 0.5 * rng.normal(size=60) > 0.2, 1.0, -1.0)
    C = [0.01, 0.1, 1.0, 10.0][seed % 4]
    peer = SVC(kernel="linear", C=C, tol=1e-9).fit(x, y)
    optimum = (
        peer.coef_[0] @ peer.coef_[0] / 2
        + C * np.maximum(1 - y * peer.decision_function(x), 0).sum()
    )
    w, b, objectives = soft_margin_descent(x, y, C, iterations=3000)
    assert objectives[-1] == pytest.approx(w @ w / 2 + C * np.maximum(1 - y * (x @ w + b), 0).sum())
    assert optimum * (1 - 1e-6) <= objectives[-1] <= optimum * 1.01
    assert (np.diff(objectives) <= 0).all()


# Plots and refusals.


def test_plot_draws_both_lines():
    f, start = problem(1, "logistic", 0.1)
    ax = gradient_descent(f, start, iterations=20, minimizer=best_of(f, start)).plot()
    labels = [line.get_label() for line in ax.get_lines()]
    assert labels == ["bound: gradient descent, strongly convex", "measured"]
    assert ax.get_yscale() == "log"
    assert len(ax.get_lines()[0].get_xdata()) == 21
    assert gradient_descent(f, start, iterations=5).plot(ax) is ax


def test_impossible_runs_are_refused():
    f, start = problem(1, "logistic", 0.1)
    flat, _ = problem(1, "logistic", 0.0)
    with pytest.raises(ValueError, match="step must be at most 2"):
        gradient_descent(f, start, step=2.1 / (f.smoothness + f.strong_convexity))
    with pytest.raises(ValueError, match="step must be positive"):
        gradient_descent(f, start, step=0.0)
    with pytest.raises(ValueError, match="minimizer= is needed"):
        gradient_descent(flat, start)
    with pytest.raises(ValueError, match="shape of start"):
        gradient_descent(f, start, minimizer=np.zeros(99))
    with pytest.raises(ValueError, match="outside the ball"):
        gradient_descent(f, start, radius=0.1, minimizer=np.ones(f.dimension))
    with pytest.raises(ValueError, match="radius must be positive"):
        gradient_descent(f, start, radius=-1.0)
    with pytest.raises(ValueError, match="iterations must be"):
        gradient_descent(f, start, iterations=0)
    with pytest.raises(ValueError, match="use a smooth loss"):
        gradient_descent(problem(1, "hinge", 0.1)[0], start)
    wave = Function(lambda x: float(np.sin(x).sum()), np.cos, 1.0, convex=False)
    with pytest.raises(ValueError, match="needs lower="):
        gradient_descent(wave, [0.0])
    with pytest.raises(ValueError, match="y must be −1 and 1"):
        soft_margin_descent([[1.0]], [0.0])
    with pytest.raises(ValueError, match="C must be"):
        soft_margin_descent([[1.0]], [1.0], C=0.0)
