"""Poison that is aimed through a model's own form, or a module's own training, as a user calls
it.
"""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from surelearn.attacks import aimed_rows, module_influence, trained_further
from surelearn.lacking import Lacking

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3)) * [1.0, 5.0, 0.2]
Y = (X @ [1.0, -0.4, 2.0] + 0.3 * RNG.normal(size=200) > 0).astype(int)


def test_aimed_rows_hurt_more_than_random_ones():
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:150], Y[:150])
    poison = aimed_rows(model, X[:150], Y[:150], 30, task="classification")
    Z, new = model[:-1].transform(X[:150]), model[:-1].transform(X[150:])
    assert poison.stand_in == "", "a logistic regression stands for itself"
    assert (Z.min(0) - 1e-9 <= poison.X).all()
    assert (Z.max(0) + 1e-9 >= poison.X).all()

    def errors(rows, labels):
        fitted = LogisticRegression().fit(np.vstack([Z, rows]), np.append(Y[:150], labels))
        return np.mean(fitted.predict(new) != Y[150:])

    drawn = RNG.integers(150, size=30)
    assert errors(poison.X, poison.y) > errors(Z[drawn], 1 - Y[drawn])


def test_trees_give_no_gradient_to_aim_by():
    found = aimed_rows(RandomForestClassifier(3).fit(X, Y), X, Y, 5, task="classification")
    assert isinstance(found, Lacking)
    assert "RandomForestClassifier has no gradient to aim poison by" in found.reason


def test_a_module_is_trained_further_with_poison_or_says_why_not():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Linear(3, 2)
    before = module.weight.detach().clone()
    found = trained_further(module, X / [1.0, 5.0, 0.2], Y, task="classification", share=0.3)
    assert found.clean < 0.2 < found.placed
    assert torch.equal(before, module.weight), "it stays as it is"
    told = module_influence(module, X, Y, task="classification")
    assert told.found.risk.shape == told.found.rows.shape
    assert (
        "1 to 3,000 parameters"
        in trained_further(torch.nn.Linear(3, 2000), X, Y, task="classification", share=0.1).reason
    )
