"""Columns of choices: fixed or substituted, at most so many, at a cost that counts in the size
of a change.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from surelearn.attacks import (
    decision_attack,
    domain,
    encode_table,
    projected_gradient,
    simplest_change,
    smallest_change,
)

WHERE = domain(
    ["size", "width", "kind", "make"],
    choices={"kind": (0, 1, 2), "make": (0, 1)},
    cost=[0, 0, 0.3, 0.4],
)
TOGETHER = {"l2": np.hypot, "linf": np.maximum}


def rows(n=60):
    random = np.random.default_rng(0)
    return np.column_stack(
        [random.standard_normal((n, 2)), random.integers(0, 3, n), random.integers(0, 2, n)]
    )


def halfspace(X):
    return (X[:, 0] + 0.5 * (X[:, 2] == 1) + 0.4 * X[:, 3] > 1).astype(int)


@pytest.mark.parametrize(("norm", "one"), [("l2", np.hypot(0.5, 0.3)), ("linf", 0.5)])
def test_by_predictions_the_smallest_change_counts_moves_and_substitutions(norm, one):
    x = np.array([[0.0, 0.0, 0.0, 0.0]])
    options = {"others": rows(), "budget": 600, "norm": norm, "where": WHERE, "random_state": 0}
    moved = decision_attack(halfspace, x, [0], **options)
    found = decision_attack(halfspace, x, [0], substitutions=1, **options)
    assert moved.distance[0] == pytest.approx(1.0, rel=0.03)
    assert found.distance[0] == pytest.approx(one, rel=0.03)
    assert found.distance[0] >= one - 1e-9
    assert (found.substituted[0], found.rows[0, 2], found.rows[0, 3]) == (1, 1.0, 0.0)
    assert found.changes(0)[0] == ("kind", 0.0, 1.0)


@pytest.mark.parametrize("model", ["predictions", "gradients"])
def test_a_dear_substitution_is_not_made(model):
    where = domain(4, choices={2: (0, 1, 2), 3: (0, 1)}, cost=5.0)
    X = rows()
    y = halfspace(X)
    if model == "predictions":
        found = decision_attack(
            halfspace, X, y, others=X, where=where, substitutions=2, random_state=0
        )
    else:
        found = smallest_change(
            LogisticRegression().fit(X, y), X, y, largest=5.0, where=where, substitutions=2
        )
    assert found.success.all()
    assert not found.substituted.any()


def test_no_more_columns_than_allowed_no_other_values_and_fixed_ones_stay():
    def predict(X):  # two substitutions are needed, whatever moves
        return ((X[:, 2] == 1) & (X[:, 3] == 1)).astype(int)

    X = rows()
    X[:, 2:] = 0
    options = {
        "others": np.array([[5.0, 5.0, 1.0, 1.0], [0.0, 0.0, 2.0, 1.0]]),
        "budget": 100,
        "random_state": 0,
    }
    assert not decision_attack(
        predict, X, predict(X), where=WHERE, substitutions=1, **options
    ).success.any()
    found = decision_attack(predict, X, predict(X), where=WHERE, substitutions=2, **options)
    assert found.success.all()
    np.testing.assert_allclose(found.distance, 0.5)  # 0.3² + 0.4², nothing moved
    fixed = domain(4, choices={2: (0, 1, 2), 3: (0, 1)}, fixed=[3])
    assert not decision_attack(
        predict, X, predict(X), where=fixed, substitutions=2, **options
    ).success.any()
    lacking = domain(4, choices={2: (0, 2), 3: (0, 1)})
    assert not decision_attack(
        predict, X, predict(X), where=lacking, substitutions=2, **options
    ).success.any()


@pytest.mark.parametrize("budget", [1, 7, 50, 333])
def test_substitutions_are_within_the_same_budget(budget):
    X = np.column_stack([rows(8), np.arange(8)])  # the last column says which row it is
    asked = np.zeros(9, dtype=int)

    def predict(rows):
        np.add.at(asked, rows[:, 4].astype(int), 1)
        return halfspace(rows)

    others = np.column_stack([rows(20) * [3, 3, 1, 1], np.full(20, 8)])
    y = halfspace(X)
    where = domain(5, choices={2: (0, 1, 2), 3: (0, 1)}, cost=0.2, fixed=[4])
    found = decision_attack(
        predict,
        X,
        y,
        others=others,
        where=where,
        budget=budget,
        substitutions=2,
        norm="linf",
        random_state=0,
    )
    assert asked[:8].max() <= budget + 2  # before and after
    assert found.calls == asked.sum()
    assert budget < 50 or found.success.all()


def nearest(model, x, norm, most):
    """By going through all substitutions: the distance of the hyperplane from each, with their
    costs.
    """
    w, best = model.coef_[0], np.inf
    dual = np.linalg.norm(w[:2]) if norm == "l2" else np.abs(w[:2]).sum()
    for kind, make in itertools.product((0.0, 1.0, 2.0), (0.0, 1.0)):
        spent = np.array([0.3, 0.4]) * (np.array([kind, make]) != x[2:])
        if (spent > 0).sum() > most:
            continue
        score = model.decision_function([[x[0], x[1], kind, make]])[0]
        still = (score > 0) == (model.decision_function([x])[0] > 0)
        spent = np.linalg.norm(spent) if norm == "l2" else spent.max()
        best = min(best, TOGETHER[norm](abs(score) / dual if still else 0.0, spent))
    return best


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("most", [0, 1, 2])
def test_by_gradients_the_smallest_change_is_that_of_all_substitutions(norm, most):
    X = rows()
    model = LogisticRegression().fit(X, halfspace(X))
    y = model.predict(X)
    exact = np.array([nearest(model, x, norm, most) for x in X])
    found = smallest_change(
        model, X, y, largest=5.0, norm=norm, where=WHERE, substitutions=most, rounds=12
    )
    assert (found.distance >= exact * (1 - 1e-9)).all()
    assert np.mean(found.distance <= exact * 1.01) > 0.9  # the greedy choice is not always the best
    assert min(1, most) <= found.substituted.max() <= most
    radius = float(np.median(exact))
    if most and radius > 0.3:
        near = projected_gradient(
            model, X, y, radius=radius, norm=norm, where=WHERE, substitutions=most
        )
        assert (near.distance[near.success] <= radius).all()
        assert not near.success[exact > radius].any()
        assert near.success[exact <= radius * 0.99].mean() > 0.9
    simple = simplest_change(model, found)
    assert (simple.distance <= found.distance).all()


def test_words_of_a_table_are_substituted_in_a_forest():
    pd = pytest.importorskip("pandas")
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": random.uniform(20, 80, 300), "job": random.choice(["cook", "nurse", "none"], 300)}
    )
    y = np.where(table["age"] + 40 * (table["job"] == "cook") > 70, "old", "young")
    encoder = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
    model = make_pipeline(encoder, RandomForestClassifier(20, random_state=0)).fit(table, y)
    made = encode_table(table, cost=0.5)
    options = {"others": made.rows, "where": made.where, "budget": 150, "random_state": 0}
    X, said = made.rows[:40], model.predict(table[:40])
    kept = decision_attack(made.predicting(model), X, said, **options)
    found = decision_attack(made.predicting(model), X, said, substitutions=1, **options)
    assert not kept.substituted.any()
    assert found.substituted.mean() > 0.2
    assert found.distance.mean() < 0.8 * kept.distance.mean()
    assert (model.predict(made.decode(found.rows)) != said)[found.success].all()


def test_bad_input_gets_a_sentence():
    X, y = rows(), halfspace(rows())
    model = LogisticRegression().fit(X, y)
    with pytest.raises(
        ValueError, match="substitutions must be a whole number of at least 0, not -1"
    ):
        decision_attack(halfspace, X, y, others=X, where=WHERE, substitutions=-1)
    with pytest.raises(ValueError, match="substitutions need a domain with choices="):
        smallest_change(model, X, y, largest=1.0, substitutions=1)
    with pytest.raises(ValueError, match=r"costs at least 0\.3, more than the radius"):
        projected_gradient(model, X, y, radius=0.1, where=WHERE, substitutions=1)
    with pytest.raises(ValueError, match="cost must not be negative"):
        domain(2, choices={0: (0, 1)}, cost=-1.0)
    with pytest.raises(ValueError, match="choices of x0 must lie within its range"):
        domain(2, low=0.0, high=1.0, choices={0: (0, 2)})
