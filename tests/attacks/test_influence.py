"""Influence of rows: exact against refits, first order against exact, budgets, and planted rows
found.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from surelearn.attacks.influence import exact_influence, influence_function, refit_influence
from surelearn.attacks.poison_objectives import LinearObjective
from surelearn.linear import LogisticRegression, Ridge

SQUARED, LOGISTIC = (
    LinearObjective("squared", regularization=0.05),
    LinearObjective(regularization=0.05),
)


def squared(scores, targets):
    return (scores - targets) ** 2


def logistic(scores, labels):
    return np.logaddexp(0, -(2 * labels - 1) * scores)


def rows(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    score = X @ [1.0, -1.0, 0.5] + 0.5 * rng.logistic(size=n)
    return X, score, (score > 0).astype(int)


def without(objective, X, y, row):
    """The minimizer without a row, the total penalty nλ kept."""
    n = len(X)
    kept = LinearObjective(objective.loss, regularization=objective.regularization * n / (n - 1))
    return kept.fit(np.delete(X, row, 0), np.delete(y, row))


CASES = {
    "ridge": (SQUARED, Ridge(regularization=0.05, regularize_intercept=True), squared, 1),
    "logistic": (
        LOGISTIC,
        LogisticRegression(regularization=0.05, finish="newton", random_state=0),
        logistic,
        2,
    ),
}


@pytest.mark.parametrize("case", list(CASES))
def test_exact_influence_is_that_of_refits(case):
    objective, learner, loss, which = CASES[case]
    data, new = rows(), rows(50, seed=1)
    X, y, X_outer, y_outer = data[0], data[which], new[0], new[which]
    found = exact_influence(
        learner.fit(X, y).leave_one_out, X, y, X_outer, y_outer, loss=loss, rows=[3, 0, 50]
    )
    assert found.rows.tolist() == [0, 3, 50]
    full = objective.fit(X, y)
    for row, risk, largest in zip(found.rows, found.risk, found.largest, strict=True):
        w = without(objective, X, y, row)
        change = objective.risk(w, X_outer, y_outer) - objective.risk(full, X_outer, y_outer)
        assert risk == pytest.approx(change, rel=1e-3, abs=1e-8)
        moved = np.abs(objective.decision(w, X_outer) - objective.decision(full, X_outer)).max()
        assert largest == pytest.approx(moved, rel=1e-3)


@pytest.mark.parametrize("case", list(CASES))
def test_the_influence_function_is_close_to_exact(case):
    objective, learner, loss, which = CASES[case]
    data, new = rows(), rows(50, seed=1)
    X, y, X_outer, y_outer = data[0], data[which], new[0], new[which]
    exact = exact_influence(learner.fit(X, y).leave_one_out, X, y, X_outer, y_outer, loss=loss)
    found = influence_function(objective, objective.fit(X, y), X, y, X_outer, y_outer)
    assert np.corrcoef(found.risk, exact.risk)[0, 1] > 0.98
    assert np.abs(found.risk - exact.risk).max() < 0.35 * np.abs(exact.risk).max()
    np.testing.assert_allclose(found.largest, exact.largest, rtol=0.3)
    assert len(set(found.top(5)) & set(exact.top(5))) >= 4
    assert exact.top(1, by="largest")[0] == found.top(1, by="largest")[0]


def test_kernel_machines_by_their_closed_form():
    pytest.importorskip("torch")
    from surelearn.kernel import Compute, EigenProRegressor
    from surelearn.kernel.left_out import left_out

    X, y, _ = rows(30)
    X_outer, y_outer, _ = rows(20, seed=1)
    model = EigenProRegressor(bandwidth=2.0, regularization=0.1, compute=Compute(device="cpu")).fit(
        X, y
    )
    found = exact_influence(
        lambda *_, **__: left_out(model, X_outer), X, y, X_outer, y_outer, loss=squared, rows=[2, 7]
    )
    for row, risk in zip(found.rows, found.risk, strict=True):
        other = EigenProRegressor(
            bandwidth=2.0, regularization=0.1 * 30 / 29, compute=Compute(device="cpu")
        )
        other.fit(np.delete(X, row, 0), np.delete(y, row))
        before, after = (squared(m.predict(X_outer), y_outer).mean() for m in (model, other))
        assert risk == pytest.approx(after - before, rel=1e-4, abs=1e-8)


def test_a_module_by_conjugate_gradients():
    torch = pytest.importorskip("torch")
    from surelearn.attacks.poison_modules import ModuleObjective

    X, _, y = rows()
    X_outer, _, y_outer = rows(50, seed=1)
    torch.manual_seed(0)
    objective = ModuleObjective(
        torch.nn.Linear(3, 2), regularization=0.05, damping=0.0, iterations=500
    )
    # the same softmax, with two classes, written out
    two_scores = LinearObjective(classes=3, regularization=0.05)
    two_scores.classes = two_scores.scores = 2
    found = influence_function(objective, objective.fit(X, y), X, y, X_outer, y_outer)
    expected = influence_function(two_scores, two_scores.fit(X, y), X, y, X_outer, y_outer)
    np.testing.assert_allclose(found.risk, expected.risk, rtol=1e-3, atol=1e-7)
    assert np.isnan(found.largest).all()


def test_a_planted_row_has_most_influence():
    X, _, y = rows()
    X[5], y[5] = [6.0, -6.0, 3.0], 0  # far on the side of class 1
    X_outer, _, y_outer = rows(50, seed=1)
    found = influence_function(LOGISTIC, LOGISTIC.fit(X, y), X, y, X_outer, y_outer)
    assert found.top(1)[0] == 5
    assert found.risk[5] < 0  # without it the risk falls


def test_refits_keep_their_budget():
    X, _, y = rows()
    fits = []

    def fit(rows, labels):
        fits.append(len(rows))
        return DecisionTreeClassifier(max_depth=2, random_state=0).fit(rows, labels)

    found = refit_influence(fit, X, y, X, y, refits=8, random_state=1)
    assert sorted(fits) == [79] * 7 + [80]
    assert found.rows.size == 7
    assert found.method == "refits"
    np.testing.assert_array_equal(
        found.rows, refit_influence(fit, X, y, X, y, refits=8, random_state=1).rows
    )
    named = refit_influence(
        fit, X, np.where(y, "yes", "no"), X, np.where(y, "yes", "no"), rows=[4, 5]
    )
    assert np.isnan(named.largest).all()
    assert named.rows.tolist() == [4, 5]
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    framed = refit_influence(fit, table, pd.Series(y), table, y, rows=[4, 5])
    np.testing.assert_array_equal(framed.risk, named.risk)


@pytest.mark.parametrize("given", [[], [80], [-1], [0.5], [[1]]])
def test_rows_that_are_not_there(given):
    X, _, y = rows()
    with pytest.raises(ValueError, match="rows must be numbers from 0 to 79"):
        influence_function(LOGISTIC, LOGISTIC.fit(X, y), X, y, X, y, rows=given)


def test_bad_budget():
    X, _, y = rows()
    with pytest.raises(ValueError, match="refits must be a whole number of at least 2"):
        refit_influence(lambda *_: None, X, y, X, y, refits=1)
    with pytest.raises(ValueError, match="equally many rows and labels"):
        refit_influence(lambda *_: None, X, y[:3], X, y)
