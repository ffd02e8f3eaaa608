"""Small changes of a table's rows, as anybody may ask for them: what is found is true of the
model.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

from surelearn.lacking import Lacking
from surelearn.robust import attack_table, move_predictions, substitute_categories
from surelearn.robust.tables import moves_of


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).normal(size=(80, 3))
    return X, np.where(X[:, 0] + 0.2 * X[:, 1] > 0, "yes", "no")


def test_the_smallest_change_of_a_linear_model_is_its_margin(rows):
    X, y = rows
    model = LogisticRegression().fit(X, y)
    moves = moves_of({}, X, X)
    found = attack_table(model, X, y, moves, pool=X)
    assert not isinstance(found, Lacking)
    right = model.predict(X) == y
    expected = np.abs(model.decision_function(X)) / (np.abs(model.coef_[0]) * moves.scale).sum()
    near = right & (expected < 1)  # the range seen limits the others
    assert (found.distance[right] >= expected[right] * (1 - 1e-6)).all()
    assert np.median(found.distance[near] / expected[near]) < 1.05
    assert (found.distance[~right] == 0).all()
    for change in found.changes:
        moved = X[[change.row]].copy()
        for name, old, new in change.columns:
            at = moves.positions[moves.names.index(name)]
            assert moved[0, at] == old
            moved[0, at] = new
        assert (model.predict(X[[change.row]])[0], model.predict(moved)[0]) == (
            change.before,
            change.after,
        )
        assert change.before != change.after


def test_without_a_gradient_it_is_found_by_predictions_and_says_so(rows):
    X, y = rows
    found = attack_table(
        RandomForestClassifier(10, random_state=0).fit(X, y), X, y, moves_of({}, X, X), pool=X
    )
    assert not isinstance(found, Lacking)
    assert "gradient" in found.gradients.reason
    assert (found.distance > 0).any()


def test_a_model_that_gives_no_answer_is_lacking(rows):
    X, y = rows
    moves = moves_of({}, X, X)
    assert (
        str(attack_table(lambda X: np.full(len(X), np.nan), X, y, moves, pool=X))
        == "no attack: the model predicts NaN"
    )
    assert "shape (80, 2)" in str(
        attack_table(lambda X: np.zeros((len(X), 2)), X, y, moves, pool=X)
    )
    assert isinstance(move_predictions(lambda X: np.full(len(X), np.inf), X, moves, [0.1]), Lacking)
    frame = pd.DataFrame({"kind": ["a", "b"]})
    said = substitute_categories(
        lambda f: np.where(f["kind"] == "c", np.nan, 1.0), frame, np.ones(2), {"kind": ["a", "c"]}
    )
    assert isinstance(said, Lacking)


def test_another_category_turns_what_it_decides():
    frame = pd.DataFrame({"kind": ["a", "b", "a"], "other": ["x", "x", "y"]})
    found = substitute_categories(
        lambda f: (f["kind"] == "a").to_numpy(),
        frame,
        np.array([True, True, True]),
        {"kind": ["a", "b"], "other": ["x", "y"]},
    )
    assert not isinstance(found, Lacking)
    assert found.right.tolist() == [True, False, True]
    assert found.turned["kind"].tolist() == [True, False, True]
    assert not found.turned["other"].any()


def test_the_predictions_of_a_linear_regression_move_by_its_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = LinearRegression().fit(X, X @ [2.0, -1.0] + 0.1 * rng.normal(size=60))
    moves = moves_of({}, X, X)
    found = move_predictions(model, X, moves, [0.0, 0.05, 0.1])
    assert not isinstance(found, Lacking)
    inside = (
        np.abs(X) + 0.1 * moves.scale < np.minimum(np.abs(moves.low), np.abs(moves.high))
    ).all(axis=1)
    reach = (np.abs(model.coef_) * moves.scale).sum()
    np.testing.assert_allclose(
        found.largest[:, inside],
        np.outer([0.0, 0.05, 0.1], np.full(inside.sum(), reach)),
        rtol=1e-9,
    )
    np.testing.assert_array_equal(found.before, model.predict(X))
