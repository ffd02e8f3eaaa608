"""All n fits without one row, n = 2,000 and d = 50, beside n refits: ridge (target 1/1,000),
logistic to 1e-6 (target 1/40).

The refits get what they can use: one matrix product and Cholesky, and for the logistic loss a warm
start at the full fit and Newton's method, stopped when it is sure of 1e-6. Every tenth row is
refitted, and the time multiplied by ten.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from _timing import compare
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge
from threadpoolctl import threadpool_limits

from surelearn.linear.leave_one_out import logistic_leave_one_out, ridge_leave_one_out

N, D, LAM, TOL = 2000, 50, 1e-3, 1e-6
EVERY = 10
rng = np.random.default_rng(0)
X = rng.normal(size=(N, D))
y = X @ rng.normal(size=D) + rng.normal(size=N)
signs = np.where(X @ rng.normal(size=D) / 3 + rng.logistic(size=N) > 0, 1.0, -1.0)
full = logistic_leave_one_out(X, signs, LAM, rows=[0]).full_weights


def without(i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    kept = np.arange(N) != i
    return X[kept], y[kept], signs[kept]


def ridge_cholesky(i: int) -> np.ndarray:
    A, b, _ = without(i)
    G = A.T @ A
    G.flat[:: D + 1] += N * LAM
    return cho_solve(
        cho_factor(G, overwrite_a=True, check_finite=False), A.T @ b, check_finite=False
    )


def ridge_scikit_learn(i: int) -> np.ndarray:
    A, b, _ = without(i)
    return Ridge(alpha=N * LAM, fit_intercept=False, solver="cholesky").fit(A, b).coef_


def logistic_newton(i: int) -> np.ndarray:
    """Newton's method from the full fit, stopped as soon as the step, which is about the error,
    is below the tolerance.
    """
    A, _, s = without(i)
    w = full
    while True:
        p = expit(-s * (A @ w))
        H = (A * (p * (1 - p))[:, None]).T @ A
        H.flat[:: D + 1] += 2 * N * LAM
        step = cho_solve(
            cho_factor(H, overwrite_a=True, check_finite=False), 2 * N * LAM * w - A.T @ (s * p)
        )
        w = w - step
        if np.linalg.norm(step) ** 2 < TOL:  # the error is of second order in the step
            return w


def logistic_scikit_learn(i: int) -> np.ndarray:
    A, _, s = without(i)
    model = LogisticRegression(
        C=1 / (2 * N * LAM),
        fit_intercept=False,
        solver="newton-cholesky",
        tol=1e-7,
        warm_start=True,
        max_iter=100,
    )
    model.coef_, model.intercept_, model.classes_ = (
        full[None].copy(),
        np.zeros(1),
        np.array([-1.0, 1.0]),
    )
    return model.fit(A, s).coef_[0]


def report(
    name: str, ours: Callable[[], object], refits: dict[str, Callable[[int], np.ndarray]]
) -> None:
    rows = range(0, N, EVERY)
    times: dict[str, list[float]] = {key: [] for key in ("ours", *refits)}
    ours()
    for _ in range(5):
        start = time.process_time()
        for _ in range(10):
            ours()
        times["ours"].append((time.process_time() - start) / 10)
        for key, refit in refits.items():
            start = time.process_time()
            for i in rows:
                refit(i)
            times[key].append((time.process_time() - start) * EVERY)
    print(f"{name}, n = {N:,}, d = {D}, λ = {LAM:g}")
    best = statistics.median(times["ours"])
    for key, seconds in times.items():
        median = statistics.median(seconds)
        print(
            f"  {key:<40} {median:9.5f} s  [{min(seconds):.5f}–{max(seconds):.5f}]  this/ours"
            f" {median / best:8.0f}"
        )


def agree() -> None:
    ridge, logistic = (
        ridge_leave_one_out(X, y, LAM, weights=True),
        logistic_leave_one_out(X, signs, LAM, tol=TOL),
    )
    rows = range(0, N, 200)
    for name, ours, refit in (
        ("ridge, Cholesky", np.asarray(ridge.weights), ridge_cholesky),
        ("logistic, Newton", np.asarray(logistic.weights), logistic_newton),
        ("logistic, scikit-learn", np.asarray(logistic.weights), logistic_scikit_learn),
    ):
        print(
            f"largest distance from {name} refits:"
            f" {max(np.linalg.norm(ours[i] - refit(i)) for i in rows):.1e}"
        )
    print(f"largest proven error, logistic: {logistic.errors.max():.1e}")


if __name__ == "__main__":
    threadpool_limits(1)  # NumPy was perhaps loaded before _timing could say so
    agree()
    report(
        "ridge leave-one-out",
        lambda: ridge_leave_one_out(X, y, LAM),
        {
            "n refits, one Cholesky each": ridge_cholesky,
            "n refits, scikit-learn Ridge": ridge_scikit_learn,
        },
    )
    report(
        f"logistic leave-one-out to {TOL:g}",
        lambda: logistic_leave_one_out(X, signs, LAM, tol=TOL),
        {
            "n refits, warm Newton": logistic_newton,
            "n refits, scikit-learn newton-cholesky, warm": logistic_scikit_learn,
        },
    )
    Z, wide = X.astype(np.float32), np.empty((N, N), dtype=np.float32)
    compare(
        "the limit of one logistic correction",
        {
            "ours, whole": lambda: logistic_leave_one_out(X, signs, LAM, tol=TOL),
            "its two products, single precision": lambda: (np.matmul(Z, Z.T, out=wide), wide @ Z),
        },
        note=f"4n²d = {4 * N * N * D / 1e9:.1f} Gflop",
    )
