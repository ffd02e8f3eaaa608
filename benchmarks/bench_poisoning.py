"""Poisoning: the transition at the threshold, and the cost of attacks and influence beside plain
refits.

    python benchmarks/bench_poisoning.py [--rows 1000] [--columns 10]

The target is the fit with its sign turned. First the transition with every row allowed; then, in
CPU seconds, gradient cancelling, the bilevel attack beside its refits alone, influence functions
beside leaving rows out by refits, and the vote of partitions beside one learner.
"""

from __future__ import annotations

import argparse

import _timing  # threads first
import numpy as np
from sklearn.tree import DecisionTreeClassifier

from surelearn.attacks.influence import influence_function, refit_influence
from surelearn.attacks.poison_allowed import Allowed
from surelearn.attacks.poison_bilevel import bilevel
from surelearn.attacks.poison_objectives import LinearObjective
from surelearn.attacks.poisoning import cancel_gradient, transition
from surelearn.bounds.poisoning import poisoning_threshold
from surelearn.robust.partition import PartitionClassifier


def draw(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X @ np.linspace(1, 0, d) + rng.logistic(size=n) > 0).astype(int)


def report_transition(X: np.ndarray, y: np.ndarray) -> None:
    objective = LinearObjective(intercept=False)
    target = -objective.fit(X, y)
    threshold = poisoning_threshold(float(target @ objective.gradient(target, X, y)))
    found = transition(objective, target, X, y, threshold=threshold)
    print(f"threshold {threshold:.4f} poison rows a clean row, {X.shape[0]:,} × {X.shape[1]}")
    for fraction, residual, distance in zip(
        found.fractions, found.residuals, found.distances, strict=True
    ):
        side = "below" if fraction < threshold else "above"
        print(
            f"  {fraction:8.4f} {side}: gradient left {residual:9.2e} of the clean, distance to the"
            f" target {distance:9.2e}"
        )


def report_cost(X: np.ndarray, y: np.ndarray) -> None:
    n, objective = len(X), LinearObjective(regularization=0.01)
    outer, (X_outer, y_outer) = LinearObjective(intercept=False), draw(500, X.shape[1], 1)
    target, w, steps = -outer.fit(X, y), objective.fit(X, y), 10
    allowed = Allowed(low=-3.0, high=3.0)

    def refits() -> None:
        for _ in range(steps + 2):
            objective.fit(X, y)

    def leave_out() -> None:
        refit_influence(
            lambda rows, labels: _linear(objective, objective.fit(rows, labels, start=w)),
            X,
            y,
            X_outer,
            y_outer,
            refits=51,
        )

    _timing.compare("gradient cancelling, twice as much poison as clean rows", {
        "cancel_gradient": lambda: cancel_gradient(outer, target, X, y, count=2 * n, refit=False),
    }, repeats=3)  # fmt: skip
    _timing.compare(f"bilevel attack, {steps} steps, {n // 20} rows", {
        "bilevel": lambda: bilevel(objective, X, y, X_outer, y_outer, count=n // 20, allowed=allowed, steps=steps),
        "as many refits alone": refits,
    }, repeats=3)  # fmt: skip
    _timing.compare(f"influence of all {n:,} rows, and of 50 by refits", {
        "influence_function": lambda: influence_function(objective, w, X, y, X_outer, y_outer),
        "50 rows by refits": leave_out,
    }, repeats=3)  # fmt: skip
    tree = DecisionTreeClassifier(random_state=0)
    _timing.compare("vote of 20 partitions, fit and predict", {
        "PartitionClassifier": lambda: PartitionClassifier(tree, partitions=20).fit(X, y).unchanged_rows(X_outer),
        "one tree on all rows": lambda: tree.fit(X, y).predict(X_outer),
    }, repeats=3)  # fmt: skip


def _linear(objective: LinearObjective, w: np.ndarray):
    return lambda rows: (objective.decision(w, rows)[:, 0] > 0).astype(int)


def main() -> None:
    """Parse the options and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--columns", type=int, default=10)
    asked = parser.parse_args()
    X, y = draw(asked.rows, asked.columns)
    report_transition(X, y)
    report_cost(X, y)


if __name__ == "__main__":
    main()
