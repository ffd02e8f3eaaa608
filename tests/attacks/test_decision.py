"""The attack by predictions alone: within its budget and bounds, and near the true distance
where that is known.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from surelearn.attacks import decision_attack, domain

CANCER, SICK = load_breast_cancer(return_X_y=True)
Z = (CANCER - CANCER.mean(axis=0)) / CANCER.std(axis=0)


@pytest.mark.parametrize(("norm", "within"), [("l2", 1.3), ("linf", 2.0)])
def test_it_comes_near_the_true_distance_and_never_below(norm, within):
    model = LogisticRegression(C=0.1).fit(Z[:300], SICK[:300])
    X, y = Z[300:360], SICK[300:360]
    found = decision_attack(
        lambda X: model.predict(X), X, y, others=Z[:300], budget=1000, norm=norm, random_state=0
    )
    w, right = model.coef_[0], model.predict(X) == y
    exact = np.abs(model.decision_function(X)) / (
        np.linalg.norm(w) if norm == "l2" else np.abs(w).sum()
    )
    ratio = found.distance[right] / exact[right]
    assert found.success.all()
    assert ratio.min() >= 1 - 1e-9
    assert np.median(ratio) < within


def test_a_forest_is_turned_within_the_range():
    model = RandomForestClassifier(20, random_state=0).fit(Z[:300], SICK[:300])
    X, y = Z[300:340], SICK[300:340]
    low, high = Z.min(axis=0), Z.max(axis=0)
    where = domain(30, low=low, high=high, fixed=[0, 1])
    options = {"others": Z[:300], "where": where, "random_state": 0}
    some = decision_attack(model, X, y, budget=60, **options)
    more = decision_attack(model, X, y, budget=400, **options)
    again = decision_attack(model, X, y, budget=400, **options)
    assert np.median(more.distance) < 0.9 * np.median(some.distance)
    assert (more.rows == again.rows).all()
    for found in (some, more):
        assert (model.predict(found.rows) != y)[found.success].all()
        assert (found.rows >= low).all()
        assert (found.rows <= high).all()
        assert (found.rows[:, :2] == X[:, :2]).all()
    near = decision_attack(
        model, X, y, budget=400, radius=float(np.median(more.distance)), **options
    )
    assert (near.success == (more.distance <= np.median(more.distance))).all()


@pytest.mark.parametrize("budget", [1, 7, 50, 333])
def test_no_row_is_asked_about_more_often_than_the_budget(budget):
    random = np.random.default_rng(0)
    # the last column says which row it is
    X = np.column_stack([random.standard_normal((8, 3)), np.arange(8)])
    asked = np.zeros(9, dtype=int)

    def predict(rows):
        np.add.at(asked, rows[:, 3].astype(int), 1)
        return (np.abs(rows[:, :3]).sum(axis=1) > 4).astype(int)

    others = np.column_stack([5 * random.standard_normal((20, 3)), np.full(20, 8)])
    y = predict(X)
    asked[:] = 0
    where = domain(4, fixed=[3])
    found = decision_attack(
        predict, X, y, others=others, where=where, budget=budget, random_state=0
    )
    assert asked[:8].max() <= budget + 2  # before and after
    assert found.calls == asked.sum()
    assert budget < 50 or found.success.all()


def test_labels_may_be_words_and_a_target_is_reached():
    def predict(rows):
        return np.where(rows[:, 0] > 1, "high", np.where(rows[:, 0] > 0, "middle", "low"))

    X = np.array([[-0.5, 0.0], [0.5, 0.0], [2.0, 0.0]])
    options = {"others": np.array([[-1.0, 1.0], [0.5, 1.0], [3.0, 1.0]]), "random_state": 0}
    found = decision_attack(predict, X, predict(X), **options)
    assert found.success.all()
    assert (found.distance[0] < 0.6) & (found.distance[2] < 1.2)
    aimed = decision_attack(predict, X, predict(X), target="high", **options)
    assert (predict(aimed.rows) == "high").all()
    assert aimed.distance[2] == 0


def test_without_a_row_of_another_class_nothing_is_turned():
    found = decision_attack(
        lambda X: np.zeros(len(X), dtype=int), Z[:5], np.zeros(5, dtype=int), others=Z[:20]
    )
    assert not found.success.any()
    assert np.isinf(found.distance).all()


def test_bad_input_gets_a_sentence():
    predict = lambda X: (X[:, 0] > 0).astype(int)  # noqa: E731
    with pytest.raises(ValueError, match="budget must be"):
        decision_attack(predict, Z[:3], predict(Z[:3]), others=Z, budget=0)
    with pytest.raises(ValueError, match="others must have 30 columns, not 2"):
        decision_attack(predict, Z[:3], predict(Z[:3]), others=Z[:, :2])
    with pytest.raises(ValueError, match="radius must not"):
        decision_attack(predict, Z[:3], predict(Z[:3]), others=Z, radius=-1.0)

    def raises(X):
        raise KeyError("no such column")

    with pytest.raises(ValueError, match=r"the model failed on rows of shape .*KeyError"):
        decision_attack(raises, Z[:3], SICK[:3], others=Z)
