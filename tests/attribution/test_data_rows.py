"""Training rows as players: sorted neighbors against every coalition, sampled fits against
exact ones.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from surelearn.attribution import banzhaf, shapley
from surelearn.attribution.data_rows import Fits, data_banzhaf, data_shapley, nearest_neighbors


def rows(n=9, test=6, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X, X_test = rng.normal(size=(n, 2)).round(1), rng.normal(size=(test, 2)).round(1)
    return X, rng.integers(classes, size=n), X_test, rng.integers(classes, size=test)


def knn_game(X, y, X_test, y_test, k):
    def u(S):
        held, total = list(S), 0.0
        for x, label in zip(X_test, y_test, strict=True):
            near = sorted(held, key=lambda i: (((X[i] - x) ** 2).sum(), i))[:k]
            total += sum(y[i] == label for i in near) / k
        return total / len(X_test)

    return u


@pytest.mark.parametrize("k", [1, 2, 5, 9, 12])
@pytest.mark.parametrize("seed", [0, 1])
def test_sorted_neighbors_are_all_coalitions(k, seed):
    X, y, X_test, y_test = rows(seed=seed)
    u = knn_game(X, y, X_test, y_test, k)
    for name, value in (("shapley", shapley), ("banzhaf", banzhaf)):
        made = nearest_neighbors(X, y, X_test, y_test, k, value=name)
        np.testing.assert_allclose(made.values, value(u, len(X)).values, atol=1e-12)
        assert made.full == pytest.approx(u(tuple(range(9))))
    assert abs(nearest_neighbors(X, y, X_test, y_test, k).gap) < 1e-12


def test_copies_of_a_row_go_to_the_earlier():
    X = np.array([[0.0], [0.0], [1.0]])
    made = nearest_neighbors(X, [1, 0, 1], [[0.0]], [1], 1)
    u = knn_game(X, np.array([1, 0, 1]), np.array([[0.0]]), np.array([1]), 1)
    np.testing.assert_allclose(made.values, shapley(u, 3).values, atol=1e-12)


def test_pieces_of_test_rows(monkeypatch):
    X, y, X_test, y_test = rows(20, 30)
    whole = nearest_neighbors(X, y, X_test, y_test).values
    monkeypatch.setattr("surelearn.attribution.data_rows._PAIRS", 1)
    np.testing.assert_allclose(nearest_neighbors(X, y, X_test, y_test).values, whole, atol=1e-14)


def test_a_wrong_label_is_worth_least():
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(-2, 1, (40, 2)), rng.normal(2, 1, (40, 2))]
    y = np.repeat([0, 1], 40)
    flipped = y.copy()
    flipped[:3] = 1
    made = nearest_neighbors(X, flipped, X, y, 5)
    assert set(np.argsort(made.values)[:3]) == {0, 1, 2}


@pytest.mark.parametrize(("value", "exact"), [(data_shapley, shapley), (data_banzhaf, banzhaf)])
def test_sampled_fits(value, exact):
    X, y, X_test, y_test = rows(7, 12, classes=2, seed=3)
    game = Fits(LogisticRegression(), X, y, X_test, y_test)
    expected = exact(game, 7).values
    np.testing.assert_allclose(
        value(LogisticRegression(), X, y, X_test, y_test).values, expected, atol=1e-12
    )
    made = value(
        LogisticRegression(), X, y, X_test, y_test, method="sampling", budget=2000, random_state=0
    )
    assert "Bernstein" in made.interval
    assert made.calls <= 2**7  # each coalition is fitted once, however often it is drawn
    assert (made.low <= expected).all()
    assert (expected <= made.high).all()
    np.testing.assert_allclose(made.values, expected, atol=0.05)


def test_fits_of_a_frame_and_of_numbers():
    X, y, X_test, y_test = rows(6, 10)
    made = data_shapley(Ridge(), pd.DataFrame(X), y * 1.0, pd.DataFrame(X_test), y_test * 1.0)
    assert "minus squares on 10 test rows of Ridge()" in made.game
    assert made.gap == pytest.approx(0, abs=1e-12)
    assert made.empty == pytest.approx(-np.mean(y_test**2.0))


def test_refusals():
    X, y, X_test, y_test = rows()
    with pytest.raises(ValueError, match="neighbors must be a whole number"):
        nearest_neighbors(X, y, X_test, y_test, 0)
    with pytest.raises(ValueError, match="value must be"):
        nearest_neighbors(X, y, X_test, y_test, value="beta")
    with pytest.raises(ValueError, match="same number of rows"):
        nearest_neighbors(X, y[:3], X_test, y_test)
    with pytest.raises(ValueError, match="finite"):
        nearest_neighbors(X * np.nan, y, X_test, y_test)
    with pytest.raises(ValueError, match="same number of rows"):
        data_shapley(Ridge(), X, y, X_test[:0], y_test[:0])
    with pytest.raises(ValueError, match="the model fails when it is fitted on"):
        data_shapley(LogisticRegression(C=-1), X, y, X_test, y_test)
